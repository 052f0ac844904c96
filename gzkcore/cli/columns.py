"""Which columns matter: the error on held-out rows with each column shuffled."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gzkcore._util.typing import Doubles
from gzkcore.rows.frames import Frame, Values

MOST_ROWS, MOST_COLUMNS = 1000, 50  # that are tried
LEAST_RISE = 1.01  # of the error where a column that matters is shuffled


def shuffled_errors(
    predict: Callable[[Frame], Doubles],
    frame: Frame,
    truth: Values,
    error: Callable[[Values, Doubles], float],
    columns: Iterable[Any],
    rng: np.random.Generator,
) -> tuple[float, dict[str, float]]:
    """Return the error on some rows, and with each of some columns shuffled, the largest first.

    Parameters
    ----------
    predict : callable
    frame : Frame
        Rows held out.
    truth : ndarray of shape (n_rows,)
    error : callable
        Of truth and predictions.
    columns : iterable of str
        In the order in which they are tried.
    rng : Generator
    """
    rows = np.sort(rng.permutation(len(truth))[:MOST_ROWS])
    frame, truth = frame.take(rows), truth[rows]
    found = {}
    for name, _ in zip(columns, range(MOST_COLUMNS), strict=False):
        other = Frame(frame.values | {name: rng.permutation(frame[name])})
        found[name] = error(truth, predict(other))
    ordered = dict(sorted(found.items(), key=lambda each: -each[1]))
    return error(truth, predict(frame)), ordered
