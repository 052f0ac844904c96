"""Products with kernel matrices of any size: in linear time where that costs less, else by tiles.

`linear_sums` and `cross_product` ask `FastSums.of`, which decides between the two by the cost of
this kernel on these rows, and say how exact the sums have to be. `expects_linear_time` predicts the
decision for more rows than there are.
"""

import math
from typing import Any

import numpy as np

from gzkcore._util.nonuniform import has_finufft
from gzkcore._util.typing import Doubles, Rows
from gzkcore._util.validation import dense
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.fast_sums import FIT, LEAST_TOL, FastSums, worth_a_look
from gzkcore.kernels.general import Precomputed
from gzkcore.kernels.products import KernelOperator, as_double

from .preconditioners import FEW_COLUMNS

# The error of a kernel value is this share of tol alpha, and at most MOST_SUMS_TOL.
SUMS_TOL, MOST_SUMS_TOL = 1 / 32, 4e-6
# From so many rows on a warning says what finufft would bring.
FINUFFT_ROWS = 50_000
# So many numbers of new rows are held as doubles at a time.
PREDICTED_NUMBERS = 1 << 24
# The error of a prediction is this share of the predictions of COMPARED_ROWS of the new rows.
PREDICTED_TOL, COMPARED_ROWS = 1e-5, 64


def linear_sums(
    kernel: Kernel, X: Doubles, alpha: float, tol: float, n_vectors: int = 1
) -> FastSums | None:
    """Return products with K(X, X) in linear time, exact enough for alpha and tol; None: tiles.

    With noise alpha is that of the row with the least.

    Errors of eps k(x, x) in the values of K, as rough as the rows are dense, are a matrix with
    eigenvalues of a few times eps k(x, x). A solution is at most |y| / alpha long. So the residual
    changes by a few times eps k(x, x) / alpha |y|.
    """
    if len(X) >= FINUFFT_ROWS and X.shape[1] <= FEW_COLUMNS and not has_finufft():
        warn(
            f"{len(X):,} rows in {counted(X.shape[1], 'column')} may take a fifth of the time, or "
            "less, with finufft, by which products take linear time: pip install 'gzkcore[maps]'"
        )
    largest = float(kernel.diag(X[:1]).max()) or 1.0
    sums_tol = SUMS_TOL * tol * alpha / largest
    sums_tol = min(max(sums_tol, LEAST_TOL), MOST_SUMS_TOL)
    return FastSums.of(kernel, X, None, sums_tol, n_vectors, FIT)


def expected_cost(kernel: Kernel, X: Doubles, n_rows: int) -> float:
    """Return the expected nanoseconds of a product with K of n_rows rows, of which X are some."""
    return FastSums.expected_cost(kernel, X, n_rows, MOST_SUMS_TOL)


def expects_linear_time(kernel: Kernel, X: Doubles, n_rows: int) -> bool:
    """Say whether products with K of n_rows rows, of which X are some, will take linear time."""
    return expected_cost(kernel, X, n_rows) < FastSums.cost_by_tiles(n_rows)


def cross_product(
    kernel: Kernel, X: Rows, Y: Rows, V: Doubles, tiles: "dict[str, KernelOperator] | None" = None
) -> Doubles:
    """Return K(X, Y) V for new rows X, in double and with nothing of the size of K stored.

    `tiles` keeps what depends on kernel and Y alone, for another call.
    """
    if isinstance(kernel, Precomputed):
        return np.asarray(X @ V, dtype=np.float64)
    step, columns = max(1, PREDICTED_NUMBERS // max(X.shape[1], 1)), as_double(dense(Y))
    products, tiles = [], {} if tiles is None else tiles
    for start in range(0, X.shape[0], step):
        rows = as_double(dense(X[start : start + step]))
        operator: Any = _linear_cross_sums(kernel, rows, columns, V)
        if operator is None:
            if "of Y" not in tiles:
                tiles["of Y"] = KernelOperator.of(kernel, columns[:1], columns)
            operator = tiles["of Y"].at(rows)
        products.append(operator.times(V))
    return np.concatenate(products)


def _linear_cross_sums(kernel: Kernel, X: Doubles, Y: Doubles, V: Doubles) -> FastSums | None:
    """Return products with K(X, Y) in linear time, exact to a share of the sums; None: tiles."""
    if not worth_a_look(kernel, X, Y):  # then the tolerance is not worth its cost
        return None
    some = X[:: -(-len(X) // COMPARED_ROWS)]
    of_some = np.square(KernelOperator.of(kernel, some, Y).times(V)).mean(axis=0)
    largest = float(kernel.diag(some).max()) or 1.0
    length = np.square(V).sum(axis=0)
    tol = PREDICTED_TOL * math.sqrt((of_some[length > 0] / length[length > 0]).min(initial=1.0))
    return FastSums.of(kernel, X, Y, min(tol / largest, MOST_SUMS_TOL), V.shape[1])
