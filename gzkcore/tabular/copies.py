"""Columns that are copies: of the target, as labels or numbers, or of another column."""

from collections.abc import Iterable, Sequence

import numpy as np

from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles
from gzkcore.rows.values import Values, missing_of

from .columns.column import Column
from .columns.left_out import LeftOut
from .remarks import done, together

FEWEST = 30  # rows of each label, and beside the most frequent target, that a copy agrees with
# An exact linear function leaves no larger part of the spread; one that was rounded, no larger one,
# and no error beyond the last decimals, of DECIMALS at most.
SAME, ROUNDED, DECIMALS = 1e-5, 1e-2, 6
FIRST = 1000  # So many rows tell of most columns that they are no copies.
# Copies of each other are looked for among so many columns, and so many pairs that seem alike.
MOST_COLUMNS, MOST_PAIRS = 1000, 2000


def doubt_copies(
    columns: Sequence[Column], values: Iterable[Values], Y: Doubles, labels: Values | None
) -> None:
    """Warn of columns, given their values, that tell the targets, or the labels, exactly.

    The only column may well do so: then there is a line to learn.
    """
    targets = Y.T if labels is None else [labels]
    for column, own in zip(columns, values, strict=True):
        line = labels is None and own.dtype.kind == "f"
        if len(columns) > 1 and own.ndim == 1 and any(_tells(own, y, line) for y in targets):
            sentence = f"column {column.name!r} tells the target exactly, as a copy of it does"
            remedy = "leave it out if new rows don't have it (in the command by --drop)"
            column.doubt(Remark("copy", [column.name], sentence, remedy))


def about_copies(columns: Sequence[Column], values: Iterable[Values]) -> list[Remark]:
    """Return a remark on columns, given their values, that are linear functions of others.

    They agree in as many rows as a copy of the target does, and lack values where the others do.
    """
    numbers = {
        column.name: own
        for column, own in zip(columns, values, strict=True)
        if own.dtype.kind == "f" and own.ndim == 1 and not isinstance(column, LeftOut)
    }
    if not 1 < len(numbers) <= MOST_COLUMNS:
        return []
    step = 1 + (len(next(iter(numbers.values()))) - 1) // FIRST
    some = np.column_stack([own[::step] for own in numbers.values()])
    there, copies, remarks = ~np.isnan(some), set[str](), []
    apart = np.where(there, some, 0.0)
    apart /= np.maximum(np.abs(apart).max(axis=0), 1e-300)
    apart -= there * (apart.sum(axis=0) / np.maximum(there.sum(axis=0), 1))
    apart /= np.maximum(np.linalg.norm(apart, axis=0), 1e-300)
    alike = np.argwhere(np.triu(np.abs(apart.T @ apart) >= 1 - ROUNDED**2, 1))
    for one, other in ([[*numbers][place] for place in pair] for pair in alike[:MOST_PAIRS]):
        x, y = numbers[one], numbers[other]
        if (
            copies.isdisjoint((one, other))
            and np.array_equal(np.isnan(x), np.isnan(y))
            and all(_tells(x[::every], y[::every], line=True) for every in (step, 1))
        ):
            copies.add(other)
            words = "that are linear functions of others, in brackets: one of each is enough"
            remarks.append(done("copies", f"{other} ({one})", words))
    return together(remarks)


def _tells(values: Values, y: Values, line: bool) -> bool:
    """Say whether y is an exact linear function of a column, or has one value for each of it."""
    there = ~missing_of(values)
    values, y = values[there], y[there]
    if 2 * len(y) < len(there) or not (_on_line if line else _one_to_one)(values, y):
        return False
    return bool(len(y) - np.unique(y, return_counts=True)[1].max() >= FEWEST)


def _on_line(values: Doubles, targets: Doubles) -> bool:
    """Say whether targets are a linear function of values, but for the rounding of both."""
    largest = [max(np.abs(each).max(), 1e-300) for each in (values, targets)]
    x, y = values / largest[0], targets / largest[1]
    x, y = x - x.mean(), y - y.mean()
    slope = (x @ y) / max(float(x @ x), 1e-300)
    left = y - slope * x
    part = np.linalg.norm(left) / max(float(np.linalg.norm(y)), 1e-300)
    if not SAME < part <= ROUNDED:
        return bool(part <= SAME)
    rounding = _unit(targets) / largest[1] + abs(slope) * _unit(values) / largest[0]
    return bool(np.abs(left).max() <= rounding)


def _unit(values: Doubles) -> float:
    """Return the last decimal that numbers are written with, 0 where they have too many."""
    units = (10.0**-places for places in range(DECIMALS + 1))
    tried = ((unit, values / unit) for unit in units)
    return next((u for u, v in tried if np.allclose(v, np.round(v), 1e-12, 1e-6)), 0.0)


def _one_to_one(values: Values, y: Values) -> bool:
    for some in (slice(FIRST), slice(None)):
        pairs = {*zip(values[some].tolist(), y[some].tolist(), strict=True)}
        if {len({*one}) for one in zip(*pairs, strict=True)} != {len(pairs)}:
            return False
    return len(pairs) * FEWEST <= len(y)
