"""Gradients of functions f(x) = sum_j k(x, y_j) c_j at many points, from slopes of the kernel.

A factor of the kernel has the slope W_ij at scaled rows u_i and v_j (see `tile_form.Slope`): its
derivative with respect to the logarithm of the length of column c is W_ij times the share of the
column. So its derivative with respect to u_ic is

    -W_ij (u_ic - v_jc)  for distances,    -W_ij sign(u_ic - v_jc)  for sums of distances by column,
    -W_ij v_jc / 2       for dot products.

For distances sum_j c_j W_ij (u_ic - v_jc) = u_ic (W c)_i - (W (c v_c))_i: one product with W serves
all columns and all f. At equal rows a rough kernel has a kink; its slope is taken as 0 there.
"""

import numpy as np

from gzkcore._compiled import products as _products
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles

from .base import Kernel
from .products import slope_matrix
from .tile_form import ABSOLUTE, Term, TileForm
from .tile_rows import scaled_columns
from .transformed import unmapped

VALUES = 1 << 22  # of the kernel, at a time
STEEPEST = 1e10  # slopes beyond it are those of rows that are equal but for rounding


def gradients(kernel: Kernel, X: Doubles, Y: Doubles, coef: Doubles) -> Doubles | None:
    """Return the gradients of x -> k(x, Y) coef at the rows of X, (n_rows, n_targets, dim).

    None for kernels without slopes: zonal ones, functions.
    """
    inner, rows, points = unmapped(kernel, X, Y)
    if inner is not kernel:
        of_mapped = gradients(inner, rows, points, coef)
        return None if of_mapped is None else of_mapped @ kernel.matrix
    form = kernel.tile_form(X.shape[1])
    if form is None or not _has_slopes(form):
        return None
    found = np.zeros((len(X), coef.shape[1], X.shape[1]))
    step = max(1, VALUES // len(Y))
    for start in range(0, len(X), step):
        some = slice(start, start + step)
        for term in form:
            for number in range(len(term.factors)):
                _add(term, number, X[some], Y, coef, found[some])
    return found


def _has_slopes(form: TileForm) -> bool:
    most = _products.most_factors()
    factors = [factor for term in form for factor in term.factors]
    known = all(factor.slope is not None and factor.power is None for factor in factors)
    return known and all(len(term.factors) <= most for term in form)


def _add(term: Term, number: int, X: Doubles, Y: Doubles, coef: Doubles, out: Doubles) -> None:
    """Add what a factor of a term gives to gradients (n_rows, n_targets, dim)."""
    factor = term.factors[number]
    weight = 0.0 if factor.slope is None else factor.slope.weight
    W = slope_matrix(term, number, X, Y)
    W *= -term.weight * weight
    (u, _), (v, _) = (scaled_columns(rows, factor) for rows in (X, Y))
    if factor.of_distances:
        W[~(np.abs(W) <= STEEPEST)] = 0.0
    with limit_blas(1):  # whose bits depend on its threads
        if not factor.of_distances:
            parts = _sums(W, coef, v) / 2
        elif factor.metric == ABSOLUTE:
            signs = (np.sign(np.subtract.outer(a, b)) for a, b in zip(u.T, v.T, strict=True))
            parts = np.stack([(W * sign) @ coef for sign in signs], axis=2)
        else:
            middle = v.mean(axis=0)
            parts = (W @ coef)[:, :, None] * (u - middle)[:, None] - _sums(W, coef, v - middle)
    parts *= factor.scale
    index = range(X.shape[1]) if factor.columns is None else factor.columns
    for place, column in enumerate(index):  # a column may be there twice
        out[:, :, column] += parts[:, :, place]


def _sums(W: Doubles, coef: Doubles, v: Doubles) -> Doubles:
    """Return sum_j W_ij coef_jq v_jc, of shape (n_rows, n_targets, n_columns)."""
    columns = (coef[:, :, None] * v[:, None]).reshape(len(v), -1)
    return (W @ columns).reshape(len(W), coef.shape[1], -1)
