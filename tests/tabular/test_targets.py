"""What is told of targets: groups of them, angles, predictions below 0 or far outside."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gzkcore import load
from gzkcore._util.remark import Remark
from gzkcore.tabular.kernel_classifier import KernelClassifier
from gzkcore.tabular.kernel_regressor import KernelRegressor
from gzkcore.tabular.targets import about_angles, about_far, about_negative, repeating

RNG = np.random.default_rng(0)
N = 120
Y = RNG.gamma(2.0, size=N)
LABELS = np.median(Y) < Y
OTHERS = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice([*"uvw"], N)})


WHO = np.repeat(np.arange(20), 6)
OF_WHO = RNG.normal(size=20)[WHO]
CODES = np.array([f"P{number:02d}" for number in WHO], dtype=object)
AGE, DOSE = RNG.integers(20, 80, 20)[WHO].astype(float), RNG.normal(size=N)


@pytest.mark.parametrize(
    ("name", "values", "others"),
    [
        ("patient", 1.0 * WHO, {"dose": DOSE}),
        ("patientID", np.where(WHO == 3, np.nan, WHO), {"dose": DOSE}),
        ("weather station no", CODES, {"dose": DOSE}),
        ("who", CODES, {"age": AGE, "old": np.where(AGE > 50, "y", "n"), "dose": DOSE}),
    ],
)
def test_a_column_whose_values_return_with_similar_targets_is_found(name, values, others):
    y = OF_WHO + 0.5 * RNG.normal(size=N)
    assert repeating({name: values} | others, [y]) == name
    assert repeating({name: values} | others, [y > np.median(y)]) == name
    assert repeating({name: values} | others, [RNG.permutation(y)]) == ""


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("town", CODES),  # new rows are of these towns, and other columns vary in them
        ("rooms", 1.0 * WHO),
        ("patient_age", AGE),
        ("n_customers", 1.0 * WHO),
        ("id", 0.5 * WHO),
        ("id", 1.0 * (WHO // 4)),  # few
        ("id", 1.0 * np.arange(N)),  # each once
    ],
)
def test_other_columns_are_no_groups(name, values):
    assert repeating({name: values, "dose": DOSE, "age": RNG.permutation(AGE)}, [OF_WHO]) == ""


def test_of_nested_groups_the_larger_are_found():
    visit = 1.0 * (np.arange(N) // 3)
    y = OF_WHO + 0.5 * RNG.normal(size=N)
    assert repeating({"visit_id": visit, "patient": CODES}, [y]) == "patient"


def test_angles_are_told_by_name_and_values():
    around, half = np.linspace(1, 359, 99), np.linspace(-179, 178, 99)
    for name in (
        "wind_direction",
        "WDIR",
        "windDir9am",
        "heading (deg)",
        "Azimuth",
        "lon",
        "angle",
    ):
        assert "sine and cosine" in str(about_angles(name, around)), name
        assert "-180 and 180" in str(about_angles(name, half)), name
    assert about_angles("direct sales", around) is None
    assert about_angles("y", around) is None
    assert about_angles("angle", around / 2) is None  # no two values are one direction
    assert about_angles("angle", 2 * around) is None


def test_predictions_below_0_are_told_where_no_target_is():
    means, scales = np.array([[1.0, 1.0], [-0.2, 1.0]]), np.ones(2)
    assert "negative" in str(about_negative(means, np.array([0.0, 0.0]), scales))
    assert about_negative(means, np.array([-1.0, 0.0]), scales) is None
    assert about_negative(means + 0.195, np.array([0.0, 0.0]), scales) is None  # hardly below


def test_predictions_far_outside_the_targets_are_told():
    lowest, highest = np.array([0.0, 5.0]), np.array([2.0, 6.0])
    assert about_far(np.array([[4.0, 4.0], [-2.0, 7.0]]), lowest, highest) is None
    for far in ([4.1, 5.0], [-2.1, 5.0], [1.0, 7.1]):
        assert "far outside the targets" in str(about_far(np.array([far]), lowest, highest))


@pytest.mark.slow
def test_a_trend_that_goes_on_far_beyond_the_rows_is_told(tmp_path):
    x = RNG.uniform(size=(100, 1))
    model = KernelRegressor(random_state=0).fit(x, 3 * x[:, 0] + 0.1 * RNG.normal(size=100))
    model.save(tmp_path / "model.gzk")
    for each in (model, load(tmp_path / "model.gzk")):
        with pytest.warns(Remark) as told:
            each.predict(x + 50)
        assert any("far outside the targets of the fit" in str(one.message) for one in told)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(x)


@pytest.mark.slow
def test_fits_and_predictions_tell_it():
    y = pd.Series(360 * RNG.uniform(size=N), name="direction")
    with pytest.warns(UserWarning, match="direction seems to be an angle"):
        KernelRegressor(random_state=0).fit(OTHERS, y)
    noisy = OTHERS["a"] + 0.1 * RNG.normal(size=N)
    model = KernelRegressor(random_state=0).fit(OTHERS, np.maximum(noisy, 0))
    with pytest.warns(UserWarning, match="predictions are negative, but no target of the fit is"):
        model.predict(OTHERS)
    with pytest.warns(UserWarning, match="column 'copy' tells the target exactly"):
        KernelClassifier(random_state=0).fit(OTHERS.assign(copy=LABELS), LABELS)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [KernelRegressor, KernelClassifier])
def test_reports_tell_of_groups_that_splits_part(learner):
    X = OTHERS.assign(patient=WHO)
    y = OF_WHO if learner is KernelRegressor else np.where(OF_WHO > 0, "ill", "well")
    told = "Rows with the same 'patient' have similar targets"
    for groups, is_told in ((None, True), (WHO, False)):
        report = learner(random_state=0).fit(X, y, groups=groups).report_
        assert any(sentence.startswith(told) for sentence in report.sentences) == is_told
