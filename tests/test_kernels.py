"""The exact kernels: values, parameters resolved on data, what is refused."""

import numpy as np
import pytest
from points import gaussian, sphere
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from tolerances import IDENTITY, TWINS

from gzkcore import Gaussian, Zonal, reference
from gzkcore.kernels import as_kernel

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
        (lambda: as_kernel("gauss"), ValueError, r"kernel='gauss' is unknown; use one of \["),
        (lambda: as_kernel(3), ValueError, r"kernel=3 is unknown"),
        (lambda: Gaussian()(X2), ValueError, r"gamma='scale' is not a number yet; call resolve"),
        (
            lambda: Gaussian("scal").resolve(X2),
            ValueError,
            r"gamma='scal' is unknown; use a number",
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
