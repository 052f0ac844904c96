"""A kernel of a distance, cut into a smooth part and one of short range, for `fast_sums`.

k_far is k from a distance e on. Below e it is the Taylor polynomial of k in s = r^2 about e^2. So
k_far is smooth, also at 0, where k need not be. k_near = k - k_far is 0 from e on.
"""

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, polynomial

from gzkcore._util.typing import Doubles

from .points import row_norms
from .tile_form import ABSOLUTE, COMPACT, DIFFERENCE, TABLE, Factor, TileForm
from .tile_matrix import DOUBLE, KnownTerms, known_terms, terms_matrix

__all__ = ["KernelSplit"]

# Distances of more columns than this are left to tiles.
MOST_COLUMNS = 3
# The polynomial below e has so many coefficients.
ORDER = 8
# Derivatives of k at e are those of a polynomial of this degree through k.
NODES = 20
# Tiles compute k_near by a polynomial of this degree, fitted at so many points.
DEGREE, POINTS = 8, 64
# The polynomial is not used if its largest coefficient is so many times its largest value.
MOST_GROWTH = 1e4
# Rounding in single precision.
SINGLE = 2.0**-24
# Norms of rows on a sphere differ by at most this share: harmonics know only directions.
OFF_SPHERE = 1e-12


class NoSplitError(Exception):
    """There is no sum in linear time, or it would be too large."""


@dataclass(frozen=True, eq=False)
class Distance:
    """The distance that a kernel is a function of: |scale (x - y)| of some columns."""

    columns: tuple[int, ...]
    scale: tuple[float, ...]
    terms: TileForm

    def rows(self, X: Doubles) -> Doubles:
        """Return the scaled columns of rows."""
        return np.ascontiguousarray(X[:, self.columns] * self.scale)

    @functools.cached_property
    def _known(self) -> KnownTerms | None:
        return known_terms(self.terms, max(self.columns) + 1, DOUBLE, 0.0)

    def values(self, rows: Doubles, origin: Doubles) -> Doubles:
        """Return the kernel between rows, not scaled, and one other."""
        return self._matrix(rows, origin[None])[:, 0]

    def on_grid(self, axes: list[Doubles]) -> Doubles:
        """Return the kernel between 0 and the grid with these points along scaled columns."""
        *first, last = axes if len(axes) > 1 else [*axes, np.zeros(1)]
        rows = np.zeros((math.prod(map(len, first)), max(self.columns) + 1))
        columns = np.zeros((len(last), rows.shape[1]))
        for place, t in enumerate(np.meshgrid(*first, indexing="ij")):
            rows[:, self.columns[place]] = t.ravel() / self.scale[place]
        if len(axes) > 1:
            columns[:, self.columns[-1]] = last / self.scale[-1]
        return self._matrix(rows, columns).reshape([len(t) for t in axes])

    def _matrix(self, rows: Doubles, columns: Doubles) -> Doubles:
        matrix = terms_matrix(self._known, rows, columns, DOUBLE)
        if matrix is None:
            raise NoSplitError
        return np.asarray(matrix)

    def profile(self, r: Doubles) -> Doubles:
        """Return the kernel at a distance of scaled rows."""
        rows = np.zeros((r.size, max(self.columns) + 1))
        rows[:, self.columns[0]] = r.ravel() / self.scale[0]
        return self.values(rows, np.zeros(rows.shape[1])).reshape(r.shape)


def distances_of(form: TileForm, dim: int) -> list[Distance]:
    """Return the parts of a kernel, each a function of one distance, or raise."""
    terms_of: dict[tuple[tuple[int, ...], tuple[float, ...]], TileForm] = {}
    for term in form:
        keys = [_key(factor, dim) for factor in term.factors]
        key = keys[0]
        if key is None or any(other != key for other in keys):
            raise NoSplitError
        terms_of.setdefault(key, []).append(term)
    return [Distance(*key, terms) for key, terms in terms_of.items()]


def _key(factor: Factor, dim: int) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
    """Return the columns and relative scales of a factor, None if it has no distance."""
    columns, scale = _scaled(factor, dim)
    one_distance = factor.of_distances and (factor.metric != ABSOLUTE or len(columns) == 1)
    relative = scale / scale.max()
    if not one_distance or factor.power is not None or not (relative > 0).all():
        return None
    if len(columns) > MOST_COLUMNS or len(set(columns)) < len(columns):
        return None
    return columns, tuple(float(f"{one:.14g}") for one in relative)


def _scaled(factor: Factor, dim: int) -> tuple[tuple[int, ...], Doubles]:
    """Return the columns of a factor, and the scale of each."""
    columns = tuple(range(dim)) if factor.columns is None else tuple(factor.columns)
    return columns, np.broadcast_to(np.asarray(factor.scale, dtype=np.float64), len(columns))


def radius_of(form: TileForm, X: Doubles, Y: Doubles) -> float | None:
    """Return the norm of all rows if they are on a sphere and the kernel is zonal, else None."""
    dim = X.shape[1]
    if dim != 3:
        return None
    for term in form:
        for factor in term.factors:
            columns, scale = _scaled(factor, dim)
            if sorted(columns) != [0, 1, 2] or np.ptp(scale) or factor.metric == ABSOLUTE:
                return None
    norms = [row_norms(rows) for rows in (X, Y)]
    least, most = min(side.min() for side in norms), max(side.max() for side in norms)
    return float(most) if most > 0 and most - least <= OFF_SPHERE * most else None


@dataclass(frozen=True, eq=False)
class KernelSplit:
    """A kernel of the distance, cut at e into k_far + k_near; e = 0: all of it is far."""

    kernel: Callable[[Doubles], Doubles]
    e: float
    tol: float  # of k_near
    coefficients: Doubles  # of powers of 2 (r^2 / e^2 - 1)

    @classmethod
    def at(cls, kernel: Callable[[Doubles], Doubles], e: float, tol: float) -> "KernelSplit":
        """Cut at e."""
        if e == 0:
            return cls(kernel, e, tol, np.zeros(0))
        nodes = chebyshev.chebpts1(NODES + 1)
        series = chebyshev.chebfit(nodes, kernel(e * np.sqrt(1 + nodes / 2)), NODES)
        return cls(kernel, e, tol, np.asarray(chebyshev.cheb2poly(series)[:ORDER], np.float64))

    def far(self, r: Doubles, values: Doubles | None = None) -> Doubles:
        """Return k_far at distances, given the kernel's `values` there if they are known."""
        if values is None:
            values = self.kernel(np.maximum(r, self.e))
        return np.where(r < self.e, self._smooth(r * r), values) if self.e else values

    def near(self, squares: Doubles) -> Doubles:
        """Return k_near of r^2."""
        below = squares < self.e**2
        values = np.zeros_like(squares)
        values[below] = self.kernel(np.sqrt(squares[below])) - self._smooth(squares[below])
        return values

    def dtype(self, radius: float) -> np.dtype[Any]:
        """Return the type in which k_near is accurate enough in tiles of this radius.

        Terms of the polynomial are rounded, and rows, relative to the radius.
        """
        t, near = self._sampled
        steepest = float(np.abs(np.diff(near) / np.diff(t)).max())
        terms = 2 * self._most if self.compact is None else float(np.abs(self.compact).sum())
        rounding = SINGLE * (terms + 2 * steepest * radius / self.e)
        return np.dtype(np.float32 if rounding <= self.tol / 2 else np.float64)

    @functools.cached_property
    def _sampled(self) -> tuple[Doubles, Doubles]:
        """Some 1 - r / e, and k_near there; also at r = 0, for very short kernels."""
        t: Doubles = np.append((chebyshev.chebpts1(POINTS) + 1) / 2, 1.0)
        return t, self.near((self.e * (1 - t)) ** 2)

    @functools.cached_property
    def _most(self) -> float:
        return float(np.abs(self._sampled[1]).max())

    @functools.cached_property
    def compact(self) -> Doubles | None:
        """The q of k_near = (1 - r / e)^8 q(1 - r / e), None if no polynomial is within tol."""
        t, near = self._sampled
        powers = t[:, None] ** ORDER * np.vander(t, DEGREE + 1, increasing=True)
        q = np.asarray(np.linalg.lstsq(powers, near, rcond=None)[0])
        exact = np.abs(powers @ q - near).max() <= self.tol / 8
        return q if exact and np.abs(q).max() <= MOST_GROWTH * self._most else None

    def factor(self) -> Factor:
        """Return k_near in the form that tiles compute."""
        if self.compact is not None:
            return Factor(1 / self.e, DIFFERENCE, COMPACT, self.compact)
        most = max(self._most, sys.float_info.min)
        return Factor(1.0, DIFFERENCE, TABLE, function=self.near, noise=self.tol / 8 / most)

    def _smooth(self, squares: Doubles) -> Doubles:
        return np.asarray(polynomial.polyval(2 * (squares / self.e**2 - 1), self.coefficients))
