"""What texts seem to be that were not read as numbers or dates, so that a remark can say so."""

import re
from collections import Counter

import numpy as np

from .dates import MONTHS, format_of_days
from .text import NEARLY_ALL, are_answers, codes_in
from .values import FEW, as_number

MOST_CODES = 32  # So many codes of digits are taken for categories without a word.
MOST_TEXTS = 1000  # So many different texts, spread over all, tell what a column seems to hold.
DAY, MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
LIKE_DATES = (
    rf"\d{{4}}-{MONTH}-{DAY}([T ].*)?|"
    rf"({DAY}[./-]{MONTH}|{MONTH}[./-]{DAY})[./-](\d\d|\d{{4}})( .*)?|"
    r"(?:[QTW]|KW) ?\d\d?[ /.-]*\d{4}|\d{4}[ /.-]?Q[1-4]|"  # quarters and weeks
    r"(?:0[1-9]|1[0-2])\.(?:19|20)\d\d"  # months
)
PART = r"(?:0|[1-9]\d?)"  # dates with two digits of the year have zeros before some
VERSIONS = rf"{PART}\.{PART}\.{PART}|\d{{1,3}}(?:\.\d{{1,3}}){{3}}"  # and addresses
SIGN = r"(?:[€$£¥₹%]|EUR|USD|GBP|CHF|JPY)"
GROUPED = r"[1-9]\d{0,2}(?:[,.'’\s]\d{3})"  # with separators of thousands
LIKE_NUMBERS = rf"[+-]?{SIGN}?\s*[+-]?(?:{GROUPED}+|\d+)(?:[.,]\d+)?\s*{SIGN}?"
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
DEGREES = r"[NSEW]?\s*[+-]?\d{1,3}\.\d+\s*°?\s*[NSEW]?"
PLACES = rf"(?:POINT ?)?\(?{DEGREES}[,;\s]\s*{DEGREES}\)?"
REMEDIES = {
    "places": "if they are places, split them into columns of latitude and longitude",
    "dates": (
        "if they are dates, pass pandas.to_datetime of the column, or name their --date-format in "
        "the command; if numbers, convert them"
    ),
    "numbers": "for numbers write all in one unit, or remove it, and convert them",
    "codes": (
        "what begins with 0, or equals others as a double, is text; for numbers choose so: "
        "columns={'NAME': 'number'}, --as NAME=number, or --regress for a target"
    ),
    "decimal commas": "for numbers replace the decimal comma by a point, and convert them",
}


def what_texts_seem(texts: list[str]) -> str:
    """Return what nearly all of these texts seem to be, a key of REMEDIES.

    "" if they are just text, or may be something else: versions, or choices that were ticked.
    """

    def some(like: str) -> bool:
        return any(re.search(like, text) for text in texts)

    def every(like: str) -> bool:
        fit = sum(re.fullmatch(like, text) is not None for text in texts)
        return bool(texts) and fit >= NEARLY_ALL * len(texts)

    if every(VERSIONS):
        return ""
    if every(PLACES):
        return "places"
    if every(LIKE_DATES):
        return "dates"
    unlike = f"{MEASURED}|{ABOUT}"
    if every(f"{unlike}|{LIKE_NUMBERS}") and some(f"^(?:{unlike})$"):
        return "numbers"
    if not every(LIKE_NUMBERS):
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


def doubt_in(texts: set[str]) -> tuple[str, str]:
    """Return a text that seems to be a number or a date, and the remedy; "" and "" if none is."""
    numbers = np.array([*map(as_number, texts)])
    if len(texts) > MOST_CODES and np.mean(np.isnan(numbers)) <= FEW and (codes := codes_in(texts)):
        seem = "dates" if format_of_days(numbers[~np.isnan(numbers)]) else "codes"
        return min(codes), REMEDIES[seem]
    some = sorted(texts)[:: 1 + (len(texts) - 1) // MOST_TEXTS] if texts else []
    if not (seem := what_texts_seem(some)):
        return "", ""
    likes = f"{PLACES}|{LIKE_DATES}|{MEASURED}|{ABOUT}", LIKE_NUMBERS  # a plain number says less
    example = next((t for like in likes for t in some if re.fullmatch(like, t)), "")
    return example or dates_shape(some), REMEDIES[seem]
