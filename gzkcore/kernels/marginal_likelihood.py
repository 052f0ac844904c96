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

Where the targets y_g of the first rows of blocks are given, N is that of the others. With L the
factor of M, R the rows of L^-1 of these, e = R y and a_g = M_gg^-1 y_g, m counts the others, and

    tau = e^T e / m,    log det M - log det M_gg = 2 sum log L_ii,    Q = (a a^T - a_g a_g^T) / tau
    - R^T R,    a = a_g + R^T e.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, get_blas_funcs

from gzkcore._util.linalg import cholesky, inverse_factors, inverse_of, solve_factored
from gzkcore._util.typing import Doubles, Floats

from .learned_parts import LearnedPart

# Standard deviation of the normal prior of a length's logarithm, about the middle of its part.
LENGTH_SPREAD = 1.5
# The normal prior of the noise's logarithm has this median and this standard deviation.
NOISE_MIDDLE, NOISE_SPREAD = 0.02, 3.0
# The search starts with this noise, and stays between these bounds.
NOISE_START, LEAST_NOISE, MOST_NOISE = 0.05, 1e-6, 10.0

# A search ends after so many steps.
MOST_STEPS = 60
# A search ends where a step lowers N by less than this for each target of a row.
SETTLED = 1e-6
# A search ends where no derivative is larger than this times the root of the number of rows.
FLAT = 1e-3
# Without knowledge of the curvature a search goes on until steps bring a hundredth of `settled`.
COLD = 0.01
# A search ends after so many steps in turn that bring little: one may have been a bad step.
IDLE = 2
# A step changes no logarithm by more than this.
LONGEST_STEP = 1.0
# A step that lowers N by less than this share of what its slope promises is shortened, so often.
ENOUGH, SHORTER = 1e-4, 6
# A search may lower N by so many times what the curvature promises; if that is too little to win,
# it is given up.
PROMISES = 4.0
# A step tells nothing of the curvature if its cosine with the change of the gradient is smaller.
LEAST_CURVED = 1e-8

# Single precision is used where its error of N is at most this share of what ends the search.
SINGLE = 0.5

# The value of the criterion where M is not positive definite to rounding.
HOPELESS = 1e25


class Block(NamedTuple):
    """Rows whose targets depend on each other."""

    part: LearnedPart
    targets: Doubles  # (m, n_targets)
    spread: Doubles | None = None  # (m,): 1 / w; None: ones


class Criterion:
    """N and its gradient, see the head of this file; theta ends with the logarithm of the noise."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks, self.evaluations = blocks, 0
        self.part = blocks[0].part
        self.n_rows, self.n_targets = (
            sum(len(b.targets) for b in blocks),
            blocks[0].targets.shape[1],
        )
        spreads = [1.0 if block.spread is None else block.spread.min() for block in blocks]
        largest = max(block.part.largest for block in blocks)
        self.rounding = float(np.finfo(np.float32).eps) * largest / min(spreads)
        self.settled = 0.0

    def __call__(self, theta: Doubles) -> tuple[float, Doubles]:
        """Return N and its gradient."""
        self.evaluations += 1
        n_targets = self.n_targets
        solutions, value, tau = [], 0.0, np.zeros(n_targets)
        single = self.rounding <= SINGLE * self.settled * math.exp(theta[-1])
        for block in self.blocks:
            solution = _solved(block, theta, np.dtype(np.float32 if single else np.float64))
            if solution is None:
                return HOPELESS, np.zeros(theta.size)
            a, inverse, half_log_det = solution
            solutions.append((a, inverse))
            value += n_targets * half_log_det
            tau += np.einsum("iq,iq->q", block.targets, a) / self.n_rows
        value += self.n_rows / 2 * float(np.log(tau).sum())
        gradient = np.zeros(theta.size)
        for block, (a, inverse) in zip(self.blocks, solutions, strict=True):
            (gemm,) = get_blas_funcs(("gemm",), (inverse,))
            Q = gemm(1.0, a / tau, a, -n_targets, inverse.T, trans_b=True, overwrite_c=True).T
            trace = (Q.diagonal() * (1.0 if block.spread is None else block.spread)).sum()
            gradient[:-1] += block.part.gradient(Q)
            gradient[-1] += math.exp(theta[-1]) * float(trace)
        return self._with_priors(theta, value, gradient)

    def _with_priors(self, theta: Doubles, value: float, slopes: Doubles) -> tuple[float, Doubles]:
        """Return N and its gradient, given those of the likelihood, the latter times -2."""
        prior = theta - math.log(NOISE_MIDDLE) * (np.arange(theta.size) == theta.size - 1)
        width = np.append(np.full(theta.size - 1, LENGTH_SPREAD), NOISE_SPREAD)
        value += float(np.square(prior / width).sum()) / 2
        return value, prior / width**2 - slopes / 2

    def least(
        self, start: "SearchPoint | None" = None, settled: float = SETTLED, below: float = math.inf
    ) -> "SearchPoint":
        """Return where N is least; a start from rows of other columns is ignored.

        A step goes to where N would be least by the curvature that the steps before it have seen.
        The search ends where that would reduce N by less than `settled` for each target of a row,
        or two steps in turn do; a hundredth of that where it starts without curvature. It also ends
        where it is not expected to reach a value below `below`.
        """
        part = self.part
        low = np.append(part.low, math.log(LEAST_NOISE))
        high = np.append(part.high, math.log(MOST_NOISE))
        if start is None or start.theta.size != low.size:
            start = SearchPoint(np.append(np.zeros(part.low.size), math.log(NOISE_START)))
        theta, inverse = np.clip(start.theta, low, high), start.inverse_on(self.n_rows)
        self.settled = settled * (1.0 if inverse is not None else COLD)
        settled = self.settled * self.n_rows * self.n_targets
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
                new_value, new_gradient = self(theta + moved)
                if new_value <= value + ENOUGH * expected:
                    break
                step *= min(max(expected / 2 / (expected + value - new_value), 0.1), 0.5)
            else:
                break
            change, gained = new_gradient - gradient, value - new_value
            theta, value, gradient = theta + moved, new_value, new_gradient
            inverse = _updated(inverse, moved, change)
            idle = idle + 1 if gained < settled else 0
            if idle == IDLE:
                break
        return SearchPoint(theta, value, None if inverse is None else inverse * self.n_rows)


class ConditionalCriterion(Criterion):
    """N of blocks of equally many rows, given the targets of the first `n_given` of each.

    `targets` are (n_blocks, size, n_targets), `spread` (n_blocks, size) or None, as of a `Block`.
    """

    def __init__(
        self, part: LearnedPart, targets: Doubles, spread: Doubles | None, n_given: int
    ) -> None:
        self.part, self.targets, self.n_given = part, targets, n_given
        self.spread = np.ones(targets.shape[:2]) if spread is None else spread
        self.n_rows, self.n_targets = targets[:, n_given:, 0].size, targets.shape[2]
        self.evaluations = 0

    def __call__(self, theta: Doubles) -> tuple[float, Doubles]:
        """Return N and its gradient."""
        self.evaluations += 1
        noise, g, y = math.exp(theta[-1]), self.n_given, self.targets
        M: Any = self.part.matrix(theta[:-1], np.float64)
        np.einsum("bii->bi", M)[...] += noise * self.spread
        try:
            inverse = inverse_factors(M)
        except LinAlgError:
            return HOPELESS, np.zeros(theta.size)
        R, of_given = inverse[:, g:], inverse[:, :g, :g]
        e, a_g = R @ y, of_given.transpose(0, 2, 1) @ (of_given @ y[:, :g])
        a = R.transpose(0, 2, 1) @ e
        a[:, :g] += a_g
        tau = np.square(e).sum(axis=(0, 1)) / self.n_rows
        log_det = -2 * np.log(np.einsum("bii->bi", inverse)[:, g:]).sum()
        value = self.n_rows / 2 * float(np.log(tau).sum()) + self.n_targets / 2 * float(log_det)
        Q = (a / tau) @ a.transpose(0, 2, 1) - self.n_targets * R.transpose(0, 2, 1) @ R
        Q[:, :g, :g] -= (a_g / tau) @ a_g.transpose(0, 2, 1)
        trace = noise * float((np.einsum("bii->bi", Q) * self.spread).sum())
        return self._with_priors(theta, value, np.append(self.part.gradient(Q), trace))


class SearchPoint(NamedTuple):
    """A point of the search: theta, N, and m times the inverse of the second derivatives of N."""

    theta: Doubles
    value: float = math.inf
    inverse: Doubles | None = None

    def inverse_on(self, n_rows: int) -> Doubles | None:
        """Return what the inverse is likely to be with so many rows, None if that is not known."""
        return None if self.inverse is None else self.inverse / n_rows


def _updated(inverse: Doubles | None, moved: Doubles, change: Doubles) -> Doubles | None:
    """Update the inverse of the second derivatives by a step and the change of the gradient.

    This is the formula of Broyden, Fletcher, Goldfarb and Shanno. A step along which N curves
    downwards changes nothing.
    """
    curved = float(moved @ change)
    if not curved > LEAST_CURVED * np.linalg.norm(moved) * np.linalg.norm(change):
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
