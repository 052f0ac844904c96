"""Kernels whose lengths are learned: by the exact marginal likelihood of some rows.

With K the kernel matrix of m rows, M = K + noise I and targets y_q of covariance tau_q M,

    N = sum_q m / 2 log tau_q + T / 2 log det M + priors,    tau_q = y_q^T M^-1 y_q / m,

is least where the targets are most likely; log lengths and log noise have normal priors. With
a_q = M^-1 y_q and Q = sum_q a_q a_q^T / tau_q - T M^-1 its derivative is -1/2 sum_ij Q_ij dM_ij.

For a kernel f(r) of scaled rows x, dK_ij / dlog length_c = H_ij (x_ic - x_jc)^2, H = -f'(r) / r,
and with W = Q o H

    sum_ij W_ij (x_ic - x_jc)^2 = 2 sum_i (W 1)_i x_ic^2 - 2 x_c^T W x_c,

so that one product W [X 1], of m^2 dim multiply-adds, serves all columns. An evaluation takes m^3
besides: half of that or less for the factor of M, the rest for its inverse. In a product of kernels
a part's W has the matrices of the other parts for factors, in a sum its weight.

The search goes from few rows to many: it starts on a quarter of them, where an evaluation takes a
sixty-fourth of the time, tells one smoothness from another on half of them, and has a few steps
left to go on all.

The pole of H at r = 0 does no harm, since r^2 H goes to 0, but the expanded square would multiply
it by rounding errors: entries beyond STEEPEST are left out.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.utils import check_array, check_consistent_length

from gzkcore._util.linalg import cholesky, inverse_of, solve_factored
from gzkcore._util.memory import check_fits_dense
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Data, Doubles, Integers, Rows, Seed
from gzkcore._util.validation import check_integer, check_sparse, dense, raise_not_finite

from .aliases import as_kernel
from .base import LEARNED, Kernel, asks_targets
from .product import Product
from .products import kernel_matrix, slope_matrix
from .shift_invariant import Matern, ShiftInvariantKernel
from .sum import Sum
from .tile_form import ABSOLUTE

__all__ = ["LearnedKernel", "learn_kernel"]

N_ROWS = 1000
FEWEST_ROWS = 250  # that a search starts on
RUN = 64  # rows whose distances are computed at a time
SMOOTHNESS = (1.5, 0.5, 2.5, math.inf)  # candidates for nu, each starting from the best so far

# Of lengths in units of a column's standard deviation, and of the noise: where the search starts,
# how far it goes, and the normal priors of the logarithms.
SHORTEST, LONGEST = math.exp(-4), math.exp(8)
LENGTH_SPREAD = 1.5  # about sqrt(dim), where it starts
NOISE_START, NOISE_MIDDLE, NOISE_SPREAD = 0.05, 0.02, 3.0
LEAST_NOISE, MOST_NOISE = 1e-6, 10.0

MOST_STEPS = 60
SETTLED = 1e-6  # the relative change of N at which the search stops
FLAT = 1e-3  # or the size of the largest derivative over sqrt(m)

STEEPEST = 1e10
IGNORED = 1e30  # the length of a column that is constant: it has no influence

HOPELESS = 1e25  # the value where M is not positive definite to rounding


@dataclass(frozen=True)
class LearnedKernel:
    """What `learn_kernel` found.

    Attributes
    ----------
    kernel : Kernel
        Resolved: every parameter is a number.
    length_scale : float, ndarray of shape (n_features,) or list
        The lengths that were learned, 1 / (2 gamma)^(1/2) for the Gaussian; inf for columns that
        are constant on the rows looked at. Of a product or sum a list with those of each part, None
        for a part that learns none.
    noise : float
        Variance of the noise in units of that of the function, what `KernelRidge` calls alpha. For
        all rows it is a start at best: choose alpha by held-out rows.
    value : float
        Minus the logarithm of the likelihood and the priors, but for a constant: the lower, the
        likelier, for the same rows and targets.
    evaluations : int
        How often likelihood and derivatives were computed.
    rows : ndarray of int
        Which rows were looked at.
    """

    kernel: Kernel
    length_scale: Any
    noise: float
    value: float
    evaluations: int
    rows: Integers = field(repr=False)
    _theta: Doubles = field(repr=False)  # where the search ended


def learn_kernel(
    X: Data,
    y: ArrayLike,
    kernel: str | Kernel,
    *,
    n_rows: int = N_ROWS,
    random_state: Seed = None,
) -> LearnedKernel:
    """Learn a kernel's lengthscales from rows with targets, by marginal likelihood.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Columns of any size: the search starts from their standard deviations. Of sparse rows those
        looked at become dense.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Numbers, of any size; several targets share the lengths, and each has its own variance. Or
        labels, texts or booleans: each class becomes a target of +1 against -1. Classes that are
        numbers are taken for numbers: pass them as texts, ``y.astype(str)``, where they have no
        order.
    kernel : str or Kernel
        `Gaussian`, `Matern`, `Exponential`, `RationalQuadratic` or `Laplacian`, or a `Product` or
        `Sum` with such a part. Learned are the parameters that are "learn" (one length for each
        column) or "learn-isotropic" (one for all); where none is, all lengths, one for each column.
        ``Matern(nu="learn")`` tries nu = 1/2, 3/2, 5/2 and infinity.
    n_rows : int, default=1000
        >= 2, how many rows are looked at, at random. Time grows with its cube, and 1,000 are
        nearly as good as more.
    random_state : int, RandomState, Generator or None, default=None
        Of the choice of rows.

    Returns
    -------
    LearnedKernel

    Notes
    -----
    Minimises N of [`learned`](learned.md) by L-BFGS in the logarithms of the lengths and of the
    noise, with normal priors, which keep lengths of columns that do not matter finite. A step costs
    n_rows^3 + n_rows^2 (2 n_features + 30) multiply-adds. There are 20 to 40 on a quarter of the
    rows, 15 to 60 on half of them for each nu, and 10 to 40 on all; memory is eight
    matrices of n_rows^2 numbers. BLAS runs on one thread, so that bits don't depend on threads.

    A column that is constant on these rows says nothing of its length: it is given one so large
    that it has no influence.

    See Also
    --------
    KernelOperator.gradient : The derivatives of products with a kernel on all rows.

    References
    ----------
    Rasmussen, Williams, Gaussian Processes for Machine Learning, 2006, chapter 5.

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
    return learned(as_kernel(kernel), rows, y, n_rows, random_state, names)


def learned(
    kernel: Kernel,
    X: Rows,
    y: Any,
    n_rows: int = N_ROWS,
    random_state: Seed = 0,
    names: Sequence[str] | None = None,
    start: LearnedKernel | None = None,
) -> LearnedKernel:
    """Return what `learn_kernel` finds, for rows that were checked.

    `start` was learned of other rows of the same table: the search goes on from there.
    """
    check_consistent_length(X, y)
    order = generator(random_state).permutation(X.shape[0])[:n_rows]
    if order.size < 2:
        raise ValueError(f"n_samples={order.size}: a kernel is learned from 2 rows or more")
    check_fits_dense(X[order])
    kernel = kernel if asks_targets(kernel) else _all_learned(kernel, X.shape[1], names)
    if not asks_targets(kernel):
        raise ValueError(
            f"kernel={kernel!r} has no lengths to learn; use Gaussian, Matern, Exponential, "
            "RationalQuadratic or Laplacian, or a Product or Sum with such a part"
        )
    candidates = _smoothnesses(kernel)
    best = _Best(candidates[0], None if start is None else start._theta)
    sizes = [order.size]
    if start is None:
        sizes = [size for size in (order.size // 4, order.size // 2) if size >= FEWEST_ROWS] + sizes
    for step, size in enumerate(sizes):
        last = size == order.size
        chosen = np.sort(order[:size])
        if not last and not _vary_alike(X, y, chosen, order):
            continue
        # All are tried on the rows before the last, or on the last if there are no other.
        tried = candidates if step == max(0, len(sizes) - 2) else [best.candidate]
        with limit_blas(1):  # whose bits depend on its threads
            best = best.on(tried, X, y, chosen, names)
    theta, part = best.theta, best.part
    return LearnedKernel(
        part.kernel(theta[:-1]), part.lengths(theta[:-1]), math.exp(theta[-1]), best.value,
        best.evaluations, chosen, theta,
    )  # fmt: skip


@dataclass
class _Best:
    """The best kernel so far."""

    candidate: Kernel
    theta: Any = None  # None: where a search starts that knows nothing
    part: Any = None
    value: float = math.inf
    evaluations: int = 0

    def on(
        self, candidates: Sequence[Kernel], X: Rows, y: Any, chosen: Integers, names: Any
    ) -> "_Best":
        """Return the best of some candidates on some rows; each starts from the best before it."""
        targets = standard_targets(y, chosen)
        best = _Best(self.candidate, self.theta, evaluations=self.evaluations)
        for candidate in candidates:
            criterion = Criterion(part_of(candidate, X, chosen, names), targets)
            theta, value = criterion.least(best.theta)
            best.evaluations += criterion.evaluations
            if value < best.value:
                best = _Best(candidate, theta, criterion.part, value, best.evaluations)
        return best


def _vary_alike(X: Rows, y: Any, few: Integers, many: Integers) -> bool:
    """Return whether the same columns and targets vary on few rows as on many."""
    targets = np.asarray(y)
    return all(np.array_equal(_vary(values[few]), _vary(values[many])) for values in (X, targets))


def _vary(values: Any) -> NDArray[np.bool_]:
    values = dense(values).reshape(values.shape[0], -1)
    found: NDArray[np.bool_] = (values != values[:1]).any(axis=0)
    return found


# ---- targets


def standard_targets(y: Any, chosen: Integers) -> Doubles:
    """Return the targets of some rows, of mean 0 and variance 1; classes are +1 against -1."""
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
    if given.dtype.kind in "USb":
        given = given[chosen]
        targets = (given[:, None] == np.unique(given)).astype(np.float64)
    elif given.dtype.kind in "iuf":
        raise_not_finite(given, "y", "leave out rows without a target")
        targets = given[chosen].reshape(chosen.size, -1).astype(np.float64)
    else:
        raise TypeError(f"y has dtype {given.dtype}; pass numbers or labels")
    varies = np.ptp(targets, axis=0) > 0
    if targets.shape[1] == 2 and given.dtype.kind in "USb":
        varies[1] = False  # the opposite of the first
    if not varies.any():
        raise ValueError(
            f"y is constant on the {chosen.size} rows looked at, and says nothing of the kernel; "
            "pass the lengths as numbers"
        )
    targets = targets[:, varies] - targets[:, varies].mean(axis=0)
    return np.asarray(targets / np.sqrt(np.square(targets).mean(axis=0)))


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


def _smoothnesses(kernel: Kernel) -> list[Kernel]:
    """Return the kernel with each choice of nu that is to be tried."""
    params = kernel.get_params(deep=True)
    open_names = []
    for name, value in params.items():
        owner, _, last = name.rpartition("__")
        whose = params[owner] if owner else kernel
        if isinstance(whose, Matern) and last == "nu" and value == "learn":
            open_names.append(name)
    choices = itertools.product(SMOOTHNESS, repeat=len(open_names))
    return [clone(kernel).set_params(**dict(zip(open_names, nus, strict=True))) for nus in choices]


def part_of(kernel: Kernel, X: Rows, chosen: Integers, names: Any = None) -> "Part":
    """Return what a kernel has to learn, of rows X and those of them that are looked at."""
    if isinstance(kernel, Product | Sum):
        return Parts(kernel, X, chosen, names)
    sample = dense(X[chosen]).astype(np.float64)
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
        return Lengths(kernel, sample, isotropic="learn" not in rules.values())
    return Fixed(kernel.resolve(X), sample)


class Part:
    """A kernel on some rows as a function of theta, logarithms of lengths about their middles."""

    low: Doubles  # (n,), where n is the number of lengths, and the middle is 0
    high: Doubles

    def kernel(self, theta: Doubles) -> Kernel:
        """Return the resolved kernel."""
        raise NotImplementedError

    def lengths(self, theta: Doubles) -> Any:
        """Return its lengths, None if it has none to learn."""
        raise NotImplementedError

    def matrix(self, theta: Doubles) -> Doubles:
        """Return K, and remember what the gradient there needs."""
        raise NotImplementedError

    def gradient(self, Q: Doubles) -> Doubles:
        """Return sum_ij Q_ij dK_ij / dtheta for a symmetric Q, whose diagonal is of no matter."""
        raise NotImplementedError


class Fixed(Part):
    """A resolved kernel."""

    def __init__(self, kernel: Kernel, sample: Doubles) -> None:
        self._kernel, self._matrix = kernel, kernel_matrix(kernel, sample)
        self.low = self.high = np.empty(0)

    def kernel(self, theta: Doubles) -> Kernel:
        return self._kernel

    def lengths(self, theta: Doubles) -> None:
        return None

    def matrix(self, theta: Doubles) -> Doubles:
        return self._matrix

    def gradient(self, Q: Doubles) -> Doubles:
        return np.empty(0)


class Lengths(Part):
    """A shift-invariant kernel with one length, or one for each column that varies."""

    def __init__(self, given: ShiftInvariantKernel, sample: Doubles, isotropic: bool) -> None:
        self.given, self.sample, self.isotropic = given, sample, isotropic
        self.varies = np.ptp(sample, axis=0) > 0
        dim = np.count_nonzero(self.varies)
        if not dim:
            raise ValueError(
                f"all columns of X are constant on the {len(sample)} rows looked at, and "
                f"{given!r} has no lengths to learn; leave such columns out"
            )
        self.mean, spread = sample.mean(axis=0), sample.std(axis=0)[self.varies]
        typical = math.sqrt(np.square(spread).mean()) * np.ones(1) if isotropic else spread
        self.middle = math.sqrt(dim) * typical
        self.low = np.full(self.middle.size, math.log(SHORTEST / math.sqrt(dim)))
        self.high = np.full(self.middle.size, math.log(LONGEST / math.sqrt(dim)))

    def lengths(self, theta: Doubles) -> float | Doubles:
        found = self.middle * np.exp(theta)
        if self.isotropic:
            return float(found[0])
        full = np.full(self.varies.size, np.inf)
        full[self.varies] = found
        return full

    def kernel(self, theta: Doubles) -> Kernel:
        lengths = self.lengths(theta)
        kernel = self.given.with_lengths(
            lengths if self.isotropic else np.minimum(lengths, IGNORED)
        )
        return kernel.resolve(self.sample)

    def matrix(self, theta: Doubles) -> Doubles:
        kernel = self.kernel(theta)
        ((term, (factor,)),) = [(t, t.factors) for t in kernel.tile_form(self.varies.size) or ()]
        self.factor, self.slopes = factor, slope_matrix(term, 0, self.sample)
        self.slopes[self.slopes > STEEPEST] = 0.0
        self.scaled = ((self.sample - self.mean) * factor.scale)[:, self.varies]
        return kernel_matrix(kernel, self.sample)

    def gradient(self, Q: Doubles) -> Doubles:
        W, x = Q * self.slopes, self.scaled
        if self.factor.metric == ABSOLUTE:
            each = np.array([_sum_of_distances(W, c) for c in x.T])
        else:
            of_x = W @ np.column_stack([x, np.ones(len(x))])
            each = 2 * (of_x[:, -1] @ x**2 - np.einsum("ij,ij->j", x, of_x[:, :-1]))
        if self.factor.slope is not None:
            each *= self.factor.slope.weight
        return each.sum(keepdims=True) if self.isotropic else each


def _sum_of_distances(W: Doubles, x: Doubles) -> float:
    """Return sum_ij W_ij |x_i - x_j|, by runs of rows that stay in the cache."""
    total, held = 0.0, np.empty((RUN, x.size))
    for start in range(0, x.size, RUN):
        rows = slice(start, start + RUN)
        apart = np.subtract.outer(x[rows], x, out=held[: x[rows].size])
        total += float(np.vdot(W[rows], np.abs(apart, out=apart)))
    return total


class Parts(Part):
    """A product or a weighted sum of kernels on columns of their own."""

    def __init__(self, given: Product | Sum, X: Rows, chosen: Integers, names: Any) -> None:
        pairs = Product(given.parts).parts_of(X.shape[1], names)
        self.index = [index for index, _ in pairs]
        self.parts = [part_of(kernel, X[:, index], chosen) for index, kernel in pairs]
        self.weights = given.weights_of(len(pairs)) if isinstance(given, Sum) else None
        self.low = np.concatenate([part.low for part in self.parts])
        self.high = np.concatenate([part.high for part in self.parts])

    def _each(self, theta: Doubles) -> list[tuple[Part, Doubles]]:
        ends = np.cumsum([part.low.size for part in self.parts])[:-1]
        return list(zip(self.parts, np.split(theta, ends), strict=True))

    def lengths(self, theta: Doubles) -> list[Any]:
        return [part.lengths(own) for part, own in self._each(theta)]

    def kernel(self, theta: Doubles) -> Kernel:
        kernels = [part.kernel(own) for part, own in self._each(theta)]
        pairs = list(zip(self.index, kernels, strict=True))
        return Product(pairs) if self.weights is None else Sum(pairs, self.weights)

    def matrix(self, theta: Doubles) -> Doubles:
        self.matrices = [part.matrix(own) for part, own in self._each(theta)]
        if self.weights is None:
            return np.asarray(np.prod(self.matrices, axis=0))
        return np.asarray(np.tensordot(self.weights, self.matrices, 1))

    def gradient(self, Q: Doubles) -> Doubles:
        found = []
        for number, part in enumerate(self.parts):
            if self.weights is None:
                others = self.matrices[:number] + self.matrices[number + 1 :]
                found.append(part.gradient(Q * np.prod(others, axis=0)))
            else:
                found.append(self.weights[number] * part.gradient(Q))
        return np.concatenate(found)


# ---- the criterion


class Criterion:
    """N of the head of this file and its gradient, for theta with the logarithm of the noise last.

    Parameters
    ----------
    part : Part
    targets : ndarray of shape (m, n_targets)
    """

    def __init__(self, part: Part, targets: Doubles) -> None:
        self.part, self.targets, self.evaluations = part, targets, 0

    def __call__(self, theta: Doubles) -> tuple[float, Doubles]:
        self.evaluations += 1
        y, noise = self.targets, math.exp(theta[-1])
        m, n_targets = y.shape
        M = self.part.matrix(theta[:-1]).copy()
        M.flat[:: m + 1] += noise
        try:
            root = cholesky(M)
        except LinAlgError:
            return HOPELESS, np.zeros(theta.size)
        value = n_targets * float(np.log(root.diagonal()).sum())
        a = solve_factored(root, y)
        tau = np.einsum("iq,iq->q", y, a) / m
        value += m / 2 * float(np.log(tau).sum())
        Q = inverse_of(root)
        Q *= -n_targets
        Q += (a / tau) @ a.T
        trace = float(np.trace(Q))
        prior = theta - math.log(NOISE_MIDDLE) * (np.arange(theta.size) == theta.size - 1)
        spread = np.append(np.full(theta.size - 1, LENGTH_SPREAD), NOISE_SPREAD)
        gradient = np.append(self.part.gradient(Q), noise * trace)
        value += float(np.square(prior / spread).sum()) / 2
        return value, prior / spread**2 - gradient / 2

    def least(self, start: Doubles | None = None) -> tuple[Doubles, float]:
        """Return where N is least, and N there; a start from rows of other columns is no use."""
        if start is None or start.size != self.part.low.size + 1:
            start = np.append(np.zeros(self.part.low.size), math.log(NOISE_START))
        low = np.append(self.part.low, math.log(LEAST_NOISE))
        high = np.append(self.part.high, math.log(MOST_NOISE))
        found = minimize(
            self, start, method="L-BFGS-B", jac=True, bounds=np.column_stack([low, high]),
            options={
                "maxiter": MOST_STEPS, "ftol": SETTLED, "gtol": FLAT * math.sqrt(len(self.targets))
            },
        )  # fmt: skip
        return found.x, float(found.fun)
