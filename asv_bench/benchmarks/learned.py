"""Learned lengths, beside scikit-learn's Gaussian process; gradients, beside differences."""

import functools

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as Function

from gzkcore import KernelRidge, Matern, average_gradient_outer_product, learn_kernel

from .common import data_generator, interleave, ratio

N = 300


@functools.cache
def table(dim):
    """Return rows of which half the columns do not matter, and a smooth function with noise.

    8 columns are like those of the table kin40k, 26 like those of pol.
    """
    rng = data_generator(0)
    X = rng.standard_normal((2 * N, dim))
    angles = np.cumsum(X[:, : dim // 2], axis=1)
    y = np.cos(angles).sum(axis=1) + 0.05 * rng.standard_normal(2 * N)
    y = (y - y.mean()) / y.std()
    return (X[:N], y[:N]), (X[N:], y[N:])


class Learn:
    """All lengths and the noise from 300 rows; the error is that of other rows, relative to y's."""

    params = ([8, 26],)
    param_names = ("columns",)

    def setup(self, columns):
        self.train, self.test = table(columns)

    def ours(self):
        return learn_kernel(*self.train, Matern(1.5))

    def theirs(self):
        columns = self.train[0].shape[1]
        lengths = np.full(columns, columns**0.5)
        kernel = ConstantKernel() * Function(lengths, nu=1.5) + WhiteKernel(0.05)
        return GaussianProcessRegressor(kernel).fit(*self.train)

    def error(self, predicted):
        return float(np.sqrt(np.mean(np.square(predicted - self.test[1]))))

    def time_gzkcore(self, columns):
        self.ours()

    def time_sklearn(self, columns):
        self.theirs()

    def peakmem_gzkcore(self, columns):
        self.ours()

    def peakmem_sklearn(self, columns):
        self.theirs()

    def track_error_gzkcore(self, columns):
        result = self.ours()
        model = KernelRidge(result.kernel, result.noise, preconditioner=None).fit(*self.train)
        return self.error(model.predict(self.test[0]))

    def track_error_sklearn(self, columns):
        return self.error(self.theirs().predict(self.test[0]))

    def track_times_faster_than_sklearn(self, columns):
        calls = {"gzkcore": self.ours, "sklearn": self.theirs}
        return ratio(interleave(calls, 3), "sklearn", "gzkcore")[0]

    track_times_faster_than_sklearn.unit = "times"


class Gradients:
    """The average gradient outer product of a whole kernel's model; the error is relative.

    The competitor takes central differences, as one does without formulas.
    """

    params = ([8, 26],)
    param_names = ("columns",)

    def setup(self, columns):
        (X, y), (self.X, _) = table(columns)
        self.model = KernelRidge(Matern(1.5, columns**0.5), 1e-2).fit(X, y)
        self.by_differences()  # compiles, allocates

    def ours(self):
        return average_gradient_outer_product(self.model, self.X)

    def by_differences(self):
        return average_gradient_outer_product(self.model.predict, self.X)

    def time_gzkcore(self, columns):
        self.ours()

    def time_differences(self, columns):
        self.by_differences()

    def peakmem_gzkcore(self, columns):
        self.ours()

    def peakmem_differences(self, columns):
        self.by_differences()

    def track_error_gzkcore(self, columns):
        exact = self.by_differences()
        return float(np.abs(self.ours() - exact).max() / np.abs(exact).max())

    def track_times_faster_than_differences(self, columns):
        calls = {"gzkcore": self.ours, "differences": self.by_differences}
        return ratio(interleave(calls, 3), "differences", "gzkcore")[0]

    track_times_faster_than_differences.unit = "times"
