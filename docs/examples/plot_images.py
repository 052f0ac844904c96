"""
Images: where in the photograph is this square?
===============================================

Squares of 128 by 128 pixels are cut out of a photograph, and every other row and column of them is
kept. A ridge regression predicts from these pixels alone where each square lay. Rows of 4,096
columns are wide: Fourier features spend most of their time on the product with the frequencies. In
:class:`gzkcore.BlockFourierFeatures` each frequency uses only a block of the pixels, so the time
hardly depends on the number of features. The example compares their error with scikit-learn's
RBFSampler, landmarks, the exact kernel, and a linear model without a kernel.
"""

# sphinx_gallery_thumbnail_number = 2

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from gzkcore import (
    BlockFourierFeatures,
    Gaussian,
    NystromFeatures,
    RandomFeatureRidgeCV,
    block_report,
)

# %%
# **Data**: one of the two photographs that come with scikit-learn, in grey. Squares overlap,
# those of the test with those of the fit too; it is their exact places that are new.

SIDE = 128
photograph = load_sample_images().images[0].mean(axis=2).astype(np.float32) / 255
rng = np.random.default_rng(0)
corners = np.column_stack([rng.integers(0, size - SIDE, 4000) for size in photograph.shape])
X = np.array([photograph[i : i + SIDE : 2, j : j + SIDE : 2].ravel() for i, j in corners])
middle = np.array(photograph.shape) / 2
y = corners + SIDE / 2 - middle  # rows and columns from the middle of the photograph
train, test = slice(0, 3000), slice(3000, 4000)
print(
    f"{X[train].shape[0]:,} squares to fit to, {len(X[test]):,} to judge by, {X.shape[1]:,} columns"
)


def distance(predicted):
    """Return the median distance between predicted and true middles, in points."""
    return np.median(np.linalg.norm(predicted - y[test], axis=1))


# %%
# **What blocks will do** to the kernel, with gamma two over the median squared distance.
# Neighbours in an image are alike. So blocks that get their points by turns (``"stratified"``,
# the default) are more alike than random ones, and the bias is less; with all points in one
# random order that is lost.

some = X[:300].astype(float)
squares = np.sum(some**2, axis=1)
distances = squares[:, None] + squares - 2 * some @ some.T
kernel = Gaussian(2 / np.median(distances[np.triu_indices(len(some), 1)]))
shuffled = np.ascontiguousarray(X[:300, rng.permutation(X.shape[1])])
cases = {
    "stratified": (X[:300], "stratified"),
    "permutation": (X[:300], "permutation"),
    "stratified, points shuffled": (shuffled, "stratified"),
}
print(f"{'bias of the kernel':<30}{'blocks of 8':>12}{'of 32':>9}{'of 128':>9}")
for name, (rows, how) in cases.items():
    biases = [
        block_report(rows, kernel, block_size=size, arrangement=how, n_draws=10).bias
        for size in (8, 32, 128)
    ]
    print(f"{name:<30}{biases[0]:>+12.4f}{biases[1]:>+9.4f}{biases[2]:>+9.4f}")

# %%
# **Without features**: a linear ridge on the points, and kernel ridge regression on the exact
# kernel, which for 3,000 squares can still be had.

errors, seconds = {}, {}
for name, models in {
    "linear": [Ridge(alpha) for alpha in (10.0, 100.0, 1000.0)],
    "exact kernel": [KernelRidge(alpha=a, kernel="rbf", gamma=kernel.gamma) for a in (0.003, 0.03)],
}.items():
    start = time.perf_counter()
    found = [distance(model.fit(X[train], y[train]).predict(X[test])) for model in models]
    seconds[name], errors[name] = (time.perf_counter() - start) / len(models), min(found)
    print(f"{name:<14}{errors[name]:>6.1f} points off, {seconds[name]:.1f} s")

# %%
# **Features.** The seconds are those of making the features of all squares, which is where the
# methods differ; the regression on them takes the same for all.

WIDTHS = [128, 256, 512, 1024]
methods = {
    "blocks of 32 points": lambda width: BlockFourierFeatures(kernel, width, random_state=0),
    "RBFSampler": lambda width: RBFSampler(gamma=kernel.gamma, n_components=width, random_state=0),
    "landmarks (Nystrom)": lambda width: NystromFeatures(
        kernel, width, landmarks="uniform", random_state=0
    ),
}
fitted = {}
for name, make in methods.items():
    errors[name], seconds[name] = [], []
    for width in WIDTHS:
        features = make(width).fit(X[train])
        start = time.perf_counter()
        features.transform(X)
        seconds[name].append(time.perf_counter() - start)
        fitted[name] = RandomFeatureRidgeCV(make(width), np.logspace(-4, 1, 11), cv=2)
        errors[name].append(distance(fitted[name].fit(X[train], y[train]).predict(X[test])))
print(f"{'points off':<24}" + "".join(f"{width:>8,}" for width in WIDTHS))
for name in methods:
    print(f"{name:<24}" + "".join(f"{error:>8.1f}" for error in errors[name]))
print("milliseconds")
for name in methods:
    print(f"{name:<24}" + "".join(f"{1e3 * value:>8.0f}" for value in seconds[name]))

# %%
# Blocks do as well as whole frequencies, in a small part of the time. But at equal width
# landmarks are far closer, since squares of one photograph lie near few dimensions, and 3,000
# rows are few enough for the exact kernel, which is the best of all. Blocks are for rows so
# wide, and so many, that the product is what can't be paid.

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
for name, marker in zip(methods, "osD", strict=True):
    axes[0].plot(WIDTHS, errors[name], marker=marker, label=name)
    axes[1].plot(WIDTHS, np.array(seconds[name]) * 1e6 / len(X), marker=marker)
for name, style in (("linear", ":"), ("exact kernel", "--")):
    axes[0].axhline(errors[name], color="black", linestyle=style, linewidth=1, label=name)
axes[0].set_ylabel("median distance from the true place, points")
axes[1].set_ylabel("time to make the features of a square, µs")
axes[0].set_ylim(0, None)
axes[1].set_yscale("log")
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set_xticks(WIDTHS, [f"{width:,}" for width in WIDTHS])
    ax.set_xlabel("number of features")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False
)

# %%
# **Fifty of the test squares**: from the true middle to the predicted one, by 1,024 landmarks.

figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
ax.imshow(photograph, cmap="gray")
told = fitted["landmarks (Nystrom)"].predict(X[test][:50])
for number, (true, found) in enumerate(zip(y[test][:50] + middle, told + middle, strict=True)):
    ax.plot(*zip(true[::-1], found[::-1], strict=True), color="C1", linewidth=1)
    ax.plot(*true[::-1], "o", color="C1", label="true middle" if number == 0 else None)
    label = "predicted" if number == 0 else None
    ax.plot(*found[::-1], "x", color="C5", markeredgewidth=2, label=label)
ax.set_xlim(0, photograph.shape[1])
ax.set_xlabel("points from the left")
ax.set_ylabel("points from the top")
ax.legend(loc="upper right")
plt.show()
