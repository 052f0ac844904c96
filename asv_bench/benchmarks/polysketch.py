"""PolySketch beside TensorSketch and scikit-learn's PolynomialCountSketch: time and error."""

from sklearn.kernel_approximation import PolynomialCountSketch

from gzkcore import Polynomial, PolySketchFeatures, TensorSketchFeatures
from gzkcore._util.threads import limit_threads

from .common import THREADS, frobenius_error, interleave, ratio, sphere

ROWS, WIDTH = 1024, 1024


class Against:
    """PolySketchFeatures beside other sketches: 1,024 columns of rows on the sphere, in float32."""

    params = ([64, 784], [3, 16], ["TensorSketchFeatures", "scikit-learn"], THREADS)
    grid = ([64, 784], [2, 3, 8, 16], ["TensorSketchFeatures", "scikit-learn"], THREADS)
    param_names = ("dim", "degree", "library", "threads")

    def setup(self, dim, degree, library, threads):
        X = self.X = sphere(ROWS, dim, "float32")
        self.kernel = Polynomial(degree, gamma=1.0, coef0=0.0)
        self.ours = PolySketchFeatures(self.kernel, WIDTH, random_state=0).fit(X)
        if library == "scikit-learn":
            self.theirs = PolynomialCountSketch(
                degree=degree, gamma=1.0, coef0=0, n_components=WIDTH, random_state=0
            ).fit(X)
        else:
            self.theirs = TensorSketchFeatures(self.kernel, WIDTH, random_state=0).fit(X)
        self.calls = {
            "gzkcore": lambda: self.ours.transform(X),
            library: lambda: self.theirs.transform(X),
        }

    def time_gzkcore(self, dim, degree, library, threads):
        with limit_threads(threads):
            self.calls["gzkcore"]()

    def time_other(self, dim, degree, library, threads):
        with limit_threads(threads):
            self.calls[library]()

    def peakmem_gzkcore(self, dim, degree, library, threads):
        self.calls["gzkcore"]()

    def track_times_faster(self, dim, degree, library, threads):
        with limit_threads(threads):
            return ratio(interleave(self.calls, 3), library, "gzkcore")[0]

    track_times_faster.unit = "times"

    def track_error_gzkcore(self, dim, degree, library, threads):
        X = self.X[:300]
        return frobenius_error(self.kernel(X), self.ours.transform(X))

    def track_error_other(self, dim, degree, library, threads):
        X = self.X[:300]
        return frobenius_error(self.kernel(X), self.theirs.transform(X))
