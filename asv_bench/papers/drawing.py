"""Pictures of the tables and figures of the papers; matplotlib is imported only here."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gzkcore.evaluate.draw import save_picture, styled

from .experiment import Cell, Picture


@styled()
def draw(path: Path, title: str, cells: Sequence[Cell], pictures: Sequence[Picture]) -> None:
    """Draw the panels, or without any the cells: measured numbers beside printed ones."""
    from matplotlib.figure import Figure

    figure = _panels(Figure, pictures) if pictures else _cells(Figure, cells)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    save_picture(figure, path)


def _panels(make: Any, pictures: Sequence[Picture]) -> Any:
    columns = min(2, len(pictures))
    rows = math.ceil(len(pictures) / columns)
    figure = make(figsize=(5.4 * columns, 3.9 * rows + 0.4), layout="constrained")
    for number, picture in enumerate(pictures, start=1):
        axes = figure.add_subplot(rows, columns, number)
        axes.set_title(picture.title, fontsize=10)
        if picture.image is not None:
            shown = axes.imshow(picture.image, vmin=0, vmax=1, cmap="Blues")
            figure.colorbar(shown, ax=axes, shrink=0.8, label="|correlation|")
            continue
        for (label, (x, y)), marker in zip(picture.lines.items(), "osD^v*xP", strict=False):
            axes.plot(x, y, marker=marker, markersize=4, label=label)
        axes.set(xlabel=picture.x, ylabel=picture.y)
        if picture.log_x:
            axes.set_xscale("log")
        if picture.log_y:
            axes.set_yscale("log")
        axes.legend(fontsize=8)
    return figure


def _cells(make: Any, cells: Sequence[Cell]) -> Any:
    """One panel for each row and measure: bars with their spread, printed values as lines."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.row, cell.measure), []).append(cell)
    columns = min(3, max(1, len(groups)))
    rows = max(1, math.ceil(len(groups) / columns))
    most = max((len(group) for group in groups.values()), default=1)
    figure = make(figsize=(4.6 * columns, (0.24 * most + 1.2) * rows + 0.5), layout="constrained")
    for number, ((row, measure), group) in enumerate(groups.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        places = list(range(len(group)))
        axes.barh(
            places, [cell.mean for cell in group], xerr=[cell.spread for cell in group],
            color="#9ecae1", ecolor="#08519c", height=0.7,
        )  # fmt: skip
        printed = [(y, c.printed) for y, c in zip(places, group, strict=True)]
        shown = [(y, value) for y, value in printed if isinstance(value, (int, float))]
        if shown:
            axes.plot([value for _, value in shown], [y for y, _ in shown], "|", color="#d94801",
                      markersize=11, markeredgewidth=2, label="printed")  # fmt: skip
        names = [f"{cell.column} (or more)" if cell.capped else cell.column for cell in group]
        axes.set_yticks(places, names, fontsize=8)
        axes.invert_yaxis()
        axes.tick_params(axis="x", labelsize=8)
        axes.set_title(f"{row}, {measure}", fontsize=9)
        sizes = [abs(cell.mean) for cell in group if cell.mean]
        if sizes and max(sizes) > 50 * min(sizes):
            axes.set_xscale("log")
    # One legend serves all panels: that of the first with printed values.
    marked = [axes for axes in figure.axes if axes.get_legend_handles_labels()[1]]
    if marked:
        handles, labels = marked[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper right", fontsize=9)
    return figure
