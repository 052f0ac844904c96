"""Where series may stop, and the sizes of their terms."""

import mpmath
import numpy as np
import pytest
from scipy.special import gammaincc

from gzkcore.kernels import (
    DotProduct,
    Gaussian,
    NeuralTangent,
    Polynomial,
    RationalQuadratic,
    Zonal,
)
from gzkcore.kernels.radial import radial_table
from gzkcore.kernels.truncation import angular_energy, truncate
from gzkcore.sphere.series import gegenbauer_series
from gzkcore.sphere.special import alpha

GAUSSIAN = Gaussian(0.5)


@pytest.mark.parametrize(
    ("radius", "degrees"),
    [
        (0.5, [3, 5, 8]),
        (1, [5, 9, 12]),
        (2, [11, 17, 22]),
        (4, [30, 38, 47]),
        (8, [90, 105, 121]),
    ],
)
def test_truncate_is_the_poisson_rule(radius, degrees):
    for tol, expected in zip([1e-3, 1e-6, 1e-10], degrees, strict=True):
        degree, order, error = truncate(GAUSSIAN, 3, radius, tol)
        assert (degree, order) == (expected, expected // 2 + 1)
        # Pr(Poisson(r^2) > N)
        assert error == pytest.approx(1 - gammaincc(degree + 1, radius**2), rel=1e-5, abs=1e-14)
        assert error <= tol


def test_truncate_knows_units_and_zonal_kernels():
    assert truncate(Gaussian(2.0), 3, 1.0, 1e-6) == truncate(GAUSSIAN, 3, 2.0, 1e-6)
    c = gegenbauer_series(np.exp, 4, 30)
    degree, order, error = truncate(Zonal(np.exp), 4, 1.0, 1e-6)
    tails = np.exp(1) - np.cumsum(c)
    assert order == 1
    assert tails[degree] <= 1e-6 < tails[degree - 1]
    assert error == pytest.approx(tails[degree], abs=1e-12)


@pytest.mark.parametrize("kernel", [Polynomial(7), Polynomial(4, coef0=0), DotProduct([1, 0, 1])])
def test_truncate_ends_with_the_polynomial(kernel):
    """G4: a polynomial of degree p needs s = p // 2 + 1."""
    p = kernel.n_derivatives() - 1
    assert truncate(kernel, 3, 2.0, 1e-30) == (p, p // 2 + 1, 0.0)


def test_truncate_of_other_kernels():
    degree, order, error = truncate(NeuralTangent(1), 3, 2.0, 1e-2)
    assert order == 1
    assert degree > 16
    assert error <= 1e-2
    degree, order, error = truncate(RationalQuadratic(), 3, 1.0, 1e-6)
    assert error <= 1e-6
    assert 8 <= degree <= 32
    assert 2 <= order <= 12


ENERGIES = [
    (0, 1, 1, 3, 0.43233235838169365405),
    (4, 1, 2, 3, 0.014965355072498135684),
    (2, 0.5, 1.5, 5, 0.066504006124498667243),
    (7, 2, 2, 9, 0.016627051853035596584),
    (3, 4, 3, 16, 0.016776574667094104128),
    (20, 8, 8, 3, 0.012067300177374200443),
    (10, 1, 1, 300, 8.771136288468941e-8),
    (200, 30, 29, 3, 1.412018522170568e-11),
    (14, 6.98e-9, 0.02264, 16, 2.1938988052804766e-150),
    (0, 1000, 1000, 3, 5e-7),
    (5000, 1000, 1000, 16, 0.00013224329245706751),
    (3, 0, 1, 3, 0.0),
    (2, 1, 1, 1, 0.0),
]


@pytest.mark.parametrize(("ell", "a", "b", "dim", "expected"), ENERGIES)
def test_angular_energy(ell, a, b, dim, expected):
    value = angular_energy(ell, a, b, dim)
    # No factor is off by more than a few eps, and there are some l + ab of them.
    assert value == pytest.approx(expected, rel=1e-15 * (30 + (ell + a * b) ** 0.5), abs=0)
    orders = 700 if a > 9 else 60
    if ell <= 20 and a < 100:
        h, g = radial_table(GAUSSIAN, [a, b], dim, ell, orders)[:, ell]
        assert h @ g == pytest.approx(expected, rel=4e-12)


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 9, 16, 64, 300])
def test_coefficients_to_twelve_digits(dim):
    """A_l(r, r) and h_(l,i)(r) against 50 digits wherever they exceed 1e-290."""
    with mpmath.workdps(50):
        nu = mpmath.mpf(dim) / 2 - 1
        for r in [1e-3, 0.1, 1.0, 5.0, 30.0]:
            for ell in [0, 1, 2, 7, 40, 200] if dim > 1 else [0, 1]:
                z = mpmath.mpf(r) ** 2
                front = mpmath.exp(-z) * alpha(ell, dim) * mpmath.gamma(nu + 1)
                exact = front * (2 / z) ** nu * mpmath.besseli(ell + nu, z)
                value = angular_energy(ell, r, r, dim)
                assert value == pytest.approx(float(exact), rel=1e-12, abs=1e-290)
                for i in [0, 3, 200]:
                    square = front * (z / 2) ** (ell + 2 * i)
                    square /= mpmath.factorial(i) * mpmath.gamma(i + ell + nu + 1)
                    if r < 30 and i == 200:
                        continue
                    h = radial_table(GAUSSIAN, [r], dim, ell, i + 1)[0, ell, i]
                    assert h == pytest.approx(float(mpmath.sqrt(square)), rel=1e-12, abs=1e-290)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: truncate(GAUSSIAN, 3, 1.0, 0.0), ValueError, r"tol=0.0 .* finite number > 0"),
        (lambda: truncate(GAUSSIAN, 3, -1.0, 1e-3), ValueError, r"radius=-1.0 .* number > 0"),
        (lambda: truncate(GAUSSIAN, 0, 1.0, 1e-3), ValueError, r"dim=0 is too small"),
        (
            lambda: truncate(Zonal(lambda t: 1 - np.sqrt(1 - t)), 3, 1.0, 1e-9),
            ValueError,
            r"tol=1e-09 needs a degree above 4096 in dimension 3; use a larger tol",
        ),
        (lambda: angular_energy(0, -1.0, 1.0, 3), ValueError, r"a=-1.0 .* number > 0"),
        (lambda: angular_energy(0, 1.0, np.nan, 3), ValueError, r"b=nan .* number > 0"),
        (lambda: angular_energy(0, "1", 1.0, 3), TypeError, r"a='1' is not a number"),
        (lambda: angular_energy(0, 1e9, 1e9, 3), ValueError, r"a \* b = 1e\+18 needs a sum"),
    ],
)
def test_bad_numbers(call, error, message):
    with pytest.raises(error, match=message):
        call()
