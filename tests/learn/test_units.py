"""Units of rows, targets, weights and kernels: what learners say scales with them."""

import functools

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from gzkcore import (
    Gaussian,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Matern,
    NystromFeatures,
    RandomFeatureCCA,
    RandomFeatureKMeans,
    RandomFeaturePCA,
    RandomFeatureRidge,
    RandomFeatureRidgeClassifier,
    RandomFeatureRidgeCV,
    RandomFourierFeatures,
    SeriesRidge,
    Sum,
    learn_kernel,
)

SIZES = [1e-30, 1e-9, 1e9, 1e30]
FOURIER = RandomFourierFeatures("gaussian", 60, random_state=0)
STEPS = {"preconditioner": 20, "tol": 1e-8, "random_state": 0}

# Makers of learners, given a kernel and alpha.
REGRESSORS = {
    "ridge": KernelRidge,
    "trend": lambda kernel, alpha: KernelRidge(kernel, alpha, trend="linear"),
    "steps": lambda kernel, alpha: KernelRidge(kernel, alpha, **STEPS),
    "centers": lambda kernel, alpha: KernelRidge(kernel, alpha, centers=20, random_state=0),
    "cv": lambda kernel, alpha: KernelRidgeCV(kernel, [alpha, 9 * alpha], random_state=0),
    "huber": lambda kernel, alpha: KernelHuberRegressor(kernel, alpha=alpha),
    "nystrom": lambda kernel, alpha: RandomFeatureRidge(
        NystromFeatures(kernel, 30, random_state=0), alpha
    ),
}
OF_FEATURES = {
    "features": lambda _, alpha: RandomFeatureRidge(FOURIER, alpha),
    "features cv": lambda _, alpha: RandomFeatureRidgeCV(FOURIER, [alpha, 9 * alpha]),
}
CLASSIFIERS = {
    "classes": KernelRidgeClassifier,
    "classes cv": lambda kernel, alpha: KernelRidgeClassifierCV(
        kernel, [alpha, 9 * alpha], random_state=0
    ),
    "logistic": lambda kernel, alpha: KernelLogisticRegression(kernel, alpha=alpha),
}
OF_LABELS = CLASSIFIERS | {
    "features of classes": lambda _, alpha: RandomFeatureRidgeClassifier(FOURIER, alpha)
}


def data():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-1, 1, (80, 3)), rng.uniform(-1, 1, (9, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(80)
    return X, y, new


def said(model, X):
    """Return what a model says of rows: predictions and deviations, or scores of classes."""
    if hasattr(model, "decision_function"):
        return [model.decision_function(X)]
    squares = not isinstance(model, KernelHuberRegressor | KernelQuantileRegressor)
    return list(model.predict(X, return_std=True)) if squares else [model.predict(X)]


EVERY = REGRESSORS | OF_FEATURES | OF_LABELS


@functools.cache
def expected_of(name, weight=None):
    """Return what a model says where all units are 1; of a sum of kernels if it is given a weight."""
    X, y, new = data()
    kernel = "gaussian" if weight is None else kernel_of(weight)
    return said(EVERY[name](kernel, 0.1).fit(X, y > 0.3 if name in OF_LABELS else y), new)


def kernel_of(weight):
    return Sum([([0, 1, 2], Matern(1.5, 0.7))], [weight])


def check(found, expected, unit=1.0):
    for ours, theirs in zip(found, expected, strict=True):
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours / unit, theirs, rtol=1e-5, atol=1e-6 * largest)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REGRESSORS | OF_FEATURES)
def test_units_of_targets(name, size):
    X, y, new = data()
    check(said(EVERY[name]("gaussian", 0.1).fit(X, size * y), new), expected_of(name), size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EVERY)
def test_units_of_rows(name, size):
    X, y, new = data()
    y = y > 0.3 if name in OF_LABELS else y
    check(said(EVERY[name]("gaussian", 0.1).fit(size * X, y), size * new), expected_of(name))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EVERY)
def test_units_of_weights(name, size):
    X, y, new = data()
    y = y > 0.3 if name in OF_LABELS else y
    found = said(EVERY[name]("gaussian", 0.1 * size).fit(X, y, np.full(80, size)), new)
    check(found[:1], expected_of(name)[:1])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REGRESSORS | CLASSIFIERS)
def test_units_of_kernels(name, size):
    X, y, new = data()
    y = y > 0.3 if name in CLASSIFIERS else y
    found = said(EVERY[name](kernel_of(size), 0.1 * size).fit(X, y), new)
    check(found, expected_of(name, 1.0))


@pytest.mark.parametrize("size", SIZES)
def test_units_of_losses_that_are_no_squares(size):
    X, y, new = data()
    expected = said(KernelQuantileRegressor("gaussian", alpha=0.1).fit(X, y), new)
    model = KernelQuantileRegressor("gaussian", alpha=0.1 / size).fit(size * X, size * y)
    check(said(model, size * new), expected, size)


@pytest.mark.parametrize("size", SIZES)
def test_units_of_a_series(size):
    pytest.importorskip("finufft")
    X, y, new = data()
    expected, found = (
        SeriesRidge(Gaussian(4 / s**2), 1.0, box=[[-3 * s] * 2, [3 * s] * 2], degree=9, tol=1e-6)
        .fit(s * X[:, :2], s * y)
        .predict(s * new[:, :2])
        for s in (1.0, size)
    )
    check([found], [expected], size)


@pytest.mark.parametrize("size", SIZES)
def test_units_of_components_and_clusters(size):
    X, y, new = data()
    plain = FunctionTransformer()
    for make, unit in (
        (lambda: RandomFeaturePCA(FOURIER, n_components=2), 1.0),
        (lambda: RandomFeaturePCA(plain, n_components=2), size),
        (lambda: RandomFeatureKMeans(FOURIER, n_clusters=3, random_state=0), 1.0),
        (lambda: RandomFeatureKMeans(plain, n_clusters=3, random_state=0), size),
    ):
        expected = make().fit(X).transform(new)
        check([np.abs(make().fit(size * X).transform(size * new))], [np.abs(expected)], unit)
    both = [
        RandomFeatureCCA(FOURIER, plain, 1, alpha=0.1).fit(s * X, y[:, None]).transform(s * new)
        for s in (1.0, size)
    ]
    check([np.abs(both[1])], [np.abs(both[0])])


@pytest.mark.parametrize("size", SIZES)
def test_units_of_learned_lengths(size):
    X, y, _ = data()
    expected, found = (
        learn_kernel(s * X, s * y, "gaussian", random_state=0).kernel.gamma for s in (1.0, size)
    )
    np.testing.assert_allclose(found * size**2, expected, rtol=1e-4)


@pytest.mark.parametrize("size", [*SIZES, 1.0])
def test_features_are_told_apart_in_any_units(size):
    X, y, _ = data()
    model, other, same = (
        RandomFeatureRidge(RandomFourierFeatures("gaussian", 50, random_state=seed)).fit(
            size * X, y
        )
        for seed in (0, 1, 0)
    )
    with pytest.raises(ValueError, match="the models have different features"):
        model.merge(other)
    assert model.merge(same).moments_.n_rows == 160
