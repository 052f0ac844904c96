"""Means and variances of what blocks estimate: of kernels, and of projected squared lengths."""

import math
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from gzkcore._util.typing import Doubles
from gzkcore._util.validation import check_choice, check_integer, check_positive
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import (
    Exponential,
    Gaussian,
    Laplacian,
    ShiftInvariantKernel,
    Spherical,
)

from .block import Arrangement, Values
from .block_kernels import as_additive

__all__ = ["energy_variance", "kernel_moments", "projection_moments", "projection_variance"]

# The kernels of Propositions 4.3 and 4.4, whose names mean the parameter 1 here.
_UNIT = {"gaussian": Gaussian, "exponential": Exponential, "spherical": Spherical}


def _meetings(x: Doubles, n_blocks: int, arrangement: Arrangement) -> float:
    """Expectation of the sum of x_j x_l over all j != l that meet in a block."""
    total, squares = float(x.sum()), float(x @ x)
    if arrangement == "permutation":
        dim = x.size
        small, more = divmod(dim, n_blocks)
        pairs = more * (small + 1) * small + (n_blocks - more) * small * (small - 1)
        return pairs / max(dim * (dim - 1), 1) * (total**2 - squares)
    segments = np.add.reduceat(x, np.arange(0, x.size, n_blocks))
    return (total**2 - float(segments @ segments)) / n_blocks


def _check_delta(delta: ArrayLike, n_blocks: int, arrangement: Any) -> tuple[Doubles, int]:
    check_choice("arrangement", arrangement, get_args(Arrangement))
    array = np.asarray(delta, dtype=np.float64)
    if array.ndim != 1 or array.size < 1:
        raise ValueError(f"delta has shape {array.shape}; pass the difference of two rows")
    return np.square(array), check_integer("n_blocks", n_blocks, 1)


def energy_variance(
    delta: ArrayLike, n_blocks: int, arrangement: Arrangement = "stratified"
) -> float:
    """Return the variance of the energy of a block, |Delta_i|^2, over the arrangements.

    Parameters
    ----------
    delta : array-like of shape (D,)
        The difference of two points.
    n_blocks : int
    arrangement : {"stratified", "permutation"}, default="stratified"

    Returns
    -------
    float
        sum_j x_j^2 / k + sum_(j != l) x_j x_l p_jl / k - (sum_j x_j / k)^2, where x = delta^2 and
        p_jl is the probability that j and l meet in a block: for "stratified" 0 within a segment
        of k coordinates and 1/k across, for "permutation" (b - 1) / (D - 1) with b = D/k.

    Examples
    --------
    >>> from gzkcore.features.block_moments import energy_variance
    >>> energy_variance([1.0, 2.0, 1.0, 2.0], 2)  # blocks have 2, 5, 5 or 8
    4.5
    """
    x, k = _check_delta(delta, n_blocks, arrangement)
    second = (float(x @ x) + _meetings(x, k, arrangement)) / k
    return second - (float(x.sum()) / k) ** 2


def projection_variance(
    delta: ArrayLike,
    n_blocks: int,
    values: Values = "rademacher",
    arrangement: Arrangement = "stratified",
) -> float:
    """Return the variance of |v|^2 of a projection, over values and arrangements.

    Parameters
    ----------
    delta : array-like of shape (D,)
        The difference of two points.
    n_blocks : int
    values : {"rademacher", "gaussian"}, default="rademacher"
    arrangement : {"stratified", "permutation"}, default="stratified"

    Returns
    -------
    float
        2 sum_(j != l) p_jl x_j x_l, see `energy_variance`, and 2 sum_j x_j^2 more for normal
        values. A dense normal matrix has 2 (sum x)^2 / k.

    Examples
    --------
    >>> from gzkcore.features.block_moments import projection_variance
    >>> projection_variance([1.0, 1.0, 1.0, 1.0], 2)
    8.0
    """
    x, k = _check_delta(delta, n_blocks, arrangement)
    check_choice("values", values, get_args(Values))
    variance = 2 * _meetings(x, k, arrangement)
    return variance + 2 * float(x @ x) if values == "gaussian" else variance


def kernel_moments(
    kernel: str | Kernel, mean: float, std: float, n_frequencies: int, *, printed: bool = False
) -> tuple[float, float]:
    """Return mean and variance of the estimate of a kernel for random normal distances.

    Theorem 4.1 and Propositions 4.3 and 4.4 of [1]_: the mean is E K(Delta) and the variance
    (1/2 + E K(2 Delta) / 2 - (E K(Delta))^2) / N, for N frequencies with independent blocks.

    Parameters
    ----------
    kernel : str or Kernel
        A kernel with numbers as parameters. "gaussian", "exponential" and "spherical" have the
        parameter 1.
    mean, std : float
        Of the normal variable: |x - y|^2 for `Gaussian`, `Matern` and `RationalQuadratic`, |x - y|
        for `Exponential` and `Spherical`, sum_j |x_j - y_j| for `Laplacian`.
    n_frequencies : int
        N.
    printed : bool, default=False
        As printed, for the three kernels of the propositions: see B1, B6, B7 and B8 in the errata.

    Returns
    -------
    mean, variance : float

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
    std = check_positive("std", std)
    unit = isinstance(kernel, str) and kernel in _UNIT
    kernel = as_additive(_UNIT[kernel](1.0) if unit else as_kernel(kernel))
    if np.ndim(kernel.scale()) > 0:
        raise ValueError(f"{kernel!r} has a parameter for each column; moments are for one number")
    if printed and isinstance(kernel, Spherical):
        once, variance = _printed_spherical_moments(*_scaled(kernel, mean, std))
        return once, variance / n
    once, twice = _means(kernel, mean, std, printed)
    return once, (0.5 + twice / 2 + (1 if printed else -1) * once**2) / n


def _scaled(kernel: Kernel, mean: float, std: float) -> tuple[float, float]:
    """Return mean and standard deviation of distances in units of the kernel."""
    return float(kernel.scale()) * mean, float(kernel.scale()) * std


def _means(
    kernel: ShiftInvariantKernel, mean: float, std: float, printed: bool
) -> tuple[float, float]:
    """Return E K(Delta) and E K(2 Delta)."""
    if isinstance(kernel, (Gaussian, Exponential, Laplacian)):
        unit = float(kernel.gamma)  # type: ignore[arg-type]  # scale() has checked it
        mean, std = unit * mean, unit * std
        stretch = 4 if isinstance(kernel, Gaussian) and not printed else 2
        once, twice = (math.exp(-c * mean + (c * std) ** 2 / 2) for c in (1, stretch))
        return once, twice
    if isinstance(kernel, Spherical):
        mean, std = _scaled(kernel, mean, std)
        return _spherical_mean(mean, std), _spherical_mean(2 * mean, 2 * std)
    if printed:
        raise ValueError(f"printed=True is for the kernels that [B] has moments for, no {kernel!r}")
    nodes, weights = np.polynomial.hermite_e.hermegauss(201)
    sums = float(kernel.scale()) ** 2 * np.maximum(mean + std * nodes, 0.0)
    weights /= weights.sum()
    once, twice = (float(weights @ kernel.profile_of_sums(c**2 * sums)) for c in (1.0, 2.0))
    return once, twice


def _printed_spherical_moments(mean: float, std: float) -> tuple[float, float]:
    """Mean, and N times the variance, as Proposition 4.4 prints them."""
    third = mean**3 + 3 * mean * std**2
    constant = 1 - 4.5 * mean + 2.25 * mean**2 + 3 * third - 1.5 * mean * third
    return 1 - 1.5 * mean + third / 2, constant + third**2 / 4


def _spherical_mean(mean: float, std: float) -> float:
    """E[1 - 3/2 s + s^3/2; s < 1] for normal s, by truncated moments; below 0 the kernel is 1."""
    below = norm.cdf([0.0, 1.0], mean, std)
    density = norm.pdf([0.0, 1.0], mean, std)
    moments = [below[1] - below[0]]
    moments.append(mean * moments[0] - std**2 * (density[1] - density[0]))
    for power in (2, 3):
        moments.append(mean * moments[-1] + std**2 * ((power - 1) * moments[-2] - density[1]))
    return float(below[0] + moments[0] - 1.5 * moments[1] + moments[3] / 2)


def projection_moments(
    mean: float, std: float, n_components: int, *, printed: bool = False
) -> tuple[float, float]:
    """Return mean and variance of |v|^2 for normal values, (2 mean^2 + 2 std^2) / k (Theorem 4.7).

    Parameters
    ----------
    mean, std : float
        Of |sqrt(k) Delta_i|^2, the scaled energy of a block; the mean is |Delta|^2.
    n_components : int
        k.
    printed : bool, default=False
        As printed, (2 mean + std^2) / k: see B10 in the errata.

    Returns
    -------
    mean, variance : float

    Examples
    --------
    >>> from gzkcore.features.block_moments import projection_moments
    >>> projection_moments(3.0, 1.0, 10)
    (3.0, 2.0)
    """
    k = check_integer("n_components", n_components, 1)
    if printed:
        return mean, (2 * mean + std**2) / k
    return mean, (2 * mean**2 + 2 * std**2) / k
