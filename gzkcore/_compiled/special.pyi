from typing import Any

from numpy.typing import NDArray

def gegenbauer(
    degree: int, dim: int, t: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None: ...
def gegenbauer_coefficients(degree: int, dim: int, out: NDArray[Any]) -> None: ...
def rodrigues(
    degree: int,
    dim: int,
    t: NDArray[Any],
    factors: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def alpha(degrees: NDArray[Any], dim: int, out: NDArray[Any], n_threads: int) -> None: ...
def log_alpha(degrees: NDArray[Any], dim: int, out: NDArray[Any], n_threads: int) -> None: ...
def exact_alpha(degree: int, dim: int) -> int: ...
def n_harmonics(degree: int, dim: int) -> int: ...
def mu(
    degrees: NDArray[Any], powers: NDArray[Any], dim: int, out: NDArray[Any], n_threads: int
) -> None: ...
def log_mu(
    degrees: NDArray[Any], powers: NDArray[Any], dim: int, out: NDArray[Any], n_threads: int
) -> None: ...
def log_squared_coefficients(
    degrees: NDArray[Any],
    orders: NDArray[Any],
    log_derivatives: NDArray[Any],
    dim: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
