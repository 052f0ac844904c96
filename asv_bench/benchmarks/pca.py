"""Principal components in one pass, against scikit-learn's on features that fill the memory."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from gzkcore import RandomFeaturePCA
from gzkcore.passes.gram import GramAccumulator
from gzkcore.passes.moments import MomentsAccumulator

from .common import interleave, largest_error, ratio
from .ridge import FEATURES, globe


class Fit:
    """The whole fit, and the scores of the same rows."""

    params = (list(FEATURES), [10, 100])
    param_names = ("features", "n_components")

    def setup(self, features, n_components):
        self.X, _ = globe()

    def ours(self, features, n_components):
        return RandomFeaturePCA(FEATURES[features](), n_components).fit(self.X)

    def theirs(self, features, n_components):
        pca = PCA(n_components, svd_solver="covariance_eigh")
        return make_pipeline(FEATURES[features](), pca).fit(self.X)

    def time_gzkcore(self, features, n_components):
        self.ours(features, n_components)

    def time_sklearn(self, features, n_components):
        self.theirs(features, n_components)

    def peakmem_gzkcore(self, features, n_components):
        self.ours(features, n_components)

    def peakmem_sklearn(self, features, n_components):
        self.theirs(features, n_components)

    def time_transform(self, features, n_components):
        if not hasattr(self, "model"):
            self.model = RandomFeaturePCA(FEATURES[features](), n_components).fit(self.X[:5000])
        self.model.transform(self.X)

    def track_error(self, features, n_components):
        """Of the strongest axis: those of nearly equal variance may turn."""
        ours = self.ours(features, n_components).transform(self.X[:1000])[:, 0]
        theirs = self.theirs(features, n_components).transform(self.X[:1000])[:, 0]
        return largest_error(ours * np.sign(ours @ theirs), theirs)


class Update:
    """What taking rows about their mean costs, beside sums about 0."""

    params = (["gegenbauer", "RBFSampler"],)
    param_names = ("features",)

    def setup(self, features):
        self.X, _ = globe()
        self.features = FEATURES[features]().fit(self.X)

    def time_moments(self, features):
        MomentsAccumulator(self.features).update(self.X)

    def peakmem_moments(self, features):
        MomentsAccumulator(self.features).update(self.X)

    def track_times_of_gram(self, features):
        calls = {
            "moments": lambda: MomentsAccumulator(self.features).update(self.X),
            "gram": lambda: GramAccumulator(self.features).update(self.X),
        }
        return ratio(interleave(calls), "moments", "gram")[0]

    track_times_of_gram.unit = "times"

    def track_error(self, features):
        Z = self.features.transform(self.X)
        Z = Z - Z.mean(axis=0)
        moments = MomentsAccumulator(self.features).update(self.X).finalize()
        return largest_error(moments.scatter, Z.T @ Z)
