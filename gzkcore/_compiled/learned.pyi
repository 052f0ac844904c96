from typing import Any

from numpy.typing import NDArray

def distance_sums(
    W: NDArray[Any],
    x: NDArray[Any],
    sums: NDArray[Any],
    num_threads: int,
) -> None: ...
