"""What all learners on features have in common: any kind of rows, any split, files, callbacks."""

import copy
import operator
import pickle
import sys
from functools import cache
from itertools import pairwise

import models
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from batched import Cut, Diary
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import check_array
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)
from tolerances import LEARNERS

import gzkcore as gzk
from gzkcore._util import threads as _threads
from gzkcore._util.state import fitted_attributes
from gzkcore.passes.tiles import TILE_ROWS

RBF9 = RBFSampler(gamma=0.3, n_components=9, random_state=0)
OURS = gzk.GegenbauerFeatures(
    n_components=16, basis="random", radius=9.0, center=None, random_state=0
)

# A fit needs targets, labels, a second view, or nothing.
LEARNERS_ON = {
    "ridge": lambda features: gzk.RandomFeatureRidge(features, 0.1),
    "ridge-cv": lambda features: gzk.RandomFeatureRidgeCV(features, [0.1, 1.0], cv=3),
    "classifier": lambda features: gzk.RandomFeatureRidgeClassifier(features, 0.1),
    "classifier-cv": lambda features: gzk.RandomFeatureRidgeClassifierCV(features, [0.1, 1.0], cv=3),
    "pca": lambda features: gzk.RandomFeaturePCA(features, 3),
    "cca": lambda features: gzk.RandomFeatureCCA(features, n_components=2),
    "kmeans": lambda features: gzk.RandomFeatureKMeans(features, 3, random_state=0),
}  # fmt: skip
every = pytest.mark.parametrize("name", LEARNERS_ON)
streaming = pytest.mark.parametrize("name", [n for n in LEARNERS_ON if n != "kmeans"])
in_either_way = pytest.mark.parametrize(
    ("name", "method"),
    [(n, "fit") for n in LEARNERS_ON] + [(n, "partial_fit") for n in LEARNERS_ON if n != "kmeans"],
)


def data(n=300, seed=0):
    """Rows in three clusters, some entries 0; weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) + 3 * np.eye(3)[np.arange(n) % 3]
    X[X < 0] = 0
    return X, rng.uniform(0, 2, n)


def second(name, X):
    """Return what a learner wants besides the rows."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if name.startswith("classifier"):
        return np.array(["x", "y", "z"])[X.argmax(axis=1)]
    if name in ("pca", "kmeans"):
        return None
    return np.column_stack([X[:, 0] * X[:, 1], X[:, 2]])


def fit(name, X, weight=None, features=RBF9):
    dense = np.asarray(X.toarray() if sp.issparse(X) else X)
    return LEARNERS_ON[name](features).fit(X, second(name, dense), sample_weight=weight)


def output(model, X):
    """Return what a model says of rows, as numbers."""
    for method in ("decision_function", "transform", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    raise AssertionError("the model says nothing of rows")


def close(found, wanted, what="solved", dtype=np.float64):
    atol = LEARNERS[what](dtype) * np.abs(wanted).max()
    assert_allclose(found, wanted, rtol=0, atol=atol)


# ---- any kind of rows


def kinds():
    X, _ = data()
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    locked = X.copy()
    locked.flags.writeable = False
    yield "list", X.tolist()
    yield "DataFrame", pd.DataFrame(X, columns=list("abc"))
    yield "fortran", np.asfortranarray(X)
    yield "read-only", locked
    yield "big-endian", X.astype(">f8")
    yield "csr_array", sp.csr_array(X)
    yield "csr_matrix", sp.csr_matrix(X)
    yield "csc_array", sp.csc_array(X)
    yield "64-bit indices", wide


FEATURES = {"foreign": RBF9, "ours": OURS}


@cache
def output_of_an_array(name, features):
    X, weight = data()
    return output(fit(name, X, weight, FEATURES[features]), X)


@every
@pytest.mark.parametrize("X", [pytest.param(X, id=kind) for kind, X in kinds()])
@pytest.mark.parametrize("features", FEATURES)
def test_every_kind_of_rows(name, X, features):
    _, weight = data()
    model = fit(name, X, weight.tolist(), FEATURES[features])
    close(output(model, X), output_of_an_array(name, features))
    if isinstance(X, pd.DataFrame):
        assert_array_equal(model.feature_names_in_, ["a", "b", "c"])


@in_either_way
def test_rows_are_checked_once(name, method):
    X, weight = data()
    y = second(name, X)
    checked = []

    def note(frame, event, _):
        if event == "call" and frame.f_code is check_array.__code__:
            given = frame.f_locals["array"]
            checked.append(isinstance(given, np.ndarray) and np.shares_memory(given, X))

    model = LEARNERS_ON[name](FunctionTransformer())
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        getattr(model, method)(X, y, sample_weight=weight)
    finally:
        sys.setprofile(before)
    assert sum(checked) == 1


@every
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i2"])
def test_memory_maps_are_read_tile_by_tile(name, dtype, tmp_path, monkeypatch):
    X, _ = data(5000)
    X = np.round(3 * X)
    np.save(tmp_path / "X.npy", X.astype(dtype))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    highest = []
    original = RBFSampler.transform

    def transform(self, X):
        highest.append(X.shape[0])
        return original(self, X)

    monkeypatch.setattr(RBFSampler, "transform", transform)
    model = fit(name, mapped)
    found = output(model, mapped)
    assert max(highest) <= TILE_ROWS
    exact = X.astype(np.float32 if dtype == "<f4" else np.float64)
    assert_array_equal(found, output(fit(name, exact), exact))


@every
def test_float32_stays_close(name):
    X, weight = data(3000)
    single = X.astype(np.float32)
    model, wanted = fit(name, single, weight), fit(name, X, weight)
    found = output(model, single)
    close(found, output(wanted, X), "single", np.float32)
    if name in ("pca", "cca", "kmeans"):
        assert found.dtype == np.float32
    else:
        assert (model.moments_.dtype, found.dtype) == (np.float32, np.float64)
    if name == "kmeans":
        assert np.mean(model.labels_ == wanted.labels_) > 0.999


@every
def test_nothing_of_the_caller_is_written(name):
    X, weight = data()
    given = X, second(name, X), weight
    copies = copy.deepcopy(given)
    features = FunctionTransformer()  # the features are X itself
    models = [LEARNERS_ON[name](features)]
    if name == "ridge-cv":
        models.append(gzk.RandomFeatureRidgeCV(features, cv="loo"))
    for model in models:
        output(model.fit(*given), X)
    assert not hasattr(features, "n_features_in_")
    for before, after in zip(copies, given, strict=True):
        assert_array_equal(before, after)


# ---- any split


@every
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_agree(name, n_threads):
    X, weight = data(3000)
    wanted = output(fit(name, X, weight), X)
    with _threads.limit_threads(n_threads):
        close(output(fit(name, X, weight), X), wanted)


@every
@pytest.mark.parametrize("rows", [7, 100, 299])
def test_tiles_and_batches_of_any_size(name, rows, monkeypatch):
    X, weight = data()
    wanted = output(fit(name, X, weight), X)
    monkeypatch.setattr("gzkcore.passes.tiles.TILE_ROWS", rows)
    monkeypatch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 2 * rows)
    close(output(fit(name, X, weight), X), wanted)


@every
def test_float32_gives_the_same_answer_for_every_split(name, monkeypatch):
    X, weight = data(3000)
    X = X.astype(np.float32)
    y, features = second(name, X), FrozenEstimator(RBF9.fit(X))
    model = LEARNERS_ON[name](features)
    if name == "cca":
        model.set_params(features_y=FunctionTransformer())
    wanted = output(clone(model).fit(X, y, sample_weight=weight), X)
    if name != "kmeans":
        batches = clone(model)
        for rows in (slice(0, 70), slice(70, 1500), slice(1500, 3000)):
            part = None if y is None else y[rows]
            batches.partial_fit(X[rows], part, sample_weight=weight[rows])
        close(output(batches, X), wanted, "single, split", np.float32)
    monkeypatch.setattr("gzkcore.passes.tiles.TILE_ROWS", 300)
    found = output(clone(model).fit(X, y, sample_weight=weight), X)
    close(found, wanted, "single, split", np.float32)


@streaming
@given(cuts=st.lists(st.integers(5, 295), max_size=4, unique=True))
@settings(max_examples=10, deadline=None)
def test_batches_equal_the_whole(name, cuts):
    X, weight = data()
    y = second(name, X)
    frozen = FrozenEstimator(RBF9.fit(X))
    model = LEARNERS_ON[name](frozen)
    if name == "cca":
        model.set_params(features_y=FunctionTransformer())
    whole = clone(model).fit(X, y, sample_weight=weight)
    more = {"classes": ["z", "y", "x"]} if name.startswith("classifier") else {}
    for a, b in pairwise([0, *sorted(cuts), 300]):
        part = None if y is None else y[a:b]
        model.partial_fit(X[a:b], part, sample_weight=weight[a:b], **more)
        if b > 20:
            output(model, X[:1])  # usable in between, and none the worse for it
    close(output(model, X), output(whole, X))


@pytest.mark.parametrize("name", ["pca", "cca"])
def test_merged_models_equal_the_whole(name):
    X, weight = data()
    y = second(name, X)
    model = LEARNERS_ON[name](FrozenEstimator(RBF9.fit(X)))
    if name == "cca":
        model.set_params(features_y=FunctionTransformer())
    parts = []
    for rows in (slice(0, 80), slice(80, 90), slice(90, 300)):
        part = None if y is None else y[rows]
        parts.append(clone(model).fit(X[rows], part, weight[rows]))
    merged = parts[0].merge(parts[1]).merge(parts[2])
    close(output(merged, X), output(clone(model).fit(X, y, weight), X))


@streaming
def test_models_of_different_features_are_not_merged(name):
    X, _ = data()
    y = second(name, X)
    drawn = [clone(RBF9).set_params(random_state=seed) for seed in (0, 1)]
    one, other = (LEARNERS_ON[name](features).fit(X, y) for features in drawn)
    before = output(one, X)
    with pytest.raises(ValueError, match="different features, fitted to different rows"):
        one.merge(other)
    assert_array_equal(output(one, X), before)
    one.merge(pickle.loads(pickle.dumps(one)))  # equal, if not the same


@streaming
def test_models_of_other_classes_are_not_merged(name):
    X, _ = data()
    one = LEARNERS_ON[name](RBF9).fit(X, second(name, X))
    kind = type(one).__name__
    before = output(one, X)
    different = gzk.RandomFeatureCCA() if kind == "RandomFeaturePCA" else gzk.RandomFeaturePCA()
    for other in (None, different, X):
        wanted = f"^other is a {type(other).__name__}; pass another {kind} to merge$"
        with pytest.raises(TypeError, match=wanted):
            one.merge(other)
        sums = type(one.moments_).__name__
        with pytest.raises(TypeError, match=f"pass another {sums} to merge$"):
            one.moments_.merge(other)
    assert_array_equal(output(one, X), before)


def of_whole_numbers(X, power):
    """Features that refuse all points but whole numbers."""
    if (np.round(X) != X).any():
        raise ValueError("X has fractions")
    return X**power


@streaming
@pytest.mark.parametrize("wanted", ["unit rows", "whole numbers"])
def test_features_that_refuse_most_points_are_compared_too(name, wanted):
    X, _ = data()
    X = np.round(X + 1)
    y = second(name, X)
    maps = [FunctionTransformer(of_whole_numbers, kw_args={"power": power}) for power in (1, 2)]
    if wanted == "unit rows":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        maps = [
            gzk.GegenbauerFeatures(gzk.SphereHeat(0.1), 16, basis="random", random_state=seed)
            for seed in (0, 1)
        ]
    models = [LEARNERS_ON[name](features) for features in maps]
    if name == "cca":
        models = [model.set_params(features_y=FunctionTransformer()) for model in models]
    one, other = (model.fit(X, y) for model in models)
    with pytest.raises(ValueError, match="different features, fitted to different rows"):
        one.merge(other)
    one.merge(pickle.loads(pickle.dumps(one)))


# ---- rows with weights


class Remembering(TransformerMixin, BaseEstimator):
    """Features that are X itself, and remember the rows and weights that they were fitted to."""

    def fit(self, X, y=None, sample_weight=None):
        self.rows_, self.y_, self.weight_ = X, y, sample_weight
        return self

    def transform(self, X):
        return X


class Plain(Remembering):
    def fit(self, X, y=None):
        return super().fit(X, y)


@in_either_way
@pytest.mark.parametrize("features", [Remembering(), Plain()], ids=["weighted", "plain"])
def test_features_are_fitted_to_rows_of_some_weight(name, features, method):
    X, weight = data()
    weight[::3] = 0
    model = LEARNERS_ON[name](features)
    getattr(model, method)(X, second(name, X), sample_weight=weight)
    kept = weight > 0
    for fitted in (model.features_, getattr(model, "features_y_", model.features_)):
        assert len(fitted.rows_) == kept.sum()
        if isinstance(features, Plain):
            assert fitted.weight_ is None
        else:
            assert_array_equal(fitted.weight_, weight[kept])
    assert_array_equal(model.features_.rows_, X[kept])


@every
def test_rows_of_weight_0_are_not_there(name):
    X, weight = data()
    far = np.concatenate([X, 100.0 * X[:50]])
    y = second(name, far)
    padded = np.concatenate([weight, np.zeros(50)])
    model = LEARNERS_ON[name](gzk.GegenbauerFeatures(n_components=16, random_state=0))
    if name == "kmeans":  # whose starts are rows, drawn by number
        model.set_params(init=model.set_params(n_init=1).fit(X, None, weight).cluster_centers_)
    found = clone(model).fit(far, y, sample_weight=padded)
    wanted = clone(model).fit(X, second(name, X), sample_weight=weight)
    assert_array_equal(found.features_.transform(X), wanted.features_.transform(X))
    close(output(found, X), output(wanted, X))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        clone(model).fit(X, second(name, X), sample_weight=np.zeros(300))


# ---- state


@every
def test_every_fitted_attribute_is_declared(name):
    X, weight = data()
    model = LEARNERS_ON[name](OURS)
    blank = set(vars(model))
    model.fit(pd.DataFrame(X, columns=list("abc")), second(name, X), sample_weight=weight)
    assert set(vars(model)) - blank == set(fitted_attributes(model))
    model._forget()
    assert set(vars(model)) == blank


# ---- sources


def source(kind, *parts):
    """Return what stands for X, y and weights in a fit."""
    if kind == "batches":
        return Cut(*parts, rows=64), None, None
    if kind == "iterator":
        return iter(Cut(*parts, rows=64)), None, None
    da = pytest.importorskip("dask.array")
    return tuple(
        None if part is None else da.from_array(part, chunks=(64, *part.shape[1:]))
        for part in parts
    )


def whole(kind, found):
    """Put together what a model says of a source."""
    return np.asarray(found) if kind == "dask" else np.concatenate(list(found))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in LEARNERS_ON
        for kind in ("batches", "iterator", "dask")
        if (name, kind) != ("kmeans", "iterator")  # which is refused, see below
    ],
)
def test_sources_give_the_same_answer(name, kind):
    X, weight = data()
    y = second(name, X)
    features = FrozenEstimator(OURS.fit(X)) if kind == "iterator" else OURS
    make = LEARNERS_ON[name]
    if name == "kmeans":  # starts are drawn from samples, and not the same ones
        centers = OURS.fit(X).transform(X[:3])
        make = lambda features: gzk.RandomFeatureKMeans(features, 3, init=centers, tol=0.0)  # noqa: E731
    if name == "cca":
        make = lambda features: gzk.RandomFeatureCCA(features, FunctionTransformer())  # noqa: E731
    wanted = make(features).fit(X, y, sample_weight=weight)
    given, labels, weights = source(kind, X, y, weight)
    model = make(features).fit(given, labels, sample_weight=weights)
    close(output(model, X), output(wanted, X))
    for method in ("transform", "decision_function", "predict"):
        if hasattr(model, method):
            again = getattr(model, method)(source("dask" if kind == "dask" else "batches", X)[0])
            assert_array_equal(whole(kind, again), getattr(model, method)(X))
    if name == "kmeans":
        assert_array_equal(model.labels_, wanted.labels_)
        assert_allclose(model.inertia_, wanted.inertia_, rtol=LEARNERS["summed"]())
    if hasattr(model, "score"):
        given, labels, weights = source("batches" if kind == "iterator" else kind, X, y, weight)
        score = model.score(given, labels, weights)
        assert score == pytest.approx(wanted.score(X, y, weight), rel=1e-9)
    if hasattr(model, "score") and name != "kmeans":
        given, labels, weights = source("dask" if kind == "dask" else "batches", X, y, 0 * weight)
        for rows in ((given, labels, weights), (X, y, 0 * weight)):
            with pytest.raises(ValueError, match="all sample weights are zero"):
                model.score(*rows)


@pytest.mark.parametrize("form", ["arrays", "batches"])
def test_rows_without_weight_have_no_r2(form):
    X, weight = data(30)
    model = gzk.RandomFeatureRidge(RBF9).fit(X, X[:, 0])
    rows = X, X[:, 0], 0 * weight
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.score(*rows) if form == "arrays" else model.score([rows])


@pytest.mark.parametrize("form", ["arrays", "batches"])
def test_one_row_has_no_r2(form):
    X, _ = data(30)
    model = gzk.RandomFeatureRidge(RBF9).fit(X, X[:, 0])
    rows = X[:1], X[:1, 0]
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(model.score(*rows) if form == "arrays" else model.score([rows]))


@pytest.mark.parametrize("kind", ["batches", "dask"])
def test_starts_and_empty_clusters_of_a_source(kind):
    X, _ = data(900)
    given, *_ = source(kind, X, None, None)
    wanted = gzk.RandomFeatureKMeans(RBF9, 5, random_state=0).fit(X)
    model = gzk.RandomFeatureKMeans(RBF9, 5, random_state=0).fit(given)
    assert model.inertia_ <= 1.02 * wanted.inertia_
    far = np.full((2, 9), 100.0)
    init = np.concatenate([RBF9.fit(X).transform(X[:2]), far])
    model, wanted = (gzk.RandomFeatureKMeans(RBF9, 4, init=init).fit(V) for V in (given, X))
    close(model.cluster_centers_, wanted.cluster_centers_)


@streaming
@pytest.mark.parametrize("kind", ["batches", "iterator", "dask"])
def test_partial_fit_takes_a_batch_not_a_source(name, kind):
    X, _ = data()
    given, labels, _ = source(kind, X, second(name, X), None)
    model = LEARNERS_ON[name](OURS)
    with pytest.raises(TypeError, match="a source of batches; pass it to fit, or its batches one"):
        model.partial_fit(given, labels)


def test_an_iterator_is_not_enough_for_kmeans():
    X, _ = data()
    with pytest.raises(ValueError, match="k-means reads the rows again and again"):
        gzk.RandomFeatureKMeans(RBF9).fit(iter(Cut(X, rows=64)))


@pytest.mark.parametrize("kind", ["batches", "dask"])
@pytest.mark.parametrize("class_weight", ["balanced", {"x": 3.0}])
def test_weights_of_classes_in_sources(kind, class_weight):
    X, weight = data()
    order = np.argsort(second("classifier", X), kind="stable")  # one class after the other
    X, y = X[order], second("classifier", X)[order]
    model = gzk.RandomFeatureRidgeClassifier(OURS, 0.1, class_weight=class_weight)
    given, labels, weights = source(kind, X, y, weight)
    found = clone(model).fit(given, labels, weights)
    close(output(found, X), output(clone(model).fit(X, y, weight), X))
    with pytest.raises(ValueError, match=r"is not one of the classes|y has one class"):
        clone(model).set_params(class_weight=None).fit(iter(Cut(X, y, rows=64)))


@streaming
@pytest.mark.parametrize(("kind", "frozen"), [("arrays", True), ("batches", False)])
def test_a_checkpoint_goes_on(name, kind, frozen, tmp_path, monkeypatch):
    X, weight = data()
    y = second(name, X)
    parts = (X, y, weight) if kind == "arrays" else (Cut(X, y, weight, rows=64), None, None)
    model = LEARNERS_ON[name](FrozenEstimator(OURS.fit(X)) if frozen else OURS)
    if name == "cca":
        model.set_params(features_y=gzk.RandomFourierFeatures(n_components=8, random_state=0))
    monkeypatch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 64)
    wanted = clone(model).fit(*parts, checkpoint=tmp_path / "other.gzk")
    checkpoint = gzk.Checkpoint(tmp_path / "run.gzk", seconds=1e-9)
    accumulator = gzk.MomentsAccumulator if name in ("pca", "cca") else gzk.GramAccumulator
    original, calls = accumulator.add, iter(range(100))

    def add(self, *args, **kwargs):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(accumulator, "add", add)
        with pytest.raises(KeyboardInterrupt):
            clone(model).fit(*parts, checkpoint=checkpoint)
    assert (tmp_path / "run.gzk").exists()
    found = clone(model).fit(*parts, checkpoint=checkpoint)
    assert_array_equal(output(found, X), output(wanted, X))
    assert not (tmp_path / "run.gzk").exists()


# ---- features


@in_either_way
def test_frozen_features_stay_as_they_are(name, method):
    X, _ = data()
    features = gzk.GegenbauerFeatures(n_components=16).fit(X[:100]).set_output(transform="pandas")
    before = features.transform(X[100:])
    model = LEARNERS_ON[name](FrozenEstimator(features))
    if name == "cca":
        model.set_params(features_y=FunctionTransformer())
    getattr(model, method)(2 * X[100:], second(name, X[100:]))
    assert model.features_.estimator is features
    pd.testing.assert_frame_equal(features.transform(X[100:]), before)


@every
def test_features_are_cloned_and_seeded(name):
    X, _ = data()
    features = RBFSampler(n_components=5)
    models = [
        LEARNERS_ON[name](features).set_params(random_state=3).fit(X, second(name, X))
        for _ in range(2)
    ]
    assert_array_equal(*(output(model, X) for model in models))
    assert models[0].features_.random_state == 3
    assert features.random_state is None
    own = LEARNERS_ON[name](RBF9).set_params(random_state=3).fit(X, second(name, X))
    assert own.features_.random_state == 0, "a random_state of the features' own stays"
    steps = make_pipeline(StandardScaler(), RBFSampler(n_components=5))
    model = LEARNERS_ON[name](steps).set_params(random_state=3).fit(X, second(name, X))
    assert model.features_["rbfsampler"].random_state == 3
    assert np.isfinite(output(model, X)).all()


@every
def test_default_features(name):
    X, _ = data(60)
    model = LEARNERS_ON[name](None).set_params(features__n_components=20, random_state=0)
    assert isinstance(model.features, gzk.KernelFeatures)
    assert model.fit(X, second(name, X)).features_.n_components == 20
    for features in (RBFSampler, Ridge()):
        with pytest.raises(TypeError, match=r"features=.* is not a transformer; pass an inst"):
            fit(name, X, features=features)


# ---- as estimators

REPEATED = "a repeated row is one more row to predict"  # in another fold, or one more of all
FAILS = {
    "RandomFeatureKMeans": "a repeated row is one more row to draw a first centre from",
    "RandomFeatureRidgeClassifierCV": REPEATED,
    "RandomFeatureRidgeCV": REPEATED,
}


@parametrize_with_checks(
    [
        gzk.RandomFeatureRidge(FunctionTransformer()),
        gzk.RandomFeatureRidgeCV(FunctionTransformer(), [0.1, 1.0]),
        gzk.RandomFeatureRidgeCV(
            RBFSampler(gamma=0.01, n_components=60, random_state=0), [1e-3, 1e-2]
        ),
        gzk.RandomFeatureRidgeClassifier(FunctionTransformer()),
        gzk.RandomFeatureRidgeClassifierCV(FunctionTransformer(), [0.1, 1.0]),
        gzk.RandomFeaturePCA(FunctionTransformer()),
        gzk.RandomFeatureCCA(FunctionTransformer(), n_components=1),
        gzk.RandomFeatureKMeans(FunctionTransformer()),
    ],
    expected_failed_checks=lambda model: {
        f"check_sample_weight_equivalence_on_{kind}_data": FAILS[type(model).__name__]
        for kind in ("dense", "sparse")
        if type(model).__name__ in FAILS
    },
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


FEW = gzk.GegenbauerFeatures(n_components=8)


@pytest.mark.slow
@pytest.mark.parametrize("check", [
    check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data,
], ids=["dense", "sparse"])  # fmt: skip
@pytest.mark.parametrize("model", [
    gzk.RandomFeatureRidge(), gzk.RandomFeatureRidgeClassifier(), gzk.RandomFeatureRidge(FEW),
    gzk.RandomFeatureRidgeClassifier(FEW), gzk.RandomFeaturePCA(FEW, n_components=2),
], ids=str)  # fmt: skip
def test_a_row_of_weight_2_is_two_rows_for_features_too(model, check):
    check(type(model).__name__, model)


@pytest.mark.parametrize("case", models.cases(), ids=operator.itemgetter(0))
def test_every_model_is_the_same_from_a_file_and_a_pickle(case, tmp_path):
    name, unit, make, say = case
    X = models.rows(unit)
    atol = 1e-12 if name == "generalized" else 0  # its file has a table in place of the function
    model = make(X)
    expected = say(model, X)
    gzk.save(model, tmp_path / "m.gzk")
    for again in (gzk.load(tmp_path / "m.gzk"), pickle.loads(pickle.dumps(model))):
        fitted = [{k for k in vars(each) if k.endswith("_")} for each in (again, model)]
        assert fitted[0] == fitted[1]
        for what, values in say(again, X).items():
            assert_allclose(values, expected[what], rtol=0, atol=atol)


@every
def test_files_and_pickles_give_back_the_model(name, tmp_path):
    X, weight = data()
    model = fit(name, X, weight, OURS)
    model.save(tmp_path / "m.gzk")
    for again in (gzk.load(tmp_path / "m.gzk"), pickle.loads(pickle.dumps(model))):
        assert type(again) is type(model)
        assert_array_equal(output(again, X), output(model, X))
        assert_array_equal(output(again, X.astype(np.float32)), output(model, X.astype(np.float32)))
        if hasattr(model, "predict"):
            assert_array_equal(again.predict(X), model.predict(X))
        if hasattr(model, "partial_fit"):
            more, _ = data(50, seed=1)
            straight = pickle.loads(pickle.dumps(model)).partial_fit(more, second(name, more))
            again.partial_fit(more, second(name, more))
            assert_array_equal(output(again, X), output(straight, X))
    with pytest.raises(TypeError, match="skops"):
        fit(name, X).save(tmp_path / "foreign.gzk")


@pytest.mark.parametrize("name", ["pca", "cca", "kmeans"])
def test_names_of_columns(name):
    X, _ = data()
    model = fit(name, X)
    names = [f"{type(model).__name__.lower()}{i}" for i in range(output(model, X).shape[1])]
    assert model.get_feature_names_out().tolist() == names
    frame = clone(model).set_output(transform="pandas").fit(X, second(name, X)).transform(X)
    assert frame.columns.tolist() == names
    assert_array_equal(frame.to_numpy(), model.transform(X))


@every
def test_sample_weight_can_be_routed(name):
    model = LEARNERS_ON[name](None)
    for method in ("fit", "partial_fit", "score"):
        if hasattr(model, method):
            assert "sample_weight" in getattr(model.get_metadata_routing(), method).requests


@every
def test_not_fitted(name):
    X, _ = data(9)
    with pytest.raises(NotFittedError, match=r"is not fitted yet\. Call 'fit'"):
        output(LEARNERS_ON[name](RBF9), X)


# ---- interrupted


def interrupting(after):
    """A transformer that interrupts in its call number `after`."""
    calls = iter(range(1000))

    def transform(X):
        if next(calls) == after:
            raise KeyboardInterrupt
        return X

    return FunctionTransformer(transform)


@every
@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_fit_changes_nothing(name, after):
    X, _ = data(9000)
    model = LEARNERS_ON[name](RBF9)
    blank = set(vars(model))
    y = second(name, X)
    if name == "cca":
        model.set_params(features_y=FunctionTransformer())
    methods = ("fit",) if name == "kmeans" else ("fit", "partial_fit")
    for before, method in [(False, each) for each in methods] + [(True, "fit")]:
        if before:
            wanted = output(model.set_params(features=RBF9).fit(X, y), X)
        model.features = interrupting(after)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, method)(X, y)
        if before:
            assert_array_equal(output(model, X), wanted)
        else:
            assert set(vars(model)) == blank


def test_an_interrupted_batch_leaves_the_model_as_it_was():
    X, _ = data(5000)
    y = second("ridge", X)
    features = clone(RBF9).fit(X)
    model = gzk.RandomFeatureRidge(features).partial_fit(X[:1000], y[:1000])
    before = model.predict(X)
    interrupt = interrupting(3)
    model.moments_.features = FunctionTransformer(
        lambda X: features.transform(interrupt.transform(X))
    )
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    assert_array_equal(model.predict(X), before)


@streaming
def test_a_broken_batch_leaves_the_model_as_it_was(name):
    X, _ = data(3000)
    model = fit(name, X[:1000])
    before = output(model, X)
    broken = X.copy()
    broken[2999, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*row 2999, column 1"):
        model.partial_fit(broken, second(name, X))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3"):
        model.partial_fit(X[:, :2], second(name, X))
    assert_array_equal(output(model, X), before)


@every
def test_bad_rows(name):
    X, _ = data(40)
    for features in (RBF9, OURS):
        broken = np.where(np.arange(40)[:, None] == 7, np.inf, X)
        with pytest.raises(ValueError, match=r"X contains infinity.*row 7, column 0"):
            LEARNERS_ON[name](features).fit(broken, second(name, X))
        with pytest.raises(ValueError, match="X has no rows"):
            LEARNERS_ON[name](features).fit(X[:0], second(name, X[:0]))
        with pytest.raises(ValueError, match="X has the text 'a' in column 0; pass numbers"):
            LEARNERS_ON[name](features).fit([["a", "b", "c"]] * 40, second(name, X))
    with pytest.raises(ValueError, match="is not a finite number >= 0"):
        fit(name, X, -np.ones(40))
    with pytest.raises(ValueError, match="sample_weight has shape"):
        fit(name, X, np.ones(39))


# ---- callbacks


@pytest.mark.parametrize("name", ["pca", "cca", "kmeans"])
def test_callbacks(name, monkeypatch):
    pytest.importorskip("sklearn.callback")
    monkeypatch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 100)
    X, _ = data()
    diary = Diary()
    model = LEARNERS_ON[name](RBF9).set_callbacks(diary).fit(X, second(name, X))
    steps = diary.entries[2:-2]
    assert diary.entries[:2] + diary.entries[-2:] == ["setup", "begin fit", "end fit", "teardown"]
    task, count = ("iteration", model.n_iter_) if name == "kmeans" else ("batch", 3)
    assert len(steps) >= 2 * count
    assert set(steps) == {f"begin {task}", f"end {task}"}
    assert_array_equal(output(model, X), output(fit(name, X), X))


def test_a_callback_may_stop_iterations():
    pytest.importorskip("sklearn.callback")
    X, _ = data()
    model = gzk.RandomFeatureKMeans(RBF9, 8, tol=0.0, random_state=0).set_callbacks(Diary(5)).fit(X)
    assert model.n_iter_ <= 2
    assert model.labels_.shape == (300,)


OUTSIDE = [
    gzk.TableEncoder(), gzk.KernelRidge(), gzk.KernelRidgeClassifier(), gzk.KernelRegressor(),
    gzk.RandomFeatureRidge(), gzk.RandomFeaturePCA(), gzk.RandomFeatureKMeans(n_clusters=2), gzk.CountSketch(4),
]  # fmt: skip


@pytest.mark.parametrize("model", OUTSIDE, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_sparse_rows_that_point_outside_are_refused(model, form):
    X = form(np.eye(4))
    X.indices = X.indices + np.int32(10**6)
    with pytest.raises(ValueError, match="ind"):
        clone(model).fit(X, np.arange(4) % 2)


# ---- what is told of wrong arguments, by every learner of targets or labels

RIDGE = gzk.Matern(nu=1.5)
WITH_TARGETS = [
    gzk.KernelRegressor(random_state=0), gzk.KernelRidge(RIDGE, 0.1), gzk.RandomFeatureRidge(RBF9, 0.1),
    gzk.RandomFeatureRidgeCV(RBF9), gzk.KernelPoissonRegressor(RIDGE), gzk.KernelQuantileRegressor(RIDGE),
]  # fmt: skip
WITH_LABELS = [
    gzk.KernelClassifier(random_state=0),
    gzk.KernelRidgeClassifier(RIDGE, 0.1),
    gzk.KernelLogisticRegression(RIDGE),
    gzk.RandomFeatureRidgeClassifier(RBF9, 0.1),
]
of_targets = pytest.mark.parametrize("given", WITH_TARGETS, ids=lambda each: type(each).__name__)
of_labels = pytest.mark.parametrize("given", WITH_LABELS, ids=lambda each: type(each).__name__)
of_both = pytest.mark.parametrize(
    "given", WITH_TARGETS + WITH_LABELS, ids=lambda each: type(each).__name__
)


def table_of(given):
    """Return 40 rows, and what a learner wants of them."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    return X, np.where(X[:, 0] > 0, "a", "b") if given in WITH_LABELS else np.exp(X[:, 0])


def refused(error, message, work, *args, **how):
    """Check that work raises one sentence, at once."""
    with pytest.raises(error, match=message) as caught:
        work(*args, **how)
    assert "\n" not in str(caught.value)
    assert "batch 0" not in str(caught.value)


@pytest.mark.slow
@of_both
def test_wrong_shapes_are_told_in_a_sentence(given):
    X, y = table_of(given)
    new = clone(given)
    refused(ValueError, "X has 40 rows, but y has 39; pass", new.fit, X, y[:39])
    refused(ValueError, "X has 39 rows, but y has 40; pass", new.fit, X[:39], y)
    refused(ValueError, r"X has shape \(40, 2, 1\), of 3 dim.*; pass", new.fit, X[..., None], y)
    refused(ValueError, "requires y to be passed", new.fit, X, None)
    refused(ValueError, r"y has shape \(40, 1, 1\)", new.fit, X, y[:, None, None])
    model = clone(given).fit(X, y)
    refused(ValueError, "X has 40 rows, but y has 39; pass", model.score, X, y[:39])
    refused(ValueError, "y=None, and score compares", model.score, X)
    refused(ValueError, "y has (shape|2 columns).*; pass", model.score, X, np.c_[y, y])
    refused(ValueError, r"X has shape \(40, 2, 1\), of 3 dim.*; pass", model.predict, X[..., None])
    refused(ValueError, "X has one dimension, of 2 values.*Reshape your data", model.predict, X[0])
    refused(ValueError, "X has 1 features, .*; pass the same columns", model.predict, X[:, :1])
    for method in (new.fit, model.score):
        refused(ValueError, r"sample_weight has shape \(9,\), but X has 40", method, X, y, [1] * 9)
        refused(ValueError, r"sample_weight\[0\] = -1.0 is not", method, X, y, [-1.0] * 40)


@of_targets
def test_wrong_targets_are_told_in_a_sentence(given):
    X, y = table_of(given)
    model = clone(given).fit(X, y)
    wrong = (TypeError, ValueError)
    refused(wrong, r"y=3.0 is (one value|not an array); pass one", clone(given).fit, X, 3.0)
    texts, gap = np.where(y > 1, "high", "low"), np.where(np.arange(40) == 7, np.nan, y)
    endless = np.where(np.isnan(gap), np.inf, y)
    prices = [f"€ {each:.2f}" for each in y.tolist()]
    refused(ValueError, "write the numbers alone, such as 1200.5", clone(given).fit, X, prices)
    for method in (clone(given).fit, model.score):
        refused(
            ValueError, "y must be one number.*'(high|low)'.*; for labels use", method, X, texts
        )
        refused(ValueError, "Input y contains NaN.*row 7,.*; leave out", method, X, gap)
        refused(ValueError, "y contains infinity.*row 7,.*; leave out", method, X, endless)


@of_labels
def test_wrong_labels_are_told_in_a_sentence(given):
    X, y = table_of(given)
    model = clone(given).fit(X, y)
    mixed = "y has text and other labels, such as 'a' in row 1 and 1 in row 0.*; make"
    for method in (clone(given).fit, model.score):
        refused(ValueError, mixed, method, X, [1, "a"] * 20)
        refused(ValueError, "y has no label in row 1 .*; leave", method, X, ["a", np.nan] * 20)
    refused(ValueError, "such as 0, but the classes .* 'a'; pass", model.score, X, [0, 1] * 20)
    refused(ValueError, "label type: continuous", model.score, X, X[:, 0])


@pytest.mark.parametrize(
    "given", [*WITH_LABELS, *WITH_TARGETS[-2:]], ids=lambda each: type(each).__name__
)
def test_what_has_no_standard_deviation_says_what_has_one(given):
    message = "return_std=True: .*predict_proba" if given in WITH_LABELS else "KernelRegressor and"
    X, y = table_of(given)
    refused(TypeError, message, clone(given).fit(X, y).predict, X, return_std=True)


@pytest.mark.slow
@of_both
def test_names_of_columns_are_looked_at(given):
    X, y = table_of(given)
    frame = pd.DataFrame(X, columns=["p", "q"])
    model = clone(given).fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but"):
        model.predict(X)
    other = frame.rename(columns={"p": "z"})
    refused(ValueError, "has column 'z', .*no column 'p'; pass the same", model.predict, other)
    told = "names should match .*: X has them in another order; pass"
    if isinstance(
        given, gzk.KernelRegressor | gzk.KernelClassifier
    ):  # these find columns by their names
        assert_array_equal(model.predict(frame[["q", "p"]]), model.predict(frame))
    else:
        refused(ValueError, told, model.predict, frame[["q", "p"]])
