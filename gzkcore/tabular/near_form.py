"""The form of near rows: which kernel, trend, smooth part and number of near rows predict best.

Each is judged by held-out rows, all other rows of the table being there to be near: what lies
between neighbours is in no sample of the rows. One decision after another: lengths of the search or
learned from near rows, a linear trend, a product of kernels of the place and the time, a smooth
part, alpha, the number of near rows.
"""

import functools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gzkcore._util.warn import collected_warnings
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.coded_form import coded_form
from gzkcore.kernels.product import Product, column_scales
from gzkcore.kernels.shift_invariant import Matern
from gzkcore.learn.held_out import FOLDS, at_most
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.near_kernel_ridge import SMOOTH_ROWS, NearKernelRidge
from gzkcore.rows.coded import CodedRows

from .extrapolation import slopes_of, to_learn
from .form import Form
from .report import Candidate, plain_name
from .table_encoder import Groups
from .table_rows import TableRows
from .trials import TOL, WORTH_A_STEP, Trials

NUMBERS = 50, 150, 300  # Numbers of near rows are tried as long as the error falls.
ALPHA_STEPS, MOST_STEPS = (10**0.5, 10**-0.5), 4  # alpha is tried larger, else smaller.
HELD_OUT = 5000  # So many rows are held out at most.
ROWS_FOR_SMOOTH = 4 * SMOOTH_ROWS  # A smooth part is tried from so many rows on.
# Near rows are tried of a table with so many times the rows of the search, and of so many columns.
MORE, MOST_COLUMNS = 1.25, 64
MOST_IN_PASSES = 1 << 21  # Sources of more rows, where trials take many minutes, must ask for it.
MOST_IN_PRODUCT = 8  # A product of place and time is tried with so many columns beside the time.
ROUGH = 0.5  # The smoothness of products of place and time.


class NearTrial(NamedTuple):
    """A model of near rows that was tried."""

    kernel: Kernel  # with the lengths that it learns
    form: Form
    candidate: Candidate  # with what it learned
    error: float  # on the rows that judged the search, too

    def sentence(self) -> str:
        """Return what the model is, in words."""
        beside = " beside a linear trend" if self.form.slopes is not None else ""
        rest = ", of what a smooth part leaves" if self.form.smooth is not None else ""
        return f"the {self.form.near:,} nearest rows of each new one{beside}{rest}"

    def compared(self, expected: float) -> str:
        """Return why it was chosen, given the error that is expected of the whole kernel."""
        return (
            f"{self.sentence()}. Their error is {self.error:#.3g}; that of the whole kernel is "
            f"expected to be {expected:#.3g}."
        )


class NearForms:
    """The search for the form of near rows of a table.

    Parameters
    ----------
    table : TableRows
        Those of a source are gathered; of a Dask collection those drawn are tried.
    trials : Trials
        By which `best` was chosen. Their held-out rows are held out here, unless any may be.
    best : Candidate
    groups : Groups or None
        None: all columns have one length.
    only : Kernel or None
        The only kernel to try.
    at_random : bool
        Each row may be held out by itself.
    folder : path, optional
        Where rows of a source are mapped from; None: memory.
    """

    def __init__(
        self,
        table: TableRows,
        trials: Trials,
        best: Candidate,
        groups: Groups | None,
        only: Kernel | None,
        at_random: bool,
        folder: Any = None,
    ) -> None:
        self._folder = folder
        self._table, self._judged, self._best = table, trials, best
        self._groups, self._only, self._at_random = groups, only, at_random
        self._model: Any = None  # the best so far, fitted to all rows but those held out
        self._least_error = math.inf

    @functools.cached_property
    def trials(self) -> Trials:
        """Trials of some held-out rows, given all others of the table."""
        rng = np.random.default_rng(self._judged.seed)
        levels = [] if self._groups is None else self._groups.levels()
        table, trials = self._table, self._judged.on(self._judged.splits, self._judged.report)
        test = np.arange(0) if table.may_be_gathered else trials.splits[0][1]
        if table.may_be_gathered:
            table = table.gathered(levels, self._folder)
            trials.X, trials.Y, trials.weight = table.X, table.Y, table.weight
        elif levels:
            trials.X = CodedRows.of(trials.X, levels)
        if self._at_random or not test.size:
            most = min(HELD_OUT, table.n_rows // FOLDS)
            others = np.setdiff1d(np.arange(table.n_rows), test)
            test = np.append(test, at_most(others, max(0, most - test.size), rng))
        trials.splits = [table.all_others(at_most(np.sort(test), HELD_OUT, rng))]
        return trials

    @functools.cached_property
    def _judged_too(self) -> NDArray[np.bool_]:
        """Which of the rows held out judged the search, too; of gathered rows all count as such."""
        _, test = self.trials.splits[0]
        every = self._table.may_be_gathered
        return np.isin(test, self._judged.splits[0][1]) | every

    def may_be_better(self) -> bool:
        """Say whether near rows may predict better than the rows of the search do."""
        table, groups = self._table, self._groups
        here = not table.in_passes or (table.may_be_gathered and table.n_all <= MOST_IN_PASSES)
        if groups is None or self._only is not None or not here:
            return False
        n_columns = table.X.shape[1] - sum(index.size - 1 for index in groups.levels())
        more = table.n_all > MORE * self._judged.every().size
        return bool(more and n_columns <= MOST_COLUMNS)  # a category is one column

    def best(self, count: int | None = None) -> NearTrial:
        """Return the model whose error on held-out rows is least; with so many near rows."""
        numbers = NUMBERS if count is None else (min(count, self._table.n_all),)
        plain = Form(self._best.alpha, self.trials.seed, near=numbers[0])
        best = self._least(None, self._kernels(), plain, self._best.kernel)
        slopes = None if self._groups is None else slopes_of(self._groups, self.trials.X)
        if slopes is not None:
            beside = replace(plain, slopes=slopes)
            kernels = [self._again(best), *self._products()]
            best = self._least(best, kernels, beside, best.candidate.kernel)
        narrow = self.trials.X.shape[1] <= MOST_COLUMNS
        if len(self.trials.splits[0][0]) >= ROWS_FOR_SMOOTH and narrow:
            smooth = KernelRidge(
                self._best.kernel, self._best.alpha, trend=self._best.slopes, tol=TOL,
                random_state=self.trials.seed,
            )  # fmt: skip
            rest = replace(plain, smooth=smooth)
            best = self._least(best, self._kernels(), rest, self._best.kernel)
        return self._adjusted(best, numbers)

    def _adjusted(self, best: NearTrial, numbers: Sequence[int]) -> NearTrial:
        """Return a model with the best alpha, and then the best number of near rows."""
        for factor in ALPHA_STEPS:
            alphas = best.form.alpha * factor ** np.arange(1, MOST_STEPS + 1)
            start, best = best, self._while_better(best, "alpha", alphas)
            if best is not start:
                break
        return self._while_better(best, "near", numbers[1:])

    def _while_better(self, best: NearTrial, part: str, values: Iterable[Any]) -> NearTrial:
        """Try values of a part of the form, one after the other, as long as the error falls."""
        for value in values:
            form = replace(best.form, **{part: value})
            other = self._trial(best.kernel, form, self._model._with(form.alpha, form.near))
            if other.candidate.error > WORTH_A_STEP * best.candidate.error:
                break
            best = other
        return best

    def _least(
        self, best: NearTrial | None, kernels: Sequence[Kernel], form: Form, start: Kernel
    ) -> NearTrial:
        """Return the best of a model and those of some kernels.

        Their lengths and alpha are learned from those of a kernel on.
        """
        like: Any = None
        for kernel in kernels:
            model = form.learner(kernel, self._groups)
            model._start = column_scales(start, self.trials.X.shape[1])
            model._like = like if form.smooth is not None else None
            other = self._trial(kernel, form, model, fit=True)
            like, model._like = model, None
            if best is None or other.candidate.error < best.candidate.error:
                best = other
        return cast(NearTrial, best)

    def _trial(
        self, kernel: Kernel, form: Form, model: NearKernelRidge, *, fit: bool = False
    ) -> NearTrial:
        """Judge a form by the predictions of a model, which may have to be fitted first."""
        began, ((train, test),) = time.perf_counter(), self.trials.splits
        beside = ", beside a smooth part" if form.smooth is not None else ""
        what = f"{form.near} near rows{beside}"
        self.trials.on_progress("choosing", None, what)
        if fit:
            with collected_warnings():  # the final fit warns of the same
                rows = self.trials.part(train)
                model.fit(rows.X, rows.y - self.trials.mean(train), rows.weight)
                del rows
        truth = self.trials.Y[test] - self.trials.mean(train)
        errors = model.predict(self.trials.rows(test)).reshape(truth.shape) - truth
        squares, weight = np.square(errors).mean(axis=1), self.trials.weights(test)
        error, error_there = (
            math.sqrt(np.average(squares[some], weights=weight[some]))
            for some in (slice(None), self._judged_too)
        )
        name = plain_name(model.kernel_)
        if isinstance(kernel, Product):
            name += " of dates"
        candidate = Candidate(
            f"{name}, {what}", model.kernel_, model.alpha_, error,
            time.perf_counter() - began, [model.kernel_], n_rows=len(train), slopes=form.slopes,
        )  # fmt: skip
        self.trials.report.candidates.append(candidate)
        if error < self._least_error:
            self._model, self._least_error = model, error
        return NearTrial(kernel, replace(form, alpha=model.alpha_), candidate, error_there)

    def _kernels(self) -> list[Kernel]:
        """Return the best kernel of the search, and the same with lengths to be learned.

        The latter alone, of rows with codes, if the search found a length for each level: in
        columns that are not equally far from one another a search for near rows takes minutes.
        """
        kernel, only = self._best.kernel, self._only
        learning = to_learn(kernel) if only is None else only
        if only is None and isinstance(learning, Matern):
            learning.set_params(nu="learn")
        if learning is None or not asks_targets(learning):
            return [kernel]
        rows = self.trials.X
        dense = isinstance(rows, CodedRows) and coded_form(kernel, rows) is None
        return [learning] if dense else [kernel, learning]

    def _again(self, best: NearTrial) -> Kernel:
        """Return the best kernel, with the same lengths to be learned again."""
        kernel, learned = best.kernel, best.candidate.kernel
        if isinstance(kernel, Matern) and asks_targets(kernel):
            kernel = clone(kernel).set_params(nu=learned.nu)
        return kernel

    def _products(self) -> list[Kernel]:
        """Return the product of a kernel of the time and one of all other columns, if both are."""
        if self._groups is None or self._only is not None:
            return []
        kinds = np.array(self._groups.kinds)[self._groups.of_columns]
        times, others = (np.flatnonzero((kinds == "date") == which) for which in (True, False))
        others = others[kinds[others] != "period"]
        if not (times.size and 0 < others.size <= MOST_IN_PRODUCT):
            return []
        parts = [(index.tolist(), Matern(ROUGH, "learn")) for index in (others, times)]
        return [Product(parts)]
