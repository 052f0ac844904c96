"""The package's warnings, which a thread can collect for itself.

`warnings.catch_warnings` sets filters that belong to the whole process (in Python 3.14 too, unless
it runs without its lock). Of two threads that use it at once, one shows what the other means to
ignore, or the filters stay as one of them has set them. So what fits on the way to another fit have
to say is collected here, in a variable that each thread has for itself.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["Caught", "collected_warnings", "warn"]


class Caught(NamedTuple):
    """A warning that was collected."""

    message: str
    category: type[Warning]


_collected: ContextVar[list[Caught] | None] = ContextVar("_collected", default=None)


def warn(message: str, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """Warn as `warnings.warn` does, unless this thread collects its warnings."""
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        collected.append(Caught(message, category))


@contextmanager
def collected_warnings() -> Iterator[list[Caught]]:
    """Collect, in place of showing them, the warnings by `warn` of this thread."""
    collected: list[Caught] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
