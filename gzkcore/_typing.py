"""Names for the types that several modules use; shapes and units are in the docstrings."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, csr_matrix

# Arrays of one type, and of float32 or float64.
Doubles: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.floating[Any]]
Integers: TypeAlias = NDArray[np.intp]

# A function of a variable in [-1, 1], from arrays to arrays of the same shape.
Function: TypeAlias = Callable[[Doubles], ArrayLike]

# What users pass as data, and what is left of it after validation.
Data: TypeAlias = ArrayLike | csr_matrix | csr_array
Rows: TypeAlias = Floats | csr_matrix | csr_array

# What can seed random draws.
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | np.random.SeedSequence | None


class SeriesKernel(Protocol):
    """What `gzkcore.series` asks of a resolved kernel; every `gzkcore.kernels.Kernel` has it.

    A kernel on the unit sphere answers `series`, `noise` and `at_one`, any other one
    `log_derivative` and `log_envelope`.
    """

    @property
    def unit_sphere(self) -> bool: ...
    def scale(self) -> float | Doubles: ...
    def log_derivative(self, orders: ArrayLike) -> Doubles: ...
    def log_envelope(self, norms: ArrayLike) -> Doubles: ...
    def series(self, dim: int, degree: int) -> Doubles: ...
    def noise(self, dim: int, degree: int) -> float: ...
    def at_one(self, dim: int) -> float: ...
