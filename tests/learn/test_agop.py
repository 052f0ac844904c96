"""Average gradient outer products: those of the reference, however rows come."""

import numpy as np
import pytest
from naming import named
from points import gaussian
from scipy import sparse
from tolerances import LEARNED

import gzkcore as gzk
from gzkcore.learn.agop import GradientAccumulator

KERNELS = [
    gzk.Gaussian([0.1, 0.3, 0.5]),
    gzk.Matern(1.5, 2.0),
    gzk.Matern(0.5, 2.0),
    gzk.Matern(0.8, [1.0, 2.0, 3.0]),
    gzk.Exponential(0.5),
    gzk.Laplacian([0.3, 0.5, 0.7]),
    gzk.RationalQuadratic(0.7, 2.0),
    gzk.Polynomial(3, 0.5),
    gzk.ExponentialDot(0.3),
    gzk.ArcCosine(1),
    gzk.Product([([0, 1], gzk.Gaussian(0.3)), ([1, 2], gzk.Matern(2.5)), ([0], gzk.Polynomial(2))]),
    gzk.Sum([([0, 2], gzk.Gaussian(0.3)), ([1], gzk.Laplacian(0.5))], [0.3, 2.0]),
    gzk.Transformed(gzk.Matern(2.5), [[1.0, 0.5, 0.0], [0.0, 0.5, -0.3]]),
]


def fitted(kernel, n_targets=1):
    X, Y = gaussian(40, 3), gaussian(40, n_targets, seed=1)
    return gzk.KernelRidge(kernel, 0.1, tol=1e-10).fit(X, Y)


def function_of(model):
    """Return a function of points whose kernel values are exact."""
    return lambda X: model.kernel_(np.asarray(X), model.X_fit_) @ model.dual_coef_


@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_as_the_reference_by_differences(kernel):
    """average_gradient_outer_product of two targets, at rows that the model does not know."""
    model, X = fitted(kernel, 2), gaussian(7, 3, seed=2)
    expected = gzk.reference.learned.average_gradient_outer_product(function_of(model), X.tolist())
    found = gzk.average_gradient_outer_product(model, X)
    bound = LEARNED["differences"](length=1) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    diagonal = gzk.average_gradient_outer_product(model, X, diagonal=True)
    np.testing.assert_allclose(diagonal, np.diag(found), rtol=1e-12)


@pytest.mark.parametrize("options", [{"alpha": 0.1, "trend": "linear"}, {"alpha": 1e11}])
def test_slopes_of_a_trend_and_of_large_weights_count(options):
    X = gaussian(40, 3)
    kernel = gzk.Sum([([0, 1, 2], gzk.Gaussian(0.3))], [max(1.0, options["alpha"])])
    model = gzk.KernelRidge(kernel, **options).fit(X, np.c_[5 * X[:, 0], np.sin(X[:, 1])])
    found = gzk.average_gradient_outer_product(model, X)
    expected = gzk.reference.learned.average_gradient_outer_product(model.predict, X.tolist())
    bound = LEARNED["differences"](length=1) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("features", [
    gzk.NystromFeatures(gzk.Gaussian(0.3), 30, random_state=0),
    gzk.RandomFourierFeatures(gzk.Gaussian(0.3), 64, random_state=0),
], ids=named)  # fmt: skip
def test_features_are_differentiated(features):
    X = gaussian(200, 3)
    model = gzk.RandomFeatureRidge(features, 0.1).fit(X, np.sin(X))
    found = gzk.average_gradient_outer_product(model, X[:9])
    expected = gzk.reference.learned.average_gradient_outer_product(model.predict, X[:9].tolist())
    bound = LEARNED["differences"](length=1) * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def test_classes_and_functions_are_taken():
    X = gaussian(60, 3)
    model = gzk.KernelRidgeClassifier("gaussian", 0.1).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    found = gzk.average_gradient_outer_product(model, X)
    by_values = gzk.average_gradient_outer_product(model.decision_function, X)
    np.testing.assert_allclose(found, by_values, rtol=1e-4, atol=1e-4 * np.abs(found).max())
    assert found.argmax() == 0
    linear = gzk.average_gradient_outer_product(lambda X: X @ [1.0, 2.0, 0.0], X)
    np.testing.assert_allclose(linear, np.outer([1, 2, 0], [1, 2, 0]), atol=1e-8)


def test_rows_come_in_any_batches_and_weights():
    model, X = fitted(gzk.Matern(2.5)), gaussian(50, 3, seed=2)
    weight = np.arange(50) % 3.0
    whole = gzk.average_gradient_outer_product(model, X, weight)
    for source in (
        [(X[:20], None, weight[:20]), (X[20:], None, weight[20:])],
        [(sparse.csr_array(X), None, weight)],
    ):
        np.testing.assert_allclose(
            gzk.average_gradient_outer_product(model, source), whole, rtol=1e-12, atol=1e-15
        )
    np.testing.assert_allclose(
        gzk.average_gradient_outer_product(model, np.repeat(X, weight.astype(int), axis=0)),
        whole, rtol=1e-12, atol=1e-15,
    )  # fmt: skip
    parts = [GradientAccumulator(model).update(X[i::2], weight[i::2]) for i in range(2)]
    np.testing.assert_allclose(parts[0].merge(parts[1]).finalize(), whole, rtol=1e-12, atol=1e-15)


def wave(X):
    """A function whose scale, 1e-8, is that of the rows it is meant for."""
    return np.sin(1e8 * X[:, 0])


@pytest.mark.parametrize("weight", [None, np.arange(50) % 3.0])
def test_differences_do_not_depend_on_batches(weight):
    X = gaussian(50, 2) * [1e-8, 1.0]
    whole = gzk.average_gradient_outer_product(wave, X, weight)
    w = np.ones(50) if weight is None else weight
    exact = np.average(np.square(1e8 * np.cos(1e8 * X[:, 0])), weights=w)
    bound = LEARNED["differences"](length=1) * exact
    np.testing.assert_allclose(whole, np.diag([exact, 0]), rtol=0, atol=bound)
    for size in (1, 7, 25):
        batches = [(X[i : i + size], None, w[i : i + size]) for i in range(0, 50, size)]
        found = gzk.average_gradient_outer_product(wave, batches)
        np.testing.assert_allclose(found, whole, rtol=1e-12)
    once = gzk.average_gradient_outer_product(wave, iter(batches))
    np.testing.assert_allclose(once, np.diag([exact, 0]), rtol=0, atol=bound)


def test_differences_in_constant_columns_and_single_rows():
    """Means of a column of .1 are not .1; there its values tell the step, as in a single row."""
    X = np.column_stack([np.full(7, 0.1), np.zeros(7), 1e9 + np.arange(7) * 1e-6])
    for rows in (X, X[:1], sparse.csr_array(X)):
        found = gzk.average_gradient_outer_product(np.square, rows, diagonal=True)
        np.testing.assert_allclose(found, [0.04, 0, 4e18], rtol=0.1, atol=1e-10)
    small = gzk.average_gradient_outer_product(wave, [[3e-8]])
    np.testing.assert_allclose(small, [[1e16 * np.cos(3) ** 2]], rtol=1e-6)


def test_sums_that_are_merged_go_on_with_their_steps():
    first = GradientAccumulator(wave).update(gaussian(20, 1) * 1e-8)
    added = GradientAccumulator(wave).merge(first).update([[0.0]]).finalize()
    np.testing.assert_allclose(added, first.update([[0.0]]).finalize(), rtol=1e-12)


def test_links_are_differentiated():
    """A Poisson model predicts exp(f), quantiles are sorted, and both are what is meant."""
    X = gaussian(60, 2)
    y = np.round(np.exp(1 + X[:, 0]))
    for model in (
        gzk.KernelPoissonRegressor(alpha=0.1),
        gzk.KernelQuantileRegressor(quantile=[0.9, 0.1, 0.5], alpha=0.1),
    ):
        model.fit(X, y)
        found = gzk.average_gradient_outer_product(model, X)
        by_values = gzk.average_gradient_outer_product(model.predict, X)
        np.testing.assert_allclose(found, by_values, rtol=1e-4, atol=1e-4 * np.abs(found).max())


def test_equal_rows_of_a_rough_kernel_have_slope_0():
    model = fitted(gzk.Matern(0.5))
    found = gzk.average_gradient_outer_product(model, model.X_fit_)
    assert np.isfinite(found).all()
    one = gzk.KernelRidge(gzk.Matern(0.5), 0.1).fit([[0.0]], [1.0])
    np.testing.assert_array_equal(gzk.average_gradient_outer_product(one, [[0.0]]), [[0.0]])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: gzk.average_gradient_outer_product(3, [[1.0]]), "model=3 has no predict"),
    (lambda: gzk.average_gradient_outer_product(np.sum, [[np.nan]]), "contains NaN"),
    (lambda: gzk.average_gradient_outer_product(np.sum, [[1.0]], [0.0]), "no rows of positive"),
    (lambda: gzk.average_gradient_outer_product(np.sum, iter([])), "yields no batches"),
    (lambda: gzk.average_gradient_outer_product(np.sum, [np.ones((1, 2))], [1.0]), "sample_weight was passed beside a source"),
    (
        lambda: GradientAccumulator(lambda X: X.sum(axis=1)).update([[1.0]]).update([[1.0, 2]]),
        "X has 2 columns, but earlier rows had 1",
    ),
    *(
        (
            lambda form=form: gzk.average_gradient_outer_product(
                lambda X: X.sum(axis=1), form([np.ones((2, 1)), np.ones((2, 2))])
            ),
            "X has 2 columns, but earlier rows had 1",
        )
        for form in (list, iter)
    ),
])  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
