from typing import Any

from numpy.typing import NDArray

def cos_sin_rows(
    half_turns: NDArray[Any], scale: float, cosines: NDArray[Any], sines: NDArray[Any], stream: bool
) -> None: ...
def fourier_features(
    X: NDArray[Any],
    W: NDArray[Any],
    pairs: int,
    phase: float,
    scale: float,
    out: NDArray[Any],
    blas: bool,
    stream: bool,
    n_threads: int,
) -> None: ...
def fourier_features_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    W: NDArray[Any],
    pairs: int,
    phase: float,
    scale: float,
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
