"""The radial functions h_l of each family of kernels, by the formulas of the family.

The formula of h_l depends on the family (see `base`). A zonal kernel has sqrt(c_l) |x|^power with
the c_l of Eq 8. A dot-product kernel, such as the Gaussian, has the monomials of Eq 12 and 23. For
other kernels of |x - y|, Nystrom's formula is applied to A_l(a, b), the coefficients of the
Gegenbauer series in the angle at each pair of norms. A general kernel has the user's h_l.

All coefficients are computed as logarithms and exponentiated once, since their factors may overflow
though the coefficients do not.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from gzkcore._compiled import series as _series
from gzkcore._util.linalg import eigh
from gzkcore._util.state import doubles, holds, nothing, number, pairs, sequence, stored, whole
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Integers
from gzkcore.sphere.harmonics import n_harmonics
from gzkcore.sphere.series import radial_series
from gzkcore.sphere.special import alpha, log_alpha, log_mu

from .base import Kernel
from .dot_product import DotProductKernel
from .general import GeneralizedZonal
from .piecewise import chebyshev, padded, piecewise
from .shift_invariant import RadialKernel
from .zonal import ZonalKernel

# Beyond these scaled norms (in general, on a sphere, on the line) functions fade to zero, and the
# certificate and a warning say so: no number of features that fits into memory would be enough.
REACH, REACH_SPHERE, REACH_1D = 24.0, 48.0, 256.0
# So far beyond their reach nothing is left of a Gaussian's functions.
FADED = 11.0
# Functions that reach to this norm cost little, so none reaches less far.
NEAR = 6.0
# exp of smaller numbers is 0.
_LOG_ZERO = -746.0
# A slowly falling series is cut where the rest, as one further degree, is below this share of the
# mean square of the random features.
_REST = 1e-4
# Nystrom's formula has at most so many degrees, norms, and pieces of a table.
_DEGREES, _NODES, _PIECES = 128, 96, 16
# A model's file may have at most so many degrees; a sphere of REACH_SPHERE takes a fifth of it.
MOST_DEGREES = 1 << 17
# Energies below this are zero to float64.
UNDERFLOW = 1e-290


class Cut(NamedTuple):
    """Where the functions of a kernel end, see `RadialFunctions`."""

    n_columns: int
    tol: float
    max_degree: int | None
    order: int | None
    near: float


class FamilyFunctions:
    """The radial functions of one family of kernels, before any rotation."""

    kernel: Kernel
    n_degrees: int
    n_pieces: int | None = None  # of the tables; None: as many as they need
    reach: float = math.inf  # the norm beyond which the functions fade to zero

    def table(self, norms: Doubles) -> Doubles:
        """Return what all degrees share at these norms."""
        raise NotImplementedError

    def values(self, table: Doubles, degree: int) -> Doubles:
        """Return the functions of a degree, of shape (n, count)."""
        raise NotImplementedError

    def diagonal(self, norms: Doubles) -> Doubles:
        """Return k(x, x) at these norms."""
        return self.kernel.diagonal(norms)


class ZonalFunctions(FamilyFunctions):
    """h_l(t) = sqrt(c_l) t^power.

    Where the c_l fall off slowly the series is cut, and the rest of the diagonal is dropped. As one
    further degree it would keep k(x, x) right on average, but with a spike that multiplies the
    error of random columns (2 to 10 times, neural tangent kernel in 9 dimensions).
    """

    _state = stored(
        kernel=holds(ZonalKernel),
        dim=whole(1),
        at_one=number(0),
        c=doubles("n_degrees", least=0),
        n_degrees=whole(1),
    )

    kernel: ZonalKernel

    def __init__(self, kernel: ZonalKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim, self.at_one = kernel, dim, kernel.at_one(dim)
        if kernel.power:
            self._check_size(float(grid.max()))
        if cut.max_degree is not None:
            self.c = self.kernel.series(dim, cut.max_degree)
        else:
            self.c = self._choose(cut)
        self.n_degrees = self.c.size

    def _check_size(self, norm: float) -> None:
        """Raise if k(x, x) at the largest norm is out of the range of doubles."""
        with np.errstate(over="ignore"):
            size = float(self.diagonal(np.array([norm]))[0])
        if norm and not UNDERFLOW < size < math.inf:
            raise ValueError(
                f"{self.kernel!r} is {size:.4g} at a row of norm {norm:.4g}, which is too large "
                "for double precision; scale the columns"
            )

    def _choose(self, cut: Cut) -> Doubles:
        size = 1.0 if self.kernel.unit_sphere else self.at_one
        q = max(8, (self.kernel.n_coefficients() or 0) - 1)
        while True:
            c = self.kernel.series(self.dim, q)
            tail = self.at_one - float(c.sum())
            reached = tail <= max(cut.tol * size, self.kernel.noise(self.dim, q))
            columns = alpha(np.flatnonzero(c > 0), self.dim).sum()
            negligible = _negligible(tail / self.at_one, q, self.dim, cut.n_columns)
            if (columns >= cut.n_columns and (reached or negligible)) or q >= 512:
                break
            q *= 2
        return c

    def table(self, norms: Doubles) -> Doubles:
        """Return t^power."""
        power = 0 if self.kernel.unit_sphere else self.kernel.power
        return norms**power

    def values(self, table: Doubles, degree: int) -> Doubles:
        """Return sqrt(c_l) t^power."""
        return table[:, None] * math.sqrt(self.c[degree])

    def diagonal(self, norms: Doubles) -> Doubles:
        """Return kappa(1) t^(2 power)."""
        return self.at_one * np.square(self.table(norms))


class DotProductFunctions(FamilyFunctions):
    """The monomials h_(l,i) of Eq 12: a root of mu_l^(l+2i) times one of a Taylor term."""

    _state = stored(
        kernel=holds(DotProductKernel),
        dim=whole(1),
        order=whole(1, below=MOST_DEGREES) | nothing(),
        reach=number(0),
        n_powers=whole(1, below=MOST_DEGREES),
        n_degrees=whole(1, below=lambda of: of.n_powers + 1),
    )

    kernel: DotProductKernel

    def __init__(self, kernel: DotProductKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim, self.order = kernel, dim, cut.order
        kernel.check_finite(grid)
        most = REACH_1D if dim == 1 else REACH if grid.size > 1 else REACH_SPHERE
        self.reach = min(float(grid.max()), most, max(cut.near, NEAR))
        self.n_powers = int(self.reach**2 + 12 * self.reach + 64)
        if cut.order is not None and cut.max_degree is not None:
            self.n_powers = cut.max_degree + 2 * cut.order
        elif count := self.kernel.n_derivatives():
            self.n_powers, self.reach = count, float(grid.max())  # polynomials do not fade
        present = np.flatnonzero(self.table(grid).max(axis=0) > math.sqrt(UNDERFLOW))
        highest = int(present[-1]) if present.size else 0
        self.n_degrees = 1 + (highest if dim > 1 else min(highest, 1))  # on a line: even and odd

    def table(self, norms: Doubles) -> Doubles:
        """Return roots of the terms of the Taylor series, (n, n_powers): all degrees share them.

        (kappa^(j)(0) / j!)^(1/2) t^j exp(envelope(t)); times (mu_l^j)^(1/2) they are the h_(l,i)
        of Eq 12.
        """
        j = np.arange(self.n_powers)
        log_c = 0.5 * (self.kernel.log_derivative(j) - gammaln(j + 1))
        sizes = self.kernel.log_envelope(norms)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(norms)
            # If terms grow up to the last, and this is 0, all are 0, as for rows far out.
            rising = logs + np.diff(log_c).min(initial=math.inf) >= 0
            there = ~(rising & (log_c[-1] + logs * j[-1] + sizes < _LOG_ZERO))
            log_t = logs[there, None] * j
        log_t[:, 0] = 0.0
        roots: Doubles = np.zeros((norms.size, j.size))
        roots[there] = np.exp(log_c + log_t + sizes[there, None])
        return roots

    def values(self, table: Doubles, degree: int) -> Doubles:
        """Return h_(l,i), i = 0, 1, ..."""
        most = (self.n_powers - degree + 1) // 2
        count = self.order or min(orders_needed(degree, self.reach, self.dim), most)
        roots = _root_mu(degree, count, self.dim)
        values: Doubles = table[:, degree : degree + 2 * count : 2] * roots
        return values


@functools.lru_cache(maxsize=1024)
def _root_mu(degree: int, count: int, dim: int) -> Doubles:
    """Return the roots of mu_l^(l+2i) for i < count."""
    roots: Doubles = np.exp(0.5 * log_mu(degree, degree + 2 * np.arange(count), dim))
    roots.flags.writeable = False
    return roots


class ShiftInvariantFunctions(FamilyFunctions):
    """Nystrom's formula for A_l(a, b) of a radial kernel: A_l(t, nodes) A_l(nodes, nodes)^(-1/2).

    The rest of A_l is positive semidefinite, as a certificate needs. On the shell A_l(t, node) is a
    piecewise polynomial in t; beyond, it is integrated for each norm.
    """

    n_pieces = _PIECES

    _state = stored(
        kernel=holds(RadialKernel),
        dim=whole(1),
        n_degrees=whole(1),
        nodes=doubles("m"),
        shell=pairs(number()),
        pieces=doubles("b", "o", lambda of: of.n_degrees * of.nodes.size),
        roots=sequence(doubles("m", None), "n_degrees"),
    )

    kernel: RadialKernel

    def __init__(self, kernel: RadialKernel, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim = kernel, dim
        low, high = float(grid.min()), float(grid.max())
        count = min(32 + int(4 * (high - low)), _NODES)
        self.nodes = chebyshev(low, high, count) if grid.size > 1 else grid
        start = 16 if dim > 1 else 1  # on a line there are no other degrees
        q = start if cut.max_degree is None else cut.max_degree
        while True:
            A = self._pairs(self.nodes, q)
            tail = float(kernel.diagonal(self.nodes[-1:])[0] - A[:, -1, -1].sum())
            enough = n_harmonics(q, dim) >= cut.n_columns or dim == 1
            reached = tail <= max(cut.tol, float(self._noise(np.arange(q + 1)).sum())) or dim == 1
            reached |= _negligible(tail, q, dim, cut.n_columns)
            if cut.max_degree is not None or (enough and reached) or q >= _DEGREES:
                break
            q *= 2
        self.n_degrees = q + 1
        self.shell = padded(low, high)
        self.pieces = piecewise(self._flat, *self.shell, self.n_pieces)
        self.roots = [self._inverse_root(level, matrix) for level, matrix in enumerate(A)]

    def _pairs(self, norms: Doubles, degree: int) -> Doubles:
        """Return A_l at norms and nodes, of shape (degree + 1, n, n_nodes)."""
        profile = self.kernel.profile
        pairs = radial_series(profile, norms[:, None], self.nodes, self.dim, degree)
        return np.ascontiguousarray(np.moveaxis(pairs, 2, 0))

    def _noise(self, degrees: Integers) -> Doubles:
        """Return a bound of the rounding error of A_l."""
        root_alpha = np.exp(0.5 * log_alpha(degrees, self.dim))
        return (64 + degrees) * np.finfo(float).eps * root_alpha

    def _inverse_root(self, degree: int, matrix: Doubles) -> Doubles:
        """Return A_l(nodes, nodes)^(-1/2), strongest first, without directions that are noise."""
        values, vectors = eigh(matrix)
        noise = self.nodes.size * float(self._noise(np.array(degree)))
        if values[0] < -4 * noise:
            raise ValueError(
                f"{self.kernel!r} is not positive definite in dimension {self.dim}: the "
                f"coefficient of degree {degree}, a matrix over norms, has the eigenvalue "
                f"{values[0]:.3g} < 0; use a kernel that is, or a lower dimension"
            )
        keep = values > max(noise, UNDERFLOW)
        root: Doubles = (vectors[:, keep] / np.sqrt(values[keep]))[:, ::-1]
        return np.ascontiguousarray(root)  # a file keeps no other order, and products depend on it

    def _flat(self, norms: Doubles) -> Doubles:
        pairs = self._pairs(norms, self.n_degrees - 1)
        return np.moveaxis(pairs, 1, 0).reshape(norms.size, -1)

    def table(self, norms: Doubles) -> Doubles:
        """Return A_l(t, nodes)."""
        low, high = self.shell
        out = np.empty((norms.size, self.n_degrees * self.nodes.size))
        norms = np.ascontiguousarray(norms)
        _series.interpolate(self.pieces, norms, low, high, out, n_threads(10 * out.size))
        beyond = (norms < low) | (norms > high)
        if beyond.any():
            out[beyond] = self._flat(norms[beyond])
        return np.moveaxis(out.reshape(norms.size, self.n_degrees, -1), 1, 0)

    def values(self, table: Doubles, degree: int) -> Doubles:
        """Return A_l(t, nodes) A_l(nodes, nodes)^(-1/2)."""
        values: Doubles = table[degree] @ self.roots[degree]
        return values


class GeneralFunctions(FamilyFunctions):
    """The user's h_l."""

    _state = stored(
        kernel=holds(GeneralizedZonal),
        dim=whole(1),
        shape=pairs(whole(1)),
        n_degrees=whole(1, below=lambda of: of.shape[0] + 1),
        furthest=number(0),
        saved=pairs(number(0) | doubles("b", "o", lambda of: math.prod(of.shape))),
    )

    kernel: GeneralizedZonal

    def __init__(self, kernel: GeneralizedZonal, dim: int, grid: Doubles, cut: Cut) -> None:
        self.kernel, self.dim = kernel, dim
        self.shape = kernel.radial_values(grid).shape[1:]
        self.n_degrees = self.shape[0] if dim > 1 else min(self.shape[0], 2)
        self.furthest = float(grid.max())
        self.saved: tuple[float, Doubles] | None = None

    def _to_data(self) -> dict[str, Any]:
        """Return a table for the file instead of the user's function, see `model_io`."""
        reach = 2 * self.furthest
        return {"saved": self.saved or (reach, piecewise(self._flat, 0.0, reach))}

    def _flat(self, norms: Doubles) -> Doubles:
        return self.table(norms).reshape(norms.size, -1)

    def table(self, norms: Doubles) -> Doubles:
        """Return h, of shape (n, q + 1, s)."""
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
        """Return h_l."""
        return table[:, degree]

    def diagonal(self, norms: Doubles) -> Doubles:
        """Return the sum of the squares of h."""
        squares: Doubles = np.square(self._flat(norms)).sum(axis=1)
        return squares


def functions_of(kernel: Kernel, dim: int, grid: Doubles, cut: Cut) -> FamilyFunctions:
    """Return the radial functions of a kernel's family, or raise if it has none."""
    match kernel:
        case DotProductKernel():
            return DotProductFunctions(kernel, dim, grid, cut)
        case ZonalKernel():
            return ZonalFunctions(kernel, dim, grid, cut)
        case RadialKernel():
            return ShiftInvariantFunctions(kernel, dim, grid, cut)
        case GeneralizedZonal():
            return GeneralFunctions(kernel, dim, grid, cut)
    raise ValueError(f"{kernel!r} is not a generalized zonal kernel: {kernel.instead}")


# ---- the monomials of Eq 12


def orders_needed(degree: int, r: float, dim: int) -> int:
    """Return the number of orders i = 0, 1, ... in a degree's sum at norm r, to rounding."""
    nu = degree + dim / 2
    peak = (math.sqrt(nu * nu + r**4) - nu) / 2
    return int(peak + 9 * math.sqrt(peak + 1) + 24)


def _negligible(tail: float, degree: int, dim: int, n_columns: int) -> bool:
    """Say whether the diagonal above a degree is lost in the noise of random columns."""
    if dim == 1:
        return False
    square = tail * tail * math.exp(-float(log_alpha(degree + 1, dim)))
    return square <= _REST / max(n_columns, 1)
