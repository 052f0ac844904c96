"""Columns of numbers and of durations, standardised.

A skewed column of positive numbers first becomes logarithms, log(1 + v / unit). If values are more
than 10 standard deviations from the mean, the column is replaced by the normal scores of its ranks,
since a few such rows would determine the scale of all. If most values are equal, only the others
count for this rule. A missing number becomes the median, and a 1 in an extra column marks it.
"""

import math
from collections import Counter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gzkcore._util.remark import Remark
from gzkcore._util.state import doubles, flag, number, sequence, stored, text
from gzkcore._util.typing import Doubles
from gzkcore._util.wording import counted
from gzkcore.rows.dates import DAY_SECONDS, about_days
from gzkcore.rows.degrees import AXES, LONGITUDE, axis_of
from gzkcore.rows.text import NUMBER
from gzkcore.rows.values import Values, about_sentinel, seem_rounded, sentinel_of
from gzkcore.sphere.globe import from_west
from gzkcore.tabular.remarks import done

from .cells import DATES, DURATIONS, NUMBERS, Cells
from .column import Column, Drift

# A value farther out than this, in standard deviations, makes a column one of ranks.
OUTLYING = 10.0
# One of n values lies at most sqrt(n - 1) standard deviations out: of few values, this share of it
# counts as far out, and with fewer than FEWEST_JUDGED values one lies so far out by chance.
NEARLY, FEWEST_JUDGED = 0.99, 5
QUANTILES = 1000  # knots of the ranks
# Columns get logarithms if their skewness is above SKEWED and that of the logarithms below
# LEFT_SKEWED, if they have FEWEST_SKEWED values, and a share of zeros of at most MOST_ZEROS. The
# unit of the logarithms is the quantile of order UNIT of the positive values.
SKEWED, LEFT_SKEWED, FEWEST_SKEWED, MOST_ZEROS, UNIT = 2.0, 1.5, 50, 0.1, 0.1
SMALL_SHARE = 0.05  # So large a share of a fit's numbers may be smaller than nearly all others.
# Values of a tiny column that lie farther out than numbers go are put here.
FARTHEST = float(np.finfo(np.float64).max)

# Numbers of new rows are unlike the fit if most of at least FEWEST_NUMBERS are outside its range,
# or SMALLER times smaller than nearly all of it; single ones if they are outside by the range.
FEWEST_NUMBERS, SMALLER = 20, 5.0
# A number outside that is there so often, or one of these even near the range, may be a code.
FEWEST_CODES, CODES = 3, (0, -1, -9, -99)
# A column is in another unit if nearly all numbers are like the fit once multiplied by a factor,
# and then span this share of its range.
FACTORS, NEARLY_ALL, SPANNED = (0.1, 0.01, 0.001, 10.0, 100.0, 1000.0), 0.95, 0.25


class Number(Column):
    """A column of numbers, or of durations in seconds.

    Attributes
    ----------
    holds : {"numbers", "dates", "durations"}
    form : list of str
        How text has the numbers written, see `gzkcore.rows.text`.
    fills_in : bool
        Whether some values of the fit are missing, so that a column marks such rows.
    fill : float
        The median, for missing values.
    mean, scale : float
        Of the numbers, their logarithms or scores.
    low, high, small : float
        The range of the numbers, and the size that nearly all of them exceed.
    unit : float
        Of the logarithms; 0 without.
    quantiles : ndarray or None
        Of numbers that are encoded by the normal scores of their ranks.
    code : float or None
        A number that may stand for a missing value.
    chosen : str
        The choice of a user, "" without.
    west : float or None
        Longitudes of a region are counted from here, where the fit has none.
    """

    _state = stored(
        holds=text("numbers", "dates", "durations"),
        chosen=text(),
        form=sequence(text()),
        fills_in=flag(),
        **dict.fromkeys(("fill", "mean", "scale", "low", "high"), number()),
        **dict.fromkeys(("small", "unit"), number(0)),
        quantiles=doubles(None).if_there(),
        **dict.fromkeys(("code", "west"), number().if_there()),
    )
    kind = "number"
    HOLDS: ClassVar[tuple[str, ...]] = (NUMBERS, DURATIONS)
    CHOICES: ClassVar[tuple[str, ...]] = ("number", "log", "linear", *AXES)
    IN_FILES = NUMBER

    holds: str
    chosen: str
    form: list[str]
    fill: float
    mean: float
    scale: float
    low: float
    high: float
    small: float
    unit: float
    quantiles: Doubles | None = None
    code: float | None = None
    west: float | None = None

    @classmethod
    def as_chosen(cls, cells: Cells) -> Cells:
        """Return cells as numbers, or raise."""
        cells = cells.as_numbers()
        if cells.chosen in AXES and (cells.holds != NUMBERS or cells.missing.all()):
            has = cells.holds if cells.holds != NUMBERS else "no value"
            raise ValueError(f"column {cells.name!r} can't be a {cells.chosen}: it has {has}")
        return cells

    def learn(self, cells: Cells) -> None:
        """Learn how to standardise numbers, or their logarithms."""
        values = cells.values.astype(np.float64)
        there = values[~cells.missing]
        self.holds, self.form, self.chosen = cells.holds, list(cells.form), cells.chosen
        if cells.chosen == "log":
            if not (there > 0).any():
                raise ValueError(
                    f"column {self.name!r} has no number above 0, so that it has no logarithms, as "
                    f"columns[{self.name!r}] says; choose 'linear'"
                )
            unit = usual_unit(there)
        else:
            may_be_logarithms = cells.logarithms and cells.holds == NUMBERS
            unit = unit_of(there) if may_be_logarithms and cells.chosen != "linear" else 0.0
        self.standardise(values, unit, ranks=cells.chosen not in ("log", "linear"))
        self._doubt_values(there, may_be_days=not (self.form or cells.chosen))

    def standardise(self, values: Doubles, unit: float = 0.0, *, ranks: bool = True) -> None:
        """Learn how to standardise numbers, or their logarithms in a unit that is not 0.

        With `ranks` they become normal scores if some lie far out.
        """
        missing = np.isnan(values)
        there = values[~missing]
        self.fills_in, self.unit = bool(missing.any()), unit
        self.low, self.high = float(there.min()), float(there.max())
        self.small = 2 * float(np.quantile(np.abs(there / 2), SMALL_SHARE))
        self.fill = 2 * float(np.median(there / 2))
        vars(self).pop("quantiles", None)
        if self.low == self.high:  # Only whether the value is there tells rows apart.
            self.fill = self.mean = float(there[0])
            self.scale = 1.0
            return
        if unit:
            there = logarithms(there, unit)
        # Of values up to 1e308 neither a sum, a square nor a difference may overflow.
        largest = float(np.abs(there).max())
        small = there / largest
        mean, scale = float(small.mean()), float(small.std())
        self.mean = mean * largest
        self.scale = (scale or 1.0) * largest or math.ulp(0.0)  # half of 5e-324 is no number
        if ranks and _some_far_out(small):
            knots = np.linspace(0.0, 1.0, min(QUANTILES, there.size))
            self.quantiles = 2 * np.quantile(there / 2, knots)
            scores = normal_scores(there, self.quantiles)
            self.mean, self.scale = float(scores.mean()), float(scores.std()) or 1.0

    def _doubt_values(self, there: Doubles, *, may_be_days: bool) -> None:
        """Warn of a code for missing values, and of numbers that may be days or rounded ids."""
        if self.holds != NUMBERS:
            return
        if (code := sentinel_of(there)) is not None:
            self.code = code
            sentence = about_sentinel(f"column {self.name!r}", code)
            self.doubt(Remark("code", self.names, sentence))
        if may_be_days and (seem := about_days(self.name, there)):
            example = f"{there[0]:.15g}"
            sentence = f"column {self.name!r} holds numbers such as {example}, which {seem}"
            self.doubt(Remark("days", self.names, sentence))
        if may_be_days and seem_rounded(there):
            seem = f"such as {there[0]:.0f}, which may be ids that doubles from 2^53 on round"
            sentence = f"column {self.name!r} holds numbers {seem}"
            self.doubt(Remark("rounded", self.names, sentence, "pass ids as text"))

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the groups of encoded columns: the number, and whether it is missing."""
        marked = [("missing", [f"{self.name} is missing"])] if self.fills_in else []
        return [("number", [self.name]), *marked]

    def read(self, *cells: Cells) -> Values:
        """Return the numbers of new rows, which text may stand for."""
        values = cells[0].read_as(self.holds, self.form, padded=self.chosen != "")
        if self.west is None:
            return values
        if (beyond := np.abs(values - 180) > 360).any():
            row = int(np.argmax(beyond))
            what = f"longitude {values[row]:g} is outside -180 to 360 degrees"
            raise ValueError(f"column {self.name!r}, row {row}: {what}")
        return from_west(values, self.west)

    def filled(self, values: Doubles) -> Doubles:
        """Return values with the median where they are missing."""
        return np.where(np.isnan(values), self.fill, values)

    def encode(self, values: Values) -> Doubles:
        """Return encoded rows."""
        known = scored = self.filled(values)
        if self.unit:
            scored = logarithms(scored, self.unit)
        if self.quantiles is not None:
            scored = normal_scores(scored, self.quantiles)
        with np.errstate(over="ignore"):
            encoded = (scored / 2 - self.mean / 2) / self.scale * 2  # 1e308 - -1e308 is inf
        columns = [np.clip(encoded, -FARTHEST, FARTHEST), *self._waves(known)]
        if self.fills_in:
            columns.append(np.isnan(values).astype(np.float64))
        return np.column_stack(columns)

    def _waves(self, values: Doubles) -> list[Doubles]:
        """Return more columns of numbers, between the number and whether it is missing."""
        return []

    def slopes(self, values: Values) -> Doubles | None:
        """Return the derivatives of encoded columns, by days for dates and durations.

        None for ranks, whose slope is 0 nearly everywhere.
        """
        if self.quantiles is not None:
            return None
        slope = np.where(np.isnan(values), np.nan, 1.0 / self.scale)
        if self.unit:
            slope /= self.unit + np.abs(values)
        columns = [slope, *self._wave_slopes(values)]
        if self.fills_in:
            columns.append(np.zeros(len(values)))
        by = 1.0 if self.holds == NUMBERS else DAY_SECONDS
        return np.stack([column * by for column in columns], axis=1)[:, None]

    def _wave_slopes(self, values: Doubles) -> list[Doubles]:
        return []

    def unknown(self, values: Values) -> NDArray[np.bool_]:
        """Return which values are missing, where none was in the fit."""
        return np.isnan(values)[:, None] & (not self.fills_in)

    def extremes(self) -> Doubles:
        """Return numbers two standard deviations from the mean, if they have no other columns."""
        return np.array([[-2.0], [2.0]]) if len(self.encoded_names) == 1 else super().extremes()

    def shown(self, value: float) -> str:
        """Return a value of the column for a sentence."""
        return f"{value:g}"

    def drift(self) -> Drift:
        """Return what collects how new numbers differ from those of the fit."""
        return NumberDrift(self)

    def remarks(self) -> list[Remark]:
        """Return what was done to the numbers."""
        remarks = []
        if self.unit:
            words = "encoded by logarithms" + " because they are skewed" * (not self.chosen)
            remarks.append(done("logarithms", self.name, words))
        if self.quantiles is not None:
            words = "encoded by ranks because of extreme values"
            remarks.append(done("ranks", self.name, words))
        if self.code is not None:
            words = "with a number far from all others that repeats, and is taken as it is"
            remarks.append(done("code", f"{self.name} ({self.code:g})", words))
        if self.fills_in:
            remarks.append(done("filled", self.name, "whose missing values are filled in"))
        return remarks


class NumberDrift(Drift):
    """How the numbers of new rows differ from those of the fit."""

    column: Number

    def __init__(self, column: Number) -> None:
        super().__init__(column)
        self.n_values = 0
        self.counts: Counter[str] = Counter()  # of numbers that are unlike the fit, by how
        self.first: dict[str, tuple[float, int]] = {}  # of these, and its row
        self.are_one = {"far": True, "outside": True}  # whether all such numbers are equal
        self.like_fit = np.zeros(len(FACTORS))  # how many are if multiplied
        self.least, self.most = np.inf, -np.inf

    def add(self, values: Values, unknown: NDArray[np.bool_]) -> None:
        """Add numbers, NaN where they are missing."""
        column = self.column
        low, high, small = column.low / 2, column.high / 2, column.small / 2
        halves = values / 2  # whose differences don't overflow
        beyond = np.maximum(halves - high, low - halves)
        far, outside, tiny = beyond > high - low, beyond > 0, np.abs(halves) < small / SMALLER
        no_logarithm = outside & (halves <= 0) & (column.unit > 0 <= low)
        unlike = {"far": far, "outside": outside, "small": tiny, "no logarithm": no_logarithm}
        if axis_of(column.name) == LONGITUDE:
            unlike["turned"] = outside & (from_west(values, column.low) <= column.high)
        for how, those in unlike.items():
            if those.any():
                place = int(np.argmax(those))
                self.first.setdefault(how, (values[place], self.n_rows + place))
                self.counts[how] += int(those.sum())
                if how in self.are_one:
                    self.are_one[how] &= bool((values[those] == self.first[how][0]).all())
        super().add(values, unknown)
        there = halves[~np.isnan(halves)]
        self.n_values += there.size
        if 2 * np.count_nonzero(outside | tiny) > there.size:
            self.least = there.min(initial=self.least)
            self.most = there.max(initial=self.most)
            with np.errstate(over="ignore"):
                scaled = there * np.array(FACTORS)[:, np.newaxis]
            alike = (scaled >= low) & (scaled <= high) & (np.abs(scaled) >= small / SMALLER)
            self.like_fit += alike.sum(axis=1)

    def remarks(self, row: str = "row {}", start: int = 0) -> list[Remark]:
        """Return what is unlike the fit; rows are counted from `start`."""
        column, are_dates = self.column, self.column.holds == DATES
        missing = super().remarks(row, start)
        enough = self.n_values >= FEWEST_NUMBERS and not are_dates
        usual = [how for how, n in self.counts.items() if enough and 2 * n > self.n_values]
        how = "far" if self.counts["far"] else usual[0] if usual else ""
        if not how and self.are_one["outside"] and self.counts["outside"] >= FEWEST_CODES:
            how = "outside" if self.first["outside"][0] in CODES and not are_dates else ""
        how = how or "no logarithm" * bool(self.counts["no logarithm"])
        how = "turned" if self.counts["turned"] else how
        if not how:
            return missing
        n, (value, place) = self.counts[how], self.first[how]
        is_code = n >= FEWEST_CODES or {*f"{abs(value):g}"} == {"9"}
        remedy = "predictions there are extrapolated"
        if is_code and self.are_one.get(how) and not are_dates:
            remedy = "if it stands for a missing value, leave it empty"
        elif usual:
            remedy = f"{self._factor()}if it is in another unit, convert it"
        if how == "turned":
            remedy = "360 degrees from there they are in it: count longitudes as the fit does"
        low, high, example = map(column.shown, (column.low, column.high, value))
        what = f"{'far ' * (how == 'far')}outside the range of the fit, {low} to {high},"
        if how == "small":
            what = "far smaller than in the fit"
        elif how == "no logarithm":
            what = "0 or below, where the fit took logarithms of positive numbers,"
            remedy = "leave missing values empty, or choose 'linear' for the column in the fit"
        of, where = counted(self.n_values, "value"), row.format(place + start)
        unlike = f"column {column.name!r} is {what} in {n:,} of {of}, first {example} in {where}"
        return [*missing, Remark("unlike the fit", column.names, unlike, remedy)]

    def _factor(self) -> str:
        """Say by which power of ten numbers are larger or smaller than in the fit, if by one."""
        best = int(np.argmax(self.like_fit))
        factor, spans = FACTORS[best], self.most - self.least
        enough = SPANNED * (self.column.high / 2 - self.column.low / 2)
        if self.like_fit[best] < NEARLY_ALL * self.n_values or spans * factor < enough:
            return ""
        by = f"multiplied by {factor:.0f}" if factor > 1 else f"divided by {1 / factor:.0f}"
        return f"{by} they are like the fit; "


def unit_of(values: Doubles) -> float:
    """Return the unit of the logarithms that a skewed column of positive numbers gets, else 0."""
    few = values.size < FEWEST_SKEWED
    if few or values.min() < 0 or not values.any() or np.mean(values == 0) > MOST_ZEROS:
        return 0.0
    unit = usual_unit(values)
    if not skewness(values / values.max()) > SKEWED:
        return 0.0
    return unit if abs(skewness(logarithms(values, unit))) < LEFT_SKEWED else 0.0


def usual_unit(values: Doubles) -> float:
    """Return the unit of logarithms of numbers some of which are positive."""
    return float(np.quantile(values[values > 0], UNIT))


def skewness(values: Doubles) -> float:
    """Return the mean cube of standardised values."""
    far = values - values.mean()
    return float(np.mean(far**3)) / (float(values.std()) ** 3 or 1.0)


def logarithms(values: Doubles, unit: float) -> Doubles:
    """Return log(1 + v / unit); the same of -v, negative, for negative v."""
    with np.errstate(divide="ignore"):
        sizes = np.logaddexp(0.0, np.log(np.abs(values)) - math.log(unit))
    signed: Doubles = np.sign(values) * sizes
    return signed


def _some_far_out(values: Doubles) -> bool:
    """Return whether some values would set the scale of all others.

    Where most values are alike, say 0, the rare ones lie far from these by their rarity alone: one
    in 100 is 10 standard deviations out. So they are judged among themselves.
    """
    rare = values[values != np.median(values)]
    judged = rare if 2 * rare.size < values.size else values
    if values.size < FEWEST_JUDGED or np.unique(judged).size <= 2:
        return False
    farthest = float(np.abs(judged - judged.mean()).max())
    most = NEARLY * math.sqrt(judged.size - 1)
    return farthest > min(OUTLYING, most) * float(judged.std())


def normal_scores(values: Doubles, quantiles: Doubles) -> Doubles:
    """Return normal scores of ranks: of equal quantiles the mean rank, as in scikit-learn's."""
    knots = np.linspace(0.0, 1.0, len(quantiles))
    values, quantiles = values / 2, quantiles / 2  # differences don't overflow
    up = np.interp(values, quantiles, knots)
    down = 1.0 - np.interp(-values, -quantiles[::-1], knots)
    end = 0.5 / len(quantiles)
    scores: Doubles = ndtri(np.clip((up + down) / 2, end, 1 - end))
    return scores
