"""Columns that do not predict: a saved index of pandas, row names of R, comments without a name."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .dates import DATED
from .values import Values, as_number, missing_of

MOST_ROWS = 1000  # So many first rows tell whether a column is an index.
FEWEST = 10  # With fewer rows a column may count them by chance.
NEARLY_EMPTY = 0.9  # A column without a name is a comment if a larger share of it is empty.
UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+)*")  # how pandas and we call columns without a name
SAVED = re.compile(r"Unnamed: 0(\.\d+)*|__index_level_\d+__")  # how pandas calls a saved index
COUNTS = re.compile(r"[Ii]ndex|level_\d+|X|\.\.\.1|[Rr]ow[ _.]?([Nn]um(ber)?|[Nn]ames?|[Ii][Dd])")


def may_be_index(name: str, place: int) -> bool:
    """Say whether a column of this name and place may be a saved index."""
    return _is_saved(name, place) or COUNTS.fullmatch(name) is not None


def is_index(name: str, place: int, values: Sequence[Any], *, saved: bool = False) -> bool:
    """Say whether a column with these first values is an index, which a file says or its name.

    Without a name of its own it is one if it counts, or has whole numbers or texts of which none is
    there twice and none is a date; with a name such as `index` or `X` if it counts the rows.
    """
    numbers = np.array([as_number(value) for value in values[:MOST_ROWS]])
    if not saved and not _is_saved(name, place):
        counts = len(numbers) >= FEWEST and numbers[0] in (0, 1)
        is_named = COUNTS.fullmatch(name) is not None
        return is_named and counts and bool(np.all(numbers - numbers[0] == np.arange(len(numbers))))
    if not np.isnan(numbers).all():
        named = saved and not _is_saved(name, place)
        steps = np.diff(numbers)  # of two tables they count from 0 twice
        counts = not named and bool(2 * np.count_nonzero(steps == 1) > len(steps))
        return bool(np.all(numbers % 1 == 0)) and (counts or len({*numbers}) == len(numbers))
    texts = {text for text in values if isinstance(text, str) and not DATED.fullmatch(text.strip())}
    return len(texts) == len(values)


def is_comment(name: str, values: Values) -> bool:
    """Say whether a column is a comment beside the table: without a name, and nearly empty."""
    return UNNAMED.fullmatch(name) is not None and NEARLY_EMPTY <= missing_of(values).mean() < 1


def _is_saved(name: str, place: int) -> bool:
    return SAVED.fullmatch(name) is not None or (name == "" and place == 0)
