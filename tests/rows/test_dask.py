"""Dask collections: the same answers as arrays, whatever the workers do."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from batched import StoppedError, data
from cluster import cluster
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer
from tolerances import RIDGE

from gzkcore import (
    Checkpoint,
    CountSketch,
    Gaussian,
    GegenbauerFeatures,
    RandomFeaturePCA,
    RandomFeatureRidge,
    RandomFeatureRidgeCV,
    RandomFourierFeatures,
)
from gzkcore._util import threads as _threads
from gzkcore.features import dask as features_of_dask
from gzkcore.passes import streams
from gzkcore.rows import dask as rows_of_dask

da = pytest.importorskip("dask.array", reason="needs dask: pip install 'gzkcore[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="needs dask: pip install 'gzkcore[dask]'")
dask = pytest.importorskip("dask", reason="needs dask: pip install 'gzkcore[dask]'")

CLOSE = RIDGE["everywhere"]()


def ridge(learner=RandomFeatureRidge, **parameters):
    features = GegenbauerFeatures(Gaussian(0.2), 60, basis="harmonic", radius=7.0)
    return learner(features, **parameters)


def chunked(X, y, rows=400):
    return da.from_array(X, chunks=(rows, 2)), da.from_array(y, chunks=rows + 100)


# ---- without a cluster: Dask's own threads


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


LEARNERS = [
    (RandomFeatureRidge, {"alpha": 0.01}),
    (RandomFeatureRidgeCV, {"alphas": [0.01, 1.0], "cv": 3}),
    (RandomFeatureRidgeCV, {"alphas": [0.01, 1.0]}),
]


@pytest.mark.parametrize(("learner", "parameters"), LEARNERS, ids=["ridge", "folds", "gcv"])
@pytest.mark.usefixtures("threads")
def test_the_same_answer(learner, parameters):
    X, y = data()
    one = ridge(learner, **parameters).fit(X, y)
    for rows in (100, 999, 3000):
        other = ridge(learner, **parameters).fit(*chunked(X, y, rows))
        assert other.moments_.n_rows == 3000
        assert_allclose(other.predict(X), one.predict(X), rtol=CLOSE)
        size = np.abs(one.coef_).max()
        assert_allclose(other.coef_, one.coef_, rtol=0, atol=CLOSE * size)


@pytest.mark.usefixtures("threads")
def test_float32():
    X, y = data(dtype=np.float32)
    one = ridge(alpha=0.1).fit(X, y)
    Xd, yd = chunked(X, y)
    other = ridge(alpha=0.1).fit(Xd, yd)
    assert other.moments_.dtype == np.float32
    wanted = one.predict(X)
    error = np.linalg.norm(other.predict(X) - wanted) / np.linalg.norm(wanted)
    assert error < RIDGE["everywhere, single"](np.float32)
    Z = one.features_.transform(Xd)
    assert Z.dtype == np.float32
    assert_array_equal(Z.compute(), one.features_.transform(X))


@pytest.mark.usefixtures("threads")
def test_columns_whose_digits_are_lost_are_told_of_once(tmp_path):
    X, y = data(1000)
    Xd, yd = chunked((X + 300).astype(np.float32), y, 100)
    sketch = CountSketch(5, random_state=0)
    for features, place in ((FunctionTransformer(), None), (sketch, tmp_path / "run.gzk")):
        model = RandomFeatureRidge(features)
        with pytest.warns(UserWarning, match="float32 products keep few digits") as told:
            model.fit(Xd, yd, checkpoint=place)
        assert len(told) == 1


@pytest.mark.usefixtures("threads")
def test_data_frames():
    X, y = data(1000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    Xd = dd.from_pandas(frame, npartitions=5)
    yd = dd.from_pandas(pd.Series(y), npartitions=5)
    one = ridge(alpha=0.1).fit(frame, y)
    other = ridge(alpha=0.1).fit(Xd, yd)
    assert_array_equal(other.feature_names_in_, ["a", "b", "c"])
    assert_allclose(other.coef_, one.coef_, rtol=CLOSE)
    assert_allclose(other.predict(Xd).compute(), one.predict(frame), rtol=CLOSE)
    assert_allclose(other.score(Xd, yd), one.score(frame, y), rtol=CLOSE)


@pytest.mark.usefixtures("threads")
def test_features_know_all_rows(monkeypatch):
    monkeypatch.setattr("gzkcore.rows.survey.SAMPLE_ROWS", 300)
    X, _ = data()
    Xd, _ = chunked(X, X[:, 0])
    for features in (
        GegenbauerFeatures(n_components=40, basis="harmonic"),
        RandomFourierFeatures(n_components=40, random_state=0),
    ):
        wanted = features.fit(X).transform(X)
        other = features_of_dask.fit(features, Xd)
        found = other.transform(Xd)
        assert found.chunks == (Xd.chunks[0], (40,))
        assert_allclose(found.compute(), wanted, rtol=0, atol=CLOSE)
    with pytest.raises(TypeError, match=r"gzkcore.features.dask.fit\(features, X\)"):
        features.fit(Xd)


@pytest.mark.usefixtures("threads")
def test_nothing_is_computed_before_it_is_asked_for():
    X, y = data(600)
    model = ridge(alpha=0.1).fit(X, np.column_stack([y, -y]))
    computed = []

    def load(number):
        computed.append(number)
        return X[300 * number : 300 * number + 300]

    Xd = da.concatenate(
        [da.from_delayed(dask.delayed(load)(k), (300, 3), dtype=float) for k in range(2)]
    )
    mean, std = model.predict(Xd, return_std=True)
    assert mean.shape == std.shape == (600, 2)
    Z = features_of_dask.transform(model.features_, Xd)
    assert Z.shape == (600, 60)
    assert computed == []
    wanted = model.predict(X, return_std=True)
    assert_allclose(mean.compute(), wanted[0], rtol=CLOSE)
    assert_allclose(std.compute(), wanted[1], rtol=CLOSE)
    assert_allclose(Z[:10].compute(), model.features_.transform(X[:10]), rtol=CLOSE)
    assert sorted(computed) == [0, 0, 0, 1, 1]


@pytest.mark.usefixtures("threads")
def test_weights_and_arrays_beside():
    X, y = data(1000)
    weight = np.random.default_rng(3).uniform(0, 2, 1000)
    Xd, _ = chunked(X, y)
    one = ridge(alpha=0.1).fit(X, y, weight)
    for y_given, w_given in ((y, weight), (da.from_array(y), da.from_array(weight, chunks=90))):
        other = ridge(alpha=0.1).fit(Xd, y_given, w_given)
        assert_allclose(other.coef_, one.coef_, rtol=CLOSE, atol=CLOSE)
    assert_allclose(other.score(Xd, y, weight), one.score(X, y, weight), rtol=CLOSE)


@pytest.mark.usefixtures("threads")
def test_what_does_not_fit_is_named():
    X, y = data(1000)
    Xd, yd = chunked(X, y)
    bad = X.copy()
    bad[777, 1] = np.nan
    with pytest.raises(ValueError, match=r"chunk 1, counted from 0: Input X contains NaN.*row 377"):
        ridge().fit(chunked(bad, y)[0], yd)
    with pytest.raises(ValueError, match="y has 900 rows, but X has 1000"):
        ridge().fit(Xd, yd[:900])
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    with pytest.raises(TypeError, match="y is a ndarray, which cannot be divided like X"):
        ridge().fit(frame, y)
    with pytest.raises(ValueError, match="y has 2 chunks, but X has 4"):
        ridge().fit(frame, dd.from_pandas(pd.Series(y), npartitions=2))
    with pytest.raises(ValueError, match="requires y to be passed"):
        ridge().fit(Xd)
    with pytest.raises(TypeError, match="y is a generator; pass a Dask collection, or an array"):
        ridge().fit(Xd, (value for value in y))


@pytest.mark.usefixtures("threads")
def test_chunks_without_rows_are_left_out():
    X, y = data(1000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, number=np.arange(1000))
    kept = frame[300:]
    table = dd.from_pandas(frame, npartitions=5)
    table = table[table["number"] >= 300]  # of 200 rows each, the first is empty now
    Xd, yd = table[["a", "b", "c"]], table["y"]
    for features in (None, RandomFourierFeatures(n_components=20, random_state=0)):
        one = ridge(alpha=0.1) if features is None else RandomFeatureRidge(features)
        other = clone(one).fit(Xd, yd)
        one.fit(kept[["a", "b", "c"]], kept["y"])
        assert other.moments_.n_rows == 700
        assert_allclose(other.coef_, one.coef_, rtol=CLOSE)
        mean, std = (part.compute() for part in other.predict(Xd, return_std=True))
        assert len(mean) == len(std) == 700
        assert_allclose(mean, one.predict(kept[["a", "b", "c"]]), rtol=CLOSE)
        assert_allclose(other.score(Xd, yd), one.score(kept[["a", "b", "c"]], kept["y"]))
        assert other.features_.transform(Xd).compute().shape[0] == 700
    nothing = table[table["number"] < 0]
    with pytest.raises(ValueError, match="yields no batches"):
        ridge().fit(nothing[["a", "b", "c"]], nothing["y"])


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("learner", [*[way[0] for way in LEARNERS[1:]], RandomFeaturePCA])
def test_the_data_do_not_travel_with_the_tasks(learner, monkeypatch, tmp_path):
    """What goes to workers beside the chunks is small, whatever the collection holds."""
    sizes = []
    original = rows_of_dask.DaskSource.reduce_each

    def reduce_each(self, groups, work, merge, *args):
        sizes.append(len(pickle.dumps(args)))
        return original(self, groups, work, merge, *args)

    monkeypatch.setattr(rows_of_dask.DaskSource, "reduce_each", reduce_each)
    for n in (2000, 20_000):
        X, y = chunked(*data(n), rows=500)
        for given in ({}, {"checkpoint": tmp_path / "run.gzk"}):
            ridge(learner).fit(X, y, **given)
    assert len(sizes) == 4
    assert sizes[:2] == sizes[2:]


@pytest.mark.usefixtures("threads")
def test_frames_of_float32():
    X, _ = data(100, np.float32)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]), npartitions=2)
    found = features_of_dask.fit(GegenbauerFeatures(n_components=9), frame).transform(frame)
    assert found.dtype == found.compute().dtype == np.float32


def test_a_task_has_its_share_of_the_threads():
    seen = []

    def look(rows):
        seen.append(_threads.n_threads())
        return rows[:, 0]

    X = da.ones((4, 2), chunks=(2, 2))
    with dask.config.set(scheduler="threads", num_workers=2):
        rows_of_dask.map_rows(look, X, ()).compute()
    assert seen == [1, 1]


# ---- checkpoints


@pytest.fixture
def small_groups(monkeypatch):
    """A checkpoint after each 9 chunks, two levels of trees of 3."""
    monkeypatch.setattr(rows_of_dask, "FAN_IN", 3)
    monkeypatch.setattr(streams, "GROUP", 9)


def numbered(n_chunks, stop=None):
    """Return chunks of 50 rows that are made when they are read; one may fail."""

    def rows(number):
        if number == stop:
            raise StoppedError
        return np.random.default_rng(number).normal([1, 0, 3], 1.0, (50, 3))

    chunks = [da.from_delayed(dask.delayed(rows)(k), (50, 3), dtype=float) for k in range(n_chunks)]
    X = da.concatenate(chunks)
    return X, X[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "parameters"),
    [*LEARNERS, (RandomFeaturePCA, {"n_components": 3})],
    ids=["ridge", "folds", "gcv", "pca"],
)
@pytest.mark.usefixtures("threads", "small_groups")
def test_a_stopped_fit_goes_on_to_the_same_bits(learner, parameters, tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.gzk", seconds=1e-9)  # after each group
    whole = ridge(learner, **parameters).fit(*numbered(32), checkpoint=tmp_path / "other.gzk")
    for stop in (20, 15):  # the second is not reached: two groups are done
        with pytest.raises(StoppedError):
            ridge(learner, **parameters).fit(*numbered(32, stop=stop), checkpoint=checkpoint)
        assert (tmp_path / "run.gzk").exists()
    found = ridge(learner, **parameters).fit(*numbered(32), checkpoint=checkpoint)
    assert list(tmp_path.iterdir()) == []
    assert found.moments_.n_rows == 1600
    X = np.random.default_rng(0).normal([1, 0, 3], 1.0, (50, 3))
    output = "transform" if learner is RandomFeaturePCA else "predict"
    assert_array_equal(getattr(found, output)(X), getattr(whole, output)(X))
    plain = ridge(learner, **parameters).fit(*numbered(32))
    assert_allclose(getattr(found, output)(X), getattr(plain, output)(X), rtol=CLOSE, atol=CLOSE)


@pytest.mark.usefixtures("threads", "small_groups")
def test_a_checkpoint_of_other_chunks_is_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.gzk", seconds=1e-9)
    with pytest.raises(StoppedError):
        ridge().fit(*numbered(32, stop=20), checkpoint=checkpoint)
    X, y = numbered(32)
    for other, message in (
        ((X + 1e-9, y), "the first 18 batches are not those"),
        ((X.rechunk((100, 3)), y), "the data have 16 chunks, it has seen 18"),
        ((X.rechunk((25, 3)), y.rechunk(25)), "the first 18 batches are not those"),
        ((X, y + 1), "the first 18 batches are not those"),
    ):
        with pytest.raises(ValueError, match=rf"cannot resume from .*{message}"):
            ridge().fit(*other, checkpoint=checkpoint)
    assert ridge().fit(X, y, checkpoint=checkpoint).moments_.n_rows == 1600


KILLED = """
    import os, pathlib, time
    import dask, dask.array as da, numpy as np
    from gzkcore import Checkpoint, Gaussian, GegenbauerFeatures, RandomFeatureRidge

    def rows(number):
        if number == 130 and os.environ.get("WAIT"):
            pathlib.Path("now").touch()
            time.sleep(60)
        return np.random.default_rng(number).normal([1, 0, 3], 1.0, (50, 3))

    X = da.concatenate(
        [da.from_delayed(dask.delayed(rows)(k), (50, 3), dtype=float) for k in range(150)]
    )
    features = GegenbauerFeatures(Gaussian(0.2), 60, basis="harmonic", radius=7.0)
    for name in ("killed", "whole"):
        model = RandomFeatureRidge(features, alpha=0.01)
        with dask.config.set(scheduler="threads", num_workers=2):
            model.fit(X, X[:, 0], checkpoint=Checkpoint(f"{name}.gzk", seconds=1e-9))
        np.savez(name, sums=model.moments_.sums, coef=model.coef_, n=model.moments_.n_rows)
"""


@pytest.mark.weekly
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    (tmp_path / "fit.py").write_text(textwrap.dedent(KILLED))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "fit.py"], cwd=tmp_path, env=environment | {"WAIT": "1"}
    )
    end = time.monotonic() + 60
    while not (tmp_path / "now").exists() and time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert (tmp_path / "killed.gzk").exists()
    subprocess.run([sys.executable, "fit.py"], cwd=tmp_path, env=environment, check=True)
    assert list(tmp_path.glob("*.gzk")) == []
    whole, resumed = (np.load(tmp_path / f"{name}.npz") for name in ("whole", "killed"))
    assert whole["n"] == resumed["n"] == 7500
    assert_array_equal(resumed["sums"], whole["sums"])
    assert_array_equal(resumed["coef"], whole["coef"])


# ---- a cluster of processes on this machine


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Dask, about ports and clocks
def test_processes_give_the_same_answer_whatever_their_number(tmp_path):
    X, y = data(4000)
    one = ridge(alpha=0.01).fit(X, y)
    free = RandomFeatureRidge(GegenbauerFeatures(n_components=60, basis="harmonic"), alpha=0.01)
    wanted = free.fit(X, y).predict(X)
    Xd, yd = chunked(X, y, rows=160)  # 25 chunks: 4 merges, then one
    bits = []
    with cluster(1) as client:
        for n_workers in (1, 3):
            client.cluster.scale(n_workers)
            client.wait_for_workers(n_workers)
            other = ridge(alpha=0.01).fit(Xd, yd)
            bits.append(other.moments_.sums)
            assert other.moments_.n_rows == 4000
            assert_allclose(other.predict(X), one.predict(X), rtol=CLOSE)
            if n_workers == 3:
                assert_allclose(free.fit(Xd, yd).predict(X), wanted, rtol=CLOSE)
                assert_allclose(one.predict(Xd).compute(), one.predict(X), rtol=CLOSE)
                assert_allclose(one.score(Xd, yd), one.score(X, y), rtol=CLOSE)
                kept = ridge(alpha=0.01).fit(Xd, yd, checkpoint=tmp_path / "run.gzk")
                assert_array_equal(kept.moments_.sums, other.moments_.sums)  # there is one group
    assert_array_equal(*bits)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.filterwarnings("ignore")  # those of Dask
def test_a_lost_worker_changes_nothing(tmp_path):
    def slow_rows(number, folder):  # local: workers don't have this module
        time.sleep(0.02)
        Path(folder, f"{number}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return np.random.default_rng(number).normal([1, 0, 3], 1.0, (100, 3))

    def fit(folder):
        folder.mkdir()
        X = da.concatenate(
            [
                da.from_delayed(dask.delayed(slow_rows)(k, str(folder)), (100, 3), dtype=float)
                for k in range(40)
            ]
        )
        return ridge(alpha=0.01).fit(X, X[:, 0])

    with cluster(2) as client:
        whole = fit(tmp_path / "whole")
        marks = len(list((tmp_path / "whole").iterdir()))
        victim = next(iter(client.run(os.getpid).values()))

        def kill():
            end = time.monotonic() + 60
            # In the survey 40 chunks are loaded, then the sums begin.
            while time.monotonic() < end:
                if folder.exists() and len(list(folder.iterdir())) >= marks - 20:
                    os.kill(victim, signal.SIGKILL)
                    return
                time.sleep(0.005)

        folder = tmp_path / "killed"
        killer = threading.Thread(target=kill)
        killer.start()
        other = fit(folder)
        killer.join()
        again = len(list(folder.iterdir()))
        assert victim not in client.run(os.getpid).values()
    assert again > marks  # the chunks that were lost were read again
    assert other.moments_.n_rows == 4000
    assert_array_equal(other.moments_.sums, whole.moments_.sums)
    assert_array_equal(other.coef_, whole.coef_)
