"""Files as batches."""

import os
import re

import numpy as np
import pandas as pd
import pytest
from batched import data, in_files
from numpy.testing import assert_allclose, assert_array_equal

from gzkcore import RandomFeatureRidge
from gzkcore.rows.open import open_batches


def test_files_are_cut_into_equal_batches(tmp_path):
    X, y = data(1000)
    for _, source in in_files(X, y, tmp_path):
        source.batch_rows = 300
        lengths = [len(batch[0]) for batch in source]
        assert lengths == [300, 300, 300, 100]
        assert_allclose(np.concatenate([b[0] for b in source]), X, rtol=1e-15)
        assert_allclose(np.concatenate([b[1] for b in source]), y, rtol=1e-15)


def test_columns_targets_and_weights_by_name(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(np.arange(20.0).reshape(4, 5), columns=list("abcde")).to_csv(path, index=False)
    ((X, y, w),) = open_batches(path, ["e", "a"], sample_weight="c")
    assert_array_equal(X[0], [1, 3])
    assert_array_equal(y[1], [9, 5])
    assert_array_equal(w, [2, 7, 12, 17])
    ((X,),) = open_batches(path, columns=["d", "a"], dtype="float32")
    assert X.dtype == np.float32
    assert_array_equal(X[0], [3, 0])
    ((X, y, w),) = open_batches(path, sample_weight="c")
    assert y is None
    for wrong, error, message in [
        ({"target": "f"}, ValueError, "no column 'f'"),
        ({"columns": "a"}, TypeError, "a single text"),
        (
            {"target": "a", "columns": ["a", "b"]},
            ValueError,
            "must not contain the target or the weights; it contains a",
        ),
        ({"target": list("abcde")}, ValueError, "there is no column for X"),
        ({"dtype": int}, ValueError, "must be float32 or float64"),
        ({"batch_rows": 0}, ValueError, "batch_rows=0 is too small"),
    ]:
        with pytest.raises(error, match=message):
            open_batches(path, **wrong)
    with pytest.raises(ValueError, match="no such file"):
        open_batches(tmp_path / "none.csv")


def test_a_bad_value_is_named_with_its_row(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["a,b,y", *(f"{i % 3},{i % 2},{i}" for i in range(50)), "1,,2"]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=re.escape("row 51, column 'b': the value is missing")):
        RandomFeatureRidge().fit(open_batches(path, "y", batch_rows=20))


def test_without_pyarrow_the_remedy_is_named(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    monkeypatch.setattr("gzkcore._util.extras.find_spec", lambda module: None)
    with pytest.raises(ImportError, match=r"pip install 'gzkcore\[cli\]'"):
        open_batches(tmp_path / "t.csv", "y")


def test_a_column_is_named_once_and_by_a_text(tmp_path):
    values = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "t.npy", values)
    pd.DataFrame(values, columns=list("012")).to_csv(tmp_path / "t.csv", index=False)
    for path in (tmp_path / "t.npy", tmp_path / "t.csv"):
        for wrong, error, message in [
            ({"columns": ["0", "0"]}, ValueError, r"columns=\['0', '0'\] names a column twice"),
            ({"target": ["1", "1"]}, ValueError, "name the same column twice"),
            ({"target": "1", "sample_weight": "1"}, ValueError, "name the same column twice"),
            ({"target": 1}, TypeError, "target=1 is not the name of a column"),
            ({"columns": [0, 1]}, TypeError, r"columns=\[0, 1\] is not the name"),
            ({"sample_weight": ["1"]}, TypeError, "sample_weight=.* is not the name"),
        ]:
            with pytest.raises(error, match=message):
                open_batches(path, **wrong)


def test_a_file_that_lost_a_column_says_so(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.ones((4, 3)))
    source = open_batches(path)
    np.save(path, np.ones((4, 2)))
    with pytest.raises(ValueError, match="there is no column '2'"):
        list(source)


def test_rows_are_those_of_the_array_whatever_comes_after(tmp_path):
    path = tmp_path / "t.npy"
    values = np.arange(14.0).reshape(7, 2)
    with path.open("wb") as file:  # numpy.load reads the first array too
        np.save(file, values)
        np.save(file, -np.ones((50, 2)))
    for batch_rows in (3, 7, 100):
        source = open_batches(path, batch_rows=batch_rows)
        assert_array_equal(np.concatenate([X for (X,) in source]), values)


def test_an_array_that_was_cut_while_it_was_read_is_damaged(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.ones((6, 2)))
    source = open_batches(path, batch_rows=2)
    os.truncate(path, path.stat().st_size - 2 * 16)
    with pytest.raises(ValueError, match=r"t\.npy is (damaged|not a \.npy)"):
        list(source)


def test_values_too_large_for_float32_are_named(tmp_path):
    path = tmp_path / "t.npy"
    values = np.ones((5, 2))
    values[3, 1] = 1e39
    np.save(path, values)
    with pytest.raises(ValueError, match=r"row 4, column '1': the value 1e\+39 is too large"):
        list(open_batches(path, dtype=np.float32, batch_rows=2))
    assert len(list(open_batches(path, batch_rows=2))) == 3
