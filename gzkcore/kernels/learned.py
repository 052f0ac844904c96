"""Kernels with learned lengthscales, by the exact marginal likelihood of some rows.

`learned_parts` computes kernel matrices as functions of the lengthscales, `marginal_likelihood` the
criterion that is minimised. The search goes from few rows to many. It starts on a quarter of the
rows, where an evaluation takes a sixty-fourth of the time. It chooses the smoothness on half of the
rows, and needs only a few steps on all of them, since it knows how the criterion curves.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from .learned_parts import Part, part_of
from .marginal_likelihood import HOPELESS, SETTLED, Block, Criterion, Place
from .product import Product
from .shift_invariant import Matern, ShiftInvariantKernel
from .slopes import gradients
from .sum import Sum
from .transformed import Transformed
from .zonal import SphereMatern

__all__ = ["LearnedKernel", "learn_kernel"]

N_ROWS = 1000
FEWEST_ROWS = 250  # that a search starts on
CHOICE_ROWS = 500  # that tell smoothness
SMOOTHNESS = (1.5, 0.5, 2.5, math.inf)  # candidates for nu, each starting from the best so far
METRICS = (None, "agop")
MOST_BLOCKS = 8  # of as many rows again, that lengths are refined on


@dataclass(frozen=True)
class LearnedKernel:
    """What `learn_kernel` found: the kernel, its lengthscales and the noise, with their likelihood.

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
    _place: Place = field(repr=False)  # where the search ended


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
        `Gaussian`, `Matern`, `Exponential`, `RationalQuadratic` or `Laplacian`; for rows of the
        unit sphere `SphereMatern` or `SphereHeat`; or a `Product` or `Sum` with such a part.
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
    check_sparse(X)
    rows: Rows = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    raise_not_finite(rows)
    check_choice("metric", metric, METRICS)
    check_lengths(rows, y)
    weight = check_weights(sample_weight, rows)
    if rows.shape[0]:
        check_some_weight(weight)
    return learned(
        as_kernel(kernel), rows, checked_targets(y), n_rows, random_state, names,
        refine=check_bool("refine", refine), weight=weight, metric=metric,
    )  # fmt: skip


def learned(
    kernel: Kernel,
    X: Rows,
    y: Any,
    n_rows: int = N_ROWS,
    random_state: Seed = 0,
    names: Sequence[str] | None = None,
    start: LearnedKernel | None = None,
    *,
    refine: bool = False,
    weight: Doubles | None = None,
    metric: str | None = None,
    settled: float = SETTLED,
    groups: Integers | None = None,
    below: float = math.inf,
) -> LearnedKernel:
    """Return what `learn_kernel` finds, for rows and targets that were checked.

    `start` was learned of other rows of the same table: the search goes on from there. It ends with
    a step that the criterion falls less by than `settled` for each target of a row. Columns of one
    of the `groups` share a length, see `part_of`. It is given up where it is not expected to reach
    a value `below` another one on these rows.
    """
    table = _Table(X, y, weight, names, settled, groups)
    order = table.used[generator(random_state).permutation(table.used.size)]
    few = order[:n_rows]
    if few.size < 2:
        raise ValueError(f"n_samples={few.size} is too few to learn a kernel; pass 2 rows or more")
    check_fits_dense(X[few])
    kernel = kernel if asks_targets(kernel) else _all_learned(kernel, X.shape[1], names)
    if not asks_targets(kernel):
        raise ValueError(
            f"kernel={kernel!r} has no lengths to learn; use Gaussian, Matern, Exponential, "
            "RationalQuadratic, Laplacian, SphereMatern or SphereHeat, or a Product or Sum with "
            "such a part"
        )
    begun = None if start is None else start._place
    best, chosen = table.best_of(candidates(kernel), few, begun, below)
    if best.place.value >= HOPELESS:
        raise ValueError(
            f"kernel={kernel!r} has values up to {best.part.largest:.3g} on X, so that K plus the "
            "noise is singular to rounding; scale the columns of X, or the weights of a Sum"
        )
    looked_at, more = chosen, order[n_rows : (1 + MOST_BLOCKS) * n_rows]
    if refine and more.size:
        best, looked_at = table.refined(best, chosen, more)
    place, part = best.place, best.part
    theta = place.theta
    found: Kernel = part.kernel(theta[:-1])
    lengths, value, noise = part.lengths(theta[:-1]), place.value, math.exp(theta[-1])
    evaluations = best.evaluations
    if metric is not None:
        with limit_blas(1):
            block = table.block(part, chosen)
            found, lengths, noise, value, more_evaluations = mapped(
                found, block, X, order, chosen, noise
            )
            evaluations += more_evaluations
    return LearnedKernel(found, lengths, noise * table.unit, value, evaluations, looked_at, place)


class _Table:
    """Rows with targets and weights, of which some are looked at."""

    def __init__(
        self,
        X: Rows,
        y: Any,
        weight: Doubles | None,
        names: Any,
        settled: float,
        groups: Integers | None,
    ) -> None:
        self.X, self.y = X, y
        self.names, self.settled, self.groups = names, settled, groups
        self.used = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
        self.unit = 1.0 if weight is None else float(weight[self.used].mean())
        self.weight = None if weight is None else weight / self.unit

    def block(self, part: Part, rows: Integers) -> Block:
        """Return rows with their targets and weights."""
        weight = None if self.weight is None else self.weight[rows]
        targets = standard_targets(self.y, rows, weight)
        return Block(part, targets, None if weight is None else 1.0 / weight)

    def best_of(
        self, candidates: Sequence[Kernel], order: Integers, start: Place | None, below: float
    ) -> "tuple[_Best, Integers]":
        """Return the best kernel, and the rows that it was found on, from few rows to many."""
        every = np.sort(order)
        if start is not None:
            part = part_of(candidates[0], self.X, every, self.names, self.groups)
            start = start if start.theta.size == part.low.size + 1 else None
        best, sizes = _Best(candidates[0], start), [order.size]
        if start is None:
            quarters = (order.size // 4, order.size // 2)
            sizes = [size for size in quarters if size >= FEWEST_ROWS] + sizes
        # All are tried on half of the rows, or on all of few.
        trial = max(0, np.searchsorted(sizes, max(CHOICE_ROWS, order.size // 2), "right") - 1)
        chosen = every
        for step, size in enumerate(sizes):
            chosen = np.sort(order[:size])
            if not np.array_equal(_vary(self.y[chosen]), _vary(self.y[every])):
                continue
            tried = candidates if step == trial else [best.candidate]
            with limit_blas(1):  # whose bits depend on its threads
                best = best.on(
                    tried, self, every, chosen, below if size == order.size else math.inf
                )
        return best, chosen

    def refined(self, best: "_Best", chosen: Integers, more: Integers) -> "tuple[_Best, Integers]":
        """Go on with more rows, in blocks; return the best there, and all rows."""
        n_blocks = -(-more.size // chosen.size)
        rows = [chosen, *map(np.sort, np.array_split(more, n_blocks))]
        every = np.concatenate(rows)
        whole = self.block(best.part, every)
        parts = [best.part, *(best.part.on(self.X, block) for block in rows[1:])]
        ends = np.cumsum([block.size for block in rows])[:-1]
        spreads = [None] * len(rows) if whole.spread is None else np.split(whole.spread, ends)
        targets = np.split(whole.targets, ends)
        criterion = Criterion([Block(*each) for each in zip(parts, targets, spreads, strict=True)])
        with limit_blas(1):
            place = criterion.least(best.place, self.settled)
        evaluations = best.evaluations + criterion.evaluations
        return _Best(best.candidate, place, best.part, evaluations), np.sort(every)


@dataclass
class _Best:
    """The best kernel so far."""

    candidate: Kernel
    place: Any = None  # None: where a search starts that knows nothing
    part: Any = None  # None: of other rows
    evaluations: int = 0

    def on(
        self,
        candidates: Sequence[Kernel],
        table: _Table,
        every: Integers,
        chosen: Integers,
        below: float,
    ) -> "_Best":
        """Return the best of some candidates on some rows; each starts from the best before it.

        Columns that vary on every row have lengths, even where they don't vary on those chosen.
        """
        best = _Best(self.candidate, self.place, evaluations=self.evaluations)
        for candidate in candidates:
            part = part_of(candidate, table.X, every, table.names, table.groups)
            part = part if chosen.size == every.size else part.on(table.X, chosen)
            criterion = Criterion([table.block(part, chosen)])
            below = below if best.part is None else min(below, best.place.value)
            place = criterion.least(best.place, table.settled, below)
            best.evaluations += criterion.evaluations
            if best.part is None or place.value < best.place.value:
                best = _Best(candidate, place, part, best.evaluations)
        return best


def _vary(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which targets vary."""
    values = y.reshape(len(y), -1)
    found: NDArray[np.bool_] = (values != values[:1]).any(axis=0)
    return found


def learned_or_plain(kernel: Kernel, X: Rows, y: Any, names: Any, weight: Any) -> Kernel:
    """Return what is learned of a kernel; of constant targets, the lengths a search starts from."""
    try:
        return learned(kernel, X, checked_targets(y), names=names, weight=weight).kernel
    except ConstantTargetsError as constant:
        warn(
            f"{constant.why}: its lengthscales are only starting values, about the spread of the "
            "columns",
            UserWarning,
        )
    rows = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
    part = part_of(candidates(kernel)[0], X, rows[:: -(-rows.size // N_ROWS)], names)
    return part.kernel(np.zeros(part.low.size))


# ---- targets


class ConstantTargetsError(ValueError):
    """All targets are the same, so that no kernel is likelier than another."""

    def __init__(self, n_rows: int) -> None:
        self.why = f"y is constant on the {n_rows} rows used, so that no kernel can be learned"
        super().__init__(f"{self.why}; pass the lengths as numbers")


def checked_targets(y: Any) -> NDArray[Any]:
    """Return finite numbers or labels, one or a row of numbers for each row of X."""
    given = np.asarray(y)
    if given.dtype.kind == "O":
        try:
            given = given.astype(np.float64)
        except (TypeError, ValueError):
            given = given.astype(str)
    if given.ndim not in (1, 2) or (given.ndim == 2 and given.dtype.kind in "USb"):
        raise ValueError(
            f"y has shape {given.shape}; pass one number, label, or row of numbers per row of X"
        )
    if given.dtype.kind in "iuf":
        raise_no_target(given)
    elif given.dtype.kind not in "USb":
        raise TypeError(f"y has dtype {given.dtype}; pass numbers or labels")
    return given


def standard_targets(
    given: NDArray[Any], chosen: Integers, weight: Doubles | None = None
) -> Doubles:
    """Return checked targets of some rows, of mean 0 and variance 1; classes are +1 against -1.

    `weight` has those of the rows chosen.
    """
    some = given[chosen]
    are_labels = given.dtype.kind in "USb"
    if are_labels:
        targets = (some[:, None] == np.unique(some)).astype(np.float64)
    else:
        targets = some.reshape(chosen.size, -1).astype(np.float64)
    largest = np.abs(targets).max(axis=0)
    targets /= np.where(largest > 0, largest, 1.0)  # squares beyond 1e154 would overflow
    varies = np.ptp(targets, axis=0) > 0
    if targets.shape[1] == 2 and are_labels:
        varies[1] = False  # the opposite of the first
    if not varies.any():
        raise ConstantTargetsError(chosen.size)
    targets = targets[:, varies] - np.average(targets[:, varies], axis=0, weights=weight)
    return np.asarray(targets / np.sqrt(np.average(np.square(targets), axis=0, weights=weight)))


# ---- what is to be learned


def _all_learned(kernel: Kernel, width: int, names: Any) -> Kernel:
    """Return a kernel of whose parts all lengths are to be learned."""
    learned: Kernel
    if isinstance(kernel, Product | Sum):
        given = Product(kernel.parts).parts_of(width, names)
        parts = [(index, _all_learned(part, len(index), None)) for index, part in given]
        learned = clone(kernel).set_params(parts=parts)
        return learned
    kernel.resolve(np.ones((1, width)))  # raises what is wrong with it
    lengths = [name for name in kernel.learnable if name != "nu"]
    learned = clone(kernel).set_params(**dict.fromkeys(lengths, "learn"))
    return learned


def candidates(kernel: Kernel) -> list[Kernel]:
    """Return the kernel with each choice of nu that is to be tried."""
    params = kernel.get_params(deep=True)
    open_names: dict[str, list[float]] = {}
    for name, value in params.items():
        owner, _, last = name.rpartition("__")
        whose = params[owner] if owner else kernel
        if isinstance(whose, Matern | SphereMatern) and last == "nu" and value == "learn":
            finite = isinstance(whose, SphereMatern)
            open_names[name] = [nu for nu in SMOOTHNESS if nu < math.inf or not finite]
    choices = itertools.product(*open_names.values())
    return [clone(kernel).set_params(**dict(zip(open_names, nus, strict=True))) for nus in choices]


MOST_ROWS = 1 << 14  # that gradients are averaged over


def mapped(
    kernel: Kernel, block: Block, X: Rows, order: Integers, chosen: Integers, noise: float
) -> tuple[Kernel, Doubles, float, float, int]:
    """Return a kernel of mapped rows, its length along each column, noise, N, and evaluations.

    Parameters
    ----------
    kernel : Kernel
        Resolved, with the lengths that were learned.
    block : Block
        The rows looked at.
    X : {ndarray, CSR} of shape (n_samples, n_features)
    order : ndarray of int
        Rows in a random order, of which the first are averaged over.
    chosen : ndarray of int
        The rows looked at.
    noise : float
        As it was learned.
    """
    if not isinstance(kernel, ShiftInvariantKernel) or kernel.distance_power != 2:
        raise ValueError(
            f"metric='agop' is only for kernels of the distance, and {kernel!r} is not one; use "
            "Gaussian, Matern, Exponential or RationalQuadratic, or metric=None"
        )
    sample = dense(X[chosen]).astype(np.float64)
    metric = _agop(kernel, block, sample, X, order[:MOST_ROWS], noise)
    values, axes = eigh(metric)
    root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    rule = {kernel.learnable[-1]: "learn-isotropic"}
    given = kernel.with_lengths(1.0).set_params(**rule)
    part = part_of(given, sample @ root.T, np.arange(len(sample)))
    criterion = Criterion([block._replace(part=part)])
    theta, value, _ = criterion.least(Place(np.array([0.0, math.log(noise)])))
    matrix = root / part.lengths(theta[:-1])
    with np.errstate(divide="ignore"):
        lengths = 1.0 / np.sqrt(np.square(matrix).sum(axis=0))
    found = Transformed(kernel.with_lengths(1.0), matrix)
    return found, lengths, math.exp(theta[-1]), value, criterion.evaluations


def _agop(
    kernel: Kernel, block: Block, sample: Doubles, X: Rows, rows: Integers, noise: float
) -> Doubles:
    """Return the average over rows of the outer products of gradients of the mean."""
    M = kernel(sample)
    M.flat[:: len(M) + 1] += noise if block.spread is None else noise * block.spread
    coef = cho_solve(cho_factor(M, overwrite_a=True), block.targets)
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, rows.size, len(sample)):
        here = dense(X[rows[start : start + len(sample)]]).astype(np.float64)
        found = gradients(kernel, here, sample, coef)
        if found is None:
            raise ValueError(
                f"metric='agop' needs gradients, and {kernel!r} has none; use metric=None"
            )
        each = found.reshape(-1, X.shape[1])
        total += each.T @ each
    return total / rows.size
