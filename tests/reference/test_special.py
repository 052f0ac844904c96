"""Definitions of alpha, P, mu and the areas: exact fractions and identities.

Their known values stand in tests/sphere/test_special.py, beside those of the fast path.
"""

from fractions import Fraction
from math import comb, isclose, pi

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from gzkcore import reference

special = reference.special

POINTS = [Fraction(-1), Fraction(-3, 5), Fraction(0), Fraction(3, 10), Fraction(1, 2), Fraction(1)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: special.alpha(-1, 3), "degree=-1 is too small; use 0 or more"),
        (lambda: special.alpha(2, 0), "dim=0 is too small; use 1 or more"),
        (lambda: special.gegenbauer(-1, 3, 0.5), "degree=-1"),
        (lambda: special.gegenbauer(2, -1, 0.5), "dim=-1"),
        (lambda: special.rodrigues(-1, 3, 0.5), "degree=-1"),
        (lambda: special.mu(0, -1, 3), "power=-1"),
        (lambda: special.sphere_area(-1), "dim=-1"),
        (lambda: special.orthogonality(1, -2, 3), "other=-2"),
        (lambda: special.orthogonality(1, 1, 1), "dim=1 is too small; use 2 or more"),
        (lambda: reference.harmonics.n_harmonics(-1, 3), "degree=-1"),
        (lambda: reference.harmonics.spherical_harmonics([[1.0, 0.0]], -1), "degree=-1"),
        (lambda: reference.fast_sums.legendre_function(1, 2, 0.5), "degree=1 .* use 2 or more"),
        (lambda: reference.fast_sums.harmonic_adjoint([1.0], [[0, 0, 1]], -1), "degree=-1"),
        (lambda: reference.kernels.polynomial([1], [2], -1, 1, 1), "degree=-1"),
        (lambda: reference.kernels.arc_cosine([1], [2], -1), "order=-1"),
        (lambda: reference.kernels.neural_tangent([1], [2], -1), "depth=-1"),
        (lambda: reference.series.gegenbauer_series(None, 3, -1), "degree=-1"),
        (lambda: reference.sketch.tensor_sketch_variance([1], [2], -1, 4), "degree=-1"),
        (lambda: reference.polysketch.poly_sketch_variance([1], [2], 0, 4, 4), "degree=0"),
    ],
)
def test_numbers_for_which_a_formula_has_no_meaning_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_alpha_in_one_and_two_dimensions():
    assert [special.alpha(degree, 1) for degree in range(6)] == [1, 1, 0, 0, 0, 0]
    assert [special.alpha(degree, 2) for degree in range(6)] == [1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("dim", range(2, 12))
def test_alpha_other_forms(dim):
    """(2l+d-2)/l C(l+d-3, l-1), and the difference of dimensions of homogeneous polynomials."""
    for degree in range(1, 15):
        numerator = (2 * degree + dim - 2) * comb(degree + dim - 3, degree - 1)
        assert special.alpha(degree, dim) == Fraction(numerator, degree)


@pytest.mark.parametrize("dim", range(2, 10))
def test_rodrigues_is_eq_2(dim):
    """Eq 5 equals Eq 2 exactly: odd dimensions, even ones, and d = 2, where none is promised."""
    for degree in range(12):
        for t in POINTS:
            assert special.rodrigues(degree, dim, t) == special.gegenbauer(degree, dim, t)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 16])
def test_three_term_recurrence(dim):
    """(l+d-2) P_(l+1) = (2l+d-2) t P_l - l P_(l-1)."""
    points = POINTS if dim > 1 else [Fraction(-1), Fraction(1)]
    for t in points:
        P = [special.gegenbauer(degree, dim, t) for degree in range(14)]
        for ell in range(1, 13):
            right = (2 * ell + dim - 2) * t * P[ell] - ell * P[ell - 1]
            assert (ell + dim - 2) * P[ell + 1] == right


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 50])
def test_normalisation_parity_and_bound(dim):
    for degree in range(10):
        assert special.gegenbauer(degree, dim, 1) == 1
        for t in POINTS:
            value = special.gegenbauer(degree, dim, t)
            assert special.gegenbauer(degree, dim, -t) == (-1) ** degree * value
            assert abs(value) <= 1


def test_two_three_and_infinitely_many_dimensions():
    """Chebyshev, Legendre, and t^l in the limit."""
    with mpmath.workdps(30):
        for degree in range(9):
            for t in (-0.9, -0.2, 0.35, 0.8):
                chebyshev = mpmath.chebyt(degree, mpmath.mpf(t))
                legendre = mpmath.legendre(degree, mpmath.mpf(t))
                assert isclose(special.gegenbauer(degree, 2, t), chebyshev, rel_tol=1e-14)
                assert isclose(special.gegenbauer(degree, 3, t), legendre, rel_tol=1e-14)
                assert isclose(special.gegenbauer(degree, 10**9, t), t**degree, abs_tol=1e-7)


@pytest.mark.parametrize("dim", [3, 4, 9])
@pytest.mark.parametrize("degree", [3, 20, 60])
def test_gegenbauer_against_mpmath(degree, dim):
    """P_d^l = C_l^(d/2-1) / C_l^(d/2-1)(1), at high degree too."""
    with mpmath.workdps(60):
        nu = mpmath.mpf(dim) / 2 - 1
        for t in (-0.7, 0.1, 0.99):
            expected = mpmath.gegenbauer(degree, nu, t) / mpmath.gegenbauer(degree, nu, 1)
            assert isclose(special.gegenbauer(degree, dim, t), expected, rel_tol=1e-14)


def test_eq_2_in_floating_point_loses_its_digits():
    """Why the reference sums in fractions: at l = 100, d = 3 rounding reaches the first digits."""
    c = [float(each) for each in special.gegenbauer_coefficients(100, 3)]
    worst = 0.0
    for t in np.linspace(0.05, 0.95, 19):
        naive = sum(c[j] * t ** (100 - 2 * j) * (1 - t * t) ** j for j in range(51))
        worst = max(worst, abs(naive - special.gegenbauer(100, 3, t)))
    assert worst > 1e-3


def test_gegenbauer_keeps_the_kind_of_number():
    assert isinstance(special.gegenbauer(4, 3, Fraction(1, 3)), Fraction)
    assert isinstance(special.gegenbauer(4, 3, 0.3), float)
    assert isinstance(special.gegenbauer(4, 3, np.float32(0.25)), float)
    values = special.gegenbauer(4, 3, np.array([0.25, 0.5], dtype=np.float32))
    assert values == [special.gegenbauer(4, 3, 0.25), special.gegenbauer(4, 3, 0.5)]


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 10])
def test_orthogonality(dim):
    """Eq 3, exactly."""
    for degree in range(7):
        for other in range(7):
            expected = Fraction(int(degree == other), special.alpha(degree, dim))
            assert special.orthogonality(degree, other, dim) == expected


@pytest.mark.parametrize("dim", [3, 4, 5, 8])
def test_orthogonality_is_the_integral(dim):
    """The exact averages agree with the integral of Eq 3 as it is printed."""
    for degree, other in [(0, 0), (2, 2), (1, 3), (4, 4)]:
        integral, _ = quad(
            lambda t, degree=degree, other=other: (
                special.gegenbauer(degree, dim, t)
                * special.gegenbauer(other, dim, t)
                * (1 - t * t) ** ((dim - 3) / 2)
            ),
            -1,
            1,
        )
        ratio = special.sphere_area(dim) / special.sphere_area(dim - 1)
        expected = ratio * float(special.orthogonality(degree, other, dim))
        assert isclose(integral, expected, rel_tol=1e-7, abs_tol=1e-9)


@pytest.mark.parametrize("dim", range(1, 9))
def test_mu_expands_monomials(dim):
    """t^j = sum_l mu_l^j P_d^l(t), exactly; at t = 1 the mu add up to 1."""
    points = POINTS if dim > 1 else [Fraction(-1), Fraction(1)]
    for power in range(9):
        for t in points:
            total = sum(
                special.mu(degree, power, dim) * special.gegenbauer(degree, dim, t)
                for degree in range(power + 1)
            )
            assert total == t**power


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_mu_as_printed(dim):
    """Eq 29 with its Gamma functions, and zero for odd and negative j - l."""
    with mpmath.workdps(30):
        for degree in range(6):
            for power in range(10):
                if power < degree or (power - degree) % 2:
                    assert special.mu(degree, power, dim) == 0
                    continue
                printed = (
                    special.alpha(degree, dim)
                    / mpmath.mpf(2) ** degree
                    * mpmath.gamma(mpmath.mpf(dim) / 2)
                    * mpmath.factorial(power)
                    / (mpmath.sqrt(mpmath.pi) * mpmath.factorial(power - degree))
                    * mpmath.gamma(mpmath.mpf(power - degree + 1) / 2)
                    / mpmath.gamma(mpmath.mpf(power + degree + dim) / 2)
                )
                exact = special.mu(degree, power, dim)
                assert abs(mpmath.mpf(exact.numerator) / exact.denominator - printed) < 1e-25


def test_sphere_area():
    expected = [2, 2 * pi, 4 * pi, 2 * pi**2, 8 * pi**2 / 3]
    assert [special.sphere_area(dim) for dim in range(1, 6)] == pytest.approx(expected, rel=1e-14)
    assert special.sphere_area(400) > 0  # Gamma(200) alone would overflow
