"""Which columns matter: the error on held-out rows with each column shuffled."""

from collections.abc import Callable

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
    tried: dict[str, list[str]],
    rng: np.random.Generator,
) -> tuple[float, dict[str, float]]:
    """Return the error on some rows, and with some columns shuffled, the largest first.

    Parameters
    ----------
    predict : callable
    frame : Frame
        Rows held out.
    truth : ndarray of shape (n_rows,)
    error : callable
        Of truth and predictions.
    tried : dict of list of str
        Columns that are shuffled together, by what they are called, in the order of the trials.
    rng : Generator
    """
    rows = np.sort(rng.permutation(len(truth))[:MOST_ROWS])
    frame, truth = frame.take(rows), truth[rows]
    found = {}
    for name, columns in list(tried.items())[:MOST_COLUMNS]:
        order = rng.permutation(len(truth))
        other = Frame(frame.values | {column: frame[column][order] for column in columns})
        found[name] = error(truth, predict(other))
    ordered = dict(sorted(found.items(), key=lambda each: -each[1]))
    return error(truth, predict(frame)), ordered
