"""Columns of numbers: how they are scaled, and what a kernel compares.

Numbers are standardised. A skewed column of positive numbers first becomes logarithms, and one of
extreme values the normal scores of its ranks.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gzkcore._util.typing import Doubles

# A choice, all four:
OUTLYING = 10.0  # standard deviations from which on a column is encoded by its ranks
NEARLY = 0.99  # of as far as one of few values can lie out
FEWEST_JUDGED = 5  # values below which one lies nearly so far out by chance
QUANTILES = 1000  # knots of the ranks
# Another: so skewed are columns that get logarithms, and what is left; of so many values at least,
# of which no more than a share is 0. The unit is their quantile of this order.
SKEWED, LEFT_SKEWED, FEWEST_SKEWED, MOST_ZEROS, UNIT = 2.0, 1.5, 50, 0.1, 0.1
SMALL_SHARE = 0.05  # a choice: of the numbers of a fit, those that may be smaller than nearly all
# Where values lie that are farther out than numbers go, in standard deviations of a tiny column.
FARTHEST = float(np.finfo(np.float64).max)
# Seconds of the periods that dates may have, and how many of them dates have to span.
PERIODS = {"year": 365.2425 * 86400, "week": 7 * 86400.0, "day": 86400.0}
FEWEST_PERIODS = 2
ALIKE = 0.99  # a choice: the mean of the unit vectors of a phase that hardly varies


def range_of(values: Doubles) -> dict[str, float]:
    """Return the ends of the numbers of a fit, and the size that nearly all of them exceed."""
    small = 2 * float(np.quantile(np.abs(values / 2), SMALL_SHARE))
    return {"low": float(values.min()), "high": float(values.max()), "small": small}


def number_of(
    name: str, values: Doubles, missing: NDArray[np.bool_], unit: float = 0.0
) -> dict[str, Any]:
    """Describe a column of numbers, of logarithms in a unit that is not 0."""
    there = values[~missing]
    column: dict[str, Any] = {"name": name, "kind": "number", "indicator": bool(missing.any())}
    if there.size == 0 or there.min() == there.max():
        if not missing.any() or there.size == 0:
            return {"name": name, "kind": "constant"}
        # Only whether the value is there tells rows apart.
        alone = {"fill": float(there[0]), "mean": float(there[0]), "scale": 1.0}
        return column | range_of(there) | alone
    if unit:
        logs = _logarithms(there, unit)
        of_logs = number_of(name, logs, np.zeros(len(logs), dtype=bool))
        return of_logs | column | range_of(there) | {"fill": float(np.median(there)), "unit": unit}
    column |= range_of(there)
    # Of values up to 1e308 neither a sum, a square nor a difference may overflow.
    largest = float(np.abs(there).max())
    small = there / largest
    mean, scale = float(small.mean()), float(small.std())
    column |= {"fill": 2 * float(np.median(there / 2)), "mean": mean * largest}
    column["scale"] = (scale or 1.0) * largest or math.ulp(0.0)  # of 5e-324 no half is a number
    if _some_far_out(small):
        knots = np.linspace(0.0, 1.0, min(QUANTILES, there.size))
        column["quantiles"] = 2 * np.quantile(there / 2, knots)
        scores = _scores(there, column["quantiles"])
        column |= {"mean": float(scores.mean()), "scale": float(scores.std()) or 1.0}
    return column


def unit_of(values: Doubles) -> float:
    """Return the unit of the logarithms that a skewed column of positive numbers gets, else 0."""
    few = values.size < FEWEST_SKEWED
    if few or values.min() < 0 or not values.any() or np.mean(values == 0) > MOST_ZEROS:
        return 0.0
    unit = float(np.quantile(values[values > 0], UNIT))
    if not skewness(values / values.max()) > SKEWED:
        return 0.0
    return unit if abs(skewness(_logarithms(values, unit))) < LEFT_SKEWED else 0.0


def skewness(values: Doubles) -> float:
    """Return the mean cube of standardised values."""
    far = values - values.mean()
    return float(np.mean(far**3)) / (float(values.std()) ** 3 or 1.0)


def _logarithms(values: Doubles, unit: float) -> Doubles:
    """Return log(1 + v / unit); the same of -v, negative, for negative v."""
    with np.errstate(divide="ignore"):
        sizes = np.logaddexp(0.0, np.log(np.abs(values)) - math.log(unit))
    found: Doubles = np.sign(values) * sizes
    return found


def periods_of(seconds: Doubles) -> list[str]:
    """Return the periods that dates span twice or more, and whose phases vary."""
    found = []
    for name, period in PERIODS.items():
        phases = np.exp(2j * np.pi * (seconds / period % 1.0))
        enough = seconds.size and np.ptp(seconds) >= FEWEST_PERIODS * period
        if enough and abs(phases.mean()) < ALIKE:
            found.append(name)
    return found


def _some_far_out(values: Doubles) -> bool:
    """Return whether some values would set the scale of all others.

    Where most values are alike, say 0, the rare ones lie far from these by their rarity alone: one
    in 100 is 10 standard deviations out. So they are judged among themselves.
    """
    rare = values[values != np.median(values)]
    judged = rare if 2 * rare.size < values.size else values
    if values.size < FEWEST_JUDGED or np.unique(judged).size <= 2:
        return False
    farthest = float(np.abs(judged - judged.mean()).max())
    most = NEARLY * math.sqrt(judged.size - 1)  # of n values none lies further out than sqrt(n - 1)
    return farthest > min(OUTLYING, most) * float(judged.std())


def encode_number(column: dict[str, Any], values: Doubles) -> list[Doubles]:
    """Return the columns that encode numbers, NaN where they are missing."""
    known = scored = filled(column, values)
    if "unit" in column:
        scored = _logarithms(scored, column["unit"])
    if "quantiles" in column:
        scored = _scores(scored, column["quantiles"])
    with np.errstate(over="ignore"):
        encoded = (scored / 2 - column["mean"] / 2) / column["scale"] * 2  # 1e308 - -1e308 is inf
    found = [np.clip(encoded, -FARTHEST, FARTHEST)]
    for period in column.get("periods", ()):
        phase = 2 * np.pi * (known / PERIODS[period] % 1.0)
        found += [np.sin(phase), np.cos(phase)]
    return [*found, np.isnan(values).astype(np.float64)] if column["indicator"] else found


def slopes_of_number(column: dict[str, Any], values: Doubles) -> list[Doubles]:
    """Return the derivatives of the columns of `encode_number`, by days for dates and durations."""
    slope = np.where(np.isnan(values), np.nan, 1.0 / column["scale"])
    if "unit" in column:
        slope /= column["unit"] + np.abs(values)
    found = [slope]
    for period in column.get("periods", ()):
        rate = 2 * np.pi / PERIODS[period]
        found += [rate * np.cos(rate * values), -rate * np.sin(rate * values)]
    if column["indicator"]:
        found.append(np.zeros(len(values)))
    return [each * (1.0 if column["holds"] == "numbers" else PERIODS["day"]) for each in found]


def filled(column: dict[str, Any], values: Doubles) -> Doubles:
    """Return values with the median where they are missing."""
    return np.where(np.isnan(values), column["fill"], values)


def _scores(values: Doubles, quantiles: Doubles) -> Doubles:
    """Return normal scores of ranks: of equal quantiles the mean rank, as in scikit-learn's."""
    knots = np.linspace(0.0, 1.0, len(quantiles))
    values, quantiles = values / 2, quantiles / 2  # differences don't overflow
    up = np.interp(values, quantiles, knots)
    down = 1.0 - np.interp(-values, -quantiles[::-1], knots)
    end = 0.5 / len(quantiles)
    scores: Doubles = ndtri(np.clip((up + down) / 2, end, 1 - end))
    return scores
