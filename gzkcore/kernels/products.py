"""Products of kernel matrices with vectors, K(X, Y) V: nothing of the size of K is stored.

Rows are sorted into tiles of 256 neighbours (a k-d tree, halved along the widest column), which has
two uses: coordinates about the centre of a tile keep single precision exact enough, and pairs of
tiles that are further apart than the kernel reaches are skipped. Where Y is X each pair of tiles
is computed once and used in both directions.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from gzkcore._compiled import products as _products
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Integers
from gzkcore._util.validation import raise_not_finite
from gzkcore._util.wording import counted

from .base import Kernel, double_rows
from .tile_form import ABSOLUTE, DIFFERENCE, PRODUCT, TileForm

__all__ = ["KernelOperator", "kernel_diagonal", "kernel_matrix", "kernel_product"]

SUMS_BYTES = 1 << 28  # of the sums of all groups, for symmetric products
GROUPS = 64

# Rows of a tile further than this from its centre are compared by differences: the rounding error
# of a product of coordinates grows with the square of the distance.
FAR = {np.dtype(np.float32): 4.0, np.dtype(np.float64): 64.0}


# ---- tiles


@dataclass(frozen=True)
class Tiles:
    """Scaled rows in tiles of neighbours."""

    n_rows: int
    order: Integers  # the row at each place; the last is repeated until the tile is full
    rows: Floats  # (n_tiles, dim, TILE), about the centres
    centers: Doubles  # (n_tiles, dim)
    radii: Doubles  # (n_tiles,): the largest distance of a row from its centre

    @classmethod
    def of(cls, X: Doubles, dtype: Any, centred: bool, absolute: bool) -> "Tiles":
        """Sort rows into tiles; those of dot products stay about the origin."""
        size = _products.tile_rows()
        order = neighbours(X, size)
        n_tiles = -(-order.size // size)
        order = np.concatenate([order, np.repeat(order[-1:], n_tiles * size - order.size)])
        placed = X[order].reshape(n_tiles, size, X.shape[1])
        centers = (
            (placed.min(axis=1) + placed.max(axis=1)) / 2
            if centred
            else np.zeros((n_tiles, X.shape[1]))
        )
        placed -= centers[:, None]
        norms = (
            np.abs(placed).sum(2) if absolute else np.sqrt(np.einsum("tid,tid->ti", placed, placed))
        )
        rows = np.ascontiguousarray(placed.transpose(0, 2, 1), dtype=dtype)
        return cls(X.shape[0], order, rows, np.ascontiguousarray(centers), norms.max(axis=1))

    def place(self, V: NDArray[Any], width: int, dtype: Any) -> Floats:
        """Return vectors (n_rows, n_vectors) in the order of the tiles, 0 where there is no row."""
        placed = np.zeros((self.order.size, width), dtype)
        placed[: self.n_rows, : V.shape[1]] = V[self.order[: self.n_rows]]
        return placed.reshape(len(self.rows), -1, width)

    def take(self, placed: Doubles, count: int) -> Doubles:
        """Undo `place` on a result."""
        found = np.empty((self.n_rows, count))
        flat = placed.reshape(self.order.size, -1)
        found[self.order[: self.n_rows]] = flat[: self.n_rows, :count]
        return found


def neighbours(X: Doubles, size: int) -> Integers:
    """Order rows so that each run of `size` lies together: halved along the widest column."""
    done, left = [], [np.arange(X.shape[0])]
    while left:
        rows = left.pop()
        n_tiles = -(-rows.size // size)
        if n_tiles <= 1:
            done.append(rows)
            continue
        here = X[rows]
        widest = int(np.argmax(here.max(axis=0) - here.min(axis=0)))
        half = n_tiles // 2 * size
        parted = np.argpartition(here[:, widest], half)
        left += [rows[parted[half:]], rows[parted[:half]]]
    return np.concatenate(done)


class KernelOperator(LinearOperator):  # type: ignore[misc]
    """The kernel matrix of rows as an operator: products with vectors, nothing of n^2 stored.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X : array-like of shape (n_rows, dim)
    Y : array-like of shape (n_columns, dim), optional
        None: X, and each pair of rows is computed once.
    dtype : dtype, optional
        Of the arithmetic within a tile, float32 or float64; by default that of X. Results are
        float64.
    tol : float, optional
        Pairs of tiles between which the kernel is below it are skipped: an entry of K V is off by
        at most tol times the sum of |V|. By default an eighth of the type's rounding unit; 0: none.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Data,
        Y: Data | None = None,
        *,
        dtype: Any = None,
        tol: float | None = None,
    ) -> None:
        given = np.asarray(X)
        self.arithmetic = np.dtype(
            dtype or (np.float32 if given.dtype == np.float32 else np.float64)
        )
        self.kernel, self.form = kernel, kernel.tile_form()
        self.X, self.Y = double_rows(X), None if Y is None else double_rows(Y)
        if self.Y is not None and self.Y.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"Y has {counted(self.Y.shape[1], 'column')}, but X has {self.X.shape[1]}"
            )
        n_columns = len(self.X if self.Y is None else self.Y)
        super().__init__(np.dtype(np.float64), (len(self.X), n_columns))
        self.n_tiles = 0
        if self.form is None:
            return
        self.reach = self.form.reach(np.finfo(self.arithmetic).eps / 8 if tol is None else tol)
        self.rows = self._tiles(self.form, self.X)
        self.columns = self.rows if self.Y is None else self._tiles(self.form, self.Y)
        self.metric = self.form.metric
        of_distances = self.metric == PRODUCT and math.isnan(self.form.offset)
        if of_distances and self.columns.radii.max() > FAR[self.arithmetic]:
            self.metric = DIFFERENCE

    def diagonal(self) -> Doubles:
        """Return k(x, x) of every row; of a square matrix its diagonal.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        if self.Y is not None:
            raise ValueError("only K(X, X) has a diagonal of k(x, x), and this is K(X, Y)")
        return self.kernel.diag(self.X)

    def _tiles(self, form: TileForm, X: Doubles) -> Tiles:
        of_distances = math.isnan(form.offset)
        return Tiles.of(X * form.scale, self.arithmetic, of_distances, form.metric == ABSOLUTE)

    def _matvec(self, v: NDArray[Any]) -> Doubles:
        return self._matmat(v.reshape(-1, 1))[:, 0]

    def _adjoint(self) -> "KernelOperator":
        if self.Y is None:
            return self
        return KernelOperator(self.kernel, self.Y, self.X, dtype=self.arithmetic)

    def _matmat(self, V: NDArray[Any]) -> Doubles:
        raise_not_finite(V, "V", "leave those out")
        if self.form is None:
            return self._by_matrices(V)
        symmetric, count = self.Y is None, V.shape[1]
        lanes = 64 // self.arithmetic.itemsize
        width = 1 if count == 1 else -(-count // lanes) * lanes
        n_tiles = len(self.rows.rows)
        groups = min(n_tiles, GROUPS)
        copies = 1
        if symmetric:
            copies = groups = max(1, min(groups, SUMS_BYTES // (8 * n_tiles * 256 * width)))
        out = np.zeros((copies, n_tiles, _products.tile_rows(), width))
        done = np.zeros(groups, np.intp)
        _products.kernel_product(
            self.rows.rows, self.rows.centers, self.rows.radii,
            self.columns.rows, self.columns.centers, self.columns.radii,
            self.columns.place(V, width, self.arithmetic),
            self.metric, self.form.profile, np.asarray(self.form.coefficients, self.arithmetic),
            self.form.offset, self.reach, symmetric, out, groups, done, n_threads(),
        )  # fmt: skip
        self.n_tiles = int(done.sum())
        return self.rows.take(out.sum(axis=0) if copies > 1 else out[0], count)

    def _by_matrices(self, V: NDArray[Any]) -> Doubles:
        """Multiply by the kernel's own matrix, a tile of rows at a time."""
        columns = self.X if self.Y is None else self.Y
        step = max(1, (1 << 22) // max(1, len(columns)))
        parts = [
            self.kernel(self.X[i : i + step], columns) @ V for i in range(0, len(self.X), step)
        ]
        return np.concatenate(parts)


def kernel_matrix(kernel: Kernel, X: Data, Y: Data | None = None) -> Doubles:
    """Return the matrix of all k(x, y)."""
    return kernel(X, Y)


def kernel_diagonal(kernel: Kernel, X: Data) -> Doubles:
    """Return all k(x, x)."""
    return kernel.diag(double_rows(X))


def kernel_product(kernel: Kernel, X: Data, Y: Data | None, V: ArrayLike) -> Doubles:
    """Return K(X, Y) V, with nothing of the size of K stored."""
    product: Doubles = KernelOperator(kernel, X, Y) @ np.asarray(V, dtype=np.float64)
    return product
