"""
Kernel k-means: clusters that are not round
===========================================

k-means divides the plane by straight lines. :class:`gzkcore.RandomFeatureKMeans` divides the
feature space of a kernel, where rings are apart, and needs no n by n matrix: here the rings have
300,000 points. Its clusters are compared with those of scikit-learn's KMeans and, on few points,
with kernel k-means on the exact kernel. The last part clusters real digits, and warns of a pitfall.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from gzkcore import Gaussian, GegenbauerFeatures, KernelFeatures, RandomFeatureKMeans
from gzkcore.datasets import load
from gzkcore.metrics import clustering_cost

# %%
# **Two rings**, with some noise. The score is the adjusted Rand index: 1 where the clusters are
# the rings, 0 for chance.

rng = np.random.default_rng(0)


def rings(n):
    """Return n points of two rings, and the ring of each."""
    ring, angle = rng.integers(0, 2, n), rng.uniform(0, 2 * np.pi, n)
    radius = np.array([0.5, 3.0])[ring] + 0.25 * rng.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring


X, ring = rings(300_000)
kernel = Gaussian(gamma=0.5)
features = GegenbauerFeatures(kernel, n_components=128)
models = {
    "KMeans": KMeans(2, n_init=4, random_state=0),
    "RandomFeatureKMeans": RandomFeatureKMeans(features, n_clusters=2, random_state=0),
}
labels = {}
for name, model in models.items():
    start = time.perf_counter()
    labels[name] = model.fit_predict(X)
    seconds = time.perf_counter() - start
    score = adjusted_rand_score(ring, labels[name])
    print(f"{name:<22}score {score:.3f}, {seconds:.1f} s")
print(f"the kernel matrix would take {8 * len(X) ** 2 / 1e9:,.0f} GB")

# %%

figure, axes = plt.subplots(1, 2, figsize=(9.4, 4.8), layout="constrained", sharey=True)
shown = slice(0, 4000)
for ax, (name, found) in zip(axes, labels.items(), strict=True):
    for cluster in (0, 1):
        ax.plot(*X[shown][found[shown] == cluster].T, ".", markersize=2, label=f"cluster {cluster}")
    ax.set_title(name, loc="left")
    ax.set_aspect("equal")
    ax.set_xlabel(f"x₁, 4,000 of {len(X):,} points shown")
axes[0].set_ylabel("x₂")
figure.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside lower center", ncols=2, markerscale=6, frameon=False,
)  # fmt: skip

# %%
# **As good as the exact kernel?** On 1,500 points the matrix can be made. Its rows scaled by
# the root of its eigenvalues are exact features, so k-means on them is exact kernel k-means.
# The cost is that with the exact kernel, for both.

few, _ = rings(1500)
K = kernel(few)
values, vectors = np.linalg.eigh(K)
exact = KMeans(2, n_init=4, random_state=0).fit_predict(vectors * np.sqrt(np.maximum(values, 0)))
ours = RandomFeatureKMeans(features, n_clusters=2, random_state=0).fit_predict(few)
print(f"cost by the exact kernel {clustering_cost(K, exact):.6f}")
print(f"cost by 128 features     {clustering_cost(K, ours):.6f}")

# %%
# **The lengthscale decides.** It has to be of the size of the gaps; where it isn't, the kernel
# finds something else, and k-means does not say so.

gammas = np.logspace(-2, 1, 13)
few, ring = rings(5000)
scores = [
    adjusted_rand_score(
        ring,
        RandomFeatureKMeans(
            GegenbauerFeatures(Gaussian(gamma), 256), n_clusters=2, random_state=0
        ).fit_predict(few),
    )
    for gamma in gammas
]
figure, ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
ax.plot(1 / np.sqrt(2 * gammas), scores, "o-")
ax.set_xscale("log")
ax.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
ax.minorticks_off()
ax.set_xlabel("lengthscale, in the units of the plane (the gap is 2.5)")
ax.set_ylabel("adjusted Rand index")
ax.set_title("Rings found, by lengthscale", loc="left")

# %%
# **Real digits**: pen strokes of 16 numbers, ten clusters for ten digits. The kernel helps at a
# good lengthscale and harms at a bad one, and without labels nobody says which is which.

data = load("pendigits")
pens = StandardScaler().fit_transform(data.X.astype(float))
plain = KMeans(10, n_init=4, random_state=0).fit_predict(pens)
print(f"{'KMeans':<34}score {adjusted_rand_score(data.y, plain):.3f}")
for gamma in (0.03, 0.1, 0.3):
    model = RandomFeatureKMeans(
        KernelFeatures(Gaussian(gamma), 512), n_clusters=10, n_init=4, random_state=0
    )
    score = adjusted_rand_score(data.y, model.fit_predict(pens))
    print(f"{f'RandomFeatureKMeans, gamma {gamma:g}':<34}score {score:.3f}")
plt.show()
