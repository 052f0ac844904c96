"""The whole kernel with alpha and kernel chosen by held-out rows, and the classifier."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight
from tolerances import WHOLE

import gzkcore
from gzkcore import (
    Gaussian,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeClassifierCV,
    KernelRidgeCV,
    Matern,
    NystromFeatures,
    RandomFeatureRidgeClassifier,
)
from gzkcore.solve.training_rows import TrainingRows

GRID = {"gamma": [0.1, 1.0]}
ALPHAS = [1e-3, 0.1, 10.0]
KINDS = {"factored": {}, "iterated": {"preconditioner": 64, "tol": 1e-10, "random_state": 0}}
either_way = pytest.mark.parametrize("kind", KINDS)


def data(n=240, n_targets=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = np.sin(X @ rng.standard_normal((3, n_targets))) + 2
    y += 0.1 * rng.standard_normal((n, n_targets))
    return X, y if n_targets > 1 else y[:, 0], rng.uniform(0.1, 2, n)


def close(found, wanted):
    assert_allclose(found, wanted, rtol=0, atol=WHOLE["tight"]() * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fit_intercept", "weighted"), [
    *(("factored", *both) for both in itertools.product([False, True], repeat=2)),
    ("iterated", False, False),
    ("iterated", True, True),
])  # fmt: skip
def test_scores_are_those_of_single_fits(kind, fit_intercept, weighted):
    X, Y, weight = data()
    weight = weight if weighted else None
    options = KINDS[kind] | {"fit_intercept": fit_intercept}
    cv = KFold(3, shuffle=True, random_state=0)
    model = KernelRidgeCV(Gaussian(), ALPHAS, kernel_grid=GRID, cv=cv, **options)
    model.fit(X, Y, weight)
    results = model.cv_results_
    for i, params in enumerate(results["params"]):
        kernel = Gaussian(params["gamma"])
        for f, (train, test) in enumerate(cv.split(X)):
            of_train, of_test = (None if weight is None else weight[r] for r in (train, test))
            one = KernelRidge(kernel, params["alpha"], **options).fit(X[train], Y[train], of_train)
            error = mean_squared_error(Y[test], one.predict(X[test]), sample_weight=of_test)
            close(results[f"split{f}_test_score"][i], -error)
    best = np.argmax(results["mean_test_score"])
    assert model.best_params_ == results["params"][best]
    assert model.best_score_ == results["mean_test_score"][best]
    assert results["rank_test_score"][best] == 1
    assert results["converged"].all()
    again = KernelRidge(Gaussian(model.best_params_["gamma"]), model.alpha_, **options)
    assert_array_equal(again.fit(X, Y, weight).predict(X), model.predict(X))


def test_the_choice_is_that_of_a_grid_search():
    X, y, _ = data(n_targets=1)
    cv = KFold(4)
    wanted = GridSearchCV(
        KernelRidge(Gaussian()), {"alpha": ALPHAS, "kernel__gamma": GRID["gamma"]}, cv=cv,
        scoring="neg_mean_squared_error",
    ).fit(X, y)  # fmt: skip
    found = KernelRidgeCV(Gaussian(), ALPHAS, kernel_grid=GRID, cv=cv).fit(X, y)
    assert found.alpha_ == wanted.best_params_["alpha"]
    assert found.kernel_.gamma == wanted.best_params_["kernel__gamma"]
    close(found.best_score_, wanted.best_score_)


@pytest.mark.parametrize("cv", [
    None, 3, ShuffleSplit(2, random_state=0), [(np.arange(200), np.arange(200, 240))],
], ids=["none", "folds", "splitter", "splits"])  # fmt: skip
def test_ways_to_hold_rows_out(cv):
    X, y, _ = data(n_targets=1)
    model = KernelRidgeCV(Gaussian(0.5), ALPHAS, cv=cv, random_state=0).fit(X, y)
    assert model.alpha_ in ALPHAS
    n_splits = {None: 1, 3: 3}.get(cv if cv is None or isinstance(cv, int) else "", 0)
    splits = [name for name in model.cv_results_ if name.startswith("split")]
    assert not n_splits or len(splits) == (n_splits if n_splits > 1 else 0)


def test_folds_take_every_third_row():
    X, y, _ = data(n_targets=1)
    folds = [(np.flatnonzero(np.arange(240) % 3 != f), np.arange(f, 240, 3)) for f in range(3)]
    both = [KernelRidgeCV(Gaussian(0.5), ALPHAS, cv=cv).fit(X, y) for cv in (3, folds)]
    for name, scores in both[0].cv_results_.items():
        assert_array_equal(both[1].cv_results_[name], scores)


def test_whole_kernels_may_be_candidates():
    X, y, _ = data(n_targets=1)
    grid = {"kernel": ["gaussian", Matern(2.5), Gaussian(50.0)]}
    model = KernelRidgeCV(kernel_grid=grid, alphas=ALPHAS, random_state=0).fit(X, y)
    assert isinstance(model.best_params_["kernel"], (str, Matern))
    K = Gaussian(0.5)(X)
    chosen = KernelRidgeCV("precomputed", ALPHAS, cv=3).fit(K, y)
    wanted = KernelRidgeCV(Gaussian(0.5), ALPHAS, cv=3).fit(X, y)
    close(chosen.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
    close(chosen.predict(K), wanted.predict(X))


def test_candidates_that_were_not_solved_are_no_bad_alphas():
    """Eight steps are too few for the smallest alphas: nothing is known of their errors."""
    X, y, _ = data(1200, n_targets=1)
    model = KernelRidgeCV(
        Gaussian(0.5), [1e-9, 1e-6, 10.0, 100.0], preconditioner=30, max_iter=8, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"alpha=10 is the best .*smaller alphas"):
        model.fit(X, y)
    assert_array_equal(model.cv_results_["converged"], [False, False, True, True])
    assert_array_equal(np.isnan(model.cv_results_["mean_test_score"]), [True, True, False, False])
    assert_array_equal(model.cv_results_["rank_test_score"][2:], [1, 2])
    model.set_params(alphas=[1e-9], max_iter=2)
    with pytest.raises(ValueError, match=r"no candidate reached tol=0\.001"):
        model.fit(X, y)


def test_the_mean_score_counts_rows_by_their_weights():
    X, y, weight = data(50, 1)
    results = KernelRidgeCV(Gaussian(0.5), ALPHAS, cv=KFold(3)).fit(X, y, weight).cv_results_
    scores = [results[f"split{f}_test_score"] for f in range(3)]
    weights = [weight[test].sum() for _, test in KFold(3).split(X)]
    close(results["mean_test_score"], np.average(scores, axis=0, weights=weights))


def test_alphas_too_small_for_an_indefinite_matrix_have_no_score():
    X, y, _ = data(60, 1)
    K = Gaussian(0.5)(X) - 0.1 * np.eye(60)
    search = KernelRidgeCV("precomputed", [1e-3, 1.0, 10.0], cv=KFold(3))
    with pytest.warns(ConvergenceWarning, match="smaller alphas of .* did not converge"):
        found = search.fit(K, y).cv_results_
    wanted = KernelRidgeCV("precomputed", [1.0, 10.0], cv=KFold(3)).fit(K, y).cv_results_
    assert_array_equal(found["converged"], [False, True, True])
    close(found["mean_test_score"][1:], wanted["mean_test_score"])


def test_rows_of_weight_zero_are_not_there():
    X, y, weight = data(n_targets=1)
    weight[::3] = 0
    cv = list(KFold(4).split(X))
    model = KernelRidgeCV(Gaussian(0.5), ALPHAS, cv=cv).fit(X, y, weight)
    kept = weight > 0
    places = np.cumsum(kept) - 1
    theirs = [tuple(places[rows[kept[rows]]] for rows in split) for split in cv]
    wanted = KernelRidgeCV(Gaussian(0.5), ALPHAS, cv=theirs).fit(X[kept], y[kept], weight[kept])
    assert_array_equal(model.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    "values",
    [[0.5, [0.5, 1.0, 2.0]], [0.5, np.ones(3)], [[0.5, 1.0, 2.0], [1.0, 1.0, 2.0]], [1.5, "learn"]],
)
def test_values_of_a_grid_may_be_of_any_shape(values, tmp_path):
    """They are the column's items; numbers beside text stay numbers."""
    X, y, _ = data(40, 1)
    name = "nu" if isinstance(values[1], str) else "length_scale"
    model = KernelRidgeCV(Matern(1.5), [1.0], kernel_grid={name: values}, cv=2).fit(X, y)
    model.save(tmp_path / "model.gzk")
    for made in (model, gzkcore.load(tmp_path / "model.gzk")):
        column = made.cv_results_[f"param_{name}"]
        assert column.shape == (2,)
        for found, wanted in zip(column, values, strict=True):
            assert type(found) is type(wanted)
            assert_array_equal(found, wanted)


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"alphas": []}, ValueError, r"alphas=\[\] must be a list"),
    ({"alphas": [1.0, -2.0]}, ValueError, r"alphas=\[1.0, -2.0\] must be finite and >= 0"),
    ({"cv": 1}, ValueError, "cv=1, a number of folds, must be from 2 to the 240 samples"),
    ({"cv": "two"}, ValueError, "cv='two' must be None"),
    ({"cv": []}, ValueError, r"cv=\[\] has no splits"),
    ({"cv": [(np.arange(9), [])]}, ValueError, "split 0 of cv=.* no rows held out"),
    ({"cv": [([], np.arange(9))]}, ValueError, "split 0 of cv=.* no rows to fit to"),
    ({"cv": [(range(9), range(230, 250))]}, ValueError, "split 0 of cv does not fit 240 rows"),
    ({"kernel": "guassian"}, ValueError, r"^kernel='guassian' is unknown .did you mean 'gaussian'"),
    ({"kernel_grid": {"gama": [1.0]}}, ValueError, r"kernel_grid has the names \['gama'\]"),
    ({"kernel_grid": {"gamma": 1.0}}, TypeError, 'must be like {"gamma": '),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    X, y, _ = data()
    with pytest.raises(error, match=message):
        KernelRidgeCV(**({"kernel": Gaussian()} | parameters)).fit(X, y)


def test_masks_hold_rows_out():
    """Splits of different sizes: each row counts once."""
    X, y, weight = data()
    weight[::5] = 0
    parts = [np.arange(240) < 40, np.arange(240) >= 100]
    cv = [(~part, part) for part in parts]
    by_number = [tuple(np.flatnonzero(part) for part in pair) for pair in cv]
    for given in (None, weight):
        found = KernelRidgeCV(Gaussian(), ALPHAS, cv=cv).fit(X, y, given)
        wanted = KernelRidgeCV(Gaussian(), ALPHAS, cv=by_number).fit(X, y, given)
        assert_array_equal(
            found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"]
        )


# ---- the classifier


def labelled(n=300, n_classes=3):
    X, y, weight = data(n, 1)
    edges = np.quantile(y, np.arange(1, n_classes) / n_classes)
    return X, np.array(["low", "middle", "high"])[np.digitize(y, edges)], weight


@either_way
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 3.0}], ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
def test_classes_as_on_features_of_all_rows(n_classes, class_weight, fit_intercept, kind):
    X, y, weight = labelled(n_classes=n_classes)
    options = {"fit_intercept": fit_intercept, "class_weight": class_weight}
    features = NystromFeatures(Gaussian(0.5), len(X), landmarks=X)
    wanted = RandomFeatureRidgeClassifier(features, 0.1, **options).fit(X, y, weight)
    found = KernelRidgeClassifier(Gaussian(0.5), 0.1, **options, **KINDS[kind]).fit(X, y, weight)
    new = data(50, seed=1)[0]
    close(found.decision_function(new), wanted.decision_function(new))
    assert_array_equal(found.predict(new), wanted.predict(new))
    assert_array_equal(found.classes_, wanted.classes_)
    assert found.score(X, y) == wanted.score(X, y)


def test_classes_of_batches():
    X, y, _ = labelled()
    batches = [(X[:100], y[:100]), (X[100:], y[100:])]
    found = KernelRidgeClassifier(Gaussian(0.5), 0.1).fit(batches)
    wanted = KernelRidgeClassifier(Gaussian(0.5), 0.1).fit(X, y)
    assert_array_equal(np.concatenate(list(found.predict([X[:100], X[100:]]))), wanted.predict(X))
    assert found.score(batches) == wanted.score(X, y)
    with pytest.raises(ValueError, match="y has one class"):
        KernelRidgeClassifier().fit(X, ["low"] * len(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 3.0}], ids=str)
def test_the_classifier_chooses_as_the_regression_of_its_targets(n_classes, class_weight):
    X, y, weight = labelled(n_classes=n_classes)
    cv = KFold(3, shuffle=True, random_state=0)
    options = {"kernel_grid": GRID, "cv": cv, "fit_intercept": True}
    model = KernelRidgeClassifierCV(Gaussian(), ALPHAS, class_weight=class_weight, **options)
    model.fit(X, y, weight)
    targets = 2.0 * (y[:, None] == model.classes_) - 1
    targets = targets[:, 1] if n_classes == 2 else targets
    of_class = compute_sample_weight(class_weight, y)
    wanted = KernelRidgeCV(Gaussian(), ALPHAS, **options).fit(X, targets, weight * of_class)
    assert model.best_params_ == wanted.best_params_
    close(model.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
    close(model.decision_function(X), wanted.predict(X))
    one = KernelRidgeClassifier(
        Gaussian(model.best_params_["gamma"]), model.alpha_, class_weight=class_weight
    )
    assert_array_equal(model.predict(X), one.fit(X, y, weight).predict(X))


class Seen(StratifiedKFold):
    """Keeps what it is shown."""

    def split(self, X, y=None, groups=None):
        self.shown = np.shape(X), y
        return super().split(X, y, groups)


@pytest.mark.parametrize("cv", [None, 5])
def test_rare_classes_are_held_out_and_fitted_to(cv):
    X, y = data(200)[0], np.array(["often"] * 190 + ["rare"] * 10)
    model = KernelRidgeClassifierCV(cv=cv, random_state=0).fit(X, y)
    rows = TrainingRows(X, np.where(y == "rare", 1.0, -1.0)[:, None], None)
    for fitted, held_out in model._splits(rows):
        assert ((y[held_out] == "rare").sum(), (y[fitted] == "rare").sum()) == (2, 8)


def test_splitters_see_the_classes_of_all_rows():
    X, y, weight = labelled()
    weight[::4] = 0
    cv = Seen(3)
    KernelRidgeClassifierCV(alphas=[0.1], cv=cv).fit(X, y, weight)
    shape, classes = cv.shown
    assert shape[0] == len(y)
    assert_array_equal(classes, np.searchsorted(["high", "low", "middle"], y))


@pytest.mark.parametrize("learner", [KernelRidgeClassifier, KernelRidgeClassifierCV])
def test_labels_and_class_weights_that_mean_nothing(learner):
    X, y, _ = labelled(60)
    with pytest.raises(ValueError, match="such as 'low' in row 0 and 1 in row 1"):
        learner().fit(X, np.array(["low", 1] * 30, dtype=object))
    with pytest.raises(ValueError, match="y has no label in row 1"):
        learner().fit(X, np.array(["low", None] * 30, dtype=object))
    with pytest.raises(ValueError, match=r"class_weight\['low'\]=-2.0 is not usable"):
        learner(class_weight={"low": -2.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight has a weight for 'lo', which is not one of"):
        learner(class_weight={"lo": 2.0}).fit(X, y)
    learner(class_weight={"low": 1, "middle": 2, "high": 3, "top": 4}).fit(X, y)
