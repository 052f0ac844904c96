"""What columns look like beside those of the fit: levels never seen, numbers far outside, units."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore._util.wording import counted
from gzkcore.rows.values import Values

# A choice, all three: so many numbers tell of another unit; numbers this many times smaller than
# nearly all of the fit have one; a code for missing values is there so often.
FEWEST_NUMBERS, SMALLER, FEWEST_CODES = 20, 5.0, 3
UNKNOWN = "column {!r} has levels that the fit did not see, in {}, such as {!r}: they are unknown"
TOLD = "column {!r} is {} in {:,} of {}, first {} in {}; {}"
RANGE = "outside the range of the fit, {} to {},"
EMPTY = "column {!r} has no value, but had one in every row of the fit: its median is taken"
CODES = 0, -1, -9, -99  # that stand for missing values too, though not far outside
CODE = "if it stands for a missing value, leave it empty"
UNIT = "if it is in another unit, convert it"
# A choice, both: nearly all numbers are like the fit once multiplied by a factor, and span as much.
FACTORS, NEARLY_ALL, SPANNED = (0.1, 0.01, 0.001, 10.0, 100.0, 1000.0), 0.95, 0.25
FACTOR = "{} by {:.0f} they are like the fit; "
EXTRAPOLATED = "predictions there are extrapolated"


class Look:
    """What a column of the fit looks like in other rows, which are added piece by piece."""

    def __init__(self, column: dict[str, Any]) -> None:
        self.column = column
        self.n_rows = self.n_values = 0
        self.counts: Counter[str] = Counter()  # of values that are unlike the fit, by how
        self.first: dict[str, tuple[Any, int]] = {}  # of these, and its row
        self.are_one = {"far": True, "outside": True}  # all such numbers are equal
        self.like_fit = np.zeros(len(FACTORS))  # how many are if multiplied
        self.least, self.most = np.inf, -np.inf

    def add_levels(self, texts: Values, new: NDArray[np.bool_]) -> None:
        """Add levels, and which of them no row of the fit had."""
        self._count("new", texts, new)
        self.n_rows += len(texts)

    def add_numbers(self, values: Doubles) -> None:
        """Add numbers, NaN where they are missing."""
        low, high, small = (self.column[name] / 2 for name in ("low", "high", "small"))
        halves = values / 2  # whose differences don't overflow
        beyond = np.maximum(halves - high, low - halves)
        self._count("far", values, beyond > high - low)
        outside, tiny = beyond > 0, np.abs(halves) < small / SMALLER
        self._count("outside", values, outside)
        self._count("small", values, tiny)
        for how, those in (("far", beyond > high - low), ("outside", outside)):
            if how in self.first:
                self.are_one[how] &= bool((values[those] == self.first[how][0]).all())
        there = halves[~np.isnan(halves)]
        self.n_values += there.size
        self.n_rows += len(values)
        if 2 * np.count_nonzero(outside | tiny) > there.size:
            self.least = there.min(initial=self.least)
            self.most = there.max(initial=self.most)
            with np.errstate(over="ignore"):
                scaled = there * np.array(FACTORS)[:, np.newaxis]
            alike = (scaled >= low) & (scaled <= high) & (np.abs(scaled) >= small / SMALLER)
            self.like_fit += alike.sum(axis=1)

    def _factor(self) -> str:
        """Say by which power of ten numbers are larger or smaller than in the fit, if by one."""
        best = int(np.argmax(self.like_fit))
        factor, spans = FACTORS[best], self.most - self.least
        enough = SPANNED * (self.column["high"] / 2 - self.column["low"] / 2)
        if self.like_fit[best] < NEARLY_ALL * self.n_values or spans * factor < enough:
            return ""
        return FACTOR.format(*("multiplied", factor) if factor > 1 else ("divided", 1 / factor))

    def _count(self, how: str, values: Values, those: NDArray[np.bool_]) -> None:
        if those.any():
            place = int(np.argmax(those))
            self.first.setdefault(how, (values[place], self.n_rows + place))
            self.counts[how] += int(those.sum())

    def told(self, row: str = "row {}", start: int = 0) -> str:
        """Say what is unlike the fit, "" if nothing is; rows are counted from `start`."""
        name, dates = self.column["name"], self.column.get("holds") == "dates"
        if n := self.counts["new"]:
            return UNKNOWN.format(name, counted(n, "row"), self.first["new"][0])
        lacks = self.n_rows >= FEWEST_CODES and not self.n_values
        if lacks and self.column.get("indicator") is False:
            return EMPTY.format(name)
        enough = self.n_values >= FEWEST_NUMBERS and not dates
        most = [how for how, n in self.counts.items() if enough and 2 * n > self.n_values]
        how = "far" if self.counts["far"] else most[0] if most else ""
        if not how and self.are_one["outside"] and self.counts["outside"] >= FEWEST_CODES:
            how = "outside" if self.first["outside"][0] in CODES and not dates else ""
        if not how:
            return ""
        n, (value, place) = self.counts[how], self.first[how]
        is_code = n >= FEWEST_CODES or {*f"{abs(value):g}"} == {"9"}
        advice = self._factor() + UNIT if most else EXTRAPOLATED
        if is_code and self.are_one.get(how) and not dates:
            advice = CODE
        low, high, example = (
            str(np.datetime64(int(v), "s")).removesuffix("T00:00:00") if dates else f"{v:g}"
            for v in (self.column["low"], self.column["high"], value)
        )
        what = "far smaller than in the fit" if how == "small" else RANGE.format(low, high)
        of, where = counted(self.n_values, "value"), row.format(place + start)
        return TOLD.format(name, "far " * (how == "far") + what, n, of, example, where, advice)
