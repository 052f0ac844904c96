"""How a kernel is computed in tiles, as `_compiled/products.h` has it: k = profile(t(x, y))."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from gzkcore._util.typing import Doubles

__all__ = ["TileForm"]

PRODUCT, DIFFERENCE, ABSOLUTE = range(3)  # metrics, as products.h has them
EXPONENTIAL, MATERN_12, MATERN_32, MATERN_52, MATERN, SPHERICAL, POLYNOMIAL = range(7)

LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class TileForm:
    """A kernel as products.h computes it: k = profile(t), t by a metric on scaled rows."""

    scale: float | Doubles  # factor of the rows, or one per column
    metric: int
    profile: int
    coefficients: Sequence[float] | Doubles = (1.0,)  # of the profile, from the constant on
    offset: float = math.nan  # of a dot product; NaN for distances

    def reach(self, tol: float) -> float:
        """Return the distance of scaled rows from which on the kernel is below tol."""
        if not math.isnan(self.offset) or tol <= 0:
            return math.inf
        if self.profile == SPHERICAL:
            return 1.0
        if self.profile == EXPONENTIAL:
            bits = math.log2(1 / tol)
            return bits if self.metric == ABSOLUTE else math.sqrt(2 * bits)
        values = np.polynomial.Polynomial(self.coefficients)
        return float(brentq(lambda r: math.log(values(r)) - r - math.log(tol), 0.0, 1e4))
