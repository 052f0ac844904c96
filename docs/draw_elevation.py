"""Draw docs/elevation.svg, the README's map: python docs/draw_elevation.py (needs the extra cli).

It is the map of `gzkcore demo`, whose contours are then simplified: a picture small enough to be
text. It takes half a minute.
"""

import re
from pathlib import Path

import numpy as np

from gzkcore.cli.demo import Airports

COARSE = 0.3  # points by which a contour may be simplified
DIGITS = 1  # of a point
TITLE = "Elevation, predicted from airports"


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


def shorter(path):
    """Return a path of SVG made of straight lines, as steps from point to point; hatches as are."""
    if "z" not in path:
        return path
    text = []
    for ring in re.findall("M([^M]+)", path):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", ring)]
        points = np.rint(simplified(np.reshape(numbers, (-1, 2))) * 10**DIGITS)
        steps = np.diff(points, axis=0)
        steps = steps[(steps != 0).any(axis=1)]
        if len(steps) < 2:
            continue
        x, y = points[0] / 10**DIGITS
        moved = " ".join(f"{dx:g} {dy:g}" for dx, dy in steps / 10**DIGITS)
        moved = re.sub(r"(?<!\d)0\.", ".", moved).replace(" -", "-")
        text.append(f"M{x:g} {y:g}l{moved}z")
    return "".join(text)


def main():
    """Write the picture."""
    picture = Path(__file__).with_name("elevation.svg")
    data = Airports()
    next(data.errors())  # fits KernelRegressor
    data.draw(picture)
    text = picture.read_text("utf-8")
    # Contours are drawn where they are; letters and marks, which have curves, are left alone.
    text = re.sub(
        r'(?<= d=")M[-\d.\sMLz]{200,}(?=")', lambda found: shorter(found[0]), text, flags=re.ASCII
    )
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)  # which has the date
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = text.replace("<defs>", f"<title>{TITLE}</title>\n <defs>", 1)
    picture.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
