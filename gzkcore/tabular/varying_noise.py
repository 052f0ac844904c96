"""Noise that varies with the columns: how standard deviations of rows differ.

Of rows held out, log(error^2 / variance) is a constant, about -1.27, plus noise of standard
deviation 2.2, if all variances are right. Where it depends on the columns, a kernel ridge
regression h of it says how: the standard deviation of a row is multiplied by exp(h / 2). That is
done where it makes the held-out rows likelier, judged in folds.

A regression of logarithms is smooth, and noise may have a step. So two levels of the noise, of rows
with smaller and with larger h, replace h where they are likelier.
"""

import math
from dataclasses import dataclass

import numpy as np

from gzkcore._util.linalg import cholesky, shifted, solve_factored
from gzkcore._util.state import doubles, holds, nothing, number, stored
from gzkcore._util.typing import Doubles, Integers
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.learned import Examples, LearnedKernel, learned
from gzkcore.kernels.products import matrix_of
from gzkcore.kernels.shift_invariant import Matern
from gzkcore.learn.held_out import folds
from gzkcore.solve.products import cross_product

FEWEST_ROWS = 200  # With fewer held-out rows the noise is alike everywhere.
MOST_ROWS = 400  # h is learned from at most so many rows.
FOLDS = 3  # Each row is judged by an h that was learned from the other folds.
SETTLED = 0.05  # A search for lengths ends when a step raises a row's log likelihood by less.
SMALLEST = 1e-4  # Added to error^2 / variance, since log 0 is not finite.
MOST_FACTOR = 10.0  # Standard deviations are multiplied, or divided, by no more.
SHARES = 0.5, 0.75, 1.0  # Only a share of h may be right: regressions of logarithms exaggerate.
LEAST_NOISE = 0.1  # The noise of h is at least this share of its variance; it is known to be large.
FEWEST_IN_STEP = 20  # So many rows or more are on each side of a step.
CLEARLY = 2.0  # Held-out rows have to be likelier by so many standard errors.


@dataclass
class VaryingNoise:
    """A regression h of log(error^2 / variance), less its mean, on encoded rows; and its share."""

    _state = stored(
        kernel=holds(Kernel),
        rows=doubles("m", "d"),
        coef=doubles("m", 1),
        share=number(0),
        step=(doubles("k", 2) | nothing()).if_there(),
    )

    kernel: Kernel
    rows: Doubles
    coef: Doubles
    share: float = 1.0
    step: Doubles | None = None  # h, and what replaces it, see `step_of`

    def h(self, X: Doubles) -> Doubles:
        """Return h of rows."""
        return cross_product(self.kernel, X, self.rows, self.coef)[:, 0]

    def factors(self, X: Doubles) -> Doubles:
        """Return exp(h / 2), or by a step, which standard deviations are multiplied by, (n, 1)."""
        return self.factors_of(self.h(X))

    def factors_of(self, h: Doubles) -> Doubles:
        """Return the factors of rows whose h is known."""
        logs = self.share * h if self.step is None else np.interp(h, *self.step.T)
        factors = np.exp(logs / 2)[:, None]
        return np.asarray(np.clip(factors, 1 / MOST_FACTOR, MOST_FACTOR))

    @classmethod
    def of(
        cls, X: Doubles, ratios: Doubles, groups: Integers, start: LearnedKernel | None = None
    ) -> "tuple[VaryingNoise, LearnedKernel]":
        """Learn h from rows with their error^2 / variance; return its kernel's lengths too."""
        z = np.log(ratios + SMALLEST)
        z -= z.mean()
        examples = Examples(X, z, groups=groups)
        answer = learned(Matern(1.5, "learn"), examples, start=start, settled=SETTLED)
        noise = np.full(len(X), max(answer.noise, LEAST_NOISE))
        system = shifted(matrix_of(answer.kernel, X), noise)
        coef = solve_factored(cholesky(system, overwrite=True), z[:, None])
        return cls(answer.kernel, X, coef), answer


def varying_noise(
    X: Doubles, errors: Doubles, variances: Doubles, groups: Integers, seed: int
) -> tuple[VaryingNoise, Doubles] | None:
    """Return h, and the factors of these rows by an h of other folds; None if noise is alike.

    Given are encoded rows X that were held out, their errors and variances, (n, 1), and numbers of
    the columns, the same for those that share a length.
    """
    if len(X) < FEWEST_ROWS or not (errors.any() and variances.all()):
        return None
    ratios = np.square(errors[:, 0] / np.abs(errors).max()) / variances[:, 0]
    ratios /= ratios.mean()
    order = np.random.default_rng(seed).permutation(len(X))[:MOST_ROWS]
    splits = [(order[train], order[test]) for train, test in folds(len(order), FOLDS)]
    if any(not np.ptp(X[train], axis=0).any() for train, _ in splits):
        return None
    h = np.empty(len(X))
    for train, test in splits:
        of_fold, lengths = VaryingNoise.of(X[train], ratios[train], groups)
        h[test] = of_fold.h(X[test])
        if not max(_gains(ratios[test], share * h[test]).sum() for share in SHARES) > 0:
            return None
    noise, _ = VaryingNoise.of(X[order], ratios[order], groups, lengths)
    others = np.setdiff1d(np.arange(len(X)), order)
    if others.size:
        h[others] = noise.h(X[others])
    gains = {share: _gains(ratios, share * h) for share in SHARES}
    noise.share = max(SHARES, key=lambda share: float(gains[share].sum()))
    gained = gains[noise.share]
    if not gained.sum() > CLEARLY * _error_of_sum(gained):
        return None
    by_step = np.empty(len(X))
    for train, test in folds(len(X), FOLDS):
        by_step[test] = np.interp(h[test], *step_of(h[train], ratios[train]).T)
    more = _gains(ratios, by_step) - gained
    if more.sum() > _error_of_sum(more):
        noise.step = step_of(h, ratios)
    return noise, noise.factors_of(h)


def step_of(h: Doubles, ratios: Doubles) -> Doubles:
    """Return the likeliest step, as pairs of h and the logarithm of the mean ratio on each side.

    Less the mean of both logarithms, as h is less its own.
    """
    order = np.argsort(h, kind="stable")
    sums, below = np.cumsum(ratios[order]), np.arange(1, len(h))
    means = np.stack([sums[:-1] / below, (sums[-1] - sums[:-1]) / below[::-1]]) + SMALLEST
    loss = below * np.log(means[0]) + below[::-1] * np.log(means[1])
    place = FEWEST_IN_STEP + int(np.argmin(loss[FEWEST_IN_STEP:-FEWEST_IN_STEP]))
    logs = np.log(means[:, place])
    return np.column_stack([h[order[place : place + 2]], logs - logs.mean()])


def _error_of_sum(gains: Doubles) -> float:
    """Return the standard error of a sum of gains."""
    return math.sqrt(len(gains)) * float(gains.std())


def _gains(ratios: Doubles, logs: Doubles) -> Doubles:
    """Return twice the gain in log likelihood of each error by variances times exp(logs).

    Errors are normal, and their mean size is right before and after. Ratios: error^2 / variance.
    """
    ratios = ratios / ratios.mean()
    level = float(np.mean(ratios * np.exp(-logs)))
    return np.asarray(ratios - ratios * np.exp(-logs) / level - logs - math.log(level))
