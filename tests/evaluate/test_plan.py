"""Plans: predictions come true, and the recommendation is the narrowest that reaches the error."""

from types import SimpleNamespace

import numpy as np
import pytest
from points import gaussian
from sklearn import config_context

import gzkcore
from gzkcore import Gaussian
from gzkcore.evaluate import plan as plans
from gzkcore.features.auto import Family, Trial, candidates
from gzkcore.metrics import relative_frobenius_error


@pytest.mark.slow
def test_plan_holds_on_other_rows():
    """Within a factor of 1.5 for nine in ten of its predictions above 1e-3."""
    ratios = []
    for dim in (2, 3, 5, 9, 16):
        X, other = gaussian(1500, dim), gaussian(500, dim, seed=1)
        found = gzkcore.plan(X, Gaussian(0.5 / dim), n_components=[32, 128])
        for row in found.table:
            if row["error"] < 1e-3:
                continue
            tried = candidates(found.kernel, row["n_components"], X, 5)
            [features] = [c.features.fit(X) for c in tried if c.name == row["method"]]
            error = relative_frobenius_error(found.kernel(other), features.transform(other))
            ratios.append(max(error / row["error"], row["error"] / error))
    assert len(ratios) >= 20
    assert np.quantile(ratios, 0.9) <= 1.5


@pytest.mark.slow
def test_plan_recommends_the_cheapest_that_reaches_the_error():
    found = gzkcore.plan(gaussian(800, 3), max_error=1e-3, n_components=[16, 256, 512])
    assert "n_components=256" in found.recommendation
    features = found.build()
    assert features.n_components == 256
    assert not hasattr(features, "kernel_")
    text = str(found)
    assert "800 rows of 3 columns" in text
    assert text.split("\n")[2] == found.recommendation
    methods = {row["method"] for row in found.table}
    assert len(methods) >= 4
    for method in methods:  # one line each, of the narrowest that is good enough
        rows = [row for row in found.table if row["method"] == method]
        reached = [row["n_components"] for row in rows if row["error"] <= 1e-3]
        width = min(reached) if reached else max(row["n_components"] for row in rows)
        (line,) = (line for line in text.split("\n") if line.split("  ")[0] == method)
        assert f" {width} " in line
    assert len(text.split("\n")) <= 25


def test_plan_prefers_few_features_to_quick_ones():
    """A learner takes the square of the width: 64 landmarks beat 256 quick features."""
    x = np.linspace(-1, 1, 400)[:, None]
    found = gzkcore.plan(x, Gaussian(3.0), max_error=1e-3, n_components=[32, 256])
    reached = [row for row in found.table if row["error"] <= 1e-3]
    assert {row["n_components"] for row in reached} == {32, 256}
    assert found.build().n_components == 32


def trial(name, width, error, flops):
    return Trial(Family(name, None), width, error, flops, SimpleNamespace())


@pytest.mark.parametrize(("error", "flops", "chosen", "told"), [
    (0.01, 1e4, "other", ""),
    (0.055, 1e4, "cheap", "other has an error of 0.055, but its features take 10 times"),
    (0.01, 1e6, "cheap", "other has an error of 0.01, but its features take 1,000 times"),
    (0.06, 1e4, "cheap", ""),
], ids=["far better", "a little better", "far dearer", "as good"])  # fmt: skip
def test_plan_says_why_not_the_method_with_the_least_error(error, flops, chosen, told):
    """It took the cheapest of the narrowest, ten times as wrong as another at about the price."""
    trials = [
        trial("cheap", 64, 0.06, 1e3), trial("other", 64, error, flops), trial("wide", 256, 1e-4, 1),
    ]  # fmt: skip
    best = plans._recommended(trials, 0.1)
    assert best.candidate.name == chosen
    text = plans._recommendation(best, trials, 0.1)
    assert "no method needs fewer features to reach 0.1." in text
    assert text.endswith(f"With as many, {told} the operations." if told else "0.1.")


def test_plan_says_when_nothing_reaches_the_error():
    found = gzkcore.plan(gaussian(600, 9), Gaussian(0.5), max_error=1e-6, n_components=[32, 128])
    assert "No method reaches 1e-06 at these widths" in found.recommendation


def test_plan_counts_all_rows():
    X = gaussian(300, 3)
    small, large = (gzkcore.plan(X, n_components=[32], n_samples=n) for n in (300, 30_000))
    assert large.table[0]["megabytes"] == 100 * small.table[0]["megabytes"]
    assert large.statistical_dimension > small.statistical_dimension
    assert 1 <= small.effective_dimension <= 3


def test_plan_counts_columns_before_they_are_encoded():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": gaussian(300, 1)[:, 0], "kind": ["u", "v", "w"] * 100})
    found = gzkcore.plan(frame, n_components=[32])
    assert (found.n_columns, found.n_features) == (2, 4)
    assert str(found).startswith("300 rows of 2 columns (4 when encoded), ")


def test_plan_draws(tmp_path):
    pytest.importorskip("matplotlib")
    found = gzkcore.plan(gaussian(300, 3), n_components=[16, 64])
    found.plot(tmp_path / "plan.png")
    assert f"Use {found._recommended[0]} with" in found.recommendation
    assert (tmp_path / "plan.png").stat().st_size > 5000


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"max_error": 0.0}, ValueError, "max_error=0.0 is not usable"),
    ({"lam": -1.0}, ValueError, "lam=-1.0 is not usable"),
    ({"n_components": []}, ValueError, "is empty"),
    ({"n_components": [0]}, ValueError, "n_components=0 is too small"),
    ({"n_samples": 0}, ValueError, "n_samples=0 is too small"),
    ({"kernel": "cauchy"}, ValueError, "kernel='cauchy' is unknown"),
])  # fmt: skip
def test_bad_plans(arguments, error, message):
    with pytest.raises(error, match=message):
        gzkcore.plan(gaussian(50, 3), **arguments)


def test_plans_hold_where_frames_are_asked_for():
    """Inside, everything goes on with arrays."""
    with config_context(transform_output="pandas"):
        gzkcore.plan(gaussian(200, 3), n_components=np.int64(16))


def test_a_missing_value_is_named_by_its_row():
    X = gaussian(50, 3)
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN\. The first is in row 17, column 1"):
        gzkcore.plan(X)
