"""scikit-learn's own checks of every feature map."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gzkcore import (
    AdaptiveSketchFeatures,
    BlockFourierFeatures,
    BlockProjection,
    CountSketch,
    FastfoodFeatures,
    FastJLProjection,
    GegenbauerFeatures,
    HadamardProjection,
    KernelFeatures,
    MaclaurinFeatures,
    MeanNormalizer,
    NystromFeatures,
    PolySketchFeatures,
    ProductFeatures,
    PublishedGegenbauerFeatures,
    RandomFourierFeatures,
    TensorSketchFeatures,
)
from gzkcore.features.nystrom import RULES

PARTS = [(0, "gaussian"), (-1, "gaussian")]
FROM_ALL_ROWS = [
    BlockProjection(3), BlockFourierFeatures(n_components=9), BlockFourierFeatures(n_components=9, mix="hadamard"),
    MeanNormalizer(), CountSketch(8), TensorSketchFeatures(n_components=15),
    FastfoodFeatures(n_components=8), FastfoodFeatures(n_components=15),
    RandomFourierFeatures(n_components=15), RandomFourierFeatures(n_components=8, frequencies="qmc"),
    GegenbauerFeatures(n_components=7), GegenbauerFeatures(n_components=7, basis="random"),
    PublishedGegenbauerFeatures(n_components=6, degree=3, order=1),
    KernelFeatures(n_components=4), MaclaurinFeatures(n_components=7), ProductFeatures("gaussian", 7),
    PolySketchFeatures(n_components=8), PolySketchFeatures("gaussian", 15),
    HadamardProjection(40), FastJLProjection(3),
]  # fmt: skip
FROM_SOME_ROWS = [
    AdaptiveSketchFeatures("gaussian", 7), AdaptiveSketchFeatures("polynomial", 7),
    GegenbauerFeatures(n_components=7, basis="adapted"), ProductFeatures(PARTS, 7, basis="adapted"),
    *(NystromFeatures(n_components=5, landmarks=rule) for rule in RULES),
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
