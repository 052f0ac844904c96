"""What all exact kernels have in common: their formulas, diagonals, parameters and rows."""

import re

import numpy as np
import pytest
from points import gaussian, sphere
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel
from tolerances import TWINS

from gzkcore import kernel_product, kernels, reference
from gzkcore._compiled import products as _products
from gzkcore.kernels import (
    ArcCosine,
    DotProduct,
    Exponential,
    ExponentialDot,
    Gaussian,
    GeneralizedZonal,
    Laplacian,
    Matern,
    NeuralTangent,
    Polynomial,
    ProductMatern,
    RationalQuadratic,
    Zonal,
)

formulas = reference.kernels

SHIFT_INVARIANT = {
    "exponential": (Exponential(0.7), lambda x, y: formulas.exponential(x, y, 0.7)),
    "laplacian": (Laplacian(0.7), lambda x, y: formulas.laplacian(x, y, 0.7)),
    "matern 1/2": (Matern(0.5, 2.0), lambda x, y: formulas.matern(x, y, 0.5, 2.0)),
    "matern 3/2": (Matern(), lambda x, y: formulas.matern(x, y, 1.5, 1.0)),
    "matern 5/2": (Matern(2.5, 0.5), lambda x, y: formulas.matern(x, y, 2.5, 0.5)),
    "matern .8": (Matern(0.8), lambda x, y: formulas.matern(x, y, 0.8, 1.0)),
    "matern 7": (Matern(7, 3.0), lambda x, y: formulas.matern(x, y, 7, 3.0)),
    "product 3/2": (
        ProductMatern(1.5, 2.0),
        lambda x, y: formulas.product_matern(x, y, 1.5, 2.0, range(len(x))),
    ),
    "product 5/2": (
        ProductMatern(2.5),
        lambda x, y: formulas.product_matern(x, y, 2.5, 1.0, range(len(x))),
    ),
    "rational": (
        RationalQuadratic(0.6, 2.0),
        lambda x, y: formulas.rational_quadratic(x, y, 0.6, 2.0),
    ),
}
DOT_PRODUCT = {
    "exponential_dot": (ExponentialDot(0.3), lambda x, y: formulas.exponential_dot(x, y, 0.3)),
    "polynomial": (Polynomial(3, 0.5, 2.0), lambda x, y: formulas.polynomial(x, y, 3, 0.5, 2.0)),
    "even": (Polynomial(4, 0.5, 0), lambda x, y: formulas.polynomial(x, y, 4, 0.5, 0)),
    "dot": (DotProduct([1, 0, 2.5]), lambda x, y: formulas.dot_product(x, y, [1, 0, 2.5])),
}
ZONAL = {
    "ntk 1": (NeuralTangent(1), lambda x, y: formulas.neural_tangent(x, y, 1)),
    "ntk 3": (NeuralTangent(3), lambda x, y: formulas.neural_tangent(x, y, 3)),
    "ntk mean": (
        NeuralTangent(2, normalize=True),
        lambda x, y: formulas.neural_tangent(x, y, 2) / 3,
    ),
    **{
        f"arc {n}": (ArcCosine(n), lambda x, y, n=n: formulas.arc_cosine(x, y, n)) for n in range(3)
    },
}
GENERAL = {
    "general": (
        GeneralizedZonal(lambda t: np.stack([np.stack([1 + t, t], 1), np.stack([t, t**2], 1)], 1)),
        lambda x, y: formulas.generalized_zonal(x, y, lambda t: [[1 + t, t], [t, t * t]]),
    ),
}
EVERY = SHIFT_INVARIANT | DOT_PRODUCT | ZONAL | GENERAL


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_values_are_the_formula(name, dim):
    kernel, formula = EVERY[name]
    X, Y = gaussian(6, dim, seed=1), gaussian(4, dim, seed=2)
    expected = np.array([[formula(x, y) for y in Y] for x in X])
    tolerance = TWINS["kernels.values"](length=np.square(expected).max() + 1)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", [*EVERY, "gaussian"])
def test_values_beyond_a_tile_are_the_formula(name):
    kernel, formula = EVERY.get(name, (Gaussian(0.4), lambda x, y: formulas.gaussian(x, y, 0.4)))
    X, Y = gaussian(_products.tile_rows() + 3, 3, seed=1), gaussian(66, 3, seed=2)
    some = [0, 255, 256, -1]
    expected = np.array([[formula(x, y) for y in Y] for x in X[some]])
    tolerance = TWINS["kernels.values"](length=np.square(expected).max() + 1)
    np.testing.assert_allclose(kernel(X, Y)[some], expected, rtol=0, atol=tolerance)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    exact = 0 if name in SHIFT_INVARIANT | DOT_PRODUCT | ZONAL else tolerance
    np.testing.assert_allclose(K.diagonal(), kernel.diag(X), rtol=0, atol=exact)
    np.testing.assert_allclose(K[some], kernel(X[some], X), rtol=0, atol=2 * tolerance * K.max())


def test_values_are_those_of_sklearn():
    X = gaussian(20, 3)
    for ours, theirs in [
        (Matern(0.5, 0.7), gp.Matern(0.7, nu=0.5)),
        (Matern(1.5, [0.5, 1.0, 2.0]), gp.Matern([0.5, 1.0, 2.0], nu=1.5)),
        (Matern(2.5), gp.Matern(nu=2.5)),
        (Matern(0.8), gp.Matern(nu=0.8)),
        (Matern(np.inf, 2.0), gp.Matern(2.0, nu=np.inf)),
        (RationalQuadratic(0.7, 1.5), gp.RationalQuadratic(1.5, 0.7)),
    ]:
        np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12, atol=1e-14, err_msg=repr(ours))
    np.testing.assert_allclose(Laplacian(0.3)(X), laplacian_kernel(X, gamma=0.3), rtol=1e-12)
    np.testing.assert_allclose(
        Polynomial(3, 0.5, 2.0)(X), polynomial_kernel(X, degree=3, gamma=0.5, coef0=2.0), rtol=1e-11
    )


@pytest.mark.parametrize("name", EVERY)
def test_every_diag_is_the_diagonal(name):
    kernel, _ = EVERY[name]
    X = gaussian(6, 3, seed=1)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    np.testing.assert_array_equal(kernel.diag(X.tolist()), kernel.diag(X))
    with pytest.raises(ValueError, match=r"X has shape \(3,\); pass an array of shape"):
        kernel.diag(X[0])
    scaled = np.linalg.norm(X * kernel.scale(), axis=1)
    np.testing.assert_allclose(kernel.diagonal(scaled), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.5), Zonal(np.exp), Zonal(coefficients=[0.3, 0.2])], ids=str
)
@pytest.mark.parametrize("dim", [1, 3])
def test_diag_is_the_diagonal(kernel, dim):
    X = sphere(8, dim)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-14)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Zonal(np.exp)], ids=str)
def test_rows_may_be_sparse_or_lists(kernel, kind):
    X = np.eye(4)
    np.testing.assert_allclose(kernel(kind(X), kind(X)), kernel(X), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        *(
            (lambda k=kernel, X=X: k(X), ValueError, message)
            for kernel in (Gaussian(1.0), Laplacian(1.0), Matern(), NeuralTangent(), Polynomial())
            for X, message in (
                ([1.0, 2.0], r"X has shape \(2,\); pass an array of shape"),
                ([[np.nan, 1.0]], r"Input X contains NaN.*row 0, column 0"),
            )
        ),
        (lambda: Gaussian(1.0)(np.array([[1j]])), TypeError, r"X is not numeric \(it is complex\)"),
        (
            lambda: Gaussian(1.0)([[1.0, "a"]]),
            TypeError,
            r"X is not numeric .* pass rows of numbers",
        ),
        (lambda: Gaussian([1.0, 2.0]).diag(np.ones((2, 3))), ValueError, r"2 columns, but X has 3"),
        (
            lambda: kernels.Product([(0.5, Gaussian(1.0))])(np.eye(2)),
            TypeError,
            r"column=0.5 is not an",
        ),
        (
            lambda: kernel_product(Gaussian(1.0), np.eye(2), None, np.ones(3)),
            ValueError,
            r"V has shape \(3,\); .* of X",
        ),
    ],
)
def test_bad_rows(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", EVERY)
def test_every_kernel_is_cloned_and_resolved(name):
    kernel, _ = EVERY[name]
    resolved = clone(kernel).resolve(gaussian(5, 2))
    assert type(resolved) is type(kernel)
    assert resolved is not kernel


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian([1.0, 2.0]), Zonal(np.exp)], ids=str)
def test_resolve_leaves_the_kernel_alone(kernel):
    before = kernel.get_params()
    resolved = kernel.resolve(sphere(5, 2))
    assert resolved is not kernel
    assert kernel.get_params() == before
    assert clone(kernel).get_params().keys() == before.keys()


def test_a_matern_kernel_of_infinite_smoothness_is_shown_as_gaussian():
    kernel = Matern(np.inf, 2.0)
    assert repr(kernel) == "Matern(length_scale=2.0, nu=inf)  # Gaussian"
    assert clone(kernel).get_params() == kernel.get_params()
    assert repr(Matern(1.5, 2.0)) == "Matern(length_scale=2.0)"


@pytest.mark.parametrize(
    "kernel", [Gaussian("auto"), Laplacian("auto"), Exponential("auto")], ids=str
)
def test_a_rule_that_there_is_not_is_refused_wherever_gamma_is_used(kernel):
    for call in (kernel.resolve, kernel):
        with pytest.raises(ValueError, match=r"gamma='auto' is unknown; .* is 1 / n_features"):
            call(np.eye(3))


@pytest.mark.parametrize(
    ("kernel", "wrong", "told"),
    [
        (kernels.Gaussian, {"lengthscale": 2}, "it has gamma. With lengthscale 2 it is Gaussian(gamma=0.125)"),
        (kernels.Laplacian, {"sigma": 2.0}, "With lengthscale 2.0 it is Laplacian(gamma=0.5)"),
        (kernels.Matern, {"lengthscale": 2.0}, "it has nu, length_scale. With lengthscale 2.0 it is Matern(length_scale=2.0"),
        (kernels.Polynomial, {"lengthscale": 2.0}, "Polynomial has no parameter 'lengthscale'; it has "),
        (kernels.Gaussian, {"colour": 2}, "Gaussian has no parameter 'colour'; it has gamma"),
    ],
)  # fmt: skip
def test_a_parameter_of_another_library_names_ours(kernel, wrong, told):
    with pytest.raises(TypeError, match=re.escape(told)):
        kernel(**wrong)


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.5),
        Laplacian(0.5),
        Matern(),
        Polynomial(2),
        NeuralTangent(1),
        GeneralizedZonal(lambda t: np.ones((len(t), 2, 1))),
        kernels.Product([([0], Gaussian(0.5))]),
        kernels.Sum([([0], Gaussian(0.5))]),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_rows_of_other_columns_are_refused_and_no_rows_have_no_values(kernel):
    X = gaussian(5, 3)
    for columns in (1, 2):
        for pair in ((X, X[:, :columns]), (X[:, :columns], X)):
            with pytest.raises(ValueError, match=r"Y has .*X .*pass the same columns"):
                kernel(*pair)
    assert kernel(X[:0]).shape == (0, 0)
    assert kernel(X[:0], X).shape == (0, 5)
