"""Dates in the text of files: 2024-12-31, with an optional time and time zone."""

import re
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[Any]

ISO_DATE = r"\d{4}-\d\d-\d\d([T ].*)?"  # whether there is such a day or not
ZONED = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d.*)([+-])(\d\d):?(\d\d)?")
ALONE = np.ones(1, dtype=bool)
ZONES_TOLD = "times of column {!r} that have a zone are taken as UTC"


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
        text = texts[row]
        if len(text) < 8 or not text[:4].isdigit() or text[4] != "-":
            return int(row), zoned
        zone = ZONED.fullmatch(text)
        try:
            dates[row] = np.datetime64(zone[1] if zone else text.removesuffix("Z"), "us")
        except ValueError:
            return int(row), zoned
        if zone:
            minutes = int(zone[2] + "60") * int(zone[3]) + int(zone[2] + (zone[4] or "0"))
            dates[row] -= np.timedelta64(minutes, "m")
            zoned = True
    return (dates if there.any() else 0), zoned


def are_mostly_dates(texts: Values) -> bool:
    """Say whether texts look like ISO dates, of which most are: the others are mistakes."""
    if not all(re.fullmatch(ISO_DATE, text) for text in texts):
        return False
    found = [dates_of(texts[i : i + 1], ALONE)[0] for i in range(len(texts))]
    return 2 * sum(isinstance(date, np.ndarray) for date in found) > len(texts)
