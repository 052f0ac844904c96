"""Adaptive sketch: the monomials that matter to the data, drawn by their ridge leverage.

The coordinates of x (x) ... (x) x, N factors, are the products of N columns of x. They are the
features of a kernel that is a power series of the dot product. Some of these d^N products are drawn
by their ridge leverage, column by column, without listing the others.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csc_array, csr_array
from scipy.special import gammaln

from gzkcore._compiled import product as _product
from gzkcore._util.linalg import eigh
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, holds, ints, nothing, number, stored, whole
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import as_floats, check_integer, check_positive, dense
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import DotProductKernel, as_dot_product
from gzkcore.kernels.shift_invariant import Gaussian

from .base import KernelMap, cast_once, tiles, warn_if_trivial
from .fit_rows import FitRows
from .nystrom import leverage_sample, rank_for, ridge_for

__all__ = ["AdaptiveSketchFeatures", "monomial_features"]

# The share of draws that depend on the sizes of columns only, so that each monomial is possible.
_DEFENSIVE = 0.1
# All monomials are listed if they are no more than this.
_LISTED = 1 << 16
# Draws for each column of the output after which drawing ends, if monomials repeat.
_MOST_DRAWS = 32
# Degrees are left out whose sum over the sampled rows is at most this share of lambda.
_MISSING = 1e-3
# The number of degrees of a series; it is enough for squared norms of the Gaussian up to _LARGEST.
_MOST_DEGREES, _LARGEST = 1024, 600.0
# Rows with a smaller share of nonzero entries stay sparse, and are not centred.
_SPARSE_SHARE = 1 / 4
# Entries of a temporary array.
_ENTRIES = 1 << 20
# A column of sparse rows with a larger share of nonzero entries counts as dense.
_DENSE_SHARE = 1 / 16
# Weights with a larger logarithm are kept in double precision.
_SINGLE = 40.0

Tuples = NDArray[np.int32]


def monomial_features(X: ArrayLike, columns: ArrayLike, weights: ArrayLike) -> Floats:
    """Evaluate weights_j prod_i x_(columns_ji) for each row x and monomial j.

    Parameters
    ----------
    X : array-like of shape (n_samples, dim)
        float32 stays float32, everything else becomes float64.
    columns : array-like of int of shape (F, N)
        The columns of X that each monomial multiplies; negative numbers are ignored.
    weights : array-like of shape (F,)

    Returns
    -------
    ndarray of shape (n_samples, F)

    Notes
    -----
    Monomials share the products of common first factors: at most one product for each factor.

    Examples
    --------
    >>> from gzkcore.features.adaptive import monomial_features
    >>> monomial_features([[2.0, 3.0]], [[-1, -1], [0, 1], [1, 1]], [1.0, 1.0, 0.5])
    array([[1. , 6. , 4.5]])
    """
    X = as_floats("X", X)
    tuples, factors = np.asarray(columns), np.asarray(weights, dtype=X.dtype)
    if X.ndim != 2 or tuples.ndim != 2 or factors.shape != tuples.shape[:1]:
        raise ValueError(
            f"X has shape {X.shape}, columns {tuples.shape} and weights {factors.shape}; pass "
            "points as rows, and a row of columns and a weight for each monomial"
        )
    if tuples.size and tuples.dtype.kind not in "iu":
        raise TypeError(f"columns={columns!r} must be integers, numbers of columns of X")
    if tuples.size and tuples.max() >= X.shape[1]:
        raise ValueError(
            f"columns go up to {tuples.max()}, but X has {X.shape[1]}, numbered from 0; use "
            "smaller ones"
        )
    ordered, order = _ordered(np.maximum(tuples.astype(np.int64), -1).astype(np.int32))
    used, tree, entries = _plan(ordered)
    columns_of = np.empty_like(entries)
    columns_of[order] = entries
    out = np.empty((len(X), len(tuples)), dtype=X.dtype)
    for rows in tiles(len(X), 8 * len(tuples)):
        _multiply(X[rows][:, used], tree, columns_of, out[rows])
        out[rows] *= factors
    return out


class AdaptiveSketchFeatures(KernelMap):
    """Features of Gaussian and dot-product kernels: monomials drawn by ridge leverage.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        `Gaussian`, `Polynomial`, `ExponentialDot`, `DotProduct`, or an alias.
    n_components : int, default=1024
        F >= 1, the width of the output.
    lam : float or None, default=None
        lambda > 0, like the alpha of a ridge regression on the kernel matrix of the training rows.
        Monomials are drawn by their leverage at this ridge. None: the sum of the eigenvalues after
        the first F / (4 log F), divided by F / (4 log F).
    n_rows : int, default=512
        Number of rows from which leverage is estimated. These rows are drawn by their own leverage.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    center_ : ndarray of shape (n_features,) or None
        The mean of the data, subtracted for the Gaussian; None if fewer than a quarter of the
        entries are not 0, in sparse rows or dense ones.
    lam_ : float
        lambda.
    statistical_dimension_ : float
        s_lambda, the sum of all ridge leverages, estimated from n_rows rows.
    columns_ : ndarray of int32 of shape (n_effective_, N)
        Which columns are multiplied; -1 is no factor.
    weights_ : ndarray of shape (n_effective_,)
        The size of each monomial of rows divided by `radius_`.
    radius_ : float
        The largest norm of scaled, centred rows.
    n_effective_ : int
        Columns that aren't 0.

    See Also
    --------
    NystromFeatures : Also depends on the data, and is nearly always more accurate.
    PolySketchFeatures : Independent of the data.

    Notes
    -----
    k(x, y) = e(x) e(y) sum_N a_N <x, y>^N has the features sqrt(a_N) e(x) x_i1 ... x_iN. The ridge
    leverage of a monomial with the values f at all rows is f^T (K + lambda I)^-1 f, estimated from
    weighted rows. Monomials are drawn in proportion to it (one draw in ten uses the
    sizes of the columns instead) until F + 1 different ones are found. The terms of the first F are
    divided by their probabilities of being chosen. So the features are unbiased for the degrees
    kept, for rows that are 0 in every column that was 0 in all training rows. At most F monomials
    are all kept. The degrees left out contribute less than a thousandth of lambda on the sample.

    Woodruff and Zandieh also sample products of columns by approximate ridge leverage. Their
    theorems do not cover this method; `docs/adaptive.md` lists the differences.

    With S = n_rows, fitting takes n S values of the kernel and O(n S^2) operations to choose rows,
    then O(S^2) operations for each of up to 65,536 monomials. If there are more, a draw takes
    O(S^2) operations for each attempt if many attempts are accepted, else S^2 n_features for each
    factor (less on CSR). A row takes its norm and at most one product for each factor of each
    monomial.

    References
    ----------
    Woodruff, Zandieh, Near Input Sparsity Time Kernel Embeddings via Adaptive Sampling, 2020;
    Musco, Musco, Recursive Sampling for the Nystrom Method, 2017; Cohen, Kaplan, Summarizing Data
    using Bottom-k Sketches, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import AdaptiveSketchFeatures, Gaussian
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) / 2
    >>> features = AdaptiveSketchFeatures(Gaussian(0.5), 200, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.05)
    ((500, 200), True)
    """

    _in_tiles = True

    _state = stored(
        kernel_=holds(DotProductKernel),
        center_=doubles("n_features_in_") | nothing(),
        radius_=number(0),
        lam_=number(finite=False),
        statistical_dimension_=number(finite=False),
        n_effective_=whole(0, below=lambda of: of._n_features_out + 1),
        columns_=ints("n_effective_", "d", least=-1, below="n_features_in_", dtype=np.int32),
        weights_=doubles("n_effective_", least=0),
    )

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        lam: float | None = None,
        n_rows: int = 512,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.lam = lam
        self.n_rows = n_rows

    def _fit(self, rows: FitRows) -> None:
        X, width = _laid_out(rows.X), self._n_features_out
        count = check_integer("n_rows", self.n_rows, 1)
        kernel = rows.resolve(as_kernel(self.kernel))
        kernel = as_dot_product(kernel, "NystromFeatures for any kernel")
        lam = None if self.lam is None else check_positive("lam", self.lam)
        self.center_: Doubles | None = None
        if kernel.shift_invariant and isinstance(X, np.ndarray):
            self.center_ = rows.mean
        self.kernel_ = kernel
        energies, square = self._sizes(X)
        self.radius_ = math.sqrt(square) if square > 0 else 1.0
        if isinstance(kernel, Gaussian) and square > _LARGEST:
            raise ValueError(
                f"a row is {self.radius_:.3g} lengthscales from the centre, and the degrees needed "
                f"grow with the square of that; the limit is {math.sqrt(_LARGEST):.3g}; use a "
                f"gamma below {kernel.gamma}, or NystromFeatures or RandomFourierFeatures"
            )
        rng = generator(self.random_state)
        with limit_blas(1):  # the same draws for any number of threads
            chosen, weights = leverage_sample(kernel, X, count, rng)
            part = X[chosen]
            law = _Law(
                kernel, kernel(dense(part)), self._points(part), weights, energies,
                self.radius_, lam, width,
            )  # fmt: skip
            columns, probabilities = law.choose(width, rng)
        self.lam_, self.statistical_dimension_ = law.lam, law.total
        degrees = np.count_nonzero(columns >= 0, axis=1)
        logs = law.log_sizes[degrees] + _log_orders(columns) - np.log(probabilities)
        self.columns_, self.weights_ = columns, np.exp(logs / 2)
        if not np.isfinite(self.weights_).all():
            raise ValueError(
                f"a row is {self.radius_:.3g} lengthscales from the centre, where monomials "
                "overflow; scale the columns, or use NystromFeatures"
            )
        self.n_effective_ = len(columns)
        warn_if_trivial(kernel, X)

    def _scale(self) -> Doubles:
        return np.broadcast_to(self.kernel_.scale(), self.n_features_in_).astype(np.float64)

    def _centred(self, X: Rows) -> Doubles:
        rows = dense(X).astype(np.float64)
        return rows if self.center_ is None else rows - self.center_

    def _sizes(self, X: Rows) -> tuple[Doubles, float]:
        """Return the sums of squares of scaled columns, and the largest sum of a row."""
        scale = self._scale()
        energies, largest = np.zeros(X.shape[1]), 0.0
        for rows in tiles(X.shape[0], 8 * X.shape[1]):
            if isinstance(X, np.ndarray):
                squares = np.square(self._centred(X[rows]) * scale)
            else:
                squares = X[rows].astype(np.float64).power(2).multiply(np.square(scale)[None, :])
            energies += np.asarray(squares.sum(axis=0)).ravel()
            largest = max(largest, float(squares.sum(axis=1).max()))
        return energies, largest

    def _points(self, X: Rows) -> Any:
        """Return scaled rows over the radius, in Fortran order."""
        scale = self._scale() / self.radius_
        if isinstance(X, np.ndarray):
            return np.asfortranarray(self._centred(X) * scale)
        return csc_array(X.astype(np.float64).multiply(scale[None, :]))

    def _highest_power(self) -> int:
        return int(self.columns_.shape[1])

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        count = self.n_effective_
        used, tree, entries, tops, weights = cast_once(
            self, out.dtype, _prepared, self.columns_, self.weights_
        )
        scale = self._scale()
        orders = np.arange(tops.size)
        out[:, count:] = 0
        for rows in tiles(X.shape[0], 8 * (X.shape[1] + used.size + tops.size + count)):
            part = X[rows]
            if isinstance(part, np.ndarray) or self.center_ is not None:
                part = np.ascontiguousarray(self._centred(part) * scale)
                squares = np.einsum("ij,ij->i", part, part)
                points = part[:, used] / self.radius_
            else:
                part = part.astype(np.float64)
                squares = part.power(2) @ np.square(scale)
                points = part[:, used].toarray() * (scale[used] / self.radius_)
            norms = np.sqrt(squares)
            ratio = np.where(norms > 0, norms / self.radius_, 1.0)
            points /= ratio[:, None]
            log_sizes = self.kernel_.log_envelope(norms)[:, None] + orders * np.log(ratio)[:, None]
            points = np.concatenate([points, np.exp(log_sizes + tops)], axis=1)
            same = weights.dtype == out.dtype
            values = out[rows, :count] if same else np.empty((len(norms), count), weights.dtype)
            _multiply(points, tree, entries, values)
            np.multiply(values, weights, out=out[rows, :count], casting="same_kind")

    def _flops(self, density: float) -> float:
        return float(np.count_nonzero(self.columns_ >= 0) + self._n_features_out)

    def _about(self) -> str:
        top = int(np.count_nonzero(self.columns_ >= 0, axis=1).max())
        return f"{self.n_effective_} monomials up to degree {top}"


def _laid_out(X: Rows) -> Rows:
    """Return rows as CSR if few entries are not 0, else dense."""
    entries = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.count_nonzero()
    sparse = entries < _SPARSE_SHARE * X.shape[0] * X.shape[1]
    return csr_array(X) if sparse else dense(X)


# ---- products of columns


def _sorted(columns: Tuples) -> Tuples:
    """Sort the factors of each monomial, followed by -1."""
    high = np.iinfo(np.int32).max
    inside = np.sort(np.where(columns < 0, high, columns), axis=1)
    return np.where(inside == high, -1, inside).astype(np.int32)


def _ordered(columns: Tuples) -> tuple[Tuples, Integers]:
    """Return monomials with sorted factors, sorted by these, and the order of the monomials."""
    inside = _sorted(columns)
    keys = inside.T[::-1]
    order = np.lexsort(keys) if len(keys) else np.arange(len(columns))
    return inside[order], order


def _plan(columns: Tuples, n_sizes: int = 0) -> tuple[Integers, Integers, Integers]:
    """Return the columns in use, shared products, and three factors of each ordered monomial.

    The entries of `product_features` are the number 1, the columns in use, `n_sizes` sizes of
    degrees, and products that monomials begin with. Each monomial is the product of its last
    column, of the product before it, and of the size of its degree.
    """
    used = np.unique(columns[columns >= 0]).astype(np.intp)
    places = np.searchsorted(used, columns) + 1
    degrees = np.count_nonzero(columns >= 0, axis=1)
    base, tree = 1 + used.size + n_sizes, [np.zeros((0, 2), dtype=np.intp)]
    heads = np.where(degrees > 1, places[:, 0] if columns.shape[1] else 0, 0)
    for j in range(1, columns.shape[1] - 1):
        rows = np.flatnonzero(degrees > j + 1)
        new = np.ones(rows.size, dtype=bool)
        new[1:] = (columns[rows[1:], : j + 1] != columns[rows[:-1], : j + 1]).any(axis=1)
        first = rows[new]
        tree.append(np.column_stack([places[first, j], heads[first]]))
        heads[rows] = base + np.cumsum(new) - 1
        base += first.size
    entries = np.zeros((len(columns), 3), dtype=np.intp)
    there = degrees > 0
    entries[there, 0] = places[there, degrees[there] - 1]
    entries[:, 1] = heads
    if n_sizes:
        entries[:, 2] = 1 + used.size + degrees
    return used, np.concatenate(tree), entries


def _prepared(columns: Tuples, weights: Doubles, dtype: DTypeLike) -> tuple[Any, ...]:
    """Return the plan, and the weight of each monomial of unit rows in two factors.

    The first factor is a logarithm for each degree, to which the logarithms of norms and envelopes
    are added: these may be beyond the range of floats, unlike their product with the weights. The
    second factor is double if single precision has too small a range.
    """
    degrees = np.count_nonzero(columns >= 0, axis=1)
    logs = np.log(weights)
    tops = np.full(degrees.max(initial=0) + 1, -np.inf)
    np.maximum.at(tops, degrees, logs)
    work = dtype if tops.max() < _SINGLE else np.float64
    return *_plan(columns, tops.size), tops, np.exp(logs - tops[degrees]).astype(work)


def _multiply(points: Floats, tree: Integers, entries: Integers, out: Floats) -> None:
    """Write the products of `_plan`, given the columns in use and the sizes of degrees."""
    points = np.ascontiguousarray(points, dtype=out.dtype)
    threads = n_threads(len(points) * (len(tree) + 2 * len(entries)))
    _product.product_features(points, tree, entries, out, False, threads)


def _log_orders(columns: Tuples) -> Doubles:
    """Return the logarithm of the number of orders of the factors of each ordered monomial."""
    logs = gammaln(np.count_nonzero(columns >= 0, axis=1) + 1.0)
    run = np.ones(len(columns))
    for j in range(1, columns.shape[1]):
        run = np.where(columns[:, j] == columns[:, j - 1], run + 1, 1.0)
        logs -= np.where(columns[:, j] >= 0, np.log(run), 0.0)
    return np.asarray(logs, dtype=np.float64)


# ---- which monomials


class _Law:
    """The distribution of the monomials: probabilities and draws."""

    def __init__(
        self, kernel: DotProductKernel, square: Doubles, points: Any, weights: Doubles,
        energies: Doubles, radius: float, lam: float | None, width: int,
    ) -> None:  # fmt: skip
        """Compute leverage from weighted rows of scaled points over their radius."""
        gram: Doubles = np.asarray(dense(points @ points.T), dtype=np.float64)
        self.gram = gram = 0.5 * (gram + gram.T)
        lengths = np.maximum(gram.diagonal(), 0.0)
        roots = np.sqrt(weights) * np.exp(kernel.log_envelope(radius * np.sqrt(lengths)))
        orders = np.arange(min(kernel.n_derivatives() or _MOST_DEGREES, _MOST_DEGREES))
        self.log_sizes = (
            kernel.log_derivative(orders) - gammaln(orders + 1.0) + 2 * orders * math.log(radius)
        )
        K = np.sqrt(weights)[:, None] * square * np.sqrt(weights)
        if not (np.isfinite(K).all() and np.isfinite(np.exp(self.log_sizes)).all() and K.any()):
            raise ValueError(
                f"{kernel!r} {'overflows' if K.any() else 'is 0'} on these rows; scale the columns "
                "of X"
            )
        values, axes = eigh(K)
        values = np.maximum(values, 0.0)
        if lam is None:
            lam = ridge_for(values, rank_for(width))
        self.whitened = (axes / (values + lam)) @ axes.T
        self.whitened *= roots[:, None] * roots
        masses, left, power = [], float(np.trace(K)), np.ones_like(gram)
        for size in np.exp(self.log_sizes):
            masses.append(max(size * float(np.vdot(self.whitened, power)), 0.0))
            left -= size * float(np.square(roots) @ power.diagonal())
            if left <= _MISSING * lam:
                break
            power = power * gram
        self.shares = energies / energies.sum() if energies.any() else np.ones_like(energies)
        self.roots, self.lam, self.total = roots, lam, float(np.array(masses).sum())
        self.degrees = np.array(masses) / self.total
        self.mean_degree = float(self.degrees @ np.arange(len(masses)))
        # The sizes of each degree at each row, and the share of draws by size that are accepted.
        sizes = np.square(roots)[:, None] * lengths[:, None] ** np.arange(len(masses))
        sizes *= np.exp(self.log_sizes[: len(masses)])
        self.row_sizes = sizes.sum(axis=1)
        self.row_degrees = np.cumsum(sizes, axis=1) / np.maximum(self.row_sizes, 1e-300)[:, None]
        self.accepted = lam * self.total / float(self.row_sizes.sum())
        self._arrange(points)

    def _arrange(self, points: Any) -> None:
        """Set the dense columns of points, pairs of entries of the others, and the rows."""
        self.points, self.dim = points, points.shape[1]
        self.dense_columns, light = np.arange(self.dim), np.empty(0, dtype=np.intp)
        if not isinstance(points, np.ndarray):
            counts = np.diff(points.indptr)
            heavy = counts > max(1, _DENSE_SHARE * points.shape[0])
            self.dense_columns, light = np.flatnonzero(heavy), np.flatnonzero(~heavy & (counts > 0))
        self.block: Doubles = _columns(points, self.dense_columns)
        self.pairs = _pairs(points, light)
        self.rows = csr_array(points)
        self.rows.sum_duplicates()
        self.edges: Doubles = np.concatenate([[0.0], np.cumsum(np.square(self.rows.data))])

    def choose(self, width: int, rng: np.random.Generator) -> tuple[Tuples, Doubles]:
        """Return up to `width` different ordered monomials, and the probabilities of the choice."""
        everything = self._all(max(_LISTED, width))
        if everything is not None:
            everything = _ordered(everything)[0]
            if len(everything) <= width:
                return everything, np.ones(len(everything))
            likely = np.maximum(self.probabilities(everything), 1e-300)
            first = rng.standard_exponential(len(everything)) / likely
            last = float(np.partition(first, width)[width])
            chosen = first < last
            return everything[chosen], -np.expm1(-last * likely[chosen])
        seen: set[bytes] = set()
        monomials: list[Tuples] = []
        drawn, time, most = 0, 0.0, max(_MOST_DRAWS * width, 256)
        while len(seen) <= width and drawn < most:
            batch = self.draw(max(64, width + 1 - len(seen)), rng)
            waits = rng.standard_exponential(len(batch))
            drawn += len(batch)
            for monomial, wait in zip(batch, waits, strict=True):
                time += wait
                key = monomial.tobytes()
                if key not in seen:
                    seen.add(key)
                    monomials.append(monomial)
                    if len(monomials) > width:
                        break
        columns = np.array(monomials[:width])
        columns = columns[:, : max(1, int((columns >= 0).sum(axis=1).max()))]
        columns, _ = _ordered(columns)
        # Given the others, a monomial is chosen if its first draw is before the one left out.
        return columns, -np.expm1(-time * self.probabilities(columns))

    def _all(self, most: int) -> Tuples | None:
        """Return all monomials of positive probability, or None if they are more than `most`."""
        used = np.flatnonzero(self.shares > 0)
        orders = np.flatnonzero(self.degrees > 0)
        n = 0
        for N in orders:
            n += math.comb(len(used) + int(N) - 1, int(N)) if N else 1
            if n > most:
                return None
        rows = np.full((n, max(1, int(orders.max()))), -1, dtype=np.int32)
        every = (itertools.combinations_with_replacement(used, int(N)) for N in orders)
        for row, factors in zip(rows, itertools.chain.from_iterable(every), strict=True):
            row[: len(factors)] = factors
        return rows

    def probabilities(self, columns: Tuples) -> Doubles:
        """Return the probabilities of ordered monomials in one draw."""
        orders = np.count_nonzero(columns >= 0, axis=1)
        logs = _log_orders(columns)
        with np.errstate(divide="ignore"):
            shares = np.append(np.log(self.shares), 0.0)[columns].sum(axis=1)
        plain = self.degrees[orders] * np.exp(logs + shares)
        parts = [columns[part] for part in tiles(len(columns), 8 * len(self.gram))]
        work = len(columns) * self.gram.size
        forms = _side_by_side(lambda part: self._forms(part)[1], parts, work)
        with np.errstate(divide="ignore"):  # by logarithms: sizes may be beyond the floats
            log_leverage = np.log(np.concatenate(forms)) + self.log_sizes[orders] + logs
        adapted = np.exp(log_leverage) / self.total
        mixed: Doubles = (1 - _DEFENSIVE) * adapted + _DEFENSIVE * plain
        return mixed

    def _forms(self, columns: Tuples) -> tuple[Doubles, Doubles]:
        """Return the products of columns at the rows, and their quadratic forms."""
        values = np.ones((len(self.gram), len(columns)))
        for column in columns.T:
            live = np.flatnonzero(column >= 0)
            if live.size:
                values[:, live] *= _columns(self.points, column[live])
        forms = np.einsum("ki,ki->i", values, self.whitened @ values)
        return values, np.maximum(forms, 0.0)

    def draw(self, count: int, rng: np.random.Generator) -> Tuples:
        """Draw independent monomials with sorted factors."""
        plain = int(rng.binomial(count, _DEFENSIVE))
        quick = self.accepted * self.dim * self.mean_degree > 1
        others = (self._by_rows if quick else self._by_modes)(count - plain, rng)
        columns = np.concatenate([self._by_sizes(plain, rng), others])
        return rng.permutation(_sorted(columns))

    def _by_sizes(self, count: int, rng: np.random.Generator) -> Tuples:
        """Draw columns independently by their sizes."""
        orders = rng.choice(len(self.degrees), count, p=self.degrees)
        columns = np.full((count, len(self.degrees)), -1, dtype=np.int32)
        edges = np.cumsum(self.shares)
        for j in range(columns.shape[1]):
            rows = np.flatnonzero(orders > j)
            columns[rows, j] = _search(edges, rng.random(len(rows)))
        return columns

    def _by_rows(self, count: int, rng: np.random.Generator) -> Tuples:
        """Draw by size, and accept by lambda times leverage over size, which is at most 1."""
        parts, n_drawn = [np.empty((0, len(self.degrees)), dtype=np.int32)], 0
        while n_drawn < count:
            size = min(max(64, math.ceil(1.1 * (count - n_drawn) / self.accepted)), 1 << 14)
            rows = rng.choice(len(self.gram), size, p=self.row_sizes / self.row_sizes.sum())
            orders = np.minimum(
                (self.row_degrees[rows] < rng.random(size)[:, None]).sum(axis=1),
                len(self.degrees) - 1,
            )
            columns = np.full((size, len(self.degrees)), -1, dtype=np.int32)
            for j in range(int(orders.max())):
                longer = np.flatnonzero(orders > j)
                columns[longer, j] = self._in_rows(rows[longer], rng.random(len(longer)))
            values, forms = self._forms(columns)
            sizes = np.square(self.roots) @ np.square(values)
            accepted = rng.random(size) * sizes < self.lam * forms
            parts.append(columns[accepted])
            n_drawn += int(accepted.sum())
        return np.concatenate(parts)[:count]

    def _in_rows(self, rows: Integers, uniforms: Doubles) -> Tuples:
        """Draw a column in each of these nonzero rows, by the squares of its entries."""
        first, last = self.rows.indptr[rows], self.rows.indptr[rows + 1]
        below, above = self.edges[first], self.edges[last]
        places = np.searchsorted(self.edges, below + uniforms * (above - below), side="right") - 1
        columns: Tuples = self.rows.indices[np.clip(places, first, last - 1)].astype(np.int32)
        return columns

    def _by_modes(self, count: int, rng: np.random.Generator) -> Tuples:
        """Draw by leverage: one column after the other, by exact marginal laws."""
        orders = rng.choice(len(self.degrees), count, p=self.degrees)
        columns = np.full((count, len(self.degrees)), -1, dtype=np.int32)
        uniforms = rng.random((count, len(self.degrees)))
        values = np.ones((len(self.gram), count))
        for left in range(int(orders.max(initial=0)), 0, -1):
            form = self.whitened * self.gram ** (left - 1)
            for N in np.unique(orders[orders >= left]):
                rows = np.flatnonzero(orders == N)
                done = int(N) - left
                before = np.sort(columns[rows, :done], axis=1)
                _, first, group = np.unique(before, axis=0, return_index=True, return_inverse=True)
                chosen = self._take(
                    values[:, rows[first]], form, group.reshape(-1), uniforms[rows, done]
                )
                columns[rows, done] = chosen
                values[:, rows] *= _columns(self.points, chosen)
        return columns

    def _take(self, values: Doubles, form: Doubles, group: Integers, uniforms: Doubles) -> Tuples:
        """Draw the next column of products; those of a group have the same values."""
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(values.shape[1] + 1))
        chosen = np.empty(len(group), dtype=np.int32)

        def take(span: slice) -> None:
            edges = np.cumsum(self._next(values[:, span], form), axis=1)
            for i, own_edges in enumerate(edges, start=span.start):
                own = order[starts[i] : starts[i + 1]]
                chosen[own] = _search(own_edges, uniforms[own])

        count, step = values.shape[1], max(1, min(32, _ENTRIES // max(self.dim, 1)))
        spans = [slice(start, start + step) for start in range(0, count, step)]
        _side_by_side(take, spans, count * self.gram.size * self.dim)
        return chosen

    def _next(self, values: Doubles, form: Doubles) -> Doubles:
        """Return the weights of the next column, for each product of the columns before."""
        likely = np.zeros((values.shape[1], self.dim))
        if self.pairs[0].size:
            column, first, second, product = self.pairs
            for g, value in enumerate(values.T):
                parts = product * value[first] * value[second] * form[first, second]
                likely[g] = np.bincount(column, parts, self.dim)
        step = max(1, _ENTRIES // len(values))
        for g, value in enumerate(values.T):
            for start in range(0, len(self.dense_columns), step):
                block = self.block[:, start : start + step] * value[:, None]
                forms = np.einsum("ki,ki->i", block, form @ block)
                likely[g, self.dense_columns[start : start + step]] = forms
        return np.maximum(likely, 0.0, out=likely)


def _columns(points: Any, columns: ArrayLike) -> Doubles:
    """Return some columns as a dense array."""
    part: Doubles = points[:, np.asarray(columns, dtype=np.intp)]
    return dense(part)  # type: ignore[return-value]


def _pairs(points: Any, columns: Integers) -> tuple[Integers, Integers, Integers, Doubles]:
    """Return all pairs of entries of the same column: column, both rows, product."""
    if columns.size == 0:
        none = np.empty(0, dtype=np.intp)
        return none, none, none, np.empty(0)
    part = points[:, columns].tocsc()
    counts = np.diff(part.indptr).astype(np.intp)
    squares = np.square(counts)
    starts = np.repeat(part.indptr[:-1].astype(np.intp), squares)
    inside = np.arange(squares.sum()) - np.repeat(np.cumsum(squares) - squares, squares)
    size = np.repeat(counts, squares)
    a, b = starts + inside // size, starts + inside % size
    rows = part.indices.astype(np.intp)
    return np.repeat(columns, squares), rows[a], rows[b], part.data[a] * part.data[b]


def _search(edges: Doubles, uniforms: Doubles) -> Tuples:
    """Return the intervals between increasing edges in which uniforms fall."""
    last = int(np.searchsorted(edges, edges[-1], side="left"))
    places = np.searchsorted(edges, uniforms * edges[-1], side="right")
    intervals: Tuples = np.minimum(places, last).astype(np.int32)
    return intervals


def _side_by_side(function: Callable[[Any], Any], parts: Sequence[Any], work: int) -> list[Any]:
    """Apply a function to each part, on threads for this many operations."""
    threads = min(n_threads(work), len(parts))
    if threads <= 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, parts))
