"""Predictions on a grid of latitudes and longitudes, as NetCDF or as a table for a GIS."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gzkcore._util.files import check_place, replacing
from gzkcore._util.typing import Doubles
from gzkcore.rows.frames import Frame

from .recipes import PLACE, FrameRecipe, Recipe

OUTPUTS = (".nc", ".csv")
CELLS = 1 << 19  # predicted at a time


@dataclass(frozen=True)
class Grid:
    """The middles of cells: latitudes from north to south, longitudes from west to east."""

    latitude: Doubles
    longitude: Doubles

    @property
    def places(self) -> Doubles:
        """Latitude and longitude of every cell, row by row: (n_cells, 2)."""
        both = np.meshgrid(self.latitude, self.longitude, indexing="ij")
        return np.stack(both, axis=-1).reshape(-1, 2)


def grid_of(step: float, window: str | None) -> Grid:
    """Return the grid of cells of so many degrees in a window "south,north,west,east"."""
    south, north, west, east = -90.0, 90.0, -180.0, 180.0
    if window is not None:
        south, north, west, east = _edges(window)
    smallest = min(north - south, east - west)
    if not 0 < step <= smallest:
        raise ValueError(
            f"--grid {step:g} must be a positive number of degrees, at most {smallest:g} here"
        )
    rows, columns = math.ceil((north - south) / step - 1e-9), math.ceil((east - west) / step - 1e-9)
    return Grid(
        north - (north - south) * (np.arange(rows) + 0.5) / rows,
        west + (east - west) * (np.arange(columns) + 0.5) / columns,
    )


def _edges(window: str) -> tuple[float, ...]:
    """Return south, north, west and east of a text."""
    try:
        south, north, west, east = map(float, window.split(","))
    except ValueError:
        south = north = west = east = math.nan
    right = -90 <= south < north <= 90 and -180 <= west < east <= 360 and east - west <= 360
    if not right:
        raise ValueError(
            f"--window {window} must be south,north,west,east in degrees, such as 35,60,-10,30"
            + (f"; beyond the date line add 360 to the east: {east + 360:g}" if west > east else "")
        )
    return south, north, west, east


def surface_of(path: Path, fitted: Any, recipe: Recipe | FrameRecipe) -> Callable[[Doubles], Any]:
    """Return what turns latitude and longitude, (n, 2), into the rows that a model takes."""
    if isinstance(recipe, Recipe):
        if recipe.sphere:
            return recipe.inputs
    elif recipe.places:
        return recipe.at
    elif fitted.encoder_.on_sphere_ and len(recipe.columns) == 2:
        kinds = {column["kind"]: str(column["name"]) for column in fitted.encoder_.columns_}
        names = kinds["latitude"], kinds["longitude"]
        return lambda places: Frame(dict(zip(names, places.T, strict=True)))
    raise ValueError(
        f"--grid: {path} predicts from {', '.join(recipe.columns[:4])}, not from latitude and "
        "longitude alone; fit with --lat and --lon, or give a table of places"
    )


def predict_grid(
    grid: Grid,
    rows_at: Callable[[Doubles], Any],
    compute: Callable[[Any], list[Any]],
    report: Callable[[str, float], None],
) -> list[Any]:
    """Return the columns that are computed of all cells, row by row."""
    places, parts = grid.places, []
    for start in range(0, len(places), CELLS):
        parts.append(compute(rows_at(places[start : start + CELLS])))
        report("predicting", min(1.0, (start + CELLS) / len(places)))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def check_grid_output(output: Path, labels: bool, names: list[str]) -> None:
    """Raise ValueError unless a grid can be written there, with columns of these names."""
    check_place(output)
    if output.suffix.lower() not in OUTPUTS:
        raise ValueError(f"--output {output} should end with .nc (NetCDF) or .csv for a grid")
    if labels and output.suffix.lower() == ".nc":
        raise ValueError(f"--output {output}: a NetCDF grid holds numbers, not labels; use .csv")
    for name in names:
        if (_name(name) if output.suffix.lower() == ".nc" else name) in PLACE:
            raise ValueError(f"--name {name} is the name of an axis of the grid; give another")


def write_grid(output: Path, grid: Grid, columns: dict[str, Any], title: str) -> None:
    """Write columns of all cells, row by row, in the format that the ending tells."""
    with replacing(output) as beside:
        if output.suffix.lower() == ".nc":
            _write_netcdf(beside, grid, columns, title)
        else:
            with beside.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, grid, columns)


def _write_csv(file: TextIO, grid: Grid, columns: dict[str, Any]) -> None:
    """Write longitude, latitude and values, in the order that GDAL's XYZ driver reads as one."""
    writer = csv.writer(file)
    writer.writerow(["longitude", "latitude", *columns])
    latitude, longitude = grid.places.T
    values = [column.tolist() for column in columns.values()]
    writer.writerows(zip(longitude.tolist(), latitude.tolist(), *values, strict=True))


def _write_netcdf(path: Path, grid: Grid, columns: dict[str, Any], title: str) -> None:
    """Write NetCDF with the names and units of the CF conventions."""
    from scipy.io import netcdf_file

    with netcdf_file(path, "w", version=2) as file:
        file.Conventions, file.title = "CF-1.8", title
        file.source = f"gzkcore {version('gzkcore')}"
        for name, values, unit in (
            ("latitude", grid.latitude, "degrees_north"),
            ("longitude", grid.longitude, "degrees_east"),
        ):
            file.createDimension(name, len(values))
            axis = file.createVariable(name, "d", (name,))
            axis[:] = values
            axis.units, axis.standard_name = unit, name
        for name, column in columns.items():
            variable = file.createVariable(_name(name), "d", ("latitude", "longitude"))
            variable[:] = column.reshape(len(grid.latitude), len(grid.longitude))
            variable.long_name = name


def _name(text: str) -> str:
    """Return a text as the name of a variable: letters, digits and underscores."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return plain if plain[:1].isalpha() else f"v_{plain}"
