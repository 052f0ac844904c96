"""`gzkcore.compare`: every method on a user's data.

A separate process measures one method at one width after another (`worker`, `measure`). Each run is
saved when it is done (`results`).
"""

import contextlib
import json
import math
import os
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.typing import Data, Doubles, OnProgress, Rows, Seed
from gzkcore._util.validation import check_integer, check_positive, check_targets, dense
from gzkcore._util.wording import aligned, counted, meant, plain, shortened
from gzkcore.features.base import check_unit
from gzkcore.features.trials import AS_GOOD, JUDGED, cheapest_of_the_best, check_widths, split_rows
from gzkcore.kernels.base import Kernel

from .draw import figure_of_comparison, name_of, save_picture, styled
from .measure import ERRORS, Task, measure
from .methods import NAMES, WHOLE, as_any_kernel
from .plan import as_rows
from .results import Outcomes, Settings, Store, digest
from .worker import EndedError, LateError, RefusedError, Worker

__all__ = ["Comparison", "compare"]

FEWEST_ROWS = 20
CONFIDENCE = 0.95
# Predictions are as good if their error is at most this many times the least.
PREDICTS_AS_WELL = 1.02
NO_BETTER = "No method predicts better than the mean"
# Types of some values in a file of results; the others are numbers.
KINDS: dict[str, Any] = {"seed": int, "width": int, "features": str, "reason": str}

Row: TypeAlias = dict[str, Any]
Entry: TypeAlias = tuple[str, int | None]  # a method and its width; the whole kernel has none


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`; `print` shows it.

    Attributes
    ----------
    kernel : str
        The kernel with all parameters as numbers.
    n_samples, n_features : int
        Of the data.
    n_fitted, n_judged : int
        Number of rows that each seed fits to, and of the other rows that it is judged by.
    n_seeds, lam
        As they were asked for.
    machine : dict
        Instruction set, threads, and version of the package.
    rows : list of dict
        One for each method and width, in the order of width and error; the last one is for the
        whole kernel, which has no width and no error. Keys: `method`, `n_components` (None for the
        whole kernel), `width` (of the output; for the whole kernel its number of rows), `features`
        (what was fitted). Means over the seeds of `error` (relative, Frobenius), `mean_error` (over
        pairs), `spectral_error` and, with y, `rmse` and `r2` (scikit-learn's `r2_score`); each also
        with `..._low` and `..._high` (95 % interval of the mean, None for one seed) and
        `..._spread` (standard deviation). `error_ratio` to the best; `fit_seconds`, `row_seconds`
        (transform), `seconds` (both, for n_fitted rows), `time_ratio` to the fastest of the width;
        `megabytes` (peak); `front`: whether the row is on the Pareto front, that is, no other row
        is both more accurate and faster.
    refused : list of dict
        `method`, `n_components` (a list, empty for the whole kernel) and `reason`.
    best : dict
        A row of the largest width: the fastest features with nearly the smallest `rmse` (without y,
        `error`); None if all are refused.
    predicts : bool
        Whether there were targets to predict.
    """

    kernel: str
    n_samples: int
    n_features: int
    n_fitted: int
    n_judged: int
    n_seeds: int
    lam: float
    machine: dict[str, Any]
    rows: list[Row]
    refused: list[Row]
    best: Row | None
    predicts: bool

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers, strings, lists and dicts."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    @styled()
    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw error against time, with the Pareto front, to a .png, .pdf or .svg file.

        Needs matplotlib, ``pip install gzkcore[cli]``.
        """
        figure = figure_of_comparison(self.rows, self.n_fitted, self.predicts, self.title)
        save_picture(figure, Path(path))

    @property
    def title(self) -> str:
        """What was compared, in a line."""
        return (
            f"{counted(self.n_samples, 'row')}, {counted(self.n_features, 'column')}, "
            f"{shortened(self.kernel)}"
        )

    def tables(self) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Yield title, header and cells of a table for each width."""
        header = ["method (*: front)", "error"]
        header += ["rmse", "R²"] if self.predicts else []
        header += ["fit s", "µs/row", "× least", "MB"]
        for width in dict.fromkeys(row["n_components"] for row in self.rows):
            of_width = [row for row in self.rows if row["n_components"] == width]
            title = "whole kernel" if width is None else counted(width, "component")
            yield title, header, [self._cells(row) for row in of_width]

    def _cells(self, row: Row) -> list[str]:
        cells = [row["method"] + (" *" if row["front"] else ""), _with_interval(row, "error")]
        if self.predicts:
            cells += [_with_interval(row, "rmse"), f"{row['r2']:.3f}"]
        times = (row["fit_seconds"], 1e6 * row["row_seconds"], row["time_ratio"])
        return [*cells, *(_short(value, 2) for value in times), f"{row['megabytes']:,.0f}"]

    def notes(self) -> list[str]:
        """Return notes: the meaning of the columns, the refused methods, and a recommendation."""
        return [*self._columns(), *self._reasons(), *self._advice()]

    def _columns(self) -> Iterator[str]:
        over = f"mean over {self.n_seeds} seeds, ± half its {100 * CONFIDENCE:.0f} % interval"
        yield (
            f"error: relative Frobenius error of the kernel of {self.n_judged:,} rows that were "
            f"held out; {over if self.n_seeds > 1 else 'one seed, which has no interval'}"
        )
        if self.predicts:
            yield (
                "rmse, R²: of ridge regression on the features, or with the whole kernel, on the "
                "same rows; alpha is chosen for each"
            )
        yield (
            f"fit: on {self.n_fitted:,} rows; µs/row: to transform them; × least: both times "
            "together, relative to the fastest method of this width"
        )
        yield (
            "MB: peak resident memory of a separate process, minus that before; includes the "
            f"features of {self.n_fitted:,} rows"
        )
        if self._whole is not None:
            yield (
                f"{WHOLE}: the whole kernel, KernelRidge; its fit includes the ridge regression, "
                "and µs/row is the time to predict"
            )
        yield "*, the Pareto front: no method, at any width, is both more accurate and faster"

    @property
    def _whole(self) -> Row | None:
        """What the whole kernel was worth, if it was measured."""
        return next((row for row in self.rows if row["n_components"] is None), None)

    def _reasons(self) -> Iterator[str]:
        measured = {row["method"] for row in self.rows}
        for row in self.refused:
            widths = ", ".join(map(str, row["n_components"]))
            at = f" with {widths}" if widths and row["method"] in measured else ""
            yield f"{row['method']}{at}: {shortened(row['reason'])}"

    def _advice(self) -> Iterator[str]:
        if self.best is None:
            return
        if self.predicts and (chance := about_chance(self.rows, self.best["n_components"])):
            yield ""
            yield chance
            if chance.startswith(NO_BETTER):
                return
        times, what = (PREDICTS_AS_WELL, "rmse") if self.predicts else (AS_GOOD, "kernel error")
        yield ""
        yield (
            f"The fastest of {counted(self.best['n_components'], 'component')} within {times} "
            f"times the smallest {what}: {self.best['method']},"
        )
        yield shortened(self.best["features"])
        if self.predicts and (whole := self._whole) is not None:
            error = whole["rmse"] / self.best["rmse"] if self.best["rmse"] else math.inf
            yield (
                f"The whole kernel: {_short(error, 3)} times its rmse, and "
                f"{_short(whole['seconds'] / self.best['seconds'], 2)} times its time"
            )

    def __str__(self) -> str:
        lines = [self.title, ""]
        for title, header, cells in self.tables():
            lines += [title, *aligned(header, cells), ""]
        return "\n".join([*lines, *self.notes()])


def compare(
    X: Data,
    y: ArrayLike | None = None,
    *,
    kernel: Any = "gaussian",
    methods: str | Sequence[str] = "all",
    n_components: int | Sequence[int] = (256, 1024),
    n_seeds: int = 3,
    max_samples: int = 10_000,
    max_seconds: float = 300.0,
    lam: float = 1.0,
    output: str | os.PathLike[str] | None = None,
    random_state: Seed = None,
    n_samples: int | None = None,
    report: OnProgress | None = None,
) -> Comparison:
    """Compare every method on these data: error, time and peak memory, at equal width.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
        The data or a random sample of them, with scaled columns. A table with text, categories,
        dates or missing values is encoded as by `KernelRegressor`, which scales all columns.
    y : array-like of shape (n_rows,) or (n_rows, n_targets), optional
        Numbers to predict. With y the result also has the error of a ridge regression on the
        features.
    kernel : str, Kernel or callable, default="gaussian"
        An alias or instance of `gzkcore.kernels`, "additive_chi2" or "skewed_chi2" (with skewedness
        1), or a function of two arrays of rows in a module that a new process can import.
    methods : "all" or sequence of str, default="all"
        Names as in the result; "whole" is the whole kernel without features. Methods that are not
        possible for this kernel or these data are listed in `refused`, with the reason.
    n_components : int or sequence of int, default=(256, 1024)
        Widths to try.
    n_seeds : int, default=3
        Each seed draws features, and rows to fit to and to judge by, the same for all methods.
    max_samples : int, default=10_000
        Largest number of rows that are fitted to and timed.
    max_seconds : float, default=300.0
        A method that takes longer for one seed is stopped and listed in `refused`.
    lam : float, default=1.0
        Ridge of `spectral_error`, in units of the kernel matrix of all rows.
    output : str or path, optional
        A .json file for the results, written after every run; what it contains is not repeated.
        Methods, widths and seeds may be added, also by two calls at once. A function as kernel is
        identified by its name: if you edit it, use another output.
    random_state : int, RandomState, Generator or None, default=None
        None: the seed in `output`, or a new one.
    n_samples : int, optional
        Total number of rows if X is a sample; at least the number of rows of X.
    report : callable, optional
        Called with a label, the share of the work that is done, and what is measured now.

    Returns
    -------
    Comparison
        `print` shows it, `plot(path)` draws it, `to_json()` returns all numbers.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, X has fewer than 20 rows, or `output` holds results of
        other data or settings.
    OSError
        If no process can be started, or `output` cannot be written.

    Notes
    -----
    Methods run one after another, with all threads that the package may use, each with a width in a
    separate process. A run whose error is not finite is refused.

    Times are wall-clock times, medians over the seeds, of `fit` and of the fastest of three calls
    of `transform` on the rows of the fit, into a new array. Memory is the peak of the process
    during fit and transform, minus its memory before, with data and libraries loaded (Linux: VmHWM
    minus VmRSS; elsewhere growth of the peak).

    "whole" is a `KernelRidge`, measured once for all widths. Its `fit_seconds` include the ridge
    regression, unlike those of features; its `row_seconds` are those of predictions. With y its
    alpha is chosen by held-out rows: a fifth of at most 3,000 rows of the fit, or five folds if
    there are fewer than 1,000. Without y it solves for random targets, with alpha = `lam`.

    "gegenbauer-published" uses the best of 18 pairs of degree and order, chosen on rows of the fit.
    Choices are not timed.

    References
    ----------
    The errors are those of `gzkcore.metrics`.

    Examples
    --------
    >>> import numpy as np
    >>> import gzkcore
    >>> X = np.random.default_rng(0).standard_normal((400, 3))
    >>> methods = ["gegenbauer", "fourier-iid", "tensorsketch"]
    >>> result = gzkcore.compare(X, methods=methods, n_components=64, n_seeds=2, random_state=0)
    >>> result.best["method"], [row["method"] for row in result.refused]
    ('gegenbauer', ['tensorsketch'])
    """
    names, widths = check_methods(methods), check_widths(n_components)
    n_seeds = check_integer("n_seeds", n_seeds, 1)
    most = check_integer("max_samples", max_samples, 1)
    lam, limit = check_positive("lam", lam), check_positive("max_seconds", max_seconds)
    data = as_rows(X, "compare")
    n_rows = data.shape[0]
    if n_rows < FEWEST_ROWS:
        raise ValueError(
            f"X has {counted(n_rows, 'row')}, but a comparison needs {FEWEST_ROWS} or more"
        )
    targets = None if y is None else _check_targets(y, data)
    total = n_rows if n_samples is None else check_integer("n_samples", n_samples, n_rows)
    store = Store(output, "compare", "compare", _check_kept)
    seed = int(as_seed_sequence(random_state).generate_state(1)[0])
    if random_state is None:
        seed = int(store.settings.get("seed", seed))
    draws = generator(seed)
    if n_rows > most + JUDGED:
        pool = np.sort(draws.choice(n_rows, most + JUDGED, replace=False))
        data, targets = data[pool], None if targets is None else targets[pool]
    resolved = _resolved(kernel, data)
    n_fitted, n_judged = (part.size for part in split_rows(data.shape[0], draws, most))
    task = Task(data, targets, resolved, seed, most, lam * n_judged / total)
    store.agree(_settings(task, _about_kernel(resolved, kernel), lam, total))
    entries: list[Entry] = [(name, width) for width in widths for name in names if name != WHOLE]
    entries += [(WHOLE, None)] if WHOLE in names else []
    died = _measure_all(task, entries, n_seeds, limit, store, report or (lambda *_: None))
    rows, refused = _summary(entries, n_seeds, store.outcomes, died, n_fitted)
    return Comparison(
        kernel=store.settings["kernel"],
        n_samples=total,
        n_features=data.shape[1],
        n_fitted=n_fitted,
        n_judged=n_judged,
        n_seeds=n_seeds,
        lam=lam,
        machine={name: store.settings[name] for name in ("version", "isa", "n_threads")},
        rows=rows,
        refused=refused,
        best=best_of(rows, "error" if targets is None else "rmse"),
        predicts=targets is not None,
    )


# ---- arguments


def check_methods(methods: Any) -> list[str]:
    """Return the names of the methods to compare, each once."""
    is_many = isinstance(methods, Iterable) and not isinstance(methods, str)
    names = list(methods) if is_many else [methods]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"methods={methods!r} must be names; use 'all', or a list of names")
    names = list(dict.fromkeys(names))
    if "all" in names:
        return list(NAMES)
    for name in names:
        if name not in NAMES:
            raise ValueError(
                f"methods: there is no method {name!r}{meant(name, NAMES)}; use 'all' or some of "
                f"{', '.join(NAMES)}"
            )
    if not names:
        raise ValueError("methods=[] is empty; use 'all', or one or more names")
    return names


def _check_targets(y: ArrayLike, X: Rows) -> Doubles:
    targets: Doubles = check_targets(y, X)
    if (targets == targets[0]).all():
        raise ValueError(
            "y is the same in every row, so that there is nothing to predict; pass other targets, "
            "or omit y"
        )
    return targets


def _resolved(kernel: Any, data: Rows) -> Kernel:
    """Return the kernel with every parameter a number, after a try on two rows."""
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError("kernel='precomputed' has no rows for features; pass a function")
    resolved = as_any_kernel(kernel).resolve(data)
    if resolved.unit_sphere:
        check_unit(data)
    resolved(dense(data[:2]))  # what is wrong with the kernel is wrong with every method
    return resolved


def _settings(task: Task, kernel: str, lam: float, total: int) -> Settings:
    """Return what must be the same for a file of results to be continued."""
    return {
        "data": digest(task.X),
        "targets": None if task.y is None else digest(task.y),
        "n_samples": total,
        "kernel": kernel,
        "max_samples": task.fitted,
        "lam": lam,
        "seed": task.seed,
    }


def _about_kernel(resolved: Kernel, kernel: Any) -> str:
    """Return the kernel's repr, the same in every process: functions by name, without addresses.

    Arrays, which a repr rounds and shortens, have a checksum.
    """
    function = getattr(resolved, "function", None)
    if function is None or isinstance(kernel, Kernel):
        arrays = [v for _, v in sorted(resolved.get_params().items()) if isinstance(v, np.ndarray)]
        text = re.sub(r" at 0x[0-9a-fA-F]+", "", plain(repr(resolved)))
        return "; ".join([text, *map(digest, arrays)])
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"


# ---- the runs, and the file that keeps them


def _key(method: str, width: int | None, seed: int | None = None) -> str:
    """Name a run; without a seed, the reason why a method has no run at a width."""
    parts = [method, width, seed]
    return " / ".join(str(part) for part in parts if part is not None)


def _missing(outcomes: Outcomes, entry: Entry, n_seeds: int, limit: float) -> list[int]:
    """Return the seeds that are still to run, unless the method can't or takes too long."""
    refusal = outcomes.get(_key(*entry), {})
    if "reason" in refusal or refusal.get("limit", 0.0) >= limit:
        return []
    return [seed for seed in range(n_seeds) if _key(*entry, seed) not in outcomes]


def _measure_all(
    task: Task, entries: list[Entry], n_seeds: int, limit: float, store: Store, report: OnProgress
) -> dict[Entry, str]:
    """Measure and keep what is missing; return why processes died, which is not kept."""
    todo = {entry: _missing(store.outcomes, entry, n_seeds, limit) for entry in entries}
    total = max(1, sum(map(len, todo.values())))
    done, died = 0, {}
    with contextlib.closing(Worker(measure, task)) as worker:
        for entry, seeds in todo.items():
            if not seeds:
                continue
            now, finished = name_of(*entry), done + len(seeds)
            report("comparing", done / total, now)
            try:
                for run in worker.run(*entry, seeds, limit=limit):
                    store.keep(_key(*entry, run["seed"]), run)
                    done += 1
                    report("comparing", done / total, now)
            except RefusedError as error:
                store.keep(_key(*entry), {"reason": str(error)})
            except LateError:
                store.keep(_key(*entry), {"limit": limit})
            except EndedError as error:
                died[entry] = str(error)
            done = finished
        report("comparing", 1.0, "")
    return died


def _summary(
    entries: list[Entry], n_seeds: int, outcomes: Outcomes, died: dict[Entry, str], n_fitted: int
) -> tuple[list[Row], list[Row]]:
    """Return the rows of what was measured, by width and error, and why the others weren't."""
    rows = []
    widths: dict[tuple[str, str], list[int]] = {}
    for name, width in entries:
        refusal = outcomes.get(_key(name, width), {})
        reason = died.get((name, width)) or refusal.get("reason")
        runs = [outcomes.get(_key(name, width, seed), {}) for seed in range(n_seeds)]
        if not reason and not all(runs):
            reason = f"a seed took more than {refusal['limit']:g} s; allow it a larger max_seconds"
        if reason:
            at = widths.setdefault((name, reason), [])
            at += [] if width is None else [width]
        else:
            rows.append(row_of(name, width, runs, n_fitted))
    refused = [
        {"method": name, "n_components": at, "reason": reason}
        for (name, reason), at in widths.items()
    ]
    return ranked(rows), refused


def _check_kept(settings: Settings, outcomes: Outcomes) -> None:
    """Raise KeyError, TypeError or ValueError unless a file has all that is needed of it."""
    for name in ("data", "n_samples", "kernel", "max_samples"):
        settings[name]
    _check_values(settings, "lam", "seed")
    always = ["seed", "width", "features", "fit_seconds", "row_seconds", "error", "mean_error"]
    always += [] if settings["targets"] is None else ["rmse", "r2"]
    for outcome in outcomes.values():
        if "reason" in outcome:
            _check_values(outcome, "reason")
        elif "limit" in outcome:
            _check_values(outcome, "limit")
        else:
            _check_values(outcome, *always, *({"megabytes", *ERRORS} & outcome.keys()))


def _check_values(values: dict[str, Any], *names: str) -> None:
    for name in names:
        value, kind = values[name], KINDS.get(name)
        if not isinstance(value, kind or (int, float)):
            raise TypeError(f"{name} is {value!r}")
        if kind is None and not math.isfinite(value):
            raise ValueError(f"{name} is {value}")


# ---- means over the seeds, and their ranking


def row_of(name: str, width: int | None, runs: list[Row], n_fitted: int) -> Row:
    """Return means over the runs with their intervals, times, and the peak of memory."""
    row: Row = {"method": name, "n_components": width}
    row |= {key: runs[0][key] for key in ("width", "features")}
    for key in ERRORS:
        values = [run[key] for run in runs if key in run]
        if len(values) == len(runs):
            row |= _interval(key, values)
    for key in ("fit_seconds", "row_seconds"):
        row[key] = statistics.median(run[key] for run in runs)
    row["seconds"] = row["fit_seconds"] + n_fitted * row["row_seconds"]
    row["megabytes"] = max(run.get("megabytes", 0.0) for run in runs)
    return row


def _interval(key: str, values: list[float]) -> Row:
    """Return mean, Student's interval of the mean, and standard deviation; None for one value."""
    mean = statistics.fmean(values)
    low = high = spread = None
    if len(values) > 1:
        spread = statistics.stdev(values)
        student = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2))
        half = student * spread / math.sqrt(len(values))
        low, high = mean - half, mean + half
    return {key: mean, f"{key}_low": low, f"{key}_high": high, f"{key}_spread": spread}


def ranked(rows: list[Row]) -> list[Row]:
    """Return rows by width and error, with ratios to the least of the width, and the front."""
    for width in {row["n_components"] for row in rows}:
        of_width = [row for row in rows if row["n_components"] == width]
        for value, ratio in (("error", "error_ratio"), ("seconds", "time_ratio")):
            least = min(row[value] for row in of_width)
            for row in of_width:
                row[ratio] = row[value] / least if least > 0 else 1.0
    for row in rows:
        row["front"] = not any(_beats(other, row) for other in rows)
    # The whole kernel, which has no width, comes after all features.
    return sorted(rows, key=lambda row: (row["n_components"] or math.inf, row["error"]))


def _beats(one: Row, other: Row) -> bool:
    """Say whether one row is as accurate and as fast as another, and better in one of these."""
    ours, theirs = ((row["error"], row["seconds"]) for row in (one, other))
    return ours[0] <= theirs[0] and ours[1] <= theirs[1] and ours != theirs


def best_of(rows: list[Row], measure: str) -> Row | None:
    """Return the fastest row of the largest width with nearly the least error, or None."""
    features = [row for row in rows if row["n_components"] is not None]
    if not features:
        return None
    return cheapest_of_the_best(
        [row for row in features if row["n_components"] == features[-1]["n_components"]],
        lambda row: float(row[measure]),
        lambda row: float(row["seconds"]),
        AS_GOOD if measure == "error" else PREDICTS_AS_WELL,
    )


def about_chance(rows: list[Row], width: int | None) -> str:
    """Say if no method predicts better than the mean, or than the others of its width.

    With one seed there are no intervals, and so nobody knows what is chance.
    """
    best = max(rows, key=lambda row: float(row["r2"]))
    low, high = best["r2_low"], best["r2_high"]
    if (best["r2"] if low is None else low) <= 0:
        half = "" if low is None else f" ± {(high - low) / 2:.2g}"
        surely = "" if best["r2"] <= 0 else " beyond chance"
        name = name_of(best["method"], best["n_components"])
        return (
            f"{NO_BETTER}{surely}: the largest R², of {name}, is {best['r2']:.2g}{half}. "
            "So none is recommended."
        )
    if low is None:
        return "One seed can't tell which of these differences are chance; with more it shows."
    of_width = [row for row in rows if row["n_components"] == width]
    least = min(of_width, key=lambda row: float(row["rmse"]))
    alike = all(row["rmse_low"] <= least["rmse_high"] for row in of_width)
    if len(of_width) < 2 or not alike:
        return ""
    return (
        "The errors of predictions differ by no more than chance: all their intervals overlap. "
        "What follows goes by time."
    )


# ---- numbers for people


def _with_interval(row: Row, key: str) -> str:
    text, high = _short(row[key], 3), row[f"{key}_high"]
    return text if high in (None, row[key]) else f"{text}±{_short(high - row[key])}"


def _short(value: float, digits: int = 1) -> str:
    """Return a number with so many digits, without an exponent where it is easy to read so."""
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}" if value else "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):.{max(decimals, 0)}f}"
