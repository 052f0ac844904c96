"""Sketches: unbiased and of the variance that is claimed, at any width, dense and sparse."""

import numpy as np
import pytest
from moments import assert_mean, assert_variance, estimates
from points import gaussian, sphere, with_constant
from scipy import sparse
from sklearn.base import clone
from tolerances import TWINS

from gzkcore import CountSketch, Gaussian, Polynomial, TensorSketchFeatures, reference
from gzkcore.features.sketch import count_sketch, tensor_sketch, tensor_sketch_variance

SEEDS = 600


def variance(features, x, y):
    """Of an estimate of the polynomial kernel at rows with their constant."""
    widths = np.array(features.widths_)
    parts = [tensor_sketch_variance(x, y, features.kernel_.degree, int(m)) for m in widths]
    return np.square(widths / widths.sum()) @ parts


# ---- the formulas


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8])
def test_a_tensor_sketch_is_a_sketch_of_the_outer_product(width):
    rng = np.random.default_rng(width)
    x = rng.standard_normal(5)
    hashes, signs = rng.integers(0, width, (3, 5)), rng.choice([-1, 1], (3, 5))
    expected = np.zeros(width)
    for i in np.ndindex(5, 5, 5):
        where, sign = hashes[range(3), i].sum() % width, signs[range(3), i].prod()
        expected[where] += sign * x[list(i)].prod()
    (value,) = reference.sketch.tensor_sketch([x], hashes.tolist(), signs.tolist(), width)
    tolerance = TWINS["sketch.tensor_sketch"](length=np.abs(x).sum() ** 6)
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)


def test_the_bound_of_the_variance():
    """(3^p - 1) |x|^2p |y|^2p / m, of Avron, Nguyen and Woodruff, is near where x = y is flat."""
    x = np.ones(1000) / 1000**0.5
    for degree in (1, 2, 3, 5):
        ratio = tensor_sketch_variance(x, x, degree, 10**6) / ((3**degree - 1) / 10**6)
        assert ratio < 1
        if degree <= 2:
            assert ratio > 0.7


# ---- unbiased, and of the variance that is claimed


@pytest.mark.parametrize("n_nonzeros", [1, 3])
def test_count_sketch_moments(n_nonzeros):
    X, Y = sphere(50, 6), sphere(50, 6, seed=1)
    values = estimates(CountSketch(12, n_nonzeros=n_nonzeros), X, Y, SEEDS)
    k = np.einsum("ij,ij->i", X, Y)
    assert_mean(values, k)
    each = [tensor_sketch_variance(x, y, 1, 12) for x, y in zip(X, Y, strict=True)]
    assert_variance(values, k, each)


@pytest.mark.parametrize("n_components", [1, 21])
@pytest.mark.parametrize(
    "kernel",
    [Polynomial(1, coef0=0.0), Polynomial(2, 0.5), Polynomial(3, coef0=0.2), Polynomial(4)],
)
def test_mean_and_variance(kernel, n_components):
    X, Y = sphere(50, 4), sphere(50, 4, seed=1)
    Y = (X + Y) / 2
    features = TensorSketchFeatures(kernel, n_components)
    values = estimates(features, X, Y, SEEDS)
    k = np.diag(kernel(X, Y))
    assert_mean(values, k)
    fitted = clone(features).fit(X)
    rows = zip(with_constant(X, kernel), with_constant(Y, kernel), strict=True)
    assert_variance(values, k, [variance(fitted, x, y) for x, y in rows])


# ---- promises of the features


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_components", [1, 2, 3, 8, 64, 100, 255])
def test_every_width_is_the_formula(n_components, dtype):
    kernel = Polynomial(3, gamma=0.5, coef0=2.0)
    X = sphere(37, 11)
    features = TensorSketchFeatures(kernel, n_components, random_state=0).fit(X)
    made = zip(features.hashes_, features.signs_, features.widths_, strict=True)
    rows = with_constant(X, kernel)
    parts = [(m / n_components) ** 0.5 * tensor_sketch(rows, h, s, m) for h, s, m in made]
    tolerance = TWINS["sketch.tensor_sketch"](dtype, length=np.abs(rows).sum(axis=1).max() ** 6)
    for data in (X.astype(dtype), sparse.csr_array(X.astype(dtype))):
        Z = features.transform(data)
        assert Z.dtype == dtype
        np.testing.assert_allclose(Z, np.hstack(parts), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("columns", "degree", "width"),
    [
        (3, 2, 8), (9, 3, 64), (2, 5, 1), (5, 1, 64),  # all products of columns are added
        (9, 8, 256), (19, 7, 64), (63, 8, 512),  # those of some factors; the last group is smaller
        (63, 3, 64), (200, 2, 128), (300, 3, 4),  # one factor at a time
    ],
)  # fmt: skip
def test_factors_together_and_apart_are_the_convolution(columns, degree, width, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((37, columns)) * (rng.random((37, columns)) < 0.7)
    features = TensorSketchFeatures(Polynomial(degree, 1.0), width, random_state=0).fit(X)
    rows, spectrum = with_constant(X, features.kernel_), 1.0
    for places, flips in zip(features.hashes_[0], features.signs_[0], strict=True):
        sketch = np.zeros((width, 37))
        np.add.at(sketch, places, (rows * flips).T)
        spectrum = spectrum * np.fft.fft(sketch, axis=0)
    expected = np.fft.ifft(spectrum, axis=0).real.T
    # Rounding is a share of the largest spectrum that there may be.
    largest = np.square(rows).sum(axis=1).max() ** degree
    tolerance = TWINS["sketch.tensor_sketch"](dtype, length=largest)
    dense, sparsely = (
        features.transform(kind(X.astype(dtype))) for kind in (np.array, sparse.csr_array)
    )
    np.testing.assert_allclose(dense, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(sparsely, expected, rtol=0, atol=tolerance)


def test_a_large_row_leaves_its_neighbours_alone():
    X = sphere(20, 5)
    features = TensorSketchFeatures(n_components=64, random_state=0).fit(X)
    Z = features.transform(X)
    X[3] *= 1e30
    np.testing.assert_array_equal(np.delete(features.transform(X), 3, axis=0), np.delete(Z, 3, 0))


def test_osnap_has_its_places_apart():
    features = CountSketch(31, n_nonzeros=4, random_state=0).fit(np.ones((1, 50)))
    assert all(len(set(column)) == 4 for column in features.hashes_.T)
    np.testing.assert_array_equal(
        features.transform(np.eye(50)),
        count_sketch(np.eye(50), features.hashes_, features.signs_, 31),
    )


def test_rows_of_zeros_and_entries_that_stand_twice():
    S = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3, 3])), shape=(2, 3)
    )
    for features in (CountSketch(40, random_state=0), TensorSketchFeatures("polynomial", 40)):
        features.fit(np.eye(3))
        expected = features.transform([[4.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
        np.testing.assert_array_equal(features.transform(S), expected)


# ---- bad input


@pytest.mark.parametrize(("features", "message"), [
    (TensorSketchFeatures(Gaussian()), "is not a polynomial kernel, .* PolySketch"),
    (TensorSketchFeatures(n_components=0), "n_components=0 is too small"),
    (TensorSketchFeatures(Polynomial(0)), "degree=0 is too small"),
    (CountSketch(0), "n_components=0 is too small"),
    (CountSketch(3, n_nonzeros=4), "n_nonzeros=4 is more than n_components=3"),
])  # fmt: skip
def test_bad_parameters(features, message):
    with pytest.raises(ValueError, match=message):
        features.fit(gaussian(9, 2))


@pytest.mark.parametrize(("args", "message"), [
    (([[1.0]], [[0]], [[1]], 3), "n_components=3 is not a power of two; use 4"),
    (([[1.0]], [[2]], [[1]], 2), "hashes has places from 2 to 2; use integers >= 0 and below 2"),
    (([[1.0]], [[0, 1]], [[1, 1]], 2), "but X has 1 column; pass a row or more of 1 places"),
    (([[1.0]], [[0, 1]], [[1]], 2), "and hashes and signs of one shape"),
])  # fmt: skip
def test_bad_functions(args, message):
    with pytest.raises(ValueError, match=message):
        tensor_sketch(*args)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(("changed", "message"), [
    (lambda hashes, _: hashes.flat.__setitem__(4, 16), "hashes_ holds 16.*fit again"),
    (lambda hashes, _: hashes.flat.__setitem__(9, -1), "hashes_ holds -1.*fit again"),
    (lambda hashes, features: setattr(features, "hashes_", hashes[:, :4].copy()), "fit again"),
])  # fmt: skip
def test_places_are_looked_at_when_they_are_gone_to(kind, changed, message):
    X = kind(np.ones((3, 5)))
    features = CountSketch(16, n_nonzeros=2, random_state=0).fit(X)
    changed(features.hashes_, features)
    with pytest.raises(ValueError, match=message):
        features.transform(X)
