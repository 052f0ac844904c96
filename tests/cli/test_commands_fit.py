"""The command fit with features, and predict: what they print, write and refuse."""

import json
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, UNTESTED, files, read, refuse, run, start, write

import gzkcore
from gzkcore._util.model_io import load
from gzkcore.cli import fit as of_tables
from gzkcore.cli import main as cli
from gzkcore.cli import pictures
from gzkcore.cli.held_out import held_out
from gzkcore.cli.recipes import Recipe
from gzkcore.cli.show_fit import _about_errors
from gzkcore.datasets import LatLonToSphere
from gzkcore.learn.ridge import RandomFeatureRidge
from gzkcore.rows import files as tables

pytest.importorskip("typer", reason="the extra `cli` is not installed")


def test_rows_of_the_picture_are_from_the_whole_file(capsys, monkeypatch):
    """Not more of those that were read last, of a file in many pieces."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(of_tables, "DRAWN_ROWS", 50)
    drawn = []
    monkeypatch.setattr(pictures, "draw_agreement", lambda path, pairs, *_: drawn.append(pairs))
    write("data.csv", {"a": np.arange(2000) % 7, "y": np.arange(2000)})
    given = ["data.csv", "--target", "y", "--features", "4", "--test-fraction", "0.5"]
    run(capsys, "fit", *given, "--plot", "a.png")
    counts, _ = np.histogram(drawn[0][:, 0], 4, (0, 2000))
    assert counts.sum() == 100
    assert counts.min() >= 12


def test_no_r2_where_predicting_the_constant_has_no_error():
    errors = of_tables.Errors()
    errors.add(np.zeros(2), np.ones(2), 0.0)
    assert errors.summary() == {"rows": 2, "rmse": 1.0, "r2": None}
    assert _about_errors(errors.summary()) == "1 root mean squared"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [pytest.param(["--features", "32"], marks=pytest.mark.weekly), ["--whole"]]
)
def test_of_few_rows_each_fifth_is_held_out_in_turn(capsys, plain, options):
    write("data.csv", {name: column[:60] for name, column in plain.items()})
    arguments = ["fit", "data.csv", "--target", "y", *options]
    result = run(capsys, *arguments, "--plot", "fit.png")
    assert (result["train"]["rows"], result["test"]["rows"], result["folds"]) == (60, 60, 5)
    assert result["test"]["rmse"] > result["train"]["rmse"]
    spread = result["of_folds"]
    assert [*spread] == ["this fit", "boosting (scikit-learn)", "linear ridge", "the mean"]
    mean_square = np.mean(np.square(spread["this fit"]))  # folds have 12 rows each
    assert result["test"]["rmse"] == pytest.approx(np.sqrt(mean_square))
    assert cli.main([*arguments, "--force"]) == 0
    out = capsys.readouterr().out
    assert "60, 5-fold cross-validation" in out
    assert "Errors of single folds: this fit " in out
    result = run(capsys, *arguments, "--test-fraction", "0.1")
    assert (result["train"]["rows"], result["test"]["rows"], result["folds"]) == (54, 6, None)


@pytest.mark.slow
def test_fit_on_the_globe(capsys, globe):
    write("data.csv", globe)
    arguments = ["fit", "data.csv", "--target", "y", "--lat", "lat", "--lon", "lon", *QUICK]
    result = run(capsys, *arguments, "--plot", "map.png")
    assert result["sphere"]
    assert result["columns"] == ["lat", "lon"]
    assert result["train"]["rows"] + result["test"]["rows"] == 400
    assert result["test"]["rows"] == 40
    assert result["baselines"]["boosting (scikit-learn)"]["r2"] > 0.9
    assert result["baselines"]["the mean"]["r2"] <= 0 < result["lengthscale_km"]
    assert result["test"]["r2"] > 0.99
    assert files() == ["data.csv", "map.png", "model.gzk"]
    assert Path("map.png").read_bytes()[:4] == b"\x89PNG"

    again = run(capsys, *arguments)
    assert again["test"] == result["test"]  # the same rows are held out, the same features drawn

    assert cli.main([*arguments, "--force"]) == 0
    out = capsys.readouterr().out
    assert "y from lat, lon" in out
    assert "latitude lat and longitude lon" in out
    assert "of boosting (scikit-learn)" in out
    assert re.search(r"gamma +[0-9.]+, chosen by 2-fold cross-validation", out)
    assert re.search(r"lengthscale +[0-9,]+ km", out)
    assert "gzkcore predict model.gzk NEW.csv --output PREDICTED.csv" in out


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.5, 5, 25], ids=["town", "country", "continent"])
def test_fit_in_a_region(capsys, size):
    """The lengthscales to choose from are those of the region, however small it is."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-size, size, (2, 400))
    y = np.sin(3 * lat / size) * np.cos(3 * lon / size)
    write("data.csv", {"lat": 45 + lat, "lon": (lon + 360) % 360, "y": y})
    options = ["--target", "y", "--lat", "lat", "--lon", "lon", "--features", "128"]
    result = run(capsys, "fit", "data.csv", *options, "--plot", "map.png")
    assert result["test"]["r2"] > 0.98
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")


@pytest.mark.parametrize("lat", [48.1, -90.0])
def test_fit_at_one_place(capsys, lat):
    """At a pole longitudes tell nothing apart, but their rounding does."""
    rng = np.random.default_rng(0)
    lon = np.full(50, 11.3) if lat > 0 else rng.uniform(-180, 180, 50)
    write("data.csv", {"lat": np.full(50, lat), "lon": lon, "y": np.cos(lon) + rng.random(50)})
    options = ["--target", "y", "--lat", "lat", "--lon", "lon", *QUICK]
    assert "all training rows are at the same place" in refuse(capsys, "fit", "data.csv", *options)


def test_fit_with_latitude_and_longitude_exchanged(capsys, globe):
    write("data.csv", globe)
    options = ["--target", "y", "--lat", "lon", "--lon", "lat"]
    assert "seem to be swapped; swap them" in refuse(capsys, "fit", "data.csv", *options)


def test_held_out_rows_are_what_is_reported(capsys, globe):
    write("data.csv", globe)
    result = run(capsys, "fit", "data.csv", "--target", "y", "--lat", "lat", "--lon", "lon", *QUICK)
    test = held_out(np.arange(400), 0.1, 0)
    X = LatLonToSphere().transform(np.column_stack([globe["lat"], globe["lon"]]))
    y, predicted = globe["y"], load("model.gzk").predict(X)
    errors = np.square(y - predicted)
    assert result["test"]["rows"] == test.sum()
    assert result["test"]["rmse"] == pytest.approx(np.sqrt(errors[test].mean()), rel=1e-9)
    assert result["train"]["rmse"] == pytest.approx(np.sqrt(errors[~test].mean()), rel=1e-9)
    baseline = np.square(y - y[~test].mean())
    assert result["test"]["r2"] == pytest.approx(1 - errors[test].sum() / baseline[test].sum())


def test_predictions_are_the_models(capsys, globe):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", "--target", "y", "--lat", "lat", "--lon", "lon", *QUICK)
    result = run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")
    assert result["rows"] == 400
    assert result["columns"] == ["PREDICTED_y", "PREDICTED_y_STD"]
    rows = read("out.csv")
    X = LatLonToSphere().transform(np.column_stack([globe["lat"], globe["lon"]]))
    mean, std = load("model.gzk").predict(X, return_std=True)
    for name, values, digits in (("PREDICTED_y", mean, 12), ("PREDICTED_y_STD", std, 4)):
        written = [row[name] for row in rows]
        assert written == [repr(float(f"{value:.{digits}g}")) for value in values.tolist()]

    assert cli.main(["predict", "model.gzk", "data.csv", "--output", "o.csv", "--name", "p"]) == 0
    assert "400 rows with p: o.csv" in capsys.readouterr().out
    assert list(read("o.csv")[0]) == ["lat", "lon", "y", "p"]


@pytest.mark.slow
def test_plain_columns_are_standardised(capsys, plain):
    write("data.csv", plain)
    result = run(capsys, "fit", "data.csv", "--target", "y", *QUICK, "--plot", "agreement.png")
    assert not result["sphere"]
    assert result["columns"] == ["a", "b", "c"]
    assert result["test"]["r2"] > 0.9
    assert Path("agreement.png").stat().st_size > 10_000
    recipe = Recipe(**load("model.gzk").recipe_)
    train = ~held_out(np.arange(500), 0.1, 0)
    X = np.column_stack([plain[name] for name in "abc"])
    np.testing.assert_allclose(recipe.mean, X[train].mean(axis=0))
    np.testing.assert_allclose(recipe.scale, X[train].std(axis=0))

    # Units do not matter: the file with b in other units gives the same model.
    write("other.csv", plain | {"b": plain["b"] * 1000 - 5})
    other = run(capsys, "fit", "other.csv", "--target", "y", *QUICK, "--model", "other.gzk")
    assert other["test"]["rmse"] == pytest.approx(result["test"]["rmse"], rel=1e-6)


@pytest.mark.slow
def test_constant_columns_are_left_out(capsys, plain, monkeypatch):
    """Also where the variance, summed piece by piece, is a rounding error."""
    monkeypatch.setattr(tables, "BLOCK_BYTES", 500)
    write("data.csv", plain)
    write("more.csv", {"k": np.full(500, 0.1)} | plain)
    fits = [run(capsys, "fit", name, "--target", "y", *QUICK) for name in ("data.csv", "more.csv")]
    assert fits[1]["columns"] == ["a", "b", "c"]
    assert fits[1]["gamma"] == fits[0]["gamma"]
    assert fits[1]["test"] == pytest.approx(fits[0]["test"], rel=1e-6)
    assert "constant in the training rows: k" in " ".join(fits[1]["notes"])
    write("none.csv", {"k": np.full(500, 7.0), "y": plain["y"]})
    assert "nothing to predict from" in refuse(
        capsys, "fit", "none.csv", "--target", "y", "--force", *QUICK
    )


@pytest.mark.parametrize("gamma", ["scale", "0.25"])
def test_gamma(capsys, plain, gamma):
    write("data.csv", plain)
    result = run(
        capsys, "fit", "data.csv", "--target", "y", "--columns", "a, b", "--gamma", gamma, *QUICK
    )
    assert result["columns"] == ["a", "b"]
    assert result["gamma"] == pytest.approx(0.25 if gamma == "0.25" else 0.5, rel=0.02)


@pytest.mark.parametrize("name", ["exponential", "laplacian", "matern", "rational_quadratic"])
def test_other_kernels(capsys, plain, name):
    write("data.csv", plain)
    options = ["--kernel", name, "--gamma", "0.5"]
    result = run(capsys, "fit", "data.csv", "--target", "y", "--features", "256", *options)
    assert result["kernel"].lower().startswith(name.replace("_", ""))
    assert result["gamma"] == pytest.approx(0.5)
    assert result["test"]["r2"] > 0.5


def test_no_test(capsys, plain):
    write("data.csv", plain)
    arguments = [
        "fit",
        "data.csv",
        "--target",
        "y",
        "--test-fraction",
        "0",
        "--gamma",
        "0.1",
        *QUICK,
    ]
    result = run(capsys, *arguments)
    assert result["train"]["rows"] == 500
    assert result["test"] == {"rows": 0, "rmse": None, "r2": None}
    assert cli.main([*arguments, "--force"]) == 0
    assert "no rows were held out" in capsys.readouterr().out


@pytest.mark.parametrize("sphere", [True, False], ids=["globe", "plain"])
def test_pieces_make_no_difference(capsys, plain, globe, monkeypatch, sphere):
    """A file much larger than what is read at a time gives the same model and predictions."""
    write("data.csv", globe if sphere else plain)
    options = ["--lat", "lat", "--lon", "lon"] if sphere else ["--gamma", "0.3"]
    found = []
    for name, size in (("whole", 1 << 20), ("pieces", 2000)):
        monkeypatch.setattr(tables, "BLOCK_BYTES", size)
        model = f"{name}.gzk"
        fit = run(capsys, "fit", "data.csv", "--target", "y", "--model", model, *options, *QUICK)
        run(capsys, "predict", model, "data.csv", "--output", f"{name}.csv")
        found.append((fit, [float(row["PREDICTED_y"]) for row in read(f"{name}.csv")]))
    (whole, expected), (pieces, predicted) = found
    assert (whole["gamma"], whole["alpha"]) == (pieces["gamma"], pieces["alpha"])
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-6)


def test_a_table_of_text_is_parsed_once(capsys, plain, monkeypatch):
    parsed, parse = [], tables.CsvTable._numbers

    def counted(*arguments):
        values = parse(*arguments)
        parsed.append(len(values))
        return values

    monkeypatch.setattr(tables.CsvTable, "_numbers", counted)
    write("data.csv", plain)
    run(capsys, "fit", "data.csv", "--target", "y", "--gamma", "0.1", *QUICK)
    assert sum(parsed) == 500


def test_no_more_features_than_rows(capsys, plain):
    write("data.csv", {name: column[:60] for name, column in plain.items()})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--gamma", "0.1", "--features", "1024")
    assert result["n_components"] == result["train"]["rows"] == 60
    assert "Note: 60 features instead of 1,024" in " ".join(result["notes"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--columns", "a,q"], "there is no column 'q'"),
        (["--gamma", "1"], "--gamma 1 needs --features or --whole"),
        (["--whole", "--gamma", "x"], "--gamma must be auto, scale or a positive number"),
        (["--whole", "--kernel", "x"], "--kernel"),
        (["--lat", "a"], "--lat and --lon must be given together"),
        (["--time", "0"], "--time must be a positive number of seconds; got 0"),
    ],
)
def test_a_mistake_is_told_before_a_file_that_is_there(capsys, plain, options, reason):
    write("data.csv", plain)
    Path("model.gzk").write_bytes(b"precious")
    assert reason in refuse(capsys, "fit", "data.csv", "--target", "y", *options)


def test_files_are_not_replaced_by_accident(capsys, plain):
    """One rule for all commands: the model, the predictions and the pictures need --force."""
    write("data.csv", plain)
    Path("model.gzk").write_bytes(b"precious")
    arguments = ["fit", "data.csv", "--target", "y", "--gamma", "0.1", *QUICK]
    reason = refuse(capsys, *arguments)
    assert reason == (
        "--model model.gzk exists already; give another name with --model, or use --force to replace it"
    )
    assert Path("model.gzk").read_bytes() == b"precious"
    assert cli.main([*arguments, "--model", "other.gzk"]) == 0
    assert cli.main([*arguments, "--force"]) == 0
    assert Path("model.gzk").read_bytes() == Path("other.gzk").read_bytes()
    capsys.readouterr()
    for name in ("out.csv", "a.png"):
        Path(name).write_bytes(b"precious")
    for option, name, command in (
        ("--plot", "a.png", [*arguments, "--model", "third.gzk"]),
        ("--plot", "a.png", ["plan", "data.csv", "--target", "y"]),
        ("--plot", "a.png", ["compare", "data.csv"]),
        ("--plot", "a.png", ["demo"]),
        ("--output", "out.csv", ["predict", "model.gzk", "data.csv"]),
    ):
        assert refuse(capsys, *command, option, name) == (
            f"{option} {name} exists already; give another name with {option}, or use --force to "
            "replace it"
        )
        assert Path(name).read_bytes() == b"precious"
    predict = ["predict", "model.gzk", "data.csv", "--output", "out.csv"]
    assert cli.main([*predict, "--force"]) == 0
    assert len(read("out.csv")) == 500


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [QUICK, ["--whole", *UNTESTED], UNTESTED], ids=["features", "whole", "default"]
)
def test_rows_with_missing_values_are_dropped(capsys, plain, options):
    """What is left is as if they had never been there; messages name the rows of the file."""
    gaps = {name: [str(each) for each in column[:120]] for name, column in plain.items()}
    gaps["b"][7] = gaps["a"][118] = gaps["c"][119] = "NA"
    gaps["y"][11] = ""
    whole = [i for i in range(120) if i not in (7, 11, 118, 119)]
    write("gaps.csv", gaps)
    write("whole.csv", {name: [column[i] for i in whole] for name, column in gaps.items()})
    if options is not UNTESTED:
        reason = refuse(capsys, "fit", "gaps.csv", "--target", "y", *options)
        assert "row 8, column 'b': the value is 'NA'" in reason
        assert reason.endswith(", or add --drop-missing")
    arguments = ["--target", "y", *options]
    found = run(capsys, "fit", "gaps.csv", *arguments, "--drop-missing")
    assert "Note: 4 rows with missing values left out" in found["notes"]
    expected = run(capsys, "fit", "whole.csv", *arguments)
    for key in ("test", "alpha", "kernel", "test_rows"):
        both = found.get(key), expected.get(key)
        assert both[0] == (pytest.approx(both[1]) if key in ("test", "alpha") else both[1])
    gaps["c"][90] = "x"
    write("gaps.csv", gaps)
    reason = refuse(capsys, "fit", "gaps.csv", *arguments, "--drop-missing", "--force")
    assert "row 91, column 'c': the value is 'x'" in reason


@pytest.mark.slow
@pytest.mark.parametrize("options", [[*QUICK, "--gamma", "0.1"], []], ids=["features", "default"])
def test_decimal_commas(capsys, plain, options):
    columns = {name: column[:60] for name, column in plain.items()}
    write("points.csv", columns)
    text = Path("points.csv").read_text()
    Path("commas.csv").write_text(text.replace(",", ";").replace(".", ","))
    arguments = ["--target", "y", *options, *UNTESTED]
    reason = refuse(capsys, "fit", "commas.csv", *arguments)
    assert reason.endswith("a point should be; --decimal-comma reads such numbers")
    found = run(capsys, "fit", "commas.csv", *arguments, "--decimal-comma", "--model", "c.gzk")
    expected = run(capsys, "fit", "points.csv", *arguments)
    assert found["kernel"] == expected["kernel"]
    run(capsys, "predict", "model.gzk", "points.csv", "--output", "p.csv")
    run(capsys, "predict", "c.gzk", "commas.csv", "--output", "c.csv", "--decimal-comma")
    points = [line.rpartition(",")[2] for line in Path("p.csv").read_text().splitlines()]
    commas = [line.rpartition(";")[2] for line in Path("c.csv").read_text().splitlines()]
    assert [each.replace(",", ".") for each in commas] == points
    reason = refuse(capsys, "predict", "c.gzk", "commas.csv", "--output", "o.csv")
    assert reason.endswith("--decimal-comma reads such numbers")


# ---- bad input: exit code 2, one line, no file


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a,y\n1,2\n", [], "data.csv has 1 row; at least 20 are needed"),
        ("lat,y\n1,2\n", ["--target", "lot"], "there is no column 'lot'; did you mean 'lat'?"),
        ("a,b,y\n1,2,3\n", ["--columns", "a,zz"], "no column 'zz'; its columns are a, b, y"),
        ("a,y\n1,2\n", ["--columns", "a,y"], "is named twice"),
        ("y\n1\n", [], "data.csv has only the column 'y', the target; add columns to predict from"),
        ("a,y\n1,2\n\n3,x\n", [], "row 2, column 'y': the value is 'x', which is not a finite"),
        (
            "a,y\n" + "1,7\n2,7\n" * 20,
            [],
            "column 'y' is 7 in every row that is used, so that there",
        ),
        ("a,b,y\n1,2,3\n", ["--lat", "a"], "--lat and --lon must be given together"),
        (
            "a,b,y\n1,2,3\n",
            ["--lat", "a", "--lon", "b", "--columns", "a"],
            "--columns can't be combined with --lat and --lon",
        ),
        (
            "a,b,y\n1,2,3\n100,2,3\n",
            ["--lat", "a", "--lon", "b"],
            "data.csv: data row 2: latitude 100 is outside -90 to 90 degrees",
        ),
        (
            "a,y\n1,2\n",
            ["--gamma", "-1"],
            "--gamma must be auto, scale or a positive number; got -1",
        ),
        (
            "a,y\n1,2\n",
            ["--gamma", "wide"],
            "--gamma must be auto, scale or a positive number; got wide",
        ),
        (
            "a,y\n1,2\n",
            ["--kernel", "laplacia"],
            "--kernel laplacia is unknown to fit (did you mean",
        ),
        ("a,y\n1,2\n", ["--time", "5"], "--time can't be combined with --features"),
        ("a,y\n1,2\n", ["--memory", "2GB"], "--memory can't be combined with --features"),
        ("a,y\n1,2\n", ["--classify"], "--classify can't be combined with --features"),
        ("a,y\n1,2\n", ["--plot", "x.bmp"], "--plot x.bmp must end with one of .png, .pdf, .svg"),
        ("a,y\n1,2\n", ["--model", "no/m.gzk"], "cannot save to 'no/m.gzk': there is no folder no"),
        ("a,y\n" + "1,7\n2,8\n" * 12, ["--test-fraction", "1e-9"], "0 for the test"),
        ("a,y\n" + "1,7\n1e200,8\n" * 99, [], "column 'a' has values so large that their squares"),
    ],
)
def test_bad_tables(capsys, text, options, reason):
    Path("data.csv").write_bytes(text.encode("latin-1"))
    assert reason in refuse(capsys, "fit", "data.csv", "--target", "y", *QUICK, *options)
    assert files() == ["data.csv"]


TEXT = "name,a,b,kind,y\n" + "Bern,1,2,x,3\nRom,2,5,y,7\n" * 20


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["fit", "--target", "y", *QUICK], "or choose columns without 'name': --columns a,b"),
        (["plan"], "or choose columns without 'name': --columns a,b,y"),
        (["compare"], "or choose columns without 'name': --columns a,b,y"),
        (["fit", "--target", "y", "--columns", "a,name", *QUICK], "without 'name': --columns a"),
        (
            ["fit", "--target", "name", "--columns", "a", *QUICK],
            "or predict another column, --target",
        ),
    ],
)
def test_a_column_of_text(capsys, arguments, remedy):
    Path("data.csv").write_text(TEXT)
    command, *options = arguments
    reason = refuse(capsys, command, "data.csv", *options)
    assert reason.startswith(
        "data.csv: data row 1, column 'name': the value is 'Bern', which is not a"
    )
    assert reason.endswith(remedy)
    assert files() == ["data.csv"]
    if "--columns" in remedy:
        found = remedy.partition("--columns ")[2].split(",")
        assert set(found) <= {"a", "b", "y"}


def test_a_file_that_may_not_be_read(capsys, globe, monkeypatch):
    write("data.csv", globe)
    options = ["--target", "y", "--lat", "lat", "--lon", "lon"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        assert "nothing may be written in ." in refuse(capsys, "fit", "data.csv", *options)

    def forbid(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", forbid)
    assert refuse(capsys, "fit", "data.csv", *options).startswith(
        "cannot read 'data.csv': you have no permission to read it"
    )


def test_bad_predictions(capsys, globe):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", "--target", "y", "--lat", "lat", "--lon", "lon", *QUICK)
    write("less.csv", {"lat": [1.0], "x": [2.0]})
    write("off.csv", {"lat": [1.0, 2.0], "lon": [2.0, 999.0]})
    write("again.csv", {"lat": [1.0], "lon": [2.0], "PREDICTED_y": [3.0]})
    before = files()
    for data, output, reason in (
        ("less.csv", "out.csv", "less.csv: there is no column 'lon'"),
        ("off.csv", "out.csv", "off.csv: data row 2: longitude 999 is outside -180 to 360 degrees"),
        ("again.csv", "out.csv", "has a column 'PREDICTED_y' already; choose a --name"),
        ("data.csv", "data.csv", "--output data.csv would overwrite the table"),
        ("data.csv", "out.npy", "--output out.npy must end with .csv or .tsv or .txt"),
        ("data.csv", "no/out.csv", "cannot save to 'no/out.csv': there is no folder no"),
    ):
        assert reason in refuse(capsys, "predict", "model.gzk", data, "--output", output)
    assert refuse(capsys, "predict", "m.gzk", "data.csv", "--output", "out.csv").startswith(
        "cannot load 'm.gzk': there is no file of this name in "
    )
    assert refuse(capsys, "predict", "model.gzk", "d.csv", "--output", "out.csv") == (
        "d.csv: there is no such file"
    )
    assert files() == before


def test_bad_models(capsys, globe):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", "--target", "y", "--lat", "lat", "--lon", "lon", *QUICK)
    model = Path("model.gzk").read_bytes()
    altered = bytearray(model)
    altered[len(model) // 2] ^= 1
    for name, content in (
        ("cut.gzk", model[: len(model) // 2]),
        ("altered.gzk", altered),
        ("foreign.gzk", b"no model at all"),
    ):
        Path(name).write_bytes(content)
        reason = refuse(capsys, "predict", name, "data.csv", "--output", "out.csv")
        assert reason.startswith(f"cannot load '{name}': ")
    RandomFeatureRidge(gzkcore.GegenbauerFeatures(n_components=8)).fit(
        np.eye(20, 3), np.arange(20)
    ).save("python.gzk")
    reason = refuse(capsys, "predict", "python.gzk", "data.csv", "--output", "out.csv")
    assert "was saved from Python and does not say which columns it needs" in reason
    assert "out.csv" not in files()


# ---- real processes


def test_json_is_all_there_is_on_stdout(globe, capfd):
    """Of the whole process: capfd has what kernels would print too."""
    write("data.csv", globe)
    arguments = ["fit", "data.csv", "--target", "y", "--gamma", "0.1", *QUICK, "--json"]
    assert cli.main(arguments) == 0
    assert json.loads(capfd.readouterr().out)["model"] == "model.gzk"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fit", pytest.param("predict", marks=pytest.mark.weekly)])
def test_interrupt(capsys, globe, command):
    """Ctrl-C in the middle of the work: exit code 130, no file, not even half of one."""
    write("small.csv", globe)
    fit = ["--target", "y", "--lat", "lat", "--lon", "lon"]
    run(capsys, "fit", "small.csv", *fit, *QUICK, "--model", "small.gzk")
    head, body = Path("small.csv").read_text().split("\n", 1)
    many = 500 if command == "fit" else 4000  # minutes of work
    Path("data.csv").write_text(head + "\n" + body * many)
    before = files()
    if command == "fit":
        process = start("fit", "data.csv", *fit, "--features", "2048")
    else:
        process = start("predict", "small.gzk", "data.csv", "--output", "out.csv", "--std")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.strip() == "gzkcore: interrupted; unfinished files were not written"
    assert files() == before
