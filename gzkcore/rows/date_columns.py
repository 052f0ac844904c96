"""Dates and durations of a table, of any type or as text, in seconds; dates count from 1970 UTC."""

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles

from .dates import as_iso, dates_of
from .values import MISSING

Values = NDArray[Any]


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
