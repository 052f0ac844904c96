"""Kernels of the angle: values, series, what is refused."""

import warnings

import numpy as np
import pytest
from naming import named
from points import gaussian, sphere
from sklearn.base import clone
from tolerances import TWINS

from gzkcore import (
    GegenbauerFeatures,
    KernelOperator,
    KernelRidge,
    NystromFeatures,
    TruncationWarning,
    kernel_matrix,
    reference,
)
from gzkcore.kernels import (
    ArcCosine,
    NeuralTangent,
    Product,
    SphereHeat,
    SphereMatern,
    Zonal,
)
from gzkcore.kernels.points import row_norms
from gzkcore.sphere.special import gegenbauer

formulas = reference.kernels


def test_zonal_is_the_formula():
    X, Y = sphere(7, 4, seed=1), sphere(5, 4, seed=2)
    expected = [[formulas.zonal(x, y, np.exp) for y in Y] for x in X]
    tolerance = TWINS["kernels.zonal"]()
    np.testing.assert_allclose(Zonal(np.exp)(X, Y), expected, rtol=0, atol=tolerance)


def test_zonal_by_coefficients_is_the_series():
    X = sphere(6, 5)
    c = [0.5, 0.0, 0.25, 1.0]
    expected = [[reference.series.zonal_sum(c, 5, float(x @ y)) for y in X] for x in X]
    np.testing.assert_allclose(Zonal(coefficients=c)(X), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "formula"),
    [
        (SphereHeat(0.2), lambda x, y: formulas.sphere_heat(x, y, 0.2)),
        (SphereMatern(6.0, 1.0), lambda x, y: formulas.sphere_matern(x, y, 6.0, 1.0)),
    ],
    ids=["heat", "matern"],
)
@pytest.mark.parametrize("dim", [2, 3, 5])
def test_kernels_of_the_sphere_are_the_formula(kernel, formula, dim):
    X = sphere(3, dim)
    pairs = [(0, 0), (0, 1), (0, 2), (1, 2)]  # the formula takes a second for each
    expected = [formula(X[i], X[j]) for i, j in pairs]
    found = kernel(X)
    np.testing.assert_allclose(found[tuple(np.transpose(pairs))], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert kernel.diag(X) == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize("dim", [1, 2, 3, 9, 64])
@pytest.mark.parametrize("nu", [0.3, 0.5, 1.5])
def test_coefficients_of_a_rough_kernel_of_the_sphere_sum_to_one(dim, nu):
    """The sum beyond the last degree is that of the integral: checked ten times further out."""
    kernel = SphereMatern(nu, 0.5)
    near, far = (1 - kernel.series(dim, q).sum() for q in (4000, 40000))
    assert near >= far >= -1e-12
    if dim > 1:  # the tail falls like q^(-2 nu)
        assert far == pytest.approx(near * 10 ** (-2 * nu), rel=0.05 + dim * 1e-3, abs=1e-11)


def schoenberg(t):
    """Positive definite on the circle and on S^2, not on spheres of high dimension."""
    return (3 * t**2 - 1) / 2


def test_a_function_may_be_definite_in_low_dimension_only():
    for dim in (2, 3):
        expected = reference.series.gegenbauer_series(schoenberg, dim, 4)
        assert Zonal(schoenberg).series(dim, 4) == pytest.approx(expected, abs=1e-13)
    with pytest.raises(ValueError, match=r"in dimension 4: the coefficient of degree 0 is -0\.125"):
        Zonal(schoenberg).series(4, 4)


def test_a_step_has_no_value_at_zero():
    with pytest.raises(ValueError, match=r"no value at a row that is all 0"):
        ArcCosine(0)(np.zeros((1, 2)))
    assert ArcCosine(1)(np.zeros((1, 2)))[0, 0] == NeuralTangent()(np.zeros((1, 2)))[0, 0] == 0


@pytest.mark.parametrize("length_scale", [0.05, 0.3, 1.0])
def test_a_rough_kernel_of_the_circle_is_its_closed_form(length_scale):
    """Of nu = 1/2: cosh((pi - angle) / length_scale), over its value at 0."""
    angles = np.concatenate([[0.0, 1e-4, 1e-3], np.linspace(0.01, np.pi, 50)])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    found = SphereMatern(0.5, length_scale)(X[:1], X)[0]
    around = np.exp(-angles / length_scale) + np.exp((angles - 2 * np.pi) / length_scale)
    expected = around / (1 + np.exp(-2 * np.pi / length_scale))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4 / length_scale)
    np.testing.assert_allclose(found[3:], expected[3:], rtol=0, atol=6e-6 / length_scale)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_a_rough_kernel_is_1_at_no_angle(dim):
    """Its series is cut where 2 to 4 % are missing, which the last half makes up for."""
    kernel = SphereMatern(0.5, 0.01)
    for value in (kernel.kappa(np.ones(1), dim), kernel.of_angles(dim)(np.zeros(1))):
        assert value == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("nu", [1e14, 1e300])
def test_the_limit_of_large_nu_is_the_heat_kernel(nu):
    X = sphere(9, 3)
    np.testing.assert_allclose(SphereMatern(nu, 0.5)(X), SphereHeat(0.125)(X), atol=1e-9)


@pytest.mark.parametrize(
    "kernel", [Zonal(np.exp), Zonal(coefficients=[1.0, 0.5]), SphereMatern(4.5), SphereHeat(1e-4)],
    ids=str,
)  # fmt: skip
def test_rows_off_the_sphere_are_refused_everywhere(kernel):
    X = sphere(5, 3)
    far = X.copy()
    far[3] *= 2
    for call in (
        kernel,
        kernel.diag,
        lambda X: kernel_matrix(kernel, X),
        lambda X: KernelOperator(kernel, X) @ np.ones(len(X)),
        Product([([0, 1, 2], kernel)]),
    ):
        with pytest.raises(ValueError, match=r"row 3 of X has norm 2, .* divide every row"):
            call(far)
        call(X.astype(np.float32))
    with pytest.raises(ValueError, match=r"row 3 of Y has norm 2"):
        kernel(X, far)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [Zonal(np.exp), SphereHeat(0.3)], ids=str)
def test_rows_of_norms_rounded_to_float32_are_divided_by_them(kernel):
    """Also where they come in double, as from a file."""
    X, y = sphere(40, 3), np.arange(40.0)
    rounded, off = X * (1 + 9e-6 * np.resize([1, -1], 40)[:, None]), X.copy()
    off[7] *= 1 + 2e-5
    fitted = [
        GegenbauerFeatures(kernel, 30, random_state=0).fit(X),
        NystromFeatures(kernel, 10, random_state=0).fit(X),
        KernelRidge(kernel, alpha=0.1).fit(X, y),
        Product([([0, 1, 2], kernel)]),
        kernel,
    ]
    for each in fitted:
        call = getattr(each, "transform", getattr(each, "predict", each))
        np.testing.assert_allclose(call(rounded), call(X), rtol=1e-10, atol=1e-12)
        with pytest.raises(ValueError, match=r"row 7 of X has norm 1[.]00002, but"):
            call(off)
    for each in fitted[:3]:
        clone(each).fit(rounded, y)
    product = kernel_matrix(kernel, rounded)
    np.testing.assert_allclose(product, kernel(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1e-323, 1e-300, 1e-200, 1e-160, 1e160, 1e300])
def test_directions_of_rows_of_any_size(size):
    X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, -1.0], [2.0, 2.0]])
    for kernel in (ArcCosine(0), lambda X: kernel_matrix(ArcCosine(0), X)):
        np.testing.assert_allclose(kernel(X * size), ArcCosine(0)(X), atol=1e-7)


def test_norms_of_rows_of_any_size():
    X = gaussian(5, 3)
    for power in (-500, 0, 500):
        expected = np.ldexp(np.linalg.norm(X, axis=1), power)
        np.testing.assert_allclose(row_norms(np.ldexp(X, power)), expected, rtol=1e-15)
    np.testing.assert_array_equal(row_norms(np.zeros((2, 3))), 0.0)


def test_long_series_are_summed_in_one_pass():
    X = sphere(200, 3)
    expected = gegenbauer(600, 3, np.clip(X[:5] @ X.T, -1, 1))
    np.testing.assert_allclose(
        Zonal(coefficients=[0] * 600 + [1])(X)[:5, 5:], expected[:, 5:], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("depth", "values"),
    [
        (1, [0, -0.0576688856224372, 0.318309886183791, 0.942331114377563, 1.68032873502884]),
        (2, [0.318309886183791, 0.343862246272727, 0.685708636282943, 1.35147956112348,
             2.36881366271826]),
        (3, [0.685708636282943, 0.74224932256118, 1.06038810680258, 1.73784467921531,
             2.98569318737471]),
    ],
)  # fmt: skip
def test_known_values_of_the_neural_tangent_kernel(depth, values):
    t = np.array([-1, -0.5, 0, 0.5, 0.9])
    np.testing.assert_allclose(NeuralTangent(depth).kappa(t, 3), values, rtol=1e-13, atol=1e-15)
    assert NeuralTangent(depth).at_one(3) == depth + 1
    a = lambda s: 1 - np.arccos(s) / np.pi  # noqa: E731
    b = lambda s: (np.sqrt(1 - s * s) + s * (np.pi - np.arccos(s))) / np.pi  # noqa: E731
    if depth == 2:  # the expression of section 6.1
        np.testing.assert_allclose(b(b(t)) + (b(t) + t * a(t)) * a(b(t)), values, atol=1e-14)


@pytest.mark.weekly
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1.0, 1e30, 1e75])
def test_the_deepest_network_has_finite_values_and_features(scale, normalize):
    kernel, X = NeuralTangent(10_000, normalize=normalize), scale * gaussian(9, 3)
    assert np.isfinite(kernel(X, X)).all()
    features = GegenbauerFeatures(kernel, n_components=16, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        assert np.isfinite(features.fit_transform(X)).all()


X2 = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Zonal().resolve(X2), ValueError, r"exactly one of function and coefficients"),
        (
            lambda: Zonal(np.exp, [1.0]).resolve(X2),
            ValueError,
            r"exactly one of function and coefficients",
        ),
        (lambda: Zonal("exp").resolve(X2), TypeError, r"function='exp' is not callable"),
        (lambda: Zonal(lambda _: 1.0)(sphere(2, 2)), ValueError, r"function must map an array"),
        (lambda: Zonal(lambda t: 1j * t)(sphere(2, 2)), ValueError, r"function must map an array"),
        (lambda: Zonal(np.zeros_like).resolve(X2), ValueError, r"function is 0 everywhere"),
        (lambda: Zonal("exp")(sphere(2, 2)), TypeError, r"function='exp' is not callable"),
        (
            lambda: Zonal(coefficients=[-1.0]).diag(sphere(2, 2)),
            ValueError,
            r"coefficients\[0\]=-1",
        ),
        (lambda: Zonal(coefficients=[]).resolve(X2), ValueError, r"list of finite numbers"),
        (lambda: Zonal(coefficients=[1, np.nan]).resolve(X2), ValueError, r"finite numbers"),
        (lambda: Zonal(coefficients=[1, -0.5]).resolve(X2), ValueError, r"coefficients\[1\]=-0.5"),
        (
            lambda: Zonal(lambda t: t**2 - 0.5 * t**3).series(3, 8),
            ValueError,
            r"not positive definite in dimension 3: the coefficient of degree 1 is -0.3 < 0",
        ),
        (lambda: Zonal(lambda _: 1.0).series(3, 8), ValueError, r"function must map an array"),
        (
            lambda: Zonal(lambda t: np.where(t > 0, np.nan, t)).series(3, 8),
            ValueError,
            r"finite values",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


X3 = gaussian(5, 3)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (NeuralTangent(0), ValueError, r"depth=0 is too small"),
        (NeuralTangent(10**30), ValueError, r"depth=10+ is too large; use at most 10000"),
        (NeuralTangent(normalize="yes"), TypeError, r"normalize='yes' is not a bool"),
        (ArcCosine(3), ValueError, r"order=3 is not implemented; use 0, 1 or 2"),
        (SphereHeat(0), ValueError, r"time=0 .* > 0"),
        (SphereMatern(-1), ValueError, r"nu=-1 .* > 0"),
        (SphereMatern(length_scale=1e200), ValueError, r"length_scale=1e\+200 and nu=1.5 are not"),
        (SphereMatern(length_scale=1e-200), ValueError, r"length_scale=1e-200 and nu=1.5 are not"),
    ],
    ids=named,
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(X3)
