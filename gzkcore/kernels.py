"""The exact kernels; each knows what its approximations need.

A kernel stores its arguments untouched (`get_params`, `set_params`, `clone` work); `resolve(X)`
returns a copy in which every parameter is a number, and only a resolved kernel can be evaluated.

What `GegenbauerFeatures` asks of a kernel:

- `shift_invariant`: whether the data may be centred;
- `unit_sphere`: whether it has a meaning for unit rows only;
- `scale()`: by what the inputs are multiplied first, a number or one per column;
- of a dot-product kernel, up to a factor of each argument (the Gaussian is one):
  `log_derivative(orders)` and `log_envelope(norms)`, so that
  k(x, y) = sum_j kappa^(j)(0) / j! <x, y>^j exp(envelope(|x|) + envelope(|y|));
- of a zonal kernel: `series(dim, degree)`, its coefficients c_l (Eq 8).
"""

import numbers
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances

from ._typing import Data, Doubles, Function, Rows
from ._validation import check_positive
from .special import gegenbauer

__all__ = ["Gaussian", "Kernel", "Zonal", "as_kernel"]

# Rows looked at for the median distance and for the sanity check after fit.
_SAMPLE = 1000


class Kernel(BaseEstimator):
    """Base of all kernels: `k(X, Y)` is the exact matrix, `k.diag(X)` its diagonal."""

    shift_invariant: ClassVar[bool] = False
    unit_sphere: ClassVar[bool] = False

    def resolve(self, X: Rows) -> "Kernel":
        """Return a copy with every parameter resolved to a number on the data X."""
        raise NotImplementedError

    def scale(self) -> float | Doubles:
        """Return the factor, or one per column, by which the inputs are multiplied."""
        return 1.0

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0), for dot-product kernels."""
        raise NotImplementedError

    def log_envelope(self, norms: ArrayLike) -> Doubles:
        """Return the envelope at scaled norms, for dot-product kernels."""
        raise NotImplementedError

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree of Eq 8, for zonal kernels."""
        raise NotImplementedError

    def noise(self, dim: int, degree: int) -> float:
        """Return up to what rounding error the sum of c_0..c_degree is known, for zonal kernels."""
        raise NotImplementedError

    def at_one(self, dim: int) -> float:
        """Return kappa(1) = k(x, x), for zonal kernels."""
        raise NotImplementedError

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        raise NotImplementedError

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) for every row of X."""
        raise NotImplementedError


class Gaussian(Kernel):
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

    shift_invariant: ClassVar[bool] = True

    def __init__(
        self, gamma: float | Sequence[float] | Doubles | Literal["scale", "median"] = "scale"
    ) -> None:
        self.gamma = gamma

    def resolve(self, X: Rows) -> "Gaussian":
        """Return a copy with a numeric gamma; "scale" and "median" read X (array or sparse)."""
        if isinstance(self.gamma, str):
            return Gaussian(_gamma_from_data(self.gamma, X))
        if isinstance(self.gamma, numbers.Real):
            return Gaussian(check_positive("gamma", self.gamma))
        gamma = np.array(self.gamma, dtype=np.float64)
        if gamma.shape != (X.shape[1],):
            raise ValueError(
                f"gamma has shape {gamma.shape}, but X has {X.shape[1]} columns; "
                "pass one number, or one for each column"
            )
        if not (np.isfinite(gamma).all() and (gamma > 0).all()):
            raise ValueError(f"gamma={gamma} is not usable; every value must be finite and > 0")
        return Gaussian(gamma)

    def scale(self) -> float | Doubles:
        """Return sqrt(2 gamma), a number or one per column."""
        scale: Doubles = np.sqrt(2 * self._number())
        return scale

    def log_derivative(self, orders: ArrayLike) -> Doubles:
        """Return log kappa^(j)(0): exp has 1 everywhere."""
        return np.zeros(np.shape(orders))

    def log_envelope(self, norms: ArrayLike) -> Doubles:
        """Return -|u|^2 / 2, for scaled norms."""
        envelope: Doubles = -0.5 * np.square(np.asarray(norms, dtype=np.float64))
        return envelope

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        scale = self.scale()
        X = _dense(X)
        center = X.mean(axis=0)  # distances by products lose the digits that an offset takes
        Y = None if Y is None else (_dense(Y) - center) * scale
        squared = euclidean_distances((X - center) * scale, Y, squared=True)
        values: Doubles = np.exp(-0.5 * squared)
        return values

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) = 1 for every row of X."""
        self._number()
        return np.ones(X.shape[0])

    def _number(self) -> Doubles:
        if isinstance(self.gamma, str):
            raise ValueError(  # noqa: TRY004  a rule is a legal gamma, only not here
                f"gamma={self.gamma!r} is not a number yet; call resolve(X), or use kernel_ of the "
                "fitted features"
            )
        return np.asarray(self.gamma, dtype=np.float64)


class Zonal(Kernel):
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

    unit_sphere: ClassVar[bool] = True

    def __init__(
        self,
        function: Function | None = None,
        coefficients: Sequence[float] | Doubles | None = None,
    ) -> None:
        self.function = function
        self.coefficients = coefficients

    def resolve(self, X: Rows) -> "Zonal":
        """Return a copy; checks that exactly one of function and coefficients is usable."""
        if (self.function is None) == (self.coefficients is None):
            raise ValueError(
                "Zonal needs either function or coefficients; "
                f"got function={self.function!r}, coefficients={self.coefficients!r}"
            )
        if self.function is not None:
            if not callable(self.function):
                raise TypeError(f"function={self.function!r} is not callable; pass kappa itself")
            t = np.cos(np.linspace(0.0, np.pi, 65))
            values = np.asarray(self.function(t))
            if values.shape != t.shape or not np.isfinite(values).all() or not values.any():
                raise ValueError(
                    "function must map an array of cosines in [-1, 1] to finite values of the same "
                    f"shape, not all 0; got {values!r:.60}"
                )
            return Zonal(function=self.function)
        c = np.array(self.coefficients, dtype=np.float64)
        if c.ndim != 1 or c.size == 0 or not np.isfinite(c).all():
            raise ValueError(f"coefficients={self.coefficients!r} must be a list of finite numbers")
        if (c < 0).any():
            raise ValueError(
                f"coefficients[{int(np.argmin(c))}]={c.min():g} is negative, so the kernel is not "
                "positive definite; every coefficient must be >= 0"
            )
        if not c.any():
            raise ValueError("coefficients are all 0, and so is the kernel; one must be > 0")
        return Zonal(coefficients=c)

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: a function is code; features hold its series."""
        value = self.at_one(1) if self.coefficients is None else None
        return {"function": None, "coefficients": self.coefficients, "_at_one": value}

    def _check_known(self) -> None:
        if self.function is None and self.coefficients is None:
            raise ValueError(
                "this Zonal kernel has no function: files of models keep no functions, which are "
                "code; make it anew with function="
            )

    def series(self, dim: int, degree: int) -> Doubles:
        """Return c_0..c_degree, with rounding noise below 0 set to 0."""
        self._check_known()
        if self.function is None:
            given = np.asarray(self.coefficients, dtype=np.float64)
            if dim == 1:  # P_1^l = t^l is 1 or t on the two points of the sphere
                given = np.array([given[::2].sum(), given[1::2].sum()])
            c = np.zeros(degree + 1)
            c[: given.size] = given[: degree + 1]
            return c
        from .series import gegenbauer_series, series_noise

        c = gegenbauer_series(self.function, dim, degree)
        noise = series_noise(self.function, dim, degree)
        worst = int(np.argmin(c + noise))
        if c[worst] < -noise[worst]:
            raise ValueError(
                f"function is not positive definite in dimension {dim}: the coefficient of degree "
                f"{worst} is {c[worst]:.3g} < 0; use a kernel that is, or a lower dimension"
            )
        return np.where(c > noise, c, 0.0)

    def noise(self, dim: int, degree: int) -> float:
        """Return up to what rounding error the sum of c_0..c_degree is known."""
        if self.function is None:
            return 0.0
        from .series import series_noise

        return float(series_noise(self.function, dim, degree).sum())

    def at_one(self, dim: int) -> float:
        """Return kappa(1) = k(x, x)."""
        known: float | None = getattr(self, "_at_one", None)  # of a function that is gone
        if known is not None:
            return known
        self._check_known()
        if self.function is None:
            return float(np.sum(np.asarray(self.coefficients, dtype=np.float64)))
        return float(np.asarray(self.function(np.ones(1)), dtype=np.float64)[0])

    def __call__(self, X: Data, Y: Data | None = None) -> Doubles:
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        self._check_known()
        X = _dense(X)
        Y = X if Y is None else _dense(Y)
        t = np.clip(X @ Y.T, -1.0, 1.0)
        if self.function is not None:
            return np.asarray(self.function(t), dtype=np.float64)
        values = np.zeros(t.shape)
        for level, c in enumerate(np.asarray(self.coefficients, dtype=np.float64)):
            values += c * gegenbauer(level, X.shape[1], t)
        return values

    def diag(self, X: Rows) -> Doubles:
        """Return k(x, x) = kappa(1) for every row of X."""
        return np.full(X.shape[0], self.at_one(X.shape[1]))


def _dense(X: Data) -> Doubles:
    """Return the rows of X, dense or sparse, as an array of doubles."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


ALIASES = {"gaussian": Gaussian, "rbf": Gaussian}


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel for an alias, or the kernel itself."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in ALIASES:
        return ALIASES[kernel]()
    raise ValueError(
        f"kernel={kernel!r} is unknown; use one of {sorted(ALIASES)} or an instance from "
        "gzkcore.kernels"
    )


def _gamma_from_data(rule: str, X: Rows) -> float:
    """Resolve "scale" or "median" on data, reading X once in tiles."""
    if rule == "scale":
        variance = _variance(X)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if rule == "median":
        step = max(1, X.shape[0] // _SAMPLE)
        rows = X[::step][:_SAMPLE]
        squared = euclidean_distances(_dense(rows), squared=True)[np.triu_indices(rows.shape[0], 1)]
        middle = float(np.median(squared)) if squared.size else 0.0
        return 1.0 / middle if middle > 0 else 1.0
    raise ValueError(f"gamma={rule!r} is unknown; use a number > 0, 'scale' or 'median'")


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
