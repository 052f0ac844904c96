"""The parts of dates whose effects are drawn: time of the year, week and day, and the trend."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore.rows.values import Values

NEAR = 1 / 8  # of a period; farther from all dates no effect is drawn
EPOCH, MONDAY = np.datetime64("1970-01-01"), np.datetime64("1970-01-05")
SECOND = np.timedelta64(1, "s")
HOUR, DAY, WEEK = 3600 * SECOND, 86_400 * SECOND, 604_800 * SECOND
MONTH = 2_629_746 * SECOND  # a twelfth of a year of the calendar on average


class Part(NamedTuple):
    """The place of dates in a period; without ticks the trend, that of whole periods."""

    about: str
    unit: np.timedelta64  # of the axis
    n_units: float  # of the period
    step: np.timedelta64  # Dates are moved by whole steps: their places in shorter periods stay.
    around: Doubles  # where effects are drawn
    ticks: Mapping[int, str]
    start: np.datetime64 = EPOCH  # of a period

    @property
    def is_whole(self) -> bool:
        """Whether places are whole numbers, as days of the week are."""
        return bool(self.unit == self.step) and bool(self.ticks)

    def places(self, dates: Values) -> Doubles:
        """Return the places of dates along the axis."""
        places = (dates - self.start) / self.unit
        places = places % self.n_units if self.ticks else places
        return np.asarray(np.floor(places) if self.is_whole else places)

    def near(self, dates: Values) -> NDArray[np.bool_]:
        """Say which places around the period are near some dates."""
        apart = np.abs(self.around[:, None] - np.unique(np.round(self.places(dates))))
        apart = np.minimum(apart, self.n_units - apart).min(axis=1)
        return np.asarray(apart <= NEAR * self.n_units)

    def inner(self, dates: Values) -> NDArray[np.bool_]:
        """Say which dates can be moved by half a period without leaving their range, or all."""
        half = self.n_units * self.unit / 2
        inner = (dates >= dates.min() + half) & (dates <= dates.max() - half)
        return np.asarray(inner if inner.any() else ~inner)

    def moved(self, dates: Values, place: float) -> Values:
        """Return dates moved to a place in the period, or by whole periods to near a place."""
        ahead = place - self.places(dates)
        periods = self.n_units * np.round(ahead / self.n_units)
        ahead = ahead - periods if self.ticks else periods
        return np.asarray(dates + self.step * np.round(ahead * self.unit / self.step))


MONTHS = {0: "Jan", 3: "Apr", 6: "Jul", 9: "Oct", 12: "Jan"}
DAYS = dict(enumerate(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]))
HOURS = {hour: str(hour) for hour in range(0, 25, 6)}
CYCLES = {  # of the periods that `Date` encodes
    "year": Part("time of the year", MONTH, 12, WEEK, np.linspace(0, 12, 25), MONTHS),
    "week": Part("day of the week", DAY, 7, DAY, np.arange(7.0), DAYS, MONDAY),
    "day": Part("hour of the day", HOUR, 24, SECOND, np.linspace(0, 24, 25), HOURS),
}


def parts_of(periods: list[str], dates: Values) -> list[Part]:
    """Return the trend along some dates beyond the longest of periods, and these; or no part."""
    if not periods:
        return []
    cycles = [CYCLES[period] for period in periods]
    longest = cycles[0]
    n_days, days = longest.n_units * longest.unit / DAY, (dates - EPOCH) / DAY
    days = days[longest.inner(dates)]
    return [Part("trend", DAY, n_days, longest.step, days, {}), *cycles]
