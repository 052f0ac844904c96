"""`gzkcore.plan`: which features, how many of them, and their expected error and cost.

Every suitable family is fitted to a sample at several widths, and its kernel matrix of other rows
is compared with the exact one. Errors are measured, not bounded: the theorems are safe but off by
orders of magnitude (see `theory`), while an exact kernel matrix of a few hundred rows takes little
time.
"""

import contextlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import assert_all_finite, column_or_1d

from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.typing import Data, Doubles, Rows, Seed
from gzkcore._util.validation import (
    check_bool,
    check_integer,
    check_labels,
    check_lengths,
    check_positive,
    check_targets,
    dense,
    raise_not_finite,
)
from gzkcore._util.wording import aligned, as_plain, counted, seconds_told, shortened
from gzkcore.evaluate.measure import seconds_per_row
from gzkcore.features.auto import Trial, best_trial, candidates, judge, two_parts
from gzkcore.features.base import RowMap, check_rows, plain_output
from gzkcore.features.trials import check_widths
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.learn.classification import distinct
from gzkcore.rows.sources import is_dask
from gzkcore.solve.cost import WholeCost, cost_of
from gzkcore.solve.solve import NotPositiveDefinite
from gzkcore.tabular.columns.cells import CATEGORICAL_DTYPES, cells_of
from gzkcore.tabular.table_encoder import TableEncoder
from gzkcore.theory import statistical_dimension

from .draw import figure_of_plan, save_picture, styled
from .forecast import Forecast, forecasts

__all__ = ["Plan", "plan"]

# Of equally many features, those compete whose operations, with a learner on them, are at most so
# many times the fewest.
AS_CHEAP = 4.0
FEWEST_ROWS = 50  # with fewer there is no forecast of predictions
NUMBERS = ("int", "uint", "float", "bool")  # how the names of types of numbers begin


@dataclass(frozen=True)
class Plan:
    """The result of `plan`; `print` shows it.

    Attributes
    ----------
    kernel : Kernel
        Resolved.
    n_samples : int
    n_features, n_columns : int
        Number of columns that the kernel gets, and before text, dates and missing values were
        encoded.
    norms : tuple of float
        Smallest, median and largest distance from the mean, in the units of the data.
    effective_dimension : float
        Effective dimension of the points: (sum of variances)^2 / sum of squared variances, along
        principal axes.
    lam : float
    statistical_dimension : float
        s_lambda = tr K (K + lam I)^-1 of all n_samples rows, estimated from at most 8,192. A ridge
        regression with the ridge lam can use about this many features, or more.
    max_error : float
        As it was asked for.
    whole : WholeCost or None
        Expected cost of a `KernelRidge` with the whole kernel and alpha = lam on all rows; None if
        its matrix is not positive definite.
    forecasts : list of Forecast
        With y, the expected error and cost of each form of a `KernelRegressor` (for labels a
        `KernelClassifier`) on all rows. Its kernel is learned; `kernel` is not used.
    classify : bool
        Whether y are labels.
    table : list of dict
        For each method and width: `error` (relative, Frobenius), and `seconds` and `megabytes` for
        the features of all rows (a learner in one pass does not need this memory).
    recommendation : str
    """

    kernel: Kernel
    n_samples: int
    n_features: int
    norms: tuple[float, float, float]
    effective_dimension: float
    lam: float
    statistical_dimension: float
    max_error: float
    whole: WholeCost | None
    forecasts: list[Forecast]
    classify: bool
    table: list[dict[str, Any]]
    recommendation: str
    n_columns: int
    _estimator: Any = field(repr=False)
    _recommended: tuple[str, int] = field(repr=False)

    def build(self) -> Any:
        """Return the recommended features, not yet fitted."""
        return clone(self._estimator)

    @styled()
    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw error against the number of features, one line per method, to .png, .pdf or .svg.

        Needs matplotlib, ``pip install gzkcore[cli]``.
        """
        title = f"{self._size(', ')}, {shortened(repr(self.kernel))}"
        figure = figure_of_plan(self.table, self.max_error, title, self._recommended)
        save_picture(figure, Path(path))

    def _size(self, between: str) -> str:
        size = counted(self.n_samples, "row") + between + counted(self.n_columns, "column")
        encoded = f" ({self.n_features:,} when encoded)"
        return size + (encoded if self.n_features != self.n_columns else "")

    def __str__(self) -> str:
        lines = [f"{self._size(' of ')}, {shortened(repr(self.kernel))}", ""]
        if self.forecasts:
            lines += [*self._about_forecasts(), "", "Features, for those who choose the kernel:"]
        lines += [
            self.recommendation,
            "",
            f"of each method the fewest features that reach {self.max_error:g}, or the most tried:",
        ]
        header = ["method", "features", "error of the kernel", "time", "MB"]
        cells = [
            [
                row["method"], f"{row['n_components']:,}", f"{row['error']:.2g}",
                seconds_told(row["seconds"]), _megabytes(row["megabytes"]),
            ]
            for row in self._shown()
        ]  # fmt: skip
        lines += aligned(header, cells)
        if self.whole is not None:
            lines.append(
                f"whole kernel (KernelRidge): error 0; a fit with a ridge of {self.lam:g} takes "
                f"{self.whole.about}"
            )
        low, middle, high = self.norms
        directions = _counted_about(self.effective_dimension, "direction")
        usable = _counted_about(self.statistical_dimension, "feature")
        about_data = (
            f"The rows are {low:.3g} to {high:.3g} from their mean, half of them within "
            f"{middle:.3g} (standardised columns are in standard deviations, places in radii of "
            f"the Earth). They spread along about {directions}. With a ridge of {self.lam:g}, "
            f"ridge regression makes use of about {usable}."
        )
        return "\n".join([*lines, "", about_data])

    def _shown(self) -> list[dict[str, Any]]:
        """Return each method's narrowest row that reaches the error, or its widest."""
        shown: dict[str, dict[str, Any]] = {}
        for row in sorted(self.table, key=lambda row: int(row["n_components"])):
            last = shown.get(row["method"])
            if last is None or last["error"] > self.max_error:
                shown[row["method"]] = row
        return list(shown.values())

    def _about_forecasts(self) -> Iterator[str]:
        """Yield the lines about the expected error and cost of predictions."""
        learner = "KernelClassifier" if self.classify else "KernelRegressor"
        scale, unit = (100.0, " % wrong") if self.classify else (1.0, "")
        errors = [as_plain(scale * forecast.error, 3) for forecast in self.forecasts]
        first = self.forecasts[0]
        chosen, seconds, megabytes = (
            text.replace("<", "less than")
            for text in (
                seconds_told(first.choice_seconds),
                seconds_told(first.seconds),
                _megabytes(first.megabytes),
            )
        )
        yield (
            f"{learner}, which learns its own kernel, is expected to have an error of "
            f"{errors[0]}{unit} on new rows, after a choice of kernel and alpha of about "
            f"{chosen} and a fit of {seconds} with {megabytes} MB."
        )
        yield ""
        yield from aligned(
            ["model", "wrong, %" if self.classify else "error", "time", "MB"],
            [
                [
                    f"{forecast.size:,} {forecast.form}" if forecast.size else "whole kernel",
                    error,
                    seconds_told(forecast.seconds),
                    _megabytes(forecast.megabytes),
                ]
                for forecast, error in zip(self.forecasts, errors, strict=True)
            ],
        )
        yield "time: of the fit alone, after the choice"
        if not self.classify:
            yield "error: root mean squared, in units of y"


def _counted_about(number: float, noun: str) -> str:
    """Return a number of two digits with its noun."""
    rounded = as_plain(number, 2)
    return f"{rounded} {noun}" + "s" * (rounded != "1")


def _megabytes(number: float) -> str:
    return f"{number:,.0f}" if number >= 0.5 else "< 1"


def plan(
    X: Data,
    kernel: str | Kernel = "gaussian",
    *,
    y: ArrayLike | None = None,
    classify: bool = False,
    max_error: float = 0.1,
    lam: float = 1.0,
    n_components: int | Sequence[int] = (64, 256, 1024, 4096),
    n_samples: int | None = None,
    random_state: Seed = 0,
) -> Plan:
    """Recommend features, and how many of them, for a kernel on these data.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        The data or a random sample of them. Rows with text, categories, dates or, in a frame,
        missing values are encoded as by `KernelRegressor`; all others are not changed.
    kernel : str or Kernel, default="gaussian"
    y : array-like of shape (n_rows,), optional
        Targets or labels. With y the plan also forecasts the error and cost of a `KernelRegressor`
        (for labels a `KernelClassifier`) on all rows: with the whole kernel, centres and features.
    classify : bool, default=False
        Whether numbers in y are labels. Text, booleans and categories always are.
    max_error : float, default=0.1
        The relative Frobenius error of the kernel matrix that is asked for.
    lam : float, default=1.0
        Ridge for the statistical dimension, in units of the kernel matrix of all rows.
    n_components : int or sequence of int, default=(64, 256, 1024, 4096)
        Widths to try.
    n_samples : int, optional
        Total number of rows if X is a sample.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    Plan
        `print` shows it, `build()` returns the features, `plot(path)` draws it.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the kernel has no features for these data.

    Notes
    -----
    Features are fitted to at most 2,048 rows and judged by 512 others, on which seconds are
    measured too. The whole kernel is solved on at most 8,192 rows. A plan takes a few seconds for
    widths of hundreds, and ten for thousands, for any n. Errors above 1e-3 agree with those on
    other rows of the same kind within a factor of 1.5 in nine of ten cases. Smaller errors depend
    on the few rows that are furthest out, and may be far larger on more rows.

    With y a `KernelRegressor` chooses a kernel on at most 8,000 rows, in 5 to 60 s. Each form is
    fitted to a quarter, a half and all of these rows except one fold, on which its error is
    measured. The errors are extrapolated as a power of the number of rows plus a floor; the
    documentation says how accurate that is. The seconds of a forecast do not include the choice.

    Examples
    --------
    >>> import numpy as np
    >>> import gzkcore
    >>> X = np.random.default_rng(0).standard_normal((600, 3))
    >>> plan = gzkcore.plan(X, max_error=1e-3, n_components=[64, 256])
    >>> plan.build()
    GegenbauerFeatures(kernel=Gaussian(gamma=...), n_components=256, random_state=...)
    """
    max_error, lam = check_positive("max_error", max_error), check_positive("lam", lam)
    widths = check_widths(n_components)
    classify = check_bool("classify", classify)
    rows = as_rows(X, "plan")
    targets, classify = (None, False) if y is None else as_targets(y, rows, classify)
    total = rows.shape[0] if n_samples is None else check_integer("n_samples", n_samples, 1)
    if total < rows.shape[0]:
        raise ValueError(
            f"n_samples={total} is fewer than the {counted(rows.shape[0], 'row')} of X; it must be "
            "the total number of rows, of which X is a sample"
        )
    resolved = as_kernel(kernel).resolve(rows)
    entropy = as_seed_sequence(random_state)
    seed = int(entropy.generate_state(1)[0])
    train, test = (rows[part] for part in two_parts(rows, generator(entropy)))
    K = resolved(dense(test))
    trials, table = _tried(resolved, widths, train, test, K, total, seed)
    best = _recommended(trials, max_error)
    whole = None
    with contextlib.suppress(NotPositiveDefinite):
        whole = cost_of(resolved, rows, lam, total, np.random.default_rng(seed))
    dimension = statistical_dimension(K, lam * K.shape[0] / total)
    if whole is not None and rows.shape[0] > K.shape[0]:  # more rows tell more
        dimension = whole.statistical_dimension
    too_few = best.error > max_error
    advice = [_recommendation(best, trials, max_error), *_beyond(whole, widths[-1], too_few)]
    cloud = np.asarray(dense(train), dtype=np.float64)
    cloud = cloud - cloud.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->i", cloud, cloud))
    return Plan(
        kernel=resolved,
        n_samples=total,
        n_features=rows.shape[1],
        norms=(float(norms.min()), float(np.median(norms)), float(norms.max())),
        effective_dimension=_effective_dimension(cloud),
        lam=lam,
        statistical_dimension=dimension,
        max_error=max_error,
        whole=whole,
        forecasts=[] if targets is None else forecasts(X, targets, classify, total, widths, seed),
        classify=classify,
        table=table,
        recommendation=" ".join(advice),
        n_columns=len(X.columns) if hasattr(X, "columns") else getattr(X, "shape", rows.shape)[1],
        _estimator=best.candidate.features,
        _recommended=(best.candidate.name, best.n_components),
    )


def _tried(
    kernel: Kernel, widths: Sequence[int], train: Rows, test: Rows, K: Doubles, n_samples: int,
    seed: int,
) -> tuple[list[Trial], list[dict[str, Any]]]:  # fmt: skip
    """Return every trial, and the rows of the table."""
    trials, table = [], []
    for width in widths:
        for trial in judge(candidates(kernel, width, train, seed), train, test, K)[0]:
            trials.append(trial)
            table.append({
                "method": trial.candidate.name,
                "n_components": width,
                "error": trial.error,
                "seconds": n_samples * seconds_per_row(trial.fitted, test),
                "megabytes": n_samples * width * test.dtype.itemsize / 1e6,
                "about": trial.fitted._about(),
            })  # fmt: skip
    return trials, table


def _recommended(trials: Sequence[Trial], max_error: float) -> Trial:
    """Return the narrowest trial whose error is small enough, or the best of all.

    The narrowest is the cheapest, for a learner on n rows of p features takes n p^2 operations. Of
    several as narrow it is the best, as `KernelFeatures` chooses, unless features and learner are
    `AS_CHEAP` times dearer with it.
    """
    reached = [trial for trial in trials if trial.error <= max_error]
    if not reached:
        return best_trial(trials)
    width = min(trial.n_components for trial in reached)
    narrow = [trial for trial in reached if trial.n_components == width]
    most = AS_CHEAP * min(_operations(trial) for trial in narrow)
    return best_trial([trial for trial in narrow if _operations(trial) <= most])


def _operations(trial: Trial) -> float:
    """Count operations per row: features plus learner."""
    return trial.flops + float(trial.n_components) ** 2


def _recommendation(best: Trial, trials: Sequence[Trial], max_error: float) -> str:
    """Return what to use, and why."""
    text = (
        f"Use {best.candidate.name} with n_components={best.n_components}: its relative error is "
        f"{best.error:.2g}"
    )
    if best.error <= max_error:
        text += f", and no method needs fewer features to reach {max_error:g}."
        return " ".join([text, *_why_not(best, trials)])
    more = _width_needed(trials, best, max_error)
    return f"{text}. No method reaches {max_error:g} at these widths" + (
        f"; this one would need about {more:,} components." if more else "."
    )


def _why_not(best: Trial, trials: Sequence[Trial]) -> Iterator[str]:
    """Yield why the method with the least error at this width is not the recommended one."""
    same = [trial for trial in trials if trial.n_components == best.n_components]
    least = min(same, key=lambda trial: trial.error)
    if float(f"{least.error:.2g}") < float(f"{best.error:.2g}"):
        yield (
            f"With as many, {least.candidate.name} has an error of {least.error:.2g}, but its "
            f"features take {as_plain(least.flops / best.flops, 2)} times the operations."
        )


def _beyond(whole: WholeCost | None, widest: int, too_few: bool) -> Iterator[str]:
    """Yield what to use if no features are enough for the ridge, or for the error."""
    if whole is None:
        return
    if whole.statistical_dimension > widest:
        usable = float(f"{whole.statistical_dimension:.2g}")
        yield (
            f"To predict with a ridge of {whole.alpha:g}, no features of these widths are enough: "
            f"{usable:,g} or more would help, and the widest have {widest:,}. Use the whole "
            f"kernel: KernelRidge with alpha={whole.alpha:g}, in {whole.about}."
        )
    elif too_few:
        yield f"The whole kernel has no error: KernelRidge fits it in {whole.about}."


def _width_needed(trials: Sequence[Trial], best: Trial, max_error: float) -> int | None:
    """Return the width at which a method's error, as a power of the width, is small enough."""
    of_method = [t for t in trials if t.candidate.name == best.candidate.name and t.error > 0]
    if len(of_method) < 2:
        return None
    first, last = sorted(of_method, key=lambda trial: trial.n_components)[-2:]
    slope = math.log(last.error / first.error) / math.log(last.n_components / first.n_components)
    if slope > -0.1:
        return None
    width = last.n_components * (max_error / last.error) ** (1 / slope)
    return int(float(f"{width:.2g}")) if width < 1e7 else None


def _effective_dimension(cloud: Doubles) -> float:
    """Return (tr C)^2 / tr C^2 of the covariance C, from the smaller of the two products."""
    product = cloud @ cloud.T if cloud.shape[0] < cloud.shape[1] else cloud.T @ cloud
    squares = float(np.square(product).sum())
    return float(np.trace(product)) ** 2 / squares if squares > 0 else 0.0


# ---- arguments


def as_rows(X: Data, caller: str) -> Rows:
    """Return rows of numbers as they are, and others encoded as `KernelRegressor` does.

    Errors about rows of numbers name the caller.
    """
    if encodes(X):
        rows: Rows = plain_output(TableEncoder()).fit_transform(X)
    else:
        rows = check_rows(type(caller, (RowMap,), {})(), X, reset=True, finite=False)
    raise_not_finite(rows)
    return rows


def encodes(X: Any) -> bool:
    """Say whether a table has columns of another kind than numbers, or gaps."""
    if is_dask(X) or sparse.issparse(X):
        return False
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return bool(np.ndim(X) == 2 and np.asarray(X).dtype.kind in "OUSmM")
    if not all(_kind(dtype).startswith(NUMBERS) for dtype in X.dtypes):
        return True
    return any(cells.missing.any() for cells in cells_of(X)[0])


def _kind(dtype: Any) -> str:
    return str(dtype).lower().partition("(")[0]


def as_targets(y: ArrayLike, X: Data, classify: bool) -> tuple[NDArray[Any], bool]:
    """Return the target of each row, and whether targets are labels.

    Text, booleans and categories always are, and numbers if `classify` says so.
    """
    array = np.asarray(y)
    classify = classify or array.dtype.kind in "USb" or _kind(getattr(y, "dtype", "")) in (
        CATEGORICAL_DTYPES
    )  # fmt: skip
    if array.dtype.kind == "O":
        classify = classify or any(isinstance(value, str | bool) for value in array.flat)
    targets = _labels(y, X) if classify else np.asarray(check_targets(y, X))
    if targets.ndim > 1 and targets.shape[1] > 1:
        raise ValueError(
            f"y has {targets.shape[1]} columns, but plan takes one; plan each separately"
        )
    if len(targets) < FEWEST_ROWS:
        raise ValueError(
            f"a plan for a target (y) needs {FEWEST_ROWS} rows or more; got {len(targets)}, which "
            "can be fitted in seconds without a plan (gzkcore fit, KernelRegressor)"
        )
    return targets.reshape(-1), classify


def _labels(y: ArrayLike, X: Data) -> NDArray[Any]:
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    check_lengths(X, labels)
    assert_all_finite(labels, input_name="y")
    classes, _ = distinct(labels)
    check_labels(labels, "to predict numbers leave out classify=True")
    if len(classes) < 2:
        raise ValueError(
            f"y has one class, {classes.tolist()}, but plan needs two or more; pass rows of other "
            "classes too, or omit y"
        )
    return labels
