"""Errors of an approximation: the distance of Z Z^T from K, in the measures of the papers.

K is the exact kernel matrix, Z has one row per point. All computations are in double precision. If
the n x n matrix does not fit into memory, `estimate` measures on random subsamples and returns an
interval.

Functions check their arguments, and raise TypeError or ValueError, also if a number is beyond the
range of floats.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, eigvalsh
from scipy.special import stdtrit
from sklearn.utils import _safe_indexing

from gzkcore._util.linalg import eigh
from gzkcore._util.random import generator
from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore._util.validation import (
    check_integer,
    check_matrix,
    check_positive,
    check_share,
    check_square,
    check_symmetric,
    in_floats,
)
from gzkcore._util.wording import counted

__all__ = [
    "Estimate",
    "clustering_cost",
    "estimate",
    "mean_distance_error",
    "mean_kernel_error",
    "projection_cost_error",
    "relative_frobenius_error",
    "spectral_error",
    "whitened_error",
]

# Entries of a tile of the kernel matrix.
_TILE = 1 << 19


@in_floats
def spectral_error(K: ArrayLike, Z: ArrayLike, lam: float) -> float:
    """Smallest epsilon for which Z Z^T is an (epsilon, lambda)-spectral approximation of K.

    (K + lam I) / (1 + eps) <= Z Z^T + lam I <= (K + lam I) / (1 - eps). With mu the eigenvalues
    of Z Z^T + lam I relative to K + lam I, eps = max(1 / mu_min - 1, 1 - 1 / mu_max).

    Parameters
    ----------
    K : array-like of shape (n, n)
        Exact kernel matrix, symmetric and positive semi-definite.
    Z : array-like of shape (n, n_components)
    lam : float
        lambda > 0, such that K + lam I is positive definite.

    Returns
    -------
    float
        >= 0; below 1 if Eq 1 holds for some epsilon below 1.

    Notes
    -----
    O(n^3) operations and three matrices n x n. The relative rounding error is about ||K|| / lam
    times the machine epsilon. The error on a subsample, at the same lam, is at most the error on
    all data.

    References
    ----------
    Han, Zandieh, Avron, Eq 1 and 20.

    See Also
    --------
    whitened_error : the norm max |mu - 1|, in which a large mu counts fully.

    Examples
    --------
    >>> from gzkcore.metrics import spectral_error
    >>> round(spectral_error([[3.0]], [[1.0]], 1.0), 12)  # mu = 1/2
    1.0
    """
    mu = _ratios(K, Z, lam)
    if mu[0] <= 0:  # lam is lost in rounding
        return math.inf
    return float(max(0.0, 1 / mu[0] - 1, 1 - 1 / mu[-1]))


@in_floats
def whitened_error(K: ArrayLike, Z: ArrayLike, lam: float) -> float:
    """Operator norm of (K + lam I)^(-1/2) (Z Z^T - K) (K + lam I)^(-1/2).

    Parameters
    ----------
    K : array-like of shape (n, n)
        Exact kernel matrix, symmetric and positive semi-definite.
    Z : array-like of shape (n, n_components)
    lam : float
        lambda > 0.

    Returns
    -------
    float
        max |mu - 1|. If it is at most eps / (1 + eps), Eq 1 holds with eps.

    Notes
    -----
    O(n^3) operations. The proof of Theorem 9 bounds this norm and identifies it with the epsilon of
    Eq 1. Unlike epsilon, it grows without limit as mu grows.

    References
    ----------
    Han, Zandieh, Avron, Appendix F.

    Examples
    --------
    >>> from gzkcore.metrics import whitened_error
    >>> round(whitened_error([[3.0]], [[1.0]], 1.0), 12)
    0.5
    """
    mu = _ratios(K, Z, lam)
    return float(max(1 - mu[0], mu[-1] - 1, 0.0))


@in_floats
def relative_frobenius_error(K: ArrayLike, Z: ArrayLike) -> float:
    """Frobenius norm of Z Z^T - K, relative to the norm of K.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Exact kernel matrix, not 0.
    Z : array-like of shape (n, n_components)

    Notes
    -----
    O(n^2 n_components) operations, in tiles of rows.

    Examples
    --------
    >>> from gzkcore.metrics import relative_frobenius_error
    >>> relative_frobenius_error([[2.0, 0.0], [0.0, 0.0]], [[1.0], [0.0]])
    0.5
    """
    exact, features = _pair(K, Z)
    if not exact.any():
        raise ValueError("K is 0, so there is no relative error; pass the exact kernel matrix")
    error = sum(
        float(np.square(features[tile] @ features.T - exact[tile]).sum())
        for tile in _tiles(len(exact))
    )
    return math.sqrt(error / np.vdot(exact, exact))


@in_floats
def mean_kernel_error(K: ArrayLike, Z: ArrayLike) -> float:
    """Mean of |<z_i, z_j> - k(x_i, x_j)| over all pairs of different points.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Exact kernel matrix, n >= 2.
    Z : array-like of shape (n, n_components)

    Notes
    -----
    O(n^2 n_components) operations, in tiles of rows. On a random subsample it is an unbiased
    estimate of the value on all data.

    References
    ----------
    "A Simple and Efficient Method for Random Fourier Features", Eq 9.

    Examples
    --------
    >>> from gzkcore.metrics import mean_kernel_error
    >>> mean_kernel_error([[1.0, 0.5], [0.5, 1.0]], [[1.0], [1.0]])
    0.5
    """
    exact, features = _pair(K, Z)
    n, total = _check_pairs("K", exact), 0.0
    for tile in _tiles(n):
        error = np.abs(features[tile] @ features.T - exact[tile])
        total += float(error.sum() - np.diagonal(error, tile.start).sum())
    return total / (n * (n - 1))


@in_floats
def mean_distance_error(X: ArrayLike, V: ArrayLike) -> float:
    """Mean of | |x_i - x_j|^2 - |v_i - v_j|^2 | over all pairs of different points.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The points, n >= 2.
    V : array-like of shape (n, k)
        Their projections.

    Notes
    -----
    O(n^2 (d + k)) operations, in tiles of rows. On a random subsample it is an unbiased estimate of
    the value on all data.

    References
    ----------
    "A Simple and Efficient Method for Random Fourier Features", Eq 8.

    Examples
    --------
    >>> from gzkcore.metrics import mean_distance_error
    >>> mean_distance_error([[0.0, 0.0], [3.0, 4.0]], [[0.0], [4.0]])  # 25 - 16
    9.0
    """
    points, projected = check_matrix("X", X), check_matrix("V", V)
    if len(points) != len(projected):
        raise ValueError(
            f"X has {counted(len(points), 'row')} and V has {len(projected)}; pass the "
            "projections of the same points"
        )
    n = _check_pairs("X", points)
    points, projected = points - points.mean(axis=0), projected - projected.mean(axis=0)
    total = 0.0
    for tile in _tiles(n):
        error = np.abs(_squared_distances(points, tile) - _squared_distances(projected, tile))
        total += float(error.sum() - np.diagonal(error, tile.start).sum())
    return total / (n * (n - 1))


@in_floats
def projection_cost_error(K: ArrayLike, Z: ArrayLike, rank: int) -> float:
    """Smallest epsilon for which Z preserves the cost of every projection of a rank.

    (1 - eps) Tr(K - P K P) <= Tr(Z Z^T - P Z Z^T P) <= (1 + eps) Tr(K - P K P) for all orthogonal
    projections P of rank r. It bounds the loss of principal components and k-means on Z.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Exact kernel matrix, symmetric, of a rank above `rank`.
    Z : array-like of shape (n, n_components)
    rank : int
        r, from 0 to n - 1.

    Notes
    -----
    The result is exact, over all P. At the extreme ratio rho of the two traces the extreme value of
    Tr(Y (Z Z^T - rho K) Y), a sum of eigenvalues, is 0. Newton's method for this equation
    (Dinkelbach's method) takes a few symmetric eigenvalue problems, with O(n^3) operations each.

    References
    ----------
    Han, Zandieh, Avron, Eq 21.

    Examples
    --------
    >>> from gzkcore.metrics import projection_cost_error
    >>> Z = [[1.0, 0.0], [0.0, 2**0.5]]
    >>> round(projection_cost_error([[1.0, 0.0], [0.0, 1.0]], Z, rank=1), 12)
    1.0
    """
    exact, features = _pair(check_symmetric("K", K), Z)
    n = len(exact)
    rank = check_integer("rank", rank, 0)
    if rank >= n:
        raise ValueError(
            f"rank={rank} is too large for {counted(n, 'point')}; use a rank below {n}"
        )
    energies = eigvalsh(exact)
    if energies[: n - rank].sum() <= 1e-14 * max(energies.sum(), 0.0):
        raise ValueError(
            f"rank={rank} is not below the rank of K, so that the cost is 0; use a smaller rank"
        )
    gram = features @ features.T
    # P has the lowest directions of Z Z^T - rho K for the largest ratio of the costs, the highest
    # for the smallest.
    largest, smallest = (
        _extreme_ratio(gram, exact, rank, lowest=lowest) for lowest in (True, False)
    )
    return max(0.0, largest - 1, 1 - smallest)


@in_floats
def clustering_cost(K: ArrayLike, labels: ArrayLike) -> float:
    """Cost of a clustering with the exact kernel, Tr(K - C C^T K C C^T).

    The sum of the squared distances, in the space of the exact kernel, of all points from the
    mean of their cluster. Use this cost to compare clusterings by different features: their own
    objectives are smaller for less accurate features.

    Parameters
    ----------
    K : array-like of shape (n, n)
        Exact kernel matrix.
    labels : array-like of shape (n,)
        Points with the same label form a cluster.

    Notes
    -----
    O(n^2) operations.

    References
    ----------
    Han, Zandieh, Avron, A.2, with C_(j,i) = 1 / sqrt(|C_i|) (printed 1 / |C_i|).

    Examples
    --------
    >>> from gzkcore.metrics import clustering_cost
    >>> K = [[0.0, 0.0, 0.0], [0.0, 4.0, 18.0], [0.0, 18.0, 81.0]]  # points 0, 2 and 9
    >>> clustering_cost(K, ["a", "a", "b"])
    2.0
    """
    exact = check_square("K", K)
    names = _as_labels(labels)
    if names.shape != (len(exact),):
        raise ValueError(
            f"labels has shape {names.shape}, but K has {counted(len(exact), 'row')}; "
            "pass one label for each"
        )
    members: dict[Any, list[int]] = {}
    for row, label in enumerate(names.tolist()):
        members.setdefault(label, []).append(row)
    within = sum(float(exact[np.ix_(rows, rows)].sum()) / len(rows) for rows in members.values())
    return float(np.trace(exact)) - within


class Estimate(NamedTuple):
    """A metric measured on subsamples, with a confidence interval of its mean."""

    value: float
    low: float
    high: float


def estimate(
    metric: Callable[[Any, Any], float],
    features: Any,
    kernel: Callable[[Any], Any] | None,
    X: Data,
    *,
    n_samples: int = 1000,
    n_repeats: int = 10,
    confidence: float = 0.95,
    rng: Seed = None,
) -> Estimate:
    """Measure a metric on random subsamples of data too large for a kernel matrix.

    Parameters
    ----------
    metric : callable
        (K, Z) -> float, a function of this module or your own; fix further arguments with
        `functools.partial`, as in ``partial(spectral_error, lam=0.1)``.
    features : object with transform(X), or callable
        A fitted feature map, or a function from rows to features.
    kernel : callable or None
        rows -> exact kernel matrix, such as ``features.kernel_``. None passes the rows themselves
        to the metric, (X, Z) -> float, which `mean_distance_error` needs.
    X : array-like or CSR of shape (n, d)
    n_samples : int, default=1000
        Number of rows of a subsample, >= 2.
    n_repeats : int, default=10
        Number of subsamples, >= 2.
    confidence : float, default=0.95
        Confidence level of the interval, between 0 and 1.
    rng : None, int, Generator, RandomState or SeedSequence

    Returns
    -------
    Estimate
        value, low, high: the mean over the subsamples and Student's interval around it. If X has at
        most n_samples rows, all three are the metric on all rows.

    Notes
    -----
    The interval is for the mean of the metric over random subsamples of this size. For
    `mean_kernel_error` and `mean_distance_error`, which are averages over pairs, this mean is the
    metric of all data. The other metrics depend on n: the relative Frobenius error hardly,
    `spectral_error` and `whitened_error` through lambda. At the same lambda the error of a
    subsample is a lower bound; lambda n_samples / n keeps lambda in proportion to the eigenvalues.

    Cost: `n_repeats` times the metric on n_samples rows, without an n x n matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> from gzkcore.metrics import estimate, mean_kernel_error
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> features = GegenbauerFeatures(Gaussian(0.5), 64, random_state=0).fit(X)
    >>> error = estimate(mean_kernel_error, features, features.kernel_, X, n_samples=200, rng=0)
    >>> bool(0 < error.low < error.value < error.high < 0.1)
    True
    """
    n_samples = check_integer("n_samples", n_samples, 2)
    n_repeats = check_integer("n_repeats", n_repeats, 2)
    confidence = check_share("confidence", confidence)
    rows: Any = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    transform = getattr(features, "transform", features)
    named = hasattr(X, "columns") and hasattr(features, "feature_names_in_")

    def measure(chosen: Any) -> float:
        sample = rows[chosen]
        Z = transform(_safe_indexing(X, chosen) if named else sample)
        return float(metric(sample if kernel is None else kernel(sample), Z))

    n = rows.shape[0]
    if n <= n_samples:
        value = measure(np.arange(n))
        return Estimate(value, value, value)
    draws = generator(rng)
    values = [measure(np.sort(draws.choice(n, n_samples, replace=False))) for _ in range(n_repeats)]
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(n_repeats)
    half = float(stdtrit(n_repeats - 1, (1 + confidence) / 2)) * error  # Student's quantile
    return Estimate(mean, mean - half, mean + half)


# ---- what they share


def _pair(K: Any, Z: Any) -> tuple[Doubles, Doubles]:
    """Return K and Z as matrices of doubles with the same number of rows."""
    exact, features = check_square("K", K), check_matrix("Z", Z)
    if len(exact) != len(features):
        raise ValueError(
            f"K has {counted(len(exact), 'row')} and Z has {len(features)}; pass the "
            "features of the same points, one row for each"
        )
    return exact, features


def _check_pairs(name: str, matrix: Doubles) -> int:
    """Return the number of rows, at least two."""
    if len(matrix) < 2:
        raise ValueError(
            f"{name} has {counted(len(matrix), 'row')}, so that there are no pairs; pass at least "
            "two"
        )
    return len(matrix)


def _as_labels(labels: ArrayLike) -> NDArray[Any]:
    """Return labels as an array, or raise naming one that is not usable."""
    try:
        names = np.asarray(labels)
    except ValueError:
        raise ValueError(
            "labels has parts of different lengths; pass one label for each point"
        ) from None
    for i, label in enumerate(names.ravel()):
        try:
            hash(label)
        except TypeError:
            raise TypeError(
                f"labels[{i}]={label!r} is a {type(label).__name__}; use text or numbers"
            ) from None
        try:
            missing = bool(label != label)  # noqa: PLR0124  NaN and NaT
        except TypeError:  # a comparison with pandas' NA has no truth value
            missing = True
        if missing:
            name = "NaN" if str(label) == "nan" else label
            raise ValueError(f"labels[{i}] is {name}; give every point a label")
    return names


def _tiles(n: int) -> Iterator[slice]:
    """Yield slices of rows whose kernel values fit into the cache."""
    step = max(1, _TILE // n)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def _squared_distances(points: Doubles, tile: slice) -> Doubles:
    """Return the squared distances of some rows from all rows."""
    squares = np.einsum("ij,ij->i", points, points)
    distances: Doubles = squares[tile, None] + squares - 2 * (points[tile] @ points.T)
    return np.maximum(distances, 0.0)


def _ratios(K: Any, Z: Any, lam: float) -> Doubles:
    """Return the eigenvalues of Z Z^T + lam I relative to K + lam I, in increasing order."""
    exact, features = _pair(check_symmetric("K", K), Z)
    ridge = check_positive("lam", lam) * np.eye(len(exact))
    try:
        mu: Doubles = eigh(features @ features.T + ridge, exact + ridge, eigvals_only=True)
    except LinAlgError:
        raise ValueError(
            f"K + lam I is not positive definite at lam={lam}; pass the exact matrix of a positive "
            "definite kernel, or a larger lam"
        ) from None
    return mu


def _extreme_ratio(A: Doubles, B: Doubles, rank: int, lowest: bool) -> float:
    """Return the extreme of Tr(Y A Y) / Tr(Y B Y) over projections Y that leave out `rank` axes."""
    n = len(A)
    totals = np.array([np.trace(A), np.trace(B)])
    ratio = float(totals[0] / totals[1])
    if rank == 0:
        return ratio
    chosen = [0, rank - 1] if lowest else [n - rank, n - 1]
    for _ in range(100):
        _, axes = eigh(A - ratio * B, subset_by_index=chosen)
        costs = totals - np.array([np.vdot(axes, A @ axes), np.vdot(axes, B @ axes)])
        previous, ratio = ratio, float(costs[0] / costs[1])
        if abs(ratio - previous) <= 1e-10 * abs(ratio):  # the error is the square of that
            break
    return ratio
