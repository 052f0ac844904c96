"""New arrays for results: aligned to cache lines unless small, and if large, in reused memory.

The operating system clears each page of a large new array before it is first written, which takes
longer than most transforms. NumPy returns the memory of an array of more than 32 MB as soon as
nothing refers to it, so that the next array costs this time again. Here such memory is kept for the
next array of about that size: up to 512 MB, or a sixteenth of the machine's memory if that is more.
Meanwhile it is marked as free (MADV_FREE): the system takes it if memory is short, and pages that
it took come back cleared. A fork returns the kept memory.

Linux only; elsewhere arrays are `numpy.empty`'s.
"""

import contextlib
import math
import mmap
import os
import sys
import weakref

import numpy as np
from numpy.typing import DTypeLike

from .typing import Floats

# Arrays of so many bytes or more are in memory that is used again; the C library keeps what smaller
# ones have freed.
_LARGE = 1 << 25
_SMALL = 1 << 14  # to align arrays of fewer bytes takes longer than it saves
_MOST = 1 << 29  # at most so many bytes wait
if sys.platform == "linux":
    _MOST = max(_MOST, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 16)
_SPARE = 1.25  # an array may be in up to so many times the memory that it needs
# Memory that no array refers to, the longest waiting first. Arrays end in any thread, and within
# any line of this one; so what is done to it are single steps of a list, which need no lock.
_waiting: list[mmap.mmap] = []


def empty_aligned(shape: tuple[int, ...], dtype: DTypeLike) -> Floats:
    """Return an uninitialised C-ordered array on a cache line, where kernels stream best."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        buffer = np.empty(size + 64, dtype=np.uint8)
    except MemoryError:  # of an address space with a limit, which what waits counts in
        forget_waiting()
        buffer = np.empty(size + 64, dtype=np.uint8)
    first = -buffer.ctypes.data % 64
    return np.ndarray(shape, dtype, buffer, first)


def new_array(shape: tuple[int, ...], dtype: DTypeLike) -> Floats:
    """Return an array as `empty_aligned` does; not aligned if small, in reused memory if large."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if size < _SMALL:
        return np.empty(shape, dtype)
    memory = _take(size) if sys.platform == "linux" and size >= _LARGE else None
    if memory is None:
        return empty_aligned(shape, dtype)
    buffer = np.frombuffer(memory, dtype=np.uint8)  # the base of all views
    weakref.finalize(buffer, _leave, memory).atexit = False
    return buffer[:size].view(dtype).reshape(shape)


def forget_waiting() -> None:
    """Give the memory that waits back to the system."""
    _waiting.clear()


def _take(size: int) -> mmap.mmap | None:
    """Return memory that is large enough and that nobody else has; None if there is none."""
    for memory in _waiting[:]:
        if size <= len(memory) <= _SPARE * size:
            with contextlib.suppress(ValueError):  # another thread took it
                _waiting.remove(memory)
                return memory
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError):
        forget_waiting()
        return None
    with contextlib.suppress(OSError):  # a system without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _leave(memory: mmap.mmap) -> None:
    """Let memory wait for the next array, and give back what waits longest if that is too much."""
    if len(memory) > _MOST:
        return
    try:
        memory.madvise(mmap.MADV_FREE)
    except OSError:  # older than Linux 4.5
        return
    _waiting.append(memory)
    while sum(map(len, _waiting[:])) > _MOST:
        with contextlib.suppress(IndexError):
            _waiting.pop(0)


if hasattr(os, "register_at_fork"):
    # Pages that two processes share are copied when they are written: slower than new ones.
    os.register_at_fork(before=forget_waiting)
