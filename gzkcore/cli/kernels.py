"""Kernels with one lengthscale, by name, for `--kernel` and `--gamma` of `gzkcore fit`."""

import difflib
import math
from collections.abc import Sequence
from typing import Any

from gzkcore._util.typing import Doubles
from gzkcore.kernels.shift_invariant import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
)

GAUSSIAN, MATERN = "gaussian", "matern"
NAMES = ("exponential", GAUSSIAN, "laplacian", MATERN, "rational_quadratic")


def check_name(name: str) -> None:
    """Raise ValueError unless a kernel with one lengthscale has this name."""
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, 1)
        raise ValueError(
            f"--kernel {name} is unknown to fit"
            + (f" (did you mean {close[0]!r}?)" if close else "")
            + f"; use one of {', '.join(NAMES)}"
        )


def with_length(name: str, length: float) -> Any:
    """Return the kernel of a name with this lengthscale; a Matern kernel has nu = 3/2."""
    match name:
        case "exponential":
            return Exponential(1 / length)
        case "laplacian":
            return Laplacian(1 / length)
        case "matern":
            return Matern(1.5, length)
        case "rational_quadratic":
            return RationalQuadratic(length_scale=length)
    return Gaussian(1 / (2 * length**2))


def length_of(gamma: float) -> float:
    """Return the lengthscale that gamma = 1 / (2 lengthscale^2) stands for."""
    return 1 / math.sqrt(2 * gamma)


def with_gamma(name: str, gamma: float) -> Any:
    """Return the kernel of a name with the lengthscale that gamma stands for."""
    return with_length(name, length_of(gamma))


def asked_gamma(gamma: str, X: Doubles) -> float | None:
    """Return the number or, by the rule scale, 1 / the variance of rows; None of auto."""
    if gamma == "auto":
        return None
    return float(1 / X.var(axis=0).sum()) if gamma == "scale" else float(gamma)


def grid(name: str, lengths: list[float]) -> dict[str, Sequence[Any]]:
    """Return what to search over for these lengthscales."""
    parameter = "length_scale" if name in (MATERN, "rational_quadratic") else "gamma"
    return {parameter: [float(getattr(with_length(name, each), parameter)) for each in lengths]}


def gamma_of(kernel: Any) -> float:
    """Return 1 / (2 lengthscale^2) of one of these kernels."""
    if not hasattr(kernel, "gamma"):
        return 1 / (2 * float(kernel.length_scale) ** 2)
    gamma = float(kernel.gamma)
    return gamma if isinstance(kernel, Gaussian) else gamma**2 / 2
