"""Kernels of the dot product, by their Taylor series."""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from gzkcore._util.typing import Doubles, Rows
from gzkcore._util.validation import check_integer, check_not_negative, check_positive

from .base import Kernel, check_list
from .tile_form import EXPONENTIAL, LOG2_E, POLYNOMIAL, PRODUCT, Factor, Slope, Term, TileForm

__all__ = ["DotProduct", "ExponentialDot", "Polynomial"]


class DotProductKernel(Kernel):
    """k(x, y) = sum_j kappa^(j)(0) / j! <x, y>^j e(|x|) e(|y|), for scaled x and y."""

    def kappa(self, products: Doubles) -> Doubles:
        """Return kappa at scaled dot products."""
        raise NotImplementedError

    def from_products(self, products: Doubles, a: Doubles, b: Doubles) -> Doubles:
        """Return the kernel from scaled dot products <x, y>, all |x|^2 and all |y|^2."""
        return self.kappa(products)

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0), -inf where it is 0."""
        raise NotImplementedError

    def log_envelope(self, norms: ArrayLike) -> Doubles:
        """Return log e at scaled norms: 0 for a pure dot-product kernel."""
        return np.zeros(np.shape(norms))

    def n_derivatives(self) -> int | None:
        """Return the number of derivatives before all are 0; None: infinitely many."""
        return None

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return kappa(|x|^2)."""
        return self.kappa(np.square(np.asarray(norms, dtype=np.float64)))

    def check_finite(self, norms: Doubles) -> None:
        """Raise if the kernel overflows at these scaled norms."""
        with np.errstate(over="ignore"):
            values = self.diagonal(norms)
        if not np.isfinite(values).all():
            raise ValueError(
                f"{self!r} overflows at points of scaled norm {norms.max():.4g}; scale the "
                "columns, or use a smaller gamma"
            )

    def by_formula(self, X: Doubles, Y: Doubles) -> Doubles:
        """Return kappa at the scaled dot products."""
        scale = self.scale()
        return self.kappa((X * scale) @ (Y * scale).T)


def as_dot_product(kernel: Kernel, otherwise: str) -> DotProductKernel:
    """Return a kernel that has a Taylor series, or raise naming what to use `otherwise`."""
    if not isinstance(kernel, DotProductKernel):
        raise ValueError(  # noqa: TRY004  it is a kernel, only not for this
            f"{kernel!r} is not a power series of the dot product; use Gaussian, Polynomial, "
            f"ExponentialDot or DotProduct, or {otherwise}"
        )
    return kernel


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

    def tile_form(self, dim: int) -> TileForm:
        """Return 2^t at scaled dot products."""
        scale, slope = self.scale() * math.sqrt(LOG2_E), Slope(EXPONENTIAL, -2 / LOG2_E)
        return [Term((Factor(scale, PRODUCT, EXPONENTIAL, (1.0,), 0.0, math.inf, slope),))]


class Polynomial(DotProductKernel):
    """Polynomial kernel k(x, y) = (gamma <x, y> + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        >= 1.
    gamma : float, default=1.0
        > 0.
    coef0 : float, default=1.0
        >= 0; 0 gives the homogeneous kernel (gamma <x, y>)^degree.

    Notes
    -----
    Its series ends at degree `degree`, so that features are exact if there are enough of them.

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
        coef0: Any = self.coef0
        if isinstance(coef0, numbers.Real) and coef0 < 0:
            coef0 = float(coef0)
            raise ValueError(
                f"coef0={coef0:g} makes the coefficient of degree {degree - 1} in <x, y> "
                f"{degree * coef0:g} < 0, so the kernel is not positive definite; use coef0 >= 0"
            )
        return degree, check_not_negative("coef0", coef0)

    def scale(self) -> float:
        """Return sqrt(gamma)."""
        return math.sqrt(check_positive("gamma", self.gamma))

    def kappa(self, products: Doubles) -> Doubles:
        """Return (z + coef0)^degree."""
        degree, coef0 = self._numbers()
        return (products + coef0) ** degree

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

    def tile_form(self, dim: int) -> TileForm:
        """Return the power, at scaled dot products moved by coef0."""
        degree, coef0 = self._numbers()
        return _polynomial_form(self.scale(), [0.0] * degree + [1.0], coef0)


class DotProduct(DotProductKernel):
    """Any dot-product kernel, k(x, y) = sum_j kappa^(j)(0) / j! <x, y>^j, by its derivatives at 0.

    Parameters
    ----------
    derivatives : array-like of shape (p + 1,)
        kappa(0), kappa'(0), ..., all >= 0 and not all 0; all higher derivatives are 0.

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
        values = check_list("derivatives", self.derivatives)
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
        values = np.zeros_like(products)
        for factor in self._taylor()[::-1]:
            values = values * products + factor
        return values

    def _taylor(self) -> Doubles:
        orders = np.arange(self._numbers().size)
        coefficients: Doubles = np.exp(self.log_derivative(orders) - gammaln(orders + 1.0))
        return coefficients

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0), -inf where it is 0."""
        values = np.append(self._numbers(), 0.0)
        index = np.minimum(np.asarray(orders, dtype=np.intp), values.size - 1)
        with np.errstate(divide="ignore"):
            logarithms: Doubles = np.log(values[index])
        return logarithms

    def n_derivatives(self) -> int | None:
        """Return the number of `derivatives`."""
        return int(np.size(self.derivatives))

    def tile_form(self, dim: int) -> TileForm:
        """Return the Taylor polynomial."""
        return _polynomial_form(self.scale(), self._taylor(), 0.0)


def _polynomial_form(
    scale: float | Doubles, coefficients: Sequence[float] | Doubles, offset: float
) -> TileForm:
    """Return a polynomial of the dot product plus an offset."""
    steep = [j * float(c) for j, c in enumerate(coefficients)][1:] or [0.0]
    slope = Slope(POLYNOMIAL, -2.0, steep)
    return [Term((Factor(scale, PRODUCT, POLYNOMIAL, coefficients, offset, math.inf, slope),))]
