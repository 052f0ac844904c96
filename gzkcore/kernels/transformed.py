"""Kernels of linearly mapped rows: the metric is a full matrix, not only one length per column."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.state import doubles, stored
from gzkcore._util.typing import Data, Doubles, Rows
from gzkcore._util.validation import check_matrix
from gzkcore._util.wording import counted

from .aliases import WithKernel, as_kernel
from .base import Kernel
from .points import double_rows

__all__ = ["Transformed"]


class Transformed(WithKernel, Kernel):
    """Kernel of linearly mapped rows, k(x, y) = kernel(matrix x, matrix y).

    For a radial kernel, matrix^T matrix is the metric of the distances (Mahalanobis).

    Parameters
    ----------
    kernel : str or Kernel
        Rules such as "scale" are resolved on the mapped rows.
    matrix : array-like of shape (n_mapped, n_features)

    Notes
    -----
    `KernelRidge` and `KernelOperator` map the rows once, and are then as fast as with `kernel`.
    `NystromFeatures` accepts this kernel; `RandomFourierFeatures` does if the matrix is square. For
    other features map the rows yourself, and pass `kernel`.

    Examples
    --------
    >>> from gzkcore import Gaussian, Transformed
    >>> kernel = Transformed(Gaussian(0.5), [[1.0, 1.0]])  # of sums of both columns
    >>> kernel([[0.0, 0.0]], [[1.0, -1.0], [1.0, 1.0]]).round(6)
    array([[1.      , 0.135335]])
    """

    _state = stored(matrix=doubles(None, None))

    rotation_invariant: ClassVar[bool] = False
    instead: ClassVar[str] = (
        "map the rows, X @ matrix.T, and use its kernel; NystromFeatures takes it"
    )

    def __init__(self, kernel: str | Kernel, matrix: ArrayLike) -> None:
        self.kernel = kernel
        self.matrix = matrix

    def resolve(self, X: Rows, names: ArrayLike | None = None) -> "Transformed":
        """Return a copy with the kernel resolved on the mapped rows of X; `names` are not used."""
        matrix = self._matrix_for(X.shape[1])
        return Transformed(as_kernel(self.kernel).resolve(X @ matrix.T), matrix)

    def _matrix_for(self, dim: int) -> Doubles:
        matrix = check_matrix("matrix", self.matrix)
        if matrix.shape[1] != dim:
            raise ValueError(
                f"matrix has {counted(matrix.shape[1], 'column')}, but X has {dim}; give it one "
                "for each column of X"
            )
        return np.asarray(matrix, dtype=np.float64)

    def mapped(self, X: Data) -> Doubles:
        """Return matrix x for every row of X."""
        rows = double_rows(X)
        return rows @ self._matrix_for(rows.shape[1]).T

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        return as_kernel(self.kernel)(self.mapped(X), None if Y is None else self.mapped(Y))

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        return as_kernel(self.kernel).diag(self.mapped(X))

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return the inner kernel's frequencies in the original columns; needs a square matrix."""
        matrix = self._matrix_for(normals.shape[1])
        if len(matrix) != matrix.shape[1]:
            return super().frequencies(normals, uniforms)
        kernel = as_kernel(self.kernel)
        frequencies: Doubles = (kernel.frequencies(normals, uniforms) * kernel.scale()) @ matrix
        return frequencies


def unmapped(kernel: Any, X: Doubles, Y: Any) -> tuple[Kernel, Doubles, Any]:
    """Return the innermost kernel of nested maps, and the mapped rows."""
    while isinstance(kernel, Transformed):
        X, Y = kernel.mapped(X), None if Y is None else kernel.mapped(Y)
        kernel = as_kernel(kernel.kernel)
    return kernel, X, Y
