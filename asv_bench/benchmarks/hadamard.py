"""The Walsh-Hadamard transform: rows of many lengths, against NumPy and the matrix itself."""

import numpy as np
from scipy.linalg import hadamard

from gzkcore import hadamard_transform
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads

from .common import (
    DTYPES,
    THREADS,
    Limits,
    data_generator,
    empty,
    largest_error,
    must_agree,
    percent_of,
)


def numpy_transform(X, out):
    """The same by halving, every stage one operation of NumPy on all rows."""
    out[:] = X
    h = 1
    while h < X.shape[1]:
        pairs = out.reshape(len(X), -1, 2, h)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        a += b
        b *= -2
        b += a
        h *= 2


class Transform:
    """Rows of 2^p numbers, 2^22 in all, into a warm buffer; reading and writing beside it."""

    params = ([6, 10, 14, 18, 22], DTYPES, THREADS)
    param_names = ("log2(n)", "dtype", "threads")

    def setup(self, p, dtype, threads):
        self.X = data_generator(0).standard_normal((2 ** (22 - p), 2**p)).astype(dtype)
        self.out = empty(self.X.shape, dtype)

    def time_gzkcore(self, p, dtype, threads):
        with limit_threads(threads):
            hadamard_transform(self.X, out=self.out)

    def track_percent_of_copy_limit(self, p, dtype, threads):
        limits, X, out = Limits(ISA), self.X, self.out
        with limit_threads(threads):
            return percent_of(
                lambda: limits.read(X, threads) + limits.write(out, threads),
                lambda: hadamard_transform(X, out=out),
                X.nbytes + out.nbytes,
            )

    track_percent_of_copy_limit.unit = "%"

    def peakmem_gzkcore(self, p, dtype, threads):
        hadamard_transform(self.X, out=self.out)

    def track_error(self, p, dtype, threads):
        """Return the error of transforming twice, which is n times the identity."""
        twice = hadamard_transform(hadamard_transform(self.X))
        return largest_error(twice / 2**p, self.X)


class TransformAgainst:
    """The same on one thread by others: NumPy by halving, and a product with the matrix."""

    params = ([6, 10, 14], DTYPES, ["gzkcore", "numpy", "matrix"])
    param_names = ("log2(n)", "dtype", "library")

    def setup(self, p, dtype, library):
        if library == "matrix" and p > 12:
            raise NotImplementedError("the matrix would fill the memory")
        X = self.X = data_generator(0).standard_normal((2 ** (20 - p), 2**p)).astype(dtype)
        out = self.out = empty(X.shape, dtype)
        if library == "gzkcore":
            self.call = lambda: hadamard_transform(X, out=out)
        elif library == "numpy":
            self.call = lambda: numpy_transform(X, out)
        else:
            H = hadamard(2**p, dtype=dtype)
            self.call = lambda: np.matmul(X, H, out=out)
        self.call()
        expected = hadamard_transform(X.astype(np.float64))
        self.error = must_agree(library, out, expected, 1e-5 if dtype == "float32" else 1e-13)

    def time_transform(self, p, dtype, library):
        with limit_threads(1):
            self.call()

    def peakmem_transform(self, p, dtype, library):
        self.call()

    def track_error(self, p, dtype, library):
        return self.error
