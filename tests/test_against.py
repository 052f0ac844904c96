"""Comparing two versions: what is confirmed, what passes, what fails, on packages made up here.

The versions are modules that sleep; asv_bench/against_itself.py does the same with the real package.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from trees import ROOT, needs_checkout

SCRIPT = Path(__file__).resolve().parents[1] / "asv_bench" / "against.py"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="there are no benchmarks here")

BENCHMARKS = """
import time
import made_up

class Call:
    params = (["gzkcore", "numpy"], [1, 2])
    param_names = ("library", "times")

    def setup(self, library, times):
        assert library == "gzkcore"

    def time_call(self, library, times):
        time.sleep(times * made_up.SECONDS)

    def time_numpy(self, library, times):
        raise AssertionError

class New:
    def setup(self):
        self.function = made_up.function

    def time_it(self):
        self.function()

class _Base:
    def time_nothing(self):
        raise AssertionError
"""


@pytest.fixture
def against(tmp_path, monkeypatch):
    """The script, with benchmarks of its own, and less patience."""
    spec = importlib.util.spec_from_file_location("against", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "against", module)
    spec.loader.exec_module(module)
    copy = tmp_path / "asv_bench" / "against.py"
    (copy.parent / "benchmarks").mkdir(parents=True)
    copy.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    (copy.parent / "benchmarks" / "__init__.py").touch()  # some installed packages have one too
    (copy.parent / "benchmarks" / "made.py").write_text(BENCHMARKS)
    monkeypatch.setattr(module, "__file__", str(copy))
    return module


def version(folder, seconds, more=""):
    folder.mkdir()
    (folder / "made_up.py").write_text(f"SECONDS = {seconds}\n{more}")
    return folder


@pytest.mark.weekly
def test_what_is_slower_is_confirmed_and_the_same_passes(against, tmp_path):
    old = version(tmp_path / "old", 0.004, "def function(): pass\n")
    new = version(tmp_path / "new", 0.008)
    found = {name: verdict for name, _, verdict in against.compare(old, new, "made.Call")}
    assert found == {f"made.Call.time_call(gzkcore, {times})": "SLOWER" for times in (1, 2)}
    rows = list(against.compare(new, old, ""))
    assert {name: verdict for name, _, verdict in rows} == {
        **{f"made.Call.time_call(gzkcore, {times})": "faster" for times in (1, 2)},
        "made.New.time_it": "not compared",
    }
    assert "has no attribute 'function'" in against.table(rows)[-1]
    again = {verdict for _, _, verdict in against.compare(old, old, "Call")}
    assert "SLOWER" not in again


def test_what_only_the_new_version_cannot_run_fails(against, tmp_path):
    old = version(tmp_path / "old", 0, "def function(): pass\n")
    new = version(tmp_path / "new", 0)
    ((name, result, verdict),) = against.compare(old, new, "New")
    assert (name, verdict) == ("made.New.time_it", "failed")
    assert "has no attribute 'function'" in result.failed
    ended = version(
        tmp_path / "ended", 0, f"def function(): import os; os.{os._exit.__name__}(3)\n"
    )
    ((_, result, verdict),) = against.compare(old, ended, "New")
    assert verdict == "failed"
    assert result.failed == "the process ended with status 3"


class Process:
    """Answers as the process of a version does, and fails in a visit."""

    def __init__(self, fails_in):
        self.left = fails_in

    def ask(self, *_):
        pass

    def answer(self):
        return 0.0

    def told(self, *_):
        self.left -= 1
        return 1.0 if self.left else {"failed": "it is tired"}


@pytest.mark.parametrize(("fails_in", "failed"), [(1, True), (3, True), (4, False)])
def test_what_fails_in_any_round_fails(against, fails_in, failed):
    found = against.measure((Process(9), Process(fails_in)), "it", 3, 0.0)
    assert found.failed == ("it is tired" if failed else "")


@pytest.mark.parametrize(("pairs", "slower"), [
    ([(1.0, 1.2)] * 8, True), ([(1.0, 1.1)] * 8, False),
    ([(1.0, 1.2)] * 5 + [(1.2, 1.0)] * 3, False), ([(1.0, 1.2)] * 6 + [(1.2, 1.0)] * 2, True),
])  # fmt: skip
def test_most_rounds_have_to_be_slower(against, pairs, slower):
    assert against.Result(pairs).slower() == slower


def test_the_subset_of_ci_finds_benchmarks(against):
    folder = SCRIPT.parent / "benchmarks"
    for one in against.QUICK.split("|^"):
        module = one.lstrip("^").split("\\.")[0]
        assert (folder / f"{module}.py").is_file(), module


@needs_checkout
@pytest.mark.skipif(not (shutil.which("git") and shutil.which("bash")), reason="no git, or no bash")
def test_ci_compares_with_a_commit_that_is_there(tmp_path):
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    job = text.partition("\n  slower:\n")[2].partition("\n\n")[0]
    step = re.search(r"- run: (?:\|\n)?((?:.*\n)+?)        env:\n", job)[1]
    script = textwrap.dedent(step).replace("python run.py", "echo")

    def git(*command):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        done = ["git", *who, *command]
        return subprocess.check_output(done, cwd=tmp_path, text=True).strip()

    def compared(before):
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path, env=os.environ | {"BEFORE": before},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()[-1]

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "first")
    missing = ["0" * 40, "1" * 40, "HEAD^1"]
    assert {compared(each) for each in missing} == {"There is no commit before this one."}
    first = git("rev-parse", "HEAD")
    for message in ("second", "third"):
        git("commit", "--quiet", "--allow-empty", "-m", message)
    assert {compared(each) for each in missing} == {"bench --against HEAD^1 --quick"}
    assert compared(first) == f"bench --against {first} --quick"
