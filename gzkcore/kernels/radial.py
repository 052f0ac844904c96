"""Radial functions of kernels: the few that matter, ordered by energy.

A generalized zonal kernel is k(x, y) = sum_l <h_l(|x|), h_l(|y|)> P_d^l(cos) (Eq 11). The h_l of
its family (see `families`) are many, and nearly linearly dependent at the norms of the data.
`RadialFunctions` rotates them, which does not change the kernel, and keeps the few that matter.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gzkcore._compiled import series as _series
from gzkcore._util.linalg import eigh
from gzkcore._util.state import (
    doubles,
    entries,
    holds,
    ints,
    mapping,
    number,
    pairs,
    sequence,
    stored,
    whole,
)  # fmt: skip
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore._util.validation import check_dim, check_integer, extremes
from gzkcore.sphere.series import check_numbers
from gzkcore.sphere.special import exact_alpha, log_squared_coefficients

from .base import Kernel
from .dot_product import DotProductKernel
from .families import (
    NEAR,
    REACH,
    REACH_1D,
    UNDERFLOW,
    Cut,
    FamilyFunctions,
    ZonalFunctions,
    functions_of,
)
from .piecewise import chebyshev, padded, piecewise
from .shift_invariant import Gaussian

__all__ = ["radial_table"]

# Norms that differ relatively by less than this are one sphere.
SPHERE = 1e-6
# Formulas are evaluated for so many norms at a time; with 256 it took twice as long.
BLOCK = 1024
# Scaled norms above this have a long radial spectrum.
_MANY = 6.0


def radial_table(
    kernel: DotProductKernel, norms: ArrayLike, dim: int, degree: int, order: int
) -> Doubles:
    """Evaluate the monomial radial functions h_(l,i)(t) (Eq 12; Eq 23 for the Gaussian).

    i starts at 0; in the printed Eq 22 and 23 it starts at 1.

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
        For the Gaussian each value is at most 1, and the squares sum to 1 over all l and i.

    Notes
    -----
    One exponential per value; memory for the result. Values are computed as logarithms, without
    overflow.

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
        kernel.log_derivative, dim, np.arange(degree + 1)[:, None], np.arange(order)[None, :]
    )
    out = np.empty((norms.size, degree + 1, order))
    log_e = kernel.log_envelope(norms)
    _series.radial_table(np.ascontiguousarray(log_c), norms, log_e, out, n_threads(8 * out.size))
    return out


class _Grid(NamedTuple):
    """Norms that decide which functions stay: the data's, and a light grid for the corners."""

    norms: Doubles  # those of the data first
    weights: Doubles
    n_data: int

    @classmethod
    def over(cls, shell: tuple[float, float], norms: Doubles, dim: int, near: float) -> Self:
        """Return the grid of the near part of a shell; for a sphere its norm alone."""
        low, high = shell
        if high - low <= SPHERE * high:
            return cls(np.array([high]), np.ones(1), 1)
        high = min(high, max(near, NEAR, 2 * low))
        guard = 32 + int(2 * min(high, REACH if dim > 1 else REACH_1D))
        weights = np.repeat([1 / norms.size, 1e-2 / guard], [norms.size, guard])
        return cls(np.concatenate([norms, chebyshev(low, high, guard)]), weights, norms.size)

    def rim(self, reach: float) -> int:
        """Return the number of the largest norm within the reach of the functions."""
        near = np.flatnonzero(self.norms <= reach)
        return int(near[np.argmax(self.norms[near])]) if near.size else self.norms.size - 1


class RadialFunctions:
    """The radial functions of a kernel on a range of norms: the few that matter, ordered by energy.

    For each degree l the functions of the kernel's family are rotated by the right singular vectors
    of their table over the norms of the data. The kernel does not change, and the rotated functions
    decrease at the optimal rate. On a sphere one function remains, A_l(t, r) / sqrt(A_l(r, r)).

    The shell is the smallest and the largest scaled norm; norms are equally likely quantiles of the
    scaled norms. Degrees are added up to `max_degree`; without it, until there are `n_columns`
    harmonics and the truncation error at the largest norm is at most `tol`. With `order` each
    degree has so many functions, not rotated. The Gaussian's functions fade to zero beyond `near`.

    Attributes
    ----------
    degree, index : ndarray of shape (K,)
        Degree l and rank within the degree of each function.
    energy : ndarray of shape (K,)
        Mean of h^2 over the norms.
    """

    _state = stored(
        kernel=holds(Kernel),
        dim=whole(1),
        shell=pairs(number(0)),
        degree=ints("k"),
        index=ints("k"),
        energy=doubles("k", least=0),
        _family=holds(FamilyFunctions),
        _rotations=mapping(whole(0), doubles(None, None)),
        _groups=sequence(ints(None, below=lambda of: of.degree.size, dtype=np.int64)),
        _tables=entries(),
    )

    def __init__(
        self, kernel: Kernel, dim: int, shell: tuple[float, float], norms: Doubles, n_columns: int,
        tol: float, max_degree: int | None = None, order: int | None = None, near: float = math.inf,
    ) -> None:  # fmt: skip
        self.kernel, self.dim, self.shell = kernel, dim, shell
        self._groups: list[Integers] = []
        self._tables: dict[bytes, tuple[float, float, Doubles]] = {}
        near = near if isinstance(kernel, Gaussian) else math.inf  # others do not fade
        cut = Cut(n_columns, tol, max_degree, order, near)
        grid = _Grid.over(shell, norms, dim, near)
        self._family = functions_of(kernel, dim, grid.norms, cut)
        rotated = list(self._rotated(grid, cut))
        # For each degree: from the family's functions to ours.
        self._rotations = {degree: rotation for degree, rotation, _ in rotated}
        ranks = [rotation.shape[1] for rotation in self._rotations.values()]
        self.degree = np.repeat(np.array([*self._rotations], dtype=np.intp), ranks)
        self.index = np.concatenate([np.arange(0), *map(np.arange, ranks)])
        self.energy = np.concatenate([np.empty(0), *(energy for _, _, energy in rotated)])
        if isinstance(self._family, ZonalFunctions) and self.constant:
            self.energy = self._family.c[self.degree]  # not the squares of its roots

    def _rotated(self, grid: "_Grid", cut: Cut) -> Iterator[tuple[int, Doubles, Doubles]]:
        """Yield a degree, the rotation of its functions and their energies, up to the cut."""
        family = self._family
        table = family.table(grid.norms)
        rim = grid.rim(self.reach)
        whole = self.diagonal(grid.norms[rim : rim + 1])[0]
        long = self.dim > 1 and grid.norms[-1] > _MANY
        levels = family.n_degrees if cut.max_degree is None else cut.max_degree + 1
        count, covered = 0, 0.0
        for level in range(levels):
            values = np.empty((grid.norms.size, 0))
            if level < family.n_degrees:
                values = family.values(table, level)
            if cut.order is not None or values.shape[1] <= 1:
                rotation = np.eye(values.shape[1], cut.order or 1)
            else:
                rotation = _principal_axes(values, grid.weights, long)
            energy = np.square(values[: grid.n_data] @ rotation).mean(axis=0)
            if cut.max_degree is None and energy.max() <= UNDERFLOW * min(whole, 1.0):
                continue
            yield level, rotation, energy
            covered += float(np.square(values[rim]).sum())
            count += rotation.shape[1] * exact_alpha(int(level), self.dim)
            enough = count >= cut.n_columns and whole - covered <= cut.tol * whole
            if enough and cut.max_degree is None:
                return

    def _to_data(self) -> dict[str, Any]:
        """Return no tables for the file, see `model_io`: they are made when needed."""
        return {"_tables": {}}

    @property
    def constant(self) -> bool:
        """Whether the functions do not depend on the norm."""
        return self.kernel.unit_sphere

    @property
    def reach(self) -> float:
        """Scaled norm beyond which the functions fade to zero."""
        return self._family.reach

    def diagonal(self, norms: ArrayLike) -> Doubles:
        """Return k(x, x) at scaled norms."""
        return self._family.diagonal(np.asarray(norms, dtype=np.float64))

    def residual(self, norms: ArrayLike, kept: NDArray[np.bool_]) -> Doubles:
        """Return a bound of |k - sum over kept functions|: the diagonal minus their squares."""
        values = np.square(self.exact(np.asarray(norms, dtype=np.float64)))
        missing: Doubles = np.maximum(self.diagonal(norms) - values.sum(axis=1), 0.0)
        missing += values[:, ~kept].sum(axis=1)
        return missing

    def largest_residual(self, kept: NDArray[np.bool_]) -> float:
        """Return the largest residual over the shell, by a grid refined at its worst point."""
        grid = chebyshev(*self.shell, 257) if self.shell[1] > self.shell[0] else self.shell[1:]
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
        """Return the functions (n, K) at any norms, by their formulas."""
        columns = np.arange(self.degree.size) if columns is None else columns
        out, levels = np.zeros((norms.size, len(columns))), self.degree[columns]
        order = np.argsort(levels, kind="stable")
        degrees, starts = np.unique(levels[order], return_index=True)
        of_degrees = [
            (degree, own, self._rotations[degree][:, self.index[columns[own]]])
            for degree, own in zip(degrees.tolist(), np.split(order, starts)[1:], strict=True)
            if degree < self._family.n_degrees
        ]
        for rows in range(0, norms.size, BLOCK):
            part = slice(rows, rows + BLOCK)
            table = self._family.table(norms[part])
            for degree, own, rotation in of_degrees:
                out[part, own] = product(self._family.values(table, degree), rotation)
        return out

    def __call__(self, norms: Doubles, columns: Integers, dtype: DTypeLike = np.float64) -> Floats:
        """Return functions (n, len(columns)) at norms, on the shell by piecewise polynomials."""
        return Folded(self, columns, lambda values: values)(norms, dtype)

    def prepared(self, groups: Sequence[Integers]) -> "RadialFunctions":
        """Return these functions with one table for several groups of columns.

        With a table for each group, a kernel of 200 degrees and 44 groups took forty times as long:
        the formulas of a degree are evaluated for all its functions together.
        """
        other = copy.copy(self)
        other._groups, other._tables = [np.asarray(group, dtype=np.intp) for group in groups], {}
        return other

    def _table(self, columns: Integers) -> tuple[float, float, Doubles]:
        """Return piecewise polynomials over the shell, with its ends, for some columns."""
        key = columns.tobytes()
        if key not in self._tables:
            prepared = any(key == group.tobytes() for group in self._groups)
            groups = self._groups if prepared else [columns]
            together = np.concatenate(groups)
            low, high = padded(*self.shell)
            table = piecewise(lambda t: self.exact(t, together), low, high, self._family.n_pieces)
            ends = np.cumsum([group.size for group in groups])[:-1]
            for group, part in zip(groups, np.split(table, ends, axis=2), strict=True):
                self._tables[group.tobytes()] = low, high, np.ascontiguousarray(part)
        return self._tables[key]


class Folded:
    """A linear function of the radial functions at a norm, which is applied to their tables.

    `fold` maps rows of values.
    """

    def __init__(
        self, radial: RadialFunctions, columns: Integers, fold: Callable[[Doubles], Doubles]
    ) -> None:
        self._radial, self._columns, self._fold = radial, columns, fold
        if radial.constant:
            self._row = fold(np.sqrt(radial.energy[columns])[None, :])
            return
        self._low, self._high, table = radial._table(columns)
        folded = fold(table.reshape(-1, table.shape[2]))
        self._table = np.ascontiguousarray(folded).reshape(*table.shape[:2], -1)

    def __call__(self, norms: Doubles, dtype: DTypeLike = np.float64) -> Floats:
        """Return the values (n, columns), or (1, columns) if they do not depend on the norm."""
        if self._radial.constant:
            return self._row.astype(dtype)
        table, low, high = self._table, self._low, self._high
        out = np.empty((norms.size, table.shape[2]), dtype=dtype)
        _series.interpolate(table, norms, low, high, out, n_threads(out.size * table.shape[1]))
        nearest, furthest = extremes(norms, low)
        if nearest < low or furthest > high:
            outside = np.flatnonzero((norms < low) | (norms > high))
            out[outside] = self._fold(
                self._radial.exact(norms[outside], self._columns, row_products)
            )
        return out


def row_products(values: Doubles, matrix: Doubles) -> Doubles:
    """Return values @ matrix, with the same bits for a row however many rows there are.

    BLAS computes few rows in another way.
    """
    out = np.zeros((values.shape[0], matrix.shape[1]))
    for column, row in zip(values.T, matrix, strict=True):
        out += column[:, None] * row
    return out


def _principal_axes(values: Doubles, weight: Doubles, many: bool) -> Doubles:
    """Return the rotation of a degree's monomials, strongest first, without rounding noise."""
    weighted = np.sqrt(weight)[:, None] * values
    if not weighted.any():  # at norms far out; the many columns need no decomposition
        return np.eye(values.shape[1], 1)
    if many:  # the spectrum is long: its far end is never used, and this is much faster
        energy, axes = eigh(weighted @ weighted.T)
        keep = energy > 1e-14 * energy[-1]
        axes = axes[:, keep][:, ::-1] / np.sqrt(energy[keep][::-1])
        rotation = weighted.T @ axes
    else:
        _, s, vt = np.linalg.svd(weighted, full_matrices=False)
        rotation = vt[(s > 1e-13 * s[0]) & (np.square(s) > UNDERFLOW)].T
    if not rotation.shape[1]:
        return np.eye(values.shape[1], 1)
    upright: Doubles = rotation * np.where(values[-1] @ rotation < 0, -1.0, 1.0)
    return upright  # positive at the rim
