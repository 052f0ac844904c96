"""Rows added to fits with the whole kernel, and left out: what a fit to the rows that remain is."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import gzkcore
from gzkcore import (
    Gaussian,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Matern,
    Sum,
    kernel_matrix,
)
from gzkcore._util.linalg import cholesky, eigh
from gzkcore.solve import preconditioners
from gzkcore.solve import system as system_module
from gzkcore.solve.changed_rows import Grown
from gzkcore.solve.preconditioner import Preconditioner
from gzkcore.solve.preconditioners import preconditioner_for

TOL = 1e-10
KERNEL = Matern(1.5, 0.5)
SCALES = Sum([(slice(None), Matern(1.5, 0.2)), (slice(None), Gaussian(0.5))])


def data(n, dim=2, n_targets=2):
    rng = np.random.default_rng(n + dim)
    X = rng.uniform(-1, 1, (n, dim))
    y = (
        np.sin(3 * X[:, :1] + np.arange(n_targets))
        + X[:, 1:2]
        + 0.3 * rng.standard_normal((n, n_targets))
    )
    return X, y, rng.uniform(0.5, 2, n)


def made(alpha, **parameters):
    return KernelRidge(KERNEL, alpha, tol=TOL, random_state=0, **parameters)


@pytest.fixture
def _few_held(monkeypatch):
    """Let systems of few rows be solved in steps, as those of many are."""
    monkeypatch.setattr(system_module, "HELD_ROWS", 200)


@pytest.fixture
def _few_far(monkeypatch):
    """Let 600 rows have landmarks and neighbours, as more than 2,000 have."""
    monkeypatch.setattr(preconditioners, "ROWS_OF_FEATURES", 600)
    monkeypatch.setattr(KernelRidge, "_near_from", 600)


def check_same(found, wanted, weight, deviation=True):
    """Compare with another fit to the same rows: coefficients differ by |A^-1| times residuals."""
    assert_array_equal(found.X_fit_, wanted.X_fit_)
    assert np.all(found.converged_)
    alphas, largest = found._alphas, 1.0 if weight is None else weight.max()
    size = np.linalg.norm(found._y)
    assert_allclose(
        found.dual_coef_, wanted.dual_coef_, rtol=0, atol=8 * TOL * size * largest / alphas.min()
    )
    for name in ("intercept_", "trend_coef_", "noise_variance_"):
        if hasattr(wanted, name):
            assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-6, atol=1e-7)
    new, _, _ = data(70, wanted.X_fit_.shape[1])
    if deviation:
        for mine, other in zip(
            found.predict(new, return_std=True), wanted.predict(new, return_std=True), strict=True
        ):
            assert_allclose(mine, other, rtol=1e-6, atol=1e-6)


def true_residual(model, y, weight):
    """Return |y - H b - (K + alpha N) c| / |y - H b| of each target, by dense matrices."""
    X = model.X_fit_
    rest = y.reshape(len(y), -1) - np.ravel(model.intercept_)
    if hasattr(model, "trend_coef_"):
        rest = rest - X @ model.trend_coef_.reshape(X.shape[1], -1)
    c = model.dual_coef_.reshape(len(X), -1)
    left = rest - kernel_matrix(KERNEL, X) @ c - c * model._alphas / weight[:, None]
    return np.linalg.norm(left, axis=0) / np.linalg.norm(rest, axis=0)


CASES = {
    "one": (1, 0.1, {}),
    "alphas": (2, [0.1, 0.01], {}),
    "intercept": (2, [0.1, 0.01], {"fit_intercept": True}),
    "linear": (1, 0.1, {"trend": "linear"}),
    "along": (2, 0.1, {"trend": [1]}),
}


@pytest.mark.usefixtures("_few_held")
def test_a_column_that_was_constant_gets_a_slope():
    X, y, _ = data(260)
    X[:220, 1], y = 0.3, y[:, 0] + 3 * X[:, 0] - 2 * X[:, 1]
    model = made(0.1, trend="linear").fit(X[:220], y[:220])
    assert model.trend_coef_[1] == 0
    check_same(model.update(X[220:], y[220:]), made(0.1, trend="linear").fit(X, y), None)
    model.forget(np.arange(220, 260))
    check_same(model, made(0.1, trend="linear").fit(X[:220], y[:220]), None)


@pytest.mark.usefixtures("_few_held", "_few_far")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [(120, 20), (230, 20), (180, 40), (700, 30)])
@pytest.mark.parametrize("case", CASES)
def test_update_is_a_fit_to_all_and_forget_one_to_the_rest(case, size, weighted):
    n_targets, alpha, parameters = CASES[case]
    n, m = size
    X, y, weight = data(n + m, n_targets=n_targets)
    y = y[:, 0] if n_targets == 1 else y
    w = weight if weighted else None
    some = lambda rows: None if w is None else w[rows]  # noqa: E731
    old, new = slice(n), slice(n, None)
    model = made(alpha, **parameters).fit(X[old], y[old], some(old))
    assert model.update(X[new], y[new], some(new)) is model
    check_same(model, made(alpha, **parameters).fit(X, y, w), w)
    ones = np.ones(n + m) if w is None else w
    assert_allclose(true_residual(model, y, ones), np.ravel(model.residual_), atol=TOL / 10)
    assert np.max(model.residual_) <= TOL
    gone = np.random.default_rng(0).choice(n + m, m, replace=False)
    kept = np.setdiff1d(np.arange(n + m), gone)
    model.forget(gone)
    check_same(
        model, made(alpha, **parameters).fit(X[kept], y[kept], some(kept)), w, deviation=n < 600
    )
    assert_allclose(
        true_residual(model, y[kept], ones[kept]), np.ravel(model.residual_), atol=TOL / 10
    )


@pytest.mark.usefixtures("_few_held")
@pytest.mark.parametrize("dim", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_it_is_what_it_was_after_an_update_and_forgetting_the_same_rows(dim):
    X, y, _ = data(2300, dim)
    before, model = (
        made([0.1, 0.02], fit_intercept=True).fit(X[:2200], y[:2200]) for _ in range(2)
    )
    steps = before.n_iter_.max()
    for start in range(2200, 2300, 50):
        model.update(X[start : start + 50], y[start : start + 50])
        assert model.n_iter_.max() <= steps
    assert "100 rows added, 0 left out" in repr(model.preconditioner_)
    mask = np.arange(2300) >= 2200
    model.forget(mask)
    assert model.n_iter_.max() <= steps
    check_same(model, before, None, deviation=False)
    model.forget(np.arange(0, 2200, 25))
    assert "0 rows added, 88 left out" in repr(model.preconditioner_)
    assert model.n_iter_.max() <= 1.5 * steps
    model.update(X[2200:], y[2200:])
    assert "100 rows added, 88 left out" in repr(model.preconditioner_)
    assert model.n_iter_.max() <= 1.5 * steps
    kept = np.append(np.setdiff1d(np.arange(2200), np.arange(0, 2200, 25)), np.arange(2200, 2300))
    check_same(
        model, made([0.1, 0.02], fit_intercept=True).fit(X[kept], y[kept]), None, deviation=False
    )
    model.forget(np.arange(200))  # more than a tenth
    assert "left out" not in repr(model.preconditioner_)
    check_same(
        model,
        made([0.1, 0.02], fit_intercept=True).fit(X[kept[200:]], y[kept[200:]]),
        None,
        deviation=False,
    )


@pytest.mark.slow
def test_sums_in_linear_time():
    """On the sphere, at the tol of most fits: the start is the old solution."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_500, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = np.sin(5 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(len(X))
    model = KernelRidge(Matern(1.5, 0.1), 0.1, fit_intercept=True, random_state=0)
    fitted = model.fit(X[:20_000], y[:20_000])
    assert fitted._posterior.system.in_linear_time
    steps = fitted.n_iter_
    model.update(X[20_000:], y[20_000:])
    assert model.n_iter_ < steps
    rest = y - model.intercept_
    left = (
        rest
        - gzkcore.KernelOperator(Matern(1.5, 0.1), X, tol=0) @ model.dual_coef_
        - 0.1 * model.dual_coef_
    )
    assert np.linalg.norm(left) <= 1.05e-3 * np.linalg.norm(rest)  # sums may be off by tol / 32


class Inverse(Preconditioner):
    def __init__(self, A):
        self.inverse = np.linalg.inv(A)

    def solve(self, R, columns):
        return self.inverse @ R


@pytest.mark.parametrize("kernel", [KERNEL, SCALES], ids=["one", "two scales"])
def test_an_exact_preconditioner_stays_exact(kernel):
    """With all rows for neighbours, P^-1 = diag(P^-1, 0) + G^T G is the inverse."""
    X, _, noise = data(130)
    A = kernel_matrix(kernel, X) + 0.1 * np.diag(noise)
    grown = Grown(Inverse(A[:90, :90]), X[:90], noise[:90], np.array([0.1]))
    for n in (95, 99):
        grown = grown.changed(kernel, X[:n], noise[:n], np.arange(grown.n_rows))
    columns = np.zeros(99, dtype=np.intp)
    assert_allclose(
        grown.solve(A[:99, :99], columns), np.eye(99), atol=1e-4
    )  # G is in single precision
    assert "9 rows added, 0 left out" in repr(grown)


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "kernel"), [(2, KERNEL), (5, KERNEL), (2, SCALES)])
def test_a_preconditioner_without_rows_is_near_that_of_the_others(dim, kernel):
    """So near as that of all rows is to theirs: the spectrum of P^-1 A is as narrow."""
    X, _, _ = data(2300, dim)
    A = kernel_matrix(kernel, X) + 0.01 * np.eye(len(X))
    whole = preconditioner_for("auto", kernel, X, [0.01], random_state=0)
    kept = np.setdiff1d(np.arange(2300), np.random.default_rng(0).choice(2300, 150, replace=False))
    grown = Grown(whole, X, np.ones(len(X)), np.array([0.01])).changed(
        kernel, X[kept], np.ones(kept.size), kept
    )
    conditions = []
    for P, part in ((whole, A), (grown, A[np.ix_(kept, kept)])):
        root = cholesky(part)
        eigenvalues = eigh(
            root.T @ P.solve(root, np.zeros(len(part), dtype=np.intp)), eigvals_only=True
        )
        conditions.append(eigenvalues[-1] / eigenvalues[0])
    assert conditions[1] < 1.5 * conditions[0]


def test_parameters_stay_as_they_were_fitted():
    X, y, _ = data(300)
    wanted = made(0.1, trend="linear").fit(X, y)
    model = made(0.1, trend="linear").fit(X[:250], y[:250])
    model.set_params(kernel="gaussian", alpha=5.0, trend=None, tol=0.5, max_iter=1, centers=3)
    check_same(model.update(X[250:], y[250:]), wanted, None)
    assert model.get_params()["alpha"] == 5.0


@pytest.mark.usefixtures("_few_held")
def test_slopes_that_rows_no_longer_tell_are_those_of_a_fit():
    """A column that is constant in the rows that are left has no slope, and one that varies has."""
    X, y, _ = data(300)
    X[:260, 1] = 0.5
    model = made(0.1, trend="linear").fit(X, y)
    assert np.abs(model.trend_coef_[1]).max() > 0.1
    wanted = made(0.1, trend="linear").fit(X[:260], y[:260])
    check_same(model.forget(np.arange(260, 300)), wanted, None)
    assert_array_equal(model.trend_coef_[1], 0)
    model.update(X[260:], y[260:])
    check_same(model, made(0.1, trend="linear").fit(X, y), None)


def test_the_kernel_keeps_its_lengths():
    X, y, _ = data(300)
    model = KernelRidge("gaussian", 0.1).fit(X[:200], y[:200])
    kernel = model.kernel_
    model.update(10 * X[200:], y[200:])
    wanted = KernelRidge(kernel, 0.1).fit(np.vstack([X[:200], 10 * X[200:]]), y)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-8)
    assert model.kernel_ is kernel


def test_the_search_and_classifiers():
    X, y, weight = data(300)
    search = KernelRidgeCV(KERNEL, [0.01, 0.1], tol=TOL, random_state=0).fit(X[:250], y[:250])
    alpha = search.alpha_
    check_same(search.update(X[250:], y[250:]), made(alpha).fit(X, y), None)
    labels = np.where(y[:, 0] > 0.2, "up", np.where(y[:, 1] > 0, "no", "down"))
    weights = {"up": 2.0, "no": 1.0, "down": 0.5}
    classifier = KernelRidgeClassifier(KERNEL, 0.1, tol=TOL, class_weight=weights)
    wanted = KernelRidgeClassifier(KERNEL, 0.1, tol=TOL, class_weight=weights).fit(
        X, labels, weight
    )
    classifier.fit(X[:250], labels[:250], weight[:250]).set_params(class_weight=None)
    classifier.update(X[250:], labels[250:], weight[250:])
    assert_allclose(classifier.dual_coef_, wanted.dual_coef_, atol=1e-7)
    assert classifier.class_weight is None
    with pytest.raises(ValueError, match=r"left.* is not one of the classes.*; fit again"):
        classifier.update(X[:1], ["left"])


def test_balanced_classes_keep_the_weights_of_the_fit():
    """They count the rows of the fit, and no others."""
    X, y, _ = data(300)
    labels = np.where(y[:, 0] > 0.8, "rare", "usual")
    counts = {name: np.count_nonzero(labels[:250] == name) for name in ("rare", "usual")}
    weights = {name: 250 / (2 * count) for name, count in counts.items()}
    model = KernelRidgeClassifier(KERNEL, 0.1, tol=TOL, class_weight="balanced")
    model.fit(X[:250], labels[:250]).update(X[250:], labels[250:])
    wanted = KernelRidgeClassifier(KERNEL, 0.1, tol=TOL, class_weight=weights).fit(X, labels)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-7)


@pytest.mark.parametrize("form", ["float32", "csr", "int", "frame"])
def test_forms_of_rows(form):
    X, y, _ = data(300)
    X = np.round(9 * X) if form == "int" else X
    turn = {
        "float32": np.float32,
        "csr": sp.csr_array,
        "int": lambda X: X.astype(int),
        "frame": lambda X: pd.DataFrame(X, columns=["a", "b"]),
    }[form]
    model = made(0.1).fit(turn(X[:250]), y[:250])
    wanted = made(0.1).fit(turn(X), y)
    given, targets = turn(X[250:]), y[250:].copy()
    model.update(given, targets)
    assert model.X_fit_.dtype == wanted.X_fit_.dtype
    assert sp.issparse(model.X_fit_) == (form == "csr")
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-7)
    model.forget([0, 299])
    assert model.X_fit_.shape == (298, 2)
    coef = model.dual_coef_.copy()
    targets[:] = np.nan  # a copy is kept
    assert_array_equal(model.forget([]).dual_coef_, coef)
    assert_allclose(model.forget([1]).converged_, True)


def test_rows_of_weight_zero_are_not_there():
    X, y, weight = data(300)
    weight[[3, 260]] = 0
    model = made(0.1).fit(X[:250], y[:250], weight[:250]).update(X[250:], y[250:], weight[250:])
    assert model.X_fit_.shape[0] == 298
    check_same(model, made(0.1).fit(X, y, weight), weight)
    unweighted = made(0.1).fit(X[:250], y[:250]).update(X[250:], y[250:], weight[250:])
    weight[:250] = 1
    check_same(unweighted, made(0.1).fit(X, y, weight), weight)


@pytest.mark.usefixtures("_few_held", "_few_far")
def test_pickles_and_files_can_be_updated(tmp_path):
    X, y, weight = data(730)
    wanted = made(0.1, fit_intercept=True).fit(X, y, weight)
    model = made(0.1, fit_intercept=True).fit(X[:700], y[:700], weight[:700])
    model.save(tmp_path / "model.gzk")
    for copied in (pickle.loads(pickle.dumps(model)), gzkcore.load(tmp_path / "model.gzk")):
        copied.update(X[700:], y[700:], weight[700:])
        check_same(copied, wanted, weight, deviation=False)
        assert "added" not in repr(copied.preconditioner_)
    old = gzkcore.load(tmp_path / "model.gzk")
    del old._y
    with pytest.raises(
        ValueError,
        match="update needs the targets, which a file of an older version lacks; fit again",
    ):
        old.update(X, y)


@pytest.mark.usefixtures("_few_held", "_few_far")
@pytest.mark.parametrize("change", ["update", "forget"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_changes_nothing(monkeypatch, change, error):
    X, y, _ = data(730)
    model = made(0.1, fit_intercept=True).fit(X[:700], y[:700])
    before = {name: pickle.dumps(value) for name, value in vars(model).items()}
    system, P = model._posterior.system, model.preconditioner_
    X0, y0 = X.copy(), y.copy()

    def stop(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(system_module, "trend_inverse", stop)
        with pytest.raises(error):
            model.update(X[700:], y[700:]) if change == "update" else model.forget(np.arange(40))
    assert {name: pickle.dumps(vars(model)[name]) for name in before} == before
    assert model._posterior.system is system
    assert model.preconditioner_ is P
    model.update(X[700:], y[700:])
    assert_array_equal(X, X0)
    assert_array_equal(y, y0)
    check_same(model, made(0.1, fit_intercept=True).fit(X, y), None, deviation=False)


@pytest.mark.usefixtures("_few_held")
def test_it_warns_where_steps_run_out_and_can_go_on():
    X, y, _ = data(2250)
    few = KernelRidge(KERNEL, 1e-4, tol=TOL, max_iter=2, preconditioner=None)
    with pytest.warns(ConvergenceWarning, match="needs more steps"):
        few.fit(X[:2200], y[:2200])
    with pytest.warns(ConvergenceWarning, match="needs more steps"):
        few.update(X[2200:], y[2200:])
    assert not np.any(few.converged_)


def test_errors():
    X, y, _ = data(60)
    model = made(0.1)
    with pytest.raises(NotFittedError, match="not fitted"):
        model.update(X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        model.forget([0])
    model.fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features, but KernelRidge is expecting 2"):
        model.update(X[:, :1], y)
    with pytest.raises(ValueError, match=r"y has shape \(60,\), but .* before has \(n, 2\); pass"):
        model.update(X, y[:, 0])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.update(np.where(X[5] == X, np.nan, X), y)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.update(X, np.where(y == y[5], np.nan, y))
    with pytest.raises(TypeError, match="update takes rows in arrays, but X is a list"):
        model.update([(X, y)], None)
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.update(X, y, np.zeros(60))
    with pytest.raises(ValueError, match="rows has 60, but X_fit_ has the rows 0 to 59"):
        model.forget([1, 60])
    with pytest.raises(ValueError, match="rows has -1, but"):
        model.forget([-1])
    with pytest.raises(ValueError, match="rows has 4 twice"):
        model.forget([4, 5, 4])
    with pytest.raises(ValueError, match="rows are all 60 rows of X_fit_"):
        model.forget(np.ones(60, dtype=bool))
    with pytest.raises(TypeError, match=r"rows has dtype bool and shape \(3,\)"):
        model.forget([True, False, True])
    with pytest.raises(TypeError, match="rows has dtype float64"):
        model.forget([1.0])
    K = kernel_matrix(KERNEL, X)
    with pytest.raises(ValueError, match="kernel='precomputed' has no rows for update"):
        KernelRidge("precomputed").fit(K, y).update(K, y)
    with pytest.raises(ValueError, match="forget is for the whole kernel, but there are centers="):
        KernelRidge(Gaussian(1.0), centers=9).fit(X, y).forget([0])
    P = preconditioner_for(None, KERNEL, X, [0.1])
    with pytest.raises(ValueError, match="is for the rows of fit; for update fit with 'auto'"):
        made(0.1, preconditioner=P).fit(X, y).update(X, y)
