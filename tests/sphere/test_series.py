"""Series and radial functions on the fast path: known values, identities, certified truncation."""

import itertools
from math import exp

import mpmath
import numpy as np
import pytest
from naming import named
from scipy.special import gammaincc
from tolerances import IDENTITY, TWINS

from gzkcore import (
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
    reference,
)
from gzkcore.kernels.radial import RadialFunctions, radial_table
from gzkcore.kernels.truncation import angular_energy, truncate
from gzkcore.sphere.series import gegenbauer_series, radial_series, zonal_sum
from gzkcore.sphere.special import alpha, gegenbauer

GAUSSIAN = Gaussian(0.5)


def relu_tangent(depth):
    """Return the neural tangent kernel of a ReLU network with so many hidden layers."""

    def kappa(t):
        S, K = t, t
        for _ in range(depth):
            clipped = np.clip(S, -1, 1)
            a0 = 1 - np.arccos(clipped) / np.pi
            S = (np.sqrt(1 - clipped**2) + clipped * (np.pi - np.arccos(clipped))) / np.pi
            K = K * a0 + S
        return K

    return kappa


def taylor(t, degree):
    """Return the Taylor polynomial of exp(2t)."""
    return sum((2 * t) ** j / float(mpmath.factorial(j)) for j in range(degree + 1))


# ---- Eq 8


@pytest.mark.parametrize(
    ("dim", "degrees", "expected"),
    [
        (
            3,
            range(9),
            [1.8134302039235093838, 2.9231482307401831136, 1.7592804427670891352,
             0.66319765537561529188, 0.18231534779049162987, 0.039433331313977208678,
             0.0070277377120804978471, 0.0010646916784560961627, 0.00014023927968998749385],
        ),
        (
            2,
            [0, 1, 2, 5, 10],
            [2.2795853023360672674, 3.1812737092746581268, 1.3778968953974764081,
             0.019651358646263404642, 6.0339277587013687309e-7],
        ),
        (
            5,
            [0, 1, 2, 5, 10],
            [1.4615741153700915568, 2.6389206641506337028, 1.9895929661268458756,
             0.073791245976845227394, 5.3235867405663370135e-6],
        ),
        (
            8,
            [0, 1, 2, 5, 10],
            [1.2764397554391159316, 2.4349713590006514354, 2.0633926578576574874,
             0.11168385787371056819, 0.000013464678086468584534],
        ),
    ],
    ids=["d=3", "d=2", "d=5", "d=8"],
)  # fmt: skip
def test_coefficients_of_exp(dim, degrees, expected):
    c = gegenbauer_series(lambda t: np.exp(2 * t), dim, max(degrees))
    exact = gegenbauer_series(None, dim, max(degrees), derivatives=[2.0**j for j in range(60)])
    for ell, value in zip(degrees, expected, strict=True):
        tolerance = TWINS["series.gegenbauer_series"](length=9 * alpha(ell, dim))
        assert c[ell] == pytest.approx(value, rel=0, abs=tolerance)
        assert exact[ell] == pytest.approx(value, rel=TWINS["special.mu"](length=60))


@pytest.mark.parametrize(
    ("depth", "dim", "expected"),
    [
        (1, 3, [1 / 2, 1, 25 / 64, 0, 3 / 64, 0, 1.824951171875e-2, 0, 9.857177734372e-3]),
        (2, 3, [0.9302519316423, 1.112349562589, 0.5368378564012, 0.1305085404923,
                8.228819545226e-2, 3.363651762372e-2, 3.217964450885e-2]),
        (2, 9, [0.7584116704179, 1.015364615929, 0.6100942483235, 0.1709305256824,
                0.1102482983562, 4.654654602384e-2]),
    ],
    ids=["L=1-d=3", "L=2-d=3", "L=2-d=9"],
)  # fmt: skip
def test_coefficients_of_the_neural_tangent_kernel(depth, dim, expected):
    """A square root at t = 1 is smooth in theta."""
    c = gegenbauer_series(relu_tangent(depth), dim, len(expected) - 1)
    assert c == pytest.approx(expected, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("dim", [2, 3, 9, 64])
def test_coefficients_of_exp_stay_above_their_noise(dim):
    """No coefficient of a positive definite function is taken for a negative one, up to degree 512."""
    assert Zonal(np.exp).series(dim, 64 if dim == 64 else 512).min() >= 0


@pytest.mark.parametrize(
    ("dim", "errors"),
    [
        (2, [3.7e-3, 5.9e-8, 1.08e-13]),
        (4, [1.3e-2, 3.6e-7, 9.16e-13]),
        (8, [3.1e-2, 1.7e-6, 7.17e-12]),
        (32, [7.9e-2, 1.549e-5, 2.40e-10]),
        ("taylor", [1.2e-1, 6.1e-5, 3.55e-9]),
    ],
)
def test_figure_1(dim, errors):
    """The largest error of exp(2t) over [-1, 1] at degrees 5, 10 and 15."""
    t = np.linspace(-1, 1, 2001)
    for degree, expected in zip([5, 10, 15], errors, strict=True):
        if dim == "taylor":
            cut = taylor(t, degree)
        else:
            c = gegenbauer_series(None, dim, degree, derivatives=[2.0**j for j in range(80)])
            cut = zonal_sum(c, dim, t)
        assert np.abs(np.exp(2 * t) - cut).max() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("dim", "errors"),
    [
        (2, [0.118, 0.058, 0.040]),
        (4, [0.209, 0.108, 0.075]),
        (8, [0.279, 0.153, 0.109]),
        (32, [0.357, 0.217, 0.166]),
    ],
)
def test_figure_1_of_the_neural_tangent_kernel(dim, errors):
    t = np.linspace(-1, 1, 2001)
    for degree, expected in zip([5, 10, 15], errors, strict=True):
        cut = zonal_sum(gegenbauer_series(relu_tangent(2), dim, degree), dim, t)
        assert np.abs(relu_tangent(2)(t) - cut).max() == pytest.approx(expected, rel=0.02)


# ---- radial functions


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


ENERGIES = [
    (0, 1, 1, 3, 0.43233235838169365405),
    (4, 1, 2, 3, 0.014965355072498135684),
    (2, 0.5, 1.5, 5, 0.066504006124498667243),
    (7, 2, 2, 9, 0.016627051853035596584),
    (3, 4, 3, 16, 0.016776574667094104128),
    (20, 8, 8, 3, 0.012067300177374200443),
    (10, 1, 1, 300, 8.77113628847e-8),
    (200, 30, 29, 3, 1.41201852217e-11),
]


@pytest.mark.parametrize(("ell", "a", "b", "dim", "expected"), ENERGIES)
def test_angular_energy(ell, a, b, dim, expected):
    value = angular_energy(ell, a, b, dim)
    assert value == pytest.approx(expected, rel=4e-12)
    orders = 700 if a > 9 else 60
    if ell <= 20:
        h, g = radial_table(GAUSSIAN, [a, b], dim, ell, orders)[:, ell]
        assert h @ g == pytest.approx(expected, rel=4e-12)


# ---- truncation


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


# ---- RadialFunctions

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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: truncate(GAUSSIAN, 3, 1.0, 0.0), ValueError, r"tol=0.0 .* finite number > 0"),
        (lambda: truncate(GAUSSIAN, 3, -1.0, 1e-3), ValueError, r"radius=-1.0 .* number > 0"),
        (lambda: truncate(GAUSSIAN, 0, 1.0, 1e-3), ValueError, r"dim=0 is too small"),
        (lambda: radial_table(GAUSSIAN, [-1.0], 3, 2, 2), ValueError, r"norms must be .* >= 0"),
        (lambda: radial_table(GAUSSIAN, [1.0], 3, 2, 0), ValueError, r"order=0 is too small"),
        (lambda: gegenbauer_series(np.exp, 3, -1), ValueError, r"degree=-1 is too small"),
        (
            lambda: truncate(Zonal(relu_tangent(2)), 3, 1.0, 1e-9),
            ValueError,
            r"tol=1e-09 needs a degree above 4096 in dimension 3; use a larger tol",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- every family of kernels


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


def pairs(kernel, dim, shell, n=400):
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
    return a, b, t, np.array([kernel(x[i : i + 1], y[i : i + 1])[0, 0] for i in range(n)])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dim", [1, 3, 9])
@pytest.mark.parametrize("shell", [(1.5, 1.5), (0.5, 2.0), (0.0, 2.5)], ids=str)
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


@pytest.mark.parametrize("kernel", [Matern(0.5), Matern(2.5), RationalQuadratic()], ids=str)
@pytest.mark.parametrize("dim", [1, 2, 3, 9])
def test_radial_series_sums_to_the_kernel(kernel, dim):
    """At random angles, for norms apart, close to each other, and equal."""
    degree = 250 if dim < 9 else 120
    for a, b in [(1.0, 2.0), (1.0, 1.3), (0.0, 1.0)]:
        A = radial_series(kernel.profile, a, b, dim, degree)
        t = np.array([-1.0, -0.3, 0.5, 1.0]) if dim > 1 else np.array([-1.0, 1.0])
        exact = kernel.profile(np.sqrt(a * a + b * b - 2 * a * b * t))
        noise = 1e-15 * np.sqrt(alpha(degree, dim) if dim > 1 else 1)
        np.testing.assert_allclose(zonal_sum(A, dim, t), exact, rtol=0, atol=1e-11 + 100 * noise)
    near = radial_series(kernel.profile, [1.0, 1.0], [1.0, 1.0 + 1e-7], dim, 10)
    np.testing.assert_allclose(near[0], near[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("dim", [3, 9])
def test_radial_series_of_the_gaussian_is_the_closed_form(dim):
    A = radial_series(lambda r: np.exp(-r * r / 2), [[1.0], [2.0]], [1.0, 2.0, 0.1], dim, 12)
    for (i, a), (j, b) in itertools.product(enumerate([1.0, 2.0]), enumerate([1.0, 2.0, 0.1])):
        expected = [angular_energy(ell, a, b, dim) for ell in range(13)]
        noise = 1e-13 * np.sqrt([alpha(ell, dim) for ell in range(13)])
        assert np.all(np.abs(A[i, j] - expected) <= noise)


def test_a_distance_that_is_no_kernel_says_at_which_degree():
    class Ball(Matern):
        def profile(self, distances):
            return np.maximum(1 - distances / 2, 0.0)  # positive definite on the line only

    with pytest.raises(ValueError, match=r"not positive definite in dimension 3: .* of degree \d+"):
        RadialFunctions(Ball(), 3, (0.5, 2.0), np.linspace(0.5, 2, 16), 60, 1e-6)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Spherical()], ids=str)
def test_what_is_no_generalized_zonal_kernel_says_what_to_use(kernel):
    with pytest.raises(ValueError, match=r"is no generalized zonal kernel: .*use .*Exponential"):
        RadialFunctions(kernel, 3, (0.5, 2.0), np.ones(1), 60, 1e-6)


@pytest.mark.parametrize("kernel", [ExponentialDot(1.0), Polynomial(200)], ids=str)
def test_what_overflows_says_so(kernel):
    with pytest.raises(ValueError, match=r"overflows at points of scaled norm 1000; scale"):
        RadialFunctions(kernel, 3, (0.0, 1e3), np.linspace(0, 1e3, 8), 60, 1e-6)
    with pytest.raises(ValueError, match=r"overflows at points"):
        truncate(kernel, 3, 1e3, 1e-6)


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


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: angular_energy(0, -1.0, 1.0, 3), ValueError, r"a=-1.0 .* number > 0"),
        (lambda: angular_energy(0, 1.0, np.nan, 3), ValueError, r"b=nan .* number > 0"),
        (lambda: angular_energy(0, "1", 1.0, 3), TypeError, r"a='1' is not a number"),
        (lambda: angular_energy(0, 1e9, 1e9, 3), ValueError, r"a \* b = 1e\+18 needs a sum"),
        (lambda: radial_table(GAUSSIAN, [np.nan], 3, 2, 2), ValueError, r"norms\[0\]=nan"),
        (lambda: radial_table(GAUSSIAN, [1j], 3, 2, 2), TypeError, r"norms is no list of real"),
        (lambda: zonal_sum([1.0, np.inf], 3, 0.5), ValueError, r"coefficients\[1\]=inf"),
        (lambda: zonal_sum([1j], 3, 0.5), TypeError, r"coefficients is no list of real"),
        (lambda: zonal_sum([1.0], 3, 0.5j), TypeError, r"t is complex"),
        (
            lambda: gegenbauer_series(None, 3, 2, derivatives=[1, np.nan]),
            ValueError,
            r"derivatives\[1\]=nan is not finite",
        ),
        (lambda: radial_series(np.exp, -1.0, 1.0, 3, 2), ValueError, r"finite norms >= 0"),
        (lambda: radial_series(3, 1.0, 1.0, 3, 2), TypeError, r"function=3 is not callable"),
    ],
)
def test_bad_numbers(call, error, message):
    with pytest.raises(error, match=message):
        call()


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
