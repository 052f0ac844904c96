"""Random Maclaurin features beside the same products in NumPy; distributions of the degree."""

import numpy as np

from gzkcore import Gaussian, MaclaurinFeatures
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.features.maclaurin import RULES

from .common import DTYPES, THREADS, empty, frobenius_error, gaussian, interleave, ratio

N, WIDTH = 16_384, 1024


def in_numpy(features, X, out):
    """Write the features of centred, scaled X: one product for each factor, without tiles."""
    degrees, signs = features.degrees_, features.signs_.astype(X.dtype)
    share = features.coefficients_[degrees] / features.probabilities_[degrees]
    out[:] = np.sqrt(share / len(degrees)).astype(X.dtype)
    out *= np.exp(-0.5 * np.einsum("ij,ij->i", X, X))[:, None]
    first = 0
    for i in range(degrees[0]):
        count = int((degrees > i).sum())
        out[:, :count] *= X @ signs[first : first + count].T
        first += count


class AgainstNumPy:
    """MaclaurinFeatures beside NumPy: 1,024 columns for 16,384 rows into a warm buffer."""

    params = ([9, 784], DTYPES, THREADS)
    grid = ([9, 64, 784], DTYPES, THREADS)
    param_names = ("dim", "dtype", "threads")

    def setup(self, dim, dtype, threads):
        X = self.X = gaussian(N, dim, dtype)
        features = self.features = MaclaurinFeatures(
            Gaussian(0.5 / dim), WIDTH, random_state=0
        ).fit(X)
        out, other = empty((N, WIDTH), dtype), empty((N, WIDTH), dtype)
        scaled = (features.kernel_.scale() * (X - features.center_)).astype(dtype)
        self.calls = {
            "gzkcore": lambda: features.transform(X, out=out),
            "numpy": lambda: in_numpy(features, scaled, other),
        }

    def time_gzkcore(self, dim, dtype, threads):
        with limit_threads(threads):
            self.calls["gzkcore"]()

    def time_numpy(self, dim, dtype, threads):
        with limit_blas(threads):
            self.calls["numpy"]()

    def peakmem_gzkcore(self, dim, dtype, threads):
        self.calls["gzkcore"]()

    def track_times_faster(self, dim, dtype, threads):
        with limit_threads(threads), limit_blas(threads):
            return ratio(interleave(self.calls), "numpy", "gzkcore")[0]

    track_times_faster.unit = "times"

    def track_error(self, dim, dtype, threads):
        rows = self.X[:1000]
        return frobenius_error(self.features.kernel_(rows), self.features.transform(rows))


class Degrees:
    """Error at 1,024 columns by the law of the degrees."""

    params = ([3, 9, 64], list(RULES))
    param_names = ("dim", "degrees")

    def setup(self, dim, degrees):
        self.X = gaussian(1000, dim)
        self.features = MaclaurinFeatures(
            Gaussian(0.5 / dim), WIDTH, degrees=degrees, random_state=0
        )

    def time_fit(self, dim, degrees):
        self.features.fit(self.X)

    def track_error(self, dim, degrees):
        Z = self.features.fit_transform(self.X)
        return frobenius_error(self.features.kernel_(self.X), Z)
