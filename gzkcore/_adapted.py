"""Compress many columns to few by the principal axes of their Gram matrix: basis="adapted"."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh

from ._typing import Doubles, Floats, Integers, Rows

# How many exact columns are compressed to one, and rows of the data per exact column that are
# looked at (all, if there are fewer): with four, the axes of the sample are as good as those of all.
WIDER = 4
_ROWS_PER_COLUMN = 4
_TILE_ROWS = 1024


def principal_axes(
    fill: Callable[[Rows], Floats], X: Rows, width: int, kept: int, rng: np.random.Generator
) -> Doubles:
    """Return the axes (width, kept) of largest mean square of the columns, strongest first.

    fill(rows) makes the `width` columns of some rows of X. The Gram matrix is that of a random
    sample of rows where there are many, summed in double.
    """
    rows = sample_rows(X.shape[0], _ROWS_PER_COLUMN * width, rng)
    gram = np.zeros((width, width))
    for start in range(0, rows.size, _TILE_ROWS):
        Z = fill(X[rows[start : start + _TILE_ROWS]])
        gram += Z.T @ Z
    kept = min(kept, width)
    _, axes = eigh(
        gram, subset_by_index=[width - kept, width - 1], driver="evr", overwrite_a=True,
        check_finite=False,
    )  # fmt: skip
    strongest_first: Doubles = np.ascontiguousarray(axes[:, ::-1])
    return strongest_first


def sample_rows(n: int, most: int, rng: np.random.Generator) -> Integers:
    """Return the numbers of all rows, or of `most` random ones, in order."""
    if n <= most:
        return np.arange(n, dtype=np.intp)
    return np.sort(rng.choice(n, most, replace=False)).astype(np.intp)


def error_on_sample(K: Doubles, Z: Floats) -> float:
    """Root mean square of Z Z^T - K."""
    error = Z.astype(np.float64) @ Z.T.astype(np.float64) - K
    return float(np.sqrt(np.mean(np.square(error))))
