"""The search for a kernel: trials on held-out rows, alphas, and the rows that lengths know."""

from types import SimpleNamespace

import numpy as np
import pytest
from points import gaussian, waves
from scipy.spatial.distance import pdist
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from gzkcore import KernelRegressor, KernelRidge, Matern
from gzkcore.kernels.learned import learned
from gzkcore.tabular import form
from gzkcore.tabular.kernel_search import _nearly_linear, coordinates, some_that_vary
from gzkcore.tabular.report import Candidate, Report
from gzkcore.tabular.trials import ALPHAS, Trials, alphas_about


def trials_of(shift=0.0, n=90):
    X, y = waves(n)
    folds = [(np.flatnonzero(np.arange(n) % 3 != i), np.arange(i, n, 3)) for i in range(2)]
    Y = ((y - 100) / 7)[:, None] + shift
    return Trials(X / [1e-3, 1, 1e4, 1], Y, None, folds, Report(), 0)


KERNEL = Candidate("", Matern(1.5, 2.0), 0.1, of_splits=[Matern(1.5, 2.0)] * 2)


@pytest.mark.parametrize("cv", [TimeSeriesSplit(3), GroupKFold(3)])
def test_half_of_the_rows_keep_their_order_and_groups_and_are_of_all_kinds(cv):
    n, groups = 600, np.arange(600) // 4
    X = np.random.default_rng(0).standard_normal((n, 2))
    in_order = isinstance(cv, TimeSeriesSplit)
    splits = list(cv.split(X, groups=None if in_order else groups))
    half = Trials(X, X[:, :1], None, splits, Report(), 0).halved()
    for (rows, held_out), (fewer, same) in zip(splits, half.splits, strict=True):
        np.testing.assert_array_equal(same, held_out)
        assert len(fewer) == len(rows) // 2
        assert (np.diff(fewer) > 0).all()
        assert set(fewer) <= set(rows)
        if in_order:
            assert fewer.max() < held_out.min()
        else:
            assert not set(groups[fewer]) & set(groups[held_out])
        # Every second row may be a control, every fourth of one hour: five sigmas of what is drawn.
        for period in (2, 3, 4):
            counts = np.bincount(fewer % period)
            assert np.abs(counts - len(fewer) / period).max() < 5 * np.sqrt(len(fewer) / period / 2)


def test_errors_do_not_depend_on_the_mean_of_targets():
    one, two = (trials_of(shift).run(KERNEL, ALPHAS[10::2]) for shift in (0, 30))
    assert one.alpha == two.alpha
    np.testing.assert_allclose(one.error, two.error, rtol=1e-2)


def test_a_long_time_is_expected_by_steps(monkeypatch):
    trials, told = trials_of(), []
    best = trials.run(KERNEL, ALPHAS[10::2])

    def cost_of(kernel, rows, alpha, n_samples, _, targets):
        told.append((kernel, rows.shape, alpha, n_samples, targets.shape))
        return SimpleNamespace(seconds=2.0)

    monkeypatch.setattr("gzkcore.tabular.trials.cost_of", cost_of)
    most = best.seconds * 600**2 / (2 * 60**2)
    assert trials.seconds_of(best, 600, 1.01 * most) == pytest.approx(most)
    assert told == []
    assert trials.seconds_of(best, 600, 0.99 * most) == 2.0
    n, n_targets = len(trials.every()), trials.Y.shape[1]
    assert told == [(best.kernel, (n, trials.X.shape[1]), best.alpha, 600, (n, n_targets + 1))]


@pytest.mark.parametrize(("errors", "least"), [
    ([3, 2, 4, 5, 6, 7, 8], False), ([1, 2, 3, 4, 5, 6, 7], True),
    ([np.inf, np.inf, 4, 5, 6, 7, 8], True), ([np.inf, 5, 4, 5, 6, 7, 8], False),
    ([1, 1.001, 3, 4, 5, 6, 7], False), ([np.inf] * 6 + [1], True),
])  # fmt: skip
def test_whether_smaller_alphas_may_be_better_is_known(monkeypatch, errors, least):
    """Only then features are tried too, which can do with smaller ones."""
    monkeypatch.setattr(Trials, "squares_of", lambda *_: np.array([errors], dtype=float))
    assert trials_of().run(KERNEL, ALPHAS[:13:2]).least_alpha is least


def test_an_alpha_at_the_edge_of_a_narrow_search_is_not_the_least(monkeypatch):
    monkeypatch.setattr(Trials, "squares_of", lambda *_: 1.0 + np.arange(3)[None])
    assert not trials_of().run(KERNEL, alphas_about(0.1)).least_alpha


@pytest.mark.parametrize(("n", "best"), [(90, 2), (600, 1)])
def test_of_few_rows_the_largest_alpha_is_taken_that_is_as_good_but_for_chance(n, best):
    """Of four alphas the third is worse than the second in half of the rows, the fourth in all."""
    squares = np.tile([[4.0, 3.0, 3.5, 4.0], [3.0, 3.0, 2.55, 4.0]], (50, 1))
    assert trials_of(n=n)._best_alpha(squares) == best
    squares[:, 2] = np.inf  # not solved
    assert trials_of(n=n)._best_alpha(squares) == 1


def test_the_kernel_that_is_nearly_linear_is():
    trials, alpha = trials_of(), 0.1
    kernel = _nearly_linear(trials)
    X, y = trials.X - trials.X.mean(axis=0), trials.Y[:, 0] - trials.Y[:, 0].mean()
    predicted = KernelRidge(kernel, alpha, fit_intercept=True, tol=1e-10).fit(X, y).predict(X)
    linear = Ridge(alpha * kernel.scale() ** -2).fit(X, y).predict(X)
    assert np.sqrt(np.mean((predicted - linear) ** 2)) < 0.02 * y.std()


def test_rare_values_are_among_the_rows_learned_from():
    X, y = np.random.default_rng(0).standard_normal((5000, 2)), np.zeros((5000, 1))
    y[77] = 1
    rows = some_that_vary(X, y, np.arange(5000), np.random.default_rng(0), 100)
    assert 77 in rows
    assert len(rows) == 101
    assert not some_that_vary(X, 0 * y, np.arange(5000), np.random.default_rng(0)).size


def test_rows_of_more_columns_than_rows_keep_their_distances_in_fewer():
    X = gaussian(7, 40)
    few = coordinates(X)
    assert few.shape == (7, 7)
    np.testing.assert_allclose(pdist(few), pdist(X), rtol=1e-13)
    tall = X.T.copy()
    assert coordinates(tall) is tall


def test_lengths_know_nothing_of_rows_held_out(monkeypatch):
    """Those of all rows, where the search starts, leave no trace."""
    looked_at = []

    def noted(kernel, examples, **how):
        found = learned(kernel, examples, **how)
        smooth = isinstance(kernel, Matern) and kernel.nu != "learn"  # that is told by all rows
        if smooth and how["start"] is not None:
            looked_at.append({tuple(row) for row in examples.X})
            cold = learned(kernel, examples)
            assert found.value == pytest.approx(cold.value, abs=1e-2)
        return found

    monkeypatch.setattr("gzkcore.tabular.kernel_search.learned", noted)
    X, y = waves(100)
    model = KernelRegressor(cv=3, random_state=0).fit(X, y)
    Z = model.encoder_.transform(X)
    for fold in range(3):
        assert looked_at[fold] == {tuple(row) for row in Z[np.arange(100) % 3 != fold]}


def test_the_report_tells_how_many_features_were_tried():
    """Half of those of all rows, which may be fewer than the most."""
    names, tried = [], SimpleNamespace(error=0.5, chosen=False)

    def run_model(_, name, __):
        names.append(name)
        return tried

    room = SimpleNamespace(n_rows=3000, features=lambda most, fewest: most)
    trials = SimpleNamespace(seed=0, splits=[(range(2400), range(600))], run_model=run_model)
    best = SimpleNamespace(name="Gaussian", alpha=1e-5, least_alpha=True, error=1.0)
    features, _ = form.best_form(room, trials, best, 1.0)
    assert features.trial(Matern(), 2400).features.n_components == 1500
    assert names == ["Gaussian, 1,500 features"]
    assert tried.chosen
