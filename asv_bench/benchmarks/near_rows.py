"""Predictions and lengths from near rows, beside NumPy, the whole kernel, and rows at random."""

import numpy as np
from scipy.spatial import KDTree

from gzkcore import Gaussian, KernelRidge, Matern, NearKernelRidge, Sum, learn_kernel
from gzkcore.rows.coded import CodedRows

from .common import data_generator, interleave, largest_error, ratio

KERNEL, ALPHA = Matern(2.5, 0.5), 0.02
SUM = Sum([([0, 1, 2], KERNEL), ([0, 1, 2], Gaussian(0.1))])


def rows(n, dim, noise=0.1, seed=0):
    """Return rows of a cube, targets, and the function without its noise."""
    rng = data_generator(seed)
    X = rng.uniform(0, 4, (n, dim))
    f = np.sin(2 * X[:, 0]) * np.cos(X).prod(axis=1)
    return X, f + noise * rng.standard_normal(n), f


def error(predicted, truth):
    return float(np.sqrt(np.mean(np.square(predicted - truth))))


class Predict:
    """Means and deviations of new rows from the m nearest of 20,000."""

    params = ([50, 150], ["matern", "sum"])
    param_names = ("m", "kernel")

    def setup(self, m, kernel):
        self.kernel = SUM if kernel == "sum" else KERNEL
        self.X, self.y, _ = rows(20_000, 3)
        self.new = rows(2000, 3, seed=1)[0]
        model = NearKernelRidge(self.kernel, ALPHA, n_neighbors=m, trend=None, random_state=0)
        self.model = model.fit(self.X, self.y)
        self.tree = KDTree(self.X)

    def ours(self):
        return self.model.predict(self.new, return_std=True)

    def theirs(self, m, n_new=200):
        found = np.empty(n_new)
        for i, x in enumerate(self.new[:n_new]):
            near = self.tree.query(x, m)[1]
            A = self.kernel(self.X[near]) + ALPHA * np.eye(m)
            found[i] = self.kernel(x[None], self.X[near])[0] @ np.linalg.solve(A, self.y[near])
        return found

    def time_gzkcore(self, m, kernel):
        self.ours()

    def time_numpy_a_tenth(self, m, kernel):
        self.theirs(m)

    def peakmem_gzkcore(self, m, kernel):
        self.ours()

    def track_error_gzkcore(self, m, kernel):
        return largest_error(self.ours()[0][:200], self.theirs(m))

    def track_times_faster(self, m, kernel):
        calls = {"ours": self.ours, "theirs": lambda: self.theirs(m)}
        return 10 * ratio(interleave(calls), "theirs", "ours")[0]

    track_times_faster.unit = "times"


class Slopes:
    """Slopes of 2,000 new rows from the 50 nearest of 20,000, with their deviations."""

    params = ([3, 10],)
    param_names = ("columns",)

    def setup(self, dim):
        X, y, _ = rows(20_000, dim)
        self.new = rows(2000, dim, seed=1)[0]
        kernel = Matern(2.5, 0.5 * dim**0.5)
        self.model = NearKernelRidge(kernel, ALPHA, random_state=0).fit(X, y)

    def time_slopes(self, dim):
        self.model.predict(self.new, return_std=True, return_gradient=True)

    def time_predictions(self, dim):
        self.model.predict(self.new, return_std=True)


class Neighbours:
    """How many neighbours: a smooth function, a rough one, and one with as much noise."""

    params = (["smooth", "rough", "noisy"], [20, 50, 150, 300])
    param_names = ("function", "m")

    def setup(self, function, m):
        """Draw a function with the kernel Matern(nu), in a cube of four lengths."""
        nu, noise = {"smooth": (2.5, 0.1), "rough": (0.5, 0.1), "noisy": (2.5, 1.0)}[function]
        rng, n = data_generator(0), 4000
        W = rng.standard_normal((3, n)) / np.sqrt(rng.chisquare(2 * nu, n) / (2 * nu))
        b = rng.uniform(0, 2 * np.pi, n)
        X, self.new = (rng.uniform(0, 4, (count, 3)) for count in (20_000, 2000))
        f, self.f = (np.cos(part @ W + b).sum(axis=1) * (2 / n) ** 0.5 for part in (X, self.new))
        model = NearKernelRidge(Matern(nu), noise**2, n_neighbors=m, random_state=0)
        self.model = model.fit(X, f + noise * rng.standard_normal(len(f)))

    def time_predict(self, function, m):
        self.model.predict(self.new)

    def track_error(self, function, m):
        return error(self.model.predict(self.new), self.f)


class Categories:
    """The same beside a category of 100 levels: one code, or a column for each level."""

    def setup(self):
        X, y, _ = rows(20_000, 3)
        levels = np.eye(100)[np.arange(len(X)) % 100]
        wide = np.hstack([X, levels])
        self.new = wide[::10] + np.append([0.01] * 3, np.zeros(100))
        coded = CodedRows.of(wide, [np.arange(3, 103)])
        self.models = {
            name: NearKernelRidge(Matern(2.5, 2.0), ALPHA, random_state=0).fit(rows, y)
            for name, rows in {"codes": coded, "columns": wide}.items()
        }

    def time_codes(self):
        self.models["codes"].predict(self.new, return_std=True)

    def time_columns(self):
        self.models["columns"].predict(self.new, return_std=True)

    def track_difference(self):
        codes, columns = (model.predict(self.new) for model in self.models.values())
        return largest_error(codes, columns)


class Against:
    """The whole kernel with the same lengths and alpha, for little noise and for much."""

    params = ([0.1, 1.0], [50, 200])
    param_names = ("noise", "m")

    def setup(self, noise, m):
        self.X, self.y, _ = rows(8000, 2, noise)
        self.new, _, self.f = rows(1000, 2, seed=1)

    def near(self, noise, m):
        model = NearKernelRidge(KERNEL, 2 * noise**2, n_neighbors=m, random_state=0)
        return model.fit(self.X, self.y).predict(self.new)

    def both(self, noise, m):
        model = NearKernelRidge(
            KERNEL, n_neighbors=m, smooth=KernelRidge(KERNEL, 2 * noise**2), random_state=0
        )
        return model.fit(self.X, self.y).predict(self.new)

    def whole(self, noise):
        model = KernelRidge(KERNEL, 2 * noise**2, trend="constant", random_state=0)
        return model.fit(self.X, self.y).predict(self.new)

    def time_near(self, noise, m):
        self.near(noise, m)

    def time_whole(self, noise, m):
        self.whole(noise)

    def track_error_near(self, noise, m):
        return error(self.near(noise, m), self.f)

    def track_error_both(self, noise, m):
        return error(self.both(noise, m), self.f)

    def track_error_whole(self, noise, m):
        return error(self.whole(noise), self.f)


class Lengths:
    """A fast function of one column: 1,000 rows at random are farther apart than its waves."""

    params = ([20_000, 200_000],)
    param_names = ("rows",)

    def setup(self, n):
        rng = data_generator(0)
        self.X, self.new = (rng.uniform(0, n / 200, (m, 1)) for m in (n, 1000))
        self.y = np.sin(40 * self.X[:, 0]) + 0.1 * rng.standard_normal(n)

    def near(self):
        return NearKernelRidge(Matern(2.5, "learn"), random_state=0).fit(self.X, self.y)

    def at_random(self):
        found = learn_kernel(self.X, self.y, Matern(2.5), random_state=0)
        return NearKernelRidge(found.kernel, found.noise).fit(self.X, self.y)

    def error(self, model):
        return error(model.predict(self.new), np.sin(40 * self.new[:, 0]))

    def time_near(self, n):
        self.near()

    def time_at_random(self, n):
        self.at_random()

    def peakmem_near(self, n):
        self.near()

    def track_error_near(self, n):
        return self.error(self.near())

    def track_error_at_random(self, n):
        return self.error(self.at_random())
