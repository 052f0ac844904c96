"""Products in linear time against those of tiles; harmonics at points against ducc0."""

import numpy as np

from gzkcore import KernelOperator, Matern, SeriesRidge
from gzkcore._util.threads import limit_threads
from gzkcore.kernels.fast_sums import FastSums
from gzkcore.solve.far_features import Harmonics as HarmonicFeatures
from gzkcore.solve.preconditioners import LowRank
from gzkcore.sphere.transforms import HarmonicSums, angles_of

from .common import THREADS, SkipNotImplemented, interleave, must_agree, ratio, sphere

try:
    import finufft
except ImportError:
    finufft = None
try:
    import ducc0
except ImportError:
    ducc0 = None


def needs_finufft():
    """Skip a benchmark where the extra `maps` is not installed."""
    if finufft is None:
        raise SkipNotImplemented("finufft is not installed")


class Harmonics:
    """Two real vectors at 10^6 points: the adjoint and the synthesis of harmonics."""

    params = ([256, 512, 1024],)
    param_names = ("degree",)
    timeout = 600

    def setup(self, degree):
        needs_finufft()
        self.X = sphere(1_000_000, 3)
        self.V = np.random.default_rng(0).standard_normal((1_000_000, 2))
        self.sums = HarmonicSums(angles_of(self.X), degree, 1e-8)

    def there_and_back(self):
        """Return both vectors, after both transforms."""
        v = self.V.view(np.complex128)[:, 0]
        return self.sums.synthesis(self.sums.adjoint(v)).view(np.float64).reshape(-1, 2)

    def by_ducc0(self, degree):
        """Return the same by ducc0, one real vector after the other."""
        theta = np.arctan2(np.hypot(self.X[:, 0], self.X[:, 1]), self.X[:, 2])
        phi = np.mod(np.arctan2(self.X[:, 1], self.X[:, 0]), 2 * np.pi)
        settings = {
            "spin": 0, "lmax": degree, "loc": np.stack([theta, phi], axis=1), "epsilon": 1e-8,
            "nthreads": 1,
        }  # fmt: skip
        found = []
        for v in self.V.T:
            z = ducc0.sht.adjoint_synthesis_general(map=np.ascontiguousarray(v)[None], **settings)
            found.append(ducc0.sht.synthesis_general(alm=z, **settings)[0])
        return np.stack(found, axis=1)

    def time_gzkcore(self, degree):
        with limit_threads(1):
            self.there_and_back()

    def track_times_of_ducc0(self, degree):
        if ducc0 is None:
            raise SkipNotImplemented("ducc0 is not installed")
        with limit_threads(1):
            found, expected = self.there_and_back(), self.by_ducc0(degree)
            must_agree("ducc0", found, expected, 1e-6 * np.abs(found).max())
            calls = {"gzkcore": self.there_and_back, "ducc0": lambda: self.by_ducc0(degree)}
            return ratio(interleave(calls), "gzkcore", "ducc0")[0]


class OnePass:
    """`SeriesRidge` on the sphere: a batch of a million rows, and the solution from their sums."""

    params = ([128, 256],)
    param_names = ("degree",)
    timeout = 600

    def setup(self, degree):
        needs_finufft()
        self.X = sphere(1_000_000, 3)
        self.y = np.sin(5 * self.X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(
            len(self.X)
        )
        self.model = SeriesRidge(Matern(1.5, 0.3), 0.1, degree=degree).partial_fit(self.X, self.y)

    def time_partial_fit(self, degree):
        SeriesRidge(Matern(1.5, 0.3), 0.1, degree=degree).partial_fit(self.X, self.y)

    def time_solved_for(self, degree):
        self.model.solved_for(alpha=0.2)

    def time_predict(self, degree):
        self.model.predict(self.X)


class Lowest:
    """The preconditioner of a million rows: the Gram matrix of low harmonics, and a solve."""

    params = ([31, 63],)
    param_names = ("degree",)
    timeout = 600

    def setup(self, degree):
        needs_finufft()
        X, rows = sphere(1_000_000, 3), np.arange(1_000_000)
        weights = np.exp(-np.arange(degree + 1.0) / 10)
        self.features = HarmonicFeatures(angles_of(X), weights, 1e-8, rows)
        self.ones, self.v = np.ones(len(X)), np.random.default_rng(0).standard_normal((len(X), 1))
        self.P = LowRank(self.features, self.ones, self.ones[:1], self.ones)

    def time_weighted_gram(self, degree):
        self.features.weighted_gram(self.ones)

    def time_solve(self, degree):
        self.P.solve(self.v, np.zeros(1, np.intp))


class Product:
    """K V with two vectors, Matern-3/2 of length .1, on the sphere and in the plane."""

    params = (["sphere", "plane"], [100_000, 1_000_000], THREADS)
    param_names = ("where", "n", "threads")
    timeout = 600

    def setup(self, where, n, threads):
        needs_finufft()
        rng = np.random.default_rng(0)
        X = sphere(n, 3) if where == "sphere" else rng.random((n, 2))
        self.kernel, self.X, self.V = Matern(1.5, 0.1), X, rng.standard_normal((n, 2))
        self.sums = FastSums(self.kernel, X, None, 1e-6)

    def time_gzkcore(self, where, n, threads):
        with limit_threads(threads):
            self.sums.times(self.V)

    def track_times_faster_than_tiles(self, where, n, threads):
        if n > 100_000:
            raise SkipNotImplemented("tiles take minutes")
        tiles = KernelOperator.of(self.kernel, self.X, dtype=np.float32)
        with limit_threads(threads):
            calls = {
                "sums": lambda: self.sums.times(self.V),
                "tiles": lambda: tiles.times(self.V),
            }
            return ratio(interleave(calls, 3), "tiles", "sums")[0]

    def track_relative_error(self, where, n, threads):
        some = slice(0, 50)
        expected = KernelOperator(self.kernel, self.X[some], self.X).times(self.V)
        found = self.sums.times(self.V)[some]
        return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
