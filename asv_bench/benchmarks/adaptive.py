"""Adaptive sketch beside landmarks and a sketch independent of the data: error, time, memory."""

import numpy as np
from scipy.sparse import random_array

from gzkcore import (
    AdaptiveSketchFeatures,
    Gaussian,
    NystromFeatures,
    Polynomial,
    PolySketchFeatures,
)
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.metrics import spectral_error

from .common import (
    DTYPES,
    THREADS,
    data_generator,
    empty,
    frobenius_error,
    gaussian,
    interleave,
    ratio,
)

WIDTH, SEEDS = 128, 5
KERNELS = {"Gaussian": Gaussian(0.5), "Polynomial": Polynomial(6)}


def clusters(n=500, dim=5):
    """Return points in clusters of very different size."""
    rng = data_generator(0)
    sizes = [n * 3 // 4, n // 6, n // 24, *[8] * 5]
    return np.concatenate(
        [rng.standard_normal(dim) + 0.35 * rng.standard_normal((size, dim)) for size in sizes]
    )


def make(features, kernel, width, seed):
    """Return the features that a name stands for here."""
    if features == "adaptive":
        return AdaptiveSketchFeatures(kernel, width, random_state=seed)
    if features == "PolySketch":
        return PolySketchFeatures(kernel, width, random_state=seed)
    return NystromFeatures(kernel, width, landmarks=features, random_state=seed)


class Clusters:
    """The epsilon of the (epsilon, lambda) guarantee at 128 columns; and the time of fitting."""

    params = (list(KERNELS), ["adaptive", "rls", "rpcholesky", "uniform", "PolySketch"])
    param_names = ("kernel", "features")

    def setup_cache(self):
        """Return the epsilons of all seeds, for each case."""
        X, cached = clusters(), {}
        with limit_blas(1):
            for name, kernel in KERNELS.items():
                K = kernel(X)
                lam = float(np.linalg.eigvalsh(K)[-20])
                for features in self.params[1]:
                    maps = (make(features, kernel, WIDTH, seed) for seed in range(SEEDS))
                    errors = [spectral_error(K, each.fit_transform(X), lam) for each in maps]
                    cached[name, features] = errors
        return cached

    def setup(self, cached, kernel, features):
        self.X = clusters()

    def time_fit(self, cached, kernel, features):
        with limit_blas(1):
            make(features, KERNELS[kernel], WIDTH, 0).fit(self.X)

    def peakmem_fit_transform(self, cached, kernel, features):
        make(features, KERNELS[kernel], WIDTH, 0).fit_transform(self.X)

    def track_error(self, cached, kernel, features):
        return float(np.mean(cached[kernel, features]))

    def track_spread_of_the_error(self, cached, kernel, features):
        return float(np.std(cached[kernel, features]))


class AgainstNystrom:
    """Rows transformed to 256 columns, and how many times faster than from as many landmarks."""

    params = ([5, 100], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")

    def setup(self, dim, dtype, threads):
        X = self.X = gaussian(8192, dim, dtype)
        self.calls, self.maps = {}, {}
        for name in ("adaptive", "uniform"):
            features = self.maps[name] = make(name, Gaussian(0.25 / dim), 256, 0).fit(X[:1000])
            out = empty((len(X), 256), dtype)
            self.calls[name] = lambda features=features, out=out: features.transform(X, out=out)

    def time_gzkcore(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            self.calls["adaptive"]()

    def time_landmarks(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            self.calls["uniform"]()

    def track_times_faster(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), "uniform", "adaptive")[0]

    track_times_faster.unit = "times"

    def error(self, name):
        rows, features = self.X[-1000:], self.maps[name]  # the fit did not see these rows
        return frobenius_error(features.kernel_(rows), features.transform(rows))

    def track_error_gzkcore(self, dim, dtype, threads):
        return self.error("adaptive")

    def track_error_landmarks(self, dim, dtype, threads):
        return self.error("uniform")


class SparseRows:
    """Fit and transform of 5,000 CSR rows by the number of their entries."""

    params = ([2000, 20_000], [20, 80])
    param_names = ("columns", "entries of a row")

    def setup(self, columns, entries):
        rng = data_generator(0)
        X = random_array((5000, columns), density=entries / columns, random_state=rng, format="csr")
        self.X = X
        self.features = AdaptiveSketchFeatures(Polynomial(2, gamma=0.1), 512, random_state=0)
        self.fitted = AdaptiveSketchFeatures(self.features.kernel, 512, random_state=0).fit(X)

    def time_fit(self, columns, entries):
        self.features.fit(self.X)

    def time_transform(self, columns, entries):
        self.fitted.transform(self.X)

    def peakmem_fit(self, columns, entries):
        self.features.fit(self.X)

    def track_error(self, columns, entries):
        rows = self.X[:100]  # dense for the kernel
        return frobenius_error(self.fitted.kernel_(rows), self.fitted.transform(rows))
