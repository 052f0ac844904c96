"""A cluster of processes on this machine, for tests of Dask."""

import contextlib

import pytest

dask = pytest.importorskip("dask", reason="needs dask: pip install 'gzkcore[dask]'")
distributed = pytest.importorskip("distributed", reason="needs distributed, of gzkcore[dask]")


@contextlib.contextmanager
def cluster(n_workers):
    settings = {"distributed.worker.multiprocessing-method": "forkserver"}  # quicker to start
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
