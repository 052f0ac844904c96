"""What every kind of column provides: the protocol that `TableEncoder` relies on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.remark import Remark
from gzkcore._util.state import ints, sequence, stored, text
from gzkcore._util.typing import Doubles
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted, named_columns
from gzkcore.rows.text import TEXT
from gzkcore.rows.values import Values

from .cells import Cells


class Drift:
    """How new rows differ from the fit in a column; rows may be added piece by piece."""

    def __init__(self, column: "Column") -> None:
        self.column, self.n_rows, self.n_missing = column, 0, 0

    def add(self, values: Values, unknown: NDArray[np.bool_]) -> None:
        """Add the values of rows, as `Column.read` returns them, and which of them are unknown."""
        self.n_rows += len(values)
        if unknown.any():
            own = values.reshape(unknown.shape)
            gone = unknown & ((own == "") if own.dtype == object else np.isnan(own))
            self.n_missing += int(gone.any(axis=1).sum())

    def remarks(self, row: str = "row {}", start: int = 0) -> list[Remark]:
        """Return what is unlike the fit; rows are counted from `start`."""
        if not self.n_missing:
            return []
        names, rows = self.column.names, f"{self.n_missing:,} of {counted(self.n_rows, 'row')}"
        sentence = f"{named_columns(names)}: no value in {rows}, but in every row of the fit"
        return [Remark("missing", names, sentence, self.column.FILLED)]


class Column(ABC):
    """A column of a table, or two that are a place, as the fit has found it.

    A kind is one subclass, whole in its file: what values make it one (`of`), its encoded columns
    (`encode`) with their names and groups (`parts`) and derivatives (`slopes`), what there is to
    say of it (`remarks`), how new rows may differ from the fit (`drift`), and what files of models
    keep (`_state`).

    Attributes
    ----------
    names : list of str
        Of the input columns that it is made of: one, of a place two.
    inputs : ndarray of int
        Their numbers in the table.
    doubts : list of Remark
        What is doubtful in the rows of the fit; they were warned of. Files don't keep them.
    """

    _state = stored(names=sequence(text()), inputs=ints(None))

    kind: ClassVar[str]
    HOLDS: ClassVar[tuple[str, ...]] = ()  # what cells of this kind hold
    CHOICES: ClassVar[tuple[str, ...]] = ()  # by which users may choose this kind
    FILLED: ClassVar[str] = "the median is taken"  # what is done without a value
    IN_FILES: ClassVar[str] = TEXT  # what files must hold for it, see `gzkcore.rows.frames`
    doubts: Sequence[Remark] = ()

    def __init__(self, name: str, place: int) -> None:
        self.names, self.inputs = [name], np.array([place])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.names))})"

    @property
    def name(self) -> str:
        """The name of the only, or the first, input column."""
        return self.names[0]

    @classmethod
    def of(cls, cells: Cells) -> "Column | None":
        """Return the column that cells make, None if they are of another kind."""
        if cells.holds not in cls.HOLDS:
            return None
        made = cls(cells.name, cells.place)
        made.learn(cells)
        return made

    @classmethod
    def as_chosen(cls, cells: Cells) -> Cells:
        """Return cells that a user has chosen to be of this kind as such, or raise."""
        return cells

    def learn(self, cells: Cells) -> None:
        """Learn from the cells of the fit how to encode others."""
        raise NotImplementedError

    @abstractmethod
    def parts(self) -> list[tuple[str, list[str]]]:
        """Return the groups of encoded columns: the kind of each group, and its columns' names.

        A kernel may have a length for each group. "number" and "date" may have a linear trend,
        "period" is left out if it hardly matters, "missing" marks rows that were filled in, and
        "levels" may have lengths of their own; any other kind only groups.
        """

    def own_lengths(self, kind: str, width: int) -> int:
        """Return how many columns of a group may have a length of their own; 0: all share one."""
        return 0

    @property
    def encoded_names(self) -> list[str]:
        """The names of the encoded columns."""
        return [name for _, names in self.parts() for name in names]

    def read(self, *cells: Cells) -> Values:
        """Return the values of new rows in the form of those of the fit, or raise."""
        return cells[0].values

    @abstractmethod
    def encode(self, values: Values) -> Doubles:
        """Return encoded rows (n, n_columns) of values that `read` has returned."""

    def slopes(self, values: Values) -> Doubles | None:
        """Return derivatives (n, n_inputs, n_columns) of the encoded columns by the input columns.

        NaN where a value is missing; None if the column has none.
        """
        return None

    def unknown(self, values: Values) -> NDArray[np.bool_]:
        """Return which values (n, n_inputs) the fit has seen nothing like."""
        return np.zeros((len(values), len(self.names)), dtype=bool)

    def extremes(self) -> Doubles:
        """Return encodings far apart that an unknown number may have; none if nothing is known."""
        return np.empty((0, len(self.encoded_names)))

    def drift(self) -> Drift:
        """Return what collects how new rows differ from the fit."""
        return Drift(self)

    def remarks(self) -> list[Remark]:
        """Return what was done to the column."""
        return []

    def doubt(self, remark: Remark | None) -> None:
        """Warn of what is doubtful in the column, if anything is, and keep it."""
        if remark is not None:
            self.doubts = [*self.doubts, remark]
            warn(remark)
