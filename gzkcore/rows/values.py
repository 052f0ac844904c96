"""Single values of files: which are numbers, which are missing, and what is wrong with others."""

import math
import numbers
import re
import unicodedata
from collections.abc import Container
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Integers

Values: TypeAlias = NDArray[Any]  # of a column, of any type

NAN = r"(?i)\s*[-+]?nan\s*"
DECIMAL_COMMA = r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$"
# A number with a separator of thousands, or with a fraction of three digits.
THOUSANDS = r"^[-+]?[1-9][0-9]{0,2}%s[0-9]{3}$"
NUMERIC = re.compile(r"\s*[-+]?[\d., '’\u00a0]+([eE][-+]?\d+)?\s*%?\s*")  # or a phone number
LARGEST_WHOLE = 2.0**53  # Doubles tell all smaller whole numbers apart.
WHOLE = re.compile(r"-?(0|[1-9]\d*)\.0+")  # a whole number, written with a point
ZERO_FIRST = re.compile(rb"[-+]?0\d")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d*[1-9])?)\.?0*")
GONE = {"NAType", "NaTType", "NoneType"}  # types of missing values
EXACT = {str, bool, int, float, np.bool_}  # Values of these types are equal if their repr is.
# What stands for a missing value in text, in small letters.
MISSING = frozenset(
    {
        "", "na", "n/a", "n.a.", "nan", "-nan", "nat", "null", "none", "<na>", "?", "#n/a", "#na",
        "#n/a n/a", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!", "#spill!", "#calc!",
    }
)  # fmt: skip

# Texts that tell only a limit, of detection or of a scale: which values these are, how the others
# are biased, and what to write.
LIMITS = {
    r"(?i)\s*([<≤]|(below|under|less than)\b|bdl\s*$)": ("smallest", "large", "half the limit"),
    r"(?i)\s*([>≥]|(above|over|more than)\b|[\d.,]+ ?\+\s*$)": ("largest", "small", "the limit"),
}
FEW = 0.1  # Up to this share of a column's values that fit no kind is taken as missing.
LEAST_WHOLE = 0.02  # Points may separate thousands if a larger share of the numbers is whole.
# A code for a missing value repeats so often, in a column of so many different values. It is so
# large, and up to MOST_CODES codes may be beside each other.
FEWEST_REPEATS, FEWEST_VALUES, LEAST_CODE, MOST_CODES = 3, 10, 9.0, 3
FEW_NINES = 99.0  # Codes of nines that are larger need not repeat.
OFTEN = 5  # 99 and the like are codes if they are there so many times as often as any other number.
VERY_FAR = 10  # A single target is a code if it is so many times as far out as others are apart.
LEAST_GAP = 1e-300  # A smaller gap between numbers would be divided by 0.
# 0 may stand for a missing value if it is so many standard deviations below the mean of the others,
# and so many times as far from them as they are from each other.
ZERO_BELOW, ZERO_GAP = 3.8, 3.0


def about_sentinel(what: str, code: Any, kind: str = "number") -> str:
    """Say that such a number or date, which `what` has, may stand for a missing value."""
    code = repr(code).removesuffix(".0") if kind == "number" else code
    option = "" if code == "0" else f"; --missing={code} in the command"  # which means all columns
    return (
        f"{what} has the {kind} {code}, far from all others or far more often; if it stands for a "
        f"missing value, leave it empty (NaN{option}), or if it is a target drop such rows"
    )


def about_limits(texts: list[str]) -> str:
    """Say what is lost where texts such as <0.5 tell no more than a limit, else ""."""
    told = []
    for limit, (which, biased, instead) in LIMITS.items():
        if some := [text for text in texts if re.match(limit, text)]:
            told.append(
                f"the {which} values are lost, {len(some):,} such as {some[0]!r}, and the others "
                f"are too {biased} on average; write {instead} in place of each"
            )
    return "; ".join(told)


def sentinel_of(values: Doubles, *, of_targets: bool = False) -> float | None:
    """Return a number that repeats and stands far from all others, as codes for missing ones do.

    It is farther from the next one than all others are from each other, or if its digits are not
    7, 8 and 9 three times as far, is 9 or larger in size, and is not most of all values. With such
    digits it may be nearer if no other number has its sign. Two or three such numbers, as 998 and
    999, may be beside each other. 999 and the like need not repeat if they are three times as far,
    nor does any target that is ten times as far: it spoils the fit. 99 and the like may be among
    the others if no number is there nearly as often, 0 may be nearer to numbers of one sign, and -1
    to positive ones.
    """
    levels, counts = np.unique(values, return_counts=True)
    if levels.size < FEWEST_VALUES:
        return None
    if _are_zeros_apart(levels, counts):
        return 0.0
    if levels[0] == -1 and levels[1] > 0 and FEWEST_REPEATS <= counts[0] <= values.size / 2:
        return -1.0
    for order in (slice(None), slice(None, None, -1)):
        ends, repeats = np.abs(levels[order][: MOST_CODES + 1]), counts[order]
        sides = (levels[order] < 0) if order.step is None else (levels[order] > 0)
        gaps = np.abs(np.diff(levels[order] / 2)) / levels.size  # neither they nor a sum overflows
        for n_codes in range(1, MOST_CODES + 1):
            coded = all({*f"{end:g}"} <= {*"789"} for end in ends[:n_codes])
            times = gaps[n_codes - 1] / max(gaps[n_codes:].sum(), LEAST_GAP)
            nines = n_codes == 1 and {*f"{ends[0]:g}"} == {"9"} and ends[0] > FEW_NINES
            alone = (nines and times > 3) or (of_targets and times > VERY_FAR)
            least = 1 if alone else FEWEST_REPEATS
            some = least <= repeats[:n_codes].sum() <= values.size / 2
            apart = coded and sides[n_codes - 1] != sides[n_codes]
            far = apart or times > (1 if coded else 3)
            if some and far and ends[0] >= LEAST_CODE and (coded or n_codes == 1):
                return float(levels[order][int(np.argmax(repeats[:n_codes]))])
    *_, second, most = np.sort(counts)
    often = float(levels[int(np.argmax(counts))])
    is_nines = abs(often) >= FEW_NINES and {*f"{abs(often):g}"} == {"9"}
    return often if is_nines and most >= max(FEWEST_REPEATS, OFTEN * second) else None


def _are_zeros_apart(levels: Doubles, counts: NDArray[Any]) -> bool:
    """Say whether 0 repeats far from all other of these different numbers, which have one sign."""
    rest = levels != 0
    others, times, repeats = np.abs(levels[rest]), counts[rest], counts[~rest].sum()
    if not FEWEST_REPEATS <= repeats <= times.sum() or levels[0] < 0 < levels[-1]:
        return False
    others = np.sort(others / others.max())
    mean, near = np.average(others, weights=times), others[: 1 + others.size // 2]
    spread = math.sqrt(np.average(np.square(others - mean), weights=times))
    return bool(mean > ZERO_BELOW * spread and near[0] >= ZERO_GAP * np.diff(near).max())


class BadValueError(ValueError):
    """Where a value is not a finite number, and what to do."""

    def __init__(
        self,
        what: str,
        column: str,
        *,
        is_text: bool = False,
        is_missing: bool = False,
        has_comma: bool = False,
        mend: str = "mend or drop such rows",
    ) -> None:
        super().__init__(f"{what}; {mend}, or choose other columns")
        self.what, self.column, self.is_text = what, column, is_text
        self.is_missing, self.has_comma = is_missing, has_comma


class DoubtError(ValueError):
    """Texts have two readings."""

    def __init__(self, readings: str, *texts: str) -> None:
        super().__init__(readings)
        self.texts = texts

    def rows(self, texts: Values) -> list[int]:
        """Return the first rows whose texts are these, or have these in them."""
        every = [text or "" for text in texts]
        within = [[one in text for text in every].index(True) for one in self.texts]
        pairs = zip(self.texts, within, strict=True)
        return [every.index(one) if one in every else row for one, row in pairs]


def is_missing(value: Any) -> bool:
    """Say whether a value of a file stands for none: NaN, or one of the words for that."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or bool(value != value)  # noqa: PLR0124  NaN


def plain_value(value: Any) -> Any:
    """Return an Arrow or NumPy value as a Python one; text in an unknown encoding as it goes."""
    if isinstance(value, np.generic):
        return value.item()
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return value.as_buffer().to_pybytes().decode("latin-1")


def harmless(text: Any) -> Any:
    """Return a text that a spreadsheet would run behind an apostrophe, all else as it is."""
    runs = isinstance(text, str) and text.lstrip()[:1] in (*"=+-@",) and not NUMERIC.fullmatch(text)
    return f"'{text}" if runs else text


def has_decimal_comma(text: str) -> bool:
    """Say whether a text is a number but for its decimal comma."""
    return not is_number(text) and is_number(text.replace(",", ".", 1))


def may_be_thousands(text: str) -> bool:
    """Say whether the comma in a text may separate thousands."""
    return re.match(THOUSANDS % ",", text) is not None


def bare(text: str) -> str:
    """Return a text without what spreadsheets put around it to keep it as it is: ="05", '05."""
    text = text.strip()
    if text[:2] == '="' and text[-1] == '"' and len(text) > 2:
        return text[2:-1]
    return text[1:] if text[:1] == "'" and NUMERIC.fullmatch(text[1:]) else text


def without_groups(column: Any, mark: str) -> tuple[Any, int | None, int | None]:
    """Remove what separates thousands from numbers in text.

    Returns the column, the first row that had such a mark, and the first where it stands elsewhere.
    """
    import pyarrow.compute as pc

    point = re.escape(mark)
    marked = _like(column, rf"^\s*[-+]?[0-9.,]*{point}[0-9.,]*\s*$")
    groups = rf"[1-9][0-9]{{0,2}}(?:{point}[0-9]{{3}})+(?:[.,][0-9]+)?"
    grouped = _like(column, rf"^\s*[-+]?{groups}\s*$")
    first, other = (pc.index(of, True).as_py() for of in (grouped, pc.and_not(marked, grouped)))
    plain = pc.if_else(grouped, pc.replace_substring(column, mark, ""), column)
    return plain, None if first < 0 else int(first), None if other < 0 else int(other)


def _like(column: Any, pattern: str) -> Any:
    """Return which texts of a column match; a missing one does not."""
    import pyarrow.compute as pc

    return pc.fill_null(pc.match_substring_regex(column, pattern), False)


def begin_with_zeros(column: Any) -> bool:
    """Say whether some texts begin with 0 and another digit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    starts = pc.unique(pc.binary_slice(column.cast(pa.large_binary()), 0, 3))  # of many, few differ
    return any(start and ZERO_FIRST.match(start) for start in starts.to_pylist())


def doubtful_point(column: Any) -> int | None:
    """Return the first row of text whose point may separate thousands, None if none does.

    It may beside decimal commas, and beside whole numbers below 1,000 where three digits follow
    each point.
    """
    import pyarrow.compute as pc

    trimmed = pc.ascii_trim_whitespace(column)
    points = _like(trimmed, r"^[-+]?[0-9]*[.][0-9]+$")
    patterns = ("^[-+]?[0-9]{1,3}$", "^[-+]?[0-9]{4}", DECIMAL_COMMA, THOUSANDS % "[.]")
    n_whole, large, commas, groups = (pc.sum(_like(trimmed, each)).as_py() for each in patterns)
    may_be_groups = groups == pc.sum(points).as_py() and not large
    doubtful = commas or (may_be_groups and n_whole > LEAST_WHOLE * len(column))
    first = pc.index(points, True).as_py()
    return int(first) if doubtful and first >= 0 else None


def is_of_values(of: Any) -> bool:
    """Say whether an Arrow type is of numbers, text or dates."""
    import pyarrow as pa

    others = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary,
              pa.types.is_fixed_size_binary, pa.types.is_time, pa.types.is_duration,
              pa.types.is_interval)  # fmt: skip
    return not any(is_other(of) for is_other in others)


def is_number(value: Any) -> bool:
    """Say whether a value, or a text, is a number, infinity and NaN included."""
    if not isinstance(value, str):
        return isinstance(value, numbers.Number)
    return not math.isnan(as_number(value)) or re.fullmatch(NAN, value) is not None


def as_number(value: Any) -> float:
    """Return the number that a value or a text is, NaN if it is none, such as 1_000."""
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def merges(values: Values) -> bool:
    """Say whether some of the numbers from 2^53 on differ, but are equal as doubles."""
    doubles = values.astype(np.float64)
    large = np.abs(doubles) >= LARGEST_WHOLE
    return len({*values[large].tolist()}) > len({*doubles[large].tolist()})


def seem_rounded(values: Doubles) -> bool:
    """Say whether most numbers are ids from 2^53 on: they repeat, and don't end with zeros."""
    large = values[np.abs(values) >= LARGEST_WHOLE]
    repeat = np.unique(large).size <= large.size / 2
    return repeat and 2 * large.size > values.size and bool(np.any(large % 1000))


def as_doubles(columns: dict[str, Any], names: list[str], padded: Container[str] = ()) -> Doubles:
    """Turn Arrow columns of text or numbers into float64 (n, len(names)), NaN where that fails.

    It does for codes such as 01, but in columns that are `padded` with zeros.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = np.empty((len(columns[names[0]]), len(names)))
    for j, name in enumerate(names):
        column = columns[name]
        try:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column = pc.ascii_trim_whitespace(column)
                if name not in padded and begin_with_zeros(column):
                    codes = _like(column, "^[-+]?0[0-9]+$")
                    column = pc.if_else(codes, pa.scalar(None, column.type), column)
            values[:, j] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values[:, j] = [as_number(plain_value(value)) for value in column]
    return values


def distinct_values(values: Values) -> tuple[Values, Integers]:
    """Return the different values of a column, by their first rows, and the place of each row's.

    All rows differ if their repr may be equal where values are not.
    """
    texts = values.tolist()
    kinds = {*map(type, texts)}
    if any(kind not in EXACT and kind.__name__ not in GONE for kind in kinds):
        return values, np.arange(len(values))
    if kinds != {str}:
        texts = [*map(repr, texts)]  # which tells 1, 1.0, True, -0.0 and the text 1 apart
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    places = np.fromiter(map(numbers.__getitem__, texts), np.intp, len(values))
    different = np.empty(len(numbers), values.dtype)
    different[places] = values
    return different, places


def missing_of(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are missing: NaN, None, and what pandas has for them."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    some, places = distinct_values(values)
    missing = [type(v).__name__ in GONE or (isinstance(v, float) and math.isnan(v)) for v in some]
    return np.array(missing, dtype=bool)[places]


def texts_of(values: Values) -> Values:
    """Return levels as text; a missing one has none."""
    missing = missing_of(values)
    texts = np.full(len(values), "", dtype=object)  # not padded to the longest
    texts[~missing] = [_text(value) for value in values[~missing]]
    return texts


def _text(value: Any) -> str:
    """Return one text for a value whatever its type: True, 1 and 1.0 are one level, "1.0 " too."""
    if isinstance(value, numbers.Integral | np.bool_):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    text = unicodedata.normalize("NFC", str(value).strip())  # an accent may be a letter of its own
    if moment := MOMENT.fullmatch(text):  # at midnight a day
        return f"{moment[1]} {moment[2]}".removesuffix(" 00:00:00")
    return text.partition(".")[0] if WHOLE.fullmatch(text) else text
