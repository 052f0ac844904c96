"""Kernels with learned lengthscales, by the exact marginal likelihood of some rows.

`learned_parts` computes kernel matrices as functions of the lengthscales, `marginal_likelihood` the
criterion that is minimised. The search goes from few rows to many. It starts on a quarter of the
rows, where an evaluation takes a sixty-fourth of the time. It chooses the smoothness on half of the
rows, and needs only a few steps on all of them, since it knows how the criterion curves.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone

from gzkcore._util.linalg import eigh
from gzkcore._util.memory import check_fits_dense
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Data, Doubles, Integers, Rows, Seed
from gzkcore._util.validation import (
    check_array,
    check_bool,
    check_choice,
    check_integer,
    check_lengths,
    check_some_weight,
    check_sparse,
    check_weights,
    dense,
    raise_no_target,
    raise_not_finite,
)
from gzkcore._util.warn import warn

from .aliases import as_kernel
from .base import Kernel, asks_targets
from .learned_parts import LearnedPart, part_of
from .marginal_likelihood import HOPELESS, SETTLED, Block, Criterion, SearchPoint
from .product import Product
from .shift_invariant import Matern, ShiftInvariantKernel
from .slopes import gradients
from .sum import Sum
from .transformed import Transformed
from .zonal import SphereMatern

__all__ = ["LearnedKernel", "learn_kernel"]

# `learn_kernel` looks at so many rows, unless it is told otherwise.
N_ROWS = 1000
# A search starts on a quarter of the rows if that is at least so many, else on half or on all.
FEWEST_ROWS = 250
# Candidates for the smoothness are compared on half of the rows, or on so many if that is more.
CHOICE_ROWS = 500
# The candidates for nu, in this order: each search starts from the best result so far.
SMOOTHNESS = (1.5, 0.5, 2.5, math.inf)
METRICS = (None, "agop")
# Lengths are refined on at most so many further blocks of rows.
MOST_BLOCKS = 8
# Outer products of gradients are averaged over at most so many rows.
MOST_GRADIENTS = 1 << 14


@dataclass(frozen=True)
class LearnedKernel:
    """A learned kernel with its lengthscales, the noise, and their likelihood.

    Attributes
    ----------
    kernel : Kernel
        Resolved: every parameter is a number.
    length_scale : float, ndarray of shape (n_features,) or list
        The learned lengthscales, 1 / (2 gamma)^(1/2) for the Gaussian; inf for columns that are
        constant on the rows used. For a product or sum a list with the lengthscales of each part,
        None for a part that learns none. With ``metric="agop"`` the lengthscale along each column.
        On the sphere in radians, (2 time)^(1/2) for `SphereHeat`.
    noise : float
        Variance of the noise of a row of weight 1, relative to the variance of the function; the
        alpha of `KernelRidge`. For a fit to all rows it is only a starting value: choose alpha by
        held-out rows.
    value : float
        Minus the logarithm of likelihood times priors, up to a constant. For the same rows and
        targets a lower value is more likely.
    evaluations : int
        Number of evaluations of the likelihood and its derivatives.
    rows : ndarray of int
        The rows that were used.
    """

    kernel: Kernel
    length_scale: Any
    noise: float
    value: float
    evaluations: int
    rows: Integers = field(repr=False)
    _end: SearchPoint = field(repr=False)


def learn_kernel(
    X: Data,
    y: ArrayLike,
    kernel: str | Kernel,
    *,
    n_rows: int = N_ROWS,
    refine: bool = False,
    metric: str | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: Seed = None,
) -> LearnedKernel:
    """Learn a kernel's lengthscales from rows with targets, by marginal likelihood.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The search starts from the standard deviations of the columns, which must be between 1e-150
        and 1e150. Sparse rows that are used are made dense.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Numbers of any size; several targets share the lengthscales, and each has its own variance.
        Or labels (text or booleans): each class becomes a target of +1 and -1. Classes that are
        numbers are treated as numbers: pass them as text, ``y.astype(str)``, if they have no order.
    kernel : str or Kernel
        `Gaussian`, `Matern`, `Exponential`, `RationalQuadratic`, `Laplacian` or `ProductMatern`;
        for rows of the unit sphere `SphereMatern` or `SphereHeat`; or a `Product` or `Sum` with
        such a part.
        Parameters that are "learn" (one lengthscale for each column) or "learn-isotropic" (one for
        all columns) are learned. If there is no such parameter, all lengthscales are learned, one
        for each column. ``Matern(nu="learn")`` tries nu = 1/2, 3/2, 5/2 and infinity,
        `SphereMatern` the first three.
    n_rows : int, default=1000
        >= 2, the number of rows that are used, at random. Time grows with its cube; 1,000 rows are
        nearly as good as more.
    refine : bool, default=False
        Whether the search continues with up to eight times as many additional rows, in blocks of
        n_rows that are treated as independent. Then the lengthscales depend less on which rows are
        drawn. Each step takes about nine times as long, and predictions may be better or worse.
    metric : {None, "agop"}, default=None
        "agop": after the lengthscales a linear map is learned, from the average gradient outer
        product of the posterior mean given the rows used, and the kernel is a `Transformed` kernel.
        Only for kernels of the distance. It helps if combinations of columns matter, and overfits
        otherwise: compare both on held-out rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0. The noise of a row is divided by its weight, as in `KernelRidge`; rows of
        weight 0 are ignored.
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the choice of rows.

    Returns
    -------
    LearnedKernel

    Notes
    -----
    BFGS minimises N of [`learned`](learned.md) in the logarithms of the lengthscales and of the
    noise. Normal priors keep the lengthscales of irrelevant columns finite. A step costs n_rows^3 +
    n_rows^2 (2 n_features + 30) multiply-adds. There are 20 to 40 steps on a quarter of the rows,
    5 to 30 on half of them for each nu, and 5 to 30 on all. Memory: eight matrices of n_rows^2
    numbers. BLAS runs on one thread, so that results do not depend on the number of threads.

    A column that is constant on these rows does not determine its lengthscale. It gets one so large
    that the column has no influence.

    See Also
    --------
    KernelOperator.gradient : The derivatives of products with a kernel on all rows.

    References
    ----------
    Rasmussen, Williams, Gaussian Processes for Machine Learning, 2006, chapter 5; Radhakrishnan,
    Beaglehole, Pandit, Belkin, Science 383 (2024), for "agop".

    Examples
    --------
    Only the first of three columns matters:

    >>> import numpy as np
    >>> from gzkcore import Matern, learn_kernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 3))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(300)
    >>> found = learn_kernel(X, y, Matern(1.5), random_state=0)
    >>> bool(found.length_scale[0] < 2 < 10 < found.length_scale[1:].min())
    True
    >>> found.kernel(X).shape
    (300, 300)
    """
    n_rows = check_integer("n_rows", n_rows, 2)
    names = list(X.columns) if hasattr(X, "columns") else None
    if isinstance(X, Kernel):
        raise TypeError(f"X={X!r} is a kernel; pass it last: learn_kernel(X, y, kernel)")
    check_sparse(X)
    rows: Rows = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    raise_not_finite(rows)
    refine = check_bool("refine", refine)
    check_choice("metric", metric, METRICS)
    check_lengths(rows, y)
    weight = check_weights(sample_weight, rows)
    if rows.shape[0]:
        check_some_weight(weight)
    examples = Examples(rows, checked_targets(y), weight, names)
    order = examples.shuffled(random_state)
    further = order[n_rows : (1 + MOST_BLOCKS) * n_rows] if refine else None
    result = learned(as_kernel(kernel), examples, order[:n_rows], further)
    return result if metric is None else _with_metric(result, examples, order, n_rows)


@dataclass(frozen=True)
class Examples:
    """Rows with checked targets, from which kernels are learned."""

    X: Rows
    y: NDArray[Any]
    weight: Doubles | None = None
    names: Sequence[str] | None = None  # of the columns
    groups: Integers | None = None  # a number for each column, see `part_of`

    @functools.cached_property
    def used(self) -> Integers:
        """Rows of positive weight."""
        return np.arange(self.X.shape[0]) if self.weight is None else np.flatnonzero(self.weight)

    @functools.cached_property
    def mean_weight(self) -> float:
        """Mean of the positive weights."""
        return 1.0 if self.weight is None else float(self.weight[self.used].mean())

    def shuffled(self, random_state: Seed = 0) -> Integers:
        """Return the rows of positive weight in random order."""
        return self.used[generator(random_state).permutation(self.used.size)]

    def part(self, kernel: Kernel, rows: Integers) -> LearnedPart:
        """Return the kernel on these rows, as a function of its lengths."""
        return part_of(kernel, self.X, rows, self.names, self.groups)

    def targets(self, rows: Integers) -> tuple[Doubles, Doubles | None]:
        """Return standardised targets of rows, and the mean weight over the weight of each."""
        weight = None if self.weight is None else self.weight[rows] / self.mean_weight
        return standard_targets(self.y, rows, weight), None if weight is None else 1.0 / weight


def learned(
    kernel: Kernel,
    examples: Examples,
    rows: Integers | None = None,
    further: Integers | None = None,
    *,
    start: LearnedKernel | None = None,
    settled: float = SETTLED,
    below: float = math.inf,
) -> LearnedKernel:
    """Learn the lengths of a kernel from checked examples, see `learn_kernel`.

    Parameters
    ----------
    kernel : Kernel
    examples : Examples
    rows : ndarray of int, optional
        The rows to learn from, in random order: the search starts on the first of them. None: all.
    further : ndarray of int, optional
        Further rows that the lengths are refined on.
    start : LearnedKernel, optional
        The search goes on from this result, which is of other rows of the same table.
    settled : float
        The last step lowers the criterion by less than this for each target of a row.
    below : float
        The search is given up where it is not expected to reach a lower value of the criterion.
    """
    rows = examples.shuffled() if rows is None else rows
    if rows.size < 2:
        raise ValueError(f"n_samples={rows.size} is too few to learn a kernel; pass 2 rows or more")
    check_fits_dense(examples.X[rows])
    if not asks_targets(kernel):
        kernel = _all_learned(kernel, examples.X.shape[1], examples.names)
    if not asks_targets(kernel):
        raise ValueError(
            f"kernel={kernel!r} has no lengths to learn; use Gaussian, Matern, Exponential, "
            "RationalQuadratic, Laplacian, SphereMatern or SphereHeat, or a Product or Sum with "
            "such a part"
        )
    search = _Search(candidates(kernel), examples, rows, settled)
    with limit_blas(1):  # whose bits depend on its threads
        search.run(None if start is None else start._end, below)
    check_hope(kernel, search.part, search.end)
    rows = search.rows
    if further is not None and further.size:
        with limit_blas(1):
            rows = search.refine(further)
    theta, part = search.end.theta, search.part
    return LearnedKernel(
        kernel=part.kernel(theta[:-1]),
        length_scale=part.lengths(theta[:-1]),
        noise=math.exp(theta[-1]) * examples.mean_weight,
        value=search.end.value,
        evaluations=search.evaluations,
        rows=rows,
        _end=search.end,
    )


def check_hope(kernel: Kernel, part: LearnedPart, end: SearchPoint) -> None:
    """Raise ValueError where a search has ended without one positive definite matrix."""
    if end.value >= HOPELESS:
        raise ValueError(
            f"kernel={kernel!r} has values up to {part.largest:.3g} on X, so that K plus "
            "the noise is singular to rounding; scale the columns of X, or the weights of a Sum"
        )


class _Search:
    """The search for the likeliest of some kernels and its lengths, from few rows to many."""

    end: SearchPoint  # of the likeliest kernel
    part: LearnedPart

    def __init__(
        self, kernels: Sequence[Kernel], examples: Examples, rows: Integers, settled: float
    ) -> None:
        self.kernels, self.examples, self.settled = kernels, examples, settled
        self.kernel, self.shuffled, self.rows = kernels[0], rows, np.sort(rows)
        self.evaluations = 0

    def run(self, start: SearchPoint | None, below: float) -> None:
        """Search on a quarter of the rows, on half of them and on all, or on all from a start."""
        examples, count = self.examples, self.rows.size
        if start is not None:
            n_lengths = examples.part(self.kernel, self.rows).low.size
            start = start if start.theta.size == n_lengths + 1 else None
        sizes = [count]
        if start is None:
            sizes = [size for size in (count // 4, count // 2) if size >= FEWEST_ROWS] + sizes
        # All kernels are compared on half of the rows; of few rows, on all.
        choice = max(0, np.searchsorted(sizes, max(CHOICE_ROWS, count // 2), "right") - 1)
        varying = _varying(examples.y[self.rows])
        for step, size in enumerate(sizes):
            rows = np.sort(self.shuffled[:size])
            if np.array_equal(_varying(examples.y[rows]), varying):
                kernels = self.kernels if step == choice else [self.kernel]
                start = self._compare(kernels, rows, start, below if size == count else math.inf)

    def _compare(
        self, kernels: Sequence[Kernel], rows: Integers, start: SearchPoint | None, below: float
    ) -> SearchPoint:
        """Choose the likeliest kernel on some rows; return the end of its search.

        Each search starts from the likeliest kernel before it. Columns that vary on all rows have
        lengths, even if they do not vary on these.
        """
        end = None
        for kernel in kernels:
            part = self.examples.part(kernel, self.rows)
            if rows.size < self.rows.size:
                part = part.on(self.examples.X, rows)
            criterion = Criterion([Block(part, *self.examples.targets(rows))])
            new = criterion.least(start, self.settled, below)
            self.evaluations += criterion.evaluations
            if end is None or new.value < end.value:
                self.kernel, self.part, self.end = kernel, part, new
                start = end = new
                below = min(below, end.value)
        return self.end

    def refine(self, further: Integers) -> Integers:
        """Go on with further rows, in blocks; return all rows."""
        n_blocks = -(-further.size // self.rows.size)
        blocks = [self.rows, *map(np.sort, np.array_split(further, n_blocks))]
        rows = np.concatenate(blocks)
        targets, spread = self.examples.targets(rows)
        parts = [self.part, *(self.part.on(self.examples.X, block) for block in blocks[1:])]
        ends = np.cumsum([block.size for block in blocks])[:-1]
        spreads = [None] * len(blocks) if spread is None else np.split(spread, ends)
        of_blocks = zip(parts, np.split(targets, ends), spreads, strict=True)
        criterion = Criterion([Block(*block) for block in of_blocks])
        self.end = criterion.least(self.end, self.settled)
        self.evaluations += criterion.evaluations
        return np.sort(rows)


def _varying(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which targets vary."""
    values = y.reshape(len(y), -1)
    varying: NDArray[np.bool_] = (values != values[:1]).any(axis=0)
    return varying


def learned_or_plain(kernel: Kernel, X: Rows, y: Any, names: Any, weight: Any) -> Kernel:
    """Return the learned kernel; with constant targets, the kernel that a search starts from."""
    examples = Examples(X, checked_targets(y), weight, names)
    try:
        return learned(kernel, examples, examples.shuffled()[:N_ROWS]).kernel
    except ConstantTargetsError as constant:
        warn(
            f"{constant.why}: its lengthscales are only starting values, about the spread of the "
            "columns",
            UserWarning,
        )
    rows = examples.used[:: -(-examples.used.size // N_ROWS)]
    part = examples.part(candidates(kernel)[0], rows)
    return part.kernel(np.zeros(part.low.size))


# ---- targets


class ConstantTargetsError(ValueError):
    """All targets are the same, so that no kernel is likelier than another."""

    def __init__(self, n_rows: int) -> None:
        self.why = f"y is constant on the {n_rows} rows used, so that no kernel can be learned"
        super().__init__(f"{self.why}; pass the lengths as numbers")


def checked_targets(y: Any) -> NDArray[Any]:
    """Return finite numbers or labels, one or a row of numbers for each row of X."""
    targets = np.asarray(y)
    if targets.dtype.kind == "O":
        try:
            targets = targets.astype(np.float64)
        except (TypeError, ValueError):
            targets = targets.astype(str)
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and targets.dtype.kind in "USb"):
        raise ValueError(
            f"y has shape {targets.shape}; pass one number, label, or row of numbers per row of X"
        )
    if targets.dtype.kind in "iuf":
        raise_no_target(targets)
    elif targets.dtype.kind not in "USb":
        raise TypeError(f"y has dtype {targets.dtype}; pass numbers or labels")
    return targets


def standard_targets(y: NDArray[Any], rows: Integers, weight: Doubles | None = None) -> Doubles:
    """Return checked targets of some rows with mean 0 and variance 1; classes are +1 against -1.

    The weights are those of these rows.
    """
    values = y[rows]
    are_labels = y.dtype.kind in "USb"
    if are_labels:
        targets = (values[:, None] == np.unique(values)).astype(np.float64)
    else:
        targets = values.reshape(rows.size, -1).astype(np.float64)
    largest = np.abs(targets).max(axis=0)
    targets /= np.where(largest > 0, largest, 1.0)  # squares beyond 1e154 would overflow
    varies = np.ptp(targets, axis=0) > 0
    if targets.shape[1] == 2 and are_labels:
        varies[1] = False  # the opposite of the first
    if not varies.any():
        raise ConstantTargetsError(rows.size)
    targets = targets[:, varies] - np.average(targets[:, varies], axis=0, weights=weight)
    return np.asarray(targets / np.sqrt(np.average(np.square(targets), axis=0, weights=weight)))


# ---- what is to be learned


def _all_learned(kernel: Kernel, width: int, names: Any) -> Kernel:
    """Return the kernel with the rule "learn" for the lengths of all its parts."""
    params: dict[str, Any]
    if isinstance(kernel, Product | Sum):
        pairs = Product(kernel.parts).parts_of(width, names)
        params = {"parts": [(index, _all_learned(part, len(index), None)) for index, part in pairs]}
    else:
        kernel.resolve(np.ones((1, width)))  # raises what is wrong with it
        params = dict.fromkeys((name for name in kernel.learnable if name != "nu"), "learn")
    ruled: Kernel = clone(kernel).set_params(**params)
    return ruled


def candidates(kernel: Kernel) -> list[Kernel]:
    """Return the kernel with each choice of the nu that are to be learned."""
    params = kernel.get_params(deep=True)
    choices: dict[str, list[float]] = {}
    for name, value in params.items():
        owner_name, _, last = name.rpartition("__")
        owner = params[owner_name] if owner_name else kernel
        if isinstance(owner, Matern | SphereMatern) and last == "nu" and value == "learn":
            finite = isinstance(owner, SphereMatern)
            choices[name] = [nu for nu in SMOOTHNESS if nu < math.inf or not finite]
    combinations = itertools.product(*choices.values())
    return [
        clone(kernel).set_params(**dict(zip(choices, nus, strict=True))) for nus in combinations
    ]


# ---- a linear map of the rows


def _with_metric(
    result: LearnedKernel, examples: Examples, order: Integers, n_rows: int
) -> LearnedKernel:
    """Return the kernel of linearly mapped rows, by the gradients of the mean with a kernel.

    The mean is that given the first `n_rows` rows of a random order; its gradients are averaged
    over up to MOST_GRADIENTS rows.
    """
    kernel, log_noise = result.kernel, float(result._end.theta[-1])
    if not isinstance(kernel, ShiftInvariantKernel) or kernel.distance_power != 2:
        raise ValueError(
            f"metric='agop' is only for kernels of the distance, and {kernel!r} is not one; use "
            "Gaussian, Matern, Exponential or RationalQuadratic, or metric=None"
        )
    rows = np.sort(order[:n_rows])
    targets, spread = examples.targets(rows)
    sample = dense(examples.X[rows]).astype(np.float64)
    with limit_blas(1):
        M = kernel(sample)
        M.flat[:: len(M) + 1] += math.exp(log_noise) * (1.0 if spread is None else spread)
        coef = cho_solve(cho_factor(M, overwrite_a=True), targets)
        metric = _agop(kernel, sample, coef, examples.X, order[:MOST_GRADIENTS])
        values, axes = eigh(metric)
        root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
        one_length = kernel.with_lengths(1.0).set_params(
            **{kernel.learnable[-1]: "learn-isotropic"}
        )
        part = part_of(one_length, sample @ root.T, np.arange(len(sample)))
        criterion = Criterion([Block(part, targets, spread)])
        theta, value, _ = criterion.least(SearchPoint(np.array([0.0, log_noise])))
    matrix = root / part.lengths(theta[:-1])
    with np.errstate(divide="ignore"):
        lengths = 1.0 / np.sqrt(np.square(matrix).sum(axis=0))
    return replace(
        result, kernel=Transformed(kernel.with_lengths(1.0), matrix), length_scale=lengths,
        noise=math.exp(theta[-1]) * examples.mean_weight, value=value,
        evaluations=result.evaluations + criterion.evaluations,
    )  # fmt: skip


def _agop(kernel: Kernel, sample: Doubles, coef: Doubles, X: Rows, rows: Integers) -> Doubles:
    """Return the average over rows of the outer products of gradients of k(x, sample) coef."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, rows.size, len(sample)):
        points = dense(X[rows[start : start + len(sample)]]).astype(np.float64)
        slopes = gradients(kernel, points, sample, coef)
        if slopes is None:
            raise ValueError(
                f"metric='agop' needs gradients, and {kernel!r} has none; use metric=None"
            )
        slopes = slopes.reshape(-1, X.shape[1])
        total += slopes.T @ slopes
    return total / rows.size
