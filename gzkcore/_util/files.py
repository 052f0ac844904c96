"""How files are written: beside their place, then renamed."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside `path` to write to; rename it at the end, or remove it on an error."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no folder {path.parent}")
    beside = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
