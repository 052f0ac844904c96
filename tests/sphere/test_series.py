"""Series on the fast path: known values, identities, what is refused."""

import itertools

import mpmath
import numpy as np
import pytest
from tolerances import TWINS

from gzkcore import Gaussian, Matern, RationalQuadratic, Zonal
from gzkcore._compiled import series as _series
from gzkcore.kernels.truncation import angular_energy
from gzkcore.sphere.series import gegenbauer_series, radial_series, zonal_sum
from gzkcore.sphere.special import alpha


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


@pytest.mark.parametrize(("dim", "errors"), [
    (2, [3.7e-3, 5.9e-8, 1.08e-13]), (4, [1.3e-2, 3.6e-7, 9.16e-13]),
    (8, [3.1e-2, 1.7e-6, 7.17e-12]), (32, [7.9e-2, 1.549e-5, 2.40e-10]),
    ("taylor", [1.2e-1, 6.1e-5, 3.55e-9]),
])  # fmt: skip
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


@pytest.mark.parametrize(("dim", "errors"), [
    (2, [0.118, 0.058, 0.040]), (4, [0.209, 0.108, 0.075]), (8, [0.279, 0.153, 0.109]),
    (32, [0.357, 0.217, 0.166]),
])  # fmt: skip
def test_figure_1_of_the_neural_tangent_kernel(dim, errors):
    t = np.linspace(-1, 1, 2001)
    for degree, expected in zip([5, 10, 15], errors, strict=True):
        cut = zonal_sum(gegenbauer_series(relu_tangent(2), dim, degree), dim, t)
        assert np.abs(relu_tangent(2)(t) - cut).max() == pytest.approx(expected, rel=0.02)


# ---- at pairs of norms


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


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: gegenbauer_series(np.exp, 3, -1), ValueError, r"degree=-1 is too small"),
    (lambda: zonal_sum([1.0, np.inf], 3, 0.5), ValueError, r"coefficients\[1\]=inf"),
    (lambda: zonal_sum([1j], 3, 0.5), TypeError, r"coefficients is not a list of real"),
    (lambda: zonal_sum([1.0], 3, 0.5j), TypeError, r"t is complex"),
    (lambda: gegenbauer_series(None, 3, 2, derivatives=[1, np.nan]), ValueError, r"derivatives\[1\]=nan is not finite"),
    (lambda: radial_series(np.exp, -1.0, 1.0, 3, 2), ValueError, r"finite norms >= 0"),
    (lambda: radial_series(3, 1.0, 1.0, 3, 2), TypeError, r"function=3 is not callable"),
])  # fmt: skip
def test_bad_numbers(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dim", [60, 100, 400, 500, 2000])
def test_series_in_high_dimension(dim):
    """By quadrature, whose weights are a narrow peak there, and by derivatives they are the same."""
    found = gegenbauer_series(np.exp, dim, 3)
    wanted = gegenbauer_series(None, dim, 3, derivatives=np.ones(20))
    # As the docstring has it.
    noise = 1e-15 * np.e * np.sqrt(alpha(np.arange(4), dim)) * max(1.0, dim / 1000)
    assert (np.abs(found - wanted) < 4 * noise).all()
    radial = radial_series(lambda r: np.exp(-r * r / 2), 1.0, 1.0, dim, 3)
    assert (np.abs(radial - wanted / np.e) < 4 * noise).all()


def test_a_table_has_its_last_piece_at_the_end_and_beyond():
    table = np.arange(4.0)[:, None, None]  # four pieces, each the constant of its number
    norms = np.array([1.0, 1.5, 2.9, 3.0, 7.0, 1e300, -2.0])
    out = np.empty((len(norms), 1))
    _series.interpolate(table, norms, 1.0, 3.0, out, 1)
    assert out[:, 0].tolist() == [0, 1, 3, 3, 3, 3, 0]


def test_whole_numbers_beyond_floats():
    for call in (
        lambda: zonal_sum([10**400], 3, 0.5),
        lambda: gegenbauer_series(None, 3, 2, derivatives=[10**400]),
        lambda: radial_series(np.exp, 10**400, 1.0, 3, 2),
        lambda: Gaussian(0.5)([[10**400]]),
    ):
        with pytest.raises(TypeError, match=r"\(int too large to convert to float\); pass"):
            call()
