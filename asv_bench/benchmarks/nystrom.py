"""Nystrom features: error by the rule for landmarks, and speed beside scikit-learn's Nystroem."""

import itertools

import numpy as np
from sklearn.kernel_approximation import Nystroem

from gzkcore import Gaussian, NystromFeatures, reference
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.features.nystrom import RULES

from .common import DTYPES, THREADS, data_generator, gaussian, interleave, ratio

WIDTH, SEEDS = 200, 5


def clusters(n=1000, dim=5):
    """Return points in clusters of very different size."""
    rng = data_generator(0)
    sizes = [n * 3 // 4, n // 6, n // 24, *[10] * 5]
    places = [8 * rng.standard_normal(dim) + rng.standard_normal((size, dim)) for size in sizes]
    return np.concatenate(places)


DATA = {"clusters": clusters, "normal": lambda: gaussian(1000, 5)}


def spectral(K, Z):
    """Return the norm of K - Z Z^T, relative to that of K."""
    largest = [np.abs(np.linalg.eigvalsh(matrix)[[0, -1]]).max() for matrix in (K - Z @ Z.T, K)]
    return float(largest[0] / largest[1])


class Landmarks:
    """Spectral error at 200 landmarks, a mean over seeds; and the time of choosing."""

    params = (list(DATA), [*RULES, "published rls", "scikit-learn"])
    param_names = ("data", "landmarks")
    kernel = Gaussian(0.2)

    def setup_cache(self):
        """Return the errors of all seeds, for each case."""
        cached = {}
        for data, landmarks in itertools.product(*self.params):
            self.X = DATA[data]()
            K = self.kernel(self.X)
            with limit_blas(1):
                maps = (self.features(landmarks, seed) for seed in range(SEEDS))
                cached[data, landmarks] = [spectral(K, Z) for Z in maps]
        return cached

    def setup(self, cached, data, landmarks):
        self.X = DATA[data]()

    def features(self, landmarks, seed):
        if landmarks == "published rls":
            uniforms = iter(data_generator(seed).random(100_000))
            K = self.kernel(self.X)
            rows = reference.nystrom.recursive_leverage(K, WIDTH, uniforms)
            root = np.linalg.cholesky(K[np.ix_(rows, rows)] + 1e-5 * np.eye(WIDTH))
            return np.linalg.solve(root, K[rows]).T
        if landmarks == "scikit-learn":
            other = Nystroem(gamma=self.kernel.gamma, n_components=WIDTH, random_state=seed)
            return other.fit_transform(self.X)
        ours = NystromFeatures(self.kernel, WIDTH, landmarks=landmarks, random_state=seed)
        return ours.fit_transform(self.X)

    def time_fit_transform(self, cached, data, landmarks):
        with limit_blas(1):
            self.features(landmarks, 0)

    def peakmem_fit_transform(self, cached, data, landmarks):
        self.features(landmarks, 0)

    def track_error(self, cached, data, landmarks):
        return float(np.mean(cached[data, landmarks]))

    def track_spread_of_the_error(self, cached, data, landmarks):
        return float(np.std(cached[data, landmarks]))


class AgainstNystroem:
    """NystromFeatures beside scikit-learn's Nystroem at 512 landmarks, 8,192 rows."""

    params = ([9, 784], DTYPES, THREADS)
    grid = ([9, 64, 784], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")

    def setup(self, dim, dtype, threads):
        X = self.X = gaussian(8192, dim, dtype)
        gamma, width = 0.5 / dim, 512
        ours = NystromFeatures(Gaussian(gamma), width, landmarks="uniform", random_state=0).fit(X)
        theirs = Nystroem(gamma=gamma, n_components=width, random_state=0).fit(X)
        self.calls = {
            "gzkcore": lambda: ours.transform(X),
            "scikit-learn": lambda: theirs.transform(X),
        }
        self.maps = ours, theirs

    def time_gzkcore(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            self.calls["gzkcore"]()

    def time_sklearn(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            self.calls["scikit-learn"]()

    def peakmem_gzkcore(self, dim, dtype, threads):
        self.calls["gzkcore"]()

    def track_times_faster(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), "scikit-learn", "gzkcore")[0]

    track_times_faster.unit = "times"

    def error(self, features, dim):
        rows = self.X[:500]
        with limit_blas(1):
            return spectral(Gaussian(0.5 / dim)(rows), features.transform(rows).astype(np.float64))

    def track_error_gzkcore(self, dim, dtype, threads):
        return self.error(self.maps[0], dim)

    def track_error_sklearn(self, dim, dtype, threads):
        return self.error(self.maps[1], dim)
