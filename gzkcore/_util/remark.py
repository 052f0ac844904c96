"""Remarks: records of what a fit did, and of what is doubtful in the columns of a table.

A remark is a warning too, so that what warns, what reports say and what the command prints are one
record: `warn(remark)`.
"""

from collections.abc import Sequence
from typing import Any

from .state import sequence, stored, text


class Remark(UserWarning):
    """What is to be said of some columns.

    Parameters
    ----------
    kind : str
        What is remarked on, such as "zone" or "constant", for programs.
    columns : sequence of str
    sentence : str
        For people, without the full stop if a remedy follows.
    remedy : str
        What to do about it; "" if nothing need be done.
    """

    _state = stored(kind=text(), columns=sequence(text()), sentence=text(), remedy=text())

    def __init__(
        self, kind: str, columns: Sequence[str] = (), sentence: str = "", remedy: str = ""
    ) -> None:
        super().__init__(kind, columns, sentence, remedy)  # by which it is pickled
        self.kind, self.columns, self.sentence, self.remedy = kind, [*columns], sentence, remedy

    def __str__(self) -> str:
        return f"{self.sentence}; {self.remedy}" if self.remedy else self.sentence

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return dict(vars(self))
