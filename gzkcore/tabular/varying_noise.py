"""Noise that varies with the columns: how standard deviations of rows differ.

Of rows held out, log(error^2 / variance) is a constant, about -1.27, plus noise of standard
deviation 2.2, if all variances are right. Where it depends on the columns, a kernel ridge
regression h of it says how: the standard deviation of a row is multiplied by exp(h / 2). That is
done where it makes the rows held out likelier, judged in folds.
"""

import math
from dataclasses import dataclass

import numpy as np

from gzkcore._util.linalg import cholesky, shifted, solve_factored
from gzkcore._util.state import doubles, holds, number, stored
from gzkcore._util.typing import Doubles, Integers
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.learned import Examples, learned
from gzkcore.kernels.products import matrix_of
from gzkcore.kernels.shift_invariant import Matern
from gzkcore.learn.held_out import folds
from gzkcore.solve.products import cross_product

# A choice, all of them:
FEWEST_ROWS, MOST_ROWS = 200, 400  # held out, of one target; and those that h is learned from
FOLDS = 3
SETTLED = 0.05  # of rows, of a log likelihood: a step of a search that brings less is the last
SMALLEST = 1e-4  # of errors squared, in units of variances: log 0 is not finite
MOST_FACTOR = 10.0
SHARES = 0.5, 0.75, 1.0  # of h: a regression of logarithms may exaggerate
LEAST_NOISE = 0.1  # of the variance of h: that of z is known to be large
CLEARLY = 2.0  # standard errors by which rows have to be likelier


@dataclass
class VaryingNoise:
    """A regression h of log(error^2 / variance), less its mean, on encoded rows; and its share."""

    _state = stored(
        kernel=holds(Kernel), rows=doubles("m", "d"), coef=doubles("m", 1), share=number(0)
    )

    kernel: Kernel
    rows: Doubles
    coef: Doubles
    share: float = 1.0

    def h(self, X: Doubles) -> Doubles:
        """Return h of rows."""
        return cross_product(self.kernel, X, self.rows, self.coef)[:, 0]

    def factors(self, X: Doubles) -> Doubles:
        """Return exp(share h / 2), which standard deviations are multiplied by, of shape (n, 1)."""
        found = np.exp(self.share * self.h(X) / 2)[:, None]
        return np.asarray(np.clip(found, 1 / MOST_FACTOR, MOST_FACTOR))

    @classmethod
    def of(cls, X: Doubles, ratios: Doubles, groups: Integers) -> "VaryingNoise":
        """Learn h from rows with their error^2 / variance."""
        z = np.log(ratios + SMALLEST)
        z -= z.mean()
        found = learned(Matern(1.5, "learn"), Examples(X, z, groups=groups), settled=SETTLED)
        noise = np.full(len(X), max(found.noise, LEAST_NOISE))
        system = shifted(matrix_of(found.kernel, X), noise)
        coef = solve_factored(cholesky(system, overwrite=True), z[:, None])
        return cls(found.kernel, X, coef)


def varying_noise(
    X: Doubles, errors: Doubles, variances: Doubles, groups: Integers, seed: int
) -> tuple[VaryingNoise, Doubles] | None:
    """Return h, and the factors of these rows by an h of other folds; None if noise is alike.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Encoded rows that were held out.
    errors, variances : ndarray of shape (n, 1)
    groups : ndarray of shape (d,)
        Columns that share a length.
    seed : int
        Of the choice of rows.
    """
    if len(X) < FEWEST_ROWS or not (errors.any() and variances.all()):
        return None
    ratios = np.square(errors[:, 0] / np.abs(errors).max()) / variances[:, 0]
    ratios /= ratios.mean()
    order = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]
    if any(not np.ptp(X[order[rows]], axis=0).any() for rows, _ in folds(len(order), FOLDS)):
        return None
    seen, h = np.isin(np.arange(len(X)), order), np.empty(len(X))
    for rows, out in folds(len(order), FOLDS):
        noise = VaryingNoise.of(X[order[rows]], ratios[order[rows]], groups)
        h[order[out]] = noise.h(X[order[out]])
        if not max(_gains(ratios[order[out]], share * h[order[out]]).sum() for share in SHARES) > 0:
            return None
    noise = VaryingNoise.of(X[order], ratios[order], groups)
    h[~seen] = noise.h(X[~seen]) if not seen.all() else 0.0
    gains = {share: _gains(ratios, share * h) for share in SHARES}
    noise.share = max(SHARES, key=lambda share: float(gains[share].sum()))
    gained = gains[noise.share]
    if not gained.sum() > CLEARLY * math.sqrt(len(gained)) * gained.std():
        return None
    found = np.clip(np.exp(noise.share * h / 2), 1 / MOST_FACTOR, MOST_FACTOR)
    return noise, found[:, None]


def _gains(ratios: Doubles, logs: Doubles) -> Doubles:
    """Return twice what log likelihoods of normal errors, whose mean size is right, gain by h."""
    ratios = ratios / ratios.mean()
    level = float(np.mean(ratios * np.exp(-logs)))
    gains: Doubles = ratios - ratios * np.exp(-logs) / level - logs - math.log(level)
    return gains
