"""What `predict` says of columns that look unlike those of the fit."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gzkcore.tabular.table_encoder import TableEncoder

RNG = np.random.default_rng(0)
DAYS = pd.Series(pd.date_range("2020-01-01", periods=200))
KILOGRAMS, CELSIUS = RNG.uniform(40, 100, 200), RNG.uniform(-5, 30, 200)
UNIT = "; if it is in another unit, convert it"


def told(fitted, new):
    encoder = TableEncoder().fit(pd.DataFrame({"x": fitted}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder.transform(pd.DataFrame({"x": new}))
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("fitted", "new", "wanted"), [
    (KILOGRAMS, KILOGRAMS / 1000, "outside the range"),
    (np.append(KILOGRAMS, 0), KILOGRAMS / 1000, "x' is far smaller than in the fit in 200 of 200"),
    (KILOGRAMS, KILOGRAMS * 2.2, "outside the range"),
    (CELSIUS, CELSIUS + 273.15, "x' is far outside the range"),
    (CELSIUS, CELSIUS * 1.8 + 32, "outside the range"),
    (CELSIUS / 40, CELSIUS, "far outside the range"),
    (KILOGRAMS / 100, KILOGRAMS, "far outside the range"),
    (np.exp(CELSIUS), 1000 * np.exp(CELSIUS), None),  # within a range that wide
])  # fmt: skip
def test_another_unit(fitted, new, wanted):
    found = told(fitted, new)
    if wanted is None:
        assert all(UNIT not in each for each in found)
    else:
        assert wanted in found[0]
        assert found[0].endswith(UNIT)


@pytest.mark.parametrize("factor", [1e-3, 0.01, 0.1, 10, 100, 1000])
@pytest.mark.parametrize("fitted", [KILOGRAMS, CELSIUS / 40 + 2, RNG.uniform(0.2, 1, 200)])
def test_a_power_of_ten(fitted, factor):
    """Whole powers of ten are named, other units are not."""
    new = factor * np.append(fitted[:50], np.nan)
    named = f"divided by {factor}" if factor > 1 else f"multiplied by {1 / factor:.0f}"
    missing, found = told(fitted, new)
    assert "column 'x': no value in 1 of 51 rows" in missing
    assert f"; {named} they are like the fit{UNIT}" in found
    for others in (2.2 * new, new + factor * 1000 * fitted.max(), 0 * new + factor * fitted[0]):
        assert not any("like the fit" in each for each in told(fitted, others))


@pytest.mark.parametrize(("code", "count"), [(-9999.0, 3), (-1000.0, 5), (999.0, 1)])
def test_a_code_for_missing_values(code, count):
    found = told(CELSIUS, [*CELSIUS[:50], *count * [code]])
    assert found[0].endswith(
        f"in {count} of {50 + count} values, first {code:g} in row 50; if it stands for a missing "
        "value, leave it empty"
    )


def test_a_code_for_missing_values_near_the_others():
    (found,) = told(KILOGRAMS, [*KILOGRAMS[:50], 0, 0, 0])
    assert "outside the range of the fit" in found
    assert found.endswith("first 0 in row 50; if it stands for a missing value, leave it empty")
    assert told(KILOGRAMS, [*KILOGRAMS[:50], 39, 39, 39]) == []


@pytest.mark.parametrize(("fitted", "new", "filled"), [
    (KILOGRAMS, [np.nan, 50.0, np.nan], "the median is taken"),
    (DAYS, [pd.NaT, DAYS[3], pd.NaT], "the median is taken"),
    (["a", "b", "c"] * 9, [None, "a", ""], "it is unknown there"),
    ([True, False] * 9, [None, True, None], "it is unknown there"),
], ids=["numbers", "dates", "levels", "booleans"])  # fmt: skip
def test_values_that_only_new_rows_lack(fitted, new, filled):
    what = "column 'x': no value in 2 of 3 rows, but in every row of the fit"
    assert told(fitted, new) == [f"{what}; {filled}"]
    assert told([*fitted, None], new) == []


@pytest.mark.parametrize("value", [0.0, -0.5])
def test_numbers_that_have_no_logarithm(value):
    skewed = np.exp(2 * RNG.standard_normal(200))
    (found,) = told(skewed, [*skewed[:30], value])
    assert "'x' is 0 or below, where the fit took logarithms of positive numbers, in 1 of" in found
    assert found.endswith(f"first {value:g} in row 30; leave missing values empty, or choose "
                          "'linear' for the column in the fit")  # fmt: skip
    with_zeros = np.where(np.arange(200) % 50 == 0, 0.0, skewed)
    assert bool(told(with_zeros, [*skewed[:30], value])) == (value < 0)
    assert told(KILOGRAMS, [*KILOGRAMS[:30], value]) == []


def test_longitudes_that_are_counted_otherwise():
    lon = RNG.uniform(-180, 180, 200)
    encoder = TableEncoder().fit(pd.DataFrame({"start_lon": lon, "x": lon}))
    with pytest.warns(UserWarning, match="'start_lon' is outside .* count longitudes as") as caught:
        encoder.transform(pd.DataFrame({"start_lon": lon % 360, "x": lon}))
    assert len(caught) == 1


def places_told(fitted, new):
    encoder = TableEncoder().fit(fitted)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder.transform(new)
    return [str(warning.message) for warning in caught]


def places(n, south=30.0, west=-120.0):
    return pd.DataFrame({"lat": RNG.uniform(south, 48, n), "lon": RNG.uniform(west, -75, n)})


def test_places_far_from_those_of_the_fit():
    fitted = pd.concat([places(200), pd.DataFrame({"lat": [20.0], "lon": [-157.0]})])
    new = places(50)
    assert places_told(fitted, new) == places_told(fitted, fitted) == []
    new.loc[7], new.loc[9] = [51.5, 0.0], [40.5, 360.0]
    new.loc[3, "lat"] = np.nan
    missing, far = places_told(fitted, new)
    assert missing.startswith("columns 'lat', 'lon': no value in 1 of 50 rows, but in every row")
    assert far == (
        "columns 'lat', 'lon': far from all places of the fit in 2 of 50 rows, first 51.5, 0 in "
        "row 7; predictions there are extrapolated"
    )
    alone = pd.DataFrame({"lat": [np.nan], "lon": [-100.0]})
    assert len(places_told(fitted, alone)) == 1


def test_random_rows_of_few_places_are_not_far():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        towns = rng.uniform([-60, -170], [60, 170], (20, 2))
        rows = towns[rng.integers(0, 20, 250)] + rng.standard_normal((250, 2))
        fitted, new = (
            pd.DataFrame(part, columns=["lat", "lon"]) for part in (rows[50:], rows[:50])
        )
        assert places_told(fitted, new) == []


def test_dates_far_from_those_of_the_fit():
    assert told(DAYS, DAYS + pd.Timedelta(days=150)) == []
    (found,) = told(DAYS, [*DAYS[:30], pd.Timestamp("1970-01-01")])
    assert "far outside the range of the fit, 2020-01-01 to 2020-07-18, in" in found
    assert "first 1970-01-01 in row 30; predictions there are extrapolated" in found


def test_nothing_is_said_of_rows_like_those_of_the_fit():
    half = RNG.permutation(200)
    for values in (KILOGRAMS, CELSIUS, DAYS, np.where(CELSIUS > 0, CELSIUS, np.nan)):
        assert told(values[half[:100]], values[half[100:]]) == []
    assert told(KILOGRAMS, KILOGRAMS[:1] * 1.5) == []
