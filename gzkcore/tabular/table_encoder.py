"""Columns of a table as numbers that a kernel can compare.

`TableEncoder` finds out the kind of every column, holds the columns side by side, and leaves all
else to them: see `gzkcore.tabular.columns`. A class says there what makes a column one of its kind,
and how it is encoded.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gzkcore._util.remark import Remark
from gzkcore._util.state import all_or_nothing, flag, forget, ints, plain, sequence, stored, text
from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore._util.validation import SAME_COLUMNS, check_bool, check_choice, other_columns
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted, some_of
from gzkcore.rows.values import Values, missing_of

from .columns.category import Category
from .columns.cells import Cells, cells_of
from .columns.column import Column, Drift
from .columns.kinds import KINDS, as_chosen, check_chosen, column_of, dropped_of, from_data, to_data
from .columns.left_out import LeftOut, is_no_column
from .columns.place import (
    Place,
    by_kilometres,
    degrees_as_numbers,
    remarks_of_degrees,
    with_places,
)
from .remarks import together

__all__ = ["TableEncoder"]

IMPUTE, RAISE = "impute", "raise"  # what is done about missing values
# So many known levels, or fewer, are tried in place of a new one. Of more they are chosen in the
# order of predictions, of which there are so many at most.
MOST_STAND_INS, MOST_ORDERED = 64, 1024
MOST_NAMED = 5  # columns, where a warning says their order


class Groups(NamedTuple):
    """The encoded columns that belong together: a kernel may have one length for each group."""

    of_columns: Integers  # (n_features_out,), the number of each column's group
    # The same where frequent levels of categories have a length each, and others no influence, -1.
    of_levels: Integers
    kinds: list[str]  # of each of these groups: number, date, period, missing, levels, place

    def columns_of(self, kind: str) -> Integers:
        """Return the encoded columns of a kind."""
        return np.flatnonzero(np.array(self.kinds)[self.of_columns] == kind)

    def levels(self) -> list[Integers]:
        """Return the encoded columns of each category of several."""
        own = [np.flatnonzero(self.of_columns == group) for group in range(len(self.kinds))]
        pairs = zip(own, self.kinds, strict=True)
        return [index for index, kind in pairs if kind == "levels" and index.size > 1]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Columns of a table as numbers that a kernel can compare.

    Parameters
    ----------
    missing : {"impute", "raise"}, default="impute"
        What to do with missing values. "impute": in a column of numbers they become the median, and
        a column of zeros and ones marks the rows; a missing category, or empty text, is a separate
        level. "raise": they raise an error.
    columns : dict, optional
        The kinds of some columns, by name (by number in arrays), in place of what their values
        tell: "number", "log" (by its logarithms), "linear" (as it is), "category", "date",
        "latitude" and "longitude" (of one column each), "drop", or a list of levels, least first.
        For example ``{"zip": "category", "grade": ["low", "mid", "high"], "day": "date"}``.
    logarithms : bool, default=True
        Whether skewed columns of positive numbers, such as incomes, are replaced by logarithms.
        `KernelRegressor` and `KernelClassifier` try both.

    Attributes
    ----------
    columns_ : list of Column
        The columns, latitude and longitude as one if they are a place. Each has its `names`, its
        `kind` ("number", "date", "category", "place" or "left out"), and the parameters of its
        encoding, see `gzkcore.tabular.columns`.
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
    True and False, or 1 and 0; a day is equal with 00:00:00 and without. Dates and durations become
    seconds; dates without a time zone are UTC, and `transform` warns if only those of the fit, or
    only new ones, have a zone. A column of text holds dates if nearly every value is one, such as
    2024-12-31, 31.12.2024 or Dec 31, 2024, as for the command `gzkcore fit`. It holds numbers if
    nearly all share a unit (12.5 kmpl, 5 %), or if a few texts are among numbers. Warnings say how
    it was read, and which text is taken as missing. Otherwise it is a category.

    A level that `fit` did not see has zeros in all columns of its category; learners predict with
    known levels in its place. If a value is missing in a column that had no missing values in
    `fit`, it becomes the median. Both are warned of, and so are numbers and places that are unlike
    those of the fit. Columns that were left out may be absent in `transform`. Time: a sort of each
    column.

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
        missing=text(IMPUTE, RAISE).if_there(),
        logarithms=flag().if_there(),
        columns_=sequence(plain()),
        sources_=ints(None, below="n_features_in_"),
        on_sphere_=flag(),
    )
    # What collects how new rows differ from the fit, in rows that are encoded piece by piece.
    _drifts: list[Drift] | None = None

    def __init__(
        self,
        missing: str = "impute",
        *,
        columns: Mapping[Any, Any] | None = None,
        logarithms: bool = True,
    ) -> None:
        self.missing = missing
        self.columns = columns
        self.logarithms = logarithms

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == IMPUTE
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    def _to_data(self) -> dict[str, Any]:
        is_fitted = hasattr(self, "columns_")
        return {"columns_": [to_data(column) for column in self.columns_]} if is_fitted else {}

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> Self:
        made = cls()
        made.__dict__.update(data)
        if "columns_" in data:
            made.columns_ = [from_data(column) for column in data["columns_"]]
        return made

    def _check_state(self) -> None:
        inputs = np.sort(np.concatenate([[], *(column.inputs for column in self.columns_)]))
        if not np.array_equal(inputs, np.arange(self.n_features_in_)):
            raise ValueError("has not each of its input columns once in columns_")
        if any(len(column.names) != len(column.inputs) for column in self.columns_):
            raise ValueError("has a column with more names than inputs, or fewer")
        if not np.array_equal(self.sources_, _sources_of(self.columns_)):
            raise ValueError("has sources_ other than those of its columns_")

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
        check_choice("missing", self.missing, (IMPUTE, RAISE))
        check_bool("logarithms", self.logarithms)
        forget(self)
        cells, named = cells_of(X, skipped=dropped_of(self.columns))
        kinds = check_chosen(self.columns, [column.name for column in cells], named)
        for place, column in enumerate(cells):
            column.place, column.logarithms = place, self.logarithms
            if column.name in kinds:
                cells[place] = as_chosen(column, kinds[column.name])
        index = [c for c in cells if not (c.chosen or c.looked_at) and is_no_column(c)]
        if len(index) < len(cells):
            for column in index:
                column.left_out = "index"
        cells = [column.read() for column in cells]
        for column in cells:
            self._check_missing(column)
        columns = with_places([column_of(column) for column in cells], cells)
        left_out = [column for column in columns if isinstance(column, LeftOut)]
        if len(left_out) == len(columns):
            # Nothing tells rows apart: one column of zeros makes them all alike.
            left_out[0].alone = True
        texts = [column for column in left_out if column.reason == "names" and not column.doubts]
        for told in together(remark for column in texts for remark in column.remarks()):
            remedy = "name one as 'category' in columns= to keep it, or as 'drop' if that is right"
            warn(Remark(told.kind, told.columns, told.sentence.rstrip("."), remedy))
        self.sources_ = _sources_of(columns)
        self.on_sphere_ = {type(column) for column in columns} - {LeftOut} == {Place}
        if named:
            self.feature_names_in_ = np.array([column.name for column in cells], dtype=object)
        self.n_features_in_ = len(cells)
        self.columns_ = columns
        return self

    def _check_missing(self, cells: Cells) -> None:
        """Raise ValueError for missing values of the rows to fit to, if they are not imputed."""
        if self.missing == RAISE and not cells.left_out and cells.missing.any():
            raise ValueError(
                f"column {cells.name!r} has {counted(int(cells.missing.sum()), 'missing value')}, "
                f"the first in row {int(np.argmax(cells.missing))}, and missing='raise'; fill them "
                "in, or use missing='impute'"
            )

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

    def _encoded(self, X: Data, caller: str = "") -> tuple[Doubles, NDArray[np.bool_]]:
        """Return encoded rows, and by row and input column, which values the fit knew nothing like.

        These are a number missing that no row of the fit missed, and a category that none had.
        Errors name the class that was called.
        """
        return self._encode(self._read(X, caller or type(self).__name__))

    def _read(self, X: Data, caller: str) -> list[Values]:
        """Return the values of new rows, column by column, in the form of those of the fit."""
        check_is_fitted(self, "columns_")
        left_out = [column.name for column in self.columns_ if isinstance(column, LeftOut)]
        cells, named = cells_of(X, lambda names: self._wanted(names, caller), left_out)
        if not named:
            self._check_width(len(cells), caller)
            if hasattr(self, "feature_names_in_"):
                order = some_of(self.feature_names_in_.tolist(), MOST_NAMED)
                warn(
                    f"X does not have valid feature names, but {caller} was fitted with feature "
                    f"names; its columns are assumed to be in the order of the fit, {order}; pass "
                    "a data frame to match them by name"
                )
        elif not hasattr(self, "feature_names_in_"):
            warn(
                f"X has feature names, but {caller} was fitted without feature names; its columns "
                "are taken in their order; fit to a data frame to match them by name"
            )
        rows = []
        for column in self.columns_:
            values = column.read(*(cells[i] for i in column.inputs))
            if self.missing == RAISE:
                self._check_none_missing(column, values, [cells[i] for i in column.inputs])
            rows.append(values)
        return rows

    def _check_none_missing(self, column: Column, values: Values, cells: list[Cells]) -> None:
        for i, name in enumerate(column.names):
            own = values[:, i] if values.ndim > 1 else values
            gone = cells[i].missing | missing_of(own)
            if gone.any():
                raise ValueError(
                    f"column {name!r} has a missing value in row {int(np.argmax(gone))}, and "
                    "missing='raise'; fill it in, or use missing='impute'"
                )

    def _encode(self, rows: list[Values]) -> tuple[Doubles, NDArray[np.bool_]]:
        """Return encoded rows of values that `_read` returned, and what of them is unknown."""
        drifts = self._drifts or [column.drift() for column in self.columns_]
        unknown = np.zeros((len(rows[0]), self.n_features_in_), dtype=bool)
        encoded, end = np.empty((len(rows[0]), self.sources_.size)), 0
        for column, values, drift in zip(self.columns_, rows, drifts, strict=True):
            own = column.unknown(values)
            drift.add(values, own)
            unknown[:, column.inputs] = own
            first, end = end, end + len(column.encoded_names)
            encoded[:, first:end] = column.encode(values)
        if self._drifts is None:
            for remark in (remark for drift in drifts for remark in drift.remarks()):
                warn(remark)
        return encoded, unknown

    def _with_slopes(self, X: Data) -> tuple[Doubles, NDArray[np.bool_], list[int], Doubles]:
        """Return `_encoded`, which input columns have slopes, and the derivatives of rows by these.

        Their shape is (n_samples, n_columns, n_features_out).
        """
        values = self._read(X, type(self).__name__)
        rows, unknown = self._encode(values)
        slopes = [column.slopes(v) for column, v in zip(self.columns_, values, strict=True)]
        degrees = degrees_as_numbers(self.columns_)
        if degrees and degrees[1].west is not None:
            by_kilometres(self.columns_, slopes, values[self.columns_.index(degrees[0])])
        places = sorted(
            int(place)
            for column, own in zip(self.columns_, slopes, strict=True)
            for place in column.inputs
            if own is not None
        )
        if not places:
            raise ValueError("there are no slopes, since no column has numbers; predict without")
        by_inputs = np.zeros((len(rows), len(places), rows.shape[1]))
        for column, own in zip(self.columns_, slopes, strict=True):
            if own is not None:
                encoded = np.flatnonzero(self.sources_ == column.inputs[0])
                among = [places.index(place) for place in column.inputs]
                by_inputs[:, np.array(among)[:, None], encoded] = own
        return rows, unknown, places, by_inputs

    def groups(self) -> Groups:
        """Return which encoded columns belong together."""
        of_columns: list[int] = []
        of_levels: list[int] = []
        kinds: list[str] = []
        first = 0
        for column in self.columns_:
            for kind, names in column.parts():
                own = np.full(len(names), first)
                if n_own := column.own_lengths(kind, len(names)):
                    own = np.arange(len(names)) + first
                    own[n_own:] = -1
                first = max([first - 1, *own.tolist()]) + 1
                of_levels.extend(own.tolist())
                of_columns.extend([len(kinds)] * len(names))
                kinds.append(kind)
        return Groups(np.array(of_columns), np.array(of_levels), kinds)

    def stand_ins(
        self, rows: Doubles, unknown: NDArray[np.bool_], predict: Callable[[Doubles], Doubles]
    ) -> Iterator[tuple[Integers, int, Iterator[Doubles]]]:
        """Yield encoded rows with new levels, those with such in the same columns together.

        Each time their numbers, the number of known levels, of a column that has fewest, and the
        rows with known levels in place of new ones: all combinations, or some that are evenly
        spread in the order of predictions.
        """
        categories = [column for column in self.columns_ if isinstance(column, Category)]
        new = unknown[:, [int(column.inputs[0]) for column in categories]]
        for which in {*map(tuple, new[new.any(axis=1)].tolist())}:
            affected = np.flatnonzero((new == which).all(axis=1))
            columns = [*itertools.compress(categories, which)]
            levels = [self._in_order(column, predict) for column in columns]
            picked = zip(levels, _combined([*map(len, levels)]), strict=True)
            encoded = np.column_stack([own[some] for own, some in picked])
            places = np.isin(self.sources_, [column.inputs[0] for column in columns])
            yield affected, min(map(len, levels)), in_place(rows[affected], places, encoded)

    def _in_order(self, column: Category, predict: Callable[[Doubles], Doubles]) -> Doubles:
        """Return encoded levels in the order of predictions that are average in other columns."""
        levels = np.array(column.all_levels, dtype=object)
        encoded = column.encode(levels[_evenly(len(levels), min(len(levels), MOST_ORDERED))])
        average = np.zeros((1, self.sources_.size))
        rows = np.vstack([*in_place(average, self.sources_ == column.inputs[0], encoded)])
        return encoded[np.argsort(predict(rows)[:, 0], kind="stable")]

    def incomplete(self, rows: Doubles) -> NDArray[np.bool_]:
        """Return which encoded rows have a number that was filled in."""
        marks = self.groups().columns_of("missing")
        return np.asarray((rows[:, marks] > 0).any(axis=1))

    def has_logarithms(self) -> bool:
        """Say whether some column is encoded by logarithms."""
        return any(getattr(column, "unit", 0) for column in self.columns_)

    def remarks(self) -> list[Remark]:
        """Return what was done to columns beyond standardising them."""
        check_is_fitted(self, "columns_")
        in_order = sorted(self.columns_, key=lambda c: (KINDS.index(type(c)), c.inputs.min()))
        own = together(remark for column in in_order for remark in column.remarks())
        return [*own, *remarks_of_degrees(self.columns_)]

    def get_feature_names_out(self, input_features: Any = None) -> Values:
        """Return the names of encoded columns; one that another has already ends with (2)."""
        check_is_fitted(self, "columns_")
        inputs = {name for column in self.columns_ for name in column.names}
        names: dict[str, None] = {}
        for column in self.columns_:
            for name in column.encoded_names:
                may_be_input = name == column.name
                numbered = (f"{name} ({number})" for number in itertools.count(2))
                made = (n for n in itertools.chain([name], numbered) if n not in names)
                names[next(n for n in made if may_be_input or n not in inputs)] = None
        return np.array([*names], dtype=object)

    def _wanted(self, names: list[str], caller: str) -> list[str]:
        """Return the columns of the fit by name; all but those left out must be among `names`."""
        if not hasattr(self, "feature_names_in_"):
            self._check_width(len(names), caller)
            return names
        wanted: list[str] = self.feature_names_in_.tolist()
        needed = {
            name
            for column in self.columns_
            if not isinstance(column, LeftOut)
            for name in column.names
        }
        if not needed <= {*names}:
            raise ValueError(other_columns(names, [n for n in wanted if n in needed | {*names}]))
        return wanted

    def _check_width(self, width: int, caller: str) -> None:
        if width != self.n_features_in_:
            # "1 features" too: scikit-learn's checks of estimators ask for these words.
            raise ValueError(
                f"X has {width} features, but {caller} is expecting {self.n_features_in_} features "
                f"as input; {SAME_COLUMNS}"
            )


def _combined(counts: list[int]) -> Integers:
    """Return combinations of levels, a row for each column, given how many these have."""
    if math.prod(counts) <= MOST_STAND_INS:
        return np.indices(counts).reshape(len(counts), -1)
    rng = np.random.RandomState(0)
    return np.array([rng.permutation(_evenly(count, MOST_STAND_INS)) for count in counts])


def _evenly(count: int, size: int) -> Integers:
    """Return `size` numbers below a count, evenly spread."""
    return (2 * np.arange(size) + 1) * count // (2 * size)


def in_place(rows: Doubles, places: NDArray[np.bool_], values: Doubles) -> Iterator[Doubles]:
    """Yield rows that have other values in some places, given these one after the other."""
    for own in values:
        changed = rows.copy()
        changed[:, places] = own
        yield changed


def _sources_of(columns: Sequence[Column]) -> Integers:
    """Return the first input column of each encoded column."""
    widths = [len(column.encoded_names) for column in columns]
    return np.repeat([int(column.inputs[0]) for column in columns], widths)
