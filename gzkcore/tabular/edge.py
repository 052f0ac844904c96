"""The choice among models that rows held out at random hardly tell apart.

These rows lie between the rows fitted to. Among alphas that are equally good there, and with or
without a linear trend, some models are absurd elsewhere: the shape of a kernel takes over. So those
that are hardly worse than the best are judged by rows at the edge, held out together: the latest
tenth by a date, else the tenth that lies farthest from the middle of the columns that matter. Some
hundred rows suffice, since models differ much there.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq
from sklearn.base import clone

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.learned import ConstantTargetsError, Examples, learned
from gzkcore.kernels.shift_invariant import Laplacian, Matern
from gzkcore.learn.held_out import TrainTest, at_most
from gzkcore.solve.trend import Trend

from .kernel_search import ALPHAS, GUARD_ROWS, LITTLE, Candidate, Trials
from .table_encoder import Groups

# A choice, all of them:
EDGE = 10  # one row in so many is at the edge; of fewer than 50 five, but no more than a fifth
FEWEST_ROWS = 10  # rows below which none are
MOST_ROWS = 800  # rows that models are compared on
# A tie with the best is within a standard error, and within so many times its error. With fewer
# rows to fit to than FEW it is within two standard errors.
TIE, TIE_OF_FEW, FEW = 1.005, 1.1, 200
MOST_AT_EDGE = 1 / 3
ROUNDING = 1e-8  # of the largest singular value
ROWS_PER_SLOPE = 4  # at least, to fit to
NOTHING = 1e-12  # of the variance of targets: what a trend leaves beside a straight line


@dataclass
class Edge:
    """Rows at the edge, the rows that they are predicted from, and why they are at the edge."""

    rows: Integers
    held_out: Integers
    latest: bool  # by a date

    @classmethod
    def of(cls, trials: Trials, groups: Groups, best: Candidate) -> "Edge | None":
        """Return some rows as they are split at the edge; None without numbers that matter."""
        shares = trials.X.var(axis=0) * np.square(best.kernel.scale())
        matter = shares >= LITTLE * shares.sum()
        dates, numbers = (groups.columns_of(kind) for kind in ("date", "number"))
        chosen = at_most(trials.every(), MOST_ROWS, np.random.default_rng(trials.seed))
        n_edge = max(len(chosen) // EDGE, min(len(chosen) // 5, 5))
        if len(chosen) < FEWEST_ROWS:
            return None
        if dates.size:
            far = trials.X[chosen, dates[np.argmax(shares[dates])]]
        else:
            far = _leverages(trials.X[chosen][:, numbers[matter[numbers]]])
        # Equal ones stay together.
        cut = np.sort(far)[-n_edge]
        out = far >= cut if np.mean(far >= cut) <= MOST_AT_EDGE else far > cut
        if not out.any() or not np.ptp(far) > 0:
            return None
        return cls(chosen[~out], chosen[out], dates.size > 0)

    @property
    def split(self) -> TrainTest:
        """The rows to fit to, and those at the edge."""
        return self.rows, self.held_out

    def told(self, error: float, best: Candidate, was: Candidate) -> str:
        """Say what the error at the edge is, and what is taken instead of the best at random."""
        where = (
            "that are the latest, predicted from those before"
            if self.latest
            else "farthest from the middle of the columns, predicted from the others"
        )
        told = (
            f"Beyond the rows: of {counted(len(self.held_out), 'row')} {where}, the error is "
            f"{error:#.3g} standard deviations of y, and {best.error:#.3g} of rows held out at "
            "random."
        )
        if best == was:
            return told
        trend = " and a linear trend" if best.slopes is not None else ""
        return (
            f"{told} Rows held out at random hardly tell some models apart; by the rows beyond "
            f"alpha={best.alpha:.2g}{trend} is chosen among these."
        )


def _leverages(columns: Doubles) -> Doubles:
    """Return how far rows are from the middle of the columns; 0 where there are too few rows."""
    with limit_blas(1):
        axes, sizes, _ = np.linalg.svd(columns - columns.mean(axis=0), full_matrices=False)
    axes = axes[:, sizes > ROUNDING * sizes.max(initial=0)]
    if 2 * axes.shape[1] > len(columns):
        return np.zeros(len(columns))
    return np.asarray(np.square(axes).sum(axis=1))


def settled(trials: Trials, best: Candidate, groups: Groups, edge: Edge) -> tuple[Candidate, float]:
    """Return the best of models that are hardly worse than the best, and its error at the edge.

    Parameters
    ----------
    trials : Trials
    best : Candidate
        The best on rows held out at random.
    groups : Groups
        Of the encoded columns.
    edge : Edge

    Returns
    -------
    (Candidate, float)
        The error is the root mean square, in standard deviations of y.
    """
    among, beyond = trials.on(trials.thinned(MOST_ROWS)), trials.on([edge.split])
    few, first, judged = trials.n_fitted < FEW, None, []
    for each in (best, *_with_slopes(trials, best, groups)):
        beyond.alphas, squares = _ties(among, each, first, few=few)
        if first is None and not squares.size:
            break
        first = squares[:, :1] if first is None else first
        at_edge = beyond.squares_of([each.kernel], each.slopes)
        errors = squares.mean(axis=0) + at_edge.mean(axis=0)
        place = int(np.argmin(errors)) if errors.size else 0
        if errors.size and math.isfinite(errors[place]):
            alpha = float(beyond.alphas[place])
            # So few are at the edge of few rows that all rows tell what is a tie.
            seen = np.vstack([squares, at_edge]) if few else at_edge
            judged.append((replace(each, alpha=alpha), at_edge[:, [place]], seen[:, [place]]))
    if not judged:
        return best, math.nan
    found = least = min(judged, key=lambda model: float(model[1].sum()))
    for model in judged:  # a tie goes to the last: a trend, with lengths of what it leaves
        if _about_as_good(model[2], least[2], few=few)[0]:
            found = model
    chosen, at_edge, _ = found
    trials.alphas = np.array([chosen.alpha])
    run = trials.run(chosen.name, chosen.kernel, chosen.of_splits, chosen.longer, chosen.slopes)
    if run is None or run.error > (TIE_OF_FEW if few else TIE) * best.error:
        # Some hundred rows were wrong.
        beyond.alphas = np.array([best.alpha])
        run, at_edge = best, beyond.squares_of([best.kernel])
    return run, math.sqrt(at_edge.sum() / beyond.held_out_weight())


def _ties(
    among: Trials, model: Candidate, first: Doubles | None, *, few: bool
) -> tuple[Doubles, Doubles]:
    """Return alphas from a model's on that are about as good as the first, and squared errors.

    Larger ones are tried, two decades at a time, until they make the errors larger than that.
    """
    alphas, parts = ALPHAS[0.99 * model.alpha <= ALPHAS][::2], []
    for start in range(0, len(alphas), 2):
        among.alphas = alphas[start : start + 2]
        parts.append(among.squares_of(model.of_splits, model.slopes))
        first = parts[0][:, :1] if first is None else first
        sums = parts[-1].sum(axis=0)
        if sums[-1] >= sums[0] and not _about_as_good(parts[-1], first, few=few)[-1]:
            break
    squares = np.hstack(parts)
    good = _about_as_good(squares, np.asarray(first), few=few)
    return alphas[: len(good)][good], squares[:, good]


def _about_as_good(squares: Doubles, others: Doubles, *, few: bool) -> NDArray[np.bool_]:
    """Return which columns of squared errors are no more than by chance larger than another."""
    doubts, tie = (2.0, TIE_OF_FEW) if few else (1.0, TIE)
    with np.errstate(invalid="ignore"):
        more = squares - others
        doubt = doubts * math.sqrt(len(more)) * more.std(axis=0)
        most = np.minimum(doubt, (tie**2 - 1) * others.sum())
        found: NDArray[np.bool_] = more.sum(axis=0) <= most
    return found


def _with_slopes(trials: Trials, best: Candidate, groups: Groups) -> list[Candidate]:
    """Return the best kernel beside a linear trend, and the same with lengths for what is left."""
    slopes = np.sort(np.append(groups.columns_of("number"), groups.columns_of("date")))
    slopes = slopes[np.ptp(trials.X[:, slopes], axis=0) > 0]
    if not slopes.size:
        return []
    if trials.n_fitted < ROWS_PER_SLOPE * (1 + slopes.size):
        trials.report.say(
            f"A linear trend was not tried: {slopes.size} slopes are too many for "
            f"{trials.n_fitted:,} rows."
        )
        return []
    beside = replace(best, slopes=slopes)
    given = _to_learn(best.kernel)
    if given is None or trials.n_fitted >= FEW:
        return [beside]
    shared = groups.of_columns if np.ndim(best.kernel.scale()) else None
    seen = (trials.every(), *(rows for rows, _ in trials.splits))
    kernels = [
        kernel
        for rows in seen
        if (kernel := _of_rest(trials, given, slopes, shared, rows)) is not None
    ]
    if len(kernels) < len(seen):
        return [beside]
    return [beside, replace(beside, kernel=kernels[0], of_splits=kernels[1:], longer=1.0)]


def _to_learn(kernel: Kernel) -> Kernel | None:
    """Return a kernel of the search with its lengths to be learned; None of other kernels."""
    if not isinstance(kernel, Matern | Laplacian):
        return None
    name = kernel.learnable[-1]
    rule = "learn" if np.ndim(kernel.scale()) else "learn-isotropic"
    found: Kernel = clone(kernel).set_params(**{name: rule})
    return found


def _of_rest(
    trials: Trials, given: Kernel, slopes: Integers, groups: Integers | None, rows: Integers
) -> Kernel | None:
    """Return a kernel learned from what a linear regression leaves of targets; None if nothing."""
    rows = np.random.default_rng(trials.seed).permutation(rows)[:GUARD_ROWS]
    H = Trend.along(slopes, trials.X[rows]).columns(trials.X[rows])
    rest = trials.Y[rows] - H @ lstsq(H, trials.Y[rows])[0]
    if not np.square(rest).mean() > NOTHING * np.square(trials.Y[rows]).mean():
        return None
    try:
        return learned(given, Examples(trials.X[rows], rest, groups=groups)).kernel
    except ConstantTargetsError:
        return None
