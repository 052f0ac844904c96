"""The exact kernels, and what their radial functions need to know about them.

Plain functions take two points. The small classes describe a kernel to `series.radial_table` and
`series.truncate`: k(x, y) = e(||x||) e(||y||) kappa(<x, y>), with the Taylor derivatives of kappa
at 0 and the envelope e, both as logarithms (in numbers they overflow).
"""

from math import exp

__all__ = ["ExponentialDot", "Gaussian", "gaussian", "zonal"]


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
