"""The pictures of the command that are no maps."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
from gzkcore.cli import pictures


@pytest.mark.parametrize("n", [300, 3000])
def test_agreement_of_few_rows_and_of_many(n, monkeypatch):
    figures = []
    monkeypatch.setattr(pictures, "save_picture", lambda figure, _: figures.append(figure))
    rng = np.random.default_rng(0)
    pictures.draw_agreement(Path("a.png"), rng.normal(size=(n, 2)), "title", "y")
    (figure,) = figures
    assert len(figure.axes) == 1 + (n > pictures.MOST_DOTS)  # with a bar of colours for counts
    if n > pictures.MOST_DOTS:
        ticks = figure.axes[1].get_yticks()
        assert all(tick == round(tick) for tick in ticks if tick >= 1), ticks
