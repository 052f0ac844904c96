from typing import Any

from numpy.typing import NDArray

def count_sketch(
    X: NDArray[Any],
    hashes: NDArray[Any],
    signs: NDArray[Any],
    scale: float,
    out: NDArray[Any],
    n_threads: int,
) -> int: ...
def count_sketch_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    hashes: NDArray[Any],
    signs: NDArray[Any],
    scale: float,
    out: NDArray[Any],
    n_threads: int,
) -> int: ...
def tensor_sketch(
    X: NDArray[Any],
    hashes: NDArray[Any],
    signs: NDArray[Any],
    roots: NDArray[Any],
    last: float,
    m: int,
    first: int,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
def tensor_sketch_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    d: int,
    hashes: NDArray[Any],
    signs: NDArray[Any],
    roots: NDArray[Any],
    last: float,
    m: int,
    first: int,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
