"""Which rows are held out, and the errors of alphas on them.

Whoever holds rows out takes them from here: `KernelRidgeCV` and `KernelRegressor` to choose, the
command `gzkcore fit` to test. A split is a pair: the rows to fit to, and the rows held out.

- `folds`: row i is in fold i mod k; `random_folds`: the same of rows in random order
- `hashed_rows`, `hashed_folds`: by a hash of the row's number, so that each reading of a file finds
  the same rows without a list
- `group_folds`, `some_groups`: whole groups; `copies_of`: rows that are one group, being copies
- `last_rows`: the rows with the last values of a column
- `splits_by`: what a splitter of scikit-learn, or the user, says
"""

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, check_cv

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted
from gzkcore.passes.streams import Step
from gzkcore.rows.values import missing_of
from gzkcore.solve.products import cross_product
from gzkcore.solve.solve import NotPositiveDefinite
from gzkcore.solve.system import KernelSystem
from gzkcore.solve.training_rows import TrainingRows
from gzkcore.solve.trend import Trend

TrainTest: TypeAlias = tuple[Integers, Integers]  # rows to fit to, rows held out

FOLDS = 5  # By default a fifth of the rows is held out: once, or each fifth in turn.

# With fewer rows than this each fifth is held out in turn. To choose takes more rows than to test,
# since the errors that are compared are nearly the same. With one split of 200 rows errors were 2
# to 12 % larger, and 89 to 93 % of new rows within 1.96 standard deviations instead of 95 %; with
# one of 1,000 rows errors were 1.5 % larger, in a fifth of the time. A test costs a whole fit for
# each fold, and a tenth of 300 rows roughly tells an error.
FEW_TO_CHOOSE, FEW_TO_TEST = 1000, 300

# Copies are held out together if they are a share of COPIED or more of all rows, and the different
# rows a share of LEAST_DIFFERENT or more, and not fewer than FEWEST_DIFFERENT.
COPIED, LEAST_DIFFERENT, FEWEST_DIFFERENT = 0.05, 0.25, 50
UNLIKE = 0.01  # Rows with equal columns are no copies if a larger share of them differs in targets.
# Rows are first compared in the TELLING columns that have most values in the FIRST rows.
TELLING, FIRST = 16, 1000
SAME = 1e-6  # Numbers that differ by less than so many standard deviations are equal.


# ---- folds


def folds(n: int, k: int, labels: NDArray[Any] | None = None) -> list[TrainTest]:
    """Return k folds: row i is in fold i mod k, or, with labels, the i-th row of each class.

    With labels rows are counted from class to class, so that the first of one needn't be in fold 0.
    """
    return splits_of(_by_label(np.arange(n) % k, labels), k)


def random_folds(
    rows: Integers, rng: np.random.Generator, labels: Integers | None = None
) -> list[TrainTest]:
    """Return FOLDS folds of some rows at random, each with about its share of each class."""
    rows = rng.permutation(rows)
    splits = folds(rows.size, FOLDS, None if labels is None else labels[rows])
    return [(np.sort(rows[train]), np.sort(rows[test])) for train, test in splits]


def hashed_folds(n: int, seed: int, labels: NDArray[Any] | None = None) -> Integers:
    """Return the fold of each of n rows: of five consecutive ones (of a class) each has another."""
    rows = np.arange(n)
    first = np.floor(hashed(rows // FOLDS, seed) * FOLDS).astype(np.int64)
    return _by_label((rows + first) % FOLDS, labels)


def group_folds(groups: Integers, k: int) -> Integers:
    """Return the fold of each row: groups stay whole, and folds have about as many rows."""
    fold = np.empty(len(groups), dtype=np.int64)
    for number, (_, test) in enumerate(GroupKFold(k).split(groups, groups=groups)):
        fold[test] = number
    return fold


def splits_of(fold: Integers, k: int) -> list[TrainTest]:
    """Return the splits that hold each of k folds out in turn, given the fold of each row."""
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]


def _by_label(fold: Integers, labels: NDArray[Any] | None) -> Integers:
    """Return the fold of each row, given those of the rows in the order of their labels, if any."""
    if labels is None:
        return fold
    of_rows = np.empty_like(fold)
    of_rows[np.argsort(labels, kind="stable")] = fold
    return of_rows


# ---- some rows, once


def hashed_rows(rows: Integers, share: float, seed: int) -> NDArray[np.bool_]:
    """Say which rows, numbered from 0, are held out: one of each 1 / share consecutive rows.

    So the share is exact, and the rows held out are spread over the whole table.
    """
    if share <= 0:
        return np.zeros(len(rows), dtype=bool)
    block = np.floor(rows * share).astype(np.int64)
    block += rows >= _first(block + 1, share)  # where the product was rounded
    block -= rows < _first(block, share)
    first = _first(block, share)
    size = _first(block + 1, share) - first
    return np.asarray(rows == first + np.floor(hashed(block, seed) * size).astype(np.int64))


def _first(block: Integers, share: float) -> Integers:
    """Return the first row of a block of 1 / share rows."""
    return np.ceil(block / share).astype(np.int64)


def hashed(values: Integers, seed: int) -> Doubles:
    """Return a number in [0, 1) for each value and seed: fixed, yet as if random (splitmix64)."""
    z = values.astype(np.uint64) + np.uint64(1 + seed * 0xD1342543DE82EF95 % 2**63)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z ^ (z >> np.uint64(31))) / 2.0**64


def some_groups(groups: Integers, count: int, seed: int) -> NDArray[np.bool_]:
    """Say which rows are held out: those of so many groups, drawn at random."""
    split = GroupShuffleSplit(1, test_size=count, random_state=seed)
    ((_, test),) = split.split(groups, groups=groups)
    return np.isin(np.arange(len(groups)), test)


def last_rows(values: NDArray[Any], share: float) -> NDArray[np.bool_]:
    """Say which rows have the last values: about this share, rows of equal values together."""
    there = ~np.isnan(values)  # nor NaT
    levels, counts = np.unique(values[there], return_counts=True)
    rows_from = counts[::-1].cumsum()[::-1]  # with this value or a later one
    first = np.argmin(np.abs(rows_from - share * len(values)))
    return np.asarray(there & (values >= levels[max(int(first), 1)]))


def at_most(rows: Integers, most: int, rng: np.random.Generator) -> Integers:
    """Return at most so many of the rows, at random, in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(rng.choice(len(rows), most, replace=False))]


# ---- groups and copies


def group_numbers(groups: NDArray[Any]) -> Integers:
    """Return groups as numbers, in the order of their names, or raise."""
    if groups.ndim != 1:
        raise ValueError(f"groups has shape {groups.shape}; pass a list with the group of each row")
    if (missing := missing_of(groups)).any():
        raise ValueError(f"groups[{int(np.argmax(missing))}] is missing; give every row a group")
    try:
        _, numbered = np.unique(groups, return_inverse=True)
    except TypeError:  # numbers and text
        _, numbered = np.unique([str(group) for group in groups], return_inverse=True)
    return np.asarray(numbered)


def check_groups(groups: Integers) -> int:
    """Return the number of different groups, or raise if there is only one."""
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(
            f"groups has the same group for all {counted(len(groups), 'row')}, but whole groups "
            "are held out; pass two groups or more, or omit groups"
        )
    return n_groups


def copies_of(X: Doubles, Y: Doubles) -> Integers | None:
    """Return a number for each row, the same for copies; None where few rows have a copy.

    Where rows with equal columns have different targets, nobody knows which are copies. Levels that
    return in all combinations are none: in some column most different rows must differ.
    Neither row numbers tell copies apart, nor do differences below `SAME`.
    """

    def rounded(column: Doubles) -> Doubles:
        return np.asarray(np.round(column / column.std() / SAME))

    first = np.sort(X[:FIRST], axis=0)
    rises = first[1:] > first[:-1]
    uneven = X.min(axis=0, initial=np.inf) < X.max(axis=0, initial=-np.inf)  # not constant
    for place in np.flatnonzero(rises.all(axis=0)):  # may be row numbers
        steps = np.diff(np.sort(X[:, place]))
        uneven[place] = steps.min(initial=np.inf) < (1 - SAME) * steps.max(initial=0.0)
    columns = np.flatnonzero(uneven)
    telling = columns[np.argsort(rises.sum(axis=0)[columns])[-TELLING:]]
    for some in (telling, columns):
        weights = np.random.default_rng(0).standard_normal(len(some))
        sums = sum(w * rounded(X[:, place]) for place, w in zip(some, weights, strict=True))
        _, rows = np.unique(sums, return_inverse=True)
        n_different = rows.max(initial=0) + 1
        if n_different > (1 - COPIED) * len(X):
            return None
    if n_different < max(FEWEST_DIFFERENT, LEAST_DIFFERENT * len(X)):
        return None
    if all(2 * np.unique(rounded(X[:, place])).size < n_different for place in columns):
        return None
    target = np.zeros((n_different, Y.shape[1]))
    target[rows] = Y
    return None if np.mean((target[rows] != Y).any(axis=1)) > UNLIKE else rows


# ---- what `cv` says


def is_number_of_folds(cv: Any) -> bool:
    """Say whether `cv` is a number of folds, not a splitter or splits."""
    return isinstance(cv, numbers.Integral)


def check_folds(cv: Any, n: int, what: str = "row") -> int:
    """Return the number of folds, or raise if n rows (or groups) can't be divided into so many."""
    if not 2 <= int(cv) <= n:
        raise ValueError(f"cv={cv}, a number of folds, must be from 2 to the {counted(n, what)}")
    return int(cv)


def splits_by(
    cv: Any, X: Any, targets: NDArray[Any], used: Integers, groups: ArrayLike | None = None
) -> list[TrainTest]:
    """Return the splits of a splitter, or of the user, as numbers among the rows `used`.

    A splitter sees X, targets and groups of all rows in the user's order; `used` are the numbers of
    those of positive weight. Each split has such rows on both sides.
    """
    is_splitter = hasattr(cv, "split") and not isinstance(cv, str | type)
    if isinstance(cv, str | Mapping) or not (is_splitter or isinstance(cv, Iterable)):
        raise ValueError(
            f"cv={cv!r} must be None, a whole number of folds >= 2, a splitter of "
            "sklearn.model_selection, or an iterable of (rows to fit to, rows held out)"
            + (f"; did you mean {cv.__name__}()?" if isinstance(cv, type) else "")
        )
    pairs = _split_by(cv, X, targets, groups) if is_splitter else _checked_pairs(cv)
    if not pairs:
        raise ValueError(f"cv={cv!r} has no splits; give one or more")
    place = np.full(len(targets), -1)
    place[used] = np.arange(len(used))
    splits = [
        (_places(place, train, number), _places(place, test, number))
        for number, (train, test) in enumerate(pairs)
    ]
    for number, split in enumerate(splits):
        for rows, side in zip(split, ("to fit to", "held out"), strict=True):
            if not rows.size:
                raise ValueError(
                    f"split {number} of cv={cv!r} has no rows {side}; each split needs some of "
                    "positive weight"
                )
    return splits


def _checked_pairs(cv: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return the user's splits as a list, or raise if they aren't pairs."""
    pairs = list(cv)
    for number, pair in enumerate(pairs):
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise ValueError(
                f"split {number} of cv is {pair!r}; it must be a pair: the numbers of the rows "
                "to fit to, and of the rows held out"
            )
    return pairs


def _split_by(
    cv: Any, X: Any, targets: NDArray[Any], groups: ArrayLike | None
) -> list[tuple[Any, Any]]:
    """Return the splits of a splitter, or raise with a remedy if it can't split these rows."""
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


def _places(place: Integers, rows: Any, number: int) -> Integers:
    """Return the places of rows, by number or by a mask, without those that have none."""
    rows = np.asarray(rows)
    try:
        places = place[rows if rows.size else rows.astype(np.intp)]
    except IndexError as error:
        raise ValueError(
            f"split {number} of cv does not fit {counted(len(place), 'row')}: {error}; give row "
            "numbers from 0, or a mask"
        ) from None
    return np.asarray(places[places >= 0])


# ---- errors of alphas


def squared_errors(
    train: TrainingRows,
    test: TrainingRows,
    alphas: Doubles,
    system_with: Callable[[Doubles], KernelSystem],
    trend: Trend | None = None,
    step: Step | None = None,
) -> Doubles:
    """Return squared errors of alphas on held-out rows, mean over targets, of shape (rows, alphas).

    Alphas increase, since they are columns of one block solve; `system_with` returns the system of
    the training rows for some of them, and `step` runs each product. A trend may be beside the
    kernel. Alphas whose system was not solved, or is not positive definite, have NaN.
    """
    n_targets = train.y.shape[1]
    H = None if trend is None else trend.columns(train.X)
    squares = np.full((len(test.y), alphas.size), np.nan)
    for first in range(alphas.size):
        tried = alphas[first:]
        system = system_with(tried)
        try:
            solution, b, _ = system.regress(
                np.tile(train.y, tried.size), np.repeat(tried, n_targets), H, step=step
            )
        except NotPositiveDefinite:  # the smallest alpha comes to this first
            continue
        mean = cross_product(system.kernel, test.X, train.X, solution.coef)
        if trend is not None:
            mean += trend.columns(test.X) @ b
        errors = mean.reshape(len(mean), tried.size, n_targets) - test.y[:, None]
        converged = solution.converged.reshape(tried.size, n_targets).all(axis=1)
        squares[:, first:] = np.where(converged, np.square(errors).mean(axis=2), np.nan)
        break
    return squares
