from typing import Any

from numpy.typing import NDArray

def gegenbauer_features(
    X: NDArray[Any],
    W: NDArray[Any],
    coefficients: NDArray[Any],
    beta: NDArray[Any],
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
