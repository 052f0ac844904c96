"""The file of results: kept while running, gone on from, shared by two, refused where it is of others."""

import functools
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from comparisons import QUICK, compared
from points import gaussian
from scipy import sparse

import gzkcore
from gzkcore import Gaussian, Zonal
from gzkcore._util import files
from gzkcore.evaluate.compare import _about_kernel
from gzkcore.evaluate.methods import on_sphere
from gzkcore.evaluate.results import digest


def kept_in(path):
    """Return what a file has of a comparison, by key."""
    return json.loads(path.read_text())["experiments"]["compare"]["jobs"]


@pytest.mark.usefixtures("in_process")
def test_kernels_of_functions_have_no_addresses(tmp_path):
    X, path = gaussian(60, 3), tmp_path / "results.json"
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Zonal(functools.partial(on_sphere, 0.5))
    found = compared(X, kernel=kernel, methods=["fourier-iid"], output=path)
    assert "<function on_sphere>" in found.kernel
    assert " at 0x" not in path.read_text().split("jobs")[0]


def test_checksums_tell_rows_apart():
    """Of sparse rows with the same entries in the same columns, too, and of a kernel's arrays."""
    parts = np.ones(3), np.array([0, 1, 0])
    one, other = (sparse.csr_array((*parts, ends)) for ends in ([0, 2, 3], [0, 1, 3]))
    assert digest(one) == digest(one.copy())
    assert digest(one) != digest(other)
    gamma = np.ones(1001)
    longer = np.where(np.arange(1001) == 500, 2.0, gamma)
    texts = {_about_kernel(kernel, kernel) for kernel in map(Gaussian, (gamma, longer))}
    assert len(texts) == 2


def test_places_that_cannot_be_written_are_found_first(tmp_path, monkeypatch, in_process):
    path = tmp_path / "results.json"
    with monkeypatch.context() as patched:
        patched.setattr(files.os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match=rf"'{path}': nothing may be written in"):
            compared(gaussian(60, 3), output=path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        compared(gaussian(60, 3), output=tmp_path / "no" / "results.json")
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        compared(gaussian(60, 3), output=path)
    assert in_process == []


def test_results_are_kept_and_gone_on_from(tmp_path, in_process):
    X, path = gaussian(80, 3), tmp_path / "results.json"
    first = compared(X, methods=QUICK[:2], n_seeds=1, output=path)
    in_process.clear()
    assert compared(X, methods=QUICK[:2], n_seeds=1, output=path).rows == first.rows
    assert in_process == []
    more = compared(X, methods=QUICK[1:], n_components=[16, 32], output=path, random_state=None)
    assert in_process == [
        ("fourier-iid", 16, [0, 1]),
        ("sklearn-RBFSampler", 16, [0, 1]),
        ("fourier-iid", 32, [1]),
        ("sklearn-RBFSampler", 32, [0, 1]),
    ]
    assert {row["n_components"] for row in more.rows} == {16, 32}
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]
    for options in (
        {"random_state": 1},
        {"kernel": "laplacian"},
        {"max_samples": 30},
        {"lam": 2.0},
    ):
        with pytest.raises(ValueError, match="give another output, or delete the file"):
            compared(X, **{"output": path} | options)
    with pytest.raises(ValueError, match=r"data was 80 x 3 float64, .*, and is 80 x 3 .* now"):
        compared(X + 1, output=path)
    with pytest.raises(ValueError, match="targets was None, and is 80 float64"):
        compared(X, X[:, 0], output=path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="is not a result of compare"):
        compared(X, output=path)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("before", "after", "said"), [
    ('"lam": 1.0,', "", "KeyError: 'lam'"),
    ('"fit_seconds"', '"seconds"', "KeyError: 'fit_seconds'"),
    ('"error": ', '"error": "bad", "e": ', "TypeError: error is 'bad'"),
    ('"rmse"', '"mse"', "KeyError: 'rmse'"),
    ('"seed": ', '"seed": "a", "s": ', "TypeError: seed is 'a'"),
    ('"lam": 1.0,', '"lam": NaN,', "ValueError: lam is nan"),
    ('"jobs": {', '"jobs": {"a / 8": {"reason": 1},', "TypeError: reason is 1"),
    ('"jobs": {', '"jobs": {"a / 8": {"limit": "1"},', "TypeError: limit is '1'"),
    ('"experiments"', '"cells"', "KeyError: 'experiments'"),
])  # fmt: skip
def test_results_that_lack_something_are_refused(tmp_path, before, after, said):
    X, path = gaussian(60, 3), tmp_path / "results.json"
    options = {"methods": ["fourier-iid"], "n_seeds": 1, "output": path}
    compared(X, X[:, 0], **options)
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(ValueError, match=re.escape(f"of this version ({said})")):
        compared(X, X[:, 0], **options)


@pytest.mark.usefixtures("in_process")
def test_two_comparisons_with_one_file_keep_what_both_have_done(tmp_path):
    X, path = gaussian(60, 3), tmp_path / "results.json"

    def meanwhile(_, share, now):
        if now == "fourier-iid, 32" and share == 0:
            compared(X, methods=["fourier-iid", "gegenbauer"], n_seeds=3, output=path)

    compared(X, methods=["fourier-iid"], output=path, report=meanwhile)
    methods = [key.split(" / ")[0] for key in kept_in(path)]
    assert {name: methods.count(name) for name in methods} == {"fourier-iid": 3, "gegenbauer": 3}

    def other(_, share, __):
        if share == 0:
            compared(X + 1, output=path)

    path.unlink()
    with pytest.raises(ValueError, match="data was 60 x 3 float64"):
        compared(X, output=path, report=other)
    assert len(kept_in(path)) == 6


COMPARE = """
import sys, numpy as np, gzkcore
X = np.random.default_rng(0).standard_normal((5000, 3))
gzkcore.compare(X, methods=["fourier-iid", "nystrom-rpcholesky"], n_components=[8, 2048],
                n_seeds=50, random_state=0, output=sys.argv[1])
"""


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("how", [
    pytest.param(signal.SIGKILL, marks=pytest.mark.slow),
    pytest.param(signal.SIGINT, marks=pytest.mark.weekly),
], ids=str)  # fmt: skip
def test_a_killed_comparison_leaves_what_it_has_done(tmp_path, how):
    path = tmp_path / "results.json"
    process = subprocess.Popen(
        [sys.executable, "-c", COMPARE, path], stderr=subprocess.PIPE, cwd=tmp_path
    )
    try:
        deadline = time.monotonic() + 60
        while not path.exists() or len(kept_in(path)) < 2:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(how)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode in (-how, 130, 1), said
    kept = kept_in(path)
    runs = [kept[f"fourier-iid / 8 / {seed}"] for seed in range(2)]
    X = gaussian(5000, 3)
    found = gzkcore.compare(
        X, methods=["fourier-iid"], n_components=8, n_seeds=2, random_state=0, output=path
    )
    assert found.rows[0]["error"] == np.mean([run["error"] for run in runs])
    assert kept_in(path) == kept  # nothing was done again
