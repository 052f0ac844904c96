"""What columns seem to be, although nobody said so: row numbers, dates, numbers with signs."""

import re
import shlex

import numpy as np

from gzkcore._util.typing import Integers
from gzkcore.learn.categories import example_of, spread, what_texts_seem
from gzkcore.rows.frames import Values

from .arguments import listed
from .output import MOST_NAMED

# Names of numbers that rise from row to row and mean something, and of those that mean nothing.
ORDERED = re.compile(
    r"(?i)(^|[ _.-])"
    r"(t|time|step|second|minute|hour|day|week|month|quarter|year|age|period)s?"
    r"($|[ _.-])|timestamp|epoch|elapsed|dayof|yday"
)
IDENTIFIER = re.compile(r"(.*[ _.-])?(?i:id)|.*[a-z]I[dD]")
YEARS = 1500, 2200  # whole numbers between these are years, more likely than not
REMEDIES = {
    "dates": "write them as 2024-12-31",
    "numbers": "write the numbers alone, such as 1200.5",
    "decimal commas": "write a decimal point, or add --decimal-comma",
}


def numbers_rows(name: str, column: Values, rows: Integers) -> bool:
    """Say whether a column seems to number the rows: whole numbers, each once, without gaps.

    Those called id may have gaps. Years and steps of time are no numbers of rows.

    Parameters
    ----------
    name : str
    column : ndarray
    rows : ndarray of int
        The numbers of the rows in the file.
    """
    if column.dtype.kind != "f" or not np.all(column == np.round(column)):
        return False  # NaN is not whole either
    low, high = float(column.min()), float(column.max())
    if means_something(name, low, high):
        return False
    if np.all(column - rows == column[0] - rows[0]):
        return True
    without_gaps = high - low == len(column) - 1
    may_be = without_gaps or IDENTIFIER.fullmatch(name) is not None
    return may_be and len(np.unique(column)) == len(column)


def means_something(name: str, low: float, high: float) -> bool:
    """Say whether numbers of this name and range mean something, although they count."""
    return ORDERED.search(name) is not None or YEARS[0] <= low <= high <= YEARS[1]


def about_row_numbers(found: dict[str, tuple[float, float]], columns: list[str]) -> str:
    """Say which columns seem to number the rows, and how to leave them out.

    "" where no other column would be left to predict from.
    """
    told = ", ".join(f"{name!r} ({low:.0f} to {high:.0f})" for name, (low, high) in found.items())
    words = ("columns", "seem", "them") if len(found) > 1 else ("column", "seems", "it")
    rest = [name for name in columns if name not in found]
    more = ",..." if len(rest) > MOST_NAMED else ""
    if not rest:
        return ""  # the only column that predicts
    remedy = f"leave {words[2]} out: --columns {shlex.quote(listed(rest[:MOST_NAMED]))}{more}"
    return f"{words[0]} {told} {words[1]} to number the rows; if so, {remedy}"


def doubtful_texts(column: Values) -> str:
    """Say what the texts of a column seem to be, and the remedy; "" if they are just text."""
    texts = spread(sorted({str(text) for text in column if text is not None}))
    seem = what_texts_seem(texts)
    if not seem:
        return ""
    kind = "numbers" if seem == "decimal commas" else seem
    return f"texts such as {example_of(texts)!r} seem to be {kind}; {REMEDIES[seem]}"
