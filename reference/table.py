"""The encoding of columns by `KernelRegressor`, its standard deviations and its importances.

Columns with extreme values are encoded by ranks. Standard deviations are widened until 95 % of the
held-out rows are within 1.96 of them, and are those of y far from all rows. The lengthscales of
columns determine their importances.
"""

from collections.abc import Sequence
from statistics import NormalDist

__all__ = ["importances", "normal_scores", "widening"]


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
) -> float:
    """Return by what standard deviations are multiplied, so that 95 % of errors are within 1.96.

    That is 95 % of the weight of the rows. Variances are in units of that of y. Times a factor
    f they are f^2 variance + unknown max(1 - f^2 farthest, 0): at least 1 where all is unknown. A
    row needs the least factor for which its error is within 1.96 deviations, found by halving; the
    result is the quantile of these. A row of variance 0 needs none: its target is constant.

    Examples
    --------
    >>> widening([1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]) < 1
    True
    """
    quantile = NormalDist().inv_cdf(0.975)
    needed = []
    rows = zip(errors, variances, unknown, farthest, weights, strict=True)
    for error, variance, share, most, weight in rows:
        low, high = 0.0, abs(error) / quantile / variance**0.5 if variance > 0 else 0.0
        for _ in range(60):
            factor = (low + high) / 2
            total = factor**2 * variance + share * max(1 - factor**2 * most, 0.0)
            within = abs(error) <= quantile * total**0.5
            low, high = (low, factor) if within else (factor, high)
        needed.append((high, weight))
    below, found = 0.0, 0.0
    for factor, weight in sorted(needed):
        found, below = factor, below + weight
        if below >= 0.95 * sum(weights):
            break
    return found


def importances(
    lengths: Sequence[float], variances: Sequence[float], sources: Sequence[int], n_columns: int
) -> list[float]:
    """Return each column's share of sum_j v_j / l_j^2, where encoded column j is from sources[j].

    v_j is the variance of an encoded column: in units of its spread its length is l_j / v_j^(1/2).

    Examples
    --------
    >>> importances([1.0, 2.0, 2.0], [1.0, 1.0, 1.0], [0, 1, 1], 2)
    [0.6666666666666666, 0.3333333333333333]
    """
    terms = [v / length**2 for v, length in zip(variances, lengths, strict=True)]
    shares = [0.0] * n_columns
    for term, source in zip(terms, sources, strict=True):
        shares[source] += term / sum(terms)
    return shares
