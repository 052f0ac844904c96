"""TensorSketch beside scikit-learn's PolynomialCountSketch, dense and sparse."""

from scipy import sparse
from sklearn.kernel_approximation import PolynomialCountSketch

from gzkcore import Polynomial, TensorSketchFeatures
from gzkcore._util.threads import limit_threads

from .common import DTYPES, THREADS, empty, frobenius_error, interleave, ratio, sphere

ROWS = 2048


class Transform:
    """2,048 rows into a warm buffer."""

    params = ([64, 784], [3, 8], [1000, 4096], DTYPES, THREADS)
    param_names = ("dim", "degree", "width", "dtype", "threads")

    def setup(self, dim, degree, width, dtype, threads):
        self.X = sphere(ROWS, dim, dtype)
        self.features = TensorSketchFeatures(Polynomial(degree), width, random_state=0).fit(self.X)
        self.out = empty((ROWS, width), dtype)

    def time_gzkcore(self, dim, degree, width, dtype, threads):
        with limit_threads(threads):
            self.features.transform(self.X, out=self.out)

    def peakmem_gzkcore(self, dim, degree, width, dtype, threads):
        self.features.transform(self.X, out=self.out)

    def track_error(self, dim, degree, width, dtype, threads):
        rows, features = self.X[:200], self.features
        return frobenius_error(features.kernel_(rows), features.transform(rows))


class AgainstScikitLearn:
    """TensorSketch beside PolynomialCountSketch in float32; of "sparse" rows 1 % is there."""

    params = (["784", "sparse 1000"], [3, 8], [1024], THREADS)
    grid = (["9", "64", "784", "sparse 10000"], [3, 8], [256, 1024, 4096], THREADS)
    param_names = ("columns", "degree", "width", "threads")

    def setup(self, columns, degree, width, threads):
        dim = int(columns.split()[-1])
        n = 64 if columns.startswith("sparse") else ROWS
        X = sphere(n, dim, "float32")
        if columns.startswith("sparse"):
            X = sparse.random_array(
                (n, dim), density=0.01, format="csr", random_state=0, dtype="float32"
            )
        self.kernel = Polynomial(degree, gamma=0.5)
        self.ours = TensorSketchFeatures(self.kernel, width, random_state=0).fit(X)
        self.theirs = PolynomialCountSketch(
            degree=degree, gamma=0.5, coef0=1, n_components=width, random_state=0
        ).fit(X)
        self.X = X

    def time_gzkcore(self, columns, degree, width, threads):
        with limit_threads(threads):
            self.ours.transform(self.X)

    def time_sklearn(self, columns, degree, width, threads):
        self.theirs.transform(self.X)

    def track_times_faster(self, columns, degree, width, threads):
        calls = {
            "gzkcore": lambda: self.ours.transform(self.X),
            "scikit-learn": lambda: self.theirs.transform(self.X),
        }
        with limit_threads(threads):
            return ratio(interleave(calls, 3), "scikit-learn", "gzkcore")[0]

    track_times_faster.unit = "times"

    def track_error_gzkcore(self, columns, degree, width, threads):
        X = self.X[:200]
        return frobenius_error(self.kernel(X), self.ours.transform(X))

    def track_error_sklearn(self, columns, degree, width, threads):
        X = self.X[:200]
        return frobenius_error(self.kernel(X), self.theirs.transform(X))
