"""The rows that features are fitted to: all rows, or a random sample of a source."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore.kernels.base import asks_targets
from gzkcore.kernels.learned import learned_or_plain
from gzkcore.rows.coded import CodedRows
from gzkcore.rows.sources import Batch, rows_of
from gzkcore.rows.survey import Survey, without_zeros


@dataclass(frozen=True)
class FitRows:
    """Rows to fit to, with statistics of all rows if these are a sample."""

    X: Rows
    weight: Doubles | None = None  # weights of the rows, > 0; None: 1 each
    survey: Survey | None = None  # statistics of all rows; None: X is all, without weights
    source: Any = None  # all rows, if X is a sample of them
    used: Integers | None = None  # indices of X in the rows of fit, without those of weight 0
    columns: Any = None  # columns of the source in X; None: all
    y: Any = None  # targets of the rows of fit, for kernels that learn
    names: Any = None  # names of the columns of X, for kernels

    @classmethod
    def of_array(cls, X: Rows, sample_weight: Any, y: Any = None, names: Any = None) -> "FitRows":
        """Take valid rows with weights and targets; equal weights are dropped."""
        X, weight, used = without_zeros(X, sample_weight)
        if X.shape[0] == 0:
            raise ValueError("sample_weight is zero for every row; give some a weight > 0")
        # Kernels of rows with codes are numbers, which no statistics of the rows tell.
        if weight is None or weight.min() == weight.max() or isinstance(X, CodedRows):
            return cls(X, used=used, y=y, names=names)
        survey = Survey.of(Batch(X, None, weight, 0))
        return cls(X, weight, survey, used=used, y=y, names=names)

    @classmethod
    def of_survey(cls, X: Rows, survey: Survey, source: Any = None, names: Any = None) -> "FitRows":
        """Take the rows of a survey, valid ones: a sample of the source, or all."""
        if survey.complete:
            return cls.of_array(X, survey.weight, survey.targets, names)
        return cls(X, survey.weight, survey, source, y=survey.targets, names=names)

    def part(self, columns: Any) -> "FitRows":
        """Return these rows with some of all columns."""
        survey, X = self.survey, self.X[:, columns]
        if survey is not None:
            mean, squares = survey.mean[columns], survey.squares[columns]
            survey = replace(survey, mean=mean, squares=squares, rows=X)
        names = None if self.names is None else self.names[columns]
        return replace(self, X=X, survey=survey, columns=columns, names=names)

    @property
    def total(self) -> float:
        """Sum of the weights of these rows."""
        return float(self.X.shape[0] if self.weight is None else self.weight.sum())

    def sum(self, values: Doubles, part: slice = slice(None)) -> float:
        """Return the weighted sum of values of these rows, or of a part of them."""
        if self.weight is None:
            return float(values.sum())
        return float((values.T @ self.weight[part]).sum())

    @functools.cached_property
    def mean(self) -> Doubles:
        """Weighted mean of the columns over all rows, in double."""
        return _mean(self.X) if self.survey is None else self.survey.mean

    def resolve(self, kernel: Any) -> Any:
        """Resolve a kernel on all rows, whose columns it may name."""
        kernel = self.learned(kernel)
        known = kernel if self.survey is None else settled(kernel, self.survey)
        return known.resolve(self.X, self.names)

    def learned(self, kernel: Any) -> Any:
        """Return a kernel with the parameters learned from the targets, if any."""
        if self.y is None or not asks_targets(kernel):
            return kernel
        y = self.y if self.used is None else _safe_indexing(self.y, self.used)
        return learned_or_plain(kernel, self.X, y, self.names, self.weight)

    def numbers(self, rows: Integers) -> Integers:
        """Return the indices of these rows in the rows of fit."""
        return rows if self.used is None else self.used[rows]

    def reduce(
        self,
        work: Callable[[Rows, Doubles | None], Any],
        merge: Callable[[Sequence[Any]], Any],
        check: Callable[[Any], Rows],
    ) -> Any:
        """Return work(rows, weight) of all rows, by another pass if these are a sample.

        Results of batches are merged; check(rows) validates the rows of a batch.
        """
        if self.source is None:
            return work(self.X, self.weight)
        batch_work = functools.partial(_of_batch, work, check, self.columns)
        return self.source.reduce(batch_work, functools.partial(_merged, merge))


def _of_batch(
    work: Callable[[Rows, Doubles | None], Any],
    check: Callable[[Any], Rows],
    columns: Any,
    batch: Batch,
) -> Any:
    """Return work(rows, weight) of a batch, None if all weights are 0."""
    X, weight, _ = without_zeros(rows_of(batch.X), batch.sample_weight)
    if X.shape[0] == 0:
        return None
    return work(check(X if columns is None else X[:, columns]), weight)


def _merged(merge: Callable[[Sequence[Any]], Any], parts: Sequence[Any]) -> Any:
    parts = [part for part in parts if part is not None]
    return merge(parts) if len(parts) > 1 else parts[0] if parts else None


def _mean(X: Rows) -> Doubles:
    """Column means in double, tile by tile."""
    if sparse.issparse(X):
        total = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    else:
        total = np.zeros(X.shape[1])
        for start in range(0, X.shape[0], 65536):
            total += X[start : start + 65536].sum(axis=0, dtype=np.float64)
    total /= X.shape[0]
    return total


def asks_no_rows(features: Any) -> bool:
    """Return whether fitted features do not depend on the rows."""
    known = getattr(features, "_asks_no_rows", None)
    return isinstance(features, FrozenEstimator) or (known is not None and bool(known()))


def fit_features(features: Any, source: Any, survey: Survey, names: Any = None) -> Any:
    """Fit features to a source that can be read again, given the survey of its rows.

    Up to SAMPLE_ROWS rows are fitted as in one array, of more rows a random sample. Features of
    this package also use the survey of all rows, and read the source again for norms; others use
    the sample, except for gamma="scale" (as in `sklearn.kernel_approximation.RBFSampler`): then a
    fitted clone is returned, whose gamma is a number.
    """
    if hasattr(features, "_fit_sample"):
        return features._fit_sample(survey, source, names)
    gamma = getattr(features, "gamma", None)
    if not survey.complete and isinstance(gamma, str) and gamma == "scale":
        spread = survey.variance * survey.mean.size
        features = clone(features).set_params(gamma=1.0 / spread if spread else 1.0)
    targets = survey.targets if asks_targets(features) else None
    if survey.weight is not None and has_fit_parameter(features, "sample_weight"):
        return features.fit(survey.rows, targets, sample_weight=survey.weight)
    return features.fit(survey.rows, targets)


def settled(kernel: Any, survey: Survey) -> Any:
    """Return a kernel whose gamma="scale" is computed from all rows."""
    gamma = getattr(kernel, "gamma", None)
    if not isinstance(gamma, str) or gamma != "scale":
        return kernel
    number = kernel._from_variance(survey.mean.size, survey.variance)
    return type(kernel)(**kernel.get_params(deep=False) | {"gamma": number})
