"""Tables in files, read batch by batch: CSV, Parquet, .npy and .npz.

A table has named columns. `batches` yields chosen columns as float64, in order, a few megabytes at
a time. If a value is not a finite number, it raises a `ValueError` that names file, row (counted
from 1, without the header), column and value. `append` writes a copy of the table with additional
columns.
"""

import atexit
import collections
import contextlib
import csv
import datetime
import os
import re
import shlex
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tokenize import TokenError  # of a header that is no Python
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.extras import needs
from gzkcore._util.files import allowed, as_path, meant_file, replacing, reserve
from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.validation import first_not_finite
from gzkcore._util.warn import warn
from gzkcore._util.wording import counted, fitted_to, in_list, named_columns, nearest, some_of

from . import columnar, csv_text
from .index import MOST_ROWS, is_index, may_be_index
from .text import DEFAULT, Reading
from .values import (
    DECIMAL_COMMA,
    BadValueError,
    as_doubles,
    as_number,
    doubtful_point,
    harmless,
    has_decimal_comma,
    is_missing,
    is_number,
    is_of_values,
    may_be_thousands,
    plain_value,
    without_groups,
)

BLOCK_BYTES = 4 << 20  # of text, parsed at a time
HEAD_BYTES = 1 << 16  # of text, that the header is looked for in first
BLOCK_VALUES = 4 << 20  # of the binary formats
FINITE = "finite number"
NO_CODE = "number: it begins with 0, or equals others as a double"
MOST_MISSING = 5  # columns that are named where several are missing
MOST_NAMES = 10  # of columns with the name of another
MOST_SHEETS = 5  # that are named, and columns of each
MOST_LETTERS = 60  # of the name of an only column, which may be a whole line
RECORD_BYTES = 64 << 20  # no record of a CSV file is longer

OTHER_TOLD = (
    "{}: what is not UTF-8 is read as {}, such as {!r}; if that is wrong, name the --encoding, "
    "such as cp850 or shift_jis"
)
LAST_DAY = datetime.date(2024, 12, 31)  # an example
STDIN = ("-", "/dev/stdin")
BEGINS = {b"PAR1": ".parquet", b"ARROW1": ".feather", b'{"': ".jsonl", b"\x93NUMPY": ".npy"}

# Columns of a piece, or the rows of a frame, to new columns of it, of these names and types.
Compute = Callable[[Any], list[NDArray[Any]]]
Types = dict[str, np.dtype[Any]]
COMPRESSED = (".gz", ".zst", ".zip")  # how the names of such files end


def open_table(path: str | os.PathLike[str], reading: Reading = DEFAULT) -> "Table":
    """Open the table in a file, whose ending tells the format, to be read in this way."""
    if reading.encoding:
        csv_text.check_encoding(reading.encoding)
    path, sheet = _sheet_in(as_path(path))
    with allowed("read", path):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # from Python 3.14 on, is_file doesn't tell of permissions
        if str(path) in STDIN or path.is_fifo():
            path = _spooled(path)
        is_folder = path.is_dir()
        if not is_folder and not path.is_file():
            raise ValueError(f"{path}: there is no such file{meant_file(path)}")
        if not is_folder:
            with path.open("rb") as file:
                is_empty = not file.read(1)
    is_packed = path.suffix.lower() in COMPRESSED
    kind = ColumnTable if is_folder else KINDS.get(ending(path) or ".csv" * is_packed)
    if kind is None or (kind is not CsvTable and is_packed):
        if what := csv_text.NO_TABLES.get(path.suffix.lower()):
            raise ValueError(f"{path} {what}")
        text = ", ".join(CsvTable.outputs)
        raise ValueError(
            f"{path}: the name must end with one of {', '.join(KINDS)}; compressed text with "
            f"{text} and one of {', '.join(COMPRESSED)}"
        )
    if not is_folder and is_empty:
        raise ValueError(f"{path} is empty; pass a file with rows")
    if kind is not ArrayTable:
        needs("pyarrow", f"{path}: reading {path.suffix} files", "cli")
    if kind is CsvTable:
        table: Table = CsvTable(path, reading)
    else:
        has_lines = path.suffix.lower() in columnar.SHEETS
        if reading.encoding or (reading.skip_lines and not has_lines):
            what = "an --encoding" if reading.encoding else "lines to skip"
            raise ValueError(f"{path}: only text files have {what}; omit this option")
        table = kind(path, *([sheet, reading.skip_lines] if has_lines else []))
        table.reading = reading
    table.require([*reading.keep])
    table.find_index()
    table.given = Path(f"{path}::{sheet}") if sheet else path
    return table


def _sheet_in(path: Path) -> tuple[Path, str]:
    """Return the path of a file, and of a spreadsheet the name of the sheet behind ::, or ""."""
    book, _, sheet = str(path).partition("::")
    is_sheet = Path(book).suffix.lower() in columnar.SHEETS
    return (Path(book), sheet) if is_sheet else (path, "")


def _spooled(path: Path) -> Path:
    """Copy standard input, or a pipe, to a file that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="gzkcore-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = contextlib.nullcontext(sys.stdin.buffer) if str(path) in STDIN else path.open("rb")
    with source as read_from:
        head = read_from.read(max(map(len, BEGINS)))
        kind = next((kind for begin, kind in BEGINS.items() if head.startswith(begin)), ".csv")
        copy = Path(folder, f"standard input{kind}")
        with copy.open("wb") as file:
            file.write(head)
            shutil.copyfileobj(read_from, file)
    return copy


def ending(path: Path) -> str:
    """Return the ending of a name that tells the format, as .csv of data.csv.gz."""
    path, _ = _sheet_in(path)
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return name.suffix.lower()


class Table:
    """A table in a file: `path`, as `given` with the name of a sheet, and `names` of columns.

    A format says how to cut the file into pieces (`_pieces`), what numbers a piece holds
    (`_numbers`), and how to write a copy (`append`).
    """

    outputs: tuple[str, ...] = ()  # endings that `append` can write
    no_formulas = False  # in copies that are text
    reading = DEFAULT

    def __init__(self, path: Path, names: list[str]) -> None:
        self.path, self.given, self.names = path, path, names
        self.done = 0.0  # the share of the file up to the end of the last piece
        self.notes: list[str] = []  # about the file as a whole
        self.of_numbers: str | None = None  # the column in which any text is taken as missing
        self.apart: dict[str, str] = {}  # columns of other things than values, and what these are
        self.padded: set[str] = set()  # columns whose numbers may begin with 0
        self.words: dict[str, str] = {}  # a word for a missing value of a column
        self.forms: dict[str, list[str]] = {}  # of columns of text, see `text`
        self.axes: dict[str, str] = {}  # columns that are chosen as latitude and longitude
        self.heads: Sequence[list[str]] = ()  # the first lines, by the values in each
        self.orders: Mapping[str, list[Any]] = {}  # the levels of columns whose type orders these
        self.sheets: Mapping[str, list[str]] = {}  # the others of a spreadsheet, by their columns
        self.index: list[str] = []  # columns that seem to be a saved index
        self._saved: list[str] = []  # those that the file calls one
        self.doubtful: set[str] = set()  # columns that nobody named, which may be comments
        self.twice: dict[str, str] = {}  # new names of columns with the name of another, and that
        for name, count in collections.Counter(names).items():
            if count > 1:
                raise ValueError(f"{path}: {count} columns are called {name!r}; rename them")

    def require(self, names: list[str], *, of_model: bool = False) -> None:
        """Raise ValueError for those of `names` that are no columns; a model may ask for them."""
        known = {*self.names}
        missing = [name for name in dict.fromkeys(names) if name not in known]
        if not missing:
            return
        near = nearest(missing[0], self.names)
        names = [in_list(name) for name in self.names[:8]]
        remedy = "its columns are " + ", ".join(names) + ", ..." * (len(self.names) > 8)
        if len(self.names) == 1:
            remedy = f"its only column is {self.names[0][:MOST_LETTERS]!r}"
        if len(missing) > 1:
            what = f"are no {named_columns(missing, MOST_MISSING)}"
        else:
            what = f"is no column {missing[0]!r}"
            if of_model and near:
                what += ", which the model needs"
                remedy = f"there is {near!r}, which looks like it; rename that one"
            elif {*(parts := missing[0].split(","))} <= known:
                remedy = f"these are {len(parts)} columns; name one"
            elif near:
                remedy = f"did you mean {near!r}?"
        raise ValueError(f"{self.path}: there {what}; {remedy}{self._doubt(missing[0])}")

    def find_index(self) -> None:
        """Find the columns that seem to be a saved index, but for those to keep."""
        self.index = [
            name
            for place, name in enumerate(self.names)
            if ((saved := name in self._saved) or may_be_index(name, place))
            and name not in self.reading.keep
            and is_index(name, place, self._first_values(place), saved=saved)
        ]

    def _first_values(self, place: int) -> list[Any]:
        """Return the first values of the column at a place."""
        name = self.names[place]
        _, columns, _ = next(self.columns([name]))
        return [plain_value(value) for value in columns[name][:MOST_ROWS]]

    def beside(self, name: str) -> list[str]:
        """Return all other columns of values, and of as many rows, but for a saved index."""
        apart = {name, *self.index, *self.apart}
        return [other for other in self.names if other not in apart]

    def check_whole(self) -> None:
        """Raise if the file has more than its columns: where all are asked for."""

    def leave_apart(self) -> None:
        """Note which columns are left out, since they hold other things than values."""
        if self.apart:
            columns = ", ".join(f"{name} ({of})" for name, of in self.apart.items())
            self.notes.append(f"left out, since they hold no numbers, text or dates: {columns}")

    def _doubt(self, missing: str) -> str:
        """Say what may be wrong with the names of the columns, among which one is missing."""
        for above, values in enumerate(self.heads):
            if missing in values and len(values) > 1 and not any(map(is_number, values)):
                return f"; line {above + 1} has it: --skip-lines {above} leaves out those above it"
        for sheet, names in self.sheets.items():
            if missing in names:
                return f"; another sheet has it: {shlex.quote(f'{self.path}::{sheet}')}"
        some = []
        for sheet, names in self.sheets.items():
            near = nearest(missing, names)
            short = [fitted_to(n, MOST_LETTERS) for n in sorted(names, key=lambda n: n != near)]
            some.append(f"{sheet!r} ({some_of(short, MOST_SHEETS)})")
        return f"; its other sheets lack it too: {some_of(some, MOST_SHEETS)}" if some else ""

    def batches(self, names: list[str]) -> Iterator[tuple[int, Doubles, float]]:
        """Yield (first row, values (n, len(names)), share of the file read so far)."""
        for first, values, done, _ in self._read(names, self._numbers):
            yield first, values, done

    def columns(self, names: list[str]) -> Iterator[tuple[int, dict[str, Any], float]]:
        """Yield (first row, columns as the file has them, share of the file read so far).

        Columns are arrays, or Arrow's.
        """
        for first, columns, done, _ in self._read(names, self._columns):
            yield first, columns, done

    def append(
        self, names: list[str], compute: Compute, new: Types, output: Path
    ) -> Iterator[float]:
        """Write the table to `output`, with new last columns.

        They are computed from columns called `names`, as `columns` yields these, and are float64
        or text. Yields the share of the work that is done; `output` appears at the end.
        """
        raise NotImplementedError

    def _pieces(self, names: list[str], whole: bool) -> Iterator[tuple[Any, float]]:
        """Yield pieces with (at least) these columns, or all, and the share of the file read."""
        raise NotImplementedError

    def _columns(self, piece: Any, names: list[str], first: int) -> dict[str, Any]:
        """Return the columns of a piece whose first row is `first`, as they are."""
        raise NotImplementedError

    def _numbers(self, piece: Any, names: list[str], first: int) -> Doubles:
        """Return the columns of a piece whose first row is `first`, (n, len(names))."""
        columns = self._columns(piece, names, first)
        plain = columns
        if self.reading.thousands or self.reading.decimal_comma:
            rows = first + np.arange(len(columns[names[0]]))
            plain = {name: self.plain_numbers(name, columns[name], rows) for name in names}
        values = self._converted(plain, names)
        if (place := first_not_finite(values)) is not None:
            row, j = place
            value = plain_value(columns[names[j]][row])
            wanted = NO_CODE if np.isfinite(as_number(value)) else FINITE
            raise self.bad_value(first + row, names[j], value, wanted)
        return values

    def plain_numbers(self, name: str, column: Any, rows: Integers) -> Any:
        """Return text without separators of thousands, which is told, and with decimal points.

        Other columns are returned as they are; rows have these numbers in the table.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        reading = self.reading
        mark = reading.thousands or "." * reading.decimal_comma
        if not mark or not (pa.types.is_string(of := column.type) or pa.types.is_large_string(of)):
            return column
        plain, row, other = without_groups(column, mark)
        if other is not None:
            plain = column
            wrong = other if reading.thousands else doubtful_point(column)
            if wrong is not None:
                text = plain_value(column[wrong])
                doubt = f"the {mark!r} in {text!r} does not separate thousands"
                if mark == "." and not reading.decimal_comma:
                    sentence = f"column {name!r}: {doubt}: its points are decimal points"
                    warn(Remark("reading", [name], sentence))
                    return column
                if not reading.thousands:
                    doubt = (
                        f"{text!r} has a point, where others have a decimal comma; write all alike"
                    )
                raise self.in_doubt([rows[wrong]], name, doubt)
        elif row is not None:
            before, after = (plain_value(each[row]) for each in (column, plain))
            sentence = f"{before!r} is read as {after}, since {mark!r} separates thousands"
            warn(Remark("reading", [name], f"column {name!r}: {sentence}"))
        if reading.decimal_comma:
            plain = pc.replace_substring_regex(plain, DECIMAL_COMMA, r"\1.\2")
        return plain

    def _converted(self, columns: dict[str, Any], names: list[str]) -> Doubles:
        """Return columns as float64, (n, len(names)), not finite where a value is no number."""
        raise NotImplementedError

    def _read(
        self,
        names: list[str],
        parsed: Callable[[Any, list[str], int], Any],
        whole: bool = False,
    ) -> Iterator[tuple[int, Any, float, Any]]:
        first = 0
        for piece, done in self._pieces(names, whole):
            self.done = done
            values = parsed(piece, names, first)
            yield first, values, done, piece
            first += len(values if isinstance(values, np.ndarray) else values[names[0]])
        if first == 0:
            raise ValueError(f"{self.path} has columns, but no rows; pass a file with rows")

    def in_doubt(self, rows: Sequence[int], name: str, readings: str) -> ValueError:
        """Return the error of a text, or two, in rows from 0, with two readings."""
        where = " and data row ".join(f"{row + 1}" for row in rows)
        return ValueError(f"{self.path}: data row {where}, column {name!r}: {readings}")

    def bad_type(self, name: str, holds: str) -> BadValueError:
        """Return the error of a column of things that nobody can compare."""
        return BadValueError(
            f"{self.path}: column {name!r} holds {holds}, not numbers",
            name,
            is_text=True,
            mend="convert it",
        )

    def bad_value(
        self,
        row: int,
        name: str,
        value: object,
        wanted: str = FINITE,
        *,
        mend: str = "mend or drop such rows",
    ) -> BadValueError:
        """Return the error of a value that is none, or not of the kind wanted, in a row from 0."""
        text = value.strip() if isinstance(value, str) else None
        missing = value is None or text == ""
        what = "is missing" if missing else f"is {value!r}, which is not a {wanted}"
        comma = text is not None and has_decimal_comma(text)
        thousands = comma and not self.reading.may_have_commas and may_be_thousands(str(text))
        if thousands:
            what += ": its comma seems to separate thousands, and should not be there"
        elif comma:
            what += ": it has a decimal comma, where a point should be"
        form = self.forms.get(name) or [""]
        if "%" in form[0]:
            what += f"; the fit read dates such as {LAST_DAY:{form[0]}} ({form[0]})"
        elif form[1:2] in (["."], [","]) and form[-1]:
            what += f"; the fit read numbers with the unit {form[-1]!r}"
        return BadValueError(
            f"{self.path}: data row {row + 1}, column {name!r}: the value {what}",
            name,
            is_text=wanted == NO_CODE
            or not (missing or comma or is_number(value if text is None else text)),
            is_missing=is_missing(value) or (text is not None and self.reading.is_missing(text)),
            has_comma=comma and not thousands,
            mend=mend,
        )

    def numeric(self, names: list[str]) -> list[str]:
        """Return those of `names` that have no text in the first piece of the file."""
        numeric = []
        for name in names:
            try:
                next(self.batches([name]))
            except BadValueError as error:
                if error.is_text:
                    continue
            numeric.append(name)
        return numeric


class CsvTable(Table):
    """Text separated by commas, semicolons or tabs, with a header.

    Its bytes are cut into blocks at the ends of records, so that `append` can copy each record as
    it stands, while pyarrow parses only the columns that are needed.
    """

    outputs = (".csv", ".tsv", ".txt", ".dat")

    def __init__(self, path: Path, reading: Reading = DEFAULT) -> None:
        skip, self._is_told = reading.skip_lines, False
        with csv_text.opened(path, reading.encoding) as (text_of, _):
            head = text_of.read(HEAD_BYTES)
            csv_text.refuse_by_content(path, text_of.start)
            ended = False
            while (header := csv_text.header_in(head, ended=ended, skip=skip)) is None:
                more = text_of.read(BLOCK_BYTES)
                head, ended = head + more, not more
                if len(head) > RECORD_BYTES:
                    raise ValueError(
                        f"{path}: the first line does not end; pass a text file with lines"
                    )
        self._header_is_other = text_of.other != ""
        self._header = header.before + header.record
        # What ends records: a carriage return alone in files of old.
        self._line_end = b"\r" if header.end == b"\r" else b"\n"
        text = header.record.decode("utf-8-sig", "replace").rstrip("\r\n")
        if not text:
            raise ValueError(f"{path}: the first line is blank, but must name the columns")
        if b"\0" in head or any(ord(c) < 32 and c not in "\t\r\n" for c in text):
            raise ValueError(f"{path} is not a text; save the table as CSV, or name its --encoding")
        try:
            names, self._delimiter, self._between_names = csv_text.names_in(header)
        except csv.Error as error:
            raise ValueError(f"{path}: the first line does not name columns: {error}") from None
        self._is_aligned = csv_text.is_aligned(header)
        csv_text.refuse_numbers(path, names, header.values or text)
        rest = head[len(self._header) :]
        plain = csv_text.ALIGNING.sub(b"", rest) if self._is_aligned else rest
        rows = csv_text.first_rows(plain, self._delimiter, ended=ended or len(head) < HEAD_BYTES)
        names = csv_text.named_rows(names, rows)
        super().__init__(path, csv_text.distinct(names))
        pairs = zip(names, self.names, strict=True)
        if twice := {new: old for old, new in pairs if old != new}:
            names_now = some_of([*map(repr, twice)], MOST_NAMES)
            self.notes.append(f"columns with the name of another are called {names_now}")
            self.twice = twice
        above = head.decode("utf-8-sig", "replace").splitlines()[: csv_text.ROWS]
        self.heads = [*map(csv_text.values_in, above)]
        self._look_at(rows, rest, reading)

    def _look_at(self, rows: list[list[str]], rest: bytes, reading: Reading) -> None:
        """Find out how the first rows, which are those of `rest`, are written."""
        n_units = csv_text.unit_rows(rows) or int(self._is_aligned and rest.startswith(b"#"))
        self._units = csv_text.records(rest, self._delimiter)[:n_units] if n_units else []
        self._rows = rows[n_units:]
        for record in self._units:
            shown = record.decode("utf-8", "replace").strip()[:MOST_LETTERS]
            self.notes.append(f"the line below the names, {shown!r}, holds no values: left out")
        # A space before the quotation marks of a value.
        spaced = re.compile(rb'(?<=%b) +(?="(?!"))' % re.escape(self._delimiter.encode()))
        first = rest[: rest.find(self._line_end)]
        self._spaced = spaced if self._delimiter != " " and spaced.search(first) else None
        if self._is_aligned:
            self._spaced = csv_text.ALIGNING
            if {*self.names} >= csv_text.OF_BUOYS:
                self.padded = {*self.names}
                reading = reading._replace(missing=reading.missing | {"mm"})
        is_told = bool(reading.decimal_comma or reading.thousands)
        example = csv_text.decimal_comma_in(rows) if self._delimiter == ";" and not is_told else ""
        if example:
            self.notes.append(f"numbers have a decimal comma, such as {example!r}")
        self.reading = reading._replace(
            decimal_comma=reading.decimal_comma or example != "",
            may_have_commas=self._delimiter != "," and not (is_told or example),
        )

    def _doubt(self, missing: str) -> str:
        if told := super()._doubt(missing):
            return told
        if all(map(is_number, self.names)):
            return "; has it no first line that names the columns?"
        if self._header_is_other:
            return f"; the header is not UTF-8, but read as {csv_text.OTHER}: name its --encoding"
        if len(self.names) == 1 and any(mark in self.names[0] for mark in " :"):
            return "; separate columns by commas, semicolons, tabs or |"
        return ""

    def _first_values(self, place: int) -> list[Any]:
        return [row[place] for row in self._rows if len(row) > place]

    def append(
        self, names: list[str], compute: Compute, new: Types, output: Path
    ) -> Iterator[float]:
        """Copy every record as it stands, with computed values at its end."""
        with replacing(output) as beside, beside.open("wb") as out:
            between = self._between_names
            names_of_new = [self._quoted(name, between) for name in new]
            unnamed = [""] * (self.names[-1] == "")  # where a separator ends each row
            out.write(self._extended(self._header, [*unnamed, *names_of_new], between))
            for record in self._units:
                out.write(self._extended(record, [""] * len(new), self._delimiter))
            for _, values, done, block in self._read(names, self._columns):
                lines = iter(csv_text.records(block, self._delimiter))
                for row in zip(*(column.tolist() for column in compute(values)), strict=True):
                    record = next(lines)
                    while not record.strip(b"\r\n"):  # a blank line is no row
                        out.write(record)
                        record = next(lines)
                    more = [self._quoted(value, self._delimiter) for value in row]
                    out.write(self._extended(record, more, self._delimiter))
                out.writelines(lines)
                yield done

    def _quoted(self, value: Any, delimiter: str) -> str:
        """Return a value as it stands in a file."""
        text = value if isinstance(value, str) else repr(value)
        if self.reading.decimal_comma and not isinstance(value, str):
            text = text.replace(".", ",")
        if {'"', delimiter, "\n", "\r"} & set(text):
            return '"' + text.replace('"', '""') + '"'
        return str(text)

    def _extended(self, record: bytes, new: list[str], delimiter: str) -> bytes:
        text = record.rstrip(b"\r\n")
        end = record[len(text) :]
        extended = delimiter.join(["", *new]).encode().join([text, b""])
        if self.no_formulas:
            values = next(csv.reader([extended.decode()], delimiter=delimiter))
            if (safe := [harmless(value) for value in values]) != values:
                extended = delimiter.join(self._quoted(value, delimiter) for value in safe).encode()
        return extended + end

    def _pieces(self, names: list[str], whole: bool) -> Iterator[tuple[bytes, float]]:
        """Yield the bytes after the header, cut where a record ends."""
        rest = b""
        with csv_text.opened(self.path, self.reading.encoding) as (text_of, share):
            skipped = len(b"".join([self._header, *self._units]))
            while chunk := text_of.read(BLOCK_BYTES):
                if (word := text_of.other[:MOST_LETTERS]) and not self._is_told:
                    self._is_told = True
                    warn(OTHER_TOLD.format(self.path, csv_text.OTHER, word), UserWarning)
                rest += chunk[skipped:]
                skipped = max(0, skipped - len(chunk))
                end = csv_text.end_of_records(rest, self._delimiter, self._line_end)
                if end:
                    yield rest[:end], share()
                    rest = rest[end:]
                elif len(rest) > RECORD_BYTES:
                    raise ValueError(
                        f"{self.path}: a quotation mark is not closed within {RECORD_BYTES} bytes: "
                        f"{rest[:60].decode('utf-8', 'replace')!r}"
                    )
            if rest:
                yield rest, 1.0

    def _converted(self, columns: dict[str, Any], names: list[str]) -> Doubles:
        return as_doubles(columns, names, self.padded)

    def _columns(self, piece: bytes, names: list[str], first: int) -> dict[str, Any]:
        import pyarrow as pa

        if self._spaced:  # pyarrow takes the quotation marks for text behind spaces
            piece = self._spaced.sub(b"", piece)
        try:
            table = self._parsed(piece, names)
        except pa.ArrowInvalid as error:
            raise self._ragged(piece, names, first) or ValueError(f"{self.path}: {error}") from None
        return {name: table.column(name).combine_chunks() for name in names}

    def _parsed(self, piece: bytes, names: list[str], keep: Any = None) -> Any:
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        return read_csv(
            pa.BufferReader(piece),
            ReadOptions(column_names=self.names, block_size=len(piece) + 1, use_threads=False),
            ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=keep
            ),
            ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pa.string()),
                check_utf8=False,
            ),
        )

    def _ragged(self, piece: bytes, names: list[str], first: int) -> ValueError | None:
        """Return what is wrong with the first row of another number of values, if there is one."""
        ragged: list[Any] = []

        def keep(row: Any) -> str:
            ragged.append(row)
            return "skip"

        self._parsed(piece, names, keep)
        if not ragged:
            return None
        row, width = ragged[0], len(self.names)
        what = "mend it, or leave out lines above the names: --skip-lines"
        if row.actual_columns < width and any(len(each) == width for each in self._rows):
            what = "mend it, or delete it if it stands below the table"
        elif self._delimiter == "," and all(map(is_number, row.text.split(","))):
            what = "if it has decimal commas, write semicolons between the values"
        return ValueError(
            f"{self.path}: data row {first + row.number} has "
            f"{counted(row.actual_columns, 'value')}, but there are {counted(width, 'column')}: "
            f"{row.text[:60]!r}; {what}"
        )


class ColumnTable(Table):
    """A file whose columns have types, see `columnar`."""

    outputs = columnar.OUTPUTS

    def __init__(self, path: Path, *of_sheet: Any) -> None:
        import pyarrow as pa

        open_columns = columnar.OPENED[".parquet" if path.is_dir() else path.suffix.lower()]
        try:
            self._file = open_columns(path, *of_sheet)
        except (pa.ArrowInvalid, OSError, zipfile.BadZipFile) as error:
            what = "folder of .parquet files" if path.is_dir() else f"{path.suffix} file"
            raise ValueError(f"{path} is not a {what}: {error}") from error
        super().__init__(path, self._file.schema.names)
        schema = self._file.schema
        self.apart = {f.name: str(f.type) for f in schema if not is_of_values(f.type)}
        self.orders, self.sheets = self._file.orders, self._file.others
        self.notes += [self._file.note] * bool(self._file.note)
        saved = (schema.pandas_metadata or {}).get("index_columns", [])
        self._saved, self.heads = [n for n in saved if n in self.names], self._file.heads

    def append(
        self, names: list[str], compute: Compute, new: Types, output: Path
    ) -> Iterator[float]:
        """Write the same columns and the computed ones; text files lack those of other types."""
        import pyarrow as pa

        end = output.suffix.lower()
        names_out = self.names
        if end not in columnar.ANY_TYPE:
            names_out = [name for name in names_out if name not in self.apart]
            self.leave_apart()
        fields = [self._file.schema.field(name) for name in names_out]
        fields += [pa.field(name, pa.from_numpy_dtype(dtype)) for name, dtype in new.items()]
        is_harmless = self.no_formulas and end == ".csv"
        schema = pa.schema([f.with_name(harmless(f.name)) if is_harmless else f for f in fields])
        with replacing(output) as beside, columnar.writing(beside, end, schema) as write:
            for _, values, done, batch in self._read(names, self._columns, whole=True):
                columns = [batch.column(name) for name in names_out]
                columns += [pa.array(column) for column in compute(values)]
                if is_harmless:
                    columns = [
                        column
                        if pa.types.is_primitive(column.type)
                        else pa.array(map(harmless, column.to_pylist()), column.type)
                        for column in columns
                    ]
                write(pa.record_batch(columns, schema=schema))
                yield done

    def _pieces(self, names: list[str], whole: bool) -> Iterator[tuple[Any, float]]:
        import pyarrow as pa

        columns = self.names if whole else names
        rows, read = max(1, BLOCK_VALUES // len(columns)), 0
        try:
            for batch in self._file.scan(columns, rows):
                read += batch.num_rows
                yield batch, read / self._file.n_rows
        except pa.ArrowInvalid as error:
            raise ValueError(f"{self.path}: {error}") from error

    def _converted(self, columns: dict[str, Any], names: list[str]) -> Doubles:
        import pyarrow as pa

        for name in names:
            of = columns[name].type
            if not is_of_values(of) or pa.types.is_temporal(of):
                raise self.bad_type(name, str(of))
        return as_doubles(columns, names)

    def _columns(self, piece: Any, names: list[str], first: int) -> dict[str, Any]:
        return {name: piece.column(name) for name in names}


class ArrayTable(Table):
    """A .npy file, or the arrays of a .npz file side by side.

    The columns of a .npy file are called "0", "1", ...; in a .npz file an array of one dimension is
    a column under its own name, and the columns of X are called "X0", "X1", ...
    """

    outputs = (".npy",)

    def __init__(self, path: Path) -> None:
        try:
            if path.suffix.lower() == ".npy":
                self._shapes = {"": np.lib.format.open_memmap(path, mode="r").shape}
            else:
                with zipfile.ZipFile(path) as archive:
                    self._shapes = {
                        member.removesuffix(".npy"): _npy_header(archive.open(member))[0]
                        for member in archive.namelist()
                    }
        except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, TokenError) as error:
            raise ValueError(f"{path} is not a {path.suffix} file of arrays: {error}") from error
        places = []  # (column, (array, its column))
        for array, shape in self._shapes.items():
            if len(shape) == 1:
                places.append((array or "0", (array, 0)))
            elif len(shape) == 2:
                places += [(f"{array}{j}", (array, j)) for j in range(shape[1])]
        if not places:
            shapes = ", ".join(map(str, self._shapes.values())) or "none"
            raise ValueError(
                f"{path} has no columns: pass arrays of shape (rows,) or (rows, columns); its "
                f"shapes are {shapes}"
            )
        super().__init__(path, [name for name, _ in places])
        self._places = dict(places)

    def append(
        self, names: list[str], compute: Compute, new: Types, output: Path
    ) -> Iterator[float]:
        """Write the computed columns alone, all of one type."""
        n_rows = self._shapes[self._places[names[0]][0]][0]
        shape = (n_rows,) if len(new) == 1 else (n_rows, len(new))
        with replacing(output) as beside:
            out = np.lib.format.open_memmap(
                beside, mode="w+", dtype=next(iter(new.values())), shape=shape
            )
            reserve(beside)
            for first, values, done, _ in self._read(names, self._columns):
                rows = np.stack(compute(values), axis=-1)
                out[first : first + len(rows)] = rows.reshape(-1, *shape[1:])
                yield done
            out.flush()

    def beside(self, name: str) -> list[str]:
        """Return all other columns of as many rows."""
        n_rows = {other: self._shapes[array][0] for other, (array, _) in self._places.items()}
        return [other for other in self.names if other != name and n_rows[other] == n_rows[name]]

    def check_whole(self) -> None:
        """Raise if the file has an array that is no columns."""
        for array, shape in self._shapes.items():
            if len(shape) > 2:
                raise ValueError(
                    f"{self.path}: {array} has shape {shape}, but columns come from arrays of one "
                    "or two dimensions; reshape it to (rows, columns), or name the columns to use"
                )

    def _pieces(self, names: list[str], whole: bool) -> Iterator[tuple[Any, float]]:
        arrays = list(dict.fromkeys(self._places[name][0] for name in names))
        lengths = {array: self._shapes[array][0] for array in arrays}
        total = lengths[arrays[0]]
        if any(length != total for length in lengths.values()):
            raise ValueError(
                f"{self.path}: the arrays differ in length: "
                + ", ".join(f"{array} has {length}" for array, length in lengths.items())
                + "; choose columns that belong together"
            )
        width = sum(int(np.prod(self._shapes[array][1:])) for array in arrays)
        rows, read = max(1, BLOCK_VALUES // width), 0
        try:
            for blocks in zip(*(self._blocks(array, rows) for array in arrays), strict=True):
                read += len(blocks[0])
                yield dict(zip(arrays, blocks, strict=True)), read / total
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{self.path} is damaged: {error}") from error

    def _converted(self, columns: dict[str, NDArray[Any]], names: list[str]) -> Doubles:
        values = np.empty((len(columns[names[0]]), len(names)))
        for j, (name, column) in enumerate(columns.items()):
            if column.dtype.kind not in "biuf":
                raise self.bad_type(name, str(column.dtype))
            values[:, j] = column
        return values

    def _columns(
        self, piece: dict[str, NDArray[Any]], names: list[str], first: int
    ) -> dict[str, NDArray[Any]]:
        columns = {}
        for name in names:
            array, k = self._places[name]
            columns[name] = piece[array].reshape(len(piece[array]), -1)[:, k]
        return columns

    def _blocks(self, array: str, rows: int) -> Iterator[NDArray[Any]]:
        """Yield `rows` rows of an array at a time; one stored by columns is read whole."""
        with contextlib.ExitStack() as stack:
            file: IO[bytes]
            if array == "":
                file = stack.enter_context(self.path.open("rb"))
            else:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                file = stack.enter_context(archive.open(f"{array}.npy"))
            shape, by_column, dtype = _npy_header(file)
            if dtype.hasobject:
                raise ValueError(
                    f"{self.path}: {array} is an array of Python objects, which are stored as code "
                    f"and not read; save numbers or text instead, {array}.astype(float) or "
                    f"{array}.astype(str)"
                )
            if not by_column:
                row_bytes = dtype.itemsize * int(np.prod(shape[1:]))
                for start in range(0, shape[0], rows):  # other bytes may follow the array
                    size = min(rows, shape[0] - start) * row_bytes
                    block = file.read(size)
                    if len(block) < size:
                        raise EOFError(f"it has fewer than the {shape[0]} rows that its head says")
                    yield np.frombuffer(block, dtype).reshape(-1, *shape[1:])
                return
        loaded = np.load(self.path, mmap_mode="r", allow_pickle=False)
        values = loaded[array] if array else loaded
        for start in range(0, len(values), rows):
            yield values[start : start + rows]


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order (True: by columns) and dtype at the head of a .npy stream."""
    if np.lib.format.read_magic(file) == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


KINDS: dict[str, Callable[..., Table]] = {
    **dict.fromkeys(CsvTable.outputs, CsvTable),
    **dict.fromkeys(columnar.OPENED, ColumnTable),
    **dict.fromkeys((".npy", ".npz"), ArrayTable),
}
