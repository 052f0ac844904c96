"""Means and variances of block estimates: of kernel values, and of projected squared lengths."""

from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import variances as _variances
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles
from gzkcore._util.validation import check_choice, check_integer
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import (
    Exponential,
    Gaussian,
    Laplacian,
    Spherical,
)

from .block import Arrangement, Values, as_additive

__all__ = ["energy_variance", "kernel_moments", "projection_moments", "projection_variance"]

# Kernels with known moments, by their number in `variances`. A Laplacian is an Exponential of
# another distance.
_KNOWN: tuple[Any, ...] = (Gaussian, (Exponential, Laplacian), Spherical)
# The kernels of Propositions 4.3 and 4.4, with the parameter 1.
_UNIT = {"gaussian": Gaussian, "exponential": Exponential, "spherical": Spherical}


def _variance(moment: Any, delta: ArrayLike, n_blocks: int, arrangement: Any, *args: bool) -> Any:
    """Return a compiled variance of a difference, a float, or of each row of differences."""
    check_choice("arrangement", arrangement, get_args(Arrangement))
    array = np.ascontiguousarray(delta, dtype=np.float64)
    if array.ndim not in (1, 2) or array.shape[-1] < 1:
        raise ValueError(
            f"delta has shape {array.shape}; pass the difference of two points, or rows of these"
        )
    rows, k = np.atleast_2d(array), check_integer("n_blocks", n_blocks, 1)
    out = np.empty(len(rows))
    moment(rows, k, arrangement == "stratified", *args, out, n_threads(rows.size))
    return out if array.ndim > 1 else float(out[0])


def energy_variance(
    delta: ArrayLike, n_blocks: int, arrangement: Arrangement = "stratified"
) -> Any:
    """Return the variance of the energy of a block, |Delta_i|^2, over the arrangements.

    Parameters
    ----------
    delta : array-like of shape (D,) or (n, D)
        The difference of two points, or one in each row.
    n_blocks : int
    arrangement : {"stratified", "permutation"}, default="stratified"

    Returns
    -------
    float, or ndarray of shape (n,)
        sum_j x_j^2 / k + sum_(j != l) x_j x_l p_jl / k - (sum_j x_j / k)^2, where x = delta^2 and
        p_jl is the probability that j and l meet in a block: for "stratified" 0 within a segment
        of k coordinates and 1/k across, for "permutation" (b - 1) / (D - 1) with b = D/k.

    Examples
    --------
    >>> from gzkcore.features.block_moments import energy_variance
    >>> energy_variance([1.0, 2.0, 1.0, 2.0], 2)  # blocks have 2, 5, 5 or 8
    4.5
    """
    return _variance(_variances.energy_variance, delta, n_blocks, arrangement)


def projection_variance(
    delta: ArrayLike,
    n_blocks: int,
    values: Values = "rademacher",
    arrangement: Arrangement = "stratified",
) -> Any:
    """Return the variance of |v|^2 of a projection, over values and arrangements.

    Parameters
    ----------
    delta, n_blocks, arrangement
        As for `energy_variance`.
    values : {"rademacher", "gaussian"}, default="rademacher"

    Returns
    -------
    float, or ndarray of shape (n,)
        2 sum_(j != l) p_jl x_j x_l, see `energy_variance`; plus 2 sum_j x_j^2 for normal values. A
        dense normal matrix has 2 (sum x)^2 / k.

    Examples
    --------
    >>> from gzkcore.features.block_moments import projection_variance
    >>> projection_variance([1.0, 1.0, 1.0, 1.0], 2)
    8.0
    """
    check_choice("values", values, get_args(Values))
    normal = values == "gaussian"
    return _variance(_variances.projection_variance, delta, n_blocks, arrangement, normal)


def kernel_moments(
    kernel: str | Kernel,
    mean: ArrayLike,
    std: ArrayLike,
    n_frequencies: int,
    *,
    printed: bool = False,
) -> tuple[Any, Any]:
    """Return mean and variance of the estimate of a kernel for random normal distances.

    Theorem 4.1 and Propositions 4.3 and 4.4 of [1]_: the mean is E K(Delta) and the variance
    (1/2 + E K(2 Delta) / 2 - (E K(Delta))^2) / N, for N frequencies with independent blocks.

    Parameters
    ----------
    kernel : str or Kernel
        A kernel with numbers as parameters. "gaussian", "exponential" and "spherical" have the
        parameter 1.
    mean, std : float or array-like
        Mean and standard deviation of the distance, which is taken as normal: |x - y|^2 for
        `Gaussian`, `Matern` and `RationalQuadratic`, |x - y| for `Exponential` and `Spherical`,
        sum_j |x_j - y_j| for `Laplacian`.
    n_frequencies : int
        N.
    printed : bool, default=False
        The formulas as printed, for the three kernels of the propositions: see B1, B6, B7 and B8 in
        the errata.

    Returns
    -------
    mean, variance : float, or ndarray of the shape of mean and std together

    References
    ----------
    .. [1] A Simple and Efficient Method for Random Fourier Features.

    Examples
    --------
    >>> from gzkcore.features.block_moments import kernel_moments
    >>> mean, variance = kernel_moments("gaussian", 1.0, 0.1, 100)
    >>> round(mean, 6), round(variance, 8)
    (0.369723, 0.00373225)
    """
    n = check_integer("n_frequencies", n_frequencies, 1)
    unit = isinstance(kernel, str) and kernel in _UNIT
    kernel = as_additive(_UNIT[kernel](1.0) if unit else as_kernel(kernel))
    if np.ndim(kernel.scale()) > 0:
        raise ValueError(
            f"{kernel!r} has one parameter for each column; pass a kernel with a single number"
        )
    means, stds = _broadcast(mean, std)
    if not stds.all():
        raise ValueError(f"std={std!r} must be > 0; with 0 the distances are not random")
    once, variance = np.empty(means.shape), np.empty(means.shape)
    known = [number for number, kind in enumerate(_KNOWN) if isinstance(kernel, kind)]
    if known:
        factor = float(kernel.scale() if isinstance(kernel, Spherical) else kernel.gamma)
        _variances.kernel_moments(
            known[0], (factor * means).ravel(), (factor * stds).ravel(), n, printed,
            once.ravel(), variance.ravel(), n_threads(64 * means.size),
        )  # fmt: skip
    elif printed:
        raise ValueError(
            f"printed=True is for the kernels whose moments the paper prints, not for {kernel!r}; "
            "use printed=False"
        )
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(201)
        sums = means[..., None] + stds[..., None] * nodes
        sums = float(kernel.scale()) ** 2 * np.maximum(sums, 0.0)
        once, twice = (
            kernel.profile_of_sums(c**2 * sums) @ (weights / weights.sum()) for c in (1.0, 2.0)
        )
        variance = (0.5 + twice / 2 - once**2) / n
    return (once, variance) if means.ndim else (float(once), float(variance))


def _broadcast(mean: ArrayLike, std: ArrayLike) -> tuple[Doubles, Doubles]:
    means, stds = np.broadcast_arrays(np.asarray(mean, np.float64), np.asarray(std, np.float64))
    if not (np.isfinite(means).all() and np.isfinite(stds).all() and (stds >= 0).all()):
        raise ValueError(f"mean={mean!r} and std={std!r} must be finite numbers, and std >= 0")
    return means, stds


def projection_moments(
    mean: ArrayLike, std: ArrayLike, n_components: int, *, printed: bool = False
) -> tuple[Any, Any]:
    """Return mean and variance of |v|^2 for normal values, (2 mean^2 + 2 std^2) / k (Theorem 4.7).

    Parameters
    ----------
    mean, std : float or array-like
        Mean and standard deviation of |sqrt(k) Delta_i|^2, the scaled energy of a block. The mean
        is |Delta|^2.
    n_components : int
        k.
    printed : bool, default=False
        The formula as printed, (2 mean + std^2) / k: see B10 in the errata.

    Returns
    -------
    mean, variance : float, or ndarray of the shape of mean and std together

    Examples
    --------
    >>> from gzkcore.features.block_moments import projection_moments
    >>> projection_moments(3.0, 1.0, 10)
    (3.0, 2.0)
    """
    k = check_integer("n_components", n_components, 1)
    means, stds = _broadcast(mean, std)
    out = np.empty(means.shape)
    _variances.projection_moments(
        means.ravel(), stds.ravel(), k, printed, out.ravel(), n_threads(out.size)
    )
    return (means.copy(), out) if out.ndim else (float(means), float(out))
