"""Peak memory of fits, beside their rows, and the forms of a model within a limit.

The estimates were 0.9 to 1.3 times the measured peaks on two processors, for Matern-3/2 with 1,000
to 40,000 rows of 2 to 60 columns, 1,000 to 3,000 centres and 512 to 2,048 features. For the whole
kernel on 10,000 or more rows with more than three columns they are upper bounds.
"""

import math
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gzkcore._util.memory import PeakMemory, available_memory, bytes_of
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Rows
from gzkcore._util.validation import dense
from gzkcore._util.wording import counted, plain, seconds_told
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.products import as_double
from gzkcore.passes.tiles import ALL_SUMS_BYTES, FEATURES_BYTES
from gzkcore.rows.survey import SAMPLE_ROWS, sample_size

from .centers import IN_MEMORY_BYTES, MOST_SAMPLE, PART_ROWS, ROOTS
from .near_landmarks import LANDMARKS_SEEN
from .preconditioners import (
    FEW_COLUMNS,
    LEAST_IN_SINGLE,
    NEIGHBOURS,
    SAMPLED_FOR_EACH,
    count_landmarks,
    most_components,
    preconditioner_for,
    preconditioner_of_some,
)
from .products import expected_cost
from .solve import Solution
from .system import HELD_ROWS, Equations, KernelSystem, system_of

LESS = 0.75  # If there is no room, this share of the centres or features is tried next.

# Conjugate gradients hold so many vectors of n doubles at their peak for each column.
VECTORS = 12
# A product in single precision computes so many vectors at once, if it is more than one. An entry
# takes so many bytes: a float that is multiplied and a double that is summed.
LANES, ENTRY = 16, 4 + 8
# An entry of a row takes so many bytes: itself, and in the tiles of both precisions.
COPIES = 8 + 8 + 4
# Near rows take so many copies in single precision, of which so many may be mapped.
NEAR_COPIES, MAPPED = 4, 2
# A preconditioner takes, while it is computed, so many bytes of tiles, and so many matrices as
# large as its factor.
TILES, FACTORS = 1 << 24, 5
# There are so many matrices of all pairs of centres at once, and of centres and a part of the
# sample.
SQUARES, CROSSES = 3, 6
# Features have so many folds, whose sums each thread has, so many other matrices as large, and
# tiles.
FOLDS, GRAMS, FEATURE_TILES = 2, 5, 2
# The kernel's columns are kept up to so many bytes while landmarks are chosen.
KEPT_BYTES = 1 << 28


def whole_bytes(
    n_rows: int, dim: int, n_columns: int, preconditioner: float, *, gathered: bool = False
) -> float:
    """Return the bytes of a `KernelRidge` on all rows, given those of its preconditioner.

    It solves `n_columns` systems at once. Rows of a source are `gathered` in memory.
    """
    lanes = 1 if n_columns == 1 else -(-n_columns // LANES) * LANES
    held = dim * COPIES + 8 * VECTORS * n_columns + ENTRY * lanes
    batches = 16 * (dim + n_columns) if gathered else 0  # each by itself, and together
    return n_rows * (held + batches) + preconditioner


def preconditioner_bytes(n_rows: int, dim: int, alpha: float) -> float:
    """Return the bytes of the preconditioner of a kernel with a compiled form and k(x, x) = 1."""
    if n_rows <= HELD_ROWS:  # the matrix itself and a factor
        return 16.0 * n_rows**2
    dtype = np.dtype(np.float32 if alpha >= LEAST_IN_SINGLE else np.float64)
    if dim <= FEW_COLUMNS:
        count, seen = count_landmarks(n_rows, dim), LANDMARKS_SEEN + NEIGHBOURS
        of_rows = n_rows * (9 * seen + 20 + dtype.itemsize * seen)
        return of_rows + 8.0 * FACTORS * count**2 + TILES
    count = most_components(n_rows, dim, dtype)
    of_rows = n_rows * (9 * NEIGHBOURS + dtype.itemsize * (count + NEIGHBOURS))
    return of_rows + 8.0 * FACTORS * count**2 + _kept(SAMPLED_FOR_EACH * count, count) + TILES


def centers_bytes(n_rows: int, dim: int, n_columns: int, count: int) -> float:
    """Return the bytes of a `KernelRidge` on so many centres."""
    sample = max(count, min(MOST_SAMPLE * count, int(ROOTS * math.sqrt(n_rows)), n_rows))
    part = min(sample, PART_ROWS)
    held = min(n_rows, IN_MEMORY_BYTES // (8 * dim)) * (COPIES * dim + 16 * n_columns)
    return 8.0 * count * (SQUARES * count + CROSSES * part) + held


def features_bytes(n_rows: int, dim: int, count: int) -> float:
    """Return the bytes of a `RandomFeatureRidgeCV` of two folds on so many Nystrom features."""
    threads = n_threads()
    sums = min(threads, max(1, ALL_SUMS_BYTES // (8 * FOLDS * count**2)))
    tiles = FEATURE_TILES * threads * min(FEATURES_BYTES, 8 * count * n_rows)
    sample = min(n_rows, SAMPLE_ROWS)
    made = max(tiles, _kept(n_rows, count), _kept(sample, count))
    return 8.0 * count**2 * (GRAMS + FOLDS * sums) + made + COPIES * dim * sample


def _kept(n_rows: int, count: int) -> float:
    """Return the bytes of the kernel's columns that are kept while landmarks are chosen."""
    columns = 8.0 * n_rows * count
    return columns if columns <= KEPT_BYTES else 0.0


class TooLittleMemoryError(ValueError):
    """No form of a model is within the bytes that it may take."""

    def __init__(self, limit: str, needed: str) -> None:
        self.needed = needed
        super().__init__(f"{limit}, but {needed}; allow more, or pass fewer rows or columns")


class Room:
    """The forms of a model that fit into memory, and those that were left out.

    `shape` counts rows, columns and targets. `max_memory` is a number of bytes, or a text such as
    "2 GB"; None: half of what the machine has available now. `gathered` is as for `whole_bytes`.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        alpha: float,
        max_memory: float | str | None,
        *,
        gathered: bool,
    ) -> None:
        self.n_rows, self._dim, self._n_targets = shape
        self._alpha, self._max_memory, self._gathered = alpha, max_memory, gathered
        if max_memory is None:
            available = available_memory()
            self._bytes = math.inf if available is None else available / 2
        else:
            self._bytes = bytes_of("max_memory", max_memory)
        # The largest form of each kind that was left out, with its bytes, and the least of all.
        self._out: dict[str, tuple[str, float]] = {}
        self._least = "", math.inf

    def whole(self) -> bool:
        """Say whether there is room for the whole kernel."""
        held = preconditioner_bytes(self.n_rows, self._dim, self._alpha)
        needed = whole_bytes(self.n_rows, self._dim, self._n_targets, held, gathered=self._gathered)
        return self._has("whole", "the whole kernel", needed)

    def near(self, *, mapped: bool = False) -> bool:
        """Say whether there is room for the rows, unless they are mapped, and for their tree."""
        held = 4 * self._dim * (NEAR_COPIES - mapped * MAPPED) + 8 * VECTORS * self._n_targets
        return self._has("near", "near rows", self.n_rows * held)

    def centers(self, most: int, fewest: int) -> int:
        """Return the number of centres that there is room for; 0 below the fewest.

        Those of a source are some of its sample.
        """
        if self._gathered:
            most = min(most, max(fewest, sample_size(self._dim)))
        return self._largest(
            "centres", most, fewest,
            lambda count: centers_bytes(self.n_rows, self._dim, self._n_targets, count),
        )  # fmt: skip

    def features(self, most: int, fewest: int) -> int:
        """Return the number of features that there is room for; 0 below the fewest."""
        return self._largest(
            "features", most, min(most, fewest),
            lambda count: features_bytes(self.n_rows, self._dim, count),
        )  # fmt: skip

    def left_out(self) -> str:
        """Return a sentence with the largest of each form that was left out; "" if none was."""
        if not self._out:
            return ""
        forms = ", ".join(f"{form} ({_said(needed)})" for form, needed in self._out.values())
        return f"Left out for memory, of which {self._allowed()} may be taken: {forms}."

    def too_little(self) -> TooLittleMemoryError:
        """Return the error of a table that no form has room for."""
        form, needed = self._least
        takes = f"a model of {self.n_rows:,} rows takes about {_said(needed)} or more ({form})"
        limit = f"max_memory={self._max_memory} allows {self._allowed()}"
        return TooLittleMemoryError(limit, takes)

    def _allowed(self) -> str:
        half = "half of what is available, " if self._max_memory is None else ""
        return f"{half}{self._bytes:,.0f} bytes"

    def _largest(self, noun: str, most: int, fewest: int, takes: Callable[[int], float]) -> int:
        count = most
        while count >= fewest:
            if self._has(noun, f"{count:,} {noun}", takes(count)):
                return count
            count = max(fewest, int(LESS * count)) if count > fewest else 0
        return 0

    def _has(self, kind: str, form: str, needed: float) -> bool:
        if needed <= self._bytes:
            return True
        self._out.setdefault(kind, (form, needed))
        if needed < self._least[1]:
            self._least = form, needed
        return False


def _said(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f} bytes"


# Steps are tried on at most so many rows, with so many values, for so many right-hand sides.
TRIED_ROWS, TRIED_VALUES, RIGHT_SIDES = 1 << 13, 1 << 22, 8
# A trial takes at most so many steps.
MOST_STEPS = 200
# With twice the rows steps grow by this power of their growth before. On six tables, from 1,500
# rows to 6,000, powers were .5 to 2.
SLOWING = 0.7
# A product is timed on at most so many rows, and about so many seconds.
TIMED_ROWS, TIMED_SECONDS = 1 << 14, 0.2
# A fit takes so many products in double.
EXACT_PRODUCTS = 2


@dataclass(frozen=True)
class WholeCost:
    """The expected cost of a `KernelRidge` on n_samples rows."""

    alpha: float
    statistical_dimension: float  # tr K (K + alpha I)^-1, by the rows tried; at most their number
    n_iter: int  # steps of the solver
    converged: bool  # on the rows tried
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
        return f"{more}{seconds} ({steps}) and {self.megabytes:,.0f} MB"


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
    """Predict the cost of a `KernelRidge` on n_samples rows, of which X are some.

    The kernel is resolved, and alpha > 0 is for all n_samples rows. `n_columns` systems are solved
    at once: one for each target, and one more for an intercept. Without targets (n_rows, n_columns)
    they are noise, which takes more steps than most targets.
    """
    n_rows, dim = X.shape
    most = max(2, TRIED_VALUES // max(dim, 1))
    m, chosen = min(n_rows, n_samples, TRIED_ROWS, most), rng.permutation(n_rows)
    rows, noise = dense(X[chosen[:m]]), rng.standard_normal((m, RIGHT_SIDES))
    sides = noise if targets is None else targets[chosen[:m]]
    n_columns = n_columns if targets is None else sides.shape[1]
    every = _Every(kernel, rows, alpha, n_samples, tol, int(rng.integers(2**31)))
    start, peak = time.perf_counter(), PeakMemory()
    system = every.part(m)
    solution = _solved(system, sides)
    seconds = (time.perf_counter() - start) * (n_samples / m) ** 3  # if it is factored
    n_iter, dimension = int(solution.n_iter.max()), float(m)
    if targets is None:
        # K (K + alpha I)^-1 of the noise. Its square is m in the mean only: m less the solved part
        # would be off by (2 m / RIGHT_SIDES)^(1/2), where this is by the dimension in place of m.
        smooth = noise - float(system.alphas[0]) * solution.coef
        traced = float(np.einsum("ij,ij->", noise, smooth)) / RIGHT_SIDES
        dimension = min(max(traced, 0.0), dimension)
    taken = every.bytes(n_samples, n_columns)
    if n_samples > HELD_ROWS:
        if n_samples > m:
            of_half = int(_solved(every.part(m // 2), sides[: m // 2]).n_iter.max())
            n_iter = grown(of_half, n_iter, math.log2(n_samples / m))
            t = _timed_rows(system, sides[:, :n_columns], most, n_samples)
            peak = PeakMemory()
            system = every.copies(t)
        preconditioner, t = system.preconditioner, system.n_rows
        products, others = _seconds_of_steps(system, rng.standard_normal((t, n_columns)), n_iter)
        larger = every.preconditioner_bytes(n_samples) / every.preconditioner_bytes(t)
        growth = every.cost_of_product(n_samples) / every.cost_of_product(t)
        seconds = products * growth + (preconditioner.seconds + others) * larger
        most_taken = every.bytes(t, n_columns)
        least = whole_bytes(t, dim, n_columns, preconditioner.nbytes)
        measured = max(least, min(most_taken, peak.bytes))
        taken *= measured / most_taken
    name, converged = plain(repr(system.preconditioner)), bool(solution.converged.all())
    return WholeCost(alpha, dimension, n_iter, converged, name, seconds, taken / 1e6)


@dataclass(frozen=True)
class _Every:
    """The system of n_samples rows, of which some are known."""

    kernel: Kernel
    rows: Floats
    alpha: float
    n_samples: int
    tol: float
    seed: int

    def part(self, count: int) -> KernelSystem:
        """Return the system of some rows, preconditioned as a part of all."""
        rows, shift = self.rows[:count], self.alpha * count / self.n_samples
        preconditioner: Any = "auto"
        if self.n_samples > max(count, HELD_ROWS):
            preconditioner = preconditioner_of_some(
                self.kernel, rows, shift, self.n_samples, self.seed
            )
        return self._system(rows, shift, preconditioner)

    def copies(self, count: int) -> KernelSystem:
        """Return the system of so many rows, which repeat the known ones."""
        rows = self.rows[np.resize(np.arange(len(self.rows)), count)]
        shift = self.alpha * count / self.n_samples
        preconditioner = preconditioner_for(
            "auto", self.kernel, rows, [shift], random_state=self.seed
        )
        return self._system(rows, shift, preconditioner)

    def _system(self, rows: Floats, shift: float, preconditioner: Any) -> KernelSystem:
        return system_of(
            Equations(
                self.kernel, rows, np.array([shift]), preconditioner=preconditioner,
                tol=self.tol,
                max_iter=MOST_STEPS, random_state=self.seed,
            )
        )  # fmt: skip

    def preconditioner_bytes(self, n_rows: int) -> float:
        """Return the bytes of the preconditioner of so many rows."""
        largest = float(self.kernel.diag(self.rows).max()) or 1.0
        return preconditioner_bytes(n_rows, self.rows.shape[1], self.alpha / largest)

    def cost_of_product(self, n_rows: int) -> float:
        """Return the expected nanoseconds of a product with so many rows."""
        return expected_cost(self.kernel, as_double(self.rows), n_rows)

    def bytes(self, n_rows: int, n_columns: int) -> float:
        """Return the estimated bytes of a fit to so many rows."""
        held = self.preconditioner_bytes(n_rows)
        return whole_bytes(n_rows, self.rows.shape[1], n_columns, held)


def _solved(system: KernelSystem, targets: Doubles) -> Solution:
    return system.solve(targets, np.repeat(system.alphas, targets.shape[1]))


def grown(of_half: int, n_iter: int, doublings: float) -> int:
    """Return the steps of 2^doublings times the rows, given those of all rows and of half."""
    exponent = SLOWING * (1 - SLOWING**doublings) / (1 - SLOWING)
    more: float = max(1.0, n_iter / max(of_half, 1)) ** exponent
    return math.ceil(more * n_iter)


def _timed_rows(system: KernelSystem, block: Doubles, most: int, n_samples: int) -> int:
    """Return the number of rows that a product is timed on: at least those of the system."""
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
    return min(timeit.repeat(work, number=1, repeat=repeats))
