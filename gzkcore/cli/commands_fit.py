"""The commands `fit` and `predict`: learn from a table, and use what was learnt."""

import shlex
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gzkcore._util.files import check_place
from gzkcore._util.wording import counted, plain

from .arguments import (
    LEARNER_RULES,
    AsJson,
    Data,
    Lat,
    Lon,
    check_gamma,
    check_not_the_table,
    check_output,
    check_picture,
    origin,
    recipe_of,
)
from .output import (
    about_gamma,
    advice,
    collected_notes,
    picture_note,
    print_json,
    print_lines,
    print_table,
    progress,
    tell,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .fit import TableFit

N_COMPONENTS = 1024
MOST_CENTERS = 1 << 14  # of a random sample of the rows


@dataclass
class FitResult:
    """What `gzkcore fit --json` prints."""

    data: str
    target: str
    columns: list[str]
    sphere: bool
    whole: bool
    centers: int | None
    kernel: str
    n_components: int | None
    gamma: float
    gamma_from: str
    alpha: float
    n_iter: int | None
    residual: float | None
    preconditioner: str | None
    train: dict[str, float | None]
    test: dict[str, float | None]
    seconds: float
    peak_memory_mb: float
    model: str
    plot: str | None
    notes: list[str]


def fit(
    data: Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    lat: Lat = None,
    lon: Lon = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns a,b,c to predict from; by default all others.")
    ] = None,
    model: Annotated[Path, typer.Option(help="Where to save the model.")] = Path("model.gzk"),
    whole: Annotated[
        bool,
        typer.Option(
            "--whole",
            help="The whole kernel, without features: better predictions, at n² cost.",
        ),
    ] = False,
    centers: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST_CENTERS, help="With --whole, for large tables: how many rows to keep."
        ),
    ] = None,
    n_components: Annotated[
        int | None,
        typer.Option(min=1, help="How many features.", show_default="1024"),
    ] = None,
    gamma: Annotated[
        str,
        typer.Option(help="1 / (2 lengthscale²): auto chooses, scale is 1 / (d var), or a number."),
    ] = "auto",
    test_fraction: Annotated[
        float, typer.Option(min=0, max=0.9, help="Share of the rows to hold out and test with.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(min=0, help="Decides about held-out rows and features.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the surface, or predictions: .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a kernel ridge regression to a table, and test it on held-out rows.

    With --lat and --lon the kernel lives on the globe; any other columns are standardised. The file
    is read in pieces, so that it may be larger than memory. With --whole the kernel is a Matern-3/2
    and all rows are kept: seconds for ten thousand rows, minutes for a hundred thousand. --centers
    is for more: so many of the rows are kept.
    """
    from gzkcore._util.memory import resident_memory
    from gzkcore.rows.tables import open_table

    from .fit import fit_table

    started, (memory, _) = time.perf_counter(), resident_memory()
    table = open_table(data)
    recipe = recipe_of(table, target, lat, lon, columns)
    check_gamma(gamma, LEARNER_RULES)
    if whole and n_components is not None:
        raise ValueError(
            f"--n-components {n_components} does not go with --whole, which has no features; give "
            "one or the other"
        )
    if centers is not None and not whole:
        raise ValueError(f"--centers {centers} is for the whole kernel; give --whole, too")
    n_components = None if whole else n_components or N_COMPONENTS
    check_picture(plot)
    check_place(model)
    check_not_the_table(table, "--model", model)
    check_not_the_table(table, "--plot", plot)
    with advice(table, recipe), progress() as report, collected_notes() as notes:
        found = fit_table(
            table, recipe, gamma=gamma, n_components=n_components, centers=centers,
            test_fraction=test_fraction, seed=seed, report=report, say=tell,
        )  # fmt: skip
        found.model.recipe_ = asdict(found.recipe)
        found.model.save(model)
        if plot:
            _draw(found, plot, data)
    result = FitResult(
        data=str(data),
        target=target,
        columns=found.recipe.columns,
        sphere=recipe.sphere,
        whole=whole,
        centers=None if centers is None or found.whole is None else len(found.whole.model.X_fit_),
        kernel=plain(repr(found.model.kernel_)),
        n_components=n_components,
        gamma=found.gamma,
        gamma_from=origin(gamma),
        alpha=found.alpha,
        n_iter=None if found.whole is None else int(found.whole.model.n_iter_),
        residual=None if found.whole is None else float(found.whole.model.residual_),
        preconditioner=None if found.whole is None else found.whole.preconditioner,
        train=found.train.summary(),
        test=found.test.summary(),
        seconds=time.perf_counter() - started,
        peak_memory_mb=(resident_memory()[1] - memory) / 1e6,
        model=str(model),
        plot=str(plot) if plot else None,
        notes=notes,
    )
    if as_json:
        print_json(asdict(result))
    else:
        unused = [name for name in table.names if name not in (*recipe.columns, target)]
        _print_fit(result, unused)


def _draw(found: "TableFit", plot: Path, data: Path) -> None:
    """Draw the surface over the globe, or predictions against values."""
    from . import maps

    target = found.recipe.target
    if found.recipe.sphere:
        maps.draw_map(
            plot,
            lambda places: found.model.predict(found.recipe.inputs(places)),
            found.sample,
            f"{target}, fitted to {data.name}",
            target,
            found.gamma,
        )
    else:
        maps.draw_agreement(plot, found.pairs, f"{target}, rows of {data.name}", target)


def _print_fit(result: FitResult, unused: list[str]) -> None:
    """Print a fit for people, with the columns of the table that it did not use."""
    from gzkcore.datasets.globe import lengthscale_km

    names = ", ".join(result.columns[:4]) + (", ..." if len(result.columns) > 4 else "")
    chosen = ["rows held out of a sample"] if result.whole else []
    where = "whole" if result.centers is None else f"at {counted(result.centers, 'centre')}"
    kind = "on the globe" if result.sphere else "standardised"
    held = ""
    if result.whole:
        kept = float(result.train["rows"] or 0) if result.centers is None else result.centers
        megabytes = 8e-6 * kept * (len(result.columns) + result.sphere)
        held = f"; the rows that the model keeps are {megabytes:.2g} MB of it"
    rows = {
        "rows": f"{result.train['rows']:,} to fit, {result.test['rows']:,} held out",
        "columns": f"{len(result.columns)} {kind}",
        "not used": ", ".join(unused),
        "kernel": f"Matern-3/2, {where}: {result.kernel}" if result.whole else "",
        "gamma": about_gamma(result.gamma, result.gamma_from, *chosen),
        "lengthscale": f"{lengthscale_km(result.gamma):,.0f} km" if result.sphere else "",
        "alpha": f"{result.alpha:.4g}, chosen by {(*chosen, '2-fold cross-validation')[0]}",
        "solution": _about_solution(result),
        "error on the rows of the fit": _about_errors(result.train),
        "error on held-out rows": _about_errors(result.test),
        "time": f"{result.seconds:.1f} s",
        "memory": f"{result.peak_memory_mb:.0f} MB more than at the start, at its peak" + held,
    }
    print_table(
        f"{result.target} from {names}",
        ["", ""],
        [[key, text] for key, text in rows.items() if text],
    )
    ending = Path(result.data).suffix
    print_lines(
        "R² is 1 for perfect predictions and 0 for predicting the mean.",
        *result.notes,
        *picture_note(Path(result.plot) if result.plot else None),
        f"Next: gzkcore predict {shlex.quote(result.model)} NEW{ending} --output PREDICTED"
        + {".npz": ".npy"}.get(ending, ending),
    )


def _about_solution(result: FitResult) -> str:
    """Say how the system of the whole kernel was solved."""
    if result.n_iter is None:
        return ""
    steps = f"{counted(result.n_iter, 'step')} to a relative residual of {result.residual:.1g}"
    return steps + (f", preconditioned by {result.preconditioner}" if result.preconditioner else "")


def _about_errors(summary: dict[str, float | None]) -> str:
    if summary["rmse"] is None:
        return "no rows were held out"
    return f"{summary['rmse']:.4g} root mean square, R² {summary['r2']:.3f}"


def predict(
    model: Annotated[Path, typer.Argument(help="What gzkcore fit has saved.")],
    data: Annotated[Path, typer.Argument(help="A table with the columns of the fit.")],
    output: Annotated[Path, typer.Option(help="Where to write the table with its predictions.")],
    name: Annotated[
        str | None, typer.Option(help="Of the new column; by default PREDICTED_ and the target's.")
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Add the standard deviation of a new observation.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Predict for every row of a table, in a new last column.

    A .csv file is copied as it stands, but for the new column; a .parquet file becomes .parquet or
    .csv; of a .npy or .npz file only the predictions are written, as .npy.
    """
    import numpy as np

    from gzkcore._util.model_io import load
    from gzkcore.rows.tables import open_table

    from .fit import Recipe

    started = time.perf_counter()
    ridge = load(model)
    if not hasattr(ridge, "recipe_"):
        raise ValueError(
            f"{model} does not say which columns it needs: it was saved from Python; use "
            "gzkcore.load there, or gzkcore fit to make a model for this command"
        )
    if std and getattr(ridge, "centers", None) is not None:
        raise ValueError(
            f"--std: {model} is a kernel at some centres, which do not tell how sure it is; leave "
            "--std out, or fit without --centers"
        )
    recipe = Recipe(**ridge.recipe_)
    table = open_table(data)
    table.require(recipe.columns)
    name = name or f"PREDICTED_{recipe.target}"
    names = [name, f"{name}_STD"] if std else [name]
    check_output(table, output, names)
    n_rows = 0

    def compute(values: "NDArray[np.float64]") -> "NDArray[np.float64]":
        nonlocal n_rows
        recipe.check(table, n_rows, values)
        n_rows += len(values)
        predicted = ridge.predict(recipe.inputs(values), return_std=std)
        return np.column_stack(predicted if std else [predicted])

    with progress() as report, collected_notes() as notes:
        for done in table.append(recipe.columns, compute, names, output):
            report("predicting", done)
    result: dict[str, Any] = {
        "output": str(output),
        "rows": n_rows,
        "columns": names,
        "seconds": time.perf_counter() - started,
        "notes": notes,
    }
    if as_json:
        print_json(result)
    else:
        print_lines(f"{counted(n_rows, 'row')} with {' and '.join(names)}: {output}", *notes)
