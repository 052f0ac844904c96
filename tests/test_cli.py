"""The command `gzkcore`: what it prints, writes and refuses."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
pytest.importorskip("airportsdata", reason="the extra `cli` is not installed")

from pyarrow import parquet
from typer.testing import CliRunner

import gzkcore
from gzkcore import _tables, cli

QUICK = ["--n-components", "32"]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def globe():
    """Places on the globe and a smooth function of them."""
    rng = np.random.default_rng(0)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1, 1, 400))), rng.uniform(-180, 180, 400)
    return {"lat": lat, "lon": lon, "y": np.sin(np.radians(lat)) + 0.01 * rng.standard_normal(400)}


@pytest.fixture
def plain():
    """Three columns of different size and a smooth function of two of them."""
    rng = np.random.default_rng(1)
    a, b, c = rng.standard_normal((3, 500)) * [[1], [100], [1e-3]]
    return {"a": a, "b": b + 7, "c": c, "y": np.sin(a) + b / 100}


def write(path, columns, ending="\n"):
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    with open(path, "w", newline="") as file:
        file.write(ending.join([*lines, ""]))


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(capsys, *arguments):
    """Run a command that should succeed; return what it printed as JSON."""
    code = cli.main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def refuse(capsys, *arguments):
    """Run a command that should be refused; return its one line."""
    code = cli.main([*map(str, arguments)])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("gzkcore: ")
    assert err.count("\n") == 1, err
    return err.removeprefix("gzkcore: ").rstrip()
