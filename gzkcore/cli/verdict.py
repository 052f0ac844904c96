"""What a model is worth on the rows held out, beside baselines: errors, columns, certainty."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore.rows.frames import Frame, Values

from .baselines import CLASSIFICATION, REGRESSION
from .columns import shuffled_errors
from .frame_rows import FrameRows
from .reports import Report

SURE = 0.9  # a probability from which on a prediction is called sure
# Rows or centres of a model up to which the standard deviations of the test are worth their time.
STD_ROWS = 6000

Judge: TypeAlias = Callable[[Values, Doubles], dict[str, float | None]]


@dataclass(frozen=True)
class Verdict:
    """What `judge_model` returns.

    Attributes
    ----------
    methods : list of dict
        Of ours, then of each baseline, `method`, `seconds` and errors on the rows held out: for
        numbers `rmse`, `plus_minus` (of the 95 % interval) and `r2`, for labels `error_rate`,
        `plus_minus` (half the width of its 95 % interval, Wilson's), `low` and `high` (its ends)
        and `log_loss`.
    error_of_some, shuffled : float, dict of float
        The first of these errors on some of the rows, and with each column shuffled.
    sure : dict
        How sure predictions are.
    predicted : ndarray of shape (n_test,)
    failed : list of str
        The baselines that could not be fitted, and why.
    """

    methods: list[dict[str, Any]]
    error_of_some: float
    shuffled: dict[str, float]
    sure: dict[str, float | None]
    predicted: Values
    failed: list[str]


def judge_model(
    model: Any, rows: FrameRows, took: float, columns: list[str], seed: int, report: Report
) -> Verdict:
    """Judge a model by the rows held out.

    Parameters
    ----------
    model : KernelRegressor or KernelClassifier
    rows : FrameRows
    took : float
        Seconds of its fit.
    columns : list of str
        Those that may matter, in the order in which they are tried.
    seed : int
    report : callable
    """
    predict = model.predict_proba if rows.classify else model.predict
    predicted, truth = predict(rows.test), rows.truth
    mean = 0.0 if rows.classify else float(np.mean(rows.y))
    judge = _judged_labels(model.classes_) if rows.classify else _judged_numbers(mean)
    methods = [{"method": type(model).__name__, **judge(truth, predicted), "seconds": took}]
    baselines, failed = _baselines(rows.train, rows.y, rows.test, truth, model, judge, report)
    methods += baselines
    of_some, shuffled = shuffled_errors(
        predict, rows.test, truth, lambda *both: float(next(iter(judge(*both).values())) or 0),
        columns, np.random.default_rng(seed),
    )  # fmt: skip
    sure = _how_sure(model, rows.test, truth, predicted)
    if rows.classify:
        predicted = model.classes_[predicted.argmax(axis=1)]
    return Verdict(methods, of_some, shuffled, sure, predicted, failed)


def _baselines(
    rows: Frame,
    y: Values,
    others: Frame,
    truth: Values,
    model: Any,
    judge: Judge,
    report: Report,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what each baseline is worth on the rows held out, and why others could not be fitted.

    Whatever they raise: the fit before may have taken hours.
    """
    baselines = CLASSIFICATION if hasattr(model, "classes_") else REGRESSION
    found: list[dict[str, Any]] = []
    failed: list[str] = []
    for done, (name, predict) in enumerate(baselines.items()):
        report("baselines", done / len(baselines))
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = predict(rows, y, others, model.encoder_)
            except Exception as error:  # noqa: BLE001  a baseline's, of any kind
                failed.append(f"{name} could not be fitted: {' '.join(str(error).split())}")
                continue
        seconds = time.perf_counter() - started
        found.append({"method": name, **judge(truth, values), "seconds": seconds})
    report("baselines", 1)
    return found, failed


def _judged_numbers(mean: float) -> Judge:
    def judge(truth: Values, predicted: Doubles) -> dict[str, float | None]:
        squares = np.square(truth - predicted)
        of_mean = float(np.mean(np.square(truth - mean)))
        rmse = float(np.sqrt(squares.mean()))
        error = float(squares.std()) / (2 * max(rmse, 1e-300) * np.sqrt(len(truth)))
        r2 = 1 - rmse**2 / of_mean if of_mean else None
        return {"rmse": rmse, "plus_minus": 1.96 * error, "r2": r2}

    return judge


def _judged_labels(classes: Values) -> Judge:
    def judge(truth: Values, predicted: Doubles) -> dict[str, float | None]:
        wrong = float(np.mean(classes[predicted.argmax(axis=1)] != truth))
        places = np.minimum(np.searchsorted(classes, truth), len(classes) - 1)
        given = np.where(classes[places] == truth, predicted[np.arange(len(truth)), places], 0.0)
        low, high = _wilson(wrong, len(truth))
        return {
            "error_rate": wrong,
            "plus_minus": (high - low) / 2,
            "low": low,
            "high": high,
            "log_loss": float(-np.mean(np.log(np.maximum(given, 1e-15)))),
        }

    return judge


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of n rows, which has a width also of none and all."""
    z2 = 1.96**2
    middle, wide = share + z2 / (2 * n), (z2 * (share * (1 - share) + z2 / (4 * n)) / n) ** 0.5
    low, high = ((middle + sign * wide) / (1 + z2 / n) for sign in (-1, 1))
    return min(max(low, 0.0), share), max(min(high, 1.0), share)


def _how_sure(
    model: Any, others: Frame, truth: Values, predicted: Doubles
) -> dict[str, float | None]:
    """Return how far predictions are off, and whether their probabilities and spreads are right."""
    if hasattr(model, "classes_"):
        surest = predicted.max(axis=1)
        right = model.classes_[predicted.argmax(axis=1)] == truth
        sure = surest >= SURE
        return {
            "mean_probability": float(surest.mean()),
            "right": float(right.mean()),
            "sure": float(sure.mean()),
            "right_where_sure": float(right[sure].mean()) if sure.any() else None,
        }
    found: dict[str, float | None] = {"within": float(np.quantile(np.abs(truth - predicted), 0.95))}
    if len(getattr(model.model_, "X_fit_", ())) <= STD_ROWS:  # features keep none
        _, std = model.predict(others, return_std=True)
        found |= {
            "std_median": float(np.median(std)),
            "covered": float(np.mean(np.abs(truth - predicted) <= 1.96 * std)),
        }
    return found
