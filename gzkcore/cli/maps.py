"""Maps that the command line draws."""

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import zoom
from scipy.spatial import cKDTree

from gzkcore._util.typing import Doubles
from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import as_plain, counted, fitted_to
from gzkcore.evaluate.draw import (
    FAINT,
    NOTHING,
    SMALL,
    as_written,
    save_picture,
    styled,
    titled,
    wrapped,
)
from gzkcore.rows.degrees import LONGITUDE, NAMES
from gzkcore.sphere.globe import EARTH_KM, from_west, widest_gap
from gzkcore.tabular.columns.number import Number
from gzkcore.tabular.columns.place import on_sphere

from .cells import GLOBE, GridCells, Window

# Elevations in steps, from green at sea level to brown; the last go on.
UP_TO = (0, 100, 300, 600, 1000, 1500, 2200, 3200)
LAND = (
    "#7fae8b", "#a9c99a", "#d3dfae", "#ecdfae", "#d9b87c", "#b98d57", "#8f6239", "#4a2c14",
)  # fmt: skip
EARTH: Window = (-60.0, 84.0, -180.0, 180.0)  # with all inhabited land
PALE_HATCH = "#c6cfda"  # the hatches of `draw_elevation`, which cover most of its map
# A map leaves out a gap of longitudes without data if it is at least so many degrees wide.
GAP = 60.0
LONGER_SIDE = 360  # a map has so many cells along its longer side
# The resolution of coast lines on maps of at least so many degrees: crude, low, intermediate.
COASTS = {"c": 180.0, "l": 30.0, "i": 0.0}
# Standard deviations, which may take long, are computed for cells so many times as wide and high.
STD_STEP = 2
# The surface fades between these shares of what is known of the function at nearly all rows.
FADES = (0.4, 0.6)
NEARLY_ALL = 0.1  # more is known at all other rows; so many or fewer are looked at
SOME_ROWS = 1000
LEAST_KNOWN = 0.01  # few features may know nothing even there
HATCHED = 0.5  # a map is hatched where its opacity is lower
LONG_LABEL = 40  # a longer label beside the colours is shortened to so many letters
# Of more places than FEW_DOTS, one is drawn in each square, of SQUARES along the longer side.
FEW_DOTS, SQUARES = 2000, 120
# n dots have a size of DOTS / sqrt(n) points, between the least and the most.
DOTS, LEAST_DOT, MOST_DOT = 70.0, 1.8, 4.0
RIM = 0.4  # points
ROOMY = 8.0  # inches: on narrower maps dots are smaller
SPREAD = (0.02, 0.98)  # colours of standard deviations span those between these quantiles
LEAST_RANGE = 0.25  # and at least this share of the upper one
ONE_COLOR = 1e-9  # a smaller relative difference of values shows no colours
SKEWED = 0.2  # colours go by square roots if the median is below this share of the range
DEGREE_KM = EARTH_KM * math.pi / 180


@dataclass(frozen=True)
class Surface:
    """What a map shows."""

    predict: Callable[[Doubles], Doubles]  # latitude and longitude, (n, 2), to n values
    predict_std: Callable[[Doubles], Doubles] | None  # to standard deviations of new values
    # To the share of the function's variance that the rows take away; None: go by distance.
    known: Callable[[Doubles], Doubles] | None
    places: Doubles  # (n, 2): latitude and longitude of the data, the dots
    window: Window
    length_km: float  # the lengthscale
    ends: tuple[float, float] = (-math.inf, math.inf)  # of the data: colours span no more
    hatched: bool = True  # where rows are far; else predictions are shown everywhere

    @functools.cached_property
    def values(self) -> Doubles:
        """Predictions for the cells of the map."""
        return self.predict(_middles(_cells(self.window)))

    @functools.cached_property
    def std(self) -> Doubles | None:
        """Standard deviations of new values in the cells."""
        return None if self.predict_std is None else _smooth(self.predict_std, self.window)

    @functools.cached_property
    def opacity(self) -> tuple[Doubles, str]:
        """Opacities of the cells, 0 where rows are far, and in words what is hatched.

        Rows are far where less of the function is known than a share of what is known at nearly all
        of them, so that noise hatches nothing; and no cell is hatched that has a row. Without
        variances the surface fades between half a lengthscale and a whole one from the nearest row,
        or between one and two spacings of the rows if these are larger.
        """
        cells = _cells(self.window)
        middles = _middles(cells)
        if not self.hatched:
            return np.ones(len(middles)), ""
        away = _distance_km(self.places, middles)
        if self.known is not None:
            some = self.places[:: len(self.places) // SOME_ROWS + 1]
            usual = max(LEAST_KNOWN, np.quantile(self.known(some), NEARLY_ALL))
            low, high = np.multiply(FADES, usual)
            opacity = np.clip((_smooth(self.known, self.window) - low) / (high - low), 0, 1)
            opacity[away < DEGREE_KM * (cells.latitude[1] - cells.latitude[0])] = 1
            return opacity, "far from all training points"
        near = max(self.length_km / 2, _spacing_km(self.places))
        far = f"more than {as_plain((2 - HATCHED) * near, 2)} km from all training points"
        return np.clip(2 - away / near, 0, 1), far


@styled()
def map_of(surface: Surface, title: str, label: str) -> Any:
    """Return a figure of a surface over the globe or the region of the data, hatched where unknown.

    A second map shows the standard deviations, with the same hatches. The label, beside the
    colours, is a name, maybe with its unit, as in "height (m)".
    """
    from matplotlib.figure import Figure

    shape = _shape(surface.window)
    side_by_side = shape < 1.2
    tall = 6.0 if side_by_side else 4.9
    wide = max(5.6, (tall - 1) * shape + (2.2 if side_by_side else 2.6))
    n_maps = 1 if surface.predict_std is None else 2
    size = (wide * n_maps, tall) if side_by_side else (wide, tall * n_maps)
    figure = Figure(figsize=size, layout="constrained")
    grid = (1, n_maps) if side_by_side else (n_maps, 1)
    _draw_values(figure.add_subplot(*grid, 1), surface, title, label, wide)
    if surface.std is not None:
        _draw_deviations(figure.add_subplot(*grid, 2), surface, surface.std, label, wide)
    return figure


def maps_of(surface: Surface, title: str, label: str, inches: float) -> Iterator[Any]:
    """Yield the maps of `map_of` as figures of their own, so many inches wide."""
    window, std = surface.window, surface.std
    yield _fitted(inches, window, _draw_values, surface, title, label)
    if std is not None:
        yield _fitted(inches, window, _draw_deviations, surface, std, label)


def map_of_errors(places: Doubles, errors: Doubles, of_labels: bool, inches: float) -> Any:
    """Return a figure, so many inches wide, of errors at places; of labels, 1 is red."""
    return _fitted(inches, window_of(places), _draw_errors, places, errors, of_labels)


def _fitted(inches: float, window: Window, draw: Callable[..., None], *shown: Any) -> Any:
    """Return a figure of a map, so many inches wide, as high as it needs, but not higher than wide.

    A figure that is a little too low for the width cuts off what is beside the colours.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(inches, inches / _shape(window) + 2), layout="constrained")
    draw(figure.add_subplot(), *shown, inches)
    figure.draw_without_rendering()
    figure.set_figheight(min(inches, figure.get_tightbbox().height + 0.1))
    return figure


def _draw_values(axes: Any, surface: Surface, title: str, label: str, inches: float) -> None:
    """Draw the surface, and dots where the data are."""
    values, (opacity, far), places = surface.values, surface.opacity, surface.places
    shown = values[opacity >= HATCHED]
    norm, colors = _colors(shown if len(shown) else values, surface.ends)
    _draw_cells(axes, surface.window, values, opacity, norm, colors, label)
    drawn, share = _apart(places, surface.window), min(1.0, inches / ROOMY)
    axes.plot(  # seen on any colour: black, in a white rim
        from_west(drawn[:, 1], surface.window[2]), drawn[:, 0], "o", color="black", alpha=0.85,
        markersize=share * _dot(drawn), markeredgecolor="white", markeredgewidth=share * RIM,
    )  # fmt: skip
    titled(axes, title, inches=inches - 1.2)
    some = f"{len(drawn):,} of " if len(drawn) < len(places) else ""
    dots = f"dots: {some}{counted(len(places), 'training point')}"
    note = f"{dots}; hatched: {far}" if opacity.min() < HATCHED else dots
    axes.set_xlabel(wrapped(note, inches - 1.2, SMALL), loc="left")


def _draw_deviations(axes: Any, surface: Surface, std: Doubles, label: str, inches: float) -> None:
    """Draw standard deviations, in colours that span those of what is not hatched."""
    opacity, far = surface.opacity
    known = opacity >= HATCHED  # the others would take nearly all of the map for one colour
    norm, colors = _steps(std[known] if known.any() else std)
    _draw_cells(axes, surface.window, std, known.astype(np.float64), norm, colors, f"± {label}")
    titled(axes, "Standard deviation of a new value", inches=inches - 1.2)
    if not known.all():
        axes.set_xlabel(wrapped(f"hatched: {far}", inches - 1.2, SMALL), loc="left")


def _draw_errors(
    axes: Any, places: Doubles, errors: Doubles, of_labels: bool, inches: float
) -> None:
    """Draw errors at places, in colours that no few outliers determine."""
    from matplotlib.colors import Normalize

    window = window_of(places)
    most = 1.25 if of_labels else float(np.quantile(np.abs(errors), 1 - SPREAD[0])) or 1.0
    norm = Normalize(-most, most)
    dots = axes.scatter(
        from_west(places[:, 1], window[2]), places[:, 0], s=2 * _dot(places) ** 2, c=errors,
        norm=norm, cmap="RdBu_r", edgecolors=FAINT, linewidths=RIM, zorder=2,
    )  # fmt: skip
    _draw_ground(axes, window)
    label = "wrong predictions in red" if of_labels else "actual less predicted"
    if not of_labels:
        _draw_scale(axes, norm, dots.cmap, label)
    titled(axes, f"Errors of {counted(len(errors), 'held-out row')}: {label}", inches=inches - 1.2)


@styled()
def draw_elevation(path: Path, surface: Surface) -> None:
    """Draw the elevation of the land in metres, in steps, hatched where airports are far.

    The map is that of `gzkcore demo` and of the README.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    south, north, west, east = surface.window
    cells = _cells(surface.window)
    values, (opacity, _) = surface.values, surface.opacity
    # Beyond both edges there are cells too, and the first and last rows go on: no rim stays blank.
    longitude = np.pad(cells.longitude, 1, mode="reflect", reflect_type="odd")
    latitude = np.array([south, *cells.latitude[1:-1], north])
    values, opacity = (
        np.pad(column.reshape(cells.shape), ((0, 0), (1, 1)), mode="wrap")
        for column in (values, opacity)
    )
    with rc_context({"hatch.linewidth": 0.6, "hatch.color": PALE_HATCH}):
        figure = Figure(figsize=(11, 5.5))
        axes = figure.add_axes((0.01, 0.142, 0.98, 0.784), facecolor=LAND[0], xticks=[], yticks=[])
        # Each colour covers all that is higher, so that no seams show between neighbours.
        for low, color in zip(UP_TO[1:], LAND[1:], strict=True):
            if values.max() > low:
                axes.contourf(longitude, latitude, values, [low, math.inf], colors=[color])
        if opacity.min() < HATCHED:
            axes.contourf(
                longitude, latitude, opacity, [-1, HATCHED], colors=[NOTHING], hatches=["////"]
            )
        axes.set(xlim=(west, east), ylim=(south, north))
        axes.spines[:].set_visible(False)
        titled(axes, f"Elevation, predicted from {len(surface.places):,} airports", inches=10)
        _draw_steps(figure.add_axes((0.01, 0.0, 0.98, 0.12)), surface.hatched)
        save_picture(figure, path)


def _draw_steps(axes: Any, hatched: bool) -> None:
    """Draw the colours of elevations, and what is hatched, below the map."""
    from matplotlib.patches import Rectangle

    for number, (low, color) in enumerate(zip(UP_TO, LAND, strict=True)):
        axes.add_patch(Rectangle((number, 0), 1, 1, color=color, linewidth=0))
        if number:
            unit = " m" * (number == len(LAND) - 1)
            axes.text(number, -0.25, f"{low:,}{unit}", ha="center", va="top", size=11)
    if hatched:
        right = len(LAND) + 0.4
        axes.add_patch(
            Rectangle((right, 0), 0.6, 1, facecolor=NOTHING, edgecolor=PALE_HATCH, hatch="////")
        )
        axes.text(right + 0.75, 0.5, "too few airports nearby to tell", va="center", size=11)
    axes.set(xlim=(0, 13.3), ylim=(-1.4, 1.3))
    axes.axis("off")


def _cells(window: Window, share: int = 1) -> GridCells:
    """Return the cells of a window, `share` times as wide and high as those of a map."""
    south, north, west, east = window
    width, height = east - west, north - south
    step = max(width, height) / LONGER_SIDE * share
    latitude, longitude = (
        start + size * (np.arange(n) + 0.5) / n
        for start, size in ((south, height), (west, width))
        for n in [max(2, round(size / step))]
    )
    return GridCells(latitude, longitude)


def _middles(cells: GridCells) -> Doubles:
    places = cells.places
    places[:, 1] = from_west(places[:, 1])
    return places


def _smooth(std: Callable[[Doubles], Doubles], window: Window) -> Doubles:
    """Return standard deviations of the cells, interpolated between those of larger cells."""
    fine, coarse = _cells(window), _cells(window, STD_STEP)
    factor = [size / share for size, share in zip(fine.shape, coarse.shape, strict=True)]
    values = std(_middles(coarse)).reshape(coarse.shape)
    return np.asarray(zoom(values, factor, order=1, mode="nearest", grid_mode=True)).ravel()


def _steps(std: Doubles) -> tuple[Any, Any]:
    """Return norm and colours of standard deviations, in a few steps: some are only estimates."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm
    from matplotlib.ticker import MaxNLocator

    low, high = np.quantile(std, SPREAD)
    half = max(high - low, LEAST_RANGE * high) / 2
    middle = (low + high) / 2
    ticks = MaxNLocator(9, steps=[1, 2, 2.5, 5, 10])
    bounds = ticks.tick_values(max(middle - half, 0), middle + half)
    colors = colormaps["YlGnBu"]
    # The scale ends in an arrow where values go on.
    extends: Any = ("neither", "min", "max", "both")
    extend = extends[(std.min() < bounds[0]) + 2 * (std.max() > bounds[-1])]
    return BoundaryNorm(bounds, colors.N, extend=extend), colors


def _draw_cells(
    axes: Any, window: Window, values: Doubles, opacity: Doubles, norm: Any, colors: Any, label: str
) -> None:
    """Draw values of cells, hatched where their opacity is low."""
    cells, (south, north, west, east) = _cells(window), window
    rgba = colors(norm(values))
    rgba[:, 3] = opacity
    axes.set_facecolor(NOTHING)
    if opacity.min() < HATCHED:
        axes.contourf(
            cells.longitude, cells.latitude, opacity.reshape(cells.shape), [-1, HATCHED],
            colors="none", hatches=["////"],
        )  # fmt: skip
    axes.imshow(
        rgba.reshape(*cells.shape, 4),
        origin="lower", extent=(west, east, south, north), aspect="auto", interpolation="bilinear",
        zorder=1.5,
    )  # fmt: skip
    _draw_ground(axes, window)
    _draw_scale(axes, norm, colors, label)


def _flat(window: Window) -> float:
    """Return the length of a degree of latitude amid a map, in degrees of longitude."""
    return 1 / math.cos(math.radians(sum(window[:2]) / 2)) if window != GLOBE else 1.0


def _shape(window: Window) -> float:
    """Return how many times as wide as high a map is."""
    south, north, west, east = window
    return (east - west) / ((north - south) * _flat(window))


def _draw_ground(axes: Any, window: Window) -> None:
    south, north, west, east = window
    _draw_coasts(axes, window)
    axes.set(xlim=(west, east), ylim=(south, north), aspect=_flat(window), anchor="W")
    _name_degrees(axes.xaxis, "W", "E", 6 if axes.figure.get_figwidth() > ROOMY / 2 else 3)
    _name_degrees(axes.yaxis, "S", "N", 6)
    axes.grid(color="black", alpha=0.12, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _draw_scale(axes: Any, norm: Any, colors: Any, label: str) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import FuncFormatter

    bar = axes.inset_axes((1.015, 0, 0.02, 1))
    axes.figure.colorbar(
        ScalarMappable(norm, colors),
        cax=bar,
        extend=getattr(norm, "extend", "both"),
        label=as_written(fitted_to(label, LONG_LABEL)),
    ).ax.set_yscale("linear")
    if hasattr(norm, "boundaries"):
        bar.set_yticks(norm.boundaries[:: 1 + len(norm.boundaries) // 6])
    bar.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _apart(places: Doubles, window: Window) -> Doubles:
    """Return the places to draw: of many, one in each square, so that dots don't hide the map."""
    if len(places) <= FEW_DOTS:
        return places
    south, north, west, east = window
    square = max(east - west, north - south) / SQUARES
    columns = np.floor((from_west(places[:, 1], west) - west) / square)
    _, first = np.unique(
        np.column_stack([np.floor(places[:, 0] / square), columns]), axis=0, return_index=True
    )
    return places[np.sort(first)]


def _dot(places: Doubles) -> float:
    return min(MOST_DOT, max(LEAST_DOT, DOTS / math.sqrt(len(places))))


def _draw_coasts(axes: Any, window: Window) -> None:
    """Draw coast lines, if the package basemap is installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # basemap's, of its build
            from matplotlib.patheffects import withStroke
            from mpl_toolkits.basemap import Basemap
    except ImportError:
        return
    south, north, west, east = window
    wide = max(east - west, north - south)
    resolution = next(name for name, least in COASTS.items() if wide >= least)
    corners = {"llcrnrlat": south, "urcrnrlat": north, "llcrnrlon": west, "urcrnrlon": east}
    globe = Basemap(projection="cyl", resolution=resolution, fix_aspect=False, **corners)
    # A pale rim, since some colours are nearly black.
    rim = [withStroke(linewidth=1.5, foreground="white", alpha=0.5)]
    globe.drawcoastlines(ax=axes, color="black", linewidth=0.5).set_path_effects(rim)


def length_km(model: Any, places: Doubles) -> float:
    """Return the lengthscale of a model of latitude and longitude; 0 if it has none.

    If the model takes a region in degrees, it is the shorter of the two lengthscales, in the middle
    of the places, (n, 2).
    """
    if model.kernel_ is None:
        return 0.0
    lengths = 1 / np.ravel(model.kernel_.scale())
    if model.encoder_.on_sphere_:
        return EARTH_KM * float(lengths.mean())
    degrees = []  # that a unit of each encoded column is
    for column in model.encoder_.columns_:
        if isinstance(column, Number):
            unit = column.scale
            if column.name.strip().lower() in NAMES[LONGITUDE]:
                unit *= math.cos(math.radians(float(np.median(places[:, 0]))))
            if column.quantiles is not None:  # where most values lie: normal scores of -1 and 1
                unit *= np.diff(np.quantile(column.quantiles, [0.159, 0.841]))[0] / 2
            degrees.append(unit)
    return DEGREE_KM * float(np.min(lengths * np.array(degrees)))


def told_km(km: float) -> str:
    """Return a lengthscale in words: no two places are more than half the Earth's girth apart."""
    return f"{km:,.0f} km" if km <= math.pi * EARTH_KM else "longer than half around the Earth"


def surface_of(
    model: Any, rows_at: Callable[[Doubles], Any], places: Doubles, y: Doubles, *,
    window: Window | None = None, hatched: bool = True,
) -> Surface:  # fmt: skip
    """Return the surface of a model, with standard deviations if they cost little.

    `rows_at` turns latitude and longitude, (n, 2), into the rows that the model takes. The window
    is by default that of the places.
    """
    has_quick_std = getattr(model.model_, "_has_quick_std", None)  # of models with the whole kernel
    sure = has_quick_std is None or has_quick_std()

    def at_cells(predict: Callable[[Any], Any]) -> Callable[[Doubles], Doubles]:
        def at(cells: Doubles) -> Doubles:
            with collected_warnings():  # cells may be far from all places
                return np.asarray(predict(rows_at(cells)))

        return at

    return Surface(
        at_cells(model.predict),
        at_cells(lambda X: model.predict(X, return_std=True)[1]) if sure else None,
        at_cells(model._known) if sure else None,
        places, window or window_of(places), length_km(model, places),
        (float(y.min()), float(y.max())), hatched,
    )  # fmt: skip


def window_of(places: Doubles) -> Window:
    """Return south, north, west and east of a map of these places, with a margin."""
    start, end = widest_gap(places[:, 1])
    if end - start < GAP:
        return GLOBE
    west, width = from_west(end), 360 - (end - start)
    south, north = float(places[:, 0].min()), float(places[:, 0].max())
    # No side is shorter than a third of the other, or has no length.
    flat = math.cos(math.radians((south + north) / 2))
    size = max(width * flat, north - south, 0.01)
    add_x = 0.07 * size / flat + max(0.0, size / (3 * flat) - width) / 2
    add_y = 0.07 * size + max(0.0, size / 3 - (north - south)) / 2
    if width + 2 * add_x >= 360:
        return GLOBE
    return max(-90.0, south - add_y), min(90.0, north + add_y), west - add_x, west + width + add_x


def _distance_km(places: Doubles, others: Doubles) -> Doubles:
    """Return the distance of each of the others from the nearest place."""
    chord, _ = cKDTree(on_sphere(places)).query(on_sphere(others))
    return np.asarray(2 * EARTH_KM * np.arcsin(np.minimum(chord / 2, 1)))


def _spacing_km(places: Doubles) -> float:
    """Return the distance within which nine places in ten have a neighbour, 0 of one place."""
    points = np.unique(on_sphere(places), axis=0)
    if len(points) == 1:
        return 0.0
    chord, _ = cKDTree(points).query(points, k=2)
    return EARTH_KM * float(np.quantile(chord[:, 1], 0.9))


def _colors(values: Doubles, ends: tuple[float, float] = (-math.inf, math.inf)) -> tuple[Any, Any]:
    """Return norm and colours: centred on 0 if values are on both sides, by roots if skewed.

    Colours span no more than the ends of the data: where a surface knows little, it goes far beyond
    them, and below 0 though the data never do.
    """
    from matplotlib import colormaps
    from matplotlib.colors import Normalize, PowerNorm

    # Outliers leave the other values their colours.
    low, high = np.quantile(values, [0.005, 0.995])
    if low < ends[1] and high > ends[0]:
        low, high = max(low, ends[0]), min(high, ends[1])
    if high - low <= ONE_COLOR * max(abs(low), abs(high)):  # one value has the middle colour
        low, high = low - max(abs(low), 1) / 20, high + max(abs(high), 1) / 20
    most = max(-low, high)
    if min(-low, high) > most / 2:
        return Normalize(-most, most), colormaps["RdBu_r"]
    if np.median(values) < low + SKEWED * (high - low):  # half the values in a fifth of the colours
        return PowerNorm(0.5, low, high), colormaps["viridis"]
    return Normalize(low, high), colormaps["viridis"]


def _name_degrees(axis: Any, below: str, above: str, most: int) -> None:
    """Write degrees with the side that they are on, as 30°W, in so many steps or fewer."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def name(value: float, _: object) -> str:
        value = round(from_west(value) if below == "W" else value, 6)
        side = "" if value in (0, -180) else below if value < 0 else above
        return f"{abs(value):g}°{side}"

    axis.set_major_locator(MaxNLocator(most, steps=[1, 1.5, 2, 3, 5, 6, 10]))
    axis.set_major_formatter(FuncFormatter(name))


def _tick(value: float) -> str:
    """Return a number beside colours, without the rounding error of a sum of steps."""
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")
