"""The table of `tables.py prediction`: our defaults beside other learners, on many tables."""

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
from boosters import Booster, Classifier, catboost, lightgbm, xgboost
from cost import cost_of
from prediction_data import CLASSES, NUMBERS, table
from printing import asked_parts, check_known, mean_and_spread, report, show
from processes import ExactProcess, FeatureProcess, SparseProcess, VecchiaProcess
from scipy.stats import loguniform
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import RandomizedSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import gzkcore
from gzkcore._util.wording import counted

WARM_ROWS = 100  # a first fit to so many rows imports, compiles and starts threads
BEST = 1.02  # errors within this factor of the least count as the best


def options_of_prediction(parser):
    """Add the options of the table."""
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=FULL, help="to fit to at most; all")
    parser.add_argument("--tuned", action="store_true", help="tuned boosting too, which takes long")
    parser.add_argument("--learners", help="names of some, by commas; by default all but the tuned")
    parser.add_argument("parts", nargs="*", help="names of tables; by default all")


def prediction(options):
    """Errors, times and memory of learners with their defaults, each in its own process."""
    every = asked_parts("prediction", options, [*NUMBERS, *CLASSES], "table")
    check_known("prediction", _learners(options), LEARNERS, "learner")
    for kind, tables in (("numbers", NUMBERS), ("classes", CLASSES)):
        asked = [name for name in tables if name in every]
        if asked:
            _show(kind, asked, options)


def _show(kind, tables, options):
    learners = _learners(options)
    measured, ranks = {}, {name: [] for name in learners}
    for name in tables:
        results = measured[name] = {}
        for learner in learners:
            for split in range(1 if options.quick else options.splits):
                report(f"{name}, split {split}: {learner}")
                result = _apart(learner, kind, name, split, options.rows)
                if isinstance(result, str):
                    report(result)
                    break
                report(", ".join(f"{value:.4g}" for value in result))
                results.setdefault(learner, []).append(result)
        for learner, relative in _relative(results).items():
            ranks[learner].append(relative)
    splits = f"{counted(options.splits, 'split')} 90/10, at most {options.rows:,} rows to fit to"
    what = "Root mean squared error, in standard deviations" if kind == "numbers" else "Errors in %"
    notes = (
        f"{what}: mean and standard deviation over {splits}. {_summary(ranks)} Categories: ours "
        "and all boosting take the frame, others zeros and ones; all but trees get standardised "
        "columns; on the globe all others get unit vectors."
    )
    show(f"Prediction of {kind}", _rows(measured, 0, mean_and_spread), notes, options)
    if kind == "classes":
        losses = _rows(measured, 1, mean_and_spread)
        show("Their logarithmic loss", losses, "Of those that give probabilities.", options)
    seconds, megabytes = (_rows(measured, what, np.median) for what in (2, 3))
    show("Seconds of fit and prediction", seconds, f"Medians over {splits}.", options)
    notes = "Medians; the peak above what the process held before, with its libraries warm."
    show("Megabytes of fit and prediction", megabytes, notes, options)


def _learners(options):
    if options.learners:
        return options.learners.split(",")
    return [name for name in LEARNERS if options.tuned or name != TUNED]


def _rows(measured, what, average):
    """Return a row for each table with one measure of every learner."""
    rows = []
    for name, results in measured.items():
        values = {learner: np.array(each)[:, what] for learner, each in results.items()}
        known = {learner: each for learner, each in values.items() if not np.isnan(each).any()}
        rows.append({"table": name} | {learner: average(each) for learner, each in known.items()})
    return rows


def _relative(results):
    """Return each learner's mean ratio of its error to the least one."""
    means = {
        learner: np.mean([value[0] for value in values]) for learner, values in results.items()
    }
    least = max(min(means.values(), default=0.0), 1e-12)
    return {learner: mean / least for learner, mean in means.items()}


def _summary(ranks):
    counts = (
        f"{learner} {sum(value <= BEST for value in values)} of {len(values)}"
        for learner, values in ranks.items()
        if values
    )
    return f"Best, or within 2 % of the best: {', '.join(counts)}."


def _apart(learner, kind, name, split, rows):
    """Measure one learner in its own process; return the reason if it can't run."""
    *_, most = LEARNERS[learner]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(_measured, learner, kind, name, split, min(rows, most)).result()
        except ImportError as missing:
            return f"left out: {missing}"
        except Exception as failed:  # noqa: BLE001  one learner's failure is a line, not the end
            return f"failed: {type(failed).__name__}: {failed}"


def _measured(learner, kind, name, split, rows):
    """Return error, logarithmic loss, seconds and megabytes."""
    warnings.simplefilter("ignore")
    X, y, points, truth = table(name, split, rows)
    if not learner.startswith("gzkcore"):
        X, points = (for_others(_on_sphere(frame)) for frame in (X, points))
    new = LEARNERS[learner][0 if kind == "numbers" else 1]
    if new is None:
        raise ImportError("it predicts no " + kind)
    new(split).fit(X[:WARM_ROWS], y[:WARM_ROWS]).predict(points[:1])

    def fitted():
        model = new(split).fit(X, y)
        return model, model.predict(points)

    (model, results), seconds, megabytes = cost_of(fitted)
    if kind == "numbers":
        return float(np.sqrt(np.mean(np.square(results - truth)))), np.nan, seconds, megabytes
    loss = np.nan
    if hasattr(model, "predict_proba"):
        loss = log_loss(truth, model.predict_proba(points), labels=model.classes_)
    return 100 * float(np.mean(results != truth)), loss, seconds, megabytes


def _on_sphere(frame):
    """Return a frame with unit vectors for latitude and longitude."""
    if "latitude" not in frame:
        return frame
    vectors = gzkcore.LatLonToSphere().transform(frame[["latitude", "longitude"]].to_numpy())
    others = frame.drop(columns=["latitude", "longitude"])
    return others.assign(x=vectors[:, 0], y=vectors[:, 1], z=vectors[:, 2])


def for_others(frame):
    """Return a frame with days for dates, and a level for each missing text, which others need."""
    frame = frame.copy()
    for name, column in frame.items():
        if column.dtype.kind == "M":
            frame[name] = (column - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        elif column.dtype == "category" and column.isna().any():
            frame[name] = column.cat.add_categories("none").fillna("none")
    return frame


# ---- learners: for numbers, for classes (None: none), and the most rows they are asked for


def _numeric(model):
    """Encode categories as zeros and ones, and standardise numbers."""
    categories = make_column_selector(dtype_include="category")
    return make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
            remainder=make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
        ),
        model,
    )


def _encoder():
    return _numeric(StandardScaler())


def _ordinal(model):
    categories = make_column_selector(dtype_include="category")
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(
        make_column_transformer((encoder, categories), remainder="passthrough"), model
    )


def _boosting(model):
    return model.set_params(categorical_features="from_dtype")


def _tuned(model, seed):
    """Boosting, the best of twenty draws by three folds."""
    choices = {
        "learning_rate": loguniform(0.01, 0.3),
        "max_iter": [100, 300, 1000],
        "max_leaf_nodes": [15, 31, 63, 127],
        "min_samples_leaf": [5, 20, 50],
        "l2_regularization": loguniform(1e-3, 10),
    }
    return RandomizedSearchCV(_boosting(model), choices, n_iter=20, cv=3, random_state=seed)


class _Xrfm:
    """xRFM with its defaults, on half a validation share as its authors use it."""

    def __init__(self, seed):
        from xrfm import xRFM

        self.seed, self.model = seed, xRFM(random_state=seed)

    def fit(self, X, y):
        from sklearn.model_selection import train_test_split

        self.encoder = _encoder().fit(X)
        rows = self.encoder.transform(X).astype(np.float32)
        parts = train_test_split(
            rows, np.asarray(y, dtype=np.float32), test_size=0.2, random_state=self.seed
        )
        fit, held_out, targets, held_targets = parts
        self.model.fit(fit, targets[:, None], held_out, held_targets[:, None])
        return self

    def predict(self, X):
        return self.model.predict(self.encoder.transform(X).astype(np.float32)).ravel()


TUNED = "tuned boosting"
FULL = 10**9
LEARNERS = {
    "gzkcore": (
        lambda seed: gzkcore.KernelRegressor(random_state=seed),
        lambda seed: gzkcore.KernelClassifier(random_state=seed),
        FULL,
    ),
    "boosting": (
        lambda seed: _boosting(HistGradientBoostingRegressor(random_state=seed)),
        lambda seed: _boosting(HistGradientBoostingClassifier(random_state=seed)),
        FULL,
    ),
    TUNED: (
        lambda seed: _tuned(HistGradientBoostingRegressor(random_state=seed), seed),
        lambda seed: _tuned(HistGradientBoostingClassifier(random_state=seed), seed),
        FULL,
    ),
    "LightGBM": (
        lambda seed: Booster(lightgbm("Regressor"), seed),
        lambda seed: Classifier(lightgbm("Classifier"), seed),
        FULL,
    ),
    "XGBoost": (
        lambda seed: Booster(xgboost("Regressor"), seed),
        lambda seed: Classifier(xgboost("Classifier"), seed),
        FULL,
    ),
    "CatBoost": (
        lambda seed: Booster(catboost("Regressor"), seed),
        lambda seed: Classifier(catboost("Classifier"), seed),
        FULL,
    ),
    "random forest": (
        lambda seed: _ordinal(RandomForestRegressor(random_state=seed, n_jobs=-1)),
        lambda seed: _ordinal(RandomForestClassifier(random_state=seed, n_jobs=-1)),
        FULL,
    ),
    "support vectors": (
        lambda _: _numeric(SVR(cache_size=1000)),
        lambda _: _numeric(SVC(cache_size=1000)),
        20_000,
    ),
    "neural network": (
        lambda seed: _numeric(MLPRegressor(random_state=seed)),
        lambda seed: _numeric(MLPClassifier(random_state=seed)),
        FULL,
    ),
    "linear": (
        lambda _: _numeric(RidgeCV(np.logspace(-3, 3, 13))),
        lambda _: _numeric(LogisticRegression(max_iter=1000)),
        FULL,
    ),
    "xRFM": (_Xrfm, None, FULL),
    "exact process": (lambda seed: ExactProcess(_encoder, seed), None, 5000),
    "SVGP": (lambda seed: SparseProcess(_encoder, seed), None, FULL),
    "GPBoost": (lambda seed: VecchiaProcess(_encoder, seed), None, FULL),
    "xGPR": (lambda seed: FeatureProcess(_encoder, seed), None, FULL),
}
