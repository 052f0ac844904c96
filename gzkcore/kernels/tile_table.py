"""Functions as piecewise polynomials, for kernel products; leading bits of t select the piece.

Pieces get narrower towards t = 0, like floating-point numbers: there are 2^k of them per octave. So
roots and other powers at 0 are approximated as well as smooth functions. A function of unit rows
has a second half, in fold - t, for roots at opposite rows.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.typing import Doubles, Floats

from .tile_form import Factor

# The degree of the polynomials.
DEGREE = {np.dtype(np.float32): 4, np.dtype(np.float64): 9}
# The numbers of pieces per octave that are tried, as powers of 2.
PIECES = {np.dtype(np.float32): range(2, 8), np.dtype(np.float64): range(2, 7)}
# The error of a table, relative to its largest value.
TOLERANCE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 2e-14}
# Tables reach at most so many octaves below and above t = 1.
OCTAVES = {np.dtype(np.float32): 120, np.dtype(np.float64): 1000}
# The largest |x - y|^2 of unit rows; the second half of their tables is a function of FOLD - t.
FOLD = 4.0


@dataclass(frozen=True)
class ProfileTable:
    """The piecewise polynomials that compiled tiles read."""

    coefficients: Floats  # (degree + 1, 2 pieces)
    shift: int  # number of the low bits of t, the position within a piece
    base: int  # leading bits of the first piece, where t is almost 0
    pieces: int  # of a half; the last has every larger t
    fold: float


def table_of(factor: Factor, dtype: Any) -> ProfileTable | None:
    """Return a factor's table for a type, None if no table is as accurate as the type."""
    function = factor.function
    if function is None:
        raise ValueError(f"{factor} has no function to make a table of")
    if factor.power is None:
        return fitted([function], math.inf, np.dtype(dtype), factor.blur, factor.noise)
    near = lambda t: function(2 * np.arcsin(np.sqrt(t) / 2))  # noqa: E731  two of a kind
    opposite = lambda t: function(math.pi - 2 * np.arcsin(np.sqrt(t) / 2))  # noqa: E731
    return fitted([near, opposite], FOLD, np.dtype(dtype), factor.blur, factor.noise)


def fitted(
    halves: list[Any], fold: float, dtype: Any, blur: float = 0.0, noise: float = 0.0
) -> ProfileTable | None:
    """Return the shortest table of functions of t and of fold - t, None if none is accurate."""
    most = OCTAVES[dtype]
    exponents = np.arange(-most, most if math.isinf(fold) else 1, dtype=np.float64)
    at_zero = [float(half(np.zeros(1))[0]) for half in halves]
    octaves = np.array([half(np.exp2(exponents)) for half in halves])
    tolerance = max(TOLERANCE[dtype], noise) * float(np.abs(octaves).max())
    change = np.abs(octaves - np.array(at_zero)[:, None]).max(axis=0)
    low = int(exponents[_last_run(change[: int(change.argmax()) + 1] <= tolerance / 2, 8)])
    large = np.flatnonzero((np.abs(octaves) > tolerance / 4).any(axis=0))
    high = int(exponents[large[-1]]) + 1 if math.isinf(fold) and large.size else 2
    high, last_error = max(high, low + 1), math.inf
    for log_pieces in PIECES[dtype]:
        table = _interpolated(halves, at_zero, low, high, log_pieces, dtype, fold)
        error = _error(table, halves, low, high, log_pieces, dtype, blur)
        if error <= tolerance:
            return table
        if error > last_error / 2:
            return None
        last_error = error
    return None


def _last_run(which: NDArray[np.bool_], length: int) -> int:
    """Return the end of the last run of so many True, or 0."""
    runs = np.flatnonzero(np.convolve(which, np.ones(length), "valid") == length)
    return int(runs[-1]) + length - 1 if runs.size else 0


def _places(low: int, high: int, log_pieces: int, within: Doubles) -> Doubles:
    """Return t at places in (-1, 1) about the middle of each piece; of shape (pieces, places)."""
    step = 2.0**-log_pieces
    starts = 1 + step * np.arange(2**log_pieces)
    octave = starts[:, None] + step / 2 * (1 + within)
    ends = np.exp2(np.arange(low, high, dtype=np.float64))
    return (ends[:, None, None] * octave).reshape(-1, within.size)


def _interpolated(
    halves: list[Any], at_zero: list[float], low: int, high: int, log_pieces: int, dtype: Any,
    fold: float,
) -> ProfileTable:  # fmt: skip
    degree, info = DEGREE[dtype], np.finfo(dtype)
    nodes = np.cos(math.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    powers = np.linalg.inv(np.vander(nodes, increasing=True))
    t = _places(low, high, log_pieces, nodes)
    middles = _places(low, high, log_pieces, np.zeros(1))[:, 0]
    pieces = len(t) + 2
    half_width = 2.0 ** -(log_pieces + 1)
    coefficients = np.zeros((degree + 1, 2 * pieces))
    for number, half in enumerate(halves):
        values, middle = half(t.ravel()).reshape(t.shape), half(middles)
        of_half = coefficients[:, number * pieces : (number + 1) * pieces]
        of_half[0, 0] = at_zero[number]
        # The middle is subtracted, since powers magnify the rounding errors of large values.
        of_half[:, 1:-1] = powers @ (values - middle[:, None]).T
        of_half[:, 1:-1] /= half_width ** np.arange(degree + 1)[:, None]
        of_half[0, 1:-1] += middle
    base = ((low + info.maxexp - 1) << log_pieces) - 1
    shift = info.nmant - log_pieces
    return ProfileTable(coefficients.astype(dtype), shift, base, pieces, fold)


def _error(
    table: ProfileTable, halves: list[Any], low: int, high: int, log_pieces: int, dtype: Any,
    blur: float,
) -> float:  # fmt: skip
    """Return the largest error at other places, beyond what a change of t by `blur` makes."""
    within = np.array([-0.97, -0.7, -0.33, 0.0, 0.41, 0.77, 0.99])
    t = _places(low, high, log_pieces, within)
    place = (within * 2.0 ** -(log_pieces + 1)).astype(dtype)
    worst = 0.0
    for number, half in enumerate(halves):
        c = table.coefficients[:, number * table.pieces + 1 : (number + 1) * table.pieces - 1]
        value = np.zeros_like(t, dtype)
        for row in c[::-1]:
            value = value * place + row[:, None]
        allowed = np.zeros_like(t)
        if blur:
            ends = half((t + blur).ravel()), half(np.maximum(t - blur, 0).ravel())
            allowed = np.abs(ends[0] - ends[1]).reshape(t.shape)
        exact = half(t.ravel()).reshape(t.shape)
        within_fold = t <= FOLD / 2 if math.isfinite(table.fold) else True
        worst = max(worst, float(((np.abs(value - exact) - allowed) * within_fold).max()))
    return worst
