"""Estimators where memory is short: they finish, or raise MemoryError.

A program that tests start: python tests/limits.py NAME...
fits each of these estimators, and lets it predict, in processes whose address space is limited to
some bytes more than they have. It prints the result of each.
"""

import gc
import json
import os
import resource
import sys
import warnings
from pathlib import Path

import models
import numpy as np
from programs import in_child

from gzkcore._util import linalg

ROOMS = [1 << 20, 1 << 23, 1 << 25, 1 << 27]  # bytes
ROWS = 6000  # whose kernel matrix, or features, take more
WIDTH = 1024
# Those that no file of tests/data/models is of by itself.
ENCODERS = {"table-encoder": models.gzk.TableEncoder, "lat-lon": models.gzk.LatLonToSphere}
NAMES = [*models.FEATURES, *models.LEARNERS, *ENCODERS]


def spread(unit, n):
    """Return as many rows as asked for, of the kind that `models.rows` has."""
    X = np.random.default_rng(0).standard_normal((n, models.DIM))
    if unit == "matrix":
        return models.gzk.Gaussian(0.5)(X[: n // 4])
    return X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X


def work_of(name):
    """Return what fits and asks an estimator, and of which rows."""
    if name in models.LEARNERS:
        fit, _ = models.LEARNERS[name]

        def ask(X, _):
            model = fit(X)
            return model.predict(X) if hasattr(model, "predict") else model.transform(X)

        return ask, True
    if name in ENCODERS:
        return lambda X, _: ENCODERS[name]().fit(X[:, :2]).transform(X[:, :2]), True
    make, unit = models.FEATURES[name]

    def transform(X, width):
        features = make()
        if "n_components" in features.get_params():
            features.set_params(n_components=width)
        return features.fit(X).transform(X)

    return transform, unit


def limit(room):
    """Let this process take so many bytes of addresses more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + room
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def fill_buffers():
    """Let each BLAS, NumPy's and SciPy's, take the buffers of all its threads.

    Where these don't fit, OpenBLAS ends the process: docs/support.md tells of it.
    """
    A = np.eye(1500) + 0.5 / 1500
    linalg.solve_factored(linalg.cholesky(A), A)
    linalg.eigh(A[:300, :300])
    A @ A  # last: threads that are limited, as above, hold a buffer too


def attempt(name, room):
    """Return what comes of an estimator in a child of this process."""
    work, unit = work_of(name)

    def within_limit():
        try:
            fill_buffers()
            work(spread(unit, 40), 16)  # modules that are imported late
            X = spread(unit, ROWS)
            gc.collect()
            limit(room)
            try:
                work(X, WIDTH)
            except MemoryError:
                return b"MemoryError"
            else:
                return b"finished"
        except BaseException:  # the traceback needs memory
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            raise

    return in_child(within_limit)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {name: [attempt(name, room) for room in ROOMS] for name in sys.argv[1:]}
    sys.stdout.write(json.dumps(found) + "\n")
