"""Public names that are imported when they are first asked for."""

import difflib
from collections.abc import Callable
from typing import Any

import lazy_loader

Names = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def attach(package: str, file: str) -> Names:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, of the names in its stub.

    The error of a name that isn't there names the nearest one that is.
    """
    get, directory, names = lazy_loader.attach_stub(package, file)

    def get_or_suggest(name: str) -> Any:
        try:
            return get(name)
        except AttributeError as error:
            near = [] if name in names else difflib.get_close_matches(name, names, 1)
            if not near:
                raise
            raise AttributeError(f"{error}; did you mean {near[0]}?") from None

    return get_or_suggest, directory, names
