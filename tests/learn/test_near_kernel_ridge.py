"""NearKernelRidge: predictions from near rows, lengths learned from them, rows that come and go."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from points import sphere
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import gzkcore
from gzkcore import (
    Gaussian,
    KernelRidge,
    Laplacian,
    Matern,
    NearKernelRidge,
    Polynomial,
    Product,
    ProductMatern,
    SphereMatern,
    Sum,
    learn_kernel,
    reference,
)
from gzkcore.kernels.learned import Examples
from gzkcore.learn import near_kernel_ridge
from gzkcore.solve import near_lengths, near_rows, neighbours
from gzkcore.solve.near_lengths import learned_near
from gzkcore.solve.near_rows import NearRows

KERNEL = Matern(2.5, [0.3, 0.5])
formula = reference.near_rows.prediction_from_near_rows


def data(n=200, n_targets=1, dim=2):
    """Rows, targets far from 0, weights, and new rows."""
    rng = np.random.default_rng(n)
    X, new = rng.random((n, dim)), rng.random((9, dim))
    y = 5 + np.sin(7 * X[:, :1] + np.arange(n_targets)) + 0.1 * rng.standard_normal((n, n_targets))
    return X, y if n_targets > 1 else y[:, 0], rng.uniform(0.5, 2, n), new


def made(kernel=KERNEL, alpha=0.05, **parameters):
    return NearKernelRidge(kernel, alpha, **{"n_neighbors": 12, "random_state": 0} | parameters)


@pytest.fixture
def _few_blocks(monkeypatch):
    """Learn from a quarter of the blocks, in a quarter of the time."""
    monkeypatch.setattr(near_lengths, "BLOCKS", 25)


# ---- predictions


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("trend", [None, "constant", "linear", [1]])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_and_deviations_are_the_reference(n_targets, trend, weighted):
    """prediction_from_near_rows, of what the trend leaves; the scale is the same for all rows."""
    X, y, weight, new = data(n_targets=n_targets)
    weight = weight if weighted else np.ones(200)
    model = made(trend=trend).fit(X, y, weight if weighted else None)
    Y, columns = y.reshape(200, -1), {"constant": [], "linear": [0, 1]}.get(str(trend), trend)
    H, H_new = (
        np.zeros((len(rows), 1)) if trend is None else np.c_[np.ones(len(rows)), rows[:, columns]]
        for rows in (X, new)
    )
    roots = np.sqrt(weight)[:, None]
    b = np.linalg.lstsq(roots * H, roots * Y, rcond=None)[0]
    left = Y - H @ b
    scales = []
    mean, std = model.predict(new, return_std=True)
    for i, x in enumerate(new):
        near = np.argsort(np.linalg.norm((X - x) / KERNEL.length_scale, axis=1))[:12]
        K = KERNEL(np.vstack([X[near], x]))
        for q in range(n_targets):
            wanted, variance = formula(
                lambda a, c, K=K: K[a, c], 12, range(12), left[near, q], 0.05, weight[near]
            )
            assert mean.reshape(9, -1)[i, q] == pytest.approx(wanted + H_new[i] @ b[:, q], abs=2e-5)
            scales.append(std.reshape(9, -1)[i, q] ** 2 / variance)
    scales = np.reshape(scales, (9, n_targets))
    assert_allclose(scales, np.broadcast_to(scales[:1], scales.shape), rtol=1e-4)
    assert_allclose(scales[0] * 0.05, model.noise_variance_, rtol=1e-4)


@pytest.mark.parametrize("alpha", [0.05, 1e-6])
@pytest.mark.parametrize("n_neighbors", [200, 300])
def test_with_all_rows_near_it_is_kernel_ridge(n_neighbors, alpha):
    X, y, weight, new = data()
    found = made(alpha=alpha, n_neighbors=n_neighbors, trend=None).fit(X, y, weight)
    whole = KernelRidge(KERNEL, alpha, tol=1e-10).fit(X, y, weight)
    for mine, other in zip(
        found.predict(new, False, True), whole.predict(new, False, True), strict=True
    ):
        assert_allclose(mine, other, rtol=0, atol=1e-4)
    shares = [model.predict(new, True)[1] / model.noise_variance_**0.5 for model in (found, whole)]
    assert_allclose(*shares, rtol=1e-4)


def test_the_deviation_is_that_of_new_observations():
    X, y, _, _ = data(4000)
    model = made(alpha=None, n_neighbors=30).fit(X[:3000], y[:3000])
    mean, std = model.predict(X[3000:], return_std=True)
    z = (y[3000:] - mean) / std
    assert 0.95 < z.std() < 1.05
    assert 0.01 < model.noise_variance_ < 0.0115 or model.noise_variance_ == pytest.approx(
        0.01, rel=0.1
    )


@pytest.mark.parametrize(
    "kernel",
    [
        KERNEL, Gaussian(9.0), Product([(0, Matern(2.5, 0.3)), (1, Gaussian(3.0))]),
        Sum([(0, Matern(2.5, 0.3)), ([0, 1], Gaussian(3.0))], [1.0, 0.5]),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("trend", ["constant", "linear"])
def test_slopes_by_differences(kernel, trend):
    X, y, _, new = data(n_targets=2)
    model = made(kernel, 1e-5, trend=trend).fit(X, y)
    mean, _, slope, slope_std = model.predict(new, True, True)
    assert_array_equal(mean, model.predict(new))
    assert slope.shape == slope_std.shape == (9, 2, 2)
    h = 1e-6
    for c in range(2):
        step = h * (np.arange(2) == c)
        expected = (model.predict(new + step) - model.predict(new - step)) / (2 * h)
        assert_allclose(slope[:, :, c], expected, atol=1e-3)
    along = np.broadcast_to([[0.6, 0.8]], (9, 1, 2))
    assert_allclose(model.predict(new, False, along)[1][:, :, 0], slope @ [0.6, 0.8], rtol=1e-9)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Matern(0.8), Polynomial(2)], ids=repr)
def test_slopes_of_kernels_without_deviations(kernel):
    X, y, _, new = data()
    model = made(kernel, 1e-5).fit(X, y)
    slope, h = model.predict(new, False, True)[1], 1e-6
    for c, step in enumerate(h * np.eye(2)):
        expected = (model.predict(new + step) - model.predict(new - step)) / (2 * h)
        assert_allclose(slope[:, c], expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", [Matern(2.5, 0.3), Matern(5.2, 0.3)], ids=repr)
def test_slopes_do_not_depend_on_rows_beside(kernel, monkeypatch):
    """Matern(5.2) has no table, and its matrices are made one by one."""
    X, y, _, new = data()
    model = made(kernel).fit(X, y)
    whole = model.predict(new, True, True)
    monkeypatch.setattr(near_rows, "SLOPE_VALUES", 4 * 12 * 14)  # two new rows
    for found, expected in zip(model.predict(new, True, True), whole, strict=True):
        assert_allclose(found, expected, rtol=1e-9)


def test_deviations_of_slopes_are_those_of_differences():
    """The posterior variance of (f(x + h) - f(x - h)) / 2h given the near rows."""
    X, y, _, new = data()
    model, h = made(Gaussian(9.0), 0.05).fit(X, y), 1e-3
    slope_std = model.predict(new, True, True)[3]
    scale = model.noise_variance_ / 0.05
    for i, x in enumerate(new):
        near = np.argsort(np.linalg.norm(X - x, axis=1))[:12]
        for c in range(2):
            two = np.array([x, x]) + np.array([[h], [-h]]) * np.eye(2)[c]
            K = Gaussian(9.0)(np.vstack([X[near], two]))
            A, B = K[:12, :12] + 0.05 * np.eye(12), K[:12, 12:] @ [1, -1]
            variance = np.array([1, -1]) @ K[12:, 12:] @ [1, -1] - B @ np.linalg.solve(A, B)
            assert slope_std[i, c] ** 2 == pytest.approx(scale * variance / (4 * h * h), rel=1e-3)


# ---- lengths


@pytest.mark.parametrize("seed", range(2))
def test_lengths_are_found_although_one_of_the_start_is_far_too_long(seed):
    """Rows that are near by such lengths are far apart in that column, and tell nothing of it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (4000, 2))
    y = np.sin(60 * X).sum(axis=1, keepdims=True) + 0.1 * rng.standard_normal((4000, 1))
    start = np.array([0.01, 30.0])
    found = learned_near(
        Matern(1.5, "learn"), Examples(X, y), start=start, random_state=seed
    ).length_scale
    assert 0.8 < found[0] / found[1] < 1.25


def test_lengths_below_the_distance_of_random_rows_are_found():
    """Of rows of a fast function learn_kernel's 1,000 say little; near ones say all."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (20_000, 1))
    y = np.sin(40 * X[:, 0]) + 0.1 * rng.standard_normal(20_000)
    model = NearKernelRidge(Matern(2.5, "learn"), random_state=0).fit(X, y)
    assert 0.05 < model.kernel_.length_scale[0] < 0.5
    new = rng.uniform(0, 100, (500, 1))
    truth = np.sin(40 * new[:, 0])
    assert np.std(model.predict(new) - truth) < 0.1
    drawn = learn_kernel(X, y, Matern(2.5), random_state=0)
    other = NearKernelRidge(drawn.kernel, drawn.noise).fit(X, y)
    assert np.std(other.predict(new) - truth) > 0.3


@pytest.mark.usefixtures("_few_blocks")
@pytest.mark.parametrize(
    ("kernel", "on_sphere"),
    [
        (Matern("learn", "learn"), False), (Laplacian("learn"), False), ("gaussian", False),
        (ProductMatern(2.5, "learn"), False),
        (Product([(0, Matern(1.5, "learn")), (1, Gaussian("learn"))]), False),
        (Sum([(0, Matern(1.5, "learn")), (1, Gaussian("learn"))]), False),
        pytest.param(SphereMatern(2.5, "learn"), True, marks=pytest.mark.slow), (KERNEL, False),
    ],
    ids=str,
)  # fmt: skip
def test_every_kernel_learns_from_near_rows(kernel, on_sphere):
    X, y, weight, _ = data(600)
    if on_sphere:
        X = sphere(600, 3)
        y = np.sin(5 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(600)
    model = made(kernel, None).fit(X[:500], y[:500], weight[:500])
    again = made(kernel, None).fit(X[:500], y[:500], weight[:500])
    assert_array_equal(model.predict(X[:50]), again.predict(X[:50]))
    assert "learn" not in repr(model.kernel_)
    assert model.score(X[500:], y[500:]) > 0.9


@pytest.mark.usefixtures("_few_blocks")
def test_a_weight_of_2_is_half_the_noise():
    X, y, _, new = data(500)
    one, two = (made(Gaussian("learn"), None).fit(X, y, w) for w in (None, np.full(500, 2.0)))
    assert two.alpha_ == pytest.approx(2 * one.alpha_, rel=1e-6)
    assert_allclose(two.predict(new), one.predict(new), rtol=1e-6)


def test_smoothness_is_the_likeliest():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 30, (800, 1)), axis=0)
    draws = {}
    for nu in (0.5, 2.5):
        K = Matern(nu, 0.5)(X)
        draws[nu] = np.linalg.cholesky(K + 1e-8 * np.eye(800)) @ rng.standard_normal(800)
    for nu, f in draws.items():
        y = f + 0.05 * rng.standard_normal(800)
        found = made(Matern("learn", "learn"), None).fit(X, y).kernel_.nu
        assert (found == 0.5) == (nu == 0.5)


@pytest.mark.usefixtures("_few_blocks")
def test_noise_is_not_taken_for_a_rough_function():
    X, _, _, _ = data(2000)
    for seed in range(2):
        y = np.random.default_rng(seed).standard_normal(2000)
        model = made(Matern(1.5, "learn"), None, n_neighbors=50).fit(X, y)
        mean, std = model.predict(X[:500] + 1e-3, return_std=True)
        assert np.std(mean) < 0.2
        assert np.abs(std - 1).max() < 0.1


@pytest.mark.usefixtures("_few_blocks")
def test_what_cannot_be_learned_is_told():
    X, y, _, _ = data()
    huge = Sum([(0, Gaussian(1e-3)), (1, Gaussian(1e-3))], [1e18, 1e18])
    with pytest.raises(ValueError, match=r"has values up to 2e\+18 on X, so that K plus the noise"):
        made(huge, None).fit(X, y)
    with pytest.raises(ValueError, match="all columns of X are constant on the 200 rows used"):
        made(Gaussian("learn"), None).fit(np.ones_like(X), y)
    with pytest.warns(UserWarning, match="y is constant on the 200 rows used"):
        model = made(Gaussian("learn"), None).fit(X, np.full(200, 7.0))
    mean, std = model.predict(X[:3], return_std=True)
    assert_allclose(mean, 7.0)
    assert_allclose(std, 0.0, atol=1e-12)


# ---- any rows


@pytest.mark.usefixtures("_few_blocks")
@pytest.mark.parametrize("form", ["list", "frame", "float32", "csr", "fortran"])
def test_the_same_rows_in_any_form(form):
    X, y, _, new = data()
    X[X < 0.3], new[new < 0.3] = 0, 0
    X, new = X.astype(np.float32), new.astype(np.float32)
    change = {
        "list": lambda X: X.tolist(), "frame": lambda X: pd.DataFrame(X, columns=["a", "b"]),
        "float32": lambda X: X, "csr": sparse.csr_array, "fortran": np.asfortranarray,
    }[form]  # fmt: skip
    model = made(Gaussian("learn"), None, trend="linear").fit(change(X), y)
    plain = made(Gaussian("learn"), None, trend="linear").fit(X.astype(float), y)
    for found, wanted in zip(
        model.predict(change(new), True, True),
        plain.predict(new.astype(float), True, True),
        strict=True,
    ):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 60])
def test_few_rows_and_one_column(n):
    X, y, _, new = data(60, dim=1)
    mean, std = made(Gaussian(1.0), None).fit(X[:n], y[:n]).predict(new, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_copies_of_rows_are_averaged():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((30, 2)), 40, axis=0)
    y = rng.standard_normal(1200)
    mean, std = made(Gaussian(1e4), 0.5, n_neighbors=40).fit(X, y).predict(X[::40], True)
    averages = y.reshape(30, 40).mean(axis=1)
    assert_allclose(mean - y.mean(), (averages - y.mean()) * 40 / 40.5, atol=1e-4)
    assert np.isfinite(std).all()


def test_rows_in_batches():
    X, y, _, new = data()
    whole = made().fit(X, y)
    parts = made().fit([(X[:90], y[:90]), (X[90:], y[90:])])
    assert_array_equal(parts.predict(new), whole.predict(new))
    found = [mean for mean, _ in whole.predict([(new[:4], None), (new[4:], None)], return_std=True)]
    assert_array_equal(np.concatenate(found), whole.predict(new))


def test_a_file_knows_the_tree_of_its_rows(tmp_path, monkeypatch):
    X, y, _, new = data(500)
    model = made().fit(X, y)
    model.save(tmp_path / "model.gzk")
    loaded = gzkcore.load(tmp_path / "model.gzk")
    with monkeypatch.context() as patched:
        patched.setattr(neighbours._neighbours, "tree_order", None)
        assert_array_equal(
            loaded.predict(new, return_std=True), model.predict(new, return_std=True)
        )
    loaded.forget([0]).save(tmp_path / "model.gzk")
    assert_array_equal(
        gzkcore.load(tmp_path / "model.gzk").predict(new), model.forget([0]).predict(new)
    )
    loaded._order = np.zeros(7, np.int32)
    loaded.__dict__.pop("_near")
    assert_array_equal(loaded.predict(new), model.predict(new))


def test_another_alpha_and_number_of_near_rows_are_those_of_a_fit():
    X, y, weight, new = data()
    assert_array_equal(
        made().fit(X, y, weight)._with(0.3, 7).predict(new),
        made(alpha=0.3, n_neighbors=7).fit(X, y, weight).predict(new),
    )


# ---- rows come and go


@pytest.mark.parametrize("weighted", ["no", "new", "all"])
def test_update_and_forget_are_a_fit_to_the_rows_that_are_there(weighted):
    X, y, weight, new = data(200, 2)
    weight = {"no": np.ones(200), "new": np.r_[np.ones(150), weight[150:]], "all": weight}[weighted]
    old = None if weighted != "all" else weight[:150]
    model = made(trend=None).fit(X[:150], y[:150], old)
    model.predict(new)
    model.update(X[150:], y[150:], None if weighted == "no" else weight[150:])
    check_same(model, made(trend=None).fit(X, y, weight), new)
    gone = np.arange(200) % 3 == 0
    check_same(model.forget(gone), made(trend=None).fit(X[~gone], y[~gone], weight[~gone]), new)
    left = model.X_fit_[[1, *range(3, len(model.X_fit_))]]
    assert_array_equal(model.forget([0, 2]).X_fit_, left)


def check_same(model, wanted, new):
    """Compare with another fit: the scale stays that of the first."""
    assert_array_equal(model.X_fit_, wanted.X_fit_)
    mean, std = model.predict(new, return_std=True)
    mean_of_all, std_of_all = wanted.predict(new, return_std=True)
    assert_allclose(mean, mean_of_all, rtol=1e-6)
    scales = np.sqrt(model._scale / wanted._scale)
    assert_allclose(std, std_of_all * scales, rtol=1e-6)


def test_the_trend_stays_with_new_rows():
    X, y, _, new = data()
    model = made(trend="linear").fit(X[:150], y[:150])
    of_rows, of_new = (model.intercept_ + rows @ model.trend_coef_ for rows in (X, new))
    model.update(X[150:], y[150:])
    left = made(trend=None).fit(X, y - of_rows)
    assert_allclose(model.predict(new), of_new + left.predict(new), rtol=1e-6)


# ---- a smooth part


@pytest.mark.parametrize("weighted", [False, True])
def test_near_rows_predict_what_a_smooth_part_leaves(weighted, monkeypatch, tmp_path):
    monkeypatch.setattr(near_kernel_ridge, "SMOOTH_ROWS", 120)
    X, y, weight, new = data(400, 2)
    weight = weight if weighted else None
    model = made(smooth=KernelRidge(Gaussian(4.0), 0.1)).fit(X, y, weight)
    assert model.X_fit_.shape == (280, 2)
    of_rows, of_new = (model.intercept_ + model.smooth_.predict(rows) for rows in (X, new))
    here = (X[:, None] == model.X_fit_).all(axis=2).any(axis=1)
    left = made(trend=None).fit(
        X[here], (y - of_rows)[here], None if weight is None else weight[here]
    )
    assert_allclose(model.predict(new), of_new + left.predict(new), rtol=1e-5)
    slope = model.predict(new, False, True)[1]
    for c, step in enumerate(1e-4 * np.eye(2)):
        expected = (model.predict(new + step) - model.predict(new - step)) / 2e-4
        assert_allclose(slope[:, :, c], expected, atol=0.02)  # of single precision
    gzkcore.save(model, tmp_path / "model.gzk")
    assert_array_equal(gzkcore.load(tmp_path / "model.gzk").predict(new), model.predict(new))
    with pytest.raises(
        ValueError, match="is fitted to 120 rows, and near rows are others, but X has 90"
    ):
        made(smooth=KernelRidge()).fit(X[:90], y[:90])


def test_another_fit_forgets_the_first():
    X, y, weight, new = data(n_targets=2)
    model = made(trend="linear").fit(X, y, weight)
    model.predict(new)
    model.set_params(trend=None).fit(X[:90], y[:90, 0])
    assert not hasattr(model, "trend_coef_")
    assert_array_equal(model.predict(new), made(trend=None).fit(X[:90], y[:90, 0]).predict(new))


def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch):
    X, y, _, new = data()
    model = made().fit(X, y)
    before = model.predict(new)

    def interrupted(*_):
        raise KeyboardInterrupt

    for owner, name, change in (
        (NearRows, "left_out", lambda: model.fit(X[:50], y[:50])),
        (NearKernelRidge, "_outdate", lambda: model.update(X, y)),
        (NearKernelRidge, "_outdate", lambda: model.forget([0])),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                change()
        assert model.X_fit_.shape == (200, 2)
        assert_array_equal(model.predict(new), before)


@pytest.mark.parametrize("trend", ["constant", "linear", [1]])
def test_files_and_pickles_say_the_same(trend, tmp_path):
    X, y, weight, new = data(n_targets=2)
    model = made(Matern(1.5, "learn"), None, trend=trend).fit(X, y, weight)
    gzkcore.save(model, tmp_path / "model.gzk")
    for other in (gzkcore.load(tmp_path / "model.gzk"), pickle.loads(pickle.dumps(model))):
        for found, wanted in zip(
            other.predict(new, True, True), model.predict(new, True, True), strict=True
        ):
            assert_array_equal(found, wanted)
        assert_array_equal(other.noise_variance_, model.noise_variance_)
        other.update(X[:5], y[:5])
    assert len(pickle.dumps(model)) < 1.5 * len(pickle.dumps(made().fit(X, y, weight)))


# ---- what is refused


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors=0 is too small; use an integer >= 1"),
        ({"n_neighbors": 2.5}, TypeError, "n_neighbors=2.5 is not an integer"),
        ({"alpha": -1}, ValueError, "alpha=-1 is not usable; use a finite number >= 0"),
        ({"alpha": [0.1]}, TypeError, r"alpha=\[0.1\] is not a number"),
        ({"trend": "square"}, ValueError, "trend='square' is unknown"),
        ({"trend": [2]}, ValueError, "trend"),
        ({"random_state": "x"}, TypeError, "random_state='x' cannot seed random draws"),
        ({"kernel": "round"}, ValueError, "kernel='round' is unknown"),
        ({"kernel": "precomputed"}, ValueError, "has no scaled columns, .*; use a Kernel with"),
        ({"kernel": lambda x, y: 1.0}, ValueError, "has no scaled columns, .*; use a Kernel with"),
        ({"kernel": SphereMatern()}, ValueError, "unit"),
    ],
)
def test_wrong_parameters(parameters, error, message):
    X, y, _, _ = data()
    with pytest.raises(error, match=message):
        made().set_params(**parameters).fit(X, y)


def test_wrong_rows():
    X, y, weight, new = data()
    hole = np.where(np.arange(200)[:, None] == 3, np.nan, X)
    with pytest.raises(ValueError, match=r"Input X contains NaN.* in row 3"):
        made().fit(hole, y)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        made().fit(X, hole[:, 0])
    with pytest.raises(ValueError, match="all sample weights are zero"):
        made().fit(X, y, 0 * weight)
    with pytest.raises(NotFittedError):
        made().predict(X)
    with pytest.raises(NotFittedError):
        made().update(X, y)
    model = made().fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.predict(hole)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.update(hole, y)
    with pytest.raises(ValueError, match="update is for arrays, but X comes in batches"):
        model.update([(X, y)], None)
    with pytest.raises(ValueError, match="return_gradient is for arrays"):
        model.predict([(new, None)], return_gradient=True)
    with pytest.raises(ValueError, match="y has shape"):
        model.update(X, np.c_[y, y])
    round_rows = sphere(50, 3)
    model = made(SphereMatern()).fit(round_rows, round_rows[:, 0])
    with pytest.raises(ValueError, match="unit"):
        model.update(2 * round_rows, round_rows[:, 0])


@pytest.mark.parametrize(("kernel", "message"), [
    (Laplacian(1.0), "no standard deviations of slopes"), (Matern(0.5), "no standard deviations of slopes"),
    (Polynomial(2), "no standard deviations of slopes"),
])  # fmt: skip
def test_rough_kernels_have_no_deviations_of_slopes(kernel, message):
    X, y, _, new = data()
    with pytest.raises(ValueError, match=message):
        made(kernel).fit(X, y).predict(new, True, True)


REPEATED = "a repeated row is one more row among the nearest"


@pytest.mark.usefixtures("_few_blocks")
@parametrize_with_checks(
    [NearKernelRidge(random_state=0)],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": REPEATED for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_where_no_row_tells_a_slope_the_deviation_is_infinite():
    X = np.column_stack([np.linspace(0, 6, 80), np.ones(80)])
    model = NearKernelRidge(Gaussian(0.5), 1e-3, trend="linear", random_state=0)
    mean, std = model.fit(X, np.sin(X[:, 0])).predict([[3.0, 1.0], [3.0, 7.0]], return_std=True)
    assert np.isfinite(mean).all()
    assert 0 < std[0] < 1
    assert np.isinf(std[1])


def test_one_row_tells_no_deviation():
    X, y, _, new = data(60, dim=1)
    with pytest.warns(UserWarning, match="fitted to one row"):
        mean, std = made(Gaussian(1.0), 0.1).fit(X[:1], y[:1]).predict(new, return_std=True)
    assert_allclose(mean, y[0])
    assert np.isinf(std).all()


def test_a_kernel_by_its_name_learns_its_lengths():
    X = np.random.default_rng(0).uniform(0, 10, (5000, 1))
    model = NearKernelRidge(random_state=0).fit(X, np.sin(20 * X[:, 0]))
    assert np.abs(model.predict(X[:100]) - np.sin(20 * X[:100, 0])).max() < 0.1


@pytest.mark.parametrize("smooth", ["KernelRidge", KernelRidge])
def test_a_smooth_part_is_a_regressor(smooth):
    X, y, _, _ = data(60)
    with pytest.raises(TypeError, match=r"smooth=.* is no regressor"):
        NearKernelRidge(smooth=smooth).fit(X, y)


def test_a_fit_takes_the_smooth_part_of_another_to_the_same_rows(monkeypatch):
    monkeypatch.setattr(near_kernel_ridge, "SMOOTH_ROWS", 120)
    X, y, weight, new = data(400, 2)
    alone, other, like = (made(smooth=KernelRidge(Gaussian(4.0), 0.1)) for _ in range(3))
    like._like = other.set_params(kernel=Matern(2.5)).fit(X, y, weight)
    assert_array_equal(
        like.fit(X, y, weight).predict(new), alone.fit(X, y, weight).predict(new), strict=True
    )
    assert like.smooth_ is other.smooth_


def test_a_trend_is_no_bool():
    X, y, _, _ = data(60)
    with pytest.raises(TypeError, match="trend=True is no trend"):
        NearKernelRidge(trend=True).fit(X, y)


def test_many_near_rows_do_not_take_long_for_the_scale(monkeypatch):
    monkeypatch.setattr(near_kernel_ridge, "SCALE_COST", 100**3 * 30)
    asked = []
    left_out = NearRows.left_out
    monkeypatch.setattr(
        NearRows, "left_out", lambda self, some: asked.append(len(some)) or left_out(self, some)
    )
    X, y, _, _ = data(200)
    made(Gaussian(1.0), 0.1, n_neighbors=100).fit(X, y)
    assert asked == [30]
