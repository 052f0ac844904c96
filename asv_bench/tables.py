#!/usr/bin/env python3
"""Print the tables of the README and of docs/speed.md, one command for each.

    python asv_bench/tables.py accuracy
    python asv_bench/tables.py elevation
    python asv_bench/tables.py domains [elevation] [climate] [protein]
    python asv_bench/tables.py families [dimensions] [choice] [tangent] [monomials]
    python asv_bench/tables.py clusters [abalone] [pendigits] [mushroom] [magic]
    python asv_bench/tables.py speed [kernel] [calls] [sums] [harmonics] [fit] [new]
    python asv_bench/tables.py mirrors
    python asv_bench/tables.py projection [memory] [footprint] [matrices] [features] ...
    python asv_bench/tables.py peers [fourier] [fastfood] [sketch] [polysketch] [nystrom] ...
    python asv_bench/tables.py products
    python asv_bench/tables.py memory
    python asv_bench/tables.py scale [disk] [dask] [simulate] [near]
    python asv_bench/tables.py dense
    python asv_bench/tables.py whole [errors] [features] [globe] [satellite] [places] [ways] ...
    python asv_bench/tables.py prediction [--rows 2000] [kin40k] [pol] ... [adult] [magic] ...
    python asv_bench/tables.py promises [kin40k] [pol] ...
    python asv_bench/tables.py intervals [kin40k] [pol] ...
    python asv_bench/tables.py forecasts [kin40k] [pol] ... [protein] [adult] ...
    python asv_bench/tables.py corruptions
    python asv_bench/tables.py import

Each prints a Markdown table (with --json the same as JSON), and the machine, instruction set,
threads and versions. --quick runs tiny sizes, only to check that everything runs. Speeds are
meaningful only on an idle machine; docs/speed.md explains how to read them.
"""

import argparse
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from accuracy import accuracy, domains, elevation
from benchmarks.common import DTYPES, interleave, sphere
from clusters import clusters
from corruptions import corruptions
from cost import anonymous_cost_of
from dense import dense
from families import families, mirrors
from forecasts import forecasts, options_of_forecasts
from kernel_products import kernel_products
from peers import PEERS, peers
from prediction import options_of_prediction, prediction
from printing import report, show
from projection import projection
from promises import intervals, options_of_promises, promises
from scale import scale
from speed import SPEEDS, speed
from whole import whole

from gzkcore import Gaussian, GegenbauerFeatures
from gzkcore._util.threads import n_threads

# ---- memory


def memory(options):
    """Print the anonymous memory of a fit from a memory map, over the imports."""
    if not Path("/proc/self/status").exists():
        sys.exit("memory: needs Linux, which tells anonymous memory apart (RssAnon)")
    n = 50_000 if options.quick else options.rows_fitted
    rows = []
    for dtype in DTYPES:
        with tempfile.TemporaryDirectory() as folder:
            report(f"{dtype}: writing {n:,} rows")
            path = Path(folder)
            X = np.lib.format.open_memmap(path / "X.npy", "w+", dtype, (n, 3))
            y = np.lib.format.open_memmap(path / "y.npy", "w+", dtype, (n,))
            for start in range(0, n, 100_000):
                part = sphere(min(100_000, n - start), 3, dtype, seed=start)
                X[start : start + len(part)] = part
                y[start : start + len(part)] = np.sin(4 * part[:, 0])
            X.flush(), y.flush()
            del X, y
            report(f"{dtype}: fitting")
            # A fresh process, so that nothing of ours is in its memory.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                rows.append(pool.submit(fit_from_disk, path, options.quick).result())
    notes = (
        f"{n:,} rows of 3 columns in a memory map, 1,024 features, one alpha. Anonymous memory "
        "(RssAnon) sampled every 2 ms; imports are what it was before the fit."
    )
    show("Memory of a fit larger than memory", rows, notes, options)


def fit_from_disk(path, quick):
    """Fit in this process and return a row of the table."""
    from gzkcore.learn.ridge import RandomFeatureRidge

    X, y = np.load(path / "X.npy", mmap_mode="r"), np.load(path / "y.npy", mmap_mode="r")
    features = GegenbauerFeatures(Gaussian(20.0), 256 if quick else 1024, random_state=0)
    model = RandomFeatureRidge(features, alpha=1e-3)
    seconds, imports, over = anonymous_cost_of(lambda: model.fit(X, y))
    few = slice(0, 2000)
    return {
        "type": str(X.dtype),
        "threads": n_threads(),
        "imports, MB": imports,
        "fit, MB over imports": over,
        "fit, s": seconds,
        "Z would be, MB": X.shape[0] * features.n_components * X.dtype.itemsize / 1e6,
        "rms residual": float(np.sqrt(np.mean(np.square(model.predict(X[few]) - y[few])))),
    }


# ---- import


def import_time(options):
    """Print the seconds of importing gzkcore, over scikit-learn."""
    commands = {
        "nothing": "pass",
        "sklearn": "import sklearn",
        "gzkcore": "import gzkcore",
    }
    with tempfile.TemporaryDirectory() as folder:  # away from the sources, which would be imported

        def call(code):
            return lambda: subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)

        calls = {name: call(code) for name, code in commands.items()}
        rounds = 3 if options.quick else 3 * options.rounds
        times = interleave(calls, rounds, visit=0.0, report=report)
    over = np.quantile(times["gzkcore"] - times["sklearn"], [0.25, 0.5, 0.75])
    rows = [
        {"import": name, "s": float(np.median(seconds)), "fastest, s": float(seconds.min())}
        for name, seconds in times.items()
    ]
    rows.append(
        {
            "import": "gzkcore over sklearn",
            "s": float(over[1]),
            "fastest, s": float(times["gzkcore"].min() - times["sklearn"].min()),
            "quartiles": f"{over[0]:.3g} to {over[2]:.3g}",
        }
    )
    notes = f"Whole processes, files in the page cache, in turn; median of {rounds} rounds."
    show("Import", rows, notes, options)


# ---- the command


def main():  # noqa: PLR0915  one statement for each command
    """Read the command line and print the table."""
    about, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="tables.py", description=about)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    shared.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    shared.add_argument("--rounds", type=int, default=7, help="rounds of timing (default 7)")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, function):
        added = commands.add_parser(name, parents=[shared], help=function.__doc__)
        added.set_defaults(function=function)
        return added

    command("accuracy", accuracy).add_argument("--seeds", type=int, default=10)
    command("elevation", elevation).add_argument("--splits", type=int, default=10)
    added = command("domains", domains)
    added.add_argument("--splits", type=int, default=5)
    added.add_argument("parts", nargs="*", help="elevation, climate, protein; by default all")
    added = command("families", families)
    added.add_argument("--seeds", type=int, default=5)
    added.add_argument("--rows", type=int, default=1_000_000, help="of choice; default 1,000,000")
    added.add_argument(
        "parts", nargs="*", help="dimensions, choice, tangent, monomials; by default all"
    )
    added = command("clusters", clusters)
    added.add_argument("--seeds", type=int, default=5)
    added.add_argument("--starts", type=int, default=10, help="of k-means; default 10")
    added.add_argument("--rows", type=int, default=10**9, help="at most so many, every n-th row")
    added.add_argument("parts", nargs="*", help="names of data sets; by default all")
    command("mirrors", mirrors)
    added = command("speed", speed)
    added.add_argument("parts", nargs="*", help=f"{', '.join(SPEEDS)}; all of them by default")
    added.add_argument("--compile", action="store_true", help="sums: torch.compile, too")
    added = command("projection", projection)
    added.add_argument(
        "parts",
        nargs="*",
        help="memory, footprint, matrices, features, sparse, errors, all; by default each",
    )
    command("peers", peers).add_argument("parts", nargs="*", help=f"{', '.join(PEERS)}; each")
    command("products", kernel_products)
    command("memory", memory).add_argument(
        "--rows", dest="rows_fitted", type=int, default=2_000_000, help="default 2,000,000"
    )
    added = command("scale", scale)
    added.add_argument("parts", nargs="*", help="disk, dask, simulate; by default all")
    added.add_argument("--plot", help="simulate: draw time against workers to this file (.png)")
    added.add_argument("--gigabits", type=float, default=10.0, help="of the network; default 10")
    added.add_argument("--latency", type=float, default=0.5, help="of it, in ms; default 0.5")
    added.add_argument(
        "--rows", dest="rows_fitted", type=int, default=5_000_000, help="default 5,000,000"
    )
    command("dense", dense).add_argument(
        "--rows", dest="rows_fitted", type=int, default=20_000, help="default 20,000, with 10 GB"
    )
    added = command("whole", whole)
    added.add_argument("--splits", type=int, default=5)
    added.add_argument(
        "parts",
        nargs="*",
        help="errors, features, globe, peers, centers, iterations, large; by default all",
    )
    added.add_argument("--width", type=int, default=512, help="iterations: of features; 512")
    options_of_prediction(command("prediction", prediction))
    options_of_promises(command("promises", promises))
    options_of_promises(command("intervals", intervals))
    options_of_forecasts(command("forecasts", forecasts))
    command("corruptions", corruptions).add_argument(
        "--tables", type=int, default=200, help="default 200"
    )
    command("import", import_time)
    _run(parser.parse_args())


def _run(options):
    if options.quick:
        options.rounds = min(options.rounds, 3)
    options.function(options)


if __name__ == "__main__":
    main()
