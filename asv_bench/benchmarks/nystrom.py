"""Nystrom features: error by the rule for landmarks, and speed beside scikit-learn's Nystroem."""

import numpy as np
from sklearn.kernel_approximation import Nystroem

from gzkcore import Gaussian, NystromFeatures, reference
from gzkcore._threads import limit_blas, limit_threads
from gzkcore.nystrom import RULES

from .common import DTYPES, THREADS, data_generator, empty, gaussian, interleave, ratio

WIDTH, SEEDS = 200, 10


def clusters(n=2000, dim=5):
    """Return points in clusters of very different size."""
    rng = data_generator(0)
    sizes = [n * 3 // 4, n // 6, n // 24, *[10] * 5]
    places = [8 * rng.standard_normal(dim) + rng.standard_normal((size, dim)) for size in sizes]
    return np.concatenate(places)


DATA = {"clusters": clusters, "normal": lambda: gaussian(2000, 5)}


def spectral(K, Z):
    """Return the norm of K - Z Z^T, relative to that of K."""
    return np.linalg.norm(K - Z @ Z.T, 2) / np.linalg.norm(K, 2)


class Landmarks:
    """Spectral error at 200 landmarks, a mean over seeds; and the time of choosing."""

    params = (list(DATA), [*RULES, "published rls", "scikit-learn"])
    param_names = ("data", "landmarks")
    timeout = 300

    def setup(self, data, landmarks):
        self.X, self.kernel = DATA[data](), Gaussian(0.2)

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

    def time_fit_transform(self, data, landmarks):
        self.features(landmarks, 0)

    def peakmem_fit_transform(self, data, landmarks):
        self.features(landmarks, 0)

    def errors(self, landmarks):
        K = self.kernel(self.X)
        return [spectral(K, self.features(landmarks, seed)) for seed in range(SEEDS)]

    def track_error(self, data, landmarks):
        return float(np.mean(self.errors(landmarks)))

    def track_spread_of_the_error(self, data, landmarks):
        return float(np.std(self.errors(landmarks)))


class AgainstNystroem:
    """NystromFeatures beside scikit-learn's Nystroem at 512 landmarks, 8,192 rows."""

    params = ([9, 64, 784], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")
    timeout = 120

    def setup(self, dim, dtype, threads):
        X = self.X = gaussian(8192, dim, dtype)
        gamma, width = 0.5 / dim, 512
        ours = NystromFeatures(Gaussian(gamma), width, landmarks="uniform", random_state=0).fit(X)
        theirs = Nystroem(gamma=gamma, n_components=width, random_state=0).fit(X)
        out = empty((len(X), width), dtype)
        self.calls = {
            "gzkcore": lambda: ours.transform(X, out=out),
            "scikit-learn": lambda: theirs.transform(X),
        }
        self.maps = ours, theirs

    def track_times_faster(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), "scikit-learn", "gzkcore")[0]

    def track_error_gzkcore(self, dim, dtype, threads):
        K = Gaussian(0.5 / dim)(self.X[:1000])
        return float(spectral(K, self.maps[0].transform(self.X[:1000]).astype(np.float64)))

    def track_error_scikit_learn(self, dim, dtype, threads):
        K = Gaussian(0.5 / dim)(self.X[:1000])
        return float(spectral(K, self.maps[1].transform(self.X[:1000]).astype(np.float64)))
