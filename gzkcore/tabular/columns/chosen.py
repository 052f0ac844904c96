"""Kinds of columns that a user has chosen, in place of those that `Column.of` would find.

- "number", "log", "linear": numbers; by their logarithms, or as they are; without a choice both are
  judged by how skewed they are, and how far out values lie
- "category", or a list of levels, least first: text, whatever it looks like
- "date"
- "latitude" and "longitude", of one column each: places on the globe
- "drop": left out
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from gzkcore._util.wording import in_list
from gzkcore.rows.dates import seconds_of_array
from gzkcore.rows.text import DATE, NUMBER, days_of
from gzkcore.rows.values import missing_of, texts_of

from .cells import DATES, DURATIONS, LEVELS, NUMBERS, TEXTS, Cells

SCALES = ("number", "log", "linear")
DEGREES = ("latitude", "longitude")
CHOICES = (*SCALES, "category", "date", *DEGREES, "drop")


def check_chosen(chosen: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the chosen kind of each column by name, or raise; arrays may have them by number."""
    if chosen is None:
        return {}
    if not isinstance(chosen, Mapping):
        raise TypeError(
            f"columns={chosen!r} must be a dict from columns to kinds, {{'zip': 'category'}} or "
            "the like"
        )
    kinds = {}
    for column, kind in chosen.items():
        name = f"x{column}" if isinstance(column, int) else str(column)
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            told = f"did you mean {close[0]!r}?" if close else f"there are {_some(names)}"
            raise ValueError(f"columns has {column!r}, which is no column of X; {told}")
        is_levels = isinstance(kind, list | tuple) and len(set(kind)) == len(kind) > 1
        if not is_levels and not (isinstance(kind, str) and kind in CHOICES):
            raise ValueError(
                f"columns[{column!r}]={kind!r} must be one of {', '.join(CHOICES)}, or a list of "
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


def as_chosen(cells: Cells, kind: Any) -> Cells:
    """Return the values of a column as those of a chosen kind, or raise where one is none."""
    cells = replace(cells, chosen=kind if isinstance(kind, str) else "category")
    if not isinstance(kind, str):
        order = texts_of(np.array([*kind], dtype=object), np.zeros(len(kind), dtype=bool)).tolist()
        levels = replace(cells.as_levels(), order=order)
        new = [text not in {*order, ""} for text in levels.texts]
        if any(new):
            row = int(np.argmax(new))
            raise ValueError(
                f"column {cells.name!r} has {levels.texts[row]!r} in row {row}, which is none of "
                f"the levels {order}; add it to columns[{cells.name!r}]"
            )
        return levels
    if kind == "drop":
        return replace(cells, left_out="dropped")
    if kind == "category":
        return cells.as_levels()
    if kind == "date":
        return _as_dates(cells)
    if cells.holds in (LEVELS, TEXTS):
        return cells.meaning(NUMBER) or _refuse(cells, "number")
    return cells if cells.holds in (NUMBERS, DURATIONS) else _refuse(cells, "number")


def _as_dates(cells: Cells) -> Cells:
    if cells.holds == NUMBERS:
        days = days_of(cells.values, surely=True)
        if days is None:
            _refuse(cells, "date")
        seconds = seconds_of_array(days.values)
        return replace(cells, values=seconds, holds=DATES, form=days.form)
    if cells.holds in (LEVELS, TEXTS):
        return cells.meaning(DATE) or _refuse(cells, "date")
    return cells if cells.holds == DATES else _refuse(cells, "date")


def _refuse(cells: Cells, kind: str) -> NoReturn:
    there = cells.values[~missing_of(cells.values)]
    example = f"{there[0]!r}" if cells.holds in (LEVELS, TEXTS, NUMBERS) else cells.holds
    raise ValueError(
        f"column {cells.name!r} can't be a {kind}, as columns[{cells.name!r}] says: it has "
        f"{example}; choose another kind, or convert it"
    )
