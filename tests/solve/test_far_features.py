"""Features of harmonics and frequencies: products, Gram matrices, and when they are chosen."""

import numpy as np
import pytest
from points import sphere
from scipy.linalg import eigvalsh

from gzkcore import Matern, reference
from gzkcore._util.threads import limit_threads
from gzkcore.kernels import Gaussian, Sum
from gzkcore.kernels.fast_sums import FastSums
from gzkcore.solve import preconditioners
from gzkcore.solve.far_features import Frequencies, Harmonics, cut, far_part
from gzkcore.solve.preconditioners import LowRank, preconditioner_for
from gzkcore.solve.solve import OfColumns, conjugate_gradients
from gzkcore.sphere.transforms import angles_of

finufft = pytest.importorskip("finufft")
formulas = reference.fast_sums


def functions(X, degree):
    """Return the real harmonics of the reference at rows, in the order of `Harmonics`."""
    columns = []
    for part, orders in (
        ("real", [0]),
        ("real", range(1, degree + 1)),
        ("imag", range(1, degree + 1)),
    ):
        for m in orders:
            for ell in range(m, degree + 1):
                one = [{m: 1.0} if each == ell else {} for each in range(degree + 1)]
                values = np.array(formulas.harmonic_synthesis(one, X.tolist()))
                columns.append((np.sqrt(2) if m else 1) * getattr(values, part))
    return np.array(columns).T


def exponentials(angles, shape):
    """Return the real exponentials of the reference at rows, in the order of `Frequencies`."""
    each = [np.fft.fftfreq(size, 1 / size).astype(int) for size in shape]
    ks = np.stack(np.meshgrid(*each, indexing="ij"), axis=-1).reshape(-1, len(shape))
    ks = [tuple(k.tolist()) for k in ks if next((a for a in k if a), 0) > 0]
    values = [
        np.array(formulas.fourier_synthesis({k: 1.0}, np.transpose(angles).tolist())) for k in ks
    ]
    real, imaginary = ([getattr(v, part) * np.sqrt(2) for v in values] for part in ("real", "imag"))
    return np.array([np.ones(len(angles[0])), *real, *imaginary]).T


def made(kind, n=40):
    """Return features, and what they should be by the reference."""
    rng = np.random.default_rng(0)
    order = rng.permutation(n)
    if kind == "sphere":
        X, weights = sphere(n, 3), rng.uniform(1, 2, 5)
        Z, ell = functions(X, 4), np.concatenate([
            np.arange(5), *(np.arange(m, 5) for m in range(1, 5)), *(np.arange(m, 5) for m in range(1, 5)),
        ])  # fmt: skip
        return Harmonics(angles_of(X[order]), weights, 1e-13, order), Z * np.sqrt(weights[ell])
    shape = kind
    angles = rng.uniform(0, 2 * np.pi, (len(shape), n))
    weights = np.fft.ifftn(np.fft.fftn(rng.uniform(1, 2, shape)).real).real
    found = Frequencies(list(angles[:, order]), weights, 1e-13, order)
    roots = np.sqrt(weights.ravel()[np.concatenate([found.own, found.first, found.first])])
    return found, exponentials(angles, shape) * roots


KINDS = ["sphere", (7,), (5, 3), (3, 5, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_reference(kind):
    features, Z = made(kind)
    rng = np.random.default_rng(1)
    for count in (1, 2, 3):
        V, W = rng.standard_normal((features.width, count)), rng.standard_normal((40, count))
        np.testing.assert_allclose(features.product(V), Z @ V, atol=1e-9)
        np.testing.assert_allclose(features.transposed_product(W), Z.T @ W, atol=1e-9)
    np.testing.assert_allclose(features.squares(), (Z**2).sum(axis=1), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_any_size_share_a_transform(kind):
    features, Z = made(kind)
    rng, size = np.random.default_rng(1), np.array([1e-20, 1e20, 1.0])
    V, W = rng.standard_normal((features.width, 3)), rng.standard_normal((40, 3))
    np.testing.assert_allclose(features.product(V * size) / size, Z @ V, atol=1e-9)
    np.testing.assert_allclose(features.transposed_product(W * size) / size, Z.T @ W, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gram_matrix_is_that_of_the_reference(kind):
    features, Z = made(kind)
    weights = np.random.default_rng(1).uniform(0, 2, 40)
    expected = reference.gram.gram(Z.tolist(), weights.tolist())
    found = features.weighted_gram(weights)
    np.testing.assert_allclose(np.tril(found), np.tril(expected), atol=1e-9)


def test_the_lowest_functions_are_among_the_others():
    X, rng = sphere(30, 3), np.random.default_rng(0)
    many = Harmonics(angles_of(X), np.arange(8.0) + 1, 1e-13, np.arange(30))
    few = Harmonics(angles_of(X), np.arange(4.0) + 1, 1e-13, np.arange(30))
    W = rng.standard_normal((30, 1))
    np.testing.assert_allclose(
        many.transposed_product(W)[many.among(few)], few.transposed_product(W), atol=1e-9
    )
    angles, weights = rng.uniform(0, 6, (2, 30)), np.ones((9, 7))
    many = Frequencies(angles, weights, 1e-13, np.arange(30))
    few = Frequencies(angles, cut(weights, [2, 1]), 1e-13, np.arange(30))
    assert few.width == 15
    np.testing.assert_allclose(
        many.transposed_product(W)[many.among(few)], few.transposed_product(W), atol=1e-9
    )


@pytest.mark.parametrize("place", ["sphere", "plane"])
def test_few_steps_with_the_lowest_functions(place, monkeypatch):
    monkeypatch.setattr("gzkcore.solve.far_features.LOWEST", 50)  # and the others on nodes
    X = sphere(1500, 3) if place == "sphere" else np.random.default_rng(0).uniform(size=(1500, 2))
    kernel, alphas, noise = Matern(nu=2.5, length_scale=0.3), np.array([0.1, 1.0]), np.ones(1500)
    noise[:100] = 5.0
    sums = FastSums(kernel, X, None, 1e-7)
    part = far_part(sums, alphas, noise)
    P = LowRank(part.features(), kernel.diag(X), alphas, noise, part.least)
    y = np.random.default_rng(1).standard_normal((1500, 2))
    found = conjugate_gradients(
        sums.times, y, alphas, noise=noise, preconditioner=OfColumns(P, np.arange(2)), tol=1e-6
    )
    assert found.converged.all()
    assert found.n_iter.max() < 90
    alone = conjugate_gradients(sums.times, y, alphas, noise=noise, tol=1e-6)
    assert found.n_iter.max() < alone.n_iter.max() / 2
    Z = part.features().product(np.eye(P.n_components))
    ratios = eigvalsh(kernel(X) + 0.1 * np.diag(noise), Z @ Z.T + P.mu[0] * np.diag(noise))
    assert 0.2 < ratios[0] < ratios[-1] < 20
    if place == "sphere":  # the series is below the kernel; in a box images are added
        assert np.linalg.eigvalsh(kernel(X) - Z @ Z.T)[0] > -1e-4
    assert np.isfinite(P.condition_bound(0)) == (place == "sphere")


@pytest.mark.parametrize("kind", KINDS)
def test_systems_on_nodes_are_those_of_the_rows(kind, monkeypatch):
    monkeypatch.setattr("gzkcore.solve.far_features.LOWEST", 4)
    features, Z = made(kind)
    noise, mu = np.random.default_rng(2).uniform(0.5, 2.0, len(Z)), np.array([0.1, 2.0])
    R = np.random.default_rng(3).standard_normal((Z.shape[1], 3))
    found = features.system(noise, mu).solve(R, np.array([1, 0, 1]))
    for j, value in enumerate((2.0, 0.1, 2.0)):
        system = Z.T @ (Z / noise[:, None]) + value * np.eye(Z.shape[1])
        np.testing.assert_allclose(found[:, j], np.linalg.solve(system, R[:, j]), atol=1e-6)


def test_they_are_chosen_by_cost(monkeypatch):
    X = sphere(3000, 3)
    monkeypatch.setattr(preconditioners, "ROWS_OF_FEATURES", 50)
    kernel = Matern(nu=2.5, length_scale=0.5)
    sums = FastSums(kernel, X, None, 1e-7)
    monkeypatch.setattr(preconditioners, "NEAR_ROW", np.inf)
    chosen = preconditioner_for("auto", kernel, X, [0.1], sums=sums, random_state=0)
    assert isinstance(chosen, LowRank)
    monkeypatch.setattr("gzkcore.solve.far_features.LOWEST", 4)  # systems take many steps
    monkeypatch.setattr("gzkcore.solve.far_features.MOST_NODE_STEPS", 4)
    chosen = preconditioner_for("auto", kernel, X, [0.1], sums=sums, random_state=0)
    assert not isinstance(chosen, LowRank)
    monkeypatch.undo()
    monkeypatch.setattr(preconditioners, "ROWS_OF_FEATURES", 50)
    monkeypatch.setattr(preconditioners, "NEAR_ROW", 0.0)
    monkeypatch.setattr(preconditioners, "NEAR_FACTOR", 0.0)
    monkeypatch.setattr(preconditioners, "NEAR_STEPS", 0.0)
    chosen = preconditioner_for("auto", kernel, X, [0.1], sums=sums, random_state=0)
    assert not isinstance(chosen, LowRank)


def test_kernels_of_several_distances_have_none():
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    kernel = Sum(
        [([0, 1], Gaussian(gamma=[50.0, 20.0])), ([0, 1], Gaussian(gamma=[9.0, 30.0]))]
    ).resolve(X)
    sums = FastSums(kernel, X, None, 1e-7)
    assert len(sums.parts) == 2
    assert far_part(sums, np.array([0.1]), np.ones(3000)) is None


def test_bits_do_not_depend_on_threads():
    features, _ = made("sphere")
    V, weights = np.random.default_rng(0).standard_normal((25, 3)), np.ones(40)
    found = []
    for count in (1, 2):
        with limit_threads(count):
            found.append((features.product(V), np.tril(features.weighted_gram(weights))))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_bound_is_told_where_images_are_added(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    monkeypatch.setattr(preconditioners, "ROWS_OF_FEATURES", 50)
    monkeypatch.setattr(preconditioners, "NEAR_ROW", np.inf)
    kernel = Matern(nu=2.5, length_scale=0.3)
    sums = FastSums(kernel, X, None, 1e-7)
    chosen = preconditioner_for("auto", kernel, X, [0.1], sums=sums, random_state=0)
    assert isinstance(chosen, LowRank)
    assert chosen.condition_bound(0) == np.inf


@pytest.mark.parametrize(("place", "most"), [("sphere", 14), ("plane", 65)])  # 11 and 51
def test_systems_on_nodes_take_few_steps(place, most, monkeypatch):
    monkeypatch.setattr("gzkcore.solve.far_features.LOWEST", 100)
    X = sphere(3000, 3) if place == "sphere" else np.random.default_rng(0).uniform(size=(3000, 2))
    alphas, none = np.array([0.1]), np.zeros(1, np.intp)
    sums = FastSums(Matern(nu=1.5, length_scale=0.3), X, None, 1e-7)
    features = far_part(sums, alphas, np.ones(3000)).features()
    r = np.random.default_rng(1).standard_normal((features.width, 1))
    steps = features.system(np.ones(3000), alphas)._solution(r, none, 1e-3, 100).n_iter
    assert steps <= most
