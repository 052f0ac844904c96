"""Leverage, theorems and bounds: formula against fast path; corrected ones hold, printed ones fail."""

from math import ceil, comb, exp, factorial, inf, lgamma, log, pi, sqrt

import numpy as np
import pytest
from points import ball, sphere
from scipy import stats
from sklearn.random_projection import johnson_lindenstrauss_min_dim
from tolerances import IDENTITY

from gzkcore import Gaussian, Zonal, metrics, reference, theory
from gzkcore.features.gegenbauer import feature_operator
from gzkcore.kernels.dot_product import DotProductKernel
from gzkcore.kernels.radial import radial_table
from gzkcore.kernels.truncation import growth_constants
from gzkcore.sphere.directions import sphere_quadrature
from gzkcore.sphere.special import alpha, gegenbauer

both = pytest.mark.parametrize("impl", [reference.theory, theory], ids=["reference", "gzkcore"])
exact = IDENTITY["closed form"](length=10**4)
KERNEL = Gaussian(0.5)


def operator(X, degree, order, signs=None):
    """Return w -> Phi_w by its definition (Eq 13 and 16), and the matrix K of the cut kernel."""
    norms, dim = np.linalg.norm(X, axis=1), X.shape[1]
    h = radial_table(KERNEL, norms, dim, degree, order)
    signs = np.ones(degree + 1) if signs is None else signs
    roots = signs * np.sqrt([alpha(ell, dim) for ell in range(degree + 1)])

    def rows(w):
        t = np.clip(X @ w / norms, -1, 1)
        P = np.array([gegenbauer(ell, dim, t) for ell in range(degree + 1)])
        return np.einsum("l,jli,lj->ji", roots, h, P)

    cosines = np.clip(X @ X.T / np.outer(norms, norms), -1, 1)
    K = sum(h[:, ell] @ h[:, ell].T * gegenbauer(ell, dim, cosines) for ell in range(degree + 1))
    return rows, K, h


def whitened(K, lam):
    energies, axes = np.linalg.eigh(K + lam * np.eye(len(K)))
    return axes / np.sqrt(energies) @ axes.T


# ---- Definition 6, Eq 18, Lemmas 7 and 17


@both
def test_statistical_dimension_counts_what_is_above_the_ridge(impl):
    K = ball(9, 4) @ ball(9, 4).T
    energies = np.linalg.eigvalsh(K)
    expected = np.sum(energies / (energies + 0.3))
    assert impl.statistical_dimension(K, 0.3) == pytest.approx(expected, rel=exact)
    assert impl.statistical_dimension(K, 1e-9) == pytest.approx(4, abs=1e-6)


@both
@pytest.mark.parametrize("lam", [1e-9, 1e-13, 1e-20, 1e-300])
def test_rounding_adds_no_dimensions(impl, lam):
    """The eigenvalues of a matrix of rank 1 that aren't 0 by rounding alone."""
    K = np.ones((100, 100))
    assert impl.statistical_dimension(K, lam) == pytest.approx(1, rel=1e-6)
    assert impl.statistical_dimension(np.zeros((3, 3)), lam) == 0


def test_rounding_adds_no_risk():
    K, f = np.ones((50, 50)), np.ones(50)
    for impl in (reference.theory, theory):
        assert impl.ridge_risk(K, 1e-12, f, 1.0) == pytest.approx(1 / 50)
        assert impl.risk_bound(K, 1e-12, f, 1.0, 0.0, 1) == pytest.approx(1 / 50)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_statistical_dimensions_have_no_units(scale):
    K = ball(9, 4) @ ball(9, 4).T
    expected = theory.statistical_dimension(K, 0.3)
    assert theory.statistical_dimension(scale * K, 0.3 * scale) == pytest.approx(expected)


def test_leverage_is_the_same_by_operator_by_rows_and_by_lemma_17():
    X = ball(5, 2, 1.5)
    rows, K, _ = operator(X, 6, 2)
    phi = feature_operator(X, KERNEL, degree=6, order=2)
    nodes, weights = sphere_quadrature(2, 12)
    for w in sphere(4, 2, seed=7):
        by_rows = theory.ridge_leverage(rows, K, 0.1, w)
        assert theory.ridge_leverage(phi, K, 0.1, w) == pytest.approx(by_rows, rel=exact)
        assert reference.theory.ridge_leverage(rows, K, 0.1, w) == pytest.approx(by_rows, rel=exact)
        assert theory.ridge_leverage(rows, K, 0.1, [w, -w])[0] == pytest.approx(by_rows, rel=exact)
        minimum = reference.theory.ridge_leverage_minimum(rows, 0.1, w, nodes, weights)
        assert minimum == pytest.approx(by_rows, rel=exact)


def test_leverage_of_the_references_own_operator():
    X, w = ball(3, 3), sphere(1, 3, seed=2)[0]
    kernel = reference.kernels.Gaussian()
    rows, K, _ = operator(X, 4, 2)
    score = reference.theory.ridge_leverage(
        lambda w: reference.gegenbauer.operator_rows(X, w, kernel, 4, 2), K, 0.1, w
    )
    assert score == pytest.approx(theory.ridge_leverage(rows, K, 0.1, w), rel=1e-10)


@pytest.mark.parametrize("dim", [2, 3])
def test_eq_18(dim):
    X = ball(20, dim, 1.2)
    phi = feature_operator(X, KERNEL, degree=5, order=3)
    K = phi.T @ (phi @ np.eye(20))
    scores = theory.ridge_leverage(phi, K, 0.1, phi.nodes)
    assert scores[3] == pytest.approx(theory.ridge_leverage(phi, K, 0.1, phi.nodes[3]), rel=exact)
    mean = phi.weights @ scores
    assert mean == pytest.approx(theory.statistical_dimension(K, 0.1), rel=exact)


@pytest.mark.parametrize(
    ("dim", "radius", "s_lam", "largest", "bound"),
    [(3, 1.0, 18.7, 22.4, 166.6), (5, 1.5, 76.3, 154, None), (9, 1.0, 83.6, 469, None)],
)
def test_lemma_7_on_data(dim, radius, s_lam, largest, bound):
    """200 points, q = 8, s = 4, lam = .1: what was measured on another draw of such points."""
    X = ball(200, dim, radius)
    rows, K, h = operator(X, 8, 4)
    assert theory.statistical_dimension(K, 0.1) == pytest.approx(s_lam, rel=0.05)
    inverse = np.linalg.inv(K + 0.1 * np.eye(200))
    towards = X / np.linalg.norm(X, axis=1, keepdims=True)  # where all plus has its spikes
    W = np.concatenate([sphere(100, dim, seed=3), towards])

    def highest(rows):
        return max(np.sum(rows(w) * (inverse @ rows(w))) for w in W)

    found = highest(rows)
    assert found == pytest.approx(largest, rel=0.3)
    limit = theory.leverage_bound(h, dim, 0.1)
    assert 5 < limit / found < 80
    assert limit == pytest.approx(reference.theory.leverage_bound(h, dim, 0.1), rel=exact)
    if bound:
        assert limit == pytest.approx(bound, rel=0.05)
    plane_wave = highest(operator(X, 8, 4, np.resize([1, 1, -1, -1], 9))[0])
    assert plane_wave < found / (1 if dim == 3 else 1.5)


# ---- Lemma 18 and Theorem 9


def test_lemma_18_is_empty_where_its_condition_fails():
    """Without the condition the printed bound is above 2 there: not false, only useless."""
    for M, L, m in [(1.0, 1.0, 10), (0.3, 4.0, 7), (2.0, 2.0, 100), (1e-6, 1.0, 5)]:
        condition = sqrt(M / m) + 2 * L / (3 * m)
        for t in np.linspace(1e-3, 1, 50) * condition:
            printed = 4 * 2 * M / M * exp(-m * t * t / 2 / (M + 2 * L * t / 3))
            assert printed > 4
            assert theory.matrix_bernstein(t, m, L, [[M]], [[M]]) == 1.0


def test_lemma_18_holds_for_random_matrices():
    """R = n u u^T for a random axis u: mean I, |R| = n, E R^2 = n I."""
    n, m, rng = 4, 200, np.random.default_rng(0)
    far = []
    for _ in range(2000):
        counts = rng.multinomial(m, np.full(n, 1 / n))
        far.append(np.abs(n * counts / m - 1).max())
    for t in (0.45, 0.55, 0.65):
        bound = theory.matrix_bernstein(t, m, n, n * np.eye(n), n * np.eye(n))
        assert np.mean(np.array(far) >= t) <= bound < 1


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_theorem_9_is_lemma_18_solved_for_m(epsilon):
    leverage, s_lam, delta = 20.0, 10.0, 0.05
    e = epsilon / (1 + epsilon)
    m = theory.required_directions(epsilon, delta, leverage, s_lam)
    M = leverage * np.eye(20)  # 2 Tr/M = 40 = 4 s_lam, where the theorem has its 16 s_lam
    assert theory.matrix_bernstein(e, m, leverage, M / 2, M) <= 1.1 * delta * 40 / 10
    fewer = 8 * 2 * s_lam * exp(-(m - 1) * e**2 / 2 / (leverage * (1 + 2 * e / 3)))
    assert 8 * 2 * s_lam * exp(-m * e**2 / 2 / (leverage * (1 + 2 * e / 3))) <= delta < fewer
    printed = theory.required_directions(epsilon, delta, leverage, s_lam, printed=True)
    assert (printed < m) == (epsilon > 0.12)  # 8/3 leaves room enough for small ones


def test_8_over_3_is_too_little_for_large_epsilon():
    """G7: at the printed m Lemma 18 does not give delta for the norm eps, once eps > 1/2."""
    for eps, enough in [(0.3, True), (0.5, True), (0.6, False), (1.5, False)]:
        m = 8 / (3 * eps**2) * 20.0 * log(16 * 10 / 0.1)
        failure = 16 * 10 * exp(-m * eps**2 / 2 / (20 * (1 + 2 * eps / 3)))
        assert (failure <= 0.1 * (1 + 1e-9)) == enough


@pytest.mark.slow
def test_theorem_9_on_data():
    """The corrected number of directions is enough, far more than enough, every time."""
    X = ball(40, 3, 1.0)
    rows, K, h = operator(X, 5, 2)
    lam, eps, delta = 0.5, 0.5, 0.1
    s_lam = theory.statistical_dimension(K, lam)
    m = theory.required_directions(eps, delta, theory.leverage_bound(h, 3, lam), s_lam)
    Z = np.concatenate([rows(w) for w in sphere(m, 3, seed=1)], axis=1) / sqrt(m)
    assert metrics.spectral_error(K, Z, lam) < eps / 2


# ---- Theorem 10


def test_theorem_10_needs_hundreds_of_times_more_than_printed():
    args = {"epsilon": 0.2, "delta": 0.1, "leverage": 20.0, "s_lam": 10.0}
    printed = theory.projection_directions(**args, rank=10, printed=True)
    assert printed == theory.required_directions(**args, printed=True)
    right = theory.projection_directions(**args, rank=10)
    assert 380 < right / printed < 600
    e = 0.2 / 24
    assert right == theory.required_directions(e, 0.05, 20.0, 10.0)  # half of delta for each event
    assert theory.projection_directions(**args, rank=1) > 1.5 * right  # the trace decides


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_the_trace_over_small_eigenvalues(rank):
    """Bernstein's inequality for m numbers of size <= 2 lam L, mean <= 2 r lam, off by e r lam."""
    e, delta, L, lam = 0.01, 0.1, 20.0, 0.3
    m = (8 + 4 * e / 3) / (rank * e**2) * L * log(4 / delta)
    t, size, variance = e * rank * lam, 2 * lam * L, 2 * lam * L * 2 * rank * lam
    failure = 2 * exp(-m * t**2 / 2 / (variance + size * t / 3))
    assert failure == pytest.approx(delta / 2)


@pytest.mark.slow
def test_theorem_10_on_data():
    """Even a hundredth of the corrected number preserves the costs of all projections of a rank."""
    X, rank, eps = ball(20, 3, 1.0), 2, 0.5
    rows, K, h = operator(X, 4, 2)
    lam = np.linalg.eigvalsh(K)[:-rank].sum() / rank
    bound, s_lam = theory.leverage_bound(h, 3, lam), theory.statistical_dimension(K, lam)
    m = theory.projection_directions(eps, 0.1, bound, s_lam, rank) // 100
    Z = np.concatenate([rows(w) for w in sphere(m, 3, seed=1)], axis=1) / sqrt(m)
    assert metrics.projection_cost_error(K, Z, rank) < eps


# ---- Theorems 11 and 12


@both
def test_theorem_12_where_the_chain_and_the_print_differ(impl):
    """G11: n = 1000, d = 3, r = 2, lam = .01, eps = .5, before the logarithm."""
    s_lam, delta = 20.0, 0.1
    args = (1000, 3, 2.0, 0.01, 0.5, delta, s_lam)
    size = log(16 * s_lam / delta)
    q, s, printed = impl.gaussian_directions(*args, printed=True)
    assert (q, s) == (17, 15)
    assert printed / size == pytest.approx(2.5e5, rel=0.02)
    chain = 8 / 3 / 0.4**2 * 1.1 * 14.8 * comb(19, 17)  # as the proof has it: .8 eps, 1.1 s (...)
    assert chain == pytest.approx(4.6e4, rel=0.02)
    assert chain * 14.8 == pytest.approx(6.9e5, rel=0.02)
    assert chain * 14.8 * size > 2.5 * printed
    assert impl.gaussian_directions(*args)[:2] == (12, 10)  # from the tails


@both
def test_theorem_11_for_the_exponential_kernel(impl):
    args = (1000, 3, 1.0, 0.1, 0.5, 0.1, 20.0)
    size = log(1000 / 0.05)
    q, s, _ = impl.dot_product_directions(*args, printed=True)
    assert (q, s) == (ceil(1 + size), ceil(0.25 + size / 2))
    q, s, m = impl.dot_product_directions(*args)
    assert (q, s) == (7, 5)
    e = 1 - 1 / (1.5 * 0.95)
    alphas = comb(q + 2, q) + comb(q + 1, q - 1)
    log_size = log(8 * (1 + 1 / 0.95) * 20 / 0.1)
    assert m == ceil((2 + 4 * e / 3) / e**2 * s * alphas * log_size)
    args = (1000, 3, 2.0, 0.1, 0.5, 0.1, 20.0, 1.0, 4.0)
    assert impl.dot_product_directions(*args, printed=True)[0] == 60


def lost(radius, dim, q, s):
    """Return what the Gaussian loses at q and s between equal points of a norm."""
    h = radial_table(KERNEL, [radius], dim, q + 30, s + 30)[0]
    h[: q + 1, :s] = 0
    return np.square(h).sum()


@pytest.mark.parametrize("dim", [3, 9, 30, 100])
@pytest.mark.parametrize("radius", [0.5, 2.0, 4.96])
def test_q_and_s_are_safe(dim, radius):
    """What is cut is below eps lam / (10 n) in any dimension; the printed q is not (G25)."""
    for n, lam, eps in [(100, 1.0, 0.5), (10**6, 1e-9, 0.1), (1, 5.4e-33, 0.5)]:
        allowed = eps * lam / (10 * n)
        q, s, _ = theory.gaussian_directions(n, dim, radius, lam, eps, 0.1, 20.0)
        assert max(lost(t * radius, dim, q, s) for t in (0.5, 1)) <= allowed
        q, s, _ = theory.dot_product_directions(n, dim, radius, lam, eps, 0.1, 20.0)
        assert exp(radius**2) * lost(radius, dim, q, s) <= allowed


def test_theorem_12_wastes_the_least_in_few_dimensions():
    """G14: the printed q and s leave at most a share of .29 of what is allowed, as far as we saw."""
    for (n, dim, radius, lam, eps), share in [
        ((10, 3, 1.0, 0.1, 0.05), 0.027),
        ((1, 3, 0.735, 0.0367, 0.5), 0.28),
    ]:
        q, s, _ = theory.gaussian_directions(n, dim, radius, lam, eps, 0.1, 20.0, printed=True)
        assert lost(radius, dim, q, s) == pytest.approx(share * eps * lam / (10 * n), rel=0.05)


def test_the_sum_of_alphas_is_up_to_twice_the_binomial():
    """G10: (q+d-1 choose q)(1 + q/(q+d-1)) exactly, above the 1.1 of the proofs."""
    for dim in (2, 3, 9):
        for q in (1, 5, 40):
            total = sum(alpha(ell, dim) for ell in range(q + 1))
            assert total * (q + dim - 1) == comb(q + dim - 1, q) * (2 * q + dim - 1)
    assert sum(alpha(ell, 3) for ell in range(41)) > 1.9 * comb(42, 40)


FEW = (0.1, 0.5, 0.1, 20.0)  # lam, epsilon, delta, s_lam


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("call", [
    lambda printed: theory.required_directions(1e-170, 0.1, 20.0, 10.0, printed=printed),
    lambda printed: theory.required_directions(0.5, 5e-324, 20.0, 10.0, printed=printed),
    lambda printed: theory.projection_directions(0.5, 0.1, 20.0, 10.0, 10**400),
    lambda printed: theory.dot_product_directions(1000, 3, 1e160, *FEW, printed=printed),
    lambda printed: theory.dot_product_directions(1000, 10**9, 1e9, *FEW, printed=printed),
    lambda printed: theory.gaussian_directions(10**400, 3, 1.0, *FEW, printed=printed),
    lambda printed: theory.gaussian_directions(10, 300, 1e4 if printed else 99.0, *FEW, printed=printed),
    lambda printed: theory.table_1(1000, 0.1, 3, 1e160, 20.0, 3000, printed=printed),
    lambda printed: theory.iterations_bound(9.0, 5e-324),
    lambda printed: theory.johnson_lindenstrauss(1000, 5e-324),
])  # fmt: skip
def test_numbers_beyond_floats_are_refused(call, printed):
    with pytest.raises(ValueError, match=r"\w: a number is beyond the range of floats; use"):
        call(printed)


@both
def test_truncation_leaves_all_of_a_small_epsilon(impl):
    """1 - 1 / ((1 + eps)(1 - eps/10)) is .9 eps, of which rounding left nothing."""
    q, s, m = impl.gaussian_directions(1000, 3, 1.0, 0.1, 1e-20, 0.1, 20.0)
    alphas = comb(q + 2, q) + comb(q + 1, q - 1)
    assert m == pytest.approx(2 / 0.81 * 1e40 * s * alphas * log(16 * 20 / 0.1))


def test_theorem_12s_sum_exceeds_what_its_proof_allows():
    """With its own q and s, and all points on the rim."""

    def ratio(radius, n, lam, eps):
        q, s, _ = theory.gaussian_directions(n, 3, radius, lam, eps, 0.1, 20.0, printed=True)
        h = sqrt(n) * radial_table(KERNEL, [radius], 3, q, s)
        return theory.leverage_bound(h, 3, lam) / (1.1 * s * comb(q + 2, q))

    assert ratio(3.0, 10**4, 1e-8, 0.5) == pytest.approx(1.19, abs=0.01)
    assert ratio(2.0, 10**4, 1.0, 0.5) > 1
    assert ratio(3.0, 10**4, 0.1, 0.5) < 1


# ---- Assumption 1


class Derivatives(DotProductKernel):
    """A kernel that knows its derivatives at 0."""

    def __init__(self, log_derivative, factor=1.0):
        self.log_derivative = np.vectorize(log_derivative, otypes=[float])
        self.factor = factor

    def scale(self):
        return self.factor


def both_growths(kernel, degree):
    ours = growth_constants(kernel, degree)
    assert reference.series.growth_constants(kernel, degree) == pytest.approx(ours, rel=exact)
    return ours


@pytest.mark.parametrize(
    ("log_derivative", "expected"),
    [
        (lambda j: 0.0, (1.0, 1.0)),  # exp(t)
        (lambda j: j * log(3.0), (1.0, 3.0)),  # exp(3 t)
        (lambda j: j * log(0.5), (1.0, 1.0)),  # exp(t/2): beta is at least 1
        (lambda j: 0.0 if j % 2 == 0 else -np.inf, (1.0, 1.0)),  # cosh(t)
        (lambda j: log(2) + j * log(3) if j > 3 else 0.0, (2.0, 3.0)),
        (lambda j: float(np.log(comb(3, j) * [1, 1, 2, 6][j])) if j <= 3 else -np.inf, (6.0, 1.0)),
    ],
)  # fmt: skip
def test_growth_constants(log_derivative, expected):
    growth, base = both_growths(Derivatives(log_derivative), 40)
    assert (growth, base) == pytest.approx(expected)
    values = [log_derivative(j) for j in range(41)]
    assert all(v <= log(growth) + j * log(base) + 1e-9 for j, v in enumerate(values))


@pytest.mark.parametrize("log_derivative", [
    lambda j: float(np.sum(np.log(np.arange(1, j + 1)))) - (j + 1) * log(2),  # 1/(2-t)
    lambda j: float(np.sum(np.log(np.arange(1, j)))) if j else -np.inf,  # -log(1-t)
    lambda j: (float(np.sum(np.log(np.arange(j // 2 + 1, j + 1)))) if j % 2 == 0 else -np.inf),  # exp(t^2): converges everywhere, and still grows too fast
], ids=["1/(2-t)", "-log(1-t)", "exp(t^2)"])  # fmt: skip
@pytest.mark.parametrize("degree", [16, 40, 100])
def test_growth_without_bound_is_refused(log_derivative, degree):
    kernel = Derivatives(log_derivative)
    with pytest.raises(ValueError, match="grow faster than any"):
        growth_constants(kernel, degree)
    with pytest.raises(ValueError, match="grow faster than any"):
        reference.series.growth_constants(kernel, degree)


def test_growth_is_in_the_units_of_the_data():
    assert growth_constants(Derivatives(lambda j: 0.0, factor=2.0), 30) == pytest.approx((1.0, 4.0))
    assert growth_constants(Gaussian(2.0), 30) == pytest.approx((1.0, 4.0))
    with pytest.raises(ValueError, match="unit sphere"):
        growth_constants(Zonal(np.exp), 30)
    with pytest.raises(ValueError, match="degree=3"):
        growth_constants(Gaussian(0.5), 3)


# ---- Lemma 13


def counterexample():
    """Two points, S^(1/2) (I + E) S^(1/2) - lam I with S = K + lam I and |E| = .15."""
    K, lam = np.diag([1e6 - 1, 0.5]), 1.0
    half = np.sqrt(K + lam * np.eye(2))
    approximate = half @ (np.eye(2) + 0.15 * np.array([[0, 1], [1, 0]])) @ half - lam * np.eye(2)
    return K, approximate, lam, np.array([1.0, 0.0]), 0.2


@both
def test_lemma_13_as_printed_has_a_counterexample(impl):
    K, approximate, lam, f, eps = counterexample()
    assert np.linalg.eigvalsh(approximate)[0] > 0
    Z = np.linalg.cholesky(approximate)
    assert metrics.spectral_error(K, Z, lam) <= eps
    risk, found = impl.ridge_risk(K, lam, f, 0.0), impl.ridge_risk(approximate, lam, f, 0.0)
    assert risk == pytest.approx(5.0e-13, rel=0.01)
    assert found == pytest.approx(7.9e-9, rel=0.02)
    printed = impl.risk_bound(K, lam, f, 0.0, eps, 2, printed=True)
    assert printed == pytest.approx(6.3e-13, rel=0.02)
    assert found > 1000 * printed
    right = impl.risk_bound(K, lam, f, 0.0, eps, 2)
    assert right == pytest.approx(6.0e-7, rel=0.01)
    assert found <= right


@both
def test_lemma_13_corrected_holds(impl):
    rng = np.random.default_rng(0)
    for _ in range(40):
        A = rng.standard_normal((6, 6)) * 10.0 ** rng.uniform(-1, 1, 6)
        K, lam = A @ A.T, 10.0 ** rng.uniform(-2, 1)
        Z = A + 0.05 * rng.standard_normal((6, 6)) * 10.0 ** rng.uniform(-1, 1)
        eps = metrics.spectral_error(K, Z, lam)
        if eps >= 1:
            continue
        f, sigma = rng.standard_normal(6), rng.uniform(0, 2)
        risk = impl.ridge_risk(Z @ Z.T, lam, f, sigma)
        assert risk <= impl.risk_bound(K, lam, f, sigma, eps, 6) * (1 + 1e-9)
        assert impl.ridge_risk(K, lam, f, sigma) <= impl.risk_bound(K, lam, f, sigma, 0.0, 6) * (
            1 + 1e-9
        )


def test_ridge_risk_is_the_mean_over_noise():
    K, rng = Gaussian(0.5)(ball(8, 2)), np.random.default_rng(1)
    f, lam, sigma = rng.standard_normal(8), 0.2, 0.7
    y = f + sigma * rng.standard_normal((200000, 8))
    errors = y @ np.linalg.inv(K + lam * np.eye(8)) @ K - f
    risks = np.square(errors).mean(axis=1)
    expected = theory.ridge_risk(K, lam, f, sigma)
    assert abs(risks.mean() - expected) <= 5 * risks.std() / sqrt(len(risks))


# ---- Lemma 14, Table 1, Johnson and Lindenstrauss


def test_lemma_14_corrected_holds_for_the_exact_cost():
    """All clusterings of six points in two: the best one on Z against the best one."""
    rng, seen = np.random.default_rng(0), 0
    labelings = [[(code >> i) & 1 for i in range(6)] for code in range(1, 32)]
    for _ in range(20):
        A = rng.standard_normal((6, 4))
        K, Z = A @ A.T + 0.1 * np.eye(6), np.hstack([A, 0.3 * np.eye(6)])
        Z = Z + 0.05 * rng.standard_normal(Z.shape)
        eps = metrics.projection_cost_error(K, Z, 2)
        if eps >= 1:
            continue
        seen += 1
        best = min(metrics.clustering_cost(K, labels) for labels in labelings)
        found = min(labelings, key=lambda labels: metrics.clustering_cost(Z @ Z.T, labels))
        assert metrics.clustering_cost(K, found) <= theory.clustering_bound(best, eps, 0.0)
        own = metrics.clustering_cost(Z @ Z.T, found)
        assert own <= theory.clustering_bound(best, eps, 0.0, printed=True) * (1 + 1e-9)
    assert seen > 5


def test_lemma_14_as_printed_says_nothing_about_the_exact_cost():
    """One cluster too near on Z: the exact cost of what is found exceeds the printed bound."""
    eps = 0.5
    costs = {"best": 1.0, "found": 2.9}
    on_features = {"best": costs["best"] * (1 + eps), "found": costs["found"] * (1 - eps)}
    assert on_features["found"] < on_features["best"]  # so it is found
    assert costs["found"] > theory.clustering_bound(costs["best"], eps, 0.0, printed=True)
    assert costs["found"] <= theory.clustering_bound(costs["best"], eps, 0.0)


@both
def test_table_1(impl):
    args = (10**6, 0.1, 3, 1.0, 500.0, 3 * 10**6)
    printed, right = impl.table_1(*args, printed=True), impl.table_1(*args)
    for name in ("Fourier", "Nystrom", "PolySketch", "Adaptive Sketch"):
        assert printed[name] == right[name]
    volume = 4 * pi / 3 / pi**1.5  # 1 / Gamma(5/2)
    assert right["Modified Fourier"][0] == pytest.approx(printed["Modified Fourier"][0] * volume)
    size = log(1e7)
    assert printed["Gegenbauer"][0] == pytest.approx(((2 * size) ** 3 + 1.93**6) / 2)
    assert right["Gegenbauer"][0] > 5 * printed["Gegenbauer"][0]  # one factor q more


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_the_rows_of_theorem_12_grow_by_one_power_of_q_more_than_table_1_has(dim):
    """G13: q^2 (q+d-1 choose q) (d-1)! / q^(d+1) tends to 1."""
    q = 10**6
    assert q**2 * comb(q + dim - 1, q) * factorial(dim - 1) / q ** (dim + 1) == pytest.approx(
        1, rel=1e-4
    )


def test_johnson_lindenstrauss():
    for n in (10, 1000):
        for eps in (0.1, 0.5):
            ours = theory.johnson_lindenstrauss(n, eps, 0.0)
            assert abs(ours - int(johnson_lindenstrauss_min_dim(n, eps=eps))) <= 1
    n, eps, gamma = 30, 0.5, 1.0
    k = theory.johnson_lindenstrauss(n, eps, gamma)
    pairs = comb(n, 2)
    failure = pairs * (stats.chi2.sf((1 + eps) * k, k) + stats.chi2.cdf((1 - eps) * k, k))
    assert failure <= n**-gamma


def test_a_table_of_many_columns_is_finite_where_its_numbers_are():
    """Where a float holds neither the power nor the Gamma function: 10^340 by 10^24 and more."""
    found, size = theory.table_1(1000, 0.1, 48, 1.0, 20.0, 3000), log(1e4)
    expected = exp(96 * log(200 * size) - lgamma(25))
    assert found["Modified Fourier"][0] == pytest.approx(expected, rel=1e-9)
    printed = theory.table_1(1000, 0.1, 400, 10.0, 20.0, 3000, printed=True)["Gegenbauer"]
    expected = exp(800 * log(19.3) - lgamma(400))
    assert printed == (pytest.approx(expected, rel=1e-9), pytest.approx(3000 * expected, rel=1e-9))


@pytest.mark.parametrize("printed", [False, True])
def test_tables_of_many_columns_are_infinite_not_an_error(printed):
    found = theory.table_1(1000, 0.1, 784, 1.0, 20.0, 3000, printed=printed)
    assert found["Modified Fourier"] == (inf, inf)
    assert found["Nystrom"] == (20.0, 460000.0)


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: theory.statistical_dimension(np.eye(2), 0), ValueError, "lam=0"),
        (lambda: theory.statistical_dimension(np.ones((2, 3)), 1), ValueError, "K has shape"),
        (lambda: theory.ridge_leverage(lambda w: np.ones((3, 1)), np.eye(2), 1, [1.0]), ValueError, "Phi_w has shape"),
        (lambda: theory.ridge_leverage(3, np.eye(2), 1, [1.0]), TypeError, "operator=3"),
        (lambda: theory.ridge_leverage(np.ones, np.eye(2), 1, [2.0]), ValueError, "unit vector"),
        (lambda: theory.leverage_bound([[1.0]], 3, 1.0), ValueError, "radial has shape"),
        (lambda: theory.required_directions(1.0, 0.1, 1.0, 1.0), ValueError, "epsilon=1.0"),
        (lambda: theory.required_directions(0.1, 0.0, 1.0, 1.0), ValueError, "delta=0.0"),
        (lambda: theory.projection_directions(0.1, 0.1, 1.0, 1.0, 0), ValueError, "rank=0"),
        (lambda: theory.gaussian_directions(9, 2, 1.0, 1.0, 0.1, 0.1, 1.0), ValueError, "dim=2"),
        (lambda: theory.dot_product_directions(9, 3, 1.0, 1.0, 0.1, 0.1, 1.0, 1.0, 0.5), ValueError, "base=0.5"),
        (lambda: theory.risk_bound(np.eye(2), 1.0, [1.0], 0.0, 0.1, 1), ValueError, "signal has shape"),
        (lambda: theory.risk_bound(np.eye(2), 1.0, [1.0, 1.0], -1.0, 0.1, 1), ValueError, "noise=-1.0"),
        (lambda: theory.risk_bound(np.eye(2), 1.0, [1.0, 1.0], 0.0, 1.0, 1), ValueError, "epsilon=1.0"),
        (lambda: theory.clustering_bound(-1.0, 0.1, 0.0), ValueError, "cost=-1.0"),
        (lambda: theory.table_1(10, 11.0, 3, 1.0, 1.0, 30), ValueError, "lam=11.0"),
        (lambda: theory.johnson_lindenstrauss(10, 2.0), ValueError, "epsilon=2.0"),
        (lambda: theory.matrix_bernstein(0.5, 10, 1.0, [[0.0]], [[0.0]]), ValueError, "are 0"),
        (lambda: theory.statistical_dimension([[1, 0.5], [0, 1]], 1), ValueError, "must be symmetric"),
        (lambda: theory.required_directions(0.5, 0.5, 20.0, 1e-3), ValueError, "s_lam=0.001 is below 1/2"),
        (lambda: theory.dot_product_directions(9, 3, 1.0, 1.0, 0.1, 0.1, 0.2), ValueError, "s_lam=0.2 is below 1/2"),
        (lambda: theory.gaussian_directions(9, 3, 1.0, 10.0, 0.1, 0.1, 1.0), ValueError, "lam=10 is above n=9"),
        (lambda: theory.gaussian_directions(9, 3, 101.0, 1.0, 0.1, 0.1, 1.0), ValueError, "radius=101 is above 100"),
        (lambda: theory.leverage_bound([[[np.nan]]], 3, 1.0), ValueError, "radial contains NaN"),
        (lambda: theory.ridge_risk(np.eye(2), 1.0, [1.0, np.nan], 1.0), ValueError, "signal contains NaN"),
        (lambda: theory.ridge_risk(np.eye(2), 1.0, [1.0, 1.0], "a"), TypeError, "noise='a'"),
        (lambda: theory.clustering_bound(1.0, "a", 0.0), TypeError, "epsilon='a'"),
        (lambda: theory.johnson_lindenstrauss(10, 0.5, "a"), TypeError, "gamma='a'"),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize(("mu", "alpha"), [(0.5, 0.5), (0.5, 0.1), (0.1, 2.0)])
def test_the_condition_of_preconditioned_systems(mu, alpha, below):
    rng = np.random.default_rng(0)
    values, vectors = np.linalg.eigh(KERNEL(rng.standard_normal((40, 2))))
    factors = 1 - 0.4 * rng.random(40) if below else 1 + 0.4 * (rng.random(40) - 0.5)
    Z = vectors * np.sqrt(np.maximum(values, 0) * factors)
    K, eye = vectors * values @ vectors.T, np.eye(40)
    epsilon = metrics.spectral_error(K, Z, mu)
    ratios = np.linalg.eigvals(np.linalg.solve(Z @ Z.T + mu * eye, K + alpha * eye)).real
    bound = theory.condition_bound(epsilon, mu, alpha, below=below)
    assert ratios.max() / ratios.min() <= bound * (1 + exact)
    if mu == alpha:
        assert bound <= (1.0 if below else 1.3) * ratios.max() / ratios.min() * (1 + 1e-2)


def test_the_steps_of_conjugate_gradients():
    """The smallest number whose power is small enough."""
    for condition in (1.0, 1.0000001, 2.0, 9.0, 1e4, 1e8):
        for tol in (0.5, 1e-3, 1e-9):
            steps = theory.iterations_bound(condition, tol)
            factor = (sqrt(condition) - 1) / (sqrt(condition) + 1)
            assert 2 * factor**steps <= tol * (1 + exact)
            assert steps == 1 or 2 * factor ** (steps - 1) >= tol * (1 - exact)


def test_the_bound_is_for_the_error_and_for_the_residual_with_a_factor():
    """docs/iterations.md: one step divides the error by ten, and makes the residual ten times."""
    A, root, b = np.diag([1e4, 1.0]), np.diag([1e2, 1.0]), np.array([0.0, 1.0])
    P = root @ np.array([[1, 0.1], [0.1, 1]]) @ root
    ratios = np.linalg.eigvals(np.linalg.solve(P, A)).real
    c, z = ratios.max() / ratios.min(), np.linalg.solve(P, b)
    residual = b - (b @ z) / (z @ A @ z) * (A @ z)
    bound = 2 * (sqrt(c) - 1) / (sqrt(c) + 1)
    assert theory.iterations_bound(c, bound * (1 + exact)) == 1
    assert residual @ np.linalg.solve(A, residual) <= bound**2 * (b @ np.linalg.solve(A, b))
    assert 9 < np.linalg.norm(residual) <= bound * np.sqrt(np.linalg.cond(A))
    assert np.linalg.norm(residual) > 40 * bound * sqrt(c)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: theory.condition_bound(1.0, 1, 1), "epsilon=1.0 is not usable"),
    (lambda: theory.condition_bound(0.5, 0, 1), "mu=0"),
    (lambda: theory.condition_bound(0.5, 1, -1), "alpha=-1"),
    (lambda: theory.iterations_bound(0.5, 0.1), "condition=0.5 must be at least 1"),
    (lambda: theory.iterations_bound(2, 2), "tol=2"),
])  # fmt: skip
def test_bounds_of_solvers_name_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
