"""Ctrl-C ends whatever computes within a second."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import interrupts
import pytest

from gzkcore._util import threads

SECONDS = 1.0


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "poly-sketch" else pytest.mark.weekly)
        for name in interrupts.WORK
    ],
)
def test_an_interrupt_ends_work_within_a_second(name):
    program = Path(interrupts.__file__)
    environment = os.environ | {"OMP_WAIT_POLICY": "passive", "PYTHONPATH": str(program.parent)}
    with subprocess.Popen(
        [sys.executable, "-P", program, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(0.5)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, wrong = process.communicate()
    assert process.returncode == 0, wrong[-3000:]
    assert said != "finished\n", "the work is too short to tell"
    assert float(said) - sent < SECONDS


def test_parts_are_all_rows_and_short():
    assert list(threads.in_parts(0, 1.0)) == []
    assert list(threads.in_parts(5, 0.0)) == [slice(0, 5)]
    parts = list(threads.in_parts(3000, 2**17))
    assert parts == [slice(0, 1024), slice(1024, 2048), slice(2048, 3000)]
    assert len(list(threads.in_parts(7, 1e30))) == 7


def test_a_thread_that_is_to_stop_stops_between_parts():
    done = []

    def work():
        for part in threads.in_parts(9, 2**27):
            with threads.limit_threads(1):  # one within does not hide it
                done.append(part)

    with threads.limit_threads(1, lambda: len(done) > 1), pytest.raises(threads.StoppedError):
        work()
    assert done == [slice(0, 1), slice(1, 2)]
    assert list(threads.in_parts(1, 1.0)) == [slice(0, 1)]
