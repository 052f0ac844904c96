from typing import Any

from numpy.typing import NDArray

def nearest_before(
    leaves: NDArray[Any],
    boxes: NDArray[Any],
    first_rank: NDArray[Any],
    ranks: NDArray[Any],
    n_rows: int,
    neighbours: NDArray[Any],
    n_threads: int,
) -> None: ...
def nearest(
    points: NDArray[Any],
    leaves: NDArray[Any],
    boxes: NDArray[Any],
    first_rank: NDArray[Any],
    ranks: NDArray[Any],
    found: NDArray[Any],
    n_threads: int,
) -> None: ...
def spread(
    points: NDArray[Any],
    density: NDArray[Any],
    first: int,
    distances: NDArray[Any],
    chosen: NDArray[Any],
) -> None: ...
def sparse_factor(
    X: NDArray[Any],
    Z: NDArray[Any],
    neighbours: NDArray[Any],
    seen: NDArray[Any],
    noise: NDArray[Any],
    weights: NDArray[Any],
    factors: NDArray[Any],
    numbers: NDArray[Any],
    coefficients: NDArray[Any],
    values: NDArray[Any],
    at_seen: NDArray[Any],
    n_threads: int,
) -> None: ...
def multiply(
    values: NDArray[Any],
    neighbours: NDArray[Any],
    V: NDArray[Any],
    start: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def multiply_transposed(
    values: NDArray[Any],
    starts: NDArray[Any],
    rows: NDArray[Any],
    places: NDArray[Any],
    V: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def multiply_seen(
    values: NDArray[Any],
    seen: NDArray[Any],
    V: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def multiply_seen_transposed(
    values: NDArray[Any],
    starts: NDArray[Any],
    rows: NDArray[Any],
    places: NDArray[Any],
    V: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def gram_of_seen(
    values: NDArray[Any],
    seen: NDArray[Any],
    starts: NDArray[Any],
    rows: NDArray[Any],
    places: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
