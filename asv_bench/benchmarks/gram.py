"""Moments from tiles: what Z^T Z costs beside BLAS on a stored Z."""

import numpy as np
from scipy.linalg.blas import dsyrk
from threadpoolctl import threadpool_limits

from gzkcore import Gaussian, GegenbauerFeatures
from gzkcore._threads import limit_threads
from gzkcore.gram import GramAccumulator

from .common import THREADS, largest_error, sphere


class Moments:
    """Z^T Z of 20,000 rows of 1,024 features in float64: features included, against syrk alone.

    syrk is given Z, and the memory that holds it.
    """

    params = (["gzkcore", "syrk"], THREADS)
    param_names = ("way", "threads")

    def setup(self, way, threads):
        self.X = sphere(20_000, 3)
        self.features = GegenbauerFeatures(Gaussian(0.5), 1024, random_state=0).fit(self.X)
        if way == "syrk":
            self.Z = self.features.transform(self.X)
            self.out = np.zeros((1024, 1024), order="F")

    def gram(self, way):
        if way == "gzkcore":
            return GramAccumulator(self.features).update(self.X).sums[0][:1024, :1024]
        # The lower triangle, as ours. Z.T is in Fortran's order without a copy.
        return dsyrk(1.0, self.Z.T, lower=1, c=self.out, overwrite_c=1)

    def time_gram(self, way, threads):
        with limit_threads(threads), threadpool_limits(threads, user_api="blas"):
            self.gram(way)

    def peakmem_gram(self, way, threads):
        self.gram(way)

    def track_error(self, way, threads):
        """Against sums in long double of some of the entries."""
        some = np.array([0, 1, 2, 500, 1023])
        Z = self.features.transform(self.X)[:, some].astype(np.longdouble)
        return largest_error(self.gram(way)[np.ix_(some, some)], np.tril(Z.T @ Z))
