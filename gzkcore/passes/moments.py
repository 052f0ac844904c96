"""Moments about the mean, for one or two views of the rows, tile by tile."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._compiled import gram as _gram
from gzkcore._util.state import doubles, floating_dtype, has, nothing, number, stored, whole
from gzkcore._util.typing import Data, Doubles, Floats
from gzkcore._util.validation import (
    check_lengths,
    check_same_class,
    check_some_weight,
    check_weights,
)

from .gram import PartialSums, pack_lower, total_of, unpack_lower
from .tiles import Tiles, as_rows, for_each_tile, thread_count, tile_rows, width_of

__all__ = ["CentredMoments", "MomentsAccumulator"]

# Weights that were made to add up to 1 may add up to this much more, in float32 too.
WEIGHT_ROUNDING = 1e-6


@dataclass(frozen=True)
class CentredMoments:
    """Weighted means and sums of products about them, of one view of the rows or two.

    Attributes
    ----------
    n_rows : int
        Number of rows with a positive weight.
    weight : float
        Sum of the weights.
    mean : ndarray of shape (n_features,)
    scatter : ndarray of shape (n_features, n_features)
        sum_i w_i (z_i - mean) (z_i - mean)^T.
    mean_y : ndarray of shape (n_features_y,)
        Mean of the second view. Without a second view it and the next two arrays have width 0.
    scatter_y : ndarray of shape (n_features_y, n_features_y)
    cross : ndarray of shape (n_features, n_features_y)
        sum_i w_i (z_i - mean) (u_i - mean_y)^T.
    """

    n_rows: int
    weight: float
    mean: Doubles
    scatter: Doubles
    mean_y: Doubles
    scatter_y: Doubles
    cross: Doubles

    @property
    def covariance(self) -> Doubles:
        """Scatter / (weight - 1): a row of weight 2 counts as two rows."""
        return self.scatter / self.degrees_of_freedom

    @property
    def degrees_of_freedom(self) -> float:
        """Sum of the weights minus 1."""
        if self.n_rows == 1 and self.weight == 1:
            raise ValueError("a variance needs two rows or more, but n_samples=1; pass more rows")
        if not self.weight > 1 + WEIGHT_ROUNDING:
            raise ValueError(
                f"the weights add up to {self.weight:g}, but a variance needs more than 1; a "
                "weight is the number of rows that a row represents: scale the weights"
            )
        return self.weight - 1.0


class MomentsAccumulator:
    """Mean and centred sums of products of features, for one or two views of the same rows.

    With `features_y` each row has two parts, x and y. Their features are joined to one row [z(x)
    u(y)]. Its moments are those of both views and the cross-moments.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.
    features_y : fitted transformer, optional
        Maps the rows of a second view.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), or None
        Weighted mean of the rows so far.
    scatter : ndarray of shape (n_features, n_features), or None
        Weighted sum of products about `mean`; 0 above the diagonal.
    weight : float
        Sum of the weights.
    n_weighted, n_rows : int
        Number of rows with a positive weight, and number of all rows.
    dtype : dtype
        float32 as long as all features were.

    Notes
    -----
    The mean of earlier rows (at first, of some of the first rows) is subtracted from the features.
    Products are in the dtype of the features, sums in float64. Then the sums are shifted to the
    mean of all rows (Chan, Golub, LeVeque 1979). So means far from 0 cost no digits. Time: n p^2
    for n rows of p features of both views together. Memory: 8 p^2 bytes for each thread.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0], [3.0, 6.0]])
    >>> moments = MomentsAccumulator(FunctionTransformer().fit(X)).update(X).finalize()
    >>> moments.mean, moments.covariance
    (array([2., 4.]), array([[2., 4.],
           [4., 8.]]))
    """

    _state = stored(
        features=has("transform") | nothing(),
        features_y=has("transform") | nothing(),
        mean=doubles("q") | nothing(),
        width=whole(0, below=lambda of: 1 + (0 if of.mean is None else of.mean.size)),
        lower=doubles(lambda of: of.mean.size * (of.mean.size + 1) // 2).if_there(),
        weight=number(0),
        n_weighted=whole(0),
        n_rows=whole(0),
        dtype=floating_dtype(),
    )

    def __init__(self, features: Any, features_y: Any = None):
        self.features, self.features_y = features, features_y
        self.width = 0  # of the first view, once there are rows
        self.mean: Any = None
        self.scatter: Any = None
        self.weight = 0.0
        self.n_weighted = 0
        self.n_rows = 0
        self.dtype: np.dtype[Any] = np.dtype(np.float32)

    def update(
        self, X: Data, y: Data | None = None, sample_weight: ArrayLike | None = None
    ) -> "MomentsAccumulator":
        """Add the rows of a batch, and return self: unchanged if an error or an interrupt occurs.

        Parameters
        ----------
        X, sample_weight
            As for `GramAccumulator.update`.
        y : array-like or sparse matrix of shape (n_samples, n_features_in_y), optional
            The second view, if there is `features_y`.
        """
        X = as_rows(X)
        weight = check_weights(sample_weight, X)
        if (y is None) != (self.features_y is None):
            raise ValueError(
                "y is given as a second view of the rows, but there is no features_y for it; use "
                "MomentsAccumulator(features, features_y)"
                if self.features_y is None
                else "y is None, but features_y maps a second view of the rows; pass that view as y"
            )
        if y is not None:
            y = as_rows(y)
            check_lengths(X, y)
        return self.add(X, y, weight)

    def add(self, X: Any, y: Any, weight: Doubles | None) -> "MomentsAccumulator":
        """Add rows, of both views if there are two, and weights that were checked."""
        width = width_of(self.features, X)
        p = width + (0 if y is None else width_of(self.features_y, y))
        self._check_width(width, p)
        shape = (1, p + 1, p + 2)
        parts = [PartialSums(shape) for _ in range(thread_count(X, 8 * math.prod(shape)))]
        n_rows = tile_rows(self.features, X, len(parts))
        views = [_Views(self.features_y, y, n_rows, p) for _ in parts]
        shift = self.mean
        if shift is None:  # near the mean: that of the first rows
            few = slice(0, min(n_rows, 256))
            first = views[0](few, Tiles(self.features, X, few.stop)(few), np.zeros(p))
            shift = first.mean(axis=0, dtype=np.float64)

        def add(thread: int, rows: slice, Z: Floats) -> None:
            V = views[thread](rows, Z, shift)
            no_targets = np.empty((len(V), 0))
            parts[thread].add(V, no_targets, None if weight is None else weight[rows], 0)

        for_each_tile(self.features, X, add, len(parts))
        sums, dtype = total_of(parts, self.features)
        part = self._emptied()
        part.width, part.n_rows, part.dtype = width, X.shape[0], dtype
        part.weight, part.n_weighted = float(sums[0, p, p]), int(sums[0, p, p + 1])
        mean = np.zeros(p + 1)
        if part.weight > 0:
            mean[:p] = sums[0, p, :p] / part.weight
            _gram.recentre(sums, mean)
        part.mean, part.scatter = shift.astype(dtype) + mean[:p], np.tril(sums[0, :p, :p])
        self._join(part)
        return self

    def merge(self, other: "MomentsAccumulator") -> "MomentsAccumulator":
        """Add the rows of another accumulator with the same features, and return self."""
        check_same_class(self, other)
        if other.mean is not None:
            self._check_width(other.width, len(other.mean))
            self._join(other)
        return self

    def finalize(self) -> CentredMoments:
        """Return means and centred sums by name."""
        if self.mean is None:
            raise ValueError("there are no rows yet; call update(X) first")
        check_some_weight(self.weight)
        f = self.width
        scatter = self.scatter + np.tril(self.scatter, -1).T
        return CentredMoments(
            n_rows=self.n_weighted,
            weight=self.weight,
            mean=self.mean[:f].copy(),
            scatter=scatter[:f, :f].copy(),
            mean_y=self.mean[f:].copy(),
            scatter_y=scatter[f:, f:].copy(),
            cross=scatter[:f, f:].copy(),
        )

    def _check_width(self, width: int, p: int) -> None:
        if self.mean is not None and (width, p) != (self.width, len(self.mean)):
            old, new = (self.width, len(self.mean) - self.width), (width, p - width)
            raise ValueError(
                f"these rows have {new} features in the two views, but earlier rows had {old}; add "
                "rows of one kind, or start a new accumulator"
            )

    def _join(self, other: "MomentsAccumulator") -> None:
        """Join the moments of other rows to ours; arrays are replaced, never changed."""
        total, mean, scatter = self.weight + other.weight, other.mean, other.scatter
        if self.weight > 0 and other.weight > 0:
            apart = mean - self.mean
            scatter = scatter + self.scatter
            scatter += np.tril(np.outer(apart, (self.weight * other.weight / total) * apart))
            mean = self.mean + (other.weight / total) * apart
        elif self.weight > 0:
            mean, scatter = self.mean, self.scatter
        new = {"width": other.width, "mean": mean, "scatter": scatter, "weight": total}
        new["n_weighted"] = self.n_weighted + other.n_weighted
        new["n_rows"] = self.n_rows + other.n_rows
        new["dtype"] = np.result_type(self.dtype, other.dtype)
        vars(self).update(new)  # the one step that changes what was there

    def _emptied(self) -> "MomentsAccumulator":
        """Return an accumulator of the same kind that has seen no rows."""
        return MomentsAccumulator(self.features, self.features_y)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"scatter": None} | self._to_data()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(vars(self._from_data(state)))

    def _to_data(self) -> dict[str, Any]:
        """Return the data of a file, see `model_io`: scatter as its lower triangle."""
        return {} if self.scatter is None else {"lower": pack_lower(self.scatter)}

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> "MomentsAccumulator":
        self = cls(data["features"], data["features_y"])
        vars(self).update({k: v for k, v in data.items() if k != "lower"})
        if "lower" in data:
            self.scatter = np.zeros((len(self.mean), len(self.mean)))
            unpack_lower(data["lower"], self.scatter)
        return self


class _Views:
    """The joined features of both views of some rows, less a shift, in one buffer."""

    def __init__(self, features_y: Any, y: Any, n_rows: int, width: int):
        self.tile_of = None if features_y is None else Tiles(features_y, y, n_rows, "y")
        self.n_rows, self.width = n_rows, width
        self.buffer: Any = None

    def __call__(self, rows: slice, Z: Floats, shift: Doubles) -> Any:
        parts = [Z] if self.tile_of is None else [Z, self.tile_of(rows)]
        if self.buffer is None:
            self.buffer = np.empty((self.n_rows, self.width), np.result_type(*parts))
        V = self.buffer[: len(Z)]
        less = np.split(shift.astype(V.dtype), [Z.shape[1]])
        columns = np.split(V, [Z.shape[1]], axis=1)
        with np.errstate(invalid="ignore"):  # infinite features are refused later
            for part, shifts, out in zip(parts, less, columns, strict=False):
                np.subtract(part, shifts, out=out)
        return V
