"""Kernel matrices in tiles: values, products with vectors, skipping, threads, what is refused."""

import numpy as np
import pytest
from naming import named
from points import gaussian, sphere
from tolerances import PRODUCTS

from gzkcore import KernelOperator, kernel_diagonal, kernel_matrix, kernel_product, reference
from gzkcore._util.threads import limit_threads
from gzkcore.kernels import (
    ArcCosine,
    DotProduct,
    Exponential,
    ExponentialDot,
    Gaussian,
    Laplacian,
    Matern,
    NeuralTangent,
    Polynomial,
    RationalQuadratic,
    Spherical,
)

formulas = reference.products

DTYPES = [np.float32, np.float64]


def kernels(dim):
    """Return a kernel of each profile, of lengths for standard normal rows."""
    length = dim**0.5
    every = [
        Gaussian(0.5 / dim),
        Gaussian(np.linspace(0.1, 1, dim) / dim),
        Exponential(1 / length),
        Laplacian(1 / dim),
        *(Matern(nu, length) for nu in (0.5, 0.8, 1.5, 2.5, 3.5, 9.5, np.inf)),
        RationalQuadratic(0.7, length),
        ExponentialDot(0.3 / dim),
        Polynomial(3, 1 / dim, 0.3),
        DotProduct([1, 0.5, 0.25, 0.1]),
        *(ArcCosine(order) for order in range(3)),
    ]
    return every + [Spherical(3.0)] * (dim <= 3)


def off(got, expected, K, V):
    """Return the largest error, in units of the largest sum of |k| |v|."""
    return np.abs(got - expected).max() / np.abs(np.abs(K) @ np.abs(V)).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 3, 30])
def test_products_are_those_of_the_matrix(dim, dtype):
    X, Y = gaussian(270, dim, seed=1), gaussian(300, dim, seed=2)
    limit = PRODUCTS["product"](dtype, 1 + np.square(X).sum(axis=1).max() ** 2)
    for kernel in kernels(dim):
        K, square = kernel(X, Y), kernel(X)
        for n, m, width in ((1, 1, 1), (1, 300, 3), (270, 1, 1), (270, 300, 1), (257, 290, 20)):
            V = gaussian(max(n, m), width, seed=3)
            got = KernelOperator(kernel, X[:n], Y[:m], dtype=dtype) @ V[:m]
            assert off(got, K[:n, :m] @ V[:m], K[:n, :m], V[:m]) <= limit, (kernel, n, m, width)
            got = KernelOperator(kernel, X[:n], dtype=dtype) @ V[:n]
            assert off(got, square[:n, :n] @ V[:n], square[:n, :n], V[:n]) <= limit, (kernel, n)


@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_matrices_and_products_are_the_formula(name):
    kernel = {"gaussian": Gaussian(0.7), "matern": Matern(1.5, 0.8)}[name]
    formula = {
        "gaussian": lambda x, y: reference.kernels.gaussian(x, y, 0.7),
        "matern": lambda x, y: reference.kernels.matern(x, y, 1.5, 0.8),
    }[name]
    X, Y, V = gaussian(7, 3, seed=1), gaussian(5, 3, seed=2), gaussian(5, 2, seed=3)
    tolerance = PRODUCTS["product"](length=100)
    for ours, theirs in [
        (kernel_matrix(kernel, X, Y), formulas.kernel_matrix(formula, X, Y)),
        (kernel_matrix(kernel, X), formulas.kernel_matrix(formula, X)),
        (kernel_diagonal(kernel, X), formulas.kernel_diagonal(formula, X)),
        (kernel_product(kernel, X, Y, V), formulas.kernel_product(formula, X, Y, V)),
        (KernelOperator(kernel, X).diagonal(), formulas.kernel_diagonal(formula, X)),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 33, 64])
def test_any_number_of_vectors(width, dtype):
    X, V = gaussian(300, 3), gaussian(300, width, seed=1)
    K = Matern(1.5)(X)
    got = KernelOperator(Matern(1.5), X, dtype=dtype) @ V
    assert off(got, K @ V, K, V) <= PRODUCTS["product"](dtype, 100)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("others", [None, 900])
@pytest.mark.parametrize("width", [1, 3])
def test_threads_change_no_bit(others, width, dtype):
    X = gaussian(3000, 3)
    Y = None if others is None else gaussian(others, 3, seed=1)
    V = gaussian(len(X) if Y is None else len(Y), width, seed=2)
    operator = KernelOperator(Matern(1.5, 0.3), X, Y, dtype=dtype)
    found = []
    for threads in (1, 2, 5):
        with limit_threads(threads):
            found.append(operator @ V)
    assert all((each == found[0]).all() for each in found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kernel",
    [Gaussian(60.0), Laplacian(9.0), Exponential(20.0), Matern(1.5, 0.05), Matern(2.5, 0.05)],
    ids=named,
)
def test_tiles_beyond_the_reach_are_skipped(kernel, dtype):
    """The error stays below tol times the sum of |V|, which is what a tile may hold at most."""
    X, V = 3 * gaussian(4000, 2), gaussian(4000, 1, seed=1)
    whole = KernelOperator(kernel, X, dtype=dtype, tol=0)
    exact = whole @ V
    before = whole.n_tiles
    for tol in (1e-5, 1e-2):
        operator = KernelOperator(kernel, X, dtype=dtype, tol=tol)
        rounding = PRODUCTS["product"](dtype, 1e4) * 20
        assert np.abs(operator @ V - exact).max() <= tol * np.abs(V).sum() + rounding
        assert operator.n_tiles < before
        before = operator.n_tiles


def test_a_tile_that_is_skipped_holds_less_than_the_bound():
    """Two far clusters: what is left out is what the kernel is there, and no more than tol."""
    X = np.concatenate([gaussian(256, 2, 0.01), gaussian(256, 2, 0.01, seed=1) + 3.0])
    kernel, V = Gaussian(1.0), np.ones(512)
    value = float(kernel(X[:1], X[-1:])[0, 0])
    kept = KernelOperator(kernel, X, tol=value / 3) @ V
    left = KernelOperator(kernel, X, tol=value * 3) @ V
    assert np.abs(kept - kernel(X) @ V).max() < 1e-10
    assert 0 < np.abs(kept - left).max() <= 3 * value * 256


@pytest.mark.parametrize("dtype", DTYPES)
def test_awkward_rows(dtype):
    """Duplicates, a constant column, rows 1e4 from the origin, one row far from all others."""
    X = gaussian(600, 3)
    X[:, 1] = 0.7
    X[:300] = X[0]
    V = gaussian(600, 2, seed=1)
    far = np.round(X * 2**12) / 2**12 + 2.0**14
    outlying = np.concatenate([X, [[1e4, -1e4, 1e4]]])
    for rows in (X, far, outlying):
        vectors = np.resize(V, (len(rows), 2))
        for kernel in (Gaussian(0.5), Matern(0.5), Matern(1.5), Matern(2.5), Laplacian(0.3)):
            K = kernel(rows - rows.mean(axis=0))
            got = KernelOperator(kernel, rows, dtype=dtype) @ vectors
            assert off(got, K @ vectors, K, vectors) <= PRODUCTS["product"](dtype, 1e4), kernel


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5), Matern(1.5), Matern(2.5), Matern(4.5), Laplacian(0.5)], ids=named
)
def test_single_entries_are_right_to_a_few_units(kernel):
    """What conjugate gradients need of float32: each entry, not only the sum."""
    X, Y = gaussian(500, 3, 0.5, seed=1), gaussian(64, 3, 0.5, seed=2)
    got = KernelOperator(kernel, X, Y, dtype=np.float32) @ np.eye(64)
    assert np.abs(got - kernel(X, Y)).max() <= PRODUCTS["entry"](np.float32)


def test_it_is_a_linear_operator():
    X, Y = gaussian(40, 3), gaussian(30, 3, seed=1)
    operator, K = KernelOperator(Gaussian(0.5), X, Y), Gaussian(0.5)(X, Y)
    V, W = gaussian(30, 2), gaussian(40, 2)
    np.testing.assert_allclose(operator @ V, K @ V, atol=1e-13)
    np.testing.assert_allclose(operator.T @ W, K.T @ W, atol=1e-13)
    np.testing.assert_allclose(operator.matvec(V[:, 0]), K @ V[:, 0], atol=1e-13)
    np.testing.assert_allclose((2 * operator) @ V, 2 * K @ V, atol=1e-13)
    square = KernelOperator(Gaussian(0.5), X)
    np.testing.assert_array_equal(square.T @ W, square @ W)


def test_float32_rows_are_multiplied_in_float32():
    X = gaussian(300, 3)
    operators = [KernelOperator(Gaussian(0.5), X.astype(dtype)) for dtype in DTYPES]
    assert [operator.arithmetic for operator in operators] == DTYPES
    assert all((operator @ X).dtype == np.float64 for operator in operators)


def test_what_is_refused():
    X, V = gaussian(9, 3), np.ones(9)
    V[4] = np.nan
    with pytest.raises(ValueError, match=r"V contains NaN. The first is in row 4"):
        KernelOperator(Gaussian(0.5), X) @ V
    bad = X.copy()
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN. The first is in row 2, column 1"):
        KernelOperator(Gaussian(0.5), bad)
    with pytest.raises(ValueError, match="dimension mismatch"):
        KernelOperator(Gaussian(0.5), X) @ np.ones(8)
    with pytest.raises(ValueError, match="gamma='scale' is not a number yet"):
        KernelOperator(Gaussian(), X)
    with pytest.raises(ValueError, match="Y has 2 columns, but X has 3"):
        KernelOperator(Gaussian(0.5), X, X[:, :2])
    with pytest.raises(ValueError, match="has a diagonal"):
        KernelOperator(Gaussian(0.5), X, X[:4]).diagonal()


def test_nothing_of_the_callers_is_written_to():
    X, V = gaussian(300, 3), gaussian(300, 3, seed=1)
    for array in (X, V):
        array.setflags(write=False)
    KernelOperator(Matern(1.5), X) @ V
    KernelOperator(NeuralTangent(), sphere(300, 3)) @ V
