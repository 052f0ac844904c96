"""How files are written: beside their place, then renamed."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError, with the remedy, unless a file can be written to this path."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot save to {str(path)!r}: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot save to {str(path)!r}: it is a folder; name a file")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"cannot save to {str(path)!r}: nothing may be written in {path.parent}; name another "
            "folder"
        )


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside `path` to write to; rename it at the end, or remove it on an error.

    So the file appears whole or not at all, and stays so if the power fails. The ending stays last
    in the other name, since writers tell the format by it.
    """
    check_place(path)
    path = Path(path)
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed while they wrote `path` have left beside it."""
    path = Path(path)
    part = re.compile(rf"\.{re.escape(path.stem)}\.\d+\.part{re.escape(path.suffix)}")
    for beside in path.parent.iterdir():
        if part.fullmatch(beside.name):
            beside.unlink(missing_ok=True)
