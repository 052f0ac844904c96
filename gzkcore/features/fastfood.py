"""Fastfood: random Fourier features in O(F log d) for each row, by Walsh-Hadamard transforms.

A block of frequencies is V = L H G P H B / (sqrt(n) |G|): B random signs, P a permutation, G
independent normal numbers, L lengths. Each row of V by itself is exactly normal, so that the
features are unbiased; rows of one block are weakly dependent. If G consists of signs, the rows of V
are orthogonal, but they lie on a lattice, and the kernel repeats between distant rows that differ
in few columns. Signs with a little noise give nearly orthogonal rows and no lattice.
"""

import math
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gzkcore._compiled import fastfood as _fastfood
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, ints, number, stored
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Rows, Seed
from gzkcore._util.validation import check_choice
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel

from .base import KernelMap, call_kernel, cast_once, contiguous, warn_if_trivial
from .fit_rows import FitRows
from .hadamard import hadamard_transform

__all__ = ["FastfoodFeatures", "fastfood_frequencies"]

# The smallest block, which fills a vector; padding with zeros doesn't change the law of the angles.
_LEAST_BLOCK = 16
# The smallest block of orthogonal frequencies, which are nearer to normal in larger blocks.
_LEAST_ORTHOGONAL_BLOCK = 256
# Standard deviation of the noise of the signs, times sqrt(n). It leaves a share of
# exp(-noise^2 pi^2 / 2), a thousandth, of the kernel that repeats on the lattice between rows that
# differ in one column; the cosines between frequencies are 2 noise / n.
_NOISE = 1.2

BlockFrequencies: TypeAlias = Literal["orthogonal", "normal"]


def fastfood_frequencies(
    signs: ArrayLike, permutation: ArrayLike, normals: ArrayLike, lengths: ArrayLike
) -> Doubles:
    """Multiply out one block of frequencies, V = L H G P H B / (sqrt(n) |G|).

    Parameters
    ----------
    signs : array-like of shape (n,)
        The diagonal of B; n is a power of two.
    permutation : array-like of int of shape (n,)
        (P t)[i] = t[permutation[i]].
    normals : array-like of shape (n,)
        The diagonal of G: normal numbers, or for orthogonal rows numbers of absolute value 1.
    lengths : array-like of shape (n,)
        The diagonal of L: chi-distributed with n degrees for normal rows.

    Returns
    -------
    ndarray of shape (n, n)
        Row i has the length lengths[i].

    Notes
    -----
    Use it to inspect the frequencies; `FastfoodFeatures` never forms this matrix. O(n^2 log n)
    operations.

    Examples
    --------
    >>> from gzkcore.features.fastfood import fastfood_frequencies
    >>> fastfood_frequencies([1, -1], [1, 0], [0.0, 2.0], [1.0, 3.0]).round(6)
    array([[ 0.707107, -0.707107],
           [-2.12132 ,  2.12132 ]])
    """
    B, G, L = (np.asarray(diagonal, np.float64) for diagonal in (signs, normals, lengths))
    mixed = hadamard_transform(np.diag(B)).T[np.asarray(permutation)]  # P H B
    V = hadamard_transform(np.ascontiguousarray((G[:, None] * mixed).T)).T
    scale: Doubles = L / (math.sqrt(B.size) * np.linalg.norm(G))
    return scale[:, None] * V.astype(np.float64, copy=False)


class FastfoodFeatures(KernelMap):
    """Fastfood features: random Fourier features in O(F log d) a row, for wide data.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        `Gaussian`, `Exponential`, `Matern`, `RationalQuadratic`, or an alias, with one scale or one
        for each column: kernels of |x - y|.
    n_components : int, default=1024
        F >= 1, the width of the output, exactly: F/2 cosines, then F/2 sines, of the same
        frequencies. An odd F ends with one cosine of a random phase.
    frequencies : {"orthogonal", "normal"}, default="orthogonal"
        "orthogonal": the frequencies of a block are nearly orthogonal, and each is nearly normal.
        "normal": each is exactly normal, as published. Both cost the same. With 16 to 784 columns
        the error of "orthogonal" was .2 to .9 times that of "normal".
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    signs_, normals_, lengths_ : ndarray of shape (n_blocks, block_size)
        The diagonals of B, G and L of each block, see `fastfood_frequencies`. The block size is
        n_features rounded up to a power of two, at least 16; for orthogonal frequencies at least
        256, or less if one block of F/2 frequencies is enough. Rows are padded with zeros.
    permutation_ : ndarray of int32 of shape (n_blocks, block_size)
    phase_ : float
        Phase of the last column if F is odd.

    See Also
    --------
    RandomFourierFeatures : Independent frequencies; faster up to about fifty columns.

    Notes
    -----
    "orthogonal": the variance is about that of `RandomFourierFeatures` with orthogonal frequencies.
    The bias for the Gaussian, at most .36 / block_size, matters only with about 100,000 features or
    more. For rows that differ by the same amount in two, four or eight columns it is larger: see
    the page on Fastfood.

    "normal": unbiased, with the variance of independent frequencies (`fourier_variance`) for F <=
    2, and up to twice that for larger F.

    Cost: about 2 log2(block_size) + 30 operations for each frequency, on CSR too. Memory: the
    output and four numbers for each frequency.

    References
    ----------
    Le, Sarlos, Smola, Fastfood: Approximating Kernel Expansions in Loglinear Time, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import FastfoodFeatures
    >>> X = np.random.default_rng(0).standard_normal((50, 700))
    >>> features = FastfoodFeatures(n_components=5000, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.1)
    ((50, 5000), True)
    """

    _state = stored(
        signs_=doubles("b", "n"),
        permutation_=ints("b", "n", below=lambda of: of.signs_.shape[1], dtype=np.int32),
        normals_=doubles("b", "n"),
        lengths_=doubles("b", "n"),
        phase_=number(),
    )

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        frequencies: BlockFrequencies = "orthogonal",
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.frequencies = frequencies

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        check_choice("frequencies", self.frequencies, get_args(BlockFrequencies))
        kernel = rows.resolve(as_kernel(self.kernel))
        if not kernel.rotation_invariant:
            raise ValueError(
                f"{kernel!r} depends on the axes, and Fastfood rotates them; use "
                "RandomFourierFeatures, or the kernel Exponential"
            )
        size = max(_LEAST_BLOCK, 1 << (X.shape[1] - 1).bit_length())
        if self.frequencies == "orthogonal":
            filled = 1 << (max(width, 2).bit_length() - 2)
            size = max(size, min(filled, _LEAST_ORTHOGONAL_BLOCK))
        shape = (math.ceil(width / (2 * size)), size)
        rng = generator(self.random_state)
        self.signs_ = 1.0 - 2.0 * rng.integers(0, 2, shape)
        self.permutation_: NDArray[np.int32] = np.stack(
            [rng.permutation(size).astype(np.int32) for _ in range(shape[0])]
        )
        self.normals_ = rng.standard_normal(shape)
        if self.frequencies == "orthogonal":
            self.normals_ *= _NOISE / math.sqrt(size)
            self.normals_ += 1.0 - 2.0 * rng.integers(0, 2, shape)
        chi = np.sqrt(rng.chisquare(size, shape))
        spread = kernel.frequencies(np.ones((chi.size, 1)), rng.random(chi.size))
        self.lengths_ = chi * spread.reshape(shape)
        self.phase_ = float(2 * math.pi * rng.random())
        self.kernel_ = kernel
        warn_if_trivial(kernel, X)

    def _check_state(self) -> None:
        count, size = self.signs_.shape
        most = max(self.n_features_in_, _LEAST_BLOCK)
        if size & (size - 1) or size < most or 2 * count * size < self._n_features_out:
            raise ValueError(
                f"has {count} blocks of {size}; their size is a power of two >= {most}, and they "
                f"make {self._n_features_out} columns"
            )

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        return 8.0 * width + 56.0 * max(width / 2, columns)

    def _flops(self, density: float) -> float:
        return self.signs_.size * (2 * math.log2(self.signs_.shape[1]) + 30)

    def _about(self) -> str:
        return f"{self.signs_.shape[0]} blocks of {self.signs_.shape[1]}"

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        (blocks, size), width = self.signs_.shape, out.shape[1]
        weights = self.kernel_, self.n_features_in_, self.signs_, self.normals_, self.lengths_
        signs, normals, lengths = cast_once(self, X.dtype, _in_half_turns, *weights)
        made = (
            signs, self.permutation_, normals, lengths, width // 2, self.phase_ / math.pi,
            math.sqrt(2 / width), out, stream,
            n_threads(X.shape[0] * blocks * size * (size.bit_length() + 15)),
        )  # fmt: skip
        call_kernel(_fastfood.fastfood_features, _fastfood.fastfood_features_sparse, X, *made)


def _in_half_turns(
    kernel: Kernel, dim: int, signs: Doubles, normals: Doubles, lengths: Doubles, dtype: DTypeLike
) -> tuple[Floats, Floats, Floats]:
    """Return signs, normals and lengths for angles in half turns of unscaled rows."""
    scaled = signs.copy()
    scaled[:, :dim] *= kernel.scale()
    norms = np.linalg.norm(normals, axis=1, keepdims=True)
    turned = lengths / (math.pi * math.sqrt(signs.shape[1]) * norms)
    return contiguous(scaled, dtype), contiguous(normals, dtype), contiguous(turned, dtype)
