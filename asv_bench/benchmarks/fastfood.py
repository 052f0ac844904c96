"""Fastfood beside Fourier features, and beside scikit-learn-extra in a separate interpreter."""

import os
from functools import partial

from gzkcore import FastfoodFeatures, Gaussian, RandomFourierFeatures
from gzkcore._util.threads import limit_blas, limit_threads

from .common import DTYPES, THREADS, empty, frobenius_error, gaussian, interleave, ratio
from .competitors import OTHER, OTHER_PYTHON, OtherFastfood

CASES = {"d=64": (64, 1024, 8192), "d=784": (784, 4096, 1024), "d=8192": (8192, 16_384, 256)}


class Transform:
    """Columns, width and rows as the case says, into a warm buffer."""

    params = (list(CASES), DTYPES, THREADS)
    param_names = ("case", "dtype", "threads")

    def setup(self, case, dtype, threads):
        dim, width, n = CASES[case]
        self.X = gaussian(n, dim, dtype)
        self.features = FastfoodFeatures(Gaussian(0.5 / dim), width, random_state=0).fit(self.X)
        self.out = empty((n, width), dtype)

    def time_gzkcore(self, case, dtype, threads):
        with limit_threads(threads):
            self.features.transform(self.X, out=self.out)

    def peakmem_gzkcore(self, case, dtype, threads):
        self.features.transform(self.X, out=self.out)

    def track_error(self, case, dtype, threads):
        rows, features = self.X[:200], self.features
        return frobenius_error(features.kernel_(rows), features.transform(rows))


class Against:
    """FastfoodFeatures beside others; scikit-learn-extra's works in double on one thread."""

    params = (list(CASES), ["RandomFourierFeatures", OTHER], DTYPES, THREADS)
    param_names = ("case", "library", "dtype", "threads")

    def setup(self, case, library, dtype, threads):
        dim, width, n = CASES[case]
        X = self.X = gaussian(n, dim, dtype)
        self.kernel = Gaussian(0.5 / dim)
        ours = FastfoodFeatures(self.kernel, width, random_state=0).fit(X)
        if library == OTHER:
            if OTHER_PYTHON not in os.environ:
                raise NotImplementedError(f"${OTHER_PYTHON} names no interpreter that has it")
            call = self.theirs = OtherFastfood(os.environ[OTHER_PYTHON], n, dim, width)
        else:
            theirs = RandomFourierFeatures(self.kernel, width, random_state=0).fit(X)
            call = partial(theirs.transform, X)
        self.calls = {"gzkcore": lambda: ours.transform(X), library: call}
        self.ours = ours

    def teardown(self, case, library, dtype, threads):
        if hasattr(self, "theirs"):
            self.theirs.close()

    def track_times_faster(self, case, library, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), library, "gzkcore")[0]

    track_times_faster.unit = "times"

    def track_error(self, case, library, dtype, threads):
        return frobenius_error(self.kernel(self.X[:200]), self.ours.transform(self.X[:200]))
