"""The search for the kernel and the alpha that predict held-out rows best.

    choose_kernel
        Lessons       lengths of each kernel, learned from 500 rows of each split
        _best_of      errors of these kernels on held-out rows, with alphas about the learned noise;
                      the nearly best ones again, with lengths from 1,000 rows
        walk          the best one with all lengths shorter, or longer, as long as that helps

1. Kernels: Matern with one length per column and with one for all, and Laplacian with one per
   column (a product over columns, which suits tables with jumps along these). The levels of a
   category share a length, or frequent ones have their own if that is likelier. The marginal
   likelihood determines the lengths (`learn_kernel`), for each split only from the rows that are
   fitted to: held-out rows must not influence the lengths that they judge. Fewer than 50 rows
   hardly determine lengths, so that a nearly linear kernel is tried too. A thousand rows show only
   the coarser of two scales and overestimate the noise, so:
2. Lengths and alpha are chosen on some thousands of rows: all lengths are made shorter or longer,
   and alphas are tried in half decades, in the directions that reduce the error. Of 1,000 rows or
   more half choose first, at a quarter of the cost; then all rows choose alpha and shorter lengths.

No step uses all rows of a long table, so that the time does not grow with their number.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.base import clone

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import meant, seconds_told
from gzkcore.kernels.aliases import ALIASES, as_kernel
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.learned import N_ROWS, Examples, LearnedKernel, learned
from gzkcore.kernels.shift_invariant import Laplacian, Matern

from .report import DETAIL, Candidate, plain_name
from .table_encoder import Groups
from .trials import ALPHAS, WORTH_A_STEP, Trials, alphas_about

# Kernels that may be asked for by name: their lengthscales can be learned.
BY_NAME = tuple(name for name, kernel in ALIASES.items() if kernel.learnable)

FIRST_ALPHAS = ALPHAS[10::2]  # These are tried where no noise was learned, or from too few rows.
DECADE = 2  # So many alphas are a decade: the step by which they are first tried.
LEAST_START = 1e-3  # Alphas are first tried there or above, so that a tie goes to the larger one.
MIDDLE_ALPHA = 0.01  # Alphas are first tried there for a kernel of which nothing is learned.

GUARD_ROWS = 500  # Lengths are learned from so many rows to compare kernels.
CLOSE = 1.03  # Kernels within so many times the least error are compared by lengths from more rows.
RARE = 10  # So many rows of other values are added to rows to learn from that are all alike.
# A search for lengths ends when a step raises the log likelihood of each target of a row by less
# than SETTLED, a share of the error that held-out rows don't notice; by less than FORGOTTEN if it
# starts from lengths that know held-out rows.
SETTLED, FORGOTTEN = 3e-4, 1e-4

KERNELS_TRIED = 3  # So many kernels or more are learned where none is asked for.
MOST_LENGTHS = 1000  # More encoded columns than this share one length.
LAPLACIAN_LENGTHS = 40  # A Laplacian of more lengths is not tried.
LITTLE = 0.01  # Columns with a smaller share of sum(variance / length^2) hardly matter.
ROUGHEST = 0.5  # This smoothness is tried too where all columns have one length, as on the globe.
# With fewer rows to fit to, learned lengths are often worse than a linear regression. For 160
# samples of 30 rows the nearly linear kernel made 86 models better and 29 worse; of 100 rows 43
# and 47. Its length is in root mean square distances of rows from their mean.
NEARLY_LINEAR_ROWS, NEARLY_LINEAR = 50, 10.0

HALVED = 1000  # With so many rows to fit to or more, half of them choose first.
FACTOR, LONGEST_WALK = math.sqrt(2), 10  # Lengths are multiplied by powers of it, up to the tenth.


def searched(kernel: str | Kernel) -> Kernel | None:
    """Return the only kernel to try, None if several are; a name leaves all lengths to be learned.

    Raises
    ------
    TypeError, ValueError
        If there is no such kernel, or none of that name whose lengths can be learned.
    """
    if isinstance(kernel, str) and kernel == "auto":
        return None
    only: Kernel
    if not isinstance(kernel, str):
        only = clone(as_kernel(kernel))
        return only
    if kernel not in BY_NAME:
        raise ValueError(
            f"kernel={kernel!r} is unknown{meant(kernel, BY_NAME)}; use one of "
            f"{('auto', *BY_NAME)}, or a Kernel"
        )
    only = as_kernel(kernel)
    only.set_params(**dict.fromkeys(only.learnable, "learn"))
    return only


def choose_kernel(
    trials: Trials, kernel: Kernel | None, groups: Groups | None, rng: np.random.Generator
) -> tuple[Candidate, Candidate | None] | None:
    """Return the kernel and the alpha that predict held-out rows best.

    `kernel` is the only one to try; None: several. `groups` are the columns that share a length;
    None where all do, as on the unit sphere and of very wide rows.

    Returns
    -------
    (Candidate, Candidate or None) or None
        The best with all rows to fit to, and the best with half of them where these chose. None
        where X or y is constant on the rows to fit to: there is nothing to learn from.
    """
    began = time.perf_counter()
    lessons = Lessons(trials, rng)
    if lessons.without_variation:
        return None
    lessons.learn_all(kernel, groups)
    if kernel is None and trials.n_fitted < NEARLY_LINEAR_ROWS:
        lessons.add("Gaussian, nearly linear", _nearly_linear(trials))
    seconds = time.perf_counter() - began
    trials.report.say(
        f"The lengthscales of all kernels tried were learned in {seconds_told(seconds)}.", DETAIL
    )
    learns = kernel is None or (asks_targets(kernel) and hasattr(kernel, "with_lengths"))
    either, shorter = ((-1, 1), (-1,)) if learns else ((), ())
    if trials.n_fitted < HALVED:
        return walk(trials, _best_of(trials, lessons), either), None
    half = trials.halved()
    likeliest = _best_of(half, lessons)
    of_half = walk(half, likeliest, either)
    starts = [of_half] if of_half.longer == likeliest.longer else [of_half, likeliest]
    solved = [best for start in starts if (best := trials.run_about(start)) is not None]
    if not solved:  # no alpha that near
        return walk(trials, _best_of(trials, lessons), either), of_half
    return walk(trials, _least(solved), shorter), of_half


# ---- 1. lengths


@dataclass
class Lesson:
    """A kernel to learn, and the kernels learned from each of several sets of rows."""

    kernel: Kernel
    groups: Integers | None
    answers: list[LearnedKernel]

    def kernels(self, n_splits: int) -> dict[str, Any]:
        """Return the kernel for all rows, and those of the splits, as a candidate has them."""
        kernels = [answer.kernel for answer in self.answers]
        return {"kernel": kernels[-1], "of_splits": kernels[:n_splits]}


class Lessons:
    """Kernels with lengths learned from the rows that splits fit to.

    `rows` are those that final lengths are learned from, `fewer` some of them, for lengths that are
    compared: of each split, and then, if there are several, of all rows.
    """

    def __init__(self, trials: Trials, rng: np.random.Generator) -> None:
        self.trials, self.n_splits = trials, len(trials.splits)
        sources = [train for train, _ in trials.splits]
        if self.n_splits > 1:
            sources.append(trials.every())
        self.rows = [some_that_vary(trials.X, trials.Y, rows, rng) for rows in sources]
        self.without_variation = not all(rows.size for rows in self.rows)
        self.starts: list[Candidate] = []  # the kernels to try
        self._lessons: dict[str, Lesson] = {}
        self._n_searches, self._n_done = len(self.rows), 0
        if not self.without_variation:
            self.fewer = [
                some_that_vary(trials.X, trials.Y, rows, rng, GUARD_ROWS) for rows in self.rows
            ]

    def learn_all(self, kernel: Kernel | None, groups: Groups | None) -> None:
        """Learn the kernels to try: the only one that is asked for, or several."""
        alike, per_column = "one lengthscale", "one lengthscale per column"
        if kernel is not None and not asks_targets(kernel):
            self.add(plain_name(kernel), kernel.resolve(self.trials.X))
        elif groups is None or self.trials.X.shape[1] == 1:
            likeliest = self.learn(alike, _alike(kernel or Matern("learn", "learn-isotropic")))
            smoothness = getattr(likeliest.kernel, "nu", ROUGHEST)
            if kernel is None and groups is None and smoothness != ROUGHEST:
                # Few rows say little of smoothness, and what is too smooth is far off in gaps.
                self._n_searches *= 2
                self.learn(alike, Matern(ROUGHEST, "learn-isotropic"))
        elif kernel is not None:
            self._n_searches *= 2
            if getattr(kernel, "groups", False) is None:  # a column of the table is a factor
                kernel.set_params(groups=groups.of_columns)
            self.learn(per_column, kernel, groups.of_columns)
            self.learn(alike, _alike(kernel))
        else:
            self._n_searches *= KERNELS_TRIED
            self._learn_several(groups)

    def _learn_several(self, groups: Groups) -> None:
        name, shared = "one lengthscale per column", groups.of_columns
        start = self.learn(name, Matern("learn", "learn"), shared)
        matern: Any = start.kernel
        if not np.array_equal(shared, groups.of_levels):
            per_level, same = "one lengthscale per level", Matern(matern.nu, "learn")
            own = self._learned(
                per_level, self.fewer[-1], same, groups.of_levels, below=start.value
            )
            if own.value < start.value:
                name, shared = per_level, groups.of_levels
                self._n_searches += len(self.rows)
                start = self.learn(name, same, shared, own)
        small = _small_periods(groups, matern.scale(), self.trials.X)
        alike = Matern(matern.nu, "learn-isotropic")
        self.learn("one lengthscale", alike, np.where(small, -1, shared))
        for sharing in (shared, groups.of_columns, groups.of_levels):
            if np.unique(sharing[sharing >= 0]).size <= LAPLACIAN_LENGTHS:
                first = start if sharing is shared else None
                self.learn(name, Laplacian("learn"), sharing, first)
                break

    def add(self, name: str, kernel: Kernel) -> None:
        """Add a kernel of which nothing is learned."""
        kernels = [kernel] * self.n_splits
        self.starts.append(Candidate(name, kernel, MIDDLE_ALPHA, of_splits=kernels))

    def learn(
        self,
        name: str,
        kernel: Kernel,
        groups: Integers | None = None,
        start: LearnedKernel | None = None,
    ) -> LearnedKernel:
        """Learn smoothness from all rows, lengths from those of each split, not far from there."""
        *of_splits, every = self.fewer
        likeliest = self._learned(name, every, kernel, groups, start)
        resolved: Any = likeliest.kernel
        if isinstance(kernel, Matern):
            kernel = Matern(resolved.nu, kernel.length_scale)
        answers = [
            self._learned(name, rows, kernel, groups, likeliest, FORGOTTEN) for rows in of_splits
        ]
        lesson = Lesson(kernel, groups, [*answers, likeliest])
        name = f"{plain_name(resolved)}, {name}"
        self._lessons[name] = lesson
        alpha = max(likeliest.noise, LEAST_START)
        self.starts.append(Candidate(name, alpha=alpha, **lesson.kernels(self.n_splits)))
        return likeliest

    def refined(self, best: Candidate) -> Candidate:
        """Return a candidate with lengths that are learned from all rows that there are for it."""
        lesson = self._lessons.get(best.name)
        if lesson is None:
            return best
        lesson.answers = [
            answer
            if rows.size == few.size
            else self._learned(best.name, rows, lesson.kernel, lesson.groups, answer)
            for rows, few, answer in zip(self.rows, self.fewer, lesson.answers, strict=True)
        ]
        return replace(best, **lesson.kernels(self.n_splits))

    def _learned(
        self,
        name: str,
        rows: Integers,
        kernel: Kernel,
        groups: Integers | None = None,
        start: LearnedKernel | None = None,
        settled: float = SETTLED,
        below: float = math.inf,
    ) -> LearnedKernel:
        """Return a kernel with lengths learned from some rows."""
        share = min(self._n_done / self._n_searches, 1.0)
        self.trials.on_progress("learning lengthscales", share, name)
        self._n_done += 1
        part = self.trials.part(rows)
        examples = Examples(part.X, part.y, part.weight, groups=groups)
        return learned(kernel, examples, start=start, settled=settled, below=below)


def _alike(kernel: Kernel) -> Kernel:
    """Return a kernel with one length for all columns."""
    lengths = [name for name in kernel.learnable if name != "nu"]
    alike: Kernel = clone(kernel).set_params(**dict.fromkeys(lengths, "learn-isotropic"))
    return alike


def _small_periods(groups: Groups, scales: Any, X: Doubles) -> NDArray[np.bool_]:
    """Say which columns are of periods that hardly matter by their scales, which are 1 / length."""
    shares = X.var(axis=0) * np.square(scales)
    of_groups = np.bincount(groups.of_columns, shares) / shares.sum()
    small = (np.array(groups.kinds) == "period") & (of_groups < LITTLE)
    return np.asarray(small[groups.of_columns])


def _nearly_linear(trials: Trials) -> Kernel:
    """Return a kernel whose ridge regression is nearly a linear one.

    Of rows much closer than a length L, exp(-|x - y|^2 / (2 L^2)) is about a constant, and <x, y>
    / L^2 for centred rows: alphas from 1e-5 are ridges from 1e-5 L^2.
    """
    length = NEARLY_LINEAR * math.sqrt(trials.X.var(axis=0).sum())
    return Matern(math.inf, length)


def some_that_vary(
    X: Doubles, Y: Doubles, rows: Integers, rng: np.random.Generator, most: int = N_ROWS
) -> Integers:
    """Return some of the rows at random, with a few of the rare ones where the others are alike.

    So each target, and X, is constant on them only if it is on all rows. None if all are, or X is.
    """
    if not np.ptp(X[rows], axis=0).any() or not np.ptp(Y[rows], axis=0).any():
        return rows[:0]
    chosen = rng.permutation(rows)[:most]
    for values in (X, *Y.T[:, :, None]):
        other = rows[(values[rows] != values[chosen[0]]).any(axis=1)]
        if other.size and not np.ptp(values[chosen], axis=0).any():
            chosen = np.append(chosen, rng.permutation(other)[:RARE])
    return np.sort(chosen)


def coordinates(X: Doubles) -> Doubles:
    """Return rows with the same distances, in as many columns as there are rows at most.

    Where all columns have one length nothing else matters, and fewer columns are faster.
    """
    if X.shape[1] <= len(X):
        return X
    with limit_blas(1):
        (triangle,) = qr((X - X.mean(axis=0)).T, mode="r", check_finite=False, overwrite_a=True)
    return np.ascontiguousarray(triangle[: len(X)].T)


# ---- 2. lengths and alpha by held-out rows


def _best_of(trials: Trials, lessons: Lessons) -> Candidate:
    """Return the best kernel, at the best of all alphas."""
    tried = []
    for start in lessons.starts:
        best = None if trials.few_differ else trials.run_about(start, DECADE)
        best = best or trials.run(start, FIRST_ALPHAS)
        if best is not None:
            tried.append(best)
    if not tried:
        raise ValueError(
            f"no kernel ridge regression converged, even with alpha={ALPHAS[-1]:g}; leave out rows "
            "with extreme values"
        )
    error = _least(tried).error
    close = [lessons.refined(best) for best in tried if best.error <= CLOSE * error]
    return _least([trials.run_about(best) or best for best in close])


def walk(trials: Trials, start: Candidate, directions: Sequence[int]) -> Candidate:
    """Make all lengths shorter, else longer, by FACTOR as long as that helps; return the best."""
    best = start
    for direction in directions:
        before = best
        for step in range(1, LONGEST_WALK + 1):
            factor = FACTOR ** (direction * step)
            kernel, *of_splits = (
                kernel.with_lengths(factor / kernel.scale()).resolve(trials.X)
                for kernel in (start.kernel, *start.of_splits)
            )
            longer = start.longer * factor
            candidate = replace(start, kernel=kernel, of_splits=of_splits, longer=longer)
            further = trials.run(candidate, alphas_about(best.alpha))
            if further is None or further.error > WORTH_A_STEP * best.error:
                break
            best = further
        if best is not before:
            break
    return best


def _least(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the least error."""
    return min(candidates, key=lambda candidate: candidate.error)
