"""`KernelFeatures` takes the best family and says why."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import gzkcore as gzk
from gzkcore.features import auto
from gzkcore.metrics import relative_frobenius_error


def rows(n, dim, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(dtype)


def test_the_choice_is_one_of_the_best():
    X = rows(900, 4)
    features = gzk.KernelFeatures(n_components=128, random_state=0).fit(X)
    K = features.kernel_(X[:300])
    ours = relative_frobenius_error(K, features.transform(X[:300]))
    for basis in ("auto", "random", "harmonic"):
        other = gzk.GegenbauerFeatures(features.kernel_, 128, basis=basis, random_state=1).fit(X)
        assert ours <= 1.3 * relative_frobenius_error(K, other.transform(X[:300]))


def test_it_says_what_and_why():
    features = gzk.KernelFeatures(n_components=64, random_state=0).fit(rows(400, 3))
    assert isinstance(features.chosen_, gzk.GegenbauerFeatures)
    error = features.errors_[features.family_]
    assert features.why_.startswith(f"{features.family_} (")
    assert f"relative Frobenius error of the kernel is {error:.2g}" in features.why_
    assert error <= 1.2 * min(features.errors_.values())
    assert features.not_tried_ == {}
    assert "Not tried" not in features.why_


@pytest.mark.parametrize("labels", [False, True])
def test_with_targets_it_looks_only_at_what_predicts_best(labels):
    X = rows(900, 3)
    y = np.sin(3 * X[:, 0])
    y = np.where(y > 0, "up", "down") if labels else y
    features = gzk.KernelFeatures(gzk.Gaussian(2.0), n_components=128, random_state=0).fit(X, y)
    assert features.held_out_.keys() == features.errors_.keys()
    best = min(features.held_out_.values())
    good = [name for name, error in features.held_out_.items() if error <= 1.02 * best]
    assert features.family_ in good
    assert features.errors_[features.family_] <= 1.2 * min(features.errors_[name] for name in good)
    assert "of y's standard deviation" in features.why_


@pytest.mark.parametrize("y", [None, np.ones(300), np.full(300, np.nan)])
def test_targets_that_say_nothing_are_left_alone(y):
    X = rows(300, 3)
    features = gzk.KernelFeatures(n_components=32, random_state=0).fit(X, y)
    assert features.held_out_ == {}
    assert features.why_ == gzk.KernelFeatures(n_components=32, random_state=0).fit(X).why_


def test_the_error_held_out_is_that_of_a_ridge():
    rng = np.random.default_rng(0)
    Z, T, y, t = (rng.standard_normal(shape) for shape in ((90, 7), (40, 7), (90, 2), (40, 2)))
    ridges = auto._RIDGES * np.square(Z).sum(axis=1).mean()
    fits = [Ridge(alpha, fit_intercept=False).fit(Z, y) for alpha in ridges]
    wanted = min(np.square(fit.predict(T) - t).mean() for fit in fits)
    assert auto._held_out_error(Z, T, y, t) == pytest.approx(wanted**0.5)


def test_hopeless_kernels_are_called_so():
    features = gzk.KernelFeatures(gzk.Gaussian(1.0), n_components=16, random_state=0).fit(
        rows(300, 9)
    )
    assert "No features of this width approximate this kernel well" in features.why_


def test_same_seed_same_choice_and_features():
    X = rows(500, 9)
    a, b = (gzk.KernelFeatures(n_components=64, random_state=7).fit(X) for _ in range(2))
    assert a.why_ == b.why_
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformer_manners(dtype, tmp_path):
    X = rows(300, 3, dtype=dtype)
    features = gzk.KernelFeatures(n_components=50, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.dtype == dtype
    assert Z.shape == (300, 50)
    out = np.empty_like(Z)
    assert features.transform(X, out=out) is out
    np.testing.assert_array_equal(out, Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), Z)
    features.save(tmp_path / "f.gzk")
    np.testing.assert_array_equal(gzk.load(tmp_path / "f.gzk").transform(X), Z)
    assert list(features.get_feature_names_out()[:1]) == ["kernelfeatures0"]
    searched = clone(gzk.KernelFeatures()).set_params(kernel__gamma=0.25)
    assert searched.kernel.gamma == 0.25


@pytest.mark.slow
def test_many_sparse_columns_are_reduced():
    X = sp.random_array(
        (400, 3000), density=0.01, random_state=np.random.default_rng(0), format="csr"
    )
    features = gzk.KernelFeatures(n_components=64, random_state=0).fit(X)
    assert features.chosen_.dim_ == 64
    assert "3000 columns reduced to 64" in features.why_
    Z = features.transform(X)
    error = relative_frobenius_error(features.kernel_(X), Z)
    assert error <= 1.5 * min(features.errors_.values())


def test_polynomials_of_many_columns_may_be_sketched():
    X = sp.random_array(
        (300, 300), density=0.05, random_state=np.random.default_rng(0), format="csr"
    )
    features = gzk.KernelFeatures(gzk.Polynomial(2), n_components=16, random_state=0).fit(X)
    assert "TensorSketch" in features.errors_
    narrow = gzk.KernelFeatures(gzk.Polynomial(2), n_components=16, random_state=0).fit(X[:, :20])
    assert "TensorSketch" not in narrow.errors_


def test_one_row_and_few_rows():
    for n in (1, 2, 5):
        assert gzk.KernelFeatures(n_components=8, random_state=0).fit_transform(
            rows(n, 2)
        ).shape == (
            n,
            8,
        )


def test_other_kernels():
    S = rows(300, 3)
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    features = gzk.KernelFeatures(gzk.Zonal(np.exp), n_components=64, random_state=0).fit(S)
    np.testing.assert_allclose(
        features.transform(S) @ features.transform(S).T, np.exp(S @ S.T), atol=1e-5
    )
    features = gzk.KernelFeatures(gzk.Laplacian(0.5), n_components=512, random_state=0).fit(S)
    assert isinstance(features.chosen_, gzk.RandomFourierFeatures)
    features = gzk.KernelFeatures(gzk.Spherical(1.0), n_components=8, random_state=0).fit(S)
    assert isinstance(features.chosen_, gzk.NystromFeatures)
    assert list(features.errors_) == ["Nystrom"]
    assert {"Gegenbauer", "Fourier, orthogonal frequencies"} <= features.not_tried_.keys()
    assert "its kink at theta has no short series" in features.not_tried_["Gegenbauer"]
    assert all(name in features.why_.split("Not tried")[1] for name in features.not_tried_)
    with pytest.raises(ValueError, match="Spherical"):  # fewer rows than columns
        gzk.KernelFeatures(gzk.Spherical(1.0), n_components=512).fit(S)


@pytest.mark.slow
def test_it_is_the_default_of_learners():
    X = rows(400, 3)
    model = make_pipeline(gzk.RandomFeatureRidge(alpha=1e-3, random_state=0)).fit(
        X, np.sin(X[:, 0])
    )
    assert isinstance(model[0].features_, gzk.KernelFeatures)
    assert model.score(X, np.sin(X[:, 0])) > 0.99


def test_frames_asked_for_are_made_of_the_result_alone():
    """Inside, everything goes on with arrays."""
    X = rows(200, 3)
    wide = rows(100, 300)
    with config_context(transform_output="pandas"):
        features = gzk.KernelFeatures(n_components=16, random_state=0).fit(X)
        assert list(features.transform(X).columns) == list(features.get_feature_names_out())
        gzk.RandomFeatureRidge(features, alpha=1e-3).fit(X, X[:, 0]).predict(X)
        gzk.KernelFeatures(n_components=8, random_state=0).fit(wide)


def test_malformed_sparse_rows_are_refused():
    X = sp.random_array((50, 40), density=0.2, random_state=np.random.default_rng(0), format="csr")
    maps = [
        gzk.BlockFourierFeatures(n_components=4), gzk.BlockProjection(4), gzk.FastfoodFeatures(n_components=4),
        gzk.GegenbauerFeatures(n_components=4), gzk.RandomFourierFeatures(n_components=4),
    ]  # fmt: skip
    fitted = [features.fit(X) for features in maps]
    far, long = X.copy(), X.copy()
    far.indices[3] = 200_000_000
    long.indptr[2] = 10**6
    for features in fitted:
        for bad in (far, long):
            with pytest.raises(ValueError, match="ind"):
                features.transform(bad)


def test_families_whose_features_are_all_0_have_an_error_too():
    X = np.random.default_rng(0).standard_normal((20, 2))
    y = X[:, 0].copy()
    X[3, 0] *= 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gzk.TruncationWarning)
        features = gzk.KernelFeatures(gzk.Gaussian(1.0), 64, random_state=0).fit(X, y)
    assert np.isfinite([*features.held_out_.values()]).all()
