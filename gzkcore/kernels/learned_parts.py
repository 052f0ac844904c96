"""The learned parameters of a kernel: kernel matrices of some rows as functions of the lengths.

For a kernel f(r) of scaled rows x, dK_ij / dlog length_c = H_ij (x_ic - x_jc)^2, H = -f'(r) / r,
and with W = Q o H

    sum_ij W_ij (x_ic - x_jc)^2 = 2 sum_i (W 1)_i x_ic^2 - 2 x_c^T W x_c,

so that one product W [X 1], of m^2 dim multiply-adds, serves all columns. In a product of kernels
the W of a part is multiplied by the matrices of the other parts, in a sum by its weight.

The pole of H at r = 0 does no harm by itself, since r^2 H goes to 0. But the expanded square would
multiply it by rounding errors, so entries beyond STEEPEST are left out.
"""

import copy
import math
from typing import Any, Self

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.distance import cdist

from gzkcore._compiled import learned as _learned
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Integers, Rows
from gzkcore._util.validation import dense

from .base import LEARNED, Kernel
from .points import check_unit_norms, row_norms, unit_rows
from .product import Product
from .products import matrix_of, slope_matrix
from .shift_invariant import ShiftInvariantKernel
from .slopes import STEEPEST
from .sum import Sum
from .tile_form import ABSOLUTE, EXPONENTIAL
from .zonal import SphereKernel

__all__: list[str] = []

# Of lengths in units of a column's standard deviation: how far the search goes. It starts at
# sqrt(dim).
SHORTEST, LONGEST = math.exp(-4), math.exp(8)
SMALLEST = 1e-150  # of standard deviations
IGNORED = 1e30  # the length of a column that is constant: it has no influence

# Of lengths on the unit sphere, in radians: how far the search goes, and where it starts.
LEAST_ANGLE, MIDDLE_ANGLE, MOST_ANGLE = 0.005, 0.5, 50.0
GRID = 1025  # angles that a kernel is summed for


def part_of(
    kernel: Kernel, X: Rows, chosen: Integers, names: Any = None, groups: Integers | None = None
) -> "Part":
    """Return what a kernel has to learn, of rows X and those of them that are looked at.

    `groups` has a number for each column: those of a group share a length, as the levels of a
    category may; -1 is a column without influence.
    """
    if isinstance(kernel, Product | Sum):
        return Parts(kernel, X, chosen, names)
    sample = _sample(X, chosen)
    rules = {
        name: value
        for name, value in kernel.get_params(deep=False).items()
        if isinstance(value, str) and value in LEARNED
    }
    for name, value in rules.items():
        if name not in kernel.learnable:
            raise ValueError(
                f"{name}={value!r} of a {type(kernel).__name__} cannot be learned; use a number"
            )
    if rules and isinstance(kernel, ShiftInvariantKernel):
        kernel.with_lengths(1.0).resolve(sample)  # raises what is wrong with its other parameters
        return Lengths(kernel, sample, groups, isotropic="learn" not in rules.values())
    if rules and isinstance(kernel, SphereKernel):
        return SphereLength(kernel, sample)
    return Fixed(kernel.resolve(X), sample)


def _sample(X: Rows, chosen: Integers) -> Doubles:
    return dense(X[chosen]).astype(np.float64)


class Part:
    """A kernel on some rows as a function of theta, logarithms of lengths about their middles."""

    low: Doubles  # (n,), where n is the number of lengths, and the middle is 0
    high: Doubles
    largest: float = 1.0  # k(x, x) of a row

    def kernel(self, theta: Doubles) -> Kernel:
        """Return the resolved kernel."""
        raise NotImplementedError

    def lengths(self, theta: Doubles) -> Any:
        """Return its lengths, None if it has none to learn."""
        raise NotImplementedError

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        """Return K, which may be written to, and remember what the gradient there needs."""
        raise NotImplementedError

    def gradient(self, Q: Floats) -> Doubles:
        """Return sum_ij Q_ij dK_ij / dtheta for a symmetric Q, whose diagonal is of no matter."""
        raise NotImplementedError

    def on(self, X: Rows, chosen: Integers) -> Self:
        """Return the same function of theta on other rows."""
        raise NotImplementedError


class Fixed(Part):
    """A resolved kernel."""

    def __init__(self, kernel: Kernel, sample: Doubles) -> None:
        self._kernel, self._matrix = kernel, matrix_of(kernel, sample)
        self.low = self.high = np.empty(0)
        self.largest = float(self._matrix.diagonal().max())

    def on(self, X: Rows, chosen: Integers) -> "Fixed":
        return Fixed(self._kernel, _sample(X, chosen))

    def kernel(self, theta: Doubles) -> Kernel:
        return self._kernel

    def lengths(self, theta: Doubles) -> None:
        return None

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        return self._matrix.astype(dtype)

    def gradient(self, Q: Floats) -> Doubles:
        return np.empty(0)


class Lengths(Part):
    """A shift-invariant kernel with one length, or one for each group of columns that vary."""

    def __init__(
        self,
        given: ShiftInvariantKernel,
        sample: Doubles,
        groups: Integers | None,
        *,
        isotropic: bool,
    ) -> None:
        self.given, self.sample, self.isotropic = given, sample, isotropic
        groups = np.arange(sample.shape[1]) if groups is None else groups
        self.varies = (np.ptp(sample, axis=0) > 0) & (groups >= 0)
        dim = int(np.count_nonzero(self.varies))
        if not dim:
            raise ValueError(
                f"all columns of X are constant on the {len(sample)} rows used, and {given!r} has "
                "no lengths to learn; pass columns that vary"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            self.mean, spread = sample.mean(axis=0), sample.std(axis=0)[self.varies]
        if not ((spread >= SMALLEST) & (spread <= 1 / SMALLEST)).all():
            raise ValueError(
                "columns of X have standard deviations below 1e-150 or above 1e150, whose squares "
                "exceed the range of float64; scale the columns"
            )
        self.used = groups >= 0
        if isotropic:
            self.group_of = np.zeros(dim, dtype=np.intp)
        else:
            present, self.group_of = np.unique(groups[self.varies], return_inverse=True)
            dim = present.size
            # A level that no row of the sample has is as far from others as the levels that have.
            self.used = np.isin(groups, present)
            self.length_of = np.searchsorted(present, groups[self.used])
        n_groups = 1 if isotropic else dim
        self.middle = np.sqrt(n_groups * self._summed(np.square(spread)))
        self.low = np.full(self.middle.size, math.log(SHORTEST / math.sqrt(dim)))
        self.high = np.full(self.middle.size, math.log(LONGEST / math.sqrt(dim)))

    def _summed(self, values: Doubles) -> Doubles:
        """Return sums over the columns of each group that vary."""
        return np.asarray(np.bincount(self.group_of, values))

    def on(self, X: Rows, chosen: Integers) -> Self:
        other = copy.copy(self)
        other.sample = _sample(X, chosen)
        return other

    def lengths(self, theta: Doubles) -> float | Doubles:
        found = self.middle * np.exp(theta)
        if self.isotropic and self.used.all():
            return float(found[0])
        full = np.full(self.used.size, np.inf)
        full[self.used] = found[0] if self.isotropic else found[self.length_of]
        return full

    def kernel(self, theta: Doubles) -> Kernel:
        lengths = self.lengths(theta)
        kernel = self.given.with_lengths(
            lengths if np.ndim(lengths) == 0 else np.where(np.isinf(lengths), IGNORED, lengths)
        )
        return kernel._trust()

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        kernel = self.kernel(theta)
        ((term, (factor,)),) = [(t, t.factors) for t in kernel.tile_form(self.used.size) or ()]
        values = matrix_of(kernel, self.sample, None, dtype)
        self.factor, slope = factor, factor.slope
        if slope is not None and slope.profile == factor.profile == EXPONENTIAL:
            self.slopes = values.copy()
        else:
            self.slopes = slope_matrix(term, 0, self.sample, None, dtype)
            self.slopes[self.slopes > STEEPEST] = 0.0
        self.scaled = ((self.sample - self.mean) * factor.scale)[:, self.varies]
        return values

    def gradient(self, Q: Floats) -> Doubles:
        W, x = Q * self.slopes, self.scaled
        each: Doubles
        if self.factor.metric == ABSOLUTE:
            sums, x = np.empty_like(x, order="C"), np.ascontiguousarray(x)
            W = W.astype(np.float64, copy=False)
            _learned.distance_sums(W, x, sums, n_threads(W.size * x.shape[1]))
            each = 2 * sums.sum(axis=0)
        else:
            np.fill_diagonal(W, 0.0)  # it adds nothing but rounding errors
            of_x = W @ np.column_stack([x, np.ones(len(x))]).astype(W.dtype, copy=False)
            each = 2 * (of_x[:, -1] @ x**2 - np.einsum("ij,ij->j", x, of_x[:, :-1]))
        if self.factor.slope is not None:
            each *= self.factor.slope.weight
        return self._summed(each)


class SphereLength(Part):
    """A kernel of the unit sphere with its length, in radians.

    It is a function of the angle, which is interpolated from GRID angles: so its series is summed
    for few of them. Angles are pi u^2 for evenly spaced u, since kernels bend at 0.
    """

    def __init__(self, given: SphereKernel, sample: Doubles) -> None:
        self.given, self.dim = given, sample.shape[1]
        self.low = np.array([math.log(LEAST_ANGLE / MIDDLE_ANGLE)])
        self.high = np.array([math.log(MOST_ANGLE / MIDDLE_ANGLE)])
        self._see(sample)

    def _see(self, sample: Doubles) -> None:
        norms = row_norms(sample)
        check_unit_norms(norms, "the sample")
        units = unit_rows(sample, norms)
        halves = cdist(units, units) / 2
        np.minimum(halves, 1.0, out=halves)
        self.places = np.sqrt(2 * np.arcsin(halves) / math.pi)

    def on(self, X: Rows, chosen: Integers) -> Self:
        other = copy.copy(self)
        other._see(_sample(X, chosen))
        return other

    def lengths(self, theta: Doubles) -> float:
        return float(MIDDLE_ANGLE * np.exp(theta[0]))

    def kernel(self, theta: Doubles) -> Kernel:
        return self.given.with_lengths(self.lengths(theta))

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        kernel, grid = self.given.with_lengths(self.lengths(theta)), np.linspace(0, 1, GRID)
        angles = math.pi * grid**2
        self.slope = CubicSpline(grid, kernel.length_slope(np.cos(angles), self.dim))
        values: Doubles = CubicSpline(grid, kernel.at_angles(angles, self.dim))(self.places)
        np.fill_diagonal(values, 1.0)
        return values.astype(dtype, copy=False)

    def gradient(self, Q: Floats) -> Doubles:
        return np.array([np.vdot(Q, self.slope(self.places))])


class Parts(Part):
    """A product or a weighted sum of kernels on columns of their own."""

    def __init__(self, given: Product | Sum, X: Rows, chosen: Integers, names: Any) -> None:
        pairs = Product(given.parts).parts_of(X.shape[1], names)
        self.index = [index for index, _ in pairs]
        self.parts = [part_of(kernel, X[:, index], chosen) for index, kernel in pairs]
        self.weights = given.weights_of(len(pairs)) if isinstance(given, Sum) else None
        self.low = np.concatenate([part.low for part in self.parts])
        self.high = np.concatenate([part.high for part in self.parts])
        self._measure()

    def on(self, X: Rows, chosen: Integers) -> Self:
        other = copy.copy(self)
        pairs = zip(self.parts, self.index, strict=True)
        other.parts = [part.on(X[:, index], chosen) for part, index in pairs]
        other._measure()
        return other

    def _measure(self) -> None:
        """Set `largest`, or a bound."""
        largest = np.array([part.largest for part in self.parts])
        of_sum = None if self.weights is None else np.dot(self.weights, largest)
        self.largest = float(largest.prod() if of_sum is None else of_sum)

    def _each(self, theta: Doubles) -> list[tuple[Part, Doubles]]:
        ends = np.cumsum([part.low.size for part in self.parts])[:-1]
        return list(zip(self.parts, np.split(theta, ends), strict=True))

    def lengths(self, theta: Doubles) -> list[Any]:
        return [part.lengths(own) for part, own in self._each(theta)]

    def kernel(self, theta: Doubles) -> Kernel:
        kernels = [part.kernel(own) for part, own in self._each(theta)]
        pairs = list(zip(self.index, kernels, strict=True))
        return Product(pairs) if self.weights is None else Sum(pairs, self.weights)

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        self.matrices = [part.matrix(own, dtype) for part, own in self._each(theta)]
        if self.weights is None:
            return np.asarray(np.prod(self.matrices, axis=0))
        return np.tensordot(self.weights, self.matrices, 1).astype(dtype, copy=False)

    def gradient(self, Q: Floats) -> Doubles:
        found = []
        for number, part in enumerate(self.parts):
            if self.weights is None:
                others = self.matrices[:number] + self.matrices[number + 1 :]
                found.append(part.gradient(Q * np.prod(others, axis=0)))
            else:
                found.append(self.weights[number] * part.gradient(Q))
        return np.concatenate(found)
