"""Products of kernel matrices with vectors, K(X, Y) V, without storing K.

Rows are sorted into tiles of 256 neighbours (`tile_rows`), for two reasons. Coordinates relative to
the centre of a tile are accurate enough in single precision. And pairs of tiles between which the
kernel is negligible are skipped. If Y is X, each pair of tiles is computed once and used in both
directions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from gzkcore._compiled import neighbours as _neighbours
from gzkcore._compiled import products as _products
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Integers, Rows
from gzkcore._util.validation import check_not_negative, raise_not_finite

from .aliases import ALIASES, as_kernel
from .base import Kernel
from .fast_sums import FastSums
from .points import double_pair, double_rows
from .tile_form import DIFFERENCE, PRODUCT, Factor, Term, TileForm
from .tile_matrix import (
    DOUBLE,
    FactorArrays,
    factors_matrix,
    known_terms,
    multiply,
    of_differences,
    offset_of,
)
from .tile_rows import FAR, TiledRows, scaled_columns
from .transformed import unmapped

__all__ = ["KernelOperator", "kernel_diagonal", "kernel_matrix", "kernel_product"]

NO_TABLE = (
    "has slopes that no table follows to the accuracy of float64; use a Matern kernel of nu = 1/2, "
    "3/2, ... 39/2 or np.inf, or a RationalQuadratic of a larger alpha"
)

# At most so many vectors are multiplied at once, so that their sums stay in the cache.
MOST_VECTORS = 64


@dataclass(frozen=True)
class Pairs:
    """A kernel at pairs of rows: the sum over terms of w_x w_y times their compiled factors."""

    rows: Doubles  # (n, columns of factor after factor), scaled
    weights: Doubles  # (n, n_terms): w
    known: FactorArrays

    @classmethod
    def of(
        cls, kernel: Kernel, X: Doubles, dtype: Any, like: "Pairs | None" = None
    ) -> "Pairs | None":
        """Return None unless the kernel is a sum of products of compiled factors.

        `like` are pairs of other rows with the same kernel, whose tables are taken.
        """
        kernel, X, _ = unmapped(kernel, X, None)
        form: Any = kernel.tile_form(X.shape[1])
        return None if form is None else cls.of_form(form, X, dtype, like)

    @classmethod
    def of_form(
        cls, form: TileForm, X: Doubles, dtype: Any, like: "Pairs | None" = None
    ) -> "Pairs | None":
        """Return the same for a kernel of this form."""
        if any(term.weight <= 0 for term in form):
            return None
        known = FactorArrays.of_sum(form, X.shape[1], dtype) if like is None else like.known
        if known is None:
            return None
        parts, weights = [], np.empty((len(X), len(form)))
        for k, term in enumerate(form):
            weights[:, k] = math.sqrt(term.weight)
            for factor in term.factors:
                part, power = scaled_columns(X, factor)
                parts.append(part)
                weights[:, k] *= power
        return cls(np.ascontiguousarray(np.concatenate(parts, axis=1)), weights, known)

    def take(self, order: Integers) -> "Pairs":
        """Return the pairs of some rows."""
        return Pairs(self.rows[order], self.weights[order], self.known)

    def blocks(self, size: int) -> Floats:
        """Return the kernel matrices of blocks of so many rows each, which follow one another."""
        out = np.empty((len(self.rows) // size, size, size), self.known.coefficients.dtype)
        _neighbours.kernel_of_blocks(
            self.rows, self.weights, self.known.factors, self.known.numbers,
            self.known.coefficients, out, n_threads(out.size * self.rows.shape[1]),
        )  # fmt: skip
        return out


# ---- the operator


class KernelOperator(LinearOperator):
    """The kernel matrix of rows as an operator: products with vectors, without storing the matrix.

    Parameters
    ----------
    kernel : Kernel or str
        Resolved; an alias such as "matern" is resolved on X.
    X : {array-like, sparse matrix} of shape (n_rows, dim)
    Y : {array-like, sparse matrix} of shape (n_columns, dim), optional
        None: X, and each pair of rows is computed once.
    dtype : {np.float32, np.float64}, optional
        Dtype of the arithmetic within a tile; by default that of X. Results are float64.
    tol : float, optional
        The error of an entry of K V is at most tol k(x, x) times the sum of |V|: pairs of tiles
        between which the kernel is below tol are skipped, and from 1e-12 on sums may be computed
        in linear time. The default is an eighth of the dtype's rounding unit; with 0 no pair is
        skipped.

    Attributes
    ----------
    kernel, arithmetic, shape
        As they are used.
    n_tiles : int
        Number of pairs of tiles of 256 rows that the last product computed; 0 in linear time.

    Notes
    -----
    A product takes n_rows n_columns (dim + 12) multiply-adds for the kernel (half as many if Y is
    None), and n_rows n_columns for each vector. On the sphere and in one to three columns it takes
    time linear in the rows where that is less (docs/fast_sums.md; the extra `maps`). Memory: the
    rows twice, and the vectors. Results are identical, to the last bit, for any number of threads.
    Ctrl-C stops a product.

    Three kinds of kernels are multiplied by their explicit matrix, some rows at a time:
    `GeneralizedZonal`, products of more than 64 factors, and kernels that piecewise polynomials do
    not approximate to the accuracy of the dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import KernelOperator, Matern
    >>> X = np.random.default_rng(0).standard_normal((1000, 3))
    >>> K = KernelOperator(Matern(nu=1.5), X)
    >>> bool(np.allclose(K @ X, Matern(nu=1.5)(X) @ X))
    True
    """

    def __init__(
        self,
        kernel: str | Kernel,
        X: Data,
        Y: Data | None = None,
        *,
        dtype: Any = None,
        tol: float | None = None,
    ) -> None:
        rows, others = checked_rows(X, Y)
        tol = None if tol is None else check_not_negative("tol", tol)
        kernel = resolved_kernel(kernel, rows)
        self._set(kernel, rows, others, arithmetic_of(X, dtype), tol, by_tiles=False)

    @classmethod
    def of(
        cls, kernel: Kernel, X: Rows, Y: Rows | None = None, dtype: Any = np.float64
    ) -> "KernelOperator":
        """Return the operator, by tiles, of a resolved kernel and dense rows, all checked."""
        operator, others = cls.__new__(cls), None if Y is None else as_double(Y)
        operator._set(kernel, as_double(X), others, np.dtype(dtype), None, by_tiles=True)
        return operator

    def _set(
        self, kernel: Kernel, X: Doubles, Y: Doubles | None, arithmetic: np.dtype[Any],
        tol: float | None, *, by_tiles: bool,
    ) -> None:  # fmt: skip
        self.tol, self.arithmetic, self._outer_kernel = tol, arithmetic, kernel
        kernel, self.X, self.Y = unmapped(kernel, X, Y)
        self.kernel = kernel
        super().__init__(np.dtype(np.float64), (len(self.X), len(self._columns)))
        self.n_tiles = 0
        tol = float(np.finfo(arithmetic).eps) / 8 if tol is None else tol
        self._terms = None
        self._fast = None if by_tiles else FastSums.of(kernel, self.X, self.Y, tol)
        if self._fast is not None:
            return
        dim = self.X.shape[1]
        terms = known_terms(kernel.tile_form(dim), dim, self.arithmetic, tol)
        if terms is None:
            kernel(self.X[:1], self.X[:1])  # raises what is wrong with it
        else:
            self._terms = [
                (term, known, *self._tiles(term, self.arithmetic)) for term, known in terms
            ]

    @property
    def _columns(self) -> Doubles:
        """The rows that are the columns of K."""
        return self.X if self.Y is None else self.Y

    def _tiles(self, term: Term, dtype: Any) -> tuple[TiledRows, TiledRows, Doubles | float]:
        """Return the rows of X and Y in tiles, and the offset of Y, which is subtracted."""
        offset = offset_of(self._columns) if of_differences(term) else 0.0
        columns = TiledRows.of(self._columns - offset, term, dtype)
        rows = columns if self.Y is None else TiledRows.of(self.X - offset, term, dtype)
        return rows, columns, offset

    def at(self, X: Rows) -> "KernelOperator":
        """Return K(X, Y) for other rows X, dense, by the tiles that the rows of Y are in."""
        operator = object.__new__(type(self))  # copy.copy takes 5 us longer
        operator.__dict__.update(self.__dict__)
        _, rows, _ = unmapped(self._outer_kernel, as_double(X), None)
        operator.X, operator.shape = rows, (len(rows), self.shape[1])
        operator._terms = self._terms and [
            (term, known, TiledRows.of(rows - offset, term, self.arithmetic), columns, offset)
            for term, known, _, columns, offset in self._terms
        ]
        return operator

    def diagonal(self) -> Doubles:
        """Return k(x, x) of every row of X; raise ValueError if this is K(X, Y)."""
        if self.Y is not None:
            raise ValueError(
                "this operator is K(X, Y), and only K(X, X) has a diagonal; make it without Y"
            )
        return self.kernel.diag(self.X)

    def gradient(self, A: ArrayLike, B: ArrayLike) -> Doubles:
        """Differentiate sum_q a_q^T K b_q with respect to the logarithm of each column's length.

        The length of a column is its lengthscale: 1 / (2 gamma)^(1/2) for the Gaussian,
        `length_scale` for Matern. The derivative of a shared length is the sum over the columns.
        For a `Transformed` kernel the columns are those of the mapped rows.

        Parameters
        ----------
        A : array-like of shape (n_rows, n_vectors) or (n_rows,)
        B : array-like of shape (n_columns, n_vectors) or (n_columns,)

        Returns
        -------
        ndarray of shape (dim,)
            Computed in double precision, with any `arithmetic`. Cost: n_rows n_columns (6 dim +
            n_vectors + 12) multiply-adds for each factor of the kernel.

        Examples
        --------
        >>> import numpy as np
        >>> from gzkcore import Gaussian, KernelOperator
        >>> K = KernelOperator(Gaussian(gamma=[0.5, 0.5]), [[0.0, 0.0]], [[1.0, 2.0]])
        >>> K.gradient([1.0], [1.0]).round(6)  # (x_c - y_c)^2 exp(-5/2)
        array([0.082085, 0.32834 ])
        """
        left, right = _vectors("A", A, self.shape[0]), _vectors("B", B, self.shape[1])
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"A has {left.shape[1]} vectors, and B {right.shape[1]}; pass equally many"
            )
        form = self.kernel.tile_form(self.X.shape[1])
        if form is None or any(factor.slope is None for term in form for factor in term.factors):
            raise ValueError(
                f"{self.kernel!r} has no lengths to differentiate by; use a kernel with "
                "lengthscales"
            )
        return sum(
            (self._gradient_of(term, left, right) for term in form), np.zeros(self.X.shape[1])
        )

    def _gradient_of(self, term: Term, A: Doubles, B: Doubles) -> Doubles:
        dim, none = self.X.shape[1], [math.inf] * len(term.factors)
        if len(term.factors) > _products.most_factors():
            raise ValueError(
                f"the kernel has a product of {len(term.factors)} factors, and at most "
                f"{_products.most_factors()} can be differentiated; combine Gaussians into one "
                "factor"
            )
        factors = [_by_differences(factor) for factor in term.factors]
        slopes = [_slope_of(factor) for factor in factors]
        others = slopes if len(factors) == 1 else factors  # that a slope is multiplied by
        known = FactorArrays.of([*others, *slopes], dim, np.float64, none * 2)
        if known is None:
            raise ValueError(f"{self.kernel!r} {NO_TABLE}")
        rows, columns, _ = self._tiles(term, np.float64)
        count = len(factors)
        known.factors[count:, 3] = known.factors[:count, 3]
        out = np.zeros((len(rows.rows), rows.rows.shape[1]))
        right = columns.place(B, B.shape[1], np.float64).transpose(0, 2, 1)
        _products.kernel_slopes(
            rows.rows, rows.centers, columns.rows, columns.centers,
            rows.place(A, A.shape[1], np.float64), np.ascontiguousarray(right),
            known.factors[:count], known.factors[count:], known.numbers, known.coefficients,
            out, n_threads(len(self.X) * len(self._columns)),
        )  # fmt: skip
        gradient, first = np.zeros(dim), 0
        for factor in factors:
            index = np.arange(dim) if factor.columns is None else np.asarray(factor.columns)
            own = slice(first, first + index.size)
            weight = 1.0 if factor.slope is None else factor.slope.weight
            np.add.at(gradient, index, term.weight * weight * out[:, own].sum(axis=0))
            first = own.stop
        return gradient

    def _adjoint(self) -> "KernelOperator":
        if self.Y is None:
            return self
        return KernelOperator(self.kernel, self.Y, self.X, dtype=self.arithmetic, tol=self.tol)

    _transpose = _adjoint

    def matvec(self, x: Any) -> Any:
        """Return K x."""
        _check_shape("x", np.shape(x), self.shape[1], vectors="a vector")
        return super().matvec(x)

    def matmat(self, X: Any) -> Any:
        """Return K X."""
        _check_shape("X", np.shape(X), self.shape[1])
        return super().matmat(X)

    def rmatvec(self, x: Any) -> Any:
        """Return K^T x."""
        return self._adjoint().matvec(x)

    def rmatmat(self, X: Any) -> Any:
        """Return K^T X."""
        return self._adjoint().matmat(X)

    def _matmat(self, V: NDArray[Any]) -> NDArray[Any]:
        if V.dtype.kind not in "biufc":
            raise TypeError(f"V has dtype {V.dtype}; pass numbers")
        raise_not_finite(V, "V", "leave those out")
        if np.iscomplexobj(V):
            both = self.times(np.concatenate([V.real, V.imag], axis=1))
            return both[:, : V.shape[1]] + 1j * both[:, V.shape[1] :]
        return self.times(V)

    def times(self, V: NDArray[Any]) -> Doubles:
        """Return K V for checked vectors, finite and real, of shape (n_columns, n_vectors)."""
        if self._fast is not None:
            return self._fast.times(V)
        if self._terms is None:
            return _multiply_matrices(self.kernel, self.X, self._columns, V)
        self.n_tiles = 0
        out = np.zeros((self.shape[0], V.shape[1]))
        for part in _parts(V):
            for term, known, rows, columns, _ in self._terms:
                product, n_tiles = multiply(known, rows, columns, V[:, part], self.Y is None)
                out[:, part] += term.weight * rows.take(product)
                self.n_tiles += n_tiles
        return out


def _parts(V: NDArray[Any]) -> list[slice]:
    """Return which vectors are multiplied at once."""
    return [slice(start, start + MOST_VECTORS) for start in range(0, V.shape[1], MOST_VECTORS)]


def _multiply_matrices(kernel: Kernel, X: Doubles, Y: Doubles, V: NDArray[Any]) -> Doubles:
    """Multiply by the kernel's own matrix, some rows at a time."""
    step = max(1, (1 << 22) // max(1, len(Y)))
    return np.concatenate([kernel(X[i : i + step], Y) @ V for i in range(0, len(X), step)])


class Runs:
    """The products of an operator in runs of rows, computed anywhere with identical results.

    It has only what products read, since it is sent to workers. A run has all columns of K, so that
    each pair of rows is computed twice if Y is X. There are `count` runs: `most`, or fewer if there
    are fewer tiles.
    """

    def __init__(self, operator: KernelOperator, most: int) -> None:
        terms, n_rows = operator._terms, len(operator.X)
        self._matrices = (operator.kernel, operator.X, operator._columns) if terms is None else None
        self._terms: list[tuple[float, FactorArrays, TiledRows, TiledRows]] = [
            (term.weight, known, rows, columns) for term, known, rows, columns, _ in terms or ()
        ]
        sizes = [n_rows] if terms is None else [len(rows.rows) for _, _, rows, _ in self._terms]
        self.count = max(1, min(most, *sizes))

    def _run(self, number: int, size: int) -> slice:
        """Return which rows, or tiles of a term, a run has, given how many there are."""
        return slice(number * size // self.count, (number + 1) * size // self.count)

    def product(self, number: int, V: Doubles) -> list[Doubles]:
        """Return a run's rows of K V, for each term of the kernel in the order of its tiles."""
        if self._matrices is not None:
            kernel, X, Y = self._matrices
            with limit_blas(1):  # whose bits depend on its threads
                return [_multiply_matrices(kernel, X[self._run(number, len(X))], Y, V)]
        products = []
        for _, known, rows, columns in self._terms:
            tiles = self._run(number, len(rows.rows))
            run = replace(
                rows, rows=rows.rows[tiles], centers=rows.centers[tiles], radii=rows.radii[tiles],
                counts=rows.counts[tiles],
            )  # fmt: skip
            parts = [multiply(known, run, columns, V[:, part], False)[0] for part in _parts(V)]
            products.append(np.concatenate(parts, axis=1))
        return products

    def join(self, products: Sequence[list[Doubles]]) -> Doubles:
        """Return K V, given the products of all runs in their order."""
        terms = [np.concatenate(parts) for parts in zip(*products, strict=True)]
        if self._matrices is not None:
            return terms[0]
        out = np.zeros((len(self._terms[0][2].places), terms[0].shape[1]))
        for (weight, _, rows, _), product in zip(self._terms, terms, strict=True):
            out += weight * rows.take(product)
        return out


def arithmetic_of(X: Data, dtype: Any) -> np.dtype[Any]:
    """Return the type of arithmetic: `dtype`, or else that of the rows."""
    arithmetic = np.dtype(dtype or getattr(X, "dtype", np.float64))
    if dtype is not None and arithmetic not in FAR:
        raise ValueError(f"dtype={dtype!r} must be float32 or float64")
    return arithmetic if arithmetic in FAR else DOUBLE


def resolved_kernel(kernel: str | Kernel, X: Doubles) -> Kernel:
    """Return the kernel, if it is an alias resolved on the rows, or raise."""
    if isinstance(kernel, str):
        return as_kernel(kernel).resolve(X)
    if not isinstance(kernel, Kernel | type):
        raise TypeError(
            f"kernel={kernel!r} is not a kernel; use one of {sorted(ALIASES)} or an instance from "
            "gzkcore.kernels"
        )
    return as_kernel(kernel)


def checked_rows(X: Data, Y: Data | None) -> tuple[Doubles, Doubles | None]:
    """Return rows in double, or raise."""
    rows, others = double_pair(X, Y)
    if not rows.size or not len(others):
        raise ValueError("X and Y must have at least one row and one column")
    return rows, None if Y is None else others


def as_double(X: Rows) -> Doubles:
    """Return dense rows in double, stored row by row, see `double_rows`."""
    return np.asarray(X, dtype=np.float64, order="C")


def slope_matrix(
    term: Term, number: int, X: Doubles, Y: Doubles | None = None, dtype: Any = DOUBLE
) -> Floats:
    """Return the profile of a factor's slope times the term's other factors at all pairs of rows.

    It may have a pole at 0. Y=None means X.
    """
    return factors_matrix(*_sloped(term, number, X.shape[1], dtype), X, Y, dtype)[0]


def block_matrices(term: Term, X: Doubles, dtype: Any, *, sloped: bool = False) -> Floats:
    """Return the matrices of a term of distances, or of the slope of its first factor.

    X are blocks of rows (n_blocks, size, dim), of each of which there is a matrix.
    """
    dim = X.shape[2]
    known = FactorArrays.of(term.factors, dim, dtype, [math.inf] * len(term.factors))
    if sloped:
        term, known = _sloped(term, 0, dim, dtype)
    if known is None:
        raise ValueError(f"the kernel {NO_TABLE}")
    # A single block may be of any rows, of which the first may be far out.
    middle = np.median(X, axis=1, keepdims=True) if len(X) == 1 else X[:, :1]
    apart = (X - middle).reshape(-1, dim)
    rows = np.concatenate([scaled_columns(apart, factor)[0] for factor in term.factors], axis=1)
    return Pairs(np.ascontiguousarray(rows), np.ones((len(rows), 1)), known).blocks(X.shape[1])


def slope_product(term: Term, number: int, X: Doubles, Y: Doubles, V: Doubles) -> Doubles:
    """Return the product of `slope_matrix`, which has no pole, with vectors, tile by tile."""
    sloped, known = _sloped(term, number, X.shape[1], DOUBLE)
    rows, columns = TiledRows.of(X, sloped, DOUBLE), TiledRows.of(Y, sloped, DOUBLE)
    parts = [multiply(known, rows, columns, V[:, part], False)[0] for part in _parts(V)]
    return rows.take(np.concatenate(parts, axis=1))


def _sloped(term: Term, number: int, dim: int, dtype: Any) -> tuple[Term, FactorArrays]:
    factors = [_by_differences(factor) for factor in term.factors]
    factors[number] = _slope_of(factors[number])
    known = FactorArrays.of(factors, dim, dtype, [math.inf] * len(factors))
    if known is None:
        raise ValueError(f"the kernel {NO_TABLE}")
    return Term(tuple(factors)), known


def _check_shape(name: str, shape: tuple[int, ...], n_rows: int, vectors: str = "vectors") -> None:
    one = vectors == "a vector" and shape[1:] not in ((), (1,))
    if one or shape[:1] != (n_rows,) or len(shape) > 2:
        raise ValueError(f"{name} has shape {shape}; pass {vectors} of {n_rows} numbers")


def _vectors(name: str, values: ArrayLike, n_rows: int) -> Doubles:
    if np.iscomplexobj(values):
        raise TypeError(f"{name} is complex; pass its real and its imaginary part")
    vectors = np.asarray(values, dtype=np.float64)
    _check_shape(name, vectors.shape, n_rows)
    raise_not_finite(vectors, name, "leave those out")
    return vectors.reshape(n_rows, -1)


def _by_differences(factor: Factor) -> Factor:
    metric = DIFFERENCE if factor.metric == PRODUCT and factor.of_distances else factor.metric
    return replace(factor, metric=metric)


def _slope_of(factor: Factor) -> Factor:
    """Return a factor with the values of this factor's slope."""
    slope = factor.slope
    if slope is None:
        return factor
    return replace(
        factor, profile=slope.profile, coefficients=slope.coefficients, function=slope.function
    )


# ---- functions


def kernel_matrix(
    kernel: str | Kernel, X: Data, Y: Data | None = None, *, dtype: Any = None
) -> NDArray[Any]:
    """Return the matrix of all k(x, y), by the tiles of `KernelOperator`.

    Parameters
    ----------
    kernel : Kernel or str
        Resolved; an alias such as "matern" is resolved on X.
    X : {array-like, sparse matrix} of shape (n_rows, dim)
    Y : {array-like, sparse matrix} of shape (n_columns, dim), optional
        None: X. Then the matrix is exactly symmetric, and its diagonal is `kernel_diagonal`.
    dtype : {np.float32, np.float64}, optional
        Dtype of the arithmetic and of the result; by default that of X.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        In float32 the error of each entry is a few rounding units of the largest entry.

    Examples
    --------
    >>> from gzkcore import Gaussian, kernel_matrix
    >>> kernel_matrix(Gaussian(gamma=0.5), [[0.0], [1.0]]).round(6)
    array([[1.      , 0.606531],
           [0.606531, 1.      ]])
    """
    rows, others = checked_rows(X, Y)
    return matrix_of(resolved_kernel(kernel, rows), rows, others, arithmetic_of(X, dtype))


def matrix_of(
    kernel: Kernel, X: Doubles, Y: Doubles | None = None, arithmetic: Any = DOUBLE
) -> NDArray[Any]:
    """Return `kernel_matrix` of a resolved kernel and checked rows."""
    kernel, rows, others = unmapped(kernel, X, Y)
    total = kernel.by_tiles(rows, others, arithmetic)
    if total is None:
        total = kernel(rows, others).astype(arithmetic, copy=False)
        return total if others is not None else np.triu(total) + np.triu(total, 1).T
    return total


def kernel_diagonal(kernel: str | Kernel, X: Data) -> Doubles:
    """Return all k(x, x).

    Parameters
    ----------
    kernel : Kernel or str
        Resolved; an alias such as "matern" is resolved on X.
    X : {array-like, sparse matrix} of shape (n_rows, dim)

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> from gzkcore import Polynomial, kernel_diagonal
    >>> kernel_diagonal(Polynomial(degree=2), [[1.0], [2.0]])
    array([ 4., 25.])
    """
    rows = double_rows(X)
    return resolved_kernel(kernel, rows).diag(rows)


def kernel_product(kernel: str | Kernel, X: Data, Y: Data | None, V: ArrayLike) -> NDArray[Any]:
    """Return K(X, Y) V without storing K; for many products use `KernelOperator`.

    Parameters
    ----------
    kernel : Kernel or str
        Resolved; an alias such as "matern" is resolved on X.
    X : {array-like, sparse matrix} of shape (n_rows, dim)
    Y : {array-like, sparse matrix} of shape (n_columns, dim), or None
        None: X.
    V : array-like of shape (n_columns,) or (n_columns, n_vectors)

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_vectors)
        float64, or complex128 if V is complex. Sums within a tile have the dtype of X.

    Examples
    --------
    >>> from gzkcore import Gaussian, kernel_product
    >>> kernel_product(Gaussian(gamma=0.5), [[0.0], [1.0]], None, [1.0, 1.0]).round(6)
    array([1.606531, 1.606531])
    """
    operator, vectors = KernelOperator(kernel, X, Y), np.asarray(V)
    if vectors.ndim not in (1, 2) or len(vectors) != operator.shape[1]:
        raise ValueError(
            f"V has shape {vectors.shape}; pass vectors of {operator.shape[1]} numbers, one for "
            f"each row of {'X' if Y is None else 'Y'}"
        )
    product: NDArray[Any] = operator @ vectors
    return product
