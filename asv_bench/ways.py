"""The table of `tables.py whole ways`: sums in linear time, tiles, and which of them is taken."""

import time
from contextlib import contextmanager

import numpy as np
from benchmarks.common import data_generator, sphere
from printing import report, show

from gzkcore import KernelOperator, Matern
from gzkcore.kernels.fast_sums import FIT, FastSums, NoSplitError
from gzkcore.solve.products import linear_sums

KERNELS = {
    "Gaussian, .1": Matern(np.inf, 0.1),
    "Matern-3/2, .2": Matern(1.5, 0.2),
    "Matern-1/2, .5": Matern(0.5, 0.5),
}
SPACES = "two columns", "three columns", "sphere"
ALPHA, TOL = 0.1, 1e-3  # of the fit


def ways(options):
    """Time a product and a fit's products both ways, with the set-up, and divide by the best."""
    sizes = [2000] if options.quick else [5000, 16_384, 40_000, 100_000]
    table = []
    for space in SPACES:
        for name, kernel in KERNELS.items():
            for n in sizes:
                report(f"{space}, {name}, {n:,} rows")
                X = rows(space, n)
                for what, work in (("one product", product), ("fit", products_of_fit)):
                    row = {"rows": n, "space": space, "kernel": name, "work": what}
                    table.append(row | compared(kernel, X, work))
    worst = max(row["taken / better"] for row in table)
    notes = (
        f"Seconds, with the set-up: one product in single precision with one vector, and {FIT} "
        f"products as a fit with alpha={ALPHA} needs them. At worst the way that is taken takes "
        f"{worst:.2f} times as long as the better one."
    )
    show("Tiles and linear time", table, notes, options)


def rows(space, n):
    """Return places on the sphere, or rows of a square or a cube of side 1."""
    if space == "sphere":
        return sphere(n, 3)
    return data_generator(0).random((n, 2 if space == "two columns" else 3))


def compared(kernel, X, work):
    """Return the seconds of both ways, and which is taken."""
    seconds = {}
    for way in ("tiles", "linear"):
        with forced(way):
            if work(kernel, X)[1] == way:
                seconds[way] = min(work(kernel, X)[0] for _ in range(2))
    _, taken = work(kernel, X)
    ratio = seconds[taken] / min(seconds.values())
    return {f"{way}, s": seconds.get(way, np.nan) for way in ("tiles", "linear")} | {
        "taken": taken, "taken / better": ratio,
    }  # fmt: skip


def product(kernel, X):
    """Multiply once; return the seconds and the way."""
    start = time.perf_counter()
    operator = KernelOperator(kernel, X, dtype=np.float32)
    operator @ np.ones((len(X), 1))
    return time.perf_counter() - start, "tiles" if operator._fast is None else "linear"


def products_of_fit(kernel, X):
    """Multiply as often as a fit does; return the seconds and the way."""
    v, start = np.ones((len(X), 1)), time.perf_counter()
    sums = linear_sums(kernel, X, ALPHA, TOL)
    by_tiles = KernelOperator.of(kernel, X, dtype=np.float32) if sums is None else None
    for _ in range(FIT):
        (sums or by_tiles).times(v)
    return time.perf_counter() - start, "tiles" if sums is None else "linear"


@contextmanager
def forced(way):
    """Let one way be taken whatever it costs."""
    chosen = FastSums.of

    def of(kernel, X, Y, tol, *_):
        try:
            return FastSums(kernel, X, Y, tol) if way == "linear" else None
        except NoSplitError:
            return None

    FastSums.of = of
    try:
        yield
    finally:
        FastSums.of = chosen
