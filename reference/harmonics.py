"""Orthonormal spherical harmonics in any dimension, by recursion on the dimension.

Han, Zandieh, Avron call them intractable in general (remark after Lemma 5). By this recursion a
value costs O(1).
"""

from fractions import Fraction
from math import hypot, sqrt

from .special import alpha, gegenbauer, refuse_below, rising

__all__ = ["n_harmonics", "spherical_harmonics"]


def n_harmonics(degree, dim):
    """Count the orthonormal spherical harmonics up to a degree.

    sum_(l=0)^q alpha_(l,d) = C(q+d-1, q) + C(q+d-2, q-1).
    Han, Zandieh, Avron, Eq 4, summed.

    Parameters
    ----------
    degree : int
        q >= 0.
    dim : int
        d >= 1.

    Returns
    -------
    int

    Examples
    --------
    >>> n_harmonics(15, 3)  # (q+1)^2
    256
    """
    refuse_below(0, degree=degree)
    return sum(alpha(ell, dim) for ell in range(degree + 1))


def spherical_harmonics(X, degree):
    """Evaluate an orthonormal basis of the spherical harmonics of the degrees 0..q.

    Degree l in R^e, for every k = 0..l with n = l-k and every Y of degree k in R^(e-1), in order:
    B rho^n P_(e+2k)^n(x_e / rho) Y(x_1, ..., x_(e-1)),  rho = ||x||,
    B^2 = alpha_(n,e+2k) (e/2)_k / ((e-1)/2)_k, with rising factorials (x)_k.
    In R^2: 1, then sqrt(2) Re z^k and sqrt(2) Im z^k with z = x_1 + i x_2. In R^1: 1 and x.

    They are the usual B rho^n P = A rho^n C_n^(k+e/2-1), the C normalised to 1 at 1. B follows from
    Eq 3 in dimension e+2k, because (1-t^2)^k, which Y contributes, turns the weight of dimension e
    into that of e+2k. On the sphere each harmonic has mean square 1, and they add up to
    sum_j Y_lj(x) Y_lj(y) = alpha_(l,d) P_d^l(<x, y>).

    Parameters
    ----------
    X : n rows of d numbers
        Need not be unit: the harmonics are homogeneous polynomials, and at 0 all but
        the first are 0.
    degree : int
        q, the last degree.

    Returns
    -------
    list of n rows of n_harmonics(q, d) floats

    Examples
    --------
    >>> [[round(y, 6) for y in row] for row in spherical_harmonics([[0.6, 0.0, 0.8]], 1)]
    [[1.0, 1.385641, 1.03923, 0.0]]
    """
    refuse_below(0, degree=degree)
    return [
        [y for ell in range(degree + 1) for y in harmonics_of_degree([float(a) for a in x], ell)]
        for x in X
    ]


def harmonics_of_degree(x, degree):
    """Return the harmonics of one degree at one point x of R^e."""
    e, rho = len(x), hypot(*x)
    if degree == 0:
        return [1.0]
    if e == 1:
        return [x[0]] if degree == 1 else []
    if e == 2:
        z = complex(*x) ** degree
        return [sqrt(2) * z.real, sqrt(2) * z.imag]
    values = []
    for k in range(degree + 1):
        n = degree - k
        B = sqrt(alpha(n, e + 2 * k) * rising(Fraction(e, 2), k) / rising(Fraction(e - 1, 2), k))
        last = rho**n * gegenbauer(n, e + 2 * k, x[-1] / rho if rho > 0 else 0.0)
        values += [B * last * y for y in harmonics_of_degree(x[:-1], k)]
    return values
