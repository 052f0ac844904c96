"""Tables from a grammar of broken CSV: read as numbers, or refused with a sentence."""

import numpy as np
import pytest
from fuzzing import counted, often, quietly
from hypothesis import given
from hypothesis import strategies as st

from gzkcore.rows.files import open_table
from gzkcore.rows.frames import KINDS, kind_of, read_frame
from gzkcore.rows.open import open_batches

NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(
        ["1e400", "0x1F", "1_000", "\u0661", "+1", " 2 ", "1,5", ".5", "5.", "1d3", "-0"]
    ),
)
FIELDS = st.one_of(
    NUMBERS,
    NUMBERS,
    st.sampled_from(
        ["", " ", '"', '""', '"1"', '"1,2"', '"a\nb"', "NA", "nan", "inf", "null", "true"]
    ),
    st.text(max_size=8),
    st.sampled_from(["x" * 200_000, "\0", "\ufeff", "=1+1"]),
)
NAMES = st.one_of(
    st.sampled_from(["a", "b", "y", "a", "", '"a b"', "\ufeffa"]), st.text(max_size=5)
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", ""])
DELIMITERS = st.sampled_from([",", ",", ";", "\t", "|", " "])
CODINGS = st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])


@st.composite
def texts(draw):
    """Draw the bytes of a table that is more or less broken."""
    delimiter, end = draw(DELIMITERS), draw(ENDS)
    width = draw(st.integers(1, 5))
    lines = [delimiter.join(draw(st.lists(NAMES, min_size=width, max_size=width)))]
    for _ in range(draw(st.integers(0, 6))):
        ragged = width + draw(st.sampled_from([0, 0, 0, 0, -1, 1]))
        kinds = draw(st.sampled_from([NUMBERS, NUMBERS, FIELDS]))
        lines.append(delimiter.join(draw(st.lists(kinds, min_size=ragged, max_size=ragged))))
    content = (end.join(lines) + draw(ENDS)).encode(draw(CODINGS), errors="replace")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(max_size=9)) + content[at:]
    return content


def numbers_of(path):
    """Read all columns of numbers."""
    table = open_table(path)
    names = table.numeric(list(dict.fromkeys(table.names)))
    return [values.copy() for _, values, _ in table.batches(names)] if names else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@often
@given(content=texts(), ending=st.sampled_from(["csv", "csv", "tsv", "txt"]))
def test_broken_tables(folder, content, ending):
    path = folder / f"t.{ending}"
    path.write_bytes(content)
    counted("broken tables", content)
    with quietly():
        try:
            for values in numbers_of(path):
                assert values.dtype == np.float64
        except (ValueError, KeyError) as error:
            assert str(error)
        try:
            table = open_table(path)
            frame = read_frame(table, table.names, lambda *_: None).frame
            assert {kind_of(frame[name]) for name in frame.columns} <= set(KINDS)
        except ValueError as error:
            assert str(error)


@often
@given(content=texts())
def test_batches_of_broken_tables(folder, content):
    path = folder / "t.csv"
    path.write_bytes(content)
    counted("batches of broken tables", content)
    with quietly():
        try:
            for X in open_batches(path, batch_rows=2):
                assert np.isfinite(X if isinstance(X, np.ndarray) else X[0]).all()
        except (ValueError, KeyError) as error:
            assert str(error)


@often
@given(content=st.binary(max_size=300), ending=st.sampled_from(["npy", "npz", "parquet", "csv"]))
def test_files_that_are_none(folder, content, ending):
    path = folder / f"t.{ending}"
    heads = {"npy": b"\x93NUMPY\x01\x00", "npz": b"PK\x03\x04", "parquet": b"PAR1", "csv": b""}
    path.write_bytes(heads[ending] + content)
    counted("files that are no tables", (ending, content))
    with quietly():
        try:
            numbers_of(path)
        except (ValueError, KeyError, OSError) as error:
            assert str(error)
