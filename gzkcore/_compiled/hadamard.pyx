"""The fast Walsh-Hadamard transform of many rows, for `hadamard.hadamard_transform`.

Formula    out[i] = H X[i], H[i, j] = (-1)^popcount(i & j), not normalised.
Why        By halving, log2(n) stages of additions; hadamard.h says how and what it is worth.
Cost       n log2(n) additions a row. A row that fits the second level of the cache is read once and
           written once.
Order      Parallel over rows, each by itself: the same bits for any number of threads.
Layout     X and out in C order, apart from each other.
"""

from cython cimport floating
from cython.parallel cimport prange

from .checks cimport agree


def hadamard_transform(
    const floating[:, ::1] X,          # IN   (n_rows, n), n a power of two
    floating[:, ::1] out,              # OUT  (n_rows, n)
    int n_threads,
):
    """out[i] = H X[i]; see the head of this file."""
    cdef Py_ssize_t n = X.shape[1], i
    agree(n & (n - 1) == 0 and out.shape[0] == X.shape[0] and out.shape[1] == n, "X and out")
    for i in prange(X.shape[0], schedule="static", nogil=True, num_threads=n_threads):
        hadamard(&X[i, 0], &out[i, 0], n)
