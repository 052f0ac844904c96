"""Kernel ridge regression with the whole kernel: as scikit-learn's, as dense solves, or it says so."""

import os
import pickle
import signal
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from batched import Diary
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge as Dense
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics.pairwise import (
    euclidean_distances,
    laplacian_kernel,
    pairwise_kernels,
    rbf_kernel,
)
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import WHOLE

import gzkcore
from gzkcore import (
    ArcCosine,
    Checkpoint,
    DotProduct,
    Gaussian,
    GegenbauerFeatures,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Laplacian,
    Matern,
    NystromFeatures,
    Polynomial,
    Product,
    RandomFeatureRidge,
    SphereHeat,
    Sum,
    reference,
)
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.tile_rows import TiledRows
from gzkcore.solve import system as system_module
from gzkcore.solve.posterior import (
    EXACT_ROWS,
    N_DRAWS,
    DrawnPosterior,
    Posterior,
    feature_prior,
)
from gzkcore.solve.solve import NotPositiveDefinite
from gzkcore.solve.system import HELD_ROWS

LINEAR = DotProduct([0.0, 1.0])
GAUSSIAN = Gaussian(0.5)


def data(n=300, n_targets=1, seed=0, dim=3):
    """Rows, targets and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    y = np.sin(X @ rng.standard_normal((dim, n_targets))) + 0.1 * rng.standard_normal(
        (n, n_targets)
    )
    weight = rng.uniform(0.1, 2, n)
    weight[::7] = 0
    return X, y if n_targets > 1 else y[:, 0], weight


def close(found, wanted, what="dense", dtype=np.float64):
    wanted = np.asarray(wanted)
    atol = WHOLE[what](dtype) * max(np.abs(wanted).max(), 1e-300)
    assert_allclose(found, wanted, rtol=0, atol=atol)


def iterated(**parameters):
    """Return parameters that leave nothing to a factor of the whole matrix."""
    return {"preconditioner": 64, "tol": 1e-10, "random_state": 0} | parameters


SOLVERS = {"factored": {}, "iterated": iterated(), "diagonal": iterated(preconditioner=None)}
by_every_solver = pytest.mark.parametrize("solver", SOLVERS)


# ---- scikit-learn's own tests of KernelRidge

X10, Y10 = make_regression(n_features=10, random_state=0)


@by_every_solver
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array, sp.csr_matrix])
def test_linear_kernels_are_ridge_regression(container, solver):
    X = container(X10)
    wanted = Ridge(alpha=1, fit_intercept=False).fit(X10, Y10).predict(X10)
    found = KernelRidge(LINEAR, alpha=1, **SOLVERS[solver]).fit(X, Y10).predict(X)
    close(found, wanted, "tight")


def test_a_singular_kernel_without_alpha():
    wanted = Ridge(alpha=0, fit_intercept=False).fit(X10, Y10).predict(X10)
    close(KernelRidge(LINEAR, alpha=0).fit(X10, Y10).predict(X10), wanted, "tight")


@by_every_solver
@pytest.mark.parametrize("metric", ["linear", "rbf", "poly", "cosine"])
def test_precomputed_kernels(metric, solver):
    K = pairwise_kernels(X10, metric=metric)
    before, random = K.copy(), np.random.RandomState(0).rand(len(X10))
    for weight in (None, random):
        wanted = Dense(kernel=metric).fit(X10, Y10, weight).predict(X10)
        model = KernelRidge("precomputed", **SOLVERS[solver]).fit(K, Y10, weight)
        close(model.predict(K), wanted, "tight")
    assert_array_equal(K, before)


# ---- as scikit-learn's, and as the reference

KERNELS = {
    "gaussian": (Gaussian(0.5), {"kernel": "rbf", "gamma": 0.5}),
    "laplacian": (Laplacian(0.3), {"kernel": "laplacian", "gamma": 0.3}),
    "polynomial": (Polynomial(3), {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}),
    "function": (laplacian_kernel, {"kernel": "laplacian"}),
}


@by_every_solver
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_as_scikit_learn(name, weighted, solver):
    kernel, theirs = KERNELS[name]
    X, Y, weight = data(n_targets=2)
    weight = weight if weighted else None
    new = data(50, seed=1)[0]
    alpha = np.array([10.0, 100.0]) if name == "polynomial" else np.array([0.1, 1.0])
    wanted = Dense(alpha=alpha, **theirs).fit(X, Y, weight)
    found = KernelRidge(kernel, alpha, **SOLVERS[solver]).fit(X, Y, weight)
    close(found.predict(new), wanted.predict(new), "tight")
    assert found.converged_.all()
    assert found.dual_coef_.shape == (len(found.X_fit_), 2)


by_every_trend = pytest.mark.parametrize("trend", [None, "constant", "linear"])


def trend_of(trend, X):
    """Return H of rows as the reference takes it."""
    ones = np.ones((len(X), 1))
    return {None: ones[:, :0], "constant": ones, "linear": np.hstack([ones, X])}[trend]


@by_every_solver
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@by_every_trend
def test_coefficients_as_the_reference(trend, weighted, solver):
    X, y, weight = data(60)
    y, weight = y + 5 + 3 * X[:, 0], np.maximum(weight, 0.1) if weighted else None
    model = KernelRidge(GAUSSIAN, 0.1, trend=trend, **SOLVERS[solver]).fit(X, y, weight)
    args = GAUSSIAN(X), y, 0.1, weight, trend_of(trend, X)
    coef, b = reference.kernel_ridge.dual_coefficients(*args)
    close(model.dual_coef_, coef, "tight")
    close(model.intercept_, b[0] if b else 0.0, "tight")
    assert hasattr(model, "trend_coef_") == (trend == "linear")
    if trend == "linear":
        close(model.trend_coef_, b[1:], "tight")
    new = data(5, seed=1)[0]
    close(model.predict(new), GAUSSIAN(new, X) @ coef + trend_of(trend, new) @ b, "tight")
    close(model.noise_variance_, 0.1 * reference.kernel_ridge.prior_scale(*args), "tight")


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_intercept_is_that_of_a_regression_on_features(weighted):
    X, y, weight = data(200)
    y, weight = y + 100, weight if weighted else None
    kept = slice(None) if weight is None else weight > 0
    features = NystromFeatures(GAUSSIAN, len(X[kept]), landmarks=X[kept])
    wanted = RandomFeatureRidge(features, 0.1).fit(X, y, weight)
    found = KernelRidge(GAUSSIAN, 0.1, fit_intercept=True).fit(X, y, weight)
    new = data(50, seed=1)[0]
    close(found.predict(new), wanted.predict(new), "tight")
    close(found.intercept_, np.mean(found.intercept_), "tight")


def test_a_kernel_of_nothing_leaves_the_trend_of_least_squares():
    X, y, _ = data(60)
    y = y + 4 * X[:, 1] - 7
    model = KernelRidge(lambda A, B: np.zeros((len(A), len(B))), 0.1, trend="linear").fit(X, y)
    wanted = LinearRegression().fit(X, y)
    close(model.trend_coef_, wanted.coef_, "tight")
    close(model.intercept_, wanted.intercept_, "tight")
    new = data(9, seed=1)[0]
    mean, std = model.predict(new, return_std=True)
    close(mean, wanted.predict(new), "tight")
    H, of_new = trend_of("linear", X), trend_of("linear", new)
    noise = np.square(y - wanted.predict(X)).sum() / (60 - H.shape[1])
    spread = np.einsum("ij,jk,ik->i", of_new, np.linalg.inv(H.T @ H), of_new)
    close(std**2, noise * (1 + spread), "tight")


def test_a_trend_is_for_columns():
    X, y, _ = data(30)
    for options in ({"kernel": "precomputed"}, {"centers": 5}):
        rows = GAUSSIAN(X) if "kernel" in options else X
        with pytest.raises(ValueError, match=r"trend='linear'.*trend='constant'"):
            KernelRidge(trend="linear", **options).fit(rows, y)
    with pytest.raises(ValueError, match=r"trend='square'.*linear"):
        KernelRidge(trend="square").fit(X, y)
    for trend, message in (
        ([1, 1], r"trend=\[1, 1\] names a column twice"),
        ([X.shape[1]], "trend has column"),
        ([], "trend has no columns"),
        (["z"], "trend names column 'z', but X has no column names"),
    ):
        with pytest.raises(ValueError, match=message):
            KernelRidge(trend=trend).fit(X, y)
    frame = pd.DataFrame(X).rename(columns=lambda place: f"c{place}")
    named, numbered = (KernelRidge(trend=each).fit(frame, y) for each in (["c1"], [1]))
    assert_array_equal(named.trend_coef_, numbered.trend_coef_)


def test_columns_that_repeat_share_a_slope():
    X, y, _ = data(50)
    y = y + X @ np.arange(1.0, X.shape[1] + 1)
    twice = np.hstack([X, X[:, :1], np.ones((50, 1))])
    found = KernelRidge(Gaussian([0.5] * X.shape[1] + [1e-12] * 2), 0.1, trend="linear")
    wanted = KernelRidge(GAUSSIAN, 0.1, trend="linear").fit(X, y)
    close(found.fit(twice, y).predict(twice), wanted.predict(X), "solved")
    close(found.trend_coef_[[0, -2]].sum(), wanted.trend_coef_[0], "solved")
    assert found.trend_coef_[-1] == 0


COPIES = {
    "copies": lambda X: np.repeat(X, 12, axis=1),
    "sums": lambda X: np.hstack([X, X.sum(axis=1, keepdims=True), X @ [[1e-3], [1e3], [0.0]] + 7]),
    "floats": lambda X: np.hstack([X, X.astype(np.float32) @ np.ones((3, 1), np.float32)]),
    "constant": lambda X: np.hstack([X, np.full((len(X), 1), 0.1), np.zeros((len(X), 2))]),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_that_say_nothing_new_change_nothing(copied, sparse):
    """A trend has as many degrees of freedom as the rank of its columns, and no slope off it."""
    X, y, weight = data(40)
    weight, y = np.maximum(weight, 0.1), y + X[:, 1]
    new, kernel = data(6, seed=1)[0], Product([([0], Gaussian(0.5))])
    wanted = KernelRidge(kernel, 0.1, trend="linear").fit(X, y, weight)
    columns, new_columns = copied(X), copied(new)
    found = KernelRidge(kernel, 0.1, trend="linear")
    found.fit(sp.csr_array(columns) if sparse else columns, y, weight)
    assert_allclose(found.noise_variance_, wanted.noise_variance_, rtol=1e-6)
    if sparse:
        new_columns = sp.csr_array(new_columns)
    for ours, theirs in zip(
        found.predict(new_columns, return_std=True),
        wanted.predict(new, return_std=True),
        strict=True,
    ):
        assert_allclose(ours, theirs, rtol=1e-5)
    apart = copied(new)
    apart[0, -1] += 1.0
    apart = sp.csr_array(apart) if sparse else apart
    _, std, _, slope_std = found.predict(apart, return_std=True, return_gradient=True)
    assert_array_equal(np.isinf(std), np.arange(6) == 0)
    assert np.isinf(slope_std[:, -1]).all()
    draws = found.sample_y(apart, 2)
    assert_array_equal(np.isnan(draws), np.isinf(std)[:, None].repeat(2, axis=1))


@pytest.mark.parametrize("copies", [1, 5, 12])
def test_the_noise_beside_copies(copies):
    x = np.random.default_rng(0).uniform(-1, 1, (20, 1))
    y = 2 * x[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(20)
    kernel = Product([([0], Gaussian(2.0))])
    model = KernelRidge(kernel, 0.5, trend="linear").fit(x.repeat(copies, axis=1), y)
    H, K = np.c_[np.ones(20), x], kernel(x)
    assert_allclose(
        model.noise_variance_, 0.5 * reference.kernel_ridge.prior_scale(K, y, 0.5, trend=H)
    )


@pytest.mark.parametrize(("n", "trend"), [(1, "constant"), (1, "linear"), (3, "linear")])
def test_rows_that_a_trend_meets_tell_nothing_of_the_noise(n, trend):
    X, y, _ = data(n)
    model = KernelRidge(GAUSSIAN, 0.1, trend=trend).fit(X, y)
    close(model.predict(X), y, "solved")
    assert model.noise_variance_ == np.inf
    assert np.isinf(model.predict(X, return_std=True)[1]).all()


def test_one_alpha_for_each_target_with_an_intercept():
    X, Y, _ = data(n_targets=3)
    Y += [10, -10, 0]
    options = iterated(fit_intercept=True)
    model = KernelRidge(GAUSSIAN, [1.0, 0.1, 1.0], **options).fit(X, Y)
    for target, alpha in enumerate([1.0, 0.1, 1.0]):
        one = KernelRidge(GAUSSIAN, alpha, **options).fit(X, Y[:, target])
        close(model.predict(X)[:, target], one.predict(X), "tight")
    assert model.n_iter_.shape == model.residual_.shape == model.intercept_.shape == (3,)


@pytest.mark.slow
def test_a_better_preconditioner_takes_fewer_steps():
    X, y, _ = data(900)
    steps = {}
    for name, given in {
        "none": None,
        "few": 50,
        "many": 400,
        "map": GegenbauerFeatures(Gaussian(0.1), 400, random_state=0),
        "fitted": NystromFeatures(Gaussian(0.1), 400, random_state=0).fit(X),
    }.items():
        model = KernelRidge(Gaussian(0.1), 1e-3, preconditioner=given, random_state=0).fit(X, y)
        assert model.converged_
        steps[name] = model.n_iter_
        again = KernelRidge(Gaussian(0.1), 1e-3, preconditioner=model.preconditioner_).fit(X, y)
        assert again.n_iter_ == model.n_iter_
    assert steps["many"] < steps["few"] < steps["none"]
    assert max(steps["map"], steps["fitted"]) < steps["few"]


def test_the_residual_is_the_true_one():
    X, y, weight = data(400)
    for tol in (1e-2, 1e-5):
        model = KernelRidge(GAUSSIAN, 1e-2, preconditioner=30, tol=tol, random_state=0)
        model.fit(X, y, weight)
        kept = weight > 0
        A = GAUSSIAN(X[kept]) + 1e-2 * np.diag(1 / weight[kept])
        wanted = np.linalg.norm(y[kept] - A @ model.dual_coef_) / np.linalg.norm(y[kept])
        assert_allclose(model.residual_, wanted, rtol=1e-6)
        assert model.residual_ <= tol


# ---- what is not known: standard deviations and draws


@by_every_solver
@by_every_trend
def test_variances_as_the_reference(trend, solver):
    X, Y, weight = data(60, n_targets=2)
    weight, new = np.maximum(weight, 0.1), data(5, seed=1)[0] * 2
    alphas = [0.1, 1.0]
    model = KernelRidge(GAUSSIAN, alphas, trend=trend, **SOLVERS[solver])
    H, of_new = trend_of(trend, X), trend_of(trend, new)
    _, std = model.fit(X, Y, weight).predict(new, return_std=True)
    K, cross = GAUSSIAN(X), GAUSSIAN(new, X)
    for t, alpha in enumerate(alphas):
        scale = reference.kernel_ridge.prior_scale(K, Y[:, t], alpha, weight, H)
        for i in range(5):
            unit = reference.kernel_ridge.predictive_variance(
                K, cross[i], 1.0, alpha, weight, H, of_new[i]
            )
            close(std[i, t] ** 2, scale * (alpha + unit), "tight")


def test_standard_deviations_are_those_of_a_gaussian_process():
    X, y, _ = data(200)
    new = data(40, seed=1)[0] * 2
    model = KernelRidge(GAUSSIAN, 0.1).fit(X, y)
    scale = model.noise_variance_ / 0.1
    kernel = ConstantKernel(scale) * RBF(1.0) + WhiteKernel(0.1 * scale)
    gp = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    mean, std = model.predict(new, return_std=True)
    wanted, wanted_std = gp.predict(new, return_std=True)
    close(mean, wanted, "tight")
    close(std, wanted_std, "tight")


@by_every_trend
def test_draws_follow_the_rule_of_the_reference(trend):
    """Matheron's rule with the same draws: those of `sample_y`, made again here."""
    X, y, weight = data(40)
    weight, new = np.maximum(weight, 0.1), data(7, seed=1)[0]
    model = KernelRidge(GAUSSIAN, 0.3, trend=trend).fit(X, y, weight)
    both = trend_of(trend, X), trend_of(trend, new)
    found = model.sample_y(new, 3, random_state=5)
    rng = generator(5)
    root = np.linalg.cholesky(GAUSSIAN(np.concatenate([X, new])))
    prior = root @ rng.standard_normal((47, 3))
    noise = rng.standard_normal((40, 3))
    scale = reference.kernel_ridge.prior_scale(GAUSSIAN(X), y, 0.3, weight, both[0])
    for s in range(3):
        wanted = reference.kernel_ridge.conditioned_draw(
            GAUSSIAN(X), GAUSSIAN(new, X), y, 0.3, prior[:40, s], prior[40:, s], -noise[:, s],
            scale, weight, *both,
        )  # fmt: skip
        # A draw from the prior and its negative are as likely: ours corrects by f + e.
        mirrored = reference.kernel_ridge.conditioned_draw(
            GAUSSIAN(X), GAUSSIAN(new, X), y, 0.3, prior[:40, s], prior[40:, s], noise[:, s],
            scale, weight, *both,
        )  # fmt: skip
        assert wanted != mirrored
        close(found[:, s], mirrored, "tight")


@pytest.mark.parametrize(("n_rows", "n_new", "exact"), [(5000, 52, True), (5000, 53, False)])
def test_few_variances_are_solved_for_where_that_takes_no_longer(n_rows, n_new, exact, monkeypatch):
    X = np.random.default_rng(0).uniform(size=(n_rows, 2))
    model = KernelRidge(Matern(1.5, 0.2), 0.1, random_state=0).fit(X, X[:, 0])
    solved = []
    monkeypatch.setattr(Posterior, "variances", lambda _, X, alpha: solved.append(X) or X[:, 0])
    model.predict(X[:n_new], return_std=True)
    assert bool(solved) == exact


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Matern(1.5, 0.5), Laplacian(1.0)])
def test_variances_by_draws_are_the_exact_ones(kernel):
    """The mean of 64 squares is off by sqrt(2 / 64) of the variance of f, four times in 16,000."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1, 1, (800, 4)), rng.uniform(-1.5, 1.5, (200, 4))
    model = KernelRidge(kernel, 0.1, preconditioner=300, random_state=0)
    model.fit(X, np.sin(3 * X[:, 0]))
    assert len(new) > EXACT_ROWS
    assert isinstance(model._posterior, DrawnPosterior)  # as with more than three columns
    _, sampled = model.predict(new, return_std=True)
    exact = np.concatenate(
        [model.predict(new[i : i + 50], return_std=True)[1] for i in range(0, 200, 50)]
    )
    unit = model.noise_variance_ / 0.1
    off = (sampled**2 - exact**2) / (exact**2 - model.noise_variance_ + 1e-3 * unit)
    spread = np.sqrt(2 / N_DRAWS)
    assert np.sqrt(np.mean(off**2)) < 1.5 * spread
    assert abs(off.mean()) < 1.5 * spread  # draws of all rows are the same 64


def test_variances_by_draws_are_exact_where_nothing_is_known():
    """Far from the data, and from each other, all that is left of a draw is the draw."""
    X, y, _ = data(1100, dim=4)
    far = data(1200, seed=1, dim=4)[0] + 50.0
    model = KernelRidge(GAUSSIAN, 0.1, preconditioner=300, random_state=0).fit(X, y)
    _, std = model.predict(far, return_std=True)
    close(std**2, np.full(1200, model.noise_variance_ / 0.1 * 1.1), "tight")


def test_variances_by_draws_are_no_larger_than_before_y_was_seen():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1, 1, (1100, 4)), rng.uniform(-3, 3, (1200, 4))
    model = KernelRidge(Matern(1.5, 0.5), 0.1, preconditioner=300, random_state=0)
    _, std = model.fit(X, np.sin(3 * X[:, 0])).predict(new, return_std=True)
    assert (std**2).max() <= model.noise_variance_ / 0.1 * 1.1 * (1 + 1e-12)


def test_variances_by_draws_of_rows_that_a_kernel_gives_none():
    """x^T y is 0 for a row of zeros, and so is every draw there."""
    X, y, _ = data(1100, dim=4)
    X[0] = 0.0
    model = KernelRidge(LINEAR, 0.1, random_state=0).fit(X, y)
    _, std = model.predict(np.zeros((1200, X.shape[1])), return_std=True)
    close(std**2, np.full(1200, model.noise_variance_), "tight")


@pytest.mark.parametrize("n", [300, pytest.param(2000, marks=pytest.mark.weekly)])
def test_95_of_100_observations_are_within_two_standard_deviations(n):
    """y drawn from the model itself: f of covariance s k, noise of variance s alpha."""
    kernel, alpha, scale = Matern(1.5, 0.4), 0.2, 3.0
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (n + 400, 2))
    root = np.linalg.cholesky(kernel.resolve(rows)(rows) + 1e-10 * np.eye(len(rows)))
    inside, noise = [], []
    for _ in range(5):
        f = np.sqrt(scale) * root @ rng.standard_normal(len(rows))
        y = f + np.sqrt(scale * alpha) * rng.standard_normal(len(rows))
        model = KernelRidge(kernel, alpha, random_state=0).fit(rows[:n], y[:n])
        mean, std = model.predict(rows[n:], return_std=True)
        inside.append(np.abs(y[n:] - mean) < norm.ppf(0.975) * std)
        noise.append(model.noise_variance_)
    assert 0.93 < np.mean(inside) < 0.97, np.mean(inside)
    assert_allclose(np.mean(noise), scale * alpha, rtol=4 * np.sqrt(2 / (5 * n)))


@pytest.mark.parametrize("n", [200, pytest.param(5000, marks=pytest.mark.weekly)])
def test_draws_have_the_mean_and_the_variance_of_predictions(n):
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1.2, 1.2, (30, 2))
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1]])
    model = KernelRidge(Gaussian(3.0), [0.1, 1.0], preconditioner=200, random_state=0).fit(X, Y)
    mean, std = model.predict(new, return_std=True)
    drawn = model.sample_y(new, 600, random_state=1)
    assert drawn.shape == (30, 2, 600)
    of_f = np.sqrt(std**2 - model.noise_variance_)
    assert_allclose(drawn.mean(axis=2), mean, rtol=0, atol=5 * (of_f / np.sqrt(600)).max())
    assert_allclose(drawn.std(axis=2), of_f, rtol=0.25, atol=1e-3)
    assert_array_equal(drawn, model.sample_y(new, 600, random_state=1))
    assert model.sample_y(new).shape == (30, 2, 1)


def test_kernels_without_features_are_solved_for_exactly():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1, 1, (1200, 4)), rng.uniform(-1, 1, (EXACT_ROWS + 1, 4))
    kernel = Product([([0, 2, 3], Gaussian(1.0)), (1, Matern())])
    assert feature_prior(kernel.resolve(X), X, 2, 0) is None
    model = KernelRidge(kernel, 0.1, preconditioner=200, random_state=0).fit(X, X[:, 0])
    std = model.predict(new, return_std=True)[1]
    close(std[:10], model.predict(new[:10], return_std=True)[1], "solved")
    assert model.sample_y(new, 2).shape == (EXACT_ROWS + 1, 2)
    with pytest.raises(ValueError, match=r"5,200 rows, old and new, .* at most|4,096; use fewer"):
        model.sample_y(np.tile(X, (4, 1))[:4000], 2)


def test_what_a_precomputed_kernel_cannot_say():
    X, y, _ = data(50)
    K = GAUSSIAN(X)
    model = KernelRidge("precomputed").fit(K, y)
    with pytest.raises(ValueError, match=r"k\(x, x\) of new rows is unknown"):
        model.predict(K, return_std=True)
    with pytest.raises(ValueError, match="between new rows is unknown"):
        model.sample_y(K)


# ---- difficult data: converged, or it says so


def difficult():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    outlier = X.copy()
    outlier[0] *= 1e6
    yield "smooth", X * 1e-3
    yield "duplicates", np.repeat(X[:20], 10, axis=0)
    yield "outlying", outlier
    yield "constant", np.ones((200, 3))
    yield "one row", X[:1]
    yield "two rows", X[:2]
    yield "wide", rng.standard_normal((30, 300))
    yield "large", X * 1e150
    yield "apart", X * 1e6


@by_every_solver
@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1.0, 1e4])
@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in difficult()])
def test_converges_or_says_that_it_did_not(X, alpha, solver):
    y = np.random.default_rng(1).standard_normal(len(X)) + 3
    options = SOLVERS[solver] | {"tol": 1e-6, "max_iter": 300}
    kernel = Matern(1.5, 1.0)
    model = KernelRidge(kernel, alpha, **options)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    about = [str(each.message) for each in told if issubclass(each.category, ConvergenceWarning)]
    A = kernel(X) + alpha * np.eye(len(X))
    residual = np.linalg.norm(y - A @ model.dual_coef_) / np.linalg.norm(y)
    assert model.converged_ == (not about)
    if model.converged_:
        assert residual <= 2e-6
        if np.linalg.cond(A) < 1e6:
            close(model.predict(X), kernel(X) @ np.linalg.solve(A, y), "solved")
    else:
        assert "may predict inaccurately" in about[0]
        assert f"alpha={alpha:g}" in about[0]
    assert np.isfinite(model.predict(X)).all()


def test_duplicates_without_alpha_are_told():
    X = np.repeat(data(50)[0], 2, axis=0)
    y = np.arange(100.0)
    for options in SOLVERS.values():
        with pytest.warns(ConvergenceWarning, match="may predict inaccurately"):
            model = KernelRidge(GAUSSIAN, 0.0, **options).fit(X, y)
        assert not model.converged_


def test_a_singular_matrix_is_inverted_where_it_is_not():
    with pytest.warns(ConvergenceWarning, match=r"is singular to working precision.*larger alpha"):
        model = KernelRidge(GAUSSIAN, 0.0).fit([[0.0], [0.0], [2.0]], [1.0, 2.0, 3.0])
    close(model.predict([[0.0], [2.0]]), [1.5, 3.0], "tight")


@by_every_solver
def test_functions_that_are_no_kernels_are_told(solver):
    X, y, _ = data(300)
    for function, message in (
        (lambda X, Y: -X @ Y.T, "on its diagonal, in row"),
        (
            lambda X, Y: 1.0 * (euclidean_distances(X, Y) < 1),
            r"K \+ alpha N .* the kernel is not positive definite",
        ),
    ):
        with pytest.raises(NotPositiveDefinite, match=message):
            KernelRidge(function, 0.1, **SOLVERS[solver]).fit(X, y)
    with pytest.raises(ValueError, match=r"must be symmetric, but K\[.*pass a function with"):
        KernelRidge(lambda X, Y: rbf_kernel(X[:, :1], Y[:, 1:2]), 0.1).fit(X, y)


@pytest.mark.parametrize("model", [KernelRidge(), KernelRidgeCV(), KernelRidge(centers=9)])
def test_targets_whose_squares_overflow_are_told(model):
    X, y, _ = data(40)
    with pytest.raises(ValueError, match="y is so large that its squares overflow; scale it"):
        model.fit(X, 1e160 * y)


def test_a_function_of_two_rows_is_told_what_it_gets():
    X, y, _ = data(60)
    with pytest.raises(TypeError) as told:
        KernelRidge(lambda a, b: float(a @ b.T)).fit(X, y)
    assert "must return one value for each pair of rows" in told.value.__notes__[0]


@pytest.mark.parametrize("n", [20, 1100])
def test_nothing_to_solve_leaves_the_mean(n):
    y = np.arange(float(n))
    with pytest.warns(ConvergenceWarning, match="larger alpha"):
        model = KernelRidge(LINEAR, 0.0, fit_intercept=True).fit(np.zeros((n, 3)), y)
    close(model.predict(np.zeros((2, 3))), np.full(2, y.mean()), "tight")


def test_a_factor_is_for_its_own_rows_and_alpha():
    X, y, _ = data(60)
    made = KernelRidge(GAUSSIAN, 0.1).fit(X, y).preconditioner_
    assert KernelRidge(GAUSSIAN, 0.1, preconditioner=made).fit(X, y).n_iter_ == 1
    with pytest.raises(ValueError, match="was made for 60 rows, but X has 50"):
        KernelRidge(GAUSSIAN, 0.1, preconditioner=made).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=r"was made for the alphas 0.1, but these are 0.2"):
        KernelRidge(GAUSSIAN, 0.2, preconditioner=made).fit(X, y)


@pytest.mark.parametrize("alpha", [1e-40, 1e10, 1e40, 1e200])
def test_factors_leave_single_precision_where_numbers_are_beyond_it(alpha):
    X, y, weight = data(1300)
    weight[1] = 1e-30
    K = GAUSSIAN(X[weight > 0])
    kernel = lambda A, B: alpha * GAUSSIAN(A, B)  # noqa: E731
    model = KernelRidge(kernel, alpha).fit(X, y, weight)
    assert model.converged_
    used = weight > 0
    wanted = np.linalg.solve(K + np.diag(1 / weight[used]), y[used])
    close(model.dual_coef_ * alpha, wanted, "solved")


def test_weights_whose_inverses_overflow_are_told():
    X, y, _ = data(60)
    weight = np.ones(60)
    weight[7] = 1e-320
    with pytest.raises(ValueError, match=r"sample_weight\[7\] = 1e-320 is too small"):
        KernelRidge().fit(X, y, weight)


@by_every_solver
def test_indefinite_kernels_are_refused(solver):
    X, y, _ = data(100)
    for K in (-rbf_kernel(X), rbf_kernel(X) - 0.9):
        with pytest.raises(NotPositiveDefinite, match="not positive definite"):
            KernelRidge("precomputed", 1e-3, **SOLVERS[solver]).fit(K, y)


def test_too_few_steps_are_told():
    X, y, _ = data(1500)
    model = KernelRidge(Gaussian(0.1), 1e-6, preconditioner=None, max_iter=5)
    with pytest.warns(ConvergenceWarning, match=r"may predict inaccurately.*larger max_iter"):
        model.fit(X, y)
    assert (model.converged_, model.n_iter_) == (False, 5)
    assert model.residual_ > model.tol


def test_targets_of_zero():
    X, y, _ = data(80)
    for options in SOLVERS.values():
        model = KernelRidge(GAUSSIAN, 0.1, **options).fit(X, np.zeros_like(y))
        assert model.converged_
        mean, std = model.predict(X, return_std=True)
        assert_array_equal(mean, 0)
        assert_array_equal(std, 0)


# ---- any kind of rows


def kinds():
    X = data(120)[0]
    X[X < 0] = 0
    locked = X.copy()
    locked.flags.writeable = False
    yield "list", X.tolist()
    yield "DataFrame", pd.DataFrame(X, columns=list("abc"))
    yield "fortran", np.asfortranarray(X)
    yield "read-only", locked
    yield "big-endian", X.astype(">f8")
    yield "csr_array", sp.csr_array(X)
    yield "csc_matrix", sp.csc_matrix(X)
    yield "batches", [(X[:50], None), (X[50:], None)]


@by_every_solver
@pytest.mark.parametrize("X", [pytest.param(X, id=kind) for kind, X in kinds()])
def test_every_kind_of_rows(X, solver):
    rows, (_, y, weight) = next(kinds())[1], data(120)
    model = clone(KernelRidge(GAUSSIAN, 0.1, **SOLVERS[solver]))
    wanted = clone(model).fit(rows, y, weight)
    if isinstance(X, list) and isinstance(X[0], tuple):
        model.fit([(X[0][0], y[:50], weight[:50]), (X[1][0], y[50:], weight[50:])])
        found = np.concatenate(list(model.predict([X[0][0], X[1][0]])))
        assert model.score([(X[0][0], y[:50]), (X[1][0], y[50:])]) == pytest.approx(
            wanted.score(rows, y)
        )
    else:
        model.fit(X, y, weight)
        found = model.predict(X)
    close(found, wanted.predict(np.asarray(rows)), "tight")
    if isinstance(X, pd.DataFrame):
        assert_array_equal(model.feature_names_in_, ["a", "b", "c"])


def test_a_batch_without_weights_counts_once():
    X, y, weight = data(100)
    model = KernelRidge(GAUSSIAN).fit([(X[:60], y[:60], weight[:60]), (X[60:], y[60:])])
    wanted = KernelRidge(GAUSSIAN).fit(X, y, np.append(weight[:60], np.ones(40)))
    assert_array_equal(model.predict(X), wanted.predict(X))


@pytest.mark.parametrize("n", [100, 1500])
def test_float32_rows(n):
    X, y, _ = data(n)
    model = KernelRidge(GAUSSIAN, 0.1, tol=1e-6, random_state=0)
    wanted = model.fit(X, y).predict(X)
    single = clone(model).fit(X.astype(np.float32), y.astype(np.float32))
    assert single.X_fit_.dtype == np.float32
    close(single.predict(X.astype(np.float32)), wanted, "single", np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 1500])
def test_the_kernel_of_float32_rows_is_double(n):
    X = data(n, dim=1)[0].astype(np.float32)
    y = np.random.default_rng(1).standard_normal(n)
    single = KernelRidge(GAUSSIAN, 1e-2, tol=1e-8, random_state=0).fit(X, y)
    double = clone(single).fit(X.astype(np.float64), y)
    A = GAUSSIAN(X) + 1e-2 * np.eye(n)
    assert np.linalg.norm(A @ single.dual_coef_ - y) <= 1.01e-8 * np.linalg.norm(y)
    for found, wanted in zip(
        single.predict(X[:9], return_std=True),
        double.predict(X[:9].astype(np.float64), return_std=True),
        strict=True,
    ):
        close(found, wanted, "tight")
    new = np.array([[0.5], [1.5]])
    draws = single.sample_y(new.astype(np.float32), 2)
    close(draws, double.sample_y(new, 2), "tight")


def test_memory_maps_and_files(tmp_path):
    X, y, _ = data(1500)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = KernelRidge(GAUSSIAN, 0.1, random_state=0)
    wanted = model.fit(X, y).predict(X)
    assert_array_equal(clone(model).fit(mapped, y).predict(mapped), wanted)
    np.save(tmp_path / "all.npy", np.column_stack([X, y]))
    source = gzkcore.open_batches(tmp_path / "all.npy", "3", batch_rows=400)
    found = clone(model).fit(source)
    assert_array_equal(found.predict(X), wanted)
    std = list(found.predict((X for X, _ in source), return_std=True))
    whole = found._for_workers(return_std=True).predict(X, return_std=True)[1]
    close(np.concatenate([part[1] for part in std]), whole)


@pytest.mark.slow
def test_dask():
    da = pytest.importorskip("dask.array")
    X, y, weight = data(1300)
    model = KernelRidge(GAUSSIAN, 0.1, random_state=0)
    wanted = model.fit(X, y, weight)
    rows, targets, weights = (da.from_array(each, chunks=300) for each in (X, y, weight))
    found = clone(model).fit(rows.rechunk((300, 3)), targets, weights)
    assert_array_equal(found.dual_coef_, wanted.dual_coef_)
    mean, std = found.predict(rows.rechunk((100, 3)), return_std=True)
    close(mean.compute(), wanted.predict(X))
    sampled = wanted._for_workers(return_std=True).predict(X, return_std=True)[1]
    close(std.compute(), sampled)
    assert found.score(rows.rechunk((300, 3)), targets) == pytest.approx(wanted.score(X, y))


def test_nothing_of_the_caller_is_written():
    X, y, weight = data(1300)
    given = [X, y, weight]
    before = [each.copy() for each in given]
    for each in given:
        each.flags.writeable = False
    model = KernelRidge(GAUSSIAN, 0.1, fit_intercept=True, random_state=0).fit(*given)
    model.predict(X, return_std=True)
    for each, copy in zip(given, before, strict=True):
        assert_array_equal(each, copy)


@pytest.mark.parametrize("n", [200, 1500])
def test_threads_agree(n):
    X, y, _ = data(n)
    found = []
    for threads in (1, 2, 5):
        with limit_threads(threads):
            model = KernelRidge(Matern(), 0.1, preconditioner="auto", random_state=0).fit(X, y)
            found.append(np.append(model.predict(X), model.predict(X[:9], return_std=True)[1]))
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def test_rows_on_the_sphere_only():
    X, y, _ = data(100)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    model = KernelRidge(SphereHeat(0.5), 0.1).fit(unit, y)
    for call in (lambda: model.predict(X), lambda: clone(model).fit(X, y)):
        with pytest.raises(ValueError, match="defined on the unit sphere"):
            call()


# ---- as an estimator


ONE_COLUMN = dict.fromkeys(
    ["check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_regressors_train"],
    "predictions have a column for each quantile, y has one",
)


@parametrize_with_checks([
    KernelRidge(), KernelRidge(fit_intercept=True), KernelRidge(**iterated(tol=1e-12, preconditioner=5)),
    KernelRidgeClassifier(), KernelRidgeClassifierCV(cv=3), KernelRidgeCV(cv=3, fit_intercept=True),
    gzkcore.KernelPoissonRegressor(), gzkcore.KernelHuberRegressor(), gzkcore.KernelLogisticRegression(),
    gzkcore.KernelQuantileRegressor(), gzkcore.KernelQuantileRegressor(quantile=[0.1, 0.9]),
], expected_failed_checks=lambda model: ONE_COLUMN if isinstance(getattr(model, "quantile", 0), list) else {})  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*is numerically")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_files_and_pickles(tmp_path):
    X, y, weight = data(400)
    model = KernelRidge(Matern(), 0.1, preconditioner=50, random_state=0).fit(X, y, weight)
    wanted = model.predict(X, return_std=True)
    model.save(tmp_path / "model.gzk")
    for other in (gzkcore.load(tmp_path / "model.gzk"), pickle.loads(pickle.dumps(model))):
        for found, each in zip(other.predict(X, return_std=True), wanted, strict=True):
            assert_array_equal(found, each)
        assert other.noise_variance_ == model.noise_variance_
        assert repr(other.preconditioner_) == repr(model.preconditioner_)
        assert_array_equal(other.sample_y(X[:5], 2), model.sample_y(X[:5], 2))


def test_a_kernel_that_is_a_function_is_refused_by_files(tmp_path):
    X, y, _ = data(50)
    model = KernelRidge(laplacian_kernel).fit(X, y)
    with pytest.raises(TypeError, match="save this model with skops"):
        model.save(tmp_path / "model.gzk")


def test_files_keep_features_that_precondition(tmp_path):
    X, y, _ = data(400)
    features = NystromFeatures(GAUSSIAN, 50, random_state=0)
    model = KernelRidge(GAUSSIAN, 0.1, preconditioner=features, random_state=0).fit(X, y)
    model.save(tmp_path / "model.gzk")
    other = gzkcore.load(tmp_path / "model.gzk")
    assert repr(other.preconditioner) == repr(features)
    for found, each in zip(
        other.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        assert_array_equal(found, each)
    features = NystromFeatures(laplacian_kernel, 50)
    model = KernelRidge(GAUSSIAN, 0.1, preconditioner=features).fit(X, y)
    with pytest.raises(TypeError, match="is a function, and a file"):
        model.save(tmp_path / "model.gzk")


def test_files_refuse_preconditioners_and_say_what_to_do(tmp_path):
    X, y, _ = data(200)
    made = KernelRidge(GAUSSIAN, 0.1, preconditioner=50, random_state=0).fit(X, y).preconditioner_
    model = KernelRidge(GAUSSIAN, 0.1, preconditioner=made).fit(X, y)
    with pytest.raises(TypeError, match=r"preconditioner=LowRank\(50 comp.* store it; fit"):
        model.save(tmp_path / "model.gzk")
    assert not list(tmp_path.iterdir())
    wanted = model.predict(X)
    model.set_params(preconditioner="auto").save(tmp_path / "model.gzk")
    assert_array_equal(gzkcore.load(tmp_path / "model.gzk").predict(X), wanted)


# ---- columns by name

FRAME = pd.DataFrame(data()[0], columns=["x", "y", "z"])
NAMED = [(["z", "x"], Gaussian(0.5)), ("y", Gaussian(1.0))]
NUMBERED = [([2, 0], Gaussian(0.5)), (1, Gaussian(1.0))]
NESTED = [(["z", "x"], Sum([("x", GAUSSIAN), ("z", GAUSSIAN)])), ("y", GAUSSIAN)]
NESTED_NUMBERED = [([2, 0], Sum([(1, GAUSSIAN), (0, GAUSSIAN)])), (1, GAUSSIAN)]


@pytest.mark.parametrize("centers", [None, 50], ids=["whole", "centres"])
@pytest.mark.parametrize("batches", [False, True], ids=["frame", "batches"])
@pytest.mark.parametrize(("named", "numbered"), [
    (Sum(NAMED, [1.0, 2.0]), Sum(NUMBERED, [1.0, 2.0])),
    (Product(NAMED), Product(NUMBERED)),
    (Product(NESTED), Product(NESTED_NUMBERED)),
], ids=["sum", "product", "nested"])  # fmt: skip
def test_columns_by_name(named, numbered, batches, centers):
    _, y, weight = data()
    options = {"alpha": 0.1, "centers": centers, "random_state": 0}
    given = FRAME, y, weight
    if batches:
        given = ([(FRAME[:200], y[:200], weight[:200]), (FRAME[200:], y[200:], weight[200:])],)
    found = KernelRidge(named, **options).fit(*given)
    wanted = KernelRidge(numbered, **options).fit(*given)
    assert_array_equal(found.predict(FRAME), wanted.predict(FRAME))
    assert repr(found.kernel_) == repr(wanted.kernel_)


def test_columns_by_name_in_searches_and_features():
    _, y, _ = data()
    search = KernelRidgeCV(kernel_grid={"kernel0__gamma": [0.01, 0.5]}, random_state=0)
    found = clone(search).set_params(kernel=Product(NAMED)).fit(FRAME, y)
    wanted = clone(search).set_params(kernel=Product(NUMBERED)).fit(FRAME, y)
    assert found.best_params_ == wanted.best_params_
    maps = [NystromFeatures(Sum(parts), 50, random_state=0) for parts in (NAMED, NUMBERED)]
    assert_array_equal(*(features.fit_transform(FRAME) for features in maps))
    models = [RandomFeatureRidge(features, 0.1).fit(FRAME, y) for features in maps]
    assert_array_equal(*(model.predict(FRAME) for model in models))
    with pytest.raises(ValueError, match="names column 'z', but X has no column names"):
        KernelRidge(Sum(NAMED)).fit(FRAME.to_numpy(), y)


def test_parameters_of_the_kernel_can_be_searched():
    X, y, _ = data(200)
    search = GridSearchCV(KernelRidge(alpha=0.1), {"kernel__gamma": [0.01, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": 0.5}
    K = GAUSSIAN(X)
    search = GridSearchCV(KernelRidge("precomputed"), {"alpha": [0.1, 1e3]}, cv=3).fit(K, y)
    assert search.best_params_ == {"alpha": 0.1}


def test_interrupted_fits_change_nothing(monkeypatch):
    X, y, _ = data(1500)
    model = KernelRidge(GAUSSIAN, 0.1, random_state=0).fit(X, y)
    wanted = model.predict(X[:9])

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gzkcore.solve.system.Solver", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(X[:9]), wanted)


def test_callbacks_hear_of_every_product():
    pytest.importorskip("sklearn.callback")
    X, y, _ = data(1500)
    diary, model = Diary(), KernelRidge(GAUSSIAN, 0.1, preconditioner=20, random_state=0)
    wanted = clone(model).fit(X, y)
    model.set_callbacks(diary).fit(X, y)
    begun = [entry for entry in diary.entries if entry.startswith("begin")]
    assert begun == ["begin fit"] + model.n_iter_ * ["begin product"]
    assert_array_equal(model.dual_coef_, wanted.dual_coef_)


def test_a_fit_tells_of_every_step():
    """Of the residual, for the command; and what listens is not a part of the model."""
    X, y, _ = data(1500)
    told, model = [], KernelRidge(GAUSSIAN, 0.1, preconditioner=20, random_state=0)
    model._listener = told.append
    model.fit(X, y)
    assert [each.n_steps for each in told] == list(range(1, model.n_iter_ + 1))
    assert told[0].residual > model.tol >= told[-1].residual
    assert pickle.loads(pickle.dumps(model))._listener is None


KILLED = """
import os, signal, sys
import numpy as np
from gzkcore import Checkpoint, KernelRidge, Matern
from gzkcore._util import model_io

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (3000, 2))
y = np.sin(9 * X[:, 0])
written = [0]
save = model_io.save

def save_and_die(*args):
    save(*args)
    written[0] += 1
    if written[0] == 3 and "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)

model_io.save = save_and_die
model = KernelRidge(Matern(), 1e-3, preconditioner=20, tol=1e-6, random_state=0)
model.fit(X, y, checkpoint=Checkpoint(sys.argv[1], seconds=1e-9))
np.save(sys.argv[2], model.dual_coef_)
print(written[0])
"""


@pytest.mark.weekly
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path):
    path = tmp_path / "run.gzk"

    def run(*args):
        return subprocess.run(
            [sys.executable, "-c", KILLED, *map(str, args)],
            cwd=tmp_path, env=os.environ, check=False, capture_output=True, text=True,
        )  # fmt: skip

    whole = run(tmp_path / "other.gzk", tmp_path / "whole.npy")
    assert whole.returncode == 0, whole.stderr
    killed = run(path, tmp_path / "nothing.npy", "die")
    assert killed.returncode == -signal.SIGKILL
    assert path.exists()
    resumed = run(path, tmp_path / "resumed.npy")
    assert resumed.returncode == 0, resumed.stderr
    assert int(resumed.stdout) < int(whole.stdout)
    assert not path.exists()
    assert_array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))


def test_checkpoints_of_other_data_are_refused(tmp_path):
    X, y, _ = data(1500)
    path = tmp_path / "run.gzk"
    gzkcore.save(GAUSSIAN, path)
    with pytest.raises(ValueError, match="cannot resume"):
        KernelRidge(GAUSSIAN, random_state=0).fit(X, y, checkpoint=Checkpoint(path))


# ---- bad input

X40, Y40, _ = data(40, 2)


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"alpha": -1.0}, ValueError, "alpha=-1.0 must be finite and >= 0"),
    ({"alpha": "big"}, TypeError, "alpha='big' is not numeric"),
    ({"alpha": [1.0, 2.0, 3.0]}, ValueError, r"alpha has shape \(3,\), but y has 2 target"),
    ({"tol": 0.0}, ValueError, "tol=0.0 is not usable"),
    ({"tol": 1.0, "fit_intercept": True}, ValueError, "tol=1.0 is not usable.* < 1"),
    ({"fit_intercept": "no"}, TypeError, "fit_intercept='no' is not a bool"),
    ({"random_state": "a"}, TypeError, "random_state='a' cannot seed"),
    ({"tol": 2, "centers": 5}, ValueError, "tol=2 is not usable"),
    ({"max_iter": 0}, ValueError, "max_iter=0 is too small"),
    ({"kernel": "gauss"}, ValueError, "kernel='gauss' is unknown"),
    ({"kernel": "precomputed"}, ValueError, "takes the square matrix"),
    ({"preconditioner": "best"}, (TypeError, ValueError), "best"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        KernelRidge(**parameters).fit(X40, Y40)


def test_a_precomputed_matrix_must_be_symmetric():
    """What rounding leaves of the symmetry is taken; a matrix of other rows is not."""
    X, y = np.random.default_rng(0).standard_normal((600, 3)), np.ones(600)
    K = Gaussian(0.5)(X)
    noise = 1e-6 * np.random.default_rng(1).standard_normal(K.shape)
    KernelRidge("precomputed", 1.0).fit(K + noise, y)
    wrong = K.copy()
    wrong[500, 3] += 0.25
    message = r"X\[500, 3\]=.* and X\[3, 500\]=.* differ by 0.25; pass k\(X, X\)"
    with pytest.raises(ValueError, match=message):
        KernelRidge("precomputed", 1.0).fit(wrong, y)
    with pytest.raises(ValueError, match="must be symmetric"):
        KernelRidge("precomputed", 1.0).fit(Gaussian(0.5)(X, X[::-1] + 1.0), y)


def test_one_target_has_one_alpha():
    with pytest.raises(ValueError, match=r"alpha=\[0.1\] has shape \(1,\), .* is one target"):
        KernelRidge(alpha=[0.1]).fit(X40, Y40[:, 0])


@pytest.mark.parametrize("n", [100, 2500])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_kernels_that_are_not_finite_are_named(n, wrong):
    X, y, _ = data(n)
    for kernel, name in (
        (lambda X, Y: np.where(X[:, :1] > 0, wrong, rbf_kernel(X, Y)), "FunctionKernel"),
        (Polynomial(300, gamma=1e3), r"Polynomial\("),
    ):
        with pytest.raises(ValueError, match=f"kernel={name}.* gives numbers that are not finite"):
            KernelRidge(kernel, 0.1).fit(X, y)


@pytest.mark.slow
@by_every_solver
def test_what_was_fitted_counts(solver, tmp_path):
    X, y, _ = data(150)
    model = KernelRidge(GAUSSIAN, 0.1, fit_intercept=True, **{"random_state": 0} | SOLVERS[solver])
    model.fit(X, y)

    def tells(model):
        few, many = (model.predict(X[:k], return_std=True)[1] for k in (10, 100))
        return [few, many, model.sample_y(X[:10], 2), model.noise_variance_]

    wanted = tells(clone(model).fit(X, y))
    model.set_params(alpha=7.0, kernel="matern", random_state=5, fit_intercept=False, tol=0.5)
    model.save(tmp_path / "model.gzk")
    for other in (model, pickle.loads(pickle.dumps(model)), gzkcore.load(tmp_path / "model.gzk")):
        for found, each in zip(tells(other), wanted, strict=True):
            assert_array_equal(found, each)


@pytest.mark.slow
@pytest.mark.parametrize("centers", [None, 100])
def test_a_fit_that_ran_out_of_steps_goes_on(tmp_path, centers):
    X, y, _ = data(1500)
    path = tmp_path / "run.gzk"
    options = {"alpha": 1e-4, "tol": 1e-9, "centers": centers, "random_state": 0}
    options |= {} if centers else {"preconditioner": 512}
    model = KernelRidge(GAUSSIAN, max_iter=3, **options)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y, checkpoint=path)
    assert path.exists()
    assert model.n_iter_ == 3
    more = clone(model).set_params(max_iter=1000).fit(X, y, checkpoint=path)
    assert more.converged_
    assert not path.exists()
    whole = KernelRidge(GAUSSIAN, **options).fit(X, y)
    assert 3 < more.n_iter_ <= whole.n_iter_ + 3
    close(more.predict(X), whole.predict(X), "tight")


@pytest.mark.parametrize(("X", "y", "message"), [
    (np.where(np.arange(40)[:, None] == 7, np.nan, X40), Y40, "X contains NaN.*row 7"),
    (X40, np.where(np.arange(40) == 3, np.inf, 1.0), "y contains infinity.*row 3"),
    (X40, Y40[:39], "X has 40 rows, but y has 39"),
    (X40, None, "requires y"),
    ([["a", "b"]] * 40, Y40, "has the text 'a' in column 0; pass numbers"),
    ([["a" * 999]] * 40, Y40, "has the text 'a{36}.a{23}' in column 0; pass numbers"),
])  # fmt: skip
def test_bad_rows(X, y, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge().fit(X, y)


def test_bad_new_rows_and_weights():
    model = KernelRidge().fit(X40, Y40)
    with pytest.raises(ValueError, match=r"NaN.*row 1, column 0"):
        model.predict(np.where(np.arange(40)[:, None] == 1, np.nan, X40))
    with pytest.raises(ValueError, match="X has 2 features, but KernelRidge is expecting 3"):
        model.predict(X40[:, :2])
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.fit(X40, Y40, np.zeros(40))
    with pytest.raises(ValueError, match="n_samples=0 is too small"):
        KernelRidge().fit(X40, Y40).sample_y(X40, 0)


def test_sparse_rows_that_are_too_many_when_dense_are_told():
    wide = sp.csr_array((40, 10**11))
    with pytest.raises(MemoryError, match=r"X is sparse.* GB; use fewer|GB of memory; use fewer"):
        KernelRidge().fit(wide, Y40)


@pytest.mark.slow
def test_small_fits_hold_the_matrix_and_large_ones_do_not():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (HELD_ROWS + 1, 2))
    small = KernelRidge(ArcCosine(1)).fit(X[:-1], X[:-1, 0])
    assert repr(small.preconditioner_) == "the whole matrix of 4,096 rows"
    large = KernelRidge(Matern(), random_state=0).fit(X, X[:, 0])
    assert "whole" not in repr(large.preconditioner_)
    assert large.preconditioner_.nbytes < 8 * len(X) ** 2


# ---- what users of a first version ran into


def test_large_precomputed_kernels(monkeypatch):
    monkeypatch.setattr(system_module, "HELD_ROWS", 500)
    X, y, _ = data(576)
    wanted = KernelRidge(GAUSSIAN, 0.1, tol=1e-8, random_state=0).fit(X, y).predict(X)
    K = GAUSSIAN(X)
    for preconditioner in ("auto", 100, None):
        model = KernelRidge(
            "precomputed", 0.1, tol=1e-8, preconditioner=preconditioner, random_state=0
        )
        assert_allclose(model.fit(K, y).predict(K), wanted, atol=1e-6)


def test_draws_of_several_targets_are_independent():
    X, y, _ = data(100)
    model = KernelRidge(GAUSSIAN, 0.1, random_state=0).fit(X, np.column_stack([y, -y, y**2]))
    draws = model.sample_y(X[:1] + 3, 2000)
    correlations = np.corrcoef(draws[0]) - np.eye(3)
    assert np.abs(correlations).max() < 0.1


def test_the_rows_of_a_model_are_its_own():
    X, y, _ = data(50)
    model, before = KernelRidge(GAUSSIAN, 0.1).fit(X, y), X.copy()
    wanted = model.predict(before)
    X[:] = 0
    assert_array_equal(model.predict(before), wanted)


def test_a_search_chooses_alpha_beside_a_trend():
    X, y, _ = data(200)
    y = y + 30 * X[:, 0]
    model = KernelRidgeCV(GAUSSIAN, [1e-2, 1e-1], trend=[0], random_state=0).fit(X, y)
    alone = KernelRidge(GAUSSIAN, model.alpha_, trend=[0]).fit(X, y)
    assert_array_equal(model.predict(X), alone.predict(X))
    assert model.trend_coef_[0] > 20
    assert_array_equal(model.trend_coef_[1:], 0.0)
    with pytest.raises(ValueError, match=r"trend=\[0\].*trend='constant'"):
        KernelRidgeCV("precomputed", trend=[0]).fit(GAUSSIAN(X), y)


def test_fitted_rows_are_sorted_once(monkeypatch):
    """Predictions of few rows after the first take a fifth of the time, and are the same."""
    rng = np.random.default_rng(0)
    X, new = 1e6 + rng.standard_normal((5000, 5)), 1e6 + rng.standard_normal((7, 5))
    model = KernelRidge(Gaussian(0.1), alpha=0.1, random_state=0).fit(X, X[:, 0] - 1e6)
    expected = model.kernel_(new, X) @ model.dual_coef_
    first = model.predict(new)
    assert_allclose(first, expected, rtol=1e-9)
    sizes = []
    sort = TiledRows.of
    monkeypatch.setattr(
        TiledRows, "of", lambda X, *given, **how: sizes.append(len(X)) or sort(X, *given, **how)
    )
    assert_array_equal(model.predict(new), first)
    assert sizes == [7]
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(new), first)
    model.fit(X[:4500], X[:4500, 0] - 1e6)
    expected = model.kernel_(new, X[:4500]) @ model.dual_coef_
    assert_allclose(model.predict(new), expected, rtol=1e-9)


def test_the_residual_of_tiny_targets_is_that_of_their_multiples():
    """Squares of 1e-160 are 0, so that any solution would seem to be exact."""
    X = np.random.default_rng(0).standard_normal((100, 3))
    y = np.sin(X[:, 0])
    small, large = (KernelRidge(Gaussian(0.2), 1e-3).fit(X, scale * y) for scale in (1e-160, 1.0))
    np.testing.assert_allclose(small.predict(X), 1e-160 * large.predict(X), rtol=1e-9)
    assert 0 < small.residual_ < 1e-12
