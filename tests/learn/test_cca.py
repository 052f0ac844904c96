"""Canonical correlations from cross-moments: as scikit-learn's, and by the reference."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cross_decomposition import CCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer
from tolerances import LEARNERS

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureCCA, reference

RBF9 = RBFSampler(gamma=0.3, n_components=9, random_state=0)
RBF5 = RBFSampler(gamma=0.1, n_components=5, random_state=1)


def data(n=400, seed=0):
    """Two views that share something, and weights."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 2))
    X = np.column_stack([shared @ [[1, 2], [0, 1]], rng.standard_normal(n)])
    y = np.column_stack([shared[:, 0] ** 2, shared @ [1.0, -1.0] + rng.standard_normal(n)])
    return X, y, rng.uniform(0, 2, n)


def close(found, wanted, what="solved"):
    assert_allclose(found, wanted, rtol=0, atol=LEARNERS[what]() * np.abs(wanted).max())


def test_as_scikit_learn_without_features():
    X, y, _ = data()
    model = RandomFeatureCCA(FunctionTransformer(), alpha=0.0).fit(X, y)
    other = CCA(2, max_iter=10_000, tol=1e-15).fit(X, y)
    for found, wanted in zip(model.transform(X, y), other.transform(X, y), strict=True):
        each = [abs(np.corrcoef(a, b)[0, 1]) for a, b in zip(found.T, wanted.T, strict=True)]
        assert_allclose(each, 1.0, atol=1e-6)  # iterations of the other stop somewhere
    a, b = model.transform(X, y)
    wanted = [np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(2)]
    close(model.canonical_correlations_, wanted)
    close(model.score(X, y), np.mean(wanted))


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_as_the_reference(weighted, alpha):
    X, y, weight = data()
    weight = weight if weighted else None
    model = RandomFeatureCCA(RBF9, RBF5, 3, alpha=alpha).fit(X, y, weight)
    Z, U = model.features_.transform(X), model.features_y_.transform(y)
    found, a, b = reference.cca.canonical_correlations(Z, U, 3, alpha, weight)
    close(model.canonical_correlations_, found)
    close(model.x_weights_.T, a)
    close(model.y_weights_.T, b)
    assert model.canonical_correlations_[0] > model.canonical_correlations_[1]
    total = 400 if weight is None else weight.sum()
    for scores in model.transform(X, y):
        spread = np.average(np.square(scores), axis=0, weights=weight)
        close(spread * total / (total - 1), np.ones(3))


def test_a_weight_says_how_many_rows_a_row_stands_for():
    X, y, _ = data()
    weight = np.arange(400) % 4
    weighted = RandomFeatureCCA(RBF9, RBF5).fit(X, y, weight)
    repeated = RandomFeatureCCA(RBF9, RBF5).fit(*(np.repeat(V, weight, axis=0) for V in (X, y)))
    close(weighted.canonical_correlations_, repeated.canonical_correlations_)
    close(weighted.transform(X), repeated.transform(X))


def test_weights_add_up_to_more_than_1():
    X, y, weight = data()
    with pytest.raises(ValueError, match=r"the weights add up to 0\.5, but a variance needs more"):
        RandomFeatureCCA(RBF9, RBF5).fit(X, y, 0.5 * weight / weight.sum())
    with pytest.raises(ValueError, match="a variance needs two rows or more, but n_samples=1"):
        RandomFeatureCCA(RBF9, RBF5, 1).fit(X[:1], y[:1])


def test_it_finds_what_does_not_correlate_linearly():
    X, y, _ = data(1000)
    linear = RandomFeatureCCA(FunctionTransformer(), n_components=1).fit(X[:, 1:2], y[:, :1])
    features = GegenbauerFeatures(Gaussian(0.5), 64)
    model = RandomFeatureCCA(features, n_components=1, alpha=1e-2).fit(X[:, :2], y[:, :1])
    new_X, new_y, _ = data(1000, seed=1)
    assert abs(linear.canonical_correlations_[0]) < 0.2
    assert model.score(new_X[:, :2], new_y[:, :1]) > 0.95


def test_without_alpha_features_correlate_what_has_nothing_in_common():
    X, _, _ = data(60)
    y = np.random.default_rng(9).standard_normal((60, 2))
    rich = RBFSampler(gamma=1.0, n_components=50, random_state=0)
    free = RandomFeatureCCA(rich, n_components=1, alpha=1e-9).fit(X, y)
    held = RandomFeatureCCA(rich, n_components=1, alpha=10.0).fit(X, y)
    assert free.canonical_correlations_[0] > 0.999
    assert held.canonical_correlations_[0] < 0.95


def test_dependent_features_without_alpha():
    X, y, _ = data()
    twice = FunctionTransformer(lambda X: np.hstack([X, X]))
    model = RandomFeatureCCA(twice, FunctionTransformer(), alpha=0).fit(X, y)
    plain = RandomFeatureCCA(FunctionTransformer(), alpha=0).fit(X, y)
    close(model.canonical_correlations_, plain.canonical_correlations_)
    with pytest.raises(ValueError, match=r"n_components=3 is too large: .* at most 2 dir"):
        RandomFeatureCCA(twice, FunctionTransformer(), 3, alpha=0).fit(X, y)


def test_without_alpha_units_do_not_matter():
    X, y, _ = data()
    plain = RandomFeatureCCA(FunctionTransformer(), alpha=0).fit(X, y)
    small = X * np.geomspace(1e-12, 1e6, X.shape[1])
    other = RandomFeatureCCA(FunctionTransformer(), alpha=0).fit(small, y)
    close(other.canonical_correlations_, plain.canonical_correlations_)


def test_a_constant_column_is_no_direction():
    X, y, _ = data()
    flat = np.column_stack([X, np.full(len(X), 0.1)])  # .1 is rounded: its sums vary by rounding
    plain = RandomFeatureCCA(FunctionTransformer(), alpha=0).fit(X, y)
    other = RandomFeatureCCA(FunctionTransformer(), alpha=0).fit(flat, y)
    close(other.canonical_correlations_, plain.canonical_correlations_)
    assert not other.x_weights_[-1].any()


def test_a_view_of_one_column_may_be_flat():
    X, y, _ = data()
    flat, column = (RandomFeatureCCA(RBF9, RBF5).fit(X, v) for v in (y[:, 0], y[:, :1]))
    np.testing.assert_array_equal(flat.transform(X, y[:, 0])[1], column.transform(X, y[:, :1])[1])


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"n_components": 0}, ValueError, "n_components=0 is too small; use an integer >= 1"),
    ({"n_components": 1.5}, TypeError, "n_components=1.5 is not an integer"),
    ({"alpha": -1.0}, ValueError, "alpha=-1.0 is not usable; use a finite number >= 0"),
    ({"alpha": "big"}, TypeError, "alpha='big' is not a number"),
    ({"features_y": RBFSampler}, TypeError, "features_y=.* is not a transformer"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    X, y, _ = data()
    with pytest.raises(error, match=message):
        RandomFeatureCCA(RBF9, **{"features_y": RBF5} | parameters).fit(X, y)


def test_bad_second_views():
    X, y, _ = data()
    model = RandomFeatureCCA(RBF9, RBF5).fit(X, y)
    broken = y.copy()
    broken[300, 1] = np.nan
    for call in (model.fit, model.partial_fit, model.transform, model.score):
        model = RandomFeatureCCA(RBF9, RBF5).fit(X, y)
        with pytest.raises(ValueError, match=r"Input y contains NaN.*row 300, column 1"):
            getattr(model, call.__name__)(X, broken)
    model = RandomFeatureCCA(RBF9, RBF5).fit(X, y)
    with pytest.raises(ValueError, match="y has 1 column, but RandomFeatureCCA is expecting 2"):
        model.transform(X, y[:, :1])
    with pytest.raises(ValueError, match="but y has"):
        model.partial_fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)
