"""Nystrom features: any kernel, approximated from its values at some of the rows, the landmarks.

k(x, y) is replaced by k(x, L) K_LL^+ k(L, y) for S landmarks L. The features depend on the data.
They need only the values of the kernel.
"""

import functools
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.sparse import csr_array

from gzkcore._compiled import nystrom as _nystrom
from gzkcore._util.linalg import eigh
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, floats, ints, nothing, stored, whole
from gzkcore._util.threads import limit_blas, limit_threads, n_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import check_array, dense
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.dot_product import DotProductKernel
from gzkcore.kernels.general import FunctionKernel, KernelFunction, Precomputed, as_exact_kernel
from gzkcore.kernels.shift_invariant import Gaussian

from .base import KernelMap, cast_once, check_unit, tiles, warn_if_trivial
from .fit_rows import FitRows

__all__ = ["NystromFeatures"]

Landmarks: TypeAlias = Literal["rpcholesky", "rls", "accelerated-rls", "kmeans++", "uniform"]
RULES: tuple[Landmarks, ...] = get_args(Landmarks)

# Columns of the kernel matrix are stored while landmarks are chosen if they take at most so many
# bytes.
_STORED_BYTES = 1 << 28
# At least so many landmarks are proposed at a time.
_PROPOSALS = 32
# A remainder of k(x, x) below so many eps, relative to the largest, is a rounding error.
_NO_REMAINDER = 100.0
# An eigenvalue below so many eps, relative to the largest, is a rounding error.
_NO_EIGENVALUE = 8.0


class NystromFeatures(KernelMap):
    """Nystrom features: any kernel, from its values at landmarks among the rows.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        Any kernel of `gzkcore.kernels` or its alias; a function of two arrays of rows that returns
        the matrix of values, such as those of `sklearn.metrics.pairwise` or
        `sklearn.gaussian_process`; or "precomputed": `fit` takes the matrix K(n, n), `transform`
        the values K(m, n) at the same n rows.
    n_components : int, default=1024
        F >= 1, the width of the output. It is also the number S of landmarks, unless `landmarks` is
        an array.
    landmarks : str or array-like, default="rpcholesky"
        How landmarks are chosen:

        - "rpcholesky": rows one by one, with probability in proportion to the part of k(x, x) that
          earlier landmarks do not explain (randomly pivoted Cholesky);
        - "rls": rows by ridge leverage, estimated recursively;
        - "accelerated-rls": the same from far smaller samples;
        - "kmeans++": rows one by one, in proportion to the squared distance in the kernel's space
          to the nearest earlier landmark;
        - "uniform": rows with equal probability, as in scikit-learn's Nystroem;
        - an array of shape (S, n_features): these points ("precomputed": row numbers).
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    landmarks_ : ndarray of shape (S, n_features)
        With "precomputed", the numbers of the rows.
    landmark_indices_ : ndarray of shape (S,) or None
        The numbers of these rows; None if the landmarks were given as points.
    eigenvalues_ : ndarray of shape (min(S, F),)
        Eigenvalues of the landmarks' kernel matrix, largest first.
    root_ : ndarray of shape (S, n_effective)
        Its eigenvectors over the roots of its eigenvalues: Z = k(X, landmarks_) @ root_.
    n_effective_ : int
        Number of columns that are not 0, for data of the dtype of the training rows.

    See Also
    --------
    GegenbauerFeatures : Independent of the data, and more accurate in low dimension.
    RandomFourierFeatures : Independent of the data; cheaper for each row.

    Notes
    -----
    Z Z^T = k(X, L) K_LL^+ k(L, X) is exact between landmarks, and K - Z Z^T is positive
    semidefinite. The features are biased towards 0 far from all landmarks.

    Columns are ordered by eigenvalue, and the F largest are kept. Eigenvalues below 8 eps times the
    largest are rounding errors (eps is that of float32 if X is float32); for these, and if there
    are fewer than F, columns are 0.

    Fitting evaluates n S values of the kernel, in tiles, and takes O(n S^2) operations. If these
    values take more than 256 MB, "rpcholesky" evaluates up to about ten times as many.
    "accelerated-rls" and "kmeans++" take O(n S) operations, "uniform" none. Transforming a row
    takes S values of the kernel, in float64, and 2 S F operations by BLAS, in the dtype of X.

    References
    ----------
    Williams, Seeger, Using the Nystrom Method to Speed Up Kernel Machines, 2001; Musco, Musco,
    Recursive Sampling for the Nystrom Method, 2017; Chen, Epperly, Tropp, Webber, Randomly Pivoted
    Cholesky, 2022; Epperly, Tropp, Webber, Embrace Rejection, 2024; Oglic, Gartner, Nystrom Method
    with Kernel K-means++ Samples as Landmarks, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Matern, NystromFeatures
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> features = NystromFeatures(Matern(nu=2.5, length_scale=3.0), 200, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.01)
    ((500, 200), True)
    """

    _in_tiles = True

    _state = stored(
        landmarks_=floats("s", "n_features_in_") | ints("s", below="n_features_in_"),
        landmark_indices_=ints("s") | nothing(),
        root_=doubles("s", "r"),
        eigenvalues_=doubles(None),
        n_effective_=whole(0),
    )

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "gaussian",
        n_components: int = 1024,
        *,
        landmarks: Landmarks | ArrayLike = "rpcholesky",
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        kernel = rows.resolve(as_exact_kernel(self.kernel))
        if kernel.unit_sphere:
            check_unit(X)
        if isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X has shape {X.shape}, but with kernel='precomputed' fit takes the square matrix "
                "of all pairs of rows, without rows of weight 0; pass k(X, X) to fit, and k(new, "
                "X) to transform"
            )
        self.landmark_indices_: Integers | None
        if isinstance(self.landmarks, str):
            gram = _Gram(kernel, X)
            chosen = _choose(self.landmarks, gram, width, generator(self.random_state))
            self.landmarks_, self.landmark_indices_ = gram.points(chosen), rows.numbers(chosen)
        else:
            self.landmarks_, self.landmark_indices_ = _checked(self.landmarks, kernel, X)
        if isinstance(kernel, Precomputed):
            square = kernel(dense(X[self.landmarks_]), self.landmarks_)
        else:
            square = kernel(self.landmarks_)
        if not np.isfinite(square).all():
            raise ValueError(
                f"{kernel!r} is not finite between landmarks; scale the columns of X "
                "(sklearn.preprocessing.StandardScaler), or use another kernel"
            )
        values, axes = eigh(square)
        values, axes = values[::-1][:width], axes[:, ::-1][:, :width]
        count = _count(values, np.float64)
        if count == 0:
            raise ValueError("the kernel is 0 between all landmarks; choose others or scale X")
        self.eigenvalues_: Doubles = values.copy()
        self.root_: Doubles = axes[:, :count] / np.sqrt(values[:count])
        self.n_effective_ = _count(values, X.dtype)
        self.kernel_ = kernel
        if not isinstance(kernel, Precomputed):
            warn_if_trivial(kernel, X)

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        return 32.0 * width + 16.0 * min(width, rows) ** 2  # a kernel matrix and its axes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        if self.kernel_.unit_sphere:
            check_unit(X)
        fitted = self.kernel_, self.landmarks_, self.eigenvalues_, self.root_
        evaluate, root = cast_once(self, out.dtype, _evaluator_and_root, *fitted)
        count = root.shape[1]
        out[:, count:] = 0

        def fill(rows: slice) -> None:
            with limit_threads(1):
                np.matmul(evaluate(dense(X[rows])), root, out=out[rows, :count])

        parts = list(_tiles(X, len(root)))
        threads = min(n_threads(), len(parts))
        if threads == 1 or isinstance(self.kernel_, FunctionKernel):  # it may not allow threads
            for rows in parts:
                fill(rows)
            return
        with limit_blas(1), ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, parts))

    def _flops(self, density: float) -> float:
        size, count = self.root_.shape
        return float(size * (density * float(self.n_features_in_) + 25 + count))

    def _about(self) -> str:
        return counted(len(self.landmarks_), "landmark")

    def _to_data(self) -> dict[str, Any]:
        """Raise for kernels that a file cannot hold, see `model_io`."""
        if as_exact_kernel(getattr(self, "kernel_", self.kernel)).holds_function:
            raise TypeError(
                f"kernel={self.kernel!r} is a function, and a file of data cannot hold functions; "
                "save this model with skops (https://skops.readthedocs.io) instead"
            )
        return {}


class _Gram:
    """The kernel matrix of the rows of X, which `block` evaluates in parts."""

    def __init__(self, kernel: Kernel, X: Rows) -> None:
        self.kernel, self.X, self.size = kernel, X, X.shape[0]
        self.precomputed = isinstance(kernel, Precomputed)

    @functools.cached_property
    def diagonal(self) -> Doubles:
        if self.precomputed:
            return self.kernel.diag(self.X)
        return np.concatenate([self.kernel.diag(self.X[rows]) for rows in _tiles(self.X, 1)])

    def check_diagonal(self) -> None:
        """Raise unless k(x, x) is a number >= 0 for all rows, and > 0 for some."""
        values = self.diagonal
        if (bad := np.flatnonzero(~(np.isfinite(values) & (values >= 0)))).size:
            raise ValueError(
                f"{self.kernel!r} is {values[bad[0]]:.3g} between row {bad[0]} of X and itself; "
                "landmarks are chosen by these values, which must be finite and >= 0; scale X, or "
                "use a positive definite kernel"
            )
        if not values.any():
            raise ValueError(
                f"{self.kernel!r} is 0 between every row of X and itself; scale X, or use a "
                "positive definite kernel"
            )

    def points(self, rows: Integers) -> Floats:
        """Return rows as the kernel's second argument."""
        return rows if self.precomputed else dense(self.X[rows])  # type: ignore[return-value]

    def block(self, rows: slice | Integers, columns: Integers) -> Doubles:
        if isinstance(rows, np.ndarray) and rows.size == 0:
            return np.empty((0, columns.size))
        return self.kernel(dense(self.X[rows]), self.points(columns))


class _SparseGram(_Gram):
    """The matrix of a dot-product kernel and sparse rows, which are not made dense."""

    kernel: DotProductKernel

    @functools.cached_property
    def rows(self) -> csr_array:
        scale = np.broadcast_to(self.kernel.scale(), (self.X.shape[1],))
        return csr_array(csr_array(self.X).astype(np.float64).multiply(scale[None, :]))

    @functools.cached_property
    def squares(self) -> Doubles:
        return np.asarray(self.rows.power(2).sum(axis=1), dtype=np.float64)

    @functools.cached_property
    def diagonal(self) -> Doubles:
        return self.kernel.diagonal(np.sqrt(self.squares))

    def block(self, rows: slice | Integers, columns: Integers) -> Doubles:
        products = (self.rows[rows] @ self.rows[columns].T).toarray()
        return self.kernel.from_products(products, self.squares[rows], self.squares[columns])


def _evaluator(kernel: Kernel, landmarks: Floats, dtype: Any) -> Callable[[Floats], Floats]:
    """Return the function from rows to kernel values at landmarks; the Gaussian is one product.

    Its exponent, x.y - |x|^2 / 2 - |y|^2 / 2 for scaled x and y, is the product of
    [x, -|x|^2 / 2, 1] and [y, 1, -|y|^2 / 2].
    """
    if not isinstance(kernel, Gaussian):
        return lambda rows: kernel(rows, landmarks).astype(dtype, copy=False)
    scale, dim = kernel.scale(), landmarks.shape[1]
    center = np.mean(landmarks * scale, axis=0, dtype=np.float64)

    def extended(points: Floats, half: int, one: int) -> Doubles:
        values = np.empty((len(points), dim + 2))
        x = np.multiply(points, scale, out=values[:, :dim])
        x -= center
        values[:, half], values[:, one] = -0.5 * np.einsum("ij,ij->i", x, x), 1.0
        return values

    weights = extended(landmarks, dim + 1, dim).T

    def evaluate(rows: Floats) -> Floats:
        exponents = extended(rows, dim, dim + 1) @ weights
        values: Floats = np.minimum(exponents, 0.0, out=exponents).astype(dtype, copy=False)
        return np.exp(values, out=values)

    return evaluate


def _evaluator_and_root(
    kernel: Kernel, landmarks: Floats, eigenvalues: Doubles, root: Doubles, dtype: Any
) -> tuple[Callable[[Floats], Floats], Floats]:
    """Return the function from rows to values at landmarks, and the root that multiplies them."""
    count = _count(eigenvalues, dtype)
    leading = root[:, :count].astype(dtype, copy=count < root.shape[1])
    return _evaluator(kernel, landmarks, dtype), leading


def _tiles(X: Rows, width: int) -> Iterator[slice]:
    """Yield slices of all rows, for temporaries of this width."""
    return tiles(X.shape[0], 8 * (width + X.shape[1]))


def _count(values: Doubles, dtype: Any) -> int:
    """Count the eigenvalues, largest first, that are not rounding errors."""
    least = _NO_EIGENVALUE * float(np.finfo(dtype).eps) * values[:1].max(initial=0.0)
    return int(np.count_nonzero(values > least))


def _checked(landmarks: Any, kernel: Kernel, X: Rows) -> tuple[Any, Integers | None]:
    """Return checked landmarks: points, or numbers of rows of a precomputed kernel."""
    if isinstance(kernel, Precomputed):
        rows = np.asarray(landmarks)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.size == 0:
            raise ValueError(
                f"landmarks has shape {rows.shape} and dtype {rows.dtype}; with "
                "kernel='precomputed' pass numbers of rows, a list of integers"
            )
        if rows.min() < 0 or rows.max() >= X.shape[0]:
            raise ValueError(
                f"landmarks are {rows.min()} to {rows.max()}, but X has "
                f"{counted(X.shape[0], 'row')}, numbered 0 to {X.shape[0] - 1}"
            )
        return rows.astype(np.intp), rows.astype(np.intp)
    points = check_array(
        landmarks, dtype=[np.float64, np.float32], input_name="landmarks", copy=True
    )
    if points.shape[1] != X.shape[1]:
        raise ValueError(
            f"landmarks have {counted(points.shape[1], 'column')}, but X has {X.shape[1]}; "
            "pass points of the space that X is in"
        )
    if kernel.unit_sphere:
        check_unit(points)
    return points, None


# ---- which rows are landmarks


def leverage_sample(
    kernel: Kernel, X: Rows, count: int, rng: np.random.Generator
) -> tuple[Integers, Doubles]:
    """Choose `count` rows, or all if there are no more, by their ridge leverage.

    With each comes one over the probability that it is chosen, given the others: a weighted sum
    over these rows is an unbiased estimate of the sum over all rows. By Musco and Musco, Recursive
    Sampling for the Nystrom Method, 2017, Algorithm 3, and Cohen and Kaplan, Summarizing Data using
    Bottom-k Sketches, 2007.

    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.features.nystrom import leverage_sample
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 3))
    >>> rows, weights = leverage_sample(Gaussian(0.5), X, 100, rng)
    >>> len(set(rows)), bool(abs(weights.sum() - 1000) < 300)
    (100, True)
    """
    gram = _Gram(kernel, X)
    if isinstance(kernel, DotProductKernel) and not isinstance(X, np.ndarray):
        gram = _SparseGram(kernel, X)
    if count >= gram.size:
        return np.arange(gram.size), np.ones(gram.size)
    if not gram.diagonal.any():  # the kernel is 0 for all rows
        return np.arange(count), np.full(count, gram.size / count)
    rows, probabilities = _by_leverage(gram, count, rng, accelerated=False)
    return rows, 1 / probabilities


def pivots(kernel: Kernel, X: Rows, count: int, rng: np.random.Generator) -> Integers:
    """Choose `count` rows, or all if there are no more, by randomly pivoted Cholesky."""
    return _choose("rpcholesky", _Gram(kernel, X), count, rng)


def rank_for(width: int) -> int:
    """Return the number of eigenvalues that features of this width resolve, F / (4 log F)."""
    return math.ceil(width / (4 * max(math.log(width), 1.0)))


def ridge_for(values: Doubles, rank: int) -> float:
    """Return the sum of all but the `rank` largest eigenvalues, over the rank; never 0."""
    tail = float(values[: max(len(values) - rank, 0)].sum() / rank)
    return max(tail, 1e-9 * float(values.sum()), 1e-300)


def _choose(rule: str, gram: _Gram, count: int, rng: np.random.Generator) -> Integers:
    """Choose `count` rows by a rule; all of them if there are no more."""
    if rule not in RULES:
        raise ValueError(
            f"landmarks={rule!r} is unknown; use one of {RULES}, or an array of points"
        )
    if count >= gram.size:
        return np.arange(gram.size)
    if rule == "uniform":
        return rng.choice(gram.size, count, replace=False)
    gram.check_diagonal()
    if rule == "kmeans++":
        return _far_apart(gram, count, rng)
    try:
        if rule == "rpcholesky":
            with limit_blas(1):  # its threads wait for each other: twice the processor time
                return _pivoted(gram, count, rng)
        return _by_leverage(gram, count, rng, rule == "accelerated-rls")[0]
    except LinAlgError as error:
        raise ValueError(
            f"landmarks={rule!r} needs a positive definite kernel, and {gram.kernel!r} is not "
            f"positive definite on X ({error}); use landmarks='uniform', or another kernel"
        ) from error


def _solve_lower(factor: Doubles, right: Doubles, trans: str = "N") -> Doubles:
    """Solve with a lower triangular matrix, which may be empty; SciPy up to 1.13 cannot."""
    if not factor.size:
        return right
    solution: Doubles = solve_triangular(factor, right, lower=True, trans=trans)
    return solution


def _pivoted(gram: _Gram, count: int, rng: np.random.Generator) -> Integers:
    """Choose rows by randomly pivoted Cholesky: in proportion to the remainder of k(x, x).

    Many rows are proposed at a time, by their remainders at the beginning of a round. Each is
    accepted with the share of it that remains after those before: the law is the same as for one
    row at a time.
    """
    left = gram.diagonal.copy()
    nothing = _NO_REMAINDER * float(np.finfo(np.float64).eps) * left.max()
    if gram.size <= 2 * count and gram.size**2 * left.itemsize <= _STORED_BYTES:
        # The whole matrix has no more values than the columns of the landmarks and proposals.
        gram = _Gram(Precomputed(), gram.kernel(dense(gram.X)))
    keep = gram.size * count * left.itemsize <= _STORED_BYTES
    columns = np.empty((gram.size, count if keep else 0))
    chosen, factor = np.empty(0, dtype=np.intp), np.empty((0, 0))
    while chosen.size < count and left.max() > nothing:
        proposed, levels = _propose(left, count, rng)
        cross = _solve_lower(factor, gram.block(chosen, proposed))
        rest = gram.block(proposed, proposed) - cross.T @ cross
        accepted = np.empty(proposed.size, dtype=np.intp)
        n_accepted = _nystrom.accept_pivots(np.array(rest, order="C"), levels, nothing, accepted)
        accepted = accepted[: min(n_accepted, count - chosen.size)]
        left[proposed] = np.clip(rest.diagonal(), 0.0, left[proposed])
        if not accepted.size:
            continue
        new, root = proposed[accepted], cholesky(rest[np.ix_(accepted, accepted)], lower=True)
        weights = _solve_lower(factor, cross[:, accepted], trans="T")
        done, now = chosen.size, chosen.size + new.size
        for rows in _tiles(gram.X, new.size if keep else now):
            fresh = gram.block(rows, new)
            before = columns[rows, :done] if keep or not done else gram.block(rows, chosen)
            if keep:
                columns[rows, done:now] = fresh
            explained = solve_triangular(root, (fresh - before @ weights).T, lower=True)
            left[rows] = np.maximum(left[rows] - np.square(explained).sum(axis=0), 0.0)
        left[new] = 0.0
        grown = np.zeros((now, now))
        grown[:done, :done], grown[done:, :done] = factor, cross[:, accepted].T
        grown[done:, done:] = root
        chosen, factor = np.append(chosen, new), grown
    return chosen


def _far_apart(gram: _Gram, count: int, rng: np.random.Generator) -> Integers:
    """Choose rows by k-means++: in proportion to the squared distance to the nearest landmark.

    Distances are the kernel's. Rows are proposed and accepted as in `_pivoted`.
    """
    diagonal = gram.diagonal
    nothing = _NO_REMAINDER * float(np.finfo(np.float64).eps) * diagonal.max()
    left, new = np.full(gram.size, np.inf), rng.integers(0, gram.size, 1)
    chosen = new
    while True:
        for rows in _tiles(gram.X, new.size):
            apart = diagonal[rows, None] + diagonal[new] - 2 * gram.block(rows, new)
            left[rows] = np.minimum(left[rows], np.maximum(apart.min(axis=1), 0.0))
        left[new] = 0.0
        if chosen.size == count or left.max() <= nothing:
            return chosen
        proposed, levels = _propose(left, count, rng)
        apart = diagonal[proposed, None] + diagonal[proposed]
        apart -= 2 * gram.block(proposed, proposed)
        accepted = np.empty(proposed.size, dtype=np.intp)
        n_accepted = _nystrom.accept_distances(
            np.ascontiguousarray(apart), left[proposed], levels, nothing, accepted
        )
        new = proposed[accepted[: min(n_accepted, count - chosen.size)]]
        chosen = np.append(chosen, new)


def _propose(left: Doubles, count: int, rng: np.random.Generator) -> tuple[Integers, Doubles]:
    """Draw rows in proportion to their remainders, and the remainders that accept them."""
    size = max(_PROPOSALS, count // 8)
    proposed = rng.choice(left.size, size, p=left / left.sum())
    return proposed, rng.random(size) * left[proposed]


def _by_leverage(
    gram: _Gram, count: int, rng: np.random.Generator, accelerated: bool
) -> tuple[Integers, Doubles]:
    """Choose rows by recursive ridge leverage, see `reference.nystrom.recursive_leverage`.

    With each row comes the probability that it is chosen, given the others.
    """
    n = gram.size
    inner = math.ceil(math.sqrt((n * count + count**3) / (4 * n))) if accelerated else count
    oversampling = max(math.log(inner), 1.0)
    rank = math.ceil(inner / (4 * oversampling))
    order = np.argsort(rng.random(n))
    sizes = [n]
    for _ in range(math.ceil(math.log2(n / inner))):
        sizes.append(-(-sizes[-1] // 2))
    sample, weights = order[: sizes[-1]], np.ones(sizes[-1])
    for size in sizes[-2:0:-1]:
        leverage = np.minimum(
            oversampling * _leverage(gram, order[:size], sample, weights, rank), 1.0
        )
        drawn = rng.random(size) < leverage
        if drawn.any():
            sample, weights = order[:size][drawn], leverage[drawn] ** -0.5
        else:
            sample = order[np.argsort(rng.random(size))[:inner]]
            weights = np.full(inner, math.sqrt(size / inner))
    leverage = np.minimum(_leverage(gram, order, sample, weights, rank), 1.0)
    keys = np.log(rng.random(n)) / leverage  # without replacement, by Efraimidis and Spirakis
    ranks = np.argsort(keys)
    last = ranks[-count:]
    return order[last], -np.expm1(leverage[last] * keys[ranks[-count - 1]])


def _leverage(
    gram: _Gram, rows: Integers, sample: Integers, weights: Doubles, rank: int
) -> Doubles:
    """Return the ridge leverage of rows, estimated by a weighted sample; always > 0."""
    square = gram.block(sample, sample)
    weighted = weights[:, None] * square * weights
    tail = eigh(weighted, eigvals_only=True)[: max(len(sample) - rank, 0)]
    lam = max(tail.sum() / rank, 1e-12 * np.trace(weighted)) if len(tail) else 1e-5
    with limit_blas(1):
        root = cholesky(square + np.diag(lam / weights**2), lower=True)
    leverage = np.empty(len(rows))
    for part in tiles(len(rows), 8 * (len(sample) + gram.X.shape[1])):
        explained = solve_triangular(root, gram.block(rows[part], sample).T, lower=True)
        leverage[part] = gram.diagonal[rows[part]] - np.square(explained).sum(axis=0)
    return np.maximum(leverage / lam, 1e-300)
