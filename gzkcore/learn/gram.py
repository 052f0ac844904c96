"""Moments of features, tile by tile: Z^T Z, Z^T y and their kin, without ever storing Z.

Every learner stands on `GramAccumulator`. Whoever needs something else of the rows of Z, such as
predictions, reads them through `for_each_tile`.
"""

import copy
import inspect
import numbers
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from gzkcore._compiled import gram as _gram
from gzkcore._util.model_io import stored
from gzkcore._util.threads import limit_blas, limit_threads, n_threads
from gzkcore._util.typing import Data, Doubles, Floats
from gzkcore._util.validation import check_integer, empty_aligned, is_finite, raise_not_finite
from gzkcore._util.wording import counted
from gzkcore.features.base import FeatureMap

__all__ = [
    "CentredMoments",
    "ClusterAccumulator",
    "Clusters",
    "GramAccumulator",
    "Moments",
    "MomentsAccumulator",
]

# Each tile adds its product to all sums: at 2,048 rows that costs 4 % of a product 1,024 wide.
TILE_ROWS = 2048
TILE_BYTES = 2**24  # wide features get fewer rows
ALL_SUMS_BYTES = 2**30  # the sums of all threads together


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows (z, y): all that a regression on features needs to know of its data.

    Attributes
    ----------
    n_rows : int
        Number of rows with a positive weight.
    weight : float
        Sum of the weights.
    feature_sums : ndarray of shape (n_features,)
        Z^T W 1.
    target_sums : ndarray of shape (n_targets,)
        Y^T W 1.
    target_squares : ndarray of shape (n_targets,)
        The diagonal of Y^T W Y.
    gram : ndarray of shape (n_features, n_features)
        Z^T W Z.
    cross : ndarray of shape (n_features, n_targets)
        Z^T W Y.
    """

    n_rows: int
    weight: float
    feature_sums: Doubles
    target_sums: Doubles
    target_squares: Doubles
    gram: Doubles
    cross: Doubles

    @classmethod
    def from_sums(cls, sums: Doubles) -> "Moments":
        """Name the parts of one fold of `GramAccumulator.sums`."""
        p = sums.shape[1] - 2
        lower = np.tril(sums[:p, :p])
        return cls(
            n_rows=int(sums[p, p + 1]),
            weight=float(sums[p, p]),
            feature_sums=sums[p, :p].copy(),
            target_sums=sums[p + 1 :, p].copy(),
            target_squares=sums[p + 1 :, p + 1].copy(),
            gram=lower + np.tril(lower, -1).T,
            cross=sums[p + 1 :, :p].T.copy(),
        )


class GramAccumulator:
    """Sum Z^T W Z, Z^T W Y and the weighted column sums over rows that come in any batches.

    Z = features.transform(X) is made a tile at a time, on several threads. Sums are kept in
    float64, also for float32 features, and of Z^T W Z only the lower triangle.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.
    n_folds : int, default=1
        Keep the sums of each fold apart, where row i, counted from the first row ever seen,
        belongs to fold i mod n_folds.

    Attributes
    ----------
    sums : ndarray of shape (n_folds, n_features + 1 + n_targets, n_features + 2), or None
        Per fold, the products of the rows [z 1 y] with the columns [z 1]. A last column holds the
        number of rows with a positive weight (beside the 1) and sum w y^2 (beside each y). One
        array, so that a merge is one addition. Strictly above the diagonal of Z^T W Z it is 0.
    n_rows : int
        Number of rows seen.
    dtype : dtype
        float32 as long as all features were.

    Notes
    -----
    Takes n p^2 multiplications for n rows of p features; memory is 8 p^2 bytes per fold and thread
    (on fewer threads where that would exceed 1 GiB) and a tile of Z per thread. Rows split over
    several accumulators and merged give the same sums to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> GramAccumulator(FunctionTransformer().fit(X)).update(X).finalize().gram
    array([[10., 14.],
           [14., 20.]])
    """

    _state = stored("features", "n_folds", "n_rows", "dtype", "lower", "rest", sums=None)

    def __init__(self, features: Any, n_folds: int = 1):
        self.features = features
        self.n_folds = check_integer("n_folds", n_folds, 1)
        self.sums: Any = None
        self.n_rows = 0
        self.dtype: np.dtype[Any] = np.dtype(np.float32)

    def update(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "GramAccumulator":
        """Add the rows of a batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features_in)
            A memory map is read tile by tile and never copied.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; 1 for each row by default.

        Returns
        -------
        self
            As it was before, if anything fails or interrupts on the way.
        """
        X = check_rows(X)
        weight = check_weights(sample_weight, X)
        y = np.empty((X.shape[0], 0)) if y is None else check_targets(y, X)
        return self.add(X, y, weight)

    def add(self, X: Any, y: Doubles, weight: Doubles | None) -> "GramAccumulator":
        """Add rows, targets and weights that were checked, as learners do once for all batches."""
        y = y.reshape(X.shape[0], -1)
        p = width_of(self.features, X)
        shape = (self.n_folds, p + 1 + y.shape[1], p + 2)
        self._check_shape(shape)
        lanes = [_Lane(shape) for _ in range(_n_lanes(X, 8 * int(np.prod(shape))))]

        def add(lane: int, rows: slice, Z: Floats) -> None:
            first_fold = (self.n_rows + rows.start) % self.n_folds
            lanes[lane].add(Z, y[rows], None if weight is None else weight[rows], first_fold)

        for_each_tile(self.features, X, add, len(lanes))
        added = lanes[0].sums
        for lane in lanes[1:]:
            added += lane.sums
        if not np.isfinite(added[:, p]).all():
            raise ValueError(f"{self.features} made NaN or infinity of finite X; check its output")
        if not np.isfinite(added[:, p + 1 :, p + 1]).all():
            raise ValueError("y is so large that its squares overflow; scale it")
        dtype = np.result_type(*(lane.dtype for lane in lanes))
        self._add(added, X.shape[0], dtype)
        return self

    def merge(self, other: "GramAccumulator") -> "GramAccumulator":
        """Add the rows of another accumulator with the same features, as if they came after ours.

        Returns
        -------
        self
        """
        if other.n_folds != self.n_folds:
            raise ValueError(f"cannot merge {other.n_folds} folds into {self.n_folds}; use as many")
        if other.sums is not None:
            self._check_shape(other.sums.shape)
            # Row i of the other is row n_rows + i of both together: its fold moves by n_rows.
            shift = self.n_rows % self.n_folds
            theirs = np.roll(other.sums, shift, axis=0) if shift else other.sums
            self._add(theirs.copy() if self.sums is None else theirs, other.n_rows, other.dtype)
        return self

    def shifted(self, offset: ArrayLike) -> "GramAccumulator":
        """Return a copy whose targets are y + offset.

        Parameters
        ----------
        offset : array-like of shape (n_targets,), or a number for all
        """
        made = copy.copy(self)
        if made.sums is None:
            return made
        p = made.sums.shape[2] - 2
        delta = np.broadcast_to(offset, made.sums.shape[1] - p - 1).astype(np.float64)
        weight, sums = made.sums[:, p, p, None], made.sums[:, p + 1 :, p]
        made.sums[:, p + 1 :, p + 1] += 2.0 * delta * sums + np.square(delta) * weight
        made.sums[:, p + 1 :, : p + 1] += delta[:, None] * made.sums[:, p, None, : p + 1]
        return made

    def finalize(self, fold: int | None = None) -> Moments:
        """Return the sums by name, of one fold or (None) of all rows."""
        if self.sums is None:
            raise ValueError("there are no rows yet; call update(X, y) first")
        return Moments.from_sums(self.sums.sum(axis=0) if fold is None else self.sums[fold])

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: of Gram matrices the lower triangle only."""
        if self.sums is None:
            return {}
        width = self.sums.shape[2] - 2
        lower = self.sums[:, *np.tril_indices(width)]
        return {"lower": lower, "rest": self.sums[:, width:].copy()}

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> "GramAccumulator":
        self = cls(data["features"], data["n_folds"])
        self.n_rows, self.dtype = data["n_rows"], data["dtype"]
        if "rest" in data:
            n_folds, n_rest, width = data["rest"].shape
            self.sums = np.zeros((n_folds, width - 2 + n_rest, width))
            self.sums[:, *np.tril_indices(width - 2)] = data["lower"]
            self.sums[:, width - 2 :] = data["rest"]
        return self

    def _emptied(self) -> "GramAccumulator":
        """Return an accumulator of the same kind that has seen no rows."""
        return GramAccumulator(self.features, self.n_folds)

    def __copy__(self) -> "GramAccumulator":
        made = GramAccumulator(self.features, self.n_folds)
        sums = None if self.sums is None else self.sums.copy()
        vars(made).update(vars(self) | {"sums": sums})
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels between processes: of Gram matrices hardly more than the triangle."""
        state = vars(self) | {"sums": None}
        if self.sums is not None:
            state["pieces"] = [self.sums[:, rows, :end].copy() for rows, end in _blocks(self.sums)]
            state["shape"] = self.sums.shape
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        pieces, shape = state.pop("pieces", None), state.pop("shape", None)
        vars(self).update(state)
        if pieces is not None:
            self.sums = np.zeros(shape)
            for (rows, end), piece in zip(_blocks(self.sums), pieces, strict=True):
                self.sums[:, rows, :end] = piece

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if self.sums is not None and self.sums.shape != shape:
            old, new = [(s[2] - 2, s[1] - s[2] + 1) for s in (self.sums.shape, shape)]
            raise ValueError(
                f"these rows have {counted(new[0], 'feature')} and {counted(new[1], 'target')}, "
                f"those before {old[0]} and {old[1]}; add rows of one kind, or start "
                "a new accumulator"
            )

    def _add(self, sums: Doubles, n_rows: int, dtype: np.dtype[Any]) -> None:
        if self.sums is None:
            self.sums = sums
        else:
            self.sums += sums  # the one step that changes what was there
        self.n_rows += n_rows
        self.dtype = np.result_type(self.dtype, dtype)


def _blocks(sums: Doubles) -> list[tuple[slice, int]]:
    """Cut sums into blocks of rows, each with the columns in use."""
    p = sums.shape[2] - 2
    return [*_triangle(p), (slice(p, None), p + 2)]


def _triangle(p: int) -> list[tuple[slice, int]]:
    """Cut a lower triangle into blocks of rows, each as wide as its last: 56 % of the square."""
    step = max(1, -(-p // 8))
    return [(slice(i, min(i + step, p)), min(i + step, p)) for i in range(0, p, step)]


class _Lane:
    """The sums of one thread, and its scratch."""

    def __init__(self, shape: tuple[int, ...]):
        self.sums = np.zeros(shape)
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self.product = np.empty((0, 0), np.float32)
        self.weighted: Floats | None = None

    def add(self, Z: Floats, y: Doubles, weight: Doubles | None, first_fold: int) -> None:
        n_folds, p = len(self.sums), Z.shape[1]
        self.dtype = np.result_type(self.dtype, Z.dtype)
        R = np.ones((len(y), 1 + y.shape[1]))
        R[:, 1:] = y
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            R *= root
            if self.weighted is None:
                self.weighted = np.empty_like(Z)  # the first tile is as high as any
            Z = np.multiply(Z, root.astype(Z.dtype), out=self.weighted[: len(Z)])
        if Z.dtype == np.float32 and not self.product.size:
            self.product = np.empty((self.sums.shape[1], p), np.float32)
        _gram.add_moments(Z, R.astype(Z.dtype, copy=False), first_fold, self.sums, self.product)
        for row in range(min(n_folds, len(R))):
            part, sums = R[row::n_folds], self.sums[(first_fold + row) % n_folds]
            sums[p:, p] += part.T @ part[:, 0]
            sums[p, p + 1] += np.count_nonzero(part[:, 0])
            sums[p + 1 :, p + 1] += np.einsum("it,it->t", part[:, 1:], part[:, 1:])


def for_each_tile(
    features: Any,
    X: Any,
    use: Callable[[int, slice, Floats], None],
    n_lanes: int | None = None,
    name: str = "X",
) -> None:
    """Call use(lane, rows, Z) with Z = features.transform(X[rows]) for all tiles of X's rows.

    The tiles are dealt in turn to `n_lanes` threads. Within each, our kernels and BLAS have the
    threads that remain, usually one: where both would spread over all processors, the threads
    of BLAS go on spinning after a call and stall the kernel that comes next.

    Z is C-contiguous, of the dtype of X (float32 or float64), and may be overwritten afterwards.
    Errors about values call X by `name`.
    """
    n_samples = X.shape[0]
    n_lanes = n_lanes or _n_lanes(X)
    n_rows = _tile_rows(features, X, n_lanes)
    each = max(1, n_threads() // n_lanes)
    stop = threading.Event()

    def run(lane: int) -> None:
        tile_of = _Tiles(features, X, n_rows, name)
        try:
            with limit_threads(each):
                for start in range(lane * n_rows, n_samples, n_lanes * n_rows):
                    if stop.is_set():
                        return
                    rows = slice(start, min(start + n_rows, n_samples))
                    use(lane, rows, tile_of(rows))
        except BaseException:
            stop.set()
            raise

    with limit_blas(each), ThreadPoolExecutor(n_lanes) as pool:
        others = [pool.submit(run, lane) for lane in range(1, n_lanes)]
        try:
            run(0)
            for other in others:
                other.result()
        except BaseException:  # Ctrl-C comes here: leave no thread behind
            stop.set()
            raise


def _tile_rows(features: Any, X: Any, n_lanes: int) -> int:
    """Count the rows of a tile."""
    n_rows = max(1, TILE_BYTES // (8 * width_of(features, X)))
    # Sums within a tile are in the type of the data: fewer rows keep float32 close.
    most = TILE_ROWS // 2 if float_dtype(X) == np.float32 else TILE_ROWS
    return int(min(n_rows, most, -(-X.shape[0] // n_lanes)))


class _Tiles:
    """Features of a few rows at a time, in one buffer where the transformer takes `out`.

    Maps of this package write the features of a tile without validating it again: what they ask of
    rows is checked here.
    """

    def __init__(self, features: Any, X: Any, n_rows: int, name: str = "X"):
        self.features, self.X, self.name = features, X, name
        self.buffer: Floats | None = None
        if "out" in inspect.signature(features.transform).parameters:
            self.buffer = empty_aligned((n_rows, width_of(features, X)), float_dtype(X))
        self.map = _map_in(features)
        if self.map is not None:
            validate_data(
                self.map, X[:1], reset=False, accept_sparse="csr", ensure_all_finite=False
            )

    def __call__(self, rows: slice) -> Any:
        tile = self.X[rows].astype(float_dtype(self.X), copy=False)
        if not is_finite(tile):
            raise_not_finite(self.X, self.name)
        if self.buffer is not None:
            Z = self.buffer[: tile.shape[0]]
            if self.map is None:
                self.features.transform(tile, out=Z)
            else:
                if sparse.issparse(tile):
                    tile.check_format(full_check=True)
                self.map.write(tile, Z)
            return Z
        Z = self.features.transform(tile)
        Z = Z.toarray() if sparse.issparse(Z) else np.asarray(Z)
        return np.ascontiguousarray(Z, dtype=np.float32 if Z.dtype == np.float32 else np.float64)


def _map_in(features: Any) -> FeatureMap | None:
    """Return the feature map of this package that `features` is, frozen or not."""
    while isinstance(features, FrozenEstimator):
        features = features.estimator
    # A class may have a transform of its own, which does more than write.
    ours = getattr(type(features), "transform", None) is FeatureMap.transform
    return features if ours else None


def _n_lanes(X: Any, bytes_each: int = 0) -> Any:
    """Count the threads worth starting: one per 256 rows, all their sums within 1 GiB."""
    most = min(n_threads(), X.shape[0] // 256)
    return max(1, min(most, ALL_SUMS_BYTES // bytes_each) if bytes_each else most)


def width_of(features: Any, X: Any) -> Any:
    """Count the columns that a fitted transformer makes."""
    known = getattr(features, "_n_features_out", None)  # where scikit-learn's transformers have it
    return features.transform(X[:1]).shape[1] if known is None else known


# What callers may pass as rows, targets and weights. The values of X are checked tile by tile, when
# they are read anyway.


def check_rows(X: Data) -> Any:
    """Return X as an array or CSR matrix without copying it, memory maps least of all."""
    return check_array(X, accept_sparse="csr", ensure_all_finite=False)


def check_targets(y: Any, X: Any) -> Any:
    """Return y in float64, of shape (n_samples,) or (n_samples, n_targets)."""
    try:
        y = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"y must be one number, or row of numbers, per row of X: {error}"
        ) from None
    check_consistent_length(X, y)
    raise_not_finite(y, "y", "leave out rows without a target")
    return y


def check_weights(sample_weight: ArrayLike | None, X: Any) -> Any:
    """Return the weights in float64, or None for none."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    try:
        weight = check_array(
            sample_weight, dtype=np.float64, ensure_2d=False, ensure_all_finite=False
        )
    except (TypeError, ValueError) as error:
        raise type(error)(f"sample_weight must be one number per row of X: {error}") from None
    if weight.shape != (X.shape[0],):
        raise ValueError(
            f"sample_weight has shape {weight.shape}, but X has {counted(X.shape[0], 'row')}; "
            f"give one number per row, shape ({X.shape[0]},)"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{bad[0]}] = {weight[bad[0]]} is not a finite number >= 0; "
            "use 0 to leave a row out"
        )
    return weight


def float_dtype(X: Any) -> type[np.floating[Any]]:
    """Return the type in which rows are worked on, float32 or float64."""
    return np.float32 if X.dtype.newbyteorder("=") == np.float32 else np.float64


# ---- moments about the mean, of one view or two


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
        Of the second view; of width 0 where there is one view only, as the two that follow.
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
        """The weight less 1."""
        if not self.weight > 1:
            raise ValueError(
                f"the weights add up to {self.weight:g}, and a variance needs more than 1: a "
                "weight says how many rows a row stands for; scale them to the number of rows"
            )
        return self.weight - 1.0


class MomentsAccumulator:
    """Mean and centred sums of products of features, or of two views of the same rows together.

    With `features_y` each row has two parts, x and y, and the features of both are taken as one
    row [z(x) u(y)]: its moments hold those of either view and the cross-moments.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.
    features_y : fitted transformer, optional
        The same for a second view.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), or None
        Weighted mean of the rows so far.
    scatter : ndarray of shape (n_features, n_features), or None
        Weighted sum of products about `mean`; 0 above the diagonal.
    weight : float
        Sum of the weights.
    n_weighted, n_rows : int
        Number of rows with a positive weight, and of all.
    dtype : dtype
        float32 as long as all features were.

    Notes
    -----
    Features are taken about the mean of what was there before (first of some of the first rows),
    multiplied in their type and added in float64, then moved to the mean of all (Chan, Golub,
    LeVeque 1979). Means far from 0 cost no digits. Time n p^2 for n rows of p features of both
    views together, memory 8 p^2 bytes for each thread.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0], [3.0, 6.0]])
    >>> found = MomentsAccumulator(FunctionTransformer().fit(X)).update(X).finalize()
    >>> found.mean, found.covariance
    (array([2., 4.]), array([[2., 4.],
           [4., 8.]]))
    """

    _state = stored(
        "features",
        "features_y",
        "width",
        "mean",
        "lower",
        "weight",
        "n_weighted",
        "n_rows",
        "dtype",
        scatter=None,
    )

    def __init__(self, features: Any, features_y: Any = None):
        self.features = features
        self.features_y = features_y
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
        """Add the rows of a batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features_in)
        y : array-like or sparse matrix of shape (n_samples, n_features_in_y), optional
            The second view, where there is `features_y`.
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; 1 for each row by default.

        Returns
        -------
        self
            As it was before, if anything fails or interrupts on the way.
        """
        X = check_rows(X)
        weight = check_weights(sample_weight, X)
        if (y is None) != (self.features_y is None):
            raise ValueError(
                "there is a second view of the rows, but no features_y for it; make the "
                "accumulator with both, MomentsAccumulator(features, features_y)"
                if self.features_y is None
                else "y is None, but features_y maps a second view of the rows; pass its rows as y"
            )
        if self.features_y is not None:
            y = check_rows(y)
            check_consistent_length(X, y)
        return self.add(X, y, weight)

    def add(self, X: Any, y: Any, weight: Doubles | None) -> "MomentsAccumulator":
        """Add rows, of both views if there are two, and weights that were checked."""
        width = width_of(self.features, X)
        p = width + (0 if y is None else width_of(self.features_y, y))
        self._check_width(width, p)
        shape = (1, p + 1, p + 2)
        count = _n_lanes(X, 8 * int(np.prod(shape)))
        rows_each = _tile_rows(self.features, X, count)
        shift = self.mean
        if shift is None:
            few = slice(0, min(rows_each, 256))
            shift = _both_views(self.features, self.features_y, X, y, rows_each)(few, None, 0.0)
            shift = shift.mean(axis=0, dtype=np.float64)
        lanes = [_Lane(shape) for _ in range(count)]
        views = [_both_views(self.features, self.features_y, X, y, rows_each) for _ in range(count)]

        def add(lane: int, rows: slice, Z: Floats) -> None:
            V = views[lane](rows, Z, shift)
            nothing = np.empty((len(V), 0))
            lanes[lane].add(V, nothing, None if weight is None else weight[rows], 0)

        for_each_tile(self.features, X, add, count)
        added = lanes[0].sums
        for other in lanes[1:]:
            added += other.sums
        if not np.isfinite(added[0, p]).all():
            raise ValueError(f"{self.features} made NaN or infinity of finite X; check its output")
        dtype = np.result_type(*(lane.dtype for lane in lanes))
        mean = np.zeros(p + 1)
        total, positive = float(added[0, p, p]), int(added[0, p, p + 1])
        if total > 0:
            mean[:p] = added[0, p, :p] / total
            _gram.recentre(added, mean)
        mean = shift.astype(dtype) + mean[:p]
        scatter = np.tril(added[0, :p, :p])
        self._add(width, mean, scatter, total, positive, X.shape[0], dtype)
        return self

    def merge(self, other: "MomentsAccumulator") -> "MomentsAccumulator":
        """Add the rows of another accumulator with the same features.

        Returns
        -------
        self
        """
        if other.mean is not None:
            self._check_width(other.width, len(other.mean))
            self._add(
                other.width, other.mean, other.scatter.copy(), other.weight, other.n_weighted,
                other.n_rows, other.dtype,
            )  # fmt: skip
        return self

    def finalize(self) -> CentredMoments:
        """Return means and centred sums by name."""
        if self.mean is None:
            raise ValueError("there are no rows yet; call update(X) first")
        if not self.weight > 0:
            raise ValueError("all sample weights are zero; give some rows a positive weight")
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
                f"these rows have {new} features in the two views, those before {old}; add rows of "
                "one kind, or start a new accumulator"
            )

    def _add(
        self,
        width: int,
        mean: Doubles,
        scatter: Doubles,
        weight: float,
        n_weighted: int,
        n_rows: int,
        dtype: np.dtype[Any],
    ) -> None:
        """Join the moments of other rows to ours; `scatter` is given up to us."""
        total = self.weight + weight
        if self.weight > 0 and weight > 0:
            apart = mean - self.mean
            scatter += self.scatter
            scatter += np.tril(np.outer(apart, (self.weight * weight / total) * apart))
            mean = self.mean + (weight / total) * apart
        elif self.weight > 0:
            mean, scatter = self.mean, self.scatter
        new = {
            "width": width,
            "mean": mean,
            "scatter": scatter,
            "weight": total,
            "n_weighted": self.n_weighted + n_weighted,
            "n_rows": self.n_rows + n_rows,
            "dtype": np.result_type(self.dtype, dtype),
        }
        vars(self).update(new)  # the one step that changes what was there

    def _emptied(self) -> "MomentsAccumulator":
        """Return an accumulator of the same kind that has seen no rows."""
        return MomentsAccumulator(self.features, self.features_y)

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels between processes: hardly more than the triangle."""
        state = vars(self) | {"scatter": None}
        if self.scatter is not None:
            blocks = _triangle(len(self.scatter))
            state["pieces"] = [self.scatter[rows, :end].copy() for rows, end in blocks]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        pieces = state.pop("pieces", None)
        vars(self).update(state)
        if pieces is not None:
            self.scatter = np.zeros((len(self.mean), len(self.mean)))
            for (rows, end), piece in zip(_triangle(len(self.mean)), pieces, strict=True):
                self.scatter[rows, :end] = piece

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: the lower triangle only."""
        if self.scatter is None:
            return {}
        return {"lower": self.scatter[np.tril_indices(len(self.scatter))]}

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> "MomentsAccumulator":
        self = cls(data["features"], data["features_y"])
        lower = data.pop("lower", None)
        vars(self).update(data)
        if lower is not None:
            self.scatter = np.zeros((len(self.mean), len(self.mean)))
            self.scatter[np.tril_indices(len(self.mean))] = lower
        return self


def _both_views(
    features: Any, features_y: Any, X: Any, y: Any, n_rows: int
) -> Callable[[slice, Floats | None, Any], Floats]:
    """Return a function that writes the features of some rows, of both views, less a shift."""
    tile_x = _Tiles(features, X, 1)
    tile_x.buffer = None  # asked for once, if at all
    tile_y = None if features_y is None else _Tiles(features_y, y, n_rows, "y")
    buffer: Any = None

    def fill(rows: slice, Z: Floats | None, shift: Any) -> Floats:
        nonlocal buffer
        parts = [tile_x(rows) if Z is None else Z]
        if tile_y is not None:
            parts.append(tile_y(rows))
        width = sum(part.shape[1] for part in parts)
        if buffer is None or len(buffer) < len(parts[0]):
            buffer = np.empty((len(parts[0]), width), np.result_type(*parts))
        V: Floats = buffer[: len(parts[0])]
        shift = np.broadcast_to(shift, width).astype(V.dtype)
        start = 0
        with np.errstate(invalid="ignore"):  # of infinite features, which are refused later
            for part in parts:
                columns = slice(start, start + part.shape[1])
                np.subtract(part, shift[columns], out=V[:, columns])
                start = columns.stop
        return V

    return fill


# ---- clusters


@dataclass(frozen=True)
class Clusters:
    """What a pass over the rows tells of clusters around given centres.

    With several sets of centres each array has a first axis for them.

    Attributes
    ----------
    weights : ndarray of shape (n_clusters,)
        Sum of the weights of each cluster's rows.
    means : ndarray of shape (n_clusters, n_features)
        Mean of each cluster's rows; the centre itself where the cluster is empty.
    inertia : float or ndarray
        sum_i w_i |z_i - nearest centre|^2.
    variance : float
        Weighted variance of the features of all rows, averaged over the features.
    """

    weights: Doubles
    means: Doubles
    inertia: Any
    variance: float


class ClusterAccumulator:
    """Sums of the rows nearest to each of some centres: one step of Lloyd's algorithm, by tiles.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.
    centers : ndarray of shape (n_clusters, n_features) or (n_starts, n_clusters, n_features)
        In the space of the features; several sets of them share the features of a pass.
    about : ndarray of shape (n_features,), optional
        What rows are taken about, so that distances lose no digits; the mean of all centres by
        default. A fixed point gives the same sums bit by bit for the same clusters.

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
    Of two centres equally near the first counts. Rows split over several accumulators with the same
    centres and merged give the same sums to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[0.0], [2.0], [9.0]])
    >>> sums = ClusterAccumulator(FunctionTransformer().fit(X), [[0.0], [10.0]])
    >>> found = sums.update(X).finalize()
    >>> found.means, float(found.inertia)
    (array([[1.],
           [9.]]), 5.0)
    """

    _state = stored(
        "features", "centers", "about", "counts", "sums", "inertia", "squares", "n_rows"
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
        self.about = _in_single(self._stacked().mean(axis=(0, 1)) if about is None else about)
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
    ) -> "ClusterAccumulator":
        """Add the rows of a batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features_in)
        sample_weight : array-like of shape (n_samples,), optional
            Not negative; 1 for each row by default.
        labels : ndarray of int32 of shape (n_samples, n_starts), optional
            Where to write the number of each row's nearest centre.

        Returns
        -------
        self
            As it was before, if anything fails or interrupts on the way.
        """
        X = check_rows(X)
        return self.add(X, check_weights(sample_weight, X), labels=labels)

    def add(
        self, X: Any, weight: Doubles | None, *, labels: NDArray[np.int32] | None = None
    ) -> "ClusterAccumulator":
        """Add rows and weights that were checked."""
        width = width_of(self.features, X)
        if width != self.sums.shape[2]:
            raise ValueError(
                f"the centers have {counted(self.sums.shape[2], 'column')}, but the features "
                f"{width}; pass centers in the space of the features"
            )
        count = _n_lanes(X, 16 * self.sums.size + 1)
        lanes = [_ClusterLane(self._stacked(), self.about) for _ in range(count)]

        def add(lane: int, rows: slice, Z: Floats) -> None:
            nearest = lanes[lane].add(Z, None if weight is None else weight[rows])
            if labels is not None:
                labels[rows] = nearest

        for_each_tile(self.features, X, add, len(lanes))
        new = [sum(getattr(lane, name) for lane in lanes) for name in _CLUSTER_SUMS]
        if not np.isfinite(new[-1]):
            raise ValueError(f"{self.features} made NaN or infinity of finite X; check its output")
        self._add(new, X.shape[0])
        return self

    def merge(self, other: "ClusterAccumulator") -> "ClusterAccumulator":
        """Add the rows of another accumulator with the same features and centres.

        Returns
        -------
        self
        """
        same = np.array_equal(self.centers, other.centers)
        if not (same and np.array_equal(self.about, other.about)):
            raise ValueError("cannot merge sums around other centers; start both from the same")
        self._add([getattr(other, name) for name in _CLUSTER_SUMS], other.n_rows)
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
        new = {
            name: getattr(self, name) + more for name, more in zip(_CLUSTER_SUMS, sums, strict=True)
        }
        vars(self).update(new | {"n_rows": self.n_rows + n_rows})


def _in_single(values: Doubles) -> Doubles:
    """Round values so that they are the same in float32, where they fit."""
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    return np.where(np.isfinite(rounded), rounded, values)


_CLUSTER_SUMS = ("counts", "sums", "inertia", "squares")


class _ClusterLane:
    """The sums of one thread around several sets of centres, and its scratch."""

    def __init__(self, centers: Doubles, about: Doubles):
        self.shape, self.about = centers.shape, about
        self.centers = (centers - about).reshape(-1, centers.shape[2])
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

    def distances(self, V: Floats) -> tuple[Any, Any]:
        """Return |v|^2 of rows, and |c|^2 - 2 v.c for all centres (n, n_starts, n_clusters)."""
        squares = np.einsum("ij,ij->i", V, V)
        rest = V @ (-2.0 * self.centers.T).astype(V.dtype)
        rest += np.einsum("ij,ij->i", self.centers, self.centers).astype(V.dtype)
        return squares, rest.reshape(len(V), *self.shape[:2])

    def add(self, Z: Floats, weight: Doubles | None) -> Any:
        """Add a tile, and return the nearest centres (n, n_starts)."""
        n, n_starts, k = len(Z), *self.shape[:2]
        V = self.centred(Z)
        squares, rest = self.distances(V)
        nearest = rest.argmin(axis=2)
        least = np.take_along_axis(rest, nearest[:, :, None], axis=2)[:, :, 0]
        cost = np.maximum(squares[:, None] + least, 0.0).astype(np.float64)
        weight = np.ones(n) if weight is None else weight
        self.squares += float(weight @ squares)
        self.inertia += weight @ cost
        places = nearest + k * np.arange(n_starts)
        each = np.repeat(weight, n_starts)
        added = np.bincount(places.ravel(), each, minlength=n_starts * k)
        self.counts += added.reshape(n_starts, k)
        ends = np.arange(0, n_starts * n + 1, n_starts)
        shape = (n, n_starts * k)
        member = sparse.csr_array((each.astype(V.dtype), places.ravel(), ends), shape=shape)
        self.sums += (member.T @ V).reshape(self.shape)
        return nearest
