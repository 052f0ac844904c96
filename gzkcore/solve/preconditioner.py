"""The protocol of all preconditioners of K + alpha N: `Preconditioner`.

    Diagonal                  the diagonal                                   preconditioners
    LowRank                   features of the kernel                         preconditioners
    NearAndFar                features, and neighbours of each row           preconditioners
    NearLandmarks             landmarks, and neighbours of each row          near_landmarks
    Factored                  the matrix itself, of few rows                 factored
    Grown                     another one, with rows added and left out      changed_rows
    Preconditioned, Coupled   steps of Newton's method                       newton
    FactoredGram              the normal equations of centres                centers
    SketchPreconditioner      a Gram matrix of features                      wide

Conjugate gradients need `solve` alone. The other members say what a preconditioner costs and how
good it is.
"""

import math
from typing import Any

import numpy as np
from scipy.linalg import cho_factor

from gzkcore._util.threads import limit_blas
from gzkcore._util.typing import Doubles, Integers
from gzkcore._util.wording import counted

__all__ = ["Preconditioner"]


class Preconditioner:
    """Base of P, symmetric and positive definite, near K + alpha N for each of several alphas.

    Attributes
    ----------
    n_components, n_neighbours : int
        Columns of Z; earlier rows that each row is compared with.
    nbytes : int
        Memory held.
    seconds : float
        Time that it took to compute.
    made_for : tuple or None
        Number of rows and alphas that `preconditioner_for` made it for. None: not made by this
        function; then they are not checked.
    """

    n_components = 0
    n_neighbours = 0
    nbytes = 0
    seconds = 0.0
    made_for: tuple[int, tuple[float, ...]] | None = None

    def solve(self, R: Doubles, columns: Integers) -> Doubles:
        """Return P^-1 R, of the shape of R.

        Parameters
        ----------
        R : ndarray of shape (n, k)
        columns : ndarray of shape (k,)
            The number of each column's alpha among those that the preconditioner was made for.
        """
        raise NotImplementedError

    def condition_bound(self, column: int) -> float:
        """Return an upper bound of the condition number of P^-1 (K + alpha N); inf if unknown."""
        return math.inf

    def __repr__(self) -> str:
        parts = [counted(self.n_components, "component")]
        if self.n_neighbours:
            parts.append(counted(self.n_neighbours, "neighbour"))
        return f"{type(self).__name__}({', '.join(parts)})"


def factor_of(matrix: Doubles, ridge: float) -> Any:
    """Return the lower factor of matrix + ridge I, with any numbers above the diagonal."""
    shifted = np.array(matrix, order="F")
    shifted[np.diag_indices_from(shifted)] += ridge
    with limit_blas(1):
        return cho_factor(shifted, lower=True, overwrite_a=True)[0]
