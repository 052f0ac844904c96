"""The README's examples run, and print what is written beside them."""

import re
import subprocess
import sys

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
def test_all_examples_but_one_tell_their_result():
    """The other prints a page."""
    assert sum(bool(TELLS.search(example)) for example in EXAMPLES) >= len(EXAMPLES) - 1 > 3
