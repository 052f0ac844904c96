"""How sure predictions of numbers are: a model's standard deviations, corrected by held-out rows.

Spread       variances by the model, and how much of them the rows leave unknown
Deviations   the factors that standard deviations are multiplied by, learned by `calibrated`:
one for each target, another for rows with a missing number, one for what is
beyond the rows, and one for each row where the noise varies (`varying_noise`)
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gzkcore._util.state import doubles, holds, nothing, stored
from gzkcore._util.typing import Doubles, Integers
from gzkcore.learn.near_kernel_ridge import NearKernelRidge
from gzkcore.solve.system import HELD_ROWS

from .form import Choice
from .report import DETAIL, Candidate
from .trials import NewModel, Trials
from .varying_noise import VaryingNoise, varying_noise

CALIBRATED = 0.95  # This share of held-out rows is within 1.96 deviations, if that can be.
NORMAL_95 = 1.959964  # 95 % of a normal distribution is within so many standard deviations.
LEAST_WIDENING, MOST_WIDENING = 0.2, 5.0  # Factors of standard deviations are between these.
MOST_OF_INCOMPLETE = 100.0  # Factors of rows with a missing number are no larger.
GAPS = "gaps"  # the kind of the remark on gaps between the rows
IN_GAPS = 1.5  # Most rows in a gap have at least so many times the usual variance.
# Near rows don't tell of the variance far from all. On 72,000 rows of stations .88 and .90 of the
# rows in gaps of a week, and .21 and .42 of those of 15 days to come, were within 1.96 standard
# deviations without this term; with it .99 and .97, and .97 and .97.
UNKNOWN_TO_NEAR = 4
FEWEST_INCOMPLETE = 20  # Fewer held-out rows with a missing number don't tell a factor.
SAME_FACTOR = 1.05  # Rows with a missing number have the factor of others up to so many times it.
# With fewer held-out rows than this, standard deviations are never narrowed. Of 24 samples of 5 and
# 7 rows of sin(4 x) .95 and .97 of new rows were within 1.96 of them, and .81 and .82 before; of
# noise .69 and .84, and .68 and .83.
FEWEST_NARROWING = 10
# It is told where the share of errors within an interval of 50 % is off by so much, and by so many
# standard errors. Of 317,346 delays of flights an interval of 30 % held 60 %, that of 95 % 95.7 %.
OFF, SURELY = 0.1, 3.0
INTERVALS = np.array([0.5, 0.8, 0.9])
HALVINGS = 60  # A factor is found by halving an interval so often.


class Spread(NamedTuple):
    """Variances of new observations by a model, of targets whose own variance is 1.

    A factor below 1, learned from held-out rows, shrinks a variance only as far as these rows had
    it: up to `usual`, which 95 % of them were below. What is beyond, no such row tells.

    The variance that is missing far away is added in proportion to the square of u, the share of
    the prior variance that the rows leave unknown. So all of it is added far away, and hardly any
    where predictions are good. On six tables with 24 random splits the mean coverage was .934
    without this term, .933 with the square, and .938 with u itself; u itself reduced the widening
    factor to as little as .2 of its former value.
    """

    variances: Doubles  # (n_rows, n_targets)
    unknown: Doubles  # of the same shape, the square of that share; 0 beside a trend with slopes
    farthest: Doubles  # (n_targets,), or of the same shape, variances far from all rows

    @classmethod
    def of(cls, model: Any, deviations: Doubles) -> "Spread":
        """Return what a fitted model says, whose kernel is 1 from a row to itself."""
        noise = np.atleast_1d(model.noise_variance_)
        alpha = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
        variances = np.square(deviations).reshape(-1, len(noise))
        share = left_unknown(variances, noise, alpha)
        farthest = noise * (1.0 + 1.0 / alpha)
        if getattr(model, "centers", None):
            # What centres can't follow is no noise: with small alphas the variance is many times
            # too large (elevation, alpha 1e-7: deviations of 30, errors of .2).
            variances, farthest = np.minimum(variances, 1.0), np.minimum(farthest, 1.0)
        if isinstance(model, NearKernelRidge):
            return cls(variances, share**UNKNOWN_TO_NEAR, farthest)
        if hasattr(model, "trend_coef_"):
            share = np.zeros_like(share)
        return cls(variances, np.square(share), farthest)

    @classmethod
    def joined(cls, spreads: Iterable["Spread"]) -> "Spread":
        """Return the spread of all rows of several models."""
        rows = [
            spread._replace(farthest=np.tile(spread.farthest, (len(spread.variances), 1)))
            for spread in spreads
        ]
        return cls(*map(np.concatenate, zip(*rows, strict=True)))

    def widened(self, factors: Doubles, usual: Doubles, outer: Doubles) -> Doubles:
        """Return standard deviations times factors, and far from the rows at least those of y."""
        lacking = np.maximum(1.0 - _widened(self.farthest, factors, usual, outer), 0.0)
        return np.sqrt(_widened(self.variances, factors, usual, outer) + self.unknown * lacking)


def left_unknown(variances: Doubles, noise: Doubles, alpha: float) -> Doubles:
    """Return the share of the function's variance that rows leave, from variances of new values."""
    share = alpha * (variances / np.where(noise > 0, noise, np.inf) - (noise > 0))
    return np.clip(share, 0.0, 1.0)


@dataclass
class Deviations:
    """The factors that standard deviations of a model are multiplied by."""

    _state = stored(
        factors=doubles("t", least=0),
        usual=doubles("t", least=0),
        outer=doubles("t", least=1),
        noise=holds(VaryingNoise) | nothing(),
        of_incomplete=doubles("t", least=0) | nothing(),
        farthest=(doubles("t", least=0) | nothing()).if_there(),
    )

    factors: Doubles  # of each target
    usual: Doubles  # variances that 95 % of the held-out rows were below
    outer: Doubles  # factors of what variances are beyond the usual
    noise: VaryingNoise | None = None
    # The factors of rows with a missing number, 0 where nothing is known of these.
    of_incomplete: Doubles | None = None
    farthest: Doubles | None = None  # variances far from all rows, of the models of `usual`

    @classmethod
    def uncorrected(cls, n_targets: int) -> "Deviations":
        """Return the deviations of a model without held-out rows."""
        return cls(*np.ones((3, n_targets)))

    def factors_of(self, incomplete: NDArray[np.bool_]) -> Doubles:
        """Return the factors of rows, given which have a missing number; 0 if nothing is known."""
        factors = np.tile(self.factors, (len(incomplete), 1))
        if self.of_incomplete is not None:
            factors[incomplete] = self.of_incomplete
        return factors

    def usual_of(self, spread: Spread) -> Doubles:
        """Return `usual`, larger if the scale of a model is: by that no row is beyond the usual."""
        if self.farthest is None:
            return self.usual
        there = self.farthest > 0
        scale = np.divide(spread.farthest, self.farthest, out=np.ones_like(self.usual), where=there)
        return self.usual * np.maximum(scale, 1.0)

    def set_scale(self, model: Any) -> None:
        """Give a model of near rows the scale of that which was calibrated.

        Each estimates its own from some rows. On 312,346 flights, whose errors have heavy tails,
        these were .87 and 1.67, so that .917 of new rows were within 1.96 standard deviations.
        """
        if isinstance(model, NearKernelRidge) and self.farthest is not None:
            model._scale = self.farthest / (1.0 + model.alpha_)

    def varying(self, rows: Doubles) -> Doubles:
        """Return the factors of rows by which the noise varies, of shape (n, 1)."""
        return np.ones((len(rows), 1)) if self.noise is None else self.noise.factors(rows)


def calibrated(choice: Choice, groups: Integers | None) -> Deviations:
    """Return the deviations with which 95 % of the held-out rows are within 1.96 of them.

    And 95 % of those with a number filled in, which the model takes for as sure as any other.
    `groups` number the columns, alike those that share a length of varying noise, and are None
    where the noise is not to vary.
    """
    trials, best, form, edge, blocks, incomplete = choice
    if form.is_whole:  # with more rows variances take many solves
        trials = trials.thinned(HELD_ROWS, trials.report)
    errors, spreads, places = [], [], []
    for model, mean, std, test in trials.predictions(best, form.trial, return_std=True):
        errors.append(mean - trials.Y[test])
        spreads.append(Spread.of(model, np.ones_like(mean) if std is None else std))
        places.append(test)
        del model
    missed, rows, spread = np.concatenate(errors), np.concatenate(places), Spread.joined(spreads)
    weight, gaps = trials.weights(rows), incomplete[rows]
    deviations = Deviations.uncorrected(missed.shape[1])
    if not rows.size:
        return deviations
    deviations.usual = _quantile(spread.variances, weight)
    deviations.farthest = spread.farthest.mean(axis=0)
    if groups is not None and missed.shape[1] == 1:
        sizes = missed * np.sqrt(weight)[:, None]  # as of rows of weight 1
        varying = varying_noise(trials.rows(rows), sizes, spread.variances, groups, trials.seed)
        if varying is not None:
            deviations.noise, of_rows = varying
            missed /= of_rows
            trials.report.say(
                "The noise varies with the columns: standard deviations of rows are multiplied by "
                f"{of_rows.min():.2f} to {of_rows.max():.2f}.",
                DETAIL,
            )

    def factors(some: NDArray[np.bool_]) -> Doubles:
        part = Spread(*(values[some] for values in spread))
        return widening(missed[some], part, deviations.usual, weight[some])

    least = LEAST_WIDENING if len(gaps) >= FEWEST_NARROWING else 1.0
    usable = gaps if gaps.all() else ~gaps
    deviations.factors = np.clip(factors(usable), least, MOST_WIDENING)
    std = spread.widened(deviations.factors, deviations.usual, deviations.outer)
    sizes = np.divide(np.abs(missed), std, out=np.zeros_like(missed), where=std > 0)
    tails = _about_tails(sizes[usable], weight[usable])
    within = np.average(sizes[usable] <= NORMAL_95 + 1e-6, axis=0, weights=weight[usable]).min()
    # That fewer than 95 % are within is no detail.
    kind = DETAIL if within >= CALIBRATED else ""
    trials.report.say(_about_widening(deviations.factors, within) + tails, kind)
    of_blocks = (trials.on(splits, trials.report) for splits in blocks)
    in_gaps = [_widen_outer(deviations, held, best, form.trial, IN_GAPS) for held in of_blocks]
    for sentence in [*filter(None, in_gaps)][-1:]:  # the last is the largest
        trials.report.say(sentence, GAPS)
    if edge is not None:
        held = trials.on([edge.split], trials.report)
        if sentence := _widen_outer(deviations, held, best, form.trial):
            trials.report.say(sentence, DETAIL)
    if incomplete.any() and not gaps.all():
        enough = gaps.sum() >= FEWEST_INCOMPLETE
        if sentence := _widen_incomplete(deviations, factors(gaps) if enough else None):
            trials.report.say(sentence)
    return deviations


def _widen_incomplete(deviations: Deviations, factors: Doubles | None) -> str:
    """Set the factors of rows with a missing number, and return what was done, in words.

    None: too few such rows were held out.
    """
    if factors is None:
        deviations.of_incomplete = np.zeros_like(deviations.factors)
        done = "at least that of y: too few such rows were held out to say more"
    else:
        # So few rows may look surer than the others by chance; they are not.
        deviations.of_incomplete = np.clip(factors, deviations.factors, MOST_OF_INCOMPLETE)
        if (deviations.of_incomplete < SAME_FACTOR * deviations.factors).all():
            return ""
        done = (
            f"multiplied by {listed(deviations.of_incomplete)}, where those of others are by "
            f"{listed(deviations.factors)}: less is known of these"
        )
    return f"Standard deviations of rows with a missing number are {done}."


def _widen_outer(
    deviations: Deviations, trials: Trials, best: Candidate, new_model: NewModel,
    least: float = 0.0,
) -> str:  # fmt: skip
    """Make standard deviations beyond the rows, or between them, as large as errors there.

    Return what was done, in words. If most rows held out have less than `least` times the usual
    variance, none is in a gap.
    """
    alike = replace(best, of_splits=[best.kernel for _ in trials.splits])
    errors, spreads, places = [], [], []
    for model, mean, std, test in trials.predictions(alike, new_model, return_std=True):
        spread = Spread.of(model, np.asarray(std))
        if not test.size or np.mean(spread.variances >= least * deviations.usual) < 0.5:
            return ""
        errors.append((mean - trials.Y[test]) / deviations.varying(trials.rows(test)))
        spreads.append(spread)
        places.append(test)
        del model
    missed, spread = np.concatenate(errors), Spread.joined(spreads)
    usual, factors = deviations.usual, deviations.factors
    weights = trials.weights(np.concatenate(places))
    outer = outer_widening(missed, spread, usual, factors, weights)
    before = np.maximum(deviations.outer, factors)
    if least and (outer <= before).all():
        return ""
    outer = deviations.outer = np.maximum(outer, before)
    within = 100 * np.mean(np.abs(missed) <= NORMAL_95 * spread.widened(factors, usual, outer))
    where, those = ("In gaps between", "of blocks") if least else ("Beyond", "at the edge")
    return (
        f"{where} the rows standard deviations are multiplied by {listed(outer)}, at most "
        f"{MOST_WIDENING:g}; so {within:.0f} % of the rows {those} are within 1.96 of them."
    )


def _about_widening(factors: Doubles, within: float) -> str:
    """Return how standard deviations were corrected, in words, given a factor for each target.

    And the share of the rows within 1.96 of them, below .95 where factors are as large as may be.
    """
    those = "of the rows held out for the choice"
    numbers = listed(factors)
    if set(numbers.split(", ")) == {"1.00"}:
        return (
            f"The model's standard deviations needed no correction: at least 95 % {those} are "
            "within 1.96 standard deviations of their predictions."
        )
    sizes = {"too small" if factor > 1 else "too large" for factor in factors}
    wrong = f"were {sizes.pop()}" if len(sizes) == 1 else "were not right"
    for_each = "" if len(factors) == 1 else ", one factor for each target"
    return (
        f"The model's standard deviations {wrong}, so they are multiplied by {numbers}{for_each}. "
        f"Now {100 * min(within, CALIBRATED):.0f} % {those} are within 1.96 standard deviations of "
        "their predictions."
    )


def _about_tails(sizes: Doubles, weights: Doubles) -> str:
    """Say so where errors over standard deviations, of all targets, are far from normal, else "".

    And by which numbers of standard deviations other intervals than those of 95 % are right.
    """
    normal, there = ndtri((1 + INTERVALS) / 2), sizes > 0  # those of a constant target are 0
    sizes, weights = sizes[there], np.broadcast_to(weights[:, None], there.shape)[there]
    within = weights[sizes <= normal[0]].sum() / max(weights.sum(), 1e-300)
    if abs(within - 0.5) < max(OFF, SURELY * 0.5 / math.sqrt(max(sizes.size, 1))):
        return ""
    found = [_quantile(sizes[:, None], weights, share)[0] for share in INTERVALS]
    return (
        f" But errors are not normal: {100 * within:.0f} % are within {normal[0]:.2f}, where 50 % "
        f"should be. For 50, 80 and 90 % take {listed(found)} standard deviations, and not "
        f"{listed(normal)}."
    )


def listed(values: Iterable[float]) -> str:
    """Return numbers for a sentence."""
    return ", ".join(f"{value:.2f}" for value in values)


def _widened(variances: Doubles, factors: Doubles, usual: Doubles, outer: Doubles) -> Doubles:
    """Return variances times squares of factors, and times those of outer ones beyond the usual."""
    inner = np.minimum(variances, usual)
    beyond = np.square(np.maximum(factors, outer)) * (variances - inner)
    return np.asarray(np.square(factors) * inner + beyond)


def widening(errors: Doubles, spread: Spread, usual: Doubles, weights: Doubles) -> Doubles:
    """Return by what standard deviations are multiplied, so that 95 % of errors are within 1.96.

    Of each of several columns, and 95 % by weight. A target that is constant has neither. The
    factor that a row needs is found by halving, since variances grow with it.
    """
    sizes = np.abs(errors) / NORMAL_95
    least = np.sqrt(np.minimum(spread.variances, usual))
    high = np.divide(sizes, least, out=np.zeros_like(sizes), where=least > 0)
    low = np.zeros_like(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = spread.widened(middle, usual, np.ones(1)) >= sizes
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return _quantile(high, weights)


def outer_widening(
    errors: Doubles, spread: Spread, usual: Doubles, factors: Doubles, weights: Doubles
) -> Doubles:
    """Return by what variances beyond the usual are multiplied, squared, of each column.

    The least number >= 1 with which errors have the size of standard deviations, in the root mean
    square by weight, at most MOST_WIDENING; the usual part has the factors.
    """
    low, high = np.ones_like(factors), np.full_like(factors, MOST_WIDENING)
    outer = low
    for _ in range(HALVINGS):
        std = spread.widened(factors, usual, outer)
        ratios = np.divide(errors, std, out=np.zeros_like(errors), where=std > 0)
        enough = np.average(np.square(ratios), axis=0, weights=weights) <= 1.0
        low, high = np.where(enough, low, outer), np.where(enough, outer, high)
        outer = (low + high) / 2
    return high


def _quantile(values: Doubles, weights: Doubles, share: float = CALIBRATED) -> Doubles:
    """Return what such a share, by weight, of the values are at most, of each column."""
    order = np.argsort(values, axis=0)
    sums = np.cumsum(weights[order], axis=0)
    places = np.argmax(sums >= share * sums[-1], axis=0)
    columns = np.arange(order.shape[1])
    return np.asarray(values[order[places, columns], columns])
