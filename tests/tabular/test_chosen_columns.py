"""Kinds of columns that a user chooses: what they do, and what can't be chosen."""

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
    with pytest.raises(
        ValueError, match=r"'a' has 'high' in row \d+, .*none of the levels \['low'"
    ):
        column(["low", "mid"], frame()["grade"])


def test_a_date_may_be_a_number_and_a_number_a_date():
    assert column("date", frame()["day"])[0].kind == "date"
    chosen, Z = column("number", frame()["day"])
    assert chosen.kind == "number"
    assert Z.shape == (120, 1)
    texts = ["2024-12-31", "2025-01-01"] * 5
    assert column("category", texts)[0].kind == "category"
    assert column("category", pd.to_datetime(texts))[0].first == "2024-12-31T00:00:00"
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
    with pytest.raises(ValueError, match="1 latitudes and 0 longitudes"):
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
        assert len(TableEncoder().fit(table).get_feature_names_out()) == 1
    kept = TableEncoder(columns={"index": "number", "note": "category"}).fit(table)
    assert [c.kind for c in kept.columns_] == ["number", "category", "number"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"zap": "category"}, "'zap', which is no column of X; did you mean 'zip'"),
        ({"zip": "categories"}, "'categories' must be one of drop, number, log, linear, latitude"),
        ({"zip": ["a"]}, "a list of two or more different levels"),
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
