"""The rows that are held out for a choice: folds, or splits that the user gives."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv

from gzkcore._util.typing import Integers
from gzkcore._util.wording import counted
from gzkcore.rows.values import missing_of

Split: TypeAlias = tuple[Integers, Integers]  # rows to fit to, rows held out


def folds(n: int, k: int, labels: Integers | None = None) -> list[Split]:
    """Return k folds, row i in fold i mod k; of labels, the i-th row of its class, about."""
    order = np.arange(n) if labels is None else np.argsort(labels, kind="stable")
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % k
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


def one_split(n: int, rng: np.random.Generator, labels: Integers | None = None) -> Split:
    """Hold a fifth of the rows out, at random; of labels the same share of each class, about."""
    rows = rng.permutation(n)
    fitted, held_out = folds(n, 5, None if labels is None else labels[rows])[0]
    return np.sort(rows[fitted]), np.sort(rows[held_out])


def given_splits(
    cv: Any, X: Any, targets: NDArray[Any], used: Integers, groups: ArrayLike | None = None
) -> list[Split]:
    """Return the splits of a splitter, or given ones, as numbers among the rows that are used.

    A splitter sees X, targets and groups of all rows as they were given; `used` are the numbers of
    those of positive weight.
    """
    is_splitter = hasattr(cv, "split") and not isinstance(cv, str | type)
    if isinstance(cv, str | Mapping) or not (is_splitter or isinstance(cv, Iterable)):
        raise ValueError(
            f"cv={cv!r} must be None, a whole number of folds >= 2, a splitter of "
            "sklearn.model_selection, or an iterable of (rows to fit to, rows held out)"
            + (f"; did you mean {cv.__name__}()?" if isinstance(cv, type) else "")
        )
    place = np.full(len(targets), -1)
    place[used] = np.arange(len(used))
    return [
        (_places(place, fitted, number), _places(place, out, number))
        for number, (fitted, out) in enumerate(_pairs(cv, is_splitter, X, targets, groups))
    ]


def _pairs(
    cv: Any, is_splitter: bool, X: Any, targets: NDArray[Any], groups: ArrayLike | None
) -> list[tuple[Any, Any]]:
    """Return what a splitter gives, or what is given, as pairs; or say why these are none."""
    if not is_splitter:
        pairs = list(cv)
        for number, pair in enumerate(pairs):
            if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
                raise ValueError(
                    f"split {number} of cv is {pair!r}; it must be a pair: the numbers of the rows "
                    "to fit to, and of the rows held out"
                )
        return pairs
    try:
        return list(check_cv(cv).split(X, targets, groups))
    except (TypeError, ValueError) as error:
        remedy = "use another cv, or None"
        if groups is None and "groups" in str(error):
            remedy = (
                "pass groups to fit, where it takes them, or the splits: "
                "cv=list(splitter.split(X, y, groups))"
            )
        raise ValueError(
            f"cv={cv!r} can't split {counted(len(targets), 'row')}: "
            f"{str(error).rstrip('.')}; {remedy}"
        ) from error


def _places(place: Integers, given: Any, number: int) -> Integers:
    """Return the places of rows, by number or by a mask, without those that have none."""
    rows = np.asarray(given)
    try:
        places = place[rows if rows.size else rows.astype(np.intp)]
    except IndexError as error:
        raise ValueError(
            f"split {number} of cv does not fit {counted(len(place), 'row')}: {error}; give row "
            "numbers from 0, or a mask"
        ) from None
    return np.asarray(places[places >= 0])


def group_numbers(given: NDArray[Any]) -> Integers:
    """Return groups as numbers, in the order of their names, or raise."""
    if given.ndim != 1:
        raise ValueError(f"groups has shape {given.shape}; pass a list with the group of each row")
    if (missing := missing_of(given)).any():
        raise ValueError(f"groups[{int(np.argmax(missing))}] is missing; give every row a group")
    try:
        _, numbered = np.unique(given, return_inverse=True)
    except TypeError:  # numbers and text
        _, numbered = np.unique([str(group) for group in given], return_inverse=True)
    return np.asarray(numbered)


def check_groups(cv: Any, groups: Integers) -> int:
    """Return how many groups there are to hold out, or raise if these are too few for cv folds."""
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(
            f"groups has the same group for all {counted(len(groups), 'row')}, but whole groups "
            "are held out; pass two groups or more, or omit groups"
        )
    if cv is not None and not 2 <= int(cv) <= n_groups:
        raise ValueError(f"cv={cv} must be from 2 to the {counted(n_groups, 'group')}")
    return n_groups


def check_splits(cv: Any, splits: list[Split]) -> list[Split]:
    """Return splits, or raise if there are none, or one has no rows of some weight on a side."""
    if not splits:
        raise ValueError(f"cv={cv!r} has no splits; give one or more")
    for i, split in enumerate(splits):
        for part, what in zip(split, ("to fit to", "held out"), strict=True):
            if len(part) == 0:
                raise ValueError(
                    f"split {i} of cv={cv!r} has no rows {what}; each split needs some of positive "
                    "weight"
                )
    return splits
