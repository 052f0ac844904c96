"""Nystrom features: the projection that they claim to be, and landmarks of the laws they claim."""

import pickle

import numpy as np
import pytest
from points import gaussian, sphere
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel
from tolerances import IDENTITY

from gzkcore import (
    ArcCosine,
    Exponential,
    Gaussian,
    GeneralizedZonal,
    Laplacian,
    Matern,
    NeuralTangent,
    NystromFeatures,
    Polynomial,
    RationalQuadratic,
    Spherical,
    Zonal,
    load,
    reference,
)
from gzkcore._compiled import nystrom as _nystrom
from gzkcore._util.random import generator
from gzkcore.features.nystrom import RULES

every_rule = pytest.mark.parametrize("landmarks", RULES)


def clusters(seed=0):
    """Three hundred points here, and few in each of seven far places."""
    rng = np.random.default_rng(seed)
    sizes = [300, 60, 12, 4, 4, 4, 4, 4]
    centers = 8 * rng.standard_normal((len(sizes), 3))
    return np.concatenate(
        [c + rng.standard_normal((m, 3)) for c, m in zip(centers, sizes, strict=True)]
    )


def lost(features, X):
    """Trace of what the features miss, relative to that of the kernel."""
    Z = features.fit(X).transform(X)
    diagonal = features.kernel_.diag(X)
    return 1 - np.square(Z).sum() / diagonal.sum()


# ---- the formula


@every_rule
@pytest.mark.parametrize("kernel", [
    Exponential(0.4), Laplacian(0.3), Matern(0.5), Spherical(2.0), RationalQuadratic(0.5),
], ids=repr)  # fmt: skip
def test_features_are_the_projection(kernel, landmarks):
    X, new = gaussian(120, 3), gaussian(40, 3, seed=1)
    features = NystromFeatures(kernel, 30, landmarks=landmarks, random_state=0).fit(X)
    L = features.landmarks_
    np.testing.assert_array_equal(L, X[features.landmark_indices_])
    assert len(set(features.landmark_indices_.tolist())) == 30
    expected = reference.nystrom.nystrom_kernel(kernel(new, L), kernel(X, L), kernel(L))
    value = features.transform(new) @ features.transform(X).T
    np.testing.assert_allclose(value, expected, rtol=0, atol=IDENTITY["inverse root"]())


def test_never_more_than_the_kernel_and_exact_between_landmarks():
    X = gaussian(150, 4)
    features = NystromFeatures(Matern(1.5), 40, random_state=0).fit(X)
    Z, K = features.transform(X), features.kernel_(X)
    tolerance = IDENTITY["inverse root"]()
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() >= -tolerance * len(X)
    rows = features.landmark_indices_
    np.testing.assert_allclose(Z[rows] @ Z[rows].T, K[np.ix_(rows, rows)], atol=tolerance)


def test_kernels_of_few_dimensions_are_exact():
    """(<x, y> + 1)^2 has six of them in the plane."""
    X = gaussian(80, 2)
    for rule in RULES:
        features = NystromFeatures(Polynomial(2), 20, landmarks=rule, random_state=0).fit(X)
        Z = features.transform(X)
        assert features.n_effective_ == 6
        assert not Z[:, 6:].any()
        K = features.kernel_(X)
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-9 * K.max())


def test_all_rows_are_landmarks_where_there_are_no_more():
    X = gaussian(9, 3)
    features = NystromFeatures(Exponential(1.0), 20, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.shape == (9, 20)
    assert features.n_effective_ == 9
    np.testing.assert_allclose(Z @ Z.T, features.kernel_(X), atol=IDENTITY["inverse root"]())
    assert NystromFeatures(Gaussian(1.0), 3).fit_transform(X[:1]).shape == (1, 3)


def test_equal_rows():
    X = np.repeat(gaussian(3, 2), 30, axis=0)
    for rule in RULES:
        features = NystromFeatures(Gaussian(1.0), 10, landmarks=rule, random_state=0).fit(X)
        assert features.n_effective_ <= 3
        Z = features.transform(X)
        assert np.isfinite(Z).all()
        if rule in ("rpcholesky", "kmeans++"):
            np.testing.assert_allclose(Z @ Z.T, features.kernel_(X), atol=1e-12)


def test_the_tolerance_is_that_of_the_type():
    """A smooth kernel has more eigenvalues above rounding in float64."""
    X = gaussian(300, 3)
    for dtype in (np.float32, np.float64):
        rows = X.astype(dtype)
        features = NystromFeatures(Gaussian(0.05), 300, random_state=0).fit(rows)
        Z = features.transform(rows)
        assert np.count_nonzero(Z.any(axis=0)) == features.n_effective_
        error = np.abs(Z.astype(float) @ Z.T.astype(float) - features.kernel_(rows)).max()
        dropped = 8 * np.finfo(dtype).eps * features.eigenvalues_[0]  # every row is a landmark
        assert error <= dropped
    single = NystromFeatures(Gaussian(0.05), 300, random_state=0).fit(X.astype(np.float32))
    assert single.n_effective_ < 0.8 * features.n_effective_


# ---- landmarks have the laws that they claim


@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_leverage_is_the_reference(count, accelerated):
    X = gaussian(150, 3)
    kernel = Exponential(0.3)
    rule = "accelerated-rls" if accelerated else "rls"
    for seed in range(5):
        features = NystromFeatures(kernel, count, landmarks=rule, random_state=seed).fit(X)
        uniforms = iter(generator(seed).random(10_000))
        expected = reference.nystrom.recursive_leverage(kernel(X), count, uniforms, accelerated)
        np.testing.assert_array_equal(features.landmark_indices_, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "formula"), [
    ("rpcholesky", reference.nystrom.pivoted_cholesky),
    ("kmeans++", reference.nystrom.kernel_distances),
])  # fmt: skip
def test_proposals_have_the_law_of_one_at_a_time(rule, formula):
    """Counts of the triples of 6 rows, both ways, by a test of homogeneity."""
    X = np.array([[0.0], [0.3], [1.0], [1.2], [3.0], [7.0]])
    kernel = Gaussian(0.5)
    K, uniforms = kernel(X), iter(np.random.default_rng(0).random(10_000))
    counts = np.zeros((2, 6**3))
    for seed in range(600):
        features = NystromFeatures(kernel, 3, landmarks=rule, random_state=seed).fit(X)
        for row, chosen in enumerate((features.landmark_indices_, formula(K, 3, uniforms))):
            a, b, c = (int(i) for i in chosen)
            counts[row, 36 * a + 6 * b + c] += 1
    common = counts[:, counts.sum(axis=0) >= 20]
    rest = counts.sum(axis=1) - common.sum(axis=1)
    table = np.column_stack([common, rest]) if rest.all() else common
    assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.mark.parametrize("size", [0, 1, 2, 33])
def test_kernels_accept_what_elimination_leaves(size):
    """One proposal after the other, by the rows that the reference takes one at a time."""
    rng = np.random.default_rng(size)
    A = rng.standard_normal((size, 20))
    K, levels = A @ A.T, rng.uniform(0, 15, size)
    rest, expected = K.copy(), []
    for i in range(size):
        if rest[i, i] > max(levels[i], 1e-9):
            expected.append(i)
            rest -= np.outer(rest[:, i], rest[i]) / rest[i, i]
    kept = np.empty(size, dtype=np.intp)
    assert kept[: _nystrom.accept_pivots(K.copy(), levels, 1e-9, kept)].tolist() == expected

    apart = K.diagonal()[:, None] + K.diagonal() - 2 * K
    left, expected = np.full(size, 40.0), []
    now = left.copy()
    for i in range(size):
        if now[i] > max(levels[i], 1e-9):
            expected.append(i)
            now = np.minimum(now, apart[:, i])
    assert kept[: _nystrom.accept_distances(apart, left, levels, 1e-9, kept)].tolist() == expected


@pytest.mark.slow
def test_uniform_landmarks_are_even():
    counts = np.zeros(20)
    for seed in range(1000):
        features = NystromFeatures(Gaussian(0.5), 5, landmarks="uniform", random_state=seed)
        counts[features.fit(gaussian(20, 2)).landmark_indices_] += 1
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("count", [60, 250])
@pytest.mark.parametrize("rule", ["rpcholesky", "kmeans++"])
def test_columns_that_are_not_kept(rule, count, monkeypatch):
    """Where memory is short the kernel is evaluated again: the same landmarks."""
    X, kernel = gaussian(400, 3), Gaussian(2.0)
    features = NystromFeatures(kernel, count, landmarks=rule, random_state=0)
    expected = clone(features).fit(X).landmark_indices_
    monkeypatch.setattr("gzkcore.features.nystrom._STORED_BYTES", 0)
    monkeypatch.setattr("gzkcore.features.base.TILE_BYTES", 1 << 12)
    np.testing.assert_array_equal(features.fit(X).landmark_indices_, expected)


def test_clusters_of_very_different_size():
    """Means over ten seeds: choosing is better than uniform landmarks, pivots are best."""
    X = clusters()
    mean = {
        rule: np.mean(
            [
                lost(NystromFeatures(Gaussian(0.3), 60, landmarks=rule, random_state=seed), X)
                for seed in range(10)
            ]
        )
        for rule in RULES
    }
    assert mean["rls"] < mean["uniform"]
    assert mean["rpcholesky"] < 0.9 * mean["uniform"]
    assert mean["kmeans++"] < 0.9 * mean["uniform"]
    assert mean["rpcholesky"] <= 1.05 * mean["rls"]


def spectral(K, Z_kernel):
    return np.linalg.norm(K - Z_kernel, 2)


@pytest.mark.slow
@pytest.mark.parametrize("X", [clusters(), gaussian(300, 5)], ids=["clusters", "even"])
def test_no_worse_than_the_published_algorithm(X):
    """Spectral error at equal samples, over twenty seeds, each with landmarks of its own."""
    kernel, count = Gaussian(0.2), 40
    K, ours, theirs = kernel(X), [], []
    for seed in range(20):
        features = NystromFeatures(kernel, count, landmarks="rls", random_state=seed).fit(X)
        Z = features.transform(X)
        ours.append(spectral(K, Z @ Z.T))
        uniforms = iter(np.random.default_rng([seed, 1]).random(10_000))
        rows = reference.nystrom.recursive_leverage(K, count, uniforms)
        seen = K[:, rows]
        published = reference.nystrom.nystrom_kernel(seen, seen, seen[rows], ridge=1e-5)
        theirs.append(spectral(K, published))
    spread = np.hypot(np.std(ours), np.std(theirs)) / np.sqrt(len(ours))
    assert np.mean(ours) <= np.mean(theirs) + 2 * spread


# ---- kernels of every kind


@pytest.mark.parametrize("function", [rbf_kernel, RBF(1.0), lambda X, Y: np.exp(X @ Y.T / 9)])
def test_functions(function):
    X = gaussian(100, 3)
    features = NystromFeatures(function, 40, random_state=0).fit(X)
    Z = features.transform(X)
    L = features.landmark_indices_
    K = function(X, X)
    np.testing.assert_allclose(Z[L] @ Z[L].T, K[np.ix_(L, L)], atol=1e-10 * K.max())
    assert clone(features).fit(X).transform(X).tolist() == Z.tolist()


def test_parameters_of_functions():
    features = NystromFeatures(RBF(1.0), 40).set_params(kernel__length_scale=2.0)
    assert features.kernel.length_scale == 2.0
    assert NystromFeatures().set_params(kernel__gamma=2.0).kernel.gamma == 2.0


@every_rule
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_precomputed(landmarks, kind, tmp_path):
    X, new, kernel = gaussian(90, 3), gaussian(30, 3, seed=1), Exponential(0.4)
    points = NystromFeatures(kernel, 25, landmarks=landmarks, random_state=0).fit(X)
    values = NystromFeatures("precomputed", 25, landmarks=landmarks, random_state=0)
    values.fit(kind(kernel(X)))
    np.testing.assert_array_equal(values.landmark_indices_, points.landmark_indices_)
    Z = values.transform(kind(kernel(new, X)))
    np.testing.assert_allclose(Z @ Z.T, points.transform(new) @ points.transform(new).T, atol=1e-10)
    values.save(tmp_path / "m.gzk")
    np.testing.assert_array_equal(load(tmp_path / "m.gzk").transform(kernel(new, X)), Z)
    assert values.__sklearn_tags__().input_tags.pairwise


def test_given_landmarks():
    X, L = gaussian(50, 3), gaussian(12, 3, seed=1)
    before = L.copy()
    Z = NystromFeatures(Exponential(0.3), 12, landmarks=L).fit(X).transform(X)
    K = Exponential(0.3)
    tolerance = IDENTITY["inverse root"]()
    expected = K(X, L) @ np.linalg.solve(K(L), K(L, X))
    np.testing.assert_allclose(Z @ Z.T, expected, atol=tolerance)
    fewer = NystromFeatures(Exponential(0.3), 5, landmarks=L).fit(X)
    np.testing.assert_allclose(fewer.transform(X), Z[:, :5], atol=tolerance)
    more = NystromFeatures(Exponential(0.3), 15, landmarks=L).fit(X).transform(X)
    assert not more[:, 12:].any()
    np.testing.assert_array_equal(L, before)
    rows = NystromFeatures("precomputed", 12, landmarks=[3, 1, 4]).fit(K(X))
    np.testing.assert_array_equal(rows.landmark_indices_, [3, 1, 4])


def test_spheres():
    S = sphere(100, 3)
    for kernel in (Zonal(np.exp), ArcCosine(0)):
        features = NystromFeatures(kernel, 50, random_state=0).fit(S)
        Z, L = features.transform(S), features.landmarks_
        expected = reference.nystrom.nystrom_kernel(kernel(S, L), kernel(S, L), kernel(L))
        np.testing.assert_allclose(Z @ Z.T, expected, rtol=0, atol=1e-7)  # arccos near 1
    with pytest.raises(ValueError, match="defined on the unit sphere"):
        NystromFeatures(Zonal(np.exp), 5).fit(2 * S)
    features = NystromFeatures(Zonal(np.exp), 5).fit(S)
    with pytest.raises(ValueError, match="of X has norm 2"):
        features.transform(2 * S)


# ---- promises of the features


@every_rule
def test_clone_pickle_and_files(landmarks, tmp_path):
    X = gaussian(60, 3)
    fitted = NystromFeatures("matern", 15, landmarks=landmarks, random_state=0).fit(X)
    Z = fitted.transform(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), Z)
    fitted.save(tmp_path / "m.gzk")
    np.testing.assert_array_equal(load(tmp_path / "m.gzk").transform(X), Z)
    np.testing.assert_array_equal(clone(fitted).fit(X).transform(X), Z)


@pytest.mark.parametrize("kernel", [
    rbf_kernel,
    Zonal(np.exp),
    GeneralizedZonal(lambda t: np.stack([1 + t, t], axis=1)[:, :, None]),
])  # fmt: skip
def test_functions_are_in_no_file(kernel, tmp_path):
    features = NystromFeatures(kernel, 5, random_state=0).fit(sphere(20, 3))
    with pytest.raises(TypeError, match="a file of data cannot hold"):
        features.save(tmp_path / "m.gzk")


def test_sparse_rows_have_the_same_landmarks():
    X = gaussian(80, 4) * (gaussian(80, 4, seed=2) > 0)
    for rule in RULES:
        features = NystromFeatures("gaussian", 20, landmarks=rule, random_state=0)
        dense = clone(features).fit(X)
        for kind in (sparse.csr_array, sparse.csr_matrix):
            fitted = clone(features).fit(kind(X))
            np.testing.assert_array_equal(fitted.landmark_indices_, dense.landmark_indices_)


def test_a_kernel_that_tells_nothing_is_told():
    with pytest.warns(UserWarning, match="is numerically the identity"):
        NystromFeatures(Gaussian(1e6), 4).fit(gaussian(20, 2))


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"landmarks": "random"}, ValueError, "landmarks='random' is unknown; use one of"),
    ({"landmarks": np.ones((3, 5))}, ValueError, "landmarks have 5 columns, but X has 2"),
    ({"landmarks": [[np.nan, 1.0]]}, ValueError, "NaN"),
    ({"kernel": "cubic"}, ValueError, "kernel='cubic' is unknown"),
    ({"kernel": Gaussian}, TypeError, "kernel=Gaussian is a class"),
    ({"kernel": lambda X, Y: 1.0}, ValueError, r"gave shape \(\) for 9 and 9 rows"),
    ({"kernel": lambda X, Y: np.zeros((len(X), len(Y)))}, ValueError, "the kernel is 0"),
    ({"kernel": lambda X, Y: np.full((len(X), len(Y)), np.nan)}, ValueError, "is not finite between landmarks; scale"),
    ({"n_components": 0}, ValueError, "n_components=0 is too small"),
    ({"kernel": "precomputed"}, ValueError, r"X has shape \(9, 2\), but .* square matrix"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        NystromFeatures(**parameters).fit(gaussian(9, 2))


@pytest.mark.parametrize("landmarks", [rule for rule in RULES if rule != "uniform"])
@pytest.mark.parametrize(("kernel", "message"), [
    (lambda X, Y: np.zeros((len(X), len(Y))), "is 0 between every row of X and itself"),
    (lambda X, Y: np.full((len(X), len(Y)), np.nan), "is nan between row 0 of X and itself"),
    (lambda X, Y: -(X @ Y.T), r"is -.* between row 0 of X and itself; .* definite kernel"),
    (lambda X, Y: -abs(X[:, :1] - Y[:, 0]), "is 0 between every row of X and itself"),
    (Polynomial(3, gamma=1e200), r"is inf between row 0 of X and itself; .*; scale X"),
], ids=["zero", "nan", "negative", "distance", "overflow"])  # fmt: skip
def test_kernels_that_say_nothing_of_rows_are_told(kernel, message, landmarks):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        NystromFeatures(kernel, 9, landmarks=landmarks).fit(gaussian(30, 2))


@pytest.mark.parametrize("landmarks", ["rls", "accelerated-rls"])
def test_indefinite_kernels_have_no_leverage(landmarks):
    features = NystromFeatures(lambda X, Y: 1.0 + 2.0 * (X[:, :1] != Y[:, 0]), 9)
    with pytest.raises(ValueError, match=r"landmarks='.*' needs a positive definite kernel, and"):
        features.set_params(landmarks=landmarks).fit(gaussian(30, 2))


@pytest.mark.parametrize("landmarks", [[0.5], [[1]], [], [9], [-1]])
def test_bad_numbers_of_rows(landmarks):
    with pytest.raises(ValueError, match="landmarks"):
        NystromFeatures("precomputed", 2, landmarks=landmarks).fit(np.eye(9))


def test_kernel_values_whose_squares_overflow():
    X = np.random.default_rng(0).standard_normal((40, 4))
    features = NystromFeatures(NeuralTangent(2), 20, random_state=0)
    Z, scaled = features.fit_transform(X), clone(features).fit_transform(2.0**266 * X)
    scaled /= 2.0**266
    np.testing.assert_allclose(scaled @ scaled.T, Z @ Z.T, atol=1e-6)  # axes may be turned around
