"""Dates in the text of files: 2024-12-31, 31.12.2024, Dec 31, 2024 5:30 PM, with a zone or none."""

import calendar
import contextlib
import datetime
import re
import zoneinfo
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles

from .values import FEW, Values, distinct_values

PLAIN = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{0,18})?)?)?", re.ASCII)
# How programs write dates: Tue Dec 31 23:59:58 2024, 31/Dec/2024:23:59:58.
CTIME = re.compile(
    r"(?:[a-z]{3} +)?([a-z]{3}) +(\d\d?) (\d\d?:\d\d\S*)( [a-z]{1,5})? (\d{4})",
    re.ASCII | re.IGNORECASE,
)
LOGGED = re.compile(r"\[?(\d\d?/[a-z]{3}/\d{4}):([^\]]*)\]?", re.ASCII | re.IGNORECASE)
# Without y, m and d, which a name begins with, a month is n, and a is the day or b is.
DATED = re.compile(
    r"""(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\ +)?
    (?:(?P<y1>\d{4})(?P<mark1>[-/.\ ])(?P<m1>\d\d?)(?P=mark1)(?P<d1>\d\d?)      # 2024-12-31
    |(?P<y7>(?:1[5-9]|2[01])\d\d)[-/](?P<m7>\d\d?)                            # 2024-12
    |(?P<y8>\d{4})-?W(?P<w8>\d\d)(?:-?(?P<d8>[1-7]))?                         # 2024-W52-2
    |(?P<y2>\d{4})(?P<m2>\d\d)(?P<d2>\d\d)                                    # 20241231
    |(?P<a>\d\d?)(?P<mark3>[-/.\ ])(?P<b>\d\d?)(?P=mark3)(?P<y3>\d{4})         # 31.12.2024
    |(?P<d4>\d\d?)(?:st|nd|rd|th)?[-/.\ ]*(?P<n4>[a-z]{3,9})\.?[-/,.\ ]+(?P<y4>\d{4}|\d\d)
    |(?P<n5>[a-z]{3,9})\.?[-,\ ]+(?:(?P<d5>\d\d?)(?:st|nd|rd|th)?[-,\ ]+)?(?P<y5>\d{4})
    |(?P<y6>\d{4})[-/.\ ](?P<n6>[a-z]{3,9})[-/.\ ](?P<d6>\d\d?))
    (?:(?:T|,?\ +)(?P<hour>\d\d?)
       (?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<part>\d{0,18}))?)?)?
       (?:\ *(?P<half>[ap])\.?m\.?)?
       (?:\ *(?:utc|gmt)?(?P<sign>[+-])(?P<hours>\d\d?)(?::?(?P<minutes>\d\d))?)?)?
    (?:\ *[\[(]?(?P<zone>[a-z]{1,5}|[a-z]+/[a-z_/]+)[\])]?)?\ *""",
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
ZONES_TOLD = "times of column {!r} that have a zone are converted to UTC"
ZONES_LACK = "; others, such as {!r}, have none, and are taken as UTC"
UNLIKE_FIT = (
    "times of column {{!r}} have {} zone, other than in the fit: they are read as UTC; write both "
    "with a zone, or both without"
)
ZONED = "zoned"  # in the form of a column some of whose times have a zone
YEARS_TOLD = (
    "years of two digits in column {{!r}} are read as {} to {}; if that is wrong, write four"
)
# Whether the day or the month is first in 1/2/2024; neither where no date of a column tells.
DAY_FIRST, MONTH_FIRST, NEITHER = ORDERS = "%d/%m/%Y", "%m/%d/%Y", ""
DAY_SECONDS = 86400.0
DAYS = 19000101, 21001231  # whole numbers between these may be days
LAST_PARTS = [12, 31, 24, 59, 59]  # of a date: month, day, hour (that of the next day), ...
# Names of columns of days, of moments and of years.
OF_DAYS = re.compile(
    r"date|datum|fecha|zeit|timestamp|(?:^|[\W_\d])(?:day|time|tag|jour|data|when)s?(?:$|[\W_\d])",
    re.IGNORECASE,
)
OF_MOMENTS = re.compile(
    r"date|datum|fecha|zeit|time|stamp|epoch|unix|utc|created|updated|julian|"
    r"(?:^|[\W_\d])(?:[bht]?jd|ts|t|at|day|tag|jour|when)s?(?:$|[\W_\d])",
    re.IGNORECASE,
)
OF_MODIFIED = re.compile(r"(?:^|[\W_\d])mjd|modified.?julian", re.IGNORECASE)
OF_YEARS = re.compile(
    r"^(?:[\W_\d]*(?:decimal|frac(?:tion)?(?:al)?|years?|yr|jahr|date|time))+[\W_\d]*$",
    re.IGNORECASE,
)
YEAR = 365.2425 * DAY_SECONDS
# What numbers count in a column of such a name, if all are between two: their unit in seconds and
# their first moment (of years that by which 1970.0 is 1970-01-01), and how pandas converts them.
COUNTED = (
    ("modified Julian days", OF_MODIFIED, 15_000, 88_000, DAY_SECONDS, "1858-11-17",
     "..., unit='D', origin='1858-11-17'"),
    ("Excel's days", OF_DAYS, 35_000, 60_000, DAY_SECONDS, "1899-12-30",
     "..., unit='D', origin='1899-12-30'"),
    ("Julian days", OF_MOMENTS, 2_415_000, 2_488_000, DAY_SECONDS, "-4713-11-24T12",
     "..., unit='D', origin='julian'"),
    ("seconds since 1970", OF_MOMENTS, 3e8, 3e9, 1.0, "1970", "..., unit='s'"),
    ("milliseconds since 1970", OF_MOMENTS, 3e11, 3e12, 1e-3, "1970", "..., unit='ms'"),
    ("microseconds since 1970", OF_MOMENTS, 3e14, 3e15, 1e-6, "1970", "..., unit='us'"),
    ("nanoseconds since 1970", OF_MOMENTS, 3e17, 3e18, 1e-9, "1970", "..., unit='ns'"),
    ("years with fractions", OF_YEARS, 1800, 2100, YEAR, "0000-01-01T06:36",
     "365.2425 * (... - 1970), unit='D'"),
)  # fmt: skip
FEWEST_MONTHS = 10  # a choice: so many different numbers such as 202412, no fewer, are months
USUAL_FIRST = 1969  # Years of two digits are of the hundred from then on in C and in Python.
TOGETHER = 50  # Years of two digits that may be within fewer years are not taken apart.
YEARS_AHEAD = 10  # that dates may be planned, and that new rows may be later than the fit


class Dates(NamedTuple):
    """What texts are as dates."""

    values: Values  # datetime64 in UTC
    wrong: NDArray[np.bool_]  # texts that are none
    zoned: bool = False  # whether some have a zone
    moved: bool = False  # whether some have another than UTC
    plain: str = ""  # one that has no zone
    first_year: int = 0  # of the hundred that years of two digits are in, 0 if there are no such


def dates_in(values: Doubles, *, surely: bool = False) -> Values | None:
    """Return the dates of numbers such as 20241231, 20241231235958 or 202412.

    NaT for 30 February, and for a few that are no year, month and day, with hours, minutes and
    seconds or without. None if more are not; if one is no month, where they are months; and if few
    months differ, unless they `surely` are some.
    """
    there = values[~np.isnan(values)]
    n_digits = len(f"{np.sort(there)[there.size // 2]:.0f}") if there.size else 0
    if n_digits not in (6, 8, 10, 12, 14):
        return None
    months_alone = n_digits == 6
    if months_alone and not surely and np.unique(there).size < FEWEST_MONTHS:
        return None
    times = there * 10.0 ** (14 - n_digits) + (1e6 if months_alone else 0)
    right = (times >= DAYS[0] * 1e6) & (times < (DAYS[1] + 1) * 1e6) & (there % 1 == 0)
    parts = np.where(right, times, 0.0)[:, None] // [1e10, 1e8, 1e6, 1e4, 1e2, 1]
    parts %= [1e4, 1e2, 1e2, 1e2, 1e2, 1e2]
    right &= np.all(parts[:, 1:3] >= 1, axis=1) & np.all(parts[:, 1:] <= LAST_PARTS, axis=1)
    right &= (parts[:, 3] < 24) | ~parts[:, 4:].any(axis=1)
    if not right.any() or np.mean(~right) > (0 if months_alone else FEW):
        return None
    year, month, day, *clock = parts.T.astype(np.int64)
    months = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    days = months.astype("M8[D]") + (day - 1)
    moments = days.astype("M8[us]") + np.array([3600, 60, 1]) @ clock * np.timedelta64(1, "s")
    moments[(days.astype("M8[M]") != months) | ~right] = "NaT"
    dates = np.full(len(values), np.datetime64("NaT", "us"))
    dates[~np.isnan(values)] = moments
    return dates


def about_days(name: str, values: Doubles) -> str:
    """Say that the numbers of a column may be days, and how to read them as such, or "".

    These have a format, or count days or the like in a column called so.
    """
    if form := format_of_days(values):
        return f"may be dates; pass pandas.to_datetime of them as text, or --date-format '{form}'"
    if np.unique(values).size < FEWEST_MONTHS:
        return ""
    for what, names, low, high, unit, first, remedy in COUNTED:
        if not names.search(name) or values.min() < low or values.max() > high:
            continue
        if unit < YEAR or np.mean(values % 1 != 0) > 0.5:  # whole years are numbers
            moment = np.datetime64(first, "s") + np.timedelta64(round(values[0] * unit), "s")
            return (
                f"may be {what}, {moment.astype('M8[D]')}; write them as dates, or pass "
                f"pandas.to_datetime({remedy})"
            )
    return ""


def format_of_days(values: Doubles) -> str:
    """Return the format of days that numbers seem to be, 31122024, 2024366, 241231, 31.12, or "".

    They are all days, and many differ.
    """
    days = np.unique(values)
    months = np.round(days % 1 * 100, 6)
    if days.size >= FEWEST_MONTHS and np.all(_within(days // 1, 31) & _within(months, 12)):
        return "%d.%m" if np.unique(months).size > 2 and not np.any(months % 1) else ""
    if not values.size or days[0] < 10101 or days[-1] > 31129999 or np.any(days % 1):
        return ""
    a, b, c = days // 1e4, days // 100 % 100, days % 100
    first, second, year = days // 1e6, a % 100, days % 1e4
    now = (year >= 1900) & (year <= 2100)
    since, of_year = days // 1000, days % 1000
    looks = {
        "%d%m%Y": now & _within(first, 31) & _within(second, 12),
        "%m%d%Y": now & _within(first, 12) & _within(second, 31),
        "%Y%j": (since >= 1900) & (since <= 2100) & _within(of_year, 366),
        "%y%m%d": (a <= 99) & _within(b, 12) & _within(c, 31),
    }
    form = next((form for form, fits in looks.items() if fits.all()), "")
    return form if days.size >= FEWEST_MONTHS and days[0] // 100 < days[-1] // 100 else ""


def _within(values: Doubles, most: int) -> NDArray[np.bool_]:
    return np.asarray((values >= 1) & (values <= most))


def order_of(texts: list[str]) -> str | None:
    """Return which of `ORDERS` dates are written in, None if in doubt."""
    matches = [match for text in texts if (match := DATED.fullmatch(text)) and match["a"]]
    numbers = [(int(m["a"]), int(m["b"])) for m in matches if m["mark3"] != "."]
    if any(a > 12 for a, _ in numbers):
        return DAY_FIRST
    if any(b > 12 for _, b in numbers):
        return MONTH_FIRST
    return NEITHER if all(a == b for a, b in numbers) else None


def exchanged_in(texts: list[str]) -> str:
    """Return a date that a spreadsheet left as text while it exchanged days and months of others.

    It reads 01/02/2024 in its own order, and can't read 31/12/2024 so: then all dates that begin
    with a year have days up to 12, and no other date has.
    """
    matches = [match for text in texts if (match := DATED.fullmatch(text))]
    days = [int(m["d1"]) for m in matches if m["d1"]]
    left = [m for m in matches if m["a"]]
    one_way = all(max(int(m["a"]), int(m["b"])) > 12 for m in left)
    return left[0][0] if left and one_way and len(days) >= FEWEST_MONTHS and max(days) <= 12 else ""


def dates_of(
    texts: Values, there: NDArray[np.bool_], form: str = NEITHER, first_year: int = 0
) -> Dates:
    """Return dates of text in UTC; those of rows where no text is `there` are missing.

    The form is one of `ORDERS`, or the format of all, see strptime. Years of two digits are in the
    hundred from `first_year` on, which these texts themselves tell if it is 0.
    """
    dates = np.full(len(texts), np.datetime64("NaT", "us"))
    different, places = distinct_values(texts[there])
    if form in ORDERS and all(map(PLAIN.fullmatch, different)):
        with contextlib.suppress(ValueError):  # no such day
            dates[there] = different.astype("M8[us]")[places]
            return Dates(dates, np.zeros(len(texts), dtype=bool), plain=next(iter(different), ""))
    moments = np.full(len(different), np.datetime64("NaT", "us"))
    zoned, moved, plain, years = False, False, "", np.zeros(len(different), dtype=int)
    for place, text in enumerate(different):
        try:
            date, has_century = _date(text, form, first_year or USUAL_FIRST)
        except ValueError:
            continue
        if not has_century:
            years[place] = date.year
        if date.tzinfo is None:
            plain = plain or text
        else:
            zoned, moved = True, moved or bool(date.utcoffset())
            date = date.astimezone(datetime.UTC).replace(tzinfo=None)
        moments[place] = date
    dates[there] = moments[places]
    short = years[places][years[places] > 0].tolist()
    if short and not first_year:
        first_year = first_year_of(short, datetime.datetime.now(datetime.UTC).year)
        if any(_in_window(year, first_year) != year for year in {*short}):
            return dates_of(texts, there, form, first_year)
    wrong = there & np.isnat(dates)
    return Dates(dates, wrong, zoned, moved, plain, first_year if short else 0)


def first_year_of(years: Sequence[int], this_year: int) -> int:
    """Return the first of the hundred years that the years of two digits in a column are of.

    No date is after this year, unless most are, or all are within half a century that ends a few
    years later. The hundred end so many years later, if they can, as new rows may be later.
    """
    ends = np.array(years) % 100
    known = np.unique(ends)
    gaps = np.diff(known, append=known[0] + 100)
    length = 100 - int(gaps.max())
    last = USUAL_FIRST + 99
    first = last - length - int(last - length - known[(gaps.argmax() + 1) % known.size]) % 100
    last = first + length
    is_later = first + (ends - first) % 100 > this_year
    if length >= TOGETHER or (last > this_year + YEARS_AHEAD and np.mean(is_later) <= 0.5):
        first, last = this_year - int(((this_year - known) % 100).max()), this_year
    return min(first, max(last, this_year) + YEARS_AHEAD - 99)


def _in_window(year: int, first_year: int) -> int:
    """Return the year of a window of a hundred years that ends with the same two digits."""
    return first_year + (year - first_year) % 100


def _date(text: str, form: str, first_year: int) -> tuple[datetime.datetime, bool]:
    """Return the date in a text and whether its year has a century, or raise ValueError."""
    if form not in ORDERS:
        date, has_century = datetime.datetime.strptime(text, form), "%y" not in form
        year = date.year if has_century else _in_window(date.year, first_year)
        return date.replace(year=year), has_century
    if found := CTIME.fullmatch(text):
        text = "{1} {0} {4} {2}{3}".format(*found.groups(""))
    text = LOGGED.sub(r"\1 \2", text)
    if (found := DATED.fullmatch(text)) is None:
        raise ValueError(text)
    part = {name.rstrip("12345678"): value for name, value in found.groupdict().items() if value}
    a, b = part.get("a"), part.get("b")
    if form == MONTH_FIRST and found["mark3"] != ".":
        a, b = b, a
    month = MONTHS.get(part.get("n", "").lower()) or int(part.get("m") or b or 0)
    year, has_century = int(part["y"]), len(part["y"]) == 4
    if not has_century:
        year = _in_window(year, first_year)
    hour = int(part.get("hour", 0))
    if half := part.get("half"):
        if not 1 <= hour <= 12:
            raise ValueError(text)
        hour = hour % 12 + 12 * (half.lower() == "p")
    if "hour" in part and "minute" not in part and not half and len(part["hour"]) < 2:
        raise ValueError(text)
    day = int(part.get("d") or a or 1)
    if "w" in part:
        first = datetime.date.fromisocalendar(year, int(part["w"]), day)
        year, month, day = first.year, first.month, first.day
    minute, second = int(part.get("minute", 0)), int(part.get("second", 0))
    ends = hour == 24 and minute == second == 0  # the day
    micros = int(part.get("part", "0").ljust(6, "0")[:6] or 0)
    date = datetime.datetime(
        year, month, day, 0 if ends else hour, minute, second, micros, _zone_of(part)
    )
    return date + datetime.timedelta(days=int(ends)), has_century


def _zone_of(part: dict[str, str]) -> datetime.tzinfo | None:
    """Return the zone in a date, None if it has none, or raise ValueError."""
    name = part.get("zone", "")
    if "sign" in part:
        east = datetime.timedelta(hours=int(part["hours"]), minutes=int(part.get("minutes", 0)))
        return datetime.timezone(-east if part["sign"] == "-" else east)
    if not name:
        return None
    if name.lower() in ZONES:
        return datetime.timezone(datetime.timedelta(hours=ZONES[name.lower()]))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(name) from error


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


def date_told(date: np.datetime64) -> str:
    """Return a date for a sentence: no time of day, seconds or fractions that say nothing.

    >>> date_told(np.datetime64("2024-01-01T00:00:00.000000000"))
    '2024-01-01'
    >>> date_told(np.datetime64("2024-01-01T17:30:00.000000000"))
    '2024-01-01 17:30'
    """
    units = ("D", "m", "s", "ms", "us")
    shorter = (date.astype(f"M8[{unit}]") for unit in units)
    return str(next((short for short in shorter if short == date), date)).replace("T", " ")
