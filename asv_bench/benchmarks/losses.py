"""Regressions with the whole kernel and other losses than squares, beside scikit-learn's."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor
from sklearn.metrics import log_loss, mean_pinball_loss, mean_poisson_deviance

from gzkcore import (
    Gaussian,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    NystromFeatures,
)

from .common import data_generator

KERNEL, ALPHA, LANDMARKS = Gaussian(2.0), 0.3, 100


def rows(n, name, seed):
    """Return points of a square, targets of one kind, and the function behind them."""
    rng = data_generator(seed)
    X = rng.uniform(-1, 1, (n, 2))
    f = 2 * np.sin(4 * X[:, 0]) * X[:, 1]
    y = {
        "poisson": lambda: rng.poisson(np.exp(f)),
        "huber": lambda: f + 0.1 * rng.standard_normal(n) + 50 * (rng.random(n) < 0.1),
        "quantile": lambda: f + np.abs(X[:, 0]) * rng.standard_normal(n),
        "logistic": lambda: (rng.random(n) < 1 / (1 + np.exp(-2 * f))).astype(int),
    }[name]()
    return X, y, f


OURS = {
    "poisson": lambda: KernelPoissonRegressor(KERNEL, ALPHA, random_state=0),
    "huber": lambda: KernelHuberRegressor(KERNEL, ALPHA / 30, random_state=0),
    "quantile": lambda: KernelQuantileRegressor(KERNEL, ALPHA, quantile=0.9, random_state=0),
    "logistic": lambda: KernelLogisticRegression(KERNEL, ALPHA, random_state=0),
}
# Linear models on landmarks of the kernel; a Gaussian process of classes has it whole.
THEIRS = {
    "poisson": lambda n: PoissonRegressor(alpha=ALPHA / n, max_iter=1000),
    "huber": lambda n: HuberRegressor(alpha=ALPHA / 3, max_iter=1000),
    "quantile": lambda n: QuantileRegressor(quantile=0.9, alpha=0.001),
    "logistic": lambda n: GaussianProcessClassifier(RBF(0.5), optimizer=None),
}


class Fit:
    """The whole fit; the error is that of new targets: a deviance, a loss, or from the function."""

    params = (list(OURS), [800, 2000])
    param_names = ("loss", "n")

    def setup(self, name, n):
        if name == "logistic" and n > 1000:
            raise NotImplementedError("the Gaussian process takes n^3")
        self.X, self.y, _ = rows(n, name, 0)
        self.new, self.truth, self.f = rows(1000, name, 1)

    def ours(self, name):
        return OURS[name]().fit(self.X, self.y)

    def theirs(self, name):
        self.features = NystromFeatures(KERNEL, LANDMARKS, random_state=0).fit(self.X)
        X = self.X if name == "logistic" else self.features.transform(self.X)
        return THEIRS[name](len(self.X)).fit(X, self.y)

    def error(self, name, model, X):
        if name == "logistic":
            return log_loss(self.truth, model.predict_proba(X))
        predicted = model.predict(X)
        if name == "poisson":
            return mean_poisson_deviance(self.truth, predicted)
        if name == "quantile":
            return mean_pinball_loss(self.truth, predicted, alpha=0.9)
        return float(np.abs(predicted - self.f).mean())

    def time_gzkcore(self, name, n):
        self.ours(name)

    def time_sklearn(self, name, n):
        self.theirs(name)

    def peakmem_gzkcore(self, name, n):
        self.ours(name)

    def peakmem_sklearn(self, name, n):
        self.theirs(name)

    def track_error_gzkcore(self, name, n):
        return self.error(name, self.ours(name), self.new)

    def track_error_sklearn(self, name, n):
        model = self.theirs(name)
        X = self.new if name == "logistic" else self.features.transform(self.new)
        return self.error(name, model, X)


class SeveralQuantiles:
    """Three quantiles: in one fit, and in fits of their own."""

    quantiles = (0.05, 0.5, 0.95)

    def setup(self):
        self.X, self.y, _ = rows(1000, "quantile", 0)

    def time_together(self):
        self.fit(self.quantiles)

    def time_apart(self):
        for quantile in self.quantiles:
            self.fit(quantile)

    def fit(self, quantile):
        KernelQuantileRegressor(KERNEL, ALPHA, quantile=quantile).fit(self.X, self.y)
