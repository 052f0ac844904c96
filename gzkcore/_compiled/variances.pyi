from typing import Any

from numpy.typing import NDArray

def fourier_variance(
    k: NDArray[Any],
    k_double: NDArray[Any],
    n_components: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def energy_variance(
    delta: NDArray[Any],
    n_blocks: int,
    stratified: bool,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def projection_variance(
    delta: NDArray[Any],
    n_blocks: int,
    stratified: bool,
    normal: bool,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def kernel_moments(
    kernel: int,
    mean: NDArray[Any],
    std: NDArray[Any],
    n_frequencies: int,
    printed: bool,
    means: NDArray[Any],
    variances: NDArray[Any],
    n_threads: int,
) -> None: ...
def projection_moments(
    mean: NDArray[Any],
    std: NDArray[Any],
    n_components: int,
    printed: bool,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def maclaurin_variance(
    X: NDArray[Any],
    Y: NDArray[Any],
    coefficients: NDArray[Any],
    probabilities: NDArray[Any],
    n_components: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def tensor_sketch_variance(
    X: NDArray[Any],
    Y: NDArray[Any],
    degree: int,
    n_components: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def poly_sketch_variance(
    X: NDArray[Any],
    Y: NDArray[Any],
    degree: int,
    n_components: int,
    width: int,
    n_nonzeros: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def hadamard_projection_variance(
    X: NDArray[Any],
    Y: NDArray[Any],
    padded: int,
    n_components: int,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
def fast_jl_variance(
    X: NDArray[Any],
    Y: NDArray[Any],
    padded: int,
    n_components: int,
    density: float,
    out: NDArray[Any],
    n_threads: int,
) -> None: ...
