"""The marginal likelihood of targets at some rows, as a function of a kernel's lengths and noise.

With K the kernel matrix of m rows, M = K + noise diag(1 / w) for their weights w, and targets y_q
of covariance tau_q M,

    N = sum_q m / 2 log tau_q + T / 2 log det M + priors,    tau_q = y_q^T M^-1 y_q / m,

N is smallest where the targets are most likely; log lengths and log noise have normal priors. With
a_q = M^-1 y_q and Q = sum_q a_q a_q^T / tau_q - T M^-1, the derivative of N is -1/2 sum_ij Q_ij
dM_ij. An evaluation takes m^3 multiply-adds: half of that or less for the factor of M, the rest for
its inverse. In single precision it takes half the time, with errors of N of about eps m max k(x, x)
/ noise. It is used where these are below half of what ends the search.

Several blocks of rows are treated as independent (a composite likelihood): log det M and y^T M^-1 y
are sums over the blocks, and m is the total number of rows.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, get_blas_funcs

from gzkcore._util.linalg import cholesky, inverse_of, solve_factored
from gzkcore._util.typing import Doubles, Floats

from .learned_parts import Part

# The normal priors of the logarithms of lengths, about the middles of their part, and of the noise;
# where the search for the noise starts, and how far it goes.
LENGTH_SPREAD = 1.5
NOISE_START, NOISE_MIDDLE, NOISE_SPREAD = 0.05, 0.02, 3.0
LEAST_NOISE, MOST_NOISE = 1e-6, 10.0

MOST_STEPS = 60
SETTLED = 1e-6  # times m n_targets: a step that N falls less by is the last
FLAT = 1e-3  # or the size of the largest derivative over sqrt(m)

LONGEST_STEP = 1.0  # of a logarithm
COLD = 0.01  # of what the last step brings, where the first ones know little of N
PROMISES = 4.0  # of the curvature known before, that a search may bring
ENOUGH = 1e-4  # of what a step's slope promises: a step that brings less is shortened,
SHORTER = 6  # so many times at most
IDLE = 2  # a step that brings little may have been a bad one
ROUNDING = 1e-8  # the cosine of a step and its change of the gradient that may be 0

SINGLE = 0.5  # of what settles: errors of N up to which single precision is used

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
        spreads = [1.0 if block.spread is None else block.spread.min() for block in blocks]
        largest = max(block.part.largest for block in blocks)
        self.rounding = float(np.finfo(np.float32).eps) * largest / min(spreads)
        self.settled = 0.0

    def __call__(self, theta: Doubles) -> tuple[float, Doubles]:
        """Return N and its gradient."""
        self.evaluations += 1
        n_targets = self.blocks[0].targets.shape[1]
        solved, value, tau = [], 0.0, np.zeros(n_targets)
        single = self.rounding <= SINGLE * self.settled * math.exp(theta[-1])
        for block in self.blocks:
            found = _solved(block, theta, np.dtype(np.float32 if single else np.float64))
            if found is None:
                return HOPELESS, np.zeros(theta.size)
            solved.append(found[:2])
            value += n_targets * found[2]
            tau += np.einsum("iq,iq->q", block.targets, found[0]) / self.n_rows
        value += self.n_rows / 2 * float(np.log(tau).sum())
        gradient = np.zeros(theta.size)
        for block, (a, inverse) in zip(self.blocks, solved, strict=True):
            (gemm,) = get_blas_funcs(("gemm",), (inverse,))
            Q = gemm(1.0, a / tau, a, -n_targets, inverse.T, trans_b=True, overwrite_c=True).T
            along = (Q.diagonal() * (1.0 if block.spread is None else block.spread)).sum()
            gradient[:-1] += block.part.gradient(Q)
            gradient[-1] += math.exp(theta[-1]) * float(along)
        prior = theta - math.log(NOISE_MIDDLE) * (np.arange(theta.size) == theta.size - 1)
        width = np.append(np.full(theta.size - 1, LENGTH_SPREAD), NOISE_SPREAD)
        value += float(np.square(prior / width).sum()) / 2
        return value, prior / width**2 - gradient / 2

    def least(
        self, start: "Place | None" = None, settled: float = SETTLED, below: float = math.inf
    ) -> "Place":
        """Return where N is least; a start from rows of other columns is ignored.

        A step goes to where N would be least by the curvature that the steps before it have seen.
        The search ends where that would reduce N by less than `settled` for each target of a row,
        or two steps in turn do; a hundredth of that where it starts without curvature. It ends,
        too, where it is not expected to reach a value `below` another one.
        """
        part = self.part
        low = np.append(part.low, math.log(LEAST_NOISE))
        high = np.append(part.high, math.log(MOST_NOISE))
        if start is None or start.theta.size != low.size:
            start = Place(np.append(np.zeros(part.low.size), math.log(NOISE_START)))
        theta, inverse = np.clip(start.theta, low, high), start.inverse_on(self.n_rows)
        self.settled = settled * (1.0 if inverse is not None else COLD)
        settled = self.settled * self.n_rows * self.blocks[0].targets.shape[1]
        value, gradient = self(theta)
        idle = 0
        for _ in range(MOST_STEPS):
            free = np.where(gradient > 0, theta > low, theta < high)
            slope = gradient * free
            if np.abs(slope).max(initial=0.0) <= FLAT * math.sqrt(self.n_rows):
                break
            if inverse is None:
                step = -slope / np.linalg.norm(slope)
            else:
                step = -(inverse @ slope) * free
                promised = -float(step @ slope) / 2
                if promised < settled or value - PROMISES * promised > below:
                    break
            step *= min(1.0, LONGEST_STEP / np.abs(step).max())
            for _ in range(SHORTER):
                moved = np.clip(theta + step, low, high) - theta
                expected = float(slope @ moved)
                found, there = self(theta + moved)
                if found <= value + ENOUGH * expected:
                    break
                step *= min(max(expected / 2 / (expected + value - found), 0.1), 0.5)
            else:
                break
            change, gained = there - gradient, value - found
            theta, value, gradient = theta + moved, found, there
            inverse = _updated(inverse, moved, change)
            idle = idle + 1 if gained < settled else 0
            if idle == IDLE:
                break
        return Place(theta, value, None if inverse is None else inverse * self.n_rows)


class Place(NamedTuple):
    """Where a search ended: theta, N, and m times the inverse of the second derivatives of N."""

    theta: Doubles
    value: float = math.inf
    inverse: Doubles | None = None

    def inverse_on(self, n_rows: int) -> Doubles | None:
        """Return what the inverse is likely to be on so many rows, None if nothing is known."""
        return None if self.inverse is None else self.inverse / n_rows


def _updated(inverse: Doubles | None, moved: Doubles, change: Doubles) -> Doubles | None:
    """Return the inverse of second derivatives that a step's change of the gradient agrees with.

    By the formula of Broyden, Fletcher, Goldfarb and Shanno. A step along which N curves downwards
    tells nothing.
    """
    curved = float(moved @ change)
    if not curved > ROUNDING * np.linalg.norm(moved) * np.linalg.norm(change):
        return inverse
    if inverse is None:
        inverse = np.eye(moved.size)
        inverse *= curved / (change @ change)
    of_change = inverse @ change
    scale = max(1.0, curved / float(change @ of_change))
    inverse, of_change = inverse * scale, of_change * scale
    both = np.outer(of_change, moved)
    along = (1.0 + (change @ of_change) / curved) / curved * np.outer(moved, moved)
    return np.asarray(inverse + along - (both + both.T) / curved)


def _solved(block: Block, theta: Doubles, dtype: Any) -> tuple[Doubles, Floats, float] | None:
    """Return M^-1 y, M^-1, and log det M / 2; None where M is singular."""
    y, noise = block.targets, math.exp(theta[-1])
    M = block.part.matrix(theta[:-1], dtype)
    M.flat[:: len(M) + 1] += noise if block.spread is None else noise * block.spread
    try:
        root = cholesky(M, overwrite=True)
    except LinAlgError:
        return None
    logarithms = np.log(root.diagonal(), dtype=np.float64)
    a = solve_factored(root, y).astype(np.float64, copy=False)
    return a, inverse_of(root), float(logarithms.sum())
