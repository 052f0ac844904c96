"""Point sets on the sphere: the reference's maps of the same draws, uniform, reproducible."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import qmc
from tolerances import IDENTITY, TWINS

from gzkcore import reference
from gzkcore._util.random import generator
from gzkcore.sphere.directions import best_method, sample_directions, sphere_quadrature
from gzkcore.sphere.special import alpha, gegenbauer

DIMS = [1, 2, 3, 5, 16]
METHODS = ["iid", "orthogonal", "sobol"]
formulas = reference.directions
close = {"rtol": 0, "atol": TWINS["directions"](length=16**3)}


def possible(dim):
    return [*METHODS, "fibonacci"] if dim == 3 else METHODS


EVERY = [(method, dim) for dim in DIMS for method in possible(dim)]


@pytest.mark.parametrize(("method", "dim"), EVERY)
@pytest.mark.parametrize("m", [1, 2, 17, 33])
def test_unit_rows(method, dim, m):
    W = sample_directions(m, dim, method, rng=3)
    assert W.shape == (m, dim)
    assert W.dtype == np.float64
    np.testing.assert_allclose(
        np.square(W).sum(axis=1), 1, rtol=0, atol=IDENTITY["unit"](length=dim)
    )


@pytest.mark.parametrize("dim", DIMS)
def test_iid_is_the_map_of_the_same_draws(dim):
    normals = generator(7).standard_normal((13, dim))
    expected = formulas.iid_directions(normals)
    np.testing.assert_allclose(sample_directions(13, dim, "iid", rng=7), expected, **close)


@pytest.mark.parametrize("dim", DIMS)
def test_orthogonal_is_the_map_of_the_same_draws(dim):
    """Gram and Schmidt on the rows of each block of normals; a short last block."""
    m = 2 * dim + 1
    expected = formulas.orthogonal_directions(generator(7).standard_normal((m, dim)))
    np.testing.assert_allclose(sample_directions(m, dim, "orthogonal", rng=7), expected, **close)
    W = sample_directions(m, dim, "orthogonal", rng=7)[:dim]
    np.testing.assert_allclose(W @ W.T, np.eye(dim), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dim", [2, 5])
def test_sobol_fills_the_cube_evenly(dim):
    """Every interval of length 1/16 has exactly one of 16 points, in every coordinate."""
    from gzkcore.sphere.directions import sobol_points

    uniforms = sobol_points(16, dim, generator(1))
    assert np.sort(np.floor(16 * uniforms), axis=0).tolist() == [[i] * dim for i in range(16)]
    assert qmc.discrepancy(uniforms) < qmc.discrepancy(generator(1).random((16, dim)))
    expected = formulas.sobol_directions(uniforms)
    np.testing.assert_allclose(
        sample_directions(16, dim, "sobol", rng=1), expected, rtol=0, atol=1e-8
    )  # the quantiles of the standard library have 1e-9


def test_fibonacci_is_the_lattice_turned():
    W = sample_directions(50, 3, "fibonacci", rng=2)
    lattice = np.array(formulas.fibonacci_directions(50))
    np.testing.assert_allclose(W @ W.T, lattice @ lattice.T, **close)
    turn = np.linalg.lstsq(lattice, W, rcond=None)[0]
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dim"), EVERY)
def test_each_direction_is_uniform(method, dim):
    """First and last direction over 1000 seeds: mean 0 and covariance I/d within 5 standard errors.

    numpy.linalg.qr alone fails here: its first column has mean (-.5, 0, 0) in three dimensions.
    """
    n = 1000
    sets = np.array([sample_directions(5, dim, method, rng=seed) for seed in range(n)])
    for W in (sets[:, 0], sets[:, -1]):
        assert np.abs(W.mean(axis=0)).max() <= 5 / np.sqrt(n * dim)
        covariance = W.T @ W / n
        error = np.sqrt(3 / (dim * (dim + 2) * n))  # the fourth moment is 3 / (d (d+2)) at most
        assert np.abs(covariance - np.eye(dim) / dim).max() <= 5 * error


def test_the_angle_of_one_direction_is_uniform_on_the_circle():
    """Kolmogorov and Smirnov's distance at 0.1 %."""
    n = 1000
    for method in METHODS:
        x, y = np.array([sample_directions(1, 2, method, rng=seed)[0] for seed in range(n)]).T
        angle = np.sort(np.arctan2(y, x) / (2 * np.pi) + 0.5)
        assert np.abs(angle - (np.arange(n) + 0.5) / n).max() <= 1.95 / np.sqrt(n)
    assert ndtr(3.09) == pytest.approx(0.999, abs=1e-4)


@pytest.mark.parametrize(
    ("dim", "method"), [(2, "sobol"), (3, "fibonacci"), (5, "sobol"), (16, "orthogonal")]
)
def test_the_best_method_is_better_than_iid(dim, method):
    """The mean over pairs of P_d^2 is 0 on the sphere; a set's is the square of its error."""
    assert best_method(dim) == method

    def error(method):
        sets = [sample_directions(128, dim, method, rng=seed) for seed in range(100)]
        return np.mean([gegenbauer(2, dim, W @ W.T).mean() for W in sets])

    assert error("iid") == pytest.approx(
        1 / 128, rel=0.5
    )  # exponential in the plane: 5 standard errors
    assert error(method) < 0.5 * error("iid")


@pytest.mark.parametrize(("dim", "method"), [(3, "fibonacci"), (5, "sobol"), (9, "orthogonal")])
def test_random_states(dim, method):
    def draw(rng):
        return sample_directions(9, dim, method, rng=rng)

    np.testing.assert_array_equal(draw(5), draw(5))
    sequence = np.random.SeedSequence(5)
    np.testing.assert_array_equal(draw(sequence), draw(sequence))
    source = np.random.default_rng(5)
    assert not np.array_equal(draw(source), draw(source))
    assert not np.array_equal(draw(5), draw(6))
    assert not np.array_equal(draw(None), draw(None))


@pytest.mark.parametrize(("dim", "degree"), [(1, 5), (2, 8), (3, 7), (4, 6), (6, 4)])
def test_sphere_quadrature_is_exact(dim, degree):
    """Means of P_d^l(<x, .>) P_d^k(<x, .>) are 1/alpha or 0 (Eq 3)."""
    nodes, weights = sphere_quadrature(dim, degree)
    x = sample_directions(1, dim, rng=0)[0]
    assert weights.sum() == pytest.approx(1)
    assert weights.min() > 0
    for ell in range(min(degree, 1 if dim == 1 else degree) + 1):
        for k in range(min(degree - ell, 1 if dim == 1 else degree) + 1):
            P = gegenbauer(ell, dim, nodes @ x) * gegenbauer(k, dim, nodes @ x)
            expected = 1 / alpha(ell, dim) if ell == k else 0
            assert weights @ P == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: sample_directions(0, 3), ValueError, r"n_directions=0 is too small; .* >= 1"),
    (lambda: sample_directions(2.5, 3), TypeError, r"n_directions=2.5 is not an integer"),
    (lambda: sample_directions(2, 0), ValueError, r"dim=0 is too small"),
    (lambda: sample_directions(2, 3, "halton"), ValueError, r"method='halton' is unknown; use"),
    (lambda: sample_directions(2, 4, "fibonacci"), ValueError, r"dim=3 only, not dim=4"),
    (lambda: sphere_quadrature(2, 10**7), ValueError, r"degree=10000000 in dim=2 needs more"),
    (lambda: sphere_quadrature(10**8, 2), ValueError, r"degree=2 in dim=100000000 needs"),
    (lambda: sphere_quadrature(2, 10**20), ValueError, r"degree=1000.* is too large; use"),
    (lambda: sphere_quadrature(9, 20), ValueError, r"degree=20 in dim=9 .* lower degree"),
])  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
