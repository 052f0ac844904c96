"""How many rows of a table the command holds out, and checks that enough are left to learn from."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted
from gzkcore.learn.held_out import FOLDS, group_folds, hashed_folds, some_groups
from gzkcore.rows.dates import DAY_SECONDS
from gzkcore.rows.files import Table
from gzkcore.rows.values import as_number
from gzkcore.tabular.columns.date import PERIODS

SHARE = 0.1  # The share of rows that is held out, unless --test-fraction says otherwise.
SECONDS = {  # of what a stretch of time may be as long as, by whose name may be short
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": DAY_SECONDS, "week": 7 * DAY_SECONDS,
    "month": PERIODS["year"] / 12, "year": PERIODS["year"],
}  # fmt: skip
FEWEST_ROWS = 20  # A table with fewer rows is refused; a fit takes at least half as many.


def groups_held_out(groups: Integers, share: float, seed: int) -> NDArray[np.bool_]:
    """Say which rows are held out: about this share of the groups, one at least, but not all."""
    n_groups = len(np.unique(groups))
    return some_groups(groups, min(max(round(share * n_groups), 1), n_groups - 1), seed)


def length_of(length: str) -> tuple[float, str]:
    """Return the seconds of a length such as week, 6h or 90min, and its words, or raise."""
    found = re.fullmatch(r"(\d*\.?\d*) ?([a-z]|[a-z]+?)s?", length.lower())
    number, name = found.groups() if found else ("0", "")
    unit = next((unit for unit in SECONDS if unit.startswith(name)), "")
    if not (size := as_number(number or "1") * SECONDS.get(unit, 0.0)) > 0:
        raise ValueError(f"--test-gaps {length} must be a length such as day, week, 6h or 90min")
    return size, f"{number} {unit}s" if number not in ("", "1") else f"one {unit}"


def gaps_held_out(
    times: Doubles, length: float, groups: Integers | None, share: float, seed: int
) -> tuple[NDArray[np.bool_], int]:
    """Say which rows are in stretches that are held out, about this share, and how many these are.

    A stretch is one of a single group, if there are groups, and lies between others with rows. Of
    two that follow each other one at most is held out.
    """
    there = ~np.isnan(times)
    block = np.floor((times - times[there].min(initial=np.inf)) / length)
    of_rows = np.stack([np.zeros(len(times)) if groups is None else groups, block])[:, there]
    (group, _), stretch, sizes = np.unique(of_rows, axis=1, return_inverse=True, return_counts=True)
    place = np.arange(len(group)) - np.searchsorted(group, group)
    left = np.searchsorted(group, group, "right") - np.arange(len(group)) - 1
    between = np.flatnonzero((place % 2 == 1) & (left > 0))
    n_held = round(share * len(times) * len(between) / max(sizes[between].sum(), 1))
    n_held = min(max(n_held, 1), len(between))
    held = np.random.default_rng(seed).choice(between, n_held, replace=False)
    there[there] = np.isin(stretch.ravel(), held)
    return there, n_held


def folds_held_out(
    y: NDArray[Any], classify: bool, groups: Integers | None, seed: int
) -> Integers | None:
    """Return in which fold each row is held out, with all others of its group.

    None where a fold would leave a single label, or has no rows.
    """
    if groups is not None and len(np.unique(groups)) < FOLDS:
        return None
    if groups is not None:
        fold = group_folds(groups, FOLDS)
    else:
        fold = hashed_folds(len(y), seed, y if classify else None)
    if classify and min(len(np.unique(y[fold != i])) for i in range(FOLDS)) < 2:
        return None
    return fold


def check_rows(table: Table, n_rows: int, n_dropped: int = 0) -> None:
    """Raise ValueError if a table has too few rows, beside those that --drop-missing leaves out."""
    if n_rows < FEWEST_ROWS:
        whole = f" without missing values, of {n_rows + n_dropped:,}" if n_dropped else ""
        remedy = "; choose --columns with fewer gaps" if n_dropped else ""
        raise ValueError(
            f"{table.path} has {counted(n_rows, 'row')}{whole}; at least {FEWEST_ROWS} are needed"
            + remedy
        )


def check_shares(share: float, n_fit: int, n_test: int, column: str = "") -> None:
    """Raise ValueError if too few rows are left for the fit, or none for the test.

    `column` is that by which they are held out, "" at random.
    """
    if (share > 0 and not n_test) or n_fit < FEWEST_ROWS // 2:
        leaves = f"leaves {n_fit} of {n_fit + n_test} rows for the fit and {n_test} for the test"
        if column:
            raise ValueError(
                f"holding out rows by column {column!r} {leaves}; choose another --test-fraction, "
                "or another column"
            )
        raise ValueError(f"--test-fraction {share:g} {leaves}; choose another, or 0 for no test")


def check_known(table: Table, target: str, n_known: int) -> None:
    """Raise ValueError if the target is known in too few rows."""
    if n_known < FEWEST_ROWS // 2:
        raise ValueError(
            f"{table.path}: column {target!r} has a value in {counted(n_known, 'row')}; at least "
            f"{FEWEST_ROWS // 2} are needed"
        )


def check_targets_differ(table: Table, target: str, low: Any, high: Any) -> None:
    """Raise ValueError if the least target that is used is the largest too."""
    if low == high:
        value = f"{low:g}" if isinstance(low, float) else low
        raise ValueError(
            f"{table.path}: column {target!r} is {value} in every row that is used, so that there "
            "is nothing to predict; choose another target"
        )
