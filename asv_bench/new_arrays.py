"""The time of a call that returns a new array, beside filling an array with a number."""

import numpy as np
from benchmarks.common import gaussian, interleave, ratio, sphere
from printing import report, show
from sklearn.kernel_approximation import RBFSampler

from gzkcore import Gaussian, GegenbauerFeatures, RandomFourierFeatures
from gzkcore._util.new_arrays import forget_waiting

WIDTH = 1024


def _gegenbauer(basis):
    return GegenbauerFeatures(Gaussian(0.5), WIDTH, basis=basis, random_state=0)


def _fourier(dim):
    return RandomFourierFeatures(Gaussian(0.5 / dim), WIDTH, random_state=0)


# Each makes features, and rows for them.
CASES = {
    "Gegenbauer, random, d=3": lambda: (_gegenbauer("random"), 2 * sphere(64_800, 3)),
    "Gegenbauer, harmonic, d=3": lambda: (_gegenbauer("harmonic"), 2 * sphere(64_800, 3)),
    "Fourier, d=9": lambda: (_fourier(9), gaussian(64_800, 9)),
    "Fourier, d=64": lambda: (_fourier(64), gaussian(16_384, 64)),
    "Fourier, d=784": lambda: (_fourier(784), gaussian(16_384, 784)),
}


def new_arrays(options):
    """Measure transform(X) into new arrays against numpy.full of the same and RBFSampler."""
    rows = [_row(name, make, options) for name, make in CASES.items()]
    notes = (
        f"{WIDTH:,} float32 columns, transform(X) as written, medians in ms. First: none waits; "
        "again: earlier results are gone, and their memory is used again. The last columns are of "
        "`again`: its bandwidth over that of numpy.full, and how many times faster it is than "
        "scikit-learn's RBFSampler."
    )
    show("transform(X) into new arrays", rows, notes, options)


def _row(name, make, options):
    features, X = make()
    X = X[: 2048 if options.quick else None].astype("float32")
    theirs = RBFSampler(gamma=0.5, n_components=WIDTH, random_state=0).fit(X)
    warm = features.fit(X).transform(X)
    calls = {
        "numpy.full": lambda: np.full(warm.shape, 1.5, warm.dtype),
        "first": lambda: (forget_waiting(), features.transform(X)),
        "again": lambda: features.transform(X),
        "out=": lambda: features.transform(X, out=warm),
        "RBFSampler": lambda: theirs.transform(X),
    }
    times = interleave(calls, options.rounds, report=lambda text: report(f"{name}, {text}"))
    row = {"features": name, "rows": f"{len(X):,}"}
    row |= {call: 1e3 * float(np.median(seconds)) for call, seconds in times.items()}
    row["over numpy.full"] = ratio(times, "numpy.full", "again")[0]
    return row | {"times faster": ratio(times, "RBFSampler", "again")[0]}
