"""The rows that a kernel is chosen on: how folds, splitters, groups and weights split them."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, PredefinedSplit, TimeSeriesSplit

from gzkcore.tabular.table_rows import TableRows


def table_of(n=60, **more):
    rng = np.random.default_rng(0)
    given = {"labels": None, "weight": None, "groups": None} | more
    return TableRows(rng.standard_normal((n, 2)), rng.standard_normal((n, 1)), **given)


def test_splitters_see_all_rows_in_order_with_labels_and_groups():
    seen = {}

    class Noting(PredefinedSplit):
        def split(self, X, y=None, groups=None):
            seen.update(n=len(X), y=y, groups=groups)
            return super().split()

    weight, labels, groups = np.arange(60) % 10 > 0, np.arange(60) % 3, np.arange(60) // 6
    table = table_of(labels=labels, weight=weight.astype(float), groups=groups)
    fold = np.where(np.arange(60) < 50, -1, 0)
    [(rows, out)] = table.splits(Noting(fold), 1000, np.random.default_rng(0))
    assert seen["n"] == 60
    assert seen["y"] is labels
    assert seen["groups"] is groups
    assert rows.tolist() == list(range(45))  # of the 54 rows of positive weight
    assert out.tolist() == list(range(45, 54))


def test_long_splits_are_thinned_and_keep_their_sides():
    table = table_of(1000)
    for rows, out in table.splits(TimeSeriesSplit(3), 100, np.random.default_rng(0)):
        assert len(rows) == 80
        assert len(out) == 20
        assert rows.max() < out.min()
        assert (np.diff(rows) > 0).all()


def test_a_number_of_folds_is_that_of_every_kth_row():
    for i, (rows, out) in enumerate(table_of().splits(3, 1000, np.random.default_rng(0))):
        assert out.tolist() == list(range(i, 60, 3))
        assert len(rows) == 40


@pytest.mark.parametrize("cv", [None, 5])
def test_classes_have_their_shares_on_both_sides(cv):
    labels = np.repeat([0, 1, 2], [45, 10, 5])
    for rows, out in table_of(labels=labels).splits(cv, 1000, np.random.default_rng(0)):
        assert np.bincount(labels[rows]).tolist() == [36, 8, 4]
        assert np.bincount(labels[out]).tolist() == [9, 2, 1]


@pytest.mark.parametrize(("groups", "cv", "words"), [
    (np.zeros(60), None, "groups has the same group for all 60 rows.*or omit groups"),
    (np.zeros(60), 3, "groups has the same group for all 60 rows"),
    (np.arange(60) % 3, 5, "cv=5, a number of folds, must be from 2 to the 3 groups"),
    ([1.0, np.nan] * 30, None, r"groups\[1\] is missing; give every row a group"),
    (["a", None] * 30, 2, r"groups\[1\] is missing"),
    (np.array(["2024-01-01", "NaT"] * 30, "M8[D]"), 2, r"groups\[1\] is missing"),
    ("abc", None, r"groups has shape \(\); pass a list"),
    (None, GroupKFold(2), r"cv=GroupKFold.* can't split 60 rows: .*pass groups to fit"),
    (np.zeros(60), GroupKFold(2), r"cv=GroupKFold.* can't split 60 rows: .*use another cv"),
    (None, GroupKFold, r"must be None.*did you mean GroupKFold\(\)\?"),
    (None, [1, 2], "split 0 of cv is 1; it must be a pair"),
    (None, {1: 2}, "cv={1: 2} must be None"),
    (None, [], "no splits"),
    (None, 1, "cv=1, a number of folds, must be from 2 to the 60 rows"),
])  # fmt: skip
def test_groups_and_splitters_that_cannot_split_are_refused(groups, cv, words):
    with pytest.raises(ValueError, match=words):
        table_of(groups=groups).splits(cv, 1000, np.random.default_rng(0))


def test_groups_may_be_numbers_and_text():
    groups = np.array([0, "a", 1] * 20, dtype=object)
    for rows, out in table_of(groups=groups).splits(3, 1000, np.random.default_rng(0)):
        assert {*groups[rows]} & {*groups[out]} == set()


def test_groups_without_weight_are_in_no_fold():
    """The largest group has no weight, and would be a fold of its own."""
    groups = np.repeat([0, 1, 2, 3], [30, 10, 10, 10])
    found = table_of(groups=groups, weight=1.0 * (groups > 0)).splits(
        2, 1000, np.random.default_rng(0)
    )
    assert len(found) == 2
    for rows, out in found:
        assert sorted([*rows, *out]) == list(range(30))
        assert {*groups[30:][rows]} & {*groups[30:][out]} == set()


def test_variances_of_weighted_columns_are_those_of_as_many_rows():
    """Importances are in units of the spread of the columns."""
    rng = np.random.default_rng(0)
    X, y, times = rng.standard_normal((30, 2)), rng.standard_normal((30, 1)), rng.integers(0, 4, 30)
    weighted = TableRows(X, y, None, 2.5 * times, None).variances()
    repeated = TableRows(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0), None, None, None)
    np.testing.assert_allclose(weighted, repeated.variances(), rtol=1e-12)
