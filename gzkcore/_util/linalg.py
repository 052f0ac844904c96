"""Dense linear algebra whose results do not depend on the number of threads.

Factorisations of positive definite matrices run in parallel, over a BLAS with one thread.
Everything else runs on one thread, since the threads of LAPACK wait for each other.

Eigenvectors of 2,048 x 2,048 matrices, on two cores with another program running, took 2.3 s with
one thread of OpenBLAS and 9 to 11 s with two. Products are faster with several threads.
"""

from typing import Any, TypeVar

import numpy as np
import scipy.linalg
from scipy.linalg import LinAlgError

from gzkcore._compiled import cholesky as _cholesky

from .threads import limit_blas, n_threads
from .typing import Doubles, Floats

__all__ = [
    "cholesky",
    "eigh",
    "inverse_factors",
    "inverse_of",
    "orthonormal",
    "shifted",
    "solve_factored",
    "solve_triangle",
]

Matrix = TypeVar("Matrix", bound=Floats)

# Flops that count as one operation in `n_threads`: matrices of up to 600 rows are factored and
# inverted as fast by one thread as by two, which wait for each other several times.
FLOPS = 128


def _packed(A: Matrix) -> Matrix:
    """Return an array in C order, aligned and of this machine's bytes: itself if it is so."""
    packed: Any = np.require(A, A.dtype.newbyteorder("="), ["C", "ALIGNED"])
    same: Matrix = packed
    return same


def _check_square(A: Floats) -> None:
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"the matrix has shape {A.shape}; pass a square one")


def _check_rows(B: Floats, A: Floats) -> None:
    if B.ndim != 2 or len(B) != len(A):
        raise ValueError(f"B has shape {B.shape}; pass a matrix of {len(A)} rows")


def _factor(L: Matrix) -> Matrix:
    """Return a triangular factor as kernels read it; raise if its diagonal has a 0.

    That of `cholesky` has none: its entries are square roots of positive numbers.
    """
    _check_square(L)
    packed = _packed(L)
    small = np.abs(packed.diagonal()) < np.finfo(packed.dtype).tiny
    if small.any():
        place = int(small.argmax())
        raise LinAlgError(f"the factor has {L[place, place]} at place {place} of its diagonal")
    return packed


def cholesky(A: Matrix, *, overwrite: bool = False) -> Matrix:
    """Return the lower triangular L with A = L L^T, in place of A where that may be overwritten.

    Of A only the lower triangle is read. Raises LinAlgError where A isn't positive definite to
    rounding. n^3 / 3 flops.
    """
    _check_square(A)
    factor: Any = A if overwrite else np.array(A, A.dtype.newbyteorder("="), order="C")
    with limit_blas(1):
        failed = _cholesky.factor(factor, n_threads(len(A) ** 3 // (3 * FLOPS)))
    if failed:
        raise LinAlgError(f"the leading minor of order {failed} is not positive definite")
    L: Matrix = factor
    return L


def shifted(A: Doubles, diagonal: Doubles, dtype: Any = np.float64) -> Any:
    """Return A + diag(diagonal) to be factored in place: its lower triangle, the rest is anything.

    Single precision takes 4 n^2 bytes, and a copy of the whole matrix would take most of the time
    of the pages that it touches.
    """
    _check_square(A)
    if diagonal.shape != A.shape[:1]:
        raise ValueError(f"the diagonal has shape {diagonal.shape}, the matrix {A.shape}")
    out = np.empty(A.shape, dtype)
    _cholesky.shifted(_packed(A), _packed(diagonal), out, n_threads(A.size))
    return out


def solve_triangle(L: Matrix, B: Floats, transposed: bool = False) -> Matrix:
    """Return L^-1 B, or L^-T B, in the dtype of L, for B of shape (n, n_sides)."""
    L = _factor(L)
    _check_rows(B, L)
    sides: Any = np.array(B.T, dtype=L.dtype, order="C")
    with limit_blas(1):
        _cholesky.solve_lower(L, sides, transposed, n_threads(len(L) ** 2 * len(sides)))
    solutions: Matrix = sides.T
    return solutions


def solve_factored(L: Matrix, B: Floats) -> Matrix:
    """Return (L L^T)^-1 B, in the dtype of L, for B of shape (n, n_sides)."""
    return solve_triangle(L, solve_triangle(L, B), transposed=True)


def inverse_of(L: Matrix) -> Matrix:
    """Return (L L^T)^-1, in the dtype of L; 2 n^3 / 3 flops."""
    L = _factor(L)
    work, inverse = np.empty_like(L), np.empty_like(L)
    with limit_blas(1):
        _cholesky.invert(L, work, inverse, n_threads(2 * len(L) ** 3 // (3 * FLOPS)))
    return inverse


def inverse_factors(A: Doubles) -> Doubles:
    """Return L^-1 of each of many small matrices A = L L^T (n_matrices, n, n), in their place."""
    with limit_blas(1):
        if not _cholesky.invert_factors(A, n_threads(len(A) * A.shape[1] ** 3)):
            raise LinAlgError("a matrix is not positive definite")
    return A


def eigh(matrix: Doubles, *against: Doubles, **options: Any) -> Any:
    """`scipy.linalg.eigh` on one thread, which also gives the same bits for any number of them."""
    if len(matrix) == 1:
        options.pop("driver", None)  # to evd SciPy 1.13 gives too little memory for one number
    with limit_blas(1):
        return scipy.linalg.eigh(matrix, *against, **options)


def orthonormal(columns: Doubles) -> Doubles:
    """Return an orthonormal basis of what the columns span, on one thread."""
    with limit_blas(1):
        basis: Doubles = scipy.linalg.qr(columns, mode="economic", check_finite=False)[0]
    return basis
