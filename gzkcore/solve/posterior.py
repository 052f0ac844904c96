"""The posterior of a kernel ridge regression: variances, slopes and draws of f given y.

f is a Gaussian process with covariance k, and y = f(x) + noise of variance alpha N, both in units
of the prior scale. `posterior_of` chooses how the variances of many new rows are computed:

    Posterior         exactly, by a factor of K + alpha N or by solves; also on centres
    NearPosterior     given some rows around each new one, with few columns
    DrawnPosterior    from draws of the prior, which Matheron's rule conditions on y

All have the methods of `Posterior`. They belong to the model's rows, and go into its pickles
without the system, which is made again if it is needed.
"""

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from gzkcore._util.linalg import eigh, solve_factored, solve_triangle
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Rows, Seed
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted
from gzkcore.features.fourier import FrequencyRule, RandomFourierFeatures
from gzkcore.features.gegenbauer import GegenbauerFeatures
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.general import FunctionKernel, Precomputed
from gzkcore.kernels.products import (
    KernelOperator,
    as_double,
    kernel_diagonal,
    kernel_matrix,
    matrix_of,
)
from gzkcore.kernels.slopes import derivatives, gradients, prior_slopes

from .factored import DOUBLE_ROWS
from .near_variances import NearVariances
from .preconditioners import LEAST_ALPHA
from .products import cross_product
from .system import BLOCK, Equations, KernelSystem, system_of
from .trend import Trend, inverse

# With up to so many rows of the fit a solve for a new row costs no more than rows near by.
NEAR_FROM = 2048
EXACT_ROWS = 64  # The variances of so many new rows cost no more solves than the draws.
# Solves for so many new rows times rows of the fit take no longer than to look for rows near by.
EXACT_VALUES = 1 << 18
N_DRAWS = 64  # A variance is the mean square of so many draws.
# A draw from the prior has so many features, which cost little beside the solve.
PRIOR_COMPONENTS = 1 << 14
# So many rows have features at a time: 64 take 15 times the processor time with two threads of
# OpenBLAS.
PRIOR_ROWS = 256
JOINT_ROWS = 1 << 12  # Up to so many old and new rows, draws come from their whole matrix.
FACTOR_ROWS = 512  # So many new rows at a time are multiplied by the inverse of a factor.
SLOPE_ROWS = 3  # Slopes take so many times the rows near by: smooth functions average more.

Prior = Callable[[Rows], Doubles]  # draws of f at rows, of shape (n_rows, n_draws)


def posterior_of(
    equations: Equations, trend: Trend | None, *, exactly: bool, near_from: int = NEAR_FROM
) -> "Posterior":
    """Return the posterior of a regression on the rows of the equations.

    With `exactly` it computes all variances exactly, however many. Else it does so if K is factored
    and has at most DOUBLE_ROWS rows, or `near_from` rows in few columns.
    """
    n_rows, factored = equations.X.shape[0], equations.factored
    if exactly or (factored and n_rows <= DOUBLE_ROWS):
        return Posterior(equations, trend)
    if not NearVariances.suit(equations.kernel, equations.X):
        return DrawnPosterior(equations, trend)
    if factored and n_rows <= near_from:
        return Posterior(equations, trend)
    return NearPosterior(equations, trend)


class Posterior:
    """Variances, slopes and draws of f given y, in units of the prior scale, computed exactly.

    Parameters
    ----------
    equations : Equations
    trend : Trend, optional
        What is not penalised, and unknown too.
    """

    # Whether rows come in batches. Then no variance may depend on how many rows are in one.
    _in_batches = False
    listener: Any = None  # of solves, see `conjugate_gradients`

    def __init__(self, equations: Equations, trend: Trend | None) -> None:
        self.equations, self.trend = equations, trend
        self.kernel = equations.kernel
        self._of_trend: dict[float, tuple[Doubles, Doubles]] = {}

    @functools.cached_property
    def system(self) -> KernelSystem:
        """The system of the equations; whoever has it may set it."""
        return system_of(self.equations)

    @property
    def made_system(self) -> KernelSystem | None:
        """The system if it was needed so far."""
        return vars(self).get("system")

    @functools.cached_property
    def at_rows(self) -> Doubles | None:
        """H, the functions of the trend at the rows; None without a trend."""
        return None if self.trend is None else self.trend.columns(self.equations.X)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again from the rows."""
        state = {k: v for k, v in vars(self).items() if k not in ("system", "at_rows", "near")}
        return state | {"_of_trend": {}}

    def for_batches(self) -> Self:
        """Return a copy whose variances don't depend on how the new rows are batched."""
        posterior = copy.copy(self)
        posterior._in_batches = True
        return posterior

    def variances(self, X: Rows, alpha: float) -> Doubles:
        """Return the variance of f at each row, k(x, x) - k_x^T A^-1 k_x with A = K + alpha N.

        If A is factored, A = L L^T, |L^-1 k_x|^2 is subtracted. Else a block of rows is solved for:
        with x = A^-1 k_x up to an error, k(x, x) - 2 k_x^T x + x^T A x is too large by the square
        of the error, and never negative. A trend adds its share, see `trend`.
        """
        variances, root = np.empty(X.shape[0]), self.system.root(alpha)
        step = BLOCK if root is None else FACTOR_ROWS
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            cross = self._kernel_with(X[rows])
            variances[rows] = self._diagonal(X[rows])
            if root is None:
                weights = self._solve(cross, alpha)
                variances[rows] += self.system.quadratic_forms(weights, alpha)
                variances[rows] -= 2 * np.einsum("ij,ij->j", cross, weights)
            else:
                variances[rows] -= np.square(solve_triangle(root, cross)).sum(axis=0)
            if self.trend is not None:
                of_H, unknown = self._trend_solution(alpha)
                u = self.trend.columns(X[rows]) - cross.T @ of_H
                variances[rows] += np.einsum("ij,jk,ik->i", u, unknown, u)
        return np.maximum(variances, 0.0)

    def slope_variances(self, X: Rows, directions: Doubles, alpha: float) -> Doubles:
        """Return the variance of the slopes of f at each row along its directions, (n_rows, p).

        Directions are (n_rows, p, d).
        """
        return self._slope_variances(X, directions, alpha, None)

    def correction(self, values: Doubles, alpha: float, rng: np.random.Generator) -> "Correction":
        """Return the correction by y of draws of f with these values at the rows, a solve for each.

        A draw with noise is a possible y: f less the regression of it has the distribution of f
        less its mean.
        """
        noise = self.equations.noise
        roots = np.sqrt(alpha * (np.ones(len(values)) if noise is None else noise))
        errors = rng.standard_normal(values.shape) * roots[:, None]
        coef = self._solve(values + errors, alpha)
        if self.at_rows is None:
            return Correction(self.equations, coef, None, np.empty((0, values.shape[1])))
        of_H, unknown = self._trend_solution(alpha)
        b = unknown @ (self.at_rows.T @ coef)
        return Correction(self.equations, coef - of_H @ b, self.trend, b)

    def _solve(self, targets: Doubles, alpha: float) -> Doubles:
        """Return A^-1 times the targets."""
        alphas = np.full(targets.shape[1], alpha)
        return self.system.solve(targets, alphas, progress=self.listener).coef

    def _trend_solution(self, alpha: float) -> tuple[Doubles, Doubles]:
        """Return A^-1 H and (H^T A^-1 H)^-1."""
        H: Any = self.at_rows
        if alpha not in self._of_trend:
            root = self.system.root(alpha)
            of_H = self._solve(H, alpha) if root is None else solve_factored(root, H)
            self._of_trend[alpha] = of_H, inverse(H, of_H)
        return self._of_trend[alpha]

    def _slope_variances(
        self, X: Rows, directions: Doubles, alpha: float, near: NearVariances | None
    ) -> Doubles:
        """Return variances of slopes given rows near by, or given all rows by a solve for each."""
        rows, old = as_double(dense(X)), as_double(dense(self.equations.X))
        prior = self._prior_slopes(rows.shape[1])
        variances: Doubles = np.einsum(
            "ipc,ipc->ip", directions, np.einsum("ipe,ec->ipc", directions, prior)
        )
        step = 1 if near is not None else max(1, BLOCK // directions.shape[1])
        about: Any = None if near is None else near.rows_about(rows, SLOPE_ROWS)
        for start in range(0, len(rows), step):
            here = slice(start, start + step)
            some = slice(None) if about is None else about[start]
            D: Any = derivatives(self.kernel, rows[here], old[some])
            sides = np.einsum("ipc,icj->ipj", directions[here], D).reshape(-1, D.shape[2]).T
            if near is not None:
                K = matrix_of(self.kernel, old[some])
                noise = max(alpha, LEAST_ALPHA * float(K.max())) * near.noise[some]
                with limit_blas(1):  # more threads wait for one another
                    root = cholesky(K + np.diag(noise), lower=True)
                    explained = np.square(solve_triangle(root, sides)).sum(axis=0)
            else:
                explained = self._explained(sides, alpha)
            variances[here] -= explained.reshape(variances[here].shape)
        if self.trend is not None:
            variances += self._trend_slopes(rows, directions, old, alpha)
        return np.maximum(variances, 0.0)

    def _prior_slopes(self, dim: int) -> Doubles:
        prior = prior_slopes(self.kernel, dim)
        if prior is None:
            raise ValueError(
                f"kernel={self.kernel!r} gives no standard deviations of slopes; use one "
                "that is a smooth function of distances: a Gaussian, or a Matern of nu > 1"
            )
        return prior

    def _explained(self, sides: Doubles, alpha: float) -> Doubles:
        """Return b^T A^-1 b of each column."""
        root = self.system.root(alpha)
        if root is not None:
            return np.asarray(np.square(solve_triangle(root, sides)).sum(axis=0))
        weights = self._solve(sides, alpha)
        twice = 2 * np.einsum("ij,ij->j", sides, weights)
        return np.asarray(twice - self.system.quadratic_forms(weights, alpha))

    def _trend_slopes(self, X: Doubles, directions: Doubles, old: Doubles, alpha: float) -> Doubles:
        """Return u^T (H^T A^-1 H)^-1 u of the trend, where u is the slope of h - H^T A^-1 k."""
        trend: Any = self.trend
        of_H, unknown = self._trend_solution(alpha)
        origin = np.zeros((1, X.shape[1]))
        own = trend.columns(np.eye(X.shape[1])) - trend.columns(origin)
        slopes: Any = gradients(self.kernel, X, old, of_H)  # (n_rows, n_free, d)
        u = np.einsum("ipc,icj->ipj", directions, own[None] - slopes.transpose(0, 2, 1))
        return np.asarray(np.einsum("ipj,jk,ipk->ip", u, unknown, u))

    def _kernel_with(self, X: Rows) -> Doubles:
        """Return k between the fitted rows and some new ones, of shape (n, n_new)."""
        if isinstance(self.kernel, Precomputed):
            return np.ascontiguousarray(dense(X).T, dtype=np.float64)
        return matrix_of(self.kernel, as_double(self.system.rows), as_double(dense(X)))

    def _diagonal(self, X: Rows) -> Doubles:
        if isinstance(self.kernel, Precomputed):
            raise ValueError(  # noqa: TRY004  the type is right, and not enough
                "with kernel='precomputed' k(x, x) of new rows is unknown, but their standard "
                "deviation needs it; use the kernel itself"
            )
        return self.kernel.diag(X)


class NearPosterior(Posterior):
    """Variances of many new rows given rows near by, see `NearVariances`; of few, exactly."""

    @functools.cached_property
    def near(self) -> NearVariances:
        """The rows of the fit, to be searched."""
        return NearVariances(self.kernel, self.equations.X, self.equations.noise)

    def variances(self, X: Rows, alpha: float) -> Doubles:
        """Return the variance of f at each row given rows near by, and the share of the trend."""
        if self._are_few(X):
            return super().variances(X, alpha)
        variances = self.near.at(X, alpha)
        if self.trend is not None:
            of_H, unknown = self._trend_solution(alpha)
            rows, old = as_double(dense(X)), as_double(dense(self.equations.X))
            cross = KernelOperator.of(self.kernel, rows, old, np.float32).times(of_H)
            u = self.trend.columns(X) - cross
            variances += np.einsum("ij,jk,ik->i", u, unknown, u)
        return variances

    def slope_variances(self, X: Rows, directions: Doubles, alpha: float) -> Doubles:
        """Return the variance of slopes, see `Posterior`: given rows near by unless K is factored.

        Those of few new rows are exact, too.
        """
        few = self.equations.factored or self._are_few(X)
        return self._slope_variances(X, directions, alpha, None if few else self.near)

    def _are_few(self, X: Rows) -> bool:
        most = min(EXACT_ROWS, EXACT_VALUES // self.equations.X.shape[0])
        return not self._in_batches and X.shape[0] <= most


class DrawnPosterior(Posterior):
    """Variances of many new rows as mean squares of draws; of few, exactly."""

    def for_batches(self) -> Self:
        """Return a copy with the same draws, see `Posterior`."""
        _ = self._draws
        return super().for_batches()

    def variances(self, X: Rows, alpha: float) -> Doubles:
        """Return the mean square of the corrected draws at each row.

        A kernel without features to draw by has exact variances.
        """
        few = self.equations.X.shape[0] if self.equations.factored else EXACT_ROWS
        exactly = not self._in_batches and X.shape[0] <= few
        draws = None if exactly else self._draws
        if draws is None:
            return super().variances(X, alpha)
        prior, corrections = draws
        drawn = prior(X)
        prior_variance = kernel_diagonal(self.kernel, X)
        variances = mean_square(drawn - corrections[alpha].at(X), drawn, prior_variance)
        # y lowers the prior variance, except for the trend.
        return variances if self.trend is not None else np.minimum(variances, prior_variance)

    @functools.cached_property
    def _draws(self) -> "tuple[Prior, dict[float, Correction]] | None":
        """Draws from the prior, and their corrections for each alpha; None without features."""
        equations, rng = self.equations, generator(self.equations.random_state)
        prior = feature_prior(self.kernel, equations.X, N_DRAWS, rng)
        if prior is None:
            return None
        values, alphas = prior(equations.X), np.unique(equations.alphas).tolist()
        return prior, {alpha: self.correction(values, alpha, rng) for alpha in alphas}


def mean_square(left: Doubles, drawn: Doubles, variance: Doubles) -> Doubles:
    """Return the mean squares of corrected draws, `left`, given the variance of the draws.

    A corrected draw is a multiple of the draw and a rest. The multiple has a known variance, so
    that only the variance of the rest is estimated from the draws: far from the data it is 0.
    """
    squares = np.einsum("ij,ij->i", drawn, drawn)
    share = np.einsum("ij,ij->i", left, drawn) / np.where(squares > 0, squares, 1.0)
    rest = left - share[:, None] * drawn
    return np.asarray(np.square(share) * variance + np.square(rest).mean(axis=1))


@dataclass
class Correction:
    """Matheron's correction of draws of the prior by y, at any rows."""

    equations: Equations
    coef: Doubles  # (n, n_draws)
    trend: Trend | None
    b: Doubles  # (n_free, n_draws)

    def at(self, X: Rows) -> Doubles:
        """Return the correction at rows X, of shape (n_rows, n_draws)."""
        smooth = cross_product(self.equations.kernel, X, self.equations.X, self.coef)
        return smooth if self.trend is None else smooth + self.trend.columns(X) @ self.b


# ---- draws from the prior


def feature_prior(kernel: Kernel, X: Rows, n_draws: int, random_state: Seed) -> Prior | None:
    """Return draws of a process of covariance k, by features; None for kernels without.

    f = Z w for independent w has the covariance Z Z^T, which is k up to 1 / sqrt(n_components).
    """
    rng = generator(random_state)
    if isinstance(kernel, FunctionKernel | Precomputed):
        return None
    frequencies: FrequencyRule = "orthogonal" if kernel.rotation_invariant else "iid"
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
