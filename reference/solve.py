"""Conjugate gradients and Lanczos' quadrature as in textbooks: one column, plain loops.

A is a symmetric positive definite matrix, given by its rows; in kernel ridge regression
A = K + alpha N, with N the diagonal matrix of the noise.
"""

import math

import numpy as np

__all__ = [
    "conjugate_gradient",
    "preconditioned_conjugate_gradient",
    "quadrature_log_determinant",
]


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


def quadrature_log_determinant(A, probes, n_steps):
    """Estimate log det A = tr log A by Lanczos' quadrature, from probe vectors.

    For a vector v of independent numbers with mean 0 and variance 1, E v^T log(A) v = tr log A.
    Lanczos' process started at v / |v| makes a tridiagonal matrix T, and |v|^2 [log T]_11 is Gauss'
    quadrature for v^T log(A) v: exact after as many steps as A has distinct eigenvalues. Here
    |v|^2 is replaced by its mean, n. [Golub, Welsch 1969; Ubaru, Chen, Saad 2017, Algorithm 1]

    Parameters
    ----------
    A : n rows of n numbers, symmetric and positive definite
    probes : one or more lists of n numbers
    n_steps : int

    Returns
    -------
    float

    Examples
    --------
    exp of log 3 + log 2, from a vector that has as much of either:

    >>> round(math.exp(quadrature_log_determinant([[3, 0], [0, 2]], [[1, -1]], 2)), 12)
    6.0
    """
    estimates = []
    for v in probes:
        diagonal, beside = lanczos(A, v, n_steps)
        T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        nodes, vectors = np.linalg.eigh(T)
        weights = vectors[0] ** 2
        log_mean = sum(w * math.log(t) for w, t in zip(weights, nodes, strict=True))
        estimates.append(len(A) * log_mean)
    return float(sum(estimates) / len(estimates))


def lanczos(A, v, n_steps):
    """Return the diagonal of Lanczos' tridiagonal matrix, and the numbers beside it."""
    size = math.sqrt(dot(v, v))
    u, before = [a / size for a in v], [0.0] * len(v)
    diagonal, beside = [], []
    while len(diagonal) < n_steps:
        w = plus(multiply(A, u), -(beside[-1] if beside else 0.0), before)
        diagonal.append(dot(u, w))
        w = plus(w, -diagonal[-1], u)
        size = math.sqrt(dot(w, w))
        if size <= 1e-12 * abs(diagonal[0]) or len(diagonal) == n_steps:
            break
        beside.append(size)
        before, u = u, [a / size for a in w]
    return diagonal, beside
