"""Degrees in text: 40.7 N, 74°0'21"W, N40:26:46, 40d26m46s, 74,5 West.

South and west are negative. Text that contradicts itself, or others of its column, is refused.
"""

import math
import re
from typing import NamedTuple

from .values import DoubtError, is_number

LATITUDE, LONGITUDE = "latitude", "longitude"
NAMES = {LATITUDE: {"lat", "latitude"}, LONGITUDE: {"lon", "lng", "long", "longitude"}}
AXES = {LATITUDE: "NS", LONGITUDE: "EW"}  # and their directions
FARTHEST = {"N": 90, "S": 90, "E": 360, "W": 180}  # degrees in each direction
WORDS = {
    "N": "n north nord norte", "S": "s south süd sued sud sur sul",
    "E": "e east ost est este leste", "W": "w west ouest oeste ovest", "O": "o",
}  # fmt: skip
LETTERS = {word: letter for letter, words in WORDS.items() for word in words.split()}
WORD = rf"(?:{'|'.join(sorted(LETTERS, key=len, reverse=True))})"
NUMBER = r"\d+(?:[.,]\d+)?(?:[eE][-+]\d+)?"
DEGREE = r"\s*(?:[°º˚]|d(?:eg(?:rees?_?|s|\.)?)?)"
MINUTE = r"\s*(?:['’′‘´`]|m(?:in(?:utes?|\.)?)?)"
SECOND = rf"\s*(?:[\"”″“]|['’′‘´`]{{2}}|sec(?:onds?|\.)?|s(?=\s*{WORD}$))"
APART = r"\s*:|-|\s"  # what else separates degrees, minutes and seconds
SIZE = (
    rf"{NUMBER}(?:(?:{DEGREE})?|(?:{DEGREE}|{APART})\s*"
    rf"{NUMBER}(?:(?:{MINUTE})?|(?:{MINUTE}|{APART})\s*{NUMBER}(?:{SECOND})?))"
)
WRITTEN = re.compile(
    rf"(?:({WORD})\.?\s*)?([-+\u2212]?)\s*({SIZE})\s*(?:({WORD})\.?)?", re.IGNORECASE
)
NEARLY_ALL = 0.9  # Degrees that no name tells of are some if so many texts have a direction.
TRIED = 100  # Of a longer column so many texts, spread over it, are tried first.


class DegreesError(DoubtError):
    """Text of degrees can't be read, and means nothing else."""


class Degrees(NamedTuple):
    """What a text says of degrees: NaN if nothing."""

    size: float
    sign: str = ""
    letter: str = ""  # of the direction

    @property
    def signed(self) -> float:
        """The degrees north or east."""
        return -self.size if self.letter in [*"SW"] or self.sign not in ("", "+") else self.size

    def wrong(self, axis: str, letters: set[str]) -> str:
        """Return what contradicts the axis, or texts that have letters; "" if nothing does."""
        sign, letter = self.sign, self.letter
        if letter == "O":
            return "may be east or west; write E or W"
        if letter and letter not in AXES[axis]:
            return f"is no {axis}"
        if letter and sign and (sign != "+" or letter in "SW"):
            return "has a sign and a direction; write one of them"
        if letter and self.size > FARTHEST[letter]:
            return f"is farther than {FARTHEST[letter]} degrees"
        if letters and self.size and not (sign or letter):
            return f"has no direction, as others have; write {' or '.join(AXES[axis])} in all"
        return ""


def axis_of(name: str) -> str:
    """Return which degrees a column has, by a word of its name such as start_lat; "" if none."""
    words = {*re.split("[^a-z]+", name.lower())}
    return next((axis for axis, names in NAMES.items() if words & names), "")


def degrees_in(text: str) -> Degrees:
    """Return what a text says of degrees."""
    if (match := WRITTEN.fullmatch(text)) is None:
        return Degrees(math.nan)
    before, sign, size, after = match.groups()
    parts = [part.replace(",", ".") for part in re.findall(NUMBER, size)]
    if after == "s" and len(parts) > 2 and re.search(r"\d\s*m", size):
        after = None  # the seconds of 40d26m46s
    letter = LETTERS.get((before or after or "").lower(), "")
    degrees = sum(float(part) / 60**i for i, part in enumerate(parts))
    whole = all(map(str.isdecimal, parts[:-1])) and all(float(part) < 60 for part in parts[1:])
    if (before and after) or not whole or (degrees > FARTHEST["E"] and not letter):
        return Degrees(math.nan)
    return Degrees(degrees, sign, letter)


def degrees_of(texts: list[str], axis: str) -> tuple[list[float], str] | None:
    """Return signed degrees, NaN where a text is none, and their axis; None if they are no degrees.

    Where no `axis` is known, nearly all must have directions of one: both and a fraction, or a sign
    for degrees. Raises DegreesError for the first text that contradicts others or itself.
    """
    tried = texts[:: 1 + (len(texts) - 1) // TRIED]
    if not axis and sum(degrees_in(text).letter != "" for text in tried) < NEARLY_ALL * len(tried):
        return None
    said = {text: degrees_in(text) for text in dict.fromkeys(texts)}
    some = {text: degrees for text, degrees in said.items() if degrees.size >= 0}
    letters = {degrees.letter for degrees in some.values()} - {""}
    own = axis or next((each for each, of in AXES.items() if letters <= {*of}), "")
    signs = "[°º˚]" if len(letters) == 1 else "[°º˚.,:'’′]"
    sure = axis or any(re.search(signs, text) for text in some)
    if not (own and sure) or all(map(is_number, some)) or 2 * len(some) < len(said):
        return None
    for text, degrees in some.items():
        if wrong := degrees.wrong(own, letters):
            if not axis:
                return None
            raise DegreesError(f"{text!r} {wrong}", text)
    return [said[text].signed for text in texts], own
