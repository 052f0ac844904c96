"""Dask collections: the overhead of a cluster of processes on this machine."""

import numpy as np

from gzkcore import Gaussian, GegenbauerFeatures, KernelOperator, Matern, RandomFeatureRidge
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.products import Runs
from gzkcore.solve.workers import SharedProduct

from .common import gaussian, interleave, largest_error


def start(workers):
    """Return a cluster of processes with one thread each, and its client."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise NotImplementedError("needs gzkcore[dask]") from error
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )
    return cluster, Client(cluster)


class Fit:
    """A ridge on chunks in the workers' memory; beside it the same rows in one array."""

    params = ([2], [1_000, 10_000])
    param_names = ("workers", "chunk_rows")
    n = 20_000

    def setup(self, workers, chunk_rows):
        self.cluster, self.client = start(workers)
        import dask.array as da

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
        predicted = self.model.fit(*self.chunks).predict(self.X[:1000])
        return largest_error(predicted, self.model.fit(self.X, self.y).predict(self.X[:1000]))


class Products:
    """A product of `KernelRidge` by workers of one thread; beside it the same here, on one thread.

    `track_over_runs` is the time over that of the same runs here: 1 / workers is the limit.
    `track_over_whole` is it over that of the whole product, which computes each pair of rows once.
    """

    params = ([1, 2], [1, 16])
    param_names = ("workers", "vectors")
    n, runs = 20_000, 8

    def setup(self, workers, vectors):
        self.cluster, self.client = start(workers)
        operator = KernelOperator(Matern(1.5), gaussian(self.n, 6), dtype=np.float32)
        self.V = gaussian(self.n, vectors)
        self.split = Runs(operator, self.runs)
        self.whole = operator.matmat
        self.shared = SharedProduct(operator, self.split, self.client)
        self.shared(self.V)  # workers import, and get the rows

    def teardown(self, workers, vectors):
        self.shared.stay()
        self.client.close()
        self.cluster.close()

    def runs_here(self):
        with limit_threads(1):
            return self.split.join([self.split.product(i, self.V) for i in range(self.runs)])

    def whole_here(self):
        with limit_threads(1):
            return self.whole(self.V)

    def over(self, other):
        times = interleave({"shared": lambda: self.shared(self.V), "other": other})
        return float(np.median(np.asarray(times["shared"]) / np.asarray(times["other"])))

    def time_gzkcore(self, workers, vectors):
        self.shared(self.V)

    def time_whole(self, workers, vectors):
        self.whole_here()

    def track_over_runs(self, workers, vectors):
        return self.over(self.runs_here)

    def track_over_whole(self, workers, vectors):
        return self.over(self.whole_here)

    def peakmem_client(self, workers, vectors):
        self.shared(self.V)

    def track_error(self, workers, vectors):
        return largest_error(self.shared(self.V), self.whole_here())
