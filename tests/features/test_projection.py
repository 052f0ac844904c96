"""SRHT and FJLT: their moments exactly, by enumeration and by draws; every width; the way back."""

import itertools
import math

import numpy as np
import pytest
from moments import assert_mean, assert_variance, estimates
from naming import named
from points import gaussian, sphere
from scipy import sparse
from scipy.linalg import hadamard
from sklearn.base import clone
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from tolerances import IDENTITY, TWINS

from gzkcore import (
    BlockProjection,
    CountSketch,
    FastJLProjection,
    HadamardProjection,
    reference,
)
from gzkcore._util import memory
from gzkcore._util.threads import limit_threads
from gzkcore.features.block_moments import projection_variance
from gzkcore.features.projection import (
    _bits,
    _places,
    fast_jl_projection,
    fast_jl_variance,
    hadamard_projection,
    hadamard_projection_variance,
)

formulas = reference.projection
SEEDS = 600
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def signs_of(dim):
    return list(itertools.product([-1, 1], repeat=dim))


# ---- mean and variance, exactly: every draw there is


@pytest.mark.parametrize(("dim", "k"), [(1, 1), (2, 1), (3, 1), (3, 2), (4, 3), (4, 4), (5, 3)])
def test_every_draw_of_srht(dim, k):
    x, y = gaussian(2, dim).tolist()
    n = 1 << (dim - 1).bit_length()
    values = [
        np.dot(*formulas.hadamard_projection([x, y], [signs], list(rows)))
        for signs in signs_of(dim)
        for rows in itertools.combinations(range(n), k)
    ]
    tolerance = IDENTITY["closed form"]()
    assert np.mean(values) == pytest.approx(np.dot(x, y), abs=tolerance)
    expected = formulas.hadamard_projection_variance(x, y, k)
    assert np.var(values) == pytest.approx(expected, abs=tolerance)
    assert (expected == 0) == (k == n)


@pytest.mark.parametrize(("dim", "k"), [(1, 3), (2, 3), (2, 5), (2, 6)])
def test_every_draw_of_srht_beyond_n(dim, k):
    """All rows, once and again, with signs of their own, then some."""
    x, y = gaussian(2, dim).tolist()
    n = dim
    passes = -(-k // n)
    whole = list(range((passes - 1) * n))
    values = [
        np.dot(
            *formulas.hadamard_projection([x, y], signs, whole + [len(whole) + row for row in rows])
        )
        for signs in itertools.product(signs_of(dim), repeat=passes)
        for rows in itertools.combinations(range(n), k - len(whole))
    ]
    tolerance = IDENTITY["closed form"]()
    assert np.mean(values) == pytest.approx(np.dot(x, y), abs=tolerance)
    expected = formulas.hadamard_projection_variance(x, y, k)
    assert np.var(values) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("density", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_every_draw_of_fjlt(dim, density):
    """The variance has moments up to the fourth alone, which +-sqrt(3), 0 share with the normal."""
    x, y = gaussian(2, dim).tolist()
    n = 1 << (dim - 1).bit_length()
    size, chance = math.sqrt(3 / density), density / 6
    numbers = [(0.0, 1 - 2 * chance), (size, chance), (-size, chance)]
    mean = square = total = 0.0
    for signs in signs_of(dim):
        for entries in itertools.product(numbers, repeat=n):
            p = math.prod(chance for _, chance in entries) / 2**dim
            P = [[number for number, _ in entries]]
            value = np.dot(*formulas.fast_jl_projection([x, y], signs, P))
            total, mean, square = total + p, mean + p * value, square + p * value**2
    tolerance = IDENTITY["closed form"]() * n / density
    assert total == pytest.approx(1)
    assert mean == pytest.approx(np.dot(x, y), abs=tolerance)
    expected = formulas.fast_jl_variance(x, y, 1, density)
    assert square - mean**2 == pytest.approx(expected, abs=tolerance)


# ---- mean and variance, by draws


def normal(x, y, k):
    return (x @ x * (y @ y) + (x @ y) ** 2) / k


def three_values(density):
    """Of a matrix whose entries are 0 or +-1 / sqrt(density)."""
    return lambda x, y, k: normal(x, y, k) + (1 / density - 3) * np.sum(x * x * y * y) / k


@pytest.mark.parametrize(("projection", "variance"), [
    *[(HadamardProjection(k), hadamard_projection_variance) for k in (1, 7, 16, 40, 64)],
    (FastJLProjection(7), lambda x, y, k: fast_jl_variance(x, y, k, 1.0)),
    *[
        (
            FastJLProjection(k, density=density),
            lambda x, y, k, density=density: fast_jl_variance(x, y, k, density),
        )
        for k, density in ((1, 0.5), (7, 0.1), (20, 0.3))
    ],
    (CountSketch(7), lambda x, y, k: normal(x, y, k) - 2 * np.sum(x * x * y * y) / k),
    (GaussianRandomProjection(7), normal),
    (SparseRandomProjection(7, density=1 / 3), three_values(1 / 3)),
    (SparseRandomProjection(7, density=12**-0.5), three_values(12**-0.5)),
], ids=named)  # fmt: skip
def test_inner_products(projection, variance):
    X, Y = sphere(50, 12), sphere(50, 12, seed=1)
    Y = (X + Y) / 2
    Y[:5, 3:] = X[:5, 3:] = 0  # few coordinates
    values = estimates(projection, X, Y, SEEDS)
    mean = np.einsum("ij,ij->i", X, Y)
    assert_mean(values, mean)
    each = [variance(x, y, projection.n_components) for x, y in zip(X, Y, strict=True)]
    if max(each) > 0:
        assert_variance(values, mean, each)


@pytest.mark.parametrize(("projection", "variance"), [
    (HadamardProjection(7), lambda d, k: hadamard_projection_variance(d, d, k)),
    (FastJLProjection(7, density=0.2), lambda d, k: fast_jl_variance(d, d, k, 0.2)),
    (BlockProjection(7), projection_variance),
    (
        BlockProjection(5, values="gaussian", arrangement="permutation"),
        lambda d, k: projection_variance(d, k, "gaussian", "permutation"),
    ),
], ids=named)  # fmt: skip
def test_distances(projection, variance):
    differences = sphere(50, 12)
    values = estimates(projection, differences, differences, SEEDS)
    mean = np.einsum("ij,ij->i", differences, differences)
    assert_mean(values, mean)
    each = [variance(d, projection.n_components) for d in differences]
    assert_variance(values, mean, each)


def test_sparsity_costs_what_is_said():
    """At most 10 % of the variance of a squared distance for "auto", 4.5 / (q n) in general."""
    d = sphere(1, 1000)[0]
    density = FastJLProjection(3).fit(d[None]).density_
    assert density == pytest.approx(45 / 1024)
    for q in (density, 0.001, 1.0):
        more = fast_jl_variance(d, d, 3, q) / normal(d, d, 3) - 1
        assert -1e-12 <= more <= 4.5 / (q * 1024)
    many = np.zeros((3000, 1000))
    assert FastJLProjection(3).fit(many).density_ == pytest.approx(math.log(3000) ** 2 / 1024)


def test_srht_is_better_than_normal_numbers():
    for dim, k in ((64, 16), (1000, 900), (5, 3)):
        d = sphere(1, dim)[0]
        assert hadamard_projection_variance(d, d, k) < normal(d, d, k)
    assert hadamard_projection_variance([1.0, 2.0], [3.0, 4.0], 2) == 0


# ---- what is computed


def dense(projection):
    """The matrix from the fitted numbers, by the definition."""
    d = projection.n_features_in_
    n = 1 << (d - 1).bit_length()
    k = projection.n_components
    if isinstance(projection, HadamardProjection):
        stacked = np.concatenate([hadamard(n)[:, :d] * signs for signs in projection.signs_])
        return stacked[projection.rows_] / math.sqrt(k)
    made = projection.values_, projection.columns_, projection.starts_
    P = sparse.csr_array(made, shape=(k, n)).toarray()
    return P @ hadamard(n)[:, :d] * projection.signs_ / math.sqrt(n * k)


SHAPES = [(1, 1, 1), (3, 1, 5), (2, 3, 1), (5, 3, 2), (17, 5, 8), (33, 100, 7), (20, 128, 128),
          (7, 100, 300), (40, 1300, 100), (18, 1000, 1000), (16, 2048, 3), (3, 1500, 1)]  # fmt: skip


@every_type
@pytest.mark.parametrize(("n", "dim", "k"), SHAPES)
@pytest.mark.parametrize("projection", [
    HadamardProjection(1), FastJLProjection(1), FastJLProjection(1, density=0.02),
], ids=str)  # fmt: skip
def test_every_shape(projection, n, dim, k, dtype):
    X = gaussian(n, dim)
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0
    fitted = clone(projection).set_params(n_components=k, random_state=0).fit(X)
    S = dense(fitted)
    scale = np.abs(S).sum(axis=1).max() * np.abs(X).max()
    tolerance = TWINS["hadamard.hadamard_transform"](dtype) * scale
    np.testing.assert_allclose(fitted.components_, S, rtol=0, atol=tolerance)
    X = X.astype(dtype)
    Z = fitted.transform(X)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, X @ S.T, rtol=0, atol=tolerance)
    for kind in (sparse.csr_array, sparse.csc_array):
        np.testing.assert_array_equal(fitted.transform(kind(X)), Z)
        parts = [fitted.transform(kind(X[i : i + 3])) for i in range(0, n, 3)]
        np.testing.assert_array_equal(np.concatenate(parts), Z)
    assert Z.shape == (n, k)


@pytest.mark.parametrize("bits", range(12))
@every_type
def test_every_size_of_pieces(bits, dtype, monkeypatch):
    """With integers every sum is exact: the pieces make no difference to the bit."""
    X = np.random.default_rng(0).integers(-9, 10, (21, 1500)).astype(dtype)
    fitted = HadamardProjection(64, random_state=0).fit(X)  # over 8
    expected = X @ (8 * fitted.components_).T / 8
    monkeypatch.setattr("gzkcore.features.projection._bits", lambda n, k: bits)
    np.testing.assert_array_equal(fitted.transform(X), expected)
    np.testing.assert_array_equal(fitted.transform(sparse.csr_array(X)), expected)


def test_pieces_fit_the_caches():
    for n in (1, 2, 64, 2**14, 2**20):
        for k in (1, 2, 3, 100, 1000, 4096, 10**5, 2**20):
            bits = _bits(n, min(k, n))
            assert 1 << bits <= n
            assert 1 << bits <= max(2**14, min(k, n))
            assert n < 64 or 4 << bits >= min(k, n)


def test_all_rows_keep_lengths():
    """Whole rotations, once or more, keep every inner product."""
    X = gaussian(9, 50)
    for k in (64, 192):
        Z = HadamardProjection(k, random_state=0).fit_transform(X)
        tolerance = TWINS["hadamard.hadamard_transform"](length=50**2)
        np.testing.assert_allclose(Z @ Z.T, X @ X.T, rtol=0, atol=tolerance)


def test_rows_are_different_and_each_as_likely():
    counts = np.zeros(16)
    for seed in range(2000):
        rows = HadamardProjection(5, random_state=seed).fit(np.ones((1, 9))).rows_
        assert len(set(rows)) == 5
        counts[rows] += 1
    share = 5 / 16
    assert np.abs(counts - 2000 * share).max() < 5 * math.sqrt(2000 * share * (1 - share))


@pytest.mark.parametrize(("size", "share"), [(100, 0.5), (10**5, 1e-3), (50, 1.0), (40, 1e-4)])
def test_places_are_taken_independently(size, share):
    rng = np.random.default_rng(0)
    draws = 1 if share == 1 else 400
    counts = []
    for _ in range(draws):
        places = _places(rng, size, share)
        assert (np.diff(places) > 0).all()
        assert places.size == 0 or 0 <= places[0] <= places[-1] < size
        counts.append(places.size)
    error = math.sqrt(size * share * (1 - share) / draws)
    assert abs(np.mean(counts) - size * share) <= 4 * error


def test_rows_of_the_function_may_be_in_any_order():
    X, signs = gaussian(4, 5), np.random.default_rng(0).choice([-1, 1], (3, 5))
    rows = [23, 0, 8, 7, 8, 15, 16]
    value = hadamard_projection(X, signs, rows)
    stacked = np.concatenate([hadamard(8)[:, :5] * each for each in signs])
    expected = X @ stacked[rows].T / math.sqrt(7)
    np.testing.assert_allclose(value, expected, rtol=0, atol=TWINS["projection.hadamard_projection"](length=100))  # fmt: skip
    P = sparse.random_array((6, 8), density=0.5, random_state=np.random.default_rng(0))
    np.testing.assert_array_equal(
        fast_jl_projection(X, signs[0], P), fast_jl_projection(X, signs[0], P.toarray())
    )


@every_type
def test_sparse_rows_in_any_order_and_twice(dtype):
    data = np.array([1.0, 2.0, 4.0, 8.0], dtype)
    S = sparse.csr_array((data, np.array([900, 1, 900, 0]), np.array([0, 3, 3, 4])), (3, 1000))
    D = np.zeros((3, 1000), dtype)
    D[0, 900], D[0, 1], D[2, 0] = 5, 2, 8
    for projection in (HadamardProjection(10, random_state=0), FastJLProjection(10)):
        fitted = projection.fit(D)
        np.testing.assert_array_equal(fitted.transform(S), fitted.transform(D))
    np.testing.assert_array_equal(S.indices, [900, 1, 900, 0])
    empty = sparse.csr_array((4, 1000), dtype=dtype)
    assert not fitted.transform(empty).any()


@pytest.mark.slow
@every_type
@pytest.mark.parametrize("k", [1000, 1024, 4096])
def test_large_outputs_are_the_same(k, dtype):
    """Stores past the cache, and several threads."""
    X = gaussian(64, 300).astype(dtype)
    fitted = HadamardProjection(k, random_state=0).fit(X)
    expected = np.tile(fitted.transform(X), (80, 1))
    for threads in (1, 3):
        with limit_threads(threads):
            np.testing.assert_array_equal(fitted.transform(np.tile(X, (80, 1))), expected)


# ---- the way back


@every_type
@pytest.mark.parametrize(("dim", "k"), [(32, 10), (32, 32), (20, 7), (20, 30), (9, 40), (1, 1)])
@pytest.mark.parametrize("cls", [HadamardProjection, FastJLProjection])
def test_inverse_transform(cls, dim, k, dtype):
    X = gaussian(6, dim).astype(dtype)
    projection = cls(k, random_state=0).fit(X)
    V = projection.transform(X)
    back = projection.inverse_transform(V)
    assert back.dtype == dtype
    inverse = np.linalg.pinv(projection.components_)
    expected = V.astype(float) @ inverse.T
    tolerance = IDENTITY["closed form"]() * np.finfo(dtype).eps / np.finfo(float).eps
    tolerance *= 10 * np.linalg.norm(inverse, 2) * np.linalg.norm(V)
    np.testing.assert_allclose(back, expected, rtol=0, atol=tolerance)
    if k >= dim:
        np.testing.assert_allclose(back, X, rtol=0, atol=tolerance)


def test_the_adjoint():
    x, v = gaussian(1, 100), gaussian(1, 30, seed=1)
    for projection in (HadamardProjection(30, random_state=0), FastJLProjection(30)):
        S = projection.fit(x).components_
        left = float(np.vdot(projection.transform(x), v))
        tolerance = TWINS["hadamard.hadamard_transform"](length=1000**2)
        assert left == pytest.approx(float(np.vdot(x, v @ S)), abs=tolerance)


# ---- what every map promises


@pytest.mark.parametrize(
    "projection",
    [HadamardProjection(31, random_state=0), FastJLProjection(31, density=0.3, random_state=0)],
    ids=["srht", "fjlt"],
)
def test_what_a_plan_says_of_them(projection):
    fitted = clone(projection).fit(gaussian(40, 20))
    assert fitted._flops(1.0) > 0
    assert "31" in fitted._about() or "numbers in a row" in fitted._about()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cls", [HadamardProjection, FastJLProjection])
def test_bad_values_are_found(cls, kind, value):
    X = gaussian(40, 60)
    fitted = cls(3, random_state=0).fit(X)
    for row, column in ((0, 0), (39, 59), (17, 33)):
        wrong = X.copy()
        wrong[row, column] = value
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            fitted.transform(kind(wrong))


# ---- bad input


@pytest.mark.parametrize(("projection", "error", "message"), [
    (HadamardProjection(0), ValueError, "n_components=0 is too small"),
    (HadamardProjection(2.5), TypeError, "n_components=2.5 is not an integer"),
    (FastJLProjection(0), ValueError, "n_components=0 is too small"),
    (FastJLProjection(3, density=1.5), ValueError, "density=1.5 is out of range; use a number > 0"),
    (FastJLProjection(3, density=0), ValueError, "density=0 is not usable"),
    (FastJLProjection(3, density="some"), ValueError, "density='some' is unknown; use 'auto'"),
])  # fmt: skip
def test_bad_parameters(projection, error, message):
    with pytest.raises(error, match=message):
        projection.fit(gaussian(9, 2))


def test_bad_arguments():
    X = gaussian(4, 3)
    fitted = HadamardProjection(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 3 columns, but the projection has n_components=2"):
        fitted.inverse_transform(X)
    for rows in ([4], [-1], [], [[0]]):
        with pytest.raises(ValueError, match=r"must be a list of one or more indices .* below 4"):
            hadamard_projection(X, [[1, 1, 1]], rows)
    with pytest.raises(ValueError, match=r"X and signs have shapes \(4, 3\) and \(1, 2\)"):
        hadamard_projection(X, [[1, 1]], [0])
    with pytest.raises(ValueError, match=r"P has shape \(1, 3\); pass .* 4 columns"):
        fast_jl_projection(X, [1, 1, 1], np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"X and signs have shapes \(4, 3\) and \(2,\)"):
        fast_jl_projection(X, [1, 1], np.ones((1, 4)))
    with pytest.raises(ValueError, match=r"x and y have shapes \(2,\) and \(3,\)"):
        hadamard_projection_variance([1, 2], [1, 2, 3], 1)
    with pytest.raises(ValueError, match="n_components=0"):
        fast_jl_variance([1, 2], [1, 2], 0, 0.5)


def test_a_stale_mark_of_sorted_indices_is_not_trusted():
    S = sparse.random_array(
        (64, 500), density=0.05, format="csr", random_state=np.random.default_rng(0)
    )
    assert S.has_sorted_indices
    S.indices = np.random.default_rng(0).permutation(500)[S.indices].astype(S.indices.dtype)
    features = HadamardProjection(16, random_state=0).fit(S)
    np.testing.assert_array_equal(features.transform(S), features.transform(S.toarray()))


def test_a_matrix_that_points_outside_is_refused():
    P = sparse.csr_array(np.eye(4))
    P.indices = np.array([0, 1, 2, 300_000_000], np.int32)
    with pytest.raises(ValueError, match=r"indices|index values"):  # SciPy's words, new and old
        fast_jl_projection([[1.0, 2.0, 3.0]], [1, -1, 1], P)
    with pytest.raises(TypeError, match="must be integers"):
        hadamard_projection([[1.0, 2.0, 3.0]], [[1, -1, 1]], [0.7, 1.9])


def test_a_density_that_leaves_nothing_is_refused():
    for density in (1e-300, 1e-18, 1e-6):
        with pytest.raises(ValueError, match="leaves only zeros in P; use 'auto', or more than"):
            FastJLProjection(3, density=density).fit(gaussian(9, 16))


@pytest.mark.parametrize("rows", [[2, 27, 0], [27, 2, 0], [0, 2, 27], [27, 0, 27, 5]])
def test_outputs_come_in_the_order_of_their_rows(rows):
    X, signs = gaussian(3, 16), np.sign(gaussian(2, 16))
    single = [hadamard_projection(X, signs, [row])[:, 0] for row in rows]
    expected = np.column_stack(single) / math.sqrt(len(rows))
    got = hadamard_projection(X, signs, rows)
    np.testing.assert_allclose(
        got, expected, rtol=0, atol=TWINS["projection.hadamard_projection"]("float64") * 16
    )


def test_a_dense_matrix_that_memory_cannot_hold_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 1 << 20)
    for density in (1, 1.0):
        with pytest.raises(MemoryError, match="n_components=100 takes about"):
            FastJLProjection(100, density=density).fit(gaussian(2, 1000))
