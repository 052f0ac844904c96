"""The downloads of the papers' data sets, from a server on this machine."""

import hashlib
import importlib
import io
import json
import sys
import tarfile
import zipfile

import numpy as np
import pytest
from scipy.io import netcdf_file
from served import serving
from trees import ROOT

if not (ROOT / "asv_bench" / "papers").is_dir():
    pytest.skip("there are no benchmarks here", allow_module_level=True)
sys.path.append(str(ROOT / "asv_bench"))

from papers import downloads


@pytest.fixture
def server(monkeypatch):
    """Let all sets come from a server on this machine."""
    pytest.importorskip("pooch", reason="the extra `data` is not installed")
    monkeypatch.delenv("GZKCORE_DATA", raising=False)
    with serving() as running:
        for name in ("BERKELEY", "SIPI"):
            file = getattr(downloads, name).rpartition("/")[2]
            monkeypatch.setattr(downloads, name, f"{running.url}/{file}")
        file = downloads.CIFAR[0].rpartition("/")[2]
        monkeypatch.setattr(downloads, "CIFAR", (f"{running.url}/{file}", downloads.CIFAR[1]))
        yield running


def test_published_checksum(server, tmp_path):
    server.files["cifar-10-binary.tar.gz"] = b"something else"
    with pytest.raises(ValueError, match=r"hash of downloaded file .* does not match"):
        downloads.load_set("cifar-10", tmp_path, True)


def test_cifar(server, tmp_path, monkeypatch):
    records = np.arange(2 * 3073, dtype=np.uint16).astype(np.uint8).reshape(2, 3073)
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, rows in (("data_batch_1.bin", records), ("test_batch.bin", records[:1])):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = rows.nbytes
            archive.addfile(info, io.BytesIO(rows.tobytes()))
    server.files["cifar-10-binary.tar.gz"] = file.getvalue()
    published = f"md5:{hashlib.md5(file.getvalue()).hexdigest()}"
    monkeypatch.setattr(downloads, "CIFAR", (downloads.CIFAR[0], published))
    for _ in range(2):
        data = downloads.load_set("cifar-10", tmp_path, True)
    np.testing.assert_array_equal(data.X_train, records[:, 1:])
    np.testing.assert_array_equal(data.y_test, records[:1, 0])
    assert len(server.asked) == 1


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
    data = downloads.load_set("climate", tmp_path, True)
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
    X = downloads.load_set("natural-images", tmp_path, True).X
    assert X.shape == (1, 512 * 512)
    assert set(np.unique(X)) == {10.0}
    assert downloads.load_set("photographs", tmp_path, True).X.shape[1] == 256 * 256


def test_openml(server, tmp_path, monkeypatch):
    """A set of OpenML, whose md5 scikit-learn verifies, is kept as a file that `load` reads."""
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
    data = downloads.load_set("shuttle", tmp_path, True)
    np.testing.assert_array_equal(data.X, [[50, 21], [37, 0]])
    np.testing.assert_array_equal(data.y, [2, 1])
    asked = len(server.asked)
    np.testing.assert_array_equal(downloads.load_set("shuttle", tmp_path, False).X, data.X)
    assert len(server.asked) == asked


def test_set_that_must_be_fetched_by_hand(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"its source asks who.*put co2\.npz"):
        downloads.load_set("co2", tmp_path, True)


def test_a_file_in_the_folder_comes_first(tmp_path):
    np.savez(tmp_path / "census.npz", X=np.eye(2), y=np.arange(2))
    census = downloads.load_set("census", tmp_path, False)
    np.testing.assert_array_equal(census.X, np.eye(2))
    assert "by census block" in census.DESCR
    with pytest.raises(FileNotFoundError, match="faces-ar"):
        downloads.load_set("faces-ar", tmp_path, True)
