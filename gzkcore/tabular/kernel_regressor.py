"""Regression on a table with a learned kernel: `fit` chooses every setting."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.state import all_or_nothing, doubles, flag, forget, holds, nothing, stored
from gzkcore._util.typing import Data, Doubles, Integers, Seed
from gzkcore._util.validation import check_bool, check_targets
from gzkcore._util.warn import collected_warnings
from gzkcore.kernels.base import Kernel
from gzkcore.learn.agop import exact_gradients
from gzkcore.learn.kernel_ridge import KernelRidge, check_not_source
from gzkcore.learn.regression import RegressorScore
from gzkcore.passes.streams import map_rows
from gzkcore.rows.frames import as_frame
from gzkcore.rows.sources import is_dask, is_source
from gzkcore.solve.system import HELD_ROWS

from .edge import Edge
from .kernel_search import MOST_LENGTHS, Candidate, Trials
from .table_learner import Form, TableLearner, warn_of_order
from .varying_noise import VaryingNoise, varying_noise

__all__ = ["KernelRegressor"]

# Choices: what standard deviations are multiplied by, of rows with a number filled in by more;
# and how many such rows have to be held out to say by how much.
LEAST_WIDENING, MOST_WIDENING, MOST_OF_INCOMPLETE = 0.2, 5.0, 100.0
FEWEST_INCOMPLETE = 20
FEWEST_LEVELS = 8  # a choice: that say how levels vary
ROUNDING = 4e-16  # of predictions: no standard deviation is smaller
SAME_FACTOR = 1.05  # below that many times another factor none is told
# Rows held out below which they don't say that standard deviations are too large. Of 24 samples of
# 5 and 7 rows of sin(4 x) .95 and .97 of new rows were within 1.96 of them, and .81 and .82 before;
# of noise .69 and .84, and .68 and .83.
FEWEST_NARROWING = 10


class KernelRegressor(MultiOutputMixin, RegressorScore, TableLearner):
    """Regression on a table with a learned kernel: `fit` chooses every setting.

    First columns are encoded: numbers are standardised, skewed ones as logarithms; dates, also as
    text such as 2024-12-31, become seconds; other text becomes zeros and ones; missing values are
    filled in; latitude and longitude become points of the globe. Then a Matern kernel with one
    lengthscale per column is learned. The error on held-out rows and the cost decide its
    smoothness, its lengthscales, alpha, and whether the whole kernel, centres or features are used.

    Parameters
    ----------
    budget : float, optional
        > 0, about how many seconds the final fit may take; None: 600. It is `--time` of the command
        `gzkcore fit`. Choosing the settings takes another 5 to 60 s, for any number of rows.
    form : {"auto", "whole", "centers", "features"}, default="auto"
        What the model is: ridge regression with the whole kernel, with the kernel at some rows
        (centres), or on features. "auto" chooses by error, budget and memory. Another form is used
        however long it takes; if memory does not allow it, `fit` raises a ValueError.
    n_components : int, optional
        >= 1, the number of centres or features; other forms ignore it. None: a quarter of the rows
        as centres, up to 20,000, or 4,096 features; fewer where memory is short.
    kernel : str or Kernel, default="auto"
        "auto": the best of several Matern kernels and the Laplacian. "gaussian", "matern",
        "laplacian", "exponential" or "rational_quadratic": only this one, with learned
        lengthscales. A Kernel: only this one, for the encoded columns; parameters that are "learn"
        or "learn-isotropic" are learned, see `learn_kernel`.
    max_memory : float or str, optional
        > 0, the estimated number of bytes that the final fit may take beside the table: 2e9, or
        "2GB" (KB, MB, GB and TB are powers of 1,000). None: half of the memory that is available at
        that time. If the whole kernel needs more, centres or features are used, as many as fit. If
        even these need more, `fit` raises a ValueError. It is `--memory` of the command. Choosing
        the settings takes a few hundred megabytes, for any number of rows.
    missing : {"impute", "raise"}, default="impute"
        What to do with missing values, see `TableEncoder`.
    columns : dict, optional
        The kinds of some columns, such as ``{"zip": "category", "day": "date"}``, in place of what
        their values tell, see `TableEncoder`.
    cv : int, splitter or iterable, optional
        How rows are held out to choose the settings: a number of folds, a splitter of scikit-learn
        (`TimeSeriesSplit`, `GroupKFold` ...), or an iterable of (rows to fit to, rows held out).
        None: a fifth of the rows once; with fewer than 1,000 rows, five folds. Groups that are
        passed to `fit` are kept together. Splitters get all rows in the given order, with y and
        groups. If a split has many rows, a random part of them is used.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    report_ : Report
        What was tried and chosen, and why; `print` shows it.
    kernel_ : Kernel or None
        The kernel of the encoded columns; None if the mean is predicted.
    alpha_ : float or None
    model_ : KernelRidge, RandomFeatureRidgeCV or None
        The model, fitted to encoded columns and standardised targets.
    encoder_ : TableEncoder
    feature_importances_ : ndarray of shape (n_features_in_,)
        The share of each column in the sum of variance / lengthscale^2: how quickly the function
        changes with the column, in units of its spread. A linear trend adds its squared slope. The
        encoded columns of a category are added up; latitude and longitude share one value.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has column names.

    See Also
    --------
    KernelClassifier : The same for labels.
    KernelRidge, RandomFeatureRidgeCV, learn_kernel, TableEncoder : The parts, one by one.

    Notes
    -----
    Only the time of the encoding, the final fit and the predictions depends on the number of rows.
    The final fit takes as long as that of `KernelRidge`.

    For a source or a memory map, one pass draws 16,384 rows at random (fewer if there are more than
    8,192 columns) and adds up the targets. These rows determine the encoding, the kernel, alpha and
    the standard deviations; values that are missing or vary only in other rows are not noticed. The
    final fit reads all rows: features and centres in passes that keep only sums, the whole kernel
    by collecting the encoded rows in memory, if `max_memory` has room for them. If all rows are
    drawn, the fit is the same as for one array. With groups, or a splitter as `cv`, a memory map is
    copied into memory.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gzkcore import KernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRegressor(random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    _state = stored(
        _widening=doubles("t", least=0),
        _usual=doubles("t", least=0),
        _outer=doubles("t", least=1),
        _noise=holds(VaryingNoise) | nothing(),
        _widening_incomplete=doubles("t", least=0).if_there(),
        _flat=flag(),
    )

    _noise: VaryingNoise | None

    # Not inherited: Python's errors about arguments name the class that defines the constructor.
    def __init__(
        self,
        budget: float | None = None,
        *,
        form: str = "auto",
        n_components: int | None = None,
        kernel: str | Kernel = "auto",
        max_memory: float | str | None = None,
        missing: str = "impute",
        columns: Mapping[Any, Any] | None = None,
        cv: Any = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            budget, form=form, n_components=n_components, kernel=kernel, max_memory=max_memory,
            missing=missing, columns=columns, cv=cv, random_state=random_state,
        )  # fmt: skip

    @all_or_nothing
    def fit(
        self,
        X: Data,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the regression.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or a source
            A source is an iterable of batches (X, y) or (X, y, sample_weight) whose iter() starts
            again each time, such as a list of frames or the result of `gzkcore.open_batches`; or a
            Dask array or data frame. Sources and memory maps are read in passes, see Notes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            None for an iterable of batches; for a Dask collection, another one.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0. In the objective, and in errors on held-out rows, a row of weight 2 counts
            as two rows. It is held out as one row. For estimates of the noise it is one row whose
            noise has half the variance. For sources it is passed like y.
        groups : array-like of shape (n_samples,), optional
            Rows of a group are either all held out or all fitted to. None for sources.

        Returns
        -------
        self
            As it was if an error or an interrupt occurs.
        """
        forget(self)
        X = as_frame(X)
        warn_of_order(X, y)
        if not is_source(X):
            if y is None:
                raise ValueError(
                    "requires y to be passed, but the target y is None: KernelRegressor needs "
                    "targets"
                )
            y = np.asarray(check_targets(y, X))
        self._fit_table(X, y, sample_weight, groups, _columns_of_targets)
        return self

    def _prepare(self, n_dim: int, n_targets: int) -> None:
        self._flat = n_dim == 1
        self._widening = self._usual = self._outer = np.ones(n_targets)
        self._noise = None

    def _calibrate(
        self,
        trials: Trials,
        best: Candidate,
        form: Form,
        edge: Edge | None,
        incomplete: NDArray[np.bool_],
    ) -> None:
        """Let 95 % of the rows held out be within 1.96 standard deviations of their predictions.

        And 95 % of those with a number filled in, which the model takes for as sure as any other.
        """
        errors, spreads, weights, imputed, places = [], [], [], [], []
        few = trials
        if form.features is None and form.centers is None:  # beyond, variances take many solves
            few = trials.on(trials.thinned(HELD_ROWS))
        for model, mean, std, held_out in few.predictions(best, form.trial, return_std=True):
            errors.append(mean - trials.Y[held_out])
            spread = Spread.of(model, np.ones_like(mean) if std is None else std)
            del model
            spreads.append(spread._replace(farthest=np.tile(spread.farthest, (len(mean), 1))))
            weights.append(trials.weights(held_out))
            imputed.append(incomplete[held_out])
            places.append(held_out)
        missed, weight = np.concatenate(errors), np.concatenate(weights)
        spread = Spread(*(np.concatenate(each) for each in zip(*spreads, strict=True)))
        self._usual = _quantile(spread.variances, weight)
        gaps = np.concatenate(imputed)
        missed /= self._varies(trials, np.concatenate(places), missed, spread.variances)

        def factors(rows: Any) -> Doubles:
            some = Spread(*(values[rows] for values in spread))
            return widening(missed[rows], some, self._usual, weight[rows])

        found = factors(slice(None) if gaps.all() else ~gaps)
        least = LEAST_WIDENING if len(gaps) >= FEWEST_NARROWING else 1.0
        self._widening = np.clip(found, least, MOST_WIDENING)
        trials.report.say(_about_widening(self._widening))
        if edge is not None:
            self._calibrate_beyond(trials.on([edge.split], trials.report), best, form)
        if not incomplete.any() or gaps.all():
            return
        # 0: too few to say, and predictions are no surer than without any column.
        self._widening_incomplete = np.zeros_like(self._widening)
        said = "are at least that of y: too few such rows were held out to say more"
        if gaps.sum() >= FEWEST_INCOMPLETE:
            found = factors(gaps)
            # So few rows may look surer than the others by chance; they are not.
            self._widening_incomplete = np.clip(found, self._widening, MOST_OF_INCOMPLETE)
            if (self._widening_incomplete < SAME_FACTOR * self._widening).all():
                return
            said = f"are multiplied by {listed(self._widening_incomplete)}: less is known of these"
        trials.report.say(f"Standard deviations of rows with a missing number {said}.")

    def _varies(
        self, trials: Trials, held_out: Integers, missed: Doubles, variances: Doubles
    ) -> Doubles:
        """Learn how noise varies with the columns, and return the factors of rows held out."""
        groups = self.encoder_.groups()
        alone = missed.shape[1] == 1 and len(groups.kinds) <= MOST_LENGTHS
        found = None
        if alone:
            rows = trials.X[held_out]
            sizes = missed * np.sqrt(trials.weights(held_out))[:, None]  # as of rows of weight 1
            found = varying_noise(rows, sizes, variances, groups.of_columns, trials.seed)
        if found is None:
            return np.ones_like(missed)
        self._noise, factors = found
        trials.report.say(
            f"The noise varies with the columns: standard deviations of rows are multiplied by "
            f"{factors.min():.2f} to {factors.max():.2f}."
        )
        return factors

    def _calibrate_beyond(self, trials: Trials, best: Candidate, form: Form) -> None:
        """Make standard deviations beyond the rows as large as errors at the edge."""
        of_edge = replace(best, of_splits=[best.kernel])
        ((model, mean, std, held_out),) = trials.predictions(of_edge, form.trial, return_std=True)
        errors, spread = mean - trials.Y[held_out], Spread.of(model, np.asarray(std))
        if self._noise is not None:
            errors /= self._noise.factors(trials.X[held_out])
        given = errors, spread, self._usual, self._widening, trials.weights(held_out)
        self._outer = np.maximum(outer_widening(*given), self._widening)
        sizes = spread.widened(self._widening, self._usual, self._outer)
        within = 100 * np.mean(np.abs(errors) <= NORMAL_95 * sizes)
        trials.report.say(
            f"Beyond the rows standard deviations are multiplied by {listed(self._outer)}, at most "
            f"{MOST_WIDENING:g}; so {within:.0f} % of the rows at the edge are within 1.96 of them."
        )

    def predict(self, X: Data, return_std: bool = False, return_gradient: bool = False) -> Any:
        """Predict the targets, and how they change with each column of numbers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            Also return the standard deviation of a new observation. It is calibrated: 95 % of the
            held-out rows were within 1.96 standard deviations of their predictions, and so were 95
            % of the held-out rows with a missing number, if there were 20 or more. Far from all
            training rows the prediction is the mean of y, and the standard deviation is at least
            that of y; beside a linear trend both go on with it. The deviation is also that of y, at
            least, for a row without a number or place that hardly any training row lacked, and for
            a row with a category that no training row had, unless predictions hardly depend on that
            column, or it has 8 or more categories: then it grows by how much these differ. If the
            model predicts the mean, the standard deviation is
            that of y everywhere: 0 if all training targets were equal, NaN after a fit to one row.
        return_gradient : bool, default=False
            Also return the derivatives of the prediction by each column of numbers; with
            `return_std` their standard deviations too. Not for sources.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if `return_std` is True. For an iterable of batches, an iterator over the results
            of each batch; for a Dask collection, a Dask array (or two) that is not yet computed.
        gradient, gradient_std : ndarray of shape (n_samples, n_features_in_), or dict
            Of several targets (n_samples, n_targets, n_features_in_). For a data frame a dict from
            names of columns to arrays like y. Only with `return_gradient`, the second only with
            `return_std` too.

        Notes
        -----
        Slopes are in units of the target by units of the column, by days for dates, and by
        kilometres to the north and to the east for degrees of latitude and longitude. Categories,
        columns encoded by ranks and columns left out have none: NaN in an array, not in a dict. By
        a missing number the slope is NaN. Standard deviations of slopes need a smooth kernel, see
        `KernelRidge.predict`, and no features. They are widened as those of predictions, but never
        narrowed, and no more beyond the rows; NaN in rows with values of which the fit knew
        nothing, or if the model is a mean.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from gzkcore import KernelRegressor
        >>> x = np.linspace(0, 3, 200)
        >>> table = pd.DataFrame({"length": x, "kind": ["a", "b"] * 100})
        >>> model = KernelRegressor(kernel="gaussian", random_state=0).fit(table, x**2)
        >>> y, slope = model.predict(table[100:101], return_gradient=True)
        >>> bool(abs(slope["length"][0] - 2 * x[100]) < 0.01)
        True
        """
        check_is_fitted(self)
        check_bool("return_gradient", return_gradient)
        if return_gradient:
            return self._with_slopes(X, return_std)
        shape = () if self._flat else self._means.shape
        model = self._for_workers(return_std=return_std) if is_source(X) else self
        if return_std and is_dask(X):
            both = model._means_of, model._deviations_of
            return tuple(map_rows(work, X, shape) for work in both)
        work = model._with_deviations if return_std else model._means_of
        return self._by_rows(work, X, shape, results=1 + return_std)

    def _means_of(self, X: Data) -> Doubles:
        mean = self._mean(self._encoded(X))
        return mean[:, 0] if self._flat else mean

    def _deviations_of(self, X: Data) -> Doubles:
        return self._with_deviations(X)[1]

    def _with_deviations(self, X: Data) -> tuple[Doubles, Doubles]:
        check_is_fitted(self)
        rows, unknown = self.encoder_._encoded(X, type(self).__name__)
        if self.model_ is None:
            mean = self._mean(rows)
            unknown_scales = np.full_like(self._scales, np.nan)
            std = np.tile(unknown_scales if self._of_one_row else self._scales, (len(mean), 1))
        else:
            predicted, std = self.model_.predict(rows, return_std=True)
            mean = self._in_units(predicted)
            widening_of_rows = np.tile(self._widening, (len(rows), 1))
            guessed = np.zeros(len(rows), dtype=bool)
            if hasattr(self, "_widening_incomplete"):
                incomplete = self.encoder_.incomplete(rows)
                widening_of_rows[incomplete] = self._widening_incomplete
                guessed = incomplete & (self._widening_incomplete == 0).any()
            known = Spread.of(self.model_, std)
            std = known.widened(widening_of_rows, self._usual, self._outer) * self._scales
            if self._noise is not None:
                std = std * self._noise.factors(rows)
            # What is filled in is a guess: predictions are no surer than without any column.
            spread, doubt = self._spread(rows, unknown)
            std = np.where(
                guessed[:, None] | (doubt > std),
                np.maximum(std, self._scales),
                np.hypot(std, np.hypot(spread, doubt)),
            )
            varies = self._scales > 0
            std = np.maximum(std, ROUNDING * varies * (np.abs(mean) + self._scales))
        shape = mean.shape[:1] if self._flat else mean.shape
        return mean.reshape(shape), std.reshape(shape)

    def _with_slopes(self, X: Data, return_std: bool) -> Any:
        check_not_source(X)
        X = as_frame(X)
        found = self.predict(X, return_std)
        with collected_warnings():  # which there were already
            rows, unknown, places, directions = self.encoder_._with_slopes(X)
        gone = np.isnan(directions).any(axis=2)[:, None]
        slopes = self._slopes(rows, np.nan_to_num(directions), return_std)
        if return_std:
            slopes[1] *= self._widened_slopes(rows, unknown)[:, :, None]
        results = [*found] if return_std else [found]
        for unscaled in slopes:
            each = np.where(gone, np.nan, unscaled * self._scales[:, None])
            each = each[:, 0] if self._flat else each
            if hasattr(X, "columns"):
                names = self.feature_names_in_[places]
                results.append(dict(zip(names, np.moveaxis(each, -1, 0), strict=True)))
            else:
                every = np.full((*each.shape[:-1], self.n_features_in_), np.nan)
                every[..., places] = each
                results.append(every)
        return tuple(results)

    def _slopes(self, rows: Doubles, directions: Doubles, return_std: bool) -> list[Doubles]:
        """Return slopes of the model, (n, n_targets, n_columns), and perhaps their deviations."""
        if isinstance(self.model_, KernelRidge):
            return self.model_._slopes(rows, directions, return_std)
        if self.model_ is None:
            flat = np.zeros((len(rows), len(self._means), directions.shape[1]))
            return [flat, flat + np.nan][: 1 + return_std]
        gradient: Any = exact_gradients(self.model_, rows)
        if return_std or gradient is None:
            raise ValueError(
                "a model on features has no standard deviations of slopes, and no slopes if its "
                "kernel has none; fit with form='whole' and a smooth kernel such as 'gaussian'"
            )
        return [np.einsum("iqc,ipc->iqp", gradient, directions)]

    def _widened_slopes(self, rows: Doubles, unknown: NDArray[np.bool_]) -> Doubles:
        """Return the factors of deviations of slopes, NaN where nothing is known."""
        factors = np.tile(self._widening, (len(rows), 1))
        if hasattr(self, "_widening_incomplete"):
            factors[self.encoder_.incomplete(rows)] = self._widening_incomplete
        factors[(factors == 0).any(axis=1) | unknown.any(axis=1)] = np.nan
        varies = 1.0 if self._noise is None else self._noise.factors(rows)
        return np.maximum(factors * varies, 1.0)

    def _spread(self, rows: Doubles, unknown: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """Return how means of encoded rows vary with what stands for unknown values.

        The standard deviation over many levels, of which a new one is another; else how far apart
        two of these means may be.
        """
        spread, doubt = np.zeros((2, len(rows), len(self._means)))
        for place in np.flatnonzero(unknown.any(axis=0)).tolist():
            those = np.flatnonzero(unknown[:, place])
            variants = self.encoder_.variants(place)
            if variants is None:
                doubt[those] = np.inf
                continue
            changed, means = rows[those], []
            for values in variants:
                changed[:, self.encoder_.sources_ == place] = values
                means.append(self._mean(changed))
            if len(means) >= FEWEST_LEVELS:
                spread[those] = np.hypot(spread[those], np.std(means, axis=0, ddof=1))
            else:
                doubt[those] += np.ptp(means, axis=0)
        return spread, doubt


def _columns_of_targets(y: ArrayLike, X: Any) -> Doubles:
    """Return targets of shape (n, n_targets), checked."""
    targets = np.asarray(check_targets(y, X))
    return targets.reshape(len(targets), -1)


def _about_widening(factors: Doubles) -> str:
    """Say how standard deviations were corrected, by a factor for each target."""
    those = "of the rows held out for the choice"
    told = listed(factors)
    if set(told.split(", ")) == {"1.00"}:
        return (
            f"The model's standard deviations needed no correction: at least 95 % {those} are "
            "within 1.96 standard deviations of their predictions."
        )
    sizes = {"too small" if factor > 1 else "too large" for factor in factors}
    wrong = f"were {sizes.pop()}" if len(sizes) == 1 else "were not right"
    each = "" if len(factors) == 1 else ", one factor for each target"
    return (
        f"The model's standard deviations {wrong}, so they are multiplied by {told}{each}. Now 95 "
        f"% {those} are within 1.96 standard deviations of their predictions."
    )


def listed(values: Doubles) -> str:
    """Return numbers for a sentence."""
    return ", ".join(f"{value:.2f}" for value in values)


HALVINGS = 60  # of the factor that a row needs
NORMAL_95 = 1.959964  # standard deviations that 95 % of a normal distribution are within


class Spread(NamedTuple):
    """Variances of new observations by a model, of targets whose own variance is 1.

    A factor below 1, learned from rows held out, shrinks a variance only as far as these rows had
    it: up to `usual`, which 95 % of them were below. What is beyond, no such row tells.

    The variance that is missing far away is added in proportion to the square of u, the share of
    the prior variance that the rows leave unknown. So all of it is added far away, and hardly any
    where predictions are good. On six tables with 24 random splits the mean coverage was .934
    without this term, .933 with the square, and .938 with u itself; u itself reduced the widening
    factor to as little as .2 of its former value.
    """

    variances: Doubles  # (n_rows, n_targets)
    unknown: Doubles  # of the same shape, the square of that share; 0 beside a trend with slopes
    farthest: Doubles  # (n_targets,), or of the same shape, variances far from all rows

    @classmethod
    def of(cls, model: Any, deviations: Doubles) -> "Spread":
        """Return what a fitted model says, whose kernel is 1 from a row to itself."""
        noise = np.atleast_1d(model.noise_variance_)
        alpha = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
        variances = np.square(deviations).reshape(-1, len(noise))
        share = alpha * (variances / np.where(noise > 0, noise, np.inf) - (noise > 0))
        if hasattr(model, "trend_coef_"):
            share = np.zeros_like(share)
        return cls(variances, np.square(np.clip(share, 0.0, 1.0)), noise * (1.0 + 1.0 / alpha))

    def widened(self, factors: Doubles, usual: Doubles, outer: Doubles) -> Doubles:
        """Return standard deviations times factors, and far from the rows at least those of y."""
        lacking = np.maximum(1.0 - _widened(self.farthest, factors, usual, outer), 0.0)
        return np.sqrt(_widened(self.variances, factors, usual, outer) + self.unknown * lacking)


def _widened(variances: Doubles, factors: Doubles, usual: Doubles, outer: Doubles) -> Doubles:
    """Return variances times squares of factors, and times those of outer ones beyond the usual."""
    inner = np.minimum(variances, usual)
    beyond = np.square(np.maximum(factors, outer)) * (variances - inner)
    return np.asarray(np.square(factors) * inner + beyond)


def widening(errors: Doubles, spread: Spread, usual: Doubles, weights: Doubles) -> Doubles:
    """Return by what standard deviations are multiplied, so that 95 % of errors are within 1.96.

    Of each of several columns, and 95 % by weight. A target that is constant has neither. The
    factor that a row needs is found by halving, since variances grow with it.
    """
    sizes = np.abs(errors) / NORMAL_95
    least = np.sqrt(np.minimum(spread.variances, usual))
    high = np.divide(sizes, least, out=np.zeros_like(sizes), where=least > 0)
    low = np.zeros_like(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = spread.widened(middle, usual, np.ones(1)) >= sizes
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return _quantile(high, weights)


def outer_widening(
    errors: Doubles, spread: Spread, usual: Doubles, factors: Doubles, weights: Doubles
) -> Doubles:
    """Return by what variances beyond the usual are multiplied, squared, of each column.

    The least number >= 1 with which errors have the size of standard deviations, in the root mean
    square by weight, at most MOST_WIDENING; the usual part has the factors.
    """
    low, high = np.ones_like(factors), np.full_like(factors, MOST_WIDENING)
    outer = low
    for _ in range(HALVINGS):
        std = spread.widened(factors, usual, outer)
        ratios = np.divide(errors, std, out=np.zeros_like(errors), where=std > 0)
        enough = np.average(np.square(ratios), axis=0, weights=weights) <= 1.0
        low, high = np.where(enough, low, outer), np.where(enough, outer, high)
        outer = (low + high) / 2
    return high


def _quantile(values: Doubles, weights: Doubles) -> Doubles:
    """Return what 95 % by weight of the values are at most, of each column."""
    order = np.argsort(values, axis=0)
    sums = np.cumsum(weights[order], axis=0)
    places = np.argmax(sums >= 0.95 * sums[-1], axis=0)
    columns = np.arange(order.shape[1])
    found: Doubles = values[order[places, columns], columns]
    return found
