"""The pictures that the command line draws; matplotlib is imported only here."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from ._tables import Floats, replacing
from .datasets import LatLonToSphere

ENDINGS = (".png", ".pdf", ".svg")

# Blue below zero; above it green, brown and at last white, as on a physical map.
TERRAIN = (
    (0.0, "#08306b"), (0.25, "#3f8fc5"), (0.5, "#eff6f1"),
    (0.53, "#cfe0ad"), (0.6, "#8fae62"), (0.72, "#b8935a"), (0.88, "#74472a"), (1.0, "#f7f3ee"),
)  # fmt: skip
EARTH_KM = 6371.0
NEAR_KM, FAR_KM = 200, 400


def draw_map(
    path: Path, predict: Callable[[Floats], Floats], places: Floats, title: str, label: str
) -> None:
    """Draw a fitted surface over the globe, fading out far from all data.

    Parameters
    ----------
    path : Path
        The picture, of one of the kinds in `ENDINGS`.
    predict : callable
        Latitude and longitude in degrees, (n, 2), to the n values of the surface.
    places : ndarray of shape (n, 2)
        Latitude and longitude of the data: the dots.
    title, label : str
        Above the map, and beside its colours.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, TwoSlopeNorm
    from matplotlib.figure import Figure

    latitude, longitude = np.arange(-89.5, 90), np.arange(-179.5, 180)
    grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
    surface = predict(grid)
    sphere = LatLonToSphere()
    chord, _ = cKDTree(sphere.transform(places)).query(sphere.transform(grid))
    opacity = np.clip((FAR_KM - chord * EARTH_KM) / (FAR_KM - NEAR_KM), 0, 1)

    low, high = np.quantile(predict(places), [0.0005, 0.9995])
    norm: Normalize
    colors: Colormap
    if low < 0 < high:
        norm = TwoSlopeNorm(0, min(low, -high / 5), high)
        colors = LinearSegmentedColormap.from_list("terrain", TERRAIN)
    else:
        norm, colors = Normalize(low, high), colormaps["viridis"]
    rgba = colors(norm(surface))
    rgba[:, 3] = opacity

    figure = Figure(figsize=(11, 5.6), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(
        rgba.reshape(len(latitude), len(longitude), 4),
        origin="lower", extent=(-180, 180, -90, 90), interpolation="bilinear",
    )  # fmt: skip
    axes.set_facecolor("#ececef")
    axes.plot(*places.T[::-1], ",", color="black", alpha=0.4)
    axes.set_xticks(range(-180, 181, 60), ["180°", "120°W", "60°W", "0°", "60°E", "120°E", "180°"])
    axes.set_yticks(range(-90, 91, 30), ["90°S", "60°S", "30°S", "0°", "30°N", "60°N", "90°N"])
    axes.grid(color="black", alpha=0.15, linewidth=0.5)
    axes.set_title(title, loc="left", fontsize=13)
    axes.set_xlabel(
        f"dots: {len(places):,} points of the fit; the colours fade from {NEAR_KM} to {FAR_KM} km "
        "away from all of them",
        loc="left",
    )
    bar = axes.inset_axes((1.015, 0, 0.02, 1))
    figure.colorbar(
        ScalarMappable(norm, colors), cax=bar, extend="both", label=label
    ).ax.set_yscale("linear")
    _save(figure, path)


def draw_agreement(path: Path, pairs: Floats, title: str, label: str) -> None:
    """Draw (n, 2) actual and predicted values, and the line where they agree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6), layout="constrained")
    axes = figure.add_subplot()
    both = np.quantile(pairs, [0.001, 0.999])
    margin = 0.03 * (both[1] - both[0])
    limits = both[0] - margin, both[1] + margin
    bins = axes.hexbin(
        *pairs.T,
        gridsize=60,
        extent=(*limits, *limits),
        mincnt=1,
        bins="log",
        cmap="viridis",
    )
    axes.axline((both[0], both[0]), slope=1, color="black", linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xlabel=label, ylabel=f"predicted {label}")
    axes.set_title(title, loc="left")
    figure.colorbar(bins, ax=axes, shrink=0.8, label="rows")
    _save(figure, path)


def draw_plan(path: Path, table: list[dict[str, Any]], target: float, title: str) -> None:
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
    axes.axhline(target, color="black", linewidth=1, linestyle="--")
    axes.annotate("target", (1, target), (-4, 3), xycoords=("axes fraction", "data"),
                  textcoords="offset points", ha="right", size=9)  # fmt: skip
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("seconds to make the features of all rows")
    axes.set_ylabel("relative error of the kernel matrix")
    axes.margins(0.08, 0.12)
    axes.set_title(title, loc="left")
    axes.legend(frameon=False)
    _save(figure, path)


def draw_comparison(
    path: Path, rows: list[dict[str, Any]], n_fitted: int, predicts: bool, title: str
) -> None:
    """Draw error against time, one line a method, and the methods that none beats by name.

    A family, the first word of its methods' names, has one colour. With predictions, a second
    picture beside it has their error.
    """
    if not rows:
        raise ValueError(f"{path}: nothing was measured, so there is nothing to draw")
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {"error": "relative error of the kernel matrix"}
    panels |= {"rmse": "root mean square error of predictions"} if predicts else {}
    figure = Figure(figsize=(3 + 5.5 * len(panels), 6.4), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    methods = sorted({row["method"] for row in rows})
    families = list(dict.fromkeys(method.split("-")[0] for method in methods))
    colors = colormaps["tab20"].colors[::2] + colormaps["tab20"].colors[1::2]  # type: ignore[attr-defined]
    fronts: list[list[tuple[Any, str]]] = []
    for number, (key, label) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), number + 1)
        for method in methods:
            family = method.split("-")[0]
            alike = [other for other in methods if other.split("-")[0] == family]
            axes.plot(
                *_points(rows, method, key)[:2], label=method, linewidth=0.8, alpha=0.85,
                color=colors[families.index(family) % len(colors)],
                marker="osD^vP*X"[alike.index(method) % 8], markersize=5,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log")
        axes.margins(0.12, 0.1)
        fronts.append(_draw_front(axes, rows, key))
        axes.set_xlabel(f"seconds to fit and transform {n_fitted:,} rows")
        axes.set_ylabel(label)
    figure.suptitle(title, x=0.01, ha="left", size=11)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    figure.draw_without_rendering()  # the places of labels depend on the layout
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    for axes, corners in zip(figure.axes, fronts, strict=True):
        _name_corners(axes, corners, renderer)
    _save(figure, path)


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
        zorder=1, label="none is better",
    )  # fmt: skip
    names = [f"{row['method']}, {row['n_components']:,}" for row in front]
    return list(zip(corners, names, strict=True))


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


def _save(figure: Any, path: Path) -> None:
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, format=path.suffix[1:])
