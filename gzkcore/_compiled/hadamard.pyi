from typing import Any

from numpy.typing import NDArray

def hadamard_transform(X: NDArray[Any], out: NDArray[Any], n_threads: int) -> None: ...
