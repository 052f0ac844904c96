"""Kernel matrices in tiles of 256 rows, by `_compiled/products.pyx`.

A kernel's call, `kernel_matrix` and `KernelOperator` read its form (`tile_form`) as arrays here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gzkcore._compiled import products as _products
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats

from .tile_form import TABLE, TABLE_SLOPE, Factor, Term, TileForm
from .tile_rows import FAR, TiledRows
from .tile_table import table_of

DOUBLE = np.dtype(np.float64)

# In tiles with a larger radius, in lengths, distances are off by 1e-11: NumPy computes the matrix.
WIDE = 1e5


@dataclass(frozen=True)
class FactorArrays:
    """The factors of a term, or of several, in the arrays that `_compiled/products.pyx` reads."""

    factors: NDArray[np.int64]  # (count, 12), see `fill` of _compiled/products.pxd
    numbers: Doubles  # (count, 4)
    coefficients: Floats

    @classmethod
    def of(
        cls, factors: Sequence[Factor], dim: int, dtype: Any, reaches: Sequence[float]
    ) -> "FactorArrays | None":
        """Lay out factors one after another; return None if a table is not accurate enough."""
        whole = np.zeros((len(factors), 12), np.int64)
        numbers = np.zeros((len(factors), 4))
        parts: list[NDArray[Any]] = []
        first = start = 0
        for number, factor in enumerate(factors):
            width = dim if factor.columns is None else len(factor.columns)
            c: NDArray[Any] = np.asarray(factor.coefficients, dtype)
            degree, shift, pieces, base, fold = c.size - 1, 0, 0, 0, math.inf
            if factor.profile in (TABLE, TABLE_SLOPE):
                table = table_of(factor, dtype)
                if table is None:
                    return None
                shift, pieces, base, fold = table.shift, table.pieces, table.base, table.fold
                c, degree = table.coefficients.ravel(), len(table.coefficients) - 1
            whole[number] = [
                factor.metric, factor.profile, factor.of_distances, first, width, start, degree,
                shift, pieces, 0, len(factor.gaps), start + c.size,
            ]  # fmt: skip
            offset = 0.0 if factor.of_distances else factor.offset
            numbers[number] = [base, fold, offset, reaches[number]]
            parts += [c, np.asarray(factor.gaps, dtype)]
            first, start = first + width, start + c.size + len(factor.gaps)
        return cls(whole, numbers, np.concatenate(parts).astype(dtype, copy=False))

    @classmethod
    def of_sum(cls, form: TileForm, dim: int, dtype: Any) -> "FactorArrays | None":
        """Lay out all terms; return None if there are too many factors, or no accurate table."""
        terms = [number for number, term in enumerate(form) for _ in term.factors]
        if len(terms) > _products.most_factors():
            return None
        factors = [factor for term in form for factor in term.factors]
        known = cls.of(factors, dim, dtype, [math.inf] * len(terms))
        if known is not None:
            known.factors[:, 9] = terms
        return known


# Terms with the arrays that the tiles read.
KnownTerms: TypeAlias = list[tuple[Term, FactorArrays]]


def known_terms(form: TileForm | None, dim: int, dtype: Any, tol: float) -> KnownTerms | None:
    """Return the terms of a form with their arrays, None if tiles cannot compute it."""
    if form is None or any(len(term.factors) > _products.most_factors() for term in form):
        return None
    terms = []
    for term in form:
        known = FactorArrays.of(term.factors, dim, dtype, term.reaches(tol / len(form)))
        if known is None:
            return None
        terms.append((term, known))
    return terms


def factors_matrix(
    term: Term, known: FactorArrays, X: Doubles, Y: Doubles | None, dtype: Any
) -> tuple[NDArray[Any], TiledRows, TiledRows]:
    """Return the factors' product at all pairs of rows, and the rows of X and Y in tiles."""
    rows = TiledRows.of(X, term, dtype, in_order=True)
    columns = rows if Y is None else TiledRows.of(Y, term, dtype, in_order=True)
    out = np.empty((len(X), len(X if Y is None else Y)), dtype)
    _products.kernel_matrix(
        rows.rows, rows.centers, rows.radii, rows.order, columns.rows, columns.centers,
        columns.radii, columns.order, known.factors, known.numbers, known.coefficients,
        FAR[dtype], Y is None, out, n_threads(out.size),
    )  # fmt: skip
    return out, rows, columns


def multiply(
    known: FactorArrays, rows: TiledRows, columns: TiledRows, V: NDArray[Any], symmetric: bool
) -> tuple[Doubles, int]:
    """Return K V in the order of the rows' tiles, and the number of pairs of tiles computed."""
    dtype = rows.rows.dtype
    lanes = 64 // dtype.itemsize
    width = 1 if V.shape[1] == 1 else -(-V.shape[1] // lanes) * lanes
    out = np.zeros((len(rows.rows), _products.tile_rows(), width))
    scaled = V * columns.factor[:, None]
    # A power of 2: V may be beyond a float's range. Below -1000 its inverse would be.
    power = np.maximum(np.frexp(np.abs(scaled).max(axis=0))[1], -1000)
    values = int(rows.counts.sum()) * columns.rows[:, 0].size
    n_tiles = _products.kernel_product(
        rows.rows, rows.centers, rows.radii, rows.counts, columns.rows, columns.centers,
        columns.radii, columns.place(scaled * np.ldexp(1.0, -power), width, dtype), known.factors,
        known.numbers, known.coefficients, FAR[dtype], symmetric, out, n_threads(values),
    )  # fmt: skip
    return np.ldexp(out.reshape(-1, width)[:, : V.shape[1]], power), n_tiles


def of_differences(term: Term) -> bool:
    """Say whether a term depends on differences of rows only."""
    return all(factor.of_distances and factor.power is None for factor in term.factors)


def offset_of(*rows: Doubles) -> Doubles:
    """Return the offset of columns that lie far from 0 for their spread, 0 for other columns.

    Subtracting it is exact, and rows are then scaled with smaller rounding errors.
    """
    low = np.min([some.min(axis=0) for some in rows], axis=0)
    high = np.max([some.max(axis=0) for some in rows], axis=0)
    offset = np.where((low > 0) & (high <= 2 * low), low, 0.0)
    return np.asarray(offset + np.where((high < 0) & (low >= 2 * high), high, 0.0))


def without_offsets(X: Doubles, Y: Doubles | None) -> tuple[Doubles, Doubles | None]:
    """Subtract the offset of all rows, see `offset_of`."""
    offset = offset_of(X) if Y is None else offset_of(X, Y)
    return X - offset, None if Y is None else Y - offset


def form_matrix(
    form: TileForm | None, X: Doubles, Y: Doubles | None, dtype: Any
) -> NDArray[Any] | None:
    """Return the matrix of a form, None if tiles cannot compute it; with Y=None no diagonal."""
    return terms_matrix(known_terms(form, X.shape[1], dtype, 0.0), X, Y, dtype)


def terms_matrix(
    terms: KnownTerms | None, X: Doubles, Y: Doubles | None, dtype: Any
) -> NDArray[Any] | None:
    """Return the matrix of `form_matrix` for terms with their arrays."""
    if all(of_differences(term) for term, _ in terms or ()):
        X, Y = without_offsets(X, Y)
    total: NDArray[Any] | None = None
    for term, known in terms or ():
        out, rows, columns = factors_matrix(term, known, X, Y, dtype)
        if any(
            factor.of_distances
            and not max(rows.radii[:, k].max(), columns.radii[:, k].max()) < WIDE
            for k, factor in enumerate(term.factors)
        ):
            return None
        if term.weight != 1.0 or any(factor.power for factor in term.factors):
            for start in range(0, len(out), _products.tile_rows()):
                some = slice(start, start + _products.tile_rows())
                out[some] *= term.weight * (rows.factor[some, None] * columns.factor)
        total = out if total is None else np.add(total, out, out=total)
    return total
