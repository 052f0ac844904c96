"""Rows in tiles of neighbours, as `_compiled/products.pyx` reads them.

The coordinates of a tile are relative to its centre, in the dtype of the arithmetic, so that their
error is eps times the radius of the tile. Outlying rows have separate tiles, since they would make
the other rows less accurate.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._compiled import products as _products
from gzkcore._util.new_arrays import empty_aligned
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore._util.wording import counted

from .points import check_unit_norms, row_norms, unit_rows
from .tile_form import Factor, Term

# Tiles with a row further than this from the centre are compared by differences: the rounding error
# of products of coordinates grows with the square of this distance.
FAR = {np.dtype(np.float32): 4.0, np.dtype(np.float64): 64.0}

# A row is far out if it is further from the shortest interval that holds a quarter of the rows than
# WINDOW times its length (20 standard deviations of normal rows) and than LEAST_WINDOW times FAR.
WINDOW, LEAST_WINDOW = 32, 4
# That interval is estimated from about so many rows.
SAMPLE = 256

# Coordinates are clipped to this absolute value, as in products.pyx.
MOST_COORDINATE = {np.dtype(np.float32): 1e37, np.dtype(np.float64): 1e300}


@dataclass(frozen=True)
class TiledRows:
    """Scaled rows in tiles of neighbours, and a factor of each row's kernel values."""

    order: Integers  # (n_tiles * TILE,): rows; the last of a tile is repeated until it is full
    places: Integers  # (n_rows,): the position of each row in `order`
    rows: Floats  # (n_tiles, dim, TILE), relative to the centres
    centers: Doubles  # (n_tiles, dim)
    radii: Doubles  # (n_tiles, n_factors): the largest distance of a row from its centre
    counts: Integers  # (n_tiles,): of the rows, without those that are repeated
    factor: Doubles  # (n_rows,)

    @classmethod
    def of(cls, X: Doubles, term: Term, dtype: Any, in_order: bool = False) -> "TiledRows":
        """Sort rows into tiles, or keep their order; the centre is 0 for dot products."""
        dtype = np.dtype(dtype)
        parts = [scaled_columns(X, factor) for factor in term.factors]
        rows = np.concatenate([part for part, _ in parts], axis=1)
        size = _products.tile_rows()
        order = tile_order(rows, size, LEAST_WINDOW * FAR[dtype], in_order)
        places, placed = np.arange(len(X)), rows[None]
        if order.size > size:  # a single tile has the order of the rows, and is filled up below
            places[order[::-1]] = np.arange(order.size)[::-1]  # of repeated rows the first
            placed = rows[order].reshape(-1, size, rows.shape[1])
        centers = placed.min(axis=1) / 2 + placed.max(axis=1) / 2
        radii, first = np.empty((len(placed), len(parts))), 0
        for number, factor in enumerate(term.factors):
            columns = slice(first, first + parts[number][0].shape[1])
            if not factor.of_distances:
                centers[:, columns] = 0.0
            placed[:, :, columns] -= centers[:, None, columns]
            here = placed[:, :, columns]
            radii[:, number] = np.sqrt(np.einsum("tid,tid->ti", here, here).max(axis=1))
            first = columns.stop
        most = MOST_COORDINATE[dtype]
        if (radii > most).any():
            np.clip(placed, -most, most, out=placed)
        powers = functools.reduce(np.multiply, [power for _, power in parts])
        panels = empty_aligned((len(placed), rows.shape[1], size), dtype)
        panels[..., : placed.shape[1]] = placed.transpose(0, 2, 1)
        panels[..., placed.shape[1] :] = panels[..., placed.shape[1] - 1, None]
        counts = np.bincount(places // size, minlength=len(placed))
        return cls(order, places, panels, centers, radii, counts, powers)

    def place(self, V: NDArray[Any], width: int, dtype: Any) -> Floats:
        """Return vectors (n_rows, n_vectors) in the order of the tiles, 0 for repeated rows."""
        placed = empty_aligned((self.order.size, width), dtype)
        placed.fill(0)
        if width == 1:  # in a third of the time
            placed.reshape(-1)[self.places] = V[:, 0]
        else:
            placed[self.places, : V.shape[1]] = V
        return placed.reshape(len(self.rows), -1, width)

    def take(self, placed: Doubles) -> Doubles:
        """Return a result (n_places, n_vectors) in the order of the rows, times their factors."""
        values: Doubles = placed[self.places] * self.factor[:, None]
        return values


def scaled_columns(X: Doubles, factor: Factor) -> tuple[Doubles, Doubles]:
    """Return a factor's columns of the rows, scaled, and the power of the norms, or ones."""
    here = X if factor.columns is None else X[:, factor.columns]
    if np.ndim(factor.scale) == 1 and np.size(factor.scale) != here.shape[1]:
        raise ValueError(
            f"the kernel has parameters for {counted(np.size(factor.scale), 'column')}, but there "
            f"are {here.shape[1]}; pass one number, or one for each column"
        )
    if factor.power is None:
        return here * factor.scale, np.ones(len(X))
    norms = row_norms(here)
    if factor.unit:
        check_unit_norms(norms)
    if factor.power == 0 and not norms.all():
        raise ValueError(
            "the kernel has no value at a row that is all 0, since it depends on the direction "
            "alone; drop rows that are all 0"
        )
    return unit_rows(here, norms), norms**factor.power


def tile_order(X: Doubles, size: int, least: float, in_order: bool = False) -> Integers:
    """Order rows so that each run of `size` lies together, with rows far out in runs of their own.

    Rows are halved along the widest column until a run is left. With `in_order` only rows far out
    are halved, and the rows of a run ascend. The last row of a run is repeated until it is full. No
    row nearer than `least` is far out.
    """
    if len(X) == 1:
        return np.zeros(size, np.intp)
    runs, open_groups = [], [(np.arange(len(X)), in_order)]
    cuts = 4 + len(X) // (4 * size)  # each adds at most one run
    while open_groups:
        rows, stay = open_groups.pop()
        values = X[rows]
        lowest, highest = values.min(axis=0), values.max(axis=0)
        near = near_rows(values, lowest, highest, least) if cuts else None
        n_tiles = -(-rows.size // size)
        if near is not None:
            cuts -= 1
            open_groups += [(rows[~near], False), (rows[near], stay)]
        elif n_tiles > 1 and not stay:
            half = n_tiles // 2 * size
            order = np.argpartition(values[:, int(np.argmax(highest - lowest))], half)
            open_groups += [(rows[order[half:]], False), (rows[order[:half]], False)]
        else:
            rows = np.sort(rows) if in_order else rows
            runs += [rows, np.repeat(rows[-1:], n_tiles * size - rows.size)]
    return np.concatenate(runs)


def near_rows(
    X: Doubles, lowest: Doubles, highest: Doubles, least: float
) -> NDArray[np.bool_] | None:
    """Return a mask of the rows that are far out in no column, None if no row is far out."""
    wide = np.flatnonzero(highest - lowest > least)
    if not wide.size:
        return None
    values = np.sort(X[:: max(1, len(X) // SAMPLE)][:, wide], axis=0)
    quarter = max(1, len(values) // 4)
    lengths = values[quarter:] - values[:-quarter]
    first, columns = lengths.argmin(axis=0), np.arange(wide.size)
    window = np.maximum(WINDOW * lengths[first, columns], least)
    low, high = values[first, columns] - window, values[first + quarter, columns] + window
    near: NDArray[np.bool_] | None = None
    for k in np.flatnonzero((lowest[wide] < low) | (highest[wide] > high)):
        inside = (X[:, wide[k]] >= low[k]) & (X[:, wide[k]] <= high[k])
        both = inside if near is None else near & inside
        near = both if both.any() else near  # there may be no row near in all columns
    return near
