"""Measures of an approximation: formula against fast path, what they promise, subsamples."""

from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from points import ball, gaussian
from scipy import sparse
from tolerances import IDENTITY

from gzkcore import Gaussian, GegenbauerFeatures, metrics, reference

both = pytest.mark.parametrize("impl", [reference.metrics, metrics], ids=["reference", "gzkcore"])
exact = IDENTITY["closed form"](length=10**4)


def approximation(n=12, width=9, seed=0):
    """Return a kernel matrix, and features that are somewhat off."""
    X = gaussian(n, 3, 0.7, seed)
    K = Gaussian(0.5)(X)
    energies, axes = np.linalg.eigh(K)
    Z = (axes * np.sqrt(energies))[:, -width:]
    return X, K, Z * (1 + 0.2 * np.random.default_rng(seed).standard_normal(width))


def projection(axes):
    q, _ = np.linalg.qr(axes)
    return q @ q.T


def lowest(matrix):
    return np.linalg.eigvalsh(matrix)[0]


# ---- definitions


@both
@pytest.mark.parametrize("lam", [0.01, 0.3, 5.0])
def test_eq_1_holds_with_the_error_and_with_no_less(impl, lam):
    _, K, Z = approximation()
    eps, eye = impl.spectral_error(K, Z, lam), np.eye(len(K))

    def slack(eps):
        low = Z @ Z.T + lam * eye - (K + lam * eye) / (1 + eps)
        high = (K + lam * eye) - (1 - eps) * (Z @ Z.T + lam * eye)
        return min(lowest(low), lowest(high))

    assert slack(eps * (1 + 1e-9)) >= -exact
    assert slack(eps * 0.999) < 0


@both
def test_what_appendix_f_takes_for_eq_1(impl):
    """G8: the whitened norm is below epsilon where something is lost, above where too much is kept."""
    K = np.eye(2)
    lost, kept = np.diag([1.0, 0.5]), np.diag([1.0, 3.0])
    assert impl.whitened_error(K, lost, 1.0) == pytest.approx(0.375)
    assert impl.spectral_error(K, lost, 1.0) == pytest.approx(1 / 0.625 - 1)
    assert impl.whitened_error(K, kept, 1.0) == pytest.approx(4.0)
    assert impl.spectral_error(K, kept, 1.0) == pytest.approx(0.8)


@both
def test_a_whitened_error_of_eps_over_one_plus_eps_is_enough(impl):
    for seed in range(5):
        _, K, Z = approximation(seed=seed)
        e = impl.whitened_error(K, Z, 0.5)
        assert impl.spectral_error(K, Z, 0.5) <= e / (1 - e) + exact


@both
@pytest.mark.parametrize("rank", [0, 1, 4, 8])
def test_eq_21_holds_for_every_projection_and_is_met_by_one(impl, rank):
    _, K, Z = approximation()
    eps = impl.projection_cost_error(K, Z, rank)
    rng, G, n = np.random.default_rng(1), Z @ Z.T, len(K)
    worst = 0.0
    candidates = [rng.standard_normal((n, rank)) for _ in range(200)]
    for rho in np.linspace(0, 3, 400):  # among these are the extreme ones
        axes = np.linalg.eigh(G - rho * K)[1]
        candidates += [axes[:, :rank], axes[:, n - rank :]]
    for axes in candidates:
        Y = np.eye(n) - projection(axes)
        cost = np.trace(Y @ K @ Y)
        worst = max(worst, abs(np.trace(Y @ G @ Y) - cost) / cost)
    assert worst <= eps + exact
    assert worst >= 0.99 * eps


@both
def test_clustering_cost_is_the_sum_of_squared_distances(impl):
    """With the linear kernel the space of the kernel is that of the points (A.2)."""
    X = gaussian(15, 4)
    labels = np.random.default_rng(0).integers(0, 3, 15)
    expected = sum(
        np.square(X[labels == c] - X[labels == c].mean(axis=0)).sum() for c in np.unique(labels)
    )
    assert impl.clustering_cost(X @ X.T, labels) == pytest.approx(expected, rel=exact)


def test_the_indicator_as_printed_is_no_isometry():
    """G17: with 1/|C_i| C^T C is diag(1/|C_i|), and the cost is another one."""
    K, labels = np.eye(4), np.array([0, 0, 0, 1])
    C = np.array([[(label == c) / np.sum(labels == c) for c in (0, 1)] for label in labels])
    np.testing.assert_allclose(C.T @ C, np.diag([1 / 3, 1]))
    printed = np.trace(K - C @ C.T @ K @ C @ C.T)
    assert metrics.clustering_cost(K, labels) == pytest.approx(2.0)
    assert printed == pytest.approx(4 - 1 - 1 / 9)


def test_the_objective_in_feature_space_rewards_what_is_lost():
    """G22: features that are almost 0 have the best objective of all, and a bad clustering."""
    X = np.array([[0.0], [0.1], [3.0], [3.1]])
    K, wrong = X @ X.T, [0, 1, 0, 1]
    shrunk = 0.1 * X
    assert metrics.clustering_cost(shrunk @ shrunk.T, wrong) < 0.1
    assert metrics.clustering_cost(K, wrong) > 100 * metrics.clustering_cost(K, [0, 0, 1, 1])


@both
def test_means_are_over_pairs_of_different_points(impl):
    """[B] Eq 8 and 9 by their sums."""
    X, K, Z = approximation()
    pairs = list(combinations(range(len(K)), 2))
    kernel = np.mean([abs(Z[i] @ Z[j] - K[i, j]) for i, j in pairs])
    assert impl.mean_kernel_error(K, Z) == pytest.approx(kernel, rel=exact)
    distance = np.mean(
        [abs(np.sum((X[i] - X[j]) ** 2) - np.sum((Z[i] - Z[j]) ** 2)) for i, j in pairs]
    )
    assert impl.mean_distance_error(X, Z) == pytest.approx(distance, rel=exact)
    frobenius = np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K)
    assert impl.relative_frobenius_error(K, Z) == pytest.approx(frobenius, rel=exact)


@both
def test_an_exact_approximation_has_no_error(impl):
    _, K, _ = approximation()
    energies, axes = np.linalg.eigh(K)
    Z = axes * np.sqrt(energies)
    assert impl.spectral_error(K, Z, 0.1) <= exact
    assert impl.whitened_error(K, Z, 0.1) <= exact
    assert impl.relative_frobenius_error(K, Z) <= exact
    assert impl.mean_kernel_error(K, Z) <= exact
    assert impl.projection_cost_error(K, Z, 2) <= exact


@pytest.mark.parametrize("metric", [
    partial(metrics.spectral_error, lam=1.0), partial(metrics.whitened_error, lam=1.0),
    partial(metrics.projection_cost_error, rank=2), metrics.relative_frobenius_error,
    metrics.mean_kernel_error, metrics.mean_distance_error,
])  # fmt: skip
def test_numbers_beyond_floats_are_refused(metric):
    with pytest.raises(ValueError, match="_error: a number is beyond the range of floats; use"):
        metric(np.eye(4), 1e200 * np.eye(4))


# ---- agnosticism


@pytest.mark.parametrize("change", [
    lambda a: a.tolist(),
    np.asfortranarray,
    lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),  # read-only
], ids=["list", "fortran", "strided", "read-only"])  # fmt: skip
def test_layout_does_not_matter(change):
    X, K, Z = approximation()
    for metric in (partial(metrics.spectral_error, lam=0.1), metrics.relative_frobenius_error,
                   metrics.mean_kernel_error, partial(metrics.projection_cost_error, rank=2)):  # fmt: skip
        assert metric(change(K), change(Z)) == pytest.approx(metric(K, Z), rel=exact)
    assert metrics.mean_distance_error(change(X), change(Z)) == pytest.approx(
        metrics.mean_distance_error(X, Z), rel=exact
    )


def test_single_precision_is_measured_in_double():
    _, K, Z = approximation()
    Z = Z.astype(np.float32)
    assert metrics.spectral_error(K, Z, 0.1) == metrics.spectral_error(K, Z.astype(float), 0.1)


def test_many_tiles_are_one(monkeypatch):
    X, K, Z = approximation(n=40, width=20)
    whole = [metrics.mean_kernel_error(K, Z), metrics.mean_distance_error(X, Z),
             metrics.relative_frobenius_error(K, Z)]  # fmt: skip
    monkeypatch.setattr(metrics, "_TILE", 7 * 40)
    tiled = [metrics.mean_kernel_error(K, Z), metrics.mean_distance_error(X, Z),
             metrics.relative_frobenius_error(K, Z)]  # fmt: skip
    assert tiled == pytest.approx(whole, rel=exact)


def test_a_subsample_is_never_worse_at_the_same_lam():
    _, K, Z = approximation(n=30, width=15)
    rows = np.arange(0, 30, 3)
    part = metrics.spectral_error(K[np.ix_(rows, rows)], Z[rows], 0.1)
    assert part <= metrics.spectral_error(K, Z, 0.1) + exact


# ---- subsamples


def test_the_interval_holds_the_mean_over_all_pairs():
    """95 intervals of 100 should; 84 or fewer happen once in 10^5."""
    X = ball(600, 3, 2.0)
    features = GegenbauerFeatures(Gaussian(0.5), 24, random_state=0).fit(X)
    kernel, Z = features.kernel_, features.transform(X)
    truth = metrics.mean_kernel_error(kernel(X), Z)
    held = 0
    for seed in range(100):
        found = metrics.estimate(
            metrics.mean_kernel_error, features, kernel, X, n_samples=40, n_repeats=6, rng=seed
        )
        assert found.low <= found.value <= found.high
        held += found.low <= truth <= found.high
    assert held > 84


def test_few_points_are_all_measured():
    X = ball(50, 3)
    features = GegenbauerFeatures(Gaussian(0.5), 24, random_state=0).fit(X)
    metric = partial(metrics.spectral_error, lam=0.1)
    found = metrics.estimate(metric, features, features.kernel_, X)
    value = metric(features.kernel_(X), features.transform(X))
    assert found == (value, value, value)


def test_estimate_takes_functions_sparse_rows_and_no_kernel():
    X = gaussian(300, 5)
    half = metrics.estimate(
        metrics.mean_distance_error, lambda rows: rows[:, :3], None, X, n_samples=60, rng=1
    )
    truth = metrics.mean_distance_error(X, X[:, :3])
    assert half.low - 0.2 * truth <= truth <= half.high + 0.2 * truth
    again = metrics.estimate(
        metrics.mean_distance_error,
        lambda rows: rows.toarray()[:, :3],
        None,
        sparse.csr_array(X),
        n_samples=60,
        rng=1,
    )
    assert again == pytest.approx(half, rel=exact)


def test_features_fitted_to_a_frame_are_given_frames():
    X = gaussian(60, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    found = []
    for fitted, rows in ((X, X), (frame, frame), (X, frame)):  # a warning is an error
        features = GegenbauerFeatures(Gaussian(0.5), 24, random_state=0).fit(fitted)
        measure = partial(
            metrics.estimate, metrics.mean_kernel_error, features, features.kernel_, rows, rng=0
        )
        found += [measure(n_samples=20), measure(n_samples=60)]
    np.testing.assert_allclose(found, found[:2] * 3, rtol=exact)


def test_labels_of_any_kind_are_clusters():
    K = gaussian(6, 6) @ gaussian(6, 6).T
    expected = metrics.clustering_cost(K, [0, 1, 0, 1, 2, 2])
    labels = np.array(["a", None, "a", None, 3, 3], dtype=object)
    assert metrics.clustering_cost(K, labels) == expected


def test_rows_to_measure_on_may_be_sparse_of_any_layout():
    X = gaussian(60, 3)
    found = [
        metrics.estimate(
            metrics.mean_kernel_error,
            lambda X: X[:, :1],
            lambda X: X @ X.T,
            rows,
            n_samples=9,
            rng=0,
        )
        for rows in (X, sparse.coo_matrix(X))
    ]
    assert found[0] == pytest.approx(found[1])


# ---- what is refused


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: metrics.spectral_error(np.ones((2, 3)), np.ones((2, 1)), 1), ValueError, "K has shape"),
        (lambda: metrics.spectral_error(np.eye(2), np.ones((3, 1)), 1), ValueError, "Z has 3"),
        (lambda: metrics.spectral_error(np.eye(2), [[1], [np.nan]], 1), ValueError, "Input Z contains"),
        (lambda: metrics.spectral_error(np.eye(2), np.ones((2, 1)), 0), ValueError, "lam=0"),
        (lambda: metrics.spectral_error(-np.eye(2), np.ones((2, 1)), 0.5), ValueError, "positive definite"),
        (lambda: metrics.spectral_error([["a"]], [[1]], 1), TypeError, "K is not numeric"),
        (lambda: metrics.spectral_error([[1j]], [[1]], 1), TypeError, "K is not numeric .it is complex"),
        (lambda: metrics.relative_frobenius_error(np.zeros((2, 2)), np.ones((2, 1))), ValueError, "K is 0"),
        (lambda: metrics.mean_kernel_error([[1]], [[1]]), ValueError, "no pairs"),
        (lambda: metrics.mean_distance_error(np.eye(2), np.eye(3)), ValueError, "V has 3"),
        (lambda: metrics.projection_cost_error(np.eye(2), np.eye(2), 2), ValueError, "rank=2 is too large for 2 points"),
        (lambda: metrics.projection_cost_error(np.ones((3, 3)), np.eye(3), 1), ValueError, "rank of K"),
        (lambda: metrics.clustering_cost(np.eye(2), [0]), ValueError, "labels has shape"),
        (lambda: metrics.clustering_cost(np.eye(2), [0.0, np.nan]), ValueError, r"labels\[1\] is NaN"),
        (lambda: metrics.clustering_cost(np.eye(4), pd.array(["a", pd.NA, "b", "a"])), ValueError, r"labels\[1\] is <NA>; give every point a label"),
        (lambda: metrics.clustering_cost(np.eye(2), np.array(["2020-01-01", "NaT"], "M8[D]")), ValueError, r"labels\[1\] is NaT; give"),
        (lambda: metrics.clustering_cost(np.eye(2), np.array([{1}, {2}])), TypeError, r"labels\[0\]=.1. is a set; use text or numbers"),
        (lambda: metrics.clustering_cost(np.eye(2), [[1], [1, 2]]), ValueError, "labels has parts of different lengths"),
        (lambda: metrics.spectral_error(np.eye(2), np.eye(2), 10**400), ValueError, "lam is beyond the largest float, 1.8e.308; use a finite number > 0"),
        (lambda: metrics.mean_kernel_error([[10**400] * 2] * 2, np.eye(2)), TypeError, "K is not numeric .int too large to convert to float.; pass"),
        (lambda: metrics.spectral_error([[1, 0.5], [0, 1]], np.eye(2), 1), ValueError, r"must be symmetric.*K\[0, 1\]=0.5 and K\[1, 0\]=0 .*pass the kernel matrix"),
        (lambda: metrics.projection_cost_error([[1, 0.5], [0, 1]], np.eye(2), 1), ValueError, "must be symmetric"),
        (lambda: metrics.estimate(metrics.mean_kernel_error, abs, abs, np.eye(3), confidence="95%"), TypeError, "confidence='95%'"),
        (lambda: metrics.estimate(metrics.mean_kernel_error, abs, abs, np.eye(3), n_samples=1), ValueError, "n_samples=1"),
        (lambda: metrics.estimate(metrics.mean_kernel_error, abs, abs, np.eye(3), confidence=2), ValueError, "confidence=2"),
    ],
)  # fmt: skip
def test_errors_name_what_is_wrong(call, error, match):
    with pytest.raises(error, match=match):
        call()
