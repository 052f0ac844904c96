"""Moments of features, tile by tile, against the limit: BLAS on features in memory."""

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from sklearn.kernel_approximation import RBFSampler
from threadpoolctl import threadpool_limits

from gzkcore import Gaussian, GegenbauerFeatures
from gzkcore._util.threads import limit_threads
from gzkcore.passes.gram import GramAccumulator

from .common import DTYPES, THREADS, interleave, largest_error, ratio, sphere

FEATURES = {
    "gegenbauer": lambda p: GegenbauerFeatures(
        Gaussian(0.5), p, basis="random", tol=1e-6, random_state=0
    ),
    "harmonic": lambda p: GegenbauerFeatures(Gaussian(0.5), p, basis="harmonic"),
    "RBFSampler": lambda p: RBFSampler(gamma=0.5, n_components=p, random_state=0),
}


def syrk(Z):
    """Return a call that does one Z^T Z by BLAS, into a warm matrix."""
    routine = ssyrk if Z.dtype == np.float32 else dsyrk
    gram = np.zeros((Z.shape[1], Z.shape[1]), Z.dtype, order="F")
    return lambda: routine(1.0, Z.T, beta=1.0, c=gram, overwrite_c=1)


class Update:
    """Z^T Z and Z^T y of all rows, features included; syrk alone of the same shape beside it."""

    params = (list(FEATURES), [256, 1024], DTYPES, THREADS)
    param_names = ("features", "n_features", "dtype", "threads")
    n = 8192

    def setup(self, features, n_features, dtype, threads):
        self.X = sphere(self.n, 3, dtype)
        self.y = np.sin(3 * self.X[:, 0])
        self.features = FEATURES[features](n_features).fit(self.X)
        self.limit = syrk(self.features.transform(self.X))

    def ours(self, threads):
        with limit_threads(threads):
            return GramAccumulator(self.features).update(self.X, self.y)

    def time_gzkcore(self, features, n_features, dtype, threads):
        self.ours(threads)

    def time_syrk(self, features, n_features, dtype, threads):
        with threadpool_limits(threads, user_api="blas"):
            self.limit()

    def peakmem_gzkcore(self, features, n_features, dtype, threads):
        self.ours(threads)

    def track_times_of_syrk(self, features, n_features, dtype, threads):
        with threadpool_limits(threads, user_api="blas"):
            times = interleave({"ours": lambda: self.ours(threads), "syrk": self.limit}, 3)
        return ratio(times, "ours", "syrk")[0]

    track_times_of_syrk.unit = "times"

    def track_error(self, features, n_features, dtype, threads):
        Z = self.features.transform(self.X).astype(np.float64)
        return largest_error(self.ours(threads).finalize().gram, Z.T @ Z)


class Folds:
    """Sums of each of some folds in one pass, beside one sum: 512 features, all threads."""

    params = ([5, 20], DTYPES)
    param_names = ("folds", "dtype")
    n = 8192

    def setup(self, folds, dtype):
        self.X = sphere(self.n, 3, dtype)
        self.features = FEATURES["harmonic"](512).fit(self.X)

    def sums(self, folds):
        return GramAccumulator(self.features, folds).update(self.X)

    def time_gzkcore(self, folds, dtype):
        self.sums(folds)

    def time_one_fold(self, folds, dtype):
        self.sums(1)

    def peakmem_gzkcore(self, folds, dtype):
        self.sums(folds)

    def track_times_of_one_fold(self, folds, dtype):
        calls = {"folds": lambda: self.sums(folds), "one": lambda: self.sums(1)}
        return ratio(interleave(calls), "folds", "one")[0]

    track_times_of_one_fold.unit = "times"

    def track_error(self, folds, dtype):
        Z = self.features.transform(self.X[::folds]).astype(np.float64)  # rows of fold 0
        return largest_error(self.sums(folds).finalize(0).gram, Z.T @ Z)
