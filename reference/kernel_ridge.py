"""Kernel ridge regression with the whole kernel, as a Gaussian process.

K is the kernel matrix of the n rows, A = K + alpha N with N = diag(1 / w) for the weights w. The
model is y = f(x) + noise, where f has the prior covariance s k, and the noise the variance s alpha
/ w.
"""

import numpy as np

__all__ = ["conditioned_draw", "dual_coefficients", "predictive_variance", "prior_scale"]


def dual_coefficients(K, y, alpha, weights=None, fit_intercept=False):
    """Solve a kernel ridge regression.

    Minimise sum_i w_i (y_i - f(x_i) - b)^2 + alpha ||f||^2: f(x) = sum_i c_i k(x, x_i) with
    c = A^(-1) (y - b 1), and the b that is free to choose is 1^T A^(-1) y / 1^T A^(-1) 1.

    Parameters
    ----------
    K : n lists of n numbers
        The kernel matrix of the rows.
    y : n numbers
    alpha : float
    weights : sequence of n numbers > 0, optional
        1 for all by default.
    fit_intercept : bool
        Without it b is 0.

    Returns
    -------
    c : list of n floats
    b : float

    Examples
    --------
    >>> dual_coefficients([[1.0, 0.0], [0.0, 1.0]], [3.0, 6.0], alpha=2.0)
    ([1.0, 2.0], 0.0)
    >>> dual_coefficients([[1.0, 0.0], [0.0, 1.0]], [3.0, 6.0], alpha=2.0, fit_intercept=True)
    ([-0.5, 0.5], 4.5)
    """
    y = np.asarray(y, dtype=float)
    inverse = np.linalg.inv(_matrix(K, alpha, weights))
    b = float(np.sum(inverse @ y) / np.sum(inverse)) if fit_intercept else 0.0
    return (inverse @ (y - b)).tolist(), b


def prior_scale(K, y, alpha, weights=None, fit_intercept=False):
    """Estimate s by y^T A^(-1) y over the degrees of freedom: its mean is s for y from the model.

    Parameters
    ----------
    K, y, alpha, weights, fit_intercept
        As for `dual_coefficients`; an intercept costs one degree of freedom.

    Returns
    -------
    float

    Examples
    --------
    >>> prior_scale([[1.0, 0.0], [0.0, 1.0]], [3.0, 6.0], alpha=2.0)  # (9 + 36) / 3 / 2
    7.5
    """
    c, b = dual_coefficients(K, y, alpha, weights, fit_intercept)
    return float(np.dot(np.asarray(y) - b, c) / (len(c) - fit_intercept))


def predictive_variance(K, k_new, k_self, alpha, weights=None, fit_intercept=False):
    """Return the variance of f(x), and of b beside it, given y; in units of s.

    k(x, x) - k_x^T A^(-1) k_x + (1 - 1^T A^(-1) k_x)^2 / 1^T A^(-1) 1, the last with an intercept.
    A new observation of weight 1 varies by alpha more.

    Parameters
    ----------
    K, alpha, weights, fit_intercept
        As for `dual_coefficients`.
    k_new : n numbers
        k_x: the kernel between x and the rows.
    k_self : float
        k(x, x).

    Returns
    -------
    float

    Examples
    --------
    >>> predictive_variance([[1.0]], [0.5], 1.0, alpha=1.0)  # 1 - .5 * .5 / 2
    0.875
    """
    inverse, k = np.linalg.inv(_matrix(K, alpha, weights)), np.asarray(k_new, dtype=float)
    variance = k_self - k @ inverse @ k
    if fit_intercept:
        variance += (1 - np.sum(inverse @ k)) ** 2 / np.sum(inverse)
    return float(variance)


def conditioned_draw(
    K, k_new, y, alpha, prior, prior_new, noise, scale, weights=None, fit_intercept=False
):
    """Turn a draw from the prior into one given y, by Matheron's rule.

    f(x) + k_x^T A^(-1) (y - f(X) - e): what the draw says of y is corrected by what y says.

    Parameters
    ----------
    K, y, alpha, weights, fit_intercept
        As for `dual_coefficients`.
    k_new : m lists of n numbers
        The kernel between m new points and the rows.
    prior, prior_new : n and m numbers
        A draw of a process of covariance k, at the rows and at the new points.
    noise : n numbers
        Standard normal.
    scale : float
        s.

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
    c, b = dual_coefficients(K, rest, alpha, weights, fit_intercept)
    corrected = np.asarray(k_new, dtype=float) @ c + b
    return (np.sqrt(scale) * np.asarray(prior_new) + corrected).tolist()


def _matrix(K, alpha, weights):
    """A = K + alpha diag(1 / w)."""
    w = np.ones(len(K)) if weights is None else np.asarray(weights, dtype=float)
    return np.asarray(K, dtype=float) + alpha * np.diag(1 / w)
