"""The exact kernels; each knows what its approximations need.

A kernel stores its arguments untouched (`get_params`, `set_params`, `clone` work); `resolve(X)` returns
a copy in which every parameter is a number, and only a resolved kernel can be evaluated.

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

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import euclidean_distances

from ._validation import check_positive
from .special import gegenbauer

__all__ = ["Gaussian", "Kernel", "Zonal", "as_kernel"]

# Rows looked at for the median distance and for the sanity check after fit.
_SAMPLE = 1000


class Kernel(BaseEstimator):
    """Base of all kernels: `k(X, Y)` is the exact matrix, `k.diag(X)` its diagonal."""

    shift_invariant = False
    unit_sphere = False

    def resolve(self, X):
        """Return a copy with every parameter resolved to a number on the data X."""
        raise NotImplementedError

    def scale(self):
        """Return the factor, or one per column, by which the inputs are multiplied."""
        return 1.0

    def __call__(self, X, Y=None):
        """Return the exact kernel matrix of shape (len(X), len(Y)); Y=None means X."""
        raise NotImplementedError

    def diag(self, X):
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

    shift_invariant = True

    def __init__(self, gamma="scale"):
        self.gamma = gamma

    def resolve(self, X):
        """Return a copy with a numeric gamma; X (array or sparse) is read for "scale" and "median"."""
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

    def scale(self):
        return np.sqrt(2 * np.asarray(self._number()))

    def log_derivative(self, orders):
        """Return log kappa^(j)(0): exp has 1 everywhere."""
        return np.zeros(np.shape(orders))

    def log_envelope(self, norms):
        """Return -|u|^2 / 2, for scaled norms."""
        return -0.5 * np.square(norms)

    def __call__(self, X, Y=None):
        scale = self.scale()
        X = _dense(X)
        center = X.mean(axis=0)  # distances by products lose the digits that an offset takes
        Y = None if Y is None else (_dense(Y) - center) * scale
        return np.exp(-0.5 * euclidean_distances((X - center) * scale, Y, squared=True))

    def diag(self, X):
        self._number()
        return np.ones(X.shape[0])

    def _number(self):
        if isinstance(self.gamma, str):
            raise ValueError(
                f"gamma={self.gamma!r} is not a number yet; call resolve(X), or use kernel_ of the "
                "fitted features"
            )
        return self.gamma


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

    unit_sphere = True

    def __init__(self, function=None, coefficients=None):
        self.function = function
        self.coefficients = coefficients

    def resolve(self, X):
        """Return a copy; checks that exactly one of function and coefficients is usable."""
        if (self.function is None) == (self.coefficients is None):
            raise ValueError(
                "Zonal needs either function or coefficients; "
                f"got function={self.function!r}, coefficients={self.coefficients!r}"
            )
        if self.function is not None:
            if not callable(self.function):
                raise TypeError(f"function={self.function!r} is not callable; pass kappa itself")
            return Zonal(function=self.function)
        c = np.array(self.coefficients, dtype=np.float64)
        if c.ndim != 1 or c.size == 0 or not np.isfinite(c).all():
            raise ValueError(f"coefficients={self.coefficients!r} must be a list of finite numbers")
        if (c < 0).any():
            raise ValueError(
                f"coefficients[{int(np.argmin(c))}]={c.min():g} is negative, so the kernel is not "
                "positive definite; every coefficient must be >= 0"
            )
        return Zonal(coefficients=c)

    def series(self, dim, degree):
        """Return c_0..c_degree, with rounding noise below 0 set to 0."""
        if self.coefficients is not None:
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

    def noise(self, dim, degree):
        """Return up to what rounding error the sum of c_0..c_degree is known."""
        if self.coefficients is not None:
            return 0.0
        from .series import series_noise

        return float(series_noise(self.function, dim, degree).sum())

    def at_one(self, dim):
        """Return kappa(1) = k(x, x)."""
        if self.coefficients is not None:
            return float(np.sum(self.coefficients))
        return float(np.asarray(self.function(np.ones(1)))[0])

    def __call__(self, X, Y=None):
        X = _dense(X)
        Y = X if Y is None else _dense(Y)
        t = np.clip(X @ Y.T, -1.0, 1.0)
        if self.function is not None:
            return np.asarray(self.function(t))
        dim = X.shape[1]
        return sum(c * gegenbauer(level, dim, t) for level, c in enumerate(self.coefficients))

    def diag(self, X):
        return np.full(X.shape[0], self.at_one(X.shape[1]))


def _dense(X):
    """Return the rows of X, dense or sparse, as an array of doubles."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


ALIASES = {"gaussian": Gaussian, "rbf": Gaussian}


def as_kernel(kernel):
    """Return the kernel for an alias, or the kernel itself."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in ALIASES:
        return ALIASES[kernel]()
    raise ValueError(
        f"kernel={kernel!r} is unknown; use one of {sorted(ALIASES)} or an instance from "
        "gzkcore.kernels"
    )


def _gamma_from_data(rule, X):
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


def _variance(X):
    """Return the variance of all entries of X, as scikit-learn's "scale" uses it, in double."""
    if hasattr(X, "tocsr"):
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
