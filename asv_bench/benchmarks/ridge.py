"""Ridge regression in one pass, against syrk alone and scikit-learn on explicit features."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from gzkcore import Gaussian, GegenbauerFeatures, GramAccumulator, RandomFourierFeatures
from gzkcore.learn.ridge import RandomFeatureRidge
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV

from .common import data_generator, interleave, largest_error, ratio, sphere
from .gram import syrk

GLOBE = 16_200  # points of a grid of two degrees
N_COMPONENTS = 512


def globe(n=GLOBE):
    """Return points on the sphere and something rough to predict."""
    X = sphere(n, 3)
    noise = data_generator(1).standard_normal(n)
    return X, np.sin(9 * X[:, 0]) * X[:, 1] + np.abs(X[:, 2]) + 0.3 * noise


FEATURES = {
    # Degree 15, as for the figures of the features alone.
    "gegenbauer": lambda: GegenbauerFeatures(
        Gaussian(0.5), N_COMPONENTS, basis="random", tol=1e-12, random_state=0
    ),
    "harmonic": lambda: GegenbauerFeatures(Gaussian(0.5), N_COMPONENTS, basis="harmonic"),
    "RBFSampler": lambda: RBFSampler(gamma=0.5, n_components=N_COMPONENTS, random_state=0),
}


class Wide:
    """Conjugate gradients on wide features against the Cholesky factor of their Gram matrix."""

    params = (["cg", "cholesky"], ["float32", "float64"])
    param_names = ("solver", "dtype")

    def setup(self, solver, dtype):
        X, self.y = globe(4096)
        self.X = X.astype(dtype)
        self.features = RandomFourierFeatures(Gaussian(9.0), 4096, random_state=0)

    def fit(self, solver):
        return RandomFeatureRidge(self.features, 0.1, solver=solver).fit(self.X, self.y)

    def time_fit(self, solver, dtype):
        self.fit(solver)

    def peakmem_fit(self, solver, dtype):
        self.fit(solver)

    def track_error(self, solver, dtype):
        """Difference of the predictions from those by Cholesky in double, relative to y."""
        wanted = RandomFeatureRidge(self.features, 0.1, solver="cholesky")
        apart = self.fit(solver).predict(self.X)
        apart = apart - wanted.fit(self.X.astype(np.float64), self.y).predict(self.X)
        return float(np.sqrt(np.mean(np.square(apart))) / self.y.std())

    def track_steps(self, solver, dtype):
        return int(self.fit(solver).n_iter_)


class Fit:
    """The whole fit at one alpha, the same in scikit-learn, and syrk of the same shape."""

    params = (list(FEATURES),)
    param_names = ("features",)

    def setup(self, features):
        self.X, self.y = globe()
        self.limit = syrk(FEATURES[features]().fit(self.X).transform(self.X))

    def ours(self, features):
        return RandomFeatureRidge(FEATURES[features](), alpha=1e-3).fit(self.X, self.y)

    def theirs(self, features):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            return make_pipeline(FEATURES[features](), Ridge(1e-3)).fit(self.X, self.y)

    def time_gzkcore(self, features):
        self.ours(features)

    def time_sklearn(self, features):
        self.theirs(features)

    def time_syrk(self, features):
        self.limit()

    def peakmem_gzkcore(self, features):
        self.ours(features)

    def peakmem_sklearn(self, features):
        self.theirs(features)

    def track_times_of_syrk(self, features):
        """The pass alone: what remains is one Cholesky factorisation, `time_solve`."""
        model = self.ours(features)
        calls = {
            "ours": lambda: self.ours(features),
            "solve": model._solve,
            "fit": lambda: FEATURES[features]().fit(self.X),
            "syrk": self.limit,
        }
        times = interleave(calls)
        times["pass"] = times["ours"] - times["solve"] - times["fit"]
        return ratio(times, "pass", "syrk")[0]

    track_times_of_syrk.unit = "times"

    def time_solve(self, features):
        if not hasattr(self, "model"):
            self.model = self.ours(features)
        self.model._solve()

    def track_error_gzkcore(self, features):
        new = sphere(1000, 3, seed=2)
        return largest_error(self.ours(features).predict(new), self.theirs(features).predict(new))


class Predict:
    """Predictions for all rows, beside scikit-learn's on features that fill the memory."""

    params = (list(FEATURES),)
    param_names = ("features",)

    def setup(self, features):
        self.X, self.y = globe()
        self.model = RandomFeatureRidge(FEATURES[features](), alpha=1e-3)
        self.model.fit(self.X[:5000], self.y[:5000])

    def time_gzkcore(self, features):
        self.model.predict(self.X)

    def time_with_std(self, features):
        self.model.predict(self.X[:10_000], return_std=True)

    def time_sklearn(self, features):
        model = self.model
        return model.features_.transform(self.X) @ model.coef_ + model.intercept_

    def peakmem_gzkcore(self, features):
        self.model.predict(self.X)

    def track_error_gzkcore(self, features):
        return largest_error(self.model.predict(self.X), self.time_sklearn(features))


class Choose:
    """Forty candidates, eight lengthscales times five alphas, from the moments of one pass."""

    params = ([5, None], ["even", "hemisphere"])
    param_names = ("cv", "data")

    def setup(self, cv, data):
        self.X, self.y = globe()
        if data == "hemisphere":  # ill conditioned: nothing is known of the other half
            self.X[:, 2] = np.abs(self.X[:, 2])
        self.model = RandomFeatureRidgeCV(
            GegenbauerFeatures(n_components=N_COMPONENTS, basis="harmonic"),
            alphas=np.logspace(-6, 0, 5),
            kernel_grid={"gamma": np.logspace(0, 2.5, 8).tolist()},
            cv=cv,
        ).fit(self.X, self.y)

    def time_choose(self, cv, data):
        self.model._solve()

    def time_whole_fit(self, cv, data):
        self.model.fit(self.X, self.y)

    def peakmem_whole_fit(self, cv, data):
        self.model.fit(self.X, self.y)

    def track_percent_of_pass(self, cv, data):
        features = self.model.moments_.features
        calls = {
            "choose": self.model._solve,
            "pass": lambda: GramAccumulator(features).update(self.X, self.y),
        }
        return 100 * ratio(interleave(calls), "choose", "pass")[0]

    track_percent_of_pass.unit = "%"

    def track_error(self, cv, data):
        """The score of the choice against that of a new fit for each fold, on fewer rows."""
        X, y = self.X[:4000], self.y[:4000]
        model = RandomFeatureRidgeCV(**self.model.get_params(deep=False)).fit(X, y)
        if cv is None:
            n, freedom = len(y), model.degrees_of_freedom_
            return abs(model.noise_variance_ * n / (n - freedom) / -model.best_score_ - 1)
        Z = model.features_.transform(X)
        folds = np.arange(len(y)) % cv
        errors = np.empty(len(y))
        for fold in range(cv):
            other = Ridge(model.alpha_, solver="cholesky").fit(Z[folds != fold], y[folds != fold])
            errors[folds == fold] = y[folds == fold] - other.predict(Z[folds == fold])
        return abs(np.mean(np.square(errors)) / -model.best_score_ - 1)


class Millions:
    """Two million rows from a memory map: memory does not grow with them."""

    params = ([200_000, 2_000_000],)
    param_names = ("rows",)

    def setup(self, rows):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "X.npy")
        np.save(path, sphere(rows, 3))
        self.X = np.load(path, mmap_mode="r")
        self.y = np.asarray(self.X[:, 0] * self.X[:, 1])

    def teardown(self, rows):
        self.folder.cleanup()

    def peakmem_fit(self, rows):
        features = GegenbauerFeatures(Gaussian(0.5), 64, basis="harmonic")
        RandomFeatureRidge(features, alpha=1e-3).fit(self.X, self.y)
