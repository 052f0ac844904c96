"""Gaussian processes given the nearest rows of each new one, directly from the formulas.

The model is y = f(x) + noise, where f has the covariance s k and the noise the variance s alpha /
w. Given the targets of the rows N near x, with A = K_NN + alpha diag(1 / w_N) and the weights a =
A^-1 k_N(x),

    mean = a^T y_N,    variance / s = k(x, x) + alpha - a^T k_N(x).
"""

import math

import numpy as np

__all__ = ["coded_distance", "conditional_criterion", "nearest", "prediction_from_near_rows"]


def coded_distance(x, y, lengths, n_numbers):
    """Return the scaled distance of two points whose last coordinates are codes of categories.

    Each level of a category stands for a column of 0 and 1: different ones are sqrt(2) apart.

    Parameters
    ----------
    x, y : sequence of dim numbers
    lengths : sequence of dim numbers
    n_numbers : int
        So many coordinates are numbers; the others are codes.

    Returns
    -------
    float
        sqrt(sum_c (x_c - y_c)^2 / lengths[c]^2 + sum of 2 / lengths[c]^2 over codes that differ)

    Examples
    --------
    >>> coded_distance([3.0, 7], [3.0, 8], [1.0, 2.0], 1)
    0.7071067811865476
    """
    squares = [
        (a - b) ** 2 if c < n_numbers else 2.0 * (a != b)
        for c, (a, b) in enumerate(zip(x, y, strict=True))
    ]
    return math.sqrt(
        sum(square / length**2 for square, length in zip(squares, lengths, strict=True))
    )


def nearest(x, X, lengths, count):
    """Return the numbers of the rows nearest to x in scaled columns, the nearest first.

    Parameters
    ----------
    x : sequence of dim numbers
    X : sequence of points
    lengths : sequence of dim numbers
        Distances are sqrt(sum_c (x_c - X_ic)^2 / lengths[c]^2).
    count : int

    Returns
    -------
    list of int

    Examples
    --------
    >>> nearest([0.0], [[3.0], [-1.0], [2.0]], [1.0], 2)
    [1, 2]
    """
    squares = [
        sum(((a - b) / length) ** 2 for a, b, length in zip(x, row, lengths, strict=True))
        for row in X
    ]
    return sorted(range(len(X)), key=lambda i: squares[i])[:count]


def prediction_from_near_rows(kernel, x, near, y, alpha, weights=None):
    """Return the mean of a new observation at x given some rows, and its variance over s.

    Parameters
    ----------
    kernel : callable
        k(x, y) of two points.
    x : point
    near : sequence of m points
        The rows N.
    y : sequence of m numbers
        Their targets.
    alpha : float
    weights : sequence of m numbers > 0, optional

    Returns
    -------
    mean, variance : float

    Examples
    --------
    >>> mean, variance = prediction_from_near_rows(lambda x, y: x * y, 1.0, [2.0], [3.0], 2.0)
    >>> round(mean, 6), round(variance, 6)  # a = 2 / (4 + 2)
    (1.0, 2.333333)
    """
    noise = alpha / np.asarray([1.0] * len(near) if weights is None else weights)
    A = np.array([[kernel(p, q) for q in near] for p in near]) + np.diag(noise)
    to_x = np.array([kernel(p, x) for p in near])
    a = np.linalg.solve(A, to_x)
    return float(a @ y), float(kernel(x, x) + alpha - a @ to_x)


def conditional_criterion(kernel, blocks, alpha):
    """Return minus the log of the likelihood of targets given those of near rows.

    With e^2 / v the squares of the errors over their variances / s, and s their mean, it is n / 2
    log s + 1 / 2 sum log v, up to a constant [Vecchia 1988; Stein, Chi, Welty 2004].

    Parameters
    ----------
    kernel : callable
    blocks : list of (rows, targets, n_given)
        Of each block the first n_given targets are given. Each further one is predicted from all
        those before it.
    alpha : float

    Returns
    -------
    float

    Examples
    --------
    >>> block = [0.0, 1.0], [2.0, 1.0], 1
    >>> round(conditional_criterion(lambda x, y: float(x == y), [block], 0.0), 6)  # e = v = 1
    0.0
    """
    squares, logs = [], []
    for rows, targets, n_given in blocks:
        for i in range(n_given, len(rows)):
            mean, v = prediction_from_near_rows(kernel, rows[i], rows[:i], targets[:i], alpha)
            squares.append((targets[i] - mean) ** 2 / v)
            logs.append(math.log(v))
    n = len(squares)
    return n / 2 * math.log(sum(squares) / n) + sum(logs) / 2
