"""Checkers of trees of files: each takes the root of one, and yields what is wrong there.

What test_layout.py and test_docs.py share. A checker must pass a right tree, and notice each fault that
is made in one: {checker: [(path, text of the file there or None, what is said of it), ...]}.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
needs_checkout = pytest.mark.skipif(
    not (ROOT / "meson.build").is_file(),
    reason="the tests run away from a checkout, so there is nothing to look at",
)


def write_tree(root, files):
    """Write {path: text} under a root; None leaves a file out."""
    for path, text in files.items():
        if text is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
    return root


def short(checker):
    """Name a checker in a test's id."""
    return checker.__name__.removeprefix("check_")


def faults_of(checkers):
    """Return each checker with each of its faults, for tests."""
    return [
        pytest.param(checker, *fault, id=f"{short(checker)}-{number}")
        for checker, faults in checkers.items()
        for number, fault in enumerate(faults)
    ]
