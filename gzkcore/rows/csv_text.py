"""The text of CSV files, compressed or not, and its division into records."""

import contextlib
import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .values import has_decimal_comma, is_missing, is_number

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by how such files begin
_QUOTED = rb'(?<![^,;\t\r\n])"(?:[^"]++|"")*+"'  # where a value begins, whatever the delimiter
_HEADER = re.compile(rb"""(?:[^"\r\n]++|%b|")*+(?P<end>\r\n?|\n)""" % _QUOTED)
# Lines that begin with #, and blank ones after these.
_COMMENTS = re.compile(rb"(?:(?P<last>#[^\r\n]*+(?P<end>\r\n?|\n))[\r\n]*+)++")
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the begin of files


# What is often taken for a table, by the ending of its name, and what to do.
SHEET = "is a spreadsheet; save it as CSV in the program that made it"
ARCHIVE = "is an archive; unpack it, and give the table in it"
PICTURE = "is a picture, not a table; give the .csv file of its numbers"
DOCUMENT = "is a document, not a table; give the .csv file of its numbers"
BINARY = "is a file of {}, not text; save the table as CSV"
RENAMED = "is a file of {0}, not text; let its name end with {1}"
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
    b"\xd0\xcf\x11\xe0": SHEET, b"PK\x03\x04": ARCHIVE, b"7z\xbc\xaf": ARCHIVE,
    b"Rar!\x1a": ARCHIVE,
    b"\x89HDF": BINARY.format("HDF5"), b"SQLite format 3": BINARY.format("SQLite"),
    b"PAR1\x15": RENAMED.format("Parquet", ".parquet"),
    b"\x93NUMPY": RENAMED.format("NumPy", ".npy"),
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


class Header(NamedTuple):
    """Where a text names its columns: the bytes before, the record that does so, its line end.

    Of a comment that names columns `values` is the first record of these.
    """

    before: bytes
    record: bytes
    end: bytes
    values: str = ""


def header_in(head: bytes, *, ended: bool) -> Header | None:
    """Return the header of a text; None if more of the text must be read to know it.

    It is the first record, whose quoted names may hold line ends. Of lines before it that begin
    with #, which are comments, the last is the header itself if it has as many names as values
    follow, and these are numbers or no space stands behind the #. Where all values are numbers,
    spaces or other marks may be between the names than between them. With `ended` there is no more
    to read, and the header is never None.
    """
    start = len(_MARK) if head.startswith(_MARK) else 0
    comments = _COMMENTS.match(head, start)
    first = start if comments is None else comments.end()
    found = _record(head, first, ended)
    if found is None or comments is None:
        return found
    values = found.record.decode("utf-8", "replace").rstrip("\r\n")
    last = Header(head[: comments.start("last")], comments["last"], comments["end"], values)
    return last if not values or _between_names(last) else found


def _record(head: bytes, start: int, ended: bool) -> Header | None:
    """Return the record that begins at a place as a header; None if its end is not there yet."""
    before, text = head[:start], head[start:]
    found = _HEADER.match(text)
    # The last byte may be half of a line end.
    if found and (ended or found.end() < len(text) or found["end"] != b"\r"):
        return Header(before, found[0], found["end"])
    return Header(before, text, b"\n") if ended else None


def _between_names(header: Header) -> str:
    """Return what separates the names in a comment, "" if it has none, see `header_in`."""
    delimiter, comment = delimiter_of(header.values), _without_mark(header)
    values = header.values.split(delimiter)
    numbers = [is_number(value) or has_decimal_comma(value) for value in values]
    if delimiter != " " and comment.count(delimiter) == len(values) - 1:
        is_name = len(values) > 1 and header.record[1:2] not in (b" ", b"\t", b"#")
        return delimiter if is_name or any(numbers) else ""
    known = [number or is_missing(value) for number, value in zip(numbers, values, strict=True)]
    if not any(numbers) or not all(known):
        return ""
    with contextlib.suppress(csv.Error):  # of a line that is too long for names
        return next((each for each in ",;\t " if len(_names(comment, each)) == len(values)), "")
    return ""


def _without_mark(header: Header) -> str:
    """Return a comment without its line end and its #, if a space stands behind that."""
    return re.sub("^#+ +", "", header.record.decode("utf-8", "replace").rstrip("\r\n"))


def _names(text: str, delimiter: str) -> list[str]:
    return next(csv.reader([text.strip(" ")], delimiter=delimiter, skipinitialspace=True), [])


def names_in(header: Header) -> tuple[list[str], str, str]:
    """Return the names of columns, what separates values, and what separates the names."""
    if not header.values:
        text = header.record.decode("utf-8-sig", "replace").rstrip("\r\n")
        delimiter = delimiter_of(text)
        return next(csv.reader([text], delimiter=delimiter)), delimiter, delimiter
    between = _between_names(header)
    names = [name.strip() for name in _names(_without_mark(header), between)]
    return names, delimiter_of(header.values), between


def refuse_numbers(path: Path, names: list[str], values: str, delimiter: str) -> None:
    """Raise ValueError if numbers stand where names should, or several spaces between values.

    Whole numbers may be names: years, or those that pandas gives.
    """
    if delimiter == " " and "" in values.split(" "):
        raise ValueError(
            f"{path}: several spaces stand between the values; separate them by one comma, as "
            "np.savetxt does with delimiter=','"
        )
    if all(map(is_number, names)) and not all(name.strip().isdecimal() for name in names):
        raise ValueError(
            f"{path}: the first line has numbers, {values[:40]!r}, but must name the columns; "
            "write a line of names above it, such as a,b,y"
        )


def delimiter_of(header: str) -> str:
    """Return what separates names, of those that are not quoted; of numbers alone maybe spaces."""
    bare = re.sub(_QUOTED.decode(), "", header)
    found = max(",;\t", key=bare.count)
    words = bare.split()
    spaced = found not in bare and len(words) > 1 and all(map(is_number, words))
    return " " if spaced else found


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
