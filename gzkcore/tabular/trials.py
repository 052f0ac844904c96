"""Trials of kernels and alphas: they are fitted to some rows and judged by held-out ones."""

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from gzkcore._util.typing import Doubles, Integers, OnProgress
from gzkcore._util.validation import dense
from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.products import as_double
from gzkcore.learn.held_out import TrainTest, at_most, squared_errors
from gzkcore.solve.cost import TRIED_ROWS, cost_of
from gzkcore.solve.products import expected_cost
from gzkcore.solve.system import Equations, KernelSystem, system_of
from gzkcore.solve.training_rows import TrainingRows
from gzkcore.solve.trend import Trend

from .report import Candidate, Report

ALPHAS = np.logspace(-10, 1, 23)  # All alphas that may be tried: half decades.
TOL, MAX_ITER = 1e-2, 100  # The solver's, while kernel and alpha are chosen.
WORTH_A_STEP = 0.999  # A search ends with the step that leaves a larger share of the error.
DOUBTED = 100  # If fewer rows differ, alphas must be better than larger ones beyond chance.

# A callable that returns an unfitted model of a kernel, for so many rows.
NewModel: TypeAlias = Callable[[Kernel, int], Any]


class Trials:
    """Errors of kernels on held-out rows of a table, added to a report.

    Targets Y, (n, n_targets), are about standardised; splits are (rows to fit to, rows held out).
    `alphas` are those of the last trial.
    """

    def __init__(
        self,
        X: Doubles,
        Y: Doubles,
        weight: Doubles | None,
        splits: Sequence[TrainTest],
        report: Report,
        seed: int,
        on_progress: OnProgress = lambda *_: None,
    ) -> None:
        self.X: Any = X  # or `CodedRows`
        self.Y, self.weight, self.splits = Y, weight, splits
        self.report, self.seed, self.on_progress = report, seed, on_progress
        self.alphas = ALPHAS[:0]

    # -- other rows ---------------------------------------------------------------------------

    def on(self, splits: Sequence[TrainTest], report: Report | None = None) -> "Trials":
        """Return trials of other splits, which are not reported unless there is a report."""
        return Trials(
            self.X, self.Y, self.weight, splits, report or Report(), self.seed, self.on_progress
        )

    def halved(self) -> "Trials":
        """Return trials with half of the rows to fit to.

        At random, in their order, since every other row may be of one kind: where day and night, or
        a case and its control, take turns. Rows held out, and so groups and times, stay apart.
        """
        rng = np.random.default_rng(self.seed)
        halves = [
            (np.sort(rng.choice(train, (len(train) + 1) // 2, replace=False)), test)
            for train, test in self.splits
        ]
        return self.on(halves, self.report)

    def thinned(self, most: int, report: Report | None = None) -> "Trials":
        """Return trials with at most so many rows, at random, on each side of a split."""
        rng = np.random.default_rng(self.seed)
        return self.on(
            [(at_most(train, most, rng), at_most(test, most, rng)) for train, test in self.splits],
            report,
        )

    def every(self) -> Integers:
        """Return all rows of the splits."""
        return np.unique(np.concatenate([rows for split in self.splits for rows in split]))

    def part(self, rows: Integers) -> TrainingRows:
        """Return some rows with their targets and weights."""
        return TrainingRows(self.X[rows], self.Y[rows], self._weight_of(rows))

    def rows(self, some: Integers) -> Doubles:
        """Return some encoded rows."""
        return as_double(dense(self.X[some]))

    def _weight_of(self, rows: Integers) -> Doubles | None:
        return None if self.weight is None else self.weight[rows]

    def weights(self, rows: Integers) -> Doubles:
        """Return the weights of some rows, ones if there are none."""
        return np.ones(len(rows)) if self.weight is None else self.weight[rows]

    @property
    def n_fitted(self) -> int:
        """The number of rows that a split fits to, in the mean."""
        return int(np.mean([len(train) for train, _ in self.splits]))

    @functools.cached_property
    def few_differ(self) -> bool:
        """Whether a split fits to few rows that differ: copies tell no more of alpha."""
        weights = np.random.default_rng(0).standard_normal(self.X.shape[1])
        sums = (self.X * weights).sum(axis=1)
        return bool(np.mean([np.unique(sums[train]).size for train, _ in self.splits]) < DOUBTED)

    # -- errors -------------------------------------------------------------------------------

    def run(self, candidate: Candidate, alphas: Doubles) -> Candidate | None:
        """Return a candidate with the best of some alphas, None if none was solved for."""
        self.on_progress("choosing", None, f"{candidate.name}, {counted(self.n_fitted, 'row')}")
        start = time.perf_counter()
        self.alphas = alphas
        squares = self.squares_of(candidate.of_splits, alphas, candidate.slopes)
        seconds = time.perf_counter() - start
        if not np.isfinite(squares).all(axis=0).any():
            return None
        best = self._best_alpha(squares)
        sums = squares.sum(axis=0)
        alpha, below, above = float(alphas[best]), sums[:best], sums[best + 1 : best + 2]
        is_least = alpha == ALPHAS[0] or (best > 0 and not np.isfinite(below).any())
        tried = replace(
            candidate, alpha=alpha, error=math.sqrt(sums[best] / self.held_out_weight()),
            seconds=seconds, n_rows=self.n_fitted,
            least_alpha=bool(is_least and (sums[best] < WORTH_A_STEP**2 * above).all()),
        )  # fmt: skip
        self.report.candidates.append(tried)
        return tried

    def run_about(self, candidate: Candidate, step: int = 1) -> Candidate | None:
        """Return a candidate with the best alpha about its own, None if none was solved for.

        The search goes on by so many half decades, in a direction as long as that helps.
        """
        alphas = alphas_about(candidate.alpha, step)
        tried = {*alphas.tolist()}
        best = self.run(candidate, alphas)
        for direction in (-step, step):
            while best is not None:
                place = _place_of(best.alpha) + direction
                if not 0 <= place < len(ALPHAS) or ALPHAS[place] in tried:
                    break
                tried.add(ALPHAS[place])
                further = self.run(candidate, ALPHAS[[place]])
                if further is None:
                    best.least_alpha |= direction < 0
                    break
                enough = further.error > WORTH_A_STEP * best.error
                best = min(best, further, key=lambda candidate: candidate.error)
                if enough:
                    break
        return best

    def squares_of(
        self, kernels: Sequence[Kernel], alphas: Doubles, slopes: Integers | None = None
    ) -> Doubles:
        """Return weighted squared errors of all held-out rows, mean over targets.

        Of shape (rows, alphas), for a kernel of each split and perhaps a trend; inf if not solved.
        """
        pairs = zip(kernels, self.splits, strict=True)
        return np.vstack(
            [self._squares_of(kernel, split, alphas, slopes) for kernel, split in pairs]
        )

    def _squares_of(
        self, kernel: Kernel, split: TrainTest, alphas: Doubles, slopes: Integers | None
    ) -> Doubles:
        train, test = map(self.part, split)
        middle = self.mean(split[0])
        train.y, test.y = train.y - middle, test.y - middle

        def system_with(alphas: Doubles) -> KernelSystem:
            return system_of(Equations(
                kernel, train.X, alphas, train.noise, tol=TOL, max_iter=MAX_ITER,
                random_state=self.seed,
            ))  # fmt: skip

        trend = None if slopes is None else Trend.along(slopes, train.X)
        squares = squared_errors(train, test, alphas, system_with, trend)
        return np.where(np.isnan(squares), np.inf, squares * self.weights(split[1])[:, None])

    def _best_alpha(self, squares: Doubles) -> int:
        """Return the number of the alpha with the smallest sum of squares, given (rows, alphas).

        Where few rows differ, take the largest alpha whose error is hardly larger, or whose sum is
        within one standard error of the best: there chance favours alphas that are far too small.
        With these the standard deviations vanish near rows that were fitted to, and are far too
        large beside them if there are many copies, whatever alpha is.
        """
        sums = squares.sum(axis=0)
        solved = np.isfinite(sums)
        best = int(np.argmin(np.where(solved, sums, np.inf)))
        if not self.few_differ:
            return best
        more = np.where(solved, squares, 0) - squares[:, [best]]
        doubt = math.sqrt(len(more)) * more.std(axis=0)
        hardly = (WORTH_A_STEP**-2 - 1) * sums[best]
        return int(np.flatnonzero(solved & (more.sum(axis=0) <= np.maximum(doubt, hardly)))[-1])

    def error_of_mean(self) -> float:
        """Return the error of the mean of the rows fitted to, on those held out."""
        squares = sum(
            self._sum_of_squares(self.Y[test] - self.mean(train), test)
            for train, test in self.splits
        )
        return math.sqrt(squares / self.held_out_weight())

    def _sum_of_squares(self, errors: Doubles, rows: Integers) -> float:
        """Return the weighted sum of squared errors of some rows, mean over targets."""
        squares, weight = np.square(errors).mean(axis=-1), self._weight_of(rows)
        return float(squares.sum(axis=0) if weight is None else weight @ squares)

    def mean(self, rows: Integers) -> Doubles:
        """Return the mean of the targets of some rows."""
        return np.asarray(np.average(self.Y[rows], axis=0, weights=self._weight_of(rows)))

    def held_out_weight(self) -> float:
        """Return the weight of all rows held out."""
        return float(sum(self.weights(test).sum() for _, test in self.splits))

    # -- models -------------------------------------------------------------------------------

    def predictions(
        self, best: Candidate, new_model: NewModel, return_std: bool
    ) -> Iterator[tuple[Any, Doubles, Doubles | None, Integers]]:
        """Fit a model to the rows of each split; yield it, predictions, and the rows held out.

        With deviations those at which a trend is known. A model may hold hundreds of megabytes: let
        go of it before the next.
        """
        for kernel, (train, test) in zip(best.of_splits, self.splits, strict=True):
            model = new_model(kernel, len(train))
            middle, shape = self.mean(train), (len(test), self.Y.shape[1])
            with collected_warnings():  # the final fit warns of the same
                model.fit(self.X[train], self.Y[train] - middle, self._weight_of(train))
                answer = model.predict(self.rows(test), return_std=return_std)
            mean, std = answer if return_std else (answer, np.zeros(shape))
            known = np.isfinite(std.reshape(shape)).all(axis=1)
            std = std.reshape(shape)[known] if return_std else None
            yield model, mean.reshape(shape)[known] + middle, std, test[known]

    def run_model(self, best: Candidate, name: str, new_model: NewModel) -> Candidate:
        """Return a candidate for a model with the best kernel that chooses its own alpha."""
        start, squares, alphas = time.perf_counter(), 0.0, []
        for model, mean, _, test in self.predictions(best, new_model, return_std=False):
            squares += self._sum_of_squares(mean - self.Y[test], test)
            alphas.append(model.alpha_)
            del model
        tried = Candidate(
            name, best.kernel, float(np.median(alphas)),
            math.sqrt(squares / self.held_out_weight()), time.perf_counter() - start,
            best.of_splits, n_rows=self.n_fitted, longer=best.longer,
        )  # fmt: skip
        self.report.candidates.append(tried)
        return tried

    # -- time ---------------------------------------------------------------------------------

    def seconds_of(self, best: Candidate, n_rows: int, surely: float = 0.0) -> float:
        """Return about how long a candidate takes on so many rows.

        At most so long where that is no more than `surely`; else steps are tried, see `cost_of`:
        trials factor their rows, which takes as long as hundreds of steps.
        """
        counts = [n_rows, *(len(train) for train, _ in self.splits)]
        of_all, *others = (expected_cost(best.kernel, self.X, count) for count in counts)
        seconds = best.seconds * of_all / sum(others)
        if seconds > surely:
            rng = np.random.default_rng(self.seed)
            rows = rng.permutation(self.every())[:TRIED_ROWS]
            targets = np.column_stack([self.Y[rows] - self.mean(rows), np.ones(len(rows))])
            seconds = cost_of(
                best.kernel, self.rows(rows), best.alpha, n_rows, rng, targets=targets
            ).seconds
        return seconds


def alphas_about(alpha: float, step: int = 1) -> Doubles:
    """Return an alpha and the ones before and after it, so many half decades away."""
    place = _place_of(alpha)
    near = np.array([place - step, place, place + step])
    return np.asarray(ALPHAS[near[(near >= 0) & (near < len(ALPHAS))]])


def _place_of(alpha: float) -> int:
    return int(np.argmin(np.abs(np.log(ALPHAS / alpha))))
