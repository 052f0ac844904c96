"""The form of a kernel that `_compiled/products.h` computes in tiles: sums of products of factors.

A factor is profile(t), where the metric says whether t is a distance or a dot product of scaled
rows. Zonal kernels are (|x| |y|)^power times a factor of unit rows with t = |x - y|^2 = 2 - 2 cos.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq

from gzkcore._util.typing import Doubles

PRODUCT, DIFFERENCE, ABSOLUTE = range(3)  # metrics, as products.h has them
(
    EXPONENTIAL, MATERN_12, MATERN_32, MATERN_52, MATERN, SPHERICAL, POLYNOMIAL, TABLE, STEEP,
    SPHERICAL_SLOPE, TABLE_SLOPE, COMPACT,
) = range(12)  # fmt: skip

# A product of sums with more terms than this takes longer than the kernel's own matrix.
MOST_TERMS = 64
LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class Slope:
    """Minus d factor / d log(length) without the column's own factor: weight times a profile.

    The own factor of column c is (x_c - y_c)^2, |x_c - y_c| or x_c y_c, of scaled rows. With the
    profile TABLE_SLOPE, `function` is t times the profile, which is 0 at 0.
    """

    profile: int
    weight: float
    coefficients: Sequence[float] | Doubles = (1.0,)
    function: Callable[[Doubles], Doubles] | None = None


@dataclass(frozen=True)
class Factor:
    """A factor of a kernel: profile(t), t by a metric on scaled rows."""

    scale: float | Doubles  # factor of the rows, or one per column
    metric: int
    profile: int
    coefficients: Sequence[float] | Doubles = (1.0,)  # of the profile, from the constant on
    offset: float = math.nan  # of a dot product; NaN for distances
    bound: float = 1.0  # of |profile|
    slope: Slope | None = None  # None: there are no lengths
    columns: Sequence[int] | None = None  # None: all
    power: int | None = None  # of the norms, a further factor; the profile is then of unit rows
    unit: bool = False  # the norms have to be 1
    # For a table: its function of t, or of the angle between rows if there is a power.
    function: Callable[[Doubles], Doubles] | None = None
    blur: float = 0.0  # the error of t in the function, if it is computed from a cosine
    noise: float = 0.0  # the error of the function's values
    # The last columns are codes, of which different ones add this to t; only near rows have such.
    gaps: Sequence[float] = ()

    @property
    def of_distances(self) -> bool:
        """Whether t is a distance."""
        return math.isnan(self.offset)

    def reach(self, tol: float) -> float:
        """Return the distance of scaled rows from which on the factor is below tol."""
        if not self.of_distances or self.power is not None or tol <= 0:
            return math.inf
        if tol >= 1:
            return 0.0
        if self.profile == SPHERICAL:
            return 1.0
        if self.profile == EXPONENTIAL:
            bits = math.log2(1 / tol)
            return bits if self.metric == ABSOLUTE else math.sqrt(bits)
        if self.function is not None:
            squares = np.exp2(np.arange(-60.0, 200.0, 0.25))
            near = np.flatnonzero(self.function(squares) >= tol)
            return math.sqrt(squares[min(near[-1] + 1, squares.size - 1)]) if near.size else 0.0
        values = np.polynomial.Polynomial(self.coefficients)
        return float(brentq(lambda r: math.log(values(r)) - r - math.log(tol), 0.0, 1e4))


@dataclass(frozen=True)
class Term:
    """A number times a product of factors."""

    factors: tuple[Factor, ...]
    weight: float = 1.0

    def reaches(self, tol: float) -> list[float]:
        """Return for each factor the distance beyond which the term is below tol of its bound."""
        unbounded = any(factor.power or math.isinf(factor.bound) for factor in self.factors)
        if unbounded or tol <= 0:
            return [math.inf] * len(self.factors)
        return [factor.reach(tol * factor.bound) for factor in self.factors]


TileForm: TypeAlias = list[Term]  # a sum


def has_tables(form: TileForm | None) -> bool:
    """Say whether some factor is computed by a table."""
    return any(factor.function is not None for term in form or () for factor in term.factors)


def on_columns(form: TileForm, index: Sequence[int]) -> TileForm:
    """Return the form for rows whose columns `index` are those of the form."""

    def moved(factor: Factor) -> Factor:
        columns = index if factor.columns is None else [index[column] for column in factor.columns]
        return replace(factor, columns=[*columns])

    return [replace(term, factors=tuple(map(moved, term.factors))) for term in form]


def multiplied(forms: Sequence[TileForm]) -> TileForm | None:
    """Multiply sums of terms, None if there are more than MOST_TERMS.

    Exponentials of one metric become one factor.
    """
    if math.prod(len(form) for form in forms) > MOST_TERMS:
        return None
    terms = [Term(())]
    for form in forms:
        terms = [
            Term((*left.factors, *right.factors), left.weight * right.weight)
            for left in terms
            for right in form
        ]
    return [replace(term, factors=tuple(_merged(term.factors))) for term in terms]


def _merged(factors: Sequence[Factor]) -> list[Factor]:
    merged: dict[object, Factor] = {}
    for number, factor in enumerate(factors):
        alike = factor.profile == EXPONENTIAL and factor.of_distances and factor.columns is not None
        key = ("exponential", factor.metric) if alike else number
        if key not in merged:
            merged[key] = factor
            continue
        both = merged[key], factor
        scales = [np.broadcast_to(one.scale, len(one.columns or ())) for one in both]
        columns = [column for one in both for column in one.columns or ()]
        merged[key] = replace(both[0], scale=np.concatenate(scales), columns=columns)
    return [*merged.values()]
