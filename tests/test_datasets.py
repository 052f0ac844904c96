"""Data sets by name, and latitude and longitude to the sphere."""

import hashlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from gzkcore import datasets
from gzkcore.datasets import LatLonToSphere

# ---------------------------------------------------------------------------------------------
# LatLonToSphere

TWO_COLUMNS = "the check's data do not have two columns, which latitude and longitude are"
DEGREES = "the check's data are not all between -90 and 90"


@parametrize_with_checks(
    [LatLonToSphere()],
    expected_failed_checks=lambda _: {
        "check_dict_unchanged": TWO_COLUMNS,
        "check_dont_overwrite_parameters": TWO_COLUMNS,
        "check_dtype_object": TWO_COLUMNS,
        "check_estimators_dtypes": TWO_COLUMNS,
        "check_estimators_nan_inf": TWO_COLUMNS,
        "check_estimators_pickle": TWO_COLUMNS,
        "check_f_contiguous_array_estimator": TWO_COLUMNS,
        "check_fit2d_1sample": TWO_COLUMNS,
        "check_fit2d_predict1d": TWO_COLUMNS,
        "check_fit_check_is_fitted": DEGREES,
        "check_fit_idempotent": DEGREES,
        "check_fit_score_takes_y": TWO_COLUMNS,
        "check_methods_sample_order_invariance": TWO_COLUMNS,
        "check_methods_subset_invariance": TWO_COLUMNS,
        "check_n_features_in": DEGREES,
        "check_n_features_in_after_fitting": TWO_COLUMNS,
        "check_pipeline_consistency": TWO_COLUMNS,
        "check_positive_only_tag_during_fit": TWO_COLUMNS,
        "check_transformer_data_not_an_array": TWO_COLUMNS,
        "check_transformer_general": TWO_COLUMNS,
        "check_transformer_preserve_dtypes": TWO_COLUMNS,
        "check_transformers_unfitted_stateless": TWO_COLUMNS,
    },
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def degrees():
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(-90, 90, 200), rng.uniform(-180, 360, 200)])


def test_known_points():
    points = [[0, 0], [0, 90], [0, -180], [0, 270], [90, 17], [-90, 0], [45, 45]]
    h = np.sqrt(0.5)
    expected = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1], [0.5, 0.5, h]]
    np.testing.assert_allclose(LatLonToSphere().transform(points), expected, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_vectors_and_back(degrees, dtype):
    X = degrees.astype(dtype)
    Z = LatLonToSphere().fit_transform(X)
    assert Z.dtype == dtype
    assert Z.flags.c_contiguous
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, atol=4 * eps)
    back = LatLonToSphere().inverse_transform(Z)
    assert back.dtype == dtype
    # An angle from unit vectors with an error of eps is off by eps / cos(latitude) in longitude.
    turn = (back[:, 1] - degrees[:, 1] + 180) % 360 - 180
    np.testing.assert_allclose(back[:, 0], degrees[:, 0], atol=0.1 if dtype == np.float32 else 1e-6)
    assert np.max(np.abs(turn) * np.cos(np.radians(degrees[:, 0]))) < 60 * 8 * eps


def test_other_dtypes_become_float64():
    assert LatLonToSphere().transform([[10, 20]]).dtype == np.float64
    assert LatLonToSphere().transform(np.array([[10, 20]], np.int32)).dtype == np.float64


def test_layout_subsets_and_caller_data(degrees):
    expected = LatLonToSphere().transform(degrees)
    before = degrees.copy()
    for X in (np.asfortranarray(degrees), np.repeat(degrees, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(LatLonToSphere().transform(X), expected)
    np.testing.assert_array_equal(LatLonToSphere().transform(degrees[50:60]), expected[50:60])
    degrees.flags.writeable = False
    LatLonToSphere().fit_transform(degrees)
    np.testing.assert_array_equal(degrees, before)


def test_clone_and_pickle(degrees):
    fitted = LatLonToSphere().fit(degrees)
    expected = fitted.transform(degrees)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(degrees), expected)
    np.testing.assert_array_equal(clone(fitted).transform(degrees), expected)


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (3, 0, 90.5, r"row 3: latitude 90\.5 is outside -90 to 90 degrees; .*right way round"),
        (0, 0, -91.0, r"row 0: latitude -91 is outside"),
        (7, 1, 360.25, r"row 7: longitude 360\.25 is outside -180 to 360 degrees"),
        (9, 1, -180.5, r"row 9: longitude -180\.5 is outside"),
        (5, 0, np.nan, "contains NaN"),
        (5, 1, np.inf, "contains infinity"),
    ],
)
def test_out_of_range(degrees, row, column, value, message):
    degrees[row, column] = value
    with pytest.raises(ValueError, match=message):
        LatLonToSphere().fit(degrees)
    with pytest.raises(ValueError, match=message):
        LatLonToSphere().transform(degrees)


def test_bad_shapes():
    with pytest.raises(ValueError, match=r"X has 3 feature\(s\), but LatLonToSphere needs 2"):
        LatLonToSphere().fit(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="X has 2 columns, but a point on the sphere has 3"):
        LatLonToSphere().inverse_transform(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="row 1: the zero vector has no latitude"):
        LatLonToSphere().inverse_transform([[1.0, 0, 0], [0, 0, 0]])


def test_data_frames(degrees):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(degrees, columns=["lat", "lon"], index=np.arange(200) + 5)
    sphere = LatLonToSphere().set_output(transform="pandas").fit(frame)
    out = sphere.transform(frame)
    assert list(out.columns) == list(sphere.get_feature_names_out()) == ["x", "y", "z"]
    assert list(out.index) == list(frame.index)
    np.testing.assert_array_equal(out, LatLonToSphere().transform(degrees))
    with pytest.raises(ValueError, match="feature names should match"):
        sphere.transform(frame[["lon", "lat"]])


# ---------------------------------------------------------------------------------------------
# load


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
    with pytest.raises(
        FileNotFoundError, match=r"data_home and GZKCORE_DATA are not set.*put protein_casp\.npz"
    ):
        datasets.load("protein_casp")
    with pytest.raises(FileNotFoundError, match=r"there is no .*magic\.npz.*put magic\.npz"):
        datasets.load("magic", data_home=tmp_path)


@pytest.mark.parametrize("name", ["magic.npz", "../magic", "", None, 7])
def test_not_a_name(name):
    with pytest.raises(ValueError, match="is not the name of a data set"):
        datasets.load(name)


def test_altered_file(tmp_path):
    np.savez(tmp_path / "magic.npz", X=np.eye(3))
    with pytest.raises(
        ValueError, match=r"is not the 'magic' that gzkcore knows.*replace the file"
    ):
        datasets.load("magic", data_home=tmp_path)


def test_objects_are_refused(tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        datasets.load("mine", data_home=tmp_path)


@pytest.mark.parametrize("name", datasets.SETS)
def test_known_sets(name):
    home = os.environ.get("GZKCORE_DATA")
    if not home or not Path(home, f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in the folder GZKCORE_DATA")
    description, checksum = datasets.SETS[name]
    loaded = datasets.load(name)
    assert description == loaded.DESCR
    assert len(loaded) > 2
    assert hashlib.sha256(Path(home, f"{name}.npz").read_bytes()).hexdigest() == checksum
