"""The commands `demo` and `info`: examples, and the installation."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from gzkcore._util.wording import counted, seconds_told

from .arguments import PICTURES, AsJson, ForcePlot, NoHatching, Width, check_new
from .output import print_json, print_lines, print_table, progress

LABELS = {  # the words for the keys of show_config
    "version": "gzkcore",
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "scikit-learn": "scikit-learn",
    "finufft": "finufft, for many places",
    "isa": "instruction set in use",
    "built_isa": "instruction sets compiled for",
    "supported_isa": "instruction sets that work here",
    "compiler": "C compiler",
    "openmp": "OpenMP, year and month",
    "n_threads": "threads",
    "blas": "BLAS libraries",
}


def demo(
    plot: Annotated[Path, typer.Option(help="Where to draw the map: .png, .pdf or .svg.")] = Path(
        "elevation.png"
    ),
    no_hatching: NoHatching = False,
    force: ForcePlot = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Measure seven methods instead; takes minutes.")
    ] = False,
    n_components: Width = 1024,
    seeds: Annotated[int, typer.Option(min=1, help="Random splits of --compare.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Predict the elevation of 28,000 airports from latitude and longitude, and draw a map.

    Fits KernelRegressor, which gzkcore fit uses, and gradient boosting, and prints their errors on
    held-out airports. Then draws a map of the surface that KernelRegressor has learned, and says
    what was chosen. With --compare it measures both, and ridge regression on five kinds of
    features, on three splits; the same folds choose lengthscale and ridge for all features.
    """
    started = time.perf_counter()
    if compare:
        result = _compare(n_components, seeds, as_json)
    else:
        check_new("--plot", plot, PICTURES, force)
        result = _predict(plot, no_hatching, as_json)
    if as_json:
        print_json(result | {"seconds": time.perf_counter() - started})


def _predict(plot: Path, no_hatching: bool, as_json: bool) -> dict[str, Any]:
    """Predict and draw; print each result, if it is not for JSON, as soon as it is known."""
    from gzkcore.tabular.report import DETAIL

    from .demo import Airports

    def show(*lines: str) -> None:
        if not as_json:
            print_lines(*lines)

    data, methods = Airports(), []
    n, n_held_out = (len(y) for _, y in (data.train, data.test))
    show(
        f"Elevation of airports from latitude and longitude: {n:,} to learn from, "
        f"{n_held_out:,} held out",
        "",
        "                            error      R²    time of the fit",
    )
    for row in data.errors():
        methods.append(row)
        told = "  {method:<24}{rmse:7.0f} m   {r2:.3f}".format(**row)
        show(f"{told}{seconds_told(row['seconds']):>11}")
    data.draw(plot, hatched=not no_hatching)
    report = data.model_.report_
    kernel = [f"Kernel: {each.what()}." for each in report.candidates if each.chosen]
    chosen = [*kernel, *(str(each) for each in report.remarks if each.kind != DETAIL)]
    show(
        "",
        f"Map of what KernelRegressor learned: {plot}",
        "",
        "What was chosen (errors in standard deviations of the elevation):",
        *chosen,
        "Next: gzkcore fit YOUR_TABLE.csv --target COLUMN --report report.html",
        "      gzkcore demo --compare  measures five more methods",
    )
    return {
        "airports": n + n_held_out, "held_out": n_held_out, "methods": methods, "plot": str(plot),
        "chosen": chosen,
    }  # fmt: skip


def _compare(n_components: int, seeds: int, as_json: bool) -> dict[str, Any]:
    """Measure all methods, and print a table if it is not for JSON."""
    from . import demo as airports

    with progress() as report:
        result = airports.compare(n_components, seeds, report)
    if not as_json:
        _print_comparison(result)
    return result


def _print_comparison(result: dict[str, Any]) -> None:
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
    )


def info(as_json: AsJson = False) -> None:
    """Print versions, instruction set, compiler, threads and BLAS, for bug reports."""
    from gzkcore._util.config import show_config

    config = show_config()
    if as_json:
        print_json(config)
        return
    rows = [
        [LABELS[key], ", ".join(map(_brief, value if isinstance(value, list) else [value]))]
        for key, value in config.items()
    ]
    print_table("What gzkcore runs on", ["", ""], rows)


def _brief(value: Any) -> str:
    if not isinstance(value, dict):
        return str(value)
    return "{library} {version} ({threads})".format(
        **value, threads=counted(value["n_threads"], "thread")
    )
