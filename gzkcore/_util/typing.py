"""Names for the types that several modules use; shapes and units are in the docstrings."""

from collections.abc import Callable
from typing import Any, TypeAlias

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

# What hears of progress: a kind of work, the share of it that is done (None: unknown), and, if
# there is more to say, what is done now.
OnProgress: TypeAlias = Callable[..., None]
