"""One small fitted model of every class that a file may hold, and its answers on a few rows.

`tests/data/models` keeps each as its version wrote it: NAME.gzk, and NAME.npz with the rows and the
answers. Every later version must load them and give the same answers. Started as a program, this
file writes the missing ones; existing ones are never overwritten.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import gzkcore as gzk
from gzkcore.rows.coded import CodedRows
from gzkcore.rows.frames import Frame
from gzkcore.solve.solve import conjugate_gradients
from gzkcore.solve.wide import CrossAccumulator
from gzkcore.tabular.fitted_table import FittedTable

FOLDER = Path(__file__).parent / "data" / "models"
N, DIM = 30, 3


def rows(unit):
    """Return rows: in space, on the sphere (unit), or a kernel matrix (unit="matrix")."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, DIM))
    if unit == "matrix":
        return gzk.Gaussian(0.5)(X)
    return X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X


def targets(X):
    return X[:, 0] * X[:, 1] + X[:, 2]


def noisy(X):
    """Targets that need no tiny alpha, whose predictions would depend on the processor."""
    return targets(X) + 0.1 * np.random.default_rng(0).standard_normal(len(X))


def labels(X):
    return np.where(targets(X) > 0, "up", "down")


def table(X):
    """Return a table with a column of every kind."""
    n = len(X)
    days = np.datetime64("2024-01-01") + np.arange(n) * np.timedelta64(30, "D")
    kinds = np.array(["flat", "house", None], dtype=object)[np.arange(n) % 3]
    latitudes, longitudes = 80 * np.sin(X[:, 0]), 170 * np.sin(X[:, 1])
    return Frame({
        "size": X[:, 2], "lat": latitudes, "lon": longitudes, "day": days, "kind": kinds,
        "always": np.ones(n),
    })  # fmt: skip


def of_file(X):
    """Return a model as the command leaves it."""
    model = gzk.KernelRegressor(cv=2, random_state=0).fit(X, noisy(X))
    model.table_ = FittedTable("y", ["", "na"])
    return model


# ---- what a model says of rows


def encoded(model, X):
    return {"transform": model.transform(table(X))}


def features(model, X):
    return {"transform": model.transform(X), "single": model.transform(X.astype(np.float32))}


def regression(model, X):
    mean, std = model.predict(X, return_std=True)
    return {"predict": mean, "std": std, "coef": model.coef_}


def whole_kernel(model, X):
    mean, std = model.predict(X, return_std=True)
    return {"predict": mean, "std": std, "intercept": np.asarray(model.intercept_)}


def in_single(model, X):
    """Answers that are computed in single precision."""
    return {name: np.float32(values) for name, values in whole_kernel(model, X).items()}


def with_levels(X):
    """Rows with the four levels of a category."""
    return np.hstack([X, np.eye(4)[np.arange(len(X)) % 4]])


def near_categories(X):
    coded = CodedRows.of(with_levels(X), [np.arange(DIM, DIM + 4)])
    return gzk.NearKernelRidge(gzk.Matern(1.5, 2.0), 0.1, n_neighbors=9).fit(coded, targets(X))


def varying_noise(_):
    """Fit to rows enough to tell that their noise grows with a column."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (240, DIM))
    y = np.sin(X[:, 0]) + np.exp(X[:, 1] - 1) * rng.standard_normal(240)
    return gzk.KernelRegressor(cv=2, random_state=0).fit(X, y)


def everything_chosen(model, X):
    mean, std = model.predict(X, return_std=True)
    return {"predict": mean, "std": std, "importances": model.feature_importances_}


def by_steps(model, X):
    steps = {"n_iter": model.n_iter_, "residual": model.residual_}
    return {"predict": model.predict(X), "coef": model.coef_} | steps


def classification(model, X):
    return {
        "decision": model.decision_function(X),
        "place": model.classes_.searchsorted(model.predict(X)),
    }


def prediction(model, X):
    return {"predict": model.predict(X), "intercept": np.asarray(model.intercept_)}


def probabilities(model, X):
    return classification(model, X) | {"probabilities": model.predict_proba(X)}


def components(model, X):
    return {"transform": model.transform(X), "variance": model.explained_variance_}


def correlations(model, X):
    return {"transform": model.transform(X), "correlations": model.canonical_correlations_}


def clusters(model, X):
    return {"predict": model.predict(X), "centers": model.cluster_centers_}


def numbers_of(model, _X):
    """Every array and number of what an accumulator comes to."""
    found = vars(model.finalize())
    return {k: np.asarray(v) for k, v in found.items() if isinstance(v, (np.ndarray, float, int))}


def values(model, X):
    return {"matrix": model(X, X[:7]), "diagonal": model.diag(X)}


def sums(progress, _X):
    return {"sums": progress.learner.moments_.sums}


# ---- the models


def small(kind, *args, **options):
    return getattr(gzk, kind)(*args, n_components=16, random_state=0, **options)


def radial(norms):
    """Three degrees of one function each: 1, t, t^2 / 2."""
    t = np.asarray(norms, dtype=float)
    return np.stack([np.ones_like(t), t, t * t / 2], axis=-1)[..., None]


FEATURES = {
    "harmonic": (lambda: small("GegenbauerFeatures", "gaussian", basis="harmonic", tol=1e-3), False),
    "random": (lambda: small("GegenbauerFeatures", gzk.Gaussian(0.5), basis="random", tol=1e-3), False),
    "hybrid": (lambda: small("GegenbauerFeatures", gzk.Gaussian(9.0), basis="hybrid"), True),
    "adapted": (lambda: small("GegenbauerFeatures", gzk.Gaussian(0.5), basis="adapted", tol=1e-3), False),
    "matern": (lambda: small("GegenbauerFeatures", "matern"), True),
    "columns": (lambda: small("GegenbauerFeatures", gzk.Gaussian([0.1, 0.5, 2.0]), tol=1e-3), False),
    "zonal": (lambda: small("GegenbauerFeatures", gzk.Zonal(np.exp)), True),
    "tangent": (lambda: small("GegenbauerFeatures", "ntk"), False),
    "generalized": (lambda: small("GegenbauerFeatures", gzk.GeneralizedZonal(radial), basis="random"), False),
    "published": (lambda: gzk.PublishedGegenbauerFeatures(gzk.Gaussian(0.5), 16, degree=5, order=2, random_state=0), False),
    "product": (lambda: gzk.ProductFeatures([(0, "gaussian"), ([1, 2], "gaussian")], 16, random_state=0), False),
    "product-adapted": (lambda: gzk.ProductFeatures("gaussian", 8, basis="adapted", random_state=0), False),
    "fourier": (lambda: small("RandomFourierFeatures", "matern"), False),
    "modified": (lambda: small("ModifiedFourierFeatures", gzk.Gaussian(0.5)), False),
    "fastfood": (lambda: small("FastfoodFeatures", "gaussian"), False),
    "maclaurin": (lambda: small("MaclaurinFeatures", gzk.Polynomial(3)), False),
    "nystrom": (lambda: small("NystromFeatures", "matern"), False),
    "nystrom-precomputed": (lambda: small("NystromFeatures", "precomputed"), "matrix"),
    "adaptive": (lambda: small("AdaptiveSketchFeatures", gzk.Gaussian(0.5)), False),
    "poly-sketch": (lambda: small("PolySketchFeatures", gzk.Polynomial(3)), False),
    "count-sketch": (lambda: small("CountSketch"), False),
    "tensor-sketch": (lambda: small("TensorSketchFeatures", gzk.Polynomial(3)), False),
    "fast-jl": (lambda: small("FastJLProjection"), False),
    "hadamard": (lambda: small("HadamardProjection"), False),
    "block-projection": (lambda: small("BlockProjection"), False),
    "block-fourier": (lambda: small("BlockFourierFeatures", "gaussian"), False),
    "block-mix": (lambda: small("BlockFourierFeatures", "exponential", mix="hadamard"), False),
    "mean-normalizer": (gzk.MeanNormalizer, False),
    "kernel-features": (lambda: small("KernelFeatures", "gaussian"), False),
}  # fmt: skip


def nine(kernel="gaussian"):
    return gzk.GegenbauerFeatures(kernel, n_components=9, basis="harmonic", random_state=0)


class Fitted:
    """A maker of a fitted model, which also fits one again."""

    def __init__(self, model, y=None):
        self.model, self.y = model, y

    def __call__(self, X):
        return self.again(clone(self.model), X)

    def again(self, model, X):
        return model.fit(X) if self.y is None else model.fit(X, self.y(X))


LEARNERS = {
    "ridge": (Fitted(gzk.RandomFeatureRidge(nine(), 0.1), targets), regression),
    "ridge-cg": (Fitted(gzk.RandomFeatureRidge(nine(), 0.1, solver="cg"), targets), by_steps),
    "ridge-two-targets": (Fitted(gzk.RandomFeatureRidge(nine(), [0.1, 1.0]), lambda X: X[:, :2] ** 2), regression),
    "ridge-frozen": (lambda X: gzk.RandomFeatureRidge(FrozenEstimator(nine().fit(X)), 0.1).fit(X, targets(X)), regression),
    "series-ridge": (Fitted(gzk.SeriesRidge(gzk.Gaussian(0.5), 0.5, degree=6), targets), prediction),
    "ridge-cv": (
        Fitted(
            gzk.RandomFeatureRidgeCV(
                nine(), alphas=[0.1, 1.0], kernel_grid={"gamma": [0.5, 2.0]}, cv=2
            ),
            targets,
        ),
        regression,
    ),
    "ridge-cv-generalized": (Fitted(gzk.RandomFeatureRidgeCV(nine()), targets), regression),
    "classifier": (Fitted(gzk.RandomFeatureRidgeClassifier(nine(), 0.1), labels), classification),
    "classifier-cv": (Fitted(gzk.RandomFeatureRidgeClassifierCV(nine(), alphas=[0.1, 1.0]), labels), classification),
    "kernel-ridge": (Fitted(gzk.KernelRidge(gzk.Matern(1.5), 0.1, fit_intercept=True), targets), whole_kernel),
    "kernel-ridge-two-targets": (Fitted(gzk.KernelRidge(alpha=[0.1, 1.0]), lambda X: X[:, :2] ** 2), whole_kernel),
    "kernel-ridge-centers": (Fitted(gzk.KernelRidge(gzk.Matern(1.5), 0.1, centers=9, random_state=0), targets), whole_kernel),
    "kernel-ridge-cv": (
        Fitted(
            gzk.KernelRidgeCV(alphas=[0.1, 1.0], kernel_grid={"gamma": [0.5, 2.0]}, cv=2), targets
        ),
        whole_kernel,
    ),
    "kernel-ridge-classifier": (Fitted(gzk.KernelRidgeClassifier(alpha=0.1), labels), classification),
    "kernel-ridge-classifier-cv": (Fitted(gzk.KernelRidgeClassifierCV(alphas=[0.1, 1.0], cv=2), labels), classification),
    "near-kernel-ridge": (
        Fitted(
            gzk.NearKernelRidge(
                gzk.Sum([(0, gzk.Gaussian(0.5)), ([1, 2], gzk.Matern())]), 0.1, n_neighbors=9,
                trend="linear", random_state=0,
            ),
            targets,
        ),
        in_single,
    ),
    "near-categories": (near_categories, lambda model, X: in_single(model, with_levels(X))),
    "kernel-poisson": (Fitted(gzk.KernelPoissonRegressor(alpha=0.1), lambda X: np.round(5 * X[:, 0] ** 2)), prediction),
    "kernel-huber": (Fitted(gzk.KernelHuberRegressor(alpha=0.1), targets), prediction),
    "kernel-quantile": (Fitted(gzk.KernelQuantileRegressor(alpha=0.1, quantile=0.8), targets), prediction),
    "kernel-quantiles": (Fitted(gzk.KernelQuantileRegressor(alpha=0.1, quantile=[0.9, 0.1]), targets), prediction),
    "kernel-logistic": (Fitted(gzk.KernelLogisticRegression(alpha=0.1), labels), probabilities),
    "kernel-regressor": (of_file, everything_chosen),
    "kernel-regressor-noise": (varying_noise, everything_chosen),
    "kernel-classifier": (Fitted(gzk.KernelClassifier(cv=2, random_state=0), labels), classification),
    "table-encoder": (lambda X: gzk.TableEncoder().fit(table(X)), encoded),
    "pca": (Fitted(gzk.RandomFeaturePCA(nine(), n_components=3)), components),
    "cca": (Fitted(gzk.RandomFeatureCCA(nine(), nine(), n_components=2), lambda X: X[:, ::-1] ** 3), correlations),
    "kmeans": (Fitted(gzk.RandomFeatureKMeans(nine(), n_clusters=3, random_state=0)), clusters),
}  # fmt: skip
ACCUMULATORS = {
    "cross": (lambda X: CrossAccumulator(nine().fit(X)).update(X, targets(X)), lambda m, _: {"sums": m.sums}),
    "gram": (lambda X: gzk.GramAccumulator(nine().fit(X), 1).update(X, targets(X)), numbers_of),
    "moments": (lambda X: gzk.MomentsAccumulator(nine().fit(X)).update(X), numbers_of),
    "cluster-sums": (lambda X: gzk.ClusterAccumulator(nine().fit(X), nine().fit_transform(X)[:3]).update(X), numbers_of),
}  # fmt: skip
KERNELS = {
    "ArcCosine": lambda: gzk.ArcCosine(1), "DotProduct": lambda: gzk.DotProduct([1.0, 0.5, 0.25]),
    "Exponential": lambda: gzk.Exponential(0.5), "ExponentialDot": lambda: gzk.ExponentialDot(0.5),
    "Gaussian": lambda: gzk.Gaussian([0.5, 1.0, 2.0]), "Laplacian": lambda: gzk.Laplacian(0.5),
    "Matern": lambda: gzk.Matern(2.5, 2.0), "NeuralTangent": lambda: gzk.NeuralTangent(3, normalize=True),
    "Polynomial": lambda: gzk.Polynomial(3), "RationalQuadratic": lambda: gzk.RationalQuadratic(2.0),
    "ProductMatern": lambda: gzk.ProductMatern(2.5, [0.5, 1.0, 2.0], [0, 0, 1]),
    "SphereHeat": lambda: gzk.SphereHeat(0.1), "SphereMatern": lambda: gzk.SphereMatern(1.5, 0.5),
    "Spherical": lambda: gzk.Spherical(2.0), "Zonal": lambda: gzk.Zonal(coefficients=[0.3, 0.5, 0.2]),
    "Product": lambda: gzk.Product([(0, gzk.Gaussian(0.5)), ([1, 2], gzk.Matern())]),
    "Sum": lambda: gzk.Sum([(0, gzk.Gaussian(0.5)), ([1, 2], gzk.Matern())], [0.5, 2.0]),
    "Transformed": lambda: gzk.Transformed(gzk.Matern(), [[1.0, 0.5, 0.0], [0.0, 1.0, -2.0]]),
}  # fmt: skip
ON_SPHERE = {"SphereHeat", "SphereMatern", "Zonal"}


class Batches:
    """Two batches; with `cut` the second never comes."""

    def __init__(self, X, cut):
        self.X, self.cut = X, cut

    def __iter__(self):
        yield self.X[:20], targets(self.X[:20])
        if self.cut:
            raise KeyboardInterrupt
        yield self.X[20:], targets(self.X[20:])


def half_fitted(X):
    """Return the learner that the checkpoint is of."""
    return gzk.RandomFeatureRidge(FrozenEstimator(nine(gzk.Gaussian(0.5)).fit(X)), 0.1)


def write_checkpoint(X, path):
    """Leave the checkpoint of a fit that is cut off after its first batch."""
    try:
        half_fitted(X).fit(Batches(X, cut=True), checkpoint=gzk.Checkpoint(path, seconds=1e-9))
    except KeyboardInterrupt:
        return
    raise AssertionError("the fit was not cut off")


def unknowns(state, _X):
    return {"x": state.x, "r": state.r, "history": state.history}


def write_solution(X, path):
    """Leave the checkpoint of a linear system whose product fails in the fifth step."""
    diagonal, products = np.arange(1.0, len(X) + 1)[:, None], []

    def product(V):
        products.append(None)
        if len(products) > 5:
            raise KeyboardInterrupt
        return diagonal * V

    checkpoint = gzk.Checkpoint(path, seconds=1e-9)
    try:
        conjugate_gradients(product, X, np.ones(DIM), checkpoint=checkpoint)
    except KeyboardInterrupt:
        return
    raise AssertionError("the solver was not cut off")


CHECKPOINTS = {"checkpoint": (write_checkpoint, sums), "solution": (write_solution, unknowns)}


def cases():
    """Yield (name, unit rows?, maker of the fitted model, what it says)."""
    for name, (make, unit) in FEATURES.items():
        yield name, unit, Fitted(make()), features
    for name, (make, say) in (LEARNERS | ACCUMULATORS).items():
        yield name, True, make, say
    for name, make in KERNELS.items():
        yield f"kernel-{name}", name in ON_SPHERE, lambda X, make=make: make().resolve(X), values


def write(name, X, say, leave):
    """Let `leave` write a file that isn't there yet, and keep what is said of it."""
    path = FOLDER / f"{name}.gzk"
    if path.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    leave(X, path)
    answers = say(gzk.load(path), X)
    np.savez_compressed(FOLDER / f"{name}.npz", X=X, **answers)


if __name__ == "__main__":
    for name, unit, make, say in cases():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        write(name, rows(unit), say, lambda X, path, make=make: gzk.save(make(X), path))
    for name, (leave, say) in CHECKPOINTS.items():
        write(name, rows(True), say, leave)
