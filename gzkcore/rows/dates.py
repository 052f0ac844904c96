"""Dates in the text of files: 2024-12-31 or 31.12.2024, with an optional time and time zone."""

import datetime
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles

from .values import MISSING, Values

ISO_DATE = r"\d{4}-\d\d-\d\d([T ].*)?"  # whether there is such a day or not
TIME = r"[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{0,18})?)?)?"
# A date, or a date and a time and perhaps a zone. NumPy, asked for others, warns of zones.
DATED = re.compile(
    rf"(\d{{4}}-\d\d-\d\d)Z? *|(\d{{4}}-\d\d-\d\d{TIME}) *(?:Z|([+-])(\d\d):?(\d\d)?)? *", re.ASCII
)
DOTTED = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})(?=$|[T ])", re.ASCII)  # day, month, year
FEW = 32  # a choice: so few different texts may be a list of codes, dates or not
ALONE = np.ones(1, dtype=bool)
ZONES_TOLD = "times of column {!r} that have a zone are taken as UTC"


def as_iso(text: str) -> str:
    """Return 31.12.2024, with what follows, as 2024-12-31; other text as it is."""
    if (found := DOTTED.match(text)) is None:
        return text
    day, month, year = found.groups()
    time = re.sub(r"^([T ])(\d:)", r"\g<1>0\2", text[found.end() :])
    return f"{year}-{month:0>2}-{day:0>2}{time}"


def dates_of(texts: Values, there: NDArray[np.bool_]) -> tuple[Values | int, bool]:
    """Return dates of text in UTC, or the row of the first text that is none; did any have a zone.

    Parameters
    ----------
    texts : ndarray of str of shape (n_rows,)
    there : ndarray of bool of shape (n_rows,)
        Where there is a text; dates of the other rows are missing.
    """
    dates, zoned = np.full(len(texts), np.datetime64("NaT", "us")), False
    for row in np.flatnonzero(there):
        if (found := DATED.fullmatch(as_iso(texts[row]))) is None:
            return int(row), zoned
        day, time, sign, hours, minutes = found.groups()
        try:
            dates[row] = np.datetime64(time or day, "us")
        except ValueError:  # no such day
            return int(row), zoned
        if sign:
            east = np.timedelta64(60 * int(hours) + int(minutes or 0), "m")
            dates[row] -= east if sign == "+" else -east
            zoned = True
    return (dates if there.any() else 0), zoned


def are_mostly_dates(texts: Values) -> bool:
    """Say whether texts are dates, but for mistakes: they look like it, or most of many are."""
    look_like_it = all(re.fullmatch(ISO_DATE, as_iso(text)) for text in texts)
    if not look_like_it and len(set(texts)) <= FEW:
        return False
    found = [dates_of(texts[i : i + 1], ALONE)[0] for i in range(len(texts))]
    return 2 * sum(isinstance(date, np.ndarray) for date in found) > len(texts)


def seconds_of_array(values: Values) -> Doubles:
    """Return seconds of an array of dates or durations; NaT is NaN."""
    kind, unit = values.dtype.kind, np.datetime_data(values.dtype)[0]
    if unit in ("Y", "M", "generic"):
        unit = "s"
    since = values.astype(f"{kind}8[{unit}]") - np.array(0, dtype=f"{kind}8[{unit}]")
    seconds: Doubles = since / np.timedelta64(1, "s")
    return seconds


def seconds_of(value: Any) -> float:
    """Return seconds of one date or duration."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(seconds_of_array(np.array([value]))[0])
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
    elif value.tzinfo is None:
        value = value.replace(tzinfo=datetime.UTC)
    return float(value.timestamp())


def seconds_of_texts(values: Values, missing: NDArray[np.bool_]) -> tuple[Doubles | int, bool]:
    """Return seconds of dates in text, or the first row with something else; had any a zone.

    As the command reads them: each is 2024-12-31 or 31.12.2024, or a word such as NA for none,
    which is NaN.
    """
    texts, there = np.full(len(values), "", dtype=object), ~missing
    for row in np.flatnonzero(there):
        value = values[row]
        if not isinstance(value, str):
            return int(row), False
        texts[row] = value.strip()
        there[row] = texts[row].lower() not in MISSING
        if there[row] and as_iso(texts[row])[4:5] != "-":  # soon, where a column is no dates
            return int(row), False
    if not there.any():
        return np.full(len(values), np.nan), False
    dates, zoned = dates_of(texts, there)
    return (dates if isinstance(dates, int) else seconds_of_array(dates)), zoned
