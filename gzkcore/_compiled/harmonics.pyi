from typing import Any

from numpy.typing import NDArray

def harmonic_features(
    X: NDArray[Any],
    radial: NDArray[Any],
    runs: NDArray[Any],
    steps: NDArray[Any],
    tree: NDArray[Any],
    tree_scale: NDArray[Any],
    n_powers: int,
    columns: NDArray[Any],
    scale: NDArray[Any],
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
