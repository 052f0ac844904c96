"""The choice among models that rows held out at random hardly tell apart.

These rows lie between the rows fitted to. Among alphas that are equally good there, and with or
without a linear trend, some models are absurd elsewhere: the shape of a kernel takes over. So those
that are hardly worse than the best are judged by rows at the edge, held out together: the latest
tenth by a date, else the tenth that lies farthest from the middle of the columns that matter. Some
hundred rows suffice, since models differ much there.

Nor do rows held out at random tell of gaps between the rows, such as a day of which nothing is
known. For these, whole blocks are held out: days, places, or stretches of a column.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr
from sklearn.base import clone

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.learned import ConstantTargetsError, Examples, learned
from gzkcore.kernels.product import column_scales
from gzkcore.kernels.shift_invariant import Laplacian, Matern, ProductMatern
from gzkcore.learn.held_out import TrainTest, at_most
from gzkcore.solve.trend import ROUNDING, Trend, means_and_triangle

from .kernel_search import GUARD_ROWS, LITTLE
from .report import DETAIL, Candidate
from .table_encoder import Groups
from .trials import ALPHAS, Trials

MOST_ROWS = 800  # Models are compared on at most so many rows.
FEWEST_ROWS = 10  # Fewer rows have no edge.
# One row in ONE_IN is at the edge; of fewer than 50 rows five are, but no more than a fifth.
ONE_IN = 10
# Blocks are such shares of the range of a column, or the rows of a value that many rows share. Of
# three consecutive blocks one is held out.
STRETCHES, ONE_BLOCK_IN = (1 / 40, 1 / 10), 3
MOST_AT_EDGE = 1 / 3  # Rows as far as the nearest one at the edge are there too, up to this share.
ROUNDED_AXIS = 1e-8  # Axes with a smaller share of the largest singular value are rounding errors.
# A model ties with the best if its error is at most TIE times as large, and larger by no more than
# one standard error. With fewer than FEW rows to fit to it is TIE_OF_FEW, and two standard errors.
TIE, TIE_OF_FEW, FEW = 1.005, 1.1, 200
ROWS_PER_SLOPE = 4  # With fewer rows to fit to per slope, no trend is tried.
OWN = 0.1  # A column with a slope has so much of its spread beside the others.
NOTHING = 1e-12  # A trend that leaves less of the variance of targets is the whole function.


@dataclass
class Edge:
    """A split that holds out rows at the edge: the latest by a date, or the farthest."""

    split: TrainTest
    latest: bool

    @classmethod
    def of(cls, trials: Trials, groups: Groups, best: Candidate) -> "Edge | None":
        """Return the edge of some rows; None without numbers that matter."""
        shares = _shares(trials, best)
        matter = shares >= LITTLE
        dates, numbers = (groups.columns_of(kind) for kind in ("date", "number"))
        rows = at_most(trials.every(), MOST_ROWS, np.random.default_rng(trials.seed))
        if len(rows) < FEWEST_ROWS:
            return None
        if dates.size:
            far = trials.X[rows, dates[np.argmax(shares[dates])]]
        else:
            far = _leverages(trials.X[rows][:, numbers[matter[numbers]]])
        n_edge = max(len(rows) // ONE_IN, min(len(rows) // 5, 5))
        cut = np.sort(far)[-n_edge]  # rows that are as far stay together
        out = far >= cut if np.mean(far >= cut) <= MOST_AT_EDGE else far > cut
        if not out.any() or not np.ptp(far) > 0:
            return None
        return cls((rows[~out], rows[out]), dates.size > 0)

    def sentence(self, error: float, chosen: Candidate, best: Candidate) -> str:
        """Return the error at the edge in words, and what is chosen instead of the best."""
        where = (
            "that are the latest, predicted from those before"
            if self.latest
            else "farthest from the middle of the columns, predicted from the others"
        )
        sentence = (
            f"Beyond the rows: of {counted(len(self.split[1]), 'row')} {where}, the error is "
            f"{error:#.3g} standard deviations of y, and {chosen.error:#.3g} of rows held out at "
            "random."
        )
        if chosen == best:
            return sentence
        trend = " and a linear trend" if chosen.slopes is not None else ""
        return (
            f"{sentence} Rows held out at random hardly tell some models apart; the rows beyond "
            f"chose the one with alpha={chosen.alpha:.2g}{trend}."
        )


def gaps_in(trials: Trials, groups: Groups, best: Candidate) -> list[list[TrainTest]]:
    """Return ways to hold out blocks between other rows, each as splits.

    Blocks lie along the date, the place and the number with which predictions change most.
    """
    rows = at_most(trials.every(), MOST_ROWS, np.random.default_rng(trials.seed))
    shares, ways = _shares(trials, best), []
    for columns in filter(len, map(groups.columns_of, ("date", "place", "number"))):
        along = trials.X[rows, columns[np.argmax(shares[columns])]]
        values, block = np.unique(along, return_inverse=True)
        blocks = [block] if 2 * len(values) <= len(rows) else []
        stretches = [share * np.ptp(values) for share in STRETCHES if share * len(values) >= 1]
        for block in [*blocks, *(np.floor((along - values[0]) / size) for size in stretches)]:
            inner = (block > 0) & (block < block.max())
            held = [inner & (block % ONE_BLOCK_IN == turn) for turn in range(ONE_BLOCK_IN)]
            ways.append([(rows[~out], rows[out]) for out in held if out.any()])
    return [splits for splits in ways if splits]


def _shares(trials: Trials, best: Candidate) -> Doubles:
    """Return the share of each encoded column in the mean squared change of predictions."""
    scales = column_scales(best.kernel, trials.X.shape[1])
    rates = trials.X.var(axis=0) * np.square(scales)
    return np.asarray(rates / rates.sum())


def _leverages(columns: Doubles) -> Doubles:
    """Return how far rows are from the middle of the columns; 0 where there are too few rows."""
    with limit_blas(1):
        axes, sizes, _ = np.linalg.svd(columns - columns.mean(axis=0), full_matrices=False)
    axes = axes[:, sizes > ROUNDED_AXIS * sizes.max(initial=0)]
    if 2 * axes.shape[1] > len(columns):
        return np.zeros(len(columns))
    return np.asarray(np.square(axes).sum(axis=1))


def choose_by_edge(
    trials: Trials, best: Candidate, groups: Groups, edge: Edge
) -> tuple[Candidate, float]:
    """Return the best of models that are hardly worse than the best, and its error at the edge.

    The best is that of rows held out at random; errors are in standard deviations of y.
    """
    among, beyond = trials.thinned(MOST_ROWS), trials.on([edge.split])
    few, first, judged = trials.n_fitted < FEW, None, []
    for model in (best, *_with_slopes(trials, best, groups)):
        alphas, squares = _ties(among, model, first, few=few)
        if first is None and not squares.size:
            break
        first = squares[:, :1] if first is None else first
        at_edge = beyond.squares_of([model.kernel], alphas, model.slopes)
        errors = squares.mean(axis=0) + at_edge.mean(axis=0)
        place = int(np.argmin(errors)) if errors.size else 0
        if errors.size and math.isfinite(errors[place]):
            # With few rows, all held-out rows decide ties.
            deciding = np.vstack([squares, at_edge]) if few else at_edge
            chosen = replace(model, alpha=float(alphas[place]))
            judged.append((chosen, at_edge[:, [place]], deciding[:, [place]]))
    if not judged:
        return best, math.nan
    *_, of_least = min(judged, key=lambda one: float(one[1].sum()))
    # A tie goes to the last: a trend, with lengths of what it leaves.
    chosen, at_edge, _ = [
        one for one in judged if one[2] is of_least or _about_as_good(one[2], of_least, few=few)[0]
    ][-1]
    same = chosen.slopes is best.slopes and chosen.alpha == best.alpha
    run = best if same else trials.run(chosen, np.array([chosen.alpha]))
    if run is None or run.error > (TIE_OF_FEW if few else TIE) * best.error:
        # Some hundred rows were wrong.
        run, at_edge = best, beyond.squares_of([best.kernel], np.array([best.alpha]))
    return run, math.sqrt(at_edge.sum() / beyond.held_out_weight())


def _ties(
    among: Trials, model: Candidate, first: Doubles | None, *, few: bool
) -> tuple[Doubles, Doubles]:
    """Return alphas from a model's on that are about as good as the first, and squared errors.

    Larger ones are tried, two decades at a time, until they make the errors larger than that.
    """
    alphas, parts = ALPHAS[0.99 * model.alpha <= ALPHAS][::2], []
    for start in range(0, len(alphas), 2):
        parts.append(among.squares_of(model.of_splits, alphas[start : start + 2], model.slopes))
        first = parts[0][:, :1] if first is None else first
        sums = parts[-1].sum(axis=0)
        if sums[-1] >= sums[0] and not _about_as_good(parts[-1], first, few=few)[-1]:
            break
    squares = np.hstack(parts)
    good = _about_as_good(squares, np.asarray(first), few=few)
    return alphas[: len(good)][good], squares[:, good]


def _about_as_good(squares: Doubles, others: Doubles, *, few: bool) -> NDArray[np.bool_]:
    """Say which columns of squared errors tie with a column of others."""
    doubts, tie = (2.0, TIE_OF_FEW) if few else (1.0, TIE)
    with np.errstate(invalid="ignore"):
        more = squares - others
        doubt = doubts * math.sqrt(len(more)) * more.std(axis=0)
        most = np.minimum(doubt, (tie**2 - 1) * others.sum())
        return np.asarray(more.sum(axis=0) <= most)


def _with_slopes(trials: Trials, best: Candidate, groups: Groups) -> list[Candidate]:
    """Return the best kernel beside a linear trend, and the same with lengths for what is left."""
    slopes = slopes_of(groups, trials.X)
    if slopes is None:
        return []
    n_free = Trend.along(slopes, trials.X).n_free
    if trials.n_fitted < ROWS_PER_SLOPE * n_free:
        trials.report.say(
            f"A linear trend was not tried: {n_free - 1} slopes are too many for "
            f"{trials.n_fitted:,} rows.",
            DETAIL,
        )
        return []
    beside = replace(best, slopes=slopes)
    kernel = to_learn(best.kernel)
    if kernel is None or trials.n_fitted >= FEW:
        return [beside]
    shared = groups.of_columns if np.ndim(best.kernel.scale()) else None
    sources = trials.every(), *(train for train, _ in trials.splits)
    kernels = []
    for rows in sources:
        of_rest = _of_rest(trials, kernel, slopes, shared, rows)
        if of_rest is None:
            return [beside]
        kernels.append(of_rest)
    return [beside, replace(beside, kernel=kernels[0], of_splits=kernels[1:], longer=1.0)]


def slopes_of(groups: Groups, X: Doubles) -> Integers | None:
    """Return the columns of a linear trend, those of numbers and dates that vary; None of none.

    They are no linear functions of one another, but for a little: of such columns large slopes
    cancel, and only as far as the rows go. One of 1,660 new rows of elevators was 2,761 standard
    deviations off. Exact functions are kept, of which a trend knows what the rows don't tell.
    """
    slopes = np.sort(np.append(groups.columns_of("number"), groups.columns_of("date")))
    varies = [place for place in slopes if np.ptp(X[:, [place]]) > 0]  # all may be too many numbers
    if not varies:
        return None
    _, root = means_and_triangle(X, np.array(varies))
    factor, order = qr(root / np.linalg.norm(root, axis=0), mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(factor))
    own = sizes / sizes[0]
    kept = (own > OWN) | (own < ROUNDING / 10)
    return np.sort(np.array(varies)[order[: sizes.size][kept]])


def to_learn(kernel: Kernel) -> Kernel | None:
    """Return a kernel of the search with its lengths to be learned; None of other kernels."""
    if not isinstance(kernel, Matern | Laplacian | ProductMatern):
        return None
    rule = "learn" if np.ndim(kernel.scale()) else "learn-isotropic"
    to_learn: Kernel = clone(kernel).set_params(**{kernel.learnable[-1]: rule})
    return to_learn


def _of_rest(
    trials: Trials, kernel: Kernel, slopes: Integers, groups: Integers | None, rows: Integers
) -> Kernel | None:
    """Return a kernel learned from what a linear regression leaves of targets; None if nothing."""
    rows = np.random.default_rng(trials.seed).permutation(rows)[:GUARD_ROWS]
    X, Y = trials.X[rows], trials.Y[rows]
    H = Trend.along(slopes, X).columns(X)
    rest = Y - H @ lstsq(H, Y)[0]
    if not np.square(rest).mean() > NOTHING * np.square(Y).mean():
        return None
    try:
        return learned(kernel, Examples(X, rest, groups=groups)).kernel
    except ConstantTargetsError:
        return None
