"""Forecast of the steps, seconds and memory of a `KernelRidge` on many rows, from some of them.

The **steps** come from trials. On m of n rows the eigenvalues of K are about m / n of those on all
rows. So a trial uses m / n times alpha, and the preconditioner that these rows have as a part of
all (`preconditioner_of_some`). A trial misses the small eigenvalues, so that half of the rows take
fewer steps, by some factor. Twice as many rows take more steps by this factor to the power of
SLOWING, and so on.

The **seconds** of a product and of the preconditioner are measured on as many rows as there are in
all, or on TIMED_ROWS. These rows repeat those given, so that tiles of near rows are as small as for
all rows. For more rows the time of products grows with their square, and the time of the
preconditioner also with its size.

The **memory** is measured on these rows too. It is at most the estimate of `fit_memory`, at least
the size of what is kept, and for more rows it grows like the estimate.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gzkcore._util.memory import PeakMemory
from gzkcore._util.typing import Doubles, Floats, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted, plain, seconds_told
from gzkcore.kernels.base import Kernel

from .fit_memory import preconditioner_bytes, whole_bytes
from .kernel_system import HELD_ROWS, KernelSystem
from .preconditioners import preconditioner_for, preconditioner_of_some
from .solve import Solution

# Rows, and values of them, that steps are tried on; right-hand sides solved for.
TRIED_ROWS, TRIED_VALUES, RIGHT_SIDES = 1 << 13, 1 << 22, 8
# Steps of the solver that are waited for.
MOST_STEPS = 200
# What the growth of steps with twice the rows is of the growth before, as a power. On six tables,
# from 1,500 rows to 6,000, the steps asked for .5 to 2.
SLOWING = 0.7
# Rows that a product is timed on, as far as one takes about so many seconds.
TIMED_ROWS, TIMED_SECONDS = 1 << 14, 0.2
# Products in double that a fit takes.
EXACT_PRODUCTS = 2


@dataclass(frozen=True)
class WholeCost:
    """The expected cost of a `KernelRidge` on n_samples rows.

    Attributes
    ----------
    alpha : float
    statistical_dimension : float
        tr K (K + alpha I)^-1, estimated from the rows tried; at most their number.
    n_iter : int
        Steps of the solver.
    converged : bool
        Whether the solver converged on the rows tried.
    preconditioner : str
    seconds, megabytes : float
    """

    alpha: float
    statistical_dimension: float
    n_iter: int
    converged: bool
    preconditioner: str
    seconds: float
    megabytes: float

    @property
    def about(self) -> str:
        """Seconds, steps and megabytes in words."""
        more = "about" if self.converged else "more than"
        seconds = seconds_told(self.seconds)
        more = "" if more == "about" and seconds.startswith("<") else f"{more} "
        steps = counted(self.n_iter, "step")
        return f"{more}{seconds} s ({steps}) and {self.megabytes:,.0f} MB"


def cost_of(
    kernel: Kernel,
    X: Rows,
    alpha: float,
    n_samples: int,
    rng: np.random.Generator,
    n_columns: int = 1,
    targets: Doubles | None = None,
    tol: float = 1e-3,
) -> WholeCost:
    """Predict what a `KernelRidge` on n_samples rows takes, by some of these.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X : {ndarray, sparse matrix} of shape (n_rows, dim)
    alpha : float
        > 0, for all n_samples rows.
    n_samples : int
    rng : Generator
    n_columns : int, default=1
        Systems that are solved at once: one for each target, and one more for an intercept.
    targets : ndarray of shape (n_rows, n_columns), optional
        None: noise, which takes more steps than most targets.
    tol : float, default=1e-3
        That of the `KernelRidge`.
    """
    n_rows, dim = X.shape
    most = max(2, TRIED_VALUES // max(dim, 1))
    m, chosen = min(n_rows, n_samples, TRIED_ROWS, most), rng.permutation(n_rows)
    rows, noise = dense(X[chosen[:m]]), rng.standard_normal((m, RIGHT_SIDES))
    given = noise if targets is None else targets[chosen[:m]]
    n_columns = n_columns if targets is None else given.shape[1]
    every = _Every(kernel, rows, alpha, n_samples, tol, int(rng.integers(2**31)))
    start, peak = time.perf_counter(), PeakMemory()
    system = every.part(m)
    found = _solved(system, given)
    seconds = (time.perf_counter() - start) * (n_samples / m) ** 3  # if it is factored
    n_iter, dimension = int(found.n_iter.max()), float(m)
    if targets is None:
        # K (K + alpha I)^-1 of the noise. Its square is m in the mean only: m less the solved part
        # would be off by (2 m / RIGHT_SIDES)^(1/2), where this is by the dimension in place of m.
        smooth = noise - float(system.alphas[0]) * found.coef
        traced = float(np.einsum("ij,ij->", noise, smooth)) / RIGHT_SIDES
        dimension = min(max(traced, 0.0), dimension)
    taken = every.bytes(n_samples, n_columns)
    if n_samples > HELD_ROWS:
        if n_samples > m:
            of_half = int(_solved(every.part(m // 2), given[: m // 2]).n_iter.max())
            n_iter = grown(of_half, n_iter, math.log2(n_samples / m))
            t = _timed_rows(system, given[:, :n_columns], most, n_samples)
            peak = PeakMemory()
            system = every.copies(t)
        made, t = system.preconditioner, system.n_rows
        products, others = _seconds_of_steps(system, rng.standard_normal((t, n_columns)), n_iter)
        larger = every.preconditioner_bytes(n_samples) / every.preconditioner_bytes(t)
        seconds = products * (n_samples / t) ** 2 + (made.seconds + others) * larger
        most_taken, least = every.bytes(t, n_columns), whole_bytes(t, dim, n_columns, made.nbytes)
        measured = max(least, min(most_taken, peak.bytes))
        taken *= measured / most_taken
    return WholeCost(
        alpha=alpha,
        statistical_dimension=dimension,
        n_iter=n_iter,
        converged=bool(found.converged.all()),
        preconditioner=plain(repr(system.preconditioner)),
        seconds=seconds,
        megabytes=taken / 1e6,
    )


@dataclass(frozen=True)
class _Every:
    """The system of all n_samples rows, some of which are known."""

    kernel: Kernel
    rows: Floats
    alpha: float
    n_samples: int
    tol: float
    seed: int

    def part(self, count: int) -> KernelSystem:
        """Return the system of some rows, preconditioned as a part of all."""
        rows, shift = self.rows[:count], self.alpha * count / self.n_samples
        made: Any = "auto"
        if self.n_samples > max(count, HELD_ROWS):
            made = preconditioner_of_some(self.kernel, rows, shift, self.n_samples, self.seed)
        return self._system(rows, shift, made)

    def copies(self, count: int) -> KernelSystem:
        """Return the system of so many rows, which repeat those that are known."""
        rows = self.rows[np.resize(np.arange(len(self.rows)), count)]
        shift = self.alpha * count / self.n_samples
        made = preconditioner_for("auto", self.kernel, rows, [shift], random_state=self.seed)
        return self._system(rows, shift, made)

    def _system(self, rows: Floats, shift: float, made: Any) -> KernelSystem:
        return KernelSystem(
            self.kernel, rows, np.array([shift]), preconditioner=made, tol=self.tol,
            max_iter=MOST_STEPS, random_state=self.seed,
        )  # fmt: skip

    def preconditioner_bytes(self, n_rows: int) -> float:
        """Return what the preconditioner of so many rows takes."""
        largest = float(self.kernel.diag(self.rows).max()) or 1.0
        return preconditioner_bytes(n_rows, self.rows.shape[1], self.alpha / largest)

    def bytes(self, n_rows: int, n_columns: int) -> float:
        """Return what a fit to so many rows takes, as it is reckoned."""
        made = self.preconditioner_bytes(n_rows)
        return whole_bytes(n_rows, self.rows.shape[1], n_columns, made)


def _solved(system: KernelSystem, targets: Doubles) -> Solution:
    return system.solve(targets, np.repeat(system.alphas, targets.shape[1]))


def grown(of_half: int, n_iter: int, doublings: float) -> int:
    """Return steps with 2^doublings times the rows, by those of all rows and of half."""
    exponent = SLOWING * (1 - SLOWING**doublings) / (1 - SLOWING)
    more: float = max(1.0, n_iter / max(of_half, 1)) ** exponent
    return math.ceil(more * n_iter)


def _timed_rows(system: KernelSystem, block: Doubles, most: int, n_samples: int) -> int:
    """Return how many rows a product is timed on: no fewer than the system has."""
    seconds = seconds_of(lambda: system.product(block))
    affordable = int(system.n_rows * math.sqrt(TIMED_SECONDS / seconds))
    return max(system.n_rows, min(affordable, TIMED_ROWS, most, n_samples))


def _seconds_of_steps(system: KernelSystem, block: Doubles, n_iter: int) -> tuple[float, float]:
    """Return the seconds that products, and all else, take in so many steps."""
    products = n_iter * seconds_of(lambda: system.product(block))
    products += EXACT_PRODUCTS * seconds_of(lambda: system.exact(block))
    columns = np.zeros(block.shape[1], np.intp)
    return products, n_iter * seconds_of(lambda: system.preconditioner.solve(block, columns))


def seconds_of(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least time of a few calls."""
    takes = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        takes.append(time.perf_counter() - start)
    return min(takes)
