"""Metrics: against the printed formulas with whole matrices in NumPy."""

import numpy as np
from scipy.spatial.distance import pdist

from gzkcore import Gaussian, metrics

from .common import gaussian, must_agree

LAM, DIM, WIDTH = 0.1, 5, 256


def whitened(K, Z):
    """Return the eigenvalues of Z Z^T + lam I between two roots of (K + lam I)^-1."""
    ridge = LAM * np.eye(len(K))
    energies, axes = np.linalg.eigh(K + ridge)
    root = axes / np.sqrt(energies) @ axes.T
    return np.linalg.eigvalsh(root @ (Z @ Z.T + ridge) @ root)


def spectral(K, Z):
    mu = whitened(K, Z)
    return max(1 / mu[0] - 1, 1 - 1 / mu[-1])


def of_pairs(K, Z):
    off = ~np.eye(len(K), dtype=bool)
    return np.abs(Z @ Z.T - K)[off].mean()


PLAIN = {
    "spectral_error": spectral,
    "whitened_error": lambda K, Z: np.abs(whitened(K, Z) - 1).max(),
    "relative_frobenius_error": lambda K, Z: np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K),
    "mean_kernel_error": of_pairs,
    "mean_distance_error": lambda X, Z: np.abs(pdist(X) ** 2 - pdist(Z) ** 2).mean(),
}


class Metric:
    """Each metric of 256 columns at two numbers of rows."""

    params = (list(PLAIN), [125, 500])
    param_names = ("metric", "rows")

    def setup(self, metric, rows):
        X = gaussian(rows, DIM)
        W = gaussian(WIDTH // 2, DIM, seed=1)
        Z = np.hstack([np.cos(X @ W.T), np.sin(X @ W.T)]) / np.sqrt(WIDTH // 2)
        self.given = (X if metric == "mean_distance_error" else Gaussian(0.5)(X)), Z
        function = getattr(metrics, metric)
        more = (LAM,) if metric in ("spectral_error", "whitened_error") else ()
        self.call = lambda: function(*self.given, *more)
        self.error = must_agree("the plain formula", PLAIN[metric](*self.given), self.call(), 1e-8)

    def time_gzkcore(self, metric, rows):
        self.call()

    def time_numpy(self, metric, rows):
        PLAIN[metric](*self.given)

    def peakmem_gzkcore(self, metric, rows):
        self.call()

    def peakmem_numpy(self, metric, rows):
        PLAIN[metric](*self.given)

    def track_error(self, metric, rows):
        return self.error


class ProjectionCost:
    """The extreme ratio over all projections of a rank, beside trying random ones."""

    params = ([1, 20],)
    param_names = ("rank",)

    def setup(self, rank):
        X, W = gaussian(300, DIM), gaussian(WIDTH // 2, DIM, seed=1)
        self.Z = np.hstack([np.cos(X @ W.T), np.sin(X @ W.T)]) / np.sqrt(WIDTH // 2)
        self.K = Gaussian(0.5)(X)

    def at_random(self, rank):
        """Return the worst of ten projections."""
        worst = 0.0
        for seed in range(10):
            axes, _ = np.linalg.qr(gaussian(len(self.K), rank, seed=seed))
            costs = [np.trace(M) - np.vdot(axes, M @ axes) for M in (self.Z @ self.Z.T, self.K)]
            worst = max(worst, abs(costs[0] / costs[1] - 1))
        return float(worst)

    def time_gzkcore(self, rank):
        metrics.projection_cost_error(self.K, self.Z, rank)

    def time_at_random(self, rank):
        self.at_random(rank)

    def peakmem_gzkcore(self, rank):
        metrics.projection_cost_error(self.K, self.Z, rank)

    def track_error_of_the_features(self, rank):
        return metrics.projection_cost_error(self.K, self.Z, rank)

    def track_error_found_at_random(self, rank):
        return self.at_random(rank)
