"""The kinds of columns: the one table of them, and what follows from it.

Cells make a column of the first kind whose `of` takes them, or of a kind that a user has chosen.
What is done to columns is said in the order of the table, too.
"""

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gzkcore._util.state import check_fields, check_rest, state_of
from gzkcore._util.wording import counted, in_list, meant, nearest
from gzkcore.rows.degrees import AXES
from gzkcore.rows.values import texts_of

from .category import Category
from .cells import Cells
from .column import Column
from .date import Date
from .left_out import LeftOut
from .number import Number
from .place import Place

KINDS: tuple[type[Column], ...] = (LeftOut, Number, Date, Category, Place)


def column_of(cells: Cells) -> Column:
    """Return the column that cells make; a chosen one may be left out, if it is constant."""
    kinds = [k for k in KINDS if not cells.chosen or k is LeftOut or cells.chosen in k.CHOICES]
    return next(made for kind in kinds if (made := kind.of(cells)) is not None)


def dropped_of(chosen: Any) -> list[str]:
    """Return the names of columns that are to be dropped; TypeError unless kinds are a dict."""
    if chosen is not None and not isinstance(chosen, Mapping):
        raise TypeError(
            f"columns={chosen!r} must be a dict from columns to kinds, {{'zip': 'category'}} or "
            "the like"
        )
    dropped = [column for column, kind in (chosen or {}).items() if _is(kind, "drop")]
    return [*map(str, dropped), *map(_numbered, dropped)]


def check_chosen(chosen: Any, names: Sequence[str], named: bool) -> dict[str, Any]:
    """Return the chosen kind of each column by name, or raise; by number if they have no names."""
    choices = [choice for kind in KINDS for choice in kind.CHOICES]
    kinds: dict[str, Any] = {}
    known = {*names}
    for column, kind in (chosen or {}).items():
        name = str(column) if named else _numbered(column)
        if name not in known:
            near = nearest(column, names)
            remedy = f"did you mean {near!r}?" if near else f"there are {_some(names)}"
            raise ValueError(f"columns has {column!r}, which is no column of X; {remedy}")
        if name in kinds:
            raise ValueError(f"columns has {name!r} twice; choose one kind")
        if not any(_is(kind, choice) for choice in choices) and len(_levels(kind)) < 2:
            raise ValueError(
                f"columns[{column!r}]={kind!r} must be one of {', '.join(choices)}, or a list of "
                f"two or more levels, least first, that differ as text{meant(kind, choices)}"
            )
        kinds[name] = kind
    counts = [sum(_is(kind, axis) for kind in kinds.values()) for axis in AXES]
    if any(counts) and counts != [1, 1]:
        has = " and ".join(map(counted, counts, AXES))
        raise ValueError(f"columns has {has}; choose one column of each")
    return kinds


def _is(kind: Any, choice: str) -> bool:
    return isinstance(kind, str) and kind == choice


def _numbered(column: Any) -> str:
    """Return the name of an array's column that is named by its number."""
    return f"x{int(column)}" if isinstance(column, numbers.Integral) else str(column)


def _levels(kind: Any) -> list[str]:
    """Return the levels of a list as text; none if they are no list, empty or equal as text."""
    if not isinstance(kind, list | tuple):
        return []
    levels = np.empty(len(kind), dtype=object)
    levels[:] = kind
    order: list[str] = texts_of(levels).tolist()
    return order if len({*order}) == len(order) and "" not in order else []


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(in_list, names[:8])) + ", ..." * (len(names) > 8)


def as_chosen(cells: Cells, choice: Any) -> Cells:
    """Return the values of a column as those of a chosen kind, or raise where one is none."""
    if not isinstance(choice, str):
        return Category.as_chosen(replace(cells, chosen="category", order=_levels(choice)))
    kind = next(kind for kind in KINDS if choice in kind.CHOICES)
    return kind.as_chosen(replace(cells, chosen=choice))


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
