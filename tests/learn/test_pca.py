"""Principal components from moments: as scikit-learn's on explicit features, and kernel PCA."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from points import sphere
from sklearn.decomposition import PCA, KernelPCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer
from tolerances import LEARNERS

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeaturePCA, reference

RBF9 = RBFSampler(gamma=0.3, n_components=9, random_state=0)


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)) * [1.0, 2.0, 3.0], rng.uniform(0, 2, n)


def close(found, wanted, what="solved"):
    scale = np.abs(wanted).max()
    assert_allclose(found, wanted, rtol=0, atol=LEARNERS[what]() * scale)


@pytest.mark.parametrize("whiten", [False, True], ids=["plain", "white"])
@pytest.mark.parametrize("n_components", [1, 4, 9, None, 0.7])
def test_as_scikit_learn_on_the_explicit_features(n_components, whiten):
    X, _ = data()
    model = RandomFeaturePCA(RBF9, n_components, whiten=whiten).fit(X)
    Z = model.features_.transform(X)
    other = PCA(n_components, whiten=whiten, svd_solver="full").fit(Z)
    signs = np.sign(np.sum(model.components_ * other.components_, axis=1))
    assert model.n_components_ == other.n_components_
    close(model.components_, other.components_ * signs[:, None])
    close(model.explained_variance_, other.explained_variance_)
    close(model.explained_variance_ratio_, other.explained_variance_ratio_)
    close(model.mean_, other.mean_)
    V = model.transform(X)
    close(V, other.transform(Z) * signs)
    close(model.to_features(V), other.inverse_transform(other.transform(Z)))
    if whiten:
        close(V.std(axis=0, ddof=1), np.ones(V.shape[1]))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_as_the_reference(weighted):
    X, weight = data()
    weight = weight if weighted else None
    model = RandomFeaturePCA(RBF9, 5).fit(X, sample_weight=weight)
    Z = model.features_.transform(X)
    mean, variances, axes = reference.pca.principal_components(Z, 5, weight)
    close(model.mean_, mean)
    close(model.explained_variance_, variances)
    close(model.components_, axes)


def test_a_weight_says_how_many_rows_a_row_stands_for():
    X, _ = data()
    weight = np.arange(300) % 4
    weighted = RandomFeaturePCA(RBF9, 4).fit(X, sample_weight=weight)
    repeated = RandomFeaturePCA(RBF9, 4).fit(np.repeat(X, weight, axis=0))
    close(weighted.explained_variance_, repeated.explained_variance_)
    close(weighted.transform(X), repeated.transform(X))


def test_weights_add_up_to_more_than_1():
    X, weight = data()
    for rows, scaled, message in (
        (X, weight / weight.sum(), "the weights add up to 1, but a variance needs more than 1"),
        (X, (weight / weight.sum()).astype(np.float32), "the weights add up to 1"),
        (X, 1e-4 * weight, r"the weights add up to 0\.0"),
        (X[:1], None, "a variance needs two rows or more, but n_samples=1"),
    ):
        with pytest.raises(ValueError, match=message):
            RandomFeaturePCA(RBF9, 1).fit(rows, sample_weight=scaled)
    same = RandomFeaturePCA(RBF9, 1).fit(X[:1], sample_weight=[2.0])
    assert_allclose(same.explained_variance_, 0)


def test_exact_features_give_kernel_pca():
    X = sphere(150, 3)
    kernel = Gaussian(0.5)
    model = RandomFeaturePCA(GegenbauerFeatures(kernel, 400, basis="harmonic"), 6).fit(X)
    other = KernelPCA(6, kernel="precomputed").fit(kernel(X))
    V, wanted = model.transform(X), other.transform(kernel(X))
    close(V * np.sign(np.sum(V * wanted, axis=0)), wanted)
    close(model.explained_variance_ * 149, other.eigenvalues_)


def test_features_far_from_zero_lose_no_digits():
    X, _ = data()
    near = RandomFeaturePCA(FunctionTransformer(), 3).fit(X)
    far = RandomFeaturePCA(FunctionTransformer(), 3).fit(X + 1e5)
    close(far.explained_variance_, near.explained_variance_, "offset")
    close(far.transform(X + 1e5), near.transform(X), "offset")


def test_axes_without_variance_are_left_out_and_never_blown_up():
    X, _ = data()
    twice = FunctionTransformer(lambda X: np.hstack([X, X, np.zeros_like(X)]))
    assert RandomFeaturePCA(twice).fit(X).n_components_ == 3
    V = RandomFeaturePCA(twice, 7, whiten=True).fit_transform(X)
    close(V[:, :3].std(axis=0, ddof=1), np.ones(3))
    assert not V[:, 3:].any()
    assert RandomFeaturePCA(twice, 1 - 1e-16).fit(X).n_components_ == 3
    constant = FunctionTransformer(np.ones_like)
    for n_components in (None, 0.1, 0.9, 1 - 1e-16):
        assert RandomFeaturePCA(constant, n_components).fit(X).n_components_ == 1
    assert not RandomFeaturePCA(constant, 2, whiten=True).fit_transform(X).any()


@pytest.mark.parametrize("number", [np.float16, np.float32, np.float64, Fraction])
def test_a_share_of_the_variance_is_any_kind_of_number(number):
    X, _ = data()
    wanted = RandomFeaturePCA(RBF9, 0.75).fit(X)
    assert RandomFeaturePCA(RBF9, number(0.75)).fit(X).n_components_ == wanted.n_components_
    with pytest.raises(ValueError, match="a share of the variance between 0 and 1"):
        RandomFeaturePCA(RBF9, number(1.5)).fit(X)


def test_an_axis_for_each_of_few_rows():
    X, _ = data(5)
    assert RandomFeaturePCA(RBF9).fit(X).n_components_ == 4  # five points span four directions
    with pytest.raises(ValueError, match="n_components=6 is more than 5, the smaller of n_samples"):
        RandomFeaturePCA(RBF9, 6).fit(X)


@pytest.mark.parametrize("n_components", [0, -1, 1.0, 1.5, 0.0, "mle", True])
def test_bad_numbers_of_components(n_components):
    with pytest.raises(ValueError, match=r"n_components=.* must be a whole number >= 1, a share"):
        RandomFeaturePCA(RBF9, n_components).fit(data()[0])


def test_bad_components_to_features():
    model = RandomFeaturePCA(RBF9, 2).fit(data()[0])
    with pytest.raises(ValueError, match=r"V has shape \(3, 4\); pass what transform returns"):
        model.to_features(np.ones((3, 4)))
