"""Ridge regression on so many features that their Gram matrix does not fit into memory.

Conjugate gradients solve the system of `normal_equations`, (G + alpha I) c = b with G = Z^T W Z
about the weighted means. Each step computes the features of all rows again, tile by tile, and uses
each tile twice:

    G v = sum over tiles of Z^T W (Z v - (z_mean.v) 1), minus z_mean times the same sum with Z = 1,

so that only a tile and some vectors, with one number for each feature, are stored. A sketch of G,
from one pass with r random vectors at once, keeps the number of steps small.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from gzkcore._util.linalg import eigh, orthonormal
from gzkcore._util.state import doubles, floating_dtype, has, nothing, stored, whole
from gzkcore._util.typing import Data, Doubles, Floats, Integers
from gzkcore._util.validation import (
    check_same_class,
    check_some_weight,
    check_targets,
    check_weights,
)
from gzkcore._util.warn import warn
from gzkcore.passes.kernel_passes import PassedRows, Passes, Sums, sum_tiles
from gzkcore.passes.tiles import as_rows, width_of

from .preconditioner import Preconditioner
from .solve import Solution, conjugate_gradients

__all__ = ["CrossAccumulator", "gram_product", "nystrom_sketch"]

# With so many columns a Gram matrix takes 2 GiB, and as much for its factor.
WIDE = 16_384
# A sketch has so many test vectors, in an array of at most so many bytes.
SKETCH, SKETCH_BYTES = 256, 1 << 28


class CrossAccumulator:
    """Sum Z^T W Y and the weighted column sums, without Z^T W Z.

    Parameters
    ----------
    features : fitted transformer
        Maps the rows of X to the rows of Z.

    Attributes
    ----------
    sums : ndarray of shape (1 + n_targets, n_features + 2), or None
        The products of the columns [1 y] with [z 1]. A last column holds the number of rows with a
        positive weight (beside the 1) and sum w y^2 (beside each y).
    n_rows : int
        Number of rows seen.
    dtype : dtype
        float32 as long as all features were.

    Notes
    -----
    These are the sums that `GramAccumulator` has below its Gram matrix. They are identical, to the
    last bit, for any number of threads. Time: n p operations for each target. Memory: 8 p bytes for
    each target and run.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> CrossAccumulator(FunctionTransformer().fit(X)).update(X, [1.0, 2.0]).sums
    array([[ 4.,  6.,  2.,  2.],
           [ 7., 10.,  3.,  5.]])
    """

    _state = stored(
        features=has("transform") | nothing(),
        n_rows=whole(0),
        dtype=floating_dtype(),
        sums=doubles("t", "w") | nothing(),
    )

    def __init__(self, features: Any):
        self.features = features
        self.sums: Any = None
        self.n_rows = 0
        self.dtype: np.dtype[Any] = np.dtype(np.float32)

    def update(self, X: Data, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add the rows of a batch, and return self: unchanged if an error or an interrupt occurs.

        Parameters
        ----------
        X, y, sample_weight
            As for `GramAccumulator.update`, but y is needed.
        """
        X = as_rows(X)
        return self.add(X, check_targets(y, X), check_weights(sample_weight, X))

    def add(self, X: Any, y: Doubles, weight: Doubles | None) -> Self:
        """Add rows, targets and weights that were checked."""
        y = y.reshape(X.shape[0], -1)
        p = int(width_of(self.features, X))
        types = set()

        def use(rows: slice, Z: Floats, sums: Sums) -> None:
            types.add(Z.dtype)
            R = np.ones((len(Z), 1 + y.shape[1]))
            R[:, 1:] = y[rows]
            weighted = R if weight is None else R * weight[rows, None]
            sums[0][:, :p] += weighted.T.astype(Z.dtype, copy=False) @ Z
            sums[0][:, p] += weighted.sum(axis=0)
            sums[0][:, p + 1] += np.einsum("it,it->t", weighted, R)
            sums[0][0, p + 1] += np.count_nonzero(weighted[:, 0]) - weighted[:, 0].sum()

        (added,) = sum_tiles(self.features, X, use, [(1 + y.shape[1], p + 2)])
        if not np.isfinite(added[0]).all():
            raise ValueError(
                f"{self.features} returned NaN or infinity for finite X; check its output"
            )
        if not np.isfinite(added).all():
            raise ValueError("y is so large that its squares overflow; scale it")
        self._add(added, X.shape[0], np.result_type(*types))
        return self

    def merge(self, other: "CrossAccumulator") -> "CrossAccumulator":
        """Add the rows of another accumulator with the same features, and return self."""
        check_same_class(self, other)
        if other.sums is not None:
            self._add(other.sums, other.n_rows, other.dtype)
        return self

    def _add(self, sums: Doubles, n_rows: int, dtype: np.dtype[Any]) -> None:
        if self.sums is not None and self.sums.shape != sums.shape:
            raise ValueError(
                f"these rows give sums of shape {sums.shape}, but earlier rows gave "
                f"{self.sums.shape}; add rows of one kind, or start a new accumulator"
            )
        self.sums = sums if self.sums is None else self.sums + sums  # replaced, never changed
        self.n_rows += n_rows
        self.dtype = np.result_type(self.dtype, dtype)

    def _emptied(self) -> "CrossAccumulator":
        """Return an accumulator of the same kind that has seen no rows."""
        return CrossAccumulator(self.features)


# ---- products


def gram_product(
    Z: Floats, V: Doubles, weights: Doubles | None = None, mean: Doubles | None = None
) -> Doubles:
    """Return Z_c^T W Z_c V in double, with Z_c = Z - mean, from a product with V and one back.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_features)
    V : ndarray of shape (n_features, n_vectors)
    weights : ndarray of shape (n_rows,), optional
        1 each by default.
    mean : ndarray of shape (n_features,), optional
        0 by default.

    Notes
    -----
    4 operations for each entry of Z and vector, in the type of Z.

    Examples
    --------
    >>> import numpy as np
    >>> gram_product(np.eye(2), np.array([[1.0], [3.0]]), mean=np.array([0.5, 0.5]))
    array([[-1.],
           [ 1.]])
    """
    if np.ndim(Z) != 2 or np.ndim(V) != 2 or Z.shape[1] != V.shape[0]:
        raise ValueError(
            f"Z has shape {np.shape(Z)} and V {np.shape(V)}; pass rows of features, and vectors as "
            "columns of as many entries"
        )
    mean = np.zeros(Z.shape[1]) if mean is None else np.asarray(mean, dtype=np.float64)
    products, total = np.zeros((Z.shape[1], V.shape[1])), np.zeros(V.shape[1])
    _add_products(np.asarray(Z), _Vectors(V, mean, Z.dtype), weights, (products, total))
    return products - np.outer(mean, total)


class _Vectors:
    """Vectors in the type of the features, and their products with the mean features."""

    def __init__(self, V: Any, mean: Any, dtype: Any) -> None:
        self.of_mean = mean @ V
        self.V = np.ascontiguousarray(V, dtype=dtype)


def _add_products(Z: Floats, vectors: _Vectors, weight: Doubles | None, sums: Sums) -> None:
    """Add Z^T W (Z V - mean.V) and 1^T W (Z V - mean.V) to sums."""
    values = (Z @ vectors.V).astype(np.float64, copy=False)
    values -= vectors.of_mean
    if weight is not None:
        values *= weight[:, None]
    sums[0][:] += Z.T @ values.astype(Z.dtype, copy=False)
    sums[1][:] += values.sum(axis=0)


def _products_of_batch(
    rows: PassedRows, features: Any, mean: Doubles, V: Doubles, dtype: Any
) -> Sums:
    X, _, weight = rows
    vectors = _Vectors(V, mean, dtype)

    def use(part: slice, Z: Floats, sums: Sums) -> None:
        of_rows = None if weight is None else weight[part]
        _add_products(Z.astype(dtype, copy=False), vectors, of_rows, sums)

    return sum_tiles(features, X, use, [V.shape, V.shape[1:]])


class GramOperator:
    """V -> Z_c^T W Z_c V, in one pass over the rows; products within a tile are in `dtype`."""

    def __init__(self, passes: Passes, features: Any, mean: Doubles, dtype: Any) -> None:
        self.passes, self.features, self.mean, self.dtype = passes, features, mean, dtype

    def __call__(self, V: Doubles) -> Any:
        args = self.features, self.mean, V, self.dtype
        products, total = self.passes.total(_products_of_batch, *args)
        return products - np.outer(self.mean, total)


# ---- the sketch


def nystrom_sketch(
    product: Any, test: Doubles, *, dtype: Any = np.float64
) -> tuple[Doubles, Doubles]:
    """Return approximate leading eigenvalues and eigenvectors of a positive semidefinite matrix.

    They are those of G T (T^T G T)^+ (G T)^T for test vectors T, which never exceeds G.

    Parameters
    ----------
    product : ndarray of shape (n, n), or callable
        G, or V -> G V.
    test : ndarray of shape (n, r)
        T; orthonormal columns are the most accurate.
    dtype : dtype, default=float64
        The arithmetic of the product: eigenvalues within its rounding errors are dropped.

    Returns
    -------
    values : ndarray of shape (rank,), largest first
    vectors : ndarray of shape (n, rank)

    Notes
    -----
    One product with r vectors, then 4 n r^2 operations, and two arrays of the size of `test`.

    References
    ----------
    Frangella, Tropp, Udell, Randomized Nystrom Preconditioning, SIAM J. Matrix Anal. 2023,
    Algorithm 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> values, vectors = nystrom_sketch(np.diag([4.0, 1.0, 0.0]), np.eye(3)[:, :2])
    >>> values
    array([4., 1.])
    """
    image = product(test) if callable(product) else np.asarray(product) @ test
    core = test.T @ image
    values, axes = eigh((core + core.T) / 2)
    certain = values > len(values) * np.finfo(dtype).eps * max(values[-1], 0.0)
    if not certain.any():
        return np.empty(0), np.empty((len(test), 0))
    half = image @ (axes[:, certain] / np.sqrt(values[certain]))  # half half^T approximates G
    basis = orthonormal(half)
    small = basis.T @ half
    values, axes = eigh(small @ small.T)
    return values[::-1], basis @ axes[:, ::-1]


class SketchPreconditioner(Preconditioner):
    """P = U (L + alpha) U^T + (l + alpha) (I - U U^T), up to a factor, for G + alpha I.

    L and U are the leading eigenvalues, largest first, and vectors of a sketch; l is the least of
    L, and `shifts` has the alpha of each column.
    """

    def __init__(self, values: Doubles, vectors: Doubles, shifts: Doubles) -> None:
        self.vectors = vectors
        least = values[-1] if values.size else 1.0
        tiny = np.finfo(np.float64).tiny
        self.factors = (least + shifts) / np.maximum(values[:, None] + shifts, tiny) - 1.0

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R, see `Preconditioner`."""
        return np.asarray(R + self.vectors @ (self.factors[:, columns] * (self.vectors.T @ R)))


# ---- the regression


def solve_wide(
    passes: Passes, moments: CrossAccumulator, alphas: Doubles, fit_intercept: bool, **options: Any
) -> tuple[Doubles, Doubles, Solution]:
    """Solve the ridge systems of all targets: coefficients (n_targets, p), intercepts, and how.

    `moments` are of all rows; `options` are tol, max_iter, progress and checkpoint of
    `conjugate_gradients`.
    """
    sums = moments.sums
    p = sums.shape[1] - 2
    check_some_weight(sums[0, p])
    mean, mean_y = np.zeros(p), np.zeros(len(sums) - 1)
    if fit_intercept:
        mean, mean_y = sums[0, :p] / sums[0, p], sums[1:, p] / sums[0, p]
    b = sums[1:, :p].T - np.outer(mean, sums[1:, p])
    operand, double = (passes, moments.features, mean), np.dtype(np.float64)
    product = GramOperator(*operand, moments.dtype)
    exact = product if moments.dtype == double else GramOperator(*operand, double)
    rank = max(1, min(SKETCH, SKETCH_BYTES // (8 * p), p, moments.n_rows))
    test = orthonormal(np.random.default_rng(0).standard_normal((p, rank)))
    sketch = nystrom_sketch(product, test, dtype=moments.dtype)
    made = SketchPreconditioner(*sketch, alphas)
    solution = conjugate_gradients((product, exact), b, alphas, preconditioner=made, **options)
    if solution.trouble:
        warn(f"conjugate gradients: {solution.trouble}", ConvergenceWarning)
    coef = solution.coef.T
    return coef, mean_y - coef @ mean, solution
