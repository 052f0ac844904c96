"""Definitions of the point sets: unit rows, blocks, laws."""

from math import pi, sqrt

import numpy as np
import pytest
from scipy.stats import kstest, qmc
from scipy.stats import norm as normal

from gzkcore import reference

directions = reference.directions


def normals(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_rows_are_unit(dim):
    draws = normals(1, (7, dim))
    for W in (
        directions.iid_directions(draws),
        directions.orthogonal_directions(draws),
        directions.sobol_directions(np.random.default_rng(1).random((7, dim))),
    ):
        assert np.shape(W) == (7, dim)
        assert np.linalg.norm(W, axis=1) == pytest.approx(np.ones(7), rel=1e-14)
    assert np.linalg.norm(directions.fibonacci_directions(7), axis=1) == pytest.approx(np.ones(7))


def test_iid_directions_keep_the_ray():
    draws = normals(2, (20, 4))
    W = np.array(directions.iid_directions(draws))
    assert np.sum(W * draws, axis=1) == pytest.approx(np.linalg.norm(draws, axis=1))


@pytest.mark.parametrize("n_directions", [3, 5, 11])
def test_orthogonal_directions_are_orthonormal_in_blocks(n_directions):
    W = np.array(directions.orthogonal_directions(normals(3, (n_directions, 5))))
    for start in range(0, n_directions, 5):
        block = W[start : start + 5]
        assert block @ block.T == pytest.approx(np.eye(len(block)), abs=1e-13)


def test_orthogonal_directions_are_qr_with_the_signs_of_r():
    draws = normals(4, (6, 6))
    Q, R = np.linalg.qr(draws.T)
    expected = (Q * np.sign(np.diag(R))).T
    assert np.array(directions.orthogonal_directions(draws)) == pytest.approx(expected, abs=1e-12)


def test_orthogonal_directions_are_uniform():
    """Every row has the law of a uniform direction; in R^3 each coordinate is uniform.

    Raw QR (LAPACK's signs) has a mean of -1/2 in one of them. 4000 blocks: the mean of a row is
    within 5 / sqrt(3 * 4000) = 0.046 of 0, in each coordinate, but for one seed in a million.
    """
    blocks = np.reshape(directions.orthogonal_directions(normals(5, (12000, 3))), (4000, 3, 3))
    assert np.abs(blocks.mean(axis=0)).max() < 5 / sqrt(3 * 4000)
    second = np.einsum("nij,nik->ijk", blocks, blocks) / 4000
    assert np.abs(second - np.eye(3) / 3).max() < 5 * sqrt(4 / 45 / 4000)
    for row in range(3):
        for column in range(3):
            assert kstest(blocks[:, row, column], "uniform", args=(-1, 2)).pvalue > 1e-6


def test_sobol_directions_are_normal_quantiles():
    U = qmc.Sobol(4, seed=6).random_base2(5)
    expected = directions.iid_directions(normal.ppf(U))
    assert np.array(directions.sobol_directions(U)) == pytest.approx(np.array(expected), abs=1e-14)


def test_fibonacci_directions_are_even():
    """Heights are equispaced, the mean is near 0, and no two points are near each other."""
    m = 200
    W = np.array(directions.fibonacci_directions(m))
    assert np.diff(W[:, 2]) == pytest.approx(np.full(m - 1, -2 / m))
    assert np.abs(W.mean(axis=0)).max() < 1 / m
    assert np.abs(W.T @ W / m - np.eye(3) / 3).max() < 2 / m
    cosines = W @ W.T - 2 * np.eye(m)
    nearest = np.arccos(np.clip(cosines.max(axis=1), -1, 1))
    assert nearest.min() > 0.8 * sqrt(4 * pi / m)  # a square of the area per point
