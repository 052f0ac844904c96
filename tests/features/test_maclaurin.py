"""Random Maclaurin features: unbiased, of the variance that is claimed, and the formula."""

import numpy as np
import pytest
from moments import PAIRS, assert_mean, assert_variance, estimates
from points import ball, gaussian
from scipy import sparse
from sklearn.base import clone
from tolerances import TWINS

from gzkcore import (
    DotProduct,
    ExponentialDot,
    Gaussian,
    MaclaurinFeatures,
    Matern,
    Polynomial,
    reference,
)
from gzkcore.features.maclaurin import RULES, maclaurin_features, maclaurin_variance

SEEDS = {"geometric": 2000, "adapted": 600}  # estimates of rare degrees are skewed
KERNELS = {
    "gaussian": Gaussian([0.1, 0.3, 0.2, 0.4]),
    "polynomial": Polynomial(3, 0.5, 0.7),
    "homogeneous": Polynomial(2, 1.0, 0.0),
    "exponential": ExponentialDot(0.8),
    "derivatives": DotProduct([1.0, 0.0, 2.0, 0.0, 3.0]),
}


def pairs(dim=4):
    return ball(PAIRS, dim, seed=0), ball(PAIRS, dim, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("degrees", RULES)
@pytest.mark.parametrize("name", ["gaussian", "homogeneous", "derivatives"])
def test_mean_and_variance(name, degrees):
    kernel, (X, Y) = KERNELS[name], pairs()
    features = MaclaurinFeatures(kernel, 8, degrees=degrees)
    values = estimates(features, X, Y, SEEDS[degrees])
    k = np.diag(kernel(X, Y))
    assert_mean(values, k)
    fitted = clone(features).fit(np.concatenate([X, Y]))
    center = 0.0 if fitted.center_ is None else fitted.center_
    x, y = ((rows - center) * kernel.scale() for rows in (X, Y))
    sizes = np.exp(
        kernel.log_envelope(np.linalg.norm(x, axis=1))
        + kernel.log_envelope(np.linalg.norm(y, axis=1))
    )
    variance = [
        size**2 * maclaurin_variance(a, b, fitted.coefficients_, fitted.probabilities_, 8)
        for a, b, size in zip(x, y, sizes, strict=True)
    ]
    assert_variance(values, k, variance)


@pytest.mark.parametrize("dim", [3, 32, 33, 100])
@pytest.mark.parametrize("n_components", [1, 17, 1100])
def test_every_width_is_the_formula(dim, n_components):
    X = gaussian(40, dim) / dim**0.5
    features = MaclaurinFeatures(ExponentialDot(1.0), n_components, random_state=0).fit(X)
    N, signs = features.degrees_, features.signs_
    weights = np.sqrt(features.coefficients_[N] / features.probabilities_[N] / n_components)
    expected, first = np.tile(weights, (40, 1)), 0
    for i in range(N.max(initial=0)):
        count = int((i < N).sum())
        expected[:, :count] *= X @ signs[first : first + count].T
        first += count
    tolerance = TWINS["maclaurin.maclaurin_features"](length=dim) * np.abs(expected).max()
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(features.transform(rows), expected, rtol=0, atol=tolerance)


def test_adapted_degrees_are_better():
    X = gaussian(200, 9) / 2
    kernel, error = Polynomial(5, 0.3), {}
    for rule in RULES:
        Zs = [MaclaurinFeatures(kernel, 256, degrees=rule, random_state=s) for s in range(20)]
        K = kernel(X)
        error[rule] = np.mean(
            [np.linalg.norm(Z @ Z.T - K) for Z in (f.fit_transform(X) for f in Zs)]
        )
    assert error["adapted"] < 0.9 * error["geometric"]


def test_a_kernel_of_one_degree_has_only_that():
    features = MaclaurinFeatures(Polynomial(3, 1.0, 0.0), 50, random_state=0).fit(gaussian(9, 3))
    assert set(features.degrees_.tolist()) == {3}


def test_rows_of_zeros():
    features = MaclaurinFeatures(Polynomial(2), 400, random_state=0).fit(np.zeros((3, 4)) + 1e-9)
    Z = features.transform(np.zeros((2, 4)))
    np.testing.assert_allclose(Z @ Z.T, 1.0, rtol=1e-9)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"kernel": Matern()}, "is not a power series of the dot product; use Gaussian"),
    ({"degrees": "even"}, "degrees='even' is unknown; use one of"),
    ({"n_components": 0}, "n_components=0 is too small"),
])  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        MaclaurinFeatures(**parameters).fit(gaussian(9, 2))


def test_bad_functions():
    with pytest.raises(ValueError, match="signs has 1 row, but the degrees add up to 2"):
        maclaurin_features([[1.0]], [[1.0]], [2], [1.0])
    with pytest.raises(ValueError, match="a degree >= 0 and a weight for each column"):
        maclaurin_features([[1.0]], [[1.0]], [1], [1.0, 2.0])
    assert reference.maclaurin.maclaurin_features([[2.0]], [], [0], [3.0]) == [[3.0]]


def test_rows_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match="X is too large for Polynomial"):
        MaclaurinFeatures(Polynomial(3), 16).fit(np.array([[1e270], [1.0]]))
