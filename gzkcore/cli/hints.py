"""Guesses about columns: row numbers, text that holds dates or numbers, and what a test needs."""

import re
import shlex

import numpy as np

from gzkcore._util.typing import Doubles, Integers
from gzkcore.rows.categories import example_of, spread, what_texts_seem
from gzkcore.rows.numeric import skewness
from gzkcore.rows.values import Values

from .arguments import listed
from .held_out import hashed

# Names of numbers that rise from row to row and mean something, and of those that mean nothing.
ORDERED = re.compile(
    r"(?i)(^|[ _.-])"
    r"(t|time|step|second|minute|hour|day|week|month|quarter|year|age|period)s?"
    r"($|[ _.-])|timestamp|epoch|elapsed|dayof|yday"
)
IDENTIFIER = re.compile(r"(.*[ _.-])?(?i:id)|.*[a-z]I[dD]")
DECADES = 2.0  # over which a target varies, from which on its logarithm may be meant
KEPT = 1 << 16  # values of a column that tell whether each is there once
YEARS = 1500, 2200  # whole numbers between these are years, more likely than not
REMEDIES = {
    "dates": "--date-format '%d/%m/%y' or the like tells how they are written",
    "numbers": "write all of the column in one unit, or the numbers alone, such as 1200.5",
    "decimal commas": "write a decimal point, or add --decimal-comma",
}


class Numbering:
    """Which columns seem to number the rows, told piece by piece, in whatever order they count.

    These are whole numbers, each once, without gaps; those called id may have gaps, and so may
    those that rise with the rows of the file. Years and steps of time are no numbers of rows. That
    each is there once is told by the values of the least hashes: all up to `KEPT` of them.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.n_rows = 0
        self._low, self._high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
        self._start = np.full(len(names), np.nan)  # value - number of the first row
        self._rises = np.ones(len(names), dtype=bool)  # whether it is so in all rows
        self._kept = {j: np.empty(0) for j in range(len(names))}  # of those that may number rows

    def add(self, rows: Integers, values: Doubles) -> None:
        """Add rows of these numbers in the file; values has a column for each name."""
        if not len(values):
            return
        self.n_rows += len(values)
        for j in [*self._kept]:
            column = values[:, j]
            # NaN is not whole either; from 2^53 on not all whole numbers are there.
            if not np.all((column == np.round(column)) & (np.abs(column) < 2.0**53)):
                del self._kept[j]
                continue
            self._low[j] = min(self._low[j], column.min())
            self._high[j] = max(self._high[j], column.max())
            if np.isnan(self._start[j]):
                self._start[j] = column[0] - rows[0]
            self._rises[j] &= bool(np.all(column - rows == self._start[j]))
            both = np.concatenate([self._kept[j], column])
            kept = np.unique(both)
            if len(kept) < len(both):
                del self._kept[j]
                continue
            keys = hashed(kept.astype(np.int64), 0)
            self._kept[j] = kept[np.argsort(keys)[:KEPT]]

    def found(self) -> dict[str, tuple[float, float]]:
        """Return the columns that seem to number the rows, and their ranges."""
        found = {}
        for j in self._kept:
            name, low, high = self.names[j], float(self._low[j]), float(self._high[j])
            without_gaps = high - low == self.n_rows - 1
            may_be = self._rises[j] or without_gaps or IDENTIFIER.fullmatch(name) is not None
            has_meaning = ORDERED.search(name) or YEARS[0] <= low <= high <= YEARS[1]
            if self.n_rows and may_be and not has_meaning:  # numbers that mean something may count
                found[name] = low, high
        return found


def about_row_numbers(found: dict[str, tuple[float, float]], columns: list[str]) -> str:
    """Say which columns seem to number the rows, and how to leave them out.

    "" where no other column would be left to predict from.
    """
    told = ", ".join(f"{name!r} ({low:.0f} to {high:.0f})" for name, (low, high) in found.items())
    words = ("columns", "seem", "them") if len(found) > 1 else ("column", "seems", "it")
    if {*columns} <= found.keys():
        return ""  # the only column that predicts
    remedy = f"leave {words[2]} out: --drop {shlex.quote(listed([*found]))}"
    return f"{words[0]} {told} {words[1]} to number the rows; if so, {remedy}"


def about_dates(dates: list[str]) -> str:
    """Say what random held-out rows don't test where columns hold dates, "" without such."""
    if not dates:
        return ""
    first = dates[0]
    return (
        f"column {first!r} holds dates, and the held-out rows are of the same times as those "
        "learned from; to test predictions of later rows, hold out the last ones: "
        f"--test-last {shlex.quote(first)}"
    )


def day_told(date: np.datetime64) -> str:
    """Return a date as text, without the time of day if that is midnight."""
    return re.sub(r"T00:00(:00(\.0+)?)?$", "", str(date))


def about_decades(target: str, y: Doubles) -> str:
    """Say so where the logarithm of a target is far more even than the target, else ""."""
    if y.min() <= 0:
        return ""
    low, high = np.quantile(y, [0.01, 0.99])
    decades, logs = float(np.log10(high) - np.log10(low)), np.log(y)
    if decades < DECADES or abs(skewness(logs)) >= abs(skewness(y / y.max())):
        return ""
    return (
        f"{target} is positive and spans {decades:.1f} powers of ten; errors and intervals are the "
        f"same for small and large values. If per cent matter, predict log({target}): add such a "
        "column to the table"
    )


def doubtful_texts(column: Values) -> str:
    """Say what the texts of a column seem to be, and the remedy; "" if they are just text."""
    texts = spread(sorted({str(text) for text in column if text is not None}))
    seem = what_texts_seem(texts)
    if not seem:
        return ""
    kind = "may be dates that were not understood" if seem == "dates" else "seem to be numbers"
    return f"texts such as {example_of(texts)!r} {kind}; {REMEDIES[seem]}"
