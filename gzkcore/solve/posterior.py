"""The posterior of a kernel ridge regression: variances and draws of f given y.

f is a Gaussian process with covariance k, and y = f(x) + noise of variance alpha N, both in units
of the prior scale s. For a few points variances are computed exactly; for any number of points they
come from draws from the prior, which Matheron's rule conditions on y.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from gzkcore._util.linalg import eigh, solve_factored, solve_triangle
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Rows, Seed
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted
from gzkcore.features.fourier import Frequencies, RandomFourierFeatures
from gzkcore.features.gegenbauer import GegenbauerFeatures
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import FunctionKernel, Precomputed
from gzkcore.kernels.products import KernelOperator, as_double, kernel_matrix, matrix_of
from gzkcore.kernels.slopes import derivatives, gradients, prior_slopes

from .kernel_system import BLOCK, KernelSystem, cross_product
from .near_variances import NearVariances
from .preconditioners import LEAST_ALPHA
from .trend import Trend, inverse

PRIOR_COMPONENTS = 1 << 14  # features of a draw from the prior: they cost little beside the solve
# Rows at a time: 64 take 15 times the processor time with two threads of OpenBLAS.
PRIOR_ROWS = 256
JOINT_ROWS = 1 << 12  # old and new, up to which draws are made from their whole matrix
N_DRAWS = 64  # that a variance is the mean square of
ROWS = 512  # new ones at a time, beside a factor
SLOPE_ROWS = 3  # times as many near by tell of slopes: smooth functions average more
EXACT_ROWS = 64  # new ones, whose variances cost no more solves than the draws

Prior = Callable[[Rows], Doubles]  # draws of f at rows, of shape (n_rows, n_draws)


@dataclass
class Correction:
    """What y takes from draws of the prior, at any rows."""

    coef: Doubles  # (n, n_draws)
    trend: Trend | None
    b: Doubles  # (n_free, n_draws)

    def at(self, kernel: Kernel, X: Rows, fitted: Rows) -> Doubles:
        """Return it at rows X, of shape (n_rows, n_draws)."""
        found = cross_product(kernel, X, fitted, self.coef)
        return found if self.trend is None else found + self.trend.columns(X) @ self.b


class Posterior:
    """Variances and draws of f given y, in units of the prior scale.

    Parameters
    ----------
    system : KernelSystem
    trend : Trend, optional
        What is not penalised, and unknown too.
    """

    def __init__(self, system: KernelSystem, trend: Trend | None) -> None:
        self.system, self.trend = system, trend
        self.H = np.empty((system.n_rows, 0)) if trend is None else trend.columns(system.rows)
        self._of_trend: dict[float, tuple[Doubles, Doubles]] = {}

    def of_trend(self, alpha: float) -> tuple[Doubles, Doubles]:
        """Return A^-1 H and (H^T A^-1 H)^-1 for A = K + alpha N."""
        if alpha not in self._of_trend:
            root = self.system.root(alpha)
            if root is None:
                of_H = self.system.solve(self.H, np.full(self.H.shape[1], alpha)).coef
            else:
                of_H = solve_factored(root, self.H)
            self._of_trend[alpha] = of_H, inverse(self.H, of_H)
        return self._of_trend[alpha]

    def variances(self, X: Rows, alpha: float) -> Doubles:
        """Return the variance of f at each row, exactly: k(x, x) - k_x^T A^-1 k_x.

        Where A is factored, A = L L^T, that takes away |L^-1 k_x|^2. Else a block of rows is
        solved for: with x = A^-1 k_x up to an error, k(x, x) - 2 k_x^T x + x^T A x is too large by
        the square of the error, and never negative. A trend adds its share, see `trend`.
        """
        system, found = self.system, np.empty(X.shape[0])
        root = system.root(alpha)
        step = BLOCK if root is None else ROWS
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            cross = self._kernel_with(X[rows])
            found[rows] = self._diagonal(X[rows])
            if root is None:
                weights = system.solve(cross, np.full(cross.shape[1], alpha)).coef
                found[rows] += system.quadratic_forms(weights, alpha)
                found[rows] -= 2 * np.einsum("ij,ij->j", cross, weights)
            else:
                found[rows] -= np.square(solve_triangle(root, cross)).sum(axis=0)
            if self.trend is not None:
                of_H, unknown = self.of_trend(alpha)
                u = self.trend.columns(X[rows]) - cross.T @ of_H
                found[rows] += np.einsum("ij,jk,ik->i", u, unknown, u)
        return np.maximum(found, 0.0)

    def near_variances(self, near: NearVariances, X: Rows, alpha: float) -> Doubles:
        """Return the variance of f at each row given rows near by, and the share of the trend."""
        found = near.at(X, alpha)
        if self.trend is not None:
            of_H, unknown = self.of_trend(alpha)
            rows, old = as_double(dense(X)), as_double(self.system.rows)
            cross = KernelOperator.of(self.system.kernel, rows, old, np.float32).times(of_H)
            u = self.trend.columns(X) - cross
            found += np.einsum("ij,jk,ik->i", u, unknown, u)
        return found

    def slope_variances(
        self, X: Rows, directions: Doubles, alpha: float, near: NearVariances | None
    ) -> Doubles:
        """Return the variance of the slopes of f at each row along its directions, (n_rows, p).

        Directions are (n_rows, p, d). Given all rows a solve for each, see `variances`; given rows
        near by a factor of theirs.
        """
        system, rows = self.system, as_double(dense(X))
        old, prior = as_double(system.rows), self._prior_slopes(rows.shape[1])
        found: Doubles = np.einsum(
            "ipc,ipc->ip", directions, np.einsum("ipe,ec->ipc", directions, prior)
        )
        step = 1 if near is not None else max(1, BLOCK // directions.shape[1])
        about: Any = None if near is None else near.rows_about(rows, SLOPE_ROWS)
        for start in range(0, len(rows), step):
            here = slice(start, start + step)
            some = slice(None) if about is None else about[start]
            D: Any = derivatives(system.kernel, rows[here], old[some])
            sides = np.einsum("ipc,icj->ipj", directions[here], D).reshape(-1, D.shape[2]).T
            if near is not None:
                K = matrix_of(system.kernel, old[some])
                noise = max(alpha, LEAST_ALPHA * float(K.max())) * near.noise[some]
                with limit_blas(1):  # more threads wait for one another
                    root = cholesky(K + np.diag(noise), lower=True)
                    taken = np.square(solve_triangle(root, sides)).sum(axis=0)
            else:
                taken = self._taken(sides, alpha)
            found[here] -= taken.reshape(found[here].shape)
        if self.trend is not None:
            found += self._trend_slopes(rows, directions, old, alpha)
        return np.maximum(found, 0.0)

    def _prior_slopes(self, dim: int) -> Doubles:
        found = prior_slopes(self.system.kernel, dim)
        if found is None:
            raise ValueError(
                f"kernel={self.system.kernel!r} gives no standard deviations of slopes; use one "
                "that is a smooth function of distances: a Gaussian, or a Matern of nu > 1"
            )
        return found

    def _taken(self, sides: Doubles, alpha: float) -> Doubles:
        """Return b^T A^-1 b of each column."""
        root = self.system.root(alpha)
        if root is not None:
            return np.asarray(np.square(solve_triangle(root, sides)).sum(axis=0))
        weights = self.system.solve(sides, np.full(sides.shape[1], alpha)).coef
        found = 2 * np.einsum("ij,ij->j", sides, weights)
        return np.asarray(found - self.system.quadratic_forms(weights, alpha))

    def _trend_slopes(self, X: Doubles, directions: Doubles, old: Doubles, alpha: float) -> Doubles:
        """Return u^T (H^T A^-1 H)^-1 u of the trend, where u is the slope of h - H^T A^-1 k."""
        trend: Any = self.trend
        of_H, unknown = self.of_trend(alpha)
        origin = np.zeros((1, X.shape[1]))
        own = trend.columns(np.eye(X.shape[1])) - trend.columns(origin)
        slopes: Any = gradients(self.system.kernel, X, old, of_H)  # (n_rows, n_free, d)
        u = np.einsum("ipc,icj->ipj", directions, own[None] - slopes.transpose(0, 2, 1))
        return np.asarray(np.einsum("ipj,jk,ipk->ip", u, unknown, u))

    def _kernel_with(self, X: Rows) -> Doubles:
        """Return k between the fitted rows and some new ones, of shape (n, n_new)."""
        if isinstance(self.system.kernel, Precomputed):
            return np.ascontiguousarray(dense(X).T, dtype=np.float64)
        rows = as_double(self.system.rows), as_double(dense(X))
        return matrix_of(self.system.kernel, *rows)

    def _diagonal(self, X: Rows) -> Doubles:
        if isinstance(self.system.kernel, Precomputed):
            raise ValueError(  # noqa: TRY004  the type is right, and not enough
                "with kernel='precomputed' k(x, x) of new rows is unknown, but their standard "
                "deviation needs it; use the kernel itself"
            )
        return self.system.kernel.diag(X)

    def correction(self, values: Doubles, alpha: float, rng: np.random.Generator) -> Correction:
        """Return what y takes from draws of f, given at the rows: a solve for each.

        A draw with noise added is what y might have been: f less what a regression makes of it
        has the distribution of f less its mean.
        """
        system, n_draws = self.system, values.shape[1]
        noise = np.ones(system.n_rows) if system.noise is None else system.noise
        errors = rng.standard_normal(values.shape) * np.sqrt(alpha * noise)[:, None]
        coef = system.solve(values + errors, np.full(n_draws, alpha)).coef
        if self.trend is None:
            return Correction(coef, None, np.empty((0, n_draws)))
        of_H, unknown = self.of_trend(alpha)
        b = unknown @ (self.H.T @ coef)
        return Correction(coef - of_H @ b, self.trend, b)


def mean_square(left: Doubles, drawn: Doubles, variance: Doubles) -> Doubles:
    """Return the mean squares of what y leaves of draws whose own variance is known.

    What is left is a multiple of the draw and a rest. The multiple has a known variance, so that
    the draws have to tell only that of the rest: none far from the data, which take nothing away.
    """
    squares = np.einsum("ij,ij->i", drawn, drawn)
    share = np.einsum("ij,ij->i", left, drawn) / np.where(squares > 0, squares, 1.0)
    rest = left - share[:, None] * drawn
    found: Doubles = np.square(share) * variance + np.square(rest).mean(axis=1)
    return found


# ---- draws from the prior


def feature_prior(kernel: Kernel, X: Rows, n_draws: int, random_state: Seed) -> Prior | None:
    """Return draws of a process of covariance k, by features; None for kernels without.

    f = Z w for independent w has the covariance Z Z^T, which is k up to 1 / sqrt(n_components).
    """
    rng = generator(random_state)
    if isinstance(kernel, FunctionKernel | Precomputed):
        return None
    frequencies: Frequencies = "orthogonal" if kernel.rotation_invariant else "iid"
    seed = int(rng.integers(2**31))
    for features in (
        RandomFourierFeatures(kernel, PRIOR_COMPONENTS, frequencies=frequencies, random_state=seed),
        GegenbauerFeatures(kernel, PRIOR_COMPONENTS, basis="random", random_state=seed),
    ):
        try:
            features.fit(X)
        except ValueError:  # no spectrum, no series
            continue
        weights = rng.standard_normal((PRIOR_COMPONENTS, n_draws))
        return _FeaturePrior(features, weights)
    return None


@dataclass
class _FeaturePrior:
    features: Any
    weights: Doubles

    def __call__(self, X: Rows) -> Doubles:
        with limit_blas(1):
            parts = [
                self.features.transform(X[start : start + PRIOR_ROWS]) @ self.weights
                for start in range(0, X.shape[0], PRIOR_ROWS)
            ]
        return np.concatenate(parts).astype(np.float64, copy=False)


def joint_draws(
    kernel: Kernel, old: Rows, new: Rows, n_draws: int, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Return exact draws at old and at new rows, from the kernel matrix of both."""
    if isinstance(kernel, Precomputed):
        raise ValueError(  # noqa: TRY004  the type is right, and not enough
            "with kernel='precomputed' k between new rows is unknown, but draws need it; use the "
            "kernel itself"
        )
    n_rows = old.shape[0] + new.shape[0]
    if n_rows > JOINT_ROWS:
        raise ValueError(
            f"{kernel!r} has no features to draw from, so that the kernel matrix of "
            f"{counted(n_rows, 'row')}, old and new, would have to be factored, and the limit is "
            f"{JOINT_ROWS:,}; use fewer rows, or a shift-invariant kernel (Gaussian, Matern)"
        )
    rows = np.concatenate([dense(old), dense(new)])
    root = _root(kernel_matrix(kernel, rows, dtype=np.float64))
    values = root @ rng.standard_normal((n_rows, n_draws))
    return values[: old.shape[0]], values[old.shape[0] :]


def _root(matrix: Doubles) -> NDArray[np.float64]:
    """Return a square root of a positive semidefinite matrix."""
    try:
        root: Doubles = cholesky(matrix, lower=True)
    except LinAlgError:
        values, vectors = eigh(matrix)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
