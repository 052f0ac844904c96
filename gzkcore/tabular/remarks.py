"""Remarks on what a fit did to the columns of a table.

Columns with the same remark share a sentence. Doubts are remarks, too: see
`Column.doubt`.
"""

from collections.abc import Iterable

from gzkcore._util.remark import Remark
from gzkcore._util.wording import in_list, some_of

MOST_NAMED = 8  # columns in a sentence


def done(kind: str, column: str, words: str) -> Remark:
    """Return the remark that something was done to a column: "Columns {words}: {column}."."""
    return Remark(kind, [column], words)


def together(remarks: Iterable[Remark]) -> list[Remark]:
    """Return one remark of each kind and words, with all its columns, in the order of the first."""
    alike: dict[tuple[str, str], list[Remark]] = {}
    for remark in remarks:
        alike.setdefault((remark.kind, remark.sentence), []).append(remark)
    return [_joined(of_kind) for of_kind in alike.values()]


def _joined(remarks: list[Remark]) -> Remark:
    names = [name for remark in remarks for name in remark.columns]
    some = some_of([*map(in_list, names)], MOST_NAMED)
    return Remark(remarks[0].kind, names, f"Columns {remarks[0].sentence}: {some}.")
