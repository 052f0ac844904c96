"""Kernels that a block of coordinates can stand for: functions of sum_j |x_j - y_j|^p."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Floats
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
    Spherical,
)

# Functions of sum_j |x_j - y_j|^2 that are mixtures of Gaussians.
MIXTURES = (Gaussian, Exponential, Matern, RationalQuadratic)


def check_additive(kernel: Kernel) -> None:
    """Raise unless a block can stand for the whole row."""
    if isinstance(kernel, (*MIXTURES, Laplacian, Spherical)):
        return
    raise ValueError(
        f"{kernel!r} is no function of sum_j |x_j - y_j|^p, so that a block of coordinates cannot "
        "stand for the whole row; use Gaussian, Exponential, Matern, RationalQuadratic or "
        "Laplacian here, or GegenbauerFeatures or ProductFeatures for this kernel"
    )


def power_of(kernel: Kernel) -> int:
    """Return p of the sum_j |x_j - y_j|^p that the kernel is a function of."""
    return 1 if isinstance(kernel, Laplacian) else 2


def kernel_of_sums(kernel: Any, sums: Floats, stretch: float = 1.0) -> Doubles:
    """Return the kernel at sums over scaled coordinates, `stretch` times as far apart."""
    if isinstance(kernel, Gaussian):
        return kernel.profile_of_sums(stretch**2 * np.asarray(sums, dtype=np.float64))
    distances = sums if power_of(kernel) == 1 else np.sqrt(sums)
    values: Doubles = kernel.profile(stretch * distances)
    return values


def draw_frequencies(
    kernel: Kernel, buckets: NDArray[np.intp], sizes: NDArray[np.intp], rng: np.random.Generator
) -> Doubles:
    """Draw a frequency for each scaled coordinate, with the scale of its block, (D / b)^(1 / p)."""
    dim, n_blocks = buckets.size, sizes.size
    if isinstance(kernel, Laplacian):
        return rng.standard_cauchy(dim) * (dim / sizes)[buckets]
    if isinstance(kernel, Spherical):
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
