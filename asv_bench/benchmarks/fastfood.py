"""Fastfood beside Fourier features, and beside scikit-learn-extra where it is installed."""

from functools import partial

from gzkcore import FastfoodFeatures, Gaussian, RandomFourierFeatures
from gzkcore._threads import limit_blas, limit_threads

from .common import DTYPES, THREADS, empty, frobenius_error, gaussian, interleave, ratio

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


class Against:
    """The same beside others, in one run on one thread, in double (as scikit-learn-extra works)."""

    params = (list(CASES), ["RandomFourierFeatures", "scikit-learn-extra"])
    param_names = ("case", "library")
    timeout = 120

    def setup(self, case, library):
        dim, width, n = CASES[case]
        X = self.X = gaussian(n, dim)
        self.kernel = Gaussian(0.5 / dim)
        ours = FastfoodFeatures(self.kernel, width, random_state=0).fit(X)
        if library == "scikit-learn-extra":
            try:
                from sklearn_extra.kernel_approximation import Fastfood
            except ImportError:
                raise NotImplementedError("scikit-learn-extra is not installed") from None
            theirs = Fastfood(sigma=dim**0.5, n_components=width // 2, random_state=0).fit(X)
            call = partial(theirs.transform, X)  # a cosine and a sine for each of its components
        else:
            theirs = RandomFourierFeatures(self.kernel, width, random_state=0).fit(X)
            other = empty((n, width), "float64")
            call = partial(theirs.transform, X, out=other)
        out = empty((n, width), "float64")
        self.calls = {"gzkcore": lambda: ours.transform(X, out=out), library: call}
        self.ours = ours

    def track_times_faster(self, case, library):
        with limit_threads(1), limit_blas(1):
            return ratio(interleave(self.calls), library, "gzkcore")[0]

    def track_error(self, case, library):
        return frobenius_error(self.kernel(self.X[:200]), self.ours.transform(self.X[:200]))
