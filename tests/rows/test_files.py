"""Tables in files: what they hold, what is refused, and copies with new columns."""

import csv
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from gzkcore import open_batches
from gzkcore.rows import files as tables
from gzkcore.rows.files import open_table
from gzkcore.rows.frames import read_frame
from gzkcore.rows.text import Reading

DOUBLE = np.dtype(np.float64)
EXTRA = "the extra `cli` is not installed"
pyarrow = pytest.importorskip("pyarrow", reason=EXTRA)
parquet = pytest.importorskip("pyarrow.parquet", reason=EXTRA)


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def numbers():
    return np.random.default_rng(1).standard_normal((500, 4)) * [1, 100, 1e-3, 1]


def in_files(numbers):
    """Write the numbers in every format; yield the files and their names of the columns."""
    a, b, c, y = numbers.T
    text = "".join(",".join(map(repr, row)) + "\n" for row in numbers.tolist())
    Path("data.csv").write_text("a,b,c,y\n" + text)
    parquet.write_table(pyarrow.table({"a": a, "b": b, "c": c, "y": y}), "data.parquet")
    np.save("data.npy", numbers)
    np.save("columns.npy", np.asfortranarray(numbers))
    np.savez_compressed("data.npz", a=a, X=numbers[:, 1:3], y=y)
    np.savez("columns.npz", a=a, X=np.asfortranarray(numbers[:, 1:3]), y=y)
    for name in ("data.csv", "data.parquet"):
        yield name, ["a", "b", "c", "y"]
    for name in ("data.npy", "columns.npy"):
        yield name, ["0", "1", "2", "3"]
    for name in ("data.npz", "columns.npz"):
        yield name, ["a", "X0", "X1", "y"]


def doubles(columns):
    """Return columns, as `append` gives them to what computes new ones, as numbers."""
    return np.column_stack(
        [[float(str(value).replace(",", ".")) for value in column] for column in columns.values()]
    )


def read(pieces):
    """Put what a table or its columns yield together, and check where each piece begins."""
    found, done = [], 0.0
    for first, values, share in pieces:
        assert first == sum(map(len, found))
        assert done <= share <= 1
        done = share
        found.append(values.copy())
    assert done == 1
    return np.concatenate(found)


def read_file(path, names):
    table = open_table(path)
    table.require(names)
    return read(table.batches(names))


def refuse(path, names, match):
    with pytest.raises(ValueError, match=re.escape(match)):
        read_file(path, names)


# ---- reading


@pytest.mark.parametrize("small", [False, True], ids=["whole", "in pieces"])
def test_formats_agree(numbers, small, monkeypatch):
    if small:
        monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
        monkeypatch.setattr(tables, "BLOCK_VALUES", 50)
    for path, names in in_files(numbers):
        table = open_table(path)
        assert sorted(table.names) == sorted(names)
        np.testing.assert_array_equal(read(table.batches(names)), numbers)
        np.testing.assert_array_equal(read(table.batches(names[:0:-2])), numbers[:, :0:-2])


def test_columns_that_can_be_numbers():
    Path("data.csv").write_text("a,name,b\n1,x,2\n3,y,4\n")
    assert open_table("data.csv").numeric(["name", "a", "b"]) == ["a", "b"]


# ---- what is refused


@pytest.mark.parametrize(("text", "reason"), [
    ("", "data.csv is empty; pass a file with rows"),
    ("\n1,2\n", "data.csv: the first line is blank, but must name the columns"),
    ("a,y\n", "data.csv has columns, but no rows"),
    ("a,y\n1,2\n\n3,x\n", "row 2, column 'y': the value is 'x', which is not a finite number;"),
    ("a,y\n1,2\n,4\n", "row 2, column 'a': the value is missing; mend or drop such rows"),
    ("a,y\n1,2\n3,-inf\n4,nan", "row 2, column 'y': the value is '-inf'"),
    ("a,y\n1,2\n3,x\nz,4\n", "row 2, column 'y': the value is 'x'"),  # the first row, not column
    ("a,y\n1,2\n3\n", "data row 2 has 1 value, but there are 2 columns: '3'"),
    ("a\ty\n1\t2,5\n", "'2,5', which is not a finite number: it has a decimal comma, where a po"),
    ("1,2.5\n3,4\n", "the first line has numbers, '1,2.5', but must name the columns; write"),
    ("# made by me\n1 2.5\n3 4\n", "numbers, '1 2.5', but must name the columns"),
    ("1.0   2.5\n3 4\n", "numbers, '1.0   2.5', but must name the columns"),
    ("1,2\n3,4\n", "its columns are 1, 2; has it no first line that names the columns?"),
    ("a b y\n1 2 3\n", "its only column is 'a b y'; separate columns by commas, semicolons"),
    ("a:y\n1:2\n", "its only column is 'a:y'; separate columns by commas, semicolons, tabs or |"),
    ("a ,b,\n1,2,3\n", "its columns are a, b, the unnamed column"),
    ("Ulm,,\na,y,c\n1,2,3\n", "columns are Ulm, the unnamed column, .1; line 2 has it: --skip-lines 1 leaves"),
    ("<!DOCTYPE html>\n<p>a,y", "data.csv is a page of HTML or XML; open it in a spreadsheet"),
    ('[{"a": 1, "y": 2}]', "data.csv is JSON; write an object in each line, as pandas does by to_"),
    ("a,y\n1,\x8f\n", "data.csv is not text in UTF-8 or windows-1252, which b'\\x8f' is no part of"),
    ("a\n1\n", "there is no column 'y'; its only column is 'a'"),
    ('a,y\n1,"2,5"\n', "'2,5', which is not a finite number: it has a decimal comma"),
    ('a,y\n1,"3,021"\n', "'3,021', which is not a finite number: its comma seems to separate"),
    ("H\xf6he,y\n1,2\n", "its columns are H\xf6he, y; the header is not UTF-8, but read as win"),
    ("a,y\n1,M\xfcnchen\n", "row 1, column 'y': the value is 'M\xfcnchen'"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:data.csv. what is not UTF-8")
def test_bad_text(text, reason):
    Path("data.csv").write_bytes(text.encode("latin-1"))
    refuse("data.csv", ["a", "y"], reason)


@pytest.mark.parametrize(("header", "names"), [
    ('"Temp, °C";"Druck, hPa";"y"', ["Temp, °C", "Druck, hPa", "y"]),
    ('"a\nb",b,y', ["a\nb", "b", "y"]),
    ('a,"b\r\n""c""",y', ["a", 'b\r\n"c"', "y"]),
    ('5" pipe,b,y', ['5" pipe', "b", "y"]),
])  # fmt: skip
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_headers_with_quotes(monkeypatch, header, names, mark, end):
    monkeypatch.setattr(tables, "HEAD_BYTES", 40)
    delimiter = ";" if ";" in header else ","
    lines = [mark + header, *(delimiter.join(row) for row in ("123", "456", "789"))]
    Path("data.csv").write_bytes("".join(line + end for line in lines).encode())
    table = open_table("data.csv")
    assert table.names == names
    assert np.array_equal(read(table.batches(["y"])).ravel(), [3, 6, 9])
    list(
        table.append(
            ["y"], lambda columns: [2 * doubles(columns)[:, 0]], {"new": DOUBLE}, Path("out.csv")
        )
    )
    again = open_table("out.csv")
    assert again.names == [*names, "new"]
    assert np.array_equal(read(again.batches(["new"])).ravel(), [6, 12, 18])


# (lines, names of the columns, where these are named)
COMMENTS = [
    (["# USGS export", "# of 2024, in metres", "a,b,y"], ["a", "b", "y"], 2),
    (["#", "", "# more", "", "", "2019,2020,y"], ["2019", "2020", "y"], 5),
    (["# a, b and c", "a;b;y"], ["a", "b", "y"], 1),
    (["# made by savetxt", "# a;b;y"], ["a", "b", "y"], 1),
    (["#a,b,y"], ["#a", "b", "y"], 0),
    (["##fileformat=1", "#a\tb\ty", ""], ["#a", "b", "y"], 1),
]


@pytest.mark.parametrize(("lines", "names", "place"), COMMENTS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False], ids=["ends", "no end"])
def test_comments_before_the_header(monkeypatch, lines, names, place, mark, end, last):
    monkeypatch.setattr(tables, "HEAD_BYTES", 5)
    monkeypatch.setattr(tables, "BLOCK_BYTES", 3)
    delimiter = next(each for each in "\t;," if each in lines[place])
    rows = [delimiter.join(row) for row in ("123", "456", "789")]
    text = mark + end.join([*lines, *rows]) + end * last
    Path("data.csv").write_bytes(text.encode())
    table = open_table("data.csv")
    assert table.names == names
    assert np.array_equal(read(table.batches(["y"])).ravel(), [3, 6, 9])
    list(
        table.append(
            ["y"], lambda columns: [2 * doubles(columns)[:, 0]], {"new": DOUBLE}, Path("out.csv")
        )
    )
    lines = [line + (delimiter + "new") * (i == place) for i, line in enumerate(lines)]
    rows = [f"{row}{delimiter}{2 * float(row[-1])}" for row in rows]
    expected = mark + end.join([*lines, *rows]) + end * last
    assert Path("out.csv").read_bytes() == expected.encode()


BUOY = """#YY  MM DD hh mm WDIR WSPD  APD MWD   ATMP  TIDE
#yr  mo dy hr mn degT m/s   sec degT   hPa    ft
2024 03 01 00 50 220  7.0   5.6 210 1015.3    MM
2024 03 01 00 40 090   MM    MM  MM 1015.1    MM
2024 03 01 00 30  80  6.0   5.5 200 1015.0  0.30
"""


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_of_buoys(n_rows, end):
    lines = BUOY.splitlines()[: 2 + n_rows]
    Path("data.txt").write_bytes((end.join(lines) + end).encode())
    table = open_table("data.txt")
    assert table.names == ["YY", "MM", "DD", "hh", "mm", *lines[0].split()[5:]]
    assert "the line below the names, '#yr  mo dy hr mn degT m/s" in table.notes[0]
    frame = read_frame(table, table.names, lambda *_: None).frame
    first = [2024, 3, 1, 0, 50, 220, 7, 5.6, 210, 1015.3, np.nan]
    np.testing.assert_array_equal([column[0] for column in frame.values.values()], first)
    assert np.isnan(frame["WSPD"][1:2]).all()
    new = {"new": DOUBLE}
    list(table.append(["ATMP"], lambda of: [doubles(of)[:, 0]], new, Path("out.txt")))
    written = Path("out.txt").read_text().splitlines()
    assert written[0] == lines[0] + " new"
    assert written[2] == lines[2] + " 1015.3"


def test_units_of_buoys_are_no_names_even_if_none_repeats():
    Path("data.txt").write_text("#YY  MM DD hh WVHT\n#yr  mo dy hr    m\n2024 03 01 00  1.2\n")
    assert open_table("data.txt").names == ["YY", "MM", "DD", "hh", "WVHT"]


def test_a_comment_too_long_for_names():
    Path("data.csv").write_text(f"# {'x' * 200_000}\n1.5 2\n")
    refuse("data.csv", ["y"], "the first line has numbers, '1.5 2', but must name the columns")


@pytest.mark.parametrize("text", ["# nothing\n# more\n", "# nothing\n# more", "#a"])
def test_comments_alone(text):
    Path("data.csv").write_text(text)
    refuse("data.csv", ["y"], "there is no column 'y'; its only column is '#")


@pytest.mark.parametrize("delimiter", [" ", ",", "\t"])
@pytest.mark.parametrize(
    "header", ["a b y", "a  b y", "of 2024\n\nmade here\na b y", "a\tb\ty", "a,b,y", "a, b, y"]
)
def test_names_that_savetxt_writes_as_a_comment(delimiter, header):
    """The first row of numbers was taken for names, and the # for a part of the first name."""
    rows = np.array([[1.5, np.nan, 3], [4, -5e20, 6]])
    np.savetxt("data.csv", rows, delimiter=delimiter, header=header)
    table = open_table("data.csv")
    assert table.names == ["a", "b", "y"]
    assert np.array_equal(read(table.batches(["a", "y"])), rows[:, [0, 2]])
    new = {"new": DOUBLE, "my own": DOUBLE}
    list(
        table.append(["y"], lambda columns: [2 * doubles(columns)[:, 0]] * 2, new, Path("out.csv"))
    )
    again = open_table("out.csv")
    assert again.names == ["a", "b", "y", *new]
    assert np.array_equal(read(again.batches(["y", "my own"])), [[3, 6], [6, 12]])


def test_whole_numbers_may_be_names():
    for names in ("0,1,2", "2022,2023,2024"):
        Path("data.csv").write_text(f"{names}\n4,5,6.5\n")
        assert open_table("data.csv").names == names.split(",")


def with_commas(values):
    Path("data.csv").write_text("a;y\n" + "".join(f"1;{value}\n" for value in values))
    return read(open_table("data.csv", Reading(decimal_comma=True)).batches(["y"])).ravel()


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["932", "2.714", "5"], [932, 2714, 5]), (["932,5", "7", "2.714"], [932.5, 7, 2714])],
)
def test_points_that_separate_thousands(values, expected):
    with pytest.warns(UserWarning, match=r"column 'y': '2.714' is read as 2714, since '.' separ"):
        assert np.array_equal(with_commas(values), expected)


def test_a_point_beside_decimal_commas():
    with pytest.raises(
        ValueError, match=r"row 1, column 'y': '1.5' has a point, where others have"
    ):
        with_commas(["1.5", "2,5", "3"])


@pytest.mark.parametrize("values", [["1.5", "2.25", "3"], ["0.125", "2.714", "3"]])
def test_points_of_columns_without_commas(values):
    assert np.array_equal(with_commas(values), np.array(values, float))


@pytest.mark.parametrize(("values", "holds"), [
    (pyarrow.array([0], pyarrow.timestamp("ms")), "timestamp[ms]"),
    (pyarrow.array([0], pyarrow.duration("s")), "duration[s]"),
    (pyarrow.array([[1.0]]), "list<"),
    (pyarrow.array([b"x"]), "binary"),
])  # fmt: skip
def test_types_that_are_no_numbers(values, holds):
    parquet.write_table(pyarrow.table({"a": values, "y": [1.0]}), "data.parquet")
    refuse("data.parquet", ["a", "y"], f"column 'a' holds {holds}")


def test_columns_that_are_not_there():
    Path("data.csv").write_text("lat,b\n1,2\n")
    refuse("data.csv", ["b", "lot"], "there is no column 'lot'; did you mean 'lat'?")
    refuse("data.csv", ["LAT"], "there is no column 'LAT'; did you mean 'lat'?")
    refuse("data.csv", ["zz"], "there is no column 'zz'; its columns are lat, b")
    refuse("data.csv", ["zz", "b", "u"], "there are no columns 'zz', 'u'; its columns are lat, b")
    refuse("data.csv", [*"stuvwxyz"], "no columns 's', 't', 'u', 'v', 'w' and 3 more; its columns")


def test_bad_files():
    for name, content, reason in (
        ("data.doc.x", b"x", "data.doc.x: the name must end with one of .csv, .tsv"),
        ("data.json", b"x", "data.json is JSON; write an object in each line"),
        ("data.xls", b"x", "data.xls is a spreadsheet; save it as .xlsx or as CSV"),
        ("data.xlsx", b"x", "data.xlsx is not a .xlsx file: File is not a zip file"),
        ("data.PNG", b"x", "data.PNG is a picture, not a table"),
        ("data.csv.zip", b"x", "data.csv.zip can't be unpacked: File is not a zip file"),
        ("data.zip", b"x", "data.zip can't be unpacked: File is not a zip file"),
        ("model.gzk", b"x", "model.gzk is a model that gzkcore saved"),
        ("png.csv", b"\x89PNG\r\n\x1a\nx", "png.csv is a picture, not a table"),
        ("xlsx.csv", b"PK\x03\x04..xl/workbook.xml", "xlsx.csv is a spreadsheet; save it as .xls"),
        ("zip.tsv", b"PK\x03\x04..a.csv", "zip.tsv is an archive; unpack it"),
        ("pdf.txt", b"%PDF-1.4\n", "pdf.txt is a document, not a table"),
        ("h5.csv", b"\x89HDF\r\n\x1a\n1", "h5.csv is a file of HDF5, not text; save the table as"),
        ("db.csv", b"SQLite format 3\0", "db.csv is a file of SQLite, not text; save the table as"),
        (
            "parquet.csv",
            b"PAR1\x15\x04",
            "is a file of Parquet, not text; let its name end with .parqu",
        ),
        ("npy.csv", b"\x93NUMPY no", "npy.csv is a file of NumPy, not text; let its name end with"),
        ("more.csv", b"a,b\n1,2\n\0\0", "more.csv is not a text; save the table as CSV"),
        (
            "png.npy",
            b"\x89PNG\r\n\x1a\nx",
            "png.npy is not a .npy file of arrays: the magic string",
        ),
        ("data.parquet", b"PAR1 no", "data.parquet is not a .parquet file"),
        ("data.npy", b"no", "data.npy is not a .npy file of arrays"),
        ("data.npz", b"no", "data.npz is not a .npz file of arrays"),
    ):
        Path(name).write_bytes(content)
        refuse(name, [], reason)
    for name in ("n.csv", "n.xlsx", "n.doc"):
        refuse(name, [], f"{name}: there is no such file")
    refuse(".", [], ". is not a folder of .parquet files: ")


def test_bad_values_of_binary_files():
    parquet.write_table(pyarrow.table({"a": ["1", None], "y": [1, 2]}), "text.parquet")
    refuse("text.parquet", ["a", "y"], "row 2, column 'a': the value is missing")
    np.savez("uneven.npz", a=np.ones(3), y=np.ones(4))
    refuse("uneven.npz", ["a", "y"], "the arrays differ in length: a has 3, y has 4")
    np.savez("text.npz", a=np.array(["x", "y"]), y=np.ones(2))
    refuse("text.npz", ["a", "y"], "column 'a' holds <U1, not numbers")
    np.savez("objects.npz", X=np.ones((2, 2)), y=np.array(["a", 1], dtype=object))
    refuse(
        "objects.npz", ["X0", "y"], "objects.npz: y is an array of Python objects, which are stored"
    )
    np.savez("cube.npz", X=np.ones((4, 2, 2)), y=np.ones(4))
    with pytest.raises(ValueError, match=r"cube.npz: X has shape \(4, 2, 2\), but columns come fr"):
        open_batches("cube.npz", target="y")
    np.save("nan.npy", np.array([[1, 2], [3, np.nan]]))
    refuse("nan.npy", ["0", "1"], "row 2, column '1': the value is nan")


def test_nan_in_row_70000():
    rows = [f"{i % 91},{i % 181},{i % 7}" for i in range(80_000)]
    rows[70_000 - 1] = "12,NaN,3"
    Path("data.csv").write_text("\n".join(["lat,lon,y", *rows]))
    refuse(
        "data.csv",
        ["lat", "lon", "y"],
        "data.csv: data row 70000, column 'lon': the value is 'NaN', which is not a finite number; "
        "mend or drop such rows, or choose other columns",
    )


# ---- writing


def test_new_columns_in_every_format(numbers):
    outputs = {
        ".csv": [".csv"],
        ".parquet": [".parquet", ".csv"],
        ".npy": [".npy"],
        ".npz": [".npy"],
    }
    for path, names in in_files(numbers):
        for ending in outputs[Path(path).suffix]:
            new = Path(f"new{ending}")
            steps = open_table(path).append(
                names,
                lambda columns: [*doubles(columns).T[::3] * 2],
                {"p": DOUBLE, "q": DOUBLE},
                new,
            )
            assert list(steps)[-1] == 1
            expected = numbers[:, ::3] * 2
            if ending == ".npy":
                np.testing.assert_array_equal(np.load(new), expected)
                continue
            table = open_table(new)
            assert table.names == [*names, "p", "q"]
            np.testing.assert_array_equal(
                read(table.batches(table.names)), np.hstack([numbers, expected])
            )


def test_all_else_stays_as_it_is():
    """Every byte of a CSV file is copied but for the new column."""
    head = b'\xef\xbb\xbfname;lat;lon;"a ""note"""'
    rows = [
        b'"M\xc3\xbcnchen";48.1;11.6;"two\r\nlines; and ""more"""',
        b'Quito; -0.2;-78.50;5" tall',
        b'"0, 0";"0";"0";',
    ]
    Path("data.csv").write_bytes(b"\r\n".join([head, rows[0], rows[1], b"", rows[2]]))
    table = open_table("data.csv")
    new = {"p": DOUBLE, "q;r": DOUBLE}
    for _ in table.append(
        ["lat", "lon"], lambda columns: [*doubles(columns).T], new, Path("new.csv")
    ):
        pass
    expected = [
        head + b';p;"q;r"', rows[0] + b";48.1;11.6", rows[1] + b";-0.2;-78.5", b"",
        rows[2] + b";0.0;0.0",
    ]  # fmt: skip
    assert Path("new.csv").read_bytes() == b"\r\n".join(expected)


@pytest.mark.parametrize("text", ["1_000", "\u0661\u0662", "\uff11", "1\u00a0000"])
def test_numbers_are_written_in_plain_digits(text):
    """Python's float takes the first three."""
    Path("data.csv").write_text(f"a,b\n1,2\n3,{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"data\.csv: data row 2, column 'b': the value is '"):
        read(open_table("data.csv").batches(["a", "b"]))


@pytest.mark.parametrize(("content", "message"), [
    (b"a" * 200_000 + b"\n1\n", "the first line does not name columns: field larger than"),
    (b"a,b\n1,2\n\xc7,3,4\n", "data row 2 has 3 values, but there are 2 columns"),
    (b"a,b\n1,2\n\xc7\n", "data row 2 has 1 value, but there are 2 columns"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:t.csv. what is not UTF-8")
def test_broken_lines_are_told_of(content, message):
    Path("t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"t\.csv: {message}"):
        list(open_table(Path("t.csv")).batches(["a"]))


# ---- line ends, and compressed files


def test_lines_that_end_with_a_carriage_return(numbers, monkeypatch):
    """As in files of old; also in pieces, and of a copy."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    Path("data.csv").write_bytes(
        b"a,b,c,y\r" + b"".join(b"%a,%a,%a,%a\r" % tuple(row) for row in numbers.tolist())
    )
    table = open_table("data.csv")
    np.testing.assert_array_equal(read(table.batches(["a", "b", "c", "y"])), numbers)
    for _ in table.append(
        ["y"], lambda columns: [*doubles(columns).T], {"p": DOUBLE}, Path("new.csv")
    ):
        pass
    copy = open_table("new.csv")
    np.testing.assert_array_equal(read(copy.batches(["y", "p"])), numbers[:, [3, 3]])


@pytest.mark.parametrize("name", ["data.csv.gz", "data.csv.zst", "gzip.csv"])
def test_compressed_text(numbers, name, monkeypatch):
    """A name says so, or only the content does."""
    codec = "zstd" if name.endswith(".zst") else "gzip"
    if not pyarrow.Codec.is_available(codec):
        pytest.skip(f"this pyarrow has no {codec}")
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    path, names = next(in_files(numbers))
    packed = bytes(pyarrow.compress(Path(path).read_bytes(), codec, asbytes=True))
    Path(name).write_bytes(packed)
    table = open_table(name)
    np.testing.assert_array_equal(read(table.batches(names)), numbers)
    for _ in table.append(
        ["y"], lambda columns: [*doubles(columns).T], {"p": DOUBLE}, Path("new.csv")
    ):
        pass
    np.testing.assert_array_equal(read(open_table("new.csv").batches(["p"])), numbers[:, [3]])

    Path(name).write_bytes(packed[: len(packed) // 2])
    refuse(name, names, f"{name} is not all of a {codec} file")


@pytest.mark.parametrize(("name", "content", "reason"), [
    ("a.csv", b"a" * 140_000 + b",y\n1,2\n", "a.csv: the first line does not name columns"),
    ("a.csv", b"j?^\x01,\xef3\nb\xef,2\n", "a.csv is not a text; save the table as CSV"),
    ("a.csv", b"\x1f\x8b and no more", "a.csv is not all of a gzip file"),
    (
        "a.npy",
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'shape': (3" + 99 * b" ",
        "a.npy is not a",
    ),
    ("a.parquet.gz", b"PAR1", "a.parquet.gz: the name must end with one of .csv"),
], ids=["long name", "bytes", "no gzip", "half a header", "packed Parquet"])  # fmt: skip
def test_files_that_are_something_else(name, content, reason):
    Path(name).write_bytes(content)
    refuse(name, ["a"], reason)


def test_rows_of_other_lengths_in_another_encoding():
    """The error names the row, though its text is no UTF-8."""
    Path("data.csv").write_bytes("name,y\nM\xfcnchen,1\nK\xf6ln,2,3\n".encode("latin-1"))
    with pytest.warns(UserWarning, match="data.csv: what is not UTF-8 is read as windows-1252"):
        refuse("data.csv", ["y"], "data.csv: data row 2 has 3 values, but there are 2 columns: 'K")


TOWNS = ["M\xfcnchen", "K\xf6ln \u20ac", "Graz", "Z\xfcrich"]


def copied(content, encoding=""):
    """Return the names of columns, the towns that are read, and the copy with a column more."""
    Path("data.csv").write_bytes(content)
    table, towns = open_table("data.csv", Reading(encoding=encoding)), []

    def compute(columns):
        towns.extend(columns[table.names[0]].to_pylist())
        return [np.array(["\xe4" for _ in columns["y"]])]

    [*table.append(table.names, compute, {"H\xf6he": np.dtype("U1")}, Path("out.csv"))]
    return table.names, towns, Path("out.csv").read_bytes()


@pytest.mark.parametrize(("encoding", "named", "is_told"), [
    ("utf-8", "", False),
    ("utf-8-sig", "", False),
    ("utf-16", "", False),
    ("windows-1252", "", True),
    ("utf-16-be", "utf-16-be", False),
    ("windows-1252", "cp1252", False),
])  # fmt: skip
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_copies_have_one_encoding(encoding, named, is_told, block, monkeypatch):
    monkeypatch.setattr("gzkcore.rows.files.BLOCK_BYTES", block)
    text = "Stra\xdfe,y\n" + "".join(f"{town},{i}\n" for i, town in enumerate(TOWNS))
    told = pytest.warns(UserWarning, match="name the --encoding") if is_told else nullcontext()
    with told:
        names, towns, copy = copied(text.encode(encoding), named)
    assert names == ["Stra\xdfe", "y"]
    assert towns == TOWNS
    wanted = text.replace("\n", ",\xe4\n").replace(",\xe4\n", ",H\xf6he\n", 1)
    assert copy.decode("utf-8-sig") == wanted


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_copies_without_formulas(form):
    texts = [
        "=1+1",
        '@SUM(A1,"x")',
        "+cmd|' /C calc'!A0",
        "-2+3",
        "-2.5",
        "+1e3",
        "-3,5 %",
        "a=b",
        "",
    ]
    if form == "csv":
        lines = [",".join(f'"{cell}"' for cell in (t.replace('"', '""'), "7")) for t in texts]
        Path("data.csv").write_text("\n".join(['"=t",y', *lines]) + "\n")
    else:
        parquet.write_table(pyarrow.table({"=t": texts, "y": [7] * len(texts)}), "data.parquet")
    table = open_table(f"data.{form}")
    table.no_formulas = True
    new = [np.array(["=x"] * len(texts))]
    [*table.append(["y"], lambda columns: new, {"p": np.dtype("U2")}, Path("out.csv"))]
    with Path("out.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert [row[0] for row in rows] == [*(f"'{text}" for text in texts[:4]), *texts[4:]]
    assert {tuple(row[1:]) for row in rows} == {("7", "'=x")}
    assert head == ["'=t", "y", "p"]


def test_one_value_in_another_encoding():
    content = "town,y\nM\xfcnchen,1\n".encode() + "K\xf6ln,2\n".encode("latin-1")
    with pytest.warns(UserWarning, match="what is not UTF-8"):
        assert copied(content)[1] == ["M\xfcnchen", "K\xf6ln"]


def test_text_of_another_encoding_than_named():
    wanted = "data.csv is not text in utf-8, which b.{1,3}xfcnchen,1. is no part of; name another"
    with pytest.raises(ValueError, match=wanted):
        copied("town,y\nM\xfcnchen,1\n".encode("latin-1"), "utf-8")
    with pytest.raises(ValueError, match="the encoding utf-9 is unknown"):
        open_table("data.csv", Reading(encoding="utf-9"))
    np.save("data.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match="only text files have an --encoding"):
        open_table("data.npy", Reading(encoding="utf-8"))


def test_a_damaged_member_of_an_archive(numbers):
    np.savez_compressed("data.npz", X=numbers)
    content = bytearray(Path("data.npz").read_bytes())
    content[len(content) // 2] ^= 255
    Path("data.npz").write_bytes(content)
    refuse("data.npz", ["X0"], "data.npz is damaged: ")


def test_columns_of_as_many_rows(numbers):
    """Arrays of other lengths, such as names of classes, are no columns of the same table."""
    np.savez("data.npz", X=numbers[:, :2], y=numbers[:, 3], classes=np.array(["a", "b"]))
    assert open_table("data.npz").beside("y") == ["X0", "X1"]
    Path("data.csv").write_text("a,b,y\n1,2,3\n")
    assert open_table("data.csv").beside("b") == ["a", "y"]


def test_a_frame_of_as_many_rows_as_fit_is_a_random_sample(monkeypatch):
    """Thinned again as the file turns out larger; each row keeps its values and its number."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", 2000)
    names = [f"{row},{'text ' + str(row % 7) * (1 + row // 100)}" for row in range(2000)]
    Path("data.csv").write_text("row,kind\n" + "\n".join(names) + "\n")
    table = open_table("data.csv")
    everything = read_frame(table, ["row", "kind"], lambda *_: None, 1e9)
    np.testing.assert_array_equal(everything.numbers, np.arange(2000))
    some = read_frame(table, ["row", "kind"], lambda *_: None, 1e5)
    assert some.n_rows == 2000
    assert 200 < len(some.frame) < 800
    np.testing.assert_array_equal(some.frame["row"], some.numbers)
    np.testing.assert_array_equal(some.frame["kind"], everything.frame["kind"][some.numbers])
    assert 700 < np.median(some.numbers) < 1300


def test_a_frame_of_columns_without_any_value():
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": pyarrow.nulls(3)}), "data.parquet")  # of 0 bytes
    found = read_frame(open_table("data.parquet"), ["a"], lambda *_: None)
    assert np.isnan(found.frame["a"]).tolist() == [True] * 3


def test_arrays_without_columns_or_with_the_same_are_refused():
    np.savez("data.npz", X=np.ones((3, 2)), X0=np.zeros(3))
    refuse("data.npz", ["X0"], "2 columns are called 'X0'; rename them")
    np.save("cube.npy", np.ones((2, 2, 2)))
    refuse("cube.npy", ["0"], "its shapes are (2, 2, 2)")


INCHES = b'name,x,note\n5" pipe,1,a\nrod,2,"sent to\nLondon,99,UK"\nend,3,"a ""b"" c"\n'


@pytest.mark.parametrize("size", [1 << 22, 7, 1])
def test_a_quotation_mark_within_a_value_opens_nothing(size, monkeypatch):
    """In blocks of any size, as the standard library reads it."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", size)
    Path("data.csv").write_bytes(INCHES)
    wanted = [float(row[1]) for row in list(csv.reader(INCHES.decode().splitlines(True)))[1:]]
    (X,) = list(open_batches("data.csv", columns=["x"]))
    assert np.ravel(X).tolist() == wanted
    table = tables.open_table(Path("data.csv"))
    new = {"z": np.dtype(np.float64)}
    list(table.append(["x"], lambda columns: [2 * doubles(columns)[:, 0]], new, Path("new.csv")))
    rows = list(csv.reader(Path("new.csv").read_text().splitlines(True)))
    assert [row[-1] for row in rows] == ["z", "2.0", "4.0", "6.0"]
    assert [row[2] for row in rows[1:]] == ["a", "sent to\nLondon,99,UK", 'a "b" c']
