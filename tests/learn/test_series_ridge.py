"""Ridge regression on a kernel's series: beside the whole kernel, in passes, and what it refuses."""

import numpy as np
import pytest
from points import sphere

from gzkcore import KernelRidge, LatLonToSphere, Matern, SeriesRidge, load, reference
from gzkcore.kernels import ArcCosine, Gaussian, Laplacian, NeuralTangent, SphereMatern
from gzkcore.solve import far_features

finufft = pytest.importorskip("finufft")
BOX = np.array([[-0.5, -0.5], [1.5, 1.7]])


def table(place, n=1500, seed=0):
    """Return rows, targets and new rows; in the plane within [0, 1]^2."""
    rng = np.random.default_rng(seed)
    X = sphere(n, 3, seed=seed) if place == "sphere" else rng.uniform(size=(n, 2))
    y = 3 + np.sin(4 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(n)
    new = sphere(200, 3, seed=9) if place == "sphere" else rng.uniform(size=(200, 2))
    return X, y, new


def model_of(place, **options):
    kernel = Matern(nu=2.5, length_scale=0.5) if place == "sphere" else Gaussian(gamma=8.0)
    given = {"alpha": 0.1, "degree": 24} | ({} if place == "sphere" else {"box": BOX, "degree": 10})
    return SeriesRidge(kernel, **{**given, **options})


@pytest.mark.parametrize("place", ["sphere", "plane"])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_kernel_ridge_on_the_first_terms(place, weighted):
    X, y, new = table(place)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(X)) if weighted else None
    model = model_of(place, tol=1e-4).fit(X, y, weight)
    mean = np.average(y, weights=weight)
    whole = KernelRidge(model.kernel, alpha=0.1, tol=1e-9).fit(X, y - mean, weight)
    difference = model.predict(new) - mean - whole.predict(new)
    assert abs(model.intercept_ - mean) < 1e-9
    assert np.abs(difference).max() < 0.02
    # Of the first terms themselves it is the exact solution, but for what the bound allows.
    Z = model._features(model.moments_.angles(X), model._solution["weights"])
    at_new = model._features(model.moments_.angles(new), model._solution["weights"])
    columns, of_new = (each.product(np.eye(each.width)) for each in (Z, at_new))
    w = np.ones(len(X)) if weight is None else weight
    A = columns.T @ (w[:, None] * columns) + 0.1 * np.eye(Z.width)
    b = columns.T @ (w * (y - mean))
    exact = of_new @ np.linalg.solve(A, b)
    deviations = np.sqrt(model.noise_variance_ * (of_new * np.linalg.solve(A, of_new.T).T).sum(1))
    errors = np.abs(model.predict(new) - mean - exact)
    assert (errors <= model.error_bound_ * deviations + 1e-9).all()
    assert model.error_bound_ <= 1e-4
    bound = reference.fast_sums.series_error_bound(b - A @ model.coef_, 0.1, model.noise_variance_)
    assert model.error_bound_ == pytest.approx(bound, rel=0.05, abs=1e-8)
    rss = np.mean(w * (y - mean - columns @ model.coef_) ** 2)
    assert model.noise_variance_ == pytest.approx(rss, rel=1e-6)


@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("sphere", {}),
        ("sphere", {"kernel": Matern(nu=1.5, length_scale=0.5), "degree": 16}),
        ("sphere", {"kernel": Matern(nu=0.5, length_scale=0.5), "alpha": 1.0}),
        ("plane", {"degree": 9}),  # the variance left out is small, and its noise is not
        ("plane", {"kernel": Matern(nu=2.5, length_scale=0.3), "degree": 20, "box": 2 * BOX}),
    ],
)
def test_what_is_cut_is_bounded(place, options):
    """The variance of the difference from the whole kernel's predictions, at rows and elsewhere."""
    X, y, new = table(place, 600)
    kernel, alpha = options.pop("kernel", model_of(place).kernel), options.get("alpha", 0.1)
    model = model_of(place, **options).set_params(kernel=kernel).fit(X, y)
    at_rows, at_new = (
        model._features(model.moments_.angles(rows), model._solution["weights"])
        for rows in (X, np.r_[new, X])
    )
    Z, of_new = (part.product(np.eye(part.width)) for part in (at_rows, at_new))
    A = Z.T @ Z + alpha * np.eye(Z.shape[1])
    w = np.linalg.solve(A, of_new.T).T @ Z.T  # of targets, in each prediction
    known = alpha * (of_new * np.linalg.solve(A, of_new.T).T).sum(axis=1)
    K, cross = kernel(X) + alpha * np.eye(600), kernel(np.r_[new, X], X)
    more = ((w @ K - 2 * cross) * w).sum(axis=1) + (cross * np.linalg.solve(K, cross.T).T).sum(1)
    differences = np.sqrt(np.maximum(more, 0))
    left_out = np.sqrt(model.cut_bound_ * model._series()[2])
    assert (differences <= left_out + model.cut_bound_ * np.sqrt(known) + 1e-9).all()
    largest = differences[200:].max() * np.sqrt(model.noise_variance_ / alpha)
    assert largest <= model.missing_std_ < 60 * largest


@pytest.fixture(scope="module")
def in_gaps():
    """Rows on a third of the sphere, their targets, new rows and exact predictions there."""
    X, y, _ = table("sphere", 3000)
    kept = (X[:, 2] > 0.2) | (X[:, 0] > 0.8)
    new = sphere(400, 3, seed=5)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(far_features, "LOWEST", 4)
        model = model_of("sphere", tol=1e-5, alpha=0.01, max_iter=5000).fit(X[kept], y[kept])
    return X[kept], y[kept], new, model.predict(new)


@pytest.mark.parametrize("tol", [1.0, 0.1, 1e-2])
def test_the_bound_holds_in_gaps(tol, in_gaps, monkeypatch):
    """No factored system: many steps, each of which is checked."""
    monkeypatch.setattr(far_features, "LOWEST", 4)
    X, y, new, exact = in_gaps
    model = model_of("sphere", tol=tol, alpha=0.01, max_iter=5000).fit(X, y)
    columns, of_new = (
        part.product(np.eye(part.width))
        for part in (
            model._features(model.moments_.angles(rows), model._solution["weights"])
            for rows in (X, new)
        )
    )
    A = columns.T @ columns + 0.01 * np.eye(columns.shape[1])
    deviations = np.sqrt(model.noise_variance_ * (of_new * np.linalg.solve(A, of_new.T).T).sum(1))
    errors = np.abs(model.predict(new) - exact) / deviations
    assert errors.max() <= model.error_bound_ + 1e-4
    assert model.error_bound_ <= tol


def test_gaps_are_refused_where_steps_do_not_reach_them(monkeypatch):
    monkeypatch.setattr(far_features, "LOWEST", 4)
    X, y, _ = table("sphere", 3000)
    north = X[:, 2] > 0.5
    model = model_of("sphere", alpha=0.01, tol=1e-3, max_iter=20)
    with pytest.raises(
        ValueError, match=r"after \d+ steps predictions may be off by .* near latit"
    ):
        model.fit(X[north], y[north])
    assert not hasattr(model, "moments_")


@pytest.mark.parametrize("place", ["sphere", "plane"])
def test_parts_merged_files_and_arrays_agree(place, tmp_path):
    X, y, new = table(place)
    y = np.column_stack([y, -2 * y + X[:, 0]])
    whole = model_of(place).fit(X, y)
    parts = [
        model_of(place).partial_fit(X[part], y[part]) for part in np.array_split(np.arange(1500), 3)
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_allclose(merged.predict(new), whole.predict(new), atol=1e-3)
    batches = model_of(place).fit([(X[:700], y[:700]), (X[700:], y[700:])])
    np.testing.assert_allclose(batches.predict(new), whole.predict(new), atol=1e-3)
    whole.save(tmp_path / "model.gzk")
    loaded = load(tmp_path / "model.gzk")
    np.testing.assert_array_equal(loaded.predict(new), whole.predict(new))
    loaded.partial_fit(X, y)
    assert loaded.moments_.n_rows == 3000
    assert whole.predict(new).shape == (200, 2)
    assert whole.n_iter_.shape == whole.error_bound_.shape == (2,)


def test_another_kernel_takes_no_other_pass():
    X, y, new = table("sphere")
    first = model_of("sphere").fit(X, y)
    found = first.solved_for(Gaussian(gamma=2.0), alpha=0.5)
    expected = SeriesRidge(Gaussian(gamma=2.0), alpha=0.5, degree=24).fit(X, y)
    np.testing.assert_allclose(found.predict(new), expected.predict(new), atol=1e-9)
    np.testing.assert_allclose(first.predict(new), model_of("sphere").fit(X, y).predict(new))
    with pytest.raises(ValueError, match="takes parameters from rows, but no rows are kept"):
        first.solved_for(Gaussian(gamma="scale"))


def test_a_checkpoint_goes_on(tmp_path):
    X, y, new = table("sphere")

    class Stops:
        def __init__(self, after):
            self.after = after

        def __iter__(self):
            for number, part in enumerate(np.array_split(np.arange(1500), 5)):
                if number == self.after:
                    raise KeyboardInterrupt
                yield X[part], y[part]

    from gzkcore import Checkpoint

    path = tmp_path / "state.gzk"
    with pytest.raises(KeyboardInterrupt):
        model_of("sphere").fit(Stops(3), checkpoint=Checkpoint(path, 1e-9))
    found = model_of("sphere").fit(Stops(9), checkpoint=Checkpoint(path, 1e-9))
    np.testing.assert_allclose(
        found.predict(new), model_of("sphere").fit(X, y).predict(new), atol=1e-3
    )
    assert not path.exists()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1e-100, 1e-20, 1e-12, 1e14, 1e100])
def test_targets_and_weights_of_any_size(size, weighted):
    X, y, new = table("sphere")
    weight = np.random.default_rng(2).uniform(0.5, 2, len(X))
    plain = model_of("sphere").fit(X, y, weight)
    given, alpha = (weight / size, 0.1 / size) if weighted else (weight, 0.1)
    found = model_of("sphere", alpha=alpha).fit(X, np.column_stack([y, size * y, y]), given)
    expected = plain.predict(new)
    for scale, column in zip([1.0, size, 1.0], found.predict(new).T, strict=True):
        np.testing.assert_allclose(column / scale, expected, rtol=1e-9)
    unit = np.array([1.0, size**2, 1.0]) / (size if weighted else 1.0)
    np.testing.assert_allclose(found.noise_variance_ / unit, plain.noise_variance_, rtol=1e-9)
    np.testing.assert_allclose(found.error_bound_, plain.error_bound_, rtol=1e-2, atol=1e-9)


def test_sizes_that_no_sum_of_squares_has_are_refused():
    X, y, _ = table("sphere")
    for size in (1e-170, 1e160):
        with pytest.raises(ValueError, match="so large or so small that sums of weighted squares"):
            model_of("sphere").fit(X, size * y)
    with pytest.raises(ValueError, match="so large or so small that sums of weighted squares"):
        model_of("sphere").fit(X, y, np.full(len(X), 1e-300))


def test_a_model_solved_for_another_alpha_shares_no_rows_to_come():
    X, y, _ = table("sphere")
    first = model_of("sphere").fit(X[:700], y[:700])
    second = first.solved_for(alpha=1.0).partial_fit(X[700:], y[700:])
    third = first.solved_for(alpha=1.0).merge(second)
    assert [model.moments_.n_rows for model in (first, second, third)] == [700, 1500, 2200]


def test_rows_together_tell_more_than_the_next_function():
    X, y, _ = table("sphere")
    kernel = Matern(nu=0.5, length_scale=0.5)
    alone = SeriesRidge(kernel, alpha=1.0, degree=24).fit(X, y)
    assert alone.missing_std_ > 0
    X[:100] = X[0]
    with pytest.raises(ValueError, match="pass a higher degree"):
        SeriesRidge(kernel, alpha=1.0, degree=24).fit(X, y)


def test_a_kernel_without_odd_degrees_is_not_taken_for_one_that_ends():
    X, y, _ = table("sphere")
    with pytest.raises(ValueError, match="pass a higher degree"):
        SeriesRidge(ArcCosine(), alpha=1e-4, degree=4).fit(X, y)


def test_kernels_of_angles_are_taken_on_the_sphere():
    X, y, new = table("sphere")
    kernel = SphereMatern(nu=1.5, length_scale=0.5)
    X, y, new = X[:60], y[:60], new[:20]  # its values take long
    model = SeriesRidge(kernel, alpha=1.0, degree=60).fit(X, y)
    dual = np.linalg.solve(kernel(X, X) + np.eye(60), y - y.mean())
    expected = y.mean() + kernel(new, X) @ dual
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-3)


def test_new_rows_are_not_neighbours_round_the_box():
    X, y, _ = table("plane")
    model = model_of("plane").fit(X, y)
    whole = KernelRidge(model.kernel, alpha=0.1).fit(X, y - y.mean())
    beyond = np.array([[1.05, 0.5], [-0.05, 1.1]])
    np.testing.assert_allclose(model.predict(beyond) - y.mean(), whole.predict(beyond), atol=0.02)
    with pytest.raises(ValueError, match="longer than the rows and new ones beyond"):
        model.predict([[1.45, 0.5]])


def test_sources_belong_to_fit():
    X, y, _ = table("sphere")
    with pytest.raises(TypeError, match="partial_fit takes the rows of one batch"):
        model_of("sphere").partial_fit([(X, y)], None)
    with pytest.raises(ValueError, match="degree=3000 is too large"):
        model_of("sphere", degree=3000).fit(X, y)


def test_longitudes_and_latitudes():
    places = np.random.default_rng(0).uniform([-90, -180], [90, 180], (2000, 2))
    X = LatLonToSphere().fit_transform(places)
    model = SeriesRidge(Matern(nu=2.5, length_scale=0.5), alpha=0.1, degree=20).fit(X, X[:, 2])
    assert model.score(X, X[:, 2]) > 0.99


def test_single_precision_constants_and_one_row():
    X, y, new = table("sphere")
    model = model_of("sphere").fit(X.astype(np.float32), y)
    np.testing.assert_allclose(
        model.predict(new), model_of("sphere").fit(X, y).predict(new), atol=1e-3
    )
    np.testing.assert_allclose(model.predict(new.astype(np.float32)), model.predict(new), atol=1e-5)
    np.testing.assert_allclose(model_of("sphere").fit(X, np.full(1500, 7.0)).predict(new), 7.0)
    assert model_of("sphere").fit(X[:1], y[:1]).predict(new) == pytest.approx(np.full(200, y[0]))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"degree": 0}, "degree"),
        ({"tol": 0.0}, "tol"),
        ({"alpha": 0.0}, "alpha=0.0 must be > 0"),
        ({"box": [[0, 0], [1, 1]]}, "must be the lowest and the highest corner"),
        ({"kernel": Laplacian(gamma=[1.0, 2.0, 3.0])}, "no function of one distance"),
        ({"kernel": Matern(nu=0.5, length_scale=0.01), "alpha": 1e-4}, "pass a higher degree"),
    ],
)
def test_what_is_refused(options, match):
    X, y, _ = table("sphere")
    given = {"kernel": Matern(nu=2.5, length_scale=0.5), "degree": 24, "alpha": 0.1, **options}
    with pytest.raises(ValueError, match=match):
        SeriesRidge(**given).fit(X, y)


def test_what_is_refused_in_a_box():
    X, y, new = table("plane")
    with pytest.raises(ValueError, match="opposite ends would be neighbours"):
        model_of("plane", box=[[0, 0], [1.2, 1.2]]).fit(X, y)
    with pytest.raises(ValueError, match="no function of one distance"):
        SeriesRidge(NeuralTangent(), box=BOX).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0, 0\] is .* outside the box"):
        model_of("plane").fit(X + 5, y)
    with pytest.raises(ValueError, match="X has 2 columns, but the unit sphere has 3"):
        model_of("sphere").fit(X, y)
    with pytest.raises(ValueError, match="no standard deviations"):
        model_of("plane").fit(X, y).predict(new, return_std=True)
