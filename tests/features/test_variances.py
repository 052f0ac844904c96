"""Variances of many pairs, or differences, at once: those of each by itself, by any threads."""

import numpy as np
import pytest
from points import gaussian

from gzkcore import Matern
from gzkcore._util.threads import limit_threads
from gzkcore.features.block_moments import (
    energy_variance,
    kernel_moments,
    projection_moments,
    projection_variance,
)
from gzkcore.features.fourier import fourier_variance, modified_weight
from gzkcore.features.maclaurin import maclaurin_variance
from gzkcore.features.polysketch import poly_sketch_variance
from gzkcore.features.projection import fast_jl_variance, hadamard_projection_variance
from gzkcore.features.sketch import tensor_sketch_variance

OF_PAIRS = {
    "maclaurin": lambda x, y: maclaurin_variance(x, y, [0.5, 0.0, 1.0], [0.5, 0.1, 0.4], 7),
    "tensor sketch": lambda x, y: tensor_sketch_variance(x, y, 3, 16),
    "poly sketch": lambda x, y: poly_sketch_variance(x, y, 5, 7, 16, 2),
    "hadamard": lambda x, y: hadamard_projection_variance(x, y, 5),
    "fast jl": lambda x, y: fast_jl_variance(x, y, 5, 0.3),
    "energy": lambda x, y: energy_variance(x, 4),
    "projection": lambda x, y: projection_variance(y, 4, "gaussian", "permutation"),
    "modified": lambda x, y: modified_weight(x, 3.0, 0.01),
}
OF_NUMBERS = {
    "fourier": lambda k, k2: fourier_variance(k, k2, 7),
    "gaussian moments": lambda mean, std: kernel_moments("gaussian", mean, std, 9)[1],
    "spherical moments": lambda mean, std: kernel_moments("spherical", mean, std, 9)[0],
    "printed moments": lambda mean, std: kernel_moments("spherical", mean, std, 9, printed=True)[1],
    "matern moments": lambda mean, std: kernel_moments(Matern(), mean, std, 9)[1],
    "projection moments": lambda mean, std: projection_moments(mean, std, 9)[1],
}


@pytest.mark.parametrize("name", OF_PAIRS)
def test_rows(name):
    variance, X, Y = OF_PAIRS[name], gaussian(60_000, 11, seed=1), gaussian(60_000, 11, seed=2)
    with limit_threads(1):
        found = variance(X, Y)
    with limit_threads(2):
        assert np.array_equal(variance(X, Y), found)
    assert found.shape == (60_000,)
    assert [variance(x, y) for x, y in zip(X[:9], Y[:9], strict=True)] == found[:9].tolist()
    assert variance(X[:0], Y[:0]).shape == (0,)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_arrays_are_broadcast(name):
    moment, rng = OF_NUMBERS[name], np.random.default_rng(0)
    first, second = rng.uniform(0.1, 1, (5, 1)), rng.uniform(0.1, 1, 3)
    found = moment(first, second)
    assert found.shape == (5, 3)
    each = [[moment(float(a), float(b)) for b in second] for a in first[:, 0]]
    np.testing.assert_allclose(found, each, rtol=1e-14)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: tensor_sketch_variance([1.0], [1.0, 2.0], 2, 4), r"shapes \(1,\) and \(2,\)"),
    (lambda: tensor_sketch_variance([[1.0]], [1.0], 2, 4), r"shapes \(1, 1\) and \(1,\)"),
    (lambda: maclaurin_variance([1.0], [1.0], [1.0], [1.0, 2.0], 2), "one of each for every"),
    (lambda: energy_variance(np.ones((2, 2, 2)), 2), "delta has shape"),
    (lambda: kernel_moments("gaussian", 1.0, 0.0, 9), "must be > 0"),
    (lambda: kernel_moments("gaussian", [1.0, np.nan], 1.0, 9), "finite numbers"),
    (lambda: projection_moments(1.0, -1.0, 9), "std >= 0"),
])  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
