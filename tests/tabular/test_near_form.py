"""Models of near rows on tables: what is chosen, and that all that learners do works with them."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import gzkcore
from gzkcore import KernelClassifier, KernelRegressor, NearKernelRidge
from gzkcore.kernels.base import asks_targets
from gzkcore.kernels.product import Product, column_scales
from gzkcore.kernels.shift_invariant import Gaussian, Matern
from gzkcore.rows.coded import CodedRows
from gzkcore.solve.cost import TooLittleMemoryError
from gzkcore.tabular import near_form, table_learner
from gzkcore.tabular.form import Form
from gzkcore.tabular.near_form import NearForms, NearTrial
from gzkcore.tabular.report import Candidate, Report
from gzkcore.tabular.table_rows import TableRows
from gzkcore.tabular.trials import Trials


def waves(n, seed=0, noise=0.1):
    """Return rows of a function that changes within the distance of a hundred of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2))
    return X, np.sin(60 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(n)


@pytest.fixture(scope="module")
def model():
    X, y = waves(3000)
    return KernelRegressor(form="near", kernel="gaussian", random_state=0).fit(X, y)


def test_near_rows_are_the_form_that_was_asked_for(model):
    assert isinstance(model.model_, NearKernelRidge)
    assert "one beside a linear trend, as asked for." in str(model.report_)
    X, y = waves(500, seed=1)
    mean, std = model.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.2
    assert 0.9 < np.mean(np.abs(mean - y) < 1.96 * std) <= 1


def test_files_and_pickles_of_near_rows_predict_the_same(model, tmp_path):
    model.save(tmp_path / "model.gzk")
    X, _ = waves(20, seed=2)
    again = gzkcore.load(tmp_path / "model.gzk").predict(X, return_std=True)
    np.testing.assert_array_equal(again, model.predict(X, return_std=True))


def test_deviations_are_those_that_were_calibrated_whatever_the_tails():
    X, y = waves(6000, noise=0)
    y += 0.2 * np.random.default_rng(0).standard_t(1.8, len(y))  # of infinite variance
    model = KernelRegressor(form="near", kernel="gaussian", n_components=30, random_state=0)
    mean, std = model.fit(X[:4000], y[:4000]).predict(X[4000:], return_std=True)
    inside = np.mean(np.abs(mean - y[4000:]) < 1.96 * std)
    assert inside == pytest.approx(0.95, abs=0.02)  # .924 by the scale of other rows


def test_far_from_all_rows_the_variance_is_that_of_the_calibration(model):
    _, std = model.model_.predict(np.full((1, 2), 1e6), return_std=True)
    np.testing.assert_allclose(std[0] ** 2, model._deviations.farthest)
    assert model.alpha_ > 1e-4  # so that noise is a part of it


@pytest.mark.parametrize("at_random", [False, True])
def test_rows_that_judged_the_search_judge_near_rows_too(at_random):
    """Any others are held out beside these only where each row may be."""
    X, y = waves(1000)
    train, test = np.arange(50, 300), np.arange(50)
    table = TableRows(X, y[:, None], None, None, None if at_random else np.arange(1000) // 10)
    judged = Trials(X, table.Y, None, [(train, test)], Report(), 0)
    search = NearForms(table, judged, None, None, None, at_random)
    ((others, held_out),) = search.trials.splits
    assert held_out.size == (200 if at_random else 50)
    np.testing.assert_array_equal(held_out[search._judged_too], test)
    assert not np.isin(held_out, others).any()


def test_slopes_of_near_rows_are_those_of_the_function(model):
    X, _ = waves(50, seed=3)
    _, std, slopes, of_slopes = model.predict(X, return_std=True, return_gradient=True)
    errors = slopes - np.column_stack([60 * np.cos(60 * X[:, 0]), np.ones(50)])
    assert np.mean(np.abs(errors) < 2.5 * of_slopes) > 0.85
    assert std.shape == (50,)


def test_importances_are_shares_of_the_columns(model):
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[0] > 0.9


def test_the_number_of_near_rows_is_n_components():
    X, y = waves(1200)
    model = KernelRegressor(form="near", n_components=20, kernel=Gaussian(5.0), random_state=0)
    assert model.fit(X, y).model_.n_neighbors == 20


def test_groups_are_held_out_whole():
    X, y = waves(1500)
    groups = np.repeat(np.arange(50), 30)
    kernel = Matern(1.5, 0.3)
    model = KernelRegressor(form="near", kernel=kernel, random_state=0)
    model.fit(X, y, groups=groups)
    assert isinstance(model.model_, NearKernelRidge)


def test_several_targets_and_weights():
    X, y = waves(1500)
    noise = 0.1 * np.random.default_rng(1).standard_normal(1500)
    Y, weight = np.column_stack([y, X[:, 1] + noise]), np.linspace(0, 2, 1500)
    model = KernelRegressor(form="near", kernel=Matern(1.5, 0.3), random_state=0)
    mean, std = model.fit(X, Y, weight).predict(X[:5], return_std=True)
    assert mean.shape == std.shape == (5, 2)
    assert (std > 0).all()


def test_a_classifier_of_near_rows_gives_probabilities():
    X, y = waves(1500, noise=0.0)
    labels = np.where(y > 0.5, "high", "low")
    model = KernelClassifier(form="near", kernel=Matern(1.5, "learn"), random_state=0)
    model.fit(X[:1200], labels[:1200])
    assert isinstance(model.model_, NearKernelRidge)
    shares = model.predict_proba(X[1200:])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(model.predict(X[1200:]) == labels[1200:]) > 0.85


@pytest.mark.slow
def test_place_and_time_have_a_kernel_each():
    rng = np.random.default_rng(0)
    n = 1200
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    table = pd.DataFrame({"height": rng.uniform(0, 9, n), "date": days})
    y = np.sin(table.height) + np.asarray((days - days.min()).days) / 300
    model = KernelRegressor(form="near", random_state=0).fit(table, y)
    name = "Matern 0.5 times Matern 0.5 of dates"
    assert any(name in candidate.name for candidate in model.report_.candidates)
    assert list(model.lengthscales_) == list(model.encoder_.get_feature_names_out())


@pytest.mark.parametrize("form", ["auto", "near"])
def test_a_product_whose_lengths_are_learned_may_be_given(form):
    X, y = waves(300)
    parts = [([0], Matern(1.5, "learn")), ([1], Matern(1.5, "learn"))]
    model = KernelRegressor(form=form, kernel=Product(parts), random_state=0).fit(X, X[:, 1] + y)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert "Matern 1.5 times Matern 1.5, one lengthscale per column" in str(model.report_)
    assert set(model.lengthscales_) == {"x0", "x1"}


def test_the_scales_of_a_product_are_those_of_its_parts():
    kernel = Product([([0, 2], Matern(1.5, [1.0, 2.0])), ([1], Gaussian(0.5))])
    np.testing.assert_allclose(column_scales(kernel, 3), [1.0, 1.0, 0.5])


@pytest.mark.slow
def test_near_rows_are_chosen_where_they_are_better():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (16_000, 2))
    y = np.sin(150 * X[:, 0]) * np.sin(150 * X[:, 1]) + 0.1 * rng.standard_normal(len(X))
    model = KernelRegressor(random_state=0).fit(X, y)
    assert isinstance(model.model_, NearKernelRidge)
    assert "nearest rows of each new one" in str(model.report_)


@pytest.mark.slow
def test_a_smooth_part_averages_noise_over_more_rows(monkeypatch):
    monkeypatch.setattr(near_form, "ROWS_FOR_SMOOTH", 6_000)
    X, y = waves(10_000, noise=1.0)
    y = y - np.sin(60 * X[:, 0]) + np.sin(6 * X[:, 0]) * np.cos(6 * X[:, 1])
    model = KernelRegressor(form="near", kernel="gaussian", n_components=30, random_state=0)
    assert hasattr(model.fit(X, y).model_, "smooth_")
    slopes = model.predict(X[:50], return_gradient=True)[1]
    of_truth = 6 * np.cos(6 * X[:50, 0]) * np.cos(6 * X[:50, 1])
    assert np.corrcoef(slopes[:, 0], of_truth)[0, 1] > 0.5


def judged_by(errors):
    """Return a search whose models have these errors, by (alpha, number of near rows)."""
    search = NearForms(None, None, None, None, None, True)

    def judged(kernel, form, _):
        error = errors(form.alpha, form.near)
        candidate = Candidate("", kernel, form.alpha, error)
        return near_form.NearTrial(kernel, form, candidate, error)

    search._trial, search._model = judged, SimpleNamespace(_with=lambda *_: None)
    return search


def test_alpha_and_the_number_of_near_rows_change_as_long_as_the_error_falls():
    tried = []

    def errors(alpha, near):
        tried.append((round(np.log10(alpha), 2), near))
        return 1 + (np.log10(alpha) + 1) ** 2 + 1 / near

    search = judged_by(errors)
    first = search._trial(None, Form(1e-2, 0, near=50), None)
    best = search._adjusted(first, (50, 150, 300))
    assert (round(np.log10(best.form.alpha), 2), best.form.near) == (-1, 300)
    assert tried == [(-2, 50), (-1.5, 50), (-1, 50), (-0.5, 50), (-1, 150), (-1, 300)]
    down = search._adjusted(search._trial(None, Form(1e0, 0, near=50), None), (50,))
    assert round(np.log10(down.form.alpha), 2) == -1


@pytest.mark.parametrize(("lengths", "expected"), [("alike", 2), ("one for each level", 1)])
def test_rows_with_codes_are_compared_by_codes(lengths, expected):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(40), np.eye(4)[rng.integers(0, 4, 40)]])
    scales = np.ones(5)
    if lengths != "alike":
        scales[2] = 2
    best = Candidate("", Matern(1.5, scales), 0.1)
    search = NearForms(None, None, best, None, None, True)
    search.trials = SimpleNamespace(X=CodedRows.of(X, [np.arange(1, 5)]))
    kernels = search._kernels()
    assert len(kernels) == expected
    assert asks_targets(kernels[-1])


def test_near_rows_need_room():
    X, y = waves(300)
    with pytest.raises(ValueError, match="max_memory"):
        KernelRegressor(form="near", max_memory=1000, random_state=0).fit(X, y)


@pytest.mark.parametrize(("error", "form", "asked", "near"), [
    (0.9, Form(0.1, 0), 0, True),  # better than the whole kernel is expected to be
    (0.98, Form(0.1, 0), 1, False),
    (0.98, Form(0.1, 0, centers=100), 1, True),  # hardly worse than these
    (1.1, Form(0.1, 0, centers=100), 1, False),
    (math.nan, Form(0.1, 0), 1, False),
    (0.98, None, 1, True),  # no other form has room
], ids=["better", "worse", "centres", "worse than centres", "NaN", "no room"])  # fmt: skip
def test_the_whole_kernel_is_looked_into_where_near_rows_are_not_better(
    monkeypatch, error, form, asked, near
):
    """Half of the rows have the error 1.05; the error expected is .96 of all rows, 1 of centres."""
    calls = []

    def trial(*_):
        candidate = Candidate("near", Gaussian(1.0), 0.1, error, n_rows=200)
        return NearTrial(Gaussian(1.0), Form(0.1, 0, near=5), candidate, error)

    def best_form(*_):
        calls.append(1)
        if form is None:
            raise TooLittleMemoryError("a limit", "what it takes")
        return form, "asked"

    monkeypatch.setattr(NearForms, "may_be_better", lambda _: True)
    monkeypatch.setattr(NearForms, "best", trial)
    monkeypatch.setattr(table_learner, "best_form", best_form)
    monkeypatch.setattr(table_learner, "error_of_half", lambda *_: 1.05)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(400, 2)), rng.standard_normal(400)
    best = Candidate("whole", Gaussian(1.0), 0.1, 1.0, n_rows=200)
    table, report = TableRows(X, y[:, None], None, None, None), Report()
    trials = Trials(X, table.Y, None, [(np.arange(200), np.arange(200, 400))], report, 0)
    learner = KernelRegressor()
    chosen = learner._form(table, trials, best, 1.0, None, None)[0]
    assert (chosen.near == 5) is near
    assert len(calls) == asked
    assert report.sentences[-1].startswith("Model: the 5 nearest" if near else "Model: asked")
