"""What is doubtful in targets: columns that tell them, groups, angles, predictions below 0."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.special import fdtrc

from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles, Integers
from gzkcore.rows.values import Values, missing_of

from .columns.column import Column

FEWEST = 30  # rows of each label, and beside the most frequent target, that a copy agrees with
SAME = 1e-5  # An exact linear function leaves no larger part of the targets' spread.
FIRST = 1000  # So many rows tell of most columns that they are no copies.
ANGLES = re.compile(
    r"(?i:direction|azimuth|heading|bearing|angle|orientation|longitude|richtung|winkel)"
    r"|(?i:(^|[^a-z])(w?dir|wd|drct|yaw|hue|aspect|course|lon|lng)([^a-z]|$))|[a-z]Dir([^a-z]|$)"
)
# Names of columns that say whose the rows are.
IDENTIFIER = re.compile(
    r"(.*[ _.-])?(?i:id)|.*[a-z]I[dD]|(?i:([a-z]+[ _.-])?(patient|subject|person|participant"
    r"|proband|user|customer|client|household|student|pupil|animal|station|site|store|farm)"
    r"[ _.-]?(id|no|nr|number|code|name)?)"
)
GROUPS, ROWS = 10, 3  # the fewest groups, and rows of one on average, that tell anything
MOST_ROWS = 20  # Without such a name a column has no more rows of a group, on average.
APART, CHANCE = 0.1, 1e-3  # the least variance between groups, by that within; its probability
TURN, NEAR = 360.0, 45.0  # An angle, in degrees, has values so near both ends of a turn.
MOST_LABELS = 10  # Up to so many different numbers may be labels.
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


def repeating(columns: Mapping[str, Values], targets: Iterable[Values]) -> str:
    """Return the column by which rows are groups with similar targets, "" if there is none.

    Its name says so; or it holds text, and half of the others are similar in its groups, too.
    """
    groups_apart, y = {"": 0.0}, [*map(_numbered, targets)]
    for name, values in columns.items():
        is_named = IDENTIFIER.fullmatch(name) is not None
        is_whole = is_named and values.dtype.kind == "f" and not (values % 1 > 0).any()
        if not (is_whole or values.dtype.kind == "O"):
            continue
        groups = _numbered(values)
        n_rows = len(groups) / (groups.max() + 1)
        apart, is_group = max(_apart(groups, own) for own in y), is_named
        if apart >= APART and not is_named and n_rows <= MOST_ROWS:
            others = [own for other, own in columns.items() if other != name]
            similar = [_apart(groups, _numbered(own)) >= 1 for own in others]
            is_group = 0 < len(others) <= 2 * sum(similar)
        if apart >= APART and is_group:
            groups_apart[name] = apart * n_rows
    return max(groups_apart, key=lambda name: groups_apart[name])


def _numbered(values: Values) -> Integers:
    """Return numbers in their order, or texts as they come, as whole numbers from 0."""
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)[1]
    places = {text: place for place, text in enumerate(dict.fromkeys(values))}
    return np.array([places[text] for text in values])


def _apart(groups: Integers, y: Integers) -> float:
    """Return the variance between groups, divided by that within; 0 where it may be chance."""
    counts, n = np.bincount(groups), len(y)
    if not GROUPS <= counts.size <= n / ROWS:
        return 0.0
    means = np.bincount(groups, y) / counts
    within = max(np.square(y - means[groups]).sum() / (n - counts.size), 1e-9)
    ratio = counts @ np.square(means - y.mean()) / (counts.size - 1) / within
    is_chance = fdtrc(counts.size - 1, n - counts.size, ratio) > CHANCE
    return 0.0 if is_chance else float((ratio - 1) * counts.size / n)


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


def lowest_of(Y: Doubles) -> Doubles | None:
    """Return the least of each target; None where so few numbers differ that they may be labels."""
    return Y.min(axis=0) if np.unique(Y).size > MOST_LABELS else None


def about_negative(means: Doubles, lowest: Doubles, scales: Doubles) -> Remark | None:
    """Return the remark that predictions (n, n_targets) are negative, and no target was."""
    if not ((lowest >= 0) & (means < -LITTLE * scales)).any():
        return None
    sentence = "some predictions are negative, but no target of the fit is"
    return Remark("negative", [], sentence, "raise them to 0, or predict log1p of the target")
