"""What the default fit tells of other methods."""

import pytest

pytest.importorskip("typer", reason="the extra `cli` is not installed")
from gzkcore.cli.show_frame import _about_best, _number


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
