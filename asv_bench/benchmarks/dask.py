"""Dask collections: what a cluster costs beside the sums, on processes of this machine."""

import numpy as np

from gzkcore import Gaussian, GegenbauerFeatures, RandomFeatureRidge

from .common import gaussian, largest_error


class Fit:
    """A ridge on chunks in the workers' memory; beside it the same rows in one array."""

    params = ([2], [1_000, 10_000])
    param_names = ("workers", "chunk_rows")
    n = 20_000

    def setup(self, workers, chunk_rows):
        try:
            import dask.array as da
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise NotImplementedError("needs gzkcore[dask]") from error
        self.cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        self.client = Client(self.cluster)
        self.X = gaussian(self.n, 9).astype(np.float32)
        self.y = np.sin(self.X[:, 0])
        self.chunks = [
            da.from_array(part, chunks=(chunk_rows, *part.shape[1:])).persist()
            for part in (self.X, self.y)
        ]
        features = GegenbauerFeatures(
            Gaussian(0.05), 256, basis="harmonic", center=None, radius=8.0
        )
        self.model = RandomFeatureRidge(features, alpha=1.0)
        self.model.fit(*self.chunks)  # workers import

    def teardown(self, workers, chunk_rows):
        self.client.close()
        self.cluster.close()

    def time_gzkcore(self, workers, chunk_rows):
        self.model.fit(*self.chunks)

    def time_one_array(self, workers, chunk_rows):
        self.model.fit(self.X, self.y)

    def peakmem_client(self, workers, chunk_rows):
        self.model.fit(*self.chunks)

    def track_error(self, workers, chunk_rows):
        found = self.model.fit(*self.chunks).predict(self.X[:1000])
        return largest_error(found, self.model.fit(self.X, self.y).predict(self.X[:1000]))
