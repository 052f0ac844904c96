"""Moments of features, tile by tile: Z^T Z, Z^T y and their kin, without ever storing Z.

Every learner stands on `GramAccumulator`. Whoever needs something else of the rows of Z, such as
predictions, reads them through `for_each_tile`.
"""

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
from sklearn.utils import check_array, check_consistent_length

from . import _gram
from ._threads import limit_blas, limit_threads, n_threads
from ._typing import Data, Doubles, Floats
from ._validation import empty_aligned

__all__ = ["GramAccumulator", "Moments"]

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

    def __init__(self, features: Any, n_folds: int = 1):
        self.features = features
        self.n_folds = n_folds
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
            theirs = np.roll(other.sums, self.n_rows % self.n_folds, axis=0)
            self._add(theirs, other.n_rows, other.dtype)
        return self

    def finalize(self, fold: int | None = None) -> Moments:
        """Return the sums by name, of one fold or (None) of all rows."""
        if self.sums is None:
            raise ValueError("there are no rows yet; call update(X, y) first")
        return Moments.from_sums(self.sums.sum(axis=0) if fold is None else self.sums[fold])

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: of Gram matrices the lower triangle only."""
        data = vars(self) | {"sums": None}
        if self.sums is not None:
            lower = np.tril_indices(self.sums.shape[2] - 2)
            data["lower"] = self.sums[:, *lower]
            data["rest"] = self.sums[:, self.sums.shape[2] - 2 :].copy()
        return data

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

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if self.sums is not None and self.sums.shape != shape:
            old, new = [(s[2] - 2, s[1] - s[2] + 1) for s in (self.sums.shape, shape)]
            raise ValueError(
                f"these rows have {new[0]} features and {new[1]} targets, those before {old[0]} "
                f"and {old[1]}; add rows of one kind, or start a new accumulator"
            )

    def _add(self, sums: Doubles, n_rows: int, dtype: np.dtype[Any]) -> None:
        if self.sums is None:
            self.sums = sums
        else:
            self.sums += sums  # the one step that changes what was there
        self.n_rows += n_rows
        self.dtype = np.result_type(self.dtype, dtype)


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
) -> None:
    """Call use(lane, rows, Z) with Z = features.transform(X[rows]) for all tiles of X's rows.

    The tiles are dealt in turn to `n_lanes` threads. Within each, our kernels and BLAS have the
    threads that remain, usually one: where both would spread over all processors, the threads
    of BLAS go on spinning after a call and stall the kernel that comes next.

    Z is C-contiguous, of the dtype of X (float32 or float64), and may be overwritten afterwards.
    """
    n_samples = X.shape[0]
    n_lanes = n_lanes or _n_lanes(X)
    n_rows = max(1, TILE_BYTES // (8 * width_of(features, X)))
    # Sums within a tile are in the type of the data: fewer rows keep float32 close.
    most = TILE_ROWS // 2 if _float_dtype(X) == np.float32 else TILE_ROWS
    n_rows = min(n_rows, most, -(-n_samples // n_lanes))
    each = max(1, n_threads() // n_lanes)
    stop = threading.Event()

    def run(lane: int) -> None:
        tile_of = _Tiles(features, X, n_rows)
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


class _Tiles:
    """Features of a few rows at a time, in one buffer where the transformer takes `out`."""

    def __init__(self, features: Any, X: Any, n_rows: int):
        self.features, self.X = features, X
        self.buffer: Floats | None = None
        if "out" in inspect.signature(features.transform).parameters:
            self.buffer = empty_aligned((n_rows, width_of(features, X)), _float_dtype(X))

    def __call__(self, rows: slice) -> Any:
        tile = self.X[rows].astype(_float_dtype(self.X), copy=False)
        if not _is_finite(tile):
            raise_not_finite(self.X)
        if self.buffer is not None:
            return self.features.transform(tile, out=self.buffer[: tile.shape[0]])
        Z = self.features.transform(tile)
        Z = Z.toarray() if sparse.issparse(Z) else np.asarray(Z)
        return np.ascontiguousarray(Z, dtype=np.float32 if Z.dtype == np.float32 else np.float64)


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
    if not _is_finite(y):
        row = int(np.argwhere(~np.isfinite(y))[0, 0])
        raise ValueError(
            f"Input y contains {_kind(y)}. The first is in row {row}, counted from 0; leave out "
            "rows without a target"
        )
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
            f"sample_weight has shape {weight.shape}, but X has {X.shape[0]} rows; give one number "
            f"per row, shape ({X.shape[0]},)"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{bad[0]}] = {weight[bad[0]]} is not a finite number >= 0; "
            "use 0 to leave a row out"
        )
    return weight


def raise_not_finite(X: Any) -> None:
    """Raise a ValueError that names the first NaN or infinity in X, if there is one."""
    for start in range(0, X.shape[0], TILE_ROWS):
        tile = X[start : start + TILE_ROWS]
        if _is_finite(tile):
            continue
        tile = sparse.coo_array(tile)
        order = np.lexsort((tile.col, tile.row))
        at = order[~np.isfinite(tile.data[order])][0]
        raise ValueError(
            f"Input X contains {_kind(tile.data)}. The first is in row {start + tile.row[at]}, "
            f"column {tile.col[at]}, both counted from 0; leave such rows out or fill them in, "
            "for example with sklearn.impute.SimpleImputer"
        )


def _is_finite(values: Any) -> bool:
    values = values.data if sparse.issparse(values) else values
    if values.dtype.kind not in "fc":
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def _kind(values: NDArray[Any]) -> str:
    """Name what is wrong with the values as scikit-learn does."""
    if np.isnan(values).any():
        return "NaN"
    return f"infinity or a value too large for dtype('{values.dtype}')"


def _float_dtype(X: Any) -> type[np.floating[Any]]:
    return np.float32 if X.dtype.newbyteorder("=") == np.float32 else np.float64
