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
def agreement(pairs, rows="rows of t.csv", label="y"):
    """Return a figure of predicted against actual values as `draw_frame` draws it."""
    figure = Figure(figsize=(6.4, 6.2), layout="constrained")
    pictures._draw_agreement(figure.add_subplot(), pairs, rows, label, errors="")
    return figure


def shown_ticks(figure):
    """Return the numbers below the axes of a figure."""
    figure.draw_without_rendering()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    return [text for text in axes.get_xticklabels() if low <= text.get_position()[0] <= high]


@pytest.mark.parametrize("n", [300, 3000])
def test_agreement_of_few_rows_and_of_many(n):
    rng = np.random.default_rng(0)
    bars = agreement(rng.normal(size=(n, 2))).axes[0].child_axes
    assert len(bars) == (n > pictures.MOST_DOTS)  # with a bar of colours for counts
    if bars:
        ticks = bars[0].get_yticks()
        assert all(tick == round(tick) for tick in ticks if tick >= 1), ticks


def test_every_row_of_few_is_drawn_and_of_many_it_is_told_how_many_are_not():
    pairs = np.random.default_rng(0).normal(size=(3000, 2))
    pairs[:2] = 100
    few, many = (agreement(pairs[:n]).axes[0] for n in (300, 3000))
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
def test_numbers_at_axes_are_as_one_prints_them(low, high, ticks):
    pairs = np.linspace(low, high, 20)[:, np.newaxis].repeat(2, axis=1)
    assert [text.get_text() for text in shown_ticks(agreement(pairs))] == ticks


def within(figure, text):
    """Say whether a text is in the picture from end to end."""
    figure.draw_without_rendering()
    box = text.get_window_extent()
    return box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1


LONG = "relative abundance of the protein (mean of three measurements, in micrograms)"


@pytest.mark.parametrize("n", [300, 3000])
def test_long_names_stay_in_the_picture(n):
    """Titles went on beyond its right edge, and labels beyond its foot."""
    pairs = np.random.default_rng(0).normal(size=(n, 2))
    pairs[:2] = 100
    figure = agreement(pairs, f"held-out rows of {'campaign_' * 6}.csv", LONG)
    axes = figure.axes[0]
    title = axes._left_title
    assert all(within(figure, text) for text in (title, axes.xaxis.label, axes.yaxis.label))
    assert " ".join(title.get_text().split()).startswith(f"Predicted against actual {LONG}")


def test_large_numbers_stand_apart():
    """Below an axis each had run into the next."""
    pairs = np.linspace(0, 1.05e7, 2000)[:, np.newaxis].repeat(2, axis=1)
    boxes = [text.get_window_extent() for text in shown_ticks(agreement(pairs))]
    assert len(boxes) >= 2
    assert all(left.x1 + 5 < right.x0 for left, right in itertools.pairwise(boxes))


def drawn(monkeypatch, target, columns, truth, verdict, model):
    """Return the figure of a fit with these parts."""
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    train, classify = SimpleNamespace(columns=columns), hasattr(model, "classes_")
    rows = SimpleNamespace(target=target, train=train, classify=classify, folds=None, truth=truth)
    shares = dict.fromkeys(columns, 1 / len(columns)) | {"constant": 0.0}
    fit = SimpleNamespace(
        rows=rows, verdict=verdict, model=model, places=None, surface=None, importances=shares
    )
    pictures.draw_frame(fit, Path("fit.png"), "data.csv")
    return figures[0]


@pytest.mark.slow
def test_classes_and_columns_of_long_names(monkeypatch):
    """Names squeezed the table of classes, and columns were cut to the same name."""
    monkeypatch.setattr(pictures, "KernelClassifier", SimpleNamespace)
    classes = np.array([f"a very long name of a class, number {i}" for i in range(20)])
    truth = classes.repeat(5)
    columns = [f"the expression of gene {i} in the sample of the tissue" for i in range(20)]
    shuffled = dict(zip(columns, np.linspace(0.9, 0.1, 20), strict=True))
    verdict = SimpleNamespace(shuffled=shuffled, error_of_some=0.2, predicted=truth)
    model = SimpleNamespace(classes_=classes, encoder_=SimpleNamespace(columns_=[]))
    figure = drawn(monkeypatch, LONG, columns, truth, verdict, model)
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


def test_names_are_no_formulas(tmp_path):
    figure = agreement(np.arange(20.0).reshape(10, 2), "rows of $x_{$.csv", "y $x_{$")
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_intervals_of_labels_are_drawn_from_end_to_end():
    """Wilson's are not even about the error."""
    axes = Figure().add_subplot()
    method = {"method": "linear", "error_rate": 0.0, "plus_minus": 0.05, "low": 0.0, "high": 0.1}
    fit = SimpleNamespace(rows=SimpleNamespace(classify=True))
    pictures.draw_errors(axes, fit, SimpleNamespace(methods=[method]))
    assert axes.lines[0].get_xdata().tolist() == [0, 10]


@pytest.mark.parametrize(("rise", "n_axes"), [(0.9, 1), (1.005, 1), (1.5, 2)])
def test_bars_are_drawn_where_a_column_matters(monkeypatch, rise, n_axes):
    """Rises by chance would look like importances."""
    truth = np.arange(10.0)
    shuffled = {"a, b": 2.0 * rise, "c": 2.0}
    columns = [SimpleNamespace(names=["a", "b"], kind="place")]
    methods = [{"rmse": 1.0, "r2": 0.8788}]
    verdict = SimpleNamespace(
        shuffled=shuffled, error_of_some=2.0, predicted=truth + 1, methods=methods
    )
    model = SimpleNamespace(encoder_=SimpleNamespace(columns_=columns))
    figure = drawn(monkeypatch, "y", ["a", "b", "c"], truth, verdict, model)
    assert len(figure.axes) == n_axes
    titles = [axes.get_title("left") for axes in figure.axes]
    assert not any(" of 3" in title for title in titles)  # all are shown
    assert (
        "10 held-out rows of data.csv; line: perfect\nroot mean squared error 1, R² 0.879"
        in titles[0]
    )
    if n_axes == 2:
        label = figure.axes[1].get_xlabel()
        assert label == "rise of the error, 2,\nwhen the column is shuffled"
