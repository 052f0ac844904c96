"""Sums over pairs of rows in the gradient of the marginal likelihood, for `kernels.learned_parts`.

Formula    sum_ij W_ij |x_ic - x_jc| for all columns c at once, W symmetric: of products over
           columns of kernels of |x - y|. Those of squares are matrix products. For products of
           Matern kernels sum_ij W_ij r^2 h(r) for all groups of columns, r = |x_i - x_j| in these,
           h = 1 / (1 + r) for nu = 3/2, (1 + r) / (3 + 3 r + r^2) for 5/2.
Cost       1.5 m^2 dim operations, and 5 m^2 for each group; nothing of the size of W is stored.
Layout     W and rows in C order: the column is the innermost loop, and vectorised; for groups LANES
           rows are. Sums of a row, or of so many, are added up in the order of the others, so that
           they don't depend on threads.
"""

from cython.parallel cimport prange

from libc.math cimport fabs, sqrt
from libc.string cimport memcpy, memset

from .checks cimport agree
from .signals cimport look, seconds

cdef enum:
    RUN = 16                           # rows that a thread takes at a time: the later, the longer
    LANES = 32


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


cdef void _of_block(
    const double[:, ::1] W, const double[:, :, ::1] x, Py_ssize_t b, Py_ssize_t first,
    Py_ssize_t end, bint smooth, double* out
) noexcept nogil:
    cdef double squares[LANES]
    cdef double sums[LANES]
    cdef double w[LANES]
    cdef double r, apart, own
    cdef Py_ssize_t i, c, k, j = b * LANES
    memset(sums, 0, sizeof(sums))
    memset(w, 0, sizeof(w))
    for i in range(j + 1, W.shape[0]):
        memset(squares, 0, sizeof(squares))
        memcpy(w, &W[i, j], min(<Py_ssize_t> LANES, i - j) * sizeof(double))
        for c in range(first, end):
            own = x[i // LANES, c, i % LANES]
            for k in range(LANES):
                apart = own - x[b, c, k]
                squares[k] = squares[k] + apart * apart
        for k in range(LANES):
            r = fabs(own - x[b, first, k]) if end - first == 1 else sqrt(squares[k])
            if smooth:
                sums[k] = sums[k] + w[k] * squares[k] * (1 + r) / (3 + 3 * r + squares[k])
            else:
                sums[k] = sums[k] + w[k] * squares[k] / (1 + r)
    out[0] = 0
    for k in range(LANES):
        out[0] = out[0] + sums[k]


def product_sums(
    const double[:, ::1] W,            # IN   (m, m), of which the lower triangle is read
    const double[:, :, ::1] x,         # IN   (n_blocks, dim, LANES), columns in groups
    const Py_ssize_t[::1] ends,        # IN   (n_groups,), where the columns of each group end
    bint smooth,                       # IN   nu = 5/2, else 3/2
    double[:, ::1] sums,               # OUT  (n_blocks, n_groups), sum_{j < i}, j in each block
    int num_threads,                   # >= 1
):
    """Write half of each block's part of sum_ij W_ij r^2 h(r) for each group."""
    cdef Py_ssize_t m = W.shape[0], count = x.shape[0], groups = ends.shape[0], b, g
    agree(W.shape[1] == m and x.shape[2] == LANES and LANES * (count - 1) < m <= LANES * count
          and sums.shape[0] == count and sums.shape[1] == groups, "W, x and sums")
    for g in range(groups):
        agree((ends[g - 1] if g else 0) < ends[g] <= x.shape[1], "groups and x")
    for b in prange(count, nogil=True, num_threads=num_threads, schedule="dynamic", chunksize=1):
        for g in range(groups):
            _of_block(W, x, b, ends[g - 1] if g else 0, ends[g], smooth, &sums[b, g])
