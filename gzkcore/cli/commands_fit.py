"""The command `fit`: learn from a table."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gzkcore._util.wording import counted, plain

from .arguments import (
    LEARNER_RULES,
    AsJson,
    Classify,
    Data,
    DecimalComma,
    Force,
    Lat,
    Limits,
    Lon,
    TestBy,
    check_gamma,
    check_new_model,
    check_not_the_table,
    check_picture,
    check_positive,
    chosen_columns,
    origin,
    recipe_of,
)
from .output import advice, collected_notes, drawn, options_named, print_json, progress, tell
from .show_fit import FitResult, print_fit

if TYPE_CHECKING:
    from gzkcore.rows.files import Table

    from .fit import TableFit
    from .frame_rows import FrameRows

# Groups of options in the help.
LIMITS, CHOSEN, TEST = "Limits", "A model that you choose", "The test on held-out rows"
MOST_CENTERS = 1 << 14  # of a random sample of the rows


def fit(
    data: Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    lat: Lat = None,
    lon: Lon = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns a,b,c to predict from; by default all others.")
    ] = None,
    model: Annotated[Path, typer.Option(help="Where to save the model.")] = Path("model.gzk"),
    force: Force = False,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing", help="Leave out rows with missing values instead of filling them in."
        ),
    ] = False,
    decimal_comma: DecimalComma = False,
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
    features: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=CHOSEN,
            min=1,
            help="Instead: ridge on N features, reading the file in pieces.",
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole",
            rich_help_panel=CHOSEN,
            help="Instead: the whole kernel with one lengthscale.",
        ),
    ] = False,
    centers: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=CHOSEN,
            min=1,
            max=MOST_CENTERS,
            help="With --whole, for large tables: number of centres.",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=CHOSEN,
            help="Kernel of --features (gaussian) and --whole (matern); also exponential, "
            "laplacian, rational_quadratic.",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=CHOSEN,
            help="For --features and --whole: 1 / (2 lengthscale²); auto, the default, "
            "chooses it, scale is 1 / (d var), or a number.",
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
    seed: Annotated[
        int,
        typer.Option(rich_help_panel=TEST, min=0, help="Random seed, also for the held-out rows."),
    ] = 0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the surface, or predictions: .png, .pdf or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn to predict a column of a table, and test it on held-out rows beside other methods.

    If the table has fewer than 300 rows, each fifth is held out in turn; then the model is fitted
    to all rows.

    You need not choose anything. Columns may hold numbers, dates, text and missing values. The
    kernel, its lengthscales and the noise are chosen by the error on held-out rows. A text target
    is a label. With --lat and --lon only places are used, as points of the sphere. Without them,
    columns called latitude and longitude become points of the sphere too, unless there are other
    columns and the places lie in one region.

    --features and --whole let you choose; they need numeric columns. With --features the file is
    read in pieces, so it may be larger than memory.
    """
    from gzkcore._util.memory import bytes_of
    from gzkcore.rows.files import open_table

    from .kernels import check_name

    table = open_table(data, decimal_comma=decimal_comma)
    table.require([target])
    by = TestBy(test_last, test_groups)
    _check_options(
        whole=whole, features=features, centers=centers, seconds=seconds, memory=memory,
        classify=classify, kernel=kernel, gamma=gamma, by=by,
    )  # fmt: skip
    by.check(target, test_fraction)
    table.require(by.columns)
    chosen_columns(table, target, lat, lon, columns)
    if gamma is not None:
        check_gamma(gamma, LEARNER_RULES)
    if kernel is not None:
        check_name(kernel)
    limits = Limits(seconds, None if memory is None else bytes_of("--memory", memory))
    # What is there already comes last: mistakes in the command are told before.
    check_not_the_table(table, "--model", model)
    check_not_the_table(table, "--plot", plot)
    check_new_model("--model", model, force)
    check_picture(plot, force)
    asked = _Asked(
        table, target, lat, lon, columns, model, test_fraction, drop_missing, seed, plot, as_json
    )
    if whole or features is not None:
        name = kernel or ("matern" if whole else "gaussian")
        _fit_chosen(asked, features, centers, name, gamma or "auto")
    else:
        _fit_best(asked, limits, by, classify)


@dataclass(frozen=True)
class _Asked:
    """The options that every fit has."""

    table: "Table"
    target: str
    lat: str | None
    lon: str | None
    columns: str | None
    model: Path
    test_fraction: float | None
    drop_missing: bool
    seed: int
    plot: Path | None
    as_json: bool


def _check_options(
    *,
    whole: bool,
    features: int | None,
    centers: int | None,
    seconds: float | None,
    memory: str | None,
    classify: bool,
    kernel: str | None,
    gamma: str | None,
    by: TestBy,
) -> None:
    """Raise ValueError for options that don't go together."""
    if whole and features is not None:
        raise ValueError(
            f"--features {features} can't be combined with --whole; give one or the other"
        )
    if centers is not None and not whole:
        raise ValueError(f"--centers {centers} needs the whole kernel; add --whole")
    chosen = "--whole" if whole else None if features is None else "--features"
    if chosen is None:
        for name, value in (("--kernel", kernel), ("--gamma", gamma)):
            if value is not None:
                raise ValueError(
                    f"{name} {value} needs --features or --whole, since a fit without them "
                    f"learns the kernel; add one of them, or leave {name} out"
                )
        check_positive("--time", seconds, " of seconds")
        return
    given = {
        "--time": seconds is not None, "--memory": memory is not None, "--classify": classify,
        "--test-last": by.last is not None, "--test-groups": by.groups is not None,
    }  # fmt: skip
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name} can't be combined with {chosen}; leave one of them out")


def _fit_best(asked: _Asked, limits: Limits, by: TestBy, classify: bool) -> None:
    """Fit what predicts best."""
    from gzkcore._util.memory import PeakMemory
    from gzkcore.solve.fit_memory import TooLittleMemoryError

    from .fit_frame import fit_frame
    from .frame_rows import read_rows
    from .pictures import draw_frame
    from .recipes import places_among
    from .show_frame import print_frame, to_dict

    table, target, plot = asked.table, asked.target, asked.plot
    started, peak = time.perf_counter(), PeakMemory()
    columns, places = chosen_columns(table, target, asked.lat, asked.lon, asked.columns)
    if asked.columns is None and len(columns) > 1 and not places:
        # No row held out has a value of its group that was learned from.
        columns = [name for name in columns if name != by.groups]
    with options_named(drops=True), progress() as report, collected_notes() as notes:
        rows = read_rows(
            table, target, columns, places=places, classify=classify,
            test_fraction=asked.test_fraction, drop_missing=asked.drop_missing, seed=asked.seed,
            report=report, say=lambda text: notes.append(f"Note: {text}"),
            most_bytes=limits.bytes, by=by,
        )  # fmt: skip
        notes += [f"Note: {hint}" for hint in _hints(rows, by) if hint]
        try:
            found = fit_frame(rows, asked.model, limits, asked.seed, report)
        except TooLittleMemoryError as error:
            limit = "half of what is free" if limits.bytes is None else f"{limits.bytes:,.0f} bytes"
            raise ValueError(
                f"--memory allows {limit}, but {error.needed}; allow more, or pass fewer --columns"
            ) from None
        if found.verdict is not None:
            notes += [f"Note: {reason}" for reason in found.verdict.failed]
        if plot is not None and found.places is None and places_among(found.model):
            notes.append(
                "Note: the picture is no map, since a map shows what is predicted from places "
                "alone; --lat and --lon fit these"
            )
        picture, failed = drawn(plot, lambda path: draw_frame(found, path, table.path.name))
    result = {
        "data": str(table.path),
        "target": target,
        **to_dict(found),
        "unused": _others(table, [*columns, target]),
        "seconds": time.perf_counter() - started,
        "peak_memory_mb": peak.megabytes,
        "model": str(asked.model),
        "plot": picture,
        "notes": notes,
    }
    if asked.as_json:
        print_json(result)
    else:
        print_frame(result)
    if failed:
        raise ValueError(failed)


def _hints(rows: "FrameRows", by: TestBy) -> list[str]:
    """Say what the test does not show, and what other target may be meant; texts may be empty."""
    import numpy as np

    from gzkcore.rows.frames import DATE

    from .hints import about_dates, about_decades

    recipe, by_chance = rows.recipe, not by.columns and len(rows.truth)
    kinds = zip(recipe.columns, recipe.kinds, strict=True)
    dates = [name for name, kind in kinds if kind == DATE and len(np.unique(rows.train[name])) > 1]
    return [
        about_dates(dates) if by_chance else "",
        "" if rows.classify else about_decades(recipe.target, rows.y),
    ]


def _fit_chosen(
    asked: _Asked, features: int | None, centers: int | None, kernel: str, gamma: str
) -> None:
    """Fit features, or the whole kernel."""
    from gzkcore._util.memory import PeakMemory
    from gzkcore.datasets.globe import lengthscale_km

    from .fit import fit_table
    from .frame_rows import dropped_note
    from .maps import window_of

    table, target, plot = asked.table, asked.target, asked.plot
    started, peak = time.perf_counter(), PeakMemory()
    recipe = recipe_of(table, target, asked.lat, asked.lon, asked.columns)
    with (
        advice(table, recipe, drops=True), progress() as report, collected_notes() as notes,
    ):  # fmt: skip
        found = fit_table(
            table, recipe, kernel=kernel, gamma=gamma, n_components=features, centers=centers,
            test_fraction=asked.test_fraction, drop_missing=asked.drop_missing, seed=asked.seed,
            report=report, say=tell,
        )  # fmt: skip
        if features is not None and found.n_components != features:
            notes.append(
                f"Note: {counted(found.n_components or 0, 'feature')} instead of {features:,}, as "
                "many as there are training rows; --whole has the kernel itself"
            )
        if found.n_dropped:
            notes.append(f"Note: {dropped_note(found.n_dropped)}")
        window = [*window_of(found.sample)] if recipe.sphere else []
        found.model.recipe_ = asdict(replace(found.recipe, window=window))
        found.model.save(asked.model)
        picture, failed = drawn(plot, lambda path: _draw(found, path, table.path.name))
    result = FitResult(
        data=str(table.path), target=target, columns=found.recipe.columns,
        unused=_others(table, [*recipe.columns, target]), sphere=recipe.sphere,
        whole=features is None,
        centers=None if centers is None or found.whole is None else len(found.whole.model.X_fit_),
        kernel=plain(repr(found.model.kernel_)), n_components=found.n_components,
        gamma=found.gamma, gamma_from=origin(gamma), alpha=found.alpha,
        lengthscale_km=lengthscale_km(found.gamma) if recipe.sphere else None,
        n_iter=None if found.whole is None else int(found.whole.model.n_iter_),
        residual=None if found.whole is None else float(found.whole.model.residual_),
        preconditioner=None if found.whole is None else found.whole.preconditioner,
        train=found.train.summary(), test=found.test.summary(),
        baselines={name: errors.summary() for name, errors in found.baselines.items()},
        folds=found.folds, of_folds=found.of_folds,
        seconds=time.perf_counter() - started,
        peak_memory_mb=peak.megabytes,
        model=str(asked.model), plot=picture, notes=notes,
    )  # fmt: skip
    if asked.as_json:
        print_json(asdict(result))
    else:
        print_fit(result)
    if failed:
        raise ValueError(failed)


def _others(table: "Table", used: list[str]) -> list[str]:
    """Return the columns of a table that nobody asked for."""
    return [name for name in table.names if name not in used]


def _draw(found: "TableFit", plot: Path, name: str) -> None:
    """Draw the surface over the globe, or predictions against values."""
    from gzkcore.datasets.globe import lengthscale_km

    from .maps import draw_map, surface_of
    from .pictures import about_errors, draw_agreement

    target = found.recipe.target
    if found.recipe.sphere:
        km = lengthscale_km(found.gamma)
        y = found.pairs[:, 0]
        surface = surface_of(found.model, found.recipe.inputs, found.sample, km, y)
        draw_map(plot, surface, f"{target}, fitted to {name}", target)
    else:
        kind = "held-out" if found.test.rows else "training"
        rows = f"rows of {name}, each held out once" if found.folds else f"{kind} rows of {name}"
        draw_agreement(plot, found.pairs, rows, target, about_errors(found.test.summary()))
