"""`KernelRegressor`, which chooses all settings, beside gradient boosting with its defaults."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from gzkcore import KernelRegressor

from .common import data_generator

MODELS = {
    "KernelRegressor": lambda: KernelRegressor(random_state=0),
    "HistGradientBoostingRegressor": lambda: HistGradientBoostingRegressor(random_state=0),
}


def rows(n, dim):
    """Return rows of which half the columns matter, and something smooth with noise."""
    X = data_generator(0).standard_normal((n, dim))
    used = X[:, : dim // 2]
    return X, np.sin(2 * used[:, 0]) + used[:, 1] * np.cos(used).mean(axis=1) + 0.1 * (
        data_generator(1).standard_normal(n)
    )


class Fit:
    """The whole fit, and the error for new rows, in standard deviations of y."""

    params = ([2000, 10_000], list(MODELS))
    param_names = ("rows", "model")
    timeout = 600

    def setup(self, n, name):
        X, y = rows(n + 2000, 8)
        self.train, self.new = (X[:n], y[:n]), (X[n:], y[n:])

    def time_fit(self, n, name):
        MODELS[name]().fit(*self.train)

    def peakmem_fit(self, n, name):
        MODELS[name]().fit(*self.train)

    def track_error(self, n, name):
        predicted = MODELS[name]().fit(*self.train).predict(self.new[0])
        return float(np.std(predicted - self.new[1]) / np.std(self.new[1]))
