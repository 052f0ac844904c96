"""The pictures of plans and comparisons."""

import warnings

import numpy as np
import pytest

from gzkcore.evaluate import draw


def test_numbers_at_short_axes():
    """An axis of logarithms has some numbers, even if it spans a third of a decade."""
    figure = pytest.importorskip("matplotlib.figure")
    for low, high in ((1, 2.2), (0.03, 0.5), (1e-4, 3), (1e-7, 1)):
        axes = figure.Figure().add_subplot()
        axes.set(xscale="log", xlim=(low, high))
        draw.plain_ticks(axes.xaxis)
        shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
        assert 2 <= len(shown) <= 11, shown


def test_errors_far_above_are_named():
    """What is far worse than the front leaves the others their place, and is named."""
    rows = [
        {"method": method, "n_components": 16, "error": error, "seconds": seconds}
        for method, error, seconds in (
            ("quick", 0.5, 0.1), ("close", 0.1, 1.0), ("bad", 70.0, 2.0), ("near", 0.9, 2.0),
        )
    ]  # fmt: skip
    (axes,) = draw.figure_of_comparison(rows, 100, False, "title").axes
    (whole,) = draw.figure_of_comparison(rows[:2], 100, False, "title").axes
    assert axes.get_ylim()[1] < 2
    assert [text.get_text() for text in axes.texts if "above" in text.get_text()] == ["above: bad"]
    assert not [text for text in whole.texts if "above" in text.get_text()]


@pytest.mark.slow
def test_one_method_far_ahead_leaves_the_others_in_the_picture(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"method": f"method{i}", "n_components": 16, "error": error, "seconds": 1.0 + error}
        for i, error in enumerate(10 ** rng.uniform(0, 2, 40))
    ] + [{"method": "ahead", "n_components": 16, "error": 1e-3, "seconds": 0.1}]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a layout that leaves no room
        figure = draw.figure_of_comparison(rows, 100, False, "title")
        draw.save_picture(figure, tmp_path / "c.png")
    (axes,) = figure.axes
    top = axes.get_ylim()[1]
    assert sum(row["error"] <= top for row in rows) > 20
    (above,) = (text.get_text() for text in axes.texts if "above" in text.get_text())
    assert above.count("method") == 6
    assert above.endswith(" more")


def compared(method, width, error, seconds, *, rmse, half=None):
    low, high = (None, None) if half is None else (rmse - half, rmse + half)
    row = {"method": method, "n_components": width, "error": error, "seconds": seconds}
    return row | {"rmse": rmse, "rmse_low": low, "rmse_high": high}


def test_the_front_ends_at_the_whole_kernel():
    """Features that are slower than the whole kernel are on no front, nor do they get a colour first."""
    rows = [
        compared("quick", 16, 0.1, 0.5, rmse=2.0),
        compared("slow", 64, 1e-9, 3.0, rmse=2.0),
        compared("whole", None, 0.0, 1.0, rmse=1.9),
    ]
    figure = draw.figure_of_comparison(rows, 100, True, "title")
    kernel, predictions = figure.axes
    for axes, end in ((kernel, (1.0, kernel.get_ylim()[0])), (predictions, (3.0, 1.9))):
        (front,) = (line for line in axes.lines if line.get_label() == "Pareto front")
        np.testing.assert_allclose(front.get_xydata()[-1], end)


@pytest.mark.parametrize("half", [0.3, None])
def test_what_differs_by_chance_looks_alike(half):
    rows = [compared(f"m{i}", 16, 0.1, 1.0 + i, rmse=1 + 1e-3 * i, half=half) for i in range(9)]
    figure = draw.figure_of_comparison(rows, 100, True, "title")
    axes = figure.axes[1]
    low, high = axes.get_ylim()
    assert low < 0.81
    assert high > 1.24
    assert len(axes.collections) == (0 if half is None else 5)
    assert ("intervals" in axes.get_ylabel()) == (half is not None)


def test_five_methods_are_named_and_others_are_grey():
    rows = [
        compared(f"method{i}", 16, 1.0 + i, 9.0 + i, rmse=2.0 + i) for i in range(9)
    ] + [compared("quick", 16, 9.0, 0.1, rmse=9.0)]  # fmt: skip
    figure = draw.figure_of_comparison(rows, 100, True, "title")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(labels) == {
        "quick", "method0", "method1", "method2", "method3", "5 other methods", "Pareto front",
    }  # fmt: skip
    for axes in figure.axes:
        (others,) = {line.get_linestyle() for line in axes.lines if line.get_color() == draw.GREY}
        assert others == "None"  # lines of thirty methods were all that was seen


def test_each_front_has_names_and_no_more_than_those_of_the_legend():
    """Of two fronts, the first took all the colours; the other had names without a colour."""
    rows = [compared(f"kernel{i}", 16, 0.1**i, 1.0 + i, rmse=2.0) for i in range(8)]
    rows += [compared(f"predicts{i}", 16, 2.0, 1.0 + i, rmse=1.0 - 0.1 * i) for i in range(8)]
    figure = draw.figure_of_comparison(rows, 100, True, "title")
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    named -= {"11 other methods", "Pareto front"}
    assert named == {"predicts7", "kernel7", "predicts6", "kernel6", "predicts5"}
    for axes in figure.axes:
        told = {text.get_text().split(",")[0] for text in axes.texts}
        assert {name for name in told if "above" not in name} <= named


@pytest.mark.parametrize("least", [1e-14, 0.02])
def test_a_plan_is_drawn_over_features_and_ends_where_it_is_good_enough(least):
    table = [
        {"method": name, "n_components": width, "error": max(1 / width, least), "seconds": 1.0}
        for name in "abc"
        for width in (64, 100, 10**6)
    ]
    figure = draw.figure_of_plan(table, 0.1, "title", ("b", 100))
    (axes,) = figure.axes
    figure.draw_without_rendering()
    assert [text.get_text() for text in axes.get_xticklabels()] == ["64", "100", "1,000,000"]
    lines = [line for line in axes.lines if line.get_label() in "abc"]
    for line in lines:  # none is beside its number of features
        assert list(line.get_xdata()) == [64, 100, 10**6]
        assert line.get_markerfacecolor() == "none"
    assert np.all(np.diff([line.get_markersize() for line in lines]) < 0)  # each is seen
    (filled,) = (line for line in axes.lines if line.get_label() == "recommended")
    assert (filled.get_color(), *filled.get_xdata()) == (lines[1].get_color(), 100)
    low, _ = axes.get_ylim()
    ticks = [text.get_text() for text in axes.get_yticklabels()]
    assert ("≤ 0.0001" in ticks) == (least == 1e-14)
    assert low == pytest.approx(1e-4) if least == 1e-14 else 0.005 < low < 0.02


def test_names_cover_no_marker_of_a_named_method():
    pytest.importorskip("matplotlib")
    rng, rows = np.random.default_rng(40), []
    for i in range(40):
        quality = rng.uniform()
        for width in (256, 1024):
            seconds = 10 ** rng.uniform(-2, 0.5) * width / 256
            error = 10 ** (-1 - quality - 0.3 * np.log2(width / 256) + 0.1 * rng.normal())
            row = {"method": f"method-{i}-long", "n_components": width, "error": error}
            rows.append(row | {"rmse": 0.3 + error * rng.uniform(0.5, 1), "seconds": seconds})
    figure = draw.figure_of_comparison(rows, 100, False, "title")
    (axes,) = figure.axes
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in axes.texts if "long" in text.get_text()]
    assert len(boxes) > 2
    named = [line for line in axes.lines if line.get_color() != draw.GREY]
    places = [
        axes.transData.transform(line.get_xydata()) for line in named if line.get_marker() != "None"
    ]
    for box in boxes:
        assert not any(box.contains(*place) for place in np.concatenate(places))


@pytest.mark.slow
def test_titles_and_the_error_asked_for_are_beside_the_lines():
    """A long title went on beyond the edge, lines ran through the text, and the ninth was as the first."""
    title = f"{'campaign_' * 7}.csv, 45,730 rows, 9 columns, target $rmsd, Gaussian(gamma=0.1111)"
    methods = [f"method{i}" for i in range(9)]
    table = [
        {"method": method, "n_components": width, "error": 0.1, "seconds": 1.0}
        for method in methods
        for width in (64, 256)
    ]
    plan = draw.figure_of_plan(table, 0.1, title)
    rows = [compared(method, 16, 0.1, 1.0, rmse=1.0) for method in methods]
    comparisons = [draw.figure_of_comparison(rows, 100, each, title) for each in (False, True)]
    texts = [plan.axes[0]._left_title, *(figure._suptitle for figure in comparisons)]
    for figure, text in zip([plan, *comparisons], texts, strict=True):
        figure.draw_without_rendering()
        assert text.get_window_extent().x1 <= figure.bbox.x1
        assert "Gaussian(gamma=0.1111)" in text.get_text()
    (axes,) = plan.axes
    (asked,) = axes.texts
    assert asked.get_window_extent().x0 > axes.get_window_extent().x1
    assert asked.get_window_extent().x1 <= plan.bbox.x1
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines[:9]}
    assert len(looks) == 9


def test_legends_are_as_wide_as_their_picture():
    """Three columns of long names were cut at both ends."""
    methods = [f"Fourier, orthogonal frequencies {i}" for i in range(6)]
    table = [{"method": m, "n_components": 64, "error": 0.1, "seconds": 1.0} for m in methods]
    for figure in (
        draw.figure_of_plan(table, 0.1, "title"),
        draw.figure_of_comparison(table, 100, False, "title"),
    ):
        figure.draw_without_rendering()
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.x1
