"""The form of near rows: which kernel, trend, smooth part and number of near rows predict best.

Each is judged by held-out rows, all other rows of the table being there to be near: what lies
between neighbours is in no sample of the rows. One decision after another: lengths of the search or
learned from near rows, a linear trend, a product of kernels of the place and the time, a smooth
part, the number of near rows.
"""

import functools
import math
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gzkcore._util.warn import collected_warnings
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.product import Product
from gzkcore.kernels.shift_invariant import Matern
from gzkcore.learn.held_out import at_most
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.near_kernel_ridge import SMOOTH_ROWS

from .extrapolation import slopes_of, to_learn
from .form import Form
from .report import Candidate, plain_name
from .table_encoder import Groups
from .table_rows import TableRows
from .trials import TOL, Trials

NUMBERS = 50, 150, 300  # Numbers of near rows are tried from the first on,
WORTH_MORE = 0.995  # as long as the error falls below this share.
HELD_OUT = 2000  # So many rows are held out at most.
ROWS_FOR_SMOOTH = 4 * SMOOTH_ROWS  # A smooth part is tried from so many rows on.
# Near rows are tried of a table with so many times the rows of the search, and of so many columns.
MORE, MOST_COLUMNS = 1.25, 64
ROUGH = 0.5  # The smoothness of products of place and time.


class NearTrial(NamedTuple):
    """A model of near rows that was tried."""

    kernel: Kernel  # with the lengths that it learns
    form: Form
    candidate: Candidate  # with what it learned

    def sentence(self) -> str:
        """Return what the model is, in words."""
        beside = " beside a linear trend" if self.form.slopes is not None else ""
        rest = ", of what a smooth part leaves" if self.form.smooth is not None else ""
        return f"the {self.form.near} nearest rows of each new one{beside}{rest}"


class NearForms:
    """The search for the form of near rows of a table.

    Parameters
    ----------
    table : TableRows
        In memory.
    trials : Trials
        By which `best` was chosen: some of its held-out rows are held out here too.
    best : Candidate
    groups : Groups or None
        None: all columns have one length.
    only : Kernel or None
        The only kernel to try.
    """

    def __init__(
        self,
        table: TableRows,
        trials: Trials,
        best: Candidate,
        groups: Groups | None,
        only: Kernel | None,
    ) -> None:
        self._table, self._judged, self._best = table, trials, best
        self._groups, self._only = groups, only

    @functools.cached_property
    def trials(self) -> Trials:
        """Trials of the rows that the first split holds out, given all others of the table."""
        rng = np.random.default_rng(self._judged.seed)
        _, test = self._judged.splits[0]
        split = self._table.all_others(at_most(test, HELD_OUT, rng))
        return self._judged.on([split], self._judged.report)

    def may_be_better(self) -> bool:
        """Say whether near rows may predict better than the rows of the search do."""
        table = self._table
        more = table.n_rows > MORE * self._judged.every().size
        few = table.X.shape[1] <= MOST_COLUMNS
        alone = self._only is None and not table.in_passes and table.at_random(None)
        return more and few and alone and self._groups is not None

    def best(self, count: int | None = None) -> NearTrial:
        """Return the model whose error on held-out rows is least; with so many near rows."""
        numbers = NUMBERS if count is None else (count,)
        plain = Form(self._best.alpha, self.trials.seed, near=numbers[0])
        found = [self._tried(kernel, plain) for kernel in self._kernels()]
        best = min(found, key=_error)
        slopes = None if self._groups is None else slopes_of(self._groups, self.trials.X)
        if slopes is not None:
            beside, kernels = replace(plain, slopes=slopes), (best.kernel, *self._products())
            found += [self._tried(kernel, beside) for kernel in kernels]
            best = min(found, key=_error)
        if len(self.trials.splits[0][0]) >= ROWS_FOR_SMOOTH:
            smooth = KernelRidge(
                self._best.kernel, self._best.alpha, trend=self._best.slopes, tol=TOL,
                random_state=self.trials.seed,
            )  # fmt: skip
            rest = replace(plain, smooth=smooth)
            found += [self._tried(kernel, rest) for kernel in self._kernels()]
            best = min(found, key=_error)
        for larger in numbers[1:]:
            more = self._tried(best.candidate.kernel, replace(best.form, near=larger))
            if more.candidate.error > WORTH_MORE * best.candidate.error:
                break
            best = more
        return best

    def _tried(self, kernel: Kernel, form: Form) -> NearTrial:
        """Learn a kernel for a form, and judge it."""
        start, ((train, test),) = time.perf_counter(), self.trials.splits
        part, held_out = self.trials.part(train), self.trials.part(test)
        middle = self.trials.mean(train)
        name = plain_name(kernel)
        if isinstance(kernel, Product):
            name += " of dates"
        self.trials.on_progress("choosing", None, f"{name}, {form.near} near rows")
        model = form.learner(kernel, self._groups)
        with collected_warnings():  # the final fit warns of the same
            model.fit(part.X, part.y - middle, part.weight)
        errors = model.predict(held_out.X).reshape(held_out.y.shape) + middle - held_out.y
        weight = self.trials.weights(test)
        error = math.sqrt(np.average(np.square(errors).mean(axis=1), weights=weight))
        beside = ", beside a smooth part" if form.smooth is not None else ""
        candidate = Candidate(
            f"{name}, {form.near} near rows{beside}", model.kernel_, model.alpha_, error,
            time.perf_counter() - start, [model.kernel_], n_rows=len(train), slopes=form.slopes,
        )  # fmt: skip
        self.trials.report.candidates.append(candidate)
        return NearTrial(kernel, replace(form, alpha=model.alpha_), candidate)

    def _kernels(self) -> list[Kernel]:
        """Return the best kernel of the search, and the same with lengths to be learned."""
        kernel, only = self._best.kernel, self._only
        learning = to_learn(kernel) if only is None else only
        return [kernel, learning] if learning is not None and asks_targets(learning) else [kernel]

    def _products(self) -> list[Kernel]:
        """Return the product of a kernel of the time and one of all other columns, if both are."""
        if self._groups is None or self._only is not None:
            return []
        kinds = np.array(self._groups.kinds)[self._groups.of_columns]
        times, others = (np.flatnonzero((kinds == "date") == which) for which in (True, False))
        others = others[kinds[others] != "period"]
        if not (times.size and others.size):
            return []
        parts = [(index.tolist(), Matern(ROUGH, "learn")) for index in (others, times)]
        return [Product(parts)]


def _error(trial: NearTrial) -> float:
    return trial.candidate.error
