"""The pictures of the command that are no maps."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
from matplotlib.figure import Figure

from gzkcore.cli import pictures
from gzkcore.evaluate.draw import styled


@styled()
def draw_agreement(pairs, rows, label, errors=""):
    """Draw predicted against actual values as `draw_frame` does."""
    figure = Figure(figsize=(6.4, 6.2), layout="constrained")
    pictures._draw_agreement(figure.add_subplot(), pairs, rows, label, errors)
    pictures.save_picture(figure, Path("a.png"))


@pytest.mark.parametrize("n", [300, 3000])
def test_agreement_of_few_rows_and_of_many(n, monkeypatch):
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    rng = np.random.default_rng(0)
    draw_agreement(rng.normal(size=(n, 2)), "rows of t.csv", "y")
    (figure,) = figures
    bars = figure.axes[0].child_axes
    assert len(bars) == (n > pictures.MOST_DOTS)  # with a bar of colours for counts
    if bars:
        ticks = bars[0].get_yticks()
        assert all(tick == round(tick) for tick in ticks if tick >= 1), ticks


def test_every_row_of_few_is_drawn_and_of_many_it_is_told_how_many_are_not(monkeypatch):
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    pairs = np.random.default_rng(0).normal(size=(3000, 2))
    pairs[:2] = 100
    for n in (300, 3000):
        draw_agreement(pairs[:n], "rows of t.csv", "y")
    few, many = (figure.axes[0] for figure in figures)
    assert few.get_xlim()[1] > 100
    assert "outside" not in few.get_title("left")
    assert many.get_xlim()[1] < 10
    assert "3,000 rows of t.csv, 5 of them outside the picture" in many.get_title("left")


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (123_456, 907_654, ["200,000", "400,000", "600,000", "800,000"]),
        (1951, 2023, ["1960", "1980", "2000", "2020"]),
        (-0.6, 1.2, ["\N{MINUS SIGN}0.5", "0", "0.5", "1"]),
        (1_000_000.1, 1_000_000.7, ["1,000,000.2", "1,000,000.4", "1,000,000.6"]),
    ],
)
def test_numbers_at_axes_are_as_one_prints_them(monkeypatch, low, high, ticks):
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    pairs = np.linspace(low, high, 20)[:, np.newaxis].repeat(2, axis=1)
    draw_agreement(pairs, "rows of t.csv", "y")
    figures[0].draw_without_rendering()
    (axes,) = figures[0].axes
    ends = axes.get_xlim()
    shown = [
        text for text in axes.get_xticklabels() if ends[0] <= text.get_position()[0] <= ends[1]
    ]
    assert [text.get_text() for text in shown] == ticks


def within(figure, text):
    """Say whether a text is in the picture from end to end."""
    figure.draw_without_rendering()
    box = text.get_window_extent()
    return box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


LONG = "relative abundance of the protein (mean of three measurements, in micrograms)"


@pytest.mark.parametrize("n", [300, 3000])
def test_long_names_stay_in_the_picture(monkeypatch, n):
    """Titles went on beyond its right edge, and labels beyond its foot."""
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    pairs = np.random.default_rng(0).normal(size=(n, 2))
    pairs[:2] = 100
    draw_agreement(pairs, f"held-out rows of {'campaign_' * 6}.csv", LONG)
    (figure,) = figures
    axes = figure.axes[0]
    title = axes._left_title
    assert all(within(figure, text) for text in (title, axes.xaxis.label, axes.yaxis.label))
    assert " ".join(title.get_text().split()).startswith(f"Predicted against actual {LONG}")


def test_large_numbers_stand_apart(monkeypatch):
    """Below an axis each had run into the next."""
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    pairs = np.linspace(0, 1.05e7, 2000)[:, np.newaxis].repeat(2, axis=1)
    draw_agreement(pairs, "rows of t.csv", "y")
    figures[0].draw_without_rendering()
    axes = figures[0].axes[0]
    ends = axes.get_xlim()
    boxes = [
        text.get_window_extent()
        for text in axes.get_xticklabels()
        if ends[0] <= text.get_position()[0] <= ends[1]
    ]
    assert len(boxes) >= 2
    assert all(left.x1 + 5 < right.x0 for left, right in itertools.pairwise(boxes))


@pytest.mark.slow
def test_classes_and_columns_of_long_names(monkeypatch):
    """Names squeezed the table of classes, and columns were cut to the same name."""
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    monkeypatch.setattr(pictures, "rows_at", lambda *_: None)
    monkeypatch.setattr(pictures, "KernelClassifier", SimpleNamespace)
    classes = np.array([f"a very long name of a class, number {i}" for i in range(20)])
    truth = classes.repeat(5)
    columns = [f"the expression of gene {i} in the sample of the tissue" for i in range(20)]
    found = SimpleNamespace(
        rows=SimpleNamespace(
            target=LONG,
            train=SimpleNamespace(columns=columns),
            classify=True,
            folds=None,
            truth=truth,
        ),
        verdict=SimpleNamespace(
            shuffled=dict(zip(columns, np.linspace(0.9, 0.1, 20), strict=True)),
            error_of_some=0.2,
            predicted=truth,
        ),
        model=SimpleNamespace(classes_=classes, encoder_=SimpleNamespace(columns_=[])),
        places=None,
    )
    pictures.draw_frame(found, Path("fit.png"), "data.csv")
    (figure,) = figures
    labels, bars = figure.axes[:2]
    for axes in (labels, bars):
        texts = axes._left_title, axes.xaxis.label, axes.yaxis.label
        assert all(within(figure, text) for text in texts)
        names = [text.get_text() for text in axes.get_yticklabels()]
        assert len(set(names)) == len(names) > 10
    assert labels.get_window_extent().width > 0.2 * figure.bbox.width
    first, second = (axes._left_title.get_window_extent() for axes in (labels, bars))
    assert first.x1 < second.x0
    assert bars.get_title("left").startswith("Which columns matter\nthe top 12 of 20")
    assert "\ncolours: share of each actual " in labels.get_title("left")
    assert "100 held-out rows of data.csv\n0.0 % of predictions are wrong\n" in labels.get_title(
        "left"
    )
    assert not any(bar.get_ylabel() for bar in figure.axes[2:])  # it would be that of the bars


def test_names_are_no_formulas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw_agreement(np.arange(20.0).reshape(10, 2), "rows of $x_{$.csv", "y $x_{$")
    assert (tmp_path / "a.png").stat().st_size > 1000


@pytest.mark.parametrize(("rise", "n_axes"), [(0.9, 1), (1.005, 1), (1.5, 2)])
def test_bars_are_drawn_where_a_column_matters(monkeypatch, rise, n_axes):
    """Rises by chance would look like importances."""
    figures = []
    monkeypatch.setattr(pictures, "rows_at", lambda *_: None)
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    truth = np.arange(10.0)
    shuffled = {"a, b": 2.0 * rise, "c": 2.0}
    columns = [SimpleNamespace(names=["a", "b"], kind="place")]
    found = SimpleNamespace(
        rows=SimpleNamespace(
            target="y",
            train=SimpleNamespace(columns=["a", "b", "c"]),
            classify=False,
            folds=None,
            truth=truth,
        ),
        verdict=SimpleNamespace(
            shuffled=shuffled,
            error_of_some=2.0,
            predicted=truth + 1,
            methods=[{"rmse": 1.0, "r2": 0.8788}],
        ),
        model=SimpleNamespace(encoder_=SimpleNamespace(columns_=columns)),
        places=None,
    )
    pictures.draw_frame(found, Path("fit.png"), "data.csv")
    assert len(figures[0].axes) == n_axes
    titles = [axes.get_title("left") for axes in figures[0].axes]
    assert not any(" of 3" in title for title in titles)  # all are shown
    assert (
        "10 held-out rows of data.csv; line: perfect\nroot mean squared error 1, R² 0.879"
        in titles[0]
    )
    if n_axes == 2:
        label = figures[0].axes[1].get_xlabel()
        assert label == "rise of the error of 2\nwhen the column is shuffled"
