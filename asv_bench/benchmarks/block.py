"""Block projections and features: share of the memory bandwidth, and matrix products beside."""

import math

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from gzkcore import BlockFourierFeatures, BlockProjection, Gaussian, block_report
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads
from gzkcore.features.base import STREAM_BYTES
from gzkcore.features.block import project
from gzkcore.metrics import mean_distance_error, mean_kernel_error

from .common import (
    DTYPES,
    THREADS,
    Limits,
    data_generator,
    empty,
    gaussian,
    kernel_module,
    largest_error,
    must_agree,
    percent_of,
)

# From the paper's Table 2 columns and blocks; rows of half a gigabyte don't stay in a cache.
WIDTHS = (17_500, 440_000)
BLOCKS = (1000, 5120)
BYTES = 1 << 29
ARRANGEMENTS = ("stratified", "permutation")


class Projection:
    """Rows of many numbers and their projection into a warm buffer; calling it fills `out`."""

    def __init__(self, dim, n_blocks, dtype="float32", arrangement="stratified", total=BYTES):
        n = max(32, total // (dim * np.dtype(dtype).itemsize) // 32 * 32)
        self.X = empty((n, dim), dtype)
        tile = data_generator(0).standard_normal((16, dim)).astype(dtype)
        for start in range(0, n, 16):
            self.X[start : start + 16] = tile
        self.map = BlockProjection(n_blocks, arrangement=arrangement, random_state=0).fit(tile)
        self.weights = self.map.weights_.astype(dtype)
        self.out = empty((n, n_blocks), dtype)
        self.kernel = kernel_module("block", ISA).block_projection

    def __call__(self, threads):
        stream = self.out.nbytes > STREAM_BYTES
        self.kernel(self.X, self.map.buckets_, self.weights, self.out, True, stream, threads)


class ProjectionFromMemory:
    """Half a gigabyte of rows, the kernel alone, beside reading them in four streams a thread."""

    params = (list(WIDTHS), list(BLOCKS), list(ARRANGEMENTS), THREADS)
    param_names = ("D", "k", "arrangement", "threads")

    def setup(self, dim, k, arrangement, threads):
        self.case = Projection(dim, k, "float32", arrangement)

    def time_gzkcore(self, dim, k, arrangement, threads):
        self.case(threads)

    def peakmem_gzkcore(self, dim, k, arrangement, threads):
        self.case(threads)

    def track_error(self, dim, k, arrangement, threads):
        self.case(threads)
        few = slice(0, len(self.case.X), 9)
        exact = self.case.X[few].astype(np.float64) @ self.case.map.components_.T
        return largest_error(self.case.out[few], exact)

    def track_percent_of_read_limit(self, dim, k, arrangement, threads):
        limits, X = Limits(ISA), self.case.X
        return percent_of(lambda: limits.read(X, threads), lambda: self.case(threads), X.nbytes)

    track_percent_of_read_limit.unit = "%"


class ProjectionAgainst:
    """transform of 2,048 rows of 10,000 numbers, and what it does to their distances (Eq 8)."""

    params = (["stratified", "permutation", "sklearn sparse", "sklearn gaussian"],)
    param_names = ("projection",)
    k = 1000

    def setup(self, projection):
        k, self.X = self.k, gaussian(2048, 10_000, "float32")
        self.map = {
            "stratified": lambda: BlockProjection(k, random_state=0),
            "permutation": lambda: BlockProjection(
                k, values="gaussian", arrangement="permutation", random_state=0
            ),
            "sklearn sparse": lambda: SparseRandomProjection(k, random_state=0),
            "sklearn gaussian": lambda: GaussianRandomProjection(k, random_state=0),
        }[projection]().fit(self.X[:2])

    def time_transform(self, projection):
        self.map.transform(self.X)

    def peakmem_transform(self, projection):
        self.map.transform(self.X)

    def track_error(self, projection):
        X = self.X[:200]
        squared = euclidean_distances(X, squared=True)
        error = mean_distance_error(X, self.map.transform(X))
        return float(error / squared[np.triu_indices(200, 1)].mean())


def sparse_rows(n, dim, density, dtype):
    """Return CSR rows with one entry in each stretch of 1 / density columns."""
    rng, step = data_generator(0), round(1 / density)
    columns = np.arange(0, dim, step) + rng.integers(step, size=(n, dim // step))
    ends = columns.shape[1] * np.arange(n + 1)
    values = rng.random(columns.size, dtype=dtype)
    return sparse.csr_array((values, columns.ravel().astype(np.int32), ends), shape=(n, dim))


class SparseRows:
    """CSR rows, D = 100,000: against SciPy's product with the same matrix."""

    n = 500

    params = ([0.001, 0.1], DTYPES, ["gzkcore", "scipy"], THREADS)
    param_names = ("density", "dtype", "library", "threads")

    def setup(self, density, dtype, library, threads):
        self.X = sparse_rows(self.n, 100_000, density, dtype)
        self.map = BlockProjection(1000, random_state=0).fit(self.X)
        self.S = self.map.components_.T.tocsr().astype(dtype)
        self.out = empty((self.n, 1000), dtype)
        self.call = {
            "gzkcore": lambda: project(self.X, self.map.buckets_, self.map.weights_, self.out),
            "scipy": lambda: self.X @ self.S,
        }[library]
        ours = self.map.transform(self.X)
        self.error = must_agree("scipy", (self.X @ self.S).toarray(), ours, 1e-5)

    def time_project(self, density, dtype, library, threads):
        with limit_threads(threads):
            self.call()

    def peakmem_project(self, density, dtype, library, threads):
        self.call()

    def track_error(self, density, dtype, library, threads):
        return self.error


class FourierFeatures:
    """Fit and transform of 256 rows, against random features of whole rows."""

    params = ([5_000, 50_000], [1000, 4000], ["block", "mixed", "RBFSampler"])
    param_names = ("D", "n_components", "features")

    def setup(self, dim, width, features):
        if features == "RBFSampler" and dim * width > 10**8:
            raise NotImplementedError("its matrix would fill the memory")
        self.X = gaussian(256, dim, "float32")
        kernel = Gaussian(0.5 / dim)
        self.map = {
            "block": BlockFourierFeatures(kernel, width, random_state=0),
            "mixed": BlockFourierFeatures(kernel, width, mix="hadamard", random_state=0),
            "RBFSampler": RBFSampler(gamma=0.5 / dim, n_components=width, random_state=0),
        }[features].fit(self.X)
        self.K = kernel(self.X)

    def time_fit(self, dim, width, features):
        self.map.fit(self.X)

    def time_transform(self, dim, width, features):
        self.map.transform(self.X)

    def peakmem_transform(self, dim, width, features):
        self.map.transform(self.X)

    def track_error(self, dim, width, features):
        return mean_kernel_error(self.K, self.map.transform(self.X))


class Report:
    """What `block_report` expects, beside what is there: bias of 8,192 features, per cent of it."""

    params = ([16, 32, 128],)
    param_names = ("block_size",)

    def setup(self, size):
        self.X, self.kernel = gaussian(200, 4096), Gaussian(0.5 / 4096)

    def time_report(self, size):
        block_report(self.X, self.kernel, block_size=size)

    def peakmem_report(self, size):
        block_report(self.X, self.kernel, block_size=size)

    def track_error(self, size):
        report = block_report(self.X, self.kernel, block_size=size)
        features = BlockFourierFeatures(self.kernel, 8192, block_size=size, random_state=0)
        Z = features.fit_transform(self.X)
        pairs = np.triu_indices(len(Z), 1)
        bias = float((Z @ Z.T - self.kernel(self.X))[pairs].mean())
        return abs(bias - report.bias) / math.hypot(report.bias, 1e-12)
