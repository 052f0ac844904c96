"""Which rows are held out: as many as is said, all over the table, at random; groups stay whole."""

import numpy as np
import pytest

from gzkcore.learn.held_out import (
    copies_of,
    group_folds,
    hashed_folds,
    hashed_rows,
    last_rows,
    some_groups,
)


def test_the_last_rows_are_held_out_with_all_of_their_value():
    days = np.array([3, 1, 2, 3, 1, 2, 3, 1, 4, np.nan])
    assert last_rows(days, 0.4).tolist() == (days >= 3).tolist()
    assert last_rows(days, 0.1).tolist() == (days == 4).tolist()
    assert last_rows(days, 0.9).tolist() == (days >= 2).tolist()  # some are left
    dates = np.array(["2024-05-01", "NaT", "2024-06-01", "2024-04-01"], "M8[s]")
    assert last_rows(dates, 0.25).tolist() == [False, False, True, False]


def test_groups_are_held_out_whole():
    groups = np.random.default_rng(0).integers(0, 30, 500)
    test = some_groups(groups, 6, 0)
    assert not {*groups[test]} & {*groups[~test]}
    assert len({*groups[test]}) == 6
    assert (test != some_groups(groups, 6, 1)).any()
    folds = group_folds(groups, 5)
    assert all(len({*folds[groups == group]}) == 1 for group in range(30))
    assert np.bincount(folds).min() > 80


@pytest.mark.parametrize("share", [1e-3, 0.07, 0.1, 1 / 3, 0.5, 0.7, 0.9])
def test_the_share_is_what_it_says(share):
    """To a row, of any number of rows; in pieces as at once."""
    rows = np.arange(10_000)
    chosen = hashed_rows(rows, share, 3)
    total = np.cumsum(chosen)
    assert np.abs(total - share * (rows + 1)).max() <= max(1.0, 1 / (1 - share)) + 1e-9
    np.testing.assert_array_equal(
        np.r_[hashed_rows(rows[:777], share, 3), hashed_rows(rows[777:], share, 3)], chosen
    )


def test_a_tenth_of_400_rows_is_40():
    for seed in range(20):
        assert hashed_rows(np.arange(400), 0.1, seed).sum() == 40


def test_places_within_a_group_are_even_and_differ_by_seed():
    rows = np.arange(100_000)
    places = np.flatnonzero(hashed_rows(rows, 0.1, 0)) % 10
    assert np.abs(np.bincount(places, minlength=10) / 10_000 - 0.1).max() < 0.015
    assert np.mean(hashed_rows(rows, 0.1, 0) & hashed_rows(rows, 0.1, 1)) == pytest.approx(
        0.01, abs=0.002
    )
    assert not hashed_rows(rows, 0.0, 0).any()


def test_of_five_rows_each_is_in_another_fold():
    folds = hashed_folds(1000, 3)
    assert {tuple(sorted(five)) for five in folds.reshape(-1, 5).tolist()} == {(0, 1, 2, 3, 4)}
    assert np.abs(np.bincount(folds[::5], minlength=5) / 200 - 0.2).max() < 0.1
    assert not np.array_equal(folds, hashed_folds(1000, 4))


def test_folds_have_the_same_share_of_a_label():
    labels = np.random.default_rng(0).choice(["a", "b"], 250, p=[0.9, 0.1])
    folds = hashed_folds(250, 0, labels)
    for label in "ab":
        counts = np.bincount(folds[labels == label], minlength=5)
        assert np.ptp(counts) <= 2


@pytest.mark.parametrize("other", ["row", "noise"])
def test_copies_may_differ_by_row_numbers_and_rounding(other):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 2)), rng.standard_normal((60, 1))
    X, Y = np.vstack([X, X]), np.vstack([Y, Y])
    assert copies_of(X, Y) is not None
    if other == "row":
        X = np.column_stack([X, np.arange(120.0)])
    else:
        X += 1e-9 * rng.standard_normal(X.shape)
    copies = copies_of(X, Y)
    assert copies is not None
    assert (copies[:60] == copies[60:]).mean() > 0.95
    assert copies_of(np.arange(120.0)[:, None], Y) is None


def test_levels_that_return_and_rows_with_other_targets_are_no_copies():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 12, (2, 500))
    effects = rng.standard_normal((12, 12))
    assert copies_of(np.hstack([np.eye(12)[a], np.eye(12)[b]]), effects[a, b, None]) is None
    x = rng.permutation(np.repeat(rng.uniform(0, 9, 100), 3))[:, None]
    assert copies_of(x, np.sin(x)) is not None
    assert copies_of(x, np.sin(x) + rng.standard_normal((300, 1))) is None


def same(X):
    """Return for each row the first that differs from it by nothing that counts, by definition."""
    steps = np.diff(np.sort(X, axis=0), axis=0)
    uneven = steps.max(axis=0) - steps.min(axis=0) > 1e-6 * steps.max(axis=0)
    rounded = np.round(X[:, uneven] / X[:, uneven].std(axis=0) / 1e-6)
    return np.array([np.argmax((rounded == row).all(axis=1)) for row in rounded])


@pytest.mark.parametrize("seed", range(8))
def test_copies_of_wide_tables_by_definition(seed):
    """Among them columns that rise evenly in their first rows alone, and levels that copies lack."""
    rng = np.random.default_rng(seed)
    n = 1100
    rows = np.sort(rng.permutation(n)[: n // 2])[rng.integers(n // 2, size=n)]
    numbers = rng.standard_normal((n, 20))[rows]
    rises = np.arange(n) % (n - seed % 2) * 1.0
    X = np.column_stack([np.ones(n), rises, numbers, np.eye(5)[rng.integers(5, size=n)[rows]]])
    if seed % 4 > 1:
        X[:, -1] = rng.random(n) < 0.02 * seed
    expected, copies = same(X), copies_of(X, np.zeros((n, 1)))
    if len({*expected}) > 0.95 * n:
        assert copies is None
    else:
        pairs = {*zip(expected.tolist(), copies.tolist(), strict=True)}
        assert len(pairs) == len({*expected}) == len({*copies.tolist()})


def test_rows_that_differ_in_a_level_alone_are_no_copies():
    numbers = np.random.default_rng(0).standard_normal((300, 30))
    X = np.vstack([numbers, numbers])
    assert copies_of(X, np.zeros((600, 1))) is not None
    assert copies_of(np.column_stack([X, np.arange(600) < 300]), np.zeros((600, 1))) is None
