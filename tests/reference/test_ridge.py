"""Definitions of the ridge regression and of its errors."""

import numpy as np
import pytest

from gzkcore import reference

ridge, predict = reference.ridge.ridge, reference.ridge.predict


def data(seed=0, n=12, n_components=4, n_targets=None):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, n_components)) + 1
    y = rng.standard_normal(n if n_targets is None else (n, n_targets)) + 3
    return Z, y, rng.random(n) + 0.1


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 100.0])
def test_ridge_is_an_augmented_least_squares_problem(alpha, fit_intercept):
    """Rows sqrt(w) [z, 1] and rows sqrt(alpha) [I, 0]: the intercept isn't penalised."""
    Z, y, w = data()
    ones = np.full((12, 1), float(fit_intercept))
    penalty = np.sqrt(alpha) * np.eye(4, 5)
    A = np.vstack([np.sqrt(w)[:, None] * np.hstack([Z, ones]), penalty])
    b = np.append(np.sqrt(w) * y, np.zeros(4))
    solution = np.linalg.lstsq(A, b, rcond=None)[0]
    coef, intercept = ridge(Z, y, alpha, fit_intercept, w)
    assert coef == pytest.approx(solution[:4], rel=1e-9)
    assert intercept == pytest.approx(solution[4], rel=1e-9)
    assert isinstance(coef, list)
    assert isinstance(intercept, float)


def test_a_shift_of_the_targets_moves_the_intercept_only():
    Z, y, _ = data(1)
    coef, intercept = ridge(Z, y, 0.7)
    shifted_coef, shifted_intercept = ridge(Z, y + 100, 0.7)
    assert shifted_coef == pytest.approx(coef, rel=1e-10)
    assert shifted_intercept == pytest.approx(intercept + 100, rel=1e-12)
    flat, mean = ridge(Z, y, 1e14)
    assert np.abs(flat).max() < 1e-11
    assert mean == pytest.approx(y.mean())


def test_integer_weights_repeat_rows():
    Z, y, _ = data(2)
    counts = np.arange(12) % 3
    repeated = ridge(np.repeat(Z, counts, axis=0), np.repeat(y, counts), 0.5)
    coef, intercept = ridge(Z, y, 0.5, weights=counts)
    assert coef == pytest.approx(repeated[0], rel=1e-10)
    assert intercept == pytest.approx(repeated[1], rel=1e-10)


def test_targets_are_independent():
    Z, y, w = data(3, n_targets=2)
    coef, intercept = ridge(Z, y, 0.5, weights=w)
    assert np.shape(coef) == (2, 4)
    for k in range(2):
        single = ridge(Z, y[:, k], 0.5, weights=w)
        assert coef[k] == pytest.approx(single[0], rel=1e-12)
        assert intercept[k] == pytest.approx(single[1], rel=1e-12)


def test_moments_are_all_that_ridge_needs():
    """coef from the sums of the rows [z, y] alone, as one pass over the data makes them."""
    Z, y, w = data(4)
    total, first, second = reference.gram.moments(np.column_stack([Z, y]), w)
    centred = np.array(second) - np.outer(first, first) / total
    coef = np.linalg.solve(centred[:4, :4] + 0.5 * np.eye(4), centred[:4, 4])
    assert ridge(Z, y, 0.5, weights=w)[0] == pytest.approx(coef, rel=1e-10)


def test_ridge_on_features_is_ridge_on_the_kernel():
    """Z (Z^T Z + alpha I)^-1 Z^T y = K (K + alpha I)^-1 y with K = Z Z^T."""
    Z, y, _ = data(5, n=6, n_components=9)
    K = Z @ Z.T
    expected = K @ np.linalg.solve(K + 0.4 * np.eye(6), y)
    assert predict(Z, *ridge(Z, y, 0.4, fit_intercept=False)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_loo_errors_by_the_hat_matrix(fit_intercept, weighted):
    """e_i = r_i / (1 - H_ii): the shortcut gives what leaving rows out gives."""
    Z, y, w = data(6)
    weights = w if weighted else None
    fitted = predict(Z, *ridge(Z, y, 0.3, fit_intercept, weights))
    hat = predict(Z, *ridge(Z, np.eye(12), 0.3, fit_intercept, weights))
    errors = reference.ridge.loo_errors(Z, y, 0.3, fit_intercept, weights)
    assert hat @ y == pytest.approx(fitted, rel=1e-10)
    assert errors == pytest.approx((y - fitted) / (1 - np.diag(hat)), rel=1e-9)


def test_gcv_score_by_eigenvalues():
    """df = sum s^2 / (s^2 + alpha) + 1 with the singular values s of the centred Z."""
    Z, y, _ = data(7)
    alpha = 0.8
    s = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False)
    df = np.sum(s**2 / (s**2 + alpha)) + 1
    residuals = y - predict(Z, *ridge(Z, y, alpha))
    expected = np.mean(residuals**2) / (1 - df / 12) ** 2
    assert reference.ridge.gcv_score(Z, y, alpha) == pytest.approx(expected, rel=1e-10)


def test_gcv_score_of_weighted_rows():
    """Without an intercept, weights are a scaling of rows and targets by their roots."""
    Z, y, w = data(8)
    root = np.sqrt(w)
    expected = reference.ridge.gcv_score(root[:, None] * Z, root * y, 0.8, fit_intercept=False)
    score = reference.ridge.gcv_score(Z, y, 0.8, fit_intercept=False, weights=w)
    assert score == pytest.approx(expected, rel=1e-10)


def test_k_fold_error_by_hand():
    """Two folds: even rows are predicted from odd ones, and the other way round."""
    Z, y, _ = data(9)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    squares = [
        np.sum((y[held] - predict(Z[held], *ridge(Z[kept], y[kept], 0.6))) ** 2)
        for held, kept in ((even, odd), (odd, even))
    ]
    error = reference.ridge.k_fold_error(Z, y, 0.6, 2)
    assert error == pytest.approx(sum(squares) / 12, rel=1e-12)


def test_n_folds_are_leave_one_out():
    Z, y, w = data(10, n_targets=2)
    errors = np.array(reference.ridge.loo_errors(Z, y, 0.6, weights=w))
    assert errors.shape == (12, 2)
    expected = w @ np.mean(errors**2, axis=1) / w.sum()
    error = reference.ridge.k_fold_error(Z, y, 0.6, 12, weights=w)
    assert error == pytest.approx(expected, rel=1e-12)
