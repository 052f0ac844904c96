"""The README's examples run, and print what is written beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from trees import ROOT, needs_checkout

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8") if README.exists() else ""
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
TELLS = re.compile(r"^print\(.*\)  # ", re.MULTILINE)


def evenly_spaced(text):
    return re.sub(r"\[ +", "[", re.sub(r" +", " ", text))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_print_what_is_beside_them(example, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", example],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    if TELLS.search(example):
        for line in evenly_spaced(done.stdout).splitlines():
            assert line in evenly_spaced(example)


@needs_checkout
def test_all_examples_tell_their_result():
    assert len(EXAMPLES) > 1
    assert all(map(TELLS.search, EXAMPLES))


def words_but_times(text):
    """Return the words of what `fit` prints, without the times and lines of its table."""
    return re.sub(r"(?m)(< )?[\d.]+ s\s*$|[─\s]+", " ", text).split()


@needs_checkout
@pytest.mark.slow
def test_the_first_five_minutes_print_what_is_beside_them(tmp_path):
    pytest.importorskip("airportsdata", reason="the extra `cli` is not installed")
    section = TEXT.partition("## The first five minutes")[2]
    commands, printed = re.findall(r"```(?:text)?\n(.*?)```", section, re.DOTALL)[:2]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = " ".join(words_but_times(done.stdout))
    for part in printed.split("\n\n"):
        assert " ".join(words_but_times(part)) in words
    for *_, mean, std in np.loadtxt(tmp_path / "elevations.csv", delimiter=",", skiprows=1):
        assert f"{mean:.0f} ± {std:.0f}" in commands
