"""Recipes, from which `gzkcore predict` knows the columns of a model and how to read them.

A recipe is saved with the model, as its attribute `recipe_`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Integers
from gzkcore.rows.files import Table
from gzkcore.rows.frames import KINDS, Frame, are_booleans, as_booleans, typed
from gzkcore.sphere.globe import from_west, off_globe

PLACE = ("latitude", "longitude")  # what a frame calls the columns of --lat and --lon


@dataclass(frozen=True)
class Recipe:
    """How columns of any kind become the frame that `KernelRegressor` takes."""

    target: str
    columns: list[str]
    kinds: list[str]  # of the columns, see `gzkcore.rows.frames`
    places: bool = False  # the columns are latitude and longitude
    west: float = -180.0  # longitudes are taken from here on, where no data are cut apart
    # The values of columns of text that have few.
    seen: dict[str, list[str]] = field(default_factory=dict)
    forms: dict[str, list[str]] = field(default_factory=dict)  # see `gzkcore.rows.text`
    missing: list[str] = field(default_factory=list)  # words for a missing value
    window: list[float] = field(default_factory=list)  # of the places of the fit, see `cells`

    def frame(self, table: Table, rows: Integers, values: dict[str, NDArray[Any]]) -> Frame:
        """Return columns of rows of these numbers, which have their kinds, as a frame."""
        if not self.places:
            return Frame({name: self._spelt(name, values[name]) for name in self.columns})
        degrees = np.column_stack([values[name] for name in self.columns]).astype(np.float64)
        if (missing := np.isnan(degrees)).any():
            row, column = np.argwhere(missing)[0]
            raise table.bad_value(int(rows[row]), self.columns[column], None)
        check_places(table, rows, degrees)
        return self.at(degrees)

    def _spelt(self, name: str, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column with the spelling of true and false that the fit was given."""
        booleans = column.dtype.kind == "O" and name in self.seen
        return as_booleans(column) if booleans and are_booleans({*self.seen[name]}) else column

    def at(self, degrees: Doubles) -> Frame:
        """Return latitudes and longitudes, (n, 2), as the model takes places."""
        longitude = from_west(degrees[:, 1], self.west)
        return Frame(dict(zip(PLACE, (degrees[:, 0], longitude), strict=True)))

    def read(self, table: Table, first: int, columns: dict[str, Any]) -> Frame:
        """Return rows of a table, from `first` on, as the model takes them."""
        kinds = dict(zip(self.columns, self.kinds, strict=True))
        values = {
            name: typed(table, name, columns[name], kinds[name], first) for name in self.columns
        }
        n_rows = len(values[self.columns[0]])
        return self.frame(table, np.arange(first, first + n_rows), values)


def check_places(table: Table, rows: Integers, degrees: Doubles) -> None:
    """Raise ValueError, naming the row, where rows of these numbers are off the globe."""
    if (wrong := off_globe(degrees)) is not None:
        raise ValueError(f"{table.path}: data row {rows[wrong[0]] + 1}: {wrong[1]}")


def place_names(model: Any, recipe: Recipe) -> tuple[str, ...] | None:
    """Return what frames call latitude and longitude, None if a model takes other columns too."""
    if recipe.places:
        return PLACE
    names = places_among(model)
    return names if len(names) == len(recipe.columns) else None


def places_among(model: Any) -> tuple[str, ...]:
    """Return the columns that a model takes for latitude and longitude, none without both."""
    places = (column.names for column in model.encoder_.columns_ if column.kind == "place")
    return tuple(next(places, ()))


def rows_at(model: Any, recipe: Recipe) -> Callable[[Doubles], Any] | None:
    """Return what turns latitude and longitude, (n, 2), into the rows that a model takes.

    None if it takes other columns too.
    """
    if recipe.places:
        return recipe.at
    names = place_names(model, recipe)
    if names is None:
        return None
    return lambda places: Frame(dict(zip(names, places.T, strict=True)))


def recipe_in(path: Path, model: Any) -> Recipe:
    """Return the recipe in a model that was loaded from a file."""
    saved = getattr(model, "recipe_", None)
    if saved is None:
        raise ValueError(
            f"{path} was saved from Python and does not say which columns it needs; use "
            "gzkcore.load in Python, or make a model for this command with gzkcore fit"
        )
    try:
        recipe = Recipe(**saved)
        _check(recipe)
    except (TypeError, ValueError):
        raise ValueError(
            f"{path} has a recipe_ that gzkcore fit did not make, so that its columns are unknown; "
            "use gzkcore.load in Python"
        ) from None
    return recipe


def _check(recipe: Recipe) -> None:
    """Raise TypeError or ValueError if a recipe from a file doesn't hold what it should."""
    wanted = {"target": str, "places": bool, "west": float, "seen": dict, "forms": dict}
    for part in fields(recipe):
        value = getattr(recipe, part.name)
        if not isinstance(value, wanted.get(part.name, list)):
            raise TypeError(part.name)
        entry = float if part.name == "window" else str
        if isinstance(value, list) and not all(isinstance(item, entry) for item in value):
            raise TypeError(part.name)
    n, told = len(recipe.columns), (recipe.seen, recipe.forms)
    texts = [text for each in told for texts in each.values() for text in list(texts)]
    if not (
        1 <= n == len(recipe.kinds)
        and {*recipe.kinds} <= {*KINDS}
        and {*recipe.seen, *recipe.forms} <= {*recipe.columns}
        and all(isinstance(text, str) for text in texts)
        and len(recipe.window) in (0, 4)
        and (n == 2 or not recipe.places)
    ):
        raise ValueError("columns")
