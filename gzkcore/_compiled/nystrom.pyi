from typing import Any

from numpy.typing import NDArray

def accept_pivots(
    rest: NDArray[Any],
    levels: NDArray[Any],
    nothing: float,
    kept: NDArray[Any],
) -> int: ...
def accept_distances(
    apart: NDArray[Any],
    left: NDArray[Any],
    levels: NDArray[Any],
    nothing: float,
    kept: NDArray[Any],
) -> int: ...
