"""Models as files of data, beside pickle and joblib, which run code when they load."""

import pickle
import tempfile
from pathlib import Path

import joblib

from gzkcore import RandomFeatureRidge, load, save

from .common import largest_error
from .ridge import FEATURES, globe

WAYS = {
    "gzkcore": (save, load),
    "joblib": (joblib.dump, joblib.load),
    "pickle": (
        lambda model, path: path.write_bytes(pickle.dumps(model)),
        lambda path: pickle.loads(path.read_bytes()),
    ),
}


class Model:
    """A ridge of 512 features with its moments."""

    params = (["gegenbauer", "harmonic"], list(WAYS))
    param_names = ("features", "library")

    def setup(self, features, library):
        X, y = globe(5000)
        self.new = X[:1000]
        self.model = RandomFeatureRidge(FEATURES[features](), alpha=1e-3).fit(X, y)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "model")
        self.save, self.load = WAYS[library]
        self.save(self.model, self.path)

    def teardown(self, features, library):
        self.folder.cleanup()

    def time_save(self, features, library):
        self.save(self.model, self.path)

    def time_load(self, features, library):
        self.load(self.path)

    def peakmem_load(self, features, library):
        self.load(self.path)

    def track_megabytes(self, features, library):
        return self.path.stat().st_size / 1e6

    track_megabytes.unit = "MB"

    def track_error(self, features, library):
        return largest_error(self.load(self.path).predict(self.new), self.model.predict(self.new))
