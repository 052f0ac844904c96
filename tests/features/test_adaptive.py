"""Adaptive sketches: draws have the laws that they claim, sums are unbiased, the guarantee holds."""

from collections import Counter

import numpy as np
import pytest
from moments import estimates
from points import ball, gaussian, sphere
from scipy import sparse, stats
from sklearn.base import clone
from tolerances import IDENTITY

from gzkcore import (
    AdaptiveSketchFeatures,
    DotProduct,
    ExponentialDot,
    Gaussian,
    Laplacian,
    MaclaurinFeatures,
    NystromFeatures,
    Polynomial,
    PolySketchFeatures,
    reference,
)
from gzkcore.features import adaptive as module
from gzkcore.features.adaptive import _Law
from gzkcore.features.nystrom import _Gram, _SparseGram, leverage_sample
from gzkcore.metrics import spectral_error

formulas = reference.adaptive
KERNELS = [
    Gaussian(0.4), Polynomial(3, gamma=0.5), Polynomial(2, coef0=0.0), ExponentialDot(0.5),
    DotProduct([0.0, 1.0, 0.0, 3.0]),
]  # fmt: skip
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def law_of(X, kernel, lam, seen=None):
    """The law of the monomials of all rows; sparse ones too."""
    radius = np.sqrt(np.square(np.asarray(X) * kernel.scale()).sum(axis=1).max())
    points = np.asarray(X) * kernel.scale() / radius
    energies = np.square(points).sum(axis=0)
    given = points if seen is None else seen(points)
    return _Law(kernel, kernel(X), given, np.ones(len(X)), energies, radius, lam, 10)


def key(row):
    return tuple(int(i) for i in row if i >= 0)


def clusters(seed=0):
    """Many points here, and few in each of five other places."""
    rng = np.random.default_rng(seed)
    sizes = [300, 60, 20, 8, 8, 8]
    return np.concatenate(
        [rng.standard_normal(4) + 0.4 * rng.standard_normal((m, 4)) for m in sizes]
    )


# ---- which monomials, and how likely


@pytest.mark.parametrize("seen", [None, sparse.csc_array], ids=["dense", "sparse"])
def test_probabilities_are_the_leverage_of_the_reference(seen):
    X, kernel, lam = gaussian(12, 3), Polynomial(3, gamma=0.7, coef0=0.5), 2.0
    law = law_of(X, kernel, lam, seen)
    coefficients = [0.5**3, 3 * 0.25 * 0.7, 3 * 0.5 * 0.7**2, 0.7**3]
    leverage = formulas.monomial_leverage(X.tolist(), coefficients, lam)
    total = sum(leverage.values())
    assert law.total == pytest.approx(total, rel=1e-10)
    K = kernel(X)
    assert total == pytest.approx(np.trace(K @ np.linalg.inv(K + lam * np.eye(12))), rel=1e-10)
    columns = law._all(100)
    assert {key(row) for row in columns} == set(leverage)
    # One draw in ten goes by sizes alone.
    adapted = np.array([leverage[key(row)] / total for row in columns])
    shares = np.append(law.shares, 1.0)[columns].prod(axis=1)
    plain = law.degrees[(columns >= 0).sum(axis=1)] * shares * np.exp(module._log_orders(columns))
    np.testing.assert_allclose(law.probabilities(columns), 0.9 * adapted + 0.1 * plain, rtol=1e-9)
    assert law.probabilities(columns).sum() == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("seen", [None, sparse.csc_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("how", ["_by_modes", "_by_rows", "_by_sizes"])
def test_draws_have_that_law(how, seen):
    X = gaussian(40, 3) * (gaussian(40, 3, seed=1) > 0.5)
    law = law_of(X, Polynomial(3), 5.0, seen)
    columns = law._all(100)
    drawn = module._sorted(getattr(law, how)(20_000, np.random.default_rng(0)))
    counts = Counter(map(key, drawn))
    shares = np.append(law.shares, 1.0)[columns].prod(axis=1)
    plain = law.degrees[(columns >= 0).sum(axis=1)] * shares * np.exp(module._log_orders(columns))
    adapted = (law.probabilities(columns) - 0.1 * plain) / 0.9
    expected = 20_000 * (plain if how == "_by_sizes" else adapted)
    found = np.array([counts[key(row)] for row in columns])
    assert found.sum() == 20_000
    rare = expected < 5
    if rare.any():
        found = np.append(found[~rare], found[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(found, expected).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    "draw", [formulas.draw_by_modes, pytest.param(formulas.draw_by_rows, marks=pytest.mark.weekly)]
)
def test_draws_of_the_reference_have_that_law(draw):
    X, coefficients = gaussian(6, 2).tolist(), [0.5, 1.0, 2.0]
    leverage = formulas.monomial_leverage(X, coefficients, 1.5)
    uniforms = iter(np.random.default_rng(0).random(1_000_000))
    drawn = Counter(tuple(sorted(draw(X, coefficients, 1.5, uniforms))) for _ in range(3000))
    assert set(drawn) <= set(leverage)
    expected = 3000 * np.array(list(leverage.values())) / sum(leverage.values())
    assert stats.chisquare([drawn[each] for each in leverage], expected).pvalue > 1e-4


def test_most_columns_of_sparse_rows_go_by_pairs():
    X = sparse.random_array((80, 300), density=0.02, random_state=0, format="csr").toarray()
    X[:, 7] = 1.0
    law, plain = (law_of(X, Polynomial(3), 1.0, seen) for seen in (sparse.csc_array, None))
    assert law.dense_columns.tolist() == [7]
    assert law.pairs[0].size > 0
    values = np.column_stack([X[:, 7], X[:, 7] ** 2])
    form = law.whitened * law.gram
    np.testing.assert_allclose(law._next(values, form), plain._next(values, form), atol=1e-12)


@pytest.mark.weekly
def test_listed_and_drawn_are_of_one_law(monkeypatch):
    """How often each monomial is kept, both ways, by a test of homogeneity."""
    law = law_of(gaussian(20, 2), Polynomial(3), 3.0)
    table = []
    for listed in (1 << 16, 0):
        monkeypatch.setattr(module, "_LISTED", listed)
        rng = np.random.default_rng(1)
        counts = Counter(key(row) for _ in range(700) for row in law.choose(4, rng)[0])
        table.append([counts[key(row)] for row in law._all(100)])
    assert stats.chi2_contingency(np.array(table) + 1).pvalue > 1e-4


def test_weights_are_those_of_the_reference():
    law = law_of(gaussian(20, 2), Polynomial(3), 3.0)
    columns, probabilities = law.choose(4, np.random.default_rng(5))
    everything = module._ordered(law._all(100))[0]
    waits = np.random.default_rng(5).standard_exponential(len(everything))
    chosen = formulas.choose_first(law.probabilities(everything).tolist(), waits.tolist(), 4)
    assert {key(everything[i]) for i in chosen} == {key(row) for row in columns}
    weight = {key(everything[i]): each for i, each in chosen.items()}
    np.testing.assert_allclose(1 / probabilities, [weight[key(row)] for row in columns], rtol=1e-12)


# ---- features


@every_kernel
def test_features_are_the_monomials(kernel):
    X, new = gaussian(60, 4), gaussian(20, 4, seed=1)
    features = AdaptiveSketchFeatures(kernel, 30, random_state=0).fit(X)
    center = 0.0 if features.center_ is None else features.center_
    points = (new - center) * kernel.scale()
    envelope = np.exp(kernel.log_envelope(np.linalg.norm(points, axis=1)))
    expected = np.zeros((20, 30))
    expected[:, : features.n_effective_] = formulas.monomial_features(
        (points / features.radius_).tolist(), features.columns_.tolist(), features.weights_.tolist()
    )
    value = features.transform(new)
    np.testing.assert_allclose(value, expected * envelope[:, None], rtol=1e-12, atol=1e-14)
    assert len({key(row) for row in features.columns_}) == features.n_effective_


@pytest.mark.parametrize("kernel", [Polynomial(3), DotProduct([1.0, 0.0, 2.0])], ids=repr)
def test_exact_where_all_monomials_fit(kernel):
    X = gaussian(50, 3)
    features = AdaptiveSketchFeatures(kernel, 40, random_state=0).fit(X)
    Z, K = features.transform(X), features.kernel_(X)
    assert features.n_effective_ == {Polynomial: 20, DotProduct: 7}[type(kernel)]
    assert not Z[:, features.n_effective_ :].any()
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=IDENTITY["inverse root"]() * K.max())


@pytest.mark.slow
@pytest.mark.parametrize("listed", [1 << 16, pytest.param(0, marks=pytest.mark.weekly)])
def test_weights_are_unbiased(listed, monkeypatch):
    """Each monomial, with its weight or not at all, has the mean 1."""
    monkeypatch.setattr(module, "_LISTED", listed)
    law, rng = law_of(gaussian(20, 2), Polynomial(3), 3.0), np.random.default_rng(0)
    everything = [key(row) for row in law._all(100)]
    values = np.zeros((1000, len(everything)))
    for row in values:
        columns, probabilities = law.choose(5, rng)
        for each, probability in zip(columns, probabilities, strict=True):
            row[everything.index(key(each))] = 1 / probability
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - 1) <= 4 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize(("listed", "n_rows"), [(1 << 16, 100), (0, 20)])
@pytest.mark.parametrize("kernel", [Gaussian(0.1), Polynomial(3, gamma=0.3)], ids=repr)
def test_unbiased(kernel, listed, n_rows, monkeypatch):
    """Mean over 200 random states within 4 standard errors, on 50 pairs of rows."""
    monkeypatch.setattr(module, "_LISTED", listed)
    X = sphere(100, 4, radius=1.5)
    features = AdaptiveSketchFeatures(kernel, 25, n_rows=n_rows)
    values = estimates(features, X[:50], X[50:], 200)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(200)
    exact = np.diag(kernel(X[:50], X[50:]))
    missing = 1e-3 if isinstance(kernel, Gaussian) else 0.0  # degrees that are left out
    assert (np.abs(mean - exact) <= 4 * error + missing).all()


# ---- the guarantee


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [Gaussian(0.4), pytest.param(Polynomial(4), marks=pytest.mark.weekly)], ids=repr
)
def test_the_guarantee(kernel):
    """(epsilon, lambda) with F = 2 s_lambda log s_lambda / epsilon^2 columns, in 9 of 10 states."""
    X = sphere(300, 8) * np.linspace(1.5, 0.3, 8)
    K = kernel(X)
    lam = np.trace(K) / 40
    s = np.trace(K @ np.linalg.inv(K + lam * np.eye(len(K))))
    for epsilon in (0.5, 0.7):
        width = int(2 * s * np.log(s) / epsilon**2)
        errors = [
            spectral_error(
                K,
                AdaptiveSketchFeatures(kernel, width, lam=lam, random_state=seed).fit_transform(X),
                lam,
            )
            for seed in range(10)
        ]
        assert np.sum(np.array(errors) <= epsilon) >= 9, errors


def test_leverage_from_some_rows():
    """Of monomials, from 150 of 1,000 rows: nearly all within a factor of two of that from all."""
    X, kernel = np.concatenate([clusters(seed) for seed in range(3)])[:1000], Polynomial(3)
    lam = np.trace(kernel(X)) / 50
    full = law_of(X, kernel, lam)
    columns = full._all(1000)
    exact = full.probabilities(columns) * full.total
    for seed in range(5):
        rows, weights = leverage_sample(kernel, X, 150, np.random.default_rng(seed))
        radius = np.sqrt(np.square(X).sum(axis=1).max())
        some = _Law(
            kernel, kernel(X[rows]), X[rows] / radius, weights, np.square(X).sum(axis=0), radius,
            lam, 10,
        )  # fmt: skip
        ratio = some.probabilities(columns) * some.total / exact
        assert np.mean((ratio > 0.5) & (ratio < 2)) > 0.9
        assert some.total == pytest.approx(full.total, rel=0.3)


@pytest.mark.weekly
def test_better_than_sketches_that_see_no_data():
    X, kernel, seeds = clusters(), Gaussian(0.5), range(4)
    K = kernel(X)
    lam = 3.0

    def errors(make):
        return np.array([spectral_error(K, make(seed).fit_transform(X), lam) for seed in seeds])

    ours = errors(lambda seed: AdaptiveSketchFeatures(kernel, 128, random_state=seed))
    sketch = errors(lambda seed: PolySketchFeatures(kernel, 128, random_state=seed))
    uniform = errors(
        lambda seed: NystromFeatures(kernel, 128, landmarks="uniform", random_state=seed)
    )
    assert ours.mean() < 0.5 * sketch.mean()
    assert np.isfinite(uniform).all()


@pytest.mark.slow
def test_weights_of_rows_stand_for_all():
    """The weighted sum over rows sampled by leverage is unbiased."""
    X, kernel = clusters(), Gaussian(0.5)
    f = np.sin(X[:, 0]) + 1
    sums = []
    for seed in range(200):
        rows, weights = leverage_sample(kernel, X, 40, np.random.default_rng(seed))
        assert len(set(rows)) == 40
        sums.append(weights @ f[rows])
    assert abs(np.mean(sums) - f.sum()) < 4 * np.std(sums) / np.sqrt(200)


@pytest.mark.parametrize("kernel", [Gaussian(0.4), Polynomial(3), ExponentialDot(0.5)], ids=repr)
def test_leverage_of_sparse_rows_is_that_of_dense(kernel):
    X = gaussian(200, 6) * (gaussian(200, 6, seed=1) > 0.5)
    gram, plain = _SparseGram(kernel, sparse.csr_array(X)), _Gram(kernel, X)
    rows, columns = np.arange(3, 90, 2), np.arange(40)
    np.testing.assert_allclose(gram.diagonal, plain.diagonal, rtol=1e-12)
    np.testing.assert_allclose(gram.block(rows, columns), plain.block(rows, columns), rtol=1e-9)


# ---- promises of the features


def test_any_width():
    X = ball(60, 6, 1.5)
    for width in (1, 2, 37, 300):
        Z = AdaptiveSketchFeatures(Gaussian(0.5), width, random_state=0).fit_transform(X)
        assert Z.shape == (60, width)
        assert np.isfinite(Z).all()


@pytest.mark.slow
def test_sparse_rows_of_many_columns():
    X = sparse.random_array((300, 5000), density=0.004, random_state=0, format="csr")
    X.data += 0.5
    before = X.copy()
    features = AdaptiveSketchFeatures(Polynomial(2, gamma=0.1), 256, random_state=0).fit(X)
    assert features.center_ is None
    Z = features.transform(X)
    np.testing.assert_array_equal(features.transform(X.toarray()).round(10), Z.round(10))
    np.testing.assert_array_equal(X.data, before.data)
    again = clone(features).fit(X)
    np.testing.assert_array_equal(again.columns_, features.columns_)
    np.testing.assert_array_equal(again.weights_, features.weights_)


def test_equal_rows_and_zeros():
    for X in (np.zeros((20, 3)), np.repeat(gaussian(1, 3), 20, axis=0)):
        features = AdaptiveSketchFeatures(Polynomial(2, gamma=1.0), 10, random_state=0).fit(X)
        Z = features.transform(X)
        np.testing.assert_allclose(Z @ Z.T, features.kernel_(X), rtol=1e-9)


@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"kernel": Laplacian(1.0)}, ValueError, "is not a power series of the dot product; use"),
    ({"kernel": "cubic"}, ValueError, "kernel='cubic' is unknown"),
    ({"kernel": Gaussian(1e4)}, ValueError, "lengthscales from the centre, and the degrees needed"),
    ({"lam": 0.0}, ValueError, "lam=0.0 is not usable; use a finite number > 0"),
    ({"lam": "auto"}, TypeError, "lam='auto' is not a number"),
    ({"n_rows": 0}, ValueError, "n_rows=0 is too small"),
    ({"n_components": 0}, ValueError, "n_components=0 is too small"),
])  # fmt: skip
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        AdaptiveSketchFeatures(**parameters).fit(gaussian(9, 2))


def test_kernels_that_are_no_numbers():
    with pytest.raises(ValueError, match="is 0 on these rows; scale"):
        AdaptiveSketchFeatures(Polynomial(2, coef0=0.0)).fit(np.zeros((9, 2)))
    with pytest.raises(ValueError, match="overflows"), np.errstate(all="ignore"):
        AdaptiveSketchFeatures(ExponentialDot(1.0)).fit(40 * gaussian(9, 2))


@pytest.mark.parametrize(("X", "columns", "weights", "message"), [
    ([[1.0]], [[1]], [1.0], "columns go up to 1, but X has 1"),
    ([1.0], [[0]], [1.0], r"X has shape \(1,\)"),
    ([[1.0]], [[0]], [1.0, 2.0], r"weights \(2,\)"),
])  # fmt: skip
def test_bad_monomials(X, columns, weights, message):
    with pytest.raises(ValueError, match=message):
        module.monomial_features(X, columns, weights)


def test_exact_but_for_the_degrees_left_out():
    X, lam = gaussian(300, 1), 1.0
    features = AdaptiveSketchFeatures(Gaussian(0.5), 300, lam=lam, random_state=0).fit(X)
    Z, K = features.transform(X), features.kernel_(X)
    assert features.n_effective_ < 30
    assert np.abs(Z @ Z.T - K).max() > 1e-6  # not exact
    assert np.trace(K - Z @ Z.T) < 2e-3 * lam


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64])
def test_columns_of_monomials_are_integers_of_any_type(dtype):
    found = module.monomial_features([[2.0, 3.0]], np.array([[0, 1]], dtype), [1.0])
    assert found.tolist() == [[6.0]]


def test_columns_of_monomials_are_integers():
    with pytest.raises(TypeError, match=r"columns=\[\[0\.7\]\] must be integers"):
        module.monomial_features([[1.0]], [[0.7]], [1.0])


@pytest.mark.parametrize("radius", [3.0, 12.0, 20.0])
@every_type
def test_features_of_far_rows_are_right(radius, dtype):
    X = (radius * sphere(100, 3)).astype(dtype)
    features = AdaptiveSketchFeatures(Gaussian(0.5), 200, random_state=0, n_rows=60)
    Z = features.fit_transform(X)
    exact = features.transform(X.astype(float))
    assert np.abs(exact).max() > 1e-3
    tolerance = IDENTITY["closed form"](dtype) * np.abs(exact).max()
    np.testing.assert_allclose(Z, exact, rtol=0, atol=tolerance)
    for factor in (0.0, 100.0, 1e15):
        assert np.isfinite(features.transform(X * dtype(factor))).all()


@every_type
def test_rows_too_far_for_monomials_are_refused(dtype):
    X = (24.0 * sphere(100, 3)).astype(dtype)
    with pytest.raises(ValueError, match=r"a row is 25\.6 lengthscales .* a gamma below 0\.5"):
        AdaptiveSketchFeatures(Gaussian(0.5), 200, random_state=0, n_rows=60).fit(X)


@pytest.mark.parametrize("features", [
    AdaptiveSketchFeatures(n_components=8, n_rows=50, random_state=0),
    MaclaurinFeatures(n_components=8, random_state=0),
], ids=["adaptive", "maclaurin"])  # fmt: skip
def test_the_centre_of_single_precision_is_summed_in_double(features):
    X = (gaussian(5000, 2) + 1000).astype(np.float32)
    center = clone(features).fit(X).center_
    np.testing.assert_array_equal(center, X.sum(axis=0, dtype=np.float64) / 5000)


def test_degrees_without_a_monomial_are_no_error():
    X = gaussian(20, 3)
    features = AdaptiveSketchFeatures(n_components=32, n_rows=1, random_state=0).fit(X)
    degrees = np.count_nonzero(features.columns_ >= 0, axis=1)
    assert degrees.min() > 0
    assert np.isfinite(features.transform(X)).all()


@pytest.mark.parametrize("none", [-1, -2, -(2**31) - 1, -(2**32)])
def test_any_number_below_zero_is_no_factor(none):
    found = module.monomial_features([[2.0, 3.0]], [[none, 1], [none, none]], [1.0, 1.0])
    np.testing.assert_array_equal(found, [[3.0, 1.0]])


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("kernel", [Gaussian(0.2), Polynomial(2)])
def test_sparse_rows_are_fitted_as_dense_ones(kernel, share):
    X = gaussian(60, 12) * (np.random.default_rng(0).random((60, 12)) < share)
    features = AdaptiveSketchFeatures(kernel, 40, n_rows=30, random_state=0)
    Z = features.fit_transform(X)
    assert (features.center_ is None) == (share == 0.1 or not kernel.shift_invariant)
    same = clone(features).fit_transform(sparse.csr_array(X))
    np.testing.assert_allclose(same, Z, rtol=0, atol=IDENTITY["exact kernel"](length=1000))
