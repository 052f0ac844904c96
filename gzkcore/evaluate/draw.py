"""The pictures of plans and comparisons, and the style of all pictures of the package.

Matplotlib is imported only for drawing.
"""

import contextlib
import io
import itertools
import math
import re
import statistics
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gzkcore._util.files import replacing
from gzkcore._util.wording import as_plain, counted, printable

Named: TypeAlias = tuple[tuple[float, float], str]  # a point of a picture, and its name

INK, FAINT, PAPER = "#24303c", "#8b95a1", "#ffffff"
# Areas where nothing is known have these colours, which no scale has.
NOTHING, HATCH = "#eef1f5", "#b4bdc9"
# The colours of Okabe and Ito, which the colour-blind can tell apart too.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a4c93", "#24303c")
MARKERS = "osD^vP*X"
LETTER, SMALL = 7.1, 5.9  # letters of titles, and of labels, are at most so many points wide

STYLE: dict[str, Any] = {
    "axes.edgecolor": FAINT,
    "axes.formatter.min_exponent": 4,  # 0.3 and 200 on axes of logarithms
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 9,
    "axes.titlesize": 12,
    "date.converter": "concise",
    "figure.facecolor": PAPER,
    "font.size": 10,
    "hatch.color": HATCH,
    "hatch.linewidth": 1.0,
    "image.cmap": "viridis",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}

# A comparison leaves out errors of more than this many times the largest of the front.
FAR_ABOVE = 2.0
# A plan draws errors that are this many times smaller than asked for at its lower end.
FAR_BELOW = 1000.0
HOLLOW = 11.0, 5.0  # sizes of the first and last markers of a plan, in points
MOST_ABOVE = 6  # of the methods above a picture, so many are named
BESIDE_LETTERS = 40  # there is room for so many letters of numbers below an axis
FROM_COMMAS = 10_000  # smaller numbers at axes have no commas: 2024 may be a year
MOST_NAMED = 5  # so many methods of a comparison have names and colours
HANDLE, LEGEND_LETTER = 48, 5.4  # widths in a legend, of a line and of a letter, in points
GREY = "#c3cad3"  # the colour of methods without a name
ALIKE = 1.25  # an axis of errors of predictions reaches so many times below and above the least
# Where a name may stand: horizontal and vertical alignment, offset in points.
PLACES = (
    ("right", "top", (-6, -5)), ("left", "bottom", (6, 5)), ("center", "bottom", (0, 8)),
    ("center", "top", (0, -8)), ("left", "top", (6, -5)), ("right", "bottom", (-6, 5)),
    ("left", "center", (9, 0)), ("right", "center", (-9, 0)),
)  # fmt: skip


# ---- style


def name_of(method: str, width: int | None) -> str:
    """Return a method with its width, where it has one."""
    return "whole kernel" if width is None else f"{method}, {width:,}"


def as_written(text: str) -> str:
    """Escape dollars, between which Matplotlib reads formulas, and what can't be printed."""
    return "\n".join(map(printable, text.split("\n"))).replace("$", r"\$")


def wrapped(text: str, inches: float, letter: float = LETTER) -> str:
    """Wrap the lines of a text that are wider than so many inches."""
    length = int(inches * 72 / letter)
    return "\n".join("\n".join(textwrap.wrap(line, length)) for line in text.split("\n"))


def titled(axes: Any, *lines: str, inches: float) -> None:
    """Write lines above axes, none wider than so many inches."""
    letter = LETTER * axes.title.get_size() / STYLE["axes.titlesize"]
    axes.set_title(as_written(wrapped("\n".join(lines), inches, letter)))


@contextlib.contextmanager
def styled(**changes: float) -> Iterator[None]:
    """Draw in this style, and leave the user's own alone; a decorator too.

    Changes are of sizes of text, by their names without dots: `axes_titlesize=10`.
    """
    from cycler import cycler
    from matplotlib import rc_context

    sizes = {name.replace("_", "."): size for name, size in changes.items()}
    style: Any = {**STYLE, "axes.prop_cycle": cycler(color=COLORS), **sizes}
    with rc_context(style):
        yield


# ---- plans and comparisons


@styled()
def figure_of_plan(
    table: list[dict[str, Any]],
    max_error: float,
    title: str,
    recommended: tuple[str, int] | None = None,
) -> Any:
    """Return a figure of error against the number of features, one line a method.

    Markers are hollow and get smaller from method to method, so that all are seen where errors are
    the same. The marker of the recommended method and width is filled, and in the legend. Errors
    far below `max_error` are drawn at the lower end.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure = Figure(figsize=(7.6, 5.6), layout="constrained")
    axes = figure.add_subplot()
    methods = list(dict.fromkeys(row["method"] for row in table))
    least = min(row["error"] for row in table)
    widths = sorted({row["n_components"] for row in table})
    floor = 10.0 ** math.floor(math.log10(max_error / FAR_BELOW))
    sizes = np.linspace(*HOLLOW, max(len(methods), 2))
    for number, (method, marker, color, size) in enumerate(
        zip(methods, itertools.cycle(MARKERS), itertools.cycle(COLORS), sizes, strict=False)
    ):
        _, errors, tried = _points(table, method, "error")
        axes.plot(
            tried, [max(error, floor) for error in errors], marker=marker, markersize=size,
            markerfacecolor="none", markeredgewidth=1.4, color=color, label=method,
            clip_on=False, zorder=3, linestyle="-" if number < len(COLORS) else "--",
        )  # fmt: skip
    if recommended is not None:
        line = axes.lines[methods.index(recommended[0])]
        [row] = [row for row in table if (row["method"], row["n_components"]) == recommended]
        axes.plot(
            recommended[1], max(row["error"], floor), marker=line.get_marker(), linestyle="",
            color=line.get_color(), label="recommended", markersize=HOLLOW[0], clip_on=False,
            zorder=4,
        )  # fmt: skip
    axes.axhline(max_error, color=INK, linewidth=1, linestyle="--")
    axes.annotate(  # beside the picture, where no line runs through it
        f"asked for:\n{max_error:g}", (1, max_error), (6, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", va="center", size=9,
    )  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("number of features")
    axes.set_ylabel("relative error of the kernel matrix")
    axes.margins(0.08, 0.12)
    if least < floor:
        axes.set_ylim(bottom=floor)
    plain_ticks(axes.yaxis)
    at_least = 1.001 * floor if least < floor else 0
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: ("≤ " if value <= at_least else "") + f"{value:,g}")
    )
    axes.xaxis.set_major_locator(FixedLocator(widths))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    titled(axes, "How many features each method needs", title, inches=5.8)
    _legend(figure, axes, 3)
    return figure


@styled()
def figure_of_comparison(
    rows: list[dict[str, Any]], n_fitted: int, predicts: bool, title: str
) -> Any:
    """Return a figure of error against time: `MOST_NAMED` methods in colours, others grey dots.

    Methods on the fronts are named first, from the most accurate on, then those with the least
    error. With predictions, a second picture beside it shows their error, with 95 % intervals of
    named methods. The whole kernel, whose error of the kernel is 0, is a line at its time in the
    first picture, where the front ends.
    """
    features = [row for row in rows if row["n_components"] is not None]
    if not features:
        raise ValueError("there is nothing to draw, since no features were measured")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {"error": "relative error of the kernel matrix"}
    if predicts:
        panels["rmse"] = "root mean square error of predictions"
        panels["rmse"] += ", 95 % intervals" * (rows[0]["rmse_low"] is not None)
    wide = 1.4 + 5.6 * len(panels)
    figure = Figure(figsize=(wide, 6.2), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    named = _named_methods(rows, list(panels))
    corners: list[list[Named]] = []
    for number, (key, label) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), number + 1)
        _draw_methods(axes, features, key, named)
        axes.set(xscale="log", yscale="log")
        axes.margins(0.12, 0.1)
        shown = features if key == "error" else rows
        for whole in rows[len(features) :]:
            _draw_whole(axes, whole, key)
        if key == "rmse":
            least, (low, high) = min(row[key] for row in rows), axes.get_ylim()
            axes.set_ylim(min(low, least / ALIKE), max(high, least * ALIKE))
        corners.append(_draw_front(axes, rows, key, named))
        worst = max(row[key] for row in _front(rows, key))
        _leave_out_far_above(axes, shown, key, worst)
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        axes.set_xlabel(f"seconds to fit and transform {n_fitted:,} rows")
        axes.set_ylabel(label)
    title = as_written(wrapped(f"Error against time of every method\n{title}", wide - 0.2))
    figure.suptitle(title, x=0.01, ha="left", size=12)
    _legend(figure, figure.axes[-1], 4)
    figure.draw_without_rendering()  # the places of labels depend on the layout
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    for axes, points in zip(figure.axes, corners, strict=True):
        _name(axes, points, renderer)
    return figure


def _legend(figure: Any, axes: Any, most: int) -> None:
    """Write the names of lines below a figure, in as many columns as it has room for, or fewer."""
    handles, labels = axes.get_legend_handles_labels()
    column = HANDLE + LEGEND_LETTER * max(map(len, labels))
    columns = max(1, min(most, int(72 * figure.get_figwidth() / column)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9)


def _named_methods(rows: list[dict[str, Any]], keys: list[str]) -> list[str]:
    """Return the methods to name: those of the fronts in turn, then those of least error."""
    ends = [reversed(_front(rows, key)) for key in reversed(keys)]
    fronts = [row for both in itertools.zip_longest(*ends) for row in both if row is not None]
    others = sorted(rows, key=lambda row: row[keys[-1]])  # predictions come before the kernel
    features = (row for row in fronts + others if row["n_components"] is not None)
    return list(dict.fromkeys(row["method"] for row in features))[:MOST_NAMED]


def _draw_methods(axes: Any, rows: list[dict[str, Any]], key: str, named: list[str]) -> None:
    """Draw a line for each method that has a name, and grey dots of the others."""
    others = sorted({row["method"] for row in rows} - {*named})
    for number, method in enumerate(others):
        axes.plot(
            *_points(rows, method, key)[:2], color=GREY, linestyle="", marker="o", markersize=4,
            zorder=1.2, label=None if number else f"{counted(len(others), 'other method')}",
        )  # fmt: skip
    for method, color, marker in zip(named, COLORS, MARKERS, strict=False):
        axes.plot(
            *_points(rows, method, key)[:2], color=color, marker=marker, markersize=6, label=method
        )
        _draw_intervals(axes, [row for row in rows if row["method"] == method], key, color)


def plain_ticks(axis: Any, whole: bool = False) -> None:
    """Write some plain numbers at a logarithmic axis, even if it is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    digits = (1, 2, 5) if decades < 2.5 else (1, 3) if decades < 4 else (1,)
    if decades < 0.9:
        digits = (1, *(() if whole else (1.5,)), 2, 3, 4, 5, 6, 7, 8, 9)
    axis.set_major_locator(LogLocator(subs=digits, numticks=30))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def plain_numbers(axis: Any) -> None:
    """Write a few numbers at an axis, as 40,000, but years without a comma."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    large = max(map(abs, axis.get_view_interval())) >= FROM_COMMAS

    def written(value: float, _: Any) -> str:
        return (as_plain(value, 10) if large else f"{value:.10g}").replace("-", "\N{MINUS SIGN}")

    longest = max(len(written(value, None)) for value in axis.get_view_interval())
    # Side by side, long numbers take each other's place.
    most = max(2, min(6, BESIDE_LETTERS // longest)) if axis.axis_name == "x" and large else 6
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(written))


def _points(rows: list[dict[str, Any]], method: str, key: str) -> tuple[list[float], ...]:
    of_method = [row for row in rows if row["method"] == method]
    errors = [max(row[key], 1e-16) for row in of_method]
    return [r["seconds"] for r in of_method], errors, [r["n_components"] for r in of_method]


def _front(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return the rows than which none is both quicker and more accurate, the quickest first."""
    front: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row["seconds"], row[key])):
        if not front or row[key] < front[-1][key]:
            front.append(row)
    return front


def _draw_front(axes: Any, rows: list[dict[str, Any]], key: str, named: list[str]) -> list[Named]:
    """Draw the Pareto front as steps; return its corners that have names.

    If the error of the whole kernel is 0, the front ends there, at the foot of the picture.
    """
    front = _front(rows, key)
    steps = [(row["seconds"], row[key]) for row in front]
    foot, top = axes.get_ylim()
    ends_below = steps[-1][1] == 0
    if ends_below:
        steps = [(steps[0][0], top), *steps[:-1], (steps[-1][0], foot)]
    else:
        steps.append((max(row["seconds"] for row in rows), steps[-1][1]))
    axes.step(
        *zip(*steps, strict=True), where="post", color=INK, linewidth=3, alpha=0.25,
        zorder=1, label="Pareto front", scalex=False, scaley=False,
    )  # fmt: skip
    return [
        ((row["seconds"], row[key]), name_of(row["method"], row["n_components"]))
        for row in front
        if row["method"] in named and row[key] > 0
    ]


def _draw_whole(axes: Any, whole: dict[str, Any], key: str) -> None:
    """Draw the whole kernel: a star, or in the picture of its error, 0, a line at its time."""
    if key == "error":
        axes.axvline(whole["seconds"], color="black", linewidth=1, linestyle=":")
        axes.annotate(
            "whole kernel: error 0", (whole["seconds"], 0.94), (-4, 0), rotation=90, size=8,
            xycoords=("data", "axes fraction"), textcoords="offset points", ha="right", va="top",
        )  # fmt: skip
    else:
        axes.plot(
            whole["seconds"], whole[key], marker="*", color="black", markersize=11, linestyle="",
            label="whole kernel",
        )  # fmt: skip
        _draw_intervals(axes, [whole], key, "black")


def _draw_intervals(axes: Any, rows: list[dict[str, Any]], key: str, color: str) -> None:
    """Draw the 95 % intervals of errors of predictions, down to a fifth of the error."""
    for row in rows:
        if key == "rmse" and row["rmse_low"] is not None:
            ends = max(row["rmse_low"], row[key] / 5), row["rmse_high"]
            axes.vlines(row["seconds"], *ends, color=color, linewidth=1, alpha=0.6, zorder=1.1)


def _leave_out_far_above(axes: Any, rows: list[dict[str, Any]], key: str, worst: float) -> None:
    """End an axis below errors far above those of the front and the median, and name these."""
    errors = [row[key] for row in rows]
    worst = max(worst, statistics.median(errors))
    if max(errors) <= FAR_ABOVE * worst:
        return
    top = 1.3 * max(error for error in errors if error <= FAR_ABOVE * worst)
    axes.set_ylim(top=top)
    shown = {row["method"] for row in rows if row[key] <= top}
    if above := sorted({row["method"] for row in rows} - shown):
        more = len(above) - MOST_ABOVE
        text = f"above: {', '.join(above[:MOST_ABOVE])}" + (f" and {more} more" if more > 0 else "")
        axes.text(
            0.99, 0.99, text, transform=axes.transAxes, ha="right", va="top", size=8, wrap=True
        ).set_in_layout(False)


def _name(axes: Any, points: list[Named], renderer: Any) -> None:
    """Write names beside points, where they overlap nothing; below and left if possible."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=PAPER)]
    taken = [_around(axes.transData.transform(place)) for place, _ in points]
    taken += [text.get_window_extent(renderer) for text in axes.texts]
    for line in axes.lines:
        if line.get_color() != GREY and line.get_marker() not in ("", "None", None):
            taken += map(_around, axes.transData.transform(line.get_xydata()))
    for place, name in points:
        text = axes.annotate(
            name, place, (0, 0), textcoords="offset points", size=8, color=INK, path_effects=halo
        )  # fmt: skip
        text.set_in_layout(False)
        for ha, va, offset in PLACES:
            text.set(ha=ha, va=va, position=offset)
            box = text.get_window_extent(renderer)
            inside = all(axes.bbox.contains(*corner) for corner in (box.p0, box.p1))
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
        else:
            text.remove()


def _around(place: Any) -> Any:
    from matplotlib.transforms import Bbox

    return Bbox([place - 5, place + 5])


def as_svg(figure: Any) -> str:
    """Return a figure as SVG for a page, with the page's ink on transparent paper.

    Text stays text. The page sets the colour `--line`, and how lines are joined.
    """
    from matplotlib import rc_context

    content = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(content, format="svg", transparent=True, metadata=nothing)
    svg = content.getvalue()
    svg = svg[svg.index("<svg") :].replace("xlink:href", "href")
    svg = re.sub(r"<!--.*?-->|<style.*?</style>|<metadata.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(
        r"<svg .*?(viewBox=\S+ \S+ \S+ \S+) .*?>", r"<svg \1>", svg, count=1, flags=re.DOTALL
    )
    svg = re.sub('<g id="[^"]*"', "<g", svg)
    return svg.replace(INK, "currentColor").replace(COLORS[0], "var(--line)")


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure in the format of the path's ending."""
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, format=path.suffix[1:])
