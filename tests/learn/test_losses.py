"""Losses other than squares, with the whole kernel: as the reference, as scikit-learn, or told."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn.metrics import d2_tweedie_score, log_loss
from sklearn.model_selection import GridSearchCV
from tolerances import LOSSES

import gzkcore
from gzkcore import (
    DotProduct,
    Gaussian,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    Matern,
    NystromFeatures,
    RandomFeatureRidge,
    reference,
)
from gzkcore.solve.losses import Huber, Logistic, Pinball, Poisson, Softmax
from gzkcore.solve.newton import minimise
from gzkcore.solve.preconditioners import preconditioner_for
from gzkcore.solve.solve import NotPositiveDefinite
from gzkcore.solve.system import Equations, system_of

LINEAR = DotProduct([0.0, 1.0])
GAUSSIAN = Gaussian(0.5)
MODELS = {
    "poisson": KernelPoissonRegressor,
    "huber": KernelHuberRegressor,
    "quantile": functools.partial(KernelQuantileRegressor, quantile=0.8),
    "logistic": KernelLogisticRegression,
    "softmax": KernelLogisticRegression,
}
SOLVERS = {
    "factored": {},
    "iterated": {"preconditioner": 32, "random_state": 0},
    "diagonal": {"preconditioner": None},
}
every = pytest.mark.parametrize("name", MODELS)


def data(name, n=60, seed=0, dim=3):
    """Rows, targets and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    f = 1.5 * np.sin(X @ np.linspace(1, -1, dim)) + 0.5
    noise = rng.standard_normal(n)
    y = {
        "poisson": rng.poisson(np.exp(f)),
        "huber": f + 0.1 * noise + 30 * (rng.random(n) < 0.1),
        "quantile": f + np.abs(X[:, 0]) * noise,
        "logistic": np.array(["no", "yes"])[(f + noise > 0).astype(int)],
        "softmax": np.array(["c", "a", "b"])[np.digitize(f + 0.3 * noise, [-0.2, 1.2])],
    }[name]
    weight = rng.uniform(0.2, 2, n)
    weight[::7] = 0
    return X, y, weight


def values(model, X):
    """Return f, or what stands for it."""
    return getattr(model, "decision_function", model.predict)(X)


def close(found, wanted, what="dense", dtype=np.float64):
    wanted = np.asarray(wanted)
    atol = LOSSES[what](dtype) * max(np.abs(wanted).max(), 1e-300)
    assert_allclose(found, wanted, rtol=0, atol=atol)


# ---- the losses themselves

LOSS_PAIRS = {
    "poisson": (Poisson(), reference.losses.poisson),
    "huber": (Huber(1.5, 0.4), lambda y, f: reference.losses.huber(y, f, 0.6)),
    "logistic": (Logistic(), reference.losses.logistic),
    "pinball": (Pinball(0.8, 0.3), lambda y, f: reference.losses.smoothed_pinball(y, f, 0.8, 0.3)),
}


@pytest.mark.parametrize("name", LOSS_PAIRS)
def test_losses_are_those_of_the_reference(name):
    ours, formula = LOSS_PAIRS[name]
    rng = np.random.default_rng(0)
    f = np.concatenate([4 * rng.standard_normal((50, 1)), [[0.0], [-30.0]]])
    y = {
        "poisson": rng.integers(0, 5, f.shape).astype(float),
        "logistic": rng.choice([-1.0, 1.0], f.shape),
    }.get(name, 3 * rng.standard_normal(f.shape))
    for i in range(len(f)):
        value, slope, curvature = formula(float(y[i, 0]), float(f[i, 0]))
        row = y[i : i + 1], f[i : i + 1]
        dual = -ours.gradient(*row)
        atol = LOSSES["row"]() * (1 + value + abs(f[i, 0]) * (1 + abs(y[i, 0])))
        assert_allclose(ours.values(*row), value, rtol=0, atol=atol)
        assert_allclose(ours.gradient(*row), [[slope]], rtol=0, atol=atol)
        assert_allclose(ours.curvature(*row, dual), [[curvature]], rtol=1e-9, atol=atol)


def test_softmax_is_that_of_the_reference():
    rng = np.random.default_rng(0)
    f = 3 * rng.standard_normal((20, 4))
    places = rng.integers(0, 4, 20)
    y = 2.0 * (places[:, None] == np.arange(4)) - 1
    p = Softmax().curvature(y, f, y)
    for i in range(20):
        value, slope, curvature = reference.losses.softmax(places[i], f[i].tolist())
        assert_allclose(Softmax().values(y, f)[i], value, atol=LOSSES["row"]() * np.abs(f).max())
        assert_allclose(Softmax().gradient(y, f)[i], slope, rtol=0, atol=LOSSES["row"]())
        found = np.diag(p[i]) - np.outer(p[i], p[i])
        assert_allclose(found, curvature, rtol=0, atol=LOSSES["row"]())


@pytest.mark.parametrize("loss", [Poisson(), Huber(1.0), Logistic(), Pinball(0.3, 0.5), Softmax()])
def test_slopes_and_curvatures_are_differences(loss):
    rng = np.random.default_rng(0)
    k = 3 if loss.coupled else 1
    f = rng.standard_normal((40, k))
    y = rng.choice([-1.0, 1.0], (40, 1))
    if loss.coupled:
        y = 2.0 * (rng.integers(0, 3, (40, 1)) == np.arange(3)) - 1
    if isinstance(loss, Poisson):
        y = np.abs(y)
    step = 1e-5 * np.eye(k)[0]
    slopes = (loss.values(y, f + step) - loss.values(y, f - step)) / 2e-5
    close(loss.gradient(y, f)[:, 0], slopes, "slope")
    away = np.abs(np.abs(y - f)[:, 0] - 1) > 1e-3  # from the corner of Huber's slope
    curved = (loss.gradient(y, f + step) - loss.gradient(y, f - step))[:, 0] / 2e-5
    h = loss.curvature(y, f, -loss.gradient(y, f))[:, 0]
    close((h * (1 - h) if loss.coupled else h)[away], curved[away], "slope")


@pytest.mark.parametrize("epsilon", [1.0, 1.35, 3.0, 1e6])
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_scale_solves_its_equation(epsilon, penalty):
    rng = np.random.default_rng(0)
    r, w = rng.standard_cauchy(101), rng.uniform(0, 2, 101)
    scale = gzkcore.solve.losses.huber_scale(r, epsilon, penalty, w)
    right = w @ np.minimum(r**2, (epsilon * scale) ** 2) + penalty
    assert_allclose(scale**2 * w.sum(), right, rtol=1e-12)


# ---- coefficients


def formula_of(model):
    """Return the loss of a fitted model in the reference."""
    losses = reference.losses
    if isinstance(model, KernelHuberRegressor):
        return lambda y, f: losses.huber(y, f, model.epsilon * model.scale_)
    if isinstance(model, KernelQuantileRegressor):
        return lambda y, f: losses.smoothed_pinball(y, f, model.quantile, model.smoothing_)
    if isinstance(model, KernelPoissonRegressor):
        return losses.poisson
    return losses.logistic if len(model.classes_) == 2 else losses.softmax


@pytest.mark.slow
@every
@pytest.mark.parametrize(("solver", "weighted", "fit_intercept"), [
    ("factored", False, False), ("factored", True, False), ("factored", False, True),
    ("factored", True, True), ("iterated", True, True), ("diagonal", False, False),
])  # fmt: skip
def test_coefficients_as_the_reference(name, solver, weighted, fit_intercept):
    """As `loss_minimum` has them; the weights of 0 are not there."""
    X, y, weight = data(name, 40)
    tol = 1e-3 if name == "quantile" else 1e-9
    model = MODELS[name](GAUSSIAN, 0.3, fit_intercept=fit_intercept, tol=tol, **SOLVERS[solver])
    model.fit(X, y, weight if weighted else None)
    kept = weight > 0 if weighted else slice(None)
    targets = y[kept]
    if name in ("logistic", "softmax"):
        targets = np.searchsorted(model.classes_, targets)
        targets = 2 * targets - 1 if name == "logistic" else targets
    K = GAUSSIAN(X[kept])
    coef, intercept = reference.losses.loss_minimum(
        K, targets.tolist(), 0.3, formula_of(model), weight[kept] if weighted else None,
        fit_intercept,
    )  # fmt: skip
    what = "dense" if solver == "factored" else "iterated"
    wanted = GAUSSIAN(X, X[kept]) @ coef + intercept
    if name == "quantile":  # it stops at 1e-3 of the smoothed objective
        assert_allclose(values(model, X), wanted, atol=5e-3)
    else:
        close(model.dual_coef_, coef, what)
        close(values(model, X), np.exp(wanted) if name == "poisson" else wanted, what)
    assert model.converged_
    assert model.residual_ <= tol


def test_the_scale_of_residuals_is_that_of_the_reference():
    X, y, weight = data("huber")
    model = KernelHuberRegressor(GAUSSIAN, 0.3, tol=1e-9).fit(X, y, weight)
    kept = weight > 0
    smooth = GAUSSIAN(X[kept]) @ model.dual_coef_
    wanted = reference.losses.huber_scale(
        y[kept] - smooth - model.intercept_, 1.35, 0.3 * model.dual_coef_ @ smooth, weight[kept]
    )
    close(model.scale_, wanted, "dense")


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no", "intercept"])
@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_the_pinball_loss_is_least_but_for_tol(quantile, tol, fit_intercept):
    """By the dual problem, whose value is never above the primal one; nothing is smoothed here."""
    X, y, weight = data("quantile", 100)
    weight += 0.1
    model = KernelQuantileRegressor(
        GAUSSIAN, 0.2, quantile=quantile, tol=tol, fit_intercept=fit_intercept
    ).fit(X, y, weight)
    K, f = GAUSSIAN(X), model.predict(X)
    losses = [reference.losses.pinball(a, b, quantile)[0] for a, b in zip(y, f, strict=True)]
    primal = weight @ losses + 0.1 * model.dual_coef_ @ K @ model.dual_coef_
    a = np.clip(0.2 * model.dual_coef_, (quantile - 1) * weight, quantile * weight)
    if fit_intercept:  # a sum of 0, and still between the slopes
        room = np.where(a.sum() > 0, a - (quantile - 1) * weight, quantile * weight - a)
        a -= a.sum() * room / room.sum()
    dual = a @ y - a @ K @ a / 0.4
    assert 0 <= primal - dual <= 2 * tol * primal


def test_as_scipy_finds_it():
    X, y, _ = data("poisson", 30)
    K = GAUSSIAN(X)

    def objective(c):
        f = K @ c
        return np.sum(np.exp(f) - y * f) + 0.15 * c @ f

    def gradient(c):
        return K @ (np.exp(K @ c) - y + 0.3 * c)

    def hessian(c):
        return K @ (np.exp(K @ c)[:, None] * K) + 0.3 * K

    wanted = minimize(
        objective, np.zeros(30), jac=gradient, hess=hessian, method="trust-exact",
        options={"gtol": 1e-12},
    ).x  # fmt: skip
    model = KernelPoissonRegressor(GAUSSIAN, 0.3, fit_intercept=False, tol=1e-9).fit(X, y)
    close(np.log(model.predict(X)), K @ wanted)


@pytest.mark.slow
@every
def test_the_objective_never_rises(name):
    X, y, _ = data(name, 100)
    if name in ("logistic", "softmax"):
        classes, places = np.unique(y, return_inverse=True)
        y = 2.0 * (places[:, None] == np.arange(len(classes))) - 1
        y = y[:, 1:] if len(classes) == 2 else y
    loss = {
        "poisson": Poisson(), "huber": Huber(1.35), "quantile": Pinball(0.8),
        "logistic": Logistic(), "softmax": Softmax(),
    }[name]  # fmt: skip
    for preconditioner in ("auto", 64):
        equations = Equations(
            GAUSSIAN, X, np.array([0.1]), preconditioner=preconditioner, random_state=0
        )
        found = minimise(system_of(equations), loss, y.reshape(len(y), -1).astype(float), tol=1e-6)
        assert found.converged
        assert found.n_iter == len(found.objective)
        for before, after in found.objective:
            assert after <= before + 1e-12 * abs(before)


# ---- as scikit-learn's with a linear kernel


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_linear_kernels_are_scikit_learns(weighted):
    for name in ("poisson", "logistic", "softmax"):
        X, y, weight = data(name, 200)
        weight = weight if weighted else np.ones(200)
        theirs = PoissonRegressor(alpha=2.0 / weight.sum(), tol=1e-10, max_iter=1000)
        if name != "poisson":
            theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000)
        theirs.fit(X, y, weight)
        ours = MODELS[name](LINEAR, 2.0, tol=1e-8).fit(X, y, weight)
        if name == "softmax":  # a constant in each row is free
            wanted = theirs.decision_function(X)
            close(ours.decision_function(X), wanted - wanted.mean(axis=1, keepdims=True), "others")
            close(ours.predict_proba(X), theirs.predict_proba(X), "others")
        else:
            close(values(ours, X), values(theirs, X), "others")
            close(ours.intercept_, theirs.intercept_, "others")


def test_a_linear_huber_regression_is_scikit_learns():
    """With a penalty of nearly 0 the two scales are one; else alpha is theirs times the scale."""
    X, y, _ = data("huber", 300)
    y = 2 * X[:, 0] - X[:, 1] + y
    theirs = HuberRegressor(alpha=1e-9, tol=1e-9, max_iter=1000).fit(X, y)
    ours = KernelHuberRegressor(LINEAR, 1e-9, tol=1e-8).fit(X, y)
    close(ours.predict(X), theirs.predict(X), "others")
    close(ours.scale_, theirs.scale_, "others")


@pytest.mark.parametrize("quantile", [0.1, 0.5])
def test_a_linear_quantile_regression_is_scikit_learns(quantile):
    X, y, _ = data("quantile", 101)
    theirs = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    ours = KernelQuantileRegressor(LINEAR, 1e-7, quantile=quantile, tol=1e-7).fit(X, y)
    close(ours.predict(X), theirs.predict(X), "others")


def test_a_large_epsilon_is_kernel_ridge():
    X, y, _ = data("huber")
    ridge = KernelRidge(GAUSSIAN, 0.3).fit(X, y)
    ours = KernelHuberRegressor(GAUSSIAN, 0.3, epsilon=1e6, fit_intercept=False).fit(X, y)
    close(ours.predict(X), ridge.predict(X))
    close(ours.scale_**2, ridge.noise_variance_)


def test_huber_regression_has_the_unit_of_y():
    X, y, _ = data("huber")
    model = KernelHuberRegressor(GAUSSIAN, 0.3, tol=1e-8)
    wanted = model.fit(X, y).predict(X)
    close(model.fit(X, 1e9 * y).predict(X), 1e9 * wanted)
    close(model.fit(X, y + 1e6).predict(X), wanted + 1e6, "iterated")


# ---- what it is for


def test_outliers_change_little():
    X, y, _ = data("huber", 300)
    clean = np.abs(y) < 10
    wanted = KernelHuberRegressor(GAUSSIAN, 0.1).fit(X[clean], y[clean]).predict(X)
    for outlier in (1e3, 1e12, -1e12):
        spoilt = np.where(clean, y, outlier)
        found = KernelHuberRegressor(GAUSSIAN, 0.1).fit(X, spoilt)
        assert found.converged_
        assert np.abs(found.predict(X) - wanted).mean() < 0.15


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.95])
def test_a_share_of_targets_is_below_the_quantile(quantile):
    X, y, weight = data("quantile", 400)
    model = KernelQuantileRegressor(GAUSSIAN, 1.0, quantile=quantile, tol=1e-5).fit(X, y, weight)
    f = model.predict(X)
    met = weight[np.abs(y - f) < 1e-2].sum() / weight.sum()
    assert abs(weight[y < f].sum() / weight.sum() - quantile) <= met + 1e-3


def test_probabilities():
    for name in ("logistic", "softmax"):
        X, y, _ = data(name, 300)
        model = KernelLogisticRegression(GAUSSIAN, 1.0).fit(X, y)
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1)
        assert_allclose(np.exp(model.predict_log_proba(X)), p)
        assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        shares = [np.mean(y == label) for label in model.classes_]
        assert_allclose(p.mean(axis=0), shares, atol=1e-4)  # the intercepts see to it
        assert log_loss(y, p) < log_loss(y, np.tile(shares, (300, 1)))


def test_the_score_of_counts_is_the_deviance_explained():
    X, y, weight = data("poisson", 100)
    model = KernelPoissonRegressor(GAUSSIAN, 1.0).fit(X, y)
    wanted = d2_tweedie_score(y, model.predict(X), sample_weight=weight, power=1)
    assert_allclose(model.score(X, y, weight), wanted)
    batches = [(X[:30], y[:30], weight[:30]), (X[30:], y[30:], weight[30:])]
    assert_allclose(model.score(batches), wanted)
    assert KernelPoissonRegressor().fit(X, np.full(100, 3)).score(X, np.full(100, 3)) == 1
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.score(X, y, np.zeros(len(y)))


# ---- difficult data: converged, or it says so


def fit(model, *args):
    """Return a fitted model; it has converged, or a warning says that it has not."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(*args)
    about = [str(each.message) for each in told if issubclass(each.category, ConvergenceWarning)]
    assert len(about) == (not model.converged_), about
    assert all("may predict inaccurately" in text and "residual" in text for text in about)
    return model


@every
@pytest.mark.parametrize(("alpha", "solver"), [
    (1e-10, "factored"), (1e-4, "factored"), (1e6, "factored"), (1e-2, "diagonal"),
    (1e6, "diagonal"),
])  # fmt: skip
def test_any_alpha(name, alpha, solver):
    X, y, _ = data(name, 50)
    model = fit(MODELS[name](GAUSSIAN, alpha, **SOLVERS[solver]), X, y)
    assert np.isfinite(values(model, X)).all()
    if alpha == 1e6:  # nothing but the constant
        assert model.converged_
        assert np.ptp(values(model, X), axis=0).max() < 1e-2


@every
def test_duplicates_with_different_targets(name):
    X, y, _ = data(name, 60)
    X = np.repeat(X[:12], 5, axis=0)
    for alpha in (1e-6, 1.0):
        model = fit(MODELS[name](GAUSSIAN, alpha), X, y)
        assert model.converged_
        found = values(model, X)
        assert_allclose(found, np.repeat(found[::5], 5, axis=0))


@pytest.mark.parametrize("alpha", [1e-8, 1.0])
def test_classes_that_are_apart(alpha):
    X, _, _ = data("logistic", 90)
    for y in (X[:, 0] > 0, np.digitize(X[:, 0], [-0.5, 0.5])):
        model = fit(KernelLogisticRegression(Gaussian(0.1), alpha), X, y)
        assert model.converged_
        assert model.score(X, y) > 0.9
        assert np.isfinite(model.predict_log_proba(X)).all()


def test_all_counts_zero(tmp_path):
    X, y = data("poisson")[0], np.zeros(60)
    model = fit(KernelPoissonRegressor(), X, y)
    assert model.converged_
    assert model.intercept_ == -np.inf
    assert_array_equal(model.predict(X), 0)
    model.save(tmp_path / "model.gzk")
    assert_array_equal(gzkcore.load(tmp_path / "model.gzk").predict(X), 0)
    assert fit(KernelPoissonRegressor(fit_intercept=False), X, y).predict(X).max() < 1
    y[0] = 1e12
    assert fit(KernelPoissonRegressor(alpha=1e-3), X, y).predict(X[:1])[0] > 0.5e12


@pytest.mark.parametrize("name", ["poisson", "huber", "quantile"])
def test_constant_targets_and_one_row(name):
    X, _, _ = data(name)
    for rows, target in ((X, 5.0), (X, 0.0), (X[:1], 5.0), (X, 1e12)):
        model = fit(MODELS[name](), rows, np.full(len(rows), target))
        assert model.converged_
        assert_allclose(model.predict(rows), target, rtol=1e-9, atol=1e-9)


def test_most_targets_equal():
    X, y, _ = data("huber")
    for share in (0.5, 0.9):
        flat = np.where(np.arange(60) < 60 * share, 2.0, y)
        assert fit(KernelHuberRegressor(GAUSSIAN, 0.1), X, flat).converged_
        assert fit(KernelQuantileRegressor(GAUSSIAN, 0.1), X, flat).converged_


def test_too_few_steps_are_told():
    X, y, _ = data("poisson")
    with pytest.warns(ConvergenceWarning, match=r"after 1 step.*use a larger max_iter"):
        model = KernelPoissonRegressor(max_iter=1).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 1


# ---- many rows


@pytest.mark.parametrize("name", ["poisson", "quantile", "softmax"])
@pytest.mark.weekly
def test_many_rows(name):
    X, y, _ = data(name, 1300, dim=2)
    alpha = 1.0
    held = MODELS[name]("precomputed", alpha, tol=1e-4).fit(GAUSSIAN(X), y)
    model = MODELS[name](GAUSSIAN, alpha, preconditioner=200, random_state=0, tol=1e-4).fit(X, y)
    assert model.converged_
    assert_allclose(values(model, X), values(held, GAUSSIAN(X)), rtol=0.02, atol=0.02)


def test_far_rows_are_left_out_of_systems():
    """Huber's outliers: a system of the other rows."""
    X, y, _ = data("huber", 600, dim=2)
    model = KernelHuberRegressor(GAUSSIAN, 1.0, preconditioner=100, random_state=0).fit(X, y)
    assert model.converged_
    out = np.abs(y - model.predict(X)) > 1.01 * 1.35 * model.scale_
    width = 1.35 * model.scale_
    assert out.sum() > 25
    assert_allclose(np.abs(model.dual_coef_[out]), width, rtol=5e-3)


# ---- as estimators


@every
def test_every_kind_of_rows(name):
    X, y, weight = data(name)
    X[X < 0] = 0
    model = MODELS[name](GAUSSIAN, 0.3)
    wanted = values(model.fit(X, y, weight), X)
    for rows in (X.tolist(), sp.csr_array(X), sp.csc_matrix(X), np.asfortranarray(X)):
        close(values(model.fit(rows, y.tolist(), weight.tolist()), rows), wanted)
    frame = pd.DataFrame(X, columns=list("abc"))
    close(values(model.fit(frame, pd.Series(y), weight), frame), wanted)
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    single = X.astype(np.float32)
    assert_allclose(values(model.fit(single, y, weight), single), wanted, rtol=1e-3, atol=1e-3)
    column = MODELS[name](GAUSSIAN, 0.3)
    with pytest.warns(UserWarning, match="column-vector"):
        close(values(column.fit(X, y[:, None], weight), X), wanted)
    batches = [(X[:20], y[:20], weight[:20]), (X[20:], y[20:], weight[20:])]
    close(values(model.fit(batches), X), wanted)
    found = values(model, [(X[:20], y[:20]), (X[20:], y[20:])])
    close(np.concatenate(list(found)), wanted)


@every
def test_precomputed_and_features(name):
    X, y, _ = data(name)
    wanted = values(MODELS[name](GAUSSIAN, 0.3, tol=1e-6).fit(X, y), X)
    K = GAUSSIAN(X)
    close(values(MODELS[name]("precomputed", 0.3, tol=1e-6).fit(K, y), K), wanted, "iterated")
    features = NystromFeatures(GAUSSIAN, 20, random_state=0)
    found = MODELS[name](GAUSSIAN, 0.3, tol=1e-6, preconditioner=features).fit(X, y)
    assert_allclose(values(found, X), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("learner", [
    KernelHuberRegressor, KernelLogisticRegression, KernelPoissonRegressor, KernelQuantileRegressor,
    KernelRidge, KernelRidgeClassifier, RandomFeatureRidge,
])  # fmt: skip
def test_weights_alone_are_routed(learner):
    assert [*learner().get_metadata_routing().fit.requests] == ["sample_weight"]


def test_a_grid_search():
    X, y, _ = data("quantile", 100)
    grid = {"alpha": [0.1, 1.0], "kernel__gamma": [0.5, 2.0]}
    found = GridSearchCV(KernelQuantileRegressor(Gaussian()), grid, cv=3).fit(X, y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


# ---- what is refused

X40, Y40, _ = data("poisson", 40)


@pytest.mark.parametrize(("model", "error", "message"), [
    (KernelPoissonRegressor(alpha=0.0), ValueError, "alpha=0.0 is not usable"),
    (KernelPoissonRegressor(alpha="1"), TypeError, "alpha='1' is not a number"),
    (KernelPoissonRegressor(tol=0), ValueError, "tol=0"),
    (KernelPoissonRegressor(max_iter=0), ValueError, "max_iter=0 is too small"),
    (KernelPoissonRegressor("gauss"), ValueError, "kernel='gauss' is unknown"),
    (KernelPoissonRegressor(fit_intercept=1), TypeError, "fit_intercept=1 is not a bool"),
    (KernelHuberRegressor(epsilon=0.9), ValueError, "epsilon=0.9 is too small"),
    (KernelHuberRegressor(epsilon=np.inf), ValueError, "epsilon=inf is not usable"),
    (KernelQuantileRegressor(quantile=1.0), ValueError, "quantile=1.0 is not usable"),
])  # fmt: skip
def test_bad_parameters(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(X40, Y40)


def test_bad_rows():
    model = KernelPoissonRegressor()
    with pytest.raises(ValueError, match=r"y\[3\] = -2 is negative, but Poisson .* KernelRidge"):
        model.fit(X40, np.where(np.arange(40) == 3, -2.0, 1.0))
    with pytest.raises(ValueError, match=r"X contains NaN.*row 7"):
        model.fit(np.where(np.arange(40)[:, None] == 7, np.nan, X40), Y40)
    with pytest.raises(ValueError, match=r"y contains infinity.*row 3"):
        model.fit(X40, np.where(np.arange(40) == 3, np.inf, 1.0))
    with pytest.raises(ValueError, match=r"y has shape \(40, 2\); pass one value"):
        model.fit(X40, np.column_stack([Y40, Y40]))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.fit(X40, Y40, np.zeros(40))
    for model in (KernelPoissonRegressor(), KernelHuberRegressor()):
        with pytest.raises(ValueError, match=r"y is at most 1e-170, .* underflow; scale"):
            model.fit(X40, np.full(40, 1e-170))
    made = preconditioner_for(8, GAUSSIAN, X40, [1.0], random_state=0)
    with pytest.raises(TypeError, match="was made for fixed weights of the rows"):
        KernelPoissonRegressor(preconditioner=made).fit(X40, Y40)


LEARN = Matern(1.5, length_scale="learn")


@pytest.mark.parametrize("model", [
    KernelPoissonRegressor(LEARN),
    KernelHuberRegressor(LEARN),
    KernelQuantileRegressor(LEARN, quantile=[0.1, 0.9]),
    KernelRidge(LEARN, fit_intercept=True),
    RandomFeatureRidge(NystromFeatures(LEARN, 20)),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_constant_targets_teach_a_kernel_nothing(model):
    with pytest.warns(UserWarning, match=r"constant on the 40 rows .* lengthscales are") as caught:
        model.fit(X40, np.full(40, 4.0))
    assert len(caught) == 1
    assert_allclose(model.predict(X40[:3]), 4.0, rtol=1e-9)


def test_one_class():
    with pytest.raises(ValueError, match="one class"):
        KernelLogisticRegression().fit(X40, np.zeros(40))
    for classes in (2, 3):
        y = np.arange(40) % classes
        with pytest.raises(ValueError, match="class 1 has no row of positive weight"):
            KernelLogisticRegression().fit(X40, y, (y != 1).astype(float))


def never_one(a, b):
    """A function that is no kernel."""
    return (a[:, :1] == b[:, 0]) - 0.01


@pytest.mark.parametrize("name", ["poisson", "huber", "logistic"])
def test_functions_that_are_no_kernels_are_told(name):
    X, y, _ = data(name, 200)
    model = MODELS[name](never_one, alpha=0.01, preconditioner=None, fit_intercept=False)
    with pytest.raises(NotPositiveDefinite, match="the kernel is not positive definite on these"):
        model.fit(X, y)


@pytest.mark.parametrize("level", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("n", [3, 50, 100])
def test_the_deviance_of_constant_targets(level, n):
    X, y = np.random.default_rng(0).standard_normal((n, 2)), np.full(n, level)
    assert KernelPoissonRegressor(Gaussian(1.0), 0.1).fit(X, y).score(X, y) == 1.0


def test_the_deviance_of_large_targets_that_hardly_vary():
    X = np.linspace(-1, 1, 80)[:, None]
    y = 1e12 * np.exp(1e-6 * np.sin(3 * X[:, 0]))
    model = KernelPoissonRegressor(Gaussian(1.0), 1.0).fit(X, y)
    mean = model.predict(X)
    for targets in (y, y[::-1]):
        away = [(targets - m) / m for m in (mean, targets.mean())]
        # y log(1 + a) - m a, by its series: the mean is as far as 1e-6, and a^4 is nothing
        ours, constant = (
            (m * (a**2 / 2 - a**3 / 6)).sum()
            for m, a in zip((mean, targets.mean()), away, strict=True)
        )
        assert model.score(X, targets) == pytest.approx(1 - ours / constant, abs=1e-4)


@pytest.mark.parametrize(("shift", "noise"), [(5.3e6, 1e-5), (1.7e9, 1e-3)])
def test_the_scale_of_residuals_is_that_of_targets_near_zero(shift, noise):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 1))
    y = noise * (rng.standard_normal(100) + 20 * np.sin(3 * X[:, 0]))
    near, far = (
        KernelHuberRegressor(Gaussian(1.0), 0.1).fit(X, targets).scale_
        for targets in (y, shift + y)
    )
    assert far == pytest.approx(near, rel=0.02)


def test_a_class_of_next_to_no_weight():
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 2
    heavy = np.where(y, 1e20, 1.0)
    model = KernelLogisticRegression(Gaussian(1.0), 1.0).fit(X, y, heavy)
    other = KernelLogisticRegression(Gaussian(1.0), 1.0).fit(X, 1 - y, heavy)
    assert np.isfinite(model.intercept_).all()
    assert_allclose(model.intercept_, -np.asarray(other.intercept_), rtol=1e-6)


@every
def test_only_alpha_over_the_weights_matters(name):
    X, y, _ = data(name, 60)
    model = MODELS[name](alpha=0.1).fit(X, y, np.ones(60))
    small = MODELS[name](alpha=0.1 * 2.0**-530).fit(X, y, np.full(60, 2.0**-530))
    assert_array_equal(small.dual_coef_, model.dual_coef_)


@pytest.mark.slow
def test_hardly_any_penalty_is_no_fault_of_a_preconditioner():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (120, 2))
    y = np.digitize(np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(120), [-0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelLogisticRegression(Gaussian(1.0), 1e-12).fit(X, y)
    assert model.score(X, y) > 0.8
