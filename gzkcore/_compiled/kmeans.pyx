"""A step of Lloyd's algorithm on a tile of features, for `kmeans`, without the interpreter's lock.

Formula    label = argmin_c |v - c|^2, where |v - c|^2 = |v|^2 + (|c|^2 - 2 v.c); then the weights,
           the sums of rows and the costs of all clusters.
Why        The products v.c are a product of matrices, which BLAS has made before; what is left is
           bound by memory, and so is done in one pass over the tile.
Cost       n s k comparisons and n s p additions for s starts, k clusters and p features.
Order      One thread: each Python thread has a tile and sums of its own. Sums are double.
Layout     All arrays in C order; of two centres equally near the first counts.
"""

from cython cimport floating
from libc.stdint cimport int32_t

from .checks cimport agree

cdef enum:
    LANES = 8


def nearest_centers(
    const floating[:, ::1] V,          # IN   (n, p), rows
    const floating[:, ::1] products,   # IN   (n, s k), -2 v.c
    const floating[::1] squares,       # IN   (s k,), |c|^2
    const double[::1] weights,         # IN   (n,)
    int32_t[:, ::1] labels,            # OUT  (n, s)
    double[:, ::1] counts,             # IN OUT (s, k)
    double[:, :, ::1] sums,            # IN OUT (s, k, p)
    double[::1] inertia,               # IN OUT (s,)
):
    """Add a tile to the clusters nearest to its rows; return sum_i w_i |v_i|^2."""
    cdef Py_ssize_t n_starts = counts.shape[0], k = counts.shape[1], i, start, c
    cdef double total = 0.0, norm
    cdef floating least, value
    cdef Py_ssize_t best, n = V.shape[0]
    agree(products.shape[0] == n and products.shape[1] == n_starts * k > 0
          and squares.shape[0] == n_starts * k and weights.shape[0] == n and labels.shape[0] == n
          and labels.shape[1] == n_starts and sums.shape[0] == n_starts and sums.shape[1] == k
          and sums.shape[2] == V.shape[1] and inertia.shape[0] == n_starts, "rows and centers")
    with nogil:
        for i in range(V.shape[0]):
            norm = _square(&V[i, 0], V.shape[1])
            total += weights[i] * norm
            for start in range(n_starts):
                best, least = 0, products[i, start * k] + squares[start * k]
                for c in range(1, k):
                    value = products[i, start * k + c] + squares[start * k + c]
                    if value < least:
                        best, least = c, value
                labels[i, start] = <int32_t> best
                counts[start, best] += weights[i]
                inertia[start] += weights[i] * max(norm + least, 0.0)
                _add(&V[i, 0], weights[i], V.shape[1], &sums[start, best, 0])
    return total


cdef inline double _square(const floating* row, Py_ssize_t size) noexcept nogil:
    """|v|^2, in as many sums as a vector has lanes."""
    cdef double[LANES] part
    cdef double total = 0.0
    cdef Py_ssize_t a, lane
    for lane in range(LANES):
        part[lane] = 0.0
    for a in range(size // LANES):
        for lane in range(LANES):
            part[lane] += <double> row[LANES * a + lane] * row[LANES * a + lane]
    for a in range(size // LANES * LANES, size):
        total += <double> row[a] * row[a]
    for lane in range(LANES):
        total += part[lane]
    return total


cdef inline void _add(const floating* row, double weight, Py_ssize_t size,
                      double* sums) noexcept nogil:
    cdef Py_ssize_t a
    for a in range(size):
        sums[a] += weight * row[a]
