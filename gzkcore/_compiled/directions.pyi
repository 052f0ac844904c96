from typing import Any

from numpy.typing import NDArray

def iid_directions(
    normals: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def orthogonal_directions(
    rows: NDArray[Any],
    n_threads: int,
) -> int: ...
def fibonacci_directions(
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def modified_weights(
    frequencies: NDArray[Any],
    radius: float,
    outside: float,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
