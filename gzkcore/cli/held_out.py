"""How many rows of a table the command holds out, and checks that enough are left to learn from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Integers
from gzkcore._util.wording import counted
from gzkcore.learn.held_out import FOLDS, group_folds, hashed_folds, some_groups
from gzkcore.rows.files import Table

SHARE = 0.1  # The share of rows that is held out, unless --test-fraction says otherwise.
FEWEST_ROWS = 20  # A table with fewer rows is refused; a fit takes at least half as many.


def groups_held_out(groups: Integers, share: float, seed: int) -> NDArray[np.bool_]:
    """Say which rows are held out: about this share of the groups, one at least, but not all."""
    n_groups = len(np.unique(groups))
    return some_groups(groups, min(max(round(share * n_groups), 1), n_groups - 1), seed)


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
