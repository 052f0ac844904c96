"""The commands plan and compare: what they print, write and refuse."""

import gzip
import json
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from commands import files, refuse, run, start, write

from gzkcore.cli import main as cli
from gzkcore.cli.commands_plan import _fit_with

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")


def test_the_fit_to_run_next_replaces_no_model():
    asked = Path("data.csv"), {"target": "y", "lat": None, "classify": False, "skip_lines": 0}
    assert _fit_with(*asked) == "Next: gzkcore fit data.csv --target y"
    for name in ("model.gzk", "model-2.gzk"):
        Path(name).touch()
    assert _fit_with(*asked) == "Next: gzkcore fit data.csv --target y --model model-3.gzk"
    asked[1].update(classify=True, missing="", date_format="%d %m %y", skip_lines=2)
    told = "--target y --classify --skip-lines 2 --missing '' --date-format '%d %m %y' --model"
    assert f" {told} " in _fit_with(*asked)


def test_plan(capsys, globe, plain):
    write("globe.csv", globe)
    write("plain.csv", plain)
    options = ["--n-components", "16,100"]
    found = run(capsys, "plan", "globe.csv", "--lat", "lat", "--lon", "lon", "--gamma", 1, *options)
    assert found["n_samples"] == 400
    assert found["kernel"] == "Gaussian(gamma=1.0)"
    assert (found["gamma_from"], found["max_error"]) == ("given", 0.1)
    assert {row["n_components"] for row in found["table"]} == {16, 100}
    assert "n_components=" in found["features"]
    options += ["--columns", "a,b,c", "--plot", "plan.png"]
    assert cli.main(["plan", "plain.csv", *options]) == 0
    text = capsys.readouterr().out
    assert "500 rows of 3 columns, Gaussian(gamma=0.3333)" in text
    assert "gamma: 0.3333, by the rule scale" in text
    assert "predictions with" not in text
    assert "gzkcore fit learns its lengthscales" in text
    assert "Picture: plan.png" in text
    assert Path("plan.png").stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["gaussian", "matern"])
@pytest.mark.parametrize("command", ["plan", "compare"])
def test_the_scale_of_a_region_is_that_of_its_places(capsys, command, kernel):
    """By their distances from 0 all places of a region looked alike, so that few features were enough."""
    lat, lon = np.random.default_rng(0).uniform([[46], [6]], [[48], [10]], (2, 60))
    write("region.csv", {"lat": lat, "lon": lon})
    methods = ["--methods", "fourier-iid", "--seeds", "1"] if command == "compare" else []
    options = ["--lat", "lat", "--lon", "lon", "--n-components", "16", *methods]
    options += ["--kernel", kernel]
    told = run(capsys, command, "region.csv", *options)["kernel"]
    number = float(re.search(r"(?:gamma|length_scale)=([\d.]+)", told)[1])
    km = 6371 * (number if kernel == "matern" else 1 / np.sqrt(2 * number))
    assert 60 < km < 120


@pytest.mark.slow
def test_plan_of_predictions(capsys, plain):
    plain = {name: each[:200] for name, each in plain.items()}
    write("plain.csv", plain)
    found = run(capsys, "plan", "plain.csv", "--target", "y", "--n-components", "32")
    assert found["columns"] == ["a", "b", "c"]
    assert cli.main(["plan", "plain.csv", "--target", "y", "--n-components", "32"]) == 0
    first, _, size, *_ = capsys.readouterr().out.split("\n")
    assert first == "Next: gzkcore fit plain.csv --target y"
    assert size.startswith("200 rows of 3 columns, ")
    whole, *others = found["forecasts"]
    assert (whole["form"], whole["size"]) == ("whole", None)
    assert {each["form"] for each in others} == {"centres", "features"}
    assert 0 < whole["error"] < np.std(plain["y"])


@pytest.mark.slow
def test_plan_of_labels(capsys, plain):
    """Of text beside columns of text and gaps, of numbers by --classify, of places."""
    options, plain = ["--n-components", "32"], {name: each[:200] for name, each in plain.items()}
    high = plain["y"] > np.median(plain["y"])
    words = np.where(high, "high", "low")
    gaps = np.where(np.arange(len(high)) % 7 == 0, "", plain["a"].astype(str))
    write("text.csv", plain | {"a": gaps, "y": words, "kind": np.where(high, "u", "v")})
    found = run(capsys, "plan", "text.csv", "--target", "y", *options)
    assert found["classify"]
    assert found["columns"] == ["a", "b", "c", "kind"]
    assert found["forecasts"][0]["error"] < 0.05
    write("numbers.csv", plain | {"y": high.astype(int)})
    found = run(capsys, "plan", "numbers.csv", "--target", "y", "--classify", *options)
    assert found["classify"]
    assert 0 < found["forecasts"][0]["error"] < 0.3
    assert "--classify needs a column of labels" in refuse(
        capsys, "plan", "numbers.csv", "--classify"
    )


@pytest.mark.parametrize(("options", "reason"), [
    ("--n-components many", "must be whole numbers >= 1, such as 64,256,1024; got many"),
    ("--n-components 0", "--n-components must be whole numbers >= 1, such as 64,256,1024; got 0"),
    ("--gamma auto", "--gamma must be scale, median or a positive number; got auto"),
    ("--max-error -1", "--max-error must be a positive number; got -1"),
    ("--kernel cauchy", "--kernel cauchy is unknown"),
    ("--columns a,q", "there is no column 'q'"),
])  # fmt: skip
def test_bad_plans(capsys, plain, options, reason):
    write("data.csv", plain)
    assert reason in refuse(capsys, "plan", "data.csv", *options.split())


@pytest.mark.slow
def test_compare(capsys, plain):
    write("data.csv", plain)
    methods = "gegenbauer, fourier-qmc,tensorsketch"
    arguments = ["compare", "data.csv", "--methods", methods, "--n-components", "16,32"]
    found = run(capsys, *arguments, "--target", "y", "--seeds", "2", "--plot", "c.png")
    assert found["n_samples"] == 500
    assert found["columns"] == ["a", "b", "c"]
    assert found["predicts"]
    assert [row["n_components"] for row in found["rows"]] == [16, 16, 32, 32]
    assert all(0 < row["rmse"] < 1 for row in found["rows"])
    assert [row["method"] for row in found["refused"]] == ["tensorsketch"]
    assert files() == ["c.png", "data-compare.json", "data.csv"]
    assert Path("c.png").stat().st_size > 20_000

    # For people, and from what is kept.
    assert cli.main([*arguments, "--target", "y", "--seeds", "2"]) == 0
    text = capsys.readouterr().out
    assert "500 rows, 3 columns, Gaussian(gamma=0.3333)" in text
    assert "gamma: 0.3333, by the rule scale" in text
    assert re.search(r"\d\.\d{6}", text) is None  # no number is longer than it need be
    assert "32 components" in text
    assert "tensorsketch: Gaussian(gamma=" in text
    assert "Results: data-compare.json" in text
    for other, reason in (
        (["--target", "y", "--gamma", "1"], "kernel was Gaussian(gamma="),
        (["--columns", "a,b,c"], "targets was 500 float64"),
    ):
        said = refuse(capsys, *arguments, "--seeds", "2", *other)
        start_of = "data-compare.json has results of compare for other settings: "
        assert said.startswith(start_of + reason)


@pytest.mark.usefixtures("in_process")
def test_compare_takes_text_dates_and_gaps(capsys, plain):
    gaps = np.where(np.arange(500) % 7 == 0, "", plain["a"].astype(str))
    days = np.datetime64("2024-01-01") + np.arange(500)
    kind = np.where(plain["b"] > 0, "u", "v")
    write("data.csv", plain | {"a": gaps, "kind": kind, "day": days.astype(str)})
    arguments = ["compare", "data.csv", "--methods", "fourier-qmc", "--n-components", "32"]
    arguments += ["--seeds", "1"]
    found = run(capsys, *arguments, "--target", "y")
    assert found["columns"] == ["a", "b", "c", "kind", "day"]
    assert found["n_features"] > 5
    assert 0 < found["rows"][0]["rmse"] < np.std(plain["y"].astype(float))
    Path("data-compare.json").unlink()
    assert "compare predicts numbers" in refuse(capsys, *arguments, "--target", "kind")
    assert "or add --target: text, dates and gaps are then encoded" in refuse(capsys, *arguments)


@pytest.mark.usefixtures("in_process")
def test_a_picture_of_nothing(capsys, plain):
    """The reasons are printed all the same."""
    write("data.csv", plain)
    options = ["--methods", "tensorsketch", "--n-components", "16", "--plot", "c.png"]
    assert cli.main(["compare", "data.csv", "--seeds", "1", *options]) == 2
    out, err = capsys.readouterr()
    assert "tensorsketch: Gaussian(gamma=" in out
    assert (
        err == "gzkcore: --plot c.png: there is nothing to draw, since no features were measured\n"
    )
    assert not Path("c.png").exists()


def test_bad_comparisons(capsys, globe):
    write("data.csv", globe)
    constant, huge = np.full(400, 3), globe["y"] * 1e200
    write("wrong.csv", {"y": globe["y"], "c": constant, "huge": huge})
    Path("other.json").write_text("[]")
    for options, reason in (
        (
            "--methods fourier",
            "--methods: there is no method 'fourier' (did you mean 'fourier-qmc'",
        ),
        ("--n-components 0", "must be whole numbers >= 1, such as 64,256,1024; got 0"),
        ("--lat lat", "--lat and --lon must be given together"),
        ("--target z", "there is no column 'z'"),
        ("--kernel laplacia", "did you mean 'laplacian'?"),
        ("--output x.txt", "--output x.txt must end with .json"),
        ("--max-seconds 0", "--max-seconds must be a positive number; got 0"),
        ("--output other.json", "other.json is not a result of compare"),
        ("--plot x.bmp", "--plot x.bmp must end with"),
        ("--kernel additive_chi2", "this command standardises columns; use gzkcore.compare"),
        ("--kernel precomputed", "--kernel precomputed has no rows"),
        ("--kernel polynomial", "no rule scale for its gamma; add a number, such as --gamma 1"),
        ("--kernel arccosine --gamma 5", "--gamma 5: the kernel arccosine has no gamma"),
        ("--kernel arccosine --gamma median", "--gamma median: the kernel arccosine has"),
    ):
        assert reason in refuse(capsys, "compare", "data.csv", *options.split())
    for options, reason in (
        ("--methods all, --columns y --target c", "column 'c' is 3 in every row"),
        ("--columns c", "every column is constant"),
        ("--columns c,huge", "column 'huge' has values so large"),
        ("--columns y --target huge", "column 'huge' has values so large"),
    ):
        assert reason in refuse(capsys, "compare", "wrong.csv", *options.split())
    assert "column 'huge' has values" in refuse(capsys, "plan", "wrong.csv")
    for option in ("--lam", "--max-error"):
        reason = refuse(capsys, "plan", "data.csv", option, "nan")
        assert reason == f"{option} must be a positive number; got nan"
    Path("wrong.csv").unlink()
    assert files() == ["data.csv", "other.json"]


@pytest.mark.weekly
def test_an_interrupted_comparison_says_how_to_go_on(globe):
    write("data.csv", globe)
    process = start("compare", "data.csv", "--lat", "lat", "--lon", "lon", "--seeds", "5000")
    while not Path("data-compare.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.strip() == (
        "gzkcore: interrupted; finished results are in data-compare.json; repeat the command to "
        "resume"
    )
    assert files() == ["data-compare.json", "data.csv"]
    assert json.loads(Path("data-compare.json").read_text())["experiments"]["compare"]["jobs"]


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("command", "kind"), [
    ("plan", "gaps"), ("plan", "text"), ("plan", "dates"), ("compare", "gaps"), ("compare", "dates"),
])  # fmt: skip
def test_targets_and_dates(capsys, plain, command, kind):
    columns = {name: values[:80].tolist() for name, values in plain.items()}
    if kind == "gaps":
        columns["y"][3] = None
    elif kind == "text":
        columns["y"] = ["low" if value < 0 else "high" for value in columns["y"]]
    else:
        columns["a"] = np.datetime64("2024-01-01", "us") + np.arange(80)
    parquet.write_table(pyarrow.table(columns), "data.parquet")
    arguments = [command, "data.parquet", "--target", "y", "--n-components", "8"]
    if command == "compare":
        arguments += ["--methods", "fourier-iid", "--seeds", "1"]
    assert run(capsys, *arguments)["columns"] == ["a", "b", "c"]


def test_compare_predicts_numbers(capsys, plain):
    write("data.csv", plain | {"y": ["low" if value < 0 else "high" for value in plain["y"]]})
    reason = refuse(capsys, "compare", "data.csv", "--target", "y")
    assert reason.startswith("--target y: this column of data.csv holds text, but compare predicts")


def test_what_is_wrong_is_told_before_the_table_is_read(capsys):
    Path("data.csv").write_text("a,y\n1,x\n")
    for options in (["--methods", "no"], ["--output", "x.csv"], ["--max-seconds", "nan"]):
        assert refuse(capsys, "compare", "data.csv", *options).startswith(options[0])


@pytest.mark.usefixtures("in_process")
def test_results_of_a_packed_table(capsys, plain):
    write("data.csv", plain)
    Path("a.b.csv.gz").write_bytes(gzip.compress(Path("data.csv").read_bytes()))
    options = ["--methods", "fourier-iid", "--n-components", "8", "--seeds", "1"]
    assert run(capsys, "compare", "a.b.csv.gz", *options)["output"] == "a.b-compare.json"
