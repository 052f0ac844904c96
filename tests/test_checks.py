"""Arguments are checked where a user's call comes in, and never again: the checks of a fit are counted."""

import cProfile
import pstats
from pathlib import Path

import numpy as np
import pytest

from gzkcore import KernelRegressor, RandomFeatureRidgeCV


def checks_of(call):
    """Return how often a call enters a function of `validation` that checks."""
    profile = cProfile.Profile()
    profile.runcall(call)
    return sum(
        n_calls
        for (file, _, name), (_, n_calls, *_) in pstats.Stats(profile).stats.items()
        if Path(file).stem == "validation" and name.startswith(("check_", "raise_"))
    )


@pytest.mark.slow
@pytest.mark.parametrize(("learner", "most"), [(KernelRegressor, 300), (RandomFeatureRidgeCV, 180)])
def test_a_fit_checks_at_the_door(learner, most):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(600)
    model = learner(random_state=0)
    model.fit(X[:100], y[:100])  # imports what it needs
    assert 10 < checks_of(lambda: model.fit(X, y)) <= most
