"""What predictions will be worth with more rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import gzkcore
from gzkcore import KernelRidge
from gzkcore.evaluate.forecast import Forecast, extrapolated
from gzkcore.evaluate.plan import as_targets
from gzkcore.tabular.kernel_regressor import KernelRegressor


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def plan():
    X, y = rows(500)
    return gzkcore.plan(X, y=y, n_components=[32, 1024], n_samples=1500)


@pytest.mark.slow
def test_errors_hold_with_more_rows(plan):
    """The whole kernel first, no size that half of the sample doesn't have; its error comes true."""
    whole, centres, features = plan.forecasts
    assert [each.form for each in plan.forecasts] == ["whole", "centres", "features"]
    assert [each.size for each in plan.forecasts] == [None, 32, 32]
    assert all(isinstance(each, Forecast) and each.seconds > 0 for each in plan.forecasts)
    assert whole.error <= 1.01 * min(centres.error, features.error)
    (X, y), (test, truth) = rows(1500, 1), rows(1500, 2)
    kernel = KernelRegressor(random_state=0).fit(*rows(500)).kernel_
    scale = X.std(axis=0)
    model = KernelRidge(kernel, alpha=0.05).fit(X / scale, y)
    error = np.sqrt(np.mean(np.square(model.predict(test / scale) - truth)))
    assert whole.error == pytest.approx(error, rel=0.2)
    assert whole.megabytes > 0


@pytest.mark.slow
def test_it_is_printed(plan):
    text = str(plan)
    title, _, answer, *_ = text.split("\n")
    assert title.startswith("1,500 rows of ")
    assert answer.startswith(
        "KernelRegressor, which learns its own kernel, is expected to have an "
    )
    assert "\nerror: root mean squared, in units of y\n" in text
    assert " centres" in text
    assert text.index("whole kernel ") < text.index("Features, for those who choose the kernel:")
    assert text.count("alpha=") == text.count("lam") == 0


def test_where_nothing_is_learned_there_is_no_forecast():
    X, _ = rows(100)
    assert gzkcore.plan(X, y=np.ones(100), n_components=16).forecasts == []


@pytest.fixture(scope="module")
def labels():
    """Rows of a frame with a category, and three labels as text."""
    X, y = rows(400)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = pd.Categorical(np.where(y > 0.2, "high", "other"))
    return frame, np.array(["low", "middle", "top"])[np.searchsorted([-0.2, 0.2], y)]


@pytest.mark.slow
def test_labels_and_categories(labels):
    frame, y = labels
    plan = gzkcore.plan(frame, y=y, n_components=32, n_samples=1000)
    assert plan.n_features == 4
    assert [each.form for each in plan.forecasts] == ["whole", "centres", "features"]
    guess = 1 - np.unique(y, return_counts=True)[1].max() / len(y)
    assert all(0 < each.error < guess / 2 and each.seconds > 0 for each in plan.forecasts)
    text = str(plan)
    assert "KernelClassifier, which learns its own kernel, is expected to have an error of" in text
    assert text.startswith("1,000 rows of 4 columns, ")
    assert "in units of y" not in text
    assert "%" in text


@pytest.mark.slow
def test_no_wrong_label_is_not_the_same_as_none_ever():
    X, _ = rows(200)
    y = X[:, 0] > 0
    X[:, 0] += np.where(y, 1.0, -1.0)
    for each in gzkcore.plan(X, y=y, n_components=16, n_samples=10_000).forecasts:
        assert each.error == pytest.approx(1 / len(y))


@pytest.mark.parametrize(("y", "classify", "expected"), [
    (np.arange(60.0), False, False),
    (np.arange(60) % 2, False, False),
    (np.arange(60) % 2, True, True),
    (np.arange(60) % 2 == 0, False, True),
    (["a", "b"] * 30, False, True),
    (pd.Series([1, 2] * 30, dtype="category"), False, True),
    (pd.Series([1.5, 2] * 30), False, False),
    (np.array([1.0, 2.0] * 30, dtype=object), False, False),
    (np.array(["x", "y"] * 30, dtype=object), False, True),
])  # fmt: skip
def test_what_is_a_label(y, classify, expected):
    assert as_targets(y, np.zeros((60, 1)), classify)[1] is expected


@pytest.mark.slow
def test_sparse_rows():
    X, y = rows(200)
    given = sparse.coo_array(np.where(X > 0, X, 0.0))
    found, same = (gzkcore.plan(A, y=y, n_components=16) for A in (given, given.toarray()))
    assert [each.error for each in found.forecasts] == pytest.approx(
        [each.error for each in same.forecasts], rel=1e-3
    )


def test_extrapolation():
    """Powers with a floor go on as they are, whatever the noise of the last step."""
    sizes = np.array([500, 1000, 2000, 16_000])
    floor = 0.1 + 30 / sizes**0.8
    assert extrapolated(floor[:3], 3) == pytest.approx(floor[3], rel=1e-3)
    assert extrapolated([0.3, 0.2, 0.2], 2) < 0.2
    assert extrapolated([0.2, 0.2, 0.2], 2) == 0.2
    assert extrapolated([0.2, 0.2, 0.3], 2) == 0.3
    assert extrapolated([0.0, 0.0, 0.0], 2) == 0.0
    power = 30 / sizes**0.5
    assert extrapolated(power[:3], 3) == pytest.approx(power[3], rel=0.1)


@pytest.mark.parametrize(("y", "message"), [
    (np.ones((60, 2)), "y has 2 columns, but plan takes one"),
    (np.ones(59), "X has 60 rows, but y has 59"),
    (["a"] * 59, "X has 60 rows, but y has 59"),
    (["a"] * 60, r"y has one class, \['a'\], but plan needs two or more"),
    ([np.nan, *range(59)], "leave out rows without a target"),
    (["a", None, *"ab" * 29], "y has no label in row 1.*X.y.notna"),
])  # fmt: skip
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=message):
        gzkcore.plan(rows(60)[0], y=y, n_components=16)


@pytest.mark.parametrize("y", [np.arange(3.0), ["a", "b", "a"]])
def test_few_rows(y):
    with pytest.raises(ValueError, match="needs 50 rows or more; got 3, which can be"):
        gzkcore.plan(rows(3)[0], y=y, n_components=16)


def test_bad_labels():
    X, _ = rows(60)
    with pytest.raises(ValueError, match="contains NaN"):
        gzkcore.plan(X, y=[np.nan, *range(59)], classify=True)
    with pytest.raises(TypeError, match="classify='yes' is not a bool"):
        gzkcore.plan(X, y=np.arange(60), classify="yes")
    with pytest.raises(ValueError, match="n_samples=59 is fewer than the 60 rows of X"):
        gzkcore.plan(X, n_samples=59)


@pytest.mark.slow
def test_the_time_of_the_choice_is_told_beside_that_of_the_fit():
    """The choice takes seconds where the fit takes hundredths."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    found = gzkcore.plan(X, y=np.sin(X[:, 0]), n_components=16)
    first = found.forecasts[0]
    assert first.choice_seconds > first.seconds
    assert "after a choice of kernel and alpha of about " in str(found)
    assert "time: of the fit alone, after the choice" in str(found)
    assert "standardised columns are in standard deviations" in str(found)
