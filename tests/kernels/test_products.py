"""Kernel matrices in tiles: values, products with vectors, skipping, threads, what is refused."""

import functools
import pickle
import subprocess
import sys

import numpy as np
import pytest
from naming import named
from points import gaussian, sphere
from scipy.spatial.distance import cdist
from tolerances import PRODUCTS

from gzkcore import (
    KernelOperator,
    kernel_diagonal,
    kernel_matrix,
    kernel_product,
    learn_kernel,
    reference,
)
from gzkcore._compiled import neighbours as _neighbours
from gzkcore._util.config import show_config
from gzkcore._util.threads import limit_threads
from gzkcore.kernels import (
    ArcCosine,
    DotProduct,
    Exponential,
    ExponentialDot,
    Gaussian,
    GeneralizedZonal,
    Laplacian,
    Matern,
    NeuralTangent,
    Polynomial,
    Product,
    ProductMatern,
    RationalQuadratic,
    SphereHeat,
    SphereMatern,
    Spherical,
    Sum,
    Zonal,
)
from gzkcore.kernels.products import Pairs, Runs, block_matrices, slope_matrix
from gzkcore.kernels.tile_rows import tile_order

formulas = reference.products

DTYPES = [np.float32, np.float64]


def one_and(t):
    return np.stack([np.ones_like(t), t], axis=1)


def generalized():
    """Return a kernel that tiles have no form of."""
    return GeneralizedZonal(one_and)


def groups_of(dim):
    """Put the last two columns into one group."""
    return np.minimum(np.arange(dim), max(dim - 2, 0))


def kernels(dim):
    """Return a kernel of each profile, of lengths for standard normal rows."""
    length = dim**0.5
    every = [
        Gaussian(0.5 / dim),
        Gaussian(np.linspace(0.1, 1, dim) / dim),
        Exponential(1 / length),
        Laplacian(1 / dim),
        *(Matern(nu, length) for nu in (0.5, 0.8, 1.5, 2.5, 3.5, 9.5, np.inf)),
        *(ProductMatern(nu, length, groups_of(dim)) for nu in (1.5, 2.5)),
        ProductMatern(1.5, np.linspace(1, 2, dim) * dim),
        RationalQuadratic(0.7, length),
        ExponentialDot(0.3 / dim),
        RationalQuadratic(0.1, length),
        Polynomial(3, 1 / dim, 0.3),
        DotProduct([1, 0.5, 0.25, 0.1]),
    ]
    if dim == 3:
        every += [
            Spherical(3.0),
            Product([([0, 1], Gaussian(0.5)), ([2], Matern(1.5))]),
            Product([([0], Gaussian(0.5)), ([2, 1], Gaussian(1.5)), ([1], Polynomial(2, 0.3))]),
            Product([([0, 2], ArcCosine(1)), ([1], Laplacian(0.5))]),
            Sum(
                [([0, 1], Gaussian(0.5)), ([2], Matern(1.5)), ([0, 2], ArcCosine(1))],
                [2, 0.5, 0.1],
            ),
            generalized(),
        ]
    return every


def zonals():
    """Return kernels of angles."""
    return [
        *(ArcCosine(order) for order in range(3)),
        NeuralTangent(2),
        NeuralTangent(5),
        Zonal(np.exp),
        Zonal(coefficients=[0.5, 0.25, 0.25]),
        SphereHeat(0.2),
        SphereMatern(4.5, 0.7),
    ]


def exact_angles(X, Y, kernel):
    """Return the kernel of unit rows by angles that keep small differences."""
    apart = np.linalg.norm(X[:, None] - Y[None], axis=2)
    theta = 2 * np.arcsin(np.minimum(apart / 2, 1.0))
    return kernel.at_angles(theta, X.shape[1])


def off(got, expected, K, V):
    """Return the largest error, in units of the largest sum of |k| |v|."""
    return np.abs(got - expected).max() / np.abs(np.abs(K) @ np.abs(V)).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 3, 30])
def test_products_are_those_of_the_matrix(dim, dtype):
    X, Y = gaussian(260, dim, seed=1), gaussian(270, dim, seed=2)
    limit = PRODUCTS["product"](dtype, 1 + np.square(X).sum(axis=1).max() ** 2)
    for kernel in kernels(dim):
        K, square = kernel(X, Y), kernel(X)
        for n, m, width in ((1, 1, 1), (1, 270, 3), (260, 1, 1), (257, 270, 20)):
            V = gaussian(max(n, m), width, seed=3)
            got = KernelOperator(kernel, X[:n], Y[:m], dtype=dtype) @ V[:m]
            assert off(got, K[:n, :m] @ V[:m], K[:n, :m], V[:m]) <= limit, (kernel, n, m, width)
            got = KernelOperator(kernel, X[:n], dtype=dtype) @ V[:n]
            assert off(got, square[:n, :n] @ V[:n], square[:n, :n], V[:n]) <= limit, (kernel, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [2, 3, 30])
def test_kernels_of_angles(dim, dtype):
    """Rows that nearly agree, where 1 - <x, y> has lost its digits, and rows that are opposite."""
    X = sphere(300, dim)
    X[1] = X[0]
    X[2] = X[0] + 1e-7 * X[3]
    X[4] = X[0] + 1e-3 * X[3]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[5], V = -X[0], gaussian(300, 2, seed=3)
    for kernel in zonals():
        K = exact_angles(X, X, kernel)
        for rows, others in ((X, None), (X[:77], X)):
            got = KernelOperator(kernel, rows, others, dtype=dtype) @ V
            expected = K[: len(rows)] @ V
            apart = np.ones(len(rows), bool)
            apart[[0, 1, 2, 4, 5]] = False  # those with a row opposite to them
            limit = PRODUCTS["angle"](dtype)
            assert off(got[apart], expected[apart], K, V) <= limit, kernel
            assert off(got, expected, K, V) <= PRODUCTS["opposite"](dtype, 1 / np.finfo(dtype).eps)
            matrix = kernel_matrix(kernel, rows, others, dtype=dtype)
            limit = PRODUCTS["opposite"](dtype, 1 / np.finfo(dtype).eps)
            assert np.abs(matrix - K[: len(rows)]).max() <= limit * np.abs(K).max(), kernel


def test_norms_multiply_homogeneous_kernels():
    X, Y, V = gaussian(90, 3), gaussian(70, 3, seed=1), gaussian(70, 2, seed=2)
    X[7] = 0
    for kernel in (NeuralTangent(2), ArcCosine(1), ArcCosine(2)):
        K = kernel(X, Y)
        assert off(KernelOperator(kernel, X, Y) @ V, K @ V, K, V) <= PRODUCTS["angle"]()
        np.testing.assert_allclose(kernel_matrix(kernel, X, Y), K, atol=1e-11)
        assert not (KernelOperator(kernel, X, Y) @ V)[7].any()
    with pytest.raises(ValueError, match="has no value at a row that is all 0"):
        KernelOperator(ArcCosine(0), X)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices_are_those_of_the_kernel(dtype):
    X, Y = gaussian(300, 3), gaussian(259, 3, seed=1)
    for kernel in kernels(3):
        square, matrix = (
            kernel_matrix(kernel, X, dtype=dtype),
            kernel_matrix(kernel, X, Y, dtype=dtype),
        )
        assert square.dtype == matrix.dtype == dtype
        np.testing.assert_array_equal(square, square.T)
        for got, exact in ((square, kernel(X)), (matrix, kernel(X, Y))):
            limit = PRODUCTS["product"](dtype, 1e3) * np.abs(exact).max()
            np.testing.assert_allclose(got, exact, rtol=0, atol=limit, err_msg=str(kernel))
        np.testing.assert_allclose(
            np.diag(square), kernel_diagonal(kernel, X).astype(dtype), rtol=1e-14
        )


@pytest.mark.parametrize("dim", [1, 4])
def test_gradient_is_the_formula(dim):
    lengths = np.linspace(0.7, 2.0, dim)
    X, Y = gaussian(9, dim, seed=1), gaussian(7, dim, seed=2)
    A, B = gaussian(9, 2, seed=3), gaussian(7, 2, seed=4)
    for kernel, slope in [
        (Gaussian(0.5 / lengths**2), lambda r: np.exp(-r * r / 2)),
        (Matern(1.5, lengths), lambda r: 3 * np.exp(-(3**0.5) * r)),
    ]:
        got = KernelOperator(kernel, X, Y).gradient(A, B)
        expected = formulas.gradient(slope, lengths, X, Y, A, B)
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)


def lengthened(kernel, column, step):
    """Return a kernel with one length times e^step."""
    factor = np.ones(3)
    factor[column] = np.exp(step)
    return kernel.with_lengths(factor / kernel.scale())


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.5),
        Exponential(0.6),
        Laplacian(0.7),
        *(Matern(nu, 1.2) for nu in (0.5, 0.8, 1.5, 2.2, 2.5, 3.5, 4.2, 9.5, 30.0, np.inf)),
        RationalQuadratic(0.7),
        ProductMatern(1.5, 1.2),
        ProductMatern(2.5, 1.2, [0, 1, 0]),
    ],
    ids=named,
)
def test_gradient_by_differences(kernel):
    X, V, W = gaussian(300, 3), gaussian(300, 2, seed=1), gaussian(300, 2, seed=2)
    found, h = KernelOperator(kernel, X).gradient(V, W), 1e-3
    for column in range(3):
        near, far = (
            [np.sum(V * (lengthened(kernel, column, sign * step)(X) @ W)) for sign in (1, -1)]
            for step in (h, 2 * h)
        )
        by_differences = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * h)
        assert found[column] == pytest.approx(
            by_differences, rel=1e-8, abs=1e-8 * np.abs(found).max()
        )


def test_gradients_of_products_and_dot_products():
    X, A, B = gaussian(40, 3), gaussian(40, 2, seed=1), gaussian(40, 2, seed=2)
    h = 1e-4
    for kernel in (
        Product([([0, 2], Gaussian(0.5)), ([1], Matern(1.5)), ([0, 1], Matern(2.5))]),
        Sum([([0, 2], Gaussian(0.5)), ([1, 2], Matern(0.8))], [0.5, 2.0]),
        Polynomial(3, 0.5, 1.0),
        ExponentialDot(0.2),
        DotProduct([1.0, 1.0, 0.5]),
        Spherical(4.0),
    ):
        found = KernelOperator(kernel, X).gradient(A, B)
        for column in range(3):
            ends = []
            for step in (-h, h):
                scaled = X.copy()
                scaled[:, column] *= np.exp(-step)
                ends.append(np.sum(A * (kernel(scaled) @ B)))
            slope = (ends[1] - ends[0]) / (2 * h)
            assert found[column] == pytest.approx(slope, rel=1e-5, abs=1e-5 * np.abs(found).max())
    with pytest.raises(ValueError, match="no lengths to differentiate by"):
        KernelOperator(NeuralTangent(), X).gradient(A, B)
    with pytest.raises(ValueError, match="A has 2 vectors, and B 1"):
        KernelOperator(Gaussian(0.5), X).gradient(A, B[:, :1])


def test_kernels_without_accurate_slopes_say_what_to_use():
    X = gaussian(40, 3)
    for kernel in (Matern(100.0), RationalQuadratic(1e-3)):
        for call in (
            lambda k: KernelOperator(k, X).gradient(X, X),
            lambda k: learn_kernel(X, X[:, 0], k),
        ):
            with pytest.raises(ValueError, match=r"has slopes that no table follows .* nu = 1/2"):
                call(kernel)


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (Gaussian(0.7), lambda x, y: reference.kernels.gaussian(x, y, 0.7)),
        (Matern(1.5, 0.8), lambda x, y: reference.kernels.matern(x, y, 1.5, 0.8)),
    ],
    ids=["gaussian", "matern"],
)
def test_matrices_and_products_are_the_formula(kernel, formula):
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
@pytest.mark.parametrize("others", [None, 400])
@pytest.mark.parametrize("width", [1, 70])
@pytest.mark.parametrize(
    "kernel",
    [
        Matern(1.5),
        Sum([([0, 2], Gaussian(0.5)), ([1, 2], ArcCosine(1))], [0.5, 2.0]),
        generalized(),
    ],
    ids=["one term", "two terms", "matrix"],
)
def test_runs_are_the_product(kernel, width, others, dtype):
    """Whatever computes them, in whatever order, from a copy that was sent."""
    X = gaussian(1000, 3)
    Y = None if others is None else gaussian(others, 3, seed=1)
    V = gaussian(len(X) if Y is None else len(Y), width, seed=2)
    operator, found = KernelOperator(kernel, X, Y, dtype=dtype), []
    for most, threads in ((3, 1), (3, 2), (1, 1), (100, 1)):
        runs = Runs(operator, most)
        assert runs.count <= most
        sent = pickle.loads(pickle.dumps(runs))
        with limit_threads(threads):
            products = [sent.product(number, V) for number in reversed(range(runs.count))]
        found.append(runs.join(products[::-1]))
    assert off(found[0], operator @ V, kernel(X, Y), V) <= PRODUCTS["product"](dtype, 100)
    np.testing.assert_array_equal(found[0], found[1])
    if not isinstance(kernel, GeneralizedZonal):  # BLAS has other bits for other sizes
        np.testing.assert_array_equal(found[0], found[2])
        np.testing.assert_array_equal(found[0], found[3])


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


@pytest.mark.parametrize("weight", [1e-30, 1e-9, 1e30])
@pytest.mark.parametrize("dtype", DTYPES)
def test_skipping_is_relative_to_the_kernel(weight, dtype):
    X = np.random.default_rng(0).uniform(0, 1e5, (2000, 1))
    kernel, V = RationalQuadratic(2.0, 9.0), np.ones(2000)
    weighted = KernelOperator(Sum([([0], kernel)], [weight]), X, dtype=dtype)
    plain = KernelOperator(kernel, X, dtype=dtype)
    np.testing.assert_allclose((weighted @ V) / weight, plain @ V, rtol=1e-6)
    assert weighted.n_tiles == plain.n_tiles


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


@pytest.mark.parametrize(("call", "message"), [
    (lambda K: K @ np.ones(8), r"x has shape \(8,\); pass a vector of 4 numbers"),
    (lambda K: K @ np.ones((8, 2)), r"X has shape \(8, 2\); pass vectors of 4 numbers"),
    (lambda K: K.matvec(np.ones((4, 2))), r"x has shape \(4, 2\); pass a vector of 4 numbers"),
    (lambda K: K.rmatvec(np.ones(4)), r"x has shape \(4,\); pass a vector of 9 numbers"),
    (lambda K: K.rmatmat(np.ones((4, 2))), r"X has shape \(4, 2\); pass vectors of 9 numbers"),
    (lambda K: K.T @ np.ones(4), r"x has shape \(4,\); pass a vector of 9 numbers"),
    (lambda K: K.H @ np.ones((4, 2)), r"X has shape \(4, 2\); pass vectors of 9 numbers"),
    (lambda K: np.ones(4) @ K, r"x has shape \(4,\); pass a vector of 9 numbers"),
], ids=["@", "@ matrix", "matvec", "rmatvec", "rmatmat", "T", "H", "left"])  # fmt: skip
def test_a_vector_of_another_length_is_named(call, message):
    X = gaussian(9, 3)
    with pytest.raises(ValueError, match=message):
        call(KernelOperator(Gaussian(0.5), X, X[:4]))


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
    with pytest.raises(ValueError, match="gamma='scale' is not a number yet"):
        KernelOperator(Gaussian(), X)
    with pytest.raises(ValueError, match="Y has 2 columns, but X has 3"):
        KernelOperator(Gaussian(0.5), X, X[:, :2])
    with pytest.raises(ValueError, match="has a diagonal"):
        KernelOperator(Gaussian(0.5), X, X[:4]).diagonal()
    for tol, error, message in [
        (-1, ValueError, "tol=-1 is not usable; use a finite number >= 0"),
        (np.nan, ValueError, "tol=nan is not usable"),
        ("a", TypeError, "tol='a' is not a number; use a number >= 0"),
    ]:
        with pytest.raises(error, match=message):
            KernelOperator(Gaussian(0.5), X, tol=tol)


# ---- rows far out


def outlying(where, size, n=3000):
    """Return normal rows, some of them far out, and which are."""
    X, rng = gaussian(n, 3), np.random.default_rng(1)
    six = [17, 40, 99, 512, n // 5 * 3, n - 1]
    far = {"one": [17], "six": six}.get(where, np.arange(0, n, n // 30))
    if where == "one":
        X[17] = size, -size, size / 2
    elif where == "six":
        X[far] = size * rng.standard_normal((6, 3))
    elif where == "a cluster":
        X[far] += size
    elif where == "two clusters":
        X[far] += size * np.where(np.arange(len(far)) % 2, 1, -1)[:, None]
    else:
        X[far] = size * rng.standard_normal((len(far), 3))
    return X, np.isin(np.arange(n), far)


def exact(kernel, X, Y=None):
    """Return the Gaussian or Matern-3/2 from distances in double that are told by differences."""
    if isinstance(kernel, Gaussian):
        return np.exp(-kernel.gamma * cdist(X, X if Y is None else Y, "sqeuclidean"))
    r = 3**0.5 * cdist(X, X if Y is None else Y) / kernel.length_scale
    return (1 + r) * np.exp(-r)


def errors_of(kernel, X, kept):
    """Return the largest errors between rows that are kept: of the matrix, and of products."""
    K, units = exact(kernel, X), np.flatnonzero(kept)[::60]
    matrix = kernel_matrix(kernel, X, dtype=np.float32)
    products = [
        KernelOperator(kernel, X, Y, dtype=np.float32) @ np.eye(len(X))[:, units] for Y in (None, X)
    ]
    return np.array([
        np.abs(matrix - K)[np.ix_(kept, kept)].max(),
        *(np.abs(product - K[:, units])[kept].max() for product in products),
    ])  # fmt: skip


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Matern(1.5, 0.7)], ids=named)
@pytest.mark.parametrize("size", [1e4, 1e25])
@pytest.mark.parametrize("where", ["one", "six", "a cluster", "two clusters", "spread"])
def test_a_row_far_out_costs_the_others_nothing(where, size, kernel):
    """As exact as without it: in a matrix, in a product, and whether Y is X or not."""
    X, far = outlying(where, size, n=1500)
    allowed = 2 * errors_of(kernel, gaussian(1500, 3), ~far)
    assert (errors_of(kernel, X, ~far) <= allowed).all()
    if "cluster" in where and size < 1e7:  # nor do those far out cost each other
        assert (errors_of(kernel, X, far) <= allowed).all()


def test_double_keeps_its_digits_too():
    X = gaussian(600, 3)
    X[3] = 1e15
    K = exact(Gaussian(0.5), X)
    np.testing.assert_allclose(kernel_matrix(Gaussian(0.5), X), K, rtol=0, atol=1e-14)
    got = KernelOperator(Gaussian(0.5), X) @ np.ones(600)
    np.testing.assert_allclose(got, K.sum(axis=1), rtol=1e-13)


far_out = functools.partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("others", [None, 900])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("where", ["none", far_out("six"), far_out("two clusters")])
def test_threads_change_no_bit(where, others, width, dtype):
    X = gaussian(3000, 3) if where == "none" else outlying(where, 1e6)[0]
    Y, V = None if others is None else X[:others], gaussian(others or 3000, width, seed=2)
    kernel, results = Matern(1.5, 0.3), []
    for threads in (1, 2, 5):
        with limit_threads(threads):
            product = KernelOperator(kernel, X, Y, dtype=dtype, tol=0) @ V
            skipping = KernelOperator(kernel, X, Y, dtype=dtype) @ V
            results.append((product, skipping, kernel_matrix(kernel, X, Y, dtype=dtype)))
    for other in results[1:]:
        for values, expected in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(values, expected)


@pytest.mark.slow
def test_rows_far_out_have_tiles_of_their_own():
    """Few more tiles for them, none for ordinary rows, and their matrix is in the rows' order."""
    for rows in (gaussian(3000, 3, 50.0), np.random.default_rng(0).random((3000, 3)) * 1e3):
        order = tile_order(rows, 256, 16.0)
        assert order.size == 12 * 256
        assert np.unique(order).size == 3000
    X, far = outlying("six", 1e6)
    order = tile_order(X, 256, 16.0).reshape(-1, 256)
    assert len(order) <= 14
    assert all(len(set(far[tile])) == 1 for tile in order)
    log_uniform = 10 ** (30 * np.random.default_rng(0).random((3000, 2)))
    assert len(tile_order(log_uniform, 256, 16.0)) <= (12 + 4 + 12 // 4) * 256
    K = kernel_matrix(Gaussian(0.5), X, X[::-1])
    np.testing.assert_allclose(K, exact(Gaussian(0.5), X, X[::-1]), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(
        kernel_matrix(Gaussian(0.5), X).T, kernel_matrix(Gaussian(0.5), X)
    )


KERNELS_OF_LENGTHS = (
    *(Matern(nu, 1.0) for nu in (0.5, 0.8, 1.5, 2.5, 4.5, 9.5, np.inf)),
    Spherical(1.0),
    Exponential(1.0),
    Gaussian(0.5),
    Laplacian(0.5),
    RationalQuadratic(1.0, 1.0),
)


@functools.cache
def values_of(kernel, rows):
    """Return the kernel matrix of rows of three columns, which several tests ask for."""
    return kernel(np.frombuffer(rows).reshape(-1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_lengths_beyond_the_range_of_squares(level, dtype, monkeypatch):
    """Squared distances that are infinite: the kernel is 0 there, and never NaN."""
    if level not in show_config()["supported_isa"]:
        pytest.skip(f"this processor has no x86-64-{level}")
    name = f"gzkcore._compiled.products_{level}"
    build = pytest.importorskip(name, reason="kernels were built for one instruction set")
    monkeypatch.setattr("gzkcore.kernels.tile_matrix._products", build)
    largest = 1e25 if dtype == np.float32 else 1e200
    for kernel in KERNELS_OF_LENGTHS:
        for size in (1e3, 1e5, 1e19, largest):
            for X in (size * gaussian(300, 3), np.r_[gaussian(300, 3), [[size] * 3]]):
                K = np.eye(len(X))
                near = np.abs(X).max(axis=1) < 1e6
                if near.any():  # NumPy's own distances have no digits left otherwise
                    K[np.ix_(near, near)] = values_of(kernel, X[near].tobytes())
                some = [*range(0, len(X), 12), len(X) - 1]
                got = KernelOperator(kernel, X, dtype=dtype, tol=0) @ np.eye(len(X))[:, some]
                limit = 1e-5 if dtype == np.float32 else 1e-6
                assert np.abs(got - K[:, some]).max() <= limit, (kernel, size)
                matrix = kernel_matrix(kernel, X, dtype=dtype)
                assert np.abs(matrix - K).max() <= limit, (kernel, size)


# ---- vectors of any size and type


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("others", [None, 100])
def test_vectors_beyond_the_range_of_float32(others, dtype):
    X = gaussian(300, 3)
    Y = None if others is None else X[:others]
    operator = KernelOperator(Matern(1.5), X, Y, dtype=dtype)
    V = gaussian(others or 300, 4, seed=1)
    powers = np.ldexp(1.0, [-1000, -170, 166, 1000])
    np.testing.assert_array_equal(operator @ (V * powers), (operator @ V) * powers)
    assert not (operator @ (0 * V)).any()


def test_complex_vectors():
    """A real operator takes them in SciPy; each part has the bits it has alone."""
    X, V, W = gaussian(300, 3), gaussian(300, 2, seed=1), gaussian(300, 2, seed=2)
    for operator in (KernelOperator(Gaussian(0.5), X), KernelOperator(generalized(), X)):
        got = operator @ (V + 1j * W)
        np.testing.assert_allclose(got.real, operator @ V, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(got.imag, operator @ W, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(operator.matvec(V[:, 0] + 1j * W[:, 0]), got[:, 0], atol=1e-13)
        np.testing.assert_allclose(operator.rmatvec(1j * W[:, 0]), 1j * got[:, 0].imag, atol=1e-13)
    np.testing.assert_allclose(kernel_product(Gaussian(0.5), X, None, 1j * W).imag,
                               KernelOperator(Gaussian(0.5), X) @ W, rtol=1e-13)  # fmt: skip
    with pytest.raises(TypeError, match="A is complex; pass its real and its imaginary part"):
        KernelOperator(Gaussian(0.5), X).gradient(1j * V, W)
    with pytest.raises(TypeError, match="V has dtype <U1; pass numbers"):
        KernelOperator(Gaussian(0.5), X) @ np.full(300, "a")


# ---- kernels that tiles have no form of


def test_any_number_of_factors():
    """More than 64 factors, or too many terms, are multiplied by the kernel's own matrix."""
    X, V = gaussian(40, 70), gaussian(40, 2, seed=1)
    many = Product([([column], Matern(1.5, 9.0)) for column in range(70)])
    add = Sum([([0], Gaussian(0.5)), ([1], Gaussian(0.5))])
    for kernel in (many, Sum([([0], Gaussian(0.5)), (slice(None), many)]),
                   Product([([2 * k, 2 * k + 1], add) for k in range(35)])):  # fmt: skip
        K = kernel(X)
        np.testing.assert_allclose(KernelOperator(kernel, X) @ V, K @ V, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(kernel_matrix(kernel, X), K, rtol=1e-12)
        np.testing.assert_allclose(kernel_matrix(kernel, X, X[:9]), K[:, :9], rtol=1e-12)
    with pytest.raises(ValueError, match="a product of 70 factors, and at most 64"):
        KernelOperator(many, X).gradient(V, V)


# ---- what is refused


@pytest.mark.parametrize(
    "call",
    [
        lambda kernel, X: KernelOperator(kernel, X) @ np.ones(len(X)),
        lambda kernel, X: kernel_product(kernel, X, None, np.ones(len(X))),
        kernel_matrix,
        kernel_diagonal,
    ],
    ids=["operator", "product", "matrix", "diagonal"],
)
def test_kernels_by_name(call):
    X = gaussian(9, 3)
    for name, kernel in (("rbf", Gaussian()), ("matern", Matern()), ("polynomial", Polynomial())):
        np.testing.assert_array_equal(call(name, X), call(kernel.resolve(X), X))
    for wrong in (None, 3.0, lambda x, y: 0.0):
        with pytest.raises(
            TypeError, match=r"kernel=.* is not a kernel; use one of \['arccosine', "
        ):
            call(wrong, X)
    with pytest.raises(TypeError, match=r"kernel=Gaussian is a class; use an instance"):
        call(Gaussian, X)
    with pytest.raises(ValueError, match=r"kernel='maternn' is unknown \(did you mean 'matern'"):
        call("maternn", X)


# ---- builds, signals, callers


@pytest.mark.parametrize("level", ["v2", "v3", "v4"])
def test_builds_agree(level, monkeypatch):
    if level not in show_config()["supported_isa"]:
        pytest.skip(f"this processor has no x86-64-{level}")
    name = f"gzkcore._compiled.products_{level}"
    build = pytest.importorskip(name, reason="kernels were built for one instruction set")
    X, V = gaussian(600, 3), gaussian(600, 3, seed=1)
    for kernel in (Gaussian(0.5), Matern(1.5), Matern(0.8), Laplacian(0.5), ArcCosine(1)):
        for dtype in DTYPES:
            operator = KernelOperator(kernel, X, dtype=dtype)
            ours = operator @ V
            with monkeypatch.context() as patch:
                for module in ("products", "tile_matrix"):
                    patch.setattr(f"gzkcore.kernels.{module}._products", build)
                other = operator @ V
                gradient = None if isinstance(kernel, ArcCosine) else operator.gradient(V, V)
            assert off(other, ours, np.ones((600, 600)), V) <= PRODUCTS["product"](dtype)
            if gradient is not None:
                np.testing.assert_allclose(gradient, operator.gradient(V, V), rtol=1e-12)


@pytest.mark.slow
def test_ctrl_c_stops_a_product(tmp_path):
    code = (
        "import os, signal, threading, numpy as np\n"
        "from gzkcore import KernelOperator, Matern\n"
        "K = KernelOperator(Matern(2.5), np.random.default_rng(0).standard_normal((200_000, 3)), tol=0)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    K @ np.ones(200_000)\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.stdout.startswith("stopped"), done.stderr


def test_nothing_of_the_callers_is_written_to():
    X, V = gaussian(300, 3), gaussian(300, 3, seed=1)
    for array in (X, V):
        array.setflags(write=False)
    KernelOperator(Matern(1.5), X) @ V
    KernelOperator(NeuralTangent(), sphere(300, 3)) @ V


@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), Matern(0.5, [0.2, 0.37]), Laplacian(1.0)], ids=repr
)
def test_an_offset_of_columns_costs_no_digits(kernel):
    """Numbers of 1e8 have differences of eight digits; scaled first, they would lose more."""
    far = 1e8 + np.random.default_rng(0).random((500, 2))
    V = np.random.default_rng(1).standard_normal((500, 2))
    expected = kernel(far - 1e8) @ V
    np.testing.assert_allclose(KernelOperator(kernel, far) @ V, expected, rtol=0, atol=1e-11)
    found = KernelOperator(kernel, far[:9], far) @ V
    np.testing.assert_allclose(found, expected[:9], rtol=0, atol=1e-11)


# ---- blocks of rows


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 1), (18, 9, 3), (1, 33, 3), (2, 65, 30)])
def test_matrices_of_blocks_are_the_formula(shape, dtype):
    n_blocks, size, dim = shape
    X = gaussian(n_blocks * size, dim)
    limit = PRODUCTS["product"](dtype, 1 + np.square(X).sum(axis=1).max() ** 2)
    for kernel in kernels(dim):
        pairs = Pairs.of(kernel, X, dtype)
        if pairs is None:
            continue
        known, found = pairs.known, np.empty((n_blocks, size, size), dtype)
        arrays = known.factors, known.numbers, known.coefficients
        for threads in (1, 3):
            _neighbours.kernel_of_blocks(pairs.rows, pairs.weights, *arrays, found, threads)
            for block, rows in zip(found, X.reshape(shape), strict=True):
                expected = kernel(rows)
                off = np.abs(block - expected).max()
                assert off <= limit * np.abs(expected).max(), kernel


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_far_from_the_origin_keep_their_digits(dtype):
    X, limit = gaussian(60, 3).reshape(4, 15, 3), PRODUCTS["angle"](dtype)
    for kernel in (Gaussian(0.5), Matern(1.5), Matern(0.8), Laplacian(1.0)):
        (term,) = kernel.tile_form(3)
        found = block_matrices(term, X + 2.0**20, dtype)
        expected = [kernel(rows) for rows in (X + 2.0**20) - 2.0**20]
        np.testing.assert_allclose(found, expected, rtol=0, atol=limit)
        if term.factors[0].slope is not None:
            slopes = block_matrices(term, X, dtype, sloped=True)
            wanted = [slope_matrix(term, 0, rows, None, np.dtype(dtype)) for rows in X]
            apart = ~np.eye(15, dtype=bool)  # at 0 they may have a pole
            for block, each in zip(slopes, wanted, strict=True):
                np.testing.assert_allclose(
                    block[apart], each[apart], rtol=100 * np.finfo(dtype).eps
                )


@pytest.mark.parametrize("place", [0, 7])
def test_a_row_far_out_leaves_the_digits_of_the_others(place):
    X = gaussian(200, 3)
    X[place] = 1e6
    kernel = Matern(1.5, 0.7)
    (term,) = kernel.tile_form(3)
    found = block_matrices(term, X[None], np.dtype(np.float32))[0]
    np.testing.assert_allclose(found, kernel(X), rtol=0, atol=1e-5)
