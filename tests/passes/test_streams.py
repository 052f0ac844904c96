"""Checkpoints: a fit that is killed goes on where it was, to the same bits."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pytest
from batched import StoppedError
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler

from gzkcore import (
    Checkpoint,
    Gaussian,
    GegenbauerFeatures,
    RandomFeatureCCA,
    RandomFeatureKMeans,
    RandomFeaturePCA,
    RandomFeatureRidge,
    RandomFeatureRidgeCV,
    RandomFourierFeatures,
)

EVERY = 1e-9  # seconds: after each batch


def features(gamma=0.3):
    return RandomFourierFeatures(Gaussian(gamma), 40, random_state=0)


class Batches:
    """Twenty batches, the same each time; `stop` ends a pass early, after so many others."""

    def __init__(self, stop=None, after=1, seed=0, rows=100, kind=np.asarray):
        self.stop, self.after, self.seed, self.rows, self.kind = stop, after, seed, rows, kind
        self.passes = 0

    def __iter__(self):
        for number in range(2000 // self.rows):
            if number == self.stop and self.passes == self.after:
                raise StoppedError
            rng = np.random.default_rng([self.seed, number])
            X = rng.standard_normal((self.rows, 3))
            yield self.kind(X), np.sin(X[:, 0])
        self.passes += 1


LEARNERS = {
    "ridge": lambda: RandomFeatureRidge(features(), alpha=0.1),
    "folds": lambda: RandomFeatureRidgeCV(features(), alphas=[0.1, 1.0], cv=3),
    "loo": lambda: RandomFeatureRidgeCV(features(), alphas=[0.1, 1.0], cv="loo"),
}


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_stopped_fit_goes_on_to_the_same_bits(learner, kind, tmp_path):
    path = tmp_path / "run.gzk"
    whole = LEARNERS[learner]().fit(Batches(kind=kind))
    for stop, after in ((7, 1), (13, 0)):  # there is no survey when it goes on
        source = Batches(stop, after, kind=kind)
        with pytest.raises(StoppedError):
            LEARNERS[learner]().fit(source, checkpoint=Checkpoint(path, EVERY))
        assert path.exists()
    resumed = LEARNERS[learner]().fit(Batches(kind=kind), checkpoint=Checkpoint(path, EVERY))
    assert not path.exists()
    assert resumed.moments_.n_rows == 2000
    assert_array_equal(resumed.moments_.sums, whole.moments_.sums)
    assert_array_equal(resumed.coef_, whole.coef_)
    assert_array_equal(resumed.intercept_, whole.intercept_)


def test_rows_that_are_done_are_not_summed_again(tmp_path, monkeypatch):
    path = tmp_path / "run.gzk"
    with pytest.raises(StoppedError):
        LEARNERS["ridge"]().fit(Batches(13), checkpoint=Checkpoint(path, EVERY))
    seen = []
    original = RandomFeatureRidge._summands
    monkeypatch.setattr(
        RandomFeatureRidge, "_summands", lambda self, *rows: seen.append(1) or original(self, *rows)
    )
    LEARNERS["ridge"]().fit(Batches(), checkpoint=path)
    assert len(seen) == 20 - 13


def test_arrays_are_cut_into_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 300)
    X, y = (np.concatenate(part) for part in zip(*Batches(), strict=True))
    np.save(tmp_path / "X.npy", X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    model = RandomFeatureRidge(GegenbauerFeatures(Gaussian(), 40, basis="harmonic"))
    path = tmp_path / "run.gzk"
    whole = model.fit(X, y, weight, checkpoint=Checkpoint(path, EVERY))
    sums = whole.moments_.sums.copy()
    writes = []
    with monkeypatch.context() as patch:
        original = RandomFeatureRidge._summands

        def stop(self, *rows):
            writes.append(1)
            if len(writes) == 4:
                raise StoppedError
            return original(self, *rows)

        patch.setattr(RandomFeatureRidge, "_summands", stop)
        with pytest.raises(StoppedError):
            model.fit(X, y, weight, checkpoint=Checkpoint(path, EVERY))
    model.fit(X, y, weight, checkpoint=path)
    assert_array_equal(model.moments_.sums, sums)


def killed(folder, code, **settings):
    """Start a fit in a process of its own and kill it while it reads."""
    program = folder / "fit.py"
    program.write_text(textwrap.dedent(code))
    process = subprocess.Popen(
        [sys.executable, program.name],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | settings,
    )
    end = time.monotonic() + 60
    while not (folder / "now").exists() and time.monotonic() < end and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    return process.wait()


FIT = """
    import os, pathlib, sys, time
    import numpy as np
    from gzkcore import Checkpoint, Gaussian, GegenbauerFeatures, RandomFeatureRidgeCV

    class Batches:
        def __iter__(self):
            for number in range(30):
                if number == 17 and os.environ.get("WAIT"):
                    if self.passes == 3:
                        pathlib.Path("now").touch()
                        time.sleep(60)
                rng = np.random.default_rng(number)
                X = rng.standard_normal((600, 3))
                yield X, np.sin(X[:, 0])
            self.passes += 1
        passes = 0

    features = GegenbauerFeatures(Gaussian("scale"), 60, basis="harmonic")
    for name in ("killed", "whole"):
        model = RandomFeatureRidgeCV(features, alphas=[0.01, 1.0], cv=2)
        model.fit(Batches(), checkpoint=Checkpoint(f"{name}.gzk", 1e-9))
        np.savez(name, coef=model.coef_, sums=model.moments_.sums, n=model.moments_.n_rows)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_killed_process_goes_on_to_the_same_bits(tmp_path):
    """Passes 0 to 2 are the survey and the norms; in the fourth, the sums, comes the kill."""
    status = killed(tmp_path, FIT, WAIT="1")
    assert status == -signal.SIGKILL
    assert (tmp_path / "killed.gzk").exists()
    assert not (tmp_path / "killed.npz").exists()
    subprocess.run(
        [sys.executable, "fit.py"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    assert not list(tmp_path.glob("*.gzk"))
    whole, resumed = (np.load(tmp_path / f"{name}.npz") for name in ("whole", "killed"))
    assert whole["n"] == resumed["n"] == 18_000
    assert_array_equal(resumed["sums"], whole["sums"])
    assert_array_equal(resumed["coef"], whole["coef"])


@pytest.mark.parametrize(("learner", "source", "message"), [
    (RandomFeatureRidge(features(), alpha=0.2), Batches(), "alpha was another when"),
    (RandomFeatureRidge(features(0.4), alpha=0.1), Batches(), "features was another when"),
    (LEARNERS["folds"](), Batches(), "it is of a RandomFeatureRidge;"),
    (LEARNERS["ridge"](), Batches(seed=1), "the first 13 batches are not those"),
    (LEARNERS["ridge"](), Batches(rows=50), "the first 13 batches are not those"),
    (LEARNERS["ridge"](), list(Batches())[:9], "the data have 9 batches, it has seen 13"),
], ids=["alpha", "kernel", "class", "rows", "tiling", "fewer"])  # fmt: skip
def test_what_does_not_fit_is_refused(learner, source, message, tmp_path):
    path = tmp_path / "run.gzk"
    with pytest.raises(StoppedError):
        LEARNERS["ridge"]().fit(Batches(13), checkpoint=Checkpoint(path, EVERY))
    with pytest.raises(ValueError, match=rf"cannot resume from '.*': {message}") as refused:
        learner.fit(source, checkpoint=path)
    assert "delete the file to start afresh" in str(refused.value)
    assert path.exists()
    LEARNERS["ridge"]().fit(Batches(), checkpoint=path)  # still good


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.gzk"
    LEARNERS["ridge"]().fit(Batches()).save(path)
    with pytest.raises(ValueError, match="it holds a RandomFeatureRidge, not an unfinished fit"):
        LEARNERS["ridge"]().fit(Batches(), checkpoint=path)
    path.write_bytes(b"x" * 100)
    with pytest.raises(ValueError, match="cannot load"):
        LEARNERS["ridge"]().fit(Batches(), checkpoint=path)
    with pytest.raises(TypeError, match="checkpoint=3 is not a path"):
        LEARNERS["ridge"]().fit(Batches(), checkpoint=3)
    with pytest.raises(ValueError, match="seconds=0"):
        LEARNERS["ridge"]().fit(Batches(), checkpoint=Checkpoint("run.gzk", 0))
    with pytest.raises(ValueError, match="but X is an iterator"):
        LEARNERS["ridge"]().fit(iter(Batches()), checkpoint=tmp_path / "new.gzk")


def test_what_a_checkpoint_cannot_hold_is_said_before_the_pass(tmp_path):
    path = tmp_path / "run.gzk"
    with pytest.raises(TypeError, match=r"RBFSampler.*skops"):
        RandomFeatureRidge(RBFSampler()).fit(Batches(), checkpoint=path)
    grid = RandomFeatureRidgeCV(features(), kernel_grid={"gamma": [0.1, 0.3]})
    with pytest.raises(ValueError, match="a pass for each entry of kernel_grid"):
        grid.fit(Batches(), checkpoint=path)
    assert not path.exists()


def test_features_alone_are_not_gone_on_from(tmp_path, monkeypatch):
    """A fit that is killed before its first sums leaves features, and nothing tells of which rows."""
    path = tmp_path / "run.gzk"

    def make():
        return RandomFeatureRidge(GegenbauerFeatures(n_components=40, basis="harmonic"), alpha=0.1)

    with monkeypatch.context() as patched:
        patched.setattr(RandomFeatureRidge, "_summands", None)
        with pytest.raises(TypeError, match="not callable"):
            make().fit(Batches(seed=1), checkpoint=path)
    assert path.exists()
    resumed = make().fit(Batches(), checkpoint=path)
    assert_array_equal(resumed.moments_.sums, make().fit(Batches()).moments_.sums)


def test_a_place_that_takes_no_file_is_named_before_the_rows_are_read(tmp_path, monkeypatch):
    source = Batches()
    model = RandomFeatureRidge(GegenbauerFeatures(n_components=40))
    with pytest.raises(FileNotFoundError, match=r"run\.gzk': there is no folder"):
        model.fit(source, checkpoint=tmp_path / "no" / "run.gzk")
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file"):
        model.fit(source, checkpoint=tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    with pytest.raises(PermissionError, match="nothing may be written in"):
        model.fit(source, checkpoint=tmp_path / "run.gzk")
    with pytest.raises(TypeError, match="skops"):
        RandomFeatureRidge(RBFSampler()).fit(source, checkpoint=tmp_path / "run.gzk")
    assert source.passes == 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_write_left_is_removed(tmp_path):
    left = tmp_path / ".run[1].123.part.gzk"
    others = tmp_path / ".run2.123.part.gzk"
    left.touch(), others.touch()
    LEARNERS["ridge"]().fit(Batches(), checkpoint=tmp_path / "run[1].gzk")
    assert list(tmp_path.iterdir()) == [others]


@pytest.mark.parametrize("learner", [RandomFeatureRidge, RandomFeaturePCA])
def test_frames_keep_their_names_and_their_order(learner, tmp_path, monkeypatch):
    """Rows are cut by place, whatever their labels are; names of columns are kept and compared."""
    monkeypatch.setattr("gzkcore.passes.streams.ARRAY_ROWS", 300)
    X, y = (np.concatenate(part) for part in zip(*Batches(), strict=True))
    places = np.random.default_rng(0).permutation(2000) / 10
    frame = pd.DataFrame(X, columns=list("abc"), index=places)
    fits = {"checkpoint": tmp_path / "run.gzk"}
    found = learner(features()).fit(frame, y, sample_weight=2.0, **fits)
    assert_array_equal(found.feature_names_in_, list("abc"))
    wanted = learner(features()).fit(X, y, sample_weight=2.0, **fits)
    name = "predict" if learner is RandomFeatureRidge else "transform"
    assert_array_equal(getattr(found, name)(frame), getattr(wanted, name)(X))


@pytest.mark.parametrize(("learner", "how"), [
    *itertools.product([RandomFeatureRidge, RandomFeaturePCA, RandomFeatureCCA], ["arrays", "checkpoint"]),
    (RandomFeatureKMeans, "arrays"),
])  # fmt: skip
def test_a_bad_row_has_its_number_in_all_rows(learner, how, tmp_path):
    X = np.zeros((80_000, 3))
    X[:, 0] = np.arange(80_000) % 7
    frozen = FrozenEstimator(features().fit(X[:9]))
    bad = X.copy()
    bad[70_000, 1] = np.nan
    given = {"checkpoint": tmp_path / "run.gzk"} if how == "checkpoint" else {}
    model = learner(frozen) if learner is not RandomFeatureCCA else learner(frozen, frozen)
    message = r"Input X contains NaN. The first is in row 70000, column 1"
    for rows in (bad, pd.DataFrame(bad, columns=list("abc"))):
        with pytest.raises(ValueError, match=message):
            model.fit(rows, X if learner is RandomFeatureCCA else X[:, 0], **given)
    (tmp_path / "run.gzk").unlink(missing_ok=True)
    if learner is RandomFeatureCCA:
        with pytest.raises(ValueError, match=message.replace("X", "y")):
            model.fit(X, bad, **given)
