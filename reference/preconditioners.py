"""Inverses of matrices close to K + alpha N: features for the far part, neighbours for the near.

K is the kernel matrix of n rows, Z their features, N a diagonal matrix, given by its diagonal,
`noise`.
"""

import numpy as np

__all__ = [
    "low_rank_inverse",
    "low_rank_shift",
    "near_and_far_inverse",
    "near_landmarks",
    "nearest_before",
    "sparse_factor",
]


def low_rank_shift(K, Z, alpha, noise):
    """Return mu = max(alpha, Tr N^-1 (K - Z Z^T) / n): what Z Z^T + mu N needs on its diagonal.

    Parameters
    ----------
    K : n lists of n numbers
    Z : n lists of p numbers
    alpha : float
    noise : n numbers > 0

    Returns
    -------
    float

    Examples
    --------
    >>> low_rank_shift([[1.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]], 0.1, [1.0, 1.0])
    0.5
    """
    left = [(K[i][i] - sum(z * z for z in Z[i])) / noise[i] for i in range(len(K))]
    return max(alpha, sum(left) / len(K))


def low_rank_inverse(Z, mu, noise):
    """Return (Z Z^T + mu N)^-1 by Woodbury's identity.

    (N^-1 - N^-1 Z (mu I + Z^T N^-1 Z)^-1 Z^T N^-1) / mu: the inverse of a matrix of p columns.

    Parameters
    ----------
    Z : n lists of p numbers
    mu : float > 0
    noise : n numbers > 0

    Returns
    -------
    ndarray of shape (n, n)

    References
    ----------
    Woodbury, Inverting Modified Matrices, 1950.

    Examples
    --------
    >>> low_rank_inverse([[1.0], [1.0]], 1.0, [1.0, 1.0]).round(6)  # of [[2, 1], [1, 2]]
    array([[ 0.666667, -0.333333],
           [-0.333333,  0.666667]])
    """
    Z, N = np.array(Z), np.diag(1 / np.array(noise))
    inner = np.linalg.inv(mu * np.eye(Z.shape[1]) + Z.T @ N @ Z)
    return (N - N @ Z @ inner @ Z.T @ N) / mu


def nearest_before(rows, ranks, count):
    """Return the nearest rows of a smaller rank, for each row.

    Parameters
    ----------
    rows : n lists of d numbers
    ranks : n different numbers
    count : int
        m.

    Returns
    -------
    n lists of up to m numbers of rows, the nearest first

    Examples
    --------
    >>> nearest_before([[0.0], [1.0], [3.0], [2.0]], [0, 1, 2, 3], 2)
    [[], [0], [1, 0], [1, 2]]
    """

    def nearest(i):
        before = [j for j in range(len(rows)) if ranks[j] < ranks[i]]
        return sorted(
            before, key=lambda j: sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True))
        )

    return [nearest(i)[:count] for i in range(len(rows))]


def sparse_factor(S, neighbours):
    """Return G, of which G^T G is near S^-1, from small parts of S.

    With S_i the part of S at the neighbours N_i of row i and at i itself, and e the unit vector of
    i, row i of G is S_i^-1 e / sqrt(e^T S_i^-1 e). If N_i are all rows before i, G^T G is the
    inverse of S.

    Parameters
    ----------
    S : n lists of n numbers
        Symmetric, positive definite.
    neighbours : n lists of numbers of rows

    Returns
    -------
    ndarray of shape (n, n)

    References
    ----------
    Kolotilina, Yeremin, Factorized Sparse Approximate Inverse Preconditionings, 1993; Vecchia,
    Estimation and Model Identification for Continuous Spatial Processes, 1988.

    Examples
    --------
    >>> G = sparse_factor([[2.0, 1.0], [1.0, 2.0]], [[], [0]])
    >>> (G.T @ G).round(6)
    array([[ 0.666667, -0.333333],
           [-0.333333,  0.666667]])
    """
    S = np.array(S)
    G = np.zeros(S.shape)
    for i, before in enumerate(neighbours):
        rows = [*before, i]
        g = np.linalg.inv(S[np.ix_(rows, rows)])[:, -1]
        G[i, rows] = g / np.sqrt(g[-1])
    return G


def near_and_far_inverse(Z, G):
    """Return (Z Z^T + M^-1)^-1 for M = G^T G: M - M Z (I + Z^T M Z)^-1 Z^T M.

    Parameters
    ----------
    Z : n lists of p numbers
    G : n lists of n numbers
        With M near (K - Z Z^T + alpha N)^-1.

    Returns
    -------
    ndarray of shape (n, n)

    References
    ----------
    Zhao, Xu, Huang, Chow, Xi, An Adaptive Factorized Nystrom Preconditioner for Regularized Kernel
    Matrices, 2023.

    Examples
    --------
    >>> near_and_far_inverse([[1.0], [1.0]], [[1.0, 0.0], [0.0, 1.0]]).round(6)
    array([[ 0.666667, -0.333333],
           [-0.333333,  0.666667]])
    """
    Z, M = np.array(Z), np.array(G).T @ np.array(G)
    inner = np.linalg.inv(np.eye(Z.shape[1]) + Z.T @ M @ Z)
    return M - M @ Z @ inner @ Z.T @ M


def near_landmarks(K, K_landmarks, K_rows_landmarks, noise, neighbours, seen):
    """Return P of rows that see some of the landmarks alone, and some of the rows before them.

    Values u at q landmarks have the covariance K_landmarks. Those y of rows, with noise, are drawn
    after them, one by one: of all that was drawn before, y_i depends on u at the landmarks that it
    sees and on y at its neighbours, as it would if K were the covariance. P is the covariance of y.

    Row by row that is G y + B u = e for white noise e: row i of (B, G) is row q + i of
    `sparse_factor` for the landmarks and rows together.

    Parameters
    ----------
    K : n lists of n numbers
    K_landmarks : q lists of q numbers
        Symmetric, positive definite.
    K_rows_landmarks : n lists of q numbers
    noise : n numbers > 0
        The diagonal of alpha N.
    neighbours : n lists of numbers of rows before
    seen : n lists of numbers of landmarks

    Returns
    -------
    ndarray of shape (n, n)

    References
    ----------
    Vecchia, Estimation and Model Identification for Continuous Spatial Processes, 1988; Katzfuss,
    Guinness, A General Framework for Vecchia Approximations of Gaussian Processes, 2021.

    Examples
    --------
    >>> K, to_landmark = [[1.0, 0.5], [0.5, 1.0]], [[0.5], [0.5]]
    >>> near_landmarks(K, [[1.0]], to_landmark, [0.1, 0.1], [[], [0]], [[0], [0]]).round(6)
    array([[1.1, 0.5],
           [0.5, 1.1]])
    """
    q, C = len(K_landmarks), np.array(K_rows_landmarks)
    S = np.block([[np.array(K_landmarks), C.T], [C, np.array(K) + np.diag(noise)]])
    told_by = [[*at, *(q + j for j in rows)] for at, rows in zip(seen, neighbours, strict=True)]
    factor = sparse_factor(S, [[] for _ in range(q)] + told_by)[q:]
    B, G = factor[:, :q], np.linalg.inv(factor[:, q:])
    return G @ (np.eye(len(G)) + B @ np.array(K_landmarks) @ B.T) @ G.T
