"""The columns of a file that a model predicts from: their kinds, and how they become a frame."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Integers
from gzkcore.rows.files import Table
from gzkcore.rows.frames import Frame, typed
from gzkcore.sphere.globe import from_west, off_globe
from gzkcore.tabular.columns.place import Place, around_globe
from gzkcore.tabular.fitted_table import FittedTable


@dataclass(frozen=True)
class Inputs:
    """The columns that a model predicts from.

    With `west` they are latitude and longitude alone, and longitudes are counted from there, where
    no data are cut apart.
    """

    kinds: dict[str, str]  # by column, in their order, see `gzkcore.rows.frames`
    west: float | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [*self.kinds]

    def frame(self, table: Table, rows: Integers, values: dict[str, NDArray[Any]]) -> Frame:
        """Return columns of rows of these numbers, which have their kinds, as a frame."""
        if self.west is None:
            return Frame({name: values[name] for name in self.columns}, table.forms)
        degrees = np.column_stack([values[name] for name in self.columns]).astype(np.float64)
        if (missing := np.isnan(degrees)).any():
            row, column = np.argwhere(missing)[0]
            raise table.bad_value(int(rows[row]), self.columns[column], None)
        check_places(table, rows, degrees)
        return self.at(degrees)

    def at(self, degrees: Doubles) -> Frame:
        """Return latitudes and longitudes, (n, 2), as a frame."""
        latitude, longitude = degrees.T
        if self.west is not None:
            longitude = from_west(longitude, self.west)
        return Frame(dict(zip(self.columns, (latitude, longitude), strict=True)))

    def read(self, table: Table, first: int, columns: dict[str, Any]) -> Frame:
        """Return rows of a table, from `first` on."""
        values = {
            name: typed(table, name, columns[name], kind, first)
            for name, kind in self.kinds.items()
        }
        n_rows = len(values[self.columns[0]])
        return self.frame(table, np.arange(first, first + n_rows), values)


def check_places(table: Table, rows: Integers, degrees: Doubles) -> None:
    """Raise ValueError, naming the row, where rows of these numbers are off the globe."""
    if (wrong := off_globe(around_globe(degrees))) is not None:
        raise ValueError(f"{table.path}: data row {rows[wrong[0]] + 1}: {wrong[1]}")


def inputs_of(model: Any) -> Inputs:
    """Return the columns that a fitted model needs; latitude before longitude if these are all."""
    columns = [column for column in model.encoder_.columns_ if column.encoded_names]
    named = {
        name: (int(place), column.IN_FILES)
        for column in columns
        for name, place in zip(column.names, column.inputs, strict=True)
    }
    order = list(named) if place_alone(model) else sorted(named, key=lambda name: named[name][0])
    table = getattr(model, "table_", None)
    return Inputs({name: named[name][1] for name in order}, None if table is None else table.west)


def forms_of(model: Any) -> dict[str, list[str]]:
    """Return how text has the numbers and dates of columns written, by column."""
    return {
        name: form
        for column in model.encoder_.columns_
        for name, form in zip(
            column.names, getattr(column, "forms", [getattr(column, "form", [])]), strict=True
        )
    }


def place_of(model: Any) -> Place | None:
    """Return the column of a model that is a place on the globe, if there is one."""
    return next((c for c in model.encoder_.columns_ if c.kind == "place"), None)


def place_names(model: Any) -> tuple[str, ...]:
    """Return the names of latitude and longitude that are a place, none without."""
    place = place_of(model)
    return () if place is None else tuple(place.names)


def place_alone(model: Any) -> Place | None:
    """Return the place that a model predicts from, None if it takes other columns too."""
    return place_of(model) if model.encoder_.on_sphere_ else None


def rows_at(model: Any) -> Callable[[Doubles], Frame] | None:
    """Return what turns latitude and longitude, (n, 2), into the rows that a model takes.

    None if it takes other columns too.
    """
    return None if place_alone(model) is None else inputs_of(model).at


def table_of(path: Path, model: Any) -> FittedTable:
    """Return what a model that was loaded knows of the file that it was fitted to, or raise."""
    table = getattr(model, "table_", None)
    if not isinstance(table, FittedTable):
        raise ValueError(  # noqa: TRY004  of a file, not of an argument
            f"{path} was saved from Python and does not say which columns it needs; use "
            "gzkcore.load in Python, or make a model for this command with gzkcore fit"
        )
    return table
