"""k-means on features: kernel k-means without storing kernel matrix or features."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from gzkcore._util.callbacks import Progress, with_callbacks
from gzkcore._util.random import as_seed_sequence
from gzkcore._util.state import all_or_nothing, doubles, ints, number, stored, whole
from gzkcore._util.typing import Data, Doubles, Floats, Integers, Seed
from gzkcore._util.validation import (
    check_integer,
    check_not_negative,
    check_some_weight,
    check_weights,
    float_dtype,
    raise_not_finite,
)
from gzkcore._util.warn import warn
from gzkcore.passes import streams
from gzkcore.passes.clusters import (
    ClusterAccumulator,
    check_centers,
    check_spread,
    farthest,
    squared_distances,
)
from gzkcore.passes.streams import Reader, fit_on_rows, map_rows
from gzkcore.passes.tiles import for_each_tile, width_of
from gzkcore.rows.sources import Batch, is_source, type_of
from gzkcore.rows.survey import sample_size, stack

from .base import FeatureLearner, new_features

__all__ = ["RandomFeatureKMeans"]

# Bytes of the features of the sample from which starts are drawn, and on which they run first.
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
        As for `RandomFeatureRidge`.
    n_clusters : int, default=8
    init : {"k-means++", "random"} or array-like of shape (n_clusters, n_components), \
default="k-means++"
        The rule by which the first centres are chosen among the rows of a sample; or the first
        centres, in the space of the features.
    n_init : int, default=4
        Number of starts, of which the best is kept. All starts share the features of a pass. With
        an array as `init` there is one start.
    max_iter : int, default=300
        Largest number of passes over the rows for a start.
    tol : float, default=1e-4
        A start ends when the sum of the squared changes of its centres is less than this times the
        mean variance of the features.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the sample and the starts, and as for `RandomFeatureRidge`.

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
        Number of passes over the rows of the best start.
    n_features_in_, feature_names_in_
        As for `RandomFeatureRidge`.

    See Also
    --------
    gzkcore.metrics.clustering_cost : The cost of a clustering with the exact kernel.

    Notes
    -----
    A pass computes the features, and takes 2 k p operations for each row and start, and p for the
    sums. First, scikit-learn's k-means++ draws centres from a random sample of rows with 64 MB of
    features, drawn by their weights, and Lloyd's algorithm runs on this sample. Then a few passes
    over all rows are enough. A cluster that loses all its rows gets the row farthest from its
    centre.

    There is no `partial_fit`: Lloyd's algorithm has to read the rows again and again. A method with
    one pass (``sklearn.cluster.MiniBatchKMeans`` on ``features.transform``) gives other clusters.

    The objective is that of the kernel of the features, which is smaller for less accurate
    features. So compare clusterings by different features with `gzkcore.metrics.clustering_cost`.
    If features preserve projection costs up to a factor 1 +- eps, and the cost of a clustering is
    at most 1 + g times the smallest for these features, then its exact cost is at most (1 + g)(1 +
    eps) / (1 - eps) times the smallest: Lemma 14 of [1]_, as corrected in the errata,
    `gzkcore.theory.clustering_bound`.

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

    _state = stored(
        cluster_centers_=doubles("k", "p"),
        labels_=ints("n", below=lambda of: len(of.cluster_centers_), dtype=np.int32),
        inertia_=number(0),
        n_iter_=whole(0),
    )

    tol: Any
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

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the features, find the clusters, and return self.

        If an error or an interrupt occurs, nothing changes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source
            A memory map is read tile by tile, once in each pass, and never copied. A source is an
            iterable of batches that can be read again, each X, (X, y) or (X, y, sample_weight), or
            a Dask collection.
        y : object, optional
            Passed to features that use it; otherwise ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative.
        """
        self._forget()
        self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._check_parameters()
        rng = np.random.RandomState(as_seed_sequence(self.random_state).generate_state(8))
        if is_source(X):
            rows: _Arrays | _Source = _Source(self, Reader(X, y, sample_weight), rng)
        else:
            rows = _Arrays(self._columns(X, reset=True), sample_weight)
        check_some_weight(rows.n_rows)
        if rows.n_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={rows.n_rows} (rows with a positive weight) should be >= n_clusters="
                f"{self.n_clusters}; use fewer clusters"
            )
        features = rows.fit(new_features(self.features, self.random_state), y)
        sample, of_sample, complete = rows.sample(features, self.n_clusters, rng)
        centers = self._starts(sample, of_sample, rng)
        passes = features
        if complete:
            rows, passes = _Arrays(sample, of_sample), _Ready(sample)
        else:  # first on the sample, where a pass costs next to nothing
            few = _Arrays(sample, of_sample)
            centers, _, _ = self._lloyd(_Ready(sample), few, centers)
        progress = Progress(self, self.max_iter, "iteration", X, y)
        centers, costs, n_iter = self._lloyd(passes, rows, centers, progress)
        # The first whose cost is the least up to rounding errors.
        costs = np.maximum(costs, 0.0)  # differences of sums, which rounding may take below 0
        best = int(np.argmax(costs <= costs.min() * (1.0 + 1e3 * np.finfo(sample.dtype).eps)))
        last = ClusterAccumulator(passes, centers[best])
        labels = rows.labels(last)
        self.features_ = features
        self.cluster_centers_ = centers[best]
        self.labels_ = labels
        self.inertia_ = float(last.inertia[0])
        self.n_iter_ = int(n_iter[best])
        progress.end()
        n_distinct = np.unique(self.labels_).size
        if n_distinct < self.n_clusters:
            warn(
                f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
            )

    def _starts(self, Z: Floats, weight: Doubles | None, rng: np.random.RandomState) -> Doubles:
        """Return first centres, (n_starts, n_clusters, n_features)."""
        k = self.n_clusters
        check_spread(Z)
        if not isinstance(self.init, str):
            return check_centers(self.init, (k, Z.shape[1]))[None]
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
        self, features: Any, rows: Any, centers: Doubles, progress: Progress | None = None
    ) -> tuple[Doubles, Doubles, Integers]:
        """Run Lloyd's algorithm; return the centres, costs and numbers of passes of all starts."""
        centers = centers.copy()
        # One point for all passes: then centres whose rows stay the same don't move at all.
        about = centers.mean(axis=(0, 1))
        costs = np.full(len(centers), np.inf)
        n_iter = np.zeros(len(centers), dtype=np.intp)
        active = np.arange(len(centers))

        def step() -> None:
            nonlocal active
            sums = ClusterAccumulator(features, centers[active], about)
            rows.add_to(sums)
            clusters = sums.finalize()
            moved = np.square(clusters.means - centers[active]).sum(axis=2)
            # Means are nearer to their rows than the old centres, by just this much.
            costs[active] = clusters.inertia - (clusters.weights * moved).sum(axis=1)
            done = moved.sum(axis=1) <= self.tol * clusters.variance
            for i in np.flatnonzero((clusters.weights == 0).any(axis=1)):
                empty = np.flatnonzero(clusters.weights[i] == 0)
                far = rows.farthest(features, centers[active[i]], len(empty))
                for place, row in zip(empty, far, strict=False):
                    clusters.means[i, place] = row
                    done[i] = False
            centers[active] = clusters.means
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

    def _rows(self, X: Any, y: Any, sample_weight: Any, reset: bool = False) -> Any:
        X = self._columns(X, reset)
        return X, None, check_weights(sample_weight, X)

    def _summands(self, X: Any, y: None, sample_weight: Any) -> tuple[Any, Any]:
        return X, sample_weight

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            check_integer(name, getattr(self, name), 1)
        check_not_negative("tol", self.tol)
        if isinstance(self.init, str) and self.init not in ("k-means++", "random"):
            raise ValueError(
                f'init={self.init!r} must be "k-means++", "random" or an array of centres'
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    @property
    def _n_features_out(self) -> int:
        """Width of the output, for names of columns."""
        return len(self.cluster_centers_)

    def predict(self, X: Data) -> Any:
        """Return the cluster of each row: that of the nearest centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of int32 of shape (n_samples,)
            For an iterable of batches, an iterator of these; for a Dask collection, a Dask array.
        """
        self._check_fitted()
        if is_source(X):
            return map_rows(self._for_workers().predict, X, (), np.int32)
        rows = _Arrays(self._columns(X), None)
        return rows.labels(ClusterAccumulator(self.features_, self.cluster_centers_))

    def _for_workers(self) -> Self:
        model = copy.copy(self)
        model.labels_ = np.empty(0, np.int32)
        return model

    def transform(self, X: Data) -> Any:
        """Return the distances of rows from all centres, in the space of the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a source

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            float32 for float32 X, else float64. For an iterable of batches, an iterator of these;
            for a Dask collection, a Dask array.
        """
        self._check_fitted()
        if is_source(X):
            work = self._for_workers().transform
            return map_rows(work, X, (self._n_features_out,), type_of(X))
        X = self._columns(X)
        distances = np.empty((X.shape[0], len(self.cluster_centers_)), float_dtype(X))
        middle = self.cluster_centers_.mean(axis=0)
        about = self.cluster_centers_ - middle

        def use(_thread: int, rows: slice, Z: Floats) -> None:
            distances[rows] = np.sqrt(squared_distances(Z, about, middle))

        for_each_tile(self.features_, X, use)
        return distances

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the objective of these rows, see `inertia_`.

        Parameters
        ----------
        X, sample_weight
            As for `fit`.
        y : object, optional
            Ignored.
        """
        self._check_fitted()
        sums = ClusterAccumulator(self.features_, self.cluster_centers_)
        if is_source(X):
            Reader(X, y, sample_weight).accumulate(self._for_workers(), sums)
        else:
            _Arrays(self._columns(X), sample_weight).add_to(sums)
        check_some_weight(sums.counts)
        return -float(sums.inertia[0])


class _Arrays:
    """The rows of an array or a sparse matrix, which are read again and again."""

    def __init__(self, X: Any, sample_weight: Any) -> None:
        self.X, self.weight = X, check_weights(sample_weight, X)
        self.n_rows = X.shape[0] if self.weight is None else int(np.count_nonzero(self.weight))

    def fit(self, features: Any, y: Any) -> Any:
        """Fit features to all rows."""
        return fit_on_rows(features, self.X, y, self.weight)

    def sample(
        self, features: Any, n_clusters: int, rng: np.random.RandomState
    ) -> tuple[Floats, Doubles | None, bool]:
        """Return features of random rows, their weights, and whether they are all rows."""
        weight = self.weight
        n, most = self.X.shape[0], sample_rows(features, self.X, n_clusters)
        if weight is not None:
            draws = rng.random_sample(n) if self.n_rows > most else np.zeros(n)
            rows, weight = _priority_sample(weight, draws, most)
        elif n > most:
            rows = np.sort(rng.choice(n, most, replace=False))
        else:
            rows = np.arange(n)
        complete = len(rows) == n
        try:
            Z = transformed(features, self.X if complete else self.X[rows])
        except ValueError:
            raise_not_finite(self.X)  # says in which row of all
            raise
        return Z, weight, complete

    def add_to(self, sums: ClusterAccumulator) -> None:
        """Add all rows to sums."""
        for rows in gen_batches(self.X.shape[0], streams.ARRAY_ROWS):
            self._add(sums, rows)

    def _add(self, sums: ClusterAccumulator, rows: slice, labels: Any = None) -> None:
        weight = None if self.weight is None else self.weight[rows]
        try:
            sums.add(self.X[rows], weight, labels=labels)
        except ValueError:
            raise_not_finite(self.X)  # says in which row of all
            raise

    def labels(self, sums: ClusterAccumulator) -> NDArray[np.int32]:
        """Add all rows to sums around one set of centres, and return the nearest of each."""
        labels = np.empty((self.X.shape[0], 1), np.int32)
        for rows in gen_batches(self.X.shape[0], streams.ARRAY_ROWS):
            self._add(sums, rows, labels[rows])
        return labels[:, 0]

    def farthest(self, features: Any, centers: Doubles, count: int) -> list[Floats]:
        """Return features of the rows farthest from their centres, at most `count`."""
        rows = farthest(features, self.X, self.weight, centers, count)
        return [z for *_, z in rows]


class _Source:
    """The rows of a source, with the methods of `_Arrays`."""

    def __init__(
        self, model: RandomFeatureKMeans, reader: Reader, rng: np.random.RandomState
    ) -> None:
        if reader.one_pass:
            raise ValueError(
                "k-means reads the rows again and again, but an iterator gives them once; pass an "
                "object whose iter() starts again, such as gzkcore.open_batches(...)"
            )
        self.reader, self.source = reader, reader.source
        reader.begin(model)
        self.model = copy.copy(model)
        seed = rng.randint(2**31, size=4).tolist()
        self.drawn: _Drawn = self.source.reduce(_Drawn.of, _Drawn.merge, self.model, seed)
        self.n_rows = self.drawn.n_rows

    def fit(self, features: Any, y: Any) -> Any:
        return self.reader.fit(features)

    def sample(
        self, features: Any, n_clusters: int, rng: np.random.RandomState
    ) -> tuple[Floats, Doubles | None, bool]:
        drawn = self.drawn
        most = min(sample_rows(features, drawn.rows, n_clusters), drawn.most)
        chosen, weight = _priority_sample(drawn.weight, drawn.draws, most)
        same = len(weight) > 0 and bool((weight == weight[0]).all())
        return transformed(features, drawn.rows[chosen]), None if same else weight, False

    def add_to(self, sums: ClusterAccumulator) -> None:
        self.reader.accumulate(self.model, sums)

    def labels(self, sums: ClusterAccumulator) -> NDArray[np.int32]:
        self.add_to(sums)
        labels = self.source.reduce(
            _labels_of_batch, np.concatenate, self.model, sums.features, sums.centers
        )
        return np.asarray(labels)

    def farthest(self, features: Any, centers: Doubles, count: int) -> list[Floats]:
        rows = self.source.reduce(
            _farthest_of_batch, _merge_farthest, self.model, features, centers, count
        )
        return [z for *_, z in rows]


@dataclass
class _Drawn:
    """Mergeable sample of rows by their weights: what `_priority_sample` needs of all rows."""

    n_rows: int  # with a positive weight
    rows: Any
    weight: Doubles
    draws: Doubles
    most: int  # rows of a sample; there is one more here, whose key reweights the others

    @classmethod
    def of(cls, batch: Batch, model: Any, seed: list[int]) -> "_Drawn":
        """Draw from a batch."""
        rows, _, weight = model._rows(*batch[:3])
        raise_not_finite(rows)
        weight = np.ones(rows.shape[0]) if weight is None else weight
        draws = np.random.default_rng([batch.number, *seed]).random(rows.shape[0])
        most = max(sample_size(rows.shape[1]), 10 * model.n_clusters)
        return cls(int(np.count_nonzero(weight)), rows, weight, draws, most)._cut()

    @staticmethod
    def merge(parts: Sequence["_Drawn"]) -> "_Drawn":
        """Put samples of consecutive batches together."""
        return _Drawn(
            sum(part.n_rows for part in parts),
            stack([part.rows for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.draws for part in parts]),
            parts[0].most,
        )._cut()

    def _cut(self) -> "_Drawn":
        rows, _ = _priority_sample(self.weight, self.draws, self.most + 1)
        if len(rows) < len(self.weight):
            self.rows, self.weight = self.rows[rows], self.weight[rows]
            self.draws = self.draws[rows]
        return self


def _priority_sample(weights: Doubles, draws: Doubles, count: int) -> tuple[Integers, Doubles]:
    """Choose rows by their weights, and reweight them so that sums of weights are unbiased.

    The rows with the smallest keys u_i / w_i are chosen, for uniform draws u_i. With t the next
    key, each gets the weight max(w_i, 1/t): Duffield, Lund, Thorup, "Priority sampling for
    estimation of arbitrary subset sums", J. ACM 2007. A uniform sample would miss heavy rows.
    """
    rows = np.flatnonzero(weights)
    weights = weights[rows]
    if rows.size <= count:
        return rows, weights
    keys = draws[rows] / weights
    order = np.argpartition(keys, count)
    chosen = np.sort(order[:count])
    return rows[chosen], np.maximum(weights[chosen], 1.0 / keys[order[count]])


def _labels_of_batch(batch: Batch, model: Any, features: Any, centers: Doubles) -> Any:
    X, *_ = model._rows(*batch[:3])
    return _Arrays(X, None).labels(ClusterAccumulator(features, centers))


def _farthest_of_batch(
    batch: Batch, model: Any, features: Any, centers: Doubles, count: int
) -> list[tuple[float, int, int, Floats]]:
    X, _, sample_weight = model._rows(*batch[:3])
    rows = farthest(features, X, sample_weight, centers, count)
    return [(distance, batch.number, row, z) for distance, row, z in rows]


def _merge_farthest(parts: Sequence[list[Any]]) -> list[Any]:
    together = sorted((row for part in parts for row in part), key=lambda row: row[:-1])
    return together[: max(map(len, parts))]


def sample_rows(features: Any, X: Any, n_clusters: int) -> int:
    """Count the rows of a sample."""
    return int(max(SAMPLE_BYTES // (8 * width_of(features, X)), 10 * n_clusters))


class _Ready:
    """A transformer for rows that are features already."""

    def __init__(self, Z: Floats):
        self._n_features_out = Z.shape[1]

    def transform(self, Z: Floats) -> Floats:
        return Z


def transformed(features: Any, X: Any) -> Floats:
    """Return the features of rows that are few enough to keep them."""
    tiles: dict[int, Floats] = {}

    def use(_thread: int, rows: slice, Z: Floats) -> None:
        tiles[rows.start] = Z.copy()

    for_each_tile(features, X, use)
    return np.concatenate([tiles[start] for start in sorted(tiles)])
