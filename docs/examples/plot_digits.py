"""
Digits: a linear SVM on features against the RBF SVM
====================================================

A support vector machine with the RBF kernel takes time that grows like the square of the
number of rows, or faster. On features of that kernel a *linear* machine does the same job, in
time that grows like the number of rows. How many features does that take, and beyond how many rows
is it faster?

The data are scikit-learn's digits, images of 8 by 8 pixels. Copies of each, shifted by one pixel in
each of four directions, make the table five times as long, and the task harder.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import shift
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC

from gzkcore import Gaussian, NystromFeatures, RandomFeatureRidgeClassifier, RandomFourierFeatures

# %%
# **Data.** Images are split first and shifted then, so that no digit is on both sides.

digits = load_digits()
MOVES = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]


def shifted(images, labels):
    """Return five versions of each image, as rows of numbers from 0 to 1, in random order."""
    moved = [shift(images, (0, *move), order=0).reshape(len(images), -1) for move in MOVES]
    order = np.random.default_rng(0).permutation(len(MOVES) * len(images))
    return np.concatenate(moved)[order] / 16, np.tile(labels, len(MOVES))[order]


halves = train_test_split(
    digits.images, digits.target, test_size=0.5, stratify=digits.target, random_state=0
)
X, y = shifted(halves[0], halves[2])
X_test, y_test = shifted(halves[1], halves[3])
print(f"{len(y):,} images to fit to, {len(y_test):,} to judge by, {X.shape[1]} columns")

# %%
# **The exact machine** with usual parameters. One gamma for all, so that they have the same
# kernel.

GAMMA, C = 0.05, 5.0


def measured(model, X, y):
    """Return the seconds of a fit, those of a prediction, and the accuracy."""
    start = time.perf_counter()
    model.fit(X, y)
    middle = time.perf_counter()
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    return middle - start, time.perf_counter() - middle, accuracy


exact = measured(SVC(gamma=GAMMA, C=C), X, y)
linear = measured(LinearSVC(C=C, dual=False, tol=1e-2), X, y)
print(f"{'':<34}{'width':>7}{'fit, s':>8}{'predict, s':>12}{'accuracy':>10}")
for name, found in (("RBF SVM, exact", exact), ("linear SVM on the points", linear)):
    print(f"{name:<34}{'':>7}{found[0]:>8.2f}{found[1]:>12.2f}{found[2]:>10.4f}")

# %%
# **Machines on features.** Fourier features are the paper's choice; Nystrom features look where
# the data are. A linear SVM is trained on each. And there is
# :class:`gzkcore.RandomFeatureRidgeClassifier`, least squares instead of margins: one pass, and
# the features are never stored.


class OnFeatures:
    """A linear SVM on the features of a map."""

    def __init__(self, features):
        self.features = features

    def fit(self, X, y):
        """Make the features, then train."""
        self.machine = LinearSVC(C=C, dual=False, tol=1e-2)
        self.machine.fit(self.features.fit_transform(X), y)
        return self

    def predict(self, X):
        """Make the features, then predict."""
        return self.machine.predict(self.features.transform(X))


def fourier(width):
    """Return Fourier features with orthogonal frequencies."""
    return RandomFourierFeatures(Gaussian(GAMMA), width, frequencies="orthogonal", random_state=0)


def nystrom(width):
    """Return features of landmarks."""
    return NystromFeatures(Gaussian(GAMMA), width, random_state=0)


methods = {
    "linear SVM, Fourier features": lambda width: OnFeatures(fourier(width)),
    "linear SVM, Nystrom features": lambda width: OnFeatures(nystrom(width)),
    "ridge classifier, Nystrom features": lambda width: RandomFeatureRidgeClassifier(
        nystrom(width), alpha=1e-3
    ),
}
WIDTHS = [64, 128, 256, 512]
table = {name: [measured(make(width), X, y) for width in WIDTHS] for name, make in methods.items()}
for name, found in table.items():
    for width, (fit, predict, accuracy) in zip(WIDTHS, found, strict=True):
        print(f"{name:<34}{width:>7}{fit:>8.2f}{predict:>12.2f}{accuracy:>10.4f}")

# %%
# **Time against rows**, at 256 features, with the prediction of all test images. The exact
# machine's grows the fastest, and that of least squares hardly at all. But as long as the exact
# machine can be had it is the most accurate one, and a linear SVM on many features takes as
# long.

ROWS = [500, 1000, 2000, len(y)]
compared = {
    "RBF SVM, exact": lambda: SVC(gamma=GAMMA, C=C),
    "linear SVM, Nystrom features": lambda: OnFeatures(nystrom(256)),
    "ridge classifier, Nystrom features": lambda: RandomFeatureRidgeClassifier(
        nystrom(256), alpha=1e-3
    ),
}
grown = {
    name: [sum(measured(make(), X[:rows], y[:rows])[:2]) for rows in ROWS]
    for name, make in compared.items()
}
print(f"{'seconds to fit and predict':<36}" + "".join(f"{rows:>8,}" for rows in ROWS))
for name, seconds in grown.items():
    print(f"{name:<36}" + "".join(f"{value:>8.2f}" for value in seconds))

# %%

figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
colors = {name: f"C{i}" for i, name in enumerate(["RBF SVM, exact", *methods])}
for name, found in table.items():
    fit, predict, accuracy = np.array(found).T
    axes[0].plot(WIDTHS, 100 * (1 - accuracy), "o-", color=colors[name], label=name)
    axes[1].plot(WIDTHS, fit + predict, "o-", color=colors[name])
axes[0].axhline(100 * (1 - exact[2]), color="C0", linestyle="--", label="RBF SVM, exact")
axes[1].axhline(sum(exact[:2]), color="C0", linestyle="--")
for name, seconds in grown.items():
    axes[2].plot(ROWS, seconds, "o-", color=colors[name])
axes[0].set_ylabel("wrong digits, %")
axes[1].set_ylabel("seconds to fit and predict")
axes[2].set_ylabel("seconds to fit and predict")
axes[0].set_title(f"Error, {len(y):,} rows", loc="left")
axes[1].set_title(f"Time, {len(y):,} rows", loc="left")
axes[2].set_title("Time, 256 features", loc="left")
for ax in axes[1:]:
    ax.set_yscale("log")
axes[0].set_ylim(0, None)
for ax in axes[:2]:
    ax.set_xscale("log", base=2)
    ax.set_xticks(WIDTHS, WIDTHS)
    ax.set_xlabel("number of features")
axes[2].set_xscale("log", base=2)
axes[2].set_xticks(ROWS, [f"{rows:,}" for rows in ROWS])
axes[2].set_xlabel("rows of the fit")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
)
plt.show()
