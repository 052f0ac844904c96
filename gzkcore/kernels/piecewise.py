"""Piecewise polynomials that interpolate functions on an interval."""

from collections.abc import Callable

import numpy as np

from gzkcore._util.typing import Doubles

# A table has at most so many pieces: with thirty functions they take a second and 70 MB.
MOST_PIECES = 1 << 15


def chebyshev(low: float, high: float, n: int) -> Doubles:
    """Return n of Chebyshev's extreme points on [low, high]."""
    return (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(n) / (n - 1))


def padded(low: float, high: float) -> tuple[float, float]:
    """Return a slightly longer interval, for norms that are rounded."""
    pad = 1e-4 * high + 1e-300
    return max(low - pad, 0.0), high + pad


def piecewise(
    function: Callable[[Doubles], Doubles],
    low: float,
    high: float,
    n_pieces: int | None = None,
    degree: int = 9,
) -> Doubles:
    """Return the coefficients (bins, degree + 1, K) of a piecewise polynomial interpolant.

    Without `n_pieces` there is one piece for each unit of the interval, and twice as many until the
    error is below 2e-13, but only up to 511; raise if MOST_PIECES are not enough.
    """
    s = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    to_powers = np.linalg.inv(np.vander(s, increasing=True))
    check = np.array([-1.0, -0.55, 0.0, 0.45, 1.0])
    wanted = n_pieces or max(1, int(high - low))
    bins = min(wanted, MOST_PIECES)
    while True:
        edges = np.linspace(low, high, bins + 1)
        middle, half = (edges[1:] + edges[:-1]) / 2, (high - low) / bins / 2
        values = function((middle[:, None] + half * s).ravel()).reshape(bins, s.size, -1)
        table = np.ascontiguousarray(to_powers @ values)
        if n_pieces:
            return table
        there = function((middle[:, None] + half * check).ravel()).reshape(bins, check.size, -1)
        error = np.abs(np.vander(check, s.size, increasing=True) @ table - there).max()
        if error <= 2e-13 * max(np.abs(values).max(), 1e-300) or 256 <= bins == wanted:
            return table
        if bins < wanted:
            raise ValueError(
                f"norms from {low:.3g} to {high:.3g}, as the kernel scales them, are too far apart "
                f"for a table of {bins:,} pieces; scale X, or use a smaller gamma"
            )
        bins = wanted = 2 * bins
