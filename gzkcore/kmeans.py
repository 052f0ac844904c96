"""k-means on features: kernel k-means tile by tile, without the kernel matrix or the features.

Lloyd's algorithm needs of a pass over the rows only the sums of each cluster, `ClusterAccumulator`.
Several starts share the features of a pass.
"""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from ._callbacks import Progress, with_callbacks
from ._learners import (
    FeatureLearner,
    batches,
    check_not_negative,
    check_whole,
    fit_features,
    new_features,
    some,
)
from ._random import as_seed_sequence
from ._typing import Data, Doubles, Floats, Integers, Seed
from .gram import ClusterAccumulator, check_weights, float_dtype, for_each_tile, width_of

__all__ = ["RandomFeatureKMeans"]

# The features of a sample, from which starts are drawn and on which they run first, take so much.
SAMPLE_BYTES = 1 << 26


class RandomFeatureKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, FeatureLearner
):
    """k-means on the features of any transformer: kernel k-means in linear time.

    Minimises sum_i w_i |z(x_i) - nearest centre|^2 by Lloyd's algorithm, over tiles of rows. The
    features of the data are never stored.

    Parameters
    ----------
    features : transformer, default=None
        Cloned and fitted; wrap it in ``sklearn.frozen.FrozenEstimator`` to use it as it is. None is
        `KernelFeatures()`.
    n_clusters : int, default=8
    init : {"k-means++", "random"} or array-like of shape (n_clusters, n_components), \
default="k-means++"
        How a start chooses its first centres among the rows of a sample, or these centres in the
        space of the features.
    n_init : int, default=4
        Starts, of which the best is kept; they share the features of a pass. Ignored with centres
        given.
    max_iter : int, default=300
        Most passes over the rows for a start.
    tol : float, default=1e-4
        A start is done when the squared changes of its centres add up to less than this times the
        mean variance of the features.
    random_state : int, RandomState, Generator or None, default=None
        Of sample and starts; passed on to features whose own `random_state` is None.

    Attributes
    ----------
    features_ : transformer
        The fitted features.
    cluster_centers_ : ndarray of shape (n_clusters, n_features_out)
        In the space of the features.
    labels_ : ndarray of int32 of shape (n_samples,)
        Cluster of each row.
    inertia_ : float
        The objective: the weighted sum of squared distances to the nearest centre.
    n_iter_ : int
        Passes over the rows that the best start took.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        If X has column names that are all strings.

    See Also
    --------
    gzkcore.metrics.clustering_cost : The cost of a clustering with the exact kernel.

    Notes
    -----
    A pass takes the features, 2 k p operations for each row and start, and p for the sums.
    Centres are drawn by scikit-learn's k-means++ on a random sample of as many rows as have 64 MB
    of features, where Lloyd's algorithm runs first; a few passes over all rows then suffice. A
    cluster that loses all its rows gets the row farthest from its centre. There is no
    `partial_fit`: Lloyd's algorithm has to read the rows again and again, and what one pass can do
    (``sklearn.cluster.MiniBatchKMeans`` on ``features.transform``) ends elsewhere.

    The objective is that of the features' own kernel, which is smaller where features lose more:
    compare clusterings by different features by `gzkcore.metrics.clustering_cost`. With features
    whose projection costs are right within 1 +- eps, and a clustering within 1 + g of the best one
    there, its exact cost is within (1 + g)(1 + eps) / (1 - eps) of the least: Lemma 14 of [1]_, as
    corrected in the errata, `gzkcore.theory.clustering_bound`.

    References
    ----------
    .. [1] Han, Zandieh, Avron, "Random Gegenbauer Features for Scalable Kernel Methods", 2022,
       sections 6.3, A.2.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 600)
    >>> radius = np.repeat([0.3, 3.0], 300)
    >>> X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    >>> features = GegenbauerFeatures(Gaussian(gamma=0.5), 128)
    >>> labels = RandomFeatureKMeans(features, n_clusters=2, random_state=0).fit_predict(X)
    >>> len(set(labels[:300].tolist()))
    1
    """

    tol: Any
    features_: Any
    cluster_centers_: Doubles
    labels_: NDArray[np.int32]
    inertia_: float
    n_iter_: int

    def __init__(
        self,
        features: Any = None,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int = 4,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Seed = None,
    ):
        self.features = features
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # -- fitting ------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the features, and find the clusters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            A memory map is read tile by tile, once in each pass, and never copied.
        y : object, optional
            For features that use it; else ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative.

        Returns
        -------
        self
            Unfitted, if anything fails or interrupts on the way.
        """
        self._forget()
        try:
            self._fit(X, y, sample_weight)
        except BaseException:
            self._forget()
            raise
        return self

    def _fit(self, X: Data, y: Any, sample_weight: ArrayLike | None) -> None:
        X = self._validate(X, reset=True)
        self._check_parameters()
        weight = check_weights(sample_weight, X)
        n_rows = X.shape[0] if weight is None else int(np.count_nonzero(weight))
        if not n_rows:
            raise ValueError("all sample weights are zero; give some rows a positive weight")
        if n_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={n_rows} (rows with a positive weight) should be >= n_clusters="
                f"{self.n_clusters}; use fewer clusters"
            )
        features = new_features(self.features, self.random_state)
        features = fit_features(features, X, y, one_pass=False)
        rng = np.random.RandomState(as_seed_sequence(self.random_state).generate_state(8))
        sample, of_sample = self._sample(features, X, weight, rng)
        centers = self._starts(sample, of_sample, rng)
        if len(sample) < n_rows:  # settle first where a pass costs next to nothing
            centers, _, _ = self._lloyd(_Ready(sample), sample, of_sample, centers)
            passes, rows = features, X
        elif len(sample) == X.shape[0]:
            passes, rows = _Ready(sample), sample
        else:
            passes, rows = features, X
        progress = Progress(self, self.max_iter, "iteration", X, y)
        centers, costs, n_iter = self._lloyd(passes, rows, weight, centers, progress)
        # The first of those that are as good as any: rounding errors must not decide.
        best = int(np.argmax(costs <= costs.min() * (1.0 + 1e3 * np.finfo(sample.dtype).eps)))
        labels = np.empty((X.shape[0], 1), np.int32)
        last = ClusterAccumulator(passes, centers[best])
        self._pass(last, rows, weight, labels)
        self.features_ = features
        self.cluster_centers_ = centers[best]
        self.labels_ = labels[:, 0]
        self.inertia_ = float(last.inertia[0])
        self.n_iter_ = int(n_iter[best])
        progress.end()
        found = np.unique(self.labels_).size
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _sample(
        self, features: Any, X: Any, weight: Doubles | None, rng: np.random.RandomState
    ) -> tuple[Floats, Doubles | None]:
        """Return the features of random rows with a positive weight, all if there is room."""
        most = max(SAMPLE_BYTES // (8 * width_of(features, X)), 10 * self.n_clusters)
        rows = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        chosen = X if len(rows) == X.shape[0] else X[rows]
        return transformed(features, chosen), some(weight, rows)

    def _starts(self, Z: Floats, weight: Doubles | None, rng: np.random.RandomState) -> Doubles:
        """Return first centres, (n_starts, n_clusters, n_features)."""
        k = self.n_clusters
        if not isinstance(self.init, str):
            centers = np.asarray(self.init, dtype=np.float64)
            if centers.shape != (k, Z.shape[1]) or not np.isfinite(centers).all():
                raise ValueError(
                    f"init has shape {centers.shape}; pass finite centres in the space of the "
                    f"features, of shape (n_clusters, n_components) = {(k, Z.shape[1])}"
                )
            return centers[None]
        starts = []
        for _ in range(self.n_init):
            if self.init == "random":
                share = None if weight is None else weight / weight.sum()
                starts.append(Z[rng.choice(len(Z), k, replace=False, p=share)])
            else:
                # About the mean, distances lose no digits.
                mean = Z.mean(axis=0)
                start, _ = kmeans_plusplus(Z - mean, k, sample_weight=weight, random_state=rng)
                starts.append(start + mean)
        return np.array(starts, dtype=np.float64)

    def _lloyd(
        self,
        features: Any,
        X: Any,
        weight: Doubles | None,
        centers: Doubles,
        progress: Progress | None = None,
    ) -> tuple[Doubles, Doubles, Integers]:
        """Move all centres to the means of their rows until they stay.

        Returns the centres, their costs for the rows' present clusters, and the passes taken.
        """
        centers = centers.copy()
        # The same for all passes: then centres whose rows stay the same don't move at all.
        about = centers.mean(axis=(0, 1))
        costs = np.full(len(centers), np.inf)
        n_iter = np.zeros(len(centers), dtype=np.intp)
        active = np.arange(len(centers))

        def step() -> None:
            nonlocal active
            sums = ClusterAccumulator(features, centers[active], about)
            self._pass(sums, X, weight)
            found = sums.finalize()
            moved = np.square(found.means - centers[active]).sum(axis=2)
            # Means are nearer to their rows than the old centres, by just this much.
            costs[active] = found.inertia - (found.weights * moved).sum(axis=1)
            done = moved.sum(axis=1) <= self.tol * found.variance
            for i in np.flatnonzero((found.weights == 0).any(axis=1)):
                empty = np.flatnonzero(found.weights[i] == 0)
                rows = _farthest(features, X, weight, centers[active[i]], len(empty))
                for place, row in zip(empty, rows, strict=False):
                    found.means[i, place] = row
                    done[i] = False
            centers[active] = found.means
            n_iter[active] += 1
            active = active[~done]

        for _ in range(self.max_iter):
            stop = False
            if progress is None:
                step()
            else:
                stop = progress.step(step)
            if stop or not active.size:
                break
        return centers, costs, n_iter

    def _pass(
        self,
        sums: ClusterAccumulator,
        X: Any,
        weight: Doubles | None,
        labels: NDArray[np.int32] | None = None,
    ) -> None:
        """Read all rows once."""
        for rows in batches(X.shape[0]):
            sums.update(X[rows], some(weight, rows), labels=some(labels, rows))

    def _validate(self, X: Data, reset: bool) -> Any:
        """Check X but for its values, which are checked when they are read."""
        return validate_data(self, X, reset=reset, accept_sparse="csr", ensure_all_finite=False)

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            check_whole(name, getattr(self, name))
        check_not_negative("tol", self.tol)
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(
                f'init={self.init!r} must be "k-means++", "random" or an array of centres'
            )

    # -- what a fitted model can do -----------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    @property
    def _n_features_out(self) -> int:
        """Width of the output, for names of columns."""
        return len(self.cluster_centers_)

    def predict(self, X: Data) -> NDArray[np.int32]:
        """Return the cluster of each row: that of the nearest centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int32 of shape (n_samples,)
        """
        self._check_fitted()
        X = self._validate(X, reset=False)
        labels = np.empty((X.shape[0], 1), np.int32)
        self._pass(ClusterAccumulator(self.features_, self.cluster_centers_), X, None, labels)
        return labels[:, 0]

    def transform(self, X: Data) -> Floats:
        """Return the distances of rows from all centres, in the space of the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            float32 for float32 X, else float64.
        """
        self._check_fitted()
        X = self._validate(X, reset=False)
        distances = np.empty((X.shape[0], len(self.cluster_centers_)), float_dtype(X))
        middle = self.cluster_centers_.mean(axis=0)
        about = self.cluster_centers_ - middle

        def use(_lane: int, rows: slice, Z: Floats) -> None:
            distances[rows] = np.sqrt(_squared_distances(Z, about, middle))

        for_each_tile(self.features_, X, use)
        return distances

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the objective of these rows, see `inertia_`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        self._check_fitted()
        X = self._validate(X, reset=False)
        sums = ClusterAccumulator(self.features_, self.cluster_centers_)
        self._pass(sums, X, check_weights(sample_weight, X))
        return -float(sums.inertia[0])


class _Ready:
    """A transformer for rows that are features already."""

    def __init__(self, Z: Floats):
        self._n_features_out = Z.shape[1]

    def transform(self, Z: Floats) -> Floats:
        return Z


def transformed(features: Any, X: Any) -> Floats:
    """Return the features of rows that are few enough to keep them."""
    tiles: dict[int, Floats] = {}

    def use(_lane: int, rows: slice, Z: Floats) -> None:
        tiles[rows.start] = Z.copy()

    for_each_tile(features, X, use)
    return np.concatenate([tiles[start] for start in sorted(tiles)])


def _squared_distances(Z: Floats, about: Doubles, middle: Doubles) -> Any:
    """Return |z - c|^2 for all rows and centres, both about the mean of the centres."""
    V = Z - middle.astype(Z.dtype)
    squares = np.einsum("ij,ij->i", V, V)[:, None] + np.einsum("ij,ij->i", about, about)
    return np.maximum(squares - 2.0 * (V @ about.T.astype(V.dtype)), 0.0)


def _farthest(
    features: Any, X: Any, weight: Doubles | None, centers: Doubles, count: int
) -> list[Floats]:
    """Return the features of the rows farthest from their centres, at most `count`."""
    middle = centers.mean(axis=0)
    about = centers - middle
    found: list[tuple[float, int, Floats]] = []  # lists may grow from several threads

    def use(_lane: int, rows: slice, Z: Floats) -> None:
        squares = _squared_distances(Z, about, middle).min(axis=1)
        scale = np.square(Z - middle.astype(Z.dtype)).sum(axis=1)
        squares[squares <= 64 * np.finfo(Z.dtype).eps * scale] = 0.0  # rounding errors
        if weight is not None:
            squares[weight[rows] == 0] = 0.0
        order = np.argsort(-squares, kind="stable")[:count]
        found.extend(
            (-float(squares[i]), rows.start + int(i), Z[i].copy()) for i in order if squares[i] > 0
        )

    for_each_tile(features, X, use)
    found.sort(key=lambda row: row[:2])
    return [row[2] for row in found[:count]]
