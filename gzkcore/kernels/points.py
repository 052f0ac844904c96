"""Rows as kernels read them: in double, with their norms and angles."""

from typing import Any

import numpy as np

from gzkcore._util.typing import Data, Doubles, Integers
from gzkcore._util.validation import as_doubles, check_sparse, raise_not_finite
from gzkcore._util.wording import counted

# Squares of numbers below this, or above one over it, lose digits.
_LEAST_NORM = 1e-140
# Norms below this have lost digits themselves.
_EXACT_NORM = 1e-300
# Norms of unit rows differ from 1 by up to this much, by rounding to float32 or to six digits.
_OFF_SPHERE = 1e-5


def double_rows(X: Data) -> Doubles:
    """Return the rows of X, dense or sparse, as an array of doubles, or raise.

    It is stored row by row, so that the bits of sums over columns do not depend on the layout of X.
    """
    check_sparse(X)
    rows = as_doubles("X", X, "rows of numbers", order="C")
    check_rows_shape(rows.shape)
    raise_not_finite(rows)
    return rows


def check_rows_shape(shape: tuple[int, ...]) -> None:
    """Raise unless the shape has two dimensions."""
    if len(shape) != 2:
        raise ValueError(f"X has shape {shape}; pass an array of shape (n_samples, n_features)")


def double_pair(X: Data, Y: Data | None) -> tuple[Doubles, Doubles]:
    """Return the rows of X and of Y, with equally many columns; if Y is None, X twice."""
    rows = double_rows(X)
    others = rows if Y is None else double_rows(Y)
    check_same_columns(rows, others)
    return rows, others


def check_same_columns(X: Any, Y: Any) -> None:
    """Raise unless both have equally many columns."""
    if Y.shape[1] != X.shape[1]:
        raise ValueError(
            f"Y has {counted(Y.shape[1], 'column')}, but X has {X.shape[1]}; pass the same columns "
            "in both"
        )


def row_norms(X: Doubles) -> Doubles:
    """Return the norms of rows, without overflow or underflow of squares."""
    with np.errstate(over="ignore"):
        norms: Doubles = np.sqrt(np.einsum("ij,ij->i", X, X))
    far = np.flatnonzero(~((norms > _LEAST_NORM) & (norms < 1 / _LEAST_NORM)))
    if far.size and X.shape[1]:
        rows, power = _near_one(X[far])
        with np.errstate(over="ignore"):
            norms[far] = np.ldexp(np.sqrt(np.einsum("ij,ij->i", rows, rows)), power)
    return norms


def _near_one(X: Doubles) -> tuple[Doubles, Integers]:
    """Return rows scaled to a largest entry in [1/2, 1), and for each row the power of 2."""
    power = np.frexp(np.abs(X).max(axis=1))[1]
    return np.ldexp(X, -power[:, None]), power


def check_unit_norms(norms: Doubles, name: str = "X", first: int = 0) -> None:
    """Raise unless norms are about 1, naming the row; `first` is the number of the first row.

    The caller still divides the rows by their norms.
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
    """Return rows divided by their norms; a row of zeros remains."""
    units: Doubles = X / np.where(norms > 0, norms, 1.0)[:, None]
    far = np.flatnonzero(((norms > 0) & (norms < _EXACT_NORM)) | np.isinf(norms))
    if far.size:
        rows = _near_one(X[far])[0]
        units[far] = rows / row_norms(rows)[:, None]
    return units


def cosines(X: Doubles, Y: Doubles, same: bool) -> Doubles:
    """Return cosines of unit rows; exactly 1 on the diagonal, where kernels may have a root."""
    t: Doubles = np.clip(X @ Y.T, -1.0, 1.0)
    if same:
        np.fill_diagonal(t, np.where(X.any(axis=1), 1.0, 0.0))
    return t
