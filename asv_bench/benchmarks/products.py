"""Products of kernel matrices with vectors, against tiles by NumPy and BLAS."""

import numpy as np

from gzkcore import Gaussian, KernelOperator, Laplacian, Matern, kernel_matrix
from gzkcore._util.threads import limit_blas, limit_threads

from .common import DTYPES, gaussian, interleave, largest_error, must_agree, ratio

KERNELS = {
    "gaussian": lambda dim: Gaussian(0.5 / dim),
    "matern 3/2": lambda dim: Matern(1.5, dim**0.5),
    "laplacian": lambda dim: Laplacian(1 / dim),
}


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


class Product:
    """K V for 20,000 rows, one thread."""

    params = (list(KERNELS), [3, 9, 30], [1, 16], DTYPES)
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

    def track_times_faster_than_numpy(self, kernel, dim, vectors, dtype):
        if kernel != "gaussian":
            raise NotImplementedError("NumPy's tiles are for the Gaussian")
        V = self.V.astype(dtype)
        must_agree("NumPy", by_numpy(self.X, V, 0.5 / dim), self.product(), 1e-4)
        calls = {"gzkcore": self.product, "numpy": lambda: by_numpy(self.X, V, 0.5 / dim)}
        with limit_blas(1):
            return ratio(interleave(calls, 3), "numpy", "gzkcore")[0]

    track_times_faster_than_numpy.unit = "times"


class Matrix:
    """All of K(X, X) for 2,000 rows."""

    params = ([3, 64],)
    param_names = ("dim",)

    def setup(self, dim):
        self.X, self.kernel = gaussian(2000, dim), Gaussian(0.5 / dim)

    def time_gzkcore(self, dim):
        kernel_matrix(self.kernel, self.X)

    def peakmem_gzkcore(self, dim):
        kernel_matrix(self.kernel, self.X)

    def track_error(self, dim):
        rows = self.X[:200]
        squares = np.square(rows[:, None] - rows[None, :]).sum(axis=2)
        return largest_error(kernel_matrix(self.kernel, rows), np.exp(-0.5 / dim * squares))
