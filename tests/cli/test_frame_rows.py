"""Which rows and columns of a table the default of `gzkcore fit` takes, and what of them it says."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import QUICK, UNTESTED, read, refuse, run, write

from gzkcore._util.model_io import load
from gzkcore.cli import arguments, frame_rows, hints
from gzkcore.cli import main as cli
from gzkcore.cli.baselines import REGRESSION
from gzkcore.cli.held_out import gaps_held_out, length_of
from gzkcore.cli.inputs import Inputs
from gzkcore.learn.held_out import hashed_rows
from gzkcore.rows.doubts import what_texts_seem
from gzkcore.rows.files import open_table
from gzkcore.rows.frames import read_frame
from gzkcore.tabular.kernel_regressor import KernelRegressor

pytest.importorskip("typer", reason="the extra `cli` is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="the extra `cli` is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `cli` is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(("fitted", "spelling"), [("data.parquet", str.lower), ("data.csv", str)])
def test_booleans_are_the_same_in_every_format(capsys, fitted, spelling):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(60), rng.integers(0, 2, 60).astype(bool)
    y = a + 3 * b
    parquet.write_table(pyarrow.table({"a": a, "b": b, "y": y}), "data.parquet")
    write("data.csv", {"a": a, "b": [str(each).lower() for each in b], "y": y})
    run(capsys, "fit", fitted, "--target", "y", *UNTESTED, *QUICK)
    write("new.csv", {"a": a, "b": [spelling(str(each)) for each in b]})
    parquet.write_table(pyarrow.table({"a": a, "b": b}), "new.parquet")
    for name in ("new.csv", "new.parquet"):
        result = run(capsys, "predict", "model.gzk", name, "--output", "out.csv")
        found = [float(row["PREDICTED_y"]) for row in read("out.csv")]
        assert np.allclose(found, y, atol=0.3), name
        assert result["notes"] == []
    in_python = pd.DataFrame({"a": a, "b": b})  # as read_csv makes them
    assert np.allclose(load("model.gzk").predict(in_python), y, atol=0.3)


def test_predict_says_which_values_are_new(capsys):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(40), rng.choice(["x", "z"], 40)
    write("data.csv", {"a": a, "b": b, "y": a + (b == "x")})
    run(capsys, "fit", "data.csv", "--target", "y", *UNTESTED, *QUICK)
    Path("new.csv").write_text("a,b\n1,x\n2,Z\n3,\n4,w\n")
    result = run(capsys, "predict", "model.gzk", "new.csv", "--output", "out.csv")
    missing, new = result["notes"]
    assert missing.startswith("Note: column 'b': no value in 1 of 4 rows, but in every")
    assert new == (
        "Note: column 'b' has levels that the fit did not see, in 2 rows, such as 'Z': they are "
        "unknown"
    )


def test_predict_says_which_numbers_are_far_outside(capsys):
    rng = np.random.default_rng(0)
    warm, wind = rng.uniform(0, 1, 40), rng.uniform(0, 9, 40)
    write("data.csv", {"warm": warm, "wind": wind, "y": warm + wind - 5})
    run(capsys, "fit", "data.csv", "--target", "y", *UNTESTED, *QUICK)
    write("new.csv", {"warm": 40 * warm, "wind": [*wind[3:], *3 * [-9999]]})
    notes = run(capsys, "predict", "model.gzk", "new.csv", "--output", "out.csv")["notes"]
    warm_note, wind_note = notes
    assert re.fullmatch(
        r"Note: column 'warm' is far outside the range .* another unit.*", warm_note
    )
    assert re.search("in 3 of 40 values, first -9999 in data row 38; if it stands for a", wind_note)


def test_predict_names_a_column_that_looks_like_one_it_needs(capsys):
    shop = np.random.default_rng(0).standard_normal(40)
    write("data.csv", {"shop": shop, "y": shop})
    run(capsys, "fit", "data.csv", "--target", "y", *UNTESTED, *QUICK)
    write("new.csv", {"shp": shop})
    assert refuse(capsys, "predict", "model.gzk", "new.csv", "--output", "out.csv") == (
        "new.csv: there is no column 'shop', which the model needs; there is 'shp', which looks like "
        "it; rename that one"
    )
    write("text.csv", {"shop": ["x", "y"] * 20})
    told = refuse(capsys, "predict", "model.gzk", "text.csv", "--output", "out.csv")
    assert "text.csv: data row 1, column 'shop': the value is 'x', which is not a finite" in told


@pytest.mark.parametrize("options", [[], QUICK], ids=["default", "features"])
def test_too_few_rows_without_gaps(capsys, options):
    a = np.random.default_rng(0).standard_normal(40)
    write("data.csv", {"a": a, "b": [1, *[""] * 39], "y": a})
    given = ["data.csv", "--target", "y", "--drop-missing", *options]
    assert refuse(capsys, "fit", *given) == (
        "data.csv has 1 row without missing values, of 40; at least 20 are needed; choose --columns "
        "with fewer gaps"
    )


def test_two_values_may_be_labels_by_an_option_of_fit():
    """Which other commands that read such a table don't have."""
    said = []
    frame_rows._targets(None, "y", np.array([0.0, 1.0]), np.arange(2), False, said.append)
    assert said == ["y has two values; gzkcore fit --classify treats them as labels"]


@pytest.mark.parametrize(
    ("values", "told"),
    [([0, 1, 2], True), ([1, 2, 3, 4, 5], True), ([4, 6, 8], False), ([0, 0.5, 1], False),
     ([0] * 9 + [1] * 9 + [2], False), (range(11), False)],
)  # fmt: skip
def test_a_few_whole_numbers_in_turn_may_be_labels(values, told):
    """Not where one is rare, as of counts."""
    y = np.repeat(np.array(values, dtype=float), 10)
    found = hints.about_numbered_labels("kind", y)
    of_them = f"kind has the values {y[0]:.0f} to {y[-1]:.0f} alone; gzkcore fit --classify "
    assert found.startswith(of_them) == told
    assert bool(found) == told


def test_labels_with_a_single_row_are_told():
    labels = np.array(["a", "b", "c", "a", "b"])
    assert "to test: 'a', 'b'; join them" in hints.about_single_rows("kind", labels[:2])
    assert hints.about_single_rows("kind", labels[[0, 1, 3, 4]]) == ""
    write("data.csv", {"a": range(40), "kind": [*"xy" * 19, "x", "z"]})
    frame_rows.read_rows(
        open_table("data.csv"), "kind", ["a"], places=False, classify=False, test_fraction=0.2,
        drop_missing=False, seed=0, report=lambda *_: None, say=(said := []).append,
    )  # fmt: skip
    assert any(line.startswith("labels of kind with a single row, too few") for line in said)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [["01", "1", "001"], [2**60, 2**60 + 1, 2**60 + 2]])
def test_codes_are_labels_as_they_are_written(capsys, labels):
    rng = np.random.default_rng(0)
    place = rng.integers(0, 3, 90)
    y = [str(labels[i]) for i in place]
    write("data.csv", {"a": place + 0.1 * rng.standard_normal(90), "y": y})
    run(capsys, "fit", "data.csv", "--target", "y", "--classify", *UNTESTED, *QUICK)
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "new.csv")
    assert [row["PREDICTED_y"] for row in read("new.csv")] == y


def test_labels_that_are_rounded_as_doubles_are_refused(capsys):
    write("data.csv", {"a": range(40), "y": [2**60 + 2**9 * (i % 2) for i in range(40)]})
    assert "beyond 2^53" in refuse(capsys, "fit", "data.csv", "--target", "y", "--classify")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_without_a_value_are_left_out(capsys, ending):
    a = np.random.default_rng(0).standard_normal(40)
    write("data.csv", {"a": a, "none": [""] * 40, "y": a, "": [""] * 40})
    columns = {"a": a, "none": pyarrow.nulls(40, pyarrow.float64()), "y": a, "": pyarrow.nulls(40)}
    parquet.write_table(pyarrow.table(columns), "data.parquet")
    result = run(capsys, "fit", f"data.{ending}", "--target", "y", *UNTESTED)
    assert result["columns"] == ["a"]
    assert result["notes"] == ['Note: left out, since they have no value: none,""']
    reason = refuse(
        capsys, "fit", f"data.{ending}", "--target", "y", "--columns", "none", "--force"
    )
    assert "every column is empty" in reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["boosting (scikit-learn)", pytest.param("linear ridge", marks=pytest.mark.weekly)]
)
def test_a_baseline_that_fails(capsys, monkeypatch, plain, name):
    def fail(*_):
        raise RuntimeError("no\nway")

    write("data.csv", plain)
    monkeypatch.setitem(REGRESSION, name, fail)
    result = run(capsys, "fit", "data.csv", "--target", "y")
    assert result["notes"] == [f"Note: {name} could not be fitted: no way"]
    assert len(result["methods"]) == 3
    assert Path("model.gzk").exists()


@pytest.mark.parametrize("value", ["2024-01-01", "here"])
def test_places_are_numbers(capsys, globe, value):
    write("data.csv", globe | {"other": [value] * 400})
    reason = refuse(capsys, "fit", "data.csv", "--target", "y", "--lat", "other", "--lon", "lon")
    wrong = f"data row 1, column 'other': the value is '{value}', which is not a finite number"
    assert reason.startswith(f"data.csv: {wrong}")


def test_longitudes_may_go_on_beyond_360():
    write("data.csv", {"lat": [1, 2], "lon": [370, 190]})
    inputs = Inputs({"lat": "number", "lon": "number"}, -180.0)
    columns = {"lat": np.array([1.0, 2.0]), "lon": np.array([370.0, 190.0])}
    frame = inputs.frame(open_table("data.csv"), np.arange(2), columns)
    assert frame["lon"].tolist() == [10, -170]


def test_places_with_letters_are_those_with_signs(capsys, globe):
    places = {name: globe[name][:60] for name in ("lat", "lon")}
    letters = {
        name: [f"{abs(v)} {letters[int(v < 0)]}" for v in places[name]]
        for name, letters in (("lat", "NS"), ("lon", "EW"))
    }
    write("signs.csv", places | {"y": globe["y"][:60]})
    write("letters.csv", letters | {"y": globe["y"][:60]})
    options = ["--target", "y", "--lat", "lat", "--lon", "lon", *QUICK, *UNTESTED]
    for name in ("signs", "letters"):
        run(capsys, "fit", f"{name}.csv", *options, "--model", f"{name}.gzk")
    for model in ("signs", "letters"):
        for data in ("signs", "letters"):
            run(capsys, "predict", f"{model}.gzk", f"{data}.csv", "--output", f"{model}-{data}.csv")
    predicted = [[row["PREDICTED_y"] for row in read(path)] for path in Path().glob("*-*.csv")]
    assert len(predicted) == 4
    assert all(each == predicted[0] for each in predicted)


@pytest.mark.slow
def test_columns_with_commas_and_spaces(capsys):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 40))
    rows = "".join(f"{x},{z},u,{x + z}\n" for x, z in zip(a, b, strict=True))
    Path("data.csv").write_text('"Temp, °C", b ,name,y\n' + rows)
    fit = ["fit", "data.csv", "--target", "y", *QUICK]
    reason = refuse(capsys, "plan", "data.csv")
    assert reason.endswith("""--columns '"Temp, °C",b,y'""")
    assert run(capsys, *fit, "--columns", '"Temp, °C"," b "')["columns"] == ["Temp, °C", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], QUICK], ids=["best", "features"])
def test_columns_that_are_left_out_are_named(capsys, globe, options):
    write("data.csv", {name: values[:60] for name, values in globe.items()} | {"b": ["u"] * 60})
    arguments = ["fit", "data.csv", "--target", "y", "--lat", "lat", "--lon", "lon", *options]
    arguments += UNTESTED
    assert run(capsys, *arguments)["unused"] == ["b"]
    assert cli.main([*arguments, "--force"]) == 0
    assert re.search("(?i)left out:? +b", capsys.readouterr().out)


NUMBERED = {
    "nr": (range(1, 61), True),
    "shuffled": (np.random.default_rng(1).permutation(60) + 100_000, True),
    "customer_id": (np.random.default_rng(1).permutation(90)[:60], True),
    "orderID": (np.random.default_rng(1).permutation(90)[:60], True),
    "rooms": (np.random.default_rng(1).integers(0, 60, 60), False),
    "gaps": (np.random.default_rng(1).permutation(90)[:60], False),
    "paid": (np.random.default_rng(1).permutation(90)[:60], False),
    "founded": (range(1950, 2010), False),
    "time step": (range(60), False),
    "t": (range(60), False),
    "Time (s)": (range(60), False),
    "hours_since": (range(60), False),
    "timestamp": (range(1_700_000_000, 1_700_000_060), False),
    "huge": (np.arange(1, 61) * 1e300, False),
}


@pytest.mark.parametrize(("name", "values", "told"), [(k, *v) for k, v in NUMBERED.items()])
def test_columns_that_number_the_rows_are_told(name, values, told):
    column = np.array(values, dtype=float)
    some = np.random.default_rng(0).permutation(60)[:40]
    ends = column[np.newaxis].min(axis=1), column[np.newaxis].max(axis=1)
    for rows in (np.arange(60), some):
        found = hints.numbering_columns([name], rows, column[rows, np.newaxis], 60, ends)
        assert found == ({name: (column.min(), column.max())} if told else {})
    column[some[3]] = np.nan
    assert hints.numbering_columns([name], some, column[some, np.newaxis], 60, ends) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "order"),
    [
        (["fit", *UNTESTED], "rising"),
        (["fit", *QUICK, *UNTESTED], "shuffled"),
        (["plan"], "shuffled"),
    ],
)
def test_a_column_that_numbers_the_rows_has_a_note(capsys, command, order):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 60))
    numbers = np.arange(1, 61) if order == "rising" else rng.permutation(60) + 1
    write("data.csv", {"nr": numbers, "a": a, "b c": b, "y": a + b})
    arguments = [command[0], "data.csv", "--target", "y", *command[1:]]
    notes = run(capsys, *arguments)["notes"]
    assert re.search(
        r"Note: column 'nr' \(1 to \d+\) seems to number the rows; if so, leave it out: "
        "--drop nr",
        "".join(notes),
    ), notes
    notes = run(capsys, *arguments, "--columns", "nr,b c")["notes"]  # asked for by its name
    assert "number the rows" not in str(notes)


def test_columns_that_are_dropped(capsys):
    a, b = np.random.default_rng(0).standard_normal((2, 60))
    write("data.csv", {"a": a, "b c": b, "d": b, "y": a})
    result = run(capsys, "fit", "data.csv", "--target", "y", "--drop", '"b c", d', *UNTESTED)
    assert load("model.gzk").feature_names_in_.tolist() == ["a"]
    assert result["unused"] == ["b c", "d"]
    given = ["fit", "data.csv", "--target", "y", "--drop"]
    assert "there is no column 'e'" in refuse(capsys, *given, "e")
    assert "it can't be combined with --columns" in refuse(capsys, *given, "d", "--columns", "a")


def test_weights_are_those_of_the_rows(capsys):
    rng = np.random.default_rng(0)
    a, weight = rng.uniform(0, 1, 60), np.tile([1.0, 0.0, 2.0], 20)
    y = np.where(weight, a, 100)
    write("data.csv", {"a": a, "w": weight, "y": y})
    given = ["fit", "data.csv", "--target", "y", "--weights"]
    run(capsys, *given, "w", *UNTESTED)
    fitted = load("model.gzk")
    assert fitted.feature_names_in_.tolist() == ["a"]
    in_python = KernelRegressor(random_state=0).fit(pd.DataFrame({"a": a}), y, weight)
    rows = pd.DataFrame({"a": a[:5]})
    np.testing.assert_allclose(fitted.predict(rows), in_python.predict(rows), rtol=1e-6)
    np.testing.assert_allclose(fitted.predict(rows), a[:5], atol=0.01)
    assert "--weights a is a column of the fit as well" in refuse(
        capsys, *given, "a", "--columns", "a", "--force"
    )
    write("data.csv", {"a": a, "w": [*weight[:59], -1], "y": y})
    wanted = "data row 60, column 'w': the value is -1.0, which is not a weight >= 0"
    assert wanted in refuse(capsys, *given, "w", "--force")


@pytest.mark.parametrize("divided", [["--test-fraction", "0.2"], [], ["--memory", "20KB"]])
def test_weights_of_rows_that_are_divided(divided):
    """Rows of no weight say nothing, in the fit, in each fold and in passes."""
    rng = np.random.default_rng(0)
    a, weight = (
        rng.uniform(0, 1, 400 if divided else 100),
        rng.integers(0, 2, 400 if divided else 100),
    )
    write("data.csv", {"a": a, "w": weight, "y": np.where(weight, a, 100)})
    rows = frame_rows.read_rows(
        open_table("data.csv"), "y", ["a"], places=False, classify=False, drop_missing=False, seed=0,
        test_fraction=0.2 if "0.2" in divided else None, report=lambda *_: None,
        say=lambda text: None, weights="w", most_bytes=20_000 if "--memory" in divided else None,
    )  # fmt: skip
    if rows.source is not None:
        batches = [*rows.source]
        assert all((w == 0).tolist() == (y == 100).tolist() for _, y, w in batches)
    else:
        assert rows.weight.shape == rows.y.shape
        assert ((rows.weight == 0) == (rows.y == 100)).all()
    assert (rows.source is not None) == ("--memory" in divided)


def test_the_only_column_to_predict_from_has_no_note():
    assert hints.about_row_numbers({"depth": (1.0, 60.0)}, ["depth"]) == ""
    assert "--drop nr" in hints.about_row_numbers({"nr": (1.0, 60.0)}, ["nr", "load"])


def test_texts_of_merged_cells_are_told():
    blocks = np.array(["n", None, None, "s", None, "w", None, None], dtype=object)
    told = "column 'a' has a text in 3 of 8 rows, and another one each time; if it holds for those"
    assert told in hints.about_blocks("a", blocks)
    for others in (blocks[1:], np.where(blocks == "s", "n", blocks), blocks[[0, 3, 5, 1, 2]]):
        assert hints.about_blocks("a", others) == ""


@pytest.mark.parametrize(("texts", "told"), [
    (["HIGH", "high", "low"], "column 'y' has 'HIGH' and 'high', which are spelt alike but for c"),
    (["\u00fcber", "u\u0308ber"], "which are spelt alike"),
    (["a  b", "a b"], "'a  b' and 'a b'"),
    (["ab", "a b", "c"], "^$"),
    ([], "^$"),
])  # fmt: skip
def test_texts_that_are_spelt_alike_are_told(texts, told):
    assert re.search(told, hints.about_spellings("y", texts))


@pytest.mark.parametrize(
    ("texts", "seem"),
    [
        (["1,200", "950", "12,345"], "numbers"),
        (["1,200", "0,5"], "decimal commas"),
        (["2024-02-29", "2024-12-31 10:00"], "dates"),
        (["03/25/2024", "12/01/24"], "dates"),
        (["94-97-62", "40-17-35"], "dates"),
        (["2024-W05-1", "2024-W50-2", "soon"], "dates"),
        (["12.5 kmpl", "17 km/kg"], "numbers"),
        (["12A", "17B"], ""),
        (["5.25N", "12.5S"], "numbers"),
        (["1.5 thousand", "900"], "numbers"),
        (["5h 12m", "1 day, 3 h", "2 days 10:00:00"], "numbers"),
        (["PT5H12M", "P1DT3H"], "numbers"),
        (["5.21(3)", "1.2 x 10^5"], "numbers"),
        (["Di, 31.12.2024", "Mi, 1.1.2025"], "dates"),
        (["<0.5", "1.2", "0.7"], "numbers"),
        (["950", "12"], ""),
        (["1,4", "2,3", "4"], ""),
        (["1,4", "3,2", "4"], "decimal commas"),
        (["3.14.17", "3.11.10", "2.7.18"], ""),
        (["25.03.24", "01.12.24"], "dates"),
        ([f"{i:02}/03/2024" for i in range(1, 29)] + ["unknown"], "dates"),
        (["03/25/2024", "12/01/24", "unknown"], "dates"),
    ],
)
def test_what_texts_seem(texts, seem):
    assert what_texts_seem(texts) == seem


def test_limits_among_few_numbers_are_no_labels():
    column = np.array(["0.1", "0.2", "<0.5"] * 9, dtype=object)
    assert "texts such as '<0.5' seem to be numbers" in hints.doubtful_texts(column)


def test_where_many_values_are_limits_it_is_refused_by_what_is_lost():
    some = [f"{n / 8}" if n % 5 else "<0.5" for n in range(100)]
    write("data.csv", {"a": [*range(100)], "y": some})
    with pytest.raises(ValueError, match=r"20 such as '<0.5', .* write half the limit in plac"):
        read_frame(open_table(Path("data.csv")), ["a", "y"], lambda *_: None)


@pytest.mark.slow
def test_predictions_in_text_keep_what_varies_beside_a_large_mean(capsys):
    """Of seconds since 1970 nine digits left tens of seconds."""
    x = np.linspace(0, 6, 80)
    write("data.csv", {"x": x, "y": 1.7e9 + 20 * np.sin(x)})
    run(capsys, "fit", "data.csv", "--target", "y")
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "out.csv")
    predicted = np.genfromtxt("out.csv", delimiter=",", names=True)["PREDICTED_y"]
    exact = load("model.gzk").predict(pd.DataFrame({"x": x}))
    np.testing.assert_allclose(predicted, exact, rtol=0, atol=0.006)


@pytest.mark.slow
def test_text_that_seems_to_be_dates_or_numbers_has_a_note(capsys):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(60)
    rate = rng.choice(["12 %", "3 %", "5.5 ‰"], 60)
    price = [f"{100 + i} {'$' if i % 2 else '€'}" for i in range(60)]
    dates = [f"{1 + i % 12:02}/{i % 28 + 1:02}/24" for i in range(60)]
    write("data.csv", {"a": a, "rate": rate, "price": price, "date": dates, "y": a})
    notes = run(capsys, "fit", "data.csv", "--target", "y", *UNTESTED)["notes"]
    told = "".join(notes)
    assert "column 'date' is left out: it holds texts such as '01/01/24'; if they are dates" in told
    assert "--date-format" in told
    assert "column 'price' is left out: it holds texts such as '100 €'; for numbers write" in told


def test_a_few_texts_with_signs_do_not_tell_of_the_others():
    """Sorted, the signs come last."""
    texts = np.array([f"flat {i}" for i in range(25)] + [f"€ {i}" for i in range(25)], dtype=object)
    assert hints.doubtful_texts(texts) == ""


@pytest.mark.parametrize("wrong", ["2024-02-31", "2024-13-01"])
def test_a_day_that_is_none_among_dates_is_named(wrong):
    a = np.random.default_rng(0).standard_normal(40)
    dates = [f"2024-01-{1 + i % 28:02}" for i in range(40)]
    write("data.csv", {"a": a, "day": [*dates[:6], wrong, *dates[7:]], "y": a})
    with pytest.warns(UserWarning, match=f"column 'day': '{wrong}' in data row 7: no date"):
        frame = read_frame(open_table("data.csv"), ["day"], lambda *_: None).frame
    assert np.isnat(frame["day"]).sum() == 1


@pytest.mark.slow
def test_what_is_wrong_with_the_target_comes_first(capsys):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(60)
    town = rng.choice(["Ulm", "Bern"], 60)
    rate = rng.choice(["12 %", "3 %"], 60)
    price = rng.choice(["€ 5", "€ 7"], 60)
    write("data.csv", {"a": a, "town": town, "rate": rate, "price": price})
    notes = run(capsys, "fit", "data.csv", "--target", "price", *UNTESTED)["notes"]
    assert all(any(f"'{name}'" in note for note in notes) for name in ("price", "rate"))


@pytest.mark.slow
def test_what_held_out_rows_differ_in_is_said_of_them_and_once(capsys):
    a, rng = np.arange(400) % 37 / 37, np.random.default_rng(0)
    held = np.flatnonzero(hashed_rows(np.arange(400), 0.1, 0))
    c = [*rng.choice([*"uv"], 400)]
    c[held[3]] = "new"
    write("data.csv", {"a": a, "c": c, "y": a + 0.1 * rng.standard_normal(400)})
    told = [
        note
        for note in run(capsys, "fit", "data.csv", "--target", "y", *QUICK)["notes"]
        if "'new'" in note
    ]
    seen = "column 'c' has levels that the fit did not see"
    assert len(told) == 1
    assert told[0].startswith(f"Note: among the held-out rows: {seen}"), told


@pytest.mark.slow
def test_the_column_of_the_last_rows_is_expected_to_be_beyond_the_others(capsys):
    a, c = np.arange(400.0), np.random.default_rng(0).standard_normal(400)
    write("data.csv", {"a": a % 7 + a / 40, "b": 10 * a, "c": c, "y": a + c})
    notes = run(capsys, "fit", "data.csv", "--target", "y", "--test-last", "b", *QUICK)["notes"]
    assert not any("'b'" in note for note in notes)
    write("data.csv", {"a": a, "b": 10 * a, "c": c, "y": a + c})
    notes = run(capsys, "fit", "data.csv", "--target", "y", "--test-last", "b", *QUICK)["notes"]
    (told,) = [note for note in notes if "among the held-out rows: column 'a' is outside" in note]
    assert re.search(r"in 40 of 40 values, first \d+; ", told), told


def test_standard_deviations_that_are_clearly_too_small_are_told():
    errors, spread = np.random.default_rng(0).standard_normal(200), np.ones(200)
    by = arguments.TestBy(last="day")
    assert hints.about_coverage(errors, spread, by) == ""
    assert hints.about_coverage(3 * errors[:6], spread[:6], by) == ""  # may be chance
    told = hints.about_coverage(3 * errors, spread, by)
    assert told.startswith("standard deviations are too small for rows beyond the others in day, s")
    assert re.search(r"multiply them there by (2\.[89]|3\.[0-2])$", told), told
    gaps = hints.about_coverage(3 * errors, spread, arguments.TestBy(gaps="week"))
    assert "too small for gaps between rows, since they were learned mostly from rows held" in gaps
    at_random = hints.about_coverage(3 * errors, spread, arguments.TestBy())
    assert at_random.startswith("standard deviations are too small for these rows; multiply")


def test_an_index_without_a_name_is_called_so():
    write("data.csv", {"": range(7, 67), "a": np.arange(60) % 7, "y": range(60)})
    table = open_table("data.csv")
    arguments.chosen_columns(table, "y", None, None, None)
    assert table.notes == [
        """left out as a saved index: the unnamed column; --keep '""' takes it back"""
    ]


def test_missing_words_of_one_column_are_refused():
    with pytest.raises(ValueError, match="--missing age=99: its words are for all columns"):
        arguments.reading_of(missing="gap,age=99")


@pytest.mark.slow
def test_dates_have_a_note_unless_the_last_are_held_out(capsys):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(330)
    days = [str(np.datetime64("2024-01-01") + day) for day in range(330)]
    write("data.csv", {"day": days, "a": a, "y": a + 0.1 * rng.standard_normal(330)})
    given = ["fit", "data.csv", "--target", "y", "--time", "1"]
    told = "Note: column 'day' holds dates, and the held-out rows are of the same times as those"
    assert any(note.startswith(told) for note in run(capsys, *given)["notes"])
    result = run(capsys, *given, "--test-last", "day")
    assert "Note: held out: 33 rows with day from 2024-10-24 on" in result["notes"]
    assert not any(note.startswith(told) for note in result["notes"])
    assert (result["train_rows"], result["test_rows"]) == (297, 33)


@pytest.mark.parametrize("columns", [["patient", "a"], ["a"]])
@pytest.mark.parametrize("form", ["{}", "P{:03d}"])
def test_groups_are_proposed_where_a_patient_has_several_rows(columns, form):
    rng = np.random.default_rng(0)
    who, a = np.repeat(np.arange(60), 8), rng.standard_normal(480)
    y = rng.standard_normal(60)[who] + 0.1 * a
    write("data.csv", {"patient": [form.format(i) for i in who], "a": a, "y": y})
    told = "hold out whole groups: --test-groups patient"
    for by, share, is_told in (
        ((None, None), None, True),
        ((None, "patient"), None, False),
        (("a", None), None, False),
        ((None, None), 0.0, False),
    ):
        notes = []
        rows = frame_rows.read_rows(
            open_table("data.csv"), "y", columns, places=False, classify=False, test_fraction=share,
            drop_missing=False, seed=0, report=lambda *_: None, say=notes.append,
            by=arguments.TestBy(*by),
        )  # fmt: skip
        assert any(note.endswith(told) for note in notes) == is_told
        assert rows.inputs.columns == columns


@pytest.mark.slow
def test_with_few_rows_the_last_fifth_is_held_out_and_groups_in_turn(capsys):
    rng = np.random.default_rng(0)
    a, of = rng.standard_normal(60), np.repeat(np.arange(2, 8), 10)
    # What a group shares, and no other column tells: rows of other groups can't predict it.
    y = a + 10.0 * np.array([0, 0, 5, -3, 4, -6, 2, -4])[of]
    write("data.csv", {"a": a, "of": [f"place {i}" for i in of], "n": of, "y": y})
    given = ["fit", "data.csv", "--target", "y", "--columns", "a,of", "--time", "1"]
    last = run(capsys, *given, "--test-last", "n")
    assert (last["folds"], last["train_rows"], last["test_rows"]) == (None, 50, 10)
    errors = []
    for options in ([], ["--test-groups", "of"]):
        result = run(capsys, *given, *options)
        assert (result["folds"], result["train_rows"]) == (5, 60)
        errors.append(result["methods"][0]["rmse"])
    assert errors[0] < 5 < errors[1]
    few = run(capsys, *given, "--test-groups", "of", "--test-fraction", "0.3")
    assert "Note: held out: 2 of 6 values of of, 20 rows" in few["notes"]


def test_row_numbers_are_told_beside_groups_too(plain):
    """The column of the groups is left out, as if columns had been chosen."""
    few, notes = {name: values[:60] for name, values in plain.items()}, []
    write("data.csv", {"nr": range(60), **few, "of": [f"place {i % 6}" for i in range(60)]})
    for columns, is_told in ((["nr", "a", "b", "c"], True), (["nr", "a", "b"], False)):
        notes.clear()
        frame_rows.read_rows(
            open_table("data.csv"), "y", columns, places=False, classify=False, test_fraction=0.3,
            drop_missing=False, seed=0, report=lambda *_: None, say=notes.append,
            by=arguments.TestBy(None, "of"),
        )  # fmt: skip
        told = "column 'nr' (0 to 59) seems to number the rows; if so, leave it out: --drop nr"
        assert (told in notes) == is_told


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([*range(13), *[20] * 7], ", 35 % of all instead of 20 %, since rows of the same day stay"),
        (range(20), " with day from 16 on"),
    ],
)
def test_far_more_rows_than_asked_are_told(values, told):
    notes = []
    frame_rows._last_rows(None, "day", np.array(values, dtype=float), 0.2, notes.append)
    assert told in notes[0]
    assert ("instead" in notes[0]) == ("instead" in told)


@pytest.mark.slow
def test_the_choice_holds_out_whole_groups_too(capsys, monkeypatch, plain):
    fit, given = KernelRegressor.fit, []

    def spy(self, X, y, sample_weight=None, *, groups):
        given.append((X.columns, len(y), len({*groups})))
        return fit(self, X, y, sample_weight, groups=groups)

    monkeypatch.setattr(KernelRegressor, "fit", spy)
    write("data.csv", {**plain, "of": [f"station {i % 20}" for i in range(500)]})
    options = ["--target", "y", "--test-groups", "of", "--time", "1"]
    run(capsys, "fit", "data.csv", *options)
    # The group itself predicts nothing of other groups.
    assert given == [(["a", "b", "c"], 450, 18)]
    few = {name: values[:100] for name, values in plain.items()}
    write("data.csv", {**few, "of": [f"station {i % 20}" for i in range(100)]})
    result = run(capsys, "fit", "data.csv", *options)
    assert given[1:] == [(["a", "b", "c"], 100, 20), *[(["a", "b", "c"], 80, 16)] * 5]
    assert "Note: held out in turn: the 20 values of of, in 5 folds" in result["notes"]
    assert result["unused"] == ["of"]


@pytest.mark.parametrize(
    ("labels", "rarer"), [("aab", "b"), ("abb", "a"), ("abab", "b"), ("abc", None)]
)
def test_of_two_labels_one_is_the_rarer(labels, rarer):
    y = np.array([*labels])
    rows = frame_rows.FrameRows("y", None, True, None, y, None, None)
    assert rows.rarer == rarer
    assert dataclasses.replace(rows, classify=False).rarer is None


HOURS = [str(hour) for hour in np.datetime64("2024-01-01T00") + np.arange(0, 1200, 2)]


@pytest.mark.parametrize(
    ("gaps", "groups", "told"),
    [
        ("day", None, "120 rows in 5 gaps in time, each a stretch of one day"),
        (
            "1h",
            None,
            "120 rows in 60 gaps in time, each a stretch of one hour",
        ),  # times are 2 h apart
        ("time=1.5d", None, "108 rows in 3 gaps in time, each a stretch of 1.5 days"),
        ("2 weeks", None, "336 rows in 1 gap in time, each a stretch of 2 weeks, 28 % of all"),
        (
            "day",
            "n",
            "120 rows in 10 gaps in time of single values of n, each a stretch of one day",
        ),
    ],
)
def test_gaps_are_held_out(gaps, groups, told):
    """Those of groups by themselves; what tells groups apart predicts as well."""
    notes, columns = [], {"time": 2 * HOURS, "n": np.repeat([1, 2], 600), "x": range(1200)}
    write("data.csv", columns | {"y": np.sin(np.arange(1200))})
    rows = frame_rows.read_rows(
        open_table("data.csv"), "y", [*columns], places=False, classify=False, test_fraction=0.1,
        drop_missing=False, seed=0, report=lambda *_: None, say=notes.append,
        by=arguments.TestBy(None, groups, gaps),
    )  # fmt: skip
    assert notes[-1].startswith(f"held out: {told}")
    assert ("one says little about others" in notes[-1]) == ("in 1 gap" in told)
    assert len(rows.y) + len(rows.truth) == 1200
    assert (rows.inputs.columns, rows.groups, rows.folds) == ([*columns], None, None)


def test_a_gap_lies_between_other_rows_of_its_group():
    rng, groups = np.random.default_rng(0), np.repeat([0, 1, 2], 200)
    times = rng.uniform(0, 50, 600) + 30 * groups
    for of in (None, groups):
        held, n_gaps = gaps_held_out(times, 1.0, of, 0.2, seed=0)
        assert 0.1 < held.mean() < 0.3
        stretches = {*zip(np.floor(times[held] - times.min()), groups[held], strict=True)}
        assert (len(stretches) == n_gaps) == (of is not None)
        for stretch, group in stretches:
            assert (stretch + 1, group) not in stretches
            inside = (np.floor(times - times.min()) == stretch) & (
                True if of is None else of == group
            )
            assert held[inside].all()
            beside = times[~held & (True if of is None else of == group)] - times.min()
            assert beside.min() < stretch < stretch + 1 < beside.max()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("day", 86400), ("2 Weeks", 1209600), ("6h", 21600), ("90min", 5400), ("0.5s", 0.5)],
)
def test_lengths_of_gaps(text, seconds):
    assert length_of(text)[0] == seconds
    for wrong in (f"{text}x", "7", "0h", "-1d", ""):
        with pytest.raises(ValueError, match="must be a length such as day, week, 6h or 90min"):
            length_of(wrong)


@pytest.mark.slow
def test_a_fit_that_is_tested_by_gaps(capsys):
    rng = np.random.default_rng(0)
    walks = [np.convolve(rng.standard_normal(600), np.ones(40), "same") for _ in "ab"]
    y = np.where(np.arange(600) % 2, *walks)
    write("data.csv", {"time": HOURS, "place": [*"ab"] * 300, "y": y})
    given = ["fit", "data.csv", "--target", "y", "--time", "1"]
    at_random = run(capsys, *given)
    in_gaps = run(capsys, *given, "--test-gaps", "4d", "--test-groups", "place")
    assert 1.3 * at_random["methods"][0]["rmse"] < in_gaps["methods"][0]["rmse"]
    assert in_gaps["columns"] == ["time", "place"]
    assert not any("holds dates" in note for note in in_gaps["notes"])


@pytest.mark.parametrize(("share", "held"), [(0.1, 1), (0.3, 2)])
def test_one_group_held_out_says_little(plain, share, held):
    few, notes = {name: values[:60] for name, values in plain.items()}, []
    write("data.csv", {**few, "of": [f"place {i % 6}" for i in range(60)]})
    frame_rows.read_rows(
        open_table("data.csv"), "y", ["a", "b"], places=False, classify=False,
        test_fraction=share, drop_missing=False, seed=0, report=lambda *_: None, say=notes.append,
        by=arguments.TestBy(None, "of"),
    )  # fmt: skip
    assert notes[-1].startswith(f"held out: {held} of 6 values of of, {10 * held} rows")
    assert ("one says little about others" in notes[-1]) is (held == 1)


@pytest.mark.slow
def test_late_rows_are_told_of_all_their_kinds(capsys):
    a = np.random.default_rng(0).standard_normal(400)
    day = [20240101 + i if i >= 40 else "" for i in range(400)]
    write("data.csv", {"a": a, "day": day, "y": a})
    given = ["fit", "data.csv", "--target", "y", "--columns", "a", "--test-last", "day"]
    told = "Note: held out: 40 rows with day from 20240461 on; 40 rows without day are learned from"
    assert told in run(capsys, *given, "--time", "1")["notes"]
    write("data.csv", {"a": a, "day": np.arange(400), "y": np.where(np.arange(400) > 360, 1e99, a)})
    assert "has numbers up to 1e+99, which are too large" in refuse(capsys, *given, "--force")
    write("data.csv", {"a": a[:24], "day": [0] * 5 + [1] * 19, "y": a[:24]})
    assert "holding out rows by column 'day' leaves 5 of 24 rows" in refuse(
        capsys, *given, "--force"
    )


@pytest.mark.slow
@pytest.mark.parametrize("first", ["000", 2**60])
def test_groups_are_told_apart_as_they_are_written(capsys, plain, first):
    of = [f"{first}{i % 20}" if first == "000" else first + i % 20 for i in range(500)]
    write("data.csv", {**plain, "of": of})
    given = ["fit", "data.csv", "--target", "y", "--test-groups", "of", "--time", "1"]
    assert "2 of 20 values of of" in " ".join(run(capsys, *given)["notes"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--test-last", "text"], "'text' has text, which has no last value; name a column of"),
        (["--test-last", "one"], "'one' has one value only, so that none are the last"),
        (["--test-last", "none"], "'none' has no value, so that none are the last"),
        (["--test-groups", "one"], "'one' is the same in every row, so that there is one group"),
        (["--test-last", "y"], "--test-last y is the target; name another column"),
        (["--test-groups", "nix"], "there is no column 'nix'; its columns are a, text, one, y"),
        (["--test-last", "a", "--test-groups", "a"], "--test-last can't be combined with --test-g"),
        (["--test-last", "a", "--test-gaps", "day"], "--test-last can't be combined with --test-g"),
        (["--test-gaps", "week"], "that predict are none; name one and a length such as week"),
        (["--test-gaps", ""], "that predict are none; name one"),
        (["--test-gaps", "a=2"], "column 'a' holds none; name one and a length such as week or 6h"),
        (["--test-gaps", "--model", "m.gzk"], "--test-gaps has no value before --model. Hold out"),
        (["--regress", "--target", "text"], "'text' has no number in any row; if it holds text, l"),
        (["--test-gaps", "nix=day"], "there is no column 'nix'"),
        (
            ["--test-last", "a", "--test-fraction", "0"],
            "--test-fraction 0, which holds out nothing",
        ),
    ],
)
def test_what_rows_cannot_be_held_out_by(capsys, options, said):
    a = np.random.default_rng(0).standard_normal(400)
    none = {"none": [""] * 400} if "none" in options else {}
    write("data.csv", {"a": a, "text": ["x", "z"] * 200, "one": [1] * 400, "y": a + 1} | none)
    assert said in refuse(capsys, "fit", "data.csv", "--target", "y", *options)


@pytest.mark.slow
def test_a_target_over_decades_has_a_note(capsys):
    rng = np.random.default_rng(0)
    even, a = rng.uniform(0.001, 1, 60), rng.standard_normal(60)
    assert hints.about_decades("y", even) == ""
    assert hints.about_decades("y", a) == ""
    assert hints.about_decades("y", np.full(60, 3.0)) == ""
    write("data.csv", {"a": a, "y": np.exp(2 * a)})
    [note] = run(capsys, "fit", "data.csv", "--target", "y", *UNTESTED)["notes"]
    assert note.startswith("Note: y is positive and spans 3.")
    assert "predict log(y)" in note


@pytest.mark.parametrize(
    ("unit", "said"), [(1e300, "has numbers up to"), (1e-300, "has numbers that differ by")]
)
def test_a_target_whose_squares_are_no_floats(capsys, plain, unit, said):
    write("data.csv", {**plain, "y": plain["y"] * unit})
    told = refuse(capsys, "fit", "data.csv", "--target", "y")
    assert said in told
    assert told.endswith("to compute with; use another unit")


@pytest.mark.slow
def test_what_places_alone_leave_out(capsys, globe):
    columns = {"height": np.arange(400) % 7, **globe}
    write("data.csv", columns)
    given = ["fit", "data.csv", "--target", "y", "--force", *UNTESTED]
    assert cli.main([*given, "--lat", "lat", "--lon", "lon"]) == 0
    assert (
        "Left out: height; without --lat and --lon they are used too, but no map can be drawn"
        in capsys.readouterr().out
    )
    assert cli.main([*given, "--plot", "picture.png"]) == 0
    assert "Note: the picture is no map" in capsys.readouterr().out


def test_predict_reads_a_table_as_fit_did(capsys):
    """Units, the order of days and months, and words for missing values are kept in the model."""
    rng = np.random.default_rng(0)
    a, days = rng.uniform(0, 9, 80).round(3), rng.integers(0, 700, 80)
    dates = [str(each) for each in np.datetime64("2023-01-01") + days]
    american = [f"{date[5:7]}/{date[8:]}/{date[:4]}" for date in dates]
    units = [f"{each} kmpl" for each in a]
    write("data.csv", {"a": [*units[:79], "gap"], "day": american, "y": a + days / 100})
    options = ["--target", "y", "--missing", "gap", *UNTESTED, *QUICK]
    notes = run(capsys, "fit", "data.csv", *options)["notes"]
    assert any("without the unit 'kmpl'" in note for note in notes)
    write("new.csv", {"a": ["gap", *units[:2]], "day": ["01/02/2024"] * 3})
    write("same.csv", {"a": ["", *a[:2]], "day": ["2024-01-02"] * 3})
    for name in ("new", "same"):
        run(capsys, "predict", "model.gzk", f"{name}.csv", "--output", f"{name}_out.csv")
    found, same = (
        [row["PREDICTED_y"] for row in read(f"{name}_out.csv")] for name in ("new", "same")
    )
    assert found == same
    write("new.csv", {"a": ["3 mpg"] * 3, "day": ["01/02/2024"] * 3})
    reason = refuse(capsys, "predict", "model.gzk", "new.csv", "--output", "other.csv")
    assert "data row 1, column 'a': the value is '3 mpg'" in reason
    assert "the fit read numbers with the unit 'kmpl'" in reason
    write("new.csv", {"a": units[:3], "day": ["31/12/2024"] * 3})
    reason = refuse(capsys, "predict", "model.gzk", "new.csv", "--output", "other.csv")
    assert "the fit read dates such as 12/31/2024 (%m/%d/%Y)" in reason


def test_a_comment_beside_the_table_does_not_predict():
    a, said = [*range(100, 140)], []
    write("data.csv", {"a": a, "Unnamed: 1": ["", "3", *[""] * 38], "y": a, "": [*[""] * 39, "x"]})
    for keep, columns in ((None, ["a"]), ('"Unnamed: 1",""', ["a", "Unnamed: 1", ""])):
        table = open_table("data.csv", arguments.reading_of(keep=keep))
        chosen, _ = arguments.chosen_columns(table, "y", None, None, None)
        rows = frame_rows.read_rows(
            table, "y", chosen, places=False, classify=False, test_fraction=0, drop_missing=False,
            seed=0, report=lambda *_: None, say=said.append,
        )  # fmt: skip
        assert rows.inputs.columns == columns
    why = "they have no name and hardly a value (--keep 'Unnamed: 1,\"\"' takes them back)"
    assert f'left out, since {why}: Unnamed: 1,""' in said


def test_a_column_without_a_name_may_predict(capsys):
    a = [*range(5)] * 8
    write("data.csv", {"b": np.square(range(40)), "": a, "y": a})
    found = run(capsys, "fit", "data.csv", "--target", "y", *UNTESTED, *QUICK)
    assert found["columns"] == ["b", ""]


def test_a_kind_of_column_may_be_chosen(capsys):
    rng = np.random.default_rng(0)
    codes = rng.choice(["01", "1", "001", "7"], 80)
    grades = rng.choice(["low", "mid", "high"], 80)
    days = rng.integers(20_240_101, 20_240_128, 80)
    y = (codes == "01") + 2.0 * (grades == "high") + rng.normal(0, 0.01, 80)
    write("data.csv", {"code": codes, "grade": grades, "day": days, "odd": days, "y": y})
    kinds = ["--as", "code=category", "--as", "grade=low,mid,high", "--as", "day=number"]
    found = run(
        capsys, "fit", "data.csv", "--target", "y", *kinds, "--as", "odd=drop", *UNTESTED, *QUICK
    )
    assert found["columns"] == ["code", "grade", "day"]
    assert found["kinds"] == ["text", "text", "number"]
    model = load("model.gzk")
    assert [column.kind for column in model.encoder_.columns_] == ["category", "category", "number"]
    assert {*model.encoder_.columns_[0].levels} == {"01", "1", "001", "7"}
    assert model.encoder_.columns_[1].order == ["low", "mid", "high"]
    run(capsys, "predict", "model.gzk", "data.csv", "--output", "new.csv")
    told = np.array([float(row["PREDICTED_y"]) for row in read("new.csv")])
    assert np.abs(told - y).max() < 0.1


@pytest.mark.slow
def test_new_rows_are_read_as_the_codes_or_numbers_of_the_fit(capsys):
    codes = [f"{i:03}" for i in range(40)]
    write("data.csv", {"code": codes, "x": range(40), "y": range(40)})
    fit = ["fit", "data.csv", "--target", "y", *UNTESTED, *QUICK]
    notes = run(capsys, *fit)["notes"]
    assert "column 'code' is left out: it holds texts such as '000'; what begins with 0" in (
        " ".join(notes)
    )
    predict = ["predict", "model.gzk", "data.csv", "--output", "new.csv", "--force"]
    assert run(capsys, *fit, "--force", "--as", "code=number")["kinds"] == ["number", "number"]
    assert run(capsys, *predict)["rows"] == 40
    write("data.csv", {"code": range(40), "x": range(40), "y": range(40)})
    run(capsys, *fit, "--force")
    write("data.csv", {"code": [*range(39), "007"], "x": range(40)})
    assert "data row 40, column 'code': the value is '007', which is not a number: it begins" in (
        refuse(capsys, *predict)
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("a=category,x", "'0', which is none of the levels"),
        ("b=category", "there is no column 'b'"),
        ("a=text", "--as: a=text must be one of drop, number, log"),
        ("a=catgory", "differ as text (did you mean 'category'?)"),
        ("y=category", "y is no column that is predicted from"),
        ("c=number", "column 'c': the value is 'u'"),
    ],
)
def test_kinds_that_cannot_be_chosen(capsys, kind, reason):
    write("data.csv", {"a": range(40), "c": ["u", "v"] * 20, "y": range(40)})
    told = refuse(capsys, "fit", "data.csv", "--target", "y", "--as", kind)
    assert reason in told


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_levels_have_the_order_that_their_type_in_a_file_has(capsys, ending):
    pandas = pytest.importorskip("pandas")
    levels = ["low", "mid", "high", "never"]
    grade = pandas.Categorical([*levels[:3]] * 20, categories=levels, ordered=True)
    frame = pandas.DataFrame({"grade": grade, "y": [1.0, 2.0, 4.0] * 20})
    (frame.to_parquet if ending == ".parquet" else frame.to_feather)(f"data{ending}")
    for kind, order in ((None, levels), ("grade=category", None)):
        options = [] if kind is None else ["--as", kind]
        run(capsys, "fit", f"data{ending}", "--target", "y", *options, *UNTESTED, *QUICK)
        assert load("model.gzk").encoder_.columns_[0].order == order


@pytest.mark.parametrize("option", ["--test-groups", "--weights"])
def test_the_kind_of_a_column_that_predicts_nothing_is_refused(capsys, option):
    write("data.csv", {"a": range(40), "b": [1, 2, 3, 4] * 10, "y": range(40)})
    told = refuse(capsys, "fit", "data.csv", "--target", "y", option, "b", "--as", "b=linear")
    assert "b is no column that is predicted from" in told


def test_text_in_a_target_of_numbers_is_left_out_if_asked(capsys):
    a = np.random.default_rng(0).uniform(0, 9, 60)
    write("data.csv", {"a": a, "y": [*a[:40], *["none such"] * 20]})
    assert "'none such'" in refuse(capsys, "fit", "data.csv", "--target", "y")
    notes = run(capsys, "fit", "data.csv", "--target", "y", "--regress", *UNTESTED, *QUICK)["notes"]
    assert any("'none such' in data row 41 and 19 others" in note for note in notes)
    assert any("20 rows have no value of y, data row 41 first; left out" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("n", [80, 150])  # of 240 rows each fifth is held out, of 450 a tenth
def test_copies_of_rows_are_held_out_together(capsys, n):
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(0, 10, (n, 2)), rng.standard_normal(n)
    once = pd.DataFrame({"a": x[:, 0].round(4), "b": x[:, 1].round(4), "y": noise.round(4)})
    pd.concat([once] * 3).sample(frac=1, random_state=0).to_csv("data.csv", index=False)
    result = run(capsys, "fit", "data.csv", "--target", "y")
    assert any("copies of others" in note for note in result["notes"])
    assert result["methods"][0]["rmse"] > 0.7
