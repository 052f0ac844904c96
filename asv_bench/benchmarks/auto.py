"""Choosing features: its cost beside that of the final fit, and the quality of the choice."""

from sklearn.base import clone

from gzkcore import Gaussian, KernelFeatures, plan

from .common import frobenius_error, gaussian, sphere

DATA = {
    "sphere d=3": lambda seed: sphere(N, 3, seed=seed),
    "normal d=9": lambda seed: gaussian(N, 9, seed=seed) / 3,
    "normal d=64": lambda seed: gaussian(N, 64, seed=seed) / 8,
}
KERNEL, N, WIDTH = Gaussian(0.5), 5000, 128


def error_on_others(features, data):
    rows = DATA[data](1)[:1000]
    return frobenius_error(KERNEL(rows), features.transform(rows))


class Choose:
    """KernelFeatures at 128 columns, and the chosen features alone."""

    params = (list(DATA),)
    param_names = ("data",)

    def make(self):
        return KernelFeatures(KERNEL, WIDTH, random_state=0)

    def setup_cache(self):
        """Return the chosen features for each data set."""
        return {data: self.make().fit(DATA[data](0)) for data in DATA}

    def setup(self, cached, data):
        self.X, self.features = DATA[data](0), cached[data]

    def time_gzkcore(self, cached, data):
        self.make().fit(self.X)

    def time_chosen_alone(self, cached, data):
        clone(self.features.chosen_).fit(self.X)

    def time_transform(self, cached, data):
        self.features.transform(self.X)

    def peakmem_gzkcore(self, cached, data):
        self.make().fit(self.X)

    def track_error(self, cached, data):
        return error_on_others(self.features, data)

    def track_least_error_tried(self, cached, data):
        """Return the least error of all families, on the rows that they were judged by."""
        return min(self.features.errors_.values())


class Plan:
    """`plan` for two widths, and the error of the features that it recommends."""

    params = (list(DATA),)
    param_names = ("data",)

    def setup(self, data):
        self.X = DATA[data](0)

    def plan(self):
        return plan(self.X, KERNEL, n_components=(32, WIDTH))

    def time_gzkcore(self, data):
        self.plan()

    def peakmem_gzkcore(self, data):
        self.plan()

    def track_error(self, data):
        """Return the error on other rows of features recommended for an error of at most 0.1."""
        return error_on_others(self.plan().build().fit(self.X), data)
