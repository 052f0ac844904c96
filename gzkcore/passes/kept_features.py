"""Features of all rows, kept in memory: products with Z in double precision, for Z of any dtype."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats

from .passes import Sums, sum_tiles
from .tiles import on_threads, width_of

__all__ = ["KeptFeatures"]

# Columns are padded to a multiple of this, and compiled kernels take whole vectors.
LANES = 16
# Rows are worked on in so many groups, whatever the threads: sums are the same for any number.
ROW_GROUPS = 8
TILE_BYTES = 1 << 20  # of rows in double, which stay in the cache

Result = TypeVar("Result")


class KeptFeatures:
    """Z (n, p) and what preconditioners ask of it.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        float32 or float64. Products are of these numbers, in double: rounding to float32 changes
        Z Z^T once, and what is inverted is exactly that of the rounded features.
    """

    def __init__(self, Z: Floats, width: int | None = None) -> None:
        self.Z = Z
        self.width = Z.shape[1] if width is None else width

    @classmethod
    def of(cls, features: Any, X: Floats, dtype: Any) -> "KeptFeatures":
        """Return those of the rows of X, by a fitted feature map."""
        width = int(width_of(features, X))
        Z = np.zeros((len(X), -(-width // LANES) * LANES), dtype)

        def keep(part: slice, tile: Floats, _sums: Sums) -> None:
            Z[part, :width] = tile

        sum_tiles(features, X, keep, ())
        return cls(Z, width)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return int(self.Z.nbytes)

    def padded(self, V: Doubles) -> Doubles:
        """Return V of `width` rows with rows of zeros for the columns that Z was padded with."""
        return np.pad(V, ((0, self.Z.shape[1] - self.width), (0, 0)))

    def squares(self) -> Doubles:
        """Return |z|^2 of every row."""
        return np.concatenate(
            self._by_group(
                lambda tiles: np.concatenate([np.einsum("ij,ij->i", Z, Z) for _, Z in tiles])
            )
        )

    def product(self, V: Doubles) -> Doubles:
        """Return Z V."""
        return np.concatenate(
            self._by_group(lambda tiles: np.concatenate([Z @ V for _, Z in tiles]))
        )

    def transposed_product(self, V: Doubles) -> Doubles:
        """Return Z^T V."""
        return self._sum(lambda rows, Z: Z.T @ V[rows])

    def gram(self, factor: Callable[[slice, Doubles], Doubles]) -> Doubles:
        """Return W^T W for W = factor(rows, Z[rows]), a tile at a time."""

        def square(rows: slice, Z: Doubles) -> Doubles:
            W = factor(rows, Z)
            return W.T @ W

        return self._sum(square)

    def _sum(self, term: Callable[[slice, Doubles], Doubles]) -> Doubles:
        """Add up the terms of all tiles, in the same order for any number of threads."""

        def add(tiles: Iterator[tuple[slice, Doubles]]) -> Any:
            return sum(term(rows, Z) for rows, Z in tiles)

        parts = self._by_group(add)
        total: Doubles = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def _by_group(self, use: Callable[[Iterator[tuple[slice, Doubles]]], Result]) -> list[Result]:
        """Call use(tiles) for each group of tiles."""
        n = len(self.Z)
        step = max(1, -(-n // ROW_GROUPS))
        parts = [slice(i, min(i + step, n)) for i in range(0, n, step)]
        found: dict[int, Result] = {}
        waiting = itertools.count()  # the next part that nobody has taken

        def run(_thread: int, stopped: Callable[[], bool]) -> None:
            while (number := next(waiting)) < len(parts) and not stopped():
                found[number] = use(self._tiles(parts[number]))

        on_threads(run, min(n_threads(), len(parts)))
        return [found[number] for number in range(len(parts))]

    def _tiles(self, part: slice) -> Iterator[tuple[slice, Doubles]]:
        """Yield tiles of doubles, which last until the next."""
        step = max(1, TILE_BYTES // (8 * self.Z.shape[1]))
        buffer = np.empty((min(step, part.stop - part.start), self.Z.shape[1]))
        for start in range(part.start, part.stop, step):
            rows = slice(start, min(start + step, part.stop))
            tile = buffer[: rows.stop - rows.start]
            np.copyto(tile, self.Z[rows])
            yield rows, tile
