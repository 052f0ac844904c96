"""Slopes of predictions and their standard deviations, against differences and linear algebra."""

import numpy as np
import pytest

from gzkcore import KernelRidge, KernelRidgeCV
from gzkcore.kernels import (
    ExponentialDot,
    Gaussian,
    Laplacian,
    Matern,
    Polynomial,
    Product,
    ProductMatern,
    RationalQuadratic,
    Sum,
    Transformed,
)
from gzkcore.kernels.slopes import derivatives, gradients, prior_slopes
from gzkcore.solve.near_variances import NearVariances

SMOOTH = [
    Gaussian(2.0), Gaussian([0.5, 1.0, 2.0]), Matern(1.5, 0.5), Matern(2.5, [0.5, 1.0, 2.0]),
    Matern(1.7, 0.5), RationalQuadratic(0.7, 0.5),
    ProductMatern(1.5, [0.5, 1.0, 2.0]), ProductMatern(2.5, 0.7, [0, 1, 1]),
    Product([([0, 1], Matern(2.5)), ([2], Gaussian(0.5))]),
    Sum([([0], Matern(2.5)), ([1, 2], Gaussian(0.5))], [1.0, 2.0]),
    Sum([([2, 0], Matern(2.5, [0.5, 1.0])), ([1], Gaussian(0.5))], [1.0, 2.0]),
    Transformed(Gaussian(0.5), [[1.0, 0.5, 0.0], [0.2, -1.0, 0.3]]),
    Transformed(
        Transformed(Gaussian(0.5), np.diag([1.0, 2.0, 3.0])), np.triu(np.full((3, 3), 0.5))
    ),
]  # fmt: skip


def by_differences(function, X, h=1e-5):
    """Return the central differences of a function of rows along each column, as the last axis."""
    steps = h * np.eye(X.shape[1])
    return np.stack([(function(X + s) - function(X - s)) / (2 * h) for s in steps], axis=-1)


def data(n, dim=3):
    rng = np.random.default_rng(0)
    X = rng.random((n, dim))
    return X, np.sin(3 * X[:, 0]) + X[:, -1] ** 2, rng.random((6, dim))


ROUGH = [Matern(0.25, 0.5), Matern(0.5, 0.3), Matern(0.8), Laplacian(2.0)]


@pytest.mark.parametrize("kernel", [*SMOOTH, *ROUGH, ExponentialDot(0.3)], ids=repr)
def test_derivatives_are_differences(kernel):
    X, _, new = data(9)
    found = derivatives(kernel, new, X)
    expected = by_differences(lambda rows: kernel(rows, X), new).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("kernel", [*ROUGH, ExponentialDot(0.3)], ids=repr)
def test_other_kernels_have_no_prior_of_slopes(kernel):
    assert prior_slopes(kernel, 3) is None


@pytest.mark.parametrize("kernel", [*ROUGH, Gaussian(2.0), Matern(1.7)], ids=repr)
@pytest.mark.parametrize("size", [None, 0.0, 1e8])
def test_slopes_scale_with_the_kernel_and_its_other_factors(kernel, size):
    """Weights and other factors of any size: only a factor's own pole makes a slope 0."""
    X, y, new = data(9)
    if size is not None:
        kernel = Product([([0, 1], kernel), ([2], Polynomial(2, 1.0, size))])
    found = gradients(kernel, np.r_[new, X], X, y[:, None])
    expected = by_differences(lambda rows: kernel(rows, X) @ y, new, 1e-6)
    largest = np.abs(expected).max()
    np.testing.assert_allclose(found[: len(new), 0], expected, rtol=1e-6, atol=1e-7 * largest)
    for weight in (2.0**-100, 2.0**40, 2.0**100):
        weighted = Sum([([0, 1, 2], kernel)], [weight])
        scaled = gradients(weighted, np.r_[new, X], X, y[:, None]) / weight
        np.testing.assert_allclose(scaled, found, rtol=1e-12, atol=1e-14 * largest)


@pytest.mark.parametrize("weight", [1e-30, 1e30])
@pytest.mark.parametrize("gamma", [1e-12, 1e12])
def test_deviations_of_slopes_in_any_units(weight, gamma):
    X, y, new = data(40)
    units, kernel = np.sqrt(gamma), Sum([([0, 1, 2], Gaussian(2 * gamma))], [weight])
    model = KernelRidge(kernel, 0.05 * weight).fit(X / units, y)
    found = model.predict(new / units, True, True)
    expected = KernelRidge(Gaussian(2.0), 0.05).fit(X, y).predict(new, True, True)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], expected[2] * units, rtol=1e-6)
    np.testing.assert_allclose(found[3], expected[3] * units, rtol=1e-6)


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
@pytest.mark.parametrize("n", [1, 70, 300])
def test_tiles_agree_with_derivatives(kernel, n):
    X, y, new = data(n)
    new = np.r_[new, X[: n // 2], X[:1] + 1e-9, [[30.0, 0.0, 0.0]]]  # equal, nearly so, far
    coef = np.c_[y, -3 * y]
    found = gradients(kernel, new, X, coef)
    expected = np.einsum("icj,jq->iqc", derivatives(kernel, new, X), coef)
    np.testing.assert_allclose(found, expected, atol=1e-12 * n * np.abs(expected).max())


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_slopes_and_their_deviations_without_trend(kernel):
    X, y, new = data(60)
    model = KernelRidge(kernel, alpha=0.05, random_state=0).fit(X, y)
    mean, std, slope, slope_std = model.predict(new, return_std=True, return_gradient=True)
    np.testing.assert_allclose(slope, by_differences(model.predict, new), atol=1e-6)
    expected_mean, expected_std = model.predict(new, return_std=True)
    assert (mean == expected_mean).all()
    assert (std == expected_std).all()
    inverse = np.linalg.inv(kernel(X) + 0.05 * np.eye(60))
    scale = model.noise_variance_ / 0.05
    D = by_differences(lambda rows: kernel(rows, X), new)  # (n_new, n, dim)
    prior = np.diag(prior_slopes(kernel, 3))
    expected = scale * (prior - np.einsum("inc,nm,imc->ic", D, inverse, D))
    np.testing.assert_allclose(slope_std**2, expected, rtol=1e-3, atol=1e-6 * scale)


def test_the_share_of_a_linear_trend():
    X, y, new = data(60)
    kernel, alpha = Gaussian(2.0), 0.05
    model = KernelRidge(kernel, alpha, trend="linear", random_state=0).fit(X, y)
    _, _, slope, std = model.predict(new, return_std=True, return_gradient=True)
    np.testing.assert_allclose(slope, by_differences(model.predict, new), atol=1e-6)
    H, inverse = np.c_[np.ones(60), X], np.linalg.inv(kernel(X) + alpha * np.eye(60))
    D = by_differences(lambda rows: kernel(rows, X), new)
    own = np.c_[np.zeros(3), np.eye(3)]
    u = own - np.einsum("inc,nm,mk->ick", D, inverse, H)
    unknown = np.linalg.inv(H.T @ inverse @ H)
    expected = np.diag(prior_slopes(kernel, 3)) - np.einsum("inc,nm,imc->ic", D, inverse, D)
    expected = expected + np.einsum("ick,kl,icl->ic", u, unknown, u)
    scale = model.noise_variance_ / alpha
    np.testing.assert_allclose(std**2, scale * expected, rtol=1e-5)


@pytest.mark.parametrize("trend", ["constant", "linear"])
def test_directions_are_columns_of_turned_rows(trend):
    X, y, new = data(60)
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    ways = np.broadcast_to(turn.T, (6, 3, 3))
    found = [
        KernelRidge(Gaussian(2.0), 0.05, trend=trend).fit(rows, y).predict(points, True, asked)
        for rows, points, asked in ((X, new, ways), (X @ turn, new @ turn, True))
    ]
    for along, by_column in zip(*found, strict=True):
        np.testing.assert_allclose(along, by_column, rtol=1e-6, atol=1e-9)


def test_several_targets_have_slopes_of_their_own():
    X, y, new = data(50)
    model = KernelRidge(Gaussian(1.0), [0.1, 0.2]).fit(X, np.c_[y, -2 * y])
    _, _, slope, std = model.predict(new, return_std=True, return_gradient=True)
    assert slope.shape == std.shape == (6, 2, 3)
    np.testing.assert_allclose(slope, by_differences(model.predict, new), atol=1e-6)


def test_rows_near_by_give_deviations_that_are_not_too_small(monkeypatch):
    X, y, _ = data(1100, 2)
    monkeypatch.setattr("gzkcore.solve.system.HELD_ROWS", 500)
    new = np.random.default_rng(1).random((65, 2))
    model = KernelRidge(Matern(2.5, 0.5), 0.01, tol=1e-8, random_state=0).fit(X, y)
    used, about = [], NearVariances.rows_about
    monkeypatch.setattr(NearVariances, "rows_about", lambda *args: used.append(1) or about(*args))
    many = model.predict(new, return_std=True, return_gradient=True)[3]
    assert used
    few = model.predict(new[:5], return_std=True, return_gradient=True)[3]
    assert (many[:5] / few).min() > 1 - 1e-4
    assert (many[:5] / few).max() < 1.03  # 1.13 given a third of them


def test_a_cross_validated_model_has_slopes_too():
    X, y, new = data(80)
    model = KernelRidgeCV(Gaussian(1.0), alphas=[0.01, 0.1], random_state=0).fit(X, y)
    slope = model.predict(new, return_gradient=True)[1]
    np.testing.assert_allclose(slope, by_differences(model.predict, new), atol=1e-6)


def test_what_has_no_slopes_says_so():
    X, y, new = data(40)
    rough = KernelRidge(Matern(0.5), 0.1).fit(X, y)
    assert rough.predict(new, return_gradient=True)[1].shape == (6, 3)
    with pytest.raises(ValueError, match=r"no standard deviations of slopes; use one that is"):
        rough.predict(new, return_std=True, return_gradient=True)
    given = KernelRidge("precomputed", 0.1).fit(Gaussian(1.0)(X), y)
    with pytest.raises(ValueError, match="has no derivatives by columns"):
        given.predict(Gaussian(1.0)(new, X), return_gradient=True)
    with pytest.raises(ValueError, match="return_gradient is for arrays"):
        rough.predict(iter([new]), return_gradient=True)
    with pytest.raises(ValueError, match="return_gradient contains NaN"):
        rough.predict(new, return_gradient=np.full((len(new), 1, new.shape[1]), np.nan))
