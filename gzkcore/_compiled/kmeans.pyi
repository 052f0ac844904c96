from typing import Any

from numpy.typing import NDArray

def nearest_centers(
    V: NDArray[Any],
    products: NDArray[Any],
    squares: NDArray[Any],
    weights: NDArray[Any],
    labels: NDArray[Any],
    counts: NDArray[Any],
    sums: NDArray[Any],
    inertia: NDArray[Any],
) -> float: ...
