"""Processes that measure: their memory is their own, they end with their parent, and may fail."""

import contextlib
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from comparisons import QUICK, compared
from points import gaussian

from gzkcore.evaluate import worker as _worker
from gzkcore.evaluate.worker import EndedError, LateError, RefusedError, Worker


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_peak_memory_is_that_of_the_features():
    """1,024 columns of 8,000 rows are 66 MB; scikit-learn's RBFSampler holds little else."""
    X = gaussian(8512, 3)
    found = compared(X, methods=["sklearn-RBFSampler"], n_components=1024, n_seeds=1)
    assert 60 < found.rows[0]["megabytes"] < 150


WORK = """
import os, time
def work(task, then):
    yield task
    if then == "refuse":
        raise ValueError("no such\\nluck")
    if then == "fail":
        raise RuntimeError("odd")
    if then == "fill":
        raise MemoryError("Unable to allocate 9 TiB")
    if then == "die":
        os._exit(3)
    if then == "wait":
        time.sleep(60)
    yield os.getpid()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_a_job_gives_its_results_and_says_how_it_ended(tmp_path, monkeypatch):
    (tmp_path / "some_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    work, task = importlib.import_module("some_work").work, {"a": [1, None]}
    with contextlib.closing(Worker(work, task)) as worker:
        for then, error, said in (
            ("refuse", RefusedError, "^no such luck$"),
            ("fail", RefusedError, "^RuntimeError: odd$"),
            ("fill", EndedError, "^there was not enough memory; Unable to allocate 9 TiB$"),
            ("die", EndedError, "with code 3"),
            ("wait", LateError, "more than 2 s"),
        ):
            results = worker.run(then, limit=2)
            assert next(results) == task
            with pytest.raises(error, match=said):
                next(results)
        given, process = worker.run("go on")  # in another process, since the last was ended
        assert given == task
        assert process != os.getpid()


ORPHAN = """
import os, sys, time, numpy as np, gzkcore
from gzkcore.evaluate import worker as _worker
popen = _worker.subprocess.Popen
def noted(*args, **options):
    process = popen(*args, **options)
    print(process.pid, flush=True)
    return process
_worker.subprocess.Popen = noted
_worker._START = '''
import os, time
from gzkcore.evaluate import measure
from gzkcore.evaluate.worker import serve
def run(*_):
    print(os.getpid(), file=open("child", "w"), flush=True)
    time.sleep(60)
measure.measure = run
serve()
'''
gzkcore.compare(np.random.default_rng(0).standard_normal((50, 3)), methods="fourier-iid")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it takes a second")
@pytest.mark.usefixtures("one_thread")
def test_nothing_is_measured_for_a_process_that_was_killed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, cwd=tmp_path, text=True
    )
    pids = [int(process.stdout.readline())]
    deadline = time.monotonic() + 30
    child = tmp_path / "child"
    while not (child.exists() and child.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pids.append(int(child.read_text()))
    process.kill()
    process.communicate(timeout=30)
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_methods_that_fail_are_listed(monkeypatch):
    """Too slow, killed, or broken: the others are measured all the same."""
    X = gaussian(80, 3)
    slow = compared(X, methods=["gegenbauer", "fourier-iid"], n_components=16, max_seconds=1e-4)
    assert slow.rows == []
    assert slow.best is None
    assert not slow.predicts
    assert "a seed took more than 0.0001 s" in slow.refused[0]["reason"]
    assert str(slow)
    monkeypatch.setattr(_worker, "_START", KILLED)
    found = compared(X, methods=["gegenbauer", "fourier-iid"])
    assert [row["method"] for row in found.rows] == ["fourier-iid"]
    assert found.refused[0]["reason"] == "its process was ended by signal 9 (out of memory?)"
    monkeypatch.setattr(_worker, "_START", "raise SystemExit('no such luck')")
    with pytest.raises(OSError, match="could not start: no such luck"):
        compared(X)
    told = "import os; raise SystemExit(os.environ['GZKCORE_NUM_THREADS'])"
    for asked, started in (("3", told), ("2", told.replace("GZKCORE", "OMP"))):
        monkeypatch.setenv("GZKCORE_NUM_THREADS", asked)
        monkeypatch.setattr(_worker, "_START", started)
        with pytest.raises(OSError, match=f"could not start: {asked}"):
            compared(X)


KILLED = """
import os
from gzkcore.evaluate import measure
from gzkcore.evaluate.worker import serve
true = measure.measure
def killed(task, method, *rest):
    if method == "gegenbauer":
        os.kill(os.getpid(), 9)
    return true(task, method, *rest)
measure.measure = killed
serve()
"""


@pytest.mark.weekly
@pytest.mark.usefixtures("one_thread")
def test_where_forks_are_not_safe(monkeypatch):
    """Each method has a new worker: the same numbers."""
    X = gaussian(80, 3)
    expected = compared(X, methods=QUICK[1:])
    spawned = (
        "from gzkcore.evaluate import worker as _worker; _worker._FORKS = False; _worker.serve()"
    )
    monkeypatch.setattr(_worker, "_START", spawned)
    found = compared(X, methods=QUICK[1:], max_seconds=1e12)
    assert [row["error"] for row in found.rows] == [row["error"] for row in expected.rows]
