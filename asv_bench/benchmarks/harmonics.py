"""Explicit spherical harmonics: share of the memory bandwidth, and against NumPy and SciPy."""

import numpy as np
from scipy.special import eval_gegenbauer
from threadpoolctl import threadpool_limits

from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads
from gzkcore.sphere.harmonics import HarmonicTree
from gzkcore.sphere.special import alpha

from .common import DTYPES, THREADS, Limits, empty, must_agree, percent_of, sphere
from .competitors import NumpyHarmonics, ScipyHarmonics

COMPETITORS = {"numpy": NumpyHarmonics, "scipy": ScipyHarmonics}


class Columns:
    """The first `width` harmonics in R^d, each times the radial factor of its degree, on n rows.

    Calling it fills `out`; threads are those of `limit_threads`.
    """

    def __init__(self, n, dim, width, dtype, offset=0):
        counts = []
        while sum(counts) < width:
            counts.append(min(alpha(len(counts), dim), width - sum(counts)))
        self.counts, self.dim = counts, dim
        self.X = sphere(n, dim, dtype)
        self.out = empty((n, width), dtype, offset)
        self.degree = len(counts) - 1
        self._tree = HarmonicTree(dim, counts)
        self._nodes = np.concatenate([self._tree.nodes(k, c) for k, c in enumerate(counts)])
        self._ring = np.repeat(np.arange(len(counts)), counts).astype(np.intp)
        self._radial = (0.9 ** np.arange(len(counts)))[None, :].astype(dtype)
        self.radial = np.repeat(self._radial, counts, axis=1)

    def __call__(self):
        stream = self.out.nbytes > 1 << 24  # as transform does
        self._tree.features(self.X, self._radial, self._nodes, self._ring, self.out, stream=stream)

    def error(self, n=200):
        """Largest violation of sum_j Y_lj(x) Y_lj(y) = alpha P_l(<x, y>) by `out`, over alpha."""
        Y = self.out[:n].astype(np.float64) / self.radial
        t = np.clip(self.X[:n].astype(np.float64) @ self.X[:n].T.astype(np.float64), -1, 1)
        nu, worst, first = self.dim / 2 - 1, 0.0, 0
        for level, count in enumerate(self.counts):
            size = alpha(level, self.dim)
            if count == size:
                P = eval_gegenbauer(level, nu, t) / eval_gegenbauer(level, nu, 1.0)
                part = Y[:, first : first + count]
                worst = max(worst, float(np.abs(part @ part.T / size - P).max()))
            first += count
        return worst


class HarmonicsToMemory:
    """1,024 columns for each of 64,800 rows, out of a warm buffer."""

    params = ([3, 5], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")

    def setup(self, dim, dtype, threads):
        self.columns = Columns(64_800, dim, 1024, dtype)

    def time_gzkcore(self, dim, dtype, threads):
        with limit_threads(threads):
            self.columns()

    def track_percent_of_write_limit(self, dim, dtype, threads):
        limits, out = Limits(ISA), self.columns.out
        with limit_threads(threads):
            return percent_of(lambda: limits.write(out, threads), self.columns, out.nbytes)

    track_percent_of_write_limit.unit = "%"

    def track_error_gzkcore(self, dim, dtype, threads):
        self.columns()
        return self.columns.error()

    def peakmem_gzkcore(self, dim, dtype, threads):
        self.columns()


class HarmonicsAgainst:
    """All harmonics of degree 0..q on 4,096 rows, one thread, all in float32 or float64."""

    params = ([(3, 31), (5, 8)], DTYPES, ["gzkcore", *COMPETITORS])
    param_names = ("dim_degree", "dtype", "library")

    def setup(self, dim_degree, dtype, library):
        dim, degree = dim_degree
        width = sum(alpha(level, dim) for level in range(degree + 1))
        self.columns = self.call = Columns(4096, dim, width, dtype)
        self.columns()
        if library != "gzkcore":
            ours = self.columns.out.copy()
            c = self.columns
            self.call = COMPETITORS[library](c.X, degree, c.radial, c.out)
            c.out[:] = np.nan
            self.call()
            must_agree(library, c.out, ours, 1e-4 if dtype == "float32" else 1e-11)

    def time_fill(self, dim_degree, dtype, library):
        with limit_threads(1), threadpool_limits(1, user_api="blas"):
            self.call()

    def track_error(self, dim_degree, dtype, library):
        return self.columns.error()

    def peakmem_fill(self, dim_degree, dtype, library):
        self.call()
