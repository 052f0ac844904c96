"""Products in linear time: the split, the series, sums beside those of tiles, and when they are used."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from points import sphere

from gzkcore import KernelOperator, KernelRidge, reference
from gzkcore._util.threads import limit_threads
from gzkcore.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Product,
    RationalQuadratic,
    SphereHeat,
    SphereMatern,
    Spherical,
    Sum,
)
from gzkcore.kernels import fast_sums as module
from gzkcore.kernels.fast_sums import FastSums, cosine_coefficients
from gzkcore.kernels.split import NODES, ORDER, Distance, KernelSplit, NoSplitError
from gzkcore.solve import products

finufft = pytest.importorskip("finufft")
formulas = reference.fast_sums


@pytest.fixture
def always(monkeypatch):
    """Let sums in linear time be chosen for few rows."""
    monkeypatch.setattr(module, "LEAST_VALUES", 1)
    monkeypatch.setattr(module, "SETUP", -np.inf)


def exponential_of_squares(length, count):
    """Return exp(-s / length) and its derivatives by s, as functions of s."""
    return [lambda s, j=j: (-1 / length) ** j * np.exp(-s / length) for j in range(count)]


def test_the_smooth_part_is_the_taylor_polynomial_of_the_reference():
    derivatives = exponential_of_squares(2.0, ORDER)

    def kernel(r):
        return np.exp(-r * r / 2.0)

    split = KernelSplit.at(kernel, 0.8, 1e-9)
    far = formulas.smooth_part(kernel, 0.8, [each(0.64) for each in derivatives])
    r = np.linspace(0, 2, 21)
    # The polynomial is linear in the kernel's values at some nodes. Each is known to an ulp.
    units = [
        KernelSplit.at(lambda r, i=i: np.eye(1, r.size, i % r.size)[0], 0.8, 1e-9)
        for i in range(NODES + 1)
    ]
    ulps = np.abs([unit.far(r[r < 0.8]) for unit in units]).sum(axis=0).max()
    assert ulps * np.finfo(float).eps < 1e-8
    wanted = [far(one) for one in r]
    np.testing.assert_allclose(split.far(r), wanted, rtol=0, atol=ulps * np.finfo(float).eps)
    np.testing.assert_allclose(split.near(r**2), kernel(r) - split.far(r), rtol=0, atol=1e-15)
    assert (split.near(r[r >= 0.8] ** 2) == 0).all()


@pytest.mark.parametrize("kernel", [Matern(0.5, 0.3), Matern(1.5, 0.3), Matern(2.5, 0.3)])
def test_the_compact_polynomial_is_the_near_part(kernel):
    split = KernelSplit.at(lambda r: kernel(r[:, None], np.zeros((1, 1)))[:, 0], 0.2, 1e-8)
    r = np.linspace(0, 0.2, 101)
    rest = 1 - r / 0.2
    found = rest**ORDER * np.polynomial.polynomial.polyval(rest, split.compact)
    np.testing.assert_allclose(found, split.near(r**2), rtol=0, atol=1e-9)


def test_series_of_cosines_are_those_of_the_reference():
    values = np.exp(np.cos(np.pi * np.arange(13) / 12))
    found = cosine_coefficients(values)
    np.testing.assert_allclose(
        found, formulas.cosine_coefficients(values.tolist()), rtol=0, atol=1e-14
    )


def test_coefficients_in_a_box_are_those_of_the_reference():
    """The periodic box of a Gaussian, in two columns of different extent."""
    X = np.array([[0.0, 0.0], [1.0, 0.5]])
    distance = Distance((0, 1), (1.0, 1.0), Gaussian(20.0).tile_form(2))
    box = module.Box(distance, X, X, 1e-6)
    split = KernelSplit.at(box.profile, 0.0, 1e-6)
    size = (4, 3)
    expected = formulas.box_coefficients(lambda r: np.exp(-20 * r * r), box.sides, size)
    found = box.weights(split, size)
    for k, value in expected.items():
        assert abs(found[k] - value) < 1e-12


PLANE = [
    Matern(0.5, 0.2), Matern(1.5, 0.1), Matern(2.5, 3.0), Matern(0.8, 0.3), Gaussian(20.0),
    Gaussian(1e-3), RationalQuadratic(0.7, 0.5), Exponential(4.0),
    Sum([(None, Matern(1.5, 0.2)), (None, Gaussian(0.5))], [0.3, 2.0]),
]  # fmt: skip


def largest_error(kernel, X, Y, V, *tols):
    """Return the largest error of sums relative to their tol times k(x, x) sum |v|."""
    expected = KernelOperator(kernel, X, Y, tol=0).times(V)
    unit = float(kernel.diag(X[:1])[0]) * np.abs(V).sum(axis=0)
    found = [np.abs(FastSums(kernel, X, Y, tol).times(V) - expected) / tol for tol in tols]
    return float((np.array(found) / unit).max())


@pytest.mark.parametrize("kernel", PLANE, ids=repr)
@pytest.mark.parametrize("dim", [1, 2])
def test_sums_in_columns_are_within_tol(kernel, dim):
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(3, 4, (700, dim)), rng.uniform(3.2, 4.5, (300, dim))
    kernel = as_parts(kernel, dim)
    assert largest_error(kernel, X, None, rng.standard_normal((700, 3)), 1e-5, 1e-9) < 1
    assert largest_error(kernel, X, Y, rng.standard_normal((300, 1)), 1e-5, 1e-9) < 1


def as_parts(kernel, dim):
    """Give the parts of a sum all columns."""
    if not isinstance(kernel, Sum):
        return kernel
    return Sum([(list(range(dim)), part) for _, part in kernel.parts], kernel.weights)


@pytest.mark.parametrize(
    "kernel",
    [Matern(1.5, 0.3), Gaussian(8.0), Matern(2.5, [0.3, 0.5, 0.4])],
    ids=repr,
)
def test_sums_in_three_columns_are_within_tol(kernel):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (600, 3))
    assert largest_error(kernel, X, None, rng.standard_normal((600, 2)), 1e-5) < 1


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(0.5, 0.2), Matern(1.5, 0.1), Matern(0.8, 0.5), Gaussian(0.5), SphereMatern(1.5, 3.0),
        SphereHeat(0.1), RationalQuadratic(0.7, 1.0),
    ],
    ids=repr,
)  # fmt: skip
def test_sums_on_the_sphere_are_within_tol(kernel):
    """At both poles, on the equator, at duplicates and at opposite points, too."""
    rng = np.random.default_rng(2)
    X = np.concatenate([np.eye(3), -np.eye(3), sphere(400, 3), sphere(1, 3).repeat(5, axis=0)])
    assert largest_error(kernel, X, None, rng.standard_normal((len(X), 3)), 1e-5, 1e-9) < 1
    assert largest_error(kernel, X, -X[:9], rng.standard_normal((9, 1)), 1e-5, 1e-9) < 1


def test_one_place_and_one_row():
    assert largest_error(Matern(1.5, 0.3), np.eye(3)[:1], None, np.ones((1, 1)), 1e-9) < 1
    together = np.repeat(np.eye(3)[:1], 400, axis=0)
    assert largest_error(Matern(1.5, 0.3), together, None, np.ones((400, 1)), 1e-9) < 1


def test_a_kernel_far_shorter_than_the_sphere_is_not_lost():
    together = np.repeat(1000.0 * sphere(1, 3), 300, axis=0)
    found = FastSums(Spherical(0.015), together, None, 1e-5).times(np.ones((300, 1)))
    np.testing.assert_allclose(found, 300.0, rtol=1e-4)


def test_vectors_of_different_size_share_a_transform_and_no_error():
    X, V = sphere(500, 3), np.random.default_rng(0).standard_normal((500, 2)) * [1e9, 1e-9]
    assert largest_error(Matern(1.5, 0.3), X, None, V, 1e-8) < 1


def some_columns(n):
    """Return unit vectors, of which a product is columns of K."""
    return np.eye(n)[:, :: n // 20]


@pytest.mark.parametrize("weight", [1e-12, 1e6, 1e12])
def test_tol_is_relative_to_the_kernel(weight):
    kernel, X = Sum([([0, 1, 2], Matern(1.5, 0.3))], [weight]), sphere(500, 3)
    assert largest_error(kernel, X, None, some_columns(500), 1e-6) < 1
    X *= np.random.default_rng(0).uniform(0.9, 1.1, (500, 1))
    assert largest_error(kernel, X, None, some_columns(500), 1e-6) < 1


@pytest.mark.parametrize("ratio", [1e6, 1e16])
def test_lengths_of_any_ratio_keep_their_digits(ratio):
    lengths = np.array([1 / ratio, 1.0])
    X = np.random.default_rng(0).random((500, 2)) * lengths
    assert largest_error(Matern(1.5, lengths), X, None, some_columns(500), 1e-10) < 1


def test_an_offset_of_columns_costs_no_digits():
    far = 1e8 + np.random.default_rng(0).random((500, 2))
    kernel, V = Matern(0.5, [0.2, 0.37]), some_columns(500)
    found = FastSums(kernel, far, None, 1e-9).times(V)
    np.testing.assert_allclose(found, kernel(far - 1e8) @ V, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kernel", [Matern(0.5, 0.01), Matern(2.5, 0.02)], ids=repr)
@pytest.mark.parametrize("dim", [1, 2])
def test_each_value_is_within_tol_in_dense_and_in_sparse_tiles(kernel, dim):
    """In single precision polynomials of large coefficients and rows of wide tiles are rounded."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.1 * rng.random((1800, dim)), rng.random((1160, dim))])
    X = np.concatenate([X, X[-40:] + 1e-4 * rng.random((40, dim))])
    for tol in (1e-5, 1e-7):
        assert largest_error(kernel, X, None, some_columns(3000), tol) < 1


def test_rows_of_one_place_have_no_box():
    with pytest.raises(NoSplitError):  # a box has no extent
        FastSums(Gaussian(1.0), np.ones((400, 2)), None, 1e-9)


@pytest.mark.parametrize(
    "kernel",
    [Laplacian(1.0), Product([([0], Matern(1.5)), ([1], Gaussian(0.5))]), Spherical(0.7)],
    ids=repr,
)
def test_other_kernels_stay_with_tiles(kernel):
    """Of no single distance, or not smooth beyond 0."""
    with pytest.raises(NoSplitError):
        FastSums(kernel, np.random.default_rng(0).random((50, 3)), None, 1e-6)


@given(
    st.integers(0, 2**32 - 1), st.floats(-1.5, 1.0), st.floats(-8.0, -5.0), st.sampled_from([1, 2])
)
def test_random_sums_are_within_tol(seed, log_length, log_tol, dim):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rng.integers(3, 300), dim))
    X[:: rng.integers(3, 9)] = X[0]  # duplicates
    V = rng.standard_normal((len(X), 2))
    try:
        error = largest_error(Matern(1.5, 10**log_length), X, None, V, 10**log_tol)
    except NoSplitError:  # a kernel far shorter than the distances of few rows stays with tiles
        reject()
    assert error < 1


def test_bits_do_not_depend_on_threads():
    rng, X = np.random.default_rng(3), sphere(3000, 3)
    V = rng.standard_normal((3000, 5))
    results = []
    for count in (1, 2, 3):
        with limit_threads(count):
            results.append(FastSums(Matern(1.5, 0.3), X, None, 1e-6).times(V))
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


@pytest.mark.usefixtures("always")
def test_a_fit_is_that_of_tiles(monkeypatch):
    rng = np.random.default_rng(4)
    X, new = sphere(6000, 3), sphere(500, 3)
    y = X[:, 0] * np.sin(5 * X[:, 1]) + 0.1 * rng.standard_normal(6000)
    used = []
    times = FastSums.times
    monkeypatch.setattr(FastSums, "times", lambda self, V: used.append(1) or times(self, V))
    settings = {"alpha": 0.1, "random_state": 0, "fit_intercept": True, "tol": 1e-6}
    fast = KernelRidge(Matern(1.5, 0.5), **settings).fit(X, y)
    mean = fast.predict(new)
    assert used
    monkeypatch.setattr(products.FastSums, "of", lambda *_: None)
    tiles = KernelRidge(Matern(1.5, 0.5), **settings).fit(X, y)
    assert fast.residual_ <= 1e-6
    np.testing.assert_allclose(mean, tiles.predict(new), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "dim", "n_products", "linear"),
    [
        (Gaussian(50.0), 2, 10, True),
        (Gaussian(50.0), 2, 1, False),  # the set-up takes longer than a product by tiles
        (Matern(1.5, 0.2), 3, 10, False),
        (Matern(1.5, 0.2), 2, 10, True),
    ],
)
def test_the_way_taken_depends_on_the_products_to_come(
    kernel, dim, n_products, linear, monkeypatch
):
    monkeypatch.setattr(module, "ISA", "v4")
    X = np.random.default_rng(0).random((20_000, dim))
    sums = FastSums.of(kernel, X, None, 4e-6, 1, n_products)
    assert (sums is not None) is linear


def test_tiles_multiply_by_sixteen_vectors_at_once():
    costs = [module.value_cost(Matern(1.5).tile_form(2), count) for count in (1, 2, 16, 17)]
    assert costs[0] < costs[1] == costs[2] < costs[3]
    assert module.value_cost(Gaussian(1.0).tile_form(2)) < costs[0]


def test_without_finufft_tiles_remain(monkeypatch):
    monkeypatch.setattr(module, "has_finufft", lambda: False)
    monkeypatch.setattr(products, "has_finufft", lambda: False)
    X = np.repeat(np.random.default_rng(0).random((50, 2)), 400, axis=0)
    assert FastSums.of(Gaussian(1.0), X, None, 1e-6) is None
    monkeypatch.setattr(products, "FINUFFT_ROWS", 5000)
    with pytest.warns(UserWarning, match=r"20,000 rows .* pip install 'gzkcore\[maps\]'"):
        KernelRidge(Gaussian(1.0), random_state=0).fit(X, X[:, 0])


@pytest.mark.parametrize("far", [0, 3])
@pytest.mark.parametrize("n", [1, 7, 255, 257, 3000])
def test_rows_of_a_run_lie_together(n, far):
    X = np.random.default_rng(0).uniform(size=(n, 2))
    X[:far] += 1e4
    order = module._order(X, Distance((0, 1), (1.0, 1.0), ()))
    assert sorted(order.tolist()) == list(range(n))
    placed = X[order][: n // module.TILE * module.TILE].reshape(-1, module.TILE, 2)
    areas = np.prod(np.ptp(placed, axis=1), axis=1)
    assert n < 3000 or np.median(areas) < 2.5 * module.TILE / n


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("preconditioner", ["auto", 500])
def test_the_residual_of_weighted_rows_is_the_true_one(preconditioner):
    rng = np.random.default_rng(0)
    X, weight = rng.uniform(size=(10_000, 2)), 10.0 ** rng.uniform(-5, 5, 10_000)
    y = np.sin(7 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))
    kernel = Gaussian(0.5 / 0.3**2)
    model = KernelRidge(kernel, preconditioner=preconditioner, random_state=0)
    coef = model.fit(X, y, sample_weight=weight).dual_coef_
    left = [
        y[rows] - kernel(X[rows], X) @ coef - coef[rows] / weight[rows]
        for rows in np.split(np.arange(len(X)), 10)
    ]
    error = np.linalg.norm(np.concatenate(left)) / np.linalg.norm(y)
    assert model.residual_ == pytest.approx(error, rel=0.2, abs=1e-5)
