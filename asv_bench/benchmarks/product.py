"""Products of columns: share of the memory bandwidth, against NumPy; the whole transformer."""

import numpy as np

from gzkcore import Gaussian, ProductFeatures
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_threads
from gzkcore.features.product import _multiply, _plan, product_columns

from .common import (
    DTYPES,
    THREADS,
    Limits,
    data_generator,
    empty,
    frobenius_error,
    largest_error,
    must_agree,
    percent_of,
    sphere,
)
from .competitors import PivotedNystroem

N = 64_800
PARTS = {"sphere x time": (200, 12), "nine columns": (20,) * 9}


class Outer:
    """The 1,024 strongest products of some parts' columns; calling it fills `out`."""

    def __init__(self, widths, n, dtype):
        energies = [0.9 ** np.arange(width) for width in widths]
        self.index = product_columns(energies, 1024)
        self.first = np.concatenate([[0], np.cumsum(widths)[:-1]])
        self.A = data_generator(0).standard_normal((n, sum(widths))).astype(dtype)
        self.out = empty((n, len(self.index)), dtype)
        self._plan = _plan(self.index, widths)

    def __call__(self):
        _multiply(self.A, *self._plan, self.out, self.out.nbytes > 1 << 24)  # as transform does


class NumpyProducts:
    """The same by gathering columns, batch by batch."""

    def __init__(self, outer, batch=64):
        self.outer, self.batch = outer, batch

    def __call__(self):
        outer = self.outer
        columns = (outer.index + outer.first).T
        for start in range(0, len(outer.A), self.batch):
            A, out = outer.A[start : start + self.batch], outer.out[start : start + self.batch]
            np.take(A, columns[0], axis=1, out=out, mode="clip")  # other modes need a buffer
            for chosen in columns[1:]:
                out *= np.take(A, chosen, axis=1, mode="clip")


class ProductsToMemory:
    """1,024 products for each of 64,800 rows, out of a warm buffer."""

    params = (list(PARTS), DTYPES, THREADS)
    param_names = ("parts", "dtype", "threads")

    def setup(self, parts, dtype, threads):
        self.outer = Outer(PARTS[parts], N, dtype)

    def time_gzkcore(self, parts, dtype, threads):
        with limit_threads(threads):
            self.outer()

    def track_percent_of_write_limit(self, parts, dtype, threads):
        limits, out = Limits(ISA), self.outer.out
        with limit_threads(threads):
            return percent_of(lambda: limits.write(out, threads), self.outer, out.nbytes)

    track_percent_of_write_limit.unit = "%"

    def peakmem_gzkcore(self, parts, dtype, threads):
        self.outer()

    def track_error(self, parts, dtype, threads):
        self.outer()
        few = slice(0, N, 99)
        columns = (self.outer.index + self.outer.first).T
        exact = np.prod([self.outer.A[few, c].astype(np.float64) for c in columns], axis=0)
        return largest_error(self.outer.out[few], exact)


class ProductsAgainst:
    """The same on 4,096 rows, one thread."""

    params = (list(PARTS), DTYPES, ["gzkcore", "numpy"])
    param_names = ("parts", "dtype", "library")

    def setup(self, parts, dtype, library):
        outer = Outer(PARTS[parts], 4096, dtype)
        outer()
        ours = outer.out.copy()
        self.call = outer if library == "gzkcore" else NumpyProducts(outer)
        self.call()
        self.error = must_agree(library, outer.out, ours, 1e-5 if dtype == "float32" else 1e-13)

    def time_fill(self, parts, dtype, library):
        with limit_threads(1):
            self.call()

    def track_error(self, parts, dtype, library):
        return self.error

    def peakmem_fill(self, parts, dtype, library):
        self.call()


class SphereAndTime:
    """Fit and transform, 16,384 places and months, 512 features of a product of Gaussians."""

    params = (["product", "adapted", "pivoted Nystroem"],)
    param_names = ("features",)

    def setup(self, features):
        rng = data_generator(1)
        angle = 2 * np.pi * rng.integers(0, 12, 16_384) / 12
        self.X = np.column_stack([sphere(16_384, 3), np.cos(angle), np.sin(angle)])
        parts = [([0, 1, 2], Gaussian(3.0)), ([3, 4], Gaussian(0.1))]
        product = ProductFeatures(parts, 512, random_state=0)
        self.features = {
            "product": product,
            "adapted": ProductFeatures(parts, 512, basis="adapted", random_state=0),
            "pivoted Nystroem": PivotedNystroem(product.kernel, 512),
        }[features].fit(self.X)

    def time_fit(self, features):
        self.features.fit(self.X)

    def time_transform(self, features):
        self.features.transform(self.X)

    def peakmem_fit(self, features):
        self.features.fit(self.X)

    def track_error(self, features):
        X = self.X[:1000]
        return frobenius_error(self.features.kernel_(X), self.features.transform(X))
