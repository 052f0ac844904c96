"""Statistical dimension and leverage: against the definition with an inverse in NumPy."""

import numpy as np

from gzkcore import Gaussian
from gzkcore.features.gegenbauer import feature_operator
from gzkcore.theory import ridge_leverage, statistical_dimension

from .common import gaussian, must_agree

KERNEL, LAM = Gaussian(0.5), 0.1


class StatisticalDimension:
    """tr K (K + lam I)^-1 by eigenvalues, beside the inverse."""

    params = ([250, 1000],)
    param_names = ("rows",)

    def setup(self, rows):
        self.K = KERNEL(gaussian(rows, 3))
        self.error = must_agree("inverse", self.inverse(), self.call(), 1e-9)

    def call(self):
        return statistical_dimension(self.K, LAM)

    def inverse(self):
        return float(np.vdot(self.K, np.linalg.inv(self.K + LAM * np.eye(len(self.K)))))

    def time_gzkcore(self, rows):
        self.call()

    def time_numpy(self, rows):
        self.inverse()

    def peakmem_gzkcore(self, rows):
        self.call()

    def track_error(self, rows):
        return self.error


class Leverage:
    """Scores of all nodes of a quadrature; their mean is the statistical dimension (Eq 18)."""

    params = ([50, 200],)
    param_names = ("rows",)

    def setup(self, rows):
        X = gaussian(rows, 2)
        self.operator, self.K = feature_operator(X, KERNEL), KERNEL(X)

    def scores(self):
        return ridge_leverage(self.operator, self.K, LAM, self.operator.nodes)

    def time_gzkcore(self, rows):
        self.scores()

    def peakmem_gzkcore(self, rows):
        self.scores()

    def track_error(self, rows):
        expected = statistical_dimension(self.K, LAM)
        return abs(float(self.operator.weights @ self.scores()) / expected - 1)
