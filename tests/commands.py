"""Running the command `gzkcore` in tests, in this process or one of its own."""

import csv
import json
import subprocess
import sys
from pathlib import Path

from gzkcore.cli import main as cli

UNTESTED = ["--test-fraction", "0"]  # one fit, where a test of few rows takes five more
QUICK = ["--features", "64", "--gamma", "0.5"]  # nothing is learned but alpha


def write(path, columns, end="\n"):
    rows = [columns, *zip(*columns.values(), strict=True)]
    Path(path).write_bytes(b"".join((",".join(map(str, row)) + end).encode() for row in rows))


def read(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def run(capsys, *arguments):
    """Run a command that should succeed, in place of an earlier one; return its JSON."""
    force = [] if arguments[0] == "info" else ["--force"]
    code = cli.main([*map(str, arguments), *force, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def refuse(capsys, *arguments):
    """Run a command that should be refused; return its reason, one line."""
    code = cli.main([*map(str, arguments)])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert err.startswith("gzkcore: ")
    assert err.count("\n") == 1, err
    return err.removeprefix("gzkcore: ").strip()


def files():
    return sorted(path.name for path in Path().iterdir())


START = """
import sys
from gzkcore.cli import fit_frame, main, pictures  # so that the work begins at once
from gzkcore.evaluate import compare, plan
sys.stderr.write("ready\\n")
sys.stderr.flush()
sys.exit(main.main())
"""


def start(*arguments):
    """Run a command in a process of its own, and wait until it has been imported."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr.readline() == "ready\n"
    return process
