"""Kernels of x - y. The Gaussian is also a dot-product kernel."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.special import gammaincinv, kve, ndtr

from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import check_positive, check_positives

from . import tile_form as tile
from .base import Kernel, raise_if_learned
from .dot_product import DotProductKernel
from .points import check_rows_shape, double_rows
from .tile_form import LOG2_E, Factor, Slope, Term, TileForm

__all__ = [
    "Exponential", "Gaussian", "Laplacian", "Matern", "ProductMatern", "RationalQuadratic",
    "Spherical",
]  # fmt: skip

# The median distance is that of at most so many rows.
_SAMPLE = 1000
# exp(-z) times any power of z that occurs is 0 from here on.
_VANISHED = 1e5
# A frequency beyond this is noise at any distance; without a bound heavy tails overflow.
_HIGHEST_FREQUENCY = 2.0**60
# One over the square of a shorter length overflows, once a kernel has multiplied it.
_SHORTEST = 1e-152

# One positive number, or one per column.
PerColumn: TypeAlias = float | Sequence[float] | Doubles
Learned: TypeAlias = Literal["learn", "learn-isotropic"]
Rule: TypeAlias = Literal["scale", "median"] | Learned


class ShiftInvariantKernel(Kernel):
    """k(x, y) = profile(distance between the scaled x and y), 1 at distance 0.

    The distance is (sum_j |x_j - y_j|^p)^(1/p), with p = `distance_power`.
    """

    shift_invariant: ClassVar[bool] = True
    distance_power: ClassVar[int] = 2

    def profile(self, distances: Doubles) -> Doubles:
        """Return the kernel at scaled distances."""
        raise NotImplementedError

    def with_lengths(self, lengths: float | Doubles) -> Self:
        """Return the kernel with one length for all columns, or one for each."""
        raise NotImplementedError

    def profile_of_sums(self, sums: Doubles) -> Doubles:
        """Return the kernel at sum_j |x_j - y_j|^p of scaled x and y."""
        return self.profile(sums if self.distance_power == 1 else np.sqrt(sums))

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return k(x, x) = 1."""
        return np.ones(np.shape(norms))

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) = 1 for every row of X."""
        shape = np.shape(X)
        check_rows_shape(shape)
        self._scale_of(shape[1])
        return np.ones(shape[0])

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return the profile at the scaled distances."""
        scale = self.scale()
        return self.profile(self._distances(X * scale, Y * scale))

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return distances by differences, since profiles with a kink need small ones exactly."""
        distances: Doubles = cdist(X, Y)
        return distances


class _WithGamma(ShiftInvariantKernel):
    """A kernel with a `gamma` that may be a rule, a number or one number per column."""

    learnable: ClassVar[tuple[str, ...]] = ("gamma",)

    def __init__(self, gamma: PerColumn | Rule = "scale") -> None:
        self.gamma = gamma

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if not isinstance(self.gamma, str):
            return {"gamma": check_positives("gamma", self.gamma, X.shape[1])}
        raise_if_learned("gamma", self.gamma)
        if self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                measured = float(_variance(X))
            one, all_of_them = "variance of X", "the variance of X overflows"
            gamma = self._from_variance(X.shape[1], measured) if measured > 0 else 1.0
        elif self.gamma == "median":
            measured = self._median(X)
            one, all_of_them = "median of distances", "distances between rows of X overflow"
            gamma = 1.0 / measured if measured > 0 else 1.0
        else:
            raise self._unknown()
        if not (math.isfinite(measured) and math.isfinite(gamma)):
            small = f"one over the {one}, {measured:.3g}, overflows"
            reason = small if math.isfinite(measured) else all_of_them
            raise ValueError(f"gamma={self.gamma!r} is not possible, since {reason}; scale X")
        return {"gamma": gamma}

    def _from_variance(self, dim: int, variance: float) -> float:
        """Return gamma by the rule "scale"."""
        raise NotImplementedError

    def _median(self, X: Rows) -> float:
        """Return the median of what gamma multiplies over pairs of some rows."""
        rows = double_rows(X[:: max(1, X.shape[0] // _SAMPLE)][:_SAMPLE])
        with np.errstate(over="ignore", invalid="ignore"):
            apart = self._multiplied(rows, rows)[np.triu_indices(rows.shape[0], 1)]
        return float(np.median(apart)) if apart.size else 0.0

    def _multiplied(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return what gamma multiplies: the distances."""
        return self._distances(X, Y)

    def _unknown(self) -> ValueError:
        of_others = " (scikit-learn's 'auto' is 1 / n_features)" * (self.gamma == "auto")
        return ValueError(
            f"gamma={self.gamma!r} is unknown; use a number > 0{of_others}, 'scale', 'median', "
            "'learn' or 'learn-isotropic'"
        )

    def _number(self) -> float | Doubles:
        if self._trusted:
            return cast("float | Doubles", self.gamma)
        raise_if_learned("gamma", self.gamma)
        if isinstance(self.gamma, str) and self.gamma not in ("scale", "median"):
            raise self._unknown()
        if isinstance(self.gamma, str):
            raise ValueError(  # noqa: TRY004  a rule is a legal gamma, only not here
                f"gamma={self.gamma!r} is not a number yet; call resolve(X), or use kernel_ of the "
                "fitted features"
            )
        return check_positives("gamma", self.gamma)

    def scale(self) -> float | Doubles:
        """Return gamma, a number or one per column."""
        return self._number()

    def with_lengths(self, lengths: float | Doubles) -> Self:
        """Return the kernel with gamma = 1 / lengths."""
        return type(self)(gamma=1.0 / lengths)


class Gaussian(_WithGamma, DotProductKernel):
    """Gaussian kernel k(x, y) = exp(-gamma |x - y|^2).

    Parameters
    ----------
    gamma : float, array of shape (n_features,) or rule, default="scale"
        A number > 0, or one per column: then every column has its own lengthscale 1 / sqrt(2
        gamma). "scale": 1 / (n_features Var X) as in scikit-learn. "median": 1 / the median of the
        squared distances between (at most 1,000) rows. "learn": one value per column,
        "learn-isotropic": one for all columns, by the likelihood of y, see `learn_kernel`. `fit`
        turns these rules into numbers.

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> Gaussian(gamma=0.5)([[0.0]], [[1.0]]).round(6)
    array([[0.606531]])
    """

    def scale(self) -> float | Doubles:
        """Return sqrt(2 gamma), a number or one per column."""
        return 2 * np.sqrt(self._number() / 2)  # twice the largest gamma is no float

    def with_lengths(self, lengths: float | Doubles) -> "Gaussian":
        """Return the kernel with gamma = 1 / (2 lengths^2)."""
        return Gaussian(0.5 / np.square(lengths))

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0): exp has 1 everywhere."""
        return np.zeros(np.shape(orders))

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return the normals."""
        return normals

    def log_envelope(self, norms: ArrayLike) -> Doubles:
        """Return -|u|^2 / 2, for scaled norms."""
        return -0.5 * np.square(np.asarray(norms, dtype=np.float64))

    def profile(self, distances: Doubles) -> Doubles:
        """Return exp(-distance^2 / 2)."""
        return self.profile_of_sums(np.square(distances))

    def profile_of_sums(self, sums: Doubles) -> Doubles:
        """Return exp(-sum / 2), for sums of squares."""
        return np.exp(-0.5 * sums)

    def from_products(self, products: Doubles, a: Doubles, b: Doubles) -> Doubles:
        """Return the kernel from scaled dot products <x, y>, all |x|^2 and all |y|^2."""
        return self.profile_of_sums(np.maximum(a[:, None] + b - 2 * products, 0.0))

    def _multiplied(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return what gamma multiplies: the squared distances."""
        return np.square(self._distances(X, Y))

    def by_column(self, dim: int) -> list[Kernel]:
        """Return Gaussians."""
        return [Gaussian(gamma) for gamma in np.broadcast_to(self._number(), dim).tolist()]

    def _from_variance(self, dim: int, variance: float) -> float:
        return 1.0 / (dim * variance)

    def tile_form(self, dim: int) -> TileForm:
        """Return 2^t at minus the squared distance."""
        scale = self.scale() * math.sqrt(LOG2_E / 2)
        slope = Slope(tile.EXPONENTIAL, 2 / LOG2_E)
        return [Term((Factor(scale, tile.PRODUCT, tile.EXPONENTIAL, slope=slope),))]


class Laplacian(_WithGamma):
    """Laplacian kernel k(x, y) = exp(-gamma sum_j |x_j - y_j|).

    It depends on the axes, so it is not a generalized zonal kernel; use `RandomFourierFeatures` for
    it. `Exponential` is the rotation-invariant kernel with the Euclidean distance instead.

    Parameters
    ----------
    gamma : float, array of shape (n_features,) or rule, default="scale"
        > 0, a number or one per column. "scale": 1 / (n_features sd X); "median": 1 / the median of
        the distances between (at most 1,000) rows; "learn" and "learn-isotropic": as for
        `Gaussian`.

    Examples
    --------
    >>> from gzkcore.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(6)
    array([[0.367879]])
    """

    distance_power: ClassVar[int] = 1
    rotation_invariant: ClassVar[bool] = False
    instead: ClassVar[str] = (
        "it depends on the axes; use RandomFourierFeatures, or Exponential, its form for |x - y|"
    )

    def profile(self, distances: Doubles) -> Doubles:
        """Return exp(-distance)."""
        return np.exp(-distances)

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return independent Cauchy coordinates: quantiles of the normals' probabilities."""
        tails = np.tan(math.pi * np.maximum(ndtr(-np.abs(normals)), 1 / _HIGHEST_FREQUENCY))
        values: Doubles = np.copysign(1 / tails, normals)
        return values

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        distances: Doubles = cdist(X, Y, "cityblock")
        return distances

    def by_column(self, dim: int) -> list[Kernel]:
        """Return exponential kernels."""
        return [Exponential(gamma) for gamma in np.broadcast_to(self._number(), dim).tolist()]

    def _from_variance(self, dim: int, variance: float) -> float:
        return 1.0 / (dim * math.sqrt(variance))

    def tile_form(self, dim: int) -> TileForm:
        """Return 2^t at minus the sum of the distances by column."""
        scale, slope = self.scale() * LOG2_E, Slope(tile.EXPONENTIAL, 1 / LOG2_E)
        return [Term((Factor(scale, tile.ABSOLUTE, tile.EXPONENTIAL, slope=slope),))]


class Spherical(ShiftInvariantKernel):
    """Spherical kernel: 1 - 1.5 s + 0.5 s^3 with s = |x - y| / theta, and 0 from s = 1 on.

    It is the overlap of two balls of diameter theta, and positive definite in at most 3 dimensions.

    Parameters
    ----------
    theta : float, default=1.0
        > 0, the distance from which on the kernel is 0.

    Notes
    -----
    Its kink at theta has no short series. Among the features only `BlockFourierFeatures`, with
    blocks of at most 3 coordinates, and `NystromFeatures` approximate it.

    Examples
    --------
    >>> from gzkcore.kernels import Spherical
    >>> Spherical(theta=2.0)([[0.0]], [[1.0], [3.0]])
    array([[0.3125, 0.    ]])
    """

    max_dim: ClassVar[int | None] = 3
    instead: ClassVar[str] = "its kink at theta has no short series; use Matern or Exponential"

    def __init__(self, theta: float = 1.0) -> None:
        self.theta = theta

    def _resolved(self, X: Rows) -> dict[str, Any]:
        _check_flat(X.shape[1])
        return {"theta": check_positive("theta", self.theta)}

    def scale(self) -> float:
        """Return 1 / theta."""
        return 1.0 / check_positive("theta", self.theta)

    def profile(self, distances: Doubles) -> Doubles:
        """Return 1 - 1.5 s + 0.5 s^3, and 0 from s = 1 on."""
        s = np.minimum(distances, 1.0)
        return (1 - s) ** 2 * (1 + s / 2)

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        _check_flat(X.shape[1])
        return super()._distances(X, Y)

    def tile_form(self, dim: int) -> TileForm:
        """Return the compiled profile."""
        _check_flat(dim)
        slope = Slope(tile.SPHERICAL_SLOPE, 1.0)
        return [Term((Factor(self.scale(), tile.DIFFERENCE, tile.SPHERICAL, slope=slope),))]


class RadialKernel(ShiftInvariantKernel):
    """Shift-invariant kernels of |x - y| that are not dot-product kernels.

    Each is a mixture of Gaussians: its frequencies are normal with a random variance.
    """

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return the standard deviation of frequencies at these levels of the mixture."""
        raise NotImplementedError

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return the normals times the mixture's standard deviations."""
        with np.errstate(divide="ignore"):
            spread = np.minimum(self.spread(uniforms), _HIGHEST_FREQUENCY)
        return normals * spread[:, None]


class Exponential(_WithGamma, RadialKernel):
    """Exponential kernel k(x, y) = exp(-gamma |x - y|), the Matern kernel with nu = 1/2.

    Parameters
    ----------
    gamma : float, array of shape (n_features,) or rule, default="scale"
        A number > 0, or one per column: then the kernel is exp(-(sum_j gamma_j^2 (x_j -
        y_j)^2)^(1/2)). "scale": 1 / (n_features Var X)^(1/2); "median": 1 / the median of the
        distances between (at most 1,000) rows; "learn" and "learn-isotropic": as for `Gaussian`.

    Examples
    --------
    >>> from gzkcore.kernels import Exponential
    >>> Exponential(gamma=0.5)([[0.0]], [[2.0]]).round(6)
    array([[0.367879]])
    """

    def profile(self, distances: Doubles) -> Doubles:
        """Return exp(-distance)."""
        return np.exp(-distances)

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return 1 / |a normal number|: the frequencies are Cauchy's."""
        return 1 / _root_of_gamma(uniforms, 0.5)

    def _from_variance(self, dim: int, variance: float) -> float:
        return 1.0 / math.sqrt(dim * variance)

    def tile_form(self, dim: int) -> TileForm:
        """Return the Matern profile of nu = 1/2."""
        slope = Slope(tile.STEEP, 1.0)
        return [Term((Factor(self.scale(), tile.DIFFERENCE, tile.MATERN_12, slope=slope),))]


class _WithLengthScale(ShiftInvariantKernel):
    """A kernel with a `length_scale`, which may be learned, a number or one number per column."""

    learnable: ClassVar[tuple[str, ...]] = ("length_scale",)

    length_scale: PerColumn | Learned

    def _number(self, dim: int | None = None) -> float | Doubles:
        if self._trusted and dim is None:
            return cast("float | Doubles", self.length_scale)
        raise_if_learned("length_scale", self.length_scale)
        lengths = check_positives("length_scale", self.length_scale, dim)
        if np.min(lengths) < _SHORTEST:
            raise ValueError(
                f"length_scale={self.length_scale!r} is too small: one over its square exceeds the "
                f"range of floats; use {_SHORTEST} or more, or scale the columns of X"
            )
        return lengths

    def scale(self) -> float | Doubles:
        """Return 1 / length_scale, a number or one per column."""
        return 1.0 / self._number()

    def with_lengths(self, lengths: float | Doubles) -> Self:
        """Return the kernel with these for length_scale."""
        return type(self)(**self.get_params() | {"length_scale": lengths})


class Matern(_WithLengthScale, RadialKernel):
    """Matern kernel 2^(1-nu) / Gamma(nu) z^nu K_nu(z), z = (2 nu)^(1/2) |x - y| / length_scale.

    Parameters
    ----------
    nu : float or "learn", default=1.5
        Smoothness, 0 < nu <= 150, or np.inf: the Gaussian exp(-|x - y|^2 / (2 length_scale^2)).
        1/2, 3/2 and 5/2 are faster, as they are exponentials times polynomials. "learn": the one of
        these and np.inf that makes y most likely, see `learn_kernel`.
    length_scale : float, array of shape (n_features,), "learn" or "learn-isotropic", default=1.0
        > 0, a number or one per column. "learn": one per column, "learn-isotropic": one for all, by
        the likelihood of y when a model or features are fitted.

    Notes
    -----
    The values are those of `sklearn.gaussian_process.kernels.Matern`.

    Examples
    --------
    >>> from gzkcore.kernels import Matern
    >>> Matern(nu=0.5)([[0.0]], [[1.0]]).round(6)
    array([[0.367879]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("nu", "length_scale")

    def __init__(
        self, nu: float | Literal["learn"] = 1.5, length_scale: PerColumn | Learned = 1.0
    ) -> None:
        self.nu = nu
        self.length_scale = length_scale

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        is_gaussian = isinstance(self.nu, float) and math.isinf(self.nu)
        shown: str = super().__repr__(N_CHAR_MAX)
        return shown + "  # Gaussian" * is_gaussian

    def _resolved(self, X: Rows) -> dict[str, Any]:
        return {"nu": self._check_nu(), "length_scale": self._number(X.shape[1])}

    def _check_nu(self) -> float:
        if self._trusted:
            return cast("float", self.nu)
        raise_if_learned("nu", self.nu)
        if self.nu == math.inf:
            return math.inf
        nu = check_positive("nu", self.nu)
        if nu > 150:
            raise ValueError(f"nu={nu} is too large to be computed; use np.inf, the Gaussian")
        return nu

    def profile(self, distances: Doubles) -> Doubles:
        """Return the kernel at |x - y| / length_scale."""
        nu = self._check_nu()
        if nu == math.inf:
            return np.exp(-0.5 * np.square(distances))
        z = math.sqrt(2 * nu) * distances
        polynomials = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}
        if nu in polynomials:
            z = np.minimum(z, _VANISHED)
            return np.exp(-z) * np.polynomial.polynomial.polyval(z, polynomials[nu])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bessel = np.log(kve(nu, z)) + nu * np.log(z) - z
            values: Doubles = np.exp(bessel + (1 - nu) * math.log(2) - math.lgamma(nu))
        values[z > _VANISHED] = 0.0  # for nu <= 150, too; kve may give NaN
        near = ~np.isfinite(values) | (z == 0)  # K_nu overflows where the kernel is almost 1
        values[near] = 1.0
        term = np.ones(int(near.sum()))
        for j in range(1, min(32, math.ceil(nu))):
            term *= -np.square(z[near] / 2) / (j * (nu - j))
            values[near] += term
        return values

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return (2 nu / chi^2 of 2 nu degrees)^(1/2): the frequencies are Student's t."""
        nu = self._check_nu()
        return np.ones_like(uniforms) if nu == math.inf else 1 / _root_of_gamma(uniforms, nu)

    def tile_form(self, dim: int) -> TileForm:
        """Return a polynomial of degree p times e^-r for nu = p + 1/2 up to 20, else a table."""
        nu = self._check_nu()
        if nu == math.inf:
            return Gaussian(0.5 * self.scale() ** 2)._trust().tile_form(dim)
        scale = self.scale() * math.sqrt(2 * nu)
        if (nu - 0.5) % 1 or nu > 20:
            factor = Factor(
                scale, tile.DIFFERENCE, tile.TABLE,
                slope=Slope(tile.TABLE_SLOPE, 1.0, function=lambda t: _matern_slope(nu, t)),
                function=lambda t: self.profile(np.sqrt(t / (2 * nu))),
                noise=4e-16 * (30 + nu * math.log(1 + nu)),  # exponents of that size, exponentiated
            )  # fmt: skip
            return [Term((factor,))]
        p = int(nu - 0.5)
        if p == 0:
            return Exponential(self.scale())._trust().tile_form(dim)
        c = [  # e^-r is multiplied by this polynomial
            math.comb(p, j) * math.factorial(2 * p - j) * 2**j / math.factorial(2 * p)
            for j in range(p + 1)
        ]
        # -f'(r) / r is (c - c') / r times e^-r, and c - c' begins with r.
        steep = [c[j + 1] - (j + 2) * (c[j + 2] if j + 2 <= p else 0) for j in range(p)]
        profile = {1: tile.MATERN_32, 2: tile.MATERN_52}.get(p, tile.MATERN)
        slope = Slope(tile.MATERN, 1.0, steep)
        return [Term((Factor(scale, tile.PRODUCT, profile, c, slope=slope),))]


class ProductMatern(_WithLengthScale):
    """Product over columns, or groups of columns, of Matern kernels: a separable Matern kernel.

    With r_g = (2 nu)^(1/2) |x - y| / length_scale in the columns of group g, its factors are (1 +
    r_g) exp(-r_g) for nu = 3/2, (1 + r_g + r_g^2 / 3) exp(-r_g) for 5/2. Columns matter more by
    themselves than in `Matern`, a function of one distance. The `Laplacian` is such a product, too.

    Parameters
    ----------
    nu : {1.5, 2.5}, default=1.5
        Smoothness.
    length_scale : float, array of shape (n_features,), "learn" or "learn-isotropic", default=1.0
        > 0, a number or one per column, also within a group. "learn": columns of a group share one,
        "learn-isotropic": all do.
    groups : array-like of int of shape (n_features,), optional
        Columns with the same number, such as those of a category, are one factor, a function of
        their distance. None: every column is a factor.

    Examples
    --------
    >>> from gzkcore.kernels import ProductMatern
    >>> ProductMatern(1.5)([[0.0, 0.0]], [[1.0, 2.0]]).round(6)  # .483358 for 1 times .139731 for 2
    array([[0.06754]])
    """

    distance_power: ClassVar[int] = 0  # it is no function of one distance
    rotation_invariant: ClassVar[bool] = False
    instead: ClassVar[str] = "it depends on the axes; use NystromFeatures, or Matern"

    def __init__(
        self, nu: float = 1.5, length_scale: PerColumn | Learned = 1.0,
        groups: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        self.nu = nu
        self.length_scale = length_scale
        self.groups = groups

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if self.nu not in (1.5, 2.5):
            raise ValueError(
                f"nu={self.nu!r} must be 1.5 or 2.5; use Laplacian for 1/2, Gaussian for infinity, "
                "or a Product of Matern kernels"
            )
        self.groups_of(X.shape[1])
        lengths = self._number(X.shape[1])
        return {"nu": self.nu, "length_scale": lengths, "groups": self.groups}

    def groups_of(self, dim: int) -> Integers:
        """Return the number of each column's factor."""
        groups = np.arange(dim) if self.groups is None else np.asarray(self.groups)
        if groups.shape != (dim,) or groups.dtype.kind not in "iu":
            raise ValueError(f"groups={self.groups!r} must be {dim} integers, one for each column")
        return np.asarray(np.unique(groups, return_inverse=True)[1])

    def _factors(self, dim: int) -> list[tuple[Integers, Matern]]:
        """Return the columns of each factor, and its kernel."""
        groups, lengths = self.groups_of(dim), np.broadcast_to(self.length_scale, dim)
        columns = [np.flatnonzero(groups == group) for group in np.unique(groups)]
        return [(own, Matern(self.nu, lengths[own])._trust()) for own in columns]

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return the product of the factors."""
        values = [kernel(X[:, own], Y[:, own]) for own, kernel in self._factors(X.shape[1])]
        return np.asarray(math.prod(values, start=np.ones((len(X), len(Y)))))

    def tile_form(self, dim: int) -> TileForm:
        """Return a factor for each group, by differences: tiles combine their exponentials."""
        forms = [(own, kernel.tile_form(own.size)[0].factors) for own, kernel in self._factors(dim)]
        pairs = [(own.tolist(), factor) for own, (factor,) in forms]
        return [Term(tuple(replace(f, metric=tile.DIFFERENCE, columns=own) for own, f in pairs))]


class RationalQuadratic(_WithLengthScale, RadialKernel):
    """Rational quadratic kernel (1 + |x - y|^2 / (2 alpha length_scale^2))^(-alpha).

    A mixture of Gaussians of all lengthscales, with the same values as in scikit-learn.

    Parameters
    ----------
    alpha : float, default=1.0
        > 0; the larger, the narrower the mixture.
    length_scale : float, array of shape (n_features,), "learn" or "learn-isotropic", default=1.0
        > 0, a number or one per column; the rules are as for `Matern`.

    Examples
    --------
    >>> from gzkcore.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[1.0]]).round(6)
    array([[0.666667]])
    """

    def __init__(self, alpha: float = 1.0, length_scale: PerColumn | Learned = 1.0) -> None:
        self.alpha = alpha
        self.length_scale = length_scale

    def _resolved(self, X: Rows) -> dict[str, Any]:
        alpha = check_positive("alpha", self.alpha)
        return {"alpha": alpha, "length_scale": self._number(X.shape[1])}

    def profile(self, distances: Doubles) -> Doubles:
        """Return the kernel at |x - y| / length_scale."""
        alpha = check_positive("alpha", self.alpha)
        return np.exp(-alpha * np.log1p(np.square(distances) / (2 * alpha)))

    def tile_form(self, dim: int) -> TileForm:
        """Return a table."""
        alpha = check_positive("alpha", self.alpha)
        steep = Slope(
            tile.TABLE_SLOPE, 1.0,
            function=lambda t: t * np.exp(-(alpha + 1) * np.log1p(t / (2 * alpha))),
        )  # fmt: skip
        factor = Factor(
            self.scale(), tile.PRODUCT, tile.TABLE, slope=steep,
            function=lambda t: np.exp(-alpha * np.log1p(t / (2 * alpha))),
        )  # fmt: skip
        return [Term((factor,))]

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return (a Gamma(alpha) number of mean 1)^(1/2)."""
        return _root_of_gamma(uniforms, check_positive("alpha", self.alpha))


def _root_of_gamma(uniforms: Doubles, shape: float) -> Doubles:
    """Return quantiles of the root of a Gamma number of mean 1."""
    values: Doubles = np.sqrt(gammaincinv(shape, uniforms) / shape)
    return values


def _matern_slope(nu: float, t: Doubles) -> Doubles:
    """Return -r f'(r) of f(r) = 2^(1-nu) / Gamma(nu) r^nu K_nu(r), at t = r^2."""
    r = np.sqrt(t)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithm = np.log(kve(nu - 1, r)) + (nu + 1) * np.log(r) - r
        values = np.exp(logarithm + (1 - nu) * math.log(2) - math.lgamma(nu))
    values[r > _VANISHED] = 0.0
    near = ~np.isfinite(values) | (r == 0)  # K overflows for a large nu only, where this is right
    return np.where(near, t / (2 * max(nu - 1, 1)), values)


def _check_flat(dim: int) -> None:
    if dim > 3:
        raise ValueError(
            f"Spherical is not positive definite in {dim} dimensions, only in up to 3; use Matern "
            "or Exponential"
        )


def _variance(X: Rows) -> float:
    """Return the variance of all entries of X, as scikit-learn's "scale" uses it, in double."""
    if not isinstance(X, np.ndarray):
        mean = X.sum(dtype=np.float64) / (X.shape[0] * X.shape[1])
        squares = X.multiply(X).sum(dtype=np.float64) / (X.shape[0] * X.shape[1])
        return float(squares - mean * mean)
    count, mean, spread = 0, 0.0, 0.0
    for start in range(0, X.shape[0], 65536):
        tile = np.asarray(X[start : start + 65536], dtype=np.float64)
        shift = tile.mean() - mean
        spread += tile.var() * tile.size + shift * shift * count * tile.size / (count + tile.size)
        count += tile.size
        mean += shift * tile.size / count
    return spread / count
