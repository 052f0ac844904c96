"""Compress many columns to few by the principal axes of their Gram matrix: basis="adapted"."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import lu

from gzkcore._util.linalg import eigh, orthonormal
from gzkcore._util.typing import Doubles, Floats, Integers, Rows

# How many exact columns are compressed to one, and out of how many each of these is chosen by its
# mean square on the data.
WIDER = 4
CHOICE = 4
# Rows of the data (all, if there are fewer) for each exact column of the Gram matrix, and for mean
# squares.
_ROWS_PER_COLUMN = 2
_ROWS_FOR_SQUARES = 2048
_TILE_BYTES = 1 << 23
# Subspace iteration: axes beyond those that are kept, and steps.
_MORE_AXES = 64
_STEPS = 3
# Axes that are off by less are made orthonormal by products, a quarter of the time of a QR.
_NEARLY = 1e-8


def principal_axes(
    fill: Callable[[Rows], Floats], X: Rows, width: int, kept: int, rng: np.random.Generator
) -> Doubles:
    """Return the axes (width, kept) of largest mean square of the columns, strongest first.

    fill(rows) makes the `width` columns of some rows of X. The Gram matrix is that of a
    random sample of rows where there are many, summed in double.
    """
    if width == 0:
        raise ValueError(
            "basis='adapted' finds only columns that are 0: X lies too far from its centre; scale "
            "the columns, use a smaller gamma, or RandomFourierFeatures"
        )
    kept = min(kept, width)
    if X.shape[0] < max(kept, width // 2 + 1):
        return _axes_of_few(fill(X), kept, rng)
    gram = np.zeros((width, width))
    for rows in _tiles(X.shape[0], _ROWS_PER_COLUMN * width, width, rng):
        Z = fill(X[rows])
        gram += Z.T @ Z
    return _largest(gram, kept, rng)[1]


def _axes_of_few(Z: Floats, kept: int, rng: np.random.Generator) -> Doubles:
    """Return the axes of fewer rows than columns, from the smaller matrix Z Z^T.

    Where the rows span fewer than `kept` axes, these are followed by strong columns.
    """
    energies, turn = _largest(Z @ Z.T, min(kept, Z.shape[0]), rng)
    spanned = energies > Z.shape[0] * np.finfo(float).eps * energies[0]
    axes: Doubles = Z.T @ (turn[:, spanned] / np.sqrt(energies[spanned]))
    strongest = np.argsort(-np.einsum("ij,ij->j", Z, Z), kind="stable")[: kept - axes.shape[1]]
    off = axes.T @ axes - np.eye(axes.shape[1])
    if not strongest.size and np.linalg.norm(off) < _NEARLY:
        axes -= axes @ off / 2  # now off by the square of that
        return axes
    columns = np.zeros((Z.shape[1], strongest.size))
    columns[strongest, np.arange(strongest.size)] = 1.0
    return orthonormal(np.hstack([axes, columns]))


def strongest_columns(
    fill: Callable[[Rows], Floats], X: Rows, width: int, kept: int, rng: np.random.Generator
) -> Integers:
    """Return the numbers of the `kept` columns of largest mean square, in their order.

    fill(rows) makes the `width` columns of some rows of X.
    """
    squares = np.zeros(width)
    for rows in _tiles(X.shape[0], _ROWS_FOR_SQUARES, width, rng):
        Z = fill(X[rows])
        squares += np.einsum("ij,ij->j", Z, Z)
    return np.sort(np.argsort(-squares, kind="stable")[:kept]).astype(np.intp)


def _tiles(n: int, most: int, width: int, rng: np.random.Generator) -> list[Integers]:
    """Return the numbers of all rows, or of `most` random ones, in pieces for `width` columns."""
    rows = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
    step = max(1, _TILE_BYTES // (8 * width))
    return [rows[start : start + step] for start in range(0, rows.size, step)]


def _largest(gram: Doubles, kept: int, rng: np.random.Generator) -> tuple[Doubles, Doubles]:
    """Return the `kept` largest eigenvalues, largest first, and their vectors.

    By subspace iteration where these are few: axes of nearly equal weight at the end may be
    exchanged, which costs nothing; three steps are several times faster than all eigenvectors.
    """
    width, trial = gram.shape[0], kept + _MORE_AXES
    if 2 * trial > width:
        # All vectors: a large part of them takes LAPACK three times as long.
        energies, axes = eigh(gram, driver="evd", check_finite=False)
        energies, axes = energies[-kept:], axes[:, -kept:]
    else:
        basis = gram @ rng.standard_normal((width, trial))
        for _ in range(_STEPS - 1):
            basis = gram @ lu(basis, permute_l=True, check_finite=False)[0]
        basis = orthonormal(basis)
        energies, turn = eigh(basis.T @ (gram @ basis), driver="evd", check_finite=False)
        energies, axes = energies[-kept:], basis @ turn[:, -kept:]
    return energies[::-1], np.ascontiguousarray(axes[:, ::-1])


def error_on_sample(K: Doubles, Z: Floats) -> float:
    """Root mean square of Z Z^T - K."""
    error = Z.astype(np.float64) @ Z.T.astype(np.float64) - K
    largest = max(float(np.abs(error).max(initial=0.0)), np.finfo(float).tiny)
    return largest * float(np.sqrt(np.mean(np.square(error / largest))))  # no square overflows
