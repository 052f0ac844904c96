"""Downloads, from a server on this machine."""

import dataclasses
import hashlib
import http.server
import importlib
import io
import json
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from scipy.io import netcdf_file

from gzkcore import datasets
from gzkcore.datasets import downloads


class Server:
    """Files by their path, and how often each was asked for."""

    def __init__(self):
        self.files, self.asked = {}, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                words = [word for word in self.path.split("/") if word in outer.files]
                content = outer.files[words[-1]] if words else None
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server(monkeypatch):
    """Let all sets come from a server on this machine."""
    pytest.importorskip("pooch", reason="the extra `data` is not installed")
    monkeypatch.delenv("GZKCORE_DATA", raising=False)
    serving = Server()
    for name, source in downloads.SOURCES.items():
        files = {
            file: (f"{serving.url}/{name}/{file}", published)
            for file, (_, published) in source.files.items()
        }
        monkeypatch.setitem(downloads.SOURCES, name, dataclasses.replace(source, files=files))
    yield serving
    serving.close()


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


def test_published_checksum(server, tmp_path):
    server.files["cifar-10-binary.tar.gz"] = b"something else"
    with pytest.raises(ValueError, match=r"hash of downloaded file .* does not match"):
        datasets.load("cifar-10", tmp_path)


def test_cifar(server, tmp_path, monkeypatch):
    records = np.arange(2 * 3073, dtype=np.uint16).astype(np.uint8).reshape(2, 3073)
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, rows in (("data_batch_1.bin", records), ("test_batch.bin", records[:1])):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = rows.nbytes
            archive.addfile(info, io.BytesIO(rows.tobytes()))
    server.files["cifar-10-binary.tar.gz"] = file.getvalue()
    source = downloads.SOURCES["cifar-10"]
    ((name, (url, _)),) = source.files.items()
    published = f"md5:{hashlib.md5(file.getvalue()).hexdigest()}"
    monkeypatch.setitem(
        downloads.SOURCES, "cifar-10", dataclasses.replace(source, files={name: (url, published)})
    )
    for _ in range(2):
        data = datasets.load("cifar-10", tmp_path)
    np.testing.assert_array_equal(data.X_train, records[:, 1:])
    np.testing.assert_array_equal(data.y_test, records[:1, 0])
    assert len(server.asked) == 1


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


def test_climate(server, tmp_path):
    file = tmp_path / "made.nc"
    with netcdf_file(file, "w") as made:
        for name, size in (("month_number", 12), ("latitude", 2), ("longitude", 3)):
            made.createDimension(name, size)
        for name, values in (("latitude", [-0.5, 0.5]), ("longitude", [1.5, 2.5, 3.5])):
            made.createVariable(name, "f8", (name,))[:] = values
        mean = made.createVariable("climatology", "f4", ("month_number", "latitude", "longitude"))
        mean[:] = np.arange(72).reshape(12, 2, 3)
        mean[3, 0, 0] = np.nan  # no mean at sea
    server.files["Complete_TAVG_LatLong1.nc"] = file.read_bytes()
    data = datasets.load("climate", tmp_path)
    assert data.temp_c.shape == (12, 5)
    assert (data.lat.tolist(), data.lon.tolist()) == (
        [-0.5, -0.5, 0.5, 0.5, 0.5],
        [2.5, 3.5, 1.5, 2.5, 3.5],
    )
    np.testing.assert_array_equal(data.temp_c[1], [7, 8, 9, 10, 11])


def test_images(server, tmp_path):
    image = pytest.importorskip("PIL.Image")
    made = {}
    for size in (512, 256):
        file = io.BytesIO()
        image.new("RGB", (size, size), (10, 10, 10)).save(file, "TIFF")
        made[f"misc/{size}.tiff"] = file.getvalue()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in made.items():
            archive.writestr(name, content)
    server.files["misc.zip"] = file.getvalue()
    X = datasets.load("natural-images", tmp_path).X
    assert X.shape == (1, 512 * 512)
    assert set(np.unique(X)) == {10.0}
    assert datasets.load("photographs", tmp_path).X.shape[1] == 256 * 256


def test_openml(server, tmp_path, monkeypatch):
    """A set of OpenML, whose md5 scikit-learn verifies."""
    arff = b"@RELATION shuttle\n@ATTRIBUTE A1 NUMERIC\n@ATTRIBUTE A2 NUMERIC\n@ATTRIBUTE class {1,2}\n@DATA\n50,21,2\n37,0,1\n"
    about = {
        "data_set_description": {
            "id": "1",
            "name": "shuttle",
            "version": "1",
            "format": "ARFF",
            "file_id": "9",
            "url": f"{server.url}/file.arff",
            "status": "active",
            "description": "",
            "default_target_attribute": "class",
            "md5_checksum": hashlib.md5(arff).hexdigest(),
        }
    }
    kinds = (("A1", "numeric", "false"), ("A2", "numeric", "false"), ("class", "nominal", "true"))
    features = {
        "data_features": {
            "feature": [
                {
                    "index": str(i),
                    "name": name,
                    "data_type": kind,
                    "is_target": target,
                    "is_ignore": "false",
                    "is_row_identifier": "false",
                    "number_of_missing_values": "0",
                }
                for i, (name, kind, target) in enumerate(kinds)
            ]
        }
    }
    qualities = {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "2"}]}}
    found = {"data": {"dataset": [{"did": 1, "name": "shuttle", "version": 1, "status": "active"}]}}
    server.files |= {
        "data_version": json.dumps(found).encode(), "about": json.dumps(about).encode(), "features": json.dumps(features).encode(), "qualities": json.dumps(qualities).encode(), "file.arff": arff,
    }  # fmt: skip
    openml = importlib.import_module("sklearn.datasets._openml")
    for name, path in (
        ("_SEARCH_NAME", "list/{}/data_version"),
        ("_DATA_INFO", "{}/about"),
        ("_DATA_FEATURES", "{}/features"),
        ("_DATA_QUALITIES", "{}/qualities"),
    ):
        if not hasattr(openml, name):
            pytest.skip("this scikit-learn asks OpenML in another way")
        monkeypatch.setattr(openml, name, f"{server.url}/{path}")
    data = datasets.load("shuttle", tmp_path)
    np.testing.assert_array_equal(data.X, [[50, 21], [37, 0]])
    np.testing.assert_array_equal(data.y, [2, 1])
    asked = len(server.asked)
    np.testing.assert_array_equal(datasets.load("shuttle", tmp_path, download=False).X, data.X)
    assert len(server.asked) == asked


@pytest.mark.usefixtures("server")
def test_source_that_cannot_be_reached(tmp_path):
    with pytest.raises(OSError, match=r"'magic' could not .*magic04\.data.*put it at"):
        datasets.load("magic", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"allow the download, or fetch http"):
        datasets.load("magic", tmp_path, download=False)


def test_set_that_must_be_fetched_by_hand(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*co2\.npz.*its source asks who"):
        datasets.load("co2", tmp_path)


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
