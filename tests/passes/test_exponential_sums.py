"""Sums of exponentials over rows: as the reference has them, in batches, and nodes in their place."""

import copy

import numpy as np
import pytest
from points import sphere

from gzkcore import reference
from gzkcore.passes.exponential_sums import ExponentialSums
from gzkcore.sphere.transforms import angles_of

finufft = pytest.importorskip("finufft")
formulas = reference.fast_sums
BOX = np.array([[-1.0, 0.0], [2.0, 5.0]])


def rows(n, box, seed=0):
    if box is None:
        return sphere(n, 3, seed=seed)
    return np.random.default_rng(seed).uniform(*box, size=(n, box.shape[1]))


def frequencies(highest):
    grid = np.meshgrid(*[range(-most, most + 1) for most in highest], indexing="ij")
    return list(zip(*[axis.ravel().tolist() for axis in grid], strict=True))


@pytest.mark.parametrize(("box", "highest"), [(None, [4, 4]), (BOX, [3, 5]), (BOX[:, :1], [4])])
def test_sums_and_nodes_are_those_of_the_reference(box, highest):
    X, rng = rows(40, box), np.random.default_rng(1)
    y, weight = rng.standard_normal((40, 2)), rng.uniform(0, 2, 40)
    sums = ExponentialSums(box, highest).add(X, y, weight)
    angles = np.transpose(sums.angles(X))
    if box is None:
        np.testing.assert_array_equal(angles, np.transpose(angles_of(X)))
    for number, values in enumerate([weight, *(weight * each for each in y.T)]):
        expected = formulas.fourier_adjoint(values, angles.tolist(), frequencies(highest))
        for k, value in expected.items():
            found = sums.sums[(number, *k)]
            assert abs(complex(*found) - value) < 1e-10
    np.testing.assert_allclose(sums.totals, [40, weight.sum(), *(weight @ y**2)])
    # Any function with these frequencies has the same sum over nodes, as the reference's have.
    places, of_nodes = sums.nodes()
    values = formulas.fourier_adjoint(weight, angles.tolist(), frequencies(highest))
    theirs = formulas.node_weights(values, highest)
    for k in frequencies(highest)[::3]:
        # On the sphere nodes beyond the pole are moved: functions are even there for even k_phi.
        parity = (-1.0) ** k[0] if box is None else 0.0

        def function(at, k=k, parity=parity):
            mirrored = np.exp(1j * (k[0] * at[0] - k[-1] * at[-1])) if parity else 0.0
            return np.exp(1j * np.tensordot(k, at, 1)) + parity * mirrored

        expected = (weight * function(angles.T)).sum()
        assert abs((of_nodes[:, 0] * function(np.array(places))).sum() - expected) < 1e-9
        grid = np.array(list(theirs)).T
        assert abs((np.array(list(theirs.values())) * function(grid)).sum() - expected) < 1e-9


def test_batches_and_merged_sums_are_those_of_all_rows():
    X, y = rows(90, BOX), np.random.default_rng(1).standard_normal((90, 1))
    whole = ExponentialSums(BOX, [3, 4]).add(X, y, None)
    parts = [ExponentialSums(BOX, [3, 4]) for _ in range(2)]
    parts[0].add(X[:20], y[:20], None).add(X[20:50], y[20:50], None)
    parts[1].add(X[50:], y[50:], np.ones(40))
    before = copy.copy(parts[1]).sums.copy()
    merged = copy.copy(parts[0]).merge(parts[1])
    for name in ("sums", "totals", "extent", "n_rows"):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), atol=1e-10)
    np.testing.assert_array_equal(parts[1].sums, before)
    assert parts[0].n_rows == 50


def test_targets_are_shifted():
    X, y = rows(30, None), np.random.default_rng(1).standard_normal((30, 2))
    offset = np.array([2.0, -1.0])
    found = ExponentialSums(None, [3, 3]).add(X, y, None).shifted(offset)
    expected = ExponentialSums(None, [3, 3]).add(X, y + offset, None)
    np.testing.assert_allclose(found.sums, expected.sums, atol=1e-10)
    np.testing.assert_allclose(found.totals, expected.totals)


def test_what_has_no_place():
    y = np.zeros((2, 1))
    with pytest.raises(ValueError, match="row 1 has the norm 2, but rows must be on the unit sphe"):
        ExponentialSums(None, [3, 3]).add(np.array([[1.0, 0, 0], [0, 2.0, 0]]), y, None)
    with pytest.raises(ValueError, match=r"X\[1, 1\] is 7, outside the box from 0 to 5"):
        ExponentialSums(BOX, [3, 3]).add(np.array([[0.0, 1.0], [0.0, 7.0]]), y, None)
    sums = ExponentialSums(BOX, [3, 3]).add(np.zeros((2, 2)), y, None)
    with pytest.raises(ValueError, match="earlier rows had 1"):
        sums.add(np.zeros((2, 2)), np.zeros((2, 3)), None)
    with pytest.raises(ValueError, match="the same degree and box"):
        sums.merge(ExponentialSums(BOX, [3, 4]))
    with pytest.raises(ValueError, match="the same degree and box"):
        sums.merge(ExponentialSums(None, [3, 3]))
