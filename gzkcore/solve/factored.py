"""The preconditioner of few rows: K + alpha N itself, factored for each alpha."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from gzkcore._util.linalg import cholesky, eigh, shifted, solve_factored
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted

from .preconditioner import Preconditioner
from .solve import NotPositiveDefinite

DOUBLE_ROWS = 1024  # Up to so many rows factors are in double precision whatever alpha is.
# A diagonal and its inverse up to this size leave single precision room for the factors.
MOST_IN_SINGLE = 1e15
# Factors of several alphas take so many bytes at most; others are computed again when needed.
FACTORS_BYTES = 1 << 28


class Factored(Preconditioner):
    """The preconditioner K + alpha N itself, by its Cholesky factor: one or two steps are enough.

    With more than DOUBLE_ROWS rows the factor is in single precision, which takes half the time, if
    alpha is larger than its rounding errors. A matrix that is singular to working precision has a
    pseudo-inverse.

    Notes
    -----
    n^3 / 3 operations for each alpha; memory: 8 n^2 bytes, and 4 or 8 n^2 for a factor.
    """

    def __init__(self, matrix: Doubles, shifts: Doubles, noise: Doubles) -> None:
        self.matrix, self.shifts, self.noise = matrix, shifts, noise
        self.n_components = len(matrix)
        self.nbytes = 2 * matrix.nbytes  # with a factor
        self.made_for = len(matrix), tuple(shifts.tolist())
        self._inverses: dict[int, Callable[[Doubles], Doubles]] = {}
        self._root: tuple[float, Doubles | None] | None = None  # of the last alpha

    def __repr__(self) -> str:
        return f"the whole matrix of {counted(len(self.matrix), 'row')}"

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return (K + alpha N)^-1 R, see `Preconditioner`."""
        solved = np.empty_like(R)
        for shift in np.unique(columns).tolist():
            if shift not in self._inverses:
                if (len(self._inverses) + 1) * self.matrix.nbytes > FACTORS_BYTES:
                    self._inverses.clear()
                self._inverses[shift] = self._inverse(shift)
            solved[:, columns == shift] = self._inverses[shift](R[:, columns == shift])
        return solved

    def _inverse(self, shift: int) -> Callable[[Doubles], Doubles]:
        added = self.shifts[shift] * self.noise
        rounding = float(np.finfo(np.float32).eps) * float(self.matrix.trace())
        largest = float((self.matrix.diagonal() + added).max())
        in_range = added.min() > 1 / MOST_IN_SINGLE and largest < MOST_IN_SINGLE
        single = len(added) > DOUBLE_ROWS and added.min() > rounding and in_range
        for dtype in [np.float32, np.float64] if single else [np.float64]:
            try:
                factor = self._factor(added, dtype)
            except LinAlgError:
                continue
            return lambda R: solve_factored(factor, R).astype(np.float64, copy=False)
        values, vectors = eigh(self.matrix + np.diag(added))
        positive = values > check_definite(values, float(self.shifts[shift]))
        axes, inverses = vectors[:, positive], 1.0 / values[positive, None]
        return lambda R: axes @ (inverses * (axes.T @ R))

    def root(self, alpha: float) -> Doubles | None:
        """Return L of K + alpha N = L L^T in double precision; None if the matrix is singular."""
        if self._root is None or self._root[0] != alpha:
            try:
                self._root = alpha, np.asarray(self._factor(alpha * self.noise, np.float64))
            except LinAlgError:
                self._root = alpha, None
        return self._root[1]

    def _factor(self, added: Doubles, dtype: type) -> Any:
        return cholesky(shifted(self.matrix, added, dtype), overwrite=True)

    def condition_bound(self, column: int) -> float:
        """Return 1."""
        return 1.0


def check_definite(eigenvalues: Doubles, alpha: float) -> float:
    """Return the largest rounding error of an eigenvalue of K + alpha N; raise if one is below."""
    least = float(eigenvalues[0])
    rounding = len(eigenvalues) * float(np.finfo(np.float64).eps) * float(np.abs(eigenvalues).max())
    if least < -rounding:
        raise NotPositiveDefinite(
            f"K + alpha N with alpha={alpha:g} has the eigenvalue {least:.3g}: the kernel is not "
            f"positive definite on these rows; use another kernel, or an alpha above "
            f"{alpha - least:.3g}"
        )
    return rounding
