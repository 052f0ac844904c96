"""Slopes of tables in the units of the user: against differences of predictions, and algebra."""

import functools

import numpy as np
import pandas as pd
import pytest

from gzkcore import KernelRegressor, KernelRidge, LatLonToSphere, Matern

DEGREE = np.pi / 180 * 6371  # km of a meridian
N = 300
SMOOTH = Matern(2.5, "learn")


def table(region=False):
    rng = np.random.default_rng(0)
    size = (2.0, 3.0) if region else (80.0, 180.0)
    day = pd.to_timedelta(rng.uniform(0, 1500, N), unit="D")
    return pd.DataFrame({
        "kind": rng.choice(["a", "b"], N), "lat": 5 * region + rng.uniform(-size[0], size[0], N),
        "income": rng.lognormal(0, 1.6, N), "lon": rng.uniform(-size[1], size[1], N),
        "when": pd.Timestamp("2020-01-01") + day, "always": 1.0,
    })  # fmt: skip


def target(X):
    seconds = (X["when"] - pd.Timestamp("2020-01-01")).dt.total_seconds()
    lat, lon = np.radians(X["lat"]), np.radians(X["lon"])
    year = np.sin(2 * np.pi * seconds / 86400 / 365.2425)
    of_numbers = np.log(1 + X["income"]) + 3 * np.sin(lat) + np.cos(lat) * np.sin(lon) + year
    return 100 * (of_numbers + (X["kind"] == "a")).to_numpy()


@functools.cache
def fitted(region=False, flat=True, form="auto"):
    X = table(region)
    y = target(X) + 20 * np.random.default_rng(1).standard_normal(N)
    model = KernelRegressor(kernel=SMOOTH, form=form, n_components=100, random_state=0)
    return model.fit(X, y if flat else np.c_[y, -y])


def changed(X, name, by):
    return X.assign(**{name: X[name] + by})


def differences(model, X, name, step, size):
    """Return differences of predictions over twice a step in a column, whose size is given."""
    up, down = (model.predict(changed(X, name, by)) for by in (step, -step))
    return (up - down).T / (2 * size)


STEPS = {
    "lat": (1e-3, 1e-3 * DEGREE), "lon": (1e-3, 1e-3 * DEGREE), "income": (1e-4, 1e-4),
    "when": (pd.Timedelta(minutes=5), 5 / 1440),
}  # fmt: skip


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("region", [False, True])
def test_slopes_are_differences_in_units_of_the_user(region, flat):
    model, new = fitted(region, flat), table(region)[:7]
    kinds = {column.name: column.kind for column in model.encoder_.columns_}
    assert kinds["lat"] == ("number" if region else "place")
    assert model.encoder_.columns_[2].unit  # logarithms
    y, slopes = model.predict(new[[*new][::-1]], return_gradient=True)
    assert (y == model.predict(new)).all()
    assert [*slopes] == ["lat", "income", "lon", "when"]
    for name, (step, size) in STEPS.items():
        expected = differences(model, new, name, step, size).T
        if name == "lon":
            expected = (expected.T / np.cos(np.radians(new["lat"].to_numpy()))).T
        assert slopes[name].shape == y.shape
        most = np.abs(expected).max()
        np.testing.assert_allclose(slopes[name], expected, atol=1e-4 * most, err_msg=name)


def test_deviations_are_those_of_linear_algebra():
    model, new = fitted(), table()[:5]
    _, _, _, found = model.predict(new, return_std=True, return_gradient=True)
    rows, inner = model.encoder_.transform(new), model.model_
    old = inner.X_fit_
    assert inner.trend is None
    K = inner.kernel_(old) + inner.alpha * np.eye(len(old))
    steps = {"lat": 0.1, "lon": 0.1, "income": 1e-3}
    for name, step in steps.items():
        up, down = (model.encoder_.transform(changed(new, name, by)) for by in (step, -step))
        D = (inner.kernel_(up, old) - inner.kernel_(down, old)) / (2 * step)
        # k is 1 at equal rows, so that 1 - k(up, down) is half of a slope's variance, squared.
        prior = 2 * (1 - np.diag(inner.kernel_(up, down))) / (2 * step) ** 2
        variance = prior - np.einsum("in,in->i", D, np.linalg.solve(K, D.T).T)
        variance *= inner.noise_variance_ / inner.alpha * model._scales**2
        varying = model._deviations.varying(rows)[:, 0]
        widened = np.maximum(model._deviations.factors * varying, 1.0)
        expected = np.sqrt(variance) * widened
        if name != "income":
            expected /= DEGREE
        if name == "lon":
            expected /= np.cos(np.radians(new["lat"]))
        np.testing.assert_allclose(found[name], expected, rtol=1e-3, err_msg=name)


def test_an_array_has_nan_for_columns_without_slopes():
    rng = np.random.default_rng(0)
    X = np.c_[rng.uniform(-1, 1, 60), np.ones(60), rng.uniform(-1, 1, 60)]
    y = X[:, 0] * 2 + X[:, 2] + 0.1 * rng.standard_normal(60)
    model = KernelRegressor(kernel=SMOOTH, random_state=0).fit(X, y)
    y, std, slope, slope_std = model.predict(X[:4], return_std=True, return_gradient=True)
    assert y.shape == std.shape == (4,)
    assert slope.shape == slope_std.shape == (4, 3)
    assert np.isnan([slope[:, 1], slope_std[:, 1]]).all()
    np.testing.assert_allclose(slope[:, [0, 2]], [[2, 1]] * 4, atol=0.3)
    assert (np.abs(slope - [2, 0, 1]) < 4 * slope_std)[:, [0, 2]].all()


def test_what_is_not_known_is_nan():
    new = table()[:4]
    new.loc[new.index[0], ["lat", "income"]] = np.nan
    new.loc[new.index[1], "kind"] = "never seen"
    with pytest.warns(UserWarning, match="fit did not see|no value in 1 of 4 rows") as caught:
        _, _, slopes, deviations = fitted().predict(new, return_std=True, return_gradient=True)
    assert len(caught) == 3
    gone = {name: np.flatnonzero(np.isnan(each)).tolist() for name, each in slopes.items()}
    assert gone == {"lat": [0], "income": [0], "lon": [0], "when": []}
    assert all(
        np.isnan(each).tolist() == [True, True, False, False] for each in deviations.values()
    )
    region = table(True)[:2].assign(lat=[np.nan, 90.0])
    with pytest.warns(UserWarning, match="column 'lat'"):
        _, slopes = fitted(True).predict(region, return_gradient=True)
    assert np.isnan(slopes["lon"]).all()  # at a pole no way is east
    assert np.isnan(slopes["lat"]).tolist() == [True, False]


def test_the_pole_is_a_place_like_others():
    _, slopes = fitted().predict(
        table()[:2].assign(lat=90.0, lon=[0.0, 90.0], kind="a"), return_gradient=True
    )
    assert np.isfinite(slopes["lon"]).all()


def test_centres_and_features_have_slopes():
    new, expected = table()[:6], {}
    for form in ("centers", "features"):
        model = fitted(form=form)
        _, slopes = model.predict(new, return_gradient=True)
        expected = differences(model, new, "income", *STEPS["income"])
        np.testing.assert_allclose(slopes["income"], expected, rtol=1e-3)
    assert fitted(form="centers").predict(new, True, return_gradient=True)[3]["lat"].min() > 0
    with pytest.raises(ValueError, match="features has no standard deviations of slopes"):
        model.predict(new, return_std=True, return_gradient=True)


def test_what_has_no_slopes_says_so():
    words = pd.DataFrame({"kind": ["a", "b"] * 30})
    model = KernelRegressor(random_state=0).fit(words, np.arange(60.0) % 2)
    with pytest.raises(ValueError, match="no slopes, since no column has numbers"):
        model.predict(words, return_gradient=True)
    with pytest.raises(ValueError, match="return_gradient is for arrays"):
        fitted().predict(iter([table()]), return_gradient=True)
    with pytest.raises(TypeError, match="return_gradient"):
        fitted().predict(table(), return_gradient=np.ones((N, 1, 6)))


def test_a_mean_is_flat():
    X = np.random.default_rng(0).random((100, 2))
    model = KernelRegressor(random_state=0).fit(X, np.ones(100))
    assert model.model_ is None
    _, _, slope, std = model.predict(X[:3], return_std=True, return_gradient=True)
    assert not slope.any()
    assert np.isnan(std).all()


def test_columns_encoded_by_ranks_have_none():
    x = np.random.default_rng(0).standard_normal(200)
    X = pd.DataFrame({"a": x, "far": np.where(np.arange(200) == 7, 1e6, x[::-1])})
    model = KernelRegressor(kernel=SMOOTH, random_state=0).fit(X, np.sin(x))
    assert model.encoder_.columns_[1].quantiles is not None
    assert [*model.predict(X[:3], return_gradient=True)[1]] == ["a"]


def test_a_latitude_encoded_by_ranks_has_none_beside_a_longitude():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"lat": rng.normal(45, 0.01, 300), "lon": rng.uniform(5, 6, 300)})
    X.loc[7, "lat"], X["height"] = 46.0, rng.random(300)
    y = X["lon"] + X["height"] + 0.1 * rng.standard_normal(300)
    model = KernelRegressor(kernel=SMOOTH, random_state=0).fit(X, y)
    assert model.encoder_.columns_[0].quantiles is not None
    slopes = model.predict(X[:3], return_gradient=True)[1]
    assert [*slopes] == ["lon", "height"]
    km = DEGREE * np.cos(np.radians(X["lat"][:3]))
    np.testing.assert_allclose(slopes["lon"] * km, 1, atol=0.3)


@pytest.mark.parametrize("n_new", [5, 80])
def test_the_globe_north_and_east_of_a_ridge(n_new, monkeypatch):
    monkeypatch.setattr("gzkcore.solve.system.HELD_ROWS", 500)
    rng = np.random.default_rng(0)
    places = np.c_[np.degrees(np.arcsin(rng.uniform(-1, 1, 800))), rng.uniform(-180, 180, 800)]
    sphere = LatLonToSphere()
    y = np.sin(np.radians(places[:, 0])) * 10 + np.cos(np.radians(3 * places[:, 1]))
    alpha, kernel = 0.05, Matern(1.5, 0.3)
    X = sphere.transform(places)
    model = KernelRidge(kernel, alpha, tol=1e-10, random_state=0).fit(X, y)
    new = np.r_[[[90.0, 20.0], [-90.0, 0.0]], places[2:n_new] + 0.5]
    ways = sphere.north_east(new)
    points = sphere.transform(new)
    _, _, slope, std = model.predict(points, return_std=True, return_gradient=ways)
    assert slope.shape == std.shape == (n_new, 2)
    inverse = np.linalg.inv(kernel(X) + alpha * np.eye(800))
    scale, h = model.noise_variance_ / alpha, 1.0  # km
    for way in range(2):
        # Great circles: by the exponential map, whose chord is h up to h^3.
        up, down = (
            np.cos(h / 6371) * points + sign * np.sin(h / 6371) * 6371 * ways[:, way]
            for sign in (1, -1)
        )
        expected = (model.predict(up) - model.predict(down)) / (2 * h)
        np.testing.assert_allclose(slope[:, way], expected, atol=1e-4 * np.abs(slope).max())
        D = (kernel(up, X) - kernel(down, X)) / (2 * h)
        prior = 3 / 0.3**2 / 6371**2
        variance = scale * (prior - np.einsum("in,nm,im->i", D, inverse, D))
        ratio = std[:, way] / np.sqrt(variance)
        assert ratio.min() > 1 - 1e-3
        assert ratio.max() < (1.001 if n_new == 5 else 1.2)


def test_directions_have_to_be_directions():
    X = np.random.default_rng(0).random((20, 3))
    model = KernelRidge("gaussian", 0.1).fit(X, X[:, 0])
    for shape in ((2, 3), (3, 3), (2, 1, 2), (1, 1, 3), (2, 1, 1, 3)):
        with pytest.raises(ValueError, match=r"pass True, or p directions at each row"):
            model.predict(X[:2], return_gradient=np.ones(shape))
    by_column = model.predict(X[:2], return_gradient=True)[1]
    along = np.array([[[1.0, 2.0, 0.0]], [[0.0, 0.0, -1.0]]])
    _, found = model.predict(X[:2], return_gradient=along)
    expected = [[by_column[0] @ [1, 2, 0]], [-by_column[1, 2]]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
