"""The table of `tables.py dense`: the whole kernel beside scikit-learn's, which stores K."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from benchmarks.common import data_generator
from cost import cost_of
from printing import report, show
from sklearn.kernel_ridge import KernelRidge as Dense

from gzkcore import Gaussian, KernelRidge

GAMMA, ALPHA = 1.0, 1e-2
MODELS = {
    "sklearn.kernel_ridge.KernelRidge": lambda: Dense(alpha=ALPHA, kernel="rbf", gamma=GAMMA),
    "gzkcore.KernelRidge(tol=1e-8)": lambda: KernelRidge(
        Gaussian(GAMMA), ALPHA, tol=1e-8, random_state=0
    ),
    "gzkcore.KernelRidge()": lambda: KernelRidge(Gaussian(GAMMA), ALPHA, random_state=0),
}


def dense(options):
    """Fit in a process each: the same predictions, seconds, and memory beyond that of the rows."""
    n, dim = (2000 if options.quick else options.rows_fitted), 3
    results = {}
    for name in MODELS:
        report(f"{name}, {n:,} rows")
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            results[name] = pool.submit(_fit, name, n, dim).result()
    exact, slowest, largest = results["sklearn.kernel_ridge.KernelRidge"]
    rows = [
        {
            "model": name,
            "largest difference": float(np.abs(predicted - exact).max()),
            "seconds": seconds,
            "times faster": slowest / seconds,
            "MB": megabytes,
            "times smaller": largest / megabytes,
        }
        for name, (predicted, seconds, megabytes) in results.items()
    ]
    notes = (
        f"{n:,} rows in {dim} columns, Gaussian with gamma={GAMMA:g}, alpha={ALPHA:g}; differences "
        "of predictions for 1,000 new rows, of standard deviation 1; memory at the peak of the "
        "fit, beyond what was held before."
    )
    show("The whole kernel, beside its matrix", rows, notes, options)


def _fit(name, n, dim):
    """Return predictions, seconds of the fit and its memory in MB."""
    X = data_generator(0).uniform(-1, 1, (n + 1000, dim))
    y = np.sin(4 * X[:, 0]) * X[:, 1] + np.abs(X).sum(axis=1)
    y = (y - y.mean()) / y.std() + 0.1 * data_generator(1).standard_normal(len(y))
    MODELS[name]().fit(X[:1100], y[:1100])  # threads and libraries are there
    model, seconds, megabytes = cost_of(lambda: MODELS[name]().fit(X[:n], y[:n]))
    return model.predict(X[n:]), seconds, megabytes
