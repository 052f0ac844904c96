"""Lengthscales by what near rows tell of each other, for tables of any number of rows.

Lengths that are learned from a thousand rows drawn at random know nothing of what happens between
neighbours. Here blocks of near rows are drawn. In each, the targets of some rows are predicted from
those of the rows about them, and

    product over the blocks of p(targets | targets of the near rows)

is maximised over the lengths and the noise (Vecchia 1988; Stein, Chi, Welty 2004), by the search
and the priors of `marginal_likelihood`. Which rows are near depends on the lengths, so that blocks
are drawn again.

Cost       an evaluation takes BLOCKS SIZE^3 multiply-adds, whatever the number of rows.
"""

import math

import numpy as np

from gzkcore._util.random import generator
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers, Seed
from gzkcore._util.validation import dense
from gzkcore.kernels.base import Kernel, asks_targets
from gzkcore.kernels.learned import (
    N_ROWS,
    Examples,
    LearnedKernel,
    candidates,
    check_hope,
    standard_targets,
)
from gzkcore.kernels.learned_parts import LearnedPart
from gzkcore.kernels.marginal_likelihood import NOISE_START, ConditionalCriterion, SearchPoint
from gzkcore.kernels.products import as_double

from .near_rows import scaled
from .neighbours import Nearest

# There are so many blocks; in each the targets of some rows are predicted from those of the others.
# On 72,000 rows of 200 stations 50 blocks had lengths nearly as good as 150, and 500 blocks of one
# asked row no better ones in eight times the time.
BLOCKS, SIZE = 100, 60
ONE_IN = 6  # So often a row of a block is asked; the others are given.
ROUNDS = 3  # So often blocks are drawn,
ALIKE = 0.05  # or until no logarithm of a length changes by more.
FACTOR = 1.5  # The search starts from lengths shortened by the likeliest power of e^FACTOR.
MUCH = 2.0  # The search may start with this much noise.
SETTLED = 1e-4  # A search ends where a step raises the log likelihood of a target by less.


def learned_near(kernel: Kernel, examples: Examples, *, random_state: Seed = None) -> LearnedKernel:
    """Learn the lengths of a kernel, and the noise, from near rows.

    Parameters
    ----------
    kernel : Kernel
        With parameters to be learned; of a resolved one only the noise is.
    examples : Examples
    random_state : int, RandomState, Generator or None, default=None
        Random seed of the blocks.

    Returns
    -------
    LearnedKernel
        Its noise is relative to the variance of the function, the alpha of a regression.
    """
    rng, used = generator(random_state), examples.used
    seed = int(rng.integers(2**31))
    some = np.sort(used[np.random.default_rng(seed).permutation(used.size)[:N_ROWS]])
    weight = None if examples.weight is None else examples.weight[used]
    of_used = standard_targets(examples.y, used, weight)
    targets = np.zeros((examples.X.shape[0], of_used.shape[1]))
    targets[used] = of_used
    first, *others = candidates(kernel) if asks_targets(kernel) else [kernel]
    part, evaluations = examples.part(first, some), 0
    point = SearchPoint(np.append(np.zeros(part.low.size), math.log(NOISE_START)))
    with limit_blas(1):  # whose bits depend on its threads
        for number in range(ROUNDS):
            blocks = _blocks(part.kernel(point.theta[:-1]), examples, seed)
            criterion, before = _criterion(part, blocks, examples, targets), point.theta
            if number == 0:
                point = _shortened(criterion, point)
            point = criterion.least(point, SETTLED)
            evaluations += criterion.evaluations
            if np.abs(point.theta - before).max() <= ALIKE:
                break
        for other in others:  # on the same blocks, so that values can be compared
            criterion = _criterion(examples.part(other, some), blocks, examples, targets)
            new = criterion.least(point, SETTLED)
            evaluations += criterion.evaluations
            if new.value < point.value:
                part, point = criterion.part, new
    check_hope(kernel, part, point)
    return LearnedKernel(
        kernel=part.kernel(point.theta[:-1]),
        length_scale=part.lengths(point.theta[:-1]),
        noise=math.exp(point.theta[-1]) * examples.mean_weight,
        value=point.value,
        evaluations=evaluations,
        rows=used,
        _end=point,
    )


def _blocks(kernel: Kernel, examples: Examples, seed: int) -> Integers:
    """Return the numbers (BLOCKS, SIZE) of rows that are near with a kernel.

    The last ones, which are asked, are some of the nearest third about the centre of each block.
    """
    rng, used = np.random.default_rng(seed), examples.used
    places = scaled(kernel, as_double(dense(examples.X[used])))
    centers = rng.permutation(used.size)[:BLOCKS]
    size = min(SIZE, used.size)
    n_asked = -(-size // ONE_IN)
    blocks = Nearest(places).to(places[centers], size)
    for rows in blocks:
        asked = rng.permutation(max(size // 3, n_asked))[:n_asked]
        rows[:] = np.append(np.delete(rows, asked), rows[asked])
    return np.asarray(used[blocks])


def _criterion(
    part: LearnedPart, blocks: Integers, examples: Examples, targets: Doubles
) -> ConditionalCriterion:
    weight, size = examples.weight, blocks.shape[1]
    spread = None if weight is None else examples.mean_weight / weight[blocks]
    part = part.on_blocks(examples.X, blocks)
    return ConditionalCriterion(part, targets[blocks], spread, size - -(-size // ONE_IN))


def _shortened(criterion: ConditionalCriterion, point: SearchPoint) -> SearchPoint:
    """Divide all lengths by the likeliest of some factors, which leaves the same rows near.

    Where lengths are far too long no slope tells of the right ones. With much noise too, so that
    noise is not taken for a rough function.
    """
    are_lengths = np.arange(point.theta.size) < point.theta.size - 1
    longest = (point.theta[:-1] - criterion.part.low).max(initial=FACTOR)
    thetas = [
        np.where(are_lengths, point.theta - shift, noise)
        for shift in np.arange(0.0, longest, FACTOR)
        for noise in (point.theta[-1], math.log(MUCH))
    ]
    return SearchPoint(min(thetas, key=lambda theta: criterion(theta)[0]))
