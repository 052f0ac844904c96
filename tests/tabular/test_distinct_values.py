"""Each different value of a column is looked at once; all is as if each row were by itself."""

import datetime
import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from gzkcore import TableEncoder
from gzkcore.rows import dates, values
from gzkcore.rows.values import distinct_values
from gzkcore.tabular.columns import cells
from gzkcore.tabular.columns.kinds import to_data

MONTHS = range(1, 13)
POOLS = {
    "dates": [f"2024-{month:02}-0{day}" for month in MONTHS for day in (1, 2)],
    "zones": ["2013-01-01T10:00:00Z", "2013-02-01T10:00:00+02:00", "2013-03-01 10:00"],
    "days first": [f"{day}/{month}/2024" for month in MONTHS for day in (1, 31)],
    "no order": [f"{day}/{month}/2024" for month in MONTHS for day in (1, 2)],
    "two orders": ["13/01/2024", "01/13/2024", "2024-01-05", "5 Jan 2024"],
    "short years": ["1.2.24", "1 Jan 95", "1 Feb 95", "3 Feb 68", "4 Mar 25", "5 Mar 20"],
    "numbers": [*map(str, range(40)), "1e5", "-0.0", ".5", "1.0"],
    "units": [f"{number} km" for number in range(40)],
    "codes": ["01", "1", "1.0", "007"],
    "answers": [True, "True", "true", "FALSE", False],
    "flags": [True, False],
    "ones": [1, 1.0, True, "1", "1.0", np.True_, 0.0, -0.0],
    "decimals": [Decimal("1.5"), Decimal("1.50"), Decimal(2)],
    "moments": [datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in range(1, 9)],
    "accents": ["\u00e9t\u00e9", "e\u0301te\u0301", " a", "a", "A"],
    "midnight": ["2024-01-01 00:00:00", "2024-01-01", "2024-01-01T00:00:00.0"],
    "bytes": [b"a", "a"],
    "lists": [[1], [2]],
}
GONE = [None, np.nan, float("nan"), pd.NA, pd.NaT, "", "NA", "n/a", "-", " "]


def drawn(name, n, rng):
    """Return values of a pool, perhaps with a few of another and missing ones."""
    pool, others = POOLS[name], POOLS[rng.choice([*POOLS])]
    column = np.empty(n, dtype=object)
    column[:] = [pool[i] for i in rng.integers(len(pool), size=n)]
    for some, share in ((others, 0.02), (GONE, 0.1)):
        if rng.random() < 0.4:
            for row in np.flatnonzero(rng.random(n) < share):
                column[row] = some[rng.integers(len(some))]
    return column


def fitted(column, new, **settings):
    """Return all that a fit to a column says and gives, as text; or how it fails."""
    rows = [pd.DataFrame({"a": own, "x": np.arange(len(own)) % 7.0}) for own in (column, new)]
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            encoder = TableEncoder(**settings).fit(rows[0])
            said += [to_data(own) for own in encoder.columns_]
            said += [own.tobytes() for each in rows for own in encoder._encoded(each)]
        except (TypeError, ValueError) as error:
            said.append(repr(error))
    return repr([*said, *(str(each.message) for each in caught)])


@pytest.fixture
def row_by_row(monkeypatch):
    """Return a function that makes each row's value one by itself from then on."""

    def change():
        for module in (dates, values, cells):
            monkeypatch.setattr(module, "distinct_values", lambda own: (own, np.arange(len(own))))

    return change


@pytest.mark.parametrize("name", POOLS)
def test_a_column_is_read_as_row_by_row(name, row_by_row):
    rng = np.random.default_rng(len(name))
    choices = [None, {"a": "category"}, {"a": "number"}, {"a": "date"}, {"a": [False, True]}]
    tables = [
        (drawn(name, 120, rng), drawn(name, 40, rng), {"columns": chosen})
        for chosen in [None, None, None, *choices]
    ]
    at_once = [fitted(old, new, **settings) for old, new, settings in tables]
    row_by_row()
    assert at_once == [fitted(old, new, **settings) for old, new, settings in tables]


def test_years_of_two_digits_count_once_for_each_row(row_by_row):
    recent, others = (
        [f"1 Jan {year:02}" for year in own] for own in (range(19, 26), range(55, 69))
    )
    tables = [np.array(recent * times + others, dtype=object) for times in (1, 3)]
    there = [np.ones(len(texts), dtype=bool) for texts in tables]
    at_once = [*map(dates.dates_of, tables, there)]
    assert at_once[0].first_year != at_once[1].first_year
    row_by_row()
    for some, one in zip(at_once, map(dates.dates_of, tables, there), strict=True):
        assert repr(some) == repr(one)


def test_equal_values_that_are_different_texts_differ():
    column = np.array([1, "1", 1.0, True, -0.0, 0.0, np.nan, None, "1", float("nan")], dtype=object)
    different, places = distinct_values(column)
    assert places.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 1, 6]
    assert [*map(repr, different)] == [*map(repr, column[:8])]
    decimals = np.array([Decimal("1.50"), Decimal("1.5"), Decimal("1.5")], dtype=object)
    assert distinct_values(decimals)[1].tolist() == [0, 1, 2]


@pytest.mark.parametrize("of", [object, "str", "category"])
def test_a_long_column_of_few_texts_reads_each_once(of, monkeypatch):
    calls = Counter()

    def count(module, name):
        own = getattr(module, name)

        def counted(text, *others):
            calls[name, text] += 1
            return own(text, *others)

        monkeypatch.setattr(module, name, counted)

    count(values, "_text")
    count(dates, "_date")
    count(cells, "bare")
    n = 20_000
    table = pd.DataFrame({
        "when": [f"2013-0{1 + row % 9}-01T10:00:00Z" for row in range(n)],
        "tail": [f"N{row % 50}" for row in range(n)],
        "x": np.arange(n) % 7.0,
    })  # fmt: skip
    encoder = TableEncoder().fit(table.astype({"when": of, "tail": of}))
    assert [column.kind for column in encoder.columns_][1:] == ["category", "number"]
    most = {name: max(calls[each] for each in calls if each[0] == name) for name, _ in calls}
    assert most["_text"] == 1
    if of != "category":
        assert encoder.columns_[0].kind == "date"
        assert most["bare"] == 1
        assert most["_date"] == 3  # a few texts are tried in two orders before
