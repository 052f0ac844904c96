"""Kernels by name."""

import contextlib
from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from gzkcore._util.arguments import with_remedies
from gzkcore._util.state import holds, stored, text
from gzkcore._util.wording import meant, shortened

from .base import Kernel
from .dot_product import ExponentialDot, Polynomial
from .shift_invariant import Exponential, Gaussian, Laplacian, Matern, RationalQuadratic, Spherical
from .zonal import ArcCosine, NeuralTangent

__all__ = ["as_kernel"]

ALIASES: dict[str, type[Kernel]] = {
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
    raise ValueError(
        f"kernel={kernel!r} is unknown{meant(kernel, ALIASES)}; use one of {sorted(ALIASES)} or "
        "an instance from gzkcore.kernels"
    )


class WithKernel(BaseEstimator):
    """Estimators with a parameter `kernel`, which may be an alias."""

    _state = stored(kernel=(text() | holds(Kernel)).if_there())

    kernel: Any

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            cls.__init__ = with_remedies(cls.__init__)  # type: ignore[method-assign]

    def _instead_of(self, name: str, value: Any, given: Mapping[str, Any]) -> str:
        """Return a kernel that has a parameter of this name, if there is one."""
        for kernel in (given.get("kernel", "gaussian"), "matern"):
            with contextlib.suppress(TypeError, ValueError):
                same = clone(as_kernel(kernel)).set_params(**{name: value})
                return f"Pass it to the kernel: kernel={shortened(repr(same))}"
        return ""

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `kernel__gamma` on an alias first replaces it by its instance."""
        kernel = params.get("kernel", self.kernel)
        named = any(name.startswith("kernel__") for name in params)
        if named and (isinstance(kernel, type) or not callable(kernel)):
            params["kernel"] = as_kernel(kernel)
        super().set_params(**params)
        return self
