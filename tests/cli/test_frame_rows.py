"""Which rows and columns of a table the default of `gzkcore fit` takes, and what of them it says."""

from pathlib import Path

import numpy as np
import pytest
from commands import read, run, write

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")


@pytest.mark.parametrize(("fitted", "spelling"), [("data.parquet", str.lower), ("data.csv", str)])
def test_booleans_are_the_same_in_every_format(capsys, fitted, spelling):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(60), rng.integers(0, 2, 60).astype(bool)
    y = a + 3 * b
    parquet.write_table(pyarrow.table({"a": a, "b": b, "y": y}), "data.parquet")
    write("data.csv", {"a": a, "b": [str(each).lower() for each in b], "y": y})
    run(capsys, "fit", fitted, "--target", "y", "--test-fraction", "0")
    write("new.csv", {"a": a, "b": [spelling(str(each)) for each in b]})
    parquet.write_table(pyarrow.table({"a": a, "b": b}), "new.parquet")
    for name in ("new.csv", "new.parquet"):
        result = run(capsys, "predict", "model.gzk", name, "--output", "out.csv")
        found = [float(row["PREDICTED_y"]) for row in read("out.csv")]
        assert np.allclose(found, y, atol=0.3), name
        assert result["notes"] == []


def test_predict_says_which_values_are_new(capsys):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(40), rng.choice(["x", "z"], 40)
    write("data.csv", {"a": a, "b": b, "y": a + (b == "x")})
    run(capsys, "fit", "data.csv", "--target", "y", "--test-fraction", "0")
    Path("new.csv").write_text("a,b\n1,x\n2,Z\n3,\n4,w\n")
    result = run(capsys, "predict", "model.gzk", "new.csv", "--output", "out.csv")
    assert result["notes"] == [
        "Note: 2 rows have a value of 'b' that the table of the fit did not have"
    ]
