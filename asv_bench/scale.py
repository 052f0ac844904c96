"""The tables of `tables.py scale`: rows from disk, and rows on a Dask cluster."""

import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from benchmarks.common import gaussian
from printing import report, show
from scipy.linalg.blas import ssyrk
from sklearn.base import clone

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureRidge
from gzkcore._threads import n_threads
from gzkcore.gram import GramAccumulator

COLUMNS, WIDTH = 9, 1024
BLOCK = 65_536


def scale(options):
    """One pass over more rows than memory; Dask on one machine with one worker and two."""
    parts = {"disk": disk, "dask": cluster}
    unknown = set(options.parts) - set(parts)
    if unknown:
        sys.exit(f"scale: no part {', '.join(sorted(unknown))}; choose from {', '.join(parts)}")
    for name, part in parts.items():
        if name in (options.parts or parts):
            part(options)


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
        "the file once, "
        "from the cache of the system if it is there."
    )
    show("One pass over a file", [row], notes, options)


def fit_from_disk(path):
    """Fit in this process and return a row of the table."""
    X, y = np.load(path / "X.npy", mmap_mode="r"), np.load(path / "y.npy", mmap_mode="r")
    features = GegenbauerFeatures(Gaussian(0.05), WIDTH, random_state=0)
    model = RandomFeatureRidge(features, alpha=1e-3)
    syrk = syrk_seconds(X.shape[0])
    before, peak, stop = anonymous_megabytes(), [0.0], threading.Event()

    def sample():
        while not stop.wait(0.002):
            peak[0] = max(peak[0], anonymous_megabytes())

    watcher = threading.Thread(target=sample)
    watcher.start()
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    stop.set()
    watcher.join()
    over = max(peak[0], anonymous_megabytes()) - before
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
    """Seconds for Z^T Z of n rows in float32, on all threads, five times over from 131,072 rows."""
    Z = np.random.default_rng(0).standard_normal((2048, WIDTH), dtype=np.float32)
    gram = np.zeros((WIDTH, WIDTH), np.float32, order="F")
    taken = []
    for _ in range(5):
        time.sleep(0.2)
        ssyrk(1.0, Z.T, beta=1.0, c=gram, overwrite_c=1)
        start = time.perf_counter()
        for _ in range(64):
            ssyrk(1.0, Z.T, beta=1.0, c=gram, overwrite_c=1)
        taken.append((time.perf_counter() - start) * n / (64 * len(Z)))
    return taken


def anonymous_megabytes():
    """RssAnon of this process."""
    with Path("/proc/self/status").open() as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no RssAnon in /proc/self/status")


# ---- Dask


def cluster(options):
    """Time the sums on one worker and on two of one thread each, and what a chunk costs beside."""
    import dask.array as da
    from distributed import Client, LocalCluster

    n, rows = (40_000, 4000) if options.quick else (640_000, 20_000)
    few = 50 if options.quick else 200  # rows of a chunk that costs next to nothing
    features = GegenbauerFeatures(
        Gaussian(0.05), 256 if options.quick else WIDTH, radius=8.0, random_state=0
    )
    model = RandomFeatureRidge(features, alpha=1e-3)
    table = []
    for workers in (1, 2):
        settings = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(host="127.0.0.1", **settings) as made, Client(made) as client:
            client.run(np.random.default_rng)
            X = da.random.default_rng(0).standard_normal((n, COLUMNS), chunks=(rows, COLUMNS))
            X = X.astype(np.float32).persist()
            y = X[:, 0].persist()
            client.run(_warm)
            model.fit(X[: 4 * rows], y[: 4 * rows])
            times = []
            for _ in range(2 if options.quick else 3):
                start = time.perf_counter()
                model.fit(X, y)
                times.append(time.perf_counter() - start)
            tiny = X[: few * 64].rechunk((few, COLUMNS)).persist()
            fitted = GramAccumulator(model.features_)
            overhead = chunk_overhead(fitted, tiny)
        table.append(
            {
                "workers": workers,
                "threads each": 1,
                "chunks": n // rows,
                "fit, s": float(np.median(times)),
                "beside the work, ms a chunk": overhead,
            }
        )
    table[1]["times faster"] = table[0]["fit, s"] / table[1]["fit, s"]
    notes = (
        f"{n:,} rows of {COLUMNS} columns in float32, in the workers' memory, in chunks of "
        f"{rows:,}; {model.features_._n_features_out:,} features with a radius; processes on one "
        f"machine. A chunk beside the work: the pass over 64 chunks of {few} rows on the cluster, "
        "times its workers, less the same sums in this process on one thread, for each chunk."
    )
    show("Dask on one machine", table, notes, options)


def _warm():
    import sklearn.linear_model  # noqa: F401

    import gzkcore  # noqa: F401


def chunk_overhead(empty, X):
    """Milliseconds of a chunk on the cluster that are not its sums."""
    import copy

    from distributed import get_client

    from gzkcore._sources import Batch
    from gzkcore._streams import _add, _merge
    from gzkcore._threads import limit_threads
    from gzkcore.dask import DaskSource

    workers = len(get_client().nthreads())
    pieces = [Batch(np.asarray(block.compute()), None, None, 0) for block in X.blocks]
    taken, alone = [], []
    for _ in range(5):
        start = time.perf_counter()
        DaskSource(X).reduce(_add, _merge, _AsTheyAre(), copy.copy(empty))
        taken.append(time.perf_counter() - start)
        with limit_threads(1):
            start = time.perf_counter()
            for piece in pieces:
                _add(piece, _AsTheyAre(), empty)
            alone.append(time.perf_counter() - start)
    return 1e3 * (workers * float(np.median(taken)) - float(np.median(alone))) / len(pieces)


class _AsTheyAre:
    """Stands for a learner: takes batches as they are."""

    def _rows(self, X, y, sample_weight):
        return X, y, sample_weight
