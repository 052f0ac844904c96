"""Columns of tables as numbers: kinds, missing values, levels, places, what frames hold."""

import datetime
import decimal
import re
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.utils.estimator_checks import parametrize_with_checks

from gzkcore import KernelRegressor, TableEncoder, load, reference, save
from gzkcore.rows.frames import Frame
from gzkcore.tabular.columns.category import CODE, FREQUENT, MOST_COLUMNS
from gzkcore.tabular.columns.cells import cells_of


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "size": rng.normal(50, 10, n),
        "income": np.exp(4 * rng.standard_normal(n)),
        "kind": rng.choice(["flat", "house", "boat"], n),
        "new": rng.random(n) < 0.3,
        "built": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
        "always": 1.0,
    })  # fmt: skip


def told(encoder):
    return [str(remark) for remark in encoder.remarks()]


def test_every_kind_of_column_is_told():
    encoder = TableEncoder().fit(frame())
    kinds = {column.name: column.kind for column in encoder.columns_}
    assert kinds == {
        "size": "number", "income": "number", "kind": "category", "new": "category",
        "built": "date", "always": "left out",
    }  # fmt: skip
    waves = [f"built, {w} of the {p}" for p in ("year", "week") for w in ("sine", "cosine")]
    names = ["size", "income", "kind=boat", "kind=flat", "kind=house", "new=1", "built", *waves]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.sources_.tolist() == [0, 1, 2, 2, 2, 3, 4, 4, 4, 4, 4]
    groups = encoder.groups()
    assert groups.of_columns.tolist() == [0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 6]
    assert groups.kinds == ["number", "number", "levels", "levels", "date", "period", "period"]


def test_numbers_have_mean_0_and_variance_1():
    X = np.random.default_rng(0).normal(5, 3, (500, 2))
    Z = TableEncoder().fit_transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-12)


def test_values_far_out_are_encoded_by_ranks():
    x = np.random.default_rng(0).standard_normal(1000)
    far = x.copy()
    far[0] = 1e30
    Z = TableEncoder().fit_transform(far[:, None])[1:, 0]
    assert abs(np.corrcoef(Z, x[1:])[0, 1]) > 0.99
    assert abs(Z).max() < 4


def test_rare_values_are_not_far_out_by_their_rarity_alone():
    rng = np.random.default_rng(0)
    x = np.zeros(1000)
    x[:5] = rng.uniform(1, 2, 5)  # 20 standard deviations out
    np.testing.assert_allclose(TableEncoder().fit_transform(x[:, None])[:, 0], scaled(x))
    for few in (5, 60, 400):
        x[:few] = rng.uniform(1, 2, few)
        x[0] = 1e30  # far out among the others
        Z = TableEncoder().fit_transform(x[:, None])[1:, 0]
        assert np.unique(Z).size == few


def scaled(x):
    return (x - x.mean()) / x.std()


def test_ranks_are_those_of_the_reference():
    x = np.exp(4 * np.random.default_rng(0).standard_normal(300))
    x[10:20] = x[10]  # equal values
    scores = np.array(reference.table.normal_scores(x.tolist()))
    wanted = (scores - scores.mean()) / scores.std()
    encoder = TableEncoder(logarithms=False)
    assert_allclose(encoder.fit_transform(x[:, None])[:, 0], wanted, atol=1e-9)


def test_a_missing_number_is_the_median_and_said():
    X = np.array([[1.0], [2.0], [9.0], [np.nan]])
    Z = TableEncoder().fit_transform(X)
    assert Z.shape == (4, 2)
    assert Z[3, 0] == Z[1, 0]
    assert Z[:, 1].tolist() == [0, 0, 0, 1]


def test_missing_values_are_refused_by_name_and_row():
    table = frame()
    table.loc[7, "size"] = np.nan
    with pytest.raises(ValueError, match=r"column 'size' has 1 missing value.*row 7"):
        TableEncoder(missing="raise").fit(table)
    encoder = TableEncoder(missing="raise").fit(frame())
    with pytest.raises(ValueError, match="column 'size' has a missing value in row 7"):
        encoder.transform(table)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA])
def test_a_missing_category_is_a_level(gone):
    table = pd.DataFrame({"kind": ["a", "b", "c", gone] * 3, "x": np.arange(12.0)})
    encoder = TableEncoder().fit(table)
    assert "kind is missing" in encoder.get_feature_names_out()
    assert encoder.transform(table)[3, :4].sum() == 1


@pytest.mark.parametrize("n_levels", [100, 400])
def test_levels_never_seen_are_zeros_and_others_equally_far_apart(n_levels):
    values = [f"level {i:03d}" for i in range(n_levels)] + ["common"] * 2 * n_levels
    encoder = TableEncoder().fit(pd.DataFrame({"kind": values}))
    width = min(n_levels + 1, MOST_COLUMNS) if n_levels < MOST_COLUMNS else CODE
    assert len(encoder.get_feature_names_out()) == width
    some = pd.DataFrame({"kind": ["new", "level 003", "level 009", "common"]})
    with pytest.warns(UserWarning, match="in 1 row, such as 'new': they are unknown"):
        Z = encoder.transform(some)
    squares = ((Z[:, None] - Z) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares[0, 1:], 1)
    apart = squares[1:, 1:][~np.eye(3, dtype=bool)]
    np.testing.assert_allclose(apart, 2, atol=1e-12 if n_levels < MOST_COLUMNS else 0.8)
    groups = encoder.groups()
    assert groups.kinds == ["levels"]
    alone = groups.of_levels >= 0
    assert alone.sum() == (FREQUENT if n_levels < MOST_COLUMNS else CODE)


def test_levels_with_an_order_are_numbers_too():
    sizes = ["S", "M", "L", "XL"]
    given = pd.Categorical(["M", "L", "S", None, "L", "XL"], categories=sizes, ordered=True)
    encoder = TableEncoder().fit(pd.DataFrame({"size": given}))
    assert encoder.get_feature_names_out()[0] == "size"
    assert encoder.groups().kinds == ["number", "levels"]
    with pytest.warns(UserWarning, match="did not see, in 1 row, such as 'new'"):
        Z = encoder.transform(pd.DataFrame({"size": [*sizes, "new"]}))[:, 0]
    np.testing.assert_allclose(Z[:4], (np.arange(4) - 1.6) / np.std([1, 2, 0, 2, 3]))
    assert Z[4] == 0
    assert "Columns whose levels have an order: size." in told(encoder)


def test_dates_give_periods_that_they_span_twice():
    days = pd.date_range("2020-01-01", periods=800, freq="D")
    encoder = TableEncoder().fit(pd.DataFrame({"day": days}))
    names = [f"day, {w} of the {p}" for p in ("year", "week") for w in ("sine", "cosine")]
    assert encoder.get_feature_names_out().tolist() == ["day", *names]
    Z = encoder.transform(pd.DataFrame({"day": days}))
    np.testing.assert_allclose(Z[7:, 3:], Z[:-7, 3:], atol=1e-8)
    np.testing.assert_allclose(Z[:, 1] ** 2 + Z[:, 2] ** 2, 1)
    weekly = TableEncoder().fit(pd.DataFrame({"day": days[::7]}))  # always the same day of a week
    assert weekly.get_feature_names_out().tolist() == ["day", *names[:2]]


def test_columns_are_found_by_name_in_any_order():
    table = frame()
    encoder = TableEncoder().fit(table)
    turned = table[list(reversed(table.columns))]
    np.testing.assert_array_equal(encoder.transform(turned), encoder.transform(table))
    with pytest.raises(ValueError, match="no column 'size'"):
        encoder.transform(table.drop(columns="size"))
    renamed = table.rename(columns={"size": "length", "kind": "other"})
    wanted = (
        "X has columns 'length', 'other', which the fit did not see, but no columns 'size', 'kind'; "
        "pass"
    )
    with pytest.raises(ValueError, match=wanted):
        encoder.transform(renamed)


def test_rows_with_names_where_the_fit_had_none_or_without_are_told():
    table = pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": [3.0, 1.0, 2.0]})
    encoder = TableEncoder().fit(table)
    with pytest.warns(UserWarning, match="in the order of the fit, a, b; pass a data frame"):
        Z = encoder.transform(table.to_numpy())
    assert_array_equal(Z, encoder.transform(table))
    encoder.fit(table.to_numpy())
    with pytest.warns(UserWarning, match="was fitted without feature names; its columns are taken"):
        assert_array_equal(encoder.transform(table), Z)


def test_places_all_over_the_globe_become_points_of_the_sphere():
    rng = np.random.default_rng(0)
    degrees = np.column_stack([
        np.degrees(np.arcsin(rng.uniform(-1, 1, 300))), rng.uniform(-180, 180, 300),
    ])  # fmt: skip
    table = pd.DataFrame(degrees, columns=["Latitude", "lon"])
    encoder = TableEncoder().fit(table)
    assert encoder.on_sphere_
    np.testing.assert_allclose(np.linalg.norm(encoder.transform(table), axis=1), 1)
    beside = (table / 20).assign(height=rng.uniform(0, 1, 300))
    region = TableEncoder().fit(beside)
    assert not region.on_sphere_
    assert region.transform(beside).shape == (300, 3)
    table.loc[3, "Latitude"] = np.nan
    assert "not as places on the globe: Latitude and lon" in told(TableEncoder().fit(table))[-1]
    table.loc[3, "Latitude"] = 95.0
    with pytest.warns(UserWarning, match="'Latitude' and 'lon', row 3: latitude 95 is outside"):
        wrong = TableEncoder().fit(table)
    assert "not as places on the globe: Latitude and lon" in told(wrong)[-1]
    assert len(encoder.remarks()) == 1
    table["Latitude"] = np.where(np.arange(300) < 2, 80, degrees[:, 0] / 100)  # two far out
    along = TableEncoder().fit(table)
    assert along.on_sphere_
    assert told(along) == told(encoder)


@pytest.mark.parametrize(("degrees", "west"), [(20.0, 11), (20.0, 360), (5e-4, 11)])
def test_places_of_a_region_alone_are_on_the_sphere(degrees, west):
    """No matter how small it is, one length serves all directions; what is constant doesn't count."""
    rng = np.random.default_rng(0)
    P = rng.uniform(-1, 1, (300, 2))
    y = np.sin(4 * P[:, 0]) * np.cos(3 * P[:, 1])
    table = pd.DataFrame({
        "lat": 48 + degrees * P[:, 0] / 2,
        "lon": west + degrees * P[:, 1] / 2 / np.cos(np.radians(48)),
        "source": "survey",
    })  # fmt: skip
    model = KernelRegressor(random_state=0).fit(table[:200], y[:200])
    assert model.encoder_.on_sphere_
    assert np.ndim(model.kernel_.length_scale) == 0
    assert model.score(table[200:], y[200:]) > 0.99


def test_infinity_and_other_objects_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        TableEncoder().fit(pd.DataFrame({"x": [1.0, np.inf]}))
    with pytest.raises(TypeError, match="of type dict"):
        TableEncoder().fit(pd.DataFrame({"x": [{}, {}]}))


def test_sparse_rows_are_those_of_the_dense():
    X = np.random.default_rng(0).standard_normal((30, 4)) * (np.arange(30) % 3 > 0)[:, None]
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(sparse.csr_array(X)), TableEncoder().fit_transform(X)
    )


def test_the_largest_numbers_do_not_overflow():
    X = np.array([[1e308], [-1e308], [1e307], [3e307]])
    assert np.isfinite(TableEncoder().fit_transform(X)).all()


def test_the_smallest_numbers_do_not_underflow():
    X = np.array([[0.0, 0.0, 5e-324], [0.0, -5e-324, 0.0]])
    assert np.isfinite(TableEncoder().fit_transform(X)).all()


def test_what_is_farther_out_than_numbers_go_is_finite():
    encoder = TableEncoder().fit([[0.0], [1e-300]])
    with pytest.warns(UserWarning, match="far outside the range of the fit, 0 to 1e-300"):
        encoded = encoder.transform([[1e300], [-1e300]])
    assert np.isfinite(encoded).all()
    assert encoded[0] > 0 > encoded[1]


def test_it_is_the_same_from_a_file(tmp_path):
    table = frame()
    encoder = TableEncoder().fit(table)
    save(encoder, tmp_path / "encoder.gzk")
    again = load(tmp_path / "encoder.gzk")
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))


@pytest.mark.parametrize(("dtype", "fitted", "new", "wanted"), [
    ("bool", [True, False, True], [True, None, False], [[1], [0], [0]]),
    ("boolean", [True, False, None], [1.0, 0.0, np.nan], [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
    ("category", [1, 2, 2], [2, None, 1], [[1], [0], [0]]),
    ("object", [True, False, True], [1.0, 0.0, 1.0], [[1], [0], [1]]),
    ("object", ["False", "True", "True"], [True, False, None], [[1], [0], [0]]),
    ("object", ["True", "", "False"], [1.0, 0, None], [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
    ("bool", [True, False, True], ["true", "FALSE", "False"], [[1], [0], [0]]),
    ("object", ["\u00e9", "e", "f"], ["e\u0301", "f", "e"], [[0, 0, 1], [0, 1, 0], [1, 0, 0]]),
    ("object", ["1", "2", "b"], [1, 2.0, None], [[1, 0, 0], [0, 1, 0], [0, 0, 0]]),
    ("object", ["1.0", "2.0", "b"], ["1", " 2", "b "], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
])  # fmt: skip
def test_levels_are_the_same_whatever_the_type_of_the_column(dtype, fitted, new, wanted):
    encoder = TableEncoder().fit(pd.DataFrame({"x": pd.Series(fitted, dtype=dtype)}))
    assert encoder.columns_[0].kind == "category"
    for other in (object, "category"):
        table = pd.DataFrame({"x": pd.Series(new, dtype=other)})
        lacks = None in new and None not in fitted and "" not in fitted
        told = pytest.warns(UserWarning, match="no value in 1 of 3") if lacks else nullcontext()
        with told:
            np.testing.assert_array_equal(encoder.transform(table), wanted)


def region(lon, seed=0):
    """Return places of a region beside another column."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "lat": rng.uniform(30, 48, 200), "lon": lon, "height": rng.uniform(0, 2500, 200),
    })  # fmt: skip


@pytest.mark.parametrize("west", [-120, 160])
def test_longitudes_of_a_region_go_round(west):
    lon = west + np.random.default_rng(1).uniform(0, 45, 200)
    ways = [(lon + 180) % 360 - 180, lon % 360]
    encoder = TableEncoder().fit(region(ways[0]))
    assert [column.kind for column in encoder.columns_] == ["number"] * 3
    for fitted in ways:
        encoder = TableEncoder().fit(region(fitted))
        found = [encoder.transform(region(way)) for way in ways]
        np.testing.assert_allclose(found[0], found[1], atol=1e-9)
        assert np.ptp(found[0][:, 1]) < 4
        with pytest.raises(ValueError, match="column 'lon', row 3: longitude 999 is outside"):
            encoder.transform(region(np.where(np.arange(200) == 3, 999, lon)))


def test_places_go_round_and_those_off_the_globe_are_refused():
    table = pd.DataFrame({"lat": [0.0, 10, 20], "lon": [-170.0, 10, 100]})
    encoder = TableEncoder().fit(table)
    further = table.assign(lon=[190.0, 370, 460])
    np.testing.assert_allclose(encoder.transform(further), encoder.transform(table), atol=1e-12)
    wrong = table.assign(lat=[np.nan, 0, 0], lon=[0, 0, 999])
    with pytest.raises(
        ValueError, match="columns 'lat' and 'lon', row 2: longitude 999 is outside"
    ):
        encoder.transform(wrong)


def test_degrees_that_are_none_are_told():
    table = region(np.random.default_rng(1).uniform(-120, -75, 200))
    swapped = table.rename(columns={"lat": "lon", "lon": "lat"})
    with pytest.warns(UserWarning, match="'lat' and 'lon' seem to be swapped"):
        TableEncoder().fit(swapped)
    one = table.assign(lat=np.where(np.arange(200) == 7, 100.0, table["lat"]), lon=table["lon"] / 2)
    with pytest.warns(UserWarning, match="'lat' and 'lon', row 7: latitude 100 is outside -90"):
        TableEncoder().fit(one)
    assert TableEncoder().fit(table * 1000).columns_[0].kind == "number"  # metres: nothing is said
    globe = np.random.default_rng(2).uniform(-1, 1, (200, 2)) * [np.pi / 2, np.pi]
    radians = table.assign(lat=globe[:, 0], lon=globe[:, 1])
    with pytest.warns(UserWarning, match="'lat' and 'lon' look like radians"):
        TableEncoder().fit(radians)


@pytest.mark.parametrize("code", [-9999.0, 999.0, 2147483647.0])
def test_codes_for_missing_numbers_are_told(code):
    x = np.random.default_rng(0).uniform(0, 100, 100)
    assert "far from all others" not in str(told(TableEncoder().fit(x[:, None])))
    x[[3, 50, 70]] = code
    with pytest.warns(UserWarning, match=f"'x0' has the number {code:.0f}, far"):
        encoder = TableEncoder().fit(x[:, None])
    (remark,) = (each for each in told(encoder) if "far from all others" in each)
    assert remark.endswith(f": x0 ({code:g}).")


@pytest.mark.parametrize("sign", [1, -1])
def test_zeros_that_stand_for_missing_numbers_are_told(sign):
    rng = np.random.default_rng(0)
    pressure = sign * rng.normal(72, 12, 300).round()
    pressure[:20] = 0
    with pytest.warns(UserWarning, match=r"'x0' has the number 0, far .* empty \(NaN\), or if"):
        TableEncoder().fit(pressure[:, None])
    counts, rain = rng.poisson(3, 300), np.maximum(0, rng.normal(0, 5, 300))
    for values in (counts, rain, rng.normal(0, 1, 300).round(1), pressure[18:]):
        TableEncoder().fit(np.asarray(values, dtype=float)[:, None])  # warnings are errors


def test_logarithms_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    income, angle = np.exp(2 * rng.standard_normal(500)), rng.uniform(0, 360, 500)
    X = np.column_stack([income, angle, -income])
    encoder = TableEncoder().fit(X)
    assert [column.name for column in encoder.columns_ if column.unit] == ["x0"]
    unit = np.quantile(income, 0.1)
    logs = np.array(reference.table.logarithms(income.tolist(), unit))
    assert_allclose(encoder.transform(X)[:, 0], (logs - logs.mean()) / logs.std(), rtol=1e-12)
    with pytest.warns(UserWarning, match="'x0' is far outside the range of the fit"):
        below = encoder.transform([[-unit, 0, 0], [1e308, 0, 0]])[:, 0]
    assert_allclose(below[0], (-np.log(2) - logs.mean()) / logs.std())
    assert np.isfinite(below).all()
    assert "Columns encoded by logarithms because they are skewed: x0." in told(encoder)
    assert not TableEncoder(logarithms=False).fit(X).has_logarithms()


def test_what_is_done_for_a_reason_is_told_of_those_columns_alone():
    income, days = np.exp(np.random.default_rng(0).standard_normal(900)), np.arange(900)
    X = pd.DataFrame({"a": income**2, "b": 3 * income, "day": pd.Timestamp("2020-01-01")})
    X["day"] += pd.to_timedelta(days, "D")
    X["month"] = X["day"].to_numpy()[days // 30 * 30]
    X["hour"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "h")
    sentences = told(TableEncoder(columns={"a": "log"}).fit(X))
    assert "Columns encoded by logarithms: a." in sentences
    assert "Columns encoded by logarithms because they are skewed: b." in sentences
    assert "Columns that also give the time of the week and day: hour." in sentences
    assert "Columns that also give the time of the year and week: day, month." in sentences


def test_a_code_of_another_sign_is_told():
    x = np.random.default_rng(0).uniform(900, 9000, 100)
    x[[3, 50, 70]] = -999
    with pytest.warns(UserWarning, match="'x0' has the number -999, far"):
        TableEncoder().fit(x[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder().fit(np.concatenate([x, -x])[:, None])


def test_a_date_far_from_all_others_is_told():
    days = pd.Series(pd.date_range("2015-01-03", periods=100))
    days[[3, 50, 70]] = pd.Timestamp("1900-01-01")
    with pytest.warns(UserWarning, match="'d' has the date 1900-01-01, far"):
        TableEncoder().fit(pd.DataFrame({"d": days}))


def test_a_code_among_the_others_is_told():
    x = np.random.default_rng(0).uniform(1, 100, 200)
    x[:25] = 99
    with pytest.warns(UserWarning, match="'x0' has the number 99, far"):
        TableEncoder().fit(x[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder().fit(np.round(x[:, None] / 4))


def test_minus_one_among_positive_numbers_is_told():
    people = np.random.default_rng(0).integers(1, 100, 200).astype(float)
    people[:5] = -1
    with pytest.warns(UserWarning, match="'x0' has the number -1, far"):
        TableEncoder().fit(people[:, None])
    TableEncoder().fit(np.append(people, 0.0)[:, None])  # of degrees there are 0 too


IDS = [1610521604143693812, 740245381351497730, 740245381351497731]


@pytest.mark.parametrize("of", ["int64", "uint64", "Int64", "object", str, "int64[pyarrow]"])
def test_whole_numbers_that_doubles_merge_are_categories(of):
    if of == "int64[pyarrow]":
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"user": pd.Series(IDS * 10).astype(of), "x": np.arange(30.0)})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_[0].levels == [*map(str, IDS)]
    assert_array_equal(encoder.transform(frame[:1])[0, :3], [1, 0, 0])  # alone too
    as_number = TableEncoder(columns={"user": "number"}).fit(frame)
    assert [column.kind for column in as_number.columns_] == ["number", "number"]


def test_whole_numbers_of_an_array_that_doubles_merge_are_categories():
    rows = np.array([IDS * 10, np.arange(30)]).T
    assert [column.kind for column in TableEncoder().fit(rows).columns_] == ["category", "number"]


def test_gaps_beside_whole_numbers_do_not_round_them():
    arrow = pytest.importorskip("pyarrow")
    frame = arrow.table({"user": [*IDS, None] * 10})
    assert TableEncoder().fit(frame).columns_[0].levels == ["", *map(str, IDS)]
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"user": [*IDS, None] * 10})
    assert TableEncoder().fit(frame).columns_[0].levels == ["", *map(str, IDS)]


def test_new_numbers_that_doubles_merge_are_refused():
    encoder = TableEncoder().fit(pd.DataFrame({"user": [10**18 + 10**6 * i for i in range(40)]}))
    with pytest.raises(
        ValueError, match="'user' had numbers in fit, but has 1610521604143693812 now"
    ):
        encoder.transform(pd.DataFrame({"user": IDS}))


def test_ids_that_are_rounded_already_are_told():
    frame = pd.DataFrame(
        {"user": np.array(IDS * 10, dtype=float), "density": [1.5e19, 2.5e20, 3e20] * 10}
    )
    with pytest.warns(
        UserWarning, match="'user' holds numbers such as .*; pass ids as text"
    ) as told:
        TableEncoder().fit(frame)
    assert len(told) == 1


def test_text_that_begins_with_zeros_is_no_number():
    counter = pd.DataFrame({"id": [f"{i:04}" for i in range(100)], "x": np.arange(100.0)})
    with pytest.warns(UserWarning, match="'id' is left out: it holds texts such as '0000'; what"):
        assert TableEncoder().fit(counter).columns_[0].kind == "left out"
    chosen = TableEncoder(columns={"id": "number"}).fit(counter)
    assert_array_equal(chosen.columns_[0].read(*cells_of(counter[:3])[0][:1]), [0, 1, 2])
    numbers = TableEncoder().fit(counter.assign(id=np.arange(100)))
    with pytest.raises(ValueError, match="'id' had numbers in fit, but has '0000' now"):
        numbers.transform(counter)


def test_days_of_excel_are_told():
    with pytest.warns(UserWarning, match="'day' holds numbers such as 45000, which may be Excel's"):
        TableEncoder().fit(pd.DataFrame({"day": np.arange(45000, 45100)}))


def test_numbers_that_may_be_days_are_told():
    days = pd.Series(pd.date_range("2015-01-03", periods=100)).dt.strftime("%d%m%Y").astype(int)
    with pytest.warns(UserWarning, match="such as 3012015, which may be dates; .*'%d%m%Y'"):
        TableEncoder().fit(pd.DataFrame({"d": days}))
    with pytest.warns(
        UserWarning, match="texts such as '01022015'; if they are dates, pass pandas"
    ):
        TableEncoder().fit(pd.DataFrame({"d": days.map("{:08d}".format)}))


def test_codes_beside_each_other_are_told():
    x = np.random.default_rng(0).uniform(0, 100, 100)
    x[[3, 50]], x[[70, 71, 72]] = 998, 999
    with pytest.warns(UserWarning, match="'x0' has the number 999, far"):
        TableEncoder().fit(x[:, None])


def test_an_order_of_three_levels_is_kept_where_two_are_there():
    levels = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    frame = pd.DataFrame({"size": pd.Categorical(["low", "high"] * 20, dtype=levels)})
    ranks = TableEncoder().fit(frame).transform(frame.assign(size="high"))[:, 0]
    assert (ranks > 0).all()


def test_names_of_encoded_columns_differ():
    table = pd.DataFrame(
        {
            "a": ["b", "c", "b", "c"],
            "a=c": [1.0, 2.0, 3.0, 5.0],
            "x": [1.0, np.nan, 2.0, 3.0],
            "x is missing": [4.0, 1.0, 2.0, 3.0],
        }
    )
    names = ["a=c (2)", "a=c", "x", "x is missing (2)", "x is missing"]
    assert TableEncoder().fit(table).get_feature_names_out().tolist() == names


def test_lists_of_numbers_and_text_keep_both():
    encoder = TableEncoder().fit([[50.0, "flat"], [80.0, "house"], [60.0, "flat"]])
    assert [column.kind for column in encoder.columns_] == ["number", "category"]
    assert encoder.transform([[80.0, "house"]])[0, 1] == 1


def test_other_outputs_of_scikit_learn_change_nothing():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "lat": np.degrees(np.arcsin(rng.uniform(-1, 1, 300))), "lon": rng.uniform(-180, 180, 300),
    })  # fmt: skip
    wanted = TableEncoder().fit_transform(table)
    with config_context(transform_output="pandas"):
        found = TableEncoder().fit_transform(table)
    assert isinstance(found, pd.DataFrame)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("columns", [None, {"lat": "latitude", "lon": "longitude"}])
@pytest.mark.parametrize("beside", [{}, {"z": np.arange(60.0)}], ids=["alone", "beside"])
def test_degrees_with_letters_are_those_with_signs(columns, beside):
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-30, 30, 60).round(3), rng.uniform(-120, 20, 60).round(3)
    signed = pd.DataFrame({"lat": lat, "lon": lon, **beside})
    letters = signed.assign(
        lat=[f"{abs(v):.3f}° {'NS'[int(v < 0)]}" for v in lat],
        lon=[f"{abs(v):.3f} {'ew'[int(v < 0)]}".replace(".", ",") for v in lon],
    )
    by_signs = TableEncoder(columns=columns).fit(signed)
    with pytest.warns(UserWarning, match="holds l.*tudes as text, such as"):
        by_letters = TableEncoder(columns=columns).fit(letters)
    wanted = by_signs.transform(signed)
    for encoder, rows in ((by_signs, letters), (by_letters, signed), (by_letters, letters)):
        np.testing.assert_array_equal(encoder.transform(rows), wanted)
    wrong = letters.assign(lon=letters["lat"])
    with pytest.raises(
        ValueError, match=r"column 'lon': .* is no longitude, or convert it \(row 0"
    ):
        by_signs.transform(wrong)
    fit_to = TableEncoder(columns=columns).fit
    error = pytest.raises(ValueError, match=r"'lon': .* is no longitude")
    with pytest.warns(UserWarning, match="holds latitudes"), error:
        fit_to(wrong)


def test_columns_of_other_names_keep_the_signs_of_letters():
    table = pd.DataFrame({"x": ["74.0 W", "12.5 E", "3.0 W"], "z": [1, 2, 3]})
    with pytest.warns(UserWarning, match="column 'x' holds longitudes as text"):
        encoder = TableEncoder().fit(table)
    signed = encoder.transform(pd.DataFrame({"x": [-74, 12.5, -3], "z": [1, 2, 3]}))
    np.testing.assert_array_equal(encoder.transform(table), signed)


@pytest.mark.parametrize("text", ["{} N, {} W", "{},-{}", "({}; {})", "POINT ({} {})"])
def test_places_in_one_column_are_told(text):
    table = pd.DataFrame({"p": [text.format(n + 0.25, n + 1.5) for n in range(40)], "z": range(40)})
    with pytest.warns(UserWarning, match="split them into columns of latitude and longitude"):
        TableEncoder().fit(table)


def test_a_missing_place_is_in_the_middle():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "lat": np.degrees(np.arcsin(rng.uniform(-1, 1, 300))), "lon": rng.uniform(-180, 180, 300),
    })  # fmt: skip
    encoder = TableEncoder().fit(table)
    new = pd.DataFrame({"lat": [np.nan], "lon": [10.0]})
    middle = pd.DataFrame({"lat": [table["lat"].median()], "lon": [10.0]})
    with pytest.warns(UserWarning, match="columns 'lat', 'lon': no value in 1"):
        encoded = encoder.transform(new)
    np.testing.assert_allclose(encoded, encoder.transform(middle))


def test_dates_and_durations_are_seconds_in_whatever_form():
    days = pd.date_range("2020-01-01 12:00", periods=12, freq="D")
    frames = [
        pd.DataFrame({"t": days}),
        pd.DataFrame({"t": days.astype("datetime64[ns]")}),
        pd.DataFrame({"t": days.tz_localize("UTC").tz_convert("Asia/Tokyo")}),
        pd.DataFrame({"t": pd.Series(days.to_pydatetime(), dtype=object)}),
        pd.DataFrame({"t": pd.Series([*days[:-1], days[-1]], dtype=object)}),
        days.to_numpy()[:, None],
        days.to_numpy().astype("M8[D]")[:, None],
        pd.DataFrame({"t": days - days[0]}),
        pd.DataFrame({"t": np.arange(12).astype("m8[ms]")}),
        pd.DataFrame({"t": [datetime.date(2020, 1, 1 + i) for i in range(12)]}),
        pd.DataFrame({"t": [datetime.timedelta(milliseconds=i) for i in range(12)]}),
    ]
    wanted = TableEncoder().fit_transform(np.arange(12.0)[:, None])
    for table in frames:
        np.testing.assert_allclose(TableEncoder().fit_transform(table), wanted, atol=1e-7)
    gone = pd.DataFrame({"t": [*days[:5], pd.NaT]})
    assert TableEncoder().fit_transform(gone)[:, 1].tolist() == [0, 0, 0, 0, 0, 1]


def test_one_dimension_is_told_how_to_become_two():
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    encoder = TableEncoder().fit(rows)
    for call in (encoder.transform, TableEncoder().fit):
        with pytest.raises(ValueError, match=r"of 2 values, .*X\.to_frame\(\) is one column"):
            call(rows["a"])
        with pytest.raises(ValueError, match=r"of 3 values, .* data: X\.reshape\(-1, 1\) is one"):
            call(np.arange(3.0))


def test_labels_are_for_a_classifier():
    with pytest.raises(ValueError, match="'dry' is text; for labels use a classifier"):
        KernelRegressor().fit(np.arange(3.0)[:, None], ["dry", "wet", "dry"])


def test_infinity_among_objects_is_refused_by_name():
    with pytest.raises(ValueError, match="infinity: column 'x1' in row 2"):
        TableEncoder().fit(np.array([[0.0, 1.0], [1.0, np.nan], [2.0, np.inf]]))
    with pytest.raises(ValueError, match="infinity: column 'x' in row 1"):
        TableEncoder().fit(pd.DataFrame({"x": pd.Series([1.0, np.inf, None], dtype=object)}))


def test_a_frame_without_columns_is_refused():
    with pytest.raises(ValueError, match="no columns"):
        TableEncoder().fit(pd.DataFrame(index=range(3)))


def test_the_largest_differences_do_not_overflow():
    X = np.array([[1.7e308], [-1.7e308], [1e308], [1.6e308]])
    assert np.abs(TableEncoder().fit_transform(X)).max() < 2
    far = np.append(np.linspace(-1, 1, 500), [1.7e308, -1.7e308, 1.7e308])[:, None]
    assert np.isfinite(TableEncoder().fit_transform(far)).all()


def test_a_fit_that_fails_changes_nothing():
    encoder = TableEncoder().fit(frame())
    wanted = encoder.transform(frame())
    with pytest.raises(ValueError, match="infinity"):
        encoder.fit(pd.DataFrame({"x": [1.0, np.inf]}))
    assert_array_equal(encoder.transform(frame()), wanted)


@pytest.mark.parametrize(
    ("dtype", "value", "told"),
    [
        ("Struct", {"a": 1, "b": 2}, r"\{'a': 1, 'b': 2\}, of type dict"),
        ("Array", [1, 2], r"\[1, 2\], of type list"),
        ("List", [1] * 100_000, "of type ndarray"),
        ("Binary", b"a", "b'a', of type bytes"),
    ],
)
def test_columns_of_polars_that_hold_no_values_are_refused_by_name(dtype, value, told):
    polars = pytest.importorskip("polars")
    of = polars.Array(polars.Int64, 2) if dtype == "Array" else None
    column = polars.Series([value] * 40, dtype=of)
    with pytest.raises(TypeError, match=f"column 'odd' of X holds .*{told}.* convert") as error:
        TableEncoder().fit(polars.DataFrame({"x": np.arange(40.0), "odd": column}))
    assert len(str(error.value)) < 300
    assert TableEncoder(columns={"odd": "drop"}).fit(
        polars.DataFrame({"x": np.arange(40.0), "odd": column})
    )


def test_wide_integers_of_polars_are_numbers():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [*range(39), None]})
    wide = frame.cast(polars.Int128)
    assert_array_equal(TableEncoder().fit_transform(wide), TableEncoder().fit_transform(frame))


def test_frames_of_polars_are_those_of_pandas():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    size, kind, count = rng.standard_normal(60), rng.choice(["a", "b", "c"], 60), np.arange(60) % 9
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(i)) for i in 7 * count]
    times = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(i)) for i in count]
    shared = {
        "kind": kind, "flag": size > 0, "small": count.astype(np.int8),
        "single": size.astype(np.float32),
    }  # fmt: skip
    ours = polars.DataFrame(
        shared
        | {
            "size": [None if i % 20 == 0 else float(v) for i, v in enumerate(size)],
            "whole": [None if i % 20 == 0 else int(v) for i, v in enumerate(count)],
            "gap": [None if i % 20 == 0 else bool(v > 0) for i, v in enumerate(size)],
            "level": polars.Series(kind.tolist(), dtype=polars.Categorical),
            "choice": polars.Series(kind.tolist(), dtype=polars.Enum(["a", "b", "c"])),
            "day": days,
            "time": polars.Series(times).dt.replace_time_zone("UTC"),
            "there": polars.Series(times).dt.replace_time_zone("Europe/Berlin"),
            "took": [datetime.timedelta(hours=int(i)) for i in count],
        }
    )
    gaps = np.arange(60) % 20 == 0
    theirs = pd.DataFrame(
        shared
        | {
            "size": np.where(gaps, np.nan, size),
            "whole": np.where(gaps, np.nan, count),
            "gap": pd.array([None if g else bool(v > 0) for g, v in zip(gaps, size, strict=True)]),
            "level": pd.Categorical(kind),
            "choice": pd.Categorical(kind, ordered=True),  # as an Enum is
            "day": pd.to_datetime(days),
            "time": pd.to_datetime(times).tz_localize("UTC"),
            "there": pd.to_datetime(times).tz_localize("Europe/Berlin"),
            "took": pd.to_timedelta(count, unit="h"),
        }
    )
    encoders = [TableEncoder().fit(frame) for frame in (ours, theirs)]
    names = [encoder.get_feature_names_out().tolist() for encoder in encoders]
    assert names[0] == names[1]
    expected = encoders[1].transform(theirs)
    for encoder in encoders:
        np.testing.assert_array_equal(encoder.transform(ours), expected)
        np.testing.assert_array_equal(encoder.transform(ours[:, ::-1]), expected)


def test_text_for_numbers_is_looked_at_like_numbers():
    """It may be missing and must be finite; text and truth values stand for no dates."""
    numbers = np.array([[1.0], [3.0], [5.0], [np.nan]])
    encoder = TableEncoder().fit(numbers)
    same = encoder.transform(np.array([["1"], ["nan"], [None]], dtype=object))
    assert_array_equal(same, encoder.transform(np.array([[1.0], [np.nan], [np.nan]])))
    with pytest.raises(ValueError, match="infinity: column 'x0' in row 0; pass finite values"):
        encoder.transform(np.array([["1e400"]], dtype=object))
    with pytest.raises(ValueError, match="column 'x0' had numbers in fit, but has 'three' now"):
        encoder.transform(np.array([[None], ["three"]], dtype=object))
    days = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02", "2021-05-01"])})
    for wrong in (["17"], [True]):
        with pytest.raises(ValueError, match=r"column 'day' had dates in fit, but has .* now"):
            TableEncoder().fit(days).transform(pd.DataFrame({"day": wrong}))


@pytest.mark.parametrize("kind", [object, "str"])
@pytest.mark.parametrize("form", ["{0}-03-{1:02} 10:00", "{1}.3.{0} 10:00"])
def test_dates_in_text_are_dates_as_in_files(kind, form):
    texts = [form.format(2010 + i // 28, 1 + i % 28) for i in range(200)]
    size = np.arange(200.0)
    frame = pd.DataFrame({"size": size, "day": pd.Series([*texts[:198], " NA", None], dtype=kind)})
    known = frame["day"].where(frame.index < 198)
    days = frame.assign(day=pd.to_datetime(known, dayfirst="." in form))
    encoder, wanted = TableEncoder().fit(frame), TableEncoder().fit(days)
    expected = wanted.transform(days)
    for each in (encoder, wanted):
        for given in (frame, days):
            assert_array_equal(each.transform(given), expected)
    assert "Columns read as dates: day." in told(encoder)
    with pytest.raises(ValueError, match="'day' had dates in fit, but has 'soon' now; pass dates"):
        encoder.transform(frame[:1].assign(day="soon"))
    empty = encoder.transform(frame[:1].assign(day="NA"))
    assert_array_equal(empty, encoder.transform(frame[:1].assign(day=None)))
    with pytest.raises(ValueError, match="column 'day' has 2 missing values, the first in row 198"):
        TableEncoder(missing="raise").fit(frame)
    with pytest.warns(UserWarning, match=r"if they are dates, pass pandas\.to_datetime"):
        column = TableEncoder().fit(frame.assign(day=frame["day"].astype("category"))).columns_[1]
    assert column.reason == "names"


def test_times_in_text_with_a_zone_are_utc():
    texts = ["2024-01-01T02:00+02:00", "2024-01-01T00:00Z", "2024-01-01 23:30:00.5-0030"]
    with pytest.warns(UserWarning, match=r"times of column 'at' that have a zone .* UTC"):
        encoder = TableEncoder().fit(pd.DataFrame({"at": texts}))
    first, second, third = encoder.transform(pd.DataFrame({"at": texts}))[:, 0]
    assert first == second < third
    assert encoder.columns_[0].fill == 1704067200


def test_times_without_a_zone_beside_those_in_utc_are_told():
    texts = ["2024-01-01T00:00Z", "2024-01-01T05:00", "2024-01-02T05:00Z"]
    with pytest.warns(UserWarning, match="2024-01-01T05:00"):
        TableEncoder().fit(pd.DataFrame({"at": texts}))


HOURS = pd.date_range("2024-07-01", periods=40, freq="7h")
EAST = datetime.timezone(datetime.timedelta(hours=2))
PLAIN = {
    "text": HOURS.strftime("%Y-%m-%d %H:%M"),
    "type": HOURS,
    "microseconds": HOURS.as_unit("us"),
    "objects": pd.Series([*HOURS.to_pydatetime()], dtype=object),
}
ZONED = {
    "text": HOURS.strftime("%Y-%m-%d %H:%M+02:00"),
    "text in UTC": HOURS.strftime("%Y-%m-%dT%H:%MZ"),
    "type": HOURS.tz_localize("Europe/Berlin"),
    "UTC": HOURS.tz_localize("UTC"),
    "objects": pd.Series([*HOURS.tz_localize(EAST).to_pydatetime()], dtype=object),
}


@pytest.mark.parametrize("zoned", ZONED)
@pytest.mark.parametrize("plain", PLAIN)
@pytest.mark.filterwarnings("ignore:times of column 'at' that have a zone are converted")
def test_a_zone_in_the_fit_or_in_new_rows_alone_is_told(plain, zoned):
    without, having = ({"at": kind} for kind in (PLAIN[plain], ZONED[zoned]))
    for fit, new, has in ((without, having, "a"), (having, without, "no")):
        encoder = TableEncoder().fit(pd.DataFrame(fit))
        encoder.transform(pd.DataFrame(fit))
        told = f"^times of column 'at' have {has} zone, other than in the fit: they are read as UTC"
        with pytest.warns(UserWarning, match=told) as caught:
            encoder.transform(pd.DataFrame(new)[:30])
        assert len([each for each in caught if "zone" in str(each.message)]) == 1


def test_zones_in_files_are_told_where_they_are_read():
    encoder = TableEncoder().fit(pd.DataFrame({"at": HOURS.tz_localize("Europe/Berlin")}))
    encoder.transform(Frame({"at": HOURS.to_numpy()}))


def test_dates_beside_durations_are_refused():
    both = pd.Series([HOURS[0], HOURS[1] - HOURS[0]], dtype=object)
    with pytest.raises(TypeError, match="column 'at' of X holds dates and durations; pass one"):
        TableEncoder().fit(pd.DataFrame({"at": both}))


def test_zones_that_differ_are_the_same_times():
    times = HOURS.tz_localize("America/Los_Angeles")
    expected = TableEncoder().fit_transform(pd.DataFrame({"at": times}))
    encoder = TableEncoder().fit(pd.DataFrame({"at": times}))
    for zone in ("Asia/Tokyo", "UTC"):
        other = times.tz_convert(zone)
        for same in (other, other.strftime("%Y-%m-%dT%H:%M%z"), other.astype(object)):
            assert_array_equal(encoder.transform(pd.DataFrame({"at": same})), expected)
    mixed = pd.Series([*times[:20].to_pydatetime(), *HOURS[:20].to_pydatetime()], dtype=object)
    with pytest.warns(UserWarning, match="others, such as '2024-07-01 00:00:00', have none"):
        TableEncoder().fit(pd.DataFrame({"at": mixed}))


def test_dates_called_lat_and_lon_are_no_places():
    texts = [f"2024-01-{1 + i:02}" for i in range(20)]
    encoder = TableEncoder().fit(pd.DataFrame({"lat": texts, "lon": np.arange(20.0)}))
    assert [column.kind for column in encoder.columns_] == ["date", "number"]


def test_columns_that_were_left_out_need_not_be_there():
    table = frame().assign(ref=[f"r{i}" for i in range(200)], one=1.0)
    for missing in ("impute", "raise"):
        encoder = TableEncoder(missing=missing, columns={"ref": "drop"}).fit(table)
        used = table.drop(columns=["ref", "one"])
        assert_array_equal(encoder.transform(used), encoder.transform(table))
    with pytest.raises(ValueError, match="X has no column 'size'"):
        encoder.transform(used.drop(columns="size"))
    alone = TableEncoder(columns={"ref": "drop"}).fit(table[["one", "ref"]])
    assert (alone.transform(used) == 0).all()


def test_decimals_are_numbers():
    values = [1.5, 2.25, -3.0]
    decimals = np.array([[decimal.Decimal(value)] for value in values], dtype=object)
    encoder = TableEncoder().fit(decimals)
    assert_array_equal(encoder.transform(decimals), encoder.transform(np.array(values)[:, None]))


@pytest.mark.parametrize(("fitted", "given", "words"), [
    ("built", [1.6e9], "'built' had dates in fit, but has 1.6e\\+09 now; pass dates, of numbers"),
    ("built", pd.to_timedelta([3], "D"), "'built' had dates in fit, but has durations now"),
    ("size", pd.to_datetime(["2020-01-01"]), "'size' had numbers in fit, but has dates now"),
    ("took", [3.0], "'took' had durations in fit, but has 3 now; pass durations$"),
])  # fmt: skip
def test_dates_and_numbers_are_not_taken_for_each_other(fitted, given, words):
    table = frame().assign(took=pd.to_timedelta(np.arange(200), "h"))
    encoder = TableEncoder().fit(table)
    with pytest.raises(ValueError, match=words):
        encoder.transform(table[:1].assign(**{fitted: given}))
    with pytest.warns(UserWarning, match=f"column '{fitted}': no value in 1 of 1 row"):
        encoder.transform(table[:1].assign(**{fitted: [None]}))


def test_names_are_left_out():
    owners = [f"owner {i // 2 if i < 20 else i}" for i in range(200)]
    table = frame().assign(owner=owners, street=[f"street {i}" for i in range(200)])
    with pytest.warns(UserWarning, match="text: owner, street; name one as 'category'") as warned:
        encoder = TableEncoder().fit(table)
    assert len(warned) == 1
    assert not any("owner" in name for name in encoder.get_feature_names_out())
    assert "left out because nearly every row has a different text: owner, street." in str(
        encoder.remarks()
    )
    np.testing.assert_array_equal(
        encoder.transform(table),
        TableEncoder().fit_transform(table.drop(columns=["owner", "street"])),
    )
    few = frame().assign(owner=[f"owner {i % 90}" for i in range(200)])
    assert "owner=owner 3" in TableEncoder().fit(few).get_feature_names_out()


@pytest.mark.parametrize(("texts", "remedy"), [
    ([f"{1 + i % 12}/{1 + i % 12}/{10 + i % 80}" for i in range(84)], r"pandas\.to_datetime"),
    ([f"{1 + i % 12}/{1 + i % 11}/{1990 + i}" for i in range(84)], "may have the day or the month"),
    ([f"2026-W{1 + i % 12:02}-{i}" for i in range(84)], r"pandas\.to_datetime"),
    ([f"~{i}.5" for i in range(84)], "for numbers write all"),
    ([f"{i}.5 ± 0.1" for i in range(84)], "for numbers write all"),
    ([f"0x{i:x}f" for i in range(84)], "for numbers write all"),
    ([f"{1000 + i}/2" for i in range(84)], "if numbers, convert them"),
    ([f"{i} {'kW' if i % 2 else 'PS'}" for i in range(84)], "all in one unit"),
    ([*(f"{i}.5" for i in range(74)), *(f"Town {i}" for i in range(10))], ""),
    ([f"Town {i}" for i in range(84)], ""),
])  # fmt: skip
def test_dates_and_numbers_in_text_are_not_left_out_silently(texts, remedy):
    X = np.array([texts, np.arange(84)], dtype=object).T
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder = TableEncoder().fit(X)
    assert encoder.columns_[0].reason == "names"
    assert any(re.search(remedy, str(each.message)) for each in caught) or not (remedy or caught)


@pytest.mark.parametrize(("texts", "last", "told"), [
    ([*(f"2026-{1 + i % 12:02}-01" for i in range(83)), "soon"], None, "'soon' in row 83: no date"),
    ([f"{1 + i % 12}/{1 + i % 28}/2026" for i in range(84)], 1798416000, None),
    ([f"{i}.5" for i in range(84)], 83.5, "holds numbers as text, such as '0.5'"),
    ([f"'{i}.5" for i in range(84)], 83.5, "holds numbers as text, such as '0.5'"),
    ([f"{i},5" for i in range(84)], 83.5, "read as 0.5"),
    ([f"€ {i}.50" for i in range(84)], 83.5, "read as 0.5, without the unit '€'"),
    ([f"${i},{100 + i}" for i in range(1, 85)], 84184, "read as 1101, without the unit"),
    ([f"{i},{100 + i}" for i in range(1, 85)], 84184, "read as 1101"),
    ([*(f"{i}.5" for i in range(83)), "n/a?"], None, r"'n/a\?' in row 83: no number"),
    ([*(f"{i}.5" for i in range(83)), "?"], None, r"'\?' in row 83: no number"),
    ([*range(83), "x"], None, "'x' in row 83: no number"),
    ([*(f"{i} kmpl" for i in range(83)), "7 mpg"], None, "'7 mpg' in row 83: no number"),
    ([f"{i % 24}:{i % 60:02}" for i in range(84)], 11 + 23 / 60, "the hours of a clock"),
    ([f"{i}k" if i % 2 else f"{i}.5M" for i in range(84)], 83e3, "read as 500000"),
])  # fmt: skip
def test_texts_that_mean_numbers_or_dates(texts, last, told):
    X = pd.DataFrame({"a": texts, "b": np.arange(84)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder = TableEncoder().fit(X)
        again = encoder.transform(X)[-1, 0]
    column = encoder.columns_[0]
    assert column.kind in ("number", "date")
    assert re.search(told or "^$", "".join(str(each.message) for each in caught))
    wanted = column.fill if last is None else last
    scores = column.quantiles is not None
    assert scores or np.isclose(again, (wanted - column.mean) / column.scale)


def test_a_saved_index_of_a_frame_is_left_out():
    X = pd.DataFrame({"Unnamed: 0": np.arange(50), "a": np.sin(np.arange(50))})
    with pytest.warns(UserWarning, match="'Unnamed: 0' seems to be a saved index or a com"):
        encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["a"]
    assert encoder.transform(X[["a"]]).shape == (50, 1)
    days = pd.DataFrame({"day": [20240101, 20240215, 20241231]})
    with pytest.warns(UserWarning, match="numbers such as 20240101, read as dates"):
        encoder = TableEncoder().fit(days)
    assert encoder.columns_[0].fill == 1707955200
    assert np.ptp(encoder.transform(days)[:, 0]) > 0


@pytest.mark.parametrize("form", ["%b-%y", "%y-%b", "%m.%Y"])
def test_categories_that_may_be_dates_are_told(form):
    months = pd.date_range("2020-01-01", periods=90, freq="MS").strftime(form)
    with pytest.warns(UserWarning, match="taken for categories: it holds texts such as '"):
        TableEncoder().fit(pd.DataFrame({"a": [*months, *months]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder().fit(pd.DataFrame({"a": [f"box-{i % 50}" for i in range(200)]}))


def test_where_all_columns_are_left_out_each_is_told():
    """One of them stands for nothing, and was left out all the same."""
    one = pd.DataFrame({"age": [30.0], "town": ["Ulm"]})
    assert told(TableEncoder().fit(one)) == [
        "Columns left out because they are constant: age, town."
    ]
    names = pd.DataFrame({"name": [f"n{i}" for i in range(100)]})
    with pytest.warns(UserWarning, match="a different text: name; name one"):
        encoder = TableEncoder().fit(names)
    assert told(encoder) == [
        "Columns left out because nearly every row has a different text: name."
    ]
