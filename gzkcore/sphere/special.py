"""Gegenbauer polynomials and the constants around them (Han, Zandieh, Avron, section 2.1).

P_d^l is normalised so that P_d^l(1) = 1; d is the dimension of the space, so the sphere is S^(d-1).
d = 2 gives Chebyshev's polynomials, d = 3 Legendre's, d to infinity the monomials.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import special as _special
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats
from gzkcore._util.validation import as_floating, check_dim, check_integer

__all__ = [
    "alpha",
    "gegenbauer",
    "gegenbauer_coefficients",
    "mu",
    "rodrigues",
    "sphere_area",
]


def alpha(degree: int, dim: int) -> int:
    """Dimension of the spherical harmonics of one degree, alpha(l, d) (Eq 4).

    C(d+l-1, l) - C(d+l-3, l-2): the number of linearly independent harmonic polynomials of degree
    exactly l in d variables.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 1, the dimension of the space.

    Returns
    -------
    int
        Exact, however large.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small.

    References
    ----------
    Han, Zandieh, Avron, Random Gegenbauer Features for Scalable Kernel Methods, Eq 4.

    Examples
    --------
    >>> from gzkcore.sphere.special import alpha
    >>> [alpha(l, 3) for l in range(5)]
    [1, 3, 5, 7, 9]
    """
    degree = check_integer("degree", degree, 0)
    dim = check_dim(dim)
    if dim == 1:
        return 1 if degree < 2 else 0
    if degree < 2:
        return dim if degree else 1
    return math.comb(dim + degree - 1, degree) - math.comb(dim + degree - 3, degree - 2)


def log_alpha(degrees: ArrayLike, dim: int) -> Doubles:
    """Logarithm of alpha(l, d) for an array of degrees, -inf where there is no harmonic."""
    from scipy.special import gammaln

    degrees = np.asarray(degrees, dtype=float)
    if dim == 1:
        return np.where(degrees < 2, 0.0, -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = (
            np.log(2 * degrees + dim - 2)
            + gammaln(degrees + dim - 2)
            - gammaln(degrees + 1)
            - gammaln(dim - 1)
        )
    return np.where(degrees == 0, 0.0, value)


def gegenbauer(degree: int, dim: int, t: ArrayLike) -> Floats:
    """Gegenbauer polynomial P_d^l(t), normalised to 1 at t = 1 (Eq 2).

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 1. In d = 1 the sphere is two points, where 1 - t^2 = 0 and t^l is left of Eq 2.
    t : array-like
        Points, usually in [-1, 1], where abs(P) <= 1; outside P grows like (t + sqrt(t^2-1))^l.

    Returns
    -------
    float or ndarray of the shape of t
        float32 for float32 input, else float64.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small, or t not numeric.

    Notes
    -----
    By the three-term recurrence (l+d-2) P_(l+1) = (2l+d-2) t P_l - l P_(l-1), in double: 4 l flops
    a point, error at most a few 1e-13 up to degree 100. Summing Eq 2 as it stands
    loses all digits there.

    References
    ----------
    Han, Zandieh, Avron, Eq 2.

    Examples
    --------
    >>> from gzkcore.sphere.special import gegenbauer
    >>> gegenbauer(2, 3, [0.0, 0.5, 1.0])
    array([-0.5  , -0.125,  1.   ])
    """
    degree = check_integer("degree", degree, 0)
    dim = check_dim(dim)
    t, shape = as_floating("t", t)
    out = np.empty_like(t)
    _special.gegenbauer(degree, dim, t, out, n_threads(t.size * degree))
    return out.reshape(shape)[()]


def gegenbauer_coefficients(degree: int, dim: int) -> Doubles:
    """Coefficients c_j of t^(l-2j) (1-t^2)^j in P_d^l (Eq 2).

    c_0 = 1, c_(j+1) = -(l-2j)(l-2j-1) / (2 (j+1) (d-1+2j)) c_j; in d = 1, where 1 - t^2 = 0 on the
    sphere, only c_0 is not 0.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 1.

    Returns
    -------
    ndarray of shape (degree // 2 + 1,), float64

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small.

    References
    ----------
    Han, Zandieh, Avron, Eq 2.

    Examples
    --------
    >>> from gzkcore.sphere.special import gegenbauer_coefficients
    >>> gegenbauer_coefficients(4, 3)
    array([ 1.   , -3.   ,  0.375])
    """
    degree = check_integer("degree", degree, 0)
    dim = check_dim(dim)
    if dim == 1:
        return np.array([1.0] + [0.0] * (degree // 2))
    c = [1.0]
    for j in range(degree // 2):
        c.append(
            -c[-1] * (degree - 2 * j) * (degree - 2 * j - 1) / (2 * (j + 1) * (dim - 1 + 2 * j))
        )
    return np.array(c)


def rodrigues(degree: int, dim: int, t: ArrayLike) -> Floats:
    """P_d^l(t) by Rodrigues' formula (Eq 5), its derivative written out by Leibniz' rule.

    With a = l + (d-3)/2 the l-th derivative of (1-t^2)^a is a sum over j of falling powers, and
    P = Gamma((d-1)/2) / (2^l Gamma(l+(d-1)/2)) sum_j C(l,j) a^(j) a^(l-j) (t-1)^(l-j) (t+1)^j.

    For verification: the terms alternate in sign inside (-1, 1), so digits are lost as l grows, all
    of them before l = 60; use `gegenbauer`.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 2.
    t : array-like
        Points in [-1, 1].

    Returns
    -------
    float or ndarray of the shape of t
        float32 for float32 input, else float64.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small, or t not numeric.

    Notes
    -----
    O(l^2) flops a point.

    References
    ----------
    Han, Zandieh, Avron, Eq 5.

    Examples
    --------
    >>> from gzkcore.sphere.special import rodrigues
    >>> round(float(rodrigues(6, 5, 0.3)), 12)  # 3453241/64000000
    0.053956890625
    """
    degree = check_integer("degree", degree, 0)
    dim = check_integer("dim", dim, 2)
    t, shape = as_floating("t", t)
    out = np.empty_like(t)
    _special.rodrigues(_leibniz(degree, dim), t, out, n_threads(t.size * degree**2))
    return out.reshape(shape)[()]


def _leibniz(degree: int, dim: int) -> Doubles:
    """Factors of (t-1)^(l-j) (t+1)^j in Rodrigues' formula, j = 0..l."""
    a = degree + (dim - 3) / 2

    def log_falling(count: int) -> float:
        return math.lgamma(a + 1) - math.lgamma(a + 1 - count)

    log_front = (
        math.lgamma((dim - 1) / 2) - degree * math.log(2) - math.lgamma(degree + (dim - 1) / 2)
    )
    return np.array(
        [
            math.comb(degree, j) * math.exp(log_front + log_falling(j) + log_falling(degree - j))
            for j in range(degree + 1)
        ]
    )


def mu(degree: int, power: int, dim: int) -> float:
    """Coefficient of P_d^l in the Gegenbauer series of t^j, mu_l^j (Eq 29).

    alpha(l, d) / 2^l  Gamma(d/2) j! / (sqrt(pi) (j-l)!)  Gamma((j-l+1)/2) / Gamma((j+l+d)/2) where
    j - l is even and not negative, else 0. The sum over l is 1.

    Parameters
    ----------
    degree : int
        l >= 0.
    power : int
        j >= 0.
    dim : int
        d >= 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small.

    References
    ----------
    Han, Zandieh, Avron, Eq 29.

    Examples
    --------
    >>> from gzkcore.sphere.special import mu
    >>> round(mu(2, 6, 5) * 11, 12)
    4.0
    """
    degree = check_integer("degree", degree, 0)
    power = check_integer("power", power, 0)
    dim = check_dim(dim)
    if power < degree or (power - degree) % 2 or (dim == 1 and degree > 1):
        return 0.0
    log_value = (
        math.log(alpha(degree, dim))
        - degree * math.log(2)
        + math.lgamma(dim / 2)
        + math.lgamma(power + 1)
        - math.log(math.pi) / 2
        - math.lgamma(power - degree + 1)
        + math.lgamma((power - degree + 1) / 2)
        - math.lgamma((power + degree + dim) / 2)
    )
    return math.exp(log_value)


def sphere_area(dim: int) -> float:
    """Surface area of the unit sphere S^(d-1) in R^d, 2 pi^(d/2) / Gamma(d/2).

    Parameters
    ----------
    dim : int
        d >= 1. The sphere of the line is two points, of area 2.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        If dim is no integer >= 1.

    References
    ----------
    Han, Zandieh, Avron, section 2.1.

    Examples
    --------
    >>> from gzkcore.sphere.special import sphere_area
    >>> round(sphere_area(3), 6)  # 4 pi
    12.566371
    """
    dim = check_dim(dim)
    return math.exp(math.log(2) + dim / 2 * math.log(math.pi) - math.lgamma(dim / 2))
