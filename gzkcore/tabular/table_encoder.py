"""Columns of a table as numbers that a kernel can compare.

`fit` determines the kind of every input column; `columns_` lists them:

- "number": standardised. If values are more than 10 standard deviations from the mean, the column
  is replaced by the normal scores of its ranks, since a few such rows would determine the scale of
  all. If most values are equal, only the others count for this rule. A skewed column of positive
  numbers is replaced by its logarithms, log(1 + v / unit).
- "category": text, booleans of data frames and categorical types. Two levels become 0 and 1; of
  more levels each gets a column, of more than 256 each gets a code, see `categories`. Levels that
  have an order, as pandas and Polars know it, also give their ranks as a number.
- "latitude" and "longitude": together one point of the unit sphere, three columns. This needs
  columns with such names, and places all over the globe or no other columns.
- "constant": left out.
- "index": left out; a saved index or a comment, such as "Unnamed: 0", see `gzkcore.rows.index`.
- "name": left out; text whose distinct values are more than 32, and more than half of all values:
  names or numbers of things.

A missing number becomes the median of its column, and a 1 in an extra column marks it. Dates also
give the time of the year, of the week and of the day, each as sine and cosine, where they span two
such periods or more.
"""

import datetime
import decimal
import itertools
import math
import numbers
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.memory import check_fits_dense
from gzkcore._util.state import (
    all_or_nothing,
    doubles,
    entries,
    flag,
    forget,
    ints,
    number,
    sequence,
    stored,
    text,
    whole,
)
from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore._util.validation import (
    NO_ROWS,
    SAME_COLUMNS,
    as_table,
    check_bool,
    check_choice,
    check_sparse,
    other_columns,
)
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted
from gzkcore.features.base import plain_output
from gzkcore.rows.categories import (
    FREQUENT,
    MOST_COLUMNS,
    category_of,
    encode_category,
    levels_of,
    mostly_different,
    names_of,
    new_levels,
    spelt_as,
    texts_of,
    warn_of_doubt,
)
from gzkcore.rows.dates import about_days, seconds_of, seconds_of_array
from gzkcore.rows.frames import Frame, as_frame
from gzkcore.rows.index import SEEN, is_comment, is_index
from gzkcore.rows.meaning import (
    DATE,
    DEFAULT,
    NUMBER,
    DoubtError,
    Meaning,
    days_of,
    meaning_of,
    tell,
)
from gzkcore.rows.numeric import (
    PERIODS,
    encode_number,
    filled,
    number_of,
    periods_of,
    slopes_of_number,
    unit_of,
)
from gzkcore.rows.values import Values, about_sentinel, bare, missing_of, sentinel_of
from gzkcore.sphere.globe import EARTH_KM, LatLonToSphere, from_west, off_globe, widest_gap

from .looks import Look

__all__ = ["TableEncoder"]

RADIANS = np.array([math.pi / 2, math.pi])  # how far latitudes and longitudes go
# Places whose variance on the unit sphere, that of the three coordinates together, is less are a
# region, within some 40 degrees of their middle, where degrees are as good beside other columns.
# Without other columns they are not: with one length per degree of latitude and of longitude a
# product of both may win, whose maps look plaid. On the sphere the errors of elevation on held-out
# airports, five seeds, were -3.4 +- 1.4 % (Alps), -4.1 +- 2.2 (Spain), -.5 +- .2 (Germany), -4.5 +-
# 5.1 (Colorado), -1.5 +- .9 (USA), -.2 +- .3 (Europe), +.5 +- .9 (Brazil), +.7 +- .2 (Britain).
REGION = 0.25
LATITUDES, LONGITUDES = {"lat", "latitude"}, {"lon", "lng", "long", "longitude"}
# Types of columns in data frames that are categories, though their values may be numbers.
CATEGORICAL_DTYPES = {"category", "categorical", "enum", "bool", "boolean"}

# What columns hold: those of the first three become numbers, in seconds.
HELD = NUMBERS, DATES, DURATIONS = "numbers", "dates", "durations"
LEVELLED, TEXTS = "levels", "texts"  # and texts that nobody has looked at yet
DATE_TYPES = datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64
LEFT_OUT = {"constant", "name", "index"}
AS_NUMBERS = {"number", "latitude", "longitude"}
NO_PLACES = "Columns used as numbers, not as places on the globe"
DAY = 86400.0  # seconds
BEYOND = 5e6  # days, so that no date has few digits, nor those of a code for missing numbers
NUMERIC = numbers.Real | np.bool_ | decimal.Decimal


class Groups(NamedTuple):
    """The encoded columns that belong together: a kernel may have one length for each group."""

    of_columns: Integers  # (n_features_out,), the number of each column's group
    # The same where frequent levels of categories have a length each, and others no influence, -1.
    of_levels: Integers
    kinds: list[str]  # of each of these groups: number, date, period, missing, levels, place

    def columns_of(self, kind: str) -> Integers:
        """Return the encoded columns of a kind."""
        return np.flatnonzero(np.array(self.kinds)[self.of_columns] == kind)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of a table as numbers that a kernel can compare.

    Parameters
    ----------
    missing : {"impute", "raise"}, default="impute"
        What to do with missing values. "impute": in a column of numbers they become the median, and
        a column of zeros and ones marks the rows; a missing category, or empty text, is a separate
        level. "raise": they raise an error.
    logarithms : bool, default=True
        Whether skewed columns of positive numbers, such as incomes, are replaced by logarithms.
        `KernelRegressor` and `KernelClassifier` try both.

    Attributes
    ----------
    columns_ : list of dict
        For each input column its "name", its "kind" (see above), and the parameters of its
        encoding.
    sources_ : ndarray of shape (n_features_out,)
        The number of the input column that each encoded column comes from.
    on_sphere_ : bool
        Whether the encoded rows are points of the unit sphere and nothing else.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has column names.

    Notes
    -----
    Categorical and boolean columns of a frame are categories, and so is text. Levels are compared
    as text: True, 1 and 1.0 are equal, and so is the text True if a column had no other text than
    True and False. Dates and durations become seconds; dates without a time zone are UTC. A column
    of text holds dates if nearly every value is one, such as 2024-12-31, 31.12.2024 or Dec 31,
    2024, as for the command `gzkcore fit`. It holds numbers if nearly all share a unit (12.5 kmpl,
    5 %), or if a few texts are among numbers. Warnings say how it was read, and which text is taken
    as missing. Otherwise it is a category.

    A level that `fit` did not see has zeros in all columns of its category. If a value is missing
    in a column that had no missing values in `fit`, it becomes the median. Columns
    that were left out may be absent in `transform`. Time: a sort of each column.

    Examples
    --------
    >>> import pandas as pd
    >>> from gzkcore import TableEncoder
    >>> table = pd.DataFrame({"area": [50.0, 80.0, None], "kind": ["flat", "house", "flat"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out()
    array(['area', 'area is missing', 'kind=house'], dtype=object)
    >>> encoder.transform(table).round(2)
    array([[-1.,  0.,  0.],
           [ 1.,  0.,  1.],
           [ 0.,  1.,  0.]])
    """

    _state = stored(
        missing=text("impute", "raise").if_there(),
        logarithms=flag().if_there(),
        columns_=sequence(
            entries(
                name=text(),
                kind=text(*sorted(AS_NUMBERS | LEFT_OUT), "category", "nothing"),
                was=text(*sorted(LEFT_OUT)).if_there(),
                holds=text(*HELD).if_there(),
                indicator=flag().if_there(),
                **dict.fromkeys(("fill", "mean", "scale", "low", "high"), number().if_there()),
                **dict.fromkeys(("west", "sentinel"), number().if_there()),
                small=number(0).if_there(),
                quantiles=doubles(None).if_there(),
                unit=number(0).if_there(),
                periods=sequence(text(*PERIODS)).if_there(),
                form=sequence(text()).if_there(),
                levels=sequence(text()).if_there(),
                order=sequence(text()).if_there(),
                first=text().if_there(),
                other=whole(0, below="n_features_in_").if_there(),
            ),
            "n_features_in_",
        ),
        sources_=ints(None, below="n_features_in_"),
        on_sphere_=flag(),
    )
    # What columns look like in rows that are encoded piece by piece, told in place of warnings.
    _looks: list[Look] | None = None

    def __init__(self, missing: str = "impute", *, logarithms: bool = True) -> None:
        self.missing = missing
        self.logarithms = logarithms

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    @all_or_nothing
    def fit(self, X: Data, y: Any = None) -> Self:
        """Find out the kind of each column, and how to encode it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
            As it was if an error or an interrupt occurs.
        """
        check_choice("missing", self.missing, ("impute", "raise"))
        check_bool("logarithms", self.logarithms)
        forget(self)
        names, columns, named = columns_of(X)
        orders = _orders_of(as_frame(X)) if named else {}
        index = {
            name
            for place, (name, (values, holds)) in enumerate(zip(names, columns, strict=True))
            if (holds in (NUMBERS, TEXTS) and is_index(name, place, values[:SEEN].tolist()))
            or is_comment(name, values)
        }
        if isinstance(X, Frame) or len(index) == len(names):  # the command tells of its own
            index = set()
        for name in sorted(index):
            warn(
                f"column {name!r} seems to be a saved index or a comment, and is left out; rename "
                "it to keep it",
                UserWarning,
            )
        found: list[dict[str, Any]] = [
            {"name": name, "kind": "index"}
            if name in index
            else self._described(name, values, holds, orders.get(name))
            for name, (values, holds) in zip(names, columns, strict=True)
        ]
        _find_places(found, [values for values, _ in columns])
        if all(column["kind"] in LEFT_OUT for column in found):
            # Nothing tells rows apart: one column of zeros makes them all alike.
            found[0].update(kind="nothing", was=found[0]["kind"])
        widths = [len(_names_out(column)) for column in found]
        self.sources_ = np.repeat(np.arange(len(widths)), widths)
        kinds = {column["kind"] for column in found} - LEFT_OUT
        self.on_sphere_ = kinds == {"latitude", "longitude"}
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.columns_ = found
        return self

    def _described(
        self, name: str, values: Values, holds: str, order: list[str] | None
    ) -> dict[str, Any]:
        """Return a column's name, kind and encoding."""
        form: list[str] | None = None
        if holds == TEXTS and (meant := _meaning_of(name, values)) is not None:
            form = meant.form
            values, holds = _seconds_or_numbers(name, meant)
        elif holds == NUMBERS and (meant := days_of(values)) is not None:
            form = meant.form
            tell(name, values, meant)
            values, holds = seconds_of_array(meant.values), DATES
        missing = missing_of(values)
        if missing.any() and self.missing == "raise":
            raise ValueError(
                f"column {name!r} has {counted(int(missing.sum()), 'missing value')}, the first in "
                f"row {int(np.argmax(missing))}, and missing='raise'; fill them in, or use "
                "missing='impute'"
            )
        if holds in (LEVELLED, TEXTS):
            category = category_of(name, values, missing, order)
            if holds == TEXTS or category["kind"] == "name":
                warn_of_doubt(category, {*map(str, values[~missing])})
            return category
        values = values.astype(np.float64)
        unit = unit_of(values[~missing]) if self.logarithms and holds == NUMBERS else 0.0
        found = number_of(name, values, missing, unit) | {"holds": holds}
        if form:
            found["form"] = form
        if holds == NUMBERS and (sentinel := sentinel_of(values[~missing])) is not None:
            found["sentinel"] = sentinel
            warn(about_sentinel(f"column {name!r}", sentinel), UserWarning)
        if holds == NUMBERS and not form and (seem := about_days(name, values[~missing])):
            example = f"{values[~missing][0]:.9g}"
            warn(f"column {name!r} holds numbers such as {example}, which {seem}", UserWarning)
        if holds == DATES:
            if (code := sentinel_of(values[~missing] / DAY + BEYOND)) is not None:
                day = np.datetime64(round((code - BEYOND) * DAY), "s").astype("M8[D]")
                warn(about_sentinel(f"column {name!r}", day, "date"), UserWarning)
            if periods := periods_of(values[~missing]):
                found["periods"] = periods
        return found

    def transform(self, X: Data) -> Doubles:
        """Encode rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_features_out)
        """
        return self._encoded(X)[0]

    def _encoded(
        self, X: Data, caller: str = "", slopes: dict[int, Any] | None = None
    ) -> tuple[Doubles, NDArray[np.bool_]]:
        """Return encoded rows, and by row and column, which values the fit knew nothing like.

        These are a number missing that no row of the fit missed, and a category that none had.
        Errors name the class that was called. `slopes` takes the derivatives by each column of the
        columns that encode it, NaN where it is missing.
        """
        check_is_fitted(self, "columns_")
        _, columns, _ = columns_of(X, self, caller or type(self).__name__)
        unknown = np.zeros((len(columns[0][0]), len(columns)), dtype=bool)
        looks = [Look(column) for column in self.columns_] if self._looks is None else self._looks
        parts: list[Doubles] = []
        found = [
            _numbers(description, values, holds) if description["kind"] in AS_NUMBERS else values
            for description, (values, holds) in zip(self.columns_, columns, strict=True)
        ]
        for place, (description, values) in enumerate(zip(self.columns_, found, strict=True)):
            missing = missing_of(values)
            if missing.any() and self.missing == "raise":
                raise ValueError(
                    f"column {description['name']!r} has a missing value in row "
                    f"{int(np.argmax(missing))}, and missing='raise'; fill it in, or use "
                    "missing='impute'"
                )
            if description["kind"] in AS_NUMBERS:
                unknown[:, place] = missing & (not description.get("indicator"))
            match description["kind"]:
                case "number":
                    west = description.get("west")  # where the fit had no longitudes
                    there = values if west is None else from_west(values, west)
                    looks[place].add_numbers(there)
                    parts.extend(encode_number(description, there))
                    if slopes is not None and "quantiles" not in description:
                        slopes[place] = slopes_of_number(description, there)
                case "category":
                    texts = spelt_as(description, texts_of(values, missing))
                    unknown[:, place] = new_levels(description, texts)
                    looks[place].add_levels(texts, unknown[:, place] & ~missing)
                    parts.extend(encode_category(description, texts))
                case "latitude":
                    other = description["other"]
                    both = (description, values), (self.columns_[other], found[other])
                    degrees = [filled(column, its_values) for column, its_values in both]
                    parts.extend(_on_sphere(np.column_stack(degrees)).T)
                    if slopes is not None:
                        ways = LatLonToSphere().north_east(_from_west(np.column_stack(degrees)))
                        ways += (0.0 * (values + found[other]))[:, None, None]  # NaN: missing
                        slopes[place], slopes[other] = ways.transpose(1, 2, 0)
                case "nothing":
                    parts.append(np.zeros(len(values)))
        if slopes is not None:
            self._by_kilometres(slopes, found)
        if self._looks is None:
            for told in filter(None, (look.told() for look in looks)):
                warn(told, UserWarning)
        return np.column_stack(parts), unknown

    def _with_slopes(self, X: Data) -> tuple[Doubles, NDArray[np.bool_], list[int], Doubles]:
        """Return `_encoded`, which columns have slopes, and the derivatives of rows by these.

        Their shape is (n_samples, n_columns, n_features_out).
        """
        slopes: dict[int, Any] = {}
        rows, unknown = self._encoded(X, slopes=slopes)
        if not slopes:
            raise ValueError("there are no slopes, since no column has numbers; predict without")
        places = sorted(slopes)
        found = np.zeros((len(rows), len(places), rows.shape[1]))
        for among, place in enumerate(places):
            column = self.columns_[place]
            source = column["other"] if column["kind"] == "longitude" else place
            found[:, among, self.sources_ == source] = np.stack(slopes[place], axis=1)
        return rows, unknown, places, found

    def _by_kilometres(self, slopes: dict[int, Any], values: list[Values]) -> None:
        """Turn slopes by degrees of places, which are encoded as numbers, into those by km."""
        both = place_columns([str(column["name"]) for column in self.columns_])
        if both and "west" in self.columns_[both[1]]:
            radius = np.cos(np.radians(values[both[0]].astype(np.float64)))
            radius[radius < 1e-12] = np.nan  # at a pole no way is east
            for place, size in zip(both, (np.ones(1), radius), strict=True):
                degree = math.radians(EARTH_KM) * size
                if place in slopes:
                    slopes[place] = [each / degree for each in slopes[place]]

    def groups(self) -> Groups:
        """Return which encoded columns belong together."""
        of_columns: list[int] = []
        of_levels: list[int] = []
        kinds: list[str] = []
        for column in self.columns_:
            for kind, names in _parts_of(column):
                own = np.arange(len(names)) + max([-1, *of_levels]) + 1
                if kind == "levels" and len(names) == len(column["levels"]):
                    own[FREQUENT:] = -1
                else:
                    own[:] = own[0]
                of_levels.extend(own.tolist())
                of_columns.extend([len(kinds)] * len(names))
                kinds.append(kind)
        return Groups(np.array(of_columns), np.array(of_levels), kinds)

    def variants(self, place: int) -> Doubles | None:
        """Return encodings that a column may have: frequent levels, or numbers far apart."""
        column = self.columns_[place]
        width = int(np.count_nonzero(self.sources_ == place))
        if column["kind"] == "category":
            some = np.array(levels_of(column)[:FREQUENT], dtype=object)
            return np.column_stack(encode_category(column, some))
        return np.array([[-2.0], [2.0]]) if column["kind"] == "number" and width == 1 else None

    def incomplete(self, rows: Doubles) -> NDArray[np.bool_]:
        """Return which encoded rows have a number that was filled in."""
        ends = np.cumsum(np.bincount(self.sources_, minlength=len(self.columns_)))
        told = [ends[i] - 1 for i, column in enumerate(self.columns_) if column.get("indicator")]
        return np.asarray((rows[:, told] > 0).any(axis=1))

    def skewed(self) -> list[dict[str, Any]]:
        """Return the columns that are encoded by logarithms."""
        return [column for column in self.columns_ if "unit" in column]

    def remarks(self) -> list[str]:
        """Say what was done to columns beyond standardising them."""
        check_is_fitted(self, "columns_")
        found, columns = [], self.columns_
        left_out = {
            kind: [c for c in columns if c.get("was", c["kind"]) == kind] for kind in LEFT_OUT
        }
        levelled = [c for c in columns if c["kind"] == "category"]
        periodic, ranked, coded, ordered = (
            [c for c in columns if key in c]
            for key in ("periods", "quantiles", "sentinel", "order")
        )
        for words, chosen in {
            "left out because they are constant": left_out["constant"],
            "left out because they seem to be a saved index or a comment": left_out["index"],
            "left out because nearly every row has a different text": left_out["name"],
            "encoded by logarithms because they are skewed": self.skewed(),
            "encoded by ranks because of extreme values": ranked,
            "with a number far from all others that repeats, and is taken as it is": coded,
            "read as dates": [
                c for c in columns if c["kind"] == "number" and c.get("holds") == DATES
            ],
            "that also give the time of the year, week or day": periodic,
            "whose missing values are filled in": [c for c in columns if c.get("indicator")],
            "treated as categories": levelled,
            f"with more than {MOST_COLUMNS} levels, which get codes": [
                c for c in levelled if len(c["levels"]) > MOST_COLUMNS
            ],
            "whose levels have an order": ordered,
            "whose missing values are a separate category": [
                c for c in levelled if "" in levels_of(c)
            ],
            "treated as places on the globe": [
                c for c in columns if c["kind"] in ("latitude", "longitude")
            ],
        }.items():
            if chosen:
                names = [
                    str(c["name"]) + (f" ({c['sentinel']:g})" if "sentinel" in c else "")
                    for c in chosen
                ]
                more = f" and {len(names) - 8} more" if len(names) > 8 else ""
                found.append(f"Columns {words}: {', '.join(names[:8])}{more}.")
        names = [str(column["name"]) for column in self.columns_]
        places = [i for i in place_columns(names) if self.columns_[i]["kind"] == "number"]
        if places:
            gaps = any(self.columns_[i].get("indicator") for i in places)
            found.append(
                f"{NO_PLACES}: {' and '.join(names[i] for i in places)}. "
                + (
                    "Some of their values are missing."
                    if gaps
                    else "The places are all of one region and the table has other columns, or "
                    "some are no degrees."
                )
            )
        return found

    def get_feature_names_out(self, input_features: Any = None) -> Values:
        """Return the names of encoded columns; one that another has already ends with (2)."""
        check_is_fitted(self, "columns_")
        given = {str(column["name"]) for column in self.columns_}
        found: dict[str, None] = {}
        for column in self.columns_:
            for name in _names_out(column):
                taken = {*found} if name == column["name"] else {*found} | given
                tried = itertools.count(2)
                other = name
                while other in taken:
                    other = f"{name} ({next(tried)})"
                found[other] = None
        return np.array([*found], dtype=object)


def _find_places(described: list[dict[str, Any]], columns: list[Values]) -> None:
    """Take latitude and longitude together where they have these names, and are alone or far apart.

    Alone they are places of one kernel of the sphere in a region too: see `REGION`.
    """
    places = place_columns([str(column["name"]) for column in described])
    both = [described[i] for i in places]
    if not both or any(each["kind"] != "number" or each["holds"] != NUMBERS for each in both):
        return
    degrees = _from_west(np.column_stack([columns[i].astype(np.float64) for i in places]))
    known = degrees[~np.isnan(degrees).any(axis=1)]
    if _no_degrees(known, [str(each["name"]) for each in both]):
        return
    others = [column for i, column in enumerate(described) if i not in places]
    alone = all(column["kind"] in LEFT_OUT for column in others)
    region = not alone and _on_sphere(known).var(axis=0).sum() < REGION
    if region or any(each["indicator"] for each in both):
        longitude = degrees[:, 1]  # is counted from where there are none
        west = float(from_west(sum(widest_gap(longitude[~np.isnan(longitude)])) / 2))
        found = number_of(both[1]["name"], from_west(longitude, west), np.isnan(longitude))
        both[1].update(found, west=west)
        both[1].pop("unit", None)
        return
    for column, kind, other in zip(both, ("latitude", "longitude"), places[::-1], strict=True):
        column.update(kind=kind, other=other)
        column.pop("quantiles", None)
        column.pop("unit", None)


def _no_degrees(places: Doubles, names: list[str]) -> bool:
    """Say whether numbers are no latitudes and longitudes; warn if they seem to be, but wrong."""
    if not len(places):
        return True
    farthest, told = np.abs(places).max(axis=0), ""
    if off_globe(places) is not None:
        if off_globe(places[:, ::-1]) is None:
            told = "seem to be swapped: latitudes go from -90 to 90"
    elif (farthest <= RADIANS).all() and (farthest > 0.5 * RADIANS).all():
        told = "look like radians; pass degrees, numpy.degrees of them"
    if told:
        warn(f"columns {names[0]!r} and {names[1]!r} {told}", UserWarning)
    return off_globe(places) is not None


def place_columns(names: list[str]) -> list[int]:
    """Return the places of the columns called latitude and longitude; none without both."""
    lowered = [name.strip().lower() for name in names]
    lat = [i for i, name in enumerate(lowered) if name in LATITUDES]
    lon = [i for i, name in enumerate(lowered) if name in LONGITUDES]
    return [*lat, *lon] if len(lat) == len(lon) == 1 else []


def _on_sphere(degrees: Doubles) -> Doubles:
    """Return latitudes and longitudes as points of the unit sphere."""
    points: Doubles = plain_output(LatLonToSphere()).transform(_from_west(degrees))
    return points


def _from_west(degrees: Doubles) -> Doubles:
    """Return places whose longitudes go on beyond 360 degrees with those around the globe.

    The command counts them from where no data are, so that a region isn't cut apart.
    """
    latitude, longitude = degrees.T
    beyond = (longitude > 360) & (longitude <= 540)
    return np.column_stack([latitude, np.where(beyond, longitude - 360, longitude)])


def columns_of(
    X: Any, fitted: TableEncoder | None = None, caller: str = ""
) -> tuple[list[str], list[tuple[Values, str]], bool]:
    """Return the names of columns, their values and what these hold; is X a frame.

    The columns of a frame come in the order of those that an encoder was fitted to.
    """
    X = as_frame(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        names = [str(name) for name in X.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"X has two columns named {twice!r}; rename one")
        if len(X) == 0:
            raise ValueError(NO_ROWS.format("X"))
        if not names:
            raise ValueError("X has no columns; pass one or more")
        wanted = names if fitted is None else _wanted(names, fitted, caller)
        given = dict(zip(names, X.columns, strict=True))
        columns = [
            _of_series(X[given[name]], name) if name in given else (np.zeros(len(X)), NUMBERS)
            for name in wanted
        ]
        if isinstance(X, Frame):  # the command has looked at texts, those of other rows too
            columns = [(v, LEVELLED if holds == TEXTS else holds) for v, holds in columns]
        return wanted, columns, True
    if sparse.issparse(X):
        check_sparse(X)
        check_fits_dense(X)
        X = X.toarray()
    array = as_table(X)
    if fitted is not None:
        _check_width(array.shape[1], fitted, caller)
    if hasattr(fitted, "feature_names_in_"):
        warn(
            f"X does not have valid feature names, but {caller} was fitted with feature names; its "
            "columns are assumed to be in the order of the fit; pass a data frame to match them "
            "by name",
            UserWarning,
        )
    names = [f"x{i}" for i in range(array.shape[1])]
    columns = [_of_series(column, name) for column, name in zip(array.T, names, strict=True)]
    return names, columns, False


def _orders_of(X: Any) -> dict[str, list[str]]:
    """Return the levels of a frame's columns whose order pandas or Polars knows, least first."""
    found = {}
    for name in X.columns:
        kind = X[name].dtype
        if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum":
            levels = np.array([*kind.categories], dtype=object)
            found[str(name)] = texts_of(levels, missing_of(levels)).tolist()
    return found


def _wanted(names: list[str], fitted: TableEncoder, caller: str) -> list[str]:
    """Return the columns that an encoder was fitted to; all but those left out must be there."""
    if not hasattr(fitted, "feature_names_in_"):
        _check_width(len(names), fitted, caller)
        return names
    wanted: list[str] = fitted.feature_names_in_.tolist()
    needed = {
        name
        for name, column in zip(wanted, fitted.columns_, strict=True)
        if column["kind"] in AS_NUMBERS | {"category"}
    }
    if not needed <= {*names}:
        raise ValueError(other_columns(names, [n for n in wanted if n in needed | {*names}]))
    return wanted


def _check_width(width: int, fitted: TableEncoder, caller: str) -> None:
    if width != fitted.n_features_in_:
        # "1 features" too: scikit-learn's checks of estimators ask for these words.
        raise ValueError(
            f"X has {width} features, but {caller} is expecting {fitted.n_features_in_} features "
            f"as input; {SAME_COLUMNS}"
        )


def _of_series(series: Any, name: str) -> tuple[Values, str]:
    """Return the values of a column of a frame or an array, and what they are."""
    kind = str(series.dtype).partition("(")[0]
    if kind.startswith("datetime64["):  # pandas', which with a time zone would become objects
        unit = kind.partition("[")[2].rstrip("]").partition(",")[0]
        return seconds_of_array(np.asarray(series, dtype=f"M8[{unit}]")), DATES
    values = np.asarray(series)
    if kind.lower() in CATEGORICAL_DTYPES:
        return values.astype(object), LEVELLED
    if values.dtype.kind in "mM":
        return seconds_of_array(values), DATES if values.dtype.kind == "M" else DURATIONS
    if values.dtype.kind in "iuf":
        values = values.astype(np.float64)
        _check_finite(values, name)
        return values, NUMBERS
    return _of_objects(values.astype(object), name)


def _of_objects(values: Values, name: str) -> tuple[Values, str]:
    """Return numbers where all objects that are there are numbers or dates, else categories."""
    missing = missing_of(values)
    there = values[~missing]
    if there.size and all(isinstance(value, bool | np.bool_) for value in there):
        return values, LEVELLED
    as_numbers = np.full(len(values), np.nan)
    if all(isinstance(value, NUMERIC) for value in there):
        as_numbers[~missing] = there.astype(np.float64)
        _check_finite(as_numbers, name)
        return as_numbers, NUMBERS
    if all(isinstance(value, DATE_TYPES) for value in there):
        as_numbers[~missing] = [seconds_of(value) for value in there]
        lasts = all(isinstance(value, datetime.timedelta | np.timedelta64) for value in there)
        return as_numbers, DURATIONS if lasts else DATES
    for value in there:
        if not isinstance(value, str | NUMERIC):
            raise TypeError(
                f"column {name!r} of X holds {value!r}, a {type(value).__name__}: argument must be "
                "a string or a number; pass numbers, text, booleans or dates, or drop the column"
            )
    return values, TEXTS


def _check_finite(values: Doubles, name: str) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        raise ValueError(
            f"Input X contains infinity: column {name!r} in row {int(np.argmax(infinite))}; pass "
            "finite values, NaN for missing ones"
        )


# ---- numbers


def _numbers(column: dict[str, Any], values: Values, holds: str) -> Doubles:
    """Return values of a column that had numbers, dates or durations in `fit`, and has the same.

    Text may stand for numbers.
    """
    name = column["name"]
    fitted = column["holds"]
    if holds in (LEVELLED, TEXTS):
        return _numbers_of_objects(name, values, fitted, column.get("form"))
    found: Doubles = values.astype(np.float64)
    if (fitted, holds) == (DATES, NUMBERS) and (meant := days_of(found, surely=True)):
        tell(name, found, meant)
        return seconds_of_array(meant.values)
    if holds != fitted and not np.isnan(found).all():
        now = f"{found[~np.isnan(found)][0]:g} now" if holds == NUMBERS else f"{holds} now"
        remedy = ", of numbers by pandas.to_datetime" if (fitted, holds) == (DATES, NUMBERS) else ""
        raise ValueError(
            f"column {name!r} had {fitted} in fit, but has {now}; pass {fitted}{remedy}"
        )
    return found


def _numbers_of_objects(name: str, values: Values, fitted: str, form: list[str] | None) -> Doubles:
    """Return the numbers, or the seconds of dates, that text stands for, or raise."""
    kind = {NUMBERS: NUMBER, DATES: DATE}.get(fitted)
    texts, there = _texts_in(values)
    try:
        meant = kind and meaning_of(texts, there, DEFAULT, kind, form)
    except DoubtError as doubt:
        raise ValueError(f"column {name!r}: {doubt}, or convert it{_where(doubt, texts)}") from None
    if meant:
        tell(name, texts, meant)
        return _seconds_or_numbers(name, meant)[0]
    if not there.any():
        return np.full(len(values), np.nan)
    what = "dates, as text such as 2024-12-31" if kind == DATE else "the same kind of values"
    raise ValueError(
        f"column {name!r} had {fitted} in fit, but has {values[there][0]!r} now; pass {what}"
    )


def _texts_in(values: Values) -> tuple[Values, NDArray[np.bool_]]:
    """Return objects as text, booleans as 1 and 0, and which are not missing."""
    numbers = [int(v) if isinstance(v, bool | np.bool_) else v for v in values]
    gone = missing_of(values)
    texts = np.array(["" if no else bare(str(v)) for v, no in zip(numbers, gone, strict=True)], "O")
    return texts, np.array([not DEFAULT.is_missing(text) for text in texts], dtype=bool)


def _meaning_of(name: str, values: Values) -> Meaning | None:
    """Return what objects mean if these are dates, or numbers with units or a few texts.

    Text of numbers alone is a category, unless nearly every row has another.
    """
    texts, there = _texts_in(values)
    try:
        meant = meaning_of(texts, there, DEFAULT)
    except DoubtError as doubt:
        told = f"{doubt}, or convert it{_where(doubt, texts)}"
        warn(f"column {name!r} is taken for text: {told}", UserWarning)
        return None
    if meant is None:
        return None
    if meant.kind == NUMBER and not meant.form:  # words for a missing value are told too
        meant = meant._replace(wrong=(texts != "") & np.isnan(meant.values.astype(np.float64)))
        if not meant.wrong.any() and all(isinstance(value, str) for value in values[there]):
            if not mostly_different(len({*texts[there]}), int(there.sum())):
                return None
            note = f"column {{!r}} holds numbers as text, such as {texts[there][0]!r}"
            meant = meant._replace(notes=[note])
    tell(name, texts, meant)
    return meant


def _where(doubt: DoubtError, texts: Values) -> str:
    return f" (row {' and row '.join(map(str, doubt.rows(texts)))})"


def _seconds_or_numbers(name: str, meant: Meaning) -> tuple[Doubles, str]:
    if meant.kind == DATE:
        return seconds_of_array(meant.values), DATES
    _check_finite(meant.values, name)
    return meant.values, NUMBERS


def _names_out(column: dict[str, Any]) -> list[str]:
    """Return the names of the columns that encode a column."""
    return [name for _, names in _parts_of(column) for name in names]


def _parts_of(column: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the groups of columns that encode a column, by their kinds and names."""
    name = str(column["name"])
    match column["kind"]:
        case "number":
            waves = [
                ("period", [f"{name}, {wave} of the {period}" for wave in ("sine", "cosine")])
                for period in column.get("periods", ())
            ]
            marked = [("missing", [f"{name} is missing"])] if column["indicator"] else []
            kind = "date" if column.get("holds") == DATES else "number"
            return [(kind, [name]), *waves, *marked]
        case "category":
            ranks = [("number", [name])] if "order" in column else []
            return [*ranks, ("levels", names_of(column))]
        case "latitude":
            return [("place", [f"place {axis}"]) for axis in "xyz"]
        case "nothing":
            return [("number", [name])]
    return []
