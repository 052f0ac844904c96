"""Moments of features, Z^T Z, Z^T y and others, summed tile by tile without storing Z."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from gzkcore._compiled import gram as _gram
from gzkcore._util.state import doubles, floating_dtype, has, nothing, stored, whole
from gzkcore._util.typing import Data, Doubles, Floats
from gzkcore._util.validation import check_integer, check_same_class, check_targets, check_weights
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.features.base import KernelMap
from gzkcore.features.product import ProductFeatures

from .tiles import Tiles, as_rows, for_each_tile, thread_count, tile_rows, width_of

__all__ = ["GramAccumulator", "Moments"]

# A warning names a column if rounding errors of its sums exceed this share of its variance.
MOST_LOST = 1e-3
# A column is constant if its standard deviation is at most this many units in the last place.
CONSTANT_UNITS = 32.0
# Rows of a tile, evenly spread, that are checked for lost digits; fewer than the first are not.
LEAST_CHECKED, MOST_CHECKED = 16, 128


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows (z, y), from which a regression on features is computed.

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
    """Sums over rows in any batches: Z^T W Z, Z^T W Y and weighted column sums.

    Z = features.transform(X) is computed tile by tile, on several threads. Sums are float64, also
    for float32 features. Only the lower triangle of Z^T W Z is kept.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.
    n_folds : int, default=1
        Number of folds, whose sums are kept separately. Row i, counted over all batches, is in fold
        i mod n_folds.

    Attributes
    ----------
    sums : ndarray of shape (n_folds, n_features + 1 + n_targets, n_features + 2), or None
        Per fold, the products of the rows [z 1 y] with the columns [z 1]. A last column holds the
        number of rows with a positive weight (beside the 1) and sum w y^2 (beside each y). All are
        in one array, so that a merge is one addition. Above the diagonal of Z^T W Z it is 0.
    n_rows : int
        Number of rows seen.
    dtype : dtype
        float32 as long as all features were.

    Notes
    -----
    Time: n p^2 multiplications for n rows of p features. Memory: 8 p^2 bytes per fold and thread
    (on fewer threads if that would exceed 1 GiB), and a tile of Z per thread. Sums over several
    accumulators, merged, agree up to rounding with those of one accumulator.

    Products are summed first and centred about the mean afterwards. So a column whose mean is much
    larger than its spread loses digits. A warning names such a column if the first tile has one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> GramAccumulator(FunctionTransformer().fit(X)).update(X).finalize().gram
    array([[10., 14.],
           [14., 20.]])
    """

    _state = stored(
        features=has("transform") | nothing(),
        n_folds=whole(1),
        n_rows=whole(0),
        dtype=floating_dtype(),
        rest=doubles("n_folds", None, None).if_there(),
        lower=doubles("n_folds", lambda of: math.comb(of.rest.shape[2] - 1, 2)).if_there(),
    )

    def __init__(self, features: Any, n_folds: int = 1):
        self.features, self.n_folds = features, check_integer("n_folds", n_folds, 1)
        self.sums: Any = None
        self.n_rows = 0
        self.dtype: np.dtype[Any] = np.dtype(np.float32)

    def update(
        self, X: Data, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> "GramAccumulator":
        """Add the rows of a batch, and return self: unchanged if an error or an interrupt occurs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features_in)
            A memory map is read tile by tile and never copied.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0; 1 for each row by default.
        """
        X = as_rows(X)
        weight = check_weights(sample_weight, X)
        y = np.empty((X.shape[0], 0)) if y is None else check_targets(y, X)
        return self.add(X, y, weight)

    def add(self, X: Any, y: Doubles, weight: Doubles | None) -> "GramAccumulator":
        """Add rows, targets and weights that were checked, as learners do once for all batches."""
        y = y.reshape(X.shape[0], -1)
        p = width_of(self.features, X)
        shape = (self.n_folds, p + 1 + y.shape[1], p + 2)
        self._check_shape(shape)
        parts = [PartialSums(shape) for _ in range(thread_count(X, 8 * math.prod(shape)))]
        warnings = []

        def add(thread: int, rows: slice, Z: Floats) -> None:
            if self.n_rows == 0 and rows.start == 0:
                some = None if weight is None else weight[rows]
                warnings.append(_lost_digits(self.features, Z, some))
            first_fold = (self.n_rows + rows.start) % self.n_folds
            parts[thread].add(Z, y[rows], None if weight is None else weight[rows], first_fold)

        for_each_tile(self.features, X, add, len(parts))
        added, dtype = total_of(parts, self.features)
        if not np.isfinite(added[:, p + 1 :]).all():
            raise ValueError(
                f"y is so large that sums of its squares, or of its products with {dtype} "
                "features, overflow; scale it"
            )
        for warning in filter(None, warnings):
            warn(warning, UserWarning)
        self._add(added, X.shape[0], dtype)
        return self

    def look(self, X: Any, weight: Doubles | None) -> None:
        """Check the first rows here; warnings of workers are lost."""
        if self.n_rows == 0:
            rows = slice(0, tile_rows(self.features, X, 1))
            Z = Tiles(self.features, X, rows.stop)(rows)
            some = None if weight is None else weight[rows]
            if warning := _lost_digits(self.features, Z, some):
                warn(warning, UserWarning)

    def merge(self, other: "GramAccumulator") -> "GramAccumulator":
        """Add the rows of another accumulator of the same features after these; return self."""
        check_same_class(self, other)
        if other.n_folds != self.n_folds:
            raise ValueError(
                f"cannot merge {other.n_folds} folds into {self.n_folds}; use the same number of "
                "folds"
            )
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
        """Return the sums by name, for one fold or (None) for all rows."""
        if self.sums is None:
            raise ValueError("there are no rows yet; call update(X, y) first")
        return Moments.from_sums(self.sums.sum(axis=0) if fold is None else self.sums[fold])

    def _to_data(self) -> dict[str, Any]:
        """Return the data of a file, see `model_io`: Gram matrices as lower triangles."""
        if self.sums is None:
            return {}
        p = self.sums.shape[2] - 2
        return {"lower": pack_lower(self.sums[:, :p]), "rest": self.sums[:, p:].copy()}

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> "GramAccumulator":
        self = cls(data["features"], data["n_folds"])
        self.n_rows, self.dtype = data["n_rows"], data["dtype"]
        if "rest" in data:
            n_folds, n_rest, width = data["rest"].shape
            self.sums = np.zeros((n_folds, width - 2 + n_rest, width))
            unpack_lower(data["lower"], self.sums[:, : width - 2])
            self.sums[:, width - 2 :] = data["rest"]
        return self

    def _emptied(self) -> "GramAccumulator":
        """Return an accumulator of the same kind that has seen no rows."""
        return GramAccumulator(self.features, self.n_folds)

    def __copy__(self) -> "GramAccumulator":
        made = self._emptied()
        vars(made).update(vars(self) | {"sums": None if self.sums is None else self.sums.copy()})
        return made

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"sums": None} | self._to_data()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(vars(self._from_data(state)))

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if self.sums is not None and self.sums.shape != shape:
            old, new = [(s[2] - 2, s[1] - s[2] + 1) for s in (self.sums.shape, shape)]
            raise ValueError(
                f"these rows have {counted(new[0], 'feature')} and {counted(new[1], 'target')}, "
                f"but earlier rows had {old[0]} and {old[1]}; add rows of one kind, or start a new "
                "accumulator"
            )

    def _add(self, sums: Doubles, n_rows: int, dtype: np.dtype[Any]) -> None:
        if self.sums is None:
            self.sums = sums
        else:
            self.sums += sums  # the one step that changes what was there
        self.n_rows += n_rows
        self.dtype = np.result_type(self.dtype, dtype)


def _lost_digits(features: Any, Z: Floats, weight: Doubles | None) -> str | None:
    """Name the column whose sums lose most digits to cancellation, if any.

    Features of a kernel are not checked: all have one scale, so that columns that hardly vary do no
    harm.
    """
    if _of_a_kernel(features):
        return None
    Z = Z if weight is None else Z[weight > 0]
    Z = Z[:: max(1, len(Z) // MOST_CHECKED)]
    if len(Z) < LEAST_CHECKED:
        return None
    eps = float(np.finfo(Z.dtype).eps)
    with np.errstate(all="ignore"):  # NaN and infinity are refused elsewhere
        mean = Z.mean(axis=0, dtype=np.float64)
        apart = Z - mean
        variance = np.einsum("ij,ij->j", apart, apart) / len(Z)
        square = np.square(mean)
        lost = eps * (square + variance) > MOST_LOST * variance
        lost &= variance > np.square(CONSTANT_UNITS * eps) * square  # constants do no harm
    if not lost.any():
        return None
    worst = int(np.argmax(np.where(lost, square / np.where(lost, variance, 1.0), 0.0)))
    remedy = ", or pass float64 rows" if Z.dtype == np.float32 else ""
    return (
        f"column {worst} of the features has the mean {mean[worst]:.3g} and the standard deviation "
        f"{math.sqrt(variance[worst]):.3g}, and sums of {Z.dtype} products keep few digits of "
        "that: coefficients may be wrong. Centre the columns, such as by a StandardScaler in front "
        f"of the features{remedy}"
    )


def _of_a_kernel(features: Any) -> bool:
    """Return whether features approximate a kernel, ours or those of scikit-learn."""
    while isinstance(features, FrozenEstimator | Pipeline):
        frozen = isinstance(features, FrozenEstimator)
        features = features.estimator if frozen else features.steps[-1][1]
    kinds = {kind.__module__ for kind in type(features).__mro__}
    return isinstance(features, KernelMap | ProductFeatures) or (
        "sklearn.kernel_approximation" in kinds
    )


def pack_lower(matrices: Doubles) -> Doubles:
    """Return the lower triangles of matrices (..., m, >= m), row after row."""
    m = matrices.shape[-2]
    return np.concatenate([matrices[..., i, : i + 1] for i in range(m)], axis=-1)


def unpack_lower(packed: Doubles, matrices: Doubles) -> None:
    """Undo `pack_lower`."""
    first = 0
    for i in range(matrices.shape[-2]):
        matrices[..., i, : i + 1] = packed[..., first : first + i + 1]
        first += i + 1


class PartialSums:
    """The sums of one thread, and its buffer for weighted rows."""

    def __init__(self, shape: tuple[int, ...]):
        self.sums = np.zeros(shape)
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self.weighted: Floats | None = None

    def add(self, Z: Floats, y: Doubles, weight: Doubles | None, first_fold: int) -> None:
        """Add a tile of rows, of which the first belongs to `first_fold`."""
        n_folds, p = len(self.sums), Z.shape[1]
        self.dtype = np.result_type(self.dtype, Z.dtype)
        R = np.ones((len(y), 1 + y.shape[1]))
        R[:, 1:] = y
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            R *= root
            with np.errstate(over="ignore", under="ignore"):
                factor = root.astype(Z.dtype, copy=False)
            if not (np.isfinite(factor).all() and ((factor > 0) == (root > 0)).all()):
                raise ValueError(
                    f"sample_weight has weights so large or so small that {Z.dtype} features can't "
                    "be multiplied by their roots; divide it by its mean"
                )
            if self.weighted is None:
                self.weighted = np.empty_like(Z)  # no tile has more rows than the first
            Z = np.multiply(Z, factor, out=self.weighted[: len(Z)])
        with np.errstate(over="ignore"):  # the total is checked
            targets = R.astype(Z.dtype, copy=False)
        _gram.add_moments(Z, targets, first_fold, self.sums)
        for row in range(min(n_folds, len(R))):
            part, sums = R[row::n_folds], self.sums[(first_fold + row) % n_folds]
            sums[p:, p] += part.T @ part[:, 0]
            sums[p, p + 1] += np.count_nonzero(part[:, 0])
            sums[p + 1 :, p + 1] += np.einsum("it,it->t", part[:, 1:], part[:, 1:])


def total_of(parts: Sequence[PartialSums], features: Any) -> tuple[Doubles, np.dtype[Any]]:
    """Return the sums of all threads together, and the type of their features."""
    total = parts[0].sums
    for part in parts[1:]:
        total += part.sums
    if not np.isfinite(total[:, total.shape[2] - 2]).all():
        raise ValueError(f"{features} returned NaN or infinity for finite X; check its output")
    return total, np.result_type(*(part.dtype for part in parts))
