"""The base of `KernelRegressor` and `KernelClassifier`: prediction from a table, learned kernels.

    fit
        _fit_table    encodes the columns (`table_encoder`); holds rows out (`table_rows`)
        _learn        chooses kernel and alpha by held-out rows (`kernel_search`), the form (`form`)
                      and, among models that are equally good, by rows at the edge (`extrapolation`)
        _calibrate    learns from held-out rows how sure predictions are
        _fitted       fits the form to all rows

`report_` describes these steps.
"""

import contextlib
import copy
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_is_fitted

from gzkcore._util.arguments import with_remedies
from gzkcore._util.memory import bytes_of
from gzkcore._util.model_io import save
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, flag, has, holds, nothing, number, stored, text
from gzkcore._util.typing import Data, Doubles, Integers, OnProgress, Seed
from gzkcore._util.validation import (
    check_choice,
    check_integer,
    check_lengths,
    check_positive,
    check_weights,
)
from gzkcore._util.warn import collected_warnings, warn
from gzkcore._util.wording import counted, seconds_told
from gzkcore.features.base import plain_output
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.learned import ConstantTargetsError, Examples, learned
from gzkcore.kernels.learned_parts import IGNORED
from gzkcore.kernels.product import Product, column_scales
from gzkcore.kernels.shift_invariant import Matern, ShiftInvariantKernel
from gzkcore.learn.classification import places_of
from gzkcore.learn.held_out import is_number_of_folds
from gzkcore.passes.streams import map_rows
from gzkcore.rows.coded import temporary_file
from gzkcore.rows.frames import as_frame
from gzkcore.rows.sources import is_source
from gzkcore.rows.values import Values, about_sentinel, sentinel_of
from gzkcore.solve.cost import Room, TooLittleMemoryError
from gzkcore.solve.solve import Listener, SolveProgress

from .columns.left_out import LeftOut
from .copies import about_copies, doubt_copies
from .extrapolation import Edge, choose_by_edge, gaps_in
from .fitted_table import FittedTable
from .form import (
    AUTO,
    FORMS,
    NEAR,
    Choice,
    Form,
    asked_form,
    best_form,
    error_of_half,
    expected_error,
)
from .kernel_search import MOST_LENGTHS, SETTLED, choose_kernel, coordinates, searched
from .near_form import NearForms, NearTrial
from .report import DETAIL, Candidate, Report
from .table_encoder import Groups, TableEncoder
from .table_passes import EncodedTable, Targets, draw, on_disk, predicted, rows_of_table, source_of
from .table_rows import TableRows
from .targets import repeating
from .trials import TOL, Trials

# Kernel and alpha are chosen on at most so many rows. On the globe, where products skip most tiles
# and lengths are short, there are more.
CHOICE_ROWS, CHOICE_ROWS_ON_SPHERE = 8000, 16_000
SECONDS = 600.0  # The final fit may take so long if no budget is given.
ENCODED_ROWS = 500  # So many rows tell whether skewed columns are better encoded by logarithms.
LEARNED_NOTHING = 0.995  # With a larger share of the mean's error, the mean is predicted.
# Centres and features take longer than near rows with so many times the error. What is expected of
# them may be less than the noise: .2126 of 20,000 centres, where near rows had .2174, noise .222.
HARDLY_WORSE = 1.03
FEWEST_FOR_RATE = 100  # Half of fewer rows to fit to don't tell what twice as many would bring.
APPROXIMATES = (
    "The errors by which it was chosen are those of the whole kernel, which this model "
    "approximates."
)
MEANS = {"y": "the mean", "labels": "the frequencies of the classes"}  # the same for every row


class TableLearner(BaseEstimator):
    """Base of the learners that choose everything by themselves."""

    _state = stored(
        kernel=text() | holds(Kernel),
        encoder_=holds(TableEncoder),
        model_=has("predict") | nothing(),
        kernel_=holds(Kernel) | nothing(),
        alpha_=number(0) | nothing(),
        feature_importances_=doubles("n_features_in_"),
        _means=doubles("t"),
        _scales=doubles("t", least=0),
        table_=holds(FittedTable).if_there(),
        _of_one_row=flag(),
        _report=holds(Report),
    )
    _of_one_row = False
    _on_progress: OnProgress = staticmethod(lambda *_: None)  # is told what the fit does
    _before_fit: Callable[..., None] = staticmethod(lambda *_: None)  # is told what `_form` chose

    model_: Any
    kernel_: Kernel | None
    _means: Doubles
    _scales: Doubles

    @with_remedies
    def __init__(
        self,
        budget: float | None = None,
        *,
        form: str = "auto",
        n_components: int | None = None,
        kernel: str | Kernel = "auto",
        max_memory: float | str | None = None,
        temp_folder: str | os.PathLike[str] | None = None,
        missing: str = "impute",
        columns: Mapping[Any, Any] | None = None,
        cv: Any = None,
        random_state: Seed = None,
    ) -> None:
        self.budget = budget
        self.form = form
        self.n_components = n_components
        self.kernel = kernel
        self.max_memory = max_memory
        self.temp_folder = temp_folder
        self.missing = missing
        self.columns = columns
        self.cv = cv
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.sparse = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_report")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, see `gzkcore.load`.

        `cv` is saved only if it is a number of folds; splitters become None.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.
        """
        check_is_fitted(self)
        save(self, path)

    def _to_data(self) -> dict[str, Any]:
        """Leave out splitters, rows and folders, which no prediction needs."""
        return {"temp_folder": None} | ({} if is_number_of_folds(self.cv) else {"cv": None})

    @property
    def report_(self) -> Report:
        """What the fit did, and why."""
        check_is_fitted(self)
        return self._report

    @property
    def lengthscales_(self) -> dict[str, float]:
        """The lengthscale of each encoded column by its name, in units of that column."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, ShiftInvariantKernel | Product):
            return {}
        names = self.encoder_.get_feature_names_out()
        with np.errstate(divide="ignore"):  # columns that a product leaves out
            lengths = 1 / column_scales(self.kernel_, len(names))
        lengths = np.where(lengths < IGNORED / 2, lengths, np.inf)
        return dict(zip(names, lengths.tolist(), strict=True))

    # -- fitting ------------------------------------------------------------------------------

    def _fit_table(
        self,
        X: Data,
        y: Any,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        targets: Targets,
        *,
        are_labels: bool = False,
    ) -> None:
        """Fit to targets(y, X) of shape (n, n_targets), which may be those of labels."""
        start = time.perf_counter()
        seconds, kernel = self._checked_settings()
        rng = generator(self.random_state)
        source = self._source(X, y, sample_weight, groups)
        drawn = None
        if source is not None:
            drawn = draw(source, targets, int(rng.integers(2**31)))
            X, y, sample_weight = drawn.X, drawn.y, drawn.weight
        encoder = plain_output(TableEncoder(self.missing, columns=self.columns))
        used = _rows_of_weight(X, sample_weight)
        self._on_progress("encoding columns", None, "")
        encoder.fit(X if used is None else rows_of_table(X, used))
        with collected_warnings():  # what rows without weight hold is no reason to warn
            values = encoder._read(X, type(self).__name__)
            rows, _ = encoder._encode(values)
        check_lengths(rows, y)
        Y = targets(y, rows)
        labels = places_of(Y) if are_labels else None
        if encoder.has_logarithms():
            encoder, rows = _likelier((encoder, rows), X, Y, used)
        doubt_copies(encoder.columns_, values, Y, labels)
        copies = about_copies(encoder.columns_, values)
        report = Report(remarks=[*encoder.remarks(), *copies])
        if source is None and groups is None and (self.cv is None or is_number_of_folds(self.cv)):
            _tell_groups(encoder, values, Y.T if labels is None else [labels], report)
        del values  # a whole table
        whole = None
        if drawn is not None and not drawn.complete:
            whole = EncodedTable(source, encoder, targets, drawn)
        self._prepare(np.ndim(y), Y.shape[1])
        table = TableRows(rows, Y, labels, check_weights(sample_weight, rows), groups, whole)
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        self.encoder_, self.n_features_in_ = encoder, encoder.n_features_in_
        _tell_codes(Y if used is None else Y[used], report)
        if whole is not None:
            report.say(
                f"Columns, kernel and alpha are learned from {counted(table.n_rows, 'row')} drawn "
                f"at random from {table.n_all:,}, which are read in passes."
            )
        self._means, self._scales = table.standardise()
        self._learn(table, kernel, "labels" if are_labels else "y", seconds, report, rng)
        for candidate in report.candidates:
            candidate.of_splits = []  # nobody needs them any more
        took = seconds_told(time.perf_counter() - start)
        report.say(f"The fit took {took} in total.", "time")
        self._report = report

    def _checked_settings(self) -> tuple[float, Kernel | None]:
        """Return how long the final fit may take, and the only kernel to try if there is one."""
        seconds = SECONDS if self.budget is None else check_positive("budget", self.budget)
        if self.max_memory is not None:
            bytes_of("max_memory", self.max_memory)
        if self.temp_folder is not None:
            temporary_file(self.temp_folder).close()
        check_choice("form", self.form, FORMS)
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1)
        return seconds, searched(self.kernel)

    def _source(self, X: Any, y: Any, sample_weight: Any, groups: ArrayLike | None) -> Any:
        """Return the reader of a table that is read in passes, None for one in memory."""
        splitter = not (self.cv is None or is_number_of_folds(self.cv))
        if not is_source(X):
            # Groups and splitters see all rows in order: those of an array on disk, in memory.
            if splitter or groups is not None or not on_disk(X):
                return None
            check_lengths(X, y)
            return source_of(X, y, sample_weight)
        for name, is_given in (("groups", groups is not None), ("a splitter as cv", splitter)):
            if is_given:
                raise ValueError(
                    f"{name} needs all rows in order, but only some rows of a source are drawn; "
                    "pass rows in one array, or cv=None or a number of folds without groups"
                )
        return source_of(X, y, sample_weight)

    def _learn(
        self,
        table: TableRows,
        kernel: Kernel | None,
        of: str,
        seconds: float,
        report: Report,
        rng: np.random.Generator,
    ) -> None:
        """Learn to predict what the targets are `of`, by which reports call them."""
        self.model_ = self.kernel_ = self.alpha_ = None
        self.feature_importances_ = np.zeros(self.n_features_in_)
        self._of_one_row = table.n_rows == 1
        if self._of_one_row and of == "y":
            warn(
                f"{type(self).__name__} was fitted to one row, so that the variance of y is "
                "unknown and standard deviations are NaN; pass more rows",
                UserWarning,
            )
        if reason := table.nothing_to_learn():
            report.say(f"The model predicts {MEANS[of]}: {reason}.")
            return
        groups, on_sphere = self.encoder_.groups(), self.encoder_.on_sphere_
        one_length = on_sphere or len(groups.kinds) > MOST_LENGTHS
        most = CHOICE_ROWS_ON_SPHERE if on_sphere else CHOICE_ROWS
        splits, seed = table.splits(self.cv, most, rng), int(rng.integers(2**31))
        if table.holds_copies_together:
            report.say("Many rows are copies of others; copies are held out together.")
        rows = coordinates(table.X) if one_length else table.X
        trials = Trials(rows, table.Y, table.weight, splits, report, seed, self._on_progress)
        of_columns = None if one_length else groups
        best = _chosen(trials, kernel, of_columns, of, rng)
        if best is None:
            return
        form, best, trials = self._form(table, trials, best, seconds, of_columns, kernel)
        edge = None
        by_blocks = of == "y" and not one_length and form.is_whole and table.at_random(self.cv)
        if by_blocks:
            edge = Edge.of(trials, groups, best)
        if edge is not None and (kernel is None or asks_targets(kernel)):
            at_random = best
            best, error = choose_by_edge(trials, at_random, groups, edge)
            report.say(edge.sentence(error, best, at_random), "" if edge.latest else DETAIL)
            form = Form(best.alpha, form.seed, slopes=best.slopes)
        best.chosen = not any(candidate.chosen for candidate in report.candidates)
        if best.chosen and not (form.is_whole or form.near):
            report.say(APPROXIMATES)
        self._on_progress("calibrating", None, "")
        incomplete = self.encoder_.incomplete(table.X)
        gaps = gaps_in(trials, groups, best) if by_blocks else []
        self._calibrate(Choice(trials, best, form, edge, gaps, incomplete))
        self.kernel_ = best.kernel
        model = form.model(best.kernel, table.n_all)
        self._on_progress("fitting", None, "")
        if form.features is None and form.near is None:
            model._listener = _by_residuals(self._on_progress, "fitting")
        self.model_ = _fitted(model, table, report)
        vars(self.model_).pop("_listener", None)
        self.alpha_ = float(self.model_.alpha_) if form.features is not None else form.alpha
        self.feature_importances_ = self._importances(table.variances())

    def _importances(self, variances: Doubles) -> Doubles:
        """Return the share of each input column in the mean squared change of the function."""
        sources, model, kernel = self.encoder_.sources_, self.model_, cast(Kernel, self.kernel_)
        rates = np.square(column_scales(kernel, sources.size))
        if hasattr(model, "trend_coef_") or hasattr(model, "smooth_"):
            rates = np.sum([_rates(part, sources.size) for part in _parts(model)], axis=0)
        sums = np.bincount(sources, rates * variances, minlength=self.n_features_in_)
        shares: Doubles = sums / sums.sum()
        for column in self.encoder_.columns_:  # those of a place are all of its latitude
            shares[column.inputs] = shares[column.inputs[0]] / len(column.inputs)
        return shares

    def _form(
        self,
        table: TableRows,
        trials: Trials,
        best: Candidate,
        seconds: float,
        groups: Groups | None,
        kernel: Kernel | None,
    ) -> tuple[Form, Candidate, Trials]:
        """Return the form that is best within the seconds and bytes that it may take.

        And the model that was chosen for it, with the trials that judged it: those of near rows
        have all rows. `kernel` is the only one to try.
        """
        shape = table.n_all, table.X.shape[1], table.Y.shape[1]
        room = Room(shape, best.alpha, self.max_memory, gathered=table.in_passes)
        at_random, folder = table.at_random(self.cv), self.temp_folder
        near: Any = NearForms(table, trials, best, groups, kernel, at_random, folder)
        mapped = table.in_passes and (folder is not None or not table.may_be_gathered)
        if self.form == NEAR:
            if not room.near(mapped=mapped):
                raise room.too_little()
            chosen: Any = near.best(self.n_components)
            why = (
                f"{chosen.sentence()}, as asked for. Their error is {chosen.error:#.3g}; that of "
                f"the whole kernel is {best.error:#.3g}."
            )
        elif self.form == AUTO:
            if not (near.may_be_better() and room.near(mapped=mapped)):
                near = None
            chosen, why = _auto_form(near, room, trials, best, seconds)
        else:
            form, why = asked_form(self.form, self.n_components, room, trials, best)
            chosen = NearTrial(best.kernel, form, best, best.error)
        if left_out := room.left_out():
            trials.report.say(left_out)
        trials.report.say(f"Model: {why}")
        if chosen.form.near is not None:
            for tried in trials.report.candidates:  # features may have won before
                tried.chosen = False
        self._before_fit(chosen.form, trials, chosen.candidate, table.n_all)
        if chosen.form.near is None:
            return chosen.form, chosen.candidate, trials
        table.take(near.trials.X, near.trials.Y, near.trials.weight)
        return chosen.form, chosen.candidate, near.trials

    def _prepare(self, n_dim: int, n_targets: int) -> None:
        """Set what depends on the shape of y alone."""

    def _calibrate(self, choice: Choice) -> None:
        """Learn from held-out rows how sure predictions are."""
        raise NotImplementedError

    # -- what a fitted model can do -----------------------------------------------------------

    def _by_rows(
        self,
        work: Callable[..., Any],
        X: Any,
        shape: tuple[int, ...],
        dtype: Any = np.float64,
        results: int = 1,
    ) -> Any:
        """Return work(X), of a source lazily; a row becomes an array of this shape."""
        check_is_fitted(self)
        X = as_frame(X)
        if is_source(X):
            return map_rows(work, X, shape, dtype, results)
        return predicted(work, X)

    def _hear_of_solves(self, on_progress: OnProgress, label: str) -> None:
        """Let `on_progress` hear of solves in predictions: standard deviations may take hours."""
        if hasattr(self.model_, "_listener"):
            steps = int(np.max(self.model_.n_iter_))  # these take about as many, or more
            self.model_._listener = _by_residuals(on_progress, label, steps)

    def _for_workers(self, *, return_std: bool = False) -> Self:
        """Return a copy that can predict and no more: what goes to workers."""
        check_is_fitted(self)
        worker = copy.copy(self)
        if worker.model_ is not None:
            worker.model_ = worker.model_._for_workers(return_std)
        return worker

    def _encoded(self, X: Data) -> tuple[Doubles, NDArray[np.bool_]]:
        check_is_fitted(self)
        encoded: tuple[Doubles, NDArray[np.bool_]] = self.encoder_._encoded(X, type(self).__name__)
        return encoded

    def _mean(self, rows: Doubles) -> Doubles:
        """Return predictions of encoded rows in units of the targets, of shape (n, n_targets)."""
        if self.model_ is None:
            return np.tile(self._means, (len(rows), 1))
        return self._in_units(self.model_.predict(rows))

    def _in_units(self, predicted: Doubles) -> Doubles:
        """Return predictions of the model in units of the targets, of shape (n, n_targets)."""
        return predicted.reshape(len(predicted), -1) * self._scales + self._means


def _parts(model: Any) -> list[Any]:
    """Return the parts of a model of the whole kernel or near rows, whose predictions are added."""
    return [model, model.smooth_] if hasattr(model, "smooth_") else [model]


def _rates(model: Any, width: int) -> Doubles:
    """Return the mean squared slopes of a model along encoded columns, by its kernel's scales."""
    alpha = model.alpha_ if hasattr(model, "alpha_") else model.alpha
    prior = np.mean(model.noise_variance_) / alpha
    rates: Doubles = prior * np.square(column_scales(model.kernel_, width))
    if hasattr(model, "trend_coef_"):
        rates += np.square(model.trend_coef_.reshape(width, -1)).mean(axis=1)
    return rates


def standardised(learner: TableLearner, Y: Doubles) -> Doubles:
    """Return targets of shape (n, n_targets) as the model of a fitted learner is fitted to them."""
    return np.asarray((Y - learner._means) / np.where(learner._scales == 0, 1.0, learner._scales))


def _by_residuals(on_progress: OnProgress, label: str, steps: int = 1) -> Listener:
    """Return what tells of solves, as the least residual is on its way to TOL in so many steps."""
    least = 1.0

    def tell(now: SolveProgress) -> None:
        nonlocal least
        least = min(now.residual, 1.0 if now.n_steps == 1 else least)
        share = 1 - math.log(max(least / TOL, 1.0)) / math.log(1 / TOL)
        share = min(share, now.n_steps / max(steps, 1))
        on_progress(label, share, f"step {now.n_steps}, residual {now.residual:.1g}")

    return tell


def _rows_of_weight(X: Any, sample_weight: Any) -> Integers | None:
    """Return the rows of some weight, None where these are all, or none, or weights are wrong."""
    weight = None if sample_weight is None else np.asarray(sample_weight)
    if weight is None or weight.shape != (_num_samples(X),):
        return None
    used = np.flatnonzero(weight)
    return used if 0 < used.size < len(weight) else None


def _tell_codes(Y: Doubles, report: Report) -> None:
    """Warn of targets that seem to be codes for missing ones, and report them."""
    for column in Y.T:
        if (sentinel := sentinel_of(column, of_targets=True)) is not None:
            sentence = about_sentinel("y", sentinel)
            warn(sentence, UserWarning)
            report.say(f"{sentence}.")


def _tell_groups(
    encoder: TableEncoder, values: list[Values], targets: Iterable[Values], report: Report
) -> None:
    """Report the column whose rows are groups that are held out in part, if there is one."""
    own = zip(encoder.columns_, values, strict=True)
    used = {c.name: v for c, v in own if v.ndim == 1 and not isinstance(c, LeftOut)}
    if name := repeating(used, targets):
        report.say(
            f"Rows with the same {name!r} have similar targets. If new rows are of others, pass it "
            "as groups to fit, not in X: whole groups are held out, as by GroupKFold.",
            "groups",
        )


def _likelier(
    encoded: tuple[TableEncoder, Doubles], X: Any, Y: Doubles, used: Integers | None
) -> tuple[TableEncoder, Doubles]:
    """Return an encoder and its rows, or those without logarithms if targets are likelier so."""
    plain = plain_output(clone(encoded[0]).set_params(logarithms=False))
    with collected_warnings():
        plain.fit(X if used is None else rows_of_table(X, used))
        among = [encoded, (plain, plain.transform(X))]
    weighted: Any = slice(None) if used is None else used
    likeliest, values = None, []
    for encoder, rows in among:
        groups = encoder.groups()
        if len(groups.kinds) > MOST_LENGTHS:
            break
        with contextlib.suppress(ConstantTargetsError):
            examples = Examples(rows[weighted], Y[weighted], groups=groups.of_columns)
            few = examples.shuffled()[:ENCODED_ROWS]
            likeliest = learned(
                Matern(1.5, "learn"), examples, few, start=likeliest, settled=SETTLED
            )
            values.append(likeliest.value)
    return among[int(np.argmin(values))] if len(values) == len(among) else among[0]


def _chosen(
    trials: Trials, kernel: Kernel | None, groups: Groups | None, of: str, rng: np.random.Generator
) -> Candidate | None:
    """Return the kernel that predicts rows held out best; None if the mean is as good."""
    chosen = choose_kernel(trials, kernel, groups, rng)
    if chosen is None:
        trials.report.say(
            f"The model predicts {MEANS[of]}: X or y is constant on the training rows."
        )
        return None
    best, of_half = chosen
    of_mean = trials.error_of_mean()
    if not best.error <= LEARNED_NOTHING * of_mean:
        trials.report.say(
            f"The model predicts {MEANS[of]}: on held-out rows the best kernel has an error of "
            f"{best.error:.4g}, {MEANS[of]} {of_mean:.4g}, so X seems to carry no information "
            "about y."
        )
        return None
    _tell_rate(trials, of, best, of_half, of_mean)
    return best


def warn_of_order(X: Any, **others: Any) -> None:
    """Warn where y, weights or groups have the index of X in another order."""
    for name, values in others.items():
        if not all(hasattr(getattr(table, "index", None), "equals") for table in (X, values)):
            continue
        if not X.index.equals(values.index) and {*X.index} == {*values.index}:
            warn(
                f"{name} has the index of X in another order, and its values are taken in their "
                f"own order; if they belong to the rows of that index, pass {name}.loc[X.index]",
                UserWarning,
            )


def _auto_form(
    near: NearForms | None, room: Room, trials: Trials, best: Candidate, seconds: float
) -> tuple[NearTrial, str]:
    """Return the best model within the seconds and the room, and why; near rows if they are tried.

    What the whole kernel costs takes long to be found: only where it may be better.
    """
    nearest, of_half = None, math.inf
    if near is not None:
        nearest, of_half = near.best(), error_of_half(trials, best)
        expected = expected_error(best, of_half, room.n_rows)
        if nearest.error < expected:
            return nearest, nearest.compared(expected)
    try:
        form, why = best_form(room, trials, best, seconds)
    except TooLittleMemoryError:
        if nearest is None:
            raise
        return nearest, f"{nearest.sentence()}, since there is room for no other form."
    if nearest is not None and (count := form.features or form.centers):
        expected = expected_error(best, of_half, count)
        if nearest.error < HARDLY_WORSE * expected:
            return nearest, nearest.compared(expected)
    return NearTrial(best.kernel, form, best, best.error), why


def _tell_rate(
    trials: Trials, of: str, best: Candidate, half: Candidate | None, of_mean: float
) -> None:
    """Report the error, and what more rows would bring at most, by what half brought.

    Errors fall less and less the nearer they are to that of the noise.
    """
    if half is None:
        half = trials.halved().run(best, trials.alphas)
    of_labels = "the labels as +1 and -1" if of == "labels" else "y"
    said = (
        f"The error on the rows held out for the choice is {best.error:#.3g} standard deviations "
        f"of {of_labels}, and {of_mean:#.3g} for {MEANS[of]}."
    )
    n, of_half = trials.n_fitted, 0.0 if half is None else half.error
    if of_half > best.error:
        said += f" It was {of_half:#.3g} after learning from half of the other {n:,} rows."
    trials.report.say(said, DETAIL)
    if of_half > best.error and n >= FEWEST_FOR_RATE:
        percent = 100 * (1 - best.error / of_half)
        rate = f"lower the error by {min(percent, 99):.0f} % at most"
        rate = rate if percent >= 1 else "hardly lower the error"
        trials.report.say(f"Twice as many rows would {rate}.")


def _fitted(model: Any, table: TableRows, report: Report) -> Any:
    """Fit a model to all rows; report its warnings, and warn of what may be wrong."""
    with collected_warnings() as caught:
        model.fit(*table.all())
    for warning in caught:
        report.say(f"{warning.message}.")
        if issubclass(warning.category, ConvergenceWarning):
            warn(warning.message, warning.category)
    return model
