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
from sklearn.preprocessing import FunctionTransformer

from gzkcore._util.memory import PeakMemory
from gzkcore._util.random import generator
from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import plain
from gzkcore.features.base import plain_output
from gzkcore.features.trials import split_rows
from gzkcore.kernels.base import Kernel
from gzkcore.metrics import mean_kernel_error, relative_frobenius_error, spectral_error

from .methods import METHODS, Wanted
from .whole import fit_and_predict

# The errors of a run; a run has the last two if there are targets, and may lack `spectral_error`.
ERRORS = ("error", "mean_error", "spectral_error", "rmse", "r2")
# Rows and columns that a method is warmed up with, before its memory is measured.
_WARM_ROWS, _WARM_WIDTH = 64, 16


@dataclass
class Task:
    """What methods are measured on; `lam` in units of the kernel matrix of the judged rows."""

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
    draw = int(entropy.generate_state(1)[0]) >> 1
    if width is None:
        return {"seed": seed} | _whole(task, fitted, judged, draw, memory)
    features = plain_output(METHODS[method](Wanted(task.kernel, width, train, draw)))
    run, Z = _cost(features, train, memory)
    run |= {"seed": seed, "width": Z.shape[1]}
    run["features"] = plain(features.__repr__(N_CHAR_MAX=2000))
    Z_test = np.asarray(dense(features.transform(test)), dtype=np.float64)
    errors = _errors(task, test, Z_test)
    if task.y is not None:
        errors |= _predict(dense(Z), Z_test, task.y[fitted], task.y[judged])
    if not all(map(math.isfinite, errors.values())):
        raise ValueError("its error is not finite; scale the columns")
    return run | errors


def _whole(
    task: Task, fitted: Integers, judged: Integers, draw: int, memory: bool
) -> dict[str, Any]:
    """Measure the whole kernel, which errs nowhere."""
    alpha = task.lam * fitted.size / judged.size
    y = None if task.y is None else task.y[fitted]
    run, predicted = fit_and_predict(
        task.kernel, task.X[fitted], task.X[judged], y, alpha, draw, memory
    )
    run |= dict.fromkeys(("error", "mean_error", "spectral_error"), 0.0)
    if task.y is not None and predicted is not None:
        run |= prediction_errors(predicted, task.y[fitted], task.y[judged])
    return run


def _cost(features: Any, train: Rows, memory: bool) -> tuple[dict[str, Any], Any]:
    """Fit and transform; return seconds and, if asked for, the peak of memory; and the features."""
    peak = _peak_when_warm(features, train) if memory else None
    start = time.perf_counter()
    features.fit(train)
    cost = {"fit_seconds": time.perf_counter() - start}
    Z = features.transform(train)
    if peak is not None:
        cost["megabytes"] = peak.megabytes
    cost["row_seconds"] = seconds_per_row(features, train, reuse=False)
    return cost, Z


def _peak_when_warm(features: Any, train: Rows) -> PeakMemory:
    """Return the peak from when libraries are loaded and threads started."""
    small = clone(features)
    if "n_components" in small.get_params(deep=False):
        small.set_params(n_components=min(_WARM_WIDTH, features.n_components))
    with contextlib.suppress(ValueError, TypeError):
        plain_output(small).fit(train[:_WARM_ROWS]).transform(train[:_WARM_ROWS])
    return PeakMemory()


def _errors(task: Task, test: Rows, Z: Doubles) -> dict[str, float]:
    """Compare the kernel of the features with the exact one."""
    K = np.asarray(task.kernel(dense(test)), dtype=np.float64)
    errors = {"error": relative_frobenius_error(K, Z), "mean_error": mean_kernel_error(K, Z)}
    with contextlib.suppress(ValueError):  # a user's function need not be positive definite
        epsilon = spectral_error(K, Z, task.lam)
        errors |= {"spectral_error": epsilon} if math.isfinite(epsilon) else {}
    return errors


def _predict(Z: Any, Z_test: Doubles, y: Doubles, y_test: Doubles) -> dict[str, float]:
    """Return the errors of a ridge on the features."""
    from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV

    model = RandomFeatureRidgeCV(FunctionTransformer()).fit(Z, y)
    return prediction_errors(model.predict(Z_test.astype(Z.dtype)), y, y_test)


def prediction_errors(predicted: Doubles, y: Doubles, y_test: Doubles) -> dict[str, float]:
    """Return root mean square and R^2 of predictions; R^2 is 0 for the mean of y."""
    squares = float(np.mean(np.square(predicted - y_test)))
    constant = float(np.mean(np.square(y.mean(axis=0) - y_test)))
    r2 = 1 - squares / constant if constant else 0.0
    return {"rmse": math.sqrt(squares), "r2": r2}


def seconds_per_row(features: Any, rows: Any, repeats: int = 3, *, reuse: bool = True) -> float:
    """Return the least time of a few warm calls of `transform`, for one row.

    With `reuse` all write to the same array; without, as transformers must that know no `out`, each
    call to a new one.
    """
    takes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {"out": np.array(features.transform(rows))} if reuse else {}
        for _ in range(repeats):
            start = time.perf_counter()
            features.transform(rows, **given)
            takes.append(time.perf_counter() - start)
    return float(min(takes) / rows.shape[0])
