"""The exact kernels; each knows what its approximations need.

A kernel stores its arguments untouched (`get_params`, `set_params`, `clone` work); `resolve(X)`
returns a copy in which every parameter is a number, and only a resolved kernel can be evaluated.

The kernels of which features can be made come in four families. Each says, in its own terms, what
its radial functions h_l are in k(x, y) = sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos) (Definition 3), and
`series.RadialFunctions` turns that into features:

=============  ============================================  =====================================
family         k(x, y)                                       what it tells
=============  ============================================  =====================================
"dot product"  kappa(<x, y>) e(|x|) e(|y|)                   `log_derivative(orders)`: Taylor's at
                                                             0, `log_envelope(norms)`: log e
"angular"      (|x| |y|)^power kappa(cos)                    `power`, `series(dim, degree)`: c_l,
                                                             `noise(dim, degree)`, `at_one(dim)`
"radial"       f(|x - y|), no dot product                    `profile(distances)`: f
"general"      sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos)         `radial_values(norms)`: h_l
=============  ============================================  =====================================

All of them have `scale()`, by which the inputs are multiplied first, a number or one per column,
and `diagonal(norms)`, k(x, x) at scaled norms; `shift_invariant` says whether the data may be
centred, `unit_sphere` whether the kernel has a meaning for unit rows only. Random Fourier features
ask `frequencies(normals, uniforms)`: draws of the spectrum of the scaled kernel.
"""

import difflib
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.special import gammaincinv, gammaln, kve, ndtr
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances

from gzkcore._util.model_io import stored
from gzkcore._util.typing import Data, Doubles, Family, Function, Rows
from gzkcore._util.validation import check_integer, check_positive, check_positives
from gzkcore._util.wording import counted
from gzkcore.sphere.series import gegenbauer_series, polynomials, series_noise, zonal_sum
from gzkcore.sphere.special import log_alpha

__all__ = [
    "ArcCosine",
    "DotProduct",
    "Exponential",
    "ExponentialDot",
    "Gaussian",
    "GeneralizedZonal",
    "Kernel",
    "Laplacian",
    "Matern",
    "NeuralTangent",
    "Polynomial",
    "RationalQuadratic",
    "SphereHeat",
    "SphereMatern",
    "Spherical",
    "Zonal",
    "as_kernel",
]

# Rows looked at for the median distance and for the sanity check after fit.
_SAMPLE = 1000

# Where a series is cut that is evaluated as such, and what may be missing there.
_LONGEST_SERIES, _MISSING = 4096, 1e-14

# A frequency beyond this is noise at any distance; without a bound heavy tails overflow.
_HIGHEST_FREQUENCY = 2.0**60

# One positive number, or one per column.
PerColumn: TypeAlias = float | Sequence[float] | Doubles
Rule: TypeAlias = Literal["scale", "median"]


class Kernel(BaseEstimator):
    """Base of all kernels: `k(X, Y)` is the exact matrix, `k.diag(X)` its diagonal."""

    family: ClassVar[Family | None] = None  # None: no features of this package
    instead: ClassVar[str] = ""  # what to use then
    shift_invariant: ClassVar[bool] = False
    unit_sphere: ClassVar[bool] = False

    @property
    def defined_at_zero(self) -> bool:
        """Whether a row of zeros has a kernel value."""
        return True

    def resolve(self, X: Rows) -> Self:
        """Return a copy with every parameter checked, and a number, on the data X."""
        return type(self)(**self._resolved(X))

    def _resolved(self, X: Rows) -> dict[str, Any]:
        """Return the parameters as numbers, or raise."""
        raise NotImplementedError

    def scale(self) -> float | Doubles:
        """Return the factor, or one per column, by which the inputs are multiplied."""
        return 1.0

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return k(x, x) at scaled norms |x|."""
        raise NotImplementedError

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Turn draws into frequencies w of the scaled kernel, k(x, y) = E cos(w.(x - y)).

        Parameters
        ----------
        normals : ndarray of shape (n_frequencies, dim)
            Standard normal, or evenly spread as they are.
        uniforms : ndarray of shape (n_frequencies,)
            Uniform in (0, 1), independent of the normals: a frequency's share of the mixture.

        Returns
        -------
        ndarray of shape (n_frequencies, dim)
            ValueError if the kernel has no spectrum to draw from.
        """
        raise ValueError(
            f"{self!r} has no spectrum to draw frequencies from; use a shift-invariant kernel "
            "(Gaussian, Laplacian, Exponential, Matern, RationalQuadratic), or GegenbauerFeatures"
        )

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        raise NotImplementedError

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        return self.diagonal(_norms(self._scaled(_dense(X))))

    def _scaled(self, X: Doubles) -> Doubles:
        scale = self.scale()
        if np.ndim(scale) == 1 and np.size(scale) != X.shape[1]:
            raise ValueError(
                f"{self!r} has parameters for {counted(np.size(scale), 'column')}, but X has "
                f"{X.shape[1]}; pass one number, or one for each column"
            )
        scaled: Doubles = X * scale
        return scaled


# ---- shift-invariant kernels


class ShiftInvariantKernel(Kernel):
    """k(x, y) = profile(distance between the scaled x and y), 1 at distance 0."""

    shift_invariant: ClassVar[bool] = True

    def profile(self, distances: Doubles) -> Doubles:
        """Return the kernel at scaled distances."""
        raise NotImplementedError

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return k(x, x) = 1."""
        return np.ones(np.shape(norms))

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) = 1 for every row of X."""
        self.scale()
        return np.ones(X.shape[0])

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        X = self._scaled(_dense(X))
        Y = X if Y is None else self._scaled(_dense(Y))
        return self.profile(self._distances(X, Y))

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        """Distances by differences: profiles with a kink at 0 need the small ones exactly."""
        distances: Doubles = cdist(X, Y)
        return distances


class _WithGamma(ShiftInvariantKernel):
    """A kernel with a `gamma` that may be a rule, a number or one number per column."""

    gamma: PerColumn | Rule

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if not isinstance(self.gamma, str):
            return {"gamma": check_positives("gamma", self.gamma, X.shape[1])}
        if self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                variance = _variance(X)
            if not math.isfinite(variance):
                raise ValueError("gamma='scale', but the variance of X overflows; scale X")
            return {"gamma": self._from_spread(X.shape[1], variance)}
        if self.gamma == "median":
            return {"gamma": self._from_median(X)}
        raise ValueError(f"gamma={self.gamma!r} is unknown; use a number > 0, 'scale' or 'median'")

    def _from_spread(self, dim: int, variance: float) -> float:
        raise NotImplementedError

    def _from_median(self, X: Rows) -> float:
        """Return 1 / the median of the distances, as gamma multiplies them, of some rows."""
        rows = _dense(X[:: max(1, X.shape[0] // _SAMPLE)][:_SAMPLE])
        apart = self._distances(rows, rows)[np.triu_indices(rows.shape[0], 1)]
        middle = float(np.median(apart)) if apart.size else 0.0
        return 1.0 / middle if middle > 0 else 1.0

    def _number(self) -> float | Doubles:
        if isinstance(self.gamma, str):
            raise ValueError(  # noqa: TRY004  a rule is a legal gamma, only not here
                f"gamma={self.gamma!r} is not a number yet; call resolve(X), or use kernel_ of the "
                "fitted features"
            )
        return check_positives("gamma", self.gamma)

    def scale(self) -> float | Doubles:
        """Return gamma, a number or one per column."""
        return self._number()


class Laplacian(_WithGamma):
    """Laplacian kernel k(x, y) = exp(-gamma sum_j |x_j - y_j|).

    It depends on the axes, hence is no generalized zonal kernel: its features are
    `RandomFourierFeatures`. `Exponential`, with the ordinary distance, is its rotation-invariant
    sibling.

    Parameters
    ----------
    gamma : float, array of shape (n_features,), "scale" or "median", default="scale"
        > 0, a number or one per column. "scale": 1 / (n_features sd X); "median": 1 / the median of
        the distances between (at most 1,000) rows.

    Examples
    --------
    >>> from gzkcore.kernels import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(6)
    array([[0.367879]])
    """

    instead: ClassVar[str] = (
        "it depends on the axes; use RandomFourierFeatures, or Exponential, its form for |x - y|"
    )

    def __init__(self, gamma: PerColumn | Rule = "scale") -> None:
        self.gamma = gamma

    def profile(self, distances: Doubles) -> Doubles:
        """Return exp(-distance)."""
        values: Doubles = np.exp(-distances)
        return values

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return independent Cauchy coordinates: the quantile of each normal's probability."""
        tails = np.tan(math.pi * np.maximum(ndtr(-np.abs(normals)), 1 / _HIGHEST_FREQUENCY))
        values: Doubles = np.copysign(1 / tails, normals)
        return values

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        distances: Doubles = cdist(X, Y, "cityblock")
        return distances

    def _from_spread(self, dim: int, variance: float) -> float:
        return 1.0 / (dim * math.sqrt(variance)) if variance > 0 else 1.0


class Spherical(ShiftInvariantKernel):
    """Spherical kernel: 1 - 1.5 s + 0.5 s^3 with s = |x - y| / theta, and 0 from s = 1 on.

    The overlap of two balls of diameter theta, hence positive definite in at most 3 dimensions.

    Parameters
    ----------
    theta : float, default=1.0
        > 0, the distance from which on the kernel is 0.

    Notes
    -----
    Its kink at theta has no short series; no features of this package stand for it.

    Examples
    --------
    >>> from gzkcore.kernels import Spherical
    >>> Spherical(theta=2.0)([[0.0]], [[1.0], [3.0]])
    array([[0.3125, 0.    ]])
    """

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
        values: Doubles = (1 - s) ** 2 * (1 + s / 2)
        return values

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        _check_flat(X.shape[1])
        return super()._distances(X, Y)


class RadialKernel(ShiftInvariantKernel):
    """Shift-invariant kernels of |x - y| that are no dot-product kernels.

    Each is a mixture of Gaussians: its frequencies are normal with a random variance.
    """

    family: ClassVar[Family | None] = "radial"

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return the standard deviation of frequencies at these levels of the mixture."""
        raise NotImplementedError

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return the normals times the mixture's standard deviations."""
        with np.errstate(divide="ignore"):
            spread = np.minimum(self.spread(uniforms), _HIGHEST_FREQUENCY)
        values: Doubles = normals * spread[:, None]
        return values


class Exponential(_WithGamma, RadialKernel):
    """Exponential kernel k(x, y) = exp(-gamma |x - y|), the rough end of the Matern family.

    Parameters
    ----------
    gamma : float, array of shape (n_features,), "scale" or "median", default="scale"
        > 0; with one value per column the distance is (sum_j gamma_j^2 (x_j - y_j)^2)^(1/2).
        "scale": 1 / (n_features Var X)^(1/2); "median": 1 / the median of the distances between (at
        most 1,000) rows.

    Examples
    --------
    >>> from gzkcore.kernels import Exponential
    >>> Exponential(gamma=0.5)([[0.0]], [[2.0]]).round(6)
    array([[0.367879]])
    """

    def __init__(self, gamma: PerColumn | Rule = "scale") -> None:
        self.gamma = gamma

    def profile(self, distances: Doubles) -> Doubles:
        """Return exp(-distance)."""
        values: Doubles = np.exp(-distances)
        return values

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return 1 / |a normal number|: the frequencies are Cauchy's."""
        return _student_spread(uniforms, 0.5)

    def _from_spread(self, dim: int, variance: float) -> float:
        return 1.0 / math.sqrt(dim * variance) if variance > 0 else 1.0


class Matern(RadialKernel):
    """Matern kernel 2^(1-nu) / Gamma(nu) z^nu K_nu(z), z = (2 nu)^(1/2) |x - y| / length_scale.

    Parameters
    ----------
    nu : float, default=1.5
        Smoothness, 0 < nu <= 150, or np.inf: the Gaussian exp(-|x - y|^2 / (2 length_scale^2)).
        1/2, 3/2 and 5/2 are exponentials times polynomials, and faster.
    length_scale : float or array of shape (n_features,), default=1.0
        > 0, a number or one per column.

    Notes
    -----
    The values are those of `sklearn.gaussian_process.kernels.Matern`.

    Examples
    --------
    >>> from gzkcore.kernels import Matern
    >>> Matern(nu=0.5)([[0.0]], [[1.0]]).round(6)
    array([[0.367879]])
    """

    def __init__(self, nu: float = 1.5, length_scale: PerColumn = 1.0) -> None:
        self.nu = nu
        self.length_scale = length_scale

    def _resolved(self, X: Rows) -> dict[str, Any]:
        scale = check_positives("length_scale", self.length_scale, X.shape[1])
        return {"nu": self._check_nu(), "length_scale": scale}

    def _check_nu(self) -> float:
        if self.nu == math.inf:
            return math.inf
        nu = check_positive("nu", self.nu)
        if nu > 150:
            raise ValueError(f"nu={nu} is too large to compute with; use np.inf, the Gaussian")
        return nu

    def scale(self) -> float | Doubles:
        """Return 1 / length_scale, a number or one per column."""
        return 1.0 / check_positives("length_scale", self.length_scale)

    def profile(self, distances: Doubles) -> Doubles:
        """Return the kernel at |x - y| / length_scale."""
        nu = self._check_nu()
        if nu == math.inf:
            values: Doubles = np.exp(-0.5 * np.square(distances))
            return values
        z = math.sqrt(2 * nu) * distances
        polynomials = {0.5: (1.0,), 1.5: (1.0, 1.0), 2.5: (1.0, 1.0, 1 / 3)}
        if nu in polynomials:
            values = np.exp(-z)
            values *= np.polynomial.polynomial.polyval(z, polynomials[nu])
            return values
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bessel = np.log(kve(nu, z)) + nu * np.log(z) - z
            values = np.exp(bessel + (1 - nu) * math.log(2) - math.lgamma(nu))
        values[z > 1e5] = 0.0  # nu <= 150: far below the smallest number, and kve may give NaN
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
        return np.ones_like(uniforms) if nu == math.inf else _student_spread(uniforms, nu)


class RationalQuadratic(RadialKernel):
    """Rational quadratic kernel (1 + |x - y|^2 / (2 alpha length_scale^2))^(-alpha).

    A mixture of Gaussians of all lengthscales; the values are those of scikit-learn's.

    Parameters
    ----------
    alpha : float, default=1.0
        > 0; the larger, the narrower the mixture.
    length_scale : float or array of shape (n_features,), default=1.0
        > 0, a number or one per column.

    Examples
    --------
    >>> from gzkcore.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=1.0)([[0.0]], [[1.0]]).round(6)
    array([[0.666667]])
    """

    def __init__(self, alpha: float = 1.0, length_scale: PerColumn = 1.0) -> None:
        self.alpha = alpha
        self.length_scale = length_scale

    def _resolved(self, X: Rows) -> dict[str, Any]:
        scale = check_positives("length_scale", self.length_scale, X.shape[1])
        return {"alpha": check_positive("alpha", self.alpha), "length_scale": scale}

    def scale(self) -> float | Doubles:
        """Return 1 / length_scale, a number or one per column."""
        return 1.0 / check_positives("length_scale", self.length_scale)

    def profile(self, distances: Doubles) -> Doubles:
        """Return the kernel at |x - y| / length_scale."""
        alpha = check_positive("alpha", self.alpha)
        values: Doubles = np.exp(-alpha * np.log1p(np.square(distances) / (2 * alpha)))
        return values

    def spread(self, uniforms: Doubles) -> Doubles:
        """Return (a Gamma(alpha) number of mean 1)^(1/2)."""
        alpha = check_positive("alpha", self.alpha)
        values: Doubles = np.sqrt(gammaincinv(alpha, uniforms) / alpha)
        return values


# ---- dot-product kernels, the Gaussian among them


class DotProductKernel(Kernel):
    """k(x, y) = sum_j kappa^(j)(0) / j! <x, y>^j e(|x|) e(|y|), for scaled x and y."""

    family: ClassVar[Family | None] = "dot product"

    def kappa(self, products: Doubles) -> Doubles:
        """Return kappa at scaled dot products."""
        raise NotImplementedError

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0), -inf where it is 0."""
        raise NotImplementedError

    def log_envelope(self, norms: ArrayLike) -> Doubles:
        """Return log e at scaled norms: 0 for a pure dot-product kernel."""
        return np.zeros(np.shape(norms))

    def n_derivatives(self) -> int | None:
        """Return how many derivatives there are before all are 0; None: infinitely many."""
        return None

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return kappa(|x|^2)."""
        return self.kappa(np.square(np.asarray(norms, dtype=np.float64)))

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        X = self._scaled(_dense(X))
        Y = X if Y is None else self._scaled(_dense(Y))
        return self.kappa(X @ Y.T)


class Gaussian(_WithGamma, DotProductKernel):
    """Gaussian kernel k(x, y) = exp(-gamma |x - y|^2).

    Parameters
    ----------
    gamma : float, array of shape (n_features,), "scale" or "median", default="scale"
        > 0; one value per column gives every column its own lengthscale 1 / sqrt(2 gamma).
        "scale": 1 / (n_features Var X) as in scikit-learn; "median": 1 / the median of squared
        distances between (at most 1,000) rows. Both are resolved when features are fitted.

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> Gaussian(gamma=0.5)([[0.0]], [[1.0]]).round(6)
    array([[0.606531]])
    """

    def __init__(self, gamma: PerColumn | Rule = "scale") -> None:
        self.gamma = gamma

    def scale(self) -> float | Doubles:
        """Return sqrt(2 gamma), a number or one per column."""
        scale: float | Doubles = np.sqrt(2 * self._number())
        return scale

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0): exp has 1 everywhere."""
        return np.zeros(np.shape(orders))

    def frequencies(self, normals: Doubles, uniforms: Doubles) -> Doubles:
        """Return the normals."""
        return normals

    def log_envelope(self, norms: ArrayLike) -> Doubles:
        """Return -|u|^2 / 2, for scaled norms."""
        envelope: Doubles = -0.5 * np.square(np.asarray(norms, dtype=np.float64))
        return envelope

    def profile(self, distances: Doubles) -> Doubles:
        """Return exp(-distance / 2), for squared scaled distances."""
        values: Doubles = np.exp(-0.5 * distances)
        return values

    def _distances(self, X: Doubles, Y: Doubles) -> Doubles:
        """Squared distances by products; those lose the digits that an offset takes."""
        center = X.mean(axis=0)
        squared: Doubles = euclidean_distances(
            X - center, None if Y is X else Y - center, squared=True
        )
        return squared

    def _from_spread(self, dim: int, variance: float) -> float:
        return 1.0 / (dim * variance) if variance > 0 else 1.0


class ExponentialDot(DotProductKernel):
    """Exponential of the dot product, k(x, y) = exp(gamma <x, y>).

    Parameters
    ----------
    gamma : float, default=1.0
        > 0.

    Examples
    --------
    >>> from gzkcore.kernels import ExponentialDot
    >>> ExponentialDot(gamma=0.5)([[1.0, 1.0]], [[1.0, 1.0]]).round(6)
    array([[2.718282]])
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _resolved(self, X: Rows) -> dict[str, Any]:
        return {"gamma": check_positive("gamma", self.gamma)}

    def scale(self) -> float:
        """Return sqrt(gamma)."""
        return math.sqrt(check_positive("gamma", self.gamma))

    def kappa(self, products: Doubles) -> Doubles:
        """Return exp."""
        with np.errstate(over="ignore"):
            values: Doubles = np.exp(products)
        return values

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0): exp has 1 everywhere."""
        return np.zeros(np.shape(orders))


class Polynomial(DotProductKernel):
    """Polynomial kernel k(x, y) = (gamma <x, y> + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        >= 1.
    gamma : float, default=1.0
        > 0.
    coef0 : float, default=1.0
        >= 0; 0 gives the homogeneous kernel, which has powers of one parity only.

    Notes
    -----
    Its expansion ends at degree `degree`: with enough columns the features are exact.

    Examples
    --------
    >>> from gzkcore.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 0.0]])
    array([[16.]])
    """

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def _resolved(self, X: Rows) -> dict[str, Any]:
        degree, coef0 = self._numbers()
        return {"degree": degree, "gamma": check_positive("gamma", self.gamma), "coef0": coef0}

    def _numbers(self) -> tuple[int, float]:
        degree = check_integer("degree", self.degree, 1)
        given: Any = self.coef0
        if isinstance(given, bool) or not isinstance(given, numbers.Real):
            raise TypeError(f"coef0={given!r} is not a number; use a number >= 0")
        coef0 = float(given)
        if coef0 < 0:
            raise ValueError(
                f"coef0={coef0:g} makes the coefficient of degree {degree - 1} in <x, y> "
                f"{degree * coef0:g} < 0, so the kernel is not positive definite; use coef0 >= 0"
            )
        if not math.isfinite(coef0):
            raise ValueError(f"coef0={coef0} is not usable; use a finite number >= 0")
        return degree, coef0

    def scale(self) -> float:
        """Return sqrt(gamma)."""
        return math.sqrt(check_positive("gamma", self.gamma))

    def kappa(self, products: Doubles) -> Doubles:
        """Return (z + coef0)^degree."""
        degree, coef0 = self._numbers()
        values: Doubles = (products + coef0) ** degree
        return values

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log of degree! / (degree - j)! coef0^(degree - j), -inf from j = degree + 1 on."""
        degree, coef0 = self._numbers()
        rest = degree - np.asarray(orders, dtype=np.float64)
        there = (rest == 0) | ((rest > 0) & (coef0 > 0))
        log_coef0 = math.log(coef0) if coef0 > 0 else 0.0
        safe = np.where(there, rest, 0.0)
        values = math.lgamma(degree + 1) - gammaln(safe + 1) + safe * log_coef0
        return np.where(there, values, -np.inf)

    def n_derivatives(self) -> int | None:
        """Return degree + 1."""
        return self._numbers()[0] + 1


class DotProduct(DotProductKernel):
    """Any dot-product kernel, k(x, y) = sum_j kappa^(j)(0) / j! <x, y>^j, by its derivatives at 0.

    Parameters
    ----------
    derivatives : array-like of shape (p + 1,)
        kappa(0), kappa'(0), ..., all >= 0 and not all 0; those that are missing are 0.

    Notes
    -----
    A negative derivative means that the kernel is not positive definite on balls of every
    dimension [1]_.

    References
    ----------
    .. [1] Han, Zandieh, Avron, Lemma 4; it needs this condition, G3 in the errata.

    Examples
    --------
    >>> from gzkcore.kernels import DotProduct
    >>> DotProduct([1.0, 0.0, 2.0])([[2.0]], [[3.0]])  # 1 + <x, y>^2
    array([[37.]])
    """

    def __init__(self, derivatives: Sequence[float] | Doubles) -> None:
        self.derivatives = derivatives

    def _resolved(self, X: Rows) -> dict[str, Any]:
        return {"derivatives": self._numbers()}

    def _numbers(self) -> Doubles:
        values = _check_list("derivatives", self.derivatives)
        worst = int(np.argmin(values))
        if values[worst] < 0:
            raise ValueError(
                f"derivatives[{worst}]={values[worst]:g} is negative: the Taylor coefficient of "
                f"degree {worst} is {values[worst] * math.exp(-math.lgamma(worst + 1)):.3g} < 0, "
                "so the kernel is not positive definite; every derivative must be >= 0"
            )
        return values

    def kappa(self, products: Doubles) -> Doubles:
        """Return the Taylor polynomial."""
        taylor = np.exp(self.log_derivative(np.arange(self._numbers().size)) - self._log_factorials)
        values = np.zeros_like(products)
        for factor in taylor[::-1]:
            values = values * products + factor
        return values

    @property
    def _log_factorials(self) -> Doubles:
        factorials: Doubles = gammaln(np.arange(np.size(self.derivatives)) + 1.0)
        return factorials

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0), -inf where it is 0."""
        values = np.append(self._numbers(), 0.0)
        index = np.minimum(np.asarray(orders, dtype=np.intp), values.size - 1)
        with np.errstate(divide="ignore"):
            logarithms: Doubles = np.log(values[index])
        return logarithms

    def n_derivatives(self) -> int | None:
        """Return how many were given."""
        return int(np.size(self.derivatives))


# ---- kernels of the angle


class AngularKernel(Kernel):
    """k(x, y) = (|x| |y|)^power kappa(cos) = (|x| |y|)^power sum_l c_l P_d^l(cos).

    Unless a class knows better, the c_l come from kappa by quadrature (Eq 8).
    """

    family: ClassVar[Family | None] = "angular"
    subject: ClassVar[str] = "the kernel"  # of the sentence that says it is not positive definite

    @property
    def power(self) -> int:
        """Degree of homogeneity in each argument; 0: norms do not matter."""
        return 0

    @property
    def defined_at_zero(self) -> bool:
        """Whether norms matter; a direction alone is none at 0."""
        return self.power > 0

    def n_coefficients(self) -> int | None:
        """Return how many c_l there are before all are 0; None: infinitely many."""
        return None

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return kappa at cosines in [-1, 1]."""
        raise NotImplementedError

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree of Eq 8, with rounding noise set to 0."""
        function = self._function(dim)
        c = gegenbauer_series(function, dim, degree)
        noise = series_noise(function, dim, degree)
        worst = int(np.argmin(c + noise))
        if c[worst] < -noise[worst]:
            raise ValueError(
                f"{self.subject} is not positive definite in dimension {dim}: the coefficient of "
                f"degree {worst} is {c[worst]:.3g} < 0; use a kernel that is, or a lower dimension"
            )
        return np.where(c > noise, c, 0.0)

    def noise(self, dim: int, degree: int) -> float:
        """Return up to what rounding error the sum of c_0..c_degree is known."""
        return float(series_noise(self._function(dim), dim, degree).sum())

    def at_one(self, dim: int) -> float:
        """Return kappa(1)."""
        return float(self.kappa(np.ones(1), dim)[0])

    def _function(self, dim: int) -> Function:
        return lambda t: self.kappa(t, dim)

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return kappa(1) |x|^(2 power)."""
        values: Doubles = self.at_one(1) * np.asarray(norms, dtype=np.float64) ** (2 * self.power)
        return values

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        same = Y is None
        X = _dense(X)
        Y = X if Y is None else _dense(Y)
        if self.unit_sphere:
            return self.kappa(_cosines(X, Y, same), X.shape[1])
        a, b = _norms(X), _norms(Y)
        if self.power == 0 and not (a.all() and b.all()):
            raise ValueError(
                f"{self!r} has no value where a row is all 0, since it depends on the direction "
                "alone; drop such rows"
            )
        t = _cosines(_over(X, a), _over(Y, b), same)
        return self.kappa(t, X.shape[1]) * np.outer(a**self.power, b**self.power)

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        if self.power == 0:
            return np.full(X.shape[0], self.at_one(X.shape[1]))
        return self.at_one(X.shape[1]) * _norms(_dense(X)) ** (2 * self.power)


class Zonal(AngularKernel):
    """Zonal kernel k(x, y) = kappa(<x, y>) for points on the unit sphere.

    Parameters
    ----------
    function : callable, optional
        kappa: an array of cosines in [-1, 1] to an array of values. Positive definite in the
        dimension of the data; this is checked, degree by degree.
    coefficients : array-like, optional
        Instead of `function`: c_0, c_1, ... >= 0 of kappa = sum_l c_l P_d^l (Eq 7).

    Notes
    -----
    Rows must have unit norm (to 1e-5 in float32, 1e-8 in float64).

    References
    ----------
    Han, Zandieh, Avron, section 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.kernels import Zonal
    >>> Zonal(np.exp)([[1.0, 0.0]], [[0.0, 1.0]])
    array([[1.]])
    """

    _state = stored("_at_one")

    unit_sphere: ClassVar[bool] = True
    subject: ClassVar[str] = "function"

    def __init__(
        self,
        function: Function | None = None,
        coefficients: Sequence[float] | Doubles | None = None,
    ) -> None:
        self.function = function
        self.coefficients = coefficients

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if (self.function is None) == (self.coefficients is None):
            raise ValueError(
                "Zonal needs either function or coefficients; "
                f"got function={self.function!r}, coefficients={self.coefficients!r}"
            )
        if self.function is None:
            return {"coefficients": self._numbers()}
        if not callable(self.function):
            raise TypeError(f"function={self.function!r} is not callable; pass kappa itself")
        t = np.cos(np.linspace(0.0, np.pi, 65))
        values = np.asarray(self.function(t))
        if values.shape != t.shape or values.dtype.kind not in "biuf" or not values.any() or (
            not np.isfinite(values).all()
        ):  # fmt: skip
            raise ValueError(
                "function must map an array of cosines in [-1, 1] to finite values of the same "
                f"shape, not all 0; got {values!r:.60}"
            )
        return {"function": self.function}

    def _numbers(self) -> Doubles:
        c = _check_list("coefficients", self.coefficients)
        if (c < 0).any():
            raise ValueError(
                f"coefficients[{int(np.argmin(c))}]={c.min():g} is negative, so the kernel is not "
                "positive definite; every coefficient must be >= 0"
            )
        return c

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: a function is code; features hold its series."""
        value = self.at_one(1) if self.coefficients is None else None
        return {"function": None, "_at_one": value}

    def _check_known(self) -> None:
        if self.function is None and self.coefficients is None:
            raise ValueError(
                "this Zonal kernel has no function: files of models keep no functions, which are "
                "code; make it anew with function="
            )

    def n_coefficients(self) -> int | None:
        """Return how many were given."""
        return None if self.coefficients is None else int(np.size(self.coefficients))

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree, with rounding noise below 0 set to 0."""
        self._check_known()
        if self.function is not None:
            return super().series(dim, degree)
        given = np.asarray(self.coefficients, dtype=np.float64)
        if dim == 1:  # P_1^l = t^l is 1 or t on the two points of the sphere
            given = np.array([given[::2].sum(), given[1::2].sum()])
        c = np.zeros(degree + 1)
        c[: given.size] = given[: degree + 1]
        return c

    def noise(self, dim: int, degree: int) -> float:
        """Return up to what rounding error the sum of c_0..c_degree is known."""
        return 0.0 if self.function is None else super().noise(dim, degree)

    def at_one(self, dim: int) -> float:
        """Return kappa(1) = k(x, x)."""
        known: float | None = getattr(self, "_at_one", None)  # of a function that is gone
        if known is not None:
            return known
        self._check_known()
        if self.function is None:
            return float(np.sum(np.asarray(self.coefficients, dtype=np.float64)))
        return super().at_one(dim)

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return kappa at cosines in [-1, 1]."""
        self._check_known()
        if self.function is not None:
            return np.asarray(self.function(t), dtype=np.float64)
        return np.asarray(zonal_sum(self._numbers(), dim, t), dtype=np.float64)


class SphereKernel(AngularKernel):
    """Kernels of the unit sphere whose spectrum is known, scaled so that k(x, x) = 1.

    c_l = alpha(l, d) exp(log_eigenvalue(l)) / their sum.
    """

    unit_sphere: ClassVar[bool] = True

    def log_eigenvalue(self, degrees: Doubles, dim: int) -> Doubles:
        """Return log(c_l / alpha(l, d)) up to a constant."""
        raise NotImplementedError

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree."""
        shown: Doubles = np.exp(self._log_terms(np.arange(degree + 1.0), dim) - self._log_sum(dim))
        return shown

    def noise(self, dim: int, degree: int) -> float:
        """Return 0: the spectrum is given."""
        return 0.0

    def at_one(self, dim: int) -> float:
        """Return kappa(1) = 1."""
        return 1.0

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return the sum of the series, up to degree 4,096.

        What is missing there, for a rough kernel, is put into the last degree: kappa(1) is 1.
        """
        c = self.series(dim, _LONGEST_SERIES)
        total = np.cumsum(c)
        c = c[: int(np.searchsorted(total, 1 - _MISSING)) + 1]
        c[-1] += max(1.0 - float(c.sum()), 0.0)
        return np.asarray(zonal_sum(c, dim, t), dtype=np.float64)

    def _log_terms(self, degrees: Doubles, dim: int) -> Doubles:
        return log_alpha(degrees, dim) + self.log_eigenvalue(degrees, dim)

    def _log_sum(self, dim: int) -> float:
        """Logarithm of the sum over all degrees; by Euler and Maclaurin from the 4,096th on."""
        levels = np.arange(_LONGEST_SERIES + 2.0)
        logs = self._log_terms(levels, dim)
        top = float(logs.max())
        terms = np.exp(logs - top)
        total = math.fsum(terms[:-2])
        if dim == 1:
            return top + math.log(total)

        between = np.arange(1.0, dim - 2)  # alpha without Gammas, which cancel for large l

        def integrand(u: float) -> float:
            level = np.exp(u)
            log_size = np.log(2 * level + dim - 2) + np.log(level + between).sum()
            log_size -= math.lgamma(dim - 1) + (u if dim == 2 else 0.0)
            return float(np.exp(log_size + self.log_eigenvalue(level, dim) - top + u))

        tail, _ = quad(integrand, math.log(levels[-2]), 300, epsabs=0, epsrel=1e-10, limit=500)
        ends = terms[-2] / 2 - (terms[-1] - terms[-3]) / 24
        return top + math.log(total + tail + float(ends))


class SphereMatern(SphereKernel):
    """Matern kernel intrinsic to the unit sphere: distances run along it, not through it.

    c_l / alpha(l, d) is proportional to (2 nu / length_scale^2 + l (l + d - 2))^(-nu - (d-1)/2).

    Parameters
    ----------
    nu : float, default=1.5
        > 0, smoothness.
    length_scale : float, default=1.0
        > 0, in radians.

    Notes
    -----
    Scaled so that k(x, x) = 1. Values are sums of the series, up to degree 4,096.

    Examples
    --------
    >>> from gzkcore.kernels import SphereMatern
    >>> SphereMatern(nu=1.5)([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]).round(4)
    array([[0.3558]])
    """

    def __init__(self, nu: float = 1.5, length_scale: float = 1.0) -> None:
        self.nu = nu
        self.length_scale = length_scale

    def _resolved(self, X: Rows) -> dict[str, Any]:
        nu, length_scale = self._numbers()
        return {"nu": nu, "length_scale": length_scale}

    def _numbers(self) -> tuple[float, float]:
        return check_positive("nu", self.nu), check_positive("length_scale", self.length_scale)

    def log_eigenvalue(self, degrees: Doubles, dim: int) -> Doubles:
        """Return -(nu + (d-1)/2) log(2 nu / length_scale^2 + l (l + d - 2))."""
        nu, length_scale = self._numbers()
        bend = 2 * nu / length_scale**2 + degrees * (degrees + dim - 2)
        logarithms: Doubles = -(nu + (dim - 1) / 2) * np.log(bend)
        return logarithms


class SphereHeat(SphereKernel):
    """Heat kernel of the unit sphere: c_l / alpha(l, d) is proportional to exp(-time l (l+d-2)).

    Parameters
    ----------
    time : float, default=1.0
        > 0; heat from a point has spread over about (2 time)^(1/2) radians by then.

    Notes
    -----
    Scaled so that k(x, x) = 1.

    Examples
    --------
    >>> from gzkcore.kernels import SphereHeat
    >>> SphereHeat(time=0.1)([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]).round(4)
    array([[0.0026]])
    """

    def __init__(self, time: float = 1.0) -> None:
        self.time = time

    def _resolved(self, X: Rows) -> dict[str, Any]:
        return {"time": check_positive("time", self.time)}

    def log_eigenvalue(self, degrees: Doubles, dim: int) -> Doubles:
        """Return -time l (l + d - 2)."""
        logarithms: Doubles = -check_positive("time", self.time) * degrees * (degrees + dim - 2)
        return logarithms


class NeuralTangent(AngularKernel):
    """Neural tangent kernel of a ReLU network, k(x, y) = |x| |y| K_L(cos) (Eq 33).

    S_0 = K_0 = t; S_h = a1(S_(h-1)), K_h = K_(h-1) a0(S_(h-1)) + S_h, for h = 1..L.

    Parameters
    ----------
    depth : int, default=2
        L >= 1, the number of hidden layers.
    normalize : bool, default=False
        Divide by L + 1, which is K_L(1).

    Notes
    -----
    K_L has a square root at t = 1: its series, cut at degree q, is off by about C / q on the
    diagonal, and much less elsewhere. `GegenbauerFeatures` tells in `truncation_error_`.

    References
    ----------
    Han, Zandieh, Avron, Eq 33 and Lemma 16; G5 and G6 in the errata.

    Examples
    --------
    >>> from gzkcore.kernels import NeuralTangent
    >>> NeuralTangent(depth=1)([[2.0, 0.0]], [[0.0, 1.0]]).round(6)  # 2 / pi
    array([[0.63662]])
    """

    def __init__(self, depth: int = 2, normalize: bool = False) -> None:
        self.depth = depth
        self.normalize = normalize

    @property
    def power(self) -> int:
        """Return 1."""
        return 1

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if not isinstance(self.normalize, bool | np.bool_):
            raise TypeError(f"normalize={self.normalize!r} is not a bool; use True or False")
        return {"depth": check_integer("depth", self.depth, 1), "normalize": bool(self.normalize)}

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return K_L(t), over L + 1 if normalize."""
        depth = check_integer("depth", self.depth, 1)
        S = K = np.clip(np.asarray(t, dtype=np.float64), -1.0, 1.0)
        for _ in range(depth):
            angle = np.arccos(S)
            K = K * (1 - angle / math.pi)
            S = np.minimum((np.sqrt(1 - S * S) + S * (math.pi - angle)) / math.pi, 1.0)
            K = K + S
        return K / (depth + 1) if self.normalize else K


class ArcCosine(AngularKernel):
    """Arc-cosine kernel of order n, k(x, y) = (|x| |y|)^n J_n(theta) / pi (Cho and Saul).

    J_0 = pi - theta, J_1 = sin theta + (pi - theta) cos theta,
    J_2 = 3 sin theta cos theta + (pi - theta) (1 + 2 cos^2 theta).

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        Step, ReLU, or squared ReLU units.

    Notes
    -----
    Apart from degrees up to the order, only every other degree is there.

    References
    ----------
    Cho, Saul, Kernel Methods for Deep Learning, NIPS 2009.

    Examples
    --------
    >>> from gzkcore.kernels import ArcCosine
    >>> ArcCosine(order=0)([[1.0, 0.0]], [[0.0, 1.0]])
    array([[0.5]])
    """

    def __init__(self, order: int = 1) -> None:
        self.order = order

    @property
    def power(self) -> int:
        """Return the order."""
        order = check_integer("order", self.order, 0)
        if order > 2:
            raise ValueError(f"order={order} is not implemented; use 0, 1 or 2")
        return order

    def _resolved(self, X: Rows) -> dict[str, Any]:
        return {"order": self.power}

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return J_n(theta) / pi."""
        t = np.clip(np.asarray(t, dtype=np.float64), -1.0, 1.0)
        rest, sine = math.pi - np.arccos(t), np.sqrt(1 - t * t)
        values: Doubles = (
            rest / math.pi,
            (sine + rest * t) / math.pi,
            (3 * sine * t + rest * (1 + 2 * t * t)) / math.pi,
        )[self.power]
        return values


# ---- any generalized zonal kernel


class GeneralizedZonal(Kernel):
    """Generalized zonal kernel k(x, y) = sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos) (Definition 3).

    Parameters
    ----------
    radial : callable
        h: norms of shape (n,) to an array of shape (n, q + 1, s), or (n, q + 1) for s = 1, that
        holds h_0..h_q at them, each with values in R^s. h_l(0) = 0 for l >= 1, for the kernel
        would not be continuous at 0 otherwise.

    Notes
    -----
    Positive definite whatever h. Files keep the values of h up to twice the largest norm seen.

    References
    ----------
    Han, Zandieh, Avron, Definition 3; G19 in the errata.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore.kernels import GeneralizedZonal
    >>> linear = GeneralizedZonal(lambda t: np.stack([np.ones_like(t), t], axis=1))
    >>> linear([[1.0, 2.0]], [[3.0, 1.0]])  # 1 + <x, y>
    array([[6.]])
    """

    family: ClassVar[Family | None] = "general"

    def __init__(self, radial: Callable[[Doubles], ArrayLike]) -> None:
        self.radial = radial

    def _resolved(self, X: Rows) -> dict[str, Any]:
        if not callable(self.radial):
            raise TypeError(
                f"radial={self.radial!r} is not callable; pass a function of norms that returns "
                "an array of shape (n, q + 1, s)"
            )
        at_zero = self.radial_values(np.zeros(1))[0]
        worst = np.unravel_index(int(np.argmax(np.abs(at_zero[1:]))), at_zero[1:].shape) if (
            at_zero.shape[0] > 1
        ) else None  # fmt: skip
        if worst is not None and abs(at_zero[1:][worst]) > 1e-12:
            raise ValueError(
                f"radial gives h_{worst[0] + 1}(0) = {at_zero[1:][worst]:g}: for l >= 1 it must be "
                "0, or the kernel is not continuous at 0"
            )
        return {"radial": self.radial}

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: a function is code; features hold its values."""
        return {"radial": None}

    def radial_values(self, norms: ArrayLike) -> Doubles:
        """Return h at norms, of shape (n, q + 1, s)."""
        if self.radial is None:
            raise ValueError(
                "this GeneralizedZonal kernel has no function: files of models keep no functions, "
                "which are code; make it anew with radial="
            )
        norms = np.asarray(norms, dtype=np.float64)
        values = np.asarray(self.radial(norms))
        if values.dtype.kind not in "biuf":
            raise TypeError(f"radial must return real numbers; got {values!r:.60}")
        if values.ndim == 2:
            values = values[:, :, None]
        if values.ndim != 3 or values.shape[0] != norms.size or 0 in values.shape[1:]:
            raise ValueError(
                f"radial must map {norms.size} norms to an array of shape ({norms.size}, q + 1, s)"
                f"; got shape {values.shape}"
            )
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=(1, 2))))
            raise ValueError(f"radial gives values that are not finite at the norm {norms[row]:g}")
        return values.astype(np.float64)

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return the sum of the squares of h."""
        squares: Doubles = np.square(self.radial_values(np.ravel(norms))).sum(axis=(1, 2))
        return squares.reshape(np.shape(norms))

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        same = Y is None
        X = _dense(X)
        Y = X if Y is None else _dense(Y)
        a, b = _norms(X), _norms(Y)
        h, g = self.radial_values(a), self.radial_values(b)
        t = _cosines(_over(X, a), _over(Y, b), same)
        levels = zip(range(h.shape[1]), polynomials(X.shape[1], t), strict=False)
        values: Doubles = np.sum([(h[:, l] @ g[:, l].T) * P for l, P in levels], axis=0)  # noqa: E741
        return values


# ---- what they share


def _dense(X: Data) -> Doubles:
    """Return the rows of X, dense or sparse, as an array of doubles, or raise."""
    rows: Doubles = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(
            f"X has shape {rows.shape}; pass an array of shape (n_samples, n_features)"
        )
    if not np.isfinite(rows).all():
        raise ValueError("X holds NaN or infinity; remove or replace those values")
    return rows


def _norms(X: Doubles) -> Doubles:
    norms: Doubles = np.sqrt(np.einsum("ij,ij->i", X, X))
    return norms


def _over(X: Doubles, norms: Doubles) -> Doubles:
    """Unit rows; a row of zeros stays one."""
    return X / np.where(norms > 0, norms, 1.0)[:, None]


def _cosines(X: Doubles, Y: Doubles, same: bool) -> Doubles:
    """Cosines of unit rows; exactly 1 on the diagonal, where some kernels have a square root."""
    t: Doubles = np.clip(X @ Y.T, -1.0, 1.0)
    if same:
        np.fill_diagonal(t, np.where(X.any(axis=1), 1.0, 0.0))
    return t


def _check_list(name: str, values: Any) -> Doubles:
    """Return values as an array, or raise if they are no list of finite numbers, or all 0."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf" or (
        not np.isfinite(array).all()
    ):  # fmt: skip
        raise ValueError(f"{name}={values!r} must be a list of finite numbers")
    if not array.any():
        raise ValueError(f"{name} are all 0, and so is the kernel; one must be > 0")
    return array.astype(np.float64)


def _student_spread(uniforms: Doubles, nu: float) -> Doubles:
    values: Doubles = 1 / np.sqrt(gammaincinv(nu, uniforms) / nu)
    return values


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


ALIASES: dict[str, Callable[[], Kernel]] = {
    "arccosine": ArcCosine,
    "exponential": Exponential,
    "exponential_dot": ExponentialDot,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "ntk": NeuralTangent,
    "polynomial": Polynomial,
    "rational_quadratic": RationalQuadratic,
    "rbf": Gaussian,
    "spherical": Spherical,
}


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel for an alias, or the kernel itself."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in ALIASES:
        return ALIASES[kernel]()
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        name = kernel.__name__
        raise TypeError(f"kernel={name} is a class; use an instance, {name}()")
    near = difflib.get_close_matches(str(kernel).lower(), ALIASES, 1) if kernel else []
    raise ValueError(
        f"kernel={kernel!r} is unknown"
        + (f" (did you mean {near[0]!r}?)" if near else "")
        + f"; use one of {sorted(ALIASES)} or an instance from gzkcore.kernels"
    )
