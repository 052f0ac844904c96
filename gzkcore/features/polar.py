"""Rows as unit rows and norms, in the units of a kernel: reduced, scaled and centred first."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gzkcore._compiled import series as _series
from gzkcore._util.threads import n_threads
from gzkcore._util.typing import Doubles, Floats, Rows
from gzkcore._util.validation import dense, is_finite
from gzkcore.kernels.base import Kernel
from gzkcore.rows.survey import Norms

from .base import tiles

# Rows whose norms are kept in one buffer, 8 bytes each.
_NORMS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Polar:
    """The map from rows to unit rows and norms."""

    kernel: Kernel  # resolved; its scale multiplies the reduced rows
    dim: int  # columns of the reduced rows
    reducer: Any  # a fitted transformer that is applied first, or None
    center: Doubles | None  # subtracted from the reduced rows

    @functools.cached_property
    def scale(self) -> Doubles:
        """Factor of each column."""
        scale = np.empty(self.dim)
        scale[...] = self.kernel.scale()
        return scale

    @property
    def unit(self) -> float:
        """Scaled units in one unit of the rows, on average over the columns."""
        return float(np.mean(self.scale))

    def __call__(self, tile: Rows, first: int = 0) -> tuple[Floats, Doubles]:
        """Return unit rows in the dtype of the tile, and norms in double.

        `first` is the index of its first row, for messages.
        """
        tile = np.ascontiguousarray(dense(reduce_rows(self.reducer, tile)))
        unit, norms = np.empty_like(tile), np.empty(tile.shape[0])
        if tile.shape[1] != self.dim:
            raise ValueError(
                f"X has {tile.shape[1]} columns after reduction, and the training rows had "
                f"{self.dim}; pass the same columns"
            )
        center = np.zeros(tile.shape[1]) if self.center is None else self.center
        _series.polar(tile, center, self.scale, unit, norms, n_threads(tile.size))
        if not is_finite(norms):
            row = first + int(np.argmin(np.isfinite(norms)))
            raise ValueError(
                f"row {row} of X, counted from 0, is so large that its squared norm overflows; "
                "scale the columns (sklearn.preprocessing.StandardScaler)"
            )
        if not (self.kernel.defined_at_zero or norms.all()):
            raise ValueError(
                f"row {first + int(np.argmin(norms))} of X, counted from 0, is all 0, and "
                f"{self.kernel!r} depends on the direction alone; drop rows that are all 0"
            )
        return unit, norms

    def norms(self, X: Rows, weight: Doubles | None = None) -> Norms:
        """Return the mergeable record of the norms of all rows."""
        parts, norms = [], np.empty(min(X.shape[0], _NORMS_AT_ONCE))
        for first in range(0, X.shape[0], norms.size):
            part = X[first : first + norms.size]
            for rows in tiles(part.shape[0], 8 * X.shape[1]):
                norms[rows] = self(part[rows], first + rows.start)[1]
            weights = None if weight is None else weight[first : first + norms.size]
            parts.append(Norms(norms[: part.shape[0]], weights))
        return Norms.merge(parts) if len(parts) > 1 else parts[0]


def reduce_rows(reducer: Any, tile: Rows) -> Rows:
    """Return projected rows in their dtype, or the rows if there is no projection."""
    if reducer is None:
        return tile
    # scikit-learn multiplies sparse rows with a matrix of their own type only.
    dtype = getattr(getattr(reducer, "components_", None), "dtype", np.float64)
    reduced: Rows = reducer.transform(tile.astype(dtype, copy=False))
    return reduced.astype(tile.dtype, copy=False)
