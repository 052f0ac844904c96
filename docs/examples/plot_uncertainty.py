"""
Uncertainty: a Gaussian process in linear time
==============================================

Ridge regression on features is a Gaussian process whose kernel is the inner product of the
features. So it can predict a standard deviation too: ``predict(X, return_std=True)``. The example
compares mean and standard deviation with scikit-learn's exact GaussianProcessRegressor, inside the
data, in a gap and beyond the ends. It shows which features are overconfident.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureRidge, RandomFourierFeatures

# %%
# **Data**: a wave with noise of 0.2, no data between 0 and 3, and a look beyond both ends.

rng = np.random.default_rng(0)
NOISE, GAMMA, ALPHA = 0.2, 0.5, 0.04


def wave(x):
    """Return what is to be found."""
    return np.sin(1.5 * x) + 0.3 * np.cos(4 * x)


def draw(n):
    """Return n places and noisy values."""
    x = np.concatenate([rng.uniform(-5, 0, n - n // 3), rng.uniform(3, 5, n // 3)])
    return x[:, None], wave(x) + NOISE * rng.standard_normal(n)


X, y = draw(300)
grid = np.linspace(-7, 7, 701)[:, None]

# %%
# **Two ways to the same.** With noise of variance s², a ridge of alpha stands for a prior of
# variance s²/alpha. The ridge estimates s² from its residuals, so the exact process gets that
# very number: then both are the same model, without an intercept. ``radius`` says how far
# predictions will reach: features are exact as far as that, and warn beyond.

features = GegenbauerFeatures(Gaussian(GAMMA), n_components=64, radius=7.0)
start = time.perf_counter()
ridge = RandomFeatureRidge(features, alpha=ALPHA, fit_intercept=False).fit(X, y)
mean, std = ridge.predict(grid, return_std=True)
ours = time.perf_counter() - start

s2 = ridge.noise_variance_
prior = ConstantKernel(s2 / ALPHA) * RBF(1 / np.sqrt(2 * GAMMA)) + WhiteKernel(s2)
start = time.perf_counter()
process = GaussianProcessRegressor(prior, optimizer=None).fit(X, y)
exact_mean, exact_std = process.predict(grid, return_std=True)
theirs = time.perf_counter() - start
print(f"estimated noise {np.sqrt(s2):.3f}, true {NOISE}")
print(f"largest difference of means {np.abs(mean - exact_mean).max():.1e}")
print(
    f"largest difference of standard deviations {np.abs(std / exact_std - 1).max():.0e}, relative"
)

# %%

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
ax.plot(X, y, ".", color="0.6", markersize=4, label="data")
ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25, label="± 2 deviations")
ax.plot(grid, mean, color="C0", label="ridge on 64 features")
ax.plot(grid, exact_mean, "--", color="black", linewidth=1, label="exact process")
for sign in (-2, 2):
    ax.plot(grid, exact_mean + sign * exact_std, "--", color="black", linewidth=1)
ax.plot(grid, wave(grid), ":", color="C3", label="truth")
ax.set_xlabel("x")
ax.set_ylabel("y")
ax.set_title("One model, two ways", loc="left")
figure.legend(frameon=False, ncols=5, loc="outside lower center")

# %%
# **Which features know what they don't know?** Both have 14 columns now, which is few.
# Gegenbauer features know how much of the kernel they leave out, and the ridge adds it to the
# variance. Fourier features have k(x, x) = 1 whatever they miss elsewhere; with few of them
# nothing is left to be unsure about, and far from the data the band stays narrow. This is known
# as variance starvation.

x_new = np.concatenate([rng.uniform(-5, 0, 2000), rng.uniform(3, 5, 1000)])[:, None]
y_new = wave(x_new[:, 0]) + NOISE * rng.standard_normal(3000)
FEW = 14
maps = {
    "GegenbauerFeatures": GegenbauerFeatures(Gaussian(GAMMA), FEW, radius=7.0),
    "RandomFourierFeatures": RandomFourierFeatures(Gaussian(GAMMA), FEW, random_state=0),
}
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
middle, beyond = int(np.argmin(np.abs(grid - 1.5))), len(grid) - 1
print(f"{'standard deviation':<28}{'at 1.5':>8}{'at 7':>8}{'near data':>11}{'within 2':>10}")


def report(name, model):
    """Print how sure a model is, and the share of new data within two deviations."""
    _, std = model.predict(grid, return_std=True)
    mean_new, std_new = model.predict(x_new, return_std=True)
    inside = np.mean(np.abs(mean_new - y_new) < 2 * std_new)
    sure = std[middle], std[beyond], np.median(std_new)
    print(f"{name:<28}{sure[0]:>8.2f}{sure[1]:>8.2f}{sure[2]:>11.3f}{inside:>10.1%}")


report("exact", process)
for ax, (name, some) in zip(axes, maps.items(), strict=True):
    model = RandomFeatureRidge(some, alpha=ALPHA, fit_intercept=False).fit(X, y)
    report(name, model)
    mean, std = model.predict(grid, return_std=True)
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25)
    ax.plot(grid, mean, label=f"ridge on {FEW} features, ± 2 deviations")
    for sign in (-2, 2):
        ax.plot(grid, exact_mean + sign * exact_std, "--", color="black", linewidth=1)
    ax.plot([], [], "--", color="black", linewidth=1, label="exact process, ± 2 deviations")
    ax.plot(X, y, ".", color="0.6", markersize=3)
    ax.set_xlabel("x")
    ax.set_title(name, loc="left")
axes[0].set_ylabel("y")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)

# %%
# **Time.** The exact process takes n³ operations, the ridge n; so the one ends where the other
# begins.

print(f"{'rows':>9}{'ridge, s':>10}{'exact, s':>10}")
print(f"{len(y):>9,}{ours:>10.3f}{theirs:>10.3f}")
for n in (1000, 2000, 100_000):
    X, y = draw(n)
    start = time.perf_counter()
    RandomFeatureRidge(features, alpha=ALPHA, fit_intercept=False).fit(X, y).predict(
        grid, return_std=True
    )
    middle = time.perf_counter()
    line = f"{n:>9,}{middle - start:>10.3f}"
    if n <= 2000:
        GaussianProcessRegressor(prior, optimizer=None).fit(X, y).predict(grid, return_std=True)
        line += f"{time.perf_counter() - middle:>10.3f}"
    print(line)
plt.show()
