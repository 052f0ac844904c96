"""Near rows that the workers of a cluster hold: the predictions of the same rows in memory."""

import os
import pickle
import signal
import time

import numpy as np
import pytest
from cluster import cluster
from numpy.testing import assert_allclose, assert_array_equal
from points import sphere
from scipy import sparse
from sklearn.base import clone

from gzkcore import (
    Gaussian,
    KernelRegressor,
    KernelRidge,
    Matern,
    NearKernelRidge,
    Product,
    SphereMatern,
)
from gzkcore.learn import near_kernel_ridge
from gzkcore.passes import streams
from gzkcore.rows.dask import HeldRows
from gzkcore.solve import near_lengths
from gzkcore.tabular import table_passes

da = pytest.importorskip("dask.array", reason="needs dask: pip install 'gzkcore[dask]'")
dask = pytest.importorskip("dask", reason="needs dask: pip install 'gzkcore[dask]'")

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask, about ports and clocks

CHUNKS = 400, 7, 0, 393, 100  # 7 rows are fewer than those near a new one


@pytest.fixture
def here(monkeypatch):
    """What a cluster does, by threads of this process."""
    monkeypatch.setattr(streams, "client_of", object)
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def data(n_targets=1, n=900):
    rng = np.random.default_rng(n_targets)
    X, weight = rng.random((n, 2)), rng.uniform(0.5, 2, n)
    y = 5 + np.sin(7 * X[:, :1] + np.arange(n_targets)) + 0.1 * rng.standard_normal((n, n_targets))
    return X, y if n_targets > 1 else y[:, 0], weight, rng.random((60, 2))


def chunked(*arrays):
    return [None if a is None else da.from_array(a, chunks=(CHUNKS, *a.shape[1:])) for a in arrays]


KERNEL = Matern(2.5, [0.3, 0.5])


def made(kernel=KERNEL, alpha=0.05, **parameters):
    return NearKernelRidge(kernel, alpha, **{"n_neighbors": 12, "random_state": 0} | parameters)


def check_same(model, new, *arrays, slopes=True):
    """Compare predictions, deviations and slopes with those of a fit in memory."""
    held, whole = clone(model).fit(*chunked(*arrays)), clone(model).fit(*arrays)
    assert isinstance(held.X_fit_, HeldRows)
    assert held.X_fit_.shape == whole.X_fit_.shape
    results = (fitted.predict(new, True, slopes) for fitted in (held, whole))
    for found, wanted in zip(*results, strict=True):
        assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
    return held


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("weighted", ["no", "all", "some"])
@pytest.mark.usefixtures("here")
def test_predictions_are_those_of_rows_in_memory(n_targets, weighted):
    X, y, weight, new = data(n_targets)
    weight[::5] *= weighted != "some"
    held = check_same(made(), new, X, y, None if weighted == "no" else weight)
    assert_array_equal(held.X_fit_[[3, 1, 699]].toarray(), X[weight > 0][[3, 1, 699]])


@pytest.mark.parametrize(
    "model",
    [
        made(Gaussian(), None), made("gaussian", None), made(Matern("learn", "learn"), None, trend="linear"),
        made(Gaussian(3.0), trend=[1]), made(Gaussian(3.0), trend=None, n_neighbors=500),
        made(Product([(0, Matern(1.5, "learn")), (1, Gaussian())]), None),
    ],
    ids=["rule", "name", "learned", "column", "all near", "product"],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_all_that_is_learned_is_that_of_rows_in_memory(model, monkeypatch):
    monkeypatch.setattr(near_lengths, "BLOCKS", 25)
    monkeypatch.setattr(near_kernel_ridge, "SCALE_ROWS", 50)
    X, y, weight, new = data()
    held = check_same(model, new, X, y, weight)
    assert held.alpha_ == pytest.approx(clone(model).fit(X, y, weight).alpha_, rel=1e-6)


@pytest.mark.usefixtures("here")
def test_a_smooth_part_is_fitted_to_the_same_rows(monkeypatch):
    monkeypatch.setattr(near_kernel_ridge, "SMOOTH_ROWS", 120)
    X, y, weight, new = data()
    check_same(made(smooth=KernelRidge(Gaussian(4.0), 0.1)), new, X, y, weight)


@pytest.mark.usefixtures("here")
def test_sparse_rows_and_rows_on_the_sphere():
    X, y, _, new = data()
    X[X[:, 0] < 0.3, 0], new[new[:, 0] < 0.3, 0] = 0, 0
    plain, held = made().fit(X, y), chunked(X, y)
    other = made().fit(held[0].map_blocks(sparse.csr_array), held[1])
    assert_allclose(other.predict(new), plain.predict(new), rtol=1e-6)
    places = sphere(900, 3)
    check_same(made(SphereMatern(2.5, 0.3)), sphere(20, 3, seed=1), places, y, slopes=False)
    with pytest.raises(ValueError, match="has norm 2, but this kernel"):
        made(SphereMatern(2.5, 0.3)).fit(*chunked(2 * places, y))


@pytest.mark.usefixtures("here")
def test_few_rows_come_here(monkeypatch):
    came, bring = [], HeldRows.toarray

    def toarray(self):
        came.append(self.shape[0] * self.shape[1])
        return bring(self)

    monkeypatch.setattr(HeldRows, "toarray", toarray)
    monkeypatch.setattr(near_kernel_ridge, "SCALE_ROWS", 10)
    X, y, _, new = data()
    model = made().fit(*chunked(X, y))
    model.predict(new[:5])
    assert max(came) < 2 * 300


@pytest.mark.usefixtures("here")
def test_wrong_rows_are_named():
    X, y, weight, _ = data()
    hole = np.where(np.arange(900)[:, None] == 403, np.nan, X)
    with pytest.raises(ValueError, match=r"chunk 1, .*: Input X contains NaN.* in row 3, column 0"):
        made(Matern(1.5, "learn")).fit(*chunked(hole, y))
    with pytest.raises(ValueError, match=r"chunk 1, .*: Input y contains NaN.* in row 3"):
        made().fit(*chunked(X, hole[:, 0]))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        made().fit(*chunked(X, y, 0 * weight))


@pytest.mark.usefixtures("here")
def test_rows_may_be_forgotten_and_no_more(tmp_path):
    X, y, _, new = data()
    model, whole = made().fit(*chunked(X, y)), made().fit(X, y)
    gone = np.arange(900) % 3 == 0
    assert_allclose(model.forget(gone).predict(new), whole.forget(gone).predict(new), rtol=1e-6)
    for change in (
        lambda: model.save(tmp_path / "model.gzk"), lambda: pickle.dumps(model),
        lambda: model.update(X, y), lambda: model.predict(chunked(X)[0]), lambda: model.predict([X]),
        lambda: model.score(*chunked(X, y)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"hold 600 rows of this model.*fit to arrays: X.comp"):
            change()
    assert list(tmp_path.iterdir()) == []


def test_without_a_cluster_rows_are_gathered():
    X, y, _, new = data()
    model = made().fit(*chunked(X, y))
    assert_array_equal(model.X_fit_, X)
    assert_array_equal(model.predict(new), made().fit(X, y).predict(new))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_cluster_holds_the_rows_as_long_as_the_model_is_there(monkeypatch):
    monkeypatch.setattr(table_passes, "DRAWN_ROWS", 500)
    X, y, weight, new = data()
    with cluster(2) as client:
        model = check_same(made(Matern(1.5, "learn"), None), new, X, y, weight)
        wanted = model.predict(new)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        assert_array_equal(model.predict(new), wanted)
        table = KernelRegressor(form="near", kernel=Gaussian(9.0), random_state=0)
        table.fit(*chunked(X, y))
        assert isinstance(table.model_.X_fit_, HeldRows)
        assert table.score(X, y) > 0.9
        del model, table
        end = time.monotonic() + 30
        while any(client.has_what().values()) and time.monotonic() < end:
            time.sleep(0.01)
        assert not any(client.has_what().values())
