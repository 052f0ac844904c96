"""What people see of a command: tables and lines as they are given, and notes."""

import contextlib
import errno
import functools
import io
import re
import threading
import time
import warnings

import numpy as np
import pytest
import rich.console
from commands import QUICK, UNTESTED, files, refuse, write

from gzkcore._util.remark import Remark
from gzkcore.cli import main as cli

pytest.importorskip("typer", reason="the extra `cli` is not installed")
from gzkcore.cli import output, pictures
from gzkcore.cli.output import (
    Work,
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


def test_short_work_without_a_terminal_is_silent(capsys):
    with progress({"fitting": ""}) as report:
        report("fitting", 0)
        report("fitting", 0.5, "a")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_lines_without_a_terminal(capsys, monkeypatch, error):
    """They come also while nothing is reported, and end with the work, however it ends."""
    monkeypatch.setattr(output, "LINE_SECONDS", 0.02)
    before = threading.active_count()
    with pytest.raises(error) if error else contextlib.nullcontext(), progress() as report:
        report("fitting", None, "step 1\n")
        deadline, told = time.monotonic() + 20, ""
        while told.count("\n") < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
            told += capsys.readouterr().err
        if error:
            raise error
    assert threading.active_count() == before
    assert re.fullmatch(r"(fitting, (< )?[\d.]+ s so far: step 1\\n\n){3,}", told)
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_a_line_says_what_is_done_and_what_is_left(monkeypatch):
    """The rest is expected by what was done since the first share: all before was no part."""
    now = 100.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    work = Work({})
    assert str(work) == "starting, < 0.1 s so far"
    lines = []
    for seconds, *reported in (
        (0, "choosing", None, "Matern"),
        (5, "fitting", None),
        (30, "fitting", 0.2, "step 1"),
        (10, "fitting", 0.4, "step 2"),
        (20, "fitting", 0.1, "step 1"),
        (2000, "fitting", 1.0),
    ):
        now += seconds
        work.report(*reported)
        lines.append(str(work))
    assert lines == [
        "choosing, < 0.1 s so far: Matern",
        "fitting, < 0.1 s so far",
        "fitting, 30 s so far, 20 % done: step 1",
        "fitting, 40 s so far, 40 % done, about 30 s left: step 2",
        "fitting, 60 s so far, 10 % done: step 1",
        "fitting, 34 min so far, 100 % done",
    ]
    now += 60
    assert str(work) == "fitting, 35 min so far, 100 % done"
    work.report("fitting", None, "[a]\x1b[2J")
    assert str(work) == r"fitting, 35 min so far: [a]\x1b[2J"


def test_long_work_is_announced_once_with_a_remedy(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    with progress({"predicting": "; without --std it takes less"}) as report:
        for label in ("fitting", "predicting"):
            for share in (0.0, 0.001, 0.01, 0.02):  # the first second doesn't tell
                report(label, share)
                now += 1.5
        report("predicting", 0.5)
    assert capsys.readouterr().err == (
        "predicting takes about 5.0 min; without --std it takes less\n"
    )
    with progress({"predicting": ""}) as report:
        report("predicting", 0.0)
        now += 59.0
        report("predicting", 0.5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stream", [None, "full"])
def test_lines_that_cannot_be_written_end_nothing(monkeypatch, stream):
    class Full(io.StringIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("sys.stderr", stream and Full())
    tell("half done")


def test_progress_in_a_terminal(monkeypatch):
    """A line that is written anew; names are no markup, and control nothing."""
    screen = io.StringIO()
    consoles = functools.partial(rich.console.Console, file=screen, force_terminal=True, width=90)
    monkeypatch.setattr("rich.console.Console", lambda stderr, **options: consoles(**options))
    with progress() as report:
        for now in ("[one] kernel", "\x1b[2J:smile:"):
            report("learning", 1 / 3, now)
            time.sleep(0.3)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", screen.getvalue())
    for now in (r"\[one\] kernel", r"\\x1b\[2J:smile:"):
        assert re.search(rf"learning, (< )?[\d.]+ s so far, 33 % done: {now} ", shown), shown


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
