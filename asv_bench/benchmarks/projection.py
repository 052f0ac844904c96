"""SRHT and FJLT: cost by width, the gain over the whole transform, and against matrices."""

import functools
import math

import numpy as np
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from gzkcore import FastJLProjection, HadamardProjection, hadamard_transform
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.features.projection import _bits
from gzkcore.metrics import mean_distance_error

from .common import (
    DTYPES,
    THREADS,
    data_generator,
    empty,
    gaussian,
    interleave,
    kernel_module,
    must_agree,
    ratio,
)

ROWS = 512
MAPS = {"srht": HadamardProjection, "fjlt": FastJLProjection}


class WholeTransform:
    """The same as a projection, by the transform of whole padded rows, of which some are taken.

    In tiles of rows that stay in the cache, into a warm buffer.
    """

    def __init__(self, projection, dtype):
        (signs,), self.rows, k = projection.signs_, projection.rows_, projection.n_components
        n = 1 << (signs.size - 1).bit_length()
        self.signs = (signs / math.sqrt(k)).astype(dtype)
        self.padded, self.mixed = np.zeros((16, n), dtype), empty((16, n), dtype)

    def __call__(self, X, out):
        for i in range(0, len(X), 16):
            tile = X[i : i + 16]
            np.multiply(tile, self.signs, out=self.padded[: len(tile), : X.shape[1]])
            hadamard_transform(self.padded, out=self.mixed)
            np.take(self.mixed[: len(tile)], self.rows, axis=1, out=out[i : i + 16])


class Transform:
    """512 rows into a warm buffer."""

    params = (list(MAPS), [1000, 20_000], [64, 1000], DTYPES, THREADS)
    param_names = ("map", "D", "k", "dtype", "threads")

    def setup(self, name, dim, k, dtype, threads):
        self.X = gaussian(ROWS, dim, dtype)
        self.map = MAPS[name](k, random_state=0).fit(self.X[:2])
        self.out = empty((ROWS, k), dtype)

    def time_gzkcore(self, name, dim, k, dtype, threads):
        with limit_threads(threads):
            self.map.transform(self.X, out=self.out)

    def peakmem_gzkcore(self, name, dim, k, dtype, threads):
        self.map.transform(self.X, out=self.out)

    def track_error(self, name, dim, k, dtype, threads):
        X = self.X[:100].astype(np.float64)
        return mean_distance_error(X, self.map.transform(X)) / (2 * dim)


class AgainstWholeTransform:
    """Only the outputs that are kept, or all of them first; one thread, in one run."""

    params = ([1000, 20_000], [64, 1000, 4096], DTYPES)
    param_names = ("D", "k", "dtype")

    def setup(self, dim, k, dtype):
        if k > dim:
            raise NotImplementedError("more outputs than columns")
        X, out, other = gaussian(ROWS, dim, dtype), empty((ROWS, k), dtype), empty((ROWS, k), dtype)
        projection = HadamardProjection(k, random_state=0).fit(X[:2])
        whole = WholeTransform(projection, X.dtype)
        self.calls = {
            "gzkcore": functools.partial(projection.transform, X, out=out),
            "whole": functools.partial(whole, X, other),
        }
        for call in self.calls.values():
            call()
        must_agree("the whole transform", other, out, 1e-5 if dtype == "float32" else 1e-13)

    def track_times_faster(self, dim, k, dtype):
        with limit_threads(1):
            return ratio(interleave(self.calls, 5), "whole", "gzkcore")[0]

    track_times_faster.unit = "times"


class Pieces:
    """The kernel for every size of what is transformed together; the map picks `chosen`."""

    params = ([64, 256, 1000, 4096], list(range(6, 15)), ["float32"])
    param_names = ("k", "log2(K)", "dtype")

    def setup(self, k, bits, dtype):
        dim = 10_000
        rng = data_generator(0)
        self.X, self.out = gaussian(ROWS, dim, dtype), empty((ROWS, k), dtype)
        self.signs = rng.choice([-1, 1], (1, dim)).astype(dtype)
        self.rows = np.sort(rng.permutation(1 << 14)[:k]).astype(np.int32)
        self.kernel = kernel_module("projection", ISA).hadamard_projection

    def time_kernel(self, k, bits, dtype):
        self.kernel(self.X, self.signs, self.rows, 0, bits, 1.0, 0, self.out, False, 1)

    def track_chosen(self, k, bits, dtype):
        return _bits(1 << 14, k)


class AgainstScikitLearn:
    """Projections beside a matrix as scikit-learn has it: D = 10,000, float32, one thread."""

    theirs = {  # noqa: RUF012  asv takes what is here as it is
        "gaussian": GaussianRandomProjection,
        "achlioptas": functools.partial(SparseRandomProjection, density=1 / 3),
        "li": functools.partial(SparseRandomProjection, density=0.01),
    }
    params = (list(MAPS), list(theirs), [256])
    grid = (list(MAPS), list(theirs), [256, 1000])
    param_names = ("map", "matrix", "k")

    def setup(self, name, matrix, k):
        self.X = gaussian(ROWS, 10_000, "float32")
        self.maps = [
            make(k, random_state=0).fit(self.X[:2]) for make in (MAPS[name], self.theirs[matrix])
        ]

    def track_times_faster(self, name, matrix, k):
        ours, theirs = (functools.partial(each.transform, self.X) for each in self.maps)
        with limit_threads(1), limit_blas(1):
            return ratio(interleave({"ours": ours, "theirs": theirs}, 3), "theirs", "ours")[0]

    track_times_faster.unit = "times"

    def track_ratio_of_errors(self, name, matrix, k):
        X = self.X[:100].astype(np.float64)
        ours, theirs = (mean_distance_error(X, each.transform(X)) for each in self.maps)
        return ours / theirs
