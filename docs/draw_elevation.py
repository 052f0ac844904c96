"""Draw docs/elevation.svg, the README's map: python docs/draw_elevation.py (needs the extra cli).

The surface of `gzkcore demo` as filled contours, hatched where the demo hatches it: a picture small
enough to be text. It takes some minutes.
"""

from pathlib import Path

import numpy as np
from contourpy import FillType, contour_generator

from gzkcore import KernelRegressor
from gzkcore.cli.demo import airports
from gzkcore.cli.maps import _known
from gzkcore.rows.frames import Frame

STEP, SCALE, NORTH, SOUTH = 1.0, 4, 84, -60  # degrees, pixels a degree, edges
WIDTH, HEIGHT, FOOT = 360 * SCALE, (NORTH - SOUTH) * SCALE, 96
COARSE = 0.6  # pixels by which a contour may be simplified
FONT = 'font-family="Helvetica, Arial, sans-serif" font-size="21" fill="#24303c"'
UP_TO = [0, 100, 300, 600, 1000, 1500, 2200, 3200, 9000]
COLORS = ["#7fae8b", "#a9c99a", "#d3dfae", "#ecdfae", "#d9b87c", "#b98d57", "#8f6239", "#4a2c14"]
HATCHED = (
    '<pattern id="hatch" width="9" height="9" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="9" height="9" fill="#e9edf2"/>'
    '<path d="M0 0V9" stroke="#c6cfda" stroke-width="1.6"/></pattern>'
)


def surface():
    """Return latitudes, longitudes, elevation, its deviation and limit, and number of places."""
    places, elevation = airports()
    model = KernelRegressor(random_state=0).fit(_frame(places), elevation)
    latitude = np.arange(NORTH, SOUTH - STEP / 2, -STEP)
    longitude = np.arange(-180, 180 + STEP / 2, STEP)
    grid = np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)
    mean, std = model.predict(_frame(grid), return_std=True)
    shape = len(latitude), len(longitude)
    _, limit = _known(std, float(elevation.std()))
    return latitude, longitude, mean.reshape(shape), std.reshape(shape), limit, len(places)


def _frame(places):
    return Frame({"latitude": places[:, 0], "longitude": places[:, 1]})


def simplified(points):
    """Leave out points that lie on a line between others, to within COARSE (Douglas-Peucker)."""
    if len(points) < 3:
        return points
    start, chord = points[0], points[-1] - points[0]
    away = points[1:-1] - start
    length = np.hypot(*chord)
    distance = (
        np.abs(chord[0] * away[:, 1] - chord[1] * away[:, 0]) / length
        if length
        else np.hypot(*away.T)
    )
    worst = int(distance.argmax())
    if distance[worst] <= COARSE:
        return points[[0, -1]]
    first, second = points[: worst + 2], points[worst + 1 :]
    return np.concatenate([simplified(first)[:-1], simplified(second)])


def path_of(x, y, values, low, high):
    """Return the path, for SVG, of where values are from low to high."""
    generator = contour_generator(x, y, values, fill_type=FillType.OuterCode)
    text = []
    for points, codes in zip(*generator.filled(low, high), strict=True):
        starts = np.flatnonzero(codes == 1)
        for start, end in zip(starts, [*starts[1:], len(points)], strict=True):
            ring = simplified(points[start:end])
            steps = np.diff(np.rint(ring), axis=0).astype(int)
            steps = steps[(steps != 0).any(axis=1)][:-1]
            if len(steps) < 2:
                continue
            first = np.rint(ring[0]).astype(int)
            moved = "".join(f"{dx}{'' if dy < 0 else ' '}{dy}" + " " for dx, dy in steps)
            text.append(f"M{first[0]} {first[1]}l{moved.replace(' -', '-').strip()}z")
    return "".join(text)


def drawing(latitude, longitude, elevation, std, limit, n_places):
    """Return the picture as lines of SVG."""
    x, y = (longitude + 180) * SCALE, (NORTH - latitude) * SCALE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + FOOT}" {FONT}>',
        f"<title>Elevation, predicted from {n_places:,} airports</title>",
        f"<defs>{HATCHED}</defs>",
        f'<rect width="{WIDTH}" height="{HEIGHT + FOOT}" fill="#ffffff"/>',
    ]
    bounds = [-np.inf, *UP_TO[1:-1], np.inf]
    lines.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{COLORS[0]}"/>')
    for low, color in zip(bounds[1:], COLORS[1:], strict=False):
        # Each colour covers all that is higher, so that no seams show between neighbours.
        lines.append(f'<path fill="{color}" d="{path_of(x, y, elevation, low, 1e9)}"/>')
    lines += [
        f'<path fill="url(#hatch)" d="{path_of(x, y, std, limit, 1e9)}"/>',
        f'<g transform="translate(0 {HEIGHT + 22})">',
    ]
    wide = 108
    for number, color in enumerate(COLORS):
        left = 8 + wide * number
        lines.append(f'<rect x="{left}" width="{wide}" height="26" fill="{color}"/>')
        if number:
            name = f"{UP_TO[number]:,}" + " m" * (number == len(COLORS) - 1)
            lines.append(f'<text x="{left}" y="52" text-anchor="middle">{name}</text>')
    end = 8 + wide * len(COLORS)
    lines += [
        f'<rect x="{end + 30}" width="54" height="26" fill="url(#hatch)" stroke="#c6cfda"/>',
        f'<text x="{end + 94}" y="20">too few airports nearby to tell:</text>',
        f'<text x="{end + 94}" y="48">standard deviation above {limit:.0f} m</text>',
        "</g>",
        "</svg>",
    ]
    return lines


def main():
    """Write the picture."""
    picture = Path(__file__).with_name("elevation.svg")
    picture.write_text("\n".join([*drawing(*surface()), ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
