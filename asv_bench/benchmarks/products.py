"""Products of kernel matrices with vectors, against NumPy and BLAS; matrices; gradients."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from gzkcore import (
    ArcCosine,
    Gaussian,
    KernelOperator,
    Laplacian,
    Matern,
    ProductMatern,
    RationalQuadratic,
    kernel_matrix,
)
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.threads import limit_blas, limit_threads

from .common import (
    DTYPES,
    THREADS,
    Limits,
    SkipNotImplemented,
    gaussian,
    interleave,
    largest_error,
    must_agree,
    percent_of,
    ratio,
)

KERNELS = {
    "gaussian": lambda dim: Gaussian(0.5 / dim),
    "matern 3/2": lambda dim: Matern(1.5, dim**0.5),
    "matern 5/2": lambda dim: Matern(2.5, dim**0.5),
    "laplacian": lambda dim: Laplacian(1 / dim),
    "product of matern 3/2": lambda dim: ProductMatern(1.5, float(dim)),
    "rational quadratic": lambda dim: RationalQuadratic(1.0, dim**0.5),
    "arc-cosine": lambda dim: ArcCosine(1),
}

# What the FMA ports do for a power of 2 in float32: 6 of a polynomial, its argument, the scaling.
POWER = 9


def by_numpy(X, V, gamma, rows=256):
    """Multiply the Gaussian's matrix by V, a tile of rows at a time that stays in the cache."""
    out, squares = np.empty_like(V), np.einsum("ij,ij->i", X, X)
    for start in range(0, len(X), rows):
        tile = slice(start, start + rows)
        K = X[tile] @ (2 * gamma * X.T)
        K -= gamma * squares[tile, None]
        K -= gamma * squares
        np.exp(K, out=K)
        out[tile] = K @ V
    return out


def operations(n, dim, vectors):
    """Count the operations of a symmetric product, two for a multiply-add."""
    return 2 * n * (n + 1) // 2 * (dim + 1 + POWER + 2 * vectors)


class Product:
    """K V for 20,000 rows, one thread, nothing skipped."""

    params = (["gaussian", "matern 3/2"], [3, 9, 30], [1, 16], DTYPES)
    grid = (list(KERNELS), [3, 9, 30], [1, 16], DTYPES)
    param_names = ("kernel", "dim", "vectors", "dtype")
    n = 20_000

    def setup(self, kernel, dim, vectors, dtype):
        self.X = gaussian(self.n, dim, dtype)
        self.V = gaussian(self.n, vectors, "float64", seed=1)
        self.kernel = KERNELS[kernel](dim)
        self.operator = KernelOperator(self.kernel, self.X, tol=0)

    def product(self):
        with limit_threads(1), limit_blas(1):
            return self.operator @ self.V

    def time_gzkcore(self, kernel, dim, vectors, dtype):
        self.product()

    def peakmem_gzkcore(self, kernel, dim, vectors, dtype):
        self.product()

    def track_error(self, kernel, dim, vectors, dtype):
        rows = self.X[:200].astype(np.float64)
        exact = self.kernel(rows, self.X.astype(np.float64)) @ self.V
        return largest_error(self.product()[:200], exact)

    def track_percent_of_fma_limit(self, kernel, dim, vectors, dtype):
        if kernel != "gaussian" or dtype != "float32":
            raise SkipNotImplemented("operations are counted for the Gaussian in float32")
        limits = Limits(ISA)
        return percent_of(
            lambda: limits.multiply_add(dtype, 1), self.product, operations(self.n, dim, vectors)
        )

    track_percent_of_fma_limit.unit = "%"

    def track_times_faster_than_numpy(self, kernel, dim, vectors, dtype):
        if kernel != "gaussian":
            raise SkipNotImplemented("NumPy's tiles are for the Gaussian")
        V = self.V.astype(dtype)
        must_agree("NumPy", by_numpy(self.X, V, 0.5 / dim), self.product(), 1e-4)
        calls = {"gzkcore": self.product, "numpy": lambda: by_numpy(self.X, V, 0.5 / dim)}
        with limit_blas(1):
            return ratio(interleave(calls, 3), "numpy", "gzkcore")[0]

    track_times_faster_than_numpy.unit = "times"


class Matrix:
    """All of K(X, X) for 3,000 rows, against scikit-learn's."""

    params = ([3, 64], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")

    def setup(self, dim, dtype, threads):
        self.X, self.gamma = gaussian(3000, dim, dtype), 0.5 / dim
        ours, theirs = self.matrix(threads), rbf_kernel(self.X, gamma=self.gamma)
        must_agree("rbf_kernel", theirs, ours, 1e-5)

    def matrix(self, threads):
        with limit_threads(threads), limit_blas(threads):
            return kernel_matrix(Gaussian(self.gamma), self.X)

    def time_gzkcore(self, dim, dtype, threads):
        self.matrix(threads)

    def peakmem_gzkcore(self, dim, dtype, threads):
        self.matrix(threads)

    def time_sklearn(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            rbf_kernel(self.X, gamma=self.gamma)

    def track_error(self, dim, dtype, threads):
        rows = self.X[:200].astype(np.float64)
        squares = np.square(rows[:, None] - rows[None, :]).sum(axis=2)
        return largest_error(self.matrix(threads)[:200, :200], np.exp(-self.gamma * squares))

    def track_times_faster_than_sklearn(self, dim, dtype, threads):
        calls = {
            "gzkcore": lambda: self.matrix(threads),
            "sklearn": lambda: self.time_sklearn(dim, dtype, threads),
        }
        return ratio(interleave(calls, 3), "sklearn", "gzkcore")[0]

    track_times_faster_than_sklearn.unit = "times"


class Gradient:
    """Derivatives by nine lengths, 4,000 rows, against products of the whole matrix in NumPy."""

    params = ([1, 16],)
    param_names = ("vectors",)
    dim = 9

    def setup(self, vectors):
        self.X, self.A = gaussian(4000, self.dim), gaussian(4000, vectors, seed=1)
        self.kernel = Gaussian(0.5 / self.dim)
        self.operator = KernelOperator(self.kernel, self.X)

    def gradient(self):
        with limit_threads(1), limit_blas(1):
            return self.operator.gradient(self.A, self.A)

    def by_numpy(self):
        """Weights times the kernel, then row sums, and one product of matrices for all columns."""
        with limit_blas(1):
            Q = (self.A @ self.A.T) * self.kernel(self.X)
            sums = Q.sum(axis=1) @ self.X**2
            return (2 * sums - 2 * np.sum(self.X * (Q @ self.X), axis=0)) / self.dim

    def time_gzkcore(self, vectors):
        self.gradient()

    def time_numpy(self, vectors):
        self.by_numpy()

    def peakmem_gzkcore(self, vectors):
        self.gradient()

    def track_error(self, vectors):
        return must_agree("NumPy", self.by_numpy(), self.gradient(), 1e-9)
