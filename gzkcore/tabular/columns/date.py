"""Columns of dates: seconds since 1970 in UTC, standardised, and waves of their periods.

Dates also give the time of the year, of the week and of the day, each as sine and cosine, where
they span two such periods or more, and their phases vary.
"""

import numpy as np

from gzkcore._util.remark import Remark
from gzkcore._util.state import sequence, stored, text
from gzkcore._util.typing import Doubles
from gzkcore.rows.dates import DAY_SECONDS, date_told
from gzkcore.rows.text import DATE
from gzkcore.rows.values import about_sentinel, sentinel_of
from gzkcore.tabular.remarks import done

from .cells import DATES, Cells
from .number import Number

PERIODS = {"year": 365.2425 * DAY_SECONDS, "week": 7 * DAY_SECONDS, "day": DAY_SECONDS}  # seconds
FEWEST_PERIODS = 2  # Dates that span fewer periods say nothing of the time in one.
ALIKE = 0.99  # The phases hardly vary if the mean of their unit vectors is longer.
# Dates are moved by so many days before codes for missing ones are looked for: then none has few
# digits, as such codes have.
BEYOND = 5e6


class Date(Number):
    """A column of dates.

    Attributes
    ----------
    periods : list of str
        Those of `PERIODS` whose waves are encoded.
    """

    _state = stored(periods=sequence(text(*PERIODS)))
    kind = "date"
    HOLDS = (DATES,)
    CHOICES = ("date",)
    IN_FILES = DATE

    @classmethod
    def as_chosen(cls, cells: Cells) -> Cells:
        """Return cells as dates, or raise."""
        return cells.as_dates()

    def learn(self, cells: Cells) -> None:
        """Learn how to standardise dates, and which periods they have."""
        super().learn(cells)
        self.periods = periods_of(cells.values[~cells.missing])

    def _doubt_values(self, there: Doubles, *, may_be_days: bool) -> None:
        """Warn of a date that may stand for a missing one."""
        if (code := sentinel_of(there / DAY_SECONDS + BEYOND)) is not None:
            day = np.datetime64(round((code - BEYOND) * DAY_SECONDS), "s").astype("M8[D]")
            sentence = about_sentinel(f"column {self.name!r}", day, "date")
            self.doubt(Remark("code", self.names, sentence))

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the groups of encoded columns: the date, periods, and if it is missing."""
        (_, names), *marked = super().parts()
        waves = [
            ("period", [f"{self.name}, {wave} of the {period}" for wave in ("sine", "cosine")])
            for period in self.periods
        ]
        return [("date", names), *waves, *marked]

    def _waves(self, values: Doubles) -> list[Doubles]:
        phases = [2 * np.pi * (values / PERIODS[period] % 1.0) for period in self.periods]
        return [wave(phase) for phase in phases for wave in (np.sin, np.cos)]

    def _wave_slopes(self, values: Doubles) -> list[Doubles]:
        slopes = []
        for period in self.periods:
            rate = 2 * np.pi / PERIODS[period]
            slopes += [rate * np.cos(rate * values), -rate * np.sin(rate * values)]
        return slopes

    def shown(self, value: float) -> str:
        """Return a date for a sentence."""
        return date_told(np.datetime64(int(value), "s"))

    def remarks(self) -> list[Remark]:
        """Return what was done to the dates."""
        remarks = [*super().remarks(), done("dates", self.name, "read as dates")]
        if self.periods:
            words = f"that also give the time of the {' and '.join(self.periods)}"
            remarks.append(done("periods", self.name, words))
        return remarks


def periods_of(seconds: Doubles) -> list[str]:
    """Return the periods that dates span twice or more, and whose phases vary."""
    periods = []
    for name, period in PERIODS.items():
        phases = np.exp(2j * np.pi * (seconds / period % 1.0))
        enough = seconds.size and np.ptp(seconds) >= FEWEST_PERIODS * period
        if enough and abs(phases.mean()) < ALIKE:
            periods.append(name)
    return periods
