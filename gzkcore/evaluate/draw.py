"""The pictures of plans and comparisons; matplotlib is imported only when one is drawn."""

import itertools
import math
from pathlib import Path
from typing import Any

from gzkcore._util.files import replacing

from .summary import name_of

# Errors of a comparison that are more times the largest of the front are outside of the picture.
FAR_ABOVE = 2.0


def draw_plan(path: Path, table: list[dict[str, Any]], max_error: float, title: str) -> None:
    """Draw error against time, one line a method; the widths stand at the points."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5), layout="constrained")
    axes = figure.add_subplot()
    methods = dict.fromkeys(row["method"] for row in table)
    for method, marker in zip(methods, itertools.cycle("osD^v"), strict=False):
        points = _points(table, method, "error")
        axes.plot(*points[:2], marker=marker, label=method)
        for x, y, width in zip(*points, strict=True):
            axes.annotate(
                f"{width:,}", (x, y), (0, 6), textcoords="offset points", size=8, ha="center"
            )
    axes.axhline(max_error, color="black", linewidth=1, linestyle="--")
    axes.annotate("max_error", (1, max_error), (-4, 3), xycoords=("axes fraction", "data"),
                  textcoords="offset points", ha="right", size=9)  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("seconds to make the features of all rows")
    axes.set_ylabel("relative error of the kernel matrix")
    axes.margins(0.08, 0.12)
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.set_title(title, loc="left")
    axes.legend(frameon=False)
    save_picture(figure, path)


def draw_comparison(
    path: Path, rows: list[dict[str, Any]], n_fitted: int, predicts: bool, title: str
) -> None:
    """Draw error against time, one line a method, and the front with names.

    A family, the first word of its methods' names, has one colour. With predictions, a second
    picture beside it has their error. The whole kernel, whose error of the kernel is 0, is a line
    at its time there.
    """
    features = [row for row in rows if row["n_components"] is not None]
    if not features:
        raise ValueError(f"{path}: no features were measured, so there is nothing to draw")
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {"error": "relative error of the kernel matrix"}
    panels |= {"rmse": "root mean square error of predictions"} if predicts else {}
    figure = Figure(figsize=(3 + 5.5 * len(panels), 6.4), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    methods = sorted({row["method"] for row in features})
    families = list(dict.fromkeys(method.split("-")[0] for method in methods))
    colors = colormaps["tab20"].colors[::2] + colormaps["tab20"].colors[1::2]  # type: ignore[attr-defined]
    fronts: list[list[tuple[Any, str]]] = []
    for number, (key, label) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), number + 1)
        for method in methods:
            family = method.split("-")[0]
            alike = [other for other in methods if other.split("-")[0] == family]
            axes.plot(
                *_points(features, method, key)[:2], label=method, linewidth=0.8, alpha=0.85,
                color=colors[families.index(family) % len(colors)],
                marker="osD^vP*X"[alike.index(method) % 8], markersize=5,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log")
        axes.margins(0.12, 0.1)
        shown = features if key == "error" else rows
        for whole in rows[len(features) :]:
            _draw_whole(axes, whole, key)
        fronts.append(_draw_front(axes, shown, key))
        _leave_out_far_above(axes, shown, key, fronts[-1][0][0][1])
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_xlabel(f"seconds to fit and transform {n_fitted:,} rows")
        axes.set_ylabel(label)
    figure.suptitle(title, x=0.01, ha="left", size=11)
    handles, labels = figure.axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    figure.draw_without_rendering()  # the places of labels depend on the layout
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    for axes, corners in zip(figure.axes, fronts, strict=True):
        _name_corners(axes, corners, renderer)
    save_picture(figure, path)


def plain_ticks(axis: Any, whole: bool = False) -> None:
    """Write some plain numbers at an axis of logarithms, however short it is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    digits = (1, 2, 5) if decades < 2.5 else (1, 3) if decades < 4 else (1,)
    if decades < 0.9:
        digits = (1, *(() if whole else (1.5,)), 2, 3, 4, 5, 6, 7, 8, 9)
    axis.set_major_locator(LogLocator(subs=digits, numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def _points(rows: list[dict[str, Any]], method: str, key: str) -> tuple[list[float], ...]:
    """Return the seconds, errors and widths of a method."""
    of_method = [row for row in rows if row["method"] == method]
    errors = [max(row[key], 1e-16) for row in of_method]
    return [r["seconds"] for r in of_method], errors, [r["n_components"] for r in of_method]


def _draw_front(axes: Any, rows: list[dict[str, Any]], key: str) -> list[tuple[Any, str]]:
    """Draw the steps below which there is nothing; return their corners and names."""
    front: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row["seconds"], row[key])):
        if not front or row[key] < front[-1][key]:
            front.append(row)
    corners = [(row["seconds"], max(row[key], 1e-16)) for row in front]
    end = max(row["seconds"] for row in rows), corners[-1][1]
    axes.step(
        *zip(*corners, end, strict=True), where="post", color="black", linewidth=2.5, alpha=0.3,
        zorder=1, label="the front",
    )  # fmt: skip
    names = [name_of(row["method"], row["n_components"]) for row in front]
    return list(zip(corners, names, strict=True))


def _draw_whole(axes: Any, whole: dict[str, Any], key: str) -> None:
    """Draw the whole kernel: a star, or a line at its time where its error is 0."""
    if key == "error":
        axes.axvline(whole["seconds"], color="black", linewidth=1, linestyle=":")
        axes.annotate(
            "whole kernel: error 0", (whole["seconds"], 0.98), (-4, 0), rotation=90, size=8,
            xycoords=("data", "axes fraction"), textcoords="offset points", ha="right", va="top",
        )  # fmt: skip
    else:
        axes.plot(
            whole["seconds"], whole[key], marker="*", color="black", markersize=11, linestyle="",
            label="whole kernel",
        )  # fmt: skip


def _leave_out_far_above(axes: Any, rows: list[dict[str, Any]], key: str, worst: float) -> None:
    """End an axis where errors are far above the largest of the front, and say whose are."""
    errors = [row[key] for row in rows]
    if max(errors) <= FAR_ABOVE * worst:
        return
    top = 1.3 * max(error for error in errors if error <= FAR_ABOVE * worst)
    axes.set_ylim(top=top)
    shown = {row["method"] for row in rows if row[key] <= top}
    if above := sorted({row["method"] for row in rows} - shown):
        text = f"above: {', '.join(above)}"
        axes.text(
            0.99, 0.99, text, transform=axes.transAxes, ha="right", va="top", size=8, wrap=True
        )


def _name_corners(axes: Any, corners: list[tuple[Any, str]], renderer: Any) -> None:
    """Write names at corners, below the steps if possible, where no other stands."""
    taken: list[Any] = []
    places = (("right", "top", (-4, -4)), ("left", "bottom", (5, 4)), ("left", "top", (5, -4)))
    for corner, name in corners:
        text = axes.annotate(name, corner, (0, 0), textcoords="offset points", size=8)
        text.set_in_layout(False)
        for ha, va, offset in places:
            text.set(ha=ha, va=va, position=offset)
            box = text.get_window_extent(renderer)
            inside = all(axes.bbox.contains(*point) for point in (box.p0, box.p1))
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            text.remove()


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure; the ending of the path tells the format."""
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, format=path.suffix[1:])
