"""Gradients of functions f(x) = sum_j k(x, y_j) c_j at many points, from slopes of the kernel.

A factor of the kernel has the slope W_ij at scaled rows u_i and v_j (see `tile_form.Slope`): its
derivative with respect to the logarithm of the length of column c is W_ij times the share of the
column. So its derivative with respect to u_ic is

    -W_ij (u_ic - v_jc)  for distances,    -W_ij sign(u_ic - v_jc)  for sums of distances by column,
    -W_ij v_jc / 2       for dot products.

For distances sum_j c_j W_ij (u_ic - v_jc) = u_ic (W c)_i - (W (c v_c))_i: one product with W serves
all columns and all f, tile by tile where W has no pole. At equal rows a rough kernel has a kink;
its slope is taken as 0 there.
"""

from collections.abc import Sequence

import numpy as np

from gzkcore._compiled import products as _products
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles

from .aliases import as_kernel
from .base import Kernel
from .products import slope_matrix, slope_product
from .tile_form import ABSOLUTE, TABLE_SLOPE, Factor, Term, TileForm
from .tile_rows import scaled_columns
from .transformed import Transformed

# At most so many kernel values are in memory at a time.
VALUES = 1 << 22
# A factor's own slope is larger only for rows that are equal but for rounding; it is taken as 0.
STEEPEST = 1e10
# A limit at distance 0 is extrapolated from these distances.
NEAR = 1e-3 * np.array([1.0, 2.0, 4.0])


def gradients(kernel: Kernel, X: Doubles, Y: Doubles, coef: Doubles) -> Doubles | None:
    """Return the gradients of x -> k(x, Y) coef at the rows of X, (n_rows, n_targets, dim).

    None for kernels without slopes: zonal ones, functions.
    """
    if isinstance(kernel, Transformed):
        of_mapped = gradients(*_mapped(kernel, X, Y), coef)
        return None if of_mapped is None else of_mapped @ _matrix(kernel)
    form = kernel.tile_form(X.shape[1])
    if form is None or not _has_slopes(form):
        return None
    out = np.zeros((len(X), coef.shape[1], X.shape[1]))
    for term in form:
        for number in range(len(term.factors)):
            in_tiles = _is_smooth(term, number, X.shape[1])
            step = len(X) if in_tiles else max(1, VALUES // len(Y))
            for start in range(0, len(X), step):
                rows = slice(start, start + step)
                _add(term, number, X[rows], Y, coef, out[rows], in_tiles)
    return out


def derivatives(kernel: Kernel, X: Doubles, Y: Doubles) -> Doubles | None:
    """Return the derivatives of k(x, y) by each column of x, (n_rows, dim, n_points).

    None for kernels without slopes.
    """
    if isinstance(kernel, Transformed):
        of_mapped = derivatives(*_mapped(kernel, X, Y))
        return None if of_mapped is None else np.einsum("ikj,kc->icj", of_mapped, _matrix(kernel))
    form = kernel.tile_form(X.shape[1])
    if form is None or not _has_slopes(form):
        return None
    out = np.zeros((len(X), X.shape[1], len(Y)))
    for term in form:
        for number, factor in enumerate(term.factors):
            W, (u, v) = _weights(term, number, X, Y), _scaled_rows(factor, X, Y)
            for k, column in enumerate(_columns(factor, X.shape[1])):
                share = np.subtract.outer(u[:, k], v[:, k]) if factor.of_distances else v[:, k] / 2
                share = np.sign(share) if factor.metric == ABSOLUTE else share
                out[:, column] += _scales(factor, u.shape[1])[k] * W * share
    return out


def prior_slopes(kernel: Kernel, dim: int) -> Doubles | None:
    """Return d/dx_c d/dy_e k(x, y) at y = x, (dim, dim): covariances of slopes without data.

    None for kernels that are no functions of distances, and where these are infinite.
    """
    if isinstance(kernel, Transformed):
        matrix = _matrix(kernel)
        of_mapped = prior_slopes(as_kernel(kernel.kernel), len(matrix))
        return None if of_mapped is None else matrix.T @ of_mapped @ matrix
    form = kernel.tile_form(dim)
    curvature = None if form is None else _curvature(form, dim)
    return None if curvature is None else np.diag(curvature)


def _matrix(kernel: Transformed) -> Doubles:
    return np.asarray(kernel.matrix, dtype=np.float64)


def _mapped(kernel: Transformed, X: Doubles, Y: Doubles) -> tuple[Kernel, Doubles, Doubles]:
    return as_kernel(kernel.kernel), kernel.mapped(X), kernel.mapped(Y)


def _curvature(form: TileForm, dim: int) -> Doubles | None:
    """Return minus the second derivatives at 0 along each column, None if there are none."""
    factors = [factor for term in form for factor in term.factors]
    if not _has_slopes(form) or not all(factor.of_distances for factor in factors):
        return None
    curvature = np.zeros(dim)
    for term in form:
        for number, factor in enumerate(term.factors):
            steep = _steepness(factor, dim)
            if factor.metric == ABSOLUTE or not abs(steep) <= STEEPEST:
                return None
            columns = _columns(factor, dim)
            squares = _scales(factor, len(columns)) ** 2
            np.add.at(curvature, list(columns), -_weight(term, number) * steep * squares)
    return curvature


def _steepness(factor: Factor, dim: int) -> float:
    """Return the limit of a factor's own slope at distance 0; inf if there is none.

    A table has no value there: the limit is extrapolated from three distances, as of a power.
    """
    rows = np.zeros((4, dim))
    columns = _columns(factor, dim)
    rows[1:, columns[0]] = NEAR / _scales(factor, len(columns))[0]
    at_zero, *values = slope_matrix(Term((factor,)), 0, rows, rows[:1])[:, 0]
    if factor.slope is None or factor.slope.profile != TABLE_SLOPE:
        return float(at_zero)
    first, second = values[0] - values[1], values[1] - values[2]
    if abs(first) <= 1e-9 * abs(values[0]):
        return float(values[0])
    return float(values[0] + first**2 / (second - first)) if abs(first) < abs(second) else np.inf


def _has_slopes(form: TileForm) -> bool:
    most = _products.most_factors()
    factors = [factor for term in form for factor in term.factors]
    all_slopes = all(factor.slope is not None and factor.power is None for factor in factors)
    return all_slopes and all(len(term.factors) <= most for term in form)


def _weights(term: Term, number: int, X: Doubles, Y: Doubles) -> Doubles:
    """Return minus the slopes W of a factor, times the term's weight and other factors.

    At equal rows, where the slope of a distance may have a pole, they are 0.
    """
    factor, W = term.factors[number], slope_matrix(term, number, X, Y)
    if factor.of_distances:
        own = W if len(term.factors) == 1 else slope_matrix(Term((factor,)), 0, X, Y)
        W[~(np.abs(own) <= STEEPEST)] = 0.0
    return np.asarray(W * _weight(term, number))


def _weight(term: Term, number: int) -> float:
    slope = term.factors[number].slope
    return -term.weight * (0.0 if slope is None else slope.weight)


def _scaled_rows(factor: Factor, X: Doubles, Y: Doubles) -> tuple[Doubles, Doubles]:
    (u, _), (v, _) = (scaled_columns(rows, factor) for rows in (X, Y))
    return u, v


def _is_smooth(term: Term, number: int, dim: int) -> bool:
    """Say whether a factor of distances has a slope without a pole at 0."""
    factor = term.factors[number]
    table = factor.slope is not None and factor.slope.profile == TABLE_SLOPE
    if table or factor.metric == ABSOLUTE or not factor.of_distances:
        return False
    return abs(_steepness(factor, dim)) <= STEEPEST


def _columns(factor: Factor, dim: int) -> Sequence[int]:
    return range(dim) if factor.columns is None else factor.columns


def _scales(factor: Factor, n_columns: int) -> Doubles:
    return np.broadcast_to(np.asarray(factor.scale, np.float64), n_columns)


def _add(
    term: Term, number: int, X: Doubles, Y: Doubles, coef: Doubles, out: Doubles, in_tiles: bool
) -> None:
    """Add a factor's share of the gradients (n_rows, n_targets, dim)."""
    factor = term.factors[number]
    u, v = _scaled_rows(factor, X, Y)
    W = np.empty(0) if in_tiles else _weights(term, number, X, Y)

    def sums(columns: Doubles) -> Doubles:
        """Return sum_j W_ij coef_jq columns_jc, of shape (n_rows, n_targets, n_columns)."""
        sides = (coef[:, :, None] * columns[:, None]).reshape(len(v), -1)
        if in_tiles:
            product = slope_product(term, number, X, Y, sides) * _weight(term, number)
        else:
            product = W @ sides
        return product.reshape(len(u), coef.shape[1], -1)

    with limit_blas(1):  # whose bits depend on its threads
        if not factor.of_distances:
            parts = sums(v) / 2
        elif factor.metric == ABSOLUTE:
            signs = (np.sign(np.subtract.outer(a, b)) for a, b in zip(u.T, v.T, strict=True))
            parts = np.stack([(W * sign) @ coef for sign in signs], axis=2)
        else:
            middle = v.mean(axis=0)
            both = sums(np.insert(v - middle, 0, 1.0, axis=1))
            parts = both[:, :, :1] * (u - middle)[:, None] - both[:, :, 1:]
    parts *= factor.scale
    for k, column in enumerate(_columns(factor, X.shape[1])):  # some may be repeated
        out[:, :, column] += parts[:, :, k]
