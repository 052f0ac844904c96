"""Draw docs/elevation.svg, the README's map: python docs/draw_elevation.py (needs the extra cli).

The surface of `gzkcore demo`, on a grid of two degrees, as a picture small enough to be text.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from gzkcore import GegenbauerFeatures, LatLonToSphere, RandomFeatureRidgeCV
from gzkcore.datasets import load

STEP, WIDTH, NEAR_KM, EARTH_KM = 2, 720, 350, 6371
HEIGHT, CELL = WIDTH // 2, WIDTH * STEP / 360
UP_TO = [100, 300, 600, 1000, 1500, 2200, 3200, np.inf]
COLORS = ["#9fc3a0", "#cfe0ad", "#e3dfa6", "#d8b878", "#b8935a", "#8f6239", "#74472a", "#f1ebe4"]
FONT = 'font-family="sans-serif" font-size="13"'
NAMES = ["to 100 m", "300", "600", "1,000", "1,500", "2,200", "3,200", "higher"]


def surface():
    """Fit the airports; return the class of every cell, -1 where no airport is near."""
    data, sphere = load("airports"), LatLonToSphere()
    X = sphere.transform(np.column_stack([data.latitude, data.longitude]))
    features = GegenbauerFeatures(n_components=1024)
    model = RandomFeatureRidgeCV(features, kernel_grid={"gamma": [32.0, 64.0, 128.0, 256.0]}, cv=2)
    model.fit(X, data.elevation)
    latitude, longitude = np.arange(90 - STEP / 2, -90, -STEP), np.arange(STEP / 2 - 180, 180, STEP)
    grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
    chord, _ = cKDTree(X).query(sphere.transform(grid))
    kind = np.searchsorted(UP_TO, model.predict(sphere.transform(grid)))
    return np.where(chord * EARTH_KM > NEAR_KM, -1, kind).reshape(latitude.size, longitude.size)


def runs(row):
    """Yield (first, count, class) of equal neighbours in a row."""
    edges = np.flatnonzero(np.diff(row, prepend=row[0] - 1, append=row[-1] - 1))
    for first, last in pairwise(edges.tolist()):
        yield first, last - first, int(row[first])


def main():
    """Write the picture."""
    paths = dict.fromkeys(range(-1, len(COLORS)), "")
    for i, row in enumerate(surface()):
        for first, count, kind in runs(row):
            x, y, w = first * CELL, i * CELL, count * CELL
            paths[kind] += f"M{x:g} {y:g}h{w:g}v{CELL:g}h-{w:g}z"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 40}" {FONT}>',
        "<title>Elevation near 28,000 airports, fitted with 1,024 features</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT + 40}" fill="#ffffff"/>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#e6ebf0"/>',
    ]
    for kind, (color, name) in enumerate(zip(COLORS, NAMES, strict=True)):
        x = 8 + 89 * kind
        lines += [
            f'<path fill="{color}" d="{paths[kind]}"/>',
            f'<rect x="{x}" y="{HEIGHT + 12}" width="16" height="16" fill="{color}"/>',
            f'<text x="{x + 22}" y="{HEIGHT + 25}">{name}</text>',
        ]
    picture = Path(__file__).with_name("elevation.svg")
    picture.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
