"""Every method on a user's data: what `gzkcore.compare` does.

A worker process, fed through its standard input, measures one method at one width after the other,
each in a fork of its own (where forking is safe, else in a new worker), so that the peak of its
memory is its own. Results are written after every run.
"""

import contextlib
import ctypes
import difflib
import hashlib
import io
import json
import math
import os
import pickle
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from gzkcore._util.config import show_config
from gzkcore._util.files import replacing
from gzkcore._util.memory import forget_peak, resident_memory
from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.threads import n_threads
from gzkcore._util.timing import seconds_per_row
from gzkcore._util.typing import Data, Doubles, Rows, Seed
from gzkcore._util.validation import check_integer, check_positive, dense
from gzkcore._util.wording import counted, plain, shortened
from gzkcore.features.base import FeatureMap, check_rows, check_unit, plain_output
from gzkcore.features.trials import AS_GOOD, JUDGED, cheapest_of_the_best, check_widths, split_rows
from gzkcore.kernels.base import Kernel
from gzkcore.metrics import mean_kernel_error, relative_frobenius_error, spectral_error

from .methods import METHODS, Wanted, as_any_kernel

if sys.platform != "win32":
    import fcntl

__all__ = ["Comparison", "compare"]

FEWEST_ROWS = 20
_CONFIDENCE = 0.95
# Predictions are as good if their error is at most this many times the least.
_PREDICTS_AS_WELL = 1.02
# Rows and columns that a method is warmed up with, before its memory is measured.
_WARM_ROWS, _WARM_WIDTH = 64, 16
# What is averaged over the seeds, if it was measured.
_MEASURED = ("error", "mean_error", "spectral_error", "rmse", "r2")

_START = "from gzkcore.evaluate.compare import serve; serve()"
_PARENT = "GZKCORE_COMPARING"  # set for the worker: the process that it works for
_PR_SET_PDEATHSIG = 1
_FORKS = sys.platform == "linux"  # elsewhere a fork may meet libraries that can't bear it

Report = Callable[[str, float, str], None]
Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """What `compare` found: print it.

    Attributes
    ----------
    kernel : str
        The kernel with every parameter a number.
    n_samples, n_features : int
        Of the data.
    n_fitted, n_judged : int
        Rows that each seed fits to, and others that it is judged by.
    n_seeds : int
    lam : float
        Ridge of `spectral_error`, in units of the kernel matrix of all rows.
    machine : dict
        Instruction set, threads, and version of the package.
    rows : list of dict
        For each method and width, by width and error: `method`, `n_components`, `width` (that of
        the output), `features` (what was fitted); means over the seeds,
        `..._low` and `..._high` (95 % interval of the mean, None for one seed) and `..._spread`
        (standard deviation) of `error` (relative, Frobenius), `mean_error` (over pairs of rows),
        `spectral_error` and, with y, `rmse` and `r2`; `error_ratio` to the least of the width;
        `fit_seconds`, `row_seconds` (transform), `seconds` (both, for n_fitted rows), `time_ratio`
        to the least of the width; `megabytes` (peak); `front`: no other is both faster and closer.
    refused : list of dict
        `method`, `n_components` (a list) and `reason`.
    best : dict
        A row of the largest width: the fastest with nearly the least `rmse` (`error` without y);
        None if all are refused.
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

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw error against time and the methods that none beats, to a .png, .pdf or .svg file.

        Needs matplotlib, ``pip install gzkcore[cli]``.
        """
        from .draw import draw_comparison

        draw_comparison(Path(path), self.rows, self.n_fitted, self.predicts, self.title)

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
            cells = []
            for row in self.rows:
                if row["n_components"] != width:
                    continue
                cells.append(
                    [
                        row["method"] + (" *" if row["front"] else ""),
                        _with_interval(row, "error"),
                        *(
                            [_with_interval(row, "rmse"), f"{row['r2']:.3f}"]
                            if self.predicts
                            else []
                        ),
                        _short(row["fit_seconds"], 2),
                        _short(1e6 * row["row_seconds"], 2),
                        _short(row["time_ratio"], 2),
                        f"{row['megabytes']:,.0f}",
                    ]
                )
            yield counted(width, "component"), header, cells

    def notes(self) -> list[str]:
        """Return what the columns mean, who couldn't take part, and what to take."""
        lines = [
            (
                f"error: relative Frobenius error of the kernel of {self.n_judged:,} rows that "
                f"were not fitted to; mean over {counted(self.n_seeds, 'seed')}, ± half its "
                f"{_CONFIDENCE:.0%} interval"
            )
        ]
        if self.predicts:
            lines.append(
                "rmse, R²: of a ridge on the features, on the same rows; alpha is chosen for each"
            )
        lines += [
            (
                f"fit: on {self.n_fitted:,} rows; µs/row: to transform them; × least: the time of "
                "both to that of the fastest of this width"
            ),
            (
                "MB: peak resident memory of a process of its own, above that before; the features "
                f"of {self.n_fitted:,} rows are part of it"
            ),
            "*, the front: none of any width is both closer and faster",
        ]
        done = {row["method"] for row in self.rows}
        for row in self.refused:
            at = (
                f" with {', '.join(map(str, row['n_components']))}" if row["method"] in done else ""
            )
            lines.append(f"{row['method']}{at}: {shortened(row['reason'])}")
        if self.best is not None:
            lines.append("")
            times, what = (
                (_PREDICTS_AS_WELL, "rmse") if self.predicts else (AS_GOOD, "error of the kernel")
            )
            lines.append(
                f"The fastest of {counted(self.best['n_components'], 'component')} within {times} "
                f"times the least {what}: {self.best['method']},"
            )
            lines.append(shortened(self.best["features"]))
        return lines

    def __str__(self) -> str:
        lines = [self.title, ""]
        for title, header, cells in self.tables():
            sizes = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
            lines.append(title)
            for line in [header, *cells]:
                first, *rest = (
                    cell.ljust(size) if i == 0 else cell.rjust(size)
                    for i, (cell, size) in enumerate(zip(line, sizes, strict=True))
                )
                lines.append("  ".join([first, *rest]).rstrip())
            lines.append("")
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
    report: Report | None = None,
) -> Comparison:
    """Compare every method on these data: error, time and peak memory, at equal width.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        The data or a random sample of them, as the features are to see them: scale the columns.
    y : array-like of shape (n_rows,) or (n_rows, n_targets), optional
        What to predict, numbers: adds the error of a ridge on the features.
    kernel : str, Kernel or callable, default="gaussian"
        An alias or instance of `gzkcore.kernels`, "additive_chi2" or "skewed_chi2" (with skewedness
        1), or a function of two arrays of rows that a new process can import: from a module, not
        a script or notebook.
    methods : "all" or sequence of str, default="all"
        Names as in the result. One that can't do this kernel or these data is listed as `refused`,
        with its reason.
    n_components : int or sequence of int, default=(256, 1024)
        Widths to try.
    n_seeds : int, default=3
        Each draws features, rows to fit to and rows to be judged by, the same for all methods.
    max_samples : int, default=10_000
        Rows to fit to and to time with, at most; they are drawn from all.
    max_seconds : float, default=300.0
        A method that takes longer for a seed is ended and listed as refused.
    lam : float, default=1.0
        Ridge of `spectral_error`, in units of the kernel matrix of all rows.
    output : str or path, optional
        A .json file for the results, written after every one. If it is there, what it holds of the
        same data and settings is not done again; methods, widths and seeds may be added, by two
        calls at once too. A kernel's function is known by its name: if you edit it, take another.
    random_state : int, RandomState, Generator or None, default=None
        None: fresh, or that of `output`.
    n_samples : int, optional
        Number of rows in all, where X is a sample; at least those of X.
    report : callable, optional
        Is told a label, the share of the work that is done, and what is measured now.

    Returns
    -------
    Comparison
        Print it; `plot(path)` draws it, `to_json()` gives all numbers.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, X has fewer than 20 rows, or `output` is of other data
        or settings.
    OSError
        If the process that measures can't be started, or `output` can't be written.

    Notes
    -----
    Methods run one after the other, each at each width in a process of its own, with all threads
    that the package may use; it ends with this one. A run whose error is not finite is refused.
    Times are wall clock: `fit` once for each seed, `transform` the least of three calls on the rows
    of the fit, each to a new array; median over the seeds. The memory is the peak of the process in
    fit and transform over what it held before, data loaded and libraries warm (Linux: VmHWM less
    VmRSS; elsewhere growth of the peak). "gegenbauer-published" takes the best of 18 degrees and
    orders, chosen on rows of the fit, which is not counted.

    References
    ----------
    The measures are those of `gzkcore.metrics`.

    Examples
    --------
    >>> import numpy as np
    >>> import gzkcore
    >>> X = np.random.default_rng(0).standard_normal((400, 3))
    >>> methods = ["gegenbauer", "fourier-iid", "tensorsketch"]
    >>> found = gzkcore.compare(X, methods=methods, n_components=64, n_seeds=2, random_state=0)
    >>> found.best["method"], [row["method"] for row in found.refused]
    ('gegenbauer', ['tensorsketch'])
    """
    names, widths = _check_methods(methods), check_widths(n_components)
    n_seeds = check_integer("n_seeds", n_seeds, 1)
    most = check_integer("max_samples", max_samples, 1)
    lam, limit = check_positive("lam", lam), check_positive("max_seconds", max_seconds)
    data = _check_rows(X)
    if data.shape[0] < FEWEST_ROWS:
        raise ValueError(
            f"X has {counted(data.shape[0], 'row')}; a comparison takes {FEWEST_ROWS} or more"
        )
    n_given = data.shape[0]
    targets = None if y is None else _check_targets(y, n_given)
    total = n_given if n_samples is None else check_integer("n_samples", n_samples, n_given)
    results = _Results(output, random_state)
    draws = generator(results.seed)
    if data.shape[0] > most + JUDGED:
        pool = np.sort(draws.choice(data.shape[0], most + JUDGED, replace=False))
        data, targets = data[pool], None if targets is None else targets[pool]
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError("kernel='precomputed' has no rows to make features of; pass a function")
    resolved = as_any_kernel(kernel).resolve(data)
    if resolved.unit_sphere:
        check_unit(data)
    resolved(dense(data[:2]))  # what is wrong with the kernel is wrong with every method
    n_fitted, n_judged = (part.size for part in split_rows(data.shape[0], draws, most))
    task = _Task(data, targets, resolved, results.seed, most, lam * n_judged / total)
    results.check(task, _about_kernel(resolved, kernel), lam, total)
    results.check_writable()
    todo = [(name, width) for width in widths for name in names]
    died = _measure_all(task, todo, n_seeds, limit, results, report or (lambda *_: None))
    rows, refused = _rows(results, died, names, widths, n_seeds, n_fitted)
    return Comparison(
        kernel=results.settings["kernel"],
        n_samples=total,
        n_features=data.shape[1],
        n_fitted=n_fitted,
        n_judged=n_judged,
        n_seeds=n_seeds,
        lam=lam,
        machine={name: results.settings[name] for name in ("version", "isa", "n_threads")},
        rows=rows,
        refused=refused,
        best=_best(rows, "error" if targets is None else "rmse"),
        predicts=targets is not None,
    )


# ---- arguments


def _check_rows(X: Data) -> Rows:
    rows: Any = check_rows(type("compare", (FeatureMap,), {})(), X, reset=True, finite=False)
    dense_rows = isinstance(rows, np.ndarray)
    values = rows if dense_rows else rows.data
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
        row = at if dense_rows else int(np.searchsorted(rows.indptr, at, "right")) - 1
        raise ValueError(f"X has NaN or infinity in row {row}; mend or drop such rows")
    checked: Rows = rows
    return checked


def _check_methods(methods: Any) -> list[str]:
    if isinstance(methods, str):
        if methods == "all":
            return list(METHODS)
        methods = [methods]
    given = list(methods) if isinstance(methods, Iterable) else [methods]
    if not all(isinstance(name, str) for name in given):
        raise TypeError(f"methods={methods!r} are no names; use 'all', or a list of names")
    names = list(dict.fromkeys(given))
    if "all" in names:
        return list(METHODS)
    for name in names:
        if name not in METHODS:
            near = difflib.get_close_matches(str(name), METHODS, 1, cutoff=0.5)
            raise ValueError(
                f"methods: there is no method {name!r}"
                + (f" (did you mean {near[0]!r}?)" if near else "")
                + f"; use 'all' or some of {', '.join(METHODS)}"
            )
    if not names:
        raise ValueError("methods=[] names no method; use 'all', or one or more names")
    return names


def _check_targets(y: ArrayLike, n_rows: int) -> Doubles:
    if np.iscomplexobj(y):
        raise TypeError("y is complex; pass real numbers")
    try:
        targets: Doubles = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y is not numeric ({error}); pass numbers") from None
    if targets.ndim not in (1, 2) or targets.shape[0] != n_rows:
        raise ValueError(
            f"y has shape {targets.shape}, but X has {counted(n_rows, 'row')}; pass a target "
            "for each"
        )
    if not np.isfinite(targets).all():
        row = int(np.flatnonzero(~np.isfinite(targets.reshape(n_rows, -1)).all(axis=1))[0])
        raise ValueError(f"y has no finite number in row {row}; mend or drop such rows")
    if (targets == targets[0]).all():
        raise ValueError(
            "y is the same in every row, so there is nothing to predict; pass others, or none"
        )
    return targets


def _about_kernel(resolved: Kernel, given: Any) -> str:
    """Return the kernel's repr, the same in every process: functions have names, no addresses."""
    function = getattr(resolved, "function", None)
    if function is None or isinstance(given, Kernel):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", plain(repr(resolved)))
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"


# ---- results, written after every run

Cells: TypeAlias = dict[tuple[str, int], dict[str, Any]]

_SETTINGS = (
    "data", "targets", "n_samples", "kernel", "max_samples", "lam", "seed", "version", "isa",
    "n_threads",
)  # fmt: skip
# What every run holds.
_OF_RUN: dict[str, type | tuple[type, ...]] = {
    "seed": int, "width": int, "features": str,
    **dict.fromkeys(("fit_seconds", "row_seconds", "error", "mean_error"), (int, float)),
}  # fmt: skip


class _Results:
    """The runs that were done, by method and width, and the file where they are kept."""

    def __init__(self, path: str | os.PathLike[str] | None, random_state: Seed) -> None:
        self.path = None if path is None else Path(path)
        self.settings: dict[str, Any] = {}
        self.cells: Cells = {}
        seed = None
        if self.path is not None:
            _check_output(self.path)
            self.settings, self.cells = _read(self.path)
            seed = self.settings.get("seed")
        if random_state is not None or seed is None:
            seed = int(as_seed_sequence(random_state).generate_state(1)[0])
        self.seed: int = seed

    def check(self, task: "_Task", kernel: str, lam: float, total: int) -> None:
        """Raise ValueError if the file is of other data or settings."""
        config = show_config()
        before, self.settings = (
            self.settings,
            {
                "data": _digest(task.X),
                "targets": None if task.y is None else _digest(task.y),
                "n_samples": total,
                "kernel": kernel,
                "max_samples": task.fitted,
                "lam": lam,
                "seed": self.seed,
                "version": config["version"],
                "isa": config["isa"],
                "n_threads": config["n_threads"],
            },
        )
        self._compare_settings(before)

    def _compare_settings(self, before: dict[str, Any]) -> None:
        for name in _SETTINGS if before else ():
            if before[name] != self.settings[name]:
                was, now = (
                    ("other values", "these")
                    if name in ("data", "targets")
                    else (str(before[name]), str(self.settings[name]))
                )
                raise ValueError(
                    f"{self.path} has results for other settings: {name} was {was}, and is {now} "
                    "now; use the same again, give another output, or delete it"
                )

    def cell(self, method: str, width: int) -> dict[str, Any]:
        return self.cells.setdefault((method, width), {"runs": {}, "reason": None, "limit": 0.0})

    def missing(self, method: str, width: int, n_seeds: int, limit: float) -> list[int]:
        """Return the seeds that are still to run."""
        cell = self.cell(method, width)
        if cell["limit"] < limit:  # it may take longer now
            cell["limit"] = 0.0
        if cell["reason"] or cell["limit"]:
            return []
        return [seed for seed in range(n_seeds) if seed not in cell["runs"]]

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # it may name a file beside
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def check_writable(self) -> None:
        """Raise now, not after the first result, where nothing can be written."""
        if self.path is not None:
            with self._named(), tempfile.TemporaryFile(dir=self.path.parent):
                pass

    def write(self) -> None:
        """Write all of it and what others wrote meanwhile, beside its place and renamed."""
        if self.path is None:
            return
        with _alone(self.path.parent), self._named():
            settings, others = _read(self.path)
            self._compare_settings(settings)
            both = others | {
                at: cell | {"runs": others.get(at, {"runs": {}})["runs"] | cell["runs"]}
                for at, cell in self.cells.items()
            }
            cells = [
                {
                    "method": method,
                    "n_components": width,
                    "reason": cell["reason"],
                    "limit": cell["limit"],
                    "runs": list(cell["runs"].values()),
                }
                for (method, width), cell in both.items()
                if cell["runs"] or cell["reason"] or cell["limit"]
            ]
            content = {"settings": self.settings, "cells": cells}
            text = json.dumps(content, indent=1, allow_nan=False)
            with replacing(self.path) as beside:
                beside.write_text(text + "\n", encoding="utf-8")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other comparison write to a folder, where the system can lock one."""
    if sys.platform == "win32":
        yield
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network drives have no locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _check_output(path: Path) -> None:
    if path.suffix.lower() != ".json":
        raise ValueError(f"output {path} should end with .json")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"output {path} is a folder; name a file")


def _read(path: Path) -> tuple[dict[str, Any], Cells]:
    """Return the settings and cells of a file, none if it is not there, or raise ValueError."""
    if not path.exists():
        return {}, {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
        settings = {name: found["settings"][name] for name in _SETTINGS}
        _check_type("seed", settings["seed"], int)
        kinds = _OF_RUN | (
            {} if settings["targets"] is None else dict.fromkeys(("rmse", "r2"), (int, float))
        )
        cells: Cells = {}
        for cell in found["cells"]:
            for run in cell["runs"]:
                for name, kind in kinds.items():
                    _check_type(name, run[name], kind)
                for name in ("megabytes", *_MEASURED):
                    _check_type(name, run.get(name, 0.0), (int, float))
            _check_type("reason", cell["reason"], (str, type(None)))
            cells[cell["method"], cell["n_components"]] = {
                "runs": {run["seed"]: run for run in cell["runs"]},
                "reason": cell["reason"],
                "limit": float(cell["limit"]),
            }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is no result of compare ({type(error).__name__}: {error}); give another "
            "output, or delete it"
        ) from None
    return settings, cells


def _check_type(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _digest(values: Any) -> str:
    """Return a hash of an array's shape, type and values, or of a sparse matrix."""
    found = hashlib.sha256(f"{values.shape} {values.dtype}".encode())
    parts = [values] if isinstance(values, np.ndarray) else [values.data, values.indices]
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]


# ---- the worker


@dataclass
class _Task:
    """What a worker needs to know; `lam` in units of the kernel matrix of the judged rows."""

    X: Rows
    y: Doubles | None
    kernel: Kernel
    seed: int
    fitted: int
    lam: float


def _measure_all(
    task: _Task,
    cells: list[tuple[str, int]],
    n_seeds: int,
    limit: float,
    results: _Results,
    tell: Report,
) -> dict[tuple[str, int], str]:
    """Run what is missing, and keep it; return why processes died, which is not kept."""
    todo = {cell: results.missing(*cell, n_seeds, limit) for cell in cells}
    total = max(1, sum(map(len, todo.values())))
    done, died = 0, {}
    with tempfile.TemporaryFile() as errors, contextlib.closing(_Worker(task, errors)) as worker:
        for (name, width), seeds in todo.items():
            if not seeds:
                continue
            cell, finished = results.cell(name, width), done + len(seeds)
            tell("comparing", done / total, f"{name}, {width:,}")
            for run in worker.measure(name, width, seeds, limit):
                if "seed" in run:
                    cell["runs"][run["seed"]] = run
                    done += 1
                    tell("comparing", done / total, f"{name}, {width:,}")
                elif "died" in run:
                    died[name, width] = run["died"]
                    continue
                else:
                    cell |= run  # a reason, or the limit that it met
                results.write()
            done = finished
        tell("comparing", 1.0, "")
    return died


class _Pickler(pickle.Pickler):
    def reducer_override(self, given: Any) -> Any:
        """Refuse what a new process would look for in a script that it doesn't run."""
        if isinstance(given, type | FunctionType) and given.__module__ == "__main__":
            raise pickle.PicklingError(f"{given.__qualname__} is defined in a script or notebook")
        return NotImplemented


def _pickled(task: _Task) -> bytes:
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(task)
    return file.getvalue()


class _Worker:
    """A process that measures; started when it is needed, and again if it has ended."""

    def __init__(self, task: _Task, errors: IO[bytes]) -> None:
        try:
            self._task = _pickled(task)
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            raise ValueError(
                f"the kernel can't be sent to another process ({error}); define its function in a "
                "module, a file of its own that is imported"
            ) from None
        self._process: Any = None
        self._errors = errors

    def measure(
        self, method: str, width: int, seeds: list[int], limit: float
    ) -> Iterator[dict[str, Any]]:
        """Yield a run for each seed, which may take `limit` seconds, or why there is none.

        That is {"reason": of the method, kept}, {"died": how its process ended, not kept} or
        {"limit": the seconds that were not enough, kept}.
        """
        given, taken = self._streams()
        late = False

        def end() -> None:
            nonlocal late
            late = True
            self._kill()

        with contextlib.suppress(BrokenPipeError):
            given.write(json.dumps([method, width, seeds]).encode() + b"\n")
            given.flush()
            while True:
                timer = threading.Timer(min(limit, threading.TIMEOUT_MAX), end)
                timer.daemon = True
                timer.start()
                try:
                    line = taken.readline()
                finally:
                    timer.cancel()
                if not line:
                    break
                run = json.loads(line)
                if "ended" not in run:
                    yield run
                    continue
                if run["ended"]:
                    yield {"died": _death(run["ended"])}
                if run["last"]:
                    self.close()
                return
        code = self.close()
        yield {"limit": limit} if late else {"died": _death(code)}

    def _streams(self) -> tuple[IO[bytes], IO[bytes]]:
        """Return input and output of the process, and start it if there is none."""
        started = self._process is None
        if self._process is None:
            path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
            self._process = subprocess.Popen(  # noqa: S603  this Python, a line of ours
                [sys.executable, "-P", "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=os.environ
                | {"PYTHONPATH": path, _PARENT: str(os.getpid())}
                | dict.fromkeys(("GZKCORE_NUM_THREADS", "OMP_NUM_THREADS"), str(n_threads())),
                start_new_session=True,  # Ctrl-C is answered by the parent
            )
        given, taken = self._process.stdin, self._process.stdout
        if started:
            with contextlib.suppress(BrokenPipeError):
                given.write(len(self._task).to_bytes(8, "little") + self._task)
                given.flush()
            if taken.readline() != b"ready\n":
                self._errors.seek(0)
                said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
                raise OSError(
                    "the process that measures could not start: "
                    + (said[-1] if said else _death(self._process.wait()))
                )
        return given, taken

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def close(self) -> int:
        """End the process and what it has started, now; return its exit code."""
        if self._process is None:
            return 0
        self._kill()
        code = int(self._process.wait())
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._process = None
        return code


def _death(code: int) -> str:
    why = f"by signal {-code}" if code < 0 else f"with code {code}"
    return f"its process was ended {why}" + (" (out of memory?)" if code == -9 else "")


def serve() -> None:
    """Be the worker: read a task, then jobs, a line each; answer in lines of JSON.

    A job is [method, width, seeds]. A line of the answer is a run, as `_run` returns it, or
    {"reason": why there is none}; at last {"ended": exit code, "last": whether this was
    the worker's last job}.
    """
    warnings.simplefilter("ignore")
    parent = int(os.environ[_PARENT])
    _end_with(parent)
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print is no result
    source = sys.stdin.buffer
    size = int.from_bytes(source.read(8), "little")
    task: _Task = pickle.loads(source.read(size))  # noqa: S301  from the parent process
    out.write(b"ready\n")

    def send(run: dict[str, Any]) -> None:
        out.write(json.dumps(run).encode() + b"\n")

    while line := source.readline():
        method, width, seeds = json.loads(line)
        if not _FORKS:
            _measure(task, method, width, seeds, send)
            send({"ended": 0, "last": True})
            return
        worker = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                _end_with(worker)
                _measure(task, method, width, seeds, send)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        send({"ended": os.waitstatus_to_exitcode(status), "last": False})


def _end_with(parent: int) -> None:
    """End this process when its parent ends, however that is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)
    elif sys.platform != "win32":

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(1)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


def _measure(
    task: _Task, method: str, width: int, seeds: list[int], send: Callable[[dict[str, Any]], None]
) -> None:
    """Send what a method is worth for each seed, or why it isn't."""
    memory = True
    for seed in seeds:
        try:
            run = _run(task, method, width, seed, memory)
        except (TypeError, ValueError) as error:
            send({"reason": plain(str(error))})
            return
        except Exception as error:  # noqa: BLE001  of a method, which is then listed with it
            send({"reason": f"{type(error).__name__}: {plain(str(error))}"})
            return
        memory = False
        send(run)


def _run(task: _Task, method: str, width: int, seed: int, memory: bool) -> dict[str, Any]:
    entropy = np.random.SeedSequence([task.seed, seed])
    fitted, judged = split_rows(task.X.shape[0], generator(entropy), task.fitted)
    train, test = task.X[fitted], task.X[judged]
    draw = int(entropy.generate_state(1)[0]) >> 1
    features = plain_output(METHODS[method](Wanted(task.kernel, width, train, draw)))
    before = 0
    if memory:
        _warm_up(features, train)
        forget_peak()
        before, _ = resident_memory()
    start = time.perf_counter()
    features.fit(train)
    fit_seconds = time.perf_counter() - start
    Z = features.transform(train)
    run: dict[str, Any] = {"seed": seed, "fit_seconds": fit_seconds}
    if memory:
        run["megabytes"] = max(0.0, (resident_memory()[1] - before) / 1e6)
    run["row_seconds"] = seconds_per_row(features, train, reuse=False)
    run["width"] = Z.shape[1]
    run["features"] = plain(features.__repr__(N_CHAR_MAX=2000))
    K: Doubles = np.asarray(task.kernel(dense(test)), dtype=np.float64)
    Z_test = np.asarray(dense(features.transform(test)), dtype=np.float64)
    run["error"] = relative_frobenius_error(K, Z_test)
    run["mean_error"] = mean_kernel_error(K, Z_test)
    with contextlib.suppress(ValueError):  # a user's function need not be positive definite
        epsilon = spectral_error(K, Z_test, task.lam)
        run |= {"spectral_error": epsilon} if math.isfinite(epsilon) else {}
    if task.y is not None:
        run |= _predict(dense(Z), Z_test, task.y[fitted], task.y[judged])
    if not all(math.isfinite(run[key]) for key in _MEASURED if key in run):
        raise ValueError("its error is not finite; scale the columns")
    return run


def _warm_up(features: Any, train: Rows) -> None:
    """Let libraries load and start threads, which is no memory of the method."""
    small = clone(features)
    if "n_components" in small.get_params(deep=False):
        small.set_params(n_components=min(_WARM_WIDTH, features.n_components))
    with contextlib.suppress(ValueError, TypeError):
        plain_output(small).fit(train[:_WARM_ROWS]).transform(train[:_WARM_ROWS])


def _predict(Z: Any, Z_test: Doubles, y: Doubles, y_test: Doubles) -> dict[str, float]:
    from gzkcore.learn.ridge import RandomFeatureRidgeCV

    model = RandomFeatureRidgeCV(FunctionTransformer()).fit(Z, y)
    squares = float(np.mean(np.square(model.predict(Z_test.astype(Z.dtype)) - y_test)))
    constant = float(np.mean(np.square(y.mean(axis=0) - y_test)))
    r2 = 1 - squares / constant if constant else 0.0
    return {"rmse": math.sqrt(squares), "r2": r2}


# ---- from runs to rows


def _rows(
    results: _Results,
    died: dict[tuple[str, int], str],
    names: list[str],
    widths: list[int],
    n_seeds: int,
    n_fitted: int,
) -> tuple[list[Row], list[Row]]:
    """Return what was measured, by width and error, and why other methods weren't."""
    rows: list[Row] = []
    reasons: dict[tuple[str, str], list[int]] = {}
    for width in widths:
        of_width = []
        for name in names:
            cell = results.cell(name, width)
            reason = died.get((name, width)) or cell["reason"]
            if cell["limit"] and any(seed not in cell["runs"] for seed in range(n_seeds)):
                reason = f"a seed took more than {cell['limit']:g} s; allow it a larger max_seconds"
            if reason:
                reasons.setdefault((name, reason), []).append(width)
                continue
            runs = [cell["runs"][seed] for seed in range(n_seeds)]
            of_width.append(_row(name, width, runs, n_fitted))
        for value, ratio in (("error", "error_ratio"), ("seconds", "time_ratio")):
            least = min((row[value] for row in of_width), default=0.0)
            for row in of_width:
                row[ratio] = row[value] / least if least > 0 else 1.0
        rows += sorted(of_width, key=lambda row: float(row["error"]))
    for row in rows:
        row["front"] = not any(
            other["error"] <= row["error"]
            and other["seconds"] <= row["seconds"]
            and (other["error"], other["seconds"]) != (row["error"], row["seconds"])
            for other in rows
        )
    refused = [
        {"method": name, "n_components": at, "reason": reason}
        for (name, reason), at in reasons.items()
    ]
    return rows, refused


def _best(rows: list[Row], measure: str) -> Row | None:
    """Of the largest width the fastest with nearly the least error."""
    widest = [row for row in rows if row["n_components"] == rows[-1]["n_components"]]
    if not widest:
        return None
    return cheapest_of_the_best(
        widest,
        lambda row: float(row[measure]),
        lambda row: float(row["seconds"]),
        AS_GOOD if measure == "error" else _PREDICTS_AS_WELL,
    )


def _row(name: str, width: int, runs: list[dict[str, Any]], n_fitted: int) -> Row:
    row: Row = {"method": name, "n_components": width}
    row |= {key: runs[0][key] for key in ("width", "features")}
    for key in _MEASURED:
        values = [run[key] for run in runs if key in run]
        if len(values) < len(runs):
            continue
        row[key] = mean = statistics.fmean(values)
        low = high = spread = None
        if len(values) > 1:
            spread = statistics.stdev(values)
            student = float(stdtrit(len(values) - 1, (1 + _CONFIDENCE) / 2))
            half = student * spread / math.sqrt(len(values))
            low, high = mean - half, mean + half
        row |= {f"{key}_low": low, f"{key}_high": high, f"{key}_spread": spread}
    for key in ("fit_seconds", "row_seconds"):
        row[key] = statistics.median(run[key] for run in runs)
    row["seconds"] = row["fit_seconds"] + n_fitted * row["row_seconds"]
    row["megabytes"] = max(run.get("megabytes", 0.0) for run in runs)
    return row


def _with_interval(row: Row, key: str) -> str:
    text = _short(row[key], 3)
    return text if row[f"{key}_high"] is None else f"{text}±{_short(row[f'{key}_high'] - row[key])}"


def _short(value: float, digits: int = 1) -> str:
    """Return a number with so many digits, without an exponent where it is easy to read so."""
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}" if value else "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):.{max(decimals, 0)}f}"
