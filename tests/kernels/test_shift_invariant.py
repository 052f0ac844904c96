"""Kernels of x - y: values, lengthscales from data, what is refused."""

import mpmath
import numpy as np
import pytest
from naming import named
from points import gaussian
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from tolerances import IDENTITY, TWINS

from gzkcore import kernel_matrix, reference
from gzkcore.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Product,
    ProductMatern,
    RationalQuadratic,
    Spherical,
)

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


@pytest.mark.parametrize("far", [1e5, 1e9, 1e200])
def test_a_row_far_out_costs_the_others_no_digits(far):
    X = gaussian(30, 3, seed=1)
    near = Gaussian(0.5)(X)
    X[0] = [far, 0, 0]
    found = Gaussian(0.5)(X)
    np.testing.assert_allclose(found[1:, 1:], near[1:, 1:], atol=1e-12)
    np.testing.assert_allclose(found[0], np.eye(30)[0], rtol=0, atol=1e-300)
    Y = np.array([[far, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert Gaussian(0.5)(Y, X)[0, 0] == 1.0


@pytest.mark.parametrize("theta", [0.7, 3.0])
@pytest.mark.parametrize("dim", [1, 3])
def test_spherical_is_the_formula_in_three_dimensions(theta, dim):
    X = gaussian(6, dim)
    expected = [[formulas.spherical(x, y, theta) for y in X] for x in X]
    np.testing.assert_allclose(Spherical(theta)(X), expected, rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match=r"not positive definite in 4 dimensions.*use Matern"):
        Spherical(theta).resolve(gaussian(6, 4))


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


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.5, 2.5, 3.3, 40.0, 150.0, np.inf])
def test_matern_far_away(nu):
    for far in (1e5, 1e8, 1e160, 1e300):
        assert Matern(nu)([[0.0]], [[far]])[0, 0] < 1e-290
    assert Matern(nu)([[0.0]], [[1e5], [1e8], [1e160], [1e300]]).tolist() == [[0.0] * 4]


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


@pytest.mark.parametrize("kernel", [Gaussian("median"), Laplacian("median")], ids=repr)
def test_gamma_median_of_rows_too_far_apart(kernel):
    with pytest.raises(ValueError, match="distances between rows of X overflow; scale X"):
        kernel.resolve(1e308 * np.array([[1.0], [-1.0]]))


@pytest.mark.parametrize("make", [Exponential, Laplacian])
def test_gamma_by_rules(make):
    X = gaussian(40, 3, scale=5.0)
    spread = np.sqrt(3 * X.var()) if make is Exponential else 3 * X.std()
    assert make().resolve(X).gamma == pytest.approx(1 / spread)
    assert np.median(-np.log(make("median").resolve(X)(X)[np.triu_indices(40, 1)])) == (
        pytest.approx(1)
    )


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
    ("rule", "rows", "message"),
    [
        ("scale", [[1e200], [-1e200]], "the variance of X overflows; scale X"),
        ("scale", [[1e-157], [-1e-157]], "one over the variance of X, 1e-314, overflows; scale X"),
        ("median", [[1e-157], [-1e-157]], "one over the median of distances, 4e-314, overflows"),
    ],
)
def test_rules_that_overflow(rule, rows, message):
    with pytest.raises(ValueError, match=message):
        Gaussian(rule).resolve(np.array(rows))


X3 = gaussian(5, 3)


def test_a_rule_is_no_number():
    with pytest.raises(ValueError, match="gamma='scale' is not a number yet; call resolve"):
        Gaussian()(X3)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Gaussian("scal"), ValueError, r"gamma='scal' is unknown; use a number"),
        (Gaussian(-1.0), ValueError, r"gamma=-1.0 .* finite number > 0"),
        (Gaussian(0), ValueError, r"gamma=0 .* finite number > 0"),
        (Gaussian(np.inf), ValueError, r"gamma=inf .* finite number > 0"),
        (Gaussian(True), TypeError, r"gamma=True is not a number"),
        (Gaussian([1.0]), ValueError, r"gamma has shape \(1,\), but X has 3"),
        (Gaussian([1.0, -2.0, 1.0]), ValueError, r"every value must be .* > 0"),
        (Gaussian(np.array(-0.5)), ValueError, r"gamma=-0.5 .* finite number > 0"),
        (Gaussian(1j), TypeError, r"gamma=1j is not a number"),
        (Gaussian(["a", "b", "c"]), TypeError, r"gamma=.* holds no real numbers"),
        (Gaussian([[1.0, 2.0, 3.0]]), ValueError, r"gamma has shape \(1, 3\), but X has 3 columns"),
        (Gaussian([1.0, np.nan, 1.0]), ValueError, r"every value must be finite and > 0"),
        (Exponential("mean"), ValueError, r"gamma='mean' is unknown; use a number"),
        (Matern(nu=0), ValueError, r"nu=0 .* finite number > 0"),
        (Matern(nu=1000.0), ValueError, r"nu=1000.0 is too large.*use np.inf"),
        (
            Matern(length_scale=1e-308),
            ValueError,
            "length_scale=1e-308 is too small: .*; use 1e-152 or",
        ),
        (
            RationalQuadratic(length_scale=[1.0, 5e-324, 1.0]),
            ValueError,
            r"length_scale=.* is too small",
        ),
        (Matern(length_scale="1"), TypeError, r"length_scale='1' is not a number"),
        (RationalQuadratic(alpha=-1), ValueError, r"alpha=-1 .* > 0"),
        (Spherical(theta=np.nan), ValueError, r"theta=nan .* > 0"),
    ],
    ids=named,
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.resolve(X3)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.79e308), Matern(np.inf, 1e-152), Matern(150, 1e-152), Matern(30, 1e-152)]
)
def test_the_shortest_lengths_leave_every_row_alone(kernel):
    X = np.array([[0.0], [0.0], [1.5], [4.0]])
    expected = np.eye(4)
    expected[0, 1] = expected[1, 0] = 1
    for found in (kernel(X), kernel_matrix(kernel, X)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-300)


@pytest.mark.parametrize("nu", [1.5, 2.5])
@pytest.mark.parametrize("groups", [[0, 0, 0, 0], [3, 1, 3, 7], None])
def test_a_product_of_matern_kernels_is_the_formula(nu, groups):
    X, Y = gaussian(7, 4, seed=1), gaussian(4, 4, seed=2)
    numbers = range(4) if groups is None else groups
    expected = [[formulas.product_matern(x, y, nu, 0.7, numbers) for y in Y] for x in X]
    np.testing.assert_allclose(ProductMatern(nu, 0.7, groups)(X, Y), expected, rtol=0, atol=1e-14)
    single = kernel_matrix(ProductMatern(nu, 0.7, groups), X, Y, dtype=np.float32)
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dim", [9, 10, 11, 21, 64, 70])
def test_a_product_of_many_matern_kernels_is_that_of_its_parts(dim):
    """Tiles take ten exponentials together; more than 64 factors are in no tiles."""
    X, lengths = gaussian(20, dim), np.linspace(2, 9, dim)
    product = Product([([c], Matern(1.5, lengths[c])) for c in range(dim)])
    np.testing.assert_allclose(ProductMatern(1.5, lengths)(X), product(X), rtol=0, atol=1e-14)


@pytest.mark.parametrize("far", [50.0, 1e5, 1e160, 1e300])
@pytest.mark.parametrize("groups", [None, [0, 0]])
def test_a_product_of_matern_kernels_far_away(far, groups):
    """Without AVX-512 no power is below 2^-125 in single precision; 50 away polynomials are 2e7."""
    X = [[0.0, 0.0], [far, 0.0], [0.0, far]]
    for dtype, atol in ((np.float32, 2e7 * 2.0**-125), (np.float64, 1e-38)):
        K = kernel_matrix(ProductMatern(2.5, 1.0, groups), X, dtype=dtype)
        np.testing.assert_allclose(K, np.eye(3), rtol=1e-15, atol=atol)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nu": 0.5}, "nu=0.5 must be 1.5 or 2.5; use Laplacian for 1/2"),
        ({"groups": [0, 1]}, r"groups=\[0, 1\] must be 3 integers, one for each column"),
        ({"groups": [0.5, 1, 2]}, "must be 3 integers"),
        ({"length_scale": [1.0, 2.0]}, "length_scale"),
    ],
)
def test_what_a_product_of_matern_kernels_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        ProductMatern(**given).resolve(np.eye(3))
