"""The constants and polynomials on the fast path: known values, high degrees, awkward input."""

import sys
from fractions import Fraction
from math import isclose

import mpmath
import numpy as np
import pytest
from tolerances import TWINS

from gzkcore import reference
from gzkcore.sphere import special
from gzkcore.sphere.harmonics import n_harmonics


@pytest.mark.parametrize(("degree", "dim", "expected"), [
    (5, 7, 378), (3, 9, 156), (10, 5, 506), (20, 16, 2210784840), (0, 1, 1), (1, 1, 1), (2, 1, 0), (7, 2, 2),
    (40, 100, 116009763223915969202678262585554700),
])  # fmt: skip
def test_alpha(degree, dim, expected):
    assert special.alpha(degree, dim) == reference.special.alpha(degree, dim) == expected


@pytest.mark.parametrize("dim", [1, 2, 3, 9, 100])
def test_alpha_of_arrays(dim):
    """Exact as long as whole numbers are in float64, and to rounding beyond."""
    degrees = np.arange(80).reshape(8, 10)
    exact = np.array([special.alpha(int(degree), dim) for degree in degrees.flat], dtype=object)
    found = special.alpha(degrees, dim)
    assert found.shape == degrees.shape
    small = exact < 2**53
    assert [int(value) for value in found.ravel()[small]] == exact[small].tolist()
    np.testing.assert_allclose(found.ravel(), exact.astype(float), rtol=TWINS["special.mu"]())


def test_alpha_beyond_the_range_of_float64():
    huge = special.alpha(2000, 3000)
    assert huge > 10**308
    assert special.alpha([0, 2000], 3000).tolist() == [1, np.inf]
    expected = float(mpmath.log(huge))
    assert special.log_alpha(2000, 3000) == pytest.approx(expected, rel=TWINS["special.mu"]())
    assert special.alpha(10**12, 3) == 2 * 10**12 + 1


@pytest.mark.parametrize("dim", [1, 2, 3, 9, 256])
def test_log_alpha(dim):
    degrees = np.arange(60)
    sizes = [special.alpha(int(degree), dim) for degree in degrees]
    expected = [float(mpmath.log(size)) if size else -np.inf for size in sizes]
    np.testing.assert_allclose(special.log_alpha(degrees, dim), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("degree", "dim", "t", "expected"), [
    (6, 5, Fraction(3, 10), Fraction(3453241, 64000000)),
    (7, 9, Fraction(-3, 5), Fraction(291, 78125)),
    (5, 2, Fraction(3, 10), Fraction(6243, 6250)),
    (4, 3, Fraction(1, 2), Fraction(-37, 128)),
    (30, 16, 0.5, -3.9955875730117939013e-6),
])  # fmt: skip
@pytest.mark.parametrize("name", ["gegenbauer", "rodrigues"])
def test_polynomial_known_values(name, degree, dim, t, expected):
    fast, exact = getattr(special, name), getattr(reference.special, name)
    if isinstance(expected, Fraction):
        assert exact(degree, dim, t) == expected
    assert isclose(exact(degree, dim, float(t)), expected, rel_tol=1e-14)
    length = 10 ** (degree / 2) if name == "rodrigues" else (degree + 1) ** 2
    tolerance = TWINS[f"special.{name}"](length=length)
    assert fast(degree, dim, float(t)) == pytest.approx(float(expected), abs=tolerance)


@pytest.mark.parametrize("dim", [2, 3, 16, 128])
@pytest.mark.parametrize("degree", [60, 150])
def test_gegenbauer_high_degree(degree, dim):
    """Against the exact fractions, where Eq 2 in floating point has no digit left."""
    t = np.array([-1, -0.999, -0.7, 0, 0.1, 0.5, 0.99, 1])
    expected = reference.special.gegenbauer(degree, dim, t)
    tolerance = TWINS["special.gegenbauer"](length=(degree + 1) ** 2)
    np.testing.assert_allclose(special.gegenbauer(degree, dim, t), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dim", [1, 2, 3, 9])
def test_gegenbauer_is_odd_or_even_and_one_at_one(dim):
    t = np.linspace(0, 1, 33)
    for degree in range(12):
        right, left = special.gegenbauer(degree, dim, t), special.gegenbauer(degree, dim, -t)
        np.testing.assert_array_equal(left, (-1) ** degree * right)
        assert right[-1] == 1
        assert np.abs(right).max() <= 1


@pytest.mark.parametrize(("degree", "power", "dim", "expected"), [
    (2, 6, 5, Fraction(4, 11)), (0, 6, 5, Fraction(1, 21)), (4, 6, 5, Fraction(40, 91)), (6, 6, 5, Fraction(64, 429)),
    (1, 5, 3, Fraction(3, 7)), (3, 5, 3, Fraction(4, 9)), (5, 5, 3, Fraction(8, 63)), (2, 4, 9, Fraction(16, 39)),
    (3, 7, 2, Fraction(21, 64)), (1, 3, 1, Fraction(1)), (1, 4, 3, Fraction(0)), (5, 3, 3, Fraction(0)),
])  # fmt: skip
def test_mu(degree, power, dim, expected):
    assert reference.special.mu(degree, power, dim) == expected
    assert isclose(special.mu(degree, power, dim), expected, rel_tol=TWINS["special.mu"]())


@pytest.mark.parametrize("dim", [1, 2, 3, 9, 100])
@pytest.mark.parametrize("power", [0, 1, 7, 40])
def test_mu_sums_to_one(power, dim):
    total = sum(special.mu(degree, power, dim) for degree in range(power + 1))
    assert total == pytest.approx(1, rel=TWINS["special.mu"](length=power + 1))


def test_mu_of_arrays():
    degrees, powers = np.arange(9)[:, None], np.arange(12)
    each = [[special.mu(int(l), int(j), 5) for j in powers] for l in range(9)]  # noqa: E741
    assert special.mu(degrees, powers, 5).tolist() == each
    with np.errstate(divide="ignore"):
        logs = np.log(each)
    np.testing.assert_allclose(special.log_mu(degrees, powers, 5), logs, atol=TWINS["special.mu"]())


def test_coefficients_are_those_of_eq_2():
    t = np.linspace(-1, 1, 9)
    for degree in range(9):
        c = special.gegenbauer_coefficients(degree, 5)
        powers = [t ** (degree - 2 * j) * (1 - t * t) ** j for j in range(c.size)]
        expected = special.gegenbauer(degree, 5, t)
        np.testing.assert_allclose(c @ powers, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("t", "shape", "dtype"), [
    (0.5, (), np.float64),
    (1, (), np.float64),
    ([], (0,), np.float64),
    ([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], (3, 2), np.float64),
    (np.float32(0.5), (), np.float32),
    (np.zeros((4, 6), np.float32)[::2, ::-3], (2, 2), np.float32),
    (np.zeros(3, np.int8), (3,), np.float64),
])  # fmt: skip
def test_shape_and_type_follow_t(t, shape, dtype):
    for function in (special.gegenbauer, special.rodrigues):
        value = function(3, 4, t)
        assert (np.shape(value), value.dtype) == (shape, dtype)


def test_nothing_is_written_to_t():
    t = np.linspace(-1, 1, 50)
    t.flags.writeable = False
    special.gegenbauer(5, 3, t)


@pytest.mark.parametrize("number", [2**61, 10**20, 10**400], ids=["2^61", "10^20", "10^400"])
def test_dimensions_and_degrees_beyond_what_kernels_count(number):
    for function in (special.alpha, special.gegenbauer_coefficients, special.gegenbauer, special.mu,
                     special.rodrigues, special.sphere_area):  # fmt: skip
        args = {special.sphere_area: (), special.gegenbauer_coefficients: (2,), special.alpha: (2,),
                special.mu: (2, 4)}  # fmt: skip
        given = {"dim": number, "t": [0.5]} if function not in args else {"dim": number}
        with pytest.raises(ValueError, match=r"^dim.* is too large; use an integer below [\d,]+$"):
            function(*args.get(function, (2,)), **given)
    for function in (special.gegenbauer, special.rodrigues):
        with pytest.raises(ValueError, match=r"^degree.* too large; use an integer below"):
            function(number, 3, [])


def test_the_largest_dimension():
    dim = sys.maxsize // 4
    assert special.gegenbauer(2, dim, [0.5, 1.0]) == pytest.approx([0.25, 1.0])
    assert special.gegenbauer_coefficients(2, dim) == pytest.approx([1, 0], abs=1e-15)
    assert special.alpha([1], dim) == dim
    assert special.alpha(1, dim) == dim
    assert special.alpha(0, dim) == n_harmonics(0, dim) == 1
    assert n_harmonics(1, dim) == dim + 1


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: special.alpha(-1, 3), ValueError, r"degree=-1 is too small; use an integer >= 0"),
    (lambda: special.alpha(np.array([2**63], np.uint64), 3), ValueError, r"degree=.* too large"),
    (lambda: special.alpha(2, 0), ValueError, r"dim=0 is too small; use an integer >= 1"),
    (lambda: special.alpha(2.0, 3), TypeError, r"degree=2.0 is not an integer"),
    (lambda: special.alpha(True, 3), TypeError, r"degree=True is not an integer"),
    (lambda: special.rodrigues(2, 1, 0.5), ValueError, r"dim=1 is too small; .* >= 2"),
    (lambda: special.mu(2, -1, 3), ValueError, r"power=-1 is too small"),
    (lambda: special.gegenbauer(2, 3, "x"), TypeError, r"t is not numeric .*; pass numbers"),
])  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
