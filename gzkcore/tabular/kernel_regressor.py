"""Regression on a table with a learned kernel: `fit` chooses every setting."""

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.arguments import with_remedies
from gzkcore._util.state import all_or_nothing, doubles, flag, forget, holds, nothing, stored
from gzkcore._util.typing import Data, Doubles
from gzkcore._util.validation import check_bool, check_targets
from gzkcore._util.warn import collected_warnings, warn
from gzkcore.learn.agop import exact_gradients
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.near_kernel_ridge import NearKernelRidge
from gzkcore.learn.regression import RegressorScore
from gzkcore.learn.whole_kernel import check_not_source
from gzkcore.passes.streams import map_rows
from gzkcore.rows.frames import as_frame
from gzkcore.rows.sources import is_dask, is_source

from .deviations import NORMAL_95, Deviations, Spread, calibrated, left_unknown
from .form import Choice
from .kernel_search import MOST_LENGTHS
from .table_encoder import in_place
from .table_learner import TableLearner, warn_of_order
from .targets import about_angles, about_far, about_negative, ends_of

__all__ = ["KernelRegressor"]

FEWEST_LEVELS = 8  # So many levels or more say how a new one varies; fewer, how far it may be.
ONE_IN = 16  # Of so many levels that stand for a new one, one tells the deviation beside it.
LEAST_DEVIATION = 4e-16  # Standard deviations are no smaller than this share of predictions.


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
        `gzkcore fit`. Choosing the settings takes another 5 to 60 s, and twice that where near
        rows are tried.
    form : {"auto", "whole", "centers", "features", "near"}, default="auto"
        What the model is: ridge regression with the whole kernel, with the kernel at some rows
        (centres), on features, or from the nearest rows of each new one (`NearKernelRidge`). "auto"
        chooses by error, budget and memory; near rows are tried of some 10,000 rows or more, of
        sources up to two million. Another form is used however long it takes; if memory does not
        allow it, `fit` raises a ValueError.
    n_components : int, optional
        >= 1, the number of centres, features or near rows; other forms ignore it. None: a quarter
        of the rows as centres, from 4,096 to 20,000; 4,096 features; 50 to 300 near rows. Fewer
        centres or features where memory is short.
    kernel : str or Kernel, default="auto"
        "auto": the best of several Matern kernels and the Laplacian. "gaussian" (or "rbf"),
        "matern", "laplacian", "exponential" or "rational_quadratic": only this one, with learned
        lengthscales. A Kernel: only this one, for the encoded columns; parameters that are "learn"
        or "learn-isotropic" are learned, see `learn_kernel`. `ProductMatern(1.5, "learn")` has a
        factor for each column of the table.
    max_memory : float or str, optional
        > 0, the estimated number of bytes that the final fit may take beside the table: 2e9, or
        "2GB" (KB, MB, GB and TB are powers of 1,000). None: half of the memory that is available at
        that time. If the whole kernel needs more, centres or features are used, as many as fit. If
        even these need more, `fit` raises a ValueError. It is `--memory` of the command. Choosing
        the settings takes a few hundred megabytes, for any number of rows.
    temp_folder : str or path, optional
        The folder of temporary files for the encoded rows of a source or memory map, of which near
        rows are chosen: up to three times 4 bytes a number. The model maps them, and its file has
        them. None: they are in memory. The command uses the folder of `--model`.
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
    lengthscales_ : dict of str to float
        The lengthscale of each encoded column, by its name: ``{"age": 1.2, "town=Rome": 30.0}``.
        Its unit is that of the encoded column, for a number one standard deviation; the longer,
        the smoother the influence, and inf means none. Empty if the kernel has no lengthscales.
    alpha_ : float or None
    model_ : KernelRidge, RandomFeatureRidgeCV, NearKernelRidge or None
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
    by collecting the encoded rows in memory, if `max_memory` has room for them. Near rows collect
    them there or in `temp_folder`, and are chosen by all of them. If all rows are drawn, the fit is
    the same as for one array. With groups, or a splitter as `cv`, a memory map is copied into
    memory.

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
        _deviations=holds(Deviations),
        _flat=flag(),
        _lowest=(doubles("t") | nothing()).if_there(),
        _highest=(doubles("t") | nothing()).if_there(),
    )
    _lowest: Doubles | None = None  # targets of the fit, see `ends_of`
    _highest: Doubles | None = None

    @with_remedies
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
        warn_of_order(X, y=y, sample_weight=sample_weight, groups=groups)
        if not is_source(X):
            if y is None:
                raise ValueError(
                    "requires y to be passed, but the target y is None: KernelRegressor needs "
                    "targets"
                )
            names = map(str, getattr(y, "columns", [getattr(y, "name", "")]))
            y = np.asarray(check_targets(y, X))
            for name, target in zip(names, y.reshape(len(y), -1).T, strict=False):
                if told := about_angles(name, target):
                    warn(told)
            self._lowest, self._highest = ends_of(y.reshape(len(y), -1))
        self._fit_table(X, y, sample_weight, groups, _columns_of_targets)
        self._deviations.set_scale(self.model_)
        return self

    def _prepare(self, n_dim: int, n_targets: int) -> None:
        self._flat = n_dim == 1
        self._deviations = Deviations.uncorrected(n_targets)

    def _calibrate(self, choice: Choice) -> None:
        groups = self.encoder_.groups()
        varies = len(groups.kinds) <= MOST_LENGTHS
        self._deviations = calibrated(choice, groups.of_columns if varies else None)

    @with_remedies
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
            that of y; beside a linear trend both go on with it, and where columns differ that were
            copies the deviation grows with the row's distance from the middle of all rows. It is
            also that of y, at least, for a row without a number or place that hardly any training
            row lacked, and for a row with a category that no training row had, unless predictions
            hardly depend on that column, or it has 8 or more categories: then it grows by how much
            these differ. Known categories stand for one that is new, and the prediction is their
            mean. If the model predicts the mean, the standard deviation is that of y everywhere: 0
            if all training targets were equal, NaN after a fit to one row.
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
        predicted = self._by_rows(work, X, shape, results=1 + return_std)
        if self._lowest is not None and model is self:  # rows in memory
            means = (predicted[0] if return_std else predicted).reshape(-1, self._lowest.size)
            if told := about_negative(means, self._lowest, self._scales):
                warn(told)
            if self._highest is not None and (
                told := about_far(means, self._lowest, self._highest)
            ):
                warn(told)
        return predicted

    def _means_of(self, X: Data) -> Doubles:
        rows, unknown = self._encoded(X)
        mean = self._mean(rows)
        for affected, _, stand_ins in self.encoder_.stand_ins(rows, unknown, self._mean):
            mean[affected] = np.mean([self._mean(known) for known in stand_ins], axis=0)
        return mean[:, 0] if self._flat else mean

    def _deviations_of(self, X: Data) -> Doubles:
        return self._with_deviations(X)[1]

    def _with_deviations(self, X: Data) -> tuple[Doubles, Doubles]:
        rows, unknown = self._encoded(X)
        if self.model_ is None:
            mean = self._mean(rows)
            scales = np.full_like(self._scales, np.nan) if self._of_one_row else self._scales
            std = np.tile(scales, (len(mean), 1))
        else:
            mean, std = self._of_known(rows, unknown)
            for affected, n_levels, stand_ins in self.encoder_.stand_ins(rows, unknown, self._mean):
                new = self._of_new(stand_ins, n_levels, unknown[affected])
                mean[affected], std[affected] = new
            varies = self._scales > 0
            std = np.maximum(std, LEAST_DEVIATION * varies * (np.abs(mean) + self._scales))
        shape = mean.shape[:1] if self._flat else mean.shape
        return mean.reshape(shape), std.reshape(shape)

    def _of_known(self, rows: Doubles, unknown: NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        """Return predictions and deviations of encoded rows in units of the targets."""
        predicted, std = self.model_.predict(rows, return_std=True)
        # Where columns leave the axes of the fit, any slope may be: one of y by each column's.
        off = np.linalg.norm(np.column_stack([np.ones(len(rows)), rows]), axis=1)
        std = np.where(np.isinf(std).T, off, std.T).T
        deviations, spread = self._deviations, Spread.of(self.model_, std)
        factors = deviations.factors_of(self.encoder_.incomplete(rows))
        std = spread.widened(factors, deviations.usual_of(spread), deviations.outer) * self._scales
        std = std * deviations.varying(rows)
        doubt = self._doubt(rows, unknown)
        doubt[(factors == 0).any(axis=1)] = np.inf
        return self._in_units(predicted), self._doubted(std, doubt)

    def _known(self, X: Data) -> Doubles:
        """Return the share of the function's variance, without noise, that the rows take away."""
        rows, _ = self._encoded(X)
        if self.model_ is None or self.alpha_ is None:
            return np.ones(len(rows))
        _, std = self.model_.predict(rows, return_std=True)
        return 1.0 - left_unknown(np.square(std), self.model_.noise_variance_, self.alpha_)

    def _of_new(
        self, stand_ins: Iterable[Doubles], n_levels: int, unknown: NDArray[np.bool_]
    ) -> tuple[Doubles, Doubles]:
        """Return predictions and deviations of rows with a new level, which known ones stand for.

        A new level is another of many that vary; of few levels nobody knows how others vary.
        """
        means, variances = [], []
        for place, rows in enumerate(stand_ins):
            means.append(self._mean(rows))
            if place % ONE_IN == 0:
                variances.append(np.square(self._of_known(rows, unknown)[1]))
        mean, std = np.mean(means, axis=0), np.sqrt(np.mean(variances, axis=0))
        if n_levels < FEWEST_LEVELS:
            return mean, self._doubted(std, np.ptp(means, axis=0))
        n = len(means)
        surely = stdtrit(n - 1, 0.975) / NORMAL_95 * math.sqrt(1 + 1 / n)
        return mean, np.hypot(std, surely * np.std(means, axis=0, ddof=1))

    def _doubted(self, std: Doubles, doubt: Doubles) -> Doubles:
        """Return deviations of predictions that may be so far off; far off, they tell nothing."""
        return np.where(doubt > std, np.maximum(std, self._scales), np.hypot(std, doubt))

    def _with_slopes(self, X: Data, return_std: bool) -> Any:
        check_not_source(X)
        X = as_frame(X)
        means = self.predict(X, return_std)
        with collected_warnings():  # `predict` gave them already
            rows, unknown, places, directions = self.encoder_._with_slopes(X)
        gone = np.isnan(directions).any(axis=2)[:, None]
        along = np.nan_to_num(directions)
        slopes = self._slopes(rows, along, return_std)
        for affected, _, stand_ins in self.encoder_.stand_ins(rows, unknown, self._mean):
            of_known = [self._slopes(known, along[affected], False)[0] for known in stand_ins]
            slopes[0][affected] = np.mean(of_known, axis=0)
        if return_std:
            slopes[1] *= self._widened_slopes(rows, unknown)[:, :, None]
        results = [*means] if return_std else [means]
        for unscaled in slopes:
            values = np.where(gone, np.nan, unscaled * self._scales[:, None])
            values = values[:, 0] if self._flat else values
            if hasattr(X, "columns"):
                names = self.feature_names_in_[places]
                results.append(dict(zip(names, np.moveaxis(values, -1, 0), strict=True)))
            else:
                of_all = np.full((*values.shape[:-1], self.n_features_in_), np.nan)
                of_all[..., places] = values
                results.append(of_all)
        return tuple(results)

    def _slopes(self, rows: Doubles, directions: Doubles, return_std: bool) -> list[Doubles]:
        """Return slopes of the model, (n, n_targets, n_columns), and perhaps their deviations."""
        if isinstance(self.model_, KernelRidge | NearKernelRidge):
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
        factors = self._deviations.factors_of(self.encoder_.incomplete(rows))
        factors[(factors == 0).any(axis=1) | unknown.any(axis=1)] = np.nan
        return np.maximum(factors * self._deviations.varying(rows), 1.0)

    def _doubt(self, rows: Doubles, unknown: NDArray[np.bool_]) -> Doubles:
        """Return how far apart predictions may be where numbers, dates or places are unknown."""
        doubt = np.zeros((len(rows), len(self._means)))
        for column in self.encoder_.columns_:
            gone = unknown[:, column.inputs].any(axis=1)
            if gone.any() and column.kind != "category":
                places = self.encoder_.sources_ == column.inputs[0]
                changed = in_place(rows[gone], places, column.extremes())
                means = [self._mean(each) for each in changed]
                doubt[gone] += np.ptp(means, axis=0) if means else np.inf
        return doubt


def _columns_of_targets(y: ArrayLike, X: Any) -> Doubles:
    """Return targets of shape (n, n_targets), checked."""
    targets = np.asarray(check_targets(y, X))
    return targets.reshape(len(targets), -1)
