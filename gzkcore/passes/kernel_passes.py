"""Passes over the rows: the sums that a solver needs in every step, identical to the last bit.

A solver that stores nothing of the size of the data reads all rows in each step: arrays, memory
maps, sparse matrices, sources of batches or Dask collections. Rows of a batch are divided into
tiles, and tiles into runs, depending only on the number and width of the rows. Each run has its own
sums, which are added in the order of the runs, and those of batches in the order of the batches. So
results do not depend on the threads or workers that compute them.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from gzkcore._util import threads
from gzkcore._util.typing import Doubles, Floats
from gzkcore._util.validation import check_targets, check_weights, float_dtype, raise_not_finite

from .streams import Reader, Step, as_step
from .tiles import ALL_SUMS_BYTES, FEATURES_BYTES, TILE_ROWS, Tiles, as_rows, width_of

__all__ = ["Passes"]

Sums: TypeAlias = tuple[Doubles, ...]
PassedRows: TypeAlias = tuple[Any, Doubles, Doubles | None]  # X, targets and weights of a batch

# The largest number of runs; there are as many tiles or more, unless their rows are too few.
RUNS = 64
# The smallest number of rows of a tile: adding its sums costs as much as one row more.
LEAST_ROWS = 16


class Passes:
    """The rows of a fit, to be read as often as a solver asks.

    Parameters
    ----------
    reader : Reader
        Begun.
    learner : estimator
        Its `_rows` checks rows, its `_summands` returns the input of a pass.
    step : callable, optional
        Runs each pass and reports it.
    """

    def __init__(self, reader: Reader, learner: Any, step: Step | None = None) -> None:
        self.reader, self.learner, self.step = reader, learner, step

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None) -> "Passes":
        """Take rows as a regressor's `fit` does: arrays, or a source of them."""
        reader, learner = Reader(X, y, sample_weight), _Plain()
        check_reread(reader, "this solver", "an array")
        reader.begin(learner)
        return cls(reader, learner)

    def total(self, work: Callable[..., Sums], *args: Any) -> Any:
        """Return the sums of `work(rows, *args)` over all batches, in a fixed order."""
        return self.run(lambda: self.reader.reduce(self.learner, work, add_up, *args))

    def run(self, read: Callable[[], Sums]) -> Any:
        """Return the sums of a pass, run as a step of the fit."""
        return as_step(self.step, read)

    def in_memory(self, most_bytes: int) -> Any:
        """Return the rows of an array, targets and weights, if a copy takes no more bytes."""
        X = self.reader.array
        if X is None or sparse.issparse(X) or X.nbytes > most_bytes:
            return None
        return self.learner._summands(X, self.reader.targets, self.reader.weight)


class _Plain:
    """The checks of a learner, for `Passes` without one."""

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> PassedRows:
        rows = as_rows(X)
        raise_not_finite(rows)
        return rows, check_targets(y, rows), check_weights(sample_weight, rows)

    def _summands(self, X: Any, y: Doubles, sample_weight: Doubles | None) -> PassedRows:
        return X, y, sample_weight


def check_reread(reader: Reader, what: str, remedy: str) -> None:
    """Raise if rows come only once."""
    if reader.one_pass:
        raise ValueError(
            f"{what} reads the rows again in every step, but an iterator or partial_fit gives them "
            "once; pass an object whose iter() starts again, such as gzkcore.open_batches(...), "
            f"to fit, or use {remedy}"
        )


def add_up(parts: Sequence[Sums]) -> Sums:
    """Add sums of consecutive batches, and change none."""
    totals = tuple(first.copy() for first in parts[0])
    for part in parts[1:]:
        totals = _added(totals, part)
    return totals


def _added(totals: Sums, part: Sums) -> Sums:
    """Add a part to totals in place, and return them."""
    for total, added in zip(totals, part, strict=True):
        np.add(total, added, out=total)
    return totals


def sum_tiles(
    features: Any, X: Any, work: Callable[[slice, Floats, Sums], None], shapes: Sequence[Any]
) -> Sums:
    """Return what work(rows, Z, sums) adds to sums, from 0, for the features Z of all tiles of X.

    Z is as `for_each_tile` has it. Kernels and BLAS within have one thread each, which gives the
    same bits for any number of threads.
    """
    # Rows of a tile, which do not depend on the number of threads.
    n_rows = TILE_ROWS // 2 if float_dtype(X) == np.float32 else TILE_ROWS
    n_rows = min(n_rows, FEATURES_BYTES // (8 * int(width_of(features, X))))
    n_rows = max(min(n_rows, -(-X.shape[0] // RUNS)), LEAST_ROWS)
    starts = range(0, X.shape[0], n_rows)
    sums_bytes = 8 * sum(int(np.prod(shape)) for shape in shapes)
    n_runs = max(1, min(len(starts), RUNS, ALL_SUMS_BYTES // max(sums_bytes, 1)))
    runs = [
        starts[i * len(starts) // n_runs : (i + 1) * len(starts) // n_runs] for i in range(n_runs)
    ]
    total, waiting = _InOrder(), itertools.count()  # numbers of the runs that are still to do

    def run(_thread: int, stopped: Callable[[], bool]) -> None:
        tile_of = Tiles(features, X, n_rows)
        while (number := next(waiting)) < n_runs:
            sums = tuple(np.zeros(shape) for shape in shapes)
            for start in runs[number]:
                if stopped():
                    return
                rows = slice(start, min(start + n_rows, X.shape[0]))
                work(rows, tile_of(rows), sums)
            total.add(number, sums)

    threads.on_threads(run, min(threads.n_threads(), n_runs))
    return total.sums


class _InOrder:
    """Sums of runs, added in the order of their numbers."""

    def __init__(self) -> None:
        self.sums: Sums = ()
        self._early: dict[int, Sums] = {}
        self._count = 0
        self._lock = threading.Lock()

    def add(self, number: int, sums: Sums) -> None:
        with self._lock:
            self._early[number] = sums
            while self._count in self._early:
                part = self._early.pop(self._count)
                self.sums = _added(self.sums, part) if self._count else part
                self._count += 1
