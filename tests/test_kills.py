"""Whoever is killed, at whatever moment, goes on to the same bits, and leaves nothing half."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import kills
import pytest

from gzkcore._util import model_io

PROGRAM = Path(kills.__file__)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks and SIGKILL")


def trial(job, count):
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(
        [sys.executable, "-P", PROGRAM, job, str(count), "0"],
        env=os.environ | threads | {"PYTHONPATH": str(PROGRAM.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("job", ["ridge", pytest.param("save", marks=pytest.mark.weekly)])
def test_some_kills(job):
    assert trial(job, 5)["kills"] >= 5


@pytest.mark.weekly
@pytest.mark.parametrize("job", kills.JOBS)
def test_a_hundred_kills(job):
    found = trial(job, 100)
    assert found["kills"] >= 100
    assert found["checkpoints"] > 0 or job not in kills.FITS


def test_every_learner_that_keeps_checkpoints_is_killed():
    classes = [model_io._class_of(name) for name in model_io.CLASSES]
    keep = {
        cls.__name__
        for cls in classes
        if hasattr(cls, "fit") and "checkpoint" in inspect.signature(cls.fit).parameters
    }
    assert {type(make()).__name__ for make, _ in kills.FITS.values()} == keep
