"""The values of a table's columns as they come, from files, frames, arrays or Dask.

Whatever has columns becomes a list of `Cells`: numbers, dates and durations in seconds, levels of
categories, or text that nobody has looked at yet. `Cells.read` finds out what such text means.
"""

import datetime
import decimal
import functools
import numbers
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gzkcore._util.memory import check_fits_dense
from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import NO_ROWS, as_table, check_sparse
from gzkcore._util.warn import warn
from gzkcore.rows.dates import (
    NEITHER,
    ZONED,
    ZONES_LACK,
    ZONES_TOLD,
    dates_of,
    seconds_of,
    seconds_of_array,
)
from gzkcore.rows.degrees import AXES, DegreesError, axis_of
from gzkcore.rows.frames import Frame, as_frame
from gzkcore.rows.text import DATE, DEFAULT, NUMBER, Meaning, days_of, meaning_of, tell, tell_zone
from gzkcore.rows.values import (
    DoubtError,
    Values,
    as_number,
    bare,
    distinct_values,
    merges,
    missing_of,
    texts_of,
)

# What cells hold; those of the first three are numbers, in seconds where they are times.
NUMBERS, DATES, DURATIONS, LEVELS, TEXTS = "numbers", "dates", "durations", "levels", "texts"
# Types of columns in data frames that are categories, though their values may be numbers.
CATEGORICAL_DTYPES = {"category", "categorical", "enum", "bool", "boolean"}
OF_OBJECTS = {"Int128", "UInt128", "Struct", "Array"}  # types of Polars that NumPy has not
DATE_TYPES = datetime.date | datetime.timedelta | np.datetime64 | np.timedelta64
BOOLEANS = {"true": "True", "false": "False"}  # how files spell them, and how frames do
FEW_LEVELS = 32  # So few different texts are categories, however many rows there are.
NUMERIC = numbers.Real | np.bool_ | decimal.Decimal


@dataclass
class Cells:
    """The values of a column of a table."""

    name: str
    values: Values
    holds: str  # one of those above
    place: int = 0  # of the column in the table
    chosen: str = ""  # the kind that the user has chosen, see `kinds`
    left_out: str = ""  # why the column is left out whatever its values, see `LeftOut`
    looked_at: bool = False  # whether the command has read text, and left out what predicts nothing
    logarithms: bool = True  # whether numbers may be encoded by their logarithms
    exact: Values | None = None  # whole numbers, or those of single precision, as they came
    order: list[str] | None = None  # of the levels, least first, if the table knows it
    form: list[str] = field(default_factory=list)  # how text has numbers or dates written

    @functools.cached_property
    def distinct(self) -> tuple[Values, Integers]:
        """The different values, and the place of each row's among them."""
        return distinct_values(self.values)

    @functools.cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing."""
        return missing_of(self.values)

    @functools.cached_property
    def spelt(self) -> Values:
        """The different values as text, "" if missing. True and false have one spelling."""
        texts = texts_of(self.distinct[0])
        if {text.lower() for text in texts} <= {*BOOLEANS, ""}:
            return np.array([BOOLEANS.get(text.lower(), "") for text in texts], dtype=object)
        return texts

    @functools.cached_property
    def levels(self) -> tuple[Values, Integers]:
        """The different texts, and how often each is there."""
        levels, places = np.unique(self.spelt, return_inverse=True)
        return levels, np.bincount(places[self.distinct[1]])

    def only_tells_rows_apart(self) -> bool:
        """Say whether these are texts of which nearly every row has another."""
        if self.holds not in (LEVELS, TEXTS) or self.order is not None or self.chosen:
            return False
        gone = int(self.missing.sum())
        return mostly_different(len(self.levels[0]) - (gone > 0), len(self.values) - gone)

    def read(self) -> "Cells":
        """Return numbers or dates where text stands for these, dates where numbers do."""
        if self.chosen or self.left_out:
            return self
        if self.holds == TEXTS:
            meant = _meaning_of(self)
            return self if meant is None else self._as_meant(meant)
        if self.holds == NUMBERS and (days := days_of(self.values)) is not None:
            tell(self.name, self.values, days)
            return self._as_meant(days)
        return self

    def meaning(self, kind: str) -> "Cells | None":
        """Return the numbers or dates that objects stand for, None if most stand for none."""
        texts, there = _texts_in(self)
        if not there.any():
            return replace(self, values=np.full(len(texts), np.nan), holds=NUMBERS)
        form = [self.chosen] if self.chosen in AXES else None
        meant = _understood(self.name, texts, there, kind, form, chosen=True)
        return None if meant is None else self._as_meant(meant)

    def _as_meant(self, meant: Meaning) -> "Cells":
        values, holds = _in_numbers(self.name, meant)
        return replace(self, values=values, holds=holds, form=meant.form)

    def as_levels(self) -> "Cells":
        """Return the values as levels of a category, whatever they are."""
        if self.holds in (LEVELS, TEXTS):
            return self
        values = self.values.astype(object)
        if self.holds != NUMBERS:  # seconds
            to = "M8[us]" if self.holds == DATES else "m8[us]"
            micros = np.round(np.where(self.missing, 0, self.values) * 1e6).astype(np.int64)
            values[~self.missing] = micros.astype(to).astype(str)[~self.missing]
        elif self.exact is not None:
            there = self.exact[~self.missing]
            is_float = there.dtype.kind == "f"  # 0.1 of single precision is 0.1
            values[~self.missing] = there.astype(str).astype(np.float64) if is_float else there
        return replace(self, values=values, holds=LEVELS)

    def read_as(self, holds: str, form: list[str], *, padded: bool = False) -> Doubles:
        """Return the numbers of a column that held numbers, dates or durations in the fit.

        Text may stand for them, written in the form that it had there, or `padded` with zeros.
        """
        if self.holds in (LEVELS, TEXTS):
            return _numbers_of_objects(self, holds, form, padded)
        values: Doubles = self.values.astype(np.float64)
        to_dates = (holds, self.holds) == (DATES, NUMBERS)
        if to_dates and (meant := days_of(values, surely=True)):
            tell(self.name, values, meant)
            return seconds_of_array(meant.values)
        if self.holds != holds and not np.isnan(values).all():
            has = f"{self.holds} now"
            if self.holds == NUMBERS:
                has = f"{values[~np.isnan(values)][0]:g} now"
            remedy = ", of numbers by pandas.to_datetime" if to_dates else ""
            raise ValueError(
                f"column {self.name!r} had {holds} in fit, but has {has}; pass {holds}{remedy}"
            )
        if self.holds == holds == DATES and not self.looked_at:
            tell_zone(self.name, self.form, form)
        return values

    def as_numbers(self) -> "Cells":
        """Return the values as numbers or durations, or raise."""
        cells: Cells | None = self
        if self.holds in (LEVELS, TEXTS):
            cells = self.meaning(NUMBER)
        if self.missing.all():
            return replace(self, values=np.full(len(self.values), np.nan), holds=NUMBERS)
        if cells is None or cells.holds not in (NUMBERS, DURATIONS):
            raise self._no("number")
        return cells

    def as_dates(self) -> "Cells":
        """Return the values as dates, or raise."""
        cells: Cells | None = self
        if self.holds in (LEVELS, TEXTS):
            cells = self.meaning(DATE)
        elif self.holds == NUMBERS and (days := days_of(self.values, surely=True)):
            cells = self._as_meant(days)
        if self.missing.all() or (cells is not None and cells.missing.all()):
            return replace(self, values=np.full(len(self.values), np.nan), holds=DATES)
        if cells is None or cells.holds != DATES:
            raise self._no("date")
        return cells

    def _no(self, kind: str) -> ValueError:
        """Return the error of values that are none of a kind that was chosen."""
        example = self.holds
        if self.holds == NUMBERS:
            example = f"{self.values[~self.missing][0]:g}"
        elif self.holds in (LEVELS, TEXTS):
            texts, there = _texts_in(self)
            wrong = dates_of(texts, there)[1]
            if kind == NUMBER:
                wrong = there & np.isnan([*map(as_number, texts)])
            example = repr(texts[int(np.argmax(wrong))])
        return ValueError(
            f"column {self.name!r} can't be a {kind}, as columns[{self.name!r}] says: it has "
            f"{example}; choose another kind, or convert it"
        )


def cells_of(
    X: Any, wanted: Callable[[list[str]], list[str]] = list, skipped: Iterable[str] = ()
) -> tuple[list[Cells], bool]:
    """Return the columns of a table, and whether these have names.

    Of a frame only those that are `wanted` of its names. A column that is `skipped`, whatever it
    holds, or is not there, is all 0.
    """
    X = as_frame(X)
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _of_frame(X, wanted, {*skipped}), True
    if sparse.issparse(X):
        check_sparse(X)
        check_fits_dense(X)
        X = X.toarray()
    columns = {f"x{place}": column for place, column in enumerate(as_table(X).T)}
    zeros = {name: np.zeros(len(columns[name])) for name in skipped if name in columns}
    return [_of_series(column, name) for name, column in (columns | zeros).items()], False


def _of_frame(X: Any, wanted: Callable[[list[str]], list[str]], skipped: set[str]) -> list[Cells]:
    names = [str(name) for name in X.columns]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"X has two columns named {twice[0]!r}; rename one")
    if len(X) == 0:
        raise ValueError(NO_ROWS.format("X"))
    if not names:
        raise ValueError("X has no columns; pass one or more")
    labels = dict(zip(names, X.columns, strict=True))
    columns = [
        _of_series(X[labels[name]], name)
        if name in labels and name not in skipped
        else Cells(name, np.zeros(len(X)), NUMBERS)
        for name in wanted(names)
    ]
    if isinstance(X, Frame):
        for cells in columns:
            cells.looked_at, cells.form = True, X.forms.get(cells.name, [])
            cells.holds = LEVELS if cells.holds == TEXTS else cells.holds
    return columns


def _of_series(series: Any, name: str) -> Cells:
    """Return a column of a frame or an array."""
    kind = str(series.dtype).partition("(")[0]
    zone = getattr(series.dtype, "tz", getattr(series.dtype, "time_zone", None))  # pandas', Polars'
    form = [] if zone is None else [NEITHER, ZONED]
    if kind.startswith("datetime64["):  # pandas', which with a time zone would become objects
        unit = kind.partition("[")[2].rstrip("]").partition(",")[0]
        dates = np.asarray(series, dtype=f"M8[{unit}]")
        return Cells(name, seconds_of_array(dates), DATES, form=form)
    values = np.fromiter(series.to_list(), object) if kind in OF_OBJECTS else np.asarray(series)
    if values.dtype.kind == "f" and "int" in kind.lower():  # Polars' with nulls
        values = np.fromiter(series.to_list(), object)
    if kind.lower() in CATEGORICAL_DTYPES:
        return Cells(name, values.astype(object), LEVELS, order=_order_of(series.dtype))
    if values.dtype.kind in "mM":
        holds = DATES if values.dtype.kind == "M" else DURATIONS
        return Cells(name, seconds_of_array(values), holds, form=form)
    if values.dtype.kind in "iuf":
        if values.dtype.kind in "iu" and merges(values):
            return Cells(name, values.astype(object), TEXTS)
        exact = None if values.dtype == np.float64 else values
        values = values.astype(np.float64)
        check_finite(values, name)
        return Cells(name, values, NUMBERS, exact=exact)
    return _of_objects(values.astype(object), name)


def _order_of(dtype: Any) -> list[str] | None:
    """Return the levels of a type whose order pandas or Polars knows, least first."""
    if not (getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum"):
        return None
    levels = np.array([*dtype.categories], dtype=object)
    order: list[str] = texts_of(levels).tolist()
    return order


def _of_objects(values: Values, name: str) -> Cells:
    """Return numbers where all objects that are there are numbers or dates, else levels or text."""
    cells = Cells(name, values, TEXTS)
    different, places = cells.distinct
    missing = missing_of(different)
    there = different[~missing]
    if there.size and all(isinstance(value, bool | np.bool_) for value in there):
        return Cells(name, values, LEVELS)
    as_numbers = np.full(len(different), np.nan)
    if all(isinstance(value, NUMERIC) for value in there):
        as_numbers[~missing] = there.astype(np.float64)
        check_finite(as_numbers[places], name)
        return cells if merges(there) else Cells(name, as_numbers[places], NUMBERS, exact=values)
    if all(isinstance(value, DATE_TYPES) for value in there):
        as_numbers[~missing] = [seconds_of(value) for value in there]
        lasts = [isinstance(value, datetime.timedelta | np.timedelta64) for value in there]
        if any(lasts) and not all(lasts):
            raise TypeError(f"column {name!r} of X holds dates and durations; pass one of them")
        plain = [value for value in there if getattr(value, "tzinfo", None) is None]
        form = [] if len(plain) == len(there) else [NEITHER, ZONED]
        if form and plain:
            mixed = (ZONES_TOLD + ZONES_LACK.format(str(plain[0]))).format(name)
            warn(Remark("reading", [name], mixed))
        return Cells(name, as_numbers[places], DURATIONS if any(lasts) else DATES, form=form)
    for value in there:
        if not isinstance(value, str | NUMERIC):
            raise TypeError(
                f"column {name!r} of X holds {reprlib.repr(value)}, of type "
                f"{type(value).__name__}: argument must be a string or a number; convert it to "
                "numbers, text, booleans or dates, or drop the column"
            )
    return cells


def check_finite(values: Doubles, name: str) -> None:
    """Raise ValueError for infinite numbers of a column."""
    infinite = np.isinf(values)
    if infinite.any():
        raise ValueError(
            f"Input X contains infinity: column {name!r} in row {int(np.argmax(infinite))}; pass "
            "finite values, NaN for missing ones"
        )


# ---- what texts mean


def _meaning_of(cells: Cells) -> Meaning | None:
    """Return what objects mean if these are dates, or numbers with units or a few texts.

    Text of numbers alone is a category, unless nearly every row has another.
    """
    name, (texts, there) = cells.name, _texts_in(cells)
    try:
        meant = meaning_of(texts, there, DEFAULT, axis=axis_of(name))
    except DegreesError as error:
        raise ValueError(f"column {name!r}: {_in_rows(error, texts)}") from None
    except DoubtError as doubt:
        why = f"column {name!r} is taken for text: {_in_rows(doubt, texts)}"
        warn(Remark("doubtful text", [name], why))
        return None
    if meant is None:
        return None
    if meant.kind == NUMBER and not meant.form:  # words for a missing value are told too
        meant = meant._replace(wrong=(texts != "") & np.isnan(meant.values.astype(np.float64)))
        if not meant.wrong.any() and all(isinstance(value, str) for value in cells.values[there]):
            if not mostly_different(len({*texts[there]}), int(there.sum())):
                return None
            note = f"column {{!r}} holds numbers as text, such as {texts[there][0]!r}"
            meant = meant._replace(notes=[note])
    tell(name, texts, meant)
    return meant


def _understood(
    name: str, texts: Values, there: NDArray[np.bool_], kind: str, form: list[str] | None,
    *, chosen: bool = False, padded: bool = True,
) -> Meaning | None:  # fmt: skip
    """Return what texts of a kind mean, and tell it; ValueError if they have two readings."""
    try:
        meant = meaning_of(
            texts, there, DEFAULT, kind, form, chosen=chosen, axis=axis_of(name), padded=padded
        )
    except DoubtError as doubt:
        raise ValueError(f"column {name!r}: {_in_rows(doubt, texts)}") from None
    if meant is not None:
        tell(name, texts, meant)
    return meant


def _numbers_of_objects(cells: Cells, holds: str, form: list[str], padded: bool) -> Doubles:
    """Return the numbers, or the seconds of dates, that text stands for, or raise."""
    kind = {NUMBERS: NUMBER, DATES: DATE}.get(holds)
    name, (texts, there) = cells.name, _texts_in(cells)
    meant = kind and _understood(name, texts, there, kind, form, padded=padded)
    if meant:
        return _in_numbers(name, meant)[0]
    if not there.any():
        return np.full(len(texts), np.nan)
    what = "dates, as text such as 2024-12-31" if kind == DATE else "the same kind of values"
    raise ValueError(
        f"column {name!r} had {holds} in fit, but has {cells.values[there][0]!r} now; pass {what}"
    )


def _texts_in(cells: Cells) -> tuple[Values, NDArray[np.bool_]]:
    """Return objects as text, booleans as 1 and 0, and which are not missing."""
    different, places = cells.distinct
    objects = [int(v) if isinstance(v, bool | np.bool_) else v for v in different]
    gone = missing_of(different)
    texts = np.array(["" if no else bare(str(v)) for v, no in zip(objects, gone, strict=True)], "O")
    there = np.array([not DEFAULT.is_missing(text) for text in texts], dtype=bool)
    return texts[places], there[places]


def _in_rows(doubt: DoubtError, texts: Values) -> str:
    """Return what is in doubt, and in which rows."""
    return f"{doubt}, or convert it (row {' and row '.join(map(str, doubt.rows(texts)))})"


def _in_numbers(name: str, meant: Meaning) -> tuple[Doubles, str]:
    if meant.kind == DATE:
        return seconds_of_array(meant.values), DATES
    check_finite(meant.values, name)
    return meant.values, NUMBERS


def mostly_different(n_levels: int, n_values: int) -> bool:
    """Say whether so many different texts among values tell rows apart, and nothing else."""
    return n_levels > max(FEW_LEVELS, n_values / 2)
