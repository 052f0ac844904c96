"""Block projections and features: the formulas, printed and right, the arrangements, the promises."""

import math
import pickle
import warnings

import numpy as np
import pytest
from moments import estimates as products_of
from points import gaussian
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import SparseRandomProjection
from tolerances import IDENTITY

from gzkcore import (
    BlockFourierFeatures,
    BlockProjection,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    MeanNormalizer,
    Polynomial,
    Product,
    RationalQuadratic,
    Spherical,
    Zonal,
    block_report,
    reference,
)
from gzkcore._util.threads import limit_threads
from gzkcore.features.block import assign_blocks, block_projection, spherical_frequencies
from gzkcore.features.block_moments import (
    energy_variance,
    kernel_moments,
    projection_moments,
    projection_variance,
)

formulas = reference.block
rng_of = np.random.default_rng


def errors_of_variance(sample, expected):
    """How many standard errors the sample's variance is from the expected one."""
    squares = np.square(sample - sample.mean())
    return abs(squares.mean() - expected) / (squares.std() / math.sqrt(sample.size))


def errors_of_mean(sample, expected):
    return abs(sample.mean() - expected) / (sample.std() / math.sqrt(sample.size))


# ---- the algorithms


@pytest.mark.parametrize(("dim", "k"), [(6, 3), (12, 4), (5, 1), (5, 5)])
def test_three_ways_to_write_algorithm_1(dim, k):
    rng = rng_of(0)
    u, C = rng.standard_normal(dim), rng.standard_normal((k, dim // k))
    v = formulas.fast_random_projection(u, C)
    np.testing.assert_allclose(np.array(formulas.block_matrix(C)) @ u, v, rtol=1e-12)
    for diagonal in (formulas.diagonal_of_product, formulas.diagonal_sum):
        np.testing.assert_allclose(diagonal(C, formulas.blocks(u, k)), v, rtol=1e-12)
    buckets = [np.repeat(np.arange(k), dim // k)]
    np.testing.assert_allclose(block_projection([u], buckets, [C.ravel()], k)[0], v, rtol=1e-12)


def test_the_papers_setting_is_reachable():
    """One pass of k blocks assigned by one permutation, normal frequencies: Algorithm 2 to the letter."""
    X = gaussian(4, 96)
    features = BlockFourierFeatures(
        Gaussian(0.01), 2 * 6, block_size=96 // 6, arrangement="permutation", random_state=0
    ).fit(X)
    assert features.n_blocks_ == (6,)
    order = np.argsort(features.buckets_[0], kind="stable")
    C = (features.weights_[0] * math.pi)[order].reshape(6, 16) / math.sqrt(6)
    expected = [formulas.fast_fourier_features(x[order], C) for x in X]
    tolerance = IDENTITY["closed form"]()
    np.testing.assert_allclose(features.transform(X), expected, rtol=0, atol=tolerance)


def test_repetitions_are_features_too():
    rng = rng_of(0)
    u, v = rng.standard_normal((2, 8)) / 4
    orders = [rng.permutation(8) for _ in range(3000)]
    Cs = rng.standard_normal((3000, 2, 4))
    a, b = (np.array(formulas.repeated_fourier_features(x, orders, Cs)) for x in (u, v))
    assert a @ a == pytest.approx(1)
    assert a.shape == (2 * 2 * 3000,)
    energies = [formulas.block_energies((u - v)[order], [0] * 4 + [1] * 4, 2) for order in orders]
    expected = np.exp(-np.array(energies)).mean()  # sigma^2 k a_i / 2
    assert a @ b == pytest.approx(expected, abs=5 / math.sqrt(2 * 6000))


def test_mean_normalise_is_the_normaliser():
    X = gaussian(7, 5)
    X[:, 2] = 3.0
    tolerance = IDENTITY["rescaled"]()
    np.testing.assert_allclose(
        MeanNormalizer().fit_transform(X), formulas.mean_normalise(X), rtol=0, atol=tolerance
    )


# ---- what is printed fails, what is corrected holds: Monte Carlo

DRAWS = 400_000


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "spherical"])
def test_moments_of_the_kernel(kernel):
    """Theorem 4.1, Propositions 4.3 and 4.4: B1, B6, B7, B8."""
    rng = rng_of(0)
    mean, std = {"gaussian": (0.5, 0.1), "exponential": (0.6, 0.1), "spherical": (0.5, 0.1)}[kernel]
    variable = mean + std * rng.standard_normal(DRAWS)
    normal = rng.standard_normal(DRAWS)
    angle = {
        "gaussian": lambda: np.sqrt(2 * variable) * normal,
        "exponential": lambda: variable * normal / np.abs(rng.standard_normal(DRAWS)),
        "spherical": lambda: variable * spherical_frequencies(DRAWS, rng)[:, 0],
    }[kernel]()
    estimate = np.cos(angle)
    for moments in (formulas.kernel_moments, kernel_moments):
        expected, variance = moments(kernel, mean, std, 1)
        assert errors_of_mean(estimate, expected) < 5
        assert errors_of_variance(estimate, variance) < 5
        as_printed = moments(kernel, mean, std, 1, printed=True)
        assert errors_of_variance(estimate, as_printed[1]) > 50
    if kernel == "spherical":  # B8: beyond theta / 2 the polynomial is wrong too
        polynomial = 1 - 3 * mean + 4 * (mean**3 + 3 * mean * std**2)
        assert errors_of_mean(np.cos(2 * angle), polynomial) > 20
        twice = formulas.kernel_moments(kernel, 2 * mean, 2 * std, 1)[0]
        assert errors_of_mean(np.cos(2 * angle), twice) < 5


def test_moments_of_other_kernels_by_quadrature():
    """Of kernels without a formula in the paper, and of one with."""
    rng = rng_of(1)
    squared = 4.0 + 0.5 * rng.standard_normal(DRAWS)
    for kernel in (Matern(1.5, 2.0), RationalQuadratic(1.0, 2.0)):
        scale = kernel.frequencies(np.ones((DRAWS, 1)), rng.random(DRAWS))[:, 0] / 2.0
        estimate = np.cos(scale * np.sqrt(squared) * rng.standard_normal(DRAWS))
        mean, variance = kernel_moments(kernel, 4.0, 0.5, 1)
        assert errors_of_mean(estimate, mean) < 5
        assert errors_of_variance(estimate, variance) < 5
    assert kernel_moments(Gaussian(0.25), 4.0, 0.4, 3) == kernel_moments("gaussian", 1.0, 0.1, 3)
    assert kernel_moments(Matern(math.inf), 1.0, 0.1, 3) == pytest.approx(
        kernel_moments(Gaussian(0.5), 1.0, 0.1, 3)
    )
    assert kernel_moments(Laplacian(2.0), 1.0, 0.1, 3) == kernel_moments("exponential", 2.0, 0.2, 3)


def test_half_as_many_frequencies_are_for_another_kernel():
    """B2: k/2 blocks with the scale sqrt(k) mean the kernel at sqrt(2) Delta."""
    rng = rng_of(0)
    delta = np.full(512, 0.5 / math.sqrt(512))
    k = 16
    V = rng.standard_normal((20_000, k // 2, 64)) @ delta[:64]
    estimate = np.cos(math.sqrt(k) * V).mean(axis=1)
    assert errors_of_mean(estimate, math.exp(-0.25)) < 5  # exp(-2 |Delta|^2 / 2)
    assert errors_of_mean(estimate, math.exp(-0.125)) > 50


def test_the_mean_is_an_average_and_too_large():
    """B3, B4, B21: Jensen's bias, which more passes do not lower."""
    rng = rng_of(0)
    delta = rng.standard_normal(4096)
    delta /= np.linalg.norm(delta)
    means = {}
    for size in (1, 2, 8, 32):
        k = 4096 // size
        assigned = [assign_blocks(4096, k, "permutation", rng) for _ in range(20)]
        energies = [np.bincount(buckets, delta**2) for buckets in assigned]
        means[size] = np.exp(-k * np.array(energies)).mean()
    # MATH: (1 + 2 tau / b)^(-b / 2) for normal coordinates
    for size, mean in means.items():
        assert mean == pytest.approx((1 + 2 / size) ** (-size / 2), abs=0.012)
        assert mean > math.exp(-1)
    assert means[1] == pytest.approx(1 / math.sqrt(3), abs=0.012)


def test_the_factor_of_proposition_4_2():
    """B5: mu / sigma >> 1 is not enough; gamma sigma << 1 is."""
    energies = rng_of(0).normal(1.0, 0.1, DRAWS)  # mu / sigma = 10
    for gamma in (0.5, 5.0, 20.0):
        ratio = math.exp(-gamma) / np.exp(-gamma * energies).mean()
        assert ratio == pytest.approx(formulas.correction_factor(gamma, 0.1), rel=0.05)
    assert formulas.correction_factor(50.0, 0.1) < 1e-5


def test_moments_of_a_projection():
    """Theorem 4.7, B10."""
    rng = rng_of(0)
    delta, k = rng.standard_normal(12), 3
    shuffled = rng.permuted(np.tile(delta, (DRAWS // 4, 1)), axis=1)
    v = (shuffled * rng.standard_normal(shuffled.shape)).reshape(-1, k, 4).sum(axis=2)
    squared = np.square(v).sum(axis=1)
    energies = k * np.square(shuffled.reshape(-1, k, 4)).sum(axis=2)
    mean, std = energies.mean(), energies.std()
    expected, variance = formulas.projection_moments(mean, std, k)
    assert errors_of_mean(squared, expected) < 5
    assert errors_of_variance(squared, variance) < 5
    assert errors_of_variance(squared, projection_moments(mean, std, k, printed=True)[1]) > 50
    exact = formulas.projection_variance(delta, k, "gaussian", "permutation")
    assert variance == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("arrangement", ["stratified", "permutation"])
@pytest.mark.parametrize(("dim", "k"), [(12, 3), (11, 4), (7, 7), (5, 2)])
def test_variances_of_energies_and_projections(arrangement, dim, k):
    rng = rng_of(2)
    delta = rng.standard_normal(dim)
    assigned = np.array([assign_blocks(dim, k, arrangement, rng) for _ in range(20_000)])
    rows = np.arange(len(assigned))[:, None]
    energies, v = np.zeros((len(assigned), k)), np.zeros((2, len(assigned), k))
    np.add.at(energies, (rows, assigned), delta**2)
    signs = rng.integers(0, 2, assigned.shape) * 2.0 - 1
    for which, values in enumerate((signs, rng.standard_normal(assigned.shape))):
        np.add.at(v[which], (rows, assigned), delta * values)
    variance = energy_variance(delta, k, arrangement)
    assert variance == pytest.approx(formulas.energy_variance(delta, k, arrangement), abs=1e-12)
    assert energies[:, 0].mean() == pytest.approx(delta @ delta / k, rel=0.05)
    assert errors_of_variance(energies[:, 0], variance) < 5 or variance < 1e-12
    for which, values in enumerate(("rademacher", "gaussian")):
        squared = np.square(v[which]).sum(axis=1)
        variance = projection_variance(delta, k, values, arrangement)
        expected = formulas.projection_variance(delta, k, values, arrangement)
        assert variance == pytest.approx(expected, abs=1e-9)
        assert squared.mean() == pytest.approx(delta @ delta, rel=0.05)
        if variance > 1e-9:
            assert errors_of_variance(squared, variance) < 5


def test_the_bounds_of_lemma_4_6():
    """B11: with norms and not their squares Eq 20 is false; B12: which side is which."""
    energies = np.ones(100)
    energies[0] = 25.0
    total, (m, M) = energies.sum(), np.sqrt([energies.min(), energies.max()])
    assert not (m / M) * 100 * energies.max() <= total  # as printed
    assert (m / M) ** 2 * 100 * energies.max() <= total <= (M / m) ** 2 * 100 * energies.min()
    chi = rng_of(0).chisquare(1, (DRAWS // 100, 100)) @ energies
    lower, upper, probability = formulas.lemma_4_6(energies, 0.5)
    assert np.mean((lower <= chi) & (chi <= upper)) >= probability
    printed = formulas.lemma_4_6(energies, 0.5, printed=True)
    assert lower < printed[0] < printed[1] < upper


@pytest.mark.parametrize("k", [100, 1000, 10**4])
def test_lemma_4_6_with_norms_holds_for_one_block_of_norm_5(k):
    """B11: by Chernoff's bounds, in logarithms, which do not underflow."""
    energies = np.array([25.0] + [1.0] * (k - 1))
    t, s = np.linspace(0, 0.02, 100, endpoint=False), np.geomspace(1e-4, 1e3, 100)
    for epsilon in (0.2, 0.6, 0.9):
        lower, upper, _ = formulas.lemma_4_6(energies, epsilon, printed=True)
        above = -t * upper - (k - 1) / 2 * np.log1p(-2 * t) - np.log1p(-50 * t) / 2
        below = s * lower - (k - 1) / 2 * np.log1p(2 * s) - np.log1p(50 * s) / 2
        allowed = math.log(2) - (epsilon**2 - epsilon**3) * k / 4
        assert np.logaddexp(above.min(), below.min()) <= allowed


def test_lemma_4_6_with_norms_fails_for_one_block_of_norm_50():
    """B11: among 10^4 of norm 1; the coordinate of this block alone is too large too often."""
    _, upper, _ = formulas.lemma_4_6(np.array([2500.0] + [1.0] * 9999), 0.6, printed=True)
    chance = math.log(2) + stats.norm.logsf(math.sqrt(upper / 2500))
    assert chance > math.log(2) - (0.6**2 - 0.6**3) * 10**4 / 4 + 100


@pytest.mark.parametrize("t", [0.5, 1.0, 3.0])
def test_the_bound_that_holds_for_any_blocks(t):
    energies = rng_of(0).gamma(1.0, 1.0, 30)
    squared = rng_of(1).chisquare(1, (50_000, 30)) @ energies
    lower, upper = formulas.laurent_massart(energies, t)
    assert np.mean(squared > upper) < math.exp(-t)
    assert np.mean(squared < lower) < math.exp(-t)


def test_chi_square_is_for_dense_matrices():
    """Eq 2 holds for R u / sqrt(k); with unequal blocks the spread is larger."""
    rng = rng_of(0)
    u = np.array([5.0, *[1.0] * 19])
    k = 10
    dense = [
        formulas.chi_square(u, rng.standard_normal((k, 20)) @ u / math.sqrt(k)) for _ in range(2000)
    ]
    assert stats.kstest(dense, stats.chi2(k).cdf).pvalue > 1e-3
    v = (u * rng.standard_normal((2000, 20))).reshape(-1, k, 2).sum(axis=2)
    block = [formulas.chi_square(u, row) for row in v]
    assert stats.kstest(block, stats.chi2(k).cdf).pvalue < 1e-9
    effective = 44**2 / np.square(np.square(u).reshape(k, 2).sum(axis=1)).sum()
    assert np.var(block) == pytest.approx(2 * k * k / effective, rel=0.2)


def test_the_scale_depends_on_the_kernel():
    """B20: sqrt(k) is wrong for exp(-|Delta|_1), k is right."""
    rng = rng_of(0)
    k, size = 100, 32
    delta = np.full(size, 1 / (k * size))
    projected = rng.standard_cauchy((20_000, size)) @ delta
    assert np.cos(k * projected).mean() == pytest.approx(math.exp(-1), abs=0.02)
    assert np.cos(math.sqrt(k) * projected).mean() == pytest.approx(0.905, abs=0.02)


# ---- the arrangements


@pytest.mark.parametrize("arrangement", ["stratified", "permutation"])
@pytest.mark.parametrize(("dim", "k"), [(40, 13), (40, 3), (50, 16), (70, 17), (64, 32), (9, 9)])
def test_every_coordinate_meets_every_block(arrangement, dim, k):
    """With probability 1 / k, for k prime, k < 16, k that does not divide D."""
    rng = rng_of(0)
    draws = 4000
    counts, together = np.zeros((dim, k)), np.zeros((dim, dim))
    for _ in range(draws):
        buckets = assign_blocks(dim, k, arrangement, rng)
        counts[np.arange(dim), buckets] += 1
        together += buckets[:, None] == buckets
        sizes = np.bincount(buckets, minlength=k)
        assert sorted(sizes, reverse=True) == formulas.block_sizes(dim, k)
    bound = 5.5 * math.sqrt(draws * (1 / k) * (1 - 1 / k))
    assert np.abs(counts - draws / k).max() < bound
    if arrangement == "stratified":  # never within a segment, 1 / k across
        segment = np.arange(dim) // k
        same = segment[:, None] == segment
        assert not together[same & ~np.eye(dim, dtype=bool)].any()
        assert not (~same).any() or np.abs(together[~same] - draws / k).max() < bound


def patterns(dim, k, rng):
    """Squared differences of many shapes, each with sum 1."""
    t = np.arange(dim) / dim
    side = math.isqrt(dim)
    image = 0.1 * rng.standard_normal((side, side))
    image[side // 4 : side // 2, side // 3 : side // 2] += 2
    rows = {
        "iid": rng.standard_normal(dim),
        "smooth": np.sin(19 * t) + 0.3 * np.cos(107 * t) + 0.1 * rng.standard_normal(dim),
        "patch": np.pad(image.ravel(), (0, dim - side * side)),
        "sorted": np.sort(rng.standard_normal(dim)),
        "sparse": rng.standard_normal(dim) * (rng.random(dim) < 0.02),
    }
    for period in sorted({2, 3, 4, 7, 8, 16, 32, 64, k // 2, k, 2 * k}):
        stripes = np.where(np.arange(dim) % period < period / 2, 1.0, 0.1)
        rows[f"stripes {period}"] = stripes + 0.05 * rng.standard_normal(dim)
    return {name: row**2 / (row @ row) for name, row in rows.items()}


def estimates(dim, k, arrangement, squares, draws, rng):
    """Draws of the estimate of exp(-1) for each pattern, and its mean given the blocks."""
    values = np.empty((draws, 2, len(squares)))
    for draw in range(draws):
        buckets = assign_blocks(dim, k, arrangement, rng)
        scale = (dim / np.bincount(buckets, minlength=k))[buckets]
        S = sparse.csr_array((scale, buckets, np.arange(dim + 1)), (dim, k))
        W = sparse.csr_array(
            (np.sqrt(2 * scale) * rng.standard_normal(dim), buckets, np.arange(dim + 1)), (dim, k)
        )
        values[draw, 0] = np.cos(np.sqrt(squares) @ W).mean(axis=1)
        values[draw, 1] = np.exp(-(squares @ S)).mean(axis=1)
    return values


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "k"), [(2048, 64), (1700, 53)])
def test_the_default_arrangement_is_as_good_as_a_permutation(dim, k):
    """Ratio of the standard deviations at most 1.15 for every pattern, and no larger bias."""
    rng = rng_of(0)
    rows = patterns(dim, k, rng)
    squares = np.array(list(rows.values()))
    draws = 2000
    ours = estimates(dim, k, "stratified", squares, draws, rng)
    theirs = estimates(dim, k, "permutation", squares, draws, rng)
    ratios = dict(zip(rows, ours[:, 0].std(axis=0) / theirs[:, 0].std(axis=0), strict=True))
    assert max(ratios.values()) <= 1.15, ratios
    difference = ours[:, 1].mean(axis=0) - theirs[:, 1].mean(axis=0)
    error = np.sqrt((ours[:, 0].var(axis=0) + theirs[:, 0].var(axis=0)) / draws)
    assert (difference <= 2 * error).all(), dict(zip(rows, difference / error, strict=True))
    for square in squares:  # the variance of energies, which the bias follows: (D-1)/(D-b) at most
        variance = [energy_variance(np.sqrt(square), k, a) for a in ("stratified", "permutation")]
        assert variance[0] <= variance[1] * (1 + 2 / k) + 1e-15


# ---- the projection


def matrix_of(projection):
    S = projection.components_
    return S.toarray() if sparse.issparse(S) else S


SHAPES = [
    (1, 1, 1), (3, 5, 2), (33, 17, 17), (50, 1000, 101), (50, 37, 90), (17, 16, 3), (5, 700, 64),
]  # fmt: skip
PROJECTIONS = [
    {"arrangement": arrangement, "values": values, "mix": mix}
    for arrangement in ("stratified", "permutation")
    for values in ("rademacher", "gaussian")
    for mix in (None, "hadamard")
]


@pytest.mark.parametrize(("n", "dim", "k"), SHAPES)
@pytest.mark.parametrize("options", PROJECTIONS[:4:3] + PROJECTIONS[5:7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_projection_is_its_matrix(n, dim, k, options, dtype):
    X = gaussian(n, dim).astype(dtype)
    projection = BlockProjection(k, **options, random_state=0).fit(X)
    V = projection.transform(X)
    assert V.shape == (n, k)
    assert V.dtype == dtype
    S = matrix_of(projection)
    assert S.shape == (k, dim)
    tolerance = IDENTITY["closed form"](dtype, length=dim)
    np.testing.assert_allclose(V, X.astype(float) @ S.T, rtol=0, atol=10 * tolerance)
    back = projection.inverse_transform(V)
    expected = V.astype(float) @ np.linalg.pinv(S).T
    np.testing.assert_allclose(back, expected, rtol=0, atol=100 * tolerance)
    again = projection.transform(back.astype(dtype))
    np.testing.assert_allclose(again, V, rtol=0, atol=1000 * tolerance)


@pytest.mark.parametrize(("n", "dim", "k"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_projection_is_the_same_however_rows_come(n, dim, k, dtype):
    X = gaussian(n, dim).astype(dtype)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0
    projection = BlockProjection(k, random_state=0).fit(X)
    with limit_threads(1):
        V = projection.transform(X)
    same = np.testing.assert_array_equal
    for threads in (2, 3):
        with limit_threads(threads):
            same(projection.transform(X), V)
    for step in (1, 5, 18):
        parts = [projection.transform(X[i : i + step]) for i in range(0, n, step)]
        same(np.concatenate(parts), V)
    same(projection.transform(np.asfortranarray(X)), V)
    same(projection.transform(np.repeat(X, 2, axis=1)[:, ::2]), V)
    same(projection.transform(np.repeat(X, 2, axis=0)[::2]), V)
    same(projection.transform(X[::-1])[::-1], V)
    frozen = X.copy()
    frozen.flags.writeable = False
    same(projection.transform(frozen), V)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array):
        for index in (np.int32, np.int64):
            S = kind(X)
            S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
            same(projection.transform(S), V)
            assert S.indices.dtype == index
    out = np.full((n, k), np.nan, dtype)
    assert projection.transform(X, out=out) is out
    same(out, V)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("dim", "width"), [
    (40, 13_001), (300, 9_000), (16_500, 37_000),
], ids=["many groups of passes", "groups of several passes", "rows too long to be kept"])  # fmt: skip
def test_groups_of_passes_are_the_same_however_rows_come(dim, width, dtype):
    """Sums leave the cache group by group; one row at a time, and CSR rows, know no groups."""
    X = gaussian(37, dim).astype(dtype)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0
    features = BlockFourierFeatures(Gaussian(0.5 / dim), width, block_size=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # blocks of four
        features.fit(X[:2])
    assert len(features.n_blocks_) > 4
    with limit_threads(1):
        Z = features.transform(X)
    with limit_threads(3):
        np.testing.assert_array_equal(features.transform(X), Z)
    np.testing.assert_array_equal(features.transform(sparse.csr_array(X)), Z)
    np.testing.assert_array_equal(features.transform(X[35:36]), Z[35:36])
    np.testing.assert_array_equal(features.transform(X[3:32]), Z[3:32])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 17, 256, 300, 3000])  # the last in two groups of passes
def test_sums_past_the_cache_are_the_same(k, dtype, monkeypatch):
    X = gaussian(37, 400).astype(dtype)
    projection = BlockProjection(k, random_state=0).fit(X)
    V = projection.transform(X)
    monkeypatch.setattr("gzkcore.features.base.STREAM_BYTES", 0)
    room = np.full(37 * k + 5, np.nan, dtype)  # off the boundary
    np.testing.assert_array_equal(projection.transform(X, out=room[5:].reshape(37, k)), V)
    assert np.isnan(room[:5]).all()


def test_a_projection_of_all_columns_keeps_lengths():
    X = gaussian(9, 64)
    for k, mix in ((64, None), (64, "hadamard"), (128, None)):
        V = BlockProjection(k, mix=mix, random_state=0).fit_transform(X)
        np.testing.assert_allclose(np.sum(V**2, axis=1), np.sum(X**2, axis=1))


@pytest.mark.parametrize("options", PROJECTIONS, ids=str)
def test_distances_are_kept_without_bias(options):
    X = gaussian(2, 60)
    squared = products_of(BlockProjection(7, **options), X[:1], X[:1], 1500)
    assert errors_of_mean(squared, X[0] @ X[0]) < 5


def test_projection_contract():
    X = gaussian(9, 12)
    projection = BlockProjection(5, random_state=0).fit(X)
    assert projection.get_feature_names_out().tolist() == [f"blockprojection{i}" for i in range(5)]
    assert sparse.issparse(projection.components_)
    assert np.diff(projection.components_.tocsc().indptr).tolist() == [1] * 12
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(projection)).transform(X), projection.transform(X)
    )
    assert len(BlockProjection(30, random_state=0).fit(X).buckets_) == 3
    with pytest.raises(ValueError, match=r"X has 4 columns, but .* n_components=5"):
        projection.inverse_transform(X[:, :4])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "model", [BlockProjection(3), BlockFourierFeatures(n_components=8)], ids=str
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_bad_values_are_found_in_the_sums(value, model, kind):
    X = gaussian(40, 60)
    fitted = clone(model).fit(X)
    for row, column in ((0, 0), (39, 59), (17, 33)):
        wrong = X.copy()
        wrong[row, column] = value
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            fitted.transform(kind(wrong))
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            fitted.transform(kind(wrong[row : row + 1]))


# ---- the features

KERNELS = {
    "gaussian": Gaussian(4e-3),
    "per column": Gaussian(np.linspace(1e-3, 8e-3, 128)),
    "exponential": Exponential(0.1),
    "matern": Matern(1.5, 12.0),
    "matern inf": Matern(math.inf, 12.0),
    "rational quadratic": RationalQuadratic(0.7, 12.0),
    "laplacian": Laplacian(0.01),
    "spherical": Spherical(40.0),
}


def given_the_blocks(features, delta):
    """Mean and variance of the estimate, given the blocks, by the formula of MATH 8.3."""
    kernel = features.kernel_
    power = 1 if isinstance(kernel, Laplacian) else 2
    parts = np.abs(delta * kernel.scale()) ** power
    sums = []
    for bucket, weights in zip(features.buckets_, features.weights_, strict=True):
        used = weights != 0
        counts = np.bincount(bucket[used])
        of_blocks = np.bincount(bucket[used], parts[used]) * delta.size
        sums.append(of_blocks[counts > 0] / counts[counts > 0])
    sums = np.concatenate(sums)
    if isinstance(kernel, Gaussian):
        once, twice = kernel.profile_of_sums(sums), kernel.profile_of_sums(4 * sums)
    else:
        r = sums if power == 1 else np.sqrt(sums)
        once, twice = kernel.profile(r), kernel.profile(2 * r)
    return once.mean(), (0.5 + twice / 2 - once**2).mean() / sums.size


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n_components", [pytest.param(20_000, marks=pytest.mark.weekly), 701])
@pytest.mark.filterwarnings("ignore:on these data the kernel is off")
def test_features_have_the_expected_mean_and_variance(name, n_components):
    X = gaussian(6, 128)
    features = BlockFourierFeatures(KERNELS[name], n_components, random_state=0).fit(X)
    Z = features.transform(X)
    products = Z @ Z.T
    if n_components % 2 == 0:
        np.testing.assert_allclose(np.diag(products), 1)
    for i in range(6):
        for j in range(i):
            mean, variance = given_the_blocks(features, X[i] - X[j])
            assert abs(products[i, j] - mean) < 5 * math.sqrt(variance + 1 / n_components**2)


@pytest.mark.slow
def test_spherical_features_in_three_dimensions_are_those_of_the_kernel():
    X = gaussian(30, 3)
    features = BlockFourierFeatures(Spherical(3.0), 40_000, random_state=0).fit(X)
    Z = features.transform(X)
    assert np.abs(Z @ Z.T - features.kernel_(X)).max() < 5 / math.sqrt(40_000)


@pytest.mark.slow
def test_an_odd_width_is_unbiased():
    X = gaussian(2, 8)
    kernel = Gaussian(0.05)
    found = products_of(BlockFourierFeatures(kernel, 3), X[:1], X[1:], 3000)
    assert errors_of_mean(found, kernel(X)[0, 1]) < 5


@pytest.mark.parametrize(("dim", "width"), [(1, 1), (5, 2), (63, 100), (64, 100), (1000, 3000)])
def test_blocks_are_large_enough_and_evenly_shared(dim, width):
    features = BlockFourierFeatures(Gaussian(0.1), width, random_state=0).fit(np.zeros((1, dim)))
    assert sum(features.n_blocks_) == -(-width // 2)
    assert max(features.n_blocks_) - min(features.n_blocks_) <= 1
    assert features.block_size_ >= min(32, dim)
    assert features.transform(np.zeros((2, dim))).shape == (2, width)


def test_the_mix_takes_the_bias_away():
    rng = rng_of(0)
    X = rng.standard_normal((20, 2000)) * (rng.random((20, 2000)) < 0.01)
    with pytest.warns(UserWarning, match=r"off by 0\.\d+ .* use mix='hadamard'"):
        plain = BlockFourierFeatures(Gaussian(0.02), 4000, random_state=0).fit(X)
    mixed = BlockFourierFeatures(Gaussian(0.02), 4000, mix="hadamard", random_state=0).fit(X)
    assert plain.expected_bias_ > 0.2
    assert abs(mixed.expected_bias_) < 0.03
    K, pairs = Gaussian(0.02)(X), np.triu_indices(20, 1)
    for features in (plain, mixed):
        Z = features.transform(X)
        bias = (Z @ Z.T - K)[pairs].mean()
        assert bias == pytest.approx(features.expected_bias_, abs=0.05)
        error = math.sqrt(np.square((Z @ Z.T - K)[pairs]).mean())
        assert error == pytest.approx(features.expected_error_, rel=0.3)
        np.testing.assert_allclose(features.transform(sparse.csr_array(X)), Z, atol=1e-12)


def test_one_coordinate_a_block_is_allowed_and_wrong():
    """B21: k = D."""
    X = gaussian(40, 2000) / math.sqrt(2 * 2000)
    with pytest.warns(UserWarning, match=r"with one coordinate a block the method is wrong"):
        features = BlockFourierFeatures(
            Gaussian(1.0), 4000, block_size=1, arrangement="permutation", random_state=0
        ).fit(X)
    Z = features.transform(X)
    mean = (Z @ Z.T)[np.triu_indices(40, 1)].mean()
    assert mean == pytest.approx(1 / math.sqrt(3), abs=0.01)
    assert Gaussian(1.0)(X)[np.triu_indices(40, 1)].mean() == pytest.approx(math.exp(-1), abs=0.01)


def test_small_blocks_are_warned_of():
    with pytest.warns(UserWarning, match="blocks of 8 coordinates are too small"):
        BlockFourierFeatures(Gaussian(0.01), 64, block_size=8).fit(gaussian(9, 64))


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: BlockFourierFeatures(Polynomial(2)), ValueError, "is not a function of sum_j"),
    (lambda: BlockFourierFeatures(Zonal(np.exp)), ValueError, "cannot stand for the whole row"),
    (
        lambda: BlockFourierFeatures(Product([(0, "gaussian"), (1, "gaussian")])),
        ValueError,
        "or GegenbauerFeatures or ProductFeatures for this kernel",
    ),
    (lambda: BlockFourierFeatures("no"), ValueError, "kernel='no' is unknown"),
    (lambda: BlockFourierFeatures(block_size=0), ValueError, "block_size=0 is too small"),
    (lambda: BlockFourierFeatures(block_size=99), ValueError, "block_size=99 is more than the"),
    (lambda: BlockFourierFeatures(block_size="x"), ValueError, "block_size='x' is unknown"),
    (lambda: BlockFourierFeatures(n_components=0), ValueError, "n_components=0 is too small"),
    (
        lambda: BlockFourierFeatures(Spherical(1.0), block_size=4),
        ValueError,
        "positive definite in at most 3 dimensions; use block_size=3",
    ),
    (lambda: BlockFourierFeatures(Laplacian(1.0), mix="hadamard"), ValueError, "depends on the axes; use mix=None"),
    (lambda: BlockFourierFeatures(mix="dct"), ValueError, "mix='dct' is unknown"),
    (lambda: BlockProjection(2, mix="dct"), ValueError, "mix='dct' is unknown"),
    (lambda: BlockProjection(2, values="x"), ValueError, "values='x' is unknown"),
    (lambda: BlockProjection(2, arrangement="x"), ValueError, "arrangement='x' is unknown"),
    (
        lambda: BlockProjection(2, arrangement=np.array(["stratified"] * 2)),
        ValueError,
        "arrangement=array.* is unknown; use one of",
    ),
    (lambda: BlockProjection(2**70), ValueError, "n_components=.* is too large; use at most"),
    (lambda: BlockProjection(1.5), TypeError, "n_components=1.5 is not an integer"),
])  # fmt: skip
def test_bad_parameters(make, error, message):
    with pytest.raises(error, match=message):
        make().fit(gaussian(9, 12))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: block_projection([[1.0]], [[0, 0]], [[1.0, 1.0]], 1), "must have, for each of the"),
    (lambda: block_projection([[1.0]], [[1]], [[1.0]], 1), "a block from 0 to 0"),
    (lambda: block_projection([1.0], [[0]], [[1.0]], 1), "X has shape"),
    (lambda: energy_variance([[[1.0]]], 1), "delta has shape"),
    (lambda: kernel_moments(Polynomial(2), 1.0, 0.1, 1), "is not a function of sum_j"),
    (lambda: kernel_moments(Matern(), 1.0, 0.1, 1, printed=True), "whose moments the paper prints"),
    (lambda: kernel_moments(Gaussian([1.0, 2.0]), 1.0, 0.1, 1), "one parameter for each column"),
    (lambda: block_report(gaussian(1, 3)), "X has one row; pass two or more"),
])  # fmt: skip
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- normalisation


def test_normaliser_in_parts():
    X = gaussian(50, 6) * np.arange(6)
    whole, parts = MeanNormalizer().fit(X), MeanNormalizer()
    for rows in np.array_split(X, 7):
        parts.partial_fit(rows)
    tolerance = IDENTITY["rescaled"]()
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(whole.range_, np.ptp(X, axis=0))
    assert parts.n_samples_seen_ == 50
    assert whole.fit(X[:9]).n_samples_seen_ == 9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("others", [False, True])
def test_sparse_rows_are_shifted_after_projecting(dtype, others):
    X = (gaussian(30, 80) * (gaussian(30, 80, seed=1) > 1)).astype(dtype)
    S = sparse.csr_array(X)
    normaliser = MeanNormalizer().fit(S)
    projection = BlockProjection(10, random_state=0)
    if others:  # gives sparse rows for sparse rows
        projection = SparseRandomProjection(10, random_state=0)
    expected = projection.fit(X).transform(normaliser.transform(X))
    tolerance = IDENTITY["closed form"](dtype, length=80)
    for rows in (X, S):
        V = normaliser.project(projection, rows)
        assert V.dtype == dtype
        np.testing.assert_allclose(V, expected, rtol=0, atol=tolerance)
    with pytest.raises(ValueError, match=r"with_shift=False, .* or project"):
        normaliser.transform(S)
    scaled = MeanNormalizer(with_shift=False).fit(S).transform(S)
    assert scaled.nnz == S.nnz
    shift = normaliser.transform(X) - scaled.toarray()
    np.testing.assert_allclose(shift - shift[0], 0, atol=tolerance)


def test_normalised_features_in_a_pipeline():
    S = sparse.random_array((40, 300), density=0.1, format="csr", random_state=rng_of(0))
    features = BlockFourierFeatures("gaussian", 64, mix="hadamard", random_state=0)
    Z = make_pipeline(MeanNormalizer(with_shift=False), features).fit_transform(S)
    assert Z.shape == (40, 64)


@pytest.mark.parametrize("X", [np.full((10, 1), 1e308), np.linspace(1e307, 1e308, 40)[:, None]])
def test_columns_whose_sum_overflows_are_refused(X):
    parts = MeanNormalizer().fit(X[:1])
    for fit in (MeanNormalizer().fit, parts.partial_fit):
        with pytest.raises(ValueError, match=r"column 0 .*: its sum, or .* overflows"):
            fit(X)
    assert parts.n_samples_seen_ == 1


@pytest.mark.parametrize("size", [1e-45, 1e300])
def test_means_and_ranges_beyond_single_precision_are_told(size):
    normaliser = MeanNormalizer().fit(np.array([[1.0], [2.0]]) * size)
    with pytest.raises(ValueError, match="numbers that exceed the range of float32; scale"):
        normaliser.transform(np.ones((2, 1), dtype=np.float32))


def test_the_shift_of_a_normaliser_is_yes_or_no():
    with pytest.raises(TypeError, match="with_shift='no' is not a bool; use True or False"):
        MeanNormalizer("no").fit([[1.0], [2.0]])


# ---- the report


@pytest.mark.parametrize("kernel", [Gaussian(2e-3), Exponential(0.05), Laplacian(0.002)], ids=str)
@pytest.mark.parametrize("arrangement", ["stratified", "permutation"])
def test_the_report_agrees_with_what_is_measured(kernel, arrangement):
    X = gaussian(40, 512)
    report = block_report(
        X, kernel, block_size=16, arrangement=arrangement, n_pairs=300, n_draws=40
    )
    found = []
    for seed in range(20):
        features = BlockFourierFeatures(
            kernel, 4096, block_size=16, arrangement=arrangement, random_state=seed
        ).fit(X)
        Z = features.transform(X)
        found.append((Z @ Z.T - features.kernel_(X))[np.triu_indices(40, 1)].mean())
    bias, error = np.mean(found), np.std(found) / math.sqrt(20)
    low, high = report.bias_interval
    assert low - 2 * error <= bias <= high + 2 * error
    assert report.bias_formula == pytest.approx(report.bias, rel=0.3)
    assert report.std == pytest.approx(report.std_independent, rel=0.2)
    assert report.effective_k < report.n_blocks == 32


def test_the_report_is_readable():
    rng = rng_of(0)
    noise = np.cumsum(rng.standard_normal((50, 2100)), axis=1)
    report = block_report(noise[:, 100:] - noise[:, :-100], "gaussian")
    text = str(report)
    assert repr(report) == text
    for word in ("bias", "effective k", "Shapiro-Wilk", "(M/m)^2", "correlation", "- "):
        assert word in text
    # Figure 1: neighbours are correlated, coordinates of a block much less.
    before, after = report.correlation_before, report.correlation_after
    assert before.shape == after.shape == (50, 50)
    assert before.mean() > 1.2 * after.mean()


def test_the_report_gives_advice():
    X = gaussian(30, 600)
    assert "the bias is small" in block_report(X, Gaussian(3e-4)).advice[0]
    assert "use block_size=" in block_report(X, Gaussian(1e-3), block_size=6).advice[0]
    assert "one block" in block_report(X[:, :20], Gaussian(1e-2)).advice[0]
    spiky = X * (gaussian(30, 600, seed=1) > 2)
    assert "use mix='hadamard'" in block_report(spiky, Gaussian(0.02)).advice[0]
    tails = np.sign(X) * np.abs(X) ** 9
    lost = block_report(tails, Laplacian("median"), block_size=200)
    assert "leave this method" in lost.advice[0]


@pytest.mark.parametrize("mix", [None, "hadamard"])
def test_a_seed_gives_the_same_report(mix):
    X = gaussian(30, 600)
    first, second = (block_report(X, Gaussian(1e-3), mix=mix, random_state=3) for _ in range(2))
    assert str(first) == str(second)
    assert first.bias == second.bias


def test_the_report_draws_figure_1():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("Agg")
    left, right = block_report(gaussian(30, 600), Gaussian(1e-3)).plot()
    assert left.images
    assert right.images
    pyplot.close("all")


@pytest.mark.parametrize(
    "column", [np.array([0, 1e-39, 2e-39], np.float32), [0, 1e-310, 2e-310], [-1e308, 1e308, 0]]
)
def test_columns_that_nothing_can_be_divided_by(column):
    X = np.column_stack([np.arange(3.0, dtype=np.asarray(column).dtype), column])
    with pytest.raises(ValueError, match="column 1 of X, counted from 0, goes from"):
        MeanNormalizer().fit(X)


def test_a_report_passes_over_equal_rows():
    X = np.repeat(gaussian(30, 100), 2, axis=0)
    report = block_report(X, Gaussian(1e-3), n_pairs=200)
    assert 0 < report.shapiro_p < 1
    assert report.shapiro_w > 0.5


def test_a_normalizer_whose_fit_fails_is_as_it_was():
    normalizer = MeanNormalizer().fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="NaN"):
        normalizer.fit([[1.0], [np.nan]])
    assert normalizer.mean_ == 1.5
    with pytest.raises(ValueError, match="NaN"):
        MeanNormalizer().partial_fit([[np.nan]])
