"""Gegenbauer series of functions on the sphere, kappa(t) = sum_l c_l P_d^l(t) (Eq 8).

This module computes the coefficients of a function of the angle, those of a function of the
distance at a pair of norms, and the sum of a series. Coefficients are computed as logarithms and
exponentiated once, since their factors may overflow though they do not.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import roots_legendre

from gzkcore._compiled import series as _series
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Floats, Function
from gzkcore._util.validation import as_floating, check_degree, check_dim, check_positive

from .special import log_alpha

__all__ = ["gegenbauer_series", "radial_series", "zonal_sum"]


def gegenbauer_series(
    function: Function | None,
    dim: int,
    degree: int,
    *,
    derivatives: Sequence[float] | Doubles | None = None,
) -> Doubles:
    """Coefficients c_0..c_q of kappa(t) = sum_l c_l P_d^l(t) (Eq 8).

    Parameters
    ----------
    function : callable or None
        kappa, which maps an array of cosines in [-1, 1] to an array of values.
    dim, degree : int
        d >= 1 and q >= 0.
    derivatives : array-like, optional
        kappa^(j)(0), j = 0, 1, ..., instead of `function`. Then c_l = sum_j mu_l^j kappa^(j)(0) /
        j!, without cancellation if no derivative is negative.

    Returns
    -------
    ndarray of shape (degree + 1,), float64

    Notes
    -----
    Uses Gauss-Legendre quadrature in the angle, t = cos(theta), which converges fast even for
    kernels with a square root at t = 1, such as neural tangent kernels. The error of c_l is about
    1e-15 sqrt(alpha(l, d)) max|kappa| up to d = 1,000, and grows like d for larger d. Cost: O(q^2 +
    q n_nodes) with n_nodes = 2 q + 512, plus 32 sqrt(d) if d > 32.

    References
    ----------
    Han, Zandieh, Avron, Eq 8; Eq 29 for the sum over derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.sphere.series import gegenbauer_series
    >>> gegenbauer_series(lambda t: np.exp(2 * t), 3, 2).round(6)
    array([1.81343 , 2.923148, 1.75928 ])
    """
    dim = check_dim(dim)
    degree = check_degree(degree)
    if derivatives is not None:
        numbers = check_numbers("derivatives", derivatives)
        taylor = np.array([float(v) * math.exp(-math.lgamma(j + 1)) for j, v in enumerate(numbers)])
        out = np.empty(degree + 1)
        _series.taylor_series(taylor, dim, out, n_threads(64 * taylor.size * out.size))
        return out
    if not callable(function):
        raise TypeError(
            f"function={function!r} is not callable; pass the function kappa, or derivatives="
        )
    if dim == 1:
        plus, minus = np.asarray(function(np.array([1.0, -1.0])), dtype=np.float64)
        c = np.zeros(degree + 1)
        c[:2] = np.array([(plus + minus) / 2, (plus - minus) / 2])[: degree + 1]
        return c
    theta, weights = angles(2 * degree + 512, dim)
    values = _values(function, np.cos(theta), "cosines in [-1, 1]")
    coefficients: Doubles = _rule(theta, weights, dim, degree) @ values
    return coefficients


def _values(function: Function, points: Doubles, what: str) -> Doubles:
    """Return finite values of a function, or raise; `what` says what the points are."""
    values = np.asarray(function(points), dtype=np.float64)
    if values.shape != points.shape or not np.isfinite(values).all():
        raise ValueError(
            f"function must map an array of {what} to an array of finite values of the same shape; "
            f"got shape {values.shape} for {points.shape}"
        )
    return values


def _rule(theta: Doubles, weights: Doubles, dim: int, degree: int) -> Doubles:
    """Return the matrix (q + 1, n_nodes) that maps values at the nodes to c_0..c_q."""
    out = np.empty((degree + 1, theta.size))
    # The sum is the ratio of two areas of spheres, which are below all doubles from d = 460 on.
    weights = weights / weights.sum()
    _series.gegenbauer_rule(np.cos(theta), weights, dim, out, n_threads(8 * out.size))
    return out


def _more_nodes(dim: int) -> int:
    """Count the additional nodes for sin^(d-2), which has a peak as wide as 1 / sqrt(d)."""
    return 32 * math.isqrt(dim) if dim > 32 else 0


@functools.lru_cache(maxsize=16)
def angles(n_nodes: int, dim: int) -> tuple[Doubles, Doubles]:
    """Nodes and weights for the integral over theta of f(theta) sin^(d-2)(theta).

    Gauss-Legendre on panels of 32 nodes: the weights of one long rule are off by 1e-13.
    """
    nodes, weights = roots_legendre(32)
    panels = -(-(n_nodes + _more_nodes(dim)) // 32)
    half = math.pi / panels / 2
    theta = (half * (2 * np.arange(panels)[:, None] + 1 + nodes)).ravel()
    return theta, half * np.tile(weights, panels) * np.sin(theta) ** (dim - 2)


@functools.lru_cache(maxsize=16)
def _graded_angles(n_nodes: int, dim: int) -> tuple[Doubles, Doubles]:
    """As `angles`, with panels that shrink towards 0, where distances may have a kink."""
    nodes, weights = roots_legendre(16)
    panels = -(-(n_nodes + _more_nodes(dim)) // 16)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-26, 0), np.arange(1, panels + 1)])
    edges *= math.pi / panels
    half = np.diff(edges)[:, None] / 2
    theta = (edges[:-1, None] + half * (1 + nodes)).ravel()
    return theta, (half * weights).ravel() * np.sin(theta) ** (dim - 2)


def radial_series(function: Function, a: ArrayLike, b: ArrayLike, dim: int, degree: int) -> Doubles:
    """Coefficients A_0..A_q(a, b) of a radial kernel at pairs of norms.

    f(|x - y|) = sum_l A_l(|x|, |y|) P_d^l(cos): Eq 8 for kappa(cos) = f((a^2 + b^2 - 2 a b
    cos)^(1/2)).

    Parameters
    ----------
    function : callable
        f, which maps an array of distances >= 0 to an array of values.
    a, b : float or array-like
        Norms |x| and |y|, >= 0, broadcast together.
    dim, degree : int
        d >= 1 and q >= 0.

    Returns
    -------
    ndarray of shape (..., degree + 1), float64
        The leading dimensions are those of a and b, broadcast together.

    Notes
    -----
    As `gegenbauer_series`, with the same errors, on panels that shrink towards 0, where a distance
    at a = b has a kink. Cost for each pair: O(q + sqrt(d)) values of f, and q times as many
    operations.

    References
    ----------
    Han, Zandieh, Avron, Eq 8 and 11.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.kernels.truncation import angular_energy
    >>> from gzkcore.sphere.series import radial_series
    >>> gauss = radial_series(lambda r: np.exp(-r * r / 2), 1.0, 2.0, 3, 4)
    >>> bool(abs(gauss[4] - angular_energy(4, 1.0, 2.0, 3)) < 1e-14)
    True
    """
    dim = check_dim(dim)
    degree = check_degree(degree)
    if not callable(function):
        raise TypeError(f"function={function!r} is not callable; pass the function f")
    try:
        norms = [np.asarray(values, dtype=np.float64) for values in (a, b)]
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"a and b are not numeric ({error}); pass norms >= 0") from None
    a, b = np.broadcast_arrays(*norms)
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a >= 0).all() and (b >= 0).all()):
        raise ValueError("a and b must be finite norms >= 0")
    shape = a.shape
    gap, product = np.abs(a - b).reshape(-1, 1), (a * b).reshape(-1, 1)
    if dim == 1:
        near, far = function(gap), function(np.sqrt(gap**2 + 4 * product))
        near, far = np.asarray(near, dtype=np.float64), np.asarray(far, dtype=np.float64)
        out = np.zeros((gap.size, degree + 1))
        out[:, :2] = np.concatenate([near + far, near - far], axis=1)[:, : degree + 1] / 2
        return out.reshape(*shape, degree + 1)
    theta, weights = _graded_angles(2 * degree + 64, dim)
    rule = _rule(theta, weights, dim, degree)
    chord = 4 * np.square(np.sin(theta / 2))
    out = np.empty((gap.size, degree + 1))
    for first in range(0, gap.size, 1024):
        part = slice(first, first + 1024)
        distances = np.sqrt(gap[part] ** 2 + product[part] * chord)
        out[part] = _values(function, distances, "distances >= 0") @ rule.T
    return out.reshape(*shape, degree + 1)


def check_norm(name: str, value: float) -> float:
    """Return value as a float, or raise naming it if it is not a finite number >= 0."""
    return 0.0 if value == 0 else check_positive(name, value)


def check_numbers(name: str, values: ArrayLike, *, empty: bool = False) -> Doubles:
    """Return a list of finite real numbers as an array, or raise naming it."""
    if np.iscomplexobj(values):
        raise TypeError(f"{name} is not a list of real numbers (they are complex); pass numbers")
    try:
        array = np.asarray(values)
        real = array if array.dtype.kind in "biuf" else np.asarray([float(v) for v in array])
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} is not a list of real numbers ({error}); pass numbers") from None
    if array.ndim != 1 or (array.size == 0 and not empty):
        raise ValueError(f"{name} has shape {array.shape}; pass a list of one or more numbers")
    if not np.isfinite(real).all():
        worst = int(np.argmin(np.isfinite(real)))
        raise ValueError(f"{name}[{worst}]={real[worst]} is not finite; pass finite numbers")
    return np.ascontiguousarray(real, dtype=np.float64)


def series_noise(function: Function, dim: int, degree: int) -> Doubles:
    """Bound the rounding error of each coefficient of `gegenbauer_series` by quadrature."""
    size = float(np.max(np.abs(function(np.cos(np.linspace(0, math.pi, 65))))))
    level = np.arange(degree + 1)
    root_alpha = np.exp(0.5 * log_alpha(level, dim))
    of_one = (64 + level) * np.finfo(float).eps * size  # the recurrence's error grows with l
    return of_one * np.where(np.isfinite(root_alpha), root_alpha, 1.0)


def zonal_sum(coefficients: ArrayLike, dim: int, t: ArrayLike) -> Floats:
    """Evaluate a Gegenbauer series, kappa(t) = sum_l c_l P_d^l(t) (Eq 7).

    Parameters
    ----------
    coefficients : array-like of shape (q + 1,)
        c_0..c_q.
    dim : int
        d >= 1.
    t : array-like
        Points, usually in [-1, 1].

    Returns
    -------
    float or ndarray of the shape of t
        float32 for float32 t, else float64.

    Notes
    -----
    Cost: 4 q flops for each point, in double precision; memory for the result.

    References
    ----------
    Han, Zandieh, Avron, Eq 7.

    Examples
    --------
    >>> from gzkcore.sphere.series import zonal_sum
    >>> float(zonal_sum([1.0, 2.0], 3, 0.5))
    2.0
    """
    numbers, (points, shape) = check_numbers("coefficients", coefficients), as_floating("t", t)
    return summed_zonal(numbers, check_dim(dim), points).reshape(shape)[()]


def summed_zonal(coefficients: Doubles, dim: int, t: Floats) -> Floats:
    """Return `zonal_sum` of checked arguments, at points in one contiguous row."""
    out = np.empty_like(t)
    for part in in_parts(t.size, 4 * coefficients.size):
        threads = n_threads(t.size * coefficients.size)
        _series.zonal_sum(coefficients, dim, t[part], out[part], threads)
    return out
