"""Guesses about columns: row numbers, text that holds dates or numbers, and what a test needs."""

import itertools
import re
import shlex
import unicodedata
from collections.abc import Sequence

import numpy as np
from scipy.special import bdtr

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import as_plain, some_of
from gzkcore.rows.doubts import doubt_in
from gzkcore.rows.values import LARGEST_WHOLE, Values
from gzkcore.tabular.columns.number import skewness
from gzkcore.tabular.deviations import NORMAL_95
from gzkcore.tabular.targets import IDENTIFIER, MOST_LABELS

from .arguments import TestBy, listed
from .output import MOST_NAMED

# Names of numbers that rise from row to row and mean something.
ORDERED = re.compile(
    r"(?i)(^|[ _.-])"
    r"(t|time|step|second|minute|hour|day|week|month|quarter|year|age|period)s?"
    r"($|[ _.-])|timestamp|epoch|elapsed|dayof|yday"
)
DECADES = 2.0  # over which a target varies, from which on its logarithm may be meant
RAREST = 1 / 4  # of an even share of the rows: counts of things have rarer numbers, labels seldom
WITHIN, CHANCE = 0.9, 1e-3  # a smaller share of errors is told, unless it may be so by chance
YEARS = 1500, 2200  # whole numbers between these are years, more likely than not


def numbering_columns(
    names: list[str], rows: Integers, values: Doubles, n_rows: int, ends: Sequence[Doubles]
) -> dict[str, tuple[float, float]]:
    """Return the columns that seem to number the rows, and their ranges.

    These are whole numbers, each once, without gaps; those called id may have gaps, and so may
    those that rise with the rows of the file. Years and steps of time are no numbers of rows.
    `values` has a column for each name, of some rows of these numbers, drawn at random; `ends` are
    the least and the largest values of all rows.
    """
    numbering = {}
    for j, (name, low, high) in enumerate(zip(names, *ends, strict=True)):
        column = values[:, j]
        # NaN is not whole either; from 2^53 on not all whole numbers are there.
        whole = bool(np.all((column == np.round(column)) & (np.abs(column) < LARGEST_WHOLE)))
        if not whole or np.unique(column).size < column.size:
            continue
        rises = bool(np.all(column - rows == column[0] - rows[0]))
        may_be = rises or high - low == n_rows - 1 or IDENTIFIER.fullmatch(name) is not None
        # Numbers that mean something may count.
        if may_be and not (ORDERED.search(name) or YEARS[0] <= low <= high <= YEARS[1]):
            numbering[name] = float(low), float(high)
    return numbering


def about_row_numbers(numbering: dict[str, tuple[float, float]], columns: list[str]) -> str:
    """Say which columns seem to number the rows, and how to leave them out.

    "" where no other column would be left to predict from.
    """
    ranges = ", ".join(f"{name!r} ({a:.0f} to {b:.0f})" for name, (a, b) in numbering.items())
    words = ("columns", "seem", "them") if len(numbering) > 1 else ("column", "seems", "it")
    if {*columns} <= numbering.keys():
        return ""  # the only column that predicts
    remedy = f"leave {words[2]} out: --drop {shlex.quote(listed([*numbering]))}"
    return f"{words[0]} {ranges} {words[1]} to number the rows; if so, {remedy}"


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


def about_groups(column: str) -> str:
    """Say what random held-out rows don't test where rows of one value of a column are alike."""
    return (
        f"rows with the same {column!r} have similar targets, and the held-out rows share theirs "
        "with those learned from; to test predictions for others, hold out whole groups: "
        f"--test-groups {shlex.quote(column)}"
    )


def about_coverage(errors: Doubles, spread: Doubles, by: TestBy) -> str:
    """Say so where far fewer errors than should are within 1.96 standard deviations, else ""."""
    known = spread > 0
    sizes = np.abs(errors[known] / spread[known])
    n, within = len(sizes), int((sizes <= NORMAL_95).sum())
    if within >= WITHIN * n or bdtr(within, n, 0.95) > CHANCE:
        return ""
    rows, why = "these rows", ""
    if by.last is not None or by.gaps is not None:
        rows = "gaps between rows" if by.last is None else f"rows beyond the others in {by.last}"
        why = ", since they were learned mostly from rows held out at random"
    times = as_plain(float(np.quantile(sizes, 0.95)) / NORMAL_95, 2)
    return f"standard deviations are too small for {rows}{why}; multiply them there by {times}"


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


def about_numbered_labels(target: str, y: Doubles) -> str:
    """Say so where a target of numbers may be labels, else "".

    It has two values, or a few whole numbers in turn from 0 or 1 on.
    """
    values, counts = np.unique(y, return_counts=True)
    first, n = values[0], len(values)
    in_turn = first in (0, 1) and np.array_equal(values, first + np.arange(n))
    if 2 < n <= MOST_LABELS and in_turn and counts.min() >= RAREST * counts.mean():
        which = f"the values {first:.0f} to {values[-1]:.0f} alone"
    elif n == 2:
        which = "two values"
    else:
        return ""
    return f"{target} has {which}; gzkcore fit --classify treats them as labels"


def about_single_rows(target: str, labels: Values) -> str:
    """Say which labels have a single row, and what to do, "" if none has."""
    names, counts = np.unique(labels, return_counts=True)
    alone = [repr(name) for name in names[counts == 1].tolist()]
    if not alone:
        return ""
    return (
        f"labels of {target} with a single row, too few to learn from and to test: "
        f"{some_of(alone, MOST_NAMED)}; join them with others, or leave them out"
    )


def about_spellings(name: str, texts: Sequence[str]) -> str:
    """Say so where two texts of a column differ in case, spaces or codes alone, else ""."""
    known: dict[str, str] = {}
    for text in texts:
        plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
        if plain in known:
            both = f"{known[plain]!r} and {text!r}"
            return f"column {name!r} has {both}, which are spelt alike but for case: taken as two"
        known[plain] = text
    return ""


def about_blocks(name: str, column: Values) -> str:
    """Say so where the texts of a column seem to hold for rows without one below them, else ""."""
    some = [text for text in column if text is not None]
    if column[0] is None or not 3 <= len(some) <= len(column) / 2:
        return ""
    if any(text == other for text, other in itertools.pairwise(some)):
        return ""
    rows = f"{len(some):,} of {len(column):,} rows, and another one each time"
    return f"column {name!r} has a text in {rows}; if it holds for those below too, fill them in"


def doubtful_texts(column: Values) -> str:
    """Say what the texts of a column seem to be, and the remedy; "" if they are just text."""
    example, remedy = doubt_in({str(text) for text in column if text is not None})
    return f"texts such as {example!r} seem to be numbers or dates; {remedy}" if example else ""
