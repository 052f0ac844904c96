"""What texts of a column mean: numbers with units and separators of thousands, dates, clocks."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted

from .dates import (
    DAY_FIRST,
    MONTH_FIRST,
    NEITHER,
    ORDERS,
    UNLIKE_FIT,
    YEARS_TOLD,
    ZONED,
    ZONES_LACK,
    ZONES_TOLD,
    dates_in,
    dates_of,
    exchanged_in,
    hours_of,
    order_of,
)
from .degrees import AXES, degrees_of
from .values import FEW, MISSING, THOUSANDS, DoubtError, Values, about_limits, as_number

NUMBER, DATE, TEXT = "number", "date", "text"
LOOKED_AT = 20_000  # So many texts, spread over the column, tell how numbers are written.
TRIED = 100  # All texts are parsed only if most of so many, spread over the column, can be.
# Among numbers and dates these stand for a missing value.
MARKS = frozenset({"-", "--", "---", ".", "..", "*", "\u2013", "\u2014"})
NEARLY_ALL = 0.95  # So large a share of texts must fit a pattern that a column is said to have.
ANSWERS = r"([1-9]\d?)(?:,([1-9]\d?))?"  # the numbers of one or two choices, in order
MULTIPLES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
MULTIPLE = "k, M or B"  # the unit of a column with such multiples
CLOCK = ["clock"]  # the form of times such as 17:30, read as hours
SPACES = " \u00a0\u2009\u202f'\u2019"  # spaces and apostrophes that separate thousands
# Whole numbers that begin with 0 are codes. So are long numbers, and fractions such as 05.10, if
# another text of the column is equal as a double.
CODE = re.compile(rf"[-+]?0\d+(?:[{SPACES}]\d+)*", re.ASCII)
LONG = re.compile(r"[-+]?\d{16,}(?:\.0*)?", re.ASCII)
PADDED = re.compile(r"[-+]?0\d+\.\d*", re.ASCII)
CURRENCY = r"[A-Z]{0,2}[€$£¥₹]|Rs\.?|kr\.?|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|BRL"
WRITTEN = re.compile(
    rf"(?P<sign>[-+\u2212(]?)\s*(?P<before>{CURRENCY}|)\s*(?P<inner>[-+\u2212]?)"
    rf"(?P<digits>\d(?:[\d.,{SPACES}]*\d)?|[.,]\d+)(?P<power>[eE][-+]?\d+)?\s*"
    r"(?P<after>(?:[^\W\d_]|[%‰°€$£¥₹+µ])[^\n]{0,30}?)?\s*(?P<behind>-?)\)?",
)


class Reading(NamedTuple):
    """How a file is to be read, where that is not left to the file."""

    decimal_comma: bool = False
    thousands: str = ""  # what separates them
    may_have_commas: bool = False  # decimal ones, since commas do not separate values
    missing: frozenset[str] = MISSING  # words, in small letters
    date_format: str = ""  # as strptime has it
    skip_lines: int = 0  # above the header
    keep: tuple[str, ...] = ()  # columns that seem to be a saved index, and predict
    encoding: str = ""  # of text, "" for UTF-8 or what seems another

    @property
    def marks(self) -> frozenset[str]:
        """What stands for a missing value among numbers and dates alone."""
        return MARKS if len(self.missing) > 1 else frozenset()

    def is_missing(self, text: str) -> bool:
        """Say whether a text stands for a missing value in any column."""
        return text.strip().lower() in self.missing

    def as_missing(self, numbers: Doubles) -> Doubles:
        """Return numbers with NaN for those that stand for a missing value."""
        codes = [number for word in self.missing if np.isfinite(number := as_number(word))]
        return np.where(np.isin(numbers, codes), np.nan, numbers) if codes else numbers


DEFAULT = Reading()


class Meaning(NamedTuple):
    """What the texts of a column mean."""

    kind: str  # number or date
    values: Values  # missing where no text is, and where one is wrong
    wrong: NDArray[np.bool_]  # texts that are not of this kind
    form: list[str]  # how they are written: of these the next table's are too
    notes: list[str]  # about the column named {}


def meaning_of(
    texts: Values,
    there: NDArray[np.bool_],
    reading: Reading,
    kind: str | None = None,
    form: list[str] | None = None,
    *,
    chosen: bool = False,
    axis: str = "",
    padded: bool = False,
) -> Meaning | None:
    """Return what nearly all texts of a column mean, None if they are just text.

    `there` says which rows have a text. Kind and form are those of the column in the fit, if there
    was one; or the kind is one that a user has `chosen`. `axis` says whether the column is meant as
    latitude or longitude. Unless it is, or numbers are `padded` with zeros, codes are text, see
    `codes_in`. Raises DoubtError if numbers or dates have two readings.
    """
    if marks := reading.marks & {*texts[there].tolist()}:
        there = there & ~np.array([text in marks for text in texts], dtype=bool)
    some = texts[there].tolist()
    if not some:
        return None
    meaning = None
    if form and form[0] in AXES:
        axis, form = form[0], None
    if kind in (None, NUMBER):
        meaning = _degrees(texts, there, some, axis)
    if meaning is None and kind in (None, DATE):
        meaning = _dates(texts, there, some, reading, form, chosen)
    may_be_number = meaning is None and kind in (None, NUMBER)
    if may_be_number and (padded or axis or not codes_in(some)):
        meaning = _numbers(texts, there, some, reading, None if chosen else kind, form)
    if meaning is None or meaning.wrong.sum() > FEW * len(some):
        return None
    return meaning if chosen or kind in (None, DATE) else meaning._replace(notes=[])


def codes_in(texts: Iterable[str]) -> set[str]:
    """Return the texts that would become numbers of others, or lose their zeros: codes."""
    different = {*texts}
    doubtful = [text for text in different if LONG.fullmatch(text) or PADDED.fullmatch(text)]
    times = Counter(as_number(text) for text in different if doubtful and "e" not in text.lower())
    merged = {text for text in doubtful if times[float(text)] > 1}
    return merged | {*filter(CODE.fullmatch, different)}


def days_of(values: Doubles, *, surely: bool = False) -> Meaning | None:
    """Return the dates that all numbers of a column stand for, None if they are numbers."""
    dates = dates_in(values, surely=surely)
    if dates is None:
        return None
    there = ~np.isnan(values)
    note = f"column {{!r}} holds numbers such as {values[there][0]:.0f}, read as dates"
    return Meaning(DATE, dates, there & np.isnat(dates), [NEITHER], [] if surely else [note])


def _dates(
    texts: Values, there: NDArray[np.bool_], some: list[str], reading: Reading,
    known: list[str] | None, chosen: bool,
) -> Meaning | None:  # fmt: skip
    """Return the dates in texts, None if some of them are mostly none."""
    tried = np.array(some[:: 1 + (len(some) - 1) // TRIED], dtype=object)
    of_fit = [form for form in (known or [])[:1] if form != NEITHER]
    forms = [*filter(None, [reading.date_format]), *of_fit]
    digits = [text for text in tried if text.isdecimal() and text[0] != "0"]
    if not {*forms} - {*ORDERS} and 2 * len(digits) > len(tried):
        meant = days_of(_parsed(texts, there, as_number), surely=chosen or known is not None)
        if meant is not None:
            return meant._replace(wrong=there & np.isnat(meant.values))
    for form in forms:
        if dates_of(tried, tried != "", form)[1].mean() <= 0.5:
            return _dated(texts, there, form, known)
    few = min(dates_of(tried, tried != "", form)[1].mean() for form in (DAY_FIRST, MONTH_FIRST))
    if of_fit or few > 0.5:
        return None
    order = order_of(tried.tolist()) or order_of([*dict.fromkeys(some)])
    if order is None:
        text = next(text for text in some if order_of([text]) is None)
        raise DoubtError(
            f"{text!r} may have the day or the month first; --date-format '{DAY_FIRST}' or "
            f"'{MONTH_FIRST}' settles it",
            text,
        )
    meant = _dated(texts, there, order, known)
    odd = {order_of([text]): text for text in texts[meant.wrong][::-1]} if order else {}
    both = {order: next((text for text in some if order_of([text]) == order), "")} | odd
    if {DAY_FIRST, MONTH_FIRST} <= both.keys():
        day, month = both[DAY_FIRST], both[MONTH_FIRST]
        orders = f"{day!r} has the day first, but {month!r} the month; write all in one order"
        raise DoubtError(orders, day, month)
    if exchanged := exchanged_in(some[:: 1 + (len(some) - 1) // LOOKED_AT]) if order else "":
        sign = f"{exchanged!r} was not read, and days of the others are 12 at most"
        note = f"a program seems to have exchanged day and month in column {{!r}}: {sign}"
        return meant._replace(notes=[*meant.notes, note])
    return meant


def _dated(texts: Values, there: NDArray[np.bool_], form: str, known: list[str] | None) -> Meaning:
    first_year = next((int(mark) for mark in known or [] if mark.isdecimal()), 0)
    dates = dates_of(texts, there, form, first_year)
    marks = [ZONED] * dates.zoned + [str(dates.first_year)] * bool(dates.first_year)
    lack = ZONES_LACK.format(dates.plain) if dates.zoned and dates.plain else ""
    notes = [ZONES_TOLD + lack] if lack or (dates.moved and known is None) else []
    notes += [] if known is None else _if_unlike(marks, known)
    if dates.first_year and not first_year:
        notes.append(YEARS_TOLD.format(dates.first_year, dates.first_year + 99))
    return Meaning(DATE, dates.values, dates.wrong, [form, *marks], notes)


def _if_unlike(form: list[str], known: list[str]) -> list[str]:
    """Say so where times have a zone, and those of the fit had none, or the other way round."""
    zoned = ZONED in form
    return [] if zoned == (ZONED in known) else [UNLIKE_FIT.format("a" if zoned else "no")]


def _degrees(texts: Values, there: NDArray[np.bool_], some: list[str], axis: str) -> Meaning | None:
    """Return the signed degrees in texts that are no plain numbers, None if most are no degrees."""
    degrees = degrees_of(some, axis)
    if degrees is None:
        return None
    values, own = np.full(len(texts), np.nan), degrees[1]
    values[there] = degrees[0]
    written = [row for row in np.flatnonzero(there) if np.isnan(as_number(texts[row]))]
    least = written[int(np.nanargmin(values[written]))]
    what = f"holds {own}s as text, such as {texts[least]!r}, read as {values[least]:.15g}"
    return Meaning(NUMBER, values, there & np.isnan(values), [own], [f"column {{!r}} {what}"])


def _numbers(
    texts: Values, there: NDArray[np.bool_], some: list[str], reading: Reading, kind: str | None,
    known: list[str] | None,
) -> Meaning | None:  # fmt: skip
    """Return the numbers in texts, None if most are none."""
    form = known
    parse: Callable[[str], float] = as_number
    tried = [*some[:TRIED], *some[:: 1 + (len(some) - 1) // TRIED]]
    values = np.full(len(texts), np.nan)
    if not known and not np.isnan([*map(as_number, tried)]).all():
        values = _parsed(texts, there, parse)
    if np.isnan(values[there]).sum() > FEW * len(some):
        form = known or (CLOCK if ":" in some[0] else _form_of(some, reading))
        if form is None or (kind and not known and form[-1]):
            return None
        parse = hours_of if form == CLOCK else _numbers_in(*form)
        values = _parsed(texts, there, parse)
    wrong = there & np.isnan(values)
    right = texts[there & ~wrong]
    told = right if form else [*filter(PADDED.fullmatch, right)]
    notes = _notes_of(form or [""], told, parse) if len(told) else []
    return Meaning(NUMBER, values, wrong, form or [], notes)


def _parsed(texts: Values, there: NDArray[np.bool_], parse: Callable[[str], float]) -> Doubles:
    values = np.full(len(texts), np.nan)
    values[there] = [*map(functools.cache(parse), texts[there])]
    return values


def _form_of(texts: list[str], reading: Reading) -> list[str] | None:
    """Return the separator of thousands, the decimal mark and the unit of most texts."""
    texts = texts[:: 1 + (len(texts) - 1) // LOOKED_AT]
    tried = texts[:: 1 + (len(texts) - 1) // TRIED]
    if 2 * sum(WRITTEN.fullmatch(text) is not None for text in tried) < len(tried):
        return None
    matches = [match for text in texts if (match := WRITTEN.fullmatch(text))]
    units = Counter(map(_unit, matches))
    if {*units} <= {*MULTIPLES} and {*units} != {""}:
        units = Counter({MULTIPLE: len(matches)})
    if not units or max(units.values()) < (1 - FEW) * len(texts):
        return None
    unit = units.most_common(1)[0][0]
    alike = [match for match in matches if unit == MULTIPLE or _unit(match) == unit]
    digits = [m["digits"] + (m["power"] or "") for m in alike]
    if unit and any(re.match(r"0\d", each) for each in digits):  # codes, not numbers
        return None
    marks = _marks_of(digits, reading)
    return None if marks is None else [*marks, unit]


def _unit(match: re.Match[str]) -> str:
    return " ".join(filter(None, [match["before"], (match["after"] or "").strip()]))


def _marks_of(digits: list[str], reading: Reading) -> tuple[str, str] | None:
    """Return what separates thousands, "" for spaces alone, and the decimal mark."""
    if reading.decimal_comma:
        return reading.thousands or ".", ","
    if reading.thousands:
        return reading.thousands, "." if reading.thousands != "." else ","
    both = [each for each in digits if "," in each and "." in each]
    if both:
        return (",", ".") if both[0].rindex(".") > both[0].rindex(",") else (".", ",")
    of = {mark: [each for each in digits if mark in each] for mark in ",."}
    for mark, other in (",.", ".,"):
        if any(each.count(mark) > 1 for each in of[mark]):
            return mark, other
    whole = {mark: all(re.match(THOUSANDS % f"[{mark}]", d) for d in of[mark]) for mark in ",."}
    if not of[","]:
        return "", "."
    if not whole[","]:
        return None if not of["."] and are_answers(digits) else ((".", ",") if whole["."] else None)
    if of["."] and whole["."]:
        raise _doubt(of[","][0])
    mixed = any(re.match(r"\d{4}", each) for each in digits)
    if not of["."] and (mixed or reading.may_have_commas):
        raise _doubt(of[","][0])
    return ",", "."


def are_answers(texts: list[str]) -> bool:
    """Say whether nearly all texts may be the numbers of choices, such as 4 and 1,4."""
    matches = [match for text in texts if (match := re.fullmatch(ANSWERS, text))]
    rising = sum(m[2] is None or int(m[1]) < int(m[2]) for m in matches)
    return rising >= NEARLY_ALL * len(texts)


def _doubt(text: str) -> DoubtError:
    """Return the error of a comma that may separate thousands or be a decimal comma."""
    return DoubtError(
        f"{text!r} may be {text.replace(',', '')} or {text.replace(',', '.')}; --thousands , or "
        "--decimal-comma settles it",
        text,
    )


def _numbers_in(thousands: str, decimal: str, unit: str) -> Callable[[str], float]:
    """Return what reads a number of this form, and gives NaN for others."""
    mark, point = f"[{re.escape(thousands)}{SPACES}]", re.escape(decimal)
    groups = rf"\d{{1,3}}(?:{mark}\d\d)*(?:{mark}\d{{3}})+"
    grouped = re.compile(rf"(?:{groups}|\d*)(?:{point}\d+)?")
    plain = str.maketrans({decimal: "."} | dict.fromkeys(thousands + SPACES))
    number, own_unit = rf"([-+]?(?:{groups}|\d+)(?:{point}\d+)?)", re.escape(unit)
    simple = re.compile(rf"{number} ?{own_unit}|{own_unit} ?{number}")  # for speed: as most are

    def number_in(text: str) -> float:
        if unit != MULTIPLE and (found := simple.fullmatch(text)):
            return float((found[1] or found[2]).translate(plain))
        match = WRITTEN.fullmatch(text)
        if match is None or (text[0] == "(") != (text[-1] == ")"):
            return np.nan
        own, times = _unit(match), 1.0
        if unit == MULTIPLE:
            times, own = MULTIPLES.get(own, np.nan), unit
        if own != unit or not grouped.fullmatch(match["digits"]):
            return np.nan
        number = float(match["digits"].translate(plain) + (match["power"] or "")) * times
        return (
            -number
            if {match["sign"], match["inner"], match["behind"]} & {"-", "\u2212", "("}
            else number
        )

    return number_in


def _notes_of(form: list[str], texts: Any, parse: Callable[[str], float]) -> list[str]:
    """Say how numbers are read, by an example that shows as much as it can."""
    *marks, unit = form
    example = max(texts[:TRIED], key=lambda text: sum(mark in text for mark in marks if mark))
    what = f", without the unit {unit!r}" if unit not in ("", MULTIPLE) else ""
    what = ", the hours of a clock" if form == CLOCK else what
    number = f"{parse(example):.15g}"
    return [f"column {{!r}} holds numbers as text, such as {example!r}, read as {number}{what}"]


def tell(name: str, texts: Values, meant: Meaning, rows: Integers | None = None) -> None:
    """Warn of how a column is read, and of texts that are not of its kind.

    `rows` are the numbers of the rows in a file, of which messages count from 1; None: an array.
    """
    for note in meant.notes:
        warn(Remark("reading", [name], note.format(name)))
    if wrong := np.flatnonzero(meant.wrong).tolist():
        row = f"row {wrong[0]}" if rows is None else f"data row {int(rows[wrong[0]]) + 1}"
        more = f" and {counted(len(wrong) - 1, 'other')}" if len(wrong) > 1 else ""
        text = texts[wrong[0]]
        value = repr(text) if isinstance(text, str) else f"{text:.0f}"
        sentence = f"column {name!r}: {value} in {row}{more}: no {meant.kind}"
        limits = about_limits([str(each) for each in texts[wrong]]) if meant.kind == NUMBER else ""
        warn(Remark("wrong values", [name], f"{sentence}, taken as missing", limits))


def tell_zone(name: str, form: list[str], known: list[str]) -> None:
    """Warn if dates of this form have a zone, and those of the fit had none, or the reverse."""
    for note in _if_unlike(form, known):
        warn(Remark("reading", [name], note.format(name)))
