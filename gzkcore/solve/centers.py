"""Ridge regression on the kernel at some centres, for more rows than the whole kernel takes.

    minimise  sum_i w_i (y_i - sum_m c_m k(x_i, z_m))^2 + alpha c^T K_MM c.

With K_MM = T^T T and b = T c this is the system of `normal_equations` for the features K_nM T^-1,
which are Nystrom features up to a rotation:

    (G + alpha I) b = T^-T K_Mn W y,    G = T^-T K_Mn W K_nM T^-1.

Conjugate gradients solve it. Each step reads the rows once and computes the values of the kernel
again, so that K_nM is never stored. The preconditioner is A^T A = G_S + alpha I, where G_S is an
estimate of G from a sample of the rows. If the sample is the centres, G_S is T T^T n / M.

Values of the kernel are in double precision. In single precision T would need a thousandth of k(x,
x) on the diagonal of K_MM, which smooths too much (measured for a Gaussian: twice the error).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.sparse import issparse
from sklearn.utils import gen_batches

from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Floats, Integers, Seed
from gzkcore._util.validation import (
    check_integer,
    check_matrix,
    check_not_negatives,
    check_some_weight,
    dense,
)
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.products import KernelOperator
from gzkcore.passes.kernel_passes import PassedRows, Passes, Sums
from gzkcore.rows.survey import without_zeros

from .preconditioner import Preconditioner
from .solve import Listener, NotPositiveDefinite, Solution, conjugate_gradients, not_finite

__all__ = ["CentersSolution", "FactoredGram", "solve_centers"]

# The rows of an array of at most so many bytes are sorted into tiles once, not in every step.
IN_MEMORY_BYTES = 1 << 30
PART_ROWS = 2048  # So many rows of the sample are worked on at a time.
MOST_JITTER = 1e-6  # The jitter is at most this share of the largest k(x, x).

# The more rows in the sample, the fewer steps, nearly in proportion: with ROOTS sqrt(n) rows the
# sample costs as much as the steps, whatever M is (with 30e9 flops and 4.5e9 values of the kernel a
# second). It has at least LEAST_SAMPLE M rows, unless the centres are among them, and at most
# MOST_SAMPLE M.
ROOTS, LEAST_SAMPLE, MOST_SAMPLE = 16, 4, 8


@dataclass
class CentersSolution(Solution):
    """The result of `solve_centers`: a `Solution`, whose residual is that of the system for b.

    Attributes
    ----------
    centers : ndarray of shape (n_centers, n_features)
    coef : ndarray of shape (n_centers, n_columns)
        Predictions are K(X, centers) @ coef + intercept.
    intercept : ndarray of shape (n_columns,)
    jitter : float
        The number added to the diagonal of K_MM, so that it has a Cholesky factor, about its
        rounding error. The penalty of each squared coefficient grows by alpha times this number.
    least : ndarray of shape (n_columns,)
        The minimum of the objective.
    n_rows : int
        Rows of positive weight.
    total : float
        The sum of their weights.
    """

    centers: Floats
    intercept: Doubles
    jitter: float
    least: Doubles
    n_rows: int
    total: float


def solve_centers(
    kernel: Kernel,
    passes: Passes,
    centers: int | ArrayLike,
    alphas: ArrayLike,
    *,
    fit_intercept: bool = False,
    tol: float = 1e-3,
    max_iter: int = 1000,
    random_state: Seed = None,
    progress: Listener | None = None,
    checkpoint: Any = None,
) -> CentersSolution:
    """Solve the kernel ridge regressions of some centres, several targets and alphas at once.

    Parameters
    ----------
    kernel : Kernel
        Every parameter a number.
    passes : Passes
        Over rows, targets of shape (n_samples,) or (n_samples, n_targets), and weights.
    centers : int or array-like of shape (n_centers, n_features)
        The number of rows to choose uniformly; or the centres, which may be equal.
    alphas : array-like of shape (n_targets,)
        >= 0, one for each target.
    fit_intercept : bool, default=False
        Whether to add a constant, which is not penalised.
    tol : float, default=1e-3
        > 0 and < 1, the norm of the residual relative to that of the right-hand side.
    max_iter : int, default=1000
        The most steps.
    random_state : int, RandomState, Generator or None, default=None
    progress, checkpoint : optional
        As `conjugate_gradients` takes them.

    Returns
    -------
    CentersSolution
        The caller must report columns that are not `converged`.

    Notes
    -----
    For n rows, M centres and k columns a step takes 2 n M values of the kernel and 4 n M k
    operations. Before the first step T takes M^3 / 3 operations, each different alpha M^3 / 3, and
    a sample of m rows 2 m M^2. Memory: 8 M^2 bytes for T and for each different alpha, and 8 M^2
    more while they are computed. Centres are chosen among all rows of an array, or among a sample
    of up to 16,384 rows of a source.

    Uniform centres are the cheapest. On 36,000 rows of kin40k with 1,000 and 3,000 centres (one
    split) the errors with other rules were between 0.3 % larger and 6 % smaller, while the error of
    a single rule varied by 5 % between draws. The other rules took up to seven times the CPU time.

    References
    ----------
    Rudi, Carratino, Rosasco, FALKON: An Optimal Large Scale Kernel Method, 2017; Meanti,
    Carratino, Rosasco, Rudi, Kernel Methods through the Roof: Handling Billions of Points
    Efficiently, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from gzkcore import Gaussian
    >>> from gzkcore.passes.kernel_passes import Passes
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> solution = solve_centers(Gaussian(4.0), Passes.of(X, y), 200, [1e-3], random_state=0)
    >>> predicted = Gaussian(4.0)([[0.5, 0.5]], solution.centers) @ solution.coef
    >>> bool(abs(predicted[0, 0] - np.sin(2.5) * 0.5) < 0.01)
    True
    """
    shifts = check_not_negatives("alphas", alphas)
    chosen = _Chosen.of(passes, centers, generator(random_state))
    with np.errstate(all="ignore"):
        square = kernel(chosen.centers)
    if not np.isfinite(square).all():
        raise not_finite(f"kernel={kernel!r}")
    try:
        root, jitter = root_of(square)
    except NotPositiveDefinite as error:
        raise NotPositiveDefinite(f"kernel={kernel!r}: {error}") from None
    product = CentersOperator(kernel, passes, chosen.centers, root)
    with np.errstate(over="ignore"):
        targets, mean_y, squares = product.start(fit_intercept)
    if not np.isfinite(squares).all():
        raise ValueError("y is so large that its squares overflow; scale it")
    gram = sample_gram(kernel, chosen, root, product.mean, product.total)
    solution = conjugate_gradients(
        product, targets, shifts, preconditioner=FactoredGram(gram, shifts), tol=tol,
        max_iter=max_iter, progress=progress, checkpoint=checkpoint,
    )  # fmt: skip
    with limit_blas(1):
        coef = solve_triangular(root, solution.coef, check_finite=False)
    least = np.maximum(squares - np.einsum("ij,ij->j", targets, solution.coef), 0.0)
    return CentersSolution(
        **vars(solution) | {"coef": coef}, centers=chosen.centers,
        intercept=mean_y - product.mean @ coef, jitter=jitter, least=least,
        n_rows=product.n_rows, total=product.total,
    )  # fmt: skip


# ---- centres, and the sample of rows


@dataclass(frozen=True)
class _Chosen:
    """Centres, and a sample of the rows with their weights."""

    centers: Floats
    sample: Any
    weight: Doubles | None

    @classmethod
    def of(cls, passes: Passes, centers: Any, rng: np.random.Generator) -> "_Chosen":
        X, weight, _ = without_zeros(*passes.reader.sample())
        check_some_weight(X.shape[0])
        n_rows, by_number = passes.reader.n_rows, np.ndim(centers) == 0 and not issparse(centers)
        if by_number:
            points, count = None, check_integer("centers", centers, 1)
            if count > X.shape[0] and n_rows > X.shape[0] and passes.reader.array is None:
                raise ValueError(
                    f"centers={count} is more than the sample of the source, "
                    f"{counted(X.shape[0], 'row')}, has; use fewer, or an array of centers, or "
                    "pass the rows as one array or memory map"
                )
        else:
            points = check_matrix("centers", centers)
            count = len(points)
        least = min((1 if by_number else LEAST_SAMPLE) * count, X.shape[0])
        size = max(least, min(MOST_SAMPLE * count, int(ROOTS * n_rows**0.5), X.shape[0]))
        rows = rng.choice(X.shape[0], size, replace=False)
        chosen = dense(X[rows[:count]]) if points is None else points
        if chosen.shape[1] != X.shape[1]:
            raise ValueError(
                f"centers have {counted(chosen.shape[1], 'column')}, but X has {X.shape[1]}; give "
                "them the columns of X"
            )
        return cls(np.array(chosen), X[rows], None if weight is None else weight[rows])


def root_of(matrix: Doubles) -> tuple[Doubles, float]:
    """Return upper triangular T with T^T T = matrix + jitter I, and the jitter.

    The jitter is the rounding error of the matrix, which equal or dependent rows need, or more if
    that is not enough.
    """
    size, largest = len(matrix), float(matrix.diagonal().max())
    share = size * float(np.finfo(np.float64).eps)
    while share <= MOST_JITTER:
        shifted = matrix.copy()
        shifted.flat[:: size + 1] += share * largest
        try:
            with limit_blas(1):
                return cholesky(shifted, overwrite_a=True, check_finite=False), share * largest
        except LinAlgError:
            share *= 10.0
    raise NotPositiveDefinite(
        f"the kernel matrix of the {size} centers has no Cholesky factor, even with "
        f"{MOST_JITTER:g} of its largest entry added to the diagonal: the kernel is not positive "
        "definite there; use another kernel"
    )


def _half(root: Doubles, values: Doubles) -> Any:
    """Return T^-T of a matrix with a row for each centre."""
    with limit_blas(1):
        return solve_triangular(root, values, trans="T", check_finite=False)


def sample_gram(
    kernel: Kernel, chosen: _Chosen, root: Doubles, mean: Doubles, total: float
) -> Doubles:
    """Return the lower triangle of G_S, the estimate of G from the sample of rows.

    `mean` is the mean of the columns of K_nM, or 0; `total` the sum of the weights of all rows.
    """
    gram, size = np.zeros(root.shape, order="F"), chosen.sample.shape[0]
    weight = np.ones(size) if chosen.weight is None else chosen.weight
    for part in gen_batches(size, PART_ROWS):
        cross = kernel(chosen.centers, dense(chosen.sample[part])) - mean[:, None]
        Z = _half(root, cross * np.sqrt(weight[part]))
        with limit_blas(1):
            gram = dsyrk(1.0, Z, 1.0, gram, lower=1, overwrite_c=1)
    gram *= total / weight.sum()
    return gram


class FactoredGram(Preconditioner):
    """A preconditioner, A^T A = G_S + alpha I, factored once for each different alpha.

    Parameters
    ----------
    gram : ndarray of shape (n_centers, n_centers)
        The lower triangle of G_S; it is overwritten.
    shifts : ndarray of shape (n_columns,)
        alpha of each column.
    """

    def __init__(self, gram: Doubles, shifts: Doubles) -> None:
        self.shifts = shifts
        self.factors: dict[float, Doubles] = {}
        least = len(gram) * float(np.finfo(np.float64).eps) * gram.diagonal().max()
        different = np.unique(shifts).tolist()
        for alpha in different:
            shifted = gram if alpha == different[-1] else gram.copy(order="F")
            shifted.flat[:: len(gram) + 1] += max(alpha, least)
            with limit_blas(1):
                factor = cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
            self.factors[alpha] = factor

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return A^-1 A^-T R, see `Preconditioner`."""
        solved = np.empty_like(R)
        for alpha, factor in self.factors.items():
            of_alpha = self.shifts[columns] == alpha
            if of_alpha.any():
                with limit_blas(1):
                    of_some = cho_solve((factor, True), R[:, of_alpha], check_finite=False)
                solved[:, of_alpha] = of_some
        return solved


# ---- products


class CentersOperator:
    """b -> G b, in one pass over the rows; `root` is T.

    After `start`, `mean` is what is subtracted from the columns of K_nM, their weighted means or 0;
    `total` is the sum of the weights, and `n_rows` counts the rows of positive weight.
    """

    def __init__(self, kernel: Kernel, passes: Passes, centers: Floats, root: Doubles) -> None:
        self.kernel, self.passes, self.centers, self.root = kernel, passes, centers, root
        self.mean, self.total, self.n_rows = np.zeros(len(centers)), 0.0, 0
        rows = passes.in_memory(IN_MEMORY_BYTES)
        self.sorted = None if rows is None else _BatchProducts(rows, kernel, centers)

    def start(self, fit_intercept: bool) -> tuple[Doubles, Doubles, Doubles]:
        """Return T^-T K_Mn W y about the means, the means of y, or 0, and y^T W y about them."""
        products, sums, squares = self._pass(None)
        self.total, self.n_rows = float(sums[0]), int(squares[0])
        mean_y = np.zeros(len(sums) - 1)
        if fit_intercept:
            self.mean, mean_y = products[:, 0] / self.total, sums[1:] / self.total
        right = _half(self.root, products[:, 1:] - np.outer(self.mean, sums[1:]))
        return right, mean_y, squares[1:] - self.total * np.square(mean_y)

    def __call__(self, b: Doubles) -> Any:
        with limit_blas(1):
            V = solve_triangular(self.root, b, check_finite=False)
        products, sums, _ = self._pass(V)
        return _half(self.root, products - np.outer(self.mean, sums))

    def _pass(self, V: Doubles | None) -> Any:
        rows = self.sorted
        if rows is not None:
            return self.passes.run(lambda: rows.sums(V, self.mean))
        return self.passes.total(_products_of_batch, V, self.mean, self.kernel, self.centers)


class _BatchProducts:
    """Products with K_nM and K_Mn for the rows of a batch."""

    def __init__(self, rows: PassedRows, kernel: Kernel, centers: Floats) -> None:
        X, y, self.weight = rows
        self.columns = np.column_stack([np.ones(len(y)), y])
        self.forward = KernelOperator.of(kernel, dense(X), centers)
        self.backward = KernelOperator.of(kernel, centers, dense(X))

    def sums(self, V: Doubles | None, mean: Doubles) -> Sums:
        """Return K_Mn U and 1^T U for U = W (K_nM V - mean.V), or W [1 y] without V.

        Without V also the number of rows of positive weight, and y^T W y.
        """
        U = self.columns if V is None else self.forward @ V - mean @ V
        if self.weight is not None:
            U = U * self.weight[:, None]
        if V is not None:
            return self.backward @ U, U.sum(axis=0), np.empty(0)
        squares = np.einsum("ij,ij->j", U, self.columns)
        squares[0] = np.count_nonzero(U[:, 0])
        return self.backward @ U, U.sum(axis=0), squares


def _products_of_batch(
    rows: PassedRows, V: Doubles | None, mean: Doubles, kernel: Kernel, centers: Floats
) -> Sums:
    return _BatchProducts(rows, kernel, centers).sums(V, mean)
