"""Files as people bring them: each is read as it was meant, or refused by name."""

import re
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gzkcore.cli.arguments import chosen_columns, reading_of
from gzkcore.cli.hints import doubtful_texts
from gzkcore.rows import files
from gzkcore.rows.csv_text import distinct
from gzkcore.rows.files import open_table
from gzkcore.rows.frames import kind_of, read_frame, typed
from gzkcore.rows.open import open_batches
from gzkcore.tabular.table_encoder import TableEncoder

pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
feather = pytest.importorskip("pyarrow.feather", reason="the extra `cli` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")
NAN = np.nan
pytestmark = pytest.mark.usefixtures("in_tmp")


@pytest.fixture
def in_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def opened(text, **options):
    Path("data.csv").write_bytes(text.encode())
    return open_table("data.csv", reading_of(**options))


def column(text, name="a", **options):
    """Return a column of a text as a frame has it, and all that is told."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = opened(text, **options)
        values = read_frame(table, [name], lambda *_: None).frame[name]
    return values, " | ".join([*table.notes, *(str(each.message) for each in caught)])


def below(name, values, more="7"):
    """Return the text of a table with these values, and a column b."""
    return f"{name};b\n" + "".join(f"{value};{more}\n" for value in values)


MANY = [*range(100, 140)]


@pytest.mark.parametrize(("values", "expected", "told"), [
    (["1", "?", "#N/A", "-", "n/a", "2"], [1, NAN, NAN, NAN, NAN, 2], "^$"),
    ([*MANY, "x"], [*MANY, NAN], "column 'a': 'x' in data row 41: no number, taken as miss"),
    ([f"{n}th" for n in MANY] + ["1st"], [*MANY, NAN], "'1st' in data row 41: no number"),
    ([*MANY, "x", "x"], [*MANY, NAN, NAN], "'x' in data row 41 and 1 other: no number"),
    ([*MANY, "<5"], [*MANY, NAN], "the smallest values are lost, 1 such as '<5', and the others are"),
    ([*MANY, "x", "\u2264 5"], [*MANY, NAN, NAN], "'\u2264 5', .* too large .*; write half the limit"),
    ([*MANY, "> 900", "900+"], [*MANY, NAN, NAN], "the largest .*, 2 .* too small .*; write the limit"),
    (["12.5 kmpl", "7 kmpl"], [12.5, 7], "such as '12.5 kmpl', read as 12.5, without the unit 'k"),
    (["998 CC", "1248 CC"], [998, 1248], "without the unit 'CC'"),
    (["19M", "120k", "1.5M"], [19e6, 120e3, 1.5e6], "read as"),
    (["1,000,000+", "1,000+", "5+"], [1e6, 1000, 5], "read as 1000000, without the unit '\\+'"),
    (["1,331.59-", "10.5"], [-1331.59, 10.5], "read as -1331.59"),
    (["$1,200.50", "-$3", "($4)"], [1200.5, -3, -4], "without the unit '\\$'"),
    (["12 €", "3 €"], [12, 3], "without the unit '€'"),
    (["5%", "12.5 %"], [5, 12.5], "without the unit '%'"),
    (["1 234", "12\u202f345", "7\u00a0000", "5"], [1234, 12345, 7000, 5], "read as 1234"),
    (["1'234.5", "12’345", "7"], [1234.5, 12345, 7], "read as 1234.5"),
    (["1.234.567", "1.234", "7"], [1234567, 1234, 7], "read as 1234567"),
    (["1,234,567", "1,234", "7.5"], [1234567, 1234, 7.5], "read as 1234567"),
    (["12,34,567", "1,234", "7.5"], [1234567, 1234, 7.5], "read as 1234567"),
    (["5,046E+03", "2,5E+00"], [5046, 2.5], "decimal comma|read as 5046"),
    (["'5.5", "'7"], [5.5, 7], "^$|read as"),
    (['"=""5.5"""', '"=""7"""'], [5.5, 7], "^$|read as"),
    (["5.5\u00a0", "7"], [5.5, 7], "^$"),
    (["2,5", "3,25"], [2.5, 3.25], "numbers have a decimal comma, such as '2,5'"),
    (["10:30", "5:15 PM", "0:00:36"], [10.5, 17.25, 0.01], "the hours of a clock"),
])  # fmt: skip
def test_numbers(values, expected, told):
    found, notes = column(below("a", values))
    np.testing.assert_allclose(found, expected)
    assert re.search(told, notes), notes


def test_points_are_thousands_where_others_have_decimal_commas():
    text = "a;b\n932;7,5\n16.957;3,25\n"
    found, notes = column(text)
    assert found.tolist() == [932, 16957]
    assert "column 'a': '16.957' is read as 16957, since '.' separates thousands" in notes
    with pytest.warns(UserWarning, match="16957|decimal comma"):
        batches = [*open_batches("data.csv", "b")]
    np.testing.assert_array_equal(batches[0][0].ravel(), [932, 16957])
    np.testing.assert_array_equal(batches[0][1], [7.5, 3.25])


@pytest.mark.parametrize(("values", "reason", "options", "expected"), [
    (["932", "16.957"], "'16.957' may be 16957 or 16.957; --thousands", ".", [932, 16957]),
    (["932", "16.957"], "'16.957' may be 16957 or 16.957; --thousands", ",", [932, 16.957]),
    (["932", "16,957"], "'16,957' may be 16957 or 16.957; --thousands", ",", [932, 16957]),
    (["932", "16,957"], "'16,957' may be 16957 or 16.957; --thousands", ".", [932, 16.957]),
])  # fmt: skip
def test_two_readings_are_named(values, reason, options, expected):
    with pytest.raises(ValueError, match=rf"data\.csv: data row \d, column 'a': {reason}"):
        column(below("a", values))
    assert column(below("a", values), thousands=options)[0].tolist() == expected


def test_commas_mean_the_same_in_all_columns():
    """A target of 6.761 was read as 6761, beside a column of 0.257."""
    text = 'a,b\n"0,257","6,761"\n"1,5","3,234"\n'
    many = [text, 'b,a\n"6,761","0,257"\n"3,234","1,5"\n']
    for each in many:
        with pytest.raises(
            ValueError, match="row 1, column 'b': the comma in '6,761' may separate"
        ):
            both_columns(each)
        assert both_columns(each, decimal_comma=True)["b"].tolist() == [6.761, 3.234]
    assert both_columns(text.replace("3,234", "3,234,567"))["b"].tolist() == [6761, 3234567]


def both_columns(text, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_frame(opened(text, **options), ["a", "b"], lambda *_: None).frame


@pytest.mark.parametrize("whole", ["947", "12"])
def test_points_between_commas_may_separate_thousands(whole):
    text = f"a,b\n5.046,1\n{whole},2\n"
    with pytest.raises(
        ValueError, match=r"column 'a': '5\.046' may be 5046 or 5\.046; --thousands"
    ):
        column(text)
    assert column(text.replace(whole, "1947"))[0].tolist() == [5.046, 1947]
    assert column(text.replace(whole, "9.47"))[0].tolist() == [5.046, 9.47]


def test_points_mean_the_same_in_all_blocks(monkeypatch):
    """The first block, all of three digits, was read as thousands, and the second was not."""
    monkeypatch.setattr("gzkcore.rows.files.BLOCK_BYTES", 16)
    found, _ = column(below("a", ["1.234", "2.345", "7.5"]), decimal_comma=True)
    assert found.tolist() == [1.234, 2.345, 7.5]


def test_marks_of_text_in_files_with_types():
    parquet.write_table(pyarrow.table({"a": ["1.100", "932"], "b": [1.5, 2.5]}), "data.parquet")
    for options in ({"thousands": "."}, {"decimal_comma": True}):
        table = open_table("data.parquet", reading_of(**options))
        with pytest.warns(UserWarning, match="column 'a': '1.100' is read as 1100, since"):
            frame = read_frame(table, ["a", "b"], lambda *_: None).frame
        assert [frame[name].tolist() for name in "ab"] == [[1100, 932], [1.5, 2.5]]


def test_points_of_other_columns_stay_decimal_points():
    text = "a,b\n5.046,1.5\n947,2.046\n"
    found, told = column(text, "b", thousands=".")
    assert found.tolist() == [1.5, 2.046]
    assert "column 'b': the '.' in '1.5' does not separate thousands: its points are" in told
    assert column(text, thousands=".")[0].tolist() == [5046, 947]


def test_ordinals_are_text_and_told():
    texts = ["1st", "2nd", "3rd", *(f"{n}th" for n in range(4, 10))]
    found, _ = column(below("a", texts))
    assert found.tolist() == texts
    assert "texts such as '1st' seem to be numbers or dates" in doubtful_texts(found)


def test_units_that_differ_are_told_and_not_read():
    values = [f"{i} {'kmpl' if i % 2 else 'km/kg'}" for i in range(40)]
    found, _ = column(below("a", values))
    assert kind_of(found) == "text"


@pytest.mark.parametrize("codes", [["S0001", "S0002"], ["1.2.3", "1.10.4"], ["1,4", "2,3", "4"],
                                   ["0012 A", "0013 A"], ["4", "x", "5"]])  # fmt: skip
def test_codes_are_no_numbers(codes):
    found, _ = column(below("a", [f'"{code}"' for code in codes]).replace(";", "\t"))
    assert kind_of(found) == "text"


FORMATS = ["csv", "quoted", "jsonl", "parquet", "dictionary", "feather", "xlsx"]
IDS = [str(740245381351497730 + i) for i in range(3)]


def saved(values, how):
    """Write a column a of values, and return the path."""
    cells = pyarrow.array(values)
    table = pyarrow.table(
        {"a": cells.dictionary_encode() if how == "dictionary" else cells, "b": [1.5] * 3}
    )
    path = {"quoted": "data.csv", "dictionary": "data.parquet"}.get(how, f"data.{how}")
    frame = pd.DataFrame({"a": values, "b": 1.5})
    if how in ("csv", "quoted"):
        frame.to_csv(path, index=False, quoting=int(how == "quoted"))
    elif how == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif how == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        write = feather.write_feather if how == "feather" else parquet.write_table
        write(table, path)
    return path


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("values", [["01", "1", "001"], ["10", "+05", "3"], IDS, [*map(int, IDS)]])
def test_codes_stay_text_in_every_format(values, how):
    if how == "xlsx" and isinstance(values[0], int):
        pytest.skip("a sheet has doubles")
    table = open_table(saved(values, how))
    assert read_frame(table, ["a"], lambda *_: None).frame["a"].tolist() == [*map(str, values)]
    if values[0] == "01":
        with pytest.raises(ValueError, match="data row 1, column 'a': the value is '01', which is"):
            list(table.batches(["a"]))


def test_one_code_makes_a_whole_column_text(monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 100)
    found, _ = column(below("a", [*range(100, 200), "007"]))
    assert found.tolist() == [*map(str, range(100, 200)), "007"]
    table = opened(below("a", [*range(100, 200), "007"]))
    with pytest.raises(ValueError, match="data row 101, column 'a': the value is '007', which is"):
        list(table.batches(["a"]))


def test_a_pass_refuses_codes_by_their_row():
    table = opened(below("a", [1, "01"]))
    _, piece, _ = next(table.columns(["a"]))
    with pytest.raises(ValueError, match=r"data row 2, column 'a': the value is '01', .* --as COL"):
        typed(table, "a", piece["a"], "number")


@pytest.mark.parametrize(("values", "expected"), [
    (["0.5", "-0.5", "0", "00.25"], [0.5, -0.5, 0, 0.25]),
    (["000123.50", "-001.25"], [123.5, -1.25]),
    (["00:30", "01:15"], [0.5, 1.25]),
    ([str(2**60), "1e18"], [2.0**60, 1e18]),
])  # fmt: skip
def test_other_numbers_that_begin_with_zeros_are_read(values, expected):
    found, told = column(below("a", values))
    np.testing.assert_array_equal(found, expected)
    assert ("'000123.50', read as 123.5" in told) == (values[0] == "000123.50")


@pytest.mark.parametrize("codes", [
    ["01.1", "01.10"], ["0930", "1745"], ["030 123 456", "171 555 666"], ["00002024001", "00002024002"],
])  # fmt: skip
def test_digits_that_numbers_would_merge_or_shorten_are_text(codes):
    assert column(below("a", codes))[0].tolist() == codes


def test_a_folder_may_be_named_by_a_code():
    for code in ("01", "1"):
        Path("data", f"code={code}", "year=2024").mkdir(parents=True)
        part = Path("data", f"code={code}", "year=2024", "part.parquet")
        parquet.write_table(pyarrow.table({"y": [1.5]}), part)
    frame = read_frame(open_table("data"), ["code", "year"], lambda *_: None).frame
    assert sorted(frame["code"]) == ["01", "1"]
    assert frame["year"].tolist() == [2024, 2024]


DAY = np.datetime64("2024-12-31")


@pytest.mark.parametrize("form", [
    "2024/12/31", "2024.12.31", "31.12.2024", "31/12/2024", "12/31/2024", "31-Dec-2024",
    "December 31, 2024", "Tue, 31 Dec 2024 00:00:00 +0000", "2024-12-31 00:00:00 UTC",
    "12/31/2024 12:00:00 AM", "20241231", "20241231T000000Z", "31 Dec 2024 01:00 CET",
])  # fmt: skip
def test_dates(form):
    found, _ = column(below("a", [form, form, ""]))
    assert kind_of(found) == "date"
    assert found[0] == found[1] == DAY
    assert np.isnat(found[2])
    days = column(below("a", [form, "NA", form]))[0]
    assert days[2] == DAY


def test_dates_with_two_readings_and_a_format():
    text = below("a", ["01/02/2024", "03/04/2024"])
    with pytest.raises(
        ValueError, match="'01/02/2024' may have the day or the month first; --date"
    ):
        column(text)
    assert column(text, date_format="%m/%d/%Y")[0][0] == np.datetime64("2024-01-02")
    text = below("a", ["2024-366", "2024-365"])
    assert kind_of(column(text)[0]) == "text"
    assert column(text, date_format="%Y-%j")[0][0] == DAY
    text = below("a", ["311224", "300624"])
    assert column(text, date_format="%d%m%y")[0][0] == DAY


def test_a_format_is_that_of_the_next_table_too():
    days, more = ["201112", "110130", "120409"], {"date_format": "%y%m%d"}
    table = opened(below("a", days), **more)
    with pytest.warns(UserWarning, match="years of two digits in column 'a' are read as 19"):
        fitted = read_frame(table, ["a"], lambda *_: None).frame["a"]
    new = opened(below("a", days[:1]))  # which is December 2011 too
    new.forms = table.forms
    _, columns, _ = next(new.columns(["a"]))
    assert typed(new, "a", columns["a"], "date") == fitted[0] == np.datetime64("2020-11-12")


@pytest.mark.parametrize("form", [
    "%d-%b-%y", "%d %b %y 24:00", "%m/%d/%y", "%d.%m.%y", "%y-%m-%d", "%y-%m-%d %H:%M",
])  # fmt: skip
@pytest.mark.parametrize(("first", "last"), [(1960, 2004), (1935, 2001), (2019, 2027)])
def test_years_of_two_digits_are_of_one_window(form, first, last):
    days = np.arange(f"{first}-02-28", f"{last}-03-01", 97, dtype="M8[D]")
    texts = [day.item().strftime(form) for day in days]
    of_names = "%b" in form
    table = opened(below("a", texts), **({} if of_names else {"date_format": form}))
    with pytest.warns(UserWarning, match="^years of two digits in column 'a' are read as") as told:
        found = read_frame(table, ["a"], lambda *_: None).frame["a"]
    np.testing.assert_array_equal(found, days + (" 24:00" in form))
    assert len(told) == 1
    new = opened(below("a", texts[-2:]))
    new.forms = table.forms
    later = typed(new, "a", next(new.columns(["a"]))[1]["a"], "date")
    np.testing.assert_array_equal(later, found[-2:])


def test_the_order_of_day_and_month_is_not_guessed_from_other_dates():
    table = opened(below("a", ["2024-12-31", "2024-12-30"]))
    read_frame(table, ["a"], lambda *_: None)
    new = opened(below("a", ["01/02/2024", "03/04/2024"]))
    new.forms = table.forms
    columns = next(new.columns(["a"]))[1]
    with pytest.raises(ValueError, match="'01/02/2024' may have the day or the month first"):
        typed(new, "a", columns["a"], "date")
    new = opened(below("a", ["13/02/2024", "03/04/2024"]))
    new.forms = table.forms
    found = typed(new, "a", next(new.columns(["a"]))[1]["a"], "date")
    assert found[1] == np.datetime64("2024-04-03")


@pytest.mark.parametrize("n_others", [1, 30])
@pytest.mark.parametrize(("first", "second", "rows"), [
    ("13/02/2020", "02/14/2020", "1 and data row 2"),
    ("02/14/2020", "13/02/2020", "2 and data row 1"),
])  # fmt: skip
def test_days_and_months_are_first_in_one_column(first, second, rows, n_others):
    text = below("a", [first, second, *["05/02/2020"] * n_others])
    told = "'13/02/2020' has the day first, but '02/14/2020' the month; write all in one order"
    with pytest.raises(ValueError, match=f"data row {rows}, column 'a': {told}"):
        column(text)
    frame = pd.DataFrame({"a": [first, second, *["05/02/2020"] * n_others]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TableEncoder().fit(frame)
    rows = "(row {} and row {})".format(*((0, 1) if first[0] == "1" else (1, 0)))
    assert f"'a' is taken for text: {told}, or convert it {rows}" in str(caught[0].message)


def test_days_and_months_that_a_spreadsheet_exchanged():
    days = np.datetime64("2020-01-01") + 13 * np.arange(60)
    parts = [str(day).split("-") for day in days]
    right = [f"{d}/{m}/{y}" for y, m, d in parts]
    wrong = [f"{y}-{d}-{m}" if int(d) <= 12 else f"{d}/{m}/{y}" for y, m, d in parts]
    told = "a program seems to have exchanged day and month in column 'a': '14/01/2020' was not"
    assert told in column(below("a", wrong))[1]
    half = [
        str(day) if i % 2 else text for i, (day, text) in enumerate(zip(days, right, strict=True))
    ]
    for texts in (right, half, [str(day) for day in days]):
        found, notes = column(below("a", texts))
        np.testing.assert_array_equal(found, days)
        assert notes == ""


def test_zones_that_differ_between_rows():
    zoned = ["2024-03-31 01:30+01:00", "2024-03-31 03:30+02:00", "2024-03-31T00:30:00Z"]
    found, told = column(below("a", zoned))
    times = np.array(["2024-03-31T00:30", "2024-03-31T01:30", "2024-03-31T00:30"], "M8[us]")
    np.testing.assert_array_equal(found, times)
    assert told == "times of column 'a' that have a zone are converted to UTC"
    _, told = column(below("a", [*zoned, "2024-03-31 04:30", ""]))
    assert told.endswith("; others, such as '2024-03-31 04:30', have none, and are taken as UTC")


def test_months_with_a_point_are_no_decimal_numbers():
    found, told = column(below("a", ["03.2017", "12.2016", ""]))
    np.testing.assert_array_equal(found[:2], np.array(["2017-03", "2016-12"], "M8[us]"))
    assert "column 'a' holds '03.2017' and the like, read as months" in told
    assert column(below("a", ["3.2017", "12.2016"]))[0].tolist() == [3.2017, 12.2016]


@pytest.mark.parametrize(("fit", "new", "told"), [
    ("2024-07-01 10:00 CEST", "2024-07-01 10:00", "have no zone, other than in the fit"),
    ("2024-07-01 10:00", "2024-07-01 10:00 CEST", "have a zone, other than in the fit"),
    ("2024-07-01 10:00 CEST", "2024-07-01 10:00 CEST", "^$"),
    ("2024-07-01 10:00", "2024-07-01 10:00", "^$"),
])  # fmt: skip
def test_times_have_a_zone_as_in_the_fit(fit, new, told):
    table = opened(below("a", [fit, fit]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_frame(table, ["a"], lambda *_: None)
    later = opened(below("a", [new]))
    later.forms = table.forms
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        typed(later, "a", next(later.columns(["a"]))[1]["a"], "date")
    assert re.search(told, "".join(str(each.message) for each in caught))


def test_words_for_missing_values():
    text = below("a", ["None", "one", "NA", "two"])
    assert column(text)[0].tolist() == [None, "one", None, "two"]
    assert column(text, missing="")[0].tolist() == ["None", "one", "NA", "two"]
    text = below("a", ["-9999", "1", "gap", "?", "2"])
    found, _ = column(text, missing="gap,-9999")
    np.testing.assert_array_equal(found, [NAN, 1, NAN, NAN, 2])
    assert column(below("a", ["+", "-", "+"]))[0].tolist() == ["+", "-", "+"]


@pytest.mark.parametrize(("text", "names", "values", "told"), [
    ("sep=;\r\na;b\r\n1;2\r\n", ["a", "b"], [1], "^$"),
    ("\ufeffsep=\t\na\tb\n1\t2\n", ["a", "b"], [1], "^$"),
    ("b, a, c\n1, 2, 3\n", ["b", "a", "c"], [2], "^$"),
    ("b|a|c\n1|2|3\n", ["b", "a", "c"], [2], "^$"),
    ("b,a\u00a0\n1,2.5\u00a0\n3,4\n", ["b", "a"], [2.5, 4], ""),
    ("TOA5,CR1000,x,1\nt,a,c,d\nTS,m,m,m\n,Avg,Smp,Smp\n" + "v,1,2,3\n" * 6, ["t", "a", "c", "d"],
     [1] * 6, "'TS,m,m,m', holds no values.*',Avg,Smp,Smp', holds no values"),
    ('"id", "a, x", "a"\n1, "2, y", 3\n4, "z", 5\n', ["id", "a, x", "a"], [3, 5], "^$"),
    ("a,b\nm,mm\n" + "1,2\n" * 6, ["a", "b"], [1] * 6, "the line below the names, 'm,mm', holds"),
    ("a,a,b\n1,2,3\n", ["a", "a.1", "b"], [1], "of another are called 'a.1'"),
    ("a,b\n1,2,3\n2,5,6\n", ["", "a", "b"], [2, 5], "^$"),
    ('"a" "b"\n"1" 2 3\n"2" 5 6\n', ["", "a", "b"], [2, 5], "^$"),
    ("a,b\n1,2,\n2,5,\n", ["a", "b", ""], [1, 2], "^$"),
])  # fmt: skip
def test_heads(text, names, values, told):
    found, notes = column(text)
    assert opened(text).names == names
    assert found.tolist() == values
    assert re.search(told, notes), notes
    out = Path("out.csv")
    [*opened(text).append(["a"], lambda of: [np.arange(len(of["a"]))], {"new": np.dtype(int)}, out)]
    again = open_table(out)
    assert again.names == [
        *names[: len(names) - (names[-1] == "")],
        *names[-1:] * (names[-1] == ""),
        "new",
    ]
    assert np.concatenate([v for _, v, _ in again.batches(["new"])]).ravel().tolist() == [
        *range(len(values))
    ]


@pytest.mark.parametrize("text", [
    "Logger 7, Ulm\n\na;y\n" + "1,5;2,5\n" * 6,
    'Logger 7, Ulm\n\n"a", "b", "y"\n' + '1, "v, w", 3\n' * 6,
    "Logger 7, Ulm\n\na,b,y\n" + "1,1.5,2,3\n" * 6,
])  # fmt: skip
def test_lines_above_in_other_tables(text):
    with pytest.raises(ValueError, match=r"line 3 has it: --skip-lines 2"):
        opened(text).require(["y"])
    assert opened(text, skip_lines=2).names[-1] == "y"


@pytest.mark.parametrize(("rows", "told"), [
    (["0,4,0,37", "1,5,2,7"], "1 has 4 values, but there are 2 columns: '0,4,0,37'; if it has dec"),
    (["3,1,5", "3,2,7"], "1 has 3 values, but there are 2 columns: '3,1,5'; if it has decimal com"),
    (["1,2", "3,4", "# by me"], "3 has 1 value, but .*'# by me'; mend it, or delete it if it stands"),
    (["1,2", "3,4,x"], "2 has 3 values, but .*'3,4,x'; mend it, or leave out lines above"),
])  # fmt: skip
def test_rows_of_other_widths(rows, told):
    with pytest.raises(ValueError, match=f"data row {told}"):
        column("\n".join(["a,b", *rows]) + "\n", "b")


def test_a_last_row_that_sums_up_others():
    text = below("a", ["n", "s", "Total:"], more="2.5")
    told = "the last row seems to sum up others: 'Total:' in data row 3, column 'a'; if so, delete"
    assert told in column(text)[1]
    for others in (["Total", "s", "Total"], ["n", "s", "Total war"], ["Total", "n", "s"]):
        assert column(below("a", others))[1] == ""


def test_lines_of_a_logger_above_the_names():
    text = "Logger 7\nSite: Ulm, Bern\n\na,b,c\n" + "1,2,3\n" * 6
    with pytest.raises(ValueError, match=r"only column is 'Logger 7'; line 4 has it: --skip-lin"):
        opened(text).require(["c"])
    with pytest.raises(ValueError, match=r"row 1 has 2 values, but .* above the names: --skip-li"):
        next(opened(text).batches(["Logger 7"]))
    table = opened(text, skip_lines=3)
    assert table.names == ["a", "b", "c"]
    assert column(text, skip_lines=3)[0].tolist() == [1] * 6


@pytest.mark.parametrize("name", [
    "", "Unnamed: 0", "__index_level_0__", "index", "level_0", "X", "...1", "rownum", "row.names",
])  # fmt: skip
@pytest.mark.parametrize("start", [0, 1])
def test_a_saved_index(name, start):
    text = f"{name},a,b\n" + "".join(f"{i},2,3\n" for i in range(start, start + 20))
    table = opened(text)
    assert chosen_columns(table, "b", None, None, None)[0] == ["a"]
    assert "left out as a saved index" in table.notes[-1]
    assert chosen_columns(opened(text, keep=name), "b", None, None, None)[0] == [name, "a"]
    with pytest.warns(UserWarning, match="left out as a saved index: .* columns= can name it"):
        assert open_batches("data.csv", "b").columns == ["a"]
    assert open_batches("data.csv", "b", columns=[name, "a"]).columns == [name, "a"]


@pytest.mark.parametrize(("name", "values", "is_index"), [
    ("", ["Fiat 128", "Honda Civic"], True),
    ("Unnamed: 0", [7, 3], True),
    ("", [0.5, 2], False),
    ("", ["u", "u"], False),
    ("", ["2024-01-31", "2024-02-29"], False),
    ("X", [*range(1, 20), 21], False),
    ("x", [*range(20)], False),
])  # fmt: skip
def test_an_index_by_its_values(name, values, is_index):
    text = f"{name},b\n" + "".join(f"{value},3\n" for value in values)
    assert opened(text).index == [name] * is_index
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: values, "b": np.arange(len(values)) % 2})
    told = pytest.warns(UserWarning, match="a saved index") if is_index else nullcontext()
    with told:
        kinds = [getattr(c, "reason", c.kind) for c in TableEncoder().fit(frame).columns_]
    assert (kinds[0] == "index") == is_index


def test_a_comment_in_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(40.0) ** 2, "Unnamed: 7": [*39 * [None], "checked"]})
    with pytest.warns(UserWarning, match="column 'Unnamed: 7' seems to be .* a comment, and is le"):
        kinds = [getattr(c, "reason", c.kind) for c in TableEncoder().fit(frame).columns_]
    assert kinds == ["number", "index"]


def test_text_without_a_mark_of_its_encoding():
    for encoding in ("utf-16-le", "utf-16-be"):
        Path("data.csv").write_bytes("a,b\n1,2\n".encode(encoding))
        assert open_table("data.csv").names == ["a", "b"]


@pytest.mark.parametrize(
    ("names", "told_apart"),
    [
        ("a a a.1 a", "a a.2 a.1 a.3"),
        ("a.1 a a a.1", "a.1 a a.2 a.1.1"),
        ("a{} a{} a{}.1", "a{} a{}.2 a{}.1"),
        ("a a.1 a.2 a a.1", "a a.1 a.2 a.3 a.1.1"),
    ],
)
def test_names_that_are_made_are_of_no_other_column(names, told_apart):
    assert distinct(names.split()) == told_apart.split()


def test_many_columns_of_one_name():
    names = distinct(["a"] * 200_000)  # as many squared would take an hour
    assert names[-1] == "a.199999"
    assert len({*names}) == 200_000


def test_the_target_is_there_twice():
    with pytest.raises(ValueError, match=r"two columns are called 'a', .* --drop a\.1"):
        chosen_columns(opened("a,a,b\n1,2,3\n"), "a", None, None, None)
    assert chosen_columns(opened("a,a,b\n1,2,3\n"), "a", None, None, None, "a.1")[0] == ["b"]


def test_a_word_that_is_not_utf_8_is_told():
    Path("data.csv").write_bytes("town,y\nKöln,1\n".encode("cp850"))
    with pytest.warns(UserWarning, match="such as 'K”ln'; if that is wrong, name the --encoding"):
        next(open_table("data.csv").batches(["y"]))


def test_an_index_that_pandas_saved():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}, index=pandas.Index([5, 6], name="nr"))
    frame.to_parquet("data.parquet")
    assert open_table("data.parquet").index == ["nr"]
    with pytest.warns(UserWarning, match=r"left out as a saved index: \['nr'\]"):
        assert open_batches("data.parquet", "b").columns == ["a"]
    kept = open_table("data.parquet", reading_of(keep="nr"))
    assert chosen_columns(kept, "b", None, None, None)[0] == ["a", "nr"]
