from typing import Any

from numpy.typing import NDArray

def kernel_product(
    X: NDArray[Any],
    X_centers: NDArray[Any],
    X_radii: NDArray[Any],
    Y: NDArray[Any],
    Y_centers: NDArray[Any],
    Y_radii: NDArray[Any],
    V: NDArray[Any],
    factors: NDArray[Any],
    numbers: NDArray[Any],
    coefficients: NDArray[Any],
    far: float,
    symmetric: bool,
    out: NDArray[Any],
    n_threads: int,
) -> int: ...
def kernel_matrix(
    X: NDArray[Any],
    X_centers: NDArray[Any],
    X_radii: NDArray[Any],
    X_order: NDArray[Any],
    Y: NDArray[Any],
    Y_centers: NDArray[Any],
    Y_radii: NDArray[Any],
    Y_order: NDArray[Any],
    factors: NDArray[Any],
    numbers: NDArray[Any],
    coefficients: NDArray[Any],
    far: float,
    symmetric: bool,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def kernel_slopes(
    X: NDArray[Any],
    X_centers: NDArray[Any],
    Y: NDArray[Any],
    Y_centers: NDArray[Any],
    A: NDArray[Any],
    B: NDArray[Any],
    factors: NDArray[Any],
    slopes: NDArray[Any],
    numbers: NDArray[Any],
    coefficients: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def tile_rows() -> int: ...
def most_factors() -> int: ...
