"""The kinds of columns: the one table of them.

Cells make a column of the first kind whose `of` takes them. What is done to columns is said in this
order, too.
"""

from collections.abc import Mapping
from typing import Any

from gzkcore._util.state import check_fields, check_rest, state_of

from .category import Category
from .cells import Cells
from .column import Column
from .date import Date
from .left_out import LeftOut
from .number import Number
from .place import Place

KINDS: tuple[type[Column], ...] = (LeftOut, Number, Date, Category, Place)


def column_of(cells: Cells) -> Column:
    """Return the column that cells make."""
    return next(made for kind in KINDS if (made := kind.of(cells)) is not None)


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
