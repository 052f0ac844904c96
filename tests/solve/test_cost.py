"""What fits take in memory, by an estimate, and the form that is within it."""

import subprocess
import sys

import numpy as np
import pytest
from models import FOLDER

from gzkcore import KernelClassifier, KernelRegressor, load
from gzkcore._util.memory import bytes_of
from gzkcore.solve import cost
from gzkcore.solve.cost import (
    Room,
    centers_bytes,
    features_bytes,
    preconditioner_bytes,
    whole_bytes,
)
from gzkcore.tabular import form
from gzkcore.tabular.form import Form


def wave(n=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def room(given, n=100_000, dim=8, gathered=False):
    return Room((n, dim, 1), 1e-2, given, gathered=gathered)


def test_the_whole_kernel_is_taken_if_there_is_room():
    assert room(None, n=100).whole()
    assert room(2e9).whole()
    assert not room(1e8).whole()


def test_rows_of_a_source_are_put_together_only_where_there_is_room():
    needed = whole_bytes(100_000, 8, 1, preconditioner_bytes(100_000, 8, 1e-2))
    assert room(needed).whole()
    assert not room(needed, gathered=True).whole()


def test_there_are_as_many_centres_and_features_as_there_is_room_for():
    assert room(1e12).centers(20_000, 4096) == 20_000
    count = room(3e9).centers(20_000, 4096)
    assert 4096 < count < 20_000
    assert centers_bytes(100_000, 8, 1, count) <= 3e9
    assert room(1e8).centers(20_000, 4096) == 0
    assert room(1e12).centers(2000, 4096) == 0
    assert room(1e12).features(4096, 256) == 4096
    assert room(1e12, gathered=True).centers(20_000, 4096) == 1 << 14  # of the sample of a source
    assert room(1e12, gathered=True).centers(20_000, 20_000) == 20_000  # which is refused
    given = features_bytes(100_000, 8, 1000)
    assert 256 < room(given).features(4096, 256) <= 1000
    assert room(1e6).features(4096, 256) == 0
    assert room(1e6, n=20).features(20, 256) == 20  # fewer than the fewest, but one for each row


def test_what_was_left_out_is_told():
    some = room(1e6)
    assert some.left_out() == ""
    assert not some.whole()
    assert not some.features(4096, 256)
    told = some.left_out()
    assert told.startswith("Left out for memory, of which 1,000,000 bytes may be taken: ")
    assert "the whole kernel (" in told
    assert "4,096 features (" in told
    assert "3,072" not in told
    with pytest.raises(
        ValueError,
        match=r"^max_memory=1000000.* allows 1,000,000 bytes, but .*100,000 rows takes about .* features\)",
    ):
        raise some.too_little()


def test_half_of_what_is_available_is_taken(monkeypatch):
    monkeypatch.setattr(cost, "available_memory", lambda: 2e6)
    some = room(None)
    assert not some.whole()
    assert "half of what is available, 1,000,000 bytes" in some.left_out()
    monkeypatch.setattr(cost, "available_memory", lambda: None)
    assert room(None).whole()


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("learner", [KernelRegressor, KernelClassifier])
def test_the_form_is_one_there_is_room_for(learner, monkeypatch):
    monkeypatch.setattr(form, "MOST_FEATURES", 30)
    monkeypatch.setattr(form, "FEWEST_FEATURES", 10)
    X, y = wave()
    y = y if learner is KernelRegressor else y > 0
    whole = preconditioner_bytes(300, 2, 1.0)
    least = features_bytes(300, 2, 10)
    assert least < whole
    for max_memory, sentence in (
        (None, "Model: the whole kernel"),
        (2 * whole, "Model: the whole kernel"),
        ((whole + least) / 2, "features, since there is no room for the whole kernel"),
    ):
        model = learner(max_memory=max_memory, cv=2, random_state=0).fit(X, y)
        assert sentence in str(model.report_)
        assert ("Left out for memory" in str(model.report_)) == ("no room" in sentence)
        assert model.score(X, y) > 0.8
    with pytest.raises(ValueError, match=r"max_memory=1000 allows .* takes about [\d,]+ bytes"):
        learner(max_memory=1000, cv=2, random_state=0).fit(X, y)


def test_few_features_are_taken_where_there_is_room_for_nothing_else():
    X, y = wave()
    given = features_bytes(300, 2, 64)
    model = KernelRegressor(max_memory=given, cv=2, random_state=0).fit(X, y)
    assert "features, since there is no room for more." in str(model.report_)
    assert 32 <= model.model_.features_.n_components <= 64
    assert model.score(X, y) > 0.8


def test_centres_are_as_many_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(form, "FEWEST_CENTERS", 8)
    monkeypatch.setattr(form, "MOST_CENTERS", 32)
    monkeypatch.setattr(cost, "whole_bytes", lambda *_, **__: 1e12)
    X, y = wave()
    given = centers_bytes(300, 2, 1, 20)
    model = KernelRegressor(max_memory=given, cv=2, random_state=0).fit(X, y)
    assert 8 <= len(model.model_.X_fit_) <= 20
    assert "the whole kernel (1,000,000,000,000 bytes), 32 centres (" in str(model.report_)


@pytest.mark.slow
def test_time_yields_to_memory(monkeypatch):
    """Where there is room for the whole kernel alone, it is taken however long it takes."""
    monkeypatch.setattr(cost, "features_bytes", lambda *_: 1e12)
    X, y = wave()
    model = KernelRegressor(1e-9, max_memory=1e9, cv=2, random_state=0).fit(X, y)
    assert "Model: the whole kernel on 300 rows" in str(model.report_)


@pytest.mark.parametrize("given", [0, -1.0, np.inf, np.nan, "1 gig", "-1 GB", "GB", True])
def test_wrong_numbers_of_bytes_are_refused(given):
    with pytest.raises((ValueError, TypeError), match="max_memory="):
        KernelRegressor(max_memory=given).fit(*wave(20))


@pytest.mark.parametrize("given", [2e9, "2GB", "2 gb", "2e9", "2000000KB", " 2000 MB", "0.002TB"])
def test_bytes_are_told_in_words_too(given):
    assert bytes_of("max_memory", given) == 2e9


def test_a_message_has_the_words_that_were_given():
    told = str(room("1KB").too_little())
    assert told.startswith("max_memory=1KB allows 1,000 bytes, but")
    assert told.count("max_memory") == 1


def test_the_parameter_is_kept_in_files(tmp_path):
    for given in (1e9, "1GB"):
        model = KernelRegressor(max_memory=given, cv=2, random_state=0).fit(*wave(60))
        model.save(tmp_path / f"{given}.gzk")
        assert load(tmp_path / f"{given}.gzk").get_params()["max_memory"] == given


@pytest.mark.parametrize("name", ["kernel-regressor", "kernel-classifier"])
def test_models_older_than_the_parameter_have_its_default(name):
    assert load(FOLDER / f"{name}.gzk").get_params()["max_memory"] is None


# ---- beside what fits take


PEAK = """
import numpy as np
from gzkcore import Matern
from gzkcore._util.memory import PeakMemory
from gzkcore.tabular.form import Form

form, n, dim = {form}, {n}, {dim}
rng = np.random.default_rng(0)
X, y = rng.standard_normal((n, dim)), rng.standard_normal((n, 1))
kernel = Matern(1.5, dim**0.5)
form.model(kernel, 200).fit(X[:200], y[:200])  # libraries are loaded, threads are there
model = form.model(kernel, n)
peak = PeakMemory()
model.fit(X, y)
print(peak.bytes)
"""


@pytest.mark.weekly
@pytest.mark.skipif(sys.platform != "linux", reason="peaks begin anew on Linux alone")
@pytest.mark.parametrize(("form", "n", "dim", "estimate"), [
    (Form(0.01, 0), 3000, 8, whole_bytes(3000, 8, 1, preconditioner_bytes(3000, 8, 0.01))),
    (Form(0.01, 0), 6000, 8, whole_bytes(6000, 8, 1, preconditioner_bytes(6000, 8, 0.01))),
    (Form(0.01, 0), 20_000, 2, whole_bytes(20_000, 2, 1, preconditioner_bytes(20_000, 2, 0.01))),
    (Form(0.01, 0, centers=1000), 8000, 8, centers_bytes(8000, 8, 1, 1000)),
    (Form(0.01, 0, features=512), 6000, 8, features_bytes(6000, 8, 512)),
], ids=["matrix", "features and neighbours", "landmarks", "centres", "features"])  # fmt: skip
def test_estimates_are_near_the_peaks(form, n, dim, estimate, tmp_path):
    program = PEAK.format(form=form, n=n, dim=dim)
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=tmp_path)
    assert 0.5 < estimate / int(found.stdout) < 3
