"""Files whose columns have types, read and written in batches of Arrow.

Parquet, also a folder of it, Feather, lines of JSON, sheets of a spreadsheet, and NetCDF grids.
"""

import calendar
import contextlib
import datetime
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gzkcore._util.extras import needs
from gzkcore._util.typing import Doubles
from gzkcore._util.wording import some_of

from .values import merges

HEADS = 200  # the names of the columns of a sheet may stand in one of so many rows
MOST_FILES = 5  # no more files of a folder are named
HIDDEN = re.compile(r"(.*/)?[._]")  # names of files in a folder that are left out
JSON_BYTES = 1 << 24  # so many bytes of lines of JSON are parsed at a time
JSON_TYPES = {
    bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list",
    dict: "an object",
}  # fmt: skip
CALENDARS = ("standard", "gregorian", "proleptic_gregorian")  # those that dates have
OF_TIMES = re.compile(r"\bsince\b| as %", re.IGNORECASE)  # units
SHORT_ZONE = re.compile(r"(?<=\s)([-+])(\d:)")  # which cftime leaves out
# Cells that hold one of these have no value.
NO_VALUE = ("", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A")

# A function of names of columns and a number of rows, to batches of about so many rows.
Scan = Callable[[list[str], int], Iterator[Any]]


class TypedFile(NamedTuple):
    """A file whose columns have types."""

    schema: Any
    n_rows: int
    scan: Scan
    note: str = ""  # what was left out
    heads: Sequence[list[str]] = ()  # the first rows of a sheet, by their values
    orders: Mapping[str, list[Any]] = {}  # the levels of columns whose type has an order of these
    others: Mapping[str, list[str]] = {}  # other sheets, by the values of their first row


def parquet(path: Path) -> TypedFile:
    """Open a Parquet file, or those in a folder in turn, with columns that folders name."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow.parquet import read_schema

    base = path if path.is_dir() else path.parent
    files, others = [path], []
    if path.is_dir():
        inside = ((file, file.relative_to(path).as_posix()) for file in sorted(path.rglob("*")))
        shown = [(f, name) for f, name in inside if f.is_file() and not HIDDEN.match(name)]
        files = [f for f, _ in shown if OPENED.get(f.suffix.lower()) is parquet]
        others = [name for f, name in shown if OPENED.get(f.suffix.lower()) is not parquet]
    if not files:
        raise ValueError(f"{path}: this is a folder without .parquet files; name a file")
    while "=" in base.name:
        base = base.parent
    own, folders = read_schema(files[0]), {part.partition("=")[0] for part in files[0].parts}
    if len({*own.names}) < len(own.names):
        return TypedFile(own, 0, lambda names, rows: iter(()))  # `Table` says which are twice
    options: Any = {"format": "parquet", "partition_base_dir": "" if base == Path() else str(base)}
    named = re.findall(r"([^/=]+)=[^/]*/", "/".join(f.relative_to(base).as_posix() for f in files))
    if named and not folders & {*own.names}:  # what they say is text, so that 01 stays so
        of_folders = pa.schema([(name, pa.string()) for name in dict.fromkeys(named)])
        options["partitioning"] = ds.partitioning(of_folders, flavor="hive")
    paths = [*map(str, files)]
    schema, note = _of_all(ds.dataset(paths, **options))
    apart = f"no .parquet files, and left out: {some_of(others, MOST_FILES)}"
    notes = "; ".join(filter(None, [note, apart * bool(others)]))
    return _of_dataset(ds.dataset(paths, schema=schema, **options), notes)


def _of_all(dataset: Any) -> tuple[Any, str]:
    """Return the schema of all files of a dataset, and a note on columns that some files lack."""
    import pyarrow as pa

    first, *others = dataset.get_fragments()
    schema, lacking = dataset.schema, dict[str, str]()
    known = {*first.physical_schema.names}
    for other in others:
        own = {*other.physical_schema.names}
        less, more = sorted(known - own), sorted(own - known)
        if less and more:
            raise ValueError(
                f"{other.path} has a column {more[0]!r} and none called {less[0]!r}, which the "
                f"files before it have; rename it, or move this file elsewhere"
            )
        lacking |= {name: other.path for name in less if name not in lacking}
        lacking |= dict.fromkeys(more, first.path)
        known |= own
        try:
            schema = pa.unify_schemas([schema, other.physical_schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            what = str(error).partition("Field ")[2] or error
            raise ValueError(
                f"{other.path}: in this file and those before it the column {what}; write it with "
                "one type"
            ) from None
    columns = ", ".join(f"{name} ({file})" for name, file in lacking.items())
    return schema, f"taken as missing where a file has no such column: {columns}" * bool(columns)


def feather(path: Path) -> TypedFile:
    """Open a Feather file; text is read as strings where Polars wrote it as views of these."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    own = ds.dataset(path, format="feather").schema
    is_view, text = pa.types.is_string_view, pa.large_string()
    fields = [field.with_type(text) if is_view(field.type) else field for field in own]
    schema = pa.schema(fields, own.metadata)
    return _of_dataset(ds.dataset(path, schema=schema, format="feather"))


def _of_dataset(dataset: Any, note: str = "") -> TypedFile:
    def scan(names: list[str], rows: int) -> Iterator[Any]:
        batches = dataset.to_batches(columns=names, batch_size=rows, batch_readahead=1)
        return (batch for batch in batches if batch.num_rows)

    ordered = [field.name for field in dataset.schema if getattr(field.type, "ordered", False)]
    orders = {}
    if ordered and len(dataset.files) == 1:  # others may have other levels
        first: Any = next(scan(ordered, 1), {})
        orders = {name: first[name].dictionary.to_pylist() for name in ordered if first}
    return TypedFile(dataset.schema, dataset.count_rows(), scan, note, orders=orders)


def json_lines(path: Path) -> TypedFile:
    """Open lines of JSON; a column has the type that all of its values have."""
    import pyarrow as pa
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    def blocks(schema: Any) -> Iterator[Any]:
        with path.open("rb") as file:
            file.seek(3 * (file.read(3) == b"\xef\xbb\xbf"))  # the mark of UTF-8
            while block := file.read(JSON_BYTES) + file.readline():
                if block.strip():
                    size = ReadOptions(use_threads=False, block_size=len(block) + 1)
                    yield read_json(pa.BufferReader(block), size, ParseOptions(schema))

    schema, n_rows = pa.schema([]), 0
    try:
        for block in blocks(None):
            texts = [  # dates stay texts, which are read later
                field.with_type(pa.string()) if pa.types.is_timestamp(field.type) else field
                for field in block.schema
            ]
            schema = pa.unify_schemas([schema, pa.schema(texts)], promote_options="permissive")
            n_rows += block.num_rows
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"{path}: {_odd_line(path) or error}") from None

    def scan(names: list[str], rows: int) -> Iterator[Any]:
        for block in blocks(schema):
            yield from block.select(names).to_batches(rows)

    return TypedFile(schema, n_rows, scan)


def _odd_line(path: Path) -> str:
    """Say which line is no object, or has a value of another type than those above it, if any."""
    above: dict[str, str] = {}
    with path.open("rb") as file:
        for number, line in enumerate(filter(bytes.strip, file), 1):
            try:
                row = json.loads(line)
                items = row.items()
            except (ValueError, AttributeError):
                return (
                    f"data row {number}, {line[:40].decode('utf-8', 'replace').strip()!r}, is no "
                    "object of JSON; write one in each line, as pandas does by "
                    "to_json(path, orient='records', lines=True)"
                )
            for name, value in items:
                kind = JSON_TYPES.get(type(value))
                if kind and above.setdefault(name, kind) != kind:
                    return (
                        f"data row {number}, column {name!r}: {value!r} is {kind}, where rows "
                        f"above have {above[name]}; write all in one way, and null for none"
                    )
    return ""


def sheet(path: Path, name: str = "", skip: int = 0) -> TypedFile:
    """Read a sheet of a spreadsheet, by default the first; its first row names the columns."""
    import pyarrow as pa

    needs("openpyxl", f"{path}: reading {path.suffix} files", "sheets")
    from openpyxl import load_workbook

    with contextlib.closing(load_workbook(path, read_only=True, data_only=True)) as book:
        pages = {page.title: page for page in book.worksheets}  # charts are none
        is_named, name = name != "", name or next(iter(pages), "")
        if name not in pages:
            raise ValueError(f"{path} has no sheet {name!r}; its sheets are {', '.join(pages)}")
        cells = [*pages[name].iter_rows(values_only=True)]
        first_rows = {
            other: map(_values_in, page.iter_rows(max_row=HEADS, values_only=True))
            for other, page in pages.items()
            if other != name
        }
        others = {other: next(filter(None, rows), []) for other, rows in first_rows.items()}
    others = {other: names for other, names in others.items() if names}
    rows = [row for row in cells[skip:] if any(map(_has_value, row))]
    if not rows:
        which = f"; name another of {', '.join(others)}: {path}::SHEET" if others else ""
        raise ValueError(f"{path}: the sheet {name!r} is empty{which}")
    width = max(i + 1 for row in rows for i, value in enumerate(row) if _has_value(value))
    head, *values = ([*row, *[None] * width][:width] for row in rows)
    names = [str(v).strip() if _has_value(v) else f"Unnamed: {i}" for i, v in enumerate(head)]
    columns = [_of_cells([row[i] for row in values]) for i in range(width)]
    note = ""
    if others and not is_named:
        another = shlex.quote(f"{path}::{next(iter(others))}")
        note = f"read from the first sheet, {name!r}; {another} reads another"
        if alike := [repr(other) for other, head in others.items() if head == _values_in(names)]:
            remedy = "put their rows into one sheet to learn from all"
            note += f"; the same columns are in {some_of(alike, MOST_FILES)}: {remedy}"
    table = pa.Table.from_arrays(columns, names)

    def scan(names: list[str], rows: int) -> Iterator[Any]:
        return iter(table.select(names).to_batches(rows))

    heads = [*map(_values_in, cells[:HEADS])]
    return TypedFile(table.schema, table.num_rows, scan, note, heads, others=others)


def _values_in(row: Iterable[Any]) -> list[str]:
    return [str(value).strip() for value in row if _has_value(value)]


def _has_value(value: Any) -> bool:
    return value is not None and str(value).strip() not in NO_VALUE


def _of_cells(values: list[Any]) -> Any:
    """Return the cells of a column as numbers or dates, if all with a value are, else as text."""
    import pyarrow as pa

    values = [value if _has_value(value) else None for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    exact = np.array([value for value in values if value is not None], dtype=object)
    if kinds <= {int, float} and not merges(exact):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if kinds <= {datetime.datetime, datetime.date}:
        return pa.array(values, pa.timestamp("us"))
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def grid(path: Path) -> TypedFile:
    """Open the cells of a NetCDF grid: its axes, and the variables that have only these."""
    import pyarrow as pa

    needs("netCDF4", f"{path}: reading {path.suffix} files", "grids")
    from netCDF4 import Dataset

    file = Dataset(path)
    variables = file.variables
    numeric = {n: v for n, v in variables.items() if v.ndim and np.dtype(v.dtype).kind in "iuf"}
    if not numeric:
        raise ValueError(f"{path} has no variable of numbers; give a grid with values")
    axes = max(numeric.values(), key=lambda variable: variable.size).dimensions
    columns = {n: v for n, v in numeric.items() if {*v.dimensions} <= {*axes}}
    lengths = [len(file.dimensions[axis]) for axis in axes]

    def scan(names: list[str], rows: int) -> Iterator[Any]:
        for slab in _slabs(lengths, rows):
            part = dict(zip(axes, slab, strict=True))
            yield pa.record_batch([_of_grid(columns[name], part) for name in names], names)

    apart = [name for name in variables if name not in columns]
    notes = [f"left out, without these axes or no numbers: {', '.join(apart)}"] * bool(apart)
    turned = [name for name, variable in columns.items() if _is_reversed(variable)]
    notes += [f"degrees west or south, read as negative: {', '.join(turned)}"] * bool(turned)
    times = {name: _times_of(np.zeros(1), variable) for name, variable in columns.items()}
    notes += [f"{name}: {told}" for name, (_, told) in times.items() if told]
    types = [(n, pa.float64() if d is None else pa.timestamp("us")) for n, (d, _) in times.items()]
    return TypedFile(pa.schema(types), math.prod(lengths), scan, "; ".join(notes))


def _slabs(lengths: list[int], rows: int) -> Iterator[list[slice]]:
    """Yield slices of all axes, which cut a grid in order into pieces of about so many cells."""
    cut = next(i for i in range(len(lengths)) if math.prod(lengths[i + 1 :]) <= rows)
    step = rows // math.prod(lengths[cut + 1 :])
    for place in np.ndindex(*lengths[:cut]):
        for start in range(0, lengths[cut], step):
            part = slice(start, min(start + step, lengths[cut]))
            yield [*(slice(i, i + 1) for i in place), part, *map(slice, lengths[cut + 1 :])]


def _times_of(values: Doubles, variable: Any) -> tuple[Any, str]:
    """Return dates, None if a variable holds none, and what to know of how they are read.

    Those of other calendars become those of the same name.
    """
    from netCDF4 import num2date

    units = str(getattr(variable, "units", ""))
    own = str(getattr(variable, "calendar", "") or "standard").lower()
    if not OF_TIMES.search(units):
        return None, ""
    try:
        plain = SHORT_ZONE.sub(r"\g<1>0\2", units)
        dates: Any = num2date(values, plain, own, only_use_cftime_datetimes=False)
    except (ValueError, KeyError):
        return None, f"numbers of {units!r}, in which no dates are read"
    if own in CALENDARS:
        return np.asarray(dates, dtype="M8[us]"), ""
    last = [calendar.monthrange(date.year, date.month)[1] for date in dates]
    days = [date.replace(day=min(date.day, n)) for date, n in zip(dates, last, strict=True)]
    told = f"dates of the calendar {own!r} are read as those of the same name"
    dates = np.array([date.isoformat() for date in days], dtype="M8[us]")
    return dates, f"{told}, a 30 February as the last of its month"


def _is_reversed(variable: Any) -> bool:
    """Say whether a variable holds degrees west or south."""
    units = str(getattr(variable, "units", ""))
    return re.fullmatch("degrees?_?(w|west|s|south)", units, re.IGNORECASE) is not None


def _of_grid(variable: Any, part: dict[str, slice]) -> Any:
    """Return a variable at the cells of a slab, repeated along the axes that it lacks."""
    import pyarrow as pa

    own = [axis for axis in part if axis in variable.dimensions]
    values: Any = np.ma.asarray(variable[tuple(part[axis] for axis in variable.dimensions)])
    values = values.transpose([variable.dimensions.index(axis) for axis in own])
    values = values.astype(np.float64).filled(np.nan)
    values = -values if _is_reversed(variable) else values
    known = np.isfinite(values)
    dates, _ = _times_of(values[known], variable)
    if dates is not None:
        values = np.full(values.shape, np.datetime64("NaT", "us"))
        values[known] = dates
    lacking = [i for i, axis in enumerate(part) if axis not in own]
    sizes = [cut.stop - (cut.start or 0) for cut in part.values()]
    return pa.array(np.broadcast_to(np.expand_dims(values, lacking), sizes).ravel())


SHEETS = (".xlsx", ".xlsm")
OPENED: dict[str, Callable[..., TypedFile]] = {
    **dict.fromkeys((".parquet", ".pq"), parquet),
    ".feather": feather,
    **dict.fromkeys((".jsonl", ".ndjson"), json_lines),
    **dict.fromkeys(SHEETS, sheet),
    ".nc": grid,
}

# ---- writing


OUTPUTS = (".parquet", ".pq", ".csv", ".feather", ".jsonl", ".xlsx")
ANY_TYPE = (".parquet", ".pq", ".feather")  # these hold columns of every type


@contextlib.contextmanager
def writing(path: Path, ending: str, schema: Any) -> Iterator[Callable[[Any], Any]]:
    """Open a file of this kind; give a function that writes a batch."""
    from pyarrow import ipc
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

    if ending == ".xlsx":
        needs("openpyxl", f"writing {ending} files", "sheets")
        from openpyxl import Workbook

        book = Workbook(write_only=True)
        page = book.create_sheet()
        page.append([_cell(page, name) for name in schema.names])
        yield lambda batch: [
            page.append([_cell(page, v) for v in row.values()]) for row in batch.to_pylist()
        ]
        book.save(path)
    elif ending == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            yield lambda batch: file.writelines(
                json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in batch.to_pylist()
            )
    else:
        writers = {".csv": CSVWriter, ".feather": ipc.new_file}
        with writers.get(ending, ParquetWriter)(path, schema) as out:
            yield out.write_batch


def _cell(page: Any, value: Any) -> Any:
    """Return a value as a cell; text stays text, even if it begins as a formula does."""
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(page, value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value)
    if isinstance(value, str):
        cell.data_type = "s"
    return cell
