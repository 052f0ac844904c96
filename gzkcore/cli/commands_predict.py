"""The command `predict`: apply a model that `fit` has saved."""

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gzkcore._util.wording import counted

from .arguments import MODEL, READING_OPTIONS, AsJson, Force, check_output, reads_a_table
from .output import (
    SHARE_DIGITS,
    STD_DIGITS,
    collected_notes,
    first_of,
    options_named,
    print_json,
    print_lines,
    progress,
    rounded,
    to_places,
)

UNLIKE = 1e-6  # a larger relative difference from the size asked for of cells is reported
PREDICTING, SOLVING = "predicting", "solving for standard deviations"
# FEW rows are predicted first, more than those whose standard deviations are exact and slow. The
# next part is larger, MORE times at most and up to MOST rows, as long as it is expected to take
# less than twice QUICK seconds: each part is progress.
FEW, MORE, MOST, QUICK = 128, 8, 1 << 19, 2.0
MOST_NEW = 4  # more new columns are not named one by one
OF_TEXT = (".csv", ".tsv", ".txt", ".dat")  # endings of files of text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gzkcore.rows.files import Table
    from gzkcore.rows.text import Reading

    from .inputs import Inputs


@reads_a_table
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that gzkcore fit saved.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", help="A table with the columns of the fit; none with --grid."
        ),
    ] = None,
    *,
    output: Annotated[Path, typer.Option(help="Where to write the table with its predictions.")],
    grid: Annotated[
        float | None,
        typer.Option(
            help="Instead of a table: size of the grid cells in degrees, for a model of latitude "
            "and longitude; the output is .nc (NetCDF), .tif (GeoTIFF) or .csv."
        ),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            help="South,north,west,east of the grid; by default the region of the training "
            "places, or the globe, -90,90,-180,180."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the new column; by default PREDICTED_ and the target's name."),
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard deviation of a new observation.")
    ] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="For labels, add the probability of each.")
    ] = False,
    no_formulas: Annotated[
        bool,
        typer.Option(
            "--no-formulas",
            help="In text, write what a spreadsheet would run, such as =A1, behind an apostrophe.",
        ),
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
    reading: "Reading",
) -> None:
    """Predict for every row of a table, in a new last column, or for every cell of a grid.

    A .csv file is copied unchanged, with the new column added. Predictions are rounded to a
    millionth of the standard deviation of the target, standard deviations to four digits. A
    .parquet file becomes .parquet or .csv; for a .npy or .npz file only the predictions are
    written, as .npy.
    """
    from gzkcore._util.model_io import load
    from gzkcore.rows.files import open_table
    from gzkcore.rows.text import DEFAULT

    from .inputs import forms_of, inputs_of, table_of

    started = time.perf_counter()
    _check_asked(model, data, grid, window)
    of_tables = [
        name for name in READING_OPTIONS if getattr(reading, name) != getattr(DEFAULT, name)
    ]
    of_tables += ["no_formulas"] * no_formulas
    if grid is not None and of_tables:
        option = f"--{of_tables[0].replace('_', '-')}"
        raise ValueError(f"{option} is for tables, but --grid reads no table; leave it out")
    fitted = load(model)
    known = table_of(model, fitted)
    labels = hasattr(fitted, "classes_")
    if std and labels:
        raise ValueError(
            f"--std: {model} predicts labels, which have no standard deviation; use --probabilities"
        )
    if probabilities and not labels:
        raise ValueError(f"--probabilities: {model} predicts numbers, not labels; use --std")
    name = name or f"PREDICTED_{known.target}"
    of_text = output.suffix.lower() in OF_TEXT
    predictor = _Predictor(fitted, inputs_of(fitted), name, std, probabilities, of_text, force)
    drifts = fitted.encoder_._drifts = [column.drift() for column in fitted.encoder_.columns_]
    with collected_notes() as notes:
        if data is not None:
            if reading.missing == DEFAULT.missing and known.missing:
                reading = reading._replace(missing=frozenset(known.missing))
            table = open_table(data, reading)
            table.forms, table.no_formulas = forms_of(fitted), no_formulas
            chosen = [c for c in fitted.encoder_.columns_ if getattr(c, "chosen", True)]
            table.padded |= {name for column in chosen for name in column.names}
            done = _predict_table(table, output, predictor, notes)
        else:
            done = _predict_grid(model, grid or 0.0, window, output, predictor)
        if data is not None or window is not None:  # others are around the places of the fit
            row = "data row {}" if data is not None else "cell {}"
            notes += [remark for drift in drifts for remark in drift.remarks(row, 1)]
    result: dict[str, Any] = {
        "output": str(output),
        **done,
        "columns": list(predictor.new),
        "seconds": time.perf_counter() - started,
        "notes": notes,
    }
    if as_json:
        print_json(result)
    else:
        what = "row" if data is not None else "cell"
        print_lines(f"{counted(done['rows'], what)} with {_named(list(predictor.new))}: {output}")
        if grid is not None:
            print_lines(*_about_grid(grid, done["shape"], done["window"], window is None))
        print_lines(*notes)


def _about_grid(step: float, shape: list[int], window: list[float], chosen: bool) -> Iterator[str]:
    """Yield the size of cells, if it is not as asked, and the window that was chosen."""
    from .cells import GLOBE

    south, north, west, east = window
    height, width = (north - south) / shape[0], (east - west) / shape[1]
    if max(abs(height - step), abs(width - step)) > UNLIKE * step:
        yield f"Cells: {height:.6g} by {width:.6g} degrees, so that whole cells fill the window"
    if not chosen:
        return
    where = "the globe" if (*window,) == GLOBE else "around the places of the fit"
    yield f"Window: {','.join(f'{degrees:g}' for degrees in window)}, {where}; --window changes it"


def _named(columns: list[str]) -> str:
    """Name the new columns; of the probabilities of many labels the first and the last."""
    if len(columns) <= MOST_NEW:
        return " and ".join(columns)
    first, *others = columns
    return f"{first} and {len(others):,} probabilities, {others[0]} to {others[-1]}"


def _check_asked(model: Path, data: Path | None, grid: float | None, window: str | None) -> None:
    """Raise ValueError unless there is a model, and either a table or a grid."""
    if data is not None and data.suffix == MODEL != model.suffix:
        raise ValueError(
            f"{data} is in the place of the table; name the model first: gzkcore predict {data} "
            f"{model}"
        )
    if (data is None) == (grid is None):
        raise ValueError("give either a table to predict for, or --grid with a number of degrees")
    if window is not None and grid is None:
        raise ValueError(f"--window {window} needs a grid; add --grid")


def _predict_table(
    table: "Table", output: Path, predictor: "_Predictor", notes: list[str]
) -> dict[str, Any]:
    inputs, new = predictor.inputs, predictor.new
    table.require(inputs.columns, of_model=True)
    check_output(table, output, list(new), predictor.force)
    if output.suffix.lower() == ".npy" and len({dtype.kind for dtype in new.values()}) > 1:
        raise ValueError(
            f"--output {output}: a .npy file holds numbers or text, but --probabilities writes "
            "both; use a .csv or .parquet file, or leave --probabilities out"
        )
    n_rows, before = 0, 0.0

    def compute(piece: Any) -> "list[NDArray[Any]]":
        nonlocal n_rows
        rows: Any = inputs.read(table, n_rows, piece)
        n_rows += len(rows)
        return predictor(rows, report, before, table.done)

    with options_named(drops=False, columns=False), progress(predictor.remedies) as report:
        for done in table.append(inputs.columns, compute, new, output):
            before = done
    notes += table.notes
    return {"rows": n_rows}


def _predict_grid(
    model: Path, step: float, window: str | None, output: Path, predictor: "_Predictor"
) -> dict[str, Any]:
    from .grid import check_grid_output, grid_of, window_asked, write_grid
    from .inputs import rows_at

    known, new = predictor.fitted.table_, predictor.new
    asked = window_asked(step, window, known.window)
    cells = grid_of(step, asked)
    take = rows_at(predictor.fitted)
    if take is None:
        raise ValueError(
            f"--grid: {model} predicts from {first_of(predictor.inputs.columns)}, not from places "
            "alone; give a table with these columns, or fit latitude and longitude with --lat and "
            "--lon"
        )
    labels = hasattr(predictor.fitted, "classes_")
    check_grid_output(output, labels, list(new), predictor.force)
    with progress(predictor.remedies) as report:
        columns = predictor(take(cells.places), report, 0.0, 1.0)
        write_grid(output, cells, dict(zip(new, columns, strict=True)), known.target)
    return {"rows": math.prod(cells.shape), "shape": list(cells.shape), "window": [*asked]}


class _Predictor:
    """A function from the rows of a model to the new columns, rounded for files of text."""

    def __init__(
        self, fitted: Any, inputs: "Inputs", name: str, std: bool, shares: bool, of_text: bool,
        force: bool,
    ) -> None:  # fmt: skip
        import numpy as np

        self.fitted, self.inputs, self.std, self.shares = fitted, inputs, std, shares
        self.of_text, self.force = of_text, force
        classes: Any = getattr(fitted, "classes_", None)
        # The names and types of the new columns.
        self.new = {name: np.dtype(np.float64) if classes is None else classes.dtype}
        more = [f"{name}_{label}" for label in classes] if shares else [f"{name}_STD"] * std
        self.new |= dict.fromkeys(more, np.dtype(np.float64))
        self.remedies = dict.fromkeys((PREDICTING, SOLVING), "; without --std it takes less" * std)

    def __call__(self, rows: Any, report: Any, before: float, after: float) -> "list[NDArray[Any]]":
        """Predict a few rows, then more at a time while that is quick; report the shares done."""
        import numpy as np

        self.fitted._hear_of_solves(report, SOLVING)
        report(PREDICTING, before or None)
        parts: list[Any] = []
        start, size = 0, FEW
        while start < len(rows) or not parts:
            began = time.perf_counter()
            stop = start + size if start + size + FEW <= len(rows) else len(rows)
            parts.append(self._of_some(rows.take(slice(start, stop))))
            took = max(time.perf_counter() - began, 1e-9)
            size = min(max(size, int(size * min(MORE, 2 * QUICK / took))), MOST)
            start = stop
            report(PREDICTING, before + (after - before) * start / max(1, len(rows)))
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _of_some(self, rows: Any) -> "list[NDArray[Any]]":
        if self.shares:
            shares = self.fitted.predict_proba(rows)
            first, others = self.fitted.classes_[shares.argmax(axis=1)], [*shares.T]
        elif self.std:
            first, *others = self.fitted.predict(rows, return_std=True)
        else:
            first, others = self.fitted.predict(rows), []
        if not self.of_text:
            return [first, *others]
        digits = STD_DIGITS if self.std else SHARE_DIGITS
        spread = 0.0 if self.shares else getattr(self.fitted, "_scales", [0.0])[0]  # of y
        first = to_places(first, float(spread)) if spread else rounded(first)
        return [first, *(rounded(column, digits) for column in others)]
