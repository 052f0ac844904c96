"""Ridge regression by conjugate gradients on features: as by Cholesky, with no Gram matrix."""

import numpy as np
import pytest
from batched import Cut, StoppedError
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import RIDGE

from gzkcore import (
    Checkpoint,
    Gaussian,
    GramAccumulator,
    RandomFeatureRidge,
    RandomFeatureRidgeClassifier,
    RandomFourierFeatures,
    load,
    reference,
)
from gzkcore._util.threads import limit_threads
from gzkcore.learn import ridge
from gzkcore.solve import wide
from gzkcore.solve.wide import CrossAccumulator, SketchPreconditioner, gram_product, nystrom_sketch

FEATURES = RandomFourierFeatures(Gaussian(0.2), 200, random_state=0)


def data(n=600, n_targets=1, seed=0, dtype=np.float64):
    """Rows, one or several targets far from 0, weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(dtype)
    y = np.sin(X @ rng.standard_normal((3, n_targets))) + 5 + np.arange(n_targets)
    weight = rng.uniform(0, 2, n)
    weight[::9] = 0
    return X, y if n_targets > 1 else y[:, 0], weight


def by_steps(alpha=0.1, **parameters):
    return RandomFeatureRidge(FEATURES, alpha, solver="cg", **{"tol": 1e-10} | parameters)


# ---- as by Cholesky


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@pytest.mark.parametrize("alpha", [1e-2, 10.0, [0.1, 1.0, 10.0]])
def test_as_cholesky(alpha, weighted, fit_intercept):
    X, y, weight = data(n_targets=3)
    weight = weight if weighted else None
    model = by_steps(alpha, fit_intercept=fit_intercept).fit(X, y, weight)
    other = clone(model).set_params(solver="cholesky").fit(X, y, weight)
    assert isinstance(model.moments_, CrossAccumulator)
    assert isinstance(other.moments_, GramAccumulator)
    assert_allclose(model.predict(X), other.predict(X), rtol=0, atol=RIDGE["solved"]())
    assert model.coef_.shape == other.coef_.shape
    assert model.intercept_.shape == other.intercept_.shape
    assert model.n_iter_.shape == model.residual_.shape == (3,)
    assert (model.residual_ <= 1e-10).all()
    assert other.n_iter_ == 1
    with pytest.raises(AttributeError, match="residual_"):
        _ = other.residual_


def test_one_target_is_told_of_by_numbers():
    X, y, _ = data()
    model = by_steps().fit(X, y)
    assert np.ndim(model.n_iter_) == np.ndim(model.residual_) == 0
    assert model.coef_.shape == (200,)


def test_single_precision_solves_its_own_system():
    X, y, weight = data(dtype=np.float32)
    model = by_steps(0.01).fit(X, y, weight)
    Z = model.features_.transform(X).astype(np.float64)
    coef, intercept = reference.ridge.ridge(Z, y, 0.01, weights=weight)
    assert model.residual_ <= 1e-10
    wanted = Z @ coef + intercept
    found = Z @ model.coef_ + model.intercept_
    # The right-hand side is summed in single precision, as all of Cholesky's moments are.
    assert_allclose(found, wanted, rtol=0, atol=RIDGE["single"](np.float32))


def test_the_default_tolerance_is_enough_for_predictions():
    X, y, _ = data(2000)
    y = y + 0.1 * np.random.default_rng(1).standard_normal(2000)
    whole = RandomFeatureRidge(FEATURES, 1e-2, solver="cholesky").fit(X, y)
    model = RandomFeatureRidge(FEATURES, 1e-2, solver="cg").fit(X, y)
    apart = model.predict(X) - whole.predict(X)
    assert np.sqrt(np.mean(np.square(apart))) < 1e-3 * y.std()


def test_classes_as_by_cholesky():
    X, y, weight = data()
    labels = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    model = RandomFeatureRidgeClassifier(FEATURES, 0.1, solver="cg", tol=1e-10, random_state=0)
    other = clone(model).set_params(solver="cholesky").fit(X, labels, weight)
    model.fit(X, labels, weight)
    found, wanted = model.decision_function(X), other.decision_function(X)
    assert_allclose(found, wanted, rtol=0, atol=RIDGE["solved"]())
    assert_array_equal(model.predict(X), other.predict(X))


IN_BATCHES = dict.fromkeys(
    (
        "check_fit_score_takes_y",
        "check_n_features_in_after_fitting",
        "check_estimators_partial_fit_n_features",
    ),
    "partial_fit needs the Gram matrix",
)


@parametrize_with_checks(
    [RandomFeatureRidge(FunctionTransformer(), solver="cg", tol=1e-10)],
    expected_failed_checks=lambda _: IN_BATCHES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- the choice, and what it rules out


def test_wide_features_are_solved_by_steps(monkeypatch):
    X, y, _ = data()
    narrow = RandomFeatureRidge(FEATURES).fit(X, y)
    monkeypatch.setattr(ridge, "WIDE", 199)
    for given in ((X, y), (Cut(X, y, rows=100),)):
        model = RandomFeatureRidge(FEATURES).fit(*given)
        assert isinstance(model.moments_, CrossAccumulator)
        assert_allclose(model.predict(X), narrow.predict(X), atol=1e-2)
    for given in ((X, y), (iter([(X, y)]),)):
        solver = "cholesky" if given[0] is X else "auto"
        model = RandomFeatureRidge(FEATURES, solver=solver).fit(*given)
        assert isinstance(model.moments_, GramAccumulator)
    model = RandomFeatureRidge(FEATURES).partial_fit(X, y)
    assert_allclose(model.predict(X), narrow.predict(X), atol=RIDGE["solved"]())


def test_what_needs_the_gram_matrix_says_so():
    X, y, _ = data()
    model = by_steps().fit(X, y)
    for call in (
        lambda: model.predict(X, return_std=True),
        lambda: model.noise_variance_,
        lambda: model.degrees_of_freedom_,
        lambda: model.partial_fit(X, y),
        lambda: model.merge(by_steps().fit(X, y)),
        lambda: RandomFeatureRidge(FEATURES, solver="cholesky").fit(X, y).merge(model),
    ):
        with pytest.raises(ValueError, match='fit with solver="cholesky"'):
            call()
    for call in (lambda: by_steps().fit(iter([(X, y)])), lambda: by_steps().partial_fit(X, y)):
        with pytest.raises(ValueError, match='use solver="cholesky"'):
            call()


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"solver": "lu"}, ValueError, "solver='lu' is unknown"),
    ({"tol": 0.0}, ValueError, "tol=0.0 is not usable"),
    ({"max_iter": 0}, ValueError, "max_iter=0 is too small"),
    ({"max_iter": 1.5}, TypeError, "max_iter=1.5 is not an integer"),
    ({"alpha": -1.0}, ValueError, "alpha=-1.0 must be finite and >= 0"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    X, y, _ = data()
    with pytest.raises(error, match=message):
        by_steps().set_params(**parameters).fit(X, y)


def test_all_weights_zero():
    X, y, weight = data()
    with pytest.raises(ValueError, match="all sample weights are zero"):
        RandomFeatureRidge(FunctionTransformer(), solver="cg").fit(X, y, 0 * weight)


def test_steps_that_do_not_suffice_are_told_of():
    X, y, _ = data()
    with pytest.warns(ConvergenceWarning, match=r"alpha=1e-06.*larger max_iter"):
        model = by_steps(1e-6, max_iter=1).fit(X, y)
    assert model.residual_ > 1e-10


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_rows_than_columns(n):
    X, y, _ = data(n)
    model = by_steps(1e-3).fit(X, y)
    other = clone(model).set_params(solver="cholesky").fit(X, y)
    assert_allclose(model.predict(X), other.predict(X), rtol=0, atol=RIDGE["solved"]())


def test_constant_targets_and_rows():
    X, y, _ = data()
    model = by_steps().fit(X, np.full_like(y, 3.0))
    assert_allclose(model.predict(X), 3.0, atol=RIDGE["solved"]())
    model = by_steps().fit(np.ones_like(X), y)
    assert_allclose(model.predict(X[:1] * 0 + 1), y.mean(), atol=RIDGE["solved"]())


# ---- the same whatever the rows come in


def test_sources_are_as_arrays(tmp_path):
    X, y, weight = data(2000)
    wanted = by_steps().fit(X, y, weight).predict(X)
    np.save(tmp_path / "X.npy", X)
    for given in (
        (np.load(tmp_path / "X.npy", mmap_mode="r"), y, weight),
        (Cut(X, y, weight, rows=300),),
        (sparse.csr_array(X), y, weight),
    ):
        assert_allclose(by_steps().fit(*given).predict(X), wanted, atol=RIDGE["everywhere"]())


def test_the_same_bits_for_any_number_of_threads():
    X, y, weight = data(3000)
    models = []
    for number in (1, 2, 5):
        with limit_threads(number):
            models.append(by_steps().fit(X, y, weight))
    for model in models[1:]:
        assert_array_equal(model.coef_, models[0].coef_)
        assert_array_equal(model.moments_.sums, models[0].moments_.sums)
        assert model.n_iter_ == models[0].n_iter_


def test_chunks_of_dask():
    da = pytest.importorskip("dask.array", reason="needs dask: pip install 'gzkcore[dask]'")
    X, y, _ = data(2000)
    wanted = by_steps().fit(X, y).predict(X)
    model = by_steps().fit(da.from_array(X, chunks=(300, 3)), da.from_array(y, chunks=300))
    assert_allclose(model.predict(X), wanted, atol=RIDGE["everywhere"]())


def test_a_saved_model(tmp_path):
    X, y, _ = data()
    model = by_steps().fit(X, y)
    model.save(tmp_path / "model.gzk")
    other = load(tmp_path / "model.gzk")
    assert_array_equal(other.predict(X), model.predict(X))
    assert other.n_iter_ == model.n_iter_
    assert other.residual_ == model.residual_
    with pytest.raises(ValueError, match='fit with solver="cholesky"'):
        other.partial_fit(X, y)


# ---- checkpoints


class Batches:
    """Ten batches; the pass number `after` ends early, in batch number `stop`."""

    def __init__(self, after=None, stop=5):
        self.after, self.stop, self.passes = after, stop, 0

    def __iter__(self):
        X, y, _ = data(1000)
        for number in range(10):
            if (self.passes, number) == (self.after, self.stop):
                raise StoppedError
            rows = slice(100 * number, 100 * number + 100)
            yield X[rows], y[rows]
        self.passes += 1


@pytest.mark.slow
def test_a_stopped_fit_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(wide, "SKETCH", 30)
    path, every_pass = tmp_path / "run.gzk", Batches()
    model = by_steps(1.0, tol=1e-8)
    whole = clone(model).fit(every_pass)
    assert whole.n_iter_ > 5
    for after in (1, 3, every_pass.passes - 2):
        with pytest.raises(StoppedError):
            clone(model).fit(Batches(after), checkpoint=Checkpoint(path, 1e-9))
        assert path.exists()
        source = Batches()
        resumed = clone(model).fit(source, checkpoint=Checkpoint(path, 1e-9))
        assert_array_equal(resumed.coef_, whole.coef_)
        assert resumed.n_iter_ == whole.n_iter_
        assert list(tmp_path.iterdir()) == []
    assert source.passes < every_pass.passes - 3


def test_a_fit_that_ran_out_of_steps_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(wide, "SKETCH", 30)
    path, model = tmp_path / "run.gzk", by_steps(1.0, tol=1e-8)
    few = clone(model).set_params(max_iter=3)
    with pytest.warns(ConvergenceWarning):
        few.fit(Batches(), checkpoint=path)
    assert path.exists()
    more = clone(model).fit(Batches(), checkpoint=path)
    assert list(tmp_path.iterdir()) == []
    assert more.n_iter_ > few.n_iter_ == 3
    assert more.residual_ <= model.tol < few.residual_


# ---- parts


def test_accumulator_is_the_edge_of_the_gram_accumulator():
    X, y, weight = data(n_targets=2)
    features = FEATURES.fit(X)
    whole = GramAccumulator(features).update(X, y, weight)
    found = CrossAccumulator(features).update(X[:70], y[:70], weight[:70])
    other = CrossAccumulator(features).update(X[70:], y[70:], weight[70:])
    before = found.sums.copy()
    found.merge(other).merge(CrossAccumulator(features))
    p = 200
    assert_allclose(found.sums, whole.sums[0, p:], atol=RIDGE["summed"]() * 5e3)
    assert not np.array_equal(found.sums, before)
    assert found.n_rows == 600
    with pytest.raises(ValueError, match="start a new accumulator"):
        found.update(X, y[:, 0])
    with pytest.raises(ValueError, match="squares overflow"):
        found.update(X, 1e200 * y)


def test_a_product_is_that_of_the_reference():
    rng = np.random.default_rng(0)
    Z, V = rng.standard_normal((30, 7)), rng.standard_normal((7, 2))
    wanted = reference.ridge.gram_product(Z, V)
    assert_allclose(gram_product(Z, V), wanted, rtol=RIDGE["summed"]())


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_sketch_as_the_reference(rank):
    rng = np.random.default_rng(0)
    root, test = rng.standard_normal((20, 8)), rng.standard_normal((20, rank))
    G = root @ root.T
    values, vectors = nystrom_sketch(G, test)
    wanted, axes = reference.ridge.nystrom_sketch(G, test)
    assert_allclose(values, wanted, rtol=RIDGE["solved"]())
    seen, wanted = (vectors * values) @ vectors.T, (axes * wanted) @ axes.T
    assert_allclose(seen, wanted, atol=RIDGE["solved"]() * values[0])
    assert np.linalg.eigvalsh(G - seen).min() > -RIDGE["solved"]() * values[0]


def test_sketch_of_nothing():
    values, vectors = nystrom_sketch(np.zeros((5, 5)), np.eye(5)[:, :2])
    assert values.shape == (0,)
    assert vectors.shape == (5, 0)
    R = np.ones((5, 1))
    found = SketchPreconditioner(values, vectors, np.array([0.5])).solve(R, np.array([0]))
    assert_array_equal(found, R)


def test_preconditioner_is_an_inverse():
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.standard_normal((9, 3)))[0]
    values, shifts = np.array([5.0, 2.0, 1.0]), np.array([0.1, 3.0])
    preconditioner = SketchPreconditioner(values, vectors, shifts)
    R, columns = rng.standard_normal((9, 3)), np.array([1, 0, 1])
    found = preconditioner.solve(R, columns)
    for j, alpha in enumerate(shifts[columns]):
        P = (vectors * (values - values[-1])) @ vectors.T + (values[-1] + alpha) * np.eye(9)
        assert_allclose(found[:, j], (values[-1] + alpha) * np.linalg.solve(P, R[:, j]))


@pytest.mark.slow
def test_a_sketch_saves_steps(monkeypatch):
    X, y, _ = data(2000)
    steps = []
    for rank in (1, 20, 100):
        monkeypatch.setattr(wide, "SKETCH", rank)
        steps.append(by_steps(1e-2, tol=1e-4).fit(X, y).n_iter_)
    assert steps[0] > 1.5 * steps[1] > 3 * steps[2]
