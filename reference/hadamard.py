"""The Walsh-Hadamard transform, by its matrix of signs and by halving.

H_1 = (1) and H_2n = ((H_n, H_n), (H_n, -H_n)), so that H[i][j] = (-1)^(number of ones that the
binary forms of i and j share). H is symmetric and H H = n I: over sqrt(n) it is a rotation.
"""

__all__ = ["hadamard_matrix", "hadamard_transform"]


def hadamard_matrix(n):
    """Build H of order n, a power of two, from its signs.

    Parameters
    ----------
    n : int

    Returns
    -------
    list of n lists of +1 and -1

    Examples
    --------
    >>> hadamard_matrix(4)
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"n={n} is no power of two")
    return [[(-1) ** (i & j).bit_count() for j in range(n)] for i in range(n)]


def hadamard_transform(X):
    """Multiply every row by H, by halving: H (a, b) = (H (a + b), H (a - b)).

    Parameters
    ----------
    X : rows of n numbers, n a power of two

    Returns
    -------
    list of rows

    Examples
    --------
    >>> hadamard_transform([[1.0, 2.0, 3.0, 4.0]])
    [[10.0, -2.0, -4.0, 0.0]]
    """
    return [_transform(list(x)) for x in X]


def _transform(x):
    n = len(x)
    if n < 1 or n & (n - 1):
        raise ValueError(f"rows have {n} numbers, which is no power of two")
    if n == 1:
        return x
    a, b = x[: n // 2], x[n // 2 :]
    return [
        *_transform([u + v for u, v in zip(a, b, strict=True)]),
        *_transform([u - v for u, v in zip(a, b, strict=True)]),
    ]
