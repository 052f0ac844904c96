"""Columns of text, booleans and categorical types: the levels, and the columns that encode them.

Two levels become 0 and 1. Each level of up to MOST_COLUMNS has a column of 0 and 1, so that
different levels have the squared distance 2. More levels have codes: rows of CODE random signs over
CODE^(1/2), with about the same distances. A level that no row of the fit had has zeros, at the
squared distance 1 of all others. A missing value, or empty text, is a level too. Levels that have
an order also give their ranks as a number.

Levels are compared as text, letters with accents however they are composed: True, 1 and 1.0 are
equal, and so is the text True if a column had no other text than True and False, or 1 and 0; a day
is equal with 00:00:00 and without.
"""

import functools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.remark import Remark
from gzkcore._util.state import number, sequence, stored, text
from gzkcore._util.typing import Doubles
from gzkcore._util.wording import counted
from gzkcore.rows.doubts import doubt_in
from gzkcore.rows.values import Values
from gzkcore.tabular.remarks import done

from .cells import BOOLEANS, FEW_LEVELS, LEVELS, TEXTS, Cells
from .column import Column, Drift

MOST_COLUMNS, CODE = 256, 128
# The first levels, by their number of rows, may have a length of their own.
FREQUENT = FEW_LEVELS
# What booleans are called where levels are text of true and false, and where they are numbers.
SPELLINGS = ({"1": "True", "0": "False"} | BOOLEANS, {"true": "1", "false": "0"})


class Category(Column):
    """A column of levels.

    Attributes
    ----------
    levels : list of str
        Those that are encoded: the frequent ones first. "" is a missing value.
    first : str or None
        Of two levels the one that is 0.
    order : list of str or None
        The levels, least first, if they have an order.
    mean, scale : float
        Of the ranks in this order.
    """

    _state = stored(
        levels=sequence(text()),
        first=text().if_there(),
        order=sequence(text()).if_there(),
        mean=number().if_there(),
        scale=number().if_there(),
    )
    kind = "category"
    HOLDS = (LEVELS, TEXTS)
    CHOICES = ("category",)
    FILLED = "it is unknown there"

    first: str | None = None
    order: list[str] | None = None

    @classmethod
    def as_chosen(cls, cells: Cells) -> Cells:
        """Return cells as levels; raise if one is not in their order."""
        cells = cells.as_levels()
        if cells.order is None:
            return cells
        cells.order = _spelt_as(cells.spelt, cells.order)
        known = {*cells.order, ""}
        if new := [text for text in cells.spelt[cells.distinct[1]] if text not in known]:
            others = f", nor are those of {counted(len(new) - 1, 'other row')}" * (len(new) > 1)
            raise ValueError(
                f"column {cells.name!r} has {new[0]!r}, which is none of the levels {cells.order}"
                f"{others}; add it to these"
            )
        return cells

    def learn(self, cells: Cells) -> None:
        """Learn the levels, and their order if the table knows it."""
        levels, counts = cells.levels
        if len(levels) == 2 and (cells.order is None or len(cells.order) == 2):
            self.first, self.levels = str(levels[0]), [str(levels[1])]
        else:
            by_count = levels[np.argsort(-counts, kind="stable")].tolist()
            self.levels = [*sorted(by_count[:FREQUENT]), *sorted(by_count[FREQUENT:])]
            if cells.order is not None:
                places = {level: place for place, level in enumerate(cells.order)}
                in_order = [places[level] for level in levels if level]
                ranks = np.repeat(in_order, counts[levels != ""])
                self.order = cells.order
                self.mean, self.scale = float(ranks.mean()), float(ranks.std()) or 1.0
        if cells.holds == TEXTS and not cells.chosen:
            self.doubt(doubt_of_texts(cells, "taken for categories"))

    @property
    def all_levels(self) -> list[str]:
        """The levels of the fit; "" is missing."""
        return [*self.levels, *([] if self.first is None else [self.first])]

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the groups of encoded columns: the rank, if there is one, and the levels."""
        ranks = [] if self.order is None else [("number", [self.name])]
        names = [self.name + (f"={level}" if level else " is missing") for level in self.levels]
        if len(self.levels) > MOST_COLUMNS:
            names = [f"{self.name} code {place}" for place in range(1, CODE + 1)]
        return [*ranks, ("levels", names)]

    def own_lengths(self, kind: str, width: int) -> int:
        """Return how many levels may have a length of their own: the frequent ones."""
        return FREQUENT if kind == "levels" and width == len(self.levels) else 0

    def read(self, *cells: Cells) -> Values:
        """Return the levels of new rows, spelt as in the fit."""
        levels = cells[0].as_levels()
        spelt = _spelt_as(self.all_levels, levels.spelt.tolist())
        return np.array(spelt, dtype=object)[levels.distinct[1]]

    def encode(self, values: Values) -> Doubles:
        """Return encoded rows."""
        codes = _codes(len(self.levels))
        places = {level: place for place, level in enumerate(self.levels)}
        none = np.zeros((1, codes.shape[1]))  # of a level that the fit did not see
        encoded = np.vstack([codes, none])[[places.get(text, -1) for text in values]]
        if self.order is None:
            return encoded
        ranks = {level: (rank - self.mean) / self.scale for rank, level in enumerate(self.order)}
        return np.column_stack([[ranks.get(text, 0.0) for text in values], encoded])

    def unknown(self, values: Values) -> NDArray[np.bool_]:
        """Return which rows have a level that no row of the fit had."""
        known = {*self.all_levels}
        return np.array([text not in known for text in values], dtype=bool)[:, None]

    def drift(self) -> Drift:
        """Return what collects levels that the fit has not seen."""
        return LevelDrift(self)

    def remarks(self) -> list[Remark]:
        """Return what was done to the levels."""
        remarks = [done("categories", self.name, "treated as categories")]
        if len(self.levels) > MOST_COLUMNS:
            words = f"with more than {MOST_COLUMNS} levels, which get codes"
            remarks.append(done("coded levels", self.name, words))
        if self.order is not None:
            remarks.append(done("ordered levels", self.name, "whose levels have an order"))
        if "" in self.all_levels:
            words = "whose missing values are a separate category"
            remarks.append(done("missing level", self.name, words))
        return remarks


@functools.lru_cache(maxsize=8)
def _codes(n_levels: int) -> Doubles:
    """Return what encodes each level, of shape (n_levels, n_columns)."""
    if n_levels <= MOST_COLUMNS:
        return np.eye(n_levels)
    signs = np.random.RandomState(0).randint(0, 2, (n_levels, CODE))
    return np.asarray((2.0 * signs - 1.0) / math.sqrt(CODE))


def _spelt_as(levels: Iterable[str], texts: list[str]) -> list[str]:
    """Return texts; booleans and 1 and 0 are spelt as in these levels, if they are all of them."""
    for spelling in SPELLINGS:
        if {*levels} <= {*spelling.values(), ""}:
            return [spelling.get(text.lower(), text) for text in texts]
    return texts


class LevelDrift(Drift):
    """Levels of new rows that no row of the fit had."""

    n_new, example = 0, ""

    def add(self, values: Values, unknown: NDArray[np.bool_]) -> None:
        """Add levels, and which of them are new; "" is missing."""
        super().add(values, unknown)
        new = unknown[:, 0] & (values != "")
        if new.any():
            self.example = self.example or values[int(np.argmax(new))]
            self.n_new += int(new.sum())

    def remarks(self, row: str = "row {}", start: int = 0) -> list[Remark]:
        """Return that there are new levels, if there are."""
        missing = super().remarks(row, start)
        if not self.n_new:
            return missing
        rows = counted(self.n_new, "row")
        sentence = (
            f"column {self.column.name!r} has levels that the fit did not see, in {rows}, such as "
            f"{self.example!r}: they are unknown"
        )
        return [*missing, Remark("new levels", self.column.names, sentence)]


def doubt_of_texts(cells: Cells, done_to_them: str) -> Remark | None:
    """Return that texts which were not read as numbers or dates seem to be some, if they do."""
    example, remedy = doubt_in({*map(str, cells.values[~cells.missing])})
    if not example:
        return None
    sentence = f"column {cells.name!r} is {done_to_them}: it holds texts such as {example!r}"
    return Remark("doubtful text", [cells.name], sentence, remedy)
