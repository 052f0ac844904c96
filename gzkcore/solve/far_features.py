"""Features Z of places that take no memory for rows: a kernel's lowest harmonics or frequencies.

On the sphere, and in a periodic box, a kernel is a series (`kernels/fast_sums.py`). Its first
functions times the roots of their weights are features. Z V and Z^T V are one transform for two
columns. The Gram matrix takes one more: a product of two functions up to degree L is a sum of those
up to 2 L, so that the sums of these over the rows give all its entries. They are also the sums over
weighted nodes of a grid, with which conjugate gradients solve for thousands of functions by FFTs.
"""

import copy
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from gzkcore._compiled import legendre as _legendre
from gzkcore._util.nonuniform import Complexes, Exponentials, GridExponentials, evened, paired
from gzkcore._util.threads import limit_blas, n_threads
from gzkcore._util.typing import Doubles, Integers
from gzkcore.kernels.fast_sums import (
    SAMPLES,
    Box,
    FastSums,
    Sphere,
    by_pairs,
    periodic_weights,
    spread_cost,
)
from gzkcore.kernels.split import KernelSplit
from gzkcore.sphere.transforms import HarmonicSums, on_rings

from .preconditioner import Preconditioner, factor_of
from .solve import OfColumns, Solution, conjugate_gradients

__all__ = ["Frequencies", "Harmonics"]

ROOT_2 = math.sqrt(2)
BLOCK = 256  # So many rows of a Gram matrix are looked up at a time.
MOST_FUNCTIONS = 1 << 17  # There are at most so many features, and half as many as rows.
LOWEST = 2500  # The system of so many functions of the lowest frequencies is factored.
# The density of the rows is estimated from so many of them, by so many cells.
COUNTED_ROWS, CELLS = 1 << 16, 1 << 13
# Nanoseconds of a thread for a multiply-add of a factor, and of its triangles for a vector.
FACTOR_COST, SOLVE_COST = 0.02, 0.8
# A residual of 1e-3 takes so many steps for each unit of the root of the condition number, each of
# them so many on nodes where rows lie evenly: 8 to 12 on the sphere, 22 in the plane.
STEPS, NODE_STEPS, MOST_NODE_STEPS = 3.0, 10, 1000
# The relative error of a transform is this share of alpha over the largest eigenvalue, within
# these bounds; that of systems on nodes NODE_DIGITS times as much. At 10^6 rows on the sphere with
# 16,641 functions 10 and 100 times took 5 and 6 steps, 1,000 times 16.
DIGITS, LEAST_DIGITS, MOST_DIGITS, NODE_DIGITS = 1e-2, 1e-13, 1e-6, 5.0
# The grid of the weights is so many times as fine as the frequencies.
FINER = 2
# A box is longer than the rows by the distance at which the kernel falls to this share of k(x, x).
# At 10^6 rows in the plane .005, .02 and .1 took 2, 3 and 4 steps.
MARGIN = 0.005


class FarFeatures:
    """Z (n, p), whose columns are real functions at rows, times the roots of their weights.

    First come the functions `own` that are real, then sqrt(2) times the real parts, then sqrt(2)
    times the imaginary parts of the functions `first`, of which `second` are the conjugates. All
    three are places in the coefficients of a transform, whose point j is the row order[j].

    Notes
    -----
    Either product costs a transform for each two columns. Memory: that of the transform.
    """

    nbytes = 0  # held for rows
    measure = 1.0  # the measure of all points; functions have a mean square of 1 / measure
    _square: float

    def __init__(
        self, transform: Any, coefficients: tuple[int, ...], places: Sequence[Integers],
        weights: Doubles, order: Integers,
    ) -> None:  # fmt: skip
        self.transform, self.coefficients, self.order = transform, coefficients, order
        inner = getattr(transform, "exponentials", transform)
        self.angles, self.tol, self._shape = inner.angles, inner.tol, inner.shape
        self.own, self.first, self.second = places
        of_columns = weights.take(np.concatenate([self.own, self.first, self.first]))
        self.roots = np.sqrt(np.maximum(of_columns, 0.0))
        self.shape, self.width = (len(order), len(self.roots)), len(self.roots)

    def lowest(self) -> "FarFeatures":
        """Return the `LOWEST` functions of the lowest frequencies, or all."""
        raise NotImplementedError

    def system(self, noise: Doubles, mu: Doubles) -> "OnNodes":
        """Return what solves systems with mu I + Z^T diag(1 / noise) Z."""
        return OnNodes(self, 1 / noise, mu)

    def on_nodes(self, weights: Doubles) -> tuple["FarFeatures", Doubles]:
        """Return the features of nodes, and weights with which they have the same Gram matrix.

        The weights are `node_weights` of the reference, up to twice the frequencies.
        """
        doubled, made = [2 * size - 1 for size in self._shape], copy.copy(self)
        sums = Exponentials(self.angles, doubled, self.tol).adjoint(
            weights[self.order].astype(np.complex128), n_threads()
        )
        grid = GridExponentials(doubled, [2 * size for size in self._shape])
        made.transform = self.transform.on_grid()
        made.order, made.shape = np.arange(grid.n_points), (grid.n_points, self.width)
        return made, grid.synthesis(sums, n_threads()).real / grid.n_points

    def among(self, few: "FarFeatures") -> Integers:
        """Return the columns that are those of `few` features up to a lower frequency."""
        own, first = np.split(self._up_to(few), [len(self.own)])
        return np.flatnonzero(np.concatenate([own, first, first]))

    def product(self, V: Doubles) -> Doubles:
        """Return Z V."""
        product = np.empty((self.shape[0], V.shape[1]))
        V, power = evened(V * self.roots[:, None])
        own, real, imaginary = self._parts(V)

        def add(two: slice, threads: int) -> None:
            values = np.zeros(math.prod(self.coefficients), np.complex128)
            values[self.own] = paired(own[:, two])
            cosines, sines = paired(real[:, two]) / ROOT_2, paired(imaginary[:, two]) / ROOT_2
            values[self.first], values[self.second] = cosines - 1j * sines, cosines + 1j * sines
            sums = self.transform.synthesis(values.reshape(self.coefficients), threads)
            of_two = sums.view(np.float64).reshape(-1, 2)
            product[self.order, two] = of_two[:, : two.stop - two.start]

        by_pairs(add, V.shape[1])
        return np.asarray(np.ldexp(product, power))

    def transposed_product(self, V: Doubles) -> Doubles:
        """Return Z^T V."""
        V, power = evened(V)
        product = np.empty((self.width, V.shape[1]))
        own, real, imaginary = self._parts(product)

        def add(two: slice, threads: int) -> None:
            sums = self.transform.adjoint(paired(V[self.order, two]), threads).ravel()
            first, second = sums[self.first], sums[self.second]
            for part, value in (
                (own, sums[self.own]),
                (real, (first + second) / ROOT_2),
                (imaginary, 1j * (first - second) / ROOT_2),
            ):
                part[:, two] = value.view(np.float64).reshape(-1, 2)[:, : two.stop - two.start]

        by_pairs(add, V.shape[1])
        return np.asarray(np.ldexp(product * self.roots[:, None], power))

    def weighted_gram(self, weights: Doubles) -> Doubles:
        """Return the lower triangle of Z^T diag(weights) Z, with any numbers above it."""
        with limit_blas(1):
            gram = self._gram(weights[self.order].astype(np.complex128))
        gram *= self.roots
        gram *= self.roots[:, None]
        return gram

    def squares(self) -> Doubles:
        """Return |z|^2 of every row, which is the same for all."""
        return np.full(self.shape[0], self._square)

    def _parts(self, V: Doubles) -> tuple[Doubles, Doubles, Doubles]:
        ends = len(self.own), len(self.own) + len(self.first)
        return V[: ends[0]], V[ends[0] : ends[1]], V[ends[1] :]

    def _gram(self, weights: Complexes) -> Doubles:
        """Return the lower triangle of the sums of weights times products of two functions."""
        raise NotImplementedError

    def _up_to(self, few: Any) -> NDArray[np.bool_]:
        """Say which of the functions `own` and `first` the `few` features have, too."""
        raise NotImplementedError


class Harmonics(FarFeatures):
    """Z of unit rows, Z Z^T = sum_l w_l (2 l + 1) / (4 pi) P_l(<x, y>).

    Parameters
    ----------
    angles : sequence of 2 arrays of shape (n,)
        Longitudes and colatitudes of points.
    weights : ndarray of shape (L + 1,)
        w, of which negative ones are 0.
    tol : float
        Relative error of a sum.
    order : ndarray of shape (n,)
        The row of each point.

    Notes
    -----
    p = (L + 1)^2. The Gram matrix costs 2 L p^2 multiply-adds.
    """

    measure = 4 * np.pi

    def __init__(
        self, angles: Sequence[Doubles], weights: Doubles, tol: float, order: Integers
    ) -> None:
        L = len(weights) - 1
        m, ell = np.triu_indices(L + 1)
        first = 2 * (m * (L + 1) + ell)
        places = first[m == 0], first[m > 0], first[m > 0] + 1
        shape = (L + 1, L + 1, 2)
        of_places = np.broadcast_to(weights[:, None], shape)
        super().__init__(HarmonicSums(angles, L, tol), shape, places, of_places, order)
        self.degree, self._weights = L, weights
        self._degrees = np.concatenate([ell[m == 0], ell[m > 0]])
        self._square = float((2 * np.arange(L + 1) + 1) @ np.maximum(weights, 0.0)) / (4 * np.pi)

    def lowest(self) -> "Harmonics":
        """Return the functions of the lowest degrees."""
        first = self._weights[: math.isqrt(LOWEST)]
        return Harmonics(self.angles, first, self.tol, self.order)

    def _up_to(self, few: Any) -> NDArray[np.bool_]:
        return np.asarray(self._degrees <= few.degree)

    def _gram(self, weights: Complexes) -> Doubles:
        sums = Exponentials(self.angles, [4 * self.degree + 1] * 2, self.tol)
        return harmonic_gram(sums.adjoint(weights, n_threads()))


def harmonic_gram(sums: Complexes) -> Doubles:
    """Return sums of products of two real harmonics up to degree L: the lower triangle.

    Given are the sums of exp(-i (mu phi + kappa theta)) for |mu|, |kappa| <= 2 L, in the order of
    FFTs. A product of harmonics of orders m and k is P_lm P_jk times cosines and sines of (k - m)
    phi and (k + m) phi; along meridians it is a sum of exponentials up to 2 L, so that weights on 2
    L + 2 rings sum it exactly.
    """
    L = (len(sums) - 1) // 4
    last = 2 * L + 1
    parity: Doubles = np.where(np.arange(last) % 2, -1.0, 1.0)[:, None]
    rings = on_rings(sums[:last], last, parity)
    P = np.empty((L + 1, L + 1, last + 1))  # of order m, degree l, at every ring
    one, values = np.zeros((L + 1, L + 1, 4)), np.empty((L + 1, last + 1, 4))
    for ell in range(L + 1):
        one[: ell + 1, ell, 0] = 1
        _legendre.legendre_synthesis(one, values, n_threads())
        P[:, ell] = values[:, :, 0]
        one[: ell + 1, ell, 0] = 0
    starts = np.concatenate([[0], np.cumsum(np.arange(L + 1, 0, -1))])
    n_first = int(starts[-1]) - (L + 1)
    gram = np.zeros(((L + 1) ** 2, (L + 1) ** 2))
    for m in range(L + 1):
        a = slice(int(starts[m]), int(starts[m + 1]))
        sines_a = slice(a.start + n_first, a.stop + n_first)
        for k in range(m, L + 1):
            b = slice(int(starts[k]), int(starts[k + 1]))
            sines_b = slice(b.start + n_first, b.stop + n_first)
            less, more = rings[k - m], rings[k + m]
            scale = (1.0 if m else 1 / ROOT_2) * (1.0 if k else 1 / ROOT_2)

            def product(w: Any, m: int = m, k: int = k, scale: float = scale) -> Doubles:
                return np.asarray((P[k, k:] * (scale * w)) @ P[m, m:].T)

            gram[b, a] = product(less.real + more.real)
            if k:
                gram[sines_b, a] = product(-less.imag - more.imag)
            if m:
                gram[sines_a, b] = product(less.imag - more.imag).T
                gram[sines_b, sines_a] = product(less.real - more.real)
    return gram


class Frequencies(FarFeatures):
    """Z of angles on the torus, Z Z^T = sum_k c_k cos <k, x - y>.

    Parameters
    ----------
    angles : sequence of d arrays of shape (n,)
    weights : ndarray of shape (2 K_1 + 1, ..., 2 K_d + 1)
        c_k, even, in the order of FFTs, of which negative ones are 0.
    tol : float
        Relative error of a sum.
    order : ndarray of shape (n,)
        The row of each point.

    Notes
    -----
    p is the number of weights. The Gram matrix looks up its entries: sums of exponentials.
    """

    def __init__(
        self, angles: Sequence[Doubles], weights: Doubles, tol: float, order: Integers
    ) -> None:
        self.highest = [size // 2 for size in weights.shape]
        grid = np.meshgrid(
            *[np.fft.fftfreq(size, 1 / size).astype(np.intp) for size in weights.shape],
            indexing="ij",
        )
        k = np.stack([axis.ravel() for axis in grid], axis=1)
        leading = np.take_along_axis(k, (k != 0).argmax(axis=1)[:, None], axis=1)[:, 0]
        first = np.flatnonzero(leading > 0)
        second = np.ravel_multi_index(tuple((-k[first] % weights.shape).T), weights.shape)
        self.k, self._weights = k[np.concatenate([[0], first])], weights
        transform = Exponentials(angles, weights.shape, tol)
        places = np.zeros(1, np.intp), first, second
        super().__init__(transform, weights.shape, places, weights, order)
        self._square = float(self.roots @ self.roots)

    def lowest(self) -> "Frequencies":
        """Return the functions of the lowest frequencies."""
        share = min(1.0, (LOWEST / self.width) ** (1 / len(self.highest)))
        first = cut(self._weights, [max(1, int(share * most)) for most in self.highest])
        return Frequencies(self.angles, first, self.tol, self.order)

    def _up_to(self, few: Any) -> NDArray[np.bool_]:
        return np.asarray((np.abs(self.k) <= few.highest).all(axis=1))

    def _gram(self, weights: Complexes) -> Doubles:
        shape = [4 * most + 1 for most in self.highest]
        sums = Exponentials(self.angles, shape, self.tol)
        values = sums.adjoint(weights, n_threads()).ravel()
        own = np.where(self.k.any(axis=1), 1.0, 1 / ROOT_2)
        n_all = len(self.k)
        gram = np.zeros((self.width, self.width))

        def at(k: Integers) -> Complexes:
            places = np.ravel_multi_index(tuple(np.moveaxis(k % shape, -1, 0)), shape)
            return np.asarray(values[places])

        for start in range(0, n_all, BLOCK):
            a = slice(start, min(start + BLOCK, n_all))
            scale = own[a, None] * own
            less = at(self.k[None] - self.k[a, None]) * scale
            more = at(self.k[None] + self.k[a, None]) * scale
            gram[a, :n_all] = less.real + more.real
            sines = slice(max(a.start, 1) + n_all - 1, a.stop + n_all - 1)
            not_0 = slice(1, None) if start == 0 else slice(None)
            gram[sines, :n_all] = (less.imag - more.imag)[not_0]
            gram[sines, n_all:] = (less.real - more.real)[not_0, 1:]
        return gram


# ---- systems with their Gram matrix


class Lowest(Preconditioner):
    """The system of the lowest frequencies, factored, and the diagonal of the others.

    The diagonal is that of evenly distributed rows.
    """

    def __init__(self, features: FarFeatures, weights: Doubles, alphas: Doubles) -> None:
        low = features.lowest()
        self._places = features.among(low)
        density = weights.sum() / features.measure
        self._squares = density * np.square(features.roots)
        gram = low.weighted_gram(weights)
        self._factors = {alpha: factor_of(gram, alpha) for alpha in np.unique(alphas).tolist()}
        self._alphas = alphas

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R, see `Preconditioner`."""
        alphas = self._alphas[columns]
        solved: Doubles = R / (self._squares[:, None] + alphas)
        for j, alpha in enumerate(alphas.tolist()):
            with limit_blas(1):
                low = cho_solve((self._factors[alpha], True), R[self._places, j])
            solved[self._places, j] = low
        return solved


class OnNodes:
    """(mu I + Z^T W Z)^-1 by conjugate gradients on nodes, whose steps take FFTs of their grid."""

    def __init__(self, features: FarFeatures, weights: Doubles, mu: Doubles) -> None:
        self._nodes, self._weights = features.on_nodes(weights)
        self._lowest, self._mu = Lowest(features, weights, mu), mu
        self._tol = min(NODE_DIGITS * features.tol, NODE_DIGITS * MOST_DIGITS)

    def is_fast(self, r: Doubles, most_steps: int) -> bool:
        """Say whether a system of the first mu is half solved in half of so many steps."""
        first, tol = np.zeros(1, np.intp), math.sqrt(self._tol)
        return bool(self._solution(r, first, tol, most_steps // 2).converged.all())

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return the solutions for the mu of these columns."""
        return self._solution(R, columns, self._tol, MOST_NODE_STEPS).coef

    def _solution(self, R: Doubles, columns: Integers, tol: float, max_iter: int) -> Solution:
        return conjugate_gradients(
            self._product, R, self._mu[columns], preconditioner=OfColumns(self._lowest, columns),
            tol=tol, max_iter=max_iter,
        )  # fmt: skip

    def _product(self, V: Doubles) -> Doubles:
        return self._nodes.transposed_product(self._weights[:, None] * self._nodes.product(V))


# ---- the choice


@dataclass(frozen=True)
class FarPart:
    """The first terms of a kernel's series, and the nanoseconds of a solution with them."""

    space: Sphere | Box
    angles: Sequence[Doubles]
    order: Integers
    weights: Doubles
    tol: float
    least_cost: float
    node_cost: float  # of each step on nodes

    @property
    def least(self) -> float | None:
        """The least mu, see `LowRank`: with images of a box Z Z^T may exceed K."""
        return None if isinstance(self.space, Sphere) else 0.0

    @property
    def cost(self) -> float:
        """The cost if systems on nodes take `NODE_STEPS`."""
        return self.least_cost + NODE_STEPS * self.node_cost

    def most_steps(self, cost: float) -> int:
        """Return up to how many steps on nodes this part costs less."""
        return int(min((cost - self.least_cost) / self.node_cost, MOST_NODE_STEPS))

    def features(self) -> FarFeatures:
        """Return the terms as features of the rows."""
        if isinstance(self.space, Sphere):
            return Harmonics(self.angles, self.weights, self.tol, self.order)
        return Frequencies(self.angles, self.weights, self.tol, self.order)


def far_part(sums: FastSums, shifts: Doubles, noise: Doubles) -> FarPart | None:
    """Return the cheapest first terms with which to solve K + alpha N, None if there are none.

    The largest eigenvalue of the other terms is the next weight times the density of the rows.
    """
    if len(sums.parts) > 1:
        return None
    space, n = sums.parts[0].space, sums.shape[0]
    transform: Any = sums.parts[0].at_rows
    angles, sides = getattr(transform, "exponentials", transform).angles, np.ones(2)
    if isinstance(space, Box):
        extents = np.array([np.ptp(axis) for axis in angles]) * space.sides / (2 * np.pi)
        sides = _shorter(space, extents)
        angles = [axis * (own / side) for axis, own, side in
                  zip(angles, space.sides, sides, strict=True)]  # fmt: skip
    sizes = [
        size for size in _sizes(space, sides) if _count(space, size) <= min(MOST_FUNCTIONS, n // 2)
    ]
    if not sizes:
        return None
    weights = _weights(space, sides, sizes[-1])
    dense = _density(space, angles, n) * float(np.mean(1 / noise))
    digits = DIGITS * shifts.min() / (dense * float(weights.max()))
    if digits < LEAST_DIGITS:
        return None
    digits, pairs, best = min(digits, MOST_DIGITS), (len(shifts) + 1) // 2, None
    points = 2 * n * spread_cost(len(angles), digits)
    for size in sizes:
        first = weights[: size[0] + 1] if isinstance(space, Sphere) else cut(weights, size)
        left = dense * max(float(weights[place]) for place in _next(space, size))
        steps = max(STEPS * math.sqrt(1 + max(left, 0.0) / shifts.min()), 2.0)
        low, fixed = min(LOWEST, _count(space, size)), space.fixed_cost(size)
        node_cost = steps * (2 * pairs * fixed + len(shifts) * SOLVE_COST * low**2)
        if low < LOWEST:  # one step
            node_cost /= NODE_STEPS
        part = FarPart(
            space, angles, sums.order, first, digits,
            len(shifts) * FACTOR_COST * low**3 + steps * pairs * (sums.cost + fixed + points),
            node_cost,
        )  # fmt: skip
        if best is None or part.cost < best.cost:
            best = part
    return best


def _shorter(space: Box, extents: Doubles) -> Doubles:
    """Return the sides of a box in which opposite ends are nearly independent."""
    r = np.linspace(0, space.reach, SAMPLES)
    values = np.abs(space.profile(r))
    margin = float(r[min(np.flatnonzero(values > MARGIN * values[0])[-1] + 1, len(r) - 1)])
    return np.asarray(np.minimum(extents + margin, space.sides))


def _sizes(space: Sphere | Box, sides: Doubles) -> list[tuple[int, ...]]:
    """Return degrees, or highest frequencies along each axis, which grow by sqrt(2)."""
    powers = [2.0 ** (power / 2) for power in range(30)]
    if isinstance(space, Sphere):
        return [(int(8 * power),) for power in powers]
    relative = sides / sides.max()
    return [tuple(np.maximum(1, relative * 4 * power).astype(int).tolist()) for power in powers]


def _count(space: Sphere | Box, size: tuple[int, ...]) -> int:
    """Return the number of functions."""
    if isinstance(space, Sphere):
        return (size[0] + 1) ** 2
    return math.prod(2 * highest + 1 for highest in size)


def _weights(space: Sphere | Box, sides: Doubles, size: tuple[int, ...]) -> Doubles:
    """Return weights up to more than the size: those of a rough kernel take a finer grid.

    In a box the kernel is summed over the rows' images at the next boxes.
    """
    finer = tuple(FINER * highest for highest in size)
    if isinstance(space, Sphere):
        return space.weights(KernelSplit.at(space.profile, 0.0, space.tol), finer)[:, 0]

    def on_grid(axes: list[Doubles]) -> Any:
        both = [(axis, side - axis) for axis, side in zip(axes, sides, strict=True)]
        return sum(map(space.on_grid, itertools.product(*both)))

    return periodic_weights(on_grid, sides.tolist(), finer)


def cut(weights: Doubles, highest: Sequence[int]) -> Doubles:
    """Return the weights of exponentials up to lower frequencies."""
    for axis, most in enumerate(highest):
        weights = weights.take(np.arange(-most, most + 1), axis, mode="wrap")
    return np.ascontiguousarray(np.fft.ifftshift(weights))


def _next(space: Sphere | Box, size: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the places of the next weights."""
    if isinstance(space, Sphere):
        return [(size[0] + 1,)]
    axes = range(len(size))
    return [tuple((size[k] + 1) * (k == axis) for k in axes) for axis in axes]


def _density(space: Sphere | Box, angles: Sequence[Doubles], n: int) -> float:
    """Return the density of rows about a row, by the measure that makes functions orthonormal.

    That is the mean over rows of the number of others in their cell.
    """
    step = -(-n // COUNTED_ROWS)
    some = [axis[::step] for axis in angles]
    if isinstance(space, Sphere):
        shares = [some[0] / (2 * np.pi), (1 - np.cos(some[1])) / 2]
    else:
        shares = [axis / (2 * np.pi) for axis in some]
    side = int(CELLS ** (1 / len(shares)))
    places = [(share % 1.0 * side).astype(np.intp) for share in shares]
    flat = np.ravel_multi_index(tuple(places), [side] * len(shares))
    counts = np.bincount(flat, minlength=1)
    others = float((counts * (counts - 1)).sum()) / len(flat)
    total = 4 * np.pi if isinstance(space, Sphere) else 1.0
    return float((1 + others * step) * side ** len(shares) / total)
