"""Peak memory of fits, beside their rows, and the forms of a model within a limit.

The estimates were 0.9 to 1.3 times the measured peaks on two processors, for Matern-3/2 with 1,000
to 40,000 rows of 2 to 60 columns, 1,000 to 3,000 centres and 512 to 2,048 features. For the whole
kernel on 10,000 or more rows with more than three columns they are upper bounds.
"""

import math
from collections.abc import Callable

import numpy as np

from gzkcore._util.memory import available_memory, bytes_of
from gzkcore._util.threads import n_threads
from gzkcore.passes.tiles import ALL_SUMS_BYTES, FEATURES_BYTES
from gzkcore.rows.survey import SAMPLE_ROWS

from .centers import IN_MEMORY_BYTES, MOST_SAMPLE, PART_ROWS, ROOTS
from .kernel_system import HELD_ROWS
from .near_landmarks import SEEN
from .preconditioners import (
    FEW_COLUMNS,
    LEAST_IN_SINGLE,
    NEIGHBOURS,
    SAMPLED_FOR_EACH,
    count_landmarks,
    most_components,
)

__all__: list[str] = []

LESS = 0.75  # of centres or features, where there is no room for more; a choice

# Vectors of n doubles that conjugate gradients hold at their peak for each column.
VECTORS = 12
# Of a product in single precision: vectors that it computes at once, if it is more than one, and
# bytes of an entry, a float that is multiplied and a double that is summed.
LANES, ENTRY = 16, 4 + 8
# Of each entry of a row: itself, and in the tiles of both precisions.
COPIES = 8 + 8 + 4
# What a preconditioner takes while it is made: tiles, and matrices as large as its factor.
TILES, FACTORS = 1 << 24, 5
# Matrices of all pairs of centres, and those of centres and a part of the sample, at once.
SQUARES, CROSSES = 3, 6
# Folds of features, whose sums each thread has; matrices as large beside them, and tiles.
FOLDS, GRAMS, FEATURE_TILES = 2, 5, 2
KEPT_BYTES = 1 << 28  # of the kernel's columns, which are kept up to there as landmarks are chosen


def whole_bytes(
    n_rows: int, dim: int, n_columns: int, preconditioner: float, *, gathered: bool = False
) -> float:
    """Return what a `KernelRidge` on all rows takes.

    Parameters
    ----------
    n_rows, dim : int
    n_columns : int
        Systems that are solved at once.
    preconditioner : float
        Its bytes, see `preconditioner_bytes`.
    gathered : bool, default=False
        Whether the rows are those of a source, which are put together.
    """
    lanes = 1 if n_columns == 1 else -(-n_columns // LANES) * LANES
    held = dim * COPIES + 8 * VECTORS * n_columns + ENTRY * lanes
    batches = 16 * (dim + n_columns) if gathered else 0  # each by itself, and together
    return n_rows * (held + batches) + preconditioner


def preconditioner_bytes(n_rows: int, dim: int, alpha: float) -> float:
    """Return what the preconditioner takes of a kernel that has a compiled form, and k(x, x) = 1.

    Of few rows that is the matrix itself and a factor.
    """
    if n_rows <= HELD_ROWS:
        return 16.0 * n_rows**2
    dtype = np.dtype(np.float32 if alpha >= LEAST_IN_SINGLE else np.float64)
    if dim <= FEW_COLUMNS:
        count, seen = count_landmarks(n_rows, dim), SEEN + NEIGHBOURS
        of_rows = n_rows * (9 * seen + 20 + dtype.itemsize * seen)
        return of_rows + 8.0 * FACTORS * count**2 + TILES
    count = most_components(n_rows, dim, dtype)
    of_rows = n_rows * (9 * NEIGHBOURS + dtype.itemsize * (count + NEIGHBOURS))
    return of_rows + 8.0 * FACTORS * count**2 + _kept(SAMPLED_FOR_EACH * count, count) + TILES


def centers_bytes(n_rows: int, dim: int, n_columns: int, count: int) -> float:
    """Return what a `KernelRidge` on so many centres takes."""
    sample = max(count, min(MOST_SAMPLE * count, int(ROOTS * math.sqrt(n_rows)), n_rows))
    part = min(sample, PART_ROWS)
    held = min(n_rows, IN_MEMORY_BYTES // (8 * dim)) * (COPIES * dim + 16 * n_columns)
    return 8.0 * count * (SQUARES * count + CROSSES * part) + held


def features_bytes(n_rows: int, dim: int, count: int) -> float:
    """Return what a `RandomFeatureRidgeCV` of two folds on so many Nystrom features takes."""
    threads = n_threads()
    sums = min(threads, max(1, ALL_SUMS_BYTES // (8 * FOLDS * count**2)))
    tiles = FEATURE_TILES * threads * min(FEATURES_BYTES, 8 * count * n_rows)
    sample = min(n_rows, SAMPLE_ROWS)
    made = max(tiles, _kept(n_rows, count), _kept(sample, count))
    return 8.0 * count**2 * (GRAMS + FOLDS * sums) + made + COPIES * dim * sample


def _kept(n_rows: int, count: int) -> float:
    """Return the bytes of the kernel's columns that are kept while landmarks are chosen."""
    columns = 8.0 * n_rows * count
    return columns if columns <= KEPT_BYTES else 0.0


class TooLittleMemoryError(ValueError):
    """No form of a model is within the bytes that it may take."""

    def __init__(self, limit: str, needed: str) -> None:
        self.needed = needed
        super().__init__(f"{limit}, but {needed}; allow more, or pass fewer rows or columns")


class Room:
    """The forms of a model that are within some bytes, and those that were left out.

    Parameters
    ----------
    shape : (int, int, int)
        Rows, columns, targets.
    alpha : float
    given : float, str or None
        The bytes, in words too; None: half of what the machine has available now.
    gathered : bool
        Whether the rows are those of a source, which the whole kernel puts together.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        alpha: float,
        given: float | str | None,
        *,
        gathered: bool,
    ) -> None:
        self.n_rows, self._dim, self._n_targets = shape
        self._alpha, self._given, self._gathered = alpha, given, gathered
        there = available_memory() if given is None else None
        half = math.inf if there is None else there / 2
        self._bytes = half if given is None else bytes_of("max_memory", given)
        self._out: dict[str, tuple[str, float]] = {}  # by kind the largest form, and its bytes
        self._least = "", math.inf  # of what was left out

    def whole(self) -> bool:
        """Say whether there is room for the whole kernel."""
        made = preconditioner_bytes(self.n_rows, self._dim, self._alpha)
        needed = whole_bytes(self.n_rows, self._dim, self._n_targets, made, gathered=self._gathered)
        return self._has("whole", "the whole kernel", needed)

    def centers(self, most: int, fewest: int) -> int:
        """Return how many centres there is room for, 0 if there are fewer than the fewest."""
        return self._largest(
            "centres", most, fewest,
            lambda count: centers_bytes(self.n_rows, self._dim, self._n_targets, count),
        )  # fmt: skip

    def features(self, most: int, fewest: int) -> int:
        """Return how many features there is room for, 0 if there are fewer than the fewest."""
        return self._largest(
            "features", most, min(most, fewest),
            lambda count: features_bytes(self.n_rows, self._dim, count),
        )  # fmt: skip

    def left_out(self) -> str:
        """Return a sentence on what was left out, the largest of each form; "" for nothing."""
        if not self._out:
            return ""
        forms = ", ".join(f"{form} ({_said(needed)})" for form, needed in self._out.values())
        return f"Left out for memory, of which {self._limit()}: {forms}."

    def too_little(self) -> TooLittleMemoryError:
        """Return the error of a table for which no form is left."""
        form, needed = self._least
        takes = f"a model of {self.n_rows:,} rows takes about {_said(needed)} or more ({form})"
        return TooLittleMemoryError(self._limit(named=True), takes)

    def _limit(self, *, named: bool = False) -> str:
        if self._given is not None:
            given = f"={self._given}" if named else ""
            return f"max_memory{given} allows {self._bytes:,.0f} bytes"
        half = f"half of what is available, {self._bytes:,.0f} bytes, may be taken"
        return f"max_memory=None: {half}" if named else half

    def _largest(self, noun: str, most: int, fewest: int, takes: Callable[[int], float]) -> int:
        count = most
        while count >= fewest:
            if self._has(noun, f"{count:,} {noun}", takes(count)):
                return count
            count = max(fewest, int(LESS * count)) if count > fewest else 0
        return 0

    def _has(self, kind: str, form: str, needed: float) -> bool:
        if needed <= self._bytes:
            return True
        self._out.setdefault(kind, (form, needed))
        if needed < self._least[1]:
            self._least = form, needed
        return False


def _said(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f} bytes"
