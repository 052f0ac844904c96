"""The encoding of columns by `KernelRegressor`, its standard deviations and its importances.

Columns with extreme values are encoded by ranks, skewed ones by logarithms. Standard deviations are
widened until 95 % of the held-out rows are within 1.96 of them, and are those of y far from all
rows. The lengthscales of columns determine their importances.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

__all__ = [
    "class_probabilities",
    "gain_of_varying_noise",
    "importances",
    "logarithms",
    "normal_scores",
    "outer_widening",
    "widened",
    "widening",
]


def logarithms(column: Sequence[float], unit: float) -> list[float]:
    """Return log(1 + v / unit) of each value v, with the sign of v.

    Examples
    --------
    >>> [round(value, 2) for value in logarithms([0.0, 1.0, 9.0, -9.0], 1.0)]
    [0.0, 0.69, 2.3, -2.3]
    """
    return [math.copysign(math.log(1 + abs(value) / unit), value) for value in column]


def gain_of_varying_noise(ratios: Sequence[float], logs: Sequence[float]) -> float:
    """Return twice what the log likelihood of errors gains if variances are multiplied by exp(h).

    `ratios` are error^2 / variance and `logs` are h. With and without h the variances are scaled to
    the errors: r = error^2 / (level variance exp(h)) has the mean 1, and the loss is log(level) + h
    + r.

    Examples
    --------
    >>> gain_of_varying_noise([1.0, 1.0], [0.0, 0.0])
    0.0
    >>> gain_of_varying_noise([0.01, 100.0], [math.log(0.01), math.log(100.0)]) > 0
    True
    """

    def loss(logs: Sequence[float]) -> float:
        scaled = [ratio / math.exp(h) for ratio, h in zip(ratios, logs, strict=True)]
        level = sum(scaled) / len(scaled)
        return sum(math.log(level) + h + r / level for h, r in zip(logs, scaled, strict=True))

    return loss([0.0] * len(ratios)) - loss(logs)


def normal_scores(column: Sequence[float]) -> list[float]:
    """Return the normal quantiles of ranks, scaled to [0, 1]; equal values share their mean rank.

    The ends are half a rank further in, since a normal distribution has none.

    Examples
    --------
    >>> normal_scores([1.0, 5.0, 1000.0])[1]
    0.0
    """
    n = len(column)
    scores = []
    for value in column:
        below = sum(other < value for other in column)
        equal = sum(other == value for other in column)
        share = (below + (equal - 1) / 2) / (n - 1)
        share = min(max(share, 0.5 / n), 1 - 0.5 / n)
        scores.append(NormalDist().inv_cdf(share))
    return scores


def widening(
    errors: Sequence[float],
    variances: Sequence[float],
    unknown: Sequence[float],
    farthest: Sequence[float],
    weights: Sequence[float],
    usual: float = math.inf,
) -> float:
    """Return by what standard deviations are multiplied, so that 95 % of errors are within 1.96.

    That is 95 % of the weight of the rows. Variances are in units of that of y. Times a factor f a
    variance v is w(v) = f^2 min(v, usual) + max(f, 1)^2 max(v - usual, 0): a factor below 1 shrinks
    only what is usual. The whole variance is w(v) + unknown max(1 - w(farthest), 0): at least 1
    where all is unknown. A row needs the least factor for which its error is within 1.96
    deviations, found by halving; the result is the quantile of these. A row of variance 0 needs
    none: its target is constant.

    Examples
    --------
    >>> widening([1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]) < 1
    True
    """
    quantile = NormalDist().inv_cdf(0.975)
    needed = []
    rows = zip(errors, variances, unknown, farthest, weights, strict=True)
    for error, variance, share, most, weight in rows:
        least = min(variance, usual) ** 0.5
        low, high = 0.0, abs(error) / quantile / least if least > 0 else 0.0
        for _ in range(60):
            factor = (low + high) / 2
            far = widened(most, factor, usual)
            total = widened(variance, factor, usual) + share * max(1 - far, 0.0)
            within = abs(error) <= quantile * total**0.5
            low, high = (low, factor) if within else (factor, high)
        needed.append((high, weight))
    last = below = 0.0
    for factor, weight in sorted(needed):
        last, below = factor, below + weight
        if below >= 0.95 * sum(weights):
            break
    return last


def widened(variance: float, factor: float, usual: float, outer: float = 1.0) -> float:
    """Return factor^2 min(variance, usual) + max(factor, outer)^2 max(variance - usual, 0).

    A factor below 1, learned from rows held out, shrinks only what these had.

    Examples
    --------
    >>> widened(3.0, 0.5, 2.0)
    1.5
    """
    beyond = max(variance - usual, 0.0)
    return factor**2 * min(variance, usual) + max(factor, outer) ** 2 * beyond


def outer_widening(
    errors: Sequence[float],
    variances: Sequence[float],
    unknown: Sequence[float],
    farthest: Sequence[float],
    weights: Sequence[float],
    usual: float,
    factor: float,
    most: float,
) -> float:
    """Return the outer factor with which errors at the edge have the size of their deviations.

    The least g from 1 to `most`, by halving, for which the mean of error^2 / variance is at most 1,
    where variances are as in `widening` with that g.

    Examples
    --------
    >>> outer_widening([3.0], [1.0], [0.0], [1.0], [1.0], 0.0, 1.0, 5.0)
    3.0
    """

    def ratio(outer: float) -> float:
        total = 0.0
        rows = zip(errors, variances, unknown, farthest, weights, strict=True)
        for error, variance, share, far, weight in rows:
            lacking = max(1 - widened(far, factor, usual, outer), 0.0)
            whole = widened(variance, factor, usual, outer) + share * lacking
            total += weight * error**2 / whole if whole > 0 else 0.0
        return total / sum(weights)

    low, high, outer = 1.0, most, 1.0
    for _ in range(60):
        low, high = (low, outer) if ratio(outer) <= 1 else (outer, high)
        outer = (low + high) / 2
    return high


def class_probabilities(
    predictions: Sequence[float], power: float, floor: float, least: float = 0.0
) -> list[float]:
    """Return probabilities of classes, of predictions f_c for targets of +1 and -1.

    Least squares estimate the mean of a target, which is 2 p - 1. So (1 + f) / 2 estimates p; it
    may be 0 or less, so it is at least `floor`. A power makes probabilities surer or less sure;
    then they are divided by their sum. Those that are smaller than `least` are raised to it, and
    all are divided by their sum again.

    Examples
    --------
    >>> class_probabilities([0.6, -1.2, 0.6], 1.0, 0.1)
    [0.47058823529411764, 0.058823529411764705, 0.47058823529411764]
    """
    shares = [max((1.0 + f) / 2.0, floor) ** power for f in predictions]
    raised = [max(share / sum(shares), least) for share in shares]
    return [share / sum(raised) for share in raised]


def importances(
    lengths: Sequence[float],
    variances: Sequence[float],
    sources: Sequence[int],
    n_columns: int,
    prior: float = 1.0,
    slopes: Sequence[float] = (),
) -> list[float]:
    """Return each column's share of sum_j v_j (s / l_j^2 + b_j^2), where j is from sources[j].

    v_j is the variance of an encoded column: in units of its spread its length is l_j / v_j^(1/2).
    s is the variance of the function, and b_j the slope of a linear trend, if there is one.

    Examples
    --------
    >>> importances([1.0, 2.0, 2.0], [1.0, 1.0, 1.0], [0, 1, 1], 2)
    [0.6666666666666666, 0.3333333333333333]
    """
    slopes = slopes or [0.0] * len(lengths)
    rates = [prior / length**2 + slope**2 for length, slope in zip(lengths, slopes, strict=True)]
    terms = [v * rate for v, rate in zip(variances, rates, strict=True)]
    shares = [0.0] * n_columns
    for term, source in zip(terms, sources, strict=True):
        shares[source] += term / sum(terms)
    return shares
