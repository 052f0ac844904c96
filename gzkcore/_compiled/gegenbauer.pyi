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
def strip_columns() -> int: ...
def apply_operator(
    X: NDArray[Any],
    W: NDArray[Any],
    radial: NDArray[Any],
    v: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def apply_adjoint(
    X: NDArray[Any],
    W: NDArray[Any],
    radial: NDArray[Any],
    f: NDArray[Any],
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
