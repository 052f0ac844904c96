"""Places: latitude and longitude together, one point of the unit sphere.

This needs columns that are chosen as such; or with such names, and places all over the globe or no
other columns. In a region degrees are as good, beside other columns; there, and where values are
missing, longitudes are numbers, counted from where the fit has none, and derivatives are by
kilometres.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from gzkcore._util.remark import Remark
from gzkcore._util.state import doubles, sequence, stored, text
from gzkcore._util.typing import Doubles
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted, named_columns
from gzkcore.features.base import plain_output
from gzkcore.rows.degrees import AXES, NAMES
from gzkcore.rows.text import NUMBER
from gzkcore.rows.values import Values
from gzkcore.sphere.globe import EARTH_KM, LatLonToSphere, from_west, off_globe, widest_gap

from .cells import NUMBERS, Cells
from .column import Column, Drift
from .left_out import LeftOut
from .number import Number

RADIANS = np.array([math.pi / 2, math.pi])  # how far latitudes and longitudes go
# Places whose variance on the unit sphere, that of the three coordinates together, is less are a
# region, within some 40 degrees of their middle, where degrees are as good beside other columns.
# Without other columns they are not: with one length per degree of latitude and of longitude a
# product of both may win, whose maps look plaid. On the sphere the errors of elevation on held-out
# airports, five seeds, were -3.4 +- 1.4 % (Alps), -4.1 +- 2.2 (Spain), -.5 +- .2 (Germany), -4.5 +-
# 5.1 (Colorado), -1.5 +- .9 (USA), -.2 +- .3 (Europe), +.5 +- .9 (Brazil), +.7 +- .2 (Britain).
REGION = 0.25
# Places of new rows are compared with AMONG of the fit, chosen from LOOKED_AT rows and farther from
# each other than SAME. One is far from all if it is FAR times as far from these as NEARLY_ALL of
# them are from their nearest.
AMONG, LOOKED_AT, SAME, FAR, NEARLY_ALL = 100, 10_000, 1e-9, 3.0, 0.95
DEGREES_AS_NUMBERS = "degrees as numbers"  # a kind of remark


class Place(Column):
    """Latitudes and longitudes as points of the unit sphere.

    Attributes
    ----------
    fill : ndarray of shape (2,)
        The medians of latitudes and longitudes, for missing values.
    forms : list of list of str
        How text has them written, see `gzkcore.rows.text`.
    among : ndarray of shape (n_among, 3)
        Points of the fit that are far from each other, and near all of its rows.
    """

    _state = stored(
        fill=doubles(2), forms=sequence(sequence(text()), 2), among=doubles(None, 3).if_there()
    )
    kind = "place"
    IN_FILES = NUMBER

    among: Doubles | None = None

    def __init__(self, latitude: Number, longitude: Number, degrees: Doubles) -> None:
        self.names = [latitude.name, longitude.name]
        self.inputs = np.concatenate([latitude.inputs, longitude.inputs])
        self.fill = np.array([latitude.fill, longitude.fill])
        self.forms = [latitude.form, longitude.form]
        self.among = spread_out(on_sphere(degrees[:: 1 + (len(degrees) - 1) // LOOKED_AT]))

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return three groups, of a coordinate each."""
        return [("place", [f"place {axis}"]) for axis in "xyz"]

    def read(self, *cells: Cells) -> Values:
        """Return latitudes and longitudes, (n, 2)."""
        pairs = zip(cells, self.forms, strict=True)
        degrees = np.column_stack([own.read_as(NUMBERS, form, padded=True) for own, form in pairs])
        check_degrees(degrees, self.names)
        return degrees

    def encode(self, values: Values) -> Doubles:
        """Return points of the unit sphere."""
        return on_sphere(self._filled(values))

    def slopes(self, values: Values) -> Doubles | None:
        """Return the derivatives of the points by kilometres north and east, (n, 2, 3)."""
        ways = LatLonToSphere().north_east(around_globe(self._filled(values)))
        ways += (0.0 * values.sum(axis=1))[:, None, None]  # NaN: missing
        return np.asarray(ways)

    def unknown(self, values: Values) -> NDArray[np.bool_]:
        """Return which degrees are missing."""
        return np.isnan(values)

    def drift(self) -> Drift:
        """Return what collects how far new places are from those of the fit."""
        return Drift(self) if self.among is None else PlaceDrift(self, self.among)

    def remarks(self) -> list[Remark]:
        """Return that the columns are a place."""
        in_order = [self.names[i] for i in np.argsort(self.inputs)]
        return [Remark("places", in_order, "treated as places on the globe")]

    def _filled(self, values: Doubles) -> Doubles:
        return np.where(np.isnan(values), self.fill, values)


class PlaceDrift(Drift):
    """How far the places of new rows are from those of the fit."""

    def __init__(self, column: Place, among: Doubles) -> None:
        super().__init__(column)
        self.among = cKDTree(among)
        apart = self.among.query(among, k=min(2, len(among)))[0].reshape(len(among), -1)[:, -1]
        self.limit = max(FAR * float(np.quantile(apart, NEARLY_ALL)), SAME)
        self.n_far, self.first = 0, ("", 0)

    def add(self, values: Values, unknown: NDArray[np.bool_]) -> None:
        """Add latitudes and longitudes, NaN where they are missing."""
        distances, _ = self.among.query(self.column.encode(values))
        far = np.flatnonzero((distances > self.limit) & ~unknown.any(axis=1))
        if far.size and not self.n_far:
            latitude, longitude = values[far[0]]
            example = f"{latitude:g}, {from_west(longitude):g}"
            self.first = example, self.n_rows + int(far[0])
        self.n_far += far.size
        super().add(values, unknown)

    def remarks(self, row: str = "row {}", start: int = 0) -> list[Remark]:
        """Return that some places are far from all of the fit, if they are."""
        missing, (example, place) = super().remarks(row, start), self.first
        if not self.n_far:
            return missing
        rows, where = counted(self.n_rows, "row"), row.format(place + start)
        far = f"far from all places of the fit in {self.n_far:,} of {rows}"
        sentence = f"{named_columns(self.column.names)}: {far}, first {example} in {where}"
        remedy = "predictions there are extrapolated"
        return [*missing, Remark("unlike the fit", self.column.names, sentence, remedy)]


def spread_out(points: Doubles) -> Doubles:
    """Return a few of the points: each time the one farthest from those before it."""
    chosen, distance = [points[0]], np.full(len(points), np.inf)
    for _ in range(AMONG):
        distance = np.minimum(distance, np.linalg.norm(points - chosen[-1], axis=1))
        if distance.max() < SAME:
            break
        chosen.append(points[int(np.argmax(distance))])
    return np.array(chosen)


def with_places(columns: list[Column], cells: Sequence[Cells]) -> list[Column]:
    """Return columns with latitude and longitude as one, where they are chosen or called so.

    They must be degrees without gaps. Where nobody chose them they must also be alone or far apart:
    see `REGION`. Else longitudes are numbers, counted from where there are none.
    """
    both = degrees_as_numbers(columns)
    if not both:
        return columns
    latitude, longitude = both
    latitude.form, longitude.form = ([axis] for axis in AXES)  # new rows may have letters
    values = [cells[column.inputs[0]].values.astype(np.float64) for column in both]
    degrees = around_globe(np.column_stack(values))
    known = degrees[~np.isnan(degrees).any(axis=1)]
    if latitude.chosen:
        check_degrees(degrees, [column.name for column in both])
    elif _no_degrees(degrees, latitude.name, longitude.name):
        return columns
    alone = all(isinstance(column, LeftOut) or column in both for column in columns)
    region = not (alone or latitude.chosen) and on_sphere(known).var(axis=0).sum() < REGION
    if region or latitude.fills_in or longitude.fills_in:
        east = degrees[:, 1]
        longitude.west = float(from_west(sum(widest_gap(east[~np.isnan(east)])) / 2))
        longitude.standardise(from_west(east, longitude.west))
        return columns
    place = Place(latitude, longitude, degrees)
    return [place if c is latitude else c for c in columns if c is not longitude]


def check_degrees(degrees: Doubles, names: Sequence[str]) -> None:
    """Raise ValueError for latitudes and longitudes of these columns that are off the globe."""
    if wrong := _off_globe(degrees, names):
        raise ValueError(wrong)


def _off_globe(degrees: Doubles, names: Sequence[str]) -> str:
    """Return which row is off the globe, "" if none is; a missing value is nowhere."""
    wrong = off_globe(around_globe(np.where(np.isnan(degrees), 0.0, degrees)))
    return "" if wrong is None else "columns {!r} and {!r}, row {}: {}".format(*names, *wrong)


def place_columns(names: list[str]) -> list[int]:
    """Return the places of the columns called latitude and longitude; none without both."""
    lowered = [name.strip().lower() for name in names]
    latitudes, longitudes = (
        [i for i, name in enumerate(lowered) if name in own] for own in NAMES.values()
    )
    return [*latitudes, *longitudes] if len(latitudes) == len(longitudes) == 1 else []


def degrees_as_numbers(columns: Sequence[Column]) -> list[Number]:
    """Return latitude and longitude, by choice or by name, if both are numbers and no place."""
    numbers = [c for c in columns if type(c) is Number and c.holds == NUMBERS]
    chosen = [[c for c in numbers if c.chosen == axis] for axis in AXES]
    if all(chosen):
        return [chosen[0][0], chosen[1][0]]
    both = [columns[i] for i in place_columns([column.name for column in columns])]
    named = [c for column in both for c in numbers if c is column and not c.chosen]
    return named if len(named) == 2 else []


def remarks_of_degrees(columns: Sequence[Column]) -> list[Remark]:
    """Return why columns called latitude and longitude are numbers and no places, if they are."""
    degrees = degrees_as_numbers(columns)
    if not degrees:
        return []
    names = [column.name for column in degrees]
    why = (
        "The places are all of one region and the table has other columns, or some are no degrees."
    )
    if any(column.fills_in for column in degrees):
        why = "Some of their values are missing."
    sentence = f"Columns used as numbers, not as places on the globe: {' and '.join(names)}. {why}"
    return [Remark(DEGREES_AS_NUMBERS, names, sentence)]


def by_kilometres(
    columns: Sequence[Column], slopes: list[Doubles | None], latitudes: Doubles
) -> None:
    """Turn slopes by degrees of a region, of these latitudes, into slopes by kilometres."""
    radius = np.cos(np.radians(latitudes))
    radius[radius < 1e-12] = np.nan  # at a pole no way is east
    for column, size in zip(degrees_as_numbers(columns), (np.ones(1), radius), strict=True):
        i = columns.index(column)
        own = slopes[i]
        if own is not None:
            slopes[i] = own / (math.radians(EARTH_KM) * size[:, None, None])


def on_sphere(degrees: Doubles) -> Doubles:
    """Return latitudes and longitudes as points of the unit sphere."""
    points: Doubles = plain_output(LatLonToSphere()).transform(around_globe(degrees))
    return points


def around_globe(degrees: Doubles) -> Doubles:
    """Return places whose longitudes go on beyond 360 degrees with those around the globe.

    The command counts them from where no data are, so that a region isn't cut apart.
    """
    latitude, longitude = degrees.T
    beyond = (longitude > 360) & (longitude <= 540)
    return np.column_stack([latitude, np.where(beyond, longitude - 360, longitude)])


def _no_degrees(degrees: Doubles, *names: str) -> bool:
    """Say whether numbers are no latitudes and longitudes; warn if they seem to be, but wrong."""
    places = degrees[~np.isnan(degrees).any(axis=1)]
    if not len(places):
        return True
    farthest, wrong = np.abs(places).max(axis=0), _off_globe(degrees, names)
    few = 2 * (np.abs(places - [0, 180]) > [90, 360]).any(axis=1).sum() <= len(places)
    told, both = wrong if few else "", f"columns {names[0]!r} and {names[1]!r}"
    if wrong and not few and off_globe(places[:, ::-1]) is None:
        told = f"{both} seem to be swapped: latitudes go from -90 to 90"
    elif not wrong and (farthest <= RADIANS).all() and (farthest > 0.5 * RADIANS).all():
        told = f"{both} look like radians; pass degrees, numpy.degrees of them"
    if told:
        warn(Remark("no degrees", names, told))
    return wrong != ""
