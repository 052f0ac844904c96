"""Nystrom features: a kernel approximated from its values at some of the rows, the landmarks.

The kernel matrix K of all rows is replaced by its projection on the columns of the landmarks L,
K_L K_LL^+ K_L^T. The choice of the landmarks matters. There are three rules, which use only the
kernel. Random numbers come from `uniforms`, an iterator of numbers in (0, 1).
"""

from math import ceil, log, log2, sqrt

import numpy as np

__all__ = [
    "kernel_distances",
    "nystrom_kernel",
    "pivoted_cholesky",
    "recursive_leverage",
]


def nystrom_kernel(rows, columns, square, ridge=0.0):
    """Evaluate k(x, L) (K_LL + ridge I)^+ k(L, y): the kernel that the landmarks L can see.

    Parameters
    ----------
    rows : list of n lists of S numbers
        k(x, L).
    columns : list of m lists of S numbers
        k(y, L).
    square : list of S lists of S numbers
        K_LL.
    ridge : float
        1e-5 in the published code, so that an ordinary inverse will do.

    Returns
    -------
    ndarray of shape (n, m)

    References
    ----------
    Williams, Seeger, Using the Nystrom Method to Speed Up Kernel Machines, 2001.

    Examples
    --------
    >>> nystrom_kernel([[2.0]], [[3.0]], [[4.0]])  # 2 * 3 / 4
    array([[1.5]])
    """
    square = np.array(square)
    inverse = np.linalg.pinv(square + ridge * np.eye(len(square)), hermitian=True)
    return np.array(rows) @ inverse @ np.array(columns).T


def recursive_leverage(K, n_landmarks, uniforms, accelerated=False):
    """Choose landmarks by their ridge leverage, estimated from landmarks of half the rows.

    The leverage k_ii - K_i (K + lambda I)^-1 K_i^T, over lambda, says how far a row is from what
    the others explain. Halves of halves of the rows, in random order, are sampled from the smallest
    to the largest, each by the leverage that the sample before lets one see.

    Parameters
    ----------
    K : list of n lists of n numbers
    n_landmarks : int
        S < n.
    uniforms : iterator of float
        In this order: one for each row, whose ranks are the random order; at each level one for
        each of its rows, and as many again if none was kept.
    accelerated : bool
        Whether samples below the last have only sqrt((n S + S^3) / (4 n)) rows, so that choosing
        costs O(n S).

    Returns
    -------
    list of S different row numbers

    Notes
    -----
    The last sample is drawn without replacement: the largest log(u) / leverage. The published code
    divides by log S, which is 0 for S = 1; here by at least 1.

    References
    ----------
    Musco, Musco, Recursive Sampling for the Nystrom Method, 2017, Algorithm 3, and its published
    code.

    Examples
    --------
    >>> K = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]  # lambda = 1, all leverages 1/2
    >>> sorted(recursive_leverage(K, 2, iter([0.1, 0.2, 0.3, 0.5, 0.9, 0.1])))
    [0, 1]
    """
    K, S, n = np.array(K), n_landmarks, len(K)
    inner = ceil(sqrt((n * S + S**3) / (4 * n))) if accelerated else S
    oversampling = max(log(inner), 1.0)
    rank = ceil(inner / (4 * oversampling))
    order = np.argsort([next(uniforms) for _ in range(n)])
    sizes = [n]
    for _ in range(ceil(log2(n / inner))):
        sizes.append(ceil(sizes[-1] / 2))
    sample, weights = order[: sizes[-1]], np.ones(sizes[-1])
    for size in reversed(sizes[:-1]):
        rows = order[:size]
        seen, square = K[np.ix_(rows, sample)], K[np.ix_(sample, sample)]
        weighted = weights[:, None] * square * weights
        tail = np.linalg.eigvalsh(weighted)[: max(len(sample) - rank, 0)]
        lam = max(tail.sum() / rank, 1e-12 * np.trace(weighted)) if len(tail) else 1e-5
        inverse = np.linalg.inv(square + np.diag(lam / weights**2))
        leverage = (np.diag(K)[rows] - np.sum((seen @ inverse) * seen, axis=1)) / lam
        leverage = np.maximum(leverage, 1e-300)
        draws = np.array([next(uniforms) for _ in range(size)])
        if size == n:
            keys = np.log(draws) / np.minimum(leverage, 1.0)
            return rows[np.argsort(keys)[-S:]].tolist()
        leverage = np.minimum(oversampling * leverage, 1.0)
        drawn = draws < leverage
        if drawn.any():
            sample, weights = rows[drawn], leverage[drawn] ** -0.5
        else:
            draws = [next(uniforms) for _ in range(size)]
            sample, weights = rows[np.argsort(draws)[:inner]], np.full(inner, sqrt(size / inner))
    raise AssertionError("unreachable: the last level has all rows")


def pivoted_cholesky(K, n_landmarks, uniforms):
    """Choose landmarks one by one, in proportion to what those before leave of k(x, x).

    Parameters
    ----------
    K : list of n lists of n numbers
    n_landmarks : int
        S.
    uniforms : iterator of float
        One for each landmark.

    Returns
    -------
    list of up to S row numbers
        Fewer where nothing is left.

    References
    ----------
    Chen, Epperly, Tropp, Webber, Randomly Pivoted Cholesky, 2022, Algorithm 1.

    Examples
    --------
    >>> pivoted_cholesky([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]], 3, iter([0.1, 0.1]))
    [0, 2]
    """
    rest = np.array(K, dtype=float)
    first, chosen = rest.diagonal().max(), []
    while len(chosen) < n_landmarks and rest.diagonal().max() > 1e-12 * first:
        i = _draw(np.maximum(rest.diagonal(), 0.0), next(uniforms))
        rest = rest - np.outer(rest[:, i], rest[i]) / rest[i, i]
        chosen.append(i)
    return chosen


def kernel_distances(K, n_landmarks, uniforms):
    """Choose landmarks one by one, in proportion to the squared distance from those before.

    The distance is the kernel's, |x - y|^2 = k(x, x) - 2 k(x, y) + k(y, y): k-means++.

    Parameters
    ----------
    K : list of n lists of n numbers
    n_landmarks : int
        S.
    uniforms : iterator of float
        One for each landmark.

    Returns
    -------
    list of up to S row numbers
        Fewer where every row is a landmark already.

    References
    ----------
    Oglic, Gartner, Nystrom Method with Kernel K-means++ Samples as Landmarks, 2017.

    Examples
    --------
    >>> kernel_distances([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 3, iter([0.4, 0.1]))
    [1, 2]
    """
    K = np.array(K)
    left, chosen = np.ones(len(K)), []
    while len(chosen) < n_landmarks and left.max() > 1e-12 * K.diagonal().max():
        i = _draw(left, next(uniforms))
        apart = np.maximum(K.diagonal() - 2 * K[i] + K[i, i], 0.0)
        left = np.minimum(left, apart) if chosen else apart
        chosen.append(i)
    return chosen


def _draw(weights, uniform):
    """Number of the row that a uniform number falls to, rows being as wide as their weights."""
    total = np.cumsum(weights)
    return int(np.searchsorted(total, uniform * total[-1], side="right"))
