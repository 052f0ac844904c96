"""Whoever is killed, at whatever moment, goes on to the same bits, and leaves nothing half."""

import inspect
import os

import kills
import pytest
from programs import results_of

from gzkcore._util import model_io

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks and SIGKILL")


@pytest.mark.slow
@pytest.mark.parametrize("job", ["ridge", pytest.param("save", marks=pytest.mark.weekly)])
def test_some_kills(job):
    assert results_of("kills", job, 5, 0)[0]["kills"] >= 5


@pytest.mark.weekly
@pytest.mark.parametrize("job", kills.JOBS)
def test_a_hundred_kills(job):
    found, _ = results_of("kills", job, 100, 0)
    assert found["kills"] >= 100
    assert found["checkpoints"] > 0 or job not in kills.FITS


def test_every_learner_that_keeps_checkpoints_is_killed():
    classes = [model_io._class_of(name) for name in model_io.CLASSES]
    keep = {
        cls.__name__
        for cls in classes
        if hasattr(cls, "fit") and "checkpoint" in inspect.signature(cls.fit).parameters
    }
    solved = keep - {"NearKernelRidge"}  # which solves nothing that a kill could lose
    assert {type(make()).__name__ for make, _ in kills.FITS.values()} == solved
