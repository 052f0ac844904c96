"""What the default fit tells of other methods."""

import functools

import numpy as np
import pytest
from sklearn.metrics import r2_score

pytest.importorskip("typer", reason="the extra `cli` is not installed")
from gzkcore.cli.commands_predict import _named
from gzkcore.cli.maps import told_km
from gzkcore.cli.show_frame import (
    _about_best,
    _about_choice,
    _about_columns,
    _about_rarer,
    _alike,
    _in_full,
    _number,
    _rate,
    _row,
    next_step,
    told_lengths,
)
from gzkcore.cli.verdict import _judged_labels, _judged_numbers, _judged_rarer
from gzkcore.kernels.product import Product
from gzkcore.kernels.shift_invariant import Matern


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (0.21, []),
        (
            0.195,
            [
                "boosting has a smaller error here, but the difference may be chance: the test has too few rows to tell."
            ],
        ),
        (0.1, ["boosting has a smaller error here."]),
    ],
)
def test_where_another_method_is_better_it_is_said(error, told):
    ours = {"method": "KernelRegressor", "rmse": 0.2, "plus_minus": 0.02}
    boosting = {"method": "boosting", "rmse": error, "plus_minus": 0.02}
    assert _about_best({"classes": None, "methods": [ours, boosting]}) == told
    assert _about_best({"classes": None, "methods": []}) == []


@pytest.mark.parametrize(("of_mean", "said"), [(0.209, True), (0.211, False), (0.19, True)])
def test_where_nothing_is_better_than_the_mean_it_is_said(of_mean, said):
    ours = {"method": "KernelRegressor", "rmse": 0.2, "plus_minus": 0.02}
    mean = {"method": "the mean", "rmse": of_mean, "plus_minus": 0.02}
    result = {"classes": None, "methods": [ours, mean], "target": "y", "test_by": None}
    told = _about_best(result)
    found = [line.startswith("No method is clearly better than the mean: ") for line in told]
    assert found == [True] * said
    of_last = _about_best(result | {"test_by": {"last": "date"}})
    assert [line.endswith("about y in rows held out as these are.") for line in of_last] == found


@pytest.mark.parametrize(("log_loss", "said"), [(0.43, True), (0.34, False)])
def test_a_rare_label_that_is_never_the_likeliest_may_still_be_known(log_loss, said):
    ours = {"method": "KernelClassifier", "error_rate": 0.15, "plus_minus": 0.05}
    shares = ours | {"method": "the shares of the classes", "log_loss": 0.44}
    result = {"classes": ["a", "b"], "methods": [ours | {"log_loss": log_loss}, shares]}
    assert bool(_about_best(result | {"target": "y", "test_by": None})) == said


@pytest.mark.parametrize(
    ("value", "text"),
    [(1258.34, "1,258"), (0.000123456, "0.0001235"), (0.0, "0"), (2.0, "2"), (1e-7, "1e-07")],
)
def test_numbers_are_easy_to_read(value, text):
    assert _number(value) == text


def test_an_error_rate_of_few_rows_is_uncertain_also_where_none_is_wrong():
    """Wilson's interval of 0 of 15 ends at z² / (15 + z²), that of 3 of 15 is in the textbooks."""
    judge = functools.partial(_judged_labels, np.array(["a", "b"]))
    truth = np.array(["a"] * 15)
    for wrong, text in ((0, ["0.0 %", "0.0 to 20.4 %"]), (3, ["20.0 %", "7.0 to 45.2 %"])):
        second = np.arange(15) < wrong
        found = judge(truth, np.column_stack([~second, second]).astype(float))
        method = {"method": "boosting", "seconds": 1.0, **found}
        assert _row(method, ["error_rate", "interval", "log_loss"], _rate)[1:3] == text
        assert found["plus_minus"] == (found["high"] - found["low"]) / 2


def test_r2_is_by_the_mean_of_the_rows_it_is_of():
    """Far from the rows of the fit, a forecast seemed to explain all that is not their mean."""
    truth, predicted = np.array([9.0, 10.0, 12.0, 9.0]), np.full(4, 10.5)
    assert _judged_numbers(truth, predicted)["r2"] == pytest.approx(r2_score(truth, predicted))
    assert _judged_numbers(truth[:1], predicted[:1])["r2"] is None


@pytest.mark.parametrize(
    ("errors", "texts"),
    [
        ([(1.0694, 0.19), (7.549, 1.5)], ["1.07", "± 0.19", "7.55", "± 1.50"]),
        ([(15280, 2700), (107312, 11000)], ["15,300", "± 2,700", "107,300", "± 11,000"]),
        ([(3.0, 0.0), (12345.678, 1000)], ["3.0", "± 0.0", "12,345.7", "± 1,000.0"]),
        ([(1e-12, 1e-13), (0.5, 0.1)], ["1e-12", "± 1e-13", "0.5", "± 0.1"]),
        ([(0.01, 0.0001), (107312, 9000)], ["0.01", "± 0.0001", "107,300", "± 9,000"]),
        ([(2.0, 0.0)], ["2", "± 0"]),
    ],
)
def test_errors_of_a_column_have_as_many_decimals(errors, texts):
    methods = [
        {"method": "any", "rmse": error, "plus_minus": width, "r2": -1e-5, "seconds": 0.01}
        for error, width in errors
    ]
    rows = [_row(method, ["rmse", "interval", "r2"], _alike(methods)) for method in methods]
    assert [text for row in rows for text in row[1:3]] == texts
    assert {tuple(row[3:]) for row in rows} == {("0.000", "< 0.1 s")}


def test_numbers_with_commas_are_listed_by_semicolons():
    shuffled = {"area": 2000.0, "rooms": 1500.0, "x": 1000.0}
    assert _about_columns(of_columns(1000.0, shuffled), _number)[1] == "area 2,000; rooms 1,500."


def of_columns(error, shuffled, **others):
    some = {"error_of_some": error, "shuffled": shuffled, "rows_of_some": 60, "test_rows": 60}
    return {"classes": None, **some, **others}


def test_columns_that_matter_name_the_measure_and_its_rows():
    told = _about_columns(of_columns(2.0, {"a": 3.0}), _number)
    assert told == [
        "Columns that matter, and the error if each is shuffled (2 if none is):",
        "a 3.",
    ]
    some = of_columns(0.4, {"a": 0.6}, classes=["x", "y"], rows_of_some=1000, test_rows=1001)
    assert _about_columns(some, _number)[0] == (
        "Columns that matter, and the log loss if each is shuffled (0.4 of 1,000 rows if none is):"
    )


def test_how_well_the_rarer_of_two_labels_is_found():
    """Three of five rows are found, of four that are called so; ten of 25 pairs are in order."""
    truth = np.array(["no"] * 5 + ["yes"] * 5)
    of_yes = np.array([0.9, 0.3, 0.3, 0.3, 0.3, 0.8, 0.7, 0.6, 0.1, 0.1])
    shares, classes = np.column_stack([1 - of_yes, of_yes]), np.array(["no", "yes"])
    found = _judged_rarer("yes", classes, truth, shares)
    assert found == {"recall": 0.6, "precision": 0.75, "roc_auc": pytest.approx(12 / 25)}
    told = "rarer label, yes: recall 0.600, precision 0.750, area under the ROC curve 0.480"
    assert _about_rarer({"rarer_label": "yes", "methods": [found]}) == [told]
    only_no = _judged_rarer("yes", classes, truth[1:5], shares[1:5])
    assert only_no == dict.fromkeys(["recall", "precision", "roc_auc"])
    assert _about_rarer({"rarer_label": "yes", "methods": [only_no]}) == []


def test_the_remedy_for_gaps_is_an_option():
    remarks = [{"kind": "gaps", "sentence": "Gaps."}, {"kind": "time", "sentence": "Time."}]
    told = _about_choice(
        {"lengthscale_km": None, "chosen": None, "methods": [], "remarks": remarks}
    )
    assert told == ["Gaps. --test-gaps tests predictions there."]


def test_details_are_left_to_the_page():
    remarks = [{"kind": "detail", "sentence": "Factors."}, {"kind": "", "sentence": "Model."}]
    result = {"lengthscale_km": None, "chosen": None, "methods": [], "remarks": remarks}
    assert _about_choice(result) == ["Factors.", "Model."]
    assert _about_choice(result, brief=True) == ["Model."]


def test_no_lengthscale_is_longer_than_half_around_the_earth():
    assert told_km(20_000.4) == "20,000 km"
    assert told_km(44_160.0) == "longer than half around the Earth"


def test_many_new_columns_are_told_by_the_first_and_the_last():
    assert _named(["P", "P_STD"]) == "P and P_STD"
    many = ["P", *(f"P_{label}" for label in "abcde")]
    assert _named(many) == "P and 5 probabilities, P_a to P_e"


def test_the_prediction_to_run_next_reads_files_as_the_fit_did():
    asked = {"data": "data.csv", "model": "model.gzk", "decimal_comma": False, "encoding": None,
             "thousands": None, "skip_lines": 0, "date_format": "%y%m%d", "missing": ""}  # fmt: skip
    plain = "gzkcore predict model.gzk NEW.csv --output PREDICTED.csv"
    assert next_step(asked) == plain
    asked.update(decimal_comma=True, encoding="cp850", thousands=".", skip_lines=3)
    told = "--decimal-comma --encoding cp850 --thousands . --skip-lines 3 --output"
    assert next_step(asked) == plain.replace("--output", told)


def test_a_kernel_is_written_with_every_number():
    lengths = np.arange(1.0, 2001) / 3
    text = _in_full(Matern(length_scale=lengths, nu=1.5))
    again = eval(text, {"Matern": Matern})
    np.testing.assert_array_equal(again.length_scale, lengths)
    assert again.nu == 1.5
    parts = [([0], Matern(length_scale=[2.0])), ([1, 2], Matern(length_scale=lengths[:2]))]
    product = eval(_in_full(Product(parts)), {"Matern": Matern, "Product": Product})
    np.testing.assert_array_equal(product.parts[1][1].length_scale, lengths[:2])


def test_equal_lengthscales_are_told_once_with_their_columns():
    lengths = {"a": 18.25, "b": None, "town=Rome": 18.25, "day, sine of the year": 2.0}
    told = "2: 'day, sine of the year'; 18.25: a, town=Rome; no influence: b"
    assert told_lengths(lengths) == told
    assert told_lengths(dict.fromkeys("abc", 18.25)) == "18.25, of all columns"
    assert told_lengths({}) == ""
    many = told_lengths({f"c{i}": float(i) for i in range(1, 61)})
    assert many.endswith("; 20: c20; and 40 more, up to 60: c60")
