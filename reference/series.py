"""Gegenbauer series, radial functions, and their truncation.

All equation numbers are those of Han, Zandieh, Avron.
"""

from math import ceil, cos, exp, factorial, fsum, inf, lgamma, log, log2, pi, sin, sqrt

from .kernels import Gaussian
from .special import alpha, gegenbauer, mu, refuse_below, sphere_area

__all__ = [
    "angular_energy",
    "gegenbauer_series",
    "growth_constants",
    "radial_series",
    "radial_table",
    "truncate",
    "zonal_sum",
]


def log_power(t, exponent):
    """Return log t^exponent, with 0^0 = 1."""
    if exponent == 0:
        return 0.0
    return exponent * log(t) if t > 0 else -inf


def gauss_legendre(n_nodes):
    """Return (node, weight) pairs of Gauss' rule on [-1, 1], each node by Newton's iteration."""
    rule = []
    for k in range(n_nodes):
        x = cos(pi * (k + 0.75) / (n_nodes + 0.5))
        for _ in range(10):
            previous, p = 1.0, x
            for degree in range(1, n_nodes):
                previous, p = p, ((2 * degree + 1) * x * p - degree * previous) / (degree + 1)
            slope = n_nodes * (previous - x * p) / (1 - x * x)
            x -= p / slope
        rule.append((x, 2 / ((1 - x * x) * slope * slope)))
    return rule


def gegenbauer_series(function, dim, degree, *, derivatives=None):
    """Expand a function on [-1, 1] in Gegenbauer polynomials.

    c_l = alpha_(l,d) abs(S^(d-2)) / abs(S^(d-1)) int_(-1)^1 kappa(t) P_d^l(t) (1-t^2)^((d-3)/2) dt
    Han, Zandieh, Avron, Eq 8. The integral is taken over theta with t = cos(theta), by Gauss' rule
    with 2q + 200 nodes; kernels with a square root at t = 1, such as the neural tangent kernel
    (Eq 34), are smooth in theta. In one dimension Eq 8 is 0 times infinity, and c_0, c_1 are the
    even and the odd part of kappa at 1.

    With the Taylor `derivatives` of kappa at 0, c_l = sum_j mu_l^j kappa^(j)(0) / j!, a sum without
    cancellation if none is negative (and exact if they are fractions).

    kappa must be positive definite, all c_l >= 0, before roots of them are taken: Lemma 2 asks
    for an analytic kappa only, which is not enough.

    Parameters
    ----------
    function : callable
        kappa. Unused when `derivatives` are given.
    dim : int
        d >= 1.
    degree : int
        q, the last degree.
    derivatives : sequence of numbers, optional
        kappa(0), kappa'(0), kappa''(0), ...; the ones that are missing count as 0.

    Returns
    -------
    list of q+1 numbers

    Examples
    --------
    >>> [round(c, 12) for c in gegenbauer_series(lambda t: t**2, 3, 2)]
    [0.333333333333, 0.0, 0.666666666667]
    >>> gegenbauer_series(None, 3, 2, derivatives=[0, 0, 2])
    [Fraction(1, 3), Fraction(0, 1), Fraction(2, 3)]
    """
    refuse_below(0, degree=degree)
    refuse_below(1, dim=dim)
    if derivatives is not None:
        return [
            sum(mu(ell, j, dim) / factorial(j) * value for j, value in enumerate(derivatives))
            for ell in range(degree + 1)
        ]
    if dim == 1:
        even, odd = (function(1) + function(-1)) / 2, (function(1) - function(-1)) / 2
        return ([even, odd] + [0.0] * degree)[: degree + 1]
    rule = [(pi / 2 * (1 + x), pi / 2 * weight) for x, weight in gauss_legendre(2 * degree + 200)]
    area = sphere_area(dim - 1) / sphere_area(dim)

    def integrand(ell, theta):
        t = cos(theta)
        return function(t) * gegenbauer(ell, dim, t) * sin(theta) ** (dim - 2)

    return [
        alpha(ell, dim) * area * fsum(weight * integrand(ell, theta) for theta, weight in rule)
        for ell in range(degree + 1)
    ]


def radial_series(function, a, b, dim, degree):
    """Expand a radial kernel f(||x-y||) in the angle, at one pair of norms a and b.

    f(sqrt(a^2 + b^2 - 2 a b t)) = sum_l A_l(a, b) P_d^l(t): Eq 8 for this function of t.
    Han, Zandieh, Avron, Eq 8 and 11. By Gauss' rule in theta as in `gegenbauer_series`, in which a
    kernel with a kink at distance 0 is smooth where a = b; where a is close to b, but not equal,
    the digits are those of a rule that does not see so small a distance.

    Parameters
    ----------
    function : callable
        f.
    a, b : float
        Norms of the points.
    dim : int
        d >= 1.
    degree : int
        q, the last degree.

    Returns
    -------
    list of q+1 floats

    Examples
    --------
    For the Gaussian these are the angular energies:

    >>> round(radial_series(lambda r: exp(-r * r / 2), 1.0, 1.0, 3, 0)[0], 12)
    0.432332358382
    """
    return gegenbauer_series(
        lambda t: function(sqrt((a - b) ** 2 + 2 * a * b * (1 - t))), dim, degree
    )


def zonal_sum(coefficients, dim, t):
    """Sum a Gegenbauer series.

    kappa(t) = sum_l c_l P_d^l(t).
    Han, Zandieh, Avron, Eq 7.

    Parameters
    ----------
    coefficients : sequence of q+1 numbers
        c_0, ..., c_q.
    dim : int
        d >= 1.
    t : number or sequence of numbers
        Where to evaluate, in [-1, 1].

    Returns
    -------
    number, or a list for a sequence

    Examples
    --------
    >>> from fractions import Fraction
    >>> zonal_sum([Fraction(1, 3), 0, Fraction(2, 3)], 3, Fraction(1, 2))  # t^2
    Fraction(1, 4)
    """
    if hasattr(t, "__iter__"):
        return [zonal_sum(coefficients, dim, each) for each in t]
    return sum(c * gegenbauer(ell, dim, t) for ell, c in enumerate(coefficients))


def radial_table(kernel, norms, dim, degree, order):
    """Evaluate the radial functions of a kernel at the norms of the points.

    [h_l(t)]_i = e(t) sqrt( alpha_(l,d)/2^l  Gamma(d/2) kappa^(l+2i)(0) / (sqrt(pi) (2i)!)
    Gamma(i+1/2) / Gamma(i+l+d/2) )  t^(l+2i)
    Han, Zandieh, Avron, Eq 12 and 22, Eq 31 for exp(<x, y>), and Eq 23 with the envelope
    e(t) = exp(-t^2/2) of the Gaussian. Eq 22 and 23 are printed with i in [s], which elsewhere
    means 1..s: right is i = 0..s-1, as in Eq 12. With i = 1..s the Gaussian at d = 3, norms 1,
    t = .4 would be .0767 instead of .5488.

    With Gamma(i+1/2) / (sqrt(pi) (2i)!) = 1 / (4^i i!) the root is that of
    alpha_(l,d) Gamma(d/2) kappa^(l+2i)(0) / (2^(l+2i) i! Gamma(i+l+d/2)). Its parts overflow, the
    whole doesn't: sums of logarithms, and one exp.
    At t = 0 all is 0 but the term l = i = 0.

    Parameters
    ----------
    kernel : kernels.Gaussian or another description of `kernels`
        Anything with log_derivative(j) = log kappa^(j)(0) and log_envelope(t) = log e(t).
    norms : sequence of n numbers
        t >= 0.
    dim : int
        d >= 1.
    degree : int
        q, the last degree.
    order : int
        s, the number of radial functions per degree.

    Returns
    -------
    list of n lists of q+1 lists of s floats

    Examples
    --------
    >>> from .kernels import Gaussian
    >>> round(radial_table(Gaussian(), [1.5], 3, 2, 2)[0][2][1], 12)  # l = 2, i = 1
    0.25360575164
    """

    def h(ell, i, t):
        if alpha(ell, dim) == 0:  # one dimension has no harmonics beyond degree 1
            return 0.0
        log_square = (
            log(alpha(ell, dim))
            + lgamma(dim / 2)
            - lgamma(ell + i + dim / 2)
            + kernel.log_derivative(ell + 2 * i)
            - lgamma(i + 1)
            - (ell + 2 * i) * log(2)
        )
        return exp(log_square / 2 + log_power(t, ell + 2 * i) + kernel.log_envelope(t))

    return [
        [[h(ell, i, float(t)) for i in range(order)] for ell in range(degree + 1)] for t in norms
    ]


def truncate(kernel, dim, radius, tol):
    """Choose degree and order so that the truncated kernel is within tol.

    Keep all (l, i) with l + 2i <= N. What is dropped is the Taylor remainder of kappa, largest at
    x = y with ||x|| = r, whatever the dimension:
    error = e(r)^2 sum_(j>N) kappa^(j)(0) r^(2j) / j!,
    for the Gaussian the tail Pr(Poisson(r^2) > N). N is the smallest with error <= tol. The
    rectangle l <= N, i <= N//2 contains these terms, so its error is no larger.

    It takes the place of q and s in Han, Zandieh, Avron, Theorems 11 and 12. Those of Theorem 12
    are up to four times too large: r = 4, tol = 1e-6 needs q = 38, s = 20, not 60 and 60. The q of
    Theorem 11 may be too small.

    Parameters
    ----------
    kernel : kernels.Gaussian or kernels.ExponentialDot
        Its derivatives at 0 must not grow with j.
    dim : int
        d >= 1; in one dimension there is no degree beyond 1.
    radius : float
        r, the largest norm of a point.
    tol : float
        Largest error of k(x, y) allowed.

    Returns
    -------
    degree, order : int
        q = N and s = N//2 + 1.
    error : float
        Certified for all points of norm at most r.

    Examples
    --------
    >>> from .kernels import Gaussian
    >>> degree, order, error = truncate(Gaussian(), 3, 1.0, 1e-3)
    >>> degree, order, round(error, 8)
    (5, 3, 0.00059418)
    """
    # From j = 2 r^2 on the terms at least halve: those left out are below rounding.
    n_terms = ceil(2 * radius**2 - log2(tol)) + 100
    terms = [
        exp(
            2 * kernel.log_envelope(radius)
            + kernel.log_derivative(j)
            + log_power(radius, 2 * j)
            - lgamma(j + 1)
        )
        for j in range(n_terms)
    ]
    N = next(N for N in range(n_terms) if fsum(terms[N + 1 :]) <= tol)
    return (N if dim > 1 else min(N, 1)), N // 2 + 1, fsum(terms[N + 1 :])


def angular_energy(degree, a, b, dim):
    """Evaluate the share of one degree in the Gaussian kernel of two points of norms a and b.

    A_l(a, b) = sum_(i>=0) h_(l,i)(a) h_(l,i)(b)
    = exp(-(a^2+b^2)/2) alpha_(l,d) Gamma(d/2) sum_i (ab/2)^(l+2i) / (i! Gamma(i+l+d/2)),
    Han, Zandieh, Avron, Lemma 15 with its sum over i carried out: all terms are positive. It is
    exp(-(a^2+b^2)/2) alpha_(l,d) Gamma(d/2) (2/ab)^(d/2-1) I_(l+d/2-1)(ab), with a Bessel function.
    On the sphere of radius r, c_l = A_l(r, r).

    Parameters
    ----------
    degree : int
        l >= 0.
    a, b : float
        Norms of the points, for the kernel exp(-||x-y||^2/2).
    dim : int
        d >= 1.

    Returns
    -------
    float

    Examples
    --------
    In three dimensions A_0(a, b) = exp(-(a^2+b^2)/2) sinh(ab)/(ab):

    >>> round(angular_energy(0, 1.0, 1.0, 3), 12)
    0.432332358382
    """
    if alpha(degree, dim) == 0:
        return 0.0
    # From i = ab on each term is at most a quarter of the one before.
    return fsum(
        exp(
            -(a * a + b * b) / 2
            + log(alpha(degree, dim))
            + lgamma(dim / 2)
            + log_power(a * b / 2, degree + 2 * i)
            - lgamma(i + 1)
            - lgamma(i + degree + dim / 2)
        )
        for i in range(ceil(a * b) + 50)
    )


def safe_cut(dim, reach, tol):
    """Choose degree and order so that the Gaussian loses at most tol between points of norm <= r.

    exp(-t^2 (1 - x)) = sum_l p_l(t) P_d^l(x), where p_l is `angular_energy` for the norms t and t.
    As x P_d^l = a P_d^(l+1) + (1 - a) P_d^(l-1) with 0 <= a <= 1, p_l(t) is a probability: that a
    walk on the degrees, from 0, of J ~ Poisson(t^2) steps up or down by 1, ends at L = l. The term
    (l, i) is the event L = l, J = l + 2i. For larger t the walk takes more steps, and Pr(L > q) and
    Pr(J > N) grow: walks that step at times of their own must meet before one passes the other, and
    may go on as one; so one that goes on from any degree stays above one from 0. A cut with 2s > N
    loses at most Pr(L > q) + Pr(J > N) <= sum_(q<l<=N) p_l(r) + 2 Pr(J > N). The two parts get
    tol/2 each.

    Parameters
    ----------
    dim : int
        d >= 2.
    reach : float
        r^2, the square of the largest norm.
    tol : float
        > 0.

    Returns
    -------
    degree, order : int
        q and s.

    Examples
    --------
    >>> safe_cut(3, 1.0, 1e-3)
    (4, 4)
    """
    radius = sqrt(reach)
    degree, order, _ = truncate(Gaussian(), dim, radius, tol / 4)
    lost = 0.0
    while degree > 0:
        lost += angular_energy(degree, radius, radius, dim)
        if lost > tol / 2:
            break
        degree -= 1
    return degree, order


def growth_constants(kernel, degree):
    """Find the constants of exponential growth of the derivatives of a dot-product kernel.

    kappa^(j)(0) <= C beta^j with C >= 0 and beta >= 1.
    Han, Zandieh, Avron, Assumption 1, there for j > d. Here for all j <= q: beta is the rate of
    growth over the upper half of the degrees, and C the smallest that serves.

    A Taylor series that converges only up to a radius rho has derivatives like j! rho^(-j), whose
    rate has no bound, and so have entire functions that grow like exp(t^2): no constants exist.
    That is seen from the rate: it stays for exp(t) and still rises for these, from the second
    quarter of the degrees to the upper half by log 2 for the first kind, by half of that for the
    other.

    Parameters
    ----------
    kernel : kernels.Gaussian or kernels.ExponentialDot
        Anything with log_derivative(j) = log kappa^(j)(0), -inf for 0.
    degree : int
        q >= 16, the last derivative looked at; beyond it the rate is taken to stay.

    Returns
    -------
    growth, base : float
        C and beta.

    Examples
    --------
    >>> from .kernels import ExponentialDot
    >>> growth_constants(ExponentialDot(), 40)
    (1.0, 1.0)
    """
    if degree < 16:
        raise ValueError(f"degree={degree} is too small to see a rate; use at least 16")
    logs = {j: kernel.log_derivative(j) for j in range(degree + 1)}
    logs = {j: value for j, value in logs.items() if value > -inf}  # odd ones may vanish

    def rate(low, high):
        inside = [j for j in logs if low <= j <= high]
        if len(inside) < 2:  # a polynomial ends here
            return 0.0
        return (logs[inside[-1]] - logs[inside[0]]) / (inside[-1] - inside[0])

    rising = rate(degree / 2, degree) - rate(degree / 4, degree / 2)
    if max(j for j in logs) > degree / 2 and rising > 0.2:
        raise ValueError(
            f"the derivatives of {kernel} grow faster than any C beta^j (by a factor of "
            f"{exp(rate(degree / 2, degree)):.3g} each, and rising): its Taylor series has a "
            "finite radius of convergence, or it grows like exp(t^2); Theorem 11 doesn't cover it"
        )
    base = max(1.0, exp(rate(degree / 2, degree)))
    return max(exp(value - j * log(base)) for j, value in logs.items()), base
