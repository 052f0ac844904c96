"""The command `gzkcore`: for people (tables) and programs (--json).

Results go to stdout, progress and complaints to stderr. Exit codes: 0 done; 2 bad input, with one
line that says what is wrong; 130 interrupted. Files appear whole or not at all.

A command imports what it needs when it runs, so that --help and --version answer at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import shlex
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gzkcore._util.files import check_place
from gzkcore._util.wording import counted, plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gzkcore.papers import reproduce
    from gzkcore.rows.tables import Table

    from .fit import Recipe

try:
    import typer
except ImportError:  # main() says how to get it
    HAS_EXTRA = False
else:
    HAS_EXTRA = True
    AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
    Width = Annotated[int, typer.Option(min=1, help="How many features.")]

__all__ = ["main"]

_INTERRUPTED = 130  # exit code, from typer too
_MOST_NAMED = 20  # columns, in a message


def main(arguments: list[str] | None = None) -> int:
    """Run the command with these arguments, by default the process's; return the exit code."""
    if not HAS_EXTRA:
        return _complain("the command needs a few more packages: pip install 'gzkcore[cli]'")
    try:
        code: int = app()(arguments, prog_name="gzkcore", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except _InterruptedError as error:
        _complain(str(error))
        return _INTERRUPTED
    except FileNotFoundError as error:
        return _complain(
            f"{error.filename}: there is no such file" if error.filename else f"{error}"
        )
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else f"{error}")
    except (ValueError, ImportError) as error:
        return _complain(str(error))
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own complaints have it
            raise
        return _complain(error.format_message())
    if code == _INTERRUPTED:
        _complain("interrupted; files that were not finished are not there")
    return code


class _InterruptedError(Exception):
    """Ctrl-C, and what to say about it."""


def _complain(reason: str) -> int:
    if reason:
        sys.stderr.write(f"gzkcore: {' '.join(reason.split())}\n")
    return 2


def app() -> Any:
    """Return the application, for `main` and for typer's test runner."""
    application = typer.Typer(
        help="Kernel ridge regression on features, from the command line.",
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    application.callback()(options)
    for command, example in (
        (demo, "gzkcore demo --plot elevation.png"),
        (fit, "gzkcore fit stations.csv --target temperature --lat lat --lon lon --plot map.png"),
        (predict, "gzkcore predict model.gzk new.csv --output predicted.csv --std"),
        (plan, "gzkcore plan stations.csv --lat lat --lon lon --gamma 20 --max-error 0.01"),
        (compare, "gzkcore compare protein.csv --target rmsd --plot compare.png"),
        (papers, "gzkcore papers gegenbauer table2 --quick --plot table2.png"),
        (info, "gzkcore info --json"),
    ):
        application.command(epilog=f"Example: {example}")(command)
    return application


# ---------------------------------------------------------------------------------------------
# Commands


def _tell_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"gzkcore {version('gzkcore')}\n")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell the version."),
    ] = False,
) -> None:
    """Do nothing: --version has told all when it is read."""


def demo(
    n_components: Width = 1024,
    seeds: Annotated[int, typer.Option(min=1, help="How many random splits.")] = 3,
    plot: Annotated[Path, typer.Option(help="Where to draw the map: .png, .pdf or .svg.")] = Path(
        "elevation.png"
    ),
    as_json: AsJson = False,
) -> None:
    """Predict the elevation of 28,000 airports from latitude and longitude.

    Compares Gegenbauer features (as they choose to be, with a random basis, and as published) with
    random Fourier features and Nystroem in the same ridge: the same splits and width, lengthscale
    and ridge chosen from the same by the same folds. Then draws the fitted surface as a map.
    """
    from . import demo as airports

    started = time.perf_counter()
    _check_picture(plot)
    with _progress() as report:
        result = airports.compare(n_components, seeds, report)
        airports.draw(plot, n_components)
    result |= {"plot": str(plot), "seconds": time.perf_counter() - started}
    if as_json:
        _print_json(result)
        return
    _print_table(
        f"Elevation of {result['airports']:,} airports from latitude and longitude",
        ["", "error\n(m)", "R²", "scale\n(km)", "time\n(s)", "memory\n(MB)"],
        [
            [
                row["method"],
                f"{row['rmse']:.1f}" + (f" ± {row['rmse_spread']:.1f}" if seeds > 1 else ""),
                f"{row['r2']:.3f}",
                *(
                    f"{row[key]:{form}}" if key in row else ""
                    for key, form in (
                        ("lengthscale_km", ".0f"),
                        ("seconds", ".1f"),
                        ("peak_memory_mb", ".0f"),
                    )
                ),
            ]
            for row in result["methods"]
        ],
    )
    _print(
        "error: root mean square on held-out airports; mean and spread over "
        + counted(seeds, "split"),
        f"scale: lengthscale; of {len(airports.GAMMAS)}, the one that two folds chose most often",
        f"time: to fit {counted(n_components, 'feature')} and the ridge, with the choice",
        f"memory: {result['memory']}",
        "random basis: basis='random', which reaches higher degrees than the exact one",
        f"published: degree {result['published_degree']}, order 1",
        f"The fitted surface: {plot}",
    )


def fit(
    data: Annotated[Path, typer.Argument(help="A .csv, .parquet, .npy or .npz file of any size.")],
    target: Annotated[str, typer.Option(help="The column to predict.")],
    lat: Annotated[str | None, typer.Option(help="The column of latitudes, in degrees.")] = None,
    lon: Annotated[str | None, typer.Option(help="The column of longitudes, in degrees.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns a,b,c to predict from; by default all others.")
    ] = None,
    model: Annotated[Path, typer.Option(help="Where to save the model.")] = Path("model.gzk"),
    n_components: Width = 1024,
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
    is read in pieces, so that it may be larger than memory.
    """
    from gzkcore._util.memory import resident_memory
    from gzkcore.datasets.globe import lengthscale_km
    from gzkcore.rows.tables import open_table

    from . import maps
    from .fit import TableFit

    started, (memory, _) = time.perf_counter(), resident_memory()
    table = open_table(data)
    recipe = _recipe(table, target, lat, lon, columns)
    ignored = [name for name in table.names if name not in (*recipe.columns, target)]
    _check_gamma(gamma)
    _check_picture(plot)
    check_place(model)
    for name, path in (("--model", model), ("--plot", plot)):
        if path is not None and path.exists() and path.samefile(table.path):
            raise ValueError(f"{name} {path} is the table itself; give another name")
    with _advice(table, recipe), _progress() as report, _notes() as notes:
        work = TableFit(table, recipe, test_fraction, seed, report)
        work.survey()
        ridge = work.learn(gamma, n_components)
        train, test, pairs = work.judge(ridge)
        ridge.recipe_ = asdict(recipe)
        ridge.save(model)
        chosen = float(ridge.kernel_.gamma)
        if plot and recipe.sphere:
            maps.draw_map(
                plot,
                lambda places: ridge.predict(recipe.inputs(places)),
                work.places,
                f"{target}, fitted to {data.name}",
                target,
                chosen,
            )
        elif plot:
            maps.draw_agreement(plot, pairs, f"{target}, rows of {data.name}", target)
    result = {
        "data": str(data),
        "target": target,
        "columns": recipe.columns,
        "sphere": recipe.sphere,
        "n_components": n_components,
        "gamma": chosen,
        "gamma_from": _origin(gamma),
        "alpha": ridge.alpha_,
        "train": train.summary(),
        "test": test.summary(),
        "seconds": time.perf_counter() - started,
        "peak_memory_mb": (resident_memory()[1] - memory) / 1e6,
        "model": str(model),
        "plot": str(plot) if plot else None,
        "notes": notes,
    }
    if as_json:
        _print_json(result)
        return
    names = ", ".join(recipe.columns[:4]) + (", ..." if len(recipe.columns) > 4 else "")
    _print_table(
        f"{target} from {names}",
        ["", ""],
        [
            ["rows", f"{train.rows:,} to fit, {test.rows:,} held out"],
            [
                "columns",
                f"{len(recipe.columns)} " + ("on the globe" if recipe.sphere else "standardised"),
            ],
            *([["not used", ", ".join(ignored)]] if ignored else []),
            ["gamma", _about_gamma(chosen, gamma)],
            *([["lengthscale", f"{lengthscale_km(chosen):,.0f} km"]] if recipe.sphere else []),
            ["alpha", f"{result['alpha']:.4g}, chosen by 2-fold cross-validation"],
            ["error on the rows of the fit", _score(result["train"])],
            ["error on held-out rows", _score(result["test"])],
            ["time", f"{result['seconds']:.1f} s"],
            ["memory", f"{result['peak_memory_mb']:.0f} MB more than at the start, at its peak"],
        ],
    )
    _print(
        "R² is 1 for perfect predictions and 0 for predicting the mean.",
        *notes,
        *([f"Picture: {plot}"] if plot else []),
        f"Next: gzkcore predict {shlex.quote(str(model))} NEW{data.suffix} --output PREDICTED"
        + {".npz": ".npy"}.get(data.suffix, data.suffix),
    )


def predict(
    model: Annotated[Path, typer.Argument(help="What gzkcore fit has saved.")],
    data: Annotated[Path, typer.Argument(help="A table with the columns of the fit.")],
    output: Annotated[Path, typer.Option(help="Where to write the table with its predictions.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the new column; by default PREDICTED_<target>.")
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
    recipe = Recipe(**ridge.recipe_)
    table = open_table(data)
    table.require(recipe.columns)
    name = name or f"PREDICTED_{recipe.target}"
    names = [name, f"{name}_STD"] if std else [name]
    _check_output(table, output, names)
    n_rows = 0

    def compute(values: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal n_rows
        recipe.check(table, n_rows, values)
        n_rows += len(values)
        predicted = ridge.predict(recipe.inputs(values), return_std=std)
        return np.column_stack(predicted if std else [predicted])

    with _progress() as report, _notes() as notes:
        for done in table.append(recipe.columns, compute, names, output):
            report("predicting", done)
    result = {
        "output": str(output),
        "rows": n_rows,
        "columns": names,
        "seconds": time.perf_counter() - started,
        "notes": notes,
    }
    if as_json:
        _print_json(result)
    else:
        _print(f"{counted(n_rows, 'row')} with {' and '.join(names)}: {output}", *notes)


def plan(
    data: Annotated[Path, typer.Argument(help="A .csv, .parquet, .npy or .npz file of any size.")],
    lat: Annotated[str | None, typer.Option(help="The column of latitudes, in degrees.")] = None,
    lon: Annotated[str | None, typer.Option(help="The column of longitudes, in degrees.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns a,b,c of the inputs; by default all.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="Its name in gzkcore.kernels.")] = "gaussian",
    gamma: Annotated[
        str, typer.Option(help="The kernel's gamma: scale, median or a number.")
    ] = "scale",
    max_error: Annotated[float, typer.Option(help="Relative error of the kernel to reach.")] = 0.1,
    lam: Annotated[float, typer.Option(help="Ridge, for the statistical dimension.")] = 1.0,
    n_components: Annotated[
        str, typer.Option(help="Numbers of features to try.")
    ] = "64,256,1024,4096",
    seed: Annotated[int, typer.Option(min=0, help="Decides about the sample.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw error against time: .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which features, and how many, a kernel needs on the columns of a table.

    With --lat and --lon the kernel lives on the globe; any other columns are standardised. The file
    is read once, in pieces; the answer comes from a random sample of its rows.
    """
    from gzkcore.evaluate.plan import plan as make_plan
    from gzkcore.rows.tables import open_table

    from .fit import sample_columns

    table = open_table(data)
    recipe = _recipe(table, None, lat, lon, columns)
    _check_gamma(gamma, ("scale", "median"))
    _check_picture(plot)
    widths = _widths(n_components)
    chosen = _kernel(kernel, gamma)
    with _advice(table, recipe), _progress() as report, _notes() as notes:
        rows, _, n_rows = sample_columns(table, recipe, seed, report)
        found = make_plan(
            rows, chosen, max_error=max_error, lam=lam, n_components=widths, n_samples=n_rows,
            random_state=seed,
        )  # fmt: skip
        if plot:
            found.plot(plot)
    if as_json:
        _print_json(
            {
                "data": str(data),
                "columns": recipe.columns,
                "kernel": plain(repr(found.kernel)),
                "gamma_from": _origin(gamma) if hasattr(found.kernel, "gamma") else None,
                "n_samples": found.n_samples,
                "norms": found.norms,
                "effective_dimension": found.effective_dimension,
                "lam": found.lam,
                "statistical_dimension": found.statistical_dimension,
                "max_error": found.max_error,
                "table": found.table,
                "recommendation": found.recommendation,
                "features": plain(repr(found.build())),
                "plot": str(plot) if plot else None,
                "notes": notes,
            }
        )
        return
    _print(
        str(found), *_gamma_notes(found.kernel, gamma), *notes,
        *([f"Picture: {plot}"] if plot else []),
    )  # fmt: skip


def compare(
    data: Annotated[Path, typer.Argument(help="A .csv, .parquet, .npy or .npz file of any size.")],
    target: Annotated[
        str | None, typer.Option(help="A column to predict: adds the error of a ridge.")
    ] = None,
    lat: Annotated[str | None, typer.Option(help="The column of latitudes, in degrees.")] = None,
    lon: Annotated[str | None, typer.Option(help="The column of longitudes, in degrees.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns a,b,c of the inputs; by default all others.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="Its name in gzkcore.kernels.")] = "gaussian",
    gamma: Annotated[
        str, typer.Option(help="The kernel's gamma: scale, median or a number.")
    ] = "scale",
    methods: Annotated[
        str, typer.Option(help="Which: all, or names as in the table, separated by commas.")
    ] = "all",
    n_components: Annotated[str, typer.Option(help="Numbers of features to try.")] = "256,1024",
    seeds: Annotated[int, typer.Option(min=1, help="How often, with other rows and draws.")] = 3,
    max_samples: Annotated[
        int, typer.Option(min=1, help="Rows to fit to and to time with, at most.")
    ] = 10_000,
    max_seconds: Annotated[
        float, typer.Option(help="A method that takes longer for a seed is given up.")
    ] = 300.0,
    seed: Annotated[int, typer.Option(min=0, help="Decides about rows and features.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="A .json file that keeps results, to go on from; DATA-compare.json."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw error against time: .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare error, time and memory of every method on the columns of a table.

    With --lat and --lon the kernel lives on the globe; any other columns are standardised. The file
    is read once, in pieces; rows to fit to and others to judge by are drawn from a random sample of
    at most 16,384. Results are kept in --output after every one: the same command goes on from
    there, with more methods, widths or seeds too.
    """
    from gzkcore.evaluate.compare import compare as make_comparison
    from gzkcore.rows.tables import open_table

    from .fit import sample_columns

    table = open_table(data)
    recipe = _recipe(table, target, lat, lon, columns)
    _check_gamma(gamma, ("scale", "median"))
    _check_picture(plot)
    widths, chosen = _widths(n_components), _kernel(kernel, gamma)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    output = output or Path(f"{data.stem}-compare.json")
    with _notes() as notes:
        try:
            with _advice(table, recipe), _progress() as report:
                X, y, n_rows = sample_columns(table, recipe, seed, report)
                chosen = chosen.resolve(X)
                found = make_comparison(
                    X, y[:, 0] if target else None, kernel=chosen, methods=names,
                    n_components=widths, n_seeds=seeds, max_samples=max_samples,
                    max_seconds=max_seconds, output=output, random_state=seed, n_samples=n_rows,
                    report=report,
                )  # fmt: skip
        except KeyboardInterrupt:
            kept = f"what was done is in {output}; the same command goes on from there"
            raise _InterruptedError(
                f"interrupted; {kept}" if output.exists() else "interrupted"
            ) from None
        if plot and found.rows:
            found.plot(plot)
    drawn = plot if found.rows else None
    if as_json:
        _print_json(
            {"data": str(data), "columns": recipe.columns, "target": target}
            | found.to_dict()
            | {"gamma_from": _origin(gamma) if hasattr(chosen, "gamma") else None}
            | {"output": str(output), "plot": str(drawn) if drawn else None, "notes": notes}
        )
    else:
        _print(found.title)
        for title, header, rows in found.tables():
            _print_table(title, header, rows, least=110)
        _print(
            *found.notes(), "", *_gamma_notes(chosen, gamma), *notes,
            f"Results: {output}",
            *([f"Picture: {drawn}"] if drawn else []),
        )  # fmt: skip
    if plot and not drawn:
        raise ValueError(f"--plot {plot}: nothing was measured, so there is nothing to draw")


def _kernel(name: str, gamma: str) -> Any:
    """Return the kernel of a name with this gamma, if it has one."""
    from gzkcore.evaluate.methods import OF_HISTOGRAMS, as_any_kernel

    if name == "precomputed":
        raise ValueError("--kernel precomputed has no rows to make features of; name another")
    if name in OF_HISTOGRAMS:
        raise ValueError(
            f"--kernel {name} takes values >= 0, but this command standardises columns; use "
            "gzkcore.compare in Python, or name another"
        )
    kernel = as_any_kernel(name)
    if "gamma" in kernel.get_params():
        kernel.set_params(gamma=gamma if gamma in ("scale", "median") else float(gamma))
    elif gamma not in ("scale", "median"):
        raise ValueError(f"--gamma {gamma}: the kernel {name} has no gamma; leave it out")
    return kernel


def _widths(text: str) -> list[int]:
    try:
        widths = [int(word) for word in text.split(",")]
    except ValueError:
        widths = []
    if not widths or min(widths) < 1:
        raise ValueError(f"--n-components {text} should be whole numbers >= 1, such as 64,256,1024")
    return widths


def papers(
    paper: Annotated[str, typer.Argument(help="gegenbauer, block or all.")],
    experiment: Annotated[
        str | None, typer.Argument(help="fig1, table1, fig2, table2, ...; by default all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes: minutes instead of hours.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How often; by default 3, with --quick 2.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch data sets that are not there.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="A .json file that keeps results, to go on from; papers[-quick].json."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: .png, .pdf or .svg, a file for each experiment.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the tables and figures of the two papers: printed beside measured, with a verdict.

    gegenbauer has fig1, table1, table2 and table3; block has fig1, table1, fig2, table2, table3 and
    table4. Data are looked for in the folder that GZKCORE_DATA names; what is absent is skipped.
    Results are kept in --output after every piece of work: the same command goes on from there.
    """
    from gzkcore.papers import reproduce

    names = reproduce.choose(paper, experiment)
    _check_picture(plot)
    output = output or Path("papers-quick.json" if quick else "papers.json")
    results: list[reproduce.Result] = []
    pictures: dict[str, Path] = {}
    with _notes() as notes:
        try:
            with _progress() as report:
                results.extend(
                    reproduce.run(
                        name, quick=quick, seeds=seeds, download=download, output=output,
                        report=report,
                    )
                    for name in names
                )  # fmt: skip
        except KeyboardInterrupt:
            kept = f"what was done is in {output}; the same command goes on from there"
            raise _InterruptedError(
                f"interrupted; {kept}" if output.exists() else "interrupted"
            ) from None
        for result in results:
            if plot is None:
                break
            path = plot if len(names) == 1 else _picture_of(plot, result.name)
            result.plot(path)
            pictures[result.name] = path
    if as_json:
        _print_json(
            {
                "experiments": [result.to_dict() for result in results],
                "output": str(output),
                "plots": {name: str(path) for name, path in pictures.items()},
                "notes": notes,
            }
        )
        return
    for result in results:
        _print(str(result), "")
    _print(*notes, f"Results: {output}", *(f"Picture: {path}" for path in pictures.values()))


def _picture_of(plot: Path, name: str) -> Path:
    return plot.with_name(f"{plot.stem}-{name.replace(' ', '-')}{plot.suffix}")


def info(as_json: AsJson = False) -> None:
    """Tell version, instruction set, compiler, threads and BLAS: for reports of bugs and speed."""
    from gzkcore._util.config import show_config

    config = show_config()
    if as_json:
        _print_json(config)
        return
    _print_table(
        "gzkcore",
        ["", ""],
        [[key, ", ".join(map(_brief, value)) if isinstance(value, list) else str(value)]
         for key, value in config.items()],
    )  # fmt: skip


def _brief(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return "{library} {version} ({threads})".format(
        **value, threads=counted(value["n_threads"], "thread")
    )


# ---------------------------------------------------------------------------------------------
# What the arguments mean


def _recipe(
    table: Table, target: str | None, lat: str | None, lon: str | None, columns: str | None
) -> Recipe:
    """Say which columns the prediction is made from."""
    from .fit import Recipe

    if (lat is None) != (lon is None):
        raise ValueError("--lat and --lon belong together; give both")
    if lat is not None and columns is not None:
        raise ValueError("--columns does not go with --lat and --lon; give one or the other")
    if lat is not None and lon is not None:
        if lat.lower().startswith(("lon", "lng")) and lon.lower().startswith("lat"):
            raise ValueError(
                f"--lat {lat} --lon {lon}: by their names these columns are the other way round; "
                "exchange them, or give them other names"
            )
        chosen = [lat, lon]
    elif columns is not None:
        chosen = [column.strip() for column in columns.split(",")]
    else:
        chosen = [column for column in table.names if column != target]
    table.require([*([] if target is None else [target]), *chosen])
    if target in chosen or len(set(chosen)) < len(chosen):
        raise ValueError("a column is named twice; target and columns must all differ")
    if not chosen:
        raise ValueError(f"{table.path} has no column but the target {target!r} to predict from")
    return Recipe(target or "", chosen, sphere=lat is not None)


def _check_gamma(gamma: str, rules: tuple[str, str] = ("auto", "scale")) -> None:
    if gamma in rules:
        return
    with contextlib.suppress(ValueError):
        if 0 < float(gamma) < math.inf:
            return
    raise ValueError(f"--gamma {gamma} is none of {', '.join(rules)} or a number > 0")


def _check_picture(path: Path | None) -> None:
    from .maps import ENDINGS

    if path is not None:
        if path.suffix.lower() not in ENDINGS:
            raise ValueError(f"--plot {path} should end with one of {', '.join(ENDINGS)}")
        check_place(path)


def _origin(gamma: str) -> str:
    """Say where a gamma comes from, in a word: a rule, or given."""
    return gamma if gamma in ("auto", "scale", "median") else "given"


def _about_gamma(value: float, gamma: str) -> str:
    """Say what gamma is used, and where it comes from."""
    origin = {
        "auto": "chosen by 2-fold cross-validation",
        "scale": "by the rule scale, from the variance of the columns",
        "median": "by the rule median, from the distances of the rows",
        "given": "as given",
    }[_origin(gamma)]
    return f"{value:.4g}, {origin}"


def _gamma_notes(kernel: Any, gamma: str) -> list[str]:
    """Say what gamma a resolved kernel has, if it has one, and that another command chooses."""
    value = getattr(kernel, "gamma", None)
    if value is None:
        return []
    return [
        f"gamma: {_about_gamma(float(value), gamma)}",
        *(
            ["gzkcore fit chooses its own by cross-validation; --gamma tells either which to use"]
            if _origin(gamma) != "given"
            else []
        ),
    ]


@contextlib.contextmanager
def _advice(table: Table, recipe: Recipe) -> Iterator[None]:
    """Of a column of text, say how to leave it out."""
    from gzkcore.rows.tables import BadValueError

    try:
        yield
    except BadValueError as error:
        if not error.is_text or recipe.sphere:
            raise
        if error.column == recipe.target:
            raise ValueError(f"{error.what}; mend or drop such rows, or predict another column, "
                             "--target") from None  # fmt: skip
        rest = [name for name in recipe.columns if name != error.column]
        usable = table.numeric(rest[:_MOST_NAMED])
        named = shlex.quote(",".join(usable)) if usable else "NAMES"
        more = ",..." if len(rest) > _MOST_NAMED else ""
        raise ValueError(
            f"{error.what}; mend or drop such rows, or choose columns without {error.column!r}: "
            f"--columns {named}{more}"
        ) from None


def _check_output(table: Table, output: Path, names: list[str]) -> None:
    check_place(output)
    if output.suffix.lower() not in table.outputs:
        raise ValueError(
            f"--output {output} should end with {' or '.join(table.outputs)} for a "
            f"{table.path.suffix} file"
        )
    if output.exists() and output.samefile(table.path):
        raise ValueError(f"--output {output} is the table itself; give another name")
    for name in names:
        if name in table.names:
            raise ValueError(f"{table.path} has a column {name!r} already; choose a --name")


# ---------------------------------------------------------------------------------------------
# What people and programs see


@contextlib.contextmanager
def _progress() -> Iterator[Callable[..., None]]:
    """Show a bar on stderr for each kind of work that is reported as (label, share, what now)."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    ) as bars:  # fmt: skip
        tasks: dict[str, Any] = {}

        def report(label: str, share: float, now: str = "") -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=1.0)
            bars.update(tasks[label], completed=share, description=f"{label} {now}".rstrip())

        yield report


@contextlib.contextmanager
def _notes() -> Iterator[list[str]]:
    """Collect what the library warns about: of each kind the first, and how many followed."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield notes
    first = {warning.category: warning for warning in reversed(caught)}
    counts = Counter(warning.category for warning in caught)
    notes += [
        f"Note: {first[kind].message}" + (f" ({n - 1} more like it)" if n > 1 else "")
        for kind, n in counts.items()
    ]


def _score(summary: dict[str, Any]) -> str:
    if summary["rmse"] is None:
        return "no rows were held out"
    return f"{summary['rmse']:.4g} root mean square, R² {summary['r2']:.3f}"


def _print_table(title: str, header: list[str], rows: list[list[str]], least: int = 0) -> None:
    """Print a table for people; where lines have less than `least` columns, they will overflow."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=any(header), box=box.SIMPLE_HEAD)
    for i, column in enumerate(header):
        table.add_column(
            column, justify="right" if i and any(header) else "left", no_wrap=any(header)
        )
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.width = max(console.width, least)
    console.print(table)


def _print(*lines: str) -> None:
    from rich.console import Console

    console = Console(soft_wrap=True, markup=False, highlight=False)
    for line in lines:
        console.print(line)


def _print_json(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
