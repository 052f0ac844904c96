"""The commands `demo` and `info`: examples, and the installation."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from gzkcore._util.wording import counted

from .arguments import PICTURES, AsJson, ForcePlot, Width, check_new
from .output import print_json, print_lines, print_table, progress

LABELS = {  # the words for the keys of show_config
    "version": "gzkcore",
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "scikit-learn": "scikit-learn",
    "finufft": "finufft, for many places",
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
    check_new("--plot", plot, PICTURES, force)
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
