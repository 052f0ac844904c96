"""Files whose columns have types: read right, or what is left out is told."""

import datetime
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gzkcore import open_batches
from gzkcore.rows.files import open_table
from gzkcore.rows.frames import read_frame
from gzkcore.rows.text import Reading

pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
feather = pytest.importorskip("pyarrow.feather", reason="the extra `cli` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")

FRAME = pd.DataFrame({
    "a": [1.5, np.nan, -3.0, 4.0],
    "kind": ["x", "y", None, "x"],
    "day": pd.to_datetime(["2024-01-31", "2024-02-01", "2024-02-02", "2024-02-03"]),
    "y": [1.0, 2.0, 3.0, 4.0],
})  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(path):
    table = open_table(path)
    return read_frame(table, table.beside(""), lambda label, share: None).frame


def check(path):
    """Check that a file has the columns of FRAME, with their kinds and values."""
    found = read(path)
    assert found.columns == [*FRAME.columns]
    for name in ("a", "y"):
        np.testing.assert_array_equal(found[name], FRAME[name])
    np.testing.assert_array_equal(found["day"], FRAME["day"])
    assert found["kind"].tolist() == ["x", "y", None, "x"]


def test_feather_lines_of_json_and_zipped_text():
    feather.write_feather(FRAME, "data.feather")
    Path("data.jsonl").write_text(FRAME.to_json(orient="records", lines=True, date_format="iso"))
    with zipfile.ZipFile("data.csv.zip", "w") as archive:
        archive.writestr("data.csv", FRAME.to_csv(index=False))
        archive.writestr("__MACOSX/._data.csv", b"x")
    with zipfile.ZipFile("data.zip", "w") as archive:
        archive.writestr("my.txt", FRAME.to_csv(index=False, sep="|"))
    for name in ("data.feather", "data.jsonl", "data.csv.zip", "data.zip"):
        check(name)
    with zipfile.ZipFile("data.csv.zip", "a") as archive:
        archive.writestr("more.csv", b"x")
    with pytest.raises(ValueError, match="has 2 files; unpack it, and give one of them"):
        open_table("data.csv.zip")


def test_text_that_polars_writes_to_feather():
    polars = pytest.importorskip("polars")
    polars.DataFrame({"text": ["a", None, "b"], "x": [1, 2, 3]}).write_ipc("data.feather")
    frame = read_frame(open_table("data.feather"), ["text", "x"], lambda *_: None).frame
    assert frame["text"].tolist() == ["a", None, "b"]


def test_a_folder_of_parquet():
    Path("all/year=2023").mkdir(parents=True)
    Path("all/year=2024").mkdir(parents=True)
    Path("all/README.md").write_text("not a table")
    FRAME[:2].to_parquet("all/year=2023/a.parquet", index=False)
    FRAME[2:].to_parquet("all/year=2024/b.parquet", index=False)
    found = read("all")
    np.testing.assert_array_equal(found["y"], [1, 2, 3, 4])
    np.testing.assert_array_equal(found["year"], [2023, 2023, 2024, 2024])
    for name in ("1.csv", "2.csv", "3.csv", "4.csv", "5.csv", "_SUCCESS", ".1.crc"):
        Path("all", name).write_text("a\n1\n")
    told = "no .parquet files, and left out: 1.csv, 2.csv, 3.csv, 4.csv, 5.csv and 1 more"
    assert open_table("all").notes == [told]
    Path("none").mkdir()
    with pytest.raises(ValueError, match="none: this is a folder without"):
        open_table("none")


def test_a_folder_whose_files_differ():
    """Those of the second file were lost, or missing, without a word."""
    Path("all").mkdir()
    FRAME.to_parquet("all/1.parquet", index=False)
    FRAME.rename(columns={"a": "A"}).to_parquet("all/2.parquet", index=False)
    with pytest.raises(ValueError, match=r"all/2.parquet has a column 'A' and none called 'a', wh"):
        open_table("all")
    FRAME.assign(y="1").to_parquet("all/2.parquet", index=False)
    with pytest.raises(ValueError, match=r"all/2.parquet: .* the column y has incompatible types"):
        open_table("all")
    FRAME.assign(b=[7, 8, 9, 10], y=[1, 2, 3, 4.5]).to_parquet("all/2.parquet", index=False)
    FRAME.astype({"y": int}).to_parquet("all/1.parquet", index=False)
    table = open_table("all")
    assert table.notes == ["taken as missing where a file has no such column: b (all/1.parquet)"]
    found = read("all")
    np.testing.assert_array_equal(found["b"], 4 * [np.nan] + [7, 8, 9, 10])
    np.testing.assert_array_equal(found["y"], [1, 2, 3, 4, 1, 2, 3, 4.5])
    Path("all/2.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ValueError, match=r"all is not a folder of .parquet files: .*all/2.parq"):
        open_table("all")


def test_one_file_of_a_folder_has_the_columns_that_folders_name():
    Path("all/year=2023").mkdir(parents=True)
    FRAME.to_parquet("all/year=2023/a.parquet", index=False)
    for path in ("all", "all/year=2023", "all/year=2023/a.parquet"):
        np.testing.assert_array_equal(read(path)["year"], 4 * [2023])
    Path("all/year=2023/.more").mkdir()
    FRAME.to_parquet("all/year=2023/.more/b.parquet", index=False)
    assert len(read("all")["year"]) == 4
    FRAME.assign(year=7).to_parquet("all/year=2023/a.parquet", index=False)
    np.testing.assert_array_equal(read("all")["year"], 4 * [7])


@pytest.mark.parametrize("block", [1 << 24, 20])
def test_lines_of_json_have_one_type(monkeypatch, block):
    monkeypatch.setattr("gzkcore.rows.columnar.JSON_BYTES", block)
    lines = [f'{{"a": {i}, "y": 1, "at": "2024-01-0{i + 1}"}}' for i in range(4)]
    text = "\n".join(["\ufeff" + lines[0], *lines[1:], '{"a": 4.5, "y": 1, "b": 3, "at": "x"}', ""])
    Path("data.jsonl").write_text(text, encoding="utf-8")
    found = read("data.jsonl")
    np.testing.assert_array_equal(found["a"], [0, 1, 2, 3, 4.5])
    np.testing.assert_array_equal(found["b"], [*4 * [np.nan], 3])
    assert found["at"].tolist() == [*(f"2024-01-0{i}" for i in range(1, 5)), "x"]
    for line, told in {
        '{"a": "x", "y": 1}': "data row 5, column 'a': 'x' is text, where rows above have a number",
        '{"a": 1, "y": ': 'data row 5, \'{"a": 1, "y":\', is no object of JSON; write one in each',
        "[1, 2]": "data row 5, '\\[1, 2\\]', is no object of JSON",
    }.items():
        Path("data.jsonl").write_text("\n".join([*lines, line, ""]))
        with pytest.raises(ValueError, match=f"data.jsonl: {told}"):
            open_table("data.jsonl")


def test_lines_above_a_sheet():
    pytest.importorskip("openpyxl", reason="the extra `sheets` is not installed")
    with pd.ExcelWriter("data.xlsx") as book:
        FRAME.to_excel(book, sheet_name="values", index=False, startrow=3)
        book.sheets["values"]["A1"] = "Report"
    with pytest.raises(ValueError, match=r"no column 'y'; .*; line 4 has it: --skip-lines 3 leav"):
        open_table("data.xlsx").require(["y"])
    np.testing.assert_array_equal(
        next(open_table("data.xlsx", Reading(skip_lines=3)).batches(["y"]))[1].ravel(), FRAME["y"]
    )
    above = pd.DataFrame([["Site", "Ulm", "of", "2024"], [*FRAME.columns], *FRAME.values.tolist()])
    above.to_excel("data.xlsx", index=False, header=False)
    with pytest.raises(ValueError, match=r"no column 'y'.*; line 2 has it: --skip-lines 1 leaves"):
        open_table("data.xlsx").require(["y"])


def test_other_sheets_are_named():
    """Those with the same columns in a note, those with a column that is asked for in an error."""
    pytest.importorskip("openpyxl", reason="the extra `sheets` is not installed")
    with pd.ExcelWriter("data.xlsx") as book:
        for year in ("2023", "2024", "2025"):
            FRAME.to_excel(book, sheet_name=year, index=False)
        FRAME[:1].assign(cost=1, price=2).to_excel(book, sheet_name="of all", startrow=2)
    table = open_table("data.xlsx")
    (note,) = table.notes
    assert note.endswith(
        "; the same columns are in '2024', '2025': put their rows into one sheet to learn from all"
    )
    assert open_table("data.xlsx::2024").notes == []
    with pytest.raises(ValueError, match=r"'cost'; .*; another sheet has it: 'data.xlsx::of all'$"):
        table.require(["cost"])
    lack = r"'costs'; .*; its other sheets lack it too: .*, 'of all' \(cost, .* and 1 more\)$"
    with pytest.raises(ValueError, match=lack):
        table.require(["costs"])


def test_sheets_that_hold_no_table_are_not_offered():
    openpyxl = pytest.importorskip("openpyxl", reason="the extra `sheets` is not installed")
    book = openpyxl.Workbook()
    book["Sheet"].append(["a", "y"])
    book.create_chartsheet("chart", 0).add_chart(openpyxl.chart.LineChart())
    book.create_sheet("empty")
    book.save("data.xlsx")
    table = open_table("data.xlsx")
    assert (table.names, table.notes) == (["a", "y"], [])
    with pytest.raises(ValueError, match=r"has no sheet 'chart'; its sheets are Sheet, empty$"):
        open_table("data.xlsx::chart")
    book["empty"].append(["About this file: " + 50 * "much text, "])
    book.save("data.xlsx")
    with pytest.raises(ValueError, match=r"lack it too: 'empty' \(About this .{,60}\)$"):
        open_table("data.xlsx").require(["z"])


def test_sheets():
    pytest.importorskip("openpyxl", reason="the extra `sheets` is not installed")
    with pd.ExcelWriter("data.xlsx") as book:
        FRAME.to_excel(book, sheet_name="values", index=False, startrow=2)
        FRAME[["a", "y"]][:1].to_excel(book, sheet_name="notes")
    check("data.xlsx")
    assert open_table("data.xlsx").notes == [
        "read from the first sheet, 'values'; data.xlsx::notes reads another"
    ]
    batches = open_batches("data.xlsx::notes", "y", columns=["a"])
    assert [(X.tolist(), y.tolist()) for X, y in batches] == [([[1.5]], [1])]
    with pytest.raises(ValueError, match=r"data.xlsx has no sheet 'x'; its sheets are values, not"):
        open_table("data.xlsx::x")
    pd.Series([1.5, 2.5], ["u", "v"], name="y").to_excel("data.xlsx")
    assert open_table("data.xlsx").names == ["Unnamed: 0", "y"]
    cells = pd.DataFrame({"n": [1, "#DIV/0!", 3], "code": [12, "B7", None], "at": 3 * [None]})
    cells["at"] = [datetime.date(2024, 1, 2), None, datetime.datetime(2024, 1, 2, 12)]
    cells.to_excel("data.xlsx", index=False)
    found = read("data.xlsx")
    np.testing.assert_array_equal(found["n"], [1, np.nan, 3])
    assert found["code"].tolist() == ["12", "B7", None]
    np.testing.assert_array_equal(
        found["at"], np.array(["2024-01-02", "NaT", "2024-01-02T12:00"], "M8[us]")
    )


def test_columns_of_other_types_are_left_out_and_told():
    table = pyarrow.table({
        "a": [1.0, 2.0], "tags": [["u"], []], "shape": [b"\x01", b"\x02"],
        "took": pyarrow.array([1, 2], pyarrow.duration("s")), "pair": [{"u": 1}, {"u": 2}],
        "y": [3.0, 4.0],
    })  # fmt: skip
    parquet.write_table(table, "data.parquet")
    told = (
        "left out, since they hold no numbers, text or dates: tags (list<element: string>), shape "
        "(binary), took (duration[s]), pair (struct<u: int64>)"
    )
    opened = open_table("data.parquet")
    opened.leave_apart()
    assert opened.notes == [told]
    assert opened.beside("y") == ["a"]
    with pytest.warns(UserWarning, match="left out, since they hold"):
        batches = open_batches("data.parquet", "y")
    assert batches.columns == ["a"]
    for name, kept in (("out.parquet", table.column_names), ("out.csv", ["a", "y"])):
        [*opened.append(["a"], lambda rows: [np.zeros(2)], {"p": np.dtype(float)}, Path(name))]
        written = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
        assert [*written.columns] == [*kept, "p"]


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".jsonl", ".xlsx", ".csv"])
def test_a_copy_with_a_new_column_is_read_as_before(ending):
    if ending == ".xlsx":
        pytest.importorskip("openpyxl", reason="the extra `sheets` is not installed")
    frame = FRAME.assign(kind=["=1+1", "y", None, "é"])
    frame.to_parquet("data.parquet", index=False)
    opened, output = open_table("data.parquet"), Path(f"out{ending}")
    [*opened.append(["a"], lambda rows: [np.arange(4.0)], {"p": np.dtype(float)}, output)]
    found = read(output)
    np.testing.assert_array_equal(found["p"], np.arange(4.0))
    np.testing.assert_array_equal(found["day"], FRAME["day"])
    assert found["kind"].tolist() == ["=1+1", "y", None, "é"]


def test_grids():
    netcdf = pytest.importorskip("netCDF4", reason="the extra `grids` is not installed")
    values = np.arange(24.0).reshape(2, 3, 4)
    with netcdf.Dataset("data.nc", "w") as file:
        for name, size in (("time", 2), ("lat", 3), ("lon", 4), ("bnds", 2)):
            file.createDimension(name, size)
        time = file.createVariable("time", "i4", ("time",))
        time.units, time[:] = "hours since 2024-01-01", [0, 36]
        file.createVariable("lat", "f8", ("lat",))[:] = [50, 40, 30]
        lon = file.createVariable("lon", "f4", ("lon",))
        lon.units, lon[:] = "degrees_west", [0, -10, -20, -30]
        file.createVariable("bounds", "f8", ("time", "bnds"))[:] = 0
        file.createVariable("crs", "i4")
        file.createVariable("height", "i2", ("lon", "lat"))[:] = np.arange(12).reshape(4, 3)
        packed = file.createVariable("t", "i2", ("time", "lat", "lon"), fill_value=-1)
        packed.scale_factor, packed.add_offset = 0.5, 0.0
        packed[:] = np.ma.masked_equal(values, 5)
    table = open_table("data.nc")
    assert table.names == ["time", "lat", "lon", "height", "t"]
    left_out = "left out, without these axes or no numbers: bounds, crs"
    assert table.notes == [f"{left_out}; degrees west or south, read as negative: lon"]
    for rows in (1, 5, 100):
        batches = [*table._file.scan(table.names, rows)]
        assert max(batch.num_rows for batch in batches) <= max(rows, 4 * (rows == 5))
        found = pyarrow.Table.from_batches(batches).to_pandas()
        grid = np.meshgrid([0, 36], [50, 40, 30], [0, 10, 20, 30], indexing="ij")
        hours = (found.time - pd.Timestamp("2024-01-01")) / pd.Timedelta(hours=1)
        for column, wanted in zip((hours, found.lat, found.lon), grid, strict=True):
            np.testing.assert_array_equal(column, wanted.ravel())
        heights = np.tile(np.arange(12).reshape(4, 3).T.ravel(), 2)
        np.testing.assert_array_equal(found.height, heights)
        np.testing.assert_array_equal(found.t, np.where(values == 5, np.nan, values).ravel())


@pytest.mark.parametrize(("units", "own", "values", "expected", "told"), [
    ("days since 1850-01-01", "standard", [60000.5], ["2014-04-11T12"], ""),
    ("Seconds Since 1970-01-01", "GREGORIAN", [1e9], ["2001-09-09T01:46:40"], ""),
    ("minutes since 2000-01-01 00:00:00 -6:00", None, [1], ["2000-01-01T06:01"], ""),
    ("days since 1-1-1", "proleptic_gregorian", [730000], ["1999-09-04"], ""),
    ("days since 2000-01-01", "noleap", [58, 59.5], ["2000-02-28", "2000-03-01T12"], "'noleap'"),
    ("days since 2001-01-01", "360_day", [30, 59, 60], ["2001-02-01", "2001-02-28", "2001-03-01"],
     "dates of the calendar '360_day' are read as those of the same name"),
    ("days since 0001-02-28", "julian", [1], ["0001-03-01"], "'julian'"),
    ("months since 2000-01-15", "360_day", [0, 1.5], ["2000-01-15", "2000-02-29"], "'360_day'"),
    ("months since 2000-01-01", None, [1], None, "time: numbers of 'months since 2000-01-01', in"),
    ("day as %Y%m%d.%f", None, [20000101.5], None, "numbers of 'day as %Y%m%d.%f', in which no dates are read"),
    ("days since the flood", None, [1], None, "in which no dates are read"),
    ("days since 2000-01-01", "none", [1], None, "in which no dates are read"),
    ("days", None, [1], None, ""),
])  # fmt: skip
def test_times_of_grids(units, own, values, expected, told):
    netcdf = pytest.importorskip("netCDF4", reason="the extra `grids` is not installed")
    with netcdf.Dataset("data.nc", "w") as file:
        file.createDimension("time", len(values))
        time = file.createVariable("time", "f8", ("time",))
        time.units, time[:] = units, values
        if own:
            time.calendar = own
    table = open_table("data.nc")
    found = next(table.columns(["time"]))[1]["time"].to_numpy(zero_copy_only=False)
    wanted = np.array(values, float) if expected is None else np.array(expected, "M8[us]")
    np.testing.assert_array_equal(found, wanted)
    assert told in "".join(table.notes)
    assert bool(told) == bool(table.notes)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input(name, monkeypatch):
    both = io.BytesIO()
    FRAME[["y"]].to_parquet(both)
    for given in (b"y\n1\n2\n3\n4\n", both.getvalue()):
        end, start = os.pipe()
        with os.fdopen(start, "wb") as writer:
            writer.write(given)
        with os.fdopen(end) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert [X.tolist() for (X,) in open_batches(name)] == [[[1.0], [2.0], [3.0], [4.0]]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe():
    os.mkfifo("pipe")
    writer = subprocess.Popen(["sh", "-c", "printf 'a,y\\n1,2\\n' > pipe"])
    table = open_table("pipe")
    assert writer.wait() == 0
    assert table.names == ["a", "y"]
    for _ in range(2):
        assert [values.tolist() for _, values, _ in table.batches(["a", "y"])] == [[[1, 2]]]
