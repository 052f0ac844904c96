"""Cells of a grid of latitude and longitude, in degrees."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gzkcore._util.typing import Doubles

Window: TypeAlias = tuple[float, float, float, float]  # south, north, west and east

GLOBE: Window = (-90.0, 90.0, -180.0, 180.0)


@dataclass(frozen=True)
class GridCells:
    """The latitudes of the middles of cells and, from west to east, their longitudes."""

    latitude: Doubles
    longitude: Doubles

    @property
    def shape(self) -> tuple[int, int]:
        """The number of latitudes, and that of longitudes."""
        return len(self.latitude), len(self.longitude)

    @property
    def places(self) -> Doubles:
        """Latitude and longitude of every cell, row by row: (n_cells, 2)."""
        both = np.meshgrid(self.latitude, self.longitude, indexing="ij")
        return np.stack(both, axis=-1).reshape(-1, 2)
