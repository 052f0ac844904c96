"""What the tests of comparisons share."""

import pytest


@pytest.fixture
def one_thread(monkeypatch):
    """Workers of one thread: small work is done sooner so."""
    monkeypatch.setenv("GZKCORE_NUM_THREADS", "1")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
