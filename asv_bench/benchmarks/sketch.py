"""TensorSketch beside scikit-learn's PolynomialCountSketch, dense and sparse."""

from scipy import sparse
from sklearn.kernel_approximation import PolynomialCountSketch

from gzkcore import Polynomial, TensorSketchFeatures
from gzkcore._threads import limit_threads

from .common import DTYPES, THREADS, empty, frobenius_error, interleave, ratio, sphere

ROWS = 2048


class Transform:
    """2,048 rows into a warm buffer."""

    params = ([64, 784], [3, 8], [1000, 1024, 4096], DTYPES, THREADS)
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


class AgainstScikitLearn:
    """TensorSketch beside PolynomialCountSketch in float32; "sparse" has 1 % of 10,000 columns."""

    params = (["9", "64", "784", "sparse"], [3, 8], [256, 1024, 4096], THREADS)
    param_names = ("columns", "degree", "width", "threads")
    timeout = 300

    def setup(self, columns, degree, width, threads):
        n = 64 if columns == "sparse" else ROWS
        if columns == "sparse":
            X = sparse.random_array((n, 10_000), density=0.01, format="csr", rng=0, dtype="float32")
        else:
            X = sphere(n, int(columns), "float32")
        self.kernel = Polynomial(degree, gamma=0.5)
        self.ours = TensorSketchFeatures(self.kernel, width, random_state=0).fit(X)
        self.theirs = PolynomialCountSketch(
            degree=degree, gamma=0.5, coef0=1, n_components=width, random_state=0
        ).fit(X)
        self.X, self.out = X, empty((n, width), "float32")

    def track_times_faster(self, columns, degree, width, threads):
        calls = {
            "gzkcore": lambda: self.ours.transform(self.X, out=self.out),
            "scikit-learn": lambda: self.theirs.transform(self.X),
        }
        with limit_threads(threads):
            return ratio(interleave(calls, 3), "scikit-learn", "gzkcore")[0]

    def track_error(self, columns, degree, width, threads):
        X = self.X[:200]
        return frobenius_error(self.kernel(X), self.ours.transform(X))

    def track_error_of_scikit_learn(self, columns, degree, width, threads):
        X = self.X[:200]
        return frobenius_error(self.kernel(X), self.theirs.transform(X))
