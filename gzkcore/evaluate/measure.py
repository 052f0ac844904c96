"""Measurements of a method: error, time and memory, for one seed after another."""

import contextlib
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.preprocessing import FunctionTransformer

from gzkcore._util.memory import PeakMemory
from gzkcore._util.random import generator
from gzkcore._util.typing import Doubles, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import plain
from gzkcore.features.base import plain_output
from gzkcore.features.trials import split_rows
from gzkcore.kernels.base import Kernel
from gzkcore.metrics import mean_kernel_error, relative_frobenius_error, spectral_error
from gzkcore.solve.cost import seconds_of

from .methods import METHODS, Wanted
from .whole import whole_kernel

# The errors of a run; a run has the last two if there are targets, and may lack `spectral_error`.
ERRORS = ("error", "mean_error", "spectral_error", "rmse", "r2")
# Before memory is measured, a method is fitted to so many rows, with so many columns.
WARM_ROWS, WARM_WIDTH = 64, 16


@dataclass
class Task:
    """What methods are measured on.

    At most `fitted` rows are fitted to; `lam` is in units of the kernel matrix of the judged rows.
    """

    X: Rows
    y: Doubles | None
    kernel: Kernel
    seed: int
    fitted: int
    lam: float


def measure(
    task: Task, method: str, width: int | None, seeds: list[int]
) -> Iterator[dict[str, Any]]:
    """Yield what a method is worth for each seed; the peak of memory is that of the first."""
    for seed in seeds:
        yield _run(task, method, width, seed, memory=seed == seeds[0])


def _run(task: Task, method: str, width: int | None, seed: int, memory: bool) -> dict[str, Any]:
    entropy = np.random.SeedSequence([task.seed, seed])
    fitted, judged = split_rows(task.X.shape[0], generator(entropy), task.fitted)
    train, test = task.X[fitted], task.X[judged]
    y = None if task.y is None else task.y[fitted]
    draw = int(entropy.generate_state(1)[0]) >> 1
    model: Any
    if width is None:
        alpha = task.lam * fitted.size / judged.size
        model, targets = whole_kernel(task.kernel, train, y, alpha, draw)
        cost, predicted = _cost(model, "predict", (train, targets), test, memory)
        width, errors = train.shape[0], dict.fromkeys(ERRORS[:3], 0.0)
    else:
        model = plain_output(METHODS[method](Wanted(task.kernel, width, train, draw)))
        cost, Z = _cost(model, "transform", (train,), train, memory)
        Z_test = np.asarray(dense(model.transform(test)), dtype=np.float64)
        width, errors = Z.shape[1], _errors(task, test, Z_test)
        predicted = None if y is None else _ridge_predictions(dense(Z), y, Z_test)
    if task.y is not None:
        errors |= prediction_errors(predicted, task.y[judged])
    if not all(map(math.isfinite, errors.values())):
        raise ValueError("its error is not finite; scale the columns")
    about = plain(model.__repr__(N_CHAR_MAX=2000))
    return {"seed": seed, "width": width, "features": about} | cost | errors


def _cost(
    model: Any, method: str, data: tuple[Any, ...], rows: Rows, memory: bool
) -> tuple[dict[str, Any], Any]:
    """Fit a model, and call its method on rows; return seconds and megabytes, and the result.

    The peak of memory is measured if it is asked for. The seconds of the method are those of the
    rows of the fit, for one row.
    """
    peak = _peak_when_warm(model, method, data) if memory else None
    start = time.perf_counter()
    model.fit(*data)
    cost = {"fit_seconds": time.perf_counter() - start}
    if not np.all(getattr(model, "converged_", True)):
        raise ValueError(
            f"its solver stopped at a relative residual of {np.max(model.residual_):.2g}; use "
            "another kernel, or a larger alpha"
        )
    call = getattr(model, method)
    result = call(rows)
    if peak is not None:
        cost["megabytes"] = peak.megabytes
    cost["row_seconds"] = seconds_of(lambda: call(data[0])) / data[0].shape[0]
    return cost, result


def _peak_when_warm(model: Any, method: str, data: tuple[Any, ...]) -> PeakMemory:
    """Return the peak from when libraries are loaded and threads started."""
    small = clone(model)
    params = small.get_params(deep=False)
    cheap = {"n_components": min(WARM_WIDTH, params.get("n_components", 0))}
    cheap |= {"preconditioner": None, "max_iter": 2}
    small.set_params(**{name: value for name, value in cheap.items() if name in params})
    few = [part[:WARM_ROWS] for part in data]
    with contextlib.suppress(ValueError, TypeError):
        getattr(plain_output(small).fit(*few), method)(few[0])
    return PeakMemory()


def _errors(task: Task, test: Rows, Z: Doubles) -> dict[str, float]:
    """Compare the kernel of the features with the exact one."""
    K = np.asarray(task.kernel(dense(test)), dtype=np.float64)
    errors = {"error": relative_frobenius_error(K, Z), "mean_error": mean_kernel_error(K, Z)}
    with contextlib.suppress(ValueError):  # a user's function need not be positive definite
        epsilon = spectral_error(K, Z, task.lam)
        errors |= {"spectral_error": epsilon} if math.isfinite(epsilon) else {}
    return errors


def _ridge_predictions(Z: Any, y: Doubles, Z_test: Doubles) -> Doubles:
    """Return the predictions of a ridge regression on the features."""
    from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV

    model = RandomFeatureRidgeCV(FunctionTransformer()).fit(Z, y)
    return np.asarray(model.predict(Z_test.astype(Z.dtype)))


def prediction_errors(predicted: Doubles, y: Doubles) -> dict[str, float]:
    """Return root mean square and R^2 of predictions of y; R^2 is 0 for the mean of this y."""
    squares = float(np.mean(np.square(predicted - y)))
    r2 = float(r2_score(y, predicted)) if math.isfinite(squares) else math.nan
    return {"rmse": math.sqrt(squares), "r2": r2}


def seconds_per_row(features: Any, rows: Any) -> float:
    """Return the least time of a few calls of `transform` into the same array, for one row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = np.array(features.transform(rows))
        seconds = seconds_of(lambda: features.transform(rows, out=out))
    return seconds / int(rows.shape[0])
