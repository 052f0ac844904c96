"""Canonical correlations of the features of two views, in one pass over the data."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import svd

from gzkcore._util.linalg import eigh
from gzkcore._util.state import doubles, entries, has, nothing, stored, whole
from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore._util.validation import (
    check_array,
    check_integer,
    check_lengths,
    check_not_negative,
    check_some_weight,
    check_weights,
)
from gzkcore._util.wording import counted
from gzkcore.features.fit_rows import fit_features as fit_to_source
from gzkcore.passes.moments import MomentsAccumulator
from gzkcore.passes.streams import Reader, fit_on_rows, reduced
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch, is_source
from gzkcore.rows.survey import survey_of

from .base import Solved, check_same_features, new_features, signs_of
from .components import ComponentLearner, scores

__all__ = ["RandomFeatureCCA"]


class RandomFeatureCCA(ComponentLearner):
    """Canonical correlation of the features of two views: kernel CCA in linear time.

    Finds pairs of directions a, b in the spaces of the features z(x) and u(y) along which the two
    views of the same rows have the largest correlation; each pair is uncorrelated with those
    before:

        maximise  a^T C_xy b   where  a^T (C_xx + alpha I) a = b^T (C_yy + alpha I) b = 1

    with the centred sums C of one pass over tiles of rows.

    Parameters
    ----------
    features : transformer, default=None
        Features of the first view, as for `RandomFeatureRidge`.
    features_y : transformer, default=None
        Features of the second view; None is a clone of `features`.
    n_components : int, default=2
        Number of pairs of directions.
    alpha : float, default=1.0
        >= 0, added to the diagonals of the centred Z^T W Z and U^T W U, as in `RandomFeatureRidge`.
        With 0 and many features even unrelated views seem correlated.
    random_state : int, RandomState, Generator or None, default=None
        As for `RandomFeatureRidge`.

    Attributes
    ----------
    features_, features_y_ : transformer
        The fitted features.
    canonical_correlations_ : ndarray of shape (n_components,)
        Correlations of the pairs of scores on the training rows.
    x_weights_, y_weights_ : ndarray of shape (n_features_out, n_components)
        The directions, scaled so that the scores of the training rows have unit variance. The
        largest entry of each direction of x is positive.
    x_mean_, y_mean_ : ndarray
        Means of the features.
    moments_ : MomentsAccumulator
        The sums from which all other results follow.
    n_features_in_, n_features_in_y_ : int
        Columns of the first view, and of the second.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only if all column names of X are strings.

    See Also
    --------
    sklearn.cross_decomposition.CCA : Linear CCA of the columns themselves.

    Notes
    -----
    Time: n (p + r)^2 for p and r features of the two views, and a multiple of (p + r)^3 once.
    Memory: 8 (p + r)^2 bytes per thread. If alpha = 0 and features are linearly dependent,
    directions that consist of rounding errors are left out.

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

    _state = stored(
        features_y=(has("transform") | nothing()).if_there(),
        features_y_=has("transform"),
        n_features_in_y_=whole(1),
        _solution=entries(
            canonical_correlations_=doubles("k"),
            x_weights_=doubles("p", "k"),
            y_weights_=doubles("r", "k"),
            x_mean_=doubles("p"),
            y_mean_=doubles("r"),
        ).if_there(),
    )

    canonical_correlations_ = Solved()
    x_weights_ = Solved()
    y_weights_ = Solved()
    x_mean_ = Solved()
    y_mean_ = Solved()

    n_components: Any
    alpha: Any
    features_y_: Any
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

    def _start_moments(self, reader: Reader, y: Any, sample_weight: Any) -> MomentsAccumulator:
        self.features_ = reader.fit(new_features(self.features, self.random_state))
        second = self.features if self.features_y is None else self.features_y
        features_y = new_features(second, self.random_state, "features_y")
        if reader.array is None and not reader.one_pass:
            views = y if reader.distributed else _SecondViews(reader.source)
            source = as_source(views, None, sample_weight if reader.distributed else None)
            self.features_y_ = fit_to_source(features_y, source, survey_of(source))
        else:
            self.features_y_ = fit_on_rows(
                features_y, reader.targets, None, reader.weight, reader.one_pass, "y"
            )
        return MomentsAccumulator(self.features_, self.features_y_)

    def _check_same_features(self, other: Self) -> None:
        super()._check_same_features(other)
        check_same_features(self.features_y_, other.features_y_, self.n_features_in_y_)

    def _validate(self, X: Data, y: Any, reset: bool) -> tuple[Any, Any]:
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs "
                "a second view of the rows"
            )
        X, y = self._columns(X, reset), self._validate_y(y, reset)
        check_lengths(X, y)
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
        check_integer("n_components", self.n_components, 1)
        check_not_negative("alpha", self.alpha)

    def _solve(self) -> dict[str, Any]:
        self._check_parameters()
        moments = self.moments_.finalize()
        k = self.n_components
        x_root = self._inverse_root(moments.scatter, moments.mean, moments.weight)
        y_root = self._inverse_root(moments.scatter_y, moments.mean_y, moments.weight)
        most = min(x_root.shape[1], y_root.shape[1], moments.n_rows)
        if k > most:
            raise ValueError(
                f"n_components={k} is too large: the views have at most {most} directions in "
                f"common ({len(moments.mean)} and {len(moments.mean_y)} features, "
                f"n_samples={moments.n_rows}); use fewer components"
            )
        left, _, right = svd(x_root.T @ moments.cross @ y_root, full_matrices=False)
        a, b = (x_root @ left[:, :k]).T, (y_root @ right[:k].T).T
        signs = signs_of(a)[:, None]
        a, b = a * signs, b * signs
        freedom = moments.degrees_of_freedom
        forms = functools.partial(np.einsum, "ki,ij,kj->k", optimize=True)
        for axes, scatter in ((a, moments.scatter), (b, moments.scatter_y)):
            size = np.sqrt(forms(axes, scatter, axes) / freedom)
            np.divide(axes, np.where(size > 0, size, np.inf)[:, None], out=axes)
        return {
            "canonical_correlations_": forms(a, moments.cross, b) / freedom,
            "x_weights_": np.ascontiguousarray(a.T),
            "y_weights_": np.ascontiguousarray(b.T),
            "x_mean_": moments.mean,
            "y_mean_": moments.mean_y,
        }

    def _inverse_root(self, scatter: Doubles, mean: Doubles, weight: float) -> Doubles:
        """Return R with R^T (scatter + alpha I) R = I.

        If alpha = 0, directions of rounding errors are left out, in any units of the features.
        """
        if self.alpha > 0:
            values, vectors = eigh(scatter)
            return np.asarray(vectors / np.sqrt(np.maximum(values, 0.0) + self.alpha))
        eps = float(np.finfo(self.moments_.dtype).eps)
        size = np.sqrt(np.maximum(scatter.diagonal(), 0.0))
        varies = size > 8 * eps * np.sqrt(weight) * np.abs(mean)
        unit = np.zeros(len(size))
        np.divide(1.0, size, out=unit, where=varies)
        values, vectors = eigh(unit[:, None] * scatter * unit)
        exact = values > len(values) * eps * max(values[-1], 0.0)
        return np.asarray(unit[:, None] * vectors[:, exact] / np.sqrt(values[exact]))

    @property
    def _n_features_out(self) -> int:
        """Width of the output, for names of columns."""
        return int(self.x_weights_.shape[1])

    def transform(self, X: Data, y: Data | None = None) -> Any:
        """Return the scores of rows, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            For a source, only the scores of the first view are returned.
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
            return self._batches_mapped(X)
        x_scores = scores(self.features_, self._columns(X), self.x_mean_, self.x_weights_)
        if y is None:
            return x_scores
        y = self._validate_y(y, reset=False)
        return x_scores, scores(self.features_y_, y, self.y_mean_, self.y_weights_, "y")

    def score(
        self, X: Data, y: Data | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the mean of the correlations of the pairs of scores on these rows.

        On held-out rows it shows whether alpha is large enough.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        self._check_fitted()
        if not is_source(X):
            return _ScoreSums.of(Batch(X, y, sample_weight, 0), self).correlation()
        source, model = as_source(X, y, sample_weight), self._for_workers()
        return float(reduced(source, _ScoreSums.of, _ScoreSums.merge, model).correlation())


class _SecondViews:
    """The y of a source's batches, with their weights, as a source."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        for _, y, weight in self.source:
            if y is None:
                raise ValueError("a batch has no second view; the source must yield (X, y)")
            view = y if hasattr(y, "shape") else np.asarray(y)
            yield view[:, None] if view.ndim == 1 else view, None, weight


@dataclass
class _ScoreSums:
    """Mergeable sums of the products of two views' scores about their means."""

    weight: float
    means: Doubles  # of shape (2, n_components)
    products: Doubles  # of the first view, of the second, of both: (3, n_components)

    @classmethod
    def of(cls, batch: Batch, model: RandomFeatureCCA) -> "_ScoreSums":
        """Sum over a batch."""
        X, y = model._validate(batch.X, batch.y, reset=False)
        weight = check_weights(batch.sample_weight, X)
        w = np.ones(X.shape[0]) if weight is None else weight
        a = scores(model.features_, X, model.x_mean_, model.x_weights_)
        b = scores(model.features_y_, y, model.y_mean_, model.y_weights_, "y")
        total = float(w.sum())
        means = np.array([w @ a, w @ b]) / (total or 1.0)
        a, b = a - means[0], b - means[1]
        return cls(total, means, np.array([w @ products for products in (a * a, b * b, a * b)]))

    @staticmethod
    def merge(parts: Sequence["_ScoreSums"]) -> "_ScoreSums":
        """Put sums of different rows together."""
        total = sum(part.weight for part in parts)
        means = sum(part.means * (part.weight / (total or 1.0)) for part in parts)
        products = np.zeros_like(parts[0].products)
        for part in parts:
            a, b = part.means - means
            products += part.products + part.weight * np.array([a * a, b * b, a * b])
        return _ScoreSums(total, np.asarray(means), products)

    def correlation(self) -> float:
        """Return the mean over the pairs."""
        check_some_weight(self.weight)
        sizes = np.sqrt(self.products[0] * self.products[1])
        return float(np.mean(self.products[2] / np.where(sizes > 0, sizes, np.inf)))
