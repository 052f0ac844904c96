"""Whether random features have the mean and the variance that is claimed, over pairs and seeds."""

import sys
from unittest import mock

import numpy as np
from sklearn.base import clone

from gzkcore.features.base import RowMap
from gzkcore.features.fit_rows import FitRows

PAIRS = 50
STANDARD_ERRORS = 4


def estimates(features, X, Y, n_seeds):
    """Return z(x_i).z(y_i) for each seed and pair, fitted to both sets together."""
    both = np.concatenate([X, Y])
    features, rows = clone(features).fit(both), FitRows.of_array(both, None)
    values, Z = np.empty((n_seeds, len(X))), np.empty_like(features.transform(both))
    module = sys.modules[type(features).__module__]
    # A clone, checks, and a look for what the fit above did not warn of would take longer than some
    # fits.
    with mock.patch.object(module, "warn_if_trivial", create=True):
        for seed in range(n_seeds):
            features.random_state = seed
            if isinstance(features, RowMap):
                features.fit_valid(rows).write(both, Z)
            else:
                Z = features.fit(both).transform(both)
            values[seed] = np.einsum("ij,ij->i", Z[: len(X)], Z[len(X) :])
    return values


def assert_mean(values, expected):
    """Every pair's mean over the seeds is as expected, to 4 of its standard errors."""
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    off = np.abs(values.mean(axis=0) - expected) / np.maximum(errors, 1e-12)
    assert off.max() <= STANDARD_ERRORS, f"pair {off.argmax()} is {off.max():.1f} errors off"


def assert_variance(values, mean, variance):
    """The variance, pooled over pairs, is as expected, to 4 of its standard errors."""
    pooled = np.square(values - mean).mean(axis=1)
    error = pooled.std(ddof=1) / np.sqrt(len(pooled))
    off = abs(pooled.mean() - np.mean(variance)) / error
    assert off <= STANDARD_ERRORS, f"{pooled.mean():.4g} for {np.mean(variance):.4g}: {off:.1f} off"
