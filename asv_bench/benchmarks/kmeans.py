"""Kernel k-means by tiles, against scikit-learn's KMeans on features that fill the memory."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureKMeans
from gzkcore.passes.clusters import ClusterAccumulator

from .common import interleave, ratio, sphere
from .ridge import FEATURES, globe


class Pass:
    """One pass for several starts, beside the features alone."""

    params = (["gegenbauer", "RBFSampler"], [8, 64], [1, 4])
    param_names = ("features", "n_clusters", "n_starts")

    def setup(self, features, n_clusters, n_starts):
        self.X, _ = globe(8192)
        self.features = FEATURES[features]().fit(self.X)
        Z = self.features.transform(self.X[: n_clusters * n_starts])
        self.centers = Z.reshape(n_starts, n_clusters, -1)

    def ours(self):
        return ClusterAccumulator(self.features, self.centers).update(self.X)

    def time_gzkcore(self, features, n_clusters, n_starts):
        self.ours()

    def peakmem_gzkcore(self, features, n_clusters, n_starts):
        self.ours()

    def track_times_of_features(self, features, n_clusters, n_starts):
        calls = {"ours": self.ours, "features": lambda: self.features.transform(self.X)}
        return ratio(interleave(calls), "ours", "features")[0]

    track_times_of_features.unit = "times"

    def track_error(self, features, n_clusters, n_starts):
        Z = self.features.transform(self.X)
        wanted = [
            -KMeans(n_clusters, init=c, n_init=1, max_iter=1).fit(c).score(Z) for c in self.centers
        ]
        return float(np.max(np.abs(self.ours().finalize().inertia / wanted - 1)))


class Fit:
    """The whole fit from four starts each."""

    params = (["gegenbauer", "RBFSampler"], [8, 32])
    param_names = ("features", "n_clusters")

    def setup(self, features, n_clusters):
        self.X, _ = globe(4096)

    def ours(self, features, n_clusters):
        return RandomFeatureKMeans(FEATURES[features](), n_clusters, random_state=0).fit(self.X)

    def theirs(self, features, n_clusters):
        Z = FEATURES[features]().fit_transform(self.X)
        return KMeans(n_clusters, n_init=4, random_state=0).fit(Z)

    def time_gzkcore(self, features, n_clusters):
        self.ours(features, n_clusters)

    def time_sklearn(self, features, n_clusters):
        self.theirs(features, n_clusters)

    def peakmem_gzkcore(self, features, n_clusters):
        self.ours(features, n_clusters)

    def peakmem_sklearn(self, features, n_clusters):
        self.theirs(features, n_clusters)

    def track_objective_over_sklearn(self, features, n_clusters):
        ours, theirs = self.ours(features, n_clusters), self.theirs(features, n_clusters)
        return ours.inertia_ / theirs.inertia_ - 1


class Millions:
    """Two million rows from a memory map: memory does not grow with them, but for the labels."""

    params = ([200_000, 2_000_000],)
    param_names = ("rows",)

    def setup(self, rows):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "X.npy")
        np.save(path, sphere(rows, 3))
        self.X = np.load(path, mmap_mode="r")

    def teardown(self, rows):
        self.folder.cleanup()

    def peakmem_fit(self, rows):
        features = GegenbauerFeatures(Gaussian(0.5), 64, basis="harmonic")
        RandomFeatureKMeans(features, n_init=1, max_iter=2, random_state=0).fit(self.X)
