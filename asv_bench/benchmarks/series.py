"""Gegenbauer series and radial functions: the part of a fit that is independent of the rows."""

import math

import numpy as np
from scipy.special import eval_gegenbauer, gammaln, ive, roots_gegenbauer

from gzkcore import Gaussian
from gzkcore.kernels.radial import radial_table
from gzkcore.kernels.truncation import truncate
from gzkcore.sphere.series import gegenbauer_series
from gzkcore.sphere.special import log_alpha

from .common import largest_error, must_agree


class Series:
    """c_0..c_q of exp(t - 1) (Eq 8) against Gauss-Gegenbauer quadrature by SciPy."""

    params = ([15, 60], [3, 9])
    param_names = ("degree", "dim")

    def setup(self, degree, dim):
        level = np.arange(degree + 1)
        nu = dim / 2 - 1
        bessel = ive(level + nu, 1.0)  # I times e^-1
        self.exact = np.exp(log_alpha(level, dim) + math.lgamma(nu + 1) + nu * math.log(2)) * bessel
        must_agree("scipy", self.scipy(degree, dim), self.exact, 1e-8)

    @staticmethod
    def function(t):
        return np.exp(t - 1)

    def scipy(self, degree, dim):
        nu = dim / 2 - 1
        t, weights = roots_gegenbauer(degree + 32, nu)
        values = self.function(t) * weights / weights.sum()
        level = np.arange(degree + 1)
        P = eval_gegenbauer(level[:, None], nu, t) / eval_gegenbauer(level, nu, 1.0)[:, None]
        return np.exp(log_alpha(level, dim)) * (P @ values)

    def time_gzkcore(self, degree, dim):
        gegenbauer_series(self.function, dim, degree)

    def time_scipy(self, degree, dim):
        self.scipy(degree, dim)

    def peakmem_gzkcore(self, degree, dim):
        gegenbauer_series(self.function, dim, degree)

    def track_error_gzkcore(self, degree, dim):
        return largest_error(gegenbauer_series(self.function, dim, degree), self.exact)

    def track_error_scipy(self, degree, dim):
        return largest_error(self.scipy(degree, dim), self.exact)


class RadialTable:
    """Monomial radial functions of 20,000 norms (Eq 23) against NumPy in logarithms."""

    params = ([3, 9],)
    param_names = ("dim",)
    degree, order = 20, 8

    def setup(self, dim):
        self.norms = np.random.default_rng(0).uniform(0, 3, 20_000)
        must_agree("numpy", self.numpy(dim, self.norms), self.gzkcore(dim, self.norms), 1e-12)

    def gzkcore(self, dim, norms):
        return radial_table(Gaussian(0.5), norms, dim, self.degree, self.order)

    def numpy(self, dim, norms):
        level, i = np.arange(self.degree + 1)[:, None], np.arange(self.order)[None, :]
        power = level + 2 * i
        log_c = (
            log_alpha(level, dim) + math.lgamma(dim / 2) - power * math.log(2)
            - gammaln(i + 1) - gammaln(i + level + dim / 2)
        )  # fmt: skip
        t = norms[:, None, None]
        return np.exp(0.5 * log_c + power * np.log(t) - 0.5 * t * t)

    def time_gzkcore(self, dim):
        self.gzkcore(dim, self.norms)

    def time_numpy(self, dim):
        self.numpy(dim, self.norms)

    def track_error_gzkcore(self, dim):
        """At one norm the squares over all l and i sum to 1, but for what is cut off."""
        norms = np.linspace(0, 1, 50)
        return float(np.abs(np.square(self.gzkcore(dim, norms)).sum(axis=(1, 2)) - 1).max())

    def track_error_numpy(self, dim):
        norms = np.linspace(1e-9, 1, 50)
        return float(np.abs(np.square(self.numpy(dim, norms)).sum(axis=(1, 2)) - 1).max())

    def peakmem_gzkcore(self, dim):
        self.gzkcore(dim, self.norms)

    def peakmem_numpy(self, dim):
        self.numpy(dim, self.norms)


class Truncation:
    """Degree and order for a tolerance, with the certified error."""

    params = ([1.0, 5.0], [1e-6, 1e-12])
    param_names = ("radius", "tol")

    def time_gzkcore(self, radius, tol):
        truncate(Gaussian(0.5), 3, radius, tol)

    def peakmem_gzkcore(self, radius, tol):
        truncate(Gaussian(0.5), 3, radius, tol)

    def track_error_gzkcore(self, radius, tol):
        return truncate(Gaussian(0.5), 3, radius, tol)[2]
