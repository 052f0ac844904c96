"""Which columns matter: the error on held-out rows with each column shuffled."""

from collections.abc import Callable

import numpy as np

from gzkcore._util.typing import Doubles, Integers
from gzkcore.rows.frames import Frame, Values

MOST_ROWS, MOST_COLUMNS = 1000, 50  # that are tried
LEAST_RISE = 1.01  # of the error where a column that matters is shuffled


def some_of(n_rows: int, rng: np.random.Generator) -> Integers:
    """Return the rows that columns are shuffled in, some of many."""
    return np.sort(rng.permutation(n_rows)[:MOST_ROWS])


def shuffled_errors(
    predict: Callable[[Frame], Doubles],
    frame: Frame,
    truth: Values,
    error: Callable[[Values, Doubles], float],
    tried: dict[str, list[str]],
    rng: np.random.Generator,
) -> tuple[float, dict[str, float]]:
    """Return the error on rows, and with some columns shuffled, the largest first.

    Parameters
    ----------
    predict : callable
    frame : Frame
        Rows held out, `some_of` them: each column takes a prediction of all.
    truth : ndarray of shape (n_rows,)
    error : callable
        Of truth and predictions.
    tried : dict of list of str
        Columns that are shuffled together, by what they are called, in the order of the trials.
    rng : Generator
    """
    found = {}
    for name, columns in list(tried.items())[:MOST_COLUMNS]:
        order = rng.permutation(len(truth))
        other = Frame(frame.values | {column: frame[column][order] for column in columns})
        found[name] = error(truth, predict(other))
    ordered = dict(sorted(found.items(), key=lambda each: -each[1]))
    return error(truth, predict(frame)), ordered
