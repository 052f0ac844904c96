"""Draw docs/fast_sums.svg, the picture of docs/fast_sums.md: python docs/draw_fast_sums.py.

Processor seconds of a product of the whole kernel matrix with two vectors, by tiles and in linear
time, for growing numbers of random places. Three minutes on two cores.
"""

import time
from pathlib import Path

import numpy as np
from draw_iterations import FONT, INK, Panel

from gzkcore import Matern
from gzkcore.kernels.fast_sums import FastSums
from gzkcore.kernels.products import KernelOperator

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST_BY_TILES = 100_000
COLORS = {"tiles": "#333333", "sphere": "#2f6fa8", "plane": "#3a8f5a", "three columns": "#c8663c"}
KERNEL, TOL = Matern(1.5, 0.1), 1e-6


def rows_of(where, n):
    """Return random places."""
    rng = np.random.default_rng(0)
    if where == "sphere":
        X = rng.standard_normal((n, 3))
        return X / np.linalg.norm(X, axis=1, keepdims=True)
    return rng.random((n, 2 if where == "plane" else 3))


def seconds_of(times, n):
    """Return the least processor seconds of three products with two vectors."""
    V, found = np.random.default_rng(1).standard_normal((n, 2)), []
    for _ in range(3):
        start = time.process_time()
        times(V)
        found.append(time.process_time() - start)
    return min(found)


def main():
    """Measure, and write the picture."""
    panel = Panel(60, 440, (8_000, 1_250_000), (0.005, 700), log_x=True)
    panel.axes(
        "A product with two vectors", "places", ROWS[::2], "processor seconds",
        {0.01: ".01", 0.1: ".1", 1: "1", 10: "10", 100: "100"},
    )  # fmt: skip
    curves = {
        where: [seconds_of(FastSums(KERNEL, rows_of(where, n), None, TOL).times, n) for n in ROWS]
        for where in ("sphere", "plane", "three columns")
    }
    few = [n for n in ROWS if n <= MOST_BY_TILES]
    tiles = [
        seconds_of(KernelOperator.of(KERNEL, rows_of("sphere", n), dtype=np.float32).times, n)
        for n in few
    ]
    panel.curve(few, tiles, COLORS["tiles"], 'stroke-width="2"')
    beyond = [few[-1], ROWS[-1]]
    expected = [tiles[-1], tiles[-1] * (beyond[1] / beyond[0]) ** 2]
    panel.curve(beyond, expected, COLORS["tiles"], 'stroke-dasharray="4 3"')
    for where, seconds in curves.items():
        panel.curve(ROWS, seconds, COLORS[where], 'stroke-width="2"')
    # No line of the grid runs through the names.
    panel.lines.append('<rect x="64" y="42" width="112" height="72" fill="#ffffff"/>')
    for row, (name, color) in enumerate(COLORS.items()):
        y = panel.top + 14 + 18 * row
        panel.lines.append(f'<circle cx="74" cy="{y - 4}" r="4" fill="{color}"/>')
        panel.text(84, y, name, "start")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 460 350" {FONT} fill="{INK}">',
        "<title>Products with the whole kernel: tiles and linear time</title>",
        '<rect width="460" height="350" fill="#ffffff"/>',
        *panel.lines,
    ]
    picture = Path(__file__).with_name("fast_sums.svg")
    picture.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
