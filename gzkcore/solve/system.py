"""The linear systems of kernel ridge regression, (K + alpha N) x = b, for many alphas and b.

K is the kernel matrix of the rows, N = diag(1 / w) for their weights w. `system_of` chooses how the
equations are solved, and returns a `KernelSystem`:

    FactoredSystem       at most HELD_ROWS rows: K is stored, and factored for each alpha
    PrecomputedSystem    the rows are those of K, which is not factored
    LinearTimeSystem     products with K in linear time
    TiledSystem          products with K tile by tile, here or by workers

The last two store nothing of the size of K.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gzkcore._util.checkpoint import as_checkpoint
from gzkcore._util.linalg import eigh
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import dense
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.fast_sums import FastSums
from gzkcore.kernels.general import Precomputed
from gzkcore.kernels.products import KernelOperator, as_double, matrix_of
from gzkcore.passes.streams import Step, as_step

from .factored import DOUBLE_ROWS, Factored, check_definite
from .preconditioner import Preconditioner
from .preconditioners import is_count, preconditioner_for
from .products import linear_sums
from .solve import OfColumns, ShiftedSystems, Solution, Solver, Start, norms, not_finite
from .trend import inverse as trend_inverse
from .workers import Workers

# Up to so many rows K is stored, in 134 MB at most, and factored: that takes no longer than the
# steps that it saves, and small alphas and standard deviations cost no more than others.
HELD_ROWS = 4096
BLOCK = 64  # So many columns are solved together.
SINGLE_TOL = 1e-4  # From this tol on steps are in single precision.
# The residual of few steps is not computed again if rounding changes it by this share of tol.
NEGLIGIBLE = 1e-2
# The kernel matrix of so many rows is tried for NaN, infinity and negative eigenvalues.
TRIED_ROWS = 64
LEAST_SIZE = 1e-150  # Smaller targets are scaled first: their squares are 0.
LANDMARKS = 512  # A precomputed matrix that is not factored has so many landmarks.


@dataclass(frozen=True)
class Equations:
    """(K + alpha N) x = b for some rows and any of several alphas, and how to solve them.

    The kernel is resolved. `noise` is the diagonal of N; None stands for ones. `preconditioner`,
    `tol`, `max_iter` and `random_state` are as for `KernelRidge`.
    """

    kernel: Kernel
    X: Rows
    alphas: Doubles
    noise: Doubles | None = None
    preconditioner: Any = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    random_state: Seed = None

    @property
    def automatic(self) -> bool:
        """Whether the preconditioner is chosen here."""
        return isinstance(self.preconditioner, str) and self.preconditioner == "auto"

    @property
    def factored(self) -> bool:
        """Whether K is factored."""
        return self.automatic and self.X.shape[0] <= HELD_ROWS


def system_of(
    equations: Equations, workers: Workers | None = None, *, by_tiles: bool = False
) -> "KernelSystem":
    """Return the system that solves the equations; with `by_tiles` none in linear time."""
    if equations.factored:
        return FactoredSystem(equations)
    rows = dense(equations.X)
    _check_some(equations, rows)
    if isinstance(equations.kernel, Precomputed):
        return PrecomputedSystem(equations)
    if not by_tiles:
        least = 1.0 if equations.noise is None else float(equations.noise.min())
        alpha, alphas = float(np.min(equations.alphas)) * least, np.unique(equations.alphas).size
        sums = linear_sums(equations.kernel, as_double(rows), alpha, equations.tol, alphas)
        if sums is not None:
            return LinearTimeSystem(equations, workers, sums)
    return TiledSystem(equations, workers or Workers())


def _check_some(equations: Equations, rows: Floats) -> None:
    """Raise if the matrix of some rows is not finite, or not positive definite."""
    some = np.arange(0, len(rows), max(1, len(rows) // TRIED_ROWS))
    if isinstance(equations.kernel, Precomputed):
        values = np.asarray(rows, dtype=np.float64)[np.ix_(some, some)]
    else:
        values = _finite_matrix(equations.kernel, rows[some])
    alpha = float(np.min(equations.alphas))
    noise = np.ones(some.size) if equations.noise is None else equations.noise[some]
    check_definite(eigh(values + np.diag(alpha * noise), eigvals_only=True), alpha)


def _finite_matrix(kernel: Kernel, rows: Floats) -> Doubles:
    """Return the kernel matrix of some rows, or raise if it is not finite."""
    with np.errstate(all="ignore"):
        values = matrix_of(kernel, as_double(rows))
    if not np.isfinite(values).all():
        raise not_finite(f"kernel={kernel!r}")
    return values


class KernelSystem:
    """The contract of a system: `product` and `exact` multiply by K, and all else uses these.

    Attributes
    ----------
    product, exact : callable
        V -> K V, for steps and in double precision.
    rows : ndarray of shape (n_rows, n_features)
    alphas : ndarray
        Those of the equations, sorted.
    """

    in_linear_time: ClassVar[bool] = False
    product: Callable[[Doubles], Doubles]
    exact: Callable[[Doubles], Doubles]

    def __init__(self, equations: Equations, workers: Workers | None = None) -> None:
        self.equations, self.workers = equations, workers
        self.kernel, self.noise, self.tol = equations.kernel, equations.noise, equations.tol
        self.rows: Floats = dense(equations.X)
        self.n_rows = len(self.rows)
        self.alphas = np.unique(equations.alphas)

    @functools.cached_property
    def preconditioner(self) -> Preconditioner:
        """That of K + alpha N."""
        return self.preconditioned(self.noise)

    def preconditioned(self, noise: Doubles | None, constant: float = 0.0) -> Preconditioner:
        """Return a preconditioner of K + constant + alpha N, for the diagonal of any N.

        Only a factored system adds the constant.
        """
        return self._preconditioner(self.equations.preconditioner, noise)

    def _preconditioner(
        self, choice: Any, noise: Doubles | None, sums: FastSums | None = None
    ) -> Preconditioner:
        return preconditioner_for(
            choice, self.kernel, self.rows, self.alphas, noise=noise,
            random_state=self.equations.random_state, sums=sums,
        )  # fmt: skip

    def part(self, rows: Integers) -> "KernelSystem":
        """Return the system of some of the rows, without noise."""
        return system_of(replace(self.equations, X=self.rows[rows], noise=None), self.workers)

    def columns_of(self, alphas: Doubles) -> Integers:
        """Return the number of each alpha among those of the system."""
        return np.searchsorted(self.alphas, alphas)

    def _diagonal(self) -> Doubles:
        """Return the diagonal of K."""
        return self.kernel.diag(self.rows)

    @functools.cached_property
    def _is_accurate(self) -> bool:
        """Whether residuals change by rounding far less than by `tol`: by eps |A| |x| at most.

        |A| is at most the trace, and |x| at most |y| / alpha.
        """
        largest = float(self._diagonal().max())
        rounding = float(np.finfo(np.float64).eps) * self.n_rows * largest
        least = self.alphas[0] * (1.0 if self.noise is None else self.noise.min())
        return bool(rounding <= NEGLIGIBLE * self.tol * least)

    def solve(
        self,
        targets: Doubles,
        alphas: Doubles,
        *,
        start: Start | None = None,
        step: Step | None = None,
        progress: Any = None,
        checkpoint: Any = None,
    ) -> Solution:
        """Solve (K + alphas[k] N) x_k = targets[:, k] for all k, some columns at a time.

        The alphas are among those of the system; each product is run by `step`. `progress` and
        `checkpoint` are as for `conjugate_gradients`.
        """
        width = BLOCK if checkpoint is None else targets.shape[1]
        parts = [slice(i, i + width) for i in range(0, targets.shape[1], width)]
        first = start or Start()

        def product(V: Doubles) -> Any:
            return as_step(step, lambda: self.product(V))

        exact = product if self.exact is self.product and self._is_accurate else self.exact
        return Solution.beside([
            Solver(
                ShiftedSystems(
                    (product, exact), targets[:, part], alphas[part], self.noise,
                    OfColumns(self.preconditioner, self.columns_of(alphas[part])),
                    first.part(part),
                ),
                self.tol, self.equations.max_iter, progress, as_checkpoint(checkpoint),
            ).run()
            for part in parts
        ])  # fmt: skip

    def regress(
        self,
        y: Doubles,
        alphas: Doubles,
        H: Doubles | None,
        *,
        start: Start | None = None,
        step: Step | None = None,
        progress: Any = None,
        checkpoint: Any = None,
    ) -> tuple[Solution, Doubles, Start]:
        """Return c = (K + alphas[k] N)^-1 (y_k - H b_k) for all targets k, and b, see `trend`.

        H, whose first column is ones, has the functions that are not penalised, None for none. So
        there is one system more for each of its columns and each different alpha. The residual is
        that of y - H b. The third value starts another call: solutions of y, then of H for each
        alpha.
        """
        n_targets = y.shape[1]
        if H is None:
            solution = self.solve(
                y, alphas, start=start, step=step, progress=progress, checkpoint=checkpoint
            )
            no_trend = np.zeros((0, n_targets))
            return solution, no_trend, Start(solution.coef, solution.left)
        centre, n_free = y.mean(axis=0) * (start is None), H.shape[1]
        different, places = np.unique(alphas, return_inverse=True)
        both = self.solve(
            np.column_stack([y - centre, np.tile(H, different.size)]),
            np.concatenate([alphas, np.repeat(different, n_free)]), start=start, step=step,
            progress=progress, checkpoint=checkpoint,
        )  # fmt: skip
        coef, of_H = np.split(both.coef, [n_targets], axis=1)
        left, left_of_H = np.split(both.left, [n_targets], axis=1)
        b = np.zeros((n_free, n_targets))
        for place in range(different.size):
            targets = places == place
            here = slice(place * n_free, (place + 1) * n_free)
            b[:, targets] = trend_inverse(H, of_H[:, here]) @ (H.T @ coef[:, targets])
            coef[:, targets] -= of_H[:, here] @ b[:, targets]
            left[:, targets] -= left_of_H[:, here] @ b[:, targets]
        b[0] += centre
        known = left if self._is_accurate and np.isfinite(left).all() else None
        solution = self.solve(
            y - H @ b, alphas, start=Start(coef, known), step=step, progress=progress
        )
        solution.n_iter += both.n_iter[:n_targets]
        left = np.hstack([solution.left, left_of_H])
        return solution, b, Start(np.hstack([solution.coef, of_H]), left)

    def condition_bounds(self, alphas: Doubles) -> Doubles:
        """Return an upper bound of each alpha's condition number; inf if unknown."""
        return np.array([
            self.preconditioner.condition_bound(place) if self.alphas[place] > 0 else np.inf
            for place in self.columns_of(alphas).tolist()
        ])  # fmt: skip

    def root(self, alpha: float) -> Doubles | None:
        """Return L of K + alpha N = L L^T if the system is factored, else None."""
        return None

    def quadratic_forms(self, V: Doubles, alpha: float) -> Doubles:
        """Return v^T (K + alpha N) v of each column."""
        noise = alpha if self.noise is None else alpha * self.noise[:, None]
        return np.asarray(np.einsum("ij,ij->j", V, self.exact(V) + noise * V))


class _MatrixSystem(KernelSystem):
    """A system whose K is stored."""

    def __init__(self, equations: Equations) -> None:
        super().__init__(equations)
        if isinstance(self.kernel, Precomputed):
            self.matrix: Doubles = np.asarray(self.rows, dtype=np.float64)
        else:
            self.matrix = _finite_matrix(self.kernel, self.rows)
        self.exact = self.product = self.matrix.__matmul__

    def _diagonal(self) -> Doubles:
        return self.matrix.diagonal()

    def part(self, rows: Integers) -> KernelSystem:
        """Return the system of some of the rows, without noise."""
        block = self.matrix[np.ix_(rows, rows)]
        return system_of(replace(self.equations, kernel=Precomputed(), X=block, noise=None))


class FactoredSystem(_MatrixSystem):
    """Few rows: K is stored, and its factor solves in one step or two."""

    def preconditioned(self, noise: Doubles | None, constant: float = 0.0) -> Factored:
        """Return (K + constant + alpha N)^-1 itself."""
        matrix = self.matrix + constant if constant else self.matrix
        return Factored(matrix, self.alphas, np.ones(self.n_rows) if noise is None else noise)

    def solve(self, targets: Doubles, alphas: Doubles, **options: Any) -> Solution:
        """Solve with one thread, see `KernelSystem`; without its steps where one is enough."""
        asked = {name for name, value in options.items() if value is not None}
        few = self.n_rows <= DOUBLE_ROWS and self.equations.max_iter > 0
        with limit_blas(1):
            if few and asked <= {"step"}:
                step = options.get("step")
                direct: Solution | None = as_step(step, lambda: self._direct(targets, alphas))
                if direct is not None:
                    return direct
            return super().solve(targets, alphas, **options)

    def _direct(self, targets: Doubles, alphas: Doubles) -> Solution | None:
        """Return the solution by the factors, None where it is less accurate than `tol`."""
        with np.errstate(all="ignore"):
            coef = self.preconditioner.solve(targets, self.columns_of(alphas))
            noise = alphas if self.noise is None else alphas * self.noise[:, None]
            left = targets - (self.matrix @ coef + noise * coef)
            sizes = norms(targets)
            residual = norms(left) / np.where(sizes > 0, sizes, 1.0)
        converged = residual <= self.tol
        if not (converged & ((sizes > LEAST_SIZE) | ~targets.any(axis=0))).all():
            return None
        n_iter, status = (sizes > 0).astype(np.intp), ["converged"] * alphas.size
        return Solution(
            coef, residual, n_iter, converged, status, alphas, self.tol, residual[None], left
        )

    def root(self, alpha: float) -> Doubles | None:
        """Return L of K + alpha N = L L^T, None if the matrix is singular."""
        factored: Any = self.preconditioner
        root: Doubles | None = factored.root(alpha)
        return root


class PrecomputedSystem(_MatrixSystem):
    """A precomputed matrix, with landmarks among its rows."""

    def preconditioned(self, noise: Doubles | None, constant: float = 0.0) -> Preconditioner:
        """Return a preconditioner, see `KernelSystem`."""
        choice = LANDMARKS if self.equations.automatic else self.equations.preconditioner
        if is_count(choice):
            count, seed = min(int(choice), self.n_rows), self.equations.random_state
            choice = NystromFeatures("precomputed", count, random_state=seed).fit(self.rows)
        return self._preconditioner(choice, noise)


class LinearTimeSystem(KernelSystem):
    """Rows in few columns, or on the sphere, whose products take linear time."""

    in_linear_time = True

    def __init__(self, equations: Equations, workers: Workers | None, sums: FastSums) -> None:
        super().__init__(equations, workers)
        self.sums = sums
        self.exact = self.product = sums.times

    def preconditioned(self, noise: Doubles | None, constant: float = 0.0) -> Preconditioner:
        """Return a preconditioner that costs no more than its steps, see `KernelSystem`."""
        return self._preconditioner(self.equations.preconditioner, noise, self.sums)


class TiledSystem(KernelSystem):
    """Products with K, tile by tile: in single precision for steps unless tol is small."""

    def __init__(self, equations: Equations, workers: Workers) -> None:
        super().__init__(equations, workers)
        self.exact = self.product = workers.product(KernelOperator.of(self.kernel, self.rows))
        if self.tol >= SINGLE_TOL:
            quick = KernelOperator.of(self.kernel, self.rows, dtype=np.float32)
            self.product = workers.product(quick)
