"""The encoded rows that a kernel is chosen on, and how they are split."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import GroupKFold, GroupShuffleSplit

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_lengths, check_some_weight
from gzkcore._util.wording import counted
from gzkcore.learn.held_out import (
    Split,
    check_groups,
    check_splits,
    folds,
    given_splits,
    group_numbers,
)
from gzkcore.solve.training_rows import check_inverses

from .kernel_search import some
from .table_passes import EncodedTable

FOLDS = 5  # a choice

# Rows from which on a fifth is held out once; below there are five folds. Measured on 200 rows of 5
# and 30 columns, with one split: errors 2 to 12 % larger, and 89 to 93 % of new rows within 1.96
# standard deviations instead of 95 %; on 1,000 rows of 30 columns 1.5 %, and a fifth of the time.
ONE_SPLIT = 1000


# A choice: so many rows are copies, at least; there are so many different ones, and a share of all
# rows; and of those with equal columns no more than so many have other targets.
COPIED, FEWEST_DIFFERENT, LEAST_DIFFERENT, UNLIKE = 0.05, 50, 0.25, 0.01
SAME = 1e-6  # standard deviations, a choice: numbers this near are copies


class TableRows:
    """Encoded rows of positive weight with their targets, and how they are split.

    Those of a table that is read in passes are the rows drawn from it.
    """

    def __init__(
        self,
        X: Doubles,
        Y: Doubles,
        labels: Integers | None,
        weight: Doubles | None,
        groups: ArrayLike | None,
        whole: EncodedTable | None = None,
    ) -> None:
        self._groups = None
        if groups is not None:
            groups = np.asarray(groups)
            self._groups = group_numbers(groups)
            check_lengths(X, groups, "groups")
        # As they were given, which is what a splitter is to see.
        self._labels, self._given_groups = labels, groups
        self._targets = Y if labels is None else labels
        self._used = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
        if len(X):
            check_some_weight(self._used.size)
        self.X, self.Y = X[self._used], Y[self._used]
        self.weight = None
        if weight is not None:
            unit = weight[self._used].mean()
            check_inverses(weight, unit)
            self.weight = weight[self._used] / unit
        self.n_rows = len(self.X)
        self._whole = whole
        self.holds_copies_together = False

    @property
    def n_all(self) -> int:
        """How many rows of positive weight the model is fitted to."""
        return self.n_rows if self._whole is None else self._whole.n_used

    @property
    def in_passes(self) -> bool:
        """Whether all rows are read in passes, and are not held."""
        return self._whole is not None

    def all(self) -> tuple[Any, ...]:
        """Return all rows, targets and weights as a learner's `fit` takes them."""
        return (self.X, self.Y, self.weight) if self._whole is None else self._whole.batches()

    def standardise(self) -> tuple[Doubles, Doubles]:
        """Make targets of mean 0 and variance 1; return both as they were, 0 for a constant."""
        if self._whole is not None:
            self.Y = self._whole.standardised(self.Y)
            return self._whole.means, self._whole.scales
        largest = np.abs(self.Y).max(axis=0)
        largest[largest == 0] = 1.0
        self.Y = self.Y / largest  # squares of numbers beyond 1e154 would overflow
        means = np.average(self.Y, axis=0, weights=self.weight)
        constant = np.ptp(self.Y, axis=0) == 0
        means[constant] = self.Y[0, constant]
        self.Y -= means
        scales = np.sqrt(np.average(np.square(self.Y), axis=0, weights=self.weight))
        self.Y /= np.where(constant, 1.0, scales)
        return means * largest, scales * largest

    def variances(self) -> Doubles:
        """Return the variance of each column."""
        if self.weight is None:
            return np.asarray(self.X.var(axis=0))
        squares = np.square(self.X - np.average(self.X, axis=0, weights=self.weight))
        return np.asarray(np.average(squares, axis=0, weights=self.weight))

    def at_random(self, cv: Any) -> bool:
        """Say whether each row is held out by itself, whatever others are."""
        alone = self._groups is None and not self.holds_copies_together
        return alone and (cv is None or isinstance(cv, numbers.Integral))

    def splits(self, cv: Any, most: int, rng: np.random.Generator) -> list[Split]:
        """Return pairs of rows to fit to and rows held out, at most so many of them."""
        given, groups = self._used, self._groups
        if groups is None and (cv is None or isinstance(cv, numbers.Integral)):
            copies = copies_of(self.X, self.Y)
            if copies is not None:
                self.holds_copies_together = True
                groups = np.zeros(len(self._targets), dtype=np.intp)
                groups[self._used] = copies
        labels = None if self._labels is None else self._labels[given]
        if isinstance(cv, numbers.Integral) and groups is None:
            if not 2 <= int(cv) <= self.n_rows:
                raise ValueError(f"cv={cv} must be from 2 to the {counted(self.n_rows, 'row')}")
            return self._thinned(cv, folds(self.n_rows, int(cv), labels), most, rng)
        if isinstance(cv, numbers.Integral) and groups is not None:
            check_groups(cv, groups[given])
            by_group = GroupKFold(int(cv)).split(given, groups=groups[given])
            return self._thinned(cv, list(by_group), most, rng)
        if cv is not None:
            seen = np.zeros(len(self._targets)), self._targets
            found = given_splits(cv, *seen, self._used, self._given_groups)
            return self._thinned(cv, found, most, rng)
        rows = np.arange(self.n_rows)
        if self.n_rows > most:
            rows = np.sort(rng.choice(self.n_rows, most, replace=False))
        n_splits = FOLDS if rows.size < ONE_SPLIT else 1
        if groups is None:
            rows = rng.permutation(rows)
            found = folds(rows.size, FOLDS, None if labels is None else labels[rows])
            return [(np.sort(rows[a]), np.sort(rows[b])) for a, b in found[:n_splits]]
        groups = groups[given[rows]]
        n_groups = check_groups(None, groups)
        seed = int(rng.integers(2**31))
        splitter = (
            GroupShuffleSplit(1, test_size=1 / FOLDS, random_state=seed)
            if n_splits == 1
            else GroupKFold(min(FOLDS, n_groups))
        )
        return [(rows[a], rows[b]) for a, b in splitter.split(rows, groups=groups)]

    def _thinned(
        self, cv: Any, splits: list[Split], most: int, rng: np.random.Generator
    ) -> list[Split]:
        """Return splits with at most so many rows each; raise where one has none on a side."""
        out = most // FOLDS
        return [
            (some(fitted, most - out, rng), some(held_out, out, rng))
            for fitted, held_out in check_splits(cv, splits)
        ]

    def nothing_to_learn(self) -> str:
        """Return why the mean is all that can be said, "" if it isn't."""
        if self.n_rows < FOLDS:
            return f"{counted(self.n_rows, 'row')}, too few to choose a kernel"
        drawn = "" if self._whole is None else f" in the {counted(self.n_rows, 'row')} drawn"
        if not np.ptp(self.Y, axis=0).any():
            return f"y is constant{drawn}"
        if not np.ptp(self.X, axis=0).any():
            return f"all columns are constant or left out{drawn}"
        return ""


def copies_of(X: Doubles, Y: Doubles) -> Integers | None:
    """Return numbers of rows, the same of equal ones; None where few rows have a copy.

    Where rows with equal columns have different targets, nobody knows which are copies. Levels that
    return in all combinations are none: in some column most different rows must differ.
    Neither numbers of rows tell them apart, nor do differences below `SAME`.
    """
    steps = np.diff(np.sort(X, axis=0), axis=0)
    least, most = steps.min(axis=0, initial=np.inf), steps.max(axis=0, initial=0.0)
    told = (most > 0) & (most - least > SAME * most)
    X = np.round(X[:, told] / X[:, told].std(axis=0) / SAME)
    weights = np.random.default_rng(0).standard_normal(X.shape[1])
    _, rows = np.unique((X * weights).sum(axis=1), return_inverse=True)
    n_rows = rows.max(initial=0) + 1
    fewest = max(FEWEST_DIFFERENT, LEAST_DIFFERENT * len(X))
    if not fewest <= n_rows <= (1 - COPIED) * len(X):
        return None
    if all(2 * np.unique(column).size < n_rows for column in X.T):
        return None
    first = np.zeros((n_rows, Y.shape[1]))
    first[rows] = Y
    return None if np.mean((first[rows] != Y).any(axis=1)) > UNLIKE else rows
