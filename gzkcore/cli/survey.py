"""Statistics from one reading of columns of numbers: means, variances, ranges, sampled rows."""

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from gzkcore._util.typing import Doubles
from gzkcore.rows.files import Table

from .held_out import RowNumbers, hashed
from .hints import Numbering, about_row_numbers

# Random rows that the ridge sees first, so that they settle the centre and the radius for all that
# follow, and in which plan and compare try features; and their values.
DRAWN_ROWS = 1 << 14
DRAWN_VALUES = 1 << 22


class Survey:
    """Means, variances, ranges and a random sample of the rows that are used."""

    def __init__(self, names: list[str], seed: int) -> None:
        width = len(names)
        self.most = max(1, min(DRAWN_ROWS, DRAWN_VALUES // width))
        self.seed = seed
        self.scaler = StandardScaler()
        self.n_rows = self.n_used = 0
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
        self._numbering = Numbering(names)
        self.numbers, self.values = np.empty(0, np.int64), np.empty((0, width))

    def add(
        self,
        numbers: RowNumbers,
        values: Doubles,
        used: NDArray[np.bool_] | None = None,
        in_file: RowNumbers | None = None,
    ) -> None:
        """Add rows of these numbers, some of which are used; those in the file may be others."""
        self.n_rows += len(values)
        self._numbering.add(numbers if in_file is None else in_file, values)
        if used is not None:
            numbers, values = numbers[used], values[used]
        if not len(values):
            return
        self.n_used += len(values)
        self.low = np.minimum(self.low, values.min(axis=0))
        self.high = np.maximum(self.high, values.max(axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            self.scaler.partial_fit(values)
        self.numbers = np.concatenate([self.numbers, numbers])
        self.values = np.concatenate([self.values, values])
        kept = np.argsort(hashed(self.numbers, self.seed))[: self.most]
        self.numbers, self.values = self.numbers[kept], self.values[kept]

    def row_numbers(self, columns: list[str]) -> str:
        """Say which of these columns seem to number the rows, "" if none does."""
        found = {name: its for name, its in self._numbering.found().items() if name in columns}
        return about_row_numbers(found, columns) if found else ""


def check_scales(table: Table, names: list[str], scales: Doubles) -> None:
    """Raise ValueError for a column whose values are too large to be squared."""
    for name, scale in zip(names, scales, strict=True):
        if not np.isfinite(scale):
            raise ValueError(
                f"{table.path}: column {name!r} has values so large that their squares overflow; "
                "use another unit"
            )
