from typing import Any

from numpy.typing import NDArray

def poly_sketch(
    X: NDArray[Any],
    scale: NDArray[Any],
    last: float,
    degree: int,
    hashes: NDArray[Any],
    signs: NDArray[Any],
    node_signs: NDArray[Any],
    places: NDArray[Any],
    gaussian: bool,
    first: int,
    count: int,
    log_factor: float,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def poly_sketch_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    scale: NDArray[Any],
    last: float,
    degree: int,
    hashes: NDArray[Any],
    signs: NDArray[Any],
    node_signs: NDArray[Any],
    places: NDArray[Any],
    gaussian: bool,
    first: int,
    count: int,
    log_factor: float,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
