"""Kernel matrices, their products with vectors and their derivatives, entry by entry."""

from math import sqrt

__all__ = ["gradient", "kernel_diagonal", "kernel_matrix", "kernel_product"]


def kernel_matrix(kernel, X, Y=None):
    """Return the matrix of all k(x, y).

    Parameters
    ----------
    kernel : callable
        From two points to a number.
    X, Y : sequence of points
        Y=None means X.

    Returns
    -------
    list of rows

    Examples
    --------
    >>> kernel_matrix(lambda x, y: x[0] * y[0], [[1], [2]], [[3], [4], [5]])
    [[3, 4, 5], [6, 8, 10]]
    """
    return [[kernel(x, y) for y in (X if Y is None else Y)] for x in X]


def kernel_diagonal(kernel, X):
    """Return all k(x, x).

    Examples
    --------
    >>> kernel_diagonal(lambda x, y: x[0] * y[0], [[1], [2]])
    [1, 4]
    """
    return [kernel(x, x) for x in X]


def kernel_product(kernel, X, Y, V):
    """Return K V: row i is the sum over j of k(x_i, y_j) V[j].

    Parameters
    ----------
    kernel : callable
        From two points to a number.
    X, Y : sequence of points
        Y=None means X.
    V : list of rows
        One for each point of Y.

    Returns
    -------
    list of rows

    Examples
    --------
    >>> kernel_product(lambda x, y: x[0] * y[0], [[1], [2]], [[3], [4]], [[1, 0], [1, 1]])
    [[7, 4], [14, 8]]
    """
    return [
        [sum(k * v[q] for k, v in zip(row, V, strict=True)) for q in range(len(V[0]))]
        for row in kernel_matrix(kernel, X, Y)
    ]


def gradient(slope, lengths, X, Y, A, B):
    """Differentiate sum_q a_q^T K b_q with respect to the logarithm of every length.

    k(x, y) = f(r) with r^2 = sum_c (x_c - y_c)^2 / lengths[c]^2, of which the derivative with
    respect to log lengths[c] is -f'(r) / r times (x_c - y_c)^2 / lengths[c]^2.

    Parameters
    ----------
    slope : callable
        -f'(r) / r; e^(-r^2 / 2) for the Gaussian, which is e^(-r^2 / 2) itself.
    lengths : sequence of dim numbers
    X, Y : sequence of points
    A, B : list of rows
        One for each point of X and of Y, all of the same length: a_q and b_q are their columns.

    Returns
    -------
    list of dim numbers

    Examples
    --------
    >>> gradient(lambda r: 1.0, [1, 2], [[0, 0]], [[3, 4]], [[1, 1]], [[1, 2]])
    [27.0, 12.0]
    """
    total = [0.0] * len(lengths)
    for x, a in zip(X, A, strict=True):
        for y, b in zip(Y, B, strict=True):
            squares = [(u - v) ** 2 / s**2 for u, v, s in zip(x, y, lengths, strict=True)]
            weight = sum(p * q for p, q in zip(a, b, strict=True)) * slope(sqrt(sum(squares)))
            total = [t + weight * square for t, square in zip(total, squares, strict=True)]
    return total
