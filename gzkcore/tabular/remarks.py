"""Remarks: what a fit did to the columns of a table, and what it doubts.

A remark is a record. Doubts are warned of when they arise; what was done is said in reports, where
columns with a remark of the same kind share a sentence.
"""

from collections.abc import Iterable

from gzkcore._util.remark import Remark

MOST_NAMED = 8  # columns in a sentence

# What was done to columns, by kind, in the order of reports.
DONE = {
    "constant": "left out because they are constant",
    "empty": "left out because they have no value",
    "index": "left out because they seem to be a saved index or a comment",
    "names": "left out because nearly every row has a different text",
    "dropped": "left out as asked",
    "logarithms": "encoded by logarithms because they are skewed",
    "ranks": "encoded by ranks because of extreme values",
    "code": "with a number far from all others that repeats, and is taken as it is",
    "dates": "read as dates",
    "periods": "that also give the time of the year, week or day",
    "filled": "whose missing values are filled in",
    "categories": "treated as categories",
    "coded levels": "with too many levels for a column each, which get codes",
    "ordered levels": "whose levels have an order",
    "missing level": "whose missing values are a separate category",
    "places": "treated as places on the globe",
}


def done(kind: str, column: str) -> Remark:
    """Return the remark that something was done to a column."""
    return Remark(kind, [column])


def together(remarks: Iterable[Remark]) -> list[Remark]:
    """Return one remark of each kind of `DONE`, with all its columns, in their order."""
    remarks = list(remarks)
    of_kinds = {kind: [r for r in remarks if r.kind == kind] for kind in DONE}
    return [_joined(kind, alike) for kind, alike in of_kinds.items() if alike]


def _joined(kind: str, remarks: list[Remark]) -> Remark:
    names = [name for remark in remarks for name in remark.columns]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return Remark(kind, names, f"Columns {DONE[kind]}: {', '.join(names[:MOST_NAMED])}{more}.")
