"""The kinds of columns, in the order in which they are tried."""

from .category import Category
from .cells import Cells
from .column import Column
from .date import Date
from .left_out import LeftOut
from .number import Number

KINDS: tuple[type[Column], ...] = (LeftOut, Category, Date, Number)


def column_of(cells: Cells) -> Column:
    """Return the column that cells make."""
    return next(made for kind in KINDS if (made := kind.of(cells)) is not None)
