"""What is doubtful in targets: groups with similar ones, angles, predictions below 0."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
from scipy.special import fdtrc

from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles, Integers
from gzkcore.rows.values import Values

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


def ends_of(Y: Doubles) -> tuple[Doubles, Doubles] | tuple[None, None]:
    """Return the least and largest of each target; None where few numbers differ, as in labels."""
    return (Y.min(axis=0), Y.max(axis=0)) if np.unique(Y).size > MOST_LABELS else (None, None)


def about_negative(means: Doubles, lowest: Doubles, scales: Doubles) -> Remark | None:
    """Return the remark that predictions (n, n_targets) are negative, and no target was."""
    if not ((lowest >= 0) & (means < -LITTLE * scales)).any():
        return None
    sentence = "some predictions are negative, but no target of the fit is"
    return Remark("negative", [], sentence, "raise them to 0, or predict log1p of the target")


def about_far(means: Doubles, lowest: Doubles, highest: Doubles) -> Remark | None:
    """Return the remark that predictions (n, n_targets) are far outside the targets of the fit."""
    reach = highest - lowest
    if not ((means < lowest - reach) | (means > highest + reach)).any():
        return None
    sentence = "some predictions are far outside the targets of the fit"
    return Remark("far", [], sentence, "a linear trend may go on too far there: don't rely on them")
