"""The table of `tables.py scale near`: near rows of up to ten million rows, and the defaults."""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from benchmarks.common import data_generator
from cost import cost_of
from printing import report, show

from gzkcore import KernelRegressor, Matern, NearKernelRidge

COLUMNS, NEW, NOISE, PART = 8, 10_000, 0.2, 100_000


def near(options):
    """Fit to more and more rows, predict others, and compare with the function without noise."""
    sizes = [2000, 20_000] if options.quick else [100_000, 1_000_000, 10_000_000]
    runs = [("near rows", n) for n in sizes]
    runs += [("defaults", n) for n in ([4000] if options.quick else [200_000, 1_000_000])]
    table = []
    for run in runs:
        report(f"{run[0]}, {run[1]:,} rows")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            table.append(pool.submit(fitted, *run).result())
    notes = (
        f"y = sin(6 a) cos(5 b) + c d + sin(9 e), noise of {NOISE}, {COLUMNS} columns, float32. "
        "Near rows: Matern-5/2 with learned lengths, m = 150. Predictions: means and standard "
        f"deviations of {NEW:,} rows. The error is against y without noise. Memory: over the rows, "
        "at the peak."
    )
    show("Any number of rows", table, notes, options)


def fitted(model, n):
    """Fit in this process and return a row of the table."""
    rng = data_generator(0)
    X = np.concatenate([rng.random((len(part), COLUMNS), np.float32) for part in parts(n)])
    y = truth(X) + NOISE * rng.standard_normal(n)
    new = rng.random((NEW, COLUMNS), np.float32)
    learner = (
        KernelRegressor(random_state=0)
        if model == "defaults"
        else NearKernelRidge(Matern(2.5, "learn"), n_neighbors=150, random_state=0)
    )
    learner.fit(X[:1000], y[:1000]).predict(new[:1], return_std=True)
    start = time.process_time()
    _, seconds, megabytes = cost_of(lambda: learner.fit(X, y))
    in_all = time.process_time() - start
    start = time.perf_counter()
    mean, _ = learner.predict(new, return_std=True)
    predictions = time.perf_counter() - start
    row = {"model": model, "rows": n, "fit, s": seconds, "us a row": 1e6 * seconds / n}
    row |= {"processor seconds": in_all, "predictions, s": predictions, "MB": megabytes}
    return row | {"error": float(np.sqrt(np.mean(np.square(mean - truth(new)))))}


def truth(X):
    """Return the function at some rows, without noise."""
    f = np.empty(len(X))
    for part in parts(len(X)):
        a, b, c, d, e = X[part, :5].T.astype(float)
        f[part] = np.sin(6 * a) * np.cos(5 * b) + c * d + np.sin(9 * e)
    return f


def parts(n):
    """Return the numbers of some rows after another."""
    return [range(start, min(start + PART, n)) for start in range(0, n, PART)]
