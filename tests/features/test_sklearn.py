"""scikit-learn's own checks of every feature map."""

import numpy as np
import pytest
from sklearn.utils import estimator_checks, validation
from sklearn.utils.estimator_checks import parametrize_with_checks

import gzkcore as gzk
from gzkcore.features.nystrom import RULES

PARTS = [(0, "gaussian"), (-1, "gaussian")]
FROM_ALL_ROWS = [
    gzk.BlockProjection(3), gzk.BlockFourierFeatures(n_components=9), gzk.BlockFourierFeatures(n_components=9, mix="hadamard"),
    gzk.MeanNormalizer(), gzk.CountSketch(8), gzk.TensorSketchFeatures(n_components=15),
    gzk.FastfoodFeatures(n_components=8), gzk.FastfoodFeatures(n_components=15),
    gzk.RandomFourierFeatures(n_components=15), gzk.RandomFourierFeatures(n_components=8, frequencies="qmc"),
    gzk.GegenbauerFeatures(n_components=7), gzk.GegenbauerFeatures(n_components=7, basis="random"),
    gzk.PublishedGegenbauerFeatures(n_components=6, degree=3, order=1),
    gzk.KernelFeatures(n_components=4), gzk.MaclaurinFeatures(n_components=7), gzk.ProductFeatures("gaussian", 7),
    gzk.PolySketchFeatures(n_components=8), gzk.PolySketchFeatures("gaussian", 15),
    gzk.HadamardProjection(40), gzk.FastJLProjection(3),
]  # fmt: skip
FROM_SOME_ROWS = [
    gzk.AdaptiveSketchFeatures("gaussian", 7), gzk.AdaptiveSketchFeatures("polynomial", 7),
    gzk.GegenbauerFeatures(n_components=7, basis="adapted"), gzk.ProductFeatures(PARTS, 7, basis="adapted"),
    *(gzk.NystromFeatures(n_components=5, landmarks=rule) for rule in RULES),
]  # fmt: skip
for features in FROM_ALL_ROWS + FROM_SOME_ROWS:
    if "random_state" in features.get_params():
        features.set_params(random_state=0)

# A row of weight 2 is no more likely to be in a sample than another, as two equal rows are.
UNMET = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a sample ignores weights: see sample_weight of fit"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    FROM_ALL_ROWS + FROM_SOME_ROWS,
    expected_failed_checks=lambda features: UNMET if features in FROM_SOME_ROWS else {},
)
@pytest.mark.filterwarnings("ignore:on these data")
# The checks' rows lie further out than so few columns reach, and those of weight 0 than the others.
@pytest.mark.filterwarnings("ignore::gzkcore.TruncationWarning")
# The checks call partial_fit as if every batch were like the first.
@pytest.mark.filterwarnings("ignore:partial_fit without a radius:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def three_columns(monkeypatch):
    """Let scikit-learn make its data for three columns at most: more are refused."""
    suited = estimator_checks._enforce_estimator_tags_X
    monkeypatch.setattr(
        estimator_checks,
        "_enforce_estimator_tags_X",
        lambda *given, **how: suited(*given, **how)[:, :3],
    )


@parametrize_with_checks(
    [gzk.ModifiedFourierFeatures(n_components=7, random_state=0)],
    expected_failed_checks=lambda _: dict.fromkeys(UNMET, "the rows of this check have 30 columns"),
)
@pytest.mark.usefixtures("three_columns")
@pytest.mark.filterwarnings("ignore:on these data")
def test_scikit_learn_checks_of_three_columns(estimator, check):
    check(estimator)


def test_plain_rows_are_not_checked_by_scikit_learn(monkeypatch):
    """That takes .1 ms, ten times as long as the features of a row."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    model, asked = gzk.RandomFourierFeatures(n_components=16, random_state=0).fit(X), []
    monkeypatch.setattr(validation, "validate_data", lambda *_, **how: asked.append(how) or X)
    for rows in (X, X.astype(np.float32), X[::2], np.asfortranarray(X), X[:1]):
        model.transform(rows)
    assert not asked
    bad = X.copy()
    bad[3, 1] = np.nan
    others = bad, X[:, :2], X[0], X[:0], X.tolist(), X.astype(int), X.astype(">f8")
    for number, rows in enumerate(others, 1):
        model.transform(rows)  # which gets the right rows here whatever it asks for
        assert len(asked) == number
