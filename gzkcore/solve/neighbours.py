"""Nearest earlier rows in a random order, nearest landmarks, and a sparse factor on these."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from gzkcore._compiled import neighbours as _neighbours
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore.kernels.products import Pairs

__all__ = ["Nearest", "Neighbours", "Seen", "SparseFactor"]

# Numbers of rows where there are many of them.
Numbers: TypeAlias = NDArray[np.int32]

NO_CODES: Doubles = np.empty(0)
LEAF = 32  # A leaf of the tree has at most so many rows.
FAR = 1e15  # Coordinates are clipped to it: their squares are no more in single precision.
PART = 1 << 16  # So many rows are worked on at a time; about as many give the medians.
MOST_SEEN = 255  # A row has at most so many neighbours: places in a row of G or B are bytes.


def tree_order(
    X: Floats, gaps: Doubles = NO_CODES, known: Numbers | None = None
) -> tuple[Numbers, int]:
    """Order rows so that near ones are together: halved along the widest column, again and again.

    The last columns are codes, and a column of different ones is as wide as the root of its gap.
    Return the order (n_leaves * size,), in which numbers from n on are no rows, and the size.
    """
    n = len(X)
    levels = max(0, math.ceil(math.log2(n / LEAF)))
    size = -(-n // 2**levels)
    if known is not None and known.size == size << levels:
        return known, size
    order: Numbers = np.arange(size << levels, dtype=np.int32)
    keys: Floats = np.empty(order.size, np.float32)
    _neighbours.tree_order(
        np.ascontiguousarray(X, np.float32), gaps.astype(np.float32), levels, order, keys,
        n_threads(),
    )  # fmt: skip
    return order, size


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
        """Return the neighbours of the rows of X (n, d)."""
        n = len(X)
        centred = X - np.median(X, axis=0)
        order, size = tree_order(centred)
        valid = order < n
        rows = np.minimum(order, n - 1)
        ranks: Numbers = rng.permutation(n)[rows].astype(np.int32)
        ranks[~valid] = np.iinfo(np.int32).max
        table: Numbers = np.empty((order.size, min(count, n - 1, MOST_SEEN)), np.int32)
        _neighbours.nearest_before(
            *_boxes(centred, rows, ranks, size),
            ranks, order.size, table, n_threads(),
        )  # fmt: skip
        if not valid.all():
            numbers = np.cumsum(valid, dtype=np.int32) - np.int32(1)
            table = numbers[table[valid]]
            order, ranks = order[valid], ranks[valid]
        is_neighbour = table != np.arange(n)[:, None]
        return cls(order.astype(np.intp), ranks, table, *_by_column(table, is_neighbour, n))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(array.nbytes for array in vars(self).values())


def _heap(leaves: Any) -> Any:
    """Return a heap with the root at 1: minima of pairs, then the values of the leaves."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append(np.minimum(levels[-1][::2], levels[-1][1::2]))
    return np.concatenate([levels[-1], *levels[::-1]])


def _boxes(X: Floats, rows: Numbers, ranks: Numbers, size: int) -> tuple[Floats, Floats, Numbers]:
    """Return the leaves of a tree, the corners of its boxes, and the first rank in each of them.

    The leaves have these rows of X, in this order.
    """
    leaves: Floats = np.empty((rows.size // size, X.shape[1], size), np.float32)
    step = PART // size
    for start in range(0, len(leaves), step):
        part = X[rows[start * size : (start + step) * size]].reshape(-1, size, X.shape[1])
        leaves[start : start + step] = part.transpose(0, 2, 1)
    corners = np.stack([_heap(leaves.min(axis=2)), -_heap(-leaves.max(axis=2))], axis=1)
    return leaves, corners, _heap(ranks.reshape(-1, size).min(axis=1))


def _by_column(
    table: Numbers, stored: NDArray[np.bool_], n_columns: int
) -> tuple[Integers, Numbers, NDArray[np.uint8]]:
    """Return where the stored entries of each column begin, their rows, and their places there."""
    n, m = table.shape
    begins = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    places = np.broadcast_to(np.arange(m, dtype=np.uint8), table.shape)[stored]
    by_column = csr_array((places, table[stored], begins), shape=(n, n_columns)).tocsc()
    return by_column.indptr.astype(np.intp), by_column.indices.astype(np.int32), by_column.data


@dataclass(frozen=True)
class Seen:
    """The landmarks that are nearest to each row, and the matrix B of a factor at them."""

    table: Numbers  # (n, l): numbers of landmarks, the nearest first
    starts: Integers  # (q + 1,): where the entries of each column begin,
    rows: Numbers  # of each entry its row
    places: NDArray[np.uint8]  # and its place in that

    @classmethod
    def of(cls, X: Doubles, landmarks: Doubles, count: int) -> "Seen":
        """Return for each row of X (n, d) the nearest `count` of the landmarks (q, d), or all."""
        q = len(landmarks)
        table = Nearest(landmarks).to(X, min(count, q, MOST_SEEN))
        return cls(table, *_by_column(table, np.ones(table.shape, bool), q))

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(array.nbytes for array in vars(self).values())

    def subtract_product(self, values: Floats, V: Doubles, out: Doubles) -> None:
        """Subtract B V, for B (n, q) of these values (n, l)."""
        _neighbours.multiply_seen(values, self.table, np.ascontiguousarray(V), out, n_threads())

    def transposed_product(self, values: Floats, V: Doubles) -> Doubles:
        """Return B^T V."""
        out = np.empty((len(self.starts) - 1, V.shape[1]))
        _neighbours.multiply_seen_transposed(
            values, self.starts, self.rows, self.places, np.ascontiguousarray(V), out, n_threads()
        )
        return out

    def gram(self, values: Floats) -> Doubles:
        """Return B^T B."""
        out = np.empty((len(self.starts) - 1,) * 2)
        _neighbours.gram_of_seen(
            values, self.table, self.starts, self.rows, self.places, out, n_threads()
        )
        return out


class Nearest:
    """A tree of rows (q, d), in which the nearest to other rows are searched.

    The last columns are codes: where two differ, a gap is added to the squared distance. `rows` may
    be others of which `columns` makes these, some at a time. `known` is the `order` of an earlier
    tree of the same rows, which took most of the time.
    """

    def __init__(
        self,
        rows: Any,
        gaps: Doubles = NO_CODES,
        columns: Callable[[Any], Doubles] = np.asarray,
        known: Numbers | None = None,
    ) -> None:
        n = rows.shape[0]
        self._center = np.median(columns(rows[:: max(1, n // PART)]), axis=0)
        self._gaps: Floats = gaps.astype(np.float32)
        centred: Floats = np.empty((n, self._center.size), np.float32)
        for start in range(0, n, PART):
            centred[start : start + PART] = self._centred(columns(rows[start : start + PART]))
        order, size = tree_order(centred, gaps, known)
        self._rows: Numbers = np.minimum(order, n - 1)
        self._ranks: Numbers = (order >= n).astype(np.int32)  # 0: a row
        self._boxes = _boxes(centred, self._rows, self._ranks, size)

    @property
    def order(self) -> Numbers:
        """The rows leaf after leaf; numbers from q on are no rows."""
        return self._rows + self._ranks

    def to(self, X: Doubles, count: int) -> Numbers:
        """Return the numbers (n, count) of the rows that are nearest to each row of X."""
        places: Numbers = np.empty((len(X), count), np.int32)
        _neighbours.nearest(
            self._centred(X), *self._boxes, self._ranks, self._gaps, places, n_threads()
        )
        return self._rows[places]

    def _centred(self, X: Doubles) -> Floats:
        centred = X - self._center
        return np.clip(centred, -FAR, FAR, out=centred).astype(np.float32)


class SparseFactor:
    """G with G^T G near (R + alpha N)^-1 for each alpha, R = K - Z Z^T.

    With landmarks, each row depends on its landmarks first and then on its neighbours. G has the
    coefficients of the rows, and `at_seen` those of the landmarks, B: if u are the values of a
    function at the landmarks and y those at the rows, with noise, then G y + B u is nearly white
    and nearly independent of u.

    Parameters
    ----------
    neighbours : Neighbours
        In whose order all rows are.
    pairs : Pairs
        The kernel at pairs of rows.
    Z : ndarray of shape (n + q, p)
        float32 or float64: the arithmetic, and the type of G; p a multiple of 16.
    noise : ndarray of shape (n_shifts, n + q)
        What is added to the diagonal of R for each alpha: alpha N.
    seen : Seen, optional
        Its landmarks are the last q rows of pairs, Z and noise. None: no landmarks.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        pairs: Pairs,
        Z: Floats,
        noise: Doubles,
        seen: Seen | None = None,
    ) -> None:
        self.neighbours = neighbours
        n, m = neighbours.table.shape
        table = np.empty((n, 0), np.int32) if seen is None else seen.table
        self.values = np.empty((len(noise), n, m + 1), Z.dtype)
        self.at_seen = np.empty((len(noise), *table.shape), Z.dtype)
        _neighbours.sparse_factor(
            pairs.rows, Z, neighbours.table, table, noise, pairs.weights, pairs.known.factors,
            pairs.known.numbers, pairs.known.coefficients, self.values, self.at_seen, n_threads(),
        )  # fmt: skip

    def multiply(self, shift: int, V: Floats, rows: slice) -> Doubles:
        """Return these rows of G V."""
        out = np.empty((rows.stop - rows.start, V.shape[1]))
        _neighbours.multiply(
            self.values[shift], self.neighbours.table, np.ascontiguousarray(V), rows.start, out,
            n_threads(),
        )  # fmt: skip
        return out

    def apply(self, shift: int, V: Doubles) -> Doubles:
        """Return G^T G V."""
        half = self.multiply(shift, V, slice(0, len(V)))
        return self.multiply_transposed(shift, half)

    def multiply_transposed(self, shift: int, V: Doubles) -> Doubles:
        """Return G^T V."""
        out, its = np.empty_like(V), self.neighbours
        _neighbours.multiply_transposed(
            self.values[shift], its.starts, its.rows, its.places, V, out, n_threads()
        )
        return out


def given_near(
    new: Pairs, old: Pairs, places: Integers | Numbers, alpha: float, noise: Doubles, dtype: Any
) -> tuple[Doubles, Doubles]:
    """Return how new rows depend on the old ones at some places, (n_new, m), and their variances.

    They have the mean a^T y with the weights a = A^-1 k, A = K + diag(noise) of their old rows, and
    the variance k(x, x) + alpha - a^T k. `noise` is that of all old rows.
    """
    n, rows = len(places), np.concatenate([new.rows, old.rows])
    weights = np.concatenate([new.weights, old.weights])
    values, at_seen = np.empty((1, n, 1), dtype), np.empty((1, *places.shape), dtype)
    _neighbours.sparse_factor(
        rows, np.empty((len(rows), 0), dtype), np.empty((n, 0), np.int32), places.astype(np.int32),
        np.concatenate([np.full(n, alpha), noise])[None], weights, old.known.factors,
        old.known.numbers, old.known.coefficients, values, at_seen, n_threads(),
    )  # fmt: skip
    own = values[0].astype(np.float64)
    return -at_seen[0] / own, own[:, 0] ** -2.0
