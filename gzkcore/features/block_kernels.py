"""Kernels that block features can approximate: functions of sum_j |x_j - y_j|^p."""

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import ShiftInvariantKernel


def as_additive(kernel: Kernel) -> ShiftInvariantKernel:
    """Return a kernel of which a block can stand for the whole row, or raise."""
    if isinstance(kernel, ShiftInvariantKernel):
        return kernel
    raise ValueError(
        f"{kernel!r} is not a function of sum_j |x_j - y_j|^p, so that a block of coordinates "
        "cannot stand for the whole row; use Gaussian, Exponential, Matern, RationalQuadratic or "
        "Laplacian here, or GegenbauerFeatures or ProductFeatures for this kernel"
    )


def draw_frequencies(
    kernel: Kernel, buckets: NDArray[np.intp], sizes: NDArray[np.intp], rng: np.random.Generator
) -> Doubles:
    """Draw a frequency for each scaled coordinate, with the scale of its block, (D / b)^(1 / p)."""
    dim, n_blocks = buckets.size, sizes.size
    if not kernel.rotation_invariant:
        return rng.standard_cauchy(dim) * (dim / sizes)[buckets]
    if kernel.max_dim is not None:
        chosen = spherical_frequencies(n_blocks, rng)
        order = np.argsort(buckets, kind="stable")
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        place = np.empty(dim, dtype=np.intp)
        place[order] = np.arange(dim) - np.repeat(first, sizes)  # which of its block
        normal: Doubles = chosen[buckets, place]
    else:
        spread = kernel.frequencies(np.ones((n_blocks, 1)), rng.random(n_blocks))[:, 0]
        normal = rng.standard_normal(dim) * spread[buckets]
    return normal * np.sqrt(dim / sizes)[buckets]


def spherical_frequencies(count: int, rng: np.random.Generator) -> Doubles:
    """Draw frequencies in R^3 of the spherical kernel with theta = 1; of fewer, any coordinates.

    It is the overlap of two balls of radius 1/2, so that the density is the square of a ball's
    transform: radius r = 2 t has a density proportional to (sin t / t - cos t)^2 / t^2. By
    rejection from min(1, 1 / t^2) / 2.
    """
    radii = np.empty(0)
    while radii.size < count:
        uniform, side, accept = rng.random((3, 6 * count + 64))
        t = np.where(side < 0.5, uniform, 1 / np.maximum(uniform, 1e-300))
        wave = np.square(np.sin(t) / t - np.cos(t)) / np.minimum(t * t, 1.0)
        radii = np.concatenate([radii, 2 * t[accept * 1.2 < wave]])
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    scaled: Doubles = radii[:count, None] * direction
    return scaled
