"""Moments of features: right, the same for every split, and nothing of the caller's touched."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer
from tolerances import LEARNERS

from gzkcore import (
    BlockProjection,
    ClusterAccumulator,
    GramAccumulator,
    KernelFeatures,
    MomentsAccumulator,
    RandomFourierFeatures,
    load,
    reference,
    save,
)
from gzkcore._compiled import gram as _gram
from gzkcore._util import threads as _threads
from gzkcore.passes.tiles import for_each_tile


class Cosines(TransformerMixin, BaseEstimator):
    """A small map that, like ours, writes into `out` and keeps float32."""

    def __init__(self, n_components=20):
        self.n_components = n_components

    def fit(self, X, y=None):
        self._n_features_out = self.n_components
        rng = np.random.default_rng(0)
        self.frequencies_ = rng.standard_normal((X.shape[1], self.n_components))
        return self

    def transform(self, X, *, out=None):
        product = X @ self.frequencies_.astype(X.dtype)
        return np.cos(product, out=out)


def data(n, seed=0, n_targets=2, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(dtype)
    return X, rng.standard_normal((n, n_targets)), rng.uniform(0, 2, n)


def expected(Z, y, weight):
    """Moments by matrix products."""
    Z = np.asarray(Z, dtype=np.float64)
    return {
        "n_rows": np.count_nonzero(weight),
        "weight": weight.sum(),
        "feature_sums": weight @ Z,
        "target_sums": weight @ y,
        "target_squares": weight @ y**2,
        "gram": (Z.T * weight) @ Z,
        "cross": (Z.T * weight) @ y,
    }


def assert_moments(moments, wanted, rtol=1e-12):
    for name, value in wanted.items():
        scale = np.abs(value).max() + 1.0
        assert_allclose(getattr(moments, name), value, rtol=rtol, atol=rtol * scale, err_msg=name)


def test_small_example_by_hand():
    identity = FunctionTransformer().fit(np.ones((1, 2)))
    sums = GramAccumulator(identity).update([[1, 2], [3, 4]], [1, 1], [1.0, 0.25]).finalize()
    total, first, second = reference.gram.moments([[1, 2], [3, 4]], [1, 0.25])
    assert_array_equal(sums.gram, second)
    assert_array_equal(sums.gram, reference.gram.gram([[1, 2], [3, 4]], [1, 0.25]))
    assert_array_equal(sums.feature_sums, first)
    assert_array_equal(sums.cross[:, 0], first)
    assert sums.weight == total


@pytest.mark.parametrize(
    "features", [Cosines(), RBFSampler(n_components=17, random_state=0)], ids=repr
)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n", [1, 2, 255, 1024, 3001])
def test_all_moments_and_folds(n, weighted, features):
    X, y, weight = data(n)
    weight = weight if weighted else np.ones(n)
    features.fit(X)
    Z = features.transform(X)
    for n_folds in (1, 3):
        sums = GramAccumulator(features, n_folds).update(X, y, weight if weighted else None)
        assert_moments(sums.finalize(), expected(Z, y, weight))
        for fold in range(n_folds):
            rows = slice(fold, None, n_folds)
            assert_moments(sums.finalize(fold), expected(Z[rows], y[rows], weight[rows]))


def test_float32_is_summed_in_double():
    X, y, weight = data(20_000, dtype=np.float32)
    features = Cosines().fit(X)
    sums = GramAccumulator(features).update(X, y, weight)
    assert sums.dtype == np.float32
    # The tiles are multiplied in float32: relative errors of eps sqrt(rows of a tile) at most.
    assert_moments(sums.finalize(), expected(features.transform(X), y, weight), rtol=4e-6)


def test_float32_of_more_than_two_blocks_of_columns():
    X, y, weight = data(300, dtype=np.float32)
    features = Cosines(1100).fit(X)
    found = GramAccumulator(features).update(X, y, weight).finalize()
    assert_moments(found, expected(features.transform(X), y, weight), rtol=4e-6)


def test_constant_columns_of_float32():
    """Rounding errors of equal products have one sign: 128 of them lose up to 128 eps / 8."""
    c = np.random.default_rng(0).uniform(0.5, 1.0, 40).astype(np.float32)
    X = np.tile(c, (4096, 1))
    wanted = 4096 * np.outer(c, c.astype(np.float64))
    gram = GramAccumulator(FunctionTransformer().fit(X)).update(X).finalize().gram
    assert_allclose(gram, wanted, rtol=128 / 6 * np.finfo(np.float32).eps)


@pytest.mark.parametrize("m", [1, 2, 31, 32, 33, 100])
def test_a_triangle_of_any_size_is_mirrored(m):
    sums = np.random.default_rng(m).standard_normal((m + 2, m + 1))
    wanted = sums.copy()
    wanted[:m, :m] = np.tril(sums[:m, :m]) + np.tril(sums[:m, :m], -1).T
    _gram.mirror(sums, m)
    assert_array_equal(sums, wanted)


def test_only_the_lower_triangle_is_kept():
    for dtype in (np.float32, np.float64):
        X, y, _ = data(600, dtype=dtype)
        sums = GramAccumulator(Cosines().fit(X)).update(X, y).sums[0]
        assert_array_equal(sums[:20, :20], np.tril(sums[:20, :20]))


@given(
    cuts=st.lists(st.integers(0, 700), max_size=5),
    n_folds=st.integers(1, 4),
    data_seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_any_split_and_merge_gives_the_same(cuts, n_folds, data_seed):
    X, y, weight = data(700, data_seed)
    features = Cosines(7).fit(X)
    whole = GramAccumulator(features, n_folds).update(X, y, weight)
    edges = [0, *sorted(cuts), 700]
    parts = [slice(a, b) for a, b in pairwise(edges) if a < b]
    batches = GramAccumulator(features, n_folds)
    apart = []
    for part in parts:
        batches.update(X[part], y[part], weight[part])
        apart.append(GramAccumulator(features, n_folds).update(X[part], y[part], weight[part]))
    left = GramAccumulator(features, n_folds)
    for part in apart:
        left.merge(part)
    while len(apart) > 1:  # from the right: a + (b + c)
        last = apart.pop()
        apart[-1].merge(last)
    for other in (batches, left, apart[0]):
        assert other.n_rows == whole.n_rows
        assert_allclose(other.sums, whole.sums, rtol=1e-12, atol=1e-11)


def test_threads_are_fewer_where_their_sums_would_fill_the_memory(monkeypatch):
    X, y, _ = data(4000)
    seen = set()
    monkeypatch.setattr("gzkcore.passes.tiles.ALL_SUMS_BYTES", 8 * 23 * 22)
    original = for_each_tile

    def spy(features, X, use, n_threads=None):
        seen.add(n_threads)
        original(features, X, use, n_threads)

    monkeypatch.setattr("gzkcore.passes.gram.for_each_tile", spy)
    with _threads.limit_threads(4):
        GramAccumulator(Cosines().fit(X)).update(X, y)
    assert seen == {1}


def test_tiles_cover_the_rows_once_and_in_any_width(monkeypatch):
    monkeypatch.setattr(
        "gzkcore.passes.tiles.FEATURES_BYTES", 8 * 20 * 100
    )  # 100 rows of 20 features
    X, _, _ = data(1037)
    features = Cosines().fit(X)
    found = np.zeros((1037, 20))

    def use(_, rows, Z):
        assert len(Z) <= 100
        found[rows] += Z

    with _threads.limit_threads(2):
        for_each_tile(features, X, use)
    assert_allclose(found, features.transform(X), rtol=1e-14)


OURS = {
    "fourier": RandomFourierFeatures("gaussian", 24, random_state=0),
    "kernel": KernelFeatures(n_components=24, random_state=0),
    "block": BlockProjection(2, random_state=0),
}


@pytest.mark.parametrize("sparsely", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("features", OURS.values(), ids=OURS)
def test_tiles_of_our_maps_are_not_validated_again(features, sparsely, monkeypatch):
    X, y, weight = data(3000)
    X = sparse.csr_array(X) if sparsely else X
    features.fit(X)
    wanted = GramAccumulator(FunctionTransformer(features.transform)).update(X, y, weight)
    validated = []
    monkeypatch.setattr("gzkcore.features.base.check_rows", lambda *_, **__: validated.append(1))
    for each in (features, FrozenEstimator(features)):
        assert_array_equal(GramAccumulator(each).update(X, y, weight).sums, wanted.sums)
    assert not validated


def test_a_transform_of_a_class_of_its_own_is_called():
    class Doubled(RandomFourierFeatures):
        def transform(self, X, *, out=None):
            return np.multiply(super().transform(X), 2.0, out=out)

    X, _, _ = data(600)
    features = Doubled("gaussian", 8, random_state=0).fit(X)
    Z = features.transform(X)
    assert_moments(GramAccumulator(features).update(X).finalize(), {"gram": Z.T @ Z})


def test_rows_that_our_maps_would_read_beyond_are_refused():
    X, _, _ = data(600)
    features = RandomFourierFeatures("gaussian", 8, random_state=0).fit(X)
    for narrow in (X[:, :2], sparse.csr_array(X[:, :2])):
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
            GramAccumulator(features).update(narrow)
    beyond = sparse.csr_array(X)
    beyond.indices[-1] = 3
    for n_threads in (1, 2):
        with _threads.limit_threads(n_threads), pytest.raises(ValueError, match="must be < 3"):
            GramAccumulator(features).update(beyond)


def variants():
    X, _, _ = data(900)
    X[X < 0] = 0
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    locked = X.copy()
    locked.flags.writeable = False
    yield "list", X.tolist()
    yield "fortran", np.asfortranarray(X)
    yield "strided", np.repeat(X, 2, axis=0)[::2]
    yield "read-only", locked
    yield "big-endian", X.astype(">f8")
    yield "csr_array", sparse.csr_array(X)
    yield "csr_matrix", sparse.csr_matrix(X)
    yield "csc_matrix", sparse.csc_matrix(X)
    yield "64-bit indices", wide


@pytest.mark.parametrize("X", [pytest.param(X, id=name) for name, X in variants()])
def test_every_kind_of_rows(X):
    dense, y, _ = data(900)
    dense[dense < 0] = 0
    features = RBFSampler(n_components=9, random_state=0).fit(dense)
    wanted = expected(features.transform(dense), y, np.ones(900))
    assert_moments(GramAccumulator(features).update(X, y).finalize(), wanted)


def test_an_interrupted_update_changes_nothing():
    X, y, _ = data(3000)
    features = Cosines().fit(X)
    sums = GramAccumulator(features).update(X, y)
    before = sums.sums.copy()
    for stop in (KeyboardInterrupt, ValueError):

        def interrupt(X, stop=stop):
            if (X[:, 0] == 99).any():
                raise stop("now")
            return np.ones((len(X), 20))

        broken = X.copy()
        broken[2900:, 0] = 99
        broken[:1024, 0] = 1
        sums.features = FunctionTransformer(interrupt)
        with pytest.raises(stop, match="now"):
            sums.update(broken[1500:], y[1500:])
        with pytest.raises(stop, match="now"):
            sums.update(broken[2900:], y[2900:])
    assert_array_equal(sums.sums, before)
    assert sums.n_rows == 3000


def test_targets_are_shifted():
    X, y, weight = data(500)
    features = Cosines().fit(X)
    sums = GramAccumulator(features, 2).update(X, y, weight)
    before = sums.sums.copy()
    moved = sums.shifted([3.0, -1.0]).finalize()
    assert_array_equal(sums.sums, before)
    assert_moments(moved, expected(features.transform(X), y + np.array([3.0, -1.0]), weight))


def test_hardly_more_than_the_triangle_travels():
    X, y, _ = data(500)
    sums = GramAccumulator(Cosines(200).fit(X)).update(X, y)
    assert len(pickle.dumps(sums)) < 0.6 * sums.sums.nbytes


def test_hardly_more_than_the_triangle_of_centred_moments_travels():
    features = Cosines(400).fit(data(1)[0])
    sums = MomentsAccumulator(features).update(data(600)[0])
    assert len(pickle.dumps(sums)) < 0.6 * sums.scatter.nbytes
    again = pickle.loads(pickle.dumps(sums))
    assert_array_equal(again.scatter, sums.scatter)
    assert len(pickle.dumps(MomentsAccumulator(features))) < 20_000


def naive(Z):
    """Z^T Z in float32 throughout: what a running sum in the type of the data comes to."""
    gram = np.zeros((Z.shape[1], Z.shape[1]), np.float32)
    for start in range(0, len(Z), 64):
        gram += Z[start : start + 64].T @ Z[start : start + 64]
    return gram


def relative_error(gram, exact):
    return np.abs(gram - exact).max() / np.abs(exact).max()


@pytest.mark.weekly
def test_ten_million_rows_of_float32():
    """Z^T Z within 1e-6 of double, entry by entry of the largest; a sum in float32 fails."""
    n, p = 10_000_000, 8
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1.0, (n, p)).astype(np.float32)  # all of one sign, as a constant column
    exact = np.zeros((p, p))
    for start in range(0, n, 100_000):
        part = X[start : start + 100_000].astype(np.float64)
        exact += part.T @ part
    ours = GramAccumulator(FunctionTransformer().fit(X[:1])).update(X).finalize().gram
    assert relative_error(ours, exact) < 1e-6
    assert relative_error(naive(X), exact) > 1e-5


def test_pickles():
    X, y, _ = data(500)
    sums = GramAccumulator(Cosines().fit(X), 2).update(X, y)
    again = pickle.loads(pickle.dumps(sums))
    assert_array_equal(again.sums, sums.sums)
    assert_moments(again.update(X, y).finalize(), vars(sums.update(X, y).finalize()))


def with_value(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


X, Y, W = data(70_100)
FEATURES = Cosines(4).fit(X)


@pytest.mark.parametrize(
    ("X", "y", "weight", "error", "message"),
    [
        (with_value(X, 70_000, 2, np.nan), Y, W, ValueError, "NaN.*row 70000, column 2, both"),
        (with_value(X, 5, 1, np.inf), Y, W, ValueError, "infinity.*row 5, column 1"),
        (sparse.csr_array(with_value(X[:9], 7, 0, np.nan)), Y[:9], None, ValueError, "row 7, col"),
        (X[:9], np.where(np.arange(9) == 3, np.nan, 1), None, ValueError, "y contains NaN.*row 3"),
        (X[:9], ["a"] * 9, None, ValueError, "y must be one number"),
        (X[:9], Y[:8], None, ValueError, r"X has 9 rows, but y has 8"),
        (X[:0], Y[:0], None, ValueError, "X has no rows"),
        (X[0], Y[:3], None, ValueError, "X has one dimension, of 3 values.*Reshape your data"),
        (X[:3], Y[:3], [1, -2, 3], ValueError, r"sample_weight\[1\] = -2.0 is not a finite number"),
        (X[:3], Y[:3], [1, 1, np.nan], ValueError, r"sample_weight\[2\] = nan is not"),
        (X[:3], Y[:3], [1, 1], ValueError, "sample_weight has shape.*X has 3 rows"),
        (X[:3], Y[:3], "heavy", ValueError, "sample_weight must be one number per row"),
    ],
)  # fmt: skip
def test_bad_rows_are_named(X, y, weight, error, message):
    with pytest.raises(error, match=message):
        GramAccumulator(FEATURES).update(X, y, weight)


def test_what_does_not_fit_together_is_named():
    with pytest.raises(ValueError, match="n_folds=0 is too small"):
        GramAccumulator(Cosines(), 0)
    X, y, _ = data(50)
    sums = GramAccumulator(Cosines(4).fit(X), 2).update(X, y)
    with pytest.raises(ValueError, match=r"4 features and 1 target, but .* had 4 and 2"):
        sums.update(X, y[:, 0])
    with pytest.raises(ValueError, match="cannot merge 3 folds into 2"):
        sums.merge(GramAccumulator(sums.features, 3).update(X, y))
    with pytest.raises(ValueError, match="these rows have 5 features"):
        sums.merge(GramAccumulator(Cosines(5).fit(X), 2).update(X, y))
    with pytest.raises(ValueError, match="no rows yet"):
        GramAccumulator(sums.features).finalize()
    with pytest.raises(ValueError, match="returned NaN or infinity for finite X"):
        GramAccumulator(FunctionTransformer(lambda X: X * np.inf).fit(X)).update(np.ones((3, 2)))


# ---- moments about the mean, and clusters: one shape for both

IDENTITY = FunctionTransformer().fit(np.ones((1, 3)))


def centred(Z, weight):
    """Mean and scatter by matrix products."""
    Z = np.asarray(Z, dtype=np.float64)
    mean = weight @ Z / weight.sum()
    return mean, ((Z - mean).T * weight) @ (Z - mean)


def close(found, wanted, what="summed", dtype=np.float64):
    scale = np.abs(wanted).max()
    assert_allclose(found, wanted, rtol=0, atol=LEARNERS[what](dtype) * scale)


def test_centred_moments_and_clusters_as_the_reference():
    X, _, weight = data(40)
    for w in (None, weight):
        mean, scatter = reference.gram.centred_moments(X, w)
        found = MomentsAccumulator(IDENTITY).update(X, sample_weight=w).finalize()
        close(found.mean, mean)
        close(found.scatter, scatter)
        totals, sums, inertia = reference.gram.cluster_sums(X, X[:4], w)
        clusters = ClusterAccumulator(IDENTITY, X[:4]).update(X, w).finalize()
        close(clusters.weights, totals)
        close(clusters.means, np.array(sums) / np.array(totals)[:, None])
        close(clusters.inertia, inertia)
        close(clusters.variance, np.trace(scatter) / 3 / (40 if w is None else w.sum()))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n", [1, 2, 255, 1024, 3001])
def test_moments_of_two_views(n, weighted):
    X, y, weight = data(n)
    w = weight if weighted else np.ones(n)
    one, two = Cosines(20).fit(X), RBFSampler(n_components=17, random_state=0).fit(y)
    sums = MomentsAccumulator(one, two).update(X, y, weight if weighted else None)
    found = sums.finalize()
    mean, scatter = centred(np.hstack([one.transform(X), two.transform(y)]), w)
    close(found.mean, mean[:20])
    close(found.mean_y, mean[20:])
    wide = np.abs(scatter).max() + 1.0
    for part, wanted in (
        (found.scatter, scatter[:20, :20]),
        (found.scatter_y, scatter[20:, 20:]),
        (found.cross, scatter[:20, 20:]),
    ):
        assert_allclose(part, wanted, rtol=0, atol=LEARNERS["summed"]() * wide)
    assert found.n_rows == n
    assert_array_equal(sums.scatter, np.tril(sums.scatter))


@pytest.mark.slow
@given(
    cuts=st.lists(st.integers(0, 700), max_size=5),
    data_seed=st.integers(0, 9),
    offset=st.sampled_from([0.0, 100.0]),
)
@settings(max_examples=25, deadline=None)
def test_any_split_of_moments_and_clusters_gives_the_same(cuts, data_seed, offset):
    X, y, weight = data(700, data_seed)
    weight[weight < 0.2] = 0
    X = X + np.arange(700)[:, None] * offset  # the mean drifts
    features = Cosines(7).fit(X) if offset == 0 else IDENTITY
    centers = np.stack([features.transform(X[i : i + 3]) for i in (0, 300)])
    edges = [0, *sorted(cuts), 700]
    parts = [slice(a, b) for a, b in pairwise(edges) if a < b]
    for make, views in (
        (lambda: MomentsAccumulator(features), (X, None)),
        (lambda: MomentsAccumulator(features, IDENTITY), (X, np.column_stack([y, X[:, 0]]))),
        (lambda: ClusterAccumulator(features, centers), (X,)),
        (lambda: ClusterAccumulator(features, centers[0]), (X,)),
    ):

        def update(sums, rows, views=views):
            return sums.update(*(None if v is None else v[rows] for v in views), weight[rows])

        whole = update(make(), slice(None))
        batches, left, apart = make(), make(), []
        for rows in parts:
            update(batches, rows)
            apart.append(update(make(), rows))
        for part in apart:
            left.merge(part)
        while len(apart) > 1:  # from the right: a + (b + c)
            last = apart.pop()
            apart[-1].merge(last)
        for other in (batches, left, apart[0]):
            assert other.n_rows == 700
            for name, value in vars(whole.finalize()).items():
                if np.size(value):
                    close(getattr(other.finalize(), name), value)


def test_means_far_from_zero_lose_no_digits():
    X, _, weight = data(3000)
    near = MomentsAccumulator(IDENTITY).update(X, sample_weight=weight).finalize()
    far = MomentsAccumulator(IDENTITY)
    for rows in (slice(0, 10), slice(10, 3000)):
        far.update(X[rows] + 1e5, sample_weight=weight[rows])
    close(far.finalize().scatter, near.scatter, "offset")
    near = ClusterAccumulator(IDENTITY, X[:5]).update(X, weight).finalize()
    far = ClusterAccumulator(IDENTITY, X[:5] + 1e5).update(X + 1e5, weight).finalize()
    close(far.means - 1e5, near.means, "offset")
    assert_allclose(far.inertia, near.inertia, rtol=LEARNERS["offset"]())


def test_float32_moments_are_summed_in_double():
    X, _, weight = data(20_000, dtype=np.float32)
    features = Cosines().fit(X)
    Z = features.transform(X).astype(np.float64)
    sums = MomentsAccumulator(features).update(X, sample_weight=weight)
    mean, scatter = centred(Z, weight)
    assert sums.dtype == np.float32
    close(sums.finalize().mean, mean, "single", np.float32)
    # The tiles are multiplied in float32: relative errors of eps sqrt(rows of a tile) at most.
    assert_allclose(sums.finalize().scatter, scatter, rtol=0, atol=4e-6 * np.abs(scatter).max())
    naive = np.zeros((20, 20), np.float32)
    for z, w in zip(Z.astype(np.float32), weight.astype(np.float32), strict=True):
        naive += np.outer(w * z, z)  # what adding up in float32 would give, of moments about 0
    wanted = (Z.T * weight) @ Z
    assert np.abs(naive - wanted).max() > 1e-6 * np.abs(wanted).max()
    clusters = ClusterAccumulator(features, Z[:5]).update(X, weight).finalize()
    exact = ClusterAccumulator(IDENTITY, Z[:5])
    exact.features = FunctionTransformer().fit(Z)
    exact = exact.update(Z, weight).finalize()
    close(clusters.means, exact.means, "single", np.float32)
    assert_allclose(clusters.inertia, exact.inertia, rtol=LEARNERS["single"](np.float32))


def test_labels_and_several_starts():
    X, _, weight = data(900)
    starts = np.stack([X[:4], X[4:8], X[8:12]])
    labels = np.empty((900, 3), np.int32)
    together = ClusterAccumulator(IDENTITY, starts).update(X, weight, labels=labels).finalize()
    for i, centers in enumerate(starts):
        alone = ClusterAccumulator(IDENTITY, centers).update(X, weight).finalize()
        close(together.means[i], alone.means)
        close(together.inertia[i], alone.inertia)
        distances = np.square(X[:, None] - centers).sum(axis=2)
        assert_array_equal(labels[:, i], distances.argmin(axis=1))


def accumulators():
    X, _, _ = data(30)
    yield MomentsAccumulator(IDENTITY), (X,)
    yield MomentsAccumulator(IDENTITY, IDENTITY), (X, X[:, ::-1])
    yield ClusterAccumulator(IDENTITY, X[:3]), (X,)


@pytest.mark.parametrize(("sums", "rows"), list(accumulators()))
def test_an_interrupted_update_of_moments_or_clusters_changes_nothing(sums, rows):
    sums.update(*rows)
    before = pickle.dumps(vars(sums) | {"features": None, "features_y": None})

    def interrupt(X):
        if (X[:, 0] == 99).any():
            raise KeyboardInterrupt
        return X

    sums.features = FunctionTransformer(interrupt)
    broken = [np.tile(part, (200, 1)) for part in rows]
    broken[0][5990:, 0] = 99
    with pytest.raises(KeyboardInterrupt):
        sums.update(*broken)
    after = pickle.dumps(vars(sums) | {"features": None, "features_y": None})
    assert after == before


def test_moments_and_clusters_are_kept_in_files(tmp_path):
    X, _, weight = data(500)
    features = KernelFeatures(n_components=20, random_state=0).fit(X)
    centers = features.transform(X[:3])
    for sums, rows in (
        (MomentsAccumulator(features), (X, None)),
        (MomentsAccumulator(features, features), (X, X[::-1])),
        (ClusterAccumulator(features, centers), (X,)),
    ):
        save(sums, tmp_path / "empty.gzk")
        again = load(tmp_path / "empty.gzk").update(*rows, weight)
        save(sums.update(*rows, weight), tmp_path / "sums.gzk")
        for other in (again, load(tmp_path / "sums.gzk"), pickle.loads(pickle.dumps(sums))):
            for name, value in vars(sums.finalize()).items():
                assert_array_equal(getattr(other.finalize(), name), value)
        twice = load(tmp_path / "sums.gzk").merge(sums).finalize()
        for name, value in vars(sums.merge(load(tmp_path / "sums.gzk")).finalize()).items():
            assert_array_equal(getattr(twice, name), value)


def test_what_does_not_fit_moments_and_clusters_is_named():
    X, y, _ = data(50)
    sums = MomentsAccumulator(IDENTITY)
    with pytest.raises(ValueError, match="no rows yet"):
        sums.finalize()
    with pytest.raises(ValueError, match="no features_y for it"):
        sums.update(X, y)
    with pytest.raises(ValueError, match="pass that view as y"):
        MomentsAccumulator(IDENTITY, IDENTITY).update(X)
    with pytest.raises(ValueError, match="all sample weights are zero"):
        sums.update(X, sample_weight=np.zeros(50)).finalize()
    sums.update(X)
    with pytest.raises(ValueError, match=r"have \(4, 0\) features .*, but earlier rows had"):
        sums.merge(MomentsAccumulator(Cosines(4).fit(X)).update(X))
    with pytest.raises(ValueError, match=r"weights add up to 0.5, but .* more than 1"):
        _ = MomentsAccumulator(IDENTITY).update(X[:1], sample_weight=[0.5]).finalize().covariance
    with pytest.raises(ValueError, match="returned NaN or infinity for finite X"):
        MomentsAccumulator(FunctionTransformer(lambda X: X * np.inf).fit(X)).update(np.ones((3, 2)))
    with pytest.raises(ValueError, match="centers has shape"):
        ClusterAccumulator(IDENTITY, [1.0, 2.0])
    clusters = ClusterAccumulator(IDENTITY, X[:2])
    with pytest.raises(ValueError, match="no rows yet"):
        clusters.finalize()
    with pytest.raises(ValueError, match="centers have 3 columns, but the features 4"):
        ClusterAccumulator(Cosines(4).fit(X), X[:2]).update(X)
    with pytest.raises(ValueError, match="cannot merge sums around different centers"):
        clusters.merge(ClusterAccumulator(IDENTITY, X[1:3]))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        clusters.update(X, np.zeros(50)).finalize()
