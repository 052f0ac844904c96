"""The commands `demo`, `papers` and `info`: examples, and the installation."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gzkcore._util.wording import counted

from .arguments import AsJson, ForcePlot, Width, check_picture, check_results
from .output import (
    collected_notes,
    picture_note,
    print_json,
    print_lines,
    print_table,
    progress,
    resumable,
)

if TYPE_CHECKING:
    from gzkcore.papers import reproduce

LABELS = {  # of what show_config returns
    "version": "gzkcore",
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "scikit-learn": "scikit-learn",
    "isa": "instruction set in use",
    "supported_isa": "instruction sets that work here",
    "compiler": "C compiler",
    "openmp": "OpenMP, year and month",
    "n_threads": "threads",
    "blas": "BLAS libraries",
}


def demo(
    n_components: Width = 1024,
    seeds: Annotated[int, typer.Option(min=1, help="Number of random splits.")] = 3,
    plot: Annotated[Path, typer.Option(help="Where to draw the map: .png, .pdf or .svg.")] = Path(
        "elevation.png"
    ),
    force: ForcePlot = False,
    as_json: AsJson = False,
) -> None:
    """Predict the elevation of 28,000 airports from latitude and longitude.

    Compares KernelRegressor, which gzkcore fit uses, with gradient boosting and with ridge
    regression on features: Gegenbauer (default, with a random basis, and as published), random
    Fourier and Nystroem. The same folds choose lengthscale and ridge for all features. Then draws
    a map of the surface that KernelRegressor fits.
    """
    from . import demo as airports

    started = time.perf_counter()
    check_picture(plot, force)
    with progress(lines=True) as report:
        result = airports.compare(n_components, seeds, report)
        report("map", 0)
        airports.draw(plot)
        report("map", 1)
    result |= {"plot": str(plot), "seconds": time.perf_counter() - started}
    if as_json:
        print_json(result)
    else:
        _print_demo(result)


def _print_demo(result: dict[str, Any]) -> None:
    columns = (("lengthscale_km", ".0f"), ("seconds", ".1f"), ("peak_memory_mb", ".0f"))
    seeds, n_components = result["seeds"], result["n_components"]
    print_table(
        f"Elevation of {result['airports']:,} airports from latitude and longitude",
        ["", "error\n(m)", "R²", "scale\n(km)", "time\n(s)", "memory\n(MB)"],
        [
            [
                row["method"],
                f"{row['rmse']:.1f}" + (f" ± {row['rmse_spread']:.1f}" if seeds > 1 else ""),
                f"{row['r2']:.3f}",
                *(f"{row[key]:{form}}" if key in row else "" for key, form in columns),
            ]
            for row in result["methods"]
        ],
    )
    print_lines(
        "error: root mean squared error on held-out airports; mean and spread over "
        + counted(seeds, "split"),
        "scale: lengthscale; KernelRegressor learns its own, for features 2-fold cross-validation "
        f"chose it most often among {len(result['lengthscales_km'])}",
        f"time: of the fit and its choices; n_components of all features: {n_components:,}",
        f"memory: {result['memory']}",
        "random basis: basis='random', which reaches higher degrees than the exact one",
        f"published: degree {result['published_degree']}, order 1",
        f"Map of the fitted surface: {result['plot']}",
    )


def papers(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="gegenbauer, block or all.")],
    experiment: Annotated[
        str | None,
        typer.Argument(metavar="PART", help="fig1, table1, fig2, table2, ...; by default all."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes: minutes instead of hours.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of repetitions; by default 1 to 3.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download missing data sets.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            help="A .json file that saves results, to resume from; by default papers[-quick].json."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: .png, .pdf or .svg, a file for each experiment.")
    ] = None,
    force: ForcePlot = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the papers' tables and figures: published beside measured, with a verdict.

    gegenbauer has fig1, table1, table2 and table3; block has fig1, table1, fig2, table2, table3 and
    table4. Data are read from the folder that GZKCORE_DATA names; missing data sets are skipped.
    Results are saved in --output after every step: repeat the command to resume.
    """
    from gzkcore.papers import reproduce

    names = reproduce.choose(paper, experiment)
    for picture in _pictures(plot, names).values():
        check_picture(picture, force)
    output = output or Path("papers-quick.json" if quick else "papers.json")
    check_results(output)
    with collected_notes() as notes:
        with resumable(output), progress(lines=True) as report:
            results = [
                reproduce.run(
                    name, quick=quick, seeds=seeds, download=download, output=output, report=report
                )
                for name in names
            ]
        pictures = _draw_all(results, plot, notes) if plot else {}
    if as_json:
        print_json(
            {
                "experiments": [result.to_dict() for result in results],
                "output": str(output),
                "plots": {name: str(path) for name, path in pictures.items()},
                "notes": notes,
            }
        )
        return
    for result in results:
        print_lines(str(result), "")
    print_lines(*notes, f"Results: {output}")
    for path in pictures.values():
        print_lines(*picture_note(str(path)))


def _draw_all(results: "list[reproduce.Result]", plot: Path, notes: list[str]) -> dict[str, Path]:
    """Draw each experiment that has results; of several, each in a file with its name."""
    pictures = _pictures(plot, [result.name for result in results])
    for result in results:
        if result.cells:
            result.plot(pictures[result.name])
        else:
            notes.append(f"Note: {result.name} has no results, and so no picture")
            del pictures[result.name]
    return pictures


def _pictures(plot: Path | None, names: list[str]) -> dict[str, Path]:
    """Return where each experiment is drawn: of several, each in a file with its name."""
    if plot is None or len(names) == 1:
        return {name: plot for name in names if plot is not None}
    ends = {name: name.replace(" ", "-") for name in names}
    return {name: plot.with_name(f"{plot.stem}-{end}{plot.suffix}") for name, end in ends.items()}


def info(as_json: AsJson = False) -> None:
    """Print versions, instruction set, compiler, threads and BLAS, for bug reports."""
    from gzkcore._util.config import show_config

    config = show_config()
    if as_json:
        print_json(config)
        return
    print_table(
        "What gzkcore runs on",
        ["", ""],
        [
            [LABELS[key], ", ".join(map(_brief, value if isinstance(value, list) else [value]))]
            for key, value in config.items()
        ],
    )


def _brief(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return "{library} {version} ({threads})".format(
        **value, threads=counted(value["n_threads"], "thread")
    )
