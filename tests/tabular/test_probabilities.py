"""How sure predicted classes are: no surer than held-out rows allow."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_blobs

from gzkcore.tabular.kernel_classifier import KernelClassifier
from gzkcore.tabular.probabilities import Link, least_probability


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classes_that_can_be_separated_are_not_sure(n_classes):
    """With three classes or more, probabilities of 1e-40 came from 150 rows."""
    n = 30 * n_classes
    X, y = make_blobs(n, 4, centers=6 * np.eye(5, 4)[:n_classes], cluster_std=0.5, random_state=0)
    model = KernelClassifier(random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    assert shares.min() >= 1 / (10 * n)
    assert shares.max() < 1 - 0.4 / n
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert (model.predict(X) == y).all()


@pytest.mark.parametrize("n_classes", [2, 3, 40])
def test_labels_and_moderate_probabilities_stay(n_classes):
    n_targets = n_classes if n_classes > 2 else 1
    link = Link(np.diag(np.full(n_targets, 9.0)), np.zeros(n_targets))
    predictions = np.random.default_rng(0).uniform(-2, 2, (200, n_targets))
    free = link.scores(predictions)
    link.least = least_probability(np.ones(50), n_classes)
    bounded = link.scores(predictions)
    if n_classes == 2:
        free, bounded = (np.column_stack([0 * each, each]) for each in (free, bounded))
    assert (bounded.argmax(axis=1) == free.argmax(axis=1)).all()
    before, after = softmax(free, axis=1), softmax(bounded, axis=1)
    assert before.min() < 1e-6
    assert after.min() > 0.98 * link.least
    same = (before >= link.least).all(axis=1)
    assert (after[same] == before[same]).all()


def test_rows_of_unequal_weights_count_as_fewer():
    equal = least_probability(np.ones(9), 2)
    assert equal == pytest.approx(1 / 20) == least_probability(np.full(9, 7.0), 2)
    assert least_probability(np.ones(9), 6) == pytest.approx(equal / 5)
    assert least_probability(np.repeat([1.0, 0.0], 9), 2) == pytest.approx(equal)
    assert least_probability(np.array([1.0] * 8 + [50.0]), 2) > 3 * equal
