from typing import Any

from numpy.typing import NDArray

def harmonic_features(
    X: NDArray[Any],
    radial: NDArray[Any],
    run_axis: NDArray[Any],
    run_start: NDArray[Any],
    up: NDArray[Any],
    down: NDArray[Any],
    which: NDArray[Any],
    parent: NDArray[Any],
    scale: NDArray[Any],
    n_powers: int,
    of: NDArray[Any],
    ring: NDArray[Any],
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
