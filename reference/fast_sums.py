"""Kernel products in linear time: the split kernel, its series, sums at scattered points.

The kernel is a function k of the distance r. It is cut at e: k_far is k from e on and a polynomial
of r^2 below, so that it is smooth, and k_near = k - k_far is 0 from e on. k_far is a sum of
harmonics on the sphere (Funk and Hecke's formula with the addition theorem), else of exponentials
in a periodic box. Here all sums are direct; `gzkcore` takes fast transforms.

Potts, Steidl, Fast summation at nonequispaced knots by NFFT, SIAM J. Sci. Comput. 24 (2003).
"""

from cmath import exp
from itertools import product
from math import atan2, cos, factorial, pi, sqrt

from .special import refuse_below

__all__ = [
    "box_coefficients",
    "cosine_coefficients",
    "fourier_adjoint",
    "fourier_synthesis",
    "harmonic_adjoint",
    "harmonic_synthesis",
    "legendre_function",
    "node_weights",
    "series_error_bound",
    "smooth_part",
    "zonal_coefficients",
]


def legendre_function(degree, order, x):
    """Evaluate the normalised associated Legendre function P_lm(x), without a sign for odd m.

    P_mm = (1/(4 pi) prod_(k=1)^m (1 + 1/(2 k)))^(1/2) (1 - x^2)^(m/2), and
    P_l = a_l (x P_(l-1) - P_(l-2) / a_(l-1)),  a_l^2 = (4 l^2 - 1) / (l^2 - m^2).
    So |P_lm(cos theta) e^(i m phi)|^2 has integral 1 over the sphere.

    Examples
    --------
    >>> round(legendre_function(1, 0, 0.5) / sqrt(3 / (4 * pi)), 12)
    0.5
    """
    refuse_below(0, order=order)
    refuse_below(order, degree=degree)
    square = 1 / (4 * pi)
    for k in range(1, order + 1):
        square *= 1 + 1 / (2 * k)
    before, now = 0.0, sqrt(square) * (1 - x * x) ** (order / 2)
    inverse = 0.0  # 1 / a_(l-1)
    for ell in range(order + 1, degree + 1):
        a = sqrt((4 * ell * ell - 1) / (ell * ell - order * order))
        before, now = now, a * (x * now - inverse * before)
        inverse = 1 / a
    return now


def harmonic(degree, order, x):
    """Evaluate Y_lm(x) = P_l|m|(cos theta) e^(i m phi) at a point of the unit sphere in R^3."""
    phi = atan2(x[1], x[0])
    return legendre_function(degree, abs(order), x[2]) * exp(1j * order * phi)


def harmonic_synthesis(coefficients, X):
    """Sum coefficients[l][m] Y_lm(x) over degrees l and orders m = -l .. l, at every point x.

    Parameters
    ----------
    coefficients : list of dict
        One for each degree: numbers by their order.
    X : points of the unit sphere in R^3

    Returns
    -------
    list of complex numbers

    Examples
    --------
    >>> abs(harmonic_synthesis([{0: sqrt(4 * pi)}], [[0, 0, 1]])[0] - 1) < 1e-15
    True
    """
    return [
        sum(
            c * harmonic(ell, m, x)
            for ell, orders in enumerate(coefficients)
            for m, c in orders.items()
        )
        for x in X
    ]


def harmonic_adjoint(values, X, degree):
    """Sum values[i] times the conjugate of Y_lm(x_i) over all points: the adjoint of the synthesis.

    Returns
    -------
    list of dict
        For l = 0 .. degree, numbers by their order.

    Examples
    --------
    >>> sums = harmonic_adjoint([1], [[0, 0, 1]], 1)
    >>> [round(abs(sums[1][m]), 6) for m in (-1, 0, 1)]
    [0.0, 0.488603, 0.0]
    """
    refuse_below(0, degree=degree)
    return [
        {
            m: sum(v * harmonic(ell, m, x).conjugate() for v, x in zip(values, X, strict=True))
            for m in range(-ell, ell + 1)
        }
        for ell in range(degree + 1)
    ]


def fourier_synthesis(coefficients, X):
    """Sum coefficients[k] exp(i <k, x>) over all k, at every point x.

    Parameters
    ----------
    coefficients : dict
        Numbers by k, a tuple of d integers.
    X : points of R^d

    Examples
    --------
    >>> fourier_synthesis({(0,): 2, (1,): 1}, [[0.0]])
    [(3+0j)]
    """
    return [sum(c * exp(1j * dot(k, x)) for k, c in coefficients.items()) for x in X]


def fourier_adjoint(values, X, frequencies):
    """Sum values[i] exp(-i <k, x_i>) over all points, for every k.

    Examples
    --------
    >>> fourier_adjoint([1, 2], [[0.0], [0.0]], [(0,), (1,)])
    {(0,): (3+0j), (1,): (3+0j)}
    """
    return {
        k: sum(v * exp(-1j * dot(k, x)) for v, x in zip(values, X, strict=True))
        for k in frequencies
    }


def dot(k, x):
    """Return <k, x>."""
    return sum(a * b for a, b in zip(k, x, strict=True))


def smooth_part(kernel, e, derivatives):
    """Return k_far: k from e on, and below it the Taylor polynomial of s = r^2 about e^2.

    Parameters
    ----------
    kernel : callable
        k of the distance r.
    e : float
        > 0.
    derivatives : list of float
        k and its derivatives with respect to s, at s = e^2.

    Returns
    -------
    callable

    Examples
    --------
    >>> far = smooth_part(lambda r: exp(-r * r).real, 1.0, [exp(-1).real, -exp(-1).real])
    >>> far(2.0) == exp(-4).real, round(far(0.0), 6)  # e^-1 + e^-1
    (True, 0.735759)
    """

    def far(r):
        if r >= e:
            return kernel(r)
        s = r * r - e * e
        return sum(c * s**j / factorial(j) for j, c in enumerate(derivatives))

    return far


def cosine_coefficients(values):
    """Return a_0 .. a_n of sum_k a_k cos(k t) through values at t = 0, pi / n, ..., pi.

    a_k = (2 / n) sum''_j f(pi j / n) cos(pi j k / n), with half of the first and the last term, and
    half of that for k = 0 and n.

    Examples
    --------
    >>> [round(a, 12) for a in cosine_coefficients([3 + cos(2 * pi * j / 4) for j in range(5)])]
    [3.0, 0.0, 1.0, 0.0, 0.0]
    """
    n = len(values) - 1
    half = [0.5 if j in (0, n) else 1.0 for j in range(n + 1)]
    return [
        2 / n * half[k] * sum(half[j] * values[j] * cos(pi * j * k / n) for j in range(n + 1))
        for k in range(n + 1)
    ]


def zonal_coefficients(cosines):
    """Return w_l with sum_k a_k cos(k theta) = sum_l w_l sum_m Y_lm(x) conj Y_lm(y).

    theta is the angle between x and y.

    Funk and Hecke: w_l = 2 pi int_(-1)^1 f(t) P_l(t) dt, with f(cos theta) = sum_k a_k cos(k theta)
    and the addition theorem sum_m Y_lm(x) conj Y_lm(y) = (2 l + 1) / (4 pi) P_l(<x, y>).
    P_l(cos theta) is a sum of cosines too, a product of two cosines is one, and
    int_0^pi cos(j theta) sin(theta) dtheta = 2 / (1 - j^2) for even j, and 0 for odd j.

    Examples
    --------
    >>> [round(w / (4 * pi), 12) for w in zonal_coefficients([1, 0, 0])]  # f = 1
    [1.0, 0.0, 0.0]
    """
    coefficients = []
    for ell in range(len(cosines)):
        legendre = legendre_cosines(ell)
        total = 0.0
        for k, a in enumerate(cosines):
            for j, p in enumerate(legendre):
                total += a * p * (integral(k + j) + integral(abs(k - j))) / 2
        coefficients.append(2 * pi * total)
    return coefficients


def integral(j):
    """Integrate cos(j theta) sin(theta) from 0 to pi."""
    return 0.0 if j % 2 else 2 / (1 - j * j)


def legendre_cosines(ell):
    """Return the coefficients of cos(k theta), k = 0 .. l, of P_l(cos theta).

    P_l = sum_(i=0)^l g_i g_(l-i) cos((l - 2 i) theta), g_i = C(2 i, i) / 4^i.
    """
    g = [1.0]
    for i in range(1, ell + 1):
        g.append(g[-1] * (2 * i - 1) / (2 * i))
    coefficients = [0.0] * (ell + 1)
    for i in range(ell + 1):
        coefficients[abs(ell - 2 * i)] += g[i] * g[ell - i]
    return coefficients


def box_coefficients(function, sides, most):
    """Return the coefficients of exp(2 pi i <k, x / sides>) of a function of |x|.

    They are those of |k_j| <= most[j], in a box of these sides about 0, by the trapezoidal rule on
    4 most[j] points along axis j, which is what `cosine_coefficients` is.

    Parameters
    ----------
    function : callable
        Of the distance from 0.
    sides : list of d float
    most : list of d int

    Returns
    -------
    dict
        Numbers by k.

    Examples
    --------
    >>> coefficients = box_coefficients(lambda r: cos(2 * pi * r), [1.0], [1])
    >>> [round(coefficients[k,], 12) for k in (-1, 0, 1)]
    [0.5, 0.0, 0.5]
    """
    counts = [4 * m for m in most]
    points = list(product(*[range(count) for count in counts]))
    values = [
        function(
            sqrt(
                sum(
                    (side * min(j, count - j) / count) ** 2
                    for j, count, side in zip(point, counts, sides, strict=True)
                )
            )
        )
        for point in points
    ]
    coefficients = {}
    for k in product(*[range(-m, m + 1) for m in most]):
        phases = [
            2 * pi * sum(a * j / count for a, j, count in zip(k, point, counts, strict=True))
            for point in points
        ]
        total = sum(v * cos(phase) for v, phase in zip(values, phases, strict=True))
        coefficients[k] = total / len(points)
    return coefficients


def node_weights(sums, highest):
    """Return weights of a grid of nodes on the torus with the same sums of exponentials as rows.

    w_g = 1/N sum_k S_k exp(i <k, g>) for the N nodes g_j = 2 pi i / n_j, n_j = 2 highest_j + 1. So
    every function with frequencies up to `highest` has the same sum over nodes as over rows.

    Parameters
    ----------
    sums : dict
        S_k = sum over rows of exp(-i <k, x>) for all |k_j| <= highest[j].
    highest : list of d int

    Returns
    -------
    dict
        Weights by node, a tuple of d angles.

    Examples
    --------
    >>> weights = node_weights({(-1,): 2, (0,): 2, (1,): 2}, [1])  # of two rows at 0
    >>> [round(w, 12) + 0.0 for w in weights.values()]
    [2.0, 0.0, 0.0]
    """
    sizes = [2 * most + 1 for most in highest]
    nodes = [
        tuple(2 * pi * i / size for i, size in zip(place, sizes, strict=True))
        for place in product(*[range(size) for size in sizes])
    ]
    return {
        g: sum(s * exp(1j * dot(k, g)) for k, s in sums.items()).real / len(nodes) for g in nodes
    }


def series_error_bound(residual, alpha, noise_variance):
    """Return how far predictions may be from exact, relative to their standard deviations.

    A c = b with A = Z^T Z + alpha I is solved up to r = b - A c. At a row with functions z the
    error is z^T A^-1 r <= (z^T A^-1 z)^(1/2) (r^T A^-1 r)^(1/2). The prediction has the variance
    s^2 z^T A^-1 z for noise of variance s^2, and r^T A^-1 r <= |r|^2 / alpha.

    Examples
    --------
    >>> series_error_bound([3, 4], 1.0, 100.0)
    0.5
    """
    return sqrt(sum(r * r for r in residual) / (alpha * noise_variance))
