"""The training rows of a kernel ridge regression, and checks of kernels on them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gzkcore._util.memory import check_fits_dense
from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import dense, raise_asymmetric
from gzkcore.features.base import check_unit
from gzkcore.features.fit_rows import FitRows
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import FunctionKernel, Precomputed
from gzkcore.rows.survey import without_zeros

from .solve import NotPositiveDefinite
from .system import TRIED_ROWS

# A smaller weight has an inverse beyond the range of doubles, or nearly.
SMALLEST_WEIGHT = 1e-300

WRONG_MATRIX = (
    "pass k(X, X) of the same rows in the same order, or (X + X.T) / 2 if it is off by rounding"
)
WRONG_FUNCTION = "pass a function with k(x, y) = k(y, x)"


@dataclass
class TrainingRows:
    """Rows of positive weight with their targets, in memory."""

    X: Rows
    y: Doubles  # (n, n_targets)
    weight: Doubles | None
    # The targets of all rows, also of weight 0, and the numbers of these rows among them. None:
    # these are all.
    of_all: tuple[Doubles, Integers] | None = None

    @classmethod
    def of(cls, X: Rows, y: Doubles, weight: Any) -> "TrainingRows":
        """Return a copy of checked rows, without those of weight 0."""
        check_inverses(weight)
        X, weight, used = without_zeros(X, weight)
        check_fits_dense(X)
        X = X.copy() if used is None else X
        if X.shape[0] == 0:
            raise ValueError("all sample weights are zero; give some rows a positive weight")
        y = y.reshape(len(y), -1)
        with np.errstate(over="ignore"):
            if not np.isfinite(np.square(y).sum(axis=0)).all():
                raise ValueError("y is so large that its squares overflow; scale it")
        return cls(X, y, weight) if used is None else cls(X, y[used], weight, (y, used))

    def part(self, rows: Integers) -> "TrainingRows":
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(self.X[rows], self.y[rows], weight)

    @property
    def noise(self) -> Doubles | None:
        """The diagonal of N: one over the weights."""
        return None if self.weight is None else 1.0 / self.weight

    def resolve(self, kernel: Kernel, names: Any = None) -> Any:
        """Return a kernel with every parameter a number, checked for these rows."""
        n, dim = self.X.shape
        if isinstance(kernel, Precomputed) and n != dim:
            raise ValueError(
                f"X has shape {self.X.shape}, but with kernel='precomputed' fit takes the square "
                "matrix of all pairs of rows, without rows of weight 0; pass k(X, X) to fit, and "
                "k(new, X) to predict"
            )
        if isinstance(kernel, Precomputed | FunctionKernel):
            diagonal = kernel.diag(self.X)
            row = int(np.argmin(diagonal))
            if diagonal[row] < 0:
                raise NotPositiveDefinite(
                    f"the kernel matrix has {diagonal[row]:.3g} on its diagonal, in row {row}, so "
                    "that it is not positive definite; use another kernel"
                )
        if isinstance(kernel, Precomputed):
            raise_asymmetric(dense(self.X), "X", WRONG_MATRIX)
        if isinstance(kernel, FunctionKernel):
            raise_asymmetric(kernel(dense(self.X[:: max(1, n // TRIED_ROWS)])), "K", WRONG_FUNCTION)
        if kernel.unit_sphere:
            check_unit(self.X)
        return FitRows.of_array(self.X, self.weight, self.y, names).resolve(kernel)


def check_inverses(weight: Doubles | None, unit: float = 1.0) -> None:
    """Raise if a weight, in this unit, is so small that its inverse overflows."""
    if weight is None:
        return
    small = np.flatnonzero((weight > 0) & (weight / unit < SMALLEST_WEIGHT))
    if small.size:
        raise ValueError(
            f"sample_weight[{small[0]}] = {weight[small[0]]:.3g} is too small, since the noise of "
            "a row is divided by its weight; use 0 to leave a row out"
        )
