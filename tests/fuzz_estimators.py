"""Estimators on hostile rows: they refuse them, or what they say is finite and of the right shape."""

import numpy as np
import pytest
from fuzzing import REFUSALS, counted, often, quietly, rows
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from test_agnostic import MAPS, fitted

import gzkcore


def said(function, *args):
    """Return what a function says, None if it refuses its arguments."""
    with quietly():
        try:
            return function(*args)
        except REFUSALS as error:
            assert str(error)
            return None


def check(Z, width):
    assert Z.shape[1:] == (width,)
    assert Z.dtype in (np.float32, np.float64)
    assert np.isfinite(Z).all()


@pytest.mark.parametrize("name", MAPS)
@often
@given(data=st.data())
def test_fitted_maps_take_any_rows(name, data):
    features = fitted(name)
    X = data.draw(rows(features.n_features_in_))
    counted("rows for fitted maps", (name, X))
    Z = said(features.transform, X)
    if Z is not None:
        check(Z, features.n_features_out_)


@pytest.mark.parametrize("name", MAPS)
@often
@given(data=st.data())
def test_maps_are_fitted_to_any_rows(name, data):
    features = clone(MAPS[name].features)
    X = data.draw(rows(data.draw(st.sampled_from([1, 2, 3, 5, 8, 17]))))
    counted("rows to fit maps to", (name, X))
    if said(features.fit, X) is None:
        assert not hasattr(features, "_n_features_out")  # unfitted after a fit that failed
        return
    Z = said(features.transform, X)
    if Z is not None:
        check(Z, features.n_features_out_)


def small():
    return gzkcore.GegenbauerFeatures(n_components=9, random_state=0)


LEARNERS = {
    "ridge": gzkcore.RandomFeatureRidge(small(), 0.1),
    "ridge-cv": gzkcore.RandomFeatureRidgeCV(small(), alphas=[0.1, 1.0]),
    "classifier": gzkcore.RandomFeatureRidgeClassifier(small(), 0.1),
    "kernel-ridge": gzkcore.KernelRidge("gaussian", 0.1),
    "near-kernel-ridge": gzkcore.NearKernelRidge("gaussian", 0.1, random_state=0),
    "kernel-ridge-classifier": gzkcore.KernelRidgeClassifier("gaussian", 0.1),
    "pca": gzkcore.RandomFeaturePCA(small(), n_components=2),
    "kmeans": gzkcore.RandomFeatureKMeans(small(), n_clusters=2, n_init=1, random_state=0),
    "encoder": gzkcore.TableEncoder(),
}


@pytest.mark.parametrize("name", LEARNERS)
@often
@given(data=st.data())
def test_learners_take_any_rows(name, data):
    model = clone(LEARNERS[name])
    X, other = data.draw(rows(3)), data.draw(rows(3))
    n = X.shape[0] if hasattr(X, "shape") and X.shape else len(X) if isinstance(X, list) else 1
    y = np.arange(n) % 2 if "classifier" in name else np.linspace(-1.0, 1.0, n)
    counted("rows for learners", (name, X))
    if said(model.fit, X, y) is None:
        return
    ask = model.predict if hasattr(model, "predict") else model.transform
    for each in (X, other):
        found = said(ask, each)
        if found is not None:
            assert len(found) == (each.shape[0] if hasattr(each, "shape") else len(each))
            assert np.isfinite(np.asarray(found, dtype=float)).all()
