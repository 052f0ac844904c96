"""Data sets by name."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from gzkcore import LatLonToSphere, datasets
from gzkcore.datasets import sets


def test_airports():
    airportsdata = pytest.importorskip("airportsdata")
    airports = datasets.load("airports")
    n = len(airports.elevation)
    assert n > 28_000
    assert n + airports.n_dropped == len(airportsdata.load("ICAO"))
    heathrow = airportsdata.load("ICAO")["EGLL"]
    i = np.flatnonzero(
        (airports.latitude == heathrow["lat"]) & (airports.longitude == heathrow["lon"])
    )
    assert airports.elevation[i] == pytest.approx(25, abs=3)  # 83 feet
    assert 4000 < airports.elevation.max() < 5000
    LatLonToSphere().fit(np.column_stack([airports.latitude, airports.longitude]))
    assert f"{airports.n_dropped} entries" in airports.DESCR


def test_airports_drops_what_cannot_be_used(monkeypatch):
    airportsdata = pytest.importorskip("airportsdata")
    good = {"lat": 1.0, "lon": 2.0, "elevation": 1000.0}
    entries = [good, good | {"elevation": ""}, good | {"elevation": 99999.0}, good | {"lat": 91.0}]
    monkeypatch.setattr(airportsdata, "load", lambda kind: dict(enumerate(entries)))
    airports = datasets.load("airports")
    assert airports.n_dropped == 3
    np.testing.assert_allclose(airports.elevation, [304.8])


def test_airports_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "airportsdata", None)
    with pytest.raises(ImportError, match=r"pip install 'gzkcore\[cli\]'"):
        datasets.load("airports")


def test_own_file(tmp_path, monkeypatch):
    np.savez(tmp_path / "mine.npz", X=np.eye(3), y=np.arange(3))
    np.testing.assert_array_equal(datasets.load("mine", data_home=tmp_path).X, np.eye(3))
    monkeypatch.setenv("GZKCORE_DATA", str(tmp_path))
    np.testing.assert_array_equal(datasets.load("mine").y, [0, 1, 2])


def test_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("GZKCORE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"there is no .*put protein_casp\.npz"):
        datasets.load("protein_casp")
    with pytest.raises(FileNotFoundError, match=r"there is no .*magic\.npz.*put magic\.npz"):
        datasets.load("magic", data_home=tmp_path, download=False)


@pytest.mark.parametrize("name", ["magic.npz", "../magic", "", None, 7])
def test_not_a_name(name):
    with pytest.raises(ValueError, match="is not the name of a data set"):
        datasets.load(name)


def test_altered_file(tmp_path):
    np.savez(tmp_path / "magic.npz", X=np.eye(3))
    with pytest.raises(ValueError, match=r"is not the 'magic' that .*replace the file"):
        datasets.load("magic", data_home=tmp_path)


def test_objects_are_refused(tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        datasets.load("mine", data_home=tmp_path)


@pytest.mark.parametrize("name", sets.CHECKSUMS)
def test_known_sets(name):
    home = os.environ.get("GZKCORE_DATA")
    if not home or not Path(home, f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in the folder GZKCORE_DATA")
    assert len(datasets.load(name)) > 2
    assert (
        hashlib.sha256(Path(home, f"{name}.npz").read_bytes()).hexdigest() == sets.CHECKSUMS[name]
    )


def test_same_set_by_the_name_of_the_paper(tmp_path, monkeypatch):
    monkeypatch.setitem(sets.SAME, "pendigits", "mine")
    np.savez(tmp_path / "mine.npz", X=np.eye(3))
    np.testing.assert_array_equal(datasets.load("pendigits", tmp_path).X, np.eye(3))


def test_files_that_hold_no_arrays_are_named(tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"no")
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in ("broken", "empty"):
        with pytest.raises(ValueError, match=rf"{name}\.npz is not a \.npz file of arrays"):
            datasets.load(name, tmp_path)
    np.savez(tmp_path / "own.npz", DESCR=np.ones(2), y=np.zeros(2))
    assert datasets.load("own", tmp_path).DESCR == "own.npz"
    with pytest.raises(FileNotFoundError, match=r"did you mean 'mushroom'\?"):
        datasets.load("mushrom", tmp_path)
