"""Definitions of the sums over rows."""

import numpy as np
import pytest

from gzkcore import reference

gram, moments = reference.gram.gram, reference.gram.moments


def data(seed=0, n=7, n_components=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n_components)), rng.random(n)


def test_gram_is_the_matrix_product():
    Z, w = data()
    assert np.array(gram(Z)) == pytest.approx(Z.T @ Z, rel=1e-13)
    assert np.array(gram(Z, w)) == pytest.approx(Z.T @ np.diag(w) @ Z, rel=1e-13)
    assert gram(Z.tolist(), w.tolist()) == gram(Z, w)


def test_moments():
    Z, w = data(1)
    total, first, second = moments(Z, w)
    assert total == pytest.approx(w.sum())
    assert first == pytest.approx(w @ Z)
    assert second == gram(Z, w)
    assert moments(Z)[0] == 7.0


def test_moments_of_batches_add_up():
    Z, w = data(2)
    whole = moments(Z, w)
    head, tail = moments(Z[:2], w[:2]), moments(Z[2:], w[2:])
    for part in range(3):
        added = np.add(head[part], tail[part])
        assert added == pytest.approx(np.array(whole[part]), rel=1e-13)


def test_integer_weights_repeat_rows():
    Z, _ = data(3, n=4)
    counts = [2, 0, 1, 3]
    assert np.array(gram(Z, counts)) == pytest.approx(
        np.array(gram(np.repeat(Z, counts, axis=0))), rel=1e-13
    )


def test_float32_rows_are_summed_in_double():
    Z = np.array([[2.0**12], [2.0**-6]], dtype=np.float32)
    assert gram(Z) == [[2.0**24 + 2.0**-12]]
