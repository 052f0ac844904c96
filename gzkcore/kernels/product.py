"""Products of kernels on groups of columns, such as sphere x time."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from gzkcore._util.state import holds, pairs, plain, sequence, stored, text
from gzkcore._util.typing import Data, Doubles, Rows
from gzkcore._util.validation import column_numbers

from .aliases import as_kernel
from .base import Kernel
from .points import check_rows_shape
from .tile_form import TileForm, multiplied, on_columns

__all__ = ["Product", "product_kernel"]

PartColumns: TypeAlias = int | str | slice | Sequence[int] | Sequence[str]
Parts: TypeAlias = str | Kernel | Sequence[tuple[PartColumns, str | Kernel]]


def product_kernel(values: Sequence[float]) -> float:
    """Multiply the values of the parts' kernels: k = k1 k2 ... kK.

    Parameters
    ----------
    values : sequence of K numbers
        k_i(x_i, y_i) of each part.

    Returns
    -------
    float

    Examples
    --------
    >>> from gzkcore.kernels.product import product_kernel
    >>> product_kernel([0.5, 0.5, 4.0])
    1.0
    """
    return math.prod(values)


class WithParts(BaseEstimator):
    """Kernels and features with parts, whose parameters are `kernel0`, `kernel0__gamma`, ..."""

    _state = stored(parts=text() | holds(Kernel) | sequence(pairs(plain() | holds(Kernel))))

    parts: Parts

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, those of the kernels too, as `kernel0__gamma`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, kernel in self._named_kernels().items():
                params[name] = kernel
                if isinstance(kernel, Kernel):
                    inner = kernel.get_params(deep=True)
                    params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Kernels of the parts are replaced by copies, never changed.

        Parameters
        ----------
        **params : dict
            `kernel0` replaces the kernel of the first part, `kernel0__gamma` its parameter; where
            `parts` is one kernel for all columns, the names are `kernel` and `kernel__gamma`.

        Returns
        -------
        self
        """
        if "parts" in params:
            self.parts = params.pop("parts")
        kernels = self._named_kernels()
        inner: dict[str, dict[str, Any]] = {}
        for name in list(params):
            head, separator, key = name.partition("__")
            if head in kernels:
                if separator:
                    inner.setdefault(head, {})[key] = params.pop(name)
                else:
                    kernels[head] = params.pop(name)
        for head, values in inner.items():
            kernels[head] = clone(as_kernel(kernels[head])).set_params(**values)
        super().set_params(**params)
        if isinstance(self.parts, (str, Kernel)):
            self.parts = kernels["kernel"]
        elif kernels != self._named_kernels():
            self.parts = [
                (columns, kernels[f"kernel{i}"]) for i, (columns, _) in enumerate(self.parts)
            ]
        return self

    def _named_kernels(self) -> dict[str, Any]:
        if isinstance(self.parts, (str, Kernel)):
            return {"kernel": self.parts}
        try:
            pairs = _pairs(self.parts)
        except ValueError:  # `fit` raises it
            return {}
        return {f"kernel{i}": kernel for i, (_, kernel) in enumerate(pairs)}


def column_scales(kernel: Kernel, width: int) -> Doubles:
    """Return the factor by which a kernel, or its part, multiplies each column."""
    if not isinstance(kernel, OfParts):
        return np.asarray(np.broadcast_to(kernel.scale(), width), dtype=np.float64)
    scales = np.zeros(width)
    for index, part in kernel.parts_of(width):
        scales[index] = np.maximum(scales[index], column_scales(part, len(index)))
    return scales


def _pairs(parts: Any) -> list[tuple[PartColumns, str | Kernel]]:
    """Return parts as a list of (columns, kernel), or raise."""
    try:
        pairs = [(columns, kernel) for columns, kernel in parts]
    except (TypeError, ValueError):
        pairs = []
    if not pairs or any(isinstance(columns, Kernel) for columns, _ in pairs):
        raise ValueError(
            f"parts={parts!r} must be a list of (columns, kernel), such as "
            "[([0, 1, 2], 'gaussian'), ([3, 4], 'gaussian')], or a kernel for every column"
        )
    return pairs


class OfParts(WithParts, Kernel):
    """A kernel made of the kernels of its parts, which `_combined` multiplies or adds."""

    rotation_invariant: ClassVar[bool] = False

    def parts_of(
        self, width: int, names: ArrayLike | None = None
    ) -> list[tuple[list[int], Kernel]]:
        """Return (column indices, kernel) of each part, given the number of columns."""
        parts = self.parts
        if isinstance(parts, (str, Kernel)):
            parts = [(column, parts) for column in range(width)]
        return [
            (column_numbers(f"part {k}", columns, width, names), as_kernel(kernel))
            for k, (columns, kernel) in enumerate(_pairs(parts))
        ]

    def _combined(self, width: int, values: Callable[[list[int], Kernel], Doubles]) -> Doubles:
        """Return the kernel's values, given the number of columns and the values of a part."""
        raise NotImplementedError

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return the matrices of the parts, combined."""
        return self._combined(
            X.shape[1],
            lambda index, kernel: kernel(X[:, index], None if X is Y else Y[:, index]),
        )

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        rows = _indexable(X)
        return self._combined(rows.shape[1], lambda index, kernel: kernel.diag(rows[:, index]))


class Product(OfParts):
    """Product kernel k(x, y) = prod_k kernel_k(x[columns_k], y[columns_k]).

    Parameters
    ----------
    parts : list of (columns, kernel), or a kernel
        As for `ProductFeatures`. Names of columns work only in features and learners, which are
        fitted to a DataFrame.

    Examples
    --------
    >>> from gzkcore import Gaussian, Product
    >>> kernel = Product([([0, 1], Gaussian(0.5)), (2, Gaussian(2.0))])
    >>> kernel([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.5]]).round(6)
    array([[0.367879]])
    >>> kernel.set_params(kernel1__gamma=4.0)([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.5]]).round(6)
    array([[0.22313]])
    """

    instead: ClassVar[str] = "its features are ProductFeatures(parts)"

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> "Product":
        """Return a copy with columns as lists of numbers, and kernels resolved on them.

        Columns may be given by their `names`.
        """
        labels = None if names is None else np.asarray(names)
        return Product([
            (index, kernel.resolve(X[:, index], None if labels is None else labels[index]))
            for index, kernel in self.parts_of(X.shape[1], names)
        ])  # fmt: skip

    def _combined(self, width: int, values: Callable[[list[int], Kernel], Doubles]) -> Doubles:
        product: Any = 1.0
        for part in self.parts_of(width):
            product *= values(*part)
        return np.asarray(product)

    def tile_form(self, dim: int) -> TileForm | None:
        """Return the product of the parts' forms, on their columns.

        None if a part has none, or if sums among the parts multiply to too many terms.
        """
        forms = []
        for index, kernel in self.parts_of(dim):
            form = kernel.tile_form(len(index))
            if form is None:
                return None
            forms.append(on_columns(form, index))
        return multiplied(forms)


def _indexable(X: Data) -> Any:
    """Return rows whose columns can be indexed, dense or sparse, or raise."""
    rows = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    check_rows_shape(rows.shape)
    return rows
