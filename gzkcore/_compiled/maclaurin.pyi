from typing import Any

from numpy.typing import NDArray

def maclaurin_features(
    X: NDArray[Any],
    W: NDArray[Any],
    counts: NDArray[Any],
    weights: NDArray[Any],
    envelope: NDArray[Any],
    out: NDArray[Any],
    blas: bool,
    n_threads: int,
) -> None: ...
