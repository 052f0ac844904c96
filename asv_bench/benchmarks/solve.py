"""Conjugate gradients: steps beside SciPy's, and single precision beside double."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from gzkcore import Matern
from gzkcore.kernels.products import KernelOperator
from gzkcore.solve.solve import conjugate_gradients

from .common import data_generator, interleave, ratio, sphere

N, ALPHAS = 2_000, (1.0, 0.3, 0.1, 0.03)


def problem(n=N, dtype=np.float32):
    """Return the kernel of points on the sphere as a product, and something rough to predict."""
    X = sphere(n, 3)
    y = np.sin(9 * X[:, 0]) * X[:, 1] + 0.3 * data_generator(1).standard_normal(n)
    return KernelOperator(Matern(1.5, 0.3), X, dtype=dtype), y


class Steps:
    """Four alphas: one block of columns, and SciPy's solver one after the other."""

    def setup(self):
        self.product, y = problem(dtype=np.float64)
        self.targets = np.repeat(y[:, None], len(ALPHAS), axis=1)
        self.calls = {"gzkcore": self.ours, "scipy": self.theirs}

    def ours(self):
        return conjugate_gradients(self.product, self.targets, ALPHAS).coef

    def theirs(self):
        found = []
        for alpha, target in zip(ALPHAS, self.targets.T, strict=True):
            shifted = LinearOperator(
                (N, N), lambda v, alpha=alpha: self.product @ v + alpha * v, dtype=np.float64
            )
            found.append(cg(shifted, target, rtol=1e-3)[0])
        return np.column_stack(found)

    def time_gzkcore(self):
        self.ours()

    def time_scipy(self):
        self.theirs()

    def peakmem_gzkcore(self):
        self.ours()

    def track_times_faster(self):
        return ratio(interleave(self.calls), "scipy", "gzkcore")[0]

    track_times_faster.unit = "times"

    def residual(self, coef):
        off = self.targets - self.product @ coef - coef * np.array(ALPHAS)
        return float((np.linalg.norm(off, axis=0) / np.linalg.norm(self.targets, axis=0)).max())

    def track_error_gzkcore(self):
        return self.residual(self.ours())

    def track_error_scipy(self):
        return self.residual(self.theirs())


class Precision:
    """Steps in single precision with true residuals in double, beside double throughout."""

    params = ([1e-1, 1e-2], [1e-3, 1e-6])
    param_names = ("alpha", "tol")

    def setup(self, alpha, tol):
        (self.single, y), (self.double, _) = problem(), problem(dtype=np.float64)
        self.y = y[:, None]
        self.calls = {
            "mixed": lambda: self.solve(self.single, alpha, tol),
            "double": lambda: self.solve(self.double, alpha, tol),
        }

    def solve(self, product, alpha, tol):
        products = product, self.double
        return conjugate_gradients(products, self.y, [alpha], tol=tol, max_iter=2000)

    def time_mixed(self, alpha, tol):
        self.calls["mixed"]()

    def time_double(self, alpha, tol):
        self.calls["double"]()

    def track_steps_mixed(self, alpha, tol):
        return int(self.calls["mixed"]().n_iter[0])

    def track_steps_double(self, alpha, tol):
        return int(self.calls["double"]().n_iter[0])

    def track_error_mixed(self, alpha, tol):
        return float(self.calls["mixed"]().residual[0])
