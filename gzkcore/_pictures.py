"""The pictures that the command line draws; matplotlib is imported only here."""

from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from ._tables import replacing
from .datasets import LatLonToSphere

ENDINGS = (".png", ".pdf", ".svg")

# Blue below zero; above it green, brown and at last white, as on a physical map.
TERRAIN = (
    (0.0, "#08306b"), (0.25, "#3f8fc5"), (0.5, "#eff6f1"),
    (0.54, "#cfe0ad"), (0.64, "#8fae62"), (0.76, "#b8935a"), (0.9, "#74472a"), (1.0, "#f7f3ee"),
)  # fmt: skip
EARTH_KM = 6371.0
FAR_KM = 500.0


def draw_map(path, predict, places, title, label):
    """Draw a fitted surface over the globe, and nothing where it lies far from all data.

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
    from matplotlib.colors import LinearSegmentedColormap, Normalize, TwoSlopeNorm
    from matplotlib.figure import Figure

    latitude, longitude = np.arange(-89.5, 90), np.arange(-179.5, 180)
    grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
    surface = predict(grid)
    sphere = LatLonToSphere()
    chord, _ = cKDTree(sphere.transform(places)).query(sphere.transform(grid))
    near = chord * EARTH_KM <= FAR_KM
    shape = (len(latitude), len(longitude))

    low, high = np.quantile(predict(places), [0.002, 0.998])
    if low < 0 < high:
        norm = TwoSlopeNorm(0, min(low, -high / 5), high)
        colors = LinearSegmentedColormap.from_list("terrain", TERRAIN)
    else:
        norm, colors = Normalize(low, high), "viridis"

    figure = Figure(figsize=(11, 5.6), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        np.where(near, surface, np.nan).reshape(shape), norm=norm, cmap=colors,
        origin="lower", extent=(-180, 180, -90, 90), interpolation="nearest",
    )  # fmt: skip
    axes.set_facecolor("#ececef")
    axes.plot(*places.T[::-1], ",", color="black", alpha=0.4)
    axes.set_xticks(range(-180, 181, 60), ["180°", "120°W", "60°W", "0°", "60°E", "120°E", "180°"])
    axes.set_yticks(range(-90, 91, 30), ["90°S", "60°S", "30°S", "0°", "30°N", "60°N", "90°N"])
    axes.grid(color="black", alpha=0.15, linewidth=0.5)
    axes.set_title(title, loc="left", fontsize=13)
    axes.set_xlabel(
        f"dots: the {len(places):,} points of the fit; grey: more than {FAR_KM:.0f} km from any of them",
        loc="left",
    )
    bar = axes.inset_axes([1.015, 0, 0.02, 1])
    figure.colorbar(image, cax=bar, extend="both", label=label).ax.set_yscale("linear")
    _save(figure, path)


def draw_agreement(path, actual, predicted, title, label):
    """Draw predicted against actual values and the line where they agree."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6), layout="constrained")
    axes = figure.add_subplot()
    both = np.quantile(np.concatenate([actual, predicted]), [0.001, 0.999])
    margin = 0.03 * (both[1] - both[0])
    limits = both[0] - margin, both[1] + margin
    bins = axes.hexbin(
        actual, predicted, gridsize=60, extent=(*limits, *limits), mincnt=1, bins="log", cmap="viridis"
    )
    axes.axline((both[0], both[0]), slope=1, color="black", linewidth=1)
    axes.set(xlim=limits, ylim=limits, aspect="equal", xlabel=label, ylabel=f"predicted {label}")
    axes.set_title(title, loc="left")
    figure.colorbar(bins, ax=axes, shrink=0.8, label="rows")
    _save(figure, path)


def _save(figure, path):
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, format=Path(path).suffix[1:])
