"""Weighted sums of kernels on groups of columns: additive models, signals on several scales."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.typing import Doubles, Rows

from .base import Kernel
from .product import OfParts, Parts, Product
from .tile_form import TileForm, on_columns

__all__ = ["Sum"]


class Sum(OfParts):
    """Sum of kernels k(x, y) = sum_k weights_k kernel_k(x[columns_k], y[columns_k]).

    Parameters
    ----------
    parts : list of (columns, kernel), or a kernel
        As for `Product`. A single kernel gives an additive model, with this kernel for each column.
        A column may be in several parts; `slice(None)` means all columns.
    weights : array-like of shape (n_parts,), optional
        > 0; None: ones.

    Notes
    -----
    `NystromFeatures` and `KernelOperator` accept it; other features do not.

    Examples
    --------
    >>> from gzkcore import Gaussian, Sum
    >>> kernel = Sum([([0], Gaussian(0.5)), (slice(None), Gaussian(2.0))], weights=[3.0, 1.0])
    >>> kernel([[0.0, 0.0]], [[0.0, 1.0]]).round(6)  # 3 + exp(-2)
    array([[3.135335]])
    """

    instead: ClassVar[str] = "it has features of each part, side by side; NystromFeatures takes it"

    def __init__(self, parts: Parts, weights: Sequence[float] | Doubles | None = None) -> None:
        self.parts = parts
        self.weights = weights

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> "Sum":
        """Return a copy with resolved parts, see `Product.resolve`."""
        parts = Product(self.parts).resolve(X, names).parts
        return Sum(parts, self.weights_of(len(parts)))

    def weights_of(self, count: int) -> Doubles:
        """Return the checked weights, given the number of parts."""
        if self.weights is None:
            return np.ones(count)
        weights = np.asarray(self.weights)
        if weights.shape != (count,) or weights.dtype.kind not in "iuf" or not (
            np.isfinite(weights).all() and (weights > 0).all()
        ):  # fmt: skip
            raise ValueError(
                f"weights={self.weights!r} must be {count} numbers > 0, one for each part"
            )
        return weights.astype(np.float64)

    def _weighted(self, width: int) -> list[tuple[float, list[int], Kernel]]:
        parts = self.parts_of(width)
        weights = self.weights_of(len(parts)).tolist()
        return [(weight, *part) for weight, part in zip(weights, parts, strict=True)]

    def _combined(self, width: int, values: Callable[[list[int], Kernel], Doubles]) -> Doubles:
        total: Any = 0.0
        for weight, index, kernel in self._weighted(width):
            total += weight * values(index, kernel)
        return np.asarray(total)

    def tile_form(self, dim: int) -> TileForm | None:
        """Return the parts' terms on their columns; None if a part has none."""
        terms: TileForm = []
        for weight, index, kernel in self._weighted(dim):
            form = kernel.tile_form(len(index))
            if form is None:
                return None
            form = on_columns(form, index)
            terms += [replace(term, weight=weight * term.weight) for term in form]
        return terms
