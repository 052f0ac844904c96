"""The degree at which the series of a kernel may be truncated, and the size of its terms."""

import math

import numpy as np
from scipy.special import gammaln

from gzkcore._compiled import series as _series
from gzkcore._util.validation import check_dim, check_integer, check_positive
from gzkcore.sphere.series import check_norm

from .base import Kernel
from .dot_product import DotProductKernel
from .radial import RadialFunctions
from .shift_invariant import Gaussian
from .zonal import ZonalKernel

__all__ = ["angular_energy", "growth_constants", "truncate"]

# `angular_energy` sums its series for products of norms up to this.
_FAR = 1e6


def truncate(kernel: Kernel, dim: int, radius: float, tol: float) -> tuple[int, int, float]:
    """Choose degree and order so that the truncated kernel is within tol on a ball.

    For a dot-product kernel all (l, i) with l + 2i <= N are kept, N the smallest with a Taylor
    remainder (for the Gaussian a Poisson tail, Pr(Poisson(r^2) > N)) of at most tol; the sup of the
    error over the ball is that remainder, at x = y on the rim. For a zonal kernel order is 1. For
    other kernels degree and order are those of `RadialFunctions`.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    dim : int
    radius : float
        Largest distance from the centre, in the units of the data.
    tol : float

    Returns
    -------
    degree, order : int
    error : float
        A certified bound of the error. It is at most tol for dot-product kernels and zonal kernels.
        Other radial kernels use at most 128 degrees, and the error may be larger.

    Raises
    ------
    ValueError
        If a zonal kernel needs a degree above 4096, or if the kernel overflows on the ball.

    References
    ----------
    Han, Zandieh, Avron, Theorems 11 and 12. The q and s of Theorem 12 are far larger; the q of
    Theorem 11 may be too small (G25 in the errata).

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> from gzkcore.kernels.truncation import truncate
    >>> truncate(Gaussian(0.5), 3, 1.0, 1e-3)[:2]
    (5, 3)
    """
    dim = check_dim(dim)
    radius = check_positive("radius", radius)
    tol = check_positive("tol", tol)
    r = float(np.max(kernel.scale())) * radius
    if isinstance(kernel, ZonalKernel):
        return _truncate_zonal(kernel, dim, r, tol)
    if isinstance(kernel, DotProductKernel):
        return _truncate_dot_product(kernel, dim, r, tol)
    norms = r * (np.arange(64) + 0.5) / 64
    radial = RadialFunctions(kernel, dim, (0.0, r), norms, 0, tol)
    error = radial.largest_residual(np.ones(radial.degree.size, dtype=bool))
    return int(radial.degree.max()), int(radial.index.max()) + 1, error


def _truncate_zonal(kernel: ZonalKernel, dim: int, r: float, tol: float) -> tuple[int, int, float]:
    size = 1.0 if kernel.unit_sphere else r ** (2 * kernel.power)
    degree = 16
    while degree <= 4096:
        tail = size * (kernel.at_one(dim) - np.cumsum(kernel.series(dim, degree)))
        enough = np.flatnonzero(tail <= tol)
        if enough.size:
            return int(enough[0]), 1, float(max(tail[enough[0]], 0.0))
        degree *= 4
    raise ValueError(f"tol={tol} needs a degree above 4096 in dimension {dim}; use a larger tol")


def _truncate_dot_product(
    kernel: DotProductKernel, dim: int, r: float, tol: float
) -> tuple[int, int, float]:
    kernel.check_finite(np.array([r]))
    count = kernel.n_derivatives() or int(r * r + 12 * r + 64)
    while True:
        j = np.arange(count)
        log_terms = kernel.log_derivative(j) + 2 * j * math.log(r) - gammaln(j + 1)
        terms = np.exp(log_terms + 2 * kernel.log_envelope(np.array(r)))
        tail = np.cumsum(terms[::-1])[::-1]  # tail[N] = sum over j >= N, small terms first
        tail = np.append(tail, 0.0) if kernel.n_derivatives() else tail
        enough = np.flatnonzero(tail[1:] <= tol)
        if enough.size and (kernel.n_derivatives() or terms[-1] <= 1e-3 * tol):
            last = int(enough[0])
            degree = min(last, 1) if dim == 1 else last
            return degree, last // 2 + 1, float(tail[last + 1])
        count *= 2


def angular_energy(degree: int, a: float, b: float, dim: int) -> float:
    """Return A_l(a, b) of the Gaussian: the coefficient of P_d^l at norms a and b (Funk-Hecke).

    exp(-(a^2+b^2)/2) alpha(l, d) Gamma(d/2) (2/(ab))^(d/2-1) I_(l+d/2-1)(ab), by its positive
    series.

    Parameters
    ----------
    degree : int
        l >= 0.
    a, b : float
        Scaled norms, |sqrt(2 gamma) x| and |sqrt(2 gamma) y|, >= 0.
    dim : int
        d >= 1.

    Returns
    -------
    float
        In [0, 1]; over all degrees the sum is exp(-(a-b)^2/2).

    Notes
    -----
    A sum of O(ab) positive terms, rescaled as they grow: without overflow or cancellation.

    References
    ----------
    Han, Zandieh, Avron, Eq 23, summed over i; the closed form is the Funk-Hecke formula.

    Examples
    --------
    >>> from gzkcore.kernels.truncation import angular_energy
    >>> round(angular_energy(0, 1.0, 1.0, 3), 12)
    0.432332358382
    """
    degree = check_integer("degree", degree, 0)
    dim = check_dim(dim)
    a, b = check_norm("a", a), check_norm("b", b)
    if a * b > _FAR:
        raise ValueError(
            f"a * b = {a * b:.3g} needs a sum of as many terms; use norms whose product is at most "
            f"{_FAR:.0g}"
        )
    out = np.empty(1)
    _series.angular_energy(degree, np.array([a]), np.array([b]), dim, out, 1)
    return float(out[0])


def safe_cut(dim: int, reach: float, log_share: float) -> tuple[int, int]:
    """Return q and s that lose at most exp(log_share) / 10 of the Gaussian up to r^2 = reach."""
    if log_share < -690:
        raise OverflowError
    tol, radius, lost = math.exp(log_share) / 10, math.sqrt(reach), 0.0
    degree, order, _ = truncate(Gaussian(0.5), dim, radius, tol / 4)
    while degree and (lost := lost + angular_energy(degree, radius, radius, dim)) <= tol / 2:
        degree -= 1
    return degree, order


def growth_constants(kernel: Kernel, degree: int) -> tuple[float, float]:
    """Return C and beta with kappa^(j)(0) <= C beta^j for a dot-product kernel (Assumption 1).

    Parameters
    ----------
    kernel : Kernel
        Resolved, a dot-product kernel or the Gaussian.
    degree : int
        The last derivative that is used, >= 16; the rate of growth is assumed constant beyond it.

    Returns
    -------
    growth, base : float
        C >= 0 and beta >= 1, in the units of the data: beta includes the factor by which the kernel
        scales its inputs. So use them in Theorem 11 with the radius of the data.

    Raises
    ------
    ValueError
        If the derivatives grow faster than any C beta^j, so that the rate of growth over the upper
        half of the degrees, which is beta, still rises: like j! rho^(-j) (a series that converges
        up to rho) or like (j/2)^(j/2) (growth like exp(t^2)).

    References
    ----------
    Han, Zandieh, Avron, Assumption 1, which is stated for j > d.

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> from gzkcore.kernels.truncation import growth_constants
    >>> growth_constants(Gaussian(0.5), 40)
    (1.0, 1.0)
    """
    degree = check_integer("degree", degree, 16)
    if not isinstance(kernel, DotProductKernel):
        where = " is known on the unit sphere only, where it" if kernel.unit_sphere else ""
        raise ValueError(  # noqa: TRY004  it is a kernel, only not for this
            f"kernel={kernel}{where} has no Taylor series; use a dot-product kernel"
        )
    j = np.arange(degree + 1)
    logs = kernel.log_derivative(j)
    present = np.flatnonzero(logs > -np.inf)
    if not present.size:
        raise ValueError(f"all derivatives of kernel={kernel} at 0 are 0; use another kernel")

    def rate(low: float, high: float) -> float:
        inside = present[(low <= present) & (present <= high)]
        if inside.size < 2:
            return 0.0
        first, last = int(inside[0]), int(inside[-1])
        return float(logs[last] - logs[first]) / (last - first)

    upper = rate(degree / 2, degree)
    if present[-1] > degree / 2 and upper - rate(degree / 4, degree / 2) > 0.2:
        raise ValueError(
            f"kernel={kernel} has derivatives that grow faster than any C beta^j (by a factor of "
            f"{math.exp(upper):.3g} each, and rising): its Taylor series has a finite radius of "
            "convergence, or it grows like exp(t^2); use truncate, which needs no such constants"
        )
    factor = float(np.max(kernel.scale())) ** 2
    log_base = max(0.0, upper + math.log(factor))
    log_ratios = logs[present] + present * (math.log(factor) - log_base)
    return float(np.exp(log_ratios).max()), math.exp(log_base)
