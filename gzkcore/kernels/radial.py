"""Radial functions of kernels: their tables, truncation and compression.

A generalized zonal kernel is k(x, y) = sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos) (Eq 11). What h_l is
depends on the family of the kernel (see `gzkcore.kernels`): sqrt(c_l) |x|^power with the c_l of Eq
8 for a kernel of the angle; the monomials of Eq 12 and 23 for a dot-product kernel and the
Gaussian; for other radial kernels what Nystrom's formula makes of A_l(a, b), the Gegenbauer series
in the angle at each pair of norms. Those functions are many and nearly dependent on the norms that
data have, so that `RadialFunctions` rotates them, which leaves the kernel as it is, and keeps the
few that matter.

All coefficients are formed in logarithms and exponentiated once: their factors overflow, they do
not.
"""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import gammaln

from gzkcore._compiled import series as _series
from gzkcore._util.model_io import stored
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import (
    AngleKernel,
    DistanceKernel,
    Doubles,
    Floats,
    FunctionsKernel,
    Integers,
    SeriesKernel,
    TaylorKernel,
)
from gzkcore._util.validation import check_dim, check_integer, check_positive
from gzkcore.sphere.series import (
    check_norm,
    check_numbers,
    radial_series,
)
from gzkcore.sphere.special import alpha, log_alpha

from .shift_invariant import Gaussian

__all__ = ["angular_energy", "growth_constants", "radial_table", "truncate"]

# Norms that differ by less than this, relatively, are one sphere.
SPHERE = 1e-6

# Scaled norms beyond this are hopeless for any number of features that fits into memory, and their
# series too long: the functions fade to zero there, the certificate and a warning say so. On a
# sphere, one function a degree, and on the line one can go further.
_REACH, _REACH_SPHERE, _REACH_1D = 24.0, 48.0, 256.0

# Scaled norms from which the radial spectrum is long.
_MANY = 6.0

# Products of norms up to which `angular_energy` sums its series.
_FAR = 1e6

# A kernel that falls off slowly is cut where the rest, were it one degree more, is below this
# share of the random features' own mean square.
_REST = 1e-4

# Nystrom's formula for radial kernels: most degrees and norms, and most pieces of the tables.
_DEGREES, _NODES, _PIECES = 128, 96, 16

# Energies below this are zero: nothing computed in float64 can tell.
_UNDERFLOW = 1e-290


def log_squared_coefficients(
    kernel: TaylorKernel, dim: int, degrees: ArrayLike, orders: ArrayLike
) -> Doubles:
    """Logarithms of the squared factors of t^(l+2i) in the radial functions (Eq 12).

    alpha(l, d) Gamma(d/2) kappa^(l+2i)(0) / (2^(l+2i) i! Gamma(i + l + d/2)); the printed
    Gamma(i+1/2) / (sqrt(pi) (2i)!) is 1 / (4^i i!).
    """
    degrees, orders = np.asarray(degrees, dtype=float), np.asarray(orders, dtype=float)
    powers = degrees + 2 * orders
    total: Doubles = (
        log_alpha(degrees, dim)
        + math.lgamma(dim / 2)
        + kernel.log_derivative(powers)
        - powers * math.log(2)
        - gammaln(orders + 1)
        - gammaln(orders + degrees + dim / 2)
    )
    return total


def radial_table(
    kernel: TaylorKernel, norms: ArrayLike, dim: int, degree: int, order: int
) -> Doubles:
    """Values of the monomial radial functions h_(l,i)(t) (Eq 12; Eq 23 for the Gaussian).

    The printed Eq 22 and 23 let i run from 1; i = 0 is the first.

    Parameters
    ----------
    kernel : Gaussian or another kernel with `log_derivative` and `log_envelope`
        Norms are those of the scaled inputs, |sqrt(2 gamma) x| for the Gaussian.
    norms : array-like of shape (n,)
        t >= 0.
    dim, degree, order : int
        d, q and s: l = 0..q and i = 0..s-1.

    Returns
    -------
    ndarray of shape (n, degree + 1, order), float64
        Each at most 1 for the Gaussian, whose squares sum to 1 over all l and i.

    Raises
    ------
    TypeError, ValueError
        If a number is no integer or too small, or a norm negative.

    Notes
    -----
    One exponential per value; memory for the result. Formed in logarithms: no overflow.

    References
    ----------
    Han, Zandieh, Avron, Eq 12, 22 and 23.

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> from gzkcore.kernels.radial import radial_table
    >>> round(float(radial_table(Gaussian(0.5), [1.5], 3, 2, 2)[0, 2, 1]), 12)
    0.25360575164
    """
    dim = check_dim(dim)
    degree = check_integer("degree", degree, 0)
    order = check_integer("order", order, 1)
    norms = check_numbers("norms", norms, empty=True)
    if not (norms >= 0).all():
        raise ValueError("norms must be a list of numbers >= 0")
    log_c = log_squared_coefficients(
        kernel, dim, np.arange(degree + 1)[:, None], np.arange(order)[None, :]
    )
    out = np.empty((norms.size, degree + 1, order))
    _series.radial_table(
        np.ascontiguousarray(log_c),
        norms,
        np.asarray(kernel.log_envelope(norms)),
        out,
        n_threads(8 * out.size),
    )
    return out


def angular_energy(degree: int, a: float, b: float, dim: int) -> float:
    """A_l(a, b) of the Gaussian: the coefficient of P_d^l at norms a and b (Funk-Hecke).

    exp(-(a^2+b^2)/2) alpha(l, d) Gamma(d/2) (2/(ab))^(d/2-1) I_(l+d/2-1)(ab), by its positive
    series.

    Parameters
    ----------
    degree : int
        l >= 0.
    a, b : float
        Scaled norms, |sqrt(2 gamma) x| and |sqrt(2 gamma) y|, >= 0.
    dim : int
        d >= 1.

    Returns
    -------
    float
        In [0, 1]; over all degrees the sum is exp(-(a-b)^2/2).

    Notes
    -----
    A sum of O(ab) positive terms, formed in logarithms: no overflow, no cancellation.

    References
    ----------
    The sum over i of Han, Zandieh, Avron, Eq 23; the closed form is the Funk-Hecke formula.

    Examples
    --------
    >>> from gzkcore.kernels.radial import angular_energy
    >>> round(angular_energy(0, 1.0, 1.0, 3), 12)
    0.432332358382
    """
    degree = check_integer("degree", degree, 0)
    dim = check_dim(dim)
    a, b = check_norm("a", a), check_norm("b", b)
    if a * b > _FAR:
        raise ValueError(
            f"a * b = {a * b:.3g} needs a sum of as many terms; use norms with a product of at "
            f"most {_FAR:.0g}"
        )
    kernel = Gaussian(0.5)
    orders = np.arange(_orders_needed(degree, math.sqrt(a * b), dim))
    log_c = log_squared_coefficients(kernel, dim, degree, orders)
    powers = degree + 2 * orders
    if a == 0 or b == 0:
        return float(np.exp(log_c[0] - (a * a + b * b) / 2)) if degree == 0 else 0.0
    terms = log_c + powers * (math.log(a) + math.log(b)) - (a * a + b * b) / 2
    return math.fsum(np.exp(terms))


def truncate(kernel: SeriesKernel, dim: int, radius: float, tol: float) -> tuple[int, int, float]:
    """Choose degree and order so that the truncated kernel is within tol on a ball.

    For a dot-product kernel all (l, i) with l + 2i <= N are kept, N the smallest with a Taylor
    remainder (for the Gaussian a Poisson tail, Pr(Poisson(r^2) > N)) of at most tol; the sup of the
    error over the ball is that remainder, at x = y on the rim. For a kernel of the angle order is
    1. For other kernels degree and order are those of `RadialFunctions`.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    dim : int
    radius : float
        In the units of the data (from the centre).
    tol : float

    Returns
    -------
    degree, order : int
    error : float
        The certified error. At most tol for dot-product kernels and kernels of the angle; for other
        radial kernels what 128 degrees leave may be more.

    Raises
    ------
    TypeError, ValueError
        If radius or tol is no number > 0, a kernel of the angle needs a degree above 4096, or the
        kernel overflows there.

    References
    ----------
    Han, Zandieh, Avron, Theorems 11 and 12 choose q and s safely but far larger.

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> from gzkcore.kernels.radial import truncate
    >>> truncate(Gaussian(0.5), 3, 1.0, 1e-3)[:2]
    (5, 3)
    """
    dim = check_dim(dim)
    radius = check_positive("radius", radius)
    tol = check_positive("tol", tol)
    r = float(np.max(kernel.scale())) * radius
    if kernel.family == "angular":
        return _truncate_angular(cast("AngleKernel", kernel), dim, r, tol)
    if kernel.family == "dot product":
        return _truncate_taylor(cast("TaylorKernel", kernel), dim, r, tol)
    norms = r * (np.arange(64) + 0.5) / 64
    radial = RadialFunctions(kernel, dim, (0.0, r), norms, 0, tol)
    everything = np.ones(radial.degree.size, dtype=bool)
    error = radial.largest_residual(everything)
    return int(radial.degree.max()), int(radial.index.max()) + 1, error


def _truncate_angular(
    kernel: AngleKernel, dim: int, r: float, tol: float
) -> tuple[int, int, float]:
    size = 1.0 if kernel.unit_sphere else r ** (2 * kernel.power)
    degree = 16
    while degree <= 4096:
        tail = size * (kernel.at_one(dim) - np.cumsum(kernel.series(dim, degree)))
        enough = np.flatnonzero(tail <= tol)
        if enough.size:
            return int(enough[0]), 1, float(max(tail[enough[0]], 0.0))
        degree *= 4
    raise ValueError(f"tol={tol} needs a degree above 4096 in dimension {dim}; use a larger tol")


def _truncate_taylor(
    kernel: TaylorKernel, dim: int, r: float, tol: float
) -> tuple[int, int, float]:
    _check_finite(kernel, np.array([r]))
    count = kernel.n_derivatives() or int(r * r + 12 * r + 64)
    while True:
        j = np.arange(count)
        log_terms = kernel.log_derivative(j) + 2 * j * math.log(r) - gammaln(j + 1)
        terms = np.exp(log_terms + 2 * kernel.log_envelope(np.array(r)))
        tail = np.cumsum(terms[::-1])[::-1]  # tail[N] = sum over j >= N, small terms first
        tail = np.append(tail, 0.0) if kernel.n_derivatives() else tail
        enough = np.flatnonzero(tail[1:] <= tol)
        if enough.size and (kernel.n_derivatives() or terms[-1] <= 1e-3 * tol):
            last = int(enough[0])
            degree = min(last, 1) if dim == 1 else last
            return degree, last // 2 + 1, float(tail[last + 1])
        count *= 2


def _check_finite(kernel: SeriesKernel, norms: Doubles) -> None:
    """Raise if the kernel overflows at these norms."""
    with np.errstate(over="ignore"):
        values = kernel.diagonal(norms)
    if not np.isfinite(values).all():
        raise ValueError(
            f"{kernel!r} overflows at points of scaled norm {norms.max():.4g}; scale the columns, "
            "or use a smaller gamma"
        )


def _orders_needed(degree: int, r: float, dim: int) -> int:
    """How many orders i = 0, 1, ... carry the sum of a degree at norm r, to rounding."""
    nu = degree + dim / 2
    peak = (math.sqrt(nu * nu + r**4) - nu) / 2
    return int(peak + 9 * math.sqrt(peak + 1) + 24)


class Cut(NamedTuple):
    """Where to stop: see `RadialFunctions`."""

    n_columns: int
    tol: float
    max_degree: int | None
    order: int | None


class _Family(Protocol):
    """The radial functions of one family of kernels, before any rotation.

    `table(norms)` is what all degrees share; `values(table, degree)` are the functions of one
    degree, of shape (n, count).
    """

    n_degrees: int
    n_pieces: int | None  # of their tables; None: as many as they need

    def table(self, norms: Doubles) -> Doubles: ...
    def values(self, table: Doubles, degree: int) -> Doubles: ...
    def diagonal(self, norms: Doubles) -> Doubles: ...


class _Angular:
    """h_l(t) = sqrt(c_l) t^power.

    Where the c_l fall off slowly the series is cut, and what it leaves on the diagonal is dropped:
    given to one further degree it would keep k(x, x) right on average, but with a spike that
    multiplies the error of random columns (2 to 10 times, neural tangent kernel in 9 dimensions).
    """

    _state = stored("kernel", "dim", "n_degrees", "at_one", "c")

    n_pieces: int | None = None

    def __init__(self, kernel: SeriesKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel = cast("AngleKernel", kernel)
        self.dim, self.at_one = dim, self.kernel.at_one(dim)
        if cut.max_degree is not None:
            self.c = self.kernel.series(dim, cut.max_degree)
        else:
            self.c = self._choose(cut)
        self.n_degrees = self.c.size

    def _choose(self, cut: Cut) -> Doubles:
        size = 1.0 if self.kernel.unit_sphere else self.at_one
        q = max(8, (self.kernel.n_coefficients() or 0) - 1)
        while True:
            c = self.kernel.series(self.dim, q)
            tail = self.at_one - float(c.sum())
            reached = tail <= max(cut.tol * size, self.kernel.noise(self.dim, q))
            columns = sum(alpha(level, self.dim) for level in np.flatnonzero(c > 0).tolist())
            negligible = _negligible(tail / self.at_one, q, self.dim, cut.n_columns)
            if (columns >= cut.n_columns and (reached or negligible)) or q >= 512:
                break
            q *= 2
        return c

    def table(self, norms: Doubles) -> Doubles:
        power = 0 if self.kernel.unit_sphere else self.kernel.power
        powers: Doubles = norms**power
        return powers

    def values(self, table: Doubles, degree: int) -> Doubles:
        return table[:, None] * math.sqrt(self.c[degree])

    def diagonal(self, norms: Doubles) -> Doubles:
        values: Doubles = self.at_one * np.square(self.table(norms))
        return values


class _Taylor:
    """The monomials h_(l,i) of Eq 12: a root of mu_l^(l+2i) times one of a Taylor term."""

    _state = stored("kernel", "dim", "order", "reach", "n_powers", "n_degrees")

    n_pieces: int | None = None

    def __init__(self, kernel: SeriesKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim, self.order = cast("TaylorKernel", kernel), dim, cut.order
        _check_finite(kernel, grid)
        most = _REACH_1D if dim == 1 else _REACH if grid.size > 1 else _REACH_SPHERE
        self.reach = min(float(grid.max()), most)
        self.n_powers = int(self.reach**2 + 12 * self.reach + 64)
        if cut.order is not None and cut.max_degree is not None:
            self.n_powers = cut.max_degree + 2 * cut.order
        elif count := self.kernel.n_derivatives():
            self.n_powers = count
        present = np.flatnonzero(self.table(grid).max(axis=0) > math.sqrt(_UNDERFLOW))
        self.n_degrees = int(present[-1]) + 1 if present.size else 1

    def table(self, norms: Doubles) -> Doubles:
        return _powers(self.kernel, norms, self.n_powers)

    def values(self, table: Doubles, degree: int) -> Doubles:
        most = (self.n_powers - degree + 1) // 2
        count = self.order or min(_orders_needed(degree, self.reach, self.dim), most)
        root_mu = np.exp(0.5 * log_mu(degree, np.arange(count), self.dim))
        return table[:, degree : degree + 2 * count : 2] * root_mu

    def diagonal(self, norms: Doubles) -> Doubles:
        return self.kernel.diagonal(norms)


class _Distances:
    """Nystrom's formula for A_l(a, b) of a radial kernel: A_l(t, nodes) A_l(nodes, nodes)^(-1/2).

    What it leaves out of A_l is positive semidefinite, as a certificate needs. On the shell A_l(t,
    node) is a piecewise polynomial in t, made once; beyond, it is integrated anew.
    """

    _state = stored("kernel", "dim", "n_degrees", "nodes", "shell", "pieces", "roots")

    n_pieces: int | None = _PIECES

    def __init__(self, kernel: SeriesKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim = cast("DistanceKernel", kernel), dim
        low, high = float(grid.min()), float(grid.max())
        count = min(32 + int(4 * (high - low)), _NODES)
        self.nodes = _chebyshev(low, high, count) if grid.size > 1 else grid
        q = 16 if cut.max_degree is None else cut.max_degree
        while True:
            A = self._pairs(self.nodes, q)
            tail = float(kernel.diagonal(self.nodes[-1:])[0] - A[:, -1, -1].sum())
            enough = _harmonic_count(q, dim) >= cut.n_columns or dim == 1
            reached = tail <= max(cut.tol, float(self._noise(np.arange(q + 1)).sum())) or dim == 1
            reached |= _negligible(tail, q, dim, cut.n_columns)
            if cut.max_degree is not None or (enough and reached) or q >= _DEGREES:
                break
            q *= 2
        self.n_degrees = q + 1
        self.shell = _padded(low, high)
        self.pieces = _piecewise(self._flat, *self.shell, self.n_pieces)
        self.roots = [self._inverse_root(level, matrix) for level, matrix in enumerate(A)]

    def _pairs(self, norms: Doubles, degree: int) -> Doubles:
        """A_l at norms and nodes, of shape (degree + 1, n, n_nodes)."""
        profile = self.kernel.profile
        pairs = radial_series(profile, norms[:, None], self.nodes, self.dim, degree)
        return np.ascontiguousarray(np.moveaxis(pairs, 2, 0))

    def _noise(self, degrees: Integers) -> Doubles:
        """Bound the rounding error of A_l."""
        root_alpha = np.exp(0.5 * log_alpha(degrees, self.dim))
        noise: Doubles = (64 + degrees) * np.finfo(float).eps * root_alpha
        return noise

    def _inverse_root(self, degree: int, matrix: Doubles) -> Doubles:
        """A_l(nodes, nodes)^(-1/2), strongest first, without what is lost in rounding."""
        values, vectors = np.linalg.eigh(matrix)
        noise = self.nodes.size * float(self._noise(np.array(degree)))
        if values[0] < -4 * noise:
            raise ValueError(
                f"{self.kernel!r} is not positive definite in dimension {self.dim}: the "
                f"coefficient of degree {degree}, a matrix over norms, has the eigenvalue "
                f"{values[0]:.3g} < 0; use a kernel that is, or a lower dimension"
            )
        keep = values > max(noise, _UNDERFLOW)
        root: Doubles = (vectors[:, keep] / np.sqrt(values[keep]))[:, ::-1]
        return root

    def _flat(self, norms: Doubles) -> Doubles:
        pairs = self._pairs(norms, self.n_degrees - 1)
        return np.moveaxis(pairs, 1, 0).reshape(norms.size, -1)

    def table(self, norms: Doubles) -> Doubles:
        low, high = self.shell
        out = np.empty((norms.size, self.n_degrees * self.nodes.size))
        norms = np.ascontiguousarray(norms)
        _series.interpolate(self.pieces, norms, low, high, out, n_threads(10 * out.size))
        beyond = (norms < low) | (norms > high)
        if beyond.any():
            out[beyond] = self._flat(norms[beyond])
        return np.moveaxis(out.reshape(norms.size, self.n_degrees, -1), 1, 0)

    def values(self, table: Doubles, degree: int) -> Doubles:
        values: Doubles = table[degree] @ self.roots[degree]
        return values

    def diagonal(self, norms: Doubles) -> Doubles:
        return self.kernel.diagonal(norms)


class _Given:
    """The user's h_l."""

    _state = stored("kernel", "dim", "shape", "n_degrees", "furthest", "saved")

    n_pieces: int | None = None

    def __init__(self, kernel: SeriesKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim = cast("FunctionsKernel", kernel), dim
        self.shape = self.kernel.radial_values(grid).shape[1:]
        self.n_degrees = self.shape[0] if dim > 1 else min(self.shape[0], 2)
        self.furthest = float(grid.max())
        self.saved: tuple[float, Doubles] | None = None

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: a table instead of the user's function."""
        reach = 2 * self.furthest
        table = self.saved or (reach, _piecewise(self._flat, 0.0, reach))
        return {"saved": table}

    def _flat(self, norms: Doubles) -> Doubles:
        return self.table(norms).reshape(norms.size, -1)

    def table(self, norms: Doubles) -> Doubles:
        if self.saved is None:
            return self.kernel.radial_values(norms)
        high, pieces = self.saved
        if norms.size and norms.max() > high:
            raise ValueError(
                f"the radial functions were saved up to the norm {high:.6g}, and a point has "
                f"{norms.max():.6g}; fit on data that reach as far before saving"
            )
        out = np.empty((norms.size, pieces.shape[2]))
        _series.interpolate(pieces, np.ascontiguousarray(norms), 0.0, high, out, 1)
        return out.reshape(norms.size, *self.shape)

    def values(self, table: Doubles, degree: int) -> Doubles:
        return table[:, degree]

    def diagonal(self, norms: Doubles) -> Doubles:
        squares: Doubles = np.square(self._flat(norms)).sum(axis=1)
        return squares


_FAMILIES: dict[str, Callable[[SeriesKernel, int, Doubles, Cut], _Family]] = {
    "angular": _Angular,
    "dot product": _Taylor,
    "radial": _Distances,
    "general": _Given,
}


class RadialFunctions:
    """The radial functions of a kernel on a shell of norms, few and ordered by energy.

    Per degree l the functions of the kernel's family are rotated by the right singular vectors of
    their table over the norms of the data; the kernel stays exactly the same, and the rotated
    functions fall off at the optimal rate. On a sphere one remains, A_l(t, r) / sqrt(A_l(r, r)).

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    dim : int
    shell : (float, float)
        Smallest and largest scaled norm.
    norms : ndarray
        Quantiles of the scaled norms, equally likely; energies are means over them.
    n_columns : int
        Degrees are added until there are at least so many harmonics,
    tol : float
        and until what is left at the outer norm is at most tol.
    max_degree : int, optional
        Stop here instead of by n_columns and tol.
    order : int, optional
        Keep the first so many functions of every degree as they are, without rotation.

    Attributes
    ----------
    degree, index : ndarray of shape (K,)
        Degree l and rank within the degree of each function.
    energy : ndarray of shape (K,)
        Mean of h^2 over the norms.
    """

    _state = stored(
        "kernel",
        "dim",
        "shell",
        "degree",
        "index",
        "energy",
        "_family",
        "_groups",
        "_rotations",
        "_tables",
    )

    def __init__(
        self,
        kernel: SeriesKernel,
        dim: int,
        shell: tuple[float, float],
        norms: Doubles,
        n_columns: int,
        tol: float,
        max_degree: int | None = None,
        order: int | None = None,
    ) -> None:
        if kernel.family is None:
            raise ValueError(f"{kernel!r} is no generalized zonal kernel: {kernel.instead}")
        self.kernel, self.dim, self.shell = kernel, dim, shell
        self._groups: list[Integers] = []
        self._tables: dict[bytes, tuple[float, float, Doubles]] = {}
        # The data's norms decide what is kept; a light grid guards the corners of the shell.
        low, high = shell
        guard = 32 + int(2 * min(high, _REACH if dim > 1 else _REACH_1D))
        grid = np.concatenate([norms, _chebyshev(low, high, guard)])
        weight = np.concatenate([np.full(norms.size, 1 / norms.size), np.full(guard, 1e-2 / guard)])
        if high - low <= SPHERE * high:
            norms, grid, weight = norms[:1], np.array([high]), np.ones(1)
        cut = Cut(n_columns, tol, max_degree, order)
        self._family = _FAMILIES[kernel.family](kernel, dim, grid, cut)
        self._expand(norms.size, grid, weight, cut)

    def _expand(self, n_norms: int, grid: Doubles, weight: Doubles, cut: Cut) -> None:
        """Rotate the functions degree by degree, and stop where the cut says."""
        family = self._family
        table = family.table(grid)
        # The rim, or what lies nearest to it within the reach of the family's functions.
        near = np.flatnonzero(grid <= self.reach)
        rim = int(near[np.argmax(grid[near])]) if near.size else grid.size - 1
        whole = self.diagonal(grid[rim : rim + 1])[0]
        many = self.dim > 1 and grid[-1] > _MANY
        # Per degree that is kept: from the family's functions to ours.
        self._rotations: dict[int, Doubles] = {}
        degrees: list[int] = []
        indices: list[int] = []
        energies: list[float] = []
        count, covered = 0, 0.0
        levels = family.n_degrees if cut.max_degree is None else cut.max_degree + 1
        for level in range(levels):
            values = np.empty((grid.size, 0))
            if level < family.n_degrees:
                values = family.values(table, level)
            if cut.order is not None or values.shape[1] <= 1:
                rotation = np.eye(values.shape[1], cut.order or 1)
            else:
                rotation = _principal_axes(values, weight, many)
            energy = np.square(values[:n_norms] @ rotation).mean(axis=0)
            if cut.max_degree is None and energy.max() < _UNDERFLOW:
                continue
            rank = rotation.shape[1]
            self._rotations[level] = rotation
            degrees += [level] * rank
            indices += range(rank)
            energies += list(energy)
            covered += float(np.square(values[rim]).sum())
            count += rank * alpha(level, self.dim)
            enough = count >= cut.n_columns and whole - covered <= cut.tol * whole
            if enough and cut.max_degree is None:
                break
        self.degree = np.array(degrees, dtype=np.intp)
        self.index = np.array(indices, dtype=np.intp)
        self.energy = np.array(energies)
        if isinstance(family, _Angular) and self.constant:
            self.energy = family.c[self.degree]  # not the squares of its roots

    def _to_data(self) -> dict[str, Any]:
        """Say what a file keeps, see `model_io`: all but the tables that are made when needed."""
        return {"_tables": {}}

    @property
    def constant(self) -> bool:
        """Whether the functions do not depend on the norm."""
        return self.kernel.unit_sphere

    @property
    def reach(self) -> float:
        """Scaled norm beyond which the functions fade to zero."""
        return float(getattr(self._family, "reach", math.inf))

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """k(x, x) at the given scaled norms."""
        return self._family.diagonal(np.asarray(norms, dtype=np.float64))

    def residual(self, norms: ArrayLike, kept: NDArray[np.bool_]) -> Doubles:
        """Bound |k - kept part| at pairs of these norms: the diagonal less the kept squares."""
        values = np.square(self.exact(np.asarray(norms, dtype=np.float64)))
        missing: Doubles = np.maximum(self.diagonal(norms) - values.sum(axis=1), 0.0)
        missing += values[:, ~kept].sum(axis=1)
        return missing

    def largest_residual(self, kept: NDArray[np.bool_]) -> float:
        """Largest residual over the shell: on a grid, then between its worst point's neighbours."""
        grid = _chebyshev(*self.shell, 257) if self.shell[1] > self.shell[0] else self.shell[1:]
        residual = self.residual(np.asarray(grid), kept)
        if residual.size == 1:
            return float(residual[0])
        worst = int(np.argmax(residual))
        low, high = grid[max(worst - 1, 0)], grid[min(worst + 1, residual.size - 1)]
        return float(max(residual[worst], self.residual(np.linspace(low, high, 65), kept).max()))

    def exact(
        self,
        norms: Doubles,
        columns: Integers | None = None,
        product: Callable[[Doubles, Doubles], Doubles] = np.matmul,
    ) -> Doubles:
        """Values (n, K) of the functions, from the formulas; for any norm."""
        columns = np.arange(self.degree.size) if columns is None else columns
        out = np.zeros((norms.size, len(columns)))
        for rows in range(0, norms.size, 256):
            part = slice(rows, rows + 256)
            table = self._family.table(norms[part])
            for degree in np.unique(self.degree[columns]).tolist():
                if degree >= self._family.n_degrees:
                    continue
                here = np.flatnonzero(self.degree[columns] == degree)
                rotation = self._rotations[degree][:, self.index[columns[here]]]
                out[part, here] = product(self._family.values(table, degree), rotation)
        return out

    def __call__(self, norms: Doubles, columns: Integers, dtype: DTypeLike = np.float64) -> Floats:
        """Values (n, len(columns)) at norms, inside the shell from piecewise polynomials."""
        if self.constant:
            roots: Floats = np.sqrt(self.energy[columns])[None, :].astype(dtype)
            return roots
        low, high, table = self._table(columns)
        out = np.empty((norms.size, len(columns)), dtype=dtype)
        _series.interpolate(table, norms, low, high, out, n_threads(out.size * table.shape[1]))
        outside = np.flatnonzero((norms < low) | (norms > high))
        if outside.size:
            out[outside] = self.exact(norms[outside], columns, row_products)
        return out

    def prepared(self, groups: Sequence[Integers]) -> "RadialFunctions":
        """Return these functions with one table for several groups of columns.

        The formulas of a degree are those of all its functions: group by group, a kernel of 200
        degrees and 44 groups took forty times as long.
        """
        other = copy.copy(self)
        other._groups, other._tables = [np.asarray(group, dtype=np.intp) for group in groups], {}
        return other

    def _table(self, columns: Integers) -> tuple[float, float, Doubles]:
        """Piecewise polynomials of degree 9 over the shell, refined until they are exact."""
        key = columns.tobytes()
        if key not in self._tables:
            prepared = any(key == group.tobytes() for group in self._groups)
            groups = self._groups if prepared else [columns]
            together = np.concatenate(groups)
            low, high = _padded(*self.shell)
            table = _piecewise(lambda t: self.exact(t, together), low, high, self._family.n_pieces)
            ends = np.cumsum([group.size for group in groups])[:-1]
            for group, part in zip(groups, np.split(table, ends, axis=2), strict=True):
                self._tables[group.tobytes()] = low, high, np.ascontiguousarray(part)
        return self._tables[key]


def _negligible(tail: float, degree: int, dim: int, n_columns: int) -> bool:
    """Whether a share of the diagonal above a degree is lost in the noise of random columns."""
    if dim == 1:
        return False
    square = tail * tail * math.exp(-float(log_alpha(degree + 1, dim)))
    return square <= _REST / max(n_columns, 1)


def _padded(low: float, high: float) -> tuple[float, float]:
    """Make an interval a little longer, for norms that are rounded."""
    pad = 1e-4 * high + 1e-300
    return max(low - pad, 0.0), high + pad


def _harmonic_count(degree: int, dim: int) -> int:
    return sum(alpha(level, dim) for level in range(degree + 1))


def row_products(values: Doubles, matrix: Doubles) -> Doubles:
    """Return values @ matrix, each row by the same operations however many rows there are.

    BLAS takes other paths for few rows, and its results then differ in the last bit.
    """
    out = np.zeros((values.shape[0], matrix.shape[1]))
    for column, row in zip(values.T, matrix, strict=True):
        out += column[:, None] * row
    return out


def log_mu(degree: int, orders: Integers, dim: int) -> Doubles:
    """Logarithms of mu_l^(l+2i) for orders i (Eq 29), the share of degree l in t^(l+2i)."""
    powers = degree + 2 * orders
    total: Doubles = (
        log_alpha(degree, dim)
        + math.lgamma(dim / 2)
        + gammaln(powers + 1)
        - powers * math.log(2)
        - gammaln(orders + 1)
        - gammaln(orders + degree + dim / 2)
    )
    return total


def _powers(kernel: TaylorKernel, norms: Doubles, count: int) -> Doubles:
    """Square roots of the terms of the Taylor series, (n, count): all degrees share them.

    (kappa^(j)(0) / j!)^(1/2) t^j exp(envelope(t)); times (mu_l^j)^(1/2) they are the h_(l,i) of
    Eq 12.
    """
    j = np.arange(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_t = np.log(norms)[:, None] * j
    log_t[:, 0] = 0.0
    log_c = 0.5 * (kernel.log_derivative(j) - gammaln(j + 1))
    terms: Doubles = np.exp(log_c + log_t + np.asarray(kernel.log_envelope(norms))[:, None])
    return terms


def _principal_axes(values: Doubles, weight: Doubles, many: bool) -> Doubles:
    """Rotation of a degree's monomials, strongest first, without those lost in rounding."""
    weighted = np.sqrt(weight)[:, None] * values
    if many:  # the spectrum is long: its far end is never used, and this is much faster
        energy, axes = np.linalg.eigh(weighted @ weighted.T)
        keep = energy > 1e-14 * energy[-1]
        axes = axes[:, keep][:, ::-1] / np.sqrt(energy[keep][::-1])
        rotation = weighted.T @ axes
    else:
        _, s, vt = np.linalg.svd(weighted, full_matrices=False)
        rotation = vt[(s > 1e-13 * s[0]) & (np.square(s) > _UNDERFLOW)].T
    if not rotation.shape[1]:
        return np.eye(values.shape[1], 1)
    upright: Doubles = rotation * np.where(values[-1] @ rotation < 0, -1.0, 1.0)
    return upright  # positive at the rim


def _chebyshev(low: float, high: float, n: int) -> Doubles:
    """Chebyshev's extreme points on [low, high]."""
    return (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(n) / (n - 1))


def _piecewise(
    function: Callable[[Doubles], Doubles],
    low: float,
    high: float,
    n_pieces: int | None = None,
    degree: int = 9,
) -> Doubles:
    """Power coefficients (bins, degree + 1, K) of a piecewise polynomial interpolant.

    Without `n_pieces` there are as many as it takes to be exact, at most 511.
    """
    s = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    to_powers = np.linalg.inv(np.vander(s, increasing=True))
    check = np.array([-1.0, -0.55, 0.0, 0.45, 1.0])
    bins = n_pieces or max(1, int(high - low))
    while True:
        edges = np.linspace(low, high, bins + 1)
        middle, half = (edges[1:] + edges[:-1]) / 2, (high - low) / bins / 2
        values = function((middle[:, None] + half * s).ravel()).reshape(bins, s.size, -1)
        table = np.ascontiguousarray(to_powers @ values)
        if n_pieces:
            return table
        there = function((middle[:, None] + half * check).ravel()).reshape(bins, check.size, -1)
        error = np.abs(np.vander(check, s.size, increasing=True) @ table - there).max()
        if error <= 2e-13 * max(np.abs(values).max(), 1e-300) or bins >= 256:
            return table
        bins *= 2


def growth_constants(kernel: SeriesKernel, degree: int) -> tuple[float, float]:
    """Constants C and beta with kappa^(j)(0) <= C beta^j for a dot-product kernel (Assumption 1).

    Parameters
    ----------
    kernel : Kernel
        Resolved, a dot-product kernel or the Gaussian.
    degree : int
        The last derivative looked at, >= 16; beyond it the rate of growth is taken to stay.

    Returns
    -------
    growth, base : float
        C >= 0 and beta >= 1, in the units of the data: what the kernel multiplies the inputs by is
        in beta, so that Theorem 11 takes them with the radius of the data.

    Raises
    ------
    TypeError, ValueError
        If degree is no integer >= 16; if the kernel is one of the unit sphere; if its derivatives
        grow faster than any C beta^j, as they do if its Taylor series has a finite radius of
        convergence.

    Notes
    -----
    beta is the rate over the upper half of the degrees. Derivatives like j! rho^(-j) (a series that
    converges up to rho) and like (j/2)^(j/2) (growth like exp(t^2)) are known by a rate that still
    rises.

    References
    ----------
    Han, Zandieh, Avron, Assumption 1, there for j > d.

    Examples
    --------
    >>> from gzkcore.kernels import Gaussian
    >>> from gzkcore.kernels.radial import growth_constants
    >>> growth_constants(Gaussian(0.5), 40)
    (1.0, 1.0)
    """
    degree = check_integer("degree", degree, 16)
    if kernel.family != "dot product":
        where = " is known on the unit sphere only, where it" if kernel.unit_sphere else ""
        raise ValueError(f"kernel={kernel}{where} has no Taylor series; use a dot-product kernel")
    j = np.arange(degree + 1)
    logs = cast("TaylorKernel", kernel).log_derivative(j)
    known = np.flatnonzero(logs > -np.inf)
    if not known.size:
        raise ValueError(f"kernel={kernel} has no derivative at 0 that isn't 0; use another kernel")

    def rate(low: float, high: float) -> float:
        inside = known[(low <= known) & (known <= high)]
        if inside.size < 2:
            return 0.0
        first, last = int(inside[0]), int(inside[-1])
        return float(logs[last] - logs[first]) / (last - first)

    upper = rate(degree / 2, degree)
    if known[-1] > degree / 2 and upper - rate(degree / 4, degree / 2) > 0.2:
        raise ValueError(
            f"kernel={kernel} has derivatives that grow faster than any C beta^j (by a factor of "
            f"{math.exp(upper):.3g} each, and rising): its Taylor series has a finite radius of "
            "convergence, or it grows like exp(t^2); use truncate, which needs no such constants"
        )
    factor = float(np.max(kernel.scale())) ** 2
    log_base = max(0.0, upper + math.log(factor))
    return float(np.exp(logs[known] + known * (math.log(factor) - log_base)).max()), math.exp(
        log_base
    )
