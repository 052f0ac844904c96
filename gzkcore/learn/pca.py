"""Principal components of features: kernel PCA in one pass over the data and in bounded memory."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.linalg import eigh
from gzkcore._util.state import doubles, entries, number, stored, whole
from gzkcore._util.typing import Data, Doubles, Seed
from gzkcore._util.wording import counted
from gzkcore.passes.moments import MomentsAccumulator
from gzkcore.passes.streams import Reader
from gzkcore.rows.sources import is_source

from .base import Solved, new_features, signs_of
from .components import ComponentLearner, scores

__all__ = ["RandomFeaturePCA"]


class RandomFeaturePCA(ComponentLearner):
    """Principal components of the features of any transformer: kernel PCA in linear time.

    The axes are eigenvectors of the covariance of the features, summed in one pass over tiles of
    rows. The features of the data are never stored.

    Parameters
    ----------
    features, random_state
        As for `RandomFeatureRidge`.
    n_components : int, float or None, default=None
        Number of axes. A number between 0 and 1 is the share of the variance that they must
        explain. None keeps all axes whose variance exceeds rounding errors.
    whiten : bool, default=False
        Scale the output to unit variance.

    Attributes
    ----------
    features_ : transformer
        The fitted features.
    components_ : ndarray of shape (n_components_, n_features_out)
        The axes in the space of the features, strongest first; the largest entry of each is
        positive.
    explained_variance_ : ndarray of shape (n_components_,)
        Sum over the rows of w (component)^2, over (sum of w) - 1.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        Share of the variance of all features.
    mean_ : ndarray of shape (n_features_out,)
        Mean of the features.
    n_components_ : int
    moments_ : MomentsAccumulator
        The sums from which all other results follow.
    n_features_in_, feature_names_in_
        As for `RandomFeatureRidge`.

    See Also
    --------
    sklearn.decomposition.KernelPCA : Exact; time n^3 and memory n^2.

    Notes
    -----
    Time: n p^2 for the sums and up to 4 p^3 for p axes. Memory: about 8 p^2 bytes per thread. If
    the dot products of the features are exactly the kernel, the components of the rows are those of
    kernel PCA, scaled as in `sklearn.decomposition.KernelPCA`. With enough features the cost of
    projections is preserved up to a factor 1 +- eps: [1]_, Theorem 10, as corrected in the errata.

    References
    ----------
    .. [1] Han, Zandieh, Avron, "Random Gegenbauer Features for Scalable Kernel Methods", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 500)
    >>> radius = np.repeat([1.0, 3.0], 250)
    >>> X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    >>> features = GegenbauerFeatures(Gaussian(gamma=0.5), 128)
    >>> V = RandomFeaturePCA(features, n_components=3).fit_transform(X)
    >>> bool(V[:250, 0].min() > V[250:, 0].max()) or bool(V[:250, 0].max() < V[250:, 0].min())
    True
    """

    _state = stored(
        _solution=entries(
            n_components_=whole(0),
            components_=doubles("n_components_", "p"),
            explained_variance_=doubles("n_components_"),
            explained_variance_ratio_=doubles("n_components_", finite=False),
            mean_=doubles("p"),
            lost=number(),
        ).if_there()
    )

    components_ = Solved()
    explained_variance_ = Solved()
    explained_variance_ratio_ = Solved()
    mean_ = Solved()
    n_components_ = Solved()

    n_components: Any

    def __init__(
        self,
        features: Any = None,
        n_components: float | None = None,
        *,
        whiten: bool = False,
        random_state: Seed = None,
    ):
        self.features = features
        self.n_components = n_components
        self.whiten = whiten
        self.random_state = random_state

    def _start_moments(self, reader: Reader, y: Any, sample_weight: Any) -> MomentsAccumulator:
        self.features_ = reader.fit(new_features(self.features, self.random_state), y)
        return MomentsAccumulator(self.features_)

    def _validate(self, X: Data, y: Any, reset: bool) -> tuple[Any, None]:
        return self._columns(X, reset), None

    def _check_parameters(self) -> None:
        k = self.n_components
        share = isinstance(k, numbers.Real) and 0 < float(k) < 1
        whole = not isinstance(k, bool) and isinstance(k, numbers.Integral) and int(k) >= 1
        if not (k is None or share or whole):
            raise ValueError(
                f"n_components={k!r} must be a whole number >= 1, a share of the variance between "
                "0 and 1, or None for all"
            )

    def _solve(self) -> dict[str, Any]:
        self._check_parameters()
        moments = self.moments_.finalize()
        p = len(moments.mean)
        most, k = min(moments.n_rows, p), self.n_components
        if isinstance(k, numbers.Integral) and int(k) > most:
            raise ValueError(
                f"n_components={k} is more than {most}, the smaller of n_samples={moments.n_rows} "
                f"(rows with a positive weight) and the {counted(p, 'feature')}; use fewer "
                "components"
            )
        variance = moments.covariance
        total = float(np.trace(variance))
        wanted = int(k) if isinstance(k, numbers.Integral) else most
        values, vectors = eigh(variance, subset_by_index=[p - wanted, p - 1])
        values, axes = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T
        lost = p * float(np.finfo(self.moments_.dtype).eps) * values.max(initial=0.0)
        some = max(1, int(np.count_nonzero(values > lost)))  # with variance, at least one
        ratio = values / total if total > 0 else np.zeros_like(values)
        if k is None:
            wanted = some
        elif not isinstance(k, numbers.Integral):
            reached = int(np.searchsorted(np.cumsum(ratio), float(k), side="right"))
            wanted = min(reached + 1, some)
        axes = axes * signs_of(axes)[:, None]
        return {
            "components_": np.ascontiguousarray(axes[:wanted]),
            "explained_variance_": values[:wanted],
            "explained_variance_ratio_": ratio[:wanted],
            "mean_": moments.mean,
            "n_components_": wanted,
            "lost": float(lost),  # the size of rounding errors in eigenvalues
        }

    @property
    def _n_features_out(self) -> int:
        """Width of the output, for names of columns."""
        return int(self.n_components_)

    def _scales(self) -> Doubles:
        """Return the divisors of the components: 1, or their standard deviations."""
        values = np.asarray(self.explained_variance_)
        if not self.whiten:
            return np.ones_like(values)
        # Directions of rounding errors become 0, not noise of size 1.
        return np.where(values > self._solved()["lost"], np.sqrt(values), np.inf)

    def transform(self, X: Data) -> Any:
        """Return the components of rows, tile by tile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples, n_components_)
            float32 for float32 X, else float64. For an iterable of batches, an iterator of these;
            for a Dask collection, a Dask array.
        """
        self._check_fitted()
        if is_source(X):
            return self._batches_mapped(X)
        axes = self.components_.T / self._scales()
        return scores(self.features_, self._columns(X), self.mean_, axes)

    def to_features(self, V: ArrayLike) -> Doubles:
        """Return the features (n_samples, n_features_out) of components, 0 along all other axes.

        Features cannot be mapped back to rows of X, so there is no `inverse_transform`.

        Parameters
        ----------
        V : array-like of shape (n_samples, n_components_)
        """
        self._check_fitted()
        components = np.asarray(V, dtype=np.float64)
        if components.ndim != 2 or components.shape[1] != self.n_components_:
            raise ValueError(
                f"V has shape {components.shape}; pass what transform returns, of shape "
                f"(n_samples, {self.n_components_})"
            )
        scales = self._scales()
        sizes = np.where(np.isfinite(scales), scales, 0.0)
        return np.asarray((components * sizes) @ self.components_ + self.mean_)
