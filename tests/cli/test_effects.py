"""What a column, or a part of dates, does to predictions."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
from matplotlib.figure import Figure

from gzkcore.cli import effects
from gzkcore.cli.parts_of_dates import CYCLES, DAY, parts_of
from gzkcore.rows.frames import Frame
from gzkcore.tabular.columns.date import PERIODS

DAYS = np.datetime64("2021-03-01T09", "us") + np.arange(800) * np.timedelta64(1, "D")  # a Monday


class OfParts:
    """A model of a trend, the time of the year and the day of the week."""

    encoder_ = SimpleNamespace(columns_=[SimpleNamespace(names=["day"], periods=["year", "week"])])
    classes_ = np.array(["no", "yes"])

    def predict(self, frame):
        days = (frame["day"] - DAYS[0]) / np.timedelta64(1, "D")
        weekend = CYCLES["week"].places(frame["day"]) >= 5
        return days / 100 + np.cos(2 * np.pi * days / 365.2425) + 3 * weekend

    def predict_proba(self, frame):
        rare = np.where(CYCLES["week"].places(frame["day"]) >= 5, 0.3, 0.1)
        return np.column_stack([1 - rare, rare])


def fit_of(days, rarer=None):
    y = np.array(["yes", *["no"] * (len(days) - 1)])
    rows = SimpleNamespace(train=Frame({"day": days}), classify=rarer is not None, rarer=rarer, y=y)
    return SimpleNamespace(model=OfParts(), rows=rows)


def test_dates_have_an_effect_for_each_part_and_the_trend():
    """Each is that of its part alone; two hundred days after Monday 1 March are 17 September."""
    found = effects.effects_of(fit_of(np.append(DAYS, np.datetime64("NaT"))), "day")
    assert [effect.heading("day") for effect in found] == [
        "day, trend", "day, time of the year", "day, day of the week",
    ]  # fmt: skip
    trend, year, week = (effect.curves[""][1] for effect in found)
    assert np.all(np.diff(trend) > 0)
    assert trend[-1] - trend[0] == pytest.approx(0.01 * np.ptp(found[0].values), rel=0.1)
    away = year - np.cos(2 * np.pi * (found[1].values - 59 / 365.2425 * 12) / 12)
    assert np.ptp(away) < 0.7, np.ptp(away)
    np.testing.assert_allclose(week[5:] - week[:5].mean(), 3, atol=0.1)
    assert np.ptp(week[:5]) < 0.1


def test_nothing_is_drawn_where_no_dates_are():
    found = effects.effects_of(fit_of(DAYS[CYCLES["week"].places(DAYS) < 5]), "day")
    week = found[2].curves[""]
    assert np.isnan(week[:, 5:]).all()
    assert np.isfinite(week[:, :5]).all()


def test_of_two_labels_the_probability_of_the_rarer_is_the_effect():
    *_, week = effects.effects_of(fit_of(DAYS, "yes"), "day")
    assert [*week.curves] == ["yes"]
    np.testing.assert_allclose(week.curves["yes"][1], [0.1] * 5 + [0.3] * 2)


def test_errors_of_labels_along_a_column_are_log_losses():
    fit, figure = fit_of(DAYS, "yes"), Figure()
    fit.rows.target, fit.rows.test = "y", fit.rows.train
    losses = np.where(np.arange(len(DAYS)) % 97, 0.01, 10.0)  # few are large
    fit.verdict = SimpleNamespace(errors=np.zeros(len(DAYS)), losses=losses)
    *_, week = effects.effects_of(fit, "day")
    _, below = figure.subplots(2, 1)
    effects.draw_column(fit, "day", week, (0.0, 1.0), *figure.axes)
    assert below.get_ylabel() == "log loss"
    assert min(np.min(line.get_ydata()) for line in below.lines) == 0  # none is below 0


@pytest.mark.parametrize("n_days", [3, 100, 500, 800, 4000])
def test_dates_below_a_column_stand_apart(n_days):
    days = DAYS[0] + np.arange(n_days) * np.timedelta64(1, "D")
    figure = Figure(figsize=(4, 3), layout="constrained")
    fit = SimpleNamespace(rows=SimpleNamespace(train=Frame({"day": days})), verdict=None)
    fit.rows.target, fit.rows.classify, fit.rows.rarer = "y", False, None
    effect = effects.Effect(days, {"": np.zeros((3, n_days))})
    effects.draw_column(fit, "day", effect, (0.0, 1.0), figure.subplots())
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels()
    low, high = figure.axes[0].get_xlim()
    boxes = [each.get_window_extent() for each in labels if low <= each.get_position()[0] <= high]
    assert len(boxes) >= 2
    assert all(left.x1 + 5 < right.x0 for left, right in itertools.pairwise(boxes))


def test_labels_that_begin_and_end_alike_have_curves_of_their_own():
    rows = SimpleNamespace(train=Frame({"day": DAYS}), classify=True, rarer=None)
    rows.y = np.array(
        [f"a long label that says {each} and ends alike" for each in ("no", "yes")] * 400
    )
    model = OfParts()
    model.classes_ = np.unique(rows.y)
    found = effects.effects_of(SimpleNamespace(model=model, rows=rows), "day")
    assert [name[:3] for name in found[0].curves] == ["…no", "…ye"]


@pytest.mark.parametrize("period", PERIODS)
def test_dates_are_moved_within_their_range_and_keep_their_place_in_shorter_periods(period):
    rng = np.random.default_rng(0)
    dates = DAYS[0] + rng.integers(0, 800 * 24 * 60, 300) * np.timedelta64(1, "m")
    part, shorter = CYCLES[period], [*CYCLES][[*CYCLES].index(period) + 1 :]
    inner = dates[part.inner(dates)]
    assert np.ptp(inner) >= part.n_units * part.unit
    for place in part.around:
        moved = part.moved(inner, place)
        assert dates.min() - part.step <= moved.min()
        assert moved.max() <= dates.max() + part.step
        assert np.abs(moved - inner).max() <= 0.5 * (part.n_units * part.unit + part.step)
        apart = (part.places(moved) - place + part.n_units / 2) % part.n_units - part.n_units / 2
        assert np.abs(apart).max() <= (0.2 if period == "year" else 1e-3)
        for other in shorter:
            there = [CYCLES[other].places(each) for each in (inner, moved)]
            np.testing.assert_allclose(*there, atol=1e-9)
    trend, *_ = parts_of([period], np.sort(dates)[::50])
    assert np.abs(trend.places(trend.moved(dates, trend.around[0])) - trend.around[0]).max() <= (
        (trend.n_units * DAY + trend.step) / DAY / 2
    )
