"""Rows with codes against the same rows as arrays: where categories have a column for each level, all numbers agree."""

from dataclasses import replace

import numpy as np
import pytest
from gzkcore.reference import near_rows as formulas

from gzkcore import (
    KernelRidge,
    Laplacian,
    Matern,
    NearKernelRidge,
    Polynomial,
    Product,
    ProductMatern,
)
from gzkcore.kernels.learned import Examples
from gzkcore.learn import near_kernel_ridge
from gzkcore.rows.coded import CodedRows
from gzkcore.solve import near_lengths
from gzkcore.solve.near_lengths import _Lengths
from gzkcore.solve.near_rows import NearRows

GROUPS = [np.arange(3, 7), np.arange(8, 13)]
OF_COLUMNS = np.array([0, 1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5])


def table(n, seed=0):
    """Return rows with four columns of numbers and two categories, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 13)).astype(np.float32).astype(float)
    for group in GROUPS:
        X[:, group] = np.eye(len(group))[rng.integers(0, len(group), n)]
    y = np.sin(2 * X[:, 0]) + X[:, 3] * X[:, 1] - X[:, 9] + 0.1 * rng.standard_normal(n)
    return X, y


def lengths():
    """Return lengths; levels of a category share theirs, and the two categories differ."""
    scales = np.linspace(0.8, 2, 13)
    scales[GROUPS[0]], scales[GROUPS[1]] = 1.4, 0.7
    return scales


def test_rows_with_codes_are_the_same_rows():
    X, _ = table(50)
    coded = CodedRows.of(X, GROUPS)
    assert coded.shape == (50, 13)
    assert coded.codes.shape == (50, 2)
    np.testing.assert_array_equal(coded.toarray(), X)
    np.testing.assert_array_equal(coded[[7, 3]].toarray(), X[[7, 3]])
    np.testing.assert_array_equal(coded[:, [9, 0, 4]], X[:, [9, 0, 4]])
    np.testing.assert_array_equal(coded.compacted(X), coded.compact)
    X[::2, GROUPS[1]] = 0.0
    other = coded.coded(X)
    np.testing.assert_array_equal(
        other.codes[:, 1], np.where(np.arange(50) % 2, coded.codes[:, 1], -1)
    )
    assert other.codes.dtype == coded.codes.dtype
    np.testing.assert_array_equal(other.toarray(), X)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"plain": np.arange(4)}, "has not each of its columns once"),
        ({"codes": np.full((50, 2), 4)}, "has codes without values"),
    ],
)
def test_damaged_rows_are_refused(changed, message):
    rows = replace(CodedRows.of(table(50)[0], GROUPS), **changed)
    with pytest.raises(ValueError, match=message):
        rows._check_state()


@pytest.mark.parametrize("n", [1000, 1001, 1003, 20_011])
def test_a_level_of_random_signs_has_one_code_in_all_rows(n):
    rng = np.random.default_rng(0)
    levels = rng.choice([-1.0, 1.0], (300, 128)) / np.sqrt(128)
    X = levels[rng.integers(0, 300, n)]
    coded = CodedRows.of(X, [np.arange(128)])
    assert len(coded.values[0]) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(coded.codes_of(X), coded.codes)


@pytest.mark.parametrize(("n_levels", "dtype"), [(128, "int8"), (129, "int16"), (32769, "int32")])
def test_codes_have_the_smallest_type(n_levels, dtype):
    levels = np.arange(float(n_levels))[::-1, None]
    coded = CodedRows.of(np.concatenate([levels, levels]), [np.array([0])])
    assert coded.codes.dtype == dtype
    np.testing.assert_array_equal(coded.toarray(), np.concatenate([levels, levels]))
    np.testing.assert_array_equal(coded.compacted(np.array([[3.0], [-1.0]]))[1], [-1])


def test_near_rows_with_codes_are_those_of_the_reference():
    X, y = table(300)
    coded = CodedRows.of(X, GROUPS)
    per_code = np.append(lengths()[coded.plain], [lengths()[group[0]] for group in GROUPS])
    near = NearRows(Matern(1.5, lengths()), coded, y[:, None], None, 0.1, 9)
    new = near.columns.of(table(20, 1)[0])
    for x, places in zip(new.tolist(), near.nearest(new, 9), strict=True):
        apart = [formulas.coded_distance(x, row, per_code, 4) for row in coded.compact.tolist()]
        np.testing.assert_array_equal(places, np.argsort(apart)[:9])


@pytest.mark.parametrize("alpha", [0.1, 1e-9])  # single precision, and double
@pytest.mark.parametrize(
    "kernel",
    [
        Matern(1.5, lengths()),
        Matern(np.inf, lengths()),
        Laplacian(lengths()),
        Product([(range(7), Matern(0.5, lengths()[:7])), (range(7, 13), Matern(2.5, lengths()[7:]))]),
        ProductMatern(1.5, lengths(), OF_COLUMNS),
        Matern(1.5, np.linspace(1, 2, 13)),  # levels that are not equally far from one another
        Polynomial(2, 0.1),
    ],
    ids=["Matern", "Gaussian", "Laplacian", "Product", "columns", "levels", "Polynomial"],
)  # fmt: skip
def test_predictions_of_rows_with_codes_are_those_of_the_array(kernel, alpha):
    X, y = table(400)
    new, _ = table(60, 1)
    near = [NearRows(kernel, rows, y[:, None], None, alpha, 30) for rows in (X, CodedRows.of(X, GROUPS))]  # fmt: skip
    for plain, coded in zip(near[0].predict(new), near[1].predict(new), strict=True):
        np.testing.assert_allclose(coded, plain, rtol=2e-3 if alpha > 1e-3 else 1e-6, atol=1e-5)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize(
    "template",
    [
        Laplacian("learn"),
        Matern(1.5, "learn"),
        Matern(0.5, "learn"),
        Matern(2.5, lengths()),
        Product([(range(7), Matern(1.5, lengths()[:7])), (range(7, 13), Matern(2.5, 2.0))]),
        ProductMatern(1.5, "learn", OF_COLUMNS),
    ],
)
def test_likelihoods_of_rows_with_codes_are_those_of_the_array(template, copies, monkeypatch):
    monkeypatch.setattr(near_lengths, "FIRST_BLOCKS", 20)
    X, y = table(300)
    if copies:
        X[150:] = X[:150]
    values = []
    for rows in (X, CodedRows.of(X, GROUPS)):
        examples = Examples(rows, y[:, None], None, None, OF_COLUMNS)
        began = _Lengths.first(examples.part(template, np.arange(200)), examples, None, 0)
        new = began.refined()
        values.append(np.concatenate([new.part.low, new.point.theta, [new.point.value, new.loss]]))
    tol = 1e-3 if copies else 1e-4  # which of the copies are near is arbitrary
    np.testing.assert_allclose(values[1], values[0], rtol=tol, atol=tol)


@pytest.mark.parametrize("weight", [None, np.random.default_rng(0).integers(0, 4, 500)])
def test_a_learner_takes_rows_with_codes(weight):
    X, y = table(500)
    models = [
        NearKernelRidge(Matern(1.5, lengths()), 0.1, random_state=0, trend=[0, 1]).fit(
            rows, y, weight
        )
        for rows in (X, CodedRows.of(X, GROUPS))
    ]
    plain, coded = (model.predict(X[:20], return_std=True) for model in models)
    np.testing.assert_allclose(coded, plain, rtol=1e-3, atol=1e-4)
    models[1].update(X[:3] + 0.5, y[:3])
    assert models[1].X_fit_.shape == (len(models[0].X_fit_) + 3, 13)


@pytest.mark.parametrize("template", [Matern(1.5, "learn"), Laplacian("learn")])
def test_a_table_of_categories_alone(template):
    X, _ = table(300)
    X, groups = X[:, np.concatenate(GROUPS)], [np.arange(4), np.arange(4, 9)]
    f = X[:, 0] * X[:, 5] - X[:, 8]
    model = NearKernelRidge(template, n_neighbors=60, random_state=0)
    model._groups = np.repeat([0, 1], [4, 5])
    model.fit(CodedRows.of(X, groups), f + 0.1 * np.random.default_rng(1).standard_normal(300))
    assert np.abs(model.predict(X) - f).max() < 0.15


def test_a_factor_of_a_category_of_one_level_is_1():
    X, y = table(300)
    X, groups = X[:, np.concatenate(GROUPS)], [np.arange(4), np.arange(4, 9)]
    X[:, 4:] = np.eye(5)[0]
    kernel = Product([(range(4), Matern(1.5, 2.0)), (range(4, 9), Matern(0.5))])
    coded = NearRows(kernel, CodedRows.of(X, groups), y[:, None], None, 0.1, 300).predict(X[:9])
    alone = NearRows(Matern(1.5, 2.0), X[:, :4], y[:, None], None, 0.1, 300).predict(X[:9, :4])
    np.testing.assert_allclose(coded[0], alone[0], atol=1e-4)
    np.testing.assert_allclose(coded[1], alone[1], atol=1e-4)


def test_a_smooth_part_takes_rows_with_codes(monkeypatch):
    monkeypatch.setattr(near_kernel_ridge, "SMOOTH_ROWS", 100)
    X, y = table(500)
    smooth = KernelRidge(Matern(1.5, lengths()), 0.1)
    models = [
        NearKernelRidge(Matern(1.5, lengths()), 0.1, smooth=smooth, random_state=0).fit(rows, y)
        for rows in (X, CodedRows.of(X, GROUPS))
    ]
    plain, coded = (model.predict(X[:20]) for model in models)
    np.testing.assert_allclose(coded, plain, rtol=1e-3, atol=1e-4)


def test_draws_of_learned_lengths_share_one_tree_and_its_neighbours():
    X, y = table(300)
    examples = Examples(X, y[:, None], None, None, OF_COLUMNS)
    part = examples.part(Matern(1.5, "learn"), np.arange(200))
    new = _Lengths.first(part, examples, None, 0).refined()
    blocks = new.draw()
    assert new.order is None
    assert new.loss > 0
    again = replace(new, order=new.order)  # with the tree of the same lengths
    np.testing.assert_array_equal(again.draw(), blocks)
    assert again.loss == new.loss
    assert new.refined().order is new.order


def test_another_draw_has_the_same_bounds(monkeypatch):
    monkeypatch.setattr(near_lengths, "FIRST_BLOCKS", 10)
    monkeypatch.setattr(near_lengths, "BLOCKS", 10)
    X, y = table(300)
    examples = Examples(CodedRows.of(X, GROUPS), y[:, None], None, None, OF_COLUMNS)
    part = examples.part(Matern(1.5, "learn"), np.arange(200))
    low = part.low.copy()
    new = _Lengths.first(part, examples, None, 0).refined().refined()
    np.testing.assert_array_equal(new.part.low, low)
