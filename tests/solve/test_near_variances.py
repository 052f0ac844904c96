"""Variances given rows near by: those of the reference for these rows, and never below the exact ones."""

import numpy as np
import pytest
from points import sphere

from gzkcore import KernelRegressor, KernelRidge, reference
from gzkcore.kernels import Gaussian, Matern, Product, Sum, Transformed
from gzkcore.solve import near_variances
from gzkcore.solve.near_variances import NearVariances

formulas = reference.kernel_ridge


def exact(kernel, X, new, alpha, noise):
    """Return k(x, x) - k_x^T (K + alpha N)^-1 k_x."""
    cross = kernel(X, new)
    solved = np.linalg.solve(kernel(X) + alpha * np.diag(noise), cross)
    return kernel.diag(new) - np.einsum("ij,ij->j", cross, solved)


@pytest.mark.parametrize("kernel", [Matern(1.5, 0.5), Gaussian([3.0, 1.0])], ids=repr)
def test_with_as_few_rows_as_are_near_they_are_exact(kernel):
    rng = np.random.default_rng(0)
    X, new = rng.random((40, 2)), rng.random((7, 2))
    noise = rng.uniform(0.5, 2, 40)
    found = NearVariances(kernel, X, noise).at(new, 0.1)
    expected = [
        formulas.predictive_variance(
            kernel(X), kernel(X, row[None])[:, 0], 1.0, 0.1, (1 / noise).tolist()
        )
        for row in new
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


BOTH = slice(None)
SCALES = Sum([(BOTH, Matern(1.5, 0.05)), (BOTH, Gaussian(2.0))], [0.5, 2.0])


@pytest.mark.parametrize("kernel", [Matern(1.5, 0.3), SCALES], ids=["one", "two scales"])
@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-6])
def test_they_are_at_least_the_exact_ones_and_not_much_more(alpha, kernel):
    rng = np.random.default_rng(1)
    X = rng.random((2500, 2))
    X = X[np.abs(X - 0.5).max(axis=1) > 0.1]  # a gap
    X[::7] = X[0]  # duplicates
    new = rng.random((300, 2))
    expected = exact(kernel, X, new, alpha, np.ones(len(X)))
    found = NearVariances(kernel, X, None).at(new, alpha)
    ratio = np.sqrt((found + alpha) / (expected + alpha))
    assert ratio.min() > 1 - 1e-6
    assert ratio.mean() < 1.06
    assert ratio.max() < 1.3


def test_no_row_is_in_two_levels(monkeypatch):
    monkeypatch.setattr(near_variances, "LEVELS", ((8, 4), (32, 4)))
    X = sphere(400, 3)
    made = NearVariances(Matern(1.5), X, None)
    rows = np.concatenate([chosen for chosen, _, _ in made.levels])
    assert len(made.levels) == 3
    assert sorted(rows) == list(range(400))


def test_mapped_rows_and_other_kernels():
    rng = np.random.default_rng(2)
    X, new = rng.random((90, 4)), rng.random((5, 4))
    kernel = Transformed(Matern(1.5), rng.random((2, 4)))
    found = NearVariances(kernel, X, None).at(new, 0.1)
    expected = exact(kernel, X, new, 0.1, np.ones(90))
    np.testing.assert_allclose(found, expected, rtol=0.05)
    assert not NearVariances.suit(Gaussian(1.0), X)  # four columns
    two = Sum([([0], Matern(1.5)), ([1], Gaussian(1.0))], [1.0, 1.0])
    assert not NearVariances.suit(two, X[:, :2])
    assert NearVariances.suit(SCALES, X[:, :2])
    one = Product([([0], Matern(1.5)), ([1], Gaussian(1.0))])
    part = Sum([([0, 1], Matern(1.5))], [2.0])
    for chosen in (one, part):  # columns that are taken by number lie apart in memory
        found = NearVariances(chosen, X[:40, :2], None).at(new[:, :2], 0.1)
        expected = exact(chosen, X[:40, :2], new[:, :2], 0.1, np.ones(40))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_predictions_have_them_and_the_share_of_the_trend(monkeypatch):
    monkeypatch.setattr(KernelRidge, "_near_from", 1024)
    rng = np.random.default_rng(3)
    X = rng.random((1500, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(1500)
    new = rng.uniform(-0.5, 1.5, (1600, 2))
    model = KernelRidge(Matern(1.5, 0.5), alpha=0.05, trend="linear", random_state=0).fit(X, y)
    many = model.predict(new, return_std=True)[1]
    few = model.predict(new[:50], return_std=True)[1]  # exact
    assert (many[:50] / few).min() > 1 - 1e-6
    assert (many[:50] / few).max() < 1.05
    again = model.predict(new[::-1], return_std=True)[1][::-1]
    np.testing.assert_allclose(again, many, rtol=1e-12)


def test_a_table_has_the_same_deviations_however_many_rows_are_asked():
    """Factors that are learned of exact variances made those given rows near by 30 % larger."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (2000, 1))
    y = np.sin(1.5 * X[:, 0]) + (0.02 + 0.1 * X[:, 0]) * rng.standard_normal(2000)
    model = KernelRegressor(random_state=0, kernel="gaussian").fit(X, y)
    new = rng.uniform(0, 10, (2500, 1))
    many = model.predict(new, return_std=True)[1]
    few = np.concatenate([model.predict(new[i : i + 500], return_std=True)[1] for i in (0, 500)])
    np.testing.assert_allclose(many[:1000], few, rtol=1e-6)
