"""Downloads, from a server on this machine."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from served import serving

from gzkcore import datasets
from gzkcore.datasets import downloads


@pytest.fixture
def server(monkeypatch):
    """Let all sets come from a server on this machine."""
    pytest.importorskip("pooch", reason="the extra `data` is not installed")
    monkeypatch.delenv("GZKCORE_DATA", raising=False)
    with serving() as running:
        for name, source in downloads.PUBLISHED.items():
            files = (address.rpartition("/")[2] for address in source.addresses)
            addresses = tuple(f"{running.url}/{name}/{file}" for file in files)
            monkeypatch.setitem(downloads.PUBLISHED, name, source._replace(addresses=addresses))
        yield running


def zipped(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def test_fetched_once_and_trusted_from_then_on(server, tmp_path):
    server.files["CASP.csv"] = b"RMSD,F1,F2\n17.5,1,2\n3.25,4,5\n"
    first = datasets.load("protein", tmp_path)
    np.testing.assert_array_equal(first.X, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(first.y, [17.5, 3.25])  # the first column is the label
    np.testing.assert_array_equal(datasets.load("protein", tmp_path, download=False).y, first.y)
    assert server.asked == ["/protein/CASP.csv"]
    ledger = json.loads((tmp_path / "checksums.json").read_text())
    assert ledger == {"CASP.csv": hashlib.sha256(server.files["CASP.csv"]).hexdigest()}
    (tmp_path / "CASP.csv").write_bytes(b"RMSD,F1,F2\n17.5,1,9\n")
    with pytest.raises(ValueError, match=r"CASP\.csv: its sha256 is .* delete it"):
        datasets.load("protein", tmp_path)


def test_tables_of_uci(server, tmp_path):
    server.files |= {
        "abalone.data": b"M,0.4,0.3,0.1,0.5,0.2,0.1,0.15,15\nI,0.3,0.2,0.1,0.4,0.2,0.1,0.12,7\n",
        "pendigits.tra": b" 47,100, 27, 8\n  0, 89, 27, 2\n",
        "agaricus-lepiota.data": b"p,x,s\ne,b,s\ne,x,y\n",
        "magic04.data": b"28.7,16.0,g\n31.6,11.7,h\n",
        "adult.data": b"39, State-gov, 7, B, 13, N, A, U, W, M, 2, 0, 40, US, <=50K\n\n",
        "adult.test": b"|1x3 Cross validator\n25, ?, 8, C, 7, N, A, U, W, M, 0, 0, 30, US, >50K.\n",
    }
    abalone = datasets.load("abalone", tmp_path)
    np.testing.assert_allclose(abalone.X[:, :2], [[0, 0.4], [2, 0.3]])
    assert (abalone.y.tolist(), abalone.y3.tolist()) == ([15, 7], [2, 0])
    pendigits = datasets.load("pendigits", tmp_path)
    assert (pendigits.X.tolist(), pendigits.y.tolist()) == ([[47, 100, 27], [0, 89, 27]], [8, 2])
    mushroom = datasets.load("mushroom", tmp_path)
    assert (mushroom.X.tolist(), mushroom.y.tolist()) == ([[1, 0], [0, 0], [1, 1]], [1, 0, 0])
    assert datasets.load("magic", tmp_path).y.tolist() == [0, 1]
    adult = datasets.load("adult", tmp_path)
    assert adult.X_num_train.tolist() == [[39, 7, 13, 2, 0, 40]]
    assert adult.X_cat_train[0, :2].tolist() == [1, 0]
    assert (adult.X_cat_test[0, 0], adult.y_train.tolist(), adult.y_test.tolist()) == (0, [0], [1])


def test_elevation(server, tmp_path):
    """A band of a degree of latitude at the north pole, whose cells are averaged."""
    band = np.zeros((60, 360, 60), dtype="<i2")
    band[:, 0, :] = 100
    band[:30, 1, :] = 7
    server.files["etopo1_ice_c_i2.zip"] = zipped("etopo1_ice_c_i2.bin", band.tobytes() * 2)
    data = datasets.load("elevation", tmp_path)
    assert data.elevation_m.shape == data.lat.shape == data.lon.shape == (720,)
    np.testing.assert_array_equal(data.elevation_m[:3], [100, 3.5, 0])
    np.testing.assert_array_equal(data.lon[:2], [-179.5, -178.5])


@pytest.mark.usefixtures("server")
def test_source_that_cannot_be_reached(tmp_path):
    with pytest.raises(OSError, match=r"'magic' could not .*magic04\.data.*put it at"):
        datasets.load("magic", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"allow the download, or fetch http"):
        datasets.load("magic", tmp_path, download=False)


def test_without_pooch(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'gzkcore\[data\]'"):
        datasets.load("magic", tmp_path)


def test_no_folder_but_the_cache(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    server.files["magic04.data"] = b"28.7,16.0,g\n"
    datasets.load("magic")
    assert (tmp_path / "gzkcore" / "magic04.data").is_file()


def test_what_the_cache_keeps_is_read(tmp_path, monkeypatch):
    monkeypatch.delenv("GZKCORE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "gzkcore").mkdir()
    np.savez(tmp_path / "gzkcore" / "shuttle.npz", X=np.eye(2), y=np.arange(2))
    assert datasets.load("shuttle", download=False).X.shape == (2, 2)
