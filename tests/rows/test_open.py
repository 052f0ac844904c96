"""Files as batches."""

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
        ({"columns": "a"}, TypeError, "one text"),
        (
            {"target": "a", "columns": ["a", "b"]},
            ValueError,
            "must not name the target or the weights too; it names a",
        ),
        ({"target": list("abcde")}, ValueError, "no column is left"),
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
    monkeypatch.setattr("gzkcore.rows.tables._has_pyarrow", lambda: False)
    with pytest.raises(ImportError, match=r"pip install 'gzkcore\[cli\]'"):
        open_batches(tmp_path / "t.csv", "y")
