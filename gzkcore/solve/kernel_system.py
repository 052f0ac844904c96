"""The linear systems of kernel ridge regression, (K + alpha N) x = b, for many alphas and b.

K is the kernel matrix of the rows, N = diag(1 / w) for their weights w. With at most HELD_ROWS rows
K is stored and factored; with more rows nothing of its size is stored.
"""

import functools
import math
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.linalg import LinAlgError

from gzkcore._util.checkpoint import as_checkpoint
from gzkcore._util.linalg import cholesky, eigh, shifted, solve_factored
from gzkcore._util.nonuniform import has_finufft
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import dense, raise_not_finite
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.features.nystrom import NystromFeatures
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.fast_sums import LEAST_TOL, FastSums, worth_a_look
from gzkcore.kernels.general import Precomputed
from gzkcore.kernels.products import KernelOperator, Runs, as_double, matrix_of
from gzkcore.passes.streams import Step, as_step
from gzkcore.rows.dask import Held, client_of

from .preconditioner import Preconditioner
from .preconditioners import FEW_COLUMNS, is_count, preconditioner_for
from .solve import NotPositiveDefinite, OfColumns, ShiftedSystems, Solution, Solver, not_finite
from .trend import inverse as trend_inverse

Multiply: TypeAlias = Callable[[Doubles], Doubles]

# A task costs about a millisecond of the scheduler, a run of so many values of the kernel 10 or 20
# of a worker. With fewer than two of them a product stays here.
RUN_VALUES = 1 << 26
MOST_RUNS = 256


class Workers:
    """The workers that make products within a `with` block; after it they are made here.

    There are some where the rows were `distributed`, in a Dask collection, and there is a cluster.
    """

    def __init__(self, distributed: bool = False) -> None:
        self.client = client_of() if distributed else None
        self._products: weakref.WeakSet[SharedProduct] = weakref.WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.client = None
        for product in self._products:
            product.stay()

    def product(self, operator: KernelOperator) -> Any:
        """Return V -> K V for the operator of some rows."""
        runs = Runs(operator, min(MOST_RUNS, operator.shape[0] * operator.shape[1] // RUN_VALUES))
        if self.client is None or runs.count == 1:
            return operator.times
        made = SharedProduct(operator, runs, self.client)
        self._products.add(made)
        return made


class SharedProduct:
    """V -> K V by workers, to whom the rows are sent when they are first wanted."""

    def __init__(self, operator: KernelOperator, runs: Runs, client: Any) -> None:
        self.operator, self.runs, self.client = operator, runs, client
        self._held: Held | None = None

    def __call__(self, V: Doubles) -> Any:
        """Return K V."""
        if self.client is None:
            return self.operator.times(V)
        raise_not_finite(V, "V", "leave those out")
        if self._held is None:
            self._held = Held(self.client, self.runs)
        return self.runs.join(self._held.each(Runs.product, self.runs.count, V))

    def stay(self) -> None:
        """Make further products here, and let the workers forget the rows."""
        self.client = self._held = None


# Rows up to which K is held, in 134 MB at most, and factored: that takes no longer than the steps
# that it saves, and small alphas and standard deviations cost no more than others.
HELD_ROWS = 4096
MOST_IN_SINGLE = 1e15  # of a diagonal, and of its inverse: single precision has room for factors
DOUBLE_ROWS = 1024  # up to which factors are in double precision whatever alpha is
HELD_FACTORS = 1 << 28  # bytes; beyond, factors of other alphas are made again when they are needed
ROUNDING = 1e-2  # of tol, up to which residuals of few steps are not computed again
BLOCK = 64  # columns that are solved together
# What an error of a kernel value may be, relative to tol alpha, and at most.
SUMS_TOL, MOST_SUMS_TOL = 1 / 32, 4e-6
TOLD_ROWS = 300_000  # from which on it is told what finufft would bring
TRIED_ROWS = 64  # whose kernel matrix is looked at for NaN and infinity
LANDMARKS = 512  # of a matrix that was precomputed, and is not factored
SINGLE_TOL = 1e-4  # residuals from which on steps are in single precision
# New numbers that are held as doubles at a time, the rows whose sums are computed by tiles too, and
# the error of a value relative to these.
PREDICTED_NUMBERS, COMPARED_ROWS, PREDICTED_TOL = 1 << 24, 64, 1e-5


class Factored(Preconditioner):
    """The preconditioner K + alpha N itself, by its Cholesky factor: one or two steps are enough.

    With more than DOUBLE_ROWS rows the factor is in single precision, which takes half the time, if
    alpha is larger than its rounding errors. A matrix that is singular to working precision is
    inverted on the subspace where it is not.

    Notes
    -----
    n^3 / 3 operations for each alpha; memory: 8 n^2 bytes, and 4 or 8 n^2 for a factor.
    """

    def __init__(self, matrix: Doubles, shifts: Doubles, noise: Doubles) -> None:
        self.matrix, self.shifts, self.noise = matrix, shifts, noise
        self.n_components = len(matrix)
        self.nbytes = 2 * matrix.nbytes  # with a factor
        self._inverses: dict[int, Multiply] = {}
        self._root: tuple[float, Doubles | None] | None = None  # of the alpha asked for last

    def __repr__(self) -> str:
        return f"the whole matrix of {counted(len(self.matrix), 'row')}"

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return (K + alpha N)^-1 R, each column with the shift of its number."""
        found = np.empty_like(R)
        for shift in np.unique(columns).tolist():
            if shift not in self._inverses:
                if (len(self._inverses) + 1) * self.matrix.nbytes > HELD_FACTORS:
                    self._inverses.clear()
                self._inverses[shift] = self._inverse(shift)
            found[:, columns == shift] = self._inverses[shift](R[:, columns == shift])
        return found

    def _inverse(self, shift: int) -> Multiply:
        added = self.shifts[shift] * self.noise
        rounding = float(np.finfo(np.float32).eps) * float(self.matrix.trace())
        largest = float((self.matrix.diagonal() + added).max())
        in_range = added.min() > 1 / MOST_IN_SINGLE and largest < MOST_IN_SINGLE
        single = len(added) > DOUBLE_ROWS and added.min() > rounding and in_range
        for dtype in [np.float32, np.float64] if single else [np.float64]:
            try:
                factor = self._factor(added, dtype)
            except LinAlgError:
                continue
            return lambda R: solve_factored(factor, R).astype(np.float64, copy=False)
        values, vectors = eigh(self.matrix + np.diag(added))
        nothing = check_definite(values, float(self.shifts[shift]))
        kept = vectors[:, values > nothing]
        inverses = 1.0 / values[values > nothing, None]
        return lambda R: kept @ (inverses * (kept.T @ R))

    def root(self, alpha: float) -> Doubles | None:
        """Return L of K + alpha N = L L^T in double precision; None if that is singular."""
        if self._root is None or self._root[0] != alpha:
            try:
                self._root = alpha, np.asarray(self._factor(alpha * self.noise, np.float64))
            except LinAlgError:
                self._root = alpha, None
        return self._root[1]

    def _factor(self, added: Doubles, dtype: type) -> Any:
        return cholesky(shifted(self.matrix, added, dtype), overwrite=True)

    def condition_bound(self, column: int) -> float:
        """Return 1."""
        return 1.0


def check_definite(eigenvalues: Doubles, alpha: float) -> float:
    """Return what rounding leaves of an eigenvalue of K + alpha N that is 0; raise below -that."""
    least = float(eigenvalues[0])
    nothing = len(eigenvalues) * float(np.finfo(np.float64).eps) * float(np.abs(eigenvalues).max())
    if least < -nothing:
        raise NotPositiveDefinite(
            f"K + alpha N with alpha={alpha:g} has the eigenvalue {least:.3g}: the kernel is not "
            f"positive definite on these rows; use another kernel, or an alpha above "
            f"{alpha - least:.3g}"
        )
    return nothing


@dataclass
class Start:
    """Solutions to start from, of y and then of H for each alpha, and their residuals, if known."""

    coef: Doubles | None
    left: Doubles | None


class KernelSystem:
    """K + alpha N of some rows X, for a resolved kernel: products, a preconditioner, solutions.

    Systems may have any of `alphas`. `noise` is the diagonal of N, and None stands for ones.
    `preconditioner`, `tol`, `max_iter` and `random_state` are as for `KernelRidge`. `by_tiles`: no
    cheaper products are looked for.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        alphas: Doubles,
        noise: Doubles | None = None,
        *,
        preconditioner: Any = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Seed = None,
        workers: Workers | None = None,
        by_tiles: bool = False,
    ) -> None:
        self.kernel, self.noise, self.tol, self.max_iter = kernel, noise, tol, max_iter
        self.rows: Floats = dense(X)
        self.n_rows = len(self.rows)
        self.alphas = np.unique(alphas)
        automatic = isinstance(preconditioner, str) and preconditioner == "auto"
        self.factored = automatic and self.n_rows <= HELD_ROWS
        self.given, self.random_state, self.workers = preconditioner, random_state, workers
        self.matrix = self._given
        if self.matrix is None and self.factored:
            self.matrix = self._values(self.rows)
        self.fast: FastSums | None = None
        self.exact: Multiply
        self.product: Multiply
        if not self.factored:
            self._try_some()
        if self.matrix is not None:
            self.exact = self.product = self.matrix.__matmul__
            return
        workers = workers or Workers()
        self.fast = None if by_tiles else self._fast_sums()
        if self.fast is not None:
            self.exact = self.product = self.fast.times
            return
        self.exact = self.product = workers.product(KernelOperator.of(kernel, self.rows))
        if tol >= SINGLE_TOL:
            quick = KernelOperator.of(kernel, self.rows, dtype=np.float32)
            self.product = workers.product(quick)

    @functools.cached_property
    def preconditioner(self) -> Preconditioner:
        """That of K + alpha N."""
        return self.preconditioned(self.noise)

    def preconditioned(self, noise: Doubles | None, constant: float = 0.0) -> Preconditioner:
        """Return a preconditioner of K + constant + alpha N, for the diagonal of any N.

        A constant changes it only where it is a factor of the matrix itself.
        """
        if self.factored:
            matrix = np.asarray(self.matrix) + constant if constant else np.asarray(self.matrix)
            made = Factored(matrix, self.alphas, np.ones(self.n_rows) if noise is None else noise)
            made.made_for = self.n_rows, tuple(self.alphas.tolist())
            return made
        given = self.given
        if self.matrix is not None:  # it was precomputed
            given = LANDMARKS if isinstance(given, str) and given == "auto" else given
            if is_count(given):
                count = min(int(given), self.n_rows)
                given = NystromFeatures("precomputed", count, random_state=self.random_state)
                given.fit(self.rows)
        return preconditioner_for(
            given, self.kernel, self.rows, self.alphas, noise=noise,
            random_state=self.random_state, sums=self.fast,
        )  # fmt: skip

    def part(self, rows: Integers) -> "KernelSystem":
        """Return the system of some of the rows, without noise."""
        kernel, part = self.kernel, self.rows[rows]
        if self.matrix is not None:
            kernel, part = Precomputed(), self.matrix[np.ix_(rows, rows)]
        return KernelSystem(
            kernel, part, self.alphas, preconditioner=self.given, tol=self.tol,
            max_iter=self.max_iter, random_state=self.random_state, workers=self.workers,
        )  # fmt: skip

    def _fast_sums(self) -> FastSums | None:
        """Return sums in linear time where they are cheaper, exact to a share of alpha and tol.

        Errors of eps k(x, x) in the values of K, as rough as the rows are dense, are a matrix with
        eigenvalues of a few times eps k(x, x). A solution is at most |y| / alpha long. So the
        residual changes by a few times eps k(x, x) / alpha |y|.
        """
        rows = as_double(self.rows)
        if self.n_rows >= TOLD_ROWS and rows.shape[1] <= FEW_COLUMNS and not has_finufft():
            warn(
                f"{self.n_rows:,} rows in {counted(rows.shape[1], 'column')} take linear time with "
                "finufft, and a hundred times as long without it: pip install 'gzkcore[maps]'"
            )
        largest = float(self.kernel.diag(rows[:1]).max()) or 1.0
        tol = SUMS_TOL * self.tol * float(self.alphas[0]) / largest
        return FastSums.of(self.kernel, rows, None, min(max(tol, LEAST_TOL), MOST_SUMS_TOL))

    def _try_some(self) -> None:
        """Raise for a kernel that some of the rows show to be of no use."""
        some = np.arange(0, self.n_rows, max(1, self.n_rows // TRIED_ROWS))
        given, alpha = self._given, float(self.alphas[0])
        values = self._values(self.rows[some]) if given is None else given[np.ix_(some, some)]
        noise = np.ones(some.size) if self.noise is None else self.noise[some]
        check_definite(eigh(values + np.diag(alpha * noise), eigvals_only=True), alpha)

    @property
    def _given(self) -> Doubles | None:
        """K, if it was precomputed."""
        precomputed = isinstance(self.kernel, Precomputed)
        return np.asarray(self.rows, dtype=np.float64) if precomputed else None

    def _values(self, rows: Floats) -> Doubles:
        """Return the kernel matrix of some rows, or raise if it is not finite."""
        with np.errstate(all="ignore"):
            values = matrix_of(self.kernel, as_double(rows))
        if not np.isfinite(values).all():
            raise not_finite(f"kernel={self.kernel!r}")
        return values

    def columns_of(self, alphas: Doubles) -> Integers:
        """Return the number of each alpha among those of the system."""
        return np.searchsorted(self.alphas, alphas)

    @functools.cached_property
    def _is_accurate(self) -> bool:
        """Whether residuals change by rounding far less than by `tol`: by eps |A| |x| at most.

        |A| is at most the trace, and |x| at most |y| / alpha.
        """
        diagonal = self.kernel.diag(self.rows) if self.matrix is None else self.matrix.diagonal()
        rounding = float(np.finfo(np.float64).eps) * self.n_rows * float(diagonal.max())
        least = self.alphas[0] * (1.0 if self.noise is None else self.noise.min())
        return bool(rounding <= ROUNDING * self.tol * least)

    def solve(
        self,
        targets: Doubles,
        alphas: Doubles,
        *,
        start: Doubles | None = None,
        left: Doubles | None = None,
        step: Step | None = None,
        progress: Any = None,
        checkpoint: Any = None,
    ) -> Solution:
        """Solve (K + alphas[k] N) x_k = targets[:, k] for all k, some columns at a time.

        The alphas are among those of the system; each product is run by `step`. `start`, `progress`
        and `checkpoint` are as for `conjugate_gradients`; `left` are the residuals of the start,
        None if they are not known.
        """
        width = BLOCK if checkpoint is None else targets.shape[1]
        parts = [slice(i, i + width) for i in range(0, targets.shape[1], width)]

        def product(V: Doubles) -> Any:
            return as_step(step, lambda: self.product(V))

        exact = product if self.exact is self.product and self._is_accurate else self.exact
        with limit_blas(1) if self.factored else nullcontext():
            return Solution.beside([
                Solver(
                    ShiftedSystems(
                        product, exact, targets[:, part], alphas[part], self.noise,
                        OfColumns(self.preconditioner, self.columns_of(alphas[part])),
                        *(None if each is None else each[:, part] for each in (start, left)),
                    ),
                    self.tol, self.max_iter, progress, as_checkpoint(checkpoint),
                ).run()
                for part in parts
            ])  # fmt: skip

    def regress(
        self,
        y: Doubles,
        alphas: Doubles,
        H: Doubles | None,
        step: Step | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        before: "Start | None" = None,
    ) -> tuple[Solution, Doubles, "Start"]:
        """Return c = (K + alphas[k] N)^-1 (y_k - H b_k) for all targets k, and b, see `trend`.

        H, whose first column is ones, has the functions that are not penalised, None for none. So
        there is one system more for each of its columns and each different alpha. The residual is
        that of y - H b. `before` is a start, which is returned for another call.
        """
        n_targets = y.shape[1]
        first = before or Start(None, None)
        if H is None:
            found = self.solve(
                y, alphas, start=first.coef, left=first.left, step=step, progress=progress,
                checkpoint=checkpoint,
            )  # fmt: skip
            return found, np.zeros((0, n_targets)), Start(found.coef, found.left)
        centre, n_free = y.mean(axis=0) * (before is None), H.shape[1]
        different, places = np.unique(alphas, return_inverse=True)
        both = self.solve(
            np.column_stack([y - centre, np.tile(H, different.size)]),
            np.concatenate([alphas, np.repeat(different, n_free)]), start=first.coef,
            left=first.left, step=step, progress=progress, checkpoint=checkpoint,
        )  # fmt: skip
        start, of_H = np.split(both.coef, [n_targets], axis=1)
        left, left_of_H = np.split(both.left, [n_targets], axis=1)
        b = np.zeros((n_free, n_targets))
        for place in range(different.size):
            targets = places == place
            here = slice(place * n_free, (place + 1) * n_free)
            b[:, targets] = trend_inverse(H, of_H[:, here]) @ (H.T @ start[:, targets])
            start[:, targets] -= of_H[:, here] @ b[:, targets]
            left[:, targets] -= left_of_H[:, here] @ b[:, targets]
        b[0] += centre
        known = left if self._is_accurate and np.isfinite(left).all() else None
        found = self.solve(y - H @ b, alphas, start=start, left=known, step=step, progress=progress)
        found.n_iter += both.n_iter[:n_targets]
        left = np.hstack([found.left, left_of_H])
        return found, b, Start(np.hstack([found.coef, of_H]), left)

    def condition_bounds(self, alphas: Doubles) -> Doubles:
        """Return what the condition number of each alpha's system is at most; inf if unknown."""
        places = self.columns_of(alphas).tolist()
        return np.array([
            self.preconditioner.condition_bound(place) if self.alphas[place] > 0 else np.inf
            for place in places
        ])  # fmt: skip

    def root(self, alpha: float) -> Doubles | None:
        """Return L of K + alpha N = L L^T where that is factored, None where it isn't."""
        made = self.preconditioner
        return made.root(alpha) if isinstance(made, Factored) else None

    def quadratic_forms(self, V: Doubles, alpha: float) -> Doubles:
        """Return v^T (K + alpha N) v of each column."""
        noise = alpha if self.noise is None else alpha * self.noise[:, None]
        return np.asarray(np.einsum("ij,ij->j", V, self.exact(V) + noise * V))


def cross_product(
    kernel: Kernel, X: Rows, Y: Rows, V: Doubles, held: "dict[str, KernelOperator] | None" = None
) -> Doubles:
    """Return K(X, Y) V for new rows X, in double and with nothing of the size of K stored.

    `held` keeps what depends on kernel and Y alone, for another call.
    """
    if isinstance(kernel, Precomputed):
        return np.asarray(X @ V, dtype=np.float64)
    step, columns = max(1, PREDICTED_NUMBERS // max(X.shape[1], 1)), as_double(dense(Y))
    found, tiles = [], {} if held is None else held
    for start in range(0, X.shape[0], step):
        rows = as_double(dense(X[start : start + step]))
        product: Any = _fast_cross_sums(kernel, rows, columns, V)
        if product is None:
            if "of Y" not in tiles:
                tiles["of Y"] = KernelOperator.of(kernel, columns[:1], columns)
            product = tiles["of Y"].at(rows)
        found.append(product.times(V))
    return np.concatenate(found)


def _fast_cross_sums(kernel: Kernel, X: Doubles, Y: Doubles, V: Doubles) -> FastSums | None:
    """Return sums in linear time where they are cheaper, exact to a share of what sums are."""
    if not worth_a_look(kernel, X, Y):
        return None
    some = X[:: -(-len(X) // COMPARED_ROWS)]
    of_some = np.square(KernelOperator.of(kernel, some, Y).times(V)).mean(axis=0)
    largest = float(kernel.diag(some).max()) or 1.0
    length = np.square(V).sum(axis=0)
    tol = PREDICTED_TOL * math.sqrt((of_some[length > 0] / length[length > 0]).min(initial=1.0))
    return FastSums.of(kernel, X, Y, min(tol / largest, MOST_SUMS_TOL))
