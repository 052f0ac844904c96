"""The default of the command fit: nothing is chosen by hand, and any column goes."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import UNTESTED, files, read, refuse, run, write
from sklearn.metrics import log_loss, r2_score

from gzkcore._util.model_io import load
from gzkcore.cli import baselines, fit_frame, verdict
from gzkcore.cli import main as cli
from gzkcore.cli.fit_frame import _announced
from gzkcore.cli.show_frame import print_frame
from gzkcore.learn.held_out import hashed_folds, hashed_rows
from gzkcore.learn.near_kernel_ridge import NearKernelRidge
from gzkcore.rows.frames import Frame
from gzkcore.tabular.fitted_table import FittedTable
from gzkcore.tabular.form import Form
from gzkcore.tabular.kernel_regressor import KernelRegressor

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pd = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")


@pytest.fixture
def mixed():
    """Numbers with gaps, dates and text; a number and a label to predict."""
    rng = np.random.default_rng(0)
    n = 200
    a, b = rng.standard_normal((2, n))
    color = rng.choice(["red", "green, or so", 'dark "blue"'], n)
    days = rng.integers(0, 1000, n)
    y = np.sin(2 * a) + (color == "red") + days / 500 + 0.05 * rng.standard_normal(n)
    kind = np.where(y > 1.5, "high", "low")
    gaps = [str(value) if i % 9 else "" for i, value in enumerate(b)]
    day = (np.datetime64("2021-01-01") + days).astype(str)
    quoted = ['"' + each.replace('"', '""') + '"' for each in color]
    return {"a": a, "b": gaps, "day": day, "color": quoted, "y": y, "kind": kind}


@pytest.mark.parametrize(
    ("asked", "of", "what", "shorter"),
    [
        ("auto", {}, "the whole kernel on 60,000 rows", "--centers 4096 or --time 60"),
        ("whole", {}, "the whole kernel on 60,000 rows", "--centers 4096"),
        ("auto", {"centers": 9000}, "9,000 centres", "--centers 4500 or --time 60"),
        ("centers", {"centers": 9000}, "9,000 centres", "--centers 4500"),
        ("auto", {"features": 4096}, "4,096 features", "--features 2048"),
        ("near", {"near": 300}, "300 near rows", ""),
    ],
)
def test_a_long_fit_is_announced_with_what_is_shorter(
    capsys, monkeypatch, asked, of, what, shorter
):
    for seconds in (300.0, 60.0):
        monkeypatch.setattr(Form, "seconds", lambda *_, seconds=seconds: seconds)
        _announced(asked, Form(1e-2, 0, **of), None, None, 60_000)
        remedy = f"; shorter: --near 50 or {shorter}" if shorter else ""
        told = f"fitting {what} takes about 5.0 min{remedy}\n" if seconds == 300 else ""
        assert capsys.readouterr().err == told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--whole"], "the whole kernel on 450 rows"),
        (["--centers", "80"], "80 centres"),
        (["--features", "64"], "64 features"),
    ],
)
def test_a_fit_says_what_it_will_take(capsys, plain, monkeypatch, options, told):
    monkeypatch.setattr(fit_frame, "LONG", 0.0)
    write("data.csv", plain)
    assert cli.main(["fit", "data.csv", "--target", "y", "--gamma", "0.5", *options]) == 0
    pattern = rf"fitting {told} takes about (< )?[\d.]+ s; shorter: --near 50 or --\w+ \d+\n"
    assert re.fullmatch(pattern, capsys.readouterr().err)


@pytest.mark.slow
def test_numbers(capsys, mixed):
    write("data.csv", mixed)
    arguments = ["fit", "data.csv", "--target", "y", "--columns", "a,b,day,color"]
    arguments += ["--test-fraction", "0.1"]
    result = run(capsys, *arguments, "--plot", "fit.png")
    assert result["kinds"] == ["number", "number", "date", "text"]
    assert result["learner"] == "KernelRegressor"
    assert ", one lengthscale per " in result["chosen"]
    assert " for the mean. " in str(result["report"])
    ours, boosting, linear, mean = result["methods"]
    assert [each["method"] for each in result["methods"]] == [
        "KernelRegressor", "boosting (scikit-learn)", "linear ridge", "the mean",
    ]  # fmt: skip
    assert ours["rmse"] < boosting["rmse"] < mean["rmse"]
    assert ours["rmse"] < linear["rmse"]
    assert abs(mean["r2"]) < 0.1
    assert list(result["shuffled"])[-1] == "b"
    assert 0.85 <= result["sure"]["covered"] <= 1
    assert files() == ["data.csv", "fit.png", "model.gzk"]
    assert result["model_mb"] == Path("model.gzk").stat().st_size / 1e6

    predicted = run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--std")
    assert predicted["columns"] == ["PREDICTED_y", "PREDICTED_y_STD"]
    rows = read("out.csv")
    found = np.array([float(row["PREDICTED_y"]) for row in rows])
    test = hashed_rows(np.arange(200), 0.1, 0)
    rmse = np.sqrt(np.mean(np.square(found - mixed["y"])[test]))
    assert ours["rmse"] == pytest.approx(rmse, rel=1e-5)  # predictions are rounded
    assert all(float(row["PREDICTED_y_STD"]) > 0 for row in rows)
    assert {row["color"] for row in rows} == {"red", "green, or so", 'dark "blue"'}

    assert cli.main([*arguments, "--force"]) == 0
    out = capsys.readouterr().out
    for words in (
        "y from a, b, day, color: ", "boosting (scikit-learn)", "linear ridge", "± ", "R²",
        "What was chosen", "Columns that matter", "Uncertainty, on the held-out rows: 95 %",
        " MB\nNext: gzkcore predict model.gzk NEW.csv --output PREDICTED.csv\n      --std adds",
    ):  # fmt: skip
        assert words in out, words
    assert "What was chosen; --report PAGE.html tells more:" in out
    detail = next(text for text in result["report"] if "lengthscales of all kernels" in text)
    assert detail not in out


@pytest.mark.slow
def test_of_few_rows_each_fifth_is_held_out_in_turn(capsys, mixed):
    """The errors are those of all rows, and the model is fitted to all of them."""
    few = {name: mixed[name][:60] for name in ("a", "color", "y")}
    write("data.csv", few)
    arguments = ["fit", "data.csv", "--target", "y"]
    result = run(capsys, *arguments, "--plot", "fit.png")
    assert (result["train_rows"], result["test_rows"], result["folds"]) == (60, 60, 5)
    assert len(load("model.gzk").model_.X_fit_) == 60
    folds = hashed_folds(60, 0)
    X = pd.DataFrame({"a": few["a"], "color": few["color"]})
    predicted = np.empty(60)
    for fold in range(5):
        held = folds == fold
        model = KernelRegressor(random_state=0).fit(X[~held], few["y"][~held])
        predicted[held] = model.predict(X[held])
    squares = np.square(predicted - few["y"])
    ours, *_, mean = result["methods"]
    assert ours["rmse"] == pytest.approx(np.sqrt(squares.mean()), rel=1e-6)
    of_folds = [np.sqrt(squares[folds == fold].mean()) for fold in range(5)]
    assert ours["of_folds"] == pytest.approx(of_folds, rel=1e-6)
    of_others = [few["y"][folds != fold].mean() for fold in folds]
    assert mean["r2"] == pytest.approx(r2_score(few["y"], of_others), rel=1e-6)

    print_frame(result)
    out = capsys.readouterr().out
    assert "y from a, color: 60 rows, 5-fold cross-validation" in out
    assert "The saved model is a fit to all rows.\nErrors of single folds: KernelReg" in out
    result = run(capsys, *arguments, "--test-fraction", "0.2")
    assert (result["train_rows"], result["test_rows"], result["folds"]) == (48, 12, None)
    print_frame(result)
    told = "12 held-out rows say little; without --test-fraction all rows are tested, by cross"
    assert told in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("rare", [1, 2])
def test_a_rare_label_is_new_to_the_fold_that_has_it(capsys, mixed, rare):
    few = {"a": mixed["a"][:50], "y": [*["rare"] * rare, *mixed["kind"][rare:50]]}
    write("data.csv", few)
    result = run(capsys, "fit", "data.csv", "--target", "y")
    assert (result["folds"], result["classes"]) == (5, ["high", "low", "rare"])
    assert result["methods"][0]["error_rate"] >= rare / 50 * (rare == 1)
    assert len(result["methods"]) == 4
    few["y"] = [*["rare"] * rare, *["low"] * (50 - rare)]
    write("data.csv", few)
    result = run(capsys, "fit", "data.csv", "--target", "y", "--seed", "1")
    assert result["folds"] == (5 if rare > 1 else None)  # where a fold would leave one label


@pytest.mark.slow
def test_labels(capsys, mixed):
    write("data.csv", mixed)
    arguments = ["fit", "data.csv", "--target", "kind", "--columns", "a,day,color"]
    result = run(capsys, *arguments, "--plot", "fit.png")
    assert result["learner"] == "KernelClassifier"
    assert result["classes"] == ["high", "low"]
    assert " for the frequencies of the classes." in str(result["report"])
    errors = [each["error_rate"] for each in result["methods"]]
    assert errors[0] <= errors[3]
    names = ["PREDICTED_kind", "PREDICTED_kind_high", "PREDICTED_kind_low"]
    told = run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv", "--probabilities")
    assert told["columns"] == names
    for row in read("out.csv"):
        high, low = float(row[names[1]]), float(row[names[2]])
        assert high + low == pytest.approx(1)
        assert row["PREDICTED_kind"] == ("high" if high > low else "low")
    reason = refuse(capsys, "predict", "model.gzk", "data.csv", "--output", "o.csv", "--std")
    assert "--std: model.gzk predicts labels, which have no standard deviation; use" in reason
    print_frame(result)
    assert "Uncertainty: the mean probability of the predicted class" in capsys.readouterr().out


@pytest.mark.slow
def test_numbers_as_labels(capsys, plain):
    plain = {"a": plain["a"][:60], "y": (plain["a"][:60] > 0).astype(int)}
    write("data.csv", plain)
    arguments = ["fit", "data.csv", "--target", "y"]
    notes = run(capsys, *arguments, *UNTESTED)["notes"]
    assert "--classify treats them as labels" in " ".join(notes)
    result = run(capsys, *arguments, "--classify", *UNTESTED)
    assert result["classes"] == [0, 1]
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv")
    assert {row["PREDICTED_y"] for row in read("out.csv")} == {"0", "1"}
    reason = refuse(capsys, "fit", "data.csv", "--target", "a", "--classify", "--force")
    assert "has fractional numbers" in reason


@pytest.mark.weekly
def test_formats_agree(capsys, mixed):
    """Compressed or not, Parquet with its own types, and a new file with levels never seen."""
    write("data.csv", mixed)
    Path("packed.csv.gz").write_bytes(gzip.compress(Path("data.csv").read_bytes()))
    from pyarrow import csv

    table = csv.read_csv("data.csv")
    parquet.write_table(table, "data.parquet")
    found = [
        run(capsys, "fit", name, "--target", "kind", "--columns", "a,b,day,color")
        for name in ("data.csv", "packed.csv.gz", "data.parquet")
    ]
    assert [each["methods"][0]["log_loss"] for each in found[1:]] == pytest.approx(
        [found[0]["methods"][0]["log_loss"]] * 2
    )
    Path("new.csv").write_text("a,b,day,color\n1,,2021-03-01,violet\n")
    run(capsys, "predict", "model.gzk", "new.csv", "--output", "out.csv")
    assert read("out.csv")[0]["PREDICTED_kind"] in ("high", "low")
    run(capsys, "predict", "model.gzk", "data.parquet", "--output", "out.parquet")
    assert parquet.read_table("out.parquet")["PREDICTED_kind"].type == "string"
    Path("new.csv").write_text("a,b,day,color\n1,2,2021-03-01,red\n1,2,soon,red\n")
    assert "new.csv: data row 2, column 'day': the value is 'soon', which is not a date" in refuse(
        capsys, "predict", "model.gzk", "new.csv", "--output", "o.csv"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "named", [pytest.param(True, marks=pytest.mark.weekly), False], ids=["by options", "by names"]
)
def test_on_the_globe(capsys, globe, named):
    if not named:
        globe = {"Longitude": globe["lon"], "latitude": globe["lat"], "y": globe["y"]}
    write("data.csv", globe)
    options = ["--lat", "lat", "--lon", "lon"] if named else []
    result = run(capsys, "fit", "data.csv", "--target", "y", *options, "--plot", "map.png")
    assert result["on_globe"]
    model = load("model.gzk")
    assert result["lengthscale_km"] == pytest.approx(6371 * model.kernel_.length_scale, rel=1e-2)
    assert result["methods"][0]["r2"] > 0.99
    assert result["shuffled"] == {}  # a latitude with another longitude is another place
    names = "lat, lon" if named else "Longitude, latitude"
    assert f"Columns treated as places on the globe: {names}." in result["report"]
    assert Path("map.png").stat().st_size > 50_000
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv")
    if named:
        write("off.csv", {"lat": [1.0, 2.0], "lon": [2.0, 999.0]})
        assert "off.csv: data row 2: longitude 999 is outside -180 to 360 degrees" in refuse(
            capsys, "predict", "model.gzk", "off.csv", "--output", "o.csv"
        )
        Path("gap.csv").write_text("lat,lon\n1,2\n,3\n")
        assert "gap.csv: data row 2, column 'lat': the value is missing" in refuse(
            capsys, "predict", "model.gzk", "gap.csv", "--output", "o.csv"
        )


@pytest.mark.weekly
def test_across_the_date_line(capsys):
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-20, -15, 300), rng.uniform(175, 185, 300)
    y = np.sin(lat + lon)
    write("data.csv", {"lat": lat, "lon": (lon + 180) % 360 - 180, "y": y})
    options = ["--target", "y", "--lat", "lat", "--lon", "lon", "--plot", "map.png"]
    assert run(capsys, "fit", "data.csv", *options)["methods"][0]["r2"] > 0.98
    write("same.csv", {"lat": lat, "lon": lon})
    for name in ("data", "same"):
        run(capsys, "predict", "model.gzk", f"{name}.csv", "--output", f"{name}_out.csv")
    both = [[float(r["PREDICTED_y"]) for r in read(f"{n}_out.csv")] for n in ("data", "same")]
    np.testing.assert_allclose(*both, atol=1e-6)


@pytest.mark.slow
def test_what_is_left_out_is_told(capsys, plain):
    names = [f"somebody {i}" for i in range(100)]
    y = [str(value) if i % 10 else "" for i, value in enumerate(plain["y"][:100])]
    columns = {name: column[:100] for name, column in plain.items()}
    write("data.csv", {"name": names, **columns, "y": y})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--test-fraction", "0")
    notes = " ".join(result["notes"])
    why = "more than half of their texts differ (--as NAME=category keeps one)"
    assert f"left out, since {why}: name" in notes
    assert "10 rows have no value of y, data row 1 first; left out" in notes
    assert result["columns"] == ["a", "b", "c"]
    assert (result["train_rows"], result["methods"]) == (90, [])


@pytest.mark.slow
@pytest.mark.parametrize("target", ["y", "kind"])
def test_of_many_rows_held_out_columns_are_shuffled_in_some(capsys, mixed, target, monkeypatch):
    monkeypatch.setattr(verdict, "MOST_ROWS", 25)
    write("data.csv", mixed)
    options = ["--target", target, "--columns", "a,day", "--test-fraction", "0.2"]
    result = run(capsys, "fit", "data.csv", *options)
    assert result["test_rows"] == 40
    assert sorted(result["shuffled"]) == ["a", "day"]
    assert max(result["shuffled"].values()) > 1.2 * result["error_of_some"]
    X, test = pd.read_csv("data.csv", parse_dates=["day"]), hashed_rows(np.arange(200), 0.2, 0)
    some = X[test].iloc[np.sort(np.random.default_rng(0).permutation(40)[:25])]
    model = load("model.gzk")
    if target == "kind":
        error = log_loss(some.kind, model.predict_proba(some[["a", "day"]]))
        assert 0.5 < result["methods"][0]["roc_auc"] <= 1
        assert result["rarer_label"] == min(model.classes_, key=(X.kind[~test]).tolist().count)
    else:
        error = rmse_of(model.predict(some[["a", "day"]]) - some.y)
    assert result["error_of_some"] == pytest.approx(error, rel=1e-5)


@pytest.mark.slow
def test_more_than_a_thousand_rows_held_out(capsys):
    """A column that the model leaves out is not shuffled."""
    a, b = np.random.default_rng(0).standard_normal((2, 2600))
    write("data.csv", {"a": a, "b": b, "constant": np.ones(2600), "y": np.sin(a) + b})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--test-fraction", "0.4")
    assert (result["test_rows"], result["rows_of_some"]) == (1040, 1000)
    assert sorted(result["shuffled"]) == ["a", "b"]


@pytest.mark.slow
def test_a_fit_is_kept_whatever_ends_the_test(capsys, plain, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_frame, "judge_model", interrupted)
    write("data.csv", plain)
    options = ["--target", "y", "--columns", "a", "--test-fraction", "0.1"]
    assert cli.main(["fit", "data.csv", *options]) == 130
    told = "interrupted; model.gzk has the model, which was not tested"
    assert told in capsys.readouterr().err
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv")
    monkeypatch.setattr(fit_frame, "_learned", interrupted)
    assert cli.main(["fit", "data.csv", *options, "--model", "other.gzk"]) == 130
    assert "has the model" not in capsys.readouterr().err
    assert files() == ["data.csv", "model.gzk", "out.csv"]


def test_boosting_is_left_out_of_many_labels(capsys, mixed, monkeypatch):
    monkeypatch.setattr(baselines, "MOST_CLASSES", 1)
    write("data.csv", mixed)
    options = ["--target", "kind", "--columns", "a", "--test-fraction", "0.1"]
    result = run(capsys, "fit", "data.csv", *options)
    assert len(result["methods"]) == 3
    told = "Note: boosting (scikit-learn) could not be fitted: with 2 labels, a tree for each in"
    assert any(note.startswith(told) for note in result["notes"])


@pytest.mark.slow
def test_a_word_among_dates_is_named(capsys, mixed):
    days = [f"{1 + i % 28}.{1 + i // 28}.2024" for i in range(199)]
    write("data.csv", {"day": [*days, "unknown"], "y": mixed["y"]})
    notes = " ".join(run(capsys, "fit", "data.csv", "--target", "y")["notes"])
    assert "'day'" in notes
    assert "'unknown'" in notes
    assert "row 200" in notes


def rmse_of(missed):
    return np.sqrt(np.mean(np.square(missed)))


def test_nothing_to_learn(capsys, plain):
    write("data.csv", {"a": np.full(100, 7), "y": plain["y"][:100]})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--plot", "fit.png")
    assert result["kernel"] is None
    assert any("The model predicts the mean" in line for line in result["report"])
    json.dumps(result, allow_nan=False)


MANY = "".join(f"{i},{i % 7}\n" for i in range(100))
LINE = "".join(f"{i},{i}\n" for i in range(100))


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a,y\n1,2\n", [], "data.csv has 1 row; at least 20 are needed"),
        ("a,y\n" + "1,\n" * 50, [], "column 'y' has no value in any row; choose another"),
        (
            "a,y\n" + "1,7\n2,7\n" * 20,
            [],
            "column 'y' is 7 in every row that is used, so that there",
        ),
        ("a,y\n" + MANY + "inf,1\n", [], "row 101, column 'a': the value is inf, which is not a"),
        ("a,y\n" + MANY, ["--time", "0"], "--time must be a positive number of seconds; got 0"),
        (
            "a,y\n" + MANY,
            ["--memory", "much"],
            "--memory='much' is not a number of bytes; use one such as 2e9, 500MB",
        ),
        ("a,y\n" + MANY, ["--memory", "-2GB"], "--memory='-2GB' is not a number of bytes"),
        (
            "a,y\n" + LINE,
            ["--memory", "8kB"],
            "--memory allows 8,000 bytes, but a model of 100 rows",
        ),
        (
            "a,y\n" + LINE,
            ["--memory", "1kB"],
            "19 of 100 rows of data.csv fit into --memory, 1,000 bytes",
        ),
        ("a,y\n" + MANY, ["--test-fraction", "1e-9"], "0 for the test"),
        (
            "a,y\n" + "".join(f"{i},id{i}\n" for i in range(50)),
            [],
            "column 'y' has 50 different labels in 50 rows, too many to learn",
        ),
        (
            "a,y\n" + "".join(f"id{i},{i}\n" for i in range(50)),
            [],
            "every column is empty, or holds text with a different value",
        ),
        (
            "a,y\n" + "1,2020-01-01\n2,2020-01-02\n" * 20,
            [],
            "holds dates, which can't be predicted",
        ),
    ],
)
def test_bad_tables(capsys, text, options, reason):
    Path("data.csv").write_text(text)
    options = ["--test-fraction", "0", *options] if "labels" in reason else options
    assert reason in refuse(capsys, "fit", "data.csv", "--target", "y", *options)
    assert files() == ["data.csv"]


@pytest.mark.parametrize(
    "wrong", [{"target": 3}, {"missing": [1]}, {"west": "x"}, {"window": [None]}]
)
def test_what_a_model_knows_of_its_table_is_checked(capsys, plain, wrong):
    write("data.csv", plain)
    model = KernelRegressor(cv=2, random_state=0).fit(np.arange(20.0)[:, None], np.arange(20.0))
    model.table_ = FittedTable(**{"target": "y"} | wrong)
    model.save("other.gzk")
    reason = refuse(capsys, "predict", "other.gzk", "data.csv", "--output", "o.csv")
    assert f"FittedTable.{next(iter(wrong))}" in reason
    assert "o.csv" not in files()


def test_frames_are_as_long_as_their_columns():
    frame = Frame({"a": np.arange(4.0)})
    assert (len(frame), frame.columns, len(Frame({}))) == (4, ["a"], 0)
    np.testing.assert_array_equal(frame.take(np.array([1, 3]))["a"], [1, 3])


def test_coverage_is_said_of_a_model_of_many_rows(monkeypatch):
    monkeypatch.setattr(verdict, "STD_ROWS", 10)
    monkeypatch.setattr(verdict, "SOME_ROWS", 20)
    x = np.linspace(0, 1, 60)
    model = KernelRegressor(random_state=0).fit(x[:, None], np.sin(6 * x))
    tested = verdict.Tested([model], [slice(None)], np.zeros(60, dtype=int))
    measures, std = verdict._how_sure(tested, FrameOf(x), np.sin(6 * x), model.predict(x[:, None]))
    assert measures["covered"] > 0.9
    assert measures["std_rows"] == 60  # of one column near rows give them
    monkeypatch.setattr(verdict.NearVariances, "suit", lambda *_: False)
    measures, std = verdict._how_sure(tested, FrameOf(x), np.sin(6 * x), model.predict(x[:, None]))
    assert measures["std_rows"] == np.isfinite(std).sum() == 20
    assert measures["covered"] > 0.9
    rows = model.encoder_.transform(x[:, None])
    model.model_ = NearKernelRidge(model.kernel_, 0.01).fit(rows, x)
    measures, std = verdict._how_sure(tested, FrameOf(x), x, x)
    assert measures["std_rows"] == 60  # near rows give them with the predictions


class FrameOf:
    """Rows of one column, which `take` takes as an array."""

    def __init__(self, x):
        self.x = x

    def take(self, rows):
        return self.x[rows, None]
