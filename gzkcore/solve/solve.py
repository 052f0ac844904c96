"""Conjugate gradients for (K + alpha_k diag(noise)) x_k = b_k: one product serves all columns.

A step multiplies K by a vector for each column, which is nearly all of its cost. Each column has
its own shift alpha_k and scalars, and leaves the block when it is done.

**Precision.** Steps use `product`, which may be in single precision; x, residuals and directions
are in double precision. The residual of the recurrence drifts away from the true one, b - A x. So
the exact product checks all columns at once: when all of them seem to be done; when a residual has
fallen by `FALLEN` and `APART` steps have passed since the last check; and after a plateau. The true
residual then replaces that of the recurrence, and the direction is kept if the two were similar
(van der Vorst, Ye 2000). If they were far apart and the true residual has hardly improved, the
column needs exact products from then on. So does a column that would run out of steps at its rate,
since rounding also slows convergence. While there is such a column all columns use exact products,
since one column costs as much as a few. Of 80 systems (Gaussian and Matern matrices of 600 rows,
with duplicates and outliers, alpha .1 to 1e-7, tol 1e-3 and 1e-6) 70 converged within 1,500 steps;
with double precision throughout 71 did. The mean cost was .56 of that with double precision, if an
exact product costs as much as 2.7 others. Restarting from each true residual took a tenth more
steps, and up to four times as many with duplicates.

**Flexible.** The factor of the directions is max(0, z (r - r_before) / ...) (Polak, Ribiere), since
a preconditioner in single precision is slightly different in every step.
"""

import enum
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from gzkcore._util import model_io
from gzkcore._util.checkpoint import Checkpoint, as_checkpoint
from gzkcore._util.files import check_place, remove_parts
from gzkcore._util.state import bools, doubles, ints, nothing, stored, text
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_integer, check_matrix, check_not_negatives, check_share
from gzkcore._util.wording import counted

__all__ = ["NotPositiveDefinite", "Solution", "SolveProgress", "conjugate_gradients"]


class Status(enum.IntEnum):
    """Where a column is: on its way, waiting for a check, or done for one of five reasons."""

    RUNNING = 0
    WAITING = 1
    CONVERGED = 2
    OUT_OF_STEPS = 3
    STOPPED = 4
    STAGNATED = 5
    SINGULAR = 6


@dataclass
class State:
    """The state of a solver between two steps, which a checkpoint holds."""

    _state = stored(
        digest=text(),
        x=doubles("n", "k"),
        r=doubles("n", "k"),
        p=doubles("n", "k"),
        power=doubles("k", finite=False),
        peak=doubles("k", finite=False),
        best=doubles("k", finite=False),
        best_x=doubles("n", "k") | nothing(),
        since=ints("k"),
        wait=ints("k"),
        n_iter=ints("k"),
        lies=ints("k"),
        exact=bools("k"),
        status=ints("k", below=len(Status)),
        history=doubles(None, "k", finite=False),
    )

    digest: str  # of the systems
    x: Doubles  # (n, k), of scaled targets
    r: Doubles  # (n, k): residuals, by recurrence since the last check
    p: Doubles  # (n, k): directions
    power: Doubles  # (k,): r^T P^-1 r
    peak: Doubles  # (k,): largest |r| since the last check
    best: Doubles  # (k,): smallest true |r| so far
    best_x: Doubles | None  # (n, k): the x that had it; None while it is the start
    since: Integers  # (k,): steps since the last check
    wait: Integers  # (k,): steps after which there will be one anyway
    n_iter: Integers  # (k,)
    lies: Integers  # (k,): checks in a row at which a recurrence of exact products was wrong
    exact: NDArray[np.bool_]  # (k,): columns that need exact products
    status: Integers  # (k,)
    history: Doubles  # (n_steps, k): |r|


def resumed(state: State, checkpoint: Checkpoint) -> State:
    """Return the state in a checkpoint of the same systems; the state itself if there is none."""
    path = Path(checkpoint.path)
    if not path.exists():
        return state
    saved = model_io.load(path)
    if not isinstance(saved, State):
        reason = f"it holds a {type(saved).__name__}, no solution under way"
    elif saved.digest != state.digest:
        reason = (
            "it is of other targets, shifts, rows, kernel, preconditioner or tol (or the bits of "
            "the product are others on this machine)"
        )
    else:
        return saved
    raise ValueError(
        f"cannot resume from {str(path)!r}: {reason}; solve with the same data and settings, or "
        "delete the file to start afresh"
    )


Multiply: TypeAlias = Callable[[Doubles], ArrayLike]

# A check is due when a residual has fallen by this factor, so many steps after the last check.
FALLEN, APART = 0.1, 32
# A check is due after so many steps in any case; the next one after twice as many.
PLATEAU = 64
# After so many steps, and a quarter of max_iter, a column is tested for whether it will be late.
LATE = 128
# The residual after so few exact steps is not computed again, from this tol on.
FEW_STEPS, FEW_STEPS_TOL = 8, 1e-8
# The recurrence is trusted while its error is at most this share of the true residual.
HONEST = 0.5
# The direction is kept while its error is at most this share.
ALIKE = 0.3
# A recurrence that is not trusted keeps its precision if the true residual fell by this factor.
WORTH = 0.1
# A cosine of R and P^-1 R of at most this size is a rounding error.
NO_COSINE = 1e-14
# A curvature so far below 0, relative to the largest, may be an error of the product.
NO_CURVATURE = 1e-5


class NotPositiveDefinite(np.linalg.LinAlgError):
    """K + alpha N, or the preconditioner, has a direction with negative curvature."""


WORDS = {
    "out of steps": "needs more steps; use a larger alpha, a larger max_iter, or a stronger "
    "preconditioner",
    "stopped": "was stopped",
    "stagnated": "stagnates, since rounding errors are as large as its residual; use a larger "
    "alpha or tol, or an exact product in double",
    "singular": "is singular to working precision (duplicates among the rows, and no alpha?); "
    "use a larger alpha",
}


@dataclass
class Solution:
    """The result of `conjugate_gradients`.

    Attributes
    ----------
    coef : ndarray of shape (n, k)
        The solutions. For a column that has not converged, the best one that was checked, which is
        never worse than the start.
    residual : ndarray of shape (k,)
        |b - (K + alpha N) x| / |b| by the exact product, 0 if b is 0.
    n_iter : ndarray of shape (k,)
        Steps of each column.
    converged : ndarray of bool of shape (k,)
        Whether the residual is at most tol.
    status : list of k str
        "converged", "out of steps", "stopped", "stagnated" or "singular".
    shifts : ndarray of shape (k,)
    tol : float
        The tolerance that was requested.
    history : ndarray of shape (n_steps, k)
        Relative residual by the recurrence after each step of the block; NaN for columns that were
        not in the block.
    left : ndarray of shape (n, k)
        b - (K + alpha N) x by the exact product; NaN for columns that have not converged.
    """

    coef: Doubles
    residual: Doubles
    n_iter: Integers
    converged: NDArray[np.bool_]
    status: list[str]
    shifts: Doubles
    tol: float
    history: Doubles
    left: Doubles

    @property
    def trouble(self) -> str:
        """The worst column of each reason why some did not converge, with a remedy; "" if none."""
        parts = []
        for status, words in WORDS.items():
            columns = np.flatnonzero([word == status for word in self.status])
            if columns.size:
                worst = int(columns[np.argmax(self.residual[columns])])
                parts.append(
                    f"column {worst} (alpha={self.shifts[worst]:g}, residual "
                    f"{self.residual[worst]:.2g} after {counted(int(self.n_iter[worst]), 'step')}) "
                    + words
                )
        if not parts:
            return ""
        lost = counted(int((~self.converged).sum()), "column")
        return f"{lost} of {len(self.status)} did not reach tol={self.tol:g}: {'; '.join(parts)}"

    @classmethod
    def beside(cls, parts: Sequence["Solution"]) -> "Solution":
        """Join the solutions of columns that were solved one part after another."""
        longest = max(len(part.history) for part in parts)
        histories = [
            np.pad(part.history, ((0, longest - len(part.history)), (0, 0)), constant_values=np.nan)
            for part in parts
        ]
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in ("coef", "residual", "n_iter", "converged", "shifts", "left")
        }
        status = [word for part in parts for word in part.status]
        return cls(
            **arrays, status=status, tol=parts[0].tol, history=np.concatenate(histories, axis=1)
        )


@dataclass
class SolveProgress:
    """The argument of `progress` after each step.

    Attributes
    ----------
    n_steps : int
        Number of steps of the block.
    n_left : int
        Number of columns that are not done.
    residual : float
        The largest relative residual of these columns, by the recurrences.
    seconds, seconds_left : float
        Seconds since the start, and expected seconds until the last column is done, at the rate of
        the later half of the steps so far; infinite while no residual decreases.
    """

    n_steps: int
    n_left: int
    residual: float
    seconds: float
    seconds_left: float


Listener: TypeAlias = Callable[[SolveProgress], Any]  # True: stop


@dataclass
class Start:
    """A first guess of the solutions (n, k), and its residuals if they are known."""

    coef: Doubles | None = None
    left: Doubles | None = None

    def part(self, columns: slice) -> "Start":
        """Return the start of some columns."""
        return Start(*(None if A is None else A[:, columns] for A in (self.coef, self.left)))


def conjugate_gradients(
    product: Multiply | LinearOperator | tuple[Any, Any],
    targets: ArrayLike,
    shifts: ArrayLike,
    *,
    noise: ArrayLike | None = None,
    preconditioner: Any = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: ArrayLike | None = None,
    progress: Listener | None = None,
    checkpoint: Checkpoint | str | None = None,
) -> Solution:
    """Solve (K + shifts[k] diag(noise)) x_k = targets[:, k] for all columns k at once.

    Parameters
    ----------
    product : callable, LinearOperator or pair of them
        Maps V of shape (n, m), for any m up to k, to K V, with K symmetric and positive
        semidefinite. The first of a pair may be in single precision. The second, in double
        precision, is used for the true residuals, and for every step if the first is not enough.
    targets : array-like of shape (n, k)
        Finite.
    shifts : array-like of shape (k,)
        alpha of each column, >= 0.
    noise : array-like of shape (n,), optional
        > 0; ones by default.
    preconditioner : object, optional
        It has a method `solve(R, columns)`, which returns P^-1 R for R of shape (n, m). `columns`
        are m integers, the numbers of the systems that the columns of R belong to. P must be
        symmetric and positive definite.
    tol : float, default=1e-3
        > 0 and < 1: a column is done when |b - (K + alpha N) x| <= tol |b|.
    max_iter : int, default=1000
        The most steps of a column.
    start : array-like of shape (n, k), optional
        First guess; zeros by default.
    progress : callable, optional
        Called after each step with a `SolveProgress`; if it returns True, the solver stops there.
    checkpoint : Checkpoint, str or path, optional
        File that the state is written to every minute (see `Checkpoint`): three vectors for each
        column. If it exists, the solver continues from it, with bitwise the same result. It is
        removed at the end, unless columns reached `max_iter` or were stopped: another call with a
        larger `max_iter` continues with these.

    Returns
    -------
    Solution
        Its `converged` and `trouble` tell of columns that do not converge.

    Raises
    ------
    NotPositiveDefinite
        If some p^T (K + alpha N) p or r^T P^-1 r is negative beyond rounding errors.
    ValueError, TypeError
        If arguments do not match, a product is not finite, or a checkpoint belongs to other data.

    Notes
    -----
    A step takes one product with K for all columns, a few dozen operations per number, and the cost
    of the preconditioner. After m steps the error, in the norm of A = K + alpha N, is at most 2
    ((sqrt(c) - 1) / (sqrt(c) + 1))^m of the first, with c the condition number of P^-1 A: about
    sqrt(c) / 2 log(2 / tol) steps (`theory.iterations_bound`). Memory: 4 to 6 arrays of n k
    doubles.

    No BLAS is used here, so that results do not depend on the number of threads, if the product and
    the preconditioner do not either. Targets are scaled by a power of two.

    References
    ----------
    Hestenes, Stiefel, J. Res. Nat. Bur. Standards 49 (1952); van der Vorst, Ye, SIAM J. Sci.
    Comput. 22 (2000), on residual replacement.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.solve.solve import conjugate_gradients
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> K = Gaussian(0.5)(X)
    >>> solution = conjugate_gradients(lambda V: K @ V, X, [0.1, 1.0], tol=1e-6)
    >>> solution.status, bool(solution.residual.max() <= 1e-6)
    (['converged', 'converged'], True)
    """
    checked, alphas = check_matrix("targets", targets), check_not_negatives("shifts", shifts)
    if alphas.shape != checked.shape[1:]:
        raise ValueError(
            f"shifts have shape {alphas.shape}, but targets have "
            f"{counted(checked.shape[1], 'column')}; give one shift for each column"
        )
    first = None if start is None else check_matrix("start", start)
    if first is not None and first.shape != checked.shape:
        raise ValueError(
            f"start has shape {first.shape}, but targets {checked.shape}; pass a first guess for "
            "each target"
        )
    system = ShiftedSystems(
        product if isinstance(product, tuple) else (product, product), checked, alphas,
        None if noise is None else check_noise(noise, len(checked)), preconditioner, Start(first),
    )  # fmt: skip
    tol, max_iter = check_share("tol", tol), check_integer("max_iter", max_iter, 0)
    return Solver(system, tol, max_iter, progress, as_checkpoint(checkpoint)).run()


# ---- the systems


class ShiftedSystems:
    """(K + shifts[k] diag(noise)) x_k = targets[:, k], scaled by powers of two."""

    def __init__(
        self,
        products: tuple[Any, Any],  # for steps, and exact
        targets: Doubles,
        shifts: Doubles,
        noise: Doubles | None,
        preconditioner: Any,
        start: Start,
    ) -> None:
        self.targets, self.shifts, self.noise, self.start = targets, shifts, noise, start
        self.n_rows, self.n_columns = targets.shape
        self.preconditioner = preconditioner
        product, exact = products
        self.product = self._checked(product, "product")
        self.exact = self.product if exact is product else self._checked(exact, "exact product")
        largest = np.abs(self.targets).max(axis=0)
        _, exponents = np.frexp(np.where(largest > 0, largest, 1.0))
        self.scale = np.ldexp(1.0, np.clip(-exponents, -1000, 1000))
        self.size = norms(self.targets * self.scale)

    def _checked(self, product: Any, name: str) -> Any:
        shape = getattr(product, "shape", (self.n_rows, self.n_rows))
        if shape != (self.n_rows, self.n_rows):
            raise ValueError(
                f"{name} has shape {shape}, but targets have {counted(self.n_rows, 'row')}; pass "
                "the kernel matrix of the rows of the targets"
            )
        return product.__matmul__ if hasattr(product, "shape") else product

    def times(self, V: Doubles, columns: Integers, *, exact: bool) -> Doubles:
        """Return (K + alpha N) V for some of the columns."""
        with np.errstate(all="ignore"):
            multiply = self.exact if exact else self.product
            product = np.asarray(multiply(V), dtype=np.float64)
            if product.shape != V.shape:
                raise ValueError(
                    f"the product of K with an array of shape {V.shape} has shape {product.shape}; "
                    "pass a product that returns as many columns as it gets"
                )
            shifted: Doubles = V * self.shifts[columns]
            if self.noise is not None:
                shifted *= self.noise[:, None]
            shifted += product
        return shifted

    def residual(self, x: Doubles, columns: Integers) -> Doubles:
        """Return b - A x by the exact product."""
        product = self.times(x, columns, exact=True)
        if not np.isfinite(product).all():
            raise not_finite("exact product" if self.exact is not self.product else "product")
        return np.asarray(self.targets[:, columns] * self.scale[columns] - product)

    def precondition(self, R: Doubles, columns: Integers) -> tuple[Doubles, Doubles]:
        """Return P^-1 R, and R^T P^-1 R of each column."""
        if self.preconditioner is None:
            return R, dots(R, R)
        Z = np.asarray(self.preconditioner.solve(R, columns), dtype=np.float64)
        sizes = dots(R, Z)
        # With a pseudo-inverse, the remaining residual lies in the null space.
        null = np.abs(sizes) <= NO_COSINE * norms(R) * norms(Z)
        if null.any():
            Z, sizes[null] = np.where(null, 0.0, Z), 0.0
        if not np.isfinite(sizes).all():
            raise ValueError(
                f"the preconditioner {self.preconditioner!r} returns numbers that are not finite; "
                "use another one, or None"
            )
        if (sizes < 0).any():
            worst = int(np.argmin(sizes))
            raise NotPositiveDefinite(
                f"the preconditioner {self.preconditioner!r} is not positive definite: r^T P^-1 r "
                f"= {sizes[worst]:.3g} for column {columns[worst]}, where |r|^2 = "
                f"{dots(R, R)[worst]:.3g}; give it a larger mu or double precision, or use None"
            )
        return Z, sizes


# ---- the solver


class Solver:
    """The steps of all columns, with checks, progress and checkpoints between them."""

    state: State

    def __init__(
        self, system: ShiftedSystems, tol: float, max_iter: int, progress: Any, checkpoint: Any
    ) -> None:
        self.system, self.tol, self.max_iter = system, tol, max_iter
        self.goal = tol * system.size
        self.progress, self.checkpoint = progress, checkpoint
        self.stopped = False

    def run(self) -> Solution:
        """Step until no column is on its way."""
        if self.checkpoint is not None:
            check_place(self.checkpoint.path)
        self.state = self._begin()
        if self.checkpoint is not None:
            self.state.digest = self._digest()
            self.state = resumed(self.state, self.checkpoint)
            self._wake()
        self.steps_before = len(self.state.history)
        self.begun = written = time.monotonic()
        while self._are(Status.RUNNING).size:
            self._step()
            if self.checkpoint and time.monotonic() - written >= self.checkpoint.seconds:
                model_io.save(self.state, self.checkpoint.path)
                written = time.monotonic()
        if self.checkpoint is not None:
            if self._are(Status.OUT_OF_STEPS, Status.STOPPED).size:  # more steps may help
                model_io.save(self.state, self.checkpoint.path)
            else:
                Path(self.checkpoint.path).unlink(missing_ok=True)
            remove_parts(self.checkpoint.path)
        return self._solution()

    def _wake(self) -> None:
        """Let columns that ran out of steps, or were stopped, start anew from where they are."""
        s = self.state
        columns = self._are(Status.OUT_OF_STEPS, Status.STOPPED)
        columns = columns[s.n_iter[columns] < self.max_iter]
        if columns.size:
            s.p[:, columns], s.power[columns] = self.system.precondition(s.r[:, columns], columns)
            s.status[columns], s.wait[columns] = Status.RUNNING, PLATEAU

    def _begin(self) -> State:
        system, k = self.system, self.system.n_columns
        x, r = self._start(), system.targets * system.scale
        if system.start.coef is not None:
            left, scale = system.start.left, system.scale * (system.size > 0)
            r = system.residual(x, np.arange(k)) if left is None else left * scale
        true = norms(r)
        status = np.where(true <= self.goal, Status.CONVERGED, Status.RUNNING).astype(np.intp)
        if self.max_iter == 0:
            status[status == Status.RUNNING] = Status.OUT_OF_STEPS
        p, power, running = np.zeros_like(r), np.zeros(k), np.flatnonzero(status == Status.RUNNING)
        if running.size:
            p[:, running], power[running] = system.precondition(r[:, running], running)
        none = np.zeros(k, dtype=np.intp)
        return State(
            digest="", x=x, r=r, p=p, power=power, peak=true.copy(), best=true, best_x=None,
            since=none, wait=none + PLATEAU, n_iter=none.copy(), lies=none.copy(),
            exact=np.full(k, system.exact is system.product), status=status,
            history=np.empty((0, k)),
        )  # fmt: skip

    def _start(self) -> Doubles:
        """Return the first guess; 0 where the target is."""
        system = self.system
        if system.start.coef is None:
            return np.zeros_like(system.targets)
        return np.where(system.size > 0, system.start.coef * system.scale, 0.0)

    def _are(self, *status: Status) -> Integers:
        return np.flatnonzero(np.isin(self.state.status, status))

    def _step(self) -> None:
        """Go along the directions, check if a check is due, and choose the next directions."""
        columns = self._are(Status.RUNNING)
        fall, broken = self._advance(columns)
        due = self._settle(columns)
        running = self.state.status[columns] == Status.RUNNING
        if due or broken.size or not running.any():
            self._turn_checked(self._check(broken))
        else:
            self._turn(columns[running], fall if running.all() else fall[:, running])

    def _advance(self, columns: Integers) -> tuple[Doubles, Integers]:
        """Move x and r; return the fall of r, and the columns whose step was not possible."""
        s = self.state
        p, exact = s.p[:, columns], bool(s.exact[columns].any())
        fall = self.system.times(p, columns, exact=exact)
        with np.errstate(all="ignore"):
            curvature = dots(p, fall)
            lengths = s.power[columns] / curvature
        good = np.isfinite(lengths) & (lengths > 0)
        if not good.all():
            if exact:
                self._explain(columns[~good], p[:, ~good], curvature[~good])
            fall[:, ~good], lengths[~good] = 0.0, 0.0
        p *= lengths
        fall *= lengths
        s.x[:, columns] += p
        s.r[:, columns] -= fall
        return fall, columns[~good]

    def _explain(self, columns: Integers, p: Doubles, curvature: Doubles) -> None:
        """Raise if exact products are not finite, or curvatures negative beyond rounding errors."""
        system = self.system
        if not np.isfinite(curvature).all():
            raise not_finite("product" if system.exact is system.product else "exact product")
        for c, curved, own in zip(columns, curvature, p.T, strict=True):
            some = np.column_stack([np.ones(system.n_rows), system.targets[:, c] * system.scale[c]])
            # One by one: not every product takes more columns than the system has.
            one = np.array([c])
            images = np.hstack([system.times(v[:, None], one, exact=True) for v in some.T])
            largest = float((norms(images) / norms(some)).max())
            if curved < -NO_CURVATURE * largest * own @ own:
                raise NotPositiveDefinite(
                    f"K + {system.shifts[c]:g} N is not positive definite: p^T (K + alpha N) p / "
                    f"p^T p = {curved / (own @ own):.3g} in column {c}, where the matrix is about "
                    f"{largest:.3g} large; the kernel is not positive definite on these rows (use "
                    "another, or a larger alpha), or the product is not accurate enough (use "
                    "float64)"
                )

    def _settle(self, columns: Integers) -> bool:
        """Let columns wait that seem to be done; return whether a check is due for others."""
        s = self.state
        sizes = norms(s.r[:, columns])
        s.n_iter[columns] += 1
        s.since[columns] += 1
        s.peak[columns] = np.maximum(s.peak[columns], sizes)
        s.history = np.pad(s.history, ((0, 1), (0, 0)), constant_values=np.nan)
        s.history[-1, columns] = sizes
        self.stopped = self._report(columns)
        arrived = (sizes <= self.goal[columns]) | (s.n_iter[columns] >= self.max_iter)
        s.status[columns[arrived | self.stopped]] = Status.WAITING
        fallen = (sizes <= FALLEN * s.peak[columns]) & (s.since[columns] >= APART)
        return bool((fallen | (s.since[columns] >= s.wait[columns])).any())

    def _turn(self, columns: Integers, fall: Doubles) -> None:
        """Choose the next directions: z, and so much of the last ones as makes them conjugate."""
        s = self.state
        z, power = self.system.precondition(s.r[:, columns], columns)
        self._point(columns, z, np.maximum(-dots(z, fall) / s.power[columns], 0.0))
        s.power[columns] = power

    def _turn_checked(self, conjugate: NDArray[np.bool_]) -> None:
        """Choose the next directions after a check: those of `conjugate` columns go on."""
        s, columns = self.state, self._are(Status.RUNNING)
        if columns.size:
            z, power = self.system.precondition(s.r[:, columns], columns)
            factors, same = np.zeros(columns.size), conjugate[columns]
            factors[same] = power[same] / s.power[columns[same]]
            self._point(columns, z, factors)
            s.power[columns] = power

    def _point(self, columns: Integers, z: Doubles, factors: Doubles) -> None:
        p = self.state.p[:, columns]
        p *= factors
        p += z
        self.state.p[:, columns] = p

    def _check(self, broken: Integers) -> NDArray[np.bool_]:
        """Replace the residuals by the true ones; return which columns keep their directions."""
        s, columns = self.state, self._are(Status.RUNNING, Status.WAITING)
        truth = s.r[:, columns]
        few = s.n_iter[columns].max() <= FEW_STEPS and s.exact[columns].all()
        if not few or self.tol < FEW_STEPS_TOL:  # else they are true but for rounding
            truth = self.system.residual(s.x[:, columns], columns)
        true, gap = norms(truth), norms(truth - s.r[:, columns])
        s.r[:, columns] = truth
        conjugate, back = np.zeros(s.status.size, dtype=bool), []
        for column, size, off in zip(columns.tolist(), true, gap, strict=True):
            peak, best = s.peak[column], s.best[column]
            self._note(column, size)
            if s.status[column] != Status.RUNNING:
                continue
            failed = column in broken or (not s.exact[column] and self._is_late(column, size))
            if off <= HONEST * size and not failed:
                s.lies[column] = 0
                conjugate[column] = off <= ALIKE * size
            elif failed or size > WORTH * peak:  # and if not, it starts anew from the truth
                self._distrust(column, size <= best / 2, column in broken)
                if s.best[column] < size and s.status[column] == Status.RUNNING:
                    back.append(column)
        if back:
            some = np.array(back)
            s.x[:, some] = (self._start() if s.best_x is None else s.best_x)[:, some]
            s.r[:, some] = self.system.residual(s.x[:, some], some)
            s.peak[some] = s.best[some]
        return conjugate

    def _note(self, column: int, size: float) -> None:
        """Record a true residual, and whether the column is done."""
        s = self.state
        s.wait[column] = 2 * s.wait[column] if size > FALLEN * s.peak[column] else PLATEAU
        s.since[column], s.peak[column] = 0, size
        if size < s.best[column]:
            s.best[column] = size
            if size > self.goal[column]:
                if s.best_x is None:
                    s.best_x = self._start()
                s.best_x[:, column] = s.x[:, column]
        if size <= self.goal[column]:
            s.best[column], s.status[column] = size, Status.CONVERGED
        elif s.n_iter[column] >= self.max_iter:
            s.status[column] = Status.OUT_OF_STEPS
        else:
            s.status[column] = Status.STOPPED if self.stopped else Status.RUNNING

    def _is_late(self, column: int, size: float) -> bool:
        """Say whether a column, at its rate since the start, will need too many steps."""
        done, fallen = int(self.state.n_iter[column]), self.system.size[column] / size
        if done < max(LATE, self.max_iter // 4):
            return False
        to_come = math.log(size / self.goal[column])
        return fallen <= 1 or done * (1 + to_come / math.log(fallen)) > self.max_iter

    def _distrust(self, column: int, improved: bool, broken: bool) -> None:
        """Let a column use exact products; if it does already, give it up the second time."""
        s = self.state
        s.wait[column] = PLATEAU
        if not s.exact[column]:
            s.exact[column] = True
            return
        s.lies[column] = 0 if improved else s.lies[column] + 1
        if s.lies[column] > 1:
            s.status[column] = Status.SINGULAR if broken else Status.STAGNATED

    def _report(self, columns: Integers) -> bool:
        """Call `progress` after a step; return whether it asks to stop."""
        if self.progress is None:
            return False
        history = self.state.history
        seconds = time.monotonic() - self.begun
        ratios = history[-1, columns] / self.system.size[columns]
        left = max((self._steps_left(c) for c in columns.tolist()), default=0.0)
        seconds_left = left * seconds / (len(history) - self.steps_before)
        answer = self.progress(SolveProgress(
            len(history), columns.size, float(ratios.max()), seconds, seconds_left
        ))  # fmt: skip
        return isinstance(answer, (bool, np.bool_)) and bool(answer)

    def _steps_left(self, column: int) -> float:
        """Return the steps that a column still needs, at the rate of the later half of its own."""
        sizes = self.state.history[:, column]
        sizes = sizes[np.isfinite(sizes)]
        most = self.max_iter - len(sizes)
        now, before = sizes[-1], sizes[len(sizes) // 2 - 1] if len(sizes) > 1 else math.nan
        steps = len(sizes) - len(sizes) // 2
        if now <= self.goal[column]:
            return 0.0
        if not 0 < now < before:
            return math.inf
        return min(most, math.log(now / self.goal[column]) / math.log(before / now) * steps)

    def _solution(self) -> Solution:
        s, system = self.state, self.system
        converged = s.status == Status.CONVERGED
        if not converged.all():
            s.x[:, ~converged] = (self._start() if s.best_x is None else s.best_x)[:, ~converged]
        s.x /= system.scale
        left = np.where(converged, s.r / system.scale, np.nan)
        sizes = np.where(system.size > 0, system.size, 1.0)
        status = [Status(code).name.lower().replace("_", " ") for code in s.status.tolist()]
        return Solution(
            s.x, s.best / sizes, s.n_iter, converged, status, system.shifts, self.tol,
            s.history / sizes, left,
        )  # fmt: skip

    def _digest(self) -> str:
        """Return a hash of the systems, with the first directions and their product for P and K."""
        system, s = self.system, self.state
        digest = hashlib.sha256(f"{system.targets.shape} {self.tol!r}".encode())
        arrays = [system.targets, system.shifts, system.noise, system.start.coef]
        columns = self._are(Status.RUNNING)
        if columns.size:
            arrays += [s.p, system.times(s.p[:, columns], columns, exact=False)]
        for array in arrays:
            digest.update(b"None" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()


class OfColumns:
    """A preconditioner made for some alphas, for columns whose alphas are at these places."""

    def __init__(self, preconditioner: Any, places: Integers) -> None:
        self.preconditioner, self.places = preconditioner, places

    def __repr__(self) -> str:
        return repr(self.preconditioner)

    def solve(self, R: Doubles, columns: Integers) -> Any:
        """Return P^-1 R for some of the columns."""
        return self.preconditioner.solve(R, self.places[columns])


def not_finite(name: str) -> ValueError:
    """Return the error for products with NaN or infinity."""
    return ValueError(
        f"{name} gives numbers that are not finite; NaN or infinity in the rows, or a kernel that "
        "overflows on them (a polynomial of large rows, say): check the rows, or scale them down"
    )


def check_noise(noise: ArrayLike, n_rows: int) -> Doubles:
    """Return one number > 0 for each row."""
    values = check_not_negatives("noise", noise)
    if values.shape != (n_rows,):
        value = f"={noise!r}" if values.ndim == 0 else ""
        raise ValueError(
            f"noise{value} has shape {values.shape}, but there are {counted(n_rows, 'row')}; give "
            "one number > 0 for each row, or None for ones"
        )
    if not (values > 0).all():
        raise ValueError(
            f"noise has the smallest value {values.min():g}, but must be > 0; leave out rows of "
            "infinite weight, and pass a small number for rows without noise"
        )
    return values


def dots(A: Doubles, B: Doubles) -> Doubles:
    """Return the products of corresponding columns, to the same bits for any number of threads."""
    return np.asarray(np.einsum("ij,ij->j", A, B))


def norms(A: Doubles) -> Doubles:
    """Return the norms of the columns."""
    return np.sqrt(dots(A, A))
