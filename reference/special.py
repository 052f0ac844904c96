"""Gegenbauer polynomials and the constants around them, exact in fractions.

All equation numbers are those of Han, Zandieh, Avron.
"""

from fractions import Fraction
from math import comb, exp, factorial, lgamma, log, pi, prod
from numbers import Rational

__all__ = [
    "alpha",
    "gegenbauer",
    "gegenbauer_coefficients",
    "mu",
    "orthogonality",
    "rodrigues",
    "sphere_area",
]


def rising(x, n):
    """Return x (x+1) ... (x+n-1) = Gamma(x+n) / Gamma(x)."""
    return prod((x + k for k in range(n)), start=Fraction(1))


def refuse_below(least, **numbers):
    """Raise ValueError for the first of some named numbers that is below the least one."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"{name}={number} is too small; use {least} or more")


def alpha(degree, dim):
    """Count the orthonormal spherical harmonics of one degree.

    alpha_(l,d) = C(d+l-1, l) - C(d+l-3, l-2); 1 for l = 0 and d for l = 1.
    Han, Zandieh, Avron, Eq 4.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 1. In one dimension only the degrees 0 and 1 have a harmonic.

    Returns
    -------
    int

    Examples
    --------
    >>> [alpha(degree, 3) for degree in range(5)]
    [1, 3, 5, 7, 9]
    """
    refuse_below(0, degree=degree)
    refuse_below(1, dim=dim)
    if degree == 0:
        return 1
    if degree == 1:
        return dim
    return comb(dim + degree - 1, degree) - comb(dim + degree - 3, degree - 2)


def gegenbauer_coefficients(degree, dim):
    """Return the coefficients c_j of a Gegenbauer polynomial in the form of Eq 2.

    c_0 = 1,  c_(j+1) = -(l-2j)(l-2j-1) / (2(j+1)(d-1+2j)) c_j.
    Han, Zandieh, Avron, Eq 2.

    In one dimension the sphere is {-1, 1}, where 1 - t^2 = 0: only c_0 matters, the others are 0.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 1.

    Returns
    -------
    list of Fraction, of length l // 2 + 1

    Examples
    --------
    P_3^2(t) = t^2 - (1 - t^2) / 2:

    >>> gegenbauer_coefficients(2, 3)
    [Fraction(1, 1), Fraction(-1, 2)]
    """
    refuse_below(0, degree=degree)
    refuse_below(1, dim=dim)
    c = [Fraction(1)]
    for j in range(degree // 2):
        if dim == 1:
            c.append(Fraction(0))
        else:
            numerator = -(degree - 2 * j) * (degree - 2 * j - 1)
            c.append(Fraction(numerator, 2 * (j + 1) * (dim - 1 + 2 * j)) * c[j])
    return c


def gegenbauer(degree, dim, t):
    """Evaluate the Gegenbauer polynomial of one degree, normalised to 1 at t = 1.

    P_d^l(t) = sum_(j=0)^(l//2) c_j t^(l-2j) (1-t^2)^j, with c_j from `gegenbauer_coefficients`.
    Han, Zandieh, Avron, Eq 2.

    The sum is formed in fractions (a float is one exactly): in floating point its terms cancel,
    and at l = 100, d = 3 the result would be off by 5 %.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 1. d = 2 gives cos(l arccos t), d = 3 the Legendre polynomials.
    t : number or sequence of numbers
        Where to evaluate.

    Returns
    -------
    Fraction for an exact t (int or Fraction), float for a float; a list for a sequence

    Examples
    --------
    >>> gegenbauer(4, 3, Fraction(1, 2))
    Fraction(-37, 128)
    >>> gegenbauer(4, 3, [0.5, 1.0])
    [-0.2890625, 1.0]
    """
    if hasattr(t, "__iter__"):
        return [gegenbauer(degree, dim, each) for each in t]
    if not isinstance(t, Rational):
        return float(gegenbauer(degree, dim, Fraction(float(t))))
    c = gegenbauer_coefficients(degree, dim)
    return sum(c[j] * t ** (degree - 2 * j) * (1 - t * t) ** j for j in range(len(c)))


def rodrigues(degree, dim, t):
    """Evaluate the Gegenbauer polynomial by Rodrigues' formula.

    P_d^l(t) = (-1)^l Gamma((d-1)/2) / (2^l Gamma(l+(d-1)/2)) (1-t^2)^(-(d-3)/2)
    (d/dt)^l (1-t^2)^(l+(d-3)/2).
    Han, Zandieh, Avron, Eq 5; printed for d >= 3, it also holds for d = 2.

    Each derivative turns Q (1-t^2)^b into (Q' (1-t^2) - 2 b t Q) (1-t^2)^(b-1), so that a
    polynomial Q is all there is to keep, and b ends at the power that cancels.

    Parameters
    ----------
    degree : int
        l >= 0.
    dim : int
        d >= 2.
    t : number or sequence of numbers
        Where to evaluate.

    Returns
    -------
    Fraction for an exact t (int or Fraction), float for a float; a list for a sequence

    Examples
    --------
    >>> rodrigues(4, 3, Fraction(1, 2))
    Fraction(-37, 128)
    """
    refuse_below(0, degree=degree)
    if dim < 2:
        raise ValueError(f"dim={dim}: Rodrigues' formula needs dim >= 2; use gegenbauer instead")
    if hasattr(t, "__iter__"):
        return [rodrigues(degree, dim, each) for each in t]
    if not isinstance(t, Rational):
        return float(rodrigues(degree, dim, Fraction(float(t))))
    Q = {0: Fraction(1)}  # the coefficient of every power of t
    for step in range(degree):
        b = degree - step + Fraction(dim - 3, 2)
        derivative = dict.fromkeys(range(step + 2), Fraction(0))
        for power, q in Q.items():
            if power > 0:
                derivative[power - 1] += power * q
            derivative[power + 1] -= (power + 2 * b) * q
        Q = derivative
    constant = (-1) ** degree / (2**degree * rising(Fraction(dim - 1, 2), degree))
    return constant * sum(q * t**power for power, q in Q.items())


def mu(degree, power, dim):
    """Return the coefficient of P_d^l in the Gegenbauer series of t^j.

    mu_l^j = alpha_(l,d)/2^l Gamma(d/2) j! / (sqrt(pi) (j-l)!) Gamma((j-l+1)/2) / Gamma((j+l+d)/2)
    for even j-l >= 0, and 0 otherwise.
    Han, Zandieh, Avron, Eq 29.

    It is rational: with j = l+2i, Gamma(i+1/2) / (sqrt(pi) (2i)!) = 1 / (4^i i!), and what is left
    is alpha_(l,d) j! / (2^j i! (d/2)(d/2+1)...(d/2+l+i-1)).

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
    Fraction

    Examples
    --------
    t^2 = 1/3 P_3^0 + 2/3 P_3^2:

    >>> [mu(degree, 2, 3) for degree in range(3)]
    [Fraction(1, 3), Fraction(0, 1), Fraction(2, 3)]
    """
    refuse_below(0, degree=degree, power=power)
    refuse_below(1, dim=dim)
    if power < degree or (power - degree) % 2 == 1:
        return Fraction(0)
    i = (power - degree) // 2
    numerator = alpha(degree, dim) * factorial(power)
    return numerator / (2**power * factorial(i) * rising(Fraction(dim, 2), degree + i))


def sphere_area(dim):
    """Return the surface area of the unit sphere in R^d.

    abs(S^(d-1)) = 2 pi^(d/2) / Gamma(d/2).
    Han, Zandieh, Avron, Section 2.

    Parameters
    ----------
    dim : int
        d >= 1, the dimension of the space around the sphere.

    Returns
    -------
    float

    Examples
    --------
    >>> round(sphere_area(3) / pi, 12)  # 4 pi
    4.0
    """
    refuse_below(1, dim=dim)
    return 2 * exp(dim / 2 * log(pi) - lgamma(dim / 2))


def orthogonality(degree, other, dim):
    """Average the product of two Gegenbauer polynomials over the sphere.

    abs(S^(d-2)) / abs(S^(d-1)) int_(-1)^1 P_d^l(t) P_d^l'(t) (1-t^2)^((d-3)/2) dt
    = 1 / alpha_(l,d) if l = l', else 0.
    Han, Zandieh, Avron, Eq 3, with the areas on the left, which makes it rational: the average of
    t^(2a) (1-t^2)^b is (1/2)_a ((d-1)/2)_b / (d/2)_(a+b) with rising factorials (x)_n.

    Parameters
    ----------
    degree, other : int
        l and l'.
    dim : int
        d >= 2.

    Returns
    -------
    Fraction

    Examples
    --------
    >>> orthogonality(2, 2, 3), orthogonality(2, 4, 3)
    (Fraction(1, 5), Fraction(0, 1))
    """
    refuse_below(0, degree=degree, other=other)
    refuse_below(2, dim=dim)
    if (degree + other) % 2 == 1:
        return Fraction(0)
    total = Fraction(0)
    for j, c_j in enumerate(gegenbauer_coefficients(degree, dim)):
        for k, c_k in enumerate(gegenbauer_coefficients(other, dim)):
            a, b = (degree + other) // 2 - j - k, j + k
            average = rising(Fraction(1, 2), a) * rising(Fraction(dim - 1, 2), b)
            total += c_j * c_k * average / rising(Fraction(dim, 2), a + b)
    return total
