"""The command fit with forms and kernels that are chosen, and predict: what they print and refuse."""

import contextlib
import itertools
import json
import os
import signal
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import QUICK, UNTESTED, files, read, refuse, run, start, write

import gzkcore
from gzkcore._util.model_io import load
from gzkcore.cli import commands_fit, commands_predict, frame_rows
from gzkcore.cli import main as cli
from gzkcore.cli.inputs import Inputs
from gzkcore.learn.held_out import hashed_rows
from gzkcore.learn.kernel_ridge import KernelRidge
from gzkcore.learn.ridge import RandomFeatureRidge
from gzkcore.learn.ridge_cv import RandomFeatureRidgeCV
from gzkcore.rows import files as tables
from gzkcore.rows.frames import Frame
from gzkcore.tabular import table_passes
from gzkcore.tabular.kernel_regressor import KernelRegressor

pytest.importorskip("typer", reason="the extra `cli` is not installed")

ON_GLOBE = ["--target", "y", "--lat", "lat", "--lon", "lon"]


# ---- forms and kernels


@pytest.mark.parametrize(
    ("options", "model", "told"),
    [
        (["--whole"], KernelRidge, "the whole kernel on 450 rows"),
        (["--centers", "80"], KernelRidge, "80 centres"),
        (["--features", "64"], RandomFeatureRidgeCV, "64 features"),
        (["--features", "1000"], RandomFeatureRidgeCV, "450 features"),
    ],
)
def test_forms(capsys, plain, options, model, told):
    """Each is fitted to text and gaps too, and predicts."""
    text = np.where(plain["a"] > 0, "above", "below")
    gaps = [str(value) if i % 9 else "" for i, value in enumerate(plain["b"])]
    write("data.csv", plain | {"b": gaps, "text": text})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--gamma", "0.3", *options)
    assert result["kinds"] == ["number", "number", "number", "text"]
    assert told in " ".join(result["report"])
    assert result["methods"][0]["r2"] > 0.5
    assert isinstance(load("model.gzk").model_, model)
    done = run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")
    assert done["rows"] == 500
    assert all(float(row["PREDICTED_y_STD"]) > 0 for row in read("out.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--whole"], ["--centers", "80"]])
def test_the_steps_of_the_final_fit_are_reported(capsys, monkeypatch, plain, options):
    told, remedies, heard = [], [], []
    monkeypatch.setattr(KernelRegressor, "_hear_of_solves", lambda *given: heard.append(given[2]))
    bars = contextlib.nullcontext(lambda label, share, now="": told.append((label, share, now)))
    monkeypatch.setattr(commands_fit, "progress", lambda *given: remedies.extend(given) or bars)
    write("data.csv", plain)
    run(capsys, "fit", "data.csv", "--target", "y", "--gamma", "0.3", *options)
    stages = list(dict.fromkeys(label for label, _, _ in told))
    assert stages == [
        "reading", "encoding columns", "choosing", "calibrating", "fitting",
        "predicting held-out rows", "baselines", "shuffling columns",
    ]  # fmt: skip
    assert heard == ["predicting held-out rows"]
    told_if_long = "; model.gzk is saved, and Ctrl-C leaves out the test"
    assert remedies == [{"predicting held-out rows": told_if_long}]
    steps = [(share, now) for label, share, now in told if label == "fitting" and now]
    assert len(steps) == int(np.max(load("model.gzk").model_.n_iter_))
    assert all(0 <= share <= 1 and now.startswith("step ") for share, now in steps)


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--whole"], ["--centers", "50"], ["--features", "50"]])
def test_forms_for_labels_and_groups(capsys, plain, options):
    label = np.where(plain["y"] > 0, "high", "low")
    columns = {name: plain[name] for name in "abc"}
    write("data.csv", columns | {"group": np.arange(500) // 25, "label": label})
    arguments = ["--target", "label", "--test-groups", "group", "--kernel", "gaussian", *options]
    result = run(capsys, "fit", "data.csv", *arguments)
    assert result["learner"] == "KernelClassifier"
    assert result["methods"][0]["error_rate"] < 0.2
    assert result["chosen"].startswith("Gaussian, one lengthscale")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exponential", "laplacian", "matern", "rational_quadratic"])
def test_a_kernel_with_its_lengthscale(capsys, plain, name):
    write("data.csv", plain)
    options = ["--kernel", name, "--gamma", "0.5"]
    result = run(capsys, "fit", "data.csv", "--target", "y", *options)
    assert result["kernel"].lower().startswith(name.replace("_", ""))
    assert float(np.squeeze(load("model.gzk").kernel_.scale())) == pytest.approx(1)
    assert result["methods"][0]["r2"] > 0.5


@pytest.mark.slow
def test_rows_beyond_memory_are_read_in_passes(capsys, plain, monkeypatch):
    """The model is fitted to all rows but those held out; the sample says what columns hold."""
    text = np.where(plain["a"] > 0, "above", "below")
    write("data.csv", plain | {"text": text})
    read_frame = frame_rows.read_frame
    monkeypatch.setattr(frame_rows, "read_frame", lambda *given: read_frame(*given[:3], 1e5, 0))
    monkeypatch.setattr(tables, "BLOCK_BYTES", 4000)
    result = run(capsys, "fit", "data.csv", "--target", "y", *QUICK)
    rows = len(read("data.csv"))
    assert result["train_rows"] == rows - hashed_rows(np.arange(rows), 0.1, 0).sum()
    assert 0 < result["test_rows"] < rows // 10
    assert "of 500 rows" in " ".join(result["notes"])
    assert "in passes" in " ".join(result["notes"])
    assert result["methods"][0]["r2"] > 0.5


@pytest.mark.slow
def test_near_rows_that_are_read_in_passes_are_mapped_beside_the_model(capsys, plain, monkeypatch):
    write("data.csv", plain)
    read_frame, opened, folders = frame_rows.read_frame, tempfile.TemporaryFile, []
    monkeypatch.setattr(frame_rows, "read_frame", lambda *given: read_frame(*given[:3], 1e4, 0))
    monkeypatch.setattr(table_passes, "DRAWN_ROWS", 200)
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **named: folders.append(named["dir"]) or opened(**named)
    )
    Path("models").mkdir()
    options = ["--target", "y", "--kernel", "matern", "--near", "20", "--model", "models/a.gzk"]
    run(capsys, "fit", "data.csv", *options)
    assert len(folders) > 1
    assert {*folders} == {Path("models")}
    assert [path.name for path in Path("models").iterdir()] == ["a.gzk"]
    assert load("models/a.gzk").temp_folder is None


def test_in_a_pass_a_value_of_another_kind_is_named(plain):
    write("data.csv", plain)
    lines = Path("data.csv").read_text().splitlines()
    lines[301] = "x" + lines[301][lines[301].index(",") :]
    Path("data.csv").write_text("\n".join(lines))
    inputs = Inputs({"a": "number", "b": "number"})
    source = frame_rows.TableSource(
        tables.open_table("data.csv"), "y", inputs, "number", False, False, 0.1, 0
    )
    with pytest.warns(UserWarning, match=r"column 'a': 'x' in data row 301: no number"):
        list(source)


def test_a_pass_leaves_out_what_the_fit_may_not_see(plain):
    """Rows held out, rows without a target, and with --drop-missing those with gaps."""
    gaps = {name: [str(value) for value in column] for name, column in plain.items()}
    gaps["y"][7] = gaps["a"][8] = ""
    write("data.csv", gaps)
    inputs = Inputs({"a": "number", "b": "number"})
    table, test = tables.open_table("data.csv"), hashed_rows(np.arange(500), 0.1, 0)
    for dropped, out in ((False, [7]), (True, [7, 8])):
        source = frame_rows.TableSource(table, "y", inputs, "number", False, dropped, 0.1, 0)
        frames, targets = zip(*source, strict=True)
        used = np.setdiff1d(np.flatnonzero(~test), out)
        np.testing.assert_array_equal(np.concatenate(targets), plain["y"][used])
        np.testing.assert_array_equal(Frame.stacked(frames)["b"], plain["b"][used])
        assert source.n_rows == len(used)


# ---- fit and predict


@pytest.mark.slow
def test_fit_on_the_globe(capsys, globe):
    write("data.csv", globe)
    result = run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK, "--plot", "map.png")
    assert result["on_globe"]
    assert result["columns"] == ["lat", "lon"]
    assert (result["train_rows"], result["test_rows"]) == (360, 40)
    assert result["methods"][0]["r2"] > 0.99
    assert files() == ["data.csv", "map.png", "model.gzk"]
    assert Path("map.png").read_bytes()[:4] == b"\x89PNG"
    again = run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
    assert again["methods"][0]["rmse"] == result["methods"][0]["rmse"]  # the same rows and draws


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.5, 5, 25], ids=["town", "country", "continent"])
def test_fit_in_a_region(capsys, size):
    """Lengthscales are those of the region, however small it is."""
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-size, size, (2, 400))
    y = np.sin(3 * lat / size) * np.cos(3 * lon / size)
    write("data.csv", {"lat": 45 + lat, "lon": (lon + 360) % 360, "y": y})
    result = run(capsys, "fit", "data.csv", *ON_GLOBE, "--features", "128", "--plot", "map.png")
    assert result["methods"][0]["r2"] > 0.98
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")


def test_fit_with_latitude_and_longitude_exchanged(capsys, globe):
    write("data.csv", globe)
    options = ["--target", "y", "--lat", "lon", "--lon", "lat"]
    assert "seem to be swapped; swap them" in refuse(capsys, "fit", "data.csv", *options)


@pytest.mark.parametrize(
    ("seconds", "n_rows", "sizes"),
    [
        (0.0, 0, [0]),
        (0.0, 100, [100]),
        (0.0, 255, [255]),  # so few as 127 are no batch of their own
        (0.0, 256, [128, 128]),
        (0.0, 20_000, [128, 1024, 8192, 10_656]),
        (3.0, 500, [128, 170, 202]),  # 170 are expected to take four seconds
        (5.0, 500, [128, 128, 244]),
    ],
)
def test_rows_are_predicted_once_and_more_at_a_time(monkeypatch, seconds, n_rows, sizes):
    moments, batches, told = itertools.count(0.0, seconds), [], []
    monkeypatch.setattr(commands_predict.time, "perf_counter", lambda: next(moments))

    def predict(rows, return_std):
        assert return_std
        batches.append(len(rows))
        return rows["x"], -rows["x"]

    fitted = SimpleNamespace(predict=predict, _hear_of_solves=lambda _, label: told.append(label))
    predictor = commands_predict._Predictor(fitted, None, "p", True, False, False, False)
    x = np.arange(float(n_rows))
    report = lambda *report: told.append(report)  # noqa: E731
    mean, std = predictor(Frame({"x": x}), report, 0.25, 0.75)
    np.testing.assert_array_equal([mean, std], [x, -x])
    assert batches == sizes
    shares = 0.25 + 0.5 * np.cumsum(sizes) / max(n_rows, 1)
    assert told[0] == "solving for standard deviations"
    assert told[1:] == [("predicting", pytest.approx(share)) for share in [0.25, *shares]]


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.npz"])
def test_shares_of_all_pieces_are_reported(capsys, monkeypatch, plain, name):
    """Of each piece from where the one before ended."""
    told, remedies = [], []

    def progress(given):
        remedies.append(given)
        return contextlib.nullcontext(lambda *report: told.append(report))

    columns = {column: plain[column] for column in "abcy"}
    write("data.csv", columns)
    run(capsys, "fit", "data.csv", "--target", "y", *QUICK)
    if name.endswith(".parquet"):
        table = pytest.importorskip("pyarrow").table(columns)
        pytest.importorskip("pyarrow.parquet").write_table(table, name)
    elif name.endswith(".npz"):
        np.savez(name, **columns)
    for limit, value in (("BLOCK_BYTES", 9000), ("BLOCK_VALUES", 600), ("FEW", 20)):
        monkeypatch.setattr(commands_predict if limit == "FEW" else tables, limit, value)
    monkeypatch.setattr(commands_predict, "progress", progress)
    end = ".npy" if name.endswith(".npz") else ".csv"
    run(capsys, "predict", "model.gzk", name, "--output", f"out{end}", "--std")
    assert told.pop(0) == ("predicting", None)
    shares = [share for _, share in told]
    assert {label for label, _ in told} == {"predicting"}
    assert len(shares) >= 6
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.3
    assert shares[-1] == 1
    assert {*remedies[0].values()} == {"; without --std it takes less"}


def test_predictions_are_the_models(capsys, globe):
    write("data.csv", globe)
    result = run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
    model, places = load("model.gzk"), np.column_stack([globe["lat"], globe["lon"]])
    rows = Frame(dict(zip(("lat", "lon"), places.T, strict=True)))
    mean, std = model.predict(rows, return_std=True)
    test = hashed_rows(np.arange(400), 0.1, 0)
    rmse = np.sqrt(np.mean(np.square(globe["y"] - mean)[test]))
    assert result["methods"][0]["rmse"] == pytest.approx(rmse, rel=1e-9)

    done = run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")
    assert done["columns"] == ["PREDICTED_y", "PREDICTED_y_STD"]
    written = read("out.csv")
    for name, values, tolerance in (("PREDICTED_y", mean, 1e-6), ("PREDICTED_y_STD", std, 1e-4)):
        found = [float(row[name]) for row in written]
        np.testing.assert_allclose(found, values, rtol=tolerance, atol=tolerance)
    assert cli.main(["predict", "model.gzk", "data.csv", "--output", "o.csv", "--name", "p"]) == 0
    assert "400 rows with p: o.csv" in capsys.readouterr().out
    assert list(read("o.csv")[0]) == ["lat", "lon", "y", "p"]


@pytest.mark.slow
@pytest.mark.parametrize("on_globe", [True, False], ids=["globe", "plain"])
def test_pieces_make_no_difference(capsys, plain, globe, monkeypatch, on_globe):
    """A file much larger than what is read at a time gives the same model and predictions."""
    write("data.csv", globe if on_globe else plain)
    options = [*(ON_GLOBE if on_globe else ["--target", "y"]), *QUICK]
    results = []
    for name, size in (("whole", 1 << 20), ("pieces", 2000)):
        monkeypatch.setattr(tables, "BLOCK_BYTES", size)
        fit = run(capsys, "fit", "data.csv", "--model", f"{name}.gzk", *options)
        run(capsys, "predict", f"{name}.gzk", "data.csv", "--output", f"{name}.csv")
        predicted = [float(row["PREDICTED_y"]) for row in read(f"{name}.csv")]
        results.append((fit["alpha"], fit["methods"][0]["rmse"], predicted))
    assert results[0] == results[1]


def test_no_test(capsys, plain):
    write("data.csv", plain)
    result = run(capsys, "fit", "data.csv", "--target", "y", *QUICK, *UNTESTED)
    assert (result["train_rows"], result["test_rows"], result["methods"]) == (500, 0, [])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--columns", "a,q"], "there is no column 'q'"),
        (["--gamma", "0"], "--gamma must be a positive number; got 0"),
        (["--kernel", "x"], "--kernel x is unknown to fit; use one of exponential, gaussian, "),
        (["--whole", "--features", "5"], "--whole can't be combined with --features 5"),
        (["--centers", "7", "--features", "5"], "--centers 7 can't be combined with --features 5"),
        (["--lat", "a"], "--lat and --lon must be given together"),
        (["--time", "0"], "--time must be a positive number of seconds; got 0"),
    ],
)
def test_a_mistake_is_told_before_a_file_that_is_there(capsys, plain, options, reason):
    write("data.csv", plain)
    Path("model.gzk").write_bytes(b"precious")
    assert reason in refuse(capsys, "fit", "data.csv", "--target", "y", *options)


@pytest.mark.slow
def test_files_are_not_replaced_by_accident(capsys, plain):
    """One rule for all commands: the model, the predictions and the pictures need --force."""
    write("data.csv", plain)
    Path("model.gzk").write_bytes(b"precious")
    arguments = ["fit", "data.csv", "--target", "y", *QUICK]
    reason = refuse(capsys, *arguments)
    assert reason == (
        "--model model.gzk exists already; give another name with --model, or use --force to replace it"
    )
    assert Path("model.gzk").read_bytes() == b"precious"
    assert cli.main([*arguments, "--model", "other.gzk"]) == 0
    assert cli.main([*arguments, "--force"]) == 0
    assert Path("model.gzk").read_bytes() != b"precious"
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
@pytest.mark.parametrize("options", [QUICK, [*QUICK[2:], *UNTESTED]], ids=["features", "whole"])
def test_rows_with_missing_values_are_dropped(capsys, plain, options):
    """What is left is as if they had never been there; messages name the rows of the file."""
    gaps = {name: [str(each) for each in column[:120]] for name, column in plain.items()}
    gaps["b"][7] = gaps["a"][118] = gaps["c"][119] = "NA"
    gaps["y"][11] = ""
    whole = [i for i in range(120) if i not in (7, 11, 118, 119)]
    write("gaps.csv", gaps)
    write("whole.csv", {name: [column[i] for i in whole] for name, column in gaps.items()})
    arguments = ["--target", "y", *options]
    found = run(capsys, "fit", "gaps.csv", *arguments, "--drop-missing")
    assert "Note: 4 rows with missing values left out" in found["notes"]
    expected = run(capsys, "fit", "whole.csv", *arguments)
    for key in ("alpha", "kernel", "train_rows", "test_rows"):
        assert found[key] == expected[key]
    gaps["c"][90] = "x"
    write("gaps.csv", gaps)
    notes = run(capsys, "fit", "gaps.csv", *arguments, "--drop-missing", "--force")["notes"]
    assert "column 'c': 'x' in data row 91: no number" in "".join(notes)


@pytest.mark.slow
@pytest.mark.parametrize("options", [QUICK, []], ids=["features", "default"])
def test_decimal_commas(capsys, plain, options):
    columns = {name: column[:60] for name, column in plain.items()}
    write("points.csv", columns)
    text = Path("points.csv").read_text()
    Path("commas.csv").write_text(text.replace(",", ";").replace(".", ","))
    arguments = ["--target", "y", *options, *UNTESTED]
    found = run(capsys, "fit", "commas.csv", *arguments)
    assert found["notes"][0].startswith("Note: numbers have a decimal comma, such as ")
    Path("tabs.csv").write_text(text.replace(",", "\t").replace(".", ","))
    found = run(capsys, "fit", "tabs.csv", *arguments)  # told column by column
    assert "holds numbers as text, such as" in "".join(found["notes"])
    found = run(capsys, "fit", "commas.csv", *arguments, "--decimal-comma", "--model", "c.gzk")
    expected = run(capsys, "fit", "points.csv", *arguments)
    assert found["kernel"] == expected["kernel"]
    run(capsys, "predict", "model.gzk", "points.csv", "--output", "p.csv")
    run(capsys, "predict", "c.gzk", "commas.csv", "--output", "c.csv", "--decimal-comma")
    points = [line.rpartition(",")[2] for line in Path("p.csv").read_text().splitlines()]
    commas = [line.rpartition(";")[2] for line in Path("c.csv").read_text().splitlines()]
    assert [each.replace(",", ".") for each in commas] == points
    run(capsys, "predict", "c.gzk", "commas.csv", "--output", "o.csv")
    assert Path("o.csv").read_text() == Path("c.csv").read_text()


# ---- bad input: exit code 2, one line, no file


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a,y\n1,2\n", [], "data.csv has 1 row; at least 20 are needed"),
        ("lat,y\n1,2\n", ["--target", "lot"], "there is no column 'lot'; did you mean 'lat'?"),
        ("Price,y\n1,2\n", ["--target", "PRICE"], "no column 'PRICE'; did you mean 'Price'?"),
        ("a,y\n1,2\n", ["--target", "y,a"], "no column 'y,a'; these are 2 columns; name one"),
        ("a,y\n1,2\n", ["--kernel", "Gausian"], "unknown to fit (did you mean 'gaussian'?); use"),
        ("a,b,y\n1,2,3\n", ["--columns", "a,zz"], "no column 'zz'; its columns are a, b, y"),
        ("a,y\n1,2\n", ["--columns", "a,y"], "is named twice"),
        ("y\n1\n", [], "data.csv has only the column 'y', the target; add columns to predict from"),
        (
            "a,y\n" + "1,2\n" * 40 + "\n" + "".join(f"3,{i}\n" for i in range(40)) + "3,x\n" * 20,
            [],
            "row 81, column 'y': the value is 'x'",
        ),
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
            "a,b,y\n1,2,3\n100,2,3\n" + "1,2,3\n" * 40,
            ["--lat", "a", "--lon", "b"],
            "data.csv: data row 2: latitude 100 is outside -90 to 90 degrees",
        ),
        ("a,y\n1,2\n", ["--plot", "x.bmp"], "--plot x.bmp must end with one of .png, .pdf, .svg"),
        ("a,y\n1,2\n", ["--model", "no/m.gzk"], "cannot save to 'no/m.gzk': there is no folder no"),
        ("a,y\n" + "1,7\n2,8\n" * 12, ["--test-fraction", "1e-9"], "0 for the test"),
    ],
)
def test_bad_tables(capsys, text, options, reason):
    Path("data.csv").write_bytes(text.encode("latin-1"))
    assert reason in refuse(capsys, "fit", "data.csv", "--target", "y", *QUICK, *options)
    assert files() == ["data.csv"]


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


@pytest.mark.slow
def test_bad_predictions(capsys, globe):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
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
    told = refuse(capsys, "predict", "m.gzk", "data.csv", "--output", "out.csv")
    assert told.startswith("cannot load 'm.gzk': there is no file of this name in ")
    assert told.endswith(" (did you mean 'model.gzk'?)")
    assert refuse(capsys, "predict", "model.gzk", "d.csv", "--output", "out.csv") == (
        "d.csv: there is no such file (did you mean 'data.csv'?)"
    )
    assert refuse(capsys, "predict", "data.csv", "model.gzk", "--output", "out.csv") == (
        "model.gzk is in the place of the table; name the model first: gzkcore predict model.gzk "
        "data.csv"
    )
    assert files() == before


def test_bad_models(capsys, globe):
    write("data.csv", globe)
    run(capsys, "fit", "data.csv", *ON_GLOBE, *QUICK)
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
    arguments = ["fit", "data.csv", "--target", "y", *QUICK, "--json"]
    assert cli.main(arguments) == 0
    assert json.loads(capfd.readouterr().out)["model"] == "model.gzk"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fit", pytest.param("predict", marks=pytest.mark.weekly)])
def test_interrupt(capsys, globe, command):
    """Ctrl-C in the middle of the work: exit code 130, no file, not even half of one."""
    write("small.csv", globe)
    run(capsys, "fit", "small.csv", *ON_GLOBE, *QUICK, "--model", "small.gzk")
    head, body = Path("small.csv").read_text().split("\n", 1)
    many = 500 if command == "fit" else 4000  # minutes of work
    Path("data.csv").write_text(head + "\n" + body * many)
    before = files()
    if command == "fit":
        process = start("fit", "data.csv", *ON_GLOBE, "--features", "2048")
    else:
        process = start("predict", "small.gzk", "data.csv", "--output", "out.csv", "--std")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert err.splitlines()[-1] == "gzkcore: interrupted; unfinished files were not written"
    assert files() == before
