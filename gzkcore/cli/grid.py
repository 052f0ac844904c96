"""Predictions for the cells of a grid, as NetCDF, as GeoTIFF or as a table."""

import csv
import math
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import escape

import numpy as np

from gzkcore._util.extras import needs
from gzkcore._util.files import check_writable, replacing
from gzkcore._util.memory import available_memory

from .arguments import check_free
from .cells import GLOBE, GridCells, Window
from .output import rounded

OUTPUTS = (".nc", ".tif", ".tiff", ".csv")
# The keys of GeoTIFF: values are of areas, places are geographic, by WGS 84, in degrees.
GEO_KEYS = (1, 1, 0, 4, 1024, 0, 1, 2, 1025, 0, 1, 1, 2048, 0, 1, 4326, 2054, 0, 1, 9102)
# The smallest cells in degrees, a tenth of a millimetre: more cells than 2^53 can't be counted.
LEAST_STEP = 1e-9
CELLS_AT_A_TIME = 1 << 19
CELL_BYTES = 64  # a cell takes so many for its place, prediction and standard deviation


def window_asked(step: float, window: str | None, of_fit: list[float]) -> Window:
    """Return the window in the text, or else that of the fit in whole steps, or the globe."""
    if window is not None:
        try:
            south, north, west, east = map(float, window.split(","))
        except ValueError:
            south = north = west = east = math.nan
        if not (-90 <= south < north <= 90 and -180 <= west < east <= 360 and east - west <= 360):
            raise ValueError(
                f"--window {window} must be south,north,west,east in degrees, such as "
                "35,60,-10,30: latitudes from -90 to 90, longitudes from -180 to 360, smaller ones "
                "first"
                + f"; beyond the date line add 360 to the east: {east + 360:g}"
                * (west > east)
            )
        return south, north, west, east
    if not of_fit or (*of_fit,) == GLOBE or not LEAST_STEP <= step <= 180:
        return GLOBE
    south, north, west, east = of_fit
    if west < -180:
        west, east = west + 360, east + 360
    south, west = (math.floor(degrees / step + 1e-9) * step for degrees in (south, west))
    north, east = (math.ceil(degrees / step - 1e-9) * step for degrees in (north, east))
    if east - west >= 360:
        return GLOBE
    return max(-90.0, south), min(90.0, north), west, east


def grid_of(step: float, window: Window) -> GridCells:
    """Return the cells of a window, from north to south, about `step` degrees wide and high."""
    south, north, west, east = window
    smallest = min(north - south, east - west)
    if not LEAST_STEP <= step <= smallest:
        raise ValueError(
            f"--grid must be a number of degrees between {LEAST_STEP:g} and {smallest:g}, the "
            f"shorter side of the window; got {step:g}"
        )
    rows, columns = math.ceil((north - south) / step - 1e-9), math.ceil((east - west) / step - 1e-9)
    room, needed = available_memory(), rows * columns * CELL_BYTES
    if room is not None and needed > room:
        larger = step * math.ceil(math.sqrt(needed / room))
        raise ValueError(
            f"--grid {step:g} makes {rows * columns:,} cells, for which {needed / 1e9:,.3g} GB of "
            f"memory are needed and {room / 1e9:,.3g} available; use larger cells, such as --grid "
            f"{larger:g}, or a smaller --window"
        )
    return GridCells(
        north - (north - south) * (np.arange(rows) + 0.5) / rows,
        west + (east - west) * (np.arange(columns) + 0.5) / columns,
    )


def check_grid_output(output: Path, labels: bool, names: list[str], force: bool) -> None:
    """Raise ValueError unless a grid can be written there, with columns of these names."""
    check_writable(output)
    if output.suffix.lower() not in OUTPUTS:
        raise ValueError(
            f"--output {output} must end with .nc (NetCDF), .tif (GeoTIFF) or .csv for a grid"
        )
    if labels and output.suffix.lower() != ".csv":
        what = "NetCDF grid" if output.suffix.lower() == ".nc" else "GeoTIFF"
        raise ValueError(f"--output {output}: a {what} holds numbers, not labels; use .csv")
    if output.suffix.lower() in (".tif", ".tiff"):
        needs("tifffile", f"writing {output}", "grids")
    for name in names:
        if (_name(name) if output.suffix.lower() == ".nc" else name) in ("latitude", "longitude"):
            raise ValueError(f"--name {name} is the name of an axis of the grid; give another")
    check_free("--output", output, force)


def write_grid(output: Path, cells: GridCells, columns: dict[str, Any], title: str) -> None:
    """Write columns of all cells, row by row, in the format of the file's ending.

    The title is the name of the target.
    """
    with replacing(output) as beside:
        if output.suffix.lower() == ".nc":
            _write_netcdf(beside, cells, columns, title)
        elif output.suffix.lower() in (".tif", ".tiff"):
            _write_geotiff(beside, cells, columns)
        else:
            with beside.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, cells, columns)


def _write_csv(file: TextIO, cells: GridCells, columns: dict[str, Any]) -> None:
    """Write longitude, latitude and values, in the order that GDAL's XYZ driver reads as one."""
    writer = csv.writer(file)
    writer.writerow(["longitude", "latitude", *columns])
    places = cells.places
    for start in range(0, len(places), CELLS_AT_A_TIME):
        part = slice(start, start + CELLS_AT_A_TIME)
        latitude, longitude = (rounded(degrees).tolist() for degrees in places[part].T)
        values = [column[part].tolist() for column in columns.values()]
        writer.writerows(zip(longitude, latitude, *values, strict=True))


def _write_netcdf(path: Path, cells: GridCells, columns: dict[str, Any], title: str) -> None:
    """Write NetCDF with the names and units of the CF conventions."""
    from scipy.io import netcdf_file

    with netcdf_file(path, "w", version=2) as file:
        # Attributes as bytes: SciPy encodes text as ASCII.
        file.Conventions, file.title = "CF-1.8", title.encode()
        file.source = f"gzkcore {version('gzkcore')}"
        for name, values, unit in (
            ("latitude", cells.latitude, "degrees_north"),
            ("longitude", cells.longitude, "degrees_east"),
        ):
            file.createDimension(name, len(values))
            axis = file.createVariable(name, "d", (name,))
            axis[:] = values
            axis.units, axis.standard_name = unit, name
        # Predictions come first, then their standard deviations, if asked for.
        long = (f"predicted {title}", f"standard deviation of predicted {title}")
        for (name, column), about in zip(columns.items(), long, strict=False):
            variable = file.createVariable(_name(name), "d", ("latitude", "longitude"))
            variable[:] = column.reshape(cells.shape)
            variable.long_name = about.encode()


def _write_geotiff(path: Path, cells: GridCells, columns: dict[str, Any]) -> None:
    """Write GeoTIFF with a band for each column, named as by GDAL."""
    from tifffile import imwrite

    steps = [np.diff(axis)[:1] for axis in (cells.longitude, -cells.latitude)]
    width, height = (float((step if len(step) else np.concatenate(steps))[0]) for step in steps)
    corner = cells.longitude[0] - width / 2, cells.latitude[0] + height / 2
    names = "".join(
        f'<Item name="DESCRIPTION" sample="{band}" role="description">{escape(name)}</Item>'
        for band, name in enumerate(columns)
    )
    tags = (
        (33550, "d", 3, (width, height, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, *corner, 0.0), True),
        (34735, "H", len(GEO_KEYS), GEO_KEYS, True),
        (42112, "s", 0, f"<GDALMetadata>{names}</GDALMetadata>".encode(), True),
    )
    bands = np.stack([column.reshape(cells.shape) for column in columns.values()])
    bands, apart = (bands, "separate") if len(bands) > 1 else (bands[0], None)
    imwrite(path, bands, photometric="minisblack", planarconfig=apart, extratags=tags)


def _name(text: str) -> str:
    """Return a name for a variable of NetCDF: letters, digits and underscores."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return plain if plain[:1].isalpha() else f"v_{plain}"
