"""Columns of several kinds in memory: what the columns of files become."""

import datetime
import warnings

import numpy as np
import pytest

from gzkcore.rows.files import open_table
from gzkcore.rows.frames import KINDS, read_frame, typed

pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")


@pytest.mark.parametrize(("column", "expected"), [
    (
        pyarrow.array([1_700_000_000_000_000_001, None], pyarrow.timestamp("ns")),
        np.array([1_700_000_000_000_000, "NaT"], "M8[us]"),
    ),
    (pyarrow.array([161022788072777429, None], pyarrow.int64()), [161022788072777429.0, np.nan]),
    (pyarrow.array([2**64 - 1, 0], pyarrow.uint64()), [2.0**64, 0]),
], ids=["dates in nanoseconds", "int64", "uint64"])  # fmt: skip
def test_values_are_rounded(tmp_path, column, expected):
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.table({"a": column}), path)
    frame = read_frame(open_table(path), ["a"], lambda *_: None).frame
    assert np.array_equal(frame["a"], np.asarray(expected), equal_nan=True)


def test_times_with_a_zone(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a\n2024-01-01T02:00+02:00\n2024-01-01T00:00Z\n")
    with pytest.warns(UserWarning, match="times of column 'a' that have a zone") as caught:
        frame = read_frame(open_table(path), ["a"], lambda *_: None).frame
    assert len(caught) == 1
    assert (frame["a"] == np.datetime64("2024-01-01T00:00")).all()


@pytest.mark.parametrize(("fit", "new", "told"), [
    (None, "Europe/Berlin", ["times of column 'a' have a zone, other than in the fit"]),
    ("UTC", None, ["times of column 'a' have no zone, other than in the fit"]),
    ("Europe/Berlin", "UTC", []),
    (None, None, []),
])  # fmt: skip
def test_types_have_a_zone_as_in_the_fit(tmp_path, fit, new, told):
    path, forms = tmp_path / "data.parquet", {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for zone in (fit, new):
            times = pyarrow.array(
                [datetime.datetime(2024, 7, 1)] * 2, pyarrow.timestamp("us", zone)
            )
            parquet.write_table(pyarrow.table({"a": times}), path)
            table = open_table(path)
            table.forms = forms
            typed(table, "a", next(table.columns(["a"]))[1]["a"], "date")
    assert [str(each.message).partition(":")[0] for each in caught] == told


@pytest.mark.parametrize("texts", [["", "NA"], [None, None]])
def test_a_column_without_values_is_of_the_kind_that_it_was_in_the_fit(tmp_path, texts):
    path = tmp_path / "data.csv"
    path.write_text("a\n1\n")
    for column in (pyarrow.array(texts, pyarrow.string()), pyarrow.nulls(2)):
        kinds = [typed(open_table(path), "a", column, kind).dtype.kind for kind in KINDS]
        assert kinds == ["f", "M", "O"]
