"""Draw docs/prediction.svg, the picture of docs/prediction.md: python docs/draw_prediction.py FILE.

FILE is what `asv_bench/tables.py prediction --rows 2000 --splits 1 --json` prints. Each learner is
a dot: seconds of fit and prediction, and the error as a multiple of the least of all learners, both
as geometric means over the tables. On the left numbers, on the right the log loss of labels.
"""

import json
import math
import sys
from pathlib import Path

from draw_iterations import FONT, INK, Panel

COLORS = {"gzkcore": "#c8663c"}
OTHERS = "#2f6fa8"
CHARACTER = 6.3  # pixels
TITLES = {"Prediction of numbers": "Numbers", "Their logarithmic loss": "Labels"}
SECONDS = "Seconds of fit and prediction"


def tables(text):
    """Yield the title and the rows of each table printed."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        found, place = decoder.raw_decode(text, place)
        yield found["table"], found["rows"]
        place += len(text[place:]) - len(text[place:].lstrip())


def means(rows, relative=False):
    """Return the geometric mean over tables of each learner that has a number on all of them."""
    each = []
    for row in rows:
        values = {
            name: float(str(value).split()[0]) for name, value in row.items() if name != "table"
        }
        least = min(values.values()) if relative else 1.0
        each.append({name: value / least for name, value in values.items()})
    everywhere = set.intersection(*map(set, each))
    return {
        name: math.exp(sum(math.log(row[name]) for row in each) / len(each)) for name in everywhere
    }


def free(place, taken):
    """Say whether a name there covers no dot and no other name."""
    _, low, high, at = place
    return not any(low < end and start < high and abs(at - y) < 11 for start, end, y in taken)


def panel(left, title, errors, seconds):
    """Draw the learners of one kind of table."""
    drawn = Panel(left, left + 290, (0.01, 20), (0.95, 3.2), log_x=True)
    drawn.axes(
        title, "seconds of fit and prediction", (0.01, 0.1, 1, 10), "error, of the least",
        {1: "1", 1.2: "1.2", 1.5: "1.5", 2: "2", 3: "3"},
    )  # fmt: skip
    dots = {name: (drawn.x(seconds[name]), drawn.y(error)) for name, error in errors.items()}
    taken = [(x - 5, x + 5, y) for x, y in dots.values()]
    for name, (x, y) in sorted(dots.items(), key=lambda dot: dot[1]):
        color, width = COLORS.get(name, OTHERS), CHARACTER * len(name)
        right, left = ("start", x + 8, x + 8 + width), ("end", x - 8 - width, x - 8)
        places = [(*side, y + up) for up in (0, -10, 10) for side in (right, left)]
        anchor, low, high, at = next((place for place in places if free(place, taken)), places[0])
        taken.append((low, high, at))
        drawn.dot(seconds[name], errors[name], color)
        drawn.text(low if anchor == "start" else high, at + 4, name, anchor, f'fill="{color}"')
    return drawn.lines


def main():
    """Write the picture."""
    lines, left, errors = [], 60, None
    for title, rows in tables(Path(sys.argv[1]).read_text(encoding="utf-8").strip()):
        if title in TITLES:
            errors = TITLES[title], means(rows, relative=True)
        elif title == SECONDS and errors is not None:
            lines += panel(left, *errors, means(rows))
            left += 370
    picture = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 730 350" {FONT} fill="{INK}">',
        "<title>Error against seconds of learners with their defaults</title>",
        '<rect width="730" height="350" fill="#ffffff"/>',
        *lines,
        "</svg>",
        "",
    ]
    Path(__file__).with_name("prediction.svg").write_text("\n".join(picture), encoding="utf-8")


if __name__ == "__main__":
    main()
