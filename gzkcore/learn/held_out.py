"""Which rows are held out to choose by: folds, and splits as they are given."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv

from gzkcore._util.typing import Integers
from gzkcore._util.wording import counted

FIFTHS = 5

Split: TypeAlias = tuple[Integers, Integers]  # rows to fit to, rows held out


def folds(n: int, k: int, labels: Integers | None = None) -> list[Split]:
    """Return k folds, row i in fold i mod k; of labels, the i-th row of those of its class, about.

    So the classes have the same shares in all folds, however rare they are.
    """
    order = np.arange(n) if labels is None else np.argsort(labels, kind="stable")
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % k
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


def one_split(n: int, rng: np.random.Generator, labels: Integers | None = None) -> Split:
    """Hold a fifth of the rows out, at random; of labels the same share of each class, about."""
    rows = rng.permutation(n)
    fitted, held_out = folds(n, FIFTHS, None if labels is None else labels[rows])[0]
    return np.sort(rows[fitted]), np.sort(rows[held_out])


def given_splits(
    cv: Any,
    X: Any,
    targets: NDArray[Any],
    used: Integers,
    groups: ArrayLike | None = None,
) -> list[Split]:
    """Return the splits of a splitter, or given ones, as numbers among the rows that are used.

    Parameters
    ----------
    cv : splitter or iterable of pairs of rows
    X, targets, groups
        What the splitter sees: all rows as they were given.
    used : ndarray of shape (n,)
        Numbers of the rows of positive weight.
    """
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ValueError(
            f"cv={cv!r} must be None, a whole number of folds >= 2, a splitter of "
            "sklearn.model_selection, or an iterable of (rows to fit to, rows held out)"
        )
    place = np.full(len(targets), -1)
    place[used] = np.arange(len(used))
    found = []
    for number, pair in enumerate(check_cv(cv).split(X, targets, groups)):
        fitted, out = (_places(place, rows, number) for rows in pair)
        found.append((fitted, out))
    return found


def _places(place: Integers, given: Any, number: int) -> Integers:
    """Return the places of rows, by number or by a mask, without those that have none."""
    rows = np.asarray(given)
    try:
        places: Integers = place[rows if rows.size else rows.astype(np.intp)]
    except IndexError as error:
        raise ValueError(
            f"split {number} of cv does not fit {counted(len(place), 'row')}: {error}; give row "
            "numbers from 0, or a mask"
        ) from None
    known: Integers = places[places >= 0]
    return known


def check_splits(cv: Any, splits: list[Split]) -> list[Split]:
    """Return splits, or raise if there are none, or one has no rows of some weight on a side."""
    if not splits:
        raise ValueError(f"cv={cv!r} has no splits; give one or more")
    for i, split in enumerate(splits):
        for part, what in zip(split, ("to fit to", "held out"), strict=True):
            if len(part) == 0:
                raise ValueError(
                    f"split {i} of cv={cv!r} has no rows {what}; give each split some of positive "
                    "weight"
                )
    return splits
