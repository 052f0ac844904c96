"""Ridge regressions from moments: as scikit-learn's on explicit features, and by brute force."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from tolerances import RIDGE

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    KernelFeatures,
    ProductFeatures,
    RandomFourierFeatures,
    reference,
)
from gzkcore.learn.ridge import RandomFeatureRidge
from gzkcore.learn.ridge_classifier import (
    RandomFeatureRidgeClassifier,
    RandomFeatureRidgeClassifierCV,
)
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV
from gzkcore.passes.normal_equations import System, inverses_of

RBF9 = RBFSampler(gamma=0.3, n_components=9, random_state=0)
BOTH = [RandomFeatureRidge, RandomFeatureRidgeCV]


def data(n=300, n_targets=2, seed=0, dtype=np.float64):
    """Rows, one or several targets (far from 0), weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)).astype(dtype)
    y = (
        np.sin(X @ rng.standard_normal((3, n_targets)))
        + 0.1 * rng.standard_normal((n, n_targets))
        + 5
    )
    return X, y if n_targets > 1 else y[:, 0], rng.uniform(0, 2, n)


def sphere(n=400, seed=0, uneven=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    if uneven:
        X[:, 2] = np.abs(X[:, 2]) + 1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


# ---- one alpha


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, "each"])
def test_as_scikit_learn_on_the_explicit_features(alpha, n_targets, weighted, fit_intercept):
    X, y, weight = data(n_targets=n_targets)
    weight = weight if weighted else None
    if alpha == "each":
        alpha = np.logspace(-2, 0, n_targets) if n_targets > 1 else np.array(0.5)
    Z = RBF9.fit(X).transform(X)
    model = RandomFeatureRidge(RBF9, alpha, fit_intercept=fit_intercept).fit(X, y, weight)
    other = Ridge(alpha, fit_intercept=fit_intercept, solver="cholesky").fit(Z, y, weight)
    assert model.coef_.shape == other.coef_.shape
    assert (
        np.shape(model.intercept_) == np.shape(other.intercept_)[: n_targets - 1]
        or not fit_intercept
    )
    assert_allclose(model.coef_, other.coef_, rtol=RIDGE["solved"](), atol=RIDGE["solved"]())
    assert_allclose(model.intercept_, other.intercept_, rtol=RIDGE["solved"]())
    assert_allclose(model.predict(X), other.predict(Z), rtol=RIDGE["predicted"]())
    assert_allclose(model.score(X, y, weight), other.score(Z, y, weight), rtol=RIDGE["predicted"]())


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_as_the_reference(n_targets, fit_intercept):
    X, y, weight = data(n_targets=n_targets)
    model = RandomFeatureRidge(RBF9, 0.3, fit_intercept=fit_intercept).fit(X, y, weight)
    Z = model.features_.transform(X)
    coef, intercept = reference.ridge.ridge(Z, y, 0.3, fit_intercept, weight)
    assert_allclose(model.coef_, coef, rtol=RIDGE["solved"]())
    assert_allclose(model.intercept_, intercept, rtol=RIDGE["solved"](), atol=RIDGE["summed"]())


def test_targets_far_from_zero_lose_no_digits():
    X, y, _ = data(n_targets=1)
    near = RandomFeatureRidge(RBF9).fit(X, y)
    far = RandomFeatureRidge(RBF9).fit(X, y + 1e8)
    assert_allclose(far.coef_, near.coef_, rtol=RIDGE["cancelled"]())
    assert_allclose(far.noise_variance_, near.noise_variance_, rtol=RIDGE["cancelled"]())


# ---- features


def test_default_features():
    X, y, _ = data(60)
    model = RandomFeatureRidge(random_state=0).fit(X, y)
    assert isinstance(model.features_, KernelFeatures)
    assert model.coef_.shape == (2, 1024)


def test_parameters_of_the_default_features_can_be_searched():
    X, y, _ = data(60)
    grid = {"features__kernel__gamma": [0.1, 1.0], "features__n_components": [16]}
    search = GridSearchCV(RandomFeatureRidge(random_state=0), grid, cv=2).fit(X, y)
    assert search.best_estimator_.coef_.shape == (2, 16)
    assert RandomFeatureRidge().features is None


def test_kernel_grid_takes_full_names():
    X, y, _ = data(60, n_targets=1)
    features = GegenbauerFeatures(n_components=16)
    short, full = (
        RandomFeatureRidgeCV(features, kernel_grid={name: [0.1, 1.0]}, cv=2, random_state=0).fit(
            X, y
        )
        for name in ("gamma", "kernel__gamma")
    )
    assert short.best_params_["gamma"] == full.best_params_["kernel__gamma"]
    assert_array_equal(short.predict(X), full.predict(X))


def test_sparse_and_frame_outputs():
    X, y, _ = data()
    wanted = RandomFeatureRidge(FunctionTransformer()).fit(X, y)
    for features in (
        FunctionTransformer(sp.csr_array),
        FunctionTransformer(pd.DataFrame),
        FunctionTransformer(np.asfortranarray),
    ):
        assert_allclose(
            RandomFeatureRidge(features).fit(X, y).coef_, wanted.coef_, rtol=RIDGE["summed"]()
        )


def test_grid_search_over_the_kernel():
    X, y = sphere(200)
    model = RandomFeatureRidge(GegenbauerFeatures(n_components=25, basis="harmonic"), alpha=1e-3)
    grid = GridSearchCV(
        model, {"features__kernel__gamma": [1e-3, 1.0], "alpha": [1e-2, 1e-3]}, cv=2
    )
    assert grid.fit(X, y).best_params_["features__kernel__gamma"] == 1.0


# ---- the spread of predictions


def test_standard_deviation_is_that_of_a_gaussian_process():
    """Exact features: the posterior with prior variance noise / alpha and this noise."""
    X, y = sphere(150)
    features = GegenbauerFeatures(Gaussian(0.5), 225, basis="harmonic")
    model = RandomFeatureRidge(features, alpha=0.1, fit_intercept=False).fit(X, y)
    noise = model.noise_variance_
    kernel = ConstantKernel(noise / 0.1) * RBF(1.0) + WhiteKernel(noise)
    process = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(X, y)
    new = sphere(50, seed=1)[0]
    wanted, spread = process.predict(new, return_std=True)
    mean, std = model.predict(new, return_std=True)
    assert_allclose(mean, wanted, rtol=RIDGE["solved twice"](), atol=RIDGE["solved twice"]())
    assert_allclose(std, spread, rtol=RIDGE["solved twice"]())


def test_noise_and_degrees_of_freedom_by_definition():
    X, y, weight = data()
    model = RandomFeatureRidge(RBF9, [0.1, 10.0]).fit(X, y, weight)
    Z = model.features_.transform(X)
    for target, alpha in enumerate(model.alpha):
        hat = reference.ridge.predict(
            Z, *reference.ridge.ridge(Z, np.eye(300), alpha, True, weight)
        )
        freedom = np.trace(hat)
        residual = y[:, target] - hat @ y[:, target]
        assert_allclose(model.degrees_of_freedom_[target], freedom, rtol=RIDGE["solved"]())
        assert_allclose(
            model.noise_variance_[target],
            weight @ residual**2 / (300 - freedom),
            rtol=RIDGE["solved"](),
        )
    mean, std = model.predict(X, return_std=True)
    assert std.shape == mean.shape == y.shape


def test_weights_count_rows_in_coefficients_and_are_precisions_of_the_noise():
    X, y, _ = data(200, n_targets=1)
    rows = np.repeat(np.arange(200), weight := np.arange(200) % 3 + 1)
    features = FrozenEstimator(RBF9.fit(X))
    weighted = RandomFeatureRidge(features, 0.1).fit(X, y, weight)
    repeated = RandomFeatureRidge(features, 0.1).fit(X[rows], y[rows])
    assert_allclose(weighted.coef_, repeated.coef_, rtol=RIDGE["solved"]())
    freedom = weighted.degrees_of_freedom_
    assert_allclose(freedom, repeated.degrees_of_freedom_, rtol=RIDGE["solved"]())
    squares = [
        (200 - freedom) * weighted.noise_variance_,
        (399 - freedom) * repeated.noise_variance_,
    ]
    assert_allclose(*squares, rtol=RIDGE["solved"]())
    twice = RandomFeatureRidge(features, 0.2).fit(X, y, np.full(200, 2.0))
    once = RandomFeatureRidge(features, 0.1).fit(X, y)
    assert_allclose(twice.noise_variance_, 2 * once.noise_variance_, rtol=RIDGE["solved"]())


def test_what_the_features_leave_out_widens_the_spread():
    X, y = sphere(150)
    few = GegenbauerFeatures(Gaussian(0.5), 9, basis="harmonic")
    model = RandomFeatureRidge(few, alpha=0.1).fit(X, y)
    _, std = model.predict(X, return_std=True)
    _, narrow = (
        RandomFeatureRidge(FunctionTransformer(few.fit(X).transform), alpha=0.1)
        .fit(X, y)
        .predict(X, return_std=True)
    )
    missing = 1 - np.square(few.transform(X)).sum(axis=1)
    assert_allclose(
        std**2 - narrow**2, model.noise_variance_ * missing / 0.1, rtol=RIDGE["cancelled"]()
    )


def test_no_noise_estimate_without_rows_to_spare():
    X, y, _ = data(5, n_targets=1)
    model = RandomFeatureRidge(RBF9, alpha=1e-12).fit(X, y)
    with pytest.raises(ValueError, match="5 rows leave nothing to estimate the noise from"):
        model.predict(X, return_std=True)


# ---- systems that Cholesky can't factor


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_singular_system_says_so_and_gives_the_smallest_solution(dtype):
    X, y, _ = data(200, dtype=dtype)
    twice = FunctionTransformer(lambda X: np.hstack([X, X, np.zeros_like(X)]))
    with pytest.warns(LinAlgWarning, match=r"alpha=0 is singular.*in 3 of 9 directions"):
        model = RandomFeatureRidge(twice, alpha=0).fit(X, y)
    Z = np.hstack([X, X, np.zeros_like(X)]).astype(float)
    wanted = np.linalg.pinv(Z - Z.mean(axis=0), rcond=1e-5) @ (y - y.mean(axis=0))
    assert_allclose(
        model.coef_,
        wanted.T,
        atol=RIDGE["single"](np.float32) if dtype == np.float32 else RIDGE["summed"](),
    )
    assert_allclose(model.degrees_of_freedom_, 4.0, rtol=RIDGE["single"](np.float32))
    for cv in (None, 2, "loo"):
        with pytest.warns(LinAlgWarning, match="singular"):
            chosen = RandomFeatureRidgeCV(twice, [0.0], cv=cv).fit(X, y)
        score = reference.ridge.gcv_score(X, y, 0.0)
        if cv is not None:
            score = reference.ridge.k_fold_error(X, y, 0.0, 200 if cv == "loo" else cv)
        assert_allclose(
            -chosen.best_score_,
            score,
            rtol=RIDGE["single, squared"](np.float32) if dtype == np.float32 else RIDGE["solved"](),
        )


def test_features_that_are_constant():
    X, y, _ = data(50)
    model = RandomFeatureRidge(FunctionTransformer(np.ones_like)).fit(X, y)
    assert_allclose(model.predict(X), np.broadcast_to(y.mean(axis=0), y.shape))


def far_from_zero(offset, dtype):
    X, y, _ = data(2000, n_targets=1)
    return (X + offset).astype(dtype), y


FEW_DIGITS = "keep few digits"
ON_SUMS = [
    RandomFeatureRidge(FunctionTransformer()),
    RandomFeatureRidgeCV(FunctionTransformer(), cv=2),
    RandomFeatureRidgeClassifier(FunctionTransformer()),
    RandomFeatureRidgeClassifierCV(FunctionTransformer()),
]


@pytest.mark.parametrize("model", ON_SUMS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("offset", "dtype"), [(300, np.float32), (1e7, np.float64)])
def test_columns_whose_digits_are_lost_are_told_of_once(offset, dtype, model):
    X, y = far_from_zero(offset, dtype)
    X[:, 0] -= dtype(offset)
    y = np.where(y > 5, "high", "low") if is_classifier(model) else y
    number = "float32" if dtype == np.float32 else "float64"
    mean = re.escape(f"the mean {offset:.3g} ")
    wanted = rf"column [12] of the features has {mean}.*{number} products {FEW_DIGITS}"
    with pytest.warns(UserWarning, match=wanted) as told:
        clone(model).fit(X, y)
    assert len(told) == 1
    assert ("pass float64 rows" in str(told[0].message)) == (dtype == np.float32)
    batches = [(X[i : i + 500], y[i : i + 500]) for i in range(0, 2000, 500)]
    with pytest.warns(UserWarning, match=FEW_DIGITS) as told:
        clone(model).fit(batches)
    assert len(told) == 1
    clone(model).fit(StandardScaler().fit_transform(X), y)
    clone(model).set_params(features=make_pipeline(StandardScaler(), FunctionTransformer())).fit(
        X, y
    )


def test_rows_without_weight_say_nothing_of_digits():
    X, y = far_from_zero(300, np.float32)
    X[::2] = 0
    weight = np.arange(len(X)) % 2
    RandomFeatureRidge(FunctionTransformer()).fit(X, y)  # half 0, half 300
    with pytest.warns(UserWarning, match=FEW_DIGITS):
        RandomFeatureRidge(FunctionTransformer()).fit(X, y, weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [
    PolynomialFeatures(3),
    StandardScaler(),
    FunctionTransformer(lambda X: np.full_like(X, 0.7)),
    FunctionTransformer(lambda X: np.where(X > 0, X.dtype.type(0.7), np.nextafter(X.dtype.type(0.7), 1))),
    RBFSampler(gamma=0.01, n_components=1000, random_state=0),
    make_pipeline(StandardScaler(), RBFSampler(gamma=0.01, random_state=0)),
    Nystroem(gamma=1e-3, random_state=0),
    KernelFeatures(random_state=0),
    RandomFourierFeatures(Gaussian(0.01), 500, random_state=0),
    ProductFeatures("gaussian", 90),
    FrozenEstimator(RandomFourierFeatures(Gaussian(1e-4), 50, random_state=0).fit(data()[0][:, :1])),
], ids=lambda features: type(features).__name__)  # fmt: skip
def test_features_that_lose_no_digits_are_not_told_of(features, dtype):
    X, y, _ = data(1000, n_targets=1, dtype=dtype)
    RandomFeatureRidge(features).fit(X[:, :1], y)
    RandomFeatureRidge(FunctionTransformer()).fit(X[:10] + dtype(3), y[:10])  # few rows tell little


# ---- choosing alpha and the kernel

ALPHAS = [1e-4, 1e-2, 1.0, 100.0]


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@pytest.mark.parametrize("n_targets", [1, 2, 6])
@pytest.mark.parametrize("cv", [None, 2, 5, "loo"])
def test_every_score_as_the_reference(cv, n_targets, weighted, fit_intercept):
    X, y, weight = data(101, n_targets)
    weight = weight if weighted else None
    model = RandomFeatureRidgeCV(RBF9, ALPHAS, cv=cv, fit_intercept=fit_intercept).fit(X, y, weight)
    Z = model.features_.transform(X)
    wanted = []
    for alpha in ALPHAS:
        if cv is None:
            wanted.append(reference.ridge.gcv_score(Z, y, alpha, fit_intercept, weight))
        else:
            k = 101 if cv == "loo" else cv
            wanted.append(reference.ridge.k_fold_error(Z, y, alpha, k, fit_intercept, weight))
    assert_allclose(-model.cv_results_["mean_test_score"], wanted, rtol=RIDGE["solved twice"]())
    assert model.alpha_ == ALPHAS[np.argmin(wanted)]
    assert_allclose(model.best_score_, -min(wanted), rtol=RIDGE["solved twice"]())
    refit = RandomFeatureRidge(RBF9, model.alpha_, fit_intercept=fit_intercept).fit(X, y, weight)
    assert_allclose(model.coef_, refit.coef_, rtol=RIDGE["solved"]())
    assert_allclose(model.noise_variance_, refit.noise_variance_, rtol=RIDGE["solved"]())


def test_leave_one_out_as_scikit_learn():
    X, y, _ = data(101)
    model = RandomFeatureRidgeCV(RBF9, ALPHAS, cv="loo").fit(X, y)
    other = RidgeCV(ALPHAS, store_cv_results=True).fit(model.features_.transform(X), y)
    assert model.alpha_ == other.alpha_
    assert_allclose(
        -model.cv_results_["mean_test_score"],
        other.cv_results_.mean(axis=(0, 1)),
        rtol=RIDGE["solved"](),
    )


@pytest.mark.parametrize("seed", range(3))
def test_leave_one_out_scores_the_fit_that_follows(seed):
    """Also where float32 sums are off by more than alpha, which spoils the fit, and not by chance."""
    X = np.random.default_rng(seed).uniform(-1, 1, (4000, 1)).astype(np.float32)
    y = np.sin(4 * X[:, 0].astype(np.float64))
    features = RandomFourierFeatures(Gaussian(1.0), 128, random_state=seed)
    model = RandomFeatureRidgeCV(features, [1e-8, 1e-6, 1e-4, 1e-2], cv="loo").fit(
        X[:3000], y[:3000]
    )
    expected = np.sqrt(-model.cv_results_["mean_test_score"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        fits = [
            RandomFeatureRidge(features, alpha).fit(X[:3000], y[:3000]) for alpha in model.alphas
        ]
    found = [np.sqrt(np.mean(np.square(fit.predict(X[3000:]) - y[3000:]))) for fit in fits]
    assert_allclose(found, expected, rtol=0.2)
    assert model.alpha_ == model.alphas[int(np.argmin(found))]


@pytest.mark.parametrize("alpha", [0.0, 1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("least", [-1e-6, 0.0, 1e-6])
def test_inverses_for_scores_are_those_of_fits(alpha, least):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    gram, b = axes @ np.diag([least, 1e-5, 1e-2, 1.0, 10.0]) @ axes.T, rng.standard_normal((5, 1))
    vectors, inverse = inverses_of(gram, np.array([alpha]), np.dtype(np.float32))
    wanted = System(gram, alpha, np.dtype(np.float32)).solve(b)
    assert_allclose(vectors @ (inverse * (vectors.T @ b)), wanted, rtol=1e-6)


def test_inverses_of_nothing():
    _, inverse = inverses_of(np.zeros((2, 2)), np.array([0.0, 2.0]), np.dtype(np.float64))
    assert_allclose(inverse, [[0.0, 0.5], [0.0, 0.5]])


def brute_force(X, y, gammas, cv, n_components, weight=None):
    """Errors (gammas, alphas) by refitting, with features made for each kernel."""
    errors = np.empty((len(gammas), len(ALPHAS)))
    for i, gamma in enumerate(gammas):
        features = GegenbauerFeatures(Gaussian(gamma), n_components, basis="harmonic").fit(X)
        Z = features.rescaled(features.kernel_).transform(X)
        for j, alpha in enumerate(ALPHAS):
            if cv is None:
                errors[i, j] = reference.ridge.gcv_score(Z, y, alpha, True, weight)
            else:
                n_folds = len(X) if cv == "loo" else cv
                errors[i, j] = reference.ridge.k_fold_error(Z, y, alpha, n_folds, True, weight)
    return errors


def test_the_sums_of_the_best_are_kept_where_some_scores_are_not_numbers():
    """A row of leverage 1 leaves no score of alpha = 0 by leave-one-out."""
    rng = np.random.default_rng(0)
    X = np.zeros((41, 3))
    X[1:, :2], X[0, 2] = 0.01 * rng.standard_normal((40, 2)), 1.0
    y = np.r_[1.0, 100 * X[1:, 0] + 0.05 * rng.standard_normal(40)]
    scales = {"kw_args": [{"scale": 1.0}, {"scale": 8.0}]}
    model = RandomFeatureRidgeCV(
        FunctionTransformer(lambda X, scale: scale * X, kw_args={"scale": 1.0}),
        alphas=[0.0, 0.5], kernel_grid=scales, cv="loo", fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    assert np.isnan(model.cv_results_["mean_test_score"]).any()
    assert model.features_.kw_args == model.best_params_["kw_args"] == {"scale": 8.0}
    again = model.set_params(alphas=[0.5]).fit(X, y)
    assert_allclose(model.coef_, again.coef_, rtol=1e-12)


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "cap"])
@pytest.mark.parametrize("cv", [None, 2, 3, "loo"])
def test_one_gram_serves_every_kernel(cv, uneven):
    X, y = sphere(150, uneven=uneven)
    gammas = [0.05, 0.5, 3.0, 20.0]
    features = GegenbauerFeatures(n_components=49, basis="harmonic")
    model = RandomFeatureRidgeCV(features, ALPHAS, {"gamma": gammas}, cv).fit(X, y)
    assert model.moments_.sums.shape[0] == (cv if cv in (2, 3) else 1)
    wanted = brute_force(X, y, gammas, cv, 49)
    results = model.cv_results_
    assert_allclose(-results["mean_test_score"].reshape(4, 4), wanted, rtol=RIDGE["cancelled"]())
    i, j = np.unravel_index(np.argmin(wanted), wanted.shape)
    assert model.best_params_ == {"alpha": ALPHAS[j], "gamma": gammas[i]}
    assert model.kernel_.gamma == gammas[i]
    assert results["params"][results["mean_test_score"].argmax()] == model.best_params_
    assert results["rank_test_score"].min() == 1
    assert_array_equal(results["param_gamma"].reshape(4, 4)[:, 0], gammas)
    refit = RandomFeatureRidge(FrozenEstimator(model.features_), model.alpha_).fit(X, y)
    assert_allclose(model.predict(X), refit.predict(X), rtol=RIDGE["solved"]())
    exact = model.kernel_(X)
    assert_allclose(model.features_.transform(X) @ model.features_.transform(X).T, exact, atol=0.05)


def test_one_gram_in_batches():
    X, y = sphere(300)
    model = RandomFeatureRidgeCV(
        GegenbauerFeatures(n_components=25, basis="harmonic", radius=(1.0, 1.0)),
        ALPHAS,
        {"gamma": [0.5, 3.0]},
        2,
    )
    whole = clone(model).fit(X, y)
    for rows in (slice(0, 101), slice(101, 300)):
        model.partial_fit(X[rows], y[rows])
    assert model.best_params_ == whole.best_params_
    assert_allclose(
        model.cv_results_["split1_test_score"],
        whole.cv_results_["split1_test_score"],
        rtol=RIDGE["solved"](),
    )
    assert_allclose(model.predict(X), whole.predict(X), rtol=RIDGE["solved twice"]())


@pytest.mark.parametrize("cv", [None, 3, "loo"])
def test_other_features_take_a_pass_for_each_kernel(cv):
    X, y, weight = data(101)
    gammas = [0.01, 0.3, 5.0]
    model = RandomFeatureRidgeCV(RBF9, ALPHAS, {"gamma": gammas}, cv).fit(X, y, weight)
    singles = [
        RandomFeatureRidgeCV(clone(RBF9).set_params(gamma=gamma), ALPHAS, None, cv).fit(
            X, y, weight
        )
        for gamma in gammas
    ]
    wanted = np.concatenate([single.cv_results_["mean_test_score"] for single in singles])
    assert_allclose(model.cv_results_["mean_test_score"], wanted, rtol=RIDGE["solved"]())
    best = max(singles, key=lambda single: single.best_score_)
    assert model.best_params_ == {"alpha": best.alpha_, "gamma": best.features_.gamma}
    assert_allclose(model.predict(X), best.predict(X), rtol=RIDGE["summed"]())
    assert model.kernel_ is None
    with pytest.raises(ValueError, match="partial_fit"):
        model.partial_fit(X, y)


def test_gradients_and_factorisations_agree(monkeypatch):
    """Candidates that conjugate gradients solve get the scores that Cholesky gives them."""
    X, y = sphere(500)
    model = RandomFeatureRidgeCV(
        GegenbauerFeatures(n_components=49, basis="harmonic"),
        ALPHAS,
        {"gamma": [0.5, 3.0, 20.0]},
        2,
    )
    scores = {}
    for most in (0, 4):
        monkeypatch.setattr("gzkcore.passes.normal_equations.MOST_TARGETS", most)
        scores[most] = clone(model).fit(X, y).cv_results_["mean_test_score"]
    assert_allclose(scores[4], scores[0], rtol=RIDGE["solved twice"]())
    assert (scores[4] != scores[0]).any(), "conjugate gradients were not used"


# ---- bad input

X, Y, _ = data(40)


@pytest.mark.parametrize("Model", BOTH)
def test_a_batch_has_the_targets_of_the_first(Model):
    model = Model(RBF9).partial_fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=r"y has shape \(40,\), but .* before has \(n, 2\)"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match=r"NaN.*row 39, column 1"):
        model.predict(np.where(np.arange(120).reshape(40, 3) == 118, np.nan, X))
    assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("Model", BOTH)
def test_what_leaves_the_range_of_float32_is_named(Model):
    single = X.astype(np.float32)
    with pytest.raises(ValueError, match=r"y is so large that .* with float32"):
        Model(RBF9).fit(single, 1e39 * Y)
    for weight in (1e-92, 1e80):
        with pytest.raises(ValueError, match=r"sample_weight .* so small that float32 features"):
            Model(RBF9).fit(single, Y, np.full(40, weight))
        assert np.isfinite(Model(RBF9).fit(X, Y, np.full(40, weight)).coef_).all()


def test_rounding_is_not_what_features_leave_of_the_kernel():
    """Fourier features have |z(x)|^2 = k(x, x), so that a small alpha has nothing to divide."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 1))
    y = np.sin(4 * X[:, 0]) + 0.01 * rng.standard_normal(600)
    model = RandomFeatureRidge(RandomFourierFeatures(Gaussian(1.0), 128, random_state=0), 1e-8)
    double = clone(model).fit(X, y).predict(X, return_std=True)[1]
    X = X.astype(np.float32)
    with pytest.warns(LinAlgWarning, match="singular to working precision"):
        single = model.fit(X, y).predict(X, return_std=True)[1]
    assert_allclose(single, double, rtol=0.05)


@pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
@pytest.mark.parametrize("Model", BOTH)
def test_dates_are_no_numbers(kind, Model):
    with pytest.raises(TypeError, match=r"y is of type (date|timedel).*; pass, for example, days"):
        Model(RBF9).fit(X, np.arange(40).astype(kind))


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"alpha": -1.0}, ValueError, "alpha=-1.0 must be finite and >= 0"),
    ({"alpha": np.nan}, ValueError, "alpha=nan must be finite"),
    ({"alpha": "big"}, TypeError, "alpha='big' is not numeric"),
    ({"alpha": [1.0, 2.0, 3.0]}, ValueError, r"alpha has shape \(3,\), but y has 2 target"),
    ({"alphas": []}, ValueError, r"alphas=\[\] must be a list"),
    ({"alphas": [1.0, -2.0]}, ValueError, r"alphas=\[1.0, -2.0\] must be finite and >= 0"),
    ({"cv": 1}, ValueError, 'cv=1 must be None, "loo" or a whole number of folds >= 2'),
    ({"cv": "two"}, ValueError, "cv='two' must be None"),
    ({"cv": 41}, ValueError, "cv=41 needs 41 rows or more, but n_samples=40"),
    ({"kernel_grid": {"gama": [1.0]}}, ValueError, r"kernel_grid has the names \['gama'\], which must be parameters"),
    ({"kernel_grid": {"gamma": 1.0}}, TypeError, 'must be like {"gamma": '),
    ({"kernel_grid": [1.0]}, TypeError, r"kernel_grid=\[1.0\] must be like"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    Model = RandomFeatureRidge if "alpha" in parameters else RandomFeatureRidgeCV
    with pytest.raises(error, match=message):
        Model(Nystroem(n_components=5), **parameters).fit(X, Y)


def test_leave_one_out_needs_all_rows_at_once():
    with pytest.raises(ValueError, match='cv="loo" reads the rows twice; use fit'):
        RandomFeatureRidgeCV(RBF9, cv="loo").partial_fit(X, Y)


# ---- classifiers (what they share with other learners is in test_base)


def labelled(n=300, n_classes=3):
    X, y, weight = data(n, 1)
    edges = np.quantile(y, np.arange(1, n_classes) / n_classes)
    return X, np.array(["low", "middle", "high"])[np.digitize(y, edges)], weight


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "plain"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"low": 3.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_as_scikit_learn(n_classes, class_weight, weighted, fit_intercept):
    X, y, weight = labelled(n_classes=n_classes)
    weight = weight if weighted else None
    options = {"class_weight": class_weight, "fit_intercept": fit_intercept}
    Z = RBF9.fit(X).transform(X)
    model = RandomFeatureRidgeClassifier(RBF9, 0.1, **options).fit(X, y, weight)
    other = RidgeClassifier(0.1, solver="cholesky", **options).fit(Z, y, weight)
    assert_array_equal(model.classes_, other.classes_)
    wanted = other.decision_function(Z)
    assert_allclose(
        model.decision_function(X), wanted, rtol=RIDGE["predicted"](), atol=RIDGE["solved"]()
    )
    assert_array_equal(model.predict(X), other.predict(Z))
    assert model.score(X, y, weight) == pytest.approx(other.score(Z, y, weight))


@pytest.mark.parametrize("dtype", ["int8", "float32", "bool", "U1", object])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classes_keep_their_type(class_weight, dtype):
    X, _, _ = data(40, 1)
    y = (X[:, 0] > 0).astype(dtype)
    if dtype is object:
        y = np.where(X[:, 0] > 0, "a", "bb").astype(object)
    model = RandomFeatureRidgeClassifier(RBF9, class_weight=class_weight)
    batches = [(X[:9], y[:9]), (X[9:], y[9:])]
    of_batches = np.dtype("U2") if dtype is object else y.dtype
    for fitted, wanted in (
        (clone(model).fit(X, y), y.dtype),
        (clone(model).fit(batches), of_batches),
    ):
        assert fitted.classes_.dtype == fitted.predict(X).dtype == wanted
        assert_array_equal(fitted.classes_, np.unique(y))


def test_labels_of_batches_are_of_one_kind():
    X, _, _ = data(6, 1)
    batches = [(X[:3], [0, 1, 0]), (X[3:], ["a", "b", "a"])]
    with pytest.raises(ValueError, match=r"text in one batch .* another, \['a', 'b', 0"):
        RandomFeatureRidgeClassifier(RBF9).fit(batches)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_as_the_reference(n_classes):
    X, y, weight = labelled(n_classes=n_classes)
    model = RandomFeatureRidgeClassifier(RBF9, 0.3).fit(X, y, weight)
    Z = model.features_.transform(X)
    classes, coef, intercept = reference.ridge.ridge_classifier(Z, y.tolist(), 0.3, True, weight)
    assert model.classes_.tolist() == classes
    each = slice(1, 2) if n_classes == 2 else slice(None)
    assert_allclose(np.atleast_2d(model.coef_), coef[each], rtol=RIDGE["solved"]())
    assert_allclose(np.atleast_1d(model.intercept_), intercept[each], rtol=RIDGE["solved"]())


@pytest.mark.parametrize("cv", [None, 3, "loo"])
def test_alpha_of_a_classifier_is_chosen_as_of_the_targets(cv):
    X, y, weight = labelled()
    model = RandomFeatureRidgeClassifierCV(RBF9, ALPHAS, cv=cv).fit(X, y, weight)
    targets = 2.0 * (y[:, None] == model.classes_) - 1.0
    other = RandomFeatureRidgeCV(RBF9, ALPHAS, cv=cv).fit(X, targets, weight)
    assert model.alpha_ == other.alpha_
    assert_allclose(
        model.cv_results_["mean_test_score"],
        other.cv_results_["mean_test_score"],
        rtol=RIDGE["solved"](),
    )
    refit = RandomFeatureRidgeClassifier(RBF9, model.alpha_).fit(X, y, weight)
    assert_allclose(model.coef_, refit.coef_, rtol=RIDGE["solved"]())
    if cv == "loo":
        unweighted = RandomFeatureRidgeClassifierCV(RBF9, ALPHAS, cv=cv).fit(X, y)
        theirs = RidgeClassifierCV(ALPHAS).fit(unweighted.features_.transform(X), y)
        assert unweighted.alpha_ == theirs.alpha_


def test_a_classifier_chooses_the_kernel_from_one_gram():
    X, y = sphere()
    labels = np.where(y > np.median(y), "up", "down")
    features = GegenbauerFeatures(n_components=49, basis="harmonic")
    grid = {"gamma": [0.01, 3.0]}
    model = RandomFeatureRidgeClassifierCV(features, ALPHAS, grid, class_weight="balanced")
    assert model.fit(X, labels).best_params_["gamma"] == 3.0
    assert model.score(X, labels) > 0.85


def test_classes_that_come_later():
    X, y, _ = labelled()
    order = np.argsort(y, kind="stable")  # one class after the other
    X, y = X[order], y[order]
    features = FrozenEstimator(RBF9.fit(X))
    model = RandomFeatureRidgeClassifier(features, class_weight={"low": 2.0})
    whole = clone(model).fit(X, y)
    for rows in (slice(0, 100), slice(100, 150), slice(150, 300)):
        model.partial_fit(X[rows], y[rows], classes=["middle", "low", "high"])
    assert_allclose(model.coef_, whole.coef_, rtol=RIDGE["solved"]())
    with pytest.raises(ValueError, match=r"y\[2\] = .*'other'.* is not one of the classes"):
        model.partial_fit(X[:3], ["low", "low", "other"])
    with pytest.raises(ValueError, match=r"classes=.* are not those of the first batch"):
        model.partial_fit(X[:3], y[:3], classes=["low", "high"])
    with pytest.raises(ValueError, match="y has one class"):
        clone(model).partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match='class_weight="balanced" needs the labels of all rows'):
        clone(model).set_params(class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize("labels", [[True, False], [0, 1], [-1, 5], [0.0, 2.0]])
def test_labels_of_any_kind(labels):
    X, y, _ = labelled(n_classes=2)
    given = np.array(labels)[(y == "low").astype(int)]
    model = RandomFeatureRidgeClassifier(RBF9).fit(X, given)
    assert model.predict(X).dtype == given.dtype
    assert_array_equal(model.classes_, np.unique(given))


@pytest.mark.parametrize(("y", "message"), [
    (np.linspace(0, 1, 300), "label type: continuous.* numbers use RandomFeatureRidge$"),
    (np.ones(300), "y has one class, .*, and a classifier needs two"),
    (np.ones((300, 2), int), r"y has shape \(300, 2\); pass one value for each row"),
    (np.ones(299, int), "X has 300 rows, but y has 299"),
])  # fmt: skip
def test_bad_labels(y, message):
    X, _, _ = labelled()
    with pytest.raises(ValueError, match=message):
        RandomFeatureRidgeClassifier(RBF9).fit(X, y)


@pytest.mark.parametrize("class_weight", ["even", 2.0])
def test_bad_class_weights(class_weight):
    X, y, _ = labelled()
    with pytest.raises(ValueError, match=r'class_weight=.* must be None, "balanced" or a dict'):
        RandomFeatureRidgeClassifier(RBF9, class_weight=class_weight).fit(X, y)


def test_a_classifier_is_no_regressor():
    for model in (RandomFeatureRidgeClassifier(), RandomFeatureRidgeClassifierCV()):
        assert is_classifier(model)
        assert not is_regressor(model)


# ---- models that saw different rows


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_merged_models_are_one(model, n_targets):
    X, y, weight = data(600, n_targets)
    y[300:] += 7  # the parts have means of their own
    features = FrozenEstimator(clone(RBF9).fit(X))
    one = model(features).fit(X, y, weight)
    parts = [
        model(features).partial_fit(X[rows], y[rows], weight[rows])
        for rows in (slice(0, 200), slice(200, 350), slice(350, 600))
    ]
    before = parts[1].moments_.sums.copy()
    merged = parts[0].merge(parts[1]).merge(parts[2])
    assert_array_equal(parts[1].moments_.sums, before)
    assert_allclose(merged.predict(X), one.predict(X), rtol=RIDGE["cancelled"]())
    assert merged.moments_.n_rows == 600
    with pytest.raises(NotFittedError, match="to be merged is not fitted; call"):
        merged.merge(model(features))
    with pytest.raises(ValueError, match="merge models with the same targets"):
        merged.merge(model(features).fit(X, np.column_stack([X[:, 0]] * 2)))


class Doubled(BaseEstimator):
    """A transformer that knows nothing of scikit-learn's output containers."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return 2.0 * X


def test_steps_may_know_nothing_of_data_frames():
    X, y, _ = data(100, 1)
    model = RandomFeatureRidge(make_pipeline(StandardScaler(), Doubled())).fit(X, y)
    assert model.score(X, y) > 0
