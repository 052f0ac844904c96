"""The exact kernels: values, parameters resolved on data, what is refused."""

import mpmath
import numpy as np
import pytest
from naming import named
from points import gaussian, sphere
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from tolerances import IDENTITY, TWINS

from gzkcore import kernels, reference
from gzkcore.kernels import (
    ArcCosine,
    DotProduct,
    Exponential,
    ExponentialDot,
    Gaussian,
    GeneralizedZonal,
    Laplacian,
    Matern,
    NeuralTangent,
    Polynomial,
    RationalQuadratic,
    SphereHeat,
    SphereMatern,
    Spherical,
    Zonal,
    as_kernel,
)
from gzkcore.kernels.aliases import ALIASES
from gzkcore.sphere.special import gegenbauer

formulas = reference.kernels


@pytest.mark.parametrize("dim", [1, 2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_is_the_formula(dim, dtype):
    X, Y = gaussian(7, dim, seed=1).astype(dtype), gaussian(4, dim, seed=2).astype(dtype)
    expected = [[formulas.gaussian(x, y, 0.7) for y in Y] for x in X]
    length = max(np.square(X).sum(axis=1).max(), np.square(Y).sum(axis=1).max()) ** 2
    tolerance = TWINS["kernels.gaussian"](length=length)
    np.testing.assert_allclose(Gaussian(0.7)(X, Y), expected, rtol=0, atol=tolerance)


def test_gaussian_is_that_of_sklearn():
    X = gaussian(20, 5)
    assert Gaussian(0.3)(X) == pytest.approx(rbf_kernel(X, gamma=0.3), rel=1e-13)


def test_gaussian_keeps_its_digits_far_from_the_origin():
    X, Y = gaussian(9, 3, seed=1), gaussian(5, 3, seed=2)
    offset = 2.0**20  # exact to add to numbers of 32 bits
    X, Y = np.round(X * 2**16) / 2**16, np.round(Y * 2**16) / 2**16
    tolerance = IDENTITY["exact kernel"](length=100)
    np.testing.assert_allclose(
        Gaussian(0.5)(X + offset, Y + offset), Gaussian(0.5)(X, Y), rtol=0, atol=tolerance
    )


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
    "kernel", [Gaussian(0.5), Zonal(np.exp), Zonal(coefficients=[0.3, 0.2])], ids=str
)
@pytest.mark.parametrize("dim", [1, 3])
def test_diag_is_the_diagonal(kernel, dim):
    X = sphere(8, dim)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-14)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Zonal(np.exp)], ids=str)
def test_rows_may_be_sparse_or_lists(kernel, kind):
    X = np.eye(4)
    np.testing.assert_allclose(kernel(kind(X), kind(X)), kernel(X), rtol=1e-14)


# ---- parameters


def test_gamma_scale_is_that_of_sklearn():
    X = gaussian(50, 3, scale=2.0)
    assert Gaussian().resolve(X).gamma == pytest.approx(1 / (3 * X.var()), rel=1e-12)
    assert Gaussian().resolve(sparse.csr_array(X)).gamma == pytest.approx(1 / (3 * X.var()))
    assert Gaussian().resolve(np.ones((5, 2))).gamma == 1.0


def test_gamma_scale_of_far_float32_data():
    """The variance is summed in double and about the mean, tile by tile."""
    X = (gaussian(70_000, 2) + 1000).astype(np.float32)
    expected = 1 / (2 * X.astype(np.float64).var())
    assert Gaussian().resolve(X).gamma == pytest.approx(expected, rel=1e-9)


def test_gamma_median():
    X = np.array([[0.0], [1.0], [3.0]])  # squared distances 1, 4, 9
    assert Gaussian("median").resolve(X).gamma == pytest.approx(1 / 4)
    assert Gaussian("median").resolve(sparse.csr_array(X)).gamma == pytest.approx(1 / 4)
    assert Gaussian("median").resolve(X[:1]).gamma == 1.0


def test_one_gamma_per_column():
    X = gaussian(6, 2)
    scaled = X * np.sqrt([0.2, 3.0])
    np.testing.assert_allclose(Gaussian([0.2, 3.0])(X), Gaussian(1.0)(scaled), rtol=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(), Gaussian([1.0, 2.0]), Zonal(np.exp)], ids=str)
def test_resolve_leaves_the_kernel_alone(kernel):
    before = kernel.get_params()
    resolved = kernel.resolve(sphere(5, 2))
    assert resolved is not kernel
    assert kernel.get_params() == before
    assert clone(kernel).get_params().keys() == before.keys()


@pytest.mark.parametrize("alias", ["gaussian", "rbf"])
def test_aliases(alias):
    assert isinstance(as_kernel(alias), Gaussian)


# ---- what is refused

X2 = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: as_kernel("gauss"),
            ValueError,
            r"kernel='gauss' is unknown .did you mean 'gaussian'",
        ),
        (lambda: as_kernel(3), ValueError, r"kernel=3 is unknown"),
        (lambda: Gaussian()(X2), ValueError, r"gamma='scale' is not a number yet; call resolve"),
        (
            lambda: Gaussian("scal").resolve(X2),
            ValueError,
            r"gamma='scal' is unknown; use a number",
        ),
        (
            lambda: Gaussian("scale").resolve(np.array([[1e200], [-1e200]])),
            ValueError,
            r"the variance of X overflows; scale X",
        ),
        *(
            (lambda k=kernel, X=X: k(X), ValueError, message)
            for kernel in (Gaussian(1.0), Laplacian(1.0), Matern(), NeuralTangent(), Polynomial())
            for X, message in (
                ([1.0, 2.0], r"X has shape \(2,\); pass an array of shape"),
                ([[np.nan, 1.0]], r"X holds NaN or infinity; remove"),
            )
        ),
        (lambda: Gaussian(-1.0).resolve(X2), ValueError, r"gamma=-1.0 .* finite number > 0"),
        (lambda: Gaussian(0).resolve(X2), ValueError, r"gamma=0 .* finite number > 0"),
        (lambda: Gaussian(np.inf).resolve(X2), ValueError, r"gamma=inf .* finite number > 0"),
        (lambda: Gaussian(True).resolve(X2), TypeError, r"gamma=True is not a number"),
        (lambda: Gaussian([1.0]).resolve(X2), ValueError, r"gamma has shape \(1,\), but X has 2"),
        (lambda: Gaussian([1.0, -2.0]).resolve(X2), ValueError, r"every value must be .* > 0"),
        (lambda: Zonal().resolve(X2), ValueError, r"either function or coefficients"),
        (lambda: Zonal(np.exp, [1.0]).resolve(X2), ValueError, r"either function or coefficients"),
        (lambda: Zonal("exp").resolve(X2), TypeError, r"function='exp' is not callable"),
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


def schoenberg(t):
    """Positive definite on the circle and on S^2, not on spheres of high dimension."""
    return (3 * t**2 - 1) / 2


@pytest.mark.parametrize("dim", [2, 3])
def test_a_function_may_be_definite_in_low_dimension(dim):
    assert Zonal(schoenberg).series(dim, 4) == pytest.approx(
        reference.series.gegenbauer_series(schoenberg, dim, 4), abs=1e-13
    )


def test_and_not_in_a_higher_one():
    with pytest.raises(ValueError, match=r"in dimension 4: the coefficient of degree 0 is -0\.125"):
        Zonal(schoenberg).series(4, 4)


# ---- every kernel against its formula

RADIAL = {
    "exponential": (Exponential(0.7), lambda x, y: formulas.exponential(x, y, 0.7)),
    "laplacian": (Laplacian(0.7), lambda x, y: formulas.laplacian(x, y, 0.7)),
    "matern 1/2": (Matern(0.5, 2.0), lambda x, y: formulas.matern(x, y, 0.5, 2.0)),
    "matern 3/2": (Matern(), lambda x, y: formulas.matern(x, y, 1.5, 1.0)),
    "matern 5/2": (Matern(2.5, 0.5), lambda x, y: formulas.matern(x, y, 2.5, 0.5)),
    "matern .8": (Matern(0.8), lambda x, y: formulas.matern(x, y, 0.8, 1.0)),
    "matern 7": (Matern(7, 3.0), lambda x, y: formulas.matern(x, y, 7, 3.0)),
    "rational": (
        RationalQuadratic(0.6, 2.0),
        lambda x, y: formulas.rational_quadratic(x, y, 0.6, 2.0),
    ),
}
DOT = {
    "exponential_dot": (ExponentialDot(0.3), lambda x, y: formulas.exponential_dot(x, y, 0.3)),
    "polynomial": (Polynomial(3, 0.5, 2.0), lambda x, y: formulas.polynomial(x, y, 3, 0.5, 2.0)),
    "even": (Polynomial(4, 0.5, 0), lambda x, y: formulas.polynomial(x, y, 4, 0.5, 0)),
    "dot": (DotProduct([1, 0, 2.5]), lambda x, y: formulas.dot_product(x, y, [1, 0, 2.5])),
}
ANGULAR = {
    "ntk 1": (NeuralTangent(1), lambda x, y: formulas.neural_tangent(x, y, 1)),
    "ntk 3": (NeuralTangent(3), lambda x, y: formulas.neural_tangent(x, y, 3)),
    "ntk mean": (
        NeuralTangent(2, normalize=True),
        lambda x, y: formulas.neural_tangent(x, y, 2) / 3,
    ),
    **{
        f"arc {n}": (ArcCosine(n), lambda x, y, n=n: formulas.arc_cosine(x, y, n)) for n in range(3)
    },
    "general": (
        GeneralizedZonal(lambda t: np.stack([np.stack([1 + t, t], 1), np.stack([t, t**2], 1)], 1)),
        lambda x, y: formulas.generalized_zonal(x, y, lambda t: [[1 + t, t], [t, t * t]]),
    ),
}
EVERY = RADIAL | DOT | ANGULAR


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_values_are_the_formula(name, dim):
    kernel, formula = EVERY[name]
    X, Y = gaussian(6, dim, seed=1), gaussian(4, dim, seed=2)
    expected = np.array([[formula(x, y) for y in Y] for x in X])
    tolerance = TWINS["kernels.values"](length=np.square(expected).max() + 1)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", EVERY)
def test_every_diag_is_the_diagonal(name):
    kernel, _ = EVERY[name]
    X = gaussian(6, 3, seed=1)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    scaled = np.linalg.norm(X * kernel.scale(), axis=1)
    np.testing.assert_allclose(kernel.diagonal(scaled), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize("theta", [0.7, 3.0])
@pytest.mark.parametrize("dim", [1, 3])
def test_spherical_is_the_formula_in_three_dimensions(theta, dim):
    X = gaussian(6, dim)
    expected = [[formulas.spherical(x, y, theta) for y in X] for x in X]
    np.testing.assert_allclose(Spherical(theta)(X), expected, rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match=r"not positive definite in 4 dimensions.*use Matern"):
        Spherical(theta).resolve(gaussian(6, 4))


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
    X = sphere(4, dim)
    expected = [[formula(x, y) for y in X] for x in X]
    np.testing.assert_allclose(kernel(X), expected, rtol=0, atol=1e-12)
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


def test_values_are_those_of_sklearn():
    X = gaussian(20, 3)
    for ours, theirs in [
        (Matern(0.5, 0.7), gp.Matern(0.7, nu=0.5)),
        (Matern(1.5, [0.5, 1.0, 2.0]), gp.Matern([0.5, 1.0, 2.0], nu=1.5)),
        (Matern(2.5), gp.Matern(nu=2.5)),
        (Matern(0.8), gp.Matern(nu=0.8)),
        (Matern(np.inf, 2.0), gp.Matern(2.0, nu=np.inf)),
        (RationalQuadratic(0.7, 1.5), gp.RationalQuadratic(1.5, 0.7)),
    ]:
        np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12, atol=1e-14, err_msg=repr(ours))
    np.testing.assert_allclose(Laplacian(0.3)(X), laplacian_kernel(X, gamma=0.3), rtol=1e-12)
    np.testing.assert_allclose(
        Polynomial(3, 0.5, 2.0)(X), polynomial_kernel(X, degree=3, gamma=0.5, coef0=2.0), rtol=1e-11
    )


@pytest.mark.parametrize("nu", [0.3, 3.3, 40.0, 150.0])
def test_matern_near_zero(nu):
    """K_nu overflows there; the kernel is 1 - x^2 nu / (2 nu - 2), or has a cusp for a small nu."""
    small = np.array([[0.0], [1e-12], [1e-6], [1e-3], [0.3]])
    values = Matern(nu)(small[:1], small)[0]
    expected = [
        float(
            2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)
            if (z := mpmath.sqrt(2 * nu) * mpmath.mpf(x)) > 0
            else 1
        )
        for x in small.ravel()
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("nu", [0.3, 3.3, 40.0, 150.0])
def test_matern_far_away(nu):
    assert Matern(nu)([[0.0]], [[1e5], [1e8], [1e300]]).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "make", [Exponential, Laplacian, Gaussian, lambda a: Matern(1.5, 1 / np.array(a)),
             lambda a: RationalQuadratic(1.0, 1 / np.array(a))],
    ids=["exponential", "laplacian", "gaussian", "matern", "rational"],
)  # fmt: skip
def test_one_lengthscale_per_column(make):
    X = gaussian(6, 2)
    kernel = make([0.2, 3.0])
    root = np.sqrt if isinstance(kernel, Gaussian) else np.asarray
    np.testing.assert_allclose(kernel(X), make(1.0)(X * root([0.2, 3.0])), rtol=1e-12)
    with pytest.raises(ValueError, match=r"2 columns, but X has 3"):
        kernel(gaussian(4, 3))


@pytest.mark.parametrize(
    "kernel",
    [
        Exponential(0.7),
        Gaussian(0.7),
        Laplacian(0.7),
        Matern(),
        RationalQuadratic(),
        Spherical(2.0),
    ],
    ids=str,
)
def test_profiles_take_distances(kernel):
    X, Y = gaussian(6, 3, seed=1), gaussian(4, 3, seed=2)
    p = kernel.distance_power
    sums = (np.abs(kernel.scale() * (X[:, None] - Y)) ** p).sum(axis=2)
    np.testing.assert_allclose(kernel.profile(sums ** (1 / p)), kernel(X, Y), rtol=1e-12)
    np.testing.assert_allclose(kernel.profile_of_sums(sums), kernel(X, Y), rtol=1e-12)


@pytest.mark.parametrize("make", [Exponential, Laplacian])
def test_gamma_by_rules(make):
    X = gaussian(40, 3, scale=5.0)
    spread = np.sqrt(3 * X.var()) if make is Exponential else 3 * X.std()
    assert make().resolve(X).gamma == pytest.approx(1 / spread)
    assert np.median(-np.log(make("median").resolve(X)(X)[np.triu_indices(40, 1)])) == (
        pytest.approx(1)
    )


def test_every_alias_is_a_kernel():
    for alias, make in ALIASES.items():
        assert type(as_kernel(alias)) is make
    assert {make.__name__ for make in ALIASES.values()} == set(kernels.__all__) - {
        "DotProduct", "GeneralizedZonal", "Kernel", "Product", "SphereHeat", "SphereMatern", "Zonal", "as_kernel"
    }  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_every_kernel_is_cloned_and_resolved(name):
    kernel, _ = EVERY[name]
    resolved = clone(kernel).resolve(gaussian(5, 2))
    assert type(resolved) is type(kernel)
    assert resolved is not kernel


X3 = gaussian(5, 3)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Gaussian(np.array(-0.5)), ValueError, r"gamma=-0.5 .* finite number > 0"),
        (Gaussian(1j), TypeError, r"gamma=1j is not a number"),
        (Gaussian(["a", "b", "c"]), TypeError, r"gamma=.* holds no real numbers"),
        (Gaussian([[1.0, 2.0, 3.0]]), ValueError, r"gamma has shape \(1, 3\), but X has 3 columns"),
        (Gaussian([1.0, np.nan, 1.0]), ValueError, r"every value must be finite and > 0"),
        (Exponential("mean"), ValueError, r"gamma='mean' is unknown; use a number"),
        (Matern(nu=0), ValueError, r"nu=0 .* finite number > 0"),
        (Matern(nu=1000.0), ValueError, r"nu=1000.0 is too large.*use np.inf"),
        (Matern(length_scale="1"), TypeError, r"length_scale='1' is not a number"),
        (RationalQuadratic(alpha=-1), ValueError, r"alpha=-1 .* > 0"),
        (Spherical(theta=np.nan), ValueError, r"theta=nan .* > 0"),
        (Polynomial(degree=0), ValueError, r"degree=0 is too small"),
        (Polynomial(degree=2.5), TypeError, r"degree=2.5 is not an integer"),
        (
            Polynomial(coef0=-1.0),
            ValueError,
            r"coef0=-1 makes the coefficient of degree 2 .* -3 < 0.*use coef0 >= 0",
        ),
        (Polynomial(coef0="1"), TypeError, r"coef0='1' is not a number"),
        (
            DotProduct([1, -1, 1]),
            ValueError,
            r"derivatives\[1\]=-1 is negative.*coefficient of degree 1 is -1 < 0",
        ),
        (DotProduct([]), ValueError, r"derivatives=\[\] must be a list of finite numbers"),
        (DotProduct([0, 0]), ValueError, r"derivatives are all 0"),
        (NeuralTangent(0), ValueError, r"depth=0 is too small"),
        (NeuralTangent(normalize="yes"), TypeError, r"normalize='yes' is not a bool"),
        (ArcCosine(3), ValueError, r"order=3 is not implemented; use 0, 1 or 2"),
        (SphereHeat(0), ValueError, r"time=0 .* > 0"),
        (SphereMatern(-1), ValueError, r"nu=-1 .* > 0"),
        (GeneralizedZonal(3), TypeError, r"radial=3 is not callable"),
        (GeneralizedZonal(lambda t: t), ValueError, r"shape \(1, q \+ 1, s\); got shape \(1,\)"),
        (
            GeneralizedZonal(lambda t: np.ones((t.size, 3, 1))),
            ValueError,
            r"h_1\(0\) = 1: for l >= 1 it must be 0",
        ),
        (GeneralizedZonal(lambda t: np.full((t.size, 1), np.nan)), ValueError, r"not finite"),
    ],
    ids=named,
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(X3)


def test_a_step_has_no_value_at_zero():
    with pytest.raises(ValueError, match=r"no value where a row is all 0"):
        ArcCosine(0)(np.zeros((1, 2)))
    assert ArcCosine(1)(np.zeros((1, 2)))[0, 0] == NeuralTangent()(np.zeros((1, 2)))[0, 0] == 0


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
