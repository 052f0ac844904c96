"""Tables in memory with columns of numbers, dates and text, also with missing values.

All values of a column determine its kind, except missing ones: "number" if nearly all are numbers,
"date" if nearly all are dates, see `text`, else "text". A few texts among numbers are more often
errors than categories, and taken as missing; a column that is mostly numbers, but not nearly, is
refused, unless it is a short list of codes.
"""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.memory import available_memory
from gzkcore._util.remark import Remark
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.warn import warn

from .dates import NEITHER, ORDERS, ZONED, dates_of
from .degrees import axis_of
from .files import NO_CODE, Table
from .text import DATE, NUMBER, TEXT, Meaning, codes_in, days_of, meaning_of, tell, tell_zone
from .values import (
    LARGEST_WHOLE,
    MISSING,
    DoubtError,
    Values,
    about_limits,
    as_number,
    bare,
    begin_with_zeros,
    doubtful_point,
    merges,
    missing_of,
    plain_value,
    texts_of,
)

KINDS = (NUMBER, DATE, TEXT)

LEAVE_EMPTY = "mend such values, leave them empty, or name what stands for none with --missing"
MONTHS = "^(0[1-9]|1[0-2])[.](19|20)[0-9][0-9]$"  # such as 03.2017, which is a number too
# A text of a last row that sums up those above.
FOOTER = re.compile(
    r"\W*((grand |sub)?totals?|sums?|summe|gesamt|average|avg|mean|median|minimum|maximum)\W*",
    re.IGNORECASE,
)
LOOKED_AT = 1000  # So many first rows tell whether points separate thousands.
CODES = 32  # Numbers and text beside each other with more different values are a mistake.
COPIES = 4  # A fit holds a table so often: as read, as numbers, encoded, and in the model.
ABOUT = 0.9  # A sample is thinned if there is room for less than this share of it.


class Frame:
    """Named columns of one length: as much of a data frame as `TableEncoder` needs.

    Parameters
    ----------
    values : dict of ndarray of shape (n_rows,)
        float64 where NaN is missing, datetime64, or objects: text and None.
    forms : dict of list of str
        How text had the numbers and dates of columns written, see `text`.
    """

    def __init__(
        self, values: dict[str, Values], forms: Mapping[str, list[str]] | None = None
    ) -> None:
        self.values, self.forms = values, dict(forms or {})

    @property
    def columns(self) -> list[str]:
        """The names, in order."""
        return list(self.values)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The types, in order."""
        return [column.dtype for column in self.values.values()]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self), len(self.values)

    def __len__(self) -> int:
        return len(next(iter(self.values.values()))) if self.values else 0

    def __getitem__(self, name: str) -> Values:
        return self.values[name]

    @staticmethod
    def stacked(parts: "Sequence[Frame]") -> "Frame":
        """Return the rows of frames with the same columns."""
        names = parts[0].columns
        values = {name: np.concatenate([part[name] for part in parts]) for name in names}
        return Frame(values, parts[0].forms)

    def take(self, rows: Integers | NDArray[np.bool_] | slice) -> "Frame":
        """Return some of the rows."""
        return Frame({name: column[rows] for name, column in self.values.items()}, self.forms)


def as_frame(X: Any) -> Any:
    """Return a lazy frame of Polars collected, a table of Arrow as pandas has it, others as is."""
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        return X.collect()
    if hasattr(X, "column_names") and hasattr(X, "to_pandas") and not hasattr(X, "dtypes"):
        return X.to_pandas(integer_object_nulls=True)  # doubles don't hold all of them
    return X


def kind_of(column: Values) -> str:
    """Return the kind of a frame's column."""
    return {"f": NUMBER, "M": DATE}.get(column.dtype.kind, TEXT)


class FrameSample(NamedTuple):
    """Rows of a table in memory: all, or as many as there is room for, drawn at random."""

    frame: Frame
    numbers: Integers  # of its rows in the table, from 0
    n_rows: int  # of the table


def read_frame(
    table: Table,
    names: list[str],
    report: Callable[[str, float], None],
    most_bytes: float | None = None,
    seed: int = 0,
    kinds: Mapping[str, str] | None = None,
) -> FrameSample:
    """Read columns, of a table too large for memory those of some rows; tell how much is read.

    The table may take `most_bytes` while it is learned from, by default what the machine has
    available; the seed decides which rows are drawn. `kinds` are those of some columns, where
    they are not to be found out.

    Raises
    ------
    BadValueError
        At the first text in a column that is mostly numbers, and at infinite numbers.
    """
    most = available_memory() if most_bytes is None else most_bytes
    pieces: list[_Piece] = []
    n_rows, held, share = 0, 0, 1.0
    for first, columns, done in table.columns(names):
        numbers = np.arange(first, first + len(columns[names[0]]))
        n_rows = first + len(numbers)
        keys = np.random.default_rng([seed, first]).random(len(numbers))
        held += sum(column.nbytes for column in columns.values())
        room = 1.0 if most is None or not held else most / (COPIES * held / done)
        if room < ABOUT * share:
            share = room
            pieces = [piece.thinned(share) for piece in pieces]
        pieces.append(_Piece(numbers, keys, columns).thinned(share))
        report("reading", done)
    numbers = np.concatenate([piece.numbers for piece in pieces])
    values, grouped = {}, {}
    for name in names:
        column = _joined([piece.columns.pop(name) for piece in pieces])
        if len(column) == n_rows and (told := _footer(column)):
            where = f"{told!r} in data row {n_rows}, column {name!r}; if so, delete it"
            warn(f"the last row seems to sum up others: {where}", UserWarning)
        values[name] = typed(table, name, column, (kinds or {}).get(name), numbers)
        if not table.reading.thousands and table.forms.get(name, [])[:2] == [",", "."]:
            grouped[name] = column
    _check_commas(table, grouped, numbers)
    return FrameSample(Frame(values), numbers, n_rows)


def _footer(column: Any) -> str:
    """Return the last text of a column if it is a word for a sum, or the like, and there once."""
    last = plain_value(column[-1])
    if not isinstance(last, str) or not FOOTER.fullmatch(last):
        return ""
    return "" if last in map(plain_value, column[:-1]) else last


def _check_commas(table: Table, grouped: dict[str, Any], rows: Integers) -> None:
    """Raise where commas are read as those of thousands, and as decimal commas elsewhere."""
    other = next((name for name, form in table.forms.items() if form[1:2] == [","]), None)
    for name, column in grouped.items() if other else ():
        texts = [text or "" for text in _texts(column)]
        if any(re.search(r",\d{3}[,.]\d", text) for text in texts):
            continue
        row = next(row for row, text in enumerate(texts) if "," in text)
        doubt = f"the comma in {texts[row]!r} may separate thousands, but is decimal in {other!r}"
        remedy = "--thousands , or --decimal-comma says so"
        raise table.in_doubt([rows[row]], name, f"{doubt}; {remedy}")


class _Piece(NamedTuple):
    """Rows of a table as it has them, with a random key between 0 and 1 of each."""

    numbers: Integers
    keys: Doubles
    columns: dict[str, Any]

    def thinned(self, share: float) -> "_Piece":
        """Return the rows whose key is below `share`: about this share of the table's."""
        if share >= 1:
            return self
        drawn = np.flatnonzero(self.keys < share)
        columns = {name: column.take(drawn) for name, column in self.columns.items()}
        return _Piece(self.numbers[drawn], self.keys[drawn], columns)


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.chunked_array(parts)


def typed(
    table: Table, name: str, column: Any, kind: str | None = None, rows: int | Integers = 0
) -> Values:
    """Return a column of a file, an array or Arrow's, as a column of a frame.

    It has the `kind` that it had in the fit, or was chosen, by default what is found out. `rows`
    are the number of the first row, or of each.
    """
    if isinstance(rows, int):
        rows = rows + np.arange(len(column))
    values = _typed(table, name, column, kind, rows)
    if kind != TEXT or values.dtype.kind == "O":
        return values
    texts = texts_of(values.astype(object))
    texts[missing_of(values)] = None
    return texts


def _typed(table: Table, name: str, column: Any, kind: str | None, rows: Integers) -> Values:
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "US" or (column.dtype.kind in "iu" and merges(column)):
            return _of_text(table, name, column.astype(str).tolist(), kind, rows)
        if column.dtype.kind not in "biufM":
            raise table.bad_type(name, str(column.dtype))
        if column.dtype.kind == "M":
            tell_zone(name, [], table.forms.setdefault(name, []))
            return column
        return _or_days(table, name, _finite(table, name, column, rows), kind, rows)
    import pyarrow as pa

    of = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        return _of_strings(table, name, column.cast(pa.large_string()), kind, rows)
    if pa.types.is_boolean(of) or pa.types.is_null(of):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return _of_text(table, name, texts, kind, rows)
    if pa.types.is_date(of) or pa.types.is_timestamp(of):
        form = [NEITHER, ZONED] if getattr(of, "tz", None) else []
        tell_zone(name, form, table.forms.setdefault(name, form))
        return np.asarray(column.cast(pa.timestamp("us"), safe=False))
    if pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of):
        numbers = np.asarray(column.cast(pa.float64(), safe=False))  # of large integers the nearest
        is_large = not pa.types.is_floating(of) and np.any(np.abs(numbers) >= LARGEST_WHOLE)
        if is_large or (kind == TEXT and pa.types.is_integer(of)):
            texts = column.cast(of).cast(pa.large_string()).to_pylist()
            return _of_text(table, name, texts, kind, rows)
        values = _finite(table, name, numbers, rows)
        return _or_days(table, name, values, kind, rows)
    raise table.bad_type(name, str(of))


def _finite(table: Table, name: str, values: Values, rows: Integers) -> Values:
    values = table.reading.as_missing(np.asarray(values, dtype=np.float64))
    infinite = np.isinf(values)
    if infinite.any():
        row = int(infinite.argmax())
        raise table.bad_value(int(rows[row]), name, float(values[row]))
    return values


def _or_days(table: Table, name: str, values: Values, kind: str | None, rows: Integers) -> Values:
    """Return numbers, or where all are days such as 20241231, these."""
    meant = None if kind == NUMBER else days_of(values, surely=kind == DATE)
    if meant is None:
        return values
    tell(name, values, meant, rows)
    table.forms.setdefault(name, meant.form)
    return meant.values


def _of_strings(table: Table, name: str, column: Any, kind: str | None, rows: Integers) -> Values:
    """Return a column of strings: at once if all of them are numbers, or all ISO dates."""
    import pyarrow as pa
    import pyarrow.compute as pc

    reading = table.reading
    there = trimmed = table.plain_numbers(name, pc.ascii_trim_whitespace(column), rows)
    numbers = _cast(trimmed, pa.float64())
    if numbers is None or pc.any(pc.is_nan(numbers)).as_py() or reading.missing != MISSING:
        words = pa.array(reading.missing | reading.marks, pa.large_string())
        with contextlib.suppress(pa.ArrowInvalid):  # of text in an unknown encoding
            absent = pc.is_in(pc.utf8_lower(trimmed), value_set=words)
            if pc.any(absent).as_py():
                table.words[name] = pc.max(pc.filter(trimmed, absent)).as_py()
            there = pc.if_else(absent, pa.scalar(None, pa.large_string()), trimmed)
            numbers = _cast(there, pa.float64())
    form = table.forms.get(name) or [reading.date_format]
    if numbers is None and kind in (None, DATE) and form in ([order] for order in ORDERS):
        dates = _cast(there, pa.timestamp("us"))
        if dates is not None:
            table.forms[name] = form
            return np.asarray(dates)
    if (
        numbers is None
        or kind not in (None, NUMBER)
        or reading.date_format
        or numbers.null_count == len(column)
    ):
        return _of_text(table, name, _texts(trimmed), kind, rows)
    some = trimmed.slice(0, LOOKED_AT)
    few = there.drop_null().slice(0, LOOKED_AT)
    if kind is None and len(few) and pc.all(pc.match_substring_regex(few, MONTHS)).as_py():
        sentence = f"column {name!r} holds {plain_value(few[0])!r} and the like, read as months"
        warn(Remark("reading", [name], sentence))
        table.forms[name] = ["%m.%Y"]
        return _of_text(table, name, _texts(trimmed), DATE, rows)
    are_large = bool(np.any(np.abs(numbers) >= LARGEST_WHOLE))
    if name not in table.padded and (are_large or begin_with_zeros(there)):
        return _of_text(table, name, _texts(trimmed), kind, rows)  # they may be codes
    settled = kind is not None or reading.thousands or reading.decimal_comma
    if not settled and (row := doubtful_point(some)) is not None:
        text = plain_value(some[row])
        raise table.in_doubt(
            [rows[row]], name,
            f"{text!r} may be {text.replace('.', '')} or {text}; --thousands . or --thousands , "
            "settles it",
        )  # fmt: skip
    values = _finite(table, name, np.asarray(numbers), rows)
    return _or_days(table, name, values, kind, rows)


def _cast(strings: Any, of: Any) -> Any:
    """Return strings as another type, None unless all of them are of it."""
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowInvalid):
        strings.slice(0, LOOKED_AT).cast(of)  # failures take long
        return strings.cast(of)
    return None


def _texts(strings: Any) -> list[str | None]:
    """Return strings as Python's."""
    with contextlib.suppress(UnicodeDecodeError):
        return list(strings.to_pylist())
    return [plain_value(value) for value in strings]


def _of_text(
    table: Table, name: str, texts: list[str | None], kind: str | None, rows: Integers
) -> Values:
    """Return a column of text as numbers, dates or objects."""
    reading = table.reading
    plain = {t: None if t is None or reading.is_missing(t) else bare(t) for t in {*texts}}
    texts = [plain[text] for text in texts]
    values = np.array(texts, dtype=object)
    there = np.array([value is not None for value in texts], dtype=bool)
    if not there.any() and kind != TEXT:
        return np.full(len(texts), np.datetime64("NaT", "us") if kind == DATE else np.nan)
    meaning = None
    try:
        if kind != TEXT:
            chosen = kind is not None and name not in table.forms  # a fit's have a form
            known = table.forms.get(name)
            meaning = meaning_of(
                values, there, reading, kind, known, chosen=chosen,
                axis=table.axes.get(name, axis_of(name)), padded=name in table.padded,
            )  # fmt: skip
    except DoubtError as doubt:
        raise table.in_doubt([rows[row] for row in doubt.rows(values)], name, str(doubt)) from None
    if meaning is None and name == table.of_numbers:
        parsed = np.array([as_number(text) for text in texts])
        meaning = Meaning(NUMBER, parsed, there & np.isnan(parsed), [], [])
    if meaning is not None:
        tell(name, values, meaning, rows)
        table.forms.setdefault(name, meaning.form)
        return (
            meaning.values if meaning.kind == DATE else _finite(table, name, meaning.values, rows)
        )
    codes = codes_in(values[there]) if kind in (None, NUMBER) and name not in table.padded else {}
    if codes and kind == NUMBER:
        row = next(row for row, text in enumerate(texts) if text in codes)
        mend = "tell gzkcore fit what the column is: --as COLUMN=category or number"
        raise table.bad_value(int(rows[row]), name, texts[row], NO_CODE, mend=mend)
    if kind in (None, NUMBER) and not codes:
        is_text = {text: np.isnan(as_number(text)) for text in plain.values()}
        wrong = there & np.array([is_text[text] for text in texts], dtype=bool)
        mostly = 2 * wrong.sum() < there.sum() and len(is_text) > CODES
        if kind == NUMBER or mostly:
            row = int(wrong.argmax())
            limits = about_limits([str(text) for text in values[wrong]])
            raise table.bad_value(int(rows[row]), name, texts[row], mend=limits or LEAVE_EMPTY)
    if kind == DATE:
        form = (table.forms.get(name) or [NEITHER])[0]
        row = int(dates_of(values, there, form)[1].argmax())
        raise table.bad_value(
            int(rows[row]), name, texts[row], "date such as 2024-12-31", mend=LEAVE_EMPTY
        )
    return values
