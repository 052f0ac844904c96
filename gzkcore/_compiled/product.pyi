from typing import Any

from numpy.typing import NDArray

def product_features(
    A: NDArray[Any],
    tree: NDArray[Any],
    columns: NDArray[Any],
    out: NDArray[Any],
    stream: bool,
    n_threads: int,
) -> None: ...
