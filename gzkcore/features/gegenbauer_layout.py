"""The choice of the columns of a kernel: exact harmonics, random directions, and how many of each.

`choose` takes the columns with the smallest predicted error, given the kernel's radial functions,
which know the norms of the data. The result is a `Layout`, which writes the columns of unit rows.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Floats, Integers, Rows
from gzkcore.kernels.radial import Folded, RadialFunctions
from gzkcore.sphere.directions import PointSet, best_method, drawn_directions
from gzkcore.sphere.harmonics import HarmonicTree
from gzkcore.sphere.series import angles, summed_zonal
from gzkcore.sphere.special import exact_alpha, log_alpha, unchecked_alpha

from .base import cast_once
from .gegenbauer_columns import Directions, summed_features
from .polar import Polar
from .principal_axes import CHOICE, WIDER, principal_axes, strongest_columns

Basis: TypeAlias = Literal["auto", "harmonic", "random", "hybrid", "adapted"]
BASES: tuple[Basis, ...] = get_args(Basis)

# Signs of the degrees, modulo 4: of the real parts of i^l, then of the imaginary parts.
_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])
# The largest error of a kernel value from rounding and interpolation of radial functions, relative
# to the largest k(x, x).
INTERPOLATION_ERROR = 5e-13
# Points of the kernel matrix whose error decides which columns are exact; fewer points give more
# weight to the diagonal, on which it depends how closely a learner can follow its data.
_JUDGED = 256
# Directions that enter the predicted error of a set.
_PROBE = 512
# Norms among which radial functions have their largest squares.
_PEAK_NORMS = 17
# The largest dimension in which basis="adapted" rotates the data.
_MOST_ROTATED = 512
# Rows that determine the axes of the rotation.
_ROWS_FOR_AXES = 4096


def _no_columns() -> Integers:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Layout:
    """The columns: first harmonics of radial functions, then random ones, then zeros."""

    radial: RadialFunctions  # those in use are `functions` and the columns of the families
    families: tuple[Directions, ...] = ()  # the random columns
    # Radial functions with exact columns, and the number of harmonics of each.
    functions: Integers = field(default_factory=_no_columns)
    counts: Integers = field(default_factory=_no_columns)
    # The tree of the harmonics, the node of each column, the place of its radial function in
    # `functions`, and the factor of each function.
    tree: HarmonicTree | None = None
    nodes: Integers = field(default_factory=_no_columns)
    ring: Integers = field(default_factory=_no_columns)
    weights: Doubles | None = None
    # For basis="adapted": matrices that multiply unit rows, and exact columns.
    rotation: Doubles | None = None
    axes: Doubles | None = None

    @functools.cached_property
    def sizes(self) -> Doubles:
        """The number of harmonics of each radial function."""
        sizes: Doubles = unchecked_alpha(self.radial.degree, self.radial.dim)
        return sizes

    @functools.cached_property
    def complete(self) -> NDArray[np.bool_]:
        """The mask of the radial functions that are not truncated, or adapted to the data."""
        complete = np.zeros(self.radial.degree.size, dtype=bool)
        whole = self.counts == self.sizes[self.functions]
        complete[self.functions if self.axes is not None else self.functions[whole]] = True
        for family in self.families:
            complete[family.columns] = True
        return complete

    @property
    def _used(self) -> Integers:
        return np.concatenate([self.functions, *[f.columns for f in self.families]]).astype(np.intp)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of `GegenbauerFeatures` that describe the columns."""
        radial, used = self.radial, self._used
        directions = np.array([family.W.shape[0] for family in self.families], dtype=np.intp)
        exact = int(self.counts.sum())
        effective = int(self.counts[radial.energy[self.functions] > 0].sum() + directions.sum())
        basis = "hybrid" if self.functions.size else "random"
        if self.axes is not None:
            basis, exact = "adapted", self.axes.shape[1]
            effective = int(np.count_nonzero(self.axes.any(axis=0)))
        elif not self.families:
            basis = "harmonic"
        return {
            "basis_": basis,
            "degree_": int(radial.degree[used].max(initial=0)),
            "order_": int(radial.index[used].max(initial=0)) + 1,
            "n_exact_": exact,
            "n_effective_": effective,
            "n_directions_": directions,
        }

    @property
    def missing(self) -> float:
        """Root mean square error of the exact columns alone, over random pairs."""
        exact = np.zeros(self.sizes.size)
        np.add.at(exact, self.functions, self.counts)
        unit = _unit(self.radial.energy)
        energy = self.radial.energy / unit
        dropped = energy * (1.0 - exact / self.sizes)  # sizes may be inf
        return unit * math.sqrt(float(energy / self.sizes @ dropped))

    @property
    def truncation_error(self) -> float:
        """Largest residual over the shell, plus the error of interpolation."""
        largest = float(self.radial.diagonal(np.array(self.radial.shell)).max())
        return self.radial.largest_residual(self.complete) + INTERPOLATION_ERROR * largest

    def check(self, dim: int, width: int) -> None:
        """Raise ValueError unless these are columns of points of `dim`, `width` at most."""
        if self.radial.dim != dim or self._n_columns > width:
            raise ValueError(
                f"has {self._n_columns} columns of {self.radial.dim} dimensions, and room for "
                f"{width} of {dim}"
            )

    @functools.cached_property
    def _n_columns(self) -> int:
        """Count the columns; raise ValueError if the parts do not match."""
        parts: list[Any] = [self.radial, *(family.rule for family in self.families)]
        if self.tree is not None:
            parts.append(self.tree)
        if len({part.dim for part in parts}) > 1:
            raise ValueError(f"has parts of {[part.dim for part in parts]} dimensions")
        n_nodes = 0 if self.tree is None else self.tree.size
        for what, numbers, end in (
            ("radial functions", self._used, self.radial.degree.size),
            ("harmonics", self.nodes, n_nodes),
            ("exact functions", self.ring, self.functions.size),
        ):
            if numbers.max(initial=-1) >= end:
                raise ValueError(f"has column {numbers.max()} of {end} {what}")
        if self.axes is not None and self.families:
            raise ValueError("has adapted axes, and random columns")
        if self.axes is not None:
            return int(self.axes.shape[1])
        if self.counts.sum() != self.nodes.size:
            raise ValueError(f"has {self.nodes.size} harmonics, and counts {self.counts.sum()}")
        return int(self.nodes.size + sum(len(family.W) for family in self.families))

    def fill(self, unit: Floats, norms: Doubles, out: Floats, stream: bool) -> None:
        """Write the features of one tile."""
        if self.axes is None:
            self.fill_columns(unit, norms, out, stream)
            return
        wide = np.empty((unit.shape[0], self.axes.shape[0]), dtype=unit.dtype)
        self.fill_columns(unit, norms, wide, False)
        np.matmul(wide, self.axes.astype(unit.dtype), out=out)

    def fill_columns(self, unit: Floats, norms: Doubles, out: Floats, stream: bool) -> None:
        """Write the columns before they are compressed."""
        first = self.nodes.size
        exact, random = cast_once(self, unit.dtype, self._folded, self.radial)
        if exact is not None and self.tree is not None:
            values = exact(norms, unit.dtype)
            if self.rotation is not None:
                unit = unit @ self.rotation.astype(unit.dtype)
            self.tree.features(unit, values, self.nodes, self.ring, out[:, :first], stream=stream)
        for family, coefficients in zip(self.families, random, strict=True):
            last = first + family.W.shape[0]
            family.write(unit, coefficients(norms, unit.dtype), out[:, first:last], stream)
            first = last
        out[:, first:] = 0

    def row_bytes(self, itemsize: int) -> int:
        """Count the bytes of a row in a tile.

        Several parts share the cache lines of a row, so that all its columns count.
        """
        parts = len(self.families) + (self.nodes.size > 0)
        if parts > 1 or self.axes is not None:
            return itemsize * max(self._n_columns, self.nodes.size)
        sizes = [family.rule.beta.size for family in self.families]
        return itemsize * (self.radial.dim + self.functions.size + sum(sizes)) + 8

    def _folded(self, radial: RadialFunctions, dtype: Any) -> tuple[Folded | None, list[Folded]]:
        """Return the functions of the harmonics' factors and of each family's coefficients."""
        weights, exact = self.weights, None
        if self.tree is not None and weights is not None and self.nodes.size:
            exact = Folded(radial, self.functions, lambda values: values * weights)
        return exact, [family.folded(radial, dtype) for family in self.families]


def of_harmonics(
    radial: RadialFunctions,
    functions: Integers,
    counts: Integers,
    families: Sequence[Directions] = (),
) -> Layout:
    """Lay out harmonics, with the number of each radial function, and then the families."""
    radial = radial.prepared([functions, *(family.columns for family in families)])
    counts = np.asarray(counts, dtype=np.intp)
    levels = radial.degree[functions]
    wanted = np.zeros(int(levels.max(initial=0)) + 1, dtype=int)
    np.maximum.at(wanted, levels, counts)
    tree = HarmonicTree(radial.dim, wanted)
    nodes = [tree.nodes(level, count) for level, count in zip(levels, counts, strict=True)]
    return Layout(
        radial,
        with_horner(radial, families),
        functions,
        counts,
        tree,
        np.concatenate([*nodes, _no_columns()]),
        np.repeat(np.arange(len(counts)), counts).astype(np.intp),
        np.exp(-0.5 * log_alpha(levels, radial.dim)),
    )


def of_directions(radial: RadialFunctions, W: Doubles, order: int) -> Layout:
    """Lay out `order` families of these directions, one for each index of radial functions."""
    groups = [np.flatnonzero(radial.index == i) for i in range(order)]
    radial = radial.prepared(groups)
    families = [
        Directions(radial.dim, radial.degree[group], group, W, np.ones(group.size))
        for group in groups
    ]
    return Layout(radial, with_horner(radial, families))


def with_horner(radial: RadialFunctions, families: Sequence[Directions]) -> tuple[Directions, ...]:
    """Return the families, with Horner's rule where it is accurate enough over the shell."""
    sample = np.linspace(*radial.shell, num=17)
    return tuple(family.with_horner(radial(sample, family.columns)) for family in families)


def degrees_to_fill(width: int, dim: int) -> Integers:
    """Return the numbers of harmonics of degree 0, 1, ... that fill `width` columns."""
    counts: list[int] = []
    while sum(counts) < width and exact_alpha(len(counts), dim):
        counts.append(min(exact_alpha(len(counts), dim), width - sum(counts)))
    return np.array(counts, dtype=np.intp)


def n_columns(basis: Basis, width: int) -> int:
    """Count the exact columns among which a basis chooses."""
    return CHOICE * WIDER * width if basis == "adapted" else width


# ---- the choice


def _unit(energy: Doubles) -> float:
    """Return the power of 2 near k(x, x): squares of energies over it don't overflow."""
    total = float(energy.sum())
    return 2.0 ** min(round(math.log2(total)), 1023) if 0 < total < math.inf else 1.0


# Degrees, radial functions, directions and signs of random columns. Those of the best option become
# `Directions`, which are slow to make.
_Family: TypeAlias = tuple[Integers, Integers, Doubles, Doubles]


class _Option(NamedTuple):
    """A choice of columns with its predicted errors, in shares of `_unit`."""

    error: float  # mean squared error of a kernel matrix of _JUDGED points
    spread: float  # mean squared error over pairs of points
    functions: Integers
    counts: Integers
    families: Sequence[_Family] = ()


def choose(
    radial: RadialFunctions,
    width: int,
    basis: Basis,
    directions: PointSet | Literal["auto"],
    tol: float,
    seeds: np.random.SeedSequence,
) -> tuple[Layout, float]:
    """Choose the exact radial functions, the random ones, and their directions.

    `radial` and the layout have `n_columns(basis, width)` columns; for basis="adapted" these are
    compressed to `width` later. Parts below `tol` are left out, and harmonics with an error below
    it are enough. Family i draws its directions from child i of the seeds. Also return the
    predicted root mean square error over random pairs.
    """
    dim, unit = radial.dim, _unit(radial.energy)
    method = best_method(dim) if directions == "auto" else directions
    sizes = unchecked_alpha(radial.degree, dim)
    energy = radial.energy / unit
    order = np.argsort(-energy / sizes, kind="stable")  # mean squares of one harmonic column
    blocks = _Blocks(sizes[order], energy[order])

    # Options are compared by the mean squared errors over pairs, and on the diagonal, where
    # truncation adds a bias and random columns a variance.
    def harmonic(columns: int) -> _Option:
        """Return the strongest columns, all exact."""
        counts, spread, missing = blocks.harmonic(columns)
        return _Option(spread + missing / _JUDGED, spread, order[: counts.size], counts)

    def mixed(n_blocks: int) -> _Option:
        """Return the strongest blocks, exact, and random columns for the rest."""
        counts = blocks.sizes[:n_blocks].astype(int)
        left = width - int(counts.sum())
        rest = order[n_blocks:]
        families, spread, diagonal = _draw(radial, rest, peaks(), left, method, tol, seeds)
        return _Option(spread + diagonal / _JUDGED, spread, order[:n_blocks], counts, families)

    @functools.cache
    def peaks() -> Doubles:
        """Return the functions' largest squares over the shell, over the largest k(x, x)."""
        squares = np.square(radial.exact(np.linspace(*radial.shell, num=_PEAK_NORMS)))
        largest: Doubles = squares.max(axis=0) / max(squares.sum(axis=1).max(), 1e-300)
        return largest

    options = []
    if basis in ("auto", "harmonic", "adapted"):
        options.append(harmonic(n_columns(basis, width)))
    # On the line, and if nothing is missing, random columns add nothing.
    exact = options and (dim == 1 or options[0].error <= tol**2)
    if basis == "random" or (basis == "auto" and not exact):
        options.append(mixed(0))
    if basis == "hybrid" or (basis == "auto" and not exact):
        options += [mixed(n_blocks) for n_blocks in blocks.choices(width)]
    best = min(options, key=lambda option: option.error)
    families = [Directions(dim, *family) for family in best.families]
    layout = of_harmonics(radial, best.functions, best.counts, families)
    return layout, unit * math.sqrt(best.spread)


class _Blocks:
    """Blocks (one radial function times all harmonics of its degree), strongest columns first."""

    def __init__(self, sizes: Doubles, energy: Doubles) -> None:
        self.sizes, self.energy, self.density = sizes, energy, energy / sizes
        self.full = np.cumsum(sizes)

    def harmonic(self, width: int) -> tuple[Integers, float, float]:
        """Return the counts of the `width` strongest columns, and the mean squared errors.

        The errors are those over pairs, and on the diagonal.
        """
        before = np.concatenate([[0.0], self.full[:-1]])
        n_blocks = int(np.searchsorted(before, width))
        counts = np.minimum(self.sizes[:n_blocks], width - before[:n_blocks])
        exact = 0 * self.energy
        exact[:n_blocks] = counts
        dropped = self.energy * (1.0 - exact / self.sizes)  # sizes may be inf
        return counts.astype(int), float(self.density @ dropped), float(dropped.sum()) ** 2

    def choices(self, width: int) -> list[int]:
        """Return the numbers of exact blocks to try, from few to all that leave room for more."""
        fits = int(np.searchsorted(self.full, width))
        return sorted({round(fits * share) for share in np.linspace(0, 1, 11)[1:]} - {0}) or [0]


def _draw(
    radial: RadialFunctions,
    functions: Integers,
    peaks: Doubles,
    width: int,
    method: PointSet,
    tol: float,
    seeds: np.random.SeedSequence,
) -> tuple[list[_Family], float, float]:
    """Return random columns for some radial functions, with their mean squared errors.

    The errors are those over random pairs, and on the diagonal, in shares of `_unit`. Functions
    with the same index form a family, whose number of directions is proportional to its energy, at
    least one. Families below tol are left out, and so are the highest degrees of the others.
    """
    dim, index = radial.dim, radial.index[functions]
    shares = radial.energy / _unit(radial.energy)
    energy = np.bincount(index, shares[functions]).astype(np.float64)
    present = np.flatnonzero(energy > tol * shares.sum())
    present = present[np.argsort(-energy[present], kind="stable")][:width]
    if present.size == 0:
        return [], 0.0, 0.0
    families, spread, diagonal = [], float(np.square(np.delete(energy, present)).sum()), 0.0
    for i, m in zip(present, _apportion(energy[present], width), strict=True):
        columns = functions[index == i]
        columns = columns[np.argsort(radial.degree[columns])]
        columns = columns[: _needed(peaks[columns], tol)]
        rng = np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, int(i)))
        W = drawn_directions(int(m), dim, method, rng)
        degrees = radial.degree[columns]
        signs = _SIGNS[degrees % 4]
        families.append((degrees, columns, W, signs))
        if energy[i] > 1e-3 * energy.sum():
            here = shares[columns]
            spread += _spread(W, degrees, here)
            diagonal += _scatter(dim, degrees, signs * np.sqrt(here)) / m
        else:
            spread += energy[i] ** 2 / m
    return families, spread, diagonal


def _needed(peaks: Doubles, most: float) -> int:
    """Count the first degrees, at least one, without which `most` of a kernel value is missing."""
    missing = np.cumsum(peaks[::-1])[::-1]  # without this degree and the higher ones
    return max(1, int(np.count_nonzero(missing > most)))


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
    """Return the mean squared error of a family over random pairs, given its directions.

    The mean of (z.z' - k)^2 over random x and y is the mean of E(<w, w'>)^2 over pairs of
    directions, E(t) = sum_l energy_l P_d^l(t), less the part of the kernel itself.
    """
    dim = W.shape[1]
    row = np.zeros((1, int(degrees.max()) + 1))
    row[0, degrees] = energy
    pairs = summed_features(W[:_PROBE], W, row)
    exact = float(np.square(energy) @ np.exp(-log_alpha(degrees, dim)))
    return max(float(np.mean(np.square(pairs))) - exact, 0.0)


def _scatter(dim: int, degrees: Integers, radial: Doubles) -> float:
    """Return the variance of phi(w)^2 over directions, which the signs make small.

    phi = sum_l radial_l sqrt(alpha) P_d^l(t) is a random column times sqrt(m). The variance, by
    quadrature over t, is inf if it is beyond the largest float.
    """
    if dim == 1:
        return 0.0
    theta, weights = angles(2 * int(degrees.max()) + 64, dim)
    weights = weights / weights.sum()
    coefficients = np.zeros(int(degrees.max()) + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        coefficients[degrees] = radial * np.exp(0.5 * log_alpha(degrees, dim))
        if not np.isfinite(coefficients).all():
            return math.inf
        squares = np.square(summed_zonal(coefficients, dim, np.cos(theta)))
        variance = float(weights @ np.square(squares) - (weights @ squares) ** 2)
    return max(variance, 0.0) if math.isfinite(variance) else math.inf


# ---- adapted to the data


def adapted(layout: Layout, X: Rows, width: int, polar: Polar, rng: np.random.Generator) -> Layout:
    """Choose exact columns by their mean squares on the data, and compress them to `width`."""
    if layout.radial.dim <= _MOST_ROTATED:
        layout = replace(layout, rotation=_long_axis_last(X, polar))
    most = WIDER * width
    if layout.nodes.size > most:
        fill = _filler(layout, polar)
        chosen = strongest_columns(fill, X, layout.nodes.size, most, rng)
        layout = replace(layout, nodes=layout.nodes[chosen], ring=layout.ring[chosen])
    n_wide = layout.nodes.size
    strongest = principal_axes(_filler(layout, polar), X, n_wide, width, rng)
    axes = np.zeros((n_wide, width))
    axes[:, : strongest.shape[1]] = strongest
    return replace(layout, axes=axes)


def _filler(layout: Layout, polar: Polar) -> Callable[[Rows], Doubles]:
    """Return the function from rows to their exact columns, in double."""

    def fill(rows: Rows) -> Doubles:
        unit, norms = polar(rows)
        wide = np.empty((rows.shape[0], layout.nodes.size), dtype=unit.dtype)
        layout.fill_columns(unit, norms, wide, False)
        return wide.astype(np.float64, copy=False)

    return fill


def _long_axis_last(X: Rows, polar: Polar) -> Doubles:
    """Return the rotation of the data to their principal axes, the longest one last.

    The first harmonics of each degree depend on the last coordinate only, so that few columns
    represent long thin clouds.
    """
    unit, norms = polar(X[:: max(1, X.shape[0] // _ROWS_FOR_AXES)])
    points = unit * norms[:, None]
    return np.asarray(np.linalg.eigh(points.T @ points)[1])
