"""Dates in text."""

import warnings

import numpy as np
import pytest

from gzkcore.rows.dates import dates_of


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
        dates, wrong, had_zone = dates_of(np.array([text], dtype=object), np.ones(1, bool))
    if expected is None:
        assert wrong[0]
    else:
        assert dates[0] == np.datetime64(expected)
    assert had_zone == zoned
