"""The text of CSV files, compressed or not, and its division into records."""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by how such files begin
_QUOTED = rb'(?<![^,;\t\r\n])"(?:[^"]++|"")*+"'  # where a value begins, whatever the delimiter
_HEADER = re.compile(rb"""(?:[^"\r\n]++|%b|")*+(?P<end>\r\n?|\n)""" % _QUOTED)
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the begin of files


# What is often taken for a table, by the ending of its name, and what to do.
SHEET = "is a spreadsheet; save it as CSV in the program that made it"
ARCHIVE = "is an archive; unpack it, and give the table in it"
PICTURE = "is a picture, not a table; give the .csv file of its numbers"
DOCUMENT = "is a document, not a table; give the .csv file of its numbers"
MODEL = "is a model that gzkcore saved, not a table"
NO_TABLES = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".numbers"), SHEET),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), ARCHIVE),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".tif", ".tiff"), PICTURE),
    **dict.fromkeys((".pdf", ".doc", ".docx", ".odt"), DOCUMENT),
    ".gzk": MODEL,
}
# The same by the first bytes, of files whose names end as those of text.
FIRST_BYTES = {
    b"\x89PNG": PICTURE, b"\xff\xd8\xff": PICTURE, b"GIF8": PICTURE, b"%PDF-": DOCUMENT,
    b"\xd0\xcf\x11\xe0": SHEET, b"PK\x03\x04": ARCHIVE,
}  # fmt: skip


def refuse_by_name(path: Path) -> None:
    """Raise ValueError if a name ends as those of pictures, spreadsheets or archives do."""
    if what := NO_TABLES.get(path.suffix.lower()):
        raise ValueError(f"{path} {what}")


def refuse_by_content(path: Path, head: bytes) -> None:
    """Raise ValueError if a file begins as pictures, spreadsheets or archives do."""
    for first, what in FIRST_BYTES.items():
        if head.startswith(first):
            is_sheet = what == ARCHIVE and any(part in head for part in (b"xl/", b".spreadsheet"))
            raise ValueError(f"{path} {SHEET if is_sheet else what}")


def header_in(head: bytes) -> tuple[bytes, bytes] | None:
    """Return the first record of a text and its line end; None if there is no such end yet.

    A quoted name may hold line ends.
    """
    mark = len(_MARK) if head.startswith(_MARK) else 0
    found = _HEADER.match(head[mark:])
    # The last byte may be half of a line end.
    if found is None or (mark + found.end("end") == len(head) and found["end"] == b"\r"):
        return None
    return head[: mark + found.end()], found["end"]


def delimiter_of(header: str) -> str:
    """Return what separates names, of those that are not quoted."""
    bare = re.sub(_QUOTED.decode(), "", header)
    return max(",;\t", key=bare.count)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[tuple[Callable[[int], bytes], Callable[[], float]]]:
    """Open a file, compressed or not; give what reads bytes and what tells the share read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
        codec = next((name for magic, name in CODECS.items() if head.startswith(magic)), "")
        file.seek(0)
        if not codec:
            yield file.read, lambda: file.tell() / size
            return
        import pyarrow as pa

        try:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream.read, lambda: min(file.tell() / size, 1.0)
        except (OSError, pa.ArrowException) as error:
            if getattr(error, "filename", None):
                raise
            raise ValueError(f"{path} is not all of a {codec} file: {error}") from None


def end_of_records(block: bytes, delimiter: str, line_end: bytes) -> int:
    """Return where the last record ends that is whole in a block; 0 if none is.

    A quotation mark opens a value only where that begins: inches within a value open nothing.
    """
    if b'"' not in block:
        return block.rfind(line_end) + 1
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    quoted = rb'(?<![^%b])"(?:[^"]++|"")*+"' % ends
    record = rb'(?:[^"\r\n]++|%b|(?<=[^%b])")*+(?:\r\n|\n|\r(?!\Z))' % (quoted, ends)
    whole = re.match(rb"(?:%b)*+" % record, block)
    return whole.end() if whole else 0


def records(block: bytes, delimiter: str) -> list[bytes]:
    """Split bytes into records with their line ends; a quoted value may hold line ends."""
    if b'"' not in block:
        return block.splitlines(keepends=True)
    quoted = rb'(?<![^%b\r\n])"(?:[^"]++|"")*+"' % re.escape(delimiter.encode())
    record = rb'(?:[^"\r\n]++|%b|")*+(?:\r\n|[\r\n]|\Z)' % quoted
    return re.findall(record, block)[: None if block[-1:] not in b"\r\n" else -1]
