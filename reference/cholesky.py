"""Triangular factors of positive definite matrices, and solutions with them, by plain loops.

A is given by its rows. [Golub, Van Loan, Matrix Computations, 2013, sections 3.1 and 4.2]
"""

import math

__all__ = ["cholesky", "inverse_of", "solve_factored", "solve_triangle"]


def cholesky(A):
    """Return the lower triangular L with A = L L^T; row i is found from the rows before it.

    Examples
    --------
    >>> cholesky([[4, 2], [2, 10]])
    [[2.0, 0.0], [1.0, 3.0]]
    """
    n = len(A)
    L = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i):
            L[i][j] = (A[i][j] - math.fsum(L[i][k] * L[j][k] for k in range(j))) / L[j][j]
        L[i][i] = math.sqrt(A[i][i] - math.fsum(L[i][k] ** 2 for k in range(i)))
    return L


def solve_triangle(L, B, transposed=False):
    """Return X with L X = B, or L^T X = B, row by row: each needs those before it, or after it.

    Examples
    --------
    >>> solve_triangle([[2.0, 0.0], [1.0, 3.0]], [[2], [7]])
    [[1.0], [2.0]]
    >>> solve_triangle([[2.0, 0.0], [1.0, 3.0]], [[4], [6]], transposed=True)
    [[1.0], [2.0]]
    """
    n = len(L)
    X = [[]] * n
    for i in reversed(range(n)) if transposed else range(n):
        others = range(i + 1, n) if transposed else range(i)
        row = {j: L[j][i] if transposed else L[i][j] for j in others}
        X[i] = [
            (b - math.fsum(row[j] * X[j][column] for j in others)) / L[i][i]
            for column, b in enumerate(B[i])
        ]
    return X


def solve_factored(L, B):
    """Return X with L L^T X = B.

    Examples
    --------
    >>> solve_factored([[2.0, 0.0], [1.0, 3.0]], [[8], [22]])
    [[1.0], [2.0]]
    """
    return solve_triangle(L, solve_triangle(L, B), transposed=True)


def inverse_of(L):
    """Return (L L^T)^-1, which solves for the identity.

    Examples
    --------
    >>> inverse_of([[2.0, 0.0], [0.0, 4.0]])
    [[0.25, 0.0], [0.0, 0.0625]]
    """
    n = len(L)
    return solve_factored(L, [[float(i == j) for j in range(n)] for i in range(n)])
