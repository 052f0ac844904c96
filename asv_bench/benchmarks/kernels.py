"""Exact kernel matrices: a call of the Gaussian against scikit-learn's `rbf_kernel`."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from gzkcore import Gaussian

from .common import DTYPES, ball, largest_error, must_agree


class GaussianMatrix:
    """All pairs of 2,000 rows. Ours is always float64; scikit-learn keeps float32."""

    params = ([3, 9, 64], DTYPES)
    param_names = ("dim", "dtype")

    def setup(self, dim, dtype):
        self.X = ball(2000, dim, dtype)
        few = self.X[:200].astype(np.float64)
        squares = np.square(few[:, None, :] - few[None, :, :]).sum(axis=2)
        self.exact = np.exp(-0.5 * squares)
        self.kernel = Gaussian(0.5)
        must_agree("rbf_kernel", rbf_kernel(self.X[:200], gamma=0.5), self.exact, 1e-5)

    def time_gzkcore(self, dim, dtype):
        self.kernel(self.X)

    def time_sklearn(self, dim, dtype):
        rbf_kernel(self.X, gamma=0.5)

    def track_error_gzkcore(self, dim, dtype):
        return largest_error(self.kernel(self.X[:200]), self.exact)

    def track_error_sklearn(self, dim, dtype):
        return largest_error(rbf_kernel(self.X[:200], gamma=0.5), self.exact)

    def peakmem_gzkcore(self, dim, dtype):
        self.kernel(self.X)

    def peakmem_sklearn(self, dim, dtype):
        rbf_kernel(self.X, gamma=0.5)
