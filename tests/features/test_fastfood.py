"""Fastfood: the block of frequencies, any width and dimension, bias and variance."""

import numpy as np
import pytest
from moments import assert_mean, assert_variance, estimates
from points import gaussian
from scipy import sparse, stats
from tolerances import TRIG, TWINS

from gzkcore import (
    Exponential,
    FastfoodFeatures,
    Gaussian,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from gzkcore.features.fastfood import fastfood_frequencies
from gzkcore.features.fourier import fourier_features, fourier_variance

SEEDS = 600
KERNELS = {
    "gaussian": Gaussian(0.2),
    "per-column": Gaussian([0.1, 0.2, 0.3, 0.1, 0.2]),
    "exponential": Exponential(0.4),
    "matern": Matern(1.5, 2.0),
    "rational": RationalQuadratic(0.7, 2.0),
}


def frequencies_of(features):
    """Return all frequencies, multiplied out, in units of 1 / X."""
    made = features.signs_, features.permutation_, features.normals_, features.lengths_
    V = np.concatenate([fastfood_frequencies(*block) for block in zip(*made, strict=True)])
    return V[:, : features.n_features_in_] * features.kernel_.scale()


# ---- the block


def test_rows_have_the_lengths_given():
    rng = np.random.default_rng(0)
    lengths = rng.uniform(0, 3, 64)
    V = fastfood_frequencies(
        rng.choice([-1, 1], 64), rng.permutation(64), rng.standard_normal(64), lengths
    )
    tolerance = TWINS["fastfood.fastfood_frequencies"](length=64)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), lengths, atol=3 * tolerance)


def test_frequencies_are_normal():
    """Each row for itself: what a row says along a direction is a standard normal number."""
    values = []
    for seed in range(400):
        features = FastfoodFeatures(Gaussian(0.5), 32, frequencies="normal", random_state=seed).fit(
            np.ones((2, 13))
        )
        values.append(frequencies_of(features)[3] @ np.arange(13) / np.sqrt(650))
    assert stats.kstest(values, "norm").pvalue > 0.01


def test_frequencies_are_nearly_orthogonal():
    """The cosines between those of a block are 2.4 / n, with normal numbers sqrt(2 / n)."""
    cosines = {}
    for frequencies in ("orthogonal", "normal"):
        V = frequencies_of(
            FastfoodFeatures(
                Gaussian(0.5), 2048, frequencies=frequencies, random_state=0
            ).fit(np.ones((2, 1024)))
        )  # fmt: skip
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        cosines[frequencies] = np.sqrt(np.mean((V @ V.T)[np.triu_indices(1024, 1)] ** 2))
    assert 1024 * cosines["orthogonal"] == pytest.approx(2.4, rel=0.1)
    assert cosines["normal"] == pytest.approx(np.sqrt(2 / 1024), rel=0.1)


# ---- the features


@pytest.mark.parametrize("dim", [1, 2, 15, 16, 17, 100, 700])
@pytest.mark.parametrize("n_components", [1, 2, 31, 32, 1024, 1091])
def test_every_width_is_the_formula(dim, n_components):
    X = gaussian(21, dim)
    features = FastfoodFeatures(Gaussian(0.3 / dim), n_components, random_state=0).fit(X)
    W = frequencies_of(features)
    expected = fourier_features(X, W, n_components, features.phase_)
    tolerance = TWINS["fourier.fourier_features"](length=100)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(features.transform(rows), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("name", "n_components"), [*((name, 2) for name in KERNELS), ("gaussian", 33), ("matern", 33)]
)
def test_mean_and_variance(name, n_components):
    """One frequency has the variance of Fourier features; those of a block have nearly that."""
    kernel = KERNELS[name]
    X, Y = gaussian(50, 5), gaussian(50, 5, seed=1)
    features = FastfoodFeatures(kernel, n_components, frequencies="normal")
    values = estimates(features, X, Y, SEEDS)
    k, k2 = np.diag(kernel(X, Y)), np.diag(kernel(2 * X, 2 * Y))
    assert_mean(values, k)
    variance = [fourier_variance(*both, n_components) for both in zip(k, k2, strict=True)]
    if n_components == 2:
        assert_variance(values, k, variance)
    else:
        ratio = np.square(values - k).mean() / np.mean(variance)
        assert 0.7 < ratio < 1.1


def test_the_bias_of_orthogonal_frequencies():
    """Of rows that differ in one column, near and far: a lattice would give 0.2 back for ever."""
    n, t = 16, np.array([0.5, 1, 2, 3, 4, 6, 9, 12, 15, 20])
    Y = np.zeros((t.size, n))
    Y[:, 3] = t
    values = estimates(FastfoodFeatures(Gaussian(0.5), 2 * n), np.zeros(Y.shape), Y, SEEDS)
    errors = values.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    bias = values.mean(axis=0) - np.exp(-(t**2) / 2)
    assert np.all(np.abs(bias) < 0.36 / n + 4 * errors)
    assert np.all(np.abs(bias[t > 5]) < 0.005 + 4 * errors[t > 5])


def test_orthogonal_frequencies_err_less():
    X, Y = gaussian(50, 64), gaussian(50, 64, seed=1)
    kernel = Gaussian(0.5 / 64)
    k, k2 = np.diag(kernel(X, Y)), np.diag(kernel(2 * X, 2 * Y))
    variance = [fourier_variance(*both, 128) for both in zip(k, k2, strict=True)]
    error = {
        frequencies: np.square(
            estimates(FastfoodFeatures(kernel, 128, frequencies=frequencies), X, Y, 300) - k
        ).mean()
        for frequencies in ("orthogonal", "normal")
    }
    assert error["orthogonal"] < 0.5 * np.mean(variance) < 0.5 * error["normal"]


@pytest.mark.parametrize(
    ("dim", "n_components", "size"),
    [(1, 1, 16), (3, 63, 16), (3, 64, 32), (3, 255, 64), (1, 512, 256), (16, 9999, 256),
     (300, 64, 512)],
)  # fmt: skip
def test_blocks_of_orthogonal_frequencies_are_larger(dim, n_components, size):
    """At least 256, or what the width fills once: those of 16 frequencies are far from normal."""
    X = np.ones((2, dim))
    features = FastfoodFeatures(Gaussian(0.5), n_components, random_state=0)
    assert features.fit(X).signs_.shape[1] == size
    features.set_params(frequencies="normal")
    assert features.fit(X).signs_.shape[1] == max(16, 1 << (dim - 1).bit_length())


@pytest.mark.parametrize("name", ["gaussian", "exponential", "matern", "rational"])
def test_many_orthogonal_frequencies_of_few_columns(name):
    """Where the variance is small the bias doesn't show; with blocks of 16 squares are up to 4 times as large."""
    X = gaussian(60, 2)
    K = KERNELS[name](X)
    error = {
        frequencies: np.mean([
            np.square(Z @ Z.T - K).mean()
            for seed in range(8)
            for Z in [FastfoodFeatures(
                KERNELS[name], 1 << 15, frequencies=frequencies, random_state=seed
            ).fit_transform(X)]
        ])
        for frequencies in ("orthogonal", "normal")
    }  # fmt: skip
    assert error["orthogonal"] < 1.4 * error["normal"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_norm_one(dtype):
    X = gaussian(70, 100).astype(dtype)
    Z = FastfoodFeatures("gaussian", 500, random_state=0).fit(X).transform(X)
    np.testing.assert_allclose(np.einsum("ij,ij->i", Z, Z), 1.0, rtol=0, atol=TRIG(dtype, 500))


def test_entries_that_stand_twice_are_added():
    S = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3, 3])), shape=(2, 3)
    )
    features = FastfoodFeatures(Gaussian(0.5), 40, random_state=0).fit(np.eye(3))
    expected = features.transform([[4.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(features.transform(S), expected)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"kernel": "laplacian"}, "depends on the axes, and Fastfood rotates them; use Random"),
    ({"kernel": Polynomial()}, "has no spectrum to draw frequencies from"),
    ({"n_components": 0}, "n_components=0 is too small; use an integer >= 1"),
    ({"frequencies": "iid"}, "frequencies='iid' is unknown; use one of"),
])  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        FastfoodFeatures(**parameters).fit(gaussian(9, 2))
