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
    metric: int,
    profile: int,
    coefficients: NDArray[Any],
    offset: float,
    reach: float,
    symmetric: bool,
    out: NDArray[Any],
    groups: int,
    n_tiles: NDArray[Any],
    n_threads: int,
) -> None: ...
def tile_rows() -> int: ...
