"""Preconditioners: the inverses that they claim to be, near the matrix, and steps that stay few."""

import numpy as np
import pytest
from points import gaussian, sphere
from scipy.linalg import cholesky, eigvals, eigvalsh
from scipy.sparse import csr_array
from sklearn.kernel_approximation import RBFSampler
from tolerances import IDENTITY

from gzkcore import (
    ArcCosine,
    Gaussian,
    GegenbauerFeatures,
    KernelRidge,
    Laplacian,
    Matern,
    NystromFeatures,
    Polynomial,
    Product,
    RandomFourierFeatures,
    RationalQuadratic,
    Sum,
    reference,
)
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.general import FunctionKernel
from gzkcore.kernels.products import Pairs
from gzkcore.solve import near_landmarks, preconditioners
from gzkcore.solve.near_landmarks import NearLandmarks
from gzkcore.solve.neighbours import Neighbours, Seen, SparseFactor
from gzkcore.solve.preconditioners import (
    Diagonal,
    KeptFeatures,
    LowRank,
    NearAndFar,
    preconditioner_for,
    preconditioner_of_some,
)

KERNELS = [
    Gaussian(2.0),
    Matern(nu=0.5, length_scale=0.5),
    Matern(nu=1.5, length_scale=0.5),
    Matern(nu=2.5, length_scale=[0.5, 0.7, 2.0]),
    Laplacian(2.0),
    Polynomial(degree=3),
    RationalQuadratic(length_scale=0.5),
    ArcCosine(order=1),
    Product([([0], Matern(nu=1.5)), ([1, 2], Gaussian(1.0))]),
]
SUM = Sum([([0], Matern(1.5)), ([1, 2], Gaussian(1.0)), ([0, 2], ArcCosine(1))], [2.0, 0.5, 1.0])
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:24])
KINDS = {
    "diagonal": None,
    "low rank": FunctionKernel(RationalQuadratic()),  # a function is in no compiled form
    "near and far": Matern(nu=1.5),
    "near landmarks": Matern(nu=1.5),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def rows(n=60, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def noises(n, seed=1):
    return np.random.default_rng(seed).uniform(0.5, 2.0, n)


def made(kind, X, shifts, noise=None, **options):
    """Return a preconditioner of a kind, and the kernel that it is for."""
    kernel = (KINDS[kind] or Gaussian(0.5)).resolve(X)
    given = {"diagonal": None, "near landmarks": "auto"}.get(kind, 40)
    options = {"random_state": 0, **options}
    return preconditioner_for(given, kernel, X, shifts, noise=noise, **options), kernel


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    """Take neighbours from 50 rows on, so that dense matrices can check what they give."""
    monkeypatch.setattr(preconditioners, "ROWS_OF_FEATURES", 50)


def inverse(preconditioner, n, column=0):
    return preconditioner.solve(np.eye(n), np.full(n, column))


def close(found, expected, what):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=scale * IDENTITY[what]())


# ---- as the reference


def test_low_rank_is_the_reference():
    X, shifts = rows(), [0.01, 5.0]
    noise, kernel = noises(60), RationalQuadratic().resolve(X)
    features = NystromFeatures(kernel, 20, random_state=0).fit(X)
    kept = KeptFeatures.of(features, X, np.float64)
    P = LowRank(kept, kernel.diag(X), np.array(shifts), noise)
    Z = features.transform(X)
    for column, alpha in enumerate(shifts):
        mu = reference.preconditioners.low_rank_shift(kernel(X), Z, alpha, noise)
        close(P.mu[column], mu, "preconditioners")
        expected = reference.preconditioners.low_rank_inverse(Z, mu, noise)
        close(inverse(P, 60, column), expected, "preconditioners")


@pytest.mark.parametrize(
    ("n", "d", "count"), [(1, 2, 3), (2, 1, 1), (31, 1, 4), (33, 3, 5), (200, 9, 31)]
)
def test_neighbours_are_those_of_the_reference(n, d, count):
    X = rows(n, d)
    found = Neighbours.of(X, count, np.random.default_rng(0))
    placed = X[found.order].astype(np.float32)
    expected = reference.preconditioners.nearest_before(placed.tolist(), found.ranks, count)
    assert sorted(found.order) == sorted(found.ranks) == list(range(n))
    for i in range(n):
        assert [j for j in found.table[i] if j != i] == expected[i]


@pytest.mark.parametrize("kernel", [*KERNELS, SUM], ids=lambda kernel: repr(kernel)[:24])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_factor_is_that_of_the_reference(kernel, dtype):
    X, shifts, noise = rows(), np.array([0.1, 3.0]), noises(60)
    kernel = kernel.resolve(X)
    pairs = Pairs.of(kernel, X, dtype)
    neighbours = Neighbours.of(pairs.rows, 11, np.random.default_rng(0))
    X, noise, pairs = X[neighbours.order], noise[neighbours.order], pairs.take(neighbours.order)
    Z = KeptFeatures.of(NystromFeatures(kernel, 16, random_state=0).fit(X), X, dtype).Z
    factor = SparseFactor(neighbours, pairs, Z, np.outer(shifts, noise))
    R = kernel(X) - Z.astype(np.float64) @ Z.astype(np.float64).T
    lists = [[j for j in table if j != i] for i, table in enumerate(neighbours.table)]
    V = rows(60, 4, seed=5)
    for s, alpha in enumerate(shifts):
        S = R + alpha * np.diag(noise)
        G = reference.preconditioners.sparse_factor(S, lists)
        spread = np.sqrt(np.linalg.cond(S) * np.abs(kernel(X)).max())
        off = spread * IDENTITY["preconditioners"](dtype) * np.abs(G).max()
        found = factor.multiply(s, np.eye(60), slice(0, 60))
        np.testing.assert_allclose(found, G, rtol=0, atol=off)
        np.testing.assert_allclose(found[7:20], factor.multiply(s, np.eye(60), slice(7, 20)))
        close(factor.apply(s, V), found.T @ found @ V, "preconditioners")


def test_a_neighbour_of_which_features_leave_nothing_is_left_out():
    X, noise, kernel = rows(), noises(60), Gaussian(2.0)
    neighbours = Neighbours.of(X, 11, np.random.default_rng(0))
    X, noise = X[neighbours.order], noise[neighbours.order]
    Z = KeptFeatures.of(NystromFeatures(kernel, 16, random_state=0).fit(X), X, np.float64).Z.copy()
    Z[7] *= 2 / np.linalg.norm(Z[7])
    factor = SparseFactor(neighbours, Pairs.of(kernel, X, np.float64), Z, noise[None])
    lists = [[j for j in table if j not in (i, 7)] for i, table in enumerate(neighbours.table)]
    S = kernel(X) - Z @ Z.T + np.diag(noise)
    others = [i for i in range(60) if i != 7 and S[i, i] > noise[i]]
    S[7], S[:, 7], S[7, 7] = 0, 0, 1
    G = reference.preconditioners.sparse_factor(S, lists)
    found = factor.multiply(0, np.eye(60), slice(0, 60))
    assert 7 in neighbours.table[others]
    np.testing.assert_allclose(found[others], G[others], rtol=1e-8, atol=1e-10)


def test_near_and_far_is_the_reference():
    X, shifts, noise = rows(), [0.01, 1.0], noises(60)
    P, _ = made("near and far", X, shifts, noise)
    order = P.neighbours.order
    assert isinstance(P, NearAndFar)
    for column in range(2):
        G = P.factor.multiply(column, np.eye(60), slice(0, 60))
        Z = P.features.Z.astype(np.float64)
        expected = np.empty((60, 60))
        expected[np.ix_(order, order)] = reference.preconditioners.near_and_far_inverse(Z, G)
        close(inverse(P, 60, column), expected, "preconditioners")


@pytest.mark.parametrize("alphas", [[0.01, 1.0], [1e-5, 0.1]])  # float32 and float64
def test_near_landmarks_is_the_reference(alphas):
    X, noise = rows(), noises(60)
    P, kernel = made("near landmarks", X, alphas, noise)
    assert isinstance(P, NearLandmarks)
    order = P.neighbours.order
    at = P.landmarks
    seen = Seen.of(X[order], X[at], 48)
    lists = [[j for j in table if j != i] for i, table in enumerate(P.neighbours.table)]
    K = kernel(X[at])
    own = near_landmarks.LANDMARK_NOISE[P.factor.values.dtype] * np.eye(len(K))
    for column, alpha in enumerate(alphas):
        expected = np.empty((60, 60))
        expected[np.ix_(order, order)] = reference.preconditioners.near_landmarks(
            kernel(X[order]), K + own, kernel(X[order], X[at]), alpha * noise[order], lists,
            seen.table,
        )  # fmt: skip
        off = IDENTITY["preconditioners"](P.factor.values.dtype.type) * np.linalg.cond(expected)
        np.testing.assert_allclose(inverse(P, 60, column) @ expected, np.eye(60), rtol=0, atol=off)


@pytest.mark.parametrize(
    ("n", "q", "d", "count"), [(3, 1, 1, 1), (50, 33, 3, 7), (200, 150, 2, 48)]
)
def test_the_landmarks_that_a_row_sees_are_the_nearest(n, q, d, count):
    X, landmarks = rows(n, d), rows(q, d, seed=1)
    seen = Seen.of(X, landmarks, count)
    apart = np.linalg.norm((X[:, None] - landmarks).astype(np.float32), axis=2)
    np.testing.assert_array_equal(seen.table, np.argsort(apart, axis=1)[:, :count])
    values = rows(n, count, seed=2)
    B = np.zeros((n, q))
    np.put_along_axis(B, seen.table, values, axis=1)
    V, W = rows(n, 2, seed=3), rows(q, 2, seed=4)
    close(seen.transposed_product(values, V), B.T @ V, "preconditioners")
    close(seen.gram(values), B.T @ B, "preconditioners")
    seen.subtract_product(values, W, V)
    close(V, rows(n, 2, seed=3) - B @ W, "preconditioners")


def test_landmarks_are_spread():
    """Apart by more than a random choice, in no two of one place while there are others."""
    X = sphere(2000, 3)
    chosen = near_landmarks.spread_landmarks(X, 100, np.random.default_rng(0))
    assert len(set(chosen)) == 100

    def least(some):
        apart = np.linalg.norm(X[some, None] - X[some], axis=2)
        return np.min(apart + 9 * np.eye(len(some)))

    assert least(chosen) > 3 * least(np.arange(100))
    twice = np.repeat(X[:200], 2, axis=0)
    chosen = near_landmarks.spread_landmarks(twice, 200, np.random.default_rng(0))
    assert len(set(chosen // 2)) == 200


# ---- what every kind promises


@every_kind
def test_solve_is_a_positive_matrix(kind):
    X, shifts, noise = rows(90), [0.05, 2.0], noises(90)
    P, _ = made(kind, X, shifts, noise)
    for column in range(2):
        B = inverse(P, 90, column)
        close(B, B.T, "preconditioners")
        assert eigvalsh((B + B.T) / 2)[0] > 0


@every_kind
def test_columns_have_their_own_alpha(kind):
    X, shifts = rows(80), [0.1, 1.0, 0.1]
    P, _ = made(kind, X, shifts)
    R = rows(80, 4, seed=3)
    together = P.solve(R, np.array([0, 1, 2, 1]))
    for j, column in enumerate([0, 1, 0, 1]):
        close(together[:, [j]], P.solve(R[:, [j]], np.array([column])), "preconditioners")


@every_kind
def test_bits_are_the_same_for_any_number_of_threads(kind):
    X, R = rows(3000), rows(3000, 2, seed=4)
    results = []
    for threads in (1, 2, 5):
        with limit_threads(threads):
            P, _ = made(kind, X, [0.1, 1.0])
            results.append(P.solve(R, np.array([1, 0])))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@every_kind
def test_the_callers_arrays_are_not_written_to(kind):
    X, shifts, noise, R = rows(), np.array([0.1]), noises(60), rows(60, 2)
    for array in (X, shifts, noise, R):
        array.setflags(write=False)
    P, _ = made(kind, X, shifts, noise)
    P.solve(R, np.array([0, 0]))


def test_what_it_says_of_itself():
    X = rows(80)
    P, _ = made("near and far", X, [0.1])
    assert repr(P) == "NearAndFar(40 components, 31 neighbours)"
    assert (P.n_components, P.n_neighbours) == (40, 31)
    assert P.seconds > 0
    assert P.nbytes > 80 * (40 + 31) * 4
    assert repr(made("low rank", X, [0.1])[0]) == "LowRank(40 components)"
    assert repr(made("diagonal", X, [0.1])[0]) == "Diagonal()"


# ---- near the matrix


def condition(P, A):
    root = cholesky(A, lower=True)
    values = eigvalsh(root.T @ inverse(P, len(A)) @ root)
    return values[-1] / values[0]


@every_kernel
def test_the_condition_number_falls(kernel):
    X = rows(400)
    kernel = kernel.resolve(X)
    A = kernel(X) + 0.1 * np.eye(400)
    P = preconditioner_for(64, kernel, X, [0.1], random_state=0)
    assert isinstance(P, NearAndFar)
    assert condition(P, A) < 4 < np.linalg.cond(A) / 10


@pytest.mark.parametrize("alpha", [1.0, 0.01])
def test_the_condition_of_near_and_far_is_that_of_the_near_part(alpha):
    """At most b / a, the eigenvalues of G (K - Z Z^T + alpha N) G^T."""
    X, noise = rows(200), noises(200)
    P, kernel = made("near and far", X, [alpha], noise=noise)
    order, Z = P.neighbours.order, np.asarray(P.features.Z, np.float64)
    G = P.factor.multiply(0, np.eye(200).astype(P.features.Z.dtype), slice(0, 200))
    rest = kernel(X[order]) - Z @ Z.T + alpha * np.diag(noise[order])
    values = eigvalsh(G @ rest @ G.T)
    assert values[0] <= 1 <= values[-1]
    assert condition(P, kernel(X) + alpha * np.diag(noise)) <= values[-1] / values[0] * (1 + 1e-3)


def test_the_bound_of_low_rank_holds():
    X, noise = rows(200), noises(200)
    kernel = FunctionKernel(RationalQuadratic(length_scale=0.5))
    for alpha in (1e-3, 0.1, 10.0):
        P = preconditioner_for(30, kernel, X, [alpha], noise=noise, random_state=0)
        assert isinstance(P, LowRank)
        found = condition(P, kernel(X) + alpha * np.diag(noise))
        assert found <= P.condition_bound(0) * (1 + 1e-9)


def steps(kernel, X, alpha, tol=1e-3, **options):
    """Count the steps of conjugate gradients to a relative residual, by a dense matrix."""
    rng = np.random.default_rng(0)
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + 0.3 * rng.standard_normal(len(X))
    A = kernel(X) + alpha * np.eye(len(X))
    P = preconditioner_for("auto", kernel, X, [alpha], random_state=0, **options)
    x, r = np.zeros((len(X), 1)), y[:, None].copy()
    zero = np.array([0])
    z = P.solve(r, zero)
    p = z.copy()
    for step in range(1, 200):
        q = A @ p
        a = np.sum(r * z) / np.sum(p * q)
        x, before, r = x + a * p, np.sum(r * z), r - a * q
        if np.linalg.norm(y[:, None] - A @ x) < tol * np.linalg.norm(y):
            return step
        z = P.solve(r, zero)
        p = z + np.sum(r * z) / before * p
    return 200


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.01])
@pytest.mark.parametrize("kernel", [Matern(nu=1.5, length_scale=0.1), Gaussian(50.0)], ids=repr)
def test_few_steps_on_the_sphere(kernel, alpha):
    X = sphere(4000, 3)
    assert steps(kernel.resolve(X), X, alpha) <= 10


@pytest.mark.slow
def test_features_of_any_map():
    X = sphere(600, 3)
    kernel = Gaussian(4.0).resolve(X)
    A = kernel(X) + 0.1 * np.eye(600)
    plain = np.linalg.cond(A)
    exact = GegenbauerFeatures(kernel, 144, random_state=0)
    for features in (exact, exact.fit(X), NystromFeatures(kernel, 100, random_state=0)):
        P = preconditioner_for(features, kernel, X, [0.1], random_state=0)
        assert isinstance(P, NearAndFar)  # they stay below the kernel
        assert condition(P, A) < 2
    drawn = RandomFourierFeatures(kernel, 512, random_state=0)
    for features in (drawn, RBFSampler(gamma=4.0, n_components=512, random_state=0)):
        P = preconditioner_for(features, kernel, X, [0.1], random_state=0)
        assert isinstance(P, LowRank)
        assert P.condition_bound(0) == np.inf
        assert condition(P, A) < plain / 4


# ---- the choice


@pytest.mark.parametrize(
    ("columns", "dim", "kind"),
    [
        ((range(3), range(3)), 3, NearLandmarks),
        ((range(3), range(2)), 3, LowRank),  # additive in column 2
        ((range(4), range(4)), 4, LowRank),
    ],
)
def test_neighbours_of_sums_are_of_use_where_all_terms_are_of_all_of_few_columns(
    columns, dim, kind, monkeypatch
):
    monkeypatch.undo()
    pairs = zip(columns, (Matern(1.5, 0.5), Gaussian(0.5)), strict=True)
    kernel = Sum([(list(index), part) for index, part in pairs])
    P = preconditioner_for("auto", kernel, rows(2100, dim), [0.1], random_state=0)
    assert isinstance(P, kind)


def test_the_choice_by_rows_and_kernel(monkeypatch):
    monkeypatch.undo()
    X = rows(2100)
    kernel = Gaussian(0.5).resolve(X)
    assert isinstance(preconditioner_for("auto", kernel, X, [0.1], random_state=0), NearLandmarks)
    wide = preconditioner_for("auto", kernel, rows(2100, 4), [0.1], random_state=0)
    assert isinstance(wide, NearAndFar)
    assert repr(preconditioner_for("auto", kernel, X[:300], [0.1])) == "LowRank(300 components)"
    assert isinstance(preconditioner_for("auto", kernel, X, [1e4]), Diagonal)
    assert isinstance(preconditioner_for(None, kernel, X, [0.1]), Diagonal)
    P = preconditioner_for(20, kernel, X[:300], [0.1])
    assert preconditioner_for(P, kernel, X[:300], [0.1]) is P


@pytest.mark.parametrize("given", ["auto", 20, None])
def test_one_of_other_rows_or_alphas_is_refused(given):
    X, kernel = rows(), Gaussian(0.5)
    P = preconditioner_for(given, kernel, X, [0.1, 1.0], random_state=0)
    assert preconditioner_for(P, kernel, X, [0.1, 1.0]) is P
    with pytest.raises(ValueError, match=r"preconditioner=.* made for 60 rows, but X has 59; make"):
        preconditioner_for(P, kernel, X[:59], [0.1, 1.0])
    for shifts in ([0.1], [0.1, 2.0], [1.0, 0.1]):
        with pytest.raises(ValueError, match=r"preconditioner=.* alphas 0.1, 1, but these are"):
            preconditioner_for(P, kernel, X, shifts)


def test_what_are_no_rows():
    with pytest.raises(TypeError, match=r"X is sparse, .* pass X.toarray"):
        preconditioner_for("auto", Gaussian(0.5), csr_array(rows()), [0.1])
    for X in (rows()[:0], rows()[0]):
        with pytest.raises(ValueError, match=r"X has shape .* one at least"):
            preconditioner_for("auto", Gaussian(0.5), X, [0.1])


@pytest.mark.slow
def test_many_steps_take_more_features():
    """A small alpha of a smooth kernel: a trial says that features will pay."""
    X = np.random.default_rng(0).standard_normal((4000, 8))
    some, few = (
        preconditioner_for("auto", Gaussian(0.1), X, [alpha], random_state=0).n_components
        for alpha in (1e-3, 1.0)
    )
    assert 256 <= few < some / 2
    assert some <= preconditioners.most_components(4000, 8, np.float32)
    again = preconditioner_for("auto", Gaussian(0.1), X, [1e-3], random_state=0)
    assert again.n_components == some


def test_features_cost_as_much_as_steps():
    """q features leave s / q steps and cost q^2 / u: no other number costs less."""
    n, d, steps = 36_000, 8, 250
    chosen = preconditioners.count_components(n, d, np.float32, steps)
    q = np.arange(300, 4000)
    costs = steps * preconditioners.FEWEST / q + 6 * q**2 / (n * (d + 12))
    assert abs(chosen - q[costs.argmin()]) <= preconditioners.LANES
    assert preconditioners.count_components(n, d, np.float32) == 480
    assert preconditioners.count_components(n, d, np.float32, steps, 3) < chosen


@pytest.mark.slow
def test_landmarks_whose_matrix_is_singular_have_features_too():
    """Copies of rows, and a kernel with fewer dimensions than landmarks."""
    X = np.repeat(np.random.default_rng(0).standard_normal((150, 4)), 20, axis=0)
    for kernel in (Gaussian(1e-6), Matern(1.5, 1.0)):
        P = preconditioner_for(512, kernel, X, [1e-2], random_state=0)
        R = np.random.default_rng(1).standard_normal((len(X), 1))
        found = P.solve(R, np.array([0]))
        left = kernel(X) @ found + 1e-2 * found - R
        assert np.linalg.norm(left) < 0.1 * np.linalg.norm(R)


def test_features_alone_are_doubled_while_they_leave_much(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(preconditioners, "FEATURES_ALONE", 32)
    X = rows(1500, 6)
    rough = FunctionKernel(RationalQuadratic(length_scale=0.5))
    smooth = FunctionKernel(RationalQuadratic(length_scale=50.0))
    assert preconditioner_for("auto", rough, X, [1e-3], random_state=0).n_components > 64
    assert preconditioner_for("auto", smooth, X, [0.1], random_state=0).n_components == 32


@pytest.mark.parametrize(("given", "error", "match"), [
    ("best", ValueError, "preconditioner='best' is unknown; use"),
    (0, ValueError, "preconditioner=0 components; use 1 or more"),
    (True, TypeError, "preconditioner=True has no transform; use"),
    (object(), TypeError, "has no transform; use"),
])  # fmt: skip
def test_what_is_no_preconditioner(given, error, match):
    X = rows()
    with pytest.raises(error, match=match):
        preconditioner_for(given, Gaussian(0.5), X, [0.1])
    with pytest.raises(error, match=match):
        KernelRidge("precomputed", preconditioner=given).fit(Gaussian(0.5)(X), np.ones(len(X)))


def test_what_is_no_alpha_and_no_noise():
    X, kernel = rows(), Gaussian(0.5)
    with pytest.raises(ValueError, match="shifts has shape"):
        preconditioner_for("auto", kernel, X, [])
    for alpha in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"shifts=.* must be finite and >= 0"):
            preconditioner_for("auto", kernel, X, [alpha])
    with pytest.raises(ValueError, match=r"noise has shape .* one number > 0 for each row"):
        preconditioner_for("auto", kernel, X, [0.1], noise=np.ones(3))
    with pytest.raises(ValueError, match="noise has the smallest value 0, but must be > 0"):
        preconditioner_for("auto", kernel, X, [0.1], noise=np.zeros(60))


# ---- rows that are awkward


def awkward():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 3))
    outlying = X.copy()
    outlying[5] = 1e8
    constant = X.copy()
    constant[:, 1] = 7.0
    return {
        "one row": X[:1],
        "two rows": X[:2],
        "fewer rows than neighbours": X[:20],
        "duplicates": np.repeat(X[:12], 10, axis=0),
        "all the same": np.ones((100, 2)),
        "outlying": outlying,
        "far from the origin": X + 1e6,
        "constant column": constant,
        "no spread in one column": X * [1.0, 1e-9, 1.0],
        "float32": X.astype(np.float32),
    }


@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1e-2, 1e4])
@pytest.mark.parametrize("name", awkward())
@pytest.mark.parametrize("given", ["auto", 8, None])
def test_awkward_rows_leave_it_finite_and_positive(name, alpha, given, monkeypatch):
    monkeypatch.setattr(preconditioners, "ROWS_OF_FEATURES", 0)
    X = awkward()[name]
    kernel = Matern(nu=1.5).resolve(X.astype(np.float64))
    P = preconditioner_for(given, kernel, X, [alpha], random_state=0)
    B = inverse(P, len(X))
    assert np.isfinite(B).all()
    assert (np.einsum("ij,ij->j", rows(len(X), 5), B @ rows(len(X), 5)) > 0).all()


def test_noise_over_eight_decades():
    X = rows(500, 2)
    noise = 10.0 ** np.random.default_rng(0).uniform(-4, 4, 500)
    kernel = Matern(nu=1.5).resolve(X)
    A = kernel(X) + 0.1 * np.diag(noise)
    P = preconditioner_for(64, kernel, X, [0.1], noise=noise, random_state=0)
    assert isinstance(P, NearAndFar)
    assert condition(P, A) < 10


def test_kernels_of_unit_rows():
    X = sphere(300, 4)
    kernel = ArcCosine(order=1).resolve(X)
    A = kernel(X) + 0.01 * np.eye(300)
    P = preconditioner_for("auto", kernel, X, [0.01], random_state=generator(0))
    assert condition(P, A) < 3


@pytest.mark.parametrize(("dim", "kind"), [(2, "landmarks"), (5, "components")])
def test_a_part_has_the_preconditioner_of_all(dim, kind):
    """As many features or landmarks as all rows have, and their share of the neighbours."""
    X, kernel = gaussian(400, dim), Matern(nu=1.5, length_scale=1.0)
    made = preconditioner_of_some(kernel, X, 0.01, 1600 * 4, random_state=0)
    assert repr(made).endswith(f"(200 {kind}, 1 neighbour)")
    K = kernel(X) + 0.01 * np.eye(400)
    values = eigvals(K @ made.solve(np.eye(400), np.zeros(400, int))).real
    assert 0 < values.min() < values.max() < 20 * values.min()


@pytest.mark.parametrize(("alpha", "few_rows", "tried"), [
    (1e-1, 2100, 0), (1e-6, 2100, 1), (1e-1, 2099, 1)
], ids=["little left", "much left", "many rows"])  # fmt: skip
def test_features_beside_neighbours_are_tried_unless_few_leave_little(
    monkeypatch, alpha, few_rows, tried
):
    calls = []
    monkeypatch.setattr(preconditioners, "FEW_ROWS", few_rows)
    monkeypatch.setattr(preconditioners, "FEATURES_OF_FEW", 64)
    monkeypatch.setattr(preconditioners, "_as_costly_as_steps", lambda _: calls.append(1) or 32)
    X = np.random.default_rng(0).standard_normal((2100, 6))
    made = preconditioner_for("auto", Matern(1.5, 8.0), X, [alpha], random_state=0)
    assert len(calls) == tried
    assert made.n_components == (32 if tried else 64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_of_which_less_than_its_noise_is_left_tells_nothing(dtype):
    """Features that exceed the kernel by half the noise leave half of it."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    neighbours = Neighbours.of(X, 6, generator(0))
    Z = np.zeros((40, 16), dtype)
    Z[:, 0] = np.sqrt(1.05)
    pairs = Pairs.of(Gaussian(1.0), X, dtype)
    values = SparseFactor(neighbours, pairs, Z, np.full((1, 40), 0.1)).values[0]
    np.testing.assert_array_equal(values[:, :-1], 0.0)
    np.testing.assert_allclose(values[:, -1], 0.1**-0.5, rtol=1e-6)
