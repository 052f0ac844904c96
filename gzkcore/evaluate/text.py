"""Tables as text."""

from collections.abc import Sequence


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = True
) -> list[str]:
    """Return the lines of a table: the first column to the left, the others to the right or left.

    Examples
    --------
    >>> from gzkcore.evaluate.text import aligned
    >>> aligned(["method", "s"], [["block", "0.1"]])
    ['method    s', 'block   0.1']
    """
    sizes = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for first, *rest in (header, *rows):
        cells = (
            cell.rjust(size) if right else cell.ljust(size)
            for cell, size in zip(rest, sizes[1:], strict=True)
        )
        lines.append("  ".join([first.ljust(sizes[0]), *cells]).rstrip())
    return lines
