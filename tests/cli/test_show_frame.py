"""What the default fit tells of other methods."""

import numpy as np
import pytest

pytest.importorskip("typer", reason="the extra `cli` is not installed")
from gzkcore.cli.show_frame import _about_best, _number, _row
from gzkcore.cli.verdict import _judged_labels


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (0.21, []),
        (0.195, ["boosting predicted better, but within the uncertainty of the test."]),
        (0.1, ["boosting predicted better here."]),
    ],
)
def test_where_another_method_is_better_it_is_said(error, told):
    ours = {"method": "KernelRegressor", "rmse": 0.2, "plus_minus": 0.02}
    boosting = {"method": "boosting", "rmse": error, "plus_minus": 0.02}
    assert _about_best({"classes": None, "methods": [ours, boosting]}) == told
    assert _about_best({"classes": None, "methods": []}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(1258.34, "1,258"), (0.000123456, "0.0001235"), (0.0, "0"), (2.0, "2"), (1e-7, "1e-07")],
)
def test_numbers_are_easy_to_read(value, text):
    assert _number(value) == text


def test_an_error_rate_of_few_rows_is_uncertain_also_where_none_is_wrong():
    """Wilson's interval of 0 of 15 ends at z² / (15 + z²), that of 3 of 15 is in the textbooks."""
    judge = _judged_labels(np.array(["a", "b"]))
    truth = np.array(["a"] * 15)
    for wrong, text in ((0, "0.0 % (0.0 to 20.4)"), (3, "20.0 % (7.0 to 45.2)")):
        second = np.arange(15) < wrong
        found = judge(truth, np.column_stack([~second, second]).astype(float))
        method = {"method": "boosting", "seconds": 1.0, **found}
        assert _row(method, ["error_rate", "log_loss"])[1] == text
        assert found["plus_minus"] == (found["high"] - found["low"]) / 2
