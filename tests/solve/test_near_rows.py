"""Regression from near rows: the formula of the reference, with every kernel, and of rows left out."""

import tracemalloc

import numpy as np
import pytest
from naming import named
from points import gaussian, sphere
from scipy import sparse

from gzkcore import reference
from gzkcore._util.threads import limit_threads
from gzkcore.kernels import (
    ArcCosine,
    Gaussian,
    Laplacian,
    Matern,
    NeuralTangent,
    Polynomial,
    Product,
    ProductMatern,
    RationalQuadratic,
    SphereHeat,
    Spherical,
    Sum,
    Transformed,
)
from gzkcore.solve import near_rows
from gzkcore.solve.near_rows import NearRows, scaled

formulas = reference.near_rows

ALL = slice(None)
PARTS = Sum([([0], Matern(2.5)), ([1], Gaussian(0.5))], [0.3, 1.0])
NO_TABLE = Matern(5.2, 0.5)  # in double precision
KERNELS = [
    Gaussian([0.5, 1.0, 2.0]), Laplacian(1.0), RationalQuadratic(0.7, 0.5), Spherical(3.0),
    *(Matern(nu, 0.5) for nu in (0.5, 0.8, 1.5, 2.5)),
    ArcCosine(1), NeuralTangent(2), SphereHeat(0.2), Polynomial(2, 0.1),
    ProductMatern(1.5, 0.5), ProductMatern(2.5, [0.5, 1.0, 2.0], [0, 1, 0]),
    Product([([0, 1], Matern(1.5)), ([2], Gaussian(0.5))]),
    Sum([([0, 2], Matern(1.5)), ([1], Gaussian(0.5))], [0.5, 2.0]),
    Sum(Matern(1.5)),
    Sum([(ALL, Product([([0], Laplacian(0.5)), ([1, 2], Matern(0.8))])), ([2], Gaussian(1.0))]),
    Product([([0, 1], PARTS), ([2, 1], PARTS), ([0], Matern(0.5, 3.0))]),
    Sum([(ALL, ArcCosine(1)), ([1], Polynomial(2, 0.1)), ([0, 2], NeuralTangent(1))]),
    Sum([(ALL, SphereHeat(0.2)), (ALL, SphereHeat(0.02)), ([0], Gaussian(0.5))]),
    Sum([(ALL, Matern(2.5)), (ALL, NO_TABLE)]), NO_TABLE,
    Transformed(Matern(1.5), [[1.0, 0.5, 0.0], [0.0, 1.0, -2.0]]),
]  # fmt: skip


def data(kernel, n=60):
    rows = sphere if "SphereHeat" in repr(kernel) else gaussian
    X, new = (rows(m, 3, seed=m) for m in (n, 7))
    return X, gaussian(n, 2, seed=1), np.random.default_rng(2).uniform(0.5, 2, n), new


def nearest(kernel, x, X, count):
    """Return the rows that are nearest in the scaled columns, sorted by all distances."""
    x, X = scaled(kernel, x[None]).tolist()[0], scaled(kernel, X).tolist()
    return formulas.nearest(x, X, [1.0] * len(x), count)


def expected(kernel, x, X, Y, weight, alpha, count):
    """Return the means and the variance of the reference at one row."""
    near = nearest(kernel, x, X, count)
    K = kernel(np.vstack([X[near], x]))
    found = [
        formulas.prediction_from_near_rows(
            lambda i, j: K[i, j], count, range(count), y[near], alpha, weight[near]
        )
        for y in Y.T
    ]
    return [mean for mean, _ in found], found[0][1]


def test_near_rows_are_those_of_the_reference():
    lengths = [0.5, 1.0, 2.0]
    X, _, _, new = data(Matern(1.5))
    model = NearRows(Matern(1.5, lengths), X, X, None, 0.1, 9)
    wanted = [formulas.nearest(x, X.tolist(), lengths, 9) for x in new.tolist()]
    np.testing.assert_array_equal(model.nearest(new, 9), wanted)


@pytest.mark.parametrize(("alpha", "off"), [(0.1, 1e-5), (1e-5, 1e-8)])  # float32 and float64
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_predictions_from_near_rows_are_the_reference(kernel, alpha, off):
    """The means and variances of prediction_from_near_rows, of weighted rows and two targets."""
    X, Y, weight, new = data(kernel)
    model = NearRows(kernel, X, Y, 1 / weight, alpha, 11)
    assert (model._one is None) == (alpha < 1e-4 and "nu=5.2" in repr(kernel))
    mean, variance = model.predict(new)
    for i, x in enumerate(new):
        means, wanted = expected(kernel, x, X, Y, weight, alpha, 11)
        np.testing.assert_allclose(mean[i], means, rtol=0, atol=off * (1 + np.abs(means).max()))
        assert variance[i] == pytest.approx(wanted, rel=10 * off)


@pytest.mark.parametrize("count", [1, 11, 59, 80])
def test_rows_that_are_left_out_are_predicted_from_the_others(count):
    kernel, alpha = Matern(1.5, 0.5), 0.1
    X, Y, weight, _ = data(kernel)
    rows = np.array([3, 17, 40])
    mean, variance = NearRows(kernel, X, Y, 1 / weight, alpha, count).left_out(rows)
    for i, row in enumerate(rows):
        others = np.delete(np.arange(60), row)
        given = X[others], Y[others], weight[others], alpha, min(count, 59)
        means, wanted = expected(kernel, X[row], *given)
        np.testing.assert_allclose(mean[i], means, atol=1e-5)
        assert variance[i] == pytest.approx(wanted - alpha + alpha / weight[row], rel=1e-5)


def test_a_row_with_many_copies_is_predicted_from_these():
    X, y = np.repeat(gaussian(4, 2), 30, axis=0), gaussian(120, 1)
    mean, _ = NearRows(Matern(1.5), X, y, None, 0.1, 9).left_out(np.arange(120))
    assert np.isfinite(mean).all()
    spread = np.array([y[start : start + 30].std() for start in range(0, 120, 30)])
    assert (
        np.abs(mean[::30, 0] - [y[s : s + 30].mean() for s in range(0, 120, 30)]) < spread
    ).all()


def test_bits_do_not_depend_on_threads_or_on_rows_beside():
    kernel = Matern(1.5, 0.5)
    X, Y, _, _ = data(kernel, 3000)
    new, found = gaussian(300, 3, seed=5), []
    for threads in (1, 2, 5):
        with limit_threads(threads):
            found.append(NearRows(kernel, X, Y, None, 0.1, 20).predict(new))
    model = NearRows(kernel, X, Y, None, 0.1, 20)
    found.append(
        [
            np.concatenate(parts)
            for parts in zip(*(model.predict(new[i : i + 1]) for i in range(300)), strict=True)
        ]
    )
    for mean, variance in found[1:]:
        np.testing.assert_array_equal(mean, found[0][0])
        np.testing.assert_array_equal(variance, found[0][1])


def test_sparse_rows_are_the_same_rows():
    kernel = Matern(1.5, 0.5)
    X, Y, _, new = data(kernel)
    X[X < 0], new[new < 0] = 0, 0
    whole = NearRows(kernel, X, Y, None, 0.1, 9).predict(new)
    few = NearRows(kernel, sparse.csr_array(X), Y, None, 0.1, 9).predict(sparse.csr_array(new))
    for found, wanted in zip(few, whole, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_rows_beyond_single_precision_are_far_from_all():
    kernel = Matern(1.5, 0.5)
    X, Y, _, _ = data(kernel)
    mean, variance = NearRows(kernel, X, Y, None, 0.1, 9).predict(
        np.array([[1e30, 0, 0], [1e300, 0, 0]])
    )
    np.testing.assert_allclose(mean, 0.0, atol=1e-30)
    np.testing.assert_allclose(variance, 1.1, rtol=1e-6)


def test_rows_that_are_far_out_are_near_to_one_another_once():
    """Squared distances beyond single precision would leave places without a row."""
    kernel = Matern(1.5, 0.5)
    X, Y, _, new = data(kernel)
    X[5:] += 1e30
    near = NearRows(kernel, X, Y, None, 0.1, 9)
    places = near.nearest(new, 9)
    assert [len({*row}) for row in places.tolist()] == [9] * len(new)
    assert np.isin(np.arange(5), places[0]).all()
    few = NearRows(kernel, X[:5], Y[:5], None, 0.1, 9).predict(new)
    for found, wanted in zip(near.predict(new), few, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert np.isfinite(near.left_out(np.arange(len(X)))[0]).all()


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.5, 0.5)], ids=named)
def test_noise_of_copies_is_no_less_than_rounding(kernel):
    X, Y, weight, new = data(kernel)
    X = np.repeat(X[:12], 5, axis=0)
    wanted = NearRows(kernel, X, Y, None, 0.0, 40).predict(new)
    for noise in (np.full(60, 1e-8), 1e-20 * weight):
        for found, value in zip(
            NearRows(kernel, X, Y, noise, 0.0, 40).predict(new), wanted, strict=True
        ):
            np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "alpha", "weight"),
    [(Sum([(ALL, Gaussian(0.01))], [1e6]), 1.0, 1.0), (Gaussian(0.01), 1e-2, 1e4)],
    ids=["large kernel", "large weights"],
)
def test_little_noise_is_computed_in_double_precision(kernel, alpha, weight):
    X, Y, _, new = data(kernel)
    found = NearRows(kernel, X, Y, np.full(60, 1 / weight), alpha, 60).predict(new)[0]
    K = kernel(X) + alpha / weight * np.eye(60)
    np.testing.assert_allclose(found, kernel(new, X) @ np.linalg.solve(K, Y), rtol=1e-5, atol=1e-6)


def test_many_targets_take_no_more_memory(monkeypatch):
    monkeypatch.setattr(near_rows, "NEAR_VALUES", 1 << 16)
    rng = np.random.default_rng(0)
    near = NearRows(Matern(1.5, 0.5), rng.random((300, 2)), rng.random((300, 200)), None, 0.1, 30)
    new = rng.random((300, 2))
    near.predict(new[:1])
    tracemalloc.start()
    near.predict(new)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3e6  # not the 14 MB of the targets of all near rows
