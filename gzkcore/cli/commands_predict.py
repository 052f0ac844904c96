"""The command `predict`: use what `fit` has learnt."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gzkcore._util.wording import counted

from .arguments import AsJson, check_output
from .output import collected_notes, print_json, print_lines, progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .recipes import FrameRecipe, Recipe


def predict(
    model: Annotated[Path, typer.Argument(help="A model that gzkcore fit saved.")],
    data: Annotated[Path, typer.Argument(help="A table with the columns of the fit.")],
    output: Annotated[Path, typer.Option(help="Where to write the table with its predictions.")],
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
    as_json: AsJson = False,
) -> None:
    """Predict for every row of a table, in a new last column.

    A .csv file is copied unchanged, with the new column added; a .parquet file becomes .parquet or
    .csv; for a .npy or .npz file only the predictions are written, as .npy.
    """
    from gzkcore._util.model_io import load
    from gzkcore.rows.tables import open_table

    from .recipes import FrameRecipe, recipe_in

    started = time.perf_counter()
    fitted = load(model)
    recipe = recipe_in(model, fitted)
    _check_asked(model, fitted, std=std, probabilities=probabilities)
    table = open_table(data)
    table.require(recipe.columns)
    new = _new_columns(fitted, name or f"PREDICTED_{recipe.target}", std, probabilities)
    check_output(table, output, list(new))
    if output.suffix.lower() == ".npy" and len({dtype.kind for dtype in new.values()}) > 1:
        raise ValueError(
            f"--output {output}: a .npy file holds numbers or text, but --probabilities writes "
            "both; use a .csv or .parquet file, or leave --probabilities out"
        )
    compute = _Compute(fitted, recipe, table, std, probabilities)
    with progress() as report, collected_notes() as notes:
        for done in table.append(
            recipe.columns, compute, new, output, as_numbers=not isinstance(recipe, FrameRecipe)
        ):
            report("predicting", done)
    result: dict[str, Any] = {
        "output": str(output),
        "rows": compute.n_rows,
        "columns": list(new),
        "seconds": time.perf_counter() - started,
        "notes": notes,
    }
    if as_json:
        print_json(result)
    else:
        print_lines(f"{counted(compute.n_rows, 'row')} with {' and '.join(new)}: {output}", *notes)


def _check_asked(model: Path, fitted: Any, *, std: bool, probabilities: bool) -> None:
    """Raise ValueError if a model can't say what it is asked for."""
    labels = hasattr(fitted, "classes_")
    if std and labels:
        raise ValueError(
            f"--std: {model} predicts labels, which have no standard deviation; use --probabilities"
        )
    if probabilities and not labels:
        raise ValueError(f"--probabilities: {model} predicts numbers, not labels; use --std")
    if std and getattr(fitted, "centers", None) is not None:
        raise ValueError(
            f"--std: {model} was fitted on centres and has no standard deviations; leave --std "
            "out, or fit without --centers"
        )


def _new_columns(
    fitted: Any, name: str, std: bool, probabilities: bool
) -> "dict[str, np.dtype[Any]]":
    """Return names and types of the columns to be added."""
    import numpy as np

    double = np.dtype(np.float64)
    if not hasattr(fitted, "classes_"):
        return {name: double} | ({f"{name}_STD": double} if std else {})
    shares = {f"{name}_{each}": double for each in fitted.classes_} if probabilities else {}
    return {name: fitted.classes_.dtype} | shares


class _Compute:
    """Pieces of a table to new columns."""

    def __init__(
        self, fitted: Any, recipe: "Recipe | FrameRecipe", table: Any, std: bool, shares: bool
    ) -> None:
        self.fitted, self.recipe, self.table = fitted, recipe, table
        self.std, self.shares, self.n_rows = std, shares, 0

    def __call__(self, piece: Any) -> "list[NDArray[Any]]":
        rows = self.recipe.read(self.table, self.n_rows, piece)
        self.n_rows += len(rows)
        if self.std:
            return list(self.fitted.predict(rows, return_std=True))
        if not self.shares:
            return [self.fitted.predict(rows)]
        shares = self.fitted.predict_proba(rows)
        return [self.fitted.classes_[shares.argmax(axis=1)], *shares.T]
