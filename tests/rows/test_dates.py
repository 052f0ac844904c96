"""Dates in text."""

import re
import warnings

import numpy as np
import pytest

from gzkcore.rows.dates import about_days, dates_in, dates_of, first_year_of, format_of_days


@pytest.mark.parametrize(("text", "expected", "zoned"), [
    ("2024-01-01", "2024-01-01T00:00", False),
    ("2024-01-01T10", "2024-01-01T10:00", False),
    ("2024-01-01 10:00:00.5", "2024-01-01T10:00:00.5", False),
    ("2024-01-01T10:00:00.123456789Z", "2024-01-01T10:00:00.123456", False),
    ("2024-01-01T10:00 ", "2024-01-01T10:00", False),
    ("2024-01-01 10:00:00 Z", "2024-01-01T10:00", False),
    ("2024-01-01 10:00:00 +01:00", "2024-01-01T09:00", True),
    ("2024-01-01T10:00-0330", "2024-01-01T13:30", True),
    ("2024-01-01T10:00-00:30", "2024-01-01T10:30", True),
    ("2024-01-01T10:00+05", "2024-01-01T05:00", True),
    ("31.12.2024", "2024-12-31", False),
    ("1.2.2024 10:30", "2024-02-01T10:30", False),
    ("1.2.2024 9:05", "2024-02-01T09:05", False),
    ("31.02.2024", None, False),
    ("12.31.2024", None, False),
    ("1.2.20245", None, False),
    ("1.2.24", None, False),
    ("2024-01-01T10:00 to 11:00", None, False),
    ("2024-01-01T10:00.5", None, False),
    ("2024-01-01+01:00", None, False),
    ("2024-02-30", None, False),
    ("2024-01", "2024-01-01", False),
    ("2024.1", None, False),
    ("2017-01-05 03:08:19,250", "2017-01-05T03:08:19.25", False),
    ("2024/12/31", "2024-12-31", False),
    ("2024.12.31 10:30", "2024-12-31T10:30", False),
    ("31-Dec-2024", "2024-12-31", False),
    ("31-Dec-24", "2024-12-31", False),
    ("Dec 31, 2024", "2024-12-31", False),
    ("Tuesday, 31 December 2024", "2024-12-31", False),
    ("2024 Dec 31", "2024-12-31", False),
    ("Mar 2024", "2024-03-01", False),
    ("31/12/2024 12:05:06 AM", "2024-12-31T00:05:06", False),
    ("31/12/2024 5:05 p.m.", "2024-12-31T17:05", False),
    ("2024-01-01 10:00 UTC", "2024-01-01T10:00", False),
    ("2024-01-01 10:00:00 CET", "2024-01-01T09:00", True),
    ("Tue, 31 Dec 2024 10:00:00 -0500", "2024-12-31T15:00", True),
    ("Tue Dec 31 2024 10:00:00 GMT+0100 (CET)", "2024-12-31T09:00", True),
    ("Tue Dec 31 10:15:00 2024", "2024-12-31T10:15", False),
    ("Tue Dec  3 10:15:00 CET 2024", "2024-12-03T09:15", True),
    ("31/Dec/2024:10:15:00 +0100", "2024-12-31T09:15", True),
    ("[31/Dec/2024:10:15:00]", "2024-12-31T10:15", False),
    ("2024-07-01 10:15 Europe/Berlin", "2024-07-01T08:15", True),
    ("2024-12-31T10:15:00+01:00[Europe/Berlin]", "2024-12-31T09:15", True),
    ("2024-12-31 10:15 Europe/Atlantis", None, False),
    ("2024-12-31 24:00", "2025-01-01", False),
    ("2024-12-31 24:01", None, False),
    ("2020-W53-5", "2021-01-01", False),
    ("2024W05", "2024-01-29", False),
    ("2024-W54", None, False),
    ("9000/2", None, False),
    ("20241231", "2024-12-31", False),
    ("20241231T101500", "2024-12-31T10:15", False),
    ("20241231T101500Z", "2024-12-31T10:15", False),
    ("12/31/2024", None, False),
    ("31 Foo 2024", None, False),
    ("2024-01-01 10:00 XYZ", None, False),
    ("2024-01-01 13:00 PM", None, False),
    ("\u0662\u0660\u0662\u0664-01-01", None, False),
])  # fmt: skip
def test_texts_are_dates_or_none_without_a_warning(text, expected, zoned):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dates, wrong, _, moved, *_ = dates_of(np.array([text], dtype=object), np.ones(1, bool))
    if expected is None:
        assert wrong[0]
    else:
        assert dates[0] == np.datetime64(expected)
    assert moved == zoned


@pytest.mark.parametrize(("first", "last", "window"), [
    (1960, 2004, 1937),
    (1935, 2001, 1935),
    (1940, 1980, 1937),
    (1927, 2026, 1927),
    (1950, 2026, 1937),
    (2019, 2028, 1939),  # some are planned
    (2027, 2040, 1951),
    (2000, 2000, 1937),
])  # fmt: skip
def test_years_of_two_digits_in_the_year_2026(first, last, window):
    years = np.arange(first, last + 1)
    for given in (years, years % 100):
        assert first_year_of(given, 2026) == window
    assert np.all((years >= window) & (years < window + 100))


def test_few_years_of_two_digits_are_not_in_the_future():
    recent, others = np.arange(2019, 2026), np.arange(55, 69)
    assert first_year_of([*recent, *recent, *recent, *others], 2026) == 1937
    assert first_year_of([*recent, *others], 2026) == 1979  # to 2078: most are


@pytest.mark.parametrize(("numbers", "expected"), [
    ([20241231, np.nan, 20240230], ["2024-12-31", "NaT", "NaT"]),
    ([2024123123, 2024010100], ["2024-12-31T23", "2024-01-01T00"]),
    ([202412312359, 202401010000], ["2024-12-31T23:59", "2024-01-01T00"]),
    ([20241231235958], ["2024-12-31T23:59:58"]),
    ([*range(202001, 202013)], [f"2020-{month:02}" for month in range(1, 13)]),
    ([*range(202001, 202006)], None),  # too few to be sure
    ([*range(202001, 202014)], None),
    ([20241231, 20241331], None),
    ([20241231, 5], None),
    ([20241231.5], None),
    ([-20241231], None),
    ([2024123124], ["2025-01-01T00"]),
    ([202412312400], ["2025-01-01T00"]),
    ([20241231240000], ["2025-01-01T00"]),
    ([202412312430], None),
    ([0, *range(2024010100, 2024010124), 2024013224], [
        "NaT", *(f"2024-01-01T{hour:02}" for hour in range(24)), "NaT",
    ]),
    ([5e300], None),
    ([], None),
    ([np.nan], None),
])  # fmt: skip
def test_numbers_that_are_dates(numbers, expected):
    found = dates_in(np.array(numbers, dtype=np.float64))
    if expected is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, np.array(expected, dtype="M8[us]"))


def test_few_months_are_dates_where_the_fit_had_dates():
    assert dates_in(np.array([202405.0]), surely=True)[0] == np.datetime64("2024-05")


@pytest.mark.parametrize(("form", "expected"), [
    ("%d%m%Y", "%d%m%Y"), ("%m%d%Y", "%m%d%Y"), ("%Y%j", "%Y%j"), ("%y%m%d", "%y%m%d"),
    ("%d.%m", "%d.%m"),
])  # fmt: skip
def test_numbers_that_may_be_days(form, expected):
    days = np.datetime64("2015-03-20") + 7 * np.arange(100)
    numbers = np.array([float(day.item().strftime(form)) for day in days])
    assert format_of_days(numbers) == expected
    assert format_of_days(numbers[:5]) == ""
    assert format_of_days(numbers + 0.5) == ""
    assert format_of_days(np.append(numbers, 99999.0)) == ""


def test_other_numbers_are_no_days():
    rng = np.random.default_rng(0)
    for most in (200, 1e5, 1e6, 1e8):
        assert format_of_days(np.floor(rng.uniform(0, most, 200))) == ""
    assert format_of_days(10101.0 + np.arange(20)) == ""
    assert format_of_days(np.empty(0)) == ""
    assert format_of_days(np.arange(1, 31) + 0.1) == ""


@pytest.mark.parametrize(("name", "start", "told"), [
    ("saleDate", 44927, "may be Excel's days, 2023-01-01; write them as dates, or pass pandas.to"),
    ("time", 44927.25, "may be Excel's days, 2023-01-01"),
    ("fecha_de_venta", 44927, "may be Excel's days"),
    ("price", 44927, "^$"),
    ("dayton", 44927, "^$"),
    ("date", 59995, "^$"),
    ("epoch", 1_700_000_000, "may be seconds since 1970, 2023-11-14; .*, unit='s'\\)"),
    ("created_at", 1_700_000_000_123, "milliseconds since 1970, 2023-11-14; .*, unit='ms'\\)"),
    ("eventTime", 1.7e15, "may be microseconds since 1970, 2023-11-14"),
    ("ts", 1.7e18 + 1e6, "may be nanoseconds since 1970, 2023-11-14"),
    ("id", 1_700_000_000, "^$"),
    ("phone", 1_700_000_000, "^$"),
    ("weight", 1_700_000_000, "^$"),
    ("time", 1_000_000, "^$"),
    ("jd", 2_460_000.5, "may be Julian days, 2023-02-25; .*, unit='D', origin='julian'\\)"),
    ("BJD_TDB", 2_460_000.5, "may be Julian days"),
    ("height", 2_460_000.5, "^$"),
    ("MJD", 60_000, "modified Julian days, 2023-02-25; .*, unit='D', origin='1858-11-17'\\)"),
    ("x", 60_000, "^$"),
    ("Decimal Date", 1959.2083, "may be years with fractions, 1959-03-1.; .*365.2425 "),
    ("time", 1959.2083, "may be years with fractions"),
    ("year", 1959, "^$"),
    ("price", 1959.5, "^$"),
    ("avg_year_built", 1959.5, "^$"),
])  # fmt: skip
def test_numbers_that_count_days_or_the_like(name, start, told):
    step = 256.0 if start > 1e18 else 1.0  # the numbers are doubles
    assert re.search(told, about_days(name, start + step * np.arange(10)))
    assert about_days(name, start + step * np.arange(5)) == ""
