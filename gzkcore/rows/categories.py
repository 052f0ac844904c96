"""Columns of text and categories: their levels, and the columns of 0 and 1 that encode them."""

import numbers
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore._util.warn import warn

from .values import Values, as_number

SEEN = 1000  # different texts, spread over all, that tell what a column seems to hold
NEARLY_ALL = 0.95  # of them that must fit
DAY, MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
DATES = (
    rf"\d{{4}}-{MONTH}-{DAY}([T ].*)?|"
    rf"({DAY}[./-]{MONTH}|{MONTH}[./-]{DAY})[./-](\d\d|\d{{4}})( .*)?"
)
PART = r"(?:0|[1-9]\d?)"  # dates with two digits of the year have zeros before some
VERSIONS = rf"{PART}\.{PART}\.{PART}"
ANSWERS = r"([1-9]\d?)(?:,([1-9]\d?))?"  # the numbers of one or two choices, in order
SIGN = r"(?:[€$£¥₹%]|EUR|USD|GBP|CHF|JPY)"
GROUPED = r"[1-9]\d{0,2}(?:[,.'’\s]\d{3})"  # with separators of thousands
NUMBERS = rf"[+-]?{SIGN}?\s*[+-]?(?:{GROUPED}+|\d+)(?:[.,]\d+)?\s*{SIGN}?"
SEPARATED_TWICE = rf"[+-]?(?:{GROUPED}+[.,]\d+|{GROUPED}{{2,}})"
LOST = {
    "dates": "for dates pass pandas.to_datetime of the column",
    "numbers": "for numbers remove signs and separators of thousands, and convert them",
    "decimal commas": "for numbers replace the decimal comma by a point, and convert them",
}
LEVELS = 32  # columns for the levels of a category, at most
# Levels of a column that was text of true and false: booleans and numbers are spelt so there.
SPELT = {"1": "True", "0": "False"}


def category_of(name: str, values: Values, missing: NDArray[np.bool_]) -> dict[str, Any]:
    """Describe a column of text, with the levels that get a column each."""
    levels, counts = np.unique(texts_of(values, missing), return_counts=True)
    if len(levels) < 2:
        return {"name": name, "kind": "constant"}
    if mostly_different(len(levels) - int(missing.any()), len(values) - int(missing.sum())):
        _warn_of_lost(name, spread([level for level in levels.tolist() if level]))
        return {"name": name, "kind": "name"}
    kept = sorted(levels[np.argsort(-counts, kind="stable")][:LEVELS].tolist())
    found = {"name": name, "kind": "category", "levels": kept}
    return found | {"levels": kept[1:], "first": kept[0]} if len(kept) == 2 else found


def what_texts_seem(texts: list[str]) -> str:
    """Return what nearly all of these texts seem to be, a key of LOST.

    "" if they are just text, or may be something else: versions, or choices that were ticked.
    """

    def some(like: str) -> bool:
        return any(re.search(like, text) for text in texts)

    def every(like: str) -> bool:
        fit = sum(re.fullmatch(like, text) is not None for text in texts)
        return bool(texts) and fit >= NEARLY_ALL * len(texts)

    if every(DATES):
        return "" if every(VERSIONS) else "dates"
    if not every(NUMBERS):
        return ""
    if some(SIGN) or some(rf"^{SEPARATED_TWICE}$"):
        return "numbers"
    if some(GROUPED) and every(rf"[+-]?({GROUPED}|\d{{1,3}})"):  # those below 1,000 have none
        return "numbers"
    return "decimal commas" if some(",") and not are_answers(texts) else ""


def are_answers(texts: list[str]) -> bool:
    """Say whether nearly all texts may be the numbers of choices, such as 4 and 1,4."""
    found = [match for text in texts if (match := re.fullmatch(ANSWERS, text))]
    rising = sum(m[2] is None or int(m[1]) < int(m[2]) for m in found)
    return rising >= NEARLY_ALL * len(texts)


def spread(texts: list[str]) -> list[str]:
    """Return as many of these texts as tell what they seem to be, from first to last."""
    return texts[:: 1 + (len(texts) - 1) // SEEN] if texts else []


def example_of(texts: list[str]) -> str:
    """Return a text of those that seem to be dates or numbers that is one."""
    return next(text for text in texts if re.fullmatch(f"{DATES}|{NUMBERS}", text))


def _warn_of_lost(name: str, texts: list[str]) -> None:
    """Warn where texts that are left out are numbers, or seem to be numbers or dates."""
    told = ""
    others = [text for text in texts if np.isnan(as_number(text))]
    if len(others) <= (1 - NEARLY_ALL) * len(texts):
        but = f", but for such as {others[0]!r}" if others else ""
        told = (
            f"which are numbers{but}; if these measure something, convert them, in pandas "
            "to_numeric(..., errors='coerce')"
        )
    elif seem := what_texts_seem(texts):
        told = f"such as {example_of(texts)!r}; {LOST[seem]}"
    if told:
        warn(
            f"column {name!r} is left out: it holds text, and nearly every row has a different "
            f"one, {told}",
            UserWarning,
        )


def mostly_different(n_levels: int, n_values: int) -> bool:
    """Say whether so many different texts among values tell rows apart, and nothing else."""
    return n_levels > max(LEVELS, n_values / 2)


def new_levels(column: dict[str, Any], texts: Values) -> NDArray[np.bool_]:
    """Return where a level is that no row of the fit had; False of columns with rare levels.

    A new one is as good as a rare one there: both have zeros.
    """
    known = levels_of(column)
    if len(known) >= LEVELS:
        return np.zeros(len(texts), dtype=bool)
    return ~np.isin(texts, known)


def levels_of(column: dict[str, Any]) -> list[str]:
    """Return the levels of the fit that have a column, or of two have none; "" is missing."""
    return [*column["levels"], *([column["first"]] if "first" in column else [])]


def spelt_as(column: dict[str, Any], texts: Values) -> Values:
    """Return levels as the column had them in `fit`: the command reads true and false as text."""
    if not {*levels_of(column)} <= {*SPELT.values(), ""}:
        return texts
    return np.array([SPELT.get(text, text) for text in texts], dtype=object)


def encode_category(column: dict[str, Any], texts: Values) -> list[Doubles]:
    """Return a column of 0 and 1 for each level."""
    return [(texts == level).astype(np.float64) for level in column["levels"]]


def texts_of(values: Values, missing: NDArray[np.bool_]) -> Values:
    """Return levels as text; a missing one has none."""
    texts = np.full(len(values), "", dtype=object)  # not padded to the longest
    texts[~missing] = [_text(value) for value in values[~missing]]
    return texts


def _text(value: Any) -> str:
    """Return one text for a value whatever its type: True, 1 and 1.0 are the same level."""
    if isinstance(value, numbers.Integral | np.bool_):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)
