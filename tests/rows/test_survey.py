"""Surveys of rows: the same for every split into batches."""

import itertools

import numpy as np
from batched import Cut, data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tolerances import IDENTITY

from gzkcore.rows import survey as surveys
from gzkcore.rows.open import as_source
from gzkcore.rows.sources import Batch
from gzkcore.rows.survey import Norms, Survey


def split(n, cuts):
    edges = [0, *sorted(cuts), n]
    return [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]


@given(cuts=st.lists(st.integers(0, 300), max_size=6), as_csr=st.booleans(), single=st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_survey_is_the_same_for_every_split(cuts, as_csr, single):
    X, y = data(300, np.float32 if single else np.float64)
    X[X < 0.5] = 0
    rows = sparse.csr_array(X) if as_csr else X
    parts = [
        Survey.of(Batch(rows[part], y[part], None, i)) for i, part in enumerate(split(300, cuts))
    ]
    found = Survey.merge([Survey.merge(parts[:2]), *parts[2:]])
    assert found.n_rows == 300
    assert found.complete
    assert_array_equal(found.rows.toarray() if as_csr else found.rows, X)
    assert found.rows.dtype == X.dtype
    close = IDENTITY["closed form"]()
    assert_allclose(found.mean, X.mean(axis=0, dtype=np.float64), rtol=close)
    assert_allclose(found.variance, X.astype(np.float64).var(), rtol=close)
    assert_allclose(found.y_sum, y.sum(), rtol=close)


def test_a_survey_samples_evenly(monkeypatch):
    monkeypatch.setattr(surveys, "SAMPLE_ROWS", 1000)
    X = np.arange(20_000.0)[:, None]
    found = as_source(Cut(X, rows=300)).reduce(Survey.of, Survey.merge)
    assert not found.complete
    assert found.rows.shape == (1000, 1)
    assert (np.diff(found.rows[:, 0]) > 0).all()
    # The mean of 1,000 of 20,000 numbers: within 4 standard deviations.
    assert abs(found.rows.mean() - 10_000) < 4 * 20_000 / np.sqrt(12 * 1000)


@given(cuts=st.lists(st.integers(0, 4000), max_size=6), many=st.booleans())
@settings(max_examples=25, deadline=None)
def test_norms_are_the_same_for_every_split(cuts, many):
    values = np.random.default_rng(1).gamma(3.0, size=4000)
    before = surveys.EXACT_NORMS
    surveys.EXACT_NORMS = 1000 if many else before
    try:
        whole = Norms(values)
        parts = [Norms(values[part]) for part in split(4000, cuts)]
        found = Norms.merge([Norms.merge(parts[:2]), *parts[2:]])
    finally:
        surveys.EXACT_NORMS = before
    likely = (np.arange(64) + 0.5) / 64
    assert found.min() == whole.min() == values.min()
    assert found.max() == whole.max() == values.max()
    assert_array_equal(found.quantile(likely), whole.quantile(likely))
    wanted = np.quantile(values, likely)
    # A value is replaced by the middle of its bin, whose width is 2^-13 of it or less.
    rtol = 2.0 ** -(surveys.NORM_BITS + 1) if many else IDENTITY["unit"]()
    assert_allclose(found.quantile(likely), wanted, rtol=rtol)


def test_the_largest_norm_within_a_limit():
    norms = Norms(np.array([0.5, 3.0, 40.0]))
    assert [norms.largest_within(most) for most in (0.1, 5.0, 40.0, 50.0)] == [0, 3, 40, 40]


def test_quantiles_of_weights_far_apart_are_those_of_the_largest():
    weight = np.array([1e-200, 1e-200, 1e200, 1e200, 1e-200])
    found = Norms(np.arange(5.0), weight).quantile(np.array([0.01, 0.2, 0.8, 0.99]))
    assert_array_equal(found, [2.0, 2.0, 3.0, 3.0])
