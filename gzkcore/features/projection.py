"""Random projections by the Walsh-Hadamard transform: SRHT and FJLT.

Random signs and the transform spread any row evenly over its coordinates. Then some of the
coordinates (`HadamardProjection`), or sums of a few (`FastJLProjection`), are a projection. It
keeps inner products and distances on average, for any rows, in O(D log k) or O(D log D).
"""

import itertools
import math
import numbers
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from gzkcore._compiled import projection as _projection
from gzkcore._compiled import variances as _variances
from gzkcore._util.new_arrays import empty_aligned
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, holds, ints, number, signs, stored
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Rows, Seed
from gzkcore._util.validation import (
    as_floating,
    check_integer,
    check_positive,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import Polynomial

from .base import Projection, cast_once, contiguous, moment_of_pairs
from .fit_rows import FitRows
from .hadamard import hadamard_transform

__all__ = [
    "FastJLProjection",
    "HadamardProjection",
    "fast_jl_projection",
    "fast_jl_variance",
    "hadamard_projection",
    "hadamard_projection_variance",
]

# Numbers that are transformed together, as powers of two: the fewest, and those that fill the first
# and the second level of the cache, for a vector of rows.
_LEAST, _FIRST, _SECOND = 6, 10, 14
# Entries in a row of P for which sparsity adds 10 % to the variance of |z|^2: 4.5 / 0.1.
_ENOUGH = 45
# A density is refused if P has fewer nonzero entries on average.
_LEAST_NUMBERS = 1e-3


# ---- with given draws


def hadamard_projection(X: ArrayLike, signs: ArrayLike, rows: ArrayLike) -> Floats:
    """Return k of the coordinates of H D x, divided by sqrt(k), as `HadamardProjection` does.

    Parameters
    ----------
    X : array-like of shape (m, d)
        float32 stays float32, everything else becomes float64.
    signs : array-like of shape (passes, d)
        +1 or -1, the diagonals of D_0, D_1, ...
    rows : array-like of int of shape (k,)
        Which entries of the stacked H D_0 x, H D_1 x, ... are returned: numbers below passes n,
        where n is the least power of two >= d. Rows of X are padded with n - d zeros.

    Returns
    -------
    ndarray of shape (m, k)

    Notes
    -----
    Only the coordinates that are returned are computed: O(d log k) for each pass.

    Examples
    --------
    >>> from gzkcore.features.projection import hadamard_projection
    >>> hadamard_projection([[1.0, 2.0, 3.0]], [[1, -1, 1]], [0, 1, 2, 3])
    array([[ 1.,  3., -2.,  0.]])
    """
    flat, shape = as_floating("X", X)
    flips, chosen = np.asarray(signs), np.asarray(rows)
    if chosen.size and chosen.dtype.kind not in "iu":
        raise TypeError(f"rows={rows!r} must be integers, the numbers of the outputs")
    chosen = chosen.astype(np.int64)
    if len(shape) != 2 or flips.ndim != 2 or flips.shape[1] != shape[1] or flips.size < 1:
        raise ValueError(
            f"X and signs have shapes {shape} and {flips.shape}; pass rows, and rows of signs with "
            "as many columns"
        )
    n = _padded(shape[1])
    end = n * flips.shape[0]
    if chosen.ndim != 1 or chosen.size < 1 or not (chosen.min() >= 0 and chosen.max() < end):
        raise ValueError(
            f"rows={rows!r} must be a list of one or more indices >= 0 and below {end}, the least "
            f"power of two for {counted(shape[1], 'column')} times the rows of signs"
        )
    order = np.argsort(chosen // n, kind="stable")  # pass by pass
    out = empty_aligned((shape[0], chosen.size), flat.dtype)
    _subsampled(flat.reshape(shape), contiguous(flips, flat.dtype), chosen[order], out, False)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    in_order = (order[:-1] < order[1:]).all()
    return out if in_order else np.ascontiguousarray(out[:, back])


def fast_jl_projection(X: ArrayLike, signs: ArrayLike, P: Any) -> Floats:
    """Multiply H D x by a sparse matrix, z = P H D x / sqrt(n k): see `FastJLProjection`.

    Parameters
    ----------
    X : array-like of shape (m, d)
        float32 stays float32, everything else becomes float64.
    signs : array-like of shape (d,)
        +1 or -1, the diagonal of D.
    P : {array-like, sparse matrix} of shape (k, n)
        n is the least power of two >= d, and rows of X end with n - d zeros.

    Returns
    -------
    ndarray of shape (m, k)

    Examples
    --------
    >>> from gzkcore.features.projection import fast_jl_projection
    >>> fast_jl_projection([[1.0, 2.0, 3.0]], [1, -1, 1], [[2.0, 0.0, 0.0, 0.0]])
    array([[2.]])
    """
    flat, shape = as_floating("X", X)
    flips = np.asarray(signs)
    S = sparse.csr_array(P if sparse.issparse(P) else np.atleast_2d(P), dtype=np.float64)
    S.check_format(full_check=True)
    if len(shape) != 2 or flips.shape != shape[1:] or flips.size < 1:
        raise ValueError(
            f"X and signs have shapes {shape} and {flips.shape}; pass rows, and a sign for each of "
            "their columns"
        )
    n = _padded(shape[1])
    if S.shape[1] != n or S.shape[0] < 1:
        raise ValueError(
            f"P has shape {S.shape}; pass one or more rows of {n} columns, the least power of two "
            f">= the {shape[1]} columns of X"
        )
    out = empty_aligned((shape[0], S.shape[0]), flat.dtype)
    parts = contiguous(S.data, flat.dtype), S.indices.astype(np.int32), S.indptr.astype(np.int64)
    _sparse_sums(flat.reshape(shape), contiguous(flips, flat.dtype), parts, out, False)
    return out


def _padded(columns: int) -> int:
    return 1 << (columns - 1).bit_length()


def _bits(n: int, k: int) -> int:
    """Return the base-2 logarithm of the number of values that are transformed together.

    With 4 values for each output the sums of pieces cost a quarter of an addition a column, with 1
    value one addition, with a quarter 4 additions: less than a miss of the cache.
    """
    outputs = (k - 1).bit_length()
    good = max(min(outputs + 2, _FIRST), min(outputs, _SECOND), outputs - 2, _LEAST)
    return min((n - 1).bit_length(), good)


def _sorted(X: Any) -> tuple[Any, Any, Any]:
    """Return data, indices and indptr of CSR rows with increasing columns."""
    X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)  # forget a stale flag
    X = X if X.has_sorted_indices else X.sorted_indices()
    return X.data, X.indices, np.asarray(X.indptr).astype(X.indices.dtype, copy=False)


def _subsampled(X: Rows, signs: Floats, rows: NDArray[np.int64], out: Floats, stream: bool) -> None:
    """Write the outputs `rows`, pass by pass."""
    d = signs.shape[1]
    n = _padded(d)
    ends = np.searchsorted(rows, n * np.arange(len(signs) + 1)).tolist()
    dense = isinstance(X, np.ndarray)
    parts = (np.require(X, requirements=["C", "ALIGNED"]),) if dense else _sorted(X)
    kernel: Any = _projection.hadamard_projection
    if not dense:
        kernel = _projection.hadamard_projection_sparse
    for which, (first, last) in enumerate(itertools.pairwise(ends)):
        outputs = (rows[first:last] - which * n).astype(np.int32)
        bits = _bits(n, last - first)
        threads = n_threads(X.shape[0] * d * (bits + 2))
        scale = 1 / math.sqrt(rows.size)
        kernel(*parts, signs, outputs, which, bits, scale, first, out, stream, threads)


def _sparse_sums(
    X: Rows, signs: Floats, P: tuple[Any, Any, Any], out: Floats, stream: bool
) -> None:
    """Write the product of P, as data, indices and indptr, with the transform of rows."""
    n = _padded(signs.size)
    bits = n.bit_length() - 1
    threads = n_threads(X.shape[0] * (n * (bits + 2) + 2 * P[0].size))
    made: Any = signs, *P, bits, 1 / math.sqrt(n * out.shape[1]), out, stream, threads
    if isinstance(X, np.ndarray):
        _projection.fast_jl_projection(np.require(X, requirements=["C", "ALIGNED"]), *made)
    else:
        _projection.fast_jl_projection_sparse(*_sorted(X), *made)


# ---- moments


def hadamard_projection_variance(x: ArrayLike, y: ArrayLike, n_components: int) -> Any:
    """Variance of <z(x), z(y)> for k different rows of H, uniformly drawn.

    Parameters
    ----------
    x, y : array-like of shape (d,), or (n, d) for as many pairs
        With x = y = the difference of two points: the variance of their squared distance.
    n_components : int
        k.

    Returns
    -------
    float, or ndarray of shape (n,)
        (n - k) / ((n - 1) k) (|x|^2 |y|^2 + <x, y>^2 - 2 sum x_i^2 y_i^2), with n the least power
        of two >= d. For k > n: r (n - r) / ((n - 1) k^2) with r = k mod n in front.

    Notes
    -----
    The formula is exact. A dense normal matrix has (|x|^2 |y|^2 + <x, y>^2) / k.

    Examples
    --------
    >>> from gzkcore.features.projection import hadamard_projection_variance
    >>> hadamard_projection_variance([1.0, 1.0, 0.0], [1.0, 1.0, 0.0], 1)
    4.0
    """
    k = check_integer("n_components", n_components, 1)
    n = _padded(np.atleast_1d(x).shape[-1])
    return moment_of_pairs(_variances.hadamard_projection_variance, x, y, n, k)


def fast_jl_variance(x: ArrayLike, y: ArrayLike, n_components: int, density: float) -> Any:
    """Variance of <z(x), z(y)> for a sparse normal matrix of density q.

    Parameters
    ----------
    x, y, n_components
        As for `hadamard_projection_variance`.
    density : float
        q, > 0 and at most 1.

    Returns
    -------
    float, or ndarray of shape (n,)
        (P + a + 3 (1/q - 1) (P + 2 a - 2 s) / n) / k, with P = |x|^2 |y|^2, a = <x, y>^2 and
        s = sum x_i^2 y_i^2, n the least power of two >= d.

    Notes
    -----
    The formula is exact. The first two terms are the variance of a dense normal matrix. If x = y,
    sparsity adds at most 4.5 / (q n) times these.

    Examples
    --------
    >>> from gzkcore.features.projection import fast_jl_variance
    >>> fast_jl_variance([1.0, 1.0], [1.0, 1.0], 1, 0.5)
    20.0
    """
    k, q = check_integer("n_components", n_components, 1), _check_density(density)
    n = _padded(np.atleast_1d(x).shape[-1])
    return moment_of_pairs(_variances.fast_jl_variance, x, y, n, k, q)


def _check_density(density: Any) -> float:
    q = check_positive("density", density)
    if q > 1:
        raise ValueError(f"density={density} is out of range; use a number > 0 and at most 1")
    return q


# ---- the maps


class _HadamardMap(Projection):
    """The base of both projections, whose kernel is the dot product."""

    def _start(self, X: Rows) -> np.random.Generator:
        self.kernel_: Kernel = Polynomial(1, coef0=0.0).resolve(X)
        return generator(self.random_state)

    def _check_sums(self, X: Rows, out: Floats) -> None:
        """Raise if X holds NaN or infinity, which sums of all coordinates show."""
        if out.size < X.size:
            with np.errstate(invalid="ignore", over="ignore"):  # infinities of both signs
                if math.isfinite(out.sum()):
                    return
        self._check_finite(X)


class HadamardProjection(_HadamardMap):
    """Subsampled randomized Hadamard transform (SRHT): random projection in O(D log k) a row.

    z = sqrt(n/k) R H D x, with D random signs, H the Hadamard rotation, and R, which draws k of its
    n rows without replacement. n is the number of columns, rounded up to a power of two.

    Parameters
    ----------
    n_components : int
        k, the width of the output, exactly. If k > n, all rows of H are used several times, each
        time with new signs.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The dot product, which the projection keeps.
    signs_ : ndarray of int8 of shape (passes, D)
    rows_ : ndarray of int64 of shape (n_components,)
        The chosen rows of the stacked H D, see `hadamard_projection`.
    components_ : ndarray of shape (n_components, D)
        The projection as a matrix, computed at each access; its transpose is the adjoint.

    See Also
    --------
    BlockProjection : O(D) a row, O(nnz) for sparse rows; a larger variance if few coordinates
        differ.
    hadamard_projection_variance : The variance, exactly.

    Notes
    -----
    Unbiased: the mean of z(x).z(y) over random states is <x, y>, that of |z(x) - z(y)|^2 is
    |x - y|^2. The variance is always less than that of independent normal numbers, and 0 for k = n.

    Cost: only the k outputs are computed, by about log2(k) + 2 additions for each of the D columns;
    padding costs nothing. Memory beyond input and output: 2 k numbers, or 1,024 and k, for each of
    16 rows and each thread. Sparse rows are made dense a few at a time, with the same results;
    O(nnz) is not possible, since every entry contributes to every output.

    References
    ----------
    Ailon, Liberty, Fast dimension reduction using Rademacher series on dual BCH codes, 2009; Tropp,
    Improved analysis of the subsampled randomized Hadamard transform, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import HadamardProjection
    >>> X = np.random.default_rng(0).standard_normal((50, 10_000))
    >>> projection = HadamardProjection(1000, random_state=0).fit(X)
    >>> Z = projection.transform(X)
    >>> Z.shape, bool(np.abs((Z * Z).sum(axis=1) / (X * X).sum(axis=1) - 1).max() < 0.2)
    ((50, 1000), True)
    """

    _state = stored(
        kernel_=holds(Kernel),
        signs_=signs("p", "n_features_in_"),
        rows_=ints("_n_features_out", below=lambda of: len(of.signs_) * _padded(of.n_features_in_)),
    )

    def __init__(self, n_components: int, *, random_state: Seed = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, rows: FitRows) -> None:
        """Draw signs and rows; only the number of columns of X matters."""
        X, rng = rows.X, self._start(rows.X)
        width, n = self._n_features_out, _padded(X.shape[1])
        passes = -(-width // n)
        whole = (passes - 1) * n
        self.signs_ = 1 - 2 * rng.integers(0, 2, (passes, X.shape[1]), dtype=np.int8)
        last = rng.choice(n, width - whole, replace=False, shuffle=False)
        self.rows_: NDArray[np.int64] = np.concatenate([np.arange(whole), whole + np.sort(last)])

    def _check_state(self) -> None:
        if (np.diff(self.rows_ // _padded(self.n_features_in_)) < 0).any():
            raise ValueError("has rows_ that do not go pass by pass")

    def _flops(self, density: float) -> float:
        passes, d = self.signs_.shape
        n, k = _padded(d), min(self._n_features_out, _padded(d))
        bits = _bits(n, k)
        return float(passes * d * (bits + 1 + 2 * k / 2**bits))

    def _about(self) -> str:
        passes, d = self.signs_.shape
        return f"{self._n_features_out} of {passes * _padded(d)} rows"

    def _matrix(self) -> Doubles:
        d = self.signs_.shape[1]
        which, row = np.divmod(self.rows_, _padded(d))
        odd = np.bitwise_count(row[:, None] & np.arange(d)) & 1
        matrix: Doubles = (1.0 - 2.0 * odd) * self.signs_[which]
        matrix /= math.sqrt(self._n_features_out)
        return matrix

    def _back(self, V: Floats) -> Floats:
        passes, d = self.signs_.shape
        if passes > 1 or d < _padded(d):
            return super()._back(V)
        spread = np.zeros((len(V), d), dtype=V.dtype)
        spread[:, self.rows_] = V
        scale = math.sqrt(self._n_features_out) / d
        back: Floats = hadamard_transform(spread) * (scale * self.signs_[0]).astype(V.dtype)
        return back

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        signs = cast_once(self, X.dtype, contiguous, self.signs_)
        _subsampled(X, signs, self.rows_, out, stream)
        self._check_sums(X, out)


class FastJLProjection(_HadamardMap):
    """Fast Johnson-Lindenstrauss transform (FJLT): a sparse normal matrix after a rotation.

    z = P H D x / sqrt(k), with D random signs and H the Hadamard rotation in n dimensions, where n
    is the number of columns, rounded up to a power of two. Entries of P are 0 with probability 1 -
    q, else normal with the variance 1/q.

    Parameters
    ----------
    n_components : int
        k, the width of the output, exactly.
    density : float or "auto", default="auto"
        q, > 0 and at most 1. "auto": log(n_samples)^2 / n as published, but at least 45/n, so that
        sparsity adds at most 10 % to the variance of a squared distance, and at most 1.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The dot product, which the projection keeps.
    density_ : float
        q.
    signs_ : ndarray of int8 of shape (D,)
    values_, columns_, starts_ : ndarray of shapes (nnz,), (nnz,) and (n_components + 1,)
        P in CSR form.
    components_ : ndarray of shape (n_components, D)
        The projection as a matrix, computed at each access; its transpose is the adjoint.

    See Also
    --------
    HadamardProjection : A smaller variance, and faster.
    fast_jl_variance : The variance, exactly.

    Notes
    -----
    Unbiased: the mean of z(x).z(y) over random states is <x, y>.

    Cost: n log2(n) additions and q n k fused operations a row, on CSR too, with the same results.
    Memory beyond input and output: n + k numbers for each of 16 rows and each thread.

    References
    ----------
    Ailon, Chazelle, The fast Johnson-Lindenstrauss transform and approximate nearest neighbors,
    2009.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import FastJLProjection
    >>> X = np.random.default_rng(0).standard_normal((50, 3000))
    >>> projection = FastJLProjection(1000, random_state=0).fit(X)
    >>> Z = projection.transform(X)
    >>> Z.shape, round(projection.density_, 5)
    ((50, 1000), 0.01099)
    >>> bool(np.abs((Z * Z).sum(axis=1) / (X * X).sum(axis=1) - 1).max() < 0.2)
    True
    """

    _state = stored(
        kernel_=holds(Kernel),
        signs_=signs("n_features_in_"),
        values_=doubles("z"),
        columns_=ints("z", below=lambda of: _padded(of.n_features_in_), dtype=np.int32),
        starts_=ints(lambda of: of._n_features_out + 1),
        density_=number(0),
    )

    def __init__(
        self,
        n_components: int,
        *,
        density: float | Literal["auto"] = "auto",
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.density = density
        self.random_state = random_state

    def _fit(self, rows: FitRows) -> None:
        """Draw signs and the sparse matrix; only the shape of X matters."""
        X, rng = rows.X, self._start(rows.X)
        n = _padded(X.shape[1])
        if isinstance(self.density, str):
            if self.density != "auto":
                raise ValueError(f"density={self.density!r} is unknown; use 'auto' or a number")
            self.density_ = min(1.0, max(math.log(X.shape[0]) ** 2, _ENOUGH) / n)
        else:
            self.density_ = _check_density(self.density)
            if self.density_ * n * self._n_features_out < _LEAST_NUMBERS:
                raise ValueError(
                    f"density={self.density} leaves only zeros in P; use 'auto', or more than "
                    f"{1 / (n * self._n_features_out):.2g}"
                )
        self.signs_: NDArray[np.int8] = 1 - 2 * rng.integers(0, 2, (X.shape[1],), dtype=np.int8)
        places = _places(rng, self._n_features_out * n, self.density_)
        self.columns_ = (places % n).astype(np.int32)
        self.starts_: NDArray[np.int64] = np.searchsorted(
            places, n * np.arange(self._n_features_out + 1)
        ).astype(np.int64)
        self.values_ = rng.standard_normal(places.size) / math.sqrt(self.density_)

    def _check_state(self) -> None:
        starts = self.starts_
        if starts[0] != 0 or starts[-1] != self.values_.size or (np.diff(starts) < 0).any():
            raise ValueError(
                f"has starts_ that do not rise from 0 to {self.values_.size}, the number of values_"
            )

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        n = _padded(columns)
        numeric = isinstance(self.density, numbers.Real)
        share = float(self.density) if numeric else min(1.0, _ENOUGH / n)
        return width * (8.0 + 20.0 * share * n)

    def _flops(self, density: float) -> float:
        n = _padded(self.signs_.size)
        return float(n * (math.log2(n) + 1) + 2 * self.values_.size)

    def _about(self) -> str:
        return f"{self.values_.size / self._n_features_out:.3g} numbers in a row of P"

    def _matrix(self) -> Doubles:
        n, d = _padded(self.signs_.size), self.signs_.size
        shape = (self._n_features_out, n)
        P = sparse.csr_array((self.values_, self.columns_, self.starts_), shape=shape).toarray()
        matrix: Doubles = hadamard_transform(P)[:, :d] * (self.signs_ / math.sqrt(n * shape[0]))
        return matrix

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        signs, values = cast_once(self, X.dtype, _both, self.signs_, self.values_)
        _sparse_sums(X, signs, (values, self.columns_, self.starts_), out, stream)
        self._check_sums(X, out)


def _both(signs: NDArray[np.int8], values: Doubles, dtype: DTypeLike) -> tuple[Floats, Floats]:
    return contiguous(signs, dtype), contiguous(values, dtype)


def _places(rng: np.random.Generator, size: int, share: float) -> NDArray[np.int64]:
    """Draw each of `size` places with this probability, by the gaps between them."""
    parts: list[NDArray[np.int64]] = []
    last = -1
    while last < size:
        left = share * (size - last)
        parts.append(last + np.cumsum(rng.geometric(share, int(left + 6 * math.sqrt(left)) + 16)))
        last = int(parts[-1][-1])
    places = np.concatenate(parts)
    return places[: int(np.searchsorted(places, size))]
