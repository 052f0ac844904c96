"""Sources of rows: features and learners see the same rows wherever they come from."""

import numpy as np
import pandas as pd
import pytest
from batched import Cut, data, in_files
from naming import named
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from tolerances import IDENTITY, RIDGE

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    KernelFeatures,
    Laplacian,
    ProductFeatures,
    RandomFeatureRidge,
    RandomFeatureRidgeClassifier,
    RandomFeatureRidgeCV,
    RandomFourierFeatures,
)
from gzkcore.features import fit_rows
from gzkcore.rows import survey as surveys
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import can_reread, is_source

# ---- what a source is


@pytest.mark.parametrize(("X", "wanted"), [
    (np.ones((2, 2)), False),
    ([[1, 2], [3, 4]], False),
    ([1, 2], False),
    (((1, 2), (3, 4)), False),
    ([], False),
    (sparse.csr_array(np.eye(2)), False),
    (sparse.dok_array(np.eye(2)), False),
    (pd.DataFrame({"a": [1]}), False),
    (3, False),
    ([np.ones((2, 2)), np.ones((1, 2))], True),
    ([(np.ones((2, 2)), [1, 2])], True),
    (iter([np.ones((2, 2))]), True),
    (Cut(np.ones((2, 2)), rows=1), True),
], ids=named)  # fmt: skip
def test_what_a_source_is(X, wanted):
    assert is_source(X) == wanted


@pytest.mark.parametrize("X", [None, {"a": 1}, {1, 2}], ids=named)
def test_what_can_be_neither_rows_nor_a_source(X):
    with pytest.raises(TypeError, match=r"^X(=None| is a (dict|set), not rows and columns); pass"):
        is_source(X)


def test_what_can_be_read_again():
    assert can_reread(Cut(np.ones((2, 2)), rows=1))
    assert can_reread([np.ones((2, 2))])
    assert can_reread(np.ones((2, 2)))
    assert not can_reread(iter([np.ones((2, 2))]))
    assert not can_reread(x for x in [np.ones((2, 2))])


def test_a_file_name_is_not_data():
    with pytest.raises(TypeError, match=r"'rows.npy' is the name of a file.*open_batches"):
        RandomFeatureRidge().fit("rows.npy")


def test_batches_have_three_parts():
    X, y = data(10)
    ((rows, targets, weight),) = as_source(X, y)
    assert rows is X
    assert targets is y
    assert weight is None
    assert [b[1] is None for b in as_source([X, X])] == [True, True]
    assert_array_equal(next(iter(as_source([(X, y, y)])))[2], y)
    with pytest.raises(ValueError, match="a batch has 4 parts"):
        list(as_source(iter([(X, y, y, y)])))
    with pytest.raises(ValueError, match="y was passed beside a source"):
        as_source(iter([X]), y)
    with pytest.raises(ValueError, match="sample_weight was passed beside a source"):
        as_source(iter([X]), None, y)


# ---- features

MAPS = [
    GegenbauerFeatures(n_components=60, basis="harmonic"),
    GegenbauerFeatures(Gaussian([0.1, 0.3, 0.2]), 60, basis="harmonic"),
    GegenbauerFeatures(Gaussian(), 60, basis="random", center=None, random_state=0),
    GegenbauerFeatures(n_components=60, basis="harmonic", radius=9.0),
    RandomFourierFeatures(Laplacian(), 60, random_state=0),
    ProductFeatures([([0, 1], Gaussian()), (2, Gaussian())], 60),
    RBFSampler(gamma="scale", n_components=60, random_state=0),
]


def fitted_to(given, features):
    source = as_source(given)
    return fit_rows.fit_features(features, source, surveys.survey_of(source))


@pytest.mark.parametrize("features", MAPS, ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_features_of_a_source_are_those_of_its_rows(features, kind, monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", 500)
    X = kind(data()[0])
    whole = clone(features).fit(X).transform(X)
    for rows in (70, 1000):
        fitted = fitted_to(Cut(X, rows=rows), clone(features))
        assert vars(fitted).keys() >= vars(features).keys()
        if not isinstance(features, RBFSampler):  # whose gamma must be a number then
            assert str(fitted.get_params()) == str(features.get_params())
        atol = IDENTITY["exact basis"]()
        assert_allclose(fitted.transform(X), whole, rtol=0, atol=atol)


def test_parameters_of_other_transformers_stay_theirs(monkeypatch):
    """Only gamma="scale" is worked out from all rows, in a copy."""
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", 500)
    X, _ = data()
    given = Nystroem(kernel="rbf", n_components=5, random_state=0)
    fitted = fitted_to(Cut(X, rows=700), given)
    assert fitted is given
    assert given.kernel == "rbf"
    Z = fitted.transform(X[:9])
    landmarks = rbf_kernel(X[:9], fitted.components_)
    assert_allclose(Z, landmarks @ fitted.normalization_.T, rtol=IDENTITY["closed form"]())
    sampler = RBFSampler(gamma="scale", n_components=5, random_state=0)
    fitted = fitted_to(Cut(X, rows=700), sampler)
    assert (sampler.gamma, hasattr(sampler, "random_weights_")) == ("scale", False)
    assert_allclose(fitted.gamma, 1 / (3 * X.var()), rtol=IDENTITY["closed form"]())


@pytest.mark.parametrize("sample", [50, 10_000], ids=["sample", "all"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_weights_of_a_source_are_those_of_its_rows(sample, kind, monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", sample)
    X = kind(data(300)[0])
    weight = np.random.default_rng(0).integers(0, 4, 300).astype(float)
    weight[:60] = 0  # of the whole first batch
    given = [(X[i : i + 60], None, weight[i : i + 60]) for i in range(0, 300, 60)]
    for features in MAPS[:-1]:
        wanted = clone(features).fit(X, sample_weight=weight).transform(X)
        found = fitted_to(given, clone(features)).transform(X)
        assert_allclose(found, wanted, rtol=0, atol=IDENTITY["exact basis"]())
    with pytest.raises(ValueError, match="sample_weight is zero for every row; give some"):
        fitted_to([(X, None, 0 * weight)], MAPS[0])


def test_a_choice_by_trial_has_all_norms_too(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", 500)
    X, _ = data()
    fitted = fitted_to(Cut(X, rows=700), KernelFeatures(n_components=60, random_state=0))
    away = np.linalg.norm(X - fitted.chosen_.center_, axis=1)
    assert_allclose(fitted.chosen_.radius_, away.max(), rtol=IDENTITY["closed form"]())


# ---- the same answer everywhere

N, GAMMA, RADIUS = 4000, 0.2, 7.0
CUTS = [101, 999, 4096]


def model(learner=RandomFeatureRidge, **parameters):
    features = GegenbauerFeatures(Gaussian(GAMMA), 80, basis="harmonic", radius=RADIUS)
    return learner(features, **parameters)


def everywhere(make, X, y, folder):
    """Yield how, and a model that has seen the rows that way."""
    for rows in CUTS:
        yield f"source, {rows} rows", make().fit(Cut(X, y, rows=rows))
    for rows in CUTS[:2]:
        batched = make()
        for start in range(0, N, rows):
            batched.partial_fit(X[start : start + rows], y[start : start + rows])
        yield f"partial_fit, {rows} rows", batched
    yield "iterator", make().fit(iter(Cut(X, y, rows=700)))
    yield "list of batches", make().fit([(X[:5], y[:5]), (X[5:], y[5:])])
    np.save(folder / "X.npy", X)
    yield "memmap", make().fit(np.load(folder / "X.npy", mmap_mode="r"), y)
    yield "CSR", make().fit(sparse.csr_array(X), y)
    yield "source of CSR", make().fit(Cut(sparse.csr_matrix(X), y, rows=900))
    yield "checkpoint", make().fit(X, y, checkpoint=folder / "run.gzk")
    for name, source in in_files(X, y, folder):
        yield name, make().fit(source)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("learner", "parameters"), [
    (RandomFeatureRidge, {"alpha": 1e-2}),
    pytest.param(RandomFeatureRidge, {"alpha": 100.0}, marks=pytest.mark.slow),
    (RandomFeatureRidgeCV, {"alphas": [1e-2, 1.0], "cv": 3}),
], ids=["small alpha", "large alpha", "cv"])  # fmt: skip
def test_the_same_answer_everywhere(learner, parameters, dtype, tmp_path):
    X, y = data(N, dtype)
    one = model(learner, **parameters).fit(X, y)
    wanted = one.predict(X[:500])
    # Coefficients along weak directions feel each rounding of Z^T Z by 1 / alpha of it.
    mean = np.trace(one.moments_.finalize().gram) / 80
    alpha = parameters.get("alpha", 1e-2)
    told = alpha >= (1e-6 if dtype == np.float64 else 1.0) * mean
    close = RIDGE["everywhere" if dtype == np.float64 else "everywhere, single"](dtype)
    ways = everywhere(lambda: model(learner, **parameters), X, y, tmp_path)
    for how, other in ways:
        found = other.predict(X[:500])
        assert np.linalg.norm(found - wanted) < close * np.linalg.norm(wanted), how
        if told:
            size = np.abs(one.coef_).max()
            assert_allclose(other.coef_, one.coef_, rtol=0, atol=close * size, err_msg=how)
        assert other.moments_.n_rows == N, how


def test_nothing_is_read_twice_where_nothing_is_asked_of_the_data():
    X, y = data(1000)
    frozen = FrozenEstimator(RandomFourierFeatures(n_components=30, random_state=0).fit(X))
    for learner in (model(alpha=0.1), RandomFeatureRidge(frozen)):
        source = Cut(X, y, rows=100)
        learner.fit(source)
        assert source.passes == 1


def test_rows_are_surveyed_once_for_a_grid(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", 500)
    X, y = data(1000)
    features = RandomFourierFeatures(n_components=30, random_state=0)
    grid = {"gamma": [0.1, "scale"]}
    source = Cut(X, y, rows=100)
    found = RandomFeatureRidgeCV(features, kernel_grid=grid).fit(source)
    assert source.passes == 3  # the survey, the sums of each kernel
    wanted = RandomFeatureRidgeCV(features, kernel_grid=grid).fit(X, y)
    close = RIDGE["everywhere"]()
    for name in ("mean_test_score", "param_alpha"):
        assert_allclose(found.cv_results_[name], wanted.cv_results_[name], rtol=close)


def test_one_basis_serves_a_grid_on_a_sphere(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", 500)
    X, y = data(1000)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    ridge = RandomFeatureRidgeCV(
        GegenbauerFeatures(n_components=49, basis="harmonic", center=None),
        alphas=[1e-3, 1.0],
        kernel_grid={"gamma": [0.5, "scale"]},
    )
    wanted = clone(ridge).fit(X, y)
    found = ridge.fit(Cut(X, y, rows=100))
    assert len(found.candidates_) == 2
    close = RIDGE["everywhere"]()
    assert_allclose(
        found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"], rtol=close
    )


def test_grids_and_leaving_out_rows_read_a_source_again():
    X, y = data(1500)
    features = RandomFourierFeatures(Gaussian(0.1), 40, random_state=0)
    for parameters in ({"kernel_grid": {"gamma": [0.05, 0.2]}}, {"cv": "loo"}):
        one = RandomFeatureRidgeCV(features, **parameters).fit(X, y)
        other = RandomFeatureRidgeCV(features, **parameters).fit(Cut(X, y, rows=400))
        assert other.best_params_ == one.best_params_
        assert_allclose(other.best_score_, one.best_score_, rtol=RIDGE["everywhere"]())


def test_weights_come_with_the_batches():
    X, y = data(900)
    weight = np.random.default_rng(3).uniform(0, 2, 900)
    one = model(alpha=0.1).fit(X, y, weight)
    other = model(alpha=0.1).fit(Cut(X, y, weight, rows=250))
    assert_allclose(other.coef_, one.coef_, rtol=RIDGE["everywhere"](), atol=1e-12)
    assert_allclose(
        other.score(Cut(X, y, weight, rows=77)), one.score(X, y, weight), rtol=RIDGE["everywhere"]()
    )


def test_predictions_come_batch_by_batch():
    X, y = data(900)
    Y = np.column_stack([y, -2 * y])
    one = model(alpha=0.1).fit(X, Y)
    pieces = one.predict(Cut(X, Y, rows=400))
    assert iter(pieces) is pieces
    found = list(pieces)
    assert [len(piece) for piece in found] == [400, 400, 100]
    assert_allclose(np.concatenate(found), one.predict(X), rtol=RIDGE["everywhere"]())
    both = list(one.predict([X[:300], X[300:]], return_std=True))
    wanted = one.predict(X, return_std=True)
    for k in range(2):
        joined = np.concatenate([piece[k] for piece in both])
        assert_allclose(joined, wanted[k], rtol=RIDGE["everywhere"]())
    assert_allclose(one.score(Cut(X, Y, rows=77)), one.score(X, Y), rtol=RIDGE["everywhere"]())


def test_an_iterator_is_one_pass_and_says_what_it_freezes():
    X, y = data(900)
    with pytest.warns(UserWarning, match="partial_fit without a radius"):
        RandomFeatureRidge(GegenbauerFeatures(n_components=30, basis="harmonic")).fit(
            iter(Cut(X, y, rows=400))
        )
    with pytest.raises(ValueError, match="reads the rows twice"):
        model(RandomFeatureRidgeCV, cv="loo").fit(iter(Cut(X, y, rows=400)))


@pytest.mark.parametrize(("batch", "message"), [
    ((np.full((5, 3), np.nan), np.ones(5)), "batch 1, counted from 0: Input X contains NaN"),
    ((np.ones((5, 3)), np.full(5, np.inf)), "batch 1, counted from 0: Input y contains inf"),
    ((np.ones((5, 2)), np.ones(5)), "2 features"),
    ((np.ones((5, 3)), np.ones((5, 2))), r"y has shape \(5, 2\)"),
    ((np.ones((5, 3)), np.ones(4)), "batch 1.*X has 5 rows, but y has 4"),
    ((np.ones((5, 3)), np.ones(5), -np.ones(5)), r"sample_weight\[0\] = -1"),
    ((np.ones((5, 3)),), "y"),
])  # fmt: skip
def test_a_bad_batch_is_named(batch, message):
    X, y = data(100)
    nothing = np.empty((0, 3)), np.empty(0)
    for source in ([(X, y), batch], iter([(X, y), batch]), [(X, y), batch, nothing]):
        failed = model()
        with pytest.raises(ValueError, match=message):
            failed.fit(source)
        assert not hasattr(failed, "moments_")


def test_batches_without_rows_are_left_out():
    X, y = data(900)
    nothing = X[:0], y[:0]
    pieces = [nothing, (X[:500], y[:500]), nothing, (X[500:], y[500:]), nothing]
    for make in (model, lambda: RandomFeatureRidge(RandomFourierFeatures(n_components=30))):
        one = make().set_params(random_state=0).fit([pieces[1], pieces[3]])
        for source in (pieces, iter(pieces)):
            other = make().set_params(random_state=0)
            if source is not pieces:
                other.set_params(features=FrozenEstimator(one.features_))
            other.fit(source)
            assert other.moments_.n_rows == 900
            assert_allclose(other.coef_, one.coef_, rtol=RIDGE["everywhere"]())
    assert [len(part) for part in one.predict(piece[0] for piece in pieces)] == [0, 500, 0, 400, 0]
    both = list(one.predict([piece[0] for piece in pieces], return_std=True))
    assert [len(std) for _, std in both] == [0, 500, 0, 400, 0]
    assert_allclose(one.score(pieces), one.score([pieces[1], pieces[3]]), rtol=1e-12)
    loo = model(RandomFeatureRidgeCV, cv="loo")
    assert loo.fit(pieces).best_score_ == loo.fit([pieces[1], pieces[3]]).best_score_
    with pytest.raises(ValueError, match=r"batch 4, counted from 0: .* 2 features"):
        model().fit([*pieces[:4], (X[:, :2], y)])


def test_a_source_without_batches():
    for source in (iter([]), Cut(np.ones((0, 2)), rows=3)):
        with pytest.raises(ValueError, match="yields no batches"):
            model().fit(source)
    fitted = model().fit(*data(50))
    with pytest.raises(ValueError, match="yields no batches"):
        fitted.score(iter([]))
    with pytest.raises(ValueError, match="score needs the targets"):
        fitted.score([data(50)[0]])


class Exhausted:
    """A mistake that is easily made: an object with one iterator for all passes."""

    def __init__(self, given, anew):
        self.given, self.anew = iter(given), anew

    def __iter__(self):
        return (batch for batch in self.given) if self.anew else self.given


def test_what_can_be_read_only_once_is_noticed():
    X, y = data(900)
    pieces = [(X[:500], y[:500]), (X[500:], y[500:])]
    # Nothing is asked of the rows: one pass does.
    for anew in (False, True):
        found = model(alpha=0.1).fit(Exhausted(pieces, anew))
        assert found.moments_.n_rows == 900
    assert not can_reread(Exhausted(pieces, anew=False))
    surveyed = RandomFeatureRidge(RandomFourierFeatures(n_components=30))
    with pytest.raises(ValueError, match="yielded 400 rows in the first pass and 500 in a later"):
        surveyed.fit(Exhausted(pieces, anew=True))
    assert not hasattr(surveyed, "moments_")
    spent = iter(pieces)
    model().fit(spent)
    with pytest.raises(ValueError, match="yields no batches"):
        model().fit(spent)


@pytest.mark.parametrize("change", [
    lambda X: X.astype(">f8"),
    sparse.csr_matrix,
    np.asfortranarray,
    np.ndarray.tolist,
    pd.DataFrame,
], ids=["big-endian", "csr", "fortran", "list", "frame"])  # fmt: skip
def test_batches_may_be_of_different_kinds(change):
    X, y = data(900)
    features = GegenbauerFeatures(n_components=60, basis="harmonic")
    one = RandomFeatureRidge(features, alpha=1.0).fit(X, y)
    source = [(X[:300], y[:300]), (change(X[300:600]), y[300:600]), (X[600:], y[600:])]
    other = RandomFeatureRidge(features, alpha=1.0).fit(source)
    assert_allclose(other.predict(X), one.predict(X), rtol=RIDGE["everywhere"]())


def test_batches_may_be_of_different_types():
    X, y = data(900, np.float32)
    for order in (np.float32, np.float64), (np.float64, np.float32):
        source = [(X[:450].astype(order[0]), y[:450]), (X[450:].astype(order[1]), y[450:])]
        found = model(alpha=1.0).fit(source)
        assert found.moments_.dtype == np.float64
        wanted, close = (
            model(alpha=1.0).fit(X, y).predict(X),
            RIDGE["everywhere, single"](np.float32),
        )
        assert np.linalg.norm(found.predict(X) - wanted) < close * np.linalg.norm(wanted)


@pytest.mark.parametrize("indices", [np.int32, np.int64])
def test_rows_with_entries_given_twice(indices):
    """Malformed, but legal: entries of a sparse matrix that add up."""
    X, y = data(400)
    twice = sparse.csr_matrix(
        (
            np.stack([0.25 * X, 0.75 * X], axis=2).ravel(),
            np.tile(np.repeat(np.arange(3), 2), 400),
            np.arange(401) * 6,
        ),
        shape=X.shape,
    )
    twice.indices, twice.indptr = twice.indices.astype(indices), twice.indptr.astype(indices)
    features = GegenbauerFeatures(n_components=60, basis="harmonic")
    one = RandomFeatureRidge(features, alpha=1.0).fit(X, y)
    for X_given, y_given in (([(twice[:150], y[:150]), (twice[150:], y[150:])], None), (twice, y)):
        other = RandomFeatureRidge(features, alpha=1.0).fit(X_given, y_given)
        assert_allclose(other.predict(X), one.predict(X), rtol=RIDGE["everywhere"]())


@pytest.mark.parametrize("shape", [(1, 3), (40, 1), (1, 1)], ids=str)
def test_one_row_and_one_column(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    y = X[:, 0] + 1
    for features in (
        GegenbauerFeatures(n_components=9),
        RandomFourierFeatures(n_components=9, random_state=0),
    ):
        one = RandomFeatureRidge(features, alpha=1.0).fit(X, y)
        other = RandomFeatureRidge(features, alpha=1.0).fit(
            [(row[None], y[:1] * 0 + v) for row, v in zip(X, y, strict=True)]
        )
        assert_allclose(other.predict(X), one.predict(X), rtol=RIDGE["everywhere"]())


@pytest.mark.parametrize(
    ("labels", "words"),
    [(("a", 1), "one kind"), ((1, "a"), "one kind"), (("a", None), "no label in row 0")],
)
def test_labels_of_two_kinds(labels, words):
    X = np.random.default_rng(0).standard_normal((20, 3))
    source = [(X, np.array([label] * 20, dtype=type(label))) for label in labels]
    source.append((X, np.array(["b"] * 20)))
    with pytest.raises(ValueError, match=words):
        RandomFeatureRidgeClassifier(features=FrozenEstimator(MAPS[3].fit(X))).fit(source)
