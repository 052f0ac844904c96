"""The search for the kernel, alpha and form of a model that predict held-out rows best.

1. Kernels: Matern with one length per column and with one for all, and Laplacian with one per
   column (a product over columns, which suits tables with jumps along these). The levels of a
   category share a length, or frequent ones have their own if that is likelier. The marginal
   likelihood of 1,000 rows determines the lengths (`learn_kernel`), for each split only from the
   rows that are fitted to: held-out rows must not influence the lengths that they judge. To compare
   kernels 500 rows are enough, and 1,000 are for the best, and those that are nearly as good. Fewer
   than 50 rows hardly determine lengths, so that a nearly linear kernel is tried too. A thousand
   rows show only the coarser of two scales and overestimate the noise, so:
2. Lengths and alpha, on some thousands of rows: all lengths are made shorter or longer as long as
   that reduces the error, and alphas are tried about the noise, in decades and half decades, in the
   directions that reduce the error; those of a trial are columns of one block solve.
3. Features of the best kernel on the same rows.

No step uses all rows of a long table, so that the time does not grow with their number.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.base import clone

from gzkcore._util.state import flag, holds, ints, nothing, number, sequence, stored, text, whole
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import counted, seconds_told
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.learned import N_ROWS, Examples, LearnedKernel, learned
from gzkcore.kernels.learned_parts import IGNORED
from gzkcore.kernels.shift_invariant import Laplacian, Matern
from gzkcore.learn.held_out import TrainTest, at_most, squared_errors
from gzkcore.solve.products import expected_cost, expects_linear_time
from gzkcore.solve.system import Equations, KernelSystem, system_of
from gzkcore.solve.training_rows import TrainingRows
from gzkcore.solve.trend import Trend

from .table_encoder import Groups

# A choice, all of them:
ALPHAS = np.logspace(-10, 1, 23)
FIRST_ALPHAS = ALPHAS[10::2]  # where nothing tells where to start
DECADE = 2  # alphas
LEAST_START = 1e-3  # where the search starts at least: a tie goes to the larger alpha
MIDDLE_ALPHA = 0.01  # where the search starts with a kernel of which nothing was learned
TOL, MAX_ITER = 1e-2, 100  # of the solves while choosing
FACTOR, LONGEST_WALK = math.sqrt(2), 10  # of the lengths, and so many times
WORTH_A_STEP = 0.999  # of the error: a step that brings less is the last one
ROUGHEST = 0.5  # smoothness that is tried too where all columns have one length, as on the globe
HALVED = 1000  # rows to fit to from which on half of them choose first, at a quarter of the cost
CLOSE = 1.03  # of the least error of lengths from few rows: more rows decide among these kernels
# Of the logarithm of a likelihood, for each target of a row: a step that brings less is the last.
# It makes errors smaller by such a share, which rows held out don't tell.
SETTLED = 3e-4
FORGOTTEN = 1e-5  # the same where the search starts from lengths that know rows held out
GUARD_ROWS = 500  # that lengths are learned from to compare kernels
MOST_LENGTHS = 1000  # columns beyond which they share one length
LITTLE = 0.01  # of variance / length^2 of all columns: other kernels leave out periods below that
LAPLACIAN_COLUMNS = 40  # up to which one is tried: its gradient takes m^2 operations for each
# To fit to, below which lengths learned from them are often worse than a linear regression. For 160
# samples of 30 rows the kernel for that made 86 models better and 29 worse; of 100 rows 43 and 47.
NEARLY_LINEAR_ROWS = 50
DOUBTED = 100  # to fit to, below which an alpha must be better than larger ones beyond chance
NEARLY_LINEAR = 10.0  # lengths in root mean square distances of rows from their mean
LEGEND = (
    "Error: root mean squared, of held-out rows, in standard deviations of y (of labels as +1 and "
    "-1), with the best alpha. Rows: those fitted to."
)
# Kernels that may be asked for by name: their lengthscales can be learned.
BY_NAME = ("gaussian", "matern", "laplacian", "exponential", "rational_quadratic")
RARE = 10  # rows of other values that are added to those learned from, if these are all alike
KERNELS_TRIED = 3  # at least, where none is asked for

# What a fit does now, the share that is done (None: nobody knows), and how it stands.
Watch: TypeAlias = Callable[[str, float | None, str], Any]


@dataclass
class Candidate:
    """What was tried: its error on rows held out, and what that took."""

    _state = stored(
        name=text(),
        kernel=holds(Kernel),
        alpha=number(0),
        error=number(finite=False),
        seconds=number(0),
        of_splits=sequence(holds(Kernel)),
        least_alpha=flag(),
        chosen=flag(),
        n_rows=whole(0),
        longer=number(0),
        slopes=ints(None) | nothing(),
    )

    name: str
    kernel: Kernel  # for all rows
    alpha: float
    error: float  # root mean squared error of standardised targets
    seconds: float
    of_splits: list[Kernel] = field(default_factory=list, repr=False, compare=False)
    # No smaller alpha was solved for, and this one is better than the next larger one.
    least_alpha: bool = field(default=False, repr=False, compare=False)
    chosen: bool = field(default=False, repr=False, compare=False)  # the model is made of it
    n_rows: int = 0  # that it was fitted to
    longer: float = 1.0  # what learned lengthscales were multiplied by
    # The encoded columns of a linear trend beside the kernel.
    slopes: Integers | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        mark, (error, alpha, rows, name) = ">" if self.chosen else " ", self.told()
        return f"{mark}{error:>8} {alpha:>9} {seconds_told(self.seconds):>8} s {rows:>7}   {name}"

    def told(self) -> tuple[str, str, str, str]:
        """Return its error, its alpha, the rows fitted to, and its name, as a table has them."""
        times = "" if self.longer == 1 else f", lengthscales times {self.longer:.3g}"
        rows = f"{self.n_rows:,}" if self.n_rows else ""
        trend = "" if self.slopes is None else ", linear trend"
        return f"{self.error:.4f}", f"{self.alpha:.2g}", rows, self.name + times + trend

    def what(self) -> str:
        """Return what it is without a table."""
        lengths = "one lengthscale"
        scales = np.ravel(self.kernel.scale())
        if np.unique(scales[scales > 2 / IGNORED]).size > 1:
            lengths += " per level" if "per level" in self.name else " per column"
        trend = "" if self.slopes is None else ", beside a linear trend"
        return f"{plain_name(self.kernel)}, {lengths}, alpha={self.alpha:.2g}{trend}"

    def summary(self) -> str:
        """Return a sentence about it for the head of the table."""
        return (
            f"Chosen: {self.what()}, with an error of {self.error:.4f} on the held-out rows; it is "
            "marked > below."
        )


@dataclass
class Report:
    """What a fit did and why: printed, what was chosen, a table of what was tried, sentences."""

    _state = stored(
        candidates=sequence(holds(Candidate)),
        sentences=sequence(text()),
    )

    candidates: list[Candidate] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        """Add a sentence."""
        self.sentences.append(sentence)

    def __str__(self) -> str:
        head = "    error     alpha       time    rows   kernel"
        chosen = [each.summary() for each in self.candidates if each.chosen]
        table = [*chosen, head, *self._lines(), LEGEND] if self.candidates else []
        return "\n".join([*table, *self.sentences])

    def _lines(self) -> list[str]:
        """Return a line for each kernel with its best alpha: those of the most rows, best first."""
        best: dict[tuple[str, ...], Candidate] = {}
        ordered = sorted(self.candidates, key=lambda each: (-each.n_rows, each.error))
        for each in sorted(ordered, key=lambda each: not each.chosen):
            best.setdefault(each.told()[2:], each)
        return [str(each) for each in ordered if best[each.told()[2:]] is each]

    __repr__ = __str__


class Trials:
    """Errors of kernels on rows held out.

    Targets Y, (n, n_targets), are about standardised; splits are (rows to fit to, rows held out).
    """

    def __init__(
        self,
        X: Doubles,
        Y: Doubles,
        weight: Doubles | None,
        splits: Sequence[TrainTest],
        report: Report,
        seed: int,
        watch: Watch = lambda *_: None,
    ) -> None:
        self.X, self.Y, self.weight, self.splits = X, Y, weight, splits
        self.report, self.seed, self.watch = report, seed, watch
        self.alphas = FIRST_ALPHAS

    @property
    def n_fitted(self) -> int:
        """Rows that a split fits to, in the mean."""
        return int(np.mean([len(rows) for rows, _ in self.splits]))

    def narrow(self, alpha: float, step: int = 1) -> None:
        """Try this alpha and the one before and after, `step` half decades away, from now on."""
        place = int(np.argmin(np.abs(np.log(ALPHAS / alpha))))
        near = np.array([place - step, place, place + step])
        self.alphas = ALPHAS[near[(near >= 0) & (near < len(ALPHAS))]]

    def halved(self) -> "Trials":
        """Return trials with half the rows to fit to, and the alphas tried last.

        At random, in their order, since every other row may be of one kind: where day and night, or
        a case and its control, take turns. Rows held out, and so groups and times, stay apart.
        """
        rng = np.random.default_rng(self.seed)
        splits = [
            (np.sort(rng.choice(rows, (len(rows) + 1) // 2, replace=False)), held_out)
            for rows, held_out in self.splits
        ]
        half = self.on(splits, self.report)
        half.alphas = self.alphas
        return half

    def on(self, splits: Sequence[TrainTest], report: Report | None = None) -> "Trials":
        """Return trials of other splits, which are not reported unless there is a report."""
        report = Report() if report is None else report
        return Trials(self.X, self.Y, self.weight, splits, report, self.seed, self.watch)

    def every(self) -> Integers:
        """Return all rows of the splits."""
        return np.unique(np.concatenate([part for split in self.splits for part in split]))

    def thinned(self, most: int) -> list[TrainTest]:
        """Return the splits with at most so many rows on each side, at random."""
        rng = np.random.default_rng(self.seed)
        return [(at_most(rows, most, rng), at_most(out, most, rng)) for rows, out in self.splits]

    def run(
        self,
        name: str,
        kernel: Kernel,
        of_splits: list[Kernel],
        longer: float = 1.0,
        slopes: Integers | None = None,
    ) -> Candidate | None:
        """Try a kernel with all alphas; return the best, None if none was solved for.

        `of_splits` has the kernel of each split, learned from the rows fitted to there; its lengths
        are `longer` times those learned.
        """
        self.watch("choosing", None, f"{name}, {counted(self.n_fitted, 'row')}")
        start = time.perf_counter()
        squares = self.squares_of(of_splits, slopes)
        seconds = time.perf_counter() - start
        if not np.isfinite(squares).all(axis=0).any():
            return None
        best = self._best_alpha(squares)
        squares = squares.sum(axis=0)
        error = math.sqrt(squares[best] / self.held_out_weight())
        alpha, below, above = float(self.alphas[best]), squares[:best], squares[best + 1 : best + 2]
        least = bool(alpha == ALPHAS[0] or (best > 0 and not np.isfinite(below).any()))
        least &= bool((squares[best] < WORTH_A_STEP**2 * above).all())
        found = Candidate(
            name, kernel, alpha, error, seconds, of_splits, least, n_rows=self.n_fitted,
            longer=longer, slopes=slopes,
        )  # fmt: skip
        self.report.candidates.append(found)
        return found

    def _best_alpha(self, squares: Doubles) -> int:
        """Return which alpha has the smallest sum of squares, of those of shape (rows, alphas).

        Of few rows the largest whose sum is not larger by more than a standard error of the
        difference. There chance favours alphas that are far too small, and with these the standard
        deviations near rows that were fitted to vanish.
        """
        sums = squares.sum(axis=0)
        solved = np.isfinite(sums)
        best = int(np.argmin(np.where(solved, sums, np.inf)))
        if self.n_fitted >= DOUBTED:
            return best
        more = np.where(solved, squares, 0) - squares[:, [best]]
        doubt = math.sqrt(len(more)) * more.std(axis=0)
        return int(np.flatnonzero(solved & (more.sum(axis=0) <= doubt))[-1])

    def run_about(self, found: Candidate, step: int = 1) -> Candidate | None:
        """Try an alpha and its neighbours, and go on in a direction as long as that helps."""
        self.narrow(found.alpha, step)
        tried = {*self.alphas.tolist()}
        again = found.name, found.kernel, found.of_splits, found.longer
        best = self.run(*again)
        for direction in (-step, step):
            while best is not None:
                place = int(np.argmin(np.abs(np.log(ALPHAS / best.alpha)))) + direction
                if not 0 <= place < len(ALPHAS) or ALPHAS[place] in tried:
                    break
                self.alphas = ALPHAS[[place]]
                tried |= {*self.alphas.tolist()}
                further = self.run(*again)
                if further is None:
                    best.least_alpha |= direction < 0
                    break
                enough = further.error > WORTH_A_STEP * best.error
                best = min(best, further, key=lambda candidate: candidate.error)
                if enough:
                    break
        return best

    def in_linear_time(self, best: Candidate, n_rows: int) -> bool:
        """Say whether products with the kernel of so many rows take linear time."""
        return expects_linear_time(best.kernel, self.X, n_rows)

    def most_seconds_of(self, best: Candidate, n_rows: int) -> float:
        """Return what a candidate takes on so many rows at most: with all alphas of its trial."""

        def cost(count: int) -> float:
            return expected_cost(best.kernel, self.X, count)

        return best.seconds * cost(n_rows) / sum(cost(len(rows)) for rows, _ in self.splits)

    def seconds_of(self, best: Candidate, n_rows: int) -> float:
        """Return about how long a candidate takes on so many rows: it is timed with its alpha."""
        alone = self.on(self.splits)
        alone.alphas = np.array([best.alpha])
        timed = alone.run(best.name, best.kernel, best.of_splits) or best
        return alone.most_seconds_of(timed, n_rows)

    def predictions(
        self, best: Candidate, new_model: Callable[[Kernel, int], Any], return_std: bool
    ) -> Iterator[tuple[Any, Doubles, Doubles | None, Integers]]:
        """Fit a model to the rows of each split; yield it, predictions, and the rows held out.

        `new_model` makes one of a kernel, for so many rows. It may hold hundreds of megabytes:
        let go of it before the next.
        """
        for kernel, (rows, held_out) in zip(best.of_splits, self.splits, strict=True):
            model = new_model(kernel, len(rows))
            middle, shape = self.mean(rows), (len(held_out), self.Y.shape[1])
            with collected_warnings():  # the final fit tells
                model.fit(self.X[rows], self.Y[rows] - middle, self._weight_of(rows))
                found = model.predict(self.X[held_out], return_std=return_std)
            mean, std = found if return_std else (found, None)
            std = None if std is None else std.reshape(shape)
            yield model, mean.reshape(shape) + middle, std, held_out

    def error_of_mean(self) -> float:
        """Return the error of the mean of the rows fitted to, on those held out."""
        squares = sum(
            self._sum(np.square(self.Y[held_out] - self.mean(rows)), held_out)
            for rows, held_out in self.splits
        )
        return math.sqrt(float(squares) / self.held_out_weight())

    def mean(self, rows: Integers) -> Doubles:
        """Return the mean of the targets of some rows."""
        found: Doubles = np.average(self.Y[rows], axis=0, weights=self._weight_of(rows))
        return found

    def held_out_weight(self) -> float:
        """Return the weight of all rows held out."""
        return float(sum(self.weights(held_out).sum() for _, held_out in self.splits))

    def squares(self, missed: Doubles, held_out: Integers) -> float:
        """Return the sum of the squares of errors on rows held out, mean over targets."""
        return float(self._sum(np.square(missed), held_out))

    def _sum(self, squares: Doubles, rows: Integers) -> Any:
        """Sum over rows by their weights what is averaged over targets, the last axis."""
        each, weight = squares.mean(axis=-1), self._weight_of(rows)
        return each.sum(axis=0) if weight is None else weight @ each

    def _weight_of(self, rows: Integers) -> Doubles | None:
        return None if self.weight is None else self.weight[rows]

    def weights(self, rows: Integers) -> Doubles:
        """Return the weights of some rows."""
        return np.ones(len(rows)) if self.weight is None else self.weight[rows]

    def squares_of(self, of_splits: Sequence[Kernel], slopes: Integers | None = None) -> Doubles:
        """Return weighted squared errors of all rows held out, mean over targets.

        Of shape (rows, alphas), for a kernel of each split and perhaps a trend; inf if not solved.
        """
        pairs = zip(of_splits, self.splits, strict=True)
        return np.vstack([self._squares_of(kernel, split, slopes) for kernel, split in pairs])

    def _squares_of(self, kernel: Kernel, split: TrainTest, slopes: Integers | None) -> Doubles:
        middle = self.mean(split[0])
        train, test = (
            TrainingRows(self.X[rows], self.Y[rows] - middle, self._weight_of(rows))
            for rows in split
        )
        trend = None if slopes is None else Trend.along(slopes, train.X)

        def system_with(alphas: Doubles) -> KernelSystem:
            return system_of(Equations(
                kernel, train.X, alphas, train.noise, tol=TOL, max_iter=MAX_ITER,
                random_state=self.seed,
            ))  # fmt: skip

        squares = squared_errors(train, test, self.alphas, system_with, trend)
        weights = self.weights(split[1])[:, None]
        return np.where(np.isnan(squares), np.inf, squares * weights)


# ---- the search


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
            f"kernel={kernel!r} is unknown; use one of {('auto', *BY_NAME)}, or a Kernel"
        )
    only = as_kernel(kernel)
    only.set_params(**dict.fromkeys(only.learnable, "learn"))
    return only


def choose_kernel(
    trials: Trials, kernel: Kernel | None, groups: Groups | None, rng: np.random.Generator
) -> tuple[Candidate, Candidate | None] | None:
    """Return the kernel and the alpha that predict rows held out best.

    Of many rows half choose first, among all kernels; all of them choose alpha anew, whether other
    lengths than those learned are better, and whether shorter ones are, as more rows ask for.

    Parameters
    ----------
    trials : Trials
    kernel : Kernel or None
        The only one to try; None: several.
    groups : Groups or None
        The columns that share a length; None where all do, as on the unit sphere and of very wide
        rows.
    rng : Generator
        Chooses the rows that lengths are learned from.

    Returns
    -------
    (Candidate, Candidate or None) or None
        The best with all rows to fit to, and the best with half of them where these chose. None
        where X or y is constant on the rows to fit to: there is nothing to learn from.
    """
    began = time.perf_counter()
    lessons = _lessons(trials, kernel, groups, rng)
    if lessons is None:
        return None
    if kernel is None and trials.n_fitted < NEARLY_LINEAR_ROWS:
        lessons.add("Gaussian, nearly linear", _nearly_linear(trials))
    seconds = time.perf_counter() - began
    trials.report.say(
        f"The lengthscales of all kernels tried were learned in {seconds_told(seconds)} s."
    )
    is_fixed = kernel is not None and not asks_targets(kernel)
    either, shorter = ((), ()) if is_fixed else ((-1, 1), (-1,))
    if trials.n_fitted < HALVED:
        return walk(trials, _best_of(trials, lessons), either), None
    half = trials.halved()
    likeliest = _best_of(half, lessons)
    of_half = walk(half, likeliest, either)
    tried = [of_half] if of_half.longer == likeliest.longer else [of_half, likeliest]
    solved = [found for each in tried if (found := trials.run_about(each)) is not None]
    if not solved:  # no alpha that near
        return walk(trials, _best_of(trials, lessons), either), of_half
    start = min(solved, key=lambda candidate: candidate.error)
    return walk(trials, start, shorter), of_half


def _lessons(
    trials: Trials, kernel: Kernel | None, groups: Groups | None, rng: np.random.Generator
) -> "_Lessons | None":
    """Return the kernels to try; None where there is nothing to learn from."""
    looked_at = [some_that_vary(trials.X, trials.Y, rows, rng) for rows, _ in trials.splits]
    if len(looked_at) > 1:  # the final lengths know all rows
        looked_at.append(some_that_vary(trials.X, trials.Y, trials.every(), rng))
    if not all(rows.size for rows in looked_at):
        return None
    fewer = [some_that_vary(trials.X, trials.Y, rows, rng, GUARD_ROWS) for rows in looked_at]
    lessons = _Lessons(trials, looked_at, fewer)
    if kernel is not None and not asks_targets(kernel):
        lessons.add(plain_name(kernel), kernel.resolve(trials.X))
    elif groups is None or trials.X.shape[1] == 1:
        found = lessons.learn(
            "one lengthscale", _alike(kernel or Matern("learn", "learn-isotropic"))
        )
        smoothness = getattr(found.kernel, "nu", ROUGHEST)
        if kernel is None and groups is None and smoothness != ROUGHEST:
            # Few rows say little of smoothness, and what is too smooth is far off in gaps.
            lessons.n_expected *= 2
            lessons.learn("one lengthscale", Matern(ROUGHEST, "learn-isotropic"))
    elif kernel is not None:
        lessons.n_expected *= 2
        lessons.learn("one lengthscale per column", kernel, groups.of_columns)
        lessons.learn("one lengthscale", _alike(kernel))
    else:
        lessons.learn_all(groups)
    return lessons


def _alike(kernel: Kernel) -> Kernel:
    """Return a kernel with one length for all columns."""
    lengths = [name for name in kernel.learnable if name != "nu"]
    found: Kernel = clone(kernel).set_params(**dict.fromkeys(lengths, "learn-isotropic"))
    return found


@dataclass
class _Lesson:
    """A kernel to learn, and what was learned of it from each of `_Lessons.fewer`."""

    given: Kernel
    groups: Integers | None
    found: list[LearnedKernel]

    def told(self, n_splits: int) -> dict[str, Any]:
        """Return the kernel for all rows, and those of the splits, as a candidate has them."""
        kernels = [each.kernel for each in self.found]
        return {"kernel": kernels[-1], "of_splits": kernels[:n_splits]}


class _Lessons:
    """Kernels whose lengths are learned from the rows that splits fit to: from few, to compare.

    The best is learned from more of them.
    """

    def __init__(self, trials: Trials, rows: list[Integers], fewer: list[Integers]) -> None:
        self.trials, self.rows, self.fewer = trials, rows, fewer  # the last ones are of all rows
        self.n_splits = len(trials.splits)
        self.n_expected = len(rows)  # searches for lengths
        self.n_done = 0
        self.starts: list[Candidate] = []  # what is to be tried
        self._lessons: dict[str, _Lesson] = {}

    def add(self, name: str, kernel: Kernel, alpha: float = MIDDLE_ALPHA) -> None:
        """Add a kernel of which nothing is learned."""
        self.starts.append(Candidate(name, kernel, alpha, math.inf, 0.0, [kernel] * self.n_splits))

    def learn(
        self,
        name: str,
        given: Kernel,
        groups: Integers | None = None,
        start: LearnedKernel | None = None,
    ) -> LearnedKernel:
        """Learn smoothness from all rows, lengths from those of each split, not far from there."""
        *of_splits, every = self.fewer
        found = self._of(name, every, given, groups, start)
        kernel: Any = found.kernel
        if isinstance(given, Matern):
            given = Matern(kernel.nu, given.length_scale)
        there = [self._of(name, rows, given, groups, found, FORGOTTEN) for rows in of_splits]
        lesson = _Lesson(given, groups, [*there, found])
        name = f"{plain_name(kernel)}, {name}"
        self._lessons[name] = lesson
        told = lesson.told(self.n_splits)
        alpha = max(found.noise, LEAST_START)
        self.starts.append(Candidate(name, alpha=alpha, error=math.inf, seconds=0.0, **told))
        return found

    def refined(self, best: Candidate) -> Candidate:
        """Return a candidate with lengths that are learned from all rows that there are for it."""
        lesson = self._lessons.get(best.name)
        if lesson is None:
            return best
        lesson.found = [
            found
            if rows.size == few.size
            else self._of(best.name, rows, lesson.given, lesson.groups, found)
            for rows, few, found in zip(self.rows, self.fewer, lesson.found, strict=True)
        ]
        return replace(best, **lesson.told(self.n_splits))

    def _of(
        self,
        name: str,
        rows: Integers,
        given: Kernel,
        groups: Integers | None = None,
        start: LearnedKernel | None = None,
        settled: float = SETTLED,
        below: float = math.inf,
    ) -> LearnedKernel:
        share = min(self.n_done / self.n_expected, 1.0)
        self.trials.watch("learning lengthscales", share, name)
        self.n_done += 1
        weight = None if self.trials.weight is None else self.trials.weight[rows]
        examples = Examples(self.trials.X[rows], self.trials.Y[rows], weight, groups=groups)
        return learned(given, examples, start=start, settled=settled, below=below)

    def learn_all(self, groups: Groups) -> None:
        """Learn the kernels that are tried where none was asked for."""
        self.n_expected *= KERNELS_TRIED
        per_column, shared = "one lengthscale per column", groups.of_columns
        start = self.learn(per_column, Matern("learn", "learn"), shared)
        matern: Any = start.kernel
        if not np.array_equal(shared, groups.of_levels):
            per_level, same = "one lengthscale per level", Matern(matern.nu, "learn")
            own = self._of(per_level, self.fewer[-1], same, groups.of_levels, below=start.value)
            if own.value < start.value:
                per_column, shared = per_level, groups.of_levels
                self.n_expected += len(self.rows)
                start = self.learn(per_column, same, shared, own)
        small = _small_periods(groups, matern.scale(), self.trials.X)
        alike = Matern(matern.nu, "learn-isotropic")
        self.learn("one lengthscale", alike, np.where(small, -1, shared))
        for grouped in (shared, groups.of_columns, groups.of_levels):
            if np.count_nonzero(grouped >= 0) <= LAPLACIAN_COLUMNS:
                begun = start if grouped is shared else None
                self.learn(per_column, Laplacian("learn"), grouped, begun)
                break


def _small_periods(groups: Groups, scales: Any, X: Doubles) -> NDArray[np.bool_]:
    """Return the columns of periods that hardly matter by their scales, which are 1 / length."""
    shares = X.var(axis=0) * np.square(scales)
    of_groups = np.bincount(groups.of_columns, shares) / shares.sum()
    small = (np.array(groups.kinds) == "period") & (of_groups < LITTLE)
    found: NDArray[np.bool_] = small[groups.of_columns]
    return found


def _nearly_linear(trials: Trials) -> Kernel:
    """Return a kernel whose ridge regression is nearly a linear one.

    Of rows much closer than a length L, exp(-|x - y|^2 / (2 L^2)) is about a constant, and <x, y>
    / L^2 for centred rows: alphas from 1e-5 are ridges from 1e-5 L^2.
    """
    length = NEARLY_LINEAR * math.sqrt(trials.X.var(axis=0).sum())
    return Matern(math.inf, length)


def coordinates(X: Doubles) -> Doubles:
    """Return rows with the same distances, in as many columns as there are rows at most.

    Where all columns have one length nothing else matters, and fewer columns are faster.
    """
    if X.shape[1] <= len(X):
        return X
    with limit_blas(1):
        (triangle,) = qr((X - X.mean(axis=0)).T, mode="r", check_finite=False, overwrite_a=True)
    rows: Doubles = np.ascontiguousarray(triangle[: len(X)].T)
    return rows


def _best_of(trials: Trials, lessons: _Lessons) -> Candidate:
    """Return the best kernel, at the best of all alphas."""
    tried = []
    for start in lessons.starts:
        near = None if trials.n_fitted < DOUBTED else trials.run_about(start, DECADE)
        if near is None:
            trials.alphas = FIRST_ALPHAS
            near = trials.run(start.name, start.kernel, start.of_splits)
        if near is not None:
            tried.append(near)
    if not tried:
        raise ValueError(
            f"no kernel ridge regression converged, even with alpha={ALPHAS[-1]:g}; leave out rows "
            "with extreme values"
        )
    least = min(candidate.error for candidate in tried)
    close = [lessons.refined(each) for each in tried if each.error <= CLOSE * least]
    again = [trials.run_about(each) or each for each in close]
    return min(again, key=lambda candidate: candidate.error)


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


def walk(trials: Trials, start: Candidate, directions: Sequence[int]) -> Candidate:
    """Make all lengths shorter, else longer, by FACTOR as long as that helps; return the best."""
    best = start
    for direction in directions:
        before = best
        for step in range(1, LONGEST_WALK + 1):
            trials.narrow(best.alpha)
            factor = FACTOR ** (direction * step)
            kernel, *of_splits = (
                each.with_lengths(factor / each.scale()).resolve(trials.X)
                for each in (start.kernel, *start.of_splits)
            )
            found = trials.run(start.name, kernel, of_splits, start.longer * factor)
            if found is None or found.error > WORTH_A_STEP * best.error:
                break
            best = found
        if best is not before:
            break
    return best


def try_model(
    trials: Trials, best: Candidate, name: str, new_model: Callable[[Kernel, int], Any]
) -> Candidate:
    """Try a model that chooses its own alpha with the best kernel, on the same rows."""
    start, squares = time.perf_counter(), 0.0
    alphas = []
    for model, mean, _, held_out in trials.predictions(best, new_model, return_std=False):
        squares += trials.squares(mean - trials.Y[held_out], held_out)
        alphas.append(model.alpha_)
        del model
    found = Candidate(
        name, best.kernel, float(np.median(alphas)),
        math.sqrt(squares / trials.held_out_weight()), time.perf_counter() - start, best.of_splits,
        n_rows=trials.n_fitted, longer=best.longer,
    )  # fmt: skip
    trials.report.candidates.append(found)
    return found


def plain_name(kernel: Kernel) -> str:
    """Return the name of a kernel without its lengths."""
    nu = getattr(kernel, "nu", None)
    name = type(kernel).__name__
    if nu is None:
        return name
    return "Gaussian" if math.isinf(nu) else f"{name} {nu:g}"
