"""The pictures of plans and comparisons."""

from pathlib import Path

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


def test_errors_far_above_are_named(monkeypatch):
    """What is far worse than the front leaves the others their place, and is named."""
    figures = []
    monkeypatch.setattr(draw, "save_picture", lambda figure, _: figures.append(figure))
    rows = [
        {"method": method, "n_components": 16, "error": error, "seconds": seconds}
        for method, error, seconds in (
            ("quick", 0.5, 0.1), ("close", 0.1, 1.0), ("bad", 70.0, 2.0), ("near", 0.9, 2.0),
        )
    ]  # fmt: skip
    draw.draw_comparison(Path("c.png"), rows, 100, False, "title")
    draw.draw_comparison(Path("c.png"), rows[:2], 100, False, "title")
    (axes,), (whole,) = (figure.axes for figure in figures)
    assert axes.get_ylim()[1] < 2
    assert [text.get_text() for text in axes.texts if "above" in text.get_text()] == ["above: bad"]
    assert not [text for text in whole.texts if "above" in text.get_text()]
