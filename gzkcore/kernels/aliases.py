"""Kernels by name."""

import difflib
from collections.abc import Callable
from typing import Any, Self

from sklearn.base import BaseEstimator

from gzkcore._util.state import holds, stored, text

from .base import Kernel
from .dot_product import ExponentialDot, Polynomial
from .shift_invariant import Exponential, Gaussian, Laplacian, Matern, RationalQuadratic, Spherical
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
    question = f" (did you mean {near[0]!r}?)" if near else ""
    raise ValueError(
        f"kernel={kernel!r} is unknown{question}; use one of {sorted(ALIASES)} or an instance from "
        "gzkcore.kernels"
    )


class WithKernel(BaseEstimator):
    """Estimators with a parameter `kernel`, which may be an alias."""

    _state = stored(kernel=(text() | holds(Kernel)).if_there())

    kernel: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__gamma` on an alias first replaces it by its instance."""
        kernel = params.get("kernel", self.kernel)
        named = any(name.startswith("kernel__") for name in params)
        if named and (isinstance(kernel, type) or not callable(kernel)):
            params["kernel"] = as_kernel(kernel)
        super().set_params(**params)
        return self
