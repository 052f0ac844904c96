"""Radial functions: known values, rotations that leave the kernel as it is, residuals."""

from math import exp

import numpy as np
import pytest
from naming import named
from tolerances import IDENTITY, TWINS

from gzkcore import reference
from gzkcore.kernels import (
    ArcCosine,
    DotProduct,
    ExponentialDot,
    Gaussian,
    GeneralizedZonal,
    Laplacian,
    Matern,
    NeuralTangent,
    Polynomial,
    RationalQuadratic,
    Spherical,
    Zonal,
)
from gzkcore.kernels.radial import RadialFunctions, radial_table
from gzkcore.kernels.truncation import angular_energy, truncate
from gzkcore.sphere.special import gegenbauer

GAUSSIAN = Gaussian(0.5)


@pytest.mark.parametrize(
    ("ell", "i", "t", "dim", "expected"),
    [
        (0, 0, 1, 3, exp(-0.5)),
        (1, 0, 1, 3, 0.6065306597126334236),
        (2, 1, 1.5, 3, 0.2536057516396885),
        (5, 3, 2, 5, 0.02583276419380135557),
        (3, 2, 0.5, 9, 5.3144847126856904291e-5),
        (10, 4, 4, 16, 0.15215726718636277036),
        (0, 0, 0, 5, 1),
        (1, 0, 0, 5, 0),
    ],
)
def test_radial_functions_of_the_gaussian(ell, i, t, dim, expected):
    table = radial_table(GAUSSIAN, [t], dim, ell, i + 1)
    assert table.shape == (1, ell + 1, i + 1)
    assert table[0, ell, i] == pytest.approx(expected, rel=TWINS["series.radial_table"]())


@pytest.mark.parametrize(
    ("dim", "t"), [(1, 2.0), (2, 1.0), (3, 8.0), (9, 4.0), (256, 5.0), (5, 0.0)]
)
def test_squares_of_the_radial_functions_sum_to_one(dim, t):
    """Lemma 15: k(x, x) = 1, also where Gamma, t^(l+2i) and alpha overflow."""
    q = int(t * t + 10 * t + 20)
    table = radial_table(GAUSSIAN, [t], dim, q, q)
    assert table.max() <= 1 + 1e-12
    assert np.square(table).sum() == pytest.approx(1, rel=IDENTITY["closed form"](length=q * q))


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (ExponentialDot(1.0), reference.kernels.ExponentialDot()),
        (Polynomial(5, coef0=2.0), reference.kernels.Polynomial(5, 2.0)),
        (Polynomial(4, coef0=0), reference.kernels.Polynomial(4, 0)),
        (DotProduct([1, 0, 2.5]), reference.kernels.DotProduct([1, 0, 2.5])),
    ],
    ids=named,
)
@pytest.mark.parametrize("dim", [1, 3, 16])
def test_radial_tables_of_dot_products_are_the_formula(kernel, formula, dim):
    norms = [0.0, 0.3, 2.0]
    expected = np.array(reference.series.radial_table(formula, norms, dim, 6, 4))
    tolerance = TWINS["series.radial_table"]()
    np.testing.assert_allclose(
        radial_table(kernel, norms, dim, 6, 4), expected, rtol=tolerance, atol=tolerance
    )


SHELLS = {
    "point": (0.0, 0.0),
    "sphere": (2.0, 2.0),
    "thin": (2.0, 2.001),
    "thick": (1.0, 3.0),
    "ball": (0.0, 4.0),
}


def functions(dim, low, high, n_columns=200, tol=1e-12, **cut):
    norms = np.linspace(low, high, 64)
    return RadialFunctions(GAUSSIAN, dim, (low, high), norms, n_columns, tol, **cut)


@pytest.mark.parametrize("dim", [1, 2, 3, 9, 64, 256])
@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_rotation_leaves_the_kernel_as_it_is(shell, dim):
    radial = functions(dim, *shell)
    grid = np.linspace(*shell, 40)
    values = radial.exact(grid)
    for degree in range(min(8, radial.degree.max() + 1)):
        here = values[:, radial.degree == degree]
        expected = [[angular_energy(degree, a, b, dim) for b in grid[::13]] for a in grid]
        np.testing.assert_allclose(here @ here[::13].T, expected, rtol=0, atol=2e-12)


@pytest.mark.parametrize(("dim", "high", "most"), [(3, 4, 10), (9, 4, 8), (3, 2, 6), (9, 2, 5)])
def test_rotation_needs_few_functions(dim, high, most):
    """For tol 1e-6: at r = 4 10 functions instead of 20 monomials (d = 3), 8 instead of 17 (d = 9)."""
    radial = functions(dim, 0.0, high, tol=1e-6)
    needed = radial.energy * (radial.degree == 0) > 1e-6 / (2 * (radial.degree.max() + 1))
    assert needed.sum() <= most + 1


@pytest.mark.parametrize("kernel", [GAUSSIAN, Matern(nu=1.5, length_scale=1.0)], ids=named)
def test_a_line_has_the_degrees_0_and_1_alone(kernel):
    # Thousands of further ones were decomposed too, of no harmonics, where one row is far out.
    norms = np.linspace(0.1, 40.0, 64)
    radial = RadialFunctions(kernel, 1, (0.1, 40.0), norms, 256, 1e-12)
    assert radial._family.n_degrees == 2


@pytest.mark.parametrize("dim", [1, 2, 3, 9])
@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_residual_is_never_exceeded(shell, dim, share):
    """|k - kept part| over random pairs in the shell, half of them fully parallel."""
    radial = functions(dim, *shell, n_columns=50, tol=1e-6)
    kept = np.zeros(radial.degree.size, dtype=bool)
    kept[np.argsort(-radial.energy)[: max(1, round(share * kept.size))]] = True
    bound = radial.largest_residual(kept) + 64 * np.finfo(float).eps
    rng = np.random.default_rng(5)
    a, b = rng.uniform(*shell, (2, 4000))
    b[:1000] = a[:1000]
    a[:100] = b[:100] = shell[1]
    t = rng.uniform(-1, 1, a.size) if dim > 1 else rng.choice([-1.0, 1.0], a.size)
    t[: a.size // 2] = 1
    t[:400:2] = -1
    values = radial.exact(a)[:, kept] * radial.exact(b)[:, kept]
    approximation = np.zeros(a.size)
    for degree in np.unique(radial.degree[kept]):
        here = radial.degree[kept] == degree
        approximation += values[:, here].sum(axis=1) * gegenbauer(int(degree), dim, t)
    exact = np.exp(-0.5 * (a * a + b * b - 2 * a * b * t))
    error = np.abs(exact - approximation).max()
    assert error <= bound
    if share < 1 and not bound < 1e-13:
        assert error >= 0.05 * bound  # and it is not a bound for its own sake


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interpolation_is_exact_to_rounding(shell, dtype):
    radial = functions(5, *shell)
    columns = np.arange(0, radial.degree.size, 3)
    norms = np.random.default_rng(0).uniform(*shell, 500)
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    values = radial(norms, columns, dtype)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, radial.exact(norms, columns), rtol=0, atol=tolerance)


def test_norms_outside_the_shell_come_from_the_formulas():
    radial = functions(3, 1.0, 2.0)
    columns = np.arange(radial.degree.size)
    norms = np.array([0.0, 0.5, 1.5, 2.5, 4.0])
    np.testing.assert_allclose(radial(norms, columns), radial.exact(norms), rtol=0, atol=1e-12)


def test_energies_are_mean_squares():
    radial = functions(3, 0.5, 2.0)
    expected = np.square(radial.exact(np.linspace(0.5, 2.0, 64))).mean(axis=0)
    np.testing.assert_allclose(radial.energy, expected, rtol=0, atol=1e-14)


def test_zonal_functions_are_roots_of_the_coefficients():
    kernel = Zonal(coefficients=[0.5, 0.0, 2.0])
    radial = RadialFunctions(kernel, 3, (1.0, 1.0), np.ones(1), 50, 1e-12)
    assert radial.degree.tolist() == [0, 2]
    assert radial.energy.tolist() == [0.5, 2.0]
    assert radial(np.ones(3), np.arange(2)) == pytest.approx(np.sqrt([[0.5, 2.0]]))


def two_functions(t):
    """Return h_0, h_1 with values in R^2."""
    return np.stack([np.stack([1 + t, t], 1), np.stack([t, t * t], 1)], 1)


FAMILIES = {
    "exponential_dot": ExponentialDot(1.0),
    "polynomial": Polynomial(5),
    "even polynomial": Polynomial(4, coef0=0),
    "derivatives": DotProduct([1, 0, 2, 0, 3.0]),
    "ntk": NeuralTangent(2),
    "arc 1": ArcCosine(1),
    "arc 2": ArcCosine(2),
    "matern": Matern(),
    "rough matern": Matern(0.5),
    "rational": RationalQuadratic(),
    "general": GeneralizedZonal(two_functions),
}


def pairs(kernel, dim, shell, n=200):
    """Return norms a, b, cosines t, and the kernel there, half of the points fully parallel."""
    rng = np.random.default_rng(5)
    a, b = rng.uniform(*shell, (2, n))
    b[: n // 4] = a[: n // 4]
    t = rng.uniform(-1, 1, n) if dim > 1 else rng.choice([-1.0, 1.0], n)
    t[: n // 2] = 1.0
    x, y = np.zeros((2, n, dim))
    x[:, 0], y[:, 0] = a, b * t
    if dim > 1:
        y[:, 1] = b * np.sqrt(1 - t * t)
    exact = [kernel(x[i : i + 10], y[i : i + 10]).diagonal() for i in range(0, n, 10)]
    return a, b, t, np.concatenate(exact)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dim", [1, 3, 9])
@pytest.mark.parametrize(
    "shell", [pytest.param((1.5, 1.5), marks=pytest.mark.weekly), (0.5, 2.0), (0.0, 2.5)], ids=str
)
def test_every_family_is_the_kernel_within_its_residual(name, dim, shell):
    kernel = FAMILIES[name]
    radial = RadialFunctions(kernel, dim, shell, np.linspace(*shell, 32), 60, 1e-10)
    everything = np.ones(radial.degree.size, dtype=bool)
    a, b, t, exact = pairs(kernel, dim, shell)
    columns = np.arange(radial.degree.size)
    products = radial(a, columns) * radial(b, columns)
    values = np.zeros(a.size)
    for degree in np.unique(radial.degree):
        here = products[:, radial.degree == degree].sum(axis=1)
        values += here * gegenbauer(int(degree), dim, t)
    largest = radial.diagonal(np.array([shell[1]]))[0]
    # 1e-8: a cosine rounded near 1 moves a square root there by 1e-8
    assert np.abs(values - exact).max() <= radial.largest_residual(everything) + 2e-8 * largest
    assert radial.energy.min() > 0


@pytest.mark.parametrize(
    ("kernel", "degrees"),
    [
        (Polynomial(4, coef0=0), {0, 2, 4}),
        (DotProduct([0, 0, 0, 1.0]), {1, 3}),
        (ArcCosine(0), {0, 1, 3, 5, 7}),
        (ArcCosine(1), {0, 1, 2, 4, 6, 8}),
        (ArcCosine(2), {0, 1, 2, 3, 5, 7}),
        (Zonal(lambda t: t**4), {0, 2, 4}),
    ],
    ids=named,
)
@pytest.mark.parametrize("shell", [(1.0, 1.0), (0.5, 1.5)], ids=str)
def test_symmetric_kernels_use_half_the_degrees(kernel, degrees, shell):
    if kernel.unit_sphere:
        shell = (1.0, 1.0)
    radial = RadialFunctions(kernel, 3, shell, np.linspace(*shell, 8), 30, 1e-6)
    assert set(radial.degree[radial.degree < 9].tolist()) == degrees


def test_a_distance_that_is_no_kernel_says_at_which_degree():
    class Ball(Matern):
        def profile(self, distances):
            return np.maximum(1 - distances / 2, 0.0)  # positive definite on the line only

    with pytest.raises(ValueError, match=r"not positive definite in dimension 3: .* of degree \d+"):
        RadialFunctions(Ball(), 3, (0.5, 2.0), np.linspace(0.5, 2, 16), 60, 1e-6)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Spherical()], ids=str)
def test_what_is_no_generalized_zonal_kernel_says_what_to_use(kernel):
    with pytest.raises(ValueError, match=r"is not a generalized zonal kernel: .*use .*Exponential"):
        RadialFunctions(kernel, 3, (0.5, 2.0), np.ones(1), 60, 1e-6)


@pytest.mark.parametrize("kernel", [ExponentialDot(1.0), Polynomial(200)], ids=str)
def test_what_overflows_says_so(kernel):
    with pytest.raises(ValueError, match=r"overflows at points of scaled norm 1000; scale"):
        RadialFunctions(kernel, 3, (0.0, 1e3), np.linspace(0, 1e3, 8), 60, 1e-6)
    with pytest.raises(ValueError, match=r"overflows at points"):
        truncate(kernel, 3, 1e3, 1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: radial_table(GAUSSIAN, [-1.0], 3, 2, 2), ValueError, r"norms must be .* >= 0"),
        (lambda: radial_table(GAUSSIAN, [1.0], 3, 2, 0), ValueError, r"order=0 is too small"),
        (lambda: radial_table(GAUSSIAN, [np.nan], 3, 2, 2), ValueError, r"norms\[0\]=nan"),
        (lambda: radial_table(GAUSSIAN, [1j], 3, 2, 2), TypeError, r"norms is not a list of real"),
    ],
)
def test_bad_numbers(call, error, message):
    with pytest.raises(error, match=message):
        call()
