"""Sums of the rows around given centres: a pass of k-means, tile by tile."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gzkcore._compiled import kmeans as _kmeans
from gzkcore._util.state import doubles, floats, has, nothing, number, stored, whole
from gzkcore._util.typing import Data, Doubles, Floats
from gzkcore._util.validation import check_same_class, check_weights
from gzkcore._util.wording import counted

from .tiles import as_rows, for_each_tile, thread_count, width_of

__all__ = ["ClusterAccumulator", "Clusters"]

# Squares and products are at most the largest number over this, so that sums of a few fit.
ROOM = 8.0

_SUMS = ("counts", "sums", "inertia", "squares")


@dataclass(frozen=True)
class Clusters:
    """Weights, means and costs of clusters around given centres, from a pass over the rows.

    With several sets of centres each array has a first axis for them.

    Attributes
    ----------
    weights : ndarray of shape (n_clusters,)
        Sum of the weights of the rows of each cluster.
    means : ndarray of shape (n_clusters, n_features)
        Mean of the rows of each cluster; the centre itself if the cluster is empty.
    inertia : float or ndarray
        sum_i w_i |z_i - nearest centre|^2.
    variance : float
        Weighted variance of the features of all rows, averaged over the features.
    """

    weights: Doubles
    means: Doubles
    inertia: Any
    variance: float


def _starts(of: Any) -> int:
    return 1 if of.centers.ndim == 2 else int(of.centers.shape[0])


class ClusterAccumulator:
    """Sums of the rows nearest to each centre: one step of Lloyd's algorithm, tile by tile.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.
    centers : ndarray of shape (n_clusters, n_features) or (n_starts, n_clusters, n_features)
        In the space of the features. Several sets of centres share the features of a pass.
    about : ndarray of shape (n_features,), optional
        A point that is subtracted from the rows, so that distances are accurate. None: the mean of
        all centres. With a fixed point the sums of the same clusters are identical, to the last
        bit.

    Attributes
    ----------
    counts : ndarray of shape (n_starts, n_clusters)
        Sum of the weights of the rows nearest to each centre.
    sums : ndarray of shape (n_starts, n_clusters, n_features)
        Weighted sum of these rows, less `about`.
    inertia : ndarray of shape (n_starts,)
        Weighted sum of squared distances to the nearest centre.
    n_rows : int
        Number of rows seen.

    Notes
    -----
    For s starts, k clusters and p features a row takes 2 s k p operations for its distances,
    |z|^2 - 2 z.c + |c|^2, and s p for the sums, which are float64.
    If two centres are equally near, the first counts. Sums over several accumulators with the same
    centres, merged, agree up to rounding with those of one accumulator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[0.0], [2.0], [9.0]])
    >>> sums = ClusterAccumulator(FunctionTransformer().fit(X), [[0.0], [10.0]])
    >>> clusters = sums.update(X).finalize()
    >>> clusters.means, float(clusters.inertia)
    (array([[1.],
           [9.]]), 5.0)
    """

    _state = stored(
        features=has("transform") | nothing(),
        centers=doubles("k", "p") | doubles("s", "k", "p"),
        about=floats("p"),
        counts=doubles(_starts, "k", least=0),
        sums=doubles(_starts, "k", "p"),
        inertia=doubles(_starts),
        squares=number(0),
        n_rows=whole(0),
    )

    def __init__(self, features: Any, centers: ArrayLike, about: Doubles | None = None):
        self.features = features
        self.centers = np.array(centers, dtype=np.float64)
        if self.centers.ndim not in (2, 3) or not np.isfinite(self.centers).all():
            raise ValueError(
                f"centers has shape {self.centers.shape}; pass finite numbers of shape "
                "(n_clusters, n_features), or (n_starts, n_clusters, n_features)"
            )
        shape = self._stacked().shape
        point = self._stacked().mean(axis=(0, 1)) if about is None else about
        with np.errstate(over="ignore"):
            single = point.astype(np.float32)
        self.about = np.where(np.isfinite(single), single, point)  # exact in float32, if it fits
        self.counts = np.zeros(shape[:2])
        self.sums: Any = np.zeros(shape)
        self.inertia: Any = np.zeros(shape[0])
        self.squares = 0.0  # of all rows
        self.n_rows = 0

    def _stacked(self) -> Doubles:
        return self.centers if self.centers.ndim == 3 else self.centers[None]

    def update(
        self,
        X: Data,
        sample_weight: ArrayLike | None = None,
        *,
        labels: NDArray[np.int32] | None = None,
    ) -> Self:
        """Add the rows of a batch, and return self: unchanged if an error or an interrupt occurs.

        Parameters
        ----------
        X, sample_weight
            As for `GramAccumulator.update`.
        labels : ndarray of int32 of shape (n_samples, n_starts), optional
            Where to write the number of each row's nearest centre.
        """
        X = as_rows(X)
        return self.add(X, check_weights(sample_weight, X), labels=labels)

    def add(self, X: Any, weight: Doubles | None, *, labels: Any = None) -> Self:
        """Add rows and weights that were checked."""
        width = width_of(self.features, X)
        if width != self.sums.shape[2]:
            raise ValueError(
                f"the centers have {counted(self.sums.shape[2], 'column')}, but the features "
                f"{width}; pass centers in the space of the features"
            )
        count = thread_count(X, 16 * self.sums.size + 1)
        parts = [_PartialSums(self._stacked(), self.about) for _ in range(count)]

        def add(thread: int, rows: slice, Z: Floats) -> None:
            nearest = parts[thread].add(Z, None if weight is None else weight[rows])
            if labels is not None:
                labels[rows] = nearest

        for_each_tile(self.features, X, add, count)
        new = [sum(getattr(part, name) for part in parts) for name in _SUMS]
        if not np.isfinite(new[-1]):
            raise ValueError(
                f"{self.features} returned NaN or infinity for finite X; check its output"
            )
        self._add(new, X.shape[0])
        return self

    def merge(self, other: "ClusterAccumulator") -> "ClusterAccumulator":
        """Add the rows of another accumulator with the same features and centres; return self."""
        check_same_class(self, other)
        same = np.array_equal(self.centers, other.centers)
        if not (same and np.array_equal(self.about, other.about)):
            raise ValueError(
                "cannot merge sums around different centers; start both accumulators with the "
                "same centers"
            )
        self._add([getattr(other, name) for name in _SUMS], other.n_rows)
        return self

    def finalize(self) -> Clusters:
        """Return weights, means and costs of the clusters."""
        weight = self.counts[0].sum()
        if not weight > 0:
            raise ValueError(
                "there are no rows yet; call update(X) first"
                if self.n_rows == 0
                else "all sample weights are zero; give some rows a positive weight"
            )
        centers = self._stacked()
        filled = np.where(self.counts > 0, self.counts, 1.0)[:, :, None]
        means = np.where(self.counts[:, :, None] > 0, self.about + self.sums / filled, centers)
        mean = self.sums[0].sum(axis=0) / weight
        variance = max(self.squares / weight - float(mean @ mean), 0.0) / len(mean)
        if self.centers.ndim == 2:
            return Clusters(self.counts[0].copy(), means[0], float(self.inertia[0]), variance)
        return Clusters(self.counts.copy(), means, self.inertia.copy(), variance)

    def _emptied(self) -> "ClusterAccumulator":
        """Return an accumulator around the same centres that has seen no rows."""
        return ClusterAccumulator(self.features, self.centers, self.about)

    def _add(self, sums: list[Any], n_rows: int) -> None:
        new = {name: getattr(self, name) + more for name, more in zip(_SUMS, sums, strict=True)}
        vars(self).update(new | {"n_rows": self.n_rows + n_rows})


class _PartialSums:
    """The sums of one thread around several sets of centres, and its scratch buffer."""

    def __init__(self, centers: Doubles, about: Doubles):
        self.shape, self.about = centers.shape, about
        self.centers = (centers - about).reshape(-1, centers.shape[2])
        self.lengths = np.einsum("ij,ij->i", self.centers, self.centers)
        self.longest = float(self.lengths.max())
        self.counts = np.zeros(self.shape[:2])
        self.sums = np.zeros(self.shape)
        self.inertia = np.zeros(self.shape[0])
        self.squares = 0.0
        self.buffer: Any = None

    def centred(self, Z: Floats) -> Any:
        """Return Z - about, in a buffer."""
        if self.buffer is None:
            self.buffer = np.empty_like(Z)
        return np.subtract(Z, self.about.astype(Z.dtype), out=self.buffer[: len(Z)])

    def add(self, Z: Floats, weight: Doubles | None) -> NDArray[np.int32]:
        """Add a tile, and return the nearest centres (n, n_starts)."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            V = self.centred(Z)
            products = V @ (-2.0 * self.centers.T).astype(V.dtype)
            lengths = self.lengths.astype(V.dtype)
        nearest = np.empty((len(Z), self.shape[0]), dtype=np.int32)
        squares = _kmeans.nearest_centers(
            V, products, lengths,
            np.ones(len(Z)) if weight is None else weight,
            nearest, self.counts, self.sums, self.inertia,
        )  # fmt: skip
        self.squares += squares
        least = 1.0 if weight is None else weight.min(initial=np.inf, where=weight > 0)
        # No product is above |v|^2 + |c|^2; checking each takes a fifth of the time of the pass.
        if not squares / least + self.longest <= largest(V.dtype):
            used = slice(None) if weight is None else weight > 0
            if not (in_range(products[used], V.dtype) and in_range(lengths, V.dtype)):
                _refuse(Z[used])
        return nearest


def squared_distances(Z: Floats, about: Doubles, middle: Doubles) -> Any:
    """Return |z - c|^2 for all rows and centres, both about the mean of the centres."""
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        V = Z - middle.astype(Z.dtype)
        squares = np.einsum("ij,ij->i", V, V)[:, None] + np.einsum("ij,ij->i", about, about)
        distances = np.maximum(squares - 2.0 * (V @ about.T.astype(V.dtype)), 0.0)
    if not in_range(distances, Z.dtype):
        _refuse(Z)
    return distances


def in_range(values: Floats, dtype: Any) -> bool:
    """Tell whether sums of a few of these values stay in the range of a type."""
    most = largest(dtype)
    return bool(-most <= values.min(initial=0) and values.max(initial=0) <= most)


def largest(dtype: Any) -> float:
    """Return the largest number of which sums of a few stay in the range of a type."""
    return float(np.finfo(dtype).max) / ROOM


def check_spread(Z: Floats) -> None:
    """Raise if squares of the distances between rows, or their sum, overflow the type of Z."""
    with np.errstate(over="ignore", invalid="ignore"):
        apart = Z - Z.mean(axis=0, dtype=np.float64)
        total = np.einsum("ij,ij->", apart, apart)
    if not in_range(total[None], Z.dtype):
        _refuse(Z)


def _refuse(Z: Floats) -> None:
    """Raise if features are finite, but too large."""
    if not np.isfinite(Z).all():
        return  # sums that are not finite raise later
    remedy = ", or pass float64" if Z.dtype == np.float32 else ""
    raise ValueError(
        f"features, or centres, are up to {np.abs(Z).max():.3g} in size, and squares of their "
        f"distances overflow {Z.dtype}; scale the columns (sklearn.preprocessing.StandardScaler)"
        f"{remedy}"
    )


def check_centers(init: Any, shape: tuple[int, int]) -> Doubles:
    """Return a user's centres as an array, or raise."""
    wanted = (
        "pass finite centres in the space of the features, of shape (n_clusters, n_components) = "
        f"{shape}"
    )
    try:
        values = np.asarray(init)
        centers = values.astype(np.float64) if values.dtype.kind in "biufO" else None
    except (TypeError, ValueError) as error:  # of different lengths, or objects
        raise ValueError(f"init is not an array of real numbers; {wanted}") from error
    if centers is None:
        raise ValueError(
            f"init has values of type {values.dtype}, which are not real numbers; {wanted}"
        )
    if centers.shape != shape or not np.isfinite(centers).all():
        raise ValueError(f"init has shape {centers.shape}; {wanted}")
    return centers


def farthest(
    features: Any, X: Any, weight: Doubles | None, centers: Doubles, count: int
) -> list[tuple[float, int, Floats]]:
    """Return minus squared distance, number and features of `count` rows farthest from centres."""
    middle = centers.mean(axis=0)
    about = centers - middle
    candidates: list[tuple[float, int, Floats]] = []  # lists may grow from several threads

    def use(_thread: int, rows: slice, Z: Floats) -> None:
        squares = squared_distances(Z, about, middle).min(axis=1)
        scale = np.square(Z - middle.astype(Z.dtype)).sum(axis=1)
        squares[squares <= 64 * np.finfo(Z.dtype).eps * scale] = 0.0  # rounding errors
        if weight is not None:
            squares[weight[rows] == 0] = 0.0
        order = np.argsort(-squares, kind="stable")[:count]
        candidates.extend(
            (-float(squares[i]), rows.start + int(i), Z[i].copy()) for i in order if squares[i] > 0
        )

    for_each_tile(features, X, use)
    candidates.sort(key=lambda row: row[:2])
    return candidates[:count]
