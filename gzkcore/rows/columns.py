"""Columns of a file that are read several times, though their text is parsed only once."""

import shutil
import tempfile
from collections.abc import Iterator
from typing import IO, Self

import numpy as np

from gzkcore._util.typing import Doubles

from .files import COMPRESSED, Table

PACKED = 10  # times as much text as bytes, in a compressed file
KEPT_BYTES = 32 << 20  # of parsed numbers, in memory; more go to a temporary file


class Columns:
    """Columns of a table, to be read several times; text is parsed the first time only.

    The numbers of a text file, 8 bytes each, are kept in memory or, if they are many, in a
    temporary file. Where there is no room for one, each reading parses the text anew.
    """

    def __init__(self, table: Table, names: list[str], *, missing: bool = False) -> None:
        self.table, self.names, self.missing = table, names, missing
        self._lengths: list[int] = []  # of the pieces that are kept, once all are
        self._kept: IO[bytes] | None = None
        packed = PACKED if table.path.suffix.lower() in COMPRESSED else 1
        if table.is_text and _has_room(packed * table.path.stat().st_size):
            self._kept = tempfile.SpooledTemporaryFile(KEPT_BYTES)  # noqa: SIM115  see __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._kept is not None:
            self._kept.close()

    def __iter__(self) -> Iterator[tuple[int, Doubles, float]]:
        """Yield (first row, values (n, len(names)), share of the rows read so far)."""
        if self._kept is None:
            return self.table.batches(self.names, missing=self.missing)
        return self._read_again(self._kept) if self._lengths else self._read_and_keep(self._kept)

    def _read_and_keep(self, file: IO[bytes]) -> Iterator[tuple[int, Doubles, float]]:
        file.seek(0)
        lengths = []
        for first, values, done in self.table.batches(self.names, missing=self.missing):
            file.write(values.tobytes())
            lengths.append(len(values))
            yield first, values, done
        self._lengths = lengths

    def _read_again(self, file: IO[bytes]) -> Iterator[tuple[int, Doubles, float]]:
        first, total, width = 0, sum(self._lengths), len(self.names)
        for length in self._lengths:
            file.seek(8 * first * width)  # others may read at the same time
            values = np.frombuffer(file.read(8 * length * width)).reshape(length, width)
            yield first, values, (first + length) / total
            first += length


def _has_room(text_bytes: int) -> bool:
    """Say whether a temporary file can hold the numbers of a text: each was 2 bytes or more."""
    return shutil.disk_usage(tempfile.gettempdir()).free > 4 * text_bytes
