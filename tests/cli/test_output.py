"""What people see of a command: tables and lines as they are given, and notes."""

import warnings

import pytest

pytest.importorskip("typer", reason="the extra `cli` is not installed")
from gzkcore.cli.output import collected_notes, print_lines, print_table

NAMES = ["speed [m/s]", "rate [/s]", "h:m:s", "[bold]"]


def test_names_are_no_markup(capsys):
    print_table(f"y from {', '.join(NAMES)}", ["", *NAMES], [["row", *NAMES]])
    print_lines(*NAMES)
    out = capsys.readouterr().out
    assert all(out.count(name) == 4 for name in NAMES), out


def test_different_warnings_are_different_notes():
    with collected_notes() as notes:
        for text in ("b is constant", "row 1 is far", "row 20 is far", "no luck"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert notes == [
        "Note: b is constant",
        "Note: row 1 is far (1 more like it)",
        "Note: no luck",
    ]
