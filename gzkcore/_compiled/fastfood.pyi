from typing import Any

from numpy.typing import NDArray

def fastfood_features(
    X: NDArray[Any],
    signs: NDArray[Any],
    permutation: NDArray[Any],
    normals: NDArray[Any],
    lengths: NDArray[Any],
    pairs: int,
    phase: float,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
def fastfood_features_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    signs: NDArray[Any],
    permutation: NDArray[Any],
    normals: NDArray[Any],
    lengths: NDArray[Any],
    pairs: int,
    phase: float,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
