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
from .coded_form import coded_form
from .points import check_unit_norms, row_norms, unit_rows
from .product import Product
from .products import block_matrices, matrix_of, slope_matrix
from .shift_invariant import ProductMatern, ShiftInvariantKernel
from .slopes import STEEPEST
from .sum import Sum
from .tile_form import ABSOLUTE, EXPONENTIAL
from .zonal import SphereKernel

__all__: list[str] = []

# The shortest and the longest length, in standard deviations of a column. The search starts at
# sqrt(dim).
SHORTEST, LONGEST = math.exp(-4), math.exp(8)
# In blocks of near rows, which spread less, lengths may be shorter in proportion, down to this.
LEAST_SHARE = 1e-4
# Standard deviations below this, or above one over it, are refused: their squares are no doubles.
SMALLEST = 1e-150
# A column that is constant gets this length, so that it has no influence.
IGNORED = 1e30

# The shortest and the longest length on the unit sphere, in radians, and where the search starts.
LEAST_ANGLE, MOST_ANGLE, MIDDLE_ANGLE = 0.005, 50.0, 0.5
# Up to so many rows, a tile, matrices are computed by pairs of rows: tiles take twice as long.
FEW = 256
LANES = 32  # Rows of a block in sums of groups of columns, as in `_compiled/learned.pyx`.
# A kernel of the sphere is summed at so many angles, and interpolated between them.
GRID = 1025


def part_of(
    kernel: Kernel, X: Rows, rows: Integers, names: Any = None, groups: Integers | None = None
) -> "LearnedPart":
    """Return the kernel between some rows of X, as a function of the lengths it has to learn.

    Columns with the same number in `groups` share a length, as the levels of a category may; a
    column with the number -1 has no influence.
    """
    if isinstance(kernel, Product | Sum):
        return CombinedPart(kernel, X, rows, names, groups)
    sample = _sample(X, rows)
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
        kind = ProductPart if isinstance(kernel, ProductMatern) else FlatPart
        return kind(kernel, sample, groups, "learn" not in rules.values())
    if rules and isinstance(kernel, SphereKernel):
        return SpherePart(kernel, sample)
    return FixedPart(kernel.resolve(X), sample)


def _sample(X: Rows, rows: Integers) -> Doubles:
    return dense(X[rows]).astype(np.float64)


class LearnedPart:
    """A kernel between some rows as a function of theta, the logarithms of its lengths.

    They are relative to where the search starts.
    """

    low: Doubles  # (n_lengths,): the bounds of theta
    high: Doubles
    largest: float = 1.0  # of k(x, x), or a bound

    def kernel(self, theta: Doubles) -> Kernel:
        """Return the resolved kernel."""
        raise NotImplementedError

    def lengths(self, theta: Doubles) -> Any:
        """Return the lengths, None if there are none to learn."""
        raise NotImplementedError

    def theta_of(self, scales: Doubles) -> Doubles:
        """Return theta for lengths of one over these scales of the columns."""
        return np.zeros(self.low.size)

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        """Return K, which the caller may overwrite; `gradient` is then that at theta."""
        raise NotImplementedError

    def gradient(self, Q: Floats) -> Doubles:
        """Return sum_ij Q_ij dK_ij / dtheta for a symmetric Q; its diagonal has no effect."""
        raise NotImplementedError

    def on(self, X: Rows, rows: Integers) -> Self:
        """Return the same function of theta on other rows."""
        raise NotImplementedError

    def on_blocks(self, X: Rows, blocks: Integers) -> Self:
        """Return the same function on blocks of rows, given the numbers (n_blocks, size) of these.

        Its matrices, and the Q of its gradient, are (n_blocks, size, size).
        """
        raise NotImplementedError


class FixedPart(LearnedPart):
    """A resolved kernel."""

    def __init__(self, kernel: Kernel, sample: Doubles) -> None:
        self._kernel, self._matrix = kernel, matrix_of(kernel, sample)
        self.low = self.high = np.empty(0)
        self.largest = float(self._matrix.diagonal().max())

    def on(self, X: Rows, rows: Integers) -> "FixedPart":
        return FixedPart(self._kernel, _sample(X, rows))

    def on_blocks(self, X: Rows, blocks: Integers) -> Self:
        other = copy.copy(self)
        form = coded_form(self._kernel, X)
        if form is None:
            matrices = [matrix_of(self._kernel, _sample(X, rows)) for rows in blocks]
            other._matrix = np.stack(matrices)
        else:
            rows: Any = X
            compact = rows[blocks.ravel()].compact.reshape(*blocks.shape, -1)
            other._matrix = block_matrices(form[0], compact, np.float64)
        return other

    def kernel(self, theta: Doubles) -> Kernel:
        return self._kernel

    def lengths(self, theta: Doubles) -> None:
        return None

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        return self._matrix.astype(dtype)

    def gradient(self, Q: Floats) -> Doubles:
        return np.empty(0)


class FlatPart(LearnedPart):
    """A shift-invariant kernel with one length, or one for each group of columns that vary."""

    def __init__(
        self,
        template: ShiftInvariantKernel,
        sample: Doubles,
        groups: Integers | None,
        isotropic: bool,
    ) -> None:
        self.template, self.sample, self.isotropic = template, sample, isotropic
        groups = np.arange(sample.shape[1]) if groups is None else groups
        self.varies = (np.ptp(sample, axis=0) > 0) & (groups >= 0)
        dim = int(np.count_nonzero(self.varies))
        if not dim:
            raise ValueError(
                f"all columns of X are constant on the {len(sample)} rows used, and {template!r} "
                "has no lengths to learn; pass columns that vary"
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
            # A level that no row of the sample has gets the length of the levels that rows have.
            self.used = np.isin(groups, present)
            self.length_of = np.searchsorted(present, groups[self.used])
        n_groups = 1 if isotropic else dim
        self.middle = np.sqrt(n_groups * self._summed(np.square(spread)))
        self.low = np.full(self.middle.size, math.log(SHORTEST / math.sqrt(dim)))
        self.high = np.full(self.middle.size, math.log(LONGEST / math.sqrt(dim)))

    def _summed(self, values: Doubles) -> Doubles:
        """Return the sum of values over the varying columns of each group."""
        return np.asarray(np.bincount(self.group_of, values))

    def on(self, X: Rows, rows: Integers) -> Self:
        other = copy.copy(self)
        other.sample = _sample(X, rows)
        return other

    def on_blocks(self, X: Rows, blocks: Integers) -> "FlatPart":
        has_codes = coded_form(self.kernel(np.zeros(self.low.size)), X) is not None
        if has_codes and not isinstance(self, ProductPart):
            return CodedPart(self, X, blocks)
        other = copy.copy(self)
        other.sample = _sample(X, blocks.ravel()).reshape(*blocks.shape, -1)
        other.mean = other.sample[:, :1]
        other._bound(self._summed(other.sample[..., self.varies].var(axis=1).mean(axis=0)))
        return other

    def _bound(self, within: Doubles) -> None:
        """Let lengths be shorter where blocks, of these variances by group, spread less."""
        share = np.sqrt(self.middle.size * within) / self.middle
        self.low = self.low + np.log(np.clip(share, LEAST_SHARE, 1.0))

    def theta_of(self, scales: Doubles) -> Doubles:
        of_groups = np.zeros(self.middle.size)
        np.maximum.at(of_groups, self.group_of, scales[self.varies])
        with np.errstate(divide="ignore"):
            return np.clip(-np.log(of_groups * self.middle), self.low, self.high)

    def lengths(self, theta: Doubles) -> float | Doubles:
        of_groups = self.middle * np.exp(theta)
        if self.isotropic and self.used.all():
            return float(of_groups[0])
        lengths = np.full(self.used.size, np.inf)
        lengths[self.used] = of_groups[0] if self.isotropic else of_groups[self.length_of]
        return lengths

    def kernel(self, theta: Doubles) -> Kernel:
        lengths = self.lengths(theta)
        kernel = self.template.with_lengths(
            lengths if np.ndim(lengths) == 0 else np.where(np.isinf(lengths), IGNORED, lengths)
        )
        return kernel._trust()

    def _matrix(self, kernel: Any, dtype: Any, *, sloped: bool = False) -> Floats:
        """Return the matrix of the kernel, or of its slope."""
        (term,) = kernel.tile_form(self.used.size)
        by_tiles = len(self.sample) > FEW or term.factors[0].function is not None
        if self.sample.ndim == 2 and by_tiles:
            if sloped:
                return slope_matrix(term, 0, self.sample, None, dtype)
            return matrix_of(kernel, self.sample, None, dtype)
        blocks = self.sample.reshape(-1, *self.sample.shape[-2:])
        matrices = block_matrices(term, blocks, dtype, sloped=sloped)
        return matrices.reshape(*self.sample.shape[:-1], -1)

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        kernel: Any = self.kernel(theta)
        values = self._matrix(kernel, dtype)
        ((factor,),) = [term.factors for term in kernel.tile_form(self.used.size)]
        self.factor, slope = factor, factor.slope
        if slope is not None and slope.profile == factor.profile == EXPONENTIAL:
            self.slopes = values.copy()
        else:
            self.slopes = self._matrix(kernel, dtype, sloped=True)
            self.slopes[self.slopes > STEEPEST] = 0.0
        self.scaled = ((self.sample - self.mean) * factor.scale)[..., self.varies]
        return values

    def gradient(self, Q: Floats) -> Doubles:
        return self._summed(_slopes_of_blocks(Q * self.slopes, self.scaled, self.factor))


def _slopes_of_blocks(W: Floats, x: Doubles, factor: Any) -> Doubles:
    """Return the sums over all pairs of rows of W times what each scaled column adds to t.

    Of one matrix W of rows x, or of blocks of such.
    """
    slopes: Doubles
    if factor.metric == ABSOLUTE:
        sums, x = np.empty_like(x, order="C"), np.ascontiguousarray(x)
        W = W.astype(np.float64, copy=False)
        blocks = zip(*(each[None] if W.ndim == 2 else each for each in (W, x, sums)), strict=True)
        for block in blocks:
            _learned.distance_sums(*block, n_threads(W[..., 0].size * x[0].size))
        slopes = 2 * sums.reshape(-1, x.shape[-1]).sum(axis=0)
    else:
        np.einsum("...ii->...i", W)[...] = 0.0  # it adds nothing but rounding errors
        ones = np.ones((*x.shape[:-1], 1))
        of_x = W @ np.concatenate([x, ones], axis=-1).astype(W.dtype, copy=False)
        of_x, x = of_x.reshape(-1, of_x.shape[-1]), x.reshape(-1, x.shape[-1])
        slopes = 2 * (of_x[:, -1] @ x**2 - np.einsum("ij,ij->j", x, of_x[:, :-1]))
    if factor.slope is not None:
        slopes *= factor.slope.weight
    return slopes


class ProductPart(FlatPart):
    """A product of Matern kernels of groups of columns, with a length for each."""

    def __init__(
        self, template: Any, sample: Doubles, groups: Integers | None, isotropic: bool
    ) -> None:
        own = template.groups_of(sample.shape[1])
        own = own if groups is None else np.where(groups < 0, -1, own)
        super().__init__(template, sample, own, isotropic)
        _, factors = np.unique(own[self.varies], return_inverse=True)
        self.order = np.argsort(factors, kind="stable")
        self.ends = np.cumsum(np.bincount(factors))

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        kernel: Any = self.kernel(theta)
        values = self._matrix(kernel, dtype)
        scaled = (self.sample - self.mean) * (math.sqrt(2 * kernel.nu) * kernel.scale())
        self.scaled = scaled[..., self.varies][..., self.order]
        self.slopes = values.copy()
        return values

    def gradient(self, Q: Floats) -> Doubles:
        W, total = (Q * self.slopes).astype(np.float64, copy=False), np.zeros(self.ends.size)
        blocks = [each[None] if W.ndim == 2 else each for each in (W, self.scaled)]
        template: Any = self.template
        smooth, threads = template.nu == 2.5, n_threads(W.size * self.order.size)
        for block, x in zip(*blocks, strict=True):
            padded = np.pad(x, [(0, -len(x) % LANES), (0, 0)]).reshape(-1, LANES, x.shape[1])
            columns = np.ascontiguousarray(np.swapaxes(padded, 1, 2))
            sums = np.empty((len(columns), total.size))
            _learned.product_sums(block, columns, self.ends, smooth, sums, threads)
            total += 2 * sums.sum(axis=0)
        return total.sum(keepdims=True) if self.isotropic else total


class CodedPart(FlatPart):
    """The same on blocks of `CodedRows`, whose groups of columns are codes."""

    def __init__(self, part: FlatPart, rows: Any, blocks: Integers) -> None:
        vars(self).update(vars(part))
        compact = rows[blocks.ravel()].compact.reshape(*blocks.shape, -1)
        self.rows, self.sample = rows, compact - compact[:, :1]
        n_numbers = rows.plain.size
        codes = np.moveaxis(compact[..., n_numbers:], 2, 0)
        self.differ = codes[:, :, :, None] != codes[:, :, None]
        group_of = np.full(part.varies.size, -1)
        group_of[part.varies] = part.group_of
        of_codes = [group_of[columns].max(keepdims=True) for columns in rows.columns]
        self.group_of_columns = np.concatenate([group_of[rows.plain], *of_codes])
        within = self.sample[..., :n_numbers].var(axis=1).mean(axis=0)
        self._bound(self._summed_by(within, self.differ.mean(axis=(1, 2, 3)), slice(None)))

    def _summed_by(self, numbers: Doubles, codes: Doubles, columns: Any) -> Doubles:
        """Return the sums over the compact columns of each group."""
        values, group_of = np.append(numbers, codes), self.group_of_columns[columns]
        there = group_of >= 0
        return np.asarray(np.bincount(group_of[there], values[there], self.middle.size), float)

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        form: Any = coded_form(self.kernel(theta), self.rows)
        ((term, (factor,)),) = [(t, t.factors) for t in form]
        self.factor = factor
        self.slopes = block_matrices(term, self.sample, dtype, sloped=True)
        self.slopes[self.slopes > STEEPEST] = 0.0
        return block_matrices(term, self.sample, dtype)

    def gradient(self, Q: Floats) -> Doubles:
        factor: Any = self.factor
        W, gaps = Q * self.slopes, np.asarray(factor.gaps)
        index, groups = np.split(np.asarray(factor.columns), [len(factor.columns) - gaps.size])
        scaled = self.sample[..., index] * factor.scale[: index.size]
        numbers = _slopes_of_blocks(W, scaled, factor) if index.size else index
        differ = self.differ[groups - self.rows.plain.size]
        codes = gaps * [float(np.vdot(W, different)) for different in differ]
        if factor.slope is not None:
            codes *= factor.slope.weight
        return self._summed_by(numbers, codes, factor.columns)


class SpherePart(LearnedPart):
    """A kernel of the unit sphere with its length, in radians.

    It is a function of the angle, interpolated from GRID angles at which its series is summed.
    These are pi u^2 for evenly spaced u, since kernels bend at 0.
    """

    def __init__(self, template: SphereKernel, sample: Doubles) -> None:
        self.template, self.dim = template, sample.shape[1]
        self.low = np.array([math.log(LEAST_ANGLE / MIDDLE_ANGLE)])
        self.high = np.array([math.log(MOST_ANGLE / MIDDLE_ANGLE)])
        self._set_sample(sample)

    def _set_sample(self, sample: Doubles) -> None:
        norms = row_norms(sample)
        check_unit_norms(norms, "the sample")
        units = unit_rows(sample, norms)
        halves = cdist(units, units) / 2
        np.minimum(halves, 1.0, out=halves)
        self.places = np.sqrt(2 * np.arcsin(halves) / math.pi)

    def on(self, X: Rows, rows: Integers) -> Self:
        other = copy.copy(self)
        other._set_sample(_sample(X, rows))
        return other

    def on_blocks(self, X: Rows, blocks: Integers) -> Self:
        other = copy.copy(self)
        other.places = np.stack([self.on(X, rows).places for rows in blocks])
        return other

    def lengths(self, theta: Doubles) -> float:
        return float(MIDDLE_ANGLE * np.exp(theta[0]))

    def kernel(self, theta: Doubles) -> Kernel:
        return self.template.with_lengths(self.lengths(theta))

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        kernel, grid = self.template.with_lengths(self.lengths(theta)), np.linspace(0, 1, GRID)
        angles = math.pi * grid**2
        self.slope = CubicSpline(grid, kernel.length_slope(np.cos(angles), self.dim))
        values: Doubles = CubicSpline(grid, kernel.at_angles(angles, self.dim))(self.places)
        np.einsum("...ii->...i", values)[...] = 1.0
        return values.astype(dtype, copy=False)

    def gradient(self, Q: Floats) -> Doubles:
        return np.array([np.vdot(Q, self.slope(self.places))])


class CombinedPart(LearnedPart):
    """A product or a weighted sum of kernels on columns of their own."""

    def __init__(
        self, kernel: Product | Sum, X: Rows, rows: Integers, names: Any, groups: Integers | None
    ) -> None:
        pairs = Product(kernel.parts).parts_of(X.shape[1], names)
        self.index = [index for index, _ in pairs]
        groups = np.arange(X.shape[1]) if groups is None else groups
        self.parts = [
            part_of(part, X[:, index], rows, None, groups[index]) for index, part in pairs
        ]
        self.weights = kernel.weights_of(len(pairs)) if isinstance(kernel, Sum) else None
        self.low = np.concatenate([part.low for part in self.parts])
        self.high = np.concatenate([part.high for part in self.parts])
        self._set_largest()

    def on(self, X: Rows, rows: Integers) -> Self:
        other = copy.copy(self)
        pairs = zip(self.parts, self.index, strict=True)
        other.parts = [part.on(X[:, index], rows) for part, index in pairs]
        other._set_largest()
        return other

    def on_blocks(self, X: Rows, blocks: Integers) -> Self:
        other = copy.copy(self)
        pairs = zip(self.parts, self.index, strict=True)
        here, blocks = _sample(X, blocks.ravel()), np.arange(blocks.size).reshape(blocks.shape)
        other.parts = [part.on_blocks(here[:, index], blocks) for part, index in pairs]
        other.low = np.concatenate([part.low for part in other.parts])
        return other

    def _set_largest(self) -> None:
        largest = np.array([part.largest for part in self.parts])
        self.largest = float(largest.prod() if self.weights is None else self.weights @ largest)

    def _pairs(self, theta: Doubles) -> list[tuple[LearnedPart, Doubles]]:
        """Return the parts, each with its own lengths."""
        ends = np.cumsum([part.low.size for part in self.parts])[:-1]
        return list(zip(self.parts, np.split(theta, ends), strict=True))

    def theta_of(self, scales: Doubles) -> Doubles:
        pairs = zip(self.parts, self.index, strict=True)
        return np.concatenate([part.theta_of(scales[index]) for part, index in pairs])

    def lengths(self, theta: Doubles) -> list[Any]:
        return [part.lengths(own) for part, own in self._pairs(theta)]

    def kernel(self, theta: Doubles) -> Kernel:
        kernels = [part.kernel(own) for part, own in self._pairs(theta)]
        pairs = list(zip(self.index, kernels, strict=True))
        return Product(pairs) if self.weights is None else Sum(pairs, self.weights)

    def matrix(self, theta: Doubles, dtype: Any) -> Floats:
        self.matrices = [part.matrix(own, dtype) for part, own in self._pairs(theta)]
        if self.weights is None:
            return np.asarray(np.prod(self.matrices, axis=0))
        return np.tensordot(self.weights, self.matrices, 1).astype(dtype, copy=False)

    def gradient(self, Q: Floats) -> Doubles:
        gradients = []
        for number, part in enumerate(self.parts):
            if self.weights is None:
                others = self.matrices[:number] + self.matrices[number + 1 :]
                gradients.append(part.gradient(Q * np.prod(others, axis=0)))
            else:
                gradients.append(self.weights[number] * part.gradient(Q))
        return np.concatenate(gradients)
