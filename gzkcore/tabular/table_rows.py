"""The encoded rows that a kernel is chosen on, and how they are split."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_lengths, check_some_weight, dense
from gzkcore._util.wording import counted
from gzkcore.learn.held_out import (
    FEW_TO_CHOOSE,
    FOLDS,
    TrainTest,
    at_most,
    check_folds,
    check_groups,
    copies_of,
    folds,
    group_folds,
    group_numbers,
    is_number_of_folds,
    random_folds,
    some_groups,
    splits_by,
    splits_of,
)
from gzkcore.rows.coded import CodedRows
from gzkcore.solve.training_rows import check_inverses

from .table_passes import EncodedTable


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
        numbered = None
        if groups is not None:
            groups = np.asarray(groups)
            numbered = group_numbers(groups)
            check_lengths(X, groups, "groups")
        # Of all rows, which is what a splitter is to see.
        self._all_targets, self._all_groups = Y if labels is None else labels, groups
        self._used = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
        if len(X):
            check_some_weight(self._used.size)
        some = slice(None) if self._used.size == len(X) else self._used
        self.X, self.Y = X[some], Y[some]
        self._labels = None if labels is None else labels[self._used]
        self._groups = None if numbered is None else numbered[self._used]
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

    @property
    def may_be_gathered(self) -> bool:
        """Whether all rows are read in passes in this process."""
        return self._whole is not None and not hasattr(self._whole.source, "reduce_each")

    def gathered(self, levels: Sequence[Integers], folder: Any) -> "TableRows":
        """Return all rows: codes for groups of columns, other numbers in single precision.

        They are in memory, or mapped from a file in a folder.
        """
        few, rest = replace(CodedRows.of(self.X, levels), folder=folder), []

        def coded() -> Iterator[CodedRows]:
            for X, Y, weight in cast(EncodedTable, self._whole):
                used = slice(None) if weight is None else np.flatnonzero(weight)
                rest.append((Y[used], None if weight is None else weight[used]))
                yield few.coded(X[used])

        X: Any = few.joined(coded())
        Y, weights = zip(*rest, strict=True)
        weight = None if weights[0] is None else np.concatenate(weights)
        table = TableRows(X, np.concatenate(Y), None, weight, None)
        table._groups = copies_of(X.compact, table.Y)
        return table

    def take(self, X: Any, Y: Doubles, weight: Doubles | None) -> None:
        """Be of other rows, which are all if they may be gathered."""
        self.X, self.Y, self.weight, self.n_rows = X, Y, weight, len(Y)
        self._whole = None if self.may_be_gathered else self._whole

    def all(self) -> tuple[Any, ...]:
        """Return all rows, targets and weights as a learner's `fit` takes them."""
        return (self.X, self.Y, self.weight) if self._whole is None else self._whole.batches()

    def standardise(self) -> tuple[Doubles, Doubles]:
        """Make targets of mean 0 and variance 1; return their former means and deviations."""
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
        # One after the other: codes may be too many to be dense.
        columns = (dense(self.X[:, [place]])[:, 0] for place in range(self.X.shape[1]))
        pairs = ((own, np.average(own, weights=self.weight)) for own in columns)
        squares = (np.square(own - mean) for own, mean in pairs)
        return np.array([np.average(own, weights=self.weight) for own in squares])

    def at_random(self, cv: Any) -> bool:
        """Say whether each row is held out by itself, whatever others are."""
        alone = self._groups is None and not self.holds_copies_together
        return alone and (cv is None or is_number_of_folds(cv))

    def splits(self, cv: Any, most: int, rng: np.random.Generator) -> list[TrainTest]:
        """Return splits of at most so many rows, as `cv` says; groups and copies stay whole."""
        groups = self._groups
        if groups is None and (cv is None or is_number_of_folds(cv)):
            groups = copies_of(self.X, self.Y)
            self.holds_copies_together = groups is not None
            self._groups = groups
        if cv is None:
            return self._random_splits(groups, most, rng)
        if not is_number_of_folds(cv):
            X = np.zeros(len(self._all_targets))
            splits = splits_by(cv, X, self._all_targets, self._used, self._all_groups)
        elif groups is None:
            splits = folds(self.n_rows, check_folds(cv, self.n_rows), self._labels)
        else:
            k = check_folds(cv, check_groups(groups), "group")
            splits = splits_of(group_folds(groups, k), k)
        n_test = most // FOLDS
        return [
            (at_most(train, most - n_test, rng), at_most(test, n_test, rng))
            for train, test in splits
        ]

    def all_others(self, test: Integers) -> TrainTest:
        """Return all rows but some, and these: no other row of their groups."""
        out = np.zeros(self.n_rows, dtype=bool)
        out[test] = True
        if self._groups is not None:
            out |= np.isin(self._groups, self._groups[test])
        return np.flatnonzero(~out), test

    def _random_splits(
        self, groups: Integers | None, most: int, rng: np.random.Generator
    ) -> list[TrainTest]:
        """Return splits that hold out a fifth of the rows or groups, once or each in turn."""
        rows = at_most(np.arange(self.n_rows), most, rng)
        n_splits = FOLDS if rows.size < FEW_TO_CHOOSE else 1
        if groups is None:
            return random_folds(rows, rng, self._labels)[:n_splits]
        groups = groups[rows]
        n_groups = check_groups(groups)
        seed = int(rng.integers(2**31))
        if n_splits == 1:
            test = some_groups(groups, math.ceil(n_groups / FOLDS), seed)
            return [(rows[~test], rows[test])]
        k = min(FOLDS, n_groups)
        return [(rows[train], rows[test]) for train, test in splits_of(group_folds(groups, k), k)]

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
