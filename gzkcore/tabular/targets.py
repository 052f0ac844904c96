"""What is doubtful in targets: columns that hold them already, angles, predictions below 0."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles
from gzkcore.rows.values import Values, missing_of

from .columns.column import Column

FEWEST = 30  # rows of each label, and beside the most frequent target, that a copy agrees with
SAME = 1e-5  # An exact linear function leaves no larger part of the targets' spread.
FIRST = 1000  # So many rows tell of most columns that they are no copies.
ANGLES = re.compile(
    r"(?i:direction|azimuth|heading|bearing|angle|orientation|longitude|richtung|winkel)"
    r"|(?i:(^|[^a-z])(w?dir|wd|drct|yaw|hue|aspect|course|lon|lng)([^a-z]|$))|[a-z]Dir([^a-z]|$)"
)
TURN, NEAR = 360.0, 45.0  # An angle, in degrees, has values so near both ends of a turn.
LITTLE = 0.01  # standard deviations of the target by which predictions may be negative, untold


def doubt_copies(
    columns: Sequence[Column], values: Iterable[Values], Y: Doubles, labels: Values | None
) -> None:
    """Warn of columns, given their values, that tell the targets, or the labels, exactly.

    The only column may well do so: then there is a line to learn.
    """
    targets = Y.T if labels is None else [labels]
    for column, own in zip(columns, values, strict=True):
        line = labels is None and own.dtype.kind == "f"
        if len(columns) > 1 and own.ndim == 1 and any(_tells(own, y, line) for y in targets):
            sentence = f"column {column.name!r} tells the target exactly, as a copy of it does"
            remedy = "leave it out if new rows don't have it (in the command by --drop)"
            column.doubt(Remark("copy", [column.name], sentence, remedy))


def _tells(values: Values, y: Values, line: bool) -> bool:
    """Say whether y is an exact linear function of a column, or has one value for each of it."""
    there = ~missing_of(values)
    values, y = values[there], y[there]
    if 2 * len(y) < len(there) or not (_on_line if line else _one_to_one)(values, y):
        return False
    return bool(len(y) - np.unique(y, return_counts=True)[1].max() >= FEWEST)


def _on_line(values: Doubles, y: Doubles) -> bool:
    x, y = (each / max(np.abs(each).max(), 1e-300) for each in (values, y))
    x, y = x - x.mean(), y - y.mean()
    left = y - (x @ y) / max(float(x @ x), 1e-300) * x
    return bool(np.linalg.norm(left) <= SAME * np.linalg.norm(y))


def _one_to_one(values: Values, y: Values) -> bool:
    for some in (slice(FIRST), slice(None)):
        pairs = {*zip(values[some].tolist(), y[some].tolist(), strict=True)}
        if {len({*one}) for one in zip(*pairs, strict=True)} != {len(pairs)}:
            return False
    return len(pairs) * FEWEST <= len(y)


def about_angles(name: str, y: Doubles) -> Remark | None:
    """Return the remark that a target is an angle in degrees, by its name and its values."""
    low, high = float(np.min(y)), float(np.max(y))
    start = 0.0 if low >= 0 else -TURN / 2
    ends = start <= low <= start + NEAR and start + TURN - NEAR <= high <= start + TURN
    if not ends or ANGLES.search(name) is None:
        return None
    both = f"{start:g} and {start + TURN:g} degrees are one direction, but far apart as numbers"
    remedy = "predict its sine and cosine as two targets; arctan2 of both is the angle"
    return Remark("angle", [name], f"{name} seems to be an angle: {both}", remedy)


def about_negative(means: Doubles, lowest: Doubles, scales: Doubles) -> Remark | None:
    """Return the remark that predictions (n, n_targets) are negative, and no target was."""
    if not ((lowest >= 0) & (means < -LITTLE * scales)).any():
        return None
    sentence = "some predictions are negative, but no target of the fit is"
    return Remark("negative", [], sentence, "raise them to 0, or predict log1p of the target")
