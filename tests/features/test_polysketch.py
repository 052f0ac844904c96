"""PolySketch: unbiased, of the variance that the recursion gives, the same dense and sparse."""

import math

import numpy as np
import pytest
from moments import assert_mean, assert_variance, estimates
from numpy.testing import assert_allclose
from points import ball, gaussian, sphere, with_constant
from scipy import sparse
from sklearn.base import clone
from tolerances import TWINS

from gzkcore import Gaussian, Laplacian, Polynomial, PolySketchFeatures, TruncationWarning
from gzkcore.features.polysketch import poly_sketch, poly_sketch_variance

SEEDS = 600


# ---- unbiased, and of the variance that is claimed


@pytest.mark.parametrize(
    ("degree", "n_components", "n_nonzeros"),
    [(1, 16, 4), (1, 21, 1), (2, 16, 1), (2, 21, 4), (3, 16, 4), (3, 21, 1), (4, 16, 1)],
)
def test_mean_and_variance(degree, n_components, n_nonzeros):
    kernel = Polynomial(degree, gamma=0.5, coef0=0.5)
    X, Y = sphere(50, 4), sphere(50, 4, seed=1)
    Y = (X + Y) / 2
    if degree == 1 and n_nonzeros > 1:
        n_components = 16  # places are apart in parts of one size
    features = PolySketchFeatures(kernel, n_components, n_nonzeros=n_nonzeros)
    values = estimates(features, X, Y, SEEDS)
    k = np.diag(kernel(X, Y))
    assert_mean(values, k)
    width = clone(features).fit(X).trees_[0].node_signs.shape[2]
    rows = zip(with_constant(X, kernel), with_constant(Y, kernel), strict=True)
    each = [poly_sketch_variance(x, y, degree, n_components, width, n_nonzeros) for x, y in rows]
    assert_variance(values, k, each)


@pytest.mark.slow
def test_the_gaussian_is_a_sum_of_degrees():
    """The mean is the series up to the last degree, and each degree has its variance."""
    X, Y = ball(50, 4), ball(50, 4, seed=1)
    features = PolySketchFeatures(Gaussian(0.5), 40)
    values = estimates(features, X, Y, SEEDS)
    fitted = clone(features).fit(np.concatenate([X, Y]))
    assert sum(fitted.widths_) == 40
    assert fitted.degrees_[-1] >= 3
    mean, variance = np.zeros(50), np.zeros(50)
    envelope = np.exp(-0.5 * (np.square(X).sum(axis=1) + np.square(Y).sum(axis=1)))
    products = np.einsum("ij,ij->i", X, Y)
    for tree in fitted.trees_:
        N, weight = tree.degree, envelope / math.factorial(tree.degree)
        mean += weight * products**N
        if N > 0:
            m = tree.node_signs.shape[2]
            each = [poly_sketch_variance(x, y, N, tree.width, m) for x, y in zip(X, Y, strict=True)]
            variance += weight**2 * each
    assert_mean(values, mean)
    assert_variance(values, mean, variance)


def test_the_gaussian_series_goes_far_enough():
    X = ball(100, 3, radius=2.0)
    fitted = PolySketchFeatures(Gaussian(0.5), 500, random_state=0).fit(X)
    N = np.array(fitted.degrees_)
    norms = np.square(X).sum(axis=1)[:, None]
    kept = np.exp(-norms) * (norms**N / [math.factorial(j) for j in N.tolist()])
    assert (1 - kept.sum(axis=1)).max() <= 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_beyond_the_range_of_powers_stay_finite(dtype):
    """|x|^N overflows where exp(-|x|^2 / 2) underflows; their product does neither."""
    X = np.array([[40.0, 0.0], [28.0, 28.0], [3.0, 0.0], [0.0, 0.0]], dtype=dtype)
    features = PolySketchFeatures(Gaussian(0.5), 300, random_state=0)
    with pytest.warns(TruncationWarning, match="is enough for degrees up to 299, which miss 1 of"):
        Z = features.fit_transform(X)
    assert np.isfinite(Z).all()
    assert_allclose(Z[:2], 0, atol=1e-30)  # the degrees that they need are not there
    assert_allclose(Z[3], np.eye(300)[0], atol=1e-6)


def test_errors_grow_more_slowly_with_the_degree_than_those_of_one_convolution():
    """Per node about one more unit, where a TensorSketch triples."""
    x = np.ones(1000) / 1000**0.5
    growth = poly_sketch_variance(x, x, 16, 10**5, 10**5) / poly_sketch_variance(
        x, x, 8, 10**5, 10**5
    )
    assert growth < 3


# ---- promises of the features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("n_components", [1, 5, 16, 33])
def test_every_width_is_the_formula(degree, n_components, dtype):
    kernel = Polynomial(degree, gamma=0.5, coef0=0.3)
    X = sphere(37, 11)
    features = PolySketchFeatures(kernel, n_components, random_state=0).fit(X)
    (tree,) = features.trees_
    made = tree.hashes, tree.signs, tree.node_signs, tree.places
    rows = with_constant(X, kernel)
    expected = poly_sketch(rows, degree, *made, n_components)
    size = np.abs(rows).sum(axis=1).max() ** (2 * degree) * 16.0 ** (2 * len(tree.hashes))
    tolerance = TWINS["polysketch.poly_sketch"](dtype, length=size)
    for data in (X.astype(dtype), sparse.csr_array(X.astype(dtype))):
        Z = features.transform(data)
        assert Z.dtype == dtype
        np.testing.assert_allclose(Z, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kernel", [Polynomial(3), Gaussian(0.5)])
def test_entries_that_stand_twice_are_added(kernel):
    S = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3, 3])), shape=(2, 3)
    )
    features = PolySketchFeatures(kernel, 40, random_state=0).fit(np.eye(3))
    expected = features.transform([[4.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(features.transform(S), expected)
    assert S.nnz == 3


# ---- bad input


@pytest.mark.parametrize(("parameters", "message"), [
    ({"kernel": Laplacian()}, "is neither a polynomial nor a Gaussian kernel; use one of these"),
    ({"n_components": 0}, "n_components=0 is too small"),
    ({"n_nonzeros": 3}, "n_nonzeros=3 is not usable; use 1, 2, 4, 8 or 16"),
])  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        PolySketchFeatures(**parameters).fit(gaussian(9, 2))


def test_bad_functions():
    none = np.zeros((1, 2, 16), dtype=int)
    with pytest.raises(ValueError, match="pass rows, and a place in each sketch of each leaf"):
        poly_sketch([[1.0]], 1, [[[0, 1]]], [[[1, 1]]], none, none, 2)
    with pytest.raises(ValueError, match="places reach 2; use integers >= 0 and below 2"):
        poly_sketch([[1.0]], 1, [[[2]]], [[[1]]], none, none, 2)
    with pytest.raises(ValueError, match="pass the same for 2 leaves"):
        poly_sketch([[1.0]], 2, [[[0]]], [[[1]]], none, none, 2)
