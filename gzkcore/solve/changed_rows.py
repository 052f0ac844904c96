"""Systems of rows some of which were added, or left out, after a system of others was solved.

They start from its solution, with its preconditioner, which grows.
"""

import copy
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, vstack

from gzkcore._compiled import neighbours as _neighbours
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.products import KernelOperator, Pairs, as_double

from .near_landmarks import NearLandmarks
from .neighbours import Nearest, Neighbours
from .preconditioner import Preconditioner
from .preconditioners import Diagonal, NearAndFar, Problem, local_pairs
from .solve import Start
from .system import Equations, FactoredSystem, KernelSystem, system_of

# An added row depends on so many of the old rows, and of the added ones. Of 1,000 rows added to
# 100,000 on the sphere (Matern-3/2, alpha .1) the first step left .0042 |y|; with 47 and 15 .025,
# with 220 and 31, which take four times as long, .0013.
NEAREST, NEAREST_ADDED = 127, 31
# If more than one in so many rows has changed, a new preconditioner is made.
CHANGED = 10
# A row that left has noise so many times as large as any other.
SILENT = 1e15


class Grown(Preconditioner):
    """A preconditioner P of rows X (n_base, d), for more rows, and without others.

    An added row depends on old rows near by and on added rows before it: with g_i the row of the
    inverse Cholesky factor of these and itself, and G of all g_i, P^-1 grows to diag(P^-1, 0) +
    G^T G. In P rows that left have so much noise that they have no influence.
    """

    def __init__(self, base: Preconditioner, X: Doubles, noise: Doubles, shifts: Doubles) -> None:
        self.base, self.X, self.noise, self.shifts = base, X, noise, shifts
        self.present = np.arange(len(X))  # rows of X that have not left; added rows follow
        self.n_rows = len(X)
        self.factors: list[Any] = []  # G for each alpha
        self.n_components, self.n_neighbours = base.n_components, base.n_neighbours

    def changed(self, kernel: Kernel, X: Doubles, noise: Doubles, kept: Integers) -> Self | None:
        """Return the preconditioner of rows X, old rows `kept` and new ones; None: a new one."""
        new, n_base = copy.copy(self), int((kept < len(self.present)).sum())
        new.present, new.n_rows = self.present[kept[:n_base]], len(X)
        if CHANGED * (len(X) - n_base + len(self.X) - n_base) > len(self.X):
            return None
        if n_base < len(self.present):
            if not isinstance(self.base, NearLandmarks | NearAndFar):
                return None
            of_base: Any = Pairs.of(kernel, self.X, self.base.factor.values.dtype)
            largest = np.square(of_base.weights).sum(axis=1).max() / self.base.distinct.min()
            largest += self.noise.max()
            silent = np.full(len(self.X), SILENT * largest)
            silent[new.present] = self.noise[new.present]
            new.base = copy.copy(self.base)
            new.base.make_factors(of_base, silent)
        problem = Problem(kernel, X, self.shifts, noise, np.random.default_rng(0))
        pairs = local_pairs(kernel, X, problem.dtype)
        if pairs is None:
            return None
        all_stay = len(kept) == self.n_rows
        first = self.n_rows if all_stay else n_base
        added = rows_of_factor(pairs, first, np.multiply.outer(problem.shifts, noise))
        for s, G in enumerate(self.factors if all_stay else []):
            before = csr_array((G.data, G.indices, G.indptr), shape=(G.shape[0], len(X)))
            added[s] = vstack([before, added[s]], format="csr")
        new.factors = added
        new.nbytes = new.base.nbytes + self.X.nbytes + sum(12 * G.nnz for G in added)
        return new

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R, see `Preconditioner`."""
        of_base, n_base = np.zeros((len(self.X), R.shape[1])), len(self.present)
        of_base[self.present] = R[:n_base]
        solved = np.zeros_like(R)
        solved[:n_base] = self.base.solve(of_base, columns)[self.present]
        for s, G in enumerate(self.factors):
            mine = columns == s
            solved[:, mine] += G.T @ (G @ R[:, mine])
        return solved

    def __repr__(self) -> str:
        added, gone = self.n_rows - len(self.present), len(self.X) - len(self.present)
        return f"{self.base!r}, {counted(added, 'row')} added, {gone:,} left out"


def rows_of_factor(pairs: Pairs, first: int, noise: Doubles) -> list[Any]:
    """Return G, see `Grown`, of the rows from `first` on, for each alpha N (n_shifts, n)."""
    added, dtype = pairs.rows[first:], pairs.known.coefficients.dtype
    n, numbers = len(pairs.rows), first + np.arange(len(added))
    if not numbers.size:
        return [csr_array((0, n)) for _ in noise]
    old = Nearest(pairs.rows[:first]).to(added, min(NEAREST, first))
    neighbours = Neighbours.of(added, NEAREST_ADDED, np.random.default_rng(0))
    before = np.empty_like(neighbours.table)
    before[neighbours.order] = neighbours.order[neighbours.table]
    some, places = np.unique(old, return_inverse=True)
    used = np.append(numbers, some)
    values = np.empty((len(noise), len(added), before.shape[1] + 1), dtype)
    at_old = np.empty((len(noise), *old.shape), dtype)
    _neighbours.sparse_factor(
        pairs.rows[used], np.empty((len(used), 0), dtype), before,
        places.reshape(old.shape).astype(np.int32), np.ascontiguousarray(noise[:, used]),
        pairs.weights[used], pairs.known.factors, pairs.known.numbers, pairs.known.coefficients,
        values, at_old, n_threads(),
    )  # fmt: skip
    columns = np.concatenate([old, first + before, numbers[:, None]], axis=1)
    starts = columns.shape[1] * np.arange(len(added) + 1)
    entries = np.concatenate([at_old, values], axis=2).astype(np.float64)
    shape = len(added), n
    return [csr_array((G.ravel(), columns.ravel(), starts), shape=shape) for G in entries]


def changed_system(old: KernelSystem, equations: Equations, kept: Integers) -> KernelSystem:
    """Return the system of equations whose rows are those `kept` of an old system, then new ones.

    It has the old preconditioner, changed, if that is possible.
    """
    factored = isinstance(old, FactoredSystem)
    new = system_of(equations, by_tiles=not factored and not old.in_linear_time)
    preconditioner = vars(old).get("preconditioner")
    if preconditioner is None or factored or isinstance(new, FactoredSystem):
        return new
    if isinstance(preconditioner, Diagonal):
        return new
    of_old, of_new = (np.ones(s.n_rows) if s.noise is None else s.noise for s in (old, new))
    if not isinstance(preconditioner, Grown):
        preconditioner = Grown(preconditioner, as_double(old.rows), of_old, old.alphas)
    grown = preconditioner.changed(new.kernel, as_double(new.rows), of_new, kept)
    if grown is not None:
        new.preconditioner = grown
    return new


def start_with(
    system: KernelSystem, targets: Doubles, old: Rows, kept: Integers, coef: Doubles, left: Any
) -> Start:
    """Return the start of a `changed_system`: 0 at its new rows, the old solution at the others.

    `targets` are those of the new rows; `coef` and `left` are the solution for the rows `old`, and
    its residuals.
    """
    n, X = len(kept), as_double(system.rows)
    start, rest = (np.zeros((len(X), coef.shape[1])) for _ in range(2))
    start[:n] = coef[kept]
    if left is None or not np.isfinite(left).all() or system.in_linear_time:
        return Start(start, None)
    rest[:n], rest[n:] = left[kept], targets
    gone = np.setdiff1d(np.arange(len(coef)), kept)
    if gone.size:
        of_gone = KernelOperator.of(system.kernel, X[:n], as_double(dense(old[gone])))
        rest[:n] += of_gone.times(coef[gone])
    if n < len(X):
        rest[n:] -= KernelOperator.of(system.kernel, X[n:], X[:n]).times(coef[kept])
    return Start(start, rest)
