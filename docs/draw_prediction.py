"""Draw docs/prediction.svg, the picture of docs/prediction.md: errors of learners against seconds.

    python asv_bench/tables.py prediction --rows 2000 --splits 1 --json > found.json
    python docs/draw_prediction.py < found.json

A dot is the geometric mean, over the tables, of a learner's seconds of fit and prediction, and of
its error (of labels, its logarithmic loss) over the least of all learners there.
"""

import json
import sys
from pathlib import Path

import numpy as np
from draw_iterations import FONT, INK, Panel

COLORS = {"gzkcore": "#c8663c"}
OTHERS = "#2f6fa8"
ERRORS = {"Prediction of numbers": "numbers", "Their logarithmic loss": "labels"}
SECONDS = "Seconds of fit and prediction"


def tables_of(text):
    """Yield the title and the rows of each table of a stream of JSON."""
    decoder, place = json.JSONDecoder(), 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        found, place = decoder.raw_decode(text, place)
        yield found["title" if "title" in found else "table"], found["rows"]


def number(cell):
    """Return the number that a cell begins with."""
    return float(str(cell).split()[0])


def means(errors, seconds):
    """Return (seconds, error over the least) of each learner that was measured on every table."""
    names = [name for name in errors[0] if name != "table"]
    names = [name for name in names if all(name in row for row in errors)]
    table = np.array([[max(number(row[name]), 1e-4) for name in names] for row in errors])
    times = np.array([[number(row[name]) for name in names] for row in seconds])
    relative = table / table.min(axis=1, keepdims=True)
    both = (np.exp(np.log(each).mean(axis=0)) for each in (times, relative))
    return dict(zip(names, zip(*both, strict=True), strict=True))


def main():
    """Read tables from the standard input, and write the picture."""
    found, kind = {}, None
    for title, rows in tables_of(sys.stdin.read()):
        kind = ERRORS.get(title, kind)
        if title in ERRORS:
            errors = rows
        elif title == SECONDS:
            found[kind] = means(errors, rows)
    panels = []
    for left, (kind, points) in zip((60, 480), found.items(), strict=False):
        panel = Panel(left, left + 340, (0.005, 10), (0.95, 8), log_x=True)
        panel.axes(
            f"2,000 rows: {kind}", "seconds of fit and prediction", (0.01, 0.1, 1, 10),
            "error over the least", {1: "1", 2: "2", 4: "4", 8: "8"},
        )  # fmt: skip
        for name, (seconds, error) in points.items():
            color = COLORS.get(name, OTHERS)
            panel.dot(seconds, error, color)
            panel.text(panel.x(seconds) + 7, panel.y(error) + 4, name, "start", f'fill="{color}"')
        panels.append(panel)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 350" {FONT} fill="{INK}">',
        "<title>Errors of learners against seconds</title>",
        '<rect width="900" height="350" fill="#ffffff"/>',
        *(line for panel in panels for line in panel.lines),
    ]
    picture = Path(__file__).with_name("prediction.svg")
    picture.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
