"""The front door: it takes the best family, says why, and its predictions come true."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gzkcore
from gzkcore import (
    BlockFourierFeatures,
    BlockProjection,
    FastfoodFeatures,
    Gaussian,
    GegenbauerFeatures,
    KernelFeatures,
    Laplacian,
    NystromFeatures,
    RandomFeatureRidge,
    RandomFourierFeatures,
    Spherical,
    Zonal,
)
from gzkcore.auto import _candidates
from gzkcore.metrics import relative_frobenius_error


def rows(n, dim, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(dtype)


@parametrize_with_checks([KernelFeatures(n_components=4, random_state=0)])
def test_sklearn(estimator, check):
    check(estimator)


def test_the_choice_is_one_of_the_best():
    X = rows(900, 4)
    features = KernelFeatures(n_components=128, random_state=0).fit(X)
    K = features.kernel_(X[:300])
    ours = relative_frobenius_error(K, features.transform(X[:300]))
    for basis in ("auto", "random", "harmonic"):
        other = GegenbauerFeatures(features.kernel_, 128, basis=basis, random_state=1).fit(X)
        assert ours <= 1.3 * relative_frobenius_error(K, other.transform(X[:300]))


def test_it_says_what_and_why():
    features = KernelFeatures(n_components=64, random_state=0).fit(rows(400, 3))
    assert isinstance(features.chosen_, GegenbauerFeatures)
    least = min(features.errors_.values())
    assert re.search(r"off by [\d.e-]+ in the relative Frobenius norm", features.why_)
    assert features.why_.startswith("Gegenbauer")
    assert least <= 1.3 * features.errors_[features.why_.split(" (")[0]] * 1.2


def test_hopeless_kernels_are_called_so():
    features = KernelFeatures(Gaussian(1.0), n_components=16, random_state=0).fit(rows(300, 9))
    assert "No features of this width are close" in features.why_


def test_same_seed_same_choice_and_features():
    X = rows(500, 9)
    a, b = (KernelFeatures(n_components=64, random_state=7).fit(X) for _ in range(2))
    assert a.why_ == b.why_
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformer_manners(dtype, tmp_path):
    X = rows(300, 3, dtype=dtype)
    features = KernelFeatures(n_components=50, random_state=0).fit(X)
    Z = features.transform(X)
    assert Z.dtype == dtype
    assert Z.shape == (300, 50)
    out = np.empty_like(Z)
    assert features.transform(X, out=out) is out
    np.testing.assert_array_equal(out, Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), Z)
    features.save(tmp_path / "f.gzk")
    np.testing.assert_array_equal(gzkcore.load(tmp_path / "f.gzk").transform(X), Z)
    assert list(features.get_feature_names_out()[:1]) == ["kernelfeatures0"]
    searched = clone(KernelFeatures()).set_params(kernel__gamma=0.25)
    assert searched.kernel.gamma == 0.25


def test_many_sparse_columns_are_reduced():
    X = sp.random_array((400, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
    features = KernelFeatures(n_components=64, random_state=0).fit(X)
    assert features.chosen_.dim_ == 64
    assert "3000 columns reduced to 64" in features.why_
    Z = features.transform(X)
    error = relative_frobenius_error(features.kernel_(X), Z)
    assert error <= 1.5 * min(features.errors_.values())


def test_one_row_and_few_rows():
    for n in (1, 2, 5):
        assert KernelFeatures(n_components=8, random_state=0).fit_transform(rows(n, 2)).shape == (
            n,
            8,
        )


def test_other_kernels():
    S = rows(300, 3)
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    features = KernelFeatures(Zonal(np.exp), n_components=64, random_state=0).fit(S)
    np.testing.assert_allclose(
        features.transform(S) @ features.transform(S).T, np.exp(S @ S.T), atol=1e-5
    )
    features = KernelFeatures(Laplacian(0.5), n_components=512, random_state=0).fit(S)
    assert isinstance(features.chosen_, RandomFourierFeatures)
    features = KernelFeatures(Spherical(1.0), n_components=8, random_state=0).fit(S)
    assert isinstance(features.chosen_, NystromFeatures)
    with pytest.raises(ValueError, match="Spherical"):  # fewer rows than columns
        KernelFeatures(Spherical(1.0), n_components=512).fit(S)


def test_it_is_the_default_of_learners():
    X = rows(400, 3)
    model = make_pipeline(RandomFeatureRidge(alpha=1e-3, random_state=0)).fit(X, np.sin(X[:, 0]))
    assert isinstance(model[0].features_, KernelFeatures)
    assert model.score(X, np.sin(X[:, 0])) > 0.99


def test_plan_holds_on_other_rows():
    """Within a factor of 1.5 for nine in ten of its predictions above 1e-3."""
    ratios = []
    for dim in (2, 3, 5, 9, 16):
        X, other = rows(1500, dim), rows(500, dim, seed=1)
        found = gzkcore.plan(X, Gaussian(0.5 / dim), n_components=[32, 128])
        for row in found.table:
            if row["error"] < 1e-3:
                continue
            candidates = _candidates(found.kernel, row["n_components"], X, 5)
            [features] = [c.features.fit(X) for c in candidates if c.name == row["method"]]
            error = relative_frobenius_error(found.kernel(other), features.transform(other))
            ratios.append(max(error / row["error"], row["error"] / error))
    assert len(ratios) >= 20
    assert np.quantile(ratios, 0.9) <= 1.5


def test_plan_recommends_the_cheapest_that_reaches_the_target():
    found = gzkcore.plan(rows(800, 3), target=1e-3, n_components=[16, 256, 512])
    assert "n_components=256" in found.recommendation
    features = found.build()
    assert features.n_components == 256
    assert not hasattr(features, "kernel_")
    text = str(found)
    assert "800 rows of 3 columns" in text
    assert text.endswith(found.recommendation)


def test_plan_says_when_nothing_reaches_the_target():
    found = gzkcore.plan(rows(600, 9), Gaussian(0.5), target=1e-6, n_components=[32, 128])
    assert "none reaches 1e-06" in found.recommendation


def test_plan_counts_all_rows():
    X = rows(300, 3)
    small, large = (gzkcore.plan(X, n_components=[32], n_samples=n) for n in (300, 30_000))
    assert large.table[0]["megabytes"] == 100 * small.table[0]["megabytes"]
    assert large.statistical_dimension > small.statistical_dimension
    assert 1 <= small.effective_dimension <= 3


def test_plan_draws(tmp_path):
    pytest.importorskip("matplotlib")
    gzkcore.plan(rows(300, 3), n_components=[16, 64]).plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"target": 0.0}, ValueError, "target=0.0 is not usable"),
        ({"lam": -1.0}, ValueError, "lam=-1.0 is not usable"),
        ({"n_components": []}, ValueError, "names no width"),
        ({"n_components": [0]}, ValueError, "n_components=0 is too small"),
        ({"n_samples": 0}, ValueError, "n_samples=0 is too small"),
        ({"kernel": "cauchy"}, ValueError, "kernel='cauchy' is unknown"),
    ],
)
def test_bad_plans(arguments, error, message):
    with pytest.raises(error, match=message):
        gzkcore.plan(rows(50, 3), **arguments)


def test_frames_asked_for_are_made_of_the_result_alone():
    """Inside, everything goes on with arrays."""
    X = rows(200, 3)
    wide = rows(100, 300)
    with config_context(transform_output="pandas"):
        features = KernelFeatures(n_components=16, random_state=0).fit(X)
        assert list(features.transform(X).columns) == list(features.get_feature_names_out())
        RandomFeatureRidge(features, alpha=1e-3).fit(X, X[:, 0]).predict(X)
        KernelFeatures(n_components=8, random_state=0).fit(wide)
        gzkcore.plan(X, n_components=np.int64(16))


def test_malformed_sparse_rows_are_refused():
    X = sp.random_array((50, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    maps = [
        BlockFourierFeatures(n_components=4),
        BlockProjection(4),
        FastfoodFeatures(n_components=4),
        GegenbauerFeatures(n_components=4),
        RandomFourierFeatures(n_components=4),
    ]
    fitted = [features.fit(X) for features in maps]
    far, long = X.copy(), X.copy()
    far.indices[3] = 200_000_000
    long.indptr[2] = 10**6
    for features in fitted:
        for bad in (far, long):
            with pytest.raises(ValueError, match="ind"):
                features.transform(bad)
