"""Adaptive sketch beside landmarks and a sketch that sees no data: error, time and memory."""

import numpy as np
from scipy.sparse import random_array

from gzkcore import (
    AdaptiveSketchFeatures,
    Gaussian,
    NystromFeatures,
    Polynomial,
    PolySketchFeatures,
)
from gzkcore._threads import limit_blas, limit_threads
from gzkcore.metrics import spectral_error

from .common import DTYPES, THREADS, data_generator, empty, gaussian, interleave, ratio

WIDTH, SEEDS = 256, 10


def clusters(n=1000, dim=5):
    """Return points in clusters of very different size."""
    rng = data_generator(0)
    sizes = [n * 3 // 4, n // 6, n // 24, *[8] * 5]
    return np.concatenate(
        [rng.standard_normal(dim) + 0.35 * rng.standard_normal((size, dim)) for size in sizes]
    )


def make(features, kernel, width, seed):
    """Return features by their name here."""
    if features == "adaptive":
        return AdaptiveSketchFeatures(kernel, width, random_state=seed)
    if features == "PolySketch":
        return PolySketchFeatures(kernel, width, random_state=seed)
    return NystromFeatures(kernel, width, landmarks=features, random_state=seed)


class Clusters:
    """The epsilon of the (epsilon, lambda) guarantee at 256 columns; and the time of fitting."""

    params = (
        ["Gaussian", "Polynomial"],
        ["adaptive", "rls", "rpcholesky", "uniform", "PolySketch"],
    )
    param_names = ("kernel", "features")
    timeout = 300

    def setup(self, kernel, features):
        self.X = clusters()
        self.kernel = {"Gaussian": Gaussian(0.5), "Polynomial": Polynomial(6)}[kernel]

    def time_fit(self, kernel, features):
        make(features, self.kernel, WIDTH, 0).fit(self.X)

    def peakmem_fit_transform(self, kernel, features):
        make(features, self.kernel, WIDTH, 0).fit_transform(self.X)

    def epsilons(self, features):
        K = self.kernel(self.X)
        lam = float(np.linalg.eigvalsh(K)[-20])
        return [
            spectral_error(K, make(features, self.kernel, WIDTH, seed).fit_transform(self.X), lam)
            for seed in range(SEEDS)
        ]

    def track_error(self, kernel, features):
        return float(np.mean(self.epsilons(features)))

    def track_spread_of_the_error(self, kernel, features):
        return float(np.std(self.epsilons(features)))


class AgainstNystrom:
    """How many times faster rows are transformed than from as many landmarks."""

    params = ([5, 20, 100], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")
    timeout = 300

    def setup(self, dim, dtype, threads):
        X = gaussian(8192, dim, dtype)
        calls = {}
        for name in ("adaptive", "uniform"):
            features = make(name, Gaussian(0.25 / dim), 512, 0).fit(X[:2000])
            out = empty((len(X), 512), dtype)
            calls[name] = lambda features=features, out=out: features.transform(X, out=out)
        self.calls = calls

    def track_times_faster(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), "uniform", "adaptive")[0]


class SparseRows:
    """Fit and transform of 20,000 CSR rows by the number of their entries."""

    params = ([2000, 20_000, 200_000], [20, 80])
    param_names = ("columns", "entries of a row")
    timeout = 300

    def setup(self, columns, entries):
        rng = data_generator(0)
        X = random_array((20_000, columns), density=entries / columns, rng=rng, format="csr")
        self.X = X
        self.features = AdaptiveSketchFeatures(Polynomial(2, gamma=0.1), 512, random_state=0)
        self.fitted = AdaptiveSketchFeatures(self.features.kernel, 512, random_state=0).fit(X)

    def time_fit(self, columns, entries):
        self.features.fit(self.X)

    def time_transform(self, columns, entries):
        self.fitted.transform(self.X)

    def peakmem_fit(self, columns, entries):
        self.features.fit(self.X)
