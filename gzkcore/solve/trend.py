"""The part of a regression that is not penalised: f(x) = h(x)^T b + g(x), where only g is.

h(x) is 1, or 1 and columns of x (universal kriging). With A = K + alpha N and H of rows h(x_i),

    b = (H^T A^-1 H)^-1 H^T A^-1 y,    c = A^-1 (y - H b),

and the variance of f(x) given y grows by u^T (H^T A^-1 H)^-1 u, u = h(x) - H^T A^-1 k_x. Columns
are standardised, so that the size of their numbers does no harm; b may be of any such columns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import pinvh

from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import check_choice, column_numbers, dense

CONSTANT, LINEAR = "constant", "linear"
TRENDS = None, CONSTANT, LINEAR


def check_trend(trend: Any, width: int, names: Any) -> Any:
    """Return a trend by name, or the numbers of its columns, given their number; else raise."""
    if trend is None or isinstance(trend, str):
        check_choice("trend", trend, TRENDS)
        return trend
    places = np.array(column_numbers("trend", trend, width, names))
    if np.unique(places).size < places.size:
        raise ValueError(f"trend={trend!r} names a column twice; name each once")
    return places


@dataclass
class Trend:
    """h: 1, and beside it columns of rows, less their means and in units of their spreads."""

    places: Integers  # the columns with a slope
    means: Doubles
    scales: Doubles  # inf: a column that is constant

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
        columns = dense(X[:, places]).astype(np.float64, copy=False)
        varies = np.ptp(columns, axis=0) > 0
        return cls(places, columns.mean(axis=0), np.where(varies, columns.std(axis=0), np.inf))

    def columns(self, X: Rows) -> Doubles:
        """Return H of rows, of shape (n, n_functions)."""
        ones = np.ones((X.shape[0], 1))
        if not self.places.size:
            return ones
        return np.hstack([ones, (dense(X[:, self.places]) - self.means) / self.scales])

    @property
    def n_free(self) -> int:
        """The number of free coefficients."""
        return 1 + int(np.isfinite(self.scales).sum())

    def plain(self, b: Doubles, width: int) -> tuple[Doubles, Doubles]:
        """Return the intercept and the slopes along all columns of X, for each target."""
        slopes = np.zeros((width, b.shape[1]))
        slopes[self.places] = b[1:] / self.scales[:, None]
        return b[0] - self.means @ slopes[self.places], slopes


def inverse(H: Doubles, of_H: Doubles) -> Doubles:
    """Return (H^T A^-1 H)^+ for A^-1 H."""
    product = H.T @ of_H
    return np.asarray(pinvh((product + product.T) / 2))
