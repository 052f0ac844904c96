"""Canonical correlations in one pass, against scikit-learn's CCA on explicit features."""

import warnings

import numpy as np
from sklearn.cross_decomposition import CCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureCCA

from .common import data_generator

FEATURES = {
    "gegenbauer": lambda p: GegenbauerFeatures(Gaussian(0.5), p, random_state=0),
    "RBFSampler": lambda p: RBFSampler(gamma=0.5, n_components=p, random_state=0),
}


def views(n):
    """Return two views that share an angle and a radius, each with noise."""
    rng = data_generator(0)
    shared = rng.standard_normal((n, 2))
    X = np.column_stack([shared, rng.standard_normal(n)])
    angle = np.arctan2(shared[:, 1], shared[:, 0])
    radius = np.hypot(shared[:, 0], shared[:, 1]) + 0.1 * rng.standard_normal(n)
    return X, np.column_stack([np.cos(angle), np.sin(angle), radius])


class Fit:
    """The whole fit of two pairs; the iterations of scikit-learn have no ridge."""

    params = (list(FEATURES), [64, 128])
    param_names = ("features", "n_features")
    n = 2_000

    def setup(self, features, n_features):
        self.X, self.y = views(self.n)

    def ours(self, features, n_features):
        make = FEATURES[features]
        return RandomFeatureCCA(make(n_features), n_components=2, alpha=1.0).fit(self.X, self.y)

    def theirs(self, features, n_features):
        make = FEATURES[features]
        Z, U = (make(n_features).fit_transform(V) for V in (self.X, self.y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return CCA(2).fit(Z, U)

    def time_gzkcore(self, features, n_features):
        self.ours(features, n_features)

    def time_sklearn(self, features, n_features):
        self.theirs(features, n_features)

    def peakmem_gzkcore(self, features, n_features):
        self.ours(features, n_features)

    def peakmem_sklearn(self, features, n_features):
        self.theirs(features, n_features)

    def track_correlation_missing(self, features, n_features):
        """1 less the mean correlation of the pairs on other rows."""
        X, y = views(2 * self.n)
        return 1.0 - self.ours(features, n_features).score(X[self.n :], y[self.n :])
