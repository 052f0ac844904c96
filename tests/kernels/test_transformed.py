"""Kernels of linearly mapped rows: as the kernel of rows that are mapped beforehand."""

import numpy as np
import pytest
from points import gaussian
from scipy import sparse

from gzkcore import (
    FastfoodFeatures,
    GegenbauerFeatures,
    KernelOperator,
    KernelRidge,
    NystromFeatures,
    RandomFourierFeatures,
    kernel_matrix,
    load,
    save,
)
from gzkcore.kernels import Gaussian, Matern, Transformed

SQUARE = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, -0.3], [0.2, 0.0, 0.4]])


@pytest.mark.parametrize("matrix", [SQUARE, SQUARE[:2]], ids=["square", "to fewer columns"])
def test_rows_are_mapped_first(matrix, tmp_path):
    X, Y, V = gaussian(300, 3), gaussian(7, 3, seed=1), gaussian(300, 2, seed=2)
    kernel, inner = Transformed(Matern(1.5), matrix), Matern(1.5)
    A = matrix.T
    for found, expected in [
        (kernel(X, Y), inner(X @ A, Y @ A)),
        (kernel(sparse.csr_array(X)), inner(X @ A)),
        (kernel.diag(X), np.ones(300)),
        (kernel_matrix(kernel, X, Y), inner(X @ A, Y @ A)),
        (KernelOperator(kernel, X) @ V, inner(X @ A) @ V),
        (KernelOperator(kernel, Y, X) @ V, inner(Y @ A, X @ A) @ V),
        (KernelOperator(kernel, X, Y).T @ V, inner(Y @ A, X @ A) @ V),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    twice = Transformed(Transformed(inner, np.eye(len(matrix))[::-1]), matrix)
    np.testing.assert_allclose(kernel_matrix(twice, X, Y), kernel(X, Y), rtol=1e-10, atol=1e-12)
    save(kernel.resolve(X), tmp_path / "kernel.gzk")
    np.testing.assert_array_equal(load(tmp_path / "kernel.gzk")(X, Y), kernel(X, Y))


def test_rules_are_of_mapped_rows():
    X = gaussian(50, 3)
    kernel = Transformed("gaussian", SQUARE).resolve(X)
    assert kernel.kernel.gamma == Gaussian().resolve(X @ SQUARE.T).gamma
    assert Transformed("gaussian", SQUARE).set_params(kernel__gamma=2.0).kernel.gamma == 2.0
    with pytest.raises(ValueError, match="matrix has 3 columns, but X has 2"):
        kernel(X[:, :2])


def test_models_take_it():
    X, y = gaussian(200, 3), np.sin(gaussian(200, 3)[:, 0])
    kernel, mapped = Transformed(Matern(1.5), SQUARE), X @ SQUARE.T
    (mean, std), (expected, spread) = (
        KernelRidge(given, 0.1).fit(rows, y).predict(rows, return_std=True)
        for given, rows in ((kernel, X), (Matern(1.5), mapped))
    )
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(std, spread, rtol=1e-6)
    for make in (NystromFeatures, RandomFourierFeatures):
        one, other = (
            make(given, 64, random_state=0).fit_transform(rows)
            for given, rows in ((kernel, X), (Matern(1.5), mapped))
        )
        np.testing.assert_allclose(np.abs(one).mean(), np.abs(other).mean(), rtol=0.05)
    Z = RandomFourierFeatures(kernel, 4096, random_state=0).fit_transform(X)
    assert np.abs(Z @ Z.T - kernel(X)).mean() < 0.02
    for make in (GegenbauerFeatures, FastfoodFeatures):
        with pytest.raises(ValueError, match=r"NystromFeatures takes it|use RandomFourier"):
            make(kernel).fit(X)
    with pytest.raises(ValueError, match="no spectrum"):
        RandomFourierFeatures(Transformed(Matern(), SQUARE[:2])).fit(X)
