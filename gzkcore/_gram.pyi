from numpy.typing import NDArray
from typing import Any

def add_moments(
    Z: NDArray[Any], R: NDArray[Any], first_fold: int, sums: NDArray[Any], scratch: NDArray[Any]
) -> None: ...
def recentre(sums: NDArray[Any], mean: NDArray[Any]) -> None: ...
def ridge_error(
    total: NDArray[Any],
    fold: NDArray[Any],
    leave_out: bool,
    kept: NDArray[Any],
    penalty: NDArray[Any],
    work: NDArray[Any],
    coef: NDArray[Any],
    error: NDArray[Any],
    want_trace: bool,
) -> tuple[int, float]: ...
