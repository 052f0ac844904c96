"""The random rows of a table on which `gzkcore plan` and `compare` try features."""

import contextlib
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

from gzkcore._util.typing import Doubles, Integers, OnProgress
from gzkcore.learn.held_out import hashed
from gzkcore.rows.files import Table
from gzkcore.rows.frames import Frame
from gzkcore.rows.values import BadValueError
from gzkcore.tabular.columns.place import on_sphere

from .arguments import chosen_columns, listed
from .frame_rows import FrameRows, read_rows
from .held_out import check_rows, check_targets_differ
from .hints import about_row_numbers, numbering_columns
from .inputs import check_places
from .output import MOST_NAMED, options_named

# Features are tried on at most so many random rows, with at most so many values.
DRAWN_ROWS = 1 << 14
DRAWN_VALUES = 1 << 22


class NumberColumns(NamedTuple):
    """The columns of numbers that features are made of, and the target."""

    target: str  # "" if there is none
    columns: list[str]
    sphere: bool  # whether they are latitude and longitude; else they are standardised


def number_columns(
    table: Table, target: str | None, lat: str | None, lon: str | None, columns: str | None,
    drop: str | None,
) -> NumberColumns:  # fmt: skip
    """Return the columns of numbers that features are made of."""
    chosen, sphere = chosen_columns(table, target, lat, lon, columns, drop)
    return NumberColumns(target or "", chosen, sphere)


@contextlib.contextmanager
def _advice(table: Table, asked: NumberColumns) -> Iterator[None]:
    """Say in errors how to leave out a column of text, or which option helps with a bad value."""
    try:
        with options_named(drops=False):
            yield
    except BadValueError as first:
        error = _of_target(table, asked.target) or first
        if error.is_text and error.column == asked.target:
            raise ValueError(
                f"{error.what}; mend or drop such rows, or predict another column, --target"
            ) from None
        if not error.is_text or asked.sphere:
            raise
        rest = [name for name in asked.columns if name != error.column]
        usable = table.numeric(rest[:MOST_NAMED])
        named = shlex.quote(listed(usable)) if usable else "NAMES"
        more = ",..." if len(rest) > MOST_NAMED else ""
        raise ValueError(
            f"{error.what}; mend or drop such rows, or choose columns without {error.column!r}: "
            f"--columns {named}{more}"
        ) from None


def _of_target(table: Table, target: str) -> BadValueError | None:
    """Return the error of a target that holds text, which comes before those of other columns."""
    try:
        if target:
            next(table.batches([target]), None)
    except BadValueError as error:
        return error if error.is_text else None
    return None


class ColumnSample:
    """Means, variances, ranges and a random sample of rows."""

    def __init__(self, names: list[str], seed: int) -> None:
        width = len(names)
        self.most = max(1, min(DRAWN_ROWS, DRAWN_VALUES // width))
        self.seed = seed
        self.scaler = StandardScaler()
        self.n_rows = 0
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
        self.names = names
        self.numbers, self.values = np.empty(0, np.int64), np.empty((0, width))

    def add(self, numbers: Integers, values: Doubles) -> None:
        """Add rows, which have these numbers in the file."""
        self.n_rows += len(values)
        self.low = np.minimum(self.low, values.min(axis=0))
        self.high = np.maximum(self.high, values.max(axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            self.scaler.partial_fit(values)
        self.numbers = np.concatenate([self.numbers, numbers])
        self.values = np.concatenate([self.values, values])
        sample = np.argsort(hashed(self.numbers, self.seed))[: self.most]
        self.numbers, self.values = self.numbers[sample], self.values[sample]

    def numbering(self) -> dict[str, tuple[float, float]]:
        """Return the columns that seem to number the rows, and their ranges."""
        ends = self.low, self.high
        return numbering_columns(self.names, self.numbers, self.values, self.n_rows, ends)


def drawn_rows(
    table: Table, asked: NumberColumns, seed: int, report: OnProgress, notes: list[str],
    classify: bool = False,
) -> tuple[Any, Any, int]:  # fmt: skip
    """Return random rows, standardised or on the globe, targets, and the number of all rows."""
    with _advice(table, asked):
        try:
            X, y, n_rows = _rows_of_numbers(table, asked, seed, report, notes)
        except BadValueError as error:
            if error.is_missing and not asked.target:
                encodes = "or add --target: text, dates and gaps are then encoded"
                raise ValueError(f"{error}, {encodes}") from None
            if not asked.target or not (error.is_text or error.is_missing):
                raise
            whole = read_rows(
                table, asked.target, asked.columns, places=asked.sphere, classify=classify,
                test_fraction=0, drop_missing=False, seed=seed, report=report,
                say=notes.append,
            )  # fmt: skip
            (X, y), n_rows = _some_of(whole, seed), len(whole.y)
    notes[:0] = table.notes
    return X, y, n_rows


def _some_of(whole: FrameRows, seed: int) -> tuple[Any, Any]:
    """Return random rows, standardised or on the globe, and their targets."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(whole.y))[:DRAWN_ROWS])
    frame, y = whole.train.take(rows), whole.y[rows]
    if whole.inputs.west is not None:
        return on_sphere(np.column_stack(list(frame.values.values()))), y
    columns = {name: _standardised(column) for name, column in frame.values.items()}
    if all(column.dtype.kind == "f" and np.isfinite(column).all() for column in columns.values()):
        return np.column_stack(list(columns.values())), y  # only the target has text or gaps
    return Frame(columns), y


def _rows_of_numbers(
    table: Table, asked: NumberColumns, seed: int, report: OnProgress, notes: list[str]
) -> tuple[Doubles, Doubles | None, int]:
    """Return the same for a table of numbers, every value of which is checked."""
    width = len(asked.columns)
    names = [*asked.columns, *([asked.target] if asked.target else [])]
    sample = ColumnSample(names, seed)
    for first, values, done in table.batches(names):
        rows = np.arange(first, first + len(values))
        if asked.sphere:
            check_places(table, rows, values[:, :width])
        sample.add(rows, values)
        report("reading", done)
    check_rows(table, sample.n_rows)
    for name, scale in zip(names, sample.scaler.scale_, strict=True):
        if not np.isfinite(scale):
            raise ValueError(
                f"{table.path}: column {name!r} has values so large that their squares overflow; "
                "use another unit"
            )
    if (sample.low == sample.high)[:width].all():
        raise ValueError(
            f"{table.path}: every column is constant, so that there is nothing to predict from; "
            "choose other columns"
        )
    if not asked.sphere and {*asked.columns} == {*table.beside(asked.target)}:
        ranges = {k: v for k, v in sample.numbering().items() if k in asked.columns}
        if ranges and (note := about_row_numbers(ranges, asked.columns)):
            notes.append(note)
    if asked.target:
        check_targets_differ(table, asked.target, sample.low[-1], sample.high[-1])
    y, inputs = sample.values[:, -1] if asked.target else None, sample.values[:, :width]
    if asked.sphere:
        return on_sphere(inputs), y, sample.n_rows
    return (inputs - sample.scaler.mean_[:width]) / sample.scaler.scale_[:width], y, sample.n_rows


def _standardised(column: Any) -> Any:
    """Return a column of numbers with mean 0 and variance 1, and any other as it is."""
    if column.dtype.kind != "f" or np.isnan(column).all() or not np.nanstd(column):
        return column
    return (column - np.nanmean(column)) / np.nanstd(column)
