"""The whole kernel beside features: its cost is measured, its predictions are those it names."""

import math
import re
import tracemalloc

import numpy as np
import pytest
from comparisons import compared
from points import gaussian
from scipy.linalg import solve
from sklearn.base import BaseEstimator

import gzkcore
from gzkcore import Gaussian, KernelRidge, KernelRidgeCV, Laplacian, Matern, Polynomial
from gzkcore.evaluate import measure, whole
from gzkcore.evaluate.whole import ALPHAS, chosen_alpha, whole_kernel
from gzkcore.solve import cost as module
from gzkcore.solve.cost import cost_of
from gzkcore.theory import statistical_dimension

# ---- what it costs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "kernel"),
    [(300, Matern(nu=1.5, length_scale=1.0)), (1500, Gaussian(0.01))],
)  # fmt: skip
def test_the_statistical_dimension_is_that_of_the_matrix(n, kernel):
    """By solutions for noise, whose error is at most (2 s / 8)^(1/2) for the dimension s."""
    X = gaussian(n, 3)
    cost = cost_of(kernel, X, 0.1, n, np.random.default_rng(0))
    exact = statistical_dimension(kernel(X), 0.1)
    assert abs(cost.statistical_dimension - exact) < 3 * (2 * exact / module.RIGHT_SIDES) ** 0.5
    assert cost.converged
    assert 1 <= cost.n_iter < 30
    assert cost.seconds > 0


@pytest.mark.slow
def test_the_cost_counts_all_rows(monkeypatch):
    """Products grow with the square of the number of rows, memory no more than it."""
    X, kernel = gaussian(3000, 3), Matern(nu=1.5, length_scale=1.0)
    monkeypatch.setattr(module, "TRIED_ROWS", 1500)
    monkeypatch.setattr(module.PeakMemory, "bytes", math.inf)  # all that is reckoned
    few, many = (cost_of(kernel, X, 0.1, n, np.random.default_rng(0)) for n in (6000, 6_000_000))
    assert 100 < many.megabytes / few.megabytes < 2001
    assert many.seconds > 1000 * few.seconds
    assert many.statistical_dimension > few.statistical_dimension
    assert "landmarks" in few.preconditioner
    assert many.n_iter > few.n_iter
    assert f"({few.n_iter} steps)" in few.about


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [pytest.param(False, marks=pytest.mark.weekly), True])
def test_the_memory_is_that_of_a_fit(fit_intercept):
    X, kernel = gaussian(5000, 4), Matern(nu=1.5, length_scale=1.0)
    cost = cost_of(kernel, X, 0.1, len(X), np.random.default_rng(0), n_columns=1 + fit_intercept)
    model = KernelRidge(kernel, alpha=0.1, fit_intercept=fit_intercept, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, X[:, 0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 1 / 2 < cost.megabytes / (peak / 1e6) < 2


def test_steps_grow_ever_more_slowly():
    """By the growth from half of the rows, to the power .7, .49 and so on; never fewer."""
    assert module.grown(10, 20, 0) == 20
    assert module.grown(10, 20, 1) == np.ceil(20 * 2**0.7)
    assert module.grown(10, 20, 2) == np.ceil(20 * 2**1.19)
    assert module.grown(20, 10, 2) == module.grown(0, 10, 0) == 10


def test_a_cost_that_was_not_measured_to_the_end_is_a_bound(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 1)
    cost = cost_of(Gaussian(2.0), gaussian(1500, 5), 1e-3, 5000, np.random.default_rng(0))
    assert not cost.converged
    assert cost.about.startswith("more than ")


def test_plan_says_what_the_whole_kernel_takes():
    X = gaussian(500, 5)
    plan = gzkcore.plan(X, Laplacian(1.0), lam=0.1, n_components=[16, 64])
    assert plan.whole.alpha == plan.lam
    assert plan.statistical_dimension == plan.whole.statistical_dimension > 160
    assert {row["n_components"] for row in plan.table} == {16, 64}
    text = str(plan)
    assert re.search(
        r"whole kernel \(KernelRidge\): error 0; a fit with a ridge of 0.1 takes (about|<)", text
    )
    assert "no features of these widths are enough" in plan.recommendation
    assert "and the widest have 64. Use the whole kernel: KernelRidge" in plan.recommendation
    wide = gzkcore.plan(X, Laplacian(1.0), lam=10.0, n_components=[256])
    assert "No method reaches 0.1" in wide.recommendation
    assert "The whole kernel has no error: KernelRidge fits it in" in wide.recommendation
    smooth = gzkcore.plan(X, Gaussian(0.01), lam=1.0, n_components=[256])
    assert "whole kernel" not in smooth.recommendation
    assert "whole kernel (KernelRidge): error 0" in str(smooth)


# ---- as a method among others


@pytest.mark.parametrize("n_targets", [None, 2])
def test_predictions_are_those_of_the_ridge(n_targets):
    X, kernel = gaussian(400, 3), Gaussian(0.3)
    y = np.sin(X) @ np.ones((3, n_targets or 1)) + 3
    y = y if n_targets else y[:, 0]
    model, targets = whole_kernel(kernel, X[:300], y[:300], np.nan, 0)
    cost, predicted = measure._cost(model, "predict", (X[:300], targets), X[300:], memory=False)
    alpha = chosen_alpha(kernel, X[:300], y[:300], 0)
    assert model.alpha == alpha
    ones, K = np.ones(300), kernel(X[:300]) + alpha * np.eye(300)
    constant = solve(K, ones) @ y[:300] / solve(K, ones).sum()
    expected = constant + kernel(X[300:], X[:300]) @ solve(K, y[:300] - constant)
    np.testing.assert_allclose(predicted, expected, atol=1e-2)
    assert cost["fit_seconds"] > 0 < cost["row_seconds"]
    assert "megabytes" not in cost


@pytest.mark.slow
def test_alpha_of_few_rows_is_about_the_best():
    """One a decade, chosen by a fifth of the rows, made the whole kernel worse than its features."""
    kernel, ratios = Gaussian(0.2), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = 3.5 * rng.uniform(-0.5, 0.5, (400, 5))
        y = 0.9 * X[:, 0] + np.sin(1.7 * X[:, 1]) + rng.normal(0, 0.2, 400)

        def error(alpha, X=X, y=y):
            model = KernelRidge(kernel, alpha=alpha, fit_intercept=True).fit(X[:200], y[:200])
            return np.sqrt(np.mean((model.predict(X[200:]) - y[200:]) ** 2))

        best = min(map(error, np.logspace(-3, 1, 17)))
        ratios.append(error(chosen_alpha(kernel, X[:200], y[:200], seed)) / best)
    assert np.mean(ratios) < 1.02


def test_alpha_is_the_best_of_all_though_few_are_tried(monkeypatch):
    """Each is a factorisation for each fold."""
    X, kernel, tried = gaussian(100, 2), Gaussian(0.2), []
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(100)
    options = {"fit_intercept": True, "cv": 5, "tol": 1e-2, "random_state": 0}
    best = KernelRidgeCV(kernel, alphas=ALPHAS, **options).fit(X, y).alpha_

    def noted(*arguments, alphas, **options):
        tried.extend(alphas)
        return KernelRidgeCV(*arguments, alphas=alphas, **options)

    monkeypatch.setattr(whole, "KernelRidgeCV", noted)
    assert chosen_alpha(kernel, X, y, 0) == best
    assert len(tried) < 0.6 * len(ALPHAS)


@pytest.mark.usefixtures("in_process")
def test_compare_measures_the_whole_kernel_once(in_process):
    X = gaussian(300, 3)
    y = np.sin(4 * X[:, 0])
    methods = ["whole", "fourier-iid"]
    found = compared(X, y, kernel=Gaussian(4.0), methods=methods, n_components=[8, 16])
    assert in_process.count(("whole", None, [0, 1])) == 1
    assert [row["n_components"] for row in found.rows] == [8, 16, None]
    *features, whole = found.rows
    assert whole["method"] == "whole"
    assert whole["error"] == whole["mean_error"] == whole["spectral_error"] == 0
    assert whole["front"]
    assert whole["width"] == found.n_fitted
    assert whole["rmse"] < min(row["rmse"] for row in features)
    assert whole["seconds"] == whole["fit_seconds"] + found.n_fitted * whole["row_seconds"]
    assert found.best["method"] == "fourier-iid"  # of the features, as it was
    text = str(found)
    assert "\nwhole kernel\n" in text
    assert "The whole kernel: " in text
    assert "times its rmse" in text


@pytest.mark.usefixtures("in_process")
def test_the_whole_kernel_alone(tmp_path):
    X, path = gaussian(100, 3), tmp_path / "results.json"
    found = compared(X, methods="whole", n_seeds=1, output=path)
    assert [row["error"] for row in found.rows] == [0.0]
    assert found.best is None
    assert "alpha=" in found.rows[0]["features"]
    assert compared(X, methods="whole", n_seeds=1, output=path).rows == found.rows
    with pytest.raises(ValueError, match="no features were measured"):
        found.plot(tmp_path / "compare.png")


@pytest.mark.usefixtures("in_process")
def test_a_whole_kernel_that_is_not_solved_for_is_refused(monkeypatch):
    monkeypatch.setattr(measure, "whole_kernel", lambda *_: (_Unsolved(), np.zeros(66)))
    found = compared(gaussian(100, 3), methods="whole")
    assert found.rows == []
    [refused] = found.refused
    assert refused["n_components"] == []
    assert "its solver stopped at a relative residual of 0.3" in refused["reason"]
    assert "whole: its solver stopped" in str(found)


class _Unsolved(BaseEstimator):
    converged_, residual_ = np.array(False), np.array(0.3)

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("with_y", [False, True])
def test_the_picture_has_the_whole_kernel(tmp_path, with_y):
    pytest.importorskip("matplotlib")
    X = gaussian(200, 3)
    y = X[:, 0] if with_y else None
    found = compared(X, y, methods=["whole", "fourier-iid"], n_components=[8, 32], n_seeds=1)
    found.plot(tmp_path / "compare.svg")
    text = (tmp_path / "compare.svg").read_text()
    assert "whole kernel: error 0" in text
    assert "1e-16" not in text


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("kernel", [Polynomial(2), "laplacian", "arccosine"], ids=str)
def test_other_kernels(kernel):
    X = gaussian(120, 3)
    [row] = compared(X, X[:, 0] * X[:, 1], kernel=kernel, methods="whole", n_seeds=1).rows
    assert row["r2"] > 0.3
