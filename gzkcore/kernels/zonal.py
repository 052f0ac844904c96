"""Kernels of the angle, times a power of the norms, by their Gegenbauer series."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad

from gzkcore._util.state import nothing, number, stored
from gzkcore._util.typing import Data, Doubles, Function, Rows
from gzkcore._util.validation import check_integer, check_positive
from gzkcore.sphere.series import gegenbauer_series, series_noise, zonal_sum
from gzkcore.sphere.special import log_alpha

from .base import Kernel, check_list, raise_if_learned
from .points import check_unit_norms, cosines, double_pair, double_rows, row_norms, unit_rows
from .tile_form import DIFFERENCE, TABLE, Factor, Term, TileForm

__all__ = ["ArcCosine", "NeuralTangent", "SphereHeat", "SphereMatern", "Zonal"]

# A series that is summed ends at this degree, or where less than _MISSING of its sum is left.
_LONGEST_SERIES, _MISSING = 4096, 1e-14
# Where the last term is below this share of the sum, the terms behind it do not count.
_NO_TAIL = 1e-30
# The rounding error of 2 - 2 cos.
_COSINE_ERROR = 1e-15
# Networks may have so many layers; each takes a pass over all values.
_MOST_LAYERS = 10_000


class ZonalKernel(Kernel):
    """k(x, y) = (|x| |y|)^power kappa(cos) = (|x| |y|)^power sum_l c_l P_d^l(cos).

    Unless a class knows better, the c_l come from kappa by quadrature (Eq 8).
    """

    separable: ClassVar[bool] = True
    subject: ClassVar[str] = "the kernel"  # what an error calls not positive definite

    @property
    def power(self) -> int:
        """Degree of homogeneity in each argument; 0: norms do not matter."""
        return 0

    @property
    def defined_at_zero(self) -> bool:
        """Whether norms matter: a row of zeros has no direction."""
        return self.power > 0

    def n_coefficients(self) -> int | None:
        """Return the number of c_l before all are 0; None: infinitely many."""
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
        """Return the rounding error of the sum of c_0..c_degree."""
        return float(series_noise(self._function(dim), dim, degree).sum())

    def at_one(self, dim: int) -> float:
        """Return kappa(1)."""
        return float(self.kappa(np.ones(1), dim)[0])

    def _function(self, dim: int) -> Function:
        return lambda t: self.kappa(t, dim)

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return kappa(1) |x|^(2 power)."""
        return self.at_one(1) * np.asarray(norms, dtype=np.float64) ** (2 * self.power)

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        for rows, name in zip(double_pair(X, Y), "XY", strict=True):
            self._norms(rows, name)
        return super().__call__(X, Y)

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return kappa at the cosines, times the power of the norms."""
        a, b = row_norms(X), row_norms(Y)
        t = cosines(unit_rows(X, a), unit_rows(Y, b), X is Y)
        values = self.kappa(t, X.shape[1])
        return values * np.outer(a**self.power, b**self.power) if self.power else values

    def _norms(self, X: Doubles, name: str) -> Doubles:
        """Return the norms of rows, or raise where the kernel has no value."""
        norms = row_norms(X)
        if self.unit_sphere:
            check_unit_norms(norms, name)
        elif self.power == 0 and not norms.all():
            raise ValueError(
                f"{self!r} has no value at a row that is all 0, since it depends on the direction "
                "alone; drop rows that are all 0"
            )
        return norms

    def at_angles(self, theta: Doubles, dim: int) -> Doubles:
        """Return kappa(cos theta), by the angle where this is more exact."""
        return self.kappa(np.cos(theta), dim)

    def of_angles(self, dim: int) -> Callable[[Doubles], Doubles]:
        """Return `at_angles` in this dimension."""
        return lambda theta: self.at_angles(theta, dim)

    def tile_form(self, dim: int) -> TileForm:
        """Return a table of angles between unit rows, by the square of their difference."""
        factor = Factor(
            1.0, DIFFERENCE, TABLE, bound=self.at_one(dim), power=self.power, unit=self.unit_sphere,
            function=self.of_angles(dim),
            blur=0.0 if type(self).at_angles is not ZonalKernel.at_angles else _COSINE_ERROR,
        )  # fmt: skip
        return [Term((factor,))]

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        rows = double_rows(X)
        return self.at_one(rows.shape[1]) * self._norms(rows, "X") ** (2 * self.power)


class Zonal(ZonalKernel):
    """Zonal kernel k(x, y) = kappa(<x, y>) for points on the unit sphere.

    Parameters
    ----------
    function : callable, optional
        kappa, a function that maps an array of cosines in [-1, 1] to an array of values. It must be
        positive definite in the dimension of the data; this is checked, degree by degree.
    coefficients : array-like, optional
        Instead of `function`: c_0, c_1, ... >= 0 of kappa = sum_l c_l P_d^l (Eq 7).

    Notes
    -----
    Rows must have unit norm, up to an error of 1e-5; they are divided by their norms.

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

    _state = stored(function=nothing().if_there(), _at_one=(number(0) | nothing()).if_there())

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
                "Zonal needs exactly one of function and coefficients; got "
                f"function={self.function!r}, coefficients={self.coefficients!r}"
            )
        if self.function is None:
            return {"coefficients": self._numbers()}
        if not self._evaluated(np.cos(np.linspace(0.0, np.pi, 65))).any():
            raise ValueError(
                "function is 0 everywhere, so that the kernel is 0; pass another function"
            )
        return {"function": self.function}

    def _evaluated(self, t: Doubles) -> Doubles:
        """Return the function at cosines, or raise."""
        if not callable(self.function):
            raise TypeError(f"function={self.function!r} is not callable; pass the function kappa")
        values = np.asarray(self.function(t))
        if values.shape != t.shape or values.dtype.kind not in "biuf" or (
            not np.isfinite(values).all()
        ):  # fmt: skip
            raise ValueError(
                "function must map an array of cosines in [-1, 1] to finite values of the same "
                f"shape; got {values!r:.60}"
            )
        return values.astype(np.float64)

    def _numbers(self) -> Doubles:
        c = check_list("coefficients", self.coefficients)
        if (c < 0).any():
            raise ValueError(
                f"coefficients[{int(np.argmin(c))}]={c.min():g} is negative, so the kernel is not "
                "positive definite; every coefficient must be >= 0"
            )
        return c

    def _to_data(self) -> dict[str, Any]:
        """Return kappa(1) for the file instead of a function, see `model_io`.

        Features hold the series.
        """
        value = self.at_one(1) if self.coefficients is None else None
        return {"function": None, "_at_one": value}

    @property
    def holds_function(self) -> bool:
        """Whether it was given by its function."""
        return self.function is not None

    def _check_known(self) -> None:
        if self.function is None and self.coefficients is None:
            raise ValueError(
                "this Zonal kernel has no function, since files of models do not store functions; "
                "make it again with function="
            )

    def n_coefficients(self) -> int | None:
        """Return the number of `coefficients`."""
        return None if self.coefficients is None else int(np.size(self.coefficients))

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree, with rounding noise below 0 set to 0."""
        self._check_known()
        if self.function is not None:
            return super().series(dim, degree)
        coefficients = np.asarray(self.coefficients, dtype=np.float64)
        if dim == 1:  # P_1^l = t^l is 1 or t on the two points of the sphere
            coefficients = np.array([coefficients[::2].sum(), coefficients[1::2].sum()])
        c = np.zeros(degree + 1)
        c[: coefficients.size] = coefficients[: degree + 1]
        return c

    def noise(self, dim: int, degree: int) -> float:
        """Return the rounding error of the sum of c_0..c_degree."""
        return 0.0 if self.function is None else super().noise(dim, degree)

    def at_one(self, dim: int) -> float:
        """Return kappa(1) = k(x, x)."""
        saved: float | None = getattr(self, "_at_one", None)  # a file has no function
        if saved is not None:
            return saved
        self._check_known()
        if self.function is None:
            return float(np.sum(self._numbers()))
        return super().at_one(dim)

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return kappa at cosines in [-1, 1]."""
        self._check_known()
        if self.function is not None:
            return self._evaluated(np.asarray(t, dtype=np.float64))
        return np.asarray(zonal_sum(self._numbers(), dim, t), dtype=np.float64)


def _last_half(count: int) -> Doubles:
    """Return weights of degrees with sum 1: a smooth window over the last half, 0 before.

    Like the degrees beyond, a smooth window is small except near cosine 1. In the last degree alone
    the same weight would be as large at the opposite point: for nu = 1/2 the error at all angles
    above .01 would be 40 times larger.
    """
    half = max(1, count // 2)
    window = np.hanning(half + 2)[1:-1]
    weights = np.zeros(count)
    weights[-half:] = window / window.sum()
    return weights


class SphereKernel(ZonalKernel):
    """Kernels of the unit sphere whose spectrum is known, scaled so that k(x, x) = 1.

    c_l = alpha(l, d) exp(log_eigenvalue(l)) / their sum.
    """

    unit_sphere: ClassVar[bool] = True
    _tail: float = 1.0  # mean slope beyond the longest series, relative to the last slope

    def with_lengths(self, lengths: float) -> Self:
        """Return the kernel of another length."""
        raise NotImplementedError

    def eigenvalue_slope(self, degrees: Doubles, dim: int) -> Doubles:
        """Return the derivative of `log_eigenvalue` by the logarithm of the length."""
        raise NotImplementedError

    def log_eigenvalue(self, degrees: Doubles, dim: int) -> Doubles:
        """Return log(c_l / alpha(l, d)) up to a constant."""
        raise NotImplementedError

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree."""
        return np.exp(self._log_terms(np.arange(degree + 1.0), dim) - self._log_sum(dim))

    def noise(self, dim: int, degree: int) -> float:
        """Return 0: the spectrum is given."""
        return 0.0

    def at_one(self, dim: int) -> float:
        """Return kappa(1) = 1."""
        return 1.0

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return the sum of the series, up to degree 4,096.

        The rest, of a rough kernel, is added to the last half, so that kappa(1) is 1.
        """
        return np.asarray(zonal_sum(self._summed(dim), dim, t), dtype=np.float64)

    def of_angles(self, dim: int) -> Callable[[Doubles], Doubles]:
        """Return `at_angles` with one series for all calls, since a table makes dozens."""
        summed = functools.cache(self._summed)
        return lambda theta: np.asarray(
            zonal_sum(summed(dim), dim, np.cos(theta)), dtype=np.float64
        )

    def _summed(self, dim: int) -> Doubles:
        """Return the series that `kappa` is the sum of."""
        c = self.series(dim, _LONGEST_SERIES)
        c = c[: int(np.searchsorted(np.cumsum(c), 1 - _MISSING)) + 1]
        c += max(1.0 - float(c.sum()), 0.0) * _last_half(c.size)
        return c

    def length_slope(self, t: Doubles, dim: int) -> Doubles:
        """Return the derivative of `kappa` by the logarithm of the length.

        That of c_l is c_l times (its own slope - the mean of all slopes).
        """
        c = self.series(dim, _LONGEST_SERIES)
        slopes = self.eigenvalue_slope(np.arange(c.size, dtype=np.float64), dim)
        total = np.cumsum(c)
        missing = max(1.0 - float(total[-1]), 0.0)
        mean = float(c @ slopes) + missing * self._tail * float(slopes[-1])
        count = int(np.searchsorted(total, 1 - _MISSING)) + 1
        c = c[:count] * (slopes[:count] - mean)
        c -= c.sum() * _last_half(c.size)
        return np.asarray(zonal_sum(c, dim, t), dtype=np.float64)

    def _log_terms(self, degrees: Doubles, dim: int) -> Doubles:
        return log_alpha(degrees.astype(np.intp), dim) + self.log_eigenvalue(degrees, dim)

    def _log_sum(self, dim: int) -> float:
        """Return the logarithm of the sum over all degrees, from the 4,096th on by an integral."""
        levels = np.arange(_LONGEST_SERIES + 2.0)
        logs = self._log_terms(levels, dim)
        top = float(logs.max())
        terms = np.exp(logs - top)
        total = math.fsum(terms[:-2])
        if dim == 1 or terms[-2] < _NO_TAIL * total:
            return top + math.log(total)

        between = np.arange(1.0, dim - 2)  # alpha without Gammas, which cancel for large l

        def integrand(u: float) -> float:
            level = np.exp(u)
            log_size = np.log(2 * level + dim - 2) + np.log(level + between).sum()
            log_size -= math.lgamma(dim - 1) + (u if dim == 2 else 0.0)
            with np.errstate(over="ignore"):  # of lengths far below 1 / 4,096
                return float(np.exp(log_size + self.log_eigenvalue(level, dim) - top + u))

        tail, _ = quad(integrand, math.log(levels[-2]), 300, epsabs=0, epsrel=1e-10, limit=500)
        ends = terms[-2] / 2 - (terms[-1] - terms[-3]) / 24
        return top + math.log(total + tail + float(ends))


class SphereMatern(SphereKernel):
    """Matern kernel of the unit sphere: distances are along the sphere, not through it.

    c_l / alpha(l, d) is proportional to (2 nu / length_scale^2 + l (l + d - 2))^(-nu - (d-1)/2).

    Parameters
    ----------
    nu : float or "learn", default=1.5
        > 0, smoothness; "learn": the one of 1/2, 3/2 and 5/2 that makes y most likely.
    length_scale : float or "learn", default=1.0
        > 0, in radians; "learn": by the likelihood of y, see `learn_kernel`.

    Notes
    -----
    Scaled so that k(x, x) = 1. Values are sums of the series, up to degree 4,096. On the globe with
    length_scale = .05, the error is 1e-4 for nu = 1/2 and 1e-8 for nu = 3/2; at angles below .01 up
    to 3e-3 and 4e-7. For nu = 1/2 the error grows as 1 / length_scale.

    Examples
    --------
    >>> from gzkcore.kernels import SphereMatern
    >>> SphereMatern(nu=1.5)([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]).round(4)
    array([[0.3558]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("nu", "length_scale")

    def __init__(
        self,
        nu: float | Literal["learn"] = 1.5,
        length_scale: float | Literal["learn", "learn-isotropic"] = 1.0,
    ) -> None:
        self.nu = nu
        self.length_scale = length_scale

    def _resolved(self, X: Rows) -> dict[str, Any]:
        nu, length_scale = self._numbers()
        return {"nu": nu, "length_scale": length_scale}

    def with_lengths(self, lengths: float) -> "SphereMatern":
        """Return the kernel with this for length_scale."""
        return SphereMatern(self.nu, lengths)

    @property
    def _tail(self) -> float:  # type: ignore[override]  # there c_l falls as l^(-2 nu - 1)
        nu = self._numbers()[0]
        return nu / (nu + 1)

    def eigenvalue_slope(self, degrees: Doubles, dim: int) -> Doubles:
        """Return (nu + (d-1)/2) (4 nu / length_scale^2) / (2 nu / length_scale^2 + l (l+d-2))."""
        nu, length_scale = self._numbers()
        steep = 2 * nu / length_scale**2
        return (2 * nu + dim - 1) * (steep / (steep + degrees * (degrees + dim - 2)))

    def _numbers(self) -> tuple[float, float]:
        raise_if_learned("nu", self.nu)
        raise_if_learned("length_scale", self.length_scale)
        nu = check_positive("nu", self.nu)
        length_scale = check_positive("length_scale", self.length_scale)
        squared = length_scale * length_scale
        if not (squared and 0 < 2 * nu / squared < math.inf):
            raise ValueError(
                f"length_scale={length_scale} and nu={nu} are not usable together: 2 nu / "
                "length_scale^2 is out of the range of float64; use numbers closer to 1"
            )
        return nu, length_scale

    def by_tiles(self, X: Doubles, Y: Doubles | None, dtype: Any) -> NDArray[Any] | None:
        """Return the matrix by compiled tiles, but None in doubles for nu < 2.5.

        No table is accurate enough there, and it takes seconds to find that out.
        """
        is_rough = dtype == np.float64 and self._numbers()[0] < 2.5
        return None if is_rough else super().by_tiles(X, Y, dtype)

    def log_eigenvalue(self, degrees: Doubles, dim: int) -> Doubles:
        """Return -(nu + (d-1)/2) log(1 + l (l + d - 2) length_scale^2 / (2 nu))."""
        nu, length_scale = self._numbers()
        with np.errstate(over="ignore"):
            bend = degrees * (degrees + dim - 2) / (2 * nu / length_scale**2)
        return -(nu + (dim - 1) / 2) * np.log1p(bend)


class SphereHeat(SphereKernel):
    """Heat kernel of the unit sphere: c_l / alpha(l, d) is proportional to exp(-time l (l+d-2)).

    Parameters
    ----------
    time : float or "learn", default=1.0
        > 0; in this time heat spreads from a point over about (2 time)^(1/2) radians. "learn": by
        the likelihood of y, see `learn_kernel`.

    Notes
    -----
    Scaled so that k(x, x) = 1. Values are sums of the series, up to degree 4,096. On the globe the
    error is up to 3e-8 for time = 1e-6, 4e-3 for 3e-7, and a tenth for 1e-7.

    Examples
    --------
    >>> from gzkcore.kernels import SphereHeat
    >>> SphereHeat(time=0.1)([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]).round(4)
    array([[0.0026]])
    """

    learnable: ClassVar[tuple[str, ...]] = ("time",)

    def __init__(self, time: float | Literal["learn", "learn-isotropic"] = 1.0) -> None:
        self.time = time

    def _resolved(self, X: Rows) -> dict[str, Any]:
        return {"time": self._number()}

    def _number(self) -> float:
        raise_if_learned("time", self.time)
        return check_positive("time", self.time)

    def with_lengths(self, lengths: float) -> "SphereHeat":
        """Return the kernel with time = lengths^2 / 2."""
        return SphereHeat(lengths**2 / 2)

    def log_eigenvalue(self, degrees: Doubles, dim: int) -> Doubles:
        """Return -time l (l + d - 2)."""
        return -self._number() * degrees * (degrees + dim - 2)

    def eigenvalue_slope(self, degrees: Doubles, dim: int) -> Doubles:
        """Return -2 time l (l + d - 2)."""
        return 2 * self.log_eigenvalue(degrees, dim)


def _check_depth(depth: Any) -> int:
    """Return the number of layers, or raise if there are too many."""
    count = check_integer("depth", depth, 1)
    if count > _MOST_LAYERS:
        raise ValueError(f"depth={count} is too large; use at most {_MOST_LAYERS} layers")
    return count


class NeuralTangent(ZonalKernel):
    """Neural tangent kernel of a ReLU network, k(x, y) = |x| |y| K_L(cos) (Eq 33).

    S_0 = K_0 = t; S_h = a1(S_(h-1)), K_h = K_(h-1) a0(S_(h-1)) + S_h, for h = 1..L.

    Parameters
    ----------
    depth : int, default=2
        L >= 1 and at most 10,000, the number of hidden layers.
    normalize : bool, default=False
        Divide by L + 1, which is K_L(1).

    Notes
    -----
    K_L has a square root at t = 1. So the error of its series, truncated at degree q, is about C /
    q on the diagonal, and much smaller elsewhere. `truncation_error_` of `GegenbauerFeatures`
    reports it.

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
        return {"depth": _check_depth(self.depth), "normalize": bool(self.normalize)}

    def kappa(self, t: Doubles, dim: int) -> Doubles:
        """Return K_L(t), over L + 1 if normalize."""
        depth = _check_depth(self.depth)
        S = K = np.clip(np.asarray(t, dtype=np.float64), -1.0, 1.0)
        for _ in range(depth):
            angle = np.arccos(S)
            K = K * (1 - angle / math.pi)
            S = np.minimum((np.sqrt(1 - S * S) + S * (math.pi - angle)) / math.pi, 1.0)
            K = K + S
        return K / (depth + 1) if self.normalize else K

    def at_angles(self, theta: Doubles, dim: int) -> Doubles:
        """Return kappa(cos theta) by 1 - S_h, of which S_h has no digits for nearly equal rows."""
        depth = _check_depth(self.depth)
        gap, K = 2 * np.sin(theta / 2) ** 2, np.cos(theta)
        for _ in range(depth):
            K = K * (1 - theta / math.pi)
            gap = np.maximum(gap - (np.sin(theta) - theta * np.cos(theta)) / math.pi, 0.0)
            theta = 2 * np.arcsin(np.sqrt(gap / 2))
            K = K + 1 - gap
        return K / (depth + 1) if self.normalize else K


class ArcCosine(ZonalKernel):
    """Arc-cosine kernel of order n, k(x, y) = (|x| |y|)^n J_n(theta) / pi (Cho and Saul).

    J_0 = pi - theta, J_1 = sin theta + (pi - theta) cos theta,
    J_2 = 3 sin theta cos theta + (pi - theta) (1 + 2 cos^2 theta).

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        Step, ReLU, or squared ReLU units.

    Notes
    -----
    Above degree `order`, only every other degree occurs.

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
        return self._by_parts(np.arccos(t), np.sqrt(1 - t * t), t)

    def at_angles(self, theta: Doubles, dim: int) -> Doubles:
        """Return kappa(cos theta)."""
        return self._by_parts(theta, np.sin(theta), np.cos(theta))

    def _by_parts(self, theta: Doubles, sine: Doubles, t: Doubles) -> Doubles:
        rest = math.pi - theta
        return (
            rest / math.pi,
            (sine + rest * t) / math.pi,
            (3 * sine * t + rest * (1 + 2 * t * t)) / math.pi,
        )[self.power]
