"""run.py names what a machine lacks, and the command that installs it, before it creates anything."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trees import ROOT, needs_checkout

pytestmark = needs_checkout
SCRIPT = ROOT / "run.py"
JOB = "python3 run.py test"
DEBIAN = "sudo apt install"


@pytest.fixture
def script():
    """run.py as a module."""
    spec = importlib.util.spec_from_file_location("run", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def headers(tmp_path):
    """A folder with Python's header."""
    (tmp_path / "Python.h").touch()
    return str(tmp_path)


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder that is all of PATH, and no $CC."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return folder


def add_program(folder, name):
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("name", ["cc", "gcc", "clang"])
def test_any_usual_compiler_will_do(script, headers, path, name):
    assert "C compiler" in " ".join(script.lacking(headers))
    add_program(path, name)
    assert script.lacking(headers) == []


def test_the_compiler_of_the_environment_counts(script, headers, path, monkeypatch):
    add_program(path, "gcc")
    monkeypatch.setenv("CC", "mycc -O2")
    assert "mycc" in " ".join(script.lacking(headers))
    add_program(path, "mycc")
    assert script.lacking(headers) == []


def test_a_missing_header_is_named_with_its_folder(script, path, tmp_path):
    add_program(path, "cc")
    (fault,) = script.lacking(str(tmp_path / "include"))
    assert "Python.h" in fault
    assert str(tmp_path / "include") in fault


def test_a_missing_module_is_named(script, headers, path, monkeypatch):
    add_program(path, "cc")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ensurepip" else find(name)
    )
    (fault,) = script.lacking(headers)
    assert "ensurepip" in fault


def test_an_old_python_is_named(script, headers, path, monkeypatch):
    add_program(path, "cc")
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    (fault,) = script.lacking(headers)
    assert "3.11" in fault
    assert "with the newer Python" in script.advice([fault], None)


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ('ID=debian\nVERSION_ID="12"\n', DEBIAN),
        ('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', DEBIAN),
        ("ID=fedora\n", "sudo dnf install"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "sudo dnf install"),
        ("ID=alpine\n", "sudo apk add"),
    ],
)  # fmt: skip
def test_the_command_of_this_system_comes_first(script, tmp_path, monkeypatch, release, command):
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "os-release").write_text(release)
    lines = script.advice(["a C compiler"], script.this_system(tmp_path / "os-release")).split("\n")
    assert lines[1].strip().startswith(command)
    for other in (DEBIAN, "sudo dnf install", "sudo apk add", "xcode-select --install"):
        assert sum(other in line for line in lines) == 1


def test_macos_and_systems_that_are_not_listed(script, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert script.this_system(tmp_path / "gone") is None
    assert DEBIAN in script.advice(["a C compiler"], None)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "xcode-select" in script.advice(["a C compiler"], script.this_system()).split("\n")[1]


def test_nothing_is_created_on_a_machine_without_a_compiler(tmp_path):
    """As a newcomer starts it; the copy's folder would get the environment."""
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "bin").mkdir()
    env = {name: value for name, value in os.environ.items() if name != "CC"}
    done = subprocess.run(
        [sys.executable, "-P", tmp_path / "run.py", "demo"],
        env=env | {"PATH": str(tmp_path / "bin")}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "a C compiler" in done.stderr
    assert DEBIAN in done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bin", "run.py"]


@pytest.mark.parametrize(
    ("line", "installed", "command"),
    [
        ("demo", [], "gzkcore demo --force"),
        ("demo --seeds 1", [], "gzkcore demo --force --seeds 1"),
        ("demo --plot a.png", [], "gzkcore demo --plot a.png"),
        ("test -k alpha", ["test"], "pytest --numprocesses=auto -k alpha"),
        ("test --all", ["test"], "pytest --numprocesses=auto -m="),
        ("bench --bench special", ["bench", "test"], "asv run --quick --python=same --launch-method=forkserver --show-stderr --bench special"),
        ("papers block fig1", [], "python -P -m papers block fig1"),
        ("docs --numbers errors", ["test", "bench"], "python -P docs/write_numbers.py errors"),
        ("docs -D x=0", ["docs"], "sphinx-build --fail-on-warning --keep-going -D x=0 -b html docs build/docs"),
    ],
)  # fmt: skip
def test_jobs_install_their_groups_and_pass_options_on(
    script, monkeypatch, line, installed, command
):
    groups, commands = [], []
    monkeypatch.setattr(script, "lacking", lambda include: [])
    monkeypatch.setattr(script, "install", lambda *names, **options: groups.extend(names))
    monkeypatch.setattr(script, "run", lambda *words, **options: commands.append(words) or 0)
    monkeypatch.setattr(script, "step", lambda *words, **options: None)
    monkeypatch.setattr(sys, "argv", ["run.py", *line.split()])
    assert script.main() == 0
    assert groups == installed
    words = [word.name if isinstance(word, Path) else word for word in commands[-1]]
    assert " ".join(words) == command


@pytest.mark.parametrize("line", ["", "help", "--help"])
def test_without_a_job_all_are_explained(script, monkeypatch, capsys, line):
    monkeypatch.setattr(sys, "argv", ["run.py", *line.split()])
    assert script.main() == 2
    assert "python3 run.py demo" in capsys.readouterr().out


@pytest.fixture
def logged(script, tmp_path, monkeypatch):
    """run.py with its log in a folder of its own."""
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "LOG", tmp_path / ".venv" / "log.txt")
    return script


def test_a_step_says_what_it_does_and_its_seconds_and_keeps_the_rest_in_the_log(logged, capfd):
    logged.step("Making tea", sys.executable, "-c", "print('WARNING: Location is ignored')")
    assert re.fullmatch(r"Making tea \.\.\. \d+ s\n", capfd.readouterr().out)
    assert "WARNING: Location is ignored" in logged.LOG.read_text()


def test_a_step_that_fails_shows_its_last_lines_and_names_the_log(logged, capfd):
    with pytest.raises(SystemExit, match=r"Making tea.*\.venv/log\.txt"):
        logged.step("Making tea", sys.executable, "-c", "raise SystemExit('no water')")
    assert "no water" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bogus", "there is no job bogus; use one of demo, test, "),
        ("tets -k alpha", r"there is no job tets \(did you mean test\?\); use one of"),
        ("check --fast", "check takes no options; leave out --fast"),
        ("package all", "package takes no options; leave out all"),
    ],
)
def test_wrong_words_are_named_with_the_jobs(script, monkeypatch, line, message):
    monkeypatch.setattr(sys, "argv", ["run.py", *line.split()])
    with pytest.raises(SystemExit, match=message):
        script.main()


def test_an_older_python_can_parse_the_script():
    """So that it gets as far as saying that it is too old."""
    ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 8))
    with pytest.raises(SyntaxError):  # the check can fail
        ast.parse("match 1:\n    case 1: pass\n", feature_version=(3, 8))


def test_each_job_is_explained_and_each_explained_is_a_job(script):
    assert set(re.findall(r"^python3 run.py (\w+)", script.__doc__, re.MULTILINE)) == set(
        script.JOBS
    )


def test_documents_name_jobs_that_there_are(script):
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / ".github").rglob("*.yml")]
    texts = [path.read_text(encoding="utf-8") for path in [*files, ROOT / ".ci" / "run"]]
    named = {job for text in texts for job in re.findall(r"python3? run\.py (\w+)", text)}
    assert named <= set(script.JOBS)
    assert len(named) > 8


def test_the_gate_starts_the_tests_as_the_readme_says():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = readme.partition("```\n")[2].partition("```")[0]
    assert "python3 run.py demo" in block
    assert JOB in block
    assert JOB in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_page_on_installing_has_the_same_commands(script):
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for system, command in script.INSTALL.items():
        assert f"| {system} | `{command.format(python='python3')}` |" in page
