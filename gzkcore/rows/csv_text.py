"""The text of CSV files, compressed or not, in any encoding, and its division into records."""

import codecs
import contextlib
import csv
import itertools
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from .values import THOUSANDS, has_decimal_comma, is_missing, is_number, may_be_thousands

ROWS = 200  # so many rows are inspected before all are read
MOST_UNITS = 3  # no more lines below the names are of units
FEWEST_BELOW = 5  # a line with fewer rows below it is not of units
CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by the first bytes of a file
_QUOTED = rb'(?<![^,;\t|\r\n])"(?:[^"]++|"")*+"'  # a quoted value, for any delimiter
_HEADER = re.compile(rb"""(?:[^"\r\n]++|%b|")*+(?P<end>\r\n?|\n)""" % _QUOTED)
# Lines that begin with #, and blank lines below them.
_COMMENTS = re.compile(rb"(?:(?P<last>#[^\r\n]*+(?P<end>\r\n?|\n))[\r\n]*+)++")
# A first line as Excel writes it, or a logger of Campbell.
_SEP = re.compile(rb'(?:"?sep=(.)"?|"?TOA5"?,[^\r\n]*)(?:\r\n?|\n)', re.IGNORECASE)
# Spaces that only align values in columns.
ALIGNING = re.compile(rb"(?m)^ +| +(?= |\r?$)")
# Files of buoys have such columns for the time, zeros before numbers, and MM for none.
OF_BUOYS = frozenset({"MM", "DD", "hh"})
_MARK = b"\xef\xbb\xbf"  # files may begin with this mark of UTF-8
_NO_WORD = re.compile(rb"[\s,;|\"]")  # these separate words
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # files may begin with these marks of UTF-16
OTHER = "windows-1252"  # bytes that are not UTF-8 are decoded so, unless an encoding is named


# Files that are often taken for tables, by their ending, and what to do.
SHEET = "is a spreadsheet; save it as .xlsx or as CSV in the program that made it"
ARCHIVE = "is an archive; unpack it, and give the table in it"
PICTURE = "is a picture, not a table; give the .csv file of its numbers"
DOCUMENT = "is a document, not a table; give the .csv file of its numbers"
BINARY = "is a file of {}, not text; save the table as CSV"
RENAMED = "is a file of {0}, not text; let its name end with {1}"
MARKUP = "is a page of HTML or XML; open it in a spreadsheet program, and save the table as CSV"
JSON = (
    "is JSON; write an object in each line, as pandas does by to_json(path, orient='records', "
    "lines=True), and let its name end with .jsonl"
)
MODEL = "is a model that gzkcore saved, not a table"
NO_TABLES = {
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), SHEET),
    **dict.fromkeys((".html", ".htm", ".xml"), MARKUP),
    ".json": JSON,
    ".geojson": JSON,
    **dict.fromkeys((".tar", ".tgz", ".7z", ".rar"), ARCHIVE),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".tif", ".tiff"), PICTURE),
    **dict.fromkeys((".pdf", ".doc", ".docx", ".odt"), DOCUMENT),
    ".gzk": MODEL,
}
# The same by the first bytes, for files with the ending of text.
FIRST_BYTES = {
    b"\x89PNG": PICTURE, b"\xff\xd8\xff": PICTURE, b"GIF8": PICTURE, b"%PDF-": DOCUMENT,
    b"\xd0\xcf\x11\xe0": SHEET, b"PK\x03\x04": ARCHIVE, b"7z\xbc\xaf": ARCHIVE,
    b"Rar!\x1a": ARCHIVE,
    b"\x89HDF": BINARY.format("HDF5"), b"SQLite format 3": BINARY.format("SQLite"),
    b"PAR1\x15": RENAMED.format("Parquet", ".parquet"),
    b"\x93NUMPY": RENAMED.format("NumPy", ".npy"),
}  # fmt: skip
FIRST_TEXT = {
    re.compile(rb"<(?:!doctype|html|head|body|table|\?xml)", re.IGNORECASE): MARKUP,
    re.compile(rb'(?:\[\s*)?\{\s*"'): JSON,
}


def refuse_by_content(path: Path, head: bytes) -> None:
    """Raise ValueError if a file begins as pictures, spreadsheets or archives do."""
    for first, what in FIRST_BYTES.items():
        if head.startswith(first):
            is_sheet = what == ARCHIVE and any(part in head for part in (b"xl/", b".spreadsheet"))
            raise ValueError(f"{path} {SHEET if is_sheet else what}")
    for begin, what in FIRST_TEXT.items():
        if begin.match(head.removeprefix(_MARK).lstrip()):
            raise ValueError(f"{path} {what}")


class Header(NamedTuple):
    """The record that names the columns of a text, the bytes before it, and its line end.

    If the record is a comment, `values` is the record below it.
    """

    before: bytes
    record: bytes
    end: bytes
    values: str = ""


def header_in(head: bytes, *, ended: bool, skip: int = 0) -> Header | None:
    """Return the header of a text below some lines; None if more of it must be read to know it.

    It is the first record, whose quoted names may hold line ends. Lines before it that begin with #
    are comments. The last comment is the header itself if it has as many names as there are values
    below it, and these are numbers or no space follows the #. If all values are numbers, names may
    be separated otherwise than values. With `ended` there is no more to read, and the header is
    never None.
    """
    start = len(_MARK) if head.startswith(_MARK) else 0
    if skip:
        above = re.match(rb"(?:[^\r\n]*(?:\r\n?|\n)){%d}" % skip, head)
        if above is None and not ended:
            return None
        start = len(head) if above is None else above.end()
    elif mark := _SEP.match(head, start):
        start = mark.end()
    comments = _COMMENTS.match(head, start)
    first = start if comments is None else comments.end()
    before, text = head[:first], head[first:]
    record = _HEADER.match(text)
    # The last byte may be half of a line end.
    if record and (ended or record.end() < len(text) or record["end"] != b"\r"):
        header = Header(before, record[0], record["end"])
    elif ended:
        header = Header(before, text, b"\n")
    else:
        return None
    if comments is None:
        return header
    values = header.record.decode("utf-8", "replace").rstrip("\r\n")
    last = Header(head[: comments.start("last")], comments["last"], comments["end"], values)
    above = re.search(rb"#[^\r\n]+(\r\n?|\n)\Z", last.before)  # units of these names are repeated
    words = last.record.split()
    if above and (len({*words}) < len(words) or {*above[0].decode("latin-1").split()} >= OF_BUOYS):
        names = Header(head[: above.start()], above[0], above[1], values)
        last = names if is_aligned(names) else last
    return last if not values or _between_names(last) else header


def _between_names(header: Header) -> str:
    """Return what separates the names in a comment, "" if it names no columns, see `header_in`."""
    if is_aligned(header):
        return " "
    delimiter, comment = delimiter_of(header.values), _without_mark(header)
    values = header.values.split(delimiter)
    numbers = [is_number(value) or has_decimal_comma(value) for value in values]
    if delimiter != " " and comment.count(delimiter) == len(values) - 1:
        is_name = len(values) > 1 and header.record[1:2] not in (b" ", b"\t", b"#")
        return delimiter if is_name or any(numbers) else ""
    known = [number or is_missing(value) for number, value in zip(numbers, values, strict=True)]
    if not any(numbers) or not all(known):
        return ""
    marks = [m for m in ",;\t " if len(values_in(comment.strip(" "), m)) == len(values)]
    return marks[0] if marks else ""


def is_aligned(header: Header) -> bool:
    """Say whether the values below a comment, and the names in it, stand between spaces."""
    words, names = header.values.split(), header.record.lstrip(b"# ").split()
    is_other = "\t" in header.values or re.search(rb"[,;\t]", header.record) is not None
    return not is_other and len(names) == len(words) < 2 * sum(map(is_number, words))


def _without_mark(header: Header) -> str:
    """Return a comment without its line end and its #, if a space stands behind that."""
    return re.sub("^#+ +", "", header.record.decode("utf-8", "replace").rstrip("\r\n"))


def values_in(line: str, delimiter: str = "") -> list[str]:
    """Return the values in a line, without spaces around them; none if it is too long."""
    delimiter = delimiter or delimiter_of(line)
    with contextlib.suppress(csv.Error):
        values = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        return [value.strip() for value in values]
    return []


def names_in(header: Header) -> tuple[list[str], str, str]:
    """Return the names of columns, what separates values, and what separates the names."""
    if not header.values:
        text = header.record.decode("utf-8-sig", "replace").rstrip("\r\n")
        mark = _SEP.search(header.before)
        delimiter = mark[1].decode() if mark and mark[1] else delimiter_of(text)
        reader = csv.reader([text], delimiter=delimiter, skipinitialspace=True)
        return [name.strip() for name in next(reader)], delimiter, delimiter
    if is_aligned(header):
        return header.record.decode("utf-8", "replace").lstrip("# ").split(), " ", " "
    between = _between_names(header)
    names = values_in(_without_mark(header).strip(" "), between)
    return names, delimiter_of(header.values), between


def refuse_numbers(path: Path, names: list[str], values: str) -> None:
    """Raise ValueError if numbers stand in place of names.

    Whole numbers may be names, such as years, or those of pandas.
    """
    if all(map(is_number, names)) and not all(name.strip().isdecimal() for name in names):
        raise ValueError(
            f"{path}: the first line has numbers, {values[:40]!r}, but must name the columns; "
            "write a line of names above it, such as a,b,y"
        )


def delimiter_of(header: str) -> str:
    """Return what separates the names in a header: spaces for R's names and for numbers only."""
    bare = re.sub(_QUOTED.decode(), "", header)
    delimiter = max(",;\t|", key=bare.count)
    words = bare.split()
    of_r = re.fullmatch(r'"[^"]*"(?: (?:"[^"]*"|[^\s,;"]+))+', header.strip()) is not None
    of_numbers = delimiter not in bare and len(words) > 1 and all(map(is_number, words))
    return " " if of_r or of_numbers else delimiter


def check_encoding(name: str) -> None:
    """Raise ValueError unless Python knows an encoding of this name."""
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(
            f"the encoding {name} is unknown; name one such as utf-8, windows-1252, utf-16 or "
            "shift_jis"
        ) from None


def _in_other(error: Any) -> tuple[str, int]:
    """Decode bytes that are not UTF-8, or raise UnicodeDecodeError."""
    return error.object[error.start : error.end].decode(OTHER), error.end


codecs.register_error(OTHER, _in_other)


def _utf_16_of(head: bytes) -> str:
    """Return the encoding of UTF-16 text, which has a mark or a zero in every other byte, or ""."""
    if head.startswith(_UTF_16):
        return "utf-16"
    even, odd = (head[place:16:2].strip(b"\0") for place in (0, 1))
    if not even and odd:
        return "utf-16-be"
    return "utf-16-le" if even and not odd and len(head) > 1 else ""


class AsUtf8:
    """Reads text of any encoding as UTF-8; without a name of the encoding it is recognised."""

    def __init__(self, read: Callable[[int], bytes], encoding: str) -> None:
        self._read, self._encoding = read, encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self.start = b""  # the first bytes, as they are
        self.other = ""  # the first word that is not UTF-8

    def read(self, size: int) -> bytes:
        """Return about so many bytes, none at the end."""
        raw = self._read(size)
        if self._decoder is None:
            self.start = raw
            self._encoding = self._encoding or _utf_16_of(raw)
            self._decoder = codecs.getincrementaldecoder(self._encoding or "utf-8")()
        if not self._encoding and raw.isascii() and not self._decoder.getstate()[0]:
            return raw
        try:
            text = self._decoder.decode(raw, not raw)
        except UnicodeDecodeError as error:
            if self._encoding:
                raise
            parts = _NO_WORD.split(error.object[: error.start])[-1], error.object[error.start :]
            word = parts[0] + _NO_WORD.split(parts[1], 1)[0]
            self.other, self._decoder.errors = word.decode(errors=OTHER), OTHER
            text = self._decoder.decode(raw, not raw)
        return text.encode() if text or not raw else self.read(size)  # half a character


@contextlib.contextmanager
def opened(path: Path, encoding: str = "") -> Iterator[tuple[AsUtf8, Callable[[], float]]]:
    """Open a file, compressed or not; give a reader of its text, and a function: the share read."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file, _unpacked(path, file) as stream:
            yield AsUtf8(stream.read, encoding), lambda: min(file.tell() / size, 1.0)
    except UnicodeDecodeError as error:
        wrong = error.object[error.start : error.start + 8]
        known = encoding or f"UTF-8 or {OTHER}"
        raise ValueError(
            f"{path} is not text in {known}, which {wrong!r} is no part of; name another "
            "--encoding, such as shift_jis"
        ) from None


@contextlib.contextmanager
def _unpacked(path: Path, file: IO[bytes]) -> Iterator[Any]:
    """Give a reader of the bytes of an open file, compressed or not."""
    head = file.read(4)
    codec = next((name for magic, name in CODECS.items() if head.startswith(magic)), "")
    file.seek(0)
    if path.suffix.lower() == ".zip":
        with _only_member(path, file) as member:
            yield member
        return
    if not codec:
        yield file
        return
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(file, codec) as stream:
            yield stream
    except (OSError, pa.ArrowException) as error:
        if getattr(error, "filename", None):
            raise
        raise ValueError(f"{path} is not all of a {codec} file: {error}") from None


@contextlib.contextmanager
def _only_member(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open the only file in an archive; files that macOS adds don't count."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = [
                name for name in archive.namelist()
                if not name.startswith("__MACOSX/") and not name.endswith("/")
            ]  # fmt: skip
            if len(names) != 1:
                raise ValueError(f"{path} has {len(names)} files; unpack it, and give one of them")
            with archive.open(names[0]) as member:
                yield member
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
        raise ValueError(f"{path} can't be unpacked: {error}") from None


def end_of_records(block: bytes, delimiter: str, line_end: bytes) -> int:
    """Return the end of the last whole record in a block, 0 if there is none.

    A quotation mark opens a value only at its begin: inches within a value open nothing.
    """
    if b'"' not in block:
        return block.rfind(line_end) + 1
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    quoted = rb'(?<![^%b])"(?:[^"]++|"")*+"' % ends
    record = rb'(?:[^"\r\n]++|%b|(?<=[^%b])")*+(?:\r\n|\n|\r(?!\Z))' % (quoted, ends)
    whole = re.match(rb"(?:%b)*+" % record, block)
    return whole.end() if whole else 0


def records(block: bytes, delimiter: str) -> list[bytes]:
    """Split bytes into records with their line ends; quoted values may hold line ends."""
    if b'"' not in block:
        return block.splitlines(keepends=True)
    quoted = rb'(?<![^%b\r\n])"(?:[^"]++|"")*+"' % re.escape(delimiter.encode())
    record = rb'(?:[^"\r\n]++|%b|")*+(?:\r\n|[\r\n]|\Z)' % quoted
    return re.findall(record, block)[: None if block[-1:] not in b"\r\n" else -1]


# ---- the first rows


def first_rows(text: bytes, delimiter: str, *, ended: bool) -> list[list[str]]:
    """Return the values of the first rows of a text, whose last line may be cut."""
    lines = text.decode("utf-8", "replace").splitlines(keepends=True)
    lines = lines[: ROWS if ended or len(lines) > ROWS else -1]
    with contextlib.suppress(csv.Error):
        return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if row]
    return []


def named_rows(names: list[str], rows: list[list[str]]) -> list[str]:
    """Return names, and "" for a first column that names rows, as R writes it, or an empty last."""
    if not rows or {len(row) for row in rows} != {len(names) + 1}:
        return names
    if not any(row[-1] for row in rows):
        return [*names, ""]
    return ["", *names] if len({row[0] for row in rows}) == len(rows) else names


def distinct(names: list[str]) -> list[str]:
    """Return distinct names: the second a becomes a.1, as in pandas."""
    known, result = {*names}, dict[str, None]()
    numbers = {name: itertools.count(1) for name in known}
    for name in names:
        other = name
        while other in result or (other != name and other in known):
            other = f"{name}.{next(numbers[name])}"
        result[other] = None
    return [*result]


def unit_rows(rows: list[list[str]]) -> int:
    """Count the first rows that hold units: no numbers, in columns of numbers."""
    for count in range(min(MOST_UNITS, len(rows)), 0, -1):
        if all(_are_units(row, rows[count:]) for row in rows[:count]):
            return count
    return 0


def _are_units(row: list[str], others: list[list[str]]) -> bool:
    if len(others) < FEWEST_BELOW or {len(other) for other in others} != {len(row)}:
        return False
    numbers = [
        j for j in range(len(row))
        if (below := [other[j] for other in others if not is_missing(other[j])])
        and all(is_number(value) or has_decimal_comma(value) for value in below)
    ]  # fmt: skip
    units = [row[j] for j in numbers if not is_missing(row[j])]
    return (
        bool(units)
        and not any(is_number(unit) or has_decimal_comma(unit) for unit in units)
        and (len(units) > 1 or len(numbers) == 1)
    )


def decimal_comma_in(rows: list[list[str]]) -> str:
    """Return a number with a decimal comma, if the first rows have such, and none with points."""
    values = {value.strip() for row in rows for value in row}
    points = [v for v in values if "." in v and is_number(v) and not re.match(THOUSANDS % "[.]", v)]
    commas = sorted(v for v in values if has_decimal_comma(v) and not may_be_thousands(v))
    return "" if points or not commas else commas[0]
