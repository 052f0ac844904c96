"""Losses of one row with their slopes and curvatures in f, and their least penalised sum.

Each returns (value, slope, curvature): l(y, f), its derivative in f, and the second one. With the
whole kernel f = K c + b, and sum_i w_i l(y_i, f_i) + alpha / 2 c^T K c is minimised.
"""

import math

import numpy as np

__all__ = [
    "huber",
    "huber_scale",
    "logistic",
    "loss_minimum",
    "pinball",
    "poisson",
    "smoothed_pinball",
    "softmax",
]


def poisson(y, f):
    """Half the Poisson deviance of a count y, whose mean is exp(f).

    y log(y / mu) - y + mu for mu = exp(f), with 0 log 0 = 0.

    Examples
    --------
    >>> poisson(0, 0.0)
    (1.0, 1.0, 1.0)
    >>> poisson(1, 0.0)
    (0.0, 0.0, 1.0)
    """
    mean = math.exp(f)
    entropy = y * math.log(y) if y > 0 else 0.0
    return entropy - y * f - y + mean, mean - y, mean


def logistic(y, f):
    """Minus the logarithm of the probability of the class y = +-1, whose log odds are y f.

    log(1 + exp(-y f)).

    Examples
    --------
    >>> value, slope, curvature = logistic(1, 0.0)
    >>> round(value, 4), slope, curvature  # log 2
    (0.6931, -0.5, 0.25)
    """
    wrong = 1 / (1 + math.exp(y * f))
    return math.log1p(math.exp(-y * f)), -y * wrong, wrong * (1 - wrong)


def softmax(y, f):
    """Minus the logarithm of the probability of a class, exp(f_y) over the sum of exp(f).

    Parameters
    ----------
    y : int
        The place of the class among k.
    f : k numbers

    Returns
    -------
    value : float
    slope : k floats
        p_c - [c = y].
    curvature : k lists of k floats
        diag(p) - p p^T.

    Examples
    --------
    >>> softmax(1, [0.0, 0.0])[1:]
    ([0.5, -0.5], [[0.25, -0.25], [-0.25, 0.25]])
    """
    total = sum(math.exp(each) for each in f)
    p = [math.exp(each) / total for each in f]
    slope = [p[c] - (c == y) for c in range(len(f))]
    curvature = [[p[c] * ((c == d) - p[d]) for d in range(len(f))] for c in range(len(f))]
    return math.log(total) - f[y], slope, curvature


def huber(y, f, width):
    """A parabola up to a width, a line beyond: outliers count by their distance, not its square.

    r^2 / 2 for |r| <= width, width |r| - width^2 / 2 beyond, with r = y - f. [Huber 1964]

    Examples
    --------
    >>> huber(1.0, 0.0, 2.0), huber(-5.0, 0.0, 2.0)
    ((0.5, -1.0, 1.0), (8.0, 2.0, 0.0))
    """
    r = y - f
    if abs(r) <= width:
        return r * r / 2, -r, 1.0
    return width * abs(r) - width**2 / 2, -math.copysign(width, r), 0.0


def huber_scale(residuals, epsilon, penalty=0.0, weights=None):
    """Return the scale s with s^2 sum_i w_i = sum_i w_i min(r_i^2, epsilon^2 s^2) + penalty.

    The largest one, by halving: from there on the left grows faster.

    Parameters
    ----------
    residuals : n numbers
    epsilon : float
        >= 1.
    penalty : float
        >= 0.
    weights : n numbers, optional

    Examples
    --------
    Two of 3 inside: 3 s^2 = 1 + 1 + 1.5 s^2.

    >>> round(huber_scale([1.0, -1.0, 100.0], epsilon=1.5**0.5) ** 2, 9)  # doctest: +ELLIPSIS
    1.333333333
    """
    w = [1.0] * len(residuals) if weights is None else list(weights)

    def missing(square):
        inside = sum(
            weight * min(r * r, epsilon**2 * square) for weight, r in zip(w, residuals, strict=True)
        )
        return sum(w) * square - inside - penalty

    low, high = 0.0, 1.0
    while missing(high) < 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if missing(middle) > 0 else (middle, high)
    return math.sqrt(high)


def pinball(y, f, quantile):
    """The loss whose mean is least at a quantile of y: max(q r, (q - 1) r), r = y - f.

    Its curvature is 0, but for the kink, where it has none.

    Examples
    --------
    >>> pinball(1.0, 0.0, 0.75), pinball(-1.0, 0.0, 0.75)
    ((0.75, -0.75, 0.0), (0.25, 0.25, 0.0))
    """
    r = y - f
    return (quantile * r, -quantile, 0.0) if r > 0 else ((quantile - 1) * r, 1 - quantile, 0.0)


def smoothed_pinball(y, f, quantile, width):
    """The pinball loss with a barrier about its slopes, which makes it smooth.

    max over s of s r + m (log(q - s) + log(s + 1 - q)) for the width m; the pinball loss is that of
    m = 0. With u = q - s: r = m / u - m / (1 - u), a quadratic equation. The curvature is 1 / (m /
    u^2 + m / (1 - u)^2).

    Examples
    --------
    >>> smoothed_pinball(0.0, 0.0, 0.5, 0.25)[1:]  # u = 1/2
    (0.0, 0.5)
    """
    r, m = y - f, width
    u = 2 * m / (r + 2 * m + math.hypot(r, 2 * m))
    value = (quantile - u) * r + m * (math.log(u) + math.log(1 - u))
    return value, u - quantile, 1 / (m / u**2 + m / (1 - u) ** 2)


def loss_minimum(K, y, alpha, loss, weights=None, fit_intercept=True):
    """Minimise sum_i w_i loss(y_i, f_i) + alpha / 2 sum_c |f_c|^2 with f = K c + b.

    Newton's method with halved steps: r + alpha d + H (K d + e) = 0 and 1^T (c + d) = 0 for the
    step (d, e), with r = w l' + alpha c and H = w l''. At the minimum alpha c = -w l'.

    Parameters
    ----------
    K : n lists of n numbers
        The kernel matrix of the rows.
    y : n targets, or places of classes
    alpha : float
        > 0.
    loss : callable
        (y_i, f_i) -> value, slope, curvature, smooth; f_i is a number, or k numbers for `softmax`:
        then `y` has all of 0 to k - 1.
    weights : n numbers, optional
    fit_intercept : bool
        Without it b is 0.

    Returns
    -------
    c : ndarray of shape (n,) or (n, k)
    b : float, or ndarray of shape (k,)

    Examples
    --------
    One count of 2, mu = exp(c): mu - 2 + alpha c = 0.

    >>> c, b = loss_minimum([[1.0]], [2], 1.0, poisson, fit_intercept=False)
    >>> round(float(c[0]), 6), bool(abs(math.exp(c[0]) - 2 + c[0]) < 1e-12), b
    (0.442854, True, 0.0)
    """
    K, n = np.asarray(K, dtype=float), len(y)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    k = max(y) + 1 if loss is softmax else 1
    c, b = np.zeros((n, k)), np.zeros(k)

    def rows(c, b):
        f = K @ c + b
        parts = [loss(y[i], f[i].tolist() if loss is softmax else float(f[i, 0])) for i in range(n)]
        value = sum(w[i] * parts[i][0] for i in range(n)) + alpha / 2 * np.sum(c * (K @ c))
        g = np.array([w[i] * np.reshape(parts[i][1], k) for i in range(n)])
        H = [w[i] * np.reshape(parts[i][2], (k, k)) for i in range(n)]
        return value, g, H

    value, g, H = rows(c, b)
    for _ in range(100):
        # Unknowns d_jc, then e_c; equations of the rows and outputs, then of the sums.
        left = np.zeros((n * k + k, n * k + k))
        for i in range(n):
            here = slice(i * k, i * k + k)
            for j in range(n):
                left[here, j * k : j * k + k] = H[i] * K[i, j]
            left[here, here] += alpha * np.eye(k)
            left[here, n * k :] = H[i] * fit_intercept
            left[n * k :, here] = np.eye(k) * fit_intercept
        right = np.concatenate([-(g + alpha * c).ravel(), -c.sum(axis=0) * fit_intercept])
        step = np.linalg.lstsq(left, right)[0]
        d, e = step[: n * k].reshape(n, k), step[n * k :]
        length = 1.0
        while length > 1e-9 and not rows(c + length * d, b + length * e)[0] <= value:
            length /= 2
        if length <= 1e-9:
            break
        c, b = c + length * d, b + length * e
        value, g, H = rows(c, b)
        if np.abs(d).max() <= 1e-15 * np.abs(c).max():
            break
    return (c, b) if k > 1 else (c[:, 0], float(b[0]))
