"""The rows of a table that are held out, and checks that enough are left to learn from.

One of each 1 / share consecutive rows is held out, chosen by a hash. So the share is exact, the
rows are spread over the whole table, and each reading of a file finds the same rows without a list.

With few rows, a tenth of them says little. Then each fifth is held out in turn, also chosen by a
hash: five consecutive rows are in five different folds.

By a column, the rows with its last values can be held out, or whole groups of rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, GroupShuffleSplit

from gzkcore._util.typing import Doubles
from gzkcore._util.wording import counted
from gzkcore.rows.files import Table
from gzkcore.tabular.table_rows import FOLDS

RowNumbers = NDArray[np.int64]

FEWEST_ROWS = 20
SHARE = 0.1  # that is held out, unless asked otherwise
FEW_ROWS = 300  # with fewer than these each fifth is held out in turn: a tenth is fewer than 30


def held_out(rows: RowNumbers, share: float, seed: int) -> NDArray[np.bool_]:
    """Say which of these rows, numbered from 0, are held out."""
    if share <= 0:
        return np.zeros(len(rows), dtype=bool)
    group = np.floor(rows * share).astype(np.int64)
    group += rows >= _first(group + 1, share)  # where the product was rounded
    group -= rows < _first(group, share)
    first = _first(group, share)
    size = _first(group + 1, share) - first
    return np.asarray(rows == first + np.floor(hashed(group, seed) * size).astype(np.int64))


def _first(group: RowNumbers, share: float) -> RowNumbers:
    """Return the first row of a group."""
    return np.ceil(group / share).astype(np.int64)


def folds_of(rows: RowNumbers, seed: int) -> RowNumbers:
    """Say in which fold each of these rows, numbered from 0, is held out."""
    first = np.floor(hashed(rows // FOLDS, seed) * FOLDS).astype(np.int64)
    return np.asarray((rows + first) % FOLDS)


def folds_of_labels(y: NDArray[Any], seed: int) -> RowNumbers:
    """Say in which fold each row is held out, so that all have about the same share of a label."""
    order = np.argsort(y, kind="stable")
    folds = np.empty(len(y), dtype=np.int64)
    folds[order] = folds_of(np.arange(len(y)), seed)
    return folds


def last_of(values: NDArray[Any], share: float) -> NDArray[np.bool_]:
    """Say which rows have the last values: about this share, rows of equal values together."""
    there = ~np.isnan(values)  # nor NaT
    levels, counts = np.unique(values[there], return_counts=True)
    rows_from = counts[::-1].cumsum()[::-1]  # with this value or a later one
    first = np.argmin(np.abs(rows_from - share * len(values)))
    return np.asarray(there & (values >= levels[max(int(first), 1)]))


def groups_of(values: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Say which rows are of groups that are held out, about this share of two or more groups."""
    chosen = np.zeros(len(values), dtype=bool)
    n_groups = len(np.unique(values))
    n_held = min(max(round(share * n_groups), 1), n_groups - 1)
    split = GroupShuffleSplit(1, test_size=n_held, random_state=seed)
    _, held = next(split.split(values, groups=values))
    chosen[held] = True
    return chosen


def folds_of_groups(values: NDArray[Any]) -> RowNumbers:
    """Say in which fold each group is held out, so that all have about the same number of rows."""
    folds = np.empty(len(values), dtype=np.int64)
    for fold, (_, held) in enumerate(GroupKFold(FOLDS).split(values, groups=values)):
        folds[held] = fold
    return folds


def hashed(numbers: RowNumbers, seed: int) -> Doubles:
    """Return a number in [0, 1) for each number and seed: fixed, yet as if random (splitmix64)."""
    z = numbers.astype(np.uint64) + np.uint64(1 + seed * 0xD1342543DE82EF95 % 2**63)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) / 2.0**64


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
