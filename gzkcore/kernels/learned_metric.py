"""A linear map before a kernel, from the average gradient outer product of what was learned.

f is the posterior mean given the rows used, M the mean over rows of sum_q grad f_q grad f_q^T. The
map is M^(1/2), so that M is the metric of distances: they are long along directions in which f
changes quickly. The size of M and the noise maximise the marginal likelihood. There is one round:
more rounds make the likelihood larger and predictions worse (measured).
"""

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gzkcore._util.linalg import eigh
from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import dense

from .base import Kernel
from .gradients import gradients
from .learned_parts import part_of
from .marginal_likelihood import Block, Criterion
from .shift_invariant import ShiftInvariantKernel
from .transformed import Transformed

MOST_ROWS = 1 << 14  # that gradients are averaged over


def mapped(
    kernel: Kernel, block: Block, X: Rows, order: Integers, chosen: Integers, noise: float
) -> tuple[Kernel, Doubles, float, float, int]:
    """Return a kernel of mapped rows, its length along each column, noise, N, and evaluations.

    Parameters
    ----------
    kernel : Kernel
        Resolved, with the lengths that were learned.
    block : Block
        The rows looked at.
    X : {ndarray, CSR} of shape (n_samples, n_features)
    order : ndarray of int
        Rows in a random order, of which the first are averaged over.
    chosen : ndarray of int
        The rows looked at.
    noise : float
        As it was learned.
    """
    if not isinstance(kernel, ShiftInvariantKernel) or kernel.distance_power != 2:
        raise ValueError(
            f"metric='agop' is only for kernels of the distance, and {kernel!r} is not one; use "
            "Gaussian, Matern, Exponential or RationalQuadratic, or metric=None"
        )
    sample = dense(X[chosen]).astype(np.float64)
    metric = _agop(kernel, block, sample, X, order[:MOST_ROWS], noise)
    values, axes = eigh(metric)
    root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    rule = {kernel.learnable[-1]: "learn-isotropic"}
    given = kernel.with_lengths(1.0).set_params(**rule)
    part = part_of(given, sample @ root.T, np.arange(len(sample)))
    criterion = Criterion([block._replace(part=part)])
    theta, value = criterion.least(np.array([0.0, math.log(noise)]))
    matrix = root / part.lengths(theta[:-1])
    with np.errstate(divide="ignore"):
        lengths = 1.0 / np.sqrt(np.square(matrix).sum(axis=0))
    found = Transformed(kernel.with_lengths(1.0), matrix)
    return found, lengths, math.exp(theta[-1]), value, criterion.evaluations


def _agop(
    kernel: Kernel, block: Block, sample: Doubles, X: Rows, rows: Integers, noise: float
) -> Doubles:
    """Return the average over rows of the outer products of gradients of the mean."""
    M = kernel(sample)
    M.flat[:: len(M) + 1] += noise if block.spread is None else noise * block.spread
    coef = cho_solve(cho_factor(M, overwrite_a=True), block.targets)
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, rows.size, len(sample)):
        here = dense(X[rows[start : start + len(sample)]]).astype(np.float64)
        found = gradients(kernel, here, sample, coef)
        if found is None:
            raise ValueError(
                f"metric='agop' needs gradients, and {kernel!r} has none; use metric=None"
            )
        each = found.reshape(-1, X.shape[1])
        total += each.T @ each
    return total / rows.size
