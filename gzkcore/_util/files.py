"""Writing of files: first under another name, then renamed.

Every file of the package is written by `replacing`: models, checkpoints, tables, pictures, results.
"""

import contextlib
import errno
import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .wording import meant

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where an open file can't be removed, so that none needs a lock
    fcntl = None

_NUMBERS = itertools.count()  # of the files that this process has written
# The other name takes at most so many bytes from a name: with numbers and ".part" 255 are allowed.
_NAME_BYTES = 220
_URL = re.compile(r"(https?|ftps?|s3|gs|file):/+", re.IGNORECASE)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return a path as one, or raise naming it if no file can have it."""
    try:
        path = Path(path)
    except TypeError:
        raise TypeError(
            f"path is of type {type(path).__name__}, but must be the name of a file, as text or a "
            "pathlib.Path"
        ) from None
    if "\0" in str(path):
        raise ValueError(
            f"path={str(path)!r} has a null byte, which file names cannot have; remove it"
        )
    if url := _URL.match(str(path)):
        slashes = "///" if url[1].lower() == "file" else "//"  # a path has only one of them
        whole = f"{url[1]}:{slashes}{str(path)[url.end() :]}"
        raise ValueError(f"{whole} is a URL; download it first, then name the file on this disk")
    return path


def meant_file(path: Path) -> str:
    """Return the question for the file of the same folder that may be meant, "" if none is."""
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [each.name for each in path.parent.iterdir() if each != path]
    return meant(path.name, names)


@contextlib.contextmanager
def allowed(doing: str, path: Path) -> Iterator[None]:
    """Name the file, and what to do, where Python says only that permission is denied."""
    try:
        yield
    except PermissionError:
        raise PermissionError(
            f"cannot {doing} {str(path)!r}: you have no permission to read it, or to enter its "
            "folder; change the permissions, or ask its owner to"
        ) from None


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError, with the remedy, unless a file can be written to this path."""
    path = as_path(path)
    cannot = f"cannot save to {str(path)!r}"
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            reason = f"{cannot}: the name is too long; use a shorter one"
            raise OSError(error.errno, reason) from None
        if isinstance(error, PermissionError):
            raise PermissionError(
                f"{cannot}: you have no permission to enter its folder; name another folder"
            ) from None
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{cannot}: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"{cannot}: it is a folder; name a file")
    if path.exists() and not path.is_file():
        raise OSError(
            f"{cannot}: it is a device or a pipe, which a file would replace; name a file"
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"{cannot}: nothing may be written in {path.parent}; name another folder"
        )


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError as `check_place` does, also where only an attempt tells, as in /proc."""
    check_place(path)
    beside, lock = _new_part(Path(os.path.realpath(path)))
    beside.unlink(missing_ok=True)
    os.close(lock)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path beside `path` to write to; rename it at the end, or remove it on an error.

    So the file appears whole or not at all, and stays so if the power fails; of several that write
    at once, in threads or processes, one is the last. Only a file is replaced, and of a link what
    it leads to. The ending stays last in the other name, since writers tell the format by it. What
    writers that were killed have left is removed.
    """
    check_place(path)
    path = Path(os.path.realpath(path))
    check_place(path)
    remove_parts(path)
    beside, lock = _new_part(path)
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno not in _FULL and "requested and" not in str(error):  # NumPy has no errno
            raise
        reason = os.strerror(error.errno or errno.ENOSPC)
        remedy = f"{reason}; free some space, or name a file elsewhere"
        raise OSError(error.errno or errno.ENOSPC, remedy, str(path)) from None
    finally:
        beside.unlink(missing_ok=True)
        os.close(lock)


def reserve(path: Path) -> None:
    """Raise OSError if the disk has no room for a file: where one is mapped, writing kills."""
    if hasattr(os, "posix_fallocate"):
        with path.open("rb+") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _new_part(path: Path) -> tuple[Path, int]:
    """Make an empty file beside `path` that is locked as long as what is returned is open."""
    while True:
        number = f"{os.getpid()}-{next(_NUMBERS)}"
        beside = path.with_name(f".{_short_stem(path)}.{number}.part{path.suffix}")
        try:
            lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:  # of a process of this number on another machine, or long gone
            continue
        except OSError as error:  # of a folder that takes no files, although it seems to
            # Of /proc the system says that the new file is not there, which helps nobody.
            why = "" if isinstance(error, FileNotFoundError) else f" ({error.strerror})"
            raise type(error)(
                f"cannot save to {str(path)!r}: files cannot be written to the folder "
                f"{path.parent}{why}; name another folder"
            ) from None
        if fcntl is None:
            os.close(lock)
            return beside, os.open(os.devnull, os.O_RDONLY)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return beside, lock
        os.close(lock)  # another has taken it for left over before it was locked


def _short_stem(path: Path) -> str:
    """Return what a name begins with, cut where the other name would be too long for the system."""
    longest = _NAME_BYTES - len(os.fsencode(path.suffix))
    return os.fsdecode(os.fsencode(path.stem)[: max(longest, 0)])


def _sync_folder(folder: Path) -> None:
    """Let the new name outlive a loss of power, where the system can."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove what processes that were killed while they wrote `path` have left beside it."""
    path = Path(path)
    part = re.compile(
        rf"\.{re.escape(_short_stem(path))}\.\d+(-\d+)?\.part{re.escape(path.suffix)}"
    )
    with contextlib.suppress(OSError):  # a folder that nobody may list
        for beside in list(path.parent.iterdir()):
            if part.fullmatch(beside.name):
                with contextlib.suppress(OSError):
                    _remove_unless_written(beside)


def _remove_unless_written(part: Path) -> None:
    """Remove a file unless its writer lives, who holds its lock."""
    if fcntl is None:
        part.unlink(missing_ok=True)  # fails for what is open
        return
    opened = os.open(part, os.O_RDWR)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink(missing_ok=True)
    finally:
        os.close(opened)
