"""What all tests share: hypothesis without a clock, threads for small jobs too, no workers."""

import functools
import gc
import json
import os
import pickle
import signal
import warnings

import pytest
from hypothesis import HealthCheck, settings

from gzkcore._util import threads
from gzkcore._util.wording import plain

settings.register_profile(
    "gzkcore", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gzkcore")

# Programs that tests start and stop by Ctrl-C would ignore it where the tests themselves have to,
# started by nohup or in the background.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Data of tests are small: what threads may break is to be seen on them.
threads._WORTH_A_THREAD = int(os.environ.get("GZKCORE_TESTS_WORTH", "65536"))

# Tests that run side by side share the processors; those of threads ask for as many as they want.
SIDE_BY_SIDE = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
of_the_process = threads._usable_processors


@functools.wraps(of_the_process)
def share():
    """Return how many processors the tests of this process may use."""
    return max(1, of_the_process() // SIDE_BY_SIDE)


threads._usable_processors = share


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes():
    """Of tests side by side: more threads of BLAS, and threads that wait, would hold up others."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def pytest_collection():
    """Look for no garbage among what is imported, and stays."""
    gc.disable()


def pytest_collection_finish():
    """Leave what stays out of all later searches: one of them would take a second."""
    # Imported here, while no garbage is looked for, and not above. Products of the whole kernel are
    # timed on fewer rows: how long they take is not tested.
    from gzkcore.solve import cost

    cost.TIMED_SECONDS = 0.01
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Write no traceback, which nobody sees, of a failure that is expected: it takes long."""
    options = item.config.option
    given = options.tbstyle, options.showlocals
    if call.when == "call" and call.excinfo and item.get_closest_marker("xfail"):
        options.tbstyle, options.showlocals = "line", False
    try:
        return (yield)
    finally:
        options.tbstyle, options.showlocals = given


@pytest.fixture
def in_process(monkeypatch):
    """No workers at all, which saves the time to start them; return what is measured."""
    from gzkcore.evaluate.worker import RefusedError, Worker

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
