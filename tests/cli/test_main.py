"""The command `gzkcore`: help, exit codes, and what it does without its extra."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import refuse, run

import gzkcore
from gzkcore.cli import main as cli

testing = pytest.importorskip("typer.testing", reason="the extra `cli` is not installed")

COMMANDS = ["demo", "fit", "predict", "plan", "compare", "info"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    result = testing.CliRunner().invoke(cli.app(), [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: gzkcore {command}" in result.output
    assert "<bool>" not in result.output
    assert "[default: (" not in result.output


def test_no_command(capsys):
    assert cli.main([]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert all(command in out for command in COMMANDS)


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gzkcore {gzkcore.__version__}\n"


QUICKLY = """
import sys
from gzkcore.__main__ import main
sys.argv[1:] = {arguments!r}
code = main()
heavy = {{"numpy", "scipy", "sklearn", "matplotlib", "pyarrow"}} & set(sys.modules)
assert (code, heavy) == (0, set()), (code, heavy)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["--version"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    subprocess.run([sys.executable, "-c", QUICKLY.format(arguments=arguments)], check=True)


@pytest.mark.parametrize("arguments", [["fit", "--help"], ["info", "--json"]], ids=" ".join)
def test_a_reader_that_has_seen_enough(arguments):
    """As head -1 does, which closes the pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "gzkcore", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("shell", "typed"),
    [
        ("bash", {"COMP_WORDS": "gzkcore fit --targ", "COMP_CWORD": "2"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "gzkcore fit --targ"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "gzkcore fit --targ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)  # fmt: skip
def test_shells_complete_options(shell, typed):
    environment = os.environ | typed | {"_GZKCORE_COMPLETE": f"complete_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "gzkcore"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "--target" in done.stdout
    assert "--plot" not in done.stdout


INTERRUPTED = """
import sys
from gzkcore.__main__ import main

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
sys.argv[1:] = ["info"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_interrupt_of_an_import(module):
    """Ctrl-C before the work: exit code 130 and one line."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.strip().startswith("gzkcore: interrupted")
    assert done.stderr.strip().count("\n") == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", [[], ["--json"]], ids=["text", "JSON"])
def test_a_full_disk_behind_standard_output(option):
    """One line and exit code 2, not a failure of the last flush."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with full.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "gzkcore", "info", *option],
            stdout=out, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2,
        "gzkcore: could not write: No space left on device\n",
    )


def test_out_of_memory(capsys, monkeypatch):
    def exhaust(*_, **__):
        raise MemoryError("Unable to allocate 7 GiB")

    monkeypatch.setattr("gzkcore.rows.files.open_table", exhaust)
    Path("data.csv").write_text("a,y\n1,2\n")
    for arguments in (["fit", "data.csv", "--target", "y"], ["plan", "data.csv"]):
        assert refuse(capsys, *arguments) == "there is not enough memory; Unable to allocate 7 GiB"


@pytest.mark.slow
def test_a_table_that_memory_cannot_hold(capsys, monkeypatch):
    """It is read in passes; with groups, some of its rows are drawn. Both are told."""
    x = np.random.default_rng(0).standard_normal(1000)
    rows = (f"{a},{'red' if a > 0 else 'blue'},{2 * a + a**2}" for a in x)
    Path("data.csv").write_text("a,color,y\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr("gzkcore.rows.frames.available_memory", lambda: 30_000)
    result = run(capsys, "fit", "data.csv", "--target", "y")
    (note,) = result["notes"]
    n_rows = int(re.search(r"(\d+) of 1,000 rows of data.csv fit into memory", note)[1])
    assert 60 < n_rows < 400
    assert "in passes" in note
    assert note.endswith("are all that the baselines learn from")
    assert (result["train_rows"], result["folds"]) == (900, None)
    assert 0 < result["test_rows"] < n_rows / 5
    grouped = ["--test-groups", "color", "--test-fraction", "0.5"]
    (*_, note) = run(capsys, "fit", "data.csv", "--target", "y", *grouped)["notes"][:1]
    assert re.search(r"learned from (\d+) of 1,000 rows", note)
    reason = refuse(capsys, "fit", "data.csv", "--target", "y", "--memory", "1KB", "--force")
    assert re.search(r"\d of 1,000 rows of data.csv fit into --memory, 1,000 bytes, and", reason)


@pytest.mark.parametrize(("arguments", "reason"), [
    ("fits", "there is no command 'fits' (did you mean 'fit'?); use one of demo, fit, predict"),
    ("fit", "Missing argument 'DATA'. Example: gzkcore fit houses.csv --target price"),
    ("fit d.csv", "Missing option '--target'. d.csv: there is no such file."),
    ("fit d.xlsx", "Missing option '--target'. d.xlsx: there is no such file."),
    ("predict m.gzk d.csv", "Missing option '--output'. Example: gzkcore predict m"),
    ("fit d.csv --features 0", "--features must be a whole number >= 1; got 0"),
    ("fit d.csv --target y --test-fraction 2", "must be a number between 0 and 0.9; got 2"),
    ("fit d.csv --test-fraction=-3", "must be a number between 0 and 0.9; got -3"),
    ("fit d.csv --seed 0 --seed x", "--seed must be a whole number >= 0; got x"),
    ("fit d.csv --time x", "--time must be a number; got x"),
    ("fit d.csv --target y --centers 0", "a whole number >= 1; got 0"),
    ("info --colour", "No such option: --colour"),
    ("fit d.csv --tset-last x", "No such option: --tset-last (Possible options: --test-last)"),
])  # fmt: skip
def test_usage(capsys, arguments, reason):
    assert reason in refuse(capsys, *arguments.split())


def test_without_a_target_the_columns_are_told(capsys):
    Path("d.csv").write_text("a,b\n1,2\n")
    reason = refuse(capsys, "fit", "d.csv")
    assert "Missing option '--target'. The columns of d.csv are a, b." in reason


@pytest.mark.slow
def test_without_the_extra():
    """The command says how to get what it needs; importing gzkcore needs none of it."""
    code = """
import sys
import sklearn.metrics, sklearn.preprocessing  # which import what is installed themselves
before = set(sys.modules)
import gzkcore
heavy = {"typer", "rich", "matplotlib", "pyarrow", "airportsdata", "dask"}
assert not heavy & (set(sys.modules) - before), heavy & set(sys.modules)
sys.modules["typer"] = None
from gzkcore.cli.main import main
sys.exit(main(["info"]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr == (
        "gzkcore: the command needs more packages: pip install '.[cli]' in the clone\n"
    )
