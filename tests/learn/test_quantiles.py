"""Several quantiles in one fit: as fits of their own, in fewer steps, and never crossing."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score
from sklearn.model_selection import GridSearchCV
from tolerances import LOSSES

import gzkcore
from gzkcore import Gaussian, KernelQuantileRegressor

KERNEL = Gaussian(0.5)
QUANTILES = [0.9, 0.05, 0.5, 0.75]


def data(n=80, seed=0):
    """Rows, targets whose spread depends on the place, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.sin(2 * X[:, 0]) + (0.2 + np.abs(X[:, 1])) * rng.standard_normal(n)
    weight = rng.uniform(0.2, 2, n)
    weight[::7] = 0
    return X, y, weight


def crossing():
    """Rows whose functions cross: few, and a small alpha."""
    X, y, _ = data(40)
    return KernelQuantileRegressor(KERNEL, 0.01, quantile=[0.5, 0.3, 0.7]).fit(X, y), X, y


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["no", "intercept"])
@pytest.mark.parametrize(
    ("solver", "weighted"),
    [({}, False), ({}, True), ({"preconditioner": 32, "random_state": 0}, True)],
    ids=["factored", "factored, weighted", "iterated, weighted"],
)
def test_as_fits_of_their_own(solver, fit_intercept, weighted):
    X, y, weight = data()
    weight = weight if weighted else None
    given = {"fit_intercept": fit_intercept, "tol": 1e-6, **solver}
    model = KernelQuantileRegressor(KERNEL, 0.3, quantile=QUANTILES, **given).fit(X, y, weight)
    apart = [
        KernelQuantileRegressor(KERNEL, 0.3, quantile=q, **given).fit(X, y, weight)
        for q in QUANTILES
    ]
    f = np.column_stack([each.predict(X) for each in apart])
    found = model.predict(X)
    assert found.shape == (80, 4)
    assert_allclose(np.sort(found, axis=1), np.sort(f, axis=1), rtol=0, atol=1e-4)
    assert_allclose(model.intercept_, [each.intercept_ for each in apart], rtol=0, atol=1e-4)
    assert model.converged_.all()
    assert (model.residual_ <= 1e-6).all()
    assert_allclose(model.smoothing_, [each.smoothing_ for each in apart], rtol=0.9)


def test_the_path_of_the_others_is_shorter():
    X, y, _ = data(200)
    model = KernelQuantileRegressor(KERNEL, 0.3, quantile=[0.05, 0.5, 0.95]).fit(X, y)
    alone = [
        KernelQuantileRegressor(KERNEL, 0.3, quantile=q).fit(X, y).n_iter_ for q in (0.05, 0.95)
    ]
    assert model.n_iter_[[0, 2]].sum() <= 0.8 * sum(alone)


def test_columns_are_in_the_order_given_and_do_not_cross():
    model, X, _ = crossing()
    f = KERNEL(X) @ model.dual_coef_ + model.intercept_
    assert (f[:, 1] > f[:, 0]).any()
    assert (f[:, 0] > f[:, 2]).any()
    assert_allclose(model.predict(X), np.sort(f, axis=1)[:, [1, 0, 2]])


def test_sorting_makes_no_loss_larger():
    model, X, y = crossing()
    f = KERNEL(X) @ model.dual_coef_ + model.intercept_

    def loss(values):
        r = y[:, None] - values
        return np.maximum(model.quantile_ * r, (model.quantile_ - 1) * r).sum()

    assert loss(model.predict(X)) < loss(f)


def test_shapes():
    X, y, _ = data()
    number = KernelQuantileRegressor(KERNEL, 0.3, quantile=0.3).fit(X, y)
    one = KernelQuantileRegressor(KERNEL, 0.3, quantile=[0.3]).fit(X, y)
    assert number.predict(X).shape == (80,)
    assert number.dual_coef_.shape == (80,)
    assert type(number.n_iter_) is int
    assert number.quantile_ == 0.3
    assert_array_equal(one.predict(X), number.predict(X)[:, None])
    assert one.score(X, y) == number.score(X, y)
    assert one.intercept_.shape == one.n_iter_.shape == one.converged_.shape == (1,)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_files_and_parameters(kind, tmp_path):
    X, y, _ = data()
    model = KernelQuantileRegressor(KERNEL, 0.3, quantile=kind([0.9, 0.1]))
    assert model.get_params()["quantile"] is model.quantile
    assert repr(clone(model)) == repr(model)
    wanted = model.fit(X, y).predict(X)
    model.save(tmp_path / "model.gzk")
    for other in (gzkcore.load(tmp_path / "model.gzk"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict(X), wanted)
        assert other.score(X, y) == model.score(X, y)
        assert vars(other).keys() == vars(model).keys()
    model.set_params(quantile=0.5)
    assert_array_equal(model.predict(X), wanted)


def test_batches():
    X, y, weight = data()
    model = KernelQuantileRegressor(KERNEL, 0.3, quantile=QUANTILES).fit(X, y, weight)
    batches = [(X[:30], y[:30], weight[:30]), (X[30:], y[30:], weight[30:])]
    found = clone(model).fit(batches)
    atol = LOSSES["iterated"]()
    assert_allclose(found.predict(X), model.predict(X), rtol=0, atol=atol)
    parts = list(model.predict([(X[:30], y[:30]), (X[30:], y[30:])]))
    assert_allclose(np.concatenate(parts), model.predict(X))
    assert_allclose(model.score(batches), model.score(X, y, weight))


def test_the_score_is_the_share_of_the_loss_explained():
    X, y, _ = data(81)  # so many that percentiles are values, between which others interpolate
    quantiles = [0.25, 0.5, 0.9]
    model = KernelQuantileRegressor(KERNEL, 0.3, quantile=quantiles).fit(X, y)
    f = model.predict(X)
    wanted = [d2_pinball_score(y, each, alpha=q) for each, q in zip(f.T, quantiles, strict=True)]
    assert_allclose(model.score(X, y), np.mean(wanted), rtol=1e-12)
    doubled = model.score(np.vstack([X, X[:9]]), np.append(y, y[:9]))
    assert_allclose(model.score(X, y, np.where(np.arange(81) < 9, 2.0, 1.0)), doubled)
    median = KernelQuantileRegressor(KERNEL, 0.3).fit(X, y)
    assert_allclose(median.score(X, y), d2_pinball_score(y, median.predict(X)))


def test_the_score_of_constant_targets():
    X, _, _ = data(20)
    model = KernelQuantileRegressor(KERNEL, quantile=[0.2, 0.8]).fit(X, np.full(20, 5.0))
    assert_array_equal(model.predict(X), np.full((20, 2), 5.0))
    assert model.score(X, np.full(20, 5.0)) == 1
    assert model.score(X, np.full(20, 6.0)) == 0
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.score(X, np.full(20, 6.0), np.zeros(20))


def test_steps_that_are_too_few_are_told_of_each():
    X, y, _ = data()
    model = KernelQuantileRegressor(KERNEL, 0.3, quantile=[0.05, 0.5], max_iter=2)
    with pytest.warns(ConvergenceWarning, match="quantile=0.05: tol.*quantile=0.5: tol"):
        model.fit(X, y)
    assert_array_equal(model.converged_, [False, False])


def test_a_grid_search():
    X, y, _ = data()
    model = KernelQuantileRegressor(KERNEL, quantile=[0.1, 0.9])
    found = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(("quantile", "error", "message"), [
    ([], ValueError, r"quantile=\[\] must be a number > 0 and < 1, or a list"),
    ([[0.1, 0.9]], ValueError, "must be a number > 0 and < 1, or a list"),
    (np.array(0.5), ValueError, "must be a number > 0 and < 1, or a list"),
    ([0.5, 0.0], ValueError, r"quantile\[1\]=0.0 is not usable"),
    ([1, 0.5], ValueError, r"quantile\[0\]=1 is not usable"),
    ([0.5, np.nan], ValueError, r"quantile\[1\]=nan is not usable"),
    (np.nan, ValueError, "quantile=nan is not usable"),
    ([0.5, 0.1, 0.5], ValueError, "has a value twice"),
    ("median", TypeError, "quantile='median' is not a number"),
    (["0.5"], TypeError, r"quantile\[0\]='0.5' is not a number"),
    ([None, 0.5], TypeError, r"quantile\[0\]=None is not a number"),
    ({0.5}, TypeError, "is not a number"),
])  # fmt: skip
def test_bad_quantiles(quantile, error, message):
    X, y, _ = data(20)
    with pytest.raises(error, match=message):
        KernelQuantileRegressor(quantile=quantile).fit(X, y)


def test_the_score_of_targets_far_from_zero():
    """Seconds since 1970, with milliseconds: no rounding of the loss."""
    X, y, *_ = data(150)
    far = 1.7e9 + 1e-3 * y
    model = KernelQuantileRegressor(Gaussian(1.0), 100.0, quantile=0.5).fit(X, far)
    for targets in (far, far[::-1]):
        expected = d2_pinball_score(targets, model.predict(X), alpha=0.5)
        assert model.score(X, targets) == pytest.approx(expected, abs=1e-6)
