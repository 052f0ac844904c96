"""What is told of columns that are copies: of the target, and of each other."""

import numpy as np
import pandas as pd
import pytest

from gzkcore.tabular.copies import about_copies, doubt_copies
from gzkcore.tabular.kernel_regressor import KernelRegressor
from gzkcore.tabular.table_encoder import TableEncoder

RNG = np.random.default_rng(0)
N = 120
Y = RNG.gamma(2.0, size=N)
LABELS = np.median(Y) < Y
OTHERS = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice([*"uvw"], N)})


def doubts(X, y, labels=None):
    """Return what is told of the last column, also as a warning."""
    encoder = TableEncoder().fit(X)
    doubt_copies(encoder.columns_, encoder._read(X, ""), y[:, None], labels)
    return [*encoder.columns_[-1].doubts]


@pytest.mark.parametrize(
    ("column", "y", "labels"),
    [
        (Y, Y, None),
        (7 - 3 * Y, Y, None),
        (Y.astype(np.float32), Y, None),
        (Y, np.round(1.7 * Y + 2, 2), None),
        (np.where(np.arange(N) % 5, Y, np.nan), Y, None),
        (np.where(LABELS, "yes", "no"), np.where(LABELS, 1.0, 0.0), None),
        (np.where(LABELS, "yes", "no"), Y, LABELS),
        (np.where(LABELS, 5, 2), Y, LABELS),
        (LABELS, Y, LABELS),
    ],
)
def test_a_column_that_copies_the_target_is_told(column, y, labels):
    with pytest.warns(UserWarning, match="^column 'c' tells the target exactly.*leave it out"):
        assert doubts(OTHERS.assign(c=column), y, labels)


@pytest.mark.parametrize(
    ("column", "y", "labels"),
    [
        (Y + 0.001 * RNG.normal(size=N), Y, None),
        (np.exp(Y), Y, None),
        (np.round(Y, 2), np.round(Y + 0.006 * RNG.normal(size=N), 2), None),
        (np.round(Y), Y, None),
        (RNG.permutation(Y), Y, None),
        (np.where(np.arange(N) % 5 == 0, Y, np.nan), Y, None),
        (np.arange(N) == 3, 1.0 * (np.arange(N) == 3), None),  # may be chance
        (np.arange(N) // 9, Y, np.arange(N) // 9),  # few rows of each
        (RNG.permutation(LABELS), Y, LABELS),
        (np.where(LABELS, RNG.choice(["x", "y"], N), "z"), Y, LABELS),  # a finer division
    ],
)
def test_other_columns_are_no_copies(column, y, labels):
    assert not doubts(OTHERS.assign(c=column), y, labels)


def test_a_line_may_depend_on_its_only_column():
    assert not doubts(OTHERS[["a"]], 2 * OTHERS["a"].to_numpy() + 1)


def copies(X):
    """Return what is told of columns that copy each other."""
    encoder = TableEncoder().fit(X)
    return [remark.columns for remark in about_copies(encoder.columns_, encoder._read(X, ""))]


def test_columns_that_copy_each_other_are_told_in_one_sentence():
    """Also where both were rounded, and where both lack the same values."""
    minutes, age = RNG.normal(180, 50, N).round(1), RNG.integers(18, 90, N)
    gaps = np.where(np.arange(N) % 9, minutes, np.nan)
    X = pd.DataFrame({
        "minutes": minutes, "age": age, "gaps": gaps, "charge": (0.17 * minutes).round(2),
        "born": 2024 - age, "half": gaps / 2, "again": 2 * minutes,
    })  # fmt: skip
    told = ["charge (minutes)", "again (minutes)", "born (age)", "half (gaps)"]
    assert copies(X) == [told]
    report = KernelRegressor(kernel="gaussian").fit(X, RNG.normal(size=N)).report_
    (sentence,) = [s for s in report.sentences if "linear functions of others" in s]
    assert sentence.endswith(f"one of each is enough: {', '.join(told)}.")


def test_columns_that_are_nearly_alike_are_not_told():
    t, smooth = np.linspace(0, 1, N), np.linspace(0, 3, 40)[:, None]
    spectra = pd.DataFrame(np.sin(smooth + t).T.round(5)).add_prefix("s")
    near = {"y": Y, "z": Y + 0.003 * RNG.normal(size=N), "old": Y > 1, "older": Y > 1.5}
    assert copies(spectra.assign(**near, text=np.where(Y > 1, "u", "v"))) == []
    assert copies(pd.DataFrame({"gaps": np.where(np.arange(N) % 9, Y, np.nan), "y": Y})) == []


def test_few_values_on_a_line_are_chance():
    """Two are always on one; and flags of few rows may agree."""
    two, flag = np.full((2, N, 1), np.nan), np.arange(N) < 5
    two[:, :2, 0] = RNG.normal(size=(2, 2))
    assert copies(pd.DataFrame(dict(zip("pq", two[..., 0], strict=True))).assign(a=Y)) == []
    assert copies(pd.DataFrame({"f": 1 * flag, "g": 1 * flag, "a": Y})) == []
    assert copies(pd.DataFrame({"a": Y[:2], "b": Y[2:4]})) == []
