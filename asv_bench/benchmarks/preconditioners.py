"""Preconditioners: their cost beside that of kernel products, and the steps of the solver."""

import numpy as np

from gzkcore import Gaussian, Matern
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.products import KernelOperator
from gzkcore.solve.preconditioners import preconditioner_for

from .common import THREADS, interleave, ratio, sphere

KERNELS = {"matern": Matern(nu=1.5, length_scale=0.1), "gaussian": Gaussian(50.0)}
ROWS = [10_000, 40_000, 120_000]


class _Problem:
    """Points of the sphere, and the kernel's product beside its preconditioner."""

    timeout = 600

    def setup(self, kernel, n, threads):
        self.X, self.kernel = sphere(n, 3), KERNELS[kernel]
        self.V = np.random.default_rng(0).standard_normal((n, 1))
        self.operator = KernelOperator(self.kernel, self.X, dtype=np.float32)

    def make(self, threads, alphas=(0.1,)):
        with limit_threads(threads):
            return preconditioner_for("auto", self.kernel, self.X, alphas, random_state=0)

    def multiply(self, threads):
        with limit_threads(threads):
            return self.operator @ self.V


class Making(_Problem):
    """Neighbours, landmarks, features and the sparse factor; a product of the rows beside it."""

    params = (list(KERNELS), ROWS, THREADS)
    param_names = ("kernel", "n_samples", "threads")

    def time_make(self, kernel, n, threads):
        self.make(threads)

    def time_make_for_four_alphas(self, kernel, n, threads):
        self.make(threads, (0.01, 0.1, 1.0, 10.0))

    def time_product(self, kernel, n, threads):
        self.multiply(threads)

    def peakmem_make(self, kernel, n, threads):
        self.make(threads)

    def track_products(self, kernel, n, threads):
        calls = {"make": lambda: self.make(threads), "product": lambda: self.multiply(threads)}
        return ratio(interleave(calls, 3), "make", "product")[0]


class Solve(_Problem):
    """P^-1 r of one vector and of eight, beside a product; and the steps that are left."""

    params = (list(KERNELS), ROWS, THREADS)
    param_names = ("kernel", "n_samples", "threads")

    def setup(self, kernel, n, threads):
        super().setup(kernel, n, threads)
        self.preconditioner = self.make(threads)
        self.many = np.random.default_rng(1).standard_normal((n, 8))

    def solve(self, R, threads):
        with limit_threads(threads):
            return self.preconditioner.solve(R, np.zeros(R.shape[1], int))

    def time_solve(self, kernel, n, threads):
        self.solve(self.V, threads)

    def time_solve_eight(self, kernel, n, threads):
        self.solve(self.many, threads)

    def track_products(self, kernel, n, threads):
        calls = {
            "solve": lambda: self.solve(self.V, threads),
            "product": lambda: self.multiply(threads),
        }
        return ratio(interleave(calls, 3), "solve", "product")[0]

    def track_steps_to_a_thousandth(self, kernel, n, threads):
        x, y = self.X, self.V
        y = np.sin(9 * x[:, :1]) * np.cos(7 * x[:, 1:2]) + 0.3 * y
        residual, direction, before = y.copy(), np.zeros_like(y), 1.0
        for step in range(1, 200):
            z = self.solve(residual, threads)
            now = np.sum(residual * z)
            direction = z + (now / before) * direction
            with limit_threads(threads):
                image = self.operator @ direction + 0.1 * direction
            residual -= now / np.sum(direction * image) * image
            before = now
            if np.linalg.norm(residual) < 1e-3 * np.linalg.norm(y):
                return step
        return np.inf
