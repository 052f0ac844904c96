"""What the tests of comparisons share."""

import json
import pickle
import warnings

import pytest

from gzkcore.evaluate import compare as _compare


@pytest.fixture
def one_thread(monkeypatch):
    """Workers of one thread: small work is done sooner so."""
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture
def in_process(monkeypatch):
    """No workers at all, which saves the time to start them; return what is measured."""
    measured = []

    def measure(self, method, width, seeds, limit):
        assert limit > 0
        measured.append((method, width, seeds))
        runs = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compare._measure(pickle.loads(self._task), method, width, seeds, runs.append)
        yield from json.loads(json.dumps(runs))

    monkeypatch.setattr(_compare._Worker, "measure", measure)
    return measured
