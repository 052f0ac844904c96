"""Kernels by name."""

import difflib
from collections.abc import Callable

from .base import Kernel
from .dot_product import ExponentialDot, Polynomial
from .shift_invariant import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
    Spherical,
)
from .zonal import ArcCosine, NeuralTangent

__all__ = ["as_kernel"]

ALIASES: dict[str, Callable[[], Kernel]] = {
    "arccosine": ArcCosine,
    "exponential": Exponential,
    "exponential_dot": ExponentialDot,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "ntk": NeuralTangent,
    "polynomial": Polynomial,
    "rational_quadratic": RationalQuadratic,
    "rbf": Gaussian,
    "spherical": Spherical,
}


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel for an alias, or the kernel itself."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in ALIASES:
        return ALIASES[kernel]()
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        name = kernel.__name__
        raise TypeError(f"kernel={name} is a class; use an instance, {name}()")
    near = difflib.get_close_matches(str(kernel).lower(), ALIASES, 1) if kernel else []
    raise ValueError(
        f"kernel={kernel!r} is unknown"
        + (f" (did you mean {near[0]!r}?)" if near else "")
        + f"; use one of {sorted(ALIASES)} or an instance from gzkcore.kernels"
    )
