"""The text of CSV files: read from files, compressed or not, and cut into records."""

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # by how such files begin
_QUOTED = rb'(?<![^,;\t\r\n])"(?:[^"]++|"")*+"'  # where a value begins, whatever the delimiter
_HEADER = re.compile(rb"""(?:[^"\r\n]++|%b|")*+(?P<end>\r\n?|\n)""" % _QUOTED)
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the begin of files


def header_in(head: bytes) -> tuple[bytes, bytes] | None:
    """Return the first record of a text and its line end; None if there is no such end yet.

    A quoted name may hold line ends.
    """
    mark = len(_MARK) if head.startswith(_MARK) else 0
    found = _HEADER.match(head[mark:])
    # The last byte may be half of a line end.
    if found is None or (mark + found.end("end") == len(head) and found["end"] == b"\r"):
        return None
    return head[: mark + found.end()], found["end"]


def delimiter_of(header: str) -> str:
    """Return what separates names, of those that are not quoted."""
    bare = re.sub(_QUOTED.decode(), "", header)
    return max(",;\t", key=bare.count)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[tuple[Callable[[int], bytes], Callable[[], float]]]:
    """Open a file, compressed or not; give what reads bytes and what tells the share read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
        codec = next((name for magic, name in CODECS.items() if head.startswith(magic)), "")
        file.seek(0)
        if not codec:
            yield file.read, lambda: file.tell() / size
            return
        import pyarrow as pa

        try:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream.read, lambda: min(file.tell() / size, 1.0)
        except (OSError, pa.ArrowException) as error:
            if getattr(error, "filename", None):
                raise
            raise ValueError(f"{path} is not all of a {codec} file: {error}") from None


def end_of_records(block: bytes, delimiter: str, line_end: bytes) -> int:
    """Return where the last record ends that is whole in a block; 0 if none is.

    A quotation mark opens a value only where that begins: inches within a value open nothing.
    """
    if b'"' not in block:
        return block.rfind(line_end) + 1
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    quoted = rb'(?<![^%b])"(?:[^"]++|"")*+"' % ends
    record = rb'(?:[^"\r\n]++|%b|(?<=[^%b])")*+(?:\r\n|\n|\r(?!\Z))' % (quoted, ends)
    whole = re.match(rb"(?:%b)*+" % record, block)
    return whole.end() if whole else 0


def records(block: bytes, delimiter: str) -> list[bytes]:
    """Split bytes into records with their line ends; a quoted value may hold line ends."""
    if b'"' not in block:
        return block.splitlines(keepends=True)
    quoted = rb'(?<![^%b\r\n])"(?:[^"]++|"")*+"' % re.escape(delimiter.encode())
    record = rb'(?:[^"\r\n]++|%b|")*+(?:\r\n|[\r\n]|\Z)' % quoted
    return re.findall(record, block)[: None if block[-1:] not in b"\r\n" else -1]
