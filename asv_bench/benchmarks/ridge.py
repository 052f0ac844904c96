"""Kernel ridge regression on features against scikit-learn's pipeline and exact kernel ridge."""

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from gzkcore import Gaussian, GegenbauerFeatures
from gzkcore.ridge import RandomFeatureRidge, RandomFeatureRidgeCV

from .common import data_generator, sphere

GAMMA, ALPHA, WIDTH = 20.0, 1e-3, 512


def gegenbauer():
    return GegenbauerFeatures(Gaussian(GAMMA), WIDTH, random_state=0)


def fourier():
    return RBFSampler(gamma=GAMMA, n_components=WIDTH, random_state=0)


MODELS = {
    "gegenbauer": lambda: RandomFeatureRidge(gegenbauer(), alpha=ALPHA),
    "RBFSampler, ours": lambda: RandomFeatureRidge(fourier(), alpha=ALPHA),
    "RBFSampler, Ridge": lambda: make_pipeline(fourier(), Ridge(alpha=ALPHA)),
    "Nystroem, Ridge": lambda: make_pipeline(
        Nystroem(gamma=GAMMA, n_components=WIDTH, random_state=0), Ridge(alpha=ALPHA)
    ),
    "KernelRidge": lambda: KernelRidge(alpha=ALPHA, kernel="rbf", gamma=GAMMA),
}


def problem(n, seed):
    """Return a rough function on the globe, and noise."""
    X = sphere(n, 3, seed=seed)
    rng = data_generator(100)
    centers = rng.standard_normal((40, 3))
    y = np.sin(3 * X @ centers.T) @ rng.standard_normal(40) / np.sqrt(40)
    return X, y, y + 0.1 * data_generator(200 + seed).standard_normal(n)


class Fit:
    """One alpha, 512 features, 30,000 rows; the exact kernel ridge has 3,000, n^3 being n^3."""

    params = (list(MODELS),)
    param_names = ("model",)

    def setup(self, name):
        self.X, _, self.y = problem(3_000 if name == "KernelRidge" else 30_000, 1)
        self.test, self.truth, _ = problem(5_000, 2)
        self.model = MODELS[name]().fit(self.X, self.y)

    def time_fit(self, name):
        MODELS[name]().fit(self.X, self.y)

    def time_predict(self, name):
        self.model.predict(self.test)

    def peakmem_fit(self, name):
        MODELS[name]().fit(self.X, self.y)

    def track_error(self, name):
        """Root mean square against the function without noise, on other points."""
        return float(np.sqrt(np.mean(np.square(self.model.predict(self.test) - self.truth))))


class Choose:
    """Two lengthscales and 21 alphas by 2-fold cross-validation, against the same at one alpha."""

    params = ([("gamma 10, 20, 21 alphas", True), ("one candidate", False)],)
    param_names = ("candidates",)

    def setup(self, candidates):
        self.X, _, self.y = problem(30_000, 1)
        self.test, self.truth, _ = problem(5_000, 2)

    def fit(self, candidates):
        if not candidates[1]:
            return MODELS["gegenbauer"]().fit(self.X, self.y)
        return RandomFeatureRidgeCV(gegenbauer(), kernel_grid={"gamma": [10.0, 20.0]}, cv=2).fit(
            self.X, self.y
        )

    def time_fit(self, candidates):
        self.fit(candidates)

    def peakmem_fit(self, candidates):
        self.fit(candidates)

    def track_error(self, candidates):
        predicted = self.fit(candidates).predict(self.test)
        return float(np.sqrt(np.mean(np.square(predicted - self.truth))))
