from typing import Any

from numpy.typing import NDArray

def poisson(
    y: NDArray[Any],
    f: NDArray[Any],
    values: NDArray[Any] | None,
    slopes: NDArray[Any] | None,
    curvatures: NDArray[Any] | None,
    n_threads: int,
) -> None: ...
def logistic(
    y: NDArray[Any],
    f: NDArray[Any],
    values: NDArray[Any] | None,
    slopes: NDArray[Any] | None,
    curvatures: NDArray[Any] | None,
    n_threads: int,
) -> None: ...
def huber(
    y: NDArray[Any],
    f: NDArray[Any],
    width: float,
    values: NDArray[Any] | None,
    slopes: NDArray[Any] | None,
    curvatures: NDArray[Any] | None,
    n_threads: int,
) -> None: ...
def smoothed_pinball(
    y: NDArray[Any],
    f: NDArray[Any],
    dual: NDArray[Any] | None,
    quantile: float,
    width: float,
    inside: float,
    values: NDArray[Any] | None,
    slopes: NDArray[Any] | None,
    curvatures: NDArray[Any] | None,
    n_threads: int,
) -> None: ...
def softmax(
    y: NDArray[Any],
    f: NDArray[Any],
    values: NDArray[Any] | None,
    slopes: NDArray[Any] | None,
    shares: NDArray[Any] | None,
    n_threads: int,
) -> None: ...
