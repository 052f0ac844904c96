"""The comparison that `gzkcore demo` shows: four feature maps, one ridge, 28,000 airports.

Every method gets the same split, the same number of features, the same lengthscales and ridges to
choose from, and the same two folds to choose by. Each runs in a fresh process, so that its peak
memory is its own.
"""

import dataclasses
import multiprocessing
import signal
import time
import warnings
from collections.abc import Callable

import numpy as np

from ._memory import memory_growth
from .datasets import LatLonToSphere, load
from .gegenbauer import GegenbauerFeatures, PublishedGegenbauerFeatures
from .kernels import Gaussian
from .ridge import RandomFeatureRidgeCV

GAMMAS = tuple(2.0**k for k in range(3, 10))
ALPHAS = np.logspace(-8, 2, 21)
TEST_FRACTION = 0.1


def _gegenbauer(n_components, seed):
    return GegenbauerFeatures(Gaussian(), n_components, random_state=seed)


def _published(n_components, seed):
    return PublishedGegenbauerFeatures(
        Gaussian(), n_components, degree=PUBLISHED_DEGREE, order=1, random_state=seed
    )


def _fourier(n_components, seed):
    from sklearn.kernel_approximation import RBFSampler

    return RBFSampler(n_components=n_components, random_state=seed)


def _nystroem(n_components, seed):
    from sklearn.kernel_approximation import Nystroem

    return Nystroem(n_components=n_components, random_state=seed)
