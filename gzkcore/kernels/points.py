"""Rows as kernels read them: in double, with their norms and angles."""

from typing import Any

import numpy as np

from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore._util.validation import as_doubles, check_sparse, raise_not_finite
from gzkcore._util.wording import counted

_LEAST_NORM = 1e-140  # squares of smaller ones lose digits
_EXACT_NORM = 1e-300  # smaller ones have lost some themselves


def double_rows(X: Data) -> Doubles:
    """Return the rows of X, dense or sparse, as an array of doubles, row by row, or raise.

    So sums over columns have the same bits, however X lies in memory.
    """
    check_sparse(X)
    rows = as_doubles("X", X, "rows of numbers", order="C")
    check_rows_shape(rows.shape)
    raise_not_finite(rows)
    return rows


def check_rows_shape(shape: tuple[int, ...]) -> None:
    """Raise unless this is the shape of rows."""
    if len(shape) != 2:
        raise ValueError(f"X has shape {shape}; pass an array of shape (n_samples, n_features)")


def double_pair(X: Data, Y: Data | None) -> tuple[Doubles, Doubles]:
    """Return the rows of X and those of Y, of as many columns; the same array where Y is None."""
    rows = double_rows(X)
    others = rows if Y is None else double_rows(Y)
    check_same_columns(rows, others)
    return rows, others


def check_same_columns(X: Any, Y: Any) -> None:
    """Raise unless both have as many columns."""
    if Y.shape[1] != X.shape[1]:
        raise ValueError(
            f"Y has {counted(Y.shape[1], 'column')}, but X has {X.shape[1]}; pass the same columns "
            "in both"
        )


def row_norms(X: Doubles) -> Doubles:
    """Norms of rows of any size: squares neither overflow nor vanish."""
    with np.errstate(over="ignore"):
        norms: Doubles = np.sqrt(np.einsum("ij,ij->i", X, X))
    far = np.flatnonzero(~((norms > _LEAST_NORM) & (norms < 1 / _LEAST_NORM)))
    if far.size and X.shape[1]:
        rows, power = _near_one(X[far])
        with np.errstate(over="ignore"):
            norms[far] = np.ldexp(np.sqrt(np.einsum("ij,ij->i", rows, rows)), power)
    return norms


def _near_one(X: Doubles) -> tuple[Doubles, Integers]:
    """Return rows with a largest entry of 1/2 to 1, and of each which power of 2 this took."""
    power = np.frexp(np.abs(X).max(axis=1))[1]
    return np.ldexp(X, -power[:, None]), power


# What rounding to float32 or to six digits may do to the norm of a unit row.
_OFF_SPHERE = 1e-5


def check_unit_norms(norms: Doubles, name: str = "X", first: int = 0) -> None:
    """Raise unless norms are about 1, naming the row; `first` is the number of the first.

    All who call it divide rows by their norms.
    """
    off = np.abs(norms - 1)
    if off.max(initial=0.0) > _OFF_SPHERE:
        worst = int(off.argmax())
        raise ValueError(
            f"row {first + worst} of {name} has norm {norms[worst]:.9g}, but this kernel is "
            "defined on the unit sphere; divide every row by its norm "
            "(sklearn.preprocessing.normalize)"
        )


def unit_rows(X: Doubles, norms: Doubles) -> Doubles:
    """Unit rows; a row of zeros stays one."""
    units: Doubles = X / np.where(norms > 0, norms, 1.0)[:, None]
    far = np.flatnonzero(((norms > 0) & (norms < _EXACT_NORM)) | np.isinf(norms))
    if far.size:
        rows = _near_one(X[far])[0]
        units[far] = rows / row_norms(rows)[:, None]
    return units


def cosines(X: Doubles, Y: Doubles, same: bool) -> Doubles:
    """Cosines of unit rows; exactly 1 on the diagonal, where some kernels have a square root."""
    t: Doubles = np.clip(X @ Y.T, -1.0, 1.0)
    if same:
        np.fill_diagonal(t, np.where(X.any(axis=1), 1.0, 0.0))
    return t
