"""Columns that are left out, each with its reason.

- "constant": all values are equal; "empty": all are missing.
- "index": a saved index of pandas or row names of R, such as "Unnamed: 0", see
  `gzkcore.rows.index`, or a comment beside the table: a column without a name, and nearly empty.
- "names": text whose distinct values are more than 32, and more than half of all values: names or
  numbers of things.
- "dropped": as asked.
"""

from dataclasses import replace

import numpy as np

from gzkcore._util.remark import Remark
from gzkcore._util.state import flag, stored, text
from gzkcore._util.typing import Doubles
from gzkcore.rows.degrees import AXES
from gzkcore.rows.index import MOST_ROWS, is_comment, is_index
from gzkcore.rows.values import Values
from gzkcore.tabular.remarks import done

from .category import doubt_of_texts
from .cells import LEVELS, NUMBERS, TEXTS, Cells
from .column import Column

REASONS = {  # and what is said of such columns
    "constant": "left out because they are constant",
    "empty": "left out because they have no value",
    "index": "left out because they seem to be a saved index or a comment",
    "names": "left out because nearly every row has a different text",
    "dropped": "left out as asked",
}


class LeftOut(Column):
    """A column that nothing is learned from.

    Attributes
    ----------
    reason : {"constant", "empty", "index", "names", "dropped"}
    alone : bool
        Whether all columns are left out and this one stands for them by a column of zeros, which
        makes all rows alike.
    """

    _state = stored(reason=text(*REASONS), alone=flag().if_there())
    kind = "left out"
    CHOICES = ("drop",)

    reason: str
    alone = False

    @classmethod
    def of(cls, cells: Cells) -> Column | None:
        """Return the column that is left out, None if there is something to learn from it."""
        if not (reason := reason_of(cells)):
            return None
        made = cls(cells.name, cells.place)
        made.reason = reason
        if reason == "names":
            made.doubt(doubt_of_texts(cells, "left out"))
        elif reason == "index":
            seems = f"column {cells.name!r} seems to be a saved index or a comment, and is left out"
            remedy = "rename it, or choose what it is, to keep it"
            made.doubt(Remark("index", made.names, seems, remedy))
        return made

    @classmethod
    def as_chosen(cls, cells: Cells) -> Cells:
        """Return cells that are dropped."""
        return replace(cells, left_out="dropped")

    def parts(self) -> list[tuple[str, list[str]]]:
        """Return a column of zeros where all are left out."""
        return [("number", [self.name])] if self.alone else []

    def encode(self, values: Values) -> Doubles:
        """Return zeros where all columns are left out, else nothing."""
        return np.zeros((len(values), int(self.alone)))

    def remarks(self) -> list[Remark]:
        """Return why the column is left out."""
        return [done(self.reason, self.name, REASONS[self.reason])]


def reason_of(cells: Cells) -> str:
    """Return why a column is left out, "" if there is something to learn from it."""
    if cells.left_out:
        return cells.left_out
    if cells.missing.all():
        return "empty"
    if cells.holds in (LEVELS, TEXTS):
        if len(cells.levels[0]) < 2:
            return "constant"
        return "names" if cells.only_tells_rows_apart() else ""
    if cells.chosen in AXES:
        return ""  # places along a parallel, or at one place
    there = cells.values[~cells.missing]
    return "constant" if there.min() == there.max() and not cells.missing.any() else ""


def is_no_column(cells: Cells) -> bool:
    """Say whether a column is a saved index, or a comment beside the table."""
    may_be_index = cells.holds in (NUMBERS, TEXTS)
    if may_be_index and is_index(cells.name, cells.place, cells.values[:MOST_ROWS].tolist()):
        return True
    return is_comment(cells.name, cells.values)
