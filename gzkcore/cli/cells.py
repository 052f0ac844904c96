"""Cells of latitude and longitude, in degrees, and how longitudes go round."""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from gzkcore._util.typing import Doubles

Window: TypeAlias = tuple[float, float, float, float]  # south, north, west and east
Degrees = TypeVar("Degrees", float, Doubles)

GLOBE: Window = (-90.0, 90.0, -180.0, 180.0)


@dataclass(frozen=True)
class Cells:
    """The middles of cells: latitudes and, from west to east, longitudes."""

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


def from_west(longitude: Degrees, west: float = -180.0) -> Degrees:
    """Return longitudes as degrees in [west, west + 360)."""
    return (longitude - west) % 360 + west


def widest_gap(longitude: Doubles) -> tuple[float, float]:
    """Return the longitudes from which and to which there is none for the longest way east."""
    around = np.unique(longitude % 360)
    gaps = np.diff(around, append=around[0] + 360)
    widest = int(gaps.argmax())
    return float(around[widest]), float(around[widest] + gaps[widest])
