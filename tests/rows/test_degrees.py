"""Degrees in text: how they are written, and what is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from gzkcore.rows.degrees import LATITUDE, LONGITUDE, axis_of, degrees_in, degrees_of
from gzkcore.rows.files import open_table
from gzkcore.rows.frames import read_frame
from gzkcore.rows.text import DEFAULT, meaning_of

DMS = 40 + 26 / 60 + 46 / 3600


@pytest.mark.parametrize(("text", "signed"), [
    ("74.00 W", -74), ("74.00w", -74), ("W74", -74), ("w 74.5", -74.5), ("West 74", -74),
    ("74,25 W", -74.25), ("74 deg W", -74), ("74 degrees west", -74), ("12,5 Ost", 12.5),
    ("40.7° N", 40.7), ("40.7ºS", -40.7), ("33,9 Süd", -33.9), ("S 33", -33), ("+12 E", 12),
    ("40°26'46\"N", DMS), ("40°26′46″S", -DMS), ("40 26 46 N", DMS), ("40:26:46N", DMS),
    ("40-26-46N", DMS), ("40°26'46''N", DMS), ("40 26 46 s", -DMS), ("40d26m46s", DMS),
    ("40d26m46sS", -DMS), ("40d26m46S", -DMS), ("S40° 30.0'", -40.5), ("-40:30", -40.5),
    ("40.4378°", 40.4378), ("-74.5", -74.5), ("74.5 degrees_west", -74.5), ("7.45e+01W", -74.5),
])  # fmt: skip
def test_degrees_are_read_as_they_are_written(text, signed):
    assert degrees_in(text).signed == pytest.approx(signed, abs=1e-12)


@pytest.mark.parametrize("text", [
    "40.7 74.0", "40 -74", "40°60'N", "40.5°26'", "N 40 N", "5 m", "40'", "12e3 W", "500,123", "W",
])  # fmt: skip
def test_what_is_no_degrees(text):
    assert np.isnan(degrees_in(text).size)


@pytest.mark.parametrize(("axis", "texts", "error"), [
    (LATITUDE, ["40 N", "74 W"], "'74 W' is no latitude"),
    (LONGITUDE, ["-74 W", "12 E"], "'-74 W' has a sign and a direction; write one of them"),
    (LONGITUDE, ["74 W", "12,5 O"], "'12,5 O' may be east or west; write E or W"),
    (LONGITUDE, ["74 W", "12.5"], "'12.5' has no direction, as others have; write E or W in all"),
    (LATITUDE, ["40 N", "95 S"], "'95 S' is farther than 90 degrees"),
])  # fmt: skip
def test_contradictions_are_refused(axis, texts, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        degrees_of(texts, axis)


def test_signs_and_letters_may_be_beside_each_other():
    assert degrees_of(["74 W", "-74", "0", "12 E"], LONGITUDE) == ([-74, -74, 0, 12], LONGITUDE)


@pytest.mark.parametrize(("texts", "axis"), [
    (["74.0 W", "12.0 E"], LONGITUDE), (["74°W"] * 3, LONGITUDE), (["1.5S", "2N"], LATITUDE),
    (["74 W"] * 20, ""), (["5 S", "7.5 S"], ""), (["12E", "7W"], ""), (["3.5 N", "2 kN"], ""),
    (["-5.0 W", "5.0 E"], ""), (["1.5 N", "2.5 E"], ""), (["1:30", "2:45"], ""),
])  # fmt: skip
def test_letters_are_directions_where_no_name_says_so(texts, axis):
    """Watts, newtons, siemens and the numbers of flats are none."""
    found = degrees_of(texts, "")
    assert (found and found[1]) == (axis or None)


def test_names_of_columns_that_hold_degrees():
    names = ["lat", "Longitude (deg)", "start_lon", "LNG", "latency", "plateau", "power"]
    axes = [LATITUDE, LONGITUDE, LONGITUDE, LONGITUDE, "", "", ""]
    assert [*map(axis_of, names)] == axes


def test_units_of_other_columns_stay_units():
    texts = np.array(["74 W", "60 W", "100 W"], dtype=object)
    meant = meaning_of(texts, np.ones(3, dtype=bool), DEFAULT)
    assert meant.form == ["", ".", "W"]
    assert meant.values.tolist() == [74, 60, 100]


def _csv(column):
    Path("data.csv").write_text("\n".join(["lon,y", *(f'"{text}",1' for text in column)]))
    return "data.csv"


def _lines(column):
    lines = [json.dumps({"lon": text, "y": 1}) for text in column]
    Path("data.jsonl").write_text("\n".join(lines))
    return "data.jsonl"


def _arrow(name, dictionary=False):
    def write(column):
        pa = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
        from pyarrow import feather, parquet

        texts = pa.array(column)
        table = pa.table({"lon": texts.dictionary_encode() if dictionary else texts})
        (feather.write_feather if name == "data.feather" else parquet.write_table)(table, name)
        return name

    return write


def _sheet(column):
    openpyxl = pytest.importorskip("openpyxl", reason="the extra `sheets` is not installed")
    book = openpyxl.Workbook()
    for text in ("lon", *column):
        book.active.append([text])
    book.save("data.xlsx")
    return "data.xlsx"


@pytest.mark.parametrize("write", [
    _csv, _lines, _arrow("data.parquet"), _arrow("data.parquet", dictionary=True),
    _arrow("data.feather"), _sheet,
], ids=["csv", "jsonl", "parquet", "dictionary", "feather", "sheet"])  # fmt: skip
def test_every_kind_of_file_has_signed_degrees(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    table = open_table(write(["74.00 W", "12,5° E", "120°30'W"]))
    with pytest.warns(UserWarning, match="holds longitudes as text, such as .120.* read as -120.5"):
        frame = read_frame(table, ["lon"], lambda *_: None).frame
    assert frame["lon"].tolist() == [-74, 12.5, -120.5]
    with pytest.raises(ValueError, match="data row 2, column 'lon': '-3 W' has a sign and"):
        read_frame(open_table(write(["74.00 W", "-3 W"])), ["lon"], lambda *_: None)
