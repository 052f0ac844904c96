"""Jobs that are killed at random moments: done again they give the same bits, and nothing is half.

A program that tests start: python tests/kills.py JOB COUNT SEED
does a job once. Then it starts the job in an empty folder in a separate process, kills this process
at a random moment, checks the files that it has left, perhaps kills it again, and at last lets the
job finish; the resulting files must be the same. It repeats this until COUNT kills have hit a
working process. It prints the number of kills, and how many left a checkpoint.
"""

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import dask
import dask.array as da
import numpy as np

import gzkcore as gzk
from gzkcore.cli import fit_frame, main  # noqa: F401  imported before the clock runs

EVERY = 1e-9  # seconds: a checkpoint after each step


class Job(NamedTuple):
    """What is killed, what it finds in its folder, and which of the files it writes is a result."""

    do: Callable[[], None]
    begin: Callable[[], None] = lambda: None
    told: Callable[[bytes], object] = lambda content: content


# ---- fits


def features():
    return gzk.RandomFourierFeatures(gzk.Gaussian(0.3), 40, random_state=0)


def targets(X):
    return np.sin(3 * X[:, 0]) + X[:, 1]


def labels(X):
    return np.where(X[:, 0] > 0, "up", "down")


def second_view(X):
    return X[:, ::-1] ** 3


class Batches:
    """Twenty batches of rows and what goes with them, the same in every pass."""

    def __init__(self, of):
        self.of = of

    def __iter__(self):
        for number in range(20):
            X = np.random.default_rng(number).standard_normal((300, 3))
            yield (X, self.of(X)) if self.of else X


def in_batches(of):
    return lambda: (Batches(of),)


def on_sphere():
    return ([(X / np.linalg.norm(X, axis=1)[:, None], y) for X, y in Batches(targets)],)


def whole(of):
    X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    return lambda: (X, of(X))


def chunks():
    """Return Dask collections of so many chunks that a fit keeps several checkpoints."""
    X = np.random.default_rng(0).standard_normal((3000, 3))
    return da.from_array(X, chunks=(10, 3)), da.from_array(targets(X), chunks=10)


def fitting(make, data):
    """Return the job of a fit with a checkpoint after each step, whose model is saved."""

    def do():
        model = make()
        with dask.config.set(scheduler="threads", num_workers=2):
            model.fit(*data(), checkpoint=gzk.Checkpoint("run.gzk", EVERY))
        gzk.save(model, "model.gzk")

    return Job(do)


STEPS = {"tol": 1e-8, "preconditioner": 15, "random_state": 0}
FITS = {
    "ridge": (lambda: gzk.RandomFeatureRidge(features(), 0.1), in_batches(targets)),
    "ridge-cg": (lambda: gzk.RandomFeatureRidge(features(), 0.1, solver="cg", tol=1e-8), in_batches(targets)),
    "series-ridge": (lambda: gzk.SeriesRidge(gzk.Gaussian(1.0), 1.0, degree=12), on_sphere),
    "ridge-cv": (lambda: gzk.RandomFeatureRidgeCV(features(), alphas=[0.1, 1.0], cv=3), in_batches(targets)),
    "ridge-classifier": (lambda: gzk.RandomFeatureRidgeClassifier(features(), 0.1), in_batches(labels)),
    "ridge-classifier-cv": (lambda: gzk.RandomFeatureRidgeClassifierCV(features(), alphas=[0.1, 1.0], cv=2), in_batches(labels)),
    "pca": (lambda: gzk.RandomFeaturePCA(features(), 3), in_batches(None)),
    "cca": (lambda: gzk.RandomFeatureCCA(features(), features(), n_components=2), in_batches(second_view)),
    "kernel-ridge": (lambda: gzk.KernelRidge(gzk.Matern(), 1e-3, **STEPS), whole(targets)),
    "kernel-ridge-centers": (lambda: gzk.KernelRidge(gzk.Matern(), 1e-3, centers=60, tol=1e-8, random_state=0), whole(targets)),
    "kernel-ridge-cv": (lambda: gzk.KernelRidgeCV(gzk.Matern(), alphas=[1e-2, 0.1], cv=2, **STEPS), whole(targets)),
    "kernel-ridge-classifier": (lambda: gzk.KernelRidgeClassifier(gzk.Matern(), 1e-2, **STEPS), whole(labels)),
    "kernel-ridge-classifier-cv": (
        lambda: gzk.KernelRidgeClassifierCV(gzk.Matern(), alphas=[1e-2, 0.1], cv=2, **STEPS),
        whole(labels),
    ),
    "dask": (lambda: gzk.RandomFeatureRidge(features(), 0.1), chunks),
}  # fmt: skip


# ---- what else writes files


def save():
    """Save two large models by turns to one path."""
    X = np.zeros((1, 9))
    models = [
        gzk.RandomFourierFeatures(gzk.Gaussian(gamma), 30_000, random_state=0).fit(X)
        for gamma in (0.5, 1.0)
    ]
    for i in range(12):
        gzk.save(models[i % 2], "model.gzk")


def command(*arguments):
    """Return the job of a command on a table, after a model of it was fitted."""

    def do():
        if code := main.main(list(arguments)):
            raise SystemExit(code)

    return do


def write_table():
    X = np.random.default_rng(0).standard_normal((20_000, 3)).round(4)
    lines = [",".join(map(repr, row)) for row in np.column_stack([X, targets(X)]).tolist()]
    Path("table.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")


def write_table_and_model():
    write_table()
    command("fit", "table.csv", "--target", "y", "--features", "50", "--model", "model.gzk")()


def compare():
    X = np.random.default_rng(0).standard_normal((300, 3))
    gzk.compare(
        X, methods=["fourier-iid", "nystrom-uniform"], n_components=[8, 16], n_seeds=2,
        random_state=0, output="found.json",
    )  # fmt: skip


def without_times(content):
    """Return the results in a file, but for what a clock and the machine say."""
    kept = json.loads(content)["experiments"]
    for experiment in kept.values():
        for found in experiment["jobs"].values():
            for measured in ("fit_seconds", "row_seconds", "megabytes"):
                found.pop(measured, None)
    return kept


JOBS = {name: fitting(*given) for name, given in FITS.items()} | {
    "save": Job(save),
    "fit": Job(  # by force, as predict: a kill may meet them once their files are there
        command(
            "fit",
            "table.csv",
            "--target",
            "y",
            "--features",
            "50",
            "--model",
            "model.gzk",
            "--force",
        ),
        write_table,
    ),
    "predict": Job(
        command("predict", "model.gzk", "table.csv", "--output", "out.csv", "--force"),
        write_table_and_model,
    ),
    "compare": Job(compare, told=without_times),
}


# ---- kills


def started(work):
    """Start a piece of work in a child of this process, and return its number when it begins."""
    ready, begins = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            out = os.open("said.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.write(begins, b".")
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(begins)
    os.read(ready, 1)
    os.close(ready)
    return child


def done(child):
    """Wait for a child to end by itself."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = Path("said.log").read_text()
    Path("said.log").unlink()
    assert status == 0, said


def killed(child, moment):
    """Kill a child after so many seconds; return whether that met it at work."""
    end = time.monotonic() + moment
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(1e-4)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def visible():
    """Return the contents of the files of this folder but for hidden ones, which may be half."""
    paths = [path for path in Path().iterdir() if path.name[0] != "." and path.name != "said.log"]
    return {path.name: path.read_bytes() for path in sorted(paths)}


def look(job, wanted):
    """Assert that what a kill has left is whole: the file as it will be, or one that can be read."""
    for name, content in visible().items():
        if content == wanted.get(name):
            continue
        if name.endswith(".json"):
            kept = job.told(content)
            for experiment, found in kept.items():
                there = wanted[name][experiment]["jobs"]
                assert all(there[key] == one for key, one in found["jobs"].items())
        elif ".gzk" in name:
            gzk.load(name)
        else:
            raise AssertionError(f"{name} is half: {len(content)} bytes")


def results(job):
    return {name: job.told(content) for name, content in visible().items()}


@contextlib.contextmanager
def folder(job):
    """Work in a folder of its own, as the job is to find it."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        done(started(job.begin))
        yield


def trial(job, count, seed):
    """Kill a job so often; return what came of it."""
    rng, counts, seconds = random.Random(seed), Counter(), []
    for _ in range(2):
        with folder(job):
            begun = time.monotonic()
            done(started(job.do))
            seconds.append(time.monotonic() - begun)
            wanted = results(job)
    while counts["kills"] < count:
        with folder(job):
            again = True
            while again:
                met = killed(started(job.do), rng.uniform(0, max(seconds)))
                look(job, wanted)
                counts["kills"] += met
                counts["checkpoints"] += met and Path("run.gzk").exists()
                again = met and rng.random() < 0.5
            done(started(job.do))
            assert results(job) == wanted
            left = [path.name for path in Path().iterdir() if path.name[0] == "."]
            assert not left, left
    return {"kills": counts["kills"], "checkpoints": counts["checkpoints"], "seconds": seconds}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, count, seed = sys.argv[1:]
    sys.stdout.write(json.dumps(trial(JOBS[name], int(count), int(seed))) + "\n")
