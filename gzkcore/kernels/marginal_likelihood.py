"""The marginal likelihood of targets at some rows, as a function of a kernel's lengths and noise.

With K the kernel matrix of m rows, M = K + noise diag(1 / w) for their weights w, and targets y_q
of covariance tau_q M,

    N = sum_q m / 2 log tau_q + T / 2 log det M + priors,    tau_q = y_q^T M^-1 y_q / m,

N is smallest where the targets are most likely; log lengths and log noise have normal priors. With
a_q = M^-1 y_q and Q = sum_q a_q a_q^T / tau_q - T M^-1, the derivative of N is -1/2 sum_ij Q_ij
dM_ij. An evaluation takes m^3 multiply-adds: half of that or less for the factor of M, the rest for
its inverse.

Several blocks of rows are treated as independent (a composite likelihood): log det M and y^T M^-1 y
are sums over the blocks, and m is the total number of rows.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize

from gzkcore._util.linalg import cholesky, inverse_of, shifted, solve_factored
from gzkcore._util.typing import Doubles

from .learned_parts import Part

# The normal priors of the logarithms of lengths, about the middles of their part, and of the noise;
# where the search for the noise starts, and how far it goes.
LENGTH_SPREAD = 1.5
NOISE_START, NOISE_MIDDLE, NOISE_SPREAD = 0.05, 0.02, 3.0
LEAST_NOISE, MOST_NOISE = 1e-6, 10.0

MOST_STEPS = 60
SETTLED = 1e-3  # a step that N falls less by is the last
FLAT = 1e-3  # or the size of the largest derivative over sqrt(m)

HOPELESS = 1e25  # the value where M is not positive definite to rounding


class Block(NamedTuple):
    """Rows whose targets depend on each other."""

    part: Part
    targets: Doubles  # (m, n_targets)
    spread: Doubles | None = None  # (m,): 1 / w; None: ones


class Criterion:
    """N and its gradient, see the head of this file; theta ends with the logarithm of the noise."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks, self.evaluations = blocks, 0
        self.part = blocks[0].part
        self.n_rows = sum(len(block.targets) for block in blocks)

    def __call__(self, theta: Doubles) -> tuple[float, Doubles]:
        """Return N and its gradient."""
        self.evaluations += 1
        n_targets = self.blocks[0].targets.shape[1]
        solved, value, tau = [], 0.0, np.zeros(n_targets)
        for block in self.blocks:
            found = _solved(block, theta)
            if found is None:
                return HOPELESS, np.zeros(theta.size)
            solved.append(found[:2])
            value += n_targets * found[2]
            tau += np.einsum("iq,iq->q", block.targets, found[0]) / self.n_rows
        value += self.n_rows / 2 * float(np.log(tau).sum())
        gradient = np.zeros(theta.size)
        for block, (a, inverse) in zip(self.blocks, solved, strict=True):
            Q = inverse
            Q *= -n_targets
            Q += (a / tau) @ a.T
            along = (Q.diagonal() * (1.0 if block.spread is None else block.spread)).sum()
            gradient[:-1] += block.part.gradient(Q)
            gradient[-1] += math.exp(theta[-1]) * float(along)
        prior = theta - math.log(NOISE_MIDDLE) * (np.arange(theta.size) == theta.size - 1)
        width = np.append(np.full(theta.size - 1, LENGTH_SPREAD), NOISE_SPREAD)
        value += float(np.square(prior / width).sum()) / 2
        return value, prior / width**2 - gradient / 2

    def least(
        self, start: Doubles | None = None, settled: float = SETTLED
    ) -> tuple[Doubles, float]:
        """Return the minimiser of N, and N there; a start from rows of other columns is ignored.

        The search ends with the first step that reduces N by less than `settled`.
        """
        part = self.part
        if start is None or start.size != part.low.size + 1:
            start = np.append(np.zeros(part.low.size), math.log(NOISE_START))
        low = np.append(part.low, math.log(LEAST_NOISE))
        high = np.append(part.high, math.log(MOST_NOISE))
        found = minimize(
            self, start, method="L-BFGS-B", jac=True, bounds=np.column_stack([low, high]),
            callback=_stop_below(settled),
            options={"maxiter": MOST_STEPS, "ftol": 0.0, "gtol": FLAT * math.sqrt(self.n_rows)},
        )  # fmt: skip
        return found.x, float(found.fun)


def _stop_below(least: float) -> Callable[[OptimizeResult], None]:
    """Return what stops a search by `minimize` after a step that brings less."""
    before = math.inf

    def after_step(intermediate_result: OptimizeResult) -> None:
        nonlocal before
        gained, before = before - intermediate_result.fun, intermediate_result.fun
        if gained < least:
            raise StopIteration

    return after_step


def _solved(block: Block, theta: Doubles) -> tuple[Doubles, Doubles, float] | None:
    """Return M^-1 y, M^-1, and log det M / 2; None where M is singular."""
    y, noise = block.targets, math.exp(theta[-1])
    spread = np.ones(len(y)) if block.spread is None else block.spread
    try:
        root = cholesky(shifted(block.part.matrix(theta[:-1]), noise * spread), overwrite=True)
    except LinAlgError:
        return None
    return solve_factored(root, y), inverse_of(root), float(np.log(root.diagonal()).sum())
