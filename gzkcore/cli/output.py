"""The output of the commands: progress, notes, tables and JSON."""

import contextlib
import json
import math
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gzkcore._util.warn import collected_warnings
from gzkcore._util.wording import LONG, counted, in_list, named_columns, printable, seconds_told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gzkcore._util.typing import OnProgress

Say: TypeAlias = Callable[[str], None]

MOST_NAMED = 20  # a message names no more columns
# Digits of numbers in files of text: enough for seconds since 1970, too few for rounding errors.
TEXT_DIGITS = 12
STD_DIGITS = 4  # standard deviations are not known to more digits
SHARE_DIGITS = 6  # of probabilities
LINE_SECONDS = 30.0  # Without a terminal, a line so often says what is done.
HELD_OUT = "predicting held-out rows"  # a kind of work
SURE = 2.0  # So many seconds of work tell how long the rest takes.
PLACES = 6  # predictions are rounded so many places after the first digit of the target's spread


class InterruptedWorkError(Exception):
    """Ctrl-C, and what to say about it."""


@contextlib.contextmanager
def if_interrupted(path: Path, about: str = "") -> Iterator[None]:
    """On Ctrl-C, say what a file keeps, if it exists: by default results to resume from."""
    about = about or f"finished results are in {path}; repeat the command to resume"
    try:
        yield
    except KeyboardInterrupt:
        raise InterruptedWorkError("interrupted" + f"; {about}" * path.exists()) from None


@contextlib.contextmanager
def options_named(
    *, drops: bool, columns: bool = True, most_bytes: float | None = None
) -> Iterator[None]:
    """Name the option that helps in errors about a bad value or too little memory."""
    from gzkcore.rows.values import BadValueError
    from gzkcore.solve.cost import TooLittleMemoryError

    try:
        yield
    except BadValueError as error:
        if error.has_comma:
            raise ValueError(f"{error.what}; --decimal-comma reads such numbers") from None
        if error.is_missing and drops:
            raise ValueError(f"{error}, or add --drop-missing") from None
        if not columns:
            raise ValueError(f"{error.what}; mend or drop such rows") from None
        raise
    except TooLittleMemoryError as error:
        limit = "half of what is free" if most_bytes is None else f"{most_bytes:,.0f} bytes"
        raise ValueError(
            f"--memory allows {limit}, but {error.needed}; allow more, or pass fewer --columns"
        ) from None


class Work:
    """What is done now, and how long the rest may take; work with a remedy is announced if long."""

    def __init__(self, remedies: dict[str, str]) -> None:
        self._remedies, self._label, self._now = remedies, "starting", ""
        self._share: float | None = None
        self._left, self._began = 0.0, time.monotonic()
        self._first = self._began, 0.0  # when the first share was told, and which

    def report(self, label: str, share: float | None, now: str = "") -> None:
        """Take note of a report, see `OnProgress`."""
        moment = time.monotonic()
        if label != self._label:
            self._label, self._began, self._share = label, moment, None
        if share is not None and (self._share is None or share < self._share):
            self._first = moment, share
        took, done = moment - self._first[0], (share or 0.0) - self._first[1]
        self._share, self._now = share, now
        self._left = took * (1 - share) / done if share and done > 0 else 0.0
        if self._left > LONG and took > SURE and label in self._remedies:
            whole = seconds_told(moment - self._began + self._left)
            tell(f"{label} takes about {whole}{self._remedies.pop(label)}")

    def __str__(self) -> str:
        told = f"{self._label}, {seconds_told(time.monotonic() - self._began)} so far"
        told += "" if self._share is None else f", {100 * self._share:.0f} % done"
        told += f", about {seconds_told(self._left)} left" if self._left else ""
        return printable(f"{told}: {self._now}" if self._now else told)

    __rich__ = __str__


@contextlib.contextmanager
def progress(remedies: dict[str, str] | None = None) -> Iterator["OnProgress"]:
    """Show on stderr what is done, as it is reported, see `OnProgress` and `Work`."""
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    work = Work(remedies or {})
    with console.status(work) if console.is_terminal else _lines(work):  # it asks for the text anew
        yield work.report


@contextlib.contextmanager
def _lines(work: Work) -> Iterator[None]:
    """Write a line every half minute, also while nothing is reported."""
    done = threading.Event()

    def write() -> None:
        while not done.wait(LINE_SECONDS):
            tell(str(work))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Collect notes and warnings; of those that differ in numbers only, keep the first.

    It then says of which columns the others are, or how many there are.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield notes
    alike: dict[str, list[Warning]] = {}
    for warning in caught:
        told = Warning(warning.message) if isinstance(warning.message, str) else warning.message
        alike.setdefault(re.sub(r"\d+", "", str(told)), []).append(told)
    for first, *more in alike.values():
        of = [name for each in more for name in getattr(each, "columns", [])]
        times = f"{counted(len(more), 'more note')} like it, with other numbers"
        others = f"so {'are' if len(of) > 1 else 'is'} {named_columns(of)}" if of else times
        notes.append(f"{first} ({others})" if more else str(first))
    notes[:] = [f"Note: {note}" for note in notes]


def gamma_notes(kernel: Any, where_from: str | None) -> list[str]:
    """Return notes on the gamma of a resolved kernel, if it has one."""
    if where_from is None:
        return []
    rule = {
        "scale": "by the rule scale, from the variance of the columns",
        "median": "by the rule median, from the distances of the rows",
        "given": "as given",
    }[where_from]
    learned = ["gzkcore fit learns its lengthscales; --gamma sets one"] * (where_from != "given")
    return [f"gamma: {float(kernel.gamma):.4g}, {rule}", *learned]


def first_of(columns: list[str]) -> str:
    """Name the first columns of a model."""
    return ", ".join(map(in_list, columns[:4])) + (", ..." if len(columns) > 4 else "")


def picture_note(path: str | None) -> list[str]:
    """Return a note on the picture, if there is one."""
    return [f"Picture: {path}"] if path else []


def drawn(
    path: Path | None, draw: Callable[[Path], None], name: str = "--plot", what: str = "picture"
) -> tuple[str | None, str]:
    """Draw a picture, if a path is given; return the path, and why drawing failed, or "".

    Every error is caught: results that took hours must be printed first.
    """
    if path is None:
        return None, ""
    try:
        with collected_warnings():  # of rows that nobody asked about
            draw(path)
    except Exception as error:  # noqa: BLE001  of a library, of any kind
        return None, f"{name} {path}: the {what} could not be drawn: {error}; all else is done"
    return str(path), ""


def print_table(title: str, header: list[str], rows: list[list[str]], least: int = 0) -> None:
    """Print a table for people, at least so wide even if the terminal is narrower."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(printable(title), "table.title"), title_justify="left", show_header=any(header),
        box=box.SIMPLE_HEAD,
    )  # fmt: skip
    for i, column in enumerate(header):
        table.add_column(
            Text(column), justify="right" if i and any(header) else "left", no_wrap=any(header)
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console()
    console.width = max(console.width, least)
    console.print(table)


def print_lines(*lines: str) -> None:
    """Print lines for people, without breaking long ones."""
    from rich.console import Console

    console = Console(soft_wrap=True, markup=False, highlight=False, emoji=False)
    for line in lines:
        console.print(printable(line))


def tell(line: str) -> None:
    """Write a line to stderr, if that can be, before the work is done."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no room, no reader, no stderr
        sys.stderr.write(f"{printable(line)}\n")
        sys.stderr.flush()


def rounded(column: "NDArray[Any]", digits: int = TEXT_DIGITS) -> "NDArray[Any]":
    """Return numbers with so many digits; text and whole numbers as they are."""
    import numpy as np

    if column.dtype.kind != "f":
        return column
    return np.array([float(f"{value:.{digits}g}") for value in column.tolist()])


def to_places(column: "NDArray[Any]", spread: float) -> "NDArray[Any]":
    """Return predictions to a millionth of the spread of their target; labels as they are."""
    import numpy as np

    if column.dtype.kind != "f" or not 0 < spread < math.inf:
        return column
    places = PLACES - math.floor(math.log10(spread))  # may be too many for NumPy's round
    return np.array([round(value, places) for value in column.tolist()])


def print_json(result: dict[str, Any]) -> None:
    """Print a result for programs."""
    sys.stdout.write(json.dumps(result, indent=2) + "\n")
