"""The command `fit`: learn from a table."""

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import (
    MODEL,
    PICTURES,
    AsJson,
    Classify,
    Data,
    Drop,
    Force,
    Lat,
    Lon,
    NoHatching,
    TestBy,
    check_new,
    check_not_the_table,
    check_positive,
    chosen_columns,
    chosen_kinds,
    reads_a_table,
    used_kinds,
)
from .output import HELD_OUT, collected_notes, drawn, options_named, print_json, progress

if TYPE_CHECKING:
    from gzkcore.rows.files import Table
    from gzkcore.rows.text import Reading

    from .frame_rows import FrameRows

# Groups of options in the help.
LIMITS, CHOSEN, TEST = "Limits", "A model that you choose", "The test on held-out rows"


@reads_a_table
def fit(
    context: typer.Context,
    data: Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    lat: Lat = None,
    lon: Lon = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns a,b,c to predict from; by default all others.")
    ] = None,
    drop: Drop = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="COLUMN=KIND",
            help="What a column is, where that is not to be found out: category, number, log, "
            "linear, date, latitude, longitude or drop; or its levels a,b,c, least first. Repeat "
            "it for more columns.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="The column of weights of the rows in the fit; the test counts each row once."
        ),
    ] = None,
    model: Annotated[Path, typer.Option(help="Where to save the model.")] = Path("model.gzk"),
    force: Force = False,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing", help="Leave out rows with missing values instead of filling them in."
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--time",
            rich_help_panel=LIMITS,
            help="Approximate time limit of the final fit, in seconds, by default 600; in Python "
            "budget.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=LIMITS,
            help="Approximate memory limit, such as 500MB or 2GB, of the table (by default the "
            "free memory), and of the final fit beside it (by default half of that); in Python "
            "max_memory.",
        ),
    ] = None,
    classify: Classify = False,
    regress: Annotated[
        bool,
        typer.Option("--regress", help="Treat the target as numbers; leave out rows of text."),
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", rich_help_panel=CHOSEN, help="Use the whole kernel.")
    ] = False,
    centers: Annotated[
        int | None,
        typer.Option(rich_help_panel=CHOSEN, min=1, help="Use the kernel at N rows (centres)."),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(rich_help_panel=CHOSEN, min=1, help="Use N features of the kernel."),
    ] = None,
    near: Annotated[
        int | None,
        typer.Option(rich_help_panel=CHOSEN, min=1, help="Use the N nearest rows of each new one."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=CHOSEN,
            help="Use only this kernel: gaussian (or rbf), matern, laplacian, exponential or "
            "rational_quadratic.",
        ),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=CHOSEN,
            help="1 / (2 lengthscale²) of the kernel, by default gaussian, for standardised "
            "columns or points of the unit sphere; by default it is learned.",
        ),
    ] = None,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=TEST,
            min=0,
            max=0.9,
            help="Share of the rows to hold out for the test; by default 0.1, or with fewer than "
            "300 rows 5-fold cross-validation.",
        ),
    ] = None,
    test_last: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=TEST,
            help="Hold out the rows with the last dates or largest numbers of this column, as a "
            "forecast would have to predict them.",
        ),
    ] = None,
    test_groups: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=TEST,
            help="Hold out whole groups: rows with the same value in this column, such as a "
            "station or a patient, stay together.",
        ),
    ] = None,
    test_gaps: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=TEST,
            metavar="[COLUMN=]LENGTH",
            help="Hold out whole stretches between other rows, such as a day, week or 6h of the "
            "only column of dates, or of COLUMN; with --test-groups those of single groups.",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(rich_help_panel=TEST, min=0, help="Random seed, also for the held-out rows."),
    ] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the surface, or predictions: .png, .pdf or .svg.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Write a page to keep, .html: errors, calibration, the effect of each column, "
            "maps, and the command.",
        ),
    ] = None,
    no_hatching: NoHatching = False,
    as_json: AsJson = False,
    *,
    reading: "Reading",
) -> None:
    """Learn to predict a column of a table, and test it on held-out rows beside other methods.

    If the table has fewer than 300 rows, each fifth is held out in turn; then the model is fitted
    to all rows.

    You need not choose anything. Columns may hold numbers, dates, text and missing values. The
    kernel, its lengthscales and the noise are chosen by the error on held-out rows. A text target
    is a label. With --lat and --lon only places are used, as points of the sphere. Without them,
    columns called latitude and longitude become points of the sphere too, unless there are other
    columns and the places lie in one region.

    A table that is larger than memory is read in passes. --whole, --centers, --features and --near
    choose the form of the model; otherwise error, --time and --memory do.
    """
    from gzkcore.rows.files import open_table

    if classify and regress:
        raise ValueError("--classify can't be combined with --regress; give one of them")
    table = open_table(data, reading)
    table.require([target])
    learner = _learner_options(whole, centers, features, near, kernel, gamma, seconds, memory, seed)
    learner["temp_folder"] = model.parent
    by = TestBy(test_last, test_groups, test_gaps)
    by.check(target, test_fraction)
    table.require([*by.columns, *([weights] if weights else [])])
    chosen = chosen_kinds(kinds or [], table)
    inputs, places = chosen_columns(table, target, lat, lon, columns, drop, chosen)
    if columns is None and not places:
        # No row held out has a value of its group that was learned from, but where it has gaps.
        inputs = [
            name for name in inputs if name not in (weights, None if by.gaps else by.groups)
        ] or inputs
    chosen = used_kinds(chosen, inputs, table)
    if weights in (target, *inputs):
        raise ValueError(f"--weights {weights} is a column of the fit as well; name another column")
    _check_outputs(table, model, plot, page, force)  # after mistakes in the command

    from gzkcore._util.memory import PeakMemory

    started, peak = time.perf_counter(), PeakMemory()
    most = learner["max_memory"]
    with (
        options_named(drops=True, most_bytes=most),
        progress({HELD_OUT: f"; {model} is saved, and Ctrl-C leaves out the test"}) as report,
        collected_notes() as notes,
    ):
        from .fit_frame import fit_frame
        from .frame_rows import read_rows
        from .inputs import place_names
        from .page import write_page
        from .pictures import draw_frame
        from .show_frame import next_step, print_frame, to_dict

        rows = read_rows(
            table, target, inputs, places=places, classify=classify, test_fraction=test_fraction,
            drop_missing=drop_missing, seed=seed, report=report, say=notes.append,
            most_bytes=most, by=by, weights=weights, regress=regress, kinds=chosen,
        )  # fmt: skip
        notes[:0] = table.notes
        notes.extend(_hints(rows, by))
        outcome = fit_frame(rows, model, learner, report, not no_hatching)
        notes.extend(outcome.verdict.failed if outcome.verdict else [])
        if plot is not None and outcome.places is None and place_names(outcome.model):
            notes.append(
                "the picture is no map, since a map shows what is predicted from places alone; "
                "--lat and --lon fit these"
            )
        if plot is not None:
            report("drawing", None)
        picture, failed = drawn(plot, lambda path: draw_frame(outcome, path, table.path.name))
    used = {*inputs, target, weights}
    result = {
        "data": str(data),
        "target": target,
        **to_dict(outcome),
        "unused": [name for name in table.names if name not in used],
        "seconds": time.perf_counter() - started,
        "peak_memory_mb": peak.megabytes,
        "model": str(model),
        "model_mb": model.stat().st_size / 1e6,
        "plot": picture,
        "page": None,
        "notes": notes,
        "next": next_step(context.params),
    }
    with progress() as report:
        write = functools.partial(write_page, outcome, result, context, report)
        result["page"], page_failed = drawn(page, write, "--report", "page")
    if as_json:
        print_json(result)
    else:
        print_frame(result)
    if failed or page_failed:
        raise ValueError(". ".join(filter(None, [failed, page_failed])))


def _check_outputs(
    table: "Table", model: Path, plot: Path | None, page: Path | None, force: bool
) -> None:
    """Raise ValueError where a file can't be written, or would replace one."""
    for option, path in (("--model", model), ("--plot", plot), ("--report", page)):
        check_not_the_table(table, option, path)
    check_new("--model", model, (MODEL,), force)
    check_new("--plot", plot, PICTURES, force)
    check_new("--report", page, (".html", ".htm"), force)


def _learner_options(
    whole: bool, centers: int | None, features: int | None, near: int | None, kernel: str | None,
    gamma: float | None, seconds: float | None, memory: str | None, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Return the parameters of the learner that options stand for, or raise ValueError."""
    from gzkcore._util.memory import bytes_of
    from gzkcore._util.wording import meant
    from gzkcore.kernels.aliases import as_kernel
    from gzkcore.tabular.kernel_search import BY_NAME

    sizes = {"centers": centers, "features": features, "near": near}
    asked = {"whole": "--whole"} if whole else {}
    asked |= {name: f"--{name} {size}" for name, size in sizes.items() if size is not None}
    if len(asked) > 1:
        first, second, *_ = asked.values()
        raise ValueError(f"{first} can't be combined with {second}; give one of them")
    check_positive("--time", seconds, " of seconds")
    if kernel is not None and kernel not in BY_NAME:
        other, names = meant(kernel, BY_NAME), ", ".join(BY_NAME)
        raise ValueError(f"--kernel {kernel} is unknown to fit{other}; use one of {names}")
    chosen: Any = kernel or "auto"
    if gamma is not None:
        check_positive("--gamma", gamma)
        chosen = as_kernel(kernel or "gaussian").with_lengths((2 * gamma) ** -0.5)
    most = None if memory is None else bytes_of("--memory", memory)
    return {
        "budget": seconds, "form": next(iter(asked), "auto"),
        "n_components": centers or features or near, "kernel": chosen, "max_memory": most,
        "random_state": seed,
    }  # fmt: skip


def _hints(rows: "FrameRows", by: TestBy) -> list[str]:
    """Say what the test does not show, and what other target may be meant."""
    import numpy as np

    from gzkcore.rows.text import DATE
    from gzkcore.tabular.targets import about_angles

    from .hints import about_dates, about_decades

    kinds, by_chance = rows.inputs.kinds, by.at_random and len(rows.truth)
    of_dates = [name for name, kind in kinds.items() if kind == DATE]
    dates = [name for name in of_dates if len(np.unique(rows.train[name])) > 1]
    hints = [about_dates(dates) if by_chance else ""]
    if not rows.classify:
        hints += [about_decades(rows.target, rows.y), str(about_angles(rows.target, rows.y) or "")]
    return [*filter(None, hints)]
