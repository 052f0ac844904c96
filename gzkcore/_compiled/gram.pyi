from typing import Any

from numpy.typing import NDArray

def add_moments(Z: NDArray[Any], R: NDArray[Any], first_fold: int, sums: NDArray[Any]) -> None: ...
def recentre(sums: NDArray[Any], mean: NDArray[Any]) -> None: ...
def mirror(gram: NDArray[Any], m: int) -> None: ...
def solve_ridge(
    sums: NDArray[Any],
    kept: NDArray[Any],
    penalty: NDArray[Any],
    work: NDArray[Any],
    coef: NDArray[Any],
    want_trace: bool,
) -> tuple[int, float]: ...
