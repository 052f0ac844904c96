"""The steps of the papers' proofs: every numbered equation that is no function, checked by numbers.

[G] is Han, Zandieh, Avron, [B] the paper on block features; G1, B1, ... are entries of the errata.
What is printed wrongly fails here as printed, and holds as corrected.
"""

from fractions import Fraction
from math import comb, erf, exp, factorial, gamma, lgamma, log, pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from points import ball, gaussian, sphere
from scipy import stats
from scipy.special import gammaln as log_gamma
from tolerances import IDENTITY

from gzkcore import reference

exact = IDENTITY["closed form"](length=10**4)
formulas, series, special = reference.gegenbauer, reference.series, reference.special
block, kernels, theory = reference.block, reference.kernels, reference.theory
alpha = special.alpha


# ---- [G] Appendix B: the series of a power (Eq 25 to 29), in fractions


def times(p, q):
    """Multiply two polynomials, lists of coefficients."""
    product = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            product[i + j] += a * b
    return product


def derivative(p, order):
    for _ in range(order):
        p = [k * a for k, a in enumerate(p)][1:] or [Fraction(0)]
    return p


def integral(p):
    """Integrate a polynomial over [-1, 1]."""
    return sum((2 * Fraction(a) / (k + 1) for k, a in enumerate(p) if k % 2 == 0), Fraction(0))


def monomial(power):
    return [Fraction(0)] * power + [Fraction(1)]


def weight(power):
    """Return (1 - t^2)^power."""
    p = [Fraction(1)]
    for _ in range(power):
        p = times(p, [Fraction(1), Fraction(0), Fraction(-1)])
    return p


def polynomial(degree, dim):
    """Return P_d^l by Eq 2."""
    p = [Fraction(0)] * (degree + 1)
    for j, c in enumerate(special.gegenbauer_coefficients(degree, dim)):
        for k, a in enumerate(times(monomial(degree - 2 * j), weight(j))):
            p[k] += c * a
    return p


@pytest.mark.parametrize("dim", [3, 5, 9])
def test_the_series_of_a_power(dim):
    """Eq 26 = Eq 27 = Eq 29 with the integrals of Eq 28: polynomials, where d is odd."""
    half = (dim - 3) // 2
    areas = 1 / integral(weight(half))  # |S^(d-2)| / |S^(d-1)|
    area = special.sphere_area
    assert float(areas) == pytest.approx(area(dim - 1) / area(dim), rel=exact)
    for ell in range(6):
        inner = derivative(weight(ell + half), ell)
        # Gamma((d-1)/2) / Gamma(l + (d-1)/2)
        gammas = Fraction(factorial(half), factorial(ell + half))
        for j in range(9):
            t_j = monomial(j)
            eq_26 = areas * integral(times(t_j, times(polynomial(ell, dim), weight(half))))
            eq_27 = areas * Fraction(-1, 2) ** ell * gammas * integral(times(t_j, inner))
            expected = special.mu(ell, j, dim)
            assert alpha(ell, dim) * eq_26 == alpha(ell, dim) * eq_27 == expected
            eq_28 = Fraction(0)
            if j >= ell:
                rest = integral(times(monomial(j - ell), weight(ell + half)))
                eq_28 = (-1) ** ell * Fraction(factorial(j), factorial(j - ell)) * rest
                beta = (
                    gamma((j - ell + 1) / 2)
                    * gamma(ell + (dim - 1) / 2)
                    / gamma((j + ell + dim) / 2)
                )
                assert float(rest) == pytest.approx(0 if (j - ell) % 2 else beta, rel=exact)
            assert integral(times(t_j, inner)) == eq_28


@pytest.mark.parametrize("dim", [2, 3, 4, 8])
def test_the_integral_for_a_power_by_quadrature(dim):
    """Eq 26 is Eq 8 for t^j, and Eq 29 its value: in even dimensions too."""
    for j in (1, 4):
        found = series.gegenbauer_series(lambda t, j=j: t**j, dim, 4)
        expected = [float(special.mu(ell, j, dim)) for ell in range(5)]
        assert found == pytest.approx(expected, abs=exact)


def test_the_taylor_series():
    """Eq 25, and Lemma 4: the same kernel by powers and by polynomials."""
    x, y = [0.3, -0.5, 0.4], [0.6, 0.2, -0.1]
    derivatives = [3.0**j for j in range(30)]  # exp(3 t)
    expected = exp(3 * np.dot(x, y))
    assert kernels.dot_product(x, y, derivatives) == pytest.approx(expected, rel=exact)
    kernel = kernels.DotProduct(derivatives)
    assert formulas.gzk_kernel(x, y, kernel, 14, 8) == pytest.approx(expected, rel=exact)


# ---- [G] Appendix C: the Gaussian and the neural tangent kernel (Eq 30 to 34)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_exponential_and_the_gaussian(dim):
    """Eq 30, with the radial functions of Eq 31, and Eq 32: an envelope for each of the points."""
    x, y = gaussian(2, dim, 0.5)
    found = formulas.gzk_kernel(x, y, kernels.ExponentialDot(), 16, 9)
    assert found == pytest.approx(exp(x @ y), rel=exact)
    envelopes = exp(-(x @ x) / 2) * exp(-(y @ y) / 2)
    assert formulas.gzk_kernel(x, y, kernels.Gaussian(), 16, 9) == pytest.approx(
        envelopes * found, rel=exact
    )
    assert envelopes * found == pytest.approx(exp(-((x - y) @ (x - y)) / 2), rel=exact)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_neural_tangent_kernel_is_a_series(depth):
    """Eq 33 is the series of Eq 34 times both norms, which makes h_l(t) = sqrt(c_l) t (Lemma 16)."""

    def tangent(t):
        return kernels.neural_tangent([1, 0], [t, sqrt(1 - t * t)], depth)

    c = series.gegenbauer_series(tangent, 3, 12)
    assert min(c) > -exact
    for t in (-0.7, 0.1, 0.6):
        assert series.zonal_sum(c, 3, t) == pytest.approx(tangent(t), abs=0.01)

    x, y = [0.6, 0.0, 0.8], [0.0, 3.0, 4.0]
    expected = kernels.neural_tangent(x, y, depth)
    assert expected == pytest.approx(5 * tangent(0.64), rel=exact)
    found = kernels.generalized_zonal(
        x, y, lambda norm: [[sqrt(max(value, 0.0)) * norm] for value in c]
    )
    assert found == pytest.approx(5 * series.zonal_sum(c, 3, 0.64), rel=exact)
    assert found == pytest.approx(expected, abs=0.05)


# ---- [G] Appendices E and F: leverage (Eq 36 to 38), exactly, by quadrature


@pytest.fixture(scope="module")
def problem(sphere_quadrature):
    """Five points, a kernel cut at q = 3 and s = 2, and its operator at the nodes of a quadrature."""
    X, kernel, degree, order = ball(5, 3, 1.5), kernels.Gaussian(), 3, 2
    nodes, weights = sphere_quadrature(3, 4 * degree)
    norms = np.linalg.norm(X, axis=1)
    return SimpleNamespace(
        X=X,
        q=degree,
        s=order,
        nodes=nodes,
        weights=weights,
        rows=np.array([formulas.operator_rows(X, w, kernel, degree, order) for w in nodes]),
        K=np.array([[formulas.gzk_kernel(x, y, kernel, degree, order) for y in X] for x in X]),
        h=np.array(series.radial_table(kernel, norms, 3, degree, order)),
        row=lambda w: np.array(formulas.operator_rows(X, w, kernel, degree, order)),
    )


@pytest.mark.parametrize("lam", [0.1, 5.0, 10.0])
def test_the_function_that_proves_lemma_7(problem, lam):
    """Eq 36: the squared norms of g_w^i add up to s sum alpha_l over the l with R_l >= mu."""
    n, s, w = len(problem.X), problem.s, sphere(1, 3, seed=5)[0]
    ells = np.arange(problem.q + 1)
    alphas = np.array([alpha(int(ell), 3) for ell in ells])
    R = (ells + 1) ** 2 / n * np.square(problem.h).sum(axis=(0, 2))
    mu = 6 * lam * s / (pi**2 * n)
    large = mu <= R
    P = np.array([special.gegenbauer(int(ell), 3, problem.nodes @ w) for ell in ells])
    g = (alphas * large) @ P  # g_w^i has this at place i of R^s, and zeros
    squares = s * (problem.weights @ g**2)
    assert squares == pytest.approx(s * (alphas @ large), rel=exact)

    adjoint = np.einsum("m,mji,m->ji", problem.weights, problem.rows, g)
    residual = np.square(adjoint - problem.row(w)).sum()
    assert residual <= pi**2 * n / 6 * (alphas @ (R * ~large)) + exact
    found = theory.ridge_leverage(problem.row, problem.K, lam, w)
    bound = theory.leverage_bound(problem.h, 3, lam)
    assert found <= squares + residual / lam <= bound * (1 + exact)
    if lam == 5.0:
        assert 0 < large.sum() < large.size  # both sides are at work


@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_the_two_bounds_that_prove_theorem_9(problem, lam):
    """Eq 37: ||R_j|| <= tau(w_j) <= L; Eq 38: E R^2 <= L diag(lam_i / (lam_i + lam))."""
    energies, axes = np.linalg.eigh(problem.K + lam * np.eye(5))
    root = (axes / np.sqrt(energies)).T  # Sigma^(-1) V
    R = np.array([root @ rows @ rows.T @ root.T for rows in problem.rows])
    tau = [
        theory.ridge_leverage(lambda _, rows=rows: rows, problem.K, lam, w)
        for rows, w in zip(problem.rows, problem.nodes, strict=True)
    ]
    assert np.all(np.linalg.norm(R, ord=2, axis=(1, 2)) <= np.array(tau) * (1 + exact))
    L = max(tau)
    mean, square = np.tensordot(problem.weights, [R, R @ R], axes=(0, 1))
    eigenvalues = energies - lam  # of K
    B = np.diag(eigenvalues / (eigenvalues + lam))
    np.testing.assert_allclose(mean, B, atol=exact)
    np.testing.assert_allclose(B, np.eye(5) - lam * np.diag(1 / energies), atol=exact)
    assert np.linalg.eigvalsh(L * B - square)[0] >= -exact
    s_lam = theory.statistical_dimension(problem.K, lam)
    assert np.trace(B) == pytest.approx(s_lam, rel=exact)


# ---- [G] Appendix G: projection costs (Eq 39 to 46)

EIGENVALUES = np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.5, 0.4, 0.4])


def approximations(rank, norm, n_draws=40):
    """Yield K, Z^T Z, lam, t and epsilon of Eq 20; Z^T Z is off by a random matrix of a norm."""
    rng = np.random.default_rng(rank)
    n = EIGENVALUES.size
    lam = EIGENVALUES[rank:].sum() / rank
    t = int((lam <= EIGENVALUES).sum())
    for _ in range(n_draws):
        U = np.linalg.qr(rng.standard_normal((n, n)))[0]
        E = rng.standard_normal((n, n))
        E = E + E.T
        E *= norm / np.linalg.norm(E, ord=2)
        half = U * np.sqrt(EIGENVALUES + lam)
        G = half @ (np.eye(n) + E) @ half.T - lam * np.eye(n)
        K = (U * EIGENVALUES) @ U.T
        eps = reference.metrics.spectral_error(K, np.linalg.cholesky(G), lam)
        P = np.linalg.qr(rng.standard_normal((n, rank)))[0]
        yield K, G, U, lam, t, eps, np.eye(n) - P @ P.T


def least(matrix):
    return np.linalg.eigvalsh((matrix + matrix.T) / 2)[0]


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("norm", [0.02, 0.08])
def test_the_head_and_the_tail_of_theorem_10(rank, norm):
    """Eq 39 and 40: the costs in parts; Eq 41 and 42: the head and the tail, from Eq 20."""
    n = EIGENVALUES.size
    for K, G, U, lam, t, eps, Y in approximations(rank, norm):
        assert t <= 2 * rank
        Q = U[:, :t] @ U[:, :t].T
        rest = np.eye(n) - Q
        cost = np.trace(Y @ K @ Y)
        P = np.eye(n) - Y
        assert cost == pytest.approx(np.trace(K - P @ K @ P), rel=exact)
        eq_39 = np.trace(Y @ Q @ K @ Q @ Y) + np.trace(Y @ rest @ K @ rest @ Y)
        assert cost == pytest.approx(eq_39, rel=exact)
        eq_40 = (
            np.trace(Y @ Q @ G @ Q @ Y)
            + np.trace(Y @ rest @ G @ rest @ Y)
            + 2 * np.trace(Y @ Q @ G @ rest @ Y)
        )
        assert np.trace(Y @ G @ Y) == pytest.approx(eq_40, rel=exact)

        head, tail = (Q @ K @ Q, Q @ G @ Q), (rest @ K @ rest, rest @ G @ rest)
        assert least(head[0] - (1 - eps) / (1 + eps) * head[1]) >= -exact
        assert least((1 + eps) / (1 - eps) * head[1] - head[0]) >= -exact
        assert least(tail[0] - tail[1] + 3 * eps * lam * np.eye(n)) >= -exact
        assert least(tail[1] - tail[0] + 3 * eps * lam * np.eye(n)) >= -exact


def test_eq_42_asks_for_a_small_epsilon():
    """G9: 3 eps lam is enough for eps <= 1/3, and so is 1 +- 3 eps for Eq 41; beyond it is not."""
    for eps, enough in [(0.1, True), (1 / 3, True), (0.4, False), (0.5, False)]:
        K = np.diag([2.0, 1 - 1e-6, 1e-6])
        lam = 1.0  # the sum of all but the first: r = 1
        kept = (K[1, 1] + eps * lam) / (1 - eps)  # as much as Eq 20 allows
        assert (
            reference.metrics.spectral_error(K, np.sqrt(np.diag([2, kept, 1e-6])), lam)
            <= eps + exact
        )
        assert (kept - K[1, 1] <= 3 * eps * lam) == enough
        lost = (lam + lam) / (1 + eps) - lam  # of the eigenvalue lam, the smallest of the head
        assert lam / lost == pytest.approx((1 + eps) / (1 - eps))
        assert (lam <= (1 + 3 * eps) * lost * (1 + 1e-9)) == enough


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("norm", [0.02, 0.08])
def test_the_cross_term_of_theorem_10(rank, norm):
    """Eq 43 to 46, what follows from them, and 24 eps in all (G9)."""
    n = EIGENVALUES.size
    for K, G, U, lam, t, eps, Y in approximations(rank, norm):
        Q = U[:, :t] @ U[:, :t].T
        rest = np.eye(n) - Q
        K_inverse = np.linalg.pinv(K)
        cross = np.trace(Y @ Q @ G @ rest @ Y)
        eq_43 = np.trace(Y @ K @ K_inverse @ Q @ G @ rest)
        assert cross == pytest.approx(eq_43, abs=exact)
        squares = np.square((U[:, :t] / np.sqrt(EIGENVALUES[:t])).T @ G @ rest).sum()
        assert abs(eq_43) <= sqrt(np.trace(Y @ K @ Y) * squares) + exact  # Eq 44

        eq_45 = 0.0
        for i in range(t):
            u, energy = U[:, i], EIGENVALUES[i]
            q = rest @ G @ u
            q /= np.linalg.norm(q)
            product = u @ G @ q
            eq_45 += product**2 / energy
            v = u / sqrt(energy) + q / sqrt(lam)
            left = (1 - eps) * (v @ G @ v)
            expanded = (
                (1 - eps) / energy * (u @ G @ u)
                + (1 - eps) / lam * (q @ G @ q)
                + 2 * (1 - eps) / sqrt(energy * lam) * product
            )
            assert left == pytest.approx(expanded, rel=exact)
            middle = eps * (lam / energy + 1) + v @ K @ v
            right = 2 * eps + 1 + q @ K @ q / lam
            assert expanded <= middle + exact  # Eq 46
            assert middle <= right + exact
            assert 2 * (1 - eps) / sqrt(energy * lam) * product <= 10 * eps + exact
            assert product**2 <= 26 * eps**2 * lam * energy + exact
        assert squares == pytest.approx(eq_45, rel=exact)
        assert squares <= 52 * eps**2 * rank * lam + exact
        cost = np.trace(Y @ K @ Y)
        assert rank * lam <= cost * (1 + exact)
        assert abs(cross) <= 8 * eps * cost
        trace = abs(np.trace(rest @ (G - K) @ rest)) / (rank * lam)  # the second event
        assert abs(np.trace(Y @ G @ Y) - cost) <= (23 * eps + trace) * cost


# ---- [G] Appendices H and I: truncation (Eq 47 to 55)


class Exponential:
    """C exp(beta t): kappa^(j)(0) = C beta^j."""

    def __init__(self, growth, base):
        self.growth, self.base = growth, base

    def log_derivative(self, j):
        return log(self.growth) + j * log(self.base)

    def log_envelope(self, t):
        return 0.0


def tails(kernel, norms, dim, degree, order, cosine=1.0, far=60):
    """Return the two sums of Eq 47 and 48 (52 and 53), to the degree and the order `far`."""
    h, g = np.array(series.radial_table(kernel, norms, dim, far, far))
    terms = h * g
    P = np.array([special.gegenbauer(ell, dim, cosine) for ell in range(far + 1)])
    return P[degree + 1 :] @ terms[degree + 1 :].sum(axis=1), (
        P[: degree + 1] @ terms[: degree + 1, order:].sum(axis=1)
    )


def gaussian_tails(reach, dim, degree, order, far=150):
    """Return what the Gaussian loses at norms sqrt(reach): degrees above q, and orders from s on."""
    ell, i = np.arange(degree + far)[:, None], np.arange(order + far)
    logs = (
        log_gamma(ell + dim - 2) - log_gamma(dim - 1) - log_gamma(ell + 1)
        + np.log(2 * ell + dim - 2) + log_gamma(dim / 2) - reach
        + (ell + 2 * i) * log(reach / 2) - log_gamma(i + 1) - log_gamma(i + ell + dim / 2)
    )  # fmt: skip
    terms = np.exp(logs)
    return terms[degree + 1 :].sum(), terms[: degree + 1, order:].sum()


@pytest.mark.parametrize("dim", [3, 4, 9])
@pytest.mark.parametrize("cosine", [Fraction(1), Fraction(1, 3), Fraction(-4, 5)])
def test_a_truncated_kernel_is_off_by_two_tails(dim, cosine):
    """Eq 47 with 48, for dot products, and Eq 52 with 53, for the Gaussian."""
    a, b = 1.1, 0.8
    x = [a] + [0.0] * (dim - 1)
    y = [b * float(cosine), b * sqrt(1 - cosine * cosine)] + [0.0] * (dim - 2)
    values = {
        Exponential(0.5, 2.0): 0.5 * exp(2 * a * b * float(cosine)),
        kernels.Gaussian(): exp(-(a * a + b * b) / 2 + a * b * float(cosine)),
    }
    for kernel, value in values.items():
        for q, s in [(2, 1), (3, 2), (1, 3)]:
            cut = formulas.gzk_kernel(x, y, kernel, q, s)
            high, low = tails(kernel, [a, b], dim, q, s, cosine, far=30)
            assert value - cut == pytest.approx(high + low, abs=exact)
            assert abs(value - cut) <= abs(high) + abs(low) + exact
            largest = np.sqrt(
                np.prod([tails(kernel, [t, t], dim, q, s, far=30) for t in (a, b)], axis=0)
            )  # by Cauchy and Schwarz, |P| <= 1
            assert np.all(np.abs([high, low]) <= largest * (1 + exact) + exact)


@pytest.mark.parametrize("dim", [3, 4, 9])
def test_the_radial_functions_decay(dim):
    """Eq 49, from alpha_(l,d) <= (l+d-1)! / (l! (d-1)!) and Assumption 1."""
    kernel, t = Exponential(2.0, 3.0), 1.4
    h = series.radial_table(kernel, [t], dim, 12, 8)[0]
    for ell in range(13):
        assert alpha(ell, dim) <= comb(ell + dim - 1, ell)
        for i in range(8):
            log_square = (
                log(2.0) + (ell + 2 * i) * log(3.0) + lgamma(dim / 2) - log(pi) / 2 - lgamma(dim)
                + lgamma(ell + dim) - ell * log(2) - lgamma(ell + 1) - lgamma(2 * i + 1)
                + lgamma(i + 0.5) - lgamma(i + ell + dim / 2)
            )  # fmt: skip
            assert 0 <= h[ell][i] <= exp(log_square / 2) * t ** (ell + 2 * i) * (1 + exact)


def test_assumption_1_must_hold_from_degree_d_on():
    """G24: t^4 in d = 4 has no derivative beyond d, so any C will do; s = 2 loses an eighth of it."""
    kernel, r = kernels.DotProduct([0, 0, 0, 0, 24]), 0.7
    x = [r, 0.0, 0.0, 0.0]
    for growth in (1e-3, 1e-9):
        q, s, _ = theory.dot_product_directions(
            1, 4, r, r**8 / 100, 0.05, 0.1, 1.0, growth=growth, printed=True
        )
        assert (q, s) == (4, 2)
        cut = formulas.gzk_kernel(x, x, kernel, q, s)
        assert cut == pytest.approx(7 / 8 * r**8, rel=exact)  # not within eps lam / 10
        assert formulas.gzk_kernel(x, x, kernel, q, s + 1) == pytest.approx(r**8, rel=exact)
    assert (
        formulas.feature(x, [1.0, 0, 0, 0], kernel, 4, 3)[2] > 0
    )  # where Eq 49 says <= 0 for C = 0


@pytest.mark.parametrize("dim", [3, 9])
@pytest.mark.parametrize("reach", [0.5, 2.0])
@pytest.mark.parametrize(("growth", "base"), [(1.0, 1.0), (5.0, 3.0)])
def test_the_tails_of_theorem_11(dim, reach, growth, base):
    """Eq 50 and 51: each tail is at most eps lam / (20 n) here, with the printed q and s."""
    r, kernel, scale = sqrt(reach / base), Exponential(growth, base), growth * exp(reach)
    for n, lam, eps in [(100, 1.0, 0.5), (10**4, 1e-3, 0.1)]:
        args = (n, dim, r, lam, eps, 0.1, 5.0, growth, base)
        q, s, _ = theory.dot_product_directions(*args, printed=True)
        high, low = tails(kernel, [r, r], dim, q, s)
        assert 0 <= high <= eps * lam / (20 * n)
        assert 0 <= low <= eps * lam / (20 * n)
        q, s, _ = theory.dot_product_directions(*args)
        assert 0 < scale * sum(gaussian_tails(reach, dim, q, s)) <= eps * lam / (10 * n)


@pytest.mark.parametrize(
    ("n", "dim", "radius", "lam", "factor"),
    [
        (1, 3, 0.9, 0.1638, 1.1),
        (1, 6, 1.273, 0.01338, 2.4),
        (100, 16, 2.0, 6.1e-5, 5),
        (1000, 25, 2.5, 4.1e-6, 15),
        (1, 30, 2.5, 1.9e-13, 40),
        (1, 100, 4.96, 5.4e-33, 1000),
    ],
)
def test_eq_50_fails_and_eq_51_holds(n, dim, radius, lam, factor):
    """G25: the printed q is too small; the one that is chosen by what is cut is not."""
    args, reach = (n, dim, radius, lam, 0.5, 0.1, 5.0), radius**2
    allowed = 0.5 * lam / (20 * n) * exp(-reach)
    q, s, _ = theory.dot_product_directions(*args, printed=True)
    high, low = gaussian_tails(reach, dim, q, s)
    assert high > factor * allowed
    assert low < allowed / 50
    q, s, _ = theory.dot_product_directions(*args)
    assert 0 < sum(gaussian_tails(reach, dim, q, s)) <= 2 * allowed


@pytest.mark.parametrize("size", [-0.5, 0.1, 3.0, 30.0, 300.0])  # log(C n / (eps lam))
@pytest.mark.parametrize("reach", [0.01, 0.5, 2.0, 20.0])
def test_what_holds_of_theorem_11(reach, size):
    """G25: s as printed, and q = max(e^2 r^2 beta, size + 2), whatever the dimension."""

    def last(count):  # sum of x^j / j! over j >= count
        return sum(exp(j * log(reach) - lgamma(j + 1)) for j in range(count, count + 200))

    q = int(np.ceil(max(exp(2) * reach, size + 2)))
    assert last(q + 1) <= exp(-size) / 20
    for dim in (3, 4, 30):
        s = int(np.ceil(max(dim / 2, 3.7 * reach, reach / 4 + size / 2)))
        for i in (s, s + 1, 2 * s):
            rising = lgamma(i + dim / 2) - lgamma(dim / 2)
            assert -i * log(4) - lgamma(i + 1) - rising <= -lgamma(2 * i + 2) + exact * i**2
        terms = [exp(2 * i * log(reach) - lgamma(2 * i + 2)) for i in range(s, s + 100)]
        assert exp(reach / 2) * sum(terms) <= 0.05 * exp(reach / 2 - 2 * s) * (1 + exact)
        assert exp(reach / 2 - 2 * s) <= exp(-size) * (1 + exact)


@pytest.mark.parametrize("dim", [3, 30])
def test_degrees_are_places_of_a_walk(dim):
    """`safe_cut`: Pr(L > q) and Pr(J > N) grow with the norm, and bound what a cut loses."""
    q, s, before = 3, 3, 0.0
    for reach in (0.3, 1.0, 3.0, 9.0):
        table = series.radial_table(kernels.Gaussian(), [sqrt(reach)], dim, 5, 4)[0]
        for ell in range(6):
            for i in range(4):  # the walk is at l after l + 2i steps
                j = ell + 2 * i
                chance = float(special.mu(ell, j, dim)) * stats.poisson.pmf(j, reach)
                assert table[ell][i] ** 2 == pytest.approx(chance, rel=exact)
        above, _ = gaussian_tails(reach, dim, q, s)
        assert before < above
        assert sum(gaussian_tails(reach, dim, q, s)) <= above + stats.poisson.sf(2 * s - 1, reach)
        before = above


@pytest.mark.parametrize("dim", [3, 9])
@pytest.mark.parametrize("radius", [0.7, 1.6])
def test_the_tails_of_theorem_12(dim, radius):
    """Eq 54 and 55: the same for the Gaussian, for all norms up to r."""
    for n, lam, eps in [(100, 1.0, 0.5), (10**4, 1e-3, 0.1)]:
        args = (n, dim, radius, lam, eps, 0.1, 5.0)
        q, s, _ = theory.gaussian_directions(*args, printed=True)
        for t in (radius, radius / 2):
            high, low = tails(kernels.Gaussian(), [t, t], dim, q, s)
            assert 0 <= high <= eps * lam / (20 * n)
            assert 0 <= low <= eps * lam / (20 * n)
        q, s, _ = theory.gaussian_directions(*args)
        for t in (radius, radius / 2):
            assert 0 < sum(gaussian_tails(t * t, dim, q, s)) <= eps * lam / (10 * n)


def test_steps_within_eq_50_and_51_that_fail():
    """G14: three constants, the last step of Eq 50 where d is large, and one of Appendix I."""
    for dim in (3, 9, 30):  # from the third line of Eq 50 to the next
        left = lgamma(dim / 2) + dim / 2 * log(2) - log(5) - lgamma(dim)
        assert left > -log(20) - dim / 2 * log(dim / 2) + log(9)
    assert 1 / sqrt(pi) > 2.8 / 5  # in Eq 51, 1/sqrt(pi) turns into 1/5

    for dim in (10, 100):  # before Eq 54; q may be near d/2
        for share, holds in [(0.6, False), (1.0, True)]:
            ell = int(share * dim)
            ratio = lgamma(ell + dim) + lgamma(dim / 2) - lgamma(dim) - lgamma(ell + dim / 2)
            assert (ratio <= dim / 2 * log(exp(1) * ell / dim)) is holds

    dim, reach, size = 16, 9.0, log(1e9)  # size = log(C n / (eps lam))
    q = int(np.ceil(max(dim, 3.7 * reach, reach + dim / 2 * log(3 * reach / dim) + size)))
    ells = np.arange(q + 1, q + 200)
    total = np.sum((exp(1) * reach / (2 * ells)) ** (ells - dim / 2))
    last = exp(reach) * (exp(1) * reach / dim) ** (dim / 2) * total
    assert last > 100 * 1e-9  # before 1/20 on both sides
    high, _ = tails(Exponential(1.0, 1.0), [3.0, 3.0], dim, q, 1, far=70)
    assert high < 1e-9 / 20  # what Eq 50 is for


# ---- [B]


def test_coordinates_of_a_dense_projection_are_normal():
    """[B] Eq 1: v_i / sqrt(||u||^2 / k) and that of a difference are standard normal."""
    rng, k = np.random.default_rng(0), 4
    u = gaussian(2, 7)
    V = u @ rng.standard_normal((5000, 7, k)) / sqrt(k)
    for point, projected in [(u[0], V[:, 0]), (u[0] - u[1], V[:, 0] - V[:, 1])]:
        scaled = projected / sqrt(point @ point / k)
        assert stats.kstest(scaled.ravel(), stats.norm.cdf).pvalue > 1e-3


def test_the_product_of_two_rows_is_a_mean_of_cosines():
    """[B] Eq 3 and 4, for given frequencies: cosines first, or each with its sine."""
    rng = np.random.default_rng(0)
    x, y = gaussian(2, 3)
    W = rng.standard_normal((8, 3))
    eq_4 = np.mean(np.cos(W @ (x - y)))
    Z = np.array(reference.fourier.fourier_features([x, y], W, 16))
    assert Z[0] @ Z[1] == pytest.approx(eq_4, abs=exact)
    turned = Z.reshape(2, 2, 8).transpose(0, 2, 1).reshape(2, 16)
    assert turned[0] @ turned[1] == pytest.approx(eq_4, abs=exact)
    right = [np.cos(W @ x) * np.cos(W @ y), np.sin(W @ x) * np.sin(W @ y)]
    assert np.mean(np.sum(right, axis=0)) == pytest.approx(eq_4, abs=exact)
    # Printed (B19): the same number, of two rows that are no features of one point each.
    printed = [(np.cos(W @ x), np.sin(W @ y)), (np.cos(W @ y), np.sin(W @ x))]
    assert np.mean(np.sum(np.prod(printed, axis=0), axis=0)) == pytest.approx(eq_4, abs=exact)


def test_mean_and_variance_of_a_cosine():
    """[B] Eq 6, 10 and 11 for the Gaussian, by quadrature: w.Delta is normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    for length in (0.3, 1.0, 2.0):
        K, twice = exp(-(length**2) / 2), exp(-((2 * length) ** 2) / 2)
        values = np.cos(length * nodes)
        mean = weights @ values
        assert mean == pytest.approx(K, abs=exact)
        variance = weights @ values**2 - mean**2
        assert variance == pytest.approx(0.5 + twice / 2 - K**2, abs=exact)
        assert reference.fourier.fourier_variance(K, twice, 2) == pytest.approx(variance, abs=exact)


def test_the_product_of_two_rows_of_algorithm_2():
    """[B] Eq 7: the mean of cos(sqrt(k) w_i.Delta_i); printed without the root (B25)."""
    rng, k = np.random.default_rng(0), 4
    u, v = gaussian(2, 12, 0.3)
    C = rng.standard_normal((k, 3))
    product = np.dot(*[block.fast_fourier_features(each, C) for each in (u, v)])
    U = np.array(block.blocks(u - v, k))  # column i is Delta_i
    angles = np.einsum("ij,ji->i", C, U)
    assert product == pytest.approx(np.mean(np.cos(sqrt(k) * angles)), abs=exact)
    assert abs(product - np.mean(np.cos(angles))) > 0.1


def test_mean_and_variance_over_blocks():
    """[B] Eq 12 and 13, for blocks of three energies: the mean of K, and minus its square (B1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    energies, shares = np.array([0.5, 1.0, 2.0]), np.array([0.3, 0.5, 0.2])
    values = np.cos(np.sqrt(energies)[:, None] * nodes)
    mean = shares @ values @ weights
    once, twice = shares @ np.exp(-energies / 2), shares @ np.exp(-4 * energies / 2)
    assert mean == pytest.approx(once, abs=exact)
    variance = shares @ values**2 @ weights - mean**2
    assert variance == pytest.approx(0.5 + twice / 2 - once**2, abs=exact)
    assert abs(variance - (0.5 + twice / 2 + once**2)) > 0.3  # as printed


def test_moments_of_the_log_normal_law():
    """[B] Eq 14 and 15, by quadrature, and what Proposition 4.3 makes of them (B6)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    for mean, std in [(0.0, 1.0), (-1.0, 0.3), (0.5, 0.7)]:
        values = np.exp(mean + std * nodes)
        eq_14 = exp(mean + std**2 / 2)
        assert weights @ values == pytest.approx(eq_14, rel=exact)
        eq_15 = (exp(std**2) - 1) * exp(2 * mean + std**2)
        assert weights @ values**2 - eq_14**2 == pytest.approx(eq_15, rel=exact)
    found, variance = block.kernel_moments("gaussian", 0.5, 0.2, 1)
    squared = 0.5 + 0.2 * nodes  # c ||Delta||^2
    once, twice = weights @ np.exp(-squared), weights @ np.exp(-4 * squared)
    assert found == pytest.approx(once, rel=exact)
    assert variance == pytest.approx(0.5 + twice / 2 - once**2, rel=exact)


def test_moments_of_the_spherical_kernel():
    """[B] Eq 16 to 19: right far below theta / 2, but for the sign of Eq 19 (B1); wrong above (B8)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()

    def kernel(s):
        return np.where(s < 1, 1 - 1.5 * s + 0.5 * s**3, 0.0)

    mean, std = 0.3, 0.01
    s = mean + std * nodes  # ||Delta|| / theta, 20 of its deviations below 1/2
    third = mean**3 + 3 * mean * std**2
    assert weights @ s**3 == pytest.approx(third, rel=exact)  # Eq 18
    eq_16, eq_17 = 1 - 3 * mean / 2 + third / 2, 1 - 3 * mean + 4 * third
    assert weights @ kernel(s) == pytest.approx(eq_16, rel=exact)
    assert weights @ kernel(2 * s) == pytest.approx(eq_17, rel=exact)
    found, variance = block.kernel_moments("spherical", mean, std, 1)
    assert found == pytest.approx(eq_16, rel=exact)
    assert variance == pytest.approx(0.5 + eq_17 / 2 - eq_16**2, rel=exact)
    printed = block.kernel_moments("spherical", mean, std, 1, printed=True)[1]
    as_printed = 0.5 + eq_17 / 2 + eq_16**2  # whose constant is 2; Proposition 4.4 has 1 (B7)
    assert printed == pytest.approx(as_printed - 1, rel=exact)

    beyond = weights @ kernel(2 * (0.8 + std * nodes))
    assert beyond == 0
    assert 1 - 3 * 0.8 + 4 * (0.8**3 + 3 * 0.8 * std**2) > 0.6  # Eq 17 there
    below = (1 + erf((0.5 - 0.3) / (0.3 * sqrt(2)))) / 2  # of a wide law, some is above 1/2
    assert below < 0.8


def test_which_side_of_eq_20_and_21_is_which():
    """[B] Eq 20 and 21: squares of the norms (B11); a larger divisor makes a smaller number (B12)."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        energies = rng.gamma(1.0, 1.0, 30)
        k, total = energies.size, energies.sum()
        ratio = energies.max() / energies.min()  # (M/m)^2
        assert np.all(k * energies / ratio <= total)
        assert np.all(total <= ratio * k * energies)
        squares = rng.chisquare(1, k) * energies
        middle = squares / (k * energies)
        low, high = squares / (ratio * total), squares / (total / ratio)
        assert np.all(low <= middle)
        assert np.all(middle <= high)
        assert not np.all(high <= middle)  # as printed
    unequal = np.array([25.0] + [1.0] * 99)
    assert not np.all(100 * unequal / 5 <= unequal.sum())  # Eq 20 with m/M = 1/5, as printed
