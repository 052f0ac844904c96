"""Regression given the nearest rows of each new one, for any number of rows.

Formula    With N the m rows nearest to x in the kernel's scaled columns, A = K_NN + alpha N_N and
           the weights a = A^-1 k_N(x): f(x) = a^T y_N, and an observation at x has the variance
           k(x, x) + alpha - a^T k_N(x), in units of the prior scale.
Why        Given the rows about x, those farther away tell hardly anything of f(x). There is nothing
           to fit but an index of the rows, and a standard deviation costs nothing.
Cost       m^3 / 6 multiply-adds for a new row, m^2 (d + 12) / 2 for each term of the kernel, and a
           search: in a few columns some hundred distances, in many as many as there are rows.
Memory     the rows, and in single precision their scaled columns.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from gzkcore._util.linalg import cholesky, solve_factored, solve_triangle
from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers, Rows
from gzkcore._util.validation import dense
from gzkcore.kernels.base import Kernel
from gzkcore.kernels.coded_form import coded_form, scales_of
from gzkcore.kernels.products import Pairs, as_double, matrix_of
from gzkcore.kernels.slopes import derivatives, prior_slopes
from gzkcore.kernels.tile_rows import scaled_columns
from gzkcore.kernels.transformed import unmapped
from gzkcore.rows.coded import CodedRows
from gzkcore.rows.dask import HeldRows
from gzkcore.rows.sources import Batch

from .neighbours import NO_CODES, Nearest, Numbers, given_near
from .preconditioners import LEAST_ALPHA, LEAST_IN_SINGLE

NEW_ROWS = 1 << 14  # So many new rows are worked on at a time,
NEAR_VALUES = 1 << 25  # and, of all their near rows, so many numbers.
SLOPE_VALUES = 1 << 20  # Slopes are computed of so many new rows that these are all numbers.
MANY = 1000  # A mask of n rows takes as long as sorting one number in so many of them, or less.
MATTERS = 1e-10  # Columns matter whose scale is a larger share of the largest.


class Columns:
    """The columns by which a kernel compares rows, and those in which rows are near or far.

    Of `CodedRows` they are numbers and codes, if the kernel has a form for these.

    Parameters
    ----------
    kernel : Kernel
        Resolved; a function of scaled columns.
    rows : ndarray, CSR or CodedRows

    Attributes
    ----------
    form : list of Term or None
        Of the kernel on numbers and codes.
    gaps : ndarray of shape (n_codes,)
        The squared distances of different codes, the last of the columns in which rows are near.
    """

    def __init__(self, kernel: Kernel, rows: Any) -> None:
        self._kernel, self._rows, self.gaps = kernel, rows, NO_CODES
        self.form = coded_form(kernel, rows)
        if self.form is None:
            return
        scales, gaps = scales_of(kernel, rows)
        self._numbers = np.flatnonzero(scales > MATTERS * scales.max(initial=0.0))
        self._codes = rows.plain.size + np.flatnonzero(gaps)
        self._scales, self.gaps = scales[self._numbers], gaps[gaps > 0]

    def of(self, X: Any) -> Doubles:
        """Return the columns of rows by which the kernel compares them."""
        if self.form is None:
            return as_double(dense(X))
        return X.compact if isinstance(X, CodedRows) else self._rows.compacted(as_double(dense(X)))

    def pairs(self, columns: Doubles, dtype: Any, like: Pairs | None = None) -> Pairs | None:
        """Return the compiled kernel at pairs of rows, given their columns."""
        if self.form is None:
            return Pairs.of(self._kernel, columns, dtype, like)
        return Pairs.of_form(self.form, columns, dtype, like)

    def scaled(self, columns: Doubles) -> Doubles:
        """Return the columns in which rows are near or far, of these columns."""
        if self.form is None:
            return scaled(self._kernel, columns)
        parts = [columns[:, self._numbers] * self._scales, columns[:, self._codes]]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))


def scaled(kernel: Kernel, X: Doubles) -> Doubles:
    """Return the columns of all factors of a kernel, scaled, in which rows are near or far."""
    kernel, X, _ = unmapped(kernel, X, None)
    form = kernel.tile_form(X.shape[1])
    if form is None:
        raise ValueError(
            f"kernel={kernel!r} has no scaled columns, in which rows are near or far; use a kernel "
            "with lengthscales, or a product or sum of such"
        )
    parts = [scaled_columns(X, factor)[0] for term in form for factor in term.factors]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def _different(places: Numbers, n: int) -> Integers:
    """Return the different ones of some numbers below n, in order; by a mask if they are many."""
    if MANY * places.size < n:
        return np.unique(places)
    is_there = np.zeros(n, bool)
    is_there[places] = True
    return np.flatnonzero(is_there)


class NearRows:
    """The rows of a regression, from the nearest of which new ones are predicted.

    Parameters
    ----------
    kernel : Kernel
        Resolved; a function of scaled columns.
    X : {ndarray, CSR} of shape (n, d)
    y : ndarray of shape (n, n_targets)
    noise : ndarray of shape (n,) or None
        The diagonal of N; None: ones.
    alpha : float
    count : int
        m, how many near rows there are.
    order : ndarray of int32, optional
        The rows in the order of their tree, if it is known.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        y: Doubles,
        noise: Doubles | None,
        alpha: float,
        count: int,
        order: Numbers | None = None,
    ) -> None:
        self._order = order
        self.kernel, self.X, self.y = kernel, X, y
        self.noise, self.count = noise, min(count, X.shape[0])
        one = as_double(dense(X[:1]))
        largest = float(kernel.diag(one)[0])
        self._least = LEAST_ALPHA * largest
        self.alpha = max(alpha, self._least)
        smallest = self.alpha * (1.0 if noise is None else float(noise.min()))
        single = smallest >= LEAST_IN_SINGLE * max(largest, 1.0)
        self._dtype = np.dtype(np.float32 if single else np.float64)
        self.columns = Columns(kernel, X)
        self._one = self.columns.pairs(self.columns.of(X[:1]), self._dtype)
        if self._one is None:
            self.columns = Columns(kernel, None)

    def given(self, alpha: float, count: int) -> "NearRows":
        """Return the regression with another alpha, from so many near rows, by the same index."""
        other = NearRows(self.kernel, self.X, self.y, self.noise, alpha, count)
        other._index = self._index
        return other

    @functools.cached_property
    def _index(self) -> Any:
        """A tree of the rows, or a source of trees that workers hold."""
        if isinstance(self.X, HeldRows):
            return self.X.held(_tree, self.kernel)
        columns = self.columns
        return Nearest(self.X, columns.gaps, lambda X: columns.scaled(columns.of(X)), self._order)

    @property
    def order(self) -> Numbers | None:
        """The rows in the order of their tree, which takes long to be found; None: workers do."""
        order: Numbers | None = None if isinstance(self.X, HeldRows) else self._index.order
        return order

    # -- predictions --------------------------------------------------------------------------

    def predict(self, X: Rows) -> tuple[Doubles, Doubles]:
        """Return means (n, n_targets) and variances (n,) of new observations, over the scale."""
        mean, variance = np.empty((X.shape[0], self.y.shape[1])), np.empty(X.shape[0])
        for start in range(0, X.shape[0], NEW_ROWS):
            part = slice(start, start + NEW_ROWS)
            rows = self.columns.of(X[part])
            mean[part], variance[part] = self._given(rows, self.nearest(rows, self.count))
        return mean, variance

    def left_out(self, rows: Integers) -> tuple[Doubles, Doubles]:
        """Return means and variances at some of the rows, each given its nearest others."""
        X, count = self.columns.of(self.X[rows]), min(self.count + 1, self.X.shape[0])
        places = self.nearest(X, count)
        others = places != rows[:, None]
        others[others.all(axis=1), -1] = False  # copies of a row may hide it
        mean, variance = self._given(X, places[others].reshape(len(rows), count - 1))
        return mean, variance + self._noise_of(rows) - self.alpha

    def nearest(self, X: Doubles, count: int) -> Any:
        """Return the numbers (n, count) of the rows nearest to other rows, given their columns."""
        X = self.columns.scaled(X)
        if not isinstance(self.X, HeldRows):
            return self._index.to(X, count)
        return self._index.reduce(_answer, functools.partial(_nearest_of, count), X, count)[1]

    def _given(self, X: Doubles, places: Numbers) -> tuple[Doubles, Doubles]:
        mean, variance = np.empty((len(X), self.y.shape[1])), np.empty(len(X))
        width = max(X.shape[1], self.y.shape[1])
        step = max(1, NEAR_VALUES // max(1, places.shape[1] * width))
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            weights, variance[part] = self._weights(X[part], places[part])
            mean[part] = np.einsum("im,imq->iq", weights, self.y[places[part]])
        return mean, variance

    def _weights(self, X: Doubles, places: Numbers) -> tuple[Doubles, Doubles]:
        """Return a for each new row and the variance of an observation there, over the scale."""
        numbers = np.empty(self.X.shape[0], np.int32)
        some = _different(places, numbers.size)
        numbers[some] = np.arange(len(some))
        at = numbers[places]
        old, noise = self.columns.of(self.X[some]), self._noise_of(some)
        if self._one is not None:
            pairs: Any = [self.columns.pairs(rows, self._dtype, self._one) for rows in (X, old)]
            return given_near(pairs[0], pairs[1], at, self.alpha, noise, self._dtype)
        # The kernel has no accurate table, or too many factors: one row after the other.
        weights, variance = np.empty(places.shape), self.kernel.diag(X) + self.alpha
        with limit_blas(1):  # more threads wait for one another
            for i, here in enumerate(at):
                K = matrix_of(self.kernel, np.concatenate([old[here], X[i : i + 1]]))
                root, to_x = self._root(K[:-1, :-1], noise[here]), K[:-1, -1:]
                weights[i] = solve_factored(root, to_x)[:, 0]
                variance[i] -= weights[i] @ to_x[:, 0]
        return weights, np.maximum(variance, self.alpha)

    def _noise_of(self, rows: Integers | Numbers) -> Doubles:
        ones = np.ones(len(rows)) if self.noise is None else self.noise[rows]
        return np.maximum(self.alpha * ones, self._least)

    def _root(self, K: Doubles, noise: Doubles) -> Doubles:
        """Return the factor of K + diag(noise)."""
        try:
            return cholesky(K + np.diag(noise), overwrite=True)
        except LinAlgError:
            raise ValueError(
                "the kernel matrix of near rows is not positive definite with "
                f"kernel={self.kernel!r}; use another kernel, or a larger alpha"
            ) from None

    # -- slopes -------------------------------------------------------------------------------

    def slopes(
        self, X: Doubles, directions: Doubles, return_std: bool
    ) -> tuple[Doubles, Doubles | None]:
        """Return slopes of f (n, n_targets, p) along directions (n, p, d), and their variances.

        These are (n, p), over the scale. Slopes are exact, given the near rows of the predictions;
        but of rows with codes the kernel compares the encoded levels, whose distances differ a bit
        where they are random signs.
        """
        n_targets = self.y.shape[1]
        out, variances = np.empty((len(X), n_targets, directions.shape[1])), None
        if return_std:
            prior = prior_slopes(self.kernel, X.shape[1])
            if prior is None:
                raise ValueError(
                    f"kernel={self.kernel!r} gives no standard deviations of slopes; use one that "
                    "is a smooth function of distances: a Gaussian, or a Matern of nu > 1"
                )
            variances = np.einsum("ipc,ce,ipe->ip", directions, prior, directions)
        near = self.nearest(self.columns.of(X), self.count)
        rows, places = brought(self.X, near)
        # The derivatives at some new rows are those by all their near rows.
        step = max(1, math.isqrt(SLOPE_VALUES // (self.count * (self.count + X.shape[1]))))
        with limit_blas(1):
            for start in range(0, len(X), step):
                part = slice(start, start + step)
                some, at = np.unique(places[part], return_inverse=True)
                old = as_double(dense(rows[some]))
                D = derivatives(self.kernel, X[part], old)
                if D is None:
                    raise ValueError(
                        f"kernel={self.kernel!r} has no derivatives by columns; use one with "
                        "lengthscales, such as a Gaussian or a Matern"
                    )
                at = at.reshape(-1, self.count)
                pairs = Pairs.of(self.kernel, old, np.float64)
                if pairs is not None:
                    K: Any = pairs.take(at.ravel()).blocks(self.count)
                else:
                    K = [matrix_of(self.kernel, old[here]) for here in at]
                for i, here in enumerate(at, start):
                    root = self._root(K[i - start], self._noise_of(near[i]))
                    of_k = directions[i] @ D[i - start][:, here]
                    half = solve_triangle(root, np.vstack([self.y[near[i]].T, of_k]).T)
                    of_slopes = half[:, n_targets:]
                    out[i] = half[:, :n_targets].T @ of_slopes
                    if variances is not None:
                        variances[i] -= np.square(of_slopes).sum(axis=0)
        return out, None if variances is None else np.maximum(variances, 0.0)


# ---- rows that workers hold


def brought(X: Any, numbers: Integers) -> tuple[Any, Integers]:
    """Return rows and the numbers of some; of rows that workers hold these alone, brought here."""
    if not isinstance(X, HeldRows):
        return X, numbers
    some, at = np.unique(numbers, return_inverse=True)
    return X[some].toarray(), at.reshape(numbers.shape)


def _tree(X: Rows, kernel: Kernel) -> tuple[Rows, Kernel, Nearest]:
    return X, kernel, Nearest(X, columns=lambda part: scaled(kernel, as_double(dense(part))))


def _answer(batch: Batch, X: Doubles, count: int) -> tuple[Doubles, Numbers, int]:
    """Return squared distances (n, m) and numbers of near rows, and how many rows are searched."""
    rows, kernel, tree = batch.X
    near = tree.to(X, min(count, rows.shape[0]))
    old = (scaled(kernel, as_double(dense(rows[places]))) for places in near.T)
    squares = [np.square(X - each).sum(axis=1) for each in old]
    return np.stack(squares, axis=1), near, rows.shape[0]


def _nearest_of(count: int, answers: Sequence[Any]) -> tuple[Doubles, Integers, int]:
    """Return the answer of all rows, given those of one part after the other."""
    every, near, sizes = zip(*answers, strict=True)
    before = np.cumsum([0, *sizes[:-1]])
    numbers = np.concatenate([n + k for n, k in zip(near, before, strict=True)], axis=1)
    squares = np.concatenate(every, axis=1)
    best = np.argsort(squares, axis=1, kind="stable")[:, :count]
    squares, numbers = (np.take_along_axis(each, best, axis=1) for each in (squares, numbers))
    return squares, numbers, sum(sizes)
