"""How many features are enough: leverage, the theorems, and the bounds that follow from them.

Numbers of theorems are those of Han, Zandieh, Avron, unless stated otherwise. Several statements
have errors in print; `printed=True` gives the printed number, the default the one that is proved.
"""

from math import atanh, ceil, comb, exp, factorial, log, pi, sqrt
from math import gamma as gamma_function

import numpy as np

from .series import safe_cut
from .special import alpha

__all__ = [
    "clustering_bound",
    "condition_bound",
    "dot_product_directions",
    "gaussian_directions",
    "iterations_bound",
    "johnson_lindenstrauss",
    "leverage_bound",
    "matrix_bernstein",
    "projection_directions",
    "required_directions",
    "ridge_leverage",
    "ridge_leverage_minimum",
    "ridge_risk",
    "risk_bound",
    "statistical_dimension",
    "table_1",
]


def regularised(K, lam):
    """Return K + lam I."""
    K = np.array(K, dtype=float)
    return K + lam * np.eye(len(K))


def eigenvalues(K):
    """Return the eigenvalues of a kernel matrix that are above what rounding may have made."""
    energies = np.linalg.eigvalsh(np.array(K, dtype=float))
    return [energy for energy in energies if energy > len(K) * 2.0**-52 * max(energies)]


def statistical_dimension(K, lam):
    """Count the directions of a kernel matrix that a ridge leaves.

    s_lam = Tr(K (K + lam I)^(-1)) = sum_i lam_i / (lam_i + lam)
    Han, Zandieh, Avron, Section 2 and Eq 18.

    Parameters
    ----------
    K : n rows of n numbers
    lam : float
        lambda > 0.

    Returns
    -------
    float
        Between 0 and the rank of K: what may be rounding alone is no part of it.

    Examples
    --------
    >>> statistical_dimension([[3, 0], [0, 1]], 1.0)  # 3/4 + 1/2
    1.25
    """
    return float(sum(energy / (energy + lam) for energy in eigenvalues(K)))


def ridge_leverage(operator, K, lam, w):
    """Evaluate the ridge leverage score of the feature operator at a direction.

    tau_lam(w) = Tr(Phi_w^T (K + lam I)^(-1) Phi_w)
    Han, Zandieh, Avron, Definition 6, Eq 17. Its mean over the sphere is s_lam (Eq 18).

    Parameters
    ----------
    operator : callable
        w -> Phi_w, n rows of s numbers, as `gegenbauer.operator_rows` has them (Eq 16).
    K : n rows of n numbers
    lam : float
        lambda > 0.
    w : sequence of d numbers
        Of norm 1.

    Returns
    -------
    float

    Examples
    --------
    One point, one radial function of value 2, K = 3:

    >>> ridge_leverage(lambda w: [[2.0]], [[3.0]], 1.0, [1.0, 0.0])
    1.0
    """
    Phi_w = np.array(operator(w), dtype=float)
    return float(np.trace(Phi_w.T @ np.linalg.inv(regularised(K, lam)) @ Phi_w))


def ridge_leverage_minimum(operator, lam, w, nodes, weights):
    """Evaluate the ridge leverage score as the minimum of s least squares problems.

    tau_lam(w) = sum_(i in [s]) min_g ||g||^2 + (1/lam) ||Phi^* g - Phi_w^i||^2
    Han, Zandieh, Avron, Lemma 17, Eq 35. Phi_w^i is column i of Phi_w. A function g on the sphere
    is here its values at the nodes of a quadrature, times the roots of the weights: then ||g|| is
    a sum of squares, and Phi^* a matrix with the columns sqrt(weight) Phi_node.

    Parameters
    ----------
    operator : callable
        w -> Phi_w, n rows of s numbers.
    lam : float
        lambda > 0.
    w : sequence of d numbers
        Of norm 1.
    nodes : unit rows of d numbers
    weights : sequence of numbers
        One per node; exact for polynomials of degree 2q, they add up to 1.

    Returns
    -------
    float

    Examples
    --------
    min_g g^2 + (g a - b)^2 / lam = b^2 / (a^2 + lam), with a = b = 2:

    >>> round(ridge_leverage_minimum(lambda w: [[2.0]], 1.0, [1.0], [[1.0]], [1.0]), 12)
    0.8
    """
    adjoint = np.hstack(
        [
            sqrt(weight) * np.array(operator(node))
            for node, weight in zip(nodes, weights, strict=True)
        ]
    )
    total = 0.0
    for column in np.array(operator(w), dtype=float).T:
        # ||g||^2 + ||Phi^* g - column||^2 / lam is the squared residual of one stacked system.
        system = np.vstack([np.eye(adjoint.shape[1]), adjoint / sqrt(lam)])
        target = np.concatenate([np.zeros(adjoint.shape[1]), column / sqrt(lam)])
        g = np.linalg.lstsq(system, target, rcond=None)[0]
        total += float(np.sum((system @ g - target) ** 2))
    return total


def leverage_bound(radial, dim, lam):
    """Bound the ridge leverage score of every direction.

    tau_lam(w) <= sum_l alpha_(l,d) min{ pi^2 (l+1)^2 / (6 lam) sum_j ||h_l(||x_j||)||^2,  s }
    Han, Zandieh, Avron, Lemma 7. Right as printed, and 5 to 75 times too large on ordinary data: a
    number to report, not to choose m by.

    Parameters
    ----------
    radial : n rows of q+1 rows of s numbers
        h_l of the norms of the points, as `series.radial_table` returns them.
    dim : int
        d >= 1.
    lam : float
        lambda > 0.

    Returns
    -------
    float

    Examples
    --------
    One point with h_0 = 1, h_1 = 0.1, d = 3: min(pi^2/6, 1) + 3 min(4 pi^2/6 * 0.01, 1).

    >>> round(leverage_bound([[[1.0], [0.1]]], 3, 1.0), 6)
    1.197392
    """
    s = len(radial[0][0])
    total = 0.0
    for ell in range(len(radial[0])):
        energy = sum(float(h) ** 2 for row in radial for h in row[ell])
        total += alpha(ell, dim) * min(pi**2 * (ell + 1) ** 2 / (6 * lam) * energy, s)
    return total


def matrix_bernstein(deviation, n_samples, bound, M1, M2):
    """Bound the probability that a mean of independent random matrices is far from its expectation.

    Pr(|| (R_1 + ... + R_m)/m - E R ||_op >= t) <= 4 Tr(M1 + M2) / M  exp(-m t^2/2 / (M + 2 L t/3))
    for ||R||_op <= L, E R R^* <= M1, E R^* R <= M2, M = max(||M1||_op, ||M2||_op).
    Han, Zandieh, Avron, Lemma 18. Printed without the condition of its source (Tropp, Corollary
    7.3.3), t >= sqrt(M/m) + 2 L / (3 m). For smaller t nothing is claimed, and 1 is returned. The
    printed bound is not false there, only empty: with a = sqrt(M/m), b = 2L/(3m) the exponent is
    t^2/2 / (a^2 + b t), at t = a + b at most 2/3, and 4 exp(-2/3) > 2.

    Parameters
    ----------
    deviation : float
        t > 0.
    n_samples : int
        m.
    bound : float
        L.
    M1, M2 : rows of numbers
        Symmetric, positive semi-definite.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    Numbers, that is 1 x 1 matrices: 8 exp(-100 / 8 / (1 + 1/3)).

    >>> round(matrix_bernstein(0.5, 100, 1.0, [[1.0]], [[1.0]]), 9)
    0.000678546
    """
    M1, M2 = np.array(M1, dtype=float), np.array(M2, dtype=float)
    M = max(np.linalg.norm(M1, ord=2), np.linalg.norm(M2, ord=2))
    if deviation < sqrt(M / n_samples) + 2 * bound / (3 * n_samples):
        return 1.0
    exponent = n_samples * deviation**2 / 2 / (M + 2 * bound * deviation / 3)
    return min(1.0, float(4 * (np.trace(M1) + np.trace(M2)) / M * exp(-exponent)))


def required_directions(epsilon, delta, leverage, s_lam, *, printed=False):
    """Count the directions that make a spectral approximation.

    m >= (2 + 4e/3) / e^2 L log(16 s_lam / delta),  e = eps / (1 + eps):
    then Z Z^T is an (eps, lam)-spectral approximation (Eq 1) with probability 1 - delta, for
    0 < lam <= ||K||_op.
    Han, Zandieh, Avron, Theorem 9. Printed: m >= 8 / (3 eps^2) L log(16 s_lam / delta) for any eps.

    Two slips. Appendix F bounds || (K+lam)^(-1/2) (Z Z^T - K) (K+lam)^(-1/2) || by eps and says
    that Eq 20 follows; but 1 - eps < 1/(1 + eps), so that the lower side asks for e = eps/(1+eps).
    And Lemma 18 with M <= L gives the exponent m e^2 / (2 L (1 + 2e/3)), that is 2 + 4e/3, which
    is below 8/3 for e <= 1/2 only. (Together: what is printed is enough up to eps = .116, a
    factor 2 short at .5, and 4 at 1.)

    Parameters
    ----------
    epsilon : float
        Between 0 and 1.
    delta : float
        Probability of failure, between 0 and 1.
    leverage : float
        L, any upper bound of tau_lam(w): `leverage_bound`, or the largest of many directions.
    s_lam : float
        `statistical_dimension`.
    printed : bool
        As printed.

    Returns
    -------
    int
        m, each with s columns.

    Examples
    --------
    >>> required_directions(0.5, 0.1, leverage=20.0, s_lam=10.0)
    3247
    >>> required_directions(0.5, 0.1, leverage=20.0, s_lam=10.0, printed=True)
    1574
    """
    if printed:
        return ceil(8 / (3 * epsilon**2) * leverage * log(16 * s_lam / delta))
    e = epsilon / (1 + epsilon)
    return ceil((2 + 4 * e / 3) / e**2 * leverage * log(16 * s_lam / delta))


def projection_directions(epsilon, delta, leverage, s_lam, rank, *, printed=False):
    """Count the directions that preserve the cost of every projection of a rank (Eq 21).

    m >= max{ (2 + 4e/3) / e^2 L log(32 s_lam / delta),  e = eps'/(1 + eps'),
              (8 + 4 eps'/3) / (r eps'^2) L log(4 / delta) },  eps' = eps / 24,
    with lam = (lam_(r+1) + ... + lam_n) / r.
    Han, Zandieh, Avron, Theorem 10. Printed: the m of Theorem 9 for eps.

    The proof in Appendix G needs Eq 20 with a much smaller epsilon, eps'. It adds up 4 eps' (head),
    4 eps' (tail) and 8 eps' (cross term), and substitutes eps' = eps/16, which makes m 256 times
    larger; and the cross term comes twice (Eq 40), so it is 4 + 4 + 16 = 24, 576 times.
    (With sharper constants 380 to 450.)

    The tail rests on a second event, |Tr(Q Z Z^T Q) - Tr(Q K Q)| <= eps' r lam with Q the
    eigenvectors below lam, said to follow "fairly straightforwardly from scalar Chernoff". The
    trace is a mean of m numbers of size at most 2 lam L and expectation at most 2 r lam, so
    Bernstein's inequality bounds the probability by 2 exp(-m r eps'^2 / (L (8 + 4 eps'/3))). That
    is the second line, which decides for small r. Each event may fail with delta/2.

    Parameters
    ----------
    epsilon, delta : float
        Between 0 and 1.
    leverage : float
        L, an upper bound of tau_lam(w) for this lam.
    s_lam : float
        `statistical_dimension` for this lam.
    rank : int
        r >= 1.
    printed : bool
        As printed.

    Returns
    -------
    int
        m, each with s columns.

    Examples
    --------
    >>> projection_directions(0.5, 0.1, leverage=20.0, s_lam=10.0, rank=5)
    785676
    >>> projection_directions(0.5, 0.1, leverage=20.0, s_lam=10.0, rank=5, printed=True)
    1574
    """
    if printed:
        return required_directions(epsilon, delta, leverage, s_lam, printed=True)
    e = epsilon / 24
    spectral = required_directions(e, delta / 2, leverage, s_lam)
    trace = (8 + 4 * e / 3) / (rank * e**2) * leverage * log(4 / delta)
    return max(spectral, ceil(trace))


def truncated_directions(degree, order, dim, epsilon, delta, s_lam):
    """Count the directions for a kernel cut at a degree and an order, off by eps lam / 10 at most.

    The cut matrix K' has (1 - eps/10)(K + lam) <= K' + lam <= K + lam. If the norm of Appendix F is
    at most e for K', then (1 - e)(1 - eps/10)(K + lam) <= Z Z^T + lam <= (1 + e)(K + lam); with
    e = 1 - 1 / ((1 + eps)(1 - eps/10)) that is Eq 1. L <= s sum_(l<=q) alpha_(l,d). As
    ||K'||_op >= lam (1 - eps/10) only, 16 becomes 8 (1 + 1/(1 - eps/10)).
    """
    e = epsilon * (9 - epsilon) / ((1 + epsilon) * (10 - epsilon))  # without a difference of ones
    leverage = order * sum(alpha(ell, dim) for ell in range(degree + 1))
    size = 8 * (1 + 1 / (1 - epsilon / 10)) * s_lam / delta
    return ceil((2 + 4 * e / 3) / e**2 * leverage * log(size))


def printed_directions(degree, dim, epsilon, delta, s_lam):
    """Return m = 5 q^2 / (4 eps^2) (q+d-1 choose q) log(16 s_lam / delta)."""
    size = log(16 * s_lam / delta)
    return ceil(5 * degree**2 / (4 * epsilon**2) * comb(degree + dim - 1, degree) * size)


def dot_product_directions(
    n, dim, radius, lam, epsilon, delta, s_lam, growth=1.0, base=1.0, *, printed=False
):
    """Choose degree, order and number of directions for a dot-product kernel.

    q and s are those of `series.safe_cut` for r^2 beta and eps lam / (10 n C exp(r^2 beta)), with
    kappa^(l)(0) <= C beta^l (Assumption 1, `series.growth_constants`) for all l. Printed, with
    Assumption 1 for l > d:
    q = max{ d, 3.7 r^2 beta, r^2 beta + d/2 log(3 r^2 beta / d) + log(C n / (eps lam)) }
    s = max{ d/2, 3.7 r^2 beta, r^2 beta / 4 + 1/2 log(C n / (eps lam)) }
    Han, Zandieh, Avron, Theorem 11 and Appendix H.

    Proof. Each term of Eq 12, h_(l,i)(t)^2, is at most C times that of exp(beta <x, y>), which is
    exp(beta t^2) times that of the Gaussian at the norm t sqrt(beta). It grows with t, and so do
    its factors.

    The printed s is right where Assumption 1 holds from l = d on: Eq 51 is true, with other
    constants on the way. The printed q is not: Eq 50 fails for every d, and from d = 6 on more is
    cut than allowed; see the errata.
    Printed: m = 5 q^2 / (4 eps^2) (q+d-1 choose q) log(16 s_lam / delta), in Section 5 the number
    of rows of Z, in Appendix H that of directions, with s rows each. The chain of the proof gives
    neither: sum_(l<=q) alpha_(l,d) is (q+d-1 choose q) + (q+d-2 choose q-1), up to twice what is
    printed; and Theorem 9 enters with the slips that `required_directions` has mended.

    Parameters
    ----------
    n, dim : int
        Number of points, and d >= 3.
    radius : float
        r, the largest norm.
    lam : float
        0 < lambda <= ||K||_op.
    epsilon, delta : float
        Between 0 and 1.
    s_lam : float
        `statistical_dimension`.
    growth, base : float
        C and beta of Assumption 1; 1 and 1 for exp(<x, y>).
    printed : bool
        As printed.

    Returns
    -------
    degree, order, n_directions : int
        q, s and m.

    Examples
    --------
    >>> dot_product_directions(1000, 3, 1.0, 0.1, 0.5, 0.1, 20.0)
    (7, 5, 69841)
    """
    reach = radius**2 * base
    size = log(growth * n / (epsilon * lam))
    if printed:
        degree = ceil(max(dim, 3.7 * reach, reach + dim / 2 * log(3 * reach / dim) + size))
        order = ceil(max(dim / 2, 3.7 * reach, reach / 4 + size / 2))
        return degree, order, printed_directions(degree, dim, epsilon, delta, s_lam)
    degree, order = safe_cut(dim, reach, exp(-size - reach) / 10)
    return degree, order, truncated_directions(degree, order, dim, epsilon, delta, s_lam)


def gaussian_directions(n, dim, radius, lam, epsilon, delta, s_lam, *, printed=False):
    """Choose degree, order and number of directions for the Gaussian exp(-||x-y||^2/2).

    q and s are those of `series.safe_cut` for r^2 and eps lam / (10 n). Printed:
    q = max{ 3.7 r^2, d/2 log(2.8 (r^2 + log(n/(eps lam)) + d) / d) + log(n/(eps lam)) }
    s = max{ d/2, 3.7 r^2, 1/2 log(n/(eps lam)) }
    Han, Zandieh, Avron, Theorem 12 and Appendix I. The printed q and s are larger; we know of no
    case where they are too small. What is printed for m, and why it is wrong: as for
    `dot_product_directions`. Moreover the proof bounds sum_l alpha_l min{..} by 1.1 s (q+d-1 choose
    q), which the printed q and s exceed for d = r = 3.

    Parameters
    ----------
    n, dim : int
        Number of points, and d >= 3.
    radius : float
        r, the largest norm.
    lam : float
        0 < lambda <= ||K||_op.
    epsilon, delta : float
        Between 0 and 1.
    s_lam : float
        `statistical_dimension`.
    printed : bool
        As printed.

    Returns
    -------
    degree, order, n_directions : int
        q, s and m.

    Examples
    --------
    >>> gaussian_directions(1000, 3, 2.0, 0.01, 0.5, 0.1, 20.0)[:2]
    (12, 10)
    >>> gaussian_directions(1000, 3, 2.0, 0.01, 0.5, 0.1, 20.0, printed=True)[:2]
    (17, 15)
    """
    size = log(n / (epsilon * lam))
    if printed:
        spread = 2.8 * (radius**2 + size + dim) / dim
        degree = ceil(max(3.7 * radius**2, dim / 2 * log(spread) + size))
        order = ceil(max(dim / 2, 3.7 * radius**2, size / 2))
        return degree, order, printed_directions(degree, dim, epsilon, delta, s_lam)
    degree, order = safe_cut(dim, radius**2, exp(-size) / 10)
    return degree, order, truncated_directions(degree, order, dim, epsilon, delta, s_lam)


def ridge_risk(K, lam, signal, noise):
    """Evaluate the risk of kernel ridge regression at fixed points.

    R(f) = lam^2/n f*^T (K + lam I)^(-2) f*  +  sigma^2/n Tr(K^2 (K + lam I)^(-2))
    Han, Zandieh, Avron, Eq 24 with the expectation taken: f = K (K + lam I)^(-1) (f* + nu), whose
    mean is off by lam (K + lam I)^(-1) f*.

    Parameters
    ----------
    K : n rows of n numbers
        The exact matrix, or Z Z^T for the risk of the approximate estimator.
    lam : float
        lambda > 0.
    signal : sequence of n numbers
        f* at the points.
    noise : float
        sigma, the standard deviation.

    Returns
    -------
    float

    Examples
    --------
    K = lam = 1: (1/4) 2^2 + (1/4) sigma^2.

    >>> ridge_risk([[1.0]], 1.0, [2.0], noise=2.0)
    2.0
    """
    K, signal, n = np.array(K, dtype=float), np.array(signal, dtype=float), len(K)
    inverse = np.linalg.inv(regularised(K, lam))
    bias = lam**2 / n * signal @ inverse @ inverse @ signal
    variance = sum((energy / (energy + lam)) ** 2 for energy in eigenvalues(K))
    return float(bias + noise**2 / n * variance)


def risk_bound(K, lam, signal, noise, epsilon, rank, *, printed=False):
    """Bound the risk of ridge regression on features that are a spectral approximation.

    R(f~) <= (1 + eps) lam/n f*^T (K + lam I)^(-1) f*  +  sigma^2/n (s_lam + eps rank(Z))
    Han, Zandieh, Avron, Lemma 13. Printed:
    R(f~) <= R(f) / (1 - eps) + eps / (1 + eps) rank(Z)/n sigma^2, which is false.

    Its source has an upper bound of the risk, linear in (K + lam I)^(-1), where R(f) is printed;
    for R(f) itself it fails: see the errata for two points. Proof: R(f~) is at most
    lam/n f*^T (Z Z^T + lam)^(-1) f* + sigma^2/n s_lam(Z Z^T), since lam (. + lam)^(-1) <= 1. Eq 1
    gives (Z Z^T + lam)^(-1) <= (1 + eps) (K + lam)^(-1), and eigenvalue by eigenvalue
    1 - lam / (lam~_i + lam) <= 1 - (1 - eps) lam / (lam_i + lam) <= lam_i / (lam_i + lam) + eps.

    Parameters
    ----------
    K : n rows of n numbers
    lam : float
        lambda > 0.
    signal : sequence of n numbers
        f* at the points.
    noise : float
        sigma, the standard deviation.
    epsilon : float
        Between 0 and 1: of Eq 1, `metrics.spectral_error`.
    rank : int
        Of Z.
    printed : bool
        As printed.

    Returns
    -------
    float

    Examples
    --------
    >>> risk_bound([[1.0]], 1.0, [2.0], 2.0, 0.5, 1)  # 1.5 * 4/2 + 4 (1/2 + 1/2)
    7.0
    """
    n = len(K)
    if printed:
        exact = ridge_risk(K, lam, signal, noise)
        return exact / (1 - epsilon) + epsilon / (1 + epsilon) * rank / n * noise**2
    f = np.array(signal, dtype=float)
    bias = lam / n * f @ np.linalg.inv(regularised(K, lam)) @ f
    variance = noise**2 / n * (statistical_dimension(K, lam) + epsilon * rank)
    return float((1 + epsilon) * bias + variance)


def clustering_bound(cost, epsilon, gamma, *, printed=False):
    """Bound the exact cost of a clustering that minimises the cost on features.

    Tr(K - C~ C~^T K C~ C~^T) <= (1 + gamma)(1 + eps)/(1 - eps) min_C Tr(K - C C^T K C C^T)
    Han, Zandieh, Avron, Lemma 14. Printed: (1 + gamma)(1 + eps) min_C Tr(...), for
    ||Z - Z C~ C~^T||_F^2 on the left. That is true, and useless: it is about the feature space,
    where everything may have shrunk. Eq 21 once more, from below, costs the factor 1/(1 - eps).

    Parameters
    ----------
    cost : float
        min_C Tr(K - C C^T K C C^T), or the exact cost of any clustering.
    epsilon : float
        Between 0 and 1: of Eq 21 for the number of clusters, `metrics.projection_cost_error`.
    gamma : float
        >= 0; the clustering is within 1 + gamma of the best one on the features.
    printed : bool
        As printed, for the cost in feature space.

    Returns
    -------
    float

    Examples
    --------
    >>> clustering_bound(2.0, 0.5, 0.0)
    6.0
    """
    factor = (1 + gamma) * (1 + epsilon)
    return cost * (factor if printed else factor / (1 - epsilon))


def table_1(n, lam, dim, radius, s_lam, nnz, *, printed=False):
    """Compare methods for the Gaussian kernel: number of features, and operations.

    Han, Zandieh, Avron, Table 1: orders of magnitude for constant eps, powers of log n left out;
    the constants stand as printed. Two rows are printed wrongly. "Modified Fourier" lacks the
    1 / Gamma(d/2 + 1) that the text has. "Gegenbauer" is
    ((2 log(n/lam))^d + (1.93 r)^(2d)) / (d-1)!, but
    q^2 (q+d-1 choose q) of Theorem 12 grows like q^(d+1) / (d-1)!, a factor q more, and its
    operations leave out evaluating the polynomials (m q n) and mixing the radial parts (m q s n).

    Parameters
    ----------
    n, dim : int
        Number of points, and d.
    lam : float
        lambda > 0.
    radius : float
        r, the largest norm.
    s_lam : float
        `statistical_dimension`.
    nnz : int
        Entries of the data that are not zero.
    printed : bool
        As printed.

    Returns
    -------
    dict
        Method -> (features, operations).

    Examples
    --------
    >>> table_1(1000, 0.1, 3, 1.0, 20.0, 3000)["Nystrom"]
    (20.0, 460000.0)
    """
    size = log(n / lam)
    fourier = n / lam
    modified = (248 * radius) ** dim * size ** (dim / 2) + (200 * size) ** (2 * dim)
    if printed:
        ours = ((2 * size) ** dim + (1.93 * radius) ** (2 * dim)) / factorial(dim - 1)
        our_time = ours * nnz
    else:
        modified /= gamma_function(dim / 2 + 1)
        spread = 2.8 * (radius**2 + size + dim) / dim
        q = ceil(max(3.7 * radius**2, dim / 2 * log(spread) + size))
        ours = float(q**2 * comb(q + dim - 1, q))
        our_time = ours / q * (nnz + n * q + n * q * q)  # m = rows / q directions, s = q
    return {
        "Fourier": (fourier, fourier * nnz),
        "Modified Fourier": (modified, modified * nnz),
        "Nystrom": (s_lam, n * s_lam**2 + s_lam * nnz),
        "PolySketch": (radius**10 * s_lam, radius**12 * (n * s_lam + nnz)),
        "Adaptive Sketch": (s_lam, radius**15 * s_lam**2 * n + radius**5 * nnz),
        "Gegenbauer": (ours, our_time),
    }


def johnson_lindenstrauss(n, epsilon, gamma=1.0):
    """Count the dimensions that preserve all distances of n points under random projection.

    k >= (4 + 2 gamma) / (eps^2/2 - eps^3/3) log n: then, with probability 1 - n^(-gamma),
    (1 - eps) ||u_i - u_j||^2 <= ||v_i - v_j||^2 <= (1 + eps) ||u_i - u_j||^2 for all pairs.
    "A Simple and Efficient Method for Random Fourier Features", Section 1, which prints k <= k_0
    for this k_0, after Achlioptas (2003). It holds for dense normal or sign matrices; blocks need
    more, by how unequal the norms of the blocks are.

    Parameters
    ----------
    n : int
        Number of points.
    epsilon : float
        Between 0 and 1.
    gamma : float
        >= 0.

    Returns
    -------
    int

    Examples
    --------
    >>> johnson_lindenstrauss(1000, 0.5)
    498
    """
    return ceil((4 + 2 * gamma) / (epsilon**2 / 2 - epsilon**3 / 3) * log(n))


def condition_bound(epsilon, mu, alpha, *, below=False):
    """Bound the condition number of a kernel system that features precondition.

    Eq 1 puts the eigenvalues of (Z Z^T + mu I)^(-1) (K + mu I) between 1 - eps and 1 + eps, and
    K + alpha I lies between K + mu I and alpha/mu times it. So the condition number of
    (Z Z^T + mu I)^(-1) (K + alpha I) is at most (1 + eps)/(1 - eps) max(mu/alpha, alpha/mu). If
    Z Z^T <= K, no eigenvalue is below 1, and the denominator is 1.

    Parameters
    ----------
    epsilon : float
        Between 0 and 1; > 0 if `below`.
    mu : float
        > 0, the ridge of the features.
    alpha : float
        > 0, the ridge of the system.
    below : bool
        Whether Z Z^T <= K.

    Returns
    -------
    float

    Examples
    --------
    >>> condition_bound(0.5, 0.5, 0.25)
    6.0
    """
    spread = 1 + epsilon if below else (1 + epsilon) / (1 - epsilon)
    return spread * max(mu / alpha, alpha / mu)


def iterations_bound(condition, tol):
    """Count the steps after which conjugate gradients have certainly reduced the error to tol.

    |x_m - x|_A <= 2 ((sqrt(c) - 1) / (sqrt(c) + 1))^m |x_0 - x|_A for the condition number c:
    Saad, Iterative Methods for Sparse Linear Systems, Eq 6.128. One step is enough for c = 1. For
    the residual, |A (x_m - x)|, the right side has a factor sqrt(cond(A)), A not preconditioned.

    Parameters
    ----------
    condition : float
        c >= 1.
    tol : float
        Between 0 and 1.

    Returns
    -------
    int

    Examples
    --------
    2 / 2^11 = 1/1024. The logarithm of (sqrt(c) + 1) / (sqrt(c) - 1) is 2 artanh(1 / sqrt(c)):

    >>> iterations_bound(9.0, 1e-3)
    11
    """
    root = sqrt(condition)
    return 1 if root == 1 else ceil(log(2 / tol) / (2 * atanh(1 / root)))
