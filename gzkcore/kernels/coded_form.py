"""The form of a kernel on rows of which groups of columns are codes: `CodedRows`.

Where the levels of a category are equally far from one another, a group of columns is one code, and
different codes add a constant to t. So a row of 14 columns has 14 numbers to be compared, whatever
the number of levels. Levels that are encoded by random signs, of which distances are about equal,
have the mean of these.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore.rows.coded import CodedRows

from .base import Kernel
from .tile_form import ABSOLUTE, DIFFERENCE, Factor, Term, TileForm

ALIKE = 1e-6  # Norms of levels that are equally far from one another agree up to so much.
LEVELS = 64  # The mean distance is that of so many of the levels.


def coded_form(kernel: Kernel, rows: Any) -> TileForm | None:
    """Return the form for `rows.compact`; None unless rows have codes, of levels equally far."""
    if not isinstance(rows, CodedRows):
        return None
    form, terms = kernel.tile_form(rows.shape[1]), []
    for term in form or []:
        factors: Any = [_coded(factor, rows) for factor in term.factors]
        if None in factors:
            return None
        terms.append(Term(tuple(factors), term.weight))
    return terms or None


def scales_of(kernel: Kernel, rows: CodedRows) -> tuple[Doubles, Doubles]:
    """Return the scale of each column of numbers, and the squared distances of different codes.

    Those of all factors together, in which rows are near or far, for a kernel with a coded form.
    """
    form: Any = kernel.tile_form(rows.shape[1])
    factors = [factor for term in form for factor in term.factors]
    scales = np.sqrt(sum(np.square(_spread(factor, rows)) for factor in factors))
    return scales[rows.plain], np.array(_gaps(rows, scales, DIFFERENCE), dtype=np.float64)


def _spread(factor: Factor, rows: CodedRows) -> Doubles:
    """Return the scale of each encoded column."""
    scales = np.zeros(rows.shape[1])
    scales[slice(None) if factor.columns is None else [*factor.columns]] = factor.scale
    return scales


def _coded(factor: Factor, rows: CodedRows) -> Factor | None:
    if factor.power is not None or not factor.of_distances:
        return None
    scales = _spread(factor, rows)
    scales, gaps = scales[rows.plain], _gaps(rows, scales, factor.metric)
    if None in gaps:
        return None
    scale = np.concatenate([scales, np.sign(np.array(gaps, dtype=np.float64))])
    columns = np.flatnonzero(scale)
    if not columns.size:  # all rows are alike in its columns
        columns = np.zeros(1, np.intp)
    own = [gap for gap in gaps if gap]
    return replace(factor, columns=columns.tolist(), scale=scale[columns], gaps=own)


def _gaps(rows: CodedRows, scales: Doubles, metric: int) -> list[float | None]:
    """Return the gap of each group, see `_gap`, of columns with these scales."""
    pairs = zip(rows.columns, rows.values, strict=True)
    return [_gap(values * scales[columns], metric) for columns, values in pairs]


def _gap(levels: Doubles, metric: int) -> float | None:
    """Return what different levels add to t in the mean; None if their norms differ."""
    power = 1 if metric == ABSOLUTE else 2
    norms = (np.abs(levels) ** power).sum(axis=1)
    if np.ptp(norms) > ALIKE * norms.max():
        return None
    some = levels[:LEVELS]
    sums = (np.abs(some[:, None] - some) ** power).sum()
    return float(sums / max(1, len(some) * (len(some) - 1)))
