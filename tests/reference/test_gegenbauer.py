"""Definitions of the features and operators: expectations by quadrature, so without noise."""

from math import exp, sqrt

import numpy as np
import pytest

from gzkcore import reference

gegenbauer, series, special = reference.gegenbauer, reference.series, reference.special
GAUSSIAN = reference.kernels.Gaussian()
EXPONENTIAL_DOT = reference.kernels.ExponentialDot()


def points(seed, n, dim):
    return 0.7 * np.random.default_rng(seed).standard_normal((n, dim))


def kernel_matrix(X, kernel, degree, order):
    return np.array([[gegenbauer.gzk_kernel(x, y, kernel, degree, order) for y in X] for x in X])


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_lemma_1(sphere_quadrature, dim):
    """alpha E_w P^l(<x, w>) P^l(<y, w>) = P^l(<x, y>), and 0 across degrees."""
    nodes, weights = sphere_quadrature(dim, 8)
    x, y = reference.directions.iid_directions(points(1, 2, dim))
    for degree in range(5):
        for other in range(5):
            P_x = special.gegenbauer(degree, dim, nodes @ x)
            P_y = special.gegenbauer(other, dim, nodes @ y)
            left = special.alpha(degree, dim) * np.sum(weights * P_x * P_y)
            right = special.gegenbauer(degree, dim, float(np.dot(x, y)))
            assert left == pytest.approx(right if degree == other else 0, abs=1e-13)


def test_gegenbauer_features_is_the_sum():
    X = reference.directions.iid_directions(points(2, 3, 4))
    W = reference.directions.iid_directions(points(3, 2, 4))
    radial = np.random.default_rng(4).standard_normal((3, 5))
    Z = gegenbauer.gegenbauer_features(X, W, radial)
    assert np.shape(Z) == (3, 2)
    for i in range(3):
        for j in range(2):
            P = [special.gegenbauer(ell, 4, float(np.dot(X[i], W[j]))) for ell in range(5)]
            assert Z[i][j] == pytest.approx(radial[i] @ P, rel=1e-13)
    shared = gegenbauer.gegenbauer_features(X, W, radial[:1])
    assert shared == gegenbauer.gegenbauer_features(X, W, radial[[0, 0, 0]])


def test_gegenbauer_features_at_zero_outside_and_in_one_dimension():
    """A zero row is at right angles to all; cosines beyond 1 by rounding count as 1; d = 1."""
    assert gegenbauer.gegenbauer_features([[0, 0, 0]], [[0, 0, 1]], [[1, 1, 1]]) == [[0.5]]
    nearly = 1 + 1e-9
    assert gegenbauer.gegenbauer_features([[0, nearly]], [[0, 1.0]], [[0] * 50 + [1]]) == [[1.0]]
    assert gegenbauer.gegenbauer_features([[-1.0]], [[1.0]], [[5, 3, 0]]) == [[2.0]]


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_lemma_2(sphere_quadrature, dim):
    """E_w phi_x(w) phi_y(w) = kappa(<x, y>), Eq 10, for exp(t) cut at degree 5."""
    nodes, weights = sphere_quadrature(dim, 10)
    c = series.gegenbauer_series(None, dim, 5, derivatives=[1.0] * 40)
    x, y = reference.directions.iid_directions(points(5, 2, dim))
    phi_x = [gegenbauer.zonal_feature(x, w, c) for w in nodes]
    phi_y = [gegenbauer.zonal_feature(y, w, c) for w in nodes]
    expected = series.zonal_sum(c, dim, float(np.dot(x, y)))
    assert np.sum(weights * phi_x * phi_y) == pytest.approx(expected, rel=1e-12)


def test_zonal_feature_refuses_negative_coefficients():
    """Lemma 2 says analytic; t^2 - 1/2 is, and has no feature in three dimensions."""
    c = series.gegenbauer_series(None, 3, 2, derivatives=[-0.5, 0.0, 2.0])
    with pytest.raises(ValueError, match=r"coefficients\[0\]=-0\.1666.*not positive definite"):
        gegenbauer.zonal_feature([0, 0, 1], [0, 1, 0], c)


def test_gegenbauer_features_hold_zonal_features():
    """Eq 9 is gegenbauer_features with sqrt(c_l alpha_l) as weights."""
    c = series.gegenbauer_series(None, 3, 6, derivatives=[1.0] * 40)
    X = reference.directions.iid_directions(points(6, 3, 3))
    W = reference.directions.iid_directions(points(7, 2, 3))
    weights = [[sqrt(c_l * special.alpha(ell, 3)) for ell, c_l in enumerate(c)]]
    expected = [[gegenbauer.zonal_feature(x, w, c) for w in W] for x in X]
    assert np.array(gegenbauer.gegenbauer_features(X, W, weights)) == pytest.approx(
        np.array(expected), rel=1e-12
    )


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 12])
def test_gzk_kernel_is_the_gaussian(dim):
    """Within the certified error, zero vectors included."""
    X = [*points(8, 3, dim), np.zeros(dim)]
    radius = max(np.linalg.norm(X, axis=1))
    degree, order, error = series.truncate(GAUSSIAN, dim, radius, 1e-6)
    K = kernel_matrix(X, GAUSSIAN, degree, order)
    exact = [[reference.kernels.gaussian(x, y, 0.5) for y in X] for x in X]
    assert np.abs(K - exact).max() <= error


def test_gzk_kernel_is_exp_of_the_dot_product():
    X = points(9, 3, 4)
    K = kernel_matrix(X, EXPONENTIAL_DOT, 25, 13)
    assert pytest.approx(np.exp(X @ X.T), rel=1e-10) == K


def test_gzk_kernel_in_other_units():
    """exp(-gamma ||x-y||^2) is the unit Gaussian of sqrt(2 gamma) (x - center)."""
    X, gamma, center = points(10, 2, 3), 0.8, np.array([0.1, -0.3, 0.2])
    u, v = sqrt(2 * gamma) * (X - center)
    expected = reference.kernels.gaussian(*X, gamma)
    assert gegenbauer.gzk_kernel(u, v, GAUSSIAN, 40, 21) == pytest.approx(expected, rel=1e-10)


def test_order_from_zero_not_from_one():
    """Eq 22, 23: with i = 0..s-1 the Gaussian, with i = 1..s (as printed) badly wrong."""
    x, y = [1.0, 0.0, 0.0], [0.4, sqrt(0.84), 0.0]
    assert gegenbauer.gzk_kernel(x, y, GAUSSIAN, 20, 12) == pytest.approx(exp(-0.6), rel=1e-12)
    h = series.radial_table(GAUSSIAN, [1.0], 3, 20, 13)[0]
    printed = sum(
        sum(value**2 for value in h[ell][1:]) * special.gegenbauer(ell, 3, 0.4) for ell in range(21)
    )
    assert printed == pytest.approx(0.0767, abs=5e-5)


def test_gzk_kernel_is_rotation_invariant():
    X = points(11, 2, 4)
    Q, _ = np.linalg.qr(points(12, 4, 4))
    expected = gegenbauer.gzk_kernel(*X, GAUSSIAN, 6, 4)
    assert gegenbauer.gzk_kernel(*(X @ Q), GAUSSIAN, 6, 4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", [GAUSSIAN, EXPONENTIAL_DOT], ids=["gaussian", "exponential"])
@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_lemma_5(sphere_quadrature, dim, kernel):
    """E_w <phi_x(w), phi_y(w)> = k(x, y): Z Z^T = K with a quadrature in place of the draws."""
    degree, order = 4, 3
    nodes, weights = sphere_quadrature(dim, 2 * degree)
    X = [*points(13, 2, dim), np.zeros(dim)]
    Z = np.array(gegenbauer.feature_matrix(X, nodes, kernel, degree, order))
    assert Z.shape == (3, order * len(nodes))
    scale = np.repeat(weights * len(nodes), order)
    expected = kernel_matrix(X, kernel, degree, order)
    assert (Z * scale) @ Z.T == pytest.approx(expected, rel=1e-11, abs=1e-13)


def test_feature_matrix_layout():
    """Column j s + i: component i along direction j, over sqrt(m)."""
    X, W = points(14, 2, 3), reference.directions.iid_directions(points(15, 3, 3))
    Z = gegenbauer.feature_matrix(X, W, GAUSSIAN, 4, 2)
    for n, x in enumerate(X):
        for j, w in enumerate(W):
            phi = gegenbauer.feature(x, w, GAUSSIAN, 4, 2)
            assert Z[n][2 * j : 2 * j + 2] == pytest.approx([value / sqrt(3) for value in phi])
            assert gegenbauer.operator_rows(X, w, GAUSSIAN, 4, 2)[n] == phi


def test_feature_is_gegenbauer_features_of_the_radial_table():
    """Eq 13 by components: the kernel's weights are sqrt(alpha_l) h_(l,i)(||x||)."""
    X, W = points(16, 2, 3), reference.directions.iid_directions(points(17, 2, 3))
    norms = np.linalg.norm(X, axis=1)
    table = np.array(series.radial_table(GAUSSIAN, norms, 3, 4, 2))
    root_alpha = np.sqrt([special.alpha(ell, 3) for ell in range(5)])
    for i in range(2):
        component = gegenbauer.gegenbauer_features(
            X / norms[:, None], W, table[:, :, i] * root_alpha
        )
        expected = [[gegenbauer.feature(x, w, GAUSSIAN, 4, 2)[i] for w in W] for x in X]
        assert np.array(component) == pytest.approx(np.array(expected), rel=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_phi_star_phi_is_k(sphere_quadrature, dim):
    """Phi^* (Phi v) = K v, Eq 14 and 15."""
    degree, order = 4, 2
    nodes, weights = sphere_quadrature(dim, 2 * degree)
    X, v = points(18, 3, dim), [0.5, -1.0, 2.0]
    f = gegenbauer.apply_operator(X, v, GAUSSIAN, degree, order)
    result = gegenbauer.apply_adjoint(X, f, nodes, weights, GAUSSIAN, degree, order)
    expected = kernel_matrix(X, GAUSSIAN, degree, order) @ v
    assert result == pytest.approx(expected, rel=1e-11)


def test_adjoint(sphere_quadrature):
    """<Phi v, f> = <v, Phi^* f> for a function f that Phi did not make."""
    nodes, weights = sphere_quadrature(3, 12)
    X, v = points(19, 3, 3), [1.0, 0.3, -0.7]

    def f(w):
        return [w[0] * w[2], exp(w[1])]

    Phi_v = gegenbauer.apply_operator(X, v, GAUSSIAN, 4, 2)
    left = sum(p * np.dot(Phi_v(w), f(w)) for w, p in zip(nodes, weights, strict=True))
    right = np.dot(v, gegenbauer.apply_adjoint(X, f, nodes, weights, GAUSSIAN, 4, 2))
    assert left == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_random_features_are_unbiased(sphere_quadrature, seed):
    """Definition 8 with random directions: within 5 standard errors, derived from the variance."""
    degree, order, m = 3, 2, 1500
    X = points(20, 2, 3)
    nodes, weights = sphere_quadrature(3, 4 * degree)
    products = [np.dot(*gegenbauer.operator_rows(X, w, GAUSSIAN, degree, order)) for w in nodes]
    mean = np.dot(weights, products)
    deviation = sqrt(np.dot(weights, np.square(products)) - mean**2)
    normals = np.random.default_rng(seed).standard_normal((m, 3))
    W = reference.directions.iid_directions(normals)
    Z = np.array(gegenbauer.feature_matrix(X, W, GAUSSIAN, degree, order))
    assert mean == pytest.approx(gegenbauer.gzk_kernel(*X, GAUSSIAN, degree, order), rel=1e-11)
    assert abs(Z[0] @ Z[1] - mean) <= 5 * deviation / sqrt(m)


def test_kernels():
    """The exact kernels: closed forms, clipping, float32 rows summed in double."""
    x, y = np.array([0.5, 0.1], dtype=np.float32), [1.5, -0.9]
    assert reference.kernels.gaussian(x, y, 0.5) == pytest.approx(exp(-1), rel=1e-7)
    assert reference.kernels.zonal([1 + 1e-12, 0], [1, 0], lambda t: t) == 1.0
    with pytest.raises(ValueError, match="zip"):
        reference.kernels.gaussian([1, 2], [1, 2, 3], 0.5)
