"""Trials of features on held-out rows, which `KernelFeatures`, `plan` and `compare` share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from gzkcore._util.typing import Integers
from gzkcore._util.validation import check_integer

# Rows that candidates are fitted to, and held-out rows that they are compared on.
FITTED, JUDGED = 2048, 512
# Among candidates with at most this many times the least error, the cheapest is chosen.
AS_GOOD = 1.2

Trial = TypeVar("Trial")


def check_widths(n_components: int | Sequence[int]) -> list[int]:
    """Return the widths to try in increasing order, or raise."""
    try:
        values = np.atleast_1d(np.asarray(n_components)).tolist()
    except ValueError:  # lists of different length
        raise TypeError(
            f"n_components={n_components!r} must be one or more integers >= 1"
        ) from None
    widths = sorted({check_integer("n_components", width, 1) for width in values})
    if not widths:
        raise ValueError("n_components=() is empty; give one or more integers >= 1")
    return widths


def split_rows(n: int, rng: np.random.Generator, fitted: int = FITTED) -> tuple[Integers, Integers]:
    """Draw rows to fit to and held-out rows (the same if there is one)."""
    order = rng.permutation(n)
    n_judged = min(JUDGED, max(1, n // 3))
    judged, rest = order[:n_judged], order[n_judged : n_judged + fitted]
    return np.sort(rest if rest.size else judged), np.sort(judged)


def cheapest_of_the_best(
    trials: Sequence[Trial],
    error: Callable[[Trial], float],
    cost: Callable[[Trial], Any],
    as_good: float = AS_GOOD,
) -> Trial:
    """Return the cheapest trial whose error is nearly the least."""
    least = min(map(error, trials))
    good = [trial for trial in trials if error(trial) <= as_good * least + 1e-15]
    return min(good, key=cost)
