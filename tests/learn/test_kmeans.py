"""k-means on features: as scikit-learn's on explicit features, its objective, empty clusters."""

import numpy as np
import pytest
from batched import Cut
from numpy.testing import assert_allclose, assert_array_equal
from points import sphere
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import FunctionTransformer
from tolerances import LEARNERS

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureKMeans, metrics, reference, theory
from gzkcore.learn import kmeans
from gzkcore.passes.clusters import ClusterAccumulator
from gzkcore.passes.streams import Reader

RBF9 = RBFSampler(gamma=0.3, n_components=9, random_state=0)
IDENTITY = FunctionTransformer()


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)), rng.uniform(0, 2, n)


def rings(n=600, seed=0):
    """Return two rings around each other, and which is which."""
    rng = np.random.default_rng(seed)
    angle, ring = rng.uniform(0, 2 * np.pi, n), np.arange(n) % 2
    radius = np.array([0.3, 3.0])[ring]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring


def close(found, wanted):
    scale = np.abs(wanted).max()
    assert_allclose(found, wanted, rtol=0, atol=LEARNERS["summed"]() * scale)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("tol", [0.0, 1e-2])
@pytest.mark.parametrize("max_iter", [1, 2, 300])
def test_as_scikit_learn_on_the_explicit_features(max_iter, tol, weighted):
    X, weight = data()
    weight = weight if weighted else None
    Z = RBF9.fit(X).transform(X)
    given = {"init": Z[:5], "n_init": 1, "max_iter": max_iter, "tol": tol}
    model = RandomFeatureKMeans(FrozenEstimator(RBF9), 5, **given).fit(X, sample_weight=weight)
    other = KMeans(5, **given, algorithm="lloyd").fit(Z, sample_weight=weight)
    assert_array_equal(model.labels_, other.labels_)
    close(model.cluster_centers_, other.cluster_centers_)
    close(model.inertia_, other.inertia_)
    if not weighted:  # the other takes the variance without weights, and so may stop elsewhere
        assert model.n_iter_ == other.n_iter_
    assert_array_equal(model.predict(X), other.predict(Z))
    close(model.transform(X), other.transform(Z))
    close(model.score(X, sample_weight=weight), other.score(Z, sample_weight=weight))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_as_the_reference(weighted):
    X, weight = data(60)
    weight = weight if weighted else None
    Z = RBF9.fit(X).transform(X)
    for n_iter in (1, 3):
        model = RandomFeatureKMeans(
            FrozenEstimator(RBF9), 4, init=Z[:4], max_iter=n_iter, tol=0.0
        ).fit(X, sample_weight=weight)
        close(model.cluster_centers_, reference.kmeans.lloyd(Z, Z[:4], weight, n_iter))
        assert_array_equal(
            model.labels_, reference.kmeans.nearest_centers(Z, model.cluster_centers_)
        )
    model = RandomFeatureKMeans(RBF9, 4, tol=0.0, random_state=0).fit(X, sample_weight=weight)
    close(model.inertia_, reference.kmeans.objective(Z, model.labels_.tolist(), weight))


@pytest.mark.parametrize("width", [1, 7, 8, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearest_centers_are_those_of_the_reference(width, dtype):
    """Of whole numbers, so that the first of equals is the same; the sums, weights and costs too."""
    rng = np.random.default_rng(width)
    Z = rng.integers(-3, 4, (50, width)).astype(dtype)
    starts, weight = rng.integers(-3, 4, (2, 5, width)).astype(float), rng.uniform(0, 2, 50)
    sums = ClusterAccumulator(FunctionTransformer().fit(Z), starts, np.zeros(width))
    labels = np.empty((50, 2), dtype=np.int32)
    sums.update(Z, weight, labels=labels)
    for start, centers in enumerate(starts):
        nearest = reference.kmeans.nearest_centers(Z.tolist(), centers.tolist())
        assert labels[:, start].tolist() == nearest
        costs = np.square(Z - centers[nearest]).sum(axis=1)
        close(sums.inertia[start], weight @ costs)
        close(sums.counts[start], np.bincount(nearest, weight, 5))
        close(
            sums.sums[start],
            [weight[labels[:, start] == c] @ Z[labels[:, start] == c] for c in range(5)],
        )


def test_the_objective_is_a_projection():
    """[G] A.2, corrected: the objective is |Z - C C^T Z|^2, and that of the features' kernel."""
    X, _ = data(60)
    model = RandomFeatureKMeans(RBF9, 4, tol=0.0, random_state=0).fit(X)
    Z = model.features_.transform(X)
    C = np.array(reference.kmeans.cluster_indicator(model.labels_.tolist()))
    close(C.T @ C, np.eye(4))
    close(model.inertia_, np.square(Z - C @ (C.T @ Z)).sum())
    close(model.inertia_, metrics.clustering_cost(Z @ Z.T, model.labels_))


def test_lemma_14():
    """The exact cost of the clustering found is near the least, as the bound of Eq 21 says."""
    X, kernel = sphere(200, 3), Gaussian(1.0)
    K = kernel(X)
    best = RandomFeatureKMeans(
        GegenbauerFeatures(kernel, 400, basis="harmonic"), 5, n_init=20, tol=0.0, random_state=0
    ).fit(X)
    least = metrics.clustering_cost(K, best.labels_)
    close(best.inertia_, least)
    for width in (16, 64):
        features = GegenbauerFeatures(kernel, width, basis="random", random_state=0)
        found = RandomFeatureKMeans(features, 5, n_init=20, tol=0.0, random_state=0).fit(X)
        Z = found.features_.transform(X)
        of_best = metrics.clustering_cost(Z @ Z.T, best.labels_)
        gamma = max(found.inertia_ / of_best - 1.0, 0.0)
        epsilon = metrics.projection_cost_error(K, Z, 5)
        cost = metrics.clustering_cost(K, found.labels_)
        if epsilon < 1:
            assert cost <= theory.clustering_bound(least, epsilon, gamma)


def test_kernels_find_rings():
    X, ring = rings()
    features = GegenbauerFeatures(Gaussian(0.5), 128)
    model = RandomFeatureKMeans(features, 2, random_state=0)
    assert adjusted_rand_score(ring, model.fit_predict(X)) == 1.0
    flat = KMeans(2, n_init=4, random_state=0).fit_predict(X)
    assert adjusted_rand_score(ring, flat) < 0.5


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_more_starts_are_never_worse(init):
    X, _ = data(500)
    costs = [
        RandomFeatureKMeans(RBF9, 8, init=init, n_init=n, tol=0.0, random_state=0).fit(X).inertia_
        for n in (1, 4, 16)
    ]
    assert costs[0] >= costs[1] >= costs[2]
    wanted = KMeans(8, n_init=16, random_state=0).fit(RBF9.fit(X).transform(X)).inertia_
    assert costs[2] <= 1.01 * wanted


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_a_sample_and_all_rows(weighted, monkeypatch):
    """Starts from a sample end as well as starts from all rows; every row is read by tiles."""
    X, weight = data(4000)
    weight = (weight > 0.5) * weight if weighted else None
    whole = RandomFeatureKMeans(RBF9, 6, random_state=0).fit(X, sample_weight=weight)
    monkeypatch.setattr("gzkcore.learn.kmeans.SAMPLE_BYTES", 8 * 9 * 500)
    model = RandomFeatureKMeans(RBF9, 6, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ <= 1.02 * whole.inertia_
    if not weighted:  # rows without weight are no part of the sample
        assert model.n_iter_ <= whole.n_iter_
    Z = model.features_.transform(X)
    nearest = np.argmin(model.transform(X), axis=1)
    assert_array_equal(model.labels_, nearest)
    w = np.ones(4000) if weight is None else weight
    each = np.square(Z - model.cluster_centers_[nearest]).sum(axis=1)
    close(model.inertia_, w @ each)


def test_empty_clusters_get_the_farthest_rows():
    X = np.repeat([[0.0], [1.0], [10.0]], [50, 50, 1], axis=0) + np.arange(101)[:, None] / 1e6
    init = [[0.0], [100.0], [200.0]]
    model = RandomFeatureKMeans(IDENTITY, 3, init=init, tol=0.0).fit(X)
    assert sorted(np.bincount(model.labels_)) == [1, 50, 50]
    weight = np.ones(101)
    weight[-1] = 0  # a row that doesn't count attracts no centre
    model = RandomFeatureKMeans(IDENTITY, 3, init=init, tol=0.0).fit(X, sample_weight=weight)
    assert model.cluster_centers_.max() < 2


def test_fewer_points_than_clusters():
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_c"):
        model = RandomFeatureKMeans(IDENTITY, 4, random_state=0).fit(X)
    assert model.inertia_ == 0.0
    with pytest.raises(ValueError, match=r"n_samples=3 .* should be >= n_clusters=4"):
        RandomFeatureKMeans(IDENTITY, 4).fit(X[:3])
    with pytest.raises(ValueError, match="all sample weights are zero"):
        RandomFeatureKMeans(IDENTITY, 4).fit(X, sample_weight=np.zeros(40))


def test_features_far_from_zero_lose_no_digits():
    X, _ = data()
    near = RandomFeatureKMeans(IDENTITY, 5, init=X[:5], tol=0.0).fit(X)
    far = RandomFeatureKMeans(IDENTITY, 5, init=X[:5] + 1e5, tol=0.0).fit(X + 1e5)
    assert_array_equal(far.labels_, near.labels_)
    assert_allclose(far.inertia_, near.inertia_, rtol=LEARNERS["offset"]())


@pytest.mark.parametrize("init", ["k-means++", "random", "given"])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float32, 1e19), (np.float32, 1e20), (np.float32, 1e37), (np.float64, 1e155)],
)
def test_rows_whose_squares_overflow_are_refused(dtype, size, init):
    X, _ = data()
    centers = X[:3] * size if init == "given" else init
    model = RandomFeatureKMeans(IDENTITY, 3, init=centers, random_state=0)
    large = (X * size).astype(dtype)
    message = f"features, or centres, .* overflow float{8 * large.itemsize}; scale the columns"
    with pytest.raises(ValueError, match=message) as told:
        model.fit(large)
    assert ("pass float64" in str(told.value)) == (dtype == np.float32)
    some = X.astype(dtype)
    some[-1] = large[-1]
    sums = ClusterAccumulator(IDENTITY.fit(X), large[:3].astype(np.float64))
    with pytest.raises(ValueError, match=message):
        sums.update(some)
    assert sums.n_rows == 0
    small = RandomFeatureKMeans(IDENTITY, 3, random_state=0).fit(X.astype(dtype))
    with pytest.raises(ValueError, match=message):
        small.transform(some)


@pytest.mark.parametrize("least", [1.0, 1e-30])
def test_only_rows_that_weigh_something_are_refused_for_their_size(least):
    X, _ = data()
    rows, weight = X.astype(np.float32), np.full(len(X), least)
    sums = ClusterAccumulator(IDENTITY.fit(X), X[:3])
    rows[-1], weight[-1] = 1e38, 0.0
    assert np.isfinite(sums.update(rows, weight).inertia).all()
    weight[-1] = 1e-30
    with pytest.raises(ValueError, match="squares of their distances overflow float32"):
        sums.update(rows, weight)


def test_rows_as_large_as_their_squares_allow():
    X, _ = data()
    for dtype, size in ((np.float32, 2.0**55), (np.float64, 2.0**490)):
        rows = X.astype(dtype)
        wanted = RandomFeatureKMeans(IDENTITY, 3, random_state=0).fit(rows)
        model = RandomFeatureKMeans(IDENTITY, 3, random_state=0).fit(rows * dtype(size))
        assert_array_equal(model.labels_, wanted.labels_)


@pytest.mark.parametrize("source", [False, True], ids=["array", "batches"])
def test_a_score_needs_some_weight(source):
    X, _ = data()
    model = RandomFeatureKMeans(IDENTITY, 3, random_state=0).fit(X)
    given = ([(X, None, np.zeros(300))],) if source else (X, None, np.zeros(300))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.score(*given)


def test_random_states():
    X, _ = data(500)

    def fit(state):
        return RandomFeatureKMeans(RBF9, 8, n_init=1, random_state=state).fit(X).inertia_

    assert fit(3) == fit(3) == fit(np.int64(3))
    assert len({fit(seed) for seed in range(5)}) > 1
    for source in (np.random.RandomState, np.random.default_rng):
        assert fit(source(3)) == fit(source(3))


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"n_clusters": 0}, ValueError, "n_clusters=0 is too small; use an integer >= 1"),
    ({"n_init": 1.5}, TypeError, "n_init=1.5 is not an integer"),
    ({"max_iter": 0}, ValueError, "max_iter=0 is too small; use an integer >= 1"),
    ({"tol": -1.0}, ValueError, "tol=-1.0 is not usable; use a finite number >= 0"),
    ({"init": "best"}, ValueError, "init='best' must be"),
    ({"init": np.full((3, 9), 1j)}, ValueError, "init has values of type complex128, .* real"),
    ({"init": [[1j] * 9] * 2 + [[None] * 9]}, ValueError, "init is not an array of real numbers"),
    ({"init": [["a"] * 9] * 3}, ValueError, "init has values of type <U1, .* real numbers"),
    ({"init": [[1, 2], [3]]}, ValueError, "init is not an array of real numbers"),
    ({"init": np.ones((3, 2))}, ValueError, r"init has shape \(3, 2\); pass finite centres"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        RandomFeatureKMeans(RBF9, **parameters).fit(data()[0])


def test_there_is_no_partial_fit():
    assert not hasattr(RandomFeatureKMeans, "partial_fit")
    assert "no `partial_fit`" in " ".join(RandomFeatureKMeans.__doc__.split())


# ---- weights of sources


def starts(X, weight, seed, init="k-means++"):
    """Return the rows that a source's starts are, as numbers in X[:, 0]."""
    model = RandomFeatureKMeans(IDENTITY, 2, init=init, n_init=1)
    rng = np.random.RandomState(seed)
    rows = kmeans._Source(model, Reader(Cut(X, None, weight, rows=2), None, None), rng)
    Z, of_rows, _ = rows.sample(IDENTITY.fit(X), 2, rng)
    return model._starts(Z, of_rows, rng)[0, :, 0].astype(int)


@pytest.mark.slow
def test_whole_weights_draw_starts_as_repeated_rows_do():
    X, weight = np.arange(7.0)[:, None] ** 2, np.array([1, 0, 2, 3, 1, 5, 0])
    repeated = np.repeat(X, weight, axis=0)
    seeds = range(400)
    found = np.bincount(np.concatenate([starts(X, weight, s) for s in seeds]), minlength=50)
    wanted = np.bincount(np.concatenate([starts(repeated, None, s) for s in seeds]), minlength=50)
    assert found.sum() == wanted.sum() == 800
    assert (np.abs(found - wanted) <= 4 * np.sqrt(found + wanted)).all()
    assert found[[1, 36]].sum() == 0
    assert (found[[0, 4, 9, 16, 25]] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("init", ["k-means++", pytest.param("random", marks=pytest.mark.weekly)])
def test_rows_without_weight_are_no_starts(init, monkeypatch):
    monkeypatch.setattr("gzkcore.rows.survey.SAMPLE_ROWS", 20)
    X, weight = np.arange(500.0)[:, None], (np.arange(500) % 7 == 0) * 1e-3
    chosen = np.concatenate([starts(X, weight, seed, init) for seed in range(20)])
    assert (chosen % 7 == 0).all()


def test_a_sample_stands_for_the_weights_of_all_rows():
    """Over many draws the weights of some rows in the sample add up to theirs."""
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=200) ** 4
    some = rng.random(200) < 0.3
    sums, wholes = [], []
    for _ in range(2000):
        rows, each = kmeans._priority_sample(weight, rng.random(200), 30)
        assert len(rows) == 30
        sums.append(each[some[rows]].sum())
        wholes.append(each.sum())
    for found, wanted in ((sums, weight[some].sum()), (wholes, weight.sum())):
        assert abs(np.mean(found) - wanted) < 4 * np.std(found) / np.sqrt(len(found))


@pytest.mark.parametrize("rows", [100, 2500])
def test_samples_of_batches_are_those_of_all_rows(rows, monkeypatch):
    """However rows are cut, the sample has the rows with the least keys, and weights for them."""
    monkeypatch.setattr("gzkcore.rows.survey.SAMPLE_ROWS", 50)
    X = np.arange(2500.0)[:, None]
    weight = np.random.default_rng(1).exponential(size=2500) ** 3
    model = RandomFeatureKMeans(IDENTITY, 2)
    source = kmeans._Source(
        model, Reader(Cut(X, None, weight, rows=rows), None, None), np.random.RandomState(0)
    )
    drawn = source.drawn
    assert drawn.n_rows == 2500
    assert len(drawn.rows) == 51
    assert_array_equal(drawn.weight, weight[drawn.rows[:, 0].astype(int)])
    _, each, _ = source.sample(IDENTITY.fit(X), 2, np.random.RandomState(0))
    assert len(each) == 50
    # The heaviest rows are in it for certain, as themselves.
    assert weight.max() in each


def test_weights_matter_for_the_starts_of_a_source():
    """Three heavy clusters close together, light rows all around that say nothing."""
    rng = np.random.default_rng(0)
    heavy = np.array([[0, 0], [1, 0], [0, 1]])[np.arange(300) % 3] + 0.01 * rng.normal(
        size=(300, 2)
    )
    X = np.concatenate([heavy, rng.uniform(-50, 50, (3000, 2))])
    weight = np.concatenate([np.full(300, 1e6), np.full(3000, 1e-3)])
    order = rng.permutation(len(X))
    X, weight = X[order], weight[order]
    wanted = RandomFeatureKMeans(IDENTITY, 3, random_state=0).fit(X, sample_weight=weight)
    for seed in range(3):
        model = RandomFeatureKMeans(IDENTITY, 3, n_init=1, random_state=seed)
        found = model.fit(Cut(X, None, weight, rows=500))
        assert found.inertia_ <= 1.02 * wanted.inertia_


@pytest.mark.parametrize("features", [IDENTITY, FrozenEstimator(IDENTITY)])
def test_sources_with_features_that_ask_nothing(features):
    X, weight = data(500)
    if isinstance(features, FrozenEstimator):
        features = FrozenEstimator(RBFSampler(n_components=5, random_state=0).fit(X))
    model = RandomFeatureKMeans(features, 3, random_state=0).fit(Cut(X, None, weight, rows=70))
    wanted = RandomFeatureKMeans(features, 3, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ <= 1.05 * wanted.inertia_
    bad = X.copy()
    bad[333, 1] = np.nan
    with pytest.raises(ValueError, match=r"batch 4, counted from 0: Input X contains NaN.*row 53"):
        RandomFeatureKMeans(features, 3).fit(Cut(bad, None, weight, rows=70))


def test_the_best_start_is_kept_where_its_cost_is_rounded_below_zero():
    X = np.repeat([[1.1], [2.3], [2.9]], 10, axis=0)
    for seed in range(6):
        model = RandomFeatureKMeans(
            FunctionTransformer(), n_clusters=3, init="random", n_init=20, max_iter=2,
            random_state=seed,
        ).fit(X)  # fmt: skip
        assert model.inertia_ < 1e-9
