"""Weights are cast once for each dtype: kept while they are the fitted ones, and nowhere in a model."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from points import gaussian
from sklearn.base import clone

import gzkcore as gzk
from gzkcore.features import base, gegenbauer_columns

MAPS = [
    gzk.AdaptiveSketchFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.BlockFourierFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.BlockFourierFeatures(gzk.Gaussian(0.1), 9, mix="hadamard", random_state=0),
    gzk.BlockProjection(3, random_state=0),
    gzk.FastfoodFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.FastJLProjection(3, random_state=0),
    gzk.HadamardProjection(3, random_state=0),
    gzk.MaclaurinFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.ModifiedFourierFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.NystromFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.PolySketchFeatures(n_components=9, random_state=0),
    gzk.RandomFourierFeatures(gzk.Gaussian(0.1), 9, random_state=0),
    gzk.TensorSketchFeatures(n_components=9, random_state=0),
]
each_map = pytest.mark.parametrize("features", MAPS, ids=str)


def test_it_is_made_once_for_each_dtype_and_anew_for_other_weights():
    class Owner:
        """What can be weakly referred to."""

    calls = []

    def make(weights, dtype):
        calls.append((weights, dtype))
        return object()

    owner, first, second = Owner(), np.ones(2), np.ones(2)
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    made = {dtype: base.cast_once(owner, dtype, make, first) for dtype in (single, double)}
    for dtype in (single, double):
        assert base.cast_once(owner, dtype, make, first) is made[dtype]
    assert len(calls) == 2
    assert base.cast_once(owner, single, make, second) is not made[single]
    assert base.cast_once(owner, double, make, second) is not made[double]
    assert len(calls) == 4
    died = weakref.ref(first)
    del first, made, calls[:]
    gc.collect()
    assert died() is None  # what other weights have replaced is let go


@pytest.mark.parametrize("features", [
    gzk.GegenbauerFeatures(gzk.Gaussian(0.1), 300, basis="random", tol=1e-2, random_state=0),
    gzk.PublishedGegenbauerFeatures(gzk.Gaussian(0.1), 300, degree=5, order=1, random_state=0),
], ids=lambda features: type(features).__name__)  # fmt: skip
def test_directions_are_transposed_once(features, monkeypatch):
    X = gaussian(5, 3)
    fitted = clone(features).fit(X)
    Z = fitted.transform(X)
    monkeypatch.setattr(gegenbauer_columns, "in_strips", None)
    np.testing.assert_array_equal(fitted.transform(X[:1]), Z[:1])


@each_map
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_transform_follows_a_new_fit_and_both_dtypes(features, monkeypatch):
    X, other = gaussian(20, 3), gaussian(20, 3, seed=1)
    fitted = clone(features).fit(X)
    expected = {}
    for dtype in (np.float32, np.float64):
        with monkeypatch.context() as patch:
            patch.setattr(base, "_CASTS", weakref.WeakKeyDictionary())
            expected[dtype] = fitted.transform(X.astype(dtype))
    for dtype in (np.float32, np.float64, np.float32):
        np.testing.assert_array_equal(fitted.transform(X.astype(dtype)), expected[dtype])
    fitted.set_params(random_state=5).fit(other)
    afresh = clone(fitted).fit(other).transform(X)
    np.testing.assert_array_equal(fitted.transform(X), afresh)


@each_map
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_do_not_hold_casts(features):
    X = gaussian(20, 3)
    fitted = clone(features).fit(X)
    before, size = dict(vars(fitted)), len(pickle.dumps(fitted))
    for dtype in (np.float32, np.float64):
        fitted.transform(X.astype(dtype))
    assert vars(fitted) == before
    assert len(pickle.dumps(fitted)) == size
    for again in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted), copy.deepcopy(fitted)):
        assert again not in base._CASTS
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    gone = weakref.ref(fitted)
    del fitted, again
    gc.collect()
    assert gone() is None


@each_map
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_threads_may_share_features(features):
    X = gaussian(20, 3)
    fitted = clone(features).fit(X)
    tasks = [X.astype(dtype) for dtype in (np.float32, np.float64)] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fitted.transform, tasks))
    for task, Z in zip(tasks, found, strict=True):
        np.testing.assert_array_equal(Z, fitted.transform(task))


@pytest.mark.parametrize("features", [
    gzk.BlockFourierFeatures("gaussian", 9, random_state=0),
    gzk.BlockFourierFeatures("gaussian", 9, mix="hadamard", random_state=0),
    gzk.FastfoodFeatures("gaussian", 9, random_state=0),
    gzk.ModifiedFourierFeatures("gaussian", 9, random_state=0),
    gzk.PolySketchFeatures("gaussian", 9, random_state=0),
    gzk.RandomFourierFeatures("gaussian", 9, random_state=0),
    gzk.RandomFourierFeatures("laplacian", 9, random_state=0),
], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore::gzkcore.TruncationWarning")
def test_lengthscales_beyond_single_precision_are_told(features):
    X = gaussian(20, 2) * 1e-41
    fitted = clone(features).fit(X)
    assert np.isfinite(fitted.transform(X)).all()
    with pytest.raises(ValueError, match="exceed the range of float32; scale the columns"):
        fitted.transform(X.astype(np.float32))
