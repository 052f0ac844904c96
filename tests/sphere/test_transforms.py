"""Harmonics at scattered points: sums and adjoints as the reference has them, and how stable they are."""

import numpy as np
import pytest
from points import sphere
from scipy.fft import dct

from gzkcore import reference
from gzkcore._compiled import legendre
from gzkcore._util.nonuniform import Exponentials
from gzkcore.sphere.transforms import HarmonicSums, angles_of, zonal_coefficients

finufft = pytest.importorskip("finufft")
formulas = reference.fast_sums


def as_array(coefficients):
    """Return the coefficients of the reference in the layout of `HarmonicSums`."""
    found = np.zeros((len(coefficients), len(coefficients), 2), np.complex128)
    for ell, orders in enumerate(coefficients):
        for m, value in orders.items():
            found[abs(m), ell, int(m < 0)] = value
    return found


def points():
    return np.concatenate([sphere(9, 3), np.eye(3), -np.eye(3)])


def test_sums_and_adjoint_are_those_of_the_reference():
    rng, X = np.random.default_rng(0), points()
    coefficients = [
        {m: complex(*rng.standard_normal(2)) for m in range(-ell, ell + 1)} for ell in range(6)
    ]
    values = rng.standard_normal(len(X)) + 1j * rng.standard_normal(len(X))
    sums = HarmonicSums(angles_of(X), 5, 1e-13)
    expected = formulas.harmonic_synthesis(coefficients, X.tolist())
    np.testing.assert_allclose(sums.synthesis(as_array(coefficients)), expected, atol=1e-10)
    adjoint = formulas.harmonic_adjoint(values.tolist(), X.tolist(), 5)
    np.testing.assert_allclose(sums.adjoint(values), as_array(adjoint), atol=1e-10)


def test_legendre_functions_on_rings_are_those_of_the_reference():
    """The rings of one block of the kernel, and of several; an even and an odd number of them."""
    degree = 9
    for n_rings in (11, 12, 200, 301):
        theta = np.pi * np.arange(n_rings) / (n_rings - 1)
        rng = np.random.default_rng(0)
        coefficients = rng.standard_normal((degree + 1, degree + 1, 4))
        P = np.array([
            [
                [formulas.legendre_function(ell, m, x) if ell >= m else 0.0 for x in np.cos(theta)]
                for ell in range(degree + 1)
            ]
            for m in range(degree + 1)
        ])  # fmt: skip
        rings = np.empty((degree + 1, n_rings, 4))
        legendre.legendre_synthesis(coefficients, rings, 2)
        expected = np.einsum("mlj,mlq->mjq", P, coefficients)
        np.testing.assert_allclose(rings, expected, atol=1e-12)
        found = np.zeros_like(coefficients)
        legendre.legendre_adjoint(rings, found, 2)
        expected = np.einsum("mlj,mjq->mlq", P, rings)
        np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("degree", [700, pytest.param(4096, marks=pytest.mark.weekly)])
def test_functions_of_high_degree_have_norm_one(degree):
    """Near the poles they are below the range of doubles."""
    n_rings = 2 * degree + 2
    orders = [0, 1, 60, degree // 2, degree - 1, degree]
    coefficients = np.zeros((degree + 1, degree + 1, 4))
    coefficients[orders, degree, 0] = 1.0
    rings = np.empty((degree + 1, n_rings, 4))
    legendre.legendre_synthesis(coefficients, rings, 2)
    # Clenshaw and Curtis's rule: the integral of cos(k theta) sin(theta) is 2 / (1 - k^2).
    cosines = dct(rings[orders, :, 0] ** 2, type=1) / (n_rings - 1)
    cosines[:, [0, -1]] /= 2
    even = np.arange(0, n_rings, 2)
    norms = 2 * np.pi * cosines[:, even] @ (2 / (1.0 - even**2))
    np.testing.assert_allclose(norms, 1, rtol=1e-11)


def test_zonal_coefficients_are_those_of_the_reference():
    cosines = np.random.default_rng(0).standard_normal(12)
    np.testing.assert_allclose(
        zonal_coefficients(cosines), formulas.zonal_coefficients(cosines.tolist()), atol=1e-13
    )


def test_zonal_functions_are_sums_of_harmonics():
    """Funk and Hecke's formula with the addition theorem."""
    X = points()
    cosines = np.random.default_rng(1).standard_normal(8)
    weights = zonal_coefficients(cosines)
    angles = np.arccos(np.clip(X @ X.T, -1, 1))
    K = np.cos(angles[:, :, None] * np.arange(8)) @ cosines
    sums = HarmonicSums(angles_of(X), 7, 1e-13)
    v = np.linspace(-1, 1, len(X)) + 0j
    np.testing.assert_allclose(sums.synthesis(weights[:, None] * sums.adjoint(v)), K @ v, atol=1e-9)


def test_exponentials_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2 * np.pi, (7, 2))
    frequencies = [(j, k) for j in range(-2, 3) for k in range(-1, 2)]
    c = {k: complex(*rng.standard_normal(2)) for k in frequencies}
    values = rng.standard_normal(7) + 0j
    sums = Exponentials(X.T, (5, 3), 1e-13)
    given = np.zeros((5, 3), np.complex128)
    for k, value in c.items():
        given[k] = value
    np.testing.assert_allclose(
        sums.synthesis(given), formulas.fourier_synthesis(c, X.tolist()), atol=1e-11
    )
    expected = formulas.fourier_adjoint(values.tolist(), X.tolist(), frequencies)
    found = sums.adjoint(values)
    assert max(abs(found[k] - value) for k, value in expected.items()) < 1e-11


def test_groups_of_points_change_nothing_but_rounding(monkeypatch):
    X, v = sphere(9000, 3), np.linspace(0, 1, 9000) + 0j
    one = HarmonicSums(angles_of(X), 8, 1e-10)
    monkeypatch.setattr("gzkcore._util.nonuniform.POINTS_OF_GROUP", 100)
    some = HarmonicSums(angles_of(X), 8, 1e-10)
    assert len(some.exponentials.groups) > 1
    np.testing.assert_allclose(some.adjoint(v, 2), one.adjoint(v), atol=1e-10)
    c = one.adjoint(v)
    np.testing.assert_allclose(some.synthesis(c, 2), one.synthesis(c), atol=1e-10)
