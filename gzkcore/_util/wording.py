"""Numbers and names in messages."""

import difflib
import os
import re
import unicodedata
from collections.abc import Iterable, Sequence

_LONG = re.compile(r"(?<![\w.])\d+\.\d{4,}(?:e[+-]?\d+)?")
_REPEATED = re.compile(r"(?<![\w.+-])([\d.e+-]+)(?:, \1(?=[,\]])){3,}")
LONG = 60.0  # Work that is expected to take more seconds is announced.
_JOINERS = "\u200c\u200d"  # of Persian and Indic letters, and of emoji


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> counted(1, "row"), counted(28000, "row")
    ('1 row', '28,000 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def in_list(name: str) -> str:
    """Return a name as it stands in a list, quoted if it could be misread there.

    >>> in_list("age"), in_list("age "), in_list("a, b")
    ('age', "'age '", "'a, b'")
    """
    if not name:
        return "the unnamed column"
    plain = name == name.strip() and name.isprintable() and "," not in name
    return name if plain else repr(name)


def named_columns(names: Sequence[str], most: int = 10) -> str:
    """Return columns by their names, the first ones of many.

    >>> named_columns(["age"]), named_columns(["age", "town"]), named_columns(["a", "b", "c"], 2)
    ("column 'age'", "columns 'age', 'town'", "columns 'a', 'b' and 1 more")
    """
    return f"column{'s' * (len(names) > 1)} {some_of([*map(repr, names)], most)}"


def some_of(names: Sequence[str], most: int) -> str:
    """Return names, the first ones of many.

    >>> some_of(["age", "town"], 2), some_of(["a", "b", "c"], 1)
    ('age, town', 'a and 2 more')
    """
    return ", ".join(names[:most]) + f" and {len(names) - most:,} more" * (len(names) > most)


def nearest(name: object, names: Iterable[str]) -> str:
    """Return the name that is most like another one, in any case; "" if none is like it.

    >>> nearest("Gausian", ["gaussian", "matern"]), nearest("chi2", ["gaussian", "matern"])
    ('gaussian', '')
    """
    folded = {each.casefold(): each for each in names}
    near = difflib.get_close_matches(str(name).casefold(), folded, 1, cutoff=0.65)
    return folded[near[0]] if near else ""


def meant(name: object, names: Iterable[str]) -> str:
    """Return the question for the name that may be meant, to follow one that is unknown.

    >>> meant("gausian", ["gaussian", "matern"]), meant("chi2", ["gaussian", "matern"])
    (" (did you mean 'gaussian'?)", '')
    """
    near = nearest(name, names)
    return f" (did you mean {near!r}?)" if near else ""


def printable(text: str) -> str:
    r"""Return a text with escapes for what controls a terminal, or the direction of writing.

    >>> printable("R\x1b[31m, a\nb, été")
    'R\\x1b[31m, a\\nb, été'
    """
    kept = (c.isprintable() or c in _JOINERS or unicodedata.category(c) == "Zs" for c in text)
    return "".join(c if keep else repr(c)[1:-1] for c, keep in zip(text, kept, strict=True))


def as_plain(value: float, digits: int) -> str:
    """Return a number with so many digits, without an exponent where it is easy to read so.

    >>> as_plain(14912.3, 3), as_plain(1e-7, 3)
    ('14,900', '1e-07')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.15g}" if 1e-4 <= abs(rounded) < 1e9 else f"{rounded:g}"


def seconds_told(seconds: float) -> str:
    """Return a duration in its unit, with two digits or three: no clock tells more reliably.

    >>> [seconds_told(each) for each in (0.00123, 0.26, 31.4, 99.6, 1234.5, 22838.3, 1e6)]
    ['< 0.1 s', '0.3 s', '31 s', '1.7 min', '21 min', '6.3 h', '278 h']
    """
    if seconds < 0.1:
        return "< 0.1 s"
    size, unit = seconds, "s"
    for larger, name in ((60, "min"), (60, "h")):
        if size >= 99.5:
            size, unit = size / larger, name
    return f"{size:.1f} {unit}" if size < 9.95 else f"{size:,.0f} {unit}"


def plain(text: str) -> str:
    """Return a text with reprs in it in one line, without NumPy's names of types.

    >>> plain("Gaussian(gamma=np.float64(0.5))")
    'Gaussian(gamma=0.5)'
    """
    return re.sub(r"np\.float64\(([^()]*)\)", r"\1", " ".join(text.split()))


def shortened(text: str) -> str:
    """Return a plain text, long decimal numbers with four digits, repeated ones with how often.

    >>> shortened("Gaussian(gamma=0.3333333333333333)"), shortened("Gaussian(gamma=[2, 2, 2, 2])")
    ('Gaussian(gamma=0.3333)', 'Gaussian(gamma=[4 times 2])')
    """
    rounded = _LONG.sub(lambda number: f"{float(number[0]):.4g}", plain(text))
    return _REPEATED.sub(lambda same: f"{same[0].count(',') + 1} times {same[1]}", rounded)


def fitted_to(text: str, length: int) -> str:
    """Return a name of at most `length` characters, its middle left out if it is longer.

    >>> fitted_to("expression of gene 17", 12), fitted_to("gene 17", 12)
    ('express…e 17', 'gene 17')
    """
    if len(text) <= length:
        return text
    end = (length - 1) * 2 // 5
    return f"{text[: length - 1 - end]}…{text[len(text) - end :]}"


def told_apart(names: Sequence[str], length: int) -> list[str]:
    """Shorten names as `fitted_to` does; start where they differ if that keeps them distinct.

    >>> told_apart(["the level of iron in the blood", "the level of zinc in the blood"], 16)
    ['…iron in the blo', '…zinc in the blo']
    """
    fitted = [fitted_to(name, length) for name in names]
    if len(set(fitted)) == len(names):
        return fitted
    same = len(os.path.commonprefix([*names]))
    return [name if len(name) <= length else f"…{name[same:]}"[:length] for name in names]


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = True
) -> list[str]:
    """Return the lines of a table: the first column to the left, the others to the right or left.

    >>> aligned(["method", "s"], [["block", "0.1"]])
    ['method    s', 'block   0.1']
    """
    sizes = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for first, *rest in (header, *rows):
        cells = (
            cell.rjust(size) if right else cell.ljust(size)
            for cell, size in zip(rest, sizes[1:], strict=True)
        )
        lines.append("  ".join([first.ljust(sizes[0]), *cells]).rstrip())
    return lines
