"""Variances of f given some rows around each new one: no solve with all rows, and never too small.

With up to three columns what a row far away tells of f(x) is told by the rows between, and where
there are none, by few. So S is made of the nearest rows and of the nearest among rows that are
spread thinner and thinner. The variance given y at S is at least that given all of y.
"""

from typing import Any

import numpy as np

from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import dense
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.products import Pairs, as_double
from gzkcore.kernels.transformed import unmapped

from .near_landmarks import spread_landmarks
from .neighbours import Nearest, given_near
from .preconditioners import FEW_COLUMNS, LEAST_ALPHA, local_pairs

# Levels of spread rows: their number, and how many of them are near enough. Then the NEAREST of all
# other rows follow. docs/kernel_ridge.md has the errors. With a third more it took twice as long.
LEVELS = ((64, 16), (512, 16), (4096, 16))
NEAREST = 47
NEW_ROWS = 1 << 14  # So many new rows are worked on at a time.


class NearVariances:
    """k(x, x) - k_xS^T (K_SS + alpha N_S)^-1 k_xS for rows S about x.

    Parameters
    ----------
    kernel : Kernel
    X : {ndarray, CSR} of shape (n, d)
        Rows that `suit`.
    noise : ndarray of shape (n,) or None
        The diagonal of N; None: ones.

    Notes
    -----
    A new row takes m^3 / 3 + m^2 (d + 12) / 2 operations for m = 95, and a search.
    """

    def __init__(self, kernel: Kernel, X: Rows, noise: Doubles | None) -> None:
        rows = as_double(dense(X))
        self.kernel = kernel
        pairs: Any = Pairs.of(kernel, rows, np.float64)
        self.noise = np.ones(len(rows)) if noise is None else noise
        self.pairs, self.levels = pairs, _levels(pairs.rows)

    @staticmethod
    def suit(kernel: Kernel, X: Rows) -> bool:
        """Say whether rows have few enough columns, and the kernel a compiled form."""
        row = as_double(dense(X[:1]))
        _, mapped, _ = unmapped(kernel, row, None)
        return mapped.shape[1] <= FEW_COLUMNS and local_pairs(kernel, row, np.float64) is not None

    def at(self, X: Rows, alpha: float) -> Doubles:
        """Return the variances at rows X."""
        starts = range(0, X.shape[0], NEW_ROWS)
        return np.concatenate([
            self._of_some(as_double(dense(X[start : start + NEW_ROWS])), alpha) for start in starts
        ])  # fmt: skip

    def rows_about(self, X: Doubles, times: int = 1) -> Integers:
        """Return the numbers of the rows about each of some new rows, (n_new, times m or all)."""
        new: Any = Pairs.of(self.kernel, X, np.float64)
        tables = [
            chosen[tree.to(new.rows, min(times * count, len(chosen)))]
            for chosen, tree, count in self.levels
        ]
        return np.concatenate(tables, axis=1)

    def _of_some(self, X: Doubles, alpha: float) -> Doubles:
        old = self.pairs
        new: Any = Pairs.of(self.kernel, X, np.float64)
        seen = self.rows_about(X)
        some, places = np.unique(seen, return_inverse=True)
        places = places.reshape(seen.shape)  # NumPy before 2.1
        least = LEAST_ALPHA * float(np.square(new.weights).sum(axis=1).max())
        alpha = max(alpha, least)
        noise = alpha * self.noise[some]
        _, variances = given_near(new, old.take(some), places, alpha, noise, np.float64)
        return np.maximum(variances - alpha, 0.0)


def _levels(rows: Doubles) -> list[tuple[Integers, Nearest, int]]:
    """Return the rows of each level, to be searched for some of them; no row is in two levels."""
    levels, left, rng = [], np.arange(len(rows)), np.random.default_rng(0)
    for size, count in LEVELS:
        if 4 * size > len(left):
            break
        chosen = left[spread_landmarks(rows[left], size, rng)]
        levels.append((chosen, Nearest(rows[chosen]), count))
        left = np.setdiff1d(left, chosen)
    levels.append((left, Nearest(rows[left]), min(NEAREST, len(left))))
    return levels
