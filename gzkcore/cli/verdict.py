"""The test of a learner on held-out rows, beside baselines: errors, columns, uncertainty."""

import functools
import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import precision_score, r2_score, recall_score, roc_auc_score

from gzkcore._util.typing import Doubles, Integers, OnProgress
from gzkcore._util.warn import collected_warnings, warn
from gzkcore.learn.held_out import at_most
from gzkcore.learn.near_kernel_ridge import NearKernelRidge
from gzkcore.rows.frames import Frame
from gzkcore.rows.values import Values
from gzkcore.solve.near_variances import NearVariances

from .baselines import CLASSIFICATION, REGRESSION, Baseline
from .frame_rows import FrameRows
from .hints import about_coverage
from .output import HELD_OUT

SURE = 0.9  # a prediction with at least this probability is called sure
# Standard deviations of all held-out rows are worth their time up to so many rows or centres of a
# model, or where rows near by give them; else those of some held-out rows. Near rows give them with
# the predictions.
STD_ROWS, SOME_ROWS = 6000, 300
MOST_ROWS, MOST_COLUMNS = 1000, 50  # so many columns are shuffled, each on so many rows
LEAST_RISE = 1.01  # a column matters if shuffling it multiplies the error by more


@dataclass(frozen=True)
class Tested:
    """The models that predict the held-out rows: one, or one for each fold that it did not see."""

    models: list[Any]
    fitted: Sequence[Integers | slice]  # the rows of the fit that each model learned from
    folds: Integers  # the index of the model that predicts each held-out row

    @property
    def classes(self) -> Values:
        """All labels, in order."""
        return np.unique(np.concatenate([model.classes_ for model in self.models]))

    def predict(self, rows: Frame) -> Doubles:
        """Return predictions of the held-out rows, or the probabilities of all labels."""
        if not hasattr(self.models[0], "classes_"):
            return self.gathered(lambda _, model, held: model.predict(rows.take(held)))
        return self.gathered(
            lambda i, model, held: self.aligned(i, model.predict_proba(rows.take(held)))
        )

    def std(self, rows: Frame, most: int) -> Doubles:
        """Return the standard deviations of held-out rows, NaN but for so many of each model."""

        def of_some(_: int, model: Any, held: Integers) -> Doubles:
            std = np.full(len(held), np.nan)
            some = at_most(np.arange(len(held)), most, np.random.default_rng(0))
            std[some] = model.predict(rows.take(held[some]), return_std=True)[1]
            return std

        return self.gathered(of_some)

    def aligned(self, i: int, shares: Doubles) -> Doubles:
        """Return the probabilities of all labels, given those of the labels of model i."""
        probabilities = np.zeros((len(shares), len(self.classes)))
        probabilities[:, np.searchsorted(self.classes, self.models[i].classes_)] = shares
        return probabilities

    def gathered(self, work: Callable[[int, Any, Integers], Doubles]) -> Doubles:
        """Return work(i, model, rows) of the rows of each model, in the order of the rows."""
        folds = [np.flatnonzero(self.folds == i) for i in range(len(self.models))]
        parts = [work(i, self.models[i], held) for i, held in enumerate(folds)]
        return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(folds))])


@dataclass(frozen=True)
class Verdict:
    """What a learner is worth on held-out rows, beside baselines.

    `methods` has, for the learner and then for each baseline, `method`, `seconds` of a fit, errors
    on the held-out rows, and `of_folds`, the first of these errors on each fold (without folds an
    empty list). Errors of numbers are `rmse`, `plus_minus` (of the 95 % interval) and `r2` (None of
    a single row), those of labels `error_rate`, `plus_minus` (half the width of its 95 % interval,
    Wilson's), `low` and `high` (its ends) and `log_loss`; of two labels also `recall`, `precision`
    and `roc_auc` of the rarer (None where they are not defined).
    """

    methods: list[dict[str, Any]]
    error_of_some: float  # root mean squared, or log loss, on some of the rows
    shuffled: dict[str, float]  # the same with each column shuffled
    sure: dict[str, float | None]  # how sure predictions are
    predicted: Values
    errors: Doubles  # actual less predicted; for labels 1 if wrong, else 0
    losses: Doubles  # errors of numbers, log losses of labels
    spread: Doubles  # standard deviations (NaN: not known), or probabilities of predicted labels
    failed: list[str]  # the baselines that could not be fitted, and why


def judge_model(
    tested: Tested, rows: FrameRows, took: float, tried: dict[str, list[str]], seed: int,
    report: OnProgress,
) -> Verdict:  # fmt: skip
    """Judge models by the held-out rows.

    A fit took so many seconds; `tried` has the columns to shuffle, as in `_shuffled`.
    """
    report(HELD_OUT, None)
    tested.models[0]._hear_of_solves(report, HELD_OUT)  # those of folds have few rows
    truth = rows.truth
    with collected_warnings() as caught:
        predicted = tested.predict(rows.test)
        sure, spread = _how_sure(tested, rows.test, truth, predicted)
    # The last by a column are beyond the others in it; numbers of rows are others in the file.
    unexpected = (
        str(told)
        for told, _ in caught
        if " is outside " not in str(told) or getattr(told, "columns", []) != [rows.by.last]
    )
    for message in dict.fromkeys(re.sub(r" in row \d+", "", told) for told in unexpected):
        warn(f"among the held-out rows: {message}")
    others, failed = _baselines(tested, rows, report)
    methods = [
        {"method": method, **_judged(tested, rows, truth, values), "seconds": seconds}
        | {"of_folds": _of_folds(tested, truth, values, rows.classify)}
        for method, values, seconds in [(type(tested.models[0]).__name__, predicted, took), *others]
    ]
    of_some, shuffled = _shuffled(tested, rows, tried, seed, report)
    if rows.classify:
        losses = _log_losses(tested.classes, truth, predicted)
        predicted = tested.classes[predicted.argmax(axis=1)]
        errors = (predicted != truth).astype(np.float64)
    else:
        losses = errors = truth - predicted
        if told := about_coverage(errors, spread, rows.by):
            warn(told)
    return Verdict(methods, of_some, shuffled, sure, predicted, errors, losses, spread, failed)


def _baselines(
    tested: Tested, rows: FrameRows, report: OnProgress
) -> tuple[list[tuple[str, Doubles, float]], list[str]]:
    """Return names, predictions of the held-out rows and seconds of a fit; and what failed.

    Every error is caught: a failing baseline must not lose the fit.
    """
    baselines = CLASSIFICATION if rows.classify else REGRESSION
    fitted: list[tuple[str, Doubles, float]] = []
    failed: list[str] = []
    for done, (name, predict) in enumerate(baselines.items()):
        report("baselines", done / len(baselines), name)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                work = functools.partial(_by_baseline, predict, tested, rows)
                predicted = tested.gathered(work)
                seconds = (time.perf_counter() - started) / len(tested.models)
                fitted.append((name, predicted, seconds))
            except Exception as error:  # noqa: BLE001  a baseline's, of any kind
                failed.append(f"{name} could not be fitted: {' '.join(str(error).split())}")
    report("baselines", 1)
    return fitted, failed


def _by_baseline(
    predict: Baseline, tested: Tested, rows: FrameRows, i: int, model: Any, held: Integers
) -> Doubles:
    """Fit a baseline to the rows of a model, and predict those that it predicts."""
    used = tested.fitted[i]
    train = rows.train if isinstance(used, slice) else rows.train.take(used)
    predicted = predict(train, rows.y[used], rows.test.take(held), model.encoder_)
    return tested.aligned(i, predicted) if rows.classify else predicted


def _of_folds(tested: Tested, truth: Values, predicted: Doubles, classify: bool) -> list[float]:
    """Return the error rate, or the root mean squared error, of each fold, if there are folds."""
    if len(tested.models) == 1:
        return []
    if classify:
        loss = (tested.classes[predicted.argmax(axis=1)] != truth).astype(np.float64)
    else:
        loss = np.square(truth - predicted)
    means = [float(loss[tested.folds == i].mean()) for i in range(len(tested.models))]
    return means if classify else [mean**0.5 for mean in means]


def _shuffled(
    tested: Tested, rows: FrameRows, tried: dict[str, list[str]], seed: int, report: OnProgress
) -> tuple[float, dict[str, float]]:
    """Return the error on some held-out rows, and with columns shuffled; of labels the log loss.

    The largest errors come first; `tried` has the columns that are shuffled together, by their
    name. Each takes a prediction of all rows.
    """
    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(len(rows.truth))[:MOST_ROWS])
    tested = replace(tested, folds=tested.folds[some])
    frame, truth = rows.test.take(some), rows.truth[some]

    def error(shown: Frame) -> float:
        with collected_warnings():  # the rows themselves were told of
            predicted = tested.predict(shown)
        if rows.classify:
            return float(_log_losses(tested.classes, truth, predicted).mean())
        return float(np.sqrt(np.square(truth - predicted).mean()))

    errors = {}
    for done, (name, columns) in enumerate(list(tried.items())[:MOST_COLUMNS]):
        report("shuffling columns", done / min(len(tried), MOST_COLUMNS), name)
        order = rng.permutation(len(truth))
        mixed = {column: frame[column][order] for column in columns}
        errors[name] = error(Frame(frame.values | mixed))
    return error(frame), dict(sorted(errors.items(), key=lambda item: -item[1]))


def _judged(
    tested: Tested, rows: FrameRows, truth: Values, predicted: Doubles
) -> dict[str, float | None]:
    if not rows.classify:
        return _judged_numbers(truth, predicted)
    found = _judged_labels(tested.classes, truth, predicted)
    if rows.rarer is None:
        return found
    return found | _judged_rarer(rows.rarer, tested.classes, truth, predicted)


def _judged_numbers(truth: Doubles, predicted: Doubles) -> dict[str, float | None]:
    squares = np.square(truth - predicted)
    rmse = float(np.sqrt(squares.mean()))
    error = float(squares.std()) / (2 * max(rmse, 1e-300) * np.sqrt(len(truth)))
    r2 = float(r2_score(truth, predicted)) if len(truth) > 1 else None
    return {"rmse": rmse, "plus_minus": 1.96 * error, "r2": r2}


def _judged_labels(classes: Values, truth: Values, predicted: Doubles) -> dict[str, float | None]:
    wrong = float(np.mean(classes[predicted.argmax(axis=1)] != truth))
    low, high = wilson(wrong, len(truth))
    log_loss = float(_log_losses(classes, truth, predicted).mean())
    ends = {"plus_minus": (high - low) / 2, "low": low, "high": high}
    return {"error_rate": wrong, **ends, "log_loss": log_loss}


def _log_losses(classes: Values, truth: Values, predicted: Doubles) -> Doubles:
    """Return minus the logarithm of the probability of each row's label."""
    places = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
    of_truth = np.where(classes[places] == truth, predicted[np.arange(len(truth)), places], 0.0)
    return np.asarray(-np.log(np.maximum(of_truth, 1e-15)))


def _judged_rarer(
    label: Any, classes: Values, truth: Values, predicted: Doubles
) -> dict[str, float | None]:
    """Return how well rows of a label are found, of two; None where that is not defined."""
    actual, chosen = truth == label, classes[predicted.argmax(axis=1)] == label
    both = actual.any() and not actual.all()
    shares = predicted[:, classes == label].ravel()
    return {
        "recall": float(recall_score(actual, chosen)) if actual.any() else None,
        "precision": float(precision_score(actual, chosen)) if chosen.any() else None,
        "roc_auc": float(roc_auc_score(actual, shares)) if both else None,
    }


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of n rows, which has a width even for 0 and 1."""
    z2 = 1.96**2
    middle, wide = share + z2 / (2 * n), (z2 * (share * (1 - share) + z2 / (4 * n)) / n) ** 0.5
    low, high = ((middle + sign * wide) / (1 + z2 / n) for sign in (-1, 1))
    return min(max(low, 0.0), share), max(min(high, 1.0), share)


def _how_sure(
    tested: Tested, others: Frame, truth: Values, predicted: Doubles
) -> tuple[dict[str, float | None], Doubles]:
    """Return measures of how sure predictions are and how right, and `spread`."""
    if hasattr(tested.models[0], "classes_"):
        surest = predicted.max(axis=1)
        right = tested.classes[predicted.argmax(axis=1)] == truth
        sure = surest >= SURE
        return {
            "mean_probability": float(surest.mean()),
            "right": float(right.mean()),
            "sure": float(sure.mean()),
            "right_where_sure": float(right[sure].mean()) if sure.any() else None,
        }, surest
    sizes = np.abs(truth - predicted)
    measures: dict[str, float | None] = {"within": float(np.quantile(sizes, 0.95))}
    model: Any = tested.models[0].model_
    rows = getattr(model, "X_fit_", ())  # features keep none
    quick = isinstance(model, NearKernelRidge) or len(rows) <= STD_ROWS
    quick = quick or NearVariances.suit(model.kernel, rows)
    std = tested.std(others, len(sizes) if quick else SOME_ROWS)
    known = ~np.isnan(std)
    measures["std_rows"] = int(known.sum())
    measures["std_median"] = float(np.median(std[known]))
    measures["covered"] = float(np.mean(sizes[known] <= 1.96 * std[known]))
    return measures, std
