"""The base of all feature maps: validation of rows, `fit`, `transform`, and files."""

import math
import os
from collections.abc import Callable, Iterator
from operator import is_
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.memory import check_components
from gzkcore._util.state import all_or_nothing, check_arrays, forget, holds, stored, whole
from gzkcore._util.threads import in_parts, look, n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import (
    MOST_PLACES,
    check_array,
    check_integer,
    check_out,
    check_pairs,
    check_sparse,
    dense,
    extremes,
    first_not_finite,
    is_finite,
    validate_data,
)
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import WithKernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.points import check_unit_norms, row_norms
from gzkcore.rows.sources import is_dask
from gzkcore.rows.survey import Survey

from .fit_rows import FitRows

# Bytes of a tile, the rows that are worked on together.
TILE_BYTES = 1 << 22
# An output of more bytes is stored past the cache.
STREAM_BYTES = 1 << 24
# Features are checked for infinity if a coordinate of the rows, or a product of as many sums of
# coordinates as a feature has factors, is larger.
FAR, FAR_PRODUCT = 1e4, 1e18
# Flops of a thread that take about as long as an operation.
PRODUCTS = 16
# Kernels multiply rows of at most this many columns by themselves; for more, BLAS is faster.
FEW_COLUMNS = 32
# Columns of weights are padded to a multiple of this: whole vectors of any instruction set.
LANES = 16
_SWAPPED = np.dtype(np.float32).newbyteorder()


class TruncationWarning(UserWarning):
    """The warning for points so far out that features don't represent the kernel there."""


class RowMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the feature maps: transformers of rows, dense or sparse, to n_components columns.

    `fit` validates rows and calls `_fit`; `transform` validates rows, and `write` calls `_write`.
    """

    _state = stored(
        n_components=whole(1).if_there(),
        _n_features_out=whole(1, below=MOST_PLACES + 1),
    )

    # Whether `_write` divides the rows into tiles.
    _in_tiles: ClassVar[bool] = False
    # Tables of columns are of int32, up to the next power of two.
    _most_columns: ClassVar[int] = 1 << 30

    n_components: int
    n_features_in_: int
    _n_features_out: int

    # Pipelines don't route a buffer for one call.
    __metadata_request__transform: ClassVar[dict[str, str]] = {"out": UNUSED}

    @property
    def n_features_out_(self) -> int:
        """Width of the output."""
        check_is_fitted(self, "_n_features_out")
        return self._n_features_out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted features to a file, see `gzkcore.load`; an existing one is replaced."""
        from gzkcore._util.model_io import save

        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate(self, X: Data, *, reset: bool) -> Rows:
        return check_rows(self, X, reset=reset)

    @all_or_nothing
    def fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to the rows of X, see the class; a fit that fails changes nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            Targets, for a kernel with a parameter "learn" (see `learn_kernel`); others ignore them.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0. Rows of weight 0 are ignored, and equal weights change nothing. A row of
            weight 2 counts twice in means (the centre, the mean squared norm), in the variance for
            gamma="scale", and in the distribution of norms. Samples of rows, or of pairs, ignore
            weights: gamma="median" and "learn", landmarks, adapted axes, trials, expected errors.

        Returns
        -------
        self
        """
        self._forget()
        rows, names = self._validate(X, reset=True), getattr(self, "feature_names_in_", None)
        return self.fit_valid(FitRows.of_array(rows, sample_weight, y, names))

    def _fit_sample(self, survey: Survey, source: Any, names: Any) -> Self:
        """Fit to the rows of a source that can be read again, given their survey."""
        self._forget()
        X = self._validate(survey.rows, reset=True)
        return self.fit_valid(FitRows.of_survey(X, survey, source, names))

    def fit_valid(self, rows: FitRows) -> Self:
        """Fit to rows that learners, or maps of maps, have checked."""
        self.n_features_in_ = rows.X.shape[1]
        self._n_features_out = self._check_size(*rows.X.shape)
        self._fit(rows)
        return self

    def _forget(self) -> None:
        """Go back to before the first fit."""
        forget(self)

    def _check_size(self, rows: int, columns: int) -> int:
        """Return n_components, or raise if it or the columns are too many for kernels or memory."""
        width = check_integer("n_components", self.n_components, 1)
        if width > MOST_PLACES:
            raise ValueError(
                f"n_components={width} is too large; use at most {MOST_PLACES}, the limit of the "
                "tables of a feature map"
            )
        if columns > self._most_columns:
            raise ValueError(
                f"X has {columns} columns, and {type(self).__name__} takes at most "
                f"{self._most_columns}; reduce them first, for example with CountSketch"
            )
        check_components(width, self._bytes(width, rows, columns))
        return width

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        """Estimate the bytes of the fitted attributes and of the features of one row."""
        return 32.0 * width

    def _fit(self, rows: FitRows) -> None:
        """Set the fitted attributes, given `_n_features_out`, the width of the output."""
        raise NotImplementedError

    def transform(self, X: Data, *, out: Floats | None = None) -> Floats:
        """Map X to features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            For a Dask collection the result is a Dask array that is not yet computed.
        out : ndarray of shape (n_samples, n_components), optional
            Where to write: C-contiguous, of the dtype of the result, no overlap with X; 2 to 4
            times faster to fill than new memory if it was written before. Without `out`, a large
            result reuses the memory of earlier results that are no longer in use.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 for float32 X, else float64. Z @ Z.T approximates the kernel matrix.

        Notes
        -----
        Results are identical, to the last bit, for any number of threads and any split of the rows,
        on CPUs with the same instruction set. Where BLAS multiplies matrices, which the notes of a
        class say, they agree up to rounding.
        """
        if "_n_features_out" not in vars(self):  # check_is_fitted takes longer than a row
            check_is_fitted(self, "_n_features_out")
        if is_dask(X):
            from .dask import transform

            lazy: Floats = transform(self, X)
            return lazy
        X = self._validate(X, reset=False)
        out = check_out(out, (X.shape[0], self._n_features_out), X.dtype, X)
        self.write(X, out)
        return out

    def write(self, X: Rows, out: Floats) -> None:
        """Write the features of rows to `out`, without validation.

        X is float32 or float64, dense or CSR without an index outside its columns, and finite; out
        is C-contiguous, of the dtype of X, and does not overlap with it.
        """
        self._check_arrays()
        stream, n_rows = out.nbytes > STREAM_BYTES, X.shape[0]
        work, finite = 0.0 if self._in_tiles else self._flops(density_of(X)) / PRODUCTS, True
        work /= n_threads(int(n_rows * work))  # each thread has rows
        for rows in in_parts(n_rows, work):
            whole = rows.stop - rows.start == n_rows
            finite &= bool(self._write(X if whole else X[rows], out[rows], stream))
        if not finite:
            self._check_features(X, out)

    def _check_arrays(self) -> None:
        """Raise if a changed array of indices would lead a kernel out of another array."""
        check_arrays(self)

    def _check_features(self, X: Rows, out: Floats) -> None:
        """Raise if features of finite rows exceed the range of their dtype.

        If features are bounded, or grow like the rows, only rows far from 0 are checked.
        """
        values = X if isinstance(X, np.ndarray) else X.data
        if values.size < out.size:
            low, high = extremes(values)
            largest = max(-low, high)
            power = self._highest_power()
            if largest < FAR if power == 1 else self._is_small(largest * X.shape[1], power):
                return
        if not is_finite(out):
            (row, *_) = first_not_finite(out) or (0,)
            far = X[row : row + 1]
            raise ValueError(
                f"X is too large: row {row} has a coordinate of absolute value "
                f"{abs(far).max():.3g}, and its features exceed the range of {out.dtype}; scale "
                "the columns (sklearn.preprocessing.StandardScaler), or pass float64"
            )

    def _highest_power(self) -> int:
        """Return the largest number of factors in a feature."""
        return 1

    def _is_small(self, largest: float, power: int) -> bool:
        """Return whether products of scaled sums of coordinates are far from overflow."""
        gamma = np.max(getattr(self.kernel_, "gamma", 1.0))
        return power * math.log(max(1.0, largest * math.sqrt(gamma))) < math.log(FAR_PRODUCT)

    def _write(self, X: Rows, out: Floats, stream: bool) -> bool | None:
        """Write the features of rows, with `stream` past the cache; return if all are finite."""
        raise NotImplementedError

    def _flops(self, density: float) -> float:
        """Count the operations of a row with this share of nonzero entries."""
        return 2 * density * self.n_features_in_ + self._n_features_out

    def _about(self) -> str:
        """Describe the fitted features in a few words."""
        raise NotImplementedError


class KernelMap(WithKernel, RowMap):
    """Base of the maps for a kernel, which is a parameter."""

    _state = stored(
        kernel_=holds(Kernel),
    )

    kernel_: Any

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state


class SumMap(RowMap):
    """Base of the maps that sum all coordinates, so that sums show values that are not finite."""

    def _validate(self, X: Data, *, reset: bool) -> Rows:
        return check_rows(self, X, reset=reset, finite=reset)

    def _check_finite(self, X: Rows) -> None:
        """Raise if X holds NaN or infinity."""
        values = X.data if sparse.issparse(X) else X
        assert_all_finite(values, estimator_name=type(self).__name__, input_name="X")


class Projection(SumMap):
    """Base of the random projections, which are matrices S."""

    @property
    def components_(self) -> Any:
        """The matrix S of shape (n_components, n_features), computed at each access."""
        check_is_fitted(self, "_n_features_out")
        return self._matrix()

    def _matrix(self) -> Any:
        raise NotImplementedError

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Return the shortest rows whose projections are nearest to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            X times the transposed pseudo-inverse of `components_`, as in scikit-learn's
            projections.

        Notes
        -----
        O(D) operations a row, O(D log D) with a Hadamard transform, where the rows of S are
        orthogonal: n_components <= D, and with a transform D a power of two. For other sizes, and
        `FastJLProjection`, a pseudo-inverse of the dense S, O(n_components D^2).
        """
        check_is_fitted(self, "_n_features_out")
        V = check_array(X, dtype=[np.float64, np.float32])
        if V.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {counted(V.shape[1], 'column')}, but the projection has "
                f"n_components={self._n_features_out}; pass what transform returns"
            )
        return self._back(V)

    def _back(self, V: Floats) -> Floats:
        S = self._matrix()
        inverse = np.linalg.pinv(S.toarray() if sparse.issparse(S) else S)
        rows: Floats = V @ inverse.T.astype(V.dtype)
        return rows


def packed(X: Floats) -> Floats:
    """Return rows in C order and aligned, without a copy if they are."""
    flags = X.flags
    return X if flags.c_contiguous and flags.aligned else np.require(X, None, ["C", "ALIGNED"])


def call_kernel(for_dense: Any, for_sparse: Any, X: Rows, *args: Any) -> Any:
    """Call the compiled function for dense rows, or the one for CSR."""
    if isinstance(X, np.ndarray):
        return for_dense(packed(X), *args)
    return for_sparse(X.data, X.indices, X.indptr, *args)


def moment_of_pairs(moment: Any, x: ArrayLike, y: ArrayLike, *args: Any) -> Any:
    """Return a compiled moment of two points, a float, or of as many pairs of rows."""
    X, Y = check_pairs(x, y)
    out = np.empty(len(X))
    moment(X, Y, *args, out, n_threads(X.size))
    return out if np.ndim(x) > 1 else float(out[0])


def check_rows(estimator: Any, X: Data, *, reset: bool, finite: bool = True) -> Rows:
    """Return X as float32 or float64 rows, dense or CSR, or raise as scikit-learn does.

    Sparse rows that point outside their columns raise too: kernels would read there.
    """
    if is_dask(X):
        raise TypeError("X is a Dask collection; fit with gzkcore.features.dask.fit(features, X)")
    native: Any = X
    if (isinstance(native, np.ndarray) or sparse.issparse(native)) and native.dtype == _SWAPPED:
        native = native.astype(np.float32)  # scikit-learn would make it float64
    check_sparse(X)
    rows: Rows = validate_data(
        estimator, native, reset=reset, accept_sparse="csr", accept_large_sparse=True,
        dtype=[np.float64, np.float32], ensure_all_finite=finite,
    )  # fmt: skip
    if rows is not X:
        check_sparse(rows)
    if not isinstance(rows, np.ndarray):
        parts: list[Any] = [rows.data, rows.indices, rows.indptr]
        rows = rows if all(packed(part) is part for part in parts) else rows.copy()
    return rows


def plain_output(transformer: Any) -> Any:
    """Let a transformer return arrays, whatever scikit-learn's `transform_output` says.

    A frozen one stays as it is. Steps of a pipeline without `set_output` return arrays anyway.
    """
    if isinstance(transformer, Pipeline):
        for _, step in transformer.steps:
            plain_output(step)
    elif hasattr(transformer, "set_output") and not isinstance(transformer, FrozenEstimator):
        transformer.set_output(transform="default")
    return transformer


def tiles(n_rows: int, row_bytes: int) -> Iterator[slice]:
    """Yield slices of rows that are worked on together, at least 64 rows each."""
    step = max(64, TILE_BYTES // max(row_bytes, 1))
    for start in range(0, n_rows, step):
        look()
        yield slice(start, min(start + step, n_rows))


def density_of(X: Rows) -> float:
    """Return the share of the entries of rows that are stored."""
    return 1.0 if isinstance(X, np.ndarray) else X.nnz / max(1, X.shape[0] * X.shape[1])


def check_unit(X: Rows) -> None:
    """Raise unless every row has unit norm, as kernels on the sphere need."""
    for rows in tiles(X.shape[0], 8 * X.shape[1]):
        tile: Doubles = np.asarray(dense(X[rows]), dtype=np.float64)
        check_unit_norms(row_norms(tile), "X", rows.start)


def values_of_pairs(kernel: Kernel, a: Rows, b: Rows) -> Doubles:
    """Return k(a_i, b_i) from kernel matrices of a hundred rows."""
    parts = [slice(i, i + 100) for i in range(0, a.shape[0], 100)]
    return np.concatenate([np.diag(kernel(dense(a[i]), dense(b[i]))) for i in parts])


def random_pairs(
    n: int, count: int, rng: np.random.Generator | None = None
) -> tuple[Integers, Integers]:
    """Return the indices of `count` random pairs of different rows (of one row if n is 1)."""
    rng = np.random.default_rng(0) if rng is None else rng
    first = rng.integers(0, n, count)
    return first, (first + rng.integers(min(1, n - 1), n, count)) % n


def warn_if_trivial(kernel: Kernel, X: Rows) -> None:
    """Warn if the kernel is numerically the identity or constant on 100 pairs of rows."""
    if X.shape[0] < 2:
        return
    first, second = random_pairs(X.shape[0], 100)
    a, b = dense(X[first]), dense(X[second])
    sizes = np.sqrt(kernel.diag(a)) * np.sqrt(kernel.diag(b))
    apart = (a != b).any(axis=1) & (sizes > 0)
    if not apart.any():
        return
    values = values_of_pairs(kernel, a, b)[apart] / sizes[apart]
    if np.abs(values).max() < 1e-6:
        what, remedy = "the identity (every point is alone)", "larger lengthscale (a smaller gamma)"
    elif values.min() > 1 - 1e-6:
        what, remedy = "constant (all points look alike)", "smaller lengthscale (a larger gamma)"
    else:
        return
    warn(
        f"on these data {kernel!r} is numerically {what}; scale the columns or use a {remedy}",
        UserWarning,
    )


_CASTS: WeakKeyDictionary[Any, tuple[tuple[Any, ...], dict[DTypeLike, Any]]] = WeakKeyDictionary()


def cast_once(owner: Any, dtype: DTypeLike, make: Callable[..., Any], *weights: Any) -> Any:
    """Return make(*weights, dtype), computed once for each dtype and weights of `owner`.

    Several threads may compute it at the same time, with the same result.
    """
    cached = _CASTS.get(owner)
    if cached is None or not all(map(is_, cached[0], weights)):
        cached = _CASTS[owner] = weights, {}
    if dtype not in cached[1]:
        cached[1][dtype] = make(*weights, dtype)
    return cached[1][dtype]


def contiguous(array: Any, dtype: DTypeLike) -> Floats:
    """Return an array in C order and of this dtype, without a copy if it is.

    Raise if numbers exceed the range of the dtype.
    """
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(array, dtype=dtype)
    if made is not array and not is_finite(made):
        raise ValueError(
            f"the fit has numbers that exceed the range of {made.dtype}; scale the columns "
            "(sklearn.preprocessing.StandardScaler), or pass float64"
        )
    return made
