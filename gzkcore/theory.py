"""How many features are enough: leverage, the theorems, and the bounds that follow from them.

Numbers of theorems, lemmas and equations are those of Han, Zandieh, Avron, unless stated otherwise.
Formulas with errors in print are corrected here, as the page of errata explains; `printed=True`
gives the printed number. The theorems are worst-case bounds, far above what is needed in practice:
choose n_components by measurements (`gzkcore.metrics`).

Functions check their arguments, and raise TypeError or ValueError, also if a number is beyond the
range of floats. Formulas without loops are called in `gzkcore.reference`.
"""

from collections.abc import Callable
from math import ceil, comb, exp, inf, lgamma, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from scipy.sparse.linalg import LinearOperator

from gzkcore._util.typing import Doubles
from gzkcore._util.validation import (
    check_dim,
    check_integer,
    check_not_negative,
    check_positive,
    check_share,
    check_symmetric,
    in_floats,
    raise_not_finite,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.truncation import safe_cut
from gzkcore.reference import theory as formulas
from gzkcore.sphere.series import zonal_sum
from gzkcore.sphere.special import alpha

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
    "ridge_risk",
    "risk_bound",
    "statistical_dimension",
    "table_1",
]


# ---- leverage


def statistical_dimension(K: ArrayLike, lam: float) -> float:
    """Statistical dimension s_lam = Tr(K (K + lam I)^(-1)), the effective rank at a ridge (Eq 18).

    Parameters
    ----------
    K : array-like of shape (n, n)
        Kernel matrix, symmetric and positive semi-definite.
    lam : float
        lambda > 0.

    Returns
    -------
    float
        Between 0 and the rank of K. At this ridge fewer features cannot approximate K.

    Notes
    -----
    O(n^3) operations. Eigenvalues below n 2.2e-16 times the largest may be rounding errors; they
    count as 0, also for the rank.

    Examples
    --------
    >>> from gzkcore.theory import statistical_dimension
    >>> statistical_dimension([[3.0, 0.0], [0.0, 1.0]], 1.0)  # 3/4 + 1/2
    1.25
    """
    lam = check_positive("lam", lam)
    return float(np.sum(_shares(check_symmetric("K", K), lam)))


def ridge_leverage(
    operator: LinearOperator | Callable[[Any], ArrayLike], K: ArrayLike, lam: float, w: ArrayLike
) -> float | Doubles:
    """Ridge leverage score of a direction, Tr(Phi_w^T (K + lam I)^(-1) Phi_w) (Definition 6).

    Parameters
    ----------
    operator : LinearOperator or callable
        Phi, as `gegenbauer.feature_operator` returns it; or a function w -> Phi_w of shape (n, s).
    K : array-like of shape (n, n)
        Kernel matrix of the points of the operator.
    lam : float
        lambda > 0.
    w : array-like of shape (d,) or (m, d)
        A unit vector, or one per row.

    Returns
    -------
    float, or ndarray of shape (m,)
        The mean over the sphere is s_lam (Eq 18). Pass the largest score to `required_directions`.

    Notes
    -----
    O(n^3) operations, and one product with the operator for all w. Between the nodes of a
    LinearOperator, Phi_w is Phi* of g(v) = sum_(l<=q) alpha_l P_d^l(<v, w>), which reproduces
    polynomials of degree q exactly (Lemma 1).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.features.gegenbauer import feature_operator
    >>> from gzkcore.theory import ridge_leverage, statistical_dimension
    >>> X = np.random.default_rng(0).standard_normal((20, 2))
    >>> kernel = Gaussian(0.5)
    >>> phi = feature_operator(X, kernel)
    >>> scores = ridge_leverage(phi, kernel(X), 0.1, phi.nodes)
    >>> bool(np.isclose(phi.weights @ scores, statistical_dimension(kernel(X), 0.1)))
    True
    """
    exact = check_symmetric("K", K)
    lam = check_positive("lam", lam)
    directions = np.asarray(w, dtype=np.float64)
    W = np.atleast_2d(directions)
    if directions.ndim not in (1, 2) or np.abs(np.square(W).sum(axis=1) - 1).max(initial=0) > 1e-6:
        raise ValueError(f"w={w!r} is not a unit vector, or rows of them; divide each by its norm")
    rows = _operator_rows(operator, W, len(exact))
    whitened = _solve(exact, lam, rows.reshape(len(exact), -1)).reshape(rows.shape)
    scores: Doubles = np.einsum("jim,jim->m", rows, whitened)
    return scores if directions.ndim == 2 else float(scores[0])


@in_floats
def leverage_bound(radial: ArrayLike, dim: int, lam: float) -> float:
    """Upper bound of the ridge leverage scores of all directions (Lemma 7).

    sum_l alpha_(l,d) min{pi^2 (l+1)^2 / (6 lam) sum_j |h_l(|x_j|)|^2, s}.

    Parameters
    ----------
    radial : array-like of shape (n, q + 1, s)
        h_l of the norms of the points, as `radial.radial_table` returns them.
    dim : int
        d >= 1.
    lam : float
        lambda > 0.

    Notes
    -----
    Correct as printed, for any signs of the degrees. On points of a ball in 3 to 9 dimensions it is
    5 to 75 times the largest score.

    Examples
    --------
    >>> from gzkcore.theory import leverage_bound
    >>> round(leverage_bound([[[1.0], [0.1]]], 3, 1.0), 6)  # 1 + 3 * 4 pi^2/6 * 0.01
    1.197392
    """
    table = np.asarray(radial, dtype=np.float64)
    if table.ndim != 3 or not table.size:
        raise ValueError(
            f"radial has shape {table.shape}; pass (points, degrees, order), the radial_table"
        )
    raise_not_finite(table.reshape(len(table), -1), "radial", "pass finite numbers")
    lam, dim = check_positive("lam", lam), check_dim(dim)
    degrees = np.arange(table.shape[1])
    table = table / sqrt(lam)
    energies = np.einsum("jli,jli->l", table, table)
    shares = np.minimum(pi**2 * (degrees + 1) ** 2 / 6 * energies, table.shape[2])
    some = shares > 0  # the numbers of harmonics of the others may be infinite
    return float(alpha(degrees[some], dim) @ shares[some])


# ---- how many directions


@in_floats
def matrix_bernstein(
    deviation: float, n_samples: int, bound: float, M1: ArrayLike, M2: ArrayLike
) -> float:
    """Bound of the probability that a mean of random matrices is off by `deviation` (Lemma 18).

    4 Tr(M1 + M2) / M exp(-m t^2/2 / (M + 2 L t/3)) for |R| <= L, E R R* <= M1, E R* R <= M2 and
    M = max(|M1|, |M2|).

    Parameters
    ----------
    deviation, bound : float
        t > 0, in the operator norm, and L > 0.
    n_samples : int
        m >= 1.
    M1, M2 : array-like
        Symmetric, positive semi-definite.

    Returns
    -------
    float
        At most 1, and 1 where t < sqrt(M/m) + 2 L / (3 m), of which the source (Tropp, Corollary
        7.3.3) says nothing.

    Examples
    --------
    >>> from gzkcore.theory import matrix_bernstein
    >>> round(matrix_bernstein(0.5, 100, 1.0, [[1.0]], [[1.0]]), 9)
    0.000678546
    """
    deviation, bound = check_positive("deviation", deviation), check_positive("bound", bound)
    n_samples = check_integer("n_samples", n_samples, 1)
    first, second = check_symmetric("M1", M1), check_symmetric("M2", M2)
    if not (first.any() or second.any()):
        raise ValueError("M1 and M2 are 0; pass bounds of the expected squares")
    return float(formulas.matrix_bernstein(deviation, n_samples, bound, first, second))


@in_floats
def required_directions(
    epsilon: float, delta: float, leverage: float, s_lam: float, *, printed: bool = False
) -> int:
    """Directions that make Z Z^T an (epsilon, lambda)-spectral approximation (Theorem 9).

    m >= (2 + 4e/3) / e^2 L log(16 s_lam / delta) with e = eps / (1 + eps), for
    0 < lam <= |K|.

    Parameters
    ----------
    epsilon, delta : float
        epsilon of Eq 1, and the probability of failure, between 0 and 1.
    leverage : float
        L > 0, any upper bound of the ridge leverage scores: `leverage_bound`, or the largest of
        `ridge_leverage` over many directions.
    s_lam : float
        `statistical_dimension`.
    printed : bool, default=False
        Return 8 / (3 eps^2) L log(16 s_lam / delta), as printed.

    Returns
    -------
    int
        m, each with s columns.

    Notes
    -----
    The printed m is enough up to eps = .116, too small by a factor of 2 at .5, and of 4 at 1.

    Examples
    --------
    >>> from gzkcore.theory import required_directions
    >>> required_directions(0.5, 0.1, leverage=20.0, s_lam=10.0)
    3247
    >>> required_directions(0.5, 0.1, leverage=20.0, s_lam=10.0, printed=True)
    1574
    """
    epsilon, delta = check_share("epsilon", epsilon), check_share("delta", delta)
    leverage, s_lam = check_positive("leverage", leverage), _dimension(s_lam)
    return int(formulas.required_directions(epsilon, delta, leverage, s_lam, printed=printed))


@in_floats
def projection_directions(
    epsilon: float,
    delta: float,
    leverage: float,
    s_lam: float,
    rank: int,
    *,
    printed: bool = False,
) -> int:
    """Directions that preserve the cost of every projection of a rank (Theorem 10, Eq 21).

    The larger of (2 + 4e/3) / e^2 L log(32 s_lam / delta) with e = eps' / (1 + eps'), and
    (8 + 4 eps'/3) / (r eps'^2) L log(4 / delta), for eps' = eps / 24 and the ridge
    lam = (lam_(r+1) + ... + lam_n) / r.

    Parameters
    ----------
    epsilon, delta, leverage, s_lam : float
        As for `required_directions`, for this lam.
    rank : int
        r >= 1.
    printed : bool, default=False
        Return the m printed in Theorem 9, with eps itself.

    Returns
    -------
    int
        m, each with s columns.

    Notes
    -----
    The proof needs about 576 times as many directions as printed. The second term, for the trace
    over the small eigenvalues, is the larger one for small r.

    Examples
    --------
    >>> from gzkcore.theory import projection_directions
    >>> projection_directions(0.5, 0.1, leverage=20.0, s_lam=10.0, rank=5)
    785676
    >>> projection_directions(0.5, 0.1, leverage=20.0, s_lam=10.0, rank=5, printed=True)
    1574
    """
    rank = check_integer("rank", rank, 1)
    epsilon, delta = check_share("epsilon", epsilon), check_share("delta", delta)
    leverage, s_lam = check_positive("leverage", leverage), _dimension(s_lam)
    return int(
        formulas.projection_directions(epsilon, delta, leverage, s_lam, rank, printed=printed)
    )


@in_floats
def dot_product_directions(
    n: int,
    dim: int,
    radius: float,
    lam: float,
    epsilon: float,
    delta: float,
    s_lam: float,
    growth: float = 1.0,
    base: float = 1.0,
    *,
    printed: bool = False,
) -> tuple[int, int, int]:
    """Degree, order and number of directions for a dot-product kernel (Theorem 11).

    Cut at q and s, the kernel is off by at most eps lam / (10 n); m is that of Theorem 9 for it.

    Parameters
    ----------
    n, dim : int
        Number of points, and d >= 3.
    radius, lam : float
        r > 0, the largest norm, and 0 < lambda <= |K|.
    epsilon, delta, s_lam : float
        As for `required_directions`.
    growth, base : float, default=1.0
        C and beta of Assumption 1, from `truncation.growth_constants`; 1 and 1 for exp(<x, y>).
        They must hold for all derivatives (printed: above d).
    printed : bool, default=False
        Return what is printed; there m is also the number of rows of Z, in Section 5.

    Returns
    -------
    degree, order, n_directions : int
        q, s and m, each direction with s columns.

    Notes
    -----
    The printed q is too small from d = 6 on. Here q and s are those of `reference.series.safe_cut`,
    and m is that of Theorem 9 for L = s sum alpha_l and e = 1 - 1 / ((1 + eps)(1 - eps/10)).
    Computing Z costs m nnz(X) + n m q + n m q s operations.

    Examples
    --------
    >>> from gzkcore.theory import dot_product_directions
    >>> dot_product_directions(1000, 3, 1.0, 0.1, 0.5, 0.1, 20.0)
    (7, 5, 69841)
    """
    n, dim = check_integer("n", n, 1), check_integer("dim", dim, 3)
    radius, lam = check_positive("radius", radius), check_positive("lam", lam)
    epsilon, base = check_share("epsilon", epsilon), check_positive("base", base)
    if base < 1:
        raise ValueError(f"base={base} must be at least 1 by Assumption 1; use 1")
    reach = radius**2 * base
    size = log(check_positive("growth", growth) * n / (epsilon * lam))
    if printed:
        degree = ceil(max(dim, 3.7 * reach, reach + dim / 2 * log(3 * reach / dim) + size))
        order = ceil(max(dim / 2, 3.7 * reach, reach / 4 + size / 2))
    else:
        degree, order = safe_cut(dim, reach, -size - reach)
    return _directions(degree, order, dim, epsilon, delta, s_lam, printed)


@in_floats
def gaussian_directions(
    n: int,
    dim: int,
    radius: float,
    lam: float,
    epsilon: float,
    delta: float,
    s_lam: float,
    *,
    printed: bool = False,
) -> tuple[int, int, int]:
    """Degree, order and number of directions for the Gaussian exp(-|x-y|^2/2) (Theorem 12).

    Cut at q and s, the kernel is off by at most eps lam / (10 n); m is that of Theorem 9 for it.

    Parameters
    ----------
    n, dim, lam, epsilon, delta, s_lam, printed
        As for `dot_product_directions`.
    radius : float
        r > 0, the largest norm of the points; for exp(-gamma |x-y|^2) the largest norm of sqrt(2
        gamma) x. At most 100, unless `printed`.

    Returns
    -------
    degree, order, n_directions : int
        q, s and m, each direction with s columns.

    Notes
    -----
    As for `dot_product_directions`, but the printed q and s are larger, and never too small as far
    as we know.

    Examples
    --------
    >>> from gzkcore.theory import gaussian_directions
    >>> gaussian_directions(1000, 3, 2.0, 0.01, 0.5, 0.1, 20.0)[:2]
    (12, 10)
    """
    n, dim = check_integer("n", n, 1), check_integer("dim", dim, 3)
    radius, lam = check_positive("radius", radius), check_positive("lam", lam)
    epsilon = check_share("epsilon", epsilon)
    if lam > n:
        raise ValueError(f"lam={lam:g} is above n={n}, so that it is above |K|; use a smaller lam")
    size = log(n / (epsilon * lam))
    if printed:
        degree = _gaussian_degree(dim, radius, size)
        order = ceil(max(dim / 2, 3.7 * radius**2, size / 2))
    elif radius > 100:
        raise ValueError(f"radius={radius:g} is above 100; use points of smaller norm")
    else:
        degree, order = safe_cut(dim, radius**2, -size)
    return _directions(degree, order, dim, epsilon, delta, s_lam, printed)


# ---- what follows for learning


@in_floats
def ridge_risk(K: ArrayLike, lam: float, signal: ArrayLike, noise: float) -> float:
    """Risk of kernel ridge regression at fixed points, E |f - f*|^2 / n (Eq 24).

    lam^2/n f*^T (K + lam I)^(-2) f* + sigma^2/n Tr(K^2 (K + lam I)^(-2)).

    Parameters
    ----------
    K : array-like of shape (n, n)
        The exact kernel matrix; or Z Z^T, for the risk of ridge regression on features.
    lam : float
        lambda > 0.
    signal : array-like of shape (n,)
        f*, the true values at the points.
    noise : float
        sigma >= 0, the standard deviation of the labels around them.

    Notes
    -----
    O(n^3) operations. In the second term eigenvalues count as in `statistical_dimension`.

    Examples
    --------
    >>> from gzkcore.theory import ridge_risk
    >>> round(ridge_risk([[1.0]], 1.0, [2.0], noise=2.0), 12)
    2.0
    """
    exact = check_symmetric("K", K)
    lam, n = check_positive("lam", lam), len(exact)
    f, sigma = _signal(signal, n), check_not_negative("noise", noise)
    residual = lam * _solve(exact, lam, f)
    variance = float(np.sum(_shares(exact, lam) ** 2))
    return float(residual @ residual / n + sigma * variance / n * sigma)


@in_floats
def risk_bound(
    K: ArrayLike,
    lam: float,
    signal: ArrayLike,
    noise: float,
    epsilon: float,
    rank: int,
    *,
    printed: bool = False,
) -> float:
    """Bound of the risk of ridge regression on features that approximate K (Lemma 13).

    (1 + eps) lam/n f*^T (K + lam I)^(-1) f* + sigma^2/n (s_lam + eps rank(Z)).

    Parameters
    ----------
    K, lam, signal, noise
        As for `ridge_risk`, with the exact kernel matrix.
    epsilon : float
        epsilon of Eq 1, from 0 to below 1: `metrics.spectral_error`.
    rank : int
        Rank of Z, at most its number of columns.
    printed : bool, default=False
        Return R(f) / (1 - eps) + eps / (1 + eps) rank(Z)/n sigma^2, as printed; this is no bound.

    Examples
    --------
    >>> from gzkcore.theory import risk_bound
    >>> round(risk_bound([[1.0]], 1.0, [2.0], 2.0, 0.5, 1), 12)  # 1.5 * 4/2 + 4 (1/2 + 1/2)
    7.0
    """
    exact = check_symmetric("K", K)
    lam, n = check_positive("lam", lam), len(exact)
    rank = check_integer("rank", rank, 0)
    epsilon, sigma = _epsilon(epsilon), check_not_negative("noise", noise)
    if printed:
        risk = ridge_risk(exact, lam, signal, noise)
        return risk / (1 - epsilon) + sigma * epsilon / (1 + epsilon) * rank / n * sigma
    f = _signal(signal, n)
    bias = f @ (lam * _solve(exact, lam, f)) / n
    features = statistical_dimension(exact, lam) + epsilon * rank
    return float((1 + epsilon) * bias + sigma * features / n * sigma)


def clustering_bound(cost: float, epsilon: float, gamma: float, *, printed: bool = False) -> float:
    """Bound of the exact cost of a clustering found on features (Lemma 14).

    (1 + gamma)(1 + eps)/(1 - eps) min_C Tr(K - C C^T K C C^T).

    Parameters
    ----------
    cost : float
        min_C Tr(K - C C^T K C C^T) >= 0, or `metrics.clustering_cost` of any clustering.
    epsilon : float
        epsilon of Eq 21 for the number of clusters, from 0 to below 1:
        `metrics.projection_cost_error`.
    gamma : float
        >= 0: the cost of the clustering on the features is at most 1 + gamma times the smallest.
    printed : bool, default=False
        Return (1 + gamma)(1 + eps) min_C Tr(...), as printed, a bound of the cost in feature space.

    Notes
    -----
    The printed lemma bounds |Z - Z C C^T|^2, which says nothing of the exact cost, since features
    may make all distances smaller.

    Examples
    --------
    >>> from gzkcore.theory import clustering_bound
    >>> clustering_bound(2.0, 0.5, 0.0)
    6.0
    """
    cost, epsilon = check_not_negative("cost", cost), _epsilon(epsilon)
    gamma = check_not_negative("gamma", gamma)
    return float(formulas.clustering_bound(cost, epsilon, gamma, printed=printed))


@in_floats
def table_1(
    n: int,
    lam: float,
    dim: int,
    radius: float,
    s_lam: float,
    nnz: int,
    *,
    printed: bool = False,
) -> dict[str, tuple[float, float]]:
    """Features and operations of the methods for the Gaussian kernel (Table 1).

    Parameters
    ----------
    n, dim : int
        Number of points, and d >= 1.
    lam : float
        lambda > 0, below n.
    radius, s_lam : float
        r > 0, the largest norm, and `statistical_dimension`.
    nnz : int
        Entries of the data that are not zero.
    printed : bool, default=False
        Return every row as printed.

    Returns
    -------
    dict
        Method -> (features, operations); of many columns they may be inf.

    Notes
    -----
    These are orders of magnitude, for constant eps and without powers of log n: they show how
    methods scale, not which to choose. "Modified Fourier" and "Gegenbauer" have errors in print.

    Examples
    --------
    >>> from gzkcore.theory import table_1
    >>> table_1(1000, 0.1, 3, 1.0, 20.0, 3000)["Nystrom"]
    (20.0, 460000.0)
    """
    n, d, nnz = check_integer("n", n, 1), check_dim(dim), check_integer("nnz", nnz, 0)
    lam, r = check_positive("lam", lam), check_positive("radius", radius)
    s = check_positive("s_lam", s_lam)
    if lam >= n:
        raise ValueError(f"lam={lam} must be below n={n}; use a smaller lam")
    fourier, size = n / lam, log(n / lam)
    # A power over a Gamma function may be a float where neither is.
    divisor = 0.0 if printed else lgamma(d / 2 + 1)
    modified = _exp(d * log(248 * r) + d / 2 * log(size) - divisor)
    modified += _exp(2 * d * log(200 * size) - divisor)
    if printed:
        ours = _exp(d * log(2 * size) - lgamma(d)) + _exp(2 * d * log(1.93 * r) - lgamma(d))
        time = ours * nnz
    else:
        q = _gaussian_degree(d, r, size)
        try:
            ours = float(q**2 * _monomials(q, d))
        except OverflowError:
            ours = inf
        time = ours / q * (nnz + n * q + n * q * q)  # m = ours / q directions, order q
    return {
        "Fourier": (fourier, fourier * nnz),
        "Modified Fourier": (modified, modified * nnz),
        "Nystrom": (s, n * s**2 + s * nnz),
        "PolySketch": (r**10 * s, r**12 * (n * s + nnz)),
        "Adaptive Sketch": (s, r**15 * (s**2 * n) + r**5 * nnz),
        "Gegenbauer": (ours, time),
    }


@in_floats
def johnson_lindenstrauss(n: int, epsilon: float, gamma: float = 1.0) -> int:
    """Dimensions that preserve all distances of n points under random projection.

    k >= (4 + 2 gamma) / (eps^2/2 - eps^3/3) log n, with probability 1 - n^(-gamma).

    Parameters
    ----------
    n : int
        Number of points, >= 2.
    epsilon : float
        Relative error of a squared distance, between 0 and 1.
    gamma : float, default=1.0
        >= 0.

    Notes
    -----
    For dense projections with normal or sign entries. Block projections need more dimensions,
    depending on how unequal the norms of the blocks are.

    References
    ----------
    "A Simple and Efficient Method for Random Fourier Features", Section 1, after Achlioptas,
    "Database-friendly random projections", 2003.

    Examples
    --------
    >>> from gzkcore.theory import johnson_lindenstrauss
    >>> johnson_lindenstrauss(1000, 0.5)
    498
    """
    n, epsilon = check_integer("n", n, 2), check_share("epsilon", epsilon)
    return int(formulas.johnson_lindenstrauss(n, epsilon, check_not_negative("gamma", gamma)))


def condition_bound(epsilon: float, mu: float, alpha: float, *, below: bool = False) -> float:
    """Bound the condition number of a kernel system that features precondition.

    (1 + eps)/(1 - eps) max(mu/alpha, alpha/mu) bounds the condition number of (Z Z^T + mu I)^(-1)
    (K + alpha I).

    Parameters
    ----------
    epsilon : float
        epsilon of Eq 1 at the ridge mu, `metrics.spectral_error`: between 0 and 1, or > 0 if
        `below`.
    mu, alpha : float
        > 0, the ridges of the features and of the system.
    below : bool, default=False
        Whether K - Z Z^T is positive semidefinite, as it is for Nystrom features. Then the upper
        side of Eq 1 holds with epsilon = 0, and the bound has no denominator.

    Notes
    -----
    The spectral error of features so measures their quality as a preconditioner; see
    `iterations_bound`.

    Examples
    --------
    >>> from gzkcore.theory import condition_bound
    >>> condition_bound(0.5, 0.1, 0.1), condition_bound(0.5, 0.5, 0.25)
    (3.0, 6.0)
    >>> condition_bound(2.0, 0.1, 0.1, below=True)
    3.0
    """
    epsilon = check_positive("epsilon", epsilon) if below else check_share("epsilon", epsilon)
    mu, alpha = check_positive("mu", mu), check_positive("alpha", alpha)
    return float(formulas.condition_bound(epsilon, mu, alpha, below=below))


@in_floats
def iterations_bound(condition: float, tol: float) -> int:
    """Count the steps after which conjugate gradients have certainly reduced the error to tol.

    The smallest m with 2 ((sqrt(c) - 1) / (sqrt(c) + 1))^m <= tol: about sqrt(c)/2 log(2/tol).

    Parameters
    ----------
    condition : float
        c >= 1, the condition number of P^(-1) A, with P the preconditioner.
    tol : float
        Between 0 and 1: the norm of the error, |x_m - x|_A, relative to that at the start.

    Notes
    -----
    The bound is for the worst spectrum with this condition number. In practice about as many steps
    are enough as P^(-1) A has distinct eigenvalues, or clusters of them. The norm of the residual,
    relative to the start, is at most sqrt(cond(A)) times the bound, A *without* the preconditioner.

    References
    ----------
    Saad, Iterative Methods for Sparse Linear Systems, 2nd edition, Eq 6.128.

    Examples
    --------
    >>> from gzkcore.theory import iterations_bound
    >>> iterations_bound(9.0, 1e-3), iterations_bound(1e4, 1e-3)
    (11, 381)
    """
    condition, tol = check_positive("condition", condition), check_share("tol", tol)
    if condition < 1:
        raise ValueError(
            f"condition={condition} must be at least 1; pass largest / smallest eigenvalue"
        )
    return int(formulas.iterations_bound(condition, tol))


# ---- what they share

# A statistical dimension is 1/2 or more for lam <= |K|; a computed one may be rounded below that.
_LEAST_DIMENSION = 0.5 * (1 - 1e-9)


def _operator_rows(
    operator: LinearOperator | Callable[[Any], ArrayLike], W: Doubles, n: int
) -> Doubles:
    """Return Phi_w of all directions, (n, s, m)."""
    if not isinstance(operator, LinearOperator):
        if not callable(operator):
            raise TypeError(
                f"operator={operator!r} must be a LinearOperator or callable; pass "
                "feature_operator(X, kernel), or a function from w to Phi_w"
            )
        rows: Doubles = np.stack([np.asarray(operator(w), dtype=np.float64) for w in W], axis=-1)
        if rows.ndim != 3 or len(rows) != n:
            raise ValueError(
                f"Phi_w has shape {rows.shape[:-1]}, but K has {counted(n, 'row')}; pass the "
                "operator and the kernel matrix of the same points"
            )
        return rows
    if not hasattr(operator, "nodes"):
        raise TypeError("operator has no nodes; pass feature_operator(X, kernel)")
    if operator.shape[1] != n or operator.nodes.shape[1] != W.shape[1]:
        raise ValueError(
            f"operator is for {counted(operator.shape[1], 'point')} in "
            f"{counted(operator.nodes.shape[1], 'dimension')}, K for {n} and w for {W.shape[1]}; "
            "pass operator, K and w for the same points"
        )
    cosines = np.clip(operator.nodes @ W.T, -1.0, 1.0)
    dims = alpha(np.arange(operator.degree + 1), W.shape[1])
    reproducing = zonal_sum(dims, W.shape[1], cosines)
    columns = np.sqrt(operator.weights)[:, None] * reproducing
    by_order = operator.rmatmat(np.kron(np.eye(operator.order), columns))
    return np.asarray(by_order).reshape(n, operator.order, len(W))


def _directions(
    degree: int, order: int, dim: int, epsilon: float, delta: float, s_lam: float, printed: bool
) -> tuple[int, int, int]:
    """Return q, s and the m of `reference.theory.truncated_directions`, or the printed one."""
    delta, s_lam, eps = check_share("delta", delta), _dimension(s_lam), epsilon
    if printed:
        size = log(16 * s_lam / delta)
        m = ceil(5 * degree**2 / (4 * eps**2) * _monomials(degree, dim) * size)
    else:
        size = log(8 * (1 + 1 / (1 - eps / 10)) * s_lam / delta)
        e = eps * (9 - eps) / ((1 + eps) * (10 - eps))  # without a difference of ones
        alphas = _monomials(degree, dim) + _monomials(degree - 1, dim)  # of degrees 0 to q, summed
        m = ceil((2 + 4 * e / 3) / e**2 * (order * alphas) * size)
    return degree, order, m


def _gaussian_degree(dim: int, radius: float, size: float) -> int:
    """Return q of Theorem 12 for size = log(n / (eps lam))."""
    spread = 2.8 * (radius**2 + size + dim) / dim
    return ceil(max(3.7 * radius**2, dim / 2 * log(spread) + size))


def _monomials(degree: int, dim: int) -> int:
    """Return (q+d-1 choose q), or raise OverflowError if it is slow to compute, and no float."""
    if min(degree, dim - 1) >= 1024:
        raise OverflowError
    return comb(degree + dim - 1, dim - 1)


def _exp(exponent: float) -> float:
    """Return e to a power, inf beyond the largest float."""
    return exp(exponent) if exponent < 709 else inf


def _shares(K: Doubles, lam: float) -> Doubles:
    """Return lam_i / (lam_i + lam) of the eigenvalues that are above rounding errors."""
    energies = eigvalsh(K)
    rounding = len(K) * np.finfo(np.float64).eps * max(energies[-1], 0.0)
    energies = energies[energies > rounding]
    shares: Doubles = energies / (energies + lam)
    return shares


def _signal(signal: ArrayLike, n: int) -> Doubles:
    """Return f* at n points."""
    values: Doubles = np.asarray(signal, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(
            f"signal has shape {values.shape}, but K has {counted(n, 'row')}; pass one value for "
            "each"
        )
    raise_not_finite(values, "signal", "pass finite numbers")
    return values


def _epsilon(epsilon: float) -> float:
    """Return an epsilon that may be 0, below 1."""
    number = check_not_negative("epsilon", epsilon)
    if number >= 1:
        raise ValueError(f"epsilon={epsilon} is not usable; use a number from 0 to below 1")
    return number


def _dimension(s_lam: float) -> float:
    """Return s_lam, or raise if it is below 1/2: the theorems are for lam <= |K|."""
    number = check_positive("s_lam", s_lam)
    if number < _LEAST_DIMENSION:
        raise ValueError(
            f"s_lam={s_lam:g} is below 1/2, which means that lam is above |K|; use the "
            "statistical_dimension at a smaller lam"
        )
    return number


def _solve(K: Doubles, lam: float, right: Doubles) -> Doubles:
    """Return (K + lam I)^(-1) right."""
    try:
        solution: Doubles = cho_solve(cho_factor(K + lam * np.eye(len(K)), lower=True), right)
    except LinAlgError:
        raise ValueError(
            f"K + lam I is not positive definite at lam={lam}; pass the matrix of a positive "
            "definite kernel, or a larger lam"
        ) from None
    return solution
