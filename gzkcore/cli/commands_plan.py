"""The commands `plan` and `compare`: which features a kernel needs on a table, and how many."""

import itertools
import math
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gzkcore._util.wording import plain

from .arguments import (
    MODEL,
    PICTURES,
    READING_OPTIONS,
    AsJson,
    Classify,
    Data,
    Drop,
    ForcePlot,
    InputColumns,
    KernelGamma,
    KernelName,
    Lat,
    Lon,
    Widths,
    check_new,
    check_positive,
    kernel_of,
    origin,
    reads_a_table,
    widths_of,
    words_of,
)
from .output import (
    collected_notes,
    drawn,
    gamma_notes,
    if_interrupted,
    picture_note,
    print_json,
    print_lines,
    print_table,
    progress,
)

if TYPE_CHECKING:
    from gzkcore.rows.text import Reading

# The options of plan that gzkcore fit has too.
OF_FIT = ("target", "lat", "lon", "columns", "drop", "classify", *READING_OPTIONS)


@reads_a_table
def plan(
    context: typer.Context,
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(help="A column to predict: adds the expected error of gzkcore fit."),
    ] = None,
    classify: Classify = False,
    lat: Lat = None,
    lon: Lon = None,
    columns: InputColumns = None,
    drop: Drop = None,
    kernel: KernelName = "gaussian",
    gamma: KernelGamma = None,
    max_error: Annotated[float, typer.Option(help="Relative error of the kernel to reach.")] = 0.1,
    lam: Annotated[
        float, typer.Option(help="The ridge (alpha of KernelRidge) of the estimates.")
    ] = 1.0,
    n_components: Widths = "64,256,1024,4096",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the sample.")] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw error against features: .png, .pdf or .svg.")
    ] = None,
    force: ForcePlot = False,
    as_json: AsJson = False,
    *,
    reading: "Reading",
) -> None:
    """Recommend features, and how many of them, for a kernel on the columns of a table.

    With --lat and --lon the kernel is one of the globe; other columns are standardised. The file is
    read once, in pieces; the answer comes from a random sample of its rows. Below the table is the
    cost of the whole kernel, without features. With --target the expected
    error, time and memory of gzkcore fit come first, for the whole kernel, centres and features;
    that command learns its kernel. With a target, columns may also hold text, dates and missing
    values; such a table is read whole.
    """
    from gzkcore.evaluate.plan import plan as make_plan
    from gzkcore.rows.files import open_table

    from .plan_rows import drawn_rows, number_columns

    if classify and target is None:
        raise ValueError("--classify needs a column of labels; add --target")
    table = open_table(data, reading)
    asked = number_columns(table, target, lat, lon, columns, drop)
    check_positive("--max-error", max_error)
    check_positive("--lam", lam)
    widths, chosen = widths_of(n_components), kernel_of(kernel, gamma)
    check_new("--plot", plot, PICTURES, force)
    with progress() as report, collected_notes() as notes:
        X, y, n_rows = drawn_rows(table, asked, seed, report, notes, classify=classify)
        if asked.sphere:
            chosen = _scaled(chosen, X)
        report("planning", None)
        result = make_plan(
            X, chosen, y=y, classify=classify, max_error=max_error, lam=lam, n_components=widths,
            n_samples=n_rows, random_state=seed,
        )  # fmt: skip
        if asked.sphere:
            result = replace(result, n_columns=len(asked.columns))
        picture, failed = drawn(plot, result.plot)
    where_from = origin(result.kernel, gamma)
    if as_json:
        print_json(
            {"data": str(data), "columns": asked.columns}
            | {name: value for name, value in asdict(result).items() if not name.startswith("_")}
            | {"kernel": plain(repr(result.kernel)), "gamma_from": where_from}
            | {"features": plain(repr(result.build())), "plot": picture, "notes": notes}
        )
    else:
        if target is not None:
            print_lines(_fit_with(data, {name: context.params[name] for name in OF_FIT}), "")
        print_lines(
            *str(result).split("\n"),
            *gamma_notes(result.kernel, where_from),
            *notes,
            *picture_note(picture),
        )
    if failed:
        raise ValueError(failed)


def _scaled(kernel: Any, X: Any) -> Any:
    """Return a kernel whose scale is that of the places about their mean.

    The places of a region are much closer to each other than to 0, or than a lengthscale of 1: to
    the kernel they would look all alike.
    """
    if getattr(kernel, "gamma", None) == "scale":
        return kernel.resolve(X - X.mean(axis=0))
    if hasattr(kernel, "length_scale"):  # no option sets it; the lengthscale of that gamma
        kernel.set_params(length_scale=math.sqrt(X.var(axis=0).sum() / 2))
    return kernel


def _fit_with(data: Path, options: dict[str, Any]) -> str:
    """Return the command that fits with these options, to a model that does not exist yet."""
    words = words_of(options)
    names = itertools.chain(["model"], (f"model-{i}" for i in itertools.count(2)))
    free = next(name for name in names if not Path(f"{name}{MODEL}").exists())
    if free != "model":  # fit would not replace a model
        words += ["--model", f"{free}{MODEL}"]
    return f"Next: gzkcore fit {shlex.join([str(data), *words])}"


@reads_a_table
def compare(
    data: Data,
    target: Annotated[
        str | None, typer.Option(help="A column to predict: adds the error of a ridge regression.")
    ] = None,
    lat: Lat = None,
    lon: Lon = None,
    columns: InputColumns = None,
    drop: Drop = None,
    kernel: KernelName = "gaussian",
    gamma: KernelGamma = None,
    methods: Annotated[
        str, typer.Option(help="all, or names as in the table; whole is the kernel itself.")
    ] = "all",
    n_components: Widths = "256,1024",
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of repetitions, with other rows and features.")
    ] = 3,
    max_samples: Annotated[
        int, typer.Option(min=1, help="Largest number of rows to fit to and to time.")
    ] = 10_000,
    max_seconds: Annotated[
        float, typer.Option(help="Time limit of a method for one seed, in seconds.")
    ] = 300.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of rows and features.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            help="A .json file that saves results, to resume from; by default DATA-compare.json."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw error against time: .png, .pdf or .svg.")
    ] = None,
    force: ForcePlot = False,
    as_json: AsJson = False,
    *,
    reading: "Reading",
) -> None:
    """Compare error, time and memory of every method on the columns of a table.

    With --lat and --lon the kernel is one of the globe; other columns are standardised. The file is
    read once, in pieces; training and test rows are drawn from a random sample of at most 16,384.
    With a target, columns may also hold text, dates and missing values; such a table is read whole.
    Each result is saved in --output at once: repeat the command to resume, also with more methods,
    widths or seeds.
    """
    from gzkcore.evaluate.compare import check_methods
    from gzkcore.evaluate.compare import compare as make_comparison
    from gzkcore.evaluate.plan import as_rows
    from gzkcore.rows.files import ending, open_table

    from .plan_rows import drawn_rows, number_columns

    table = open_table(data, reading)
    asked = number_columns(table, target, lat, lon, columns, drop)
    widths, chosen = widths_of(n_components), kernel_of(kernel, gamma)
    check_positive("--max-seconds", max_seconds)
    try:
        names = check_methods([name.strip() for name in methods.split(",") if name.strip()])
    except ValueError as error:
        raise ValueError(f"--{error}") from None
    beside = data.name[: data.name.lower().rindex(ending(data))]
    output = output or Path(f"{beside}-compare.json")
    check_new("--output", output, (".json",), force=True)
    check_new("--plot", plot, PICTURES, force)
    with collected_notes() as notes:
        with if_interrupted(output), progress() as report:
            X, y, n_rows = drawn_rows(table, asked, seed, report, notes)
            if y is not None and y.dtype.kind != "f":
                raise ValueError(
                    f"--target {target}: this column of {table.path} holds text, but compare "
                    "predicts numbers; choose another column, or leave --target out"
                )
            X = as_rows(X, "compare")
            chosen = (_scaled(chosen, X) if asked.sphere else chosen).resolve(X)
            result = make_comparison(
                X, y, kernel=chosen, methods=names, n_components=widths,
                n_seeds=seeds, max_samples=max_samples, max_seconds=max_seconds, output=output,
                random_state=seed, n_samples=n_rows, report=report,
            )  # fmt: skip
        features = any(row["n_components"] for row in result.rows)
        picture, failed = drawn(plot if features else None, result.plot)
    where_from = origin(chosen, gamma)
    if as_json:
        print_json(
            {"data": str(data), "columns": asked.columns, "target": target}
            | result.to_dict()
            | {"gamma_from": where_from, "output": str(output), "plot": picture, "notes": notes}
        )
    else:
        print_lines(result.title)
        for title, header, rows in result.tables():
            print_table(title, header, rows, least=110)
        print_lines(*result.notes(), "", *gamma_notes(chosen, where_from), *notes)
        print_lines(f"Results: {output}", *picture_note(picture))
    if failed:
        raise ValueError(failed)
    if plot and not features:
        raise ValueError(
            f"--plot {plot}: there is nothing to draw, since no features were measured"
        )
