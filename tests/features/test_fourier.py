"""Random Fourier features: cosines to the last digits, unbiased, of the variance that is claimed."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from moments import PAIRS, assert_mean, assert_variance, estimates
from points import ball, gaussian
from scipy import integrate, sparse, stats
from sklearn.base import clone
from threadpoolctl import ThreadpoolController
from tolerances import TRIG, TWINS

from gzkcore import (
    Exponential,
    FastfoodFeatures,
    Gaussian,
    Laplacian,
    Matern,
    ModifiedFourierFeatures,
    Polynomial,
    RandomFourierFeatures,
    RationalQuadratic,
    Spherical,
    reference,
)
from gzkcore._compiled import fourier as _fourier
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.features.fourier import (
    fourier_features,
    fourier_variance,
    modified_weight,
    sample_frequencies,
)

SEEDS = 600
KERNELS = {
    "gaussian": Gaussian(0.3),
    "per-column": Gaussian([0.1, 0.3, 0.5, 0.7]),
    "laplacian": Laplacian([0.2, 0.1, 0.3, 0.2]),
    "exponential": Exponential(0.5),
    "matern": Matern(1.5, 2.0),
    "rough": Matern(0.3, 2.0),
    "limit": Matern(np.inf, 1.5),
    "rational": RationalQuadratic(0.7, [1.0, 2.0, 1.5, 3.0]),
}
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def pairs(dim=4, seed=0):
    return gaussian(PAIRS, dim, seed=seed), gaussian(PAIRS, dim, seed=seed + 1)


# ---- cosines and sines


def cos_sin(half_turns, scale=1.0, stream=False):
    c, s = np.empty_like(half_turns), np.empty_like(half_turns)
    _fourier.cos_sin_rows(half_turns, scale, c, s, stream)
    return c, s


@pytest.mark.parametrize("size", [0, 2, 10, 20])
@every_type
def test_cosines_and_sines(size, dtype):
    h = np.random.default_rng(size).uniform(-1, 1, (3, 401)) * 2.0**size
    h = h.astype(dtype)
    with mpmath.workdps(40):
        values = [
            (mpmath.cospi(mpmath.mpf(x)), mpmath.sinpi(mpmath.mpf(x))) for x in h.ravel().tolist()
        ]
    expected = np.array(values, dtype=np.longdouble).T.reshape(2, *h.shape)
    for stream in (False, True):
        error = np.abs(np.array(cos_sin(h, 1.0, stream)) - expected).max()
        assert error <= TRIG(dtype)


@every_type
def test_large_angles_are_exact(dtype):
    """Whole numbers and halves, up to where there is nothing between multiples of two."""
    top = 2.0 ** np.finfo(dtype).nmant
    h = np.array(
        [[0, 0.5, 1, -1.5, 7, top / 4 + 0.5, top - 1, top, top + 1, 2 * top + 2, 1e30, -3e38]]
    ).astype(dtype)
    c, s = cos_sin(h)
    np.testing.assert_allclose(c, [[1, 0, -1, 0, -1, 0, -1, 1, -1, 1, 1, 1]], atol=TRIG(dtype))
    np.testing.assert_allclose(s, [[0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]], atol=TRIG(dtype))
    assert np.isnan(cos_sin(np.array([[np.inf, -np.inf, np.nan]], dtype=dtype))).all()


@every_type
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 63, 64, 65, 200])
def test_any_number_of_angles(count, dtype):
    h = np.random.default_rng(0).uniform(-4, 4, (1, count)).astype(dtype)
    c, s = cos_sin(h, -3.0)
    for j in range(count):
        one = cos_sin(h[:, j : j + 1].copy(), -3.0)
        assert (c[0, j], s[0, j]) == (one[0][0, 0], one[1][0, 0])


@every_type
@pytest.mark.parametrize("apart", [0, 1, 64])
@pytest.mark.parametrize("offset", [0, 4, 8, 40, 63])
def test_the_same_bits_wherever_cosines_and_sines_start(offset, apart, dtype):
    """From the boundary on where they have one, or by way of a buffer; nothing beside is written."""
    size = np.dtype(dtype).itemsize
    for count in (1, 3, 15, 16, 17, 47, 64, 129, 512, 1100):
        h = np.random.default_rng(count).uniform(-4, 4, (1, count)).astype(dtype)
        memory = np.full((2 * count + apart) * size + 256, 255, np.uint8)  # all NaN
        first = -memory.ctypes.data % 64 + offset
        row = memory[first : first + (2 * count + apart) * size].view(dtype).reshape(1, -1)
        c, s = row[:, :count], row[:, count + apart :]
        _fourier.cos_sin_rows(h, 0.5, c, s, True)
        np.testing.assert_array_equal([c, s], cos_sin(h, 0.5))
        c[:], s[:] = np.nan, np.nan
        assert np.isnan(row).all()
        assert (memory[:first] == 255).all()
        assert (memory[first + row.nbytes :] == 255).all()


# ---- the reference


def test_orthogonal_frequencies_of_the_reference():
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((2, 3, 3))
    W = np.array(reference.fourier.orthogonal_frequencies(normals.tolist(), [1.0, 2.0, 3.0, 4.0]))
    tolerance = TWINS["directions"](length=27)
    np.testing.assert_allclose(W[:3] @ W[:3].T, np.diag([1.0, 4.0, 9.0]), atol=10 * tolerance)
    np.testing.assert_allclose(W[3] @ W[3], 16.0, atol=16 * tolerance)


def test_frequencies_are_orthogonal_in_blocks():
    W = sample_frequencies(Gaussian(0.5), 7, 3, "orthogonal", 0)
    products = W[:6].reshape(2, 3, 3) @ W[:6].reshape(2, 3, 3).transpose(0, 2, 1)
    tolerance = TWINS["directions"](length=27)
    for block in products:
        np.testing.assert_allclose(block, np.diag(np.diag(block)), atol=10 * tolerance)


# ---- unbiased, and of the variance that is claimed


@pytest.mark.parametrize(
    ("name", "n_components"), [*((name, 5) for name in KERNELS), ("gaussian", 1), ("gaussian", 6)]
)
def test_mean_and_variance(name, n_components):
    kernel = KERNELS[name]
    X, Y = pairs()
    values = estimates(RandomFourierFeatures(kernel, n_components), X, Y, SEEDS)
    k, k2 = np.diag(kernel(X, Y)), np.diag(kernel(2 * X, 2 * Y))
    assert_mean(values, k)
    variance = [fourier_variance(*both, n_components) for both in zip(k, k2, strict=True)]
    assert_variance(values, k, variance)


@pytest.mark.parametrize("frequencies", ["orthogonal", "qmc"])
@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern", "rational"])
def test_evenly_spread_frequencies_are_unbiased(name, frequencies):
    if (name, frequencies) == ("laplacian", "orthogonal"):
        pytest.skip("Laplacian depends on the axes")
    X, Y = pairs()
    features = RandomFourierFeatures(KERNELS[name], 15, frequencies=frequencies)
    values = estimates(features, X, Y, 500)
    k, k2 = np.diag(KERNELS[name](X, Y)), np.diag(KERNELS[name](2 * X, 2 * Y))
    assert_mean(values, k)
    independent = [fourier_variance(*both, 15) for both in zip(k, k2, strict=True)]
    assert np.square(values - k).mean() < 0.95 * np.mean(independent)


def modified_second_moment(dim, radius, D):
    """E (p/q cos(w.D))^2 for a point of R^dim, by quadrature along D and in closed form across it."""
    outside = stats.chi2.sf(radius**2, dim)
    volume = {1: 2 * radius, 2: np.pi * radius**2, 3: 4 / 3 * np.pi * radius**3}[dim]
    size = np.linalg.norm(D)

    def slab(t, scale):
        """Mass of a normal density of variance `scale`, given its first coordinate, in the ball."""
        if dim == 1:
            return stats.norm.pdf(t, scale=scale**0.5)
        return stats.norm.pdf(t, scale=scale**0.5) * stats.chi2.cdf(
            max(radius**2 - t * t, 0) / scale, dim - 1
        )

    inside = integrate.quad(lambda t: np.cos(t * size) ** 2 * slab(t, 0.5), -radius, radius)[0]
    near = integrate.quad(lambda t: np.cos(t * size) ** 2 * slab(t, 1.0), -radius, radius)[0]
    beyond = (1 + np.exp(-2 * size**2)) / 2 - near
    return volume * (4 * np.pi) ** (-dim / 2) * inside / (1 - outside) + beyond


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, pytest.param(3, marks=pytest.mark.weekly)])
def test_modified_mean_and_variance(dim):
    X, Y = pairs(dim)
    X, Y = X / 2, Y / 2
    features = ModifiedFourierFeatures(Gaussian(0.5), 4, alpha=0.5)
    values = estimates(features, X, Y, SEEDS)
    k = np.diag(Gaussian(0.5)(X, Y))
    assert_mean(values, k)
    radius = clone(features).fit(np.concatenate([X, Y])).radius_
    second = [modified_second_moment(dim, radius, D) for D in X - Y]
    assert_variance(values, k, (np.array(second) - k**2) / 2)


def test_modified_frequencies_help_a_small_ridge():
    """What they are for: the same error with far fewer features, where the ridge is small."""
    X = np.linspace(-4, 4, 400)[:, None]
    K = Gaussian(0.5)(X)
    alpha = 1e-4
    values, axes = np.linalg.eigh(K + alpha * np.eye(len(X)))
    whiten = axes / np.sqrt(values)

    def error(features):
        Z = features.fit(X).transform(X)
        return np.abs(np.linalg.eigvalsh(whiten.T @ (Z @ Z.T - K) @ whiten)).max()

    plain, modified = [], []
    for seed in range(5):
        plain.append(error(RandomFourierFeatures(Gaussian(0.5), 400, random_state=seed)))
        modified.append(
            error(ModifiedFourierFeatures(Gaussian(0.5), 400, alpha=alpha, random_state=seed))
        )
    assert np.median(modified) < 0.5 * np.median(plain)


# ---- promises of the features


@pytest.mark.parametrize("dim", [1, 9, 33, 100])
@every_type
def test_a_row_has_norm_one(dim, dtype):
    X = gaussian(70, dim).astype(dtype)
    Z = RandomFourierFeatures("gaussian", 130, random_state=0).fit(X).transform(X)
    np.testing.assert_allclose(np.einsum("ij,ij->i", Z, Z), 1.0, rtol=0, atol=TRIG(dtype, 130))


@pytest.mark.parametrize("dim", [3, 32, 33, 200])
@pytest.mark.parametrize("n_components", [1, 2, 3, 1023, 1024, 1025, 1100])
def test_every_width_is_the_formula(dim, n_components):
    """Both ways to multiply, several blocks of angles, and the odd column."""
    X = gaussian(300, dim)
    features = RandomFourierFeatures(Gaussian(0.3 / dim), n_components, random_state=0).fit(X)
    expected = X @ features.frequencies_.T
    p = n_components // 2
    expected = np.hstack(
        [
            np.cos(expected[:, :p]),
            np.sin(expected[:, :p]),
            np.cos(expected[:, p:] + features.phase_),
        ]
    )[:, :n_components] * np.sqrt(2 / n_components)
    tolerance = TWINS["fourier.fourier_features"](length=16)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(features.transform(rows), expected, rtol=0, atol=tolerance)


def test_rows_of_zeros_and_empty_sparse_rows():
    S = sparse.csr_array((5, 60))
    features = RandomFourierFeatures(Gaussian(0.5), 10, random_state=0).fit(S)
    Z = features.transform(S)
    np.testing.assert_allclose(Z, np.repeat([[0.2**0.5] * 5 + [0] * 5], 5, axis=0), atol=1e-16)
    np.testing.assert_array_equal(features.transform(S.toarray()), Z)


@pytest.mark.filterwarnings("ignore:on these data:UserWarning")  # numerically the identity
def test_heavy_tails_stay_finite():
    X = ball(20, 3).astype(np.float32)
    for kernel in (Matern(0.01), Exponential(1e3), Laplacian(1e6), RationalQuadratic(0.01)):
        Z = RandomFourierFeatures(kernel, 2000, random_state=0).fit(X).transform(X)
        assert np.isfinite(Z).all()
        assert np.abs(Z).max() <= 0.0317


def test_blas_gets_its_threads_back():
    controller = ThreadpoolController().select(user_api="blas")
    X = gaussian(3000, 100)
    features = RandomFourierFeatures("gaussian", 64, random_state=0).fit(X)
    with limit_blas(2):
        before = [library.num_threads for library in controller.lib_controllers]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: features.transform(X), range(40)))
        assert [library.num_threads for library in controller.lib_controllers] == before


def test_threads_and_blas_agree():
    X = gaussian(2000, 100)
    features = RandomFourierFeatures("gaussian", 100, random_state=0).fit(X)
    with limit_threads(1):
        expected = features.transform(X)
    with limit_threads(3):
        np.testing.assert_array_equal(features.transform(X), expected)


def test_one_frequency_more_keeps_the_others():
    """iid draws come one after the other, so that a known width stays known."""
    W = sample_frequencies(Gaussian(0.5), 3, 2, "iid", 7)
    np.testing.assert_array_equal(sample_frequencies(Gaussian(0.5), 9, 2, "iid", 7)[:3], W)


@pytest.mark.parametrize("cls", [RandomFourierFeatures, ModifiedFourierFeatures, FastfoodFeatures])
def test_a_kernel_that_tells_nothing_is_told(cls):
    X = gaussian(20, 2)
    with pytest.warns(UserWarning, match="is numerically the identity .* larger lengthscale"):
        cls(Gaussian(1e6), 4).fit(X)
    with pytest.warns(UserWarning, match="is numerically constant .* smaller lengthscale"):
        cls(Gaussian(1e-12), 4).fit(X)


# ---- bad input


@pytest.mark.parametrize(("parameters", "message"), [
    ({"kernel": Polynomial()}, "has no spectrum to draw frequencies from; use a shift-inv"),
    ({"kernel": Spherical()}, "has no spectrum to draw frequencies from"),
    ({"frequencies": "sobol"}, "frequencies='sobol' is unknown; use one of"),
    ({"kernel": "laplacian", "frequencies": "orthogonal"}, "Laplacian depends on the axes; use frequencies='iid'"),
    ({"n_components": 0}, "n_components=0 is too small; use an integer >= 1"),
    ({"kernel": "cubic"}, "kernel='cubic' is unknown"),
])  # fmt: skip
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomFourierFeatures(**parameters).fit(gaussian(9, 2))


def test_sobol_has_an_end():
    X = np.zeros((1, 21_201))
    with pytest.raises(ValueError, match="frequencies='qmc' is for less than 21201 columns"):
        RandomFourierFeatures(Gaussian(1.0), 2, frequencies="qmc").fit(X)


@pytest.mark.parametrize(("parameters", "dim", "message"), [
    ({"kernel": "matern"}, 2, "this density is known to be good for the Gaussian only"),
    ({}, 4, "X has 4 columns, but the variance of ModifiedFourierFeatures is too large beyond 3"),
    ({"alpha": 0.0}, 2, "alpha=0.0 is not usable"),
])  # fmt: skip
def test_bad_modified_parameters(parameters, dim, message):
    with pytest.raises(ValueError, match=message):
        ModifiedFourierFeatures(**parameters).fit(gaussian(9, dim))


@pytest.mark.parametrize("frequencies", ["iid", "qmc"])
@pytest.mark.parametrize("name", ["gaussian", "laplacian", "matern"])
def test_memory_that_is_asked_for_has_room_for_the_draws(name, frequencies):
    X, width = gaussian(9, 4), 50_000
    features = RandomFourierFeatures(KERNELS[name], width, frequencies=frequencies, random_state=0)
    clone(features).set_params(n_components=9).fit(
        X
    )  # what is imported at first use is not asked for
    tracemalloc.start()
    try:
        features.fit(X).transform(X[:1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 1.05 * features._bytes(width, *X.shape)


def test_bad_functions():
    with pytest.raises(ValueError, match="n_components=3 needs 2 frequencies, but W has 1"):
        fourier_features([[1.0]], [[1.0]], 3)
    with pytest.raises(ValueError, match="pass points and frequencies as rows of equal length"):
        fourier_features([[1.0]], [[1.0, 2.0]], 2)
    assert modified_weight([9.0], 4.0, 0.1) == 1.0
