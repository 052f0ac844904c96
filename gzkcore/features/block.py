"""Block projections and block Fourier features: one random number for each coordinate.

The D coordinates are dealt to k blocks, and each block is summed with random weights: v = S x,
where column j of the k x D matrix S has one number, weights[j], in row buckets[j]. That costs O(D)
a row whatever k is, at the speed of memory, and O(nnz) for sparse rows.

`BlockProjection` keeps distances without bias. `BlockFourierFeatures` takes cosines and sines of v
for shift-invariant kernels; its bias depends on the size of a block and on how unequal the blocks
are, never on how many there are. `block_report` says how large it is on given data.
"""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import norm, shapiro
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from gzkcore._compiled import block as _block
from gzkcore._util.model_io import save, stored
from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Rows, Seed
from gzkcore._util.validation import (
    check_choice,
    check_integer,
    check_positive,
    dense,
    empty_aligned,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
    Spherical,
)

from .base import SumMap, check_rows, tiles
from .hadamard import hadamard_transform

__all__ = [
    "BlockFourierFeatures",
    "BlockProjection",
    "BlockReport",
    "MeanNormalizer",
    "block_fourier_features",
    "block_projection",
    "block_report",
    "energy_variance",
    "kernel_moments",
    "projection_moments",
    "projection_variance",
]

Values: TypeAlias = Literal["rademacher", "gaussian"]
Arrangement: TypeAlias = Literal["stratified", "permutation"]
Mix: TypeAlias = Literal["hadamard"] | None
Buckets: TypeAlias = NDArray[np.int32]

# Kernels that blocks can stand for: functions of sum_j |x_j - y_j|^power, scale k^(1 / power).
MIXTURES = (Gaussian, Exponential, Matern, RationalQuadratic)

# Coordinates in a block: what "auto" takes at least, and below which fit warns.
ENOUGH, FEW = 32, 16
# Bias, root mean square over pairs, from which fit warns.
LARGE_BIAS = 0.05
# Bias that block_report is content with.
ACCEPTED = 0.01
# Blocks are numbered in 32 bits.
MOST = 2**31 - 1
# Pairs of training rows that a fit looks at.
_PAIRS = 32


# ---- the arrangements


def _deal(
    dim: int, n_blocks: int, arrangement: Arrangement, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the block of every coordinate; each is in each block with probability 1 / n_blocks."""
    if arrangement == "permutation":
        shifted = rng.permutation(dim) + rng.integers(n_blocks)
        return (shifted % n_blocks).astype(np.intp)
    segments = -(-dim // n_blocks)
    order = np.broadcast_to(np.arange(n_blocks), (segments, n_blocks))
    return rng.permuted(order, axis=1).reshape(-1)[:dim].astype(np.intp)


def _shares(total: int, most: int) -> list[int]:
    """Split `total` blocks into as few passes of at most `most` as there can be, evenly."""
    passes = -(-total // most)
    return [total // passes + (q < total % passes) for q in range(passes)]


def _prepare(X: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield rows as the kernels take them: all at once, or copies of tiles where they must be."""
    if X.flags.aligned and X.strides[1] == X.itemsize and X.strides[0] >= 0:
        yield slice(0, X.shape[0]), X
    else:
        for rows in tiles(X.shape[0], X.shape[1] * X.itemsize):
            yield rows, np.require(X[rows], requirements=("C", "A"))


def _project(
    X: Rows, buckets: Buckets, weights: Doubles, out: Floats, *waves: Any, apart: bool = True
) -> bool:
    """Write the sums of rows to out, or their waves, given as (scale, phase, stream).

    `apart`: each pass has blocks of its own, as many as `_shares` says. Returns whether all sums
    are finite.
    """
    by = np.ascontiguousarray(weights, dtype=out.dtype)
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
        finite &= kernel(tile, buckets, by, out[rows], apart, *waves, threads)
    return finite


def _as_rows(
    X: ArrayLike, buckets: ArrayLike, weights: ArrayLike, n_blocks: int
) -> tuple[Floats, Buckets, Doubles]:
    """Check the arguments of the functions below."""
    rows = np.asarray(X)
    rows = np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
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
            f"buckets of shape {to.shape} must name, for each of the {rows.shape[1]} columns of X, "
            f"a block from 0 to {n_blocks - 1}"
        )
    return rows, np.ascontiguousarray(to, dtype=np.int32), by


def block_projection(X: ArrayLike, buckets: ArrayLike, weights: ArrayLike, n_blocks: int) -> Floats:
    """Project rows: v_i = the sum of weights[r, j] x_j over all r and j with buckets[r, j] = i.

    Parameters
    ----------
    X : array-like of shape (n, D)
        float32 is kept, everything else becomes float64.
    buckets : array-like of int of shape (passes, D)
        From 0 to n_blocks - 1.
    weights : array-like of shape (passes, D)
    n_blocks : int

    Returns
    -------
    ndarray of shape (n, n_blocks)

    Raises
    ------
    ValueError
        If the shapes don't fit together, or a bucket isn't there.

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
    _project(rows, to, by, out, apart=False)
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
        float32 is kept, everything else becomes float64.
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

    Raises
    ------
    ValueError
        If the shapes don't fit together, or a bucket isn't there.

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
    _project(rows, to, by / math.pi, out, *waves, apart=False)
    return out


# ---- moments


def _meetings(x: Doubles, n_blocks: int, arrangement: Arrangement) -> float:
    """Expectation of the sum of x_j x_l over all j != l that meet in a block."""
    total, squares = float(x.sum()), float(x @ x)
    if arrangement == "permutation":
        dim = x.size
        small, more = divmod(dim, n_blocks)
        pairs = more * (small + 1) * small + (n_blocks - more) * small * (small - 1)
        return pairs / max(dim * (dim - 1), 1) * (total**2 - squares)
    segments = np.add.reduceat(x, np.arange(0, x.size, n_blocks))
    return (total**2 - float(segments @ segments)) / n_blocks


def _check_delta(delta: ArrayLike, n_blocks: int, arrangement: Any) -> tuple[Doubles, int]:
    check_choice("arrangement", arrangement, get_args(Arrangement))
    array = np.asarray(delta, dtype=np.float64)
    if array.ndim != 1 or array.size < 1:
        raise ValueError(f"delta has shape {array.shape}; pass the difference of two rows")
    return np.square(array), check_integer("n_blocks", n_blocks, 1)


def energy_variance(
    delta: ArrayLike, n_blocks: int, arrangement: Arrangement = "stratified"
) -> float:
    """Return the variance of the energy of a block, |Delta_i|^2, over the arrangements.

    Parameters
    ----------
    delta : array-like of shape (D,)
        The difference of two points.
    n_blocks : int
    arrangement : {"stratified", "permutation"}, default="stratified"

    Returns
    -------
    float
        sum_j x_j^2 / k + sum_(j != l) x_j x_l p_jl / k - (sum_j x_j / k)^2, where x = delta^2 and
        p_jl is the probability that j and l meet in a block: for "stratified" 0 within a segment
        of k coordinates and 1/k across, for "permutation" (b - 1) / (D - 1) with b = D/k.

    Examples
    --------
    >>> from gzkcore.features.block import energy_variance
    >>> energy_variance([1.0, 2.0, 1.0, 2.0], 2)  # blocks have 2, 5, 5 or 8
    4.5
    """
    x, k = _check_delta(delta, n_blocks, arrangement)
    second = (float(x @ x) + _meetings(x, k, arrangement)) / k
    return second - (float(x.sum()) / k) ** 2


def projection_variance(
    delta: ArrayLike,
    n_blocks: int,
    values: Values = "rademacher",
    arrangement: Arrangement = "stratified",
) -> float:
    """Return the variance of |v|^2 of a projection, over values and arrangements.

    Parameters
    ----------
    delta : array-like of shape (D,)
        The difference of two points.
    n_blocks : int
    values : {"rademacher", "gaussian"}, default="rademacher"
    arrangement : {"stratified", "permutation"}, default="stratified"

    Returns
    -------
    float
        2 sum_(j != l) p_jl x_j x_l, see `energy_variance`, and 2 sum_j x_j^2 more for normal
        values. A dense normal matrix has 2 (sum x)^2 / k.

    Examples
    --------
    >>> from gzkcore.features.block import projection_variance
    >>> projection_variance([1.0, 1.0, 1.0, 1.0], 2)
    8.0
    """
    x, k = _check_delta(delta, n_blocks, arrangement)
    check_choice("values", values, get_args(Values))
    variance = 2 * _meetings(x, k, arrangement)
    return variance + 2 * float(x @ x) if values == "gaussian" else variance


def kernel_moments(
    kernel: str | Kernel, mean: float, std: float, n_frequencies: int, *, printed: bool = False
) -> tuple[float, float]:
    """Return mean and variance of the estimate of a kernel for random normal distances.

    Theorem 4.1 and Propositions 4.3 and 4.4 of [1]_: the mean is E K(Delta) and the variance
    (1/2 + E K(2 Delta) / 2 - (E K(Delta))^2) / N, for N frequencies with independent blocks.

    Parameters
    ----------
    kernel : str or Kernel
        A kernel with numbers as parameters. "gaussian", "exponential" and "spherical" have the
        parameter 1.
    mean, std : float
        Of the normal variable: |x - y|^2 for `Gaussian`, `Matern` and `RationalQuadratic`, |x - y|
        for `Exponential` and `Spherical`, sum_j |x_j - y_j| for `Laplacian`.
    n_frequencies : int
        N.
    printed : bool, default=False
        As printed, for the three kernels of the propositions: see B1, B6, B7 and B8 in the errata.

    Returns
    -------
    mean, variance : float

    References
    ----------
    .. [1] A Simple and Efficient Method for Random Fourier Features.

    Examples
    --------
    >>> from gzkcore.features.block import kernel_moments
    >>> mean, variance = kernel_moments("gaussian", 1.0, 0.1, 100)
    >>> round(mean, 6), round(variance, 8)
    (0.369723, 0.00373225)
    """
    n = check_integer("n_frequencies", n_frequencies, 1)
    std = check_positive("std", std)
    if isinstance(kernel, str) and kernel in ("gaussian", "exponential", "spherical"):
        kernel = {"gaussian": Gaussian(1.0), "exponential": Exponential(1.0)}.get(
            kernel, Spherical(1.0)
        )
    kernel = as_kernel(kernel)
    _check_additive(kernel)
    if np.ndim(kernel.scale()) > 0:
        raise ValueError(f"{kernel!r} has a parameter for each column; moments are for one number")
    if isinstance(kernel, (Gaussian, Exponential, Laplacian)):
        unit = float(kernel.gamma)  # type: ignore[arg-type]  # scale() has checked it
        mean, std = unit * mean, unit * std
        once, twice = (
            math.exp(-c * mean + (c * std) ** 2 / 2)
            for c in (1, 4 if isinstance(kernel, Gaussian) and not printed else 2)
        )
    elif isinstance(kernel, Spherical):
        mean, std = float(kernel.scale()) * mean, float(kernel.scale()) * std
        if printed:
            third = mean**3 + 3 * mean * std**2
            once = 1 - 1.5 * mean + third / 2
            constant = 1 - 4.5 * mean + 2.25 * mean**2 + 3 * third - 1.5 * mean * third
            return once, (constant + third**2 / 4) / n
        once, twice = _spherical_mean(mean, std), _spherical_mean(2 * mean, 2 * std)
    elif printed:
        raise ValueError(f"printed=True is for the kernels that [B] has moments for, no {kernel!r}")
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(201)
        sums = float(kernel.scale()) ** 2 * np.maximum(mean + std * nodes, 0.0)
        weights /= weights.sum()
        once, twice = (float(weights @ _of_sums(kernel, sums, c)) for c in (1.0, 2.0))
    return once, (0.5 + twice / 2 + (1 if printed else -1) * once**2) / n


def _spherical_mean(mean: float, std: float) -> float:
    """E[1 - 3/2 s + s^3/2; s < 1] for normal s, by truncated moments; below 0 the kernel is 1."""
    below = norm.cdf([0.0, 1.0], mean, std)
    density = norm.pdf([0.0, 1.0], mean, std)
    moments = [below[1] - below[0]]
    moments.append(mean * moments[0] - std**2 * (density[1] - density[0]))
    for power in (2, 3):
        moments.append(mean * moments[-1] + std**2 * ((power - 1) * moments[-2] - density[1]))
    return float(below[0] + moments[0] - 1.5 * moments[1] + moments[3] / 2)


def projection_moments(
    mean: float, std: float, n_components: int, *, printed: bool = False
) -> tuple[float, float]:
    """Return mean and variance of |v|^2 for normal values, (2 mean^2 + 2 std^2) / k (Theorem 4.7).

    Parameters
    ----------
    mean, std : float
        Of |sqrt(k) Delta_i|^2, the scaled energy of a block; the mean is |Delta|^2.
    n_components : int
        k.
    printed : bool, default=False
        As printed, (2 mean + std^2) / k: see B10 in the errata.

    Returns
    -------
    mean, variance : float

    Examples
    --------
    >>> from gzkcore.features.block import projection_moments
    >>> projection_moments(3.0, 1.0, 10)
    (3.0, 2.0)
    """
    k = check_integer("n_components", n_components, 1)
    if printed:
        return mean, (2 * mean + std**2) / k
    return mean, (2 * mean**2 + 2 * std**2) / k


# ---- kernels, seen by blocks


def _check_additive(kernel: Kernel) -> None:
    """Raise unless a block can stand for the whole row."""
    if isinstance(kernel, (*MIXTURES, Laplacian, Spherical)):
        return
    raise ValueError(
        f"{kernel!r} is no function of sum_j |x_j - y_j|^p, so that a block of coordinates cannot "
        "stand for the whole row; use Gaussian, Exponential, Matern, RationalQuadratic or "
        "Laplacian here, or GegenbauerFeatures or ProductFeatures for this kernel"
    )


def _power(kernel: Kernel) -> int:
    """Return p of the sum_j |x_j - y_j|^p that the kernel is a function of."""
    return 1 if isinstance(kernel, Laplacian) else 2


def _of_sums(kernel: Any, sums: Floats, stretch: float = 1.0) -> Doubles:
    """Return the kernel at sums over scaled coordinates, `stretch` times as far apart."""
    if isinstance(kernel, Gaussian):
        return kernel.profile_of_sums(stretch**2 * np.asarray(sums, dtype=np.float64))
    distances = sums if _power(kernel) == 1 else np.sqrt(sums)
    values: Doubles = kernel.profile(stretch * distances)
    return values


def _frequencies(
    kernel: Kernel, buckets: NDArray[np.intp], sizes: NDArray[np.intp], rng: np.random.Generator
) -> Doubles:
    """Draw a frequency for each scaled coordinate, with the scale of its block, (D / b)^(1 / p)."""
    dim, n_blocks = buckets.size, sizes.size
    if isinstance(kernel, Laplacian):
        return rng.standard_cauchy(dim) * (dim / sizes)[buckets]
    if isinstance(kernel, Spherical):
        chosen = _spherical_frequencies(n_blocks, rng)
        order = np.argsort(buckets, kind="stable")
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        place = np.empty(dim, dtype=np.intp)
        place[order] = np.arange(dim) - np.repeat(first, sizes)  # which of its block
        normal: Doubles = chosen[buckets, place]
    else:
        spread = kernel.frequencies(np.ones((n_blocks, 1)), rng.random(n_blocks))[:, 0]
        normal = rng.standard_normal(dim) * spread[buckets]
    return normal * np.sqrt(dim / sizes)[buckets]


def _spherical_frequencies(count: int, rng: np.random.Generator) -> Doubles:
    """Draw frequencies in R^3 of the spherical kernel with theta = 1; of fewer, any coordinates.

    It is the overlap of two balls of radius 1/2, so that the density is the square of a ball's
    transform: radius r = 2 t has a density proportional to (sin t / t - cos t)^2 / t^2. By
    rejection from min(1, 1 / t^2) / 2.
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


# ---- what both maps share


class _BlockMap(SumMap):
    """Blocks, drawn once, and the Hadamard mix before them."""

    _state = stored("buckets_", "weights_", "_signs")

    n_components: int
    arrangement: Arrangement
    mix: Mix
    buckets_: Buckets
    weights_: Doubles
    _signs: Any  # before the transform, over the root of its size; None: no mix

    def _start(self, X: Rows) -> tuple[int, np.random.Generator]:
        """Check what both have, draw the mix; return how many coordinates blocks are made of."""
        self._n_features_out = check_integer("n_components", self.n_components, 1)
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

    def _mixed(self, tile: Rows, scale: Any = 1.0) -> Floats:
        """Rotate rows: random signs, zeros up to a power of two, Hadamard."""
        padded = np.zeros((tile.shape[0], 1 << (tile.shape[1] - 1).bit_length()), tile.dtype)
        padded[:, : tile.shape[1]] = dense(tile) * (np.multiply(self._signs, scale)).astype(
            tile.dtype
        )
        return hadamard_transform(padded)

    def _sum(self, X: Rows, out: Floats, scale: float | Doubles, *waves: Any) -> None:
        """Write the sums of blocks, or their waves, and raise if a value is none."""
        if self._signs is None:
            finite = _project(X, self.buckets_, self.weights_, out, *waves)
        else:
            finite = True
            for rows in tiles(X.shape[0], self.buckets_.shape[1] * X.dtype.itemsize):
                tile = self._mixed(X[rows], scale)
                finite &= _project(tile, self.buckets_, self.weights_, out[rows], *waves)
        if not finite:  # every coordinate is in a sum, which would tell
            self._check_finite(X)


class BlockProjection(_BlockMap):
    """Random projection with one random number for each coordinate, in O(D) a row.

    v = S x with E |v|^2 = |x|^2 and E <v, v'> = <x, x'>: Algorithm 1 of [1]_, for any number of
    components.

    Parameters
    ----------
    n_components : int
        k, the width of the output, exactly. More than D columns are several projections, side by
        side over the root of their number.
    values : {"rademacher", "gaussian"}, default="rademacher"
        Signs +-1, or standard normal numbers. Signs are never worse.
    arrangement : {"stratified", "permutation"}, default="stratified"
        How coordinates are dealt to the k blocks. "stratified": of each k neighbours one to each
        block, in random order. "permutation": by one random permutation, as in the paper. Every
        coordinate is in every block with probability 1/k either way.
    mix : {None, "hadamard"}, default=None
        "hadamard": first rotate by random signs and the Hadamard transform, in O(D log D). For
        differences that are zero in most coordinates; it makes sparse rows dense.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    buckets_ : ndarray of int32 of shape (passes, D)
        The block of each coordinate (with mix, of each of the next power of two).
    weights_ : ndarray of shape (passes, D)
        The number it is multiplied by.
    components_ : sparse array of shape (n_components, D)
        S; its transpose is the adjoint. With mix a dense array, made when it is asked for.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    projection_variance : How far |v|^2 is off for given data.

    Notes
    -----
    Cost: D multiply-adds a row, nnz for sparse rows, at 85 % of the memory's speed and more. Memory
    beyond input and output: O(D) and 16 n_components numbers for each thread. The same result to
    the bit for any number of threads, any split of the rows and for CSR, per instruction set.

    Variance of |v|^2, with x_j the squared coordinates and b = D/k: for signs and a permutation
    2 (b-1)/(D-1) ((sum x)^2 - sum x^2), against 2 (sum x)^2 / k of a dense normal matrix.

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

    def fit(self, X: Data, y: object = None) -> Self:
        """Draw the blocks and their values; of X only the number of columns matters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = self._validate(X, reset=True)
        check_choice("values", self.values, get_args(Values))
        dim, rng = self._start(X)
        shares = _shares(self._n_features_out, dim)
        buckets, first = [], 0
        for n_blocks in shares:
            buckets.append(first + _deal(dim, n_blocks, self.arrangement, rng))
            first += n_blocks
        self.buckets_ = np.array(buckets, dtype=np.int32)
        if self.values == "gaussian":
            self.weights_ = rng.standard_normal(self.buckets_.shape)
        else:
            self.weights_ = 2.0 * rng.integers(0, 2, self.buckets_.shape).astype(np.float64) - 1
        self.weights_ /= math.sqrt(len(shares))
        return self

    @property
    def components_(self) -> Any:
        """The matrix S of shape (n_components, n_features)."""
        check_is_fitted(self, "weights_")
        passes, dim = self.buckets_.shape
        columns = np.tile(np.arange(dim), passes)
        S = sparse.csr_array(
            (self.weights_.ravel(), (self.buckets_.ravel(), columns)),
            shape=(self._n_features_out, dim),
        )
        if self._signs is None:
            return S
        return hadamard_transform(S.toarray())[:, : self.n_features_in_] * self._signs

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        self._sum(X, out, 1.0)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Return the shortest rows whose projections are nearest to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            X times the transposed pseudo-inverse of `components_`, as scikit-learn's projections
            have it.

        Notes
        -----
        n_samples D operations where the rows of S are orthogonal: n_components <= D, without mix or
        D a power of two. Else a pseudo-inverse of the dense S, O(n_components D^2).
        """
        check_is_fitted(self, "weights_")
        V = check_array(X, dtype=[np.float64, np.float32])
        if V.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {counted(V.shape[1], 'column')}, but the projection has "
                f"n_components={self._n_features_out}; pass what transform returns"
            )
        passes, dim = self.buckets_.shape
        if passes > 1 or (self._signs is not None and dim > self.n_features_in_):
            S = self.components_
            inverse = np.linalg.pinv(S.toarray() if sparse.issparse(S) else S)
            rows: Floats = V @ inverse.T.astype(V.dtype)
            return rows
        energy = np.bincount(self.buckets_[0], np.square(self.weights_[0]), self._n_features_out)
        weights = (self.weights_[0] / energy[self.buckets_[0]]).astype(V.dtype)
        rows = V[:, self.buckets_[0]] * weights
        if self._signs is not None:
            rows = hadamard_transform(rows) * self._signs.astype(V.dtype)
        return rows


class BlockFourierFeatures(_BlockMap):
    """Random Fourier features with one random number for each coordinate and pass, in O(D) a row.

    A block of b of the D coordinates stands for the whole row: its frequency times sqrt(D/b).
    Algorithm 2 of [1]_, for any number of components, blocks and repetitions.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        Gaussian, Exponential, Matern, RationalQuadratic; Laplacian; Spherical with blocks of at
        most 3 coordinates.
    n_components : int, default=1024
        Width of the output, exactly: all cosines, then all sines, and of an odd width a last
        cosine at a random phase.
    block_size : int or "auto", default="auto"
        Least number of coordinates in a block: n_features // block_size blocks in a pass, as many
        passes as n_components takes. The bias falls with the block size alone. "auto": 32 (one
        block of all coordinates where there are fewer than 64; 3 for Spherical).
    arrangement : {"stratified", "permutation"}, default="stratified"
        As for `BlockProjection`; drawn anew in each pass.
    mix : {None, "hadamard"}, default=None
        As for `BlockProjection`; not for Laplacian, which depends on the axes.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, every parameter a number.
    buckets_ : ndarray of int32 of shape (passes, D)
        The frequency that each coordinate belongs to.
    weights_ : ndarray of shape (passes, D)
        The coordinate of that frequency, scaled, in half turns.
    n_blocks_ : tuple of int
        Blocks of each pass; their sum is ceil(n_components / 2).
    block_size_ : int
        Coordinates in the smallest block.
    expected_bias_ : float
        Mean over pairs of training rows of E z(x).z(y) - k(x, y), given the blocks.
    expected_error_ : float
        Root mean square over these pairs and the frequencies of z(x).z(y) - k(x, y).

    See Also
    --------
    block_report : Bias, variance and advice for given data.

    Notes
    -----
    Cost: D multiply-adds a row and pass (sparse: nnz), and one cosine and sine for two columns.
    Memory beyond input and output: O(D passes), and for each thread 16 numbers for every block of a
    pass, a megabyte at least. The same result to the bit for any number of threads, any split of
    the rows and for CSR, per instruction set.

    Given the blocks the estimate has the mean 1/N sum_i K(sqrt(D/b_i) Delta_i) > K(Delta): a bias
    of about K tau^2 cv2 / (2b) for the Gaussian, tau = gamma |Delta|^2, with cv2 the squared
    coefficient of variation of the squared coordinates of Delta (2 for normal ones). It does not
    fall with more passes.

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
        "kernel_",
        "block_size_",
        "n_blocks_",
        "expected_bias_",
        "expected_error_",
        "_phase",
        "_scale",
    )

    kernel_: Kernel

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
        self.kernel = kernel
        self.n_components = n_components
        self.block_size = block_size
        self.arrangement = arrangement
        self.mix = mix
        self.random_state = random_state

    def fit(self, X: Data, y: object = None) -> Self:
        """Resolve the kernel on X, draw blocks and frequencies, look at the bias on pairs of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = self._validate(X, reset=True)
        kernel = as_kernel(self.kernel)
        _check_additive(kernel)
        dim, rng = self._start(X)
        if self.mix is not None and isinstance(kernel, Laplacian):
            raise ValueError(
                f"mix={self.mix!r} rotates the rows, and {kernel!r} depends on the axes; use "
                "mix=None, or Exponential"
            )
        # In three dimensions the spherical kernel has a meaning, and so it has for blocks of three.
        kernel = kernel.resolve(X[:, :3] if isinstance(kernel, Spherical) else X)
        width = self._n_features_out
        most = _most_blocks(kernel, dim, self.block_size)
        self.n_blocks_ = tuple(_shares(-(-width // 2), most))
        scale = np.broadcast_to(kernel.scale(), X.shape[1])
        buckets, weights, factors = [], [], []
        self.block_size_, first = dim, 0
        for kept in self.n_blocks_:
            n_blocks = most if isinstance(kernel, Spherical) else kept
            bucket = _deal(dim, n_blocks, self.arrangement, rng)
            sizes = np.bincount(bucket, minlength=n_blocks)
            weight = _frequencies(kernel, bucket, sizes, rng) / math.pi
            used = bucket < kept  # blocks of the spherical kernel can't be made larger
            buckets.append(np.where(used, first + bucket, first))
            weights.append(np.where(used, weight, 0.0))
            factors.append(np.where(used, dim / sizes[bucket], 0.0))
            self.block_size_ = min(self.block_size_, int(sizes[:kept].min()))
            first += kept
        self.buckets_ = np.array(buckets, dtype=np.int32)
        self.weights_ = np.array(weights)
        self._scale: float | Doubles = scale.astype(np.float64)
        if self._signs is None:
            self.weights_ *= self._scale
        self._phase = float(rng.uniform(0.0, 2.0))
        self.kernel_ = kernel
        self._measure(X, np.array(factors), min(most, first))
        return self

    def _measure(self, X: Rows, factors: Doubles, n_blocks: int) -> None:
        """Set what is expected of these blocks, on pairs of training rows, and warn."""
        exact, bias, variance = [], [], []
        for delta in _differences(X, _PAIRS):
            rows = delta * self._scale if self._signs is None else self._mixed(delta, self._scale)
            powers = np.abs(rows) ** _power(self.kernel_)
            total = powers.sum(axis=1)
            sums = empty_aligned((len(rows), sum(self.n_blocks_)), np.float64)
            _project(powers, self.buckets_, factors, sums)
            once, twice = (_of_sums(self.kernel_, sums, stretch) for stretch in (1.0, 2.0))
            exact.append(_of_sums(self.kernel_, total))
            bias.append(once.mean(axis=1) - exact[-1])
            variance.append((0.5 + twice / 2 - once**2).mean(axis=1) / sums.shape[1])
        self.expected_bias_ = self.expected_error_ = 0.0
        if not exact:
            return
        values, biases = np.concatenate(exact), np.concatenate(bias)
        self.expected_bias_ = float(biases.mean())
        self.expected_error_ = float(np.sqrt(np.mean(biases**2 + np.concatenate(variance))))
        rms = float(np.sqrt(np.mean(biases**2)))
        if n_blocks > 1 and self.block_size_ < FEW and not isinstance(self.kernel_, Spherical):
            warnings.warn(
                f"blocks of {self.block_size_} coordinates are too small to stand for "
                f"{self.buckets_.shape[1]}: on these data the kernel is off by {rms:.2g} however "
                f"many features there are; use block_size={ENOUGH} or more"
                + (" (with one coordinate a block the method is wrong)" * (self.block_size_ == 1)),
                UserWarning,
                stacklevel=4,
            )
        elif rms > LARGE_BIAS:
            remedy = "mix='hadamard' or a larger block_size"
            if self.mix is not None or isinstance(self.kernel_, Laplacian):
                remedy = "a larger block_size"
            warnings.warn(
                f"on these data the kernel is off by {rms:.2g} however many features there are, "
                f"because blocks of {self.block_size_} coordinates differ; use {remedy} "
                "(gzkcore.block_report says more)",
                UserWarning,
                stacklevel=4,
            )
        elif values.max() < 1e-6 or values.min() > 1 - 1e-6:
            what = "the identity" if values.max() < 1e-6 else "constant"
            remedy = "larger" if values.max() < 1e-6 else "smaller"
            warnings.warn(
                f"on these data {self.kernel_!r} is numerically {what}; scale the columns or use a "
                f"{remedy} lengthscale",
                UserWarning,
                stacklevel=4,
            )

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        self._sum(X, out, self._scale, math.sqrt(2 / out.shape[1]), self._phase, stream)

    def _flops(self, density: float) -> float:
        dim, passes = float(self.n_features_in_), len(self.n_blocks_)
        mixing = 0.0 if self.mix is None else 2 * dim * math.log2(max(dim, 2))
        summing = 2 * passes * dim * (density if self.mix is None else 1.0)
        return mixing + summing + 15 * self._n_features_out

    def _about(self) -> str:
        mixed = "" if self.mix is None else ", mixed"
        blocks = counted(sum(self.n_blocks_), "block")
        return f"{blocks} of {counted(self.block_size_, 'column')}{mixed}"


def _most_blocks(kernel: Kernel, dim: int, block_size: Any) -> int:
    """How many blocks a pass may have."""
    if isinstance(kernel, Spherical):
        size = 3 if block_size == "auto" else check_integer("block_size", block_size, 1)
        if size > 3:
            raise ValueError(
                f"block_size={size}, but Spherical is positive definite in at most 3 dimensions; "
                "use block_size=3, or Matern or Exponential"
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


def _differences(X: Rows, count: int, rng: np.random.Generator | None = None) -> Iterator[Doubles]:
    """Yield differences of `count` random pairs of rows, in double, a few at a time."""
    n = X.shape[0]
    if n < 2:
        return
    rng = np.random.default_rng(0) if rng is None else rng
    first = rng.integers(0, n, count)
    second = (first + rng.integers(1, n, count)) % n
    step = max(1, min(count, (1 << 23) // X.shape[1]))
    for start in range(0, count, step):
        a, b = (dense(X[index[start : start + step]]) for index in (first, second))
        yield np.subtract(a, b, dtype=np.float64)


# ---- normalisation


def _projected(projection: Any, X: Rows) -> Floats:
    """Project rows to an ordinary array, also where scikit-learn's own would give a sparse one."""
    projected = projection.transform(X)
    return projected.toarray() if sparse.issparse(projected) else np.asarray(projected)


class MeanNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract each column's mean and divide by its range (Section 3.2 of [1]_).

    Parameters
    ----------
    with_shift : bool, default=True
        False: only divide, which keeps sparse rows sparse. Distances, and features of
        shift-invariant kernels, are the same.

    Attributes
    ----------
    mean_, range_ : ndarray of shape (n_features,)
        A constant column has range 0 and becomes 0.
    n_samples_seen_ : int

    References
    ----------
    .. [1] A Simple and Efficient Method for Random Fourier Features; B15 in the errata.

    Examples
    --------
    >>> from gzkcore import MeanNormalizer
    >>> MeanNormalizer().fit_transform([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0]])
    array([[-0.4,  0. ],
           [-0.2,  0. ],
           [ 0.6,  0. ]])
    """

    _state = stored("mean_", "n_samples_seen_", "_total", "_low", "_high")

    _low: Doubles
    _high: Doubles

    def __init__(self, with_shift: bool = True) -> None:
        self.with_shift = with_shift

    @property
    def range_(self) -> Doubles:
        """Largest minus smallest value of each column."""
        check_is_fitted(self, "mean_")
        width: Doubles = self._high - self._low
        return width

    def fit(self, X: Data, y: object = None) -> Self:
        """Find mean and range of each column.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        for name in ("mean_", "n_samples_seen_"):
            if hasattr(self, name):
                delattr(self, name)
        return self.partial_fit(X)

    def partial_fit(self, X: Data, y: object = None) -> Self:
        """Take more rows into account: the same as fitting on all of them at once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        fresh = not hasattr(self, "mean_")
        X = self._validate(X, reset=fresh)
        n, width = X.shape
        total: Doubles = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
        if sparse.issparse(X):
            low, high = (np.asarray(f(axis=0).todense()).ravel() for f in (X.min, X.max))
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        low, high = low.astype(np.float64), high.astype(np.float64)
        if not fresh:
            low, high = np.minimum(self._low, low), np.maximum(self._high, high)
        with np.errstate(divide="ignore", over="ignore"):
            spans = np.subtract(high, low, dtype=X.dtype)
            unusable = ~np.isfinite(spans) | ((spans > 0) & ~np.isfinite(1 / spans))
        if unusable.any():
            column = int(np.argmax(unusable))
            raise ValueError(
                f"column {column} of X, counted from 0, goes from {low[column]:g} to "
                f"{high[column]:g}, and nothing can be divided by that; scale it"
            )
        if fresh:
            self.n_samples_seen_, self._total = 0, np.zeros(width)
        self.n_samples_seen_ += n
        self._total = self._total + total
        self._low, self._high = low, high
        self.mean_ = self._total / self.n_samples_seen_
        return self

    def _validate(self, X: Data, *, reset: bool) -> Rows:
        return check_rows(self, X, reset=reset)

    def _factor(self) -> Doubles:
        """1 / range, 0 for a constant column."""
        range_ = self.range_
        with np.errstate(divide="ignore"):
            return np.where(range_ > 0, 1 / range_, 0.0)

    def transform(self, X: Data) -> Rows:
        """Normalise X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Sparse only with with_shift=False.

        Returns
        -------
        {ndarray, csr_array} of shape (n_samples, n_features)
        """
        check_is_fitted(self, "mean_")
        X = self._validate(X, reset=False)
        factor = self._factor().astype(X.dtype)
        if not isinstance(X, np.ndarray):
            if self.with_shift:
                raise ValueError(
                    "subtracting the means would make every entry of this sparse X nonzero; use "
                    "with_shift=False, which leaves distances and shift-invariant kernels the "
                    "same, or project(projection, X), which shifts after projecting"
                )
            scaled = X.copy()
            scaled.data = X.data * factor[X.indices]
            return scaled
        shifted: Floats = X - self.mean_.astype(X.dtype) if self.with_shift else X
        return shifted * factor

    def project(self, projection: Any, X: Data) -> Floats:
        """Project the normalised rows without making sparse ones dense.

        S ((x - mean) / range) = S (x / range) - S (mean / range): the shift is subtracted once it
        is projected, so that sparse rows cost O(nnz). It always is, whatever `with_shift` says
        about `transform`.

        Parameters
        ----------
        projection : fitted transformer
            A linear one, such as `BlockProjection`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "mean_")
        X = self._validate(X, reset=False)
        factor = self._factor().astype(X.dtype)
        if isinstance(X, np.ndarray):
            return _projected(projection, (X - self.mean_.astype(X.dtype)) * factor)
        scaled = X.copy()
        scaled.data = X.data * factor[X.indices]
        shift = (self.mean_ * self._factor()).astype(X.dtype)
        return _projected(projection, scaled) - _projected(projection, shift[None])

    def save(self, path: Any) -> None:
        """Write the fitted normaliser to a file, see `gzkcore.load`."""
        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # fit and project take them with a shift too
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# ---- the report


@dataclass(frozen=True)
class BlockReport:
    """What blocks of one size would do to a kernel on given data; `print` it.

    Attributes
    ----------
    kernel : Kernel
    n_features, block_size, n_blocks : int
    arrangement : str
    mix : str or None
    n_pairs, n_draws : int
        Pairs of rows, and arrangements drawn for each.
    kernel_mean : float
        Mean of k(x, y) over the pairs.
    bias : float
        Mean of E z(x).z(y) - k(x, y) over the pairs.
    bias_interval : (float, float)
        Two standard errors to either side, for all pairs of rows and all arrangements.
    bias_rms : float
        Root mean square over pairs of each one's bias.
    bias_formula : float
        Mean over the pairs by the second-order formula, f'' Var / 2, f the kernel as a function of
        the energy of a block. Good where the bias is small.
    std : float
        Standard deviation of z(x).z(y) with one pass, frequencies and arrangement drawn anew.
    std_arrangement : float
        The part that the arrangement has in it.
    std_independent : float
        The standard deviation with as many frequencies that see all coordinates.
    spread : float
        (M/m)^2 of Lemma 4.6, median over the pairs: the largest energy of a block over the
        smallest.
    effective_k : float
        (sum a)^2 / sum a^2 for the energies a of blocks, median over the pairs: at most n_blocks.
    shapiro_w, shapiro_p : float
        Of the Shapiro-Wilk test of the energies of the blocks of a pair, medians (Table 1).
    normal_share : float
        Share of the pairs whose p is above 0.05.
    correlation_before, correlation_after : ndarray of shape (m, m)
        Absolute correlations between the first 50 coordinates before and after arranging
        (Figure 1).
    """

    kernel: Kernel
    n_features: int
    block_size: int
    n_blocks: int
    arrangement: str
    mix: str | None
    n_pairs: int
    n_draws: int
    kernel_mean: float
    bias: float
    bias_interval: tuple[float, float]
    bias_rms: float
    bias_formula: float
    std: float
    std_arrangement: float
    std_independent: float
    spread: float
    effective_k: float
    shapiro_w: float
    shapiro_p: float
    normal_share: float
    correlation_before: Doubles
    correlation_after: Doubles

    @property
    def advice(self) -> tuple[str, ...]:
        """What to change, in sentences."""
        said = []
        spiky = self.effective_k < 0.75 * self.n_blocks and not isinstance(self.kernel, Laplacian)
        if self.n_blocks == 1:
            said.append("one block holds all coordinates: no bias, and plain random features")
        elif self.bias_rms <= ACCEPTED:
            said.append("the bias is small: take as many features as the error asks for")
        elif spiky and self.mix is None:
            said.append(
                "use mix='hadamard': the differences are in few coordinates, so that the blocks "
                "are unequal; it spreads them evenly"
            )
        else:
            wanted = math.ceil(self.block_size * self.bias_rms / ACCEPTED)
            if 2 * wanted <= self.n_features:
                said.append(
                    f"use block_size={wanted}, where the bias is about {ACCEPTED}; more features "
                    "don't lower it"
                )
            else:
                said.append(
                    "leave this method: no block size makes the bias small; use "
                    "GegenbauerFeatures, or random features of whole rows"
                )
        if self.std_arrangement > 0.5 * self.std_independent > 0:
            said.append(
                "the arrangement has a large part in the error: several passes, so n_components "
                f"well above {2 * self.n_blocks}, average it"
            )
        if self.kernel_mean < 1e-3 or self.kernel_mean > 0.999:
            said.append("the kernel is nearly constant on these pairs: look at its scale first")
        return tuple(said)

    def __str__(self) -> str:
        low, high = self.bias_interval
        mixed = f", mix={self.mix!r}" if self.mix else ""
        off = self.correlation_before, self.correlation_after
        table = {
            "kernel, mean of the pairs": f"{self.kernel_mean:.4f}",
            "bias": f"{self.bias:+.4f}, {low:+.4f} to {high:+.4f}",
            "bias, root mean square": f"{self.bias_rms:.4f}",
            "bias, to second order": f"{self.bias_formula:+.4f}",
            "standard deviation, one pass": f"{self.std:.4f}",
            "  of the arrangement": f"{self.std_arrangement:.4f}",
            "  with whole frequencies": f"{self.std_independent:.4f}",
            "(M/m)^2 of Lemma 4.6": f"{self.spread:.3g}",
            "effective k": f"{self.effective_k:,.0f} of {self.n_blocks:,}",
            "Shapiro-Wilk, median": f"W = {self.shapiro_w:.3f}, p = {self.shapiro_p:.2g}",
            "  pairs with p > 0.05": f"{self.normal_share:.0%}",
            "|correlation| of neighbours": f"{_off_diagonal(off[0]):.3f}",
            "  within blocks": f"{_off_diagonal(off[1]):.3f}",
        }
        columns, blocks = counted(self.n_features, "column"), counted(self.n_blocks, "block")
        lines = [
            f"{self.kernel!r} on {columns}, {counted(self.n_pairs, 'pair')} of rows",
            f"{blocks} of at least {self.block_size}, {self.arrangement}{mixed}",
            "",
            *(f"{name:<30}{value}" for name, value in table.items()),
            "",
            *(f"- {line}" for line in self.advice),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, axes: Any = None) -> Any:
        """Draw the correlations before and after arranging, as in Figure 1; needs matplotlib.

        Parameters
        ----------
        axes : two matplotlib axes, optional

        Returns
        -------
        the two axes
        """
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")[1]
        shown = (("as they are", self.correlation_before), ("arranged", self.correlation_after))
        for ax, (title, matrix) in zip(axes, shown, strict=True):
            ax.imshow(matrix, cmap="Greys", vmin=0, vmax=1)
            ax.set_title(title)
        return axes


def block_report(
    X: Data,
    kernel: str | Kernel = "gaussian",
    *,
    block_size: int | Literal["auto"] = "auto",
    arrangement: Arrangement = "stratified",
    mix: Mix = None,
    n_pairs: int = 100,
    n_draws: int = 20,
    random_state: Seed = 0,
) -> BlockReport:
    """Say what `BlockFourierFeatures` would do on these data: bias, variance, and what to change.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        At least two rows.
    kernel, block_size, arrangement, mix
        As for `BlockFourierFeatures`.
    n_pairs : int, default=100
        Pairs of rows that are looked at.
    n_draws : int, default=20
        Arrangements that are drawn, at least 2.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    BlockReport

    Notes
    -----
    Cost: n_pairs n_draws D.

    Examples
    --------
    Differences in 1 of 50 columns, where blocks are far from equal:

    >>> import numpy as np
    >>> from gzkcore import Gaussian, block_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 5000)) * (rng.random((50, 5000)) < 0.01)
    >>> report = block_report(X, Gaussian(0.01))
    >>> bool(report.bias > 0.2), report.advice[0][:30]
    (True, "use mix='hadamard': the differ")
    >>> bool(abs(block_report(X, Gaussian(0.01), mix="hadamard").bias) < 0.03)
    True
    """
    n_pairs, n_draws = check_integer("n_pairs", n_pairs, 1), check_integer("n_draws", n_draws, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says it
        features = BlockFourierFeatures(
            kernel, 2, block_size=block_size, arrangement=arrangement, mix=mix
        ).fit(X)
    X = features._validate(X, reset=False)
    if X.shape[0] < 2:
        raise ValueError("X has one row; pass two or more, the report is about their differences")
    resolved, dim = features.kernel_, features.buckets_.shape[1]
    n_blocks = _most_blocks(resolved, dim, block_size)
    for_blocks, for_pairs = map(generator, as_seed_sequence(random_state).spawn(2))
    deals = [_deal(dim, n_blocks, arrangement, for_blocks) for _ in range(n_draws)]
    sizes = np.array([np.bincount(deal, minlength=n_blocks) for deal in deals])
    rows: list[tuple[float, ...]] = []  # of each pair
    means: list[Doubles] = []  # of each pair, over the blocks of each draw
    for delta in _differences(X, n_pairs, for_pairs):
        scaled = delta * features._scale if mix is None else features._mixed(delta, features._scale)
        powers = np.abs(scaled) ** _power(resolved)
        sums = np.empty((n_draws, len(delta), n_blocks))
        for deal, size, out in zip(deals, sizes, sums, strict=True):
            _project(powers, deal[None].astype(np.int32), (dim / size)[deal][None], out)
        once, twice = (_of_sums(resolved, sums, stretch) for stretch in (1.0, 2.0))
        means.append(once.mean(axis=2).T)
        inner = (0.5 + twice / 2 - once**2).mean(axis=(0, 2)) / n_blocks
        for power, energies, variance in zip(powers, sums[0], inner, strict=True):
            rows.append((
                variance, *_whole(resolved, power, n_blocks, arrangement), *_inequality(energies)
            ))  # fmt: skip
    inside, exact, independent, formula, spread, effective, w, p = np.array(rows).T
    mean = np.concatenate(means)
    off = mean.mean(axis=1) - exact
    bias = float(off.mean())
    of_draws = float(np.var((mean - exact[:, None]).mean(axis=0), ddof=1)) / n_draws
    error = math.sqrt(of_draws + float(np.var(off)) / off.size)
    of_arrangement = float(np.mean(np.var(mean, axis=1, ddof=1)))
    tested = np.isfinite(p) if np.isfinite(p).any() else slice(None)  # equal rows have no shape
    before, after = _correlations(X, deals[0])
    return BlockReport(
        kernel=resolved,
        n_features=X.shape[1],
        block_size=int(sizes.min()),
        n_blocks=n_blocks,
        arrangement=arrangement,
        mix=mix,
        n_pairs=off.size,
        n_draws=n_draws,
        kernel_mean=float(exact.mean()),
        bias=bias,
        bias_interval=(bias - 2 * error, bias + 2 * error),
        bias_rms=float(np.sqrt(np.mean(off**2))),
        bias_formula=float(formula.mean()),
        std=math.sqrt(float(inside.mean()) + of_arrangement),
        std_arrangement=math.sqrt(of_arrangement),
        std_independent=math.sqrt(float(independent.mean())),
        spread=float(np.median(spread)),
        effective_k=float(np.median(effective)),
        shapiro_w=float(np.median(w[tested])),
        shapiro_p=float(np.median(p[tested])),
        normal_share=float(np.mean(p[tested] > 0.05)),
        correlation_before=before,
        correlation_after=after,
    )


def _whole(
    kernel: Kernel, powers: Doubles, n_blocks: int, arrangement: Arrangement
) -> tuple[float, float, float]:
    """Of one pair: k, the variance with whole frequencies, the bias to second order."""
    total = powers.sum()
    step = 0.01 * total
    below, value, above = _of_sums(kernel, total + step * np.array([-1.0, 0.0, 1.0]))
    twice = float(_of_sums(kernel, np.array(total), 2.0))
    curvature = (above - 2 * value + below) / step**2 if step else 0.0
    spread = n_blocks**2 * energy_variance(np.sqrt(powers), n_blocks, arrangement)
    return value, (0.5 + twice / 2 - value**2) / n_blocks, curvature * spread / 2


def _inequality(energies: Doubles) -> tuple[float, float, float, float]:
    """Of the energies of a pair's blocks: (M/m)^2, the effective k, Shapiro and Wilk's W and p."""
    total, squares = energies.sum(), energies @ energies
    smallest = energies.min()
    spread = energies.max() / smallest if smallest > 0 else math.inf
    effective = total**2 / squares if squares else float(energies.size)
    if energies.size < 3 or np.ptp(energies) == 0:
        return spread, effective, math.nan, math.nan
    test = shapiro(energies[:5000])  # p is not known beyond
    return spread, effective, float(test.statistic), float(test.pvalue)


def _correlations(X: Rows, buckets: NDArray[np.intp]) -> tuple[Doubles, Doubles]:
    """|correlations| of the first 50 coordinates, in their order and in that of the blocks."""
    arranged = np.argsort(buckets[buckets.size - X.shape[1] :], kind="stable")
    sample = X[: min(X.shape[0], 1000)]
    found = []
    for columns in (slice(0, 50), arranged[:50]):
        values = dense(sample[:, columns]).astype(np.float64)
        values -= values.mean(axis=0)
        norms = np.sqrt(np.einsum("ij,ij->j", values, values))
        values /= np.where(norms > 0, norms, 1.0)
        found.append(np.abs(values.T @ values))
    return found[0], found[1]


def _off_diagonal(matrix: Doubles) -> float:
    """Mean beside the diagonal."""
    n = len(matrix)
    return float((matrix.sum() - np.trace(matrix)) / (n * (n - 1))) if n > 1 else 0.0
