"""Definitions of the harmonics: addition theorem, orthonormality, mean values, closed forms."""

from math import comb, lgamma, log, pi, sqrt
from math import exp as exponential

import numpy as np
import pytest
from scipy.special import eval_gegenbauer

from gzkcore import reference

harmonics, special = reference.harmonics, reference.special


def unit_rows(seed, n, dim):
    return reference.directions.iid_directions(
        np.random.default_rng(seed).standard_normal((n, dim))
    )


def by_degree(row, degree, dim):
    """Split a row of harmonics into its degrees."""
    ends = [harmonics.n_harmonics(ell, dim) for ell in range(degree + 1)]
    return np.split(np.asarray(row), ends[:-1])


@pytest.mark.parametrize("dim", range(2, 10))
def test_n_harmonics(dim):
    assert harmonics.n_harmonics(0, dim) == 1
    for degree in range(1, 9):
        closed_form = comb(degree + dim - 1, degree) + comb(degree + dim - 2, degree - 1)
        assert harmonics.n_harmonics(degree, dim) == closed_form


def test_n_harmonics_of_two_points():
    assert [harmonics.n_harmonics(degree, 1) for degree in range(4)] == [1, 2, 2, 2]


@pytest.mark.parametrize(
    ("dim", "degree"), [(1, 3), (2, 8), (3, 8), (3, 40), (4, 12), (6, 4), (9, 5)]
)
def test_addition_theorem(dim, degree):
    """sum_j Y_lj(x) Y_lj(y) = alpha_(l,d) P_d^l(<x, y>), and as many as alpha says."""
    X = unit_rows(dim, 2, dim)
    rows = harmonics.spherical_harmonics(X, degree)
    assert np.shape(rows) == (2, harmonics.n_harmonics(degree, dim))
    split = [by_degree(row, degree, dim) for row in rows]
    for a in range(2):
        for b in range(2):
            t = float(np.dot(X[a], X[b]))
            for ell in range(degree + 1):
                alpha = special.alpha(ell, dim)
                expected = alpha * special.gegenbauer(ell, dim, t)
                assert split[a][ell] @ split[b][ell] == pytest.approx(expected, abs=1e-12 * alpha)


@pytest.mark.parametrize(("dim", "degree"), [(1, 1), (2, 7), (3, 5), (4, 3), (5, 2)])
def test_orthonormal(sphere_quadrature, dim, degree):
    """E Y_i Y_j = 1 if i = j, else 0, by an exact quadrature."""
    nodes, weights = sphere_quadrature(dim, 2 * degree)
    Y = np.array(harmonics.spherical_harmonics(nodes, degree))
    assert Y.T @ (weights[:, None] * Y) == pytest.approx(np.eye(Y.shape[1]), abs=1e-12)


@pytest.mark.parametrize(("dim", "degree"), [(2, 4), (3, 4), (4, 3)])
def test_mean_value(sphere_quadrature, dim, degree):
    """Harmonic: the mean over a sphere around any point is the value at that point."""
    nodes, weights = sphere_quadrature(dim, degree)
    center = np.linspace(-0.4, 0.9, dim)
    around = harmonics.spherical_harmonics(center + 0.7 * nodes, degree)
    value = harmonics.spherical_harmonics([center], degree)[0]
    assert weights @ np.array(around) == pytest.approx(np.array(value), abs=1e-12)


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_homogeneous(dim):
    """Y(s x) = s^l Y(x) for positive and negative s; at 0 all but the first are 0."""
    degree = 4
    x = np.linspace(-0.4, 0.9, dim)
    at_x, doubled, mirrored, zero = (
        by_degree(row, degree, dim)
        for row in harmonics.spherical_harmonics([x, 2 * x, -x, 0 * x], degree)
    )
    for ell in range(degree + 1):
        assert doubled[ell] == pytest.approx(2**ell * at_x[ell], rel=1e-12)
        assert mirrored[ell] == pytest.approx((-1) ** ell * at_x[ell], rel=1e-12)
        assert zero[ell] == pytest.approx(np.full(len(zero[ell]), float(ell == 0)), abs=0)


def test_one_and_two_dimensions():
    assert harmonics.spherical_harmonics([[1.0], [-1.0], [0.0]], 3) == [
        [1.0, 1.0],
        [1.0, -1.0],
        [1.0, 0.0],
    ]
    angle = 0.4
    (row,) = harmonics.spherical_harmonics([[np.cos(angle), np.sin(angle)]], 3)
    circle = [f(k * angle) * sqrt(2) for k in (1, 2, 3) for f in (np.cos, np.sin)]
    assert row == pytest.approx([1.0, *circle])


def test_degree_two_in_three_dimensions():
    """The order of the columns, against the polynomials written out."""
    x, y, z = 0.3, -0.5, 0.8
    (row,) = harmonics.spherical_harmonics([[x, y, z]], 2)
    linear = [sqrt(3) * z, sqrt(3) * x, sqrt(3) * y]
    quadratic = [
        sqrt(5) / 2 * (2 * z * z - x * x - y * y), sqrt(15) * z * x, sqrt(15) * z * y,
        sqrt(15) / 2 * (x * x - y * y), sqrt(15) * x * y,
    ]  # fmt: skip
    assert row == pytest.approx([1.0, *linear, *quadratic], rel=1e-13)


def classical(x, degree):
    """The recursion with its textbook normalisation A and the polynomials C_n^lam."""
    e, rho = len(x), np.linalg.norm(x)
    if e == 2:
        z = complex(*x) ** degree
        return [1.0] if degree == 0 else [sqrt(2) * z.real, sqrt(2) * z.imag]
    values = []
    for k in range(degree + 1):
        n, lam = degree - k, k + (e - 2) / 2
        log_above = log(pi) / 2 + lgamma((e - 1) / 2) - lgamma(e / 2)
        log_below = log(pi) + (1 - 2 * lam) * log(2) + lgamma(n + 2 * lam)
        log_below -= lgamma(n + 1) + log(n + lam) + 2 * lgamma(lam)
        A = exponential((log_above - log_below) / 2)
        factor = A * rho**n * eval_gegenbauer(n, lam, x[-1] / rho)
        values += [factor * y for y in classical(x[:-1], k)]
    return values


@pytest.mark.parametrize("dim", [3, 4, 7])
def test_textbook_normalisation(dim):
    x = np.linspace(-0.4, 0.9, dim)
    (row,) = harmonics.spherical_harmonics([x], 4)
    expected = np.concatenate([classical(x, degree) for degree in range(5)])
    assert np.array(row) == pytest.approx(expected, rel=1e-11, abs=1e-13)
