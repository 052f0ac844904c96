"""Random Maclaurin features: a dot-product kernel is a mean of products of random signs.

k(x, y) = sum_N a_N <x, y>^N with a_N >= 0, and <x, y> = E (w.x)(w.y) for independent random signs
w. So a column of degree N is a product of N numbers w.x, and N is random too.
"""

import math
from contextlib import nullcontext
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import gammaln

from gzkcore._compiled import maclaurin as _maclaurin
from gzkcore._compiled import variances as _variances
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, holds, ints, nothing, signs, stored
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import (
    as_floats,
    check_choice,
    check_integer,
    check_out,
    dense,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import DotProductKernel, as_dot_product

from .base import (
    FEW_COLUMNS,
    LANES,
    KernelMap,
    cast_once,
    moment_of_pairs,
    tiles,
    warn_if_trivial,
)
from .fit_rows import FitRows

__all__ = ["MaclaurinFeatures", "maclaurin_features", "maclaurin_variance"]

Degrees: TypeAlias = Literal["adapted", "geometric"]
RULES: tuple[Degrees, ...] = get_args(Degrees)

# The number of degrees of a series.
_MOST_DEGREES = 1024
# Degrees of a smaller probability are left out.
_LEAST = 1e-12


def maclaurin_features(
    X: ArrayLike, signs: ArrayLike, degrees: ArrayLike, weights: ArrayLike
) -> Floats:
    """Evaluate weights_j prod_(i <= N_j) (w_ij . x) for each column j of `MaclaurinFeatures`.

    Parameters
    ----------
    X : array-like of shape (n_samples, dim)
        float32 stays float32, everything else becomes float64.
    signs : array-like of shape (sum of degrees, dim)
        The signs of the first column, then those of the second, and so on.
    degrees : array-like of int of shape (F,)
        N_j >= 0, the number of sign vectors of each column.
    weights : array-like of shape (F,)

    Returns
    -------
    ndarray of shape (n_samples, F)

    Examples
    --------
    >>> from gzkcore.features.maclaurin import maclaurin_features
    >>> maclaurin_features([[1.0, 2.0]], [[1, 1], [1, -1], [1, 1]], [0, 1, 2], [1.0, 1.0, 0.5])
    array([[ 1. ,  3. , -1.5]])
    """
    X = as_floats("X", X)
    N, weights = np.asarray(degrees, dtype=np.intp), np.asarray(weights, dtype=np.float64)
    if X.ndim != 2 or N.ndim != 1 or weights.shape != N.shape or (N < 0).any():
        raise ValueError(
            f"X has shape {X.shape}, degrees {N.shape} and weights {weights.shape}; pass points as "
            "rows, and a degree >= 0 and a weight for each column"
        )
    W = np.asarray(signs, dtype=np.float64).reshape(-1, X.shape[1])
    if len(W) != N.sum():
        raise ValueError(
            f"signs has {counted(len(W), 'row')}, but the degrees add up to {N.sum()}; pass as "
            "many rows"
        )
    order = np.argsort(-N, kind="stable")
    starts = np.cumsum(N) - N
    rows = [starts[order][N[order] > i] + i for i in range(N.max(initial=0))]
    factors = np.concatenate([*rows, np.empty(0, np.intp)]).astype(np.intp)
    packed, counts = _packed(W[factors], N, X.dtype)
    out = check_out(None, (X.shape[0], N.size), X.dtype)
    _fill(X, packed, counts, weights[order].astype(X.dtype), np.ones(X.shape[0]), out)
    sorted_back = np.empty_like(out)
    sorted_back[:, order] = out
    return sorted_back


def maclaurin_variance(
    x: ArrayLike, y: ArrayLike, coefficients: ArrayLike, probabilities: ArrayLike, n_components: int
) -> Any:
    """Variance of z(x).z(y) over degrees and signs.

    Parameters
    ----------
    x, y : array-like of shape (dim,), or (n, dim) for as many pairs
    coefficients : array-like of shape (n_degrees,)
        a_N of k(x, y) = sum_N a_N <x, y>^N.
    probabilities : array-like of shape (n_degrees,)
        P(N), > 0 where a_N is.
    n_components : int
        F >= 1.

    Returns
    -------
    float, or ndarray of shape (n,)
        (sum_N a_N^2 m^N / P(N) - k^2) / F, m = E (w.x)^2 (w.y)^2 = |x|^2 |y|^2 + 2 <x, y>^2 -
        2 sum_j x_j^2 y_j^2.

    Examples
    --------
    >>> from gzkcore.features.maclaurin import maclaurin_variance
    >>> maclaurin_variance([1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [0.0, 1.0], 2)  # 8 - 4, over two
    2.0
    """
    a = np.ascontiguousarray(coefficients, dtype=np.float64)
    p = np.ascontiguousarray(probabilities, dtype=np.float64)
    n_components = check_integer("n_components", n_components, 1)
    if a.ndim != 1 or a.shape != p.shape:
        raise ValueError(
            f"coefficients have shape {a.shape} and probabilities {p.shape}; pass one of each for "
            "every degree"
        )
    return moment_of_pairs(_variances.maclaurin_variance, x, y, a, p, n_components)


class MaclaurinFeatures(KernelMap):
    """Random Maclaurin features of a dot-product kernel, or of the Gaussian.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        `Gaussian`, `Polynomial`, `ExponentialDot`, `DotProduct`, or an alias.
    n_components : int, default=1024
        F >= 1, the width of the output.
    degrees : {"adapted", "geometric"}, default="adapted"
        The distribution of a column's degree N. "adapted": in proportion to a_N r^(2N), with r^2
        the mean squared norm of the data, so that a column's size depends little on its degree.
        "geometric": 2^-(N+1), as published.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    center_ : ndarray of shape (n_features,) or None
        The mean of the data in units of X, which is subtracted for the Gaussian.
    coefficients_, probabilities_ : ndarray of shape (n_degrees,)
        a_N and P(N).
    degrees_ : ndarray of shape (F,)
        Degrees of the columns, in falling order.
    signs_ : ndarray of int8 of shape (sum of degrees_, n_features)
        Signs of the first factor of all columns that have one, then of the second, and so on.

    See Also
    --------
    GegenbauerFeatures : The same kernels, far more accurate.

    Notes
    -----
    Unbiased for sum_N a_N <x, y>^N over the degrees with P(N) >= 1e-12, times e(|x|) e(|y|) for the
    Gaussian. The variance is `maclaurin_variance`, times (e(|x|) e(|y|))^2 for the Gaussian. It
    grows fast with the norms. Columns are sorted by degree.

    Cost: 2 n_features + 1 operations for each factor of each column; CSR is made dense tile by
    tile. With more than 32 columns of X BLAS computes the products.

    References
    ----------
    Kar, Karnick, Random Feature Maps for Dot Product Kernels, 2012, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import MaclaurinFeatures, Polynomial
    >>> X = np.random.default_rng(0).standard_normal((100, 5)) / 3
    >>> features = MaclaurinFeatures(Polynomial(degree=3), 4096, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - features.kernel_(X)).mean() < 0.1)
    True
    """

    _in_tiles = True

    _state = stored(
        kernel_=holds(DotProductKernel),
        center_=doubles("n_features_in_") | nothing(),
        coefficients_=doubles("k"),
        probabilities_=doubles("k"),
        degrees_=ints("_n_features_out", below=lambda of: of.coefficients_.size),
        signs_=signs(lambda of: of.degrees_.sum(), "n_features_in_"),
    )

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        degrees: Degrees = "adapted",
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.degrees = degrees

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        kernel = as_dot_product(rows.resolve(as_kernel(self.kernel)), "GegenbauerFeatures")
        check_choice("degrees", self.degrees, RULES)
        self.center_: Doubles | None = None
        if kernel.shift_invariant:
            self.center_ = rows.mean
        total = 0.0
        for part in tiles(X.shape[0], 8 * X.shape[1]):
            with np.errstate(over="ignore"):
                total += rows.sum(np.square(_scaled(X[part], kernel, self.center_)), part)
        if not math.isfinite(total):
            raise ValueError(
                f"X is too large for {kernel!r}: the squared norms of scaled rows overflow; scale "
                "the columns (sklearn.preprocessing.StandardScaler)"
            )
        log_a, log_p = _series(kernel, total / rows.total, self.degrees)
        rng = generator(self.random_state)
        self.coefficients_: Doubles = np.exp(log_a)
        self.probabilities_: Doubles = np.exp(log_p)
        self.degrees_ = -np.sort(-rng.choice(log_p.size, width, p=self.probabilities_))
        shape = (int(self.degrees_.sum()), X.shape[1])
        self.signs_: NDArray[np.int8] = 1 - 2 * rng.integers(0, 2, shape, dtype=np.int8)
        self.kernel_ = kernel
        warn_if_trivial(kernel, X)

    def _check_state(self) -> None:
        if (np.diff(self.degrees_) > 0).any():
            raise ValueError("has degrees_ that rise; they fall from column to column")

    def _highest_power(self) -> int:
        return int(self.degrees_.max(initial=1))

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        drawn = self.signs_, self.degrees_, self.coefficients_, self.probabilities_
        packed, counts, weights = cast_once(self, X.dtype, _factors, *drawn)
        for rows in tiles(X.shape[0], X.shape[1]):  # of many rows, for all threads
            points = _scaled(X[rows], self.kernel_, self.center_)
            norms = np.sqrt(np.einsum("ij,ij->i", points, points))
            envelope = np.exp(self.kernel_.log_envelope(norms))
            _fill(
                points.astype(out.dtype, copy=False), packed, counts, weights, envelope, out[rows]
            )

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        return 32.0 * width + float(width) * columns

    def _flops(self, density: float) -> float:
        return float(self.degrees_.sum() * (self.n_features_in_ + 1))

    def _about(self) -> str:
        return f"degrees up to {self.degrees_[0]}"


def _scaled(X: Rows, kernel: Kernel, center: Doubles | None) -> Doubles:
    points = np.asarray(dense(X), dtype=np.float64, order="C")
    scaled: Doubles = (points if center is None else points - center) * kernel.scale()
    return scaled


def _series(kernel: DotProductKernel, square: float, rule: Degrees) -> tuple[Doubles, Doubles]:
    """Return log a_N and log P(N), up to the last likely degree."""
    N = np.arange(_MOST_DEGREES)
    log_a = kernel.log_derivative(N) - gammaln(N + 1.0)
    if rule == "adapted":
        with np.errstate(invalid="ignore"):
            log_p = log_a + np.where(N > 0, N * math.log(max(square, 1e-300)), 0.0)
    else:
        log_p = -(N + 1) * math.log(2)
    log_p -= np.logaddexp.reduce(log_p)
    log_p[log_p < math.log(_LEAST)] = -np.inf
    log_p -= np.logaddexp.reduce(log_p)
    count = int(np.flatnonzero(np.isfinite(log_p))[-1]) + 1
    return np.where(np.isfinite(log_p), log_a, -np.inf)[:count], log_p[:count]


def _factors(
    signs: NDArray[np.int8],
    degrees: Integers,
    coefficients: Doubles,
    probabilities: Doubles,
    dtype: DTypeLike,
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return the packed signs of all factors, their numbers of columns, and weights of columns."""
    ratio = coefficients / np.where(probabilities > 0, probabilities, 1.0)
    weights = np.sqrt(ratio[degrees] / degrees.size)
    return *_packed(signs, degrees, dtype), weights.astype(dtype)


def _packed(signs: NDArray[Any], N: Integers, dtype: DTypeLike) -> tuple[Floats, NDArray[np.int64]]:
    """Return signs as columns, padded for each factor, and the number of columns of each."""
    counts = np.array([(i < N).sum() for i in range(N.max(initial=0))], dtype=np.int64)
    padded = -(-counts // LANES) * LANES
    W = np.zeros((signs.shape[1], int(padded.sum())), dtype=dtype)
    first = taken = 0
    for count, size in zip(counts.tolist(), padded.tolist(), strict=True):
        W[:, first : first + count] = signs[taken : taken + count].T
        first, taken = first + size, taken + count
    return W, counts


def _fill(
    X: Floats,
    W: Floats,
    counts: NDArray[np.int64],
    weights: Floats,
    envelope: Doubles,
    out: Floats,
) -> None:
    """Write the features of scaled, dense rows."""
    X = np.require(X, requirements=["C", "ALIGNED"])
    blas, threads = X.shape[1] > FEW_COLUMNS, n_threads(X.shape[0] * (W.size + out.shape[1]))
    with limit_blas(1) if blas else nullcontext():
        _maclaurin.maclaurin_features(
            X, W, counts, weights, envelope.astype(out.dtype), out, blas, threads
        )
