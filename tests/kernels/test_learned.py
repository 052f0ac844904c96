"""Learned kernels: the criterion is the reference's, the gradient is its slope, all fits resolve it."""

import math

import numpy as np
import pandas as pd
import pytest
from naming import named
from points import gaussian, sphere
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tolerances import LEARNED

import gzkcore.features.dask
from gzkcore import (
    BlockFourierFeatures,
    FastfoodFeatures,
    GegenbauerFeatures,
    KernelFeatures,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    MaclaurinFeatures,
    NystromFeatures,
    Polynomial,
    PolySketchFeatures,
    Product,
    ProductFeatures,
    ProductMatern,
    RandomFeaturePCA,
    RandomFeatureRidge,
    RandomFeatureRidgeClassifier,
    RandomFeatureRidgeClassifierCV,
    RandomFeatureRidgeCV,
    RandomFourierFeatures,
    Sum,
    learn_kernel,
    reference,
)
from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas, limit_threads
from gzkcore.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
    SphereHeat,
    SphereMatern,
    learned_parts,
)
from gzkcore.kernels.learned import candidates, standard_targets
from gzkcore.kernels.learned_parts import IGNORED, part_of
from gzkcore.kernels.marginal_likelihood import (
    LENGTH_SPREAD,
    NOISE_MIDDLE,
    NOISE_SPREAD,
    Block,
    ConditionalCriterion,
    Criterion,
)

learned_criterion = reference.learned.learned_criterion
learned_gradient = reference.learned.learned_gradient

PROFILES = {  # f(r) and -f'(r) / r
    "gaussian": (lambda r: math.exp(-r * r / 2), lambda r: math.exp(-r * r / 2)),
    "matern": (
        lambda r: (1 + 3**0.5 * r) * math.exp(-(3**0.5) * r),
        lambda r: 3 * math.exp(-(3**0.5) * r),
    ),
    "exponential": (lambda r: math.exp(-r), lambda r: math.exp(-r) / r),
}
SHIFT_INVARIANT = [
    Gaussian("learn"),
    Exponential("learn"),
    Laplacian("learn"),
    *(Matern(nu, "learn") for nu in (0.5, 0.8, 1.5, 2.2, 2.5, 3.5, math.inf)),
    RationalQuadratic(0.7, "learn"),
    *(ProductMatern(nu, "learn") for nu in (1.5, 2.5)),
]


def table(n=300, dim=3, noise=0.1):
    """Rows of which the first column alone matters, and targets."""
    X = gaussian(n, dim)
    return X, np.sin(3 * X[:, 0]) + noise * gaussian(n, 1, seed=1)[:, 0]


def criterion_of(kernel, X, Y):
    every = np.arange(len(X))
    return Criterion([Block(part_of(kernel, X, every), standard_targets(Y, every))])


# ---- the criterion


@pytest.mark.parametrize("few", [0, learned_parts.FEW])
@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_criterion_and_gradient_are_the_reference(name, n_targets, few, monkeypatch):
    """learned_criterion and learned_gradient, of standardised columns, by tiles and by pairs."""
    monkeypatch.setattr(learned_parts, "FEW", few)
    X, Y = gaussian(12, 3), gaussian(12, n_targets, seed=1)
    X, Y = (V / V.std(axis=0) for V in (X - X.mean(axis=0), Y - Y.mean(axis=0)))
    kernel = {"gaussian": Gaussian("learn"), "matern": Matern(1.5, "learn"),
              "exponential": Exponential("learn")}[name]  # fmt: skip
    profile, slope = PROFILES[name]
    lengths, noise = np.array([0.7, 1.5, 4.0]), 0.3
    theta = np.log([*(lengths / math.sqrt(3)), noise])
    value, gradient = criterion_of(kernel, X, Y)(theta)
    expected = learned_criterion(profile, lengths, noise, X, Y)
    assert value == pytest.approx(expected, abs=LEARNED["value"](length=12))
    np.testing.assert_allclose(
        gradient, learned_gradient(profile, slope, lengths, noise, X, Y),
        rtol=0, atol=LEARNED["gradient"](length=12),
    )  # fmt: skip


@pytest.mark.parametrize(
    "kernel",
    [
        *SHIFT_INVARIANT,
        Gaussian("learn-isotropic"),
        Laplacian("learn-isotropic"),
        ProductMatern(1.5, "learn", [0, 1, 0]),
        ProductMatern(2.5, "learn-isotropic", [0, 0, 1]),
        Product([([0, 1], Gaussian("learn")), ([1, 2], Matern(0.5, "learn")), ([0], Polynomial())]),
        Sum([([0, 2], Gaussian("learn")), ([1], Product(Laplacian("learn-isotropic")))], [0.3, 2]),
    ],
    ids=named,
)
@pytest.mark.parametrize("few", [0, learned_parts.FEW])
def test_gradient_by_differences(kernel, few, monkeypatch):
    monkeypatch.setattr(learned_parts, "FEW", few)
    X, _ = table(60)
    X = X * [1.0, 10.0, 0.1] + [0.0, 5.0, 100.0]
    criterion = criterion_of(kernel, X, gaussian(60, 2, seed=2))
    check_gradient(criterion, np.append(0.3 * np.cos(np.arange(criterion.part.low.size)), -2.0))


@pytest.mark.parametrize("kernel", [Matern(1.5, "learn"), Laplacian("learn")], ids=named)
def test_columns_of_a_group_share_a_length(kernel):
    X, Y = table(60)
    X, every = np.hstack([X[:, :2], 2.0 * X[:, :2], np.zeros((60, 1))]), np.arange(60)
    part = part_of(kernel, X, every, None, np.array([1, 1, 0, -1, 1]))
    criterion = Criterion([Block(part, standard_targets(Y, every))])
    check_gradient(criterion, np.array([0.2, -0.3, -2.0]))
    first, second, third, *rest = part.kernel(np.zeros(2)).scale()
    assert first == second
    assert first != third
    assert rest == [1 / IGNORED, first]  # a level that no row has is as far as others from these


def check_gradient(criterion, theta):
    found, h = criterion(theta)[1], 1e-3
    for i in range(theta.size):
        step = h * (np.arange(theta.size) == i)
        near, far = (
            criterion(theta + width * step)[0] - criterion(theta - width * step)[0]
            for width in (1, 2)
        )
        assert found[i] == pytest.approx(
            (8 * near - far) / (12 * h), rel=1e-8, abs=1e-8 * np.abs(found).max()
        )


# ---- given the targets of near rows


def conditional(kernel, X, Y, n_given, weight=None, groups=None):
    """Return the criterion of blocks of 8 rows, whose first targets are given."""
    every = np.arange(len(X))
    blocks = np.random.default_rng(0).permutation(every).reshape(-1, 8)
    spread = None if weight is None else weight.mean() / weight[blocks]
    part = part_of(kernel, X, every, None, groups).on_blocks(X, blocks)
    targets = standard_targets(Y, every)
    return ConditionalCriterion(part, targets[blocks], spread, n_given), blocks, targets


def priors(theta):
    off = np.append(theta[:-1] / LENGTH_SPREAD, (theta[-1] - math.log(NOISE_MIDDLE)) / NOISE_SPREAD)
    return float(off @ off) / 2


@pytest.mark.parametrize("n_given", [0, 1, 5])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_conditional_criterion_is_the_reference(n_given, n_targets):
    X, Y = gaussian(24, 3), gaussian(24, n_targets, seed=1)
    criterion, blocks, targets = conditional(Matern(1.5, "learn"), X, Y, n_given)
    theta = np.array([0.2, -0.5, 1.0, math.log(0.3)])
    kernel = part_of(Matern(1.5, "learn"), X, np.arange(24)).kernel(theta[:-1])
    expected = sum(
        reference.near_rows.conditional_criterion(
            lambda p, q: float(kernel(p[None], q[None])[0, 0]),
            [(X[rows], y[rows], n_given) for rows in blocks],
            0.3,
        )
        for y in targets.T
    )
    value = criterion(theta)[0] - priors(theta)
    assert value == pytest.approx(expected, abs=LEARNED["value"](length=24))


def test_weights_of_blocks_are_those_of_their_noise():
    X, Y = gaussian(24, 3), gaussian(24, 1, seed=1)
    weight = np.random.default_rng(3).uniform(0.5, 2, 24)
    criterion, blocks, targets = conditional(Gaussian("learn"), X, Y, 5, weight)
    theta = np.array([0.2, -0.5, 1.0, math.log(0.3)])
    kernel = part_of(Gaussian("learn"), X, np.arange(24)).kernel(theta[:-1])
    squares, log_det = 0.0, 0.0
    for rows in blocks:
        M = kernel(X[rows]) + np.diag(0.3 * weight.mean() / weight[rows])
        y, solved = targets[rows, 0], np.linalg.solve(M[:5, :5], M[:5, 5:])
        error, S = y[5:] - solved.T @ y[:5], M[5:, 5:] - M[5:, :5] @ solved
        squares, log_det = (
            squares + error @ np.linalg.solve(S, error),
            log_det + np.linalg.slogdet(S)[1],
        )
    expected = 9 / 2 * math.log(squares / 9) + log_det / 2 + priors(theta)
    assert criterion(theta)[0] == pytest.approx(expected, abs=LEARNED["value"](length=24))


@pytest.mark.parametrize(
    "kernel",
    [
        *SHIFT_INVARIANT,
        Laplacian("learn-isotropic"),
        Gaussian(0.5),
        SphereMatern(2.5, "learn"),
        Product([([0, 1], Gaussian("learn")), ([1, 2], Matern(0.5, "learn")), ([0], Polynomial())]),
        Product([([0, 1, 2], SphereMatern(1.5, "learn")), ([0], Matern(1.5, "learn"))]),
        Sum([([0, 2], Gaussian("learn")), ([1], Product(Laplacian("learn-isotropic")))], [0.3, 2]),
    ],
    ids=named,
)
def test_conditional_gradient_by_differences(kernel):
    X = sphere(40, 3) if "Sphere" in str(kernel) else gaussian(40, 3) * [1.0, 10.0, 0.1]
    weight = np.random.default_rng(3).uniform(0.5, 2, 40)
    criterion, *_ = conditional(kernel, X, gaussian(40, 2, seed=2), 5, weight)
    check_gradient(criterion, np.append(0.3 * np.cos(np.arange(criterion.part.low.size)), -2.0))


@pytest.mark.parametrize(
    "kernel",
    [Laplacian("learn"), Product([([0, 1], Matern(1.5, "learn")), ([2, 3, 4], Gaussian("learn"))])],
    ids=named,
)
def test_blocks_have_groups_of_columns(kernel):
    X = np.hstack([gaussian(40, 4), np.zeros((40, 1))])
    groups = np.array([1, 1, 0, -1, 0])
    criterion, *_ = conditional(kernel, X, gaussian(40, 1, seed=2), 5, groups=groups)
    assert criterion.part.low.size == 2
    check_gradient(criterion, np.array([0.2, -0.3, -2.0]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [SphereMatern(0.5, "learn"), SphereMatern(2.5, "learn"), SphereHeat("learn")],
    ids=named,
)
def test_gradient_by_differences_on_the_sphere(kernel):
    X = sphere(50, 3)
    X[1], X[2] = X[0], -X[0]
    criterion = criterion_of(kernel, X, gaussian(50, 2, seed=2))
    for theta in ([-1.5, -2.0], [0.3, -1.0]):
        check_gradient(criterion, np.array(theta))
    # A rough kernel's series, cut at degree 4,096, itself is off by so much.
    exact = criterion.part.kernel(np.array([-1.0]))(X)
    np.testing.assert_allclose(criterion.part.matrix(np.array([-1.0]), float), exact, atol=1e-4)


@pytest.mark.parametrize(
    "kernel",
    [
        *SHIFT_INVARIANT,
        SphereMatern(1.5, "learn"),
        Product([([0, 1], Gaussian("learn")), ([1, 2], Matern(0.5, "learn")), ([0], Polynomial())]),
        Sum([([0, 2], Gaussian("learn")), ([1], Product(Laplacian("learn-isotropic")))], [0.3, 2]),
    ],
    ids=named,
)
@pytest.mark.parametrize("noise", [0.001, 0.1])
def test_single_precision_is_right_to_a_share_of_what_settles(kernel, noise):
    X, Y = table(300)
    X = sphere(300, 3) if isinstance(kernel, SphereMatern) else X
    criterion = criterion_of(kernel, X, Y)
    theta = np.append(np.zeros(criterion.part.low.size), math.log(noise))
    value, gradient = criterion(theta)
    criterion.settled = 2.1 * criterion.rounding / noise
    quick, about = criterion(theta)
    assert quick != value
    assert quick == pytest.approx(value, abs=criterion.settled * len(X) / 2)
    np.testing.assert_allclose(about, gradient, rtol=1e-3, atol=criterion.settled * len(X))
    criterion.settled /= 2  # too little for single precision
    assert criterion(theta)[0] == value


def test_single_precision_knows_how_large_values_are():
    """Those of a polynomial of columns that are not scaled are beyond it."""
    X, Y = table(300)
    kernel = Product([([0, 2], Gaussian("learn")), ([1], Polynomial(degree=2))])
    criterion = criterion_of(kernel, X * [1.0, 1000.0, 1.0], Y)
    theta = np.array([0.0, 0.0, math.log(0.3)])
    value, _ = criterion(theta)
    criterion.settled = 1e-3
    assert criterion(theta)[0] == value
    with pytest.raises(ValueError, match="singular to rounding; scale the columns"):
        learn_kernel(X * [1.0, 1e4, 1.0], Y, kernel)


def test_weighted_blocks_are_the_reference():
    """learned_criterion and learned_gradient, where the first block has unit columns."""
    X, Y = gaussian(20, 3), gaussian(20, 2, seed=1)
    X = (X - X[:12].mean(axis=0)) / X[:12].std(axis=0)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    weight, lengths, noise = 1.0 + np.arange(20) % 4, np.array([0.7, 1.5, 4.0]), 0.3
    rows = [np.arange(12), np.arange(12, 20)]
    first = part_of(Matern(1.5, "learn"), X, rows[0])
    criterion = Criterion([
        Block(part, Y[block], 1 / weight[block])
        for part, block in zip([first, first.on(X, rows[1])], rows, strict=True)
    ])  # fmt: skip
    theta, (profile, slope) = np.log([*(lengths / math.sqrt(3)), noise]), PROFILES["matern"]
    given = lengths, noise, X, Y, weight, np.arange(20) >= 12
    value, gradient = criterion(theta)
    assert value == pytest.approx(
        learned_criterion(profile, *given), abs=LEARNED["value"](length=20)
    )
    np.testing.assert_allclose(
        gradient, learned_gradient(profile, slope, *given),
        rtol=0, atol=LEARNED["gradient"](length=20),
    )  # fmt: skip
    check_gradient(criterion, theta)


def test_equal_rows_have_a_gradient():
    """Where rows are equal the slope of a rough kernel has a pole."""
    X, y = table(40)
    for kernel in (Matern(0.5, "learn"), Matern(0.3, "learn"), Laplacian("learn")):
        twice = criterion_of(kernel, np.repeat(X, 2, axis=0), np.repeat(y, 2))
        theta, h = np.array([0.1, -0.2, 0.3, -2.0]), 1e-4
        found = twice(theta)[1]
        step = np.array([h, 0.0, 0.0, 0.0])
        slope = (twice(theta + step)[0] - twice(theta - step)[0]) / (2 * h)
        assert found[0] == pytest.approx(slope, rel=1e-5)
    assert np.isfinite(learn_kernel(np.repeat(X, 2, axis=0), np.repeat(y, 2), "matern").value)


# ---- what is found


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=named)
def test_the_column_that_matters_is_found(kernel):
    X, y = table(150)
    found = learn_kernel(X, y, kernel)
    assert found.length_scale.shape == (3,)
    assert found.length_scale[1:].min() > 4 * found.length_scale[0]
    np.testing.assert_array_equal(found.rows, np.arange(150))
    assert not any(isinstance(value, str) for value in found.kernel.get_params().values())
    assert np.ndim(found.kernel.scale()) == 1
    lengths, noise = found.length_scale, found.noise
    again = criterion_of(kernel, X, y)
    theta = np.log([*(lengths / (math.sqrt(3) * X.std(axis=0))), noise])
    assert again(theta)[0] == pytest.approx(found.value, rel=1e-12)


def test_columns_and_targets_of_any_size():
    X, y = table()
    plain = learn_kernel(X, y, "gaussian")
    sizes, offset = np.array([1e-6, 1.0, 1e5]), np.array([1e-3, -7.0, 1e7])
    moved = learn_kernel(X * sizes + offset, 1e8 * y - 1e9, Gaussian())
    np.testing.assert_allclose(moved.length_scale, plain.length_scale * sizes, rtol=1e-3)
    assert moved.noise == pytest.approx(plain.noise, rel=1e-3)
    assert plain.kernel.gamma == pytest.approx(0.5 / plain.length_scale**2)
    for size in (1e300, 1e-300):
        same = learn_kernel(X, size * y, Gaussian())
        np.testing.assert_allclose(same.length_scale, plain.length_scale, rtol=1e-3)


@pytest.mark.parametrize("size", [1e-140, 1e28, 1e30, 1e40, 1e140])
@pytest.mark.parametrize("kernel", ["gaussian", "matern"])
def test_columns_that_are_huge_or_tiny_learn_the_same_lengths(kernel, size):
    X, y = table(40)
    plain, other = (learn_kernel(x, y, kernel, random_state=0) for x in (X, X * size))
    np.testing.assert_allclose(other.length_scale / size, plain.length_scale, rtol=1e-3)


def test_one_length_for_all():
    X, y = table()
    found = learn_kernel(X, y, Matern(1.5, "learn-isotropic"))
    assert isinstance(found.length_scale, float)
    assert found.kernel.length_scale == found.length_scale
    each = learn_kernel(X, y, Matern(1.5, "learn"))
    assert each.value < found.value


def test_smoothness_is_the_likeliest():
    X, y = table(200)
    both = learn_kernel(X, y, Matern("learn", "learn"))
    values = {nu: learn_kernel(X, y, Matern(nu, "learn")).value for nu in (0.5, 1.5, 2.5, math.inf)}
    assert both.kernel.nu == min(values, key=values.get) == math.inf
    assert both.value == pytest.approx(values[math.inf], rel=1e-4)
    rough = learn_kernel(X, np.sign(X[:, 0]), Matern("learn", "learn"))
    assert rough.kernel.nu == 0.5
    assert learn_kernel(X, y, Matern("learn", 0.4)).length_scale is None


def test_several_targets_share_their_lengths():
    X, y = table()
    Y = np.column_stack([y, np.cos(2 * X[:, 1]), np.full(len(y), 3.0)])
    found = learn_kernel(X, Y, "matern")
    assert found.length_scale[2] > 3 * found.length_scale[:2].max()
    same = learn_kernel(X, np.column_stack([y, -5 * y]), "matern")
    assert same.length_scale[0] == pytest.approx(learn_kernel(X, y, "matern").length_scale[0], 0.2)


def test_labels_are_targets():
    X, _ = table()
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    names = np.array(["low", "middle", "high"])[classes]
    found = learn_kernel(X, names, "matern")
    assert found.length_scale[1:].min() > 3 * found.length_scale[0]
    one_hot = learn_kernel(X, np.where(classes[:, None] == [1, 2, 0], 1.0, -1.0), "matern")
    np.testing.assert_allclose(found.length_scale, one_hot.length_scale, rtol=1e-6)
    two = learn_kernel(X, X[:, 0] > 0, "matern")
    np.testing.assert_allclose(
        two.length_scale, learn_kernel(X, np.sign(X[:, 0]), "matern").length_scale, rtol=1e-6
    )


def test_constant_columns_have_no_influence():
    X, y = table()
    wide = np.column_stack([X[:, 0], np.full(len(X), 4.0), X[:, 1:]])
    plain, found = learn_kernel(X, y, "gaussian"), learn_kernel(wide, y, "gaussian")
    assert found.length_scale[1] == np.inf
    np.testing.assert_allclose(found.length_scale[[0, 2, 3]], plain.length_scale, rtol=1e-6)
    moved = wide.copy()
    moved[:, 1] += 1e6
    np.testing.assert_allclose(found.kernel(wide, moved), plain.kernel(X, X), rtol=1e-12)
    one = learn_kernel(wide, y, Gaussian("learn-isotropic"))
    assert one.length_scale == pytest.approx(
        learn_kernel(X, y, Gaussian("learn-isotropic")).length_scale
    )


def test_parts_learn_together():
    X, _ = table(200)
    y = np.sin(3 * X[:, 0]) * np.cos(X[:, 2])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kernel = Product([(["a", "b"], Gaussian("learn")), (["c"], Matern(1.5, "learn-isotropic"))])
    both, one = learn_kernel(frame, y, kernel).length_scale
    assert both.shape == (2,)
    assert both[1] > 3 * both[0]
    assert one > both[0]
    fixed = Product([([0], "gaussian"), ([1, 2], Gaussian("learn"))])
    resolved = learn_kernel(X, y, fixed)
    assert resolved.length_scale[0] is None
    assert resolved.kernel.parts[0][1].gamma == Gaussian("scale").resolve(X[:, :1]).gamma
    everything = learn_kernel(X, y, Product([([0], "gaussian"), ([1, 2], "matern")]))
    assert all(length is not None for length in everything.length_scale)
    total = learn_kernel(X, X[:, 0] ** 2 + X[:, 1], Sum([([0, 1], "gaussian"), ([2], "matern")]))
    assert total.length_scale[1][0] > 1
    assert np.isfinite(total.kernel(X)).all()


# ---- rows of every kind


def test_rows_are_a_random_choice():
    X, y = table(400)
    few = [learn_kernel(X, y, "matern", n_rows=50, random_state=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(few[0].rows, few[1].rows)
    assert few[0].value == few[1].value
    assert few[0].rows.tolist() != few[2].rows.tolist()
    assert few[0].rows.size == np.unique(few[0].rows).size == 50


def test_sparse_single_and_frames_are_the_same_rows():
    X, y = table()
    X[np.abs(X) < 0.5] = 0
    X = X.astype(np.float32)
    dense = learn_kernel(X, y, "gaussian")
    for rows, targets in [
        (sparse.csr_array(X), y),
        (sparse.coo_array(X), y),
        (pd.DataFrame(X), pd.Series(y)),
        (X.tolist(), y.tolist()),
        (X.astype(np.float64), y[:, None]),
    ]:
        np.testing.assert_array_equal(learn_kernel(rows, targets, "gaussian").length_scale,
                                      dense.length_scale)  # fmt: skip


def test_more_columns_than_rows():
    X, _ = table(40, 100)
    found = learn_kernel(X, 3 * X[:, 0], "matern")
    assert np.isfinite(found.length_scale).all()
    assert found.length_scale.argmin() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.full((300, 3), np.nan)}, "Input X contains NaN.*row 0, column 0"),
        ({"y": np.full(300, np.nan)}, "Input y contains NaN"),
        ({"y": np.ones(300)}, "y is constant on the 300 rows used"),
        ({"y": ["one"] * 300}, "y is constant"),
        ({"y": np.ones(299)}, "X has 300 rows, but y has 299"),
        ({"y": np.ones((300, 2, 2))}, "y has shape"),
        ({"X": np.ones((300, 3))}, "all columns of X are constant on the 300 rows"),
        ({"X": 1e200 * gaussian(300, 3)}, "above 1e150.*scale the columns"),
        ({"X": np.ones((1, 3)), "y": [1.0]}, "n_samples=1.*2 rows or more"),
        ({"n_rows": 1}, "n_rows=1 is too small"),
        ({"kernel": Polynomial()}, "has no lengths to learn; use Gaussian"),
        ({"kernel": Polynomial(2, "learn")}, "gamma='learn' of a Polynomial cannot be learned"),
        ({"kernel": RationalQuadratic("learn")}, "alpha='learn'.*cannot be learned"),
        ({"kernel": Gaussian("lean")}, "gamma='lean' is unknown"),
        ({"kernel": Product([([0], Gaussian("lean")), ([1], "matern")])}, "gamma='lean'"),
        ({"kernel": Product([([0], Gaussian("lean")), ([1], Gaussian("learn"))])}, "gamma='lean'"),
        ({"kernel": Matern("lean", "learn")}, "nu='lean' is not a number"),
        ({"kernel": "matrn"}, "did you mean 'matern'"),
        ({"X": Gaussian("learn")}, r"is a kernel; pass it last: learn_kernel\(X, y, kernel\)"),
    ],
)
def test_what_is_refused(change, message):
    X, y = table()
    given = {"X": X, "y": y, "kernel": "gaussian", "n_rows": 1000} | change
    with pytest.raises((ValueError, TypeError), match=message):
        learn_kernel(**given)


def test_without_targets_the_remedy_is_told():
    X, _ = table()
    for kernel, name in [
        (Gaussian("learn"), "gamma='learn'"),
        (Laplacian("learn-isotropic"), "gamma='learn-isotropic'"),
        (Matern(1.5, "learn"), "length_scale='learn'"),
        (Matern("learn"), "nu='learn'"),
        (Product([([0, 1], Gaussian("learn")), ([2], "gaussian")]), "gamma='learn'"),
    ]:
        message = f"{name} is learned from targets.*pass y to fit, or use.*learn_kernel"
        with pytest.raises(ValueError, match=message):
            kernel.resolve(X)
        with pytest.raises(ValueError, match=message):
            NystromFeatures(kernel, 20).fit(X)
    with pytest.raises(ValueError, match="learned from targets"):
        RandomFeaturePCA(NystromFeatures(Gaussian("learn"), 20)).fit(X)
    with pytest.raises(ValueError, match="learned from targets"):
        Gaussian("learn")(X)


# ---- fits


MAPS = [
    BlockFourierFeatures,
    FastfoodFeatures,
    GegenbauerFeatures,
    KernelFeatures,
    MaclaurinFeatures,
    NystromFeatures,
    PolySketchFeatures,
    RandomFourierFeatures,
]


@pytest.mark.filterwarnings("ignore")  # of widths that are too small for the kernel
@pytest.mark.parametrize("features", MAPS)
def test_every_map_learns(features):
    X, y = table(200)
    expected = learn_kernel(X, y, "gaussian", random_state=0).kernel
    fitted = features(Gaussian("learn"), n_components=32, random_state=0).fit(X, y)
    np.testing.assert_allclose(fitted.kernel_.gamma, expected.gamma)
    used = features(Gaussian("learn"), n_components=32, random_state=0)
    weight = np.repeat([1.0, 0.0], [100, 100])
    np.testing.assert_allclose(
        used.fit(X, y, sample_weight=weight).kernel_.gamma,
        learn_kernel(X[:100], y[:100], "gaussian").kernel.gamma,
    )
    assert used.kernel.gamma == "learn"


def kernel_of(fitted):
    """Return the kernel of a learner, or that of its features."""
    owner = fitted[0] if hasattr(fitted, "steps") else getattr(fitted, "features_", fitted)
    return owner.kernel_


def test_products_of_features_learn_together():
    X, y = table(200)
    parts = [([0, 1], Gaussian("learn")), ([2], Gaussian(0.3))]
    fitted = ProductFeatures(parts, 64).fit(X, y)
    expected = learn_kernel(X, y, Product(parts)).kernel
    np.testing.assert_allclose(fitted.kernel_.parts[0][1].gamma, expected.parts[0][1].gamma)
    assert fitted.kernel_.parts[1][1].gamma == 0.3


@pytest.mark.parametrize(
    "learner",
    [
        KernelRidge(Gaussian("learn"), 1e-2),
        KernelRidge(Gaussian("learn"), 1e-2, centers=30, random_state=0),
        KernelRidgeCV(Gaussian("learn"), [1e-3, 1e-2], random_state=0),
        RandomFeatureRidge(NystromFeatures(Gaussian("learn"), 30)),
        RandomFeatureRidgeCV(NystromFeatures(Gaussian("learn"), 30)),
        make_pipeline(NystromFeatures(Gaussian("learn"), 30), KernelRidge(alpha=1.0)),
    ],
    ids=named,
)
def test_every_regression_learns(learner):
    X, y = table()
    expected = learn_kernel(X, y, "gaussian", random_state=0).kernel
    batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 300, 100)]
    for data in ((X, y),) if hasattr(learner, "steps") else ((X, y), (batches,)):
        gamma = kernel_of(clone(learner).fit(*data)).gamma
        np.testing.assert_allclose(gamma, expected.gamma, rtol=1e-6)


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [3, 1, 2], ["c", "a", "b"]])
@pytest.mark.parametrize(
    "learner",
    [
        KernelRidgeClassifier(Gaussian("learn")),
        RandomFeatureRidgeClassifier(NystromFeatures(Gaussian("learn"), 30)),
        RandomFeatureRidgeClassifierCV(NystromFeatures(Gaussian("learn"), 30)),
    ],
    ids=named,
)
def test_every_classification_learns(learner, labels):
    X, _ = table(150)
    places = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, len(labels) - 1))
    y = np.array(labels)[places]
    expected = learn_kernel(X, y.astype(str), "gaussian", random_state=0).kernel
    batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, 150, 50)]
    for data in ((X, y), (batches,)):
        gamma = kernel_of(clone(learner).fit(*data)).gamma
        np.testing.assert_allclose(gamma, expected.gamma, rtol=1e-6)


def test_the_rule_is_kept_in_files(tmp_path):
    X, y = table()
    model = KernelRidge(Matern("learn", "learn"), 1e-2).fit(X, y)
    model.save(tmp_path / "model.gzk")
    again = gzkcore.load(tmp_path / "model.gzk")
    assert again.kernel.get_params() == {"nu": "learn", "length_scale": "learn"}
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_grid_may_hold_the_rule():
    X, y = table()
    model = KernelRidgeCV(kernel_grid={"gamma": ["learn", 1e-3]}, random_state=0).fit(X, y)
    assert model.best_params_["gamma"] == "learn"
    assert np.ndim(model.kernel_.gamma) == 1


def test_the_sample_of_a_source_has_its_targets(monkeypatch):
    """Of more rows than the survey keeps, those that are kept teach."""
    from gzkcore.rows import survey

    monkeypatch.setattr(survey, "SAMPLE_ROWS", 128)
    X, y = table(1000)
    batches = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 1000, 100)]
    model = RandomFeatureRidge(NystromFeatures(Gaussian("learn"), 30)).fit(batches)
    gamma = model.features_.kernel_.gamma
    assert gamma[0] > 10 * gamma[1:].max()


def test_a_dask_collection_has_its_targets():
    da = pytest.importorskip("dask.array")
    X, y = table()
    chunks = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    fitted = gzkcore.features.dask.fit(NystromFeatures(Gaussian("learn"), 30), *chunks)
    expected = learn_kernel(X, y, "gaussian", random_state=0).kernel
    np.testing.assert_allclose(fitted.kernel_.gamma, expected.gamma, rtol=1e-6)
    model = RandomFeatureRidge(NystromFeatures(Gaussian("learn"), 30)).fit(*chunks)
    np.testing.assert_allclose(model.features_.kernel_.gamma, expected.gamma, rtol=1e-6)


# ---- from few rows to many


@pytest.mark.slow
def test_the_search_ends_where_one_on_all_rows_does(monkeypatch):
    """It starts on a quarter of the rows, which says no more than where to go on."""
    monkeypatch.setattr("gzkcore.kernels.learned.FEWEST_ROWS", 100)
    X, y = table(500)
    found = learn_kernel(X, y, Matern("learn", "learn"), random_state=0)
    theta = np.log(np.append(found.length_scale / X.std(axis=0) / math.sqrt(3), found.noise))
    value, gradient = criterion_of(Matern(found.kernel.nu, "learn"), X, y)(theta)
    assert value == pytest.approx(found.value, rel=1e-8)
    assert np.abs(gradient).max() < 0.5
    others = [
        criterion_of(Matern(nu, "learn"), X, y).least()[1] for nu in (0.5, 1.5, 2.5, math.inf)
    ]
    assert found.value == pytest.approx(min(others), abs=0.5)


def test_a_search_knows_how_the_criterion_curved_before():
    """On twice the rows, from where it ended on half of them, it takes fewer steps than without."""
    X, y = table(400)
    half = criterion_of(Matern(1.5, "learn"), X[:200], y[:200]).least()
    evaluations, values = [], []
    for start in (half, half._replace(inverse=None)):
        criterion = criterion_of(Matern(1.5, "learn"), X, y)
        values.append(criterion.least(start).value)
        evaluations.append(criterion.evaluations)
    assert values[0] == pytest.approx(values[1], abs=1e-2)
    assert evaluations[0] < evaluations[1]


def test_a_search_that_cannot_win_is_given_up():
    X, y = table(200)
    place = criterion_of(Matern(1.5, "learn"), X, y).least()
    far = place._replace(theta=place.theta + 0.5)
    criterion = criterion_of(Matern(1.5, "learn"), X, y)
    assert criterion.least(far, below=place.value - 1000).value > place.value
    assert criterion.evaluations == 1


def test_few_rows_that_do_not_vary_are_passed_over():
    X, y = table(1000)
    X[:, 2] = 0.0
    X[generator(0).permutation(1000)[-1], 2] = 1.0  # the last row to be looked at
    assert np.isfinite(learn_kernel(X, y, Matern(1.5), random_state=0).length_scale).all()


def test_bits_do_not_depend_on_threads():
    X, y = table(600)
    found = []
    for number in (1, 2):
        with limit_threads(number), limit_blas(number):
            found.append(learn_kernel(X, y, "matern", random_state=0))
    assert found[0].value == found[1].value
    np.testing.assert_array_equal(found[0].length_scale, found[1].length_scale)


# ---- weights, the sphere, linear maps


def test_a_weight_of_2_halves_the_noise():
    X, y = table(200)
    weight = np.where(np.arange(200) % 2, 2.0, 1.0)
    criterion = criterion_of(Matern(1.5, "learn"), X, y)
    found = learn_kernel(X, y, "matern", sample_weight=weight)
    targets = standard_targets(y, np.arange(200), weight)
    noise = found.noise / weight.mean()
    weighted = Criterion([Block(criterion.part, targets, weight.mean() / weight)])
    theta = np.log([*(found.length_scale / (math.sqrt(3) * X.std(axis=0))), noise])
    assert weighted(theta)[0] == pytest.approx(found.value, rel=1e-12)
    scaled = learn_kernel(X, y, "matern", sample_weight=10 * weight)
    np.testing.assert_allclose(scaled.length_scale, found.length_scale, rtol=1e-9)
    assert scaled.noise == pytest.approx(10 * found.noise)


def test_weights_tell_good_rows_from_bad():
    X, y = table(300)
    bad = np.arange(300) % 2 == 1
    spoilt = y + 5 * bad * gaussian(300, 1, seed=3)[:, 0]
    weight = np.where(bad, 1e-3, 1.0)
    exact = learn_kernel(X[~bad], y[~bad], "matern").length_scale[0]
    weighted = learn_kernel(X, spoilt, "matern", sample_weight=weight).length_scale[0]
    assert weighted == pytest.approx(exact, rel=0.2)


def test_rows_of_weight_0_are_never_drawn():
    X, y = table(400)
    weight = (np.arange(400) % 4 > 0).astype(float)
    found = learn_kernel(X, y, "matern", n_rows=100, sample_weight=weight, random_state=0)
    assert (found.rows % 4 > 0).all()
    y[::4] = 1e9
    again = learn_kernel(X, y, "matern", n_rows=100, sample_weight=weight, random_state=0)
    assert again.value == found.value
    with pytest.raises(ValueError, match="all sample weights are zero"):
        learn_kernel(X, y, "matern", sample_weight=np.zeros(400))


def test_models_pass_their_weights_on():
    X, y = table(200)
    weight = 1.0 + np.arange(200) % 3
    expected = learn_kernel(X, y, "gaussian", sample_weight=weight, random_state=0).kernel.gamma
    for model in (
        NystromFeatures(Gaussian("learn"), 32).fit(X, y, sample_weight=weight),
        KernelRidge(Gaussian("learn"), 0.1).fit(X, y, weight),
    ):
        np.testing.assert_allclose(model.kernel_.gamma, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SphereMatern(2.5, "learn"), SphereHeat("learn")], ids=named)
def test_lengths_on_the_sphere_follow_the_function(kernel):
    X, lengths = sphere(150, 3), []
    for turns in (2, 8):
        y = np.sin(turns * X[:, 0]) + 0.05 * gaussian(150, 1)[:, 0]
        found = learn_kernel(X, y, kernel, random_state=0)
        assert repr(found.kernel) == repr(kernel.with_lengths(found.length_scale))
        lengths.append(found.length_scale)
    assert lengths[0] > 1.3 * lengths[1]
    fitted = NystromFeatures(kernel, 32).fit(X, y)
    assert repr(fitted.kernel_) == repr(found.kernel)
    with pytest.raises(ValueError, match="is learned from targets"):
        type(kernel)("learn")(X)
    with pytest.raises(ValueError, match="divide every row by its norm"):
        learn_kernel(2 * X, y, kernel)


def test_a_finite_smoothness_is_chosen_on_the_sphere():
    tried = candidates(Product([([0], SphereMatern("learn", "learn")), ([1], Matern("learn"))]))
    pairs = {(kernel.parts[0][1].nu, kernel.parts[1][1].nu) for kernel in tried}
    assert pairs == {(a, b) for a in (0.5, 1.5, 2.5) for b in (0.5, 1.5, 2.5, math.inf)}


def test_sphere_times_time_learns_both():
    X, days = sphere(150, 3), gaussian(150, 1, seed=1)
    y = np.sin(4 * X[:, 0]) * np.cos(days[:, 0])
    kernel = Product([([0, 1, 2], SphereMatern(1.5, "learn")), ([3], Matern(1.5, "learn"))])
    found = learn_kernel(np.hstack([X, days]), y, kernel)
    of_place, of_time = found.length_scale
    assert 0.05 < of_place < 2
    assert of_time.shape == (1,)


@pytest.mark.slow
def test_a_slanted_function_gets_a_slanted_metric():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 6)) * [1.0, 1.0, 1.0, 5.0, 1.0, 1.0]
    slope = np.array([1.0, 1.0, 0.0, 0.2, -1.0, 0.0])
    y = np.sin(2 * X @ slope) + 0.05 * rng.standard_normal(900)
    few, test = slice(0, 500), slice(500, 900)
    errors = {}
    for metric in (None, "agop"):
        found = learn_kernel(X[few], y[few], "matern", metric=metric, random_state=0)
        model = KernelRidge(found.kernel, found.noise).fit(X[few], y[few])
        errors[metric] = np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))
    assert errors["agop"] < 0.7 * errors[None]
    A = found.kernel.matrix
    direction = np.linalg.eigh(A.T @ A)[1][:, -1]
    assert abs(direction @ slope) > 0.98 * np.linalg.norm(slope)
    np.testing.assert_allclose(found.length_scale, 1 / np.linalg.norm(A, axis=0))
    again = learn_kernel(X[few] * 10, y[few], "matern", metric="agop", random_state=0)
    np.testing.assert_allclose(again.kernel.matrix, A / 10, rtol=1e-3, atol=1e-3 * np.abs(A).max())


@pytest.mark.parametrize("kernel", ["laplacian", Product([([0, 1, 2], "matern")])], ids=named)
def test_metrics_are_for_distances(kernel):
    X, y = table(100)
    with pytest.raises(ValueError, match="metric='agop' is only for kernels of the distance"):
        learn_kernel(X, y, kernel, metric="agop")
    with pytest.raises(ValueError, match="metric='full' is unknown"):
        learn_kernel(X, y, "matern", metric="full")


def test_evaluations_are_counted_with_those_of_the_metric(monkeypatch):
    X, calls, evaluate = gaussian(120, 2), [], Criterion.__call__
    monkeypatch.setattr(Criterion, "__call__", lambda *args: calls.append(1) or evaluate(*args))
    for metric in (None, "agop"):
        calls.clear()
        found = learn_kernel(X, np.sin(X.sum(axis=1)), "gaussian", metric=metric, random_state=0)
        assert found.evaluations == len(calls)


# ---- refined on more rows


@pytest.mark.parametrize(
    "kernel", ["matern", Product([([0, 1], "gaussian"), ([2], "matern")])], ids=named
)
def test_refined_lengths_are_of_all_blocks(kernel):
    X, y = table(500)
    weight = 1.0 + np.arange(500) % 2
    few, found = (
        learn_kernel(X, y, kernel, n_rows=100, random_state=0, sample_weight=weight, refine=refine)
        for refine in (False, True)
    )
    np.testing.assert_array_equal(found.rows, np.arange(500))
    assert found.evaluations > few.evaluations
    lengths = np.hstack(found.length_scale)
    assert lengths[1:].min() > 3 * lengths[0]
    assert not np.allclose(lengths, np.hstack(few.length_scale))


def test_refined_lengths_depend_less_on_the_rows():
    X, y = table(1000, noise=0.5)
    spread = {}
    for refine in (False, True):
        found = [
            learn_kernel(X, y, "matern", n_rows=100, refine=refine, random_state=i)
            for i in range(5)
        ]
        spread[refine] = np.std([np.log(each.length_scale[0]) for each in found])
    assert spread[True] < 0.7 * spread[False]


def test_nothing_is_refined_where_no_rows_are_left():
    X, y = table(100)
    refined = learn_kernel(X, y, "matern", refine=True)
    assert refined.value == learn_kernel(X, y, "matern").value
    labels = np.where(X[:, 0] > 0, "right", "left")
    assert learn_kernel(X, labels, "matern", n_rows=40, refine=True).rows.size == 100
