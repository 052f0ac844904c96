"""The globe: latitude and longitude as points on the unit sphere."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks

from gzkcore import LatLonToSphere


@pytest.fixture
def in_range(monkeypatch):
    """Let scikit-learn make its data for two columns between -90 and 90, and no others."""
    suited = estimator_checks._enforce_estimator_tags_X

    def to_degrees(estimator, X, *others, **options):
        return (suited(estimator, X, *others, **options)[:, :2] + 90) % 180 - 90

    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_X", to_degrees)


@estimator_checks.parametrize_with_checks([LatLonToSphere()])
@pytest.mark.usefixtures("in_range")
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


@pytest.mark.parametrize(("row", "column", "value", "message"), [
    (3, 0, 90.5, r"row 3: latitude 90\.5 is outside -90 to 90 degrees; .*right way round"),
    (0, 0, -91.0, r"row 0: latitude -91 is outside"),
    (7, 1, 360.25, r"row 7: longitude 360\.25 is outside -180 to 360 degrees"),
    (9, 1, -180.5, r"row 9: longitude -180\.5 is outside"),
    (5, 0, np.nan, "contains NaN"),
    (5, 1, np.inf, "contains infinity"),
])  # fmt: skip
def test_out_of_range(degrees, row, column, value, message):
    degrees[row, column] = value
    with pytest.raises(ValueError, match=message):
        LatLonToSphere().fit(degrees)
    with pytest.raises(ValueError, match=message):
        LatLonToSphere().transform(degrees)


def test_text_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="'40 N' in column 0; pass degrees as numbers, neg"):
        LatLonToSphere().fit([["40 N", "74 W"]])


def test_bad_shapes():
    with pytest.raises(ValueError, match=r"X has n_features=3, but LatLonToSphere needs 2"):
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
