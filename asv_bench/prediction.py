"""The table of `tables.py prediction`: our defaults beside other learners, on many tables.

Without --rows ours and boosting are fitted to all rows of the large tables.
"""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pandas as pd
from boosters import Booster, Classifier, catboost, lightgbm, xgboost
from cost import cost_of
from prediction_data import CLASSES, LARGE, MORE_TREES, NUMBERS, ONLY_LARGE, table
from printing import check_known, mean_and_spread, report, show
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
QUICK_ROWS = 300  # --quick fits to so many
BEST = 1.02  # errors within this factor of the least count as the best
MOST_LEVELS = 255  # that scikit-learn's boosting takes in a column of categories


def options_of_prediction(parser):
    """Add the options of the table."""
    parser.add_argument("--splits", type=int, help="5; without --rows 1")
    parser.add_argument("--rows", type=int, help="to fit to at most; by default all")
    parser.add_argument("--tuned", action="store_true", help="tuned boosting too, which takes long")
    parser.add_argument("--learners", help="names, by commas; without --rows ours and boosting")
    parser.add_argument("parts", nargs="*", help="names of tables; without --rows the large ones")


def prediction(options):
    """Errors, times and memory of learners with their defaults, each in its own process."""
    check_known("prediction", options.parts, [*NUMBERS, *ONLY_LARGE, *CLASSES], "table")
    check_known("prediction", _learners(options), LEARNERS, "learner")
    asked = options.parts or ([*NUMBERS, *CLASSES] if options.rows else LARGE)
    for kind in ("numbers", "classes"):
        tables = [name for name in asked if (name in CLASSES) == (kind == "classes")]
        if tables:
            _show(kind, tables, options)


def _show(kind, tables, options):
    rows = QUICK_ROWS if options.quick else options.rows or FULL
    n_splits = 1 if options.quick else options.splits or (5 if options.rows else 1)
    measured, failures = _measured_tables(kind, tables, n_splits, rows, options)
    fitted = "all others" if rows == FULL else f"at most {rows:,} rows"
    splits = f"{counted(n_splits, 'split')}, a tenth held out, {fitted} to fit to"
    what = "Root mean squared error, in standard deviations" if kind == "numbers" else "Errors in %"
    notes = (
        f"{what}: mean and standard deviation over {splits}. {_summary(measured)} Categories: ours "
        "and all boosting take the frame, others zeros and ones; all but trees get standardised "
        "columns; on the globe all others get unit vectors."
    )
    means = partial(_rows, measured, average=mean_and_spread)
    show(f"Prediction of {kind}", means("error"), " ".join([notes, *failures]), options)
    if kind == "classes":
        notes = "Of those that give probabilities."
        show("Their logarithmic loss", means("loss"), notes, options)
    medians = partial(_rows, measured, average=np.median)
    show("Seconds of fit and prediction", medians("seconds"), f"Medians over {splits}.", options)
    show("Processor seconds of the fit", medians("fit"), "Medians; all threads.", options)
    show("Processor seconds of the predictions", medians("predictions"), "The same.", options)
    notes = "Medians; the peak above what the process held before, with its libraries warm."
    show("Megabytes of fit and prediction", medians("megabytes"), notes, options)
    show("Rows and form", _forms(measured), "Rows fitted to, and what gzkcore chose.", options)


def _measured_tables(kind, tables, n_splits, rows, options):
    """Return {table: {learner: its results}}, and what could not be measured."""
    measured, failures = {name: {} for name in tables}, {}
    for name, results in measured.items():
        for learner in _learners(options):
            for split in range(n_splits if learner in _known(name) else 0):
                report(f"{name}, split {split}: {learner}")
                result = _apart(learner, kind, name, split, rows)
                report(str(result))
                if isinstance(result, str):
                    failures[result] = None
                    break
                results.setdefault(learner, []).append(result)
    return measured, list(failures)


def _learners(options):
    if options.learners:
        return options.learners.split(",")
    usual = LEARNERS if options.rows else ["gzkcore", "boosting", "LightGBM", "XGBoost", "CatBoost"]
    return [name for name in usual if name != TUNED] + [TUNED] * options.tuned


def _known(table):
    """Return the learners of a table."""
    return WITH_MORE_TREES if table == MORE_TREES else LEARNERS


def _rows(measured, what, average):
    """Return a row for each table with one measure of every learner."""
    rows = []
    for name, results in measured.items():
        values = {learner: [run[what] for run in runs] for learner, runs in results.items()}
        known = {learner: each for learner, each in values.items() if not np.isnan(each).any()}
        rows.append({"table": name} | {learner: average(each) for learner, each in known.items()})
    return rows


def _forms(measured):
    """Return a row for each table: how many rows were fitted to, and our form."""
    return [
        {"table": name, "rows": runs[0]["rows"], "form": runs[0]["form"]}
        for name, results in measured.items()
        for runs in list(results.values())[:1]  # ours, if it was measured
    ]


def _relative(results):
    """Return each learner's mean ratio of its error to the least one."""
    means = {learner: np.mean([run["error"] for run in runs]) for learner, runs in results.items()}
    least = max(min(means.values(), default=0.0), 1e-12)
    return {learner: mean / least for learner, mean in means.items()}


def _summary(measured):
    ranks = {}
    for name, results in measured.items():
        for learner, relative in _relative(results).items() if name != MORE_TREES else ():
            ranks.setdefault(learner, []).append(relative)
    counts = (
        f"{learner} {sum(value <= BEST for value in values)} of {len(values)}"
        for learner, values in ranks.items()
    )
    return f"Best, or within 2 % of the best: {', '.join(counts)}."


def _apart(learner, kind, name, split, rows):
    """Measure one learner in its own process; return the reason if it can't run."""
    *_, most = _known(name)[learner]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(_measured, learner, kind, name, split, min(rows, most)).result()
        except ImportError as missing:
            return f"Left out: {missing}."
        except Exception as failed:  # noqa: BLE001  one learner's failure is a line, not the end
            return f"{learner} failed on {name}: {type(failed).__name__}: {failed}"


def _measured(learner, kind, name, split, rows):
    """Return errors, wall and processor seconds, megabytes, rows fitted to, and our form."""
    warnings.simplefilter("ignore")
    X, y, points, truth = table(name, split, rows)
    if not learner.startswith("gzkcore"):
        X, points = (for_others(_on_sphere(frame)) for frame in (X, points))
    if learner in ("boosting", TUNED):
        X, points = map(_with_codes, (X, points))
    new = _known(name)[learner][0 if kind == "numbers" else 1]
    if new is None:
        raise ImportError(f"{learner} predicts no {kind}")
    new(split).fit(X[:WARM_ROWS], y[:WARM_ROWS]).predict(points[:1])

    def fitted():
        start = time.process_time()
        model = new(split).fit(X, y)
        middle = time.process_time()
        results = model.predict(points)
        return model, results, middle - start, time.process_time() - middle

    (model, results, fit, predictions), seconds, megabytes = cost_of(fitted)
    loss = np.nan
    if kind == "numbers":
        error = float(np.sqrt(np.mean(np.square(results - truth))))
    else:
        error = 100 * float(np.mean(results != truth))
        if hasattr(model, "predict_proba"):
            loss = log_loss(truth, model.predict_proba(points), labels=model.classes_)
    return {
        "error": error, "loss": loss, "seconds": seconds, "megabytes": megabytes, "fit": fit,
        "predictions": predictions, "rows": len(y), "form": _form(getattr(model, "model_", None)),
    }  # fmt: skip


def _form(model):
    """Return the form of a table learner's model in a word, "" if it is none."""
    forms = {gzkcore.NearKernelRidge: "near", gzkcore.RandomFeatureRidgeCV: "features"}
    whole = "centres" if getattr(model, "centers", None) else "whole"
    return forms.get(type(model), whole) if model is not None else ""


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


def _with_codes(frame):
    """Replace categories of more levels than scikit-learn's boosting takes by their codes."""
    names = frame.select_dtypes("category")
    many = [name for name in names if frame[name].cat.categories.size > MOST_LEVELS]
    return frame.assign(**{name: frame[name].cat.codes for name in many})


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


def _larger_boosting(seed):
    model = HistGradientBoostingRegressor(max_iter=600, max_leaf_nodes=127, random_state=seed)
    return _boosting(model)


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
WITH_MORE_TREES = {
    "boosting": (_larger_boosting, None, FULL),
    "LightGBM": (lambda seed: Booster(lightgbm("Regressor", n_estimators=1000), seed), None, FULL),
}
