"""Cholesky factors by tiles: against the reference, across block borders, for any threads."""

import numpy as np
import pytest
from fuzzing import FORMS, in_form
from points import gaussian
from scipy.linalg import LinAlgError
from tolerances import FACTOR

from gzkcore import reference
from gzkcore._util.linalg import (
    cholesky,
    inverse_factors,
    inverse_of,
    shifted,
    solve_factored,
    solve_triangle,
)
from gzkcore._util.threads import limit_threads

SIZES = [1, 2, 64, 127, 128, 129, 256, 257, 300, 513]  # around the blocks of the kernels


def positive(n, dtype=np.float64):
    """Return a matrix with eigenvalues from 1 to about 5, and what rounding may change."""
    A = gaussian(n, n)
    return (A @ A.T / n + np.eye(n)).astype(dtype), FACTOR(dtype, n)


def test_a_small_example_by_hand():
    L = cholesky(np.array([[4.0, 2.0], [2.0, 10.0]]))
    np.testing.assert_allclose(np.tril(L), [[2, 0], [1, 3]])
    np.testing.assert_allclose(solve_factored(L, np.array([[8.0], [22.0]])), [[1], [2]])


def test_factor_systems_and_inverse_are_the_reference():
    A, atol = positive(9)
    B = gaussian(9, 3, seed=1)
    L, expected = cholesky(A), reference.cholesky.cholesky(A.tolist())
    np.testing.assert_allclose(L, expected, atol=atol)
    for transposed in (False, True):
        found = solve_triangle(L, B, transposed=transposed)
        solved = reference.cholesky.solve_triangle(expected, B.tolist(), transposed)
        np.testing.assert_allclose(found, solved, atol=atol)
    solved = reference.cholesky.solve_factored(expected, B.tolist())
    np.testing.assert_allclose(solve_factored(L, B), solved, atol=atol)
    np.testing.assert_allclose(inverse_of(L), reference.cholesky.inverse_of(expected), atol=atol)


def test_factors_of_small_matrices_are_inverted():
    A, atol = positive(9)
    blocks = np.stack([A, 1e-6 * A, 4 * A])
    found = inverse_factors(blocks.copy())
    for block, inverse, size in zip(blocks, found, (1.0, 1e3, 0.5), strict=True):
        L = reference.cholesky.cholesky(block.tolist())
        expected = reference.cholesky.solve_triangle(L, np.eye(9).tolist())
        np.testing.assert_allclose(inverse, expected, atol=atol * size)
    blocks[1, 4, 4] = -1.0
    with pytest.raises(LinAlgError, match="not positive definite"):
        inverse_factors(blocks)
    assert inverse_factors(np.empty((0, 9, 9))).shape == (0, 9, 9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
def test_any_size_is_factored_solved_and_inverted(n, dtype):
    A, atol = positive(n, dtype)
    B = gaussian(n, 130, seed=1).astype(dtype)
    given = A.copy()
    L = cholesky(A)
    np.testing.assert_array_equal(A, given)
    np.testing.assert_array_equal(cholesky(given, overwrite=True), L)
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_allclose(L @ L.T, A, atol=atol)
    np.testing.assert_allclose(L @ solve_triangle(L, B), B, atol=atol)
    np.testing.assert_allclose(L.T @ solve_triangle(L, B, transposed=True), B, atol=atol)
    inverse = inverse_of(L)
    assert inverse.dtype == solve_factored(L, B).dtype == dtype
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(inverse @ A, np.eye(n), atol=atol)


@pytest.mark.parametrize("form", FORMS)
def test_any_layout_gives_the_same_bits(form):
    A, _ = positive(9)
    B, diagonal = gaussian(9, 3, seed=1), np.arange(1.0, 10.0)
    L = cholesky(A)
    A_, B_, L_, diagonal_ = (in_form(each, form) for each in (A, B, L, diagonal))
    np.testing.assert_array_equal(cholesky(A_), L)
    np.testing.assert_array_equal(inverse_of(L_), inverse_of(L))
    for transposed in (False, True):
        found = solve_triangle(L_, B_, transposed=transposed)
        np.testing.assert_array_equal(found, solve_triangle(L, B, transposed=transposed))
    np.testing.assert_array_equal(np.tril(shifted(A_, diagonal_)), np.tril(shifted(A, diagonal)))


def test_bits_do_not_depend_on_threads():
    A, _ = positive(513)
    B = gaussian(513, 300, seed=1)
    found = []
    for n_threads in (1, 2, 3):
        with limit_threads(n_threads):
            L = cholesky(A)
            found.append((L, solve_factored(L, B), inverse_of(L)))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 63, 200])
def test_a_diagonal_is_shifted_in_either_precision(n, dtype):
    A, diagonal = gaussian(n, n), np.arange(1.0, n + 1)
    expected = np.tril(A + np.diag(diagonal)).astype(dtype)
    for given in (A, np.asfortranarray(A)):
        found = shifted(given, np.repeat(diagonal, 2)[::2], dtype)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.tril(found), expected)


@pytest.mark.parametrize("place", [0, 100, 299])
def test_where_a_matrix_is_not_positive_is_told(place):
    A, _ = positive(300)
    A[place, place] = -1.0
    with pytest.raises(LinAlgError, match=f"order {place + 1} is not positive"):
        cholesky(A)


def test_nothing_is_solved_for_nothing():
    empty = np.empty((0, 0))
    assert cholesky(empty).shape == inverse_of(empty).shape == (0, 0)
    assert solve_factored(np.eye(3), np.empty((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2), (1, 3, 3)])
def test_what_is_not_square_is_refused(shape):
    A = np.ones(shape)
    for call in (cholesky, inverse_of, lambda L: solve_triangle(L, np.ones((len(L), 1)))):
        with pytest.raises(ValueError, match="pass a square one"):
            call(A)
    with pytest.raises(ValueError, match="pass a square one"):
        shifted(A, np.ones(len(A)))


@pytest.mark.parametrize("shape", [(3,), (1, 1), (4, 2), (0, 1)])
def test_right_hand_sides_have_the_rows_of_the_factor(shape):
    for call in (solve_triangle, solve_factored):
        with pytest.raises(ValueError, match="pass a matrix of 3 rows"):
            call(np.eye(3), np.ones(shape))
    with pytest.raises(ValueError, match="the diagonal has shape"):
        shifted(np.eye(3), np.ones(2))


@pytest.mark.parametrize("entry", [0.0, 5e-324, -1e-310])
def test_a_factor_with_nothing_to_divide_by_is_refused(entry):
    L = np.diag([1.0, entry])
    for call in (inverse_of, lambda L: solve_triangle(L, np.zeros((2, 1)))):
        with pytest.raises(LinAlgError, match="at place 1 of its diagonal"):
            call(L)
