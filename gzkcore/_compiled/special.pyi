from typing import Any

from numpy.typing import NDArray

def gegenbauer(
    degree: int, dim: int, t: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None: ...
def rodrigues(
    factors: NDArray[Any], t: NDArray[Any], out: NDArray[Any], n_threads: int
) -> None: ...
