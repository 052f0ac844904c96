"""Ridge regression on the kernel at some centres, by the normal equations."""

import numpy as np

__all__ = ["center_ridge", "center_variance", "sampled_system"]


def center_ridge(cross, square, y, alpha, fit_intercept=False, weights=None):
    """Solve the kernel ridge regression whose function is sum_m c_m k(., z_m).

    Minimise sum_i w_i (y_i - sum_m c_m k(x_i, z_m) - intercept)^2 + alpha c^T K_MM c:
    (K_Mn W K_nM + alpha K_MM) c = K_Mn W y, with the columns of K_nM and y centred at their
    weighted means where there is an intercept. [Rudi, Carratino, Rosasco 2017, Eq 8, where alpha is
    lambda n]

    Parameters
    ----------
    cross : n rows of M numbers
        K_nM, k(x_i, z_m).
    square : M rows of M numbers
        K_MM, k(z_l, z_m).
    y : n numbers, or n rows of k targets
    alpha : float
    fit_intercept : bool
        The intercept is free.
    weights : sequence of n numbers, optional
        1 for all by default.

    Returns
    -------
    coef : ndarray of shape (M,) or (M, k)
        Of equal centres, the one of least norm.
    intercept : float, or ndarray of shape (k,)

    Examples
    --------
    One centre z with k(z, z) = 1, and k(x, z) = 1, 2: (1 + 4 + alpha) c = 1 y_1 + 2 y_2.

    >>> coef, intercept = center_ridge([[1], [2]], [[1]], [2, 4], alpha=5.0)
    >>> coef, float(intercept)
    (array([1.]), 0.0)
    """
    K, square, y = (np.asarray(array, dtype=float) for array in (cross, square, y))
    w = np.ones(len(K)) if weights is None else np.asarray(weights, dtype=float)
    mean, y_mean = np.zeros(K.shape[1]), np.zeros(y.shape[1:])
    if fit_intercept:
        mean, y_mean = w @ K / w.sum(), w @ y / w.sum()
    WK = (K - mean) * w[:, None]
    inverse = np.linalg.pinv(WK.T @ (K - mean) + alpha * square, rcond=1e-13, hermitian=True)
    coef = inverse @ WK.T @ (y - y_mean)
    return coef, (y_mean - mean @ coef)[()]


def center_variance(new, square, prior, alpha, rows_per_center):
    """Return the variance of the function at a new point, in units of the prior's scale.

    Each centre stands for so many rows of noise alpha at its place: k(x, x) - k_M^T (K_MM + alpha /
    rows_per_center I)^-1 k_M. It is that of the model, k(x, x) - |z|^2 + alpha z^T (G + alpha I)^-1
    z with z = T^-T k_M and K_MM = T^T T, where G is what the centres tell of it,
    rows_per_center T T^T.

    Parameters
    ----------
    new : M numbers
        k(x, z_m).
    square : M rows of M numbers
        K_MM.
    prior : float
        k(x, x).
    alpha, rows_per_center : float

    Returns
    -------
    float

    Examples
    --------
    One centre at the point itself, and two rows: 1 - 1 / (1 + 1 / 2).

    >>> round(center_variance([1], [[1]], 1.0, alpha=1.0, rows_per_center=2.0), 6)
    0.333333
    """
    k, square = np.asarray(new, dtype=float), np.asarray(square, dtype=float)
    noisy = square + alpha / rows_per_center * np.eye(len(k))
    return float(prior - k @ np.linalg.inv(noisy) @ k)


def sampled_system(cross, square, alpha, n_rows):
    """Replace all rows by a sample of them in the system of `center_ridge`: the preconditioner.

    (n / m) K_Ms K_sM + alpha K_MM for m rows s. With K_MM = T^T T it is T^T A^T A T, where A^T A =
    (n / m) T^-T K_Ms K_sM T^-1 + alpha I; if the sample is the centres, (n / M) T T^T + alpha I.
    [Rudi, Carratino, Rosasco 2017, Eq 10 and 13]

    Parameters
    ----------
    cross : m rows of M numbers
        K_sM, k(x_i, z_l) for the rows of the sample.
    square : M rows of M numbers
    alpha : float
    n_rows : int
        How many rows there are in all.

    Returns
    -------
    ndarray of shape (M, M)

    Examples
    --------
    >>> sampled_system([[2]], [[4]], alpha=0.5, n_rows=3)  # 3 * 2 * 2 + 0.5 * 4
    array([[14.]])
    """
    K, square = np.asarray(cross, dtype=float), np.asarray(square, dtype=float)
    return n_rows / len(K) * K.T @ K + alpha * square
