from typing import Any

from numpy.typing import NDArray

def radial_table(
    log_c: NDArray[Any],
    norms: NDArray[Any],
    envelope: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def interpolate(
    table: NDArray[Any],
    norms: NDArray[Any],
    low: float,
    high: float,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def zonal_sum(
    coefficients: NDArray[Any],
    dim: int,
    t: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def polar(
    X: NDArray[Any],
    center: NDArray[Any],
    scale: NDArray[Any],
    unit: NDArray[Any],
    norms: NDArray[Any],
    n_threads: int,
) -> None: ...
def gegenbauer_rule(
    t: NDArray[Any], weights: NDArray[Any], dim: int, out: NDArray[Any], n_threads: int
) -> None: ...
def taylor_series(taylor: NDArray[Any], dim: int, out: NDArray[Any], n_threads: int) -> None: ...
def angular_energy(
    degree: int,
    a: NDArray[Any],
    b: NDArray[Any],
    dim: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def generalized_zonal(
    h: NDArray[Any],
    g: NDArray[Any],
    t: NDArray[Any],
    dim: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
