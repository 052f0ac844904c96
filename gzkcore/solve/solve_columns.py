"""Columns of systems that are solved together: their shifts, preconditioners and norms."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import check_not_negatives
from gzkcore._util.wording import counted


class OfColumns:
    """A preconditioner made for some alphas, for columns of which each has one of these.

    Parameters
    ----------
    preconditioner : Preconditioner
    places : ndarray of shape (k,)
        The number of each column's alpha among those that the preconditioner was made for.
    """

    def __init__(self, preconditioner: Any, places: Integers) -> None:
        self.preconditioner, self.places = preconditioner, places

    def __repr__(self) -> str:
        return repr(self.preconditioner)

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R for some of the columns."""
        found: Doubles = self.preconditioner.solve(R, self.places[columns])
        return found


def not_finite(name: str) -> ValueError:
    """Return the error for products with NaN or infinity."""
    return ValueError(
        f"{name} gives numbers that are not finite; NaN or infinity in the rows, or a kernel that "
        "overflows on them (a polynomial of large rows, say): check the rows, or scale them down"
    )


def check_shifts(shifts: ArrayLike, n_columns: int) -> Doubles:
    """Return one shift for each column."""
    found = check_not_negatives("shifts", shifts)
    if found.shape != (n_columns,):
        raise ValueError(
            f"shifts have shape {found.shape}, but targets have {counted(n_columns, 'column')}; "
            "give one shift for each column"
        )
    return found


def check_noise(noise: ArrayLike, n_rows: int) -> Doubles:
    """Return one number > 0 for each row."""
    found = check_not_negatives("noise", noise)
    if found.shape != (n_rows,):
        given = f"={noise!r}" if found.ndim == 0 else ""
        raise ValueError(
            f"noise{given} has shape {found.shape}, but targets have {counted(n_rows, 'row')}; "
            "give one number > 0 for each row, or None for ones"
        )
    if not (found > 0).all():
        raise ValueError(f"noise has the smallest value {found.min():g}; every value must be > 0")
    return found


def dots(A: Doubles, B: Doubles) -> Doubles:
    """Return the products of corresponding columns, to the same bits for any number of threads."""
    found: Doubles = np.einsum("ij,ij->j", A, B)
    return found


def norms(A: Doubles) -> Doubles:
    """Return the norms of the columns."""
    return np.sqrt(dots(A, A))
