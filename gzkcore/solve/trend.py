"""The part of a regression that is not penalised: f(x) = h(x)^T b + g(x), where only g is.

h(x) is 1, or 1 and columns of x (universal kriging). With A = K + alpha N and H of rows h(x_i),

    b = (H^T A^-1 H)^-1 H^T A^-1 y,    c = A^-1 (y - H b),

and the variance of f(x) given y grows by u^T (H^T A^-1 H)^-1 u, u = h(x) - H^T A^-1 k_x. Columns
are standardised and turned to the axes of the rows, so that neither the size of their numbers nor
copies do harm. Along an axis on which all rows have one place the slope is 0 and unknown: with no
prior of b, the variance of f(x) elsewhere on it is infinite.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import check_choice, column_numbers, dense

CONSTANT, LINEAR = "constant", "linear"
TRENDS = None, CONSTANT, LINEAR

# Smaller differences, relative to the numbers, are those of rounding to single precision.
ROUNDING = 4 * float(np.finfo(np.float32).eps)
PART = 1 << 16  # So many rows are dense at a time.


def check_trend(trend: Any, width: int, names: Any) -> Any:
    """Return a trend by name, or the numbers of its columns, given their number; else raise."""
    if trend is None or isinstance(trend, str):
        check_choice("trend", trend, TRENDS)
        return trend
    if isinstance(trend, bool):
        raise TypeError(f"trend={trend!r} is no trend; use one of {TRENDS}, or columns")
    places = np.array(column_numbers("trend", trend, width, names))
    if np.unique(places).size < places.size:
        raise ValueError(f"trend={trend!r} names a column twice; name each once")
    return places


@dataclass
class Trend:
    """h: 1, and beside it the places of rows on axes of some columns, in units of their spread.

    The axes are the principal ones of columns less their means, in units of their spreads.
    """

    places: Integers  # the columns with a slope
    means: Doubles
    scales: Doubles  # inf: a column that is constant
    turn: Doubles  # (n_places, n_free - 1): turns columns to the axes
    still: Doubles  # (n_places, ...): axes on which all rows have one place

    @classmethod
    def of(cls, trend: Any, X: Rows) -> "Trend | None":
        """Return the trend of a regression on rows X, given what `check_trend` returns."""
        if trend is None:
            return None
        if isinstance(trend, str):
            trend = np.arange(X.shape[1] if trend == LINEAR else 0)
        return cls.along(trend, X)

    @classmethod
    def along(cls, places: Integers, X: Rows) -> "Trend":
        """Return the trend along some columns of rows."""
        with limit_blas(1):  # whose bits depend on its threads
            means, root = means_and_triangle(X, places)
            scales = np.where(root.any(axis=0), np.linalg.norm(root, axis=0), np.inf)
            _, sizes, axes = np.linalg.svd(root / scales)
        rank = int(np.count_nonzero(sizes > ROUNDING * sizes.max(initial=0.0)))
        turn = axes[:rank].T / scales[:, None] / sizes[:rank]
        return cls(places, means, scales, turn, axes[rank:].T)

    def columns(self, X: Rows) -> Doubles:
        """Return H of rows, of shape (n, n_free)."""
        if not self.places.size:
            return np.ones((X.shape[0], 1))
        return _with_ones((dense(X[:, self.places]) - self.means) @ self.turn)

    @property
    def n_free(self) -> int:
        """The number of free coefficients."""
        return 1 + int(self.turn.shape[1])

    def plain(self, b: Doubles, width: int) -> tuple[Doubles, Doubles]:
        """Return the intercept and the slopes along all columns of X, for each target."""
        slopes = np.zeros((width, b.shape[1]))
        slopes[self.places] = self.turn @ b[1:]
        return b[0] - self.means @ slopes[self.places], slopes

    def unknown_at(self, X: Rows) -> NDArray[np.bool_]:
        """Say at which rows the trend is unknown."""
        steps = dense(X[:, self.places]) - self.means
        return self.unknown_along(steps, ROUNDING * np.abs(self.means))

    def unknown_along(self, steps: Doubles, least: Doubles | float = 0.0) -> NDArray[np.bool_]:
        """Say along which steps (..., n_places) the trend is unknown; none is up to `least`."""
        changed = (np.abs(steps) > least) & np.isinf(self.scales)
        steps = steps / self.scales
        sizes = np.linalg.norm(steps, axis=-1, keepdims=True)
        off = np.abs(steps @ self.still) > ROUNDING * sizes
        return np.asarray(changed.any(axis=-1) | off.any(axis=-1))


def _with_ones(columns: Doubles) -> Doubles:
    return np.hstack([np.ones((len(columns), 1)), columns])


def parts_of(X: Rows) -> list[slice]:
    """Return the rows that are worked on at a time."""
    return [slice(start, start + PART) for start in range(0, X.shape[0], PART)]


def means_and_triangle(X: Rows, places: Integers) -> tuple[Doubles, Doubles]:
    """Return the means of some columns, and the factor R of these less their means over sqrt(n)."""
    first = dense(X[:1][:, places]).astype(np.float64)
    root = triangle(_with_ones(dense(X[part][:, places]) - first) for part in parts_of(X))
    return first[0] + root[0, 1:] / root[0, 0], root[1:, 1:] / np.sqrt(X.shape[0])


def triangle(parts: Iterable[Doubles]) -> Doubles:
    """Return the factor R of a QR decomposition of rows, which come in parts."""
    root: Any = None
    for part in parts:
        root = np.linalg.qr(part if root is None else np.vstack([root, part]), mode="r")
    return np.asarray(root)


def inverse(H: Doubles, of_H: Doubles) -> Doubles:
    """Return (H^T A^-1 H)^+ for A^-1 H."""
    product = H.T @ of_H
    return np.asarray(pinvh((product + product.T) / 2))
