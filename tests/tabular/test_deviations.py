"""Factors of standard deviations, by the formulas, and what is said of them."""

import numpy as np
import pandas as pd
import pytest

from gzkcore import KernelRegressor, Matern, reference
from gzkcore.tabular import deviations
from gzkcore.tabular.deviations import (
    MOST_WIDENING,
    Deviations,
    Spread,
    _about_tails,
    _about_widening,
    _widened,
    left_unknown,
    listed,
    outer_widening,
    widening,
)
from gzkcore.tabular.report import DETAIL
from gzkcore.tabular.varying_noise import _gains, step_of


def spreads():
    """Return errors of rows and what a model says of them, two columns."""
    rng = np.random.default_rng(0)
    errors, unknown = rng.standard_normal((101, 2)), rng.uniform(0, 1, (101, 2))
    farthest = np.tile([0.4, 1.5], (101, 1))
    variances = farthest * (unknown + rng.uniform(0, 1, (101, 2)) * (1 - unknown))
    unknown[0], variances[0] = 1.0, farthest[0]
    return errors, Spread(variances, unknown, farthest), rng.uniform(0, 3, 101)


@pytest.mark.parametrize("usual", [np.array([0.3, 0.2]), np.full(2, 9.0)])
def test_widening_is_that_of_the_reference(usual):
    errors, spread, drawn = spreads()
    parts = errors, *spread
    for weights in (np.ones(101), drawn):
        wanted = [
            reference.table.widening(
                *(part[:, j].tolist() for part in parts), weights.tolist(), float(usual[j])
            )
            for j in range(2)
        ]
        found = widening(errors, spread, usual, weights)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("size", [0.1, 1.2, 2.0, 100.0])
def test_outer_widening_is_that_of_the_reference(size):
    errors, spread, weights = spreads()
    errors, usual, factors = size * errors, np.array([0.3, 0.2]), np.array([0.5, 1.1])
    parts = errors, *spread
    found = outer_widening(errors, spread, usual, factors, weights)
    for j in range(2):
        own = [part[:, j].tolist() for part in parts]
        wanted = reference.table.outer_widening(
            *own, weights.tolist(), float(usual[j]), float(factors[j]), MOST_WIDENING
        )
        assert found[j] == pytest.approx(wanted, rel=1e-9)
    assert (found == {0.1: 1.0, 100.0: MOST_WIDENING}.get(size, found)).all()


def test_widened_is_that_of_the_reference():
    errors, spread, _ = spreads()
    found = _widened(spread.variances, np.array([0.5, 1.5]), np.array([0.3, 0.2]), np.full(2, 1.2))
    for j, factor, usual in ((0, 0.5, 0.3), (1, 1.5, 0.2)):
        wanted = [reference.table.widened(v, factor, usual, 1.2) for v in spread.variances[:, j]]
        np.testing.assert_allclose(found[:, j], wanted, rtol=1e-12)
    assert len(errors) == len(found)


def test_a_share_of_the_variance_that_is_unknown_is_none_below_0_or_above_1():
    """Without noise nothing tells it: it is 0."""
    variances = np.array([[0.9], [1.0], [1.8], [9.0]])
    np.testing.assert_allclose(left_unknown(variances, np.ones(1), 0.5)[:, 0], [0, 0, 0.4, 1])
    assert not left_unknown(variances, np.zeros(1), 0.5).any()


def test_gains_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    ratios, logs = rng.chisquare(1, 50), rng.standard_normal(50)
    wanted = reference.table.gain_of_varying_noise(ratios.tolist(), logs.tolist())
    np.testing.assert_allclose(_gains(ratios, logs).sum(), wanted, rtol=1e-9)


@pytest.mark.parametrize(("factors", "told"), [
    ([0.997], "standard deviations needed no correction: at least 95 % of the rows"),
    ([0.38], "were too large, so they are multiplied by 0.38. Now 95 % of the rows"),
    ([1.2], "were too small, so they are multiplied by 1.20. Now"),
    ([1.2, 0.9], "were not right, so they are multiplied by 1.20, 0.90, one factor for each"),
])  # fmt: skip
def test_the_report_says_how_deviations_were_corrected(factors, told):
    assert told in _about_widening(np.array(factors), 0.951)


def test_the_report_does_not_promise_95_percent_where_factors_are_as_large_as_may_be(monkeypatch):
    monkeypatch.setattr(deviations, "MOST_WIDENING", 0.4)
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 300)
    y = np.sin(3 * x) + 0.3 * rng.standard_normal(300)
    (remark,) = (
        remark
        for remark in KernelRegressor(random_state=0).fit(x[:, None], y).report_.remarks
        if "multiplied by 0.40" in remark.sentence
    )
    told = remark.sentence
    assert remark.kind != DETAIL  # the command prints it
    assert 45 < float(told.split("Now ")[1].split(" %")[0]) < 65  # .57 of normal ones


def test_the_report_says_where_only_intervals_of_95_percent_are_right():
    """The numbers are quantiles by weight; of few rows a share may be far from a half by chance."""
    rng = np.random.default_rng(0)
    sizes, weights = np.abs(rng.standard_t(1.5, (1000, 2))), rng.integers(0, 3, 1000)
    sizes /= np.quantile(sizes, 0.95) / 1.96
    told = _about_tails(sizes, weights)
    often = np.repeat(sizes, weights, axis=0).ravel()
    wanted = np.quantile(often, [0.5, 0.8, 0.9], method="inverted_cdf")
    assert f"take {listed(wanted)} standard deviations, and not 0.67, 1.28" in told
    assert f"normal: {100 * np.mean(often < 0.6745):.0f} % are within 0.67, where" in told
    assert not _about_tails(np.abs(rng.standard_normal((1000, 2))), weights)
    assert not _about_tails(sizes[:10], weights[:10])
    assert not _about_tails(np.zeros((10, 1)), np.ones(10))
    beside = np.column_stack([np.zeros(1000), np.abs(rng.standard_normal(1000))])
    assert not _about_tails(beside, np.ones(1000))


@pytest.mark.slow
def test_an_interval_of_half_of_the_rows_is_right_by_the_numbers_of_the_report():
    rng = np.random.default_rng(0)
    X, noise = rng.uniform(0, 3, (3000, 1)), rng.standard_t(2, 3000)
    y = np.sin(3 * X[:, 0]) + 0.3 * noise
    model = KernelRegressor(random_state=0).fit(X[:2000], y[:2000])
    (told,) = (text for text in model.report_.sentences if "errors are not normal" in text)
    half = float(told.split(" take ")[1].split(",")[0])
    mean, std = model.predict(X[2000:], return_std=True)
    sizes = np.abs(y[2000:] - mean) / std
    assert np.mean(sizes <= 0.6745) > 0.6
    assert 0.44 < np.mean(sizes <= half) < 0.56


@pytest.mark.slow
def test_days_of_which_nothing_is_known_are_within_their_deviations():
    rng, days, shops = np.random.default_rng(4), 100, 8
    day, shop = np.repeat(np.arange(days), shops), np.tile(np.arange(shops), days)
    shocks, levels = 8 * rng.standard_normal(days), 20 * rng.standard_normal(shops)
    y = 100 + levels[shop] + 10 * np.isin(day % 7, (5, 6)) + 6 * np.sin(2 * np.pi * day / 365.25)
    y += shocks[day] + 4 * rng.standard_normal(len(day))
    price = rng.uniform(1, 2, len(day))
    y -= 8 * price
    date = pd.Timestamp("2021-01-01") + pd.to_timedelta(day, unit="D")
    table = pd.DataFrame({"date": date, "shop": [f"shop{i}" for i in shop], "price": price})
    new = np.isin(day, rng.choice(days, days // 10, replace=False))
    model = KernelRegressor(random_state=0).fit(table[~new], y[~new])
    mean, std = model.predict(table[new], return_std=True)
    assert np.mean(abs(y[new] - mean) <= 1.96 * std) > 0.85
    told = [text for text in model.report_.sentences if "In gaps between the rows" in text]
    assert len(told) == 1


def test_where_copies_of_a_column_part_deviations_are_large_and_finite():
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 10, 100)
    y = 2 * a + 0.1 * rng.standard_normal(100)
    model = KernelRegressor(budget=1, random_state=0).fit(np.column_stack([a, 2 * a]), y)
    _, std = model.predict(np.array([[5, 10], [5, 11], [5, 18]]), return_std=True)
    assert std[0] < 0.2
    assert y.std() < std[1] < std[2] < 100 * y.std()


@pytest.mark.slow
def test_a_step_of_the_noise_is_a_step_of_the_deviations():
    rng = np.random.default_rng(7)
    x = rng.uniform(0, 1, 1400)
    y = np.sin(6 * x) + np.where(x > 0.5, 1.0, 0.02) * rng.standard_normal(1400)
    model = KernelRegressor(random_state=0).fit(x[:, None], y)
    new = rng.uniform(0, 1, 2000)
    mean, std = model.predict(new[:, None], return_std=True)
    missed = abs(
        np.sin(6 * new) + np.where(new > 0.5, 1.0, 0.02) * rng.standard_normal(2000) - mean
    )
    quiet = new < 0.5
    assert np.mean(missed[quiet] <= 1.96 * std[quiet]) > 0.9
    assert np.mean(missed[~quiet] <= 1.96 * std[~quiet]) > 0.9
    assert np.median(std[quiet]) < 0.04


def test_the_likeliest_step_is_found():
    h = np.random.default_rng(0).permutation(np.linspace(-1, 1, 100))
    step = step_of(h, np.where(h < 0.2, 0.01, 4.0))
    assert step[0, 0] < 0.2 < step[1, 0]
    np.testing.assert_allclose(np.diff(step[:, 1]), np.log(4 / 0.01), rtol=0.01)


def test_a_larger_scale_of_the_final_model_is_not_beyond_the_usual():
    calibrated = Deviations(*np.ones((3, 1)), farthest=np.array([2.0]))
    spread = Spread(np.ones((1, 1)), np.zeros((1, 1)), np.array([3.0]))
    assert calibrated.usual_of(spread) == 1.5
    assert calibrated.usual_of(spread._replace(farthest=np.array([1.0]))) == 1.0


def test_what_centres_cannot_follow_does_not_make_deviations_many_times_too_large():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2400, 2))
    y = np.linalg.cholesky(Matern(0.5, 0.3)(X) + 1e-9 * np.eye(2400)) @ rng.standard_normal(2400)
    learner = KernelRegressor(
        kernel=Matern(0.5, 0.3), form="centers", n_components=150, random_state=0
    )
    mean, std = learner.fit(X[:2000], y[:2000]).predict(X[2000:], return_std=True)
    errors = mean - y[2000:]
    assert learner.alpha_ < 1e-3  # the whole kernel follows
    assert np.mean(np.abs(errors) < 1.96 * std) > 0.9
    assert 0.5 < np.median(std) / np.sqrt(np.mean(errors**2)) < 2.0  # it was 15


def test_far_from_all_rows_deviations_of_centres_are_those_of_y():
    """They were a fifth of those where alpha is small: the calibration took the rest."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 2))
    y = np.sin(8 * X[:, 0]) * np.cos(7 * X[:, 1]) + 1e-3 * rng.standard_normal(2000)
    learner = KernelRegressor(
        kernel=Matern(0.5, 0.3), form="centers", n_components=100, random_state=0
    )
    with pytest.warns(UserWarning, match="far outside the range of the fit"):
        _, std = learner.fit(X, y).predict([[1e3, 1e3]], return_std=True)
    assert learner.alpha_ < 1e-5
    assert std[0] > 0.99 * np.std(y)
