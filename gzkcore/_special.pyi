from numpy.typing import NDArray
from typing import Any

def gegenbauer(degree: int, dim: int, t: NDArray[Any], out: NDArray[Any], n_threads: int) -> None: ...
