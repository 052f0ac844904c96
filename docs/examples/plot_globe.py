"""
Elevation of the Earth: regression on a globe
=============================================

On a sphere the features of a zonal kernel are spherical harmonics, the same ones for every
lengthscale: the kernel only multiplies each column by a factor. So one pass over the data serves a
whole grid of lengthscales. The example fits the elevation of a quarter of the Earth's 64,800 cells
of one degree with 576 features, all harmonics of degree below 24. For comparison scikit-learn's
samplers get the same task; they need one pass for each lengthscale.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import TwoSlopeNorm
from sklearn.kernel_approximation import Nystroem, RBFSampler
from threadpoolctl import threadpool_limits

from gzkcore import GegenbauerFeatures, LatLonToSphere, RandomFeatureRidgeCV
from gzkcore.datasets import load

# %%
# **Data.** Latitude and longitude become points on the unit sphere, where 180° W and 180° E are
# neighbours and the poles are points like any other. A quarter of the cells is fitted to, the
# others are for the test.

try:
    data = load("elevation_1deg")
except FileNotFoundError:
    data = load("elevation")  # from NOAA, some 300 MB, once
X = LatLonToSphere().transform(np.column_stack([data.lat, data.lon]).astype(float))
y = np.asarray(data.elevation_m) / 1000
order = np.random.default_rng(0).permutation(len(y))
train, test = order[: len(y) // 4], order[len(y) // 4 :]
print(f"{len(train):,} cells to fit to, {len(test):,} to judge by; variance {y.var():.2f} km²")

# %%
# **Three sets of features of equal width**, with the kernel exp(-gamma |x - y|²) and the same
# ridge regression, which chooses gamma and alpha by cross-validation on the training cells. The
# first has a grid of 13 gammas, since it needs one pass for all; the others have three of
# these, and need a pass for each.

WIDTH = 576
GAMMAS = 2.0 ** np.arange(3, 9.5, 0.5)
THREE = GAMMAS[[2, 6, 10]]
maps = {
    "GegenbauerFeatures": (GegenbauerFeatures(n_components=WIDTH, random_state=0), GAMMAS),
    "RBFSampler": (RBFSampler(n_components=WIDTH, random_state=0), THREE),
    "Nystroem": (Nystroem(n_components=WIDTH, random_state=0), THREE),
}
models = {}
print(f"{'features':<20}{'gamma':>8}{'alpha':>9}{'test error, km²':>17}{'seconds':>9}")
for name, (features, gammas) in maps.items():
    start = time.perf_counter()
    model = RandomFeatureRidgeCV(
        features, alphas=np.logspace(-7, 2, 19), kernel_grid={"gamma": gammas.tolist()}, cv=2
    )
    with threadpool_limits(1, "blas"):  # on a busy machine more threads wait for one another
        models[name] = model.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    error = np.mean((model.predict(X[test]) - y[test]) ** 2)
    gamma, alpha = model.best_params_["gamma"], model.alpha_
    print(f"{name:<20}{gamma:>8g}{alpha:>9.2g}{error:>17.3f}{seconds:>9.1f}")

# %%
# The errors are near one another, and none is ahead everywhere: landmarks lie where the data
# are, which is worth a little here. What differs is the time, since only the first needs one
# pass for all lengthscales, and what the result depends on: the harmonics draw nothing at
# random.
#
# The cells between the training cells are their neighbours, so this is interpolation. And cells
# of one degree are smaller towards the poles: an error in km² by area would need weights.

fitted = models["GegenbauerFeatures"].predict(X).reshape(180, 360)
norm = TwoSlopeNorm(0, -6, 6)
figure, axes = plt.subplots(2, 1, figsize=(8, 7), layout="constrained", sharex=True)
for ax, values, title in (
    (axes[0], y.reshape(180, 360), "Measured, 64,800 cells"),
    (axes[1], fitted, f"Fitted to a quarter of them with {WIDTH:,} features"),
):
    picture = ax.imshow(
        values, origin="lower", extent=(-180, 180, -90, 90), cmap="BrBG_r", norm=norm
    )
    ax.set_title(title, loc="left")
    ax.set_xticks(range(-180, 181, 60), ["180°", "120°W", "60°W", "0°", "60°E", "120°E", "180°"])
    ax.set_yticks(range(-90, 91, 30), ["90°S", "60°S", "30°S", "0°", "30°N", "60°N", "90°N"])
bar = figure.colorbar(picture, ax=axes, label="elevation, km", shrink=0.6)
bar.ax.set_yscale("linear")

# %%
# **Cross-validation** shows how much the choice of gamma matters to each. All harmonics of
# degree below 24 span the same functions whatever gamma is, and gamma only weighs them; the
# columns of the other two are others for every gamma, and at a wrong one they are of little
# use.

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, model), marker in zip(models.items(), "osD", strict=True):
    found = model.cv_results_
    of_gamma = np.array([params["gamma"] for params in found["params"]])
    gammas = maps[name][1]
    best = [-found["mean_test_score"][of_gamma == gamma].max() for gamma in gammas]
    ax.plot(gammas, best, marker=marker, label=name)
ax.set_xscale("log", base=2)
ax.set_xticks(GAMMAS[::2], [f"{gamma:g}" for gamma in GAMMAS[::2]])
ax.set_xlabel("gamma, in units of one over the Earth's radius squared")
ax.set_ylabel("cross-validated squared error, km²")
ax.set_title("The best alpha for each gamma", loc="left")
ax.legend(frameon=False)
plt.show()
