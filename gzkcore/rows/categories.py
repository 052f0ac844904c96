"""Columns of text and categories: their levels, and the columns that encode them.

Each level of up to MOST_COLUMNS has a column of 0 and 1, so that different levels have the squared
distance 2. More levels have codes: rows of CODE random signs over CODE^(1/2), with about the same
distances. A level that no row of the fit had has zeros, at the squared distance 1 of all others.
"""

import math
import numbers
import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles
from gzkcore._util.warn import warn

from .dates import MONTHS
from .values import Values

SEEN = 1000  # different texts, spread over all, that tell what a column seems to hold
NEARLY_ALL = 0.95  # of them that must fit
DAY, MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
DATES = (
    rf"\d{{4}}-{MONTH}-{DAY}([T ].*)?|"
    rf"({DAY}[./-]{MONTH}|{MONTH}[./-]{DAY})[./-](\d\d|\d{{4}})( .*)?|"
    r"(?:[QTW]|KW) ?\d\d?[ /.-]*\d{4}|\d{4}[ /.-]?Q[1-4]|"  # quarters and weeks
    r"(?:0[1-9]|1[0-2])\.(?:19|20)\d\d"  # months
)
PART = r"(?:0|[1-9]\d?)"  # dates with two digits of the year have zeros before some
VERSIONS = rf"{PART}\.{PART}\.{PART}|\d{{1,3}}(?:\.\d{{1,3}}){{3}}"  # and addresses
ANSWERS = r"([1-9]\d?)(?:,([1-9]\d?))?"  # the numbers of one or two choices, in order
SIGN = r"(?:[€$£¥₹%]|EUR|USD|GBP|CHF|JPY)"
GROUPED = r"[1-9]\d{0,2}(?:[,.'’\s]\d{3})"  # with separators of thousands
NUMBERS = rf"[+-]?{SIGN}?\s*[+-]?(?:{GROUPED}+|\d+)(?:[.,]\d+)?\s*{SIGN}?"
SEPARATED_TWICE = rf"[+-]?(?:{GROUPED}+[.,]\d+|{GROUPED}{{2,}})"
MEASURED = (  # has a unit
    r"[+-]?\d+(?:[.,]\d+)?(?: [^\W\d_]| ?(?:[^\W\d_]{2}|[%°µ]))\S{0,11}|[+-]?\d+[.,]\d+[NSEWO]"
)
LASTS = r"(?:[dhms]|days?|h(?:ou)?rs?|min(?:ute)?s?|secs?|seconds?)"
ABOUT = (
    r"[~≈<>≤≥=]+ ?\d[\d.,]*|\d[\d.,]* ?(?:±|\+/?-) ?\d[\d.,]*|0[xX][\da-fA-F]+|"
    r"\d[\d.,]*(?:\(\d+\)| ?[x×*·] ?10\S+)|P[\dYMWD]*T[\dHMS.]+|"
    rf"\d+ ?{LASTS},? ?\d[\d.: ]*{LASTS}?.*"
)
LOST = {
    "dates": "if they are dates, pass pandas.to_datetime of the column; if numbers, convert them",
    "numbers": "for numbers write all in one unit, or remove it, and convert them",
    "decimal commas": "for numbers replace the decimal comma by a point, and convert them",
}
WHOLE = re.compile(r"-?(0|[1-9]\d*)\.0+")
# A choice, both: so many levels have a column each, of more each has a code of so many numbers.
MOST_COLUMNS, CODE = 256, 128
FREQUENT = 32  # a choice: levels that may have a length of their own, and stand for new ones
# Levels of a column that was text of true and false: booleans and numbers are spelt so there.
SPELT = {"1": "True", "0": "False"}


def category_of(
    name: str, values: Values, missing: NDArray[np.bool_], order: list[str] | None = None
) -> dict[str, Any]:
    """Describe a column of text with its levels, whose order may be known."""
    levels, counts = np.unique(texts_of(values, missing), return_counts=True)
    if len(levels) < 2:
        return {"name": name, "kind": "constant"}
    n_levels, n_values = len(levels) - int(missing.any()), len(values) - int(missing.sum())
    if order is None and mostly_different(n_levels, n_values):
        return {"name": name, "kind": "name"}
    if len(levels) == 2 and (order is None or len(order) == 2):
        return {"name": name, "kind": "category", "first": levels[0], "levels": [levels[1]]}
    by_count = levels[np.argsort(-counts, kind="stable")].tolist()
    kept = [*sorted(by_count[:FREQUENT]), *sorted(by_count[FREQUENT:])]
    found = {"name": name, "kind": "category", "levels": kept}
    if order is None:
        return found
    ranks = np.repeat([order.index(level) for level in levels if level], counts[levels != ""])
    return found | {
        "order": order, "mean": float(ranks.mean()), "scale": float(ranks.std()) or 1.0
    }  # fmt: skip


def what_texts_seem(texts: list[str]) -> str:
    """Return what nearly all of these texts seem to be, a key of LOST.

    "" if they are just text, or may be something else: versions, or choices that were ticked.
    """

    def some(like: str) -> bool:
        return any(re.search(like, text) for text in texts)

    def every(like: str) -> bool:
        fit = sum(re.fullmatch(like, text) is not None for text in texts)
        return bool(texts) and fit >= NEARLY_ALL * len(texts)

    if every(VERSIONS):
        return ""
    if every(DATES):
        return "dates"
    if every(ABOUT) or (every(f"{MEASURED}|{NUMBERS}") and some(f"^(?:{MEASURED})$")):
        return "numbers"
    if not every(NUMBERS):
        return "dates" if texts and dates_shape(texts) else ""
    if some(SIGN) or some(rf"^{SEPARATED_TWICE}$"):
        return "numbers"
    if some(GROUPED) and every(rf"[+-]?({GROUPED}|\d{{1,3}})"):  # those below 1,000 have none
        return "numbers"
    return "decimal commas" if some(",") and not are_answers(texts) else ""


def dates_shape(texts: list[str]) -> str:
    """Return a text with the one shape of most texts, if this may be of dates; else ""."""
    shape, count = Counter(map(_shape, texts)).most_common(1)[0]
    if 2 * count <= len(texts):
        return ""
    alike = [text for text in texts if _shape(text) == shape]
    if re.fullmatch(r"a\W9|9\Wa", shape):  # Dec-24
        words = {re.sub(r"\W|\d", "", text).lower() for text in alike}
        return alike[0] if words <= MONTHS.keys() else ""
    numbered = re.match(r"9.*9|a\.?,? 9\W9\W9", shape)
    return next((t for t in alike if numbered and sum(map(str.isdigit, t)) > 4), "")


def _shape(text: str) -> str:
    """Return a text with one 9 for its numbers, and one a for its words."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text)) or " "


def are_answers(texts: list[str]) -> bool:
    """Say whether nearly all texts may be the numbers of choices, such as 4 and 1,4."""
    found = [match for text in texts if (match := re.fullmatch(ANSWERS, text))]
    rising = sum(m[2] is None or int(m[1]) < int(m[2]) for m in found)
    return rising >= NEARLY_ALL * len(texts)


def doubt_in(texts: set[str]) -> tuple[str, str]:
    """Return what texts seem to be, and one that is so; "" and "" if they are just text."""
    some = sorted(texts)[:: 1 + (len(texts) - 1) // SEEN] if texts else []  # from first to last
    if not (seem := what_texts_seem(some)):
        return "", ""
    like = f"{DATES}|{NUMBERS}|{MEASURED}|{ABOUT}"
    return seem, next((t for t in some if re.fullmatch(like, t)), "") or dates_shape(some)


def warn_of_doubt(column: dict[str, Any], texts: set[str]) -> None:
    """Warn where texts that are left out, or are categories, seem to be numbers or dates."""
    seem, example = doubt_in(texts)
    if seem:
        done = "left out" if column["kind"] == "name" else "taken for categories"
        told = f"it holds texts such as {example!r}; {LOST[seem]}"
        warn(f"column {column['name']!r} is {done}: {told}", UserWarning)


def mostly_different(n_levels: int, n_values: int) -> bool:
    """Say whether so many different texts among values tell rows apart, and nothing else."""
    return n_levels > max(FREQUENT, n_values / 2)


def new_levels(column: dict[str, Any], texts: Values) -> NDArray[np.bool_]:
    """Return where a level is that no row of the fit had."""
    known = {*levels_of(column)}
    return np.array([text not in known for text in texts], dtype=bool)


def levels_of(column: dict[str, Any]) -> list[str]:
    """Return the levels of the fit; "" is missing."""
    return [*column["levels"], *([column["first"]] if "first" in column else [])]


def spelt_as(column: dict[str, Any], texts: Values) -> Values:
    """Return levels as the column had them in `fit`: the command reads true and false as text."""
    if not {*levels_of(column)} <= {*SPELT.values(), ""}:
        return texts
    return np.array([SPELT.get(text, text) for text in texts], dtype=object)


def encode_category(column: dict[str, Any], texts: Values) -> list[Doubles]:
    """Return the columns that encode levels."""
    codes, order = codes_of(column), column.get("order", [])
    places = {level: place for place, level in enumerate(column["levels"])}
    found = np.zeros((codes.shape[1], len(texts)))
    known = [(row, places[text]) for row, text in enumerate(texts) if text in places]
    if known:
        rows, levels = np.transpose(known)
        found[:, rows] = codes[levels].T
    if not order:
        return list(found)
    ranks = {level: (rank - column["mean"]) / column["scale"] for rank, level in enumerate(order)}
    return [np.array([ranks.get(text, 0.0) for text in texts]), *found]


def codes_of(column: dict[str, Any]) -> Doubles:
    """Return what encodes each level, of shape (n_levels, n_columns)."""
    n_levels = len(column["levels"])
    if n_levels <= MOST_COLUMNS:
        return np.eye(n_levels)
    signs = np.random.RandomState(0).randint(0, 2, (n_levels, CODE))
    return np.asarray((2.0 * signs - 1.0) / math.sqrt(CODE))


def names_of(column: dict[str, Any]) -> list[str]:
    """Return the names of the columns that encode levels."""
    name, levels = column["name"], column["levels"]
    if len(levels) <= MOST_COLUMNS:
        return [f"{name}={level}" for level in levels]
    return [f"{name} code {place}" for place in range(1, CODE + 1)]


def texts_of(values: Values, missing: NDArray[np.bool_]) -> Values:
    """Return levels as text; a missing one has none."""
    texts = np.full(len(values), "", dtype=object)  # not padded to the longest
    texts[~missing] = [_text(value) for value in values[~missing]]
    return texts


def _text(value: Any) -> str:
    """Return one text for a value whatever its type: True, 1 and 1.0 are one level, "1.0 " too."""
    if isinstance(value, numbers.Integral | np.bool_):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    text = str(value).strip()
    return text.partition(".")[0] if WHOLE.fullmatch(text) else text
