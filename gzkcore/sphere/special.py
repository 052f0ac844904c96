"""Gegenbauer polynomials and the constants around them (Han, Zandieh, Avron, section 2.1).

P_d^l is normalised so that P_d^l(1) = 1; d is the dimension of the space, so the sphere is S^(d-1).
d = 2 gives Chebyshev's polynomials, d = 3 Legendre's, d to infinity the monomials.

Degrees and dimensions that are not integers raise TypeError, those that are too small ValueError.
"""

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import special as _special
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore._util.validation import as_floating, check_degree, check_dim, check_integers

__all__ = [
    "alpha",
    "gegenbauer",
    "gegenbauer_coefficients",
    "mu",
    "rodrigues",
    "sphere_area",
]

# Below this degree and dimension harmonics are counted in 63 bits, if these are enough.
SMALL = 1 << 31


@overload
def alpha(degree: int, dim: int) -> int: ...
@overload
def alpha(degree: ArrayLike, dim: int) -> Any: ...
def alpha(degree: ArrayLike, dim: int) -> Any:
    """Dimension of the spherical harmonics of one degree l in d variables, alpha(l, d) (Eq 4).

    C(d+l-1, l) - C(d+l-3, l-2).

    Parameters
    ----------
    degree : int or array-like of int
        l >= 0.
    dim : int
        d >= 1, the dimension of the space.

    Returns
    -------
    int, or ndarray of the shape of degree, float64
        A single number is exact for any size. An array is exact below 2^53 up to degree 1,024,
        otherwise rounded, and infinite outside the range of float64.

    References
    ----------
    Han, Zandieh, Avron, Random Gegenbauer Features for Scalable Kernel Methods, Eq 4.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.sphere.special import alpha
    >>> [alpha(l, 3) for l in range(5)]
    [1, 3, 5, 7, 9]
    >>> alpha(np.arange(5), 3)
    array([1., 3., 5., 7., 9.])
    """
    if np.ndim(degree) > 0:
        return unchecked_alpha(check_integers("degree", degree), check_dim(dim))
    return exact_alpha(check_degree(degree), check_dim(dim))


def unchecked_alpha(degrees: Integers, dim: int) -> Doubles:
    """Return `alpha` of an array of checked degrees."""
    out = np.empty(degrees.shape)
    _special.alpha(degrees.ravel(), dim, out.ravel(), n_threads(32 * degrees.size))
    return out


def exact_alpha(level: int, dim: int) -> int:
    """Return `alpha` of a checked degree."""
    count: int = _special.exact_alpha(level, dim) if max(level, dim) < SMALL else -1
    if count >= 0:
        return count
    if level < 2:
        return 1 if level == 0 else dim
    return math.comb(dim + level - 1, level) - math.comb(dim + level - 3, level - 2)


def log_alpha(degrees: ArrayLike, dim: int) -> Doubles:
    """Return log alpha(l, d) of checked degrees, -inf for a degree without harmonics."""
    levels = np.asarray(degrees, dtype=np.intp)
    out = np.empty(levels.shape)
    _special.log_alpha(levels.ravel(), dim, out.ravel(), n_threads(32 * levels.size))
    return out


def gegenbauer(degree: int, dim: int, t: ArrayLike) -> Floats:
    """Gegenbauer polynomial P_d^l(t), normalised to 1 at t = 1 (Eq 2).

    Parameters
    ----------
    degree, dim : int
        l >= 0 and d >= 1. For d = 1 the sphere is two points, where 1 - t^2 = 0 and Eq 2 is t^l.
    t : array-like
        Points, usually in [-1, 1], where abs(P) <= 1; outside P grows like (t + sqrt(t^2-1))^l.

    Returns
    -------
    float or ndarray of the shape of t
        float32 for float32 input, else float64.

    Notes
    -----
    Uses the three-term recurrence (l+d-2) P_(l+1) = (2l+d-2) t P_l - l P_(l-1) in double precision:
    4 l flops for each point, with errors of a few 1e-13 up to degree 100. Direct summation of Eq 2
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
    degree = check_degree(degree)
    dim = check_dim(dim)
    t, shape = as_floating("t", t)
    out = np.empty_like(t)
    for part in in_parts(t.size, 4 * degree):
        _special.gegenbauer(degree, dim, t[part], out[part], n_threads(t.size * degree))
    return out.reshape(shape)[()]


def gegenbauer_coefficients(degree: int, dim: int) -> Doubles:
    """Coefficients c_j of t^(l-2j) (1-t^2)^j in P_d^l (Eq 2).

    c_0 = 1, c_(j+1) = -(l-2j)(l-2j-1) / (2 (j+1) (d-1+2j)) c_j; in d = 1, where 1 - t^2 = 0 on the
    sphere, only c_0 is not 0.

    Parameters
    ----------
    degree, dim : int
        l >= 0 and d >= 1.

    Returns
    -------
    ndarray of shape (degree // 2 + 1,), float64

    References
    ----------
    Han, Zandieh, Avron, Eq 2.

    Examples
    --------
    >>> from gzkcore.sphere.special import gegenbauer_coefficients
    >>> gegenbauer_coefficients(4, 3)
    array([ 1.   , -3.   ,  0.375])
    """
    degree = check_degree(degree)
    dim = check_dim(dim)
    out = np.empty(degree // 2 + 1)
    _special.gegenbauer_coefficients(degree, dim, out)
    return out


def rodrigues(degree: int, dim: int, t: ArrayLike) -> Floats:
    """P_d^l(t) by Rodrigues' formula (Eq 5), its derivative written out by Leibniz' rule.

    With a = l + (d-3)/2 the l-th derivative of (1-t^2)^a is a sum over j of falling powers, and
    P = Gamma((d-1)/2) / (2^l Gamma(l+(d-1)/2)) sum_j C(l,j) a^(j) a^(l-j) (t-1)^(l-j) (t+1)^j.

    For verification only: the terms alternate in sign inside (-1, 1), so that digits are lost as l
    grows, all of them before l = 60. Otherwise use `gegenbauer`. O(l^2) flops a point.

    Parameters
    ----------
    degree, dim : int
        l >= 0 and d >= 2.
    t : array-like
        Points in [-1, 1].

    Returns
    -------
    float or ndarray of the shape of t
        float32 for float32 input, else float64.

    References
    ----------
    Han, Zandieh, Avron, Eq 5.

    Examples
    --------
    >>> from gzkcore.sphere.special import rodrigues
    >>> round(float(rodrigues(6, 5, 0.3)), 12)  # 3453241/64000000
    0.053956890625
    """
    degree = check_degree(degree)
    dim = check_dim(dim, 2)
    t, shape = as_floating("t", t)
    out = np.empty_like(t)
    factors = np.empty(degree + 1)
    for part in in_parts(t.size, 4 * degree**2):
        threads = n_threads(t.size * degree**2)
        _special.rodrigues(degree, dim, t[part], factors, out[part], threads)
    return out.reshape(shape)[()]


def mu(degree: ArrayLike, power: ArrayLike, dim: int) -> Any:
    """Coefficient of P_d^l in the Gegenbauer series of t^j, mu_l^j (Eq 29).

    alpha(l, d) / 2^l  Gamma(d/2) j! / (sqrt(pi) (j-l)!)  Gamma((j-l+1)/2) / Gamma((j+l+d)/2) if j -
    l is even and not negative, else 0. The sum over l is 1.

    Parameters
    ----------
    degree, power : int or array-like of int
        l >= 0 and j >= 0, broadcast together.
    dim : int
        d >= 1.

    Returns
    -------
    float, or ndarray of the shape of degree and power together
        In [0, 1].

    References
    ----------
    Han, Zandieh, Avron, Eq 29.

    Examples
    --------
    >>> from gzkcore.sphere.special import mu
    >>> round(mu(2, 6, 5) * 11, 12)
    4.0
    """
    levels, powers = check_integers("degree", degree), check_integers("power", power)
    return _of_pairs(_special.mu, levels, powers, check_dim(dim))


def log_mu(degree: ArrayLike, power: ArrayLike, dim: int) -> Any:
    """Return the logarithm of `mu` of checked numbers, -inf where mu is 0."""
    return _of_pairs(_special.log_mu, degree, power, dim)


def _of_pairs(kernel: Any, degree: ArrayLike, power: ArrayLike, dim: int) -> Any:
    levels, powers = np.broadcast_arrays(*(np.asarray(n, dtype=np.intp) for n in (degree, power)))
    out = np.empty(levels.shape)
    kernel(levels.ravel(), powers.ravel(), dim, out.ravel(), n_threads(128 * out.size))
    return out if out.ndim else float(out)


def log_squared_coefficients(
    log_derivative: Callable[[Doubles], Doubles], dim: int, degrees: ArrayLike, orders: ArrayLike
) -> Doubles:
    """Logarithms of the squared factors of t^(l+2i) in the radial functions (Eq 12).

    alpha(l, d) Gamma(d/2) kappa^(l+2i)(0) / (2^(l+2i) i! Gamma(i + l + d/2)); the printed
    Gamma(i+1/2) / (sqrt(pi) (2i)!) is 1 / (4^i i!). All numbers are checked already.
    """
    levels, ranks = np.broadcast_arrays(*(np.asarray(n, dtype=np.intp) for n in (degrees, orders)))
    logs = np.ascontiguousarray(log_derivative(levels + 2.0 * ranks), dtype=np.float64)
    logs = np.broadcast_to(logs, levels.shape)
    out = np.empty(levels.shape)
    _special.log_squared_coefficients(
        levels.ravel(), ranks.ravel(), logs.ravel(), dim, out.ravel(), n_threads(128 * out.size)
    )
    return out


def sphere_area(dim: int) -> float:
    """Surface area of the unit sphere S^(d-1) in R^d, 2 pi^(d/2) / Gamma(d/2).

    Parameters
    ----------
    dim : int
        d >= 1. The sphere of the line is two points, of area 2.

    Returns
    -------
    float

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
