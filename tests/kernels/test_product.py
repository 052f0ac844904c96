"""Products of kernels on groups of columns."""

import numpy as np
import pytest
from points import gaussian
from scipy import sparse
from tolerances import IDENTITY

from gzkcore import load, save
from gzkcore.kernels import ArcCosine, Gaussian, Matern, NeuralTangent, Product, Sum


def test_the_kernel_is_the_product():
    X, Y = gaussian(9, 4), gaussian(5, 4, seed=1)
    kernel = Product([([0, 2], Gaussian(0.5)), (3, Gaussian(2.0))])
    expected = Gaussian(0.5)(X[:, [0, 2]], Y[:, [0, 2]]) * Gaussian(2.0)(X[:, [3]], Y[:, [3]])
    tolerance = IDENTITY["exact kernel"](length=np.square(X).sum(axis=1).max() ** 2)
    for value in (kernel(X, Y), kernel(sparse.csr_array(X), Y)):
        np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(kernel(X), kernel(X, X), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(kernel.diag(X), np.ones(9))


@pytest.mark.parametrize("of", [Product, Sum])
def test_the_diagonal_of_kernels_of_the_angle_is_exact(of):
    """Their square root at cosine 1 makes 1e-8 of an error of 1e-16 there."""
    X = gaussian(40, 4)
    kernel = of([([0, 1], NeuralTangent(3)), ([2, 3], ArcCosine(0))])
    np.testing.assert_allclose(np.diag(kernel(X)), kernel.diag(X), rtol=1e-13)
    np.testing.assert_array_equal(kernel.diag(X.tolist()), kernel.diag(X))
    for call in (kernel, kernel.diag):
        with pytest.raises(ValueError, match=r"X has shape \(4,\); pass an array of shape"):
            call(X[0])


def test_one_kernel_for_every_column_is_the_gaussian():
    X = gaussian(20, 3)
    tolerance = IDENTITY["exact kernel"](length=np.square(X).sum(axis=1).max() ** 2)
    expected = Gaussian(0.5)(X)
    np.testing.assert_allclose(Product(Gaussian(0.5))(X), expected, rtol=0, atol=tolerance)
    resolved = Product("gaussian").resolve(X)
    assert [index for index, _ in resolved.parts] == [[0], [1], [2]]
    gammas = [kernel.gamma for _, kernel in resolved.parts]
    np.testing.assert_allclose(gammas, 1 / X.var(axis=0))


def test_a_rule_is_no_number_yet():
    with pytest.raises(ValueError, match="gamma='scale' is not a number yet"):
        Product("gaussian")(np.ones((2, 2)))


def test_sums_of_kernels(tmp_path):
    X, Y = gaussian(9, 4), gaussian(5, 4, seed=1)
    kernel = Sum([([0, 2], Gaussian(0.5)), (slice(None), Matern(1.5))], [2.0, 0.5])
    expected = 2 * Gaussian(0.5)(X[:, [0, 2]], Y[:, [0, 2]]) + 0.5 * Matern(1.5)(X, Y)
    tolerance = IDENTITY["exact kernel"](length=np.square(X).sum(axis=1).max() ** 2)
    for value in (kernel(X, Y), kernel(sparse.csr_array(X), Y)):
        np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(kernel(X), kernel(X, X), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(kernel.diag(X), np.full(9, 2.5))
    assert kernel.set_params(kernel1__nu=2.5).parts[1][1].nu == 2.5

    resolved = Sum("gaussian").resolve(X)
    assert [index for index, _ in resolved.parts] == [[0], [1], [2], [3]]
    save(resolved, tmp_path / "sum.gzk")
    np.testing.assert_array_equal(load(tmp_path / "sum.gzk")(X, Y), resolved(X, Y))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, np.nan], "ab"])
def test_weights_of_sums_that_are_refused(weights):
    with pytest.raises(ValueError, match="must be 2 numbers > 0"):
        Sum([(0, Gaussian(0.5)), (1, Gaussian(0.5))], weights).resolve(gaussian(5, 2))
