"""Compress many columns to few by the principal axes of their Gram matrix: basis="adapted"."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, qr

from ._typing import Doubles, Floats, Integers, Rows

# How many exact columns are compressed to one, and how many rows of the data are looked at for each
# exact column (all, if there are fewer).
WIDER = 4
_ROWS_PER_COLUMN = 4
_TILE_ROWS = 1024
# Subspace iteration: axes beyond those that are kept, and steps.
_MORE_AXES = 64
_STEPS = 3


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
    return _largest(gram, kept, rng)


def _largest(gram: Doubles, kept: int, rng: np.random.Generator) -> Doubles:
    """Eigenvectors of the `kept` largest eigenvalues, by subspace iteration where these are few.

    Axes of nearly equal weight at the end may be exchanged, which costs nothing; three steps are
    several times faster than all eigenvectors.
    """
    width, trial = gram.shape[0], kept + _MORE_AXES
    if 2 * trial > width:
        axes = eigh(gram, subset_by_index=[width - kept, width - 1], check_finite=False)[1]
    else:
        basis = rng.standard_normal((width, trial))
        for _ in range(_STEPS):
            basis = qr(gram @ basis, mode="economic", overwrite_a=True, check_finite=False)[0]
        _, turn = eigh(basis.T @ (gram @ basis), check_finite=False)
        axes = basis @ turn[:, -kept:]
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
