"""Directions on the sphere: the cost of drawing them, and the error of means over them."""

import numpy as np
from scipy.special import hyp0f1
from scipy.stats import ortho_group, qmc, uniform_direction

from gzkcore.sphere.directions import POINT_SETS, sample_directions

from .common import interleave, ratio

COUNT, SEEDS = 1024, 20


def in_scipy(method, dim):
    """Draw directions with the same distribution."""
    if method == "iid":
        return uniform_direction(dim).rvs(COUNT, random_state=0)
    if method == "orthogonal":
        return np.concatenate(ortho_group.rvs(dim, -(-COUNT // dim), random_state=0))[:COUNT]
    normals = qmc.MultivariateNormalQMC(np.zeros(dim)).random(COUNT)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def error_of_means(draw, dim):
    """Return the root mean square error, over seeds, of the mean of exp(w_1), relative to it."""
    exact = hyp0f1(dim / 2, 0.25)
    means = np.array([np.exp(draw(seed)[:, 0]).mean() for seed in range(SEEDS)])
    return float(np.sqrt(np.square(means / exact - 1).mean()))


class Means:
    """1,024 directions by each method: a smooth mean over them, by seeds."""

    params = ([3, 9, 64], list(POINT_SETS))
    param_names = ("dim", "method")

    def setup(self, dim, method):
        if method == "fibonacci" and dim != 3:
            raise NotImplementedError("the lattice is for three dimensions")

    def time_gzkcore(self, dim, method):
        sample_directions(COUNT, dim, method, rng=0)

    def peakmem_gzkcore(self, dim, method):
        sample_directions(COUNT, dim, method, rng=0)

    def track_error(self, dim, method):
        return error_of_means(lambda seed: sample_directions(COUNT, dim, method, rng=seed), dim)


class AgainstScipy:
    """The same by SciPy: uniform_direction, ortho_group, and Sobol's normals on the sphere."""

    params = ([3, 64], ["iid", "orthogonal", "sobol"])
    param_names = ("dim", "method")

    def time_gzkcore(self, dim, method):
        sample_directions(COUNT, dim, method, rng=0)

    def time_scipy(self, dim, method):
        in_scipy(method, dim)

    def track_times_faster(self, dim, method):
        calls = {
            "gzkcore": lambda: sample_directions(COUNT, dim, method, rng=0),
            "scipy": lambda: in_scipy(method, dim),
        }
        return ratio(interleave(calls, 3), "scipy", "gzkcore")[0]

    track_times_faster.unit = "times"

    def track_error_of_unit_norm(self, dim, method):
        W = sample_directions(COUNT, dim, method, rng=0)
        return float(np.abs(np.square(W).sum(axis=1) - 1).max())
