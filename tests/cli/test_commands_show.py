"""The commands demo and info."""

import json
import re

import numpy as np
import pytest
from commands import files, run, start

import gzkcore
from gzkcore.cli import demo as airports
from gzkcore.cli import main as cli
from gzkcore.cli import maps

pytest.importorskip("typer", reason="the extra `cli` is not installed")


def test_info(capsys):
    config = run(capsys, "info")
    assert config == json.loads(json.dumps(gzkcore.show_config()))
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert config["compiler"] in out
    assert config["compiler"].split()[0].isalpha()
    assert "instruction set in use" in out
    assert not re.search("isa|openmp|n_threads|blas:", out)  # the names of JSON


@pytest.mark.weekly
def test_demo():
    pytest.importorskip("airportsdata")
    process = start("demo", "--plot", "m.png")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    order = ["held out", "KernelRegressor   ", "boosting", "Map", "What was chosen", "Kernel: "]
    assert [out.index(part) for part in order] == sorted(out.index(part) for part in order)
    assert files() == ["m.png"]


@pytest.mark.weekly
def test_demo_compares():
    pytest.importorskip("airportsdata")
    process = start("demo", "--compare", "--n-components", "32", "--seeds", "1", "--json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert all(line.split(",")[0] in airports.METHODS for line in err.splitlines()), err
    result = json.loads(out)
    methods = {row["method"]: row for row in result["methods"]}
    assert list(methods) == [*airports.METHODS, "predicting the mean"]
    assert all(0 < row["rmse"] < 500 for row in methods.values())
    assert all(
        methods[name]["r2"] > 0 and methods[name]["peak_memory_mb"] > 0 for name in airports.METHODS
    )
    assert files() == []


def test_the_demo_draws_the_map_of_the_readme(monkeypatch, tmp_path):
    """It drew dots, both poles and a second map."""
    pytest.importorskip("matplotlib", reason="the extra `cli` is not installed")
    rng, figures = np.random.default_rng(0), []
    places = rng.uniform([-60, -180], [80, 180], (80, 2))
    monkeypatch.setattr(airports, "airports", lambda: (places, 30 * places[:, 0] + rng.normal(80)))
    data = airports.Airports()
    assert [row["method"] for row in data.errors()] == [airports.OURS, airports.BOOSTING]
    monkeypatch.setattr(maps, "LONGER_SIDE", 40)
    monkeypatch.setattr(maps, "save_picture", lambda figure, _: figures.append(figure))
    data.draw(tmp_path / "elevation.png")
    land, _ = figures[0].axes
    assert land.get_title("left") == "Elevation, predicted from 72 airports"
    assert (*land.get_ylim(), *land.get_xlim()) == maps.EARTH
    assert not land.lines
    assert len(figures[0].axes[1].patches) == len(maps.LAND) + 1  # and what is hatched
    data.draw(tmp_path / "elevation.png", hatched=False)
    assert len(figures[1].axes[1].patches) == len(maps.LAND)
