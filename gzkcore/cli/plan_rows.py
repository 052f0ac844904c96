"""The random rows of a table on which `gzkcore plan` and `compare` try features."""

from dataclasses import replace
from typing import Any

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore.datasets.globe import LatLonToSphere
from gzkcore.rows.files import Table
from gzkcore.rows.frames import Frame
from gzkcore.rows.values import BadValueError

from .frame_rows import FrameRows, read_rows
from .held_out import check_rows, check_targets_differ
from .recipes import Recipe
from .reports import Report
from .survey import DRAWN_ROWS, Survey, check_scales


def drawn_rows(
    table: Table,
    recipe: Recipe,
    seed: int,
    report: Report,
    notes: list[str],
    *,
    classify: bool = False,
) -> tuple[Any, Any, int]:
    """Return some of the rows at random, standardised or on the globe, targets, and all rows."""
    try:
        return _rows_of_numbers(table, recipe, seed, report, notes)
    except BadValueError as error:
        if error.is_missing and not recipe.target:
            encodes = "or add --target: text, dates and gaps are then encoded"
            raise ValueError(f"{error}, {encodes}") from None
        if not recipe.target or not (error.is_text or error.is_missing):
            raise
        every = read_rows(
            table, recipe.target, recipe.columns, places=recipe.sphere, classify=classify,
            test_fraction=0, drop_missing=False, seed=seed, report=report,
            say=lambda text: notes.append(f"Note: {text}"),
        )  # fmt: skip
        return *_some_of(every, seed), len(every.y)


def _some_of(every: FrameRows, seed: int) -> tuple[Frame | Doubles, Any]:
    """Return some of the rows at random, standardised or on the globe, and their targets."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(every.y))[:DRAWN_ROWS])
    frame, y = every.train.take(rows), every.y[rows]
    if every.recipe.places:
        return LatLonToSphere().transform(np.column_stack(list(frame.values.values()))), y
    columns = {name: _standardised(column) for name, column in frame.values.items()}
    if all(column.dtype.kind == "f" and np.isfinite(column).all() for column in columns.values()):
        return np.column_stack(list(columns.values())), y  # only the target has text or gaps
    return Frame(columns), y


def _rows_of_numbers(
    table: Table, recipe: Recipe, seed: int, report: Report, notes: list[str]
) -> tuple[Doubles, Doubles | None, int]:
    """Do so of a table of numbers, every value of which is checked."""
    width = len(recipe.columns)
    names = [*recipe.columns, *([recipe.target] if recipe.target else [])]
    survey = Survey(names, seed)
    for first, values, done in table.batches(names):
        rows = np.arange(first, first + len(values))
        recipe.check(table, rows, values[:, :width])
        survey.add(rows, values)
        report("reading", done)
    check_rows(table, survey.n_rows)
    check_scales(table, names, survey.scaler.scale_)
    if (survey.low == survey.high)[:width].all():
        raise ValueError(
            f"{table.path}: every column is constant, so that there is nothing to predict from; "
            "choose other columns"
        )
    if not recipe.sphere and {*recipe.columns} == {*table.beside(recipe.target)}:
        notes += [f"Note: {told}" for told in [survey.row_numbers(recipe.columns)] if told]
    if recipe.target:
        check_targets_differ(table, recipe.target, survey.low[-1], survey.high[-1])
    recipe = replace(
        recipe,
        mean=survey.scaler.mean_[:width].tolist(),
        scale=survey.scaler.scale_[:width].tolist(),
    )
    y = survey.values[:, -1] if recipe.target else None
    return recipe.inputs(survey.values[:, :width]), y, survey.n_rows


def _standardised(column: Any) -> Any:
    """Return a column of numbers with mean 0 and variance 1, any other as it is."""
    if column.dtype.kind != "f" or np.isnan(column).all() or not np.nanstd(column):
        return column
    return (column - np.nanmean(column)) / np.nanstd(column)
