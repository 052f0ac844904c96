"""Products of kernel matrices in linear time: places on the sphere, and in one to three columns.

The kernel is cut into k_far + k_near (`split`). k_far is a short series: of harmonics on the
sphere, else of exponentials in a periodic box. Sums of these at scattered points, and back, cost
O(n). Of k_near, tiles of 256 rows compute what is not 0. Nothing is approximated but k_far, up to
`tol`.

Where the kernel is cut is chosen by predicted cost. Tiles do it all where they cost less: with few
rows, many columns, or kernels that are no functions of one distance.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.fft import dctn, next_fast_len

from gzkcore._compiled import neighbours as _neighbours
from gzkcore._compiled import products as _products
from gzkcore._compiled.dispatch import ISA
from gzkcore._util.nonuniform import Complexes, Exponentials, evened, has_finufft
from gzkcore._util.threads import n_threads, on_threads
from gzkcore._util.typing import Doubles, Integers
from gzkcore.sphere.transforms import HarmonicSums, angles_of, zonal_coefficients

from .base import Kernel
from .split import MOST_COLUMNS, Distance, KernelSplit, NoSplitError, distances_of, radius_of
from .tile_form import DIFFERENCE, EXPONENTIAL, TABLE, Factor, Term
from .tile_matrix import DOUBLE, FactorArrays, multiply, without_offsets
from .tile_rows import FAR, LEAST_WINDOW, TiledRows, tile_order
from .transformed import Transformed, unmapped

__all__ = ["Box", "FastSums", "cosine_coefficients"]

# The highest degree of harmonics, and the largest number of frequencies.
MOST_DEGREE, MOST_NUMBERS = 2048, 1 << 25
# A kernel is sampled at so many distances along a line to find where its series may end.
SAMPLES = 1 << 14
# Smaller tolerances are left to tiles.
LEAST_TOL = 1e-12
# Shares of tol for the rest of a series and for transforms; near values have what remains.
SERIES, DIGITS = 0.5, 0.25
# The largest relative error of transforms.
MOST_DIGITS = 1e-2
# A kernel that does not end within the rows fades to 0 at so many of their diameters.
FADE = 2.0

TILE: int = _products.tile_rows()
LEAF = TILE // 32  # Rows are halved until so many are left.

# ---- series


def cosine_coefficients(values: Doubles) -> Doubles:
    """Return a_k of sum_k a_k cos(k t) through values at t = 0, ..., pi along every axis."""
    cosines = dctn(values, type=1)
    for axis, size in enumerate(values.shape):
        cosines /= size - 1
        for end in (0, -1):
            cosines[(slice(None),) * axis + (end,)] /= 2
    return np.asarray(cosines)


def n_terms(cosines: Doubles, tol: float) -> int:
    """Return the number of cosines after which the rest adds up to at most tol."""
    rest = np.cumsum(np.abs(cosines[::-1]))[::-1]
    within = np.flatnonzero(rest <= tol)
    return int(within[0]) if within.size else len(cosines)


def periodic_weights(
    on_grid: Callable[[list[Doubles]], Doubles], sides: Sequence[float], size: Sequence[int]
) -> Doubles:
    """Return the Fourier coefficients of a function in a periodic box, even along every axis.

    `size` has the highest frequency along each axis; the order is that of FFTs. `on_grid` returns
    the function on the grid with these points along each axis.
    """
    counts = [next_fast_len(2 * most) for most in size]  # half of the points along each axis
    axes = [
        side / 2 * np.arange(count + 1) / count for side, count in zip(sides, counts, strict=True)
    ]
    weights = cosine_coefficients(on_grid(axes))
    for axis, most in enumerate(size):
        weights = np.moveaxis(weights, axis, 0)
        weights[1:] /= 2
        weights = np.moveaxis(np.concatenate([weights[: most + 1], weights[most:0:-1]]), 0, axis)
    return np.ascontiguousarray(weights)


class Transform(Protocol):
    """Sums of functions at points, and their adjoint."""

    def synthesis(self, coefficients: Complexes, n_threads: int = 1) -> Complexes:
        """Return the sum of coefficients times functions at every point."""

    def adjoint(self, values: Complexes, n_threads: int = 1) -> Complexes:
        """Return the sum of values times conjugate functions over all points."""


def digits_of(profile: Callable[[Doubles], Doubles], tol: float) -> float:
    """Return the relative error of transforms by which sums of a kernel stay within tol."""
    largest = abs(float(profile(np.zeros(1))[0]))
    return DIGITS * tol / largest if DIGITS * tol < MOST_DIGITS * largest else MOST_DIGITS


def farthest(r: Doubles, values: Doubles, tol: float) -> float:
    """Return the distance from which on a kernel with these values is negligible."""
    large = np.flatnonzero(np.abs(values) > tol / SAMPLES)
    return float(r[min(large[-1] + 1, len(r) - 1)]) if large.size else 0.0


class Sphere:
    """Zonal kernels of rows of one norm: a series of harmonics."""

    def __init__(self, distance: Distance, radius: float, tol: float) -> None:
        self.distance, self.radius, self.tol = distance, radius, tol
        self.reach = 2 * radius
        r, values = self._samples
        self.reach_of_tiles = farthest(r, values, tol)
        self.digits = digits_of(self.profile, tol)

    def profile(self, r: Doubles) -> Doubles:
        """Return the kernel at a distance through the sphere."""
        half = np.minimum(r.ravel() / self.reach, 1.0)
        sines, cosines = 2 * half * np.sqrt(1 - half**2), 1 - 2 * half**2
        rows = self.radius * np.stack([sines, np.zeros_like(sines), cosines], axis=1)
        return self.distance.values(rows, np.array([0.0, 0.0, self.radius])).reshape(r.shape)

    def size(self, split: KernelSplit) -> tuple[int, ...]:
        """Return the degree that k_far needs."""
        degree = n_terms(self._cosines(split), SERIES * self.tol)
        if degree > MOST_DEGREE:
            raise NoSplitError
        return (degree,)

    @functools.cached_property
    def _samples(self) -> tuple[Doubles, Doubles]:
        """Distances of evenly spaced angles, and the kernel there."""
        angles = np.pi * np.arange(SAMPLES + 1) / SAMPLES
        r = 2 * self.radius * np.sin(angles / 2)
        return r, self.profile(r)

    def _cosines(self, split: KernelSplit) -> Doubles:
        return cosine_coefficients(split.far(*self._samples))

    def weights(self, split: KernelSplit, size: tuple[int, ...]) -> Doubles:
        """Return the factors of the coefficients."""
        return zonal_coefficients(self._cosines(split)[: size[0] + 1])[:, None]

    def transform(self, rows: Doubles, size: tuple[int, ...]) -> Transform:
        """Return the transform of rows."""
        return HarmonicSums(angles_of(rows), size[0], self.digits)

    @staticmethod
    def fixed_cost(size: tuple[int, ...]) -> float:
        """Return the nanoseconds of both directions, without those for each point."""
        (degree,) = size
        return 2 * (LEGENDRE * degree**3 + fft_cost([2 * degree + 1] * 2))

    point_cost = property(lambda self: 2 * spread_cost(2, self.digits))


class Box:
    """Kernels of a distance in one to three columns: exponentials in a periodic box.

    If the kernel is negligible beyond some distance, the box is longer than the rows by that. Else
    the kernel fades to 0 between the largest distance of rows and FADE times that.
    """

    def __init__(self, distance: Distance, X: Doubles, Y: Doubles, tol: float) -> None:
        low = np.minimum(X.min(axis=0), Y.min(axis=0))
        extents = np.maximum(X.max(axis=0), Y.max(axis=0)) - low
        self.low, self.tol, self.distance = low, tol, distance
        diameter = float(np.linalg.norm(extents))
        if diameter == 0:
            raise NoSplitError
        self.fade = diameter, FADE * diameter
        r = np.linspace(0, self.fade[1], SAMPLES)
        self.reach = self.reach_of_tiles = farthest(r, distance.profile(r), tol)
        self.fades = self.reach >= diameter
        if self.fades:
            self.reach = self.fade[1]
            self.sides = np.full(len(extents), 2 * self.fade[1])
        else:
            self.sides = extents + self.reach
        self.digits = digits_of(self.profile, tol)

    def profile(self, r: Doubles) -> Doubles:
        """Return the kernel at a distance in the box."""
        return self._faded(r, self.distance.profile(np.minimum(r, self.fade[1])))

    def _faded(self, r: Doubles, values: Doubles) -> Doubles:
        """Multiply by a smooth function that falls from 1 to 0 where the kernel fades."""
        if not self.fades:
            return values
        t = np.clip((r - self.fade[0]) / (self.fade[1] - self.fade[0]), 0.0, 1.0)
        with np.errstate(divide="ignore", over="ignore"):
            up, down = np.exp(-1 / t), np.exp(-1 / (1 - t))
        return np.asarray(values * (down / (up + down)))

    @functools.cached_property
    def _samples(self) -> list[tuple[Doubles, Doubles]]:
        """Distances along each axis, and the kernel there."""
        distances = [side / 2 * np.arange(SAMPLES + 1) / SAMPLES for side in self.sides]
        return [(r, self.profile(r)) for r in distances]

    def size(self, split: KernelSplit) -> tuple[int, ...]:
        """Return the highest frequency that k_far needs along each axis."""
        tol = SERIES * self.tol / len(self.sides)
        size = [n_terms(cosine_coefficients(split.far(*sample)), tol) for sample in self._samples]
        if math.prod(2 * most + 1 for most in size) > MOST_NUMBERS or max(size) > SAMPLES // 2:
            raise NoSplitError
        return tuple(max(most, 1) for most in size)

    def weights(self, split: KernelSplit, size: tuple[int, ...]) -> Doubles:
        """Return the factors of the coefficients of exponentials."""

        def on_grid(axes: list[Doubles]) -> Doubles:
            return split.far(self._lengths(axes), self.on_grid(axes))

        return periodic_weights(on_grid, self.sides.tolist(), size)

    def on_grid(self, axes: Sequence[Doubles]) -> Doubles:
        """Return the kernel at the nodes of a grid of differences."""
        return self._faded(self._lengths(axes), self.distance.on_grid(list(axes)))

    @staticmethod
    def _lengths(axes: Sequence[Doubles]) -> Doubles:
        return np.asarray(np.sqrt(functools.reduce(np.add.outer, [t * t for t in axes])))

    def transform(self, rows: Doubles, size: tuple[int, ...]) -> Transform:
        """Return the transform of rows."""
        angles = 2 * np.pi * (rows - self.low) / self.sides
        return Exponentials(angles.T, [2 * most + 1 for most in size], self.digits)

    @staticmethod
    def fixed_cost(size: tuple[int, ...]) -> float:
        """Return the nanoseconds of both directions, without those for each point."""
        return 2 * fft_cost([2 * most + 1 for most in size])

    point_cost = property(lambda self: 2 * spread_cost(len(self.sides), self.digits))


# ---- cost, in nanoseconds of a thread

# A kernel value in tiles times a vector, in single precision with AVX-512: a root and a power, or a
# power alone, or a table; what each 16 of several vectors add; and the factors for double precision
# and for other instruction sets. Of 8,192 rows in two and three columns, on an Intel processor.
ROOT_VALUE, POWER_VALUE, TABLE_VALUE, PANEL, DOUBLED = 0.29, 0.18, 1.45, 0.5, 2.5
SLOWER = {"v4": 1.0, "v3": 1.7}
MOST_SLOW = 3.0
# Parts of tiles that are skipped have radii of this share of those of the tiles.
PARTS = 0.35
# Legendre functions cost this for each degree cubed.
LEGENDRE = 0.4
# A split and its transforms cost so much, and so much a row (AMD EPYC); a fit has FIT products.
SETUP, SETUP_ROW, FIT = 4e7, 1000, 10
# From so many rows on, a product is expected to take time linear in the rows.
EXPECTED_ROWS = 1 << 16
# No split is looked for if the kernel matrix has fewer values.
LEAST_VALUES = 1 << 28


def fft_cost(shape: Sequence[int]) -> float:
    """Return the cost of an FFT of twice as many numbers along each axis."""
    numbers: int = math.prod(2 * count for count in shape)
    return 0.8 * numbers * math.log2(numbers)


def spread_cost(dim: int, tol: float) -> float:
    """Return the cost of a nonuniform FFT for each point."""
    return 20 + float(2 + math.ceil(-math.log10(tol))) ** dim * (0.6 if dim == 3 else 1.0)


def value_cost(form: Sequence[Term], n_vectors: int = 1) -> float:
    """Return the cost of a value of a kernel of this form in tiles, times so many vectors."""
    panels = 0 if n_vectors == 1 else -(-n_vectors // 16)
    of_factors = sum(
        {EXPONENTIAL: POWER_VALUE, TABLE: TABLE_VALUE}.get(factor.profile, ROOT_VALUE)
        for term in form
        for factor in term.factors
    )
    return SLOWER.get(ISA, MOST_SLOW) * (of_factors + PANEL * panels * len(form))


class TileCount:
    """The number of kernel values that tiles compute, estimated from some of the tiles."""

    def __init__(self, rows: TiledRows, columns: TiledRows, symmetric: bool) -> None:
        count = len(rows.rows)
        some = np.unique(np.linspace(0, count - 1, min(count, 64)).astype(np.intp))
        apart = rows.centers[some, None] - columns.centers
        self._apart = np.sqrt(np.einsum("ijk,ijk->ij", apart, apart))
        self._radii = rows.radii[some] + columns.radii[:, 0]
        values = float(rows.rows.shape[2]) ** 2 * count / some.size
        self._values = values / 2 if symmetric else values

    def up_to(self, e: float, compact: bool = False) -> float:
        """Return the number of values up to a distance; if compact, parts of tiles are skipped."""
        radii = PARTS * self._radii if compact else self._radii
        return self._values * int((self._apart - radii <= e).sum())


# ---- the product


@dataclass(frozen=True)
class DistanceProduct:
    """The near and the far product of a kernel of one distance."""

    space: "Sphere | Box"
    near: FactorArrays | None
    rows: TiledRows
    columns: TiledRows
    weights: Doubles
    at_rows: Transform
    at_columns: Transform

    def far(self, v: Complexes, threads: int) -> Complexes:
        """Return K_far v."""
        return self.at_rows.synthesis(self.weights * self.at_columns.adjoint(v, threads), threads)


class FastSums:
    """K(X, Y) V in linear time, like `KernelOperator`.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X, Y : ndarray of shape (n, dim) and (m, dim)
        Y=None means X.
    tol : float
        The error of a kernel value, relative to k(x, x).
    n_vectors : int, default=1
        How many are expected to be multiplied at once.

    Notes
    -----
    A product of two vectors costs one transform in each direction (see `HarmonicSums`,
    `Exponentials`), and for each row some tiles of 256 others. Memory: the rows twice, and the
    coefficients of a transform for each thread.
    """

    def __init__(
        self, kernel: Kernel, X: Doubles, Y: Doubles | None, tol: float, n_vectors: int = 1
    ) -> None:
        dim = X.shape[1]
        largest = float(np.abs(kernel.diag(X[:1])).max())
        if not (has_finufft() and 0 < largest < math.inf and tol >= LEAST_TOL):
            raise NoSplitError
        form = kernel.tile_form(dim)
        if not form:
            raise NoSplitError
        self.radius = radius_of(form, X, X if Y is None else Y)
        if self.radius is None:
            distances = distances_of(form, dim)
            X, Y = without_offsets(X, Y)
        else:
            distances = [Distance((0, 1, 2), (1.0, 1.0, 1.0), form)]
        self.shape, self.symmetric = (len(X), len(X if Y is None else Y)), Y is None
        self.n_vectors, self.cost, self.cost_of_tiles = n_vectors, 0.0, 0.0
        orders = [_order(rows, distances[0]) for rows in ([X] if Y is None else [X, Y])]
        self.order, self._columns = orders[0], orders[-1]
        rows = X[orders[0]]
        columns = rows if Y is None else Y[orders[1]]
        of_each = tol * largest / len(distances)
        self.parts = [self._part(distance, rows, columns, of_each) for distance in distances]

    @classmethod
    def of(
        cls, kernel: Kernel, X: Doubles, Y: Doubles | None, tol: float, n_vectors: int = 1,
        n_products: int = 1,
    ) -> "FastSums | None":  # fmt: skip
        """Return None where so many products by tiles cost less, or are the only form."""
        if not worth_a_look(kernel, X, Y):
            return None
        kernel, X, Y = unmapped(kernel, X, Y)
        n, m = len(X), len(X if Y is None else Y)
        setup = (SETUP + SETUP_ROW * (n if Y is None else n + m)) / n_products
        values = n * m / (2 if Y is None else 1)
        if value_cost(kernel.tile_form(X.shape[1]) or (), n_vectors) * values < setup:
            return None
        try:
            sums = cls(kernel, X, Y, tol, n_vectors)
        except NoSplitError:
            return None
        return sums if sums.cost + setup < sums.cost_of_tiles else None

    @staticmethod
    def cost_by_tiles(n_rows: int) -> float:
        """Return the nanoseconds of a product with K of n_rows rows by tiles, none skipped."""
        return ROOT_VALUE * SLOWER.get(ISA, MOST_SLOW) * n_rows**2 / 2

    @staticmethod
    def expected_cost(kernel: Kernel, X: Doubles, n_rows: int, tol: float) -> float:
        """Return the nanoseconds of a product with K of n_rows rows, of which X has some."""
        of_tiles = FastSums.cost_by_tiles(n_rows)
        kernel, X, _ = unmapped(kernel, X, None)
        rows = X[np.resize(np.arange(len(X)), min(n_rows, EXPECTED_ROWS))]
        if n_rows**2 < LEAST_VALUES or X.shape[1] > MOST_COLUMNS:
            return of_tiles
        try:
            cost = FastSums(kernel, rows, None, tol).cost
        except NoSplitError:
            return of_tiles
        return min(of_tiles, (cost + SETUP / FIT) * n_rows / len(rows))

    def _part(self, distance: Distance, X: Doubles, Y: Doubles, tol: float) -> DistanceProduct:
        rows = distance.rows(X)
        columns = rows if self.symmetric else distance.rows(Y)
        space: Sphere | Box
        if self.radius is None:
            space = Box(distance, rows, columns, tol)
        else:
            space = Sphere(distance, self.radius, tol)
        plain = Term((Factor(1.0, DIFFERENCE, TABLE),))
        tiles = self._tiles(rows, columns, plain, np.float32)
        n_values = TileCount(*tiles, self.symmetric)
        of_tiles = value_cost(distance.terms, self.n_vectors)
        self.cost_of_tiles += of_tiles * n_values.up_to(space.reach_of_tiles)
        points = (len(rows) + len(columns)) / 2 * space.point_cost
        radius = float(max(side.radii.max() for side in tiles))

        def cost(split: KernelSplit) -> tuple[float, tuple[int, ...]]:
            size = space.size(split)
            far = (self.n_vectors + 1) // 2 * (space.fixed_cost(size) + points)
            if not split.e:
                return far, size
            compact = split.compact is not None
            value = value_cost([Term((split.factor(),))], self.n_vectors)
            factor = DOUBLED if split.dtype(radius) == DOUBLE else 1.0
            return far + factor * value * n_values.up_to(split.e, compact), size

        least_cost, split, size = cheapest(space, tiles[0], cost)
        self.cost += least_cost
        near = None
        if split.e:
            factor, dtype = split.factor(), split.dtype(radius)
            term = Term((factor,))
            reach = split.e * float(factor.scale)
            near = FactorArrays.of(term.factors, rows.shape[1], dtype, [reach])
            if near is None:
                raise NoSplitError
            tiles = self._tiles(rows, columns, term, dtype)
        at_rows = space.transform(rows, size)
        at_columns = at_rows if self.symmetric else space.transform(columns, size)
        return DistanceProduct(space, near, *tiles, space.weights(split, size), at_rows, at_columns)

    def _tiles(
        self, rows: Doubles, columns: Doubles, term: Term, dtype: Any
    ) -> tuple[TiledRows, TiledRows]:
        tiles = TiledRows.of(rows, term, dtype, in_order=True)
        return tiles, tiles if self.symmetric else TiledRows.of(columns, term, dtype, in_order=True)

    def times(self, V: Doubles) -> Doubles:
        """Return K V for finite real vectors, (n_columns, n_vectors), which nothing checks."""
        sums = np.zeros((self.shape[0], V.shape[1]))
        V, power = evened(V[self._columns])
        for part in self.parts:
            if part.near is not None:
                product, _ = multiply(part.near, part.rows, part.columns, V, self.symmetric)
                sums += part.rows.take(product)
            self._add_far(part, V, sums)
        out = np.empty_like(sums)
        out[self.order] = np.ldexp(sums, power)
        return out

    def _add_far(self, part: DistanceProduct, V: Doubles, out: Doubles) -> None:
        """Add K_far V to out; two vectors are the real and the imaginary part of one."""

        def add(two: slice, threads: int) -> None:
            v = np.zeros((len(V), 2))
            v[:, : two.stop - two.start] = V[:, two]
            product = part.far(v.view(np.complex128)[:, 0], threads)
            out[:, two] += product.view(np.float64).reshape(-1, 2)[:, : two.stop - two.start]

        by_pairs(add, V.shape[1])


def by_pairs(work: Callable[[slice, int], None], count: int) -> None:
    """Call work(columns, threads) for each two of `count` columns, and for an odd last one."""
    pairs = [slice(i, min(i + 2, count)) for i in range(0, count, 2)]
    most = n_threads()
    if len(pairs) < most:
        for pair in pairs:
            work(pair, most)
        return

    def run(thread: int, stopped: Callable[[], bool]) -> None:
        for pair in pairs[thread::most]:
            if not stopped():
                work(pair, 1)

    on_threads(run, most)


def worth_a_look(kernel: Kernel, X: Doubles, Y: Doubles | None) -> bool:
    """Say whether sums in linear time may cost less than tiles."""
    few = len(X) * len(X if Y is None else Y) < LEAST_VALUES
    few_columns = isinstance(kernel, Transformed) or X.shape[1] <= MOST_COLUMNS
    return not few and few_columns and has_finufft()


def _order(X: Doubles, distance: Distance) -> Integers:
    """Return the rows in the order of tiles; within each, halves of halves are near each other."""
    rows = distance.rows(X)
    low, n = rows.min(axis=0), len(X)
    if (rows.max(axis=0) - low <= LEAST_WINDOW * FAR[DOUBLE]).all():  # no row is far out
        levels = max(0, math.ceil(math.log2(n / LEAF)))
        places: Any = np.arange(LEAF << levels, dtype=np.int32)  # numbers from n on are no rows
        _neighbours.tree_order(
            (rows - low).astype(np.float32), np.empty(0, np.float32), levels, places,
            np.empty(places.size, np.float32), n_threads(),
        )  # fmt: skip
        return np.asarray(places[places < n], np.intp)
    order = tile_order(rows, TILE, LEAST_WINDOW * FAR[DOUBLE])
    order = order[np.flatnonzero(np.diff(order, prepend=-1))]  # without repeated rows
    whole = order[: len(order) // TILE * TILE]
    for size in (TILE, TILE // 2, TILE // 4, TILE // 8, TILE // 16):
        parts = whole.reshape(-1, size)
        values = rows[parts]
        widest = np.argmax(np.ptp(values, axis=1), axis=1)
        keys = np.take_along_axis(values, widest[:, None, None], axis=2)[:, :, 0]
        halves = np.argpartition(keys, size // 2 - 1, axis=1)
        whole[:] = np.take_along_axis(parts, halves, axis=1).ravel()
    return order


def cheapest(
    space: "Sphere | Box",
    tiles: TiledRows,
    cost: Callable[[KernelSplit], tuple[float, tuple[int, ...]]],
) -> tuple[float, KernelSplit, tuple[int, ...]]:
    """Return the cheapest split, with its cost and the size of its series; raise if none is."""
    typical = float(np.median(tiles.radii)) or space.reach / 8
    candidates: list[tuple[float, KernelSplit, tuple[int, ...]]] = []
    for e in (0.0, *(typical * 2.0 ** (power / 2) for power in range(-5, 9))):
        if e >= space.reach:
            break
        split = KernelSplit.at(space.profile, e, space.tol)
        with contextlib.suppress(NoSplitError):
            least, size = cost(split)
            candidates.append((least, split, size))
    if not candidates:
        raise NoSplitError
    return min(candidates, key=lambda candidate: candidate[0])
