from typing import Any

from numpy.typing import NDArray

def block_projection(
    X: NDArray[Any],
    buckets: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    apart: bool,
    stream: bool,
    n_threads: int,
) -> bool: ...
def block_fourier_features(
    X: NDArray[Any],
    buckets: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    apart: bool,
    scale: float,
    phase: float,
    stream: bool,
    n_threads: int,
) -> bool: ...
def block_projection_csr(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    buckets: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> bool: ...
def block_fourier_features_csr(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    buckets: NDArray[Any],
    weights: NDArray[Any],
    out: NDArray[Any],
    scale: float,
    phase: float,
    stream: bool,
    n_threads: int,
) -> bool: ...
