"""Maps that the command line draws."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from gzkcore._util.typing import Doubles
from gzkcore._util.wording import counted
from gzkcore.datasets.globe import EARTH_KM, LatLonToSphere
from gzkcore.evaluate.draw import save_picture

ENDINGS = (".png", ".pdf", ".svg")
WHOLE = (-90.0, 90.0, -180.0, 180.0)  # south, north, west and east of the globe
NOTHING = "#d8d9dd"  # where nothing is known

# Blue below zero; above it green, brown and at last white, as on a physical map.
TERRAIN = (
    (0.0, "#08306b"), (0.25, "#3f8fc5"), (0.5, "#eff6f1"),
    (0.53, "#cfe0ad"), (0.6, "#8fae62"), (0.72, "#b8935a"), (0.88, "#74472a"), (1.0, "#f7f3ee"),
)  # fmt: skip
# Longitudes without data for so many degrees, and the map shows only the others.
GAP = 60.0
LONGER_SIDE = 360  # cells of a map
DEGREE_KM = EARTH_KM * math.pi / 180


def draw_map(
    path: Path,
    predict: Callable[[Doubles], Doubles],
    places: Doubles,
    title: str,
    label: str,
    length_km: float,
    *,
    terrain: bool = False,
) -> None:
    """Draw a fitted surface over the globe, or the part with data, fading out far from all of them.

    It fades from half a lengthscale to a whole one, beyond which the fit knows little, or from one
    to two spacings of the data where these are larger.

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
    length_km : float
        The lengthscale.
    terrain : bool, default=False
        Whether the values are elevations, in the colours of a physical map.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    south, north, west, east = window = _window(places)
    width, height = east - west, north - south
    step = max(width, height) / LONGER_SIDE
    latitude, longitude = (
        start + size * (np.arange(n) + 0.5) / n
        for start, size in ((south, height), (west, width))
        for n in [max(2, round(size / step))]
    )
    grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
    grid[:, 1] = (grid[:, 1] + 180) % 360 - 180
    near = max(length_km / 2, _spacing_km(places))
    opacity = np.clip(2 - _distance_km(places, grid) / near, 0, 1)
    norm, colors = _colors(predict(places), terrain)
    rgba = colors(norm(predict(grid)))
    rgba[:, 3] = opacity

    flat = 1 / math.cos(math.radians((south + north) / 2)) if window != WHOLE else 1.0
    shape = width / (height * flat)
    tall = 5.6 if window == WHOLE else min(6.6, 9 / shape + 1)
    figure = Figure(figsize=(max(6.4, (tall - 1) * shape + 1.8), tall), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(
        rgba.reshape(len(latitude), len(longitude), 4),
        origin="lower", extent=(west, east, south, north), aspect=flat, interpolation="bilinear",
    )  # fmt: skip
    axes.set_facecolor(NOTHING)
    axes.plot(
        west + (places[:, 1] - west) % 360, places[:, 0], ".", color="black", alpha=0.5,
        markersize=min(4, max(0.7, 80 / math.sqrt(len(places)))), markeredgewidth=0,
    )  # fmt: skip
    axes.set(xlim=(west, east), ylim=(south, north))
    _name_degrees(axes.xaxis, "W", "E")
    _name_degrees(axes.yaxis, "S", "N")
    axes.grid(color="black", alpha=0.15, linewidth=0.5)
    axes.set_title(title, loc="left", fontsize=13)
    fade = (
        f"\ncolours fade {_rounded(near)} to {_rounded(2 * near)} km"
        + ("\n" if shape < 1 else " ")
        + "from the nearest point; grey: no data"
    )
    axes.set_xlabel(
        f"dots: {counted(len(places), 'training point')}" + fade * bool(opacity.min() < 1),
        loc="left",
    )
    bar = axes.inset_axes((1.015, 0, 0.02, 1))
    figure.colorbar(
        ScalarMappable(norm, colors), cax=bar, extend="both", label=label
    ).ax.set_yscale("linear")
    save_picture(figure, path)


def length_km(model: Any) -> float:
    """Return the lengthscale of a model of latitude and longitude, 0 of one that has none."""
    if model.kernel_ is None:
        return 0.0
    lengths = np.ravel(model.kernel_.length_scale)
    if model.encoder_.on_sphere_:
        return EARTH_KM * float(lengths.mean())
    scales = [column["scale"] for column in model.encoder_.columns_ if "scale" in column]
    return DEGREE_KM * float(np.min(lengths * np.array(scales)))


def _window(places: Doubles) -> tuple[float, float, float, float]:
    """Return south, north, west and east of a map of these places, with a margin."""
    around = np.unique(places[:, 1] % 360)
    gaps = np.diff(around, append=around[0] + 360)
    widest = int(gaps.argmax())
    if gaps[widest] < GAP:
        return WHOLE
    west, width = float(around[(widest + 1) % len(around)]), 360 - float(gaps[widest])
    west = (west + 180) % 360 - 180
    south, north = float(places[:, 0].min()), float(places[:, 0].max())
    # No side is much shorter than the other, and none is nothing.
    flat = math.cos(math.radians((south + north) / 2))
    size = max(width * flat, north - south, 0.01)
    add_x = 0.07 * size / flat + max(0.0, size / (3 * flat) - width) / 2
    add_y = 0.07 * size + max(0.0, size / 3 - (north - south)) / 2
    if width + 2 * add_x >= 360:
        return WHOLE
    return max(-90.0, south - add_y), min(90.0, north + add_y), west - add_x, west + width + add_x


def _distance_km(places: Doubles, others: Doubles) -> Doubles:
    """Return how far each of the others is from the nearest place."""
    sphere = LatLonToSphere()
    chord, _ = cKDTree(sphere.transform(places)).query(sphere.transform(others))
    return np.asarray(2 * EARTH_KM * np.arcsin(np.minimum(chord / 2, 1)))


def _spacing_km(places: Doubles) -> float:
    """Return the distance within which nine places in ten have a neighbour, 0 of one place."""
    points = np.unique(LatLonToSphere().transform(places), axis=0)
    if len(points) == 1:
        return 0.0
    chord, _ = cKDTree(points).query(points, k=2)
    return EARTH_KM * float(np.quantile(chord[:, 1], 0.9))


def _colors(values: Doubles, terrain: bool) -> tuple[Any, Any]:
    """Return norm and colours for values: two-sided if they are on both sides of 0."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm

    low, high = np.quantile(values, [0.0005, 0.9995])
    if terrain:
        colors = LinearSegmentedColormap.from_list("terrain", TERRAIN)
        return TwoSlopeNorm(0, min(low, -high / 5), max(high, 1)), colors
    most = max(-low, high)
    if min(-low, high) > most / 4:
        return Normalize(-most, most), colormaps["RdBu_r"]
    return Normalize(low, high), colormaps["viridis"]


def _name_degrees(axis: Any, below: str, above: str) -> None:
    """Write degrees with the side that they are on, as 30°W."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    def name(value: float, _: object) -> str:
        value = round((value + 180) % 360 - 180, 6) if below == "W" else round(value, 6)
        side = "" if value in (0, -180) else below if value < 0 else above
        return f"{abs(value):g}°{side}"

    axis.set_major_locator(MaxNLocator(6, steps=[1, 1.5, 2, 3, 5, 6, 10]))
    axis.set_major_formatter(FuncFormatter(name))


def _rounded(km: float) -> str:
    """Return kilometres with two digits."""
    return f"{float(f'{km:.2g}'):,g}"
