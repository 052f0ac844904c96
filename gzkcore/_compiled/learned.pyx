"""Sums over pairs of rows in the gradient of the marginal likelihood, for `kernels.learned_parts`.

Formula    sum_ij W_ij |x_ic - x_jc| for all columns c at once, W symmetric: of products over
           columns of kernels of |x - y|. Those of squares are matrix products.
Cost       1.5 m^2 dim operations; nothing of the size of W is stored.
Layout     W and rows in C order: the column is the innermost loop, and vectorised. Sums of a row
           are added up in the order of the others, so that they don't depend on threads.
"""

from cython.parallel cimport prange

from libc.math cimport fabs

from .signals cimport look, seconds

cdef enum:
    RUN = 16                           # rows that a thread takes at a time: the later, the longer


cdef void _of_row(
    const double* weights, const double* x, Py_ssize_t i, Py_ssize_t dim, double* sums
) noexcept nogil:
    cdef Py_ssize_t j, c
    cdef double w
    cdef const double* of_i = x + i * dim
    cdef const double* of_j
    for c in range(dim):
        sums[c] = 0
    for j in range(i):
        w = weights[j]
        of_j = x + j * dim
        for c in range(dim):
            sums[c] = sums[c] + w * fabs(of_i[c] - of_j[c])


def distance_sums(
    const double[:, ::1] W,            # IN   (m, m), of which the lower triangle is read
    const double[:, ::1] x,            # IN   (m, dim)
    double[:, ::1] sums,               # OUT  (m, dim), sum_{j < i} W_ij |x_ic - x_jc| of each row i
    int num_threads,                   # >= 1
):
    """Write half of each row's part of sum_ij W_ij |x_ic - x_jc|."""
    cdef Py_ssize_t m = W.shape[0], dim = x.shape[1], i, start = 0, end, step = RUN * num_threads
    cdef double begun = seconds()
    if W.shape[1] != m or x.shape[0] != m or sums.shape[0] != m or sums.shape[1] != dim:
        raise ValueError("shapes of W, x and sums don't match")
    if m == 0 or dim == 0:
        return
    while start < m:
        end = min(m, start + step)
        for i in prange(start, end, nogil=True, num_threads=num_threads,
                        schedule="dynamic", chunksize=RUN):
            _of_row(&W[i, 0], &x[0, 0], i, dim, &sums[i, 0])
        start += step
        step = look(step, &begun)
