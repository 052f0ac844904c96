"""Random Fourier features: a shift-invariant kernel is the mean of a cosine over frequencies.

k(x - y) = E cos(w.(x - y)) for w from the kernel's spectrum, and cos(w.(x - y)) =
cos(w.x) cos(w.y) + sin(w.x) sin(w.y): each frequency gives two columns, in any dimension.
"""

import math
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.special import gammainc, gammainccinv, ndtri

from gzkcore._compiled import directions as _directions
from gzkcore._compiled import fourier as _fourier
from gzkcore._compiled import variances as _variances
from gzkcore._util.random import generator
from gzkcore._util.state import doubles, number, stored
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Doubles, Floats, Rows, Seed
from gzkcore._util.validation import (
    as_floats,
    check_choice,
    check_integer,
    check_out,
    check_positive,
)
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.shift_invariant import Gaussian
from gzkcore.sphere.directions import sample_directions, sobol_points

from .base import (
    FEW_COLUMNS,
    LANES,
    KernelMap,
    cast_once,
    contiguous,
    packed,
    tiles,
    warn_if_trivial,
)
from .fit_rows import FitRows

__all__ = [
    "ModifiedFourierFeatures",
    "RandomFourierFeatures",
    "fourier_features",
    "fourier_variance",
    "modified_weight",
    "sample_frequencies",
]

FrequencyRule: TypeAlias = Literal["iid", "orthogonal", "qmc"]
FREQUENCIES: tuple[FrequencyRule, ...] = get_args(FrequencyRule)

# The largest dimension for importance sampling, whose variance grows fast.
_MOST_DIMS_MODIFIED = 3
# The dimensions of Sobol's sequence.
_MOST_DIMS_SOBOL = 21201


def fourier_features(X: ArrayLike, W: ArrayLike, n_components: int, phase: float = 0.0) -> Floats:
    """Evaluate sqrt(2/F) [cos(w_j.x), sin(w_j.x)] for F columns, as `RandomFourierFeatures` does.

    All cosines come first, then all sines. An odd F ends with sqrt(2/F) cos(w.x + phase).

    Parameters
    ----------
    X : array-like of shape (n_samples, dim)
        float32 stays float32, everything else becomes float64.
    W : array-like of shape (n_frequencies, dim)
        At least ceil(F / 2) frequencies.
    n_components : int
        F >= 1.
    phase : float, default=0.0
        Phase of the last column if F is odd.

    Returns
    -------
    ndarray of shape (n_samples, F)

    Notes
    -----
    2 d flops for each frequency, and about 25 more for its cosine and sine. The error of the cosine
    of an angle a is a few roundings of |a|, plus those of the product.

    Examples
    --------
    >>> from gzkcore.features.fourier import fourier_features
    >>> fourier_features([[0.0]], [[1.0], [5.0]], 4).round(6)
    array([[0.707107, 0.707107, 0.      , 0.      ]])
    """
    X = as_floats("X", X)
    W = np.asarray(W, dtype=np.float64)
    n_components = check_integer("n_components", n_components, 1)
    if X.ndim != 2 or W.ndim != 2 or X.shape[1] != W.shape[1]:
        raise ValueError(
            f"X has shape {X.shape} and W {W.shape}; pass points and frequencies as rows of equal "
            "length"
        )
    if W.shape[0] < -(-n_components // 2):
        raise ValueError(
            f"n_components={n_components} needs {-(-n_components // 2)} frequencies, but W has "
            f"{W.shape[0]}"
        )
    out = check_out(None, (X.shape[0], n_components), X.dtype)
    _fill(X, _half_turns(W[: -(-n_components // 2)], X.dtype), phase, out, False)
    return out


def fourier_variance(k: ArrayLike, k_double: ArrayLike, n_components: int) -> Any:
    """Variance of z(x).z(y) over independent frequencies, and over the phase.

    Parameters
    ----------
    k, k_double : float or array-like
        The kernel at the difference D = x - y, and at 2 D, broadcast together.
    n_components : int
        F >= 1.

    Returns
    -------
    float, or ndarray of the shape of k and k_double together
        (2/F) (1/2 + k(2D)/2 - k(D)^2) for an even F, very slightly more for an odd F.

    Examples
    --------
    >>> from gzkcore.features.fourier import fourier_variance
    >>> round(fourier_variance(0.8, 0.4, 100), 6)
    0.0012
    """
    n_components = check_integer("n_components", n_components, 1)
    once, twice = np.broadcast_arrays(
        np.asarray(k, dtype=np.float64), np.asarray(k_double, dtype=np.float64)
    )
    out = np.empty(once.shape)
    _variances.fourier_variance(
        once.ravel(), twice.ravel(), n_components, out.ravel(), n_threads(out.size)
    )
    return out if out.ndim else float(out)


def modified_weight(w: ArrayLike, radius: float, outside: float) -> Any:
    """Return the weight of a frequency drawn uniformly from a ball instead of from the density p.

    p is the normal density. With q(w) = (1 - outside) / volume in the ball and q = p outside it,
    E_q[p/q cos(w.D)] = k(D). `ModifiedFourierFeatures` has these weights.

    Parameters
    ----------
    w : array-like of shape (dim,) or (m, dim)
    radius : float
        Radius of the ball.
    outside : float
        The probability P(|w| > radius) under p.

    Returns
    -------
    float, or ndarray of shape (m,)
        sqrt(p / q), the factor of the columns of this frequency.

    Examples
    --------
    >>> from gzkcore.features.fourier import modified_weight
    >>> round(modified_weight([0.0], 4.0, 0.0) ** 2, 6)  # 8 / sqrt(2 pi)
    3.191538
    """
    frequencies = np.ascontiguousarray(w, dtype=np.float64)
    rows = np.atleast_2d(frequencies)
    out = np.empty(len(rows))
    _directions.modified_weights(rows, radius, outside, out, n_threads(rows.size))
    return out if frequencies.ndim > 1 else float(out[0])


def sample_frequencies(
    kernel: Kernel,
    n_frequencies: int,
    dim: int,
    frequencies: FrequencyRule = "iid",
    rng: Seed = None,
) -> Doubles:
    """Draw frequencies from the spectrum of a kernel, as `RandomFourierFeatures` does.

    Parameters
    ----------
    kernel : Kernel
        Shift-invariant, with all parameters as numbers.
    n_frequencies, dim : int
        m >= 1 and d >= 1.
    frequencies : {"iid", "orthogonal", "qmc"}, default="iid"
        "iid": independent; "orthogonal": blocks of d orthogonal ones, of random lengths (not for
        `Laplacian`, which depends on the axes); "qmc": a scrambled Sobol sequence by quantiles.
    rng : None, int, RandomState, Generator or SeedSequence
        Seed or source of the draws.

    Returns
    -------
    ndarray of shape (n_frequencies, dim), float64
        Frequencies w in units of 1 / X: k(x, y) = E cos(w.(x - y)).

    Notes
    -----
    Each frequency by itself has the distribution of the spectrum in every case, so that means of
    cosines are unbiased. Cost: O(m d) operations, for "orthogonal" O(m d min(m, d)).

    Examples
    --------
    >>> from gzkcore import Gaussian
    >>> from gzkcore.features.fourier import sample_frequencies
    >>> sample_frequencies(Gaussian(gamma=0.5), 4, 3, "orthogonal", rng=0).shape
    (4, 3)
    """
    m = check_integer("n_frequencies", n_frequencies, 1)
    dim = check_integer("dim", dim, 1)
    check_choice("frequencies", frequencies, FREQUENCIES)
    draws = generator(rng)
    if frequencies == "orthogonal":
        if not kernel.rotation_invariant:
            raise ValueError(
                f"frequencies='orthogonal' needs a kernel of |x - y|, but {type(kernel).__name__} "
                "depends on the axes; use frequencies='iid' or 'qmc', or the kernel Exponential"
            )
        normals = sample_directions(m, dim, "orthogonal", draws)
        normals = normals * np.sqrt(draws.chisquare(dim, m))[:, None]
        uniforms = draws.random(m)
    elif frequencies == "qmc":
        if dim >= _MOST_DIMS_SOBOL:
            raise ValueError(
                f"frequencies='qmc' is for less than {_MOST_DIMS_SOBOL} columns, but there are "
                f"{dim}; use 'orthogonal', which is as accurate there"
            )
        points = sobol_points(m, dim + 1, draws)
        uniforms, normals = points[:, 0], ndtri(points[:, 1:])
    else:
        normals, uniforms = draws.standard_normal((m, dim)), draws.random(m)
    drawn: Doubles = kernel.frequencies(normals, uniforms) * kernel.scale()
    return drawn


class _Fourier(KernelMap):
    """Base of the maps of cosines and sines, with `frequencies_` and `phase_`."""

    _state = stored(
        frequencies_=doubles(lambda of: -(-of._n_features_out // 2), "n_features_in_"),
        phase_=number(),
    )

    frequencies_: Doubles
    phase_: float

    def _bytes(self, width: int, rows: int, columns: int) -> float:
        # Frequencies, their half turns, and up to three copies while they are drawn.
        return 8.0 * width * (1 + 2.5 * columns)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        W = cast_once(self, X.dtype, _half_turns, self.frequencies_)
        _fill(X, W, self.phase_, out, stream)

    def _flops(self, density: float) -> float:
        return self._n_features_out * (density * float(self.n_features_in_) + 25)

    def _about(self) -> str:
        return f"{self.frequencies_.shape[0]} frequencies"


class RandomFourierFeatures(_Fourier):
    """Random Fourier features of a shift-invariant kernel, in any dimension.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        `Gaussian`, `Laplacian`, `Exponential`, `Matern`, `RationalQuadratic`, or an alias, with one
        scale or one for each column; any kernel with a method `frequencies`.
    n_components : int, default=1024
        F >= 1, the width of the output: F/2 cosines, then F/2 sines, of the same frequencies. An
        odd F ends with one cosine of a random phase.
    frequencies : {"iid", "orthogonal", "qmc"}, default="iid"
        "iid": independent, as published. "orthogonal": blocks of n_features orthogonal frequencies,
        with a smaller error if there are at least as many frequencies as columns. "qmc": a
        scrambled Sobol sequence, with a smaller error up to some ten columns.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel, with all parameters as numbers.
    frequencies_ : ndarray of shape (ceil(F / 2), n_features)
        In units of 1 / X.
    phase_ : float
        Phase of the last column if F is odd.

    See Also
    --------
    FastfoodFeatures : The same in O(F log n_features) for each row.
    GegenbauerFeatures : Far more accurate in low dimension.

    Notes
    -----
    Unbiased: the mean of z(x).z(y) over random states is k(x, y). The variance for independent
    frequencies is (2/F) (1/2 + k(2 D)/2 - k(D)^2), D = x - y (`fourier_variance`): 0 at D = 0, at
    most 1 / F for distant rows. Rows of features have the norm 1 (even F).

    Cost: (n_features + 25) F operations a row; CSR takes only those of its entries. Memory: the
    output and the frequencies. With more than 32 columns BLAS computes the products, but on CSR. In
    float32 the error of an angle is 6e-8 times the angle: centre data that are far from 0.

    References
    ----------
    Rahimi, Recht, Random Features for Large-Scale Kernel Machines, 2007 (iid); Yu et al.,
    Orthogonal Random Features, 2016; Yang et al., Quasi-Monte Carlo Feature Maps, 2014 (qmc).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Matern, RandomFourierFeatures
    >>> X = np.random.default_rng(0).standard_normal((100, 8))
    >>> features = RandomFourierFeatures(Matern(nu=2.5, length_scale=3.0), 4096, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> Z.shape, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.1)
    ((100, 4096), True)
    """

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        frequencies: FrequencyRule = "iid",
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.frequencies = frequencies

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        kernel = rows.resolve(as_kernel(self.kernel))
        rng = generator(self.random_state)
        self.frequencies_ = sample_frequencies(
            kernel, -(-width // 2), X.shape[1], self.frequencies, rng
        )
        self.phase_ = float(2 * math.pi * rng.random())
        self.kernel_ = kernel
        warn_if_trivial(kernel, X)


class ModifiedFourierFeatures(_Fourier):
    """Fourier features with uniformly drawn frequencies, for ridge regression in 1 to 3 dimensions.

    With a small ridge, rare frequencies of the Gaussian's spectrum matter as much as common ones.
    So frequencies are drawn uniformly inside the ball of radius sqrt(2 log(n / alpha)), and from
    the spectrum outside it. The weights sqrt(p / q) keep the kernel unbiased.

    Parameters
    ----------
    kernel : str or Gaussian, default="gaussian"
    n_components : int, default=1024
        F >= 1, the width of the output, as for `RandomFourierFeatures`.
    alpha : float, default=1.0
        > 0, the ridge that the features are for.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Gaussian
        The exact kernel, with all parameters as numbers.
    frequencies_ : ndarray of shape (ceil(F / 2), n_features)
    weights_ : ndarray of shape (ceil(F / 2),)
        sqrt(p / q) of each frequency.
    phase_ : float
        Phase of the last column if F is odd.
    radius_ : float
        Radius of the ball, in units of the spectrum's standard deviation.

    Notes
    -----
    Unbiased, but with a larger variance than `RandomFourierFeatures`: at D = 0 it is about V (4
    pi)^(-d/2) (2 / F) for the ball's volume V, too large to be useful with more than 3 columns. The
    gain is that a ridge regression needs fewer features. The constants of the theorem (a density of
    thousands over ten times this radius) ask for more features than there are data; these are
    practical ones.

    References
    ----------
    Avron, Kapralov, Musco, Musco, Velingker, Zandieh, Random Fourier Features for Kernel Ridge
    Regression: Approximation Bounds and Statistical Guarantees, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import ModifiedFourierFeatures
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 1))
    >>> features = ModifiedFourierFeatures("gaussian", 512, alpha=1e-3, random_state=0)
    >>> Z = features.fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 0.5)
    True
    """

    _state = stored(
        radius_=number(0),
        weights_=doubles(lambda of: -(-of._n_features_out // 2)),
    )

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        alpha: float = 1.0,
        random_state: Seed = None,
    ) -> None:
        super().__init__(kernel, n_components, random_state=random_state)
        self.alpha = alpha

    def _fit(self, rows: FitRows) -> None:
        X, width = rows.X, self._n_features_out
        kernel = rows.resolve(as_kernel(self.kernel))
        if not isinstance(kernel, Gaussian):
            raise ValueError(  # noqa: TRY004  it is a kernel, only not for this
                f"kernel={kernel!r} is not possible: this density is known to be good for the "
                "Gaussian only; use Gaussian, or RandomFourierFeatures"
            )
        dim = X.shape[1]
        if dim > _MOST_DIMS_MODIFIED:
            raise ValueError(
                f"X has {dim} columns, but the variance of ModifiedFourierFeatures is too large "
                f"beyond {_MOST_DIMS_MODIFIED}; use RandomFourierFeatures"
            )
        share = X.shape[0] / check_positive("alpha", self.alpha)
        radius = math.sqrt(2 * math.log(max(share, math.e)))
        rng = generator(self.random_state)
        normals = _spread_evenly(-(-width // 2), dim, radius, rng)
        self.radius_ = radius
        self.weights_ = modified_weight(normals, radius, _normal_outside(dim, radius))
        self.frequencies_ = normals * kernel.scale()
        self.phase_ = float(2 * math.pi * rng.random())
        self.kernel_ = kernel
        warn_if_trivial(kernel, X)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        weights = self.frequencies_, self.weights_, self._n_features_out
        W, factors = cast_once(self, X.dtype, _weighted_half_turns, *weights)
        for rows in tiles(X.shape[0], out.itemsize * out.shape[1]):
            _fill(X[rows], W, self.phase_, out[rows], False)
            out[rows] *= factors


def _half_turns(frequencies: Doubles, dtype: DTypeLike) -> Floats:
    """Return frequencies over pi as columns, padded with zeros to whole vectors."""
    count, dim = frequencies.shape
    W = np.zeros((dim, -(-count // LANES) * LANES), dtype=dtype)
    W[:, :count] = contiguous(frequencies.T / math.pi, dtype)
    return W


def _weighted_half_turns(
    frequencies: Doubles, weights: Doubles, width: int, dtype: DTypeLike
) -> tuple[Floats, Floats]:
    """Return frequencies in half turns, and the weight of each column of the features."""
    factors = np.concatenate([weights[: width // 2], weights])
    return _half_turns(frequencies, dtype), factors.astype(dtype)


def _fill(X: Rows, W: Floats, phase: float, out: Floats, stream: bool) -> None:
    """Write the features of rows, dense or CSR, for frequencies in half turns."""
    dim, width = len(W), out.shape[1]
    rest = (width // 2, phase / math.pi, math.sqrt(2 / width), out)
    if not isinstance(X, np.ndarray):
        threads = n_threads((X.nnz + 12 * X.shape[0]) * W.shape[1])
        _fourier.fourier_features_sparse(X.data, X.indices, X.indptr, W, *rest, stream, threads)
        return
    blas, threads = dim > FEW_COLUMNS, n_threads((dim + 12) * X.shape[0] * W.shape[1])
    if not blas:
        _fourier.fourier_features(packed(X), W, *rest, False, stream, threads)
        return
    with limit_blas(1):
        _fourier.fourier_features(packed(X), W, *rest, True, stream, threads)


def _normal_outside(dim: int, radius: float) -> float:
    """Return P(|w| > radius) for a standard normal w."""
    return float(1 - gammainc(dim / 2, radius**2 / 2))


def _spread_evenly(m: int, dim: int, radius: float, rng: np.random.Generator) -> Doubles:
    """Draw uniformly in a ball, and outside it from the normal distribution."""
    directions = sample_directions(m, dim, "iid", rng)
    outside = _normal_outside(dim, radius)
    level = rng.random(m)  # quantiles of the norms, of which a share `outside` is beyond the ball
    inner = radius * (np.maximum(level - outside, 0.0) / (1 - outside)) ** (1 / dim)
    outer = np.sqrt(2 * gammainccinv(dim / 2, np.minimum(level, outside)))
    norms: Doubles = np.where(level < outside, outer, inner)
    return directions * norms[:, None]
