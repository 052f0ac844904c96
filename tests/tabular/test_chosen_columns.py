"""Kinds of columns that a user chooses: what they do, and what can't be chosen."""

import itertools

import numpy as np
import pandas as pd
import pytest

from gzkcore import KernelClassifier, KernelRegressor, TableEncoder, load


def frame(n=120):
    rng = np.random.default_rng(0)
    zips = rng.integers(10_000, 10_020, n)
    return pd.DataFrame({
        "zip": zips,
        "grade": rng.choice(["low", "mid", "high"], n),
        "day": rng.choice(20_240_101 + np.arange(28), n),
        "size": np.exp(3 * rng.standard_normal(n)),
        "note": [f"note {i}" for i in range(n)],
        "north": rng.uniform(46, 48, n),
        "east": rng.uniform(6, 10, n),
    })  # fmt: skip


def column(kind, values, name="a"):
    """Return the only column of an encoder, and the encoded rows."""
    table = pd.DataFrame({name: values})
    encoder = TableEncoder(columns={name: kind}).fit(table)
    return encoder.columns_[0], encoder.transform(table)


def test_a_number_may_be_a_category():
    chosen, Z = column("category", frame()["zip"])
    assert (chosen.kind, len(chosen.levels)) == ("category", 20)
    assert Z.shape == (120, 20)
    assert (Z.sum(axis=1) == 1).all()
    with pytest.warns(UserWarning, match="levels that the fit did not see, in 1 row, such as '7'"):
        TableEncoder(columns={"a": "category"}).fit(pd.DataFrame({"a": frame()["zip"]})).transform(
            pd.DataFrame({"a": [7]})
        )


def test_levels_may_have_an_order():
    chosen, Z = column(["low", "mid", "high"], frame()["grade"])
    assert chosen.order == ["low", "mid", "high"]
    ranks = frame()["grade"].map({"low": 0, "mid": 1, "high": 2})
    np.testing.assert_allclose(Z[:, 0], (ranks - ranks.mean()) / ranks.std(ddof=0))
    n_high = np.count_nonzero(frame()["grade"] == "high")
    told = rf"'a' has 'high', .*none of the levels \['low', 'mid'\], .*{n_high - 1} other rows"
    with pytest.raises(ValueError, match=told):
        column(["low", "mid"], frame()["grade"])


def test_a_date_may_be_a_number_and_a_number_a_date():
    assert column("date", frame()["day"])[0].kind == "date"
    chosen, Z = column("number", frame()["day"])
    assert chosen.kind == "number"
    assert Z.shape == (120, 1)
    texts = ["2024-12-31", "2025-01-01"] * 5
    assert column("category", texts)[0].kind == "category"
    assert column("category", pd.to_datetime(texts))[0].first == "2024-12-31"
    assert column("date", texts)[0].kind == "date"


@pytest.mark.parametrize("kind", ["log", "linear"])
def test_numbers_by_their_logarithms_and_as_they_are(kind):
    x = np.r_[np.random.default_rng(0).normal(50, 1, 99), 1e6]
    chosen, Z = column(kind, x)
    assert bool(chosen.unit) == (kind == "log")
    assert chosen.quantiles is None
    wanted = np.log1p(x / chosen.unit) if kind == "log" else x
    np.testing.assert_allclose(Z[:, 0], (wanted - wanted.mean()) / wanted.std())


def test_places_may_have_any_name_and_lie_in_a_region():
    table = frame()[["size", "east", "north"]]
    kinds = {"north": "latitude", "east": "longitude"}
    encoder = TableEncoder(columns=kinds).fit(table)
    assert [c.kind for c in encoder.columns_] == ["number", "place"]
    points = encoder.transform(table)[:, 1:]
    np.testing.assert_allclose((points**2).sum(axis=1), 1)
    np.testing.assert_allclose(points[:, 2], np.sin(np.radians(table["north"])))
    with pytest.raises(ValueError, match="row 3: latitude 91 is outside"):
        TableEncoder(columns=kinds).fit(table.assign(north=[*range(88, 92), *table["north"][4:]]))
    with pytest.raises(ValueError, match="1 latitude and 0 longitudes"):
        TableEncoder(columns={"north": "latitude"}).fit(table)


def test_a_column_may_be_dropped_whatever_it_holds():
    table = frame()[["size", "zip"]].assign(odd=[[1]] * 120)
    encoder = TableEncoder(columns={"odd": "drop"}).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["size", "zip"]
    assert encoder.transform(table).shape == encoder.transform(table[["size", "zip"]]).shape
    assert "Columns left out as asked: odd." in map(str, encoder.remarks())


def test_a_saved_index_and_names_of_rows_may_be_kept():
    table = frame()[["size", "note"]].assign(index=np.arange(120))
    with pytest.warns(UserWarning, match="'index' seems to be a saved index"):
        assert len(TableEncoder(columns={"note": "drop"}).fit(table).get_feature_names_out()) == 1
    kept = TableEncoder(columns={"index": "number", "note": "category"}).fit(table)
    assert [c.kind for c in kept.columns_] == ["number", "category", "number"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"zap": "category"}, "'zap', which is no column of X; did you mean 'zip'"),
        ({"zip": "categories"}, "'categories' must be one of drop, number, log, linear, latitude"),
        ({"zip": ["a"]}, "a list of two or more levels"),
        ({"grade": "number"}, "'grade' can't be a number.*it has '(low|mid|high)'"),
        ({"size": "date"}, "'size' can't be a date"),
        ({"grade": "date"}, "'grade' can't be a date"),
        ([("zip", "category")], "must be a dict"),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name(columns, told):
    with pytest.raises((ValueError, TypeError), match=told):
        TableEncoder(columns=columns).fit(frame())


def test_columns_of_arrays_are_chosen_by_number():
    X = frame()[["zip", "size"]].to_numpy()
    encoder = TableEncoder(columns={0: "category"}).fit(X)
    assert [c.kind for c in encoder.columns_] == ["category", "number"]


@pytest.mark.parametrize("learner", [KernelRegressor, KernelClassifier])
def test_learners_take_kinds_and_keep_them_in_files(learner, tmp_path):
    X = frame()[["zip", "grade", "size"]]
    effects = dict(zip(np.unique(X["zip"]), np.random.default_rng(1).normal(size=20), strict=True))
    y = X["zip"].map(effects).to_numpy()
    y = y if learner is KernelRegressor else np.where(y > 0, "up", "down")
    kinds = {"zip": "category", "grade": ["low", "mid", "high"]}
    model = learner(columns=kinds, random_state=0).fit(X, y)
    assert [c.kind for c in model.encoder_.columns_] == ["category", "category", "number"]
    assert model.score(X, y) > 0.9
    model.save(tmp_path / "model.gzk")
    again = load(tmp_path / "model.gzk")
    assert again.columns == kinds
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_numbers_that_are_chosen_are_no_places():
    rng = np.random.default_rng(0)
    world = pd.DataFrame({"lat": rng.uniform(-80, 80, 99), "lon": rng.uniform(-170, 170, 99)})
    encoder = TableEncoder(columns={"lat": "linear", "lon": "linear"}).fit(world)
    assert [c.kind for c in encoder.columns_] == ["number", "number"]
    assert not any("places" in str(remark) for remark in encoder.remarks())


def test_places_with_gaps_are_numbers_and_told():
    table = frame()[["north", "east"]]
    table.loc[3, "north"] = None
    encoder = TableEncoder(columns={"north": "latitude", "east": "longitude"}).fit(table)
    assert [c.kind for c in encoder.columns_] == ["number", "number"]
    assert "Some of their values are missing" in str(encoder.remarks()[-1])


def test_places_along_a_parallel_and_what_cannot_be_one():
    kinds = {"north": "latitude", "east": "longitude"}
    table = frame()[["north", "east"]].assign(north=47.0)
    assert TableEncoder(columns=kinds).fit(table).on_sphere_
    for wrong in (np.nan, pd.Timedelta("1h")):
        with pytest.raises(ValueError, match=r"'north' can't be a latitude: it has (no value|dur)"):
            TableEncoder(columns=kinds).fit(table.assign(north=wrong))


def test_slopes_where_one_of_latitude_and_longitude_is_a_number():
    table = pd.DataFrame({"lat": 45.0, "lon": np.arange(20.0), "z": np.arange(20.0) ** 2})
    assert TableEncoder().fit(table)._with_slopes(table)[2] == [1, 2]


@pytest.mark.parametrize("text", ["{:.1f} kmpl", "{:.1f} %", "{:.3f}"])
def test_text_of_numbers_is_read_and_told(text):
    x = np.random.default_rng(0).uniform(1, 99, 80).round(1)
    texts = [
        text.format(value).replace(".", "." if "%" in text or "k" in text else ",") for value in x
    ]
    told = "read as" if text != "{:.3f}" else "holds numbers as text"
    with pytest.warns(UserWarning, match=told):
        chosen, _ = column("number", texts)
    assert chosen.kind == "number"


def test_integers_that_doubles_cannot_tell_apart_are_levels():
    ids = 2**53 + np.arange(40) % 4
    for values in (ids, ids.astype(object), pd.array(ids)):
        assert len(column("category", values)[0].levels) == 4
    assert column("category", np.array([0.1, 0.2, 0.3] * 5, np.float32))[0].levels[0] == "0.1"


def test_levels_are_spelt_as_text_is():
    assert column([False, True], ["false", "true"] * 5)[0].all_levels == ["True", "False"]
    assert column(["false", "true"], [False, True] * 5)[0].all_levels == ["1", "0"]
    with pytest.raises(ValueError, match="differ as text"):
        column([1, "1", 2], [1, 2] * 5)


@pytest.mark.parametrize(
    ("kind", "none"),
    [*itertools.product(["number", "date", "log"], [None, np.nan, "", "NA"]), ("category", None)],
)
def test_a_column_without_values_is_left_out(kind, none):
    table = pd.DataFrame({"a": [none] * 9, "b": range(9)})
    assert TableEncoder(columns={"a": kind}).fit(table).columns_[0].reason == "empty"


def test_numbers_of_columns_are_for_arrays_and_names_for_frames():
    table = frame()[["zip", "size"]].set_axis(["x1", "x0"], axis=1)
    with pytest.raises(ValueError, match="columns has 0, which is no column of X"):
        TableEncoder(columns={0: "category"}).fit(table)
    X = np.column_stack([table.to_numpy(), np.full(120, np.inf)])
    encoder = TableEncoder(columns={np.int64(0): "category", 2: "drop"}).fit(X)
    assert [c.kind for c in encoder.columns_] == ["category", "number", "left out"]
    assert encoder.transform(X).shape[1] == 21


def test_new_rows_of_places_are_read_as_those_of_the_fit():
    table = frame()[["north", "east"]]
    german = table.map("{:.2f}".format).apply(lambda c: c.str.replace(".", ",").add(" °"))
    encoder = TableEncoder(columns={"north": "latitude", "east": "longitude"})
    with pytest.warns(UserWarning, match="as text, such as '.* °', read as"):
        Z = encoder.fit(german).transform(german[:1])
    np.testing.assert_allclose(Z[0, 2], np.sin(np.radians(table["north"][0])), atol=2e-4)


def test_days_that_are_levels_are_spelt_in_one_way():
    days = np.array(["2024-01-01", "2024-06-01", "2024-09-01"] * 10, dtype="M8[us]")
    ways = [days, days.astype(object), days.astype("M8[D]").astype(str), days.astype(str)]
    ways.append(pd.Categorical(pd.to_datetime(days)))
    for fitted, new in itertools.permutations(ways, 2):
        encoder = TableEncoder(columns={"a": "category"}).fit(pd.DataFrame({"a": fitted}))
        assert encoder.columns_[0].levels == ["2024-01-01", "2024-06-01", "2024-09-01"]
        assert encoder.transform(pd.DataFrame({"a": new})).any(axis=1).all()


def test_moments_are_told_apart_below_a_second():
    assert len(column("category", pd.to_timedelta([0, 250, 500] * 5, "ms"))[0].levels) == 3
