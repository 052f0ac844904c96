"""Kernel ridge regression with the whole kernel, as a Gaussian process.

K is the kernel matrix of the n rows, A = K + alpha N with N = diag(1 / w) for the weights w. The
model is y = f(x) + noise, where f has the prior covariance s k, and the noise the variance s alpha
/ w.
"""

import numpy as np

__all__ = ["conditioned_draw", "dual_coefficients", "predictive_variance", "prior_scale"]


def dual_coefficients(K, y, alpha, weights=None, trend=None):
    """Solve a kernel ridge regression.

    Minimise sum_i w_i (y_i - f(x_i) - h(x_i)^T b)^2 + alpha ||f||^2 over f and b: f(x) =
    sum_i c_i k(x, x_i) with c = A^(-1) (y - H b), b = (H^T A^(-1) H)^(-1) H^T A^(-1) y.
    [Rasmussen, Williams 2006, Eq 2.41 and 2.42 for B^(-1) = 0]

    Parameters
    ----------
    K : n lists of n numbers
        The kernel matrix of the rows.
    y : n numbers
    alpha : float
    weights : sequence of n numbers > 0, optional
        1 for all by default.
    trend : n lists of p numbers, optional
        H, of rows h(x_i): a column of ones for an intercept, and others for a linear trend.

    Returns
    -------
    c : list of n floats
    b : list of p floats

    Examples
    --------
    >>> dual_coefficients([[1.0, 0.0], [0.0, 1.0]], [3.0, 6.0], alpha=2.0)
    ([1.0, 2.0], [])
    >>> dual_coefficients([[1.0, 0.0], [0.0, 1.0]], [3.0, 6.0], alpha=2.0, trend=[[1], [1]])
    ([-0.5, 0.5], [4.5])
    """
    y, H = np.asarray(y, dtype=float), _free(K, trend)
    inverse = np.linalg.inv(_matrix(K, alpha, weights))
    b = np.linalg.solve(H.T @ inverse @ H, H.T @ inverse @ y)
    return (inverse @ (y - H @ b)).tolist(), b.tolist()


def prior_scale(K, y, alpha, weights=None, trend=None):
    """Estimate s by y^T A^(-1) y over the degrees of freedom: its mean is s for y from the model.

    Parameters
    ----------
    K, y, alpha, weights, trend
        As for `dual_coefficients`; each column of H costs one degree of freedom.

    Returns
    -------
    float

    Examples
    --------
    >>> prior_scale([[1.0, 0.0], [0.0, 1.0]], [3.0, 6.0], alpha=2.0)  # (9 + 36) / 3 / 2
    7.5
    """
    c, b = dual_coefficients(K, y, alpha, weights, trend)
    rest = np.asarray(y) - _free(K, trend) @ b
    return float(np.dot(rest, c) / (len(c) - len(b)))


def predictive_variance(K, k_new, k_self, alpha, weights=None, trend=None, trend_new=()):
    """Return the variance of f(x) + h(x)^T b given y; in units of s.

    k(x, x) - k_x^T A^(-1) k_x + u^T (H^T A^(-1) H)^(-1) u, where u = h(x) - H^T A^(-1) k_x. A new
    observation of weight 1 varies by alpha more.

    Parameters
    ----------
    K, alpha, weights, trend
        As for `dual_coefficients`.
    k_new : n numbers
        k_x: the kernel between x and the rows.
    k_self : float
        k(x, x).
    trend_new : p numbers
        h(x).

    Returns
    -------
    float

    Examples
    --------
    >>> predictive_variance([[1.0]], [0.5], 1.0, alpha=1.0)  # 1 - .5 * .5 / 2
    0.875
    """
    inverse, k = np.linalg.inv(_matrix(K, alpha, weights)), np.asarray(k_new, dtype=float)
    H = _free(K, trend)
    u = np.asarray(trend_new, dtype=float) - H.T @ inverse @ k
    return float(k_self - k @ inverse @ k + u @ np.linalg.solve(H.T @ inverse @ H, u))


def conditioned_draw(
    K, k_new, y, alpha, prior, prior_new, noise, scale, weights=None, trend=None, trend_new=None
):
    """Turn a draw from the prior into one given y, by Matheron's rule.

    f(x) + k_x^T A^(-1) (y - f(X) - e): what the draw says of y is corrected by what y says.

    Parameters
    ----------
    K, y, alpha, weights, trend
        As for `dual_coefficients`.
    k_new : m lists of n numbers
        The kernel between m new points and the rows.
    prior, prior_new : n and m numbers
        A draw of a process of covariance k, at the rows and at the new points.
    noise : n numbers
        Standard normal.
    scale : float
        s.
    trend_new : m lists of p numbers, optional
        h(x) of the new points.

    Returns
    -------
    list of m floats

    Examples
    --------
    >>> conditioned_draw([[1.0]], [[1.0]], [2.0], 1.0, [1.0], [1.0], [0.0], 1.0)  # 1 + (2 - 1) / 2
    [1.5]
    """
    w = np.ones(len(K)) if weights is None else np.asarray(weights, dtype=float)
    e = np.sqrt(alpha / w) * np.asarray(noise, dtype=float)
    rest = np.asarray(y, dtype=float) - np.sqrt(scale) * (np.asarray(prior) + e)
    c, b = dual_coefficients(K, rest, alpha, weights, trend)
    corrected = np.asarray(k_new, dtype=float) @ c + _free(k_new, trend_new) @ b
    return (np.sqrt(scale) * np.asarray(prior_new) + corrected).tolist()


def _matrix(K, alpha, weights):
    """A = K + alpha diag(1 / w)."""
    w = np.ones(len(K)) if weights is None else np.asarray(weights, dtype=float)
    return np.asarray(K, dtype=float) + alpha * np.diag(1 / w)


def _free(K, trend):
    """H; without a trend it has no columns."""
    return np.zeros((len(K), 0)) if trend is None else np.asarray(trend, dtype=float)
