"""Compress many columns to few by the principal axes of their Gram matrix: basis="adapted"."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import lu

from gzkcore._util.linalg import eigh, orthonormal
from gzkcore._util.typing import Doubles, Floats, Integers, Rows

# Exact columns that are compressed to one column.
WIDER = 4
# Candidates for each exact column, of which those with the largest mean squares are chosen.
CHOICE = 4
# Rows on which columns that depend on the data measure their errors.
ERROR_ROWS = 512
# Rows of the Gram matrix for each of its columns, at most.
_ROWS_PER_COLUMN = 2
# Rows of the mean squares of candidates, at most.
_ROWS_FOR_SQUARES = 2048
# Bytes of the columns of a tile.
_TILE_BYTES = 1 << 23
# Axes of subspace iteration beyond those that are returned, and its steps.
_MORE_AXES = 64
_STEPS = 3
# Axes with a smaller error are made orthonormal by products, in a quarter of the time of a QR.
_NEARLY = 1e-8


def principal_axes(
    fill: Callable[[Rows], Floats], X: Rows, width: int, count: int, rng: np.random.Generator
) -> Doubles:
    """Return the axes (width, count) of largest mean square of the columns, strongest first.

    fill(rows) makes the `width` columns of some rows of X. The Gram matrix is that of a
    random sample of rows where there are many, summed in double.
    """
    if width == 0:
        raise ValueError(
            "basis='adapted' finds only columns that are 0: X lies too far from its centre; scale "
            "the columns, use a smaller gamma, or RandomFourierFeatures"
        )
    count = min(count, width)
    if X.shape[0] < max(count, width // 2 + 1):
        return _axes_of_few(fill(X), count, rng)
    gram = np.zeros((width, width))
    for rows in _tiles(X.shape[0], _ROWS_PER_COLUMN * width, width, rng):
        Z = fill(X[rows])
        gram += Z.T @ Z
    return _largest(gram, count, rng)[1]


def _axes_of_few(Z: Floats, count: int, rng: np.random.Generator) -> Doubles:
    """Return the axes of fewer rows than columns, from the smaller matrix Z Z^T.

    If the rows span fewer than `count` axes, the strongest columns follow.
    """
    energies, turn = _largest(Z @ Z.T, min(count, Z.shape[0]), rng)
    spanned = energies > Z.shape[0] * np.finfo(float).eps * energies[0]
    axes: Doubles = Z.T @ (turn[:, spanned] / np.sqrt(energies[spanned]))
    strongest = np.argsort(-np.einsum("ij,ij->j", Z, Z), kind="stable")[: count - axes.shape[1]]
    off = axes.T @ axes - np.eye(axes.shape[1])
    if not strongest.size and np.linalg.norm(off) < _NEARLY:
        axes -= axes @ off / 2  # the error is squared
        return axes
    columns = np.zeros((Z.shape[1], strongest.size))
    columns[strongest, np.arange(strongest.size)] = 1.0
    return orthonormal(np.hstack([axes, columns]))


def strongest_columns(
    fill: Callable[[Rows], Floats], X: Rows, width: int, count: int, rng: np.random.Generator
) -> Integers:
    """Return the numbers of the `count` columns of largest mean square, in their order.

    fill(rows) makes the `width` columns of some rows of X.
    """
    squares = np.zeros(width)
    for rows in _tiles(X.shape[0], _ROWS_FOR_SQUARES, width, rng):
        Z = fill(X[rows])
        squares += np.einsum("ij,ij->j", Z, Z)
    return np.sort(np.argsort(-squares, kind="stable")[:count]).astype(np.intp)


def _tiles(n: int, most: int, width: int, rng: np.random.Generator) -> list[Integers]:
    """Return the numbers of all rows, or of `most` random ones, in pieces for `width` columns."""
    rows = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    step = max(1, _TILE_BYTES // (8 * width))
    return [rows[start : start + step] for start in range(0, rows.size, step)]


def _largest(gram: Doubles, count: int, rng: np.random.Generator) -> tuple[Doubles, Doubles]:
    """Return the `count` largest eigenvalues, largest first, and their vectors.

    A few are found by subspace iteration, several times faster than all eigenvectors; axes of
    nearly equal weight at the end may be exchanged, which does no harm.
    """
    width, trial = gram.shape[0], count + _MORE_AXES
    if 2 * trial > width:
        # All vectors: LAPACK takes three times as long for a large part of them.
        energies, axes = eigh(gram, driver="evd", check_finite=False)
        energies, axes = energies[-count:], axes[:, -count:]
    else:
        basis = gram @ rng.standard_normal((width, trial))
        for _ in range(_STEPS - 1):
            basis = gram @ lu(basis, permute_l=True, check_finite=False)[0]
        basis = orthonormal(basis)
        energies, turn = eigh(basis.T @ (gram @ basis), driver="evd", check_finite=False)
        energies, axes = energies[-count:], basis @ turn[:, -count:]
    return energies[::-1], np.ascontiguousarray(axes[:, ::-1])


def rows_for_errors(X: Rows) -> Rows:
    """Return ERROR_ROWS rows, evenly spaced, or all."""
    return X[:: max(1, X.shape[0] // ERROR_ROWS)][:ERROR_ROWS]


def error_on_sample(K: Doubles, Z: Floats) -> float:
    """Return the root mean square of Z Z^T - K."""
    error = Z.astype(np.float64) @ Z.T.astype(np.float64) - K
    largest = max(float(np.abs(error).max(initial=0.0)), np.finfo(float).tiny)
    return largest * float(np.sqrt(np.mean(np.square(error / largest))))  # no square overflows
