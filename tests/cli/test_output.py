"""What people see of a command: tables and lines as they are given, and notes."""

import functools
import io
import re
import warnings

import numpy as np
import pytest
import rich.console
from commands import QUICK, UNTESTED, files, refuse, write

from gzkcore._util.remark import Remark
from gzkcore.cli import main as cli

pytest.importorskip("typer", reason="the extra `cli` is not installed")
from gzkcore.cli import pictures
from gzkcore.cli.output import (
    collected_notes,
    first_of,
    print_lines,
    print_table,
    progress,
    tell,
    to_places,
)

NAMES = ["speed [m/s]", "rate [/s]", "h:m:s", "[bold]"]


def test_names_are_no_markup(capsys):
    print_table(f"y from {', '.join(NAMES)}", ["", *NAMES], [["row", *NAMES]])
    print_lines(*NAMES)
    out = capsys.readouterr().out
    assert all(out.count(name) == 4 for name in NAMES), out


def test_first_columns_are_told_apart():
    assert first_of(["", "a, b", "c"]) == "the unnamed column, 'a, b', c"
    assert first_of([*"abcde"]) == "a, b, c, d, ..."


@pytest.mark.parametrize(
    ("value", "spread", "told"),
    [
        (348680.475889123, 1e5, 348680.5),
        (10.0466666667, 1.5, 10.046667),
        (1.7e9 + 1 / 3, 20.0, 1.7e9 + 0.33333),
        (2.34567e-12, 1e-9, 2.346e-12),
        (348680475889.1, 1e12, 348680000000),
        (1e9 + 0.123456789, 1.0, 1e9 + 0.123457),
        (1.23456789e-306, 1e-305, 1.23457e-306),
        (1.23456789e300, 1e300, 1.234568e300),
        (0.1234567890123, 0.0, 0.1234567890123),
    ],
)
def test_predictions_are_rounded_by_the_spread_of_the_target(value, spread, told):
    (rounded,) = to_places(np.array([value]), spread)
    assert repr(float(rounded)) == repr(float(told))


def test_different_warnings_are_different_notes():
    with collected_notes() as notes:
        for text in ("b is constant", "row 1 is far", "row 20 is far", "no luck"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert notes == [
        "Note: b is constant",
        "Note: row 1 is far (1 more note like it, with other numbers)",
        "Note: no luck",
    ]


def test_notes_that_are_alike_but_for_their_columns_name_these():
    with collected_notes() as notes:
        for name in ("x1", "x2", "x3"):
            remark = Remark("far", [name], f"{name!r} is far", "look at it")
            warnings.warn(remark, stacklevel=1)
    assert notes == ["Note: 'x1' is far; look at it (so are columns 'x2', 'x3')"]


def test_progress_without_a_terminal(capsys):
    for lines, said in ((True, "fitting: 0 %\nfitting: 50 % a\n"), (False, "")):
        with progress(lines=lines) as report:
            report("fitting", 0)
            report("fitting", 0.5, "a")
        assert capsys.readouterr().err == said


def test_progress_in_a_terminal(monkeypatch):
    """Of work whose share is unknown the seconds are shown; it is done when the next begins."""
    screen = io.StringIO()
    consoles = functools.partial(rich.console.Console, file=screen, force_terminal=True, width=90)
    monkeypatch.setattr("rich.console.Console", lambda **_: consoles())
    with progress() as report:
        report("learning", 1 / 3, "[one] kernel")
        report("choosing", None, "Matern 1.5")
    shown = re.sub(r"\x1b\[.*?[a-zA-Z]", "", screen.getvalue())
    assert re.search(
        r"learning ━+ 100 %, < 0\.1 s +\[one\] kernel\s+choosing ━+ < 0\.1 s +Matern 1\.5", shown
    )


@pytest.mark.slow
def test_a_picture_that_fails_comes_after_the_report(capsys, monkeypatch, plain):
    def fail(*_):
        raise RuntimeError("no ink")

    monkeypatch.setattr(pictures, "draw_frame", fail)
    write("data.csv", plain)
    arguments = ["fit", "data.csv", "--target", "y", "--columns", "a,b", *QUICK]
    assert cli.main([*arguments, "--plot", "fit.png"]) == 2
    out, err = capsys.readouterr()
    assert "Next: gzkcore predict model.gzk" in out
    assert "Picture" not in out
    assert err == (
        "gzkcore: --plot fit.png: the picture could not be drawn: no ink; all else is done\n"
    )
    assert files() == ["data.csv", "model.gzk"]


def test_models_are_no_tables_and_no_pictures(capsys, plain):
    write("data.csv", plain)
    for name in ("z.png", "other.csv", "model"):
        reason = refuse(capsys, "fit", "data.csv", "--target", "y", "--model", name)
        assert reason == f"--model {name} must end with .gzk"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("command", ["plan", "compare"])
def test_a_picture_of_features_that_fails_comes_after_the_report(
    capsys, monkeypatch, plain, command
):
    def fail(*_):
        raise RuntimeError("no ink")

    monkeypatch.setattr("gzkcore.evaluate.plan.figure_of_plan", fail)
    monkeypatch.setattr("gzkcore.evaluate.compare.figure_of_comparison", fail)
    write("data.csv", {name: values[:80] for name, values in plain.items()})
    options = ["--methods", "fourier-iid", "--seeds", "1"] if command == "compare" else []
    arguments = [command, "data.csv", "--n-components", "8", *options, "--plot", "x.png"]
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert "80 rows" in out
    assert err.endswith("the picture could not be drawn: no ink; all else is done\n")


def test_text_of_files_does_not_control_the_terminal(capsys):
    odd = "a\x1b[31m\x07\u202eb\nNote: c\r\udc80"
    print_table(odd, [""], [[odd]])
    print_lines(odd, "été\u00a0年 \u0645\u200c\u062e")
    tell(odd)
    out, err = capsys.readouterr()
    shown = r"a\x1b[31m\x07\u202eb\nNote: c\r\udc80"
    assert (out.count(shown), err) == (3, f"{shown}\n")
    assert "été\u00a0年 \u0645\u200c\u062e\n" in out


def test_a_column_of_a_file_may_have_any_name(capsys, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    numbers = np.arange(40.0)
    odd = "x\x1b[2J\u202e\n"
    columns = {odd: numbers**2, "kind": ["a\x1b[1m", "b"] * 20, "y": numbers}
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    arguments = ["--target", "y", *UNTESTED, *QUICK, "--force", "--report", "page.html"]
    assert cli.main(["fit", str(tmp_path / "odd.parquet"), *arguments]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (*capsys.readouterr(), page):
        assert not {"\x1b", "\u202e"} & {*text}
    assert r"x\x1b[2J\u202e\n" in page
    told = refuse(capsys, "fit", tmp_path / "odd.parquet", "--target", "\x1b[2J")
    assert "\x1b" not in told
