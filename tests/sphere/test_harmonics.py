"""Explicit harmonics: orthonormal, complete (addition theorem), homogeneous, in either type."""

import math
from math import comb

import numpy as np
import pytest
from points import gaussian, sphere
from scipy.special import lpmv
from tolerances import IDENTITY

from gzkcore._util.state import check_rest
from gzkcore.sphere.directions import sphere_quadrature
from gzkcore.sphere.harmonics import HarmonicTree, n_harmonics, spherical_harmonics
from gzkcore.sphere.special import alpha, gegenbauer


def complex_harmonic(ell, m, theta, phi):
    """As scipy.special.sph_harm_y, which scipy 1.13 doesn't have, up to signs."""
    k = abs(m)
    size = (2 * ell + 1) / (4 * math.pi) * math.factorial(ell - k) / math.factorial(ell + k)
    return math.sqrt(size) * lpmv(k, ell, np.cos(theta)) * np.exp(1j * m * phi)


def degrees_of_columns(degree, dim):
    return np.repeat(np.arange(degree + 1), [alpha(ell, dim) for ell in range(degree + 1)])


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 16, 256])
def test_counts(dim):
    for degree in range(5):
        expected = sum(alpha(ell, dim) for ell in range(degree + 1))
        assert n_harmonics(degree, dim) == expected
        if dim > 1 and degree:
            assert expected == comb(degree + dim - 1, degree) + comb(degree + dim - 2, degree - 1)


@pytest.mark.parametrize(("dim", "degree"), [(1, 3), (2, 12), (3, 15), (4, 8), (6, 4), (9, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_orthonormal(dim, degree, dtype):
    nodes, weights = sphere_quadrature(dim, 2 * degree)
    Y = spherical_harmonics(nodes.astype(dtype), degree).astype(np.float64)
    assert Y.shape == (len(nodes), n_harmonics(degree, dim))
    tolerance = IDENTITY["orthonormality"](dtype, length=alpha(degree, dim) if dim > 1 else 1)
    np.testing.assert_allclose(Y.T @ (weights[:, None] * Y), np.eye(Y.shape[1]), atol=tolerance)


@pytest.mark.parametrize(
    ("dim", "degree"), [(1, 1), (2, 40), (3, 100), (4, 20), (5, 10), (9, 5), (64, 2), (256, 2)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_addition_theorem(dim, degree, dtype):
    """sum_j Y_lj(x) Y_lj(y) = alpha P_d^l(<x, y>), to degree 100: nothing overflows in float32."""
    X = sphere(7, dim, seed=dim).astype(dtype)
    X[0] = np.eye(dim)[-1]
    Y = spherical_harmonics(X, degree).astype(np.float64)
    t = X.astype(np.float64) @ X.T.astype(np.float64)
    columns = degrees_of_columns(degree, dim)
    for ell in {0, 1, degree // 2, degree}:
        here = Y[:, columns == ell]
        expected = alpha(ell, dim) * gegenbauer(ell, dim, np.clip(t, -1, 1))
        # |x| is off by eps, so |x|^2l by 2 l eps.
        tolerance = IDENTITY["addition"](dtype, length=(alpha(ell, dim) * (ell + 1)) ** 2)
        np.testing.assert_allclose(here @ here.T, expected, rtol=0, atol=tolerance)


def test_three_dimensions_span_what_scipy_has():
    X = sphere(40, 3)
    theta, phi = np.arccos(X[:, 2]), np.arctan2(X[:, 1], X[:, 0])
    Y = spherical_harmonics(X, 4)
    for ell in range(5):
        theirs = np.array([complex_harmonic(ell, m, theta, phi) for m in range(-ell, ell + 1)]).T
        ours = Y[:, ell**2 : (ell + 1) ** 2]
        expected = 4 * np.pi * (theirs @ theirs.conj().T).real
        np.testing.assert_allclose(ours @ ours.T, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3, 7])
def test_homogeneous(dim):
    """Y(s x) = s^l Y(x) off the sphere, and at 0 only the first is not 0."""
    X = sphere(5, dim)
    columns = degrees_of_columns(4, dim)
    expected = 3.0**columns * spherical_harmonics(X, 4)
    np.testing.assert_allclose(spherical_harmonics(3 * X, 4), expected, rtol=1e-12, atol=1e-13)
    assert spherical_harmonics(np.zeros((1, dim)), 4)[0].tolist() == (columns == 0).tolist()


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_harmonic(dim):
    """The Laplacian vanishes: second differences add up to 0."""
    x, h = gaussian(1, dim, seed=3)[0], 1e-3
    steps = h * np.concatenate([np.eye(dim), -np.eye(dim)])
    around = spherical_harmonics(x + steps, 3).sum(axis=0)
    laplacian = (around - 2 * dim * spherical_harmonics([x], 3)[0]) / h**2
    assert np.abs(laplacian).max() < 1e-6


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_a_tree_of_some_harmonics_has_the_first_of_each_degree(dim):
    """Also degrees with none at all, and any order and repetition of columns."""
    X = sphere(9, dim)
    counts = [1, min(1, alpha(1, dim)), 0, min(3, alpha(3, dim))]
    tree = HarmonicTree(dim, counts)
    nodes = np.concatenate([tree.nodes(ell, count) for ell, count in enumerate(counts)])
    columns = np.concatenate([nodes[::-1], nodes])
    radial = gaussian(9, 2, seed=1)
    ring = np.arange(columns.size) % 2
    out = np.empty((9, columns.size))
    tree.features(X, radial, columns, ring, out)
    Y = spherical_harmonics(X, 3)
    every = degrees_of_columns(3, dim)
    wanted = np.concatenate(
        [np.flatnonzero(every == ell)[:count] for ell, count in enumerate(counts)]
    )
    expected = radial[:, ring] * np.concatenate([Y[:, wanted[::-1]], Y[:, wanted]], axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("X", "degree", "error", "message"), [
    ([1.0, 2.0], 2, ValueError, r"X has shape \(2,\); pass points as rows"),
    (np.zeros((3, 0)), 2, ValueError, r"X has shape \(3, 0\); pass points as rows"),
    ([[1.0, 2.0]], -1, ValueError, r"degree=-1 is too small; use an integer >= 0"),
    ([[1.0, 2.0]], 1.5, TypeError, r"degree=1.5 is not an integer"),
])  # fmt: skip
def test_bad_input(X, degree, error, message):
    with pytest.raises(error, match=message):
        spherical_harmonics(X, degree)


def test_harmonics_beyond_all_numbers_are_refused():
    X = np.array([[0.6, 0.0, 0.8], [1e36, 1e36, 1e36]], dtype=np.float32)
    with pytest.raises(ValueError, match=r"X is too large: row 1 has .* 1e\+36, .* divide"):
        spherical_harmonics(X, 3)
    assert np.isfinite(spherical_harmonics(X[:1], 3)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gap", [0, 3, 32])
@pytest.mark.parametrize("offset", [0, 4, 8, 20, 60, 61])
@pytest.mark.parametrize("dim", [3, 4])  # in 3 dimensions all columns have the scale 1
def test_the_same_bits_wherever_rows_start(dim, offset, gap, dtype):
    """By vectors from the boundary on, what is before and behind apart; nothing beside is written."""
    counts = [2 * ell + 1 if dim == 3 else (ell + 1) ** 2 for ell in range(9)]
    X, tree = sphere(37, dim).astype(dtype), HarmonicTree(dim, counts)
    radial, size = gaussian(37, 2, seed=1).astype(dtype), np.dtype(dtype).itemsize
    for count in (1, 7, 8, 15, 16, 17, 31, 47, 64, 80):
        nodes, ring = np.arange(count), np.arange(count) % 2
        expected = np.empty((37, count), dtype)
        tree.features(X, radial, nodes, ring, expected)
        memory = np.full((37 * (count + gap) + 40) * size + 128, 255, np.uint8)  # all NaN
        first = -memory.ctypes.data % 64 + offset
        rows = memory[first : first + 37 * (count + gap) * size].view(dtype).reshape(37, -1)
        tree.features(X, radial, nodes, ring, rows[:, :count], stream=True)
        np.testing.assert_array_equal(rows[:, :count], expected)
        rows[:, :count] = np.nan
        assert np.isnan(rows).all()
        assert (memory[:first] == 255).all()
        assert (memory[first + rows.size * size :] == 255).all()


@pytest.mark.slow
def test_a_file_that_asks_for_many_degrees_is_read_at_once():
    """It took minutes to count the harmonics of degrees of which none was asked for."""
    for dim, counts, size in (
        (10**9, [1] + 16_000 * [0], 1),
        (2, [1] + 5000 * [2], 10_001),
    ):
        tree = HarmonicTree(dim, counts)
        check_rest(tree)
        assert tree.size == size
    for dim, wrong in ((2, [1] + 5000 * [2] + [3]), (3, [1, 4]), (1, [1, 1, 1])):
        with pytest.raises(ValueError, match="not so many in dimension"):
            check_rest(HarmonicTree(dim, wrong))
