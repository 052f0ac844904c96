"""Nearest rows among those before in a random order, and a sparse factor of an inverse on them."""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gzkcore._compiled import neighbours as _neighbours
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore.kernels.products import Pairs

__all__ = ["Neighbours", "SparseFactor"]

# Numbers of rows where there are many of them.
Numbers: TypeAlias = NDArray[np.int32]

LEAF = 32  # rows of a leaf of the tree, at most
MOST = 255  # neighbours of a row: places in a row of G are bytes


def tree_order(X: Doubles) -> tuple[Integers, int]:
    """Order rows so that near ones are together: halved along the widest column, again and again.

    Parameters
    ----------
    X : ndarray of shape (n, d)

    Returns
    -------
    order : ndarray of shape (n_leaves * size,)
        Rows; the last are n, no row at all.
    size : int
        Rows of a leaf.
    """
    n = len(X)
    levels = max(0, math.ceil(math.log2(n / LEAF)))
    size = -(-n // 2**levels)
    order = np.arange(size << levels)
    for level in range(levels):
        parts = order.reshape(1 << level, -1)
        here = X[np.minimum(parts, n - 1)]
        widest = np.argmax(np.ptp(here, axis=1), axis=1)
        keys = np.take_along_axis(here, widest[:, None, None], axis=2)[:, :, 0]
        keys[parts >= n] = np.inf
        halves = np.argpartition(keys, parts.shape[1] // 2 - 1, axis=1)
        order = np.take_along_axis(parts, halves, axis=1)
    return order.reshape(-1), size


@dataclass(frozen=True)
class Neighbours:
    """The m nearest rows of each row among those before it in a random order.

    Rows are kept in an order of their own, in which near rows have near numbers.
    """

    order: Integers  # (n,): the row at each place
    ranks: Numbers  # (n,): of the row at each place in the random order
    table: Numbers  # (n, m): places of neighbours, nearest first; its own where there are fewer
    starts: Integers  # (n + 1,): where the entries of each column begin,
    rows: Numbers  # of each entry its row
    places: NDArray[np.uint8]  # and its place in that

    @classmethod
    def of(cls, X: Doubles, count: int, rng: np.random.Generator) -> "Neighbours":
        """Find them for the rows of X (n, d)."""
        n, d = X.shape
        order, size = tree_order(X)
        n_leaves = order.size // size
        valid = order < n
        rows = np.minimum(order, n - 1)
        ranks: Numbers = rng.permutation(n)[rows].astype(np.int32)
        ranks[~valid] = np.iinfo(np.int32).max
        table: Numbers = np.empty((order.size, min(count, n - 1, MOST)), np.int32)
        center = np.median(X, axis=0)
        leaves = (X[rows] - center).astype(np.float32).reshape(n_leaves, size, d)
        _neighbours.nearest_before(
            np.ascontiguousarray(leaves.transpose(0, 2, 1)),
            np.stack([_heap(leaves.min(axis=1)), -_heap(-leaves.max(axis=1))], axis=1),
            _heap(ranks.reshape(n_leaves, size).min(axis=1)),
            ranks, order.size, table, n_threads(),
        )  # fmt: skip
        if not valid.all():
            numbers = np.cumsum(valid, dtype=np.int32) - np.int32(1)
            table = numbers[table[valid]]
            order, ranks = order[valid], ranks[valid]
        starts, by_column, places = _by_column(table)
        return cls(order, ranks, table, starts, by_column, places)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        arrays = self.order, self.ranks, self.table, self.starts, self.rows, self.places
        return sum(array.nbytes for array in arrays)


def _heap(leaves: Any) -> Any:
    """Put the minima of two by two before the values of leaves, up to the root at 1."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append(np.minimum(levels[-1][::2], levels[-1][1::2]))
    return np.concatenate([levels[-1], *levels[::-1]])


def _by_column(table: Numbers) -> tuple[Integers, Numbers, NDArray[np.uint8]]:
    """Return where the entries of each column of G begin, their rows, and their places in them."""
    n, m = table.shape
    given = table != np.arange(n)[:, None]
    begins = np.concatenate([[0], np.cumsum(given.sum(axis=1))])
    places = np.broadcast_to(np.arange(m, dtype=np.uint8), table.shape)[given]
    by_column = csr_array((places, table[given], begins), shape=(n, n)).tocsc()
    return by_column.indptr.astype(np.intp), by_column.indices.astype(np.int32), by_column.data


class SparseFactor:
    """G with G^T G near (R + alpha N)^-1 for each alpha, R = K - Z Z^T.

    Parameters
    ----------
    neighbours : Neighbours
        In whose order all rows are.
    pairs : Pairs
        The kernel at pairs of rows.
    Z : ndarray of shape (n, p)
        float32 or float64: the arithmetic, and the type of G; p a multiple of 16.
    noise : ndarray of shape (n,)
    shifts : ndarray of shape (n_shifts,)
    """

    def __init__(
        self,
        neighbours: Neighbours,
        pairs: Pairs,
        Z: Floats,
        noise: Doubles,
        shifts: Doubles,
    ) -> None:
        self.neighbours = neighbours
        n, m = neighbours.table.shape
        self.values = np.empty((len(shifts), n, m + 1), Z.dtype)
        _neighbours.sparse_factor(
            pairs.rows, Z, neighbours.table, noise, shifts, pairs.weights, pairs.known.factors,
            pairs.known.numbers, pairs.known.coefficients, self.values, n_threads(),
        )  # fmt: skip

    def multiply(self, shift: int, V: Floats, rows: slice) -> Doubles:
        """Return these rows of G V."""
        out = np.empty((rows.stop - rows.start, V.shape[1]))
        _neighbours.multiply(
            self.values[shift],
            self.neighbours.table,
            np.ascontiguousarray(V),
            rows.start,
            out,
            n_threads(),
        )
        return out

    def apply(self, shift: int, V: Doubles) -> Doubles:
        """Return G^T G V."""
        half, its = self.multiply(shift, V, slice(0, len(V))), self.neighbours
        out = np.empty_like(half)
        _neighbours.multiply_transposed(
            self.values[shift], its.starts, its.rows, its.places, half, out, n_threads()
        )
        return out

    def solve(self, shift: int, V: Doubles) -> Doubles:
        """Return G^-1 V."""
        found, its = np.array(V, order="C"), self.neighbours
        order = np.empty(len(V), np.int32)
        order[its.ranks] = np.arange(len(V))
        _neighbours.solve(self.values[shift], its.table, order, found)
        return found

    def log_determinant(self, shift: int) -> float:
        """Return log det (G^T G)^-1."""
        return float(-2 * np.log(self.values[shift, :, -1], dtype=np.float64).sum())
