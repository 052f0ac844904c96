"""Files whose columns have types, read and written in batches of Arrow.

Parquet, also a folder of it, Feather, lines of JSON, sheets of a spreadsheet, and NetCDF grids.
"""

import contextlib
import datetime
import functools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gzkcore._util.extras import needs

CALENDARS = ("standard", "gregorian", "proleptic_gregorian")  # of times that are dates
# What cells without a value hold.
NO_VALUE = ("", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A")

# Names of columns and a number of rows, to batches of these columns with about so many rows.
Scan = Callable[[list[str], int], Iterator[Any]]


class Columns(NamedTuple):
    """The typed columns of a file, and what to know of it."""

    schema: Any
    n_rows: int
    scan: Scan
    note: str = ""


def parquet(path: Path) -> Columns:
    """Open a Parquet file."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path)
    return Columns(
        file.schema_arrow, file.metadata.num_rows,
        lambda names, rows: file.iter_batches(rows, columns=names),
    )  # fmt: skip


def folder(path: Path) -> Columns:
    """Open the Parquet files in a folder, one after another, with columns that folders name."""
    return dataset(path, format="parquet", partitioning="hive", exclude_invalid_files=True)


def dataset(path: Path, **options: Any) -> Columns:
    """Open a file of a kind that Arrow reads, such as Feather or lines of JSON."""
    import pyarrow.dataset as ds

    found = ds.dataset(path, **options)
    if not found.files:
        raise ValueError(f"{path}: this is a folder without .parquet files; name a file")

    def scan(names: list[str], rows: int) -> Iterator[Any]:
        batches = found.to_batches(columns=names, batch_size=rows, batch_readahead=1)
        return (batch for batch in batches if batch.num_rows)

    return Columns(found.schema, found.count_rows(), scan)


def sheet(path: Path) -> Columns:
    """Read the first sheet of a spreadsheet; its first row names the columns."""
    import pyarrow as pa

    needs("openpyxl", f"{path}: reading {path.suffix} files", "sheets")
    from openpyxl import load_workbook

    with contextlib.closing(load_workbook(path, read_only=True, data_only=True)) as book:
        first, *others = book.sheetnames
        rows = [row for row in book[first].iter_rows(values_only=True) if any(map(_there, row))]
    if not rows:
        raise ValueError(f"{path}: its first sheet, {first!r}, is empty; move the table there")
    width = max(i + 1 for row in rows for i, value in enumerate(row) if _there(value))
    names, *values = ([*row, *[None] * width][:width] for row in rows)
    names = [str(name) if _there(name) else f"Unnamed: {i}" for i, name in enumerate(names)]
    columns = [_of_cells([row[i] for row in values]) for i in range(width)]
    note = f"read from the first sheet, {first!r}, of {1 + len(others)}" if others else ""
    table = pa.Table.from_arrays(columns, names)

    def scan(names: list[str], rows: int) -> Iterator[Any]:
        return iter(table.select(names).to_batches(rows))

    return Columns(table.schema, table.num_rows, scan, note)


def _there(value: Any) -> bool:
    return value is not None and str(value).strip() not in NO_VALUE


def _of_cells(values: list[Any]) -> Any:
    """Return the cells of a column as numbers or dates, if all that are there are, else as text."""
    import pyarrow as pa

    values = [value if _there(value) else None for value in values]
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int, float}:
        return pa.array(values, pa.float64())
    if kinds <= {datetime.datetime, datetime.date}:
        return pa.array(values, pa.timestamp("us"))
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def grid(path: Path) -> Columns:
    """Open the cells of a NetCDF grid: its axes, and the variables that have only these."""
    import pyarrow as pa

    needs("netCDF4", f"{path}: reading {path.suffix} files", "grids")
    from netCDF4 import Dataset

    file = Dataset(path)
    every = file.variables
    numeric = {n: v for n, v in every.items() if v.ndim and np.dtype(v.dtype).kind in "iuf"}
    if not numeric:
        raise ValueError(f"{path} has no variable of numbers; give a grid with values")
    axes = max(numeric.values(), key=lambda variable: variable.size).dimensions
    columns = {n: v for n, v in numeric.items() if {*v.dimensions} <= {*axes}}
    lengths = [len(file.dimensions[axis]) for axis in axes]

    def scan(names: list[str], rows: int) -> Iterator[Any]:
        for slab in _slabs(lengths, rows):
            part = dict(zip(axes, slab, strict=True))
            yield pa.record_batch([_of_grid(columns[name], part) for name in names], names)

    apart = [name for name in every if name not in columns]
    note = f"left out, without these axes or no numbers: {', '.join(apart)}" if apart else ""
    types = [(n, pa.timestamp("us") if _is_time(v) else pa.float64()) for n, v in columns.items()]
    return Columns(pa.schema(types), math.prod(lengths), scan, note)


def _slabs(lengths: list[int], rows: int) -> Iterator[list[slice]]:
    """Yield slices of all axes that cut a grid, in order, into about so many cells."""
    cut = next(i for i in range(len(lengths)) if math.prod(lengths[i + 1 :]) <= rows)
    step = rows // math.prod(lengths[cut + 1 :])
    for place in np.ndindex(*lengths[:cut]):
        for start in range(0, lengths[cut], step):
            part = slice(start, min(start + step, lengths[cut]))
            yield [*(slice(i, i + 1) for i in place), part, *map(slice, lengths[cut + 1 :])]


def _is_time(variable: Any) -> bool:
    """Say whether a variable holds times of the calendar that dates have."""
    unit, since, _ = getattr(variable, "units", "").partition(" since ")
    calendar = getattr(variable, "calendar", "standard")
    return bool(since) and unit[:3] not in ("mon", "yea") and calendar in CALENDARS


def _of_grid(variable: Any, part: dict[str, slice]) -> Any:
    """Return a variable at the cells of a slab, repeated along the axes that it lacks."""
    import pyarrow as pa
    from netCDF4 import num2date

    own = [axis for axis in part if axis in variable.dimensions]
    values: Any = np.ma.asarray(variable[tuple(part[axis] for axis in variable.dimensions)])
    values = values.transpose([variable.dimensions.index(axis) for axis in own])
    values = values.astype(np.float64).filled(np.nan)
    if _is_time(variable):
        times = np.full(values.shape, np.datetime64("NaT", "us"))
        there = np.isfinite(values)
        told = num2date(values[there], variable.units, only_use_cftime_datetimes=False)
        times[there] = np.asarray(told, dtype="M8[us]")
        values = times
    lacking = [i for i, axis in enumerate(part) if axis not in own]
    sizes = [cut.stop - (cut.start or 0) for cut in part.values()]
    return pa.array(np.broadcast_to(np.expand_dims(values, lacking), sizes).ravel())


OPENED: dict[str, Callable[[Path], Columns]] = {
    **dict.fromkeys((".parquet", ".pq"), parquet),
    ".feather": functools.partial(dataset, format="feather"),
    **dict.fromkeys((".jsonl", ".ndjson"), functools.partial(dataset, format="json")),
    **dict.fromkeys((".xlsx", ".xlsm"), sheet),
    ".nc": grid,
}

# ---- writing


OUTPUTS = (".parquet", ".pq", ".csv", ".feather", ".jsonl", ".xlsx")
ANY_TYPE = (".parquet", ".pq", ".feather")  # of these, those that hold columns of every type


@contextlib.contextmanager
def writing(path: Path, ending: str, schema: Any) -> Iterator[Callable[[Any], Any]]:
    """Open a file of this kind for writing; give what writes a batch."""
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
    """Return a value as a cell: text as text, whatever it begins with."""
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(page, value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value)
    if isinstance(value, str):
        cell.data_type = "s"
    return cell
