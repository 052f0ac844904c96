"""`KernelRidge(centers=...)`: the kernel at some centres."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import gzkcore as gzk
from gzkcore import Gaussian, KernelRidge, KernelRidgeClassifier, Matern, Zonal, reference


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(600)


def test_all_rows_as_centres_are_the_whole_kernel(data):
    X, y = data
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    parameters = {"kernel": Matern(1.5, 0.5), "alpha": 0.1, "tol": 1e-8}
    whole = KernelRidge(**parameters).fit(X, y, weight)
    some = KernelRidge(**parameters, centers=X).fit(X, y, weight)
    np.testing.assert_allclose(some.predict(X), whole.predict(X), atol=1e-5)
    assert some.converged_
    assert some.n_iter_ >= 1


def test_rules_see_all_rows(data):
    X, y = data
    parameters = {"alpha": 0.01, "tol": 1e-8, "random_state": 0}
    model = KernelRidge("gaussian", centers=50, **parameters).fit(X, y)
    assert model.kernel_.gamma == Gaussian().resolve(X).gamma
    assert model.X_fit_.shape == (50, 2)
    batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]
    streamed = KernelRidge("gaussian", centers=model.X_fit_, **parameters).fit(batches)
    assert streamed.kernel_.gamma == pytest.approx(model.kernel_.gamma)
    np.testing.assert_allclose(streamed.predict(X), model.predict(X), atol=1e-5)


@pytest.mark.parametrize("kind", ["csr", "float32", "several"])
def test_kinds_of_rows(data, kind):
    X, y = data
    model = KernelRidge(Matern(1.5, 0.5), 0.1, centers=100, random_state=0, fit_intercept=True)
    expected = model.fit(X, y + 5).predict(X)
    if kind == "csr":
        found = model.fit(sparse.csr_array(X), y + 5).predict(sparse.csr_array(X))
    elif kind == "float32":
        found = model.fit(X.astype(np.float32), y + 5).predict(X.astype(np.float32))
    else:
        found = model.fit(X, np.column_stack([y + 5, -y])).predict(X)[:, 0]
    np.testing.assert_allclose(found, expected, atol=5e-3)
    np.testing.assert_allclose(expected, y + 5, atol=0.5)


def test_classes(data):
    X, y = data
    labels = np.where(y > 0, "up", "down")
    model = KernelRidgeClassifier(Matern(1.5, 0.5), 0.1, centers=100, random_state=0)
    assert model.fit(X, labels).score(X, labels) > 0.85


def test_what_centres_cannot_say(data):
    X, y = data
    model = KernelRidge(Matern(1.5, 0.5), 0.1, centers=100, random_state=0).fit(X, y)
    for ask in (lambda: model.sample_y(X), lambda: model.preconditioner_):
        with pytest.raises(ValueError, match="centers=None"):
            ask()
    exact = KernelRidge(Matern(1.5, 0.5), 0.0, centers=100, random_state=0).fit(X, y)
    for ask in (lambda: exact.predict(X, return_std=True), lambda: exact.noise_variance_):
        with pytest.raises(ValueError, match="alpha=0 has no standard deviations"):
            ask()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_variances_on_centres_are_those_of_the_reference(data, fit_intercept, tmp_path):
    """center_variance, times the scale that the least value of the loss tells."""
    X, y = data
    kernel, alpha, weight = Matern(1.5, 0.5), 0.1, 1.0 + np.arange(len(y)) % 3
    model = KernelRidge(kernel, alpha, centers=40, fit_intercept=fit_intercept, tol=1e-10,
                        random_state=0).fit(X, y, weight)  # fmt: skip
    Z, coef = model.X_fit_, model.dual_coef_
    square = kernel(Z)
    loss = weight @ np.square(y - model.predict(X)) + alpha * coef @ square @ coef
    scale = loss / alpha / (len(y) - fit_intercept)
    assert model.noise_variance_ == pytest.approx(scale * alpha, rel=1e-6)
    each = weight.sum() / 40
    new = X[:5] + 0.3
    variances = np.array([
        reference.centers.center_variance(k, square, 1.0, alpha, each) for k in kernel(new, Z)
    ])  # fmt: skip
    if fit_intercept:
        noisy = np.linalg.inv(square + alpha / each * np.eye(40))
        variances += (1 - noisy.sum(axis=0) @ kernel(Z, new)) ** 2 / noisy.sum()
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(std**2, scale * (alpha + variances), rtol=1e-6)
    far = model.predict(X[:1] + 100, return_std=True)[1]
    assert far[0] > 2 * model.predict(Z, return_std=True)[1].max()
    model.save(tmp_path / "model.gzk")
    again = gzk.load(tmp_path / "model.gzk").predict(new, return_std=True)
    np.testing.assert_array_equal(again, (mean, std))
    parts = list(model.predict([(new[:2],), (new[2:],)], return_std=True))
    np.testing.assert_allclose(np.concatenate([part[1] for part in parts]), std, rtol=1e-9)


def test_deviations_on_centres_are_near_those_of_the_whole_kernel(data):
    X, y = data
    whole = KernelRidge(Matern(1.5, 0.5), 0.1).fit(X, y)
    model = KernelRidge(Matern(1.5, 0.5), 0.1, centers=len(X) // 2, random_state=0).fit(X, y)
    (_, std), (_, expected) = (each.predict(X, return_std=True) for each in (model, whole))
    np.testing.assert_allclose(std, expected, rtol=0.25)
    both = np.column_stack([y, -3 * y])
    model = KernelRidge(Matern(1.5, 0.5), [0.1, 1.0], centers=100, random_state=0).fit(X, both)
    assert model.predict(X[:7], return_std=True)[1].shape == (7, 2)
    model.set_params(centers=None).fit(X, both)
    assert model.sample_y(X[:3]).shape == (3, 2, 1)


def test_too_few_steps_are_told(data):
    X, y = data
    model = KernelRidge(Matern(1.5, 0.5), 1e-6, centers=200, max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="200 centres"):
        model.fit(X, y)
    assert not model.converged_


@pytest.mark.parametrize(("parameters", "message"), [
    ({"kernel": "precomputed"}, "rows to choose from"),
    ({"preconditioner": 10}, "leave it 'auto'"),
    ({"centers": 0}, "centers"),
    ({"centers": [[1.0]]}, "centers"),
])  # fmt: skip
def test_bad_parameters(data, parameters, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        KernelRidge(**{"centers": 10} | parameters).fit(X[:, :2], y)


def test_rows_that_come_once_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="iter"):
        KernelRidge(centers=10).fit(iter([(X, y)]))


def test_values_that_are_not_finite_are_told(data):
    X, y = data
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KernelRidge(centers=10).fit(X, y)


def test_rows_off_the_sphere_are_told(data):
    X, y = data
    with pytest.raises(ValueError, match="unit"):
        KernelRidge(Zonal(np.exp), centers=10).fit(X, y)
