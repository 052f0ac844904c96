"""The number of threads that compiled code may use."""

import functools
import mmap
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import ThreadpoolController

from gzkcore._compiled import cpu as _cpu

resource: Any
try:
    import resource
except ImportError:  # Windows
    resource = None

_local = threading.local()
_forked = False  # whether this process, or one before it, was forked with this module in it


def _usable_processors() -> int:
    """Count the processors that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity to ask for
        return os.cpu_count() or 1


# A thread is used for so many operations, about .1 ms: starting one costs microseconds, and many
# times more where other programs compute.
_WORTH_A_THREAD = 1 << 18
_STACK = 1 << 23  # a thread takes so many bytes of addresses when it starts
_BUFFERS = 1 << 27  # the buffers of both BLAS take so many


def n_threads(work: int | None = None) -> int:
    """Return how many threads a kernel called now, from this Python thread, may use.

    `work`, the number of operations ahead if known, keeps small jobs on fewer threads. The limit
    is, in this order: one in a forked process, whose threads of OpenMP stayed behind; the limit set
    by `limit_threads` in this thread; the environment variable ``GZKCORE_NUM_THREADS``; what OpenMP
    allows (``OMP_NUM_THREADS``, threadpoolctl), but not more than the processors that this process
    may use. Where the stacks of more threads don't fit (``ulimit -v``), it is one.
    """
    if work is not None and work < 2 * _WORTH_A_THREAD:
        return 1
    most = _limit()
    count = most if work is None else min(most, work // _WORTH_A_THREAD)
    if count > getattr(_local, "started", 1):
        if not _has_room(count * _STACK):
            return 1  # OpenMP would end the process
        _local.started = count
    return count


def _has_room(size: int) -> bool:
    """Say whether an address space with a limit has room for so many bytes."""
    if resource is None or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return True
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return False
    return True


def _limit() -> int:
    if _forked:
        return 1
    limit = getattr(_local, "limit", None)
    if limit is not None:
        return int(limit)
    setting = os.environ.get("GZKCORE_NUM_THREADS")
    if setting:
        # Digits of ASCII alone, and no more than a C int holds.
        if not re.fullmatch("[0-9]{1,9}", setting) or int(setting) < 1:
            raise ValueError(
                f"GZKCORE_NUM_THREADS={setting!r} is not a positive whole number; "
                "set it to the number of threads or unset it"
            )
        return int(setting)
    allowed: int = _cpu.openmp_max_threads()
    return max(1, min(allowed, _usable_processors()))


@contextmanager
def limit_threads(limit: int, stopped: Callable[[], bool] | None = None) -> Iterator[None]:
    """Let kernels called from this Python thread use at most `limit` threads.

    Once stopped() is true, `look` raises `StoppedError`.
    """
    before = dict(vars(_local))
    _local.limit = max(1, int(limit))
    _local.stopped = stopped or before.get("stopped")
    try:
        yield
    finally:
        vars(_local).clear()
        vars(_local).update(before)


# A kernel makes so many operations between two looks for Ctrl-C, at most .2 s of a thread.
_BETWEEN_LOOKS = 1 << 27


class StoppedError(Exception):
    """Ends the work of a thread whose results nobody waits for any more."""


def look() -> None:
    """Raise where this thread is to stop. Meanwhile Python itself looks for Ctrl-C."""
    stopped = getattr(_local, "stopped", None)
    if stopped is not None and stopped():
        raise StoppedError


def in_parts(n_rows: int, work: float) -> Iterator[slice]:
    """Yield slices of rows, of `work` operations each, short enough that Ctrl-C is soon noticed."""
    step = max(1, int(_BETWEEN_LOOKS / max(work, 1.0)))
    step -= step % 256 if step > 256 else 0  # kernels work on tiles of up to so many rows
    for start in range(0, n_rows, step):
        look()
        yield slice(start, min(start + step, n_rows))


_blas_lock = threading.Lock()


class _Block:
    """A block of `limit_blas` under way: its limit and Python thread, and the limits before it.

    `before` is None where the block has set no limit, since the same one was set already.
    """

    def __init__(self, limit: tuple[int, int], before: Any) -> None:
        self.limit, self.before = limit, before


_blas_blocks: list[_Block] = []


@contextmanager
def limit_blas(limit: int) -> Iterator[None]:
    """Hold BLAS to `limit` threads, in all of this process, within a `with` block.

    Blocks of several Python threads may overlap, and end in any order: the limit is that of the
    newest under way, and the last to go brings back what was before the first. From version 3.8 on
    threadpoolctl lets one Python thread alone set limits, and ignores others without a word; so
    each takes control first. Setting a limit takes about .1 ms, so a block within one of the same
    limit sets none.
    """
    of_thread, before = (limit, threading.get_ident()), None
    with _blas_lock:
        if not (_blas_blocks[-1].limit == of_thread if _blas_blocks else _is_limit(limit)):
            _take_control()
            before = _controller().limit(limits=limit, user_api="blas")
        block = _Block(of_thread, before)
        _blas_blocks.append(block)
    try:
        yield
    finally:
        with _blas_lock:
            _end(block)


def _is_limit(limit: int) -> bool:
    """Say whether BLAS has this limit already: to ask takes a tenth of the time to set it."""
    return all(
        library.num_threads == limit
        for library in _controller().lib_controllers
        if library.user_api == "blas"
    )


def _end(block: _Block) -> None:
    """Take a block out of those under way; restore the limits before it if it is the newest."""
    place = _blas_blocks.index(block)
    del _blas_blocks[place]
    if block.before is None:
        return
    if place < len(_blas_blocks):
        _blas_blocks[place].before = block.before  # the next block restores them in its place
        return
    _take_control()
    block.before.restore_original_limits()
    _take_control()


def _take_control() -> None:
    """Let whichever Python thread is next set the limits of BLAS."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def on_threads(
    run: Callable[[int, Callable[[], bool]], None], n_threads: int, each: int = 1
) -> None:
    """Call run(thread, stopped) on every thread, with `each` threads for kernels and BLAS within.

    Once a thread has failed, or the caller is interrupted, stopped() tells the others to return.
    """
    if n_threads == 1:
        with limit_blas(each), limit_threads(each):
            run(0, lambda: False)
        return
    stop = threading.Event()

    def guarded(thread: int) -> None:
        try:
            with limit_threads(each, stop.is_set), suppress(StoppedError):
                run(thread, stop.is_set)
        except BaseException:
            stop.set()
            raise

    with limit_blas(each), ThreadPoolExecutor(n_threads) as pool:
        others = [pool.submit(guarded, thread) for thread in range(1, n_threads)]
        try:
            guarded(0)
            for other in others:
                other.result()
        except BaseException:  # Ctrl-C comes here: leave no thread behind
            stop.set()
            raise


def _take_buffers() -> None:
    """Let each BLAS take its buffers now: later it would end the process for want of memory."""
    if not _has_room(_BUFFERS):
        raise MemoryError(
            f"there is no memory for the buffers of BLAS, {_BUFFERS:,} bytes; allow this process "
            "more (ulimit -v)"
        )
    A = np.ones((128, 128))
    blas.dgemm(1.0, A @ A, A)


_take_buffers()


def _after_fork() -> None:
    """Let a forked process wait for no thread: it has only the one that forked.

    OpenMP would wait for its pool for ever, so kernels run on one thread from here on. A lock that
    another thread held would never be free.
    """
    global _forked, _blas_lock  # noqa: PLW0603  a fork copies both
    _forked = True
    _blas_lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
