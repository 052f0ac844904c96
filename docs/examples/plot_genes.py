"""
Genes: features of very wide rows
=================================

A row of 22,283 genes is so wide that its product with a matrix of frequencies takes most of the
time. :class:`gzkcore.BlockFourierFeatures` draws one random number for each coordinate instead of
one for each coordinate and feature. The price is a bias, which :func:`gzkcore.block_report`
estimates beforehand. The data are 104 tumours, 62 of the breast and 42 of the colon (Chowdary et
al. 2006).
"""

# sphinx_gallery_thumbnail_number = 2

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from gzkcore import BlockFourierFeatures, Gaussian, RandomFeaturePCA, block_report
from gzkcore.datasets import load

# %%
# **Data.** Intensities as logarithms, which is how genes are compared. gamma is one over the
# median squared distance, so that the kernel of a typical pair is exp(-1).

data = load("gene_chowdary")
X = np.log2(np.maximum(data.X.astype(float), 1))
X -= X.mean(axis=0)
squares = np.sum(X**2, axis=1)
distances = squares[:, None] + squares - 2 * X @ X.T
pairs = np.triu_indices(len(X), 1)
kernel = Gaussian(1 / np.median(distances[pairs]))
K = kernel(X)
print(f"{X.shape[0]} tumours, {X.shape[1]:,} genes")

# %%
# **What blocks would do** to this kernel. Tumours differ in few genes by much, so blocks of
# some tens of genes are not alike, and their bias is not small. The report says which size
# makes it so.

report = block_report(X, kernel)
print(report)

# %%
# **Error and time against width**, three draws each. scikit-learn's RBFSampler multiplies by a
# full matrix of frequencies.

WIDTHS = [64, 256, 1024, 4096, 16_384]
LARGE = 256
methods = {
    "blocks of 32 genes (default)": lambda width, seed: BlockFourierFeatures(
        kernel, width, random_state=seed
    ),
    f"blocks of {LARGE} genes": lambda width, seed: BlockFourierFeatures(
        kernel, width, block_size=LARGE, random_state=seed
    ),
    "RBFSampler": lambda width, seed: RBFSampler(
        gamma=kernel.gamma, n_components=width, random_state=seed
    ),
}
errors, biases, seconds = {}, {}, {}
for name, make in methods.items():
    errors[name], biases[name], seconds[name] = [], [], []
    for width in WIDTHS[: 3 if name == "RBFSampler" else None]:
        found = []
        for seed in range(3):
            features = make(width, seed).fit(X)
            start = time.perf_counter()
            Z = features.transform(X)
            elapsed = time.perf_counter() - start
            wrong = (Z @ Z.T - K)[pairs]
            found.append((np.sqrt(np.mean(wrong**2)), np.mean(wrong), elapsed))
        root, mean, fastest = np.array(found).T
        errors[name].append(root.mean())
        biases[name].append(mean.mean())
        seconds[name].append(fastest.min())
print(f"{'':<30}{'features':>9}{'error':>8}{'bias':>9}{'ms':>8}")
for name in methods:
    for row in zip(WIDTHS, errors[name], biases[name], seconds[name], strict=False):
        width, error, bias, elapsed = row
        print(f"{name:<30}{width:>9,}{error:>8.4f}{bias:>+9.4f}{1e3 * elapsed:>8.1f}")

# %%
# With small blocks the error stops falling where the bias is reached. Larger blocks go on, and
# cost more passes over the row: still a small part of the matrix product.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for name, marker in zip(methods, "osD", strict=True):
    widths = WIDTHS[: len(errors[name])]
    axes[0].plot(widths, errors[name], marker=marker, label=name)
    axes[1].plot(widths, np.array(seconds[name]) * 1e6 / len(X), marker=marker, label=name)
axes[0].axhline(
    report.bias_rms, color="C0", linestyle="--", linewidth=1, label="bias of 32, as reported"
)
axes[0].set_ylabel("root mean square error of k(x, y)")
axes[1].set_ylabel("time of a row, µs")
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(WIDTHS, [f"{width:,}" for width in WIDTHS])
    ax.set_xlabel("number of features")
axes[0].legend(frameon=False)

# %%
# **Does it matter for the tumours?** The kind of tumour, by a linear SVM on features and by the
# exact RBF SVM, five folds. With 104 rows the exact kernel is a small matrix: nobody needs
# features here for the speed of the SVM. They are needed where rows are many *and* wide.

folds = StratifiedKFold(5, shuffle=True, random_state=0)
machines = {
    "exact RBF SVM": SVC(gamma=kernel.gamma, C=10),
    "linear SVM on 1,024 block features": make_pipeline(
        BlockFourierFeatures(kernel, 1024, block_size=LARGE, random_state=0),
        LinearSVC(C=10, dual=False),
    ),
    "always the more frequent kind": None,
}
for name, machine in machines.items():
    if machine is None:
        scores = np.bincount(data.y).max(keepdims=True) / len(data.y)
    else:
        scores = cross_val_score(machine, X, data.y, cv=folds)
    print(f"{name:<36}{scores.mean():>7.3f}")

# %%
# **A picture of all 104**: the first two principal components in the space of the kernel, from
# block features.

features = BlockFourierFeatures(kernel, 1024, block_size=LARGE, random_state=0)
axis = RandomFeaturePCA(features, n_components=2)
components = axis.fit_transform(X)
share = 100 * axis.explained_variance_ratio_
figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
for kind, marker in zip((0, 1), "os", strict=True):
    ax.plot(*components[data.y == kind].T, marker, label=data.classes[kind])
ax.set_xlabel(f"first component, {share[0]:.0f} % of the variance of the features")
ax.set_ylabel(f"second, {share[1]:.0f} %")
ax.set_title("Tumours by their genes", loc="left")
ax.legend(frameon=False)
plt.show()
