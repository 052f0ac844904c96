from typing import Any

from numpy.typing import NDArray

def hadamard_projection(
    X: NDArray[Any],
    signs: NDArray[Any],
    rows: NDArray[Any],
    which: int,
    bits: int,
    scale: float,
    first: int,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
def hadamard_projection_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    signs: NDArray[Any],
    rows: NDArray[Any],
    which: int,
    bits: int,
    scale: float,
    first: int,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
def fast_jl_projection(
    X: NDArray[Any],
    signs: NDArray[Any],
    P: NDArray[Any],
    P_indices: NDArray[Any],
    P_indptr: NDArray[Any],
    bits: int,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
def fast_jl_projection_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    signs: NDArray[Any],
    P: NDArray[Any],
    P_indices: NDArray[Any],
    P_indptr: NDArray[Any],
    bits: int,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
