"""Columns of random Gegenbauer features: Gegenbauer sums of cosines with random directions."""

import copy
import functools
import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gzkcore._compiled import gegenbauer as _gegenbauer
from gzkcore._util.new_arrays import empty_aligned
from gzkcore._util.state import doubles, entries, holds, ints, number, pairs, stored, whole
from gzkcore._util.threads import in_parts, n_threads
from gzkcore._util.typing import Doubles, Floats, Integers
from gzkcore._util.validation import as_floats
from gzkcore.kernels.radial import Folded, RadialFunctions, row_products
from gzkcore.sphere.special import log_alpha

from .base import STREAM_BYTES, cast_once

# Horner's rule is used if cancellations multiply its rounding errors by at most this, by type.
_HORNER_LOSS = {"f": 32.0, "d": 1e4}
# The value of beta that stands for powers in halves.
IN_HALVES = np.empty(0)


def gegenbauer_features(X: ArrayLike, W: ArrayLike, radial: ArrayLike) -> Floats:
    """Sums of Gegenbauer polynomials at the cosines between rows and directions (Eq 13).

    out[i, j] = sum_l radial[i, l] P_d^l(<x_i, w_j>).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Unit rows; float32 stays float32, everything else becomes float64.
    W : array-like of shape (m, d)
        Unit rows.
    radial : array-like of shape (n, q + 1) or (1, q + 1)
        The factors of P_d^l for each row; a single row is used for all.

    Returns
    -------
    ndarray of shape (n, m)
        float32 for float32 X, else float64.

    Notes
    -----
    Clenshaw's rule takes n m (d + 2 q) fused operations. Typical errors, relative to the largest
    value, are 3e-6 (float32) and 1e-14 (float64).

    References
    ----------
    Han, Zandieh, Avron, Eq 13.

    Examples
    --------
    >>> from gzkcore.features.gegenbauer import gegenbauer_features
    >>> gegenbauer_features([[1.0, 0.0, 0.0]], [[0.6, 0.8, 0.0]], [[1.0, 2.0, 3.0]]).round(6)
    array([[2.32]])
    """
    return summed_features(*_check_sum(X, W, radial))


def summed_features(X: Floats, W: Doubles, radial: Doubles, halves: bool = False) -> Floats:
    """Return `gegenbauer_features`, or `features_in_halves`, without checks of the arrays."""
    rule = Recurrence(X.shape[1], radial.shape[1] - 1)
    out = np.empty((X.shape[0], W.shape[0]), dtype=X.dtype)
    matrix, beta = (rule.halves(), IN_HALVES) if halves else (None, None)
    for rows in in_parts(len(X), out.shape[1] * (X.shape[1] + 2 * radial.shape[1])):
        of_rows = radial if len(radial) == 1 else radial[rows]
        rule.evaluate(X[rows], W, of_rows, out[rows], matrix, beta, out.nbytes > STREAM_BYTES)
    return out


def features_in_halves(X: ArrayLike, W: ArrayLike, radial: ArrayLike) -> Floats:
    """Return the sums of `gegenbauer_features` by Horner's rule in powers of 2 t^2 - 1.

    Parameters
    ----------
    X, W, radial
        As for `gegenbauer_features`.

    Returns
    -------
    ndarray of shape (n, m)

    Notes
    -----
    Even and odd powers are summed apart, with n m (d + q + 3) fused operations. Digits are lost if
    terms cancel, which `gegenbauer_features` avoids. `GegenbauerFeatures` checks the terms before
    it uses this rule.

    References
    ----------
    Han, Zandieh, Avron, Eq 2 and 13.

    Examples
    --------
    >>> from gzkcore.features.gegenbauer import features_in_halves
    >>> features_in_halves([[1.0, 0.0, 0.0]], [[0.6, 0.8, 0.0]], [[1.0, 2.0, 3.0]]).round(6)
    array([[2.32]])
    """
    return summed_features(*_check_sum(X, W, radial), halves=True)


def _check_sum(X: ArrayLike, W: ArrayLike, radial: ArrayLike) -> tuple[Floats, Doubles, Doubles]:
    """Return X, W and radial as arrays, or raise if their shapes don't match."""
    X = np.ascontiguousarray(as_floats("X", X))
    W = np.ascontiguousarray(W, dtype=np.float64)
    radial = np.ascontiguousarray(radial, dtype=np.float64)
    if X.ndim != 2 or W.ndim != 2 or X.shape[1] != W.shape[1] or not X.shape[1]:
        raise ValueError(
            f"X {X.shape} and W {W.shape} must be matrices with equally many columns, one or more"
        )
    if radial.ndim != 2 or radial.shape[0] not in (1, X.shape[0]) or radial.shape[1] < 1:
        raise ValueError(
            f"radial has shape {radial.shape}; pass one row, or one for each of {X.shape[0]} rows"
        )
    return X, W, radial


def in_strips(W: Floats, dtype: DTypeLike) -> Floats:
    """Return rows as columns in strips, the last padded with zeros."""
    width = _gegenbauer.strip_columns()
    strips = empty_aligned((-(-len(W) // width), W.shape[1], width), dtype)
    strips[-1:] = 0
    for strip, first in zip(strips, range(0, len(W), width), strict=True):
        some = W[first : first + width]
        strip[:, : len(some)] = some.T
    return strips


class Recurrence:
    """The polynomials p_k that the kernel sums: p_(k+1) = t p_k - beta_k p_(k-1).

    They are P_d^k times known factors, in the variable tau t; tau is chosen so that the factors
    stay near 1 at both ends of the range of degrees and float32 neither overflows nor underflows.
    """

    _state = stored(
        dim=whole(1),
        tau=number(0),
        beta=doubles("q"),
        factor=doubles("q"),
        plain=doubles("q"),
        _monic=pairs(doubles("q")),
    )

    def __init__(self, dim: int, degree: int) -> None:
        self.dim = dim
        level = np.arange(1, degree + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = level * (level + dim - 3) / ((2 * level + dim - 2) * (2 * level + dim - 4))
            growth = (2 * level + dim - 4) / (level + dim - 3)
        beta[:1], growth[:1] = 1 / dim, 1.0
        if dim == 1:  # t^l, as on the two points of the sphere
            beta[:], growth[:] = 0.0, 1.0
        log_lead = np.concatenate([[0.0], np.cumsum(np.log(growth))])  # of P_d^k
        log_size = log_alpha(np.arange(degree + 1), dim)
        norm = log_lead + 0.5 * np.where(np.isfinite(log_size), log_size, 0)
        self.tau = math.exp(norm[-1] / degree) if degree else 1.0
        self.beta = np.concatenate([[0.0], beta * self.tau**2])
        self.factor = np.exp(log_lead - np.arange(degree + 1) * math.log(self.tau))
        self.plain = np.zeros(degree + 1)
        # Powers beyond 1e150 lose all digits, and `_where_safe` never chooses them.
        self._monic = np.concatenate([[0.0], beta]), np.exp(np.minimum(log_lead, 345.0))

    def monomials(self) -> Doubles:
        """Matrix (q+1, q+1) whose row l holds the monomial coefficients of P_d^l."""
        beta, lead = self._monic
        q = beta.size - 1
        rows = np.zeros((q + 1, q + 1))
        rows[0, 0] = 1.0
        for k in range(q):
            rows[k + 1, 1:] = rows[k, :-1]
            if k:
                rows[k + 1] -= beta[k] * rows[k - 1]
        rows *= lead[:, None]
        return rows

    def halves(self) -> Doubles:
        """Matrix (q+1, q+1) whose row l holds P_d^l's coefficients of t^(k mod 2) u^(k div 2).

        u is 2 t^2 - 1, so that t t u^j is (u^j + u^(j+1)) / 2.
        """
        beta, lead = self._monic
        q = beta.size - 1
        rows = np.zeros((q + 1, q + 2))
        rows[0, 0] = 1.0
        for k in range(q):
            even, odd = rows[k, :-1:2], rows[k, 1::2]
            rows[k + 1, 1::2] = even[: rows[k, 1::2].size]
            rows[k + 1, : 2 * odd.size : 2] += odd / 2
            rows[k + 1, 2::2] += odd[: rows[k, 2::2].size] / 2
            if k:
                rows[k + 1] -= beta[k] * rows[k - 1]
        rows *= lead[:, None]
        return np.ascontiguousarray(rows[:, :-1])

    def evaluate(
        self,
        X: Floats,
        W: Doubles,
        radial: Doubles,
        out: Floats,
        matrix: Doubles | None = None,
        beta: Doubles | None = None,
        stream: bool = False,
    ) -> None:
        """Set out = sum_l radial_l P_d^l(X W^T), by Horner's rule where a matrix is given."""
        coefficients = self.coefficients(radial, matrix).astype(X.dtype)
        if beta is None:
            beta = self.beta if matrix is None else self.plain
        self.sum(X, self.scaled(W, matrix, X.dtype), coefficients, out, beta, stream)

    def coefficients(self, radial: Doubles, matrix: Doubles | None) -> Doubles:
        """Return the coefficients of the p_k, given those of the P_d^k.

        `matrix` holds the P_d^k in powers; None: the p_k are those of the recurrence.
        """
        return radial * self.factor if matrix is None else row_products(radial, matrix)

    def scaled(self, W: Doubles, matrix: Doubles | None, dtype: DTypeLike) -> Floats:
        """Return directions in the variable of the p_k, in strips."""
        return in_strips(W * (self.tau if matrix is None else 1.0), dtype)

    def sum(
        self,
        X: Floats,
        scaled: Floats,
        coefficients: Floats,
        out: Floats,
        beta: Doubles,
        stream: bool,
    ) -> None:
        """Set out = sum_k coefficients_k p_k, all in the dtype of X."""
        _gegenbauer.gegenbauer_features(
            X, scaled, coefficients, beta.astype(X.dtype), out, stream,
            n_threads(out.size * self.beta.size),
        )  # fmt: skip


def _of_degrees() -> Any:
    """Declare a square matrix with a row for each degree."""
    size = lambda of: of.rule.beta.size  # noqa: E731
    return doubles(size, size)


class Directions:
    """Random columns for one family of radial functions (one i, several degrees)."""

    _state = stored(
        W=doubles("m", lambda of: of.rule.dim),
        columns=ints("k", dtype=np.int64),
        degrees=ints("k", below=lambda of: of.rule.beta.size),
        weights=doubles("k"),
        rule=holds(Recurrence),
        _horner=entries(f=_of_degrees().if_there(), d=_of_degrees().if_there()),
        _halves=entries(f=_of_degrees().if_there(), d=_of_degrees().if_there()).if_there(),
    )

    def __init__(
        self,
        dim: int,
        degrees: Integers,
        columns: Integers,
        W: Doubles,
        signs: Doubles,
    ) -> None:
        self.W = W
        self.columns = columns  # radial functions, one for each degree in `degrees`
        self.degrees = degrees
        with np.errstate(over="ignore"):
            self.weights = signs * np.exp(0.5 * log_alpha(degrees, dim)) / math.sqrt(W.shape[0])
        if not np.isfinite(self.weights).all():
            raise ValueError(
                f"random columns of degree {degrees.max()} in {dim} dimensions are beyond the "
                "largest float; use a larger lengthscale (a smaller gamma), or basis='harmonic'"
            )
        self.rule = Recurrence(dim, int(degrees.max()))
        # Matrices of powers for the types that use one of Horner's rules.
        self._horner: dict[str, Doubles] = {}
        self._halves: dict[str, Doubles] = {}

    def write(self, unit: Floats, coefficients: Floats, out: Floats, stream: bool) -> None:
        """Write the columns, given the coefficients of each row; see `folded`."""
        char = unit.dtype.char
        beta = self.rule.beta
        if self._matrix(char) is not None:
            beta = self.rule.plain if char in self._horner else IN_HALVES
        scaled = cast_once(self, unit.dtype, self._scaled, self.W, self._horner)
        self.rule.sum(unit, scaled, coefficients, out, beta, stream)

    def folded(self, radial: RadialFunctions, dtype: Any) -> Folded:
        """Return the function from norms to the coefficients of `write`."""
        return Folded(radial, self.columns, functools.partial(self._coefficients, dtype.char))

    def _matrix(self, char: str) -> Doubles | None:
        """Return the polynomials in powers, None if these lose too many digits."""
        return self._horner.get(char, self._halves.get(char))

    def _scaled(self, W: Doubles, _: Any, dtype: Any) -> Floats:
        return self.rule.scaled(W, self._matrix(dtype.char), dtype)

    def _coefficients(self, char: str, values: Floats) -> Doubles:
        """Return the coefficients of each row, given values of the radial functions."""
        radial = np.zeros((values.shape[0], self.rule.beta.size))
        radial[:, self.degrees] = values * self.weights
        return self.rule.coefficients(radial, self._matrix(char))

    def with_horner(self, values: Floats) -> Self:
        """Return these columns with one of Horner's rules for types where it is accurate enough.

        `values` are the radial functions at some norms.
        """
        radial = np.zeros((values.shape[0], self.rule.beta.size))
        radial[:, self.degrees] = values * self.weights
        size = np.sqrt(np.sum(np.square(values), axis=1) / self.W.shape[0])
        made = copy.copy(self)
        made._horner = _where_safe(self.rule.monomials(), radial, size)
        safe = _where_safe(self.rule.halves(), radial, size)
        made._halves = {char: safe[char] for char in safe if char not in made._horner}
        return made


def _where_safe(matrix: Doubles, radial: Doubles, size: Doubles) -> dict[str, Doubles]:
    """Return the matrix for each type that keeps enough digits of its sums."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        sums = np.abs(radial @ matrix).sum(axis=1)
        some = sums != 0  # NaN too, which is never safe
        loss = (sums[some] / size[some]).max(initial=0.0)
    return {char: matrix for char, most in _HORNER_LOSS.items() if loss <= most}
