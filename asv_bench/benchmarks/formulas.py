"""Mirrors beside their formulas, on the same arguments: the gain of compiled code over Python.

It times the formulas that no benchmark of their idea times. The reference uses exact fractions
where possible, and is not optimised: ratios in the thousands are common.
"""

import functools

import numpy as np

from gzkcore import Gaussian, GeneralizedZonal, reference
from gzkcore.features.adaptive import monomial_features
from gzkcore.features.block_moments import (
    energy_variance,
    kernel_moments,
    projection_moments,
    projection_variance,
)
from gzkcore.features.fourier import fourier_variance, modified_weight
from gzkcore.features.gegenbauer import feature_operator
from gzkcore.features.maclaurin import maclaurin_variance
from gzkcore.features.polysketch import poly_sketch_variance
from gzkcore.features.projection import fast_jl_variance, hadamard_projection_variance
from gzkcore.features.sketch import tensor_sketch_variance
from gzkcore.kernels.truncation import angular_energy
from gzkcore.sphere.harmonics import n_harmonics
from gzkcore.sphere.series import radial_series
from gzkcore.sphere.special import alpha, gegenbauer_coefficients, mu, rodrigues

from .common import largest_error

# Pairs of points, numbers and degrees of the cases.
PAIRS, DIM = 2000, 30
rng = np.random.default_rng(0)
X, Y = rng.standard_normal((2, PAIRS, DIM))
K, K2 = rng.uniform(0, 1, (2, 20_000))
LEVELS = np.arange(300)
FEW = rng.standard_normal((5, 3))
TUPLES, WEIGHTS = rng.integers(-1, DIM, (50, 4)), rng.uniform(size=50)


def of_pairs(function, *numbers):
    """Call a formula of two points for all pairs."""
    return [function(x, y, *numbers) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]


def of_rows(function, *numbers):
    """Call a formula of one point for all rows."""
    return [function(x, *numbers) for x in X.tolist()]


def bump(r):
    """Return a function of distances."""
    return 1 / (1 + r * r)


def two_functions(t):
    """Return radial functions of degrees 0 to 3."""
    return np.stack([t**level for level in range(4)], axis=-1)


@functools.cache
def phi():
    """Return the operator of a few points."""
    return feature_operator(FEW, Gaussian(0.5), degree=3, order=2)


def slow_operator(adjoint=False):
    """Apply Phi to a vector by the formulas; and its adjoint to that, if asked for."""
    points, known, formulas = FEW, (reference.kernels.Gaussian(), 3, 2), reference.gegenbauer
    nodes, weights = phi().nodes.tolist(), phi().weights
    f = formulas.apply_operator(points, points[:, 0], *known)
    if adjoint:
        return formulas.apply_adjoint(points, f, nodes, weights, *known)
    return (np.sqrt(weights)[:, None] * [f(w) for w in nodes]).T.ravel()


# Formula -> the call of its mirror, and that of the formula.
CASES = {
    "adaptive.monomial_features": (
        lambda: monomial_features(X, TUPLES, WEIGHTS),
        lambda: reference.adaptive.monomial_features(X.tolist(), TUPLES.tolist(), WEIGHTS.tolist()),
    ),
    "block.energy_variance": (
        lambda: energy_variance(X, 5),
        lambda: of_rows(reference.block.energy_variance, 5),
    ),
    "block.kernel_moments": (
        lambda: kernel_moments("spherical", K, 0.1 + K2, 9)[1],
        lambda: [
            reference.block.kernel_moments("spherical", a, 0.1 + b, 9)[1]
            for a, b in zip(K, K2, strict=True)
        ],
    ),
    "block.projection_moments": (
        lambda: projection_moments(K, K2, 9)[1],
        lambda: [
            reference.block.projection_moments(a, b, 9)[1] for a, b in zip(K, K2, strict=True)
        ],
    ),
    "block.projection_variance": (
        lambda: projection_variance(X, 5),
        lambda: of_rows(reference.block.projection_variance, 5),
    ),
    "fourier.fourier_variance": (
        lambda: fourier_variance(K, K2, 9),
        lambda: [
            reference.fourier.fourier_variance(a, b, 9)
            for a, b in zip(K.tolist(), K2.tolist(), strict=True)
        ],
    ),
    "fourier.modified_weight": (
        lambda: modified_weight(X[:, :3], 3.0, 0.01),
        lambda: [reference.fourier.modified_weight(x, 3.0, 0.01) for x in X[:, :3].tolist()],
    ),
    "gegenbauer.apply_adjoint": (
        lambda: phi().T @ (phi() @ FEW[:, 0]),
        lambda: slow_operator(adjoint=True),
    ),
    "gegenbauer.apply_operator": (
        lambda: phi() @ FEW[:, 0],
        slow_operator,
    ),
    "harmonics.n_harmonics": (
        lambda: float(n_harmonics(60, 20)),
        lambda: float(reference.harmonics.n_harmonics(60, 20)),
    ),
    "kernels.generalized_zonal": (
        lambda: GeneralizedZonal(two_functions)(FEW, FEW),
        lambda: [
            [
                reference.kernels.generalized_zonal(
                    x, y, lambda t: [[t**level] for level in range(4)]
                )
                for y in FEW.tolist()
            ]
            for x in FEW.tolist()
        ],
    ),
    "maclaurin.maclaurin_variance": (
        lambda: maclaurin_variance(X, Y, [0.5, 0.0, 1.0], [0.5, 0.1, 0.4], 7),
        lambda: of_pairs(
            reference.maclaurin.maclaurin_variance, [0.5, 0.0, 1.0], [0.5, 0.1, 0.4], 7
        ),
    ),
    "polysketch.poly_sketch_variance": (
        lambda: poly_sketch_variance(X, Y, 5, 7, 16, 2),
        lambda: of_pairs(reference.polysketch.poly_sketch_variance, 5, 7, 16, 2),
    ),
    "projection.fast_jl_variance": (
        lambda: fast_jl_variance(X, Y, 5, 0.3),
        lambda: of_pairs(reference.projection.fast_jl_variance, 5, 0.3),
    ),
    "projection.hadamard_projection_variance": (
        lambda: hadamard_projection_variance(X, Y, 5),
        lambda: of_pairs(reference.projection.hadamard_projection_variance, 5),
    ),
    "series.angular_energy": (
        lambda: angular_energy(5, 20.0, 20.0, 9),
        lambda: reference.series.angular_energy(5, 20.0, 20.0, 9),
    ),
    "series.radial_series": (
        lambda: radial_series(bump, 1.0, 0.5, 3, 3),
        lambda: reference.series.radial_series(bump, 1.0, 0.5, 3, 3),
    ),
    "sketch.tensor_sketch_variance": (
        lambda: tensor_sketch_variance(X, Y, 3, 16),
        lambda: of_pairs(reference.sketch.tensor_sketch_variance, 3, 16),
    ),
    "special.alpha": (
        lambda: alpha(LEVELS, 40),
        lambda: [float(reference.special.alpha(int(level), 40)) for level in LEVELS],
    ),
    "special.gegenbauer_coefficients": (
        lambda: gegenbauer_coefficients(60, 9),
        lambda: [float(c) for c in reference.special.gegenbauer_coefficients(60, 9)],
    ),
    "special.mu": (
        lambda: mu(LEVELS[:60, None], LEVELS[:60], 9),
        lambda: [
            [float(reference.special.mu(level, power, 9)) for power in range(60)]
            for level in range(60)
        ],
    ),
    "special.rodrigues": (
        lambda: rodrigues(8, 5, K[:200]),
        lambda: reference.special.rodrigues(8, 5, K[:200].tolist()),
    ),
}


class AgainstReference:
    """The mirror and the formula, each once through the same arguments."""

    params = (sorted(CASES),)
    param_names = ("formula",)

    def setup(self, formula):
        self.mirror, self.formula = CASES[formula]

    def time_gzkcore(self, formula):
        self.mirror()

    def time_reference(self, formula):
        self.formula()

    def peakmem_gzkcore(self, formula):
        self.mirror()

    def track_error_gzkcore(self, formula):
        return largest_error(self.mirror(), self.formula())
