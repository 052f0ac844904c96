"""Names for the types that several modules use; shapes and units are in the docstrings."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

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


# What a kernel is, see `gzkcore.kernels`.
Family: TypeAlias = Literal["dot product", "angular", "radial", "general"]


class SeriesKernel(Protocol):
    """What radial functions ask of every resolved kernel; its family says what else there is."""

    @property
    def family(self) -> Family | None: ...
    @property
    def instead(self) -> str: ...
    @property
    def unit_sphere(self) -> bool: ...
    def scale(self) -> float | Doubles: ...
    def diagonal(self, norms: ArrayLike) -> Doubles: ...


class TaylorKernel(SeriesKernel, Protocol):
    """A "dot product" kernel."""

    def log_derivative(self, orders: ArrayLike) -> Doubles: ...
    def log_envelope(self, norms: ArrayLike) -> Doubles: ...
    def n_derivatives(self) -> int | None: ...


class AngleKernel(SeriesKernel, Protocol):
    """An "angular" kernel."""

    @property
    def power(self) -> int: ...
    def n_coefficients(self) -> int | None: ...
    def series(self, dim: int, degree: int) -> Doubles: ...
    def noise(self, dim: int, degree: int) -> float: ...
    def at_one(self, dim: int) -> float: ...


class DistanceKernel(SeriesKernel, Protocol):
    """A "radial" kernel."""

    def profile(self, distances: Doubles) -> Doubles: ...


class FunctionsKernel(SeriesKernel, Protocol):
    """A "general" kernel."""

    def radial_values(self, norms: ArrayLike) -> Doubles: ...
