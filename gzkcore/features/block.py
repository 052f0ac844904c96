"""Block projections and block Fourier features: one random number for each coordinate.

Each of the D coordinates is assigned to one of k blocks, and each block is summed with random
weights: v = S x, where column j of the k x D matrix S has one number, weights[j], in row
buckets[j]. That costs O(D) a row for any k, at the speed of memory, and O(nnz) for sparse rows.

`BlockProjection` keeps distances without bias. The bias of `BlockFourierFeatures`, which takes
cosines and sines of v, depends on the size of the blocks and on how unequal they are, not on how
many there are; `block_report` estimates it.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from gzkcore._compiled import block as _block
from gzkcore._util.new_arrays import empty_aligned
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, holds, ints, nothing, number, pairs, stored, whole
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Rows, Seed
from gzkcore._util.validation import (
    as_floats,
    check_choice,
    check_integer,
    dense,
)
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import ShiftInvariantKernel

from .base import KernelMap, Projection, SumMap, cast_once, contiguous, random_pairs, tiles
from .fit_rows import FitRows
from .hadamard import hadamard_transform

__all__ = [
    "BlockFourierFeatures",
    "BlockProjection",
    "block_fourier_features",
    "block_projection",
]


def as_additive(kernel: Kernel) -> ShiftInvariantKernel:
    """Return a kernel that a block of coordinates can estimate, or raise."""
    if isinstance(kernel, ShiftInvariantKernel) and kernel.distance_power:
        return kernel
    raise ValueError(
        f"{kernel!r} is not a function of sum_j |x_j - y_j|^p, so that a block of coordinates "
        "cannot stand for the whole row; use Gaussian, Exponential, Matern, RationalQuadratic or "
        "Laplacian here, or GegenbauerFeatures or ProductFeatures for this kernel"
    )


def draw_frequencies(
    kernel: Kernel, buckets: NDArray[np.intp], sizes: NDArray[np.intp], rng: np.random.Generator
) -> Doubles:
    """Draw a frequency for each scaled coordinate, with the scale of its block, (D / b)^(1 / p)."""
    dim, n_blocks = buckets.size, sizes.size
    if not kernel.rotation_invariant:
        return rng.standard_cauchy(dim) * (dim / sizes)[buckets]
    if kernel.max_dim is not None:
        chosen = spherical_frequencies(n_blocks, rng)
        order = np.argsort(buckets, kind="stable")
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        place = np.empty(dim, dtype=np.intp)
        place[order] = np.arange(dim) - np.repeat(first, sizes)  # index within its block
        normal: Doubles = chosen[buckets, place]
    else:
        spread = kernel.frequencies(np.ones((n_blocks, 1)), rng.random(n_blocks))[:, 0]
        normal = rng.standard_normal(dim) * spread[buckets]
    return normal * np.sqrt(dim / sizes)[buckets]


def spherical_frequencies(count: int, rng: np.random.Generator) -> Doubles:
    """Draw frequencies in R^3 of the spherical kernel with theta = 1.

    The kernel is the overlap of two balls of radius 1/2, so that r = 2 t has a density proportional
    to (sin t / t - cos t)^2 / t^2. By rejection from min(1, 1 / t^2) / 2.
    """
    radii = np.empty(0)
    while radii.size < count:
        uniform, side, accept = rng.random((3, 6 * count + 64))
        t = np.where(side < 0.5, uniform, 1 / np.maximum(uniform, 1e-300))
        wave = np.square(np.sin(t) / t - np.cos(t)) / np.minimum(t * t, 1.0)
        radii = np.concatenate([radii, 2 * t[accept * 1.2 < wave]])
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    scaled: Doubles = radii[:count, None] * direction
    return scaled


def cosine_moments(kernel: ShiftInvariantKernel, sums: Any) -> tuple[Doubles, Doubles]:
    """Return mean and variance of cos(w.delta), given the sums of powers of delta."""
    once, twice = (
        kernel.profile_of_sums(np.multiply(c**kernel.distance_power, sums)) for c in (1.0, 2.0)
    )
    return once, 0.5 + twice / 2 - once**2


def shares(total: int, passes: int) -> list[int]:
    """Split `total` blocks into passes, evenly."""
    return [total // passes + (q < total % passes) for q in range(passes)]


def coordinates(of: Any) -> int:
    """Count the coordinates of the blocks: with a mix, the next power of two."""
    dim = int(of.n_features_in_)
    return dim if of._signs is None else 1 << (dim - 1).bit_length()


def check_passes(buckets: NDArray[np.int32], n_blocks: int) -> None:
    """Raise ValueError unless each pass has its own blocks, as `shares` divides them."""
    passes = len(buckets)
    if not 1 <= passes <= n_blocks:
        raise ValueError(f"has {passes} passes for {n_blocks} blocks")
    last = np.cumsum(shares(n_blocks, passes)) - 1
    first = np.append(0, last[:-1] + 1)
    if (buckets.min(axis=1) < first).any() or (buckets.max(axis=1) > last).any():
        raise ValueError(
            f"has buckets_ in which a pass has blocks of another pass; they have those from "
            f"{first.tolist()} to {last.tolist()}"
        )


Values: TypeAlias = Literal["rademacher", "gaussian"]
Arrangement: TypeAlias = Literal["stratified", "permutation"]
Mix: TypeAlias = Literal["hadamard"] | None
Buckets: TypeAlias = NDArray[np.int32]

# The smallest number of coordinates in a block of block_size="auto".
ENOUGH = 32
# fit warns of blocks with fewer coordinates.
FEW = 16
# fit warns of a larger bias, root mean square over pairs.
LARGE_BIAS = 0.05
# The largest number of blocks, which are numbered in 32 bits.
MOST = 2**31 - 1
# Pairs of training rows on which fit measures errors.
_PAIRS = 32


# ---- the arrangements


def assign_blocks(
    dim: int, n_blocks: int, arrangement: Arrangement, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the block of each coordinate, each with probability 1 / n_blocks."""
    if arrangement == "permutation":
        shifted = rng.permutation(dim) + rng.integers(n_blocks)
        return (shifted % n_blocks).astype(np.intp)
    segments = -(-dim // n_blocks)
    order = np.broadcast_to(np.arange(n_blocks), (segments, n_blocks))
    return rng.permuted(order, axis=1).reshape(-1)[:dim].astype(np.intp)


def _prepare(X: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield (rows, X[rows]) with contiguous rows: all of X, or else copies of tiles."""
    if X.flags.aligned and X.strides[1] == X.itemsize and X.strides[0] >= 0:
        yield slice(0, X.shape[0]), X
    else:
        for rows in tiles(X.shape[0], X.shape[1] * X.itemsize):
            yield rows, np.require(X[rows], requirements=("C", "A"))


def project(
    X: Rows, buckets: Buckets, weights: Floats, out: Floats, *waves: Any, apart: bool = True,
    stream: bool = False,
) -> bool:  # fmt: skip
    """Write the sums of rows to out, or with `waves` (scale, phase, stream) cosines and sines.

    `apart`: each pass has its own blocks, as `shares` divides them. `stream`: sums of dense rows
    are stored past the cache. Return whether all sums are finite.
    """
    by = contiguous(weights, out.dtype)
    kernel: Any
    if not isinstance(X, np.ndarray):
        indptr = np.asarray(X.indptr).astype(X.indices.dtype, copy=False)
        threads = n_threads(buckets.shape[0] * X.nnz + out.size)
        kernel = _block.block_fourier_features_csr if waves else _block.block_projection_csr
        return bool(kernel(X.data, X.indices, indptr, buckets, by, out, *waves, threads))
    kernel = _block.block_fourier_features if waves else _block.block_projection
    finite = True
    for rows, tile in _prepare(X):
        threads = n_threads(2 * buckets.shape[0] * tile.size)
        finite &= kernel(tile, buckets, by, out[rows], apart, *(waves or (stream,)), threads)
    return finite


def _as_rows(
    X: ArrayLike, buckets: ArrayLike, weights: ArrayLike, n_blocks: int
) -> tuple[Floats, Buckets, Doubles]:
    """Check the arguments of the functions below."""
    rows = np.ascontiguousarray(as_floats("X", X))
    to, by = np.asarray(buckets), np.asarray(weights, dtype=np.float64)
    if to.dtype.kind not in "iu":
        raise TypeError(f"buckets are {to.dtype} numbers; pass integers, the block of each column")
    if rows.ndim != 2 or rows.shape[1] < 1 or to.ndim != 2 or to.shape != by.shape:
        raise ValueError(
            f"X has shape {rows.shape}, buckets {to.shape} and weights {by.shape}; pass (n, D), "
            "and (passes, D) twice"
        )
    if to.shape[1] != rows.shape[1] or not (to.size and to.min() >= 0 and to.max() < n_blocks):
        raise ValueError(
            f"buckets of shape {to.shape} must have, for each of the {rows.shape[1]} columns of X, "
            f"a block from 0 to {n_blocks - 1}"
        )
    return rows, np.ascontiguousarray(to, dtype=np.int32), by


def block_projection(X: ArrayLike, buckets: ArrayLike, weights: ArrayLike, n_blocks: int) -> Floats:
    """Project rows: v_i = the sum of weights[r, j] x_j over all r and j with buckets[r, j] = i.

    Parameters
    ----------
    X : array-like of shape (n, D)
        float32 stays float32, everything else becomes float64.
    buckets : array-like of int of shape (passes, D)
        From 0 to n_blocks - 1.
    weights : array-like of shape (passes, D)
    n_blocks : int

    Returns
    -------
    ndarray of shape (n, n_blocks)

    Notes
    -----
    passes D multiply-adds a row, in the row's order.

    Examples
    --------
    >>> from gzkcore.features.block import block_projection
    >>> block_projection([[1.0, 2.0, 3.0, 4.0]], [[0, 1, 0, 1]], [[1, 1, -1, -1]], 2)
    array([[-2., -2.]])
    """
    n_blocks = check_integer("n_blocks", n_blocks, 1)
    rows, to, by = _as_rows(X, buckets, weights, n_blocks)
    out = empty_aligned((rows.shape[0], n_blocks), rows.dtype)
    project(rows, to, by, out, apart=False)
    return out


def block_fourier_features(
    X: ArrayLike,
    buckets: ArrayLike,
    weights: ArrayLike,
    n_components: int,
    phase: float = 0.0,
) -> Floats:
    """Map rows to sqrt(2/F) (cos v_1, ..., cos v_m, sin v_1, ..., sin v_m), F = 2m columns.

    Parameters
    ----------
    X : array-like of shape (n, D)
        float32 stays float32, everything else becomes float64.
    buckets : array-like of int of shape (passes, D)
        From 0 to ceil(F / 2) - 1.
    weights : array-like of shape (passes, D)
        Frequencies, with the scale of each block.
    n_components : int
        F. An odd F = 2m + 1 ends with sqrt(2/F) cos(v_(m+1) + phase).
    phase : float, default=0.0

    Returns
    -------
    ndarray of shape (n, n_components)

    Examples
    --------
    >>> from gzkcore.features.block import block_fourier_features
    >>> block_fourier_features([[0.0, 0.0]], [[0, 1]], [[1.0, 1.0]], 4).round(6)
    array([[0.707107, 0.707107, 0.      , 0.      ]])
    """
    width = check_integer("n_components", n_components, 1)
    rows, to, by = _as_rows(X, buckets, weights, -(-width // 2))
    out = empty_aligned((rows.shape[0], width), rows.dtype)
    waves = math.sqrt(2 / width), phase / math.pi, False
    project(rows, to, by / math.pi, out, *waves, apart=False)
    return out


# ---- what both maps share


class _BlockMap(SumMap):
    """Base of both maps: blocks, and the Hadamard mix before them."""

    _state = stored(
        _signs=doubles("n_features_in_") | nothing(),
        buckets_=ints("p", coordinates, below="_n_features_out", dtype=np.int32),
        weights_=doubles("p", coordinates),
    )

    arrangement: Arrangement
    mix: Mix
    buckets_: Buckets
    weights_: Doubles
    _signs: Any  # signs of the mix over the root of its size; None: no mix
    _scale: float | Doubles = 1.0  # scales of the columns, for the mix

    def _check_state(self) -> None:
        check_passes(self.buckets_, self._n_features_out)

    def _start(self, X: Rows) -> tuple[int, np.random.Generator]:
        """Check parameters and draw the mix; return the coordinates of the blocks, and draws."""
        if self._n_features_out > MOST:
            raise ValueError(f"n_components={self.n_components} is too large; use at most {MOST}")
        check_choice("arrangement", self.arrangement, get_args(Arrangement))
        check_choice("mix", self.mix, (None, "hadamard"))
        rng = generator(self.random_state)
        self._signs = None
        if self.mix is None:
            return X.shape[1], rng
        padded = 1 << (X.shape[1] - 1).bit_length()
        self._signs = (2.0 * rng.integers(0, 2, X.shape[1]) - 1) / math.sqrt(padded)
        return padded, rng

    def _cast(self, dtype: DTypeLike) -> Any:
        """Return the weights, and the factors of rows before the transform, in a dtype."""
        return cast_once(self, dtype, _weights_and_signs, self.weights_, self._signs, self._scale)

    def _mixed(self, tile: Rows) -> Floats:
        """Rotate rows: scale and random signs, zeros up to a power of two, Hadamard."""
        padded = np.zeros((tile.shape[0], 1 << (tile.shape[1] - 1).bit_length()), tile.dtype)
        padded[:, : tile.shape[1]] = dense(tile) * self._cast(tile.dtype)[1]
        return hadamard_transform(padded)

    def _sum(self, X: Rows, out: Floats, *waves: Any, stream: bool = False) -> bool:
        """Write the sums of blocks, or cosines and sines; return whether all are finite."""
        weights = self._cast(X.dtype)[0]
        if self._signs is None:
            finite = project(X, self.buckets_, weights, out, *waves, stream=stream)
        else:
            finite = True
            for rows in tiles(X.shape[0], self.buckets_.shape[1] * X.dtype.itemsize):
                finite &= project(self._mixed(X[rows]), self.buckets_, weights, out[rows], *waves)
        if not finite:
            self._check_finite(X)
        return finite


def _weights_and_signs(
    weights: Doubles, signs: Doubles | None, scale: float | Doubles, dtype: DTypeLike
) -> tuple[Floats, Floats | None]:
    flips = None if signs is None else contiguous(np.multiply(signs, scale), dtype)
    return contiguous(weights, dtype), flips


class BlockProjection(_BlockMap, Projection):
    """Random projection with one random number for each coordinate, in O(D) a row.

    v = S x with E |v|^2 = |x|^2 and E <v, v'> = <x, x'>: Algorithm 1 of [1]_, for any number of
    components.

    Parameters
    ----------
    n_components : int
        k, the width of the output, exactly. With more than D, several projections stand side by
        side, divided by the root of their number.
    values : {"rademacher", "gaussian"}, default="rademacher"
        Signs +-1, or standard normal numbers. Signs never have the larger variance.
    arrangement : {"stratified", "permutation"}, default="stratified"
        How coordinates are assigned to the k blocks, to each with probability 1/k. "stratified": of
        each k neighbouring coordinates, one goes to each block, in random order. "permutation": by
        one random permutation, as in the paper.
    mix : {None, "hadamard"}, default=None
        "hadamard": first rotate by random signs and the Hadamard transform, in O(D log D). Use it
        if most rows differ in few coordinates. It makes sparse rows dense.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    buckets_ : ndarray of int32 of shape (passes, D)
        The block of each coordinate (with mix, of each of the next power of two).
    weights_ : ndarray of shape (passes, D)
        The number it is multiplied by.
    components_ : sparse array of shape (n_components, D)
        S; its transpose is the adjoint. With mix a dense array, computed at each access.

    See Also
    --------
    projection_variance : How far |v|^2 is off for given data.

    Notes
    -----
    Cost: D multiply-adds a row, nnz for sparse rows, at 82 % or more of the memory bandwidth where
    D is 17 n_components or more.
    Memory beyond input and output: O(D) and 16 n_components numbers for each thread. CSR with
    sorted columns gives the results of dense rows, to the last bit.

    Variance of |v|^2, with x_j the squared coordinates and b = D/k: for signs and a permutation 2
    (b-1)/(D-1) ((sum x)^2 - sum x^2). A dense normal matrix has 2 (sum x)^2 / k.

    References
    ----------
    .. [1] A Simple and Efficient Method for Random Fourier Features, Algorithm 1, Lemma 4.5 and
       Theorem 4.7 (B10 in the errata).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import BlockProjection
    >>> X = np.random.default_rng(0).standard_normal((50, 10_000))
    >>> projection = BlockProjection(1000, random_state=0).fit(X)
    >>> V = projection.transform(X)
    >>> V.shape, bool(abs(np.sum(V**2) / np.sum(X**2) - 1) < 0.02)
    ((50, 1000), True)
    """

    def __init__(
        self,
        n_components: int,
        *,
        values: Values = "rademacher",
        arrangement: Arrangement = "stratified",
        mix: Mix = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.values = values
        self.arrangement = arrangement
        self.mix = mix
        self.random_state = random_state

    def _fit(self, rows: FitRows) -> None:
        """Draw the blocks and their values; only the number of columns of X matters."""
        check_choice("values", self.values, get_args(Values))
        dim, rng = self._start(rows.X)
        parts = shares(self._n_features_out, -(-self._n_features_out // dim))
        buckets, first = [], 0
        for n_blocks in parts:
            buckets.append(first + assign_blocks(dim, n_blocks, self.arrangement, rng))
            first += n_blocks
        self.buckets_ = np.array(buckets, dtype=np.int32)
        if self.values == "gaussian":
            self.weights_ = rng.standard_normal(self.buckets_.shape)
        else:
            self.weights_ = 2.0 * rng.integers(0, 2, self.buckets_.shape).astype(np.float64) - 1
        self.weights_ /= math.sqrt(len(parts))

    def _matrix(self) -> Any:
        passes, dim = self.buckets_.shape
        columns = np.tile(np.arange(dim), passes)
        S = sparse.csr_array(
            (self.weights_.ravel(), (self.buckets_.ravel(), columns)),
            shape=(self._n_features_out, dim),
        )
        if self._signs is None:
            return S
        return hadamard_transform(S.toarray())[:, : self.n_features_in_] * self._signs

    def _write(self, X: Rows, out: Floats, stream: bool) -> bool:
        return self._sum(X, out, stream=stream)

    def _back(self, V: Floats) -> Floats:
        passes, dim = self.buckets_.shape
        if passes > 1 or (self._signs is not None and dim > self.n_features_in_):
            return super()._back(V)
        energy = np.bincount(self.buckets_[0], np.square(self.weights_[0]), self._n_features_out)
        weights = (self.weights_[0] / energy[self.buckets_[0]]).astype(V.dtype)
        rows: Floats = V[:, self.buckets_[0]] * weights
        if self._signs is not None:
            rows = hadamard_transform(rows) * self._signs.astype(V.dtype)
        return rows


class BlockFourierFeatures(_BlockMap, KernelMap):
    """Random Fourier features with one random number for each coordinate and pass, in O(D) a row.

    A block of b of the D coordinates represents the whole row, with its frequency times sqrt(D/b):
    Algorithm 2 of [1]_, for any number of components, blocks and repetitions.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Gaussian, Exponential, Matern, RationalQuadratic; Laplacian; Spherical with blocks of at
        most 3 coordinates.
    n_components : int, default=1024
        Width of the output, exactly: all cosines, then all sines. An odd width ends with a cosine
        of a random phase.
    block_size : int or "auto", default="auto"
        Least number of coordinates in a block: each pass has n_features // block_size blocks. Only
        larger blocks lower the bias. "auto": 32, or one block of all coordinates if there are fewer
        than 64; 3 for Spherical.
    arrangement : {"stratified", "permutation"}, default="stratified"
        As for `BlockProjection`; each pass draws a new one.
    mix : {None, "hadamard"}, default=None
        As for `BlockProjection`; not for Laplacian, which depends on the axes.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    buckets_ : ndarray of int32 of shape (passes, D)
        The frequency (block) of each coordinate.
    weights_ : ndarray of shape (passes, D)
        That coordinate of the frequency, scaled, in half turns.
    n_blocks_ : tuple of int
        Blocks of each pass; their sum is ceil(n_components / 2).
    block_size_ : int
        Coordinates in the smallest block.
    expected_bias_, expected_error_ : float
        Mean of E z(x).z(y) - k(x, y) over pairs of training rows, given the blocks, and root mean
        square of z(x).z(y) - k(x, y), over the frequencies too.

    See Also
    --------
    block_report : Bias, variance and advice for given data.

    Notes
    -----
    Cost: D multiply-adds for each row and pass (sparse: nnz), and one cosine and sine for two
    columns. Memory beyond input and output: O(D passes), and for each thread 16 numbers for every
    block of a pass, at least a megabyte. CSR with sorted columns gives the results of dense rows,
    to the last bit.

    Given the blocks, the mean of the estimate is 1/N sum_i K(sqrt(D/b_i) Delta_i) > K(Delta). For
    the Gaussian the bias is about K tau^2 cv2 / (2b), where tau = gamma |Delta|^2 and cv2 is the
    squared coefficient of variation of the squared coordinates of Delta (2 if these are normal).
    More passes do not reduce the bias.

    References
    ----------
    .. [1] A Simple and Efficient Method for Random Fourier Features, Algorithm 2 and Theorem 4.1
       (B1 to B4, B20 and B21 in the errata).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import BlockFourierFeatures, Gaussian
    >>> X = np.random.default_rng(0).standard_normal((100, 5000))
    >>> features = BlockFourierFeatures(Gaussian(1e-4), 2048, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> features.block_size_, features.n_blocks_
    (34, (147, 147, 146, 146, 146, 146, 146))
    >>> bool(np.abs(Z @ Z.T - features.kernel_(X)).mean() < 0.03)
    True
    """

    _state = stored(
        kernel_=holds(Kernel),
        block_size_=whole(1),
        n_blocks_=pairs(whole(1), None),
        expected_bias_=number(finite=False),
        expected_error_=number(finite=False),
        _phase=number(),
        _scale=doubles("n_features_in_"),
    )

    kernel_: ShiftInvariantKernel

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        block_size: int | Literal["auto"] = "auto",
        arrangement: Arrangement = "stratified",
        mix: Mix = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.block_size = block_size
        self.arrangement = arrangement
        self.mix = mix

    def _fit(self, rows: FitRows) -> None:
        X, kernel = rows.X, as_additive(as_kernel(self.kernel))
        dim, rng = self._start(X)
        if self.mix is not None and not kernel.rotation_invariant:
            raise ValueError(
                f"mix={self.mix!r} rotates the rows, but {kernel!r} depends on the axes; use "
                "mix=None, or the kernel Exponential"
            )
        # The spherical kernel is defined in at most three dimensions, and so for blocks of three.
        if kernel.max_dim is None:
            kernel = rows.resolve(kernel)
        else:
            kernel = kernel.resolve(X[:, : kernel.max_dim])
        width = self._n_features_out
        most = most_blocks(kernel, dim, self.block_size)
        self.n_blocks_ = tuple(shares(-(-width // 2), -(-width // (2 * most))))
        scale = np.broadcast_to(kernel.scale(), X.shape[1])
        buckets, weights, factors = [], [], []
        self.block_size_, first = dim, 0
        for n_used in self.n_blocks_:
            n_blocks = n_used if kernel.max_dim is None else most
            bucket = assign_blocks(dim, n_blocks, self.arrangement, rng)
            sizes = np.bincount(bucket, minlength=n_blocks)
            weight = draw_frequencies(kernel, bucket, sizes, rng) / math.pi
            used = bucket < n_used  # blocks of the spherical kernel can't be made larger
            buckets.append(np.where(used, first + bucket, first))
            weights.append(np.where(used, weight, 0.0))
            factors.append(np.where(used, dim / sizes[bucket], 0.0))
            self.block_size_ = min(self.block_size_, int(sizes[:n_used].min()))
            first += n_used
        self.buckets_ = np.array(buckets, dtype=np.int32)
        self.weights_ = np.array(weights)
        self._scale = scale.astype(np.float64)
        if self._signs is None:
            self.weights_ *= self._scale
        self._phase = float(rng.uniform(0.0, 2.0))
        self.kernel_ = kernel
        self._measure(X, np.array(factors), min(most, first))

    def _measure(self, X: Rows, factors: Doubles, n_blocks: int) -> None:
        """Set the expected errors, from pairs of training rows, and warn of large ones."""
        exact, bias, variance = [], [], []
        for delta in differences(X, _PAIRS):
            powers = np.abs(self._scaled(delta)) ** self.kernel_.distance_power
            sums = empty_aligned((len(powers), sum(self.n_blocks_)), np.float64)
            project(powers, self.buckets_, factors, sums)
            once, scatter = cosine_moments(self.kernel_, sums)
            exact.append(self.kernel_.profile_of_sums(powers.sum(axis=1)))
            bias.append(once.mean(axis=1) - exact[-1])
            variance.append(scatter.mean(axis=1) / sums.shape[1])
        self.expected_bias_ = self.expected_error_ = 0.0
        if not exact:
            return
        biases = np.concatenate(bias)
        self.expected_bias_ = float(biases.mean())
        self.expected_error_ = float(np.sqrt(np.mean(biases**2 + np.concatenate(variance))))
        rms = float(np.sqrt(np.mean(biases**2)))
        if problem := self._problem(np.concatenate(exact), rms, n_blocks):
            warn(problem, UserWarning)

    def _problem(self, values: Doubles, rms: float, n_blocks: int) -> str:
        """Describe a problem of these blocks, given kernel values and the bias, or return ''."""
        off = f"on these data the kernel is off by {rms:.2g} however many features there are"
        size, turns = self.block_size_, self.mix is None and self.kernel_.rotation_invariant
        if n_blocks > 1 and size < FEW and self.kernel_.max_dim is None:
            wrong = " (with one coordinate a block the method is wrong)" if size == 1 else ""
            return (
                f"blocks of {size} coordinates are too small to stand for "
                f"{self.buckets_.shape[1]}: {off}; use block_size={ENOUGH} or more{wrong}"
            )
        if rms > LARGE_BIAS:
            remedy = "mix='hadamard' or a larger block_size" if turns else "a larger block_size"
            return (
                f"{off}, because blocks of {size} coordinates differ; use {remedy} "
                "(gzkcore.block_report says more)"
            )
        if values.max() < 1e-6:
            what, remedy = "the identity", "larger"
        elif values.min() > 1 - 1e-6:
            what, remedy = "constant", "smaller"
        else:
            return ""
        return (
            f"on these data {self.kernel_!r} is numerically {what}; scale the columns or use a "
            f"{remedy} lengthscale"
        )

    def _check_state(self) -> None:
        check_passes(self.buckets_, -(-self._n_features_out // 2))

    def _scaled(self, delta: Doubles) -> Floats:
        """Return scaled differences of rows, mixed if rows are."""
        return delta * self._scale if self._signs is None else self._mixed(delta)

    def _write(self, X: Rows, out: Floats, stream: bool) -> bool:
        return self._sum(X, out, math.sqrt(2 / out.shape[1]), self._phase, stream)

    def _flops(self, density: float) -> float:
        dim, passes = float(self.n_features_in_), len(self.n_blocks_)
        mixing = 0.0 if self.mix is None else 2 * dim * math.log2(max(dim, 2))
        summing = 2 * passes * dim * (density if self.mix is None else 1.0)
        return mixing + summing + 15 * self._n_features_out

    def _about(self) -> str:
        mixed = "" if self.mix is None else ", mixed"
        blocks = counted(sum(self.n_blocks_), "block")
        return f"{blocks} of {counted(self.block_size_, 'column')}{mixed}"


def most_blocks(kernel: Kernel, dim: int, block_size: Any) -> int:
    """Return the largest number of blocks in a pass."""
    if kernel.max_dim is not None:
        auto = block_size == "auto"
        size = kernel.max_dim if auto else check_integer("block_size", block_size, 1)
        if size > kernel.max_dim:
            raise ValueError(
                f"block_size={size}, but {type(kernel).__name__} is positive definite in at most "
                f"{kernel.max_dim} dimensions; use block_size={kernel.max_dim}, or Matern or "
                "Exponential"
            )
        return -(-dim // size)
    if isinstance(block_size, str):
        if block_size != "auto":
            raise ValueError(f"block_size={block_size!r} is unknown; use 'auto' or an integer >= 1")
        return max(1, dim // ENOUGH)
    size = check_integer("block_size", block_size, 1)
    if size > dim:
        raise ValueError(f"block_size={size} is more than the {dim} coordinates; use at most {dim}")
    return dim // size


def differences(X: Rows, count: int, rng: np.random.Generator | None = None) -> Iterator[Doubles]:
    """Yield differences of `count` random pairs of rows, in double, a few at a time."""
    n = X.shape[0]
    if n < 2:
        return
    first, second = random_pairs(n, count, rng)
    step = max(1, min(count, (1 << 23) // X.shape[1]))
    for start in range(0, count, step):
        a, b = (dense(X[index[start : start + step]]) for index in (first, second))
        yield np.subtract(a, b, dtype=np.float64)
