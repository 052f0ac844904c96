"""Helpers of the benchmarks: interleaved timing, the limits of the machine, data.

Absolute times drift from run to run. So functions are compared in one run, in turn: A B C, C B A, A
B C, ... with idle gaps, since threads of BLAS and OpenMP spin for a while after a call and delay
the next one. Outputs are preallocated and warm. A time is the median over the rounds; a ratio is
the median of the ratios of the rounds.
"""

import ctypes
import functools
import importlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

import numpy as np

import gzkcore
from gzkcore._util.threads import n_threads

try:  # asv takes NotImplementedError from `setup` only, this from a method too
    from asv_runner.benchmarks.mark import SkipNotImplemented
except ImportError:
    SkipNotImplemented = NotImplementedError

LIMITS = Path(__file__).resolve().parent.parent / "limits.c"
THREADS = tuple(sorted({1, n_threads()}))
ISAS = tuple(gzkcore.show_config()["supported_isa"])
DTYPES = ("float32", "float64")


# ---- timing


def interleave(calls, rounds=5, gap=0.1, visit=0.1, report=None, clock=time.perf_counter):
    """Time every call in turn, `rounds` times.

    Parameters
    ----------
    calls : dict of str to callable without arguments
    rounds : int
        Every other round runs in the opposite order, so that a drift hits all alike.
    gap : float
        Idle seconds before each visit.
    visit : float
        Seconds for which a call is repeated in one visit; its median is the round's value. Before
        that it runs once untimed, to wake threads and warm caches, unless it takes seconds.
    report : callable, optional
        Told in words how far we are.
    clock : callable
        `time.thread_time` counts what this thread has worked, whoever else wants the processor: for
        calls on one thread.

    Returns
    -------
    dict of str to ndarray of shape (rounds,)
        Seconds for one call.
    """
    seconds = {name: [] for name in calls}
    for number in range(rounds):
        names = list(calls) if number % 2 == 0 else list(reversed(calls))
        for name in names:
            if report:
                report(f"round {number + 1}/{rounds}: {name}")
            time.sleep(gap)
            if not seconds[name] or seconds[name][0] < 1.0:
                calls[name]()
            seconds[name].append(_visit(calls[name], visit, clock))
    return {name: np.array(values) for name, values in seconds.items()}


def _visit(call, seconds, clock):
    """Call again and again for so many seconds, at least once; return the median of one call."""
    taken = []
    end = time.perf_counter() + seconds
    while True:
        start = clock()
        call()
        taken.append(clock() - start)
        if time.perf_counter() >= end:
            return float(np.median(taken))


def ratio(times, slow, fast):
    """Return how many times faster `fast` is: the median over rounds, and the quartiles."""
    low, middle, high = np.quantile(times[slow] / times[fast], [0.25, 0.5, 0.75])
    return float(middle), (float(low), float(high))


def percent_of(limit, call, amount, rounds=3):
    """Return how much of a limit a call reaches, in percent.

    Parameters
    ----------
    limit : callable
        Does its work once and returns how much that was (see `Limits`).
    call : callable
        Does `amount` of the same work.
    """
    times = interleave({"limit": limit, "call": call}, rounds)
    return 100 * amount / limit() * ratio(times, "limit", "call")[0]


# ---- the limits of the machine


class NoLimitsError(SkipNotImplemented):
    """There is no C compiler here to build the probe; asv skips the benchmarks that need it."""


class Limits:
    """Bandwidth and arithmetic that this machine reaches, by the probe in limits.c.

    Each method does its work once and returns how much that was, in bytes or operations; timing is
    `interleave`'s. Built for the instruction set whose kernels are judged.
    """

    def __init__(self, isa):
        self._library = _build_limits(isa)
        self._sink = ctypes.c_double()
        self.vector_bytes = self._library.vector_bytes()
        self.nontemporal = bool(self._library.has_nontemporal())
        self.openmp = bool(self._library.has_openmp())

    def write(self, out, threads):
        """Fill a contiguous array past the cache (by plain stores where there are no others)."""
        return self._library.write_nontemporal(*_span(out), self._check(threads))

    def write_plain(self, out, threads):
        """Fill a contiguous array by plain stores, which read each line before they write it."""
        return self._library.write_plain(*_span(out), self._check(threads))

    def read(self, array, threads):
        """Read a contiguous array, in four streams a thread."""
        return self._library.read_streams(
            *_span(array), self._check(threads), ctypes.byref(self._sink)
        )

    def multiply_add(self, dtype, threads, rounds=500_000):
        """Fused multiply-adds in registers, counted as two operations each."""
        name = {"f": "fma_f32", "d": "fma_f64"}[np.dtype(dtype).char]
        return getattr(self._library, name)(rounds, self._check(threads), ctypes.byref(self._sink))

    def _check(self, threads):
        if threads > 1 and not self.openmp:
            raise NoLimitsError("the C compiler here has no OpenMP: limits for one thread only")
        return threads


def _span(array):
    """Address and bytes of a contiguous array, from the first boundary of 64 bytes on."""
    if not array.flags.c_contiguous:
        raise ValueError("limits are measured on contiguous arrays")
    skip = -array.ctypes.data % 64
    return ctypes.c_void_p(array.ctypes.data + skip), ctypes.c_size_t(array.nbytes - skip)


@functools.cache
def _build_limits(isa):
    """Compile limits.c for an instruction set and load it."""
    wanted = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    compilers = [
        command for command in (wanted, ["cc"], ["gcc"], ["clang"]) if shutil.which(command[0])
    ]
    if not compilers:
        raise NoLimitsError("no C compiler found, so no limits; install one or set CC")
    march = "native" if isa == "plain" else f"x86-64-{isa}"
    flags = [f"-march={march}", "-O3", "-ffp-contract=fast", "-shared", "-fPIC"]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "limits.so")
        for openmp in (["-fopenmp"], []):
            command = [*compilers[0], *flags, *openmp, str(LIMITS), "-o", str(library)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        else:
            raise NoLimitsError(f"the probe did not compile:\n{done.stderr}")
        loaded = ctypes.CDLL(str(library))
    buffer = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    sink = ctypes.POINTER(ctypes.c_double)
    for name in ("write_plain", "write_nontemporal"):
        function = getattr(loaded, name)
        function.argtypes, function.restype = buffer, ctypes.c_size_t
    loaded.read_streams.argtypes, loaded.read_streams.restype = [*buffer, sink], ctypes.c_size_t
    for name in ("fma_f32", "fma_f64"):
        function = getattr(loaded, name)
        function.argtypes = [ctypes.c_long, ctypes.c_int, sink]
        function.restype = ctypes.c_double
    return loaded


# ---- kernels and data


def kernel_module(name, isa):
    """Return a compiled kernel module, such as "_gegenbauer", of one instruction set."""
    full = f"gzkcore._compiled.{name}" if isa == "plain" else f"gzkcore._compiled.{name}_{isa}"
    if importlib.util.find_spec(full) is None:
        raise NotImplementedError(f"{full} was not built")
    return importlib.import_module(full)


def empty(shape, dtype, offset=0):
    """Return a warm, uninitialised array `offset` bytes past a boundary of 64 bytes.

    Large arrays from `np.empty` start 16 bytes past a page, so offset=16 is what users have.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + 128, dtype=np.uint8)
    memory[::4096] = 1  # zeros are mapped when they are first written
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size].view(dtype).reshape(shape)


def data_generator(seed):
    """Return a stream for data that shares no draw with features of the same `random_state`.

    Points and directions made of the same normals would coincide, and features are at their worst
    where a direction hits a point.
    """
    return np.random.default_rng([seed, 20_220_207])


def gaussian(n, dim, dtype="float64", seed=0):
    """Return standard normal points."""
    return data_generator(seed).standard_normal((n, dim)).astype(dtype)


def sphere(n, dim, dtype="float64", seed=0):
    """Return points uniform on the unit sphere."""
    X = gaussian(n, dim, seed=seed)
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


def ball(n, dim, dtype="float64", seed=0):
    """Return points uniform in the unit ball."""
    rng = data_generator(seed)
    X = rng.standard_normal((n, dim))
    X *= rng.random((n, 1)) ** (1 / dim) / np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(dtype)


def frobenius_error(K, Z):
    """Relative error of a feature matrix, |Z Z^T - K| / |K| in Frobenius norm."""
    Z = Z.astype(np.float64)
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def largest_error(got, expected):
    """Largest difference, relative to the largest expected value."""
    expected = np.asarray(expected, dtype=np.float64)
    return float(
        np.abs(np.asarray(got, dtype=np.float64) - expected).max() / np.abs(expected).max()
    )


def must_agree(name, got, expected, tolerance):
    """Raise unless a competitor computes the same numbers as we do."""
    error = largest_error(got, expected)
    if not error <= tolerance:
        raise AssertionError(f"{name} computes something else: off by {error:.2g} > {tolerance:g}")
    return error
