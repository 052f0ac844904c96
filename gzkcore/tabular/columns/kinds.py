"""The kinds of columns: the one table of them, and what follows from it.

Cells make a column of the first kind whose `of` takes them, or of a kind that a user has chosen.
What is done to columns is said in the order of the table, too.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gzkcore._util.state import check_fields, check_rest, state_of
from gzkcore._util.wording import in_list
from gzkcore.rows.values import texts_of

from .category import Category
from .cells import Cells
from .column import Column
from .date import Date
from .left_out import LeftOut
from .number import DEGREES, Number
from .place import Place

KINDS: tuple[type[Column], ...] = (LeftOut, Number, Date, Category, Place)


def column_of(cells: Cells) -> Column:
    """Return the column that cells make; a chosen one may be left out, if it is constant."""
    kinds = [k for k in KINDS if not cells.chosen or k is LeftOut or cells.chosen in k.CHOICES]
    return next(made for kind in kinds if (made := kind.of(cells)) is not None)


def check_chosen(chosen: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the chosen kind of each column by name, or raise; arrays may have them by number."""
    if chosen is None:
        return {}
    if not isinstance(chosen, Mapping):
        raise TypeError(
            f"columns={chosen!r} must be a dict from columns to kinds, {{'zip': 'category'}} or "
            "the like"
        )
    choices = [choice for kind in KINDS for choice in kind.CHOICES]
    kinds = {}
    for column, kind in chosen.items():
        name = f"x{column}" if isinstance(column, int) else str(column)
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else f"there are {_some(names)}"
            raise ValueError(f"columns has {column!r}, which is no column of X; {remedy}")
        is_levels = isinstance(kind, list | tuple) and len(set(kind)) == len(kind) > 1
        if not is_levels and not (isinstance(kind, str) and kind in choices):
            raise ValueError(
                f"columns[{column!r}]={kind!r} must be one of {', '.join(choices)}, or a list of "
                "two or more different levels, least first"
            )
        kinds[name] = kind
    both = [[name for name, kind in kinds.items() if kind == degrees] for degrees in DEGREES]
    if any(both) and not len(both[0]) == len(both[1]) == 1:
        raise ValueError(
            f"columns has {len(both[0])} latitudes and {len(both[1])} longitudes; choose one "
            "column of each"
        )
    return kinds


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(in_list, names[:8])) + ", ..." * (len(names) > 8)


def as_chosen(cells: Cells, choice: Any) -> Cells:
    """Return the values of a column as those of a chosen kind, or raise where one is none."""
    if isinstance(choice, str):
        kind = next(kind for kind in KINDS if choice in kind.CHOICES)
        return kind.as_chosen(replace(cells, chosen=choice))
    levels = np.array([*choice], dtype=object)
    order = texts_of(levels, np.zeros(len(levels), dtype=bool)).tolist()
    return Category.as_chosen(replace(cells, chosen="category", order=order))


def to_data(column: Column) -> dict[str, Any]:
    """Return what a model's file keeps of a column."""
    own = vars(column)
    return {"kind": column.kind} | {key: own[key] for key in state_of(type(column)) if key in own}


def from_data(data: Mapping[str, Any]) -> Column:
    """Return the column that a file keeps, checked; ValueError if it is none."""
    kinds = {kind.kind: kind for kind in KINDS}
    if data.get("kind") not in kinds:
        raise ValueError(f"has a column of kind {data.get('kind')!r}, not of {', '.join(kinds)}")
    kind = kinds[data["kind"]]
    fields = {key: value for key, value in data.items() if key != "kind"}
    if unknown := [key for key in fields if key not in state_of(kind)]:
        raise ValueError(f"has a {kind.kind} with {unknown[0]!r}, which is unknown")
    check_fields(kind, fields)
    column = kind.__new__(kind)
    vars(column).update(fields)
    check_rest(column)
    return column
