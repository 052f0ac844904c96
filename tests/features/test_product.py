"""Products: the chosen columns, the kernel they stand for, and the promises of the features."""

import numpy as np
import pytest
from points import ball, gaussian, sphere
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tolerances import IDENTITY

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    ProductFeatures,
    RandomFeatureRidgeCV,
    TruncationWarning,
    Zonal,
)
from gzkcore.features.product import product_columns, product_features

PLACE_AND_TIME = [([0, 1, 2], Gaussian(0.5)), ([3, 4], Gaussian(0.1))]


def place_and_time(n, seed=0):
    return np.hstack([sphere(n, 3, seed=seed), sphere(n, 2, seed=seed + 1)])


def error_of(features, X):
    Z = features.transform(X)
    return np.abs(Z @ Z.T - features.kernel_(X)).max()


# ---- which columns


def test_columns_of_largest_energy():
    rng = np.random.default_rng(0)
    for n_parts in (1, 2, 3, 5):
        energies = [rng.random(7) ** 4 for _ in range(n_parts)]
        chosen = product_columns(energies, 100)
        outer = energies[0]
        for energy in energies[1:]:
            outer = np.multiply.outer(outer, energy)
        assert len(chosen) == min(100, 7**n_parts)
        assert len({tuple(row) for row in chosen.tolist()}) == len(chosen)
        np.testing.assert_array_equal(outer[tuple(chosen.T)], np.sort(outer.ravel())[::-1][:100])


def test_products_without_energy_are_left_out():
    assert product_columns([[1.0, 0.0], [2.0, 3.0]], 9).tolist() == [[0, 1], [0, 0]]
    assert product_columns([[0.0], [2.0]], 9).shape == (0, 2)


@pytest.mark.parametrize("n_parts", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 33])
def test_products_to_the_bit(n_parts, dtype, count):
    rng = np.random.default_rng(n_parts)
    parts = [rng.standard_normal((37, k + 2)).astype(dtype) for k in range(n_parts)]
    columns = np.column_stack([rng.integers(0, k + 2, count) for k in range(n_parts)])
    expected = np.ones((37, count), dtype=dtype)
    for part, index in zip(parts, columns.T, strict=True):
        expected *= part[:, index]
    value = product_features(parts, columns)
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, expected)


# ---- the features


@pytest.mark.parametrize(("parts", "X"), [
    (PLACE_AND_TIME, place_and_time(80)),
    ([([3, 4], Zonal(np.exp)), (slice(0, 3), Zonal(coefficients=[0.5, 0.5]))], None),
    ([(0, Gaussian(0.1)), ([1, 2], Gaussian(0.1))], ball(60, 3)),
    (Gaussian(0.05), ball(60, 4)),
    ([(slice(None), Gaussian(0.5))], sphere(60, 3)),
    ([([0, 1], Gaussian(0.1)), ([1, 2], Gaussian(0.1))], ball(60, 3)),
], ids=["place-time", "zonal", "line-plane", "columns", "one-part", "overlap"])  # fmt: skip
def test_exact_where_the_columns_suffice(parts, X):
    X = place_and_time(80) if X is None else X
    features = ProductFeatures(parts, 1500).fit(X)
    assert features.truncation_error_ <= IDENTITY["exact basis"]()
    assert error_of(features, X) <= IDENTITY["exact basis"]()
    assert features.n_effective_ <= features.transform(X).shape[1] == 1500


@pytest.mark.parametrize("basis", ["auto", "adapted"])
@pytest.mark.parametrize("n_components", [1, 7, 40])
def test_errors_are_what_is_told(basis, n_components):
    X = place_and_time(300)
    features = ProductFeatures(PLACE_AND_TIME, n_components, basis=basis).fit(X)
    Z = features.transform(X)
    assert Z.shape == (300, n_components)
    error = Z @ Z.T - features.kernel_(X)
    assert np.abs(error).max() <= features.truncation_error_
    assert np.abs(error).max() >= 0.99 * features.truncation_error_  # it is on the diagonal
    assert features.expected_error_ == pytest.approx(np.sqrt(np.mean(np.square(error))), rel=1e-6)
    assert features.n_effective_ == n_components


def test_one_part_is_that_part():
    X = ball(50, 3)
    one = ProductFeatures([([0, 1, 2], Gaussian(1.0))], 60).fit(X)
    other = GegenbauerFeatures(Gaussian(1.0), 60, basis="harmonic").fit(X)
    tolerance = IDENTITY["same kernel"]()  # made for another width, radial functions have others
    np.testing.assert_allclose(one.transform(X), other.transform(X), rtol=0, atol=tolerance)


def test_parts_are_no_wider_than_needed():
    features = ProductFeatures(PLACE_AND_TIME, 100).fit(place_and_time(50))
    widths = [part.n_features_out_ for part in features.parts_]
    assert (features.columns_.max(axis=0) + 1).tolist() == widths
    assert sum(widths) < 60


@pytest.mark.parametrize("basis", ["auto", "adapted"])
def test_parts_become_as_wide_as_needed(basis, monkeypatch):
    """A kernel of high degree, one that has few columns, and a start that is too narrow."""
    X = place_and_time(300)
    parts = [([0, 1, 2], Gaussian(20.0)), ([3, 4], Zonal(coefficients=[0.5, 0.3, 0.2]))]
    features = ProductFeatures(parts, 150, basis=basis, random_state=0)
    expected = clone(features).fit(X)
    monkeypatch.setattr("gzkcore.features.product._FIRST_WIDTH", 3)
    got = features.fit(X)
    np.testing.assert_array_equal(got.columns_, expected.columns_)
    tolerance = IDENTITY["exact basis"]()
    Z, other = got.transform(X), expected.transform(X)
    np.testing.assert_allclose(Z @ Z.T, other @ other.T, rtol=0, atol=tolerance)


def test_adapted_is_closer():
    """Months are few and places on a band: the data fill a small part of the domain."""
    X = place_and_time(400)
    X[:, :3] *= [1, 1, 0.2]
    X[:, :3] /= np.linalg.norm(X[:, :3], axis=1, keepdims=True)
    plain = ProductFeatures(PLACE_AND_TIME, 60).fit(X)
    adapted = ProductFeatures(PLACE_AND_TIME, 60, basis="adapted").fit(X)
    assert adapted.expected_error_ < 0.3 * plain.expected_error_


def test_points_beyond_warn_once():
    features = ProductFeatures([(0, Gaussian(1.0)), (1, Gaussian(1.0))], 30).fit(ball(50, 2))
    with pytest.warns(TruncationWarning, match="points at distance") as record:
        features.transform(np.full((2000, 2), [9.0, 0.0]))
    assert len(record) == 1


# ---- columns by name


def test_columns_by_name():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X = place_and_time(30)
    frame = pandas.DataFrame(X, columns=["x", "y", "z", "cos", "sin"])
    parts = [(["x", "y", "z"], Gaussian(0.5)), (["cos", "sin"], Gaussian(0.1))]
    features = ProductFeatures(parts, 50).fit(frame)
    expected = ProductFeatures(PLACE_AND_TIME, 50).fit(X).transform(X)
    np.testing.assert_array_equal(features.transform(frame), expected)
    with pytest.raises(ValueError, match=r"names column 'w', but X has the columns \['x', 'y'"):
        ProductFeatures([("w", "gaussian")], 50).fit(frame)


@pytest.mark.parametrize("columns", [[3, 4], slice(3, None), [-2, -1], np.array([3, 4]), (3, 4)])
def test_columns_by_number(columns):
    X = place_and_time(30)
    features = ProductFeatures([([0, 1, 2], Gaussian(0.5)), (columns, Gaussian(0.1))], 50).fit(X)
    expected = ProductFeatures(PLACE_AND_TIME, 50).fit(X).transform(X)
    np.testing.assert_array_equal(features.transform(X), expected)


# ---- parameters


def test_nested_parameters():
    given = Gaussian(1.0)
    features = ProductFeatures([(0, given), (1, "gaussian")])
    assert features.get_params()["kernel0__gamma"] == 1.0
    features.set_params(kernel0__gamma=3.0, kernel1__gamma=2.0, n_components=9)
    assert [kernel.gamma for _, kernel in features.parts] == [3.0, 2.0]
    assert features.n_components == 9
    assert given.gamma == 1.0  # what the user has is left alone
    features.set_params(kernel1=Zonal(np.exp))
    assert isinstance(features.get_params()["kernel1"], Zonal)
    with pytest.raises(ValueError, match="Invalid parameter 'kernel2'"):
        features.set_params(kernel2__gamma=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        features.set_params(kernel0__sigma=1.0)


def test_nested_parameters_of_one_kernel():
    features = ProductFeatures("gaussian").set_params(kernel__gamma=0.5)
    assert features.parts.gamma == 0.5
    assert features.kernel.get_params()["kernel__gamma"] == 0.5
    assert clone(features).get_params()["kernel__gamma"] == 0.5


def test_one_scale_for_each_part_by_cross_validation():
    X = place_and_time(400)
    y = np.sin(4 * X[:, 0]) * X[:, 3]
    grid = {"kernel0__gamma": [0.01, 1.0], "kernel1__gamma": [0.1, 30.0]}
    features = ProductFeatures(PLACE_AND_TIME, 60)
    model = RandomFeatureRidgeCV(features, kernel_grid=grid, cv=2).fit(X, y)
    assert model.best_params_["kernel0__gamma"] == 1.0
    assert model.best_params_["kernel1__gamma"] == 0.1
    assert [kernel.gamma for _, kernel in model.kernel_.parts] == [1.0, 0.1]
    best = ProductFeatures(model.kernel_.parts, 60)
    alone = RandomFeatureRidgeCV(best, cv=2).fit(X, y)
    assert model.best_score_ == pytest.approx(alone.best_score_, rel=1e-6)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=0, atol=1e-6)
    assert model.coef_.shape == (60,)


def test_grid_search():
    X = place_and_time(60)
    y = np.sin(3 * X[:, 0])
    pipeline = make_pipeline(ProductFeatures(PLACE_AND_TIME, 50), Ridge(1e-6))
    grid = {"productfeatures__kernel0__gamma": [1e-6, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_ == {"productfeatures__kernel0__gamma": 1.0}


# ---- bad input


@pytest.mark.parametrize(("parts", "message"), [
    ([], r"parts=\[\] must be a list of \(columns, kernel\)"),
    (3, r"parts=3 must be a list of \(columns, kernel\)"),
    ([(0, "gaussian", 1)], r"must be a list of \(columns, kernel\)"),
    ([(5, "gaussian")], r"part 0 has column 5, but X has n_features=5"),
    ([(0, "gaussian"), ([], "gaussian")], r"part 1 has no columns"),
    ([("x", "gaussian")], r"part 0 names column 'x', but X has no column names"),
    ([(0, "gauss")], r"kernel='gauss' is unknown"),
    ([(0, Gaussian(-1.0))], r"gamma=-1.0 is not usable"),
    ([([0, 1], Zonal(np.exp))], r"row 0 of X has norm .*, but this kernel is defined on"),
])  # fmt: skip
def test_bad_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        ProductFeatures(parts, 9).fit(place_and_time(9))


def test_bad_parameters():
    X = place_and_time(9)
    with pytest.raises(ValueError, match="basis='random' is unknown; use one of"):
        ProductFeatures(PLACE_AND_TIME, 9, basis="random").fit(X)
    with pytest.raises(ValueError, match="random_state=-1 is negative"):
        ProductFeatures(PLACE_AND_TIME, 9, random_state=-1).fit(X)
    with pytest.raises(ValueError, match="n_components=0 is too small"):
        ProductFeatures(PLACE_AND_TIME, 0).fit(X)
    with pytest.raises(ValueError, match=r"energies\[1\]=\[-1.0\] must be a list of finite"):
        product_columns([[1.0], [-1.0]], 3)
    with pytest.raises(ValueError, match="columns must be within the parts"):
        product_features([[[1.0]]], [[1]])


def test_one_row_far_out_costs_no_decomposition_of_zeros(monkeypatch):
    """It leaves the Gaussian nothing to expand on its column; with 68,672 powers that took 14 s."""
    sizes = []
    svd = np.linalg.svd
    monkeypatch.setattr(np.linalg, "svd", lambda a, **how: sizes.append(a.size) or svd(a, **how))
    X = gaussian(20, 2)
    X[3, 0] = 1e6
    with pytest.warns(TruncationWarning):
        ProductFeatures(Gaussian(1.0), 64).fit(X)
    assert max(sizes, default=0) < 1e5
