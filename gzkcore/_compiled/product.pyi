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
def product_columns(
    values: NDArray[Any],
    chosen: NDArray[Any],
    energy: NDArray[Any],
    order: NDArray[Any],
    work: NDArray[Any],
    products: NDArray[Any],
    columns: NDArray[Any],
) -> int: ...
