"""The exact kernels, with the derivatives and envelopes that their radial functions need.

Plain functions take two points. The small classes describe a kernel to `series.radial_table` and
`series.truncate`: k(x, y) = e(||x||) e(||y||) kappa(<x, y>), with the Taylor derivatives of kappa
at 0 and the envelope e, both as logarithms (in numbers they overflow).
"""

from math import (
    acos,
    comb,
    cos,
    cosh,
    exp,
    factorial,
    gamma,
    hypot,
    inf,
    lgamma,
    log,
    pi,
    sin,
    sqrt,
)

from .special import alpha, gegenbauer, refuse_below

__all__ = [
    "DotProduct",
    "ExponentialDot",
    "Gaussian",
    "Polynomial",
    "arc_cosine",
    "dot_product",
    "exponential",
    "exponential_dot",
    "gaussian",
    "generalized_zonal",
    "laplacian",
    "matern",
    "neural_tangent",
    "polynomial",
    "product_matern",
    "rational_quadratic",
    "sphere_heat",
    "sphere_matern",
    "spherical",
    "zonal",
]


def dot(x, y):
    """Return <x, y>, clear of float32: the sum is formed in double precision."""
    return sum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def gaussian(x, y, gamma):
    """Evaluate the Gaussian kernel exp(-gamma ||x-y||^2).

    Han, Zandieh, Avron, Section 5.2 (there gamma = 1/2). Section 6.1 calls exp(2t) Gaussian: on
    the unit sphere that is e^2 times this kernel at gamma = 1.

    Parameters
    ----------
    x, y : sequence of d numbers
    gamma : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(gaussian([1, 0], [0, 1], 0.5), 12)  # 1/e
    0.367879441171
    """
    difference = [float(a) - float(b) for a, b in zip(x, y, strict=True)]
    return exp(-gamma * dot(difference, difference))


def zonal(x, y, function):
    """Evaluate a zonal kernel kappa(<x, y>) at two points of the unit sphere.

    Han, Zandieh, Avron, Section 3.1. Rounding may leave <x, y> a little outside [-1, 1], where
    kappa need not exist: it is clipped.

    Parameters
    ----------
    x, y : sequence of d numbers
        Of norm 1.
    function : callable
        kappa on [-1, 1].

    Returns
    -------
    float

    Examples
    --------
    >>> zonal([0.6, 0.8], [1, 0], lambda t: t**2)
    0.36
    """
    return function(max(-1.0, min(1.0, dot(x, y))))


def distance(x, y):
    """Return ||x - y||."""
    return hypot(*(float(a) - float(b) for a, b in zip(x, y, strict=True)))


def cosine(x, y):
    """Return <x, y> / (||x|| ||y||), clipped to [-1, 1]; 0 if a point is 0."""
    norms = hypot(*x) * hypot(*y)
    return max(-1.0, min(1.0, dot(x, y) / norms)) if norms > 0 else 0.0


def exponential(x, y, gamma):
    """Evaluate exp(-gamma ||x-y||).

    Examples
    --------
    >>> round(exponential([0, 0], [3, 4], 0.2), 12)  # 1/e
    0.367879441171
    """
    return exp(-gamma * distance(x, y))


def laplacian(x, y, gamma):
    """Evaluate exp(-gamma ||x-y||_1), which depends on the axes: no generalized zonal kernel.

    Examples
    --------
    >>> round(laplacian([0, 0], [3, 2], 0.2), 12)  # 1/e
    0.367879441171
    """
    return exp(-gamma * sum(abs(float(a) - float(b)) for a, b in zip(x, y, strict=True)))


def matern(x, y, nu, length_scale):
    """Evaluate the Matern kernel 2^(1-nu) / Gamma(nu) z^nu K_nu(z), z = sqrt(2 nu) ||x-y|| / l.

    K_nu(z) = int_0^inf exp(-z cosh u) cosh(nu u) du, by the trapezoidal rule, which is exact to
    rounding here: the integrand and all its derivatives vanish at both ends (in pairs, at 0).

    Parameters
    ----------
    x, y : sequence of d numbers
    nu, length_scale : float

    Returns
    -------
    float

    Examples
    --------
    >>> round(matern([0], [1], 0.5, 1.0), 12)  # 1/e
    0.367879441171
    """
    z = sqrt(2 * nu) * distance(x, y) / length_scale
    if z == 0:
        return 1.0
    step, u, bessel = 1 / 64, 1 / 64, exp(-z) / 2
    while z * cosh(u) < 745:
        bessel += exp(-z * cosh(u)) * cosh(nu * u)
        u += step
    return 2 ** (1 - nu) / gamma(nu) * z**nu * bessel * step


def product_matern(x, y, nu, length_scale, groups):
    """Evaluate the product over groups of columns of Matern kernels of the distances in these.

    Parameters
    ----------
    x, y : sequence of d numbers
    nu : float
    length_scale : float
    groups : sequence of d integers
        Columns with the same number are a group.

    Returns
    -------
    float

    Examples
    --------
    >>> round(product_matern([0, 0], [0.5, 0.5], 0.5, 1.0, [0, 1]), 12)  # 1/e
    0.367879441171
    """
    product = 1.0
    for group in set(groups):
        own = [c for c, number in enumerate(groups) if number == group]
        product *= matern([x[c] for c in own], [y[c] for c in own], nu, length_scale)
    return product


def rational_quadratic(x, y, alpha, length_scale):
    """Evaluate (1 + ||x-y||^2 / (2 alpha l^2))^(-alpha).

    Examples
    --------
    >>> rational_quadratic([0], [2], 2.0, 1.0)
    0.25
    """
    return (1 + distance(x, y) ** 2 / (2 * alpha * length_scale**2)) ** -alpha


def spherical(x, y, theta):
    """Evaluate 1 - 3/2 s + 1/2 s^3, s = ||x-y|| / theta, and 0 from s = 1 on.

    The paper on block features, Proposition 4.4. Positive definite in at most three dimensions.

    Examples
    --------
    >>> spherical([0], [1], 2.0)
    0.3125
    """
    s = distance(x, y) / theta
    return 1 - 1.5 * s + 0.5 * s**3 if s < 1 else 0.0


def exponential_dot(x, y, gamma):
    """Evaluate exp(gamma <x, y>).

    Examples
    --------
    >>> exponential_dot([1, 0], [0, 1], 2.0)
    1.0
    """
    return exp(gamma * dot(x, y))


def polynomial(x, y, degree, gamma, coef0):
    """Evaluate (gamma <x, y> + coef0)^degree.

    Examples
    --------
    >>> polynomial([1, 2], [3, 0], 2, 1.0, 1.0)
    16.0
    """
    refuse_below(0, degree=degree)
    return (gamma * dot(x, y) + coef0) ** degree


def dot_product(x, y, derivatives):
    """Evaluate sum_j kappa^(j)(0) / j! <x, y>^j.

    Han, Zandieh, Avron, Lemma 4 and Eq 25; no derivative may be negative.

    Examples
    --------
    >>> dot_product([2], [3], [1, 0, 2])  # 1 + <x, y>^2
    37.0
    """
    return sum(value / factorial(j) * dot(x, y) ** j for j, value in enumerate(derivatives))


def neural_tangent(x, y, depth):
    """Evaluate the neural tangent kernel of a ReLU network with so many hidden layers.

    ||x|| ||y|| K_L(t): S_0 = K_0 = t, S_h = a_1(S_(h-1)), K_h = K_(h-1) a_0(S_(h-1)) + S_h, with
    a_0(t) = 1 - arccos(t)/pi and a_1(t) = (sqrt(1-t^2) + t (pi - arccos t))/pi.
    Han, Zandieh, Avron, Eq 33; the "two-layer" expression of Section 6.1 is L = 2. K_L(1) = L + 1.

    Examples
    --------
    >>> round(neural_tangent([2, 0], [0, 1], 1), 12)  # 2/pi
    0.636619772368
    """
    refuse_below(1, depth=depth)
    S = K = cosine(x, y)
    for _ in range(depth):
        a0 = 1 - acos(S) / pi
        S = min(1.0, (sqrt(1 - S * S) + S * (pi - acos(S))) / pi)
        K = K * a0 + S
    return hypot(*x) * hypot(*y) * K


def arc_cosine(x, y, order):
    """Evaluate the arc-cosine kernel (||x|| ||y||)^n J_n(theta) / pi, n = 0, 1 or 2.

    J_0 = pi - theta, J_1 = sin theta + (pi - theta) cos theta,
    J_2 = 3 sin theta cos theta + (pi - theta)(1 + 2 cos^2 theta).
    Cho and Saul, Kernel Methods for Deep Learning, 2009, Eq 3 and 4.

    Examples
    --------
    >>> arc_cosine([1, 0], [0, 1], 0)
    0.5
    """
    refuse_below(0, order=order)
    theta = acos(cosine(x, y))
    J = (
        pi - theta,
        sin(theta) + (pi - theta) * cos(theta),
        3 * sin(theta) * cos(theta) + (pi - theta) * (1 + 2 * cos(theta) ** 2),
    )[order]
    return (hypot(*x) * hypot(*y)) ** order * J / pi


def sphere_series(weight, x, y):
    """Sum alpha_(l,d) w_l P_d^l(<x, y>), over the same sum at 1, until the terms are nothing."""
    dim, total, at_one, level = len(x), 0.0, 0.0, 0
    while True:
        term = alpha(level, dim) * weight(level)
        total += term * gegenbauer(level, dim, cosine(x, y))
        at_one += term
        level += 1
        if term < 1e-18 * at_one or level > 200:
            return total / at_one


def sphere_matern(x, y, nu, length_scale):
    """Evaluate the intrinsic Matern kernel of the unit sphere, scaled to 1 at x = y.

    c_l / alpha_(l,d) proportional to (2 nu / length_scale^2 + l (l+d-2))^(-nu - (d-1)/2).
    The series is cut at degree 200: for a large nu only.

    Examples
    --------
    >>> round(sphere_matern([1, 0, 0], [0, 1, 0], 4.5, 1.0), 6)
    0.358815
    """
    d = len(x)
    return sphere_series(
        lambda ell: (2 * nu / length_scale**2 + ell * (ell + d - 2)) ** (-nu - (d - 1) / 2), x, y
    )


def sphere_heat(x, y, time):
    """Evaluate the heat kernel of the unit sphere, scaled to 1 at x = y.

    c_l / alpha_(l,d) proportional to exp(-time l (l+d-2)).

    Examples
    --------
    On the circle, sum_k exp(-k^2) (-1)^k over sum_k exp(-k^2), k over all integers:

    >>> round(sphere_heat([1, 0], [-1, 0], 1.0), 6)
    0.169592
    """
    return sphere_series(lambda ell: exp(-time * ell * (ell + len(x) - 2)), x, y)


def generalized_zonal(x, y, radial):
    """Evaluate sum_l <h_l(||x||), h_l(||y||)> P_d^l(cos), for any radial functions.

    Han, Zandieh, Avron, Definition 3. At x = 0 only l = 0 survives, provided h_l(0) = 0 for l >= 1.

    Parameters
    ----------
    x, y : sequence of d numbers
    radial : callable
        From a norm to the list of h_0, h_1, ..., each a list of s numbers.

    Returns
    -------
    float

    Examples
    --------
    >>> generalized_zonal([1, 2], [3, 1], lambda t: [[1.0], [t]])  # 1 + <x, y>
    6.0
    """
    levels = zip(radial(hypot(*x)), radial(hypot(*y)), strict=True)
    return sum(
        dot(h, g) * gegenbauer(ell, len(x), cosine(x, y)) for ell, (h, g) in enumerate(levels)
    )


class Gaussian:
    """exp(-||x-y||^2/2) = exp(-||x||^2/2) exp(-||y||^2/2) exp(<x, y>)."""

    def log_derivative(self, j):
        """Return log kappa^(j)(0)."""
        return 0.0

    def log_envelope(self, t):
        """Return log e(t)."""
        return -t * t / 2


class ExponentialDot:
    """exp(<x, y>)."""

    def log_derivative(self, j):
        """Return log kappa^(j)(0)."""
        return 0.0

    def log_envelope(self, t):
        """Return log e(t)."""
        return 0.0


class Polynomial:
    """(<x, y> + c)^p: kappa^(j)(0) = p! / (p-j)! c^(p-j) for j <= p, and 0 from there on."""

    def __init__(self, degree, coef0):
        self.degree, self.coef0 = degree, coef0

    def log_derivative(self, j):
        """Return log kappa^(j)(0), -inf where it is 0."""
        rest = self.degree - j
        if rest < 0 or (rest > 0 and self.coef0 == 0):
            return -inf
        return log(comb(self.degree, int(j)) * self.coef0**rest) + lgamma(j + 1)

    def log_envelope(self, t):
        """Return log e(t)."""
        return 0.0


class DotProduct:
    """Any kappa by its derivatives at 0, of which none may be negative."""

    def __init__(self, derivatives):
        self.derivatives = derivatives

    def log_derivative(self, j):
        """Return log kappa^(j)(0), -inf where it is 0."""
        known = j < len(self.derivatives) and self.derivatives[int(j)] > 0
        return log(self.derivatives[int(j)]) if known else -inf

    def log_envelope(self, t):
        """Return log e(t)."""
        return 0.0
