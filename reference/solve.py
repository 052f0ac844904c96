"""Conjugate gradients as in textbooks: one column, plain loops.

A is a symmetric positive definite matrix, given by its rows; in kernel ridge regression
A = K + alpha N, with N the diagonal matrix of the noise.
"""

import math

__all__ = ["conjugate_gradient", "preconditioned_conjugate_gradient"]


def multiply(A, v):
    """Return the product of a matrix and a vector."""
    return [dot(row, v) for row in A]


def dot(u, v):
    """Return the inner product of two vectors."""
    return math.fsum(a * b for a, b in zip(u, v, strict=True))


def plus(u, factor, v):
    """Return u + factor v."""
    return [a + factor * b for a, b in zip(u, v, strict=True)]


def conjugate_gradient(A, b, tol=1e-3, max_iter=1000):
    """Solve A x = b by conjugate gradients.

    Step k minimises (x - x_true)^T A (x - x_true) over all x in the span of b, A b, ..., A^(k-1) b.
    [Hestenes, Stiefel, J. Res. Nat. Bur. Standards 49 (1952), section 3]

    Parameters
    ----------
    A : n rows of n numbers, symmetric and positive definite
    b : n numbers
    tol : float
        Stops where |b - A x| <= tol |b|.
    max_iter : int

    Returns
    -------
    x : list of n floats
    n_iter : int
        Steps made; in exact arithmetic at most as many as A has distinct eigenvalues.

    Examples
    --------
    Two eigenvalues, two steps: 1/4 and 1/2 along their vectors (1, 1) and (1, -1).

    >>> conjugate_gradient([[3, 1], [1, 3]], [1, 0], tol=1e-12)
    ([0.375, -0.125], 2)
    """
    return preconditioned_conjugate_gradient(A, b, lambda r: r, tol, max_iter)


def preconditioned_conjugate_gradient(A, b, solve, tol=1e-3, max_iter=1000):
    """Solve A x = b by conjugate gradients on P^(-1) A, in the inner product of P.

    Parameters
    ----------
    A, b, tol, max_iter
        As for `conjugate_gradient`. What stops is still |b - A x|.
    solve : callable
        r -> P^(-1) r, with P symmetric and positive definite.

    Returns
    -------
    x : list of n floats
    n_iter : int

    Examples
    --------
    With P = A one step is enough.

    >>> preconditioned_conjugate_gradient([[2, 0], [0, 5]], [1, 1], lambda r: [r[0] / 2, r[1] / 5])
    ([0.5, 0.2], 1)
    """
    x, r = [0.0] * len(b), list(b)
    z = solve(r)
    p = z
    n_iter = 0
    while math.sqrt(dot(r, r)) > tol * math.sqrt(dot(b, b)) and n_iter < max_iter:
        q = multiply(A, p)
        length = dot(r, z) / dot(p, q)
        x = plus(x, length, p)
        before, r = dot(r, z), plus(r, -length, q)
        z = solve(r)
        p = plus(z, dot(r, z) / before, p)
        n_iter += 1
    return x, n_iter
