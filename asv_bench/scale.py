"""The tables of `tables.py scale`: rows from disk, rows on a Dask cluster, and on a larger one."""

import copy
import heapq
import os
import pickle
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from benchmarks.common import gaussian
from cost import anonymous_cost_of
from near import near
from printing import report, run_parts, show
from scipy.linalg.blas import ssyrk
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureRidge
from gzkcore._util.threads import limit_blas, limit_threads, n_threads
from gzkcore.passes.gram import GramAccumulator
from gzkcore.passes.streams import _add, _merge
from gzkcore.rows.dask import FAN_IN, DaskSource
from gzkcore.rows.sources import Batch

COLUMNS, WIDTH = 9, 1024
BLOCK = 65_536


def scale(options):
    """One pass over more rows than memory; Dask; more workers, by simulation; near rows."""
    parts = {"disk": disk, "dask": cluster, "simulate": simulate, "near": near}
    run_parts("scale", options, parts)


# ---- disk


def disk(options):
    """Fit from a memory map; compare with syrk of the same shapes and reading the file."""
    if not Path("/proc/self/status").exists():
        sys.exit("scale disk: needs Linux, which tells anonymous memory apart (RssAnon)")
    n = 50_000 if options.quick else options.rows_fitted
    with tempfile.TemporaryDirectory() as folder:
        report(f"writing {n:,} rows")
        path = Path(folder)
        X = np.lib.format.open_memmap(path / "X.npy", "w+", np.float32, (n, COLUMNS))
        y = np.lib.format.open_memmap(path / "y.npy", "w+", np.float32, (n,))
        for start in range(0, n, BLOCK):
            part = gaussian(min(BLOCK, n - start), COLUMNS, seed=start).astype(np.float32)
            X[start : start + BLOCK] = part
            y[start : start + BLOCK] = np.sin(part[:, 0]) + part[:, 1]
        X.flush(), y.flush()
        del X, y
        report("fitting")
        # A fresh process, so that nothing of ours is in its memory.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            row = pool.submit(fit_from_disk, path).result()
    notes = (
        f"{n:,} rows of {COLUMNS} columns, float32, {WIDTH:,} features of a Gaussian, one alpha, "
        "from a memory map to coefficients: norms, features, sums, solution. Anonymous memory "
        "(RssAnon) sampled every 2 ms, over the imports. syrk: Z^T Z alone of as many rows, in "
        "blocks of 2,048 that lie in cache; median of five before the fit and five after. Read: "
        "the file once, from the cache of the system if it is there."
    )
    show("One pass over a file", [row], notes, options)


def fit_from_disk(path):
    """Fit in this process and return a row of the table."""
    X, y = np.load(path / "X.npy", mmap_mode="r"), np.load(path / "y.npy", mmap_mode="r")
    features = GegenbauerFeatures(Gaussian(0.05), WIDTH, random_state=0)
    model = RandomFeatureRidge(features, alpha=1e-3)
    syrk = syrk_seconds(X.shape[0])
    seconds, _, over = anonymous_cost_of(lambda: model.fit(X, y))
    syrk = float(np.median(syrk + syrk_seconds(X.shape[0])))
    start = time.perf_counter()
    with (path / "X.npy").open("rb", buffering=0) as file:
        buffer = bytearray(1 << 22)
        while file.readinto(buffer):
            pass
    reading = time.perf_counter() - start
    start = time.perf_counter()
    clone(features).fit(X)
    choosing = time.perf_counter() - start
    few = slice(0, 2000)
    rms = float(np.sqrt(np.mean(np.square(model.predict(X[few]) - y[few]))))
    return {
        "basis": model.features_.basis_,
        "threads": n_threads(),
        "fit, MB over imports": over,
        "fit, s": seconds,
        "of it the features' fit, s": choosing,
        "syrk, s": syrk,
        "read, s": reading,
        "fit / (syrk + read)": seconds / (syrk + reading),
        "Z would be, MB": X.shape[0] * WIDTH * 4 / 1e6,
        "rms residual": rms,
    }


def syrk_seconds(n):
    """Return five estimates of the seconds for Z^T Z of n rows in float32, on all threads."""
    Z = np.random.default_rng(0).standard_normal((2048, WIDTH), dtype=np.float32)
    gram = np.zeros((WIDTH, WIDTH), np.float32, order="F")
    seconds = []
    for _ in range(5):
        time.sleep(0.2)
        ssyrk(1.0, Z.T, beta=1.0, c=gram, overwrite_c=1)
        start = time.perf_counter()
        for _ in range(64):
            ssyrk(1.0, Z.T, beta=1.0, c=gram, overwrite_c=1)
        seconds.append((time.perf_counter() - start) * n / (64 * len(Z)))
    return seconds


# ---- Dask


def cluster(options):
    """Time the sums on one worker and on two of one thread each, and what a chunk costs beside."""
    n, rows = (40_000, 4000) if options.quick else (640_000, 20_000)
    width, rounds = (256, 2) if options.quick else (WIDTH, 3)
    few = 50 if options.quick else 200  # a chunk of so few rows costs next to nothing
    table = []
    for workers in (1, 2):
        fits, _, overhead, _ = on_workers(workers, n, rows, width, few, rounds)
        table.append(
            {
                "workers": workers,
                "threads each": 1,
                "chunks": n // rows,
                "fit, s": float(np.median(fits)),
                "beside the work, ms a chunk": 1e3 * overhead,
            }
        )
    table[1]["times faster"] = table[0]["fit, s"] / table[1]["fit, s"]
    notes = (
        f"{n:,} rows of {COLUMNS} columns in float32, in the workers' memory, in chunks of "
        f"{rows:,}; {width:,} features with a radius; processes on one machine. "
        f"A chunk beside the work: the pass over 64 chunks of {few} rows on the cluster, times its "
        "workers, less the same sums in this process on one thread, for each chunk; fastest of 5."
    )
    show("Dask on one machine", table, notes, options)


def features_of(width):
    """Return fitted features that need nothing of the rows."""
    made = GegenbauerFeatures(Gaussian(0.05), width, radius=8.0, random_state=0)
    return made.fit(np.ones((1, COLUMNS), np.float32))


def on_workers(workers, n, rows, width, few, rounds):
    """Return the seconds of fits, workers' CPU, a chunk's overhead, and an idle task."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    model = RandomFeatureRidge(clone(features_of(width)), alpha=1e-3)
    settings = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    settings["silence_logs"] = "CRITICAL"
    with LocalCluster(host="127.0.0.1", **settings) as made, Client(made) as client:
        client.run(np.random.default_rng)
        X = da.random.default_rng(0).standard_normal((n, COLUMNS), chunks=(rows, COLUMNS))
        X = X.astype(np.float32).persist()
        y = X[:, 0].persist()
        client.run(_warm)
        model.fit(X[: 4 * rows], y[: 4 * rows])
        cpu = sum(client.run(time.process_time).values())
        fits = [seconds_of(lambda: model.fit(X, y)) for _ in range(rounds)]
        cpu = (sum(client.run(time.process_time).values()) - cpu) / rounds
        tiny = X[: few * 64].rechunk((few, COLUMNS)).persist()
        overhead = chunk_overhead(GramAccumulator(model.features_), tiny)
        tasks = [dask.delayed(abs, pure=False)(i) for i in range(1000)]
        idle = [seconds_of(lambda: dask.compute(*tasks)) / len(tasks) for _ in range(3)]
    return fits, cpu, overhead, min(idle)


def seconds_of(work, clock=time.perf_counter):
    """Return the seconds that work() takes."""
    start = clock()
    work()
    return clock() - start


def _warm():
    import sklearn.linear_model  # noqa: F401

    import gzkcore  # noqa: F401


def chunk_overhead(empty, X):
    """Return a chunk's overhead on the cluster: its seconds beside its sums."""
    from distributed import get_client

    workers = len(get_client().nthreads())
    pieces = [Batch(np.asarray(block.compute()), None, None, 0) for block in X.blocks]
    taken, alone = [], []
    for _ in range(5):
        taken.append(
            seconds_of(lambda: DaskSource(X).reduce(_add, _merge, _AsTheyAre(), copy.copy(empty)))
        )
        with limit_threads(1):
            alone.append(seconds_of(lambda: [_add(piece, _AsTheyAre(), empty) for piece in pieces]))
    return (workers * min(taken) - min(alone)) / len(pieces)


class _AsTheyAre:
    """Stand for a learner that takes batches as they are."""

    def _rows(self, X, y, sample_weight):
        return X, y, sample_weight

    def _summands(self, X, y, sample_weight):
        return X, np.empty((len(X), 0)) if y is None else y, sample_weight


# ---- more workers than there are here

WIDTHS = (256, 1024, 4096)
PLANS = ((10**9, 10**5), (10**12, 10**7))  # rows, and those of a chunk
WORKERS = tuple(2**k for k in range(13))


def simulate(options):
    """Print time against workers, from constants measured here and a given network."""
    widths = (64, 128, 256) if options.quick else WIDTHS
    n, rows, few, rounds = (40_000, 4000, 50, 2) if options.quick else (160_000, 20_000, 200, 5)
    cores, network = os.cpu_count(), (options.latency / 1e3, 8 / (1e9 * options.gigabits))
    report("measuring")
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        alone, busy = {}, {}  # busy: with as many processes at work as there are cores
        for width in widths:
            few_rows = min(rows, (1 << 25) // width)
            alone[width] = pool.submit(constants, width, few_rows).result()
            parts = [pool.submit(constants, width, few_rows) for _ in range(cores)]
            row = float(np.mean([part.result()["row"] for part in parts]))
            busy[width] = alone[width] | {"row": max(alone[width]["row"], row)}
    real = {w: on_workers(w, n, rows, widths[1], few, rounds) for w in (1, 2)}
    overhead, dispatch = real[1][2], real[2][3]
    beside = overhead, dispatch, network

    constants_found = [
        {
            "features": width,
            "rows/s of a core": 1 / alone[width]["row"],
            "rows/s, all busy": 1 / busy[width]["row"],
            "accumulator, MB": alone[width]["memory"] / 1e6,
            "on the wire, MB": alone[width]["wire"] / 1e6,
            "add 1 MB, ms": 1e9 * alone[width]["add"] / alone[width]["memory"],
            "pickle 1 MB and back, ms": 1e9 * alone[width]["pickle"] / alone[width]["wire"],
            "solve, s": alone[width]["solve"],
        }
        for width in widths
    ]
    notes = (
        f"float32, {COLUMNS} columns, one thread, CPU time, least of 5; a row is its "
        f"features and its part of the sums. Beside that a chunk takes {1e3 * overhead:.3g} ms on "
        f"its worker, and any task {1e3 * dispatch:.3g} ms of the scheduler."
    )
    show("What a chunk and a merge cost", constants_found, notes, options)

    checked = []
    for workers, (fits, cpu, *_) in real.items():
        cost = (alone if workers == 1 or cores == 1 else busy)[widths[1]]
        predicted = makespan(n, rows, workers, cost, *beside)
        checked.append(
            {"workers": workers, "measured, s": min(fits), "simulated, s": predicted}
            | {"simulated / measured": predicted / min(fits), "CPU of the workers, s": cpu}
            | {"rows by the constants, s": n * cost["row"]}
        )
    notes = (
        f"{n:,} rows, {widths[1]:,} features, {n // rows} chunks, real processes on one machine; "
        f"fastest of {rounds}."
    )
    show("The simulation against a real fit", checked, notes, options)

    curves = {
        (n, width): [makespan(n, rows, workers, busy[width], *beside) for workers in WORKERS]
        for n, rows in (PLANS[:1] if options.quick else PLANS)
        for width in widths
    }
    table = []
    for n, rows in PLANS[: 1 if options.quick else 2]:
        for width in widths:
            one = curves[n, width][0]
            line = {"rows": f"{n:.0e}", "features": width, "1 worker": in_words(one)}
            for workers in (64, 1000, 4096):
                taken = makespan(n, rows, workers, busy[width], *beside)
                share = one / (workers * taken)
                line[f"{workers:,} workers"] = f"{in_words(taken)} ({share:.0%})"
            table.append(line)
    notes = (
        "Time from the first chunk to the coefficients, and in brackets the share of the ideal, "
        f"that of 1 worker over their number. Chunks of {PLANS[0][1]:,} and {PLANS[1][1]:,} rows "
        f"that lie with the workers; a network of {options.gigabits:g} Gbit/s for each worker and "
        f"{options.latency:g} ms."
    )
    show("Simulated: one core for each worker", table, notes, options)
    if options.plot:
        draw(curves, options.plot)


def constants(width, rows):
    """CPU seconds of a row, of adding, pickling and solving; the bytes of an accumulator."""
    X = gaussian(rows, COLUMNS).astype(np.float32)
    features = features_of(width)
    batch = Batch(X, X[:, 0].astype(np.float64), None, 0)
    cpu = time.process_time  # other processes have no part in it
    with limit_threads(1), limit_blas(1):
        empty = GramAccumulator(features)
        part = _add(batch, _AsTheyAre(), empty)
        works = {
            "row": (lambda: _add(batch, _AsTheyAre(), empty), rows),
            "add": (lambda: _merge([part] * FAN_IN), FAN_IN),
            "pickle": (lambda: pickle.loads(pickle.dumps(part, 5)), 1),
        }
        measured = {
            name: min(seconds_of(work, cpu) for _ in range(5)) / count
            for name, (work, count) in works.items()
        }
        model = RandomFeatureRidge(FrozenEstimator(features), alpha=1.0).partial_fit(*batch[:2])
        solve = seconds_of(lambda: model.coef_, cpu)
    sizes = {"wire": len(pickle.dumps(part, 5)), "memory": part.sums.nbytes}
    return measured | sizes | {"solve": solve}


def makespan(n, rows, workers, cost, overhead, dispatch, network):
    """Seconds of a fit: a free worker takes a merge that is ready, or else the next chunk.

    `network` is the seconds of a message and of a byte. Every task waits for the one scheduler.
    """
    latency, per_byte = network
    fetch = latency + cost["wire"] * per_byte + cost["pickle"]  # all inputs of a merge but one
    sizes = [-(-n // rows)]  # nodes of the tree, level by level
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FAN_IN))

    def inputs(level, place):
        return min(FAN_IN, sizes[level - 1] - FAN_IN * place)

    missing = [
        [inputs(level, i) for i in range(size)] if level else [] for level, size in enumerate(sizes)
    ]
    ready, ends = deque(), []
    clock = scheduler = 0.0
    idle, chunk = workers, 0
    while True:
        while idle and (ready or chunk < sizes[0]):
            if ready:
                level, place = ready.popleft()
                count = inputs(level, place)
                seconds = count * cost["add"] + (count - 1) * fetch
            else:
                level, place, seconds = 0, chunk, rows * cost["row"] + overhead
                chunk += 1
            scheduler = max(scheduler, clock) + dispatch
            heapq.heappush(ends, (scheduler + seconds, level, place))
            idle -= 1
        clock, level, place = heapq.heappop(ends)
        idle += 1
        while level < len(sizes) - 1:  # a node with one input is that input
            level, place = level + 1, place // FAN_IN
            missing[level][place] -= 1
            if missing[level][place]:
                break
            if inputs(level, place) > 1:
                ready.append((level, place))
                break
        else:
            return clock + fetch + cost["solve"]


def in_words(seconds):
    """Return a time as text in seconds, hours or days."""
    for unit, size in (("d", 86_400), ("h", 3600)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def draw(curves, path):
    """Draw time against workers, one panel for each number of rows."""
    from matplotlib.figure import Figure

    panels = sorted({n for n, _ in curves})
    figure = Figure(figsize=(5 * len(panels), 4.2), layout="constrained")
    for n, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        for (rows, width), seconds in curves.items():
            if rows == n:
                (line,) = axes.loglog(WORKERS, seconds, "o-", ms=3, label=f"{width:,} features")
                ideal = [seconds[0] / workers for workers in WORKERS]
                axes.loglog(WORKERS, ideal, ":", lw=1, color=line.get_color())
        axes.set(
            title=f"$10^{{{np.log10(n):.0f}}}$ rows", xlabel="workers of one core", ylabel="seconds"
        )
        axes.set_xticks([1, 8, 64, 512, 4096], ["1", "8", "64", "512", "4,096"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(title="dotted: ideal")
    figure.savefig(path, dpi=150)
    report(f"drawn: {path}\n")
