"""New arrays: memory is used again, and never by two arrays."""

import gc
import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from gzkcore import GegenbauerFeatures, RandomFourierFeatures, TensorSketchFeatures
from gzkcore._util import new_arrays
from gzkcore._util.memory import forget_peak
from gzkcore._util.new_arrays import empty_aligned, new_array

LARGE = 1 << 16
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory waits on Linux only")


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    monkeypatch.setattr(new_arrays, "_LARGE", LARGE)
    monkeypatch.setattr(new_arrays, "_MOST", 10 * LARGE)
    new_arrays.forget_waiting()
    yield
    new_arrays.forget_waiting()


def filled(value, rows=LARGE // 8):
    """Return a new array of 64 KB or so, all of it written."""
    Z = new_array((rows, 2), np.float32)
    Z[:] = value
    return Z


def place(Z):
    return Z.__array_interface__["data"][0]


def n_waiting():
    return len(new_arrays._waiting)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 5), (LARGE, 1), (3, LARGE, 2)])
@pytest.mark.parametrize("dtype", [np.float32, "f8", np.uint8])
@pytest.mark.parametrize("make", [empty_aligned, new_array])
def test_an_ordinary_array_on_a_cache_line(make, shape, dtype):
    Z = make(shape, dtype)
    assert type(Z) is np.ndarray
    assert (Z.shape, Z.dtype) == (shape, np.dtype(dtype))
    assert place(Z) % 64 == 0 or Z.size == 0 or (make is new_array and Z.nbytes < 1 << 14)
    assert Z.flags.c_contiguous
    assert Z.flags.writeable
    assert Z.flags.aligned


@only_linux
def test_what_was_freed_is_used_again():
    first = filled(1)
    where = place(first)
    del first
    assert n_waiting() == 1
    assert place(filled(2)) == where
    assert n_waiting() == 1


def test_live_arrays_share_no_memory():
    alive = {}
    rng = np.random.default_rng(0)
    for step in range(300):
        alive[step] = filled(step, rows=int(rng.integers(LARGE // 8, LARGE // 4)))
        while len(alive) > 6:
            del alive[int(rng.choice([*alive]))]
        for value, Z in alive.items():
            np.testing.assert_array_equal(Z, value)
    arrays = list(alive.values())
    assert not any(np.shares_memory(a, b) for a in arrays for b in arrays if a is not b)


@pytest.mark.parametrize(
    "view",
    [
        lambda Z: Z[5:, :1],
        lambda Z: Z[::-3].T,
        lambda Z: Z.view(np.uint8),
        lambda Z: np.lib.stride_tricks.as_strided(Z, (3, 1)),
        lambda Z: np.broadcast_to(Z, (2, *Z.shape)),
        memoryview,
        lambda Z: np.frombuffer(memoryview(Z).cast("B"), dtype=np.float32),
        lambda Z: Z.base,
        iter,
        lambda Z: Z.flat,
        lambda Z: Z.view(np.recarray),
    ],
)
def test_views_keep_their_memory(view):
    Z = filled(3)
    where, part = place(Z), view(Z)
    del Z
    gc.collect()
    assert n_waiting() == 0
    other = filled(4)
    assert place(other) != where
    if isinstance(part, np.ndarray):
        assert not np.shares_memory(part, other)
    del part
    gc.collect()
    assert n_waiting() == (sys.platform == "linux")


@only_linux
def test_not_more_waits_than_said():
    arrays = [filled(value, rows=LARGE // 4) for value in range(9)]
    while arrays:
        arrays.pop()
        assert sum(map(len, new_arrays._waiting)) <= new_arrays._MOST
    assert n_waiting() == 5
    del arrays
    more = filled(0, rows=2 * LARGE)  # alone more than may wait
    del more
    assert n_waiting() == 5


@only_linux
def test_a_small_array_takes_no_large_memory():
    large = filled(0, rows=LARGE // 4)
    where = place(large)
    del large
    assert place(filled(0, rows=LARGE // 8)) != where
    assert place(filled(0, rows=LARGE // 4 + 1)) != where
    assert place(filled(0, rows=LARGE // 4 - 100)) == where


@only_linux
def test_what_waits_can_be_forgotten():
    filled(0)
    assert n_waiting() == 1
    forget_peak()
    assert n_waiting() == 0


def test_other_systems_have_arrays_of_numpy(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    filled(0)
    assert n_waiting() == 0


@only_linux
@pytest.mark.parametrize("name", ["mmap", "madvise"])
def test_a_system_that_refuses(monkeypatch, name):
    """No memory of this kind, no huge pages, no freeing by pages: arrays come all the same."""

    class Refused(mmap.mmap):
        def __new__(cls, *args, **kwargs):
            if name == "mmap":
                raise OSError
            return super().__new__(cls, *args, **kwargs)

        def madvise(self, *_):
            raise OSError

    monkeypatch.setattr(mmap, "mmap", Refused)
    Z = filled(1)
    assert (Z == 1).all()
    del Z
    assert n_waiting() == 0


def test_threads_take_memory_of_their_own():
    wrong = []

    def work(name):
        for step in range(200):
            Z = filled(name)
            if step % 3:
                Z = Z[1:]
            if Z.min() != name or Z.max() != name:
                wrong.append((name, step))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


FORKED = """
import os, sys
import numpy as np
from gzkcore._util import new_arrays
new_arrays._LARGE = 1 << 16
def filled(value):
    Z = new_arrays.new_array((1 << 13, 2), np.float32)
    Z[:] = value
    return Z
kept, other = filled(1), filled(2)
del other
assert len(new_arrays._waiting) == 1
child = os.fork()
if child == 0:
    ok = not new_arrays._waiting and (kept == 1).all()
    more = [filled(3), filled(4)]
    kept[:] = 5
    ok = ok and (more[0] == 3).all() and (more[1] == 4).all() and (kept == 5).all()
    del more, kept
    again = [filled(value) for value in range(6)]
    ok = ok and all((Z == value).all() for value, Z in enumerate(again))
    os._exit(0 if ok else 7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (kept == 1).all()
del kept
assert (filled(6) == 6).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_memory_of_its_own():
    done = subprocess.run(
        [sys.executable, "-P", "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "features",
    [
        GegenbauerFeatures(n_components=70, basis="random", random_state=0),
        GegenbauerFeatures(n_components=70, basis="harmonic", random_state=0),
        RandomFourierFeatures(n_components=71, random_state=0),
        TensorSketchFeatures(n_components=70, random_state=0),
    ],
)
def test_features_in_used_memory(features, dtype):
    X = np.random.default_rng(0).standard_normal((700, 3)).astype(dtype)
    Z = features.fit(X).transform(X)
    expected = Z.copy()
    Z[:] = np.nan
    del Z
    Z = features.transform(X)
    np.testing.assert_array_equal(Z, expected)
    other = features.transform(X[::-1])
    other[:] = np.nan
    np.testing.assert_array_equal(Z, expected)
