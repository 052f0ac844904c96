"""The base of all regressors: reading rows with targets, predicting sources, scores."""

import copy
import functools
import math
import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score

from gzkcore._util.arguments import with_remedies
from gzkcore._util.callbacks import Progress, with_callbacks
from gzkcore._util.checkpoint import Checkpoint
from gzkcore._util.state import all_or_nothing
from gzkcore._util.typing import Data, Doubles
from gzkcore._util.validation import (
    check_not_negatives,
    check_scored,
    check_some_weight,
    check_targets,
    check_weights,
)
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.passes.kernel_passes import PassedRows
from gzkcore.passes.streams import Reader, Step, map_rows, reduced
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, is_dask, is_source

from .base import Learner


class RegressorScore(RegressorMixin):
    """The score of regressors, of rows in arrays or of a source."""

    def score(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return R^2 = 1 - (sum of squared errors) / (sum of squares of y about its mean).

        Of several targets it is the mean.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        if not is_source(X):
            check_scored(y)
            targets = check_targets(y, X)
            weight = check_weights(sample_weight, targets)
            check_some_weight(weight)
            predicted = cast(Any, self).predict(X)
            if predicted[:1].size != targets[:1].size:
                raise ValueError(
                    f"y has {counted(targets[:1].size, 'column')}, but the model predicts "
                    f"{predicted[:1].size}; pass the same targets as to fit"
                )
            return float(r2_score(targets, predicted, sample_weight=weight))
        model = cast(Any, self)._for_workers()
        source = as_source(X, y, sample_weight)
        return float(reduced(source, _score_of_batch, _R2Sums.merge, model).r2())


class Regressor(MultiOutputMixin, RegressorScore, Learner):
    """Base of all regressors: `fit` reads rows, `_fit` of a class solves."""

    fit_intercept: bool  # a parameter, named here for type checkers

    @with_remedies
    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Data,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the regression, or the regressions of a classifier, and return self.

        If an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            Learners on features read a memory map tile by tile and never copy it. A source is an
            iterable of batches (X, y) or (X, y, sample_weight), such as the result of
            `gzkcore.open_batches`, or a Dask array or data frame. If it can be read again, a first
            pass reads the norms and the variance, so that the features are those of the same rows
            in one array. For a classifier this pass reads the labels too; the first batch of an
            iterator must have all classes. A `KernelRidge` collects the rows of a source in memory.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. For a classifier labels, numbers or text, of shape (n_samples,). None for an
            iterable of batches; a second Dask collection if X is one.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0. In the objective a row of weight 2 counts as two rows. For estimates of
            the noise, standard deviations and generalised cross-validation it is one row whose
            noise has half the variance. For sources it is passed like y.
        checkpoint : Checkpoint, str or path, optional
            File to which the state of the fit is written every minute (see `Checkpoint`). If the
            file exists, the fit continues from it: data, batches and parameters must be the same,
            except for a larger `max_iter`. The file is removed at the end, unless `max_iter` was
            reached. Features must be those of this package. A learner on features that takes steps
            after its pass over the rows saves them in a second file, whose name ends with
            ``.steps``. A search with the whole kernel makes its choice again, and continues only
            the steps of the last fit.
        """
        self._forget()
        progress = Progress(self, None, self._step, X, y)
        self._look_ahead(X, y, sample_weight)
        reader = Reader(X, y, sample_weight, checkpoint)
        reader.begin(self)
        self._fit(reader, progress.step)
        progress.end()
        reader.finish()
        return self

    _step: ClassVar[str] = "batch"  # the name of a step for callbacks

    def _look_ahead(self, X: Data, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        """Read what a class must know of all rows before the first are fitted."""

    def _fit(self, reader: Reader, step: Step) -> None:
        """Fit to the rows of a reader that has begun; each step is run by `step`."""
        raise NotImplementedError

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> PassedRows:
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs "
                "targets; a source must yield (X, y)"
            )
        X = self._columns(X, reset)
        targets = self._targets(y, X, reset)
        if not reset and targets.shape[1:] != self._target_shape:
            before = f"(n, {self._target_shape[0]})" if self._target_shape else "(n,)"
            raise ValueError(
                f"y has shape {targets.shape}, but y of the rows fitted before has {before}; "
                "pass the same targets for all rows"
            )
        return X, targets, check_weights(sample_weight, X)

    def _targets(self, y: ArrayLike, X: Any, reset: bool) -> Doubles:
        """Return the numbers to be regressed, checked."""
        return np.asarray(check_targets(y, X))

    @property
    def _target_shape(self) -> tuple[int, ...]:
        """Shape of the targets of one row: () or (n_targets,)."""
        raise NotImplementedError

    @with_remedies
    def predict(self, X: Data, return_std: bool = False) -> Any:
        """Predict the targets, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
        return_std : bool, default=False
            Also return the standard deviation of a new observation, see the Notes of the class.

        Returns
        -------
        y : ndarray of float64 of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if `return_std` is True. For an iterable of batches, an iterator over the results
            of each batch; for a Dask collection, a Dask array (or two) that is not yet computed.
        """
        self._check_fitted()
        if is_source(X):
            model = self._for_workers(return_std)
            if not (return_std and is_dask(X)):
                work = functools.partial(model.predict, return_std=return_std)
                return map_rows(work, X, self._target_shape, results=1 + return_std)
            results = model.predict, functools.partial(_std_of_rows, model)
            return tuple(map_rows(work, X, self._target_shape) for work in results)
        X = self._columns(X)
        mean, variance = self._predict(X, return_std)
        shape = (X.shape[0], *self._target_shape)
        if variance is None:
            return mean.reshape(shape)
        return mean.reshape(shape), np.sqrt(variance).reshape(shape)

    def _predict(self, X: Any, return_std: bool) -> tuple[Doubles, Doubles | None]:
        """Return means and, with `return_std`, variances, of shape (n_samples, n_targets).

        The form of X was checked; values are checked when they are read.
        """
        raise NotImplementedError

    def _for_workers(self, return_std: bool = False) -> Self:
        """Return a copy for workers, which can only predict."""
        return super()._for_workers()


def _std_of_rows(model: Regressor, X: Any) -> Any:
    return model.predict(X, return_std=True)[1]


class _R2Sums:
    """Mergeable sums for R^2: of squared errors, and of y about its mean, for each target."""

    def __init__(self, y: Doubles, predicted: Doubles, weight: Any) -> None:
        y, predicted = y.reshape(len(y), -1), predicted.reshape(len(y), -1)
        w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        self.n_rows, self.weight = len(y), w.sum()
        self.mean = w @ y / self.weight if self.weight > 0 else np.zeros(y.shape[1])
        self.spread = w @ np.square(y - self.mean)
        self.errors = w @ np.square(y - predicted)

    @classmethod
    def merge(cls, parts: Sequence["_R2Sums"]) -> "_R2Sums":
        """Put sums of different rows together."""
        made = copy.copy(parts[0])
        made.n_rows = sum(part.n_rows for part in parts)
        made.weight = sum(part.weight for part in parts)
        means = np.sum([part.weight * part.mean for part in parts], axis=0)
        made.mean = means / max(made.weight, 1e-300)
        spreads = [part.spread + part.weight * np.square(part.mean - made.mean) for part in parts]
        made.spread = np.sum(spreads, axis=0)
        made.errors = np.sum([part.errors for part in parts], axis=0)
        return made

    def r2(self) -> float:
        """Return the mean of R^2 over the targets, as scikit-learn defines it."""
        check_some_weight(self.weight)
        if self.n_rows < 2:
            warn("R^2 of a single row is unknown; score more rows", UndefinedMetricWarning)
            return math.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = 1.0 - self.errors / self.spread
        constant = self.spread == 0
        scores[constant] = np.where(self.errors[constant] == 0, 1.0, 0.0)
        return float(scores.mean())


def _score_of_batch(batch: Batch, model: Any) -> _R2Sums:
    if batch.y is None:
        raise ValueError("score needs the targets; the source must yield (X, y)")
    X, y, sample_weight, _ = batch
    return _R2Sums(check_targets(y, X), model.predict(X), check_weights(sample_weight, X))


def check_alphas(alphas: ArrayLike, name: str, shape: tuple[int, ...] | None = None) -> Doubles:
    """Return one alpha, or one per target, or (shape=None) a list of candidates, in float64."""
    values = check_not_negatives(name, alphas)
    if shape is None:
        values = np.atleast_1d(values)
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"{name}={alphas!r} must be a list of one or more numbers >= 0")
    elif shape == () and values.shape != ():
        raise ValueError(
            f"{name}={alphas!r} has shape {values.shape}, but y of shape (n_samples,) is one "
            "target; give a number"
        )
    elif values.shape not in ((), shape):
        raise ValueError(
            f"{name} has shape {values.shape}, but y has "
            f"{counted(int(np.prod(shape)), 'target')}; give one number, or one for each target"
        )
    return values
