"""Regression with the whole kernel, beside scikit-learn's, which stores its matrix."""

import numpy as np
from sklearn.kernel_ridge import KernelRidge as Dense

from gzkcore import Gaussian, KernelRidge

from .common import data_generator, largest_error

N = 4000


def rows(n, dim):
    """Return points of a cube and something smooth to predict, with noise."""
    X = data_generator(0).uniform(-1, 1, (n, dim))
    y = np.sin(4 * X[:, 0]) * X[:, 1] + np.abs(X).sum(axis=1)
    return X, y - y.mean() + 0.1 * data_generator(1).standard_normal(n)


class Fit:
    """The whole fit; the error is against scikit-learn's predictions."""

    params = ([1e-3, 1e-8], [3, 9])
    param_names = ("tol", "dim")

    def setup(self, tol, dim):
        self.X, self.y = rows(N, dim)
        self.new, _ = rows(500, dim)

    def ours(self, tol):
        model = KernelRidge(Gaussian(1.0), 1e-2, tol=tol, random_state=0)
        return model.fit(self.X, self.y)

    def theirs(self):
        return Dense(alpha=1e-2, kernel="rbf", gamma=1.0).fit(self.X, self.y)

    def time_gzkcore(self, tol, dim):
        self.ours(tol)

    def time_sklearn(self, tol, dim):
        self.theirs()

    def peakmem_gzkcore(self, tol, dim):
        self.ours(tol)

    def peakmem_sklearn(self, tol, dim):
        self.theirs()

    def track_error_gzkcore(self, tol, dim):
        return largest_error(self.ours(tol).predict(self.new), self.theirs().predict(self.new))


class Spread:
    """Standard deviations: exact for a few rows, by draws for many."""

    params = ([64, 1000],)
    param_names = ("rows",)

    def setup(self, n):
        self.X, y = rows(N, 3)
        self.new, _ = rows(n, 3)
        self.model = KernelRidge(Gaussian(1.0), 1e-2, random_state=0).fit(self.X, y)

    def predict(self):
        self.model._outdate()
        return self.model.predict(self.new, return_std=True)[1]

    def time_gzkcore(self, n):
        self.predict()

    def peakmem_gzkcore(self, n):
        self.predict()

    def track_error_gzkcore(self, n):
        few = [self.model.predict(self.new[i : i + 64], return_std=True)[1] for i in (0, n - 64)]
        predicted = self.predict()
        return largest_error(np.concatenate([predicted[:64], predicted[-64:]]), np.concatenate(few))


class Update:
    """A hundred rows more: by an update, beside a fit to all; the error is against this fit."""

    params = ([3, 8],)
    param_names = ("dim",)
    number, repeat, warmup_time = 1, 3, 0.0  # an update changes the model

    def setup(self, dim):
        self.X, self.y = rows(N + 2100, dim)
        self.model = self.fitted(N + 2000)

    def fitted(self, n):
        model = KernelRidge(Gaussian(1.0), 1e-1, fit_intercept=True, random_state=0)
        return model.fit(self.X[:n], self.y[:n])

    def update(self):
        return self.model.update(self.X[N + 2000 :], self.y[N + 2000 :])

    def time_update(self, dim):
        self.update()

    def time_fit(self, dim):
        self.fitted(None)

    def peakmem_update(self, dim):
        self.update()

    def peakmem_fit(self, dim):
        self.fitted(None)

    def track_error_update(self, dim):
        new, _ = rows(500, dim)
        return largest_error(self.update().predict(new), self.fitted(None).predict(new))
