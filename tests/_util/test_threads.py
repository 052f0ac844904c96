"""One place decides the number of threads: limits, environment, OpenMP, and small jobs on one."""

import contextlib
import inspect
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gzkcore import (
    Gaussian,
    GegenbauerFeatures,
    KernelRidge,
    RandomFourierFeatures,
    show_config,
)
from gzkcore._util import threads as _threads
from gzkcore._util.threads import limit_blas, limit_threads, n_threads


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("GZKCORE_NUM_THREADS", raising=False)


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "7")
    assert n_threads() == 7
    assert show_config()["n_threads"] == 7


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", " ", "²", "٣", "9" * 10, "9" * 5000])
def test_a_wrong_environment_is_refused(monkeypatch, value):
    monkeypatch.setenv("GZKCORE_NUM_THREADS", value)
    with pytest.raises(ValueError, match=rf"GZKCORE_NUM_THREADS='{value}' is not a positive whole"):
        n_threads()


def test_a_limit_comes_first_and_ends(monkeypatch):
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "7")
    with limit_threads(3):
        assert n_threads() == 3
        with limit_threads(5):
            assert n_threads() == 5
        assert n_threads() == 3
    assert n_threads() == 7
    with pytest.raises(KeyError), limit_threads(2):
        raise KeyError
    assert n_threads() == 7


def test_a_limit_is_that_of_its_python_thread(monkeypatch):
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "7")
    seen = []
    with limit_threads(2):
        other = threading.Thread(target=lambda: seen.append(n_threads()))
        other.start()
        other.join()
    assert seen == [7]


def test_openmp_and_processors_limit_it(monkeypatch):
    monkeypatch.setattr(_threads._cpu, "openmp_max_threads", lambda: 64)
    monkeypatch.setattr(_threads, "_usable_processors", lambda: 6)
    assert n_threads() == 6
    monkeypatch.setattr(_threads._cpu, "openmp_max_threads", lambda: 4)
    assert n_threads() == 4


@pytest.mark.parametrize("kind", [RandomFourierFeatures, GegenbauerFeatures])
def test_a_row_is_transformed_without_asking_the_system(kind, monkeypatch):
    X = np.random.default_rng(0).standard_normal((3000, 9))
    features = kind(Gaussian(0.1), 1024, random_state=0).fit(X)
    Z = features.transform(X)
    asked = []
    monkeypatch.setattr(_threads, "_usable_processors", lambda: asked.append(1) or 1)
    np.testing.assert_array_equal(features.transform(X[:1]), Z[:1])
    assert not asked
    np.testing.assert_array_equal(features.transform(X), Z)
    assert asked


@pytest.mark.skipif(show_config()["openmp"] == 0, reason="this build has no OpenMP")
def test_threadpoolctl_limits_it():
    with threadpool_limits(1, user_api="openmp"):
        assert n_threads() == 1


def test_small_jobs_stay_on_few_threads():
    with limit_threads(8):
        assert n_threads(0) == n_threads(1000) == 1
        assert n_threads(3 << 16) == 3
        assert n_threads(10**9) == 8


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux has affinities")
def test_affinity_counts(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3})
    assert inspect.unwrap(_threads._usable_processors)() == 2


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@needs_fork
@pytest.mark.parametrize(
    "ways",
    [
        pytest.param("busy", marks=pytest.mark.slow),
        pytest.param("raw pool fork multiprocessing", marks=pytest.mark.slow),
        pytest.param("loky forkserver spawn", marks=pytest.mark.weekly),
    ],
)
def test_other_processes_compute_the_same_bits(ways):
    # In a fork OpenMP would wait for ever for threads that only the parent has. BLAS has one thread:
    # OpenBLAS itself may hang where one thread forks while others multiply on several.
    program = Path(__file__).resolve().parents[1] / "forked.py"
    environment = os.environ | {
        "GZKCORE_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
    }
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", program, *ways.split()],
        env=environment, timeout=240, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_one_thread_and_free_locks():
    with limit_threads(5), _threads._blas_lock:  # as if another thread were in limit_blas
        child = os.fork()
        if child == 0:
            with limit_threads(3):
                alone = n_threads() == n_threads(10**9) == 1
            os._exit(0 if alone and not _threads._blas_lock.locked() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert n_threads() == 5


# ---- BLAS


def blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def limited():
    with limit_blas(1):
        return blas_threads()


def in_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_blas_is_limited_from_any_python_thread():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for _ in range(2):
            assert set(limited()) == {1}
            assert set(in_thread(limited)) == {1}
        assert blas_threads() == before


def test_blas_stays_limited_in_blocks_within_others():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with limit_blas(1):
            with limit_blas(1):
                assert set(in_thread(limited)) == {1}
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
            with limit_blas(2), limit_blas(1):
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_the_newest_block_keeps_its_limit_when_older_ones_end(again):
    entered, left, done = (threading.Event() for _ in range(3))
    seen = []

    def newest():
        with contextlib.ExitStack() as blocks:
            for _ in range(1 + again):
                blocks.enter_context(limit_blas(2))
            seen.append(blas_threads())
            entered.set()
            left.wait(60)
            seen.append(blas_threads())
            with limit_blas(1):
                pass
            seen.append(blas_threads())
        done.set()

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        other = threading.Thread(target=newest)
        with limit_blas(1):
            other.start()
            entered.wait(60)
        left.set()
        assert done.wait(60)
        other.join()
        assert seen == [before] * 3
        assert blas_threads() == before
    with threadpool_limits(2, user_api="blas"), limit_blas(1):
        other = threading.Thread(target=newest)
        entered.clear(), left.clear(), done.clear()
        other.start()
        entered.wait(60)
        left.set()
        other.join()
        assert set(blas_threads()) == {1}


@pytest.mark.parametrize("centers", [None, 200])
def test_fits_in_other_threads_have_the_same_bits(centers):
    X = np.random.default_rng(0).standard_normal((900, 3))
    y = np.sin(X.sum(axis=1))

    def coef():
        model = KernelRidge(Gaussian(0.5), 1e-3, centers=centers, random_state=0)
        return model.fit(X, y).dual_coef_

    with threadpool_limits(2, user_api="blas"):
        np.testing.assert_array_equal(in_thread(coef), coef())


def test_where_stacks_have_no_room_kernels_have_one_thread(monkeypatch):
    """OpenMP ends the process where it can't start a thread."""
    monkeypatch.setattr(_threads, "_has_room", lambda size: size < 5 * _threads._STACK)
    monkeypatch.setattr(_threads._local, "started", 1, raising=False)
    with limit_threads(4):
        assert n_threads() == 4
    with limit_threads(5):
        assert n_threads() == 1


def test_buffers_of_blas_without_room_are_a_memory_error(monkeypatch):
    monkeypatch.setattr(_threads, "_has_room", lambda _: False)
    with pytest.raises(MemoryError, match=r"no memory for the buffers of BLAS.*ulimit -v"):
        _threads._take_buffers()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs limits that Linux keeps")
def test_room_is_what_the_limit_leaves():
    program = """
import resource
from pathlib import Path
from gzkcore._util import threads
assert threads._has_room(1 << 40)
most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (1 << 24)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
assert threads._has_room(1 << 20)
assert not threads._has_room(1 << 25)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
