"""The base of learners of components, which are computed from the moments of one pass."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from gzkcore._util.callbacks import Progress, with_callbacks
from gzkcore._util.checkpoint import Checkpoint
from gzkcore._util.state import all_or_nothing, holds, stored
from gzkcore._util.typing import Data, Doubles, Floats
from gzkcore._util.validation import check_same_class, check_weights, float_dtype
from gzkcore.passes.moments import MomentsAccumulator
from gzkcore.passes.streams import Reader, map_rows
from gzkcore.passes.tiles import for_each_tile
from gzkcore.rows.sources import type_of

from .base import FeatureLearner, Resumable, check_same_features


class ComponentLearner(
    Resumable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureLearner
):
    """Base of learners of components: linear maps of the features, computed from `moments_`."""

    _state = stored(moments_=holds(MomentsAccumulator))

    @all_or_nothing
    @with_callbacks
    def fit(
        self,
        X: Data,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the features, find the components, and return self.

        If an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            A memory map is read tile by tile and never copied. A source is an iterable of batches,
            each X, (X, y) or (X, y, sample_weight), or a Dask collection.
        y : array-like or sparse matrix of shape (n_samples, n_features_y) or (n_samples,), optional
            For `RandomFeatureCCA` the second view of the same rows: None for an iterable of
            batches, which contain it; a second Dask collection for a Dask collection. For
            `RandomFeaturePCA` it is passed to features that use it, and otherwise ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0; a row of weight 2 counts as two rows.
        checkpoint : Checkpoint, str or path, optional
            As for `RandomFeatureRidge.fit`.
        """
        self._forget()
        reader = self._start(X, y, sample_weight, checkpoint)
        self._solution = self._solve()
        reader.finish()
        return self

    @all_or_nothing
    @with_callbacks
    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows to those seen so far, and return self. The first one fits features.

        If an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        if self._continues(X):
            rows = self._rows(X, y, sample_weight)
            self._outdate()
            self.moments_.add(*rows)
            return self
        self._forget()
        self._start(X, y, sample_weight, one_pass=True)
        return self

    def merge(self, other: Self) -> Self:
        """Add the rows that another model with the same fitted features has seen; return self.

        Parameters
        ----------
        other : model of the same class
            A fitted model with the same features (pass these fitted in a `FrozenEstimator`, or with
            the same `random_state`, centre and radius).
        """
        check_same_class(self, other)
        self._check_fitted()
        other._check_fitted()
        self._check_same_features(other)
        self._outdate()
        self.moments_.merge(other.moments_)
        return self

    def _start(
        self, X: Any, y: Any, sample_weight: Any, checkpoint: Any = None, one_pass: bool = False
    ) -> Reader:
        """Fit the features and sum over the first rows, or all."""
        self._check_parameters()
        reader = Reader(X, y, sample_weight, checkpoint, one_pass=one_pass)
        reader.begin(self)
        if not reader.resume(self):
            self.moments_ = self._start_moments(reader, y, sample_weight)
        progress = Progress(self, None, "batch", X, y)
        reader.accumulate(self, self.moments_, progress.step)
        progress.end()
        return reader

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> Any:
        X, y = self._validate(X, y, reset=reset)
        return X, y, check_weights(sample_weight, X)

    def _check_same_features(self, other: Self) -> None:
        check_same_features(self.features_, other.features_, int(self.n_features_in_))

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _validate(self, X: Data, y: Any, reset: bool) -> tuple[Any, Any]:
        """Check the form of X and of the second view, if any, and return both."""
        raise NotImplementedError

    def _start_moments(self, reader: Reader, y: Any, sample_weight: Any) -> MomentsAccumulator:
        """Fit the features to the first rows, or to all, and return empty moments."""
        raise NotImplementedError

    def _batches_mapped(self, X: Any) -> Any:
        """Transform the batches of a source."""
        model: Any = self._for_workers()
        return map_rows(model.transform, X, (self._n_features_out,), type_of(X))


def scores(features: Any, X: Any, mean: Doubles, axes: Doubles, name: str = "X") -> Floats:
    """Return (Z - mean) axes, tile by tile."""
    out = np.empty((X.shape[0], axes.shape[1]), float_dtype(X))

    def use(_thread: int, rows: slice, Z: Floats) -> None:
        out[rows] = (Z - mean.astype(Z.dtype)) @ axes.astype(Z.dtype)

    for_each_tile(features, X, use, name=name)
    return out
