"""Definitions of the Gegenbauer series, the radial functions and the truncation."""

from fractions import Fraction
from math import exp, factorial, inf, isclose, log, sinh, sqrt

import mpmath
import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import poisson

from gzkcore import reference

series, special = reference.series, reference.special
GAUSSIAN = reference.kernels.Gaussian()
EXPONENTIAL_DOT = reference.kernels.ExponentialDot()

# Dimension -> coefficients by degree.
EXP_2T = {
    2: {
        0: 2.2795853023360672674, 1: 3.1812737092746581268, 2: 1.3778968953974764081,
        5: 0.019651358646263404642, 10: 6.0339277587013687309e-7,
    },
    3: {
        0: 1.8134302039235093838, 1: 2.9231482307401831136, 2: 1.7592804427670891352,
        3: 0.66319765537561529188, 4: 0.18231534779049162987, 5: 0.039433331313977208678,
        6: 0.0070277377120804978471, 7: 0.0010646916784560961627, 8: 0.00014023927968998749385,
    },
    5: {
        0: 1.4615741153700915568, 1: 2.6389206641506337028, 2: 1.9895929661268458756,
        5: 0.073791245976845227394, 10: 5.3235867405663370135e-6,
    },
    8: {
        0: 1.2764397554391159316, 1: 2.4349713590006514354, 2: 2.0633926578576574874,
        5: 0.11168385787371056819, 10: 0.000013464678086468584534,
    },
}  # fmt: skip


def neural_tangent(depth):
    """Return K_relu^(L) as a function on [-1, 1]."""
    return lambda t: reference.kernels.neural_tangent([1, 0], [t, sqrt(1 - t * t)], depth)


@pytest.mark.parametrize("dim", EXP_2T)
def test_series_of_exp_2t(dim):
    """Eq 8 by quadrature, and by mu from the Taylor derivatives, exact as far as they go."""
    degree = max(EXP_2T[dim])
    by_integral = series.gegenbauer_series(lambda t: exp(2 * t), dim, degree)
    by_taylor = series.gegenbauer_series(None, dim, degree, derivatives=[2**j for j in range(60)])
    assert all(isinstance(c, Fraction) for c in by_taylor)
    for ell, expected in EXP_2T[dim].items():
        assert isclose(by_taylor[ell], expected, rel_tol=1e-15)
        rounding = 1e-15 * special.alpha(ell, dim) * exp(2)  # 4 ulps of a mean of terms <= exp(2)
        assert abs(by_integral[ell] - expected) <= rounding


def test_series_in_one_dimension():
    """S^0 is two points: the even and the odd part, by both ways."""
    even, odd = (exp(2) + exp(-2)) / 2, (exp(2) - exp(-2)) / 2
    by_values = series.gegenbauer_series(lambda t: exp(2 * t), 1, 3)
    by_taylor = series.gegenbauer_series(None, 1, 3, derivatives=[2.0**j for j in range(60)])
    assert by_values == pytest.approx([even, odd, 0, 0], rel=1e-14)
    assert by_taylor == pytest.approx([even, odd, 0, 0], rel=1e-14)
    assert series.gegenbauer_series(lambda t: 7.0, 1, 0) == [7.0]


@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_a_polynomial_is_its_series(dim):
    """Eq 7 undoes Eq 8: exactly in fractions."""
    polynomial = [Fraction(2), Fraction(-1), Fraction(0), Fraction(1, 3), Fraction(5)]
    derivatives = [a * factorial(j) for j, a in enumerate(polynomial)]
    c = series.gegenbauer_series(None, dim, 4, derivatives=derivatives)
    points = [Fraction(-1), Fraction(1)] if dim == 1 else [Fraction(-1), Fraction(2, 7)]
    expected = [sum(a * t**j for j, a in enumerate(polynomial)) for t in points]
    assert series.zonal_sum(c, dim, points) == expected


@pytest.mark.parametrize(("depth", "dim", "expected"), [
    (1, 3, [0.5, 1, 25 / 64, 0, 3 / 64, 0, 1.824951171875e-2, 0, 9.857177734372e-3]),
    (2, 3, [0.9302519316423, 1.112349562589, 0.5368378564012, 0.1305085404923, 8.228819545226e-2, 3.363651762372e-2, 3.217964450885e-2]),
    (2, 9, [0.7584116704179, 1.015364615929, 0.6100942483235, 0.1709305256824, 0.1102482983562, 4.654654602384e-2]),
])  # fmt: skip
def test_series_of_the_neural_tangent_kernel(depth, dim, expected):
    """A square root at t = 1 that is harmless in theta."""
    c = series.gegenbauer_series(neural_tangent(depth), dim, len(expected) - 1)
    assert c == pytest.approx(expected, abs=2e-12)


def test_neural_tangent_series_converges_slowly():
    """The kernel isn't analytic: at t = 1 the error falls like 1/q, Lemma 2's remark or not."""
    c = series.gegenbauer_series(neural_tangent(2), 3, 15)
    assert series.zonal_sum(c, 3, 1.0) == pytest.approx(3 - 6.1e-2, abs=1e-3)


@pytest.mark.parametrize(
    ("dim", "errors"),
    [(2, (3.7e-3, 5.9e-8)), (4, (1.3e-2, 3.6e-7)), (8, (3.1e-2, 1.7e-6)), (32, (7.95e-2, 1.55e-5))],
)
def test_figure_1(dim, errors):
    """Largest error of the series of exp(2t) at the degrees 5 and 10."""
    t = np.linspace(-1, 1, 41)
    c = series.gegenbauer_series(None, dim, 10, derivatives=[2.0**j for j in range(60)])
    for degree, expected in zip((5, 10), errors, strict=True):
        error = np.max(np.abs(np.exp(2 * t) - series.zonal_sum(c[: degree + 1], dim, t)))
        assert error == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("ell", "i", "t", "dim", "expected"), [
    (0, 0, 1, 3, exp(-0.5)), (1, 0, 1, 3, 0.6065306597126334236),
    (2, 1, 1.5, 3, 0.25360575163968854825), (5, 3, 2, 5, 0.02583276419380135557),
    (3, 2, 0.5, 9, 5.3144847126856904291e-5), (10, 4, 4, 16, 0.15215726718636277036),
    (0, 0, 0, 5, 1), (1, 0, 0, 5, 0),
])  # fmt: skip
def test_radial_table_known_values(ell, i, t, dim, expected):
    table = series.radial_table(GAUSSIAN, [t], dim, ell, i + 1)
    assert isclose(table[0][ell][i], expected, rel_tol=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3, 9])
def test_radial_table_as_printed(dim):
    """Eq 12 with its Gamma functions, against the table without and with the envelope."""
    t = 1.7
    plain = series.radial_table(EXPONENTIAL_DOT, [t], dim, 6, 4)[0]
    gaussian = series.radial_table(GAUSSIAN, [t], dim, 6, 4)[0]
    for ell in range(7):
        for i in range(4):
            with mpmath.workdps(30):
                printed = mpmath.sqrt(
                    special.alpha(ell, dim)
                    / mpmath.mpf(2) ** ell
                    * mpmath.gamma(mpmath.mpf(dim) / 2)
                    / (mpmath.sqrt(mpmath.pi) * mpmath.factorial(2 * i))
                    * mpmath.gamma(mpmath.mpf(1) / 2 + i)
                    / mpmath.gamma(i + ell + mpmath.mpf(dim) / 2)
                ) * mpmath.mpf(t) ** (ell + 2 * i)
            assert isclose(plain[ell][i], printed, rel_tol=1e-13)
            assert isclose(gaussian[ell][i], printed * exp(-t * t / 2), rel_tol=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3, 20, 300])
@pytest.mark.parametrize("norm", [0.0, 0.3, 1.0, 4.0])
def test_radial_functions_add_up_to_the_diagonal(dim, norm):
    """sum_(l,i) h_(l,i)(t)^2 = k(x, x) = 1 for the Gaussian."""
    table = series.radial_table(GAUSSIAN, [norm], dim, 60, 40)[0]
    squares = [value**2 for row in table for value in row]
    assert sum(squares) == pytest.approx(1, rel=1e-12)
    assert max(squares) <= 1


def test_radial_table_does_not_overflow():
    """r^(l+2i) alone reaches 1e450 here, Gamma(i+l+d/2) 1e1000."""
    table = series.radial_table(GAUSSIAN, [8.0, 30.0], 64, 100, 200)
    values = np.array(table)
    assert np.all(np.isfinite(values))
    assert values.max() <= 1


def test_radial_table_of_a_zero_derivative():
    """kappa = 1 + t^2 / 2: log 0 is -inf, and the component is 0."""

    class Quadratic:
        def log_derivative(self, j):
            return 0.0 if j in (0, 2) else -inf

        def log_envelope(self, t):
            return 0.0

    h = series.radial_table(Quadratic(), [1.5], 3, 3, 3)[0]
    diagonal = sum(value**2 for row in h for value in row)
    assert diagonal == pytest.approx(1 + 1.5**4 / 2, rel=1e-14)
    assert h[1] == h[3] == [0.0, 0.0, 0.0]


def test_polynomials_need_half_their_degree_as_order():
    """t^5 needs i = 0, 1, 2: its even derivatives vanish from i = 1 on, and that isn't enough."""

    class FifthPower:
        def log_derivative(self, j):
            return log(120) if j == 5 else -inf

        def log_envelope(self, t):
            return 0.0

    def kernel(order):
        h = series.radial_table(FifthPower(), [1.0], 3, 5, order)[0]
        c = [sum(value**2 for value in row) for row in h]
        return series.zonal_sum(c, 3, 0.3)

    assert kernel(3) == pytest.approx(0.3**5, rel=1e-12)
    assert abs(kernel(2) - 0.3**5) > 0.01
    assert abs(kernel(1) - 0.3**5) > 0.01


@pytest.mark.parametrize(("ell", "a", "b", "dim", "expected"), [
    (0, 1, 1, 3, 0.43233235838169365405), (4, 1, 2, 3, 0.014965355072498135684),
    (2, 0.5, 1.5, 5, 0.066504006124498667243), (7, 2, 2, 9, 0.016627051853035596584),
    (3, 4, 3, 16, 0.016776574667094104128), (20, 8, 8, 3, 0.012067300177374200443),
    (10, 1, 1, 300, 8.77113628847e-8), (200, 30, 29, 3, 1.41201852217e-11),
])  # fmt: skip
def test_angular_energy_known_values(ell, a, b, dim, expected):
    assert isclose(series.angular_energy(ell, a, b, dim), expected, rel_tol=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 3, 8])
def test_angular_energy_is_the_sum_of_radial_products(dim):
    a, b = 0.7, 1.9
    h_a, h_b = series.radial_table(GAUSSIAN, [a, b], dim, 5, 40)
    for ell in range(6):
        expected = sum(u * v for u, v in zip(h_a[ell], h_b[ell], strict=True))
        assert series.angular_energy(ell, a, b, dim) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dim", [2, 3, 9])
def test_angular_energy_is_a_bessel_function(dim):
    """exp(-(a-b)^2/2) alpha Gamma(nu+1) (2/ab)^nu ive(l+nu, ab), nu = d/2-1."""
    nu, a, b = dim / 2 - 1, 2.5, 2.0
    for ell in (0, 1, 5, 12):
        with mpmath.workdps(20):
            factor = special.alpha(ell, dim) * mpmath.gamma(nu + 1) * (2 / (a * b)) ** nu
        expected = exp(-((a - b) ** 2) / 2) * float(factor) * ive(ell + nu, a * b)
        assert series.angular_energy(ell, a, b, dim) == pytest.approx(expected, rel=1e-12)


def test_angular_energy_closed_forms():
    assert series.angular_energy(0, 1.0, 2.0, 3) == pytest.approx(exp(-2.5) * sinh(2) / 2)
    assert series.angular_energy(0, 0.0, 2.0, 5) == pytest.approx(exp(-2))
    assert series.angular_energy(3, 0.0, 2.0, 5) == 0
    assert series.angular_energy(2, 1.0, 1.0, 1) == 0


@pytest.mark.parametrize("dim", [2, 3, 7])
def test_angular_energies_are_the_series_on_a_sphere(dim):
    """On the sphere of radius r, c_l = A_l(r, r)."""
    r = 1.6
    c = series.gegenbauer_series(lambda t: exp(-r * r * (1 - t)), dim, 8)
    energies = [series.angular_energy(ell, r, r, dim) for ell in range(9)]
    assert c == pytest.approx(energies, abs=1e-12)


@pytest.mark.parametrize(
    ("tol", "powers"),
    [(1e-3, [3, 5, 11, 30, 90]), (1e-6, [5, 9, 17, 38, 105]), (1e-10, [8, 12, 22, 47, 121])],
)
def test_truncate_is_the_poisson_rule(tol, powers):
    for radius, power in zip([0.5, 1, 2, 4, 8], powers, strict=True):
        degree, order, error = series.truncate(GAUSSIAN, 3, radius, tol)
        assert (degree, order) == (power, power // 2 + 1)
        assert error == pytest.approx(poisson.sf(power, radius**2), rel=1e-10)
        assert poisson.sf(power - 1, radius**2) > tol >= error


def test_truncate_other_cases():
    assert series.truncate(GAUSSIAN, 3, 0.0, 1e-6) == (0, 1, 0.0)
    assert series.truncate(GAUSSIAN, 1, 2.0, 1e-6)[:2] == (1, 9)
    degree, order, error = series.truncate(EXPONENTIAL_DOT, 4, 1.5, 1e-8)
    remainder = exp(2.25) - sum(2.25**j / factorial(j) for j in range(degree + 1))
    assert order == degree // 2 + 1
    assert error == pytest.approx(remainder, abs=1e-14)
    assert error <= 1e-8


@pytest.mark.parametrize("dim", [1, 2, 3, 9])
@pytest.mark.parametrize("kernel", [GAUSSIAN, EXPONENTIAL_DOT], ids=["gaussian", "exponential"])
def test_truncation_error_is_never_exceeded(kernel, dim):
    radius = 2.0
    degree, order, error = series.truncate(kernel, dim, radius, 1e-4)
    rng = np.random.default_rng(5)
    norms = [radius, *(radius * rng.random(6))]
    table = series.radial_table(kernel, norms, dim, degree, order)
    cosines = [-1.0, 1.0] if dim == 1 else [-1.0, -0.3, 0.8, 1.0]
    P = [special.gegenbauer(ell, dim, cosines) for ell in range(degree + 1)]
    for a, h_a in zip(norms, table, strict=True):
        for b, h_b in zip(norms, table, strict=True):
            for index, t in enumerate(cosines):
                approximate = sum(
                    np.dot(h_a[ell], h_b[ell]) * P[ell][index] for ell in range(degree + 1)
                )
                exact = exp(kernel.log_envelope(a) + kernel.log_envelope(b) + a * b * t)
                assert abs(approximate - exact) <= error * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("n_nodes", [1, 2, 7, 64])
def test_gauss_legendre(n_nodes):
    """Numpy's nodes and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    rule = sorted(series.gauss_legendre(n_nodes))
    assert [x for x, _ in rule] == pytest.approx(nodes, abs=1e-14)
    assert [w for _, w in rule] == pytest.approx(weights, rel=1e-11)
