"""Canonical correlations of the features of two views, in one pass over the data."""

import os
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import svd
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from gzkcore._util.callbacks import Progress, with_callbacks
from gzkcore._util.linalg import eigh
from gzkcore._util.model_io import stored
from gzkcore._util.typing import Data, Doubles, Floats, Seed
from gzkcore._util.wording import counted
from gzkcore.features.fit_rows import fit_features as fit_to_source
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import is_dask, is_source, type_of
from gzkcore.rows.survey import survey_of

from .base import (
    FeatureLearner,
    Solved,
    check_not_negative,
    check_one_batch,
    check_same_features,
    check_whole,
    new_features,
    signs_of,
)
from .gram import MomentsAccumulator, check_weights, float_dtype, for_each_tile
from .streams import Checkpoint, Reader, SecondViews, fit_on_rows, map_rows

__all__ = ["RandomFeatureCCA"]


class RandomFeatureCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureLearner):
    """Canonical correlation of the features of two views: kernel CCA in linear time.

    Finds pairs of directions a, b in the spaces of the features z(x) and u(y) along which the two
    views of the same rows are correlated most, each pair uncorrelated with those before:

        maximise  a^T C_xy b   where  a^T (C_xx + alpha I) a = b^T (C_yy + alpha I) b = 1

    with the centred sums C of one pass over tiles of rows.

    Parameters
    ----------
    features : transformer, default=None
        Of the first view. Cloned and fitted; wrap it in ``sklearn.frozen.FrozenEstimator`` to use
        it as it is. None is `KernelFeatures()`.
    features_y : transformer, default=None
        Of the second view; None is a clone of `features`.
    n_components : int, default=2
        How many pairs.
    alpha : float, default=1.0
        Added to the diagonals of Z^T W Z and U^T W U about their means, as in
        `RandomFeatureRidge`; not negative. Without it any features are rich enough to correlate
        what has nothing in common.
    random_state : int, RandomState, Generator or None, default=None
        Passed on to features whose own `random_state` is None.

    Attributes
    ----------
    features_, features_y_ : transformer
        The fitted features.
    canonical_correlations_ : ndarray of shape (n_components,)
        Correlations of the pairs of scores on the training rows.
    x_weights_ : ndarray of shape (n_features_out, n_components)
    y_weights_ : ndarray of shape (n_features_out of y, n_components)
        The directions, such that scores of the training rows have unit variance; the largest entry
        of each in x is positive.
    x_mean_, y_mean_ : ndarray
        Means of the features.
    moments_ : MomentsAccumulator
        The sums that all else is worked out from.
    n_features_in_ : int
    n_features_in_y_ : int
        Columns of the second view.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If X has column names that are all strings.

    See Also
    --------
    sklearn.cross_decomposition.CCA : Of the columns themselves.

    Notes
    -----
    Time n (p + r)^2 for p and r features of the two views, and some multiple of (p + r)^3 once;
    memory 8 (p + r)^2 bytes per thread. Where alpha = 0 and features are dependent, directions
    that are lost in rounding errors are left out.

    References
    ----------
    .. [1] Bach, Jordan, "Kernel Independent Component Analysis", JMLR 2002, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(-2, 2, 1000)
    >>> X = np.column_stack([t, rng.standard_normal(1000)])
    >>> y = np.column_stack([t**2, rng.standard_normal(1000)])  # t and t^2 do not correlate
    >>> model = RandomFeatureCCA(GegenbauerFeatures(Gaussian(0.5), 64), n_components=1).fit(X, y)
    >>> bool(model.canonical_correlations_[0] > 0.98)
    True
    """

    _state = stored("features_y_", "n_features_in_y_")

    canonical_correlations_ = Solved()
    x_weights_ = Solved()
    y_weights_ = Solved()
    x_mean_ = Solved()
    y_mean_ = Solved()

    n_components: Any
    alpha: Any
    features_: Any
    features_y_: Any
    moments_: MomentsAccumulator
    n_features_in_y_: int

    def __init__(
        self,
        features: Any = None,
        features_y: Any = None,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        random_state: Seed = None,
    ):
        self.features = features
        self.features_y = features_y
        self.n_components = n_components
        self.alpha = alpha
        self.random_state = random_state

    # Where a fit keeps its progress is nothing that a pipeline could route.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"checkpoint": UNUSED}

    # -- fitting ------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: Data,
        y: Data | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit the features of both views, and find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            The first view. A memory map is read tile by tile and never copied. A source is an
            iterable of batches (X, y) or (X, y, sample_weight), or a Dask collection.
        y : array-like or sparse matrix of shape (n_samples, n_features_y) or (n_samples,)
            The second view of the same rows, likewise. None for an iterable of batches; for a Dask
            collection, another one.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; a row of weight 2 counts as two rows.
        checkpoint : Checkpoint, str or path, optional
            File that the sums are written to every minute, and that a fit goes on from, as for
            `RandomFeatureRidge`.

        Returns
        -------
        self
            Unfitted, if anything fails or interrupts on the way.
        """
        self._forget()
        try:
            reader = self._start(X, y, sample_weight, checkpoint)
            self._solution = self._solve()
        except BaseException:
            self._forget()
            raise
        reader.finish()
        return self

    @with_callbacks
    def partial_fit(self, X: Data, y: Data, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows to those seen so far. Features are fitted on the first batch.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
            As before the call, if anything fails or interrupts on the way.
        """
        check_one_batch(X)
        if self.__sklearn_is_fitted__():
            rows = self._rows(X, y, sample_weight)
            self._outdate()
            self.moments_.add(*rows)
            return self
        self._forget()
        try:
            self._start(X, y, sample_weight, one_pass=True)
        except BaseException:
            self._forget()
            raise
        return self

    def _start(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        checkpoint: Any = None,
        one_pass: bool = False,
    ) -> Reader:
        """Fit the features and sum over the first rows, or all."""
        self._check_parameters()
        reader = Reader(X, y, sample_weight, checkpoint, one_pass=one_pass)
        reader.begin(self)
        if not reader.resume(self):
            features = new_features(self.features, self.random_state)
            second = self.features if self.features_y is None else self.features_y
            features_y = new_features(second, self.random_state, "features_y")
            self.features_ = reader.fit(features)
            if reader.array is None and not reader.one_pass:
                source = (
                    as_source(y, None, sample_weight)
                    if is_dask(X)
                    else as_source(SecondViews(reader.source))
                )
                self.features_y_ = fit_to_source(features_y, source, survey_of(source))
            else:
                self.features_y_ = fit_on_rows(
                    features_y, reader.targets, None, reader.weight, reader.one_pass, "y"
                )
            self.moments_ = MomentsAccumulator(self.features_, self.features_y_)
        progress = Progress(self, None, "batch", X, y)
        reader.accumulate(self, self.moments_, progress.step)
        progress.end()
        return reader

    def _rows(
        self, X: Data, y: Any, sample_weight: ArrayLike | None, reset: bool = False
    ) -> tuple[Any, Any, Any]:
        """Check rows, of the first batch with `reset`: return both views and their weights."""
        X, y = self._validate(X, y, reset=reset)
        return X, y, check_weights(sample_weight, X)

    def merge(self, other: "RandomFeatureCCA") -> Self:
        """Add the rows that another model with the same fitted features has seen.

        Parameters
        ----------
        other : RandomFeatureCCA
            Fitted; its features must be ours (pass them fitted in a `FrozenEstimator`, or with the
            same `random_state`, centre and radius).

        Returns
        -------
        self
        """
        self._check_fitted()
        other._check_fitted()
        check_same_features(self.features_, other.features_, int(self.n_features_in_))
        check_same_features(self.features_y_, other.features_y_, self.n_features_in_y_)
        self._outdate()
        self.moments_.merge(other.moments_)
        return self

    def _validate(self, X: Data, y: Any, reset: bool) -> tuple[Any, Any]:
        """Check both views but for their values, which are checked when they are read."""
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs "
                "a second view of the rows"
            )
        X = validate_data(self, X, reset=reset, accept_sparse="csr", ensure_all_finite=False)
        y = self._validate_y(y, reset)
        check_consistent_length(X, y)
        return X, y

    def _validate_y(self, y: Any, reset: bool) -> Any:
        lenient: Any = {"accept_sparse": "csr", "ensure_all_finite": False, "input_name": "y"}
        y = check_array(y, ensure_2d=False, dtype="numeric", **lenient)
        if y.ndim == 1:
            y = y[:, None]
        if reset:
            self.n_features_in_y_ = y.shape[1]
        elif y.shape[1] != self.n_features_in_y_:
            raise ValueError(
                f"y has {counted(y.shape[1], 'column')}, but {type(self).__name__} is expecting "
                f"{self.n_features_in_y_}; pass the same columns as to fit"
            )
        return y

    def _check_parameters(self) -> None:
        check_whole("n_components", self.n_components)
        check_not_negative("alpha", self.alpha)

    def _solve(self, found: Any = None) -> dict[str, Any]:
        self._check_parameters()
        found = self.moments_.finalize()
        k = self.n_components
        x_root = self._inverse_root(found.scatter)
        y_root = self._inverse_root(found.scatter_y)
        most = min(x_root.shape[1], y_root.shape[1], found.n_rows)
        if k > most:
            raise ValueError(
                f"n_components={k}, but the views have no more than {most} directions in common "
                f"({len(found.mean)} and {len(found.mean_y)} features, n_samples={found.n_rows}); "
                "use fewer components"
            )
        left, _, right = svd(x_root.T @ found.cross @ y_root, full_matrices=False)
        a, b = (x_root @ left[:, :k]).T, (y_root @ right[:k].T).T
        signs = signs_of(a)[:, None]
        a, b = a * signs, b * signs
        freedom = found.weight - 1.0 if found.weight > 1 else 1.0
        x_size = np.sqrt(np.einsum("ki,ij,kj->k", a, found.scatter, a, optimize=True) / freedom)
        y_size = np.sqrt(np.einsum("ki,ij,kj->k", b, found.scatter_y, b, optimize=True) / freedom)
        a /= np.where(x_size > 0, x_size, np.inf)[:, None]
        b /= np.where(y_size > 0, y_size, np.inf)[:, None]
        return {
            "canonical_correlations_": np.einsum("ki,ij,kj->k", a, found.cross, b, optimize=True)
            / freedom,
            "x_weights_": np.ascontiguousarray(a.T),
            "y_weights_": np.ascontiguousarray(b.T),
            "x_mean_": found.mean,
            "y_mean_": found.mean_y,
        }

    def _inverse_root(self, scatter: Doubles) -> Doubles:
        """Return R with R^T (scatter + alpha I) R = I, without directions that are only noise."""
        values, vectors = eigh(scatter)
        noise = len(values) * np.finfo(self.moments_.dtype).eps * max(values[-1], 0.0)
        kept = values > noise if self.alpha == 0 else np.full(len(values), True)
        root: Doubles = vectors[:, kept] / np.sqrt(np.maximum(values[kept], 0.0) + self.alpha)
        return root

    # -- what a fitted model can do -----------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        """Width of the output, for names of columns."""
        return int(self.x_weights_.shape[1])

    def transform(self, X: Data, y: Data | None = None) -> Any:
        """Return the scores of rows, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            Of a source, scores of the first view only.
        y : array-like or sparse matrix of shape (n_samples, n_features_y), optional

        Returns
        -------
        x_scores : ndarray of shape (n_samples, n_components)
            float32 for float32 X, else float64. For an iterable of batches, an iterator of these;
            for a Dask collection, a Dask array.
        y_scores : ndarray of shape (n_samples, n_components)
            Only if y is given.
        """
        self._check_fitted()
        if is_source(X):
            work = self._without_moments().transform
            return map_rows(work, X, (self._n_features_out,), type_of(X))
        X = validate_data(self, X, reset=False, accept_sparse="csr", ensure_all_finite=False)
        scores = _scores(self.features_, X, self.x_mean_, self.x_weights_)
        if y is None:
            return scores
        y = self._validate_y(y, reset=False)
        return scores, _scores(self.features_y_, y, self.y_mean_, self.y_weights_, "y")

    def score(self, X: Data, y: Data, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of the correlations of the pairs of scores on these rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        float
            At most 1. On rows that were not fitted it shows whether alpha is large enough.
        """
        self._check_fitted()
        X, y = self._validate(X, y, reset=False)
        weight = check_weights(sample_weight, X)
        a = _scores(self.features_, X, self.x_mean_, self.x_weights_)
        b = _scores(self.features_y_, y, self.y_mean_, self.y_weights_, "y")
        a, b = (V - np.average(V, axis=0, weights=weight) for V in (a, b))
        w = np.ones(len(a)) if weight is None else weight
        sizes = np.sqrt((w @ np.square(a)) * (w @ np.square(b)))
        return float(np.mean((w @ (a * b)) / np.where(sizes > 0, sizes, np.inf)))


def _scores(features: Any, X: Any, mean: Doubles, weights: Doubles, name: str = "X") -> Floats:
    """Return (Z - mean) weights, tile by tile."""
    scores = np.empty((X.shape[0], weights.shape[1]), float_dtype(X))

    def use(_lane: int, rows: slice, Z: Floats) -> None:
        scores[rows] = (Z - mean.astype(Z.dtype)) @ weights.astype(Z.dtype)

    for_each_tile(features, X, use, name=name)
    return scores
