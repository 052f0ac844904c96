"""Dates in the text of files: 2024-12-31, 31.12.2024, Dec 31, 2024 5:30 PM, with a zone or none."""

import calendar
import datetime
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles

from .values import Values

PLAIN = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{0,18})?)?)?", re.ASCII)
# Without y, m and d, which a name begins with, a month is n, and a is the day or b is.
DATED = re.compile(
    r"""(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\ +)?
    (?:(?P<y1>\d{4})(?P<mark1>[-/.\ ])(?P<m1>\d\d?)(?P=mark1)(?P<d1>\d\d?)      # 2024-12-31
    |(?P<y7>\d{4})[-/](?P<m7>\d\d?)                                           # 2024-12
    |(?P<y2>\d{4})(?P<m2>\d\d)(?P<d2>\d\d)                                    # 20241231
    |(?P<a>\d\d?)(?P<mark3>[-/.\ ])(?P<b>\d\d?)(?P=mark3)(?P<y3>\d{4})         # 31.12.2024
    |(?P<d4>\d\d?)(?:st|nd|rd|th)?[-/.\ ]*(?P<n4>[a-z]{3,9})\.?[-/,.\ ]+(?P<y4>\d{4}|\d\d)
    |(?P<n5>[a-z]{3,9})\.?[-,\ ]+(?:(?P<d5>\d\d?)(?:st|nd|rd|th)?[-,\ ]+)?(?P<y5>\d{4})
    |(?P<y6>\d{4})[-/.\ ](?P<n6>[a-z]{3,9})[-/.\ ](?P<d6>\d\d?))
    (?:(?:T|,?\ +)(?P<hour>\d\d?)
       (?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<part>\d{0,18}))?)?)?
       (?:\ *(?P<half>[ap])\.?m\.?)?
       (?:\ *(?:utc|gmt)?(?P<sign>[+-])(?P<hours>\d\d?)(?::?(?P<minutes>\d\d))?)?)?
    (?:\ *\(?(?P<zone>[a-z]{1,5})\)?)?\ *""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
CLOCK = re.compile(
    r"(\d{1,3}):(\d\d)(?::(\d\d(?:\.\d+)?))? *(?:([ap])\.?m\.?)?", re.ASCII | re.IGNORECASE
)
MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
# Hours east of Greenwich of the zones that dates of mail and of loggers name.
ZONES = {
    "z": 0, "ut": 0, "utc": 0, "gmt": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7,
    "mdt": -6, "pst": -8, "pdt": -7, "wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2, "eet": 2,
    "eest": 3, "msk": 3, "jst": 9, "aest": 10, "aedt": 11,
}  # fmt: skip
ZONES_TOLD = "times of column {!r} that have a zone are taken as UTC"
DAY_FIRST, MONTH_FIRST = "%d/%m/%Y", "%m/%d/%Y"
DAYS = 19000101, 21001231  # whole numbers between these may be days
NOW_MOST = 2068  # a year of two digits is no later


def are_days(values: Doubles) -> bool:
    """Say whether all numbers, some of which may be missing, are days such as 20241231."""
    if not len(values) or values[0] < DAYS[0] or values[0] > DAYS[1]:  # soon, in most columns
        return False
    there = values[~np.isnan(values)]
    if not there.size or there.min() < DAYS[0] or there.max() > DAYS[1]:
        return False
    month, day = there // 100 % 100, there % 100
    return bool(np.all((there % 1 == 0) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)))


def order_of(texts: list[str]) -> str:
    """Return whether the day or the month is first in dates such as 1/2/2024, "" if in doubt."""
    found = [match for text in texts if (match := DATED.fullmatch(text)) and match["a"]]
    numbers = [(int(m["a"]), int(m["b"])) for m in found if m["mark3"] != "."]
    if any(a > 12 for a, _ in numbers) or all(a == b for a, b in numbers):
        return DAY_FIRST
    return MONTH_FIRST if any(b > 12 for _, b in numbers) else ""


def dates_of(
    texts: Values, there: NDArray[np.bool_], form: str = DAY_FIRST
) -> tuple[Values, NDArray[np.bool_], bool]:
    """Return dates of text in UTC, which texts are none, and whether any has a zone.

    Dates of rows where no text is `there` are missing. The form is what 1/2/2024 means, %d/%m/%Y or
    %m/%d/%Y; else the format of all, see strptime.
    """
    dates, zoned = np.full(len(texts), np.datetime64("NaT", "us")), False
    if form in (DAY_FIRST, MONTH_FIRST) and all(map(PLAIN.fullmatch, texts[there])):
        try:
            dates[there] = texts[there].astype("M8[us]")
            return dates, np.zeros(len(texts), dtype=bool), False
        except ValueError:  # no such day
            pass
    for row in np.flatnonzero(there):
        try:
            date = _date(texts[row], form)
        except ValueError:
            continue
        zoned |= bool(date.utcoffset())
        dates[row] = date.astimezone(datetime.UTC).replace(tzinfo=None)
    return dates, there & np.isnat(dates), zoned


def _date(text: str, form: str) -> datetime.datetime:
    """Return the date in a text, or raise ValueError."""
    if form not in (DAY_FIRST, MONTH_FIRST):
        date = datetime.datetime.strptime(text, form)
        return date if date.tzinfo else date.replace(tzinfo=datetime.UTC)
    found = DATED.fullmatch(text)
    zone = found and (found["zone"] or "z").lower()
    if found is None or zone not in ZONES:
        raise ValueError(text)
    part = {name.rstrip("1234567"): value for name, value in found.groupdict().items() if value}
    a, b = part.get("a"), part.get("b")
    if form == MONTH_FIRST and found["mark3"] != ".":
        a, b = b, a
    month = MONTHS.get(part.get("n", "").lower()) or int(part.get("m") or b or 0)
    year = int(part["y"]) if len(part["y"]) == 4 else 2000 + int(part["y"])
    hour = int(part.get("hour", 0))
    if half := part.get("half"):
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + 12 * (half.lower() == "p")
    if "hour" in part and "minute" not in part and not half and len(part["hour"]) < 2:
        raise ValueError(text)
    east = datetime.timedelta(hours=ZONES[str(zone)])
    if "sign" in part:
        east = datetime.timedelta(hours=int(part["hours"]), minutes=int(part.get("minutes", 0)))
        east = -east if part["sign"] == "-" else east
    return datetime.datetime(
        year - 100 * (year > NOW_MOST and len(part["y"]) == 2), month,
        int(part.get("d") or a or 1), hour, int(part.get("minute", 0)),
        int(part.get("second", 0)), int(part.get("part", "0").ljust(6, "0")[:6] or 0),
        datetime.timezone(east),
    )  # fmt: skip


def hours_of(text: str) -> float:
    """Return the hours of a clock such as 17:30 or 5:30 PM, NaN if a text is none."""
    if (found := CLOCK.fullmatch(text)) is None:
        return np.nan
    hours, minutes, seconds, half = found.groups()
    hour = int(hours) if half is None else int(hours) % 12 + 12 * (half.lower() == "p")
    return hour + int(minutes) / 60 + float(seconds or 0) / 3600


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
