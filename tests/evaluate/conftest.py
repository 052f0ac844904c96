"""What the tests of comparisons share."""

import json
import pickle
import warnings

import pytest

from gzkcore._util.wording import plain
from gzkcore.evaluate import whole_cost
from gzkcore.evaluate.worker import RefusedError, Worker


@pytest.fixture(autouse=True)
def short_timing(monkeypatch):
    """Time products of the whole kernel on fewer rows: how long they take is not tested."""
    monkeypatch.setattr(whole_cost, "TIMED_SECONDS", 0.01)


@pytest.fixture
def one_thread(monkeypatch):
    """Workers of one thread: small work is done sooner so."""
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture
def in_process(monkeypatch):
    """No workers at all, which saves the time to start them; return what is measured."""
    measured = []

    def run(self, method, width, seeds, limit):
        assert limit > 0
        measured.append((method, width, seeds))
        work, task = pickle.loads(self._sent)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for result in work(task, method, width, seeds):
                    yield json.loads(json.dumps(result))
        except (TypeError, ValueError) as error:
            raise RefusedError(plain(str(error))) from None

    monkeypatch.setattr(Worker, "run", run)
    return measured
