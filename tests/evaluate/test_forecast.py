"""What predictions will be worth with more rows."""

import numpy as np
import pytest

import gzkcore
from gzkcore import KernelRidge
from gzkcore.evaluate.forecast import Forecast
from gzkcore.learn.kernel_regressor import KernelRegressor


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def plan():
    X, y = rows(500)
    return gzkcore.plan(X, y=y, n_components=[32, 1024], n_samples=1500)


def test_errors_hold_with_more_rows(plan):
    """The whole kernel first, no size that half of the sample doesn't have; its error comes true."""
    whole, centres, features = plan.forecasts
    assert [each.form for each in plan.forecasts] == ["whole", "centres", "features"]
    assert [each.size for each in plan.forecasts] == [None, 32, 32]
    assert all(isinstance(each, Forecast) and each.seconds > 0 for each in plan.forecasts)
    assert whole.error <= min(centres.error, features.error)
    (X, y), (test, truth) = rows(1500, 1), rows(1500, 2)
    kernel = KernelRegressor(random_state=0).fit(*rows(500)).kernel_
    scale = X.std(axis=0)
    model = KernelRidge(kernel, alpha=0.05).fit(X / scale, y)
    error = np.sqrt(np.mean(np.square(model.predict(test / scale) - truth)))
    assert whole.error == pytest.approx(error, rel=0.2)
    assert whole.megabytes > 0


def test_it_is_printed(plan):
    text = str(plan)
    assert "predictions with a learned kernel (KernelRegressor), expected of 1,500 rows" in text
    assert "centres" in text


def test_where_nothing_is_learned_there_is_no_forecast():
    X, _ = rows(100)
    assert gzkcore.plan(X, y=np.ones(100), n_components=16).forecasts == []


@pytest.mark.parametrize(
    ("y", "message"),
    [(np.ones((60, 2)), "y has 2 columns, and plan takes one"), (np.ones(59), "inconsistent")],
)
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=message):
        gzkcore.plan(rows(60)[0], y=y, n_components=16)


def test_few_rows():
    X, y = rows(30)
    with pytest.raises(ValueError, match="plan with y needs 50 rows or more; got 30"):
        gzkcore.plan(X, y=y, n_components=16)
