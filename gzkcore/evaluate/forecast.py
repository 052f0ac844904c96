"""Forecasts of the error and the cost of predictions with all rows, from fits to some of them.

A `KernelRegressor`, or a `KernelClassifier` for labels, chooses a kernel on a sample. Each form
(whole kernel, centres or features) is fitted to a quarter, a half and all of the sample except one
fold, and judged by this fold. Let s be the squared error, or the share of wrong labels. With each
doubling of the rows its decrease is multiplied by r:

    s(2^k n) = s(n) - (s(n / 2) - s(n)) (r + r^2 + ... + r^k),

This holds for s = floor + c n^-p with r = 2^-p, and three sizes determine r. The forecast never
decreases faster than a power of n without a floor, nor below the standard error of the share of
wrong labels, since a further decrease is not known.

Seconds and memory are measured on the rows of the sample, repeated until there are as many as all
rows or MOST_TIMED. Beyond that, each row costs as much as in the second half of the rows measured.
If the whole kernel is not factored, `cost_of` predicts its cost.
"""

import copy
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing

from gzkcore._util.memory import PeakMemory
from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore.rows.frames import Frame
from gzkcore.solve.cost import cost_of
from gzkcore.solve.system import HELD_ROWS
from gzkcore.tabular.form import Form
from gzkcore.tabular.kernel_classifier import KernelClassifier
from gzkcore.tabular.kernel_regressor import KernelRegressor
from gzkcore.tabular.probabilities import signs
from gzkcore.tabular.table_learner import standardised
from gzkcore.tabular.trials import TOL

# The kernel is learned on a sample of so many rows at most, of which a fold in FOLDS is held out.
SAMPLE, FOLDS = 8000, 5
# Folds are tried until so many rows have been predicted.
TESTED = 3000
# Models are fitted to one row in so many.
STEPS = (4, 2, 1)
# r is kept between these, since three errors determine it only roughly.
LEAST_RATIO, MOST_RATIO = 0.5, 0.8
# Fits to more rows than this are not timed.
MOST_TIMED = 1 << 14


@dataclass(frozen=True)
class Forecast:
    """The expected error and cost of a form fitted to all rows.

    Attributes
    ----------
    form : {"whole", "centres", "features"}
    size : int or None
        Centres or features; None: the whole kernel.
    error : float
        Error on new rows: root mean square, in units of y; for labels the share of wrong ones.
    seconds, megabytes : float
        Cost of the fit with a known kernel.
    choice_seconds : float
        Seconds for the choice of kernel and alpha on the rows of the sample, the same for all
        forms. A fit makes this choice first, on at most about as many rows.
    """

    form: str
    size: int | None
    error: float
    seconds: float
    megabytes: float
    choice_seconds: float


def forecasts(
    X: Data, y: NDArray[Any], classify: bool, n_samples: int, widths: Sequence[int], seed: int
) -> list[Forecast]:
    """Forecast each form of a `KernelRegressor` or `KernelClassifier` on n_samples rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Some of the rows at random.
    y : ndarray of shape (n_rows,)
    classify : bool
        Whether y are labels.
    n_samples : int
    widths : sequence of int
        Numbers of features, and of centres.
    seed : int

    Returns
    -------
    list of Forecast
        The whole kernel first; none where the mean is as good as any kernel.
    """
    started = time.perf_counter()
    fits, rng = learned(X, y, classify, seed), np.random.default_rng(seed)
    chosen = time.perf_counter() - started
    if fits is None:
        return []
    result = []
    for form, size in forms(widths):
        error = fits.expected(form, size, n_samples)
        if error is None:
            continue
        if form == "whole" and n_samples > HELD_ROWS:
            cost = cost_of(fits.kernel, fits.X, fits.alpha, n_samples, rng, targets=fits.Y, tol=TOL)
            seconds, megabytes = cost.seconds, cost.megabytes
        else:
            seconds, megabytes = fits.cost(form, size, n_samples)
        result.append(Forecast(form, size, error, seconds, megabytes, chosen))
    return result


def learned(X: Data, y: NDArray[Any], classify: bool, seed: int) -> "Fits | None":
    """Learn a kernel from some of the rows; return None if the mean is as good as any."""
    order = np.random.default_rng(seed).permutation(len(y))[:SAMPLE]
    X, y = take(X, order), y[order]
    learner = (KernelClassifier if classify else KernelRegressor)(random_state=seed).fit(X, y)
    return None if learner.kernel_ is None else Fits(learner, X, y)


def take(X: Any, rows: Integers) -> Any:
    """Return some of the rows of a table of any kind."""
    if isinstance(X, Frame):
        return X.take(rows)
    return _safe_indexing(X.tocsr() if sparse.issparse(X) else X, rows)


def forms(widths: Sequence[int]) -> Iterator[tuple[str, int | None]]:
    """Yield names and sizes of the forms that a learner may take."""
    yield "whole", None
    for width in widths:
        yield "centres", width
        yield "features", width


class Fits:
    """Fits of models to rows of a table, and the errors of a learner with these models.

    Parameters
    ----------
    learner : KernelRegressor or KernelClassifier
        Fitted: it encodes rows, and turns what a model predicts into numbers or labels.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    """

    def __init__(self, learner: Any, X: Data, y: NDArray[Any]) -> None:
        self.learner, self.table, self.y = learner, X, y
        self.kernel, self.alpha = learner.kernel_, float(learner.alpha_ or 1.0)
        self.X: Doubles = learner.encoder_.transform(X)
        self.classify = isinstance(learner, KernelClassifier)
        targets = y[:, None]
        if self.classify:
            targets = signs(np.searchsorted(learner.classes_, y), len(learner.classes_))
        self.Y = standardised(learner, targets)

    def timed(self, form: str, size: int | None, rows: Integers) -> tuple[Any, float]:
        """Fit a form to some rows; return it and the seconds that took."""
        settings = Form(self.alpha, self.learner.random_state)
        if form == "whole":
            settings.slopes = getattr(self.learner.model_, "trend", None)
        else:
            setattr(settings, {"centres": "centers"}.get(form, form), size)
        model = settings.model(self.kernel, len(rows))
        Y = self.Y[rows]
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.X[rows], Y[:, 0] if Y.shape[1] == 1 else Y)
        return model, time.perf_counter() - started

    def error_of(self, fitted: Any, X: Data, y: NDArray[Any]) -> float:
        """Return the error of a model's predictions of new rows."""
        loss = self._loss(fitted, X, y)
        return loss if self.classify else math.sqrt(loss)

    def _loss(self, fitted: Any, X: Data, y: NDArray[Any]) -> float:
        learner = copy.copy(self.learner)
        learner.model_ = fitted
        predicted = learner.predict(X)
        losses: Any = predicted != y if self.classify else np.square(predicted - y)
        return float(np.mean(losses))

    def expected(self, form: str, size: int | None, n_samples: int) -> float | None:
        """Return the error with all rows, or None if the sample is too small for this size."""
        n = len(self.y) - len(self.y) // FOLDS
        steps = [step for step in STEPS if size is None or size < n // step]
        if len(steps) < 2:
            return None
        rows = np.arange(len(self.y))
        n_folds = min(FOLDS, -(-TESTED * FOLDS // len(self.y)))
        losses, tests = np.zeros(len(steps)), np.array_split(rows, FOLDS)[:n_folds]
        for test in tests:
            train = np.setdiff1d(rows, test)
            X, y = take(self.table, test), self.y[test]
            for i, step in enumerate(steps):
                fitted, _ = self.timed(form, size, train[::step])
                losses[i] += self._loss(fitted, X, y) / n_folds
        loss = extrapolated(losses, math.log2(n_samples / n))
        if not self.classify:
            return math.sqrt(loss)
        judged = sum(len(test) for test in tests)
        return max(loss, math.sqrt(max(losses[-1] * judged, 1.0)) / judged)

    def cost(self, form: str, size: int | None, n_samples: int) -> tuple[float, float]:
        """Return seconds and megabytes of a fit to all rows, measured on repeated rows."""
        n = min(n_samples, MOST_TIMED)
        rows = np.resize(np.arange(len(self.y)), n)
        cost = self.measured(form, size, rows)
        if n < n_samples:
            half = self.measured(form, size, rows[: n // 2])
            cost = cost + (n_samples - n) * np.maximum(0.0, cost - half) / (n - n // 2)
        return float(cost[0]), float(cost[1])

    def measured(self, form: str, size: int | None, rows: Integers) -> Doubles:
        """Return seconds and megabytes of a fit to some rows."""
        peak = PeakMemory()
        _, seconds = self.timed(form, size, rows)
        return np.array([seconds, peak.megabytes])


def extrapolated(losses: Sequence[float] | Doubles, doublings: float) -> float:
    """Return the loss with 2^doublings times the rows; each loss is with twice those before it."""
    *_, half, last = (float(loss) for loss in losses)
    first = float(losses[0])
    if not last < first or doublings <= 0:
        return last
    rate: float = (last / first) ** (1 / (len(losses) - 1))  # a power of the number of rows
    ratio, drop = LEAST_RATIO, half - last
    if len(losses) > 2:
        falls = first - half
        ratio = drop / falls if falls > 0 else MOST_RATIO
        ratio = min(max(ratio, LEAST_RATIO), MOST_RATIO)
        drop = (first - last) * ratio / (1 + ratio)  # from both, since each is uncertain
    further = drop * ratio * (1 - ratio**doublings) / (1 - ratio)
    return float(max(last - further, last * rate**doublings))
