"""How messages say numbers."""

import re

_LONG = re.compile(r"(?<![\w.])\d+\.\d{4,}(?:e[+-]?\d+)?")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s unless there is one.

    Examples
    --------
    >>> from gzkcore._util.wording import counted
    >>> counted(1, "row"), counted(28000, "row")
    ('1 row', '28,000 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def plain(text: str) -> str:
    """Return a repr, or what has some in it, in one line and without NumPy's names of types.

    Examples
    --------
    >>> from gzkcore._util.wording import plain
    >>> plain("Gaussian(gamma=np.float64(0.5))")
    'Gaussian(gamma=0.5)'
    """
    return re.sub(r"np\.float64\(([^()]*)\)", r"\1", " ".join(text.split()))


def shortened(text: str) -> str:
    """Return a plain text whose long decimal numbers are cut to four significant digits.

    Examples
    --------
    >>> from gzkcore._util.wording import shortened
    >>> shortened("Gaussian(gamma=0.3333333333333333)")
    'Gaussian(gamma=0.3333)'
    """
    return _LONG.sub(lambda number: f"{float(number[0]):.4g}", plain(text))
