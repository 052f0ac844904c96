"""Kernel ridge regression on centres: error, steps and time; an estimate for ten million rows."""

import numpy as np
from scipy.linalg import cholesky

from gzkcore import Matern, RandomFeatureRidge
from gzkcore._util.threads import limit_blas
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.products import KernelOperator
from gzkcore.passes.kernel_passes import Passes
from gzkcore.solve.centers import FactoredGram, solve_centers

from .common import data_generator, interleave
from .ridge import globe

KERNEL = Matern(nu=1.5, length_scale=0.3)
N_ROWS, ALPHA = 20_000, 0.1


def fitted(X, y, centers):
    return solve_centers(KERNEL, Passes.of(X, y), centers, [ALPHA], random_state=0)


def chosen(X, landmarks):
    """Return 500 rows by a rule of `NystromFeatures`."""
    return NystromFeatures(KERNEL, 500, landmarks=landmarks, random_state=0).fit(X).landmarks_


class Fit:
    """The whole solution, beside ridge regression on as many Nystrom features."""

    params = ([500, 2000],)
    param_names = ("n_centers",)

    def setup(self, n_centers):
        self.X, self.y = globe(N_ROWS + 2000)
        self.rows = slice(N_ROWS)

    def ours(self, n_centers):
        return fitted(self.X[self.rows], self.y[self.rows], n_centers)

    def features(self, n_centers):
        features = NystromFeatures(KERNEL, n_centers, landmarks="uniform", random_state=0)
        model = RandomFeatureRidge(features, ALPHA, fit_intercept=False, solver="cholesky")
        return model.fit(self.X[self.rows], self.y[self.rows])

    def time_gzkcore(self, n_centers):
        self.ours(n_centers)

    def time_features(self, n_centers):
        self.features(n_centers)

    def peakmem_gzkcore(self, n_centers):
        self.ours(n_centers)

    def peakmem_features(self, n_centers):
        self.features(n_centers)

    def track_steps(self, n_centers):
        return int(self.ours(n_centers).n_iter[0])

    def _error(self, predicted):
        return float(np.sqrt(np.mean(np.square(predicted - self.y[N_ROWS:]))))

    def track_error_gzkcore(self, n_centers):
        solution = self.ours(n_centers)
        return self._error((KERNEL(self.X[N_ROWS:], solution.centers) @ solution.coef)[:, 0])

    def track_error_features(self, n_centers):
        return self._error(self.features(n_centers).predict(self.X[N_ROWS:]))


class Rules:
    """Centres by each rule: their error and their cost."""

    params = (["uniform", "kmeans++", "accelerated-rls"],)
    param_names = ("landmarks",)

    def setup(self, landmarks):
        self.X, self.y = globe(N_ROWS + 2000)

    def time_gzkcore(self, landmarks):
        fitted(self.X[:N_ROWS], self.y[:N_ROWS], chosen(self.X[:N_ROWS], landmarks))

    def track_error(self, landmarks):
        centers = chosen(self.X[:N_ROWS], landmarks)
        solution = fitted(self.X[:N_ROWS], self.y[:N_ROWS], centers)
        predicted = KERNEL(self.X[N_ROWS:], solution.centers) @ solution.coef
        return float(np.sqrt(np.mean(np.square(predicted[:, 0] - self.y[N_ROWS:]))))


class Steps:
    """The parts of a solution, from which the time of larger ones follows."""

    def setup(self):
        self.X, _ = globe(N_ROWS)
        self.points = self.X[:2000]
        self.forward = KernelOperator(KERNEL, self.X, self.points, tol=0)
        self.backward = KernelOperator(KERNEL, self.points, self.X, tol=0)
        self.v = data_generator(0).standard_normal((2000, 1))
        self.gram = KERNEL(self.points) + np.eye(2000)

    def step(self):
        return self.backward @ (self.forward @ self.v)

    def factor(self):
        with limit_blas(1):
            return cholesky(self.gram, check_finite=False)

    def time_step(self):
        self.step()

    def time_step_numpy(self):
        K = KERNEL(self.X, self.points)
        return K.T @ (K @ self.v)

    def time_preconditioner(self):
        FactoredGram(self.gram.copy(order="F"), np.array([ALPHA]))

    def time_factor(self):
        self.factor()

    def track_predicted_minutes(self):
        """Ten million rows, 20,000 centres, 15 steps."""
        return predicted(self, 10_000_000, 20_000, 15)["minutes"]

    track_predicted_minutes.unit = "min"

    def track_predicted_gigabytes(self):
        return predicted(self, 10_000_000, 20_000, 15)["gigabytes"]

    track_predicted_gigabytes.unit = "GB"


def predicted(parts, n_rows, n_centers, n_steps, dim=3):
    """Return the time of a solution, from the measured rates of its parts.

    Parameters
    ----------
    parts : Steps
        Set up.
    n_rows, n_centers, n_steps, dim : int

    Returns
    -------
    dict
        values: of the kernel a second, in steps; flops: a second of a factorisation; minutes: of
        steps, of T, of the sample's Gram matrix and its factor, and in all; gigabytes.
    """
    taken = interleave({"step": parts.step, "factor": parts.factor})
    values = 2 * N_ROWS * 2000 / min(taken["step"])
    flops = 2000**3 / 3 / min(taken["factor"])
    sample = max(n_centers, min(8 * n_centers, int(16 * n_rows**0.5)))
    of_steps = (n_steps + 2) * 2 * n_rows * n_centers / values / 60
    of_factors = (2 * n_centers**3 / 3 + 2 * sample * n_centers**2) / flops / 60
    held = 2 * 8 * n_centers**2 + 8 * n_centers * 2048 * 3 + 8 * n_rows * (3 * dim + 8)
    return {
        "values": values,
        "flops": flops,
        "steps": of_steps,
        "factors": of_factors,
        "minutes": of_steps + of_factors,
        "gigabytes": held / 1e9,
    }
