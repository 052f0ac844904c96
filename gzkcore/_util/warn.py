"""The warnings of the package, which each thread can collect separately.

`warnings.catch_warnings` sets filters of the whole process (also in Python 3.14, unless it runs
without its lock). If two threads use it at once, one shows warnings that the other ignores, or the
filters of one remain. So the warnings of fits within another fit are collected here, in a variable
of each thread.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Caught(NamedTuple):
    """A warning that was collected: its text, or a record that has one."""

    message: str | Warning
    category: type[Warning]


INSIDE = {"gzkcore", "sklearn", "joblib", "contextlib", "concurrent", "threading"}

_collected: ContextVar[list[Caught] | None] = ContextVar("_collected", default=None)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn as `warnings.warn` does, of the caller's line, unless this thread collects warnings."""
    category = type(message) if isinstance(message, Warning) else category
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=_level_of_caller())
    else:
        collected.append(Caught(message, category))


def _level_of_caller() -> int:
    """Return the `stacklevel` of the first line that is of none of `INSIDE`: of the user's code.

    So a warning names the same line wherever in the package it arises, and whether a pipeline or a
    search of scikit-learn is between. 2 where a thread knows nothing of who started it.
    """
    level, frame = 2, sys._getframe(2)
    while frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        if frame.f_back is None:
            return 2
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def collected_warnings() -> Iterator[list[Caught]]:
    """Collect, in place of showing them, the warnings by `warn` of this thread."""
    collected: list[Caught] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
