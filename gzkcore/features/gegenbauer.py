"""Features for generalized zonal kernels: random directions, exact harmonics, or both.

`GegenbauerFeatures` writes a kernel as k(x, y) = sum over (l, i) of h_(l,i)(|x|) h_(l,i)(|y|)
P_d^l(cos) and turns each (l, i) into columns in one of two ways:

- exactly: h_(l,i)(|x|) alpha^(-1/2) Y_j(x/|x|) for the alpha(l, d) harmonics of degree l, no
  variance;
- at random: for a direction w, sum_l s_l sqrt(alpha) h_(l,i)(|x|) P_d^l(<x/|x|, w>) / sqrt(m),
  unbiased over w (Definition 8 of Han, Zandieh, Avron). The signs s = (+, +, -, -, ...) leave the
  kernel as it is, since different degrees are uncorrelated, and remove the spike that all signs
  plus have at w = x.

Which share is exact is chosen by the predicted error, from the energies of the (l, i) and the
spread of the directions. `PublishedGegenbauerFeatures` is Definition 8 as printed, the yardstick.
"""

import copy
import math
import numbers
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted

from gzkcore._compiled import gegenbauer as _gegenbauer
from gzkcore._compiled import series as _series
from gzkcore._util.model_io import stored
from gzkcore._util.random import as_seed_sequence, generator
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Data, Doubles, Floats, Integers, Rows, Seed
from gzkcore._util.validation import check_choice, check_integer, check_positive, dense
from gzkcore.kernels.aliases import as_kernel
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.radial import SPHERE, RadialFunctions, row_products
from gzkcore.kernels.truncation import truncate
from gzkcore.kernels.zonal import Zonal
from gzkcore.rows.sources import Batch, rows_of
from gzkcore.rows.survey import Norms
from gzkcore.sphere.directions import (
    POINT_SETS,
    Method,
    best_method,
    sample_directions,
    sphere_quadrature,
)
from gzkcore.sphere.harmonics import HarmonicTree
from gzkcore.sphere.series import angles, zonal_sum
from gzkcore.sphere.special import alpha, log_alpha

from .adapted import CHOICE, WIDER, error_on_sample, principal_axes, strongest_columns
from .base import (
    STREAM_BYTES,
    FeatureMap,
    TruncationWarning,
    check_unit,
    plain_output,
    random_pairs,
    tiles,
    values_of_pairs,
    warn_if_trivial,
)
from .block import BlockProjection

__all__ = [
    "GegenbauerFeatures",
    "PublishedGegenbauerFeatures",
    "TruncationWarning",
    "feature_operator",
    "gegenbauer_features",
]

Basis: TypeAlias = Literal["auto", "harmonic", "random", "hybrid", "adapted"]
BASES: tuple[Basis, ...] = get_args(Basis)
# The signs of i^l, real and imaginary parts together.
_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])
# What rounding may add to a kernel value: radial functions are interpolated to 2e-13.
_ROUNDING = 5e-13
# Size of the kernel matrix whose error decides how much of the basis is exact. A smaller one gives
# more weight to the diagonal, that is to how closely a learner can follow its data.
_JUDGED = 256
# Directions of a set that enter the prediction of its error.
_PROBE = 512
# basis="adapted" rotates the data up to this dimension, to axes found on so many rows.
_MOST_ROTATED = 512
_ROWS_FOR_AXES = 4096
# Rows whose norms are held together, 8 bytes each.
_NORMS_AT_ONCE = 1 << 18
# Pairs of rows that show what a projection does to the kernel.
_SAMPLE_PAIRS = 1000
# Horner's rule is used where it loses at most this factor of the digits of the type.
_HORNER_LOSS = {"f": 32.0, "d": 1e4}


def gegenbauer_features(X: ArrayLike, W: ArrayLike, radial: ArrayLike) -> Floats:
    """Sums of Gegenbauer polynomials at the cosines between rows and directions (Eq 13).

    out[i, j] = sum_l radial[i, l] P_d^l(<x_i, w_j>).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Unit rows; float32 is kept, everything else becomes float64.
    W : array-like of shape (m, d)
        Unit rows.
    radial : array-like of shape (n, q + 1) or (1, q + 1)
        What multiplies P_d^l for each row; one row serves all.

    Returns
    -------
    ndarray of shape (n, m)
        float32 for float32 X, else float64.

    Raises
    ------
    ValueError
        If the shapes don't fit together.

    Notes
    -----
    By Clenshaw's rule, n m (d + 2 q) fused operations. Errors of 3e-6 (float32) and 1e-14 (float64)
    relative to the largest value are typical.

    References
    ----------
    Han, Zandieh, Avron, Eq 13.

    Examples
    --------
    >>> from gzkcore.features.gegenbauer import gegenbauer_features
    >>> gegenbauer_features([[1.0, 0.0, 0.0]], [[0.6, 0.8, 0.0]], [[1.0, 2.0, 3.0]]).round(6)
    array([[2.32]])
    """
    X = np.asarray(X)
    X = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    W = np.ascontiguousarray(W, dtype=np.float64)
    radial = np.ascontiguousarray(radial, dtype=np.float64)
    if X.ndim != 2 or W.ndim != 2 or X.shape[1] != W.shape[1]:
        raise ValueError(f"X {X.shape} and W {W.shape} must be matrices with equally many columns")
    if radial.ndim != 2 or radial.shape[0] not in (1, X.shape[0]) or radial.shape[1] < 1:
        raise ValueError(
            f"radial has shape {radial.shape}; pass one row, or one for each of {X.shape[0]} rows"
        )
    rule = Recurrence(X.shape[1], radial.shape[1] - 1)
    out = np.empty((X.shape[0], W.shape[0]), dtype=X.dtype)
    rule.evaluate(X, W, radial, out, stream=out.nbytes > STREAM_BYTES)
    return out


class Recurrence:
    """The polynomials p_k that the kernel sums: p_(k+1) = t p_k - beta_k p_(k-1).

    They are P_d^k times known factors, in the variable tau t; tau is chosen so that the factors
    stay near 1 at both ends of the range of degrees and float32 neither overflows nor underflows.
    """

    _state = stored("dim", "tau", "beta", "factor", "plain", "_monic")

    def __init__(self, dim: int, degree: int) -> None:
        self.dim = dim
        level = np.arange(1, degree + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = level * (level + dim - 3) / ((2 * level + dim - 2) * (2 * level + dim - 4))
            growth = (2 * level + dim - 4) / (level + dim - 3)
        beta[:1], growth[:1] = 1 / dim, 1.0
        if dim == 1:  # t^l, as on the two points of the sphere
            beta[:], growth[:] = 0.0, 1.0
        log_lead = np.concatenate([[0.0], np.cumsum(np.log(growth))])  # of P_d^k
        log_size = log_alpha(np.arange(degree + 1), dim)
        norm = log_lead + 0.5 * np.where(np.isfinite(log_size), log_size, 0)
        self.tau = math.exp(norm[-1] / degree) if degree else 1.0
        self.beta = np.concatenate([[0.0], beta * self.tau**2])
        self.factor = np.exp(log_lead - np.arange(degree + 1) * math.log(self.tau))
        self.plain = np.zeros(degree + 1)
        self._monic = np.concatenate([[0.0], beta]), np.exp(log_lead)

    def monomials(self) -> Doubles:
        """Matrix (q+1, q+1) whose row l holds the monomial coefficients of P_d^l."""
        beta, lead = self._monic
        q = beta.size - 1
        rows = np.zeros((q + 1, q + 1))
        rows[0, 0] = 1.0
        for k in range(q):
            rows[k + 1, 1:] = rows[k, :-1]
            if k:
                rows[k + 1] -= beta[k] * rows[k - 1]
        rows *= lead[:, None]
        return rows

    def evaluate(
        self,
        X: Floats,
        W: Doubles,
        radial: Doubles,
        out: Floats,
        *,
        monomials: Doubles | None = None,
        stream: bool = False,
    ) -> None:
        """Set out = sum_l radial_l P_d^l(X W^T), by Horner's rule where `monomials` is given."""
        dtype = X.dtype
        if monomials is not None:
            coefficients, beta, tau = row_products(radial, monomials), self.plain, 1.0
        else:
            coefficients, beta, tau = radial * self.factor, self.beta, self.tau
        _gegenbauer.gegenbauer_features(
            X, np.ascontiguousarray(W * tau, dtype=dtype),
            np.ascontiguousarray(coefficients, dtype=dtype), beta.astype(dtype),
            out, stream, n_threads(out.size * beta.size),
        )  # fmt: skip


class _Directions:
    """Random columns for one family of radial functions (one i, several degrees)."""

    _state = stored("W", "columns", "degrees", "weights", "rule", "_horner")

    def __init__(
        self, dim: int, degrees: Integers, columns: Integers, W: Doubles, signs: Doubles
    ) -> None:
        self.W = W
        self.columns = columns  # radial functions, one for each degree in `degrees`
        self.degrees = degrees
        self.weights = signs * np.exp(0.5 * log_alpha(degrees, dim)) / math.sqrt(W.shape[0])
        self.rule = Recurrence(dim, int(degrees.max()))
        self._horner: dict[str, Doubles] = {}

    def fill(self, unit: Floats, values: Floats, out: Floats, stream: bool) -> None:
        """Write the columns, given the radial functions' values (n or 1, len(columns))."""
        radial = np.zeros((values.shape[0], self.rule.beta.size))
        radial[:, self.degrees] = values * self.weights
        self.rule.evaluate(
            unit, self.W, radial, out, monomials=self._horner.get(unit.dtype.char), stream=stream
        )

    def allow_horner(self, values: Floats) -> None:
        """Use Horner's rule per type where, for these radial values, it is accurate enough."""
        radial = np.zeros((values.shape[0], self.rule.beta.size))
        radial[:, self.degrees] = values * self.weights
        size = np.sqrt(np.sum(np.square(values), axis=1) / self.W.shape[0])
        monomials = self.rule.monomials()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            loss = np.nanmax(np.abs(radial @ monomials).sum(axis=1) / size, initial=0.0)
        self._horner = {char: monomials for char, most in _HORNER_LOSS.items() if loss <= most}


# A way to choose the columns: by what it is judged, its mean squared error over pairs, the radial
# functions that are exact, how many harmonics of each, and the random columns.
_Option: TypeAlias = tuple[float, float, Integers, Integers, list[_Directions]]


class _Features(FeatureMap):
    """What both classes share: norms and centre, and the loop over tiles."""

    _state = stored(
        "kernel_",
        "reducer_",
        "dim_",
        "_scale",
        "_unit",
        "center_",
        "radius_",
        "_tol",
        "_kept",
        "_radial",
        "_families",
        "order_",
        "truncation_error_",
        "expected_error_",
    )

    kernel: str | Kernel
    n_components: int
    radius: float | tuple[float, float] | None
    random_state: Seed
    kernel_: Kernel
    reducer_: Any
    dim_: int
    center_: Doubles | None
    radius_: float
    truncation_error_: float
    expected_error_: float
    _scale: Doubles
    _unit: float
    _tol: float
    _radial: RadialFunctions
    _kept: NDArray[np.bool_]  # which radial functions are whole

    def fit(self, X: Data, y: object = None) -> Self:
        """Resolve the kernel on X, read the norms of X, choose the basis, draw directions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = self._validate(X, reset=True)
        self._n_features_out = check_integer("n_components", self.n_components, 1)
        kernel = as_kernel(self.kernel).resolve(X)
        if kernel.unit_sphere:
            check_unit(X)
        self.kernel_ = kernel
        self.reducer_ = self._choose_reducer(X)
        self.dim_ = dim = X.shape[1] if self.reducer_ is None else self._reduced(X[:1]).shape[1]
        self._scale = np.broadcast_to(kernel.scale(), dim).astype(np.float64)
        self._unit = float(np.mean(self._scale))  # scaled units in one of the user's
        self.center_ = self._choose_center(X)
        shell, norms = self._read_norms(X)
        self.radius_ = shell[1] / self._unit
        self._tol = self._choose_tol(X.dtype)
        self._expand(dim, shell, norms, X)
        warn_if_trivial(kernel, X)
        return self

    def partial_fit(self, X: Data, y: object = None) -> Self:
        """Fit on the first batch only; later batches are checked and change nothing.

        Without a `radius` the first batch's norms, centre and gamma are frozen, and a warning says
        so.
        """
        if hasattr(self, "_n_features_out"):
            self._validate(X, reset=False)
            return self
        if self.radius is None and not as_kernel(self.kernel).unit_sphere:
            warnings.warn(
                "partial_fit without a radius freezes the centre, the radius and gamma of the "
                "first batch; pass radius= (and a numeric gamma) if later batches reach further",
                UserWarning,
                stacklevel=2,
            )
        return self.fit(X)

    def _asks_no_rows(self) -> bool:
        """Say whether the parameters leave nothing to the rows of a fit."""
        kernel = as_kernel(self.kernel)
        rules = any(isinstance(value, str) for value in kernel.get_params().values())
        adapts = vars(self).get("basis") == "adapted" or vars(self).get("reduce") is not None
        return not (self.radius is None or rules or adapts)

    def _write(self, X: Rows, out: Floats, stream: bool) -> None:
        if self.kernel_.unit_sphere:
            check_unit(X)
        nearest, furthest = math.inf, 0.0
        for rows in tiles(X.shape[0], out.itemsize * out.shape[1]):
            unit, norms = self._polar(X[rows], rows.start)
            nearest, furthest = min(nearest, norms.min()), max(furthest, norms.max())
            self._fill(unit, norms, out[rows], stream)
        self._warn_outside(float(nearest), float(furthest))

    def missing_diagonal(self, X: Data) -> Doubles:
        """Return k(x, x) - z(x).z(x): what the features leave out, or add, on the diagonal.

        A kernel with a root at its diagonal, such as the neural tangent one, loses its high degrees
        there and almost nothing elsewhere: Z @ Z.T + np.diag(missing_diagonal(X)) is then much
        closer to the kernel matrix than Z @ Z.T. In a ridge, or as a predictive variance, it is
        noise that belongs to the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Not negative up to rounding where all columns are exact.
        """
        check_is_fitted(self, "kernel_")
        X = self._validate(X, reset=False)
        missing = np.empty(X.shape[0])
        for tile in tiles(X.shape[0], 8 * self._n_features_out):
            Z = self.transform(X[tile])
            _, norms = self._polar(X[tile], tile.start)
            missing[tile] = self._radial.diagonal(norms)
            missing[tile] -= np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        return missing

    def _polar(self, tile: Rows, first: int = 0) -> tuple[Floats, Doubles]:
        """Unit rows in the dtype of the data, and norms in double, of the scaled, centred tile.

        `first` is the number of its first row, for the message.
        """
        tile = np.ascontiguousarray(dense(self._reduced(tile)))
        unit, norms = np.empty_like(tile), np.empty(tile.shape[0])
        center = np.zeros(tile.shape[1]) if self.center_ is None else self.center_
        _series.polar(tile, center, self._scale, unit, norms, n_threads(tile.size))
        if not np.isfinite(norms).all():
            row = first + int(np.argmin(np.isfinite(norms)))
            raise ValueError(
                f"row {row} of X, counted from 0, is so large that its squared norm overflows; "
                "scale the columns (sklearn.preprocessing.StandardScaler)"
            )
        if not (self.kernel_.defined_at_zero or norms.all()):
            raise ValueError(
                f"row {first + int(np.argmin(norms))} of X, counted from 0, is all 0, and "
                f"{self.kernel_!r} depends on the direction alone; drop such rows"
            )
        return unit, norms

    def _choose_reducer(self, X: Rows) -> Any:
        """Return a fitted projection that comes before the expansion, or None."""
        return None

    def _reduced(self, tile: Rows) -> Rows:
        """Project rows, in their dtype, where there is a projection."""
        if self.reducer_ is None:
            return tile
        # scikit-learn multiplies sparse rows with a matrix of their own type only.
        dtype = getattr(getattr(self.reducer_, "components_", None), "dtype", np.float64)
        wide = tile.astype(dtype, copy=False)
        return self.reducer_.transform(wide).astype(tile.dtype, copy=False)

    def _norms(self, X: Rows) -> Norms:
        """Read the scaled norms of X, or of all the rows that X is a sample of."""
        whole = vars(self).get("_whole")
        if whole is not None:
            alone = copy.copy(self)  # what goes to each batch
            del alone._whole
            found: Norms = whole.source.reduce(_norms_of_batch, Norms.merge, alone, whole.columns)
            return found
        return self._norms_of(X)

    def _norms_of(self, X: Rows) -> Norms:
        found, norms = [], np.empty(min(X.shape[0], _NORMS_AT_ONCE))
        for first in range(0, X.shape[0], norms.size):
            part = X[first : first + norms.size]
            for rows in tiles(part.shape[0], 8 * X.shape[1]):
                norms[rows] = self._polar(part[rows], first + rows.start)[1]
            found.append(Norms(norms[: part.shape[0]]))
        return Norms.merge(found) if len(found) > 1 else found[0]

    def _choose_center(self, X: Rows) -> Doubles | None:
        return None

    def _read_norms(self, X: Rows) -> tuple[tuple[float, float], Doubles]:
        """Return the shell of scaled norms, and equally likely norms, from `radius` or the data."""
        if self.kernel_.unit_sphere:
            return (1.0, 1.0), np.ones(1)
        likely = (np.arange(64) + 0.5) / 64
        if self.radius is None:
            seen = self._norms(X)
            return (seen.min(), seen.max()), seen.quantile(likely)
        low, high = _check_radius(self.radius)
        low, high = low * self._unit, high * self._unit
        # Without looking at the data: uniform in the ball.
        norms = high * (likely + (1 - likely) * (low / high) ** self.dim_) ** (1 / self.dim_)
        return (low, high), norms

    def _certify(self, kept: NDArray[np.bool_]) -> float:
        """Largest residual over the shell, and what rounding adds."""
        self._kept = kept
        largest = float(self._radial.diagonal(np.array(self._radial.shell)).max())
        return self._radial.largest_residual(kept) + _ROUNDING * largest

    def _warn_outside(self, nearest: float, furthest: float) -> None:
        """Warn of points off the shell of the fit where the kernel is no longer represented."""
        low, high = self._radial.shell
        if self._radial.constant or (
            nearest >= low * (1 - SPHERE) and furthest <= high * (1 + SPHERE)
        ):
            return
        there = np.array([nearest, furthest])
        largest = np.maximum(self._radial.diagonal(there), np.finfo(float).tiny)
        errors = self._radial.residual(there, self._kept) / largest
        worst = int(np.argmax(errors))
        usual = self.truncation_error_ / max(
            float(self._radial.diagonal(np.array([high]))[0]), 1e-300
        )
        if errors[worst] > max(10 * self._tol, 1e-3, 2 * usual):
            seen = f"{low / self._unit:.4g} to {high / self._unit:.4g}"
            warnings.warn(
                f"points at distance {there[worst] / self._unit:.4g} from the centre lie outside "
                f"the fit's {seen}, and the kernel is off there by up to {errors[worst]:.2g}; fit "
                "on data that reach as far, or pass radius=(smallest, largest)",
                TruncationWarning,
                stacklevel=6,  # who called transform
            )


class GegenbauerFeatures(_Features):
    """Features for a generalized zonal kernel: exact harmonics, random directions, or both.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        An alias such as "gaussian", or an instance from `gzkcore.kernels`.
    n_components : int, default=1024
        Width of the output, exactly.
    basis : {"auto", "harmonic", "random", "hybrid", "adapted"}, default="auto"
        "harmonic": radial functions times explicit spherical harmonics, strongest columns first,
        zero variance. "random": Definition 8 with alternating signs, compressed radial functions
        and evenly spread directions, unbiased. "hybrid": the strongest harmonics exactly, the
        remainder at random, unbiased. "auto": whichever of these is predicted to have the smallest
        error. "adapted": of sixteen times as many harmonics the quarter with the largest mean
        squares on (at most 2,048 rows of) the training data, compressed to n_components by the
        principal axes of their Gram matrix (on at most 8 n_components rows): data dependent. The
        data are first rotated to their own principal axes, which changes no kernel value.
    directions : {"auto", "iid", "orthogonal", "sobol", "fibonacci"}, default="auto"
        Point set for random columns; see `gzkcore.sphere.directions`.
    radius : float or (float, float), optional
        Largest, or smallest and largest, distance from the centre that data will have, in their
        units. None: from the data given to fit. With a radius and a numeric gamma the map does not
        depend on the data at all.
    center : "auto", None or array-like of shape (n_features,), default="auto"
        What is subtracted first, for shift-invariant kernels (dot-product kernels are never
        centred). "auto": the mean of the data, but nothing where the data lie on a sphere around
        the origin or `radius` is given. Centring changes no kernel value and lowers the degree that
        is needed.
    reduce : None, int, transformer or "auto", default=None
        What comes before the expansion, for data of many columns. An int k: a sparse random
        projection to k columns, `BlockProjection`. A transformer: cloned and
        fitted. "auto": k = n_components from 2 n_components columns on, else nothing. The error
        that this adds is `reduction_error_`.
    tol : float or "auto", default="auto"
        Up to which error degrees are added; "auto" is 1e-12 for float64 and 1e-7 for float32.
        Columns that are free are filled with further degrees. It is a target: n_components may not
        suffice.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with every parameter a number.
    basis_ : str
        "harmonic", "random", "hybrid" or "adapted".
    degree_, order_ : int
        Highest degree, and number of radial functions of the degree that has most, in use.
    radius_ : float
        In the units of the data.
    center_ : ndarray of shape (dim_,) or None
    reducer_ : transformer or None
    dim_ : int
        Dimension of the expansion: columns after `reduce`.
    reduction_error_ : float
        Root mean square of what `reducer_` changes k(x, y) by, over 1,000 pairs of rows of fit.
    n_exact_ : int
        Columns without variance.
    n_directions_ : ndarray of int
        Directions for each family of radial functions.
    n_effective_ : int
        Columns that are not zero.
    truncation_error_ : float
        Certified: what was dropped for good changes no kernel value between points inside the shell
        of norms, after `reduce`, by more than this (in float64; float32 adds its rounding). For
        basis="adapted" it is the largest over the training rows.
    expected_error_ : float
        Root mean square of z(x).z(y) - k(x, y) over directions and over random pairs with the norms
        of the data (where the data crowd together, theirs is larger), and over projections.

    Notes
    -----
    Cost per row of exact columns: about 5 flops each; of random ones: 2 (d + 2q) each, q the
    degree. Memory: the output and tiles of a few megabytes. The result is the same to the bit for
    any number of threads and any split of the rows, per instruction set (basis="adapted", a product
    of matrices: to rounding).

    Unbiased for basis="random" and "hybrid" up to `truncation_error_`; for m independent directions
    the mean squared error is (E k(x,x) E k(y,y) - E k(x,y)^2) / m over random pairs, and evenly
    spread ones have less. basis="harmonic" is deterministic.

    References
    ----------
    .. [1] Han, Zandieh, Avron, Random Gegenbauer Features for Scalable Kernel Methods,
       Definitions 3 and 8, Lemma 5.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian, GegenbauerFeatures
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> features = GegenbauerFeatures(Gaussian(gamma=0.5), n_components=256, random_state=0).fit(X)
    >>> Z = features.transform(X)
    >>> features.basis_, bool(np.abs(Z @ Z.T - features.kernel_(X)).max() < 1e-12)
    ('harmonic', True)
    """

    _state = stored(
        "basis_",
        "degree_",
        "n_exact_",
        "n_directions_",
        "n_effective_",
        "reduction_error_",
        "_exact_functions",
        "_tree",
        "_nodes",
        "_ring",
        "_weights",
        "_axes",
        "_rotation",
    )

    # Of basis="adapted": what unit rows, and what the exact columns, are multiplied by.
    _rotation: Doubles | None
    _axes: Doubles | None

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        basis: Basis = "auto",
        directions: Method | Literal["auto"] = "auto",
        radius: float | tuple[float, float] | None = None,
        center: Literal["auto"] | ArrayLike | None = "auto",
        tol: float | Literal["auto"] = "auto",
        reduce: int | Literal["auto"] | Any = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.reduce = reduce
        self.basis = basis
        self.directions = directions
        self.radius = radius
        self.center = center
        self.tol = tol
        self.random_state = random_state

    def shared_basis(self, kernels: Iterable[Kernel]) -> "GegenbauerFeatures | None":
        """Return a map whose columns, rescaled, are the features of each of these kernels.

        On a sphere a zonal kernel enters exact features as one factor per column only, so that one
        Gram matrix of the base serves every kernel (see `column_scales`, `rescaled`).

        Returns
        -------
        GegenbauerFeatures or None
            None where that is not so: random columns, or norms that differ.
        """
        check_is_fitted(self, "kernel_")
        low, high = self._radial.shell
        on_sphere = high - low <= 1e-5 * high
        if self.basis_ != "harmonic" or not on_sphere:
            return None
        for kernel in (self.kernel_, *kernels):
            if np.ndim(kernel.scale()) > 0:
                return None
        base = copy.copy(self)
        counts = _degrees_to_fill(self._n_features_out, self.dim_)
        dims = [float(alpha(level, self.dim_)) for level in range(len(counts))]
        base._radial = RadialFunctions(
            Zonal(coefficients=dims),
            self.dim_,
            (1.0, 1.0),
            np.ones(1),
            0,
            0.0,
            len(counts) - 1,
        )
        base._use_exact(np.arange(len(counts)), counts)
        return base

    def column_scales(self, kernel: Kernel) -> Doubles:
        """Return what turns the base's columns into the features of a resolved kernel."""
        other = self.rescaled(kernel)
        functions, counts = other._exact_functions
        rim = np.full(1, other._radial.shell[1])
        scales = np.zeros(self._n_features_out)  # 0 for free columns
        values = other._radial.exact(rim, functions)[0] * other._weights
        scales[: counts.sum()] = np.repeat(values, counts)
        return scales

    def rescaled(self, kernel: Kernel) -> "GegenbauerFeatures":
        """Return the fitted features of another resolved kernel, in the base's columns."""
        counts = _degrees_to_fill(self._n_features_out, self.dim_)
        other = copy.copy(self)
        other.kernel = other.kernel_ = kernel
        other._scale = np.broadcast_to(kernel.scale(), self.dim_).astype(np.float64)
        other._unit = float(np.mean(other._scale))
        rim = self.radius_ * other._unit
        other._radial = RadialFunctions(
            kernel, self.dim_, (rim, rim), np.full(1, rim), 0, 0.0, len(counts) - 1
        )
        functions = np.arange(len(counts))
        if not all(map(np.array_equal, self._exact_functions, (functions, counts))):
            other._use_exact(functions, counts)  # a base has this layout already
        other._summarise()
        return other

    def column_energies(self) -> Doubles:
        """Return the mean squares of the exact columns, as if directions were uniform.

        Returns
        -------
        ndarray of shape (n_exact_,)
            In the order of the columns, which is from large to small where all are exact.
        """
        check_is_fitted(self, "kernel_")
        functions, counts = self._exact_functions
        levels = self._radial.degree[functions]
        density = self._radial.energy[functions] * np.exp(-log_alpha(levels, self.dim_))
        return np.repeat(density, counts)

    def narrowed(self, width: int) -> "GegenbauerFeatures":
        """Return these fitted features with the first `width` of their exact columns only.

        Parameters
        ----------
        width : int
            From 1 to `n_exact_`, of features without random columns.

        Returns
        -------
        GegenbauerFeatures
        """
        check_is_fitted(self, "kernel_")
        functions, counts = self._exact_functions
        before = np.cumsum(counts) - counts
        blocks = int(np.searchsorted(before, width))
        other = copy.copy(self)
        other.n_components = other._n_features_out = width
        other._use_exact(functions[:blocks], np.minimum(counts, width - before)[:blocks])
        other._summarise()
        return other

    def _choose_reducer(self, X: Rows) -> Any:
        self.reduction_error_ = 0.0
        reduce, dim = self.reduce, X.shape[1]
        if isinstance(reduce, str):
            if reduce != "auto":
                raise ValueError(
                    f"reduce={reduce!r} is unknown; use None, 'auto', an integer or a transformer"
                )
            reduce = self._n_features_out if dim > 2 * self._n_features_out else None
        if reduce is None:
            return None
        if self.kernel_.unit_sphere or np.ndim(self.kernel_.scale()) > 0:
            raise ValueError(
                f"reduce={self.reduce!r} mixes columns, which {self.kernel_!r} does not survive "
                "(it needs unit rows, or one scale per column); use reduce=None"
            )
        if isinstance(reduce, numbers.Integral):
            k = check_integer("reduce", reduce, 1)
            seed = int(as_seed_sequence(self.random_state).generate_state(2)[1])
            reduce = BlockProjection(k, random_state=seed)
        elif not hasattr(reduce, "transform") or isinstance(reduce, type):
            raise TypeError(
                f"reduce={reduce!r} is no transformer; use None, 'auto', an integer or an instance"
            )
        reducer = self.reducer_ = plain_output(clone(reduce)).fit(X)
        first, second = random_pairs(X.shape[0], _SAMPLE_PAIRS)
        a, b = X[first], X[second]
        change = values_of_pairs(self.kernel_, self._reduced(a), self._reduced(b))
        change -= values_of_pairs(self.kernel_, a, b)
        self.reduction_error_ = float(np.sqrt(np.mean(np.square(change))))
        return reducer

    def _choose_tol(self, dtype: DTypeLike) -> float:
        if isinstance(self.tol, str):
            if self.tol != "auto":
                raise ValueError(f"tol={self.tol!r} is unknown; use a number > 0 or 'auto'")
            return 1e-12 if dtype == np.float64 else 1e-7
        return check_positive("tol", self.tol)

    def _choose_center(self, X: Rows) -> Doubles | None:
        if not self.kernel_.shift_invariant or self.center is None:
            return None
        if not isinstance(self.center, str):
            center = np.array(self.center, dtype=np.float64)
            if center.shape != (X.shape[1],) or not np.isfinite(center).all():
                raise ValueError(
                    f"center={self.center!r} must be {X.shape[1]} finite numbers, one per column"
                )
            return np.asarray(self._reduced(center[None])[0])
        if self.center != "auto":
            raise ValueError(
                f"center={self.center!r} is unknown; use 'auto', None or one number a column"
            )
        if self.radius is not None:
            return None
        self.center_ = None
        around_origin = self._norms(X)
        whole = vars(self).get("_whole")
        mean = _mean(X) if whole is None else whole.survey.mean
        self.center_ = np.asarray(self._reduced(mean[None])[0])
        largest = around_origin.max()
        thin = largest - around_origin.min() <= SPHERE * largest
        # A small cap of a sphere, or a cloud far from the origin, is better seen from its middle.
        return None if thin and self._norms(X).max() > 0.1 * largest else self.center_

    def _expand(self, dim: int, shell: tuple[float, float], norms: Doubles, X: Rows) -> None:
        """Choose which radial functions are exact, which random, and with what directions."""
        check_choice("basis", self.basis, BASES)
        check_choice("directions", self.directions, ("auto", *POINT_SETS))
        method = best_method(dim) if self.directions == "auto" else self.directions
        width = self._n_features_out
        wide = CHOICE * WIDER * width if self.basis == "adapted" else width
        self._radial = RadialFunctions(self.kernel_, dim, shell, norms, wide, self._tol)
        sizes = np.array([float(alpha(level, dim)) for level in self._radial.degree.tolist()])
        density = self._radial.energy / sizes  # mean square of one harmonic column
        order = np.argsort(-density, kind="stable")
        split = _Split(sizes[order], density[order])
        seeds = as_seed_sequence(self.random_state)

        # Each is judged by its mean squared error over a kernel matrix of _JUDGED points: over
        # pairs, and on the diagonal (what a truncation drops, what random columns scatter).
        def harmonic(columns: int) -> _Option:
            """The strongest columns exactly, nothing else."""
            counts, spread, missing = split.harmonic(columns)
            return spread + missing / _JUDGED, spread, order[: counts.size], counts, []

        def mixed(n_blocks: int) -> _Option:
            """The strongest blocks exactly, random columns for the rest."""
            counts = split.sizes[:n_blocks].astype(int)
            families, spread, diagonal = self._draw(
                order[n_blocks:], width - int(counts.sum()), method, seeds
            )
            return spread + diagonal / _JUDGED, spread, order[:n_blocks], counts, families

        candidates = []
        if self.basis in ("auto", "harmonic", "adapted"):
            candidates.append(harmonic(wide))
        # On the line, and where nothing is missing, there is nothing that random columns could add.
        exact = candidates and (dim == 1 or candidates[0][0] <= self._tol**2)
        if self.basis == "random" or (self.basis == "auto" and not exact):
            candidates.append(mixed(0))
        if self.basis == "hybrid" or (self.basis == "auto" and not exact):
            candidates += [mixed(n_blocks) for n_blocks in split.choices(width)]
        _, spread, functions, counts, families = min(candidates, key=lambda option: option[0])
        self._use_exact(functions, counts, families)
        self.expected_error_ = math.hypot(math.sqrt(spread), self.reduction_error_)
        if self.basis == "adapted":
            self._adapt(X)
        self._summarise()
        if shell[1] > self._radial.reach * (1 + SPHERE):
            warnings.warn(
                f"points lie up to {shell[1] / self._unit:.4g} from the centre, so many "
                "lengthscales that features fade to 0 beyond "
                f"{self._radial.reach / self._unit:.4g}; use a larger lengthscale (a smaller "
                "gamma), or RandomFourierFeatures",
                TruncationWarning,
                stacklevel=5,
            )

    def _draw(
        self, functions: Integers, width: int, method: Method, seeds: np.random.SeedSequence
    ) -> tuple[list[_Directions], float, float]:
        """Random columns for some radial functions, with their mean squared errors.

        The errors are those over random pairs, and on the diagonal. Functions with the same index
        form a family; each family has directions of its own, in proportion to its energy, at least
        one. What is below tol altogether is left out.
        """
        radial, dim = self._radial, self.dim_
        index = radial.index[functions]
        energy = np.bincount(index, radial.energy[functions]).astype(np.float64)
        present = np.flatnonzero(energy > self._tol * radial.energy.sum())
        present = present[np.argsort(-energy[present], kind="stable")][:width]
        if present.size == 0:
            return [], 0.0, 0.0
        families, spread, diagonal = [], float(np.square(np.delete(energy, present)).sum()), 0.0
        for i, m in zip(present, _apportion(energy[present], width), strict=True):
            columns = functions[index == i]
            columns = columns[np.argsort(radial.degree[columns])]
            rng = np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, int(i)))
            W = sample_directions(int(m), dim, method, rng)
            degrees = radial.degree[columns]
            families.append(_Directions(dim, degrees, columns, W, _SIGNS[degrees % 4]))
            if energy[i] > 1e-3 * energy.sum():
                here = radial.energy[columns]
                spread += _spread(W, degrees, here)
                diagonal += _scatter(dim, degrees, _SIGNS[degrees % 4] * np.sqrt(here)) / m
            else:
                spread += energy[i] ** 2 / m
        return families, spread, diagonal

    def _use_exact(
        self, functions: Integers, counts: Integers, families: Sequence[_Directions] = ()
    ) -> None:
        """Lay out the columns: harmonics of these radial functions first, then the families."""
        groups = [functions, *(family.columns for family in families)]
        radial = self._radial = self._radial.prepared(groups)
        dim = self.dim_
        counts = np.asarray(counts, dtype=np.intp)
        self._exact_functions = functions, counts
        self._families = list(families)
        self._axes = self._rotation = None
        levels = radial.degree[functions]
        wanted = np.zeros(int(levels.max(initial=0)) + 1, dtype=int)
        np.maximum.at(wanted, levels, counts)
        self._tree = HarmonicTree(dim, wanted)
        nodes = [
            self._tree.nodes(level, count) for level, count in zip(levels, counts, strict=True)
        ]
        self._nodes = np.concatenate([*nodes, np.zeros(0, dtype=np.intp)])
        self._ring = np.repeat(np.arange(len(counts)), counts).astype(np.intp)
        self._weights = np.exp(-0.5 * log_alpha(levels, dim))
        sample = np.linspace(*radial.shell, num=17)
        for family in self._families:
            family.allow_horner(radial(sample, family.columns))

    def _summarise(self) -> None:
        """Set the fitted attributes that describe the columns in use."""
        radial = self._radial
        functions, counts = self._exact_functions
        sizes = np.array([float(alpha(level, self.dim_)) for level in radial.degree.tolist()])
        whole = functions[counts == sizes[functions]]
        used = np.concatenate([functions, *[family.columns for family in self._families]]).astype(
            int
        )
        kept = np.zeros(radial.degree.size, dtype=bool)
        kept[whole] = True
        for family in self._families:
            kept[family.columns] = True
        self.degree_ = int(radial.degree[used].max(initial=0))
        self.order_ = int(radial.index[used].max(initial=0)) + 1
        self.n_directions_ = np.array(
            [family.W.shape[0] for family in self._families], dtype=np.intp
        )
        if self._axes is None:
            self.n_exact_ = int(counts.sum())
            self.n_effective_ = int(
                counts[radial.energy[functions] > 0].sum() + self.n_directions_.sum()
            )
            self.truncation_error_ = self._certify(kept)
            names = ["random", "hybrid"] if self._families else ["harmonic"]
            self.basis_ = names[min(len(functions), len(names) - 1)]
        if not self._families and self._axes is None:
            density = radial.energy / sizes
            dropped = sizes.copy()
            dropped[functions] -= counts
            missing = math.sqrt(float(np.square(density) @ dropped))
            self.expected_error_ = math.hypot(missing, self.reduction_error_)

    def _flops(self, density: float) -> float:
        dim, entries = float(self.dim_), density * float(self.n_features_in_)
        flops: float = 0.0 if self.reducer_ is None else 2 * entries * dim
        if self._axes is not None:
            return flops + float(5 * self._axes.shape[0] + 2 * self._axes.size)
        n_directions = float(self.n_directions_.sum())
        return flops + 5 * self.n_exact_ + 2 * (dim + 2 * self.degree_) * n_directions

    def _about(self) -> str:
        basis = f"{self.basis_} basis of degree {self.degree_}"
        if self.reducer_ is None:
            return basis
        return f"{self.n_features_in_} columns reduced to {self.dim_}, {basis}"

    def _fill(self, unit: Floats, norms: Doubles, out: Floats, stream: bool) -> None:
        """Write the features of one tile."""
        if self._axes is not None:
            wide = np.empty((unit.shape[0], self._axes.shape[0]), dtype=unit.dtype)
            self._fill_columns(unit, norms, wide, False)
            np.matmul(wide, self._axes.astype(unit.dtype), out=out)
            return
        self._fill_columns(unit, norms, out, stream)

    def _fill_columns(self, unit: Floats, norms: Doubles, out: Floats, stream: bool) -> None:
        functions, _ = self._exact_functions
        radial, first = self._radial, self._nodes.size
        if first:
            values = radial(norms, functions, unit.dtype) * self._weights.astype(unit.dtype)
            if self._rotation is not None:
                unit = unit @ self._rotation.astype(unit.dtype)
            self._tree.features(
                unit, values, self._nodes, self._ring, out[:, :first], stream=stream
            )
        for family in self._families:
            last = first + family.W.shape[0]
            family.fill(unit, radial(norms, family.columns), out[:, first:last], stream)
            first = last
        out[:, first:] = 0

    def _long_axis_last(self, X: Rows) -> Doubles:
        """Return the rotation of the data to their principal axes, the longest one last.

        Harmonics of high degree in the last coordinate only are the first ones of their degree, so
        that long thin clouds get what they need from few columns.
        """
        unit, norms = self._polar(X[:: max(1, X.shape[0] // _ROWS_FOR_AXES)])
        points = unit * norms[:, None]
        rotation: Doubles = np.linalg.eigh(points.T @ points)[1]
        return rotation

    def _adapt(self, X: Rows) -> None:
        """Choose exact columns by their mean squares on the data, and compress these."""
        rng = generator(self.random_state)
        if self.dim_ <= _MOST_ROTATED:
            self._rotation = self._long_axis_last(X)

        def fill(rows: Rows) -> Doubles:
            unit, norms = self._polar(rows)
            wide = np.empty((rows.shape[0], self._nodes.size), dtype=unit.dtype)
            self._fill_columns(unit, norms, wide, False)
            return wide.astype(np.float64, copy=False)

        most = WIDER * self._n_features_out
        if self._nodes.size > most:
            chosen = strongest_columns(fill, X, self._nodes.size, most, rng)
            self._nodes, self._ring = self._nodes[chosen], self._ring[chosen]
        width = self._nodes.size
        axes = principal_axes(fill, X, width, self._n_features_out, rng)
        self._axes = np.zeros((width, self._n_features_out))
        self._axes[:, : axes.shape[1]] = axes
        self.basis_, self.n_exact_ = "adapted", self._n_features_out
        self.n_effective_ = axes.shape[1]
        step = max(1, X.shape[0] // _PROBE)
        sample = X[::step][:_PROBE]
        Z = np.empty((sample.shape[0], self._n_features_out), dtype=X.dtype)
        unit, norms = self._polar(sample)
        self._fill(unit, norms, Z, False)
        diagonal = self._radial.diagonal(norms) - np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        self._kept = np.zeros(self._radial.degree.size, dtype=bool)
        self._kept[self._exact_functions[0]] = True
        self.truncation_error_ = float(max(diagonal.max(), 0.0)) + _ROUNDING
        self.expected_error_ = error_on_sample(self.kernel_(dense(sample)), Z)


class _Split:
    """Blocks (one radial function times all harmonics of its degree), strongest columns first."""

    def __init__(self, sizes: Doubles, density: Doubles) -> None:
        self.sizes, self.density = sizes, density
        self.full = np.cumsum(sizes)

    def harmonic(self, width: int) -> tuple[Integers, float, float]:
        """Count the `width` strongest columns; mean squares missing over pairs, on the diagonal."""
        before = self.full - self.sizes
        blocks = int(np.searchsorted(before, width))
        counts = np.minimum(self.sizes[:blocks], width - before[:blocks])
        dropped = self.sizes.copy()
        dropped[:blocks] -= counts
        spread, missing = (
            float(np.square(self.density) @ dropped),
            float(self.density @ dropped) ** 2,
        )
        return counts.astype(int), spread, missing

    def choices(self, width: int) -> list[int]:
        """Numbers of exact blocks worth trying, from few to all that leave room for directions."""
        fits = int(np.searchsorted(self.full, width))
        return sorted({round(fits * share) for share in np.linspace(0, 1, 11)[1:]} - {0}) or [0]


def _apportion(weights: Doubles, total: int) -> Integers:
    """Split `total` in proportion to the weights, at least one each (largest remainders)."""
    share = np.maximum(weights / weights.sum() * total, 1.0)
    share *= 1 + (total - share.sum()) / share.sum()
    counts: Integers = np.maximum(np.floor(share).astype(np.intp), 1)
    while counts.sum() > total:
        counts[np.argmax(counts)] -= 1
    rest = np.argsort(-(share - counts), kind="stable")[: total - counts.sum()]
    counts[rest] += 1
    return counts


def _spread(W: Doubles, degrees: Integers, energy: Doubles) -> float:
    """Mean squared error of a family of random columns over random pairs, given its directions.

    Averaged over random x and y (z.z' - k)^2 is the mean over pairs of directions of E(<w, w'>)^2,
    with E(t) = sum_l energy_l P_d^l(t), less its part that is the kernel itself.
    """
    dim = W.shape[1]
    row = np.zeros((1, int(degrees.max()) + 1))
    row[0, degrees] = energy
    pairs = gegenbauer_features(W[:_PROBE], W, row)
    exact = float(np.square(energy) @ np.exp(-log_alpha(degrees, dim)))
    return max(float(np.mean(np.square(pairs))) - exact, 0.0)


def _scatter(dim: int, degrees: Integers, radial: Doubles) -> float:
    """Variance over directions of phi(w)^2, for one random column before division by sqrt(m).

    phi = sum_l radial_l sqrt(alpha) P_d^l(t), by quadrature over t; this is what the signs tame.
    """
    if dim == 1:
        return 0.0
    theta, weights = angles(2 * int(degrees.max()) + 64, dim)
    weights = weights / weights.sum()
    coefficients = np.zeros(int(degrees.max()) + 1)
    coefficients[degrees] = radial * np.exp(0.5 * log_alpha(degrees, dim))
    squares = np.square(zonal_sum(coefficients, dim, np.cos(theta)))
    return max(float(weights @ np.square(squares) - (weights @ squares) ** 2), 0.0)


def _degrees_to_fill(width: int, dim: int) -> Integers:
    """How many harmonics of degree 0, 1, ... fill `width` columns."""
    counts: list[int] = []
    while sum(counts) < width and alpha(len(counts), dim):
        counts.append(min(alpha(len(counts), dim), width - sum(counts)))
    return np.array(counts, dtype=np.intp)


class PublishedGegenbauerFeatures(_Features):
    """Random Gegenbauer features exactly as published (Definition 8): the yardstick.

    Independent uniform directions, all signs plus, monomial radial functions; i runs from 0 (the
    printed 1..s of Eq 22 and 23 gives another kernel).

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
    n_components : int, default=1024
        A multiple of `order`: m = n_components / order directions.
    degree : int
        q >= 0; degrees 0..q.
    order : int
        s >= 1; radial functions i = 0..s-1 of each degree (1 for zonal kernels).
    radius : float, optional
        As for `GegenbauerFeatures`; only the reported errors depend on it.
    random_state : int, RandomState, Generator or None, default=None

    Attributes
    ----------
    kernel_, radius_, truncation_error_, expected_error_
        As for `GegenbauerFeatures`.
    directions_ : ndarray of shape (m, n_features)

    Notes
    -----
    Columns are grouped by radial function: column i m + j is direction j, function i.
    Unbiased for the truncated kernel; the data are not centred. Cost per row 2 m s (d + 2 q) flops.

    References
    ----------
    .. [1] Han, Zandieh, Avron, Random Gegenbauer Features for Scalable Kernel Methods,
       Definition 8, Eq 19, 22, 23.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import PublishedGegenbauerFeatures
    >>> X = np.eye(3)
    >>> features = PublishedGegenbauerFeatures(n_components=64, degree=8, order=4, random_state=0)
    >>> features.fit_transform(X).shape
    (3, 64)
    """

    _state = stored("directions_")

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        n_components: int = 1024,
        *,
        degree: int,
        order: int,
        radius: float | tuple[float, float] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.degree = degree
        self.order = order
        self.radius = radius
        self.random_state = random_state

    def _choose_tol(self, dtype: DTypeLike) -> float:
        return float(np.finfo(dtype).eps)

    def _expand(self, dim: int, shell: tuple[float, float], norms: Doubles, X: Rows) -> None:
        degree = check_integer("degree", self.degree, 0)
        self.order_ = order = check_integer("order", self.order, 1)
        if self.kernel_.separable and order > 1:
            raise ValueError(f"order={order} has no meaning for a zonal kernel; use order=1")
        if self.n_components % order:
            below = self.n_components // order * order
            widths = f"{below} or {below + order}" if below else f"{order}"
            raise ValueError(
                f"n_components={self.n_components} is not a multiple of order={order}; "
                f"use n_components={widths}"
            )
        radial = self._radial = RadialFunctions(
            self.kernel_, dim, shell, norms, 0, 0.0, max_degree=degree, order=order
        )
        m = self.n_components // order
        self._use(sample_directions(m, dim, "iid", as_seed_sequence(self.random_state)))
        self.truncation_error_ = self._certify(np.ones(radial.degree.size, dtype=bool))
        # Cross moments E h_(l,i) h_(l,j): the radial functions share their directions here.
        values = radial.exact(norms).reshape(norms.size, degree + 1, order)
        cross = np.einsum("nli,nlj->lij", values, values) / norms.size
        sizes = [max(alpha(level, dim), 1) for level in range(degree + 1)]  # of none all is 0
        kernel_part = float(
            np.sum(np.square(cross).sum(axis=(1, 2)) / np.array(sizes, dtype=float))
        )
        error = (np.square(cross.sum(axis=0)).sum() - kernel_part) / m
        self.expected_error_ = math.sqrt(max(float(error), 0.0))

    def _use(self, W: Doubles) -> None:
        """Take these directions."""
        self.directions_ = W
        columns = [np.flatnonzero(self._radial.index == i) for i in range(self.order_)]
        radial, dim = self._radial.prepared(columns), self.dim_
        self._radial = radial
        self._families = [
            _Directions(dim, radial.degree[c], c, W, np.ones(c.size)) for c in columns
        ]
        for family in self._families:
            family.allow_horner(radial(np.linspace(*radial.shell, num=17), family.columns))

    def _fill(self, unit: Floats, norms: Doubles, out: Floats, stream: bool) -> None:
        m = self.directions_.shape[0]
        for i, family in enumerate(self._families):
            values = self._radial(norms, family.columns)
            family.fill(unit, values, out[:, i * m : (i + 1) * m], stream)


def feature_operator(
    X: ArrayLike,
    kernel: str | Kernel = "gaussian",
    *,
    degree: int | None = None,
    order: int | None = None,
) -> LinearOperator:
    """Operator Phi of a data set, over a quadrature of the sphere (Eq 14-16).

    Phi v = sum_j v_j phi_(x_j) is a function on the sphere with s values at each w. Here it is
    given by its values at the nodes of `sphere_quadrature`, times the square roots of the weights,
    so that plain dot products are the inner product of L2(S^(d-1), R^s): Phi* is the transpose, and
    Phi* Phi = K, exactly for the kernel truncated at `degree` and `order`.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Low dimension: the rule has (2 degree + 1) (degree + 1)^(d-2) nodes.
    kernel : str or Kernel, default="gaussian"
    degree, order : int, optional
        q and s; by default as `series.truncate` chooses for 1e-10 at the largest norm.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator of shape (m * order, n)
        Row i m + j is radial function i at node j. Nothing of this size is stored: a product costs
        O(n m order (d + degree)). Its attributes nodes, weights, degree and order say which they
        are; `theory.ridge_leverage` asks for them.

    References
    ----------
    Han, Zandieh, Avron, Eq 14 (Phi), Eq 15 (Phi*), Eq 16 (its rows).

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.features.gegenbauer import feature_operator
    >>> X = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    >>> phi = feature_operator(X, Gaussian(gamma=0.5))
    >>> K = phi.T @ (phi @ np.eye(2))
    >>> bool(np.allclose(K, Gaussian(gamma=0.5)(X), atol=1e-9))
    True
    """
    rows: Doubles = check_array(X, dtype=np.float64)
    resolved = as_kernel(kernel).resolve(rows)
    if degree is None or order is None:
        furthest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
        chosen = truncate(resolved, rows.shape[1], max(furthest, 1e-6), 1e-10)
        degree = chosen[0] if degree is None else degree
        order = chosen[1] if order is None else order
    degree, order = check_integer("degree", degree, 0), check_integer("order", order, 1)
    nodes, weights = sphere_quadrature(rows.shape[1], 2 * degree)
    m = weights.size
    features = PublishedGegenbauerFeatures(resolved, order, degree=degree, order=order).fit(rows)
    features.n_components = features._n_features_out = m * order
    features._use(nodes)
    root = np.tile(np.sqrt(weights * m), order)
    pieces = list(tiles(rows.shape[0], 8 * m * order))

    def apply(v: Doubles) -> Doubles:
        values = np.zeros((root.size, v.shape[1]))
        for tile in pieces:
            values += features.transform(rows[tile]).T @ v[tile]
        return root[:, None] * values

    def adjoint(f: Doubles) -> Doubles:
        f = root[:, None] * f
        return np.concatenate([features.transform(rows[tile]) @ f for tile in pieces])

    operator = LinearOperator(
        shape=(m * order, rows.shape[0]),
        dtype=np.float64,
        matvec=lambda v: apply(v.reshape(-1, 1))[:, 0],
        rmatvec=lambda f: adjoint(f.reshape(-1, 1))[:, 0],
        matmat=apply,
        rmatmat=adjoint,
    )
    operator.nodes, operator.weights = nodes, weights
    operator.degree, operator.order = degree, order
    return operator


def _check_radius(radius: float | tuple[float, float]) -> tuple[float, float]:
    """Return (low, high) of a radius given as a number or a pair."""
    if isinstance(radius, (int, float, numbers.Real)):
        return 0.0, check_positive("radius", radius)
    try:
        low, high = (float(value) for value in radius)
    except (TypeError, ValueError):
        raise TypeError(f"radius={radius!r} is neither a number nor a pair of numbers") from None
    if not 0 <= low <= high or not 0 < high < math.inf:
        raise ValueError(f"radius={radius!r} must satisfy 0 <= smallest <= largest and largest > 0")
    return low, high


def _norms_of_batch(batch: Batch, features: _Features, columns: Integers | None) -> Norms:
    X = rows_of(batch.X)
    X = X if columns is None else X[:, columns]
    return features._norms_of(features._validate(X, reset=False))


def _mean(X: Rows) -> Doubles:
    """Column means in double, tile by tile."""
    if sparse.issparse(X):
        total: Doubles = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    else:
        total = np.zeros(X.shape[1])
        for start in range(0, X.shape[0], 65536):
            total += X[start : start + 65536].sum(axis=0, dtype=np.float64)
    total /= X.shape[0]
    return total
