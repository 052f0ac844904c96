"""Normalisation of columns by mean and range, also for sparse rows and for rows in batches."""

from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.model_io import save
from gzkcore._util.state import all_or_nothing, doubles, flag, forget, stored, whole
from gzkcore._util.typing import Data, Doubles, Floats, Rows
from gzkcore._util.validation import check_bool

from .base import check_rows, contiguous

__all__ = ["MeanNormalizer"]


def _projected(projection: Any, X: Rows) -> Floats:
    """Return projected rows as an array; projections of scikit-learn may return sparse rows."""
    projected = projection.transform(X)
    return projected.toarray() if sparse.issparse(projected) else np.asarray(projected)


class MeanNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract the mean of each column and divide by its range (Section 3.2 of [1]_).

    Parameters
    ----------
    with_shift : bool, default=True
        False: only divide, which keeps sparse rows sparse. Distances, and features of
        shift-invariant kernels, are the same.

    Attributes
    ----------
    mean_, range_ : ndarray of shape (n_features,)
        A constant column has range 0 and becomes 0.
    n_samples_seen_ : int

    References
    ----------
    .. [1] A Simple and Efficient Method for Random Fourier Features; B15 in the errata.

    Examples
    --------
    >>> from gzkcore import MeanNormalizer
    >>> MeanNormalizer().fit_transform([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    array([[-0.4,  0. ],
           [-0.2,  0. ],
           [ 0.6,  0. ]])
    """

    _state = stored(
        with_shift=flag().if_there(),
        mean_=doubles("n_features_in_"),
        n_samples_seen_=whole(1),
        _total=doubles("n_features_in_"),
        _low=doubles("n_features_in_"),
        _high=doubles("n_features_in_"),
    )

    n_samples_seen_: int
    _total: Doubles
    _low: Doubles
    _high: Doubles

    def __init__(self, with_shift: bool = True) -> None:
        self.with_shift = with_shift

    @property
    def range_(self) -> Doubles:
        """Largest minus smallest value of each column."""
        check_is_fitted(self, "mean_")
        width: Doubles = self._high - self._low
        return width

    @all_or_nothing
    def fit(self, X: Data, y: object = None) -> Self:
        """Find mean and range of each column.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        forget(self)
        return self.partial_fit(X)

    @all_or_nothing
    def partial_fit(self, X: Data, y: object = None) -> Self:
        """Add rows, as `fit` takes them: the result is that of `fit` on all of them at once."""
        fresh = not hasattr(self, "mean_")
        check_bool("with_shift", self.with_shift)
        X = check_rows(self, X, reset=fresh)
        with np.errstate(over="ignore"):
            total: Doubles = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
            total = total if fresh else self._total + total
        if sparse.issparse(X):
            low, high = (np.asarray(f(axis=0).todense()).ravel() for f in (X.min, X.max))
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        low, high = low.astype(np.float64), high.astype(np.float64)
        if not fresh:
            low, high = np.minimum(self._low, low), np.maximum(self._high, high)
        with np.errstate(divide="ignore", over="ignore"):
            spans = np.subtract(high, low, dtype=X.dtype)
            unusable = ~np.isfinite(spans) | ((spans > 0) & ~np.isfinite(1 / spans))
            unusable |= ~np.isfinite(total)
        if unusable.any():
            column = int(np.argmax(unusable))
            raise ValueError(
                f"column {column} of X, counted from 0, goes from {low[column]:g} to "
                f"{high[column]:g}: its sum, or one over its range, overflows; scale it"
            )
        self.n_samples_seen_ = X.shape[0] + (0 if fresh else self.n_samples_seen_)
        self._total = total
        self._low, self._high = low, high
        self.mean_ = self._total / self.n_samples_seen_
        return self

    def _factor(self) -> Doubles:
        """Return 1 / range, 0 for a constant column."""
        range_ = self.range_
        with np.errstate(divide="ignore"):
            return np.where(range_ > 0, 1 / range_, 0.0)

    def _mean_and_factor(self, dtype: DTypeLike) -> tuple[Floats, Floats]:
        """Return mean and 1 / range in a dtype, or raise if they exceed its range."""
        return contiguous(self.mean_, dtype), contiguous(self._factor(), dtype)

    def transform(self, X: Data) -> Rows:
        """Normalise X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Sparse only with with_shift=False.

        Returns
        -------
        {ndarray, csr_array} of shape (n_samples, n_features)
        """
        check_is_fitted(self, "mean_")
        X = check_rows(self, X, reset=False)
        mean, factor = self._mean_and_factor(X.dtype)
        if not isinstance(X, np.ndarray):
            if self.with_shift:
                raise ValueError(
                    "subtracting the means would make every entry of this sparse X nonzero; use "
                    "with_shift=False, which does not change distances and shift-invariant "
                    "kernels, or project(projection, X), which subtracts the projected means"
                )
            scaled = X.copy()
            scaled.data = X.data * factor[X.indices]
            return scaled
        if not self.with_shift:
            return X * factor
        shifted: Floats = X - mean
        return np.multiply(shifted, factor, out=shifted)

    def project(self, projection: Any, X: Data) -> Floats:
        """Project the normalised rows without making sparse ones dense.

        S ((x - mean) / range) = S (x / range) - S (mean / range): the projection of the shift is
        subtracted, so that sparse rows cost O(nnz). It is always subtracted; `with_shift` concerns
        `transform` only.

        Parameters
        ----------
        projection : fitted transformer
            A linear one, such as `BlockProjection`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "mean_")
        X = check_rows(self, X, reset=False)
        mean, factor = self._mean_and_factor(X.dtype)
        if isinstance(X, np.ndarray):
            return _projected(projection, (X - mean) * factor)
        scaled = X.copy()
        scaled.data = X.data * factor[X.indices]
        shift = (self.mean_ * self._factor()).astype(X.dtype)
        return _projected(projection, scaled) - _projected(projection, shift[None])

    def save(self, path: Any) -> None:
        """Write the normaliser to a file, see `gzkcore.load`; an existing one is replaced."""
        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # for fit and project
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
