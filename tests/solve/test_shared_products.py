"""Products of `KernelRidge` by the workers of a cluster: the same bits, whatever they do."""

import os
import pickle
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from cluster import cluster, dask
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tolerances import WHOLE

from gzkcore import Gaussian, KernelOperator, KernelRidge, KernelRidgeCV, Matern, Sum, load
from gzkcore.kernels.products import Runs
from gzkcore.rows.dask import DaskSource, Held
from gzkcore.solve import workers
from gzkcore.solve.workers import Workers

da = pytest.importorskip("dask.array", reason="needs dask: pip install 'gzkcore[dask]'")

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask, about ports and clocks

N = 1500  # 6 tiles


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    monkeypatch.setattr(workers, "TASK_VALUES", 1000)
    monkeypatch.setattr(workers, "MOST_TASKS", 6)


def data():
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((N, 3)), rng.uniform(0.1, 2, N)
    weight[::7] = 0
    return X, np.sin(X[:, :2]) + 0.1 * rng.standard_normal((N, 2)), weight


def chunked(*arrays):
    return tuple(da.from_array(each, chunks=(400, *each.shape[1:])) for each in arrays)


def close(found, wanted):
    bound = WHOLE["dense"](np.float64) * np.abs(wanted).max()
    assert_allclose(found, wanted, rtol=0, atol=bound)


SUM = Sum([([0, 1], Gaussian(0.5)), ([1, 2], Matern(1.5))], [1.0, 0.5])
# So few rows would be factored, without a product, but for the number of features.
MODELS = {
    "whole": KernelRidge(SUM, 0.1, fit_intercept=True, preconditioner=64, random_state=0),
    "alphas": KernelRidgeCV(Matern(1.5), [0.1, 1.0], preconditioner=64, random_state=0),
    "centers": KernelRidge(Gaussian(0.5), 0.1, centers=200, tol=1e-8, random_state=0),
}


def forgotten(client):
    """Say whether the workers hold nothing, within some seconds."""
    end = time.monotonic() + 30
    while any(client.has_what().values()) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(client.has_what().values())


class HeldHere(Held):
    """What a cluster does, in this process, and in another order."""

    def __init__(self, client, value):
        self.value = value

    def each(self, work, count, *args):
        found = {n: work(self.value, n, *args) for n in reversed(range(count))}
        return [found[number] for number in range(count)]


@pytest.mark.weekly
def test_the_same_bits_for_any_number_of_workers(monkeypatch, tmp_path):
    given, fitted = chunked(*data()), {name: [] for name in MODELS}
    came, products, read = [], [], DaskSource.__iter__

    def each(self, work, count, *args):
        products.append(count)
        return held(self, work, count, *args)

    def chunks(self):
        for chunk in read(self):
            came.append(chunk)
            yield chunk

    held = Held.each
    monkeypatch.setattr(Held, "each", each)
    monkeypatch.setattr(DaskSource, "__iter__", chunks)
    for n_workers in (1, 2):
        with cluster(n_workers) as client:
            for name, model in MODELS.items():
                del came[:], products[:]
                fitted[name].append(clone(model).fit(*given))
                if name == "centers":
                    assert products == []
                    assert len(came) == 1  # the first one is looked at; rows stay where they are
                else:
                    assert products[0] == 6 if name != "alphas" else products[0] == 5
                assert forgotten(client)
            kept = clone(MODELS["whole"]).fit(*given, checkpoint=tmp_path / "run.gzk")
            assert_array_equal(kept.dual_coef_, fitted["whole"][-1].dual_coef_)
            with dask.config.set(scheduler="threads"):
                assert Workers(distributed=True).client is None
            predicted = kept.predict(given[0])
            assert isinstance(predicted, da.Array)
            close(predicted.compute(), kept.predict(data()[0]))
    X, y, weight = data()
    for name, (one, two) in fitted.items():
        assert_array_equal(one.dual_coef_, two.dual_coef_)
        assert_array_equal(one.intercept_, two.intercept_)
        if name != "centers":  # they have a sample of the rows, another one than that of an array
            here = clone(MODELS[name]).fit(X, y, weight)
            assert_allclose(one.predict(X), here.predict(X), rtol=0, atol=5 * here.tol)
            runs_here = in_this_process(monkeypatch, here, given)
            assert_array_equal(runs_here.dual_coef_, one.dual_coef_)


def in_this_process(monkeypatch, model, given):
    with monkeypatch.context() as patched:
        patched.setattr(workers, "client_of", object)
        patched.setattr(workers, "Held", HeldHere)
        return clone(model).fit(*given)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_worker_killed_between_products_changes_nothing(monkeypatch):
    given, killed = chunked(*data()), []
    model = KernelRidge(Gaussian(0.5), 0.1, tol=1e-6, preconditioner=64, random_state=0)
    whole = in_this_process(monkeypatch, model, given)
    with cluster(2) as client:

        def kill(progress):
            if progress.n_steps == 3 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        model._listener = kill
        model.fit(*given)
        assert killed[0] not in client.run(os.getpid).values()
    assert model.n_iter_.min() > 3
    assert_array_equal(model.dual_coef_, whole.dual_coef_)
    assert_array_equal(model.n_iter_, whole.n_iter_)


@pytest.mark.weekly
def test_a_worker_that_dies_in_a_product_changes_nothing(monkeypatch, tmp_path):
    """The kernel is a function, which ends its process in the third product."""
    calls, dead, here = str(tmp_path / "calls"), str(tmp_path / "dead"), os.getpid()

    def kernel(X, Y):  # local: workers don't have this module
        if os.getpid() != here and not Path(dead).exists():
            with open(calls, "a") as file:  # noqa: PTH123
                file.write(".")
            if Path(calls).stat().st_size >= 15:
                Path(dead).touch()
                os._exit(1)
        return np.exp(-np.square(X[:, None] - Y).sum(axis=2) / 2)

    given, model = chunked(*data()), KernelRidge(kernel, 0.1, preconditioner=64, random_state=0)
    whole = in_this_process(monkeypatch, model, given)
    with cluster(2):
        model.fit(*given)
    assert Path(dead).exists()
    assert_array_equal(model.dual_coef_, whole.dual_coef_)


def test_what_is_sent_is_of_the_size_of_the_rows():
    sizes = []
    for n in (2000, 8000):
        X = np.random.default_rng(0).standard_normal((n, 5))
        sizes.append(len(pickle.dumps(Runs(KernelOperator(Matern(), X, dtype=np.float32), 64))))
        assert sizes[-1] < 2.2 * X.astype(np.float32).nbytes + 10_000
    assert sizes[1] < 4.2 * sizes[0]


def test_few_rows_stay_here(monkeypatch):
    monkeypatch.setattr(workers, "TASK_VALUES", 1 << 26)
    monkeypatch.setattr(workers, "client_of", object)  # would fail if it were asked
    X, y, weight = data()
    found = clone(MODELS["whole"]).fit(*chunked(X, y, weight))
    assert_array_equal(found.dual_coef_, clone(MODELS["whole"]).fit(X, y, weight).dual_coef_)


@pytest.mark.slow
def test_a_fitted_model_makes_its_products_itself(monkeypatch, tmp_path):
    X, y, weight = data()
    model = in_this_process(monkeypatch, MODELS["whole"], chunked(X, y, weight))
    monkeypatch.delattr(HeldHere, "each")
    mean, std = model.predict(X[:5], return_std=True)
    model.save(tmp_path / "model.gzk")
    for other in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.gzk")):
        assert_array_equal(other.predict(X[:5]), mean)
        assert_allclose(other.predict(X[:5], return_std=True)[1], std, rtol=1e-3)
