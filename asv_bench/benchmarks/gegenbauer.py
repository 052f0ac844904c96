"""Gegenbauer features: the kernel against the machine, the sum against NumPy and torch, the
transformer against scikit-learn's RBFSampler.
"""

import itertools
import warnings

import numpy as np
from numpy.lib.stride_tricks import as_strided
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from gzkcore import Gaussian, GegenbauerFeatures, PublishedGegenbauerFeatures, TruncationWarning
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads

from .common import (
    DTYPES,
    ISAS,
    THREADS,
    Limits,
    SkipNotImplemented,
    ball,
    empty,
    frobenius_error,
    interleave,
    percent_of,
    ratio,
    sphere,
)
from .competitors import (
    LIBRARIES,
    MONOMIAL,
    RULES,
    STABLE,
    Batched,
    FeatureSum,
    best_batched,
    check,
)

# The two shapes that everything is measured at: points on the globe, and rows with norms of their
# own, which need coefficients of their own.
SHAPES = {
    "globe": {"n": 64_800, "dim": 3, "degree": 15},
    "protein": {"n": 45_730, "dim": 9, "degree": 8, "by_row": True},
}
WAYS = ("clenshaw", "horner", "halves")  # our ways to sum
AGAINST = {"clenshaw": STABLE, "horner": MONOMIAL}  # rules of others that lose as few digits


def one_row_output(n, m, dtype):
    """Return an output whose rows all lie in one place, so that it never leaves the L1 cache."""
    row = empty(m, dtype)
    return as_strided(row, (n, m), (0, row.itemsize))


class KernelInCache:
    """Arithmetic alone: 16,384 rows of 1,024 features, all written to one row in L1, one thread."""

    params = (list(SHAPES), DTYPES, WAYS, ISAS)
    param_names = ("shape", "dtype", "way", "isa")

    def setup(self, shape, dtype, way, isa):
        self.sum = FeatureSum(**SHAPES[shape] | {"n": 16_384}, dtype=dtype)
        out = one_row_output(*self.sum.shape, dtype)
        self.call = self.sum.ours(isa, out, 1, way=way, stream=False)

    def time_gzkcore(self, shape, dtype, way, isa):
        self.call()

    def track_percent_of_fma_peak(self, shape, dtype, way, isa):
        limits, flops = Limits(isa), self.sum.flops(way)
        return percent_of(lambda: limits.multiply_add(dtype, 1), self.call, flops)

    track_percent_of_fma_peak.unit = "%"

    def track_error_gzkcore(self, shape, dtype, way, isa):
        few = FeatureSum(**SHAPES[shape] | {"n": 256}, dtype=dtype)
        out = empty(few.shape, dtype)
        return check(few.ours(isa, out, 1, way=way), few, out)


class KernelToMemory:
    """All rows of 1,024 features, past the cache into a warm buffer."""

    params = (list(SHAPES), DTYPES, WAYS, THREADS)
    param_names = ("shape", "dtype", "way", "threads")

    def setup(self, shape, dtype, way, threads):
        self.sum = FeatureSum(**SHAPES[shape], dtype=dtype)
        self.out = empty(self.sum.shape, dtype)
        self.call = self.sum.ours(ISA, self.out, threads, way=way)

    def time_gzkcore(self, shape, dtype, way, threads):
        self.call()

    def track_percent_of_write_limit(self, shape, dtype, way, threads):
        limits = Limits(ISA)
        return percent_of(lambda: limits.write(self.out, threads), self.call, self.out.nbytes)

    track_percent_of_write_limit.unit = "%"

    def track_error_gzkcore(self, shape, dtype, way, threads):
        return check(self.call, self.sum, self.out)

    def peakmem_gzkcore(self, shape, dtype, way, threads):
        self.call()


class SumAgainst:
    """The same features by the best batched rule of a library, one thread; see competitors.py."""

    params = (list(SHAPES), DTYPES, list(AGAINST), list(RULES))
    param_names = ("shape", "dtype", "way", "library")

    def setup_cache(self):
        """Choose the best rule and batch for each case, once."""
        chosen = {}
        for case in itertools.product(*self.params):
            shape, dtype, way, library = case
            if library in LIBRARIES or (library == "torch.compile" and "torch" in LIBRARIES):
                problem = FeatureSum(**SHAPES[shape] | {"n": 1024}, dtype=dtype)
                out = empty(problem.shape, dtype)
                with threadpool_limits(1, user_api="blas"):
                    chosen[case] = best_batched(AGAINST[way], problem, out, 1, [library]).chosen
        return chosen

    setup_cache.timeout = 3600

    def setup(self, chosen, *case):
        if case not in chosen:
            raise NotImplementedError("torch is not installed")
        shape, dtype, way, _ = case
        self.sum = FeatureSum(**SHAPES[shape] | {"n": 8192}, dtype=dtype)
        self.out = empty(self.sum.shape, dtype)
        self.ours = self.sum.ours(ISA, self.out, 1, way=way)
        library, rule, batch = chosen[case]
        self.theirs = Batched(library, rule, self.sum, self.out, batch, 1)
        check(self.ours, self.sum, self.out)
        check(self.theirs, self.sum, self.out)

    def time_gzkcore(self, *_):
        self.ours()

    def time_theirs(self, *_):
        with threadpool_limits(1, user_api="blas"):
            self.theirs()

    def track_times_faster(self, *_):
        with threadpool_limits(1, user_api="blas"):
            times = interleave({"ours": self.ours, "theirs": self.theirs})
        return ratio(times, "theirs", "ours")[0]

    track_times_faster.unit = "times"

    def track_error_gzkcore(self, *_):
        return check(self.ours, self.sum, self.out)

    def track_error_theirs(self, *_):
        return check(self.theirs, self.sum, self.out)


MAPS = {
    "gegenbauer": lambda: GegenbauerFeatures(Gaussian(0.5), 1024, random_state=0),
    "published": lambda: PublishedGegenbauerFeatures(
        Gaussian(0.5), 1024, degree=15, order=4, random_state=0
    ),
    "RBFSampler": lambda: RBFSampler(gamma=0.5, n_components=1024, random_state=0),
}
DATA = {
    "sphere d=3": lambda n, dtype: 2 * sphere(n, 3, dtype),
    "ball d=3": lambda n, dtype: 4 * ball(n, 3, dtype),
    "sphere d=9": lambda n, dtype: 2 * sphere(n, 9, dtype),
}


class Transform:
    """The whole transformer at 1,024 features, what users call: time, memory and error."""

    params = (list(DATA), DTYPES, list(MAPS), THREADS)
    param_names = ("data", "dtype", "map", "threads")

    def setup(self, data, dtype, name, threads):
        self.X = DATA[data](8192, np.dtype(dtype)).astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)
            self.map = MAPS[name]().fit(self.X)
        self.out = self.map.transform(self.X)

    def time_fit(self, data, dtype, name, threads):
        with limit_threads(threads), threadpool_limits(threads, user_api="blas"):
            MAPS[name]().fit(self.X)

    def time_transform_new_array(self, data, dtype, name, threads):
        with limit_threads(threads), threadpool_limits(threads, user_api="blas"):
            self.map.transform(self.X)

    def time_transform_out(self, data, dtype, name, threads):
        if name == "RBFSampler":
            raise SkipNotImplemented("it has no out=")
        with limit_threads(threads):
            self.map.transform(self.X, out=self.out)

    def peakmem_transform_new_array(self, data, dtype, name, threads):
        self.map.transform(self.X)

    def track_error(self, data, dtype, name, threads):
        few = self.X[:300]
        return frobenius_error(Gaussian(0.5)(few), self.map.transform(few))
