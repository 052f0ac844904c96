"""Errors of an approximation: the measures of the papers, by their definitions.

[G] is Han, Zandieh, Avron, [B] is "A Simple and Efficient Method for Random Fourier Features". Z
has one row per point, so that Z Z^T approximates K ([G] writes its transpose).
"""

from itertools import combinations
from math import inf

import numpy as np

__all__ = [
    "clustering_cost",
    "mean_distance_error",
    "mean_kernel_error",
    "projection_cost_error",
    "relative_frobenius_error",
    "spectral_error",
    "whitened_error",
]


def dot(x, y):
    """Return <x, y>, in double precision."""
    return sum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def squared_distance(x, y):
    """Return ||x - y||^2, in double precision."""
    return sum((float(a) - float(b)) ** 2 for a, b in zip(x, y, strict=True))


def ratios(K, Z, lam):
    """Return the eigenvalues of (K + lam I)^(-1/2) (Z Z^T + lam I) (K + lam I)^(-1/2), in order."""
    K, Z = np.array(K, dtype=float), np.array(Z, dtype=float)
    energies, axes = np.linalg.eigh(K + lam * np.eye(len(K)))
    half = axes @ np.diag(energies**-0.5) @ axes.T
    return np.linalg.eigvalsh(half @ (Z @ Z.T + lam * np.eye(len(K))) @ half)


def spectral_error(K, Z, lam):
    """Find the smallest epsilon for which Z Z^T is an (epsilon, lambda)-spectral approximation.

    (K + lam I) / (1 + eps) <= Z Z^T + lam I <= (K + lam I) / (1 - eps)
    Han, Zandieh, Avron, Eq 1 and 20. With mu the eigenvalues of Z Z^T + lam I relative to
    K + lam I this asks for 1 / (1 + eps) <= mu <= 1 / (1 - eps).

    Parameters
    ----------
    K : n rows of n numbers
    Z : n rows of F numbers
    lam : float
        lambda > 0.

    Returns
    -------
    float

    Examples
    --------
    mu = (1 + 1) / (3 + 1), so 1 + eps = 2:

    >>> round(spectral_error([[3]], [[1]], 1.0), 12)
    1.0
    """
    mu = ratios(K, Z, lam)
    return float(max(0, 1 / mu[0] - 1, 1 - 1 / mu[-1]))


def whitened_error(K, Z, lam):
    """Measure the error relative to K + lambda I, the norm that the proof of Theorem 9 bounds.

    || (K + lam I)^(-1/2) (Z Z^T - K) (K + lam I)^(-1/2) ||_op = max abs(mu - 1)
    Han, Zandieh, Avron, Appendix F. It is not the epsilon of Eq 1, which the appendix takes it
    for: if it is at most eps / (1 + eps), Eq 1 holds with eps.

    Parameters
    ----------
    K : n rows of n numbers
    Z : n rows of F numbers
    lam : float
        lambda > 0.

    Returns
    -------
    float

    Examples
    --------
    >>> round(whitened_error([[3]], [[1]], 1.0), 12)  # mu = 1/2
    0.5
    """
    return float(max(abs(mu - 1) for mu in ratios(K, Z, lam)))


def relative_frobenius_error(K, Z):
    """Measure the error of all entries together.

    ||Z Z^T - K||_F / ||K||_F, the root of a sum of squares over all pairs.

    Parameters
    ----------
    K : n rows of n numbers
    Z : n rows of F numbers

    Returns
    -------
    float

    Examples
    --------
    >>> relative_frobenius_error([[2, 0], [0, 0]], [[1], [0]])
    0.5
    """
    n = range(len(K))
    error = sum((dot(Z[i], Z[j]) - float(K[i][j])) ** 2 for i in n for j in n)
    return (error / sum(float(K[i][j]) ** 2 for i in n for j in n)) ** 0.5


def mean_kernel_error(K, Z):
    """Average the error of the kernel over all pairs of points.

    1 / (n choose 2)  sum_(i<j) abs(<z_i, z_j> - k(x_i, x_j))
    [B] Eq 9.

    Parameters
    ----------
    K : n rows of n numbers
    Z : n rows of F numbers

    Returns
    -------
    float

    Examples
    --------
    >>> mean_kernel_error([[1, 0.5], [0.5, 1]], [[1], [1]])
    0.5
    """
    pairs = list(combinations(range(len(K)), 2))
    return sum(abs(dot(Z[i], Z[j]) - float(K[i][j])) for i, j in pairs) / len(pairs)


def mean_distance_error(X, V):
    """Average the error of the squared distance over all pairs of points.

    1 / (n choose 2)  sum_(i<j) abs(||x_i - x_j||^2 - ||v_i - v_j||^2)
    [B] Eq 8, for projections V of the points X.

    Parameters
    ----------
    X : n rows of d numbers
    V : n rows of k numbers

    Returns
    -------
    float

    Examples
    --------
    >>> mean_distance_error([[0, 0], [3, 4]], [[0], [4]])  # 25 - 16
    9.0
    """
    pairs = list(combinations(range(len(X)), 2))
    return sum(
        abs(squared_distance(X[i], X[j]) - squared_distance(V[i], V[j])) for i, j in pairs
    ) / len(pairs)


def projection_cost_error(K, Z, rank):
    """Find the smallest epsilon for which Z preserves the cost of every projection of a rank.

    (1 - eps) Tr(K - P K P) <= Tr(Z Z^T - P Z Z^T P) <= (1 + eps) Tr(K - P K P) for all orthogonal
    projections P of rank r.
    Han, Zandieh, Avron, Eq 21. With Y = I - P these are Tr(Y K Y) and Tr(Y Z Z^T Y). Some Y has
    Tr(Y Z Z^T Y) >= rho Tr(Y K Y) if and only if the n - r largest eigenvalues of Z Z^T - rho K
    have a sum >= 0 (Ky Fan): the largest ratio is found by halving an interval.

    Parameters
    ----------
    K : n rows of n numbers
        Of a rank above r: otherwise a cost is 0.
    Z : n rows of F numbers
    rank : int
        r, from 0 to n - 1.

    Returns
    -------
    float

    Examples
    --------
    What P leaves is the first axis or the second, or between: costs 1 against 1, 2 against 1.

    >>> round(projection_cost_error([[1, 0], [0, 1]], [[1, 0], [0, 2**0.5]], rank=1), 12)
    1.0
    """
    K, Z = np.array(K, dtype=float), np.array(Z, dtype=float)
    G, n_left = Z @ Z.T, len(K) - rank
    if np.linalg.eigvalsh(K)[:n_left].sum() <= 1e-14 * np.trace(K):
        return inf

    def largest(rho):
        return np.linalg.eigvalsh(G - rho * K)[rank:].sum()

    def smallest(rho):
        return np.linalg.eigvalsh(G - rho * K)[:n_left].sum()

    return float(max(0, root(largest) - 1, 1 - root(smallest)))


def root(decreasing):
    """Return where a decreasing function of a number >= 0 changes its sign."""
    low, high = 0.0, 1.0
    while decreasing(high) > 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    return high


def clustering_cost(K, labels):
    """Evaluate the cost of a clustering with the exact kernel.

    sum_i sum_(x_j in C_i) ||phi_(x_j) - mu_i||^2 = Tr(K - C C^T K C C^T)
    Han, Zandieh, Avron, A.2. Two slips there: mu_i is the mean of phi_(x_j), j in C_i (printed
    phi_(x_i)), and C_(j,i) = 1 / sqrt(abs(C_i)) (printed 1 / abs(C_i), with which C^T C isn't I).
    Table 3 compares the methods by ||Z - Z C C^T||^2, each in its own feature space, which shrinks
    with what the approximation loses; this cost is the same space for all.

    Parameters
    ----------
    K : n rows of n numbers
    labels : sequence of n labels
        Points of one label are one cluster.

    Returns
    -------
    float

    Examples
    --------
    Points 0 and 2 on a line, whose mean is 1, and 9 alone:

    >>> round(clustering_cost([[0, 0, 0], [0, 4, 18], [0, 18, 81]], ["a", "a", "b"]), 12)
    2.0
    """
    K, labels = np.array(K, dtype=float), list(labels)
    clusters = sorted(set(labels))
    C = np.array(
        [
            [(labels[j] == cluster) / labels.count(cluster) ** 0.5 for cluster in clusters]
            for j in range(len(labels))
        ]
    )
    return float(np.trace(K - C @ C.T @ K @ C @ C.T))
