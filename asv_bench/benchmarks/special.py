"""Gegenbauer polynomials: our recurrence against SciPy's."""

from fractions import Fraction

import numpy as np
from scipy.special import eval_gegenbauer

from gzkcore import reference
from gzkcore._util.threads import limit_threads
from gzkcore.sphere.special import gegenbauer

from .common import DTYPES, largest_error, must_agree


class Polynomial:
    """P_d^l at a million points, on one thread (SciPy has no more)."""

    params = ([8, 40], [3, 9], DTYPES)
    param_names = ("degree", "dim", "dtype")

    def setup(self, degree, dim, dtype):
        self.t = np.random.default_rng(0).uniform(-1, 1, 1_000_000).astype(dtype)
        # Dyadic points are exact in every type, and so is the reference on fractions.
        points = [Fraction(k, 64) for k in range(-64, 65, 3)]
        self.few = np.array([float(point) for point in points], dtype)
        exact = [reference.special.gegenbauer(degree, dim, point) for point in points]
        self.exact = np.array([float(value) for value in exact])
        loose = {"float32": 1e-3, "float64": 1e-8}[dtype]
        must_agree("scipy", self.scipy(degree, dim, self.few), self.exact, loose)

    @staticmethod
    def scipy(degree, dim, t):
        nu = dim / 2 - 1
        return eval_gegenbauer(degree, nu, t) / t.dtype.type(eval_gegenbauer(degree, nu, 1.0))

    def time_gzkcore(self, degree, dim, dtype):
        with limit_threads(1):
            gegenbauer(degree, dim, self.t)

    def time_scipy(self, degree, dim, dtype):
        self.scipy(degree, dim, self.t)

    def track_error_gzkcore(self, degree, dim, dtype):
        return largest_error(gegenbauer(degree, dim, self.few), self.exact)

    def track_error_scipy(self, degree, dim, dtype):
        return largest_error(self.scipy(degree, dim, self.few), self.exact)

    def peakmem_gzkcore(self, degree, dim, dtype):
        gegenbauer(degree, dim, self.t)

    def peakmem_scipy(self, degree, dim, dtype):
        self.scipy(degree, dim, self.t)
