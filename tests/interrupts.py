"""Work of several seconds that Ctrl-C ends within one: python tests/interrupts.py NAME.

A program that tests start: it prints `ready`, works, and prints when it noticed the interrupt, or
that it finished.
"""

import sys
import time
import warnings

import numpy as np

import gzkcore as gzk
from gzkcore._util import linalg
from gzkcore.features.gegenbauer import gegenbauer_features
from gzkcore.solve.neighbours import Nearest
from gzkcore.sphere.directions import sample_directions
from gzkcore.sphere.special import gegenbauer


def rows(n, dim, dtype=np.float32):
    return np.random.default_rng(0).standard_normal((n, dim), dtype)


def transform(make, n, dim):
    """Return the work of a map on rows: a fit to few of them, then all."""

    def prepare():
        X = rows(n, dim)
        features = make().fit(X[:100])
        return lambda: features.transform(X)

    return prepare


def passes(make, n, dim):
    """The same tile by tile, on several Python threads."""

    def prepare():
        X = rows(n, dim)
        features = make().fit(X[:100])
        return lambda: gzk.MomentsAccumulator(features).update(X)

    return prepare


def poly_sketch():
    return gzk.PolySketchFeatures(gzk.Polynomial(64, gamma=0.01), 512, random_state=0)


def product(width, gamma):
    def prepare():
        X, V = rows(100_000, 8), rows(100_000, width)
        operator = gzk.KernelOperator(gzk.Gaussian(gamma), X)
        return lambda: operator @ V

    return prepare


def prediction():
    model = gzk.KernelRidge(gzk.Gaussian(1.0), 1.0).fit(rows(300, 20), rows(300, 1)[:, 0])
    X = rows(4_000_000, 20)
    return lambda: model.predict(X)


def of_array(call, *shape):
    def prepare():
        X = rows(*shape)
        return lambda: call(X)

    return prepare


def factor():
    A = 1.0 * np.eye(7000)
    return lambda: linalg.cholesky(A, overwrite=True)


WORK = {
    "fourier": transform(lambda: gzk.RandomFourierFeatures("gaussian", 2048, random_state=0), 12_000, 4000),
    "fastfood": transform(lambda: gzk.FastfoodFeatures("gaussian", 2048, random_state=0), 150_000, 100),
    "poly-sketch": transform(poly_sketch, 30_000, 20),
    "tensor-sketch": transform(lambda: gzk.TensorSketchFeatures(gzk.Polynomial(6), 512, random_state=0), 100_000, 20),
    "hadamard": transform(lambda: gzk.HadamardProjection(512, random_state=0), 60_000, 2000),
    "fast-jl": transform(lambda: gzk.FastJLProjection(256, random_state=0), 60_000, 2000),
    "maclaurin": transform(lambda: gzk.MaclaurinFeatures(gzk.Polynomial(6), 2048, random_state=0), 15_000, 800),
    "gegenbauer": transform(lambda: gzk.GegenbauerFeatures(gzk.Gaussian(0.2), 512, basis="random", random_state=0), 300_000, 8),
    "passes": passes(poly_sketch, 30_000, 20),
    "product": product(1, 0.5),
    "products": product(16, 0.5),
    "prediction": prediction,
    "transform": of_array(gzk.hadamard_transform, 20_000, 1 << 14),
    "directions": lambda: lambda: sample_directions(20_000, 400, "orthogonal", 0),
    "polynomials": lambda: lambda: gegenbauer(400, 3, np.linspace(-1, 1, 10_000_000)),
    "sums": of_array(lambda X: gegenbauer_features(X, X[:500], np.ones((1, 300))), 60_000, 8),
    "neighbours": of_array(lambda X: Nearest(X[:60_000].astype(float)).to(X.astype(float), 10), 60_000, 30),
    "factor": factor,
}  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    work = WORK[sys.argv[1]]()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    try:
        work()
        sys.stdout.write("finished\n")
    except KeyboardInterrupt:
        sys.stdout.write(f"{time.monotonic()}\n")
