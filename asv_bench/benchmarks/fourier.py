"""Random Fourier features: cosines and sines, and the maps beside scikit-learn's RBFSampler."""

from functools import partial

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from gzkcore import Gaussian, RandomFourierFeatures
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_blas, limit_threads

from .common import (
    DTYPES,
    ISAS,
    THREADS,
    Limits,
    data_generator,
    empty,
    frobenius_error,
    gaussian,
    interleave,
    kernel_module,
    largest_error,
    percent_of,
    ratio,
)

N, WIDTH = 16_384, 1024


class CosinesAndSines:
    """2,048 angles in cache, again and again, on one thread; and NumPy's."""

    params = (DTYPES, [*ISAS, "numpy"])
    param_names = ("dtype", "isa")

    def setup(self, dtype, isa):
        h = self.h = data_generator(0).uniform(-9, 9, (64, 2048)).astype(dtype)
        cosines, sines = empty(h.shape, dtype), empty(h.shape, dtype)
        self.outs = cosines, sines
        if isa == "numpy":
            angles = empty((1, 2048), dtype)

            def call():
                for row in range(len(h)):
                    np.multiply(h[row], np.pi, out=angles[0])
                    np.cos(angles[0], out=cosines[row])
                    np.sin(angles[0], out=sines[row])

            self.call = call
        else:
            rows = kernel_module("fourier", isa).cos_sin_rows
            self.call = lambda: rows(h, 1.0, cosines, sines, False)
        self.call()

    def time_fill(self, dtype, isa):
        self.call()

    def track_error(self, dtype, isa):
        exact = self.h.astype(np.longdouble) * np.longdouble(
            "3.14159265358979323846264338327950288"
        )
        return max(
            largest_error(self.outs[0], np.cos(exact)), largest_error(self.outs[1], np.sin(exact))
        )


class Transform:
    """1,024 columns for 16,384 rows into a warm buffer."""

    params = ([3, 32, 784], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")

    def setup(self, dim, dtype, threads):
        self.X = gaussian(N, dim, dtype)
        self.features = RandomFourierFeatures(Gaussian(0.5 / dim), WIDTH, random_state=0).fit(
            self.X
        )
        self.out = empty((N, WIDTH), dtype)

    def time_gzkcore(self, dim, dtype, threads):
        with limit_threads(threads):
            self.features.transform(self.X, out=self.out)

    def track_percent_of_write_limit(self, dim, dtype, threads):
        limits, out = Limits(ISA), self.out
        with limit_threads(threads), limit_blas(threads):
            call = partial(self.features.transform, self.X, out=out)
            return percent_of(lambda: limits.write(out, threads), call, out.nbytes)

    track_percent_of_write_limit.unit = "%"

    def peakmem_gzkcore(self, dim, dtype, threads):
        self.features.transform(self.X, out=self.out)

    def track_error(self, dim, dtype, threads):
        rows, features = self.X[:300], self.features
        return frobenius_error(features.kernel_(rows), features.transform(rows))


class AgainstRBFSampler:
    """Random Fourier features beside scikit-learn's RBFSampler: 1,024 columns, float32."""

    params = ([9, 64, 784], THREADS)
    param_names = ("dim", "threads")

    def setup(self, dim, threads):
        X = self.X = gaussian(N, dim, "float32")
        self.kernel = Gaussian(0.5 / dim)
        ours = RandomFourierFeatures(self.kernel, WIDTH, random_state=0).fit(X)
        theirs = RBFSampler(gamma=0.5 / dim, n_components=WIDTH, random_state=0).fit(X)
        self.calls = {
            "gzkcore": lambda: ours.transform(X),
            "scikit-learn": lambda: theirs.transform(X),
        }
        self.maps = ours, theirs

    def time_gzkcore(self, dim, threads):
        with limit_threads(threads), limit_blas(threads):
            self.calls["gzkcore"]()

    def time_sklearn(self, dim, threads):
        with limit_threads(threads), limit_blas(threads):
            self.calls["scikit-learn"]()

    def track_times_faster(self, dim, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), "scikit-learn", "gzkcore")[0]

    track_times_faster.unit = "times"

    def track_error_gzkcore(self, dim, threads):
        return frobenius_error(self.kernel(self.X[:1000]), self.maps[0].transform(self.X[:1000]))

    def track_error_sklearn(self, dim, threads):
        return frobenius_error(self.kernel(self.X[:1000]), self.maps[1].transform(self.X[:1000]))


class Frequencies:
    """Error at 1,024 columns by how the frequencies are spread."""

    params = ([3, 9, 64], ["iid", "orthogonal", "qmc"])
    param_names = ("dim", "frequencies")

    def setup(self, dim, frequencies):
        self.X = gaussian(1000, dim)
        self.features = RandomFourierFeatures(
            Gaussian(0.5 / dim), WIDTH, frequencies=frequencies, random_state=0
        )

    def time_fit(self, dim, frequencies):
        self.features.fit(self.X)

    def track_error(self, dim, frequencies):
        Z = self.features.fit_transform(self.X)
        return frobenius_error(self.features.kernel_(self.X), Z)
