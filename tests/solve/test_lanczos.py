"""Log determinants by Lanczos' quadrature: exact ones, known spectra, honest errors, failures told."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from points import normal, symmetric
from scipy import linalg
from scipy.linalg import LinAlgError
from tolerances import SOLVE

from gzkcore import Gaussian, reference
from gzkcore.solve import lanczos
from gzkcore.solve.lanczos import log_determinant
from gzkcore.solve.solve import NotPositiveDefinite


class Whitening:
    """P = Z Z^T + mu I for each mu, with all that `log_determinant` asks for."""

    def __init__(self, Z, mu):
        self.Z, self.mu = Z, mu
        self.P = [Z @ Z.T + each * np.eye(len(Z)) for each in mu]

    def solve(self, R, columns):
        solved = [np.linalg.solve(self.P[k], R[:, j]) for j, k in enumerate(columns)]
        return np.column_stack(solved)

    def sample(self, normals, column):
        far, near = np.split(normals, [self.Z.shape[1]])
        return self.Z @ far + np.sqrt(self.mu[column]) * near

    def log_determinant(self, column):
        return np.linalg.slogdet(self.P[column])[1]


def kernel_matrix(n=150, gamma=1.0):
    return Gaussian(gamma)(normal(n, 2, seed=0))


def exact(K, shifts, noise=1.0):
    return [np.linalg.slogdet(K + shift * noise * np.eye(len(K)))[1] for shift in shifts]


@pytest.mark.parametrize("n_steps", [1, 2, 5, 8])
def test_as_the_reference(n_steps):
    K, signs = kernel_matrix(20), np.random.default_rng(0).choice([-1.0, 1.0], (20, 3))
    A = K + 0.5 * np.eye(20)
    value = reference.solve.quadrature_log_determinant(A.tolist(), signs.T.tolist(), n_steps)
    found = log_determinant(K, [0.5], signs, tol=1e-300, max_iter=n_steps)
    assert found.n_iter == n_steps
    assert_allclose(found.value[0], value, atol=20 * SOLVE["quadrature"]())


def test_as_many_steps_as_distinct_eigenvalues():
    values = np.repeat([0.5, 2.0, 7.0], 10)
    A = symmetric(values)
    three = log_determinant(A, [0.0], normal(30, 4), tol=1e-300, max_iter=3)
    more = log_determinant(A, [0.0], normal(30, 4), tol=1e-12)
    assert_allclose(more.value, three.value, rtol=1e-9)
    assert more.converged.all()
    assert more.n_iter < 12
    # of each draw: what it has of the eigenvectors
    shares = np.linalg.eigh(A)[1].T @ normal(30, 4)
    each = 30 * np.log(values) @ shares**2 / np.square(shares).sum(axis=0)
    assert_allclose(more.value[0], each.mean(), rtol=1e-9)
    assert_allclose(more.standard_error[0], each.std(ddof=1) / 2, rtol=1e-9)


def test_what_is_exact_without_luck():
    found = log_determinant(np.zeros((40, 40)), [3.0], normal(40, 2))
    assert_allclose(found.value, 40 * np.log(3.0))
    assert found.standard_error[0] < 1e-10
    K, shifts = kernel_matrix(40), [0.1, 2.0]
    root = np.linalg.cholesky(K + 1e-9 * np.eye(40))
    found = log_determinant(K, shifts, normal(80, 3), preconditioner=Whitening(root, shifts))
    assert_allclose(found.value, exact(K, shifts), rtol=1e-6)
    assert found.standard_error.max() < 1e-4


def test_steps_come_down_to_the_value():
    K, draws = kernel_matrix(), normal(150, 5)
    values = [
        log_determinant(K, [0.1], draws, tol=1e-300, max_iter=steps).value[0]
        for steps in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert (np.diff(values) <= 1e-9).all()
    found = log_determinant(K, [0.1], draws)
    assert found.converged.all()
    assert abs(found.value[0] - values[-1]) < 0.05


def test_the_fastest_driver_may_give_up(monkeypatch):
    K, draws = kernel_matrix(), normal(150, 5)
    expected = log_determinant(K, [0.1], draws)

    def eigh_tridiagonal(diagonal, beside, lapack_driver="auto"):
        if lapack_driver != "stev":
            raise LinAlgError("stemr (eigh_tridiagonal) did not converge (LAPACK info=22)")
        return linalg.eigh_tridiagonal(diagonal, beside, lapack_driver=lapack_driver)

    monkeypatch.setattr(lanczos, "eigh_tridiagonal", eigh_tridiagonal)
    assert log_determinant(K, [0.1], draws).value == pytest.approx(expected.value, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("preconditioned", [pytest.param(False, marks=pytest.mark.weekly), True])
def test_the_errors_are_what_they_are_said_to_be(preconditioned):
    """Of 40 estimates of three determinants each, in units of their errors."""
    K, shifts, noise = kernel_matrix(), np.array([0.01, 0.1, 1.0]), 1.0
    values, vectors = np.linalg.eigh(K)
    Z = vectors[:, -20:] * np.sqrt(values[-20:])
    mu = np.maximum(shifts, values[:-20].sum() / len(K))
    best = Whitening(Z, mu) if preconditioned else None
    found = [
        log_determinant(
            K, shifts, normal(150 + 20 * preconditioned, 12, seed=seed), preconditioner=best
        )
        for seed in range(40)
    ]
    off = np.array([each.value - exact(K, shifts, noise) for each in found])
    errors = np.array([each.standard_error for each in found])
    assert (np.abs(off.mean(axis=0)) < 4 * errors.mean(axis=0) / np.sqrt(40)).all()
    assert (np.abs(np.log(off.std(axis=0) / errors.mean(axis=0))) < np.log(1.5)).all()
    if preconditioned:
        plain = log_determinant(K, shifts, normal(150, 12))
        assert (errors.mean(axis=0) < 0.7 * plain.standard_error).all()
        assert found[0].n_iter < plain.n_iter


def test_noise_of_each_row():
    K, noise = kernel_matrix(), np.random.default_rng(0).uniform(0.5, 2, 150)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (150, 30))
    found = log_determinant(lambda V: K @ V, [0.1, 1.0], signs, noise=noise)
    off = np.abs(found.value - exact(K, [0.1, 1.0], noise))
    assert (off < 4 * found.standard_error).all()


def test_failures_are_told():
    K = kernel_matrix(20)
    with pytest.raises(NotPositiveDefinite, match=r"K \+ 0\.1 N is not positive definite"):
        log_determinant(symmetric(np.linspace(-1, 2, 30)), [0.1], normal(30, 2))
    with pytest.raises(ValueError, match="normals has one column"):
        log_determinant(K, [0.1], normal(20, 1))
    with pytest.raises(ValueError, match="product gives numbers that are not finite"):
        log_determinant(K * np.nan, [0.1], normal(20, 2))
    with pytest.raises(ValueError, match=r"shifts=\[\] must be a list of one or more"):
        log_determinant(K, [], normal(20, 2))
    with pytest.raises(ValueError, match="must be finite and >= 0"):
        log_determinant(K, [-0.1], normal(20, 2))
    with pytest.raises(ValueError, match=r"product has shape \(20, 20\)"):
        log_determinant(K, [0.1], normal(21, 2))
    unfinished = log_determinant(K, [1e-3, 10.0], normal(20, 2), max_iter=6, tol=1e-8)
    assert unfinished.converged.tolist() == [False, True]
    assert unfinished.n_iter == 6
